//! The host with the services, and the checks on it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use linux_sysadmin_tests::Host;

use super::profile::{Backup, Check, Log, Place, Port, Profile, Said, Unit, Verdict, is_match};

/// The seconds after which a command that looks is ended. No such command takes this long.
const LONG: &str = "300";
/// The time after which the test stops waiting. Nothing that comes takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Prints the kind of the first file that each path matches.
const PATHS: &str = r#"
shopt -s globstar nullglob dotglob
IFS=
for pattern; do
    found=nothing
    for path in $pattern; do
        if [ -d "$path" ]; then found=directory; elif [ -e "$path" ] || [ -L "$path" ]; then found=file; else continue; fi
        break
    done
    echo "$found"
done"#;

/// Units that D-Bus starts when a program asks them something, and that end after a while.
const BY_THEMSELVES: [&str; 3] =
    ["systemd-hostnamed.service", "systemd-localed.service", "systemd-timedated.service"];

/// The result of one check. The error says what is there instead.
pub type Outcome = Result<(), String>;

/// The host with the packages of most services.
pub struct Stocked(pub Host);

impl Stocked {
    /// Runs a command; gives its exit code and output.
    pub fn said(&self, argv: &[&str]) -> Said {
        let output = self.command(argv);
        let text = [&output.stdout, &output.stderr]
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .concat();
        Said { exit: output.status.code(), output: text }
    }

    fn command(&self, argv: &[&str]) -> Output {
        let mut command: Command = self.0.command(&[&["timeout", LONG], argv].concat());
        command.output().expect("xtask runs")
    }

    /// The standard output of a command, whatever its exit code.
    fn told(&self, argv: &[&str]) -> String {
        String::from_utf8_lossy(&self.command(argv).stdout).into_owned()
    }

