use super::*;
use crate::{Groups, HostPattern, Inventory};
use host_openssh::config::HostAliases;

const HOSTS: &str = "{web: ['web[1:3]'], db: [db1, web3], all_web: [web, edge]}";

fn inventory(yaml: &str) -> Inventory {
    Inventory::load(&serde_yaml::from_str::<Groups>(yaml).unwrap(), &[]).unwrap()
}

fn listed(list: &[&str], inventory: &Inventory) -> Allowed {
    let list: Vec<_> = list.iter().map(|text| HostPattern::try_from((*text).to_owned()).unwrap()).collect();
    Allowed::listed(&list, true, inventory)
}

/// Makes the allowed hosts from aliases of `~/.ssh/config` and names of known_hosts.
fn known(aliases: &[&str], hosts: &[&str], local: bool, inventory: &Inventory) -> Allowed {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_hosts");
    let lines: String = hosts.iter().map(|host| format!("{host} ssh-ed25519 AAAA\n")).collect();
    std::fs::write(&path, lines).unwrap();
    let names = aliases.iter().map(|name| (*name).to_owned()).collect();
    Allowed::known(HostAliases { names, warnings: Vec::new() }, &[path], local, inventory)
}

fn expand(said: &[&str], inventory: &Inventory, allowed: &Allowed) -> Result<String, Problem> {
    let said: Vec<_> = said.iter().map(|word| (*word).to_owned()).collect();
    let named = inventory.expand(&said, allowed)?;
    Ok(named.into_iter().map(|named| named.name).collect::<Vec<_>>().join(" "))
}

#[test]
fn words_name_hosts_groups_patterns_and_all() {
    let inventory = inventory(HOSTS);
    let allowed = known(&["lab-a", "lab-b"], &["far.example", "web9"], true, &inventory);
    for (said, hosts) in [
        (&["web2"][..], "web2"),
        (&["web"], "web1 web2 web3"),
        (&["all_web"], "edge web1 web2 web3"),
        (&["db,web"], "db1 web3 web1 web2"),
        (&["web3", "web", "web3"], "web3 web1 web2"),
        (&[" web1 , db1 "], "web1 db1"),
        (&["far.example"], "far.example"),
        (&["lab-a,web9"], "lab-a web9"),
        (&["localhost"], "localhost"),
        (&["lab-?"], "lab-a lab-b"),
        (&["web[12]"], "web1 web2"),
        (&["web[!1]"], "web2 web3"),
        // This is a group, by its name.
        (&["*l_web"], "edge web1 web2 web3"),
        (&["w*"], "web1 web2 web3"),
        (&["all"], "web1 web2 web3 db1 edge"),
        (&["*"], "web1 web2 web3 db1 edge"),
    ] {
        assert_eq!(expand(said, &inventory, &allowed).unwrap(), hosts, "{said:?}");
    }
}

#[test]
fn what_was_said_of_a_host_itself_is_known() {
    let inventory = inventory(HOSTS);
    let allowed = known(&[], &[], true, &inventory);
    let named = inventory.expand(&["web".to_owned(), "web2".to_owned()], &allowed).unwrap();
    let explicit: Vec<_> = named.iter().map(|named| (named.name.as_str(), named.explicit)).collect();
    assert_eq!(explicit, [("web1", false), ("web2", true), ("web3", false)]);
}

#[test]
fn whoever_is_unknown_is_told_who_is_close() {
    let inventory = inventory(HOSTS);
    let allowed = known(&["gateway"], &["far.example"], true, &inventory);
    for (said, message, remedy) in [
        ("web4", "no host and no group is called web4", "Did you mean web, web1, web2?"),
        ("gatway", "no host and no group is called gatway", "Did you mean gateway?"),
        ("all_wb", "no host and no group is called all_wb", "Did you mean all_web?"),
        ("WEB1", "no host and no group is called WEB1", "Did you mean web1, web, web2?"),
        ("nothing-like-it", "no host and no group is called nothing-like-it", "`hosts` of the configuration"),
        ("x*", "no host and no group is called like x*", "Name a host or a group of the inventory"),
        ("far*", "no host and no group is called like far*", "Name them one by one: far.example"),
    ] {
        let problem = expand(&[said], &inventory, &allowed).unwrap_err();
        assert_eq!((problem.code.as_str(), problem.category), ("HOST_UNKNOWN", Category::NotFound), "{said}");
        assert!(problem.message.contains(message), "{said}: {}", problem.message);
        assert!(problem.remediation.concat().contains(remedy), "{said}: {:?}", problem.remediation);
    }
    let problem = expand(&["web1", "web4"], &inventory, &allowed).unwrap_err();
    assert_eq!(problem.code, "HOST_UNKNOWN");
}

#[test]
fn whoever_is_not_allowed_is_refused_with_what_an_operator_can_do() {
    let hosts = inventory(HOSTS);
    let allowed = listed(&["web1", "web2", "lab-*", "mail"], &hosts);
    for (said, message) in [
        ("web3", "web3 is not among the hosts that may be named"),
        ("other", "other is not among"),
        // A part of a group is never taken.
        ("web", "web3, which is in the group web, is not among"),
        ("web1,web3", "web3 is not among"),
        ("d*1", "db1, which is all that d*1 could mean, is not among"),
    ] {
        let problem = expand(&[said], &hosts, &allowed).unwrap_err();
        assert_eq!(
            (problem.code.as_str(), problem.category),
            ("HOST_NOT_ALLOWED", Category::Denied),
            "{said}"
        );
        assert!(problem.message.contains(message), "{said}: {}", problem.message);
        assert!(
            problem.remediation.concat().contains("ssh.allowed_hosts"),
            "{said}: {:?}",
            problem.remediation
        );
    }
    // These words stand for the hosts that may be named.
    assert_eq!(expand(&["all"], &hosts, &allowed).unwrap(), "web1 web2 mail");
    assert_eq!(expand(&["web?"], &hosts, &allowed).unwrap(), "web1 web2");
    assert_eq!(expand(&["lab-7,localhost"], &hosts, &allowed).unwrap(), "lab-7 localhost");
}

