//! Texts that root's programs read: everyday texts, which are harmless, and attacks, which ask. The attacks come from the
//! manuals of those programs.

use crate::text::{Code, code_in_file, objection};

/// The reasons why the code is not harmless, as far as the text alone tells.
fn objections(code: &Code) -> Vec<String> {
    let roots = code.lines.iter().filter(|line| line.user.is_none());
    let mut found: Vec<String> = roots.filter_map(|line| objection(&line.argv)).collect();
    found.extend(code.power.iter().cloned());
    found.extend(code.effects.iter().map(|(_, effect)| effect.clone()));
    // Only the target knows by its numbers whether a group is the account's own. Here a name stands for its number.
    let groups = code.groups.iter().filter(|of| of.group != of.account);
    found.extend(groups.map(|of| format!("{} in {}, {}", of.account, of.group, of.at)));
    found.extend(code.unreadable.clone());
    found
}

fn of(path: &str, text: &str) -> Vec<String> {
    code_in_file(path, text.as_bytes()).map_or_else(Vec::new, |code| objections(&code))
}

const SERVICE: &str = "/etc/systemd/system/app.service";

#[test]
fn everyday_texts_are_harmless() {
    let account = "[Service]\nUser=app\nExecStart=/usr/bin/app --port 80\n";
    for (path, text) in [
        (SERVICE, account.to_owned()),
        (SERVICE, format!("[Unit]\nDescription=App %n\nAfter=network-online.target\nWants=network-online.target\n{account}\
            Restart=on-failure\nRestartSec=5s\nGroup=app\nEnvironment=A=b LD_X=y\nWorkingDirectory=/srv/app\nUMask=0077\n\
            LimitNOFILE=65536\nMemoryMax=1G\nCPUQuota=50%\nNoNewPrivileges=yes\nProtectSystem=strict\nProtectHome=yes\n\
            PrivateTmp=yes\nReadWritePaths=/srv/app\nSyslogIdentifier=app\nStandardOutput=journal\nStandardError=journal\n\
            KillSignal=SIGINT\nTimeoutStopSec=30\n\
            CapabilityBoundingSet=CAP_NET_BIND_SERVICE\nExecReload=/bin/kill -HUP $MAINPID\n[Install]\nWantedBy=multi-user.target\n")),
        (SERVICE, format!("{account}InaccessiblePaths=/srv/other\nSystemCallFilter=@system-service\nSystemCallErrorNumber=EPERM\n\
            NoExecPaths=/\nExecPaths=/usr\nNoNewPrivileges=true\n")),
        (SERVICE, "[Service]\nDynamicUser=yes\nExecStart=/usr/bin/app\n[Install]\nAlso=app.socket app.timer\n".to_owned()),
        (SERVICE, "[Service]\nType=oneshot\nExecStart=/bin/true\n".to_owned()),
        ("/etc/systemd/system/app.timer", "[Timer]\nOnCalendar=daily\nPersistent=true\nUnit=app.service\n[Install]\nWantedBy=timers.target\n".to_owned()),
        ("/etc/systemd/system/app.socket", "[Socket]\nListenStream=127.0.0.1:8080\nListenDatagram=[::1]:5353\nBacklog=5\n".to_owned()),
        ("/etc/systemd/system/app.path", "[Path]\nPathChanged=/srv/app/in\nUnit=app.service\n".to_owned()),
        ("/etc/systemd/system/app.service.d/limits.conf", "[Service]\nLimitNOFILE=65536\nRestart=always\nMemoryMax=2G\n".to_owned()),
        ("/etc/systemd/system/app.target", "[Unit]\nDescription=All of app\nRequires=app.service\nConflicts=shutdown.target\n[X-Own]\nA=b\n".to_owned()),
        ("/etc/cron.d/app", "MAILTO=ops@example.org\nPATH=/usr/bin:/bin\n*/5 * * * * app /usr/bin/app --tick | sort > /srv/app/x\n".to_owned()),
        ("/var/spool/cron/crontabs/app", "LD_PRELOAD=/home/app/x.so\n@daily cd && ./x\n@hourly cat%in\n".to_owned()),
        ("/etc/cron.d/app", "TZ=Europe/Berlin\n@daily root logger -t app daily > /dev/null 2>&1\n".to_owned()),
        ("/home/app/.ssh/config", "Host *\n  ProxyCommand nc %h %p\n  ControlPath ~/.ssh/%C\n".to_owned()),
        ("/root/.ssh/config", "Host web\n  HostName 192.0.2.1\n  User app\n  Port 2222\n  ProxyJump gate\n  IdentityFile ~/.ssh/id_ed25519\n".to_owned()),
        ("/home/app/.ssh/authorized_keys", "from=\"10.0.0.1\",no-pty ssh-ed25519 AAAA a@b\n".to_owned()),
        ("/srv/app/compose.yaml", "services:\n  web:\n    image: nginx:${TAG}\n    ports: ['80:80']\n    volumes: [data:/var/lib/x]\n\
            \x20   networks: [front]\n    restart: always\nvolumes:\n  data: {}\nnetworks:\n  front:\n".to_owned()),
        ("/etc/motd", "hello\n".to_owned()),
    ] {
        assert_eq!(of(path, &text), [""; 0], "{path}: {text}");
    }
}

