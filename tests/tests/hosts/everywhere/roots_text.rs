//! No text that root's programs read on a real host gives root's rights without a person's yes, and harmless texts
//! don't ask.

use linux_sysadmin_tests::{Changing, way};
use serde_json::{Value, json};

/// Makes an ordinary account, and accounts that are as good as root, each in its own way. It also makes programs of root, of
/// the account and of another account.
const PREPARE: &str = r#"
set -e
useradd --create-home lsa-ada
useradd --create-home lsa-bob
useradd --create-home lsa-sudoer
useradd --create-home --groups shadow lsa-shadow || { groupadd --system shadow; useradd --create-home --groups shadow lsa-shadow; }
useradd --create-home --groups disk lsa-disk
useradd --system --create-home --home-dir /var/lib/lsa-daemon lsa-daemon
useradd --system --no-create-home --home-dir /srv/lsa-wiki lsa-wiki
useradd --non-unique --uid 0 --no-create-home --home-dir /root lsa-toor
echo 'lsa-sudoer ALL = /usr/bin/true ""' > /etc/sudoers.d/lsa-roots-text
chmod 440 /etc/sudoers.d/lsa-roots-text
install -d -m 755 /srv/lsa-roots-text /srv/lsa-roots-text/open
chmod 777 /srv/lsa-roots-text/open
for place in /srv/lsa-roots-text/app /srv/lsa-roots-text/theirs /srv/lsa-roots-text/open/app /home/lsa-ada/app; do
  printf '#!/bin/sh\nsleep infinity\n' > "$place"; chmod 755 "$place"
done
chown lsa-sudoer /srv/lsa-roots-text/theirs
chown lsa-ada /home/lsa-ada/app
ln -s /home/lsa-ada/app /srv/lsa-roots-text/link
echo A=b > /etc/default/lsa-roots-text
echo x > /srv/lsa-roots-text/data
echo x > /srv/lsa-roots-text/adas; chown lsa-ada /srv/lsa-roots-text/adas
install -m 600 /dev/null /srv/lsa-roots-text/secret
useradd --create-home --base-dir /srv/lsa-roots-text lsa-eve
for place in lsa-left.service.d lsa-bound-.service.d; do
  mkdir -p /etc/systemd/system/$place
  printf '[Service]\nUser=root\n' > /etc/systemd/system/$place/o.conf
done
printf '[Service]\nType=oneshot\nExecStart=/bin/sh -c "echo %%I"\n' > /etc/systemd/system/lsa-tells@.service
printf '[Service]\nType=oneshot\nExecStart=/usr/bin/cat %%f\n' > /etc/systemd/system/lsa-shows@.service
printf '[Service]\nUser=lsa-ada\nEnvironment=A=%%I\nExecStart=/usr/bin/sleep infinity\n' > /etc/systemd/system/lsa-queue@.service
printf '[Service]\nExecStart=/usr/bin/true\nStandardInput=socket\n' > /etc/systemd/system/lsa-inline@.service
printf '[Service]\nExecStart=/usr/bin/sleep infinity\n' > /etc/systemd/system/lsa-own.service
printf '[Unit]\nAfter=lsa-unloaded.service\n[Service]\nExecStart=/usr/bin/true\n' > /etc/systemd/system/lsa-third.service
for place in lsa-pre-@.service.d ../system.attached/lsa-attached.service.d; do
  mkdir -p /etc/systemd/system/$place
  printf '[Service]\nExecStartPre=+/usr/bin/find /\n' > /etc/systemd/system/$place/o.conf
done
mkdir -p /etc/systemd/system/lsa-calm.service.d
printf '[Service]\nNice=5\n' > /etc/systemd/system/lsa-calm.service.d/o.conf
printf '[Unit]\nAfter=lsa-first.service\n[Service]\nSlice=lsa-any.slice\nExecStart=/usr/bin/sleep infinity\n' > /etc/systemd/system/lsa-second.service
printf '[Socket]\nListenStream=18023\n' > /etc/systemd/system/lsa-listens.socket
printf '[Service]\nExecStart=/usr/bin/sleep infinity\n' > /etc/systemd/system/lsa-listens.service
systemctl daemon-reload; systemctl start lsa-second.service lsa-listens.socket
install -D -m 644 /dev/null /root/lsa-roots-text/credentials
install -D -m 644 /dev/null /srv/lsa-roots-text/closed/way/credentials; chmod 750 /srv/lsa-roots-text/closed
echo A=b > /etc/default/lsa-roots-secret; chmod 600 /etc/default/lsa-roots-secret
ln -s /srv/lsa-roots-text/closed/way /srv/lsa-roots-text/inside
groupadd lsa-team
useradd --create-home --gid lsa-team lsa-boss
echo 'lsa-boss ALL = /usr/bin/true ""' >> /etc/sudoers.d/lsa-roots-text
groupadd --system lsa-tools
useradd --no-create-home --home-dir /home/lsa-tools --gid users lsa-tools
useradd --system --no-create-home --home-dir /home/lsa-log lsa-log
mkdir -p /home/lsa-site /mnt/lsa-homes/boss2 /srv/lsa-roots-text/daemons
useradd --no-create-home --home-dir /srv/lsa-roots-text/site lsa-site
useradd --create-home --home-dir /home/lsa-site/boss lsa-boss3
useradd --no-create-home --home-dir /srv/lsa-roots-text/linked lsa-boss2
ln -s /mnt/lsa-homes/boss2 /srv/lsa-roots-text/linked; chown lsa-boss2 /mnt/lsa-homes/boss2
useradd --system --create-home --home-dir /srv/lsa-deploy lsa-deploy
for name in lsa-boss2 lsa-boss3 lsa-deploy; do echo "$name ALL = /usr/bin/true \"\"" >> /etc/sudoers.d/lsa-roots-text; done
chown lsa-daemon /srv/lsa-roots-text/daemons
install -m 644 -o lsa-sudoer /dev/null /srv/lsa-roots-text/script
install -m 600 -g lsa-ada /dev/null /srv/lsa-roots-text/grouped
grep -q '^lsa-sudoer:' /etc/subuid || echo lsa-sudoer:9100000:65536 >> /etc/subuid
id=$(sed -n 's/^lsa-sudoer:\([0-9]*\):.*/\1/p' /etc/subuid)
mkdir /srv/lsa-roots-text/container; chown $id:$id /srv/lsa-roots-text/container
mkdir /srv/lsa-roots-text/picked; chown 1379532800:1379532800 /srv/lsa-roots-text/picked
install -d -m 711 /srv/lsa-roots-text/unlisted
mkdir -p /srv/lsa-roots-text/chroot/usr /srv/lsa-roots-text/chroot/home
mount --bind /usr /srv/lsa-roots-text/chroot/usr; mount --bind /home /srv/lsa-roots-text/chroot/home
printf '[Service]\nDynamicUser=yes\nExecStart=/usr/bin/sleep infinity\n' > /etc/systemd/system/lsa-vault.service
printf '[Service]\nDynamicUser=yes\nUser=lsa-apid\nExecStart=/usr/bin/sleep infinity\n' > /etc/systemd/system/lsa-api.service
systemctl daemon-reload
"#;

