//! Everyday incidents: the first finding names the cause.

use serde_json::{Value, json};

use super::machine::{Machine, failed, running, service, status};

/// Asserts that the first finding is of this kind, that its cause has this text, and that it suggests this call.
fn is_found(machine: Machine, complaint: &str, (kind, cause): (&str, &str), call: Value) {
    let (data, reply) = machine.asked(complaint);
    let first = &data["findings"][0];
    assert_eq!(first["kind"], kind, "{complaint}: {data:#}");
    let said = format!("{} {}", first["what"].as_str().unwrap(), first["cause"].as_str().unwrap_or_default());
    assert!(said.contains(cause), "{complaint}: {data:#}");
    assert_eq!(first["call"], call, "{complaint}: {data:#}");
    assert!(reply.summary.unwrap().contains(first["what"].as_str().unwrap()), "{complaint}");
    assert!(data.to_string().len() < 1500, "{complaint}: {} bytes", data.to_string().len());
}

fn nginx() -> Machine {
    let nginx = service("nginx", "web", "/etc/nginx/nginx.conf", "bad-gateway");
    Machine::new().with(nginx)
}

#[test]
fn a_web_server_that_names_a_missing_file() {
    let line = "nginx: [emerg] open() \"/etc/nginx/snippets/shop-header.conf\" failed (2: No such file or directory) in /etc/nginx/sites-enabled/shop:5";
    let machine = nginx()
        .says("units", json!([failed("nginx"), running("cron")]))
        .says("edits in /etc", json!([
            {"path": "nginx/sites-available/shop", "size": 170, "mode": "0644", "owner": "root:root", "modified": "2026-11-28T14:40:00Z"}
        ]))
        .told("svc_troubleshoot", json!({"service": "nginx"}), json!({
            "service": "nginx", "profile": "nginx", "active_state": "failed", "checked": ["doesnt-start"],
            "causes": [{"symptom": "doesnt-start", "cause": "The configuration has an error", "fix": "Correct the line",
                        "evidence": [{"means": "x", "command": "nginx -t", "line": line}]}]
        }))
        .told("svc_status", json!({"service": "nginx"}), status("nginx", &[line]));
    let complaint = "The web server didn't come back after last night's restart.";
    let call = json!({"tool": "file_list", "arguments": {"path": "/etc/nginx/snippets"}});
    let cause = "/etc/nginx/sites-enabled/shop:5 names /etc/nginx/snippets/shop-header.conf, which isn't there; an edit of \
                 /etc/nginx/sites-available/shop, 10 min before";
    is_found(machine, complaint, ("service", cause), call);
}

#[test]
fn an_account_that_sshd_does_not_allow() {
    let machine = Machine::new()
        .says("accounts", json!([{"user": "lsa-anna", "uid": 1001, "shell": "/bin/sh"}, {"user": "root", "uid": 0, "shell": "/bin/bash", "home": "/root"}]))
        .says("refused logins", json!({"matches": 1, "lines": [
            "2026-11-28T14:58:00Z sshd: User lsa-anna from 127.0.0.1 not allowed because not listed in AllowUsers"
        ], "sources": {"journal": 1}}))
        .told("user_info", json!({"user": "lsa-anna"}), json!({
            "user": "lsa-anna", "uid": 1001, "home": {"path": "/home/lsa-anna", "exists": true, "mode": "0755"},
            "shell": {"path": "/bin/sh", "login": true, "listed": true}, "login": {"password": "locked"}
        }))
        .told("perms_check", json!({"path": "/home/lsa-anna/.ssh/authorized_keys"}), json!([
            {"path": "/home/lsa-anna/.ssh/authorized_keys", "type": "file", "mode": "0600", "owner": "lsa-anna", "group": "lsa-anna"}
        ]))
        .told("svc_status", json!({"service": "ssh"}), json!({"service": "ssh", "active_state": "active", "sub_state": "running"}));
    let complaint =
        "lsa-anna can't log in by SSH since yesterday. Her key didn't change, and others can log in.";
    let call = json!({"tool": "file_search", "arguments": {"path": "/etc/ssh", "pattern": "AllowUsers"}});
    is_found(machine, complaint, ("login", "AllowUsers of sshd doesn't name lsa-anna"), call);
}

