//! Keeps messages from terminals.
//!
//! By default journald writes a message of the highest priority to the terminal of everybody who is logged in, with its
//! escape sequences, and so do rsyslog and other loggers as distributions configure them. Every account may log one. It
//! could so write over a plan while root reads it at a terminal, and root would approve what is not shown.
//!
//! journald's setting is a file of this program's. The configuration of the other loggers belongs to the administrator, who
//! is told which of its lines write to terminals.

use std::io;
use std::path::{Path, PathBuf};

use host_base::passwd;

/// The file with journald's setting.
pub(super) const FILE: &str = "/etc/systemd/journald.conf.d/linux-sysadmin.conf";

/// The file's text.
pub(super) const TEXT: &str = "\
# Written by `linux-sysadmin system install`. Any account can log a message that journald would write to all terminals, and
# so over the plan that root reads before approving it.
[Journal]
ForwardToWall=no
";

/// Journald's unit.
pub(super) const UNIT: &str = "systemd-journald.service";

/// Whether the machine has a journal.
pub(super) fn is_needed() -> bool {
    Path::new("/run/systemd/journal").is_dir()
}

/// Returns a sentence for each way by which messages of any account reach the terminals of those who are logged in.
pub(super) fn ways_to_terminals() -> io::Result<Vec<String>> {
    let is_set = || std::fs::read_to_string(FILE).is_ok_and(|text| text == TEXT);
    let journal = (is_needed() && !is_set()).then(|| {
        format!(
            "{FILE} isn't there as `system install` writes it, so any account can write over the plan that root reads"
        )
    });
    Ok(journal.into_iter().chain(writers()?).collect())
}

/// A logger that may write messages to terminals.
struct Logger {
    name: &'static str,
    file: &'static str,
    /// The directory whose `*.conf` the file includes by default.
    directory: &'static str,
    /// Whether a line of the configuration sends messages to terminals.
    writes: fn(&str) -> bool,
    remedy: &'static str,
}

const LOGGERS: [Logger; 3] = [
    Logger {
        name: "rsyslog",
        file: "/etc/rsyslog.conf",
        directory: "/etc/rsyslog.d",
        writes: is_syslog_to_terminals,
        remedy: "Put a `#` before it, and run `systemctl restart rsyslog`",
    },
    Logger {
        name: "syslogd",
        file: "/etc/syslog.conf",
        directory: "/etc/syslog.d",
        writes: is_syslog_to_terminals,
        remedy: "Put a `#` before it, and restart syslogd",
    },
    Logger {
        name: "syslog-ng",
        file: "/etc/syslog-ng/syslog-ng.conf",
        directory: "/etc/syslog-ng/conf.d",
        writes: |line| line.replace(char::is_whitespace, "").contains("usertty("),
        remedy: "Remove the destination and the log statements that name it, and run `systemctl restart syslog-ng`",
    },
];

/// Returns a sentence for each line in the configuration of a logger that writes messages to terminals.
pub(super) fn writers() -> io::Result<Vec<String>> {
    writers_below(Path::new("/"))
}

fn writers_below(root: &Path) -> io::Result<Vec<String>> {
    let below = |path: &str| root.join(path.trim_start_matches('/'));
    let mut found = Vec::new();
    for Logger { name, file, directory, writes, remedy } in LOGGERS {
        let mut files = vec![below(file)];
        files.extend(configuration_files(&below(directory))?);
        for file in files {
            let text = passwd::text_or_empty(&file)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
            found.extend(logical_lines(&text).into_iter().filter(|(_, line)| writes(line)).map(|(number, _)| {
                format!(
                    "line {number} of {} makes {name} write messages of any account to terminals, and so over the plan \
                     that root reads before approving it. {remedy}",
                    file.display()
                )
            }));
        }
    }
    Ok(found)
}

/// Returns the files `*.conf` of a directory, sorted. There are none where the directory is missing.
fn configuration_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let mut files: Vec<PathBuf> = paths
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "conf"))
        .collect();
    files.sort();
    Ok(files)
}

/// Returns the lines that aren't comments, each with its number, from 1. A backslash at the end joins a line and the next.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in text.lines().enumerate() {
        let (part, goes_on) = match line.trim_end().strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        match lines.last_mut().filter(|_| is_open) {
            Some((_, open)) => open.push_str(part),
            None => lines.push((number + 1, part.to_owned())),
        }
        is_open = goes_on;
    }
    lines.retain(|(_, line)| !line.trim_start().starts_with('#'));
    lines
}