/// Makes units of the administrator's own that do what people shouldn't be surprised by, and a shell outside the system's
/// directories.
const OWN_UNITS: &str = r#"
set -e
unit() { printf "$2\n" > /etc/systemd/system/"$1"; }
runs='[Service]\nExecStart=/usr/bin/sleep infinity'
once='[Service]\nType=oneshot\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target'
unit lsa-remote.service "[Unit]\nBefore=remote-fs.target\n$once"
unit lsa-mid.service "[Unit]\nBefore=ssh.service sshd.service\n$once"
unit lsa-before.service "[Unit]\nBefore=lsa-mid.service\n$once"
unit lsa-wanted.service '[Service]\nExecStart=/usr/bin/true\n[Install]\nWantedBy=remote-fs.target'
unit lsa-jobs.service "[Unit]\nBefore=cron.service\n$once"
unit lsa-fails.service '[Service]\nExecStart=/usr/bin/false\n[Install]\nRequiredBy=cron.service'
unit lsa-turns.service "[Unit]\nConflicts=serial-getty@ttyS9.service\n$once"
unit lsa-calmly.service "[Unit]\nBefore=lsa-own.service\n$once"
unit lsa-reboots.service '[Service]\nType=oneshot\nExecStart=/usr/sbin/reboot'
unit lsa-offs.service "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'systemctl stop ssh sshd'"
unit lsa-wraps.service '[Service]\nType=oneshot\nExecStart=/bin/systemctl start lsa-reboots.service'
unit lsa-theirs.service '[Service]\nType=oneshot\nUser=lsa-ada\nExecStart=/usr/sbin/reboot'
unit lsa-reloads.service "$runs\nExecReload=/bin/systemctl stop ssh sshd"
unit lsa-ends.service "$runs\nExecStop=/bin/systemctl stop ssh sshd"
unit lsa-posts.service "$runs\nExecStopPost=/sbin/poweroff"
unit lsa-jump.service '[Service]\nExecStart=/usr/sbin/sshd -D -p 18025 -o PidFile=none'
unit lsa-unneeded.service "[Unit]\nStopWhenUnneeded=yes\nPropagatesStopTo=ssh.service sshd.service\n$runs"
unit lsa-needs.service "[Unit]\nWants=lsa-unneeded.service\n$runs"
unit lsa-accepts.socket '[Socket]\nListenStream=18026\nAccept=yes'
unit lsa-accepts@.service "[Unit]\nConflicts=ssh.service sshd.service\n$runs"
mkdir -p /run/sshd
systemctl daemon-reload; systemctl start lsa-reloads.service lsa-ends.service lsa-posts.service lsa-jump.service
install -D -m 755 /bin/sh /srv/lsa-shells/bin/sh
useradd --create-home --shell /srv/lsa-shells/bin/sh lsa-shelled
install -D -m 600 -o lsa-shelled /dev/null /home/lsa-shelled/dotfiles/ssh/authorized_keys
ln -s dotfiles/ssh /home/lsa-shelled/.ssh; chown -R lsa-shelled /home/lsa-shelled/dotfiles
"#;

const CLEAN: &str = r"
for place in usr home; do while umount --lazy /srv/lsa-roots-text/chroot/$place; do :; done; done 2>/dev/null
for user in lsa-shelled lsa-ada lsa-eve lsa-bob lsa-sudoer lsa-shadow lsa-disk lsa-daemon lsa-wiki lsa-boss lsa-boss2 lsa-boss3 lsa-deploy lsa-tools lsa-log lsa-site; do crontab -u $user -r; pkill -KILL -u $user; userdel --force --remove $user; done 2>/dev/null
sed -i '/^lsa-toor:/d' /etc/passwd /etc/shadow; groupdel lsa-toor
groupdel lsa-team; groupdel lsa-tools; groupdel lsa-wiki; rm -rf /home/lsa-site /mnt/lsa-homes /srv/lsa-deploy
sed -i '/^lsa-sudoer:/d' /etc/subuid
rm -rf /usr/local/lsa-left /etc/cron.d/lsa-left /srv/lsa-roots-text /root/lsa-roots-text /etc/sudoers.d/lsa-roots-text /etc/default/lsa-roots-*
systemctl stop lsa-second.service lsa-queue@a-b.service lsa.slice lsa-listens.socket lsa-listens.service; rm -rf /etc/systemd/system/lsa-* /etc/systemd/system.attached/lsa-*; systemctl daemon-reload
# Without their files, these units have no commands for their ends any more.
systemctl stop lsa-reloads.service lsa-ends.service lsa-posts.service lsa-jump.service; rm -rf /srv/lsa-shells
";

fn changing(test: &str) -> Option<Changing> {
    Changing::by(way(), test, PREPARE, CLEAN)
}

fn unit(text: &str) -> Value {
    json!({"service": "lsa-evil.service", "raw_content": text})
}

/// Asserts that each of these calls asks and changes nothing. One snapshot of the host holds for all of them.
async fn each_asks(machine: &Changing, calls: Vec<(&str, Value)>) {
    for (call, envelope) in answers(machine, &calls).await {
        assert_eq!(envelope["status"], "confirmation_required", "{call}: {envelope}");
        assert!(
            ["high", "critical"].contains(&envelope["risk_level"].as_str().unwrap_or_default()),
            "{call}: {envelope}"
        );
    }
}

