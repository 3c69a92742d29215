//! The tools as the host calls them, on processes of a made-up machine and on recordings of real ones.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::testkit::{FakeTarget, takes_little_context};
use linux_sysadmin_sdk::{Category, Problem};
use module_processes::module;
use serde_json::{Value, json};

/// A process of the machine: PID, name, state, parent, user, pages of memory, control group and command line.
type Made = (u32, &'static str, char, u32, u32, u64, &'static str, &'static str);

const NGINX: &str = "/system.slice/nginx.service";

const MACHINE: [Made; 7] = [
    (1, "systemd", 'S', 0, 0, 30, "/init.scope", "/sbin/init\0"),
    (2, "kthreadd", 'S', 0, 0, 0, "/", ""),
    (62, "nginx", 'S', 1, 0, 10, NGINX, "nginx: master process /usr/sbin/nginx\0"),
    (63, "nginx", 'S', 62, 33, 90, NGINX, "nginx: worker process\0"),
    (
        70,
        "python3",
        'D',
        1,
        1234,
        500,
        "/system.slice/app.service",
        "python3\0/opt/App.py\0--token=hunter2\0",
    ),
    (71, "sh (x) Z\n1", 'Z', 70, 1234, 0, "/system.slice/app.service", ""),
    (80, "bash", 'T', 1, 1000, 20, "/user.slice/user-1000.slice/session-3.scope", "-bash\0"),
];

fn machine() -> FakeTarget {
    let mut target = FakeTarget::new()
        .file("/proc/stat", "cpu 1 2 3 4\nbtime 1700000000\n")
        .file(
            "/etc/passwd",
            "root:x:0:0::/root:/bin/sh\nwww-data:x:33:33::/:/bin/false\nada:x:1000:1000::/:/bin/sh\n",
        )
        .answer(&["getent", "passwd", "--", "ada"], 0, "ada:x:1000:1000::/:/bin/sh\n", "")
        .answer(&["getent", "passwd", "--", "lsa-none"], 2, "", "");
    for (pid, name, state, parent, uid, pages, cgroup, command) in MACHINE {
        let flags = if pid == 2 { 0x0020_0040 } else { 0x0040_0100 };
        let path = |file: &str| format!("/proc/{pid}/{file}");
        let memory = if pages == 0 { String::new() } else { format!("VmRSS:\t{} kB\n", pages * 4) };
        let escaped = name.replace('\n', "\\n");
        target = target
            .file(
                &path("stat"),
                format!(
                    "{pid} ({name}) {state} {parent} 1 1 0 -1 {flags} 0 0 0 0 100 50 9 9 20 0 1 0 {pid}00 4096 {pages} 1\n"
                ),
            )
            .file(
                &path("status"),
                format!(
                    "Name:\t{escaped}\nState:\t{state} (word)\nTgid:\t{pid}\nPid:\t{pid}\nTracerPid:\t0\n\
                     Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t{pid}\n{memory}Threads:\t1\n"
                ),
            )
            .file(&path("cgroup"), format!("0::{cgroup}\n"))
            .file(&path("cmdline"), command);
    }
    target
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

fn list(target: FakeTarget, arguments: Value) -> (Value, Vec<String>) {
    call(target, "proc_list", arguments.clone()).unwrap_or_else(|problem| panic!("{arguments}: {problem:?}"))
}

fn pids(data: &Value) -> Vec<u64> {
    data.as_array().unwrap().iter().map(|item| item["pid"].as_u64().unwrap()).collect()
}

#[test]
fn a_tool_takes_little_of_a_models_context() {
    let description = module().description();
    let looking = description.tools.iter().filter(|tool| tool.risk == linux_sysadmin_sdk::Risk::ReadOnly);
    let names: Vec<_> = looking.clone().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["proc_list", "proc_info"]);
    for tool in looking {
        takes_little_context(tool);
    }
}

#[test]
fn no_grant_shows_environment_or_memory_of_a_process() {
    let capabilities = module().description().capabilities;
    for grant in capabilities.paths {
        assert!(!grant.write && !grant.reason.is_empty(), "{}", grant.glob);
        assert!(!grant.glob.ends_with('*') && !grant.glob.contains("environ"), "{}", grant.glob);
    }
}

#[test]
fn those_with_the_most_memory_come_first_and_kernel_threads_do_not_come() {
    let (data, notes) = list(machine(), json!({}));
    assert_eq!(pids(&data), [70, 63, 1, 80, 62, 71]);
    assert_eq!(
        data[0],
        json!({
            "pid": 70, "started": "2023-11-14T22:14:30Z", "command": "python3 /opt/App.py --token=***",
            "unit": "app.service", "user": "1234", "memory_mb": 2.0, "state": "D"
        })
    );
    assert_eq!(
        data[5],
        json!({
            "pid": 71, "started": "2023-11-14T22:14:31Z", "command": "[sh (x) Z 1]", "unit": "app.service",
            "user": "1234", "state": "Z"
        })
    );
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn each_filter_selects_its_processes() {
    for (arguments, expected) in [
        (json!({"name": "NGINX"}), &[63, 62][..]),
        (json!({"name": "app.py"}), &[70]),
        (json!({"name": "(x)"}), &[71]),
        (json!({"name": "hunter2"}), &[]),
        (json!({"user": "ada"}), &[80]),
        (json!({"user": "1234"}), &[70, 71]),
        (json!({"service": "nginx"}), &[63, 62]),
        (json!({"service": " nginx "}), &[63, 62]),
        (json!({"name": " app.py "}), &[70]),
        (json!({"service": "session-3.scope"}), &[80]),
        (json!({"service": "user.slice"}), &[80]),
        (json!({"service": "ginx"}), &[]),
        (json!({"state": "zombie"}), &[71]),
        (json!({"state": "DT"}), &[70, 80]),
        (json!({"service": "app", "state": "Z", "user": "1234", "name": "sh"}), &[71]),
        (json!({"kernel_threads": true, "name": "kthreadd"}), &[2]),
    ] {
        assert_eq!(pids(&list(machine(), arguments.clone()).0), expected, "{arguments}");
    }
}

#[test]
fn a_unit_is_found_by_each_of_its_names() {
    // The second name has a dot and no type, and the third one is an alias.
    let show = |unit: &str, said: &str| {
        let mut target = machine();
        target.distro.init_system = "systemd".to_owned();
        target
            .file("/proc/62/cgroup", "0::/system.slice/nginx1.2.service\n")
            .file("/proc/63/cgroup", "0::/system.slice/nginx1.2.service\n")
            .answer(&["systemctl", "show", "--property=Id", "--property=LoadState", "--", unit], 0, said, "")
    };
    for (unit, said, expected, note) in [
        ("nginx1.2.service", "", &[63, 62][..], None),
        ("nginx1.2", "", &[63, 62], None),
        (
            "web",
            "Id=nginx1.2.service\nLoadState=loaded\n",
            &[63, 62],
            Some("web.service is another name of nginx1.2.service"),
        ),
        ("idle", "Id=idle.service\nLoadState=loaded\n", &[], Some("no such process belongs to idle.service")),
        ("gone", "Id=gone.service\nLoadState=not-found\n", &[], Some("systemd knows no unit gone.service")),
    ] {
        let (data, notes) = list(show(&format!("{unit}.service"), said), json!({"service": unit}));
        assert_eq!(pids(&data), expected, "{unit}");
        assert_eq!(!notes.is_empty(), note.is_some(), "{unit}: {notes:?}");
        assert!(note.is_none_or(|note| notes[0].starts_with(note)), "{unit}: {notes:?}");
    }
}

#[test]
fn a_tree_has_a_line_for_each_process_below_its_parent() {
    let (data, notes) = list(machine(), json!({"tree": true}));
    assert_eq!(
        data,
        json!([
            "1 2023-11-14T22:13:21Z root init.scope /sbin/init",
            "  62 2023-11-14T22:14:22Z root nginx.service nginx: master process /usr/sbin/nginx",
            "    63 2023-11-14T22:14:23Z www-data nginx.service nginx: worker process",
            "  70 2023-11-14T22:14:30Z 1234 app.service python3 /opt/App.py --token=***",
            "    71 2023-11-14T22:14:31Z 1234 app.service [sh (x) Z 1]",
            "  80 2023-11-14T22:14:40Z ada session-3.scope -bash",
        ])
    );
    assert_eq!(notes, ["each line is PID, start, user, unit and command, below its parent"]);
    let (data, _) = list(machine(), json!({"tree": true, "state": "Z"}));
    let lines: Vec<_> =
        data.as_array().unwrap().iter().map(|line| line.as_str().unwrap().trim_start()).collect();
    let first: Vec<_> = lines.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(first, ["1", "70", "71"]);
}

const SS: [&str; 2] = ["ss", "-Hltunp"];

#[test]
fn a_port_is_told_with_those_who_listen_on_it() {
    let said = "\
tcp   LISTEN 0      511          0.0.0.0:80         0.0.0.0:*    users:((\"nginx\",pid=63,fd=5),(\"nginx\",pid=62,fd=5))
tcp   LISTEN 0      64           0.0.0.0:2049       0.0.0.0:*
";
    let target = || machine().answer(&SS, 0, said, "");
    let (data, _) = list(target(), json!({"port": 80}));
    assert_eq!((pids(&data), &data[0]["has"]), (vec![63, 62], &json!(["tcp 0.0.0.0:80"])));
    for (port, note) in [
        (
            81,
            "nothing listens on port 81 in the machine's own network; proc_info shows the ports of a container's process",
        ),
        (2049, "tcp 0.0.0.0:2049 belongs to the kernel, or to a process that only root can see"),
    ] {
        assert_eq!(list(target(), json!({"port": port})), (json!([]), vec![note.to_owned()]));
    }
    // Several sockets may share an address. They are told once.
    let (data, notes) = list(machine().answer(&SS, 0, said.repeat(2), ""), json!({"port": 2049}));
    assert_eq!((data, notes.len()), (json!([]), 1));
}

fn resolve(target: FakeTarget, path: &str, resolved: &str) -> FakeTarget {
    target.answer(&["realpath", "--canonicalize-existing", "--", path], 0, format!("{resolved}\n"), "")
}

fn find(target: FakeTarget, patterns: [&str; 3], said: &str, error: &str) -> FakeTarget {
    let [own, deleted, below] = patterns;
    let before = "find /proc -mindepth 1 -maxdepth 3 ( -path /proc/[!1-9]* -o -path /proc/*/task -o -path /proc/*/net \
        -o -path /proc/*/attr -o -path /proc/*/ns -o -path /proc/*/fdinfo ) -prune -o -type l ( -lname";
    let argv: Vec<&str> = before
        .split_whitespace()
        .chain([own, "-o", "-lname", deleted, "-o", "-lname", below, ")", "-printf", "%p\\t%l\\0"])
        .collect();
    target.answer(&argv, i32::from(!error.is_empty()), said, error)
}

#[test]
fn a_file_is_told_with_those_who_have_it_open_and_a_link_is_followed() {
    let said = "/proc/62/fd/4\t/srv/a[1]/x\0/proc/62/fd/5\t/srv/a[1]/x\0/proc/70/cwd\t/srv/a[1]\0/proc/9/cwd\t/srv/a[1]\0";
    let patterns = ["/srv/a\\[1\\]", "/srv/a\\[1\\] (deleted)", "/srv/a\\[1\\]/*"];
    let refused = "find: '/proc/1/fd': Permission denied";
    let target = find(resolve(machine(), "/a", "/srv/a[1]"), patterns, said, refused);
    let (data, notes) = list(target, json!({"file": "/a"}));
    assert_eq!(pids(&data), [70, 62]);
    assert_eq!((&data[0]["has"], &data[1]["has"]), (&json!(["cwd"]), &json!(["fd 4,5 /srv/a[1]/x"])));
    assert_eq!(notes, ["only root can see which files processes of other accounts have open"]);
}

#[test]
fn a_socket_that_is_a_file_is_told_with_those_who_listen_on_it() {
    let patterns = ["/run/x.sock", "/run/x.sock (deleted)", "/run/x.sock/*"];
    let said = "u_str LISTEN 0      511       /run/x.sock 4984008 * 0 users:((\"nginx\",pid=63,fd=5),(\"nginx\",pid=62,fd=5))\n";
    let target = find(resolve(machine(), "/run/x.sock", "/run/x.sock"), patterns, "", "");
    let (data, _) =
        list(target.answer(&["ss", "-H", "-x", "-l", "-p"], 0, said, ""), json!({"file": "/run/x.sock"}));
    assert_eq!((pids(&data), &data[0]["has"]), (vec![63, 62], &json!(["listens"])));
}

#[test]
fn a_file_that_nobody_has_open_is_an_empty_answer_and_one_that_is_not_there_an_error() {
    let found = |target, said| find(target, ["/x", "/x (deleted)", "/x/*"], said, "");
    assert_eq!(list(found(resolve(machine(), "/x", "/x"), ""), json!({"file": "/x"})), (json!([]), vec![]));
    // realpath of coreutils 9.1.
    let missing = machine()
        .answer(
            &["realpath", "--canonicalize-existing", "--", "/x"],
            1,
            "",
            "realpath: /x: No such file or directory",
        )
        .answer(&["realpath", "--canonicalize-missing", "--", "/x"], 0, "/x\n", "");
    let (data, _) = list(found(missing.clone(), "/proc/62/fd/3\t/x (deleted)\0"), json!({"file": "/x"}));
    assert_eq!(data[0]["has"], json!(["fd 3 /x (deleted)"]));
    let problem = call(found(missing, ""), "proc_list", json!({"file": "/x"})).unwrap_err();
    assert_eq!((problem.code.as_str(), problem.category), ("FILE_NOT_FOUND", Category::NotFound));
}

#[test]
fn bad_input_is_refused_and_the_message_says_what_was_expected() {
    for (tool, arguments, code, said) in [
        ("proc_list", json!({"port": 0}), "INVALID_ARGUMENTS", "expected 1 to 65535"),
        ("proc_list", json!({"port": 65536}), "INVALID_ARGUMENTS", "expected 1 to 65535"),
        ("proc_list", json!({"name": " "}), "INVALID_ARGUMENTS", "name is empty"),
        ("proc_list", json!({"service": ""}), "INVALID_ARGUMENTS", "service is empty"),
        ("proc_list", json!({"state": "asleep"}), "INVALID_ARGUMENTS", "D (blocked)"),
        ("proc_list", json!({"user": "lsa-none"}), "USER_NOT_FOUND", "no account lsa-none"),
        ("proc_list", json!({"user": "-x"}), "INVALID_USER", "expected letters"),
        ("proc_list", json!({"file": "x"}), "INVALID_PATH", "absolute path"),
        ("proc_list", json!({"file": "/"}), "INVALID_PATH", "absolute path"),
        ("proc_list", json!({"file": "/srv/../etc"}), "INVALID_PATH", "absolute path"),
        ("proc_list", json!({"file": "/x\n"}), "INVALID_PATH", "absolute path"),
        ("proc_list", json!({"file": "/x\u{202e}"}), "INVALID_PATH", "absolute path"),
        ("proc_list", json!({"file": "/x".repeat(3000)}), "INVALID_PATH", "absolute path"),
        ("proc_info", json!({"pid": 0}), "INVALID_ARGUMENTS", "expected 1 to 4194304"),
        ("proc_info", json!({"pid": -7}), "INVALID_ARGUMENTS", "expected 1 to 4194304"),
        ("proc_info", json!({"pid": (1 << 22) + 1}), "INVALID_ARGUMENTS", "expected 1 to 4194304"),
        ("proc_info", json!({"pid": "sshd"}), "INVALID_ARGUMENTS", "i64"),
        ("proc_info", json!({"pid": 1 << 22}), "PROCESS_NOT_FOUND", "no process 4194304"),
    ] {
        let problem = call(machine(), tool, arguments.clone()).unwrap_err();
        assert_eq!(problem.code, code, "{arguments}");
        assert!(problem.message.contains(said), "{arguments}: {}", problem.message);
    }
}

#[test]
fn processes_that_are_hidden_are_mentioned() {
    let own = "77 (sh) S 70 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 4096 25 0\n";
    let target = || FakeTarget::new().file("/proc/77/stat", own);
    let hidden = "PID 1 can't be read: processes of other accounts may be hidden (hidepid)";
    let (data, notes) = list(target(), json!({}));
    assert_eq!((pids(&data), notes), (vec![77], vec![hidden.to_owned()]));
    let problem = call(target(), "proc_info", json!({"pid": 78})).unwrap_err();
    assert_eq!((problem.code.as_str(), problem.remediation), ("PROCESS_NOT_FOUND", vec![hidden.to_owned()]));
    let problem = call(FakeTarget::new().file("/proc/x", ""), "proc_list", json!({})).unwrap_err();
    assert_eq!(problem.code, "NO_PROCESSES");
}

fn links(target: FakeTarget, pid: u32, said: &str, error: &str) -> FakeTarget {
    let before = format!(
        "find /proc/1/ns /proc/{pid}/ns /proc/{pid}/exe /proc/{pid}/cwd /proc/{pid}/root /proc/{pid}/fd -maxdepth 1 -type l -printf"
    );
    let argv: Vec<&str> = before.split(' ').chain(["%p\\t%l\\0"]).collect();
    target.answer(&argv, i32::from(!error.is_empty()), said, error)
}

fn maps(target: FakeTarget, pid: u32, said: &str) -> FakeTarget {
    let path = format!("/proc/{pid}/maps");
    target.answer(&["grep", "--fixed-strings", "--", "(deleted)", &path], 1, said, "")
}

fn about(pid: u32, said: &str, error: &str, maps_say: &str) -> FakeTarget {
    maps(links(machine(), pid, said, error), pid, maps_say)
}

fn info(target: FakeTarget, pid: u32) -> (Value, Vec<String>) {
    call(target, "proc_info", json!({"pid": pid})).unwrap()
}

#[test]
fn a_process_is_told_with_what_it_uses_and_the_call_that_helps() {
    let said = "/proc/1/ns/net\tnet:[1]\0/proc/1/ns/mnt\tmnt:[1]\0/proc/63/ns/net\tnet:[1]\0/proc/63/ns/mnt\tmnt:[2]\0\
        /proc/63/exe\t/usr/sbin/nginx\0/proc/63/cwd\t/\0/proc/63/root\t/\0/proc/63/fd/0\t/dev/null\0\
        /proc/63/fd/2\t/var/log/error.log\0/proc/63/fd/3\t/var/log/error.log\0/proc/63/fd/6\tsocket:[4242]\0\
        /proc/63/fd/7\tsocket:[4244]\0/proc/63/fd/8\tanon_inode:[eventpoll]\0";
    let tcp = "\
   0: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0
   2: 0200C612:0050 0100C612:C8DE 01 00000000:00000000 02:0007F3C5 00000000     0        0 4244 2 0
";
    let limits = "Max open files            7                    524288               files     \n";
    let target = about(63, said, "", "").file("/proc/63/net/tcp", tcp).file("/proc/63/limits", limits);
    let (data, notes) = info(target, 63);
    assert_eq!(
        data,
        json!({
            "pid": 63, "started": "2023-11-14T22:14:23Z", "command": "nginx: worker process",
            "unit": "nginx.service", "user": "www-data", "state": "S (word)", "executable": "/usr/sbin/nginx",
            "own_namespaces": ["mnt"], "threads": 1, "memory_mb": 0.4, "cpu_seconds": 1.5,
            "limits": ["open files: 6 of 7 in use"], "open_files": 6,
            "files": ["2,3 /var/log/error.log"], "listens": ["tcp 0.0.0.0:80"], "connections": 1,
            "parents": [{
                "pid": 62, "started": "2023-11-14T22:14:22Z", "command": "nginx: master process /usr/sbin/nginx",
                "unit": "nginx.service", "user": "root"
            }],
            "next": "svc_status {\"service\": \"nginx.service\"}"
        })
    );
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn what_an_update_replaced_needs_a_restart() {
    let said = "/proc/62/exe\t/usr/sbin/nginx (deleted)\0";
    let mapped = "55d0c8a2a000-55d0c8b2a000 r-xp 0002a000 fe:01 131 /usr/sbin/nginx (deleted)\n";
    let there = resolve(about(62, said, "", mapped), "/usr/sbin/nginx", "/usr/sbin/nginx");
    let (data, _) = info(there, 62);
    assert_eq!(
        (&data["executable"], &data["executable_is"]),
        (&json!("/usr/sbin/nginx"), &json!("replaced"))
    );
    assert_eq!(data["replaced"], json!(["/usr/sbin/nginx"]));
    assert_eq!(data["next"], "svc_restart {\"service\": \"nginx.service\"}");
    let (data, _) = info(about(62, said, "", ""), 62);
    assert_eq!(
        (&data["executable_is"], &data["next"]),
        (&json!("deleted"), &json!("svc_status {\"service\": \"nginx.service\"}"))
    );
}

#[test]
fn what_a_state_means_is_told_with_who_or_what_can_end_it() {
    let (data, _) = info(about(71, "", "", ""), 71);
    assert_eq!(
        data["meaning"],
        "it has ended, and PID 70 (python3) doesn't reap it; it goes when that process reaps it or ends"
    );
    // A process whose first thread has ended is no zombie while it has others.
    let stat = "71 (sh) Z 70 1 1 0 -1 4194560 0 0 0 0 100 50 9 9 20 0 3 0 7100 4096 0 1\n";
    let (data, _) = info(about(71, "", "", "").file("/proc/71/stat", stat), 71);
    assert!(
        data["meaning"]
            .as_str()
            .unwrap()
            .starts_with("its first thread has ended, and it goes on with 2 more")
    );
    // The stack is recorded from Linux 6.1, of a process that waits for an NFS server.
    let stack = "[<0>] rpc_wait_bit_killable+0x1e/0xb0 [sunrpc]\n[<0>] __rpc_execute+0x11a/0x360 [sunrpc]\n";
    for (stack, wchan, place) in [
        (stack, "rpc_wait_bit_killable", " in rpc_wait_bit_killable of __rpc_execute"),
        ("", "rpc_wait_bit_killable", " in rpc_wait_bit_killable"),
        ("", "0", ""),
    ] {
        let target = about(70, "", "", "").file("/proc/70/stack", stack).file("/proc/70/wchan", wchan);
        let expected = format!("it waits in the kernel{place}, and no signal ends it before that is over");
        assert_eq!(info(target, 70).0["meaning"], expected);
    }
    let (data, _) = info(about(80, "", "", ""), 80);
    assert_eq!(data["meaning"], "it was stopped by a signal, and SIGCONT continues it");
    assert!(data.get("next").is_none() && data["cgroup"] == "/user.slice/user-1000.slice/session-3.scope");
}

#[test]
fn a_thread_is_told_as_one_of_its_process() {
    let status = "Name:\tworker\nState:\tS (sleeping)\nTgid:\t62\nPid:\t66\n";
    let (data, notes) = info(about(62, "", "", "").file("/proc/66/status", status), 66);
    assert_eq!(
        (&data["pid"], notes),
        (&json!(62), vec!["66 is a thread (worker) of PID 62, which this is about".to_owned()])
    );
}

#[test]
fn a_process_of_a_container_is_told_with_its_number_inside() {
    let id = "3f4e1b0a9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f";
    let status = "State:\tS (sleeping)\nTgid:\t63\nUid:\t0\t33\t0\t0\nNSpid:\t63\t1\n";
    let said = "/proc/1/ns/pid\tpid:[1]\0/proc/63/ns/pid\tpid:[2]\0/proc/63/ns/pid_for_children\tpid:[2]\0/proc/63/exe\t/app (deleted)\0";
    let target = about(63, said, "", "")
        .file("/proc/63/status", status)
        .file("/proc/63/cgroup", format!("0::/system.slice/docker-{id}.scope\n"));
    let (data, _) = info(target, 63);
    assert_eq!((&data["pid_inside"], &data["own_namespaces"]), (&json!(1), &json!(["pid"])));
    assert_eq!((&data["container"], &data["real_user"]), (&json!(format!("docker {id}")), &json!("root")));
    assert!(data.get("next").is_none(), "{data}");
}

#[test]
fn what_only_root_sees_is_left_out_and_said_so() {
    let refused = "find: '/proc/1/ns': Permission denied\nfind: '/proc/63/fd': Permission denied";
    let (data, notes) = info(about(63, "", refused, ""), 63);
    assert!(data.get("open_files").is_none() && data.get("executable").is_none(), "{data}");
    assert_eq!(notes, ["only root can see the program, open files and namespaces of this process"]);
    let (_, notes) = info(about(63, "", "find: '/proc/1/ns': Permission denied", ""), 63);
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn many_files_are_counted_and_few_are_named() {
    let said: String = (0..5000).map(|fd| format!("/proc/63/fd/{fd}\t/srv/{fd} x\0")).collect();
    let (data, _) = info(about(63, &said, "", ""), 63);
    assert_eq!(data["open_files"], 5000);
    let files = data["files"].as_array().unwrap();
    assert_eq!((files.len(), &files[0], &files[10]), (11, &json!("0 /srv/0 x"), &json!("and 4990 more")));
}

#[test]
fn more_open_files_than_the_host_keeps_of_the_output_are_said_to_be_more() {
    let said: String = (0..30_000).map(|fd| format!("/proc/63/fd/{fd}\t/srv/a/directory/{fd}\0")).collect();
    let limits = "Max open files            1048576              1048576              files     \n";
    let (data, notes) = info(about(63, &said, "", "").file("/proc/63/limits", limits), 63);
    assert!(data["open_files"].as_u64().unwrap() > 20_000, "{data}");
    assert_eq!(notes, ["it has more open files than are counted here, and maybe more sockets"]);
    let said = said.replace("/srv/a/directory", "/srv/directory/of");
    let patterns = ["/srv", "/srv (deleted)", "/srv/*"];
    let (data, notes) =
        list(find(resolve(machine(), "/srv", "/srv"), patterns, &said, ""), json!({"file": "/srv"}));
    assert_eq!(pids(&data), [63]);
    assert_eq!(
        notes,
        ["more files are open there than can be told: processes may be missing here; name a deeper path"]
    );
}

#[test]
fn garbled_files_are_no_panic() {
    let huge = "x".repeat(2 << 20);
    for bad in ["", "\n", "\0\0", "(((", ")", ": :", "0::", "Tgid:\t", "Uid: 1", "\u{fffd}", &huge] {
        for file in ["stat", "status", "cgroup", "cmdline", "limits", "net/tcp"] {
            let target = || about(63, bad, bad, bad).file(&format!("/proc/63/{file}"), bad);
            let (data, _) = list(target(), json!({"name": "nginx"}));
            assert!(!data.to_string().contains("null") && pids(&data).contains(&62), "{file} {data}");
            if let Err(problem) = call(target(), "proc_info", json!({"pid": 63})) {
                assert_eq!(problem.code, "PROCESS_NOT_FOUND", "{file}");
            }
        }
    }
}
