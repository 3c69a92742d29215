//! A second sshd on a host, for one test: with its own port, keys and settings, so that the host's own is left alone.

use std::time::{Duration, Instant};

use crate::{Host, Key};

/// Nothing that a test waits for takes this long; it only keeps a broken one from hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// The setting without which there is no SFTP.
pub const SFTP: &str = "Subsystem sftp /usr/lib/openssh/sftp-server\n";

/// What each has, where its settings don't say otherwise. That of the host itself is much the same.
const DEFAULTS: [(&str, &str); 5] = [
    ("UsePAM", "yes"),
    ("UseDNS", "no"),
    ("PrintMotd", "no"),
    ("PermitRootLogin", "prohibit-password"),
    ("PidFile", "none"),
];

/// Ends every second sshd of a host with all its connections, which PAM has moved out of the unit.
const END: &str = r"
systemctl stop 'lab-sshd-*.service'
systemctl reset-failed 'lab-sshd-*.service'
for directory in /run/lab-sshd-*; do
    test -d $directory || continue
    ss --no-header --tcp --processes state connected sport = :${directory##*-} |
        grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -u | xargs -r kill -9
    rm -rf $directory
done
";

/// Ends the connections of one, and leaves it alone.
const HANG_UP: &str = r"
ss --no-header --tcp --processes state connected sport = :$0 |
    grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -u | xargs -r kill -9
";

/// An sshd on a port of its own. It ends when it is dropped.
pub struct Sshd {
    host: Host,
    port: u16,
}

impl Sshd {
    pub(super) fn new(host: Host, port: u16) -> Self {
        let sshd = Self { host, port };
        sshd.host.run(&["install", "-d", "-m", "755", &sshd.directory()]);
        sshd
    }

    /// Where its files are.
    pub fn directory(&self) -> String {
        format!("/run/lab-sshd-{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its name in known_hosts: `[address]:port`.
    pub fn known_as(&self) -> String {
        format!("[{}]:{}", self.host.address(), self.port)
    }

    /// Puts a file into its directory, for everyone to read, also while it runs; gives its path.
    pub fn put(&self, name: &str, contents: &[u8]) -> String {
        let path = format!("{}/{name}", self.directory());
        self.host.put(&path, contents);
        path
    }

    /// Starts it with these host keys, each with its certificate where it has one, and with these lines of sshd_config;
    /// it listens when this returns. Where it runs it is started anew, and its connections stay.
    #[track_caller]
    pub fn start(&self, keys: &[&Key], settings: &str) {
        let mut config = format!("Port {}\n", self.port);
        let is_set = |name: &str| {
            let mut lines = settings.lines().filter_map(|line| line.split_whitespace().next());
            lines.any(|word| word.eq_ignore_ascii_case(name))
        };
        for (name, value) in DEFAULTS.iter().filter(|(name, _)| !is_set(name)) {
            config += &format!("{name} {value}\n");
        }
        for (number, key) in keys.iter().enumerate() {
            let private = std::fs::read(key.path()).expect("a key");
            let file = self.put(&format!("host_key{number}"), &private);
            // sshd takes no key that others may read.
            self.host.run(&["chmod", "0600", &file]);
            config += &format!("HostKey {file}\n");
            if let Some(certificate) = key.certificate() {
                let file = self.put(&format!("host_key{number}-cert.pub"), certificate.as_bytes());
                config += &format!("HostCertificate {file}\n");
            }
        }
        // Last: a `Match` lasts to the end of the file.
        config += settings;
        let file = self.put("sshd_config", config.as_bytes());
        self.host.run(&["/usr/sbin/sshd", "-t", "-f", &file]);
        self.stop();
        let unit = format!("--unit={}", self.unit());
        let run = ["systemd-run", "--quiet", "--collect", "--service-type=notify", &unit];
        self.host.run(&[&run[..], &["/usr/sbin/sshd", "-D", "-E", &self.log_file(), "-f", &file]].concat());
    }

    /// What it has logged so far, of all its starts: `LogLevel` says how much.
    pub fn log(&self) -> String {
        self.host.run(&["sh", "-c", "cat -- \"$0\" 2> /dev/null || :", &self.log_file()])
    }

    /// Waits until its log holds this text; gives all of it.
    pub fn logged(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let log = self.log();
            if log.contains(text) {
                return log;
            }
            assert!(begun.elapsed() < PATIENCE, "never logged: {text}: {log}");
        }
    }

    /// Ends its connections, as by a reset.
    pub fn hang_up(&self) {
        self.host.run(&["sh", "-c", HANG_UP, &self.port.to_string()]);
    }

    fn log_file(&self) -> String {
        format!("{}/log", self.directory())
    }

    /// It listens no more.
    pub fn stop(&self) {
        let _ = self.host.command(&["systemctl", "stop", &self.unit()]).output();
    }

    fn unit(&self) -> String {
        format!("lab-sshd-{}.service", self.port)
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let only_this = END.replace("lab-sshd-*", &format!("lab-sshd-{}", self.port));
        let _ = self.host.command(&["sh", "-c", &only_this]).output();
    }
}

/// Ends those that a test has left.
pub(super) fn end_all(host: &Host) {
    let _ = host.command(&["sh", "-c", END]).output();
}
