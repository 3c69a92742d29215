//! The policy and the modules' grants agree: nothing that a module is granted to look by is a change for the policy, or the
//! host would refuse it, and what a module is granted as a change is one.

use std::iter::Peekable;
use std::str::Chars;

use host_capability::{CommandRequest, Effect, Pattern};
use host_policy::{Level, Policy, Verdict};
use linux_sysadmin_tests::{expected_modules, expected_tools, shipped};

/// The number of ways in which each pattern is filled. Every alternative and every value is used in one of them.
const WAYS: usize = 120;

/// Values for holes, by the hole's type: ordinary ones, and some that a change would make grave.
const VALUES: [(&str, &[&str]); 21] = [
    ("unit", &["nginx.service", "ssh.service", "debug-shell.service", "reboot.target", "apt-daily.timer"]),
    ("package", &["nginx", "bash", "glibc", "openssh-server", "sudo"]),
    ("version", &["1.22.1-9", "nginx-1.20.1-1.el9"]),
    ("user", &["alice", "root"]),
    ("group", &["web", "sudo"]),
    ("path", &["/srv/app/x", "/etc/hostname", "/root/.profile"]),
    ("int", &["7", "65536"]),
    ("text", &["web server", "reboot"]),
    ("time", &["2026-01-31 10:00", "yesterday"]),
    ("address", &["192.0.2.1", "2001:db8::1"]),
    ("cidr", &["192.0.2.0/24", "0.0.0.0/0", "2001:db8::/32"]),
    ("interface", &["eth0", "lo"]),
    ("protocol", &["tcp", "udp"]),
    ("host", &["web1", "192.0.2.1"]),
    ("mode", &["0640"]),
    ("size", &["512M"]),
    ("secret", &["hunter2"]),
    ("port", &["443", "22"]),
    ("disk", &["/dev/sda1", "/dev/mapper/vg0-data"]),
    ("volume", &["data", "vg0"]),
    ("arg", &["/srv/app", "reboot"]),
];

/// Fills the holes of a pattern and chooses among its alternatives, by one of [`WAYS`]. The grammar is that of
/// `host/capability/src/pattern.rs`.
struct Filling<'a> {
    rest: Peekable<Chars<'a>>,
    way: usize,
}

impl Filling<'_> {
    /// The words up to the end of the pattern or of the group around them.
    fn words(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        loop {
            match self.rest.peek().copied() {
                None | Some(']' | ')' | '|') => return words,
                Some(' ') => drop(self.rest.next()),
                // What stands before may be repeated, and stands once.
                Some('.') if self.rest.clone().take(3).eq("...".chars()) => drop(self.rest.nth(2)),
                Some('[') => {
                    self.rest.next();
                    let optional = self.words();
                    self.rest.next();
                    // The second half of the ways leaves optional parts out.
                    words.extend(optional.into_iter().filter(|_| self.way < WAYS / 2));
                }
                Some('(') => words.extend(self.alternative()),
                Some(_) => words.push(self.word()),
            }
        }
    }

    fn alternative(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while self.rest.next().is_some_and(|separator| separator != ')') {
            all.push(self.words());
            if self.rest.peek() == Some(&')') {
                self.rest.next();
                break;
            }
        }
        all.swap_remove(self.way % all.len())
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(&next) = self.rest.peek() {
            match next {
                ' ' | ']' | ')' | '|' => break,
                '\'' => {
                    self.rest.next();
                    word.extend(self.rest.by_ref().take_while(|character| *character != '\''));
                }
                '<' => {
                    self.rest.next();
                    let hole: String = self.rest.by_ref().take_while(|character| *character != '>').collect();
                    word += &self.value(&hole);
                }
                _ => word.extend(self.rest.next()),
            }
        }
        // A part that may be repeated stands once.
        word.trim_end_matches("...").to_owned()
    }

    fn value(&self, hole: &str) -> String {
        if let Some(glob) = hole.strip_prefix("path:") {
            return glob.replace("**", "some").replace('*', "any");
        }
        let (_, values) = VALUES.iter().find(|(name, _)| *name == hole).unwrap_or_else(|| panic!("<{hole}>"));
        values[self.way % values.len()].to_owned()
    }
}

/// The commands that fill a pattern, without variables and without stdin. A path that no hole takes, as a secret's that the
/// glob doesn't name, is left out.
fn commands(request: &CommandRequest) -> Vec<Vec<String>> {
    let pattern = Pattern::parse(&request.pattern).expect("a pattern");
    let text = request.pattern.trim_end_matches("< stdin");
    let mut all: Vec<Vec<String>> = Vec::new();
    for way in 0..WAYS {
        let words = Filling { rest: text.chars().peekable(), way }.words();
        let argv = words[pattern.variables().len()..].to_vec();
        if pattern.matches(&argv[1..]).is_some() && !all.contains(&argv) {
            all.push(argv);
        }
    }
    assert!(!all.is_empty(), "no command fills {pattern}");
    all
}

/// The commands of these grants whose verdict is wrong, each with its module and the verdict. A verdict is given with whether
/// the program is the module's own, which is accepted by its digest and unknown to the rules.
fn wrong(asked: impl Fn(&CommandRequest) -> bool, is_right: impl Fn(&Verdict, bool) -> bool) -> Vec<String> {
    let policy = Policy::builtin();
    let mut wrong = Vec::new();
    for module in shipped() {
        for request in module.granted.commands.iter().filter(|request| asked(request)) {
            for argv in commands(request) {
                let verdict = policy.verdict(&argv);
                let is_own = module.granted.own_programs.iter().any(|own| own.path == argv[0]);
                if !is_right(&verdict, is_own) {
                    wrong.push(format!("{}: {argv:?}: {verdict:?}", module.name));
                }
            }
        }
    }
    wrong
}

#[test]
fn no_command_by_which_a_module_looks_is_a_change() {
    let asked = |request: &CommandRequest| request.effect != Effect::Change;
    let wrong = wrong(asked, |verdict, _| !verdict.changes() && verdict.level != Level::Block);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_by_which_a_module_changes_something_is_a_change_and_is_never_blocked() {
    // A check that only looks may be a step of a plan as well.
    let looks: Vec<&str> = shipped()
        .iter()
        .flat_map(|module| &module.granted.commands)
        .filter(|request| request.effect != Effect::Change)
        .map(|request| request.pattern.as_str())
        .collect();
    let asked = |request: &CommandRequest| {
        request.effect == Effect::Change && !looks.contains(&request.pattern.as_str())
    };
    let wrong =
        wrong(asked, |verdict, is_own| (is_own || verdict.changes()) && verdict.level != Level::Block);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_module_is_granted_changes_only_where_a_tool_of_it_changes_something() {
    for module in shipped() {
        let granted = &module.granted;
        let may_change = granted.commands.iter().any(|request| request.effect == Effect::Change)
            || granted.paths.iter().any(|request| request.write);
        let described = expected_modules().iter().flat_map(|one| &one.tools);
        let changes = described.filter(|tool| module.tools.contains(&tool.name)).any(|tool| tool.changes());
        assert!(changes || !may_change, "{}: its tools only look, and it is granted changes", module.name);
    }
}

#[test]
fn a_module_asks_only_for_tools_that_others_have_and_that_only_look() {
    for module in shipped() {
        for called in &module.granted.tools {
            let looks = expected_tools().any(|(_, tool)| tool.name == *called && !tool.changes());
            assert!(looks && !module.tools.contains(called), "{}: {called}", module.name);
        }
    }
}
