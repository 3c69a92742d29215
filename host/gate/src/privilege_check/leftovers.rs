//! Finds what a former account has left behind, since a new one of that name or number gets it: jobs and units that name the
//! account, and files that belong to nobody.

use host_base::{Command, Privilege};
use host_policy::NewAccount;

use super::{PrivilegeCheck, SHOWN, command};
use host_text::visible::excerpt;

/// Files and directories where root's jobs, units and logins name accounts.
const NAMING: [&str; 13] = [
    "/etc/crontab",
    "/etc/anacrontab",
    "/etc/cron.d",
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
    "/etc/systemd/system",
    "/etc/ssh/sshd_config",
    "/etc/ssh/sshd_config.d",
    "/etc/logrotate.d",
    "/etc/tmpfiles.d",
    "/etc/sudoers.d",
];

/// The directories of programs and settings that no package brings.
const OWN: [&str; 3] = ["/etc", "/opt", "/usr/local"];

impl PrivilegeCheck<'_> {
    /// The reasons why a new account or group gets something that is there already. What the caller's account can't read
    /// isn't looked at.
    pub async fn leftovers(&self, new: &NewAccount) -> Vec<String> {
        let NewAccount { name, is_group, .. } = new;
        let answers = self.target.run_all(&[named(name), nobodys(*is_group)]).await;
        let mut found = Vec::new();
        for (answer, what) in
            answers.into_iter().zip(["names already", "belongs to nobody, and may become its own"])
        {
            let said = match &answer {
                Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
                Err(problem) if problem.code == "PROGRAM_NOT_FOUND" => Some(String::new()),
                Err(_) => None,
            };
            match said.as_deref().map(|said| said.lines().find(|line| line.starts_with('/'))) {
                None => found
                    .push(format!("makes {name}, and the target doesn't show what is there for it already")),
                Some(None) => {}
                Some(Some(path)) if what.starts_with("names") => {
                    found.push(format!("makes {name}, which {} {what}", excerpt(path, SHOWN)));
                }
                Some(Some(path)) => found.push(format!("makes {name}, and {} {what}", excerpt(path, SHOWN))),
            }
        }
        found
    }
}

/// Lists the files that have a name as a word.
fn named(name: &str) -> Command {
    let options = ["-r", "-l", "-w", "-F", "-s", "-m", "1", "-e", name, "--"];
    command("grep", &[&options[..], &NAMING].concat(), Privilege::Caller)
}

/// Finds a file whose owner or group has no name.
fn nobodys(is_group: bool) -> Command {
    let test: &[&str] = if is_group { &["-nogroup"] } else { &["(", "-nouser", "-o", "-nogroup", ")"] };
    command("find", &[&OWN[..], &["-xdev"], test, &["-print", "-quit"]].concat(), Privilege::Caller)
}