#[test]
fn a_name_that_the_machines_own_server_has_no_record_of() {
    let record = |name: &str, addresses: Value, status: &str| {
        (
            json!({"test": "dns", "target": name}),
            json!({"addresses": addresses, "sources": "files dns", "servers": [{"server": "127.0.0.1", "status": status}]}),
        )
    };
    let (wiki, nothing) = record("wiki.intern.example", json!([]), "NXDOMAIN");
    let (git, found) = record("git.intern.example", json!(["127.0.0.31"]), "NOERROR");
    let machine = Machine::new()
        .with(service("unbound", "dns", "/etc/unbound/unbound.conf", "names-fail"))
        .says("units", json!([running("unbound")]))
        .says("edits in /etc", json!([{"path": "unbound/unbound.conf.d/intern.conf", "modified": "2026-11-28T14:55:00Z"}]))
        .told("net_test", wiki, nothing)
        .told("net_test", git, found)
        .told("net_explain", json!({"target": "wiki.intern.example"}), json!({
            "reached": false, "fails_at": "name", "steps": [{"step": "name", "ok": false, "found": "the name has no address"}]
        }))
        .told("svc_status", json!({"service": "unbound"}), json!({"service": "unbound", "active_state": "active", "sub_state": "running"}));
    let call = json!({"tool": "file_search", "arguments": {"path": "/etc/unbound", "pattern": "intern.example", "fixed": true}});
    let cause = "wiki.intern.example has no address unbound on this machine, which answers for intern.example, has no record of \
                 it; an edit of /etc/unbound/unbound.conf.d/intern.conf, 5 min ago";
    is_found(machine, "Nobody reaches wiki.intern.example. git.intern.example works.", ("dns", cause), call);
}

#[test]
fn a_file_that_cron_ignores_for_its_name() {
    let why = "cron reads no file whose name has anything but letters, digits, _ and -";
    let machine = Machine::new()
        .says("units", json!([failed("apt-daily"), running("cron")]))
        .told("svc_status", json!({"service": "apt-daily"}), status("apt-daily", &["E: Could not resolve"]))
        .told("svc_status", json!({"service": "cron"}), json!({"service": "cron", "active_state": "active"}))
        .says("cron", json!([
            {"user": "root", "source": "/etc/crontab", "line": 6, "schedule": "17 * * * *", "command": "x", "enabled": true},
            {"source": "/etc/cron.d/shop-report.cron", "enabled": false, "error": why, "better_name": "shop-report"},
        ]));
    let call = json!({"tool": "file_move", "arguments": {"path": "/etc/cron.d/shop-report.cron", "to": "/etc/cron.d/shop-report"}});
    let complaint = "Since the move to this machine there is no nightly report of the shop.";
    is_found(
        machine,
        complaint,
        ("schedule", &format!("cron doesn't run /etc/cron.d/shop-report.cron {why}")),
        call,
    );
}

#[test]
fn a_log_rotation_with_an_account_that_does_not_exist() {
    let lines = [
        "error: /etc/logrotate.d/shop:6 unknown user 'www-date'",
        "error: found error in /var/log/shop/*.log , skipping",
    ];
    let machine = Machine::new()
        .says("units", json!([failed("logrotate"), failed("apt-daily"), running("cron")]))
        .says("timers", json!([{"timer": "logrotate.timer", "activates": "logrotate.service", "last_result": "exit-code",
                                "schedule": ["OnCalendar=*-*-* 00:00:00"], "active_state": "active", "sub_state": "waiting"}]))
        .told("svc_status", json!({"service": "apt-daily"}), status("apt-daily", &["E: Could not resolve"]))
        .told("svc_status", json!({"service": "cron"}), json!({"service": "cron", "active_state": "active"}))
        .told("svc_status", json!({"service": "logrotate"}), status("logrotate", &lines));
    let call = json!({"tool": "file_read", "arguments": {"path": "/etc/logrotate.d/shop"}});
    let complaint = "The disk fills up. The logs of the shop aren't rotated any more.";
    is_found(machine, complaint, ("service", "/etc/logrotate.d/shop:6 names the account www-date"), call);
}

