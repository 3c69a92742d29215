//! The form of a check in a file.

use std::collections::BTreeSet;

use linux_sysadmin_sdk::{accounts, packages::check_name, prelude::*, text};

/// The most characters of an id.
const MOST_ID: usize = 60;

/// A check.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) id: String,
    pub(super) severity: Grade,
    pub(super) reference: Option<String>,
    pub(super) rule: Rule,
}

/// The severity as files spell it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Grade {
    Info,
    Warning,
    High,
    Critical,
}

impl From<Grade> for Severity {
    fn from(grade: Grade) -> Self {
        match grade {
            Grade::Info => Self::Info,
            Grade::Warning => Self::Warning,
            Grade::High => Self::High,
            Grade::Critical => Self::Critical,
        }
    }
}

/// What is expected.
#[derive(Debug, PartialEq)]
pub(super) enum Rule {
    /// A file has at most this mode, and one of these groups.
    File { file: String, mode: String, owner: String, groups: Vec<String> },
    /// A value of the kernel is one of these.
    Sysctl { sysctl: String, values: Vec<String> },
    /// What is mounted there has this option.
    Mount { mount: String, option: String },
    /// None of these packages is installed.
    Absent { absent: Vec<String> },
    /// None of these units runs or is enabled.
    Off { off: Vec<String> },
    /// A setting of sshd is one of these, or a number of at most this.
    Sshd { sshd: String, values: Vec<String>, at_most: Option<u64>, harden: Option<String> },
}

/// A check as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: String,
    #[serde(default = "warning")]
    severity: Grade,
    reference: Option<String>,
    file: Option<String>,
    mode: Option<String>,
    owner: Option<String>,
    #[serde(default)]
    groups: Vec<String>,
    sysctl: Option<String>,
    #[serde(default)]
    values: Vec<String>,
    mount: Option<String>,
    option: Option<String>,
    #[serde(default)]
    absent: Vec<String>,
    #[serde(default)]
    off: Vec<String>,
    sshd: Option<String>,
    at_most: Option<u64>,
    harden: Option<String>,
}

fn warning() -> Grade {
    Grade::Warning
}

/// The form of a file of checks, for a message about one that has another form.
pub(super) const FORM: &str = "expected a list of checks, each with an id, and `file` with mode, owner and groups, `sysctl` \
    with values, `mount` with option, `absent` with packages, `off` with units, or `sshd` with values or at_most";

/// The checks of a file, and a sentence about each that isn't in the form. Such a check keeps no other one from being made.
pub(super) fn parse(yaml: &str) -> (Vec<Check>, Vec<String>) {
    let (mut checks, mut refused) = (Vec::new(), Vec::new());
    let mut ids = BTreeSet::new();
    for part in parts(yaml) {
        let written = match part {
            Ok(written) => written,
            Err(why) => {
                refused.push(why);
                continue;
            }
        };
        let id = text::excerpt(&written.id, MOST_ID);
        match written.check() {
            Some(check) if !ids.insert(check.id.clone()) => {
                refused.push(format!("{id} is the id of another check"));
            }
            Some(check) => checks.push(check),
            None => refused.push(format!("the check {id} isn't in the form")),
        }
    }
    (checks, refused)
}

/// The checks as they are written. Where the file can't be read as a whole, each item of the list is read by itself.
fn parts(yaml: &str) -> Vec<std::result::Result<Written, String>> {
    if let Ok(written) = serde_yaml::from_str::<Vec<Written>>(yaml) {
        return written.into_iter().map(Ok).collect();
    }
    let mut items: Vec<(usize, String)> = Vec::new();
    for (number, line) in yaml.lines().enumerate() {
        match items.last_mut().filter(|_| !line.starts_with("- ")) {
            Some((_, item)) => item.extend([line, "\n"]),
            None => items.push((number + 1, format!("{line}\n"))),
        }
    }
    let mut parts = Vec::new();
    for (number, item) in items {
        // A comment before the first check is no check.
        if item.lines().all(|line| line.trim().is_empty() || line.starts_with(['#', '%']) || line == "---") {
            continue;
        }
        match serde_yaml::from_str::<Vec<Written>>(&item) {
            Ok(written) => parts.extend(written.into_iter().map(Ok)),
            Err(error) => parts.push(Err(format!(
                "the check that begins in line {number}: {}",
                text::excerpt(&error.to_string(), 200)
            ))),
        }
    }
    parts
}

impl Written {
    fn check(self) -> Option<Check> {
        let is_id = !self.id.is_empty() && self.id.len() <= MOST_ID && is_word(&self.id, "-_.");
        let subjects =
            [self.file.is_some(), self.sysctl.is_some(), self.mount.is_some(), self.sshd.is_some()];
        let subjects = subjects.into_iter().chain([!self.absent.is_empty(), !self.off.is_empty()]);
        if !is_id || subjects.filter(|is_there| *is_there).count() != 1 {
            return None;
        }
        let is_path =
            |path: &String| path.starts_with('/') && !path.contains("/../") && !text::has_hidden(path);
        let rule = if let Some(file) = self.file.filter(is_path) {
            let (mode, owner) = (self.mode?, self.owner?);
            let is_mode = mode.len() == 4 && u32::from_str_radix(&mode, 8).is_ok();
            let names = self.groups.iter().chain([&owner]);
            if !is_mode || self.groups.is_empty() || !names.into_iter().all(|name| accounts::is_name(name)) {
                return None;
            }
            Rule::File { file, mode, owner, groups: self.groups }
        } else if let Some(sysctl) = self.sysctl.filter(|key| is_word(key, "._-") && !key.contains("..")) {
            Rule::Sysctl { sysctl, values: some(self.values)? }
        } else if let Some(mount) = self.mount.filter(is_path) {
            Rule::Mount { mount, option: self.option.filter(|option| is_word(option, "_-="))? }
        } else if let Some(sshd) = self.sshd.filter(|key| is_word(key, "")) {
            if self.values.is_empty() == self.at_most.is_none() {
                return None;
            }
            let sshd = sshd.to_ascii_lowercase();
            Rule::Sshd { sshd, values: self.values, at_most: self.at_most, harden: self.harden }
        } else if !self.absent.is_empty() {
            self.absent.iter().all(|name| check_name(name).is_ok()).then_some(())?;
            Rule::Absent { absent: self.absent }
        } else {
            self.off.iter().all(|unit| is_word(unit, "-_.@:\\")).then_some(())?;
            Rule::Off { off: some(self.off)? }
        };
        Some(Check { id: self.id, severity: self.severity, reference: self.reference, rule })
    }
}

fn some(values: Vec<String>) -> Option<Vec<String>> {
    (!values.is_empty()).then_some(values)
}

/// True if a text consists of letters, digits and these characters, and begins with a letter or a digit.
fn is_word(text: &str, more: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

impl Rule {
    /// What is expected, in words.
    pub(super) fn expected(&self) -> String {
        match self {
            Self::File { file, mode, owner, groups } => {
                format!("{file}: mode {mode} at most, owner {owner}, group {}", groups.join(" or "))
            }
            Self::Sysctl { sysctl, values } => format!("{sysctl} = {}", values.join(" or ")),
            Self::Mount { mount, option } => format!("{mount} mounted with {option}"),
            Self::Absent { absent } => format!("none of {}", absent.join(", ")),
            Self::Off { off } => format!("{} neither runs nor is enabled", off.join(", ")),
            Self::Sshd { sshd, at_most: Some(most), .. } => format!("{sshd} {most} at most"),
            Self::Sshd { sshd, values, .. } => format!("{sshd} {}", values.join(" or ")),
        }
    }
}
