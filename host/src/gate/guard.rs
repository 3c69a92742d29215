//! A change that could cut the connection undoes itself on the target, unless the host gets through again.
//!
//! Before the first step the undo lies on the target as units of its service manager: one for each command, each with
//! its argv and no shell, chained so that the latest step is undone first, and started by a timer. A step's units do
//! nothing until the step has been marked as begun. Every step starts the timer anew; after the last one the host looks
//! whether the target can be reached by a new connection, and takes the units away.

mod units;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use super::execute::Execution;
use super::plan::Action;
use super::prepare::{Allowed, Doing};
use crate::problem::{Category, Problem};
use crate::target::{Facts, PATH, Privilege, Target};
pub use units::{Left, Units};
use units::{UNITS, own};

/// Between two looks at whether the target is reached.
const AGAIN: Duration = Duration::from_millis(500);

/// One command of the undo, as the target would run it by itself.
struct Item {
    /// Step that it belongs to; those after the undo belong to none.
    step: Option<usize>,
    argv: Vec<String>,
    env: Vec<(String, String)>,
    stdin: Option<Vec<u8>>,
    user: Option<String>,
    /// A path that must be there.
    needs: Option<String>,
    /// As a person reads it.
    line: String,
}

/// The undo on the target.
pub struct Guard<'a> {
    target: &'a Target,
    units: Units<'a>,
    wait: Duration,
    items: Vec<Item>,
    before: Network,
}

/// What the guard found.
pub enum Watched {
    /// The target is reached, and nothing is left of the guard.
    Disarmed,
    /// It has undone the change: what, and what not.
    Fired(Vec<String>, Vec<String>),
}

impl<'a> Guard<'a> {
    /// Puts the undo on the target, and starts its timer.
    pub async fn arm(
        execution: &'a Execution,
        facts: &Facts,
        id: &str,
        wait: Duration,
    ) -> Result<Self, Problem> {
        let unavailable = |why: &str| {
            let message =
                format!("this change could cut the connection, and can't undo itself on the target: {why}");
            Problem::new("GUARD_UNAVAILABLE", Category::State, message)
        };
        if facts.init_system != "systemd" {
            return Err(unavailable("there is no systemd"));
        }
        if !facts.root_available() || facts.sudo_limited {
            return Err(unavailable("that takes root's rights, and sudo doesn't allow everything"));
        }
        let target = &*execution.target;
        let (items, before) = (items(execution).await?, Network::of(target).await?);
        let units = Units::new(target, id, items.len(), execution.plan.steps.len());
        let guard = Self { target, units, wait, items, before };
        if let Err(problem) = guard.put(execution).await {
            guard.units.remove().await;
            return Err(problem);
        }
        Ok(guard)
    }

    async fn put(&self, execution: &Execution) -> Result<(), Problem> {
        self.units.command("mkdir", &["--mode=0700", "--", &self.units.marks()], None).await?;
        for (number, item) in self.items.iter().enumerate() {
            if let Some(stdin) = &item.stdin {
                self.write(&self.units.stdin(number), stdin.clone(), "0600").await?;
            }
            let unit = self.unit(number, item);
            self.write(&format!("{UNITS}/{}", self.units.item(number)), unit.into_bytes(), "0644").await?;
        }
        let all: Vec<String> = (0..self.items.len()).map(|number| self.units.item(number)).collect();
        let service = format!(
            "[Unit]\nDescription=Undo of a change that cut the way to this machine\nWants={all}\nAfter={all}\n\n\
             [Service]\nType=oneshot\nExecStart={}\n",
            self.target.program("true").await?,
            all = all.join(" "),
        );
        self.write(&format!("{UNITS}/{}.service", self.units.name), service.into_bytes(), "0644").await?;
        // A step's own time beside the wait: the timer is started before the step.
        let steps = execution.plan.change.steps.iter().filter_map(|step| match &step.action {
            Action::Run(run) => Some(run.command.timeout),
            _ => None,
        });
        let seconds = (self.wait + steps.max().unwrap_or_default()).as_secs();
        let timer = format!(
            "[Unit]\nDescription=Undo of a change unless the way to this machine holds\nStartLimitIntervalSec=0\n\n\
             [Timer]\nOnActiveSec={seconds}\nAccuracySec=1s\n"
        );
        self.write(&format!("{UNITS}/{}.timer", self.units.name), timer.into_bytes(), "0644").await?;
        self.units.systemctl(&["daemon-reload"]).await?;
        self.units.systemctl(&["start", "--", &format!("{}.timer", self.units.name)]).await?;
        Ok(())
    }