/// Whether a line of rsyslog.conf(5) or syslog.conf(5) sends messages to the terminals of users.
fn is_syslog_to_terminals(line: &str) -> bool {
    // The name of rsyslog's output module: `:omusrmsg:*`, `action(type="omusrmsg" …)`.
    if line.to_ascii_lowercase().contains("omusrmsg") {
        return true;
    }
    let line = line.trim();
    let (selector, action) = line.split_once(char::is_whitespace).unwrap_or(("", line));
    // The name of a template may follow an action.
    let action = action.split(';').next().unwrap_or_default().trim();
    // All users, behind a selector, or a filter of another form.
    if action.split_whitespace().next_back() == Some("*") {
        return true;
    }
    let is_selector = selector == "&"
        || selector.contains('.')
            && selector.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"*.,;!=-".contains(&byte));
    let is_user = |name: &str| {
        let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') && is_word
    };
    // `stop` discards a message.
    is_selector && action != "stop" && action.split(',').map(str::trim).all(is_user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_syslog_writes_to_terminals_by_its_action() {
        for (line, writes) in [
            ("*.emerg\t\t\t\t:omusrmsg:*", true),
            ("*.emerg :omusrmsg:root,admin;template", true),
            ("*.emerg action(type=\"OMUSRMSG\" users=\"*\")", true),
            ("if $syslogseverity == 0 then :omusrmsg:*", true),
            ("*.emerg   *", true),
            ("*.emerg *;RSYSLOG_TraditionalFormat", true),
            ("*", true),
            (":msg, contains, \"x\" *", true),
            ("*.=alert;mail.none root", true),
            ("daemon,kern.crit root, joe", true),
            ("& root", true),
            ("*.*;auth,authpriv.none\t-/var/log/syslog", false),
            ("*.info;mail.none @loghost:514", false),
            ("*.* @@loghost", false),
            ("daemon.*;mail.* |/dev/xconsole", false),
            ("mail.* ~", false),
            ("& stop", false),
            ("local7.* ?Template", false),
            ("*.* call remote", false),
            ("$ModLoad imuxsock.so", false),
            ("$IncludeConfig /etc/rsyslog.d/*.conf", false),
            ("include(file=\"/etc/rsyslog.d/*.conf\" mode=\"optional\")", false),
            ("module(load=\"imklog\")   # kernel", false),
            ("", false),
        ] {
            assert_eq!(is_syslog_to_terminals(line), writes, "{line}");
        }
    }

    #[test]
    fn each_line_that_writes_to_terminals_is_named_with_its_file() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(writers_below(root.path()).unwrap(), Vec::<String>::new());
        for directory in ["etc/rsyslog.d", "etc/syslog-ng/conf.d"] {
            std::fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        for (file, text) in [
            ("etc/rsyslog.conf", "# *.emerg :omusrmsg:*\n*.* \\\n  /var/log/all\n\n*.emerg \\\n  *\n"),
            ("etc/rsyslog.d/1.conf", "*.alert root\n"),
            ("etc/rsyslog.d/2.disabled", "*.emerg *\n"),
            ("etc/syslog-ng/syslog-ng.conf", "#usertty(\"*\")\ndestination d { usertty (\"*\"); };\n"),
        ] {
            std::fs::write(root.path().join(file), text).unwrap();
        }
        let found = writers_below(root.path()).unwrap();
        let named = [
            ("line 5 of ", "etc/rsyslog.conf makes rsyslog ", "`systemctl restart rsyslog`"),
            ("line 1 of ", "etc/rsyslog.d/1.conf makes rsyslog ", "`systemctl restart rsyslog`"),
            ("line 2 of ", "etc/syslog-ng/syslog-ng.conf makes syslog-ng ", "`systemctl restart syslog-ng`"),
        ];
        assert_eq!(found.len(), named.len(), "{found:?}");
        for (sentence, (line, file, remedy)) in found.iter().zip(named) {
            let is_named =
                sentence.starts_with(line) && sentence.contains(file) && sentence.ends_with(remedy);
            assert!(is_named, "{sentence}");
        }
    }
}
