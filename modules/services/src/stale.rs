//! Whether a service still runs by what isn't there any more: configuration that was changed behind it, programs and
//! libraries that an update has replaced.

use linux_sysadmin_sdk::knowledge::{ApplyBy, ConfigFile, Profile};
use linux_sysadmin_sdk::{Output, Privilege, prelude::*, time::rfc3339};

/// How many files are named.
const NAMED: usize = 3;

/// How deep below the directory of a glob is looked.
const DEPTH: &str = "3";

/// Files of a process that aren't what their paths lead to any more.
const DELETED: CommandLine = CommandLine::new("grep --fixed-strings -- '(deleted)' <path:/proc/*/maps>");

/// Paths come before what is asked of them, so it is no [`CommandLine`].
const CHANGED: &str = "find -H <path:/etc/**>... -maxdepth 3 -type f -newermt <time> -printf '%T@ %p\\n'";

pub(crate) fn grants() -> [CommandGrant; 2] {
    [
        DELETED.read("whether a service runs on files that an update has replaced").as_root_if_available(),
        CommandGrant::read(CHANGED, "which configuration was changed since a service read it")
            .as_root_if_available(),
    ]
}

/// The question of what a process runs on.
pub(crate) fn deleted(pid: u64) -> Command {
    DELETED.with([format!("/proc/{pid}/maps")]).privilege(Privilege::RootIfAvailable)
}

/// Programs and libraries in what was said to that: mapped to be executed, and no longer there. What a program makes
/// for itself at run time isn't meant.
pub(crate) fn replaced(maps: &str) -> Vec<String> {
    const OWN: [&str; 6] = ["/memfd:", "/dev/", "/tmp/", "/var/tmp/", "/run/", "/SYSV"];
    let mut files: Vec<String> = maps
        .lines()
        .filter_map(|line| {
            let (fields, path) = line.split_at(line.find('/')?);
            let path = path.strip_suffix(" (deleted)")?;
            let is_executed = fields.split_whitespace().nth(1)?.contains('x');
            (is_executed && !OWN.iter().any(|own| path.starts_with(own))).then(|| path.to_owned())
        })
        .collect();
    files.sort();
    files.dedup();
    files
}

/// The question of which files are newer than a moment; none where the profile names none that a service reads.
pub(crate) fn newer(profile: &Profile, moment: i64) -> Option<Command> {
    let mut roots: Vec<String> = read_by_it(profile).map(|file| root(&file.path)).collect();
    roots.sort();
    roots.dedup();
    let below = |root: &String| root.starts_with("/etc/") && root.len() > "/etc/".len();
    roots.retain(below);
    (!roots.is_empty()).then(|| {
        Command::new("find")
            .arg("-H")
            .args(roots)
            .args(["-maxdepth", DEPTH, "-type", "f", "-newermt"])
            .arg(format!("@{}", moment.max(0)))
            .args(["-printf", "%T@ %p\\n"])
            .privilege(Privilege::RootIfAvailable)
    })
}

/// What has to be read anew: by a restart, by a reload.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) restart: Vec<String>,
    pub(crate) reload: Vec<String>,
}

/// Of what was said to that: configuration that was changed after the service had started, or was reloaded last.
pub(crate) fn changed(answer: &Result<Output>, profile: &Profile, started: i64, reloaded: i64) -> Changed {
    let mut changed = Changed::default();
    // Exit code 1 is that of a directory that isn't there, too.
    let Ok(output) = answer else { return changed };
    for line in output.text().lines() {
        let Some((modified, path)) = line.split_once(' ') else { continue };
        let Some(modified) = modified.split('.').next().and_then(|seconds| seconds.parse::<i64>().ok())
        else {
            continue;
        };
        let Some(file) = read_by_it(profile).find(|file| covers(&file.path, path)) else { continue };
        let said = format!("{path} was changed at {}", rfc3339(modified));
        match file.apply {
            // The same second is that of an installation.
            Some(ApplyBy::Restart) if modified > started => changed.restart.push(said),
            Some(ApplyBy::Reload) if modified > reloaded => changed.reload.push(said),
            _ => {}
        }
    }
    changed.restart = named(changed.restart);
    changed.reload = named(changed.reload);
    changed
}

/// The first of many.
pub(crate) fn named(mut all: Vec<String>) -> Vec<String> {
    all.sort();
    let more = all.len().saturating_sub(NAMED);
    if more > 0 {
        all.truncate(NAMED);
        all.push(format!("and {more} more"));
    }
    all
}

fn read_by_it(profile: &Profile) -> impl Iterator<Item = &ConfigFile> {
    profile
        .config
        .iter()
        .filter(|file| !file.generated && matches!(file.apply, Some(ApplyBy::Reload | ApplyBy::Restart)))
}

/// The directory above the first wildcard, or the path itself.
fn root(path: &str) -> String {
    let literal = path.split('*').next().unwrap_or(path);
    let end = if literal.len() < path.len() { literal.rfind('/').unwrap_or(0) } else { literal.len() };
    literal[..end].trim_end_matches('/').to_owned()
}

/// Whether a profile's path means a file: `*` within a name, `**` any depth, all in a directory with `/` at its end.
pub(crate) fn covers(pattern: &str, path: &str) -> bool {
    if let Some(directory) = pattern.strip_suffix('/') {
        return path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
    }
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    covers_names(&pattern, &path)
}

