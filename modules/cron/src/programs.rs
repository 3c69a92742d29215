//! The programs that jobs name, and those that cron won't find.
//!
//! cron runs a command by `sh` with a short PATH. A program that an account finds at its terminal may therefore be missing
//! in its jobs.

use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::prelude::*;

use crate::crontab;
use crate::entry::Entry;

/// The directories of programs that are looked at.
const DIRECTORIES: [&str; 7] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/snap/bin"];

/// The PATH of jobs where the crontab sets none, in Debian's cron and in cronie.
const USUAL_PATH: &str = "/usr/bin:/bin";

/// The variables of all sessions, which Debian's cron takes by PAM.
const ENVIRONMENT: &str = "/etc/environment";

/// A program that every target has. Where it can't be seen, nothing is said of others.
const EVERYWHERE: &str = "/bin/sh";

/// The most names of programs that are looked for.
const MOST: usize = 100;

/// Words that are no programs of their own: the shell's keywords and what it does itself.
const OF_THE_SHELL: [&str; 52] = [
    ".", ":", "[", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "echo", "elif",
    "else", "esac", "eval", "exec", "exit", "export", "false", "fg", "fi", "for", "getopts", "hash", "if",
    "in", "jobs", "kill", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift", "source",
    "test", "then", "time", "times", "trap", "true", "type", "ulimit", "umask", "unset", "until", "wait",
    "while",
];

/// What asks whether a program is there. A command that asks needs no program of that name.
const ASKS: [&str; 5] = ["[", "command", "test", "type", "which"];

/// What stands before a question.
const BEFORE_QUESTIONS: [&str; 5] = ["!", "elif", "if", "until", "while"];

/// The grants for looking.
pub(crate) fn grants() -> impl Iterator<Item = PathGrant> {
    let directories = DIRECTORIES
        .iter()
        .map(|directory| PathGrant::read(&format!("{directory}/*"), "whether programs of jobs are there"));
    directories.chain([PathGrant::read(ENVIRONMENT, "the PATH that PAM gives to jobs")])
}

/// Adds a warning to each entry of which cron won't find a program.
pub(crate) fn check(entries: &mut [Entry], cx: &Context) {
    let runs_as_line = |entry: &&Entry| entry.kind.is_none() && entry.error.is_none();
    let mut names: BTreeSet<String> =
        entries.iter().filter(runs_as_line).flat_map(|entry| programs(&entry.command)).collect();
    while names.len() > MOST {
        names.pop_last();
    }
    if names.is_empty() {
        return;
    }
    let mut paths: Vec<String> = vec![EVERYWHERE.to_owned()];
    for name in &names {
        match name.starts_with('/') {
            true => paths.push(name.clone()),
            false => paths.extend(DIRECTORIES.iter().map(|directory| format!("{directory}/{name}"))),
        }
    }
    let stats = cx.stat_all(&paths);
    let there: BTreeMap<&str, bool> = paths
        .iter()
        .zip(&stats)
        .filter_map(|(path, stat)| Some((path.as_str(), stat.as_ref().ok()?.is_some())))
        .collect();
    if there.get(EVERYWHERE) != Some(&true) {
        return;
    }
    let usual = usual_path(cx);
    for entry in entries.iter_mut().filter(|entry| entry.kind.is_none() && entry.error.is_none()) {
        let set = entry.environment.iter().find_map(|line| line.strip_prefix("PATH="));
        let path = set.unwrap_or(&usual);
        let mut wanted = programs(&entry.command).into_iter().filter(|name| names.contains(name));
        entry.warning = wanted.find_map(|name| missing(&name, path, &there));
    }
}

fn usual_path(cx: &Context) -> String {
    let set = cx.read(ENVIRONMENT).ok().and_then(|text| {
        let value = text.lines().rev().find_map(|line| line.trim().strip_prefix("PATH="))?;
        Some(value.trim_matches(['"', '\'']).to_owned())
    });
    set.filter(|path| !path.is_empty()).unwrap_or_else(|| USUAL_PATH.to_owned())
}

/// The warning about a program that isn't there, or isn't on the PATH. None where it is, and where that can't be told.
fn missing(name: &str, path: &str, there: &BTreeMap<&str, bool>) -> Option<String> {
    if name.starts_with('/') {
        return (there.get(name) == Some(&false)).then(|| format!("there is no program {name}"));
    }
    let directories: Vec<&str> = path.split(':').filter(|directory| !directory.is_empty()).collect();
    // A program may be in a directory that isn't looked at.
    if !directories.iter().all(|directory| DIRECTORIES.contains(&directory.trim_end_matches('/'))) {
        return None;
    }
    let is_in = |directory: &str| there.get(format!("{}/{name}", directory.trim_end_matches('/')).as_str());
    if directories.iter().any(|directory| is_in(directory) != Some(&false)) {
        return None;
    }
    let elsewhere = DIRECTORIES.iter().find(|directory| is_in(directory) == Some(&true));
    Some(match elsewhere {
        Some(directory) => {
            format!("{name} isn't on cron's PATH ({path}): write it as {directory}/{name}")
        }
        None => format!("{name} isn't on cron's PATH ({path})"),
    })
}