    /// A step is about to begin. A problem where the target is undoing already: what came now would stay.
    pub async fn begins(&self, step: usize) -> Result<(), Problem> {
        self.units.command("mkdir", &["--", &self.units.mark(step)], None).await?;
        self.units.systemctl(&["restart", "--", &format!("{}.timer", self.units.name)]).await?;
        match self.has_fired().await? {
            true => Err(cut()),
            false => Ok(()),
        }
    }

    /// A step that failed isn't undone.
    pub async fn has_failed(&self, step: usize) {
        if let Err(problem) = self.units.command("rmdir", &["--", &self.units.mark(step)], None).await {
            tracing::warn!(guard = self.units.name, step, %problem, "the guard still takes a failed step for a begun one");
        }
    }

    /// The steps are through: looks whether the target can be reached anew, until the time is over.
    pub async fn watch(self) -> Watched {
        let until = tokio::time::Instant::now() + self.wait;
        loop {
            if self.before.still_holds(self.target).await {
                if self.disarm().await {
                    return Watched::Disarmed;
                }
                break;
            }
            if tokio::time::Instant::now() >= until {
                break;
            }
            tokio::time::sleep(AGAIN).await;
        }
        self.fires().await
    }

    /// A step has failed, and the host undoes by itself, unless the target was first.
    pub async fn stand_down(self) -> Watched {
        match self.disarm().await {
            true => Watched::Disarmed,
            false => self.fires().await,
        }
    }

    async fn fires(&self) -> Watched {
        // It is due: not waiting for the timer's own moment changes nothing but the waiting.
        let _ = self.units.systemctl(&["stop", "--", &format!("{}.timer", self.units.name)]).await;
        let _ = self.units.systemctl(&["start", "--", &format!("{}.service", self.units.name)]).await;
        let (mut undone, mut not_undone) = (Vec::new(), Vec::new());
        for (number, item) in self.items.iter().enumerate() {
            let ran = self.show(&self.units.item(number), "Result,ConditionResult,ActiveState").await;
            // What keeps copies is nobody's news.
            if item.line.is_empty() {
                continue;
            }
            let has = |word: &str| ran.as_ref().is_ok_and(|shown| shown.lines().any(|line| line == word));
            if has("ConditionResult=yes") && has("Result=success") && has("ActiveState=active") {
                undone.push(item.line.clone());
            } else if ran.is_err() || has("ConditionResult=yes") || self.is_marked(item.step).await {
                not_undone.push(item.line.clone());
            }
        }
        self.units.remove().await;
        Watched::Fired(undone, not_undone)
    }

    /// Takes the timer and the units away; false where the timer was first.
    async fn disarm(&self) -> bool {
        let _ = self.units.systemctl(&["stop", "--", &format!("{}.timer", self.units.name)]).await;
        let waits = matches!(self.has_fired().await, Ok(false));
        if waits {
            self.units.remove().await;
        }
        waits
    }

    /// Whether the target has begun to undo: the service waits for each of its parts, so each is looked at.
    async fn has_fired(&self) -> Result<bool, Problem> {
        let service = format!("{}.service", self.units.name);
        let units =
            std::iter::once(service).chain((0..self.items.len()).map(|number| self.units.item(number)));
        let units: Vec<String> = units.collect();
        let args = ["show", "--property=ActiveState,Job,ExecMainStartTimestampMonotonic", "--"];
        let args: Vec<&str> = args.into_iter().chain(units.iter().map(String::as_str)).collect();
        let shown = self.units.systemctl(&args).await?;
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let waits = |block: &str| {
            let has = |word: &str| block.lines().any(|line| line == word);
            let started = block.lines().any(|line| {
                line.strip_prefix("ExecMainStartTimestampMonotonic=")
                    .is_some_and(|time| !matches!(time, "" | "0"))
            });
            let queued = block
                .lines()
                .any(|line| line.strip_prefix("Job=").is_some_and(|job| !matches!(job, "" | "0")));
            has("ActiveState=inactive") && !started && !queued
        };
        // Blocks are set apart by empty lines, one for each unit.
        let blocks: Vec<&str> = shown.trim().split("\n\n").collect();
        Ok(blocks.len() != units.len() || !blocks.into_iter().all(waits))
    }

    async fn show(&self, unit: &str, properties: &str) -> Result<String, Problem> {
        let shown = self.units.systemctl(&["show", &format!("--property={properties}"), "--", unit]).await?;
        Ok(String::from_utf8_lossy(&shown.stdout).into_owned())
    }

