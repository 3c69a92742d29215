//! What the script prints, lines `KEY=VALUE` and findings, and its errors, `CODE: message`.

use linux_sysadmin_sdk::{Category, Output, prelude::*, text};

/// The output of one run.
pub(crate) struct Said(String);

impl Said {
    /// The output of a run that looks.
    pub(crate) fn by(output: Result<Output>) -> Result<Self> {
        let output = output?;
        match problem(&output.error_text()) {
            Some(problem) if output.exit_code != 0 => Err(problem),
            _ => Ok(Self(output.success("backup")?.text().into_owned())),
        }
    }

    /// The output of the last step of a plan.
    pub(crate) fn of(applied: &Applied) -> Self {
        Self(applied.outputs.last().map(|output| output.text().into_owned()).unwrap_or_default())
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.lines()
    }

    /// The values of a key, in order.
    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix('='))
    }

    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.all(key).next().map(str::to_owned)
    }

    pub(crate) fn number(&self, key: &str) -> Option<i64> {
        self.all(key).next()?.parse().ok()
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.all("note").map(text::of_line).collect()
    }

    /// The findings of a kind: a path, and why it is told.
    pub(crate) fn findings<'a>(
        &'a self,
        kind: &'a str,
    ) -> impl Iterator<Item = (String, Option<String>)> + 'a {
        self.lines().filter_map(move |line| {
            let rest = line.strip_prefix(kind)?.strip_prefix(' ')?;
            // A path may have a tab, a reason has none.
            let (path, why) = rest.rsplit_once('\t').map_or((rest, None), |(path, why)| (path, Some(why)));
            let path = unescaped(path);
            Some((
                path.strip_prefix("tree/").map_or(path.clone(), |path| format!("/{path}")),
                why.map(str::to_owned),
            ))
        })
    }
}