/// The answers to these calls, while nothing changes.
async fn answers(machine: &Changing, calls: &[(&str, Value)]) -> Vec<(String, Value)> {
    let before = machine.snapshot();
    let mut answers = Vec::new();
    // More calls than these can't wait in one server.
    for some in calls.chunks(30) {
        let mut client = machine.serve_default().await;
        for (tool, arguments) in some {
            let envelope = client.envelope(tool, arguments.clone()).await;
            answers.push((format!("{tool} {arguments}"), envelope));
        }
        assert_eq!(client.close().await.0.code(), Some(0));
    }
    machine.is_still(&before, "what waits for a yes");
    answers
}

#[tokio::test]
async fn a_unit_asks_before_it_is_root_by_its_keys() {
    let Some(machine) = changing("a_unit_asks_before_it_is_root_by_its_keys") else { return };
    let keys = [
        "StandardOutput=file:/run/systemd/system/lsa-evil2.service",
        "StandardError=append:/etc/cron.d/lsa-evil",
        "StandardOutput=truncate:/etc/sudoers.d/lsa-evil",
        "StandardInput=file:/etc/shadow",
        "RuntimeDirectory=systemd/system",
        "RuntimeDirectory=tmpfiles.d",
        "ConfigurationDirectory=lsa-evil",
        "StateDirectory=extensions",
        "AmbientCapabilities=7 6",
        "AmbientCapabilities=CAP_NET_BIND_SERVICE",
        "AmbientCapabilities=CAP_DAC_OVERRIDE",
        "LoadCredential=x:/etc/shadow",
        "OpenFile=/etc/shadow",
        "PIDFile=/etc/nologin",
        "BindPaths=/home/lsa-ada:/etc/pam.d",
        "RootDirectory=/home/lsa-ada",
        "PAMName=login",
        "Group=shadow",
        "SupplementaryGroups=disk",
        "Group=lsa-bob",
        "SupplementaryGroups=lsa-ada lsa-team",
        "Group=lsa-nobody-knows",
        "EnvironmentFile=/srv/lsa-roots-text/inside/credentials",
        "ExecStartPre=+/home/lsa-ada/app",
        "ExecStopPost=!/usr/bin/find",
        "FailureAction=reboot",
        "EnvironmentFile=/etc/default/lsa-roots-secret",
        "EnvironmentFile=/home/lsa-ada/x",
        "SecureBits=keep-caps",
        "Delegate=yes",
        "NotYetKnown=x",
        "EnvironmentFile=/root/.my.cn?",
        "EnvironmentFile=/root/lsa-roots-text/credentials",
        "EnvironmentFile=/srv/lsa-roots-text/closed/way/credentials",
        "EnvironmentFile=/etc/default/lsa-roots-secre[t]",
        "SystemCallFilter=~setuid:0",
        "Sockets=dbus.socket",
        "Sockets=systemd-initctl.socket",
        "Sockets=systemd-journald-dev-log.socket",
        "BusName=org.freedesktop.PolicyKit1",
        "CPUSchedulingPolicy=fifo",
        "WorkingDirectory=/home/lsa-ada/.ssh\nExecStart=/usr/bin/od -An -tx1 id_ed25519",
        "WorkingDirectory=-~/.ssh\nExecStart=/usr/bin/base32 id_rsa",
    ];
    let calls = keys.iter().map(|key| {
        let text = format!("[Service]\nUser=lsa-ada\nExecStart=/usr/bin/sleep infinity\n{key}\n");
        ("svc_create_unit", unit(&text))
    });
    each_asks(&machine, calls.collect()).await;
}

