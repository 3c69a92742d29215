//! What the policy's rules say of a plan: of each command and each file, and of the command lines in what it would write or
//! give a program to read, where those become somebody's code.

use super::files::Site;
use super::plan::Action;
use super::policy::text::{self, Code, CommandLine};
use super::policy::{FileStep, Level, Policy, Verdict};
use super::prepare::Allowed;
use crate::capability::Risk;
use crate::problem::{Category, Problem};
use crate::redact::excerpt;

/// Characters of a command line that are named as a reason.
const NAMED: usize = 160;
/// Command lines of one text that are named.
const MOST_NAMED: usize = 5;

/// What was found so far.
pub(super) struct Weighing<'a> {
    policy: &'a Policy,
    /// What raises the plan's risk, and why.
    pub risks: Vec<(Risk, String)>,
    /// Ids of the rules that are met.
    pub rules: Vec<String>,
    /// Why somebody has to be asked, whatever the risk.
    pub asks: Vec<String>,
}

impl<'a> Weighing<'a> {
    /// By these rules.
    pub fn new(policy: &'a Policy) -> Self {
        Self { policy, risks: Vec::new(), rules: Vec::new(), asks: Vec::new() }
    }

    /// A command, and what it reads where that is code. What was there before, `undo` gives the same program back.
    pub fn command(&mut self, command: &Allowed, undo: &[Allowed]) -> Result<(), Problem> {
        let argv = argv(command);
        let verdict = self.policy.verdict(&argv);
        let line = excerpt(&command.line(), NAMED);
        self.met(&verdict, &format!("`{line}`"))?;
        // Where the grant says what may stand in each place, the grant has decided. Where it doesn't, the rules do.
        if command.free_form && verdict.level == Level::Confirm {
            self.asks.push(format!("`{line}` {}", because(&verdict)));
        }
        let Some(stdin) = command.command.stdin.as_deref() else { return Ok(()) };
        let same = undo.iter().find(|undo| undo.line() == command.line());
        let before = same.and_then(|undo| text::of_stdin(&argv, undo.command.stdin.as_deref()?));
        match text::of_stdin(&argv, stdin) {
            Some(code) => self.code(code, before, &format!("what `{line}` would read")),
            None => Ok(()),
        }
    }

    /// A step on a file.
    pub fn file(&mut self, action: &Action, site: &Site) -> Result<(), Problem> {
        let step = match action {
            Action::Run(_) => return Ok(()),
            Action::Write(_) => FileStep::Write,
            Action::Remove(_) => FileStep::Remove,
            Action::MakeDirectory(_) => FileStep::MakeDirectory,
        };
        let verdict = self.policy.of_file(step, &site.path);
        self.met(&verdict, &excerpt(&site.path, NAMED))?;
        let Action::Write(write) = action else { return Ok(()) };
        let before = site.before.as_deref().and_then(|before| text::of_file(&site.path, before));
        match text::of_file(&site.path, &write.contents) {
            Some(code) => self.code(code, before, &excerpt(&site.path, NAMED)),
            None => Ok(()),
        }
    }

    /// Only what is new: who adds a line to a file isn't asked about the others.
    fn code(&mut self, code: Code, before: Option<Code>, what: &str) -> Result<(), Problem> {
        let before = before.unwrap_or_default();
        let was_there = |line: &CommandLine| {
            before.lines.iter().any(|old| (&old.argv, &old.user) == (&line.argv, &line.user))
        };
        let mut found = Vec::new();
        for line in code.lines.iter().filter(|line| !was_there(line)) {
            let verdict = self.policy.verdict(&line.argv);
            let shown = line.shell.clone().unwrap_or_else(|| line.argv.join(" "));
            let shown = format!("`{}` in {what} ({})", excerpt(&shown, NAMED), line.at);
            self.met(&verdict, &shown)?;
            // With an account's own rights it is at the risk that the rules say.
            if verdict.level != Level::Safe && line.user.is_none() {
                found.push(format!("root would run {shown}, which {}", because(&verdict)));
            }
        }
        found.extend(
            code.power
                .iter()
                .filter(|one| !before.power.contains(one))
                .map(|power| format!("{what} {power}")),
        );
        found.extend(code.unreadable.map(|why| format!("{what} becomes code, and can't be judged: {why}")));
        found.truncate(MOST_NAMED);
        self.risks.extend(found.into_iter().map(|reason| (Risk::High, excerpt(&reason, 3 * NAMED))));
        Ok(())
    }

