//! Routes, addresses and name servers by each program that may own them, on a host where that program has one end of a cable.
//! The cable's other end lies in the host as well. What a program has taken over is flushed, and its own start has to bring it
//! back, as after a reboot. systemd-networkd alone and a plain resolv.conf have their stories on every host.
//!
//! resolvconf has none: Debian's systemd-resolved excludes it.

mod ifupdown;
mod netplan;
mod network_manager;
mod resolved;

use std::collections::BTreeSet;

use linux_sysadmin_tests::{Changing, Client, Reach};
use serde_json::{Value, json};

/// A cable, whose end `lsa0` takes no address of IPv6, a DNS server that knows one name, and one that knows none.
const CABLE: &str = "
set -e
cp -a /etc/resolv.conf /run/lsa-resolv.conf
ip link add lsa0 type veth peer name lsa1
ip link set lsa1 up
test ! -d /proc/sys/net/ipv6 || echo 1 > /proc/sys/net/ipv6/conf/lsa0/disable_ipv6
serve() {
    systemd-run --quiet --unit=$1 /usr/sbin/dnsmasq --keep-in-foreground --user=root --pid-file --conf-file=/dev/null \\
        --no-resolv --no-hosts --bind-interfaces $2 $3
}
serve lsa-dns --listen-address=127.0.0.9 --address=/db.lsa/198.19.7.9
serve lsa-dns-empty --listen-address=127.0.0.10
";

const SERVERS_ANSWER: &str = "dig +tries=1 +time=1 +short db.lsa @127.0.0.9 | grep -qx 198.19.7.9 &&
    dig +tries=1 +time=1 db.lsa @127.0.0.10 | grep -q 'status: REFUSED'";

/// Puts back everything that any of the stories does to the host. Without files of its own, netplan removes what it has made.
const CLEAN: &str = "
systemctl unmask --runtime NetworkManager-dispatcher
systemctl stop NetworkManager polkit systemd-networkd.socket systemd-networkd systemd-resolved lsa-dns lsa-dns-empty
ip link delete lsa0
rm -rf /etc/systemd/network/10-lsa.network /run/systemd/netif/links /etc/systemd/resolved.conf.d
rm -f /etc/NetworkManager/conf.d/lsa.conf /etc/NetworkManager/system-connections/lsa0.nmconnection
find /var/lib/NetworkManager -type f -delete
rm -rf /run/NetworkManager /etc/network/interfaces.d/lsa /run/network/ifstate*
rm -f /etc/netplan/50-lsa.yaml /etc/netplan/90-linux-sysadmin.yaml
netplan generate
rm -rf /run/NetworkManager /run/udev/rules.d/90-netplan.rules
rm -rf /run/systemd/system/netplan-* /run/systemd/system/systemd-networkd.service.wants
umount /usr/bin/udevadm
systemctl daemon-reload
systemctl reset-failed
test ! -e /run/lsa-resolv.conf || mv /run/lsa-resolv.conf /etc/resolv.conf
";

const HAS_BOTH: &str = "ip route show 10.99.0.0/16 | grep -q 'via 198.19.7.1 dev lsa0' && ip address show dev lsa0 | grep -q '198.19.8.2/24'";
const HAS_ROUTE: &str = "ip route show 10.99.0.0/16 | grep -q 'via 198.19.7.1 dev lsa0'";
const HAS_NEITHER: &str =
    "test -z \"$(ip route show 10.99.0.0/16)\" && ! ip address show dev lsa0 | grep -q '198.19.8.2/24'";

/// The name that the server knows is resolved as every program resolves it.
const RESOLVES: &str = "getent ahosts db.lsa | grep -q '^198.19.7.9 '";

/// A script that succeeds once systemd-networkd has configured the cable.
const CONFIGURED: &str = "grep -q '^ADMIN_STATE=configured' /run/systemd/netif/links/$(ip -oneline link show dev lsa0 | cut -d: -f1)";

fn route(action: &str) -> Value {
    json!({"action": action, "to": "10.99.0.0/16", "via": "198.19.7.1"})
}