#[tokio::test]
async fn a_unit_asks_before_it_is_root_by_who_runs_what() {
    let Some(machine) = changing("a_unit_asks_before_it_is_root_by_who_runs_what") else { return };
    let who = [
        "root",
        "0",
        "lsa-toor",
        "lsa-sudoer",
        "lsa-shadow",
        "lsa-disk",
        "lsa-daemon",
        "mail",
        "8",
        "bin",
        "daemon",
        "lsa-nobody-knows",
        "lsa-deploy",
        "lsa-log",
        "%i",
    ];
    let programs = [
        "/srv/lsa-roots-text/theirs",
        "/srv/lsa-roots-text/open/app",
        "/srv/lsa-roots-text/not-there",
        "/srv/lsa-roots-text",
    ];
    let of_account =
        |user: &str, program: &str| unit(&format!("[Service]\nUser={user}\nExecStart={program}\n"));
    let mut calls: Vec<(&str, Value)> =
        who.iter().map(|user| ("svc_create_unit", of_account(user, "/usr/bin/find"))).collect();
    calls.extend(programs.iter().map(|program| ("svc_create_unit", of_account("lsa-ada", program))));
    for key in ["WorkingDirectory=/etc/sudoers.d", "LimitCORE=infinity"] {
        let text = format!("[Service]\nType=oneshot\n{key}\nExecStart=/usr/bin/logger x\n");
        calls.push(("svc_create_unit", unit(&text)));
    }
    // A command with root's rights, or an account as good as root, gets the same variables, files and directories as root.
    for setting in [
        "Environment=BASH_ENV=/home/lsa-ada/x.sh",
        "Environment=PATH=/home/lsa-ada",
        "EnvironmentFile=-/srv/lsa-roots-text/later",
        "PassEnvironment=LD_PRELOAD",
        "WorkingDirectory=/home/lsa-ada",
        "LimitCORE=infinity",
        "NoNewPrivileges=yes\nInaccessiblePaths=/etc/sudoers",
    ] {
        for who in [
            "User=lsa-ada\nExecStart=+/bin/bash -c true",
            "User=lsa-ada\nExecStart=/usr/bin/sleep 1\nExecStopPost=!/usr/bin/true",
            "DynamicUser=yes\nExecStart=!!/usr/bin/true",
            "User=lsa-sudoer\nExecStart=/bin/bash -c true",
            "User=lsa-daemon\nExecStart=/usr/bin/true",
            "User=lsa-nobody-knows\nExecStart=/usr/bin/true",
        ] {
            calls.push(("svc_create_unit", unit(&format!("[Service]\nType=oneshot\n{who}\n{setting}\n"))));
        }
    }
    calls.push((
        "svc_create_unit",
        unit("[Service]\nUser=lsa-ada\nExecStart=/usr/bin/sleep 9\nExecReload=+/bin/kill -KILL $MAINPID\n"),
    ));
    // A unit that is started along with another is weighed as if it were started by itself.
    if machine.holds("systemctl cat nftables.service") {
        for text in ["[Unit]\nWants=nftables.service\n", "[Unit]\nOnSuccess=nftables.service\n"] {
            let text = format!("{text}[Service]\nUser=lsa-ada\nExecStart=/usr/bin/sleep 1\n");
            calls.push(("svc_create_unit", unit(&text)));
        }
        let timer = json!({"name": "lsa-evil", "on_calendar": "daily", "service": "nftables.service"});
        calls.push(("timer_create", timer));
    }
    for text in
        ["[Unit]\nConflicts=cron.service crond.service\n", "[Install]\nAlso=cron.service crond.service\n"]
    {
        let raw = format!("{text}[Timer]\nOnBootSec=1\nUnit=lsa-evil.service\n");
        calls.push(("svc_create_unit", json!({"service": "lsa-evil.timer", "raw_content": raw})));
    }
    for lines in ["TimeoutStopSec=infinity", "SendSIGKILL=no", "ExecStart=/usr/bin/true \\\n; +/usr/bin/id"] {
        let raw = format!("[Service]\nUser=lsa-ada\nExecStart=/usr/bin/sleep infinity\n{lines}\n");
        calls.push(("svc_create_unit", unit(&raw)));
    }
    calls.push(("svc_start", json!({"service": r"lsa-tells@\x3bid"})));
    calls.push(("svc_start", json!({"service": "modprobe@loop"})));
    // The name of an instance can be a path.
    calls.push(("svc_start", json!({"service": "lsa-tells@..-..-etc-shadow"})));
    calls.push(("svc_start", json!({"service": "lsa-shows@root-secret"})));
    calls.push(("svc_start", json!({"service": "lsa-shows@root"})));
    let raw = "[Unit]\nWants=lsa-shows@root-secret.service\n[Service]\nExecStart=/usr/bin/true\n";
    calls.push(("svc_create_unit", json!({"service": "lsa-shows.service", "raw_content": raw})));
    let timer =
        json!({"name": "lsa-shows", "on_calendar": "daily", "service": "lsa-shows@root-secret.service"});
    calls.push(("timer_create", timer));
    let raw = "[Unit]\nWants=lsa-tells@\\x3bid.service\n[Service]\nExecStart=/usr/bin/true\n";
    calls.push(("svc_create_unit", json!({"service": "lsa-tells.service", "raw_content": raw})));
    let timer = json!({"name": "lsa-tells", "on_calendar": "daily", "service": r"lsa-tells@\x3bid.service"});
    calls.push(("timer_create", timer));
    // These are ports of services of the system.
    for listens in ["ListenStream=22", "ListenDatagram=53", "ListenStream=127.0.0.1:443"] {
        let raw = format!("[Socket]\n{listens}\n");
        calls.push(("svc_create_unit", json!({"service": "lsa-evil.socket", "raw_content": raw})));
    }
    if machine.holds("systemctl is-active lsa-listens.socket") {
        let raw = "[Socket]\nListenStream=18023\n";
        calls.push(("svc_create_unit", json!({"service": "lsa-evil.socket", "raw_content": raw})));
    }
    let raw = "[Socket]\nListenStream=18022\nAccept=yes\n";
    calls.push(("svc_create_unit", json!({"service": "lsa-inline.socket", "raw_content": raw})));
    for service in ["lsa-own.service", "ssh.service", "sshd.service", "cron.service", "crond.service"] {
        if machine.holds(&format!("systemctl cat {service}")) {
            let raw = format!("[Socket]\nListenStream=18022\nService={service}\n");
            calls.push(("svc_create_unit", json!({"service": "lsa-evil.socket", "raw_content": raw})));
        }
    }
    // Drop-ins that exist already count as well, and so do units that wait for a unit of this name.
    for name in ["lsa-left", "lsa-bound-x", "lsa-first", "lsa-pre-x@y", "lsa-attached", "lsa-unloaded"] {
        let raw = "[Service]\nUser=lsa-ada\nExecStart=/usr/bin/find /\n";
        calls.push(("svc_create_unit", json!({"service": format!("{name}.service"), "raw_content": raw})));
    }
    // A dynamic user has the unit's name. Where an account has that name, the unit runs as the account.
    for name in ["root", "lsa-sudoer", "daemon", "disk"] {
        let raw = "[Service]\nDynamicUser=yes\nExecStart=/usr/bin/find /\n";
        calls.push(("svc_create_unit", json!({"service": format!("{name}.service"), "raw_content": raw})));
    }
    // The account has a system group's name, but another group is its own.
    let raw = "[Service]\nUser=lsa-tools\nGroup=lsa-tools\nExecStart=/usr/bin/find /\n";
    calls.push(("svc_create_unit", unit(raw)));
    // Units with the same dynamic user could read what the other one may.
    if machine.holds("systemctl show --property=DynamicUser lsa-vault.service | grep -q yes") {
        for name in ["lsa-vault@x", "lsa-apid"] {
            let raw = "[Service]\nDynamicUser=yes\nExecStart=/usr/bin/find /\n";
            calls
                .push(("svc_create_unit", json!({"service": format!("{name}.service"), "raw_content": raw})));
        }
        for name in ["lsa-vault", "lsa-apid"] {
            calls.push(("user_create", json!({"user": name})));
            calls.push(("group_create", json!({"name": name})));
        }
    }
    // A shell that root runs makes code of variables, of patterns and of a unit's own name.
    for (variable, line) in [
        ("TERM=$(touch /lsa-evil)", "/bin/bash -c \"echo $${TERM@P}\""),
        ("COLUMNS=a[$(touch /lsa-evil)]", "/bin/bash -c \"echo $$((COLUMNS))\""),
        ("TERM=x --file=/etc/shadow", "/bin/sh -c \"logger -t $$TERM\""),
        ("TERM=x", "/bin/sh -c \"logger -t $$TERM\""),
        ("TERM=x", "/bin/sh -c \"cd /home/lsa-ada; test *\""),
        ("TERM=x", "/bin/sh -c \"cd /home/lsa-ada; printf ?x\""),
        ("TERM=x", "/bin/sh -c \"echo %I\""),
        ("TERM=x", "/bin/sh -c \"echo `id`\""),
        ("TERM=x", "/usr/bin/logger %i"),
        ("TERM=x", "/usr/bin/logger -t $TZ"),
    ] {
        let text = format!("[Service]\nType=oneshot\nEnvironment=\"{variable}\"\nExecStart={line}\n");
        calls.push(("svc_create_unit", unit(&text)));
    }
    // These units delay the start of the machine or end it, whatever account they run as.
    for text in [
        "[Unit]\nBefore=sysinit.target\n[Install]\nWantedBy=multi-user.target\n",
        "[Unit]\nDefaultDependencies=no\n",
        "[Unit]\nBefore=ssh.service\n",
        "[Unit]\nBefore=systemd-sysctl.service\n",
        "[Unit]\nBefore=systemd-tmpfiles-setup.service\n",
        "[Unit]\nBefore=dbus-org.freedesktop.login1.service\n",
        "[Unit]\nBefore=udev.service\n",
        "[Unit]\nBefore=getty@tty1.service\n",
        "[Unit]\nBefore=lsa-nowhere.service\n",
        "[Unit]\nAfter=multi-user.target\nBefore=lsa-own.service\n",
        "[Unit]\nWants=ufw.service\n",
        "[Unit]\nWants=firewalld.service\n",
        "[Unit]\nWants=systemd-networkd.service\n",
        "[Unit]\nConflicts=docker.slice\n",
        "[Unit]\nConflicts=console-getty.service\n",
        "[Install]\nRequiredBy=sysinit.target\n",
        "[Install]\nRequiredBy=ssh.service\n",
        "[Install]\nUpheldBy=basic.target\n",
        "[Install]\nAlso=ssh.service ufw.service\n",
        "[Install]\nAlso=firewalld.service\n",
        "[Unit]\nConflicts=unbound.service\n",
        "[Unit]\nConflicts=tmp.mount\n",
        "[Unit]\nPropagatesStopTo=timers.target\n",
    ] {
        calls.push((
            "svc_create_unit",
            unit(&format!("{text}[Service]\nUser=lsa-ada\nExecStart=/usr/bin/false\n")),
        ));
    }
    for lines in ["NotifyAccess=all".to_owned(), "ExecStop=/usr/bin/sleep 590\n".repeat(20)] {
        let raw = format!("[Service]\nUser=lsa-ada\nExecStart=/usr/bin/sleep infinity\n{lines}\n");
        calls.push(("svc_create_unit", unit(&raw)));
    }
    calls.push(("svc_stop", json!({"service": "lsa-any.slice"})));
    for name in ["system-getty.slice", "system-sshd.slice", "user-0.slice"] {
        let raw = "[Slice]\nTasksMax=1\n";
        calls.push(("svc_create_unit", json!({"service": name, "raw_content": raw})));
    }
    for name in ["systemd-poweroff.timer", "systemd-reboot.timer", "debug-shell.timer"] {
        let raw = "[Timer]\nOnActiveSec=99999\n";
        calls.push(("svc_create_unit", json!({"service": name, "raw_content": raw})));
    }
    // What a timer or a path starts comes after it. systemd breaks a cycle by not starting something.
    for (name, text) in [
        (
            "lsa-evil.path",
            "[Unit]\nAfter=multi-user.target\n[Path]\nPathExists=/lsa-none\nUnit=lsa-own.service\n",
        ),
        (
            "lsa-evil.path",
            "[Unit]\nAfter=time-sync.target\n[Path]\nPathExists=/lsa-none\nUnit=lsa-own.service\n",
        ),
        ("lsa-evil.socket", "[Unit]\nAfter=basic.target\n[Socket]\nListenStream=18024\n"),
        ("lsa-evil.path", "[Path]\nPathExists=/lsa-none\nUnit=systemd-sysctl.service\n"),
        ("lsa-evil.path", "[Path]\nPathChanged=/lsa-none\nUnit=systemd-tmpfiles-setup.service\n"),
        (
            "lsa-evil.timer",
            "[Unit]\nAfter=graphical.target\n[Timer]\nOnCalendar=yearly\nUnit=lsa-own.service\n",
        ),
        (
            "lsa-evil.timer",
            "[Unit]\nAfter=lsa-own.service\n[Timer]\nOnCalendar=yearly\nUnit=lsa-own.service\n",
        ),
        ("lsa-evil.timer", "[Timer]\nOnBootSec=9h\nUnit=systemd-sysctl.service\n"),
        ("lsa-evil.timer", "[Timer]\nOnCalendar=yearly\nUnit=systemd-journal-flush.service\n"),
        ("systemd-sysctl.timer", "[Timer]\nOnCalendar=yearly\n"),
        ("lsa-evil.timer", "[Timer]\nOnCalendar=yearly\nUnit=systemd-logind.service\n"),
        ("lsa-evil.path", "[Path]\nPathExists=/lsa-none\nUnit=sshd.service\n"),
        ("ssh.timer", "[Timer]\nOnCalendar=yearly\n"),
        ("systemd-tmpfiles-setup.path", "[Path]\nPathExists=/lsa-none\n"),
    ] {
        calls.push(("svc_create_unit", json!({"service": name, "raw_content": text})));
    }
    for unit in ["systemd-sysctl.service", "systemd-tmpfiles-setup.service", "systemd-journal-flush.service"]
    {
        calls.push(("timer_create", json!({"name": "lsa-evil", "service": unit, "on_calendar": "yearly"})));
    }
    // Units of the start of the machine would do their work once more.
    for name in [
        "systemd-tmpfiles-setup.service",
        "systemd-sysctl.service",
        "systemd-update-utmp.service",
        "systemd-journal-flush.service",
        "paths.target",
        "getty@tty1.service",
    ] {
        let text = format!("[Unit]\nConflicts={name}\n[Service]\nUser=lsa-ada\nExecStart=/usr/bin/true\n");
        calls.push(("svc_create_unit", unit(&text)));
    }
    for line in [
        "/home/lsa-ada/app",
        "/srv/lsa-roots-text/app",
        "/srv/lsa-roots-text/link",
        "/usr/share/debconf/frontend /bin/sh -c id",
        "/usr/sbin/sshd -o AuthorizedKeysCommand=/home/lsa-ada/app",
        "/usr/bin/find /home/lsa-ada -exec sh {} +",
        "/usr/bin/env -S sh",
        "/usr/bin/tar xf /home/lsa-ada/x --to-command=sh",
    ] {
        calls.push(("svc_create_unit", unit(&format!("[Service]\nExecStart={line}\n"))));
    }
    each_asks(&machine, calls).await;
}

