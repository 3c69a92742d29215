//! Private files: their group and others may not read them, and root's rights would give away what is in them.
//!
//! Such a file is often nothing but a password, a token or a key, under a name that no list of secrets has. So it counts as
//! a secret unless something says that it is none: a package brings it, a profile names it as a service's configuration, or
//! a glob of `open_files.json` covers it. Metadata is told of every file.

use std::sync::LazyLock;

use linux_sysadmin_sdk::knowledge::Profile;
use linux_sysadmin_sdk::knowledge::config_paths::covers;
use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use crate::closed::ClosedDirectories;
use crate::find::{DEEPEST, Kind, to_depth};
use crate::places::{look, shown};
use crate::{owner, service};

/// The bits by which the group and others read a file.
const GROUP_READS: u32 = 0o040;
const OTHERS_READ: u32 = 0o004;
/// Groups that usually have no member but root.
const CLOSED_GROUPS: [&str; 3] = ["root", "shadow", "0"];

#[derive(Deserialize)]
struct Open {
    globs: Vec<String>,
}

static OPEN: LazyLock<Vec<Open>> =
    LazyLock::new(|| serde_json::from_str(include_str!("open_files.json")).unwrap_or_default());

/// Refuses a private file, of which nothing is shown, compared or copied.
pub(crate) fn must_be_open(path: &str, found: &Metadata, cx: &Context) -> Result<()> {
    match is_private(path, found, cx) {
        true => Err(refusal(path, "its contents are neither shown nor compared nor copied")
            .remedy(format!(
                "Read it by command_run argv=[\"cat\", \"{}\"] as_root=true, which asks a person",
                shown(path)
            ))
            .remedy("file_stat, file_move and file_remove work without its contents")),
        false => Ok(()),
    }
}

/// Refuses to move a private file to a path by which it would count as no secret.
pub(crate) fn must_stay_private(path: &str, to: &str, found: &Metadata, cx: &Context) -> Result<()> {
    let is_shown = match found.is_dir {
        false => is_private(path, found, cx) && is_known(to, cx),
        true => {
            let tree = to_depth(path, DEEPEST, cx)?;
            let profiles = cx.detected();
            let becomes_known = |name: &str| {
                let [before, after] = [path, to].map(|directory| format!("{directory}/{name}"));
                is_named(&after, &profiles) && !is_named(&before, &profiles)
            };
            let closed =
                tree.items.iter().filter(|item| item.kind == Kind::File && is_closed(item.mode, &item.group));
            closed.into_iter().any(|item| becomes_known(&item.path)) || (tree.is_cut && becomes_known(".any"))
        }
    };
    match is_shown {
        true => Err(refusal(path, &format!("below {} its contents would be shown", shown(to)))
            .remedy("Move it to another path, or use command_run, which asks a person")),
        false => Ok(()),
    }
}

fn refusal(path: &str, what: &str) -> Problem {
    let message = format!(
        "{} is a private file: only its owner and root may read it, and no package, no profile of a service and no list says that it \
         holds no secret; {what}",
        shown(path)
    );
    Problem::new("PRIVATE_FILE", Category::Denied, message)
}

fn is_private(path: &str, found: &Metadata, cx: &Context) -> bool {
    let closed = || ClosedDirectories::above([path], cx).hold(path);
    if is_listed(path) || !is_closed(found.mode, &found.group) && !closed() {
        return false;
    }
    let used = look(path, cx, |privilege| {
        cx.files_as(privilege.clone()).stat_all(&[path]).remove(0).map(|_| privilege)
    });
    gives_away(&found.owner, &used.unwrap_or(Privilege::Root), cx) && !is_known(path, cx)
}

/// Whether a file that is read with these rights is private unless it [is known](is_known).
pub(crate) fn may_be_private(
    path: &str,
    found: &Metadata,
    used: &Privilege,
    directories: &ClosedDirectories,
    cx: &Context,
) -> bool {
    let is_closed = is_closed(found.mode, &found.group) || directories.hold(path);
    is_closed && !is_listed(path) && gives_away(&found.owner, used, cx)
}

