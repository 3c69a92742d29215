//! System mode on a real host: what a person who may start the server can do, and what not.

use linux_sysadmin_tests::{Changing, Client, Reach, warmed};
use serde_json::Value;

pub(super) const PERSON: &str = "lsa-person";
pub(super) const ACCOUNT: &str = "linux-sysadmin";
/// The path of the person's own copy of the program.
pub(super) const OWN: &str = "/home/lsa-person/.local/bin/linux-sysadmin";
/// The path at which system mode installs the program.
pub(super) const PROGRAM: &str = "/usr/local/bin/linux-sysadmin";
pub(super) const MODULES: &str = "/usr/local/lib/linux-sysadmin/modules";
pub(super) const HOME: &str = "/var/lib/linux-sysadmin/home";
pub(super) const SERVE: [&str; 6] = ["sudo", "-n", "-u", ACCOUNT, PROGRAM, "serve"];

const PREPARE: &str = r"
set -e
# Debian's rsyslog writes to terminals, and system mode then isn't right.
cp -a /etc/rsyslog.conf /etc/rsyslog.conf.lsa
sed -i '/omusrmsg/s/^/#/' /etc/rsyslog.conf
useradd --create-home --shell /bin/bash lsa-person
cd /home/lsa-person
install -d .local/bin .local/lib/linux-sysadmin
cp /opt/linux-sysadmin/linux-sysadmin .local/bin/
cp -r /opt/linux-sysadmin/modules .local/lib/linux-sysadmin/
chown -R lsa-person:lsa-person .local
cat > /etc/systemd/system/lsa-works.service <<'END'
[Service]
ExecStart=/bin/sleep infinity
END
systemctl daemon-reload
systemctl start lsa-works
";

const CLEAN: &str = r"
pkill -KILL -u linux-sysadmin
pkill -KILL -u lsa-person
rm -f /etc/sudoers.d/linux-sysadmin* /etc/sudoers.d/.linux-sysadmin* /etc/sudoers.d/lsa-*
rm -rf /var/lib/linux-sysadmin /usr/local/bin/linux-sysadmin /usr/local/lib/linux-sysadmin /tmp/lsa-*
userdel linux-sysadmin
userdel --remove lsa-person
mv /etc/rsyslog.conf.lsa /etc/rsyslog.conf
rm -f /etc/rsyslog.d/lsa.conf
systemctl stop lsa-works
rm -f /etc/systemd/system/lsa-*
systemctl daemon-reload
systemctl reset-failed
";

/// A host with an account for a person.
pub(super) struct Person(pub(super) Changing);

impl Person {
    pub(super) fn new(test: &str) -> Option<Self> {
        warmed(test, "debian1")?;
        let person = Self(Changing::by(Reach::Inside("debian1"), test, PREPARE, CLEAN)?);
        person.0.host().warm(PERSON, "/home/lsa-person/.cache");
        Some(person)
    }

    /// Takes a host and sets system mode up.
    pub(super) fn with_system_mode(test: &str) -> Option<Self> {
        let person = Self::new(test)?;
        person.system(0, OWN, &["install", "--for", PERSON, "--yes"]);
        person.0.host().warm(ACCOUNT, &format!("{HOME}/.cache"));
        Some(person)
    }