#[test]
fn a_value_of_the_kernel_that_another_file_overrides() {
    let machine = Machine::new().says("forwarding", json!([
        {"key": "net.ipv4.ip_forward", "value": "0", "persistent": "0", "set_by": "/etc/sysctl.d/90-hardening.conf:3",
         "loses": ["/etc/sysctl.d/60-vpn.conf:1 (1)"]}
    ]));
    let call = json!({"tool": "file_read", "arguments": {"path": "/etc/sysctl.d/90-hardening.conf"}});
    let cause = "/etc/sysctl.d/90-hardening.conf:3 is read after /etc/sysctl.d/60-vpn.conf:1 (1), and wins";
    let complaint = "Clients of the VPN don't get any further than this machine since it was restarted.";
    is_found(machine, complaint, ("network", cause), call);
}

#[test]
fn a_service_behind_another_one_that_listens_elsewhere() {
    let line = "2026/11/28 14:59:02 [error] 812#812: *1 connect() failed (111: Connection refused) while connecting to upstream, client: 127.0.0.1, server: , request: \"GET / HTTP/1.1\", upstream: \"http://127.0.0.1:8081/\", host: \"127.0.0.1:8080\"";
    let machine = nginx()
        .says("units", json!([running("nginx"), running("shop")]))
        .says("listeners", json!([
            {"pid": 812, "command": "nginx: master process", "unit": "nginx.service", "user": "root", "listens": ["tcp 0.0.0.0:80", "tcp 0.0.0.0:8080"]},
            {"pid": 900, "command": "/usr/bin/python3 /opt/shop/shop.py", "unit": "shop.service", "user": "shop", "listens": ["tcp 127.0.0.1:8018"]},
        ]))
        .told("svc_troubleshoot", json!({"service": "nginx", "symptom": "bad-gateway"}), json!({
            "service": "nginx", "profile": "nginx", "active_state": "active", "checked": ["bad-gateway"],
            "causes": [{"symptom": "bad-gateway", "cause": "The application doesn't run", "fix": "Start it",
                        "evidence": [{"means": "x", "command": "tail", "line": line}]}]
        }))
        .told("svc_status", json!({"service": "shop"}), json!({"service": "shop", "active_state": "active", "sub_state": "running"}));
    let call = json!({"tool": "file_search", "arguments": {"path": ["/etc", "/opt", "/srv"], "pattern": "\\b(8081|8018)\\b"}});
    let cause = "nothing listens at 127.0.0.1:8081, where it passes requests on to; shop listens on tcp 127.0.0.1:8018";
    is_found(machine, "The shop shows \"502 Bad Gateway\".", ("service", cause), call);
}

#[test]
fn a_lock_that_was_left_behind() {
    let line = "shop-backup: /run/lock/shop-backup.lock: another backup runs as process 4190000";
    let machine = Machine::new()
        .says("units", json!([failed("shop-backup"), failed("apt-daily")]))
        .told("svc_status", json!({"service": "apt-daily"}), status("apt-daily", &["E: Could not resolve"]))
        .told("svc_status", json!({"service": "shop-backup"}), status("shop-backup", &[line]));
    let call = json!({"tool": "proc_info", "arguments": {"pid": 4190000}});
    let cause = "/run/lock/shop-backup.lock is held for process 4190000, which may have ended";
    is_found(machine, "There was no backup of the shop for days.", ("service", cause), call);
}