#[test]
fn a_units_key_asks_unless_it_is_harmless_with_its_value() {
    // With the rights of an ordinary account throughout, whose program only does what the account may.
    for lines in [
        "EnvironmentFile=/root/.my.cn?",
        "EnvironmentFile=-/etc/mysql/*.cnf",
        "EnvironmentFile=/etc/shado[w]",
        "SystemCallFilter=~setuid:0 setgid:0",
        "SystemCallErrorNumber=0",
        "InaccessiblePaths=/etc/security",
        "NoNewPrivileges=no",
        "[Install]\nRequiredBy=sysinit.target",
        "[Install]\nRequiredBy=ssh.service",
        "[Install]\nWantedBy=sysinit.target",
        "[Install]\nUpheldBy=basic.target",
        "[Unit]\nBefore=ssh.service",
        "[Unit]\nBefore=sysinit.target",
        "[Unit]\nBefore=multi-user.target local-fs.target",
        "[Unit]\nDefaultDependencies=no",
        "Slice=-.slice",
        "Slice=user.slice",
        "Slice=user-1000.slice",
        "Slice=user-%i.slice",
        "Slice=user-1000-app.slice",
        "Slice=machine.slice",
        "Slice=system-getty.slice",
        "NoNewPrivileges=yes\nInaccessiblePaths=/etc/security\nNoNewPrivileges=no",
        "NoNewPrivileges=yes\nInaccessiblePaths=/etc/security\nNoNewPrivileges=",
        "NoNewPrivileges=yes\nExecPaths=/srv\nUser=root",
        "StandardOutput=file:/run/systemd/system/evil.service",
        "StandardOutput=append:/etc/cron.d/x",
        "StandardError=truncate:/etc/x",
        "StandardOutput=socket",
        "StandardOutput=fd:evil",
        "StandardOutput=tty",
        "StandardOutput=journal file:/x",
        "StandardError= file:/var/log/x",
        "StandardOutput=\"file:/etc/x\"",
        "StandardInput=file:/etc/shadow",
        "StandardInput=tty-force",
        "StandardInput=socket",
        "StandardInput=data",
        "StandardInputText=x",
        "StandardInputData=eA==",
        "RuntimeDirectory=systemd/system",
        "RuntimeDirectory=app",
        "StateDirectory=extensions",
        "CacheDirectory=x",
        "LogsDirectory=x",
        "ConfigurationDirectory=sudoers.d",
        "ConfigurationDirectoryMode=0777",
        "StateDirectory=a:b",
        "AmbientCapabilities=CAP_NET_BIND_SERVICE",
        "AmbientCapabilities=7 6",
        "AmbientCapabilities=CAP_SYS_ADMIN",
        "AmbientCapabilities=cap_sys_admin",
        "AmbientCapabilities=~",
        "AmbientCapabilities=CAP_NET_BIND_SERVICE CAP_DAC_OVERRIDE",
        "AmbientCapabilities=0x40",
        "AmbientCapabilities=CAP_NET_BIND_SERVICE\nAmbientCapabilities=21",
        "SecureBits=keep-caps",
        "PAMName=login",
        "TTYPath=/dev/tty1",
        "TTYReset=yes",
        "UtmpIdentifier=x",
        "UtmpMode=user",
        "PIDFile=/etc/shadow",
        "OpenFile=/etc/shadow",
        "LoadCredential=x:/etc/shadow",
        "LoadCredentialEncrypted=x",
        "SetCredential=x:y",
        "ImportCredential=*",
        "RootDirectory=/srv/x",
        "RootImage=/srv/x.img",
        "MountImages=/srv/x:/etc",
        "ExtensionDirectories=/srv/x",
        "ExtensionImages=/srv/x",
        "BindPaths=/srv/x:/etc/pam.d",
        "BindReadOnlyPaths=/etc/shadow:/srv/x",
        "TemporaryFileSystem=/etc",
        "ExecSearchPath=/srv/bin",
        "Delegate=yes",
        "DeviceAllow=/dev/sda rw",
        "BPFProgram=egress:/sys/fs/bpf/x",
        "IPIngressFilterPath=/sys/fs/bpf/x",
        "NFTSet=cgroup:inet:f:s",
        "NetworkNamespacePath=/proc/1/ns/net",
        "IPCNamespacePath=/proc/1/ns/ipc",
        "LogNamespace=x",
        "MountFlags=shared",
        "SELinuxContext=unconfined_t",
        "AppArmorProfile=unconfined",
        "SmackProcessLabel=x",
        "PermissionsStartOnly=true",
        "Group=docker",
        "Group=root",
        "SupplementaryGroups=disk",
        "SupplementaryGroups=app shadow",
        "Group=0",
        "User=%i",
        "Group=%i",
        "FailureAction=reboot-force",
        "SuccessAction=exit",
        "StartLimitAction=poweroff",
        "[Unit]\nJobTimeoutAction=reboot",
        "[Unit]\nRebootArgument=x",
        "[Unit]\nOnFailure=rescue.target",
        "[Unit]\nOnFailureJobMode=isolate",
        "[Unit]\nOnFailureIsolate=yes",
        "[Unit]\nJoinsNamespaceOf=x.service",
        "Sockets=dbus.socket",
        "Sockets=app.socket",
        "BusName=org.fedoraproject.FirewallD1",
        "CPUSchedulingPolicy=fifo",
        "CPUSchedulingPolicy=rr",
        "CPUSchedulingPriority=99",
        "[Unit]\nWants=debug-shell.service",
        "[Unit]\nConflicts=ssh.service",
        "[Unit]\nPropagatesStopTo=auditd.service",
        "[Install]\nAlias=cron.service",
        "[Install]\nAlso=debug-%i.service",
        "EnvironmentFile=/srv/%i",
        "Evil=x",
        "standardoutput=file:/x",
        "X-Y=z",
        "USBFunctionStrings=/x",
        "SmackLabel=x",
        "RootVerity=/x",
        "RootHash=x",
        "ExecStartPre=+/usr/bin/app",
        "ExecStartPre=!/usr/bin/app",
        "ExecStartPre=-@+/usr/bin/app x",
        "ExecStopPost=!!/usr/bin/app",
        "User=root",
        "User=0",
        "User=",
        "User=root\nDynamicUser=yes",
    ] {
        let (extra, section) = match lines.starts_with('[') {
            true => ("", format!("\n{lines}")),
            false => (lines, String::new()),
        };
        let text = format!("[Service]\nUser=app\nExecStart=/usr/bin/app\n{extra}\n{section}\n");
        assert_ne!(of(SERVICE, &text), [""; 0], "{text}");
    }
    for (name, text) in [
        ("a.socket", "[Socket]\nListenStream=/run/systemd/notify"),
        ("a.socket", "[Socket]\nListenStream=%t/x"),
        ("a.socket", "[Socket]\nListenFIFO=/etc/x"),
        ("a.socket", "[Socket]\nListenSpecial=/dev/sda"),
        ("a.socket", "[Socket]\nSymlinks=/etc/x"),
        ("a.socket", "[Socket]\nRemoveOnStop=yes"),
        ("a.socket", "[Socket]\nListenUSBFunction=/x"),
        ("a.socket", "[Socket]\nListenMessageQueue=/x"),
        ("a.socket", "[Socket]\nExecStartPost=/usr/sbin/x"),
        ("docker.socket.d/a.conf", "[Socket]\nSocketMode=0666"),
        ("docker.socket.d/a.conf", "[Socket]\nSocketGroup=users"),
        ("a.socket", "[Socket]\nService=debug-shell.service"),
        ("etc.mount", "[Mount]\nWhat=/srv/x.img\nWhere=/etc"),
        ("a.mount", "[Mount]\nWhat=tmpfs\nWhere=/etc\nType=tmpfs"),
        ("etc.automount", "[Automount]\nWhere=/etc"),
        ("a.swap", "[Swap]\nWhat=/dev/sda"),
        ("a.path", "[Path]\nPathExists=/x\nMakeDirectory=yes"),
        ("a.path", "[Path]\nUnit=poweroff.target"),
        ("systemd-poweroff.timer", "[Timer]\nOnActiveSec=2"),
        ("debug-shell.path", "[Path]\nPathExists=/"),
        ("rescue.socket", "[Socket]\nListenStream=80"),
        ("a.socket", "[Socket]\nListenStream=80\nExecStartPre=/usr/bin/sleep infinity\nUser=app"),
        ("a.timer", "[Timer]\nOnBootSec=1\nUnit=reboot.target"),
        ("a.timer", "[Timer]\nOnBootSec=1\nUnit=modprobe@evil.service"),
        ("a.service", "[Service]\nWorkingDirectory=/etc/sudoers.d\nExecStart=/usr/bin/logger x"),
        ("a.service", "[Service]\nLimitCORE=infinity\nExecStart=/usr/bin/logger x"),
        ("a.path", "[Path]\nPathExists=/x\nUnit=systemd-makefs@dev-sdb1.service"),
        ("ssh.service.d/a.conf", "[Service]\nMemoryMax=1"),
        ("sshd.service.d/a.conf", "[Service]\nInaccessiblePaths=/etc/ssh"),
        ("service.d/a.conf", "[Service]\nTasksMax=1"),
        ("system-.slice.d/a.conf", "[Slice]\nMemoryMax=1"),
        ("ssh.service.d/a.conf", "[Service]\nUser=app"),
        ("ssh.service.d/a.conf", "[Service]\nUser="),
        ("ssh.service.d/a.conf", "[Service]\nEnvironment=SSHD_OPTS=-oAuthorizedKeysCommand=/x"),
        ("ssh.service.d/a.conf", "[Service]\nEnvironmentFile=/srv/x"),
        ("ssh.service.d/a.conf", "[Service]\nPassEnvironment=LD_PRELOAD"),
        ("cron.service.d/a.conf", "[Service]\nExecStartPost=/usr/bin/app"),
        ("cron.service.d/a.conf", "[Service]\nDynamicUser=yes"),
        ("ssh.service", "[Service]\nUser=app\nExecStart=/usr/bin/app"),
        ("rescue.service", "[Service]\nExecStart=/bin/true"),
        ("/usr/share/dbus-1/system-services/a.service", "[D-BUS Service]\nName=a\nExec=/srv/x\nUser=root"),
        ("/etc/systemd/system.conf", "[Manager]\nDefaultEnvironment=A=b"),
        ("/etc/systemd/system.conf.d/a.conf", "[Manager]\nStatusUnitFormat=name"),
        ("/etc/systemd/system-generators/a", "x"),
        ("/etc/systemd/network/a.network", "[Match]\nName=*"),
        ("/etc/systemd/journald.conf", "[Journal]"),
    ] {
        let path =
            if name.starts_with('/') { name.to_owned() } else { format!("/etc/systemd/system/{name}") };
        assert_ne!(of(&path, text), [""; 0], "{path}: {text}");
    }
}

