//! The tools that show the network, on recordings of network namespaces and on texts of other programs.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::testkit::{FakeTarget, profile, takes_little_context};
use linux_sysadmin_sdk::{Problem, Risk, knowledge};
use module_network::module;
use serde_json::{Value, json};

const NAMESPACE: &str = include_str!("data/namespace.txt");
const SOCKETS: &str = include_str!("data/sockets.txt");
const LINKS: [&str; 5] = ["ip", "-json", "-details", "-statistics", "address"];

const NMCLI: [&str; 6] = ["nmcli", "--terse", "--fields", "DEVICE,STATE,CONNECTION", "device", "status"];

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

fn code(target: FakeTarget, tool: &str, arguments: Value) -> String {
    match call(target, tool, arguments.clone()) {
        Err(problem) => problem.code,
        Ok((data, _)) => panic!("{arguments}: {data}"),
    }
}

fn namespace() -> FakeTarget {
    FakeTarget::new().transcript(NAMESPACE)
}

/// A target with these interfaces, as ip prints them.
fn links(json: Value) -> FakeTarget {
    let argv = [&LINKS[..], &["show"]].concat();
    FakeTarget::new().answer(&argv, 0, json.to_string(), "")
}

fn named<'a>(data: &'a Value, name: &str) -> &'a Value {
    data.as_array().unwrap().iter().find(|item| item["name"] == name).unwrap()
}

#[test]
fn a_tool_takes_little_of_a_models_context() {
    for tool in module().description().tools {
        let changes = tool.name.ends_with("_modify");
        takes_little_context(&tool);
        assert_eq!(tool.risk == Risk::ReadOnly, !changes, "{}", tool.name);
    }
}

#[test]
fn no_grant_is_without_a_reason_and_none_writes_beyond_the_network() {
    let capabilities = module().description().capabilities;
    let places = [
        "/etc/netplan/",
        "/etc/systemd/network/",
        "/etc/network/",
        "/etc/resolv.conf",
        "/etc/resolvconf/",
        "/etc/systemd/resolved.conf.d",
    ];
    for grant in capabilities.paths {
        let is_networks = places.iter().any(|place| grant.glob.starts_with(place));
        assert!((!grant.write || is_networks) && !grant.reason.is_empty(), "{}", grant.glob);
    }
    for grant in capabilities.commands {
        assert!(!grant.reason.is_empty(), "{}", grant.pattern);
    }
}

#[test]
fn interfaces_in_use_come_first_with_what_they_are_and_have() {
    let (data, notes) = call(namespace(), "net_interfaces", json!({})).unwrap();
    let names: Vec<_> = data.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect();
    assert_eq!(names[0], "eth0");
    assert_eq!(names.last(), Some(&"lo"));
    let eth0 = named(&data, "eth0");
    assert_eq!(eth0["state"], "up");
    assert_eq!(eth0["kind"], "veth");
    assert_eq!(eth0["addresses"][0], "192.0.2.10/24");
    assert_eq!(eth0["addresses"][1], "2001:db8:1::10/64");
    assert!(eth0["addresses"][2].as_str().unwrap().ends_with("/64 link-local"));
    assert_eq!(eth0["detail"], "its other end is in another network namespace, as of a container");
    assert_eq!(eth0["other_names"], json!(["enp1s0"]));
    let br0 = named(&data, "br0");
    assert_eq!((&br0["state"], &br0["kind"]), (&json!("no carrier"), &json!("bridge")));
    assert_eq!(br0["description"], "guests \"two\" — office");
    assert_eq!(br0["members"], "tap0, veth1p");
    assert_eq!(named(&data, "tap0")["member_of"], "br0");
    assert_eq!(named(&data, "macv0")["on"], "eth0");
    assert_eq!(named(&data, "veth1p")["on"], "veth1");
    assert_eq!(named(&data, "vx0")["detail"], "id 7");
    assert_eq!(named(&data, "lo")["addresses"], json!(["127.0.0.1/8", "::1/128"]));
    assert!(named(&data, "lo").get("mac").is_none());
    assert_eq!(notes, Vec::<String>::new());
}

