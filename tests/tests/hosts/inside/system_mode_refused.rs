//! What `system install` refuses, leaves as it is, or undoes where it fails in the middle.

use super::system_mode::{ACCOUNT, MODULES, OWN, PERSON, PROGRAM, Person};
use linux_sysadmin_tests::Expected;

#[test]
fn a_program_that_only_root_can_change_stays_where_it_is() {
    let test = "a_program_that_only_root_can_change_stays_where_it_is";
    let Some(person) = Person::new(test) else { return };
    let place = "/opt/linux-sysadmin/linux-sysadmin";
    let said = person.system(0, place, &["install", "--for", PERSON, "--yes"]);
    assert!(!said.contains("copy ") && !said.contains("check the SHA-256"), "{said}");
    assert!(said.contains(&format!("sudo -n -u {ACCOUNT} {place} serve")), "{said}");
    person.0.sh(&format!("test ! -e {PROGRAM} && test ! -e {MODULES}"));
    let (code, said) = person.tries(&["sudo", "-n", "-u", ACCOUNT, place, "serve"]);
    assert_eq!(code, Some(0), "{said}");
    // The person's own copy of the program checks the installed one as well.
    let (_, said) = person.tries(&[OWN, "system", "status"]);
    assert!(said.contains(&format!("program: {place}: only root")) && !said.contains("WRONG"), "{said}");
    person.system(0, place, &["remove", "--purge", "--yes"]);
    person.0.sh(&format!("test -x {place} && test ! -e /var/lib/linux-sysadmin"));
}

#[test]
fn another_accounts_rights_are_not_overwritten() {
    let Some(person) = Person::new("another_accounts_rights_are_not_overwritten") else { return };
    let file = "/etc/sudoers.d/linux-sysadmin-services";
    let (code, fragment) = person.tries(&[OWN, "modules", "sudoers", "services"]);
    assert_eq!(code, Some(0), "{fragment}");
    person.0.host().put(file, fragment.as_bytes());
    person.0.sh(&format!("chmod 0440 {file}"));
    let before = person.0.snapshot();
    let said = person.system(1, OWN, &["install", "--for", PERSON, "--yes"]);
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("{file} gives the account {PERSON} these rights")), "{said}");
    person.0.is_still(&before, "refused");
    // Files that this program hasn't written stay as well.
    person
        .0
        .sh(&format!("rm {file}; echo '{PERSON} ALL=(ALL) /bin/true' > /etc/sudoers.d/linux-sysadmin_serve"));
    let before = person.0.snapshot();
    for command in [&["install", "--for", PERSON, "--yes"][..], &["remove", "--yes"]] {
        let said = person.system(1, OWN, command);
        assert!(said.contains("/bin/true"), "{said}");
        person.0.is_still(&before, "refused");
    }
}

#[test]
fn where_visudo_refuses_its_own_reason_is_said() {
    let Some(person) = Person::new("where_visudo_refuses_its_own_reason_is_said") else { return };
    // Only root can read this wrong file, and sudo itself leaves it out.
    person.0.sh("echo 'lsa-person ALL = (' > /etc/sudoers.d/lsa-broken; chmod 440 /etc/sudoers.d/lsa-broken");
    let said = person.system(1, OWN, &["install", "--for", PERSON, "--yes"]);
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("visudo -c") && words.contains("lsa-broken:1"), "{said}");
    assert!(
        words.contains("everything that this run had done was undone") || words.contains("nothing"),
        "{said}"
    );
    person.0.sh("rm /etc/sudoers.d/lsa-broken");
}

#[test]
fn root_copies_nothing_that_the_person_only_points_at() {
    let Some(person) = Person::new("root_copies_nothing_that_the_person_only_points_at") else { return };
    let module = "/home/lsa-person/.local/lib/linux-sysadmin/modules/cron.wasm";
    for (put, reason) in [
        ("ln -s /etc/shadow", "cron.wasm: it is a link"),
        ("mkfifo", "cron.wasm: it is not a regular file"),
        ("cp /etc/shadow", "cron.wasm: its SHA-256 is"),
    ] {
        person.0.sh(&format!("set -e; rm {module}; {put} {module}"));
        let before = person.0.snapshot();
        let said = person.system(1, OWN, &["install", "--for", PERSON, "--yes"]);
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(reason), "{put}: {said}");
        person.0.is_still(&before, "refused");
    }
}

#[test]
fn a_run_that_fails_in_the_middle_is_undone() {
    let Some(person) = Person::new("a_run_that_fails_in_the_middle_is_undone") else { return };
    // A person whose account has expired can't start the server, as the last step says.
    person.0.sh(&format!("usermod --expiredate 1 {PERSON}"));
    let tables = "cat /etc/passwd /etc/group /etc/shadow /etc/gshadow";
    let (before, accounts) = (person.0.snapshot(), person.0.sh(tables));
    let said = person.system(1, OWN, &["install", "--for", PERSON, "--yes"]);
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("everything that this run had done was undone"), "{said}");
    // These files are written twice, and have their former contents in the end.
    let written = ["/etc/passwd*", "/etc/group*", "/etc/shadow*", "/etc/gshadow*"];
    let written = written.map(|name| Expected { name, why: "an account was made and removed again" });
    person.0.is_still_but(&before, &written, "undone");
    assert_eq!(person.0.sh(tables), accounts);
    person.0.sh(&format!(
        "test ! -e {PROGRAM}; test ! -e /var/lib/linux-sysadmin; ! id {ACCOUNT}; ! ls /etc/sudoers.d/*linux-sysadmin* \
         && test -z \"$(ls -A /etc/sudoers.d | grep linux)\""
    ));
}