#[test]
fn what_root_would_run_asks_unless_it_is_known() {
    for line in [
        "/usr/share/debconf/frontend /bin/sh -c id",
        "/usr/sbin/sshd -o AuthorizedKeysCommand=/srv/x",
        "/srv/app/bin/app",
        "/opt/app/app",
        "/usr/local/bin/app",
        "/usr/bin/python3 /opt/x.py",
        "/usr/bin/perl -e x",
        "/usr/bin/nice /bin/true",
        "/usr/bin/env true",
        "/usr/bin/find / -delete",
        "/usr/bin/vim -c '!sh'",
        "/usr/bin/tar cf /dev/null x --checkpoint=1 --checkpoint-action=exec=sh",
        "/usr/bin/rsync -e sh a b",
        "/usr/bin/git -c core.pager=sh x",
        "/usr/bin/man -P sh ls",
        "/usr/bin/awk 'BEGIN{system(\"id\")}'",
        "/usr/sbin/logrotate /srv/x",
        "/usr/bin/curl http://x -o /etc/cron.d/x",
        "/usr/bin/wget x",
        "/usr/sbin/tcpdump -z sh",
        "/usr/bin/zip x y -T -TT sh",
        "/usr/bin/ssh -o ProxyCommand=sh x",
        "/usr/bin/scp -S sh a b",
        "/usr/bin/gcc -wrapper sh x",
        "/usr/bin/openssl engine x",
        "/usr/bin/mysql -e '\\! sh'",
        "/usr/bin/psql -c x",
        "/usr/bin/nmap --script x",
        "/usr/bin/docker run x",
        "/usr/bin/systemctl edit x",
        "/usr/bin/systemd-run sh",
        "/usr/bin/run-parts /srv/x",
        "/usr/bin/dpkg -i x.deb",
        "/usr/bin/pip install x",
        "/usr/bin/make -f x",
        "/usr/bin/crontab x",
        "/usr/bin/at -f x now",
        "/usr/sbin/start-stop-daemon --exec /x",
        "/usr/bin/cp a b",
        "/usr/bin/ln -s a b",
        "/usr/bin/chmod u+s x",
        "/usr/bin/tee /etc/x",
        "/usr/bin/dd of=/dev/sda",
        "/usr/bin/busybox true",
        "/lib64/ld-linux-x86-64.so.2 /bin/true",
        "/bin/../srv/true",
        "/bin/echo x > y; rm x",
        "/bin/date -s 0",
        "/usr/bin/logger -f /etc/shadow",
    ] {
        for text in [
            format!("[Service]\nExecStart={line}\n"),
            format!("[Service]\nUser=app\nExecStartPost=+{line}\n"),
        ] {
            // For systemd a `>` is a word like any other.
            if !line.contains('>') {
                assert_ne!(of(SERVICE, &text), [""; 0], "{text}");
            }
        }
        assert_ne!(of("/etc/cron.d/x", &format!("@daily root {line}\n")), [""; 0], "{line}");
        assert_ne!(of("/var/spool/cron/crontabs/root", &format!("@daily {line}\n")), [""; 0], "{line}");
    }
    for text in [
        "LD_PRELOAD=/x.so\n@daily root true\n",
        "PATH=/srv:/bin\n@daily root true\n",
        "SHELL=/srv/sh\n@daily root true\n",
        "BASH_ENV=/x\n@daily app x\n",
        "MAILTO=-oQ/tmp\n",
        "@daily root sh%rm x\n",
        "@daily root cat%x\n",
        "@daily 0 rm x\n",
        "@daily root:x rm x\n",
        "HOME=/srv\n@daily root true\n",
        "IFS=x\n",
        "@daily root true & rm x\n",
        "@daily root true `rm x`\n",
        "@daily root echo $(rm x)\n",
        "@daily root true > /etc/x\n",
        "@daily root . /srv/x\n",
        "* * * * * root $X\n",
    ] {
        assert_ne!(of("/etc/cron.d/x", text), [""; 0], "{text}");
    }
}