    async fn is_marked(&self, step: Option<usize>) -> bool {
        match step {
            Some(step) => self.units.command("stat", &["--", &self.units.mark(step)], None).await.is_ok(),
            None => true,
        }
    }

    fn unit(&self, number: usize, item: &Item) -> String {
        let mut unit = "[Unit]\nDescription=Undo of one step\n".to_owned();
        if number > 0 {
            let _ = writeln!(unit, "After={}", self.units.item(number - 1));
        }
        for path in item.step.map(|step| self.units.mark(step)).iter().chain(&item.needs) {
            let _ = writeln!(unit, "ConditionPathExists={}", escaped(path));
        }
        unit.push_str("\n[Service]\nType=oneshot\nRemainAfterExit=yes\n");
        // As where the host runs it.
        for (name, value) in [("PATH", PATH), ("LC_ALL", "C.UTF-8")] {
            let _ = writeln!(unit, "Environment={name}={value}");
        }
        for (name, value) in &item.env {
            let _ = writeln!(unit, "Environment={}", quoted(&format!("{name}={value}"), false));
        }
        if let Some(user) = &item.user {
            let _ = writeln!(unit, "User={user}");
        }
        if item.stdin.is_some() {
            let _ = writeln!(unit, "StandardInput=file:{}", self.units.stdin(number));
        }
        let argv: Vec<String> = item.argv.iter().map(|word| quoted(word, true)).collect();
        let _ = writeln!(unit, "ExecStart={}", argv.join(" "));
        unit
    }

    async fn write(&self, path: &str, contents: Vec<u8>, mode: &str) -> Result<(), Problem> {
        let to = format!("of={path}");
        self.units.command("dd", &[&to, "oflag=nofollow", "bs=65536", "status=none"], Some(contents)).await?;
        self.units.command("chmod", &["--", mode, path], None).await.map(drop)
    }
}

/// The target has undone the change, or is at it.
pub fn cut() -> Problem {
    let message =
        "the way to the target was cut and didn't come back in time, so the target has undone the change";
    Problem::new("CONNECTION_CUT", Category::Network, message)
}

/// The undo of the latest step first, then what comes after every undo.
async fn items(execution: &Execution) -> Result<Vec<Item>, Problem> {
    let plan = &execution.plan;
    let mut items = Vec::new();
    for (step, prepared) in plan.steps.iter().enumerate().rev() {
        if let Doing::File(site, _) = &prepared.doing {
            let action = &plan.change.steps[step].action;
            let privilege = action.path().map_or(Privilege::Root, |at| at.privilege.clone());
            for (count, (mut argv, needs)) in site.undo_by_target(action).into_iter().enumerate() {
                argv[0] = execution.target.program(&argv[0]).await?;
                // The first one is the undo itself, the others remove what was kept for it.
                let line = if count == 0 { execution.title(step) } else { String::new() };
                let user = user(&privilege);
                items.push(Item { step: Some(step), argv, env: Vec::new(), stdin: None, user, needs, line });
            }
        }
        for command in &prepared.undo {
            items.push(item(execution, Some(step), command).await?);
        }
    }
    for command in &plan.after_undo {
        items.push(item(execution, None, command).await?);
    }
    Ok(items)
}

async fn item(execution: &Execution, step: Option<usize>, allowed: &Allowed) -> Result<Item, Problem> {
    if allowed.has_secrets() {
        // Units can be read by everybody.
        let message = "a guard's undo holds a secret, which would lie on the target for everybody to read";
        return Err(Problem::new("GUARD_UNAVAILABLE", Category::State, message));
    }
    let command = &allowed.command;
    let mut argv = vec![execution.target.program(&command.program).await?];
    argv.extend(command.args.iter().cloned());
    Ok(Item {
        step,
        argv,
        env: command.env.clone(),
        stdin: command.stdin.clone(),
        user: user(&command.privilege),
        needs: None,
        line: allowed.line(),
    })
}

/// As root where no other account is named: the caller's commands reach no further than root's.
fn user(privilege: &Privilege) -> Option<String> {
    match privilege {
        Privilege::User(name) => Some(name.clone()),
        Privilege::Caller if !rustix::process::geteuid().is_root() => {
            Some(rustix::process::geteuid().as_raw().to_string())
        }
        _ => None,
    }
}

