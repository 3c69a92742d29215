//! The system's own jobs: `/etc/crontab`, `/etc/cron.d`, the directories of `run-parts`, and `/etc/anacrontab`.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*, text::excerpt};

use crate::crontab::{self, Form};
use crate::crontab_command::few;
use crate::entry::Entry;
use crate::parse::Dialect;

/// The system's crontab.
pub(crate) const SYSTEM: &str = "/etc/crontab";
/// The directory with crontabs of packages, in the form of the system's crontab.
pub(crate) const DIRECTORY: &str = "/etc/cron.d";
/// The table of anacron.
pub(crate) const ANACRON: &str = "/etc/anacrontab";
/// The directories of scripts.
const PARTS: [&str; 4] = ["/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly"];

/// The most files that are read of a directory. The files of all directories together don't exceed what the host takes at
/// once.
const MOST_FILES: usize = 150;

/// All jobs of the system, those that cron ignores last, and notes on files that were left behind or are missing.
pub(crate) fn jobs(cx: &Context, dialect: Dialect) -> (Vec<Entry>, Vec<String>) {
    let cx = &cx.files_as(Privilege::RootIfAvailable);
    let mut notes = Vec::new();
    let (mut ignored, mut left) = (Vec::new(), Vec::new());
    let mut paths = vec![SYSTEM.to_owned(), ANACRON.to_owned()];
    let mut parts = Vec::new();
    for (directory, names) in directories().zip(cx.list_all(&directories().collect::<Vec<_>>())) {
        for name in looked_at(directory, names, &mut notes) {
            let path = format!("{directory}/{name}");
            match directory {
                DIRECTORY if is_crontab(&name, dialect) => paths.push(path),
                _ if directory != DIRECTORY && is_part(&name, dialect) => parts.push((directory, path)),
                // Such a file keeps an empty directory in a package.
                _ if name.starts_with('.') => {}
                _ if is_left_over(&name) => left.push(path),
                _ => ignored.push(misnamed(directory, path, dialect)),
            }
        }
    }
    let (mut items, mut anacron) = (Vec::new(), Vec::new());
    let all: Vec<_> = paths.iter().chain(parts.iter().map(|(_, path)| path)).collect();
    let mut stats = cx.stat_all(&all).into_iter();
    for ((path, text), stat) in paths.iter().zip(cx.read_all(&paths)).zip(stats.by_ref()) {
        let text = match text {
            Ok(text) => text,
            Err(problem) => {
                notes.extend(missing(path, &problem));
                continue;
            }
        };
        if path == ANACRON {
            anacron = anacrontab(&text);
            continue;
        }
        let unsafe_file = stat.ok().flatten().and_then(|stat| why_unsafe(&stat));
        for found in crontab::jobs(&text, Form::System, dialect) {
            let mut item = Entry::new(&found, "", path);
            if let Some(why) = &unsafe_file {
                item.enabled = false;
                item.error = Some(format!("cron doesn't read {path}: {why}"));
            }
            items.push(item);
        }
    }
    let scripts = parts
        .iter()
        .zip(stats)
        .filter_map(|((directory, path), stat)| part(directory, path, stat, &items, &anacron));
    let scripts: Vec<_> = scripts.collect();
    items.extend(scripts);
    items.extend(anacron);
    items.extend(ignored);
    if !left.is_empty() {
        notes.push(format!("files that cron ignores for their names: {}", few(&left)));
    }
    (items, notes)
}

/// A note on a file that couldn't be read. A file that doesn't exist has no jobs.
fn missing(path: &str, problem: &Problem) -> Option<String> {
    (problem.category != Category::NotFound).then(|| format!("{path} was not read: {}", problem.message))
}

/// The directories of the system's jobs.
pub(crate) fn directories() -> impl Iterator<Item = &'static str> {
    [DIRECTORY].into_iter().chain(PARTS)
}

fn looked_at(directory: &str, names: Result<Vec<String>>, notes: &mut Vec<String>) -> Vec<String> {
    let mut names = names.unwrap_or_else(|problem| {
        notes.extend(missing(directory, &problem));
        Vec::new()
    });
    if names.len() > MOST_FILES {
        notes.push(format!("only {MOST_FILES} of {} files of {directory} were looked at", names.len()));
        names.truncate(MOST_FILES);
    }
    names
}

/// Whether cron reads a file of this name in `/etc/cron.d`, as `valid_name` of Debian's cron and `not_a_crontab` of
/// cronie decide.
fn is_crontab(name: &str, dialect: Dialect) -> bool {
    match dialect {
        Dialect::Debian => is_plain(name),
        Dialect::Any => {
            !name.starts_with(['.', '#'])
                && !name.ends_with('~')
                && ![".rpmsave", ".rpmorig", ".rpmnew"].iter().any(|end| name.ends_with(end))
        }
    }
}

