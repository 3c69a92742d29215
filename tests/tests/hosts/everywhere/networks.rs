//! Tests on a real host that routes, addresses and name servers are changed both now and for the next start, by the owner that
//! the interface has. systemd-networkd has one end of a cable, whose other end lies in the host as well.

use linux_sysadmin_tests::{Changing, Client, way};
use serde_json::{Value, json};

const FILE: &str = "/etc/systemd/network/10-lsa.network";

const NETWORKD: &str = r"
set -e
ip link add lsa0 type veth peer name lsa1
ip link set lsa1 up
printf '# ours\n[Match]\nName=lsa0\n\n[Network]\nAddress=198.19.7.2/24\nLinkLocalAddressing=no\n' > /etc/systemd/network/10-lsa.network
systemctl start systemd-networkd
";

const CONFIGURED: &str = "grep -q '^ADMIN_STATE=configured' /run/systemd/netif/links/$(ip -oneline link show dev lsa0 | cut -d: -f1)";

const CLEAN: &str = "
systemctl stop systemd-networkd.socket systemd-networkd
ip link delete lsa0
rm -rf /etc/systemd/network/10-lsa.network /run/systemd/netif/links
test ! -e /run/lsa-resolv.conf || mv /run/lsa-resolv.conf /etc/resolv.conf
";

fn route(action: &str) -> Value {
    json!({"action": action, "to": "10.99.0.0/16", "via": "198.19.7.1"})
}

fn address(action: &str) -> Value {
    json!({"action": action, "interface": "lsa0", "address": "198.19.8.2/24"})
}

/// Makes a change of an owner's file. It is critical, since a mistake there cuts the machine off at the next start.
async fn confirmed(client: &mut Client, tool: &str, mut arguments: Value) -> Value {
    let asked = client.envelope(tool, arguments.clone()).await;
    assert_eq!(
        (&asked["status"], &asked["risk_level"]),
        (&json!("confirmation_required"), &json!("critical"))
    );
    arguments["confirmed"] = json!(true);
    client.envelope(tool, arguments).await
}

#[tokio::test]
async fn routes_and_addresses_are_there_now_and_after_their_owner_starts_anew() {
    let test = "routes_and_addresses_are_there_now_and_after_their_owner_starts_anew";
    let Some(machine) = Changing::by(way(), test, NETWORKD, CLEAN) else { return };
    machine.until(CONFIGURED);
    let mut client = machine.serve_all_but_critical().await;
    let before = machine.read(FILE);
    let running = machine.sh("ip -4 address show dev lsa0; ip -4 route show");
    for (tool, arguments) in [("net_routes_modify", route("add")), ("net_addresses_modify", address("add"))] {
        machine.shows(&mut client, tool, &arguments).await;
        let added = confirmed(&mut client, tool, arguments.clone()).await;
        assert_eq!(added["status"], "success", "{added}");
        machine.nothing_is_left_behind();
        let data = &added["data"];
        assert_eq!((&data["owner"], &data["set_in"]), (&json!("systemd-networkd"), &json!(FILE)), "{added}");
        machine.holds_already(&mut client, tool, &arguments).await;
    }
    let has_both = "ip route show 10.99.0.0/16 | grep -q 'via 198.19.7.1 dev lsa0' && ip address show dev lsa0 | grep -q '198.19.8.2/24'";
    assert!(machine.holds(has_both), "{}", machine.sh("ip -4 route show; ip -4 address show dev lsa0"));
    // What the kernel has is forgotten, and the owner's own start brings it back.
    machine.sh("systemctl stop systemd-networkd.socket systemd-networkd; ip address flush dev lsa0; systemctl start systemd-networkd");
    machine.until(has_both);
    machine.until(CONFIGURED);
    for (tool, arguments) in
        [("net_addresses_modify", address("remove")), ("net_routes_modify", route("remove"))]
    {
        let removed = confirmed(&mut client, tool, arguments).await;
        assert_eq!(removed["status"], "success", "{removed}");
    }
    assert_eq!(machine.read(FILE), before);
    let words = |text: &str| {
        text.lines().map(str::trim).map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
    };
    let plain = |text: String| words(&text.replace(" proto static", ""));
    assert_eq!(plain(machine.sh("ip -4 address show dev lsa0; ip -4 route show")), plain(running));

    for (tool, arguments, code) in [
        (
            "net_routes_modify",
            json!({"action": "add", "to": "any", "via": "203.0.113.1"}),
            "GATEWAY_UNREACHABLE",
        ),
        (
            "net_routes_modify",
            json!({"action": "add", "to": "10.99.0.1/16", "via": "198.19.7.1"}),
            "INVALID_NETWORK",
        ),
        ("net_routes_modify", json!({"action": "remove", "to": "198.19.7.0/24"}), "KERNEL_ROUTE"),
        (
            "net_addresses_modify",
            json!({"action": "add", "interface": "lsa9", "address": "198.19.8.2/24"}),
            "INTERFACE_NOT_FOUND",
        ),
        (
            "net_addresses_modify",
            json!({"action": "add", "interface": "lsa1", "address": "198.19.7.2/24"}),
            "ADDRESS_IN_USE",
        ),
    ] {
        machine.refuses(&mut client, tool, &arguments, code).await;
    }
}

#[tokio::test]
async fn name_servers_are_set_and_put_back_where_a_name_breaks() {
    let test = "name_servers_are_set_and_put_back_where_a_name_breaks";
    let prepare = "cp -a /etc/resolv.conf /run/lsa-resolv.conf
         printf '# ours\\nnameserver 127.0.0.1\\noptions timeout:1 attempts:1\\n' > /etc/resolv.conf";
    let Some(machine) = Changing::by(way(), test, prepare, CLEAN) else { return };
    let mut client = machine.serve_all_but_critical().await;
    let before = machine.read("/etc/resolv.conf");
    // Names in /etc/hosts resolve with any server, and no server knows this one.
    let breaks = json!({"servers": ["198.19.7.98"], "check": "db.lsa.invalid"});
    let undone = client.envelope("net_dns_modify", breaks).await;
    assert_eq!((&undone["status"], &undone["failed_step"]), (&json!("error"), &json!(1)), "{undone}");
    assert_eq!(machine.read("/etc/resolv.conf"), before);

    let arguments = json!({"servers": ["198.19.7.98", "127.0.0.1"], "search": ["corp.lsa"]});
    let preview = machine.shows(&mut client, "net_dns_modify", &arguments).await;
    let set = machine.does(&mut client, "net_dns_modify", &arguments, &preview).await;
    assert_eq!(set["data"]["owner"], "nobody", "{set}");
    let text = "# ours\nnameserver 198.19.7.98\nnameserver 127.0.0.1\noptions timeout:1 attempts:1\nsearch corp.lsa\n";
    assert_eq!(machine.read("/etc/resolv.conf"), text);
    machine.holds_already(&mut client, "net_dns_modify", &arguments).await;

    let checked = json!({"servers": ["127.0.0.1"], "check": "localhost"});
    let set = client.envelope("net_dns_modify", checked).await;
    assert_eq!(set["status"], "success", "{set}");

    machine.sh("rm /etc/resolv.conf; ln -s /run/lsa-nowhere /etc/resolv.conf");
    let servers = json!({"servers": ["127.0.0.1"]});
    machine.refuses(&mut client, "net_dns_modify", &servers, "RESOLV_CONF_IS_MISSING").await;
    machine.sh("rm /etc/resolv.conf");
}