#[test]
fn an_interface_is_found_by_each_of_its_names() {
    for name in ["eth0", "enp1s0"] {
        let (data, _) = call(namespace(), "net_interfaces", json!({"name": name})).unwrap();
        assert_eq!(data.as_array().unwrap().len(), 1);
        assert_eq!(data[0]["name"], "eth0");
    }
    let problem = call(namespace(), "net_interfaces", json!({"name": "eth9"})).unwrap_err();
    assert_eq!(problem.code, "INTERFACE_NOT_FOUND");
    assert!(problem.remediation[0].contains("eth0"), "{problem:?}");
    for name in ["", "-all", "a b", "a/b", "..", "eth0\n", "e\u{202e}h", &"x".repeat(128)] {
        assert_eq!(
            code(namespace(), "net_interfaces", json!({"name": name})),
            "INVALID_INTERFACE",
            "{name:?}"
        );
    }
}

/// As iproute2 6.1.0 prints VLANs and bonds, after its sources (ip/iplink_vlan.c, ip/iplink_bond.c, ip/iplink_bond_slave.c).
fn bond() -> Value {
    json!([
        {"ifindex": 2, "ifname": "eno1", "flags": ["BROADCAST", "UP", "LOWER_UP"], "mtu": 9000, "operstate": "UP",
         "link_type": "ether", "address": "02:00:00:00:00:01", "master": "bond0",
         "linkinfo": {"info_slave_kind": "bond", "info_slave_data": {"state": "ACTIVE", "mii_status": "UP"}},
         "stats64": {"rx": {"bytes": 9, "errors": 3, "dropped": 0, "over_errors": 1}, "tx": {"errors": 0, "carrier_errors": 7}}},
        {"ifindex": 3, "ifname": "eno2", "flags": ["NO-CARRIER", "BROADCAST", "UP"], "mtu": 9000, "operstate": "DOWN",
         "link_type": "ether", "master": "bond0",
         "linkinfo": {"info_slave_kind": "bond", "info_slave_data": {"state": "BACKUP", "mii_status": "DOWN"}}},
        {"ifindex": 4, "ifname": "bond0", "flags": ["BROADCAST", "UP", "LOWER_UP"], "mtu": 9000, "operstate": "UP",
         "link_type": "ether", "linkinfo": {"info_kind": "bond", "info_data": {"mode": "active-backup", "active_slave": "eno1"}}},
        {"ifindex": 5, "link": "bond0", "ifname": "bond0.5", "flags": ["BROADCAST", "UP", "LOWER_UP"], "mtu": 1500,
         "operstate": "UP", "link_type": "ether",
         "linkinfo": {"info_kind": "vlan", "info_data": {"protocol": "802.1Q", "id": 5, "flags": ["REORDER_HDR"]}},
         "addr_info": [
            {"family": "inet", "local": "192.0.2.7", "prefixlen": 24, "scope": "global", "dynamic": true},
            {"family": "inet6", "local": "2001:db8::7", "prefixlen": 64, "scope": "global", "tentative": true, "dadfailed": true}]},
        {}
    ])
}

#[test]
fn a_bond_its_members_and_a_vlan_tell_what_they_are() {
    let target = links(bond())
        .answer(&NMCLI, 0, "eno1:connected:bond port\nbond0.5:connected:netplan-bond0.5\n", "")
        .file("/sys/class/net/eno1/speed", "10000\n")
        .file("/sys/class/net/eno1/device/uevent", "DRIVER=ixgbe\nPCI_CLASS=20000\n")
        .file("/sys/class/net/eno2/speed", "-1\n")
        .file("/sys/class/net/bond0.5/speed", "10000\n")
        .file(
            "/run/systemd/netif/links/5",
            "ADMIN_STATE=configured\nNETWORK_FILE=/etc/systemd/network/5.network\n",
        )
        .file("/run/network/ifstate", "lo=lo\nbond0=bond0\n");
    let (data, notes) = call(target, "net_interfaces", json!({})).unwrap();
    let eno1 = named(&data, "eno1");
    assert_eq!((&eno1["speed_mbit"], &eno1["driver"]), (&json!(10000), &json!("ixgbe")));
    assert_eq!(eno1["faults"], json!({"rx_errors": 3, "rx_over_errors": 1, "tx_carrier_errors": 7}));
    assert_eq!(eno1["managed_by"], json!([{"name": "NetworkManager", "config": "connection \"bond port\""}]));
    let eno2 = named(&data, "eno2");
    assert_eq!(eno2["state"], "no carrier");
    assert!(eno2.get("speed_mbit").is_none());
    let bond0 = named(&data, "bond0");
    assert_eq!(
        (&bond0["detail"], &bond0["members"]),
        (&json!("active-backup, active eno1"), &json!("eno1, eno2"))
    );
    assert_eq!(bond0["managed_by"][0]["name"], "ifupdown");
    let vlan = named(&data, "bond0.5");
    assert_eq!((&vlan["vlan"], &vlan["on"]), (&json!(5), &json!("bond0")));
    assert_eq!(vlan["addresses"], json!(["192.0.2.7/24 dynamic", "2001:db8::7/64 duplicate"]));
    assert!(vlan.get("speed_mbit").is_none());
    assert_eq!(
        notes,
        [
            "bond0.5: 2001:db8::7 isn't used, because another machine has it as well",
            "bond0.5: systemd-networkd and netplan (NetworkManager) both manage it, and each may undo what the other one does",
            "eno2: as a member of a bond it is down",
        ]
    );
}

