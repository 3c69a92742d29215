//! systemd-resolved: the name servers of an interface, which systemd-networkd hands it, and those of the whole machine.

use serde_json::json;

use super::{CONFIGURED, RESOLVES, is_undone, on, running, set_servers};

const FILE: &str = "/etc/systemd/network/10-lsa.network";
const OWN: &str = "/etc/systemd/resolved.conf.d/90-linux-sysadmin.conf";

const NETWORKD: &str = "
ln -sf /run/systemd/resolve/stub-resolv.conf /etc/resolv.conf
printf '# ours\\n[Match]\\nName=lsa0\\n\\n[Network]\\nAddress=198.19.7.2/24\\nLinkLocalAddressing=no\\nDNS=127.0.0.9\\n' > /etc/systemd/network/10-lsa.network
systemctl start systemd-resolved systemd-networkd
";

const REBOOT: &str = "systemctl stop systemd-networkd.socket systemd-networkd systemd-resolved
    ip address flush dev lsa0; rm -rf /run/systemd/netif/links /run/systemd/resolve
    systemctl start systemd-resolved systemd-networkd";

const HAS_SERVERS: &str = "resolvectl dns lsa0 | grep -q ' 127.0.0.9 198.19.7.98$' && resolvectl domain lsa0 | grep -q ' corp.lsa$'";

#[tokio::test]
async fn an_interfaces_servers_are_resolveds_also_after_it_starts_anew() {
    let test = "an_interfaces_servers_are_resolveds_also_after_it_starts_anew";
    let has_server = "resolvectl dns lsa0 | grep -q ' 127.0.0.9$'";
    let is_up = format!("{CONFIGURED} && {has_server}");
    let Some((machine, mut client)) = on(test, NETWORKD, &is_up).await else { return };
    let by = ("systemd-resolved, by systemd-networkd", FILE);
    let (before, kernel) = (machine.read(FILE), running(&machine));
    let servers = json!({"servers": ["127.0.0.9", "198.19.7.98"], "search": ["corp.lsa"]});
    set_servers(&machine, &mut client, &servers, by, HAS_SERVERS).await;
    let set = machine.read(FILE);
    assert_eq!(set, before.replace("DNS=127.0.0.9\n", "DNS=127.0.0.9 198.19.7.98\nDomains=corp.lsa\n"));
    // The former servers know the name, and aren't asked for it any more.
    let breaks = json!({"servers": ["127.0.0.10"], "check": "db.lsa"});
    is_undone(&machine, &mut client, "net_dns_modify", breaks).await;
    assert_eq!(machine.read(FILE), set);
    machine.until(HAS_SERVERS);

    machine.sh(REBOOT);
    machine.until(CONFIGURED);
    machine.until(HAS_SERVERS);
    machine.until(RESOLVES);

    let stub = json!({"servers": ["127.0.0.53"]});
    machine.refuses(&mut client, "net_dns_modify", &stub, "INVALID_ADDRESS").await;
    let servers = json!({"servers": ["127.0.0.9"], "search": []});
    set_servers(&machine, &mut client, &servers, by, has_server).await;
    machine.until(CONFIGURED);
    assert_eq!(machine.read(FILE), before);
    assert_eq!(running(&machine), kernel);
}

#[tokio::test]
async fn the_whole_machines_servers_are_resolveds_also_after_it_starts_anew() {
    let test = "the_whole_machines_servers_are_resolveds_also_after_it_starts_anew";
    let start = "
        ln -sf /run/systemd/resolve/stub-resolv.conf /etc/resolv.conf
        systemctl start systemd-resolved";
    let Some((machine, mut client)) = on(test, start, "systemctl is-active systemd-resolved").await else {
        return;
    };
    let breaks = json!({"servers": ["127.0.0.10"], "check": "db.lsa"});
    is_undone(&machine, &mut client, "net_dns_modify", breaks).await;
    assert!(!machine.has("/etc/systemd/resolved.conf.d"));
    assert!(!machine.holds(RESOLVES), "{}", machine.sh("resolvectl status"));

    // systemd starts a unit five times in ten seconds and not more often.
    machine.sh("systemctl reset-failed systemd-resolved");
    let checked = json!({"servers": ["127.0.0.9"], "check": "db.lsa"});
    let set = client.envelope("net_dns_modify", checked).await;
    assert_eq!(set["status"], "success", "{set}");
    let servers = json!({"servers": ["127.0.0.9"], "search": ["corp.lsa"]});
    let preview = machine.shows(&mut client, "net_dns_modify", &servers).await;
    let set = machine.does(&mut client, "net_dns_modify", &servers, &preview).await;
    let data = &set["data"];
    assert_eq!((&data["owner"], &data["set_in"]), (&json!("systemd-resolved"), &json!(OWN)), "{set}");
    let text = "[Resolve]\nDNS=\nDNS=127.0.0.9\nDomains=\nDomains=corp.lsa\n";
    assert_eq!(machine.read(OWN), text);
    machine.holds_already(&mut client, "net_dns_modify", &servers).await;

    machine.sh("systemctl reset-failed systemd-resolved");
    machine
        .sh("systemctl stop systemd-resolved; rm -rf /run/systemd/resolve; systemctl start systemd-resolved");
    assert!(machine.holds(RESOLVES), "{}", machine.sh("resolvectl status"));

    let none = json!({"servers": [], "search": []});
    let set = client.envelope("net_dns_modify", none).await;
    assert_eq!(set["status"], "success", "{set}");
    assert!(!machine.holds(RESOLVES), "{}", machine.sh("resolvectl status"));
    machine.sh("systemctl stop systemd-resolved");
    machine.refuses(&mut client, "net_dns_modify", &servers, "RESOLVER_DOWN").await;
}
