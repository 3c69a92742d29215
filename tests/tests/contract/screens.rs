//! What a person sees at a terminal: answers, help and lists that fit its width. A pipe gets JSON.

use std::path::PathBuf;
use std::process::Command;

use linux_sysadmin_tests::{Home, at_terminal, modules, probe};
use serde_json::{Value, json};

/// A terminal with a home.
struct Screen {
    home: Home,
    modules: PathBuf,
}

impl Screen {
    fn new(modules: PathBuf) -> Self {
        Self { home: Home::new(), modules }
    }

    /// Runs a line of shell at a terminal with this number of columns. Gives the exit code, and what was shown.
    fn shows(&self, columns: usize, line: &str) -> (Option<i32>, String) {
        let start = |program: &str| {
            let home = self.home.command(&self.modules, &[]);
            let mut command = Command::new(program);
            for (name, value) in home.get_envs() {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            command
        };
        let (code, seen) = at_terminal(start, &format!("stty cols {columns} rows 24; {line}"), "", "", "");
        (code, seen.replace("\r\n", "\n"))
    }

    /// The same, where no line may be longer than the terminal is wide, and nothing moves the cursor.
    #[track_caller]
    fn fits(&self, columns: usize, line: &str) -> (Option<i32>, String) {
        let (code, seen) = self.shows(columns, line);
        for shown in seen.lines() {
            assert!(shown.chars().count() <= columns, "{columns}: {shown:?} of {seen}");
            assert!(!shown.contains(|c: char| c.is_control()), "{shown:?}");
        }
        (code, seen)
    }
}

#[test]
fn an_answer_is_text_at_a_terminal_and_json_elsewhere() {
    let screen = Screen::new(modules());
    let call = "$BIN call cron_next_runs expression=@daily count=2 timezone=UTC";
    let (code, seen) = screen.fits(50, call);
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("expression") && seen.contains("@daily") && !seen.contains('{'), "{seen}");
    assert!(seen.lines().last().is_some_and(|line| line.starts_with("localhost, ")), "{seen}");
    for line in [format!("{call} --json"), format!("{call} | cat"), format!("{call} > f; cat f; rm f")] {
        let line = format!("cd {}; {line}", screen.home.path().display());
        let (_, seen) = screen.shows(50, &line);
        let envelope: Value = serde_json::from_str(&seen).unwrap_or_else(|error| panic!("{error}: {seen}"));
        assert_eq!(envelope["data"]["expression"], "@daily", "{envelope}");
    }
}

#[test]
fn an_error_says_what_to_try_and_has_a_colour_unless_nobody_wants_one() {
    let screen = Screen::new(modules());
    let call = "$BIN call cron_next_runs expression=@daily timezone=Mars/Olympus 2>/dev/null";
    let (code, seen) = screen.fits(60, call);
    assert_eq!(code, Some(1), "{seen}");
    assert!(seen.starts_with("error: `Mars/Olympus` is not") && seen.contains("\ntry: "), "{seen}");
    let (_, colored) = screen.shows(60, &format!("NO_COLOR= TERM=xterm {call}"));
    assert!(colored.starts_with("\u{1b}[31merror: \u{1b}[0m"), "{colored:?}");
    for (terminal, plain) in [("NO_COLOR=1", true), ("NO_COLOR=", false)] {
        let (_, seen) = screen.shows(60, &format!("{terminal} TERM=xterm {call}"));
        assert_eq!(!seen.contains('\u{1b}'), plain, "{terminal}: {seen:?}");
    }
}

#[test]
fn text_of_a_module_moves_no_cursor_at_the_terminal() {
    let screen = Screen::new(probe());
    let (code, seen) = screen.fits(40, "$BIN call probe_hostile_text");
    assert!(code == Some(0) && seen.contains(r"\u{1b}[2J\u{202e}evil\u{200b}"), "{seen}");
}

#[test]
fn a_call_that_takes_long_shows_how_far_it_is_and_leaves_nothing_behind() {
    let screen = Screen::new(probe());
    let (code, seen) = screen.shows(60, "TERM=xterm NO_COLOR=1 $BIN call probe_wait seconds=2");
    assert_eq!(code, Some(0), "{seen}");
    let (pictures, answer) = seen.rsplit_once("\r\u{1b}[K").expect("a line that is taken back");
    assert!(pictures.contains("probe_wait on localhost: waiting"), "{seen:?}");
    assert!(answer.contains("waited") && !answer.contains('\u{1b}'), "{seen:?}");
    let widest = pictures.split("\r\u{1b}[K").map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|widest| widest < 60), "{widest:?}");
    // A program that reads the answer gets no picture.
    let (_, seen) = screen.shows(60, "TERM=xterm $BIN call probe_wait seconds=2 2>/dev/null | cat");
    assert!(serde_json::from_str::<Value>(&seen).is_ok(), "{seen:?}");
}

#[test]
fn the_help_about_a_tool_comes_from_its_schema() {
    let screen = Screen::new(modules());
    for columns in [40, 80] {
        let (code, seen) = screen.fits(columns, "$BIN call cron_next_runs --help");
        assert_eq!(code, Some(0), "{seen}");
        for said in
            ["expression=TEXT", "required", "count=NUMBER", "Example:", "linux-sysadmin call cron_next_runs"]
        {
            assert!(seen.contains(said), "{said}: {seen}");
        }
        assert_eq!(screen.fits(columns, "$BIN tools cron_next_runs").1, seen);
    }
    let (code, seen) = screen.shows(80, "$BIN call cron_next_run --help");
    assert!(code == Some(2) && seen.contains("similar: cron_next_runs"), "{seen}");
    let (code, seen) = screen.fits(80, "$BIN call -h");
    assert!(code == Some(0) && seen.contains("KEY=VALUE") && seen.contains("--args"), "{seen}");
}

