//! What the policy's rules say of a plan: of each command and each file, and of the command lines in what it would write or
//! give a program to read, where those become somebody's code.

use super::allowed::Allowed;
use super::files::Site;
use super::plan::Action;
use super::standing::Standing;
use super::units;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_base::{Command, Privilege};
use host_knowledge::{Done, Knowledge, graver};
use host_policy::text::{self, Act, Code, CommandLine};
use host_policy::{FileStep, Given, Level, Policy, UNKNOWN_RULE, Verdict, only_looks, words};
use host_target::{Facts, Kind, Target};
use host_text::redact::excerpt;

/// Characters of a command line that are named as a reason.
const NAMED: usize = 160;
/// Command lines of one text that are named.
const MOST_NAMED: usize = 5;

/// What was found so far.
pub(super) struct Weighing<'a> {
    policy: &'a Policy,
    target: &'a Target,
    facts: &'a Facts,
    knowledge: &'a Knowledge,
    standing: Standing<'a>,
    /// What raises the plan's risk, and why.
    pub risks: Vec<(Risk, String)>,
    /// Ids of the rules that are met.
    pub rules: Vec<String>,
    /// Why somebody has to be asked, whatever the risk.
    pub asks: Vec<String>,
}

impl<'a> Weighing<'a> {
    /// By these rules, on this target.
    pub fn new(policy: &'a Policy, knowledge: &'a Knowledge, target: &'a Target, facts: &'a Facts) -> Self {
        let standing = Standing::new(target, facts);
        Self {
            policy,
            target,
            facts,
            knowledge,
            standing,
            risks: Vec::new(),
            rules: Vec::new(),
            asks: Vec::new(),
        }
    }

    /// What is run before anybody is asked, and to validate: it has to be harmless, whatever the plan calls it.
    pub fn harmless(&mut self, command: &Allowed) -> Result<(), Problem> {
        only_looks(self.policy, &command.command, &command.shown)
    }

    /// A command, and what it reads where that is code. `before` is what the host has seen in its place.
    pub async fn command(&mut self, command: &Allowed, before: Option<&[u8]>) -> Result<(), Problem> {
        let argv = words(&command.command);
        let verdict = self.policy.verdict(&argv);
        let line = excerpt(&command.line(), NAMED);
        self.met(&verdict, &format!("`{line}`"))?;
        // A link may lead its paths to where it counts for more.
        for (asked, leads) in command.led() {
            let led = |word: &String| match word.strip_suffix(asked) {
                // Alone, or as an option's value.
                Some(before) if before.is_empty() || before.ends_with('=') => format!("{before}{leads}"),
                _ => word.clone(),
            };
            let led: Vec<String> = argv.iter().map(led).collect();
            self.met(&self.policy.verdict(&led), &format!("`{line}`, where {asked} is {leads},"))?;
        }
        if let Some(rights) = Rights::given_by(&argv) {
            for path in rights.paths.iter().copied().chain(command.led().map(|(_, leads)| leads)) {
                if let Some(why) = self.gives_away(&rights, path).await {
                    self.risks.push((Risk::High, format!("`{line}` {why}")));
                }
            }
        }
        for why in self.given(&argv).await {
            self.risks.push((Risk::High, format!("`{line}` {why}")));
        }
        self.odd_instances(&argv, &line);
        // Where the grant says what may stand in each place, the grant has decided. Where it doesn't, the rules do.
        if command.free_form && verdict.level == Level::Confirm {
            self.asks.push(format!("`{line}` {}", verdict.because()));
        }
        let Some(stdin) = command.command.stdin.as_deref() else { return Ok(()) };
        // A line without an account runs with the rights of the account that installs it.
        let own = (command.command.privilege == Privilege::Caller && self.facts.uid != 0)
            .then(|| self.facts.user.clone());
        let Some(code) = text::of_stdin(&argv, stdin) else { return Ok(()) };
        let before = before.and_then(|before| text::of_stdin(&argv, before));
        let before = match before {
            Some(before) => Some(self.ordinary(before.of(own.as_deref())).await),
            None => None,
        };
        self.code(code.of(own.as_deref()), before, &format!("what `{line}` would read")).await
    }