#[test]
fn files_of_another_owner() {
    let line = "/bin/sh: 1: cannot create /srv/shop/orders/log: Permission denied";
    let mut said = status("shop", &[line]);
    said["user"] = json!("lsa-shop");
    let machine = Machine::new()
        .says("units", json!([failed("shop"), failed("apt-daily")]))
        .told("svc_status", json!({"service": "apt-daily"}), status("apt-daily", &["E: Could not resolve"]))
        .told("svc_status", json!({"service": "shop"}), said);
    let call =
        json!({"tool": "perms_check", "arguments": {"path": "/srv/shop/orders/log", "user": "lsa-shop"}});
    let complaint = "The shop doesn't start since its orders were restored from the backup.";
    is_found(machine, complaint, ("service", "lsa-shop may not use /srv/shop/orders/log"), call);
}

#[test]
fn a_repository_that_cannot_be_read() {
    let machine = Machine::new()
        .says("units", json!([failed("apt-daily")]))
        .told("svc_status", json!({"service": "apt-daily"}), status("apt-daily", &["E: Could not resolve"]))
        .told("proc_list", json!({"file": "/var/lib/dpkg/lock-frontend", "limit": 3}), json!([]))
        .says("repositories", json!([
            {"id": "deb.debian.org bookworm", "urls": ["http://deb.debian.org/debian"], "at": "/etc/apt/sources.list:1", "refreshed": "2026-11-28T10:00:00Z"},
            {"id": "partner", "urls": ["file:/opt/partner/debain"], "at": "/etc/apt/sources.list.d/partner.list:1",
             "warnings": ["signatures aren't checked (trusted=yes)", "never read successfully"]},
        ]));
    let call = json!({"tool": "pkg_update", "arguments": {"refresh_only": true}});
    let complaint = "Updates can't be installed. The update of the package lists reports an error.";
    is_found(
        machine,
        complaint,
        (
            "packages",
            "the repository partner was never read nothing can be had from file:/opt/partner/debain",
        ),
        call,
    );
}

#[test]
fn a_name_that_hosts_has_at_its_former_address() {
    let machine = Machine::new()
        .says("units", json!([failed("shop-sync")]))
        .told(
            "svc_status",
            json!({"service": "shop-sync"}),
            status(
                "shop-sync",
                &[
                    "/bin/bash: connect: Connection refused",
                    "/bin/bash: line 1: /dev/tcp/db.intern.example/5433: Connection refused",
                ],
            ),
        )
        .told("net_explain", json!({"target": "db.intern.example"}), json!({"reached": true, "steps": []}))
        .told(
            "net_test",
            json!({"test": "dns", "target": "db.intern.example"}),
            json!({
                "addresses": ["127.0.0.2"], "sources": "files dns",
                "hosts": [{"line": 4, "address": "127.0.0.2", "names": ["db.intern.example", "db"]}],
                "servers": [{"server": "192.0.2.53", "status": "NXDOMAIN"}]
            }),
        );
    let call = json!({"tool": "file_search", "arguments": {"path": "/etc/hosts", "pattern": "db.intern.example", "fixed": true}});
    let cause =
        "db.intern.example stands for 127.0.0.2, and not for 127.0.0.20 line 4 of /etc/hosts is out of date";
    let complaint = "The shop isn't synchronized since the database db.intern.example moved to 127.0.0.20.";
    is_found(machine, complaint, ("dns", cause), call);
}

#[test]
fn a_directory_that_was_not_made_at_the_start() {
    let machine = Machine::new()
        .says("units", json!([failed("shop-worker"), failed("apt-daily")]))
        .says("tmpfiles", json!({"source": "systemd-tmpfiles", "lines": [
            "2026-11-28T14:40:00Z: /etc/tmpfiles.d/shop.conf:1: Failed to resolve user 'lsa-shp': No such process",
        ]}))
        .told("svc_status", json!({"service": "apt-daily"}), status("apt-daily", &["E: Could not resolve"]))
        .told("svc_status", json!({"service": "shop-worker"}), status("shop-worker", &["/bin/sh: 1: cannot create /run/shop/state: Directory nonexistent"]));
    let call = json!({"tool": "file_read", "arguments": {"path": "/etc/tmpfiles.d/shop.conf"}});
    let cause = "the directory /run/shop isn't there, because /etc/tmpfiles.d/shop.conf:1 names the account or group lsa-shp";
    let complaint = "The shop's worker doesn't start since the machine was restarted.";
    is_found(machine, complaint, ("service", cause), call);
}

