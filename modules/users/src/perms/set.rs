//! `perms_set`: sets mode, owner and group of one path, or of everything in a directory. It follows no symlink.

use linux_sysadmin_sdk::accounts::{check_group, check_user};
use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use crate::accounts::Accounts;
use crate::files::{self, Count, Kind, Stat};
use crate::plan::{self, state};
use crate::validate;

use super::check;
use super::mode::{Mode, exactly, symbolic};
use super::path_walk::PathWalk;
use super::protected_paths;

const CHOWN: CommandLine = CommandLine::new("chown --no-dereference -- <user>:<group> <path>");
const CHOWN_ALL: CommandLine =
    CommandLine::new("chown --recursive -P --no-dereference -- <user>:<group> <path>");
const CHOWN_USER_ALL: CommandLine =
    CommandLine::new("chown --recursive -P --no-dereference -- <user> <path>");
const CHGRP_ALL: CommandLine = CommandLine::new("chgrp --recursive -P --no-dereference -- <group> <path>");
const CHMOD_ALL: CommandLine = CommandLine::new("chmod --recursive -- <mode> <path>");

const SETUID_SETGID: u32 = 0o6000;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct SetArgs {
    /// Absolute path
    path: String,
    /// As 0640, or u+rwX,go-w
    mode: Option<String>,
    /// New owner
    owner: Option<String>,
    /// New group
    group: Option<String>,
    /// Sets everything below too
    #[serde(default)]
    recursive: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Set {
    path: String,
    /// The mode of the path itself, after the change.
    mode: String,
    symbolic: String,
    owner: String,
    group: String,
    /// The former permissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    former: Option<String>,
    /// The contents of the tree, including its top.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Count>,
    /// The action in a dry run, where nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

pub(crate) fn grants() -> Vec<CommandGrant> {
    let moderate = |pattern: &str, reason: &str| CommandGrant::change(pattern, Risk::Moderate, reason);
    let hole = files::hole();
    vec![
        moderate(&format!("chmod -- <mode> {hole}"), "to set a mode, and to undo that"),
        moderate(&format!("chmod -- <mode> {hole}"), "to set modes as the owner of the directory")
            .as_user("*"),
        moderate(
            &format!("chown --no-dereference -- <user>:<group> {hole}"),
            "to set an owner and a group, and to undo that",
        ),
        CHMOD_ALL.change(Risk::High, "to set the mode of everything in a directory"),
        CHMOD_ALL.change(Risk::High, "to set modes as the owner of the directory").as_user("*"),
        CHOWN_ALL.change(Risk::High, "to set owner and group of everything in a directory"),
        CHOWN_USER_ALL.change(Risk::High, "to set the owner of everything in a directory"),
        CHGRP_ALL.change(Risk::High, "to set the group of everything in a directory"),
    ]
}

/// The requested permissions of a path.
struct RequestedPermissions {
    path: String,
    mode: Option<(String, Mode)>,
    owner: Option<String>,
    group: Option<String>,
    recursive: bool,
}

pub(crate) fn perms_set(args: SetArgs, cx: &Context) -> Result<Noted<Set>> {
    let wanted = wanted(args)?;
    let path = &wanted.path;
    let accounts = Accounts::look(cx)?;
    if let Some(owner) = &wanted.owner {
        accounts.clone().with(owner, cx)?;
    }
    let accounts = accounts.with_groups(&wanted.group, cx)?;
    wanted.group.as_deref().map(|group| accounts.known_group(group).map(|_| ())).transpose()?;
    let way = PathWalk::down(path, false, cx)?;
    let now = &way.end;
    if now.kind == Kind::Symlink {
        let target = files::target(&now.path, cx)?;
        let message =
            format!("{path} is a symlink to {target}, and isn't followed: expected what is meant itself");
        return Err(Problem::new("SYMLINK", Category::Denied, message)
            .remedy(format!("Name what it leads to: {target}")));
    }
    let after = after(now, &wanted);
    let homes: Vec<&str> = accounts
        .users
        .iter()
        .filter(|user| !accounts.ranges.is_system_uid(user.uid) && user.home.len() > 1)
        .map(|user| user.home.as_str())
        .collect();
    may_be_set(now, &after, &wanted, &homes, cx)?;
    if !wanted.recursive && after == *now {
        let data = reply(&after, None, None);
        return Ok(Noted {
            data,
            notes: vec![format!("{path} is as it was asked for already: nothing was changed")],
        });
    }
    if let Some(attribute) = check::attributes(&now.path, cx).first() {
        let message = format!("{path} is {attribute} (lsattr): not even root changes its permissions");
        return Err(state("IMMUTABLE", message)
            .remedy(format!("Allow changes first: chattr -{} {path}", &attribute[..1])));
    }
    let tree = if wanted.recursive { Some(Count::of(&now.path, cx)?) } else { None };
    let whose = whose(&way, wanted.recursive, cx)?;
    let change = plan(now, &after, &wanted, tree.as_ref(), &whose);
    let applied = plan::apply(change, cx)?;
    let mut data = reply(&after, Some(now), tree);
    let mut notes = Vec::new();
    if applied.dry_run {
        data.would = Some("set");
    } else if let Some(found) = after_all(&now.path, &mut notes, cx) {
        if !wanted.recursive
            && (found.mode, &found.owner, &found.group) != (after.mode, &after.owner, &after.group)
        {
            notes.push(format!("expected mode {:04o} of {}:{}", after.mode, after.owner, after.group));
        }
        let (former, tree) = (data.former, data.tree);
        data = Set { former, tree, ..reply(&found, None, None) };
    }
    if wanted.recursive {
        notes.push("this can't be undone: the former permissions of what is below aren't kept".to_owned());
    }
    Ok(Noted { data, notes })
}

/// The permissions after the change. The new permissions may keep the caller from reading them.
fn after_all(path: &str, notes: &mut Vec<String>, cx: &Context) -> Option<Stat> {
    match files::stat(&[path], cx) {
        Ok(found) => found.into_iter().next(),
        Err(problem) => {
            notes.push(format!("it is set, but the new permissions can't be read: {}", problem.message));
            None
        }
    }
}

fn wanted(args: SetArgs) -> Result<RequestedPermissions> {
    validate::must_be_path(&args.path)?;
    let mode = args.mode.map(|text| Mode::read(&text).map(|mode| (text, mode))).transpose()?;
    args.owner.as_deref().map(check_user).transpose()?;
    args.group.as_deref().map(check_group).transpose()?;
    if mode.is_none() && args.owner.is_none() && args.group.is_none() {
        let message = "nothing is to be set: expected mode, owner or group";
        return Err(Problem::validation("NOTHING_TO_CHANGE", message));
    }
    Ok(RequestedPermissions {
        path: args.path,
        mode,
        owner: args.owner,
        group: args.group,
        recursive: args.recursive,
    })
}

/// The permissions of the path itself after the change.
fn after(now: &Stat, wanted: &RequestedPermissions) -> Stat {
    let mut after = now.clone();
    after.owner = wanted.owner.clone().unwrap_or(after.owner);
    after.group = wanted.group.clone().unwrap_or(after.group);
    // A new owner removes setuid and setgid from a file.
    if (&after.owner, &after.group) != (&now.owner, &now.group) && now.kind == Kind::File {
        after.mode &= !SETUID_SETGID;
    }
    if let Some((_, mode)) = &wanted.mode {
        after.mode = mode.applied(after.mode, now.is_directory());
    }
    after
}

/// Refuses dangerous changes that nobody means to make.
fn may_be_set(
    now: &Stat,
    after: &Stat,
    wanted: &RequestedPermissions,
    homes: &[&str],
    cx: &Context,
) -> Result<()> {
    let path = &now.path;
    let refused = |code: &str, message: String| Err(Problem::new(code, Category::Denied, message));
    if wanted.recursive {
        if !now.is_directory() {
            let message = format!("{path} is no directory: expected recursive=false");
            return Err(Problem::validation("NOT_A_DIRECTORY", message));
        }
        if let Some(why) = protected_paths::system(path, homes) {
            let message = format!("{why}: everything in it isn't changed at once");
            return Err(Problem::new("SYSTEM_TREE", Category::Denied, message)
                .remedy("Name the one file or directory that is meant, without recursive"));
        }
        if wanted.mode.as_ref().is_some_and(|(_, mode)| mode.sets_special()) {
            let message =
                "setuid or setgid isn't given to everything in a directory: expected it for one path"
                    .to_owned();
            return refused("SETUID_RECURSIVE", message);
        }
    }
    let is_given = after.mode & !now.mode & SETUID_SETGID != 0;
    if is_given && now.kind == Kind::File {
        if protected_paths::is_interpreter(path) {
            let message = format!(
                "{path} runs what it is given: setuid or setgid would give its owner's rights to everybody"
            );
            return refused("SETUID_INTERPRETER", message);
        }
        if let Some(home) = protected_paths::home(path, homes) {
            return refused(
                "SETUID_IN_HOME",
                format!("{path} is in a home ({home}), whose owner can put another file in its place"),
            );
        }
        if files::is_script(path, cx)? {
            let message = format!(
                "{path} is a script, for which the kernel takes no setuid, and which would be no safe program with it"
            );
            return refused("SETUID_SCRIPT", message);
        }
    }
    if protected_paths::is_passed_by_all(path) && now.mode & !after.mode & 0o001 != 0 {
        return refused(
            "SYSTEM_DIRECTORY",
            format!("every account but root needs to pass {path} to do anything"),
        );
    }
    let is_setuid_root = |stat: &Stat| stat.mode & 0o4000 != 0 && stat.owner == "root";
    if protected_paths::leads_to_root(path) && is_setuid_root(now) && !is_setuid_root(after) {
        let message =
            format!("{path} is how somebody becomes root, which takes its setuid and root as its owner");
        return refused("PROTECTED_PROGRAM", message);
    }
    if protected_paths::is_sensitive(path) {
        let others = after.mode & !now.mode & 0o077;
        let is_owned = after.owner != now.owner && after.owner != "root";
        let is_grouped = after.group != now.group && after.group != "root" && after.mode & 0o070 != 0;
        if others != 0 || is_owned || is_grouped {
            let message = format!(
                "{path} decides who gets in, or keeps secrets: it isn't opened to others (it is {} of {}:{})",
                symbolic(now.kind.letter(), now.mode),
                now.owner,
                now.group
            );
            return refused("SENSITIVE_FILE", message);
        }
    }
    Ok(())
}

/// The account whose rights make the change. It is root, except below a directory of another account, which could
/// redirect the path: there the host refuses root's rights, and the owner's own rights are used. They are also used for
/// everything in an account's own directory, where chmod would follow a link that the account puts in a file's place.
fn whose(way: &PathWalk, recursive: bool, cx: &Context) -> Result<Privilege> {
    let end = &way.end;
    if recursive && end.owner != "root" {
        return Ok(files::rights_of(&end.owner, cx)?.unwrap_or(Privilege::Root));
    }
    // In a shared directory only the owner of a file can replace it.
    let is_shared = |stat: &Stat| stat.mode & 0o1000 != 0 && stat.mode & 0o022 != 0;
    let is_above = |stat: &&Stat| stat.is_directory() && end.path.starts_with(&format!("{}/", stat.path));
    let above = way.passed.iter().filter(is_above).find(|stat| stat.owner != "root" || is_shared(stat));
    match above.filter(|stat| end.owner != "root" && (stat.owner == end.owner || is_shared(stat))) {
        Some(_) => Ok(files::rights_of(&end.owner, cx)?.unwrap_or(Privilege::Root)),
        None => Ok(Privilege::Root),
    }
}

fn plan(
    now: &Stat,
    after: &Stat,
    wanted: &RequestedPermissions,
    tree: Option<&Count>,
    whose: &Privilege,
) -> Change {
    let path = &now.path;
    let mut what: Vec<String> = Vec::new();
    what.extend(wanted.mode.as_ref().map(|(mode, _)| format!("mode {mode}")));
    what.extend(wanted.owner.as_ref().map(|owner| format!("owner {owner}")));
    what.extend(wanted.group.as_ref().map(|group| format!("group {group}")));
    let reach = if wanted.recursive { " and everything below" } else { "" };
    let mut change = plan::new(format!("Set {} of {path}{reach}", what.join(", ")));
    if after.mode & !now.mode & SETUID_SETGID != 0 {
        let whose = if after.mode & 0o4000 != 0 { &after.owner } else { &after.group };
        change = change.risk(Risk::High).warning(match now.kind {
            Kind::Directory => format!("what is made in {path} belongs to the group {}", after.group),
            _ => format!("whoever starts {path} has the rights of {whose}"),
        });
    }
    let is_open = wanted.mode.as_ref().is_some_and(|(_, mode)| mode.opens_to_all());
    if after.mode & !now.mode & 0o002 != 0 || (wanted.recursive && is_open) {
        let sticky = now.is_directory() && after.mode & 0o1000 != 0;
        let risk = if sticky { Risk::Moderate } else { Risk::High };
        change = change.risk(risk).warning(format!("everybody on the machine may write to {path}"));
    }
    match tree {
        Some(count) => {
            change = change.warning(format!("{} are changed; this can't be undone", count.text()));
            if count.symlinks > 0 {
                change = change.warning(format!(
                    "{} symlinks aren't followed: what they lead to stays as it is",
                    count.symlinks
                ));
            }
            if count.setuid > 0 && (wanted.owner.is_some() || wanted.group.is_some()) {
                change =
                    change.warning(format!("{} files lose setuid or setgid with their owner", count.setuid));
            }
            if count.other_devices {
                change = change
                    .risk(Risk::Critical)
                    .warning(format!("another file system is mounted below {path}, and is changed as well"));
            }
            let options = match (&wanted.owner, &wanted.group) {
                (Some(owner), Some(group)) => Some(CHOWN_ALL.with([owner, group, path])),
                (Some(owner), None) => Some(CHOWN_USER_ALL.with([owner, path])),
                (None, Some(group)) => Some(CHGRP_ALL.with([group, path])),
                (None, None) => None,
            };
            // The mode comes first, before the owner changes.
            if let Some((mode, _)) = &wanted.mode {
                change = change.step(Step::run(CHMOD_ALL.with([mode, path]).privilege(whose.clone())));
            }
            options.into_iter().fold(change, |change, command| change.step(step(command)))
        }
        None => single(change, now, after, whose),
    }
}

/// Changes one path, with an undo.
fn single(mut change: Change, now: &Stat, after: &Stat, whose: &Privilege) -> Change {
    let path = &now.path;
    let chmod = |mode: u32, before: u32| {
        let mode = exactly(mode, before, now.is_directory());
        Command::new("chmod").args(["--", &mode, path]).privilege(whose.clone())
    };
    let owns = (&after.owner, &after.group) != (&now.owner, &now.group);
    let mut mode = now.mode;
    if owns {
        let mut own = step(CHOWN.with([&after.owner, &after.group, path]));
        // An owner without a name can't be restored.
        if check_user(&now.owner).is_ok() && check_group(&now.group).is_ok() {
            own = own.undo(CHOWN.with([&now.owner, &now.group, path]).as_root());
            if now.kind == Kind::File && now.mode & SETUID_SETGID != 0 {
                own = own.undo(chmod(now.mode, now.mode & !SETUID_SETGID));
            }
        } else {
            change = change.warning(format!("this can't be undone: {}:{} has no name", now.owner, now.group));
        }
        change = change.step(own);
        if now.kind == Kind::File {
            mode &= !SETUID_SETGID;
        }
    }
    if after.mode != mode {
        change = change.step(Step::run(chmod(after.mode, mode)).undo(chmod(mode, after.mode)));
    }
    change
}

fn step(command: Command) -> Step {
    Step::run(command.as_root())
}

fn reply(stat: &Stat, former: Option<&Stat>, tree: Option<Count>) -> Set {
    let told = |stat: &Stat| format!("{:04o} {}:{}", stat.mode, stat.owner, stat.group);
    Set {
        path: stat.path.clone(),
        mode: format!("{:04o}", stat.mode),
        symbolic: symbolic(stat.kind.letter(), stat.mode),
        owner: stat.owner.clone(),
        group: stat.group.clone(),
        former: former.map(told),
        tree,
        would: None,
    }
}