    /// What a command would do that isn't run, since something else does the same by the way: by the rules, and by the
    /// profiles of the services that it is about.
    pub fn by_the_way(&mut self, argv: &[String]) -> Result<(), Problem> {
        let verdict = self.policy.verdict(argv);
        let line = excerpt(&argv.join(" "), NAMED);
        self.met(&verdict, &format!("`{line}`, by the way,"))?;
        self.odd_instances(argv, &line);
        if let Some((program, args)) = argv.split_first() {
            self.risks.extend(graver(self.knowledge, &self.facts.family, &Done::Run { program, args }));
        }
        Ok(())
    }

    /// Instances of templates by which a shell of root's may be given code.
    fn odd_instances(&mut self, argv: &[String], line: &str) {
        for unit in odd_instances(argv) {
            self.risks.push((
                Risk::High,
                format!("`{line}` gives a template the text {unit}, of which it may make code"),
            ));
        }
    }

    /// Why it costs more than the place says to set rights there: in somebody's home, and on what is root's own in a place
    /// for data, which root may run or keep to itself.
    async fn gives_away(&mut self, rights: &Rights<'_>, path: &str) -> Option<String> {
        let shown = excerpt(path, NAMED);
        let owner = match text::home_at(path) {
            Some(owner) => Some(owner),
            None => self.standing.at_home_in(path).await,
        };
        if let Some(owner) = owner {
            if let Some(why) = self.standing.power(&owner).await {
                return Some(format!(
                    "changes {shown}, the home of who is as good as root or a part of it: {why}"
                ));
            }
            if rights.owner.is_some_and(|to| to != owner) {
                return Some(format!("gives {shown}, which is in {owner}'s home, to somebody else"));
            }
            if self.standing.is_home(path).await && (rights.others_write || rights.shuts_owner_out) {
                return Some(format!("changes {shown} so that {owner} may no longer be able to log in"));
            }
        }
        let found = self.standing.of_roots(path).await?;
        if rights.owner.is_some() || rights.others_write {
            return Some(format!(
                "has others write to {shown}, which is root's own and may be what root goes by"
            ));
        }
        let everybodys = if found.kind == Kind::Directory { 0o001 } else { 0o004 };
        let is_closed = found.metadata.mode & everybodys == 0;
        let is_opened = rights.others_read || rights.others_enter || rights.group.is_some();
        (is_closed && is_opened)
            .then(|| format!("opens {shown} to others, which is root's own and not for everybody"))
    }

    /// Why it costs more than the rules say to put an account into a group, or to give it a home, on this target.
    async fn given(&mut self, argv: &[String]) -> Vec<String> {
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        let given = Given::by(&words);
        let mut found = Vec::new();
        for group in given.groups {
            if let Some(why) = self.standing.given_by(&group).await {
                found.push(format!("gives an account the group {}, which {why}", excerpt(&group, NAMED)));
            }
        }
        // Its groups, its home and its comment say who comes in and what its programs may do.
        if let Some(account) = given.changed
            && let Some(why) = self.standing.power(&account).await
        {
            found.push(format!("changes {}, who is as good as root: {why}", excerpt(&account, NAMED)));
        }
        found
    }

    /// A command that takes back a step.
    pub async fn undo(&mut self, undo: &Allowed, before: Option<&[u8]>) -> Result<(), Problem> {
        match self.removes_what_is_made(undo).await {
            true => Ok(()),
            false => self.command(undo, before).await,
        }
    }

    /// Whether all that it does is remove files that aren't there now: then they are the step's own.
    async fn removes_what_is_made(&self, undo: &Allowed) -> bool {
        let Command { program, args, .. } = &undo.command;
        let Some(("--", paths)) = args.split_first().map(|(first, paths)| (first.as_str(), paths)) else {
            return false;
        };
        if program != "rm" || paths.is_empty() {
            return false;
        }
        for path in paths {
            if !self.standing.is_absent(path).await {
                return false;
            }
        }
        true
    }

    /// Of code that is there, what runs with an ordinary account's rights: it can do no more for having been there. Who put
    /// there what has root's isn't known, so that is judged as if it were new.
    async fn ordinary(&mut self, code: Code) -> Code {
        let mut lines = Vec::new();
        for line in code.lines {
            if let Some(account) = &line.user
                && self.standing.power(account).await.is_none()
            {
                lines.push(line);
            }
        }
        Code { lines, ..Code::default() }
    }

