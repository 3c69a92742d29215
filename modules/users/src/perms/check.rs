//! `perms_check`: the permissions of a path and of the directories above it, and the access of an account.

use linux_sysadmin_sdk::accounts::check_user;
use linux_sysadmin_sdk::paths::{self, GETFACL, IMMUTABLE, LSATTR, Paths};
use linux_sysadmin_sdk::{Output, prelude::*};

use crate::accounts::{Accounts, GROUPS, GROUPS_OF, USERS};
use crate::files::{self, Kind, Stat};
use crate::sudoers::rights::Identity;
use crate::validate;

use super::access::Access;
use super::mode::symbolic;
use super::path_walk::PathWalk;

/// The most paths in one call.
const MOST: usize = 20;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CheckArgs {
    /// One or several, absolute
    path: Paths,
    /// What this account may do there
    user: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Checked {
    path: String,
    #[serde(flatten)]
    found: Option<Found>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Found {
    #[serde(rename = "type")]
    kind: &'static str,
    /// The mode in octal digits.
    mode: String,
    symbolic: String,
    owner: String,
    group: String,
    /// The target of symlinks on the way. Everything else describes the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    leads_to: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    acl: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<&'static str>,
    /// Directories and symlinks on the way, as `drwxr-xr-x root:root /srv`.
    parents: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access: Option<Access>,
}

pub(crate) fn perms_check(args: CheckArgs, cx: &Context) -> Result<Listing<Checked>> {
    let paths = args.path.checked(MOST, validate::must_be_path)?;
    let mut notes = Vec::new();
    let who = args.user.as_deref().map(|user| who(user, cx)).transpose()?;
    let mut knows_acls = true;
    let mut all = Vec::new();
    for path in paths {
        let (found, error) = match PathWalk::down(&path, true, cx) {
            Ok(way) => (Some(look(&path, &way, who.as_ref(), &mut knows_acls, cx)), None),
            Err(problem) => (None, Some(problem.message)),
        };
        all.push(Checked { path, found, error });
    }
    if !knows_acls {
        notes.push("ACLs aren't known: getfacl isn't installed, or can't tell".to_owned());
    }
    let mac = cx.distro();
    if who.is_some() && mac.mac_mode.as_deref() == Some("enforcing") {
        notes.push(format!("{} may deny what permissions allow", mac.mac_system));
    }
    Ok(Listing { items: all, total: None, notes })
}

/// The account with all of its groups, including those that only `id` knows.
pub(super) fn who(user: &str, cx: &Context) -> Result<Identity> {
    check_user(user)?;
    let [users, groups, names] = cx.run_each([USERS.command(), GROUPS.command(), GROUPS_OF.with([user])]);
    let (accounts, user) = Accounts::of(users, groups, cx)?.with(user, cx)?;
    let mut who = Identity::of(&user, &accounts.groups);
    let names = names.and_then(|output| output.success("id"));
    let names = names.map(|output| output.text().into_owned()).unwrap_or_default();
    for name in names.split_whitespace() {
        if let Some(group) =
            accounts.group(name).filter(|group| !who.groups.iter().any(|(_, gid)| *gid == group.gid))
        {
            who.groups.push((group.name.clone(), group.gid));
        }
    }
    Ok(who)
}

fn look(path: &str, way: &PathWalk, who: Option<&Identity>, knows_acls: &mut bool, cx: &Context) -> Found {
    let end = &way.end;
    let passed: Vec<&str> =
        way.passed.iter().filter(|stat| stat.kind != Kind::Symlink).map(|stat| stat.path.as_str()).collect();
    let asked = [GETFACL.with(passed), LSATTR.with([&end.path])];
    let [acls, attributes] = files::look_each(asked, cx);
    // None where getfacl is missing or fails.
    let acls = acls.ok().filter(|output| output.exit_code == 0).map(|output| paths::acls(&output.text()));
    *knows_acls &= acls.is_some();
    let acls = acls.unwrap_or_default();
    let line = |stat: &Stat| {
        format!("{} {}:{} {}", symbolic(stat.kind.letter(), stat.mode), stat.owner, stat.group, stat.path)
    };
    Found {
        kind: match end.kind {
            Kind::File => "file",
            Kind::Directory => "directory",
            Kind::Symlink => "symlink",
            Kind::Other('s') => "socket",
            Kind::Other('p') => "pipe",
            Kind::Other('b') => "block device",
            Kind::Other(_) => "character device",
        },
        mode: format!("{:04o}", end.mode),
        symbolic: symbolic(end.kind.letter(), end.mode),
        owner: end.owner.clone(),
        group: end.group.clone(),
        leads_to: Some(end.path.clone()).filter(|end| end != path),
        acl: acls.iter().find(|acl| acl.path == end.path).map(|acl| acl.lines.clone()).unwrap_or_default(),
        attributes: immutable(attributes),
        parents: way.passed.iter().filter(|stat| *stat != end).map(line).collect(),
        access: who.map(|who| Access::of(who, &way.passed, end, &acls)),
    }
}

/// The attributes that keep even root from changing the path. Some file systems have no attributes.
pub(super) fn attributes(path: &str, cx: &Context) -> Vec<&'static str> {
    immutable(files::look(LSATTR.with([path]), cx))
}

fn immutable(output: Result<Output>) -> Vec<&'static str> {
    let Ok(output) = output.and_then(|output| output.success("lsattr")) else { return Vec::new() };
    paths::attributes(&output.text()).first().map(|of| of.names(&IMMUTABLE)).unwrap_or_default()
}

/// The commands that look at permissions.
pub(crate) fn grants() -> Vec<CommandGrant> {
    let mut grants = files::grants();
    let looks =
        [GETFACL.read("who else may do what with a path"), LSATTR.read("whether a path is immutable")];
    grants.extend(looks.into_iter().flat_map(files::for_all));
    grants
}