fn covers_names(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (["**", rest @ ..], _) => (0..=path.len()).any(|taken| covers_names(rest, &path[taken..])),
        ([first, pattern @ ..], [name, path @ ..]) => covers_name(first, name) && covers_names(pattern, path),
        _ => false,
    }
}

fn covers_name(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(behind) = name.strip_prefix(head) else { return false };
    (0..=behind.len())
        .filter(|taken| behind.is_char_boundary(*taken))
        .any(|taken| covers_name(rest, &behind[taken..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::profile;

    /// Of /proc/PID/maps on Linux 6.1, after updates.
    const MAPS: &str = "\
55d0c8a00000-55d0c8a2a000 r--p 00000000 fe:01 131 /usr/sbin/nginx (deleted)
55d0c8a2a000-55d0c8b2a000 r-xp 0002a000 fe:01 131 /usr/sbin/nginx (deleted)
7f1c00000000-7f1c00100000 r-xp 00000000 fe:01 777 /usr/lib/x86_64-linux-gnu/libssl.so.3 (deleted)
7f1c00100000-7f1c00200000 r--p 00000000 fe:01 778 /usr/share/data (deleted)
7f1c00200000-7f1c00300000 rw-s 00000000 00:01 9 /dev/zero (deleted)
7f1c00300000-7f1c00400000 r-xp 00000000 00:01 10 /memfd:doublemapper (deleted)
7f1c00400000-7f1c00500000 r-xp 00000000 fe:01 11 /tmp/ffiX (deleted)
7f1c00500000-7f1c00600000 r-xp 00000000 fe:01 12 /opt/my app/lib.so (deleted)
garbage (deleted)
/ (deleted)
";

    #[test]
    fn what_runs_and_was_replaced_is_told_and_what_a_program_makes_for_itself_is_not() {
        let expected = ["/opt/my app/lib.so", "/usr/lib/x86_64-linux-gnu/libssl.so.3", "/usr/sbin/nginx"];
        assert_eq!(replaced(MAPS), expected);
        assert!(replaced("").is_empty());
    }

    #[test]
    fn paths_of_profiles_cover_files() {
        for (pattern, path, expected) in [
            ("/etc/a.conf", "/etc/a.conf", true),
            ("/etc/a.conf", "/etc/a.conf.bak", false),
            ("/etc/a/*.conf", "/etc/a/b.conf", true),
            ("/etc/a/*.conf", "/etc/a/b/c.conf", false),
            ("/etc/a/*.conf", "/etc/a/b.confx", false),
            ("/etc/a/**/b-*.conf", "/etc/a/x/y/b-1.conf", true),
            ("/etc/a/**", "/etc/a/x/y", true),
            ("/etc/a/", "/etc/a/x/y", true),
            ("/etc/a/", "/etc/ab", false),
            ("/etc/*/main/*", "/etc/15/main/x", true),
            ("/etc/a*b*c", "/etc/aXbYc", true),
        ] {
            assert_eq!(covers(pattern, path), expected, "{pattern} {path}");
        }
        for (path, expected) in [
            ("/etc/a.conf", "/etc/a.conf"),
            ("/etc/a/*.conf", "/etc/a"),
            ("/etc/a/**", "/etc/a"),
            ("/etc/a/", "/etc/a"),
            ("/etc/*/x", "/etc"),
        ] {
            assert_eq!(root(path), expected);
        }
    }

    #[test]
    fn what_was_changed_after_it_was_read_is_told_with_what_it_needs() {
        let mut profile = profile("x");
        let file = |path: &str, apply| ConfigFile {
            path: path.into(),
            what: String::new(),
            main: false,
            optional: false,
            generated: false,
            apply,
        };
        profile.config = vec![
            file("/etc/x/x.conf", Some(ApplyBy::Reload)),
            file("/etc/x/mod.d/*", Some(ApplyBy::Restart)),
            file("/etc/cron.d/x", Some(ApplyBy::AtOnce)),
            file("/var/lib/x/y", Some(ApplyBy::Restart)),
            file("/etc/*", Some(ApplyBy::Restart)),
        ];
        let command = newer(&profile, 90).map(|command| command.args.join(" "));
        let expected = "-H /etc/x/mod.d /etc/x/x.conf -maxdepth 3 -type f -newermt @90 -printf %T@ %p\\n";
        assert_eq!(command.as_deref(), Some(expected));
        let said = "150.5 /etc/x/x.conf\n150.5 /etc/x/mod.d/a b\n150.5 /etc/x/other\n90.1 /etc/x/mod.d/old\nnonsense\nx y\n";
        let output = Output {
            exit_code: 1,
            stdout: said.into(),
            stderr: Vec::new(),
            stdout_bytes: 0,
            stdout_lines: 0,
            truncated: false,
            duration_ms: 1,
        };
        let found = changed(&Ok(output.clone()), &profile, 100, 140);
        let at = |path: &str| vec![format!("{path} was changed at 1970-01-01T00:02:30Z")];
        assert_eq!(found, Changed { restart: at("/etc/x/mod.d/a b"), reload: at("/etc/x/x.conf") });
        assert_eq!(changed(&Ok(output), &profile, 150, 150), Changed::default());
    }
}