    /// A step on a file.
    pub async fn file(&mut self, action: &Action, site: &Site) -> Result<(), Problem> {
        let step = match action {
            Action::Run(_) => return Ok(()),
            Action::Write(_) => FileStep::Write,
            Action::Remove(_) => FileStep::Remove,
            Action::MakeDirectory(_) => FileStep::MakeDirectory,
        };
        let verdict = self.policy.of_file(step, &site.path);
        self.met(&verdict, &excerpt(&site.path, NAMED))?;
        if let Some(why) = takes_root(action, &site.path) {
            self.risks.push((Risk::High, why));
        }
        // With that account's own rights, only what is there becomes its code.
        let is_own = matches!(action.path().map(|at| &at.privilege), Some(Privilege::Caller));
        if let Some(owner) = text::home_of(&site.path).filter(|_| !is_own)
            && let Some(why) = self.standing.power(&owner).await
        {
            let path = excerpt(&site.path, NAMED);
            self.risks
                .push((Risk::High, format!("changes {path}, in the home of who is as good as root: {why}")));
        }
        let Action::Write(write) = action else { return Ok(()) };
        // A file that only root could write was decided about before.
        let is_roots = site
            .found
            .as_ref()
            .is_some_and(|found| found.metadata.owner == "root" && found.metadata.mode & 0o022 == 0);
        let before = site.before.as_deref().filter(|_| is_roots);
        let mut what = excerpt(&site.path, NAMED);
        let mut along = Vec::new();
        if let Some(unit) = units::unit_at(&site.path) {
            match units::drop_ins(self.target, unit).await {
                Ok(drop_ins) => {
                    for (path, text) in drop_ins {
                        what = format!("{what}, with {}", excerpt(&path, NAMED));
                        along.push(text);
                    }
                }
                Err(problem) => {
                    let why = format!("{what} may have drop-ins that can't be read: {}", problem.message);
                    self.risks.push((Risk::High, why));
                }
            }
            let waiting = match site.found {
                Some(_) => Vec::new(),
                None => units::waiting_for(self.target, unit).await,
            };
            if let Some(first) = waiting.first() {
                let first = excerpt(first, NAMED);
                self.risks
                    .push((Risk::High, format!("{what} is a unit that others already wait for ({first})")));
            }
        }
        let before = before.and_then(|before| text::of_unit(&site.path, before, &along));
        match text::of_unit(&site.path, &write.contents, &along) {
            Some(code) => self.code(code, before, &what).await,
            None => Ok(()),
        }
    }

    /// Only what is new: who adds a line to a file isn't asked about the others.
    async fn code(&mut self, code: Code, before: Option<Code>, what: &str) -> Result<(), Problem> {
        let before = before.unwrap_or_default();
        let was_there = |line: &CommandLine| {
            before.lines.iter().any(|old| {
                (&old.argv, &old.user, &old.directory) == (&line.argv, &line.user, &line.directory)
            })
        };
        let mut found = Vec::new();
        for line in code.lines.iter().filter(|line| !was_there(line)) {
            let is_ordinary = match &line.user {
                Some(account) => self.standing.power(account).await.is_none(),
                None => false,
            };
            let verdict = match is_ordinary {
                true => self.policy.certain(&line.argv, line.directory.as_deref()),
                false => self.policy.verdict_in(&line.argv, line.directory.as_deref()),
            };
            let shown = line.shell.clone().unwrap_or_else(|| line.argv.join(" "));
            let shown = format!("`{}` in {what} ({})", excerpt(&shown, NAMED), line.at);
            self.met(&verdict, &shown)?;
            found.extend(self.objection(line, &shown).await);
        }
        self.acts(&code.acts, &before.acts, what).await?;
        let ports: Vec<u16> =
            code.ports.iter().filter(|port| !before.ports.contains(port)).copied().collect();
        if let Some(port) = units::taken(self.target, &ports).await {
            let why = format!("{what} listens on port {port}, on which something else listens already");
            self.risks.push((Risk::High, why));
        }
        for (path, at) in code.files.iter().filter(|file| !before.files.contains(file)) {
            let secret = self.standing.is_secret(path).await;
            found.extend(
                secret.map(|why| format!("{what} has root read {path} for somebody else ({at}): {why}")),
            );
        }
        found.extend(
            code.power
                .iter()
                // A sentence shows only the beginning of a long value.
                .filter(|one| one.contains('…') || !before.power.contains(one))
                .map(|power| format!("{what} {power}")),
        );
        found.extend(code.unreadable.map(|why| format!("{what} becomes code, and can't be judged: {why}")));
        found.truncate(MOST_NAMED);
        self.risks.extend(found.into_iter().map(|reason| (Risk::High, excerpt(&reason, 3 * NAMED))));
        Ok(())
    }

