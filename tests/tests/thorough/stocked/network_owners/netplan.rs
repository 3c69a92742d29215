//! netplan, which writes the files of systemd-networkd anew from its own at each start. systemd-resolved has its name servers.

use serde_json::json;

use super::{
    CONFIGURED, HAS_BOTH, HAS_NEITHER, HAS_ROUTE, RESOLVES, add_both, address_of_ipv6, agreed, is_undone, on,
    remove_both, route, running, set_servers,
};

const FILE: &str = "/etc/netplan/50-lsa.yaml";
const OWN: &str = "/etc/netplan/90-linux-sysadmin.yaml";

/// No udev runs in a container, since /sys is read-only there. `netplan apply` calls udevadm, and fails where that does.
const START: &str = "
mount --bind /usr/bin/true /usr/bin/udevadm
ln -sf /run/systemd/resolve/stub-resolv.conf /etc/resolv.conf
cat > /etc/netplan/50-lsa.yaml <<'END'
# ours
network:
  version: 2
  renderer: networkd
  ethernets:
    lsa0:
      link-local: []
      addresses:
        - 198.19.7.2/24
END
chmod 600 /etc/netplan/50-lsa.yaml
netplan generate
systemctl start systemd-resolved systemd-networkd
";

/// What netplan writes lies below /run, which a reboot empties.
const REBOOT: &str = "systemctl stop systemd-networkd.socket systemd-networkd systemd-resolved
    ip address flush dev lsa0; ip route flush dev lsa0; rm -rf /run/systemd/network /run/systemd/netif/links
    netplan generate && systemctl start systemd-resolved systemd-networkd";

const HAS_SERVERS: &str = "resolvectl dns lsa0 | grep -q ' 127.0.0.9 198.19.7.98$' && resolvectl domain lsa0 | grep -q ' corp.lsa$'";

#[tokio::test]
async fn netplan_has_what_was_set_also_after_its_files_are_written_anew() {
    let test = "netplan_has_what_was_set_also_after_its_files_are_written_anew";
    let Some((machine, mut client)) = on(test, START, CONFIGURED).await else { return };
    let resolver = ("systemd-resolved, by netplan (systemd-networkd)", FILE);
    let (before, kernel) = (machine.read(FILE), running(&machine));
    add_both(&machine, &mut client, ("netplan (systemd-networkd)", FILE)).await;
    let added = machine.read(FILE);
    let lines =
        "        - 198.19.8.2/24\n      routes:\n        - to: 10.99.0.0/16\n          via: 198.19.7.1\n";
    assert_eq!(added, format!("{before}{lines}"));
    is_undone(&machine, &mut client, "net_addresses_modify", address_of_ipv6()).await;
    assert_eq!(machine.read(FILE), added);

    // No link has servers yet, so that the interface is named.
    let servers =
        json!({"interface": "lsa0", "servers": ["127.0.0.9", "198.19.7.98"], "search": ["corp.lsa"]});
    set_servers(&machine, &mut client, &servers, resolver, HAS_SERVERS).await;
    let set = machine.read(FILE);
    let breaks = json!({"interface": "lsa0", "servers": ["127.0.0.9"], "check": "db.lsa.invalid"});
    is_undone(&machine, &mut client, "net_dns_modify", breaks).await;
    assert_eq!(machine.read(FILE), set);
    machine.until(HAS_SERVERS);

    machine.sh(REBOOT);
    machine.until(CONFIGURED);
    machine.until(HAS_BOTH);
    machine.until(HAS_SERVERS);
    machine.until(RESOLVES);

    let none = json!({"interface": "lsa0", "servers": [], "search": []});
    let is_so = "! resolvectl dns lsa0 | grep -q 127.0.0.9";
    set_servers(&machine, &mut client, &none, resolver, is_so).await;
    machine.until(CONFIGURED);
    remove_both(&machine, &mut client).await;
    assert_eq!(machine.read(FILE), before);
    assert_eq!(running(&machine), kernel);

    // A file that a program writes, as cloud-init does, is left alone.
    machine
        .sh(&format!("sed -i '1s/.*/# This file is generated from information of the datasource./' {FILE}"));
    let generated = machine.read(FILE);
    let address = json!({"action": "remove", "interface": "lsa0", "address": "198.19.7.2/24"});
    machine.refuses(&mut client, "net_addresses_modify", &address, "GENERATED_FILE").await;
    for (action, is_so) in [("add", HAS_ROUTE), ("remove", HAS_NEITHER), ("add", HAS_ROUTE)] {
        let done = agreed(&mut client, "net_routes_modify", &route(action)).await;
        assert_eq!((&done["status"], &done["data"]["set_in"]), (&json!("success"), &json!(OWN)), "{done}");
        machine.until(is_so);
    }
    machine.sh(REBOOT);
    machine.until(HAS_ROUTE);
    assert_eq!(machine.read(FILE), generated);
}