/// Whether `run-parts` runs a file of this name: that of debianutils without options, and the script that comes with
/// cronie on Red Hat's family.
fn is_part(name: &str, dialect: Dialect) -> bool {
    const ENDS: [&str; 8] = ["~", ",", ".rpmsave", ".rpmorig", ".rpmnew", ".swp", ".cfsaved", ",v"];
    match dialect {
        Dialect::Debian => is_plain(name),
        Dialect::Any => !name.starts_with('.') && !ENDS.iter().any(|end| name.ends_with(end)),
    }
}

/// Whether an editor or a package manager left the file behind.
fn is_left_over(name: &str) -> bool {
    const ENDS: [&str; 6] = ["~", ".bak", ".orig", ".old", ".save", ".swp"];
    let is_of_packages = |word: &str| [".dpkg-", ".rpm", ".ucf-"].iter().any(|mark| word.contains(mark));
    ENDS.iter().any(|end| name.ends_with(end)) || name.starts_with('#') || is_of_packages(name)
}

/// The entry of a file that looks like a job, and that cron never looks into for its name.
fn misnamed(directory: &str, path: String, dialect: Dialect) -> Entry {
    let name = path.rsplit('/').next().unwrap_or_default();
    let error = match dialect {
        Dialect::Debian => "cron reads no file whose name has anything but letters, digits, _ and -",
        Dialect::Any => "cron reads no file of such a name",
    };
    let better_name = better(name);
    let error = Some(error.to_owned());
    match directory {
        DIRECTORY => Entry { source: path, error, better_name, ..Entry::default() },
        _ => Entry {
            source: directory.to_owned(),
            kind: Some("run-parts"),
            command: path,
            error,
            better_name,
            ..Entry::default()
        },
    }
}

/// A name that every cron reads: without its last ending, or else with `-` for what isn't allowed. None where nothing is left.
fn better(name: &str) -> Option<String> {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let stem = if is_plain(stem) { stem } else { name };
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '-' };
    let better: String = stem.chars().map(allowed).collect();
    (better != name && better.bytes().any(|byte| byte.is_ascii_alphanumeric())).then_some(better)
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Checks that a file is one of the system's crontabs, and that cron reads it.
pub(crate) fn check_file(path: &str, dialect: Dialect) -> Result<()> {
    let name = path.strip_prefix(DIRECTORY).and_then(|rest| rest.strip_prefix('/'));
    let is_read = |name: &str| !name.is_empty() && !name.contains('/') && is_crontab(name, dialect);
    if path == SYSTEM || name.is_some_and(is_read) {
        return Ok(());
    }
    let message = match name {
        Some(name) => format!(
            "cron ignores a file of the name {:?}: expected letters, digits, `_` and `-`",
            excerpt(name, 64)
        ),
        None => format!(
            "{:?} is no crontab of the system: expected {SYSTEM} or {DIRECTORY}/NAME",
            excerpt(path, 64)
        ),
    };
    Err(Problem::validation("INVALID_CRONTAB_FILE", message))
}

/// The reason why cron ignores a system crontab: others than root could have written it. The target of a symlink isn't
/// known.
fn why_unsafe(stat: &Metadata) -> Option<String> {
    if stat.is_symlink {
        return None;
    }
    if stat.owner != "root" {
        return Some(format!("it is {}'s, not root's", stat.owner));
    }
    (stat.mode & 0o022 != 0).then(|| format!("its mode is {:o}, others may write to it", stat.mode & 0o7777))
}

/// A script of a directory. It runs with the line that names the directory, anacron's where there is one.
fn part(
    directory: &str,
    path: &str,
    stat: Result<Option<Metadata>>,
    items: &[Entry],
    anacron: &[Entry],
) -> Option<Entry> {
    let stat = stat.ok().flatten();
    if stat.as_ref().is_some_and(|stat| stat.is_dir) {
        return None;
    }
    let names_it = |item: &&Entry| {
        item.error.is_none()
            && item.command.split([' ', ';', '&', '|', ')', '"', '\'']).any(|word| word == directory)
    };
    let by = anacron.iter().chain(items).find(names_it);
    let runs = stat.as_ref().is_none_or(|stat| stat.is_symlink || stat.mode & 0o111 != 0);
    let error = match by {
        _ if !runs => Some("it isn't executable".to_owned()),
        None => Some(format!("no line runs {directory}")),
        Some(_) => None,
    };
    Some(Entry {
        user: by.map_or("root", |by| by.user.as_str()).to_owned(),
        source: directory.to_owned(),
        kind: Some("run-parts"),
        schedule: by.map(|by| by.schedule.clone()).unwrap_or_default(),
        description: by.map(|by| by.description.clone()).unwrap_or_default(),
        command: path.to_owned(),
        enabled: error.is_none(),
        error,
        ..Entry::default()
    })
}