#[test]
fn a_port_of_the_command_line_that_another_service_has() {
    let mut said = status("shop", &["OSError: [Errno 98] Address already in use"]);
    said["exec_start"] = json!("/usr/bin/python3 -m http.server --bind 127.0.0.1 8081");
    let listener = |pid: u32, unit: &str, port: u16| {
        json!({"pid": pid, "started": "2026-11-28T14:00:00Z", "command": format!("{unit} {port}"), "unit": format!("{unit}.service"),
               "user": "root", "listens": [format!("tcp 127.0.0.1:{port}")]})
    };
    let machine = Machine::new()
        .says("units", json!([failed("shop"), running("shop-preview")]))
        .says("listeners", json!([listener(1, "ssh", 22), listener(700, "shop-preview", 8081)]))
        .told("svc_status", json!({"service": "shop"}), said);
    let (data, _) = machine.asked("The shop doesn't start.");
    let first = &data["findings"][0];
    assert_eq!(first["cause"], "another process has the port 8081", "{data:#}");
    let evidence = first["evidence"].as_str().unwrap();
    assert!(
        evidence.starts_with("port 8081 is held by shop-preview 8081 (PID 700, shop-preview, "),
        "{evidence}"
    );
    let call = json!({"tool": "net_connections", "arguments": {"port": 8081, "state": "listening"}});
    assert_eq!(first["call"], call, "{data:#}");
}

#[test]
fn a_unit_that_the_kernel_killed_at_its_memory_limit() {
    let mut said = status("shop-import", &[]);
    said["result"] = json!("oom-kill");
    said["exit_code"] = json!(null);
    said["exit_signal"] = json!("KILL");
    said["memory_limit_mb"] = json!(32.0);
    let machine = Machine::new().says("units", json!([failed("shop-import")])).told(
        "svc_status",
        json!({"service": "shop-import"}),
        said,
    );
    let call = json!({"tool": "svc_troubleshoot", "arguments": {"service": "shop-import"}});
    let cause = "shop-import has failed (KILL) the kernel killed it for want of memory; it may use 32 MiB";
    let complaint = "The nightly import of the shop stops every time since there are more products.";
    is_found(machine, complaint, ("service", cause), call);
}

#[test]
fn a_program_that_cannot_be_run_is_named_without_a_line_of_the_journal() {
    let mut said = status("shop", &[]);
    said["exit_code"] = json!(203);
    said["exit_code_means"] = json!("its program can't be run");
    said["exec_start"] = json!("/usr/bin/shop --all");
    let machine = Machine::new().says("units", json!([failed("shop")])).told(
        "svc_status",
        json!({"service": "shop"}),
        said,
    );
    let call = json!({"tool": "svc_troubleshoot", "arguments": {"service": "shop"}});
    let cause = "shop has failed (exit code 203) its program can't be run; it starts /usr/bin/shop --all";
    is_found(machine, "The shop doesn't start.", ("service", cause), call);
}

#[test]
fn an_exit_code_of_a_program_that_has_said_something_is_its_own() {
    let mut said = status("shop", &["nothing is left to do"]);
    said["exit_code"] = json!(203);
    said["exit_code_means"] = json!("its program can't be run");
    let machine = Machine::new().says("units", json!([failed("shop")])).told(
        "svc_status",
        json!({"service": "shop"}),
        said,
    );
    let (data, _) = machine.asked("The shop doesn't start.");
    let first = &data["findings"][0];
    assert_eq!(first["what"], "shop has failed (exit code 203)", "{data:#}");
    assert_eq!(first["cause"], json!(null), "{data:#}");
}