#[tokio::test]
async fn a_crontab_asks_where_its_account_is_as_good_as_root() {
    let Some(machine) = changing("a_crontab_asks_where_its_account_is_as_good_as_root") else { return };
    let job = |user: &str, command: &str| json!({"user": user, "schedule": "0 4 * * *", "command": command});
    let mut calls: Vec<(&str, Value)> =
        ["root", "lsa-sudoer", "lsa-shadow", "lsa-disk", "lsa-daemon", "mail"]
            .iter()
            .map(|user| ("cron_add", job(user, "/usr/bin/find")))
            .collect();
    for command in [
        "nice true",
        "true; rm x",
        "echo $(rm x)",
        "true > /etc/x",
        ". /srv/x",
        "echo a%b",
        "cd /home/lsa-ada && logger -t *",
        "echo ${HOME@P}",
        "test -v $LINES",
    ] {
        calls.push(("cron_add", job("root", command)));
    }
    calls.push(("user_create", json!({"user": "lsa-new", "groups": ["shadow"]})));
    calls.push(("user_create", json!({"user": "lsa-new", "groups": ["disk"]})));
    for group in ["staff", "mail", "lsa-daemon", "daemon"] {
        if machine.holds(&format!("getent group {group}")) {
            calls.push(("user_modify", json!({"user": "lsa-ada", "add_groups": [group]})));
            calls.push(("user_create", json!({"user": "lsa-new", "groups": [group]})));
            calls.push(("user_create", json!({"user": "lsa-new", "primary_group": group})));
        }
    }
    // These are the group of a sudoer, and a sudoer's groups.
    calls.push(("user_modify", json!({"user": "lsa-ada", "add_groups": ["lsa-sudoer"]})));
    calls.push(("user_create", json!({"user": "lsa-new", "primary_group": "lsa-sudoer"})));
    calls.push(("user_modify", json!({"user": "lsa-sudoer", "add_groups": ["lsa-bob"]})));
    calls.push(("user_modify", json!({"user": "lsa-sudoer", "comment": "umask=0000"})));
    // The groups of a sudoer, whatever their names are.
    calls.push(("user_modify", json!({"user": "lsa-ada", "add_groups": ["lsa-team"]})));
    calls.push(("user_create", json!({"user": "lsa-new", "primary_group": "lsa-team"})));
    // An account of the same name doesn't make a system group harmless.
    calls.push(("user_modify", json!({"user": "lsa-ada", "add_groups": ["lsa-tools"]})));
    // These names and numbers are taken, or the system's.
    for name in ["shadow", "lsa-team", "docker"] {
        calls.push(("user_create", json!({"user": name, "primary_group": "users"})));
    }
    for number in [100, 990, 61763] {
        if machine.holds(&format!("! getent passwd {number}")) {
            calls.push(("user_create", json!({"user": "lsa-new", "uid": number})));
        }
        if machine.holds(&format!("! getent group {number}")) {
            calls.push(("group_create", json!({"name": "lsa-new", "gid": number})));
        }
    }
    if let Some(first) = machine.holds("grep -q ':100000:' /etc/subuid").then_some(100_000) {
        calls.push(("user_create", json!({"user": "lsa-new", "uid": first})));
    }
    // The new home would suggest that the account isn't one of the system.
    calls.push(("user_modify", json!({"user": "lsa-daemon", "home": "/home/lsa-daemon"})));
    for home in ["/var/lib/extensions/lsa-new", "/var/lib/lsa-new", "/opt/lsa-new"] {
        calls.push(("user_create", json!({"user": "lsa-new", "home": home})));
    }
    for name in ["docker", "incus-admin"] {
        calls.push(("user_create", json!({"user": name})));
        calls.push(("user_create", json!({"user": name, "system": true})));
    }
    calls.push(("group_create", json!({"name": "docker"})));
    calls.push(("group_create", json!({"name": "lxd"})));
    if machine.holds("getent group crontab") {
        calls.push(("user_create", json!({"user": "lsa-new", "groups": ["crontab"]})));
        calls.push(("user_modify", json!({"user": "lsa-ada", "add_groups": ["crontab"]})));
    }
    each_asks(&machine, calls).await;
    // Root runs the job that is there already, whatever is added beside it.
    machine.sh("crontab -u root -l > /srv/lsa-roots-text/before; echo '@daily /home/lsa-ada/app' | crontab -u root -");
    let mut client = machine.serve_default().await;
    let mut beside = job("root", "true");
    beside["dry_run"] = true.into();
    let envelope = client.envelope("cron_add", beside).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
    assert_ne!(envelope["needs_confirmation"], true, "{envelope}");
    machine.sh("crontab -u root -r; test ! -s /srv/lsa-roots-text/before || crontab -u root /srv/lsa-roots-text/before");
}