/// The programs that a command certainly runs. Of a command with quotes or other things that only a shell reads, this is
/// the first one at most.
fn programs(command: &str) -> Vec<String> {
    let command = crontab::before_input(command);
    let is_simple = !command.contains(['\'', '"', '`', '$', '(', ')', '{', '}', '\\', '#', '<', '>']);
    let parts = command.split(['|', '&', ';']);
    let parts: Vec<&str> = if is_simple { parts.collect() } else { parts.take(1).collect() };
    let asks = |part: &&str| {
        let mut words = part.split_whitespace().skip_while(|word| BEFORE_QUESTIONS.contains(word));
        words.next().is_some_and(|word| ASKS.contains(&word))
    };
    let asked: Vec<&str> =
        command.split(['|', '&', ';']).filter(asks).flat_map(str::split_whitespace).collect();
    let is_asked = |name: &str| asked.iter().any(|word| file_name(word) == file_name(name));
    parts.into_iter().filter_map(program).filter(|name| !is_asked(name)).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn program(part: &str) -> Option<String> {
    let is_assignment = |word: &&str| {
        let name = word.split('=').next().unwrap_or_default();
        name.len() < word.len() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let word = part.split_whitespace().find(|word| !is_assignment(word))?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._+/-".contains(&byte);
    if !word.bytes().all(fits) || OF_THE_SHELL.contains(&word) {
        return None;
    }
    match word.rsplit_once('/') {
        None => Some(word.to_owned()),
        Some((directory, name)) => {
            (DIRECTORIES.contains(&directory) && !name.is_empty()).then(|| word.to_owned())
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn only_programs_that_are_certainly_run_are_named() {
        for (command, expected) in [
            ("certbot renew -q", &["certbot"][..]),
            ("LANG=C  certbot renew", &["certbot"]),
            ("cd /srv && make all; sync | logger -t x", &["make", "sync", "logger"]),
            ("/usr/bin/find /tmp -delete", &["/usr/bin/find"]),
            ("mail -s report root%body; with | words", &["mail"]),
            // These are no programs, or can't be looked at.
            ("test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )", &[]),
            ("[ -x /usr/bin/a ] && b", &["b"]),
            ("[ -x /usr/bin/a ] && /usr/bin/a -q", &[]),
            ("command -v a && a; b", &["b"]),
            ("if ! which a; then sync; fi; a; make test", &["make"]),
            ("[ -x /srv/a ] && if [ ! -d /run/systemd/system ]; then /srv/a; else c; fi", &[]),
            ("/opt/backup/run", &[]),
            ("./run", &[]),
            ("$HOME/bin/x", &[]),
            ("\"/usr/bin/a b\"", &[]),
            ("(sleep 5; x)", &[]),
            ("tar -czf /x-$(date +\\%F).tgz /etc; rm x", &["tar"]),
            ("A=b", &[]),
            ("", &[]),
        ] {
            assert_eq!(programs(command), expected, "{command}");
        }
    }

    fn entry(command: &str, environment: &[&str]) -> Entry {
        let environment = environment.iter().map(|line| (*line).to_owned()).collect();
        Entry { command: command.to_owned(), environment, ..Entry::default() }
    }

    fn warnings(target: FakeTarget, mut entries: Vec<Entry>) -> Vec<Option<String>> {
        check(&mut entries, &target.context());
        entries.into_iter().map(|entry| entry.warning).collect()
    }

    fn target() -> FakeTarget {
        ["/bin/sh", "/usr/bin/find", "/usr/local/bin/certbot", "/usr/sbin/logrotate"]
            .into_iter()
            .fold(FakeTarget::new(), |target, path| target.file(path, ""))
    }

    #[test]
    fn a_program_that_is_not_on_crons_path_is_told_with_where_it_is() {
        let entries = vec![
            entry("find /tmp", &[]),
            entry("certbot renew", &[]),
            entry("certbot renew", &["PATH=/usr/local/bin:/usr/bin:/bin"]),
            entry("backup-all", &[]),
            entry("backup-all", &["PATH=/opt/x/bin:/usr/bin"]),
            entry("/usr/sbin/logrotate /etc/logrotate.conf", &[]),
            entry("/usr/sbin/gone", &[]),
        ];
        let said = warnings(target(), entries);
        let said: Vec<&str> = said.iter().map(|said| said.as_deref().unwrap_or_default()).collect();
        assert_eq!(
            said,
            [
                "",
                "certbot isn't on cron's PATH (/usr/bin:/bin): write it as /usr/local/bin/certbot",
                "",
                "backup-all isn't on cron's PATH (/usr/bin:/bin)",
                "",
                "",
                "there is no program /usr/sbin/gone",
            ]
        );
    }

    #[test]
    fn the_path_of_all_sessions_counts_where_pam_gives_it() {
        let target = target().file("/etc/environment", "PATH=\"/usr/local/bin:/usr/bin:/bin\"\n");
        assert_eq!(warnings(target, vec![entry("certbot renew", &[])]), [None::<String>]);
    }

    #[test]
    fn nothing_is_said_where_the_programs_cannot_be_seen() {
        assert_eq!(warnings(FakeTarget::new(), vec![entry("certbot renew", &[])]), [None::<String>]);
    }
}