#[test]
fn this_machine_is_refused_where_the_configuration_says_so() {
    let inventory = inventory("{here: [localhost, web1]}");
    let allowed = known(&[], &["localhost"], false, &inventory);
    for said in ["localhost", "here", "local*"] {
        let problem = expand(&[said], &inventory, &allowed).unwrap_err();
        assert_eq!(problem.code, "HOST_NOT_ALLOWED", "{said}");
        assert!(problem.remediation.concat().contains("ssh.local"), "{:?}", problem.remediation);
    }
    assert_eq!(expand(&["all"], &inventory, &allowed).unwrap(), "web1");
}

#[test]
fn what_is_no_name_is_refused() {
    let inventory = inventory(HOSTS);
    let allowed = listed(&["*"], &inventory);
    for said in [
        "-oProxyCommand=id",
        "--",
        "",
        "web1,",
        ",",
        "web1;id",
        "web 1",
        "$(id)",
        "root@web1",
        "web1/..",
        "!web1",
        "web1:&db",
        "~web.*",
        "wéb1",
        "web\u{202e}",
        "web[01:20]",
        "web[",
        "-*",
        &"w".repeat(256),
        &"*".repeat(256),
    ] {
        let problem = expand(&[said], &inventory, &allowed).unwrap_err();
        assert_eq!(
            (problem.code.as_str(), problem.category),
            ("INVALID_ARGUMENTS", Category::Validation),
            "{said}"
        );
        assert!(!problem.message.contains('\u{202e}') && problem.message.len() < 400, "{said}");
    }
    assert_eq!(expand(&[], &inventory, &allowed).unwrap_err().code, "INVALID_ARGUMENTS");
    let many = "web1,".repeat(1_000) + "web1";
    assert!(expand(&[&many], &inventory, &allowed).unwrap_err().message.contains("found 1001"));
}

#[test]
fn a_call_is_for_a_thousand_hosts_at_most() {
    let inventory = inventory("{g: ['h[1:1000]'], more: [x]}");
    let allowed = known(&[], &[], true, &inventory);
    assert_eq!(expand(&["g", "h1", "h1000"], &inventory, &allowed).unwrap().split(' ').count(), 1_000);
    for said in [&["g", "x"][..], &["all"], &["*"], &["?*"]] {
        let problem = expand(said, &inventory, &allowed).unwrap_err();
        assert_eq!(problem.code, "TOO_MANY_HOSTS", "{said:?}");
    }
}

#[test]
fn a_group_that_ssh_knows_as_a_host_is_ambiguous() {
    let hosts = inventory(HOSTS);
    for allowed in [known(&["web"], &[], true, &hosts), known(&[], &["web"], true, &hosts)] {
        let problem = expand(&["web"], &hosts, &allowed).unwrap_err();
        assert_eq!(problem.code, "HOST_AMBIGUOUS");
        assert!(problem.remediation[0].contains("web1, web2, web3"), "{:?}", problem.remediation);
        assert_eq!(expand(&["all_web"], &hosts, &allowed).unwrap(), "edge web1 web2 web3");
    }
    // A list of the configuration means the group.
    assert_eq!(expand(&["web"], &hosts, &listed(&["web"], &hosts)).unwrap(), "web1 web2 web3");
}

#[test]
fn who_is_left_out_of_the_inventory_is_not_reached_in_another_way() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hosts");
    std::fs::write(&path, "[g]\nweb1 ansible_host='{{ ip }}'\nweb2\n[none]\nweb1\n").unwrap();
    let hosts = Inventory::read(&Groups::default(), &[path]).unwrap();
    for allowed in [known(&["web1"], &["web1"], true, &hosts), listed(&["web1", "web2"], &hosts)] {
        let problem = expand(&["web1"], &hosts, &allowed).unwrap_err();
        assert_eq!(problem.code, "HOST_UNKNOWN");
        assert!(problem.message.contains("ansible_host is a template"), "{}", problem.message);
        for said in ["g", "web*", "all"] {
            assert_eq!(expand(&[said], &hosts, &allowed).unwrap(), "web2", "{said}");
        }
        assert!(expand(&["none"], &hosts, &allowed).unwrap_err().message.contains("has no hosts"));
    }
}

#[test]
fn all_is_nobody_where_there_is_no_inventory() {
    let none = Inventory::default();
    let allowed = known(&["alias"], &["far.example"], true, &none);
    for said in ["all", "*"] {
        let problem = expand(&[said], &none, &allowed).unwrap_err();
        assert_eq!(problem.code, "HOST_UNKNOWN", "{said}");
        assert!(problem.remediation.concat().contains("`hosts` of the configuration"));
    }
    assert_eq!(expand(&["all"], &none, &listed(&["web1", "db1"], &none)).unwrap(), "db1 web1");
}
