//! The tools that change the network, on the recording of a network namespace. The two files below `data` were recorded, of
//! iproute2 6.1.0 and of NetworkManager 1.42.4. All other texts are written by hand, in the formats of Debian 12: iproute2's
//! ss, systemd 252, netplan.io 0.106, ifupdown 0.8.41, resolvconf 1.91 and cloud-init 22.4.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::testkit::FakeTarget;
use linux_sysadmin_sdk::{Change, Command, DurationCategory, Problem, Risk, Step};
use module_network::module;
use serde_json::{Value, json};

const NAMESPACE: &str = include_str!("data/namespace.txt");
const GUARD: u32 = 60;

/// A session of sshd for root, written by hand in the format of ss.
const SSHD: &str = "tcp LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:((\"sshd\",pid=400,fd=3))\n\
    tcp ESTAB 0 0 192.0.2.10:22 198.51.100.20:50000 users:((\"sshd\",pid=502,fd=4),(\"sshd\",pid=500,fd=4))\n";

const DEFAULT: &str = "it touches the default route of IPv4, by which this machine reaches other networks";
const SESSION: &str =
    "it touches the way of the session from 198.51.100.20 to 192.0.2.10, which may be the one in use";

/// A machine with a session, whose eth0 nobody configures.
fn machine() -> FakeTarget {
    machine_with(NAMESPACE)
}

fn machine_with(namespace: &str) -> FakeTarget {
    FakeTarget::new()
        .transcript(namespace)
        .answer(&["ss", "-Htunap"], 0, SSHD, "")
        .without_program("nmcli")
        .without_program("dig")
}

/// eth0 is systemd-networkd's.
fn networkd(file: &str) -> FakeTarget {
    let text = format!(
        "# This is private data. Do not parse.\nADMIN_STATE=configured\nOPER_STATE=routable\nNETWORK_FILE={file}\n"
    );
    machine().file("/run/systemd/netif/links/2", text)
}

const NETWORK_FILE: &str = "/etc/systemd/network/10-eth0.network";
const NETWORK: &str =
    "[Match]\nName=eth0\n\n[Network]\nAddress=192.0.2.10/24\nGateway=192.0.2.1\nDNS=192.0.2.53\n";

const NETPLAN_FILE: &str = "/etc/netplan/01-office.yaml";
const NETPLAN: &str = "network:\n  version: 2\n  ethernets:\n    eth0:\n      addresses: [192.0.2.10/24]\n      nameservers:\n        addresses: [192.0.2.53]\n      routes:\n        - to: default\n          via: 192.0.2.1\n";

const INTERFACES_FILE: &str = "/etc/network/interfaces";
const INTERFACES: &str = "auto lo eth0\niface lo inet loopback\n\niface eth0 inet static\n\taddress 192.0.2.10/24\n\tgateway 192.0.2.1\n\tdns-nameservers 192.0.2.53\n";

fn on_networkd() -> FakeTarget {
    networkd(NETWORK_FILE).file(NETWORK_FILE, NETWORK)
}

fn on_netplan() -> FakeTarget {
    networkd("/run/systemd/network/10-netplan-eth0.network").file(NETPLAN_FILE, NETPLAN)
}

fn on_ifupdown() -> FakeTarget {
    machine().file("/run/network/ifstate", "lo=lo\neth0=eth0\n").file(INTERFACES_FILE, INTERFACES)
}

const NETWORK_MANAGER: &str = include_str!("data/network_manager.txt");
const UUID: &str = "07793cc2-a945-4650-a3fc-62445466a23f";

fn on_network_manager() -> FakeTarget {
    machine().transcript(NETWORK_MANAGER)
}

fn root(program: &str, words: &str) -> Command {
    Command::new(program).args(words.split(' ')).as_root()
}

