use std::collections::BTreeSet;

use serde::Deserialize;

use super::*;
use host_base::Privilege;

const DEBIAN: &str = include_str!("debian-12.json");
const BUSYBOX: &str = include_str!("busybox-1.35.json");

/// The recorded answers of a machine to [`questions`]. The file says which machine it is.
#[derive(Deserialize)]
struct Recorded {
    answers: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    program: String,
    exit_code: i32,
    stdout: Vec<String>,
}

fn output(exit_code: i32, stdout: impl Into<Vec<u8>>) -> Result<Output, Problem> {
    let stdout = stdout.into();
    Ok(Output { exit_code, stdout_bytes: stdout.len() as u64, stdout, ..Output::default() })
}

fn recorded(file: &str) -> Vec<Result<Output, Problem>> {
    let recorded: Recorded = serde_json::from_str(file).unwrap();
    let programs: Vec<&str> = recorded.answers.iter().map(|answer| answer.program.as_str()).collect();
    let asked: Vec<String> = questions(&[]).into_iter().map(|question| question.program).collect();
    assert_eq!(programs, asked);
    recorded.answers.iter().map(|answer| output(answer.exit_code, answer.stdout.join("\n"))).collect()
}

/// The indices of the answers.
const GREP: usize = 0;
const LS: usize = 1;
const READLINK: usize = 2;
const UNAME: usize = 3;
const ID: usize = 4;

fn problem(code: &str, category: Category) -> Problem {
    Problem::new(code, category, "no answer")
}

#[tokio::test]
async fn both_ways_give_the_same_facts() {
    let local = Local::new();
    let questions = questions(&[]);
    let running = questions.iter().map(|question| local.run(question, Rights::NONE));
    let answers = futures_util::future::join_all(running).await;
    let variable = |name: &str| std::env::var(name).ok();
    let session = SessionEnvironment {
        home: variable("HOME"),
        shell: variable("SHELL"),
        ssh_connection: variable("SSH_CONNECTION"),
    };
    assert_eq!(read(answers, session).unwrap(), gather_here(&local).await);
}

#[test]
fn the_questions_are_few_and_ask_for_nobodys_rights() {
    let questions = questions(&[]);
    // Together with the question about the session's environment, they fit on one connection at once.
    assert!(questions.len() < 8);
    for question in questions {
        assert_eq!((question.privilege, question.stdin), (Privilege::Caller, None), "{}", question.program);
        let length: usize = question.args.iter().map(|argument| argument.len() + 3).sum();
        assert!(length < 16 << 10, "{}: {length} bytes", question.program);
        // The answers are split at these.
        let paths = question.args.iter().filter(|argument| argument.starts_with('/'));
        assert!(paths.into_iter().all(|path| !path.contains([':', ' ', '\n'])), "{}", question.program);
    }
}

#[test]
fn debian_12_is_told_from_its_answers() {
    let session = SessionEnvironment {
        home: Some("/home/ada".into()),
        shell: Some("/bin/bash".into()),
        ssh_connection: Some("192.0.2.7 51234 198.51.100.1 22".into()),
    };
    let facts = read(recorded(DEBIAN), session).unwrap();
    let expected = Facts {
        family: "debian".into(),
        name: "Debian GNU/Linux".into(),
        version: "12".into(),
        codename: Some("bookworm".into()),
        package_manager: "apt".into(),
        init_system: "sh".into(),
        firewall_backend: "nftables".into(),
        mac_system: "none".into(),
        mac_mode: None,
        container_runtime: "none".into(),
        log_system: "both".into(),
        user_management: "adduser".into(),
        hostname: "web1".into(),
        kernel: "6.18.44-fc-v657".into(),
        architecture: "x86_64".into(),
        sudo_available: true,
        sudo_limited: true,
        extra: BTreeMap::from([("timezone".into(), "Europe/Berlin".into())]),
        user: "ada".into(),
        uid: 1000,
        home: "/home/ada".into(),
        login_shell: Some("/bin/bash".into()),
        machine_id: Some("0123456789abcdef0123456789abcdef".into()),
        boot_id: Some("2f9d2a7c-6b1e-4a53-9c0f-5f0c7f4d1e8a".into()),
        ssh_client: Some("192.0.2.7".parse().unwrap()),
        sftp: false,
        has_timeout: true,
        missing: Vec::new(),
        unknown: Vec::new(),
    };
    assert_eq!(facts, expected);
}