/// One word of a command line, systemd.syntax(7) and systemd.service(5): nothing in it is expanded.
fn quoted(word: &str, is_argument: bool) -> String {
    let mut quoted = "\"".to_owned();
    for character in word.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '%' => quoted.push_str("%%"),
            '$' if is_argument => quoted.push_str("$$"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A path that isn't split at blanks.
fn escaped(path: &str) -> String {
    path.replace('%', "%%")
}

/// What leads to this machine from elsewhere: the interfaces that are up with their addresses, and the default routes.
/// Whoever is on the machine itself has no connection of his own to try.
#[derive(Debug, PartialEq)]
struct Network {
    addresses: BTreeSet<(String, String)>,
    routes: BTreeSet<(String, String)>,
}

impl Network {
    async fn of(target: &Target) -> Result<Self, Problem> {
        let commands =
            [["-json", "address", "show", "up"].as_slice(), &["-json", "route", "show", "default"]]
                .map(|args| own("ip", args, None, Privilege::Caller));
        let mut outputs = target.run_all(&commands).await.into_iter();
        let mut next = || -> Result<Value, Problem> {
            let unknown = |why: String| {
                Problem::new(
                    "GUARD_UNAVAILABLE",
                    Category::State,
                    format!("the way to this machine can't be looked at: {why}"),
                )
            };
            let output = outputs.next().ok_or_else(|| unknown("no answer".into()))??;
            if output.exit_code != 0 {
                return Err(unknown(String::from_utf8_lossy(&output.stderr).into_owned()));
            }
            if output.stdout.trim_ascii().is_empty() {
                return Ok(Value::Array(Vec::new()));
            }
            serde_json::from_slice(&output.stdout).map_err(|error| unknown(error.to_string()))
        };
        Ok(Self::read(&next()?, &next()?))
    }

    fn read(addresses: &Value, routes: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut all = BTreeSet::new();
        for interface in array(addresses) {
            let flags = array(&interface["flags"]);
            let has = |flag: &str| flags.iter().any(|known| known == flag);
            if has("LOOPBACK") || !has("UP") || !has("LOWER_UP") {
                continue;
            }
            for address in
                array(&interface["addr_info"]).iter().filter(|address| address["scope"] == "global")
            {
                all.insert((text(&interface["ifname"]), text(&address["local"])));
            }
        }
        let routes =
            array(routes).iter().map(|route| (text(&route["gateway"]), text(&route["dev"]))).collect();
        Self { addresses: all, routes }
    }

    async fn still_holds(&self, target: &Target) -> bool {
        match Self::of(target).await {
            Ok(now) => self.addresses.is_subset(&now.addresses) && self.routes.is_subset(&now.routes),
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_word_means_itself_to_the_service_manager() {
        for (word, expected) in [
            ("plain", r#""plain""#),
            ("a b", r#""a b""#),
            ("50%", r#""50%%""#),
            ("$HOME", r#""$$HOME""#),
            (r#"a"b\c"#, r#""a\"b\\c""#),
            ("a\nb", r#""a\nb""#),
            ("", r#""""#),
        ] {
            assert_eq!(quoted(word, true), expected);
        }
        assert_eq!(quoted("A=$x", false), r#""A=$x""#);
    }

    #[test]
    fn the_way_holds_as_long_as_every_address_and_default_route_is_there() {
        // As iproute2 6.1 prints them.
        let addresses = |flags: Value, local: &str| {
            json!([
                {"ifname": "lo", "flags": ["LOOPBACK", "UP", "LOWER_UP"],
                 "addr_info": [{"family": "inet", "local": "127.0.0.1", "scope": "host"}]},
                {"ifname": "eth0", "flags": flags, "operstate": "UP",
                 "addr_info": [{"family": "inet", "local": local, "scope": "global"},
                               {"family": "inet6", "local": "fe80::1", "scope": "link"}]},
            ])
        };
        let routes = json!([{"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "flags": []}]);
        let up = json!(["BROADCAST", "MULTICAST", "UP", "LOWER_UP"]);
        let before = Network::read(&addresses(up.clone(), "192.0.2.7"), &routes);
        assert_eq!(before.addresses, BTreeSet::from([("eth0".to_owned(), "192.0.2.7".to_owned())]));
        for (now, holds) in [
            (Network::read(&addresses(up.clone(), "192.0.2.7"), &routes), true),
            (Network::read(&addresses(up.clone(), "192.0.2.8"), &routes), false),
            (Network::read(&addresses(json!(["BROADCAST"]), "192.0.2.7"), &routes), false),
            (Network::read(&addresses(json!(["UP"]), "192.0.2.7"), &routes), false),
            (Network::read(&addresses(up.clone(), "192.0.2.7"), &json!([])), false),
        ] {
            let kept = before.addresses.is_subset(&now.addresses) && before.routes.is_subset(&now.routes);
            assert_eq!(kept, holds, "{now:?}");
        }
    }
}