#[test]
fn other_texts_of_the_systems_ask() {
    for (path, text) in [
        ("/etc/sudoers.d/a", "app ALL=(ALL) NOPASSWD: ALL\n"),
        ("/etc/sudoers.d/a", "app ALL = /usr/bin/less /var/log/x\n"),
        ("/etc/sudoers.d/a", "Defaults !use_pty\n"),
        ("/etc/sudoers.d/a", "Defaults:app !authenticate\n"),
        ("/etc/sudoers.d/a", "Defaults env_keep += LD_PRELOAD\n"),
        ("/etc/sudoers.d/a", "Defaults secure_path=/srv\n"),
        ("/etc/sudoers.d/a", "Defaults timestamp_timeout=-1\n"),
        ("/etc/sudoers.d/a", "@include /srv/x\n"),
        ("/etc/sudoers.d/a", "Defaults editor=/srv/x\n"),
        ("/etc/sudoers.d/a", "Defaults runcwd=*\n"),
        ("/etc/logrotate.d/a", "/var/log/a { weekly }\n"),
        ("/etc/udev/rules.d/a.rules", "KERNEL==\"x\", MODE=\"0666\"\n"),
        ("/etc/ld.so.conf.d/a.conf", "/srv\n"),
        ("/etc/profile.d/a.sh", "A=b\n"),
        ("/etc/environment", "A=b\n"),
        ("/etc/modprobe.d/a.conf", "options a b=c\n"),
        ("/etc/sysctl.d/a.conf", "vm.swappiness=1\n"),
        ("/etc/tmpfiles.d/a.conf", "d /srv/x\n"),
        ("/etc/polkit-1/rules.d/a.rules", "x"),
        ("/etc/dbus-1/system.d/a.conf", "<x/>"),
        ("/etc/binfmt.d/a.conf", ":a:E::x::/srv/x:\n"),
        ("/etc/pam.d/a", "auth required pam_unix.so\n"),
        ("/etc/nsswitch.conf", "passwd: files\n"),
        ("/etc/apt/sources.list.d/a.list", "deb x\n"),
        ("/etc/yum.repos.d/a.repo", "[a]\n"),
        ("/etc/apt/sources.list", "deb x\n"),
        ("/etc/apt/sources.list.d/a.sources", "Types: deb\n"),
        ("/etc/apt/keyrings/a.asc", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n"),
        ("/etc/apt/trusted.gpg.d/a.asc", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n"),
        ("/etc/apt/preferences.d/a", "Package: *\n"),
        ("/usr/share/keyrings/a.asc", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n"),
        ("/etc/pki/rpm-gpg/RPM-GPG-KEY-a", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n"),
        ("/etc/dnf/dnf.conf", "[main]\n"),
        ("/boot/grub/grub.cfg", "x"),
        ("/lib/firmware/x", "x"),
        ("/usr/share/bash-completion/completions/x", "x"),
        ("/var/lib/dpkg/status", "x"),
        ("/var/lib/extensions/x/usr/bin/y", "x"),
        ("/root/.bashrc", "x"),
        ("/root/.config/systemd/user/a.service", "[Service]\nExecStart=/srv/x\n"),
        ("/etc/letsencrypt/renewal-hooks/deploy/x", "x"),
        ("/etc/aliases", "root: |/srv/x\n"),
        ("/root/.ssh/config", "Host *\n ProxyCommand /srv/x\n"),
        ("/root/.ssh/config", "PKCS11Provider /srv/x.so\n"),
        ("/root/.ssh/config", "Include /srv/x\n"),
        ("/etc/ssh/ssh_config", "Match exec /srv/x\n"),
        ("/etc/ssh/ssh_config.d/a.conf", "KnownHostsCommand /srv/x\n"),
        ("/root/.ssh/config", "ControlPath /tmp/x\n"),
        ("/root/.ssh/config", "SetEnv A=b\n"),
        ("/root/.ssh/config", "LocalForward 1 x:2\n"),
        ("/home/app/.ssh/authorized_keys", "environment=\"LD_PRELOAD=/x\" ssh-rsa AAAA\n"),
        ("/root/.ssh/authorized_keys", "command=\"/srv/x\" ssh-rsa AAAA\n"),
        ("/home/app/.ssh/authorized_keys", "tunnel=\"0\" ssh-rsa AAAA\n"),
        ("/srv/compose.yaml", "services: {a: {image: b, privileged: true}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, volumes: ['/:/host']}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, volumes: ['./x:/x']}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, volumes: ['${D}:/x']}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, volumes: [{type: bind, source: /etc, target: /x}]}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, pid: host}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, network_mode: host}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, networks: [host]}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, devices: ['/dev/sda']}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, cap_add: [SYS_ADMIN]}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, security_opt: ['seccomp:unconfined']}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, env_file: /etc/shadow}}"),
        ("/srv/compose.yaml", "services: {a: {build: .}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, gpus: all}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, extends: x}}"),
        ("/srv/compose.yaml", "include: [x]\nservices: {}"),
        ("/srv/compose.yaml", "services: {a: {image: b}}\nsecrets: {s: {file: /etc/shadow}}"),
        ("/srv/compose.yaml", "services: {a: {image: b}}\nvolumes: {v: {driver_opts: {device: /}}}"),
        ("/srv/compose.yaml", "web: {image: b, privileged: true}"),
        ("/srv/compose.yaml", "x: &x {privileged: true}\nservices: {a: {image: b, <<: *x}}"),
        ("/srv/compose.yaml", "services: {a: {image: b, post_start: [{command: x}]}}"),
    ] {
        assert_ne!(of(path, text), [""; 0], "{path}: {text}");
    }
}