fn ip(words: &str) -> Command {
    root("ip", words)
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

/// Makes a change. Gives the answer, the notes and the plan.
fn done(target: FakeTarget, tool: &str, arguments: Value) -> (Value, Vec<String>, Change) {
    let plans = target.plans();
    let (data, notes) = call(target, tool, arguments).unwrap();
    let [plan] = plans.take().try_into().unwrap();
    (data, notes, plan)
}

/// Makes a call that has nothing to do.
fn unchanged(target: FakeTarget, tool: &str, arguments: Value) -> Vec<String> {
    let plans = target.plans();
    let (_, notes) = call(target, tool, arguments).unwrap();
    assert!(plans.take().is_empty());
    notes
}

fn code(target: FakeTarget, tool: &str, arguments: Value) -> String {
    let plans = target.plans();
    let answer = call(target, tool, arguments.clone());
    assert!(plans.take().is_empty(), "{arguments}");
    match answer {
        Err(problem) => problem.code,
        Ok((data, notes)) => panic!("{arguments}: {data} {notes:?}"),
    }
}

fn branch() -> Value {
    json!({"action": "add", "to": "10.9.0.0/16", "via": "192.0.2.7"})
}

#[test]
fn a_route_is_added_where_each_owner_keeps_it() {
    let written = |path: &str, text: String| Step::write(path, text.into_bytes());
    let section = "\n[Route]\nDestination=10.9.0.0/16\nGateway=192.0.2.7\n";
    let item = "        - to: 10.9.0.0/16\n          via: 192.0.2.7\n";
    let line = "\tup ip route replace 10.9.0.0/16 via 192.0.2.7 dev $IFACE proto static\n";
    let nmcli = |sign: &str| {
        let words =
            ["connection", "modify", "uuid", UUID, &format!("{sign}ipv4.routes"), "10.9.0.0/16 192.0.2.7"];
        Command::new("nmcli").args(words).as_root()
    };
    let generate = || root("netplan", "generate");
    for (target, owner, set_in, steps, after_undo) in [
        (
            on_networkd(),
            json!("systemd-networkd"),
            json!(NETWORK_FILE),
            vec![written(NETWORK_FILE, format!("{NETWORK}{section}"))],
            None,
        ),
        (
            on_netplan(),
            json!("netplan (systemd-networkd)"),
            json!(NETPLAN_FILE),
            vec![written(NETPLAN_FILE, format!("{NETPLAN}{item}")), Step::run(generate()).uninterruptible()],
            Some(generate()),
        ),
        (
            on_ifupdown(),
            json!("ifupdown"),
            json!(INTERFACES_FILE),
            vec![written(INTERFACES_FILE, format!("{INTERFACES}{line}"))],
            None,
        ),
        (
            on_network_manager(),
            json!("NetworkManager"),
            json!("connection \"Wired 1\""),
            vec![
                Step::run(nmcli("+")).uninterruptible().undo(nmcli("-")),
                Step::run(root("nmcli", "device reapply eth0")).uninterruptible(),
            ],
            Some(root("nmcli", "device reapply eth0")),
        ),
        (machine(), Value::Null, Value::Null, vec![], None),
    ] {
        let (data, notes, plan) = done(target, "net_routes_modify", branch());
        assert_eq!((&data["owner"], &data["set_in"]), (&owner, &set_in));
        assert_eq!(data["setting"], "10.9.0.0/16 via 192.0.2.7 dev eth0");
        let route = "10.9.0.0/16 via 192.0.2.7 dev eth0 proto static";
        let add = Step::run(ip(&format!("route add {route}"))).undo(ip(&format!("route del {route}")));
        let change = steps
            .into_iter()
            .fold(Change::new("Add the route 10.9.0.0/16 via 192.0.2.7 dev eth0"), Change::step);
        let change = after_undo.into_iter().fold(change, Change::after_undo);
        // NetworkManager applies it itself, and with it whatever else its connection says by now.
        let change = if owner == "NetworkManager" { change.guard(GUARD) } else { change.step(add) };
        assert_eq!(plan, change, "{owner}");
        let lasts = "no program configures eth0 at boot: it is gone after a restart";
        assert_eq!(notes.iter().any(|note| note == lasts), owner.is_null(), "{notes:?}");
    }
}

#[test]
fn a_generated_file_is_never_edited() {
    let cloud = format!(
        "# This file is generated from information provided by the datasource.  Changes\n# to it will not persist across an instance reboot.\n{NETPLAN}"
    );
    let path = "/etc/netplan/50-cloud-init.yaml";
    let target = || networkd("/run/systemd/network/10-netplan-eth0.network").file(path, cloud.as_str());
    let (data, _, plan) = done(target(), "net_routes_modify", branch());
    let own = "/etc/netplan/90-linux-sysadmin.yaml";
    assert_eq!(data["set_in"], own);
    let text = "network:\n  version: 2\n  ethernets:\n    eth0:\n      routes:\n        - to: 10.9.0.0/16\n          via: 192.0.2.7\n";
    assert_eq!(plan.steps()[0], Step::write(own, text).mode(0o600));
    let remove = json!({"action": "remove", "to": "default"});
    assert_eq!(code(target(), "net_routes_modify", remove), "GENERATED_FILE");
    // What a package or a program brings for systemd-networkd is left alone likewise.
    let vendor = "/usr/lib/systemd/network/80-dhcp.network";
    let target = networkd(vendor).file(vendor, "[Match]\nType=ether\n\n[Network]\nDHCP=yes\n");
    let (_, _, plan) = done(target, "net_routes_modify", branch());
    let directory = "/etc/systemd/network/80-dhcp.network.d";
    let text = "[Route]\nDestination=10.9.0.0/16\nGateway=192.0.2.7\n";
    let expected = [
        Step::make_directory(directory, 0o755),
        Step::write(format!("{directory}/90-linux-sysadmin.conf"), text).mode(0o644),
    ];
    assert_eq!(plan.steps()[..2], expected);
}

#[test]
fn a_file_that_a_program_writes_in_the_place_of_a_persons_is_left_alone_as_well() {
    let drop_in = "/etc/systemd/network/10-eth0.network.d";
    let target = networkd(NETWORK_FILE).file(NETWORK_FILE, format!("# Managed by Puppet\n{NETWORK}"));
    let (data, _, plan) = done(target, "net_routes_modify", branch());
    assert_eq!(data["set_in"], format!("{drop_in}/90-linux-sysadmin.conf"));
    assert_eq!(plan.steps()[0], Step::make_directory(drop_in, 0o755));
    // ifupdown has no files beside those.
    let text = format!("# This file is generated from information provided by the datasource.\n{INTERFACES}");
    let target =
        || machine().file("/run/network/ifstate", "lo=lo\neth0=eth0\n").file(INTERFACES_FILE, text.as_str());
    let address = json!({"action": "add", "interface": "eth0", "address": "192.0.2.11/24"});
    for (tool, arguments) in [
        ("net_routes_modify", branch()),
        ("net_routes_modify", json!({"action": "remove", "to": "default"})),
        ("net_addresses_modify", address),
    ] {
        assert_eq!(code(target(), tool, arguments.clone()), "GENERATED_FILE", "{arguments}");
    }
    let mark = "# Dynamic resolv.conf(5) file for glibc resolver(3) generated by resolvconf(8)\nnameserver 192.0.2.53\n";
    let target = resolv(target(), "/run/resolvconf/resolv.conf", Some(mark));
    assert_eq!(code(target, "net_dns_modify", servers()), "GENERATED_FILE");
}

#[test]
fn a_broken_file_of_netplan_is_not_the_one_that_has_the_route() {
    let target = on_netplan().file("/etc/netplan/99-broken.yaml", "network: [\n");
    let (data, notes, plan) = done(target, "net_routes_modify", branch());
    assert_eq!(data["set_in"], NETPLAN_FILE);
    assert!(notes.is_empty(), "{notes:?}");
    // netplan refuses the broken file, and the host undoes the rest.
    assert_eq!(plan.steps()[1], Step::run(root("netplan", "generate")).uninterruptible());
}

#[test]
fn what_may_cut_the_connection_is_critical_and_has_a_guard() {
    let default = "0.0.0.0/0 via 192.0.2.1 dev eth0 src 192.0.2.10 proto dhcp metric 100";
    let (data, notes, plan) = done(machine(), "net_routes_modify", json!({"action": "remove", "to": "any"}));
    assert_eq!(data["setting"], "default via 192.0.2.1 dev eth0 metric 100");
    assert!(notes[0].contains("next lease"), "{notes:?}");
    let expected = Change::new("Remove the route default via 192.0.2.1 dev eth0 metric 100")
        .step(Step::run(ip(&format!("route del {default}"))).undo(ip(&format!("route add {default}"))))
        .warning(DEFAULT)
        .warning(SESSION)
        .risk(Risk::Critical)
        .guard(GUARD);
    assert_eq!(plan, expected);

    let replace = json!({"action": "replace", "to": "default", "via": "192.0.2.2"});
    let (data, _, plan) = done(on_networkd(), "net_routes_modify", replace);
    assert_eq!(data["was"], "default via 192.0.2.1 dev eth0 metric 100");
    let new = "0.0.0.0/0 via 192.0.2.2 dev eth0 src 192.0.2.10 proto static metric 100";
    let text = NETWORK.replace("Gateway=192.0.2.1\n", "")
        + "\n[Route]\nDestination=0.0.0.0/0\nGateway=192.0.2.2\nPreferredSource=192.0.2.10\nMetric=100\n";
    let expected = Change::new("Replace the route default via 192.0.2.1 dev eth0 metric 100 by default via 192.0.2.2 dev eth0 metric 100")
        .step(Step::write(NETWORK_FILE, text))
        .step(Step::run(ip(&format!("route replace {new}"))).undo(ip(&format!("route replace {default}"))))
        .warning(DEFAULT)
        .warning(SESSION)
        .risk(Risk::Critical)
        .guard(GUARD);
    assert_eq!(plan, expected);

    // A narrower network that holds the other end of the session.
    let to = json!({"action": "add", "to": "198.51.100.0/24", "via": "192.0.2.7"});
    let (_, _, plan) = done(machine(), "net_routes_modify", to);
    let route = "198.51.100.0/24 via 192.0.2.7 dev eth0 proto static";
    let expected = Change::new("Add the route 198.51.100.0/24 via 192.0.2.7 dev eth0")
        .step(Step::run(ip(&format!("route add {route}"))).undo(ip(&format!("route del {route}"))))
        .warning(SESSION)
        .risk(Risk::Critical)
        .guard(GUARD);
    assert_eq!(plan, expected);

    // One half of all addresses, in which the other end of the session is. The default route itself stays.
    for (to, is_critical) in [("128.0.0.0/1", true), ("0.0.0.0/1", false)] {
        let half = json!({"action": "add", "to": to, "via": "192.0.2.7"});
        let (_, _, plan) = done(machine(), "net_routes_modify", half);
        assert_eq!(format!("{plan:?}").contains("Critical"), is_critical, "{plan:?}");
    }

    // Nobody knows which sessions there are. A host on the machine itself takes the loss of any address for that of the way.
    let listening = "tcp LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:((\"sshd\",pid=400,fd=3))\n";
    for (sockets, client, guards_removals) in [
        (None, None, true),
        (Some(listening), Some("198.51.100.20"), true),
        (Some(SSHD), Some("198.51.100.21"), true),
        (Some(listening), None, false),
    ] {
        let target = || {
            let mut target = FakeTarget::new().transcript(NAMESPACE).without_program("nmcli");
            let extra = client.map(|client| ("ssh_client".to_owned(), client.to_owned()));
            target.distro.extra.extend(extra);
            match sockets {
                Some(text) => target.answer(&["ss", "-Htunap"], 0, text, ""),
                None => target.without_program("ss"),
            }
        };
        let route = "10.9.0.0/16 via 192.0.2.7 dev eth0 proto static";
        let added = Change::new("Add the route 10.9.0.0/16 via 192.0.2.7 dev eth0")
            .step(Step::run(ip(&format!("route add {route}"))).undo(ip(&format!("route del {route}"))));
        let removed = Change::new("Remove the address 10.8.0.1/16 from br0")
            .warning("these routes need it: 172.16.0.0/12 via 10.8.0.2 dev br0")
            .step(
                Step::run(ip("address del 10.8.0.1/16 dev br0"))
                    .undo(ip("address replace 10.8.0.1/16 dev br0"))
                    .undo(ip("route replace 172.16.0.0/12 via 10.8.0.2 dev br0 onlink")),
            );
        let address = json!({"action": "remove", "interface": "br0", "address": "10.8.0.1/16"});
        let removed = if guards_removals { removed.guard(GUARD) } else { removed };
        for (tool, arguments, expected) in
            [("net_routes_modify", branch(), added.guard(GUARD)), ("net_addresses_modify", address, removed)]
        {
            let (_, _, plan) = done(target(), tool, arguments);
            assert_eq!(plan, expected, "{tool} {sockets:?} {client:?}");
        }
    }
}

#[test]
fn what_is_so_already_is_said_and_only_what_is_missing_is_done() {
    // The running route is a daemon's, and the file hasn't got it.
    let add = json!({"action": "add", "to": "172.16.0.0/12", "via": "10.8.0.2", "interface": "br0"});
    let notes = unchanged(machine(), "net_routes_modify", add);
    assert!(notes[0].contains("already"), "{notes:?}");
    let default = json!({"action": "add", "to": "default", "via": "192.0.2.1", "metric": 100});
    let notes = unchanged(on_networkd(), "net_routes_modify", default.clone());
    assert!(notes[0].contains("already"), "{notes:?}");
    let bare = NETWORK.replace("Gateway=192.0.2.1\n", "");
    let target = networkd(NETWORK_FILE).file(NETWORK_FILE, bare.as_str());
    let (_, notes, plan) = done(target, "net_routes_modify", default);
    assert!(
        notes[0].contains("wasn't set for the next start") || notes[0].contains("not set for the next start"),
        "{notes:?}"
    );
    let text = format!("{bare}\n[Route]\nDestination=0.0.0.0/0\nGateway=192.0.2.1\nMetric=100\n");
    assert_eq!(plan.steps(), [Step::write(NETWORK_FILE, text)]);
    // A route that is set, and isn't there.
    let set = format!("{NETWORK}\n[Route]\nDestination=10.9.0.0/16\nGateway=192.0.2.7\n");
    let target = || networkd(NETWORK_FILE).file(NETWORK_FILE, set.as_str());
    let (data, notes, plan) = done(target(), "net_routes_modify", branch());
    assert!(notes[0].contains("was set for the next start already"), "{notes:?}");
    assert_eq!((plan.steps().len(), &data["set_in"]), (1, &json!(NETWORK_FILE)));
    let mut remove = branch();
    remove["action"] = json!("remove");
    let (_, notes, plan) = done(target(), "net_routes_modify", remove.clone());
    assert!(notes[0].contains("wasn't there"), "{notes:?}");
    assert_eq!(plan.steps(), [Step::write(NETWORK_FILE, NETWORK)]);
    let notes = unchanged(on_networkd(), "net_routes_modify", remove);
    assert!(notes[0].contains("no such route"), "{notes:?}");
}

#[test]
fn bad_routes_are_refused() {
    for (arguments, expected) in [
        (json!({"action": "add", "to": "10.9.0.1/16", "via": "192.0.2.7"}), "INVALID_NETWORK"),
        (json!({"action": "add", "to": "-x", "via": "192.0.2.7"}), "INVALID_NETWORK"),
        (json!({"action": "add", "to": "ff02::/16", "via": "2001:db8:1::1"}), "INVALID_NETWORK"),
        (json!({"action": "add", "to": "10.9.0.0/16", "via": "2001:db8:1::1"}), "MIXED_FAMILIES"),
        (json!({"action": "add", "to": "::/0", "via": "192.0.2.1"}), "MIXED_FAMILIES"),
        (json!({"action": "add", "to": "10.9.0.0/16", "via": "gw"}), "INVALID_ADDRESS"),
        (json!({"action": "add", "to": "10.9.0.0/16"}), "INTERFACE_NOT_GIVEN"),
        (json!({"action": "add", "to": "10.9.0.0/16", "via": "203.0.113.1"}), "GATEWAY_UNREACHABLE"),
        (
            json!({"action": "add", "to": "10.9.0.0/16", "via": "10.8.0.9", "interface": "eth0"}),
            "GATEWAY_UNREACHABLE",
        ),
        (json!({"action": "add", "to": "10.9.0.0/16", "via": "192.0.2.10"}), "GATEWAY_IS_OWN"),
        (json!({"action": "add", "to": "10.9.0.0/16", "interface": "eth9"}), "INTERFACE_NOT_FOUND"),
        (json!({"action": "add", "to": "10.9.0.0/16", "interface": "-all"}), "INVALID_INTERFACE"),
        (json!({"action": "add", "to": "10.9.0.0/16", "interface": "tap0"}), "INTERFACE_IS_PORT"),
        (json!({"action": "add", "to": "10.9.0.0/16", "interface": "macv0"}), "INTERFACE_DOWN"),
        (json!({"action": "add", "to": "10.9.0.0/16", "via": "192.0.2.7", "metric": -1}), "INVALID_NUMBER"),
        (json!({"action": "add", "to": "10.9.0.0/16", "via": "192.0.2.7", "table": 255}), "INVALID_NUMBER"),
        (json!({"action": "add", "to": "default", "via": "192.0.2.7", "metric": 100}), "ROUTE_EXISTS"),
        (json!({"action": "remove", "to": "198.18.0.0/15"}), "ROUTE_NOT_SIMPLE"),
        (json!({"action": "remove", "to": "192.0.2.0/24"}), "KERNEL_ROUTE"),
        (json!({"action": "replace", "to": "10.99.0.0/16", "via": "192.0.2.7"}), "ROUTE_NOT_FOUND"),
    ] {
        assert_eq!(code(machine(), "net_routes_modify", arguments.clone()), expected, "{arguments}");
    }
    let two = machine().file("/run/network/ifstate", "eth0=eth0\n");
    let text = format!("# x\nADMIN_STATE=configured\nNETWORK_FILE={NETWORK_FILE}\n");
    let two = two.file("/run/systemd/netif/links/2", text);
    assert_eq!(code(two, "net_routes_modify", branch()), "SEVERAL_MANAGERS");
    let gone = machine().file("/run/network/ifstate", "eth0=eth0\n").file(INTERFACES_FILE, "auto lo\n");
    assert_eq!(code(gone, "net_routes_modify", branch()), "NOT_CONFIGURED");
    let silent = machine_with(&NAMESPACE.replace(r#"[{"dst":"default","gateway":"192.0.2.254""#, "garbage"));
    let problem = call(silent, "net_routes_modify", branch()).unwrap_err();
    assert_eq!(problem.code, "UNEXPECTED_OUTPUT");
}

#[test]
fn an_address_is_added_and_removed_where_its_owner_keeps_it() {
    let add = json!({"action": "add", "interface": "eth0", "address": "192.0.2.11/24"});
    let (data, _, plan) = done(on_netplan(), "net_addresses_modify", add.clone());
    assert_eq!((&data["setting"], &data["set_in"]), (&json!("192.0.2.11/24 dev eth0"), &json!(NETPLAN_FILE)));
    let step = Step::run(ip("address add 192.0.2.11/24 broadcast 192.0.2.255 dev eth0"));
    let expected = [
        Step::write(NETPLAN_FILE, NETPLAN.replace("[192.0.2.10/24]", "[192.0.2.10/24, 192.0.2.11/24]")),
        Step::run(root("netplan", "generate")).uninterruptible(),
        step.undo(ip("address del 192.0.2.11/24 dev eth0")),
    ];
    assert_eq!(plan.steps(), expected);
    let (_, _, plan) = done(on_ifupdown(), "net_addresses_modify", add);
    let text = format!("{INTERFACES}\tup ip address replace 192.0.2.11/24 broadcast + dev $IFACE\n");
    assert_eq!(plan.steps()[0], Step::write(INTERFACES_FILE, text));
    // The one that the session and the gateway need, with what goes along. A route with several gateways can't be put back.
    let remove = json!({"action": "remove", "interface": "eth0", "address": "192.0.2.10/24"});
    assert_eq!(code(on_networkd(), "net_addresses_modify", remove.clone()), "ROUTE_NOT_SIMPLE");
    let hops = r#"{"dst":"198.18.0.0/15","flags":[],"nexthops":[{"gateway":"192.0.2.2","dev":"eth0","weight":1,"flags":[]},{"gateway":"192.0.2.3","dev":"eth0","weight":2,"flags":[]}]},"#;
    assert!(NAMESPACE.contains(hops));
    let (_, notes, plan) = done(machine_with(&NAMESPACE.replace(hops, "")), "net_addresses_modify", remove);
    let default = "0.0.0.0/0 via 192.0.2.1 dev eth0 src 192.0.2.10 proto dhcp metric 100";
    let table = "0.0.0.0/0 via 192.0.2.254 dev eth0 table 100";
    let step = Step::run(ip("address del 192.0.2.10/24 dev eth0"))
        .undo(ip("address replace 192.0.2.10/24 dev eth0"))
        .undo(ip(&format!("route replace {table}")))
        .undo(ip(&format!("route replace {default}")));
    let expected = Change::new("Remove the address 192.0.2.10/24 from eth0")
        .warning("these routes need it: default via 192.0.2.254 dev eth0 table 100, default via 192.0.2.1 dev eth0 metric 100")
        .step(step)
        .warning(DEFAULT)
        .warning(SESSION)
        .risk(Risk::Critical)
        .guard(GUARD);
    assert_eq!(plan, expected);
    assert!(notes.is_empty(), "{notes:?}");
    // One that no session and no default route needs asks at the tool's own risk, and needs no guard.
    let remove = json!({"action": "remove", "interface": "br0", "address": "10.8.0.1/16"});
    let (_, _, plan) = done(machine(), "net_addresses_modify", remove);
    let step = Step::run(ip("address del 10.8.0.1/16 dev br0"))
        .undo(ip("address replace 10.8.0.1/16 dev br0"))
        .undo(ip("route replace 172.16.0.0/12 via 10.8.0.2 dev br0 onlink"));
    let expected = Change::new("Remove the address 10.8.0.1/16 from br0")
        .warning("these routes need it: 172.16.0.0/12 via 10.8.0.2 dev br0")
        .step(step);
    assert_eq!(plan, expected);
}

#[test]
fn an_address_that_network_manager_takes_away_has_a_guard_where_the_host_is_here_by_a_connection() {
    let next = r#"{"family":"inet6","local":"2001:db8:1::10""#;
    let own = r#"{"family":"inet","local":"192.0.2.11","prefixlen":24,"scope":"global","secondary":true},"#;
    let namespace = NAMESPACE.replacen(next, &format!("{own}{next}"), 1);
    let connection = NETWORK_MANAGER.replace("192.0.2.10/24", "192.0.2.10/24, 192.0.2.11/24");
    assert!(namespace != NAMESPACE && connection != NETWORK_MANAGER);
    for (client, is_guarded) in [(None, false), (Some("198.51.100.20"), true)] {
        let mut target = machine_with(&namespace).transcript(&connection);
        target.distro.extra.extend(client.map(|client: &str| ("ssh_client".to_owned(), client.to_owned())));
        let arguments = json!({"action": "remove", "interface": "eth0", "address": "192.0.2.11/24"});
        let (_, _, plan) = done(target, "net_addresses_modify", arguments);
        let modify = |value: &str| {
            Command::new("nmcli")
                .args(["connection", "modify", "uuid", UUID, "ipv4.addresses", value])
                .as_root()
        };
        let step = Step::run(modify("192.0.2.10/24")).undo(modify("192.0.2.10/24,192.0.2.11/24"));
        let reapply = root("nmcli", "device reapply eth0");
        let change = Change::new("Remove the address 192.0.2.11/24 from eth0")
            .step(step.uninterruptible())
            .step(Step::run(reapply.clone()).uninterruptible())
            .after_undo(reapply);
        assert_eq!(plan, if is_guarded { change.guard(GUARD) } else { change });
    }
}

#[test]
fn bad_addresses_are_refused() {
    let of = |action: &str, interface: &str, address: &str| json!({"action": action, "interface": interface, "address": address});
    for (arguments, expected) in [
        (of("add", "eth0", "192.0.2.11"), "INVALID_ADDRESS"),
        (of("add", "eth0", "192.0.2.0/24"), "INVALID_ADDRESS"),
        (of("add", "eth0", "any"), "INVALID_ADDRESS"),
        (of("add", "eth9", "192.0.2.11/24"), "INTERFACE_NOT_FOUND"),
        (of("add", "--help", "192.0.2.11/24"), "INVALID_INTERFACE"),
        (of("add", "tap0", "192.0.2.11/24"), "INTERFACE_IS_PORT"),
        (of("add", "br0", "192.0.2.10/24"), "ADDRESS_IN_USE"),
        (of("add", "eth0", "192.0.2.10/25"), "ADDRESS_IN_USE"),
    ] {
        assert_eq!(code(machine(), "net_addresses_modify", arguments.clone()), expected, "{arguments}");
    }
    let gone = unchanged(machine(), "net_addresses_modify", of("remove", "eth0", "192.0.2.99/24"));
    assert!(gone[0].contains("hasn't got"), "{gone:?}");
    let there = unchanged(machine(), "net_addresses_modify", of("add", "eth0", "192.0.2.10/24"));
    assert!(there[0].contains("already"), "{there:?}");
    // Other settings hang on the paragraph.
    let remove = of("remove", "eth0", "192.0.2.10/24");
    assert_eq!(code(on_ifupdown(), "net_addresses_modify", remove), "SHARED_STANZA");
}

/// The namespace with a VLAN of eth0 that has its MAC address, written by hand in the form of iproute2 6.1.0.
fn with_vlan() -> String {
    let vlan = r#"{"ifindex":9,"link":"eth0","ifname":"eth0.10","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":1500,"operstate":"UP","link_type":"ether","address":"42:57:77:fb:7f:49","linkinfo":{"info_kind":"vlan","info_data":{"protocol":"802.1Q","id":10,"flags":["REORDER_HDR"]}},"addr_info":[{"family":"inet","local":"10.10.10.2","prefixlen":24,"scope":"global"}]},"#;
    let next = r#"{"ifindex":8,"#;
    assert!(NAMESPACE.contains(next));
    NAMESPACE.replacen(next, &format!("{vlan}{next}"), 1)
}

#[test]
fn a_vlan_and_a_bridge_have_settings_of_their_own() {
    let written = |path: &str, text: String| Step::write(path, text.into_bytes());
    let netplan = format!(
        "{NETPLAN}  vlans:\n    eth0.10:\n      id: 10\n      link: eth0\n      addresses: [10.10.10.2/24]\n"
    );
    let state = "ADMIN_STATE=configured\nNETWORK_FILE=/run/systemd/network/10-netplan-eth0.10.network\n";
    let on_netplan = machine_with(&with_vlan())
        .file("/run/systemd/netif/links/9", state)
        .file(NETPLAN_FILE, netplan.as_str());
    let address = json!({"action": "add", "interface": "eth0.10", "address": "10.10.10.3/24"});
    let (data, _, plan) = done(on_netplan, "net_addresses_modify", address);
    assert_eq!(data["setting"], "10.10.10.3/24 dev eth0.10");
    let changed = netplan.replace("[10.10.10.2/24]", "[10.10.10.2/24, 10.10.10.3/24]");
    assert_eq!(plan.steps()[0], written(NETPLAN_FILE, changed));

    let interfaces = format!("{INTERFACES}\niface eth0.10 inet static\n\taddress 10.10.10.2/24\n");
    let on_ifupdown = machine_with(&with_vlan())
        .file("/run/network/ifstate", "lo=lo\neth0=eth0\neth0.10=eth0.10\n")
        .file(INTERFACES_FILE, interfaces.as_str());
    let route = json!({"action": "add", "to": "10.9.0.0/16", "via": "10.10.10.7"});
    let (data, _, plan) = done(on_ifupdown, "net_routes_modify", route);
    assert_eq!(data["setting"], "10.9.0.0/16 via 10.10.10.7 dev eth0.10");
    let line = "\tup ip route replace 10.9.0.0/16 via 10.10.10.7 dev $IFACE proto static\n";
    assert_eq!(plan.steps()[0], written(INTERFACES_FILE, format!("{interfaces}{line}")));

    let address = json!({"action": "add", "interface": "br0", "address": "10.8.0.3/16"});
    let (_, _, plan) = done(machine(), "net_addresses_modify", address);
    let add = Step::run(ip("address add 10.8.0.3/16 broadcast 10.8.255.255 dev br0"));
    assert_eq!(plan.steps(), [add.undo(ip("address del 10.8.0.3/16 dev br0"))]);
    let port = json!({"action": "add", "interface": "tap0", "address": "10.8.0.3/16"});
    let problem = call(machine(), "net_addresses_modify", port).unwrap_err();
    assert_eq!(problem.code, "INTERFACE_IS_PORT");
    assert_eq!(problem.remediation, ["Name interface=br0"]);
}

#[test]
fn an_interface_of_another_namespace_is_none_of_the_machines() {
    for (tool, arguments) in [
        ("net_routes_modify", json!({"action": "add", "to": "10.9.0.0/16", "interface": "far0"})),
        ("net_addresses_modify", json!({"action": "add", "interface": "far0", "address": "192.0.2.11/24"})),
        ("net_dns_modify", json!({"servers": ["192.0.2.9"], "interface": "far0"})),
    ] {
        let target = resolv(machine(), "/etc/resolv.conf", Some(PLAIN));
        let problem = call(target, tool, arguments).unwrap_err();
        assert_eq!(problem.code, "INTERFACE_NOT_FOUND", "{tool}");
        assert!(problem.message.contains("in the machine's own network namespace"), "{problem:?}");
        assert!(problem.remediation[0].contains("eth0"), "{problem:?}");
    }
}

const READLINK: [&str; 5] = ["readlink", "--canonicalize-missing", "--no-newline", "--", "/etc/resolv.conf"];
const IS_ACTIVE: [&str; 4] = ["systemctl", "is-active", "--", "systemd-resolved.service"];
const PLAIN: &str = "# ours\nsearch corp.example\nnameserver 192.0.2.53\noptions edns0\n";

fn resolv(target: FakeTarget, leads_to: &str, text: Option<&str>) -> FakeTarget {
    let target = target.answer(&READLINK, 0, leads_to, "").answer(&IS_ACTIVE, 3, "inactive\n", "");
    match text {
        Some(text) => target.file(leads_to, text),
        None => target,
    }
}

fn resolved(target: FakeTarget, said: &str) -> FakeTarget {
    let manager = "busctl --json=short get-property org.freedesktop.resolve1 /org/freedesktop/resolve1 \
                   org.freedesktop.resolve1.Manager DNS Domains DNSSEC DNSOverTLS FallbackDNS";
    let manager: Vec<&str> = manager.split_whitespace().collect();
    let stub = "/run/systemd/resolve/stub-resolv.conf";
    target
        .answer(&READLINK, 0, stub, "")
        .answer(&IS_ACTIVE, 0, "active\n", "")
        .file(stub, "nameserver 127.0.0.53\n")
        .answer(&manager, 0, said, "")
}

/// The link with number 2 has a server.
const OF_LINK: &str =
    "{\"type\":\"a(iiay)\",\"data\":[[2,2,[192,0,2,53]]]}\n{\"type\":\"a(isb)\",\"data\":[]}\n";
const OF_NO_LINK: &str = "{\"type\":\"a(iiay)\",\"data\":[]}\n{\"type\":\"a(isb)\",\"data\":[]}\n";

fn servers() -> Value {
    json!({"servers": ["192.0.2.9", "2001:db8::9"]})
}

#[test]
fn servers_are_set_where_they_are_set_today() {
    let written = |path: &str, text: String| Step::write(path, text.into_bytes());
    let again = |command: Command| [Step::run(command).uninterruptible()];
    let slow = || root("netplan", "apply").duration(DurationCategory::Slow);
    let restart = || root("systemctl", "restart -- systemd-resolved.service");
    let nmcli = |property: &str, value: &str| {
        Command::new("nmcli").args(["connection", "modify", "uuid", UUID, property, value]).as_root()
    };
    let own = "/etc/systemd/resolved.conf.d/90-linux-sysadmin.conf";
    let network_manager = || {
        let path = "/run/NetworkManager/resolv.conf";
        resolv(on_network_manager(), path, Some("# Generated by NetworkManager\nnameserver 192.0.2.53\n"))
    };
    let by_resolvconf = |target| {
        let mark = "# Dynamic resolv.conf(5) file for glibc resolver(3) generated by resolvconf(8)\nnameserver 192.0.2.53\n";
        resolv(target, "/run/resolvconf/resolv.conf", Some(mark))
    };
    let hand_in = |text: &str| root("resolvconf", "-a eth0.inet").stdin(text);
    let base = "/etc/resolvconf/resolv.conf.d/base";
    let new = "nameserver 192.0.2.9\nnameserver 2001:db8::9\n";
    let lines = "DNS=192.0.2.9 2001:db8::9\n";
    for (target, owner, steps) in [
        (
            resolv(machine(), "/etc/resolv.conf", Some(PLAIN)),
            "nobody",
            vec![written("/etc/resolv.conf", PLAIN.replace("nameserver 192.0.2.53\n", new))],
        ),
        (
            resolved(on_networkd(), OF_LINK),
            "systemd-resolved, by systemd-networkd",
            [
                &[written(NETWORK_FILE, NETWORK.replace("DNS=192.0.2.53\n", lines))][..],
                &again(root("networkctl", "reload")),
                &[Step::run(Command::new("networkctl").args(["status", "--no-pager", "eth0"]))],
            ]
            .concat(),
        ),
        (
            resolved(on_netplan(), OF_LINK),
            "systemd-resolved, by netplan (systemd-networkd)",
            [
                &[written(NETPLAN_FILE, NETPLAN.replace("[192.0.2.53]", "[192.0.2.9, \"2001:db8::9\"]"))][..],
                &again(slow()),
            ]
            .concat(),
        ),
        (
            resolved(machine(), OF_NO_LINK),
            "systemd-resolved",
            [
                &[
                    Step::make_directory("/etc/systemd/resolved.conf.d", 0o755),
                    written(own, format!("[Resolve]\nDNS=\n{lines}Domains=\n")),
                ][..],
                &again(restart()),
            ]
            .concat(),
        ),
        (
            network_manager(),
            "NetworkManager",
            [
                Step::run(nmcli("ipv4.dns", "192.0.2.9"))
                    .uninterruptible()
                    .undo(nmcli("ipv4.dns", "192.0.2.53")),
                Step::run(nmcli("ipv6.dns", "2001:db8::9")).uninterruptible().undo(nmcli("ipv6.dns", "")),
                Step::run(root("nmcli", "device reapply eth0")).uninterruptible(),
            ]
            .to_vec(),
        ),
        (
            by_resolvconf(on_ifupdown())
                .file("/run/resolvconf/interface/eth0.inet", "nameserver 192.0.2.53\n"),
            "resolvconf, by ifupdown",
            vec![
                written(INTERFACES_FILE, INTERFACES.replace("192.0.2.53", "192.0.2.9 2001:db8::9")),
                Step::run(hand_in(new)).uninterruptible().undo(hand_in("nameserver 192.0.2.53\n")),
            ],
        ),
        (
            by_resolvconf(machine()),
            "resolvconf",
            vec![written(base, new.to_owned()), Step::run(root("resolvconf", "-u"))],
        ),
    ] {
        let (data, notes, plan) = done(target, "net_dns_modify", servers());
        assert_eq!(data["owner"], owner);
        assert_eq!(data["servers"], servers()["servers"]);
        assert_eq!(plan.steps(), steps, "{owner}");
        assert!(notes[0].contains("wasn't asked") && notes[0].contains("check=NAME"), "{notes:?}");
        let is_anew = ["reload", "apply", "reapply"].iter().any(|word| format!("{steps:?}").contains(word));
        assert_eq!(format!("{plan:?}").contains("guard: Some"), is_anew, "{owner}");
    }
}

/// systemd-resolved 252 was seen to tell a server at a loopback address under the number of `lo`, also where a link has it.
#[test]
fn a_server_at_a_loopback_address_is_whose_it_is() {
    let said = "{\"type\":\"a(iiay)\",\"data\":[[1,2,[127,0,0,9]]]}\n{\"type\":\"a(isb)\",\"data\":[]}\n";
    let of_eth0 = |servers: &str| {
        let words = "busctl --json=short get-property org.freedesktop.resolve1 \
                     /org/freedesktop/resolve1/link/_32 org.freedesktop.resolve1.Link DNS";
        let words: Vec<&str> = words.split_whitespace().collect();
        let of_link = format!("{{\"type\":\"a(iay)\",\"data\":[{servers}]}}\n");
        resolved(on_networkd(), said).answer(&words, 0, &of_link, "")
    };
    let (data, ..) = done(of_eth0("[2,[127,0,0,9]]"), "net_dns_modify", servers());
    assert_eq!(data["owner"], "systemd-resolved, by systemd-networkd");
    let (data, ..) = done(of_eth0(""), "net_dns_modify", servers());
    assert_eq!(
        (&data["owner"], &data["was"]["servers"]),
        (&json!("systemd-resolved"), &json!(["127.0.0.9"]))
    );
}

#[test]
fn what_somebody_has_added_to_the_drop_in_is_not_lost() {
    let own = "/etc/systemd/resolved.conf.d/90-linux-sysadmin.conf";
    let target = |text: &str| resolved(machine(), OF_NO_LINK).file(own, text);
    for edited in ["[Resolve]\nDNS=192.0.2.53\nDNSSEC=no\n", "# ours\n[Resolve]\nDNS=192.0.2.53\n"] {
        assert_eq!(code(target(edited), "net_dns_modify", servers()), "FILE_EDITED", "{edited}");
    }
    let (_, _, plan) =
        done(target("[Resolve]\nDNS=\nDNS=192.0.2.53\nDomains=\n"), "net_dns_modify", servers());
    let text = "[Resolve]\nDNS=\nDNS=192.0.2.9 2001:db8::9\nDomains=\n";
    assert!(plan.steps().contains(&Step::write(own, text)), "{plan:?}");
}

#[test]
fn a_server_that_does_not_answer_is_told_and_a_name_that_breaks_undoes_it() {
    let dig = |name: &str, server: &str| -> Vec<String> {
        let words = format!("dig +noall +comments +answer +stats +tries=1 +time=2 -t NS -q {name} @{server}");
        words.split(' ').map(str::to_owned).collect()
    };
    let target = || {
        let target = FakeTarget::new()
            .transcript(NAMESPACE)
            .answer(&["ss", "-Htunap"], 0, SSHD, "")
            .without_program("nmcli");
        resolv(target, "/etc/resolv.conf", Some(PLAIN))
    };
    let answered = |target: FakeTarget, name: &str, server: &str, text: &str| {
        let words = dig(name, server);
        let code = if text.contains("no servers could be reached") { 9 } else { 0 };
        target.answer(&words.iter().map(String::as_str).collect::<Vec<_>>(), code, text, "")
    };
    // After the sources of BIND 9.18.
    let silent = ";; communications error to 192.0.2.9#53: timed out\n;; no servers could be reached\n";
    let good = ";; Got answer:\n;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 1\n;; flags: qr rd ra; QUERY: 1\n";
    let one = json!({"servers": ["192.0.2.9"]});
    let (_, _, plan) = done(answered(target(), ".", "192.0.2.9", silent), "net_dns_modify", one.clone());
    let shown = format!("{plan:?}");
    assert!(shown.contains("no answer came from 192.0.2.9") && shown.contains("Critical"), "{shown}");
    let both = json!({"servers": ["192.0.2.53", "192.0.2.9"]});
    let (_, _, plan) = done(answered(target(), ".", "192.0.2.9", silent), "net_dns_modify", both);
    let shown = format!("{plan:?}");
    assert!(shown.contains("no answer came from") && !shown.contains("Critical"), "{shown}");
    let (_, notes, plan) = done(answered(target(), ".", "192.0.2.9", good), "net_dns_modify", one);
    assert!(!format!("{plan:?}").contains("no answer") && notes.is_empty(), "{plan:?} {notes:?}");
    let checked = json!({"servers": ["192.0.2.9"], "check": "db.example"});
    let (_, _, plan) = done(answered(target(), "db.example", "192.0.2.9", good), "net_dns_modify", checked);
    let getent = Command::new("timeout").args(["8", "getent", "ahosts", "--", "db.example"]);
    assert_eq!(plan.steps().last(), Some(&Step::run(getent)));
}

#[test]
fn name_servers_that_cannot_be_set_are_refused() {
    let plain = || resolv(machine(), "/etc/resolv.conf", Some(PLAIN));
    let dhcp = "# Generated by dhcpcd from eth0.dhcp\nnameserver 192.0.2.53\n";
    let managed = "# Managed by Puppet, do not edit\nnameserver 192.0.2.53\n";
    let domains = json!({"search": ["a b"]});
    for (target, arguments, expected) in [
        (plain(), json!({}), "NOTHING_ASKED"),
        (plain(), json!({"servers": ["dns.example"]}), "INVALID_ADDRESS"),
        (plain(), json!({"servers": []}), "INVALID_ADDRESS"),
        (plain(), domains, "INVALID_DOMAIN"),
        (plain(), json!({"servers": ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"]}), "TOO_MANY"),
        (plain(), json!({"servers": ["192.0.2.1"], "interface": "eth0"}), "INTERFACE_NOT_USED"),
        (plain(), json!({"servers": ["192.0.2.1"], "interface": "eth9"}), "INTERFACE_NOT_FOUND"),
        (plain(), json!({"servers": ["192.0.2.1"], "interface": "--all"}), "INVALID_INTERFACE"),
        (plain(), json!({"servers": ["192.0.2.1"], "check": "-x"}), "INVALID_NAME"),
        (resolv(machine(), "/srv/none", None), servers(), "RESOLV_CONF_IS_MISSING"),
        (resolv(machine(), "/srv/resolv.conf", Some(PLAIN)), servers(), "RESOLV_CONF_IS_SYMLINK"),
        (resolv(machine(), "/run/systemd/resolve/stub-resolv.conf", None), servers(), "RESOLVER_DOWN"),
        (resolv(machine(), "/etc/resolv.conf", Some(dhcp)), servers(), "OWNER_NOT_SUPPORTED"),
        (resolv(machine(), "/etc/resolv.conf", Some(managed)), servers(), "GENERATED_FILE"),
        (resolved(machine(), OF_LINK), servers(), "NOT_CONFIGURED"),
        (resolved(on_networkd(), OF_LINK), json!({"servers": ["127.0.0.53"]}), "INVALID_ADDRESS"),
    ] {
        assert_eq!(code(target, "net_dns_modify", arguments.clone()), expected, "{arguments}");
    }
    let same = json!({"servers": ["192.0.2.53"], "search": ["corp.example"]});
    assert!(unchanged(plain(), "net_dns_modify", same)[0].contains("already"));
}
