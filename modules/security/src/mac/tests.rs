use linux_sysadmin_sdk::testkit::FakeTarget;
use serde_json::{Value, json};

use super::*;

/// Written by hand in the format of the kernel's audit log (auditd 3.0) for SELinux.
const AUDIT: &str = r#"type=DAEMON_START msg=audit(1795820000.100:1): op=start ver=3.0.9
type=AVC msg=audit(1795820001.100:10): avc:  denied  { name_connect } for  pid=2940 comm="httpd" dest=3306 scontext=system_u:system_r:httpd_t:s0 tcontext=system_u:object_r:mysqld_port_t:s0 tclass=tcp_socket permissive=0
type=AVC msg=audit(1795820002.100:11): avc:  denied  { name_bind } for  pid=2941 comm="httpd" src=8099 scontext=system_u:system_r:httpd_t:s0 tcontext=system_u:object_r:unreserved_port_t:s0 tclass=tcp_socket permissive=0
type=AVC msg=audit(1795820003.100:12): avc:  denied  { getattr } for  pid=2942 comm="httpd" path="/var/www/a.html" dev="vda1" ino=12 scontext=system_u:system_r:httpd_t:s0 tcontext=unconfined_u:object_r:default_t:s0 tclass=file permissive=0
type=AVC msg=audit(1795820004.100:13): avc:  denied  { read } for  pid=2942 comm="x" name=2F612062 dev="vda1" ino=12 scontext=system_u:system_r:x_t:s0 tcontext=unconfined_u:object_r:etc_t:s0 tclass=file permissive=0
"#;

/// Written by hand in the format in which the kernel tells the journal about AppArmor.
const APPARMOR: &str = r#"audit: type=1400 audit(1795820005.200:20): apparmor="DENIED" operation="open" profile="/usr/sbin/cupsd" name="/etc/x/4711/a" pid=4711 comm="cupsd" requested_mask="r" denied_mask="r" fsuid=0 ouid=0
audit: type=1400 audit(1795820006.200:21): apparmor="DENIED" operation="open" profile="/usr/sbin/cupsd" name="/etc/x/12/a" pid=12 comm="cupsd" requested_mask="r" denied_mask="r" fsuid=0 ouid=0
audit: type=1400 audit(1795820006.200:21): apparmor="DENIED" operation="open" profile="/usr/sbin/cupsd" name="/etc/x/12/a" pid=12 comm="cupsd" requested_mask="r" denied_mask="r" fsuid=0 ouid=0
audit: type=1400 audit(1795820007.200:22): apparmor="STATUS" operation="profile_load" profile="unconfined" name="x" pid=1 comm="apparmor_parser"
audit: type=1400 audit(1795820008.200:23): apparmor="DENIED" operation="capable" class="cap" profile="/usr/sbin/cups-browsed" pid=5 comm="cups-browsed" capability=23  capname="sys_nice"
"#;

fn journal() -> Vec<&'static str> {
    let line = JOURNAL.command();
    let mut argv = vec!["journalctl".to_owned()];
    argv.extend(line.args);
    argv.into_iter().map(|word| &*word.leak()).collect()
}

fn host(system: &str, mode: Option<&str>, said: &str) -> FakeTarget {
    let mut host = FakeTarget::new();
    host.distro.mac_system = system.into();
    host.distro.mac_mode = mode.map(str::to_owned);
    host.answer(&journal(), 0, said, "")
}

fn call(host: FakeTarget) -> (Value, String) {
    let module = tool(Module::new("m", "1", "security", ""));
    let (data, reply) = host.call(&module, "sec_mac_status", json!({})).unwrap();
    (data, reply.summary.unwrap())
}

#[test]
fn selinuxs_denials_come_with_what_would_allow_them() {
    let host = host("selinux", Some("enforcing"), "")
        .file(AUDIT_LOG, AUDIT)
        .file(SELINUX_CONFIG, "# SELINUX=disabled\nSELINUX=enforcing\n");
    let (data, summary) = call(host);
    assert_eq!(summary, "selinux enforcing; 4 denials within a week");
    let denials = data["denials"].as_array().unwrap();
    let of = |what: &str| denials.iter().find(|one| one["what"].as_str().unwrap().starts_with(what)).unwrap();
    assert_eq!(
        of("name_connect")["mend"]["arguments"]["argv"],
        json!(["setsebool", "-P", "httpd_can_network_connect_db", "on"])
    );
    assert_eq!(
        of("name_bind")["mend"]["arguments"]["argv"],
        json!(["semanage", "port", "-a", "-t", "http_port_t", "-p", "tcp", "8099"])
    );
    assert_eq!(of("getattr")["mend"]["arguments"]["argv"], json!(["restorecon", "-v", "/var/www/a.html"]));
    let plain = of("read");
    assert_eq!((plain["what"].as_str().unwrap(), plain.get("mend")), ("read /a b (file etc_t)", None));
    assert!(data.get("findings").is_none());
}

