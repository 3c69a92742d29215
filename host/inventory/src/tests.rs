//! Tests of inventories. The files of `recorded/` are made up. Each has the output of `ansible-inventory -i FILE
//! --list`, of the version in `recorded/version.txt` without any configuration of Ansible.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use serde_json::Value as Json;

use super::*;

fn groups(yaml: &str) -> Groups {
    serde_yaml::from_str(yaml).unwrap()
}

/// Reads these bytes as an inventory, in a file of this name.
fn file(name: &str, bytes: &[u8]) -> Result<Inventory, InventoryError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    fs::write(&path, bytes).unwrap();
    Inventory::read(&Groups::default(), &[path])
}

fn ini(text: &str) -> Inventory {
    file("hosts.ini", text.as_bytes()).unwrap()
}

fn configured(yaml: &str, text: &str) -> Result<Inventory, InventoryError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hosts.ini");
    fs::write(&path, text).unwrap();
    Inventory::read(&groups(yaml), &[path])
}

/// Returns an error with its sources, as it is shown.
fn said(error: InventoryError) -> String {
    format!("{:#}", anyhow::Error::from(error))
}

fn recorded(name: &str) -> (PathBuf, Json) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/recorded").join(name);
    let is_source = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("hosts") || name == "inventory"
    };
    let mut all = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let source = all.find(is_source).unwrap();
    let list = fs::read_to_string(directory.join("list.json")).unwrap();
    (source, serde_json::from_str(&list).unwrap())
}

/// Returns the entry that ansible-core's ssh connection takes from a host's variables.
fn meant(name: &str, variables: &Json) -> Entry {
    let set = |names: [&str; 2]| {
        let of = |name: &&str| match &variables[*name] {
            Json::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            Json::Number(number) => Some(number.to_string()),
            _ => None,
        };
        names.iter().find_map(of)
    };
    let is_local = variables["ansible_connection"] == "local";
    let mut entry = Entry { name: name.to_owned(), is_local, ..Entry::default() };
    if !is_local {
        entry.hostname = set(["ansible_ssh_host", "ansible_host"]);
        entry.port = set(["ansible_ssh_port", "ansible_port"]).map(|port| port.parse().unwrap());
        entry.user = set(["ansible_ssh_user", "ansible_user"]);
        entry.identity_file = set(["ansible_ssh_private_key_file", "ansible_private_key_file"]);
    }
    entry
}

