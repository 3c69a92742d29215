//! `file_stat`: what several paths are, where their symlinks lead step by step, and who has them open.

use std::collections::HashMap;

use linux_sysadmin_sdk::paths::{
    self, Acl, GETFACL, LSATTR, MOST_LINKS, PathAttributes, Paths, READLINK, followed, too_many_links,
};
use linux_sysadmin_sdk::time::rfc3339;
use linux_sysadmin_sdk::{Privilege, prelude::*};

use crate::find::Kind;
use crate::places::{check_plain, look, shown};
use crate::{owner, service};

const STAT: CommandLine = CommandLine::new("stat '--format=%f|%h|%s|%U|%G|%Y|%C|%m|%n' -- <path>...");
/// Prints the descriptors of processes that are the file.
const OPEN: CommandLine = CommandLine::new(
    "find /proc -mindepth 3 -maxdepth 3 -path '/proc/[0-9]*/fd/*' -lname <path> -printf '%h\\n'",
);

/// The most paths of one call.
const MOST: usize = 20;
/// The most paths of which it is told who has them open.
const MOST_OPEN: usize = 5;
/// The attributes that are told.
const ATTRIBUTES: [(char, &str); 5] = [
    ('i', "immutable"),
    ('a', "append-only"),
    ('A', "no access times"),
    ('C', "no copy-on-write"),
    ('c', "compressed"),
];

