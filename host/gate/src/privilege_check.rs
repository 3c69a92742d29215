//! Finds out from the target which accounts are as good as root, and who controls the files that a text names. Where
//! the target gives no answer, an account counts as root, and a file as somebody else's.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path};
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

use host_base::{Command, Keep, Output, Privilege, passwd};
use host_policy::text::{DYNAMIC_USER_PREFIX, home_owner_of_file, home_owner_of_path};
use host_target::{Facts, FileKind, Found, Target};

/// The time for one query.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The groups that are as good as root, and the system accounts that are harmless. If the table can't be read, every
/// account counts as root.
static ROOT_EQUIVALENTS: LazyLock<Option<RootEquivalents>> =
    LazyLock::new(|| serde_yaml::from_str(include_str!("root_equivalents.yaml")).ok());

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RootEquivalents {
    /// The groups whose members are as good as root, with the reason.
    groups: BTreeMap<String, String>,
    harmless: Harmless,
}

/// System accounts and groups that don't lead to root, with their purpose.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Harmless {
    accounts: BTreeMap<String, String>,
    groups: BTreeMap<String, String>,
}

/// Whether an id is one for people. Lower ids belong to the system on all distributions, and so do those that Debian
/// reserves from 60000 on (Debian Policy, 9.2.2) and those that systemd gives to dynamic users. `nobody` is counted as
/// one for people.
fn is_peoples(number: u32) -> bool {
    matches!(number, 1000..=59_999 | 65_534 | 65_536..=u32::MAX)
}

/// The ids of dynamic users, see systemd.exec(5).
const DYNAMIC_NUMBERS: std::ops::RangeInclusive<u32> = 61_184..=65_519;

impl RootEquivalents {
    /// Whether an account owns only files of people, or of the administrator's own services.
    fn is_ordinary(&self, entry: &passwd::Entry) -> bool {
        is_peoples(entry.uid)
            || self.harmless.accounts.contains_key(&entry.name)
            || ["/home", "/srv"].iter().any(|place| {
                let below = entry.home.strip_prefix(place);
                below.is_ok_and(|below| {
                    below.components().next().is_some_and(|part| matches!(part, Component::Normal(_)))
                })
            })
    }
}

/// The privileges of the target's accounts, and the answers so far, for one plan.
pub(super) struct PrivilegeCheck<'a> {
    target: &'a Target,
    facts: &'a Facts,
    accounts: HashMap<String, Option<String>>,
}

impl<'a> PrivilegeCheck<'a> {
    /// A check that has asked nothing so far.
    pub fn new(target: &'a Target, facts: &'a Facts) -> Self {
        Self { target, facts, accounts: HashMap::new() }
    }

    /// The reason why an account is as good as root. None where it is not.
    pub async fn root_equivalence(&mut self, account: &str) -> Option<String> {
        if let Some(known) = self.accounts.get(account) {
            return known.clone();
        }
        let root_equivalence = match account.strip_prefix(DYNAMIC_USER_PREFIX) {
            Some(name) => self.dynamic(name).await,
            None => self.ask(account).await,
        };
        self.accounts.insert(account.to_owned(), root_equivalence.clone());
        root_equivalence
    }

    /// The same for a dynamic user. If the target has an account of this name, the unit runs as that account.
    async fn dynamic(&self, name: &str) -> Option<String> {
        let asked = [command("getent", &["passwd", "--", name], Privilege::Caller)];
        match self.target.run_all(&asked).await.into_iter().next()? {
            // Exit code 2 of getent(1): the name could not be found.
            Ok(output) if output.exit_code == 2 => self
                .group_power(name)
                .await
                .map(|why| format!("its dynamic user would have the name of the group {name}, which {why}")),
            Ok(output) if output.exit_code == 0 => {
                let entry = first_entry(&text(&output));
                let is_its_own = entry.is_some_and(|entry| DYNAMIC_NUMBERS.contains(&entry.uid));
                if is_its_own { None } else { self.ask(name).await }
            }
            _ => Some(format!("the target doesn't say whether there is an account {name}")),
        }
    }

