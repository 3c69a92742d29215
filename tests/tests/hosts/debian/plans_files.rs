//! Tests on a real host that no trick with links, directories or timing turns a granted write of a file into another
//! one.

use linux_sysadmin_tests::{Expected, Machine, Plan, Step, line, way};
use serde_json::{Value, json};

fn by_admin(step: Step) -> Step {
    step.with("privilege", json!({"user": "admin"}))
}

#[tokio::test]
async fn what_is_not_said_of_a_file_stays_as_it_is() {
    let Some(machine) = Machine::by(way(), "what_is_not_said_of_a_file_stays_as_it_is") else { return };
    let mut client = machine.serve().await;
    machine.sh("for name in kept said; do
             echo old > /srv/planner/$name; chown admin:adm /srv/planner/$name; chmod 640 /srv/planner/$name
         done");
    let plan = Plan::of([
        Step::write("/srv/planner/kept", "1"),
        Step::write("/srv/planner/said", "2").with("mode", 0o600).with("owner", json!(["root", "admin"])),
        Step::write("/srv/planner/new", "3"),
        Step::write("/srv/planner/new-said", "4").with("mode", 0o440).with("owner", json!(["admin", "adm"])),
        Step::make_directory("/srv/plan/made", 0o1770).with("owner", json!(["admin", "adm"])),
        Step::make_directory("/srv/plan/made-by-root", 0o711),
    ]);
    client.done(&plan).await;
    assert_eq!(
        machine
            .sh("cd /srv/planner; stat -c '%n %a %U:%G' kept said new new-said; cat kept said new new-said"),
        "kept 640 admin:adm\nsaid 600 root:admin\nnew 644 root:root\nnew-said 440 admin:adm\n1234"
    );
    assert_eq!(
        machine.sh("cd /srv/plan; stat -c '%n %a %U:%G' made made-by-root"),
        "made 1770 admin:adm\nmade-by-root 711 root:root\n"
    );
    machine.nothing_is_left_behind();
}

#[tokio::test]
async fn contents_and_names_arrive_byte_for_byte() {
    let Some(machine) = Machine::by(way(), "contents_and_names_arrive_byte_for_byte") else { return };
    let mut client = machine.serve().await;
    let large = "0123456789abcdef".repeat(40_000);
    for contents in
        ["", "\n", "no newline", "one\r\ntwo\r\n", "\0\u{1}\u{7f}", "ü€😀\n", "$(id) `id` 'x' \\\n", &large]
    {
        client.done(&Plan::of([Step::write("/srv/plan/file", contents)])).await;
        assert!(machine.read("/srv/plan/file") == contents, "{} bytes", contents.len());
    }
    let long = "n".repeat(255);
    for name in ["a b", "-rf", "--help", "it's", "\"", "$(id)", "*", "{}", "ü€", ".hidden", "a\\b", &long]
    {
        let path = format!("/srv/plan/{name}");
        client.done(&Plan::of([Step::write(&path, name)])).await;
        assert_eq!(machine.read(&path), name);
        client.done(&Plan::of([Step::remove(&path)])).await;
        assert!(!machine.holds("ls -A /srv/plan | grep -v '^file$'"), "{name} is gone");
    }
}

#[tokio::test]
async fn a_name_that_could_be_misread_is_refused() {
    let Some(machine) = Machine::by(way(), "a_name_that_could_be_misread_is_refused") else { return };
    let mut client = machine.serve().await;
    let before = machine.snapshot();
    for name in
        ["a\nb", "\u{1b}[2J", "\u{202e}cod", "zero\u{200b}width", "", ".", "..", "a//b", "a/./b", "a/"]
    {
        let envelope = client.apply(&Plan::of([Step::write(&format!("/srv/plan/{name}"), "x")])).await;
        assert_eq!(envelope["status"], "error", "{name:?}: {envelope}");
    }
    machine.is_still(&before, "names that were refused");
}

#[tokio::test]
async fn as_root_nobody_elses_links_and_directories_are_followed() {
    let Some(machine) = Machine::by(way(), "as_root_nobody_elses_links_and_directories_are_followed") else {
        return;
    };
    let mut client = machine.serve().await;
    machine.sh("echo kept > /srv/planner/kept");
    // Each row has the account that acts, its command, the path that is then written and removed, and the error code.
    let (root, admin) = ("sh -c", "runuser -u admin -- sh -c");
    let cases = [
        (root, "ln -s /srv/planner/kept /srv/plan/x", "/srv/plan/x", "SYMLINK"),
        (root, "ln -s /srv/plan/nothing /srv/plan/x", "/srv/plan/x", "SYMLINK"),
        // The hard link is made before the directory belongs to root alone. The kernel has a rule against it since 2012.
        (root, "ln /etc/passwd /srv/plan/x", "/srv/plan/x", "HARD_LINK"),
        (root, "mkdir /srv/plan/x", "/srv/plan/x", "NOT_A_REGULAR_FILE"),
        (root, "mkfifo /srv/plan/x", "/srv/plan/x", "NOT_A_REGULAR_FILE"),
        (root, "mknod /srv/plan/x c 1 3", "/srv/plan/x", "NOT_A_REGULAR_FILE"),
        (root, "mknod /srv/plan/x b 7 0", "/srv/plan/x", "NOT_A_REGULAR_FILE"),
        (
            root,
            "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('/srv/plan/x')\"",
            "/srv/plan/x",
            "NOT_A_REGULAR_FILE",
        ),
        (root, "install -d -m 775 /srv/plan/d; touch /srv/plan/d/x", "/srv/plan/d/x", "UNTRUSTED_DIRECTORY"),
        (root, "install -d -m 1777 /srv/plan/d; touch /srv/plan/d/x", "/srv/plan/d/x", "UNTRUSTED_DIRECTORY"),
        (
            root,
            "install -d -o admin /srv/plan/d; touch /srv/plan/d/x",
            "/srv/plan/d/x",
            "UNTRUSTED_DIRECTORY",
        ),
        // The unsafe directory is not the parent itself, but one above it.
        (
            root,
            "install -d -o admin /srv/plan/d; install -d /srv/plan/d/e; touch /srv/plan/d/e/x",
            "/srv/plan/d/e/x",
            "UNTRUSTED_DIRECTORY",
        ),
        // The link leads to a granted file of root, but another account has made the link.
        (
            admin,
            "ln -s /srv/planner /srv/plan/theirs/d; ls /srv/plan/theirs/d/kept",
            "/srv/plan/theirs/d/kept",
            "UNTRUSTED_DIRECTORY",
        ),
        (
            admin,
            "ln -s /srv/planner/kept /home/admin/.planner/x",
            "/home/admin/.planner/x",
            "UNTRUSTED_DIRECTORY|SYMLINK",
        ),
        (admin, "touch /home/admin/.planner/x", "/home/admin/.planner/x", "UNTRUSTED_DIRECTORY"),
    ];
    for (by, setup, path, code) in cases {
        machine.sh("install -d -o admin -g admin /srv/plan/theirs");
        let output =
            machine.host().command(&[&by.split(' ').collect::<Vec<_>>()[..], &[setup]].concat()).output();
        let output = output.expect("xtask runs");
        assert!(output.status.success(), "{setup}: {}", String::from_utf8_lossy(&output.stderr));
        let before = machine.snapshot();
        let mut steps = vec![
            Step::write(path, "planted"),
            Step::write(path, "planted").with("mode", 0o777).with("owner", json!(["admin", "admin"])),
        ];
        // A link itself may be removed.
        if code != "SYMLINK" {
            steps.push(Step::remove(path));
        }
        for step in steps {
            let first = Step::run(&["touch", "--", "/srv/plan/ran"]).undo(&["rm", "--", "/srv/plan/ran"]);
            let envelope = client.apply(&Plan::of([first, step])).await;
            assert_eq!(envelope["status"], "error", "{setup}: {envelope}");
            let codes: Vec<_> = code.split('|').collect();
            assert!(
                codes.contains(&envelope["error_code"].as_str().unwrap_or_default()),
                "{setup}: {envelope}"
            );
            machine.is_still(&before, setup);
        }
        machine.nothing_is_left_behind();
        machine.sh("rm -rf /srv/plan/* /home/admin/.planner/*");
    }
    assert_eq!(machine.read("/srv/planner/kept"), "kept\n");
}

#[tokio::test]
async fn a_link_never_leads_to_what_is_not_granted() {
    let Some(machine) = Machine::by(way(), "a_link_never_leads_to_what_is_not_granted") else { return };
    let mut client = machine.serve().await;
    machine.sh("ln -s /etc/shadow /srv/plan/shadow; ln -s /etc /srv/plan/etc");
    let before = machine.snapshot();
    for (path, codes) in [
        ("/srv/plan/shadow", &["SYMLINK", "CAPABILITY_DENIED"][..]),
        ("/srv/plan/etc/hostname", &["CAPABILITY_DENIED"]),
        ("/srv/plan/etc/shadow", &["CAPABILITY_DENIED"]),
        // The module must not learn whether the file exists, or what it is.
        ("/srv/plan/etc/nothing-has-this-name", &["CAPABILITY_DENIED"]),
        ("/srv/plan/etc/ssh", &["CAPABILITY_DENIED"]),
    ] {
        // A link itself may be removed.
        let removal = (!codes.contains(&"SYMLINK")).then(|| Step::remove(path));
        for step in [Some(Step::write(path, "x")), removal].into_iter().flatten() {
            let envelope = client.apply(&Plan::of([step])).await;
            let code = envelope["error_code"].as_str().unwrap_or_default();
            assert!(codes.contains(&code), "{path}: {envelope}");
        }
    }
    machine.is_still(&before, "links that lead out");
}

#[tokio::test]
async fn a_plan_may_write_into_a_directory_that_it_makes() {
    let Some(machine) = Machine::by(way(), "a_plan_may_write_into_a_directory_that_it_makes") else { return };
    let mut client = machine.serve().await;
    let before = machine.snapshot();
    let plan = Plan::of([
        Step::make_directory("/srv/plan/made", 0o755),
        Step::make_directory("/srv/plan/made/deeper", 0o700),
        Step::write("/srv/plan/made/deeper/file", "x"),
    ]);
    let broken = client.apply(&plan.clone().step(Step::run(&["false"]))).await;
    assert_eq!(broken["failed_step"], 3, "{broken}");
    assert_eq!(broken["not_undone"], json!([]), "{broken}");
    machine.is_still(&before, "undone from the inside out");
    client.done(&plan).await;
    assert_eq!(machine.read("/srv/plan/made/deeper/file"), "x");
    machine.nothing_is_left_behind();
}

#[tokio::test]
async fn a_directory_is_made_only_where_nothing_is() {
    let Some(machine) = Machine::by(way(), "a_directory_is_made_only_where_nothing_is") else { return };
    let mut client = machine.serve().await;
    for (setup, code) in [
        ("mkdir /srv/plan/x", "FILE_EXISTS"),
        ("touch /srv/plan/x", "FILE_EXISTS"),
        ("ln -s nothing /srv/plan/x", "FILE_EXISTS"),
        ("ln -s /srv/planner /srv/plan/x", "FILE_EXISTS"),
        ("chmod 775 /srv/plan", "UNTRUSTED_DIRECTORY"),
        ("chown admin /srv/plan", "UNTRUSTED_DIRECTORY"),
    ] {
        machine.sh(setup);
        let before = machine.snapshot();
        let envelope = client.apply(&Plan::of([Step::make_directory("/srv/plan/x", 0o777)])).await;
        assert_eq!(envelope["error_code"], code, "{setup}: {envelope}");
        machine.is_still(&before, setup);
        machine.sh("rm -rf /srv/plan/x; chown root /srv/plan; chmod 755 /srv/plan");
    }
}

#[tokio::test]
async fn what_changed_since_the_module_read_it_is_not_overwritten() {
    let Some(machine) = Machine::by(way(), "what_changed_since_the_module_read_it_is_not_overwritten") else {
        return;
    };
    let mut client = machine.serve().await;
    let path = "/srv/planner/file";
    // Each row has a script before the read, a script between the read and the plan, and the error codes that are right.
    // Where there are none, the plan works.
    let cases: [(&str, &str, &[&str]); 8] = [
        ("echo old > F", "echo new > F", &["FILE_CHANGED"]),
        ("echo old > F", "t=$(stat -c %y F); echo new > F; touch -d \"$t\" F", &["FILE_CHANGED"]),
        ("echo old > F", "echo new > F.other; mv F.other F", &["FILE_CHANGED"]),
        ("echo old > F", "rm F", &["FILE_CHANGED", "FILE_NOT_FOUND"]),
        ("rm -f F", "echo new > F", &["FILE_CHANGED"]),
        ("echo old > F", "rm F; ln -s /etc/passwd F", &["FILE_CHANGED", "SYMLINK"]),
        ("echo old > F", "true", &[]),
        ("echo old > F", "echo new > F.unrelated", &[]),
    ];
    for (setup, meanwhile, codes) in cases {
        for step in [Step::write(path, "planned\n"), Step::remove(path)] {
            machine.sh(&format!("rm -f /run/planner/go F*\n{setup}").replace('F', path));
            let arguments = json!({
                "plan": Plan::of([step]).json(), "read": [path], "pause_file": "/run/planner/go",
            });
            let id = client.begin(arguments).await;
            client.until_paused(id).await;
            machine.sh(&meanwhile.replace('F', path));
            let before = machine.snapshot();
            machine.sh("touch /run/planner/go");
            let envelope = client.outcome(id).await;
            match codes {
                [] => assert_eq!(envelope["status"], "success", "{meanwhile}: {envelope}"),
                codes => {
                    let code = envelope["error_code"].as_str().unwrap_or_default();
                    assert!(codes.contains(&code), "{meanwhile}: {envelope}");
                    machine.is_still(&before, meanwhile);
                }
            }
        }
    }
}

#[tokio::test]
async fn inside_a_home_a_plan_acts_as_its_owner() {
    let Some(machine) = Machine::by(way(), "inside_a_home_a_plan_acts_as_its_owner") else { return };
    let mut client = machine.serve().await;
    let home = "/home/admin/.planner";
    let file = format!("{home}/file");
    machine.sh(&format!("echo old > {home}/kept; chown admin:admin {home}/kept; chmod 600 {home}/kept"));
    client
        .done(&Plan::of([
            by_admin(Step::write(&file, "1")),
            by_admin(Step::write(&format!("{home}/kept"), "2")),
        ]))
        .await;
    assert_eq!(
        machine.sh(&format!("cd {home}; stat -c '%n %a %U:%G' file kept; cat file kept")),
        "file 644 admin:admin\nkept 600 admin:admin\n12"
    );
    client.done(&Plan::of([by_admin(Step::remove(&file))])).await;
    client.done(&Plan::of([by_admin(Step::make_directory(&file, 0o700))])).await;
    assert_eq!(machine.sh(&format!("stat -c '%F %a %U:%G' {file}")), "directory 700 admin:admin\n");
    machine.sh(&format!("rmdir {file}"));

    // The plan fails, and everything belongs to admin again.
    let before = machine.snapshot();
    let kept = format!("{home}/kept");
    let plan = Plan::of([
        by_admin(Step::write(&kept, "3")),
        by_admin(Step::write(&file, "4")),
        Step::run(&["false"]),
    ]);
    assert_eq!(client.apply(&plan).await["failed_step"], 2);
    machine.is_still(&before, "a plan in a home");

    // With that account's rights, the plan can do nothing that the account itself may not do.
    machine.sh(&format!(
        "echo kept > /srv/planner/kept; ln -s /srv/planner/kept {home}/link
         useradd --create-home planner-other; install -d -o planner-other /home/planner-other/.planner"
    ));
    let before = machine.snapshot();
    let foreign = [
        by_admin(Step::write(&format!("{home}/link"), "x")),
        by_admin(Step::write("/home/planner-other/.planner/x", "x")),
        by_admin(Step::make_directory("/home/planner-other/.planner/x", 0o777)),
        by_admin(Step::write(&kept, "x").with("owner", json!(["root", "root"]))),
        by_admin(Step::write(&kept, "x").with("mode", 0o4755).with("owner", json!(["root", "root"]))),
        Step::write(&kept, "x"),
        Step::remove(&kept),
        Step::make_directory(&file, 0o755),
    ];
    let mut answers = Vec::new();
    for step in foreign {
        answers.push(client.apply(&Plan::of([step])).await);
    }
    // The whole directory is replaced by a link.
    machine.sh(&format!("mv {home} {home}.away; ln -s /srv/planner {home}; chown -h admin {home}"));
    answers.push(client.apply(&Plan::of([by_admin(Step::write(&format!("{home}/kept"), "x"))])).await);
    answers.push(client.apply(&Plan::of([Step::write(&format!("{home}/kept"), "x")])).await);
    machine.sh(&format!("rm {home}; mv {home}.away {home}"));
    let differences = before.differences(&machine.snapshot(), &[]);
    machine.sh("userdel --remove planner-other 2>/dev/null");
    assert!(differences.is_empty(), "{differences:?}");
    for answer in answers {
        assert_eq!(answer["status"], "error", "{answer}");
    }
}

/// Reports everything that happens to names in a directory, and what a reader finds under each name at that moment.
const WATCH: &str = r#"
import ctypes, json, os, select, struct
# All but opening and reading, which it does itself.
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(0)
place = "/srv/planner.conf.d"
assert libc.inotify_add_watch(fd, place.encode(), 0x3ce) >= 0
print("watching", flush=True)
seen = []
while True:
    ready, _, _ = select.select([fd, 0], [], [])
    if fd not in ready:
        break
    events = os.read(fd, 1 << 16)
    while events:
        _, mask, _, length = struct.unpack_from("iIII", events)
        name = events[16:16 + length].rstrip(b"\0").decode()
        events = events[16 + length:]
        try:
            with open(os.path.join(place, name)) as file:
                contents = file.read()
        except OSError:
            contents = None
        seen.append({"mask": mask, "name": name, "contents": contents})
print(json.dumps(seen))
"#;
const MODIFY: u64 = 0x2;
const CLOSE_WRITE: u64 = 0x8;
const MOVED_TO: u64 = 0x80;
const CREATE: u64 = 0x100;

#[tokio::test]
async fn who_reads_a_directory_at_any_time_finds_whole_files_under_their_own_names() {
    let test = "who_reads_a_directory_at_any_time_finds_whole_files_under_their_own_names";
    let Some(machine) = Machine::by(way(), test) else { return };
    let mut client = machine.serve().await;
    let path = "/srv/planner.conf.d/50-plan.conf";
    let whole: Vec<String> = ["a", "b", "c"].iter().map(|letter| letter.repeat(300_000)).collect();
    let (watcher, said) = machine.helper(WATCH);
    assert_eq!(said, "watching");
    client.done(&Plan::of([Step::write(path, &whole[0])])).await;
    client.done(&Plan::of([Step::write(path, &whole[1]).with("mode", 0o600)])).await;
    // After the undo the former file is back, and whole.
    let broken = Plan::of([Step::write(path, &whole[2]), Step::run(&["false"])]);
    assert_eq!(client.apply(&broken).await["failed_step"], 1);
    client.done(&Plan::of([Step::remove(path)])).await;
    let seen: Vec<Value> = serde_json::from_str(watcher.end().trim()).expect("JSON");
    let mut came = 0;
    for event in &seen {
        let (mask, name) = (event["mask"].as_u64().expect("a mask"), event["name"].as_str().expect("a name"));
        // This is the directory itself, or a name that readers of a conf.d leave out.
        if name.is_empty() || name.starts_with('.') {
            continue;
        }
        assert_eq!(name, "50-plan.conf");
        assert_eq!(mask & (CREATE | MODIFY | CLOSE_WRITE), 0, "{mask:x}: it was written where it lies");
        came += u32::from(mask & MOVED_TO != 0);
        if let Some(contents) = event["contents"].as_str() {
            assert!(whole.iter().any(|whole| whole == contents), "{} bytes were seen", contents.len());
        }
    }
    assert!(came >= 4, "new, replaced, replaced and put back: {came}");
    assert_eq!(machine.sh("ls -A /srv/planner.conf.d"), "");
}

#[tokio::test]
async fn a_validator_sees_the_new_file_before_anybody_else_does() {
    let Some(machine) = Machine::by(way(), "a_validator_sees_the_new_file_before_anybody_else_does") else {
        return;
    };
    let mut client = machine.serve().await;
    let path = "/etc/sudoers.d/planner";
    let write = |contents: &str| {
        let step = Step::write(path, contents).with("mode", 0o440);
        Plan::of([step.with("validate", line(&["visudo", "-cf", "{}"]))])
    };
    let before = machine.snapshot();
    let refused = client.apply_confirmed(&write("this is no rule\n")).await;
    assert_eq!(refused["status"], "error", "{refused}");
    assert_eq!(refused["failed_step"], 0, "{refused}");
    assert!(refused["message"].as_str().is_some_and(|message| message.contains("syntax error")), "{refused}");
    machine.is_still(&before, "a new file that isn't valid");

    let rule = "admin ALL=(root) NOPASSWD: /usr/bin/true\n";
    let done = client.apply_confirmed(&write(rule)).await;
    assert_eq!(done["status"], "success", "{done}");
    assert_eq!(machine.read(path), rule);
    assert_eq!(machine.sh(&format!("stat -c '%a %U:%G' {path}")), "440 root:root\n");
    let before = machine.snapshot();
    client.apply_confirmed(&write("this is no rule\n")).await;
    machine.is_still(&before, "a changed file that isn't valid");
    machine.sh("visudo -c");
}

#[tokio::test]
async fn what_is_sensitive_is_in_no_preview_and_no_record() {
    let Some(machine) = Machine::by(way(), "what_is_sensitive_is_in_no_preview_and_no_record") else {
        return;
    };
    let mut client = machine.serve().await;
    machine.sh("echo former-and-hidden > /srv/planner/existing");
    let secret =
        |path: &str| Step::write(path, "new-and-hidden\n").with("sensitive", true).with("mode", 0o600);
    let plan = Plan::of([secret("/srv/planner/existing"), secret("/srv/planner/new")]);
    let shown = client.envelope("planner_apply", plan.dry_run()).await;
    let broken = client.apply(&plan.clone().step(Step::run(&["false"]))).await;
    let asked = client.apply(&plan.clone().with("risk", "critical")).await;
    assert_eq!(asked["status"], "confirmation_required", "{asked}");
    client.done(&plan).await;
    let before = machine.snapshot();
    for envelope in [&shown, &broken, &asked] {
        assert!(!envelope.to_string().contains("and-hidden"), "{envelope}");
    }
    let sum = machine.sh("sha256sum /srv/planner/new");
    let sum = sum.split(' ').next().expect("a sum");
    for step in shown["preview"]["steps"].as_array().expect("steps") {
        assert_eq!(step["sha256"], sum, "{shown}");
        assert!(step.get("diff").is_none(), "{shown}");
    }
    let record = json!(machine.audit("root")).to_string();
    assert!(record.contains(sum), "the hash is on record");
    // The arguments hold the contents as well, since the test's own tool takes them as arguments.
    let plans: Vec<_> =
        machine.audit("root").into_iter().filter(|event| event["event"] == "change-begun").collect();
    assert_eq!(plans.len(), 2);
    for mut begun in plans {
        begun.as_object_mut().expect("an object").remove("arguments");
        assert!(!begun.to_string().contains("and-hidden"), "{begun}");
    }
    machine.is_still_but(&before, &[] as &[Expected], "looking at the record");
}