#[test]
fn hardware_that_nobody_has_configured_is_told() {
    let of = |flags: Value| {
        json!([{"ifindex": 2, "ifname": "ens3", "flags": flags, "operstate": "UP", "link_type": "ether", "mtu": 1500,
                "addr_info": [{"local": "192.0.2.7", "prefixlen": 24, "scope": "global"}]}])
    };
    let (data, notes) = call(links(of(json!(["UP"]))), "net_interfaces", json!({})).unwrap();
    assert_eq!(data[0]["state"], "up");
    assert!(notes[0].starts_with("ens3: neither netplan"), "{notes:?}");
    let (data, _) = call(links(of(json!([]))), "net_interfaces", json!({})).unwrap();
    assert_eq!(data[0]["state"], "down");
}

#[test]
fn another_ip_and_garbage_are_problems_and_no_interface_is_an_empty_list() {
    let argv = [&LINKS[..], &["show"]].concat();
    let busybox = FakeTarget::new().answer(&argv, 1, "", "ip: unrecognized option '-json'");
    assert_eq!(code(busybox, "net_interfaces", json!({})), "COMMAND_FAILED");
    let table = FakeTarget::new().answer(&argv, 0, "1: lo: <LOOPBACK,UP>", "");
    assert_eq!(code(table, "net_interfaces", json!({})), "UNEXPECTED_OUTPUT");
    let (data, _) = call(links(json!([])), "net_interfaces", json!({})).unwrap();
    assert_eq!(data, json!([]));
    // The name has bytes that aren't UTF-8.
    let odd = FakeTarget::new().answer(&argv, 0, b"[{\"ifname\":\"a\xffb\",\"mtu\":7}]", "");
    let (data, _) = call(odd, "net_interfaces", json!({})).unwrap();
    assert_eq!(data[0]["name"], "a\u{fffd}b");
}

#[test]
fn routes_stand_behind_the_rules_in_the_order_in_which_they_are_asked() {
    let target = namespace().file("/run/network/ifstate", "eth0=eth0\n");
    let (data, notes) = call(target, "net_routes_show", json!({})).unwrap();
    let items = data.as_array().unwrap();
    let rules: Vec<_> = items.iter().filter_map(|item| item["rule"].as_str()).collect();
    assert_eq!(
        rules,
        [
            "1000: from 10.8.0.0/16 lookup 100",
            "1001: from all fwmark 0x1 lookup 200",
            "1002: from all dport 25 ipproto tcp prohibit"
        ]
    );
    let routes: Vec<&Value> = items.iter().filter(|item| item.get("to").is_some()).collect();
    assert_eq!(
        *routes[0],
        json!({"to": "default", "via": "192.0.2.254", "dev": "eth0", "table": "100", "managed_by": "ifupdown"})
    );
    assert_eq!(*routes[1], json!({"to": "10.0.0.0/8", "type": "unreachable", "table": "100"}));
    assert_eq!(
        *routes[2],
        json!({"to": "default", "via": "192.0.2.1", "dev": "eth0", "src": "192.0.2.10", "metric": 100, "protocol": "dhcp",
               "managed_by": "ifupdown"})
    );
    let to = |to: &str| *routes.iter().find(|route| route["to"] == to).unwrap();
    assert_eq!(
        to("198.18.0.0/15")["nexthops"],
        json!(["192.0.2.2 dev eth0 weight 1", "192.0.2.3 dev eth0 weight 2"])
    );
    assert_eq!(to("203.0.113.0/24")["type"], "blackhole");
    assert_eq!(to("172.16.0.0/12")["flags"], json!(["onlink", "linkdown"]));
    let ipv6: Vec<_> = routes.iter().filter(|route| route["family"] == "ipv6").collect();
    assert_eq!((&ipv6[0]["to"], &ipv6[0]["via"]), (&json!("default"), &json!("2001:db8:1::1")));
    assert!(routes.iter().all(|route| route["type"] != "local" && route["to"] != "ff00::/8"));
    assert_eq!(notes, Vec::<String>::new());
}

