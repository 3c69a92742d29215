//! A second sshd on a host for one test, with its own port, keys and settings. The host's own sshd stays as it is.

use std::time::{Duration, Instant};

use crate::{Host, Key};

/// The time after which a test that hangs fails. Nothing that a test waits for takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The setting without which there is no SFTP.
pub const SFTP: &str = "Subsystem sftp /usr/lib/openssh/sftp-server\n";

/// Settings of each such sshd, unless the test sets others. The host's own sshd has much the same.
const DEFAULTS: [(&str, &str); 5] = [
    ("UsePAM", "yes"),
    ("UseDNS", "no"),
    ("PrintMotd", "no"),
    ("PermitRootLogin", "prohibit-password"),
    ("PidFile", "none"),
];

/// Ends every second sshd of a host with all its connections, which PAM moves out of the unit.
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

/// Ends the connections of one sshd, which goes on running.
const HANG_UP: &str = r"
ss --no-header --tcp --processes state connected sport = :$0 |
    grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -u | xargs -r kill -9
";

/// An sshd on a port of its own. It ends when this is dropped.
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

    /// The directory of its files.
    pub fn directory(&self) -> String {
        format!("/run/lab-sshd-{}", self.port)
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The name of the server in known_hosts: `[address]:port`.
    pub fn known_as(&self) -> String {
        format!("[{}]:{}", self.host.address(), self.port)
    }

    /// Puts a file that everyone may read into the sshd's directory; gives the path. The sshd may run meanwhile.
    pub fn put(&self, name: &str, contents: &[u8]) -> String {
        let path = format!("{}/{name}", self.directory());
        self.host.put(&path, contents);
        path
    }

    /// Starts the sshd with these host keys and their certificates, and with these lines of sshd_config. It listens when this
    /// returns. An sshd that runs is started anew, and its connections stay.
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
            // sshd refuses a key that others may read.
            self.host.run(&["chmod", "0600", &file]);
            config += &format!("HostKey {file}\n");
            if let Some(certificate) = key.certificate() {
                let file = self.put(&format!("host_key{number}-cert.pub"), certificate.as_bytes());
                config += &format!("HostCertificate {file}\n");
            }
        }
        // The test's lines come last, since a `Match` holds to the end of the file.
        config += settings;
        let file = self.put("sshd_config", config.as_bytes());
        self.host.run(&["/usr/sbin/sshd", "-t", "-f", &file]);
        self.stop();
        let unit = format!("--unit={}", self.unit());
        let run = ["systemd-run", "--quiet", "--collect", "--service-type=notify", &unit];
        self.host.run(&[&run[..], &["/usr/sbin/sshd", "-D", "-E", &self.log_file(), "-f", &file]].concat());
    }

    /// The log of all its starts so far.
    pub fn log(&self) -> String {
        self.host.run(&["sh", "-c", "cat -- \"$0\" 2> /dev/null || :", &self.log_file()])
    }

    /// Waits until the log holds this text; gives the whole log.
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

    /// Ends the sshd's connections, as by a reset.
    pub fn hang_up(&self) {
        self.host.run(&["sh", "-c", HANG_UP, &self.port.to_string()]);
    }

    fn log_file(&self) -> String {
        format!("{}/log", self.directory())
    }

    /// Stops the sshd.
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

/// Ends every sshd that a test has left.
pub(super) fn end_all(host: &Host) {
    let _ = host.command(&["sh", "-c", END]).output();
}