#[test]
fn a_router_with_busybox_alone_is_told_too() {
    let facts = read(recorded(BUSYBOX), SessionEnvironment::default()).unwrap();
    assert_eq!((facts.family.as_str(), facts.version.as_str()), ("openwrt", "22.03.4"));
    assert_eq!((facts.package_manager.as_str(), facts.log_system.as_str()), ("none", "none"));
    assert_eq!((facts.hostname.as_str(), facts.architecture.as_str()), ("web1", "x86_64"));
    assert_eq!((facts.user.as_str(), facts.uid, facts.home.as_str()), ("root", 0, "/root"));
    assert_eq!(facts.login_shell.as_deref(), Some("/bin/ash"));
    assert!(facts.root_available() && !facts.sudo_available && !facts.has_timeout);
    assert!(facts.extra.is_empty());
    let missing = ["sudo", "systemctl", "systemd-analyze", "systemd-run", "journalctl", "crontab", "stat"];
    assert_eq!(facts.missing, missing);
    assert_eq!(facts.unknown, Vec::<String>::new());
}

#[test]
fn a_question_without_an_answer_leaves_the_others_theirs() {
    for (place, unknown) in [
        (GREP, &["family", "name", "version", "codename", "mac_system", "mac_mode", "machine_id"][..]),
        (
            LS,
            &[
                "package_manager",
                "firewall_backend",
                "container_runtime",
                "log_system",
                "user_management",
                "has_timeout",
                "missing",
            ],
        ),
        (READLINK, &[]),
        (UNAME, &["hostname", "kernel", "architecture"]),
    ] {
        for answer in [
            Err(problem("PROGRAM_NOT_FOUND", Category::NotFound)),
            Err(problem("COMMAND_TIMEOUT", Category::Timeout)),
            output(127, ""),
            output(0, ""),
            output(0, "something else\n"),
            output(0, [0xff, 0x00, b'\n', b' ', b'\n']),
            output(0, "x".repeat(1 << 20)),
            output(0, " / \n".repeat(100_000)),
        ] {
            let shown = format!("{place}: {answer:?}");
            let mut answers = recorded(DEBIAN);
            answers[place] = answer;
            let session =
                SessionEnvironment { shell: Some("/bin/sh".into()), ..SessionEnvironment::default() };
            let facts = read(answers, session).unwrap();
            // Without files, a marker file tells what process 1 is.
            assert_eq!(facts.unknown, unknown, "{}", excerpt(&shown, 200));
            assert_eq!((facts.user.as_str(), facts.sudo_limited), ("ada", true));
        }
    }
}

#[test]
fn a_lost_connection_is_no_answer_at_all() {
    for place in 0..questions(&[]).len() {
        let mut answers = recorded(DEBIAN);
        answers[place] = Err(problem("CONNECTION_LOST", Category::Network));
        assert_eq!(read(answers, SessionEnvironment::default()).unwrap_err().code, "CONNECTION_LOST");
    }
}

#[test]
fn without_knowing_the_account_nothing_is_known() {
    for (answer, code) in [
        (Err(problem("PROGRAM_NOT_FOUND", Category::NotFound)), "PROGRAM_NOT_FOUND"),
        (output(0, ""), "UNEXPECTED_OUTPUT"),
        (output(0, "root\n"), "UNEXPECTED_OUTPUT"),
        (output(0, "uid=root gid=0\n"), "UNEXPECTED_OUTPUT"),
        (output(0, "uid=-1(x) gid=0\n"), "UNEXPECTED_OUTPUT"),
        (output(0, "uid=4294967296(x) gid=0\n"), "UNEXPECTED_OUTPUT"),
        (output(0, "uid=0(root\n gid=0\n"), "UNEXPECTED_OUTPUT"),
        (output(0, "noise\nuid=0(root) gid=0(root)\n"), "UNEXPECTED_OUTPUT"),
    ] {
        let shown = format!("{answer:?}");
        let mut answers = recorded(DEBIAN);
        answers[ID] = answer;
        assert_eq!(read(answers, SessionEnvironment::default()).unwrap_err().code, code, "{shown}");
    }
    assert_eq!(read(Vec::new(), SessionEnvironment::default()).unwrap_err().code, "INTERNAL_ERROR");
}

#[test]
fn an_account_is_read_as_id_writes_it() {
    for (line, uid, name) in [
        ("uid=0(root) gid=0(root) groups=0(root)", 0, Some("root")),
        ("uid=70000 gid=70000 groups=70000", 70000, None),
        ("uid=1000(ada) gid=1000(ada) groups=1000(ada) context=unconfined_u", 1000, Some("ada")),
        (
            "uid=5(EXAMPLE\\eve smith) gid=5(domain users) groups=5(domain users)",
            5,
            Some("EXAMPLE\\eve smith"),
        ),
    ] {
        let account = who(&output(0, format!("{line}\n")).unwrap()).unwrap();
        assert_eq!((account.uid, account.name.as_deref()), (uid, name), "{line}");
    }
}