#[test]
fn the_way_to_an_address_has_the_route_that_decided() {
    let way = |to: &str| call(namespace(), "net_routes_show", json!({"to": to})).unwrap().0;
    assert_eq!(
        way("198.51.100.20"),
        json!([{"to": "198.51.100.20", "via": "192.0.2.1", "dev": "eth0", "src": "192.0.2.10", "metric": 100, "protocol": "dhcp",
                "by_route": "default"}])
    );
    assert_eq!(way("2001:db8:2::20")[0]["via"], "2001:db8:1::1");
    assert_eq!(way("192.0.2.10")[0]["type"], "local");
    let problem = way("203.0.113.5");
    assert!(problem[0]["problem"].as_str().unwrap().contains("blackhole"), "{problem}");
    for to in
        ["", "any", "default", "0.0.0.0/0", "192.0.2.7/24", "db.example", "-4", "192.0.2", "fe80::1%eth0"]
    {
        assert_eq!(code(namespace(), "net_routes_show", json!({"to": to})), "INVALID_ADDRESS", "{to}");
    }
}

fn routing(rules: &str, routes: &str) -> FakeTarget {
    let of = |family: &'static str, what: &'static str| {
        let mut argv = vec!["ip", "-json", family, what, "show"];
        if what == "route" {
            argv.extend(["table", "all"]);
        }
        argv
    };
    links(json!([]))
        .answer(&of("-4", "rule"), 0, rules, "")
        .answer(&of("-4", "route"), 0, routes, "")
        .answer(&of("-6", "rule"), 2, "", "RTNETLINK answers: Address family not supported by protocol")
        .answer(&of("-6", "route"), 2, "", "RTNETLINK answers: Address family not supported by protocol")
}

#[test]
fn what_has_no_effect_and_what_is_missing_is_said() {
    let rules = r#"[{"priority":32766,"src":"all","table":"main"}]"#;
    let routes = r#"[{},{"dst":"192.0.2.0/24","dev":"eth0"},{"dst":"default","dev":"tun0","table":"500"}]"#;
    let (data, notes) = call(routing(rules, routes), "net_routes_show", json!({})).unwrap();
    assert_eq!(data, json!([{"to": "192.0.2.0/24", "dev": "eth0"}]));
    assert_eq!(
        notes,
        [
            "no ipv4 rule uses these tables, whose routes are without effect: 500",
            "nothing is known of IPv6: ip ended with exit code 2: RTNETLINK answers: Address family not supported by protocol",
            "there is no default route for IPv4 in the table main",
        ]
    );
}