/// Whether something says that a file holds no secret.
pub(crate) fn is_known(path: &str, cx: &Context) -> bool {
    is_named(path, &cx.detected()) || owner::package(path, cx).is_some()
}

fn is_named(path: &str, profiles: &[Profile]) -> bool {
    is_listed(path) || profiles.iter().any(|profile| service::entry(profile, path).is_some())
}

fn is_listed(path: &str) -> bool {
    OPEN.iter().flat_map(|open| &open.globs).any(|glob| covers(glob, path))
}

fn is_closed(mode: u32, group: &str) -> bool {
    mode & OTHERS_READ == 0 && (mode & GROUP_READS == 0 || CLOSED_GROUPS.contains(&group))
}

/// Whether reading with these rights shows more than the account in use may read. Root's own rights count as more also where
/// root is the account.
fn gives_away(owner: &str, used: &Privilege, cx: &Context) -> bool {
    let account = cx.account().unwrap_or_else(|_| "root".to_owned());
    match used {
        Privilege::Caller => account == "root",
        Privilege::User(user) => user == "root",
        _ => account == "root" || account != owner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn what_root_reads_for_another_account_may_be_private() {
        let bob = || Privilege::User("bob".into());
        for (account, owner, mode, used, expected) in [
            ("ada", "root", 0o600, Privilege::RootIfAvailable, true),
            ("ada", "root", 0o400, Privilege::Root, true),
            ("ada", "zabbix", 0o700, Privilege::RootIfAvailable, true),
            ("ada", "root", 0o640, Privilege::RootIfAvailable, true),
            ("ada", "zabbix", 0o640, Privilege::RootIfAvailable, false),
            ("ada", "root", 0o604, Privilege::RootIfAvailable, false),
            ("ada", "ada", 0o600, Privilege::RootIfAvailable, false),
            ("ada", "ada", 0o600, Privilege::Caller, false),
            ("ada", "bob", 0o600, bob(), false),
            ("root", "root", 0o600, Privilege::Caller, true),
            ("root", "root", 0o600, Privilege::RootIfAvailable, true),
            ("root", "bob", 0o600, bob(), false),
        ] {
            let cx = FakeTarget::new().account(account).context();
            let found = Metadata {
                size: 1,
                mode,
                owner: owner.into(),
                group: owner.into(),
                modified_unix: 0,
                is_dir: false,
                is_symlink: false,
            };
            let case = format!("{account} {owner} {mode:o} {used:?}");
            let none = ClosedDirectories::default();
            assert_eq!(may_be_private("/etc/x", &found, &used, &none, &cx), expected, "{case}");
            assert!(!may_be_private("/etc/sudoers.d/x", &found, &used, &none, &cx), "{case}");
        }
    }

    #[test]
    fn a_list_names_files_that_hold_no_secret() {
        for path in [
            "/var/log/audit/audit.log",
            "/var/log/auth.log.1",
            "/var/log/nginx/access.log-20260101.gz",
            "/var/log/httpd/error_log",
            "/var/log/syslog.2.gz",
            "/etc/sudoers",
            "/etc/cron.d/job",
            "/etc/ssh/sshd_config.d/50-redhat.conf",
            "/etc/sysctl.d/99-x.conf",
            "/etc/audit/rules.d/x.rules",
            "/etc/sysconfig/network-scripts/ifcfg-eth0",
            "/proc/1/io",
        ] {
            assert!(is_listed(path), "{path}");
        }
        for path in [
            "/etc/rsyncd.secrets",
            "/var/log/backup/pw",
            "/var/log/shadow.bak",
            "/var/log/installer/cdebconf/questions.dat",
            "/etc/sysconfig/network-scripts/keys-wlan0",
            "/etc/ssh/ssh_host_rsa_key",
            "/etc/ssh/backup",
            "/etc/cron.d/sub/x",
            "/root/.ssh/deploy",
            "/etc/audit/rules.d/key",
        ] {
            assert!(!is_listed(path), "{path}");
        }
    }
}