    async fn ask(&self, account: &str) -> Option<String> {
        if account == self.facts.user && self.facts.root_available() {
            return Some(format!("{account} is the account that this server works as, with root's rights"));
        }
        let commands = [
            command("getent", &["passwd", "--", account], Privilege::Caller),
            command("id", &["--groups", "--name", "--", account], Privilege::Caller),
            command("id", &["--groups", "--", account], Privilege::Caller),
            command("sudo", &["-n", "-l", "-U", account], Privilege::RootIfAvailable),
        ];
        let mut answers = self.target.run_all(&commands).await.into_iter();
        let mut said = || {
            let output = answers.next()?.ok()?;
            (output.exit_code == 0).then(|| text(&output))
        };
        let (entry, groups, numbers) = (said(), said(), said());
        let entry = entry.as_deref().and_then(first_entry);
        let (Some(entry), Some(groups), Some(numbers)) = (entry, groups, numbers) else {
            return Some(format!("the target doesn't say who {account} is"));
        };
        if entry.uid == 0 {
            return Some(format!("{account} is another name of root's"));
        }
        let Some(roots) = ROOT_EQUIVALENTS.as_ref() else {
            return Some("who is root isn't known".to_owned());
        };
        if !roots.is_ordinary(&entry) {
            return Some(format!(
                "{account} is a system account, which may own files that root's programs trust"
            ));
        }
        let (groups, numbers) = (groups.split_whitespace(), numbers.split_whitespace());
        for (group, number) in groups.zip(numbers) {
            let number = number.parse().unwrap_or_default();
            // An account's own group reaches no more than the account, unless root's programs trust a group of that
            // name.
            let is_own = group == entry.name && !roots.groups.contains_key(group);
            if !is_own && let Some(why) = self.group(roots, group, number).await {
                return Some(format!("{account} is in the group {group}, which {why}"));
            }
        }
        match answers.next() {
            // Without sudo, nobody becomes root by it.
            Some(Err(problem)) if problem.code == "PROGRAM_NOT_FOUND" => None,
            Some(Ok(output)) if text(&output).contains("is not allowed to run sudo") => None,
            Some(Ok(output)) if text(&output).contains("may run the following commands") => {
                Some(format!("sudo allows {account} something"))
            }
            _ => Some(format!("the target doesn't say what sudo allows {account}")),
        }
    }

    /// Whether a path is a home directory itself, and not a file in one.
    pub async fn is_home(&self, path: &str) -> bool {
        let up = Path::new(path).parent().map(|up| up.to_string_lossy().into_owned());
        match (home_owner_of_path(path), up) {
            (Some(_), _) => home_owner_of_file(path).is_none(),
            (None, Some(up)) => self.home_owner(path).await.is_some() && self.home_owner(&up).await.is_none(),
            (None, None) => false,
        }
    }

    /// The account whose home directory a path is or lies in, by the target's accounts of people.
    pub async fn home_owner(&self, path: &str) -> Option<String> {
        let asked = [command("getent", &["passwd"], Privilege::Caller)];
        let answer = self.target.run_all(&asked).await.into_iter().next()?.ok()?;
        let people = passwd::parse(&text(&answer)).into_iter().filter(|entry| is_peoples(entry.uid));
        let homes = people.filter(|entry| {
            // A home directory such as `/` or `/nonexistent`, as `nobody` has it, belongs to nobody.
            let depth = entry.home.components().count();
            depth > 2 && Path::new(path).starts_with(&entry.home)
        });
        homes.max_by_key(|entry| entry.home.components().count()).map(|entry| entry.name)
    }

    /// The reason why members of a group may be as good as root. None where they are not. A group that doesn't exist
    /// gives only the rights that programs give to its name.
    pub async fn group_power(&self, group: &str) -> Option<String> {
        if let Some(by) = ROOT_EQUIVALENTS.as_ref().and_then(|roots| roots.groups.get(group)) {
            return Some(by.clone());
        }
        let asked = [command("getent", &["group", "--", group], Privilege::Caller)];
        let answer = self.target.run_all(&asked).await.into_iter().next()?;
        let line = match answer {
            // Exit code 2 of getent(1): the name could not be found.
            Ok(output) if output.exit_code == 2 => return None,
            Ok(output) if output.exit_code == 0 => text(&output),
            _ => return Some("the target gives no information about".to_owned()),
        };
        let mut fields = line.split(':');
        let (name, number) = (fields.next().unwrap_or_default(), fields.nth(1).unwrap_or_default());
        let Some(roots) = ROOT_EQUIVALENTS.as_ref() else { return Some("may be root's".to_owned()) };
        if let Some(why) = self.group(roots, name, number.parse().unwrap_or_default()).await {
            return Some(why);
        }
        // An account runs files in its home directory, and its own group may be able to write them.
        let asked = [command("getent", &["passwd", "--", name], Privilege::Caller)];
        let Some(Ok(answer)) = self.target.run_all(&asked).await.into_iter().next() else {
            return Some("the target doesn't tell whose it is".to_owned());
        };
        let owner = first_entry(&text(&answer)).filter(|entry| entry.gid.to_string() == number)?;
        let why = self.ask(&owner.name).await?;
        Some(format!("is the own group of {}: {why}", owner.name))
    }

    /// The same for a group with this name and number.
    async fn group(&self, roots: &RootEquivalents, name: &str, number: u32) -> Option<String> {
        if let Some(by) = roots.groups.get(name) {
            return Some(by.clone());
        }
        if is_peoples(number) || roots.harmless.groups.contains_key(name) {
            return None;
        }
        // An account's own group reaches no more than the account.
        let asked = [command("getent", &["passwd", "--", name], Privilege::Caller)];
        let answer = self.target.run_all(&asked).await.into_iter().next();
        let entry = answer.and_then(Result::ok).filter(|output| output.exit_code == 0);
        let entry = entry.as_ref().map(text);
        match entry.as_deref().and_then(first_entry) {
            Some(entry) if entry.uid != 0 && roots.is_ordinary(&entry) => None,
            _ => Some("is a system group, and may write files that root's programs trust".to_owned()),
        }
    }