#[test]
fn of_more_routes_than_are_kept_the_first_are_shown() {
    let route = |number: u32| {
        format!(r#"{{"dst":"10.{}.{}.0/24","gateway":"192.0.2.1","dev":"eth0"}}"#, number >> 8, number & 255)
    };
    let routes = (0..30_000).map(route).collect::<Vec<_>>().join(",");
    let (data, notes) = call(routing("[]", &format!("[{routes}]")), "net_routes_show", json!({})).unwrap();
    assert!(data.as_array().unwrap().len() > 10_000);
    assert!(notes[0].contains("more ipv4 routes"), "{notes:?}");
}

const LEADS_TO: [&str; 5] = ["readlink", "--canonicalize-missing", "--no-newline", "--", "/etc/resolv.conf"];
const IS_ACTIVE: [&str; 4] = ["systemctl", "is-active", "--", "systemd-resolved.service"];
const STUB: &str = "/run/systemd/resolve/stub-resolv.conf";

/// A target with this resolv.conf, which is a symlink to `target` where one is given.
fn resolver(target: Option<&str>, text: Option<&str>) -> FakeTarget {
    let path = target.unwrap_or("/etc/resolv.conf");
    let fake = FakeTarget::new()
        .answer(&LEADS_TO, 0, path, "")
        .file("/etc/nsswitch.conf", "passwd: files\nhosts: files dns\n")
        .file("/etc/hosts", "127.0.0.1 localhost\n192.0.2.7 db.example db\n192.0.2.8 DB # old\n");
    match text {
        Some(text) => fake.file(path, text),
        None => fake,
    }
}

#[test]
fn a_plain_resolv_conf_belongs_to_nobody() {
    let target = resolver(None, Some("search corp.example\nnameserver 192.0.2.53\noptions ndots:2\n"));
    let (data, notes) = call(target, "net_dns_show", json!({"name": "db"})).unwrap();
    assert_eq!(
        data,
        json!({
            "resolv_conf": {"owner": "nobody", "set_in": "the file itself", "servers": ["192.0.2.53"],
                            "search": ["corp.example"], "options": ["ndots:2"]},
            "sources": "files dns",
            "hosts": [{"line": 2, "address": "192.0.2.7", "names": ["db.example", "db"]},
                      {"line": 3, "address": "192.0.2.8", "names": ["DB"]}],
        })
    );
    assert_eq!(notes, Vec::<String>::new());
    let (data, _) =
        call(resolver(None, Some("nameserver 192.0.2.53\n")), "net_dns_show", json!({"name": "web"}))
            .unwrap();
    assert_eq!(data["hosts"], json!([]));
    for name in ["", "-x", "http://db", "a b", "db:80", "127.1"] {
        assert_eq!(
            code(resolver(None, None), "net_dns_show", json!({"name": name})),
            "INVALID_NAME",
            "{name}"
        );
    }
}

#[test]
fn what_keeps_names_from_being_found_is_said() {
    for (target, text, expected) in [
        (
            Some("/run/gone/resolv.conf"),
            None,
            "/etc/resolv.conf is a symlink to /run/gone/resolv.conf, which isn't there",
        ),
        (None, None, "there is no /etc/resolv.conf"),
        (None, Some("# empty\n"), "/etc/resolv.conf names no server, so that 127.0.0.1 is asked"),
        (
            Some(STUB),
            Some("nameserver 127.0.0.53\n"),
            "127.0.0.53 is asked, and systemd-resolved, which answers there, isn't running",
        ),
        (
            None,
            Some("nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\nnameserver 192.0.2.4\n"),
            "only the first 3 servers are used, and not 192.0.2.4",
        ),
    ] {
        let (_, notes) = call(resolver(target, text), "net_dns_show", json!({})).unwrap();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with(expected), "{notes:?}");
    }
    let target = resolver(None, Some("nameserver 192.0.2.1\n")).file("/etc/nsswitch.conf", "hosts: files\n");
    let (_, notes) = call(target, "net_dns_show", json!({})).unwrap();
    assert_eq!(
        notes,
        ["/etc/nsswitch.conf has neither dns nor resolve for hosts (files): no server is ever asked"]
    );
}