#[tokio::test]
async fn a_new_account_asks_where_something_is_left_for_it() {
    let Some(machine) = changing("a_new_account_asks_where_something_is_left_for_it") else { return };
    let user = json!({"user": "lsa-left"});
    let numbered = json!({"user": "lsa-left", "uid": 4711, "create_home": false});
    let group = json!({"name": "lsa-left"});
    for (left, calls) in [
        (
            "echo '@daily root /home/lsa-left/job' > /etc/cron.d/lsa-left",
            vec![("user_create", user.clone()), ("group_create", group.clone())],
        ),
        (
            "printf '[Service]\\nUser=lsa-left\\nExecStart=/bin/true\\n' > /etc/systemd/system/lsa-left.service",
            vec![("user_create", user.clone())],
        ),
        ("chown 4711:0 /usr/local/lsa-left/program", vec![("user_create", user), ("user_create", numbered)]),
        ("chown 0:4711 /usr/local/lsa-left/program", vec![("group_create", group)]),
    ] {
        machine.sh(&format!("install -D /dev/null /usr/local/lsa-left/program; {left}"));
        each_asks(&machine, calls).await;
        machine
            .sh("rm -r /usr/local/lsa-left; rm -f /etc/cron.d/lsa-left /etc/systemd/system/lsa-left.service");
    }
}