#[test]
fn apparmors_denials_are_folded_and_name_their_file() {
    let host = host("apparmor", Some("enforcing"), APPARMOR)
        .file("/etc/apparmor.d/usr.sbin.cupsd", "")
        .file(APPARMOR_PROFILES, "/usr/sbin/cupsd (enforce)\nman_groff (enforce)\nx (complain)\n");
    let (data, _) = call(host);
    assert_eq!(data["profiles"], "2 enforce, 1 complain");
    let first = &data["denials"][0];
    assert_eq!((first["count"].as_u64(), first["subject"].as_str()), (Some(2), Some("/usr/sbin/cupsd")));
    assert_eq!(first["last"], "2026-11-27T22:53:26Z");
    assert!(first["hint"].as_str().unwrap().contains("local/usr.sbin.cupsd"));
    assert_eq!(data["denials"][1]["what"], "capable sys_nice");
}

#[test]
fn fifty_thousand_denials_are_a_few_lines() {
    let line = |at: usize| APPARMOR.lines().next().unwrap().replace(":20)", &format!(":{at})")) + "\n";
    let many: String = (0..50_000).map(line).collect();
    let (data, _) = call(host("apparmor", Some("enforcing"), "").file(AUDIT_LOG, many));
    assert_eq!(data["denials"].as_array().unwrap().len(), 1);
    assert!(data["unseen"].to_string().contains("before the last"), "{data}");
    assert!(data.to_string().len() < 1500, "{data}");
}

#[test]
fn fifty_thousand_denials_that_have_nothing_in_common_are_bounded() {
    // The names differ in a letter, since numbers in them are folded, and each is as long as a path may be.
    let letters = |at: usize| -> String {
        (0..4).map(|place| char::from(b'a' + u8::try_from(at / 26_usize.pow(place) % 26).unwrap())).collect()
    };
    let line = |at: usize| {
        let name = format!("/{}/{}", letters(at), "x".repeat(if at.is_multiple_of(2) { 10 } else { 4000 }));
        format!(
            "audit: type=1400 audit(1795820005.200:{at}): apparmor=\"DENIED\" operation=\"open\" profile=\"/{}{}\" \
             name=\"{name}\" pid=1 comm=\"x\" denied_mask=\"r\"\n",
            letters(at),
            "p".repeat(1000)
        )
    };
    let of_journal: String = (0..50_000).map(line).collect();
    let (data, summary) = call(host("apparmor", Some("enforcing"), &of_journal));
    assert_eq!(data["denials"].as_array().unwrap().len(), MOST);
    assert!(data["more"].as_u64().unwrap() > 100, "{summary}");
    assert!(data["unseen"].to_string().contains("the journal: more than"), "{}", data["unseen"]);
    assert!(data.to_string().len() < 20_000, "{}", data.to_string().len());
}

#[test]
fn a_mode_that_does_not_enforce_is_weak_but_in_a_container() {
    let kinds = |host: FakeTarget| {
        let found = find(&host.context()).unwrap();
        found.findings.into_iter().map(|finding| finding.kind).collect::<Vec<_>>()
    };
    let mut container = host("none", None, "");
    container.distro.extra.push(("virtualization".into(), "systemd-nspawn".into()));
    assert!(kinds(container).is_empty());
    let mut virtual_machine = host("none", None, "");
    virtual_machine.distro.extra.push(("virtualization".into(), "kvm".into()));
    assert_eq!(kinds(virtual_machine), ["mac-off"]);
    assert_eq!(kinds(host("selinux", Some("permissive"), "")), ["mac-permissive"]);
    assert_eq!(kinds(host("selinux", Some("disabled"), "")), ["mac-off"]);
    let later = host("selinux", Some("enforcing"), "").file(SELINUX_CONFIG, "SELINUX=permissive\n");
    assert_eq!(kinds(later), ["mac-off-at-boot"]);
    assert!(kinds(host("apparmor", Some("enforcing"), "")).is_empty());
}

#[test]
fn lines_of_another_form_are_no_denials() {
    for line in [
        "",
        "avc:",
        "avc:  denied  { x }",
        "avc: granted { x } scontext=a:b:c tcontext=a:b:c tclass=x",
        "apparmor=\"DENIED\"",
        "apparmor=\"DENIED",
        "===",
        "name=\"\"",
    ] {
        assert!(Denial::parse(line).is_none(), "{line}");
    }
    let old =
        FakeTarget::new().answer(&journal(), 1, "", "Compiled without pattern matching support\n").context();
    assert!(denials(&old).1[0].contains("pattern matching"));
    let unreadable = FakeTarget::new().context();
    assert_eq!(denials(&unreadable).1.len(), 1);
}