    /// The reason why others may be able to change a program that root, or this account, would run. None where they
    /// can't.
    pub async fn program_risk(&self, path: &str, account: Option<&str>) -> Option<String> {
        let whose = account.filter(|account| !account.starts_with(DYNAMIC_USER_PREFIX)).unwrap_or("root");
        let metadata = match self.target.safe_for(path, whose).await {
            Err(problem) => return Some(problem.message),
            Ok(None) => return Some(format!("{path} isn't there")),
            Ok(Some(Found { kind: FileKind::File, metadata })) => metadata,
            Ok(Some(_)) => return Some(format!("{path} is no file")),
        };
        if metadata.owner != "root" && metadata.owner != whose {
            return Some(format!("{path} is {}'s", metadata.owner));
        }
        let written = metadata.mode & 0o022 != 0;
        written
            .then(|| format!("others than {} may write to {path} (mode {:o})", metadata.owner, metadata.mode))
    }

    /// The file or directory at a path, where root owns it and nobody else could replace it.
    pub async fn owned_by_root(&self, path: &str) -> Option<Found> {
        let found = self.target.safe_for(path, "root").await.ok().flatten()?;
        (found.metadata.owner == "root").then_some(found)
    }

    /// Whether there is certainly nothing at a path. A directory on the way that others can change leaves that
    /// uncertain.
    pub async fn is_absent(&self, path: &str) -> bool {
        matches!(self.target.safe_for(path, &self.facts.user).await, Ok(None))
    }

    /// The reason why not everybody may read a file: the file's own mode, or that of a directory on the way to it. None
    /// where everybody may. A file that doesn't exist has no secret contents.
    pub async fn secrecy(&self, path: &str) -> Option<String> {
        match self.target.safe_for(path, "root").await {
            Err(problem) => return Some(problem.message),
            Ok(None) => return None,
            Ok(Some(Found { kind: FileKind::File, metadata })) if metadata.mode & 0o004 != 0 => {}
            Ok(Some(_)) => return Some(format!("not everybody may read {path}")),
        }
        for directory in Path::new(path).ancestors().skip(1) {
            let directory = directory.to_string_lossy();
            match self.target.safe_for(&directory, "root").await {
                Ok(Some(Found { kind: FileKind::Directory, metadata })) if metadata.mode & 0o001 != 0 => {}
                _ => return Some(format!("not everybody may go into {directory}, where {path} is")),
            }
        }
        None
    }
}

fn first_entry(text: &str) -> Option<passwd::Entry> {
    passwd::parse(text).into_iter().next()
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
        output_buffer: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_systems_accounts_only_those_that_are_known_for_it_are_like_peoples() {
        let roots = ROOT_EQUIVALENTS.as_ref().expect("a table");
        for (line, is_ordinary) in [
            ("ada:x:1000:1000::/home/ada:/bin/bash", true),
            ("ada:x:4107:100::/nonexistent:/bin/bash", true),
            ("nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin", true),
            ("ceph:x:64045:64045::/var/lib/ceph:/usr/sbin/nologin", false),
            ("far:x:2000001:2000001::/home/far:/bin/bash", true),
            ("www-data:x:33:33::/var/www:/usr/sbin/nologin", true),
            ("wiki:x:996:996::/srv/wiki:/usr/sbin/nologin", true),
            ("push:x:995:995::/home/push:/usr/sbin/nologin", true),
            ("mail:x:8:8::/var/mail:/usr/sbin/nologin", false),
            ("unbound:x:105:112::/var/lib/unbound:/usr/sbin/nologin", false),
            ("_chrony:x:106:113::/var/lib/chrony:/usr/sbin/nologin", false),
            ("_apt:x:42:65534::/nonexistent:/usr/sbin/nologin", false),
            ("odd:x:990:990::/home:/bin/sh", false),
            ("odd:x:990:990::/home/../root:/bin/sh", false),
            ("odd:x:990:990::/homes/odd:/bin/sh", false),
            ("odd:x:990:990:::/bin/sh", false),
        ] {
            let entry = first_entry(line).expect("an account");
            assert_eq!(roots.is_ordinary(&entry), is_ordinary, "{line}");
        }
    }

    #[test]
    fn each_says_by_what_and_the_rules_know_the_groups() {
        let roots = ROOT_EQUIVALENTS.as_ref().expect("a table");
        assert!(roots.groups.values().all(|by| by.len() > 10));
        let policy = host_policy::Policy::builtin();
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
