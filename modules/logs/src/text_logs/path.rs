//! Paths of text logs: which ones may be read, and which names are those of rotated files.

use linux_sysadmin_sdk::knowledge::{Log, LogFormat, LogSource, Profile};
use linux_sysadmin_sdk::prelude::*;

use super::read::binary;
use crate::line_format::LineFormat;

/// Refuses a path that can't be that of a log. The host checks it again, and follows links.
pub(crate) fn check(cx: &Context, path: &str) -> Result<()> {
    let is_plain = path.starts_with('/')
        && !path.chars().any(char::is_control)
        && path.split('/').skip(1).all(|part| !matches!(part, "" | "." | ".."));
    if !is_plain {
        let message = format!("{path:?} is no path of a log; expected an absolute one without `.` and `..`");
        return Err(Problem::validation("INVALID_PATH", message));
    }
    if path.starts_with("/var/log/") || cx.detected().iter().any(|profile| log_at(profile, path).is_some()) {
        return Ok(());
    }
    let message = format!("{path} isn't in /var/log, and no profile of a service here names it as a log");
    Err(Problem::validation("NOT_A_LOG", message)
        .remedy("Ask for a file in /var/log, or for the journal by units"))
}

/// The log of a profile that has a path.
fn log_at<'a>(profile: &'a Profile, path: &str) -> Option<&'a Log> {
    profile.logs.iter().find(|log| matches!(&log.source, LogSource::Path(glob) if covers(glob, path)))
}

/// The format of a log's lines, as a profile of a service on this machine says, or else the usual formats.
pub(crate) fn line_format(profiles: &[Profile], path: &str) -> Result<LineFormat> {
    let name = path.rsplit('/').next().unwrap_or(path);
    match profiles.iter().find_map(|profile| log_at(profile, path)) {
        Some(log) if log.format == LogFormat::Binary => Err(binary(path)),
        Some(log) => LineFormat::of(log, name),
        None => Ok(LineFormat::unknown(name)),
    }
}

/// Whether a profile's glob covers a path or the file that it is a rotated file of. `*` stands for a part of a name, `**`
/// for any depth.
pub(crate) fn covers(glob: &str, path: &str) -> bool {
    fn parts(glob: &[&str], path: &[&str]) -> bool {
        match (glob, path) {
            ([], []) => true,
            (["**"], [_, ..]) => true,
            (["**", rest @ ..], [_, after @ ..]) => parts(rest, path) || parts(glob, after),
            ([last], [name]) => word(last, name) || is_rotated(last, name),
            ([first, rest @ ..], [name, after @ ..]) => word(first, name) && parts(rest, after),
            _ => false,
        }
    }
    parts(&glob.split('/').collect::<Vec<_>>(), &path.split('/').collect::<Vec<_>>())
}

/// Whether a glob covers a name. `*` stands for any number of characters.
pub(crate) fn word(glob: &str, name: &str) -> bool {
    let mut parts = glob.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whether a name is that of a rotated file of another: `syslog.1`, `syslog.2.gz`, `cron-20260101`, `x-20260101.log.xz`.
pub(crate) fn is_rotated(name: &str, rotated: &str) -> bool {
    let unpacked = [".gz", ".xz", ".zst", ".bz2"].iter().find_map(|packed| rotated.strip_suffix(packed));
    let plain = unpacked.unwrap_or(rotated);
    let is_counted = |text: &str| {
        let digits = text.trim_start_matches(['.', '-', '_']);
        text.len() > digits.len()
            && digits.starts_with(|letter: char| letter.is_ascii_digit())
            && digits.bytes().all(|byte| byte.is_ascii_digit() || b"-_.:T".contains(&byte))
    };
    if let Some(behind) = plain.strip_prefix(name) {
        return is_counted(behind) || matches!(behind, ".old") || behind.is_empty() && unpacked.is_some();
    }
    let within = name
        .rsplit_once('.')
        .and_then(|(stem, extension)| plain.strip_prefix(stem)?.strip_suffix(extension)?.strip_suffix('.'));
    within.is_some_and(is_counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotated_file_is_known_by_its_name() {
        for (name, rotated) in [
            ("syslog", "syslog.1"),
            ("syslog", "syslog.2.gz"),
            ("cron", "cron-20260101"),
            ("cron", "cron-20260101.xz"),
            ("access.log", "access.log.12.zst"),
            ("access.log", "access-20260101.log"),
            ("access.log", "access.log-20260101-1767225600.bz2"),
            ("postgresql.log", "postgresql.log.old"),
        ] {
            assert!(is_rotated(name, rotated), "{rotated}");
        }
        for (name, other) in [
            ("syslog", "syslog"),
            ("syslog", "syslog-ng"),
            ("access.log", "access.log.bak~"),
            ("access.log", "other_access.log"),
            ("access.log", "access_admin.log"),
            ("auth.log", "auth.log.d"),
            ("log", "log.smbd"),
        ] {
            assert!(!is_rotated(name, other), "{other}");
        }
    }

    #[test]
    fn a_glob_covers_its_files_and_their_rotated_ones() {
        for (glob, path, expected) in [
            ("/var/log/x.log", "/var/log/x.log", true),
            ("/var/log/x.log", "/var/log/x.log.1.gz", true),
            ("/var/log/x.log", "/var/log/y.log", false),
            ("/var/lib/docker/containers/*/*-json.log", "/var/lib/docker/containers/3f/3f-json.log", true),
            ("/var/lib/docker/containers/*/*-json.log", "/var/lib/docker/containers/3f/config.json", false),
            ("/var/lib/docker/containers/*/*-json.log", "/var/lib/docker/containers/3f/a/3f-json.log", false),
            ("/var/log/pods/**", "/var/log/pods/a/b/0.log", true),
            ("/var/log/pods/**", "/var/log/pods", false),
            ("/var/log/samba/log.*", "/var/log/samba/log.smbd", true),
        ] {
            assert_eq!(covers(glob, path), expected, "{glob} {path}");
        }
    }
}
