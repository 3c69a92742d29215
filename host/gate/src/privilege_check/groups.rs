//! Finds out whether the members of a group are as good as root, and whose group it is.

use host_base::{Privilege, passwd};

use super::{
    PrivilegeCheck, ROOT_EQUIVALENTS, RootEquivalents, SHOWN, command, first_entry, is_peoples, text,
};
use crate::account_tables::{GroupEntry, holders, parse_groups};
use host_text::visible::excerpt;

impl PrivilegeCheck<'_> {
    /// The reason why members of a group may be as good as root: by the group itself, or because somebody who has it is. None
    /// where they are not. A group that doesn't exist gives only the rights that programs give to its name, or
    /// that containers give to its number.
    pub async fn group_power(&mut self, group: &str) -> Option<String> {
        let Some(roots) = ROOT_EQUIVALENTS.as_ref() else { return Some("may be root's".to_owned()) };
        if let Some(by) = roots.groups.get(group) {
            return Some(by.clone());
        }
        let names = match self.sudo_names().await {
            Ok(names) => names,
            Err(part) => {
                let part = excerpt(&part, SHOWN);
                return Some(format!("sudo's rules may name, which the target doesn't show all of: {part}"));
            }
        };
        let is_named = |name: &str, number: Option<u32>| {
            let is_named = names.has_name(name) || number.is_some_and(|number| names.has_number(number));
            is_named.then(|| "sudo's rules name".to_owned())
        };
        let found = match self.group_entry(group).await {
            Ok(Some(found)) => found,
            Ok(None) => match (group.parse().ok(), is_named(group, group.parse().ok())) {
                (Some(number), None) => return self.container_power(number).await,
                (_, named) => return named,
            },
            Err(()) => return Some("the target gives no information about".to_owned()),
        };
        if let Some(why) = self.group(roots, &found.name, found.gid).await {
            return Some(why);
        }
        if let Some(named) = is_named(&found.name, Some(found.gid)) {
            return Some(named);
        }
        if roots.harmless.groups.contains_key(&found.name) {
            return None;
        }
        // An account runs files in its home directory, and its groups may be able to write them.
        let Some(accounts) = self.passwd().await else {
            return Some("the target doesn't tell who has".to_owned());
        };
        for holder in holders(&found, &accounts) {
            if let Some(why) = self.account_power(holder).await {
                return Some(format!("{holder} has as well: {why}"));
            }
        }
        None
    }

    /// A group by its name or number. None where the target has no such group; an error where it doesn't say.
    pub(super) async fn group_entry(&self, group: &str) -> Result<Option<GroupEntry>, ()> {
        let asked = [command("getent", &["group", "--", group], Privilege::Caller)];
        match self.target.run_all(&asked).await.into_iter().next() {
            // Exit code 2 of getent(1): the name could not be found.
            Some(Ok(output)) if output.exit_code == 2 => Ok(None),
            Some(Ok(output)) if output.exit_code == 0 => {
                parse_groups(&text(&output)).into_iter().next().map(Some).ok_or(())
            }
            _ => Err(()),
        }
    }

    /// The reason why members of a group with this name and number may be as good as root, by the group itself.
    pub(super) async fn group(&mut self, roots: &RootEquivalents, name: &str, number: u32) -> Option<String> {
        if let Some(by) = roots.groups.get(name) {
            return Some(by.clone());
        }
        if is_peoples(number) || roots.harmless.groups.contains_key(name) {
            return None;
        }
        // An account's own group reaches no more than the account. It has the account's name and is its primary group.
        let entry = self.passwd().await.and_then(|accounts| {
            let is_own = |entry: &&passwd::Entry| entry.name == name && entry.gid == number;
            accounts.iter().find(is_own).cloned()
        });
        match entry {
            Some(entry) if entry.uid != 0 && self.is_ordinary(roots, &entry).await => None,
            _ => Some("is a system group, and may write files that root's programs trust".to_owned()),
        }
    }

    /// The reason why a command that runs as an account in a group has more rights than the account. None where the group is
    /// the account's primary one, whatever their names are.
    pub async fn group_beyond(&self, account: &str, group: &str) -> Option<String> {
        let asked = [
            command("getent", &["passwd", "--", account], Privilege::Caller),
            command("getent", &["group", "--", group], Privilege::Caller),
        ];
        let answers = self.answers(&asked).await;
        let gids = answers.as_deref().and_then(|answers| match answers {
            [entry, group] => Some((first_entry(entry)?.gid, parse_groups(group).into_iter().next()?.gid)),
            _ => None,
        });
        match gids {
            Some((own, gid)) if own == gid => None,
            Some(_) => Some(format!("runs in the group {group}, which is not {account}'s own")),
            None => Some(format!("runs in the group {group}, and the target doesn't say whose it is")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