    /// Runs `linux-sysadmin system …` as root, which must end with this code; gives its output.
    #[track_caller]
    pub(super) fn system(&self, code: i32, program: &str, args: &[&str]) -> String {
        let argv = [&[program, "system"], args].concat();
        let output = self.0.host().command(&argv).output().expect("xtask runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).expect("UTF-8");
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        said
    }

    /// Runs `system status` as root; gives the name and status of everything that isn't right.
    #[track_caller]
    pub(super) fn not_right(&self, code: i32) -> Vec<(String, String)> {
        let said: Value =
            serde_json::from_str(&self.system(code, PROGRAM, &["status", "--json"])).expect("JSON");
        let checks = said["checks"].as_array().expect("checks");
        assert!(checks.len() >= 8, "{said}");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let wrong = checks.iter().filter(|check| check["status"] != "ok");
        wrong.map(|check| (text(&check["name"]), text(&check["detail"]))).collect()
    }

    /// Runs a command as the person; gives its exit code and output.
    pub(super) fn tries(&self, argv: &[&str]) -> (Option<i32>, String) {
        let output = self.0.host().command_as(PERSON, argv).output().expect("xtask runs");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    /// Starts a server as the person.
    pub(super) async fn serve(&self) -> Client {
        let mut client = Client::start_command(self.0.host().command_as(PERSON, &SERVE));
        client.initialize("2025-06-18").await;
        client
    }
}

#[test]
fn system_mode_is_set_up_once_and_taken_away() {
    let Some(person) = Person::new("system_mode_is_set_up_once_and_taken_away") else { return };
    let before = person.0.snapshot();
    let shows = person.system(2, OWN, &["install", "--for", PERSON]);
    assert!(shows.contains("--yes") && shows.contains("make the system account"), "{shows}");
    person.0.is_still(&before, "there was nobody to ask");
    for (user, reason) in [
        ("lsa-nobody", "is no account"),
        ("root", "--for USER"),
        ("%sudo", "can't be named in sudoers"),
        ("ALL", "can't be named in sudoers"),
    ] {
        let refused = person.system(1, OWN, &["install", "--for", user, "--yes"]);
        assert!(refused.contains(reason), "{user}: {refused}");
    }
    person.0.is_still(&before, "nobody who could use it");

    let said = person.system(0, OWN, &["install", "--for", PERSON, "--yes"]);
    let sum = person.0.sh(&format!("sha256sum < {OWN}"));
    let sum = sum.split(' ').next().expect("a sum");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in [
        sum,
        "check the SHA-256",
        "/home/lsa-person belongs to lsa-person",
        "lsa-person may start it",
        "| lsa-person ALL=(linux-sysadmin) NOPASSWD: LINUX_SYSADMIN_SERVE",
    ] {
        assert!(words.contains(word), "{word}: {said}");
    }
    assert!(said.contains(&format!("claude mcp add linux-sysadmin-mcp -- {}", SERVE.join(" "))), "{said}");
    person.0.sh(&format!(
        "set -e; cmp {OWN} {PROGRAM}; test $(stat -c %U:%a {PROGRAM}) = root:755; visudo -c; cd {MODULES}; \
         sha256sum --check SHA256SUMS; test -z \"$(find / -xdev -path '/proc' -prune -o -name '.linux-sysadmin*' -print)\""
    ));
    // A module's own program is written by the first plan that needs it.
    person.0.sh("grep ' /usr/local/lib/linux-sysadmin/backup ^' /etc/sudoers.d/linux-sysadmin-backup");
    assert_eq!(person.not_right(0), []);
    person.0.sh("echo '*.emerg :omusrmsg:*' > /etc/rsyslog.d/lsa.conf");
    let found = person.not_right(1);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].0 == "messages on terminals" && found[0].1.contains("line 1 of /etc/rsyslog.d/lsa.conf"),
        "{found:?}"
    );
    let said = person.system(0, OWN, &["install", "--for", PERSON, "--yes"]);
    assert!(said.contains("/etc/rsyslog.d/lsa.conf"), "{said}");
    person.0.sh("rm /etc/rsyslog.d/lsa.conf");

    let installed = person.0.snapshot();
    let said = person.system(0, OWN, &["install", "--for", PERSON, "--yes"]);
    assert!(said.contains("nothing is to be done"), "{said}");
    person.0.is_still(&installed, "installed twice");

