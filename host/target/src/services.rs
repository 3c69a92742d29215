//! The services of a target: the units that systemd knows and their states, and those of the given files that exist. A
//! file shows that something is configured.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use host_base::problem::Problem;
use host_base::{Command, Output};

/// The time limit. systemd may be busy.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The files to look for. They are read at the first question, because knowing them takes reading files.
#[derive(Clone)]
pub struct ServiceFiles(Arc<dyn Fn() -> Vec<String> + Send + Sync>);

impl ServiceFiles {
    /// Makes the list from a function, which is called when it is needed.
    pub fn new(paths: impl Fn() -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(paths))
    }

    pub(super) fn paths(&self) -> Vec<String> {
        (self.0)()
    }
}

impl Default for ServiceFiles {
    fn default() -> Self {
        Self::new(Vec::new)
    }
}

impl fmt::Debug for ServiceFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceFiles")
    }
}

/// The state of a target's services.
#[derive(Clone, Debug, Default)]
pub struct Services {
    /// The units by name. None where systemd doesn't tell.
    pub units: Option<BTreeMap<String, UnitState>>,
    there: BTreeSet<String>,
    /// The files that this account may not see.
    hidden: BTreeSet<String>,
}

/// A unit's state as systemd reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitState {
    load: String,
    active: String,
    sub: String,
}

impl UnitState {
    /// Makes a state from the words of `systemctl list-units`.
    pub fn new(load: &str, active: &str, sub: &str) -> Self {
        Self { load: load.to_owned(), active: active.to_owned(), sub: sub.to_owned() }
    }

    /// Says whether the unit exists, and isn't only named by other units.
    pub fn is_loaded(&self) -> bool {
        self.load != "not-found"
    }

    /// Says whether the unit does its work.
    pub fn is_active(&self) -> bool {
        matches!(self.active.as_str(), "active" | "reloading")
    }

    /// Says whether the unit has failed, or is restarted again and again.
    pub fn has_failed(&self) -> bool {
        self.active == "failed" || self.sub == "auto-restart"
    }
}

impl Services {
    /// Reads the answers to [`units_question`] and [`paths_question`].
    pub(super) fn read(units: Result<Output, Problem>, paths: Result<Output, Problem>) -> Self {
        let units = units.ok().filter(|output| output.exit_code == 0);
        let mut services = Self {
            units: units.map(|output| unit_states(&String::from_utf8_lossy(&output.stdout))),
            ..Self::default()
        };
        if let Ok(output) = paths {
            let (stdout, stderr) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            services.there =
                stdout.lines().filter_map(|line| Some(line.rsplit_once(' ')?.1.to_owned())).collect();
            services.hidden = stderr.lines().filter_map(hidden).map(str::to_owned).collect();
        }
        services
    }

    /// Makes the services of this machine.
    pub(super) fn here(units: Result<Output, Problem>, paths: Vec<String>) -> Self {
        let mut services = Self::read(units, Err(host_base::program::not_found("ls")));
        for path in paths {
            match std::fs::metadata(&path) {
                Ok(_) => drop(services.there.insert(path)),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    services.hidden.insert(path);
                }
                Err(_) => {}
            }
        }
        services
    }

    /// Makes the services of a machine whose units have these states.
    #[cfg(any(test, feature = "test-support"))]
    pub fn of_a_test(units: impl IntoIterator<Item = (String, UnitState)>) -> Self {
        Self { units: Some(units.into_iter().collect()), ..Self::default() }
    }

    /// Says whether the file exists. None where this account may not see it.
    pub fn is_there(&self, path: &str) -> Option<bool> {
        (!self.hidden.contains(path)).then(|| self.there.contains(path))
    }
}

/// Reads the path in a line such as `ls: cannot access '/etc/x/y': Permission denied`. busybox leaves out the quotes.
fn hidden(line: &str) -> Option<&str> {
    let (path, reason) = line.rsplit_once(": ")?;
    let path = path.rsplit_once(' ').map_or(path, |(_, path)| path).trim_matches('\'');
    (reason == "Permission denied").then_some(path.strip_prefix("ls:").unwrap_or(path).trim())
}

/// Reads lines such as `nginx.service loaded active running A high performance web server…`. A failed unit has a mark
/// in front.
fn unit_states(stdout: &str) -> BTreeMap<String, UnitState> {
    let state = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip_while(|word| !word.contains('.'));
        Some((words.next()?.to_owned(), UnitState::new(words.next()?, words.next()?, words.next()?)))
    };
    stdout.lines().filter_map(state).collect()
}

pub(super) fn units_question() -> Command {
    let args = ["list-units", "--all", "--plain", "--no-legend", "--no-pager", "--full"];
    command("systemctl", args.into_iter().chain(["--type=service,socket,timer,path,mount"]))
}

pub(super) fn paths_question(paths: &[String]) -> Command {
    command("ls", ["-l", "-n", "-L", "-d", "--"].into_iter().chain(paths.iter().map(String::as_str)))
}

fn command<'a>(program: &str, args: impl IntoIterator<Item = &'a str>) -> Command {
    Command::new(program, args, TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of `systemctl list-units --all --plain --no-legend`, systemd 252.
    const UNITS: &str = "\
  boot.automount                        not-found inactive dead            boot.automount
  nginx.service                         loaded    active   running         A high performance web server
● fail2ban.service                      loaded    failed   failed          Fail2Ban Service
  flapping.service                      loaded    activating auto-restart  flaps
  ssh@3-10.0.0.1:22-10.0.0.2:5.service  loaded    active   running         OpenBSD Secure Shell server
";

    #[test]
    fn units_are_read_with_their_states() {
        let units = unit_states(UNITS);
        assert_eq!(units.len(), 5);
        assert!(units["nginx.service"].is_active() && !units["nginx.service"].has_failed());
        assert!(units["fail2ban.service"].has_failed() && units["flapping.service"].has_failed());
        assert!(!units["boot.automount"].is_loaded());
        assert!(unit_states("").is_empty() && unit_states("Failed to connect to bus\n").is_empty());
    }

    #[test]
    fn what_nobody_may_see_is_neither_there_nor_missing() {
        let output = |stdout: &str, stderr: &str| Output {
            exit_code: 2,
            stdout: stdout.into(),
            stderr: stderr.into(),
            ..Output::default()
        };
        let services = Services::read(
            Ok(output(UNITS, "")),
            Ok(output(
                "-rw-r--r-- 1 0 0 1446 Mar  1 10:00 /etc/nginx/nginx.conf\n",
                "ls: cannot access '/etc/x/y.conf': Permission denied\nls: cannot access '/etc/z': No such file or directory\n\
                 ls: /etc/busy: Permission denied\n",
            )),
        );
        assert_eq!(services.units, None, "it didn't succeed");
        assert_eq!(services.is_there("/etc/nginx/nginx.conf"), Some(true));
        assert_eq!(services.is_there("/etc/z"), Some(false));
        assert_eq!(services.is_there("/etc/x/y.conf"), None);
        assert_eq!(services.is_there("/etc/busy"), None);
    }
}