    /// What a text does to other units by the way, where it didn't do so before.
    async fn acts(&mut self, acts: &[Act], before: &[Act], what: &str) -> Result<(), Problem> {
        for verb in ["start", text::HANDS_OVER, "stop", "enable", "disable"] {
            let is_new = |act: &&Act| {
                act.verb == verb && !before.iter().any(|old| (old.verb, &old.unit) == (verb, &act.unit))
            };
            let units: Vec<&str> = acts.iter().filter(is_new).map(|act| act.unit.as_str()).collect();
            // A name that systemd passes over in a unit would hide what the others are.
            if self.facts.init_system == "systemd" && !units::are_answered_for(self.target, &units).await {
                let units = excerpt(&units.join(", "), NAMED);
                self.risks.push((
                    Risk::High,
                    format!("{what} names {units}, and the target doesn't say what they are"),
                ));
            }
            let command = if verb == text::HANDS_OVER { "start" } else { verb };
            for unit in units::named(self.target, &units).await {
                self.by_the_way(&["systemctl", command, "--", &unit].map(str::to_owned))?;
            }
            if command == "start" {
                for unit in units::stopped_by(self.target, &units).await {
                    self.by_the_way(&["systemctl", "stop", "--", &unit].map(str::to_owned))?;
                }
            }
            if verb == text::HANDS_OVER && units::of_packages(self.target, &units).await {
                let units = excerpt(&units.join(", "), NAMED);
                self.risks.push((Risk::High, format!("{what} changes what {units} listens on")));
            }
        }
        Ok(())
    }

    /// Why a line isn't harmless: with root's rights, where it isn't known to be; with an account's own, where the account
    /// is as good as root, or others may change what it runs.
    async fn objection(&mut self, line: &CommandLine, shown: &str) -> Option<String> {
        let root = match line.user.as_deref() {
            None => Some("root".to_owned()),
            Some(account) => self.standing.power(account).await,
        };
        let account =
            line.user.as_deref().map(|account| account.strip_prefix(text::DYNAMIC).unwrap_or(account));
        let who = match (&root, account) {
            (Some(why), Some(account)) => format!("{account} ({why})"),
            (_, account) => account.unwrap_or("root").to_owned(),
        };
        let listed = root.and_then(|_| text::objection(&line.argv));
        let why = match listed {
            Some(why) => Some(why),
            // A bare name is found only in directories that root alone writes to.
            None => match line.argv.first().filter(|program| program.starts_with('/')) {
                Some(program) => self.standing.program(program, line.user.as_deref()).await,
                None => None,
            },
        };
        why.map(|why| format!("{who} would run {shown}: {why}"))
    }

    fn met(&mut self, verdict: &Verdict, what: &str) -> Result<(), Problem> {
        self.rules.extend(
            verdict
                .matched_rules
                .iter()
                .filter(|rule| *rule != UNKNOWN_RULE && !self.rules.contains(rule))
                .cloned()
                .collect::<Vec<_>>(),
        );
        if verdict.level == Level::Block {
            return Err(blocked(verdict, what));
        }
        if let Some(risk) = verdict.risk {
            self.risks.push((risk, format!("{what} {}", verdict.because())));
        }
        Ok(())
    }
}

/// Instances of templates in a systemctl command whose text is more than a plain name. What a template has a shell of root's
/// read, it may put it into.
fn odd_instances(argv: &[String]) -> Vec<String> {
    let is_systemctl = argv.first().is_some_and(|program| program.rsplit('/').next() == Some("systemctl"));
    // These run nothing of an instance that doesn't run. Every other verb may start one.
    let harmless = ["show", "status", "cat", "is-active", "is-enabled", "is-failed", "stop", "disable"];
    let verb = argv.iter().skip(1).find(|word| !word.starts_with('-'));
    if !is_systemctl || verb.is_none_or(|verb| harmless.contains(&verb.as_str())) {
        return Vec::new();
    }
    let is_odd = |unit: &&String| {
        let instance = unit.split_once('@').map_or("", |(_, instance)| instance);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:@-".contains(&byte);
        instance.starts_with('-') || !instance.bytes().all(is_plain)
    };
    argv.iter()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .filter(is_odd)
        .map(|unit| excerpt(unit, NAMED))
        .collect()
}

