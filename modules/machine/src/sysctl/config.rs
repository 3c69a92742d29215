//! The values that systemd sets at the start, by the rules of sysctl.d(5).

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{Category, prelude::*};

use super::{key::Key, value::words};

/// The directories, the first one counting most.
pub(crate) const DIRECTORIES: [&str; 4] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"];
/// The file that systemd reads only through a link.
pub(crate) const OLD: &str = "/etc/sysctl.conf";
/// The file with the values that `sysctl_set` keeps.
pub(crate) const OURS: &str = "/etc/sysctl.d/90-linux-sysadmin.conf";
const HEADER: &str = "# Values that sysctl_set of linux-sysadmin keeps for the next start.\n";

/// A value that a file sets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    /// The file and the line.
    pub(crate) at: String,
    pub(crate) value: String,
}

/// A line of a file.
struct Line {
    key: Key,
    /// None where the line only excludes the key from globs.
    value: Option<String>,
    at: String,
}

/// The files, by name in the order in which they are applied.
#[derive(Clone, Default)]
pub(crate) struct Config {
    files: BTreeMap<String, (String, String)>,
    /// The contents of `/etc/sysctl.conf`, where no link leads there.
    old: Option<String>,
    /// Sentences on the files that can't be read.
    pub(crate) unreadable: Vec<String>,
}

impl Config {
    /// Reads the files, together with other files of the target.
    pub(crate) fn read(cx: &Context, others: &[String]) -> (Self, Vec<Result<String>>) {
        let mut chosen = BTreeMap::new();
        for (directory, names) in DIRECTORIES.iter().zip(cx.list_all(&DIRECTORIES)) {
            for name in names.unwrap_or_default().into_iter().filter(|name| name.ends_with(".conf")) {
                chosen.entry(name).or_insert_with_key(|name| format!("{directory}/{name}"));
            }
        }
        let paths: Vec<_> =
            chosen.values().cloned().chain([OLD.to_owned()]).chain(others.iter().cloned()).collect();
        let mut texts = cx.read_all(&paths);
        let others = texts.split_off(chosen.len() + 1);
        let old = texts.pop().and_then(Result::ok);
        let mut config = Self::default();
        for ((name, path), text) in chosen.into_iter().zip(texts) {
            match text {
                Ok(text) => drop(config.files.insert(name, (path, text))),
                Err(problem) if problem.category == Category::NotFound => {}
                // A link to /dev/null, which is how sysctl.d(5) masks a file of a package.
                Err(problem) if problem.code == "NOT_A_REGULAR_FILE" => {}
                Err(problem) => {
                    let why = problem.message.replace('\n', "; ");
                    config.unreadable.push(format!("{path} can't be read ({why})"));
                }
            }
        }
        let is_linked = |old: &String| config.files.values().any(|(_, text)| text == old);
        config.old = old.filter(|old| !is_linked(old));
        (config, others)
    }

    fn lines(&self) -> impl Iterator<Item = Line> {
        self.files.values().flat_map(|(path, text)| lines(path, text))
    }

    /// The lines that set a key at the start, the last one winning. Lines that name the key win over globs. systemd keeps one
    /// value of each glob, and keeps it in its place where a later line says the same.
    pub(crate) fn settings(&self, key: &Key) -> Vec<Setting> {
        let mut globs: Vec<(Key, Setting)> = Vec::new();
        let mut named = Vec::new();
        let mut is_excluded = false;
        for line in self.lines() {
            let setting = |value| Setting { at: line.at.clone(), value };
            match (line.key == *key, line.value) {
                (true, None) => {
                    is_excluded = true;
                    named.clear();
                }
                (true, Some(value)) => named.push(setting(value)),
                (false, Some(value)) if line.key.is_glob() && line.key.covers(key) => {
                    let said = globs.iter().rposition(|(known, _)| *known == line.key);
                    let same = said.filter(|at| globs[*at].1.value == value);
                    globs.insert(same.unwrap_or(globs.len()), (line.key, setting(value)));
                }
                // An exclusion that is a glob takes back that glob, and no other.
                (false, None) => globs.retain(|(known, _)| *known != line.key),
                _ => {}
            }
        }
        if is_excluded && named.is_empty() {
            globs.clear();
        }
        globs.into_iter().map(|(_, setting)| setting).chain(named).collect()
    }