pub(crate) fn grants() -> Vec<CommandGrant> {
    let looks = [
        STAT.read("what a path is and whose, never what is in it"),
        READLINK.read("where a symlink leads"),
        GETFACL.read("who else may do what with a path"),
    ];
    let mut grants: Vec<CommandGrant> = looks
        .into_iter()
        .flat_map(|grant| [grant.clone().as_root_if_available(), grant.as_user("*")])
        .collect();
    grants.push(OPEN.read("which processes have a file open").as_root_if_available());
    grants
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct StatArgs {
    /// One path or several
    path: Paths,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Told {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Each symlink at the end of the path, as `/etc/x -> ../y`. Everything else describes where the last one leads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<String>,
    #[serde(rename = "type", skip_serializing_if = "str::is_empty")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    mode: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    owner: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    modified: String,
    /// The number of names of a file that has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    hard_links: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_mount_point: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    acl: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    profiles: Vec<String>,
    /// Processes that have it open, as `nginx (812)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open_by: Vec<String>,
}

/// A line of stat.
struct Stat {
    mode: u32,
    links: u64,
    size: u64,
    owner: String,
    group: String,
    modified: i64,
    context: Option<String>,
    mount: String,
}

pub(crate) fn file_stat(args: StatArgs, cx: &Context) -> Result<Listing<Told>> {
    let paths = args.path.checked(MOST, check_plain)?;
    let mut all: Vec<(Told, String)> = Vec::new();
    for path in paths {
        let mut told = Told { path: path.clone(), ..Told::default() };
        let end = match resolved(&path, &mut told.links, cx) {
            Ok((end, stat)) => {
                told.set(&end, stat);
                end
            }
            Err(problem) => {
                told.error = Some(match problem.code.as_str() {
                    "CAPABILITY_DENIED" => {
                        format!("{} may hold secrets: perms_check tells about it", shown(&path))
                    }
                    _ => problem.message,
                });
                path
            }
        };
        all.push((told, end));
    }
    let there: Vec<String> =
        all.iter().filter(|(told, _)| told.error.is_none()).map(|(_, end)| end.clone()).collect();
    let (acls, attributes) = (acls(&there, cx), attributes(&there, cx));
    let around = Around::of(&there, cx);
    for (told, end) in all.iter_mut().filter(|(told, _)| told.error.is_none()) {
        let acl = acls.iter().flatten().find(|acl| acl.path == *end);
        told.acl = acl.map(|acl| acl.lines.clone()).unwrap_or_default();
        let own = attributes.iter().find(|of| of.path == *end);
        told.attributes = own.map(|of| of.names(&ATTRIBUTES)).unwrap_or_default();
        told.open_by = around.open.get(end).cloned().unwrap_or_default();
        told.package = around.packages.get(end).cloned();
        told.profiles = service::profiles(end, cx);
    }
    let mut notes = Vec::new();
    if acls.is_none() && !there.is_empty() {
        notes.push("ACLs aren't known: getfacl isn't installed, or can't tell".to_owned());
    }
    if there.len() > MOST_OPEN {
        notes.push(format!("who has files open is told of the first {MOST_OPEN} only"));
    }
    Ok(Listing { items: all.into_iter().map(|(told, _)| told).collect(), total: None, notes })
}

impl Told {
    fn set(&mut self, end: &str, stat: Stat) {
        let kind = Kind::of_mode(stat.mode);
        self.kind = kind.name();
        self.size = (kind == Kind::File).then_some(stat.size);
        self.mode = format!("{:04o}", stat.mode & 0o7777);
        (self.owner, self.group) = (stat.owner, stat.group);
        self.modified = rfc3339(stat.modified);
        self.hard_links = (kind == Kind::File && stat.links > 1).then_some(stat.links);
        self.is_mount_point = stat.mount == end;
        self.context = stat.context;
    }
}

/// Follows the symlinks at the end of a path, one after the other.
fn resolved(path: &str, links: &mut Vec<String>, cx: &Context) -> Result<(String, Stat)> {
    let mut path = path.to_owned();
    for _ in 0..=MOST_LINKS {
        let stat = stat(&path, cx)?;
        if Kind::of_mode(stat.mode) != Kind::Symlink {
            return Ok((path, stat));
        }
        let run = |privilege| cx.run(READLINK.with([&path]).privilege(privilege));
        let target = look(&path, cx, run)?.success("readlink")?.text().into_owned();
        links.push(format!("{path} -> {target}"));
        path = followed(&path, &target, "");
        check_plain(&path)?;
    }
    Err(too_many_links(&path))
}

fn stat(path: &str, cx: &Context) -> Result<Stat> {
    let run = |privilege: Privilege| cx.run(STAT.with([path]).privilege(privilege));
    let output = look(path, cx, run)?;
    // Where a file has no security context, stat says so on stderr, and prints all else.
    let text = output.text();
    let text = text.strip_suffix('\n').unwrap_or(&text);
    if text.is_empty() {
        let said = output.error_text();
        return Err(match said.contains("No such file") || said.contains("Not a directory") {
            true => crate::original::no_such(path),
            false => Problem::unexpected("stat", &said),
        });
    }
    read(text, path).ok_or_else(|| Problem::unexpected("stat", text))
}

fn read(line: &str, path: &str) -> Option<Stat> {
    let rest = line.strip_suffix(path)?.strip_suffix('|')?;
    let [mode, links, size, owner, group, modified, context, mount] =
        rest.splitn(8, '|').collect::<Vec<_>>()[..]
    else {
        return None;
    };
    Some(Stat {
        mode: u32::from_str_radix(mode, 16).ok()?,
        links: links.parse().ok()?,
        size: size.parse().ok()?,
        owner: owner.to_owned(),
        group: group.to_owned(),
        modified: modified.parse().ok()?,
        context: Some(context.to_owned()).filter(|context| !matches!(context.as_str(), "" | "?")),
        mount: mount.to_owned(),
    })
}

/// The ACLs of those paths that have one. `None` where getfacl can't tell.
fn acls(paths: &[String], cx: &Context) -> Option<Vec<Acl>> {
    let [first, ..] = paths else { return Some(Vec::new()) };
    let run = |privilege| cx.run(GETFACL.with(paths).privilege(privilege));
    let output = look(first, cx, run).ok().filter(|output| output.exit_code == 0)?;
    Some(paths::acls(&output.text()))
}

/// The attributes of those paths that have some.
fn attributes(paths: &[String], cx: &Context) -> Vec<PathAttributes> {
    let [first, ..] = paths else { return Vec::new() };
    let run = |privilege| cx.run(LSATTR.with(paths).privilege(privilege));
    look(first, cx, run).map(|output| paths::attributes(&output.text())).unwrap_or_default()
}

/// What belongs to files, by their paths.
struct Around {
    /// The processes that have them open, as far as the account may see.
    open: HashMap<String, Vec<String>>,
    /// The packages with which they came.
    packages: HashMap<String, String>,
}

impl Around {
    /// Each question takes tens of milliseconds, so all are asked at once.
    fn of(paths: &[String], cx: &Context) -> Self {
        // A wildcard in a name would stand for other names as well.
        let watched: Vec<&String> =
            paths.iter().filter(|path| !path.contains(['*', '?', '[', '\\'])).take(MOST_OPEN).collect();
        let find = |path: &&String| OPEN.with([path.as_str()]).privilege(Privilege::RootIfAvailable);
        let (owned, questions): (Vec<&String>, Vec<Command>) =
            paths.iter().filter_map(|path| Some((path, owner::question(path, cx)?))).unzip();
        let mut found = cx.run_all(watched.iter().map(find).chain(questions).collect());
        let answers = found.split_off(watched.len());
        let packages = owned.into_iter().zip(answers);
        let packages = packages.filter_map(|(path, answer)| Some((path.clone(), owner::name(answer, cx)?)));
        let open = watched.into_iter().zip(found).filter_map(|(path, output)| {
            let text = output.ok()?.text().into_owned();
            let mut pids: Vec<&str> =
                text.lines().filter_map(|line| line.strip_prefix("/proc/")?.strip_suffix("/fd")).collect();
            pids.sort_unstable();
            pids.dedup();
            pids.truncate(MOST);
            let names = cx.read_all(&pids.iter().map(|pid| format!("/proc/{pid}/comm")).collect::<Vec<_>>());
            let named = pids.iter().zip(names).map(|(pid, name)| match name {
                Ok(name) => format!("{} ({pid})", name.trim()),
                Err(_) => format!("({pid})"),
            });
            Some((path.clone(), named.collect()))
        });
        Self { open: open.collect(), packages: packages.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_stat_is_read() {
        // stat (GNU coreutils) 9.1
        let found = read("81a4|1|12|root|adm|1767225600|?|/|/etc/a|b", "/etc/a|b").unwrap();
        assert_eq!(
            (found.mode, found.size, found.group.as_str(), found.context),
            (0o100_644, 12, "adm", None)
        );
        let found = read("41ed|2|4096|root|root|0|system_u:object_r:mnt_t:s0|/srv|/srv", "/srv").unwrap();
        assert_eq!(
            (found.mount.as_str(), found.context.as_deref()),
            ("/srv", Some("system_u:object_r:mnt_t:s0"))
        );
        assert!(read("x", "/etc/x").is_none());
    }
}