/// Rights that a command sets on paths.
#[derive(Debug, Default)]
struct Rights<'a> {
    paths: Vec<&'a str>,
    /// The new owner, unless it is root.
    owner: Option<&'a str>,
    /// The new group, unless it is root's.
    group: Option<&'a str>,
    /// A group or everybody may write.
    others_write: bool,
    /// Everybody may read.
    others_read: bool,
    /// Everybody may go into a directory.
    others_enter: bool,
    /// The owner may not go in or read any more.
    shuts_owner_out: bool,
}

impl<'a> Rights<'a> {
    /// What isn't understood is taken for all of it.
    fn given_by(argv: &'a [String]) -> Option<Self> {
        let (program, arguments) = argv.split_first()?;
        let mut operands = arguments.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
        let not_root = |name: &'a str| (!matches!(name, "" | "root" | "0")).then_some(name);
        match program.as_str() {
            "chmod" => {
                let mode = operands.next().unwrap_or_default();
                let given = match u32::from_str_radix(mode, 8) {
                    Ok(bits) => Self {
                        others_write: bits & 0o022 != 0,
                        others_read: bits & 0o004 != 0,
                        others_enter: bits & 0o001 != 0,
                        shuts_owner_out: bits & 0o500 != 0o500,
                        ..Self::default()
                    },
                    Err(_) => Self::given_by_words(mode),
                };
                Some(Self { paths: operands.collect(), ..given })
            }
            "chown" => {
                let both = operands.next().unwrap_or_default();
                let (owner, group) = both.split_once([':', '.']).unwrap_or((both, ""));
                let paths = operands.collect();
                Some(Self { paths, owner: not_root(owner), group: not_root(group), ..Self::default() })
            }
            "chgrp" => {
                let group = operands.next().unwrap_or_default();
                Some(Self { paths: operands.collect(), group: not_root(group), ..Self::default() })
            }
            _ => None,
        }
    }

    /// What `u=rwx,g+w` gives.
    fn given_by_words(mode: &str) -> Self {
        let mut given = Self::default();
        for clause in mode.split(',') {
            let Some(at) = clause.find(['+', '-', '=']) else { continue };
            let (whose, rights) = (&clause[..at], &clause[at + 1..]);
            let is_all = whose.is_empty() || whose.contains('a');
            let copies = rights.contains(['u', 'g', 'o']);
            let (reads, goes_in) = (rights.contains('r') || copies, rights.contains(['x', 'X']) || copies);
            if is_all || whose.contains('u') {
                given.shuts_owner_out |= match clause.as_bytes()[at] {
                    b'-' => reads || goes_in,
                    b'=' => !(reads && goes_in),
                    _ => false,
                };
            }
            if clause.as_bytes()[at] != b'-' {
                let group_or_all = is_all || whose.contains(['g', 'o']);
                given.others_write |= group_or_all && (rights.contains('w') || copies);
                given.others_read |= (is_all || whose.contains('o')) && reads;
                given.others_enter |= (is_all || whose.contains('o')) && goes_in;
            }
        }
        given
    }
}

/// No confirmation changes it.
fn blocked(verdict: &Verdict, what: &str) -> Problem {
    let message =
        format!("the policy forbids {what}: it {}; no confirmation changes that", verdict.because());
    Problem::new("POLICY_BLOCKED", Category::Denied, message)
        .remedy("An operator can see why with `linux-sysadmin policy check -- COMMAND`")
}