    // What is wrong is found and corrected, several things at a time of which each has a name of its own.
    let module = format!("{MODULES}/cron.wasm");
    for spoilt in [
        vec![
            (format!("chmod g+w {PROGRAM}"), "program"),
            (format!("chmod o+w {MODULES}"), "modules"),
            (format!("chmod 0750 {HOME}"), "home"),
            (format!("chmod 0755 {HOME}/.local/state/linux-sysadmin"), "configuration, log, keys"),
            (
                "sed -i '$s:$:, /bin/sh:' /etc/sudoers.d/linux-sysadmin-services; visudo -c > /dev/null"
                    .to_owned(),
                "the account's sudo rights",
            ),
            (
                "chmod 0644 /etc/sudoers.d/linux-sysadmin_serve".to_owned(),
                "/etc/sudoers.d/linux-sysadmin_serve",
            ),
            (format!("usermod --groups adm {ACCOUNT}"), "account"),
            (
                format!("echo '{PERSON} ALL=(ALL) NOPASSWD: /bin/sh' > /etc/sudoers.d/lsa-more"),
                "sudo rights of lsa-person",
            ),
            (format!("usermod --gid disk {PERSON}"), "groups of lsa-person"),
        ],
        vec![
            (format!("chown {PERSON} {module}"), "modules"),
            ("rm /etc/sudoers.d/linux-sysadmin-cron".to_owned(), "the account's sudo rights"),
            (
                format!(
                    "printf '%s\\n' 'Defaults:{PERSON} !authenticate' '{PERSON} ALL=(ALL) ALL' > /etc/sudoers.d/lsa-more"
                ),
                "sudo rights of lsa-person",
            ),
            (format!("usermod --gid users {ACCOUNT}"), "account"),
        ],
        // Of accounts that may not use it, no more is looked at.
        vec![("sed -i 's/ serve$//' /etc/sudoers.d/linux-sysadmin_serve".to_owned(), "who may use it")],
    ] {
        person.0.sh("cp -a /etc/sudoers.d/linux-sysadmin_serve /run/lsa-line");
        for (spoil, _) in &spoilt {
            person.0.sh(&format!("set -e; {spoil}"));
        }
        let found: Vec<_> = person.not_right(1).into_iter().map(|(name, _)| name).collect();
        let mut expected: Vec<_> = spoilt.iter().map(|(_, name)| *name).collect();
        expected.retain(|name| !found.iter().any(|found| found == name));
        assert!(expected.is_empty(), "not found: {expected:?}; found: {found:?}");
        person.0.sh(&format!(
            "set -e; rm -f /etc/sudoers.d/lsa-more; cp -a /run/lsa-line /etc/sudoers.d/linux-sysadmin_serve; \
             usermod --gid {ACCOUNT} --groups '' {ACCOUNT}; usermod --gid {PERSON} --groups '' {PERSON}; chmod go-w {PROGRAM} {MODULES}; chown root {module}"
        ));
        person.system(0, OWN, &["install", "--yes", "--for", PERSON]);
        assert_eq!(person.not_right(0), []);
    }

    // Another program replaces the old one, and a second person may use it.
    person.0.sh(&format!("printf more >> {OWN}"));
    let said = person.system(0, OWN, &["install", "--for", "admin", "--yes"]);
    assert!(
        said.contains("copy /home/lsa-person/.local/bin/linux-sysadmin") && !said.contains(".wasm"),
        "{said}"
    );
    person.0.sh(&format!("cmp {OWN} {PROGRAM}"));
    let found = person.not_right(1);
    // System mode doesn't restrict an account that may do everything without a password.
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0 == "sudo rights of admin" && found[0].1.contains("NOPASSWD: ALL"), "{found:?}");

    person.system(0, PROGRAM, &["remove", "--yes"]);
    person.0.sh(&format!(
        "set -e; test ! -e {PROGRAM}; test ! -e {MODULES}; test -z \"$(ls -A /etc/sudoers.d | grep linux-sysadmin)\"; \
         test -d {HOME}/.config/linux-sysadmin; id {ACCOUNT}; visudo -c"
    ));
    assert!(person.system(0, OWN, &["remove", "--yes"]).contains("nothing to remove"));
    person.system(0, OWN, &["remove", "--purge", "--yes"]);
    person.0.sh("test ! -e /var/lib/linux-sysadmin; ! id linux-sysadmin");
}