    /// The place where `/etc/sysctl.conf` sets a key that systemd doesn't read there.
    pub(crate) fn not_applied(&self, key: &Key) -> Option<Setting> {
        let lines = self.old.iter().flat_map(|text| lines(OLD, text)).filter(|line| line.key == *key);
        lines.filter_map(|line| Some(Setting { at: line.at, value: line.value? })).next_back()
    }

    /// The values of our own file.
    pub(crate) fn ours(&self) -> BTreeMap<Key, String> {
        let text =
            self.files.values().filter(|(path, _)| path == OURS).flat_map(|(path, text)| lines(path, text));
        text.filter_map(|line| Some((line.key, line.value?))).collect()
    }

    /// The text of our own file with changed values, `None` for a key that it sets no longer. Every other line stays as it is:
    /// comments, globs and exclusions are an administrator's.
    pub(crate) fn ours_with(&self, changes: &BTreeMap<Key, Option<String>>) -> String {
        let former = self.files.values().find(|(path, _)| path == OURS).map(|(_, text)| text.as_str());
        let former = former.filter(|text| !text.is_empty()).unwrap_or(HEADER);
        let mut waiting = changes.clone();
        let mut text = String::new();
        for line in physical_lines(former).lines() {
            let key = assignment(line).filter(|(_, value)| value.is_some()).map(|(key, _)| key);
            match key.filter(|key| changes.contains_key(key)) {
                // The first line of a key gets the new value. Further ones would win over it.
                Some(key) => text.extend(waiting.remove(&key).flatten().map(|value| own_line(&key, &value))),
                None => text.extend([line, "\n"]),
            }
        }
        text.extend(waiting.into_iter().filter_map(|(key, value)| Some(own_line(&key, &value?))));
        text
    }

    /// These files with other contents of ours.
    pub(crate) fn with_ours(&self, text: &str) -> Self {
        let mut config = self.clone();
        let name = OURS.rsplit('/').next().unwrap_or_default();
        config.files.insert(name.to_owned(), (OURS.to_owned(), text.to_owned()));
        config
    }
}

fn own_line(key: &Key, value: &str) -> String {
    format!("{} = {value}\n", key.name())
}

fn lines(path: &str, text: &str) -> Vec<Line> {
    let text = physical_lines(text);
    let numbered = (1..).zip(text.lines());
    let found = numbered.filter_map(|(number, line)| {
        let (key, value) = assignment(line)?;
        Some(Line { key, value, at: format!("{path}:{number}") })
    });
    found.collect()
}