fn hosts_below(list: &Json, group: &str) -> BTreeSet<String> {
    let names = |what: &str| {
        let all = list[group][what].as_array().cloned().unwrap_or_default();
        all.into_iter().map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let children = names("children");
    names("hosts").into_iter().chain(children.iter().flat_map(|child| hosts_below(list, child))).collect()
}

#[test]
fn inventories_are_read_as_ansible_reads_them() {
    for name in [
        "bare_ini",
        "bare_yaml",
        "beside",
        "crlf",
        "directory",
        "example",
        "json",
        "later",
        "latin",
        "precedence",
        "ranges",
        "values",
        "yaml",
    ] {
        let (source, list) = recorded(name);
        let read = Inventory::read(&Groups::default(), &[source])
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(read.warnings(), [""; 0], "{name}");
        let all = hosts_below(&list, "all");
        let expected: BTreeMap<_, _> =
            all.iter().map(|host| (host.clone(), meant(host, &list["_meta"]["hostvars"][host]))).collect();
        let found: BTreeMap<_, _> = read.entries().map(|entry| (entry.name.clone(), entry.clone())).collect();
        assert_eq!(found, expected, "{name}");
        for (group, members) in read.groups() {
            let members: BTreeSet<_> = members.into_iter().map(str::to_owned).collect();
            assert_eq!(members, hosts_below(&list, group), "{name}: {group}");
        }
        let groups: BTreeSet<_> = read.groups().map(|(group, _)| group).collect();
        for group in list.as_object().unwrap().keys().filter(|key| !["_meta", "all"].contains(&key.as_str()))
        {
            assert!(groups.contains(group.as_str()), "{name}: {group} is missing");
        }
    }
}

/// Ansible warns of a key that occurs twice, and takes the last one. A merge does the same.
#[test]
fn a_mapping_may_take_its_members_from_another() {
    let (source, list) = recorded("merged");
    let read = Inventory::read(&Groups::default(), &[source]).unwrap();
    for host in ["a", "b", "c"] {
        assert_eq!(*read.entry(host).unwrap(), meant(host, &list["_meta"]["hostvars"][host]));
    }
}

#[test]
fn the_configurations_groups_have_hosts_ranges_and_groups() {
    let yaml = "{web: ['web[1:3]', web9], db: [db1, web9], all_web: [web, more, localhost], everything: [all_web, db]}";
    let read = configured(yaml, "[more]\nmore1 ansible_user=ada\nweb1 ansible_port=2222\n").unwrap();
    let members = |group: &str| read.members(group).unwrap().join(" ");
    assert_eq!(members("web"), "web1 web2 web3 web9");
    assert_eq!(members("all_web"), "localhost web1 web2 web3 web9 more1");
    assert_eq!(members("everything"), "localhost web1 web2 web3 web9 more1 db1");
    assert_eq!(members("all"), "more1 web1 web2 web3 web9 db1 localhost");
    assert_eq!(read.members("web1"), None);
    assert_eq!(read.entry("web1").unwrap().port, Some(2222));
    assert_eq!(read.entry("web2"), Some(&Entry { name: "web2".to_owned(), ..Entry::default() }));
    assert!(read.entry("localhost").unwrap().is_local);
    let names: Vec<_> = read.groups().map(|(name, _)| name).collect();
    assert_eq!(names, ["all_web", "db", "everything", "more", "web"]);
}

/// These groups would change who is reached as whom, though Ansible doesn't know them.
#[test]
fn the_configurations_groups_change_nothing_that_ansible_sets() {
    let text = "one ansible_host=10.0.0.1\n[a]\ntwo\n[b]\ntwo\n[a:vars]\nansible_user=a\n[b:vars]\nansible_user=b\n\
                [ungrouped:vars]\nansible_port=1\n[all:vars]\nansible_ssh_private_key_file=/k\n";
    let read = configured("{deep: [a], deeper: [deep, one, new]}", text).unwrap();
    assert_eq!(read.entry("two").unwrap().user.as_deref(), Some("b"));
    assert_eq!(read.entry("one").unwrap().port, Some(1));
    assert_eq!(read.entry("new"), Some(&Entry { name: "new".to_owned(), ..Entry::default() }));
    assert_eq!(read.members("ungrouped").unwrap(), ["one"]);
}

#[test]
fn a_word_is_one_thing() {
    for (yaml, text, why) in [
        ("{a: [a]}", "", "groups are in each other, which has no end: a > a"),
        ("{a: [b], b: [c], c: [a], d: [a]}", "", "a > b > c > a"),
        ("{a: [all]}", "", "all > a > all"),
        ("{web: [web1]}", "[web]\nweb2\n", "a group web"),
        ("{web: [db], all_web: [web]}", "[db]\nweb\ndb1\n", "web is the name of a host and of a group"),
        ("{}", "[web]\nweb\nweb2\n", "web is the name of a host and of a group"),
        ("{}", "web\n[web]\n", "web is the name of a host and of a group"),
        ("{}", "[web]\nweb ansible_connection=docker\n", "web is the name of a host and of a group"),
        ("{}", "all\n", "all is the name of a host"),
        ("{}", "[localhost]\nweb\n", "localhost is the name of a host"),
        ("{}", "[a:children]\nb\n[b:children]\na\n", "a > b > a"),
        ("{}", "[a:children]\na\n", "a > a"),
        ("{}", "[a:children]\nall\n", "all > a > all"),
        ("{}", "[\u{202e}:children]\n\u{202e}\n", "\\u{202e} > \\u{202e}"),
    ] {
        let error = said(configured(yaml, text).unwrap_err());
        assert!(error.contains(why), "{yaml} {text:?}: {error}");
    }
}

#[test]
fn a_group_that_is_one_host_may_be_called_like_it() {
    let read = ini("[web]\nweb ansible_host=10.0.0.1\n[all_web:children]\nweb\n");
    assert_eq!(read.members("all_web").unwrap(), ["web"]);
    assert_eq!(read.entry("web").unwrap().hostname.as_deref(), Some("10.0.0.1"));
}

#[test]
fn what_is_no_ini_is_refused_with_its_line() {
    for (text, line, why) in [
        ("[web\nweb1\n", 1, "a range that ends"),
        ("\n[web ]\n", 2, "expected a section"),
        ("[web:host]\n", 1, "expected a section"),
        ("[web:]\n", 1, "expected a section"),
        ("[a:b:c]\n", 1, "expected a section"),
        ("[]\n", 1, "expected a section"),
        ("[web] web1\n", 1, "expected a range as"),
        ("[web:vars]\nansible_user=x\n", 1, "[web:vars] is about a group that isn't there"),
        ("[web:children]\ndb\n", 2, "[web:children] names db, which is no group"),
        ("[web:children]\na b\n[a]\n", 2, "the name of a group"),
        ("[web:vars]\nuser\n[web]\n", 2, "a variable as key=value"),
        ("[web:vars]\nansible_group_priority=high\n[web]\n", 2, "a whole number"),
        ("web1 ansible_user\n", 1, "nothing but variables as key=value"),
        ("web1 ansible_user = ada\n", 1, "nothing but variables as key=value"),
        ("web1 ; comment\n", 1, "nothing but variables as key=value"),
        ("web1 a='b\n", 1, "a quote has no end"),
        ("web1 a=b\\\n", 1, "a backslash"),
        ("''\n", 1, "the name of a host"),
        ("---\nall:\n", 1, "--- begins YAML"),
        ("web[1:1000000000]\n", 1, "at most 10000 hosts"),
        ("web1:\n", 1, "a port behind the colon"),
        ("web1:70000\n", 1, "1 to 65535"),
        ("# a\u{2028}web1\n", 1, "control characters"),
        ("# a\rweb1\n", 1, "control characters"),
        ("web1\u{85}web2\n", 1, "control characters"),
    ] {
        let error = said(file("hosts.ini", text.as_bytes()).unwrap_err());
        assert!(
            error.contains(&format!("hosts.ini, line {line}: ")) && error.contains(why),
            "{text:?}: {error}"
        );
    }
    let error = said(file("hosts.ini", b"web1\nweb2 a=\xff\n").unwrap_err());
    assert!(error.contains("hosts.ini, line 2: expected UTF-8"), "{error}");
}

#[test]
fn what_is_no_yaml_inventory_is_refused() {
    for (text, why) in [
        ("", "found nothing"),
        ("---\n", "found nothing"),
        ("web1\n", "expected a mapping"),
        ("[web1]\n", "expected a mapping"),
        ("all: [web1]\n", "expected hosts:, children: or vars: beneath it"),
        ("all: web1\n", "expected hosts:, children: or vars: beneath it"),
        ("all:\n  hosts: [web1]\n", "expected names beneath hosts"),
        ("all:\n  hosts:\n    web1: text\n", "expected variables beneath it"),
        ("all:\n  hosts:\n    1:\n", "to be text"),
        ("all:\n  hosts:\n    'web[1:2':\n", "a range that ends"),
        ("all:\n  children:\n    true:\n", "to be text"),
        ("all:\n  web1:\n    a: b\n", "expected hosts, children or vars"),
        ("all:\n  host:\n    web1:\n", "expected hosts, children or vars"),
        ("plugin: amazon.aws.aws_ec2\nregions: [x]\n", "configures a plugin"),
        ("all:\n  hosts:\n    web1:\n    web1:\n", "duplicate"),
        ("all:\n  hosts:\n\tweb1:\n", "hosts.yml, line "),
        ("a: {children: {b: {children: {a: }}}}\n", "b > a > b"),
        ("all: *x\n", "hosts.yml"),
        ("a:\n---\nb:\n", "hosts.yml"),
        ("web: !vault x\n", "expected hosts:, children: or vars: beneath it"),
    ] {
        let error = said(file("hosts.yml", text.as_bytes()).unwrap_err());
        assert!(
            error.contains(why) || error.contains(&why.replace("b > a > b", "a > b > a")),
            "{text:?}: {error}"
        );
    }
    let error = said(file("hosts.yml", b"all:\n  vars:\n    a: \xff\n").unwrap_err());
    assert!(error.contains("hosts.yml, line 3: expected UTF-8"), "{error}");
    // This nests deeply, and the next has aliases that would grow without end.
    let deep = "{a: ".repeat(300) + &"}".repeat(300);
    assert!(file("hosts.yml", deep.as_bytes()).is_err());
    let laughs: String = (1..40).map(|n| format!("a{n}: &a{n} {{x: *a{0}, y: *a{0}}}\n", n - 1)).collect();
    assert!(file("hosts.yml", format!("a0: &a0 {{}}\n{laughs}").as_bytes()).is_err());
}

#[test]
fn only_files_of_known_kinds_are_read_and_no_program_is_started() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hosts");
    let read = || Inventory::read(&Groups::default(), std::slice::from_ref(&path)).map_err(said);
    assert!(read().unwrap_err().contains("can't be read: No such file"));
    let mark = directory.path().join("started");
    fs::write(&path, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    let error = read().unwrap_err();
    assert!(error.contains("is executable: a program that prints an inventory is never started"), "{error}");
    assert!(!mark.exists());
    fs::write(&path, "web1\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o602)).unwrap();
    assert!(read().unwrap_err().contains("everybody can write to it"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(read().unwrap().entry("web1").is_some());
    fs::write(&path, "$ANSIBLE_VAULT;1.1;AES256\n6162\n").unwrap();
    assert!(read().unwrap_err().contains("encrypted by ansible-vault"));
    fs::File::create(&path).unwrap().set_len(5 << 20).unwrap();
    assert!(read().unwrap_err().contains("larger than"));
    fs::remove_file(&path).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    assert!(read().unwrap_err().contains("not a regular file"));
    assert!(said(file("hosts.toml", b"[web]\n").unwrap_err()).contains("found TOML"));
}

#[test]
fn a_directory_is_read_without_its_programs_which_is_told() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a"), "web1\n").unwrap();
    let program = directory.path().join("b.sh");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let paths = [directory.path().to_owned()];
    let read = Inventory::read(&Groups::default(), &paths).unwrap();
    assert!(read.entry("web1").is_some());
    assert!(read.warnings()[0].contains("b.sh is left out of the inventory: it is a program"));
    // One file that can't be read would make incomplete groups.
    fs::write(directory.path().join("c"), "web2 x\n").unwrap();
    assert!(said(Inventory::read(&Groups::default(), &paths).unwrap_err()).contains("c, line 1: "));
}

#[test]
fn a_file_may_begin_with_a_byte_order_mark() {
    let marked = |text: &str| format!("\u{feff}{text}").into_bytes();
    assert!(file("hosts.ini", &marked("[web]\nweb1\n")).unwrap().members("web").is_some());
    assert!(file("hosts.yml", &marked("web:\n  hosts:\n    web1:\n")).unwrap().members("web").is_some());
    assert!(file("hosts", &marked("web:\n  hosts:\n    web1:\n")).unwrap().members("web").is_some());
}

#[test]
fn who_is_reached_in_another_way_is_left_out_with_a_warning() {
    let read = ini("[web]\nweb1\nweb[2:9] ansible_connection=docker\nweb10 ansible_host='{{ ip }}'\n\
                    'my web' ansible_port=1\nwéb\nno\u{202e}de\n[a/b]\nweb1\n[empty]\n[left]\nweb2\n");
    assert_eq!(read.members("web").unwrap(), ["web1"]);
    assert_eq!(read.members("left").unwrap(), [""; 0]);
    assert_eq!(read.members("a/b"), None);
    assert_eq!(read.entry("web2"), None);
    let all = read.warnings().join("\n");
    for expected in [
        "web2, web3, web4, web5, web6 and 3 more are left out of the inventory: ansible_connection is \"docker\"",
        "hosts.ini:3).",
        "web10 is left out of the inventory: ansible_host is a template",
        "\"my web\" is not a host's name",
        "The group \"a/b\" can't be named",
        "\"no\\\\u{202e}de\" is not a host's name",
    ] {
        assert!(all.contains(expected), "{expected}: {all}");
    }
    // If another file says ssh for the same host, the last value counts.
    let read = ini("a ansible_connection=winrm\n[g]\na ansible_connection=ssh\n");
    assert!(read.entry("a").is_some() && read.warnings().is_empty());
}

#[test]
fn what_is_not_followed_is_told_once_and_no_secret_is_kept() {
    const SECRET: &str = "hunter2";
    let text = "a ansible_password=hunter2 ansible_ssh_common_args='-J hunter2' own_secret=hunter2\n\
                b ansible_password=hunter2 ansible_become_password=hunter2\n";
    let read = ini(text);
    assert_eq!(read.warnings().len(), 2, "{:?}", read.warnings());
    let all = read.warnings().join("\n");
    assert!(all.contains("ansible_password, ansible_become_password (first in "), "{all}");
    assert!(all.contains("ansible_ssh_common_args (first in "), "{all}");
    assert!(!format!("{read:?}").contains(SECRET));
    let yaml = "all:\n  vars: {ansible_ssh_pass: hunter2, other: hunter2}\n  hosts:\n    a:\n      \
                ansible_user: !vault |\n        hunter2\n";
    let read = file("hosts.yml", yaml.as_bytes()).unwrap();
    assert!(read.warnings().join(" ").contains("ansible_user is encrypted by ansible-vault"));
    assert!(!format!("{read:?}").contains(SECRET));
    for (name, text) in [
        ("hosts.ini", "a ansible_password=x hunter2\n"),
        ("hosts.ini", "a ansible_password='hunter2\n"),
        ("hosts.ini", "a ansible_password=x\\\n"),
        ("hosts.ini", "[a]\n[a:vars]\nhunter2\n"),
        ("hosts.yml", "all:\n  vars:\n    p: \"hunter2\n"),
        ("hosts.yml", "all:\n  vars:\n    p: hunter2: hunter2\n"),
        ("hosts.yml", "all:\n  vars: hunter2\n  x\n"),
        ("hosts.yml", "all:\n  vars: {p: !!int hunter2}\n"),
        ("hosts.yml", "all:\n  vars: {p: !!null 'hunter2'}\n"),
        ("hosts.yml", "all:\n  vars: [hunter2]\n"),
        ("hosts.yml", "all:\n  hosts:\n    a: hunter2\n"),
        ("hosts.yml", "all:\n  vars:\n    p: 'hunter2'\n    p: 'hunter2'\n"),
    ] {
        let error = file(name, text.as_bytes()).unwrap_err();
        assert!(!format!("{error:?} {error}").contains(SECRET), "{text}: {error}");
    }
}

#[test]
fn variables_beside_an_inventory_that_cannot_be_read_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hosts.ini");
    fs::write(&path, "[web]\nweb1\n").unwrap();
    let vars = directory.path().join("group_vars");
    fs::create_dir(&vars).unwrap();
    let read = || Inventory::read(&Groups::default(), std::slice::from_ref(&path));
    let encrypted = "$ANSIBLE_VAULT;1.1;AES256\n61\n";
    fs::write(vars.join("web.yml"), encrypted).unwrap();
    assert!(read().unwrap().warnings()[0].contains("web.yml is encrypted by ansible-vault"));
    for (text, why) in [("- a\n", "expected a mapping"), ("a: [\n", "web.yml")] {
        fs::write(vars.join("web.yml"), text).unwrap();
        assert!(said(read().unwrap_err()).contains(why), "{text}");
    }
    fs::write(vars.join("web.yml"), "ansible_port: 2222\n").unwrap();
    fs::write(vars.join("nobody.yml"), "- a\n").unwrap();
    assert_eq!(read().unwrap().entry("web1").unwrap().port, Some(2222));
}

#[test]
fn what_is_too_much_is_refused() {
    let ranges = "[g]\na[1:9999]\n".repeat(21);
    assert!(said(file("hosts.ini", ranges.as_bytes()).unwrap_err()).contains("at most 200000 hosts"));
    let groups: String = (0..5_000).map(|n| format!("[g{n}]\n")).collect();
    assert!(said(file("hosts.ini", groups.as_bytes()).unwrap_err()).contains("at most 5000 groups"));
    // This is the deepest nesting. Reading it doesn't recurse.
    let chain: String = (0..4_990).map(|n| format!("[g{n}:children]\ng{}\n", n + 1)).collect();
    let read = ini(&format!("{chain}[g4990]\nhost\n[g0:vars]\nansible_user=ada\n"));
    assert_eq!(read.members("g0").unwrap(), ["host"]);
    assert_eq!(read.entry("host").unwrap().user.as_deref(), Some("ada"));
}

proptest! {
    #[test]
    fn no_ini_makes_it_panic(text in r"(\[?[a-c:\[\]]{0,6}(children|vars)?\]?( ?[a-c]=['\x22a-c#\\]{0,4}){0,2}\n){0,8}") {
        let mut collected = Collected::new();
        if super::ini::read(Path::new("x"), text.as_bytes(), &mut collected).is_ok() {
            _ = Inventory::of(collected);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        _ = super::ini::read(Path::new("x"), &bytes, &mut Collected::new());
        if let Ok(text) = std::str::from_utf8(&bytes) {
            _ = super::yaml::read(Path::new("x"), text, &mut Collected::new());
        }
    }
}