    fn met(&mut self, verdict: &Verdict, what: &str) -> Result<(), Problem> {
        self.rules.extend(
            verdict
                .matched_rules
                .iter()
                .filter(|rule| !self.rules.contains(rule))
                .cloned()
                .collect::<Vec<_>>(),
        );
        if verdict.level == Level::Block {
            return Err(blocked(verdict, what));
        }
        if let Some(risk) = verdict.risk {
            self.risks.push((risk, format!("{what} {}", because(verdict))));
        }
        Ok(())
    }
}

/// As the rules read it: variables are as `env` would set them.
fn argv(command: &Allowed) -> Vec<String> {
    let command = &command.command;
    let mut argv = Vec::new();
    if !command.env.is_empty() {
        argv.push("env".to_owned());
        argv.extend(command.env.iter().map(|(name, value)| format!("{name}={value}")));
    }
    argv.push(command.program.clone());
    argv.extend(command.args.iter().cloned());
    argv
}

fn because(verdict: &Verdict) -> String {
    let rule = verdict.matched_rules.first().map_or("", String::as_str);
    format!("{} (rule {rule})", verdict.reason)
}

/// No confirmation changes it.
fn blocked(verdict: &Verdict, what: &str) -> Problem {
    let message = format!("the policy forbids {what}: it {}; no confirmation changes that", because(verdict));
    Problem::new("POLICY_BLOCKED", Category::Denied, message)
        .remedy("An operator can see why with `linux-sysadmin policy check -- COMMAND`")
}

/// What is run to look, and is no looking.
pub fn no_looking(verdict: &Verdict, line: &str) -> Problem {
    let message = format!(
        "`{line}` is granted to look by, and the policy takes it for a change: it {}",
        because(verdict)
    );
    Problem::new("POLICY_BLOCKED", Category::Denied, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: &str = "/etc/systemd/system/x.service";
    const CRONTAB: &str = "/etc/cron.d/x";

    /// What the built-in rules say of new contents of a file.
    fn weighed(path: &str, before: &str, after: &str) -> (Vec<Risk>, String) {
        let policy = Policy::builtin();
        let mut weighing = Weighing::new(&policy);
        let before = text::of_file(path, before.as_bytes());
        weighing.code(text::of_file(path, after.as_bytes()).unwrap(), before, path).unwrap();
        let reasons: Vec<&str> = weighing.risks.iter().map(|(_, reason)| reason.as_str()).collect();
        (weighing.risks.iter().map(|(risk, _)| *risk).collect(), reasons.join("\n"))
    }

    #[test]
    fn text_that_root_would_run_is_grave_where_the_rules_do_not_call_it_safe() {
        for (path, text, grave) in [
            (UNIT, "[Service]\nExecStart=/usr/sbin/nginx -g 'daemon off;'\n", false),
            (UNIT, "[Service]\nExecStart=/bin/echo hello\nExecStartPost=/bin/systemctl restart x\n", true),
            (UNIT, "[Service]\nExecStart=/bin/rm /etc/x\n", true),
            (UNIT, "[Service]\nExecStart=/bin/sh -c 'curl http://x | sh'\n", true),
            (UNIT, "[Service]\nExecStart=/usr/bin/x\nEnvironment=LD_PRELOAD=/tmp/x.so\n", true),
            (CRONTAB, "0 3 * * * root /usr/bin/backup --quiet\n", false),
            (CRONTAB, "0 3 * * * root find / -delete\n", true),
            ("/etc/cron.daily/x", "anything", true),
        ] {
            let (risks, reasons) = weighed(path, "", text);
            assert_eq!(risks.iter().any(|risk| *risk >= Risk::High), grave, "{path} {text}: {reasons}");
        }
    }

    #[test]
    fn only_what_is_new_is_weighed() {
        let old = "0 3 * * * root find / -delete\n";
        assert!(weighed(CRONTAB, old, &format!("{old}0 4 * * * root /usr/bin/backup\n")).0.is_empty());
        assert!(!weighed(CRONTAB, old, &format!("{old}0 4 * * * root find /srv -delete\n")).0.is_empty());
        // The same line with other rights is another one.
        assert!(!weighed(CRONTAB, "0 3 * * * ada find / -delete\n", old).0.is_empty());
    }

    #[test]
    fn with_an_accounts_own_rights_text_is_as_grave_as_the_rules_say() {
        let (_, reasons) = weighed(CRONTAB, "", "0 3 * * * ada rm /srv/x\n");
        assert!(!reasons.contains("root would run"), "{reasons}");
        let (_, reasons) = weighed(CRONTAB, "", "0 3 * * * root rm /srv/x\n");
        assert!(reasons.contains("root would run `rm /srv/x`"), "{reasons}");
    }
}