#[tokio::test]
async fn owners_and_modes_of_what_root_goes_by_ask() {
    let Some(machine) = changing("owners_and_modes_of_what_root_goes_by_ask") else { return };
    machine.sh("ln -s /etc/default /srv/lsa-roots-text/way");
    let mut calls = Vec::new();
    for path in [
        "/usr/local/bin",
        "/etc/default/lsa-roots-text",
        "/var/lib/dpkg/info",
        "/etc/systemd/system",
        "/usr/lib/os-release",
        "/var/spool/cron",
        "/etc/hosts",
        "/opt",
        "/run/systemd",
        "/srv/lsa-roots-text/way/lsa-roots-text",
    ] {
        if machine.holds(&format!("test -e {path}")) {
            calls.push(("perms_set", json!({"path": path, "owner": "lsa-ada"})));
            calls.push(("perms_set", json!({"path": path, "mode": "o+w"})));
            calls.push(("perms_set", json!({"path": path, "group": "lsa-ada", "mode": "g+w"})));
        }
    }
    // These only take rights away, or give rights to data of root.
    for (path, mode) in [
        ("/etc/default/lsa-roots-text", "600"),
        ("/usr/lib/os-release", "600"),
        ("/etc/systemd/system", "700"),
        ("/srv/lsa-roots-text/secret", "644"),
        ("/srv/lsa-roots-text/app", "775"),
        ("/srv/lsa-roots-text", "o+w"),
        ("/srv/lsa-roots-text/secret", "640"),
        ("/srv/lsa-roots-text/unlisted", "755"),
        ("/srv/lsa-roots-text/unlisted", "o+r"),
        // These are the system's own directories under other names.
        ("/srv/lsa-roots-text/chroot/usr", "700"),
        ("/srv/lsa-roots-text/chroot/usr/bin/env", "700"),
        ("/srv/lsa-roots-text/chroot/home", "700"),
        // Somebody has the home in it.
        ("/srv/lsa-roots-text", "700"),
        ("/srv/lsa-roots-text", "o-x"),
        ("/home/lsa-site", "700"),
        ("/srv/lsa-roots-text/closed", "755"),
        ("/srv/lsa-roots-text/closed", "o+x"),
        ("/srv/lsa-roots-text/data", "666"),
        ("/home/lsa-sudoer", "750"),
        ("/home/lsa-sudoer", "000"),
    ] {
        calls.push(("perms_set", json!({"path": path, "mode": mode})));
    }
    for path in [
        "/srv/lsa-roots-text",
        "/srv/lsa-roots-text/app",
        "/srv/lsa-roots-text/secret",
        "/home/lsa-sudoer",
        "/home/lsa-bob",
    ] {
        calls.push(("perms_set", json!({"path": path, "owner": "lsa-ada"})));
    }
    calls.push((
        "perms_set",
        json!({"path": "/srv/lsa-roots-text/secret", "group": "lsa-ada", "mode": "640"}),
    ));
    // These belong to accounts that are as good as root, or are their homes.
    for path in [
        "/srv/lsa-roots-text/daemons",
        "/srv/lsa-roots-text/script",
        "/srv/lsa-deploy",
        "/srv/lsa-roots-text/container",
        "/srv/lsa-roots-text/picked",
        "/mnt/lsa-homes/boss2",
        "/home/lsa-site/boss",
    ] {
        calls.push(("perms_set", json!({"path": path, "owner": "lsa-ada"})));
        calls.push(("perms_set", json!({"path": path, "group": "lsa-ada", "mode": "770"})));
    }
    // The group could not read it before.
    calls.push(("perms_set", json!({"path": "/srv/lsa-roots-text/grouped", "mode": "640"})));
    // Root's programs may run or read what is root's there.
    calls.push(("perms_set", json!({"path": "/srv/lsa-roots-text/data", "mode": "640"})));
    calls.push(("perms_set", json!({"path": "/srv/lsa-roots-text/lsa-eve", "owner": "lsa-ada"})));
    calls.push(("perms_set", json!({"path": "/srv/lsa-roots-text/lsa-eve", "mode": "000"})));
    calls.push(("perms_set", json!({"path": "/home/lsa-bob", "mode": "000"})));
    calls.push(("perms_set", json!({"path": "/home/lsa-bob", "mode": "777"})));
    calls.push(("perms_set", json!({"path": "/home/lsa-bob", "owner": "root"})));
    for (call, envelope) in answers(&machine, &calls).await {
        // The tool itself refuses these.
        let refusals =
            ["SYSTEM_DIRECTORY", "SENSITIVE_FILE", "SYMLINK", "CAPABILITY_DENIED", "UNTRUSTED_DIRECTORY"];
        let is_refused = refusals.iter().any(|code| envelope["error_code"] == *code);
        assert!(envelope["status"] == "confirmation_required" || is_refused, "{call}: {envelope}");
    }
}

