//! The accounts that may become root and can log in: root itself, and those that may do everything by sudo.

use std::cell::OnceCell;

use linux_sysadmin_sdk::accounts::{Group, User, logins::Logins};
use linux_sysadmin_sdk::sshd::{self, Settings};
use linux_sysadmin_sdk::sudoers::{self, Sudoers, rights::Identity};
use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

const USERS: CommandLine = CommandLine::new("getent passwd");
const GROUPS: CommandLine = CommandLine::new("getent group");

/// The most accounts whose settings are looked at.
const MOST: usize = 32;

/// Stands for every account that the configuration doesn't name.
const ANYBODY: &str = "nobody";

pub(super) fn grants(module: Module) -> Module {
    let sudo = "which accounts may become root";
    module
        .command(USERS.read("which accounts there are"))
        .command(GROUPS.read("which groups they are in"))
        .command(sshd::SETTINGS.read("sshd's settings for an account").as_root_if_available())
        .command(
            sshd::SETTINGS_AT_PORT
                .read("the same where a Match block asks for the port")
                .as_root_if_available(),
        )
        .path(PathGrant::read(sudoers::MAIN, sudo).as_root_if_available())
        .path(PathGrant::read(sudoers::DIRECTORY, sudo).as_root_if_available())
        .path(PathGrant::read("/etc/sudoers.d/*", sudo).as_root_if_available())
}

/// An account that may become root.
#[derive(Clone, Debug)]
pub(super) struct Administrator {
    pub user: User,
    /// The names of its groups.
    pub groups: Vec<String>,
}

/// The accounts, and sshd's settings for each of them from the address in use.
#[derive(Debug)]
pub(super) struct Survey {
    pub accounts: Vec<(Administrator, Settings)>,
    /// The settings for an account that the configuration doesn't name.
    pub anybody: Settings,
    /// What could not be looked at, one sentence each.
    pub unseen: Vec<String>,
    expired: OnceCell<Vec<String>>,
}

impl Survey {
    /// Looks at everything at once.
    ///
    /// Problems: `PROGRAM_NOT_FOUND`, `PRIVILEGE_REQUIRED`, `SSHD_STOPPED`, `UNEXPECTED_OUTPUT`, and `SSHD_CONFIG_INVALID` where
    /// sshd can't read its configuration.
    pub fn look(cx: &Context) -> Result<Self> {
        let mut unseen = Vec::new();
        let administrators = administrators(&mut unseen, cx)?;
        let names = administrators.iter().map(|account| account.user.name.as_str());
        let names: Vec<&str> = names.chain([ANYBODY]).collect();
        let mut settings = sshd::settings(&names, cx).into_iter();
        let mut accounts = Vec::new();
        for account in administrators {
            if let Some(settings) = settings.next() {
                accounts.push((account, settings.map_err(explained)?));
            }
        }
        let anybody = settings.next().transpose().map_err(explained)?.unwrap_or_default();
        let survey = Self { accounts, anybody, unseen, expired: OnceCell::new() };
        // Every sshd has a port. Without one, nothing is known of the other settings either.
        let is_said = survey.settings().all(|settings| settings.get("Port").is_some());
        if is_said { Ok(survey) } else { Err(Problem::unexpected("sshd -T", "no settings")) }
    }

    /// The accounts that have expired. They are asked for once, by the first who needs them.
    pub fn expired(&self, cx: &Context) -> &[String] {
        self.expired.get_or_init(|| Logins::look(None, cx).ended(cx.now()))
    }

    /// All settings that were asked for.
    pub fn settings(&self) -> impl Iterator<Item = &Settings> {
        self.accounts.iter().map(|(_, settings)| settings).chain([&self.anybody])
    }
}

/// The commands that don't wait for another one.
pub(super) fn first_looks() -> [Command; 2] {
    [USERS.command(), GROUPS.command()]
}

fn administrators(unseen: &mut Vec<String>, cx: &Context) -> Result<Vec<Administrator>> {
    let [users, groups] = cx.run_each(first_looks());
    let (users, groups) = (users?.success("getent passwd")?, groups?.success("getent group")?);
    let said = users.text();
    let users: Vec<User> = said.lines().filter_map(User::parse).collect();
    if !users.iter().any(|user| user.uid == 0) {
        return Err(Problem::unexpected("getent passwd", &said));
    }
    let groups: Vec<Group> = groups.text().lines().filter_map(Group::parse).collect();
    let rules = match Sudoers::read(Privilege::RootIfAvailable, cx) {
        Ok(sudoers) => sudoers.map(|sudoers| sudoers.rules()),
        Err(problem) => {
            unseen.push(format!("who may become root by sudo: {}", problem.message));
            None
        }
    };
    let mut found: Vec<Administrator> = Vec::new();
    for user in users {
        let identity = Identity::of(&user, &groups);
        let by_sudo = || rules.as_ref().is_some_and(|rules| rules.standing(&identity).all);
        if user.has_login_shell() && (user.uid == 0 || by_sudo()) {
            let groups = identity.groups.iter().map(|(name, _)| name.clone()).collect();
            found.push(Administrator { user, groups });
        }
    }
    found.sort_by_key(|account| account.user.uid != 0);
    if found.len() > MOST {
        unseen.push(format!("{} of {} accounts that may become root", found.len() - MOST, found.len()));
        found.truncate(MOST);
    }
    Ok(found)
}

/// The reason why sshd doesn't tell its settings, as a problem with what helps.
fn explained(problem: Problem) -> Problem {
    let said = problem.message.as_str();
    // A host key that can't be loaded for another reason is named.
    let has_no_keys = said.contains("no hostkeys available") && !said.contains("Unable to load host key");
    if problem.code == "PROGRAM_NOT_FOUND" {
        return problem.remedy("pkg_install package=openssh-server");
    }
    if problem.category == Category::Privilege || said.contains("Permission denied") || has_no_keys {
        return Problem::new("PRIVILEGE_REQUIRED", Category::Privilege, "sshd tells its settings to root only")
            .remedy(
                "Allow this account to run the module's commands through sudo: `linux-sysadmin modules sudoers security` \
                 prints the rules",
            );
    }
    if said.contains("Missing privilege separation directory") {
        let message = "sshd tells its settings only while it runs: /run/sshd isn't there";
        return Problem::new("SSHD_STOPPED", Category::State, message).remedy("svc_start service=ssh");
    }
    if problem.code != "COMMAND_FAILED" {
        return problem;
    }
    let said = said.split_once(": ").map_or(said, |(_, said)| said);
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).take(5).collect();
    Problem::new("SSHD_CONFIG_INVALID", Category::State, lines.join("; "))
        .remedy("Mend that line first: sshd doesn't start again with it")
}
