//! Texts written by hand, after the examples of netplan.io 0.106 and after what cloud-init and installers write.

use super::*;

const STATIC: &str = "\
# the office
network:
  version: 2
  renderer: networkd
  ethernets:
    enp3s0:
      addresses:
        - 10.10.10.2/24   # ours
      nameservers:
        search: [mydomain, otherdomain]
        addresses: [10.10.10.1, 1.1.1.1]
      routes: 
        - to: default
          via: 10.10.10.1

        # the branch
        - to: 10.8.0.0/16
          via: 10.10.10.7
          metric: 50
    enp4s0:
      dhcp4: true
";

/// The items of lists stand as far left as their keys, and the definition has another name.
const INSTALLER: &str = "\
network:
    ethernets:
        id0:
            match:
                macaddress: '52:54:00:AB:cd:ef'
            set-name: enp3s0
            addresses:
            - 10.10.10.2/24
            - \"2001:db8::2/64\"
            routes:
            -   to: default
                via: 10.10.10.1
    version: 2
";

fn enp3s0() -> Netplan {
    Netplan::of("enp3s0", Some("52:54:00:AB:cd:ef"), &[STATIC.to_owned()])
}

fn route(to: &str, via: &str, metric: Option<u32>) -> Setting {
    Setting::Route(Route {
        to: Cidr::read(to).unwrap(),
        via: Some(via.parse().unwrap()),
        dev: "enp3s0".into(),
        src: None,
        metric,
        table: None,
        protocol: None,
        is_onlink: false,
    })
}

fn address(text: &str) -> Setting {
    Setting::Address(Cidr::read(text).unwrap())
}

#[test]
fn what_was_added_is_removed_again_byte_for_byte() {
    for text in [STATIC, INSTALLER] {
        let netplan = Netplan::of("enp3s0", Some("52:54:00:ab:cd:ef"), &[text.to_owned()]);
        for setting in [
            route("172.16.0.0/12", "10.10.10.9", None),
            route("0.0.0.0/0", "10.10.10.2", Some(7)),
            route("2001:db8:9::/48", "2001:db8::1", None),
            address("10.10.10.3/24"),
            address("2001:db8::3/64"),
        ] {
            let added = netplan.add(text, &setting).unwrap();
            assert_ne!(added, text);
            assert_eq!(netplan.remove(&added, &setting).unwrap().unwrap(), text, "{setting:?}");
            assert_eq!(netplan.remove(text, &setting).unwrap(), None, "{setting:?}");
        }
    }
}

#[test]
fn a_new_file_has_only_what_was_added() {
    let text = enp3s0().add("", &route("10.8.0.0/16", "10.10.10.7", Some(50))).unwrap();
    let expected = "network:\n  version: 2\n  ethernets:\n    enp3s0:\n      routes:\n        - to: 10.8.0.0/16\n          via: 10.10.10.7\n          metric: 50\n";
    assert_eq!(text, expected);
    let text = enp3s0().add(&text, &address("2001:db8::3/64")).unwrap();
    assert_eq!(text, format!("{expected}      addresses:\n        - \"2001:db8::3/64\"\n"));
    // The definition keeps its own name, by which it matches the interface.
    let netplan = Netplan::of("enp3s0", Some("52:54:00:ab:cd:ef"), &[INSTALLER.to_owned()]);
    let text = netplan.add("", &address("10.10.10.3/24")).unwrap();
    assert_eq!(
        text,
        "network:\n  version: 2\n  ethernets:\n    id0:\n      addresses:\n        - 10.10.10.3/24\n"
    );
    let nobody = Netplan::of("enp3s0", None, &[]);
    assert_eq!(nobody.add("", &address("10.10.10.3/24")).unwrap_err().code, "FORM_NOT_SUPPORTED");
}

#[test]
fn a_setting_is_found_and_the_rest_stays() {
    let gone = "        - to: default\n          via: 10.10.10.1\n\n        # the branch\n";
    let left = enp3s0().remove(STATIC, &route("0.0.0.0/0", "10.10.10.1", Some(100))).unwrap().unwrap();
    // What stands between two items goes with the first.
    assert_eq!(left, STATIC.replace(gone, ""));
    let left = enp3s0().remove(STATIC, &route("10.8.0.0/16", "10.10.10.7", Some(50))).unwrap().unwrap();
    let item = "        - to: 10.8.0.0/16\n          via: 10.10.10.7\n          metric: 50\n";
    assert_eq!(left, STATIC.replace(item, ""));
    let left = enp3s0().remove(STATIC, &address("10.10.10.2/24")).unwrap().unwrap();
    assert_eq!(left, STATIC.replace("      addresses:\n        - 10.10.10.2/24   # ours\n", ""));
    let left = enp3s0().remove(INSTALLER, &address("2001:db8::2/64")).unwrap().unwrap();
    assert_eq!(left, INSTALLER.replace("            - \"2001:db8::2/64\"\n", ""));
    assert_eq!(enp3s0().remove(STATIC, &route("10.8.0.0/16", "10.10.10.7", None)).unwrap(), None);
}