#[tokio::test]
async fn units_of_the_administrators_ask_by_what_they_do() {
    let Some(machine) = changing("units_of_the_administrators_ask_by_what_they_do") else { return };
    machine.sh(OWN_UNITS);
    let mut rows = vec![
        // What people log in by would wait for these, directly or by others between.
        ("svc_enable", "lsa-remote.service"),
        ("svc_enable", "lsa-mid.service"),
        ("svc_enable", "lsa-before.service"),
        ("svc_enable", "lsa-wanted.service"),
        // The other unit doesn't run now, but it may at the next start.
        ("svc_enable", "lsa-turns.service"),
        ("svc_start", "lsa-reboots.service"),
        ("svc_start", "lsa-offs.service"),
        ("svc_start", "lsa-wraps.service"),
        ("svc_reload", "lsa-reloads.service"),
        ("svc_stop", "lsa-ends.service"),
        ("svc_restart", "lsa-ends.service"),
        ("svc_stop", "lsa-posts.service"),
        ("svc_restart", "lsa-posts.service"),
        ("svc_stop", "lsa-jump.service"),
        ("svc_restart", "lsa-jump.service"),
        // These end what only they needed.
        ("svc_start", "lsa-needs.service"),
        ("svc_start", "lsa-unneeded.service"),
        ("svc_start", "lsa-accepts.socket"),
    ];
    if machine.holds("systemctl cat cron.service") {
        rows.extend([("svc_enable", "lsa-jobs.service"), ("svc_enable", "lsa-fails.service")]);
    }
    let mut calls: Vec<(&str, Value)> =
        rows.into_iter().map(|(tool, unit)| (tool, json!({"service": unit}))).collect();
    for other in ["lsa-reboots.service", "lsa-offs.service", "lsa-unneeded.service", "lsa-accepts.socket"] {
        let raw = format!("[Unit]\nWants={other}\n[Service]\nUser=lsa-ada\nExecStart=/usr/bin/sleep 1\n");
        calls.push(("svc_create_unit", unit(&raw)));
    }
    for unit in ["lsa-reboots.service", "lsa-offs.service"] {
        calls.push(("timer_create", json!({"name": "lsa-evil", "service": unit, "on_calendar": "daily"})));
    }
    for (path, mode) in [
        ("/srv/lsa-shells", "700"),
        ("/srv/lsa-shells", "644"),
        ("/srv/lsa-shells/bin", "750"),
        ("/srv/lsa-shells/bin/sh", "700"),
        ("/srv/lsa-shells/bin/sh", "644"),
        ("/home/lsa-shelled/dotfiles/ssh/authorized_keys", "000"),
        ("/home/lsa-shelled/dotfiles", "000"),
    ] {
        calls.push(("perms_set", json!({"path": path, "mode": mode})));
    }
    each_asks(&machine, calls).await;
    let free = [
        ("svc_enable", "lsa-calmly.service"),
        ("svc_start", "lsa-own.service"),
        ("svc_start", "lsa-turns.service"),
        ("svc_start", "lsa-theirs.service"),
        ("svc_stop", "lsa-reloads.service"),
    ];
    let free = free.map(|(tool, unit)| (tool, json!({"service": unit, "dry_run": true})));
    for (call, envelope) in answers(&machine, &free).await {
        assert_eq!(envelope["status"], "success", "{call}: {envelope}");
        assert_ne!(envelope["needs_confirmation"], true, "{call}: {envelope}");
    }
}

#[tokio::test]
async fn what_is_harmless_is_not_asked_about() {
    let Some(machine) = changing("what_is_harmless_is_not_asked_about") else { return };
    let mut client = machine.serve_default().await;
    for (number, text) in [
        "[Service]\nUser=lsa-ada\nExecStart=/usr/bin/sleep infinity\nRestart=always\nNoNewPrivileges=yes\n",
        "[Service]\nUser=lsa-ada\nGroup=lsa-ada\nExecStart=/srv/lsa-roots-text/app\nEnvironment=A=b\n",
        "[Service]\nUser=lsa-ada\nExecStart=/home/lsa-ada/app\nEnvironmentFile=-/etc/default/lsa-roots-text\n",
        "[Service]\nUser=lsa-ada\nExecStart=/srv/lsa-roots-text/link\nProtectSystem=strict\nPrivateTmp=yes\n",
        "[Service]\nDynamicUser=yes\nExecStart=/usr/bin/sleep infinity\nMemoryMax=64M\n",
        "[Service]\nType=oneshot\nExecStart=/usr/bin/true\n",
        "[Service]\nUser=lsa-ada\nWorkingDirectory=/srv\nEnvironment=PATH=/srv/bin\nExecStart=/usr/bin/find / -mtime +30\n",
        "[Service]\nUser=nobody\nExecStart=/usr/bin/sleep infinity\n",
        "[Service]\nUser=lsa-wiki\nExecStart=/usr/bin/sleep infinity\n",
        "[Unit]\nBefore=lsa-own.service\n[Service]\nUser=lsa-ada\nExecStart=/usr/bin/sleep infinity\n",
        "[Service]\nUser=lsa-tools\nGroup=users\nExecStart=/usr/bin/sleep infinity\n",
    ]
    .iter()
    .enumerate()
    {
        let arguments = json!({"service": format!("lsa-fine{number}.service"), "raw_content": text});
        let envelope = client.envelope("svc_create_unit", arguments).await;
        assert_eq!(envelope["status"], "success", "{text}: {envelope}");
    }
    // The unit's drop-in is harmless.
    let raw = "[Service]\nUser=lsa-ada\nExecStart=/usr/bin/sleep infinity\n";
    let arguments = json!({"service": "lsa-calm.service", "raw_content": raw});
    let envelope = client.envelope("svc_create_unit", arguments).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
    for (tool, arguments) in [
        ("svc_start", json!({"service": "lsa-queue@a-b"})),
        ("svc_start", json!({"service": "lsa-tells@plain"})),
        (
            "svc_create_unit",
            json!({"service": "lsa-fine8.path", "raw_content": "[Path]\nPathExists=/lsa-none\nUnit=lsa-own.service\n"}),
        ),
        ("timer_create", json!({"name": "lsa-fine8", "on_calendar": "yearly", "service": "lsa-own.service"})),
        (
            "timer_create",
            json!({"name": "lsa-fine9", "on_calendar": "daily", "service": "lsa-fine0.service"}),
        ),
        (
            "cron_add",
            json!({"user": "lsa-ada", "schedule": "0 4 * * *", "command": "curl -s http://x | sort"}),
        ),
        ("cron_add", json!({"user": "nobody", "schedule": "@daily", "command": "/srv/lsa-roots-text/app"})),
        ("user_modify", json!({"user": "lsa-ada", "add_groups": ["users", "lsa-wiki"]})),
        ("perms_set", json!({"path": "/srv/lsa-roots-text/adas", "owner": "lsa-bob"})),
        ("perms_set", json!({"path": "/home/lsa-ada/app", "mode": "g+w"})),
        ("perms_set", json!({"path": "/srv/lsa-roots-text/script", "mode": "600"})),
        ("user_create", json!({"user": "lsa-new", "uid": 4107, "primary_group": "users"})),
        ("group_create", json!({"name": "lsa-news", "gid": 5207})),
    ] {
        let envelope = client.envelope(tool, arguments.clone()).await;
        assert_eq!(envelope["status"], "success", "{tool} {arguments}: {envelope}");
    }
    machine.sh("crontab -u nobody -r; userdel --remove lsa-new; groupdel lsa-news");
}