#[test]
fn no_file_passes_for_another() {
    let stdout = "/etc/os-release:ID=mine\n/etc/os-release:/etc/machine-id:0\n/etc/os-release-x:ID=no\n\
                  ID=no\n/etc/os-release:\n/etc/passwd:a\r\n/etc/passwd:cut off";
    let files = contents(stdout.as_bytes()).unwrap();
    let expected = [("/etc/os-release", "ID=mine\n/etc/machine-id:0\n\n"), ("/etc/passwd", "a\r\n")];
    assert_eq!(files, expected.map(|(path, text)| (path, text.to_owned())).into());
    let bytes = contents(b"/etc/passwd:a\0b\xff\n").unwrap();
    assert_eq!(bytes["/etc/passwd"], "a\0b\u{fffd}\n");
    assert_eq!(contents(b"\n\n"), None);
}

#[test]
fn a_program_that_others_could_replace_is_not_there() {
    let listing = |directory: &str, usr: &str, program: &str| {
        let lines = [
            "drwxr-xr-x 18 0 0 4096 Nov 22 00:40 /".to_owned(),
            format!("{usr} 2 0 0 4096 Nov 22 00:40 /usr"),
            format!("{directory} 4096 Nov 22 00:40 /usr/bin"),
            "drwxr-xr-x 2 0 0 4096 Nov 22 00:40 /bin".to_owned(),
            format!("{program} 51592 May 25  2023 /usr/bin/dnf"),
            "-rw-r--r-- 1 0 0 0 May 25  2023 /.dockerenv".to_owned(),
        ];
        listed(format!("{}\n", lines.join("\n")).as_bytes()).unwrap()
    };
    let (roots, usr) = ("drwxr-xr-x 2 0 0", "drwxr-xr-x");
    for (directory, usr, program, is_there) in [
        (roots, usr, "-rwxr-xr-x 1 0 0", true),
        (roots, usr, "-rwsr-xr-x 1 0 0", true),
        (roots, usr, "-rwxr-xr-x+ 1 0 0", true),
        (roots, usr, "-rwxr-xr-x. 1 0 0", true),
        (roots, usr, "-rwx------ 1 0 0", true),
        (roots, usr, "-rw-r--r-- 1 0 0", false),
        (roots, usr, "-rwSr-Sr-T 1 0 0", false),
        (roots, usr, "-rwxrwxr-x 1 0 0", false),
        (roots, usr, "-rwxr-xrwx 1 0 0", false),
        (roots, usr, "-rwxr-xr-x 1 1000 0", false),
        (roots, usr, "drwxr-xr-x 1 0 0", false),
        (roots, usr, "-????????? ? ? ?", false),
        (roots, usr, "-rwx 1 0 0", false),
        ("drwxrwxr-x 2 0 50", usr, "-rwxr-xr-x 1 0 0", false),
        ("drwxr-xr-x 2 1000 0", usr, "-rwxr-xr-x 1 0 0", false),
        (roots, "drwxrwxrwt", "-rwxr-xr-x 1 0 0", false),
    ] {
        let expected: BTreeSet<&str> =
            if is_there { ["/.dockerenv", "dnf"].into() } else { ["/.dockerenv"].into() };
        assert_eq!(listing(directory, usr, program), expected, "{directory} {usr} {program}");
    }
}

#[test]
fn a_hosts_name_may_be_any_text() {
    for (line, hostname) in [
        ("web1 6.1.0 x86_64\n", "web1"),
        ("a b 6.1.0 x86_64\n", "a b"),
        (" 6.1.0 x86_64\n", ""),
        ("a 6 x\nb 7 y\n", ""),
    ] {
        let machine = names(line.as_bytes());
        let expected = (!hostname.is_empty()).then_some(hostname);
        assert_eq!(machine.as_ref().map(|machine| machine.hostname.as_str()), expected, "{line:?}");
    }
}

/// The rules as sudo 1.9.13p3 lists them.
#[test]
fn sudo_rules_with_exceptions_are_not_everything() {
    let said = |stdout: &str, exit_code| output(exit_code, stdout);
    let listed = |rules: &str| {
        format!(
            "Matching Defaults entries for ada on web1:\n    env_reset, mail_badpass, secure_path=/usr/sbin\\:/usr/bin, \
             use_pty\n\nUser ada may run the following commands on web1:\n{rules}"
        )
    };
    for (rules, everything) in [
        ("    (ALL : ALL) NOPASSWD: ALL\n", true),
        ("    (ALL : ALL) NOPASSWD: ALL, !/usr/bin/su\n", false),
        ("    (ALL : ALL) NOPASSWD: ALL\n    (root) !/usr/sbin/reboot\n", false),
        ("    (ALL) NOEXEC: NOPASSWD: ALL\n", false),
    ] {
        assert_eq!(allowed_by_sudo(said("", 0), said(&listed(rules), 0)), (everything, true), "{rules}");
    }
    let noexec = listed("    (ALL) NOPASSWD: ALL\n").replace("use_pty", "noexec, !requiretty");
    assert_eq!(allowed_by_sudo(said("", 0), said(&noexec, 0)), (false, true));
    assert_eq!(allowed_by_sudo(said("", 1), said("", 1)), (false, false));
}