/// rsync writes bytes that aren't printable ASCII as `\#ooo`.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = rest.strip_prefix(b"\\#").and_then(|rest| rest.get(..3));
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match byte {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[5..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The problem of a plan whose last step is a run of the script.
pub(crate) fn failed(failure: Failure) -> Problem {
    let said = failure.outputs.last().and_then(|output| problem(&output.error_text()));
    said.or_else(|| problem(&failure.problem.message)).unwrap_or(failure.problem)
}

/// The problem that the script told last.
fn problem(text: &str) -> Option<Problem> {
    let (code, message) = text.lines().rev().find_map(|line| {
        let (before, message) = line.split_once(": ")?;
        let code = before.rsplit(' ').next()?;
        let is_code =
            code.len() > 6 && code.contains('_') && code.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        is_code.then_some((code, message))
    })?;
    let category = match code {
        "DESTINATION_UNREACHABLE" | "CONNECTION_LOST" => Category::Network,
        "DESTINATION_FULL" | "TARGET_FULL" | "WORK_FAILED" => Category::Resource,
        "BACKUP_RUNNING" | "REPOSITORY_LOCKED" => Category::Lock,
        "RSYNC_MISSING" | "RSYNC_TOO_OLD" | "RESTIC_MISSING" | "RESTIC_TOO_OLD" => Category::Dependency,
        "DESTINATION_NOT_FOUND"
        | "BACKUP_NOT_FOUND"
        | "NOT_IN_BACKUP"
        | "REPOSITORY_MISSING"
        | "SOURCE_NOT_FOUND" => Category::NotFound,
        "INVALID_DESTINATION"
        | "INVALID_PATH"
        | "INVALID_BACKUP_ID"
        | "INVALID_LABEL"
        | "SOURCE_IN_DESTINATION" => Category::Validation,
        "DESTINATION_NOT_MOUNTED"
        | "DESTINATION_HANGS"
        | "SOURCE_HANGS"
        | "DESTINATION_UNSAFE"
        | "DESTINATION_UNSUITABLE"
        | "DESTINATION_FAILED"
        | "REPOSITORY_CORRUPT"
        | "RESTIC_PASSWORD_MISSING"
        | "RESTIC_PASSWORD_UNSAFE"
        | "RESTIC_PASSWORD_WRONG"
        | "SOURCE_NOT_MOUNTED"
        | "TARGET_UNSAFE"
        | "TARGET_IS_SYMLINK" => Category::State,
        _ => Category::Other,
    };
    let problem = Problem::new(code, category, text::excerpt(message.trim(), 1000));
    Some(match remedy(code, message) {
        Some(step) => problem.remedy(step),
        None => problem,
    })
}

fn remedy(code: &str, message: &str) -> Option<&'static str> {
    Some(match code {
        "RSYNC_MISSING" => "pkg_install package=rsync, here and on the destination's host",
        "RESTIC_MISSING" => "pkg_install package=restic",
        "RESTIC_PASSWORD_MISSING" => {
            "Whoever owns the backups writes the password there, since without it no backup can be read again"
        }
        "RESTIC_PASSWORD_UNSAFE" => "perms_set owner=root mode=0600",
        "REPOSITORY_MISSING" => "bak_create makes the repository where there is none",
        "REPOSITORY_LOCKED" => {
            "Wait until that run has ended; a lock that nobody renews ends by itself after half an hour"
        }
        "REPOSITORY_CORRUPT" => "bak_verify names the files, bak_restore paths=[…] gets the others",
        "TARGET_FULL" => "bak_restore target_path=… on a disk with more room, or fewer paths",
        "DESTINATION_UNREACHABLE" if message.contains("Host key verification failed") => {
            "Check the key of that host and add it to /root/.ssh/known_hosts"
        }
        "DESTINATION_UNREACHABLE" if message.contains("Permission denied") => {
            "Root's SSH key on the target must be among the account's authorized_keys there"
        }
        "DESTINATION_UNREACHABLE" => "bak_destinations says which destinations can be reached",
        "DESTINATION_NOT_FOUND" => "Mount the disk, or make the directory: file_mkdir",
        "DESTINATION_NOT_MOUNTED" | "SOURCE_NOT_MOUNTED" => {
            "mount_list says why it isn't mounted, and mount_add mounts it"
        }
        "DESTINATION_HANGS" | "SOURCE_HANGS" => "mount_list says what is mounted there",
        "DESTINATION_UNSAFE" => "perms_set owner=root mode=0700, or another directory",
        "DESTINATION_UNSUITABLE" => "disk_list has the file systems",
        "TARGET_UNSAFE" | "TARGET_IS_SYMLINK" => {
            "bak_restore target_path=/var/lib/restored, and move the files from there"
        }
        "WORK_FAILED" => "disk_usage path=/var/tmp says what fills it",
        "DESTINATION_FULL" => "Make room, and call again",
        "CONNECTION_LOST" | "RSYNC_FAILED" => "Call again: it goes on from what was copied",
        "BACKUP_NOT_FOUND" | "INVALID_BACKUP_ID" => "bak_list has the names",
        "BACKUP_RUNNING" => "Wait until it has ended",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_rsync_writes_them() {
        for (written, path) in [
            ("a\\#012b", "a\nb"),
            ("\\#303\\#244", "ä"),
            ("\\#134#041", "\\#041"),
            ("\\#9 \\#", "\\#9 \\#"),
            ("\\#777", "\\#777"),
            ("\\#377", "\u{fffd}"),
        ] {
            assert_eq!(unescaped(written), path);
        }
    }

    #[test]
    fn the_last_error_counts_and_other_lines_are_none() {
        let found = problem("10000 files, 5 bytes\nDESTINATION_FULL: /mnt is full: x\n");
        assert_eq!(
            found.map(|found| (found.code, found.message)),
            Some(("DESTINATION_FULL".into(), "/mnt is full: x".into()))
        );
        assert!(problem("rsync: x\nERROR: y\nA note: z").is_none());
    }
}