#[test]
fn an_argument_is_typed_as_the_help_says() {
    let home = Home::new();
    for (args, expected) in [
        (&["package=nginx", "lv_name=5"][..], json!({"package": ["nginx"], "lv_name": "5"})),
        (&["package=nginx", "package=[\"php-fpm\"]"], json!({"package": ["nginx", "php-fpm"]})),
        (&["--args", r#"{"package": ["nginx"]}"#], json!({"package": ["nginx"]})),
    ] {
        let args = [&["call", "renamed_say"], args].concat();
        let output = home.run(&linux_sysadmin_tests::guest("renamed"), &args);
        let envelope: Value = serde_json::from_slice(&output.stdout).expect("an envelope");
        assert_eq!(envelope["data"], expected, "{args:?}: {envelope}");
    }
}

#[test]
fn tools_stand_by_subject_and_what_changes_something_has_a_mark() {
    let screen = Screen::new(modules());
    let (code, seen) = screen.fits(70, "$BIN tools");
    assert_eq!(code, Some(0), "{seen}");
    let lines: Vec<&str> = seen.lines().collect();
    let subject = lines.iter().position(|line| *line == "cron").expect("the subject");
    let own: Vec<&&str> = lines[subject + 1..].iter().take_while(|line| line.starts_with("  ")).collect();
    let has = |name: &str, mark: bool| {
        own.iter().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(name) && (words.next() == Some("*")) == mark
        })
    };
    assert!(has("cron_list", false) && has("cron_add", true), "{own:?}");
    assert!(seen.contains("* changes something") && seen.contains("tools NAME"), "{seen}");
}

#[test]
fn a_profile_is_shown_by_the_pager_and_whole_where_there_is_none() {
    let screen = Screen::new(modules());
    let (_, whole) = screen.shows(80, "$BIN knowledge show nginx | cat");
    assert!(whole.lines().count() > 24 && whole.contains("nginx.service"), "{whole}");
    assert_eq!(screen.shows(80, "PAGER=cat $BIN knowledge show nginx").1, whole);
    let (code, paged) = screen.shows(80, "PAGER='head -n 3' $BIN knowledge show nginx");
    assert_eq!((code, paged.lines().collect::<Vec<_>>()), (Some(0), whole.lines().take(3).collect()));
    let (code, listed) = screen.fits(72, "$BIN knowledge list");
    assert!(code == Some(0) && listed.contains("OTHER PROFILES"), "{listed}");
}

/// What a shell is offered for the last of these words.
fn completed(home: &Home, words: &[&str]) -> Vec<String> {
    let mut shell = home.command(&modules(), &["--", "linux-sysadmin"]);
    let output = shell.args(words).env("LINUX_SYSADMIN_COMPLETE", "fish").output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_shell_is_offered_tools_arguments_values_and_hosts() {
    let home = Home::new();
    std::fs::create_dir_all(home.config().parent().expect("a parent")).expect("a directory");
    std::fs::write(home.config(), "ssh:\n  allowed_hosts: [web1, web2, db1]\n").expect("written");
    for (words, expected) in [
        (&["call", "cron_next"][..], &["cron_next_runs"][..]),
        (&["tools", "cron_v"], &["cron_validate"]),
        (&["audit", "show", "--tool", "cron_v"], &["cron_validate"]),
        (&["call", "cron_next_runs", "exp"], &["expression="]),
        (&["call", "cron_next_runs", "expression=@daily", "exp"], &[]),
        (&["call", "cron_add", "dry_run="], &["dry_run=false", "dry_run=true"]),
        (&["call", "perf_uptime", "host=web"], &["host=web1", "host=web2"]),
        (&["call", "--host", "db"], &["db1"]),
        (&["know"], &["knowledge"]),
    ] {
        assert_eq!(completed(&home, words), expected, "{words:?}");
    }
}

#[test]
fn a_broken_configuration_completes_nothing_and_breaks_no_shell() {
    let home = Home::new();
    std::fs::create_dir_all(home.config().parent().expect("a parent")).expect("a directory");
    std::fs::write(home.config(), "ssh: [").expect("written");
    assert_eq!(completed(&home, &["call", "cron_next"]), Vec::<String>::new());
}

#[test]
fn bash_completes_an_argument_although_it_breaks_words_at_an_equals_sign() {
    let home = Home::new();
    for (words, current, expected) in [
        ("linux-sysadmin call cron_ne", "cron_ne", "cron_next_runs"),
        ("linux-sysadmin call cron_next_runs expr", "expr", "expression="),
        ("linux-sysadmin call cron_add dry_run =", "", "false true"),
        ("linux-sysadmin call cron_add dry_run = t", "t", "true"),
    ] {
        let script = format!(
            "source <(\"$BIN\" completion bash); COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9; \
             _clap_complete_linux_sysadmin linux-sysadmin '{current}' x; echo \"${{COMPREPLY[*]}}\""
        );
        let program = home.command(&modules(), &[]);
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", &script]).env("BIN", program.get_program());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => bash.env(name, value),
                None => bash.env_remove(name),
            };
        }
        let output = bash.output().expect("bash(1)");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{words}: {output:?}");
    }
}