    /// Runs commands one after the other.
    pub fn all(&self, commands: &[Vec<String>]) {
        for argv in commands {
            let said = self.said(&argv.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(!matches!(said.exit, None | Some(124..=127)), "{argv:?}: {}", said.output);
        }
    }

    /// The packages that are installed.
    pub fn installed(&self) -> BTreeSet<String> {
        let listed =
            self.0.run(&["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n"]);
        let installed = listed.lines().filter_map(|line| line.strip_suffix(" installed"));
        installed.map(str::to_owned).collect()
    }

    /// The active units, without those that start and stop by themselves.
    pub fn active(&self) -> BTreeSet<String> {
        let types = "--type=service,socket,timer,path,target";
        let listed =
            self.0.run(&["systemctl", "list-units", types, "--state=active", "--plain", "--no-legend"]);
        let names = listed.lines().filter_map(|line| line.split_whitespace().next());
        names
            .filter(|name| {
                !name.starts_with("user") && !name.starts_with("run-u") && !BY_THEMSELVES.contains(name)
            })
            .map(str::to_owned)
            .collect()
    }

    /// A property of a unit.
    pub fn property(&self, unit: &str, name: &str) -> String {
        self.told(&["systemctl", "show", "--value", "--property", name, unit]).trim().to_owned()
    }

    /// Starts a unit, and waits until it has started.
    pub fn start(&self, unit: &str) -> Outcome {
        let started = self.said(&["systemctl", "start", unit]);
        let state = self.property(unit, "ActiveState");
        if started.exit == Some(0) && state == "active" {
            return Ok(());
        }
        let why = ["ConditionResult", "AssertResult", "Result"].map(|name| (name, self.property(unit, name)));
        let unmet = self.told(&["systemctl", "status", "--lines=0", "--no-pager", unit]);
        let unmet: Vec<_> =
            unmet.lines().filter(|line| line.contains(" not met") || line.contains("─ ")).collect();
        let journal = self.told(&["journalctl", "--unit", unit, "--lines=15", "--no-pager", "--output=cat"]);
        Err(format!("{}{state} {why:?} {unmet:?}\n{journal}", started.output))
    }

    /// Stops units, and the units that would start them again.
    pub fn stop(&self, units: &[String]) {
        let mut all: BTreeSet<String> = units.iter().cloned().collect();
        for unit in units {
            all.extend(self.property(unit, "TriggeredBy").split_whitespace().map(str::to_owned));
        }
        let names: Vec<&str> = all.iter().map(String::as_str).collect();
        if !names.is_empty() {
            let stopped = self.said(&[&["systemctl", "stop"], &names[..]].concat());
            assert_eq!(stopped.exit, Some(0), "{names:?} can't be stopped: {}", stopped.output);
        }
    }

    /// Checks that the unit exists, that its aliases lead to it, and that it can be reloaded where the profile says so.
    pub fn unit(&self, unit: &Unit) -> Outcome {
        let name = unit.name.as_str();
        let text = self.said(&["systemctl", "cat", name]);
        if text.exit != Some(0) {
            return Err(text.output);
        }
        for alias in &unit.aliases {
            // While the unit is disabled, only its own [Install] knows the alias.
            let named = text.output.lines().filter_map(|line| line.strip_prefix("Alias="));
            let named = named.flat_map(str::split_whitespace).any(|one| one == alias);
            let leads = self.property(alias, "Id");
            if leads != name && !named {
                return Err(format!("{alias} leads to {leads}"));
            }
        }
        if !unit.is_template() && name.ends_with(".service") {
            let can = self.property(name, "CanReload");
            // Only the profile's main unit has to say that it can be reloaded.
            if unit.reload != (can == "yes") && (unit.reload || unit.main) {
                return Err(format!("the profile says `reload: {}`, and CanReload is {can}", unit.reload));
            }
        }
        Ok(())
    }

    /// The kinds of the files at these paths.
    fn places(&self, paths: &[&str]) -> Vec<String> {
        let found = self.0.run(&[&["bash", "-c", PATHS, "paths"], paths].concat());
        found.lines().map(str::to_owned).collect()
    }

    /// Checks that the file exists, and that it is a directory where its path says so.
    pub fn place(&self, path: &str, optional: bool) -> Outcome {
        match (self.places(&[path])[0].as_str(), path.ends_with('/')) {
            ("nothing", true) if self.places(&[path.trim_end_matches('/')])[0] == "file" => {
                Err("it is no directory".to_owned())
            }
            ("nothing", _) if optional => Ok(()),
            ("nothing", _) => Err("there is no such".to_owned()),
            ("directory", false) if !path.contains('*') => {
                Err("it is a directory; its path has no `/`".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Checks that a command's program exists, unless the package that it needs isn't installed.
    pub fn program(
        &self,
        argv: &[String],
        needs: &[String],
        installed: &BTreeSet<String>,
    ) -> Option<Outcome> {
        let there = self.said(&["sh", "-c", "command -v \"$1\"", "sh", &argv[0]]).exit == Some(0);
        match there {
            true => Some(Ok(())),
            false if needs.iter().any(|package| !installed.contains(package)) => None,
            false => Some(Err(format!("there is no program {} (needs: {needs:?})", argv[0]))),
        }
    }

    /// Runs a check; gives its result and the command's output.
    pub fn check(&self, check: &Check) -> (Verdict, Said) {
        let argv: Vec<&str> = check.argv.iter().map(String::as_str).collect();
        let said = self.said(&argv);
        (check.verdict(&said), said)
    }

    /// Checks that the validator accepts a copy of the configuration, and refuses a broken one.
    pub fn candidate(&self, check: &Check, argv: &[String], main: &str) -> Outcome {
        let first = self.told(&[
            "bash",
            "-c",
            "IFS=; for file in $1; do [ -f \"$file\" ] && echo \"$file\" && break; done",
            "bash",
            main,
        ]);
        let (file, copy) = (first.trim(), format!("{}.candidate", first.trim()));
        let argv: Vec<&str> =
            argv.iter().map(|word| if word == "{}" { copy.as_str() } else { word.as_str() }).collect();
        self.0.run(&["cp", "--preserve", file, &copy]);
        let whole = self.said(&argv);
        self.0.run(&["sh", "-c", "printf '\\n)}lab({\\n' >> \"$1\"", "sh", &copy]);
        let broken = self.said(&argv);
        self.0.run(&["rm", &copy]);
        match (check.verdict(&whole), check.verdict(&broken)) {
            (Verdict::Met, Verdict::Unmet) => Ok(()),
            (Verdict::Met, _) => Err(format!("a broken copy is taken: {}", broken.output)),
            _ => Err(format!("a copy of {file} isn't taken: {:?}\n{}", whole.exit, whole.output)),
        }
    }

    /// Checks that the log has lines in the form that the profile states.
    pub fn log(&self, log: &Log) -> Outcome {
        let by = |option: &str, value: &str| {
            let told = self.told(&["journalctl", "--quiet", "--no-pager", "--lines=1", option, value]);
            if told.trim().is_empty() { Err("nothing is in the journal".to_owned()) } else { Ok(()) }
        };
        if let Some(unit) = &log.journal {
            return by("--unit", &unit.replace("@.", "@*."));
        }
        if let Some(identifier) = &log.identifier {
            return by("--identifier", identifier);
        }
        let path = log.path.as_deref().expect("one of three");
        self.place(path, log.optional)?;
        let Some(line) = &log.line else { return Ok(()) };
        let tail = self.told(&["bash", "-c", "IFS=; tail -q -n 200 -- $1", "bash", path]);
        let fits = tail.trim().is_empty() || tail.lines().any(|text| is_match(line, text));
        if fits { Ok(()) } else { Err(format!("no line has the form:\n{tail}")) }
    }

    /// Checks that a process of the profile listens on the port, only on this machine where the profile says so.
    pub fn port(&self, port: &Port, profile: &Profile) -> Outcome {
        let option = if port.protocol == "tcp" { "-Hltnp" } else { "-Hlunp" };
        let listed = self.told(&["ss", option]);
        let local = |line: &&str| {
            let number =
                line.split_whitespace().nth(3).and_then(|local| local.rsplit_once(':')?.1.parse().ok());
            number.is_some_and(|number: u16| (port.port..=port.to.unwrap_or(port.port)).contains(&number))
        };
        let listening: Vec<&str> = listed.lines().filter(local).collect();
        if listening.is_empty() {
            return Err(format!("nobody listens:\n{listed}"));
        }
        // The kernel's own sockets have no process, and systemd holds those of socket units.
        let theirs = |line: &&str| {
            let own =
                |process: &str| line.contains(&format!("(\"{process}\",")) || line.contains("(\"systemd\",");
            !line.contains("users:") || profile.processes.iter().any(|process| own(&process.name))
        };
        if !listening.iter().any(theirs) {
            return Err(format!("no process of the profile listens:\n{}", listening.join("\n")));
        }
        let open = |line: &&&str| {
            let address = line.split_whitespace().nth(3).unwrap_or_default();
            theirs(line) && !["127.", "[::1]", "[::ffff:127."].iter().any(|own| address.starts_with(own))
        };
        match listening.iter().find(open) {
            Some(line) if port.scope == "local" => {
                Err(format!("it is for this machine, and open to others:\n{line}"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that one of the profile's processes runs as the account that the profile states.
    pub fn processes(&self, profile: &Profile) -> Outcome {
        let listed = self.0.run(&["ps", "-eo", "user:32=,comm="]);
        let running: BTreeSet<(String, String)> = listed
            .lines()
            .filter_map(|line| line.trim().split_once(char::is_whitespace))
            .map(|(user, name)| (name.trim().to_owned(), user.to_owned()))
            .collect();
        let names: BTreeSet<&str> = running.iter().map(|(name, _)| name.as_str()).collect();
        let there: Vec<_> =
            profile.processes.iter().filter(|one| names.contains(one.name.as_str())).collect();
        if there.is_empty() {
            return Err(format!("none of them is among {names:?}"));
        }
        for process in there {
            let Some(user) = &process.user else { continue };
            if !running.contains(&(process.name.clone(), user.clone())) {
                let users: Vec<_> = running.iter().filter(|(name, _)| *name == process.name).collect();
                return Err(format!("{} doesn't run as {user}: {users:?}", process.name));
            }
        }
        Ok(())
    }

    /// Checks a path of the profile.
    pub fn of_place(&self, place: &Place) -> Outcome {
        self.place(&place.path, place.optional)
    }

    /// Checks that the files of a backup exist.
    pub fn backup(&self, backup: &Backup) -> Outcome {
        backup.path.as_ref().map_or(Ok(()), |path| self.place(path, backup.optional))
    }

    /// Puts files on the host; gives the former contents.
    pub fn put(&self, files: &BTreeMap<String, String>) -> BTreeMap<String, Option<String>> {
        let mut before = BTreeMap::new();
        for (path, text) in files {
            let there = self.0.holds(&format!("test -e '{path}'"));
            before.insert(path.clone(), there.then(|| self.0.run(&["cat", path])));
            self.write(path, text);
        }
        before
    }

    /// Puts the former contents back.
    pub fn put_back(&self, files: &BTreeMap<String, Option<String>>) {
        for (path, text) in files {
            match text {
                Some(text) => self.write(path, text),
                None => drop(self.0.run(&["rm", path])),
            }
        }
    }

    /// Writes a file. A new file belongs to root, and a file that exists keeps its owner and mode.
    fn write(&self, path: &str, text: &str) {
        let script = r#"test -e "$1" || { mkdir -p "$(dirname "$1")" && install -m 644 /dev/null "$1"; } && printf %s "$2" > "$1""#;
        self.0.run(&["sh", "-c", script, "sh", path, text]);
    }
}

/// Repeats these checks until each succeeds or the time is over; gives their results.
pub fn until_held<'a>(
    items: Vec<(String, Box<dyn Fn() -> Outcome + 'a>)>,
    cannot: impl Fn(&str) -> bool,
) -> Vec<(String, Outcome)> {
    let begun = Instant::now();
    let (never, mut waiting): (Vec<_>, Vec<_>) = items.into_iter().partition(|(item, _)| cannot(item));
    let mut outcomes = Vec::new();
    while !waiting.is_empty() {
        let mut still = Vec::new();
        for (item, look) in waiting {
            match look() {
                Err(_) if begun.elapsed() < PATIENCE => still.push((item, look)),
                outcome => outcomes.push((item, outcome)),
            }
        }
        waiting = still;
    }
    // These come last, and once, since they can never succeed.
    outcomes.extend(never.into_iter().map(|(item, look)| {
        let outcome = look();
        (item, outcome)
    }));
    outcomes
}