#[test]
fn servers_are_replaced_where_they_stand() {
    let new =
        Dns { servers: vec!["192.0.2.9".into(), "2001:db8::9".into()], search: vec!["a.example".into()] };
    let text = enp3s0().set_dns(STATIC, &new).unwrap();
    let expected = STATIC
        .replace("[mydomain, otherdomain]", "[a.example]")
        .replace("[10.10.10.1, 1.1.1.1]", "[192.0.2.9, \"2001:db8::9\"]");
    assert_eq!(text, expected);
    assert_eq!(enp3s0().dns(&text), new);
    let text = enp3s0().set_dns(INSTALLER, &new).unwrap();
    assert_eq!(enp3s0().dns(&text), new);
    assert!(
        text.contains("            nameservers:\n              addresses:\n                - 192.0.2.9\n"),
        "{text}"
    );
    assert_eq!(enp3s0().dns(STATIC).servers, ["10.10.10.1", "1.1.1.1"]);
}

#[test]
fn what_has_another_form_is_refused_and_not_guessed() {
    let flow = "network: {version: 2, ethernets: {enp3s0: {addresses: [10.0.0.2/8]}}}\n";
    let routes = "network:\n  ethernets:\n    enp3s0:\n      routes: [{to: default, via: 10.0.0.1}]\n";
    let long = "network:\n  ethernets:\n    enp3s0:\n      addresses: [10.0.0.2/8,\n        10.0.0.3/8]\n";
    let anchor = "x: &a [10.0.0.2/8]\nnetwork:\n  ethernets:\n    enp3s0:\n      addresses: *a\n";
    for (text, setting) in [
        (flow, address("10.0.0.4/8")),
        (routes, route("10.8.0.0/16", "10.0.0.7", None)),
        (long, address("10.0.0.4/8")),
        (anchor, address("10.0.0.4/8")),
    ] {
        assert_eq!(enp3s0().add(text, &setting).unwrap_err().code, "FORM_NOT_SUPPORTED", "{text}");
    }
    assert_eq!(enp3s0().add("a: [", &address("10.0.0.4/8")).unwrap_err().code, "CONFIG_INVALID");
    assert!(!enp3s0().holds("a: [") && !enp3s0().holds("") && enp3s0().holds(flow));
    // Another interface's definition isn't taken for this one's.
    assert!(!enp3s0().holds("network:\n  ethernets:\n    enp3s0:\n      match:\n        name: enp9s0\n"));
}

#[test]
fn what_was_the_only_one_leaves_no_key_without_a_value() {
    // netplan 0.106 refuses a definition whose key has no value.
    for setting in [route("10.8.0.0/16", "10.10.10.7", None), address("10.10.10.3/24")] {
        let added = enp3s0().add("", &setting).unwrap();
        let left = enp3s0().remove(&added, &setting).unwrap().unwrap();
        assert_eq!(left, "network:\n  version: 2\n  ethernets:\n    enp3s0: {}\n");
        assert!(enp3s0().holds(&left));
        assert_eq!(enp3s0().add(&left, &setting).unwrap(), added);
    }
    let text = "network:\n  ethernets:\n    enp3s0:   # ours\n      addresses: [10.0.0.2/8]\n";
    let left = enp3s0().remove(text, &address("10.0.0.2/8")).unwrap().unwrap();
    assert_eq!(left, "network:\n  ethernets:\n    enp3s0: {}   # ours\n");
    let added = enp3s0().add(&left, &address("10.0.0.2/8")).unwrap();
    assert_eq!(added, text.replace(" [10.0.0.2/8]", "\n        - 10.0.0.2/8"));
    let netplan = Netplan::of("enp3s0", Some("52:54:00:ab:cd:ef"), &[INSTALLER.to_owned()]);
    for search in [vec![], vec!["a.example".to_owned()]] {
        let set = netplan.set_dns(INSTALLER, &Dns { servers: vec!["192.0.2.9".into()], search }).unwrap();
        assert_eq!(netplan.set_dns(&set, &Dns::default()).unwrap(), INSTALLER);
    }
}

#[test]
fn a_vlan_and_a_bridge_are_told_from_the_interface_below_by_their_names() {
    let below = "network:\n  ethernets:\n    id0:\n      match:\n        macaddress: 52:54:00:ab:cd:ef\n      addresses: [10.0.0.2/8]\n";
    let above = "  vlans:\n    enp3s0.10:\n      id: 10\n      link: id0\n      addresses: [192.0.2.2/24]\n  bridges:\n    br0:\n      interfaces: [id0]\n      addresses: [198.51.100.2/24]\n";
    let (one, other) = (below.to_owned(), format!("network:\n{above}"));
    for files in [vec![format!("{below}{above}")], vec![one.clone(), other.clone()], vec![other, one]] {
        for (name, own) in
            [("enp3s0", "10.0.0.2/8"), ("enp3s0.10", "192.0.2.2/24"), ("br0", "198.51.100.2/24")]
        {
            let netplan = Netplan::of(name, Some("52:54:00:AB:CD:EF"), &files);
            let holding: Vec<&String> = files.iter().filter(|text| netplan.holds(text)).collect();
            assert_eq!(holding.len(), 1, "{name}");
            let added = netplan.add(holding[0], &address("203.0.113.2/24")).unwrap();
            assert_eq!(added, holding[0].replace(own, &format!("{own}, 203.0.113.2/24")), "{name}");
            assert_eq!(netplan.remove(&added, &address("203.0.113.2/24")).unwrap().unwrap(), *holding[0]);
        }
    }
}