fn address(action: &str) -> Value {
    json!({"action": action, "interface": "lsa0", "address": "198.19.8.2/24"})
}

/// An address that the kernel refuses once the owner has it in its file.
fn address_of_ipv6() -> Value {
    json!({"action": "add", "interface": "lsa0", "address": "2001:db8:7::2/64"})
}

/// Takes the host, has a script start the owner, and waits until it is up. A server that asks about critical changes only is
/// started as well.
async fn on(test: &str, owner: &str, is_up: &str) -> Option<(Changing, Client)> {
    let reach = Reach::Inside("stocked1");
    let machine = Changing::by(reach, test, &format!("{CABLE}{owner}"), CLEAN)?;
    machine.until(SERVERS_ANSWER);
    machine.until(is_up);
    let client = machine.serve_all_but_critical().await;
    Some((machine, client))
}

/// The lines of what the kernel has of the cable.
fn running(machine: &Changing) -> BTreeSet<String> {
    let text = machine.sh("ip -4 address show dev lsa0; ip -4 route show dev lsa0");
    text.lines().map(|line| line.trim().to_owned()).collect()
}

/// Makes a change, and says yes where that is asked: what systemd-networkd, netplan or NetworkManager keeps is critical, since a
/// mistake there cuts the machine off at the next start.
async fn agreed(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let answer = client.envelope(tool, arguments.clone()).await;
    if answer["status"] != "confirmation_required" {
        return answer;
    }
    let mut confirmed = arguments.clone();
    confirmed["confirmed"] = json!(true);
    client.envelope(tool, confirmed).await
}

/// Adds a route and an address. The kernel has them when the owner has taken them over.
async fn add_both(machine: &Changing, client: &mut Client, (owner, set_in): (&str, &str)) {
    for (tool, arguments, is_there) in
        [("net_routes_modify", route("add"), HAS_ROUTE), ("net_addresses_modify", address("add"), HAS_BOTH)]
    {
        machine.shows(client, tool, &arguments).await;
        let added = agreed(client, tool, &arguments).await;
        assert_eq!(added["status"], "success", "{added}");
        machine.nothing_is_left_behind();
        let data = &added["data"];
        assert_eq!((&data["owner"], &data["set_in"]), (&json!(owner), &json!(set_in)), "{added}");
        machine.until(is_there);
        machine.holds_already(client, tool, &arguments).await;
    }
}

async fn remove_both(machine: &Changing, client: &mut Client) {
    for (tool, arguments) in
        [("net_addresses_modify", address("remove")), ("net_routes_modify", route("remove"))]
    {
        let removed = agreed(client, tool, &arguments).await;
        assert_eq!(removed["status"], "success", "{removed}");
        assert!(removed["data"]["set_in"].is_string(), "{removed}");
        machine.nothing_is_left_behind();
    }
    machine.until(HAS_NEITHER);
}

/// Sets name servers, and waits until they are so.
async fn set_servers(
    machine: &Changing,
    client: &mut Client,
    arguments: &Value,
    (owner, set_in): (&str, &str),
    is_so: &str,
) {
    machine.shows(client, "net_dns_modify", arguments).await;
    let set = agreed(client, "net_dns_modify", arguments).await;
    assert_eq!(set["status"], "success", "{set}");
    machine.nothing_is_left_behind();
    let data = &set["data"];
    assert_eq!((&data["owner"], &data["set_in"]), (&json!(owner), &json!(set_in)), "{set}");
    machine.until(is_so);
    machine.holds_already(client, "net_dns_modify", arguments).await;
}

/// Makes a change, one step of which fails, so that the others are undone.
async fn is_undone(machine: &Changing, client: &mut Client, tool: &str, arguments: Value) {
    let undone = agreed(client, tool, &arguments).await;
    assert_eq!((&undone["status"], &undone["not_undone"]), (&json!("error"), &json!([])), "{undone}");
    assert!(undone["failed_step"].is_u64(), "{undone}");
    machine.nothing_is_left_behind();
}