/// The text with a line feed at the end of each line. systemd ends a line at a carriage return as well.
fn physical_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// The key of a line with its value, or without one where the line only excludes the key from globs.
fn assignment(line: &str) -> Option<(Key, Option<String>)> {
    let line = line.trim();
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name.strip_prefix('-').unwrap_or(name), Some(words(value))),
        None => (line.strip_prefix('-')?, None),
    };
    let name = name.trim();
    let is_comment = line.starts_with(['#', ';']) || name.is_empty();
    (!is_comment).then(|| (Key::read(name), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(files: &[(&str, &str)]) -> Config {
        let files = files.iter().map(|(path, text)| {
            let name = path.rsplit('/').next().unwrap_or_default();
            (name.to_owned(), ((*path).to_owned(), (*text).to_owned()))
        });
        Config { files: files.collect(), ..Config::default() }
    }

    fn said(config: &Config, key: &str) -> Vec<String> {
        config
            .settings(&Key::read(key))
            .into_iter()
            .map(|setting| format!("{} {}", setting.at, setting.value))
            .collect()
    }

    #[test]
    fn the_last_line_wins_as_with_systemd_itself() {
        // `SYSTEMD_LOG_LEVEL=debug /lib/systemd/systemd-sysctl` of systemd 252 sets these values by these files.
        let config = config(&[
            ("/etc/sysctl.d/10.conf", "net.ipv4.tcp_keepalive_intvl=70\n"),
            (
                "/etc/sysctl.d/20.conf",
                "net.ipv4.tcp_keepalive_int*=50\nnet.ipv4.tcp_keepalive_prob*=5\nnet/ipv4/tcp_keepalive_tim? = 1000\n",
            ),
            (
                "/etc/sysctl.d/30.conf",
                "-net.ipv4.tcp_keepalive_probes\n# nothing\nnet.ipv4.tcp_retries2=9\rnet.ipv4.tcp_retries1=4\n",
            ),
        ]);
        for (key, value) in [
            ("net.ipv4.tcp_keepalive_intvl", Some("70")),
            ("net.ipv4.tcp_keepalive_probes", None),
            ("net.ipv4.tcp_keepalive_time", Some("1000")),
            ("net.ipv4.tcp_retries2", Some("9")),
            ("net.ipv4.tcp_retries1", Some("4")),
        ] {
            let winner = config.settings(&Key::read(key)).pop().map(|setting| setting.value);
            assert_eq!(winner.as_deref(), value, "{key}");
        }
    }

    #[test]
    fn a_glob_that_says_the_same_again_stays_in_its_place() {
        // parse_file() of systemd's sysctl.c passes over the third line.
        let config =
            config(&[("/etc/sysctl.d/10.conf", "vm.dirty_r*=10\nvm.dirty_ra*=20\nvm.dirty_r*=10\n")]);
        let lines =
            ["/etc/sysctl.d/10.conf:3 10", "/etc/sysctl.d/10.conf:1 10", "/etc/sysctl.d/10.conf:2 20"];
        assert_eq!(said(&config, "vm.dirty_ratio"), lines);
    }

    #[test]
    fn our_file_keeps_the_lines_that_are_not_changed() {
        let former = "# ticket 42\n-net.ipv4.tcp_retries2\nvm.dirty_r* = 9\n\n-vm.swappiness=5\r# x\nvm.dirty_ratio=1\n\
                      vm.swappiness = 6\nfs.file-max=7";
        let changes =
            [("vm.swappiness", Some("10")), ("fs.file-max", None), ("kernel.pid_max", Some("70000"))];
        let changes =
            changes.map(|(key, value)| (Key::read(key), value.map(str::to_owned))).into_iter().collect();
        assert_eq!(
            config(&[(OURS, former)]).ours_with(&changes),
            "# ticket 42\n-net.ipv4.tcp_retries2\nvm.dirty_r* = 9\n\nvm.swappiness = 10\n# x\nvm.dirty_ratio=1\n\
             kernel.pid_max = 70000\n"
        );
        let new = format!("{HEADER}kernel.pid_max = 70000\nvm.swappiness = 10\n");
        assert_eq!(config(&[]).ours_with(&changes), new);
    }

    #[test]
    fn an_exclusion_of_a_glob_takes_back_that_glob_alone() {
        let config = config(&[(
            "/etc/sysctl.d/10.conf",
            "vm.dirty_r*=10\nvm.dirty_ra*=20\n-vm.dirty_ra*\n-vm.dirty_*\nvm.swap*=1\n-vm.swap*\nvm.swap*=1\n",
        )]);
        assert_eq!(said(&config, "vm.dirty_ratio"), ["/etc/sysctl.d/10.conf:1 10"]);
        assert_eq!(said(&config, "vm.swappiness"), ["/etc/sysctl.d/10.conf:7 1"]);
    }

    #[test]
    fn a_line_that_names_the_key_wins_over_globs_and_an_exclusion_turns_them_off() {
        let config = config(&[
            (
                "/etc/sysctl.d/10.conf",
                "# all\nnet.ipv4.conf.all.rp_filter = 1\n-net/ipv4/conf/lo/rp_filter\n; x\n-net.ipv4.conf.eth0.rp_filter=0\n",
            ),
            ("/etc/sysctl.d/20.conf", "net.ipv4.conf.*.rp_filter=2\nbroken line\n=3\n"),
        ]);
        assert_eq!(
            said(&config, "net.ipv4.conf.all.rp_filter"),
            ["/etc/sysctl.d/20.conf:1 2", "/etc/sysctl.d/10.conf:2 1"]
        );
        assert_eq!(said(&config, "net.ipv4.conf.lo.rp_filter"), [""; 0]);
        assert_eq!(said(&config, "net.ipv4.conf.eth1.rp_filter"), ["/etc/sysctl.d/20.conf:1 2"]);
        assert_eq!(
            said(&config, "net.ipv4.conf.eth0.rp_filter").last().map(String::as_str),
            Some("/etc/sysctl.d/10.conf:5 0")
        );
    }
}
