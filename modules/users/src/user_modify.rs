//! `user_modify`: changes the fields of an account, its groups and its name, in one plan that can be undone.

use linux_sysadmin_sdk::accounts::expiry::Expiry;
use linux_sysadmin_sdk::accounts::logins::Logins;
use linux_sysadmin_sdk::accounts::{self, check_user};
use linux_sysadmin_sdk::prelude::*;

use crate::accounts::{Accounts, User};
use crate::files::{self, Count};
use crate::lockout::LockoutCheck;
use crate::plan::{self, state};
use crate::processes::Processes;
use crate::shadow_utils::{self, Fields};
use crate::user_create::must_be_new_home;
use crate::user_delete::must_be_own_home;
use crate::validate;

/// Groups that give rights like root's, and why.
const MIGHTY: [(&str, &str); 12] = [
    ("root", "may write what is root's group's"),
    ("sudo", "is usually let run everything by sudo"),
    ("wheel", "is usually let run everything by sudo and su"),
    ("admin", "is usually let run everything by sudo"),
    ("docker", "amounts to root: a container can mount everything"),
    ("lxd", "amounts to root: a container can mount everything"),
    ("incus-admin", "amounts to root: a container can mount everything"),
    ("disk", "amounts to root: it reads and writes the disks past all permissions"),
    ("shadow", "reads password hashes"),
    ("kmem", "reads the kernel's memory"),
    ("libvirt", "amounts to root: a virtual machine can have any disk"),
    ("systemd-journal", "reads all logs"),
];

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ModifyArgs {
    /// The account as it is
    user: String,
    /// Login shell, absolute
    shell: Option<String>,
    /// Full name
    comment: Option<String>,
    /// New home directory
    home: Option<String>,
    /// With its contents, default true
    move_home: Option<bool>,
    /// Groups to join
    #[serde(default)]
    add_groups: Vec<String>,
    /// Groups to leave
    #[serde(default)]
    remove_groups: Vec<String>,
    /// YYYY-MM-DD or never
    expires: Option<String>,
    /// New name of the account
    rename: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Modified {
    user: String,
    /// The changes, as `shell: /bin/sh → /bin/bash`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<String>,
    groups: Vec<String>,
    /// The action in a dry run, where nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

pub(crate) fn user_modify(args: ModifyArgs, cx: &Context) -> Result<Noted<Modified>> {
    check_user(&args.user)?;
    args.comment.as_deref().map(validate::must_be_comment).transpose()?;
    let expires = args.expires.as_deref().map(Expiry::read).transpose()?;
    args.rename.as_deref().map(validate::must_be_new_user).transpose()?;
    args.home.as_deref().map(must_be_new_home).transpose()?;
    if let Some(shell) = &args.shell {
        validate::must_be_shell(shell, &validate::shells(&cx.read("/etc/shells").unwrap_or_default()))?;
    }
    if let Some(both) = args.add_groups.iter().find(|group| args.remove_groups.contains(group)) {
        let message = format!("{both} is in add_groups and in remove_groups: expected it in one of them");
        return Err(Problem::validation("INVALID_ARGUMENTS", message));
    }
    let (accounts, user) = Accounts::look(cx)?.with(&args.user, cx)?;
    let accounts = accounts.with_groups(args.add_groups.iter().chain(&args.remove_groups), cx)?;
    let new = Modification::of(&args, expires, &user, &accounts, cx)?;
    if new.is_nothing_asked {
        let message = "nothing is to be changed: expected shell, comment, home, expires, rename, add_groups or remove_groups";
        return Err(Problem::validation("NOTHING_TO_CHANGE", message));
    }
    let mut data = Modified {
        user: user.name.clone(),
        changed: new.changed.clone(),
        groups: accounts.secondary(&user).into_iter().map(str::to_owned).collect(),
        would: None,
    };
    if new.changed.is_empty() {
        let notes = vec![format!("{} is as it was asked for already: nothing was changed", user.name)];
        return Ok(Noted { data, notes });
    }
    let change = new.plan(&user, accounts, cx)?;
    let applied = plan::apply(change, cx)?;
    let mut notes = Vec::new();
    if applied.dry_run {
        data.would = Some("modify");
        return Ok(Noted { data, notes });
    }
    let name = new.rename.clone().unwrap_or(user.name);
    let after = Accounts::look(cx)?;
    if let Some(user) = after.user(&name) {
        data.groups = after.secondary(user).into_iter().map(str::to_owned).collect();
    }
    if !new.joins.is_empty() || !new.leaves.is_empty() {
        notes.push("sessions that are open keep the groups they began with".to_owned());
    }
    data.user = name;
    Ok(Noted { data, notes })
}

/// The requested changes of an account.
struct Modification {
    fields: Fields,
    /// The current values of the fields that change.
    former: Fields,
    joins: Vec<String>,
    leaves: Vec<String>,
    rename: Option<String>,
    changed: Vec<String>,
    is_nothing_asked: bool,
}

impl Modification {
    fn of(
        args: &ModifyArgs,
        expires: Option<Expiry>,
        user: &User,
        accounts: &Accounts,
        cx: &Context,
    ) -> Result<Self> {
        let mut new = Self {
            fields: Fields::default(),
            former: Fields::default(),
            joins: Vec::new(),
            leaves: Vec::new(),
            rename: args.rename.clone().filter(|name| *name != user.name),
            changed: Vec::new(),
            is_nothing_asked: args.rename.is_none()
                && expires.is_none()
                && [&args.shell, &args.comment, &args.home].iter().all(|field| field.is_none())
                && args.add_groups.is_empty()
                && args.remove_groups.is_empty(),
        };
        let mut set = |what: &str, wanted: &Option<String>, is: &str| {
            let wanted = wanted.clone().filter(|wanted| wanted != is);
            new.changed.extend(wanted.as_ref().map(|wanted| format!("{what}: {is} → {wanted}")));
            wanted.map(|wanted| (wanted, is.to_owned()))
        };
        if let Some((comment, former)) = set("comment", &args.comment, &user.comment) {
            (new.fields.comment, new.former.comment) = (Some(comment), Some(former));
        }
        if let Some((shell, former)) = set("shell", &args.shell, &user.shell) {
            (new.fields.shell, new.former.shell) =
                (Some(shell), Some(former).filter(|former| !former.is_empty()));
        }
        if let Some((home, former)) = set("home", &args.home, &user.home) {
            (new.fields.home, new.former.home) = (Some(home), Some(former));
            new.fields.move_home = args.move_home.unwrap_or(true);
        }
        set("user", &args.rename, &user.name);
        if let Some(expires) = expires {
            let former = Logins::look(Some(&user.name), cx).of(&user.name).expires;
            if former.as_ref() != Some(&expires) {
                let is = former.as_ref().map_or_else(|| "unknown".to_owned(), Expiry::to_string);
                new.changed.push(format!("expires: {is} → {expires}"));
                (new.fields.expires, new.former.expires) = (Some(expires), former);
            }
        }
        let is_in = |group: &str| -> Result<bool> {
            let group = accounts.known_group(group)?;
            Ok(group.members.contains(&user.name))
        };
        for group in &args.add_groups {
            if !is_in(group)? && accounts.group_name(user.gid) != *group {
                new.joins.push(group.clone());
                new.changed.push(format!("joins {group}"));
            }
        }
        for group in &args.remove_groups {
            if is_in(group)? {
                new.leaves.push(group.clone());
                new.changed.push(format!("leaves {group}"));
            } else if accounts.group_name(user.gid) == *group {
                let message = format!("{group} is {}'s primary group, which it can't leave", user.name);
                return Err(state("PRIMARY_GROUP", message));
            }
        }
        Ok(new)
    }

    /// Makes the plan, with warnings about what the change gives. Refuses a change that would lock somebody out.
    fn plan(&self, user: &User, accounts: Accounts, cx: &Context) -> Result<Change> {
        let name = &user.name;
        let is_fields = !self.fields.is_empty() || self.rename.is_some();
        if is_fields {
            accounts.must_be_local(user)?;
        }
        for group in self.joins.iter().chain(&self.leaves) {
            accounts.must_be_local_group(accounts.known_group(group)?)?;
        }
        if user.uid == 0
            && (self.rename.is_some() || Fields { comment: None, ..self.fields.clone() } != Fields::default())
        {
            let message =
                format!("{name} is root (uid 0): its shell, home, expiry and name aren't changed here");
            return Err(Problem::new("PROTECTED_ACCOUNT", linux_sysadmin_sdk::Category::Denied, message));
        }
        if let Some(other) = self.rename.as_ref().and_then(|rename| accounts.user(rename)) {
            return Err(state("USER_EXISTS", format!("there is an account {} already", other.name)));
        }
        let moves = self.fields.home.as_ref();
        if let Some(home) = moves
            && !files::stat(&[home], cx)?.is_empty()
        {
            return Err(state(
                "HOME_EXISTS",
                format!("{home} is there already: expected a path where there is nothing"),
            ));
        }
        if self.rename.is_some() || moves.is_some() {
            must_be_idle(user, "renamed, and its home not moved,", cx)?;
        }
        let lockout = LockoutCheck::look(accounts, cx)?;
        if self.fields.shell.as_ref().is_some_and(|shell| accounts::NO_LOGIN.contains(&shell.as_str())) {
            lockout.must_not_be_in_use(user, "shut out")?;
        }
        let after = self.after(user, &lockout, cx.now());
        lockout.must_keep(&after, lockout.sudoers.as_ref())?;
        let mut change = plan::new(format!("Modify the account {name}: {}", self.changed.join(", ")));
        let gained = lockout.gained(Some(user), &after, self.rename.as_ref().unwrap_or(name));
        change = gained.into_iter().fold(change, |change, what| change.risk(Risk::High).warning(what));
        if lockout.accounts.ranges.is_system_uid(user.uid) {
            change = change.risk(Risk::High).warning(format!(
                "{name} is a system account (uid {}): a service may depend on it as it is",
                user.uid
            ));
        }
        for group in &self.joins {
            change = joining(change, group);
            let undo = shadow_utils::LEAVE.with([name, group]).as_root();
            change = change.step(plan::step(shadow_utils::JOIN.with([name, group]).as_root()).undo(undo));
        }
        for group in &self.leaves {
            let undo = shadow_utils::JOIN.with([name, group]).as_root();
            change = change.step(plan::step(shadow_utils::LEAVE.with([name, group]).as_root()).undo(undo));
        }
        if !self.fields.is_empty() {
            let mut fields = self.fields.clone();
            let mut former = self.former.clone();
            let home = if moves.is_some() { files::stat(&[&user.home], cx)? } else { Vec::new() };
            // A home that doesn't exist can't be moved.
            fields.move_home &= !home.is_empty();
            if let Some(home) = home.first().filter(|_| fields.move_home) {
                must_be_own_home(user, home, &lockout.accounts)
                    .map_err(|problem| problem.remedy("Leave it where it is: move_home=false"))?;
                let held = Count::of(&home.path, cx)?;
                change = change.warning(format!(
                    "{} ({}, {}) is moved, and what names it elsewhere isn't",
                    home.path,
                    held.text(),
                    held.size()
                ));
                // usermod writes /etc/passwd before it moves the home, and doesn't undo that where the move fails.
                change = change.after_undo(former.command(name));
            }
            former.move_home = fields.move_home;
            let step = plan::step(fields.command(name));
            change = change.step(if former.is_empty() { step } else { step.undo(former.command(name)) });
        }
        if let Some(rename) = &self.rename {
            change = change.warning(format!(
                "the group, the home and the mail of {name} keep their names; what names it elsewhere (sudoers, crontab, \
                 sshd_config) means nobody afterwards"
            ));
            let undo = shadow_utils::RENAME.with([name, rename]).as_root();
            change = change.step(plan::step(shadow_utils::RENAME.with([rename, name]).as_root()).undo(undo));
        }
        Ok(change)
    }

    /// The accounts after the change.
    fn after(&self, user: &User, lockout: &LockoutCheck, now: f64) -> Accounts {
        let mut after = lockout.accounts.clone();
        for group in &mut after.groups {
            if self.leaves.contains(&group.name) {
                group.members.retain(|member| *member != user.name);
            }
            if self.joins.contains(&group.name) {
                group.members.push(user.name.clone());
            }
        }
        let name = self.rename.as_ref().unwrap_or(&user.name);
        for group in &mut after.groups {
            for member in group.members.iter_mut().filter(|member| **member == user.name) {
                member.clone_from(name);
            }
        }
        let is_over = self.fields.expires.as_ref().is_some_and(|expires| expires.is_over(now));
        after.users.retain(|other| other.name != user.name || !is_over);
        if let Some(own) = after.users.iter_mut().find(|other| other.name == user.name) {
            own.name.clone_from(name);
            if let Some(shell) = &self.fields.shell {
                own.shell.clone_from(shell);
            }
        }
        after
    }
}

/// Refuses an account with processes, because they hold on to its name and home.
pub(crate) fn must_be_idle(user: &User, what: &str, cx: &Context) -> Result<()> {
    let processes = Processes::of(user.uid, cx)?;
    if processes.count == 0 {
        return Ok(());
    }
    let message = format!(
        "{} isn't {what} while {} of its processes run: {}",
        user.name,
        processes.count,
        processes.some.join(", ")
    );
    Err(state("USER_BUSY", message)
        .remedy("End its sessions and services first")
        .remedy(format!("To keep somebody out now: user_lock user={}", user.name)))
}

/// Raises the risk where a group gives rights like root's.
pub(crate) fn joining(change: Change, group: &str) -> Change {
    match MIGHTY.iter().find(|(name, _)| *name == group) {
        Some((_, why)) => change.risk(Risk::High).warning(format!("the group {group} {why}")),
        None => change,
    }
}