/// Why a step on a file gives or takes what is the system's, whatever stands in it.
fn takes_root(action: &Action, path: &str) -> Option<String> {
    if !text::is_the_systems(path) {
        return None;
    }
    let shown = excerpt(path, NAMED);
    let (owner, group, mode) = match action {
        Action::Run(_) => return None,
        // A text with a reader counts by its contents alone; any other file may be what keeps somebody out.
        Action::Remove(_) if text::is_read(path) => return None,
        Action::Remove(_) => return Some(format!("removes {shown}, which programs of root's may go by")),
        Action::Write(write) => (&write.owner, &write.group, write.mode.unwrap_or_default()),
        Action::MakeDirectory(directory) => (&directory.owner, &directory.group, directory.mode),
    };
    let is_others = |name: &Option<String>| name.as_deref().is_some_and(|name| name != "root");
    if is_others(owner) || is_others(group) && mode & 0o020 != 0 || mode & 0o002 != 0 {
        return Some(format!("gives {shown}, which programs of root's read or run, to others than root"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_knowledge::Lazy;
    use host_target::Overrides;

    const UNIT: &str = "/etc/systemd/system/x.service";
    const CRONTAB: &str = "/etc/cron.d/x";

    /// The risks and reasons that the built-in rules find in new contents of a file, on this machine, reached as root.
    async fn weighed(path: &str, before: &str, after: &str) -> (Vec<Risk>, String) {
        let target = Target::local(Overrides::default());
        let facts = Facts { user: "root".to_owned(), ..Facts::default() };
        let lazy = Lazy::default();
        let mut weighing = Weighing::new(Policy::builtin(), lazy.get(), &target, &facts);
        let before = text::of_file(path, before.as_bytes());
        weighing.code(text::of_file(path, after.as_bytes()).unwrap(), before, path).await.unwrap();
        let reasons: Vec<&str> = weighing.risks.iter().map(|(_, reason)| reason.as_str()).collect();
        (weighing.risks.iter().map(|(risk, _)| *risk).collect(), reasons.join("\n"))
    }

    #[tokio::test]
    async fn text_that_root_would_run_is_grave_unless_it_is_known_to_be_harmless() {
        for (path, text, grave) in [
            (UNIT, "[Service]\nExecStart=/bin/echo hello\n", false),
            (UNIT, "[Service]\nExecStart=/usr/sbin/nginx -g 'daemon off;'\n", true),
            (UNIT, "[Service]\nExecStart=/bin/echo hello\nExecStartPost=/bin/systemctl restart x\n", true),
            (UNIT, "[Service]\nExecStart=/bin/true\nEnvironment=LD_PRELOAD=/tmp/x.so\n", true),
            (UNIT, "[Service]\nUser=nobody\nExecStart=/bin/sleep 5\nEnvironment=A=/tmp/x.so\n", false),
            (UNIT, "[Service]\nUser=nobody\nExecStart=/nowhere/x\n", true),
            (UNIT, "[Service]\nUser=nobody-knows\nExecStart=/usr/bin/find /\n", true),
            (CRONTAB, "0 3 * * * root logger -t x y\n", false),
            (CRONTAB, "0 3 * * * root /usr/bin/backup --quiet\n", true),
            (CRONTAB, "0 3 * * * nobody curl -s http://x | sort\n", false),
            ("/etc/cron.daily/x", "anything", true),
            ("/etc/motd.d/x/y", "anything", true),
        ] {
            let (risks, reasons) = weighed(path, "", text).await;
            assert_eq!(risks.iter().any(|risk| *risk >= Risk::High), grave, "{path} {text}: {reasons}");
        }
    }

    #[tokio::test]
    async fn what_only_might_become_grave_counts_for_root_alone() {
        for command in [
            "cp -p /srv/app/ledger.db \"/srv/app/exports/ledger-$(date +%F).db\"",
            "cd ~/notes && /bin/true || echo 'not done'",
            "find /srv/app/x -name \"$(hostname)*\"",
            "rm -f \"$HOME/cache/$NAME\"",
            "echo $(",
        ] {
            for (path, asks) in [
                ("/var/spool/cron/crontabs/nobody", false),
                ("/var/spool/cron/crontabs/root", true),
                ("/var/spool/cron/crontabs/nobody-knows", true),
            ] {
                let (risks, reasons) = weighed(path, "", &format!("0 3 * * * {command}\n")).await;
                assert_eq!(risks.iter().any(|risk| *risk >= Risk::High), asks, "{path} {command}: {reasons}");
            }
        }
        // What is sure counts whoever does it.
        let sure = "0 3 * * * cat ~/.ssh/id_rsa /home/nobody/.ssh/id_rsa\n";
        assert!(weighed("/var/spool/cron/crontabs/nobody", "", sure).await.0.contains(&Risk::High));
    }

    #[test]
    fn what_rights_a_command_gives_is_read_from_its_words() {
        for (line, paths, owner, group, write, read, shuts_out) in [
            ("chmod -- 0644 /a", &["/a"][..], None, None, false, true, true),
            ("chmod 775 /a /b", &["/a", "/b"], None, None, true, true, false),
            ("chmod 0 /a", &["/a"], None, None, false, false, true),
            ("chmod u=rwX,g=rX,o= /a", &["/a"], None, None, false, false, false),
            ("chmod g+w /a", &["/a"], None, None, true, false, false),
            ("chmod +r /a", &["/a"], None, None, false, true, false),
            ("chmod o=g /a", &["/a"], None, None, true, true, false),
            ("chmod u+w,go-w /a", &["/a"], None, None, false, false, false),
            ("chmod u-x /a", &["/a"], None, None, false, false, true),
            ("chmod a-r /a", &["/a"], None, None, false, false, true),
            ("chmod u= /a", &["/a"], None, None, false, false, true),
            ("chmod = /a", &["/a"], None, None, false, false, true),
            ("chown --no-dereference -- bob:eve /a", &["/a"], Some("bob"), Some("eve"), false, false, false),
            ("chown root:bob /a", &["/a"], None, Some("bob"), false, false, false),
            ("chown :bob /a", &["/a"], None, Some("bob"), false, false, false),
            ("chgrp bob /a", &["/a"], None, Some("bob"), false, false, false),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let rights = Rights::given_by(&argv).unwrap();
            assert_eq!(
                (&rights.paths[..], rights.owner, rights.group, rights.others_write, rights.others_read),
                (paths, owner, group, write, read),
                "{line}"
            );
            assert_eq!(rights.shuts_owner_out, shuts_out, "{line}");
        }
        assert!(Rights::given_by(&["ls".to_owned()]).is_none());
    }

    #[test]
    fn an_instance_is_odd_that_a_shell_might_read_as_code() {
        for (line, odd) in [
            (r"systemctl start -- notify@\x3bid", 1),
            (r"systemctl enable --now a@b\x20c.service d@e.service", 1),
            ("systemctl restart a@-x.service", 1),
            ("systemctl start -- postgresql@15-main.service queue@1 nginx", 0),
            (r"systemctl stop notify@\x3bid", 0),
            (r"systemctl show notify@\x3bid", 0),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(odd_instances(&argv).len(), odd, "{line}");
        }
    }

    #[tokio::test]
    async fn rights_cost_more_on_what_root_may_run_and_in_homes_of_who_is_as_good_as_root() {
        // Root's own directory, file and program on every machine.
        let target = Target::local(Overrides::default());
        let facts = Facts { user: "nobody-else".to_owned(), ..Facts::default() };
        let lazy = Lazy::default();
        let mut weighing = Weighing::new(Policy::builtin(), lazy.get(), &target, &facts);
        let nothing = Rights::default;
        let to = |owner| Rights { owner: Some(owner), ..Rights::default() };
        let write = || Rights { others_write: true, ..Rights::default() };
        let read = || Rights { others_read: true, ..Rights::default() };
        for (path, rights, asks) in [
            ("/usr", to("ada"), true),
            ("/usr", write(), true),
            ("/usr", read(), false),
            ("/etc/passwd", to("ada"), true),
            ("/etc/passwd", write(), true),
            ("/etc/passwd", read(), false),
            ("/root", Rights { others_enter: true, ..Rights::default() }, true),
            ("/usr", Rights { others_enter: true, ..Rights::default() }, false),
            ("/etc/shadow", read(), true),
            ("/etc/shadow", to("ada"), true),
            ("/etc/shadow", Rights { group: Some("ada"), ..Rights::default() }, true),
            ("/bin/true", write(), true),
            ("/home/root", nothing(), true),
            ("/home/nobody-knows/x", nothing(), true),
            ("/home/nobody/x", write(), false),
            ("/home/nobody/x", to("nobody"), false),
            ("/home/nobody/x", to("ada"), true),
            ("/home/nobody", to("ada"), true),
            ("/home/nobody", write(), true),
            ("/home/nobody", Rights { shuts_owner_out: true, ..Rights::default() }, true),
            ("/home/nobody", read(), false),
            ("/nowhere", to("ada"), false),
        ] {
            let why = weighing.gives_away(&rights, path).await;
            assert_eq!(why.is_some(), asks, "{path}: {why:?}");
        }
    }

    #[tokio::test]
    async fn only_what_is_new_is_weighed() {
        let old = "0 3 * * * root find / -delete\n";
        let more = |line: &str| format!("{old}{line}");
        assert!(weighed(CRONTAB, old, &more("0 4 * * * root true\n")).await.0.is_empty());
        assert!(!weighed(CRONTAB, old, &more("0 4 * * * root find /srv -delete\n")).await.0.is_empty());
        // The same line with other rights is another one.
        assert!(!weighed(CRONTAB, "0 3 * * * nobody find / -delete\n", old).await.0.is_empty());
    }
}
