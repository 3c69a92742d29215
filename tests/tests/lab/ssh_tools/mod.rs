//! The ssh tools on real hosts of both families. OpenSSH confirms what they say and what they do.

mod access;
mod access_links;
mod configuration;
mod connections;
mod own_keys;
mod session;

use linux_sysadmin_tests::{Client, Host, Lab, Way};
use serde_json::{Value, json};

/// A Debian host and a Fedora host.
const FAMILIES: [&str; 2] = ["debian1", "rhel1"];

/// A protocol version with a session, and with a current host in it.
const WITH_SESSION: &str = "2025-06-18";
/// A protocol version without a session.
const WITHOUT_SESSION: &str = "2026-07-28";

/// The port of a second sshd.
const PORT: u16 = 2211;

/// An account on a host. It is removed when this is dropped.
struct Account<'a> {
    host: &'a Host,
    name: &'static str,
}

/// Writes a file of the account, and makes its home and `.ssh` where they are missing.
const WRITE: &str = r#"
set -e
install -d -m 700 -o "$0" -g "$0" "/home/$0/.ssh"
printf %s "$1" > "/home/$0/.ssh/authorized_keys"
chown "$0:$0" "/home/$0/.ssh/authorized_keys"
chmod 600 "/home/$0/.ssh/authorized_keys"
"#;

/// Removes the account and its files. The home in passwd isn't used, since a test may have set it to `/`.
const REMOVE: &str = r#"
rm -f "/etc/sudoers.d/$0" "/etc/ssh/sshd_config.d/$0.conf"
pkill --signal KILL --uid "$0"
userdel --force "$0"
rm -rf "/home/$0"
"#;

impl<'a> Account<'a> {
    /// Makes an account with an empty home and no password.
    fn new(host: &'a Host, name: &'static str) -> Self {
        let account = Self { host, name };
        account.remove();
        host.run(&["useradd", "--create-home", "--shell", "/bin/bash", "--password", "*", name]);
        account
    }

    fn file(&self) -> String {
        format!("/home/{}/.ssh/authorized_keys", self.name)
    }

    /// Replaces the account's authorized_keys.
    fn write(&self, text: &str) {
        self.host.run(&["sh", "-c", WRITE, self.name, text]);
    }

    fn read(&self) -> String {
        self.host.run(&["cat", &self.file()])
    }

    /// The kind, mode, owner, target, checksum and time of every file in the account's home.
    fn facts(&self) -> String {
        let home = format!("/home/{}", self.name);
        seen(self.host, &[&home])
            + &self.host.run(&["find", &home, "-type", "f", "-exec", "sha256sum", "{}", "+"])
    }

    fn remove(&self) {
        let _ = self.host.command(&["sh", "-c", REMOVE, self.name]).output();
    }
}

/// What find(1) tells of these files and of all below them. overlayfs gives a directory another inode number once the kernel has
/// forgotten it, so that the time of its last change says whether a directory is the same one.
fn seen(host: &Host, paths: &[&str]) -> String {
    let told = ["(", "-type", "d", "-printf", "%p %y %m %u:%g %T@ %C@\n", ")", "-o"];
    host.run(&[&["find"], paths, &told, &["-printf", "%p %y %m %u:%g %l %T@ %i\n"]].concat())
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A key of another person, whose private half isn't among the server's keys.
struct Other {
    path: String,
    public: String,
    fingerprint: String,
}

impl Other {
    fn new(lab: &Lab, name: &str, kind: &str) -> Self {
        let directory = lab.home().path().join("others");
        std::fs::create_dir_all(&directory).expect("made");
        let path = directory.join(name).to_str().expect("UTF-8").to_owned();
        lab.run(&["ssh-keygen", "-q", "-N", "", "-C", name, "-t", kind, "-f", &path]);
        let public = std::fs::read_to_string(format!("{path}.pub")).expect("a public key").trim().to_owned();
        let fingerprint = listed(lab, &path).1;
        Self { path, public, fingerprint }
    }
}

/// Starts a server for a client of this protocol version. The client can be asked where the version allows it.
async fn served(lab: &Lab, version: &str) -> Client {
    let mut client = lab.serve(&[]);
    client.can(match way(version) {
        Way::Elicitation => json!({"elicitation": {}}),
        _ => json!({"elicitation": {"form": {}}}),
    });
    client.initialize(version).await;
    client
}

/// The way in which a client of this version is asked.
fn way(version: &str) -> Way {
    if version == WITHOUT_SESSION { Way::InputRequired } else { Way::Elicitation }
}

/// Starts a server for a client that can be asked in this way.
async fn served_for(lab: &Lab, way: Way) -> Client {
    let (version, capabilities) = way.client();
    let mut client = lab.serve(&[]);
    client.can(capabilities);
    client.initialize(version).await;
    client
}

/// Asserts that a call succeeded; gives its data.
#[track_caller]
fn done(envelope: Value) -> Value {
    assert_eq!(envelope["status"], "success", "{envelope}");
    envelope["data"].clone()
}

/// Asserts that a call was refused with this code and with all of these texts.
#[track_caller]
fn refused(envelope: &Value, code: &str, texts: &[&str]) {
    assert_eq!((&envelope["status"], &envelope["error_code"]), (&json!("error"), &json!(code)), "{envelope}");
    let said = format!("{} {}", envelope["message"], envelope["remediation"]);
    for text in texts {
        assert!(said.contains(text), "{text}: {envelope}");
    }
}

/// The bits, fingerprint and comment of a key's file, by ssh-keygen.
#[track_caller]
fn listed(lab: &Lab, path: &str) -> (u64, String, String) {
    let shown = lab.run(&["ssh-keygen", "-lf", path]);
    let mut words = shown.trim().splitn(3, ' ');
    let mut word = || words.next().expect("bits, fingerprint and comment");
    let (bits, fingerprint, rest) = (word().parse().expect("a number"), word().to_owned(), word());
    (bits, fingerprint, rest.rsplit_once(" (").expect("a kind").0.to_owned())
}

/// Whether this key opens the account.
#[track_caller]
fn gets_in(lab: &Lab, key: &str, account: &str, address: &str) -> bool {
    let options = ["-o", "IdentitiesOnly=yes", "-i", key, "-l", account, address, "id", "-un"];
    let output = lab.ssh(&options);
    assert!(!output.status.success() || String::from_utf8_lossy(&output.stdout).trim() == account);
    output.status.success()
}