/// The properties as busctl of systemd 252 prints them, after org.freedesktop.resolve1(5).
fn resolved() -> FakeTarget {
    let bus = "org.freedesktop.resolve1";
    let get = ["busctl", "--json=short", "get-property", bus];
    let manager = [&get[..], &["/org/freedesktop/resolve1", "org.freedesktop.resolve1.Manager"]].concat();
    let link = |path| [&get[..], &[path, "org.freedesktop.resolve1.Link"]].concat();
    let of_manager = [&manager[..], &["DNS", "Domains", "DNSSEC", "DNSOverTLS", "FallbackDNS"]].concat();
    let of_link =
        |path| [&link(path)[..], &["DNSSEC", "DNSOverTLS", "DefaultRoute", "CurrentDNSServer"]].concat();
    let settings = "{\"type\":\"a(iiay)\",\"data\":[[2,2,[192,0,2,53]],[2,2,[192,0,2,54]],[12,10,[253,0,0,0,0,0,0,0,0,0,0,0,0,0,0,83]]]}\n\
        {\"type\":\"a(isb)\",\"data\":[[2,\"corp.example\",false],[12,\"vpn.example\",true]]}\n\
        {\"type\":\"s\",\"data\":\"no\"}\n{\"type\":\"s\",\"data\":\"no\"}\n\
        {\"type\":\"a(iiay)\",\"data\":[[0,2,[9,9,9,9]]]}\n";
    let of_eth0 = "{\"type\":\"s\",\"data\":\"no\"}\n{\"type\":\"s\",\"data\":\"no\"}\n{\"type\":\"b\",\"data\":true}\n\
        {\"type\":\"(iay)\",\"data\":[2,[192,0,2,54]]}\n";
    let of_tun0 = "{\"type\":\"s\",\"data\":\"yes\"}\n{\"type\":\"s\",\"data\":\"no\"}\n{\"type\":\"b\",\"data\":false}\n";
    let ip = json!([{"ifindex": 2, "ifname": "eth0"}, {"ifindex": 12, "ifname": "tun0"}]);
    resolver(Some(STUB), Some("nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch corp.example\n"))
        .answer(&IS_ACTIVE, 0, "active\n", "")
        .answer(&[&LINKS[..], &["show"]].concat(), 0, ip.to_string(), "")
        .answer(&of_manager, 0, settings, "")
        .answer(&of_link("/org/freedesktop/resolve1/link/_32"), 0, of_eth0, "")
        .answer(&of_link("/org/freedesktop/resolve1/link/_312"), 0, of_tun0, "")
        .file(
            "/run/systemd/netif/links/2",
            "ADMIN_STATE=configured\nNETWORK_FILE=/run/systemd/network/10-netplan-eth0.network\n",
        )
}

#[test]
fn systemd_resolved_tells_the_servers_of_each_link() {
    let (data, notes) = call(resolved(), "net_dns_show", json!({})).unwrap();
    assert_eq!(data["resolv_conf"]["owner"], "systemd-resolved");
    assert_eq!(data["resolv_conf"]["symlink_to"], STUB);
    assert_eq!(
        data["resolved"],
        json!({
            "dnssec": "no", "dns_over_tls": "no",
            "links": [
                {"name": "eth0", "servers": ["192.0.2.53", "192.0.2.54"], "domains": ["corp.example"], "current": "192.0.2.54",
                 "default_route": true, "managed_by": "netplan (systemd-networkd)"},
                {"name": "tun0", "servers": ["fd00::53"], "domains": ["~vpn.example"], "default_route": false, "dnssec": "yes"},
            ]
        })
    );
    assert_eq!(notes, Vec::<String>::new());
}

#[test]
fn programs_that_do_not_ask_resolved_are_told() {
    let target = resolver(None, Some("nameserver 192.0.2.1\n")).answer(&IS_ACTIVE, 0, "active\n", "");
    let (data, notes) = call(target, "net_dns_show", json!({})).unwrap();
    assert_eq!(data["resolved"], json!({}));
    assert!(notes[0].contains("doesn't tell its servers"), "{notes:?}");
    assert_eq!(
        notes[1],
        "systemd-resolved runs, and programs don't ask it: they ask the servers of /etc/resolv.conf"
    );
}

#[test]
fn network_manager_tells_the_servers_of_each_device() {
    let argv = ["nmcli", "--terse", "--fields", "GENERAL.DEVICE,IP4,IP6", "device", "show"];
    // After nmcli(1) of NetworkManager 1.42: a value isn't escaped in this form.
    let said = "GENERAL.DEVICE:eth0\nIP4.ADDRESS[1]:192.0.2.7/24\nIP4.GATEWAY:192.0.2.1\n\
        IP4.ROUTE[1]:dst = 0.0.0.0/0, nh = 192.0.2.1, mt = 100\nIP4.DNS[1]:192.0.2.53\nIP4.DOMAIN[1]:corp.example\n\
        IP4.SEARCHES[1]:corp.example\nIP6.ADDRESS[1]:fe80::1/64\nIP6.GATEWAY:\nIP6.DNS[1]:2001:db8::53\n\n\
        GENERAL.DEVICE:lo\nIP4.ADDRESS[1]:127.0.0.1/8\n";
    let target = resolver(None, Some("# Generated by NetworkManager\nnameserver 192.0.2.53\n"))
        .answer(&argv, 0, said, "");
    let (data, _) = call(target, "net_dns_show", json!({})).unwrap();
    assert_eq!(data["resolv_conf"]["owner"], "NetworkManager");
    let expected =
        json!([{"name": "eth0", "servers": ["192.0.2.53", "2001:db8::53"], "domains": ["corp.example"]}]);
    assert_eq!(data["network_manager"], expected);
}

