//! Who an account of the target really is, and whose the files are that a text names. Both are asked of the target, and
//! what it doesn't say counts as root's, or as somebody else's.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

use super::policy::text::DYNAMIC;
use crate::target::{Facts, Found, Kind, Target};
use host_base::{Command, Keep, Output, Privilege};

/// For one question.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Accounts and groups that are as good as root, with the way in. An unreadable table makes everybody root.
static ROOTS: LazyLock<Option<Roots>> =
    LazyLock::new(|| serde_yaml::from_str(include_str!("roots.yaml")).ok());

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Roots {
    groups: BTreeMap<String, String>,
    accounts: BTreeMap<String, String>,
}

/// The answers of the target about accounts, for one plan.
pub(super) struct Standing<'a> {
    target: &'a Target,
    facts: &'a Facts,
    accounts: HashMap<String, Option<String>>,
}

impl<'a> Standing<'a> {
    /// Nothing was asked yet.
    pub fn new(target: &'a Target, facts: &'a Facts) -> Self {
        Self { target, facts, accounts: HashMap::new() }
    }

    /// By what an account is as good as root, if it is.
    pub async fn power(&mut self, account: &str) -> Option<String> {
        if account == DYNAMIC {
            return None;
        }
        if let Some(known) = self.accounts.get(account) {
            return known.clone();
        }
        let power = self.ask(account).await;
        self.accounts.insert(account.to_owned(), power.clone());
        power
    }

    async fn ask(&self, account: &str) -> Option<String> {
        if account == self.facts.user && self.facts.root_available() {
            return Some(format!("{account} is the account that this server works as, with root's rights"));
        }
        let commands = [
            command("id", &["--user", "--", account], Privilege::Caller),
            command("id", &["--groups", "--name", "--", account], Privilege::Caller),
            command("sudo", &["-n", "-l", "-U", account], Privilege::RootIfAvailable),
        ];
        let mut answers = self.target.run_all(&commands).await.into_iter();
        let mut said = || {
            let output = answers.next()?.ok()?;
            (output.exit_code == 0).then(|| text(&output))
        };
        let (uid, groups) = (said(), said());
        let (Some(uid), Some(groups)) = (uid, groups) else {
            return Some(format!("the target doesn't say who {account} is"));
        };
        if uid.trim() == "0" {
            return Some(format!("{account} is another name of root's"));
        }
        let Some(roots) = ROOTS.as_ref() else { return Some("who is root isn't known".to_owned()) };
        if let Some(by) = roots.accounts.get(account) {
            return Some(format!("{account} {by}"));
        }
        let group = groups.split_whitespace().find_map(|group| roots.groups.get_key_value(group));
        if let Some((group, by)) = group {
            return Some(format!("{account} is in the group {group}, which {by}"));
        }
        match answers.next() {
            // Without it nobody becomes root by it.
            Some(Err(problem)) if problem.code == "PROGRAM_NOT_FOUND" => None,
            Some(Ok(output)) if text(&output).contains("is not allowed to run sudo") => None,
            Some(Ok(output)) if text(&output).contains("may run the following commands") => {
                Some(format!("sudo allows {account} something"))
            }
            _ => Some(format!("it can't be told what sudo allows {account}")),
        }
    }

    /// Why a program that root, or this account, would run may be changed by others, if it may.
    pub async fn program(&self, path: &str, account: Option<&str>) -> Option<String> {
        let whose = account.filter(|account| *account != DYNAMIC).unwrap_or("root");
        let metadata = match self.target.safe_for(path, whose).await {
            Err(problem) => return Some(problem.message),
            Ok(None) => return Some(format!("{path} isn't there")),
            Ok(Some(Found { kind: Kind::File, metadata })) => metadata,
            Ok(Some(_)) => return Some(format!("{path} is no file")),
        };
        if metadata.owner != "root" && metadata.owner != whose {
            return Some(format!("{path} is {}'s", metadata.owner));
        }
        let written = metadata.mode & 0o022 != 0;
        written
            .then(|| format!("others than {} may write to {path} (mode {:o})", metadata.owner, metadata.mode))
    }

    /// What is at a path where that is root's own, and nobody else could put something else there.
    pub async fn of_roots(&self, path: &str) -> Option<Found> {
        let found = self.target.safe_for(path, "root").await.ok().flatten()?;
        (found.metadata.owner == "root").then_some(found)
    }

    /// Whether there is surely nothing at a path, nor by way of a directory that others can change.
    pub async fn is_absent(&self, path: &str) -> bool {
        matches!(self.target.safe_for(path, &self.facts.user).await, Ok(None))
    }

    /// Why not everybody may know what is in a file, if so. What isn't there yet has nothing in it.
    pub async fn is_secret(&self, path: &str) -> Option<String> {
        match self.target.safe_for(path, "root").await {
            Err(problem) => Some(problem.message),
            Ok(None) => None,
            Ok(Some(Found { kind: Kind::File, metadata })) if metadata.mode & 0o004 != 0 => None,
            Ok(Some(_)) => Some(format!("not everybody may read {path}")),
        }
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn command(program: &str, args: &[&str], privilege: Privilege) -> Command {
    Command {
        program: program.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Vec::new(),
        stdin: None,
        privilege,
        timeout: TIMEOUT,
        keep: Keep::Head,
        heard: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_says_by_what_and_the_rules_know_the_groups() {
        let roots = ROOTS.as_ref().expect("a table");
        assert!(roots.groups.values().chain(roots.accounts.values()).all(|by| by.len() > 10));
        let policy = crate::gate::policy::Policy::builtin();
        for group in roots.groups.keys() {
            for line in [
                format!("usermod --append --groups={group} -- ada"),
                format!("useradd --groups=audio,{group} -- ada"),
                format!("gpasswd --add=ada -- {group}"),
                format!("groupadd -- {group}"),
            ] {
                let argv: Vec<&str> = line.split(' ').collect();
                assert!(policy.verdict(&argv).risk >= Some(host_base::Risk::High), "{line}");
            }
        }
        assert!(!roots.groups.contains_key("adm"), "it only reads");
    }
}