/// The jobs of anacron's table (anacrontab(5)): a period in days or by name, a delay in minutes, a name, and a command.
fn anacrontab(text: &str) -> Vec<Entry> {
    let mut items = Vec::new();
    let mut environment: Vec<(String, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let body = line.trim();
        if body.is_empty() || body.starts_with('#') {
            continue;
        }
        // In anacron's grammar, the name of a variable has letters, digits and `_` only.
        let assigned = body.split_once('=').map(|(name, value)| (name.trim_end(), value.trim_start()));
        if let Some((name, value)) = assigned
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            environment.retain(|(known, _)| known != name);
            environment.push((name.to_owned(), value.to_owned()));
            continue;
        }
        let mut rest = body;
        let mut word = || {
            let (word, after) = rest.split_at(rest.find([' ', '\t']).unwrap_or(rest.len()));
            rest = after.trim_start();
            word.to_owned()
        };
        let (period, delay, name) = (word(), word(), word());
        let every = match period.as_str() {
            "1" | "@daily" => Some("Every day".to_owned()),
            "7" | "@weekly" => Some("Every week".to_owned()),
            "@monthly" => Some("Every month".to_owned()),
            "@yearly" | "@annually" => Some("Every year".to_owned()),
            days => days.parse::<u32>().ok().map(|days| format!("Every {days} days")),
        };
        let delay = delay.parse::<u32>().ok();
        let described = match (&every, delay) {
            (Some(every), Some(delay)) if !rest.is_empty() => {
                Some(format!("{every}, {delay} min after anacron starts"))
            }
            _ => None,
        };
        items.push(Entry {
            user: "root".to_owned(),
            source: ANACRON.to_owned(),
            line: Some(index + 1),
            kind: Some("anacron"),
            schedule: match delay {
                Some(delay) => format!("{period} {delay} {name}"),
                None => period,
            },
            error: described.is_none().then(|| {
                "expected a period in days or by name, a delay in minutes, a name, and a command".to_owned()
            }),
            description: described.unwrap_or_default(),
            command: rest.to_owned(),
            environment: crontab::shown(&environment),
            enabled: true,
            ..Entry::default()
        });
    }
    items
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_counts_by_its_name_as_each_cron_has_it() {
        // Each row has a name, whether Debian's cron and cronie read it in cron.d, and whether each run-parts runs it.
        let table = [
            ("e2scrub_all", true, true, true, true),
            ("0hourly", true, true, true, true),
            ("my.job", false, true, false, true),
            ("job.sh", false, true, false, true),
            (".placeholder", false, false, false, false),
            ("job~", false, false, false, false),
            ("#job#", false, false, false, true),
            ("job.rpmsave", false, false, false, false),
            ("job.rpmnew", false, false, false, false),
            ("job.dpkg-old", false, true, false, true),
            ("job.swp", false, true, false, false),
            ("jöb", false, true, false, true),
        ];
        for (name, debian, cronie, debians_parts, red_hats_parts) in table {
            assert_eq!(is_crontab(name, Dialect::Debian), debian, "{name}");
            assert_eq!(is_crontab(name, Dialect::Any), cronie, "{name}");
            assert_eq!(is_part(name, Dialect::Debian), debians_parts, "{name}");
            assert_eq!(is_part(name, Dialect::Any), red_hats_parts, "{name}");
        }
    }

    #[test]
    fn a_file_that_cron_ignores_for_its_name_is_a_job_unless_somebody_left_it_behind() {
        for (name, is_left, better_name) in [
            ("shop-report.cron", false, Some("shop-report")),
            ("backup.daily.sh", false, Some("backup-daily-sh")),
            ("jöb", false, Some("j-b")),
            ("...", false, None),
            ("old.bak", true, Some("old")),
            ("job~", true, Some("job-")),
            ("job.dpkg-dist", true, Some("job")),
            ("job.rpmnew", true, Some("job")),
            ("#job#", true, Some("-job-")),
        ] {
            assert_eq!((is_left_over(name), better(name).as_deref()), (is_left, better_name), "{name}");
        }
        let of_cron = misnamed(DIRECTORY, "/etc/cron.d/a.cron".to_owned(), Dialect::Debian);
        assert_eq!(
            (of_cron.source.as_str(), of_cron.enabled, of_cron.kind),
            ("/etc/cron.d/a.cron", false, None)
        );
        let script = misnamed("/etc/cron.daily", "/etc/cron.daily/a.sh".to_owned(), Dialect::Debian);
        assert_eq!(
            (script.source.as_str(), script.command.as_str()),
            ("/etc/cron.daily", "/etc/cron.daily/a.sh")
        );
        assert_eq!((script.enabled, script.better_name.as_deref()), (false, Some("a")));
    }

    fn stat(owner: &str, mode: u32) -> Metadata {
        Metadata {
            size: 1,
            mode,
            owner: owner.to_owned(),
            group: "root".to_owned(),
            modified_unix: 0,
            is_dir: false,
            is_symlink: false,
        }
    }

    #[test]
    fn a_crontab_that_others_may_write_is_not_read_by_cron() {
        for (owner, mode, safe) in
            [("root", 0o644, true), ("root", 0o600, true), ("root", 0o664, false), ("ada", 0o644, false)]
        {
            assert_eq!(why_unsafe(&stat(owner, mode)).is_none(), safe, "{owner} {mode:o}");
        }
        assert!(why_unsafe(&Metadata { is_symlink: true, ..stat("root", 0o777) }).is_none());
    }

    #[test]
    fn a_script_runs_when_the_line_runs_that_names_its_directory() {
        // Debian's /etc/crontab.
        let text = "25 6\t* * *\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }\n";
        let jobs = crontab::jobs(text, Form::System, Dialect::Debian);
        let items: Vec<_> = jobs.iter().map(|found| Entry::new(found, "", SYSTEM)).collect();
        let script = |stat: Metadata, items: &[Entry], anacron: &[Entry]| {
            part("/etc/cron.daily", "/etc/cron.daily/dpkg", Ok(Some(stat)), items, anacron)
        };
        let item = script(stat("root", 0o755), &items, &[]).unwrap();
        assert_eq!(
            (item.schedule.as_str(), item.enabled, item.kind),
            ("25 6 * * *", true, Some("run-parts"))
        );
        assert_eq!(
            (item.description.as_str(), item.command.as_str()),
            ("At 06:25 every day", "/etc/cron.daily/dpkg")
        );
        let item = script(stat("root", 0o644), &items, &[]).unwrap();
        assert_eq!((item.enabled, item.error.unwrap().as_str()), (false, "it isn't executable"));
        let item = script(stat("root", 0o755), &[], &[]).unwrap();
        assert_eq!((item.enabled, item.error.unwrap().as_str()), (false, "no line runs /etc/cron.daily"));
        assert_eq!(script(Metadata { is_dir: true, ..stat("root", 0o755) }, &items, &[]), None);
        let anacron = anacrontab("1\t5\tcron.daily\t\tnice run-parts /etc/cron.daily\n");
        let item = script(stat("root", 0o755), &items, &anacron).unwrap();
        assert_eq!(item.schedule, "1 5 cron.daily");
    }

    #[test]
    fn anacrons_table_has_fields_of_its_own() {
        // This is contrib/anacrontab of cronie 1.7.2, with invalid lines added.
        let text = "# /etc/anacrontab: configuration file for anacron\n\nSHELL=/bin/sh\n\
                    PATH=/sbin:/bin:/usr/sbin:/usr/bin\nMAILTO=root\nRANDOM_DELAY=45\nSTART_HOURS_RANGE=3-22\n\n\
                    1\t5\tcron.daily\t\tnice run-parts /etc/cron.daily\n\
                    7\t25\tcron.weekly\t\tnice run-parts /etc/cron.weekly\n\
                    @monthly 45\tcron.monthly\t\tnice run-parts /etc/cron.monthly\n\
                    3 10 x A=b true\n\
                    soon 5 job true\n1 5 job\n1\n";
        let items = anacrontab(text);
        let shown: Vec<_> = items
            .iter()
            .map(|item| {
                (item.line.unwrap(), item.schedule.as_str(), item.description.as_str(), item.command.as_str())
            })
            .collect();
        assert_eq!(
            shown,
            [
                (
                    9,
                    "1 5 cron.daily",
                    "Every day, 5 min after anacron starts",
                    "nice run-parts /etc/cron.daily"
                ),
                (
                    10,
                    "7 25 cron.weekly",
                    "Every week, 25 min after anacron starts",
                    "nice run-parts /etc/cron.weekly"
                ),
                (
                    11,
                    "@monthly 45 cron.monthly",
                    "Every month, 45 min after anacron starts",
                    "nice run-parts /etc/cron.monthly"
                ),
                (12, "3 10 x", "Every 3 days, 10 min after anacron starts", "A=b true"),
                (13, "soon 5 job", "", "true"),
                (14, "1 5 job", "", ""),
                (15, "1", "", ""),
            ]
        );
        assert_eq!(
            items.iter().map(|item| item.error.is_some()).collect::<Vec<_>>(),
            [false, false, false, false, true, true, true]
        );
        assert_eq!(items[0].environment.len(), 5);
    }
}