/// The process that has the sockets of the recording.
fn sockets() -> FakeTarget {
    let stat = "19003 (python3) S 1 1 1 0 -1 0 0 0 0 0 5 0 9 9 20 0 3 0 12345 4096 25 1 1\n";
    FakeTarget::new()
        .transcript(SOCKETS)
        .file("/proc/stat", "btime 1700000000\n")
        .file("/etc/passwd", "ada:x:1000:1000::/:/bin/sh\n")
        .file("/proc/19003/stat", stat)
        .file("/proc/19003/status", "Uid:\t1000\t1000\t1000\t1000\n")
        .file("/proc/19003/cgroup", "0::/system.slice/app.service\n")
        .file("/proc/19003/cmdline", "python3\0serve.py\0--password=hunter2\0")
}

#[test]
fn each_process_has_what_it_listens_on_and_its_connections() {
    let unit = knowledge::Unit {
        name: "app.service".into(),
        aliases: Vec::new(),
        main: true,
        reload: false,
        optional: false,
        what: None,
    };
    let target = sockets().profile(knowledge::Profile { units: vec![unit], ..profile("app") });
    let (data, notes) = call(target, "net_connections", json!({})).unwrap();
    let item = &data[0];
    assert_eq!(
        (&item["pid"], &item["unit"], &item["user"]),
        (&json!(19003), &json!("app.service"), &json!("ada"))
    );
    assert_eq!(
        (&item["command"], &item["service"]),
        (&json!("python3 serve.py --password=***"), &json!("app"))
    );
    assert_eq!(item["started"], "2023-11-14T22:15:23Z");
    assert_eq!(
        item["listens"],
        json!(["tcp *:9090", "tcp 127.0.0.1:5432", "tcp 192.0.2.10:8080", "udp 0.0.0.0:514"])
    );
    let connections: Vec<_> =
        item["connections"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert!(connections.contains(&"udp established 192.0.2.10:58236 -> 192.0.2.1:53"), "{connections:?}");
    assert!(connections.contains(&"tcp established 127.0.0.1:9090 <- 127.0.0.1:35806"), "{connections:?}");
    assert!(connections.contains(&"tcp close-wait 127.0.0.1:5432 <- 127.0.0.1:40378"), "{connections:?}");
    assert_eq!(data[1], json!({"connections": ["tcp fin-wait-2 127.0.0.1:40378 -> 127.0.0.1:5432"]}));
    assert_eq!(
        notes,
        [
            "18 sockets: 1 close-wait, 11 established, 1 fin-wait-2, 4 listening, 1 time-wait",
            "sockets without a process belong to the kernel, or to a process that only root can see",
        ]
    );
}

#[test]
fn each_filter_selects_its_sockets() {
    let count = |arguments: &Value| {
        let (data, _) = call(sockets(), "net_connections", arguments.clone()).unwrap();
        let of = |item: &Value, name: &str| item[name].as_array().map_or(0, Vec::len);
        data.as_array()
            .unwrap()
            .iter()
            .map(|item| of(item, "listens") + of(item, "connections"))
            .sum::<usize>()
    };
    for (arguments, expected) in [
        (json!({"port": 8080}), 7),
        (json!({"port": 514}), 1),
        (json!({"port": 81}), 0),
        (json!({"state": "LISTEN"}), 4),
        (json!({"state": "time-wait"}), 1),
        (json!({"state": "close-wait"}), 1),
        (json!({"process": "PYTHON"}), 16),
        (json!({"process": "19003"}), 16),
        (json!({"process": "9003"}), 0),
        (json!({"service": "app"}), 16),
        (json!({"service": "system.slice"}), 16),
        (json!({"service": "nginx"}), 0),
        (json!({"remote": "192.0.2.1"}), 1),
        (json!({"remote": "192.0.2.0/24"}), 7),
        (json!({"remote": "2001:db8::/32"}), 2),
        (json!({"remote": "0.0.0.0/0", "port": 9090}), 2),
        (json!({"remote": "127.0.0.1", "port": 9090, "state": "established", "service": "app"}), 2),
    ] {
        assert_eq!(count(&arguments), expected, "{arguments}");
    }
    let (data, notes) = call(sockets(), "net_connections", json!({"port": 81})).unwrap();
    assert_eq!(
        (data, notes[0].as_str()),
        (json!([]), "none of 18 sockets is as asked for, in the machine's own network namespace")
    );
}

#[test]
fn what_no_filter_can_be_is_refused() {
    for (arguments, expected) in [
        (json!({"port": 0}), "INVALID_PORT"),
        (json!({"port": 65536}), "INVALID_PORT"),
        (json!({"state": "open"}), "INVALID_STATE"),
        (json!({"remote": "any"}), "INVALID_REMOTE"),
        (json!({"remote": "192.0.2.0/33"}), "INVALID_REMOTE"),
        (json!({"remote": "192.0.2.0/"}), "INVALID_REMOTE"),
        (json!({"remote": "db.example"}), "INVALID_REMOTE"),
        (json!({"process": " "}), "INVALID_ARGUMENTS"),
        (json!({"service": ""}), "INVALID_ARGUMENTS"),
        (json!({"port": "ssh"}), "INVALID_ARGUMENTS"),
    ] {
        assert_eq!(code(sockets(), "net_connections", arguments.clone()), expected, "{arguments}");
    }
}

#[test]
fn very_many_connections_are_counted_by_their_other_ends() {
    let mut text =
        "tcp LISTEN 0 5 0.0.0.0:443 0.0.0.0:* users:((\"nginx\",pid=9,fd=3),(\"nginx\",pid=8,fd=3))\n"
            .to_owned();
    for number in 0..3000 {
        let state = if number % 3 == 0 { "CLOSE-WAIT" } else { "ESTAB" };
        let remote = format!("198.51.100.{}:{}", number % 12, 1024 + number);
        text.push_str(&format!(
            "tcp {state} 0 0 192.0.2.10:443 {remote} users:((\"nginx\",pid=9,fd={number}))\n"
        ));
    }
    let target = FakeTarget::new()
        .answer(&["ss", "-Htunap"], 0, text, "")
        .file("/proc/8/stat", "8 (nginx) S 1 1 1 0 -1 0 0 0 0 0 5 0 9 9 20 0 3 0 12345 4096 25 1 1\n")
        .file("/proc/8/cgroup", "0::/system.slice/docker-0123456789abcdef.scope\n");
    let (data, notes) = call(target, "net_connections", json!({})).unwrap();
    assert_eq!(
        (&data[0]["pid"], &data[0]["shared_with"], &data[0]["listens"]),
        (&json!(8), &json!([9]), &json!(["tcp 0.0.0.0:443"]))
    );
    assert_eq!(data[0]["container"], "docker 0123456789abcdef");
    // The worker has ended before its files were read.
    assert_eq!((&data[1]["pid"], &data[1]["command"]), (&json!(9), &json!("[nginx]")));
    assert_eq!(data[1]["by_state"], json!({"close-wait": 1000, "established": 2000}));
    assert_eq!(data[1]["by_remote"][0], "198.51.100.0: 250");
    assert_eq!(data[1]["by_remote"][10], "2 others: 500");
    assert_eq!(notes, ["3001 sockets: 1000 close-wait, 2000 established, 1 listening"]);
}

#[test]
fn without_ss_the_host_says_so_and_a_table_is_not_guessed_at() {
    assert_eq!(code(FakeTarget::new(), "net_connections", json!({})), "NOT_RECORDED");
    let other = FakeTarget::new().answer(&["ss", "-Htunap"], 0, "Netid State Recv-Q\n", "");
    assert_eq!(code(other, "net_connections", json!({})), "UNEXPECTED_OUTPUT");
    let failed = FakeTarget::new().answer(&["ss", "-Htunap"], 255, "", "Cannot open netlink socket");
    assert_eq!(code(failed, "net_connections", json!({})), "COMMAND_FAILED");
    let none = FakeTarget::new().answer(&["ss", "-Htunap"], 0, "", "");
    assert_eq!(call(none, "net_connections", json!({})).unwrap().0, json!([]));
}
