//! ifupdown, which keeps paragraphs in files that a person edits. Nobody writes resolv.conf beside it.

use serde_json::json;

use super::{HAS_BOTH, RESOLVES, add_both, address_of_ipv6, is_undone, on, remove_both, running};

const FILE: &str = "/etc/network/interfaces.d/lsa";

const START: &str = "
printf '# ours\\niface lsa0 inet static\\n    address 198.19.7.2/24\\n' > /etc/network/interfaces.d/lsa
ifup lsa0
printf '# ours\\nnameserver 127.0.0.9\\noptions timeout:1 attempts:1\\n' > /etc/resolv.conf
";

const REBOOT: &str =
    "ifdown lsa0; ip address flush dev lsa0; ip route flush dev lsa0; rm -f /run/network/ifstate*; ifup lsa0";

#[tokio::test]
async fn ifupdown_has_what_was_set_also_after_the_interface_is_brought_up_anew() {
    let test = "ifupdown_has_what_was_set_also_after_the_interface_is_brought_up_anew";
    let is_up = "grep -qx lsa0=lsa0 /run/network/ifstate";
    let Some((machine, mut client)) = on(test, START, is_up).await else { return };
    let (before, kernel) = (machine.read(FILE), running(&machine));
    let resolvers = machine.read("/etc/resolv.conf");
    add_both(&machine, &mut client, ("ifupdown", FILE)).await;
    let added = machine.read(FILE);
    let route = "    up ip route replace 10.99.0.0/16 via 198.19.7.1 dev $IFACE proto static\n";
    assert!(
        added.starts_with(&before) && added.contains(route) && added.contains("198.19.8.2/24"),
        "{added}"
    );
    is_undone(&machine, &mut client, "net_addresses_modify", address_of_ipv6()).await;
    assert_eq!(machine.read(FILE), added);

    let servers = json!({"servers": ["127.0.0.9", "198.19.7.98"], "check": "db.lsa"});
    let set = client.envelope("net_dns_modify", servers).await;
    assert_eq!((&set["status"], &set["data"]["owner"]), (&json!("success"), &json!("nobody")), "{set}");
    let servers = json!({"servers": ["127.0.0.9"], "interface": "lsa0"});
    machine.refuses(&mut client, "net_dns_modify", &servers, "INTERFACE_NOT_USED").await;
    let kernels = json!({"action": "remove", "to": "198.19.7.0/24"});
    machine.refuses(&mut client, "net_routes_modify", &kernels, "KERNEL_ROUTE").await;

    machine.sh(REBOOT);
    assert!(machine.holds(HAS_BOTH), "{:?}", running(&machine));
    assert!(machine.holds(RESOLVES), "{}", machine.read("/etc/resolv.conf"));

    remove_both(&machine, &mut client).await;
    let set = client.envelope("net_dns_modify", json!({"servers": ["127.0.0.9"]})).await;
    assert_eq!(set["status"], "success", "{set}");
    assert_eq!((machine.read(FILE), machine.read("/etc/resolv.conf")), (before, resolvers));
    assert_eq!(running(&machine), kernel);
}
