//! The paths that the tools take: which may be named, which grants cover them, and whose rights reach them.

use linux_sysadmin_sdk::{Category, Privilege, accounts, prelude::*, text::excerpt};

/// Directories whose content may be read and changed.
const CHANGED: [&str; 5] = ["/etc", "/srv", "/opt", "/usr/local", "/var/www"];
/// Directories whose content may only be read.
const READ: [&str; 2] = ["/var/log", "/usr/share/doc"];
/// Directories that belong to one account. The host checks the account's own rights there, and [`check`] its name.
const HOMES: [&str; 2] = ["/home/*", "/root"];
/// Files of the kernel without secrets. The account's own rights read them.
const KERNEL: [&str; 38] = [
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/diskstats",
    "/proc/filesystems",
    "/proc/interrupts",
    "/proc/loadavg",
    "/proc/mdstat",
    "/proc/meminfo",
    "/proc/modules",
    "/proc/mounts",
    "/proc/partitions",
    "/proc/stat",
    "/proc/swaps",
    "/proc/uptime",
    "/proc/version",
    "/proc/vmstat",
    "/proc/net/*",
    "/proc/pressure/*",
    "/proc/self/mounts",
    "/proc/*/cgroup",
    "/proc/*/comm",
    "/proc/*/io",
    "/proc/*/limits",
    "/proc/*/mountinfo",
    "/proc/*/mounts",
    "/proc/*/net/*",
    "/proc/*/stat",
    "/proc/*/status",
    "/proc/sys/fs/**",
    "/proc/sys/kernel/*",
    "/proc/sys/net/core/*",
    "/proc/sys/net/ipv4/conf/*/*",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/vm/*",
    "/sys/block/**",
    "/sys/class/**",
    "/sys/devices/**",
    "/sys/fs/cgroup/**",
];

/// The host's error code for a path that another account could redirect.
pub(crate) const UNTRUSTED: &str = "UNTRUSTED_DIRECTORY";
/// The host's error code for a path that no grant covers.
const DENIED: &str = "CAPABILITY_DENIED";
/// The number of characters of a path in a message.
const SHOWN: usize = 200;

/// The grants for reading and changing files.
pub(crate) fn grants() -> Vec<PathGrant> {
    let all = |directory: &str| format!("{directory}/**");
    let mut grants = Vec::new();
    for directory in CHANGED {
        let why = "files that an administrator edits";
        grants.push(PathGrant::write(&all(directory), why));
        grants.push(
            PathGrant::write(&all(directory), "the same in directories of other accounts").as_user("*"),
        );
    }
    for directory in CHANGED.iter().chain(&READ) {
        grants.push(PathGrant::read(directory, "the directory itself").as_root_if_available());
    }
    for directory in HOMES {
        grants.push(PathGrant::read(directory, "the home of the account in use"));
        grants.push(PathGrant::write(&all(directory), "files of the account in use").as_caller());
    }
    for directory in READ {
        let why = "logs and documentation";
        grants.push(PathGrant::read(&all(directory), why).as_root_if_available());
        grants.push(PathGrant::read(&all(directory), why).as_user("*"));
    }
    grants
        .extend(KERNEL.map(|glob| PathGrant::read(glob, "what the kernel tells of itself and of processes")));
    grants
}

/// Whether a path is in one of the directories that the tools are for. What is refused there holds a secret.
pub(crate) fn is_covered(path: &str) -> bool {
    CHANGED.iter().chain(&READ).any(|directory| {
        path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// The problem of a path elsewhere, with the way that is left.
fn outside(path: &str) -> Problem {
    let message = format!(
        "{} is outside of the directories of the file tools: {}, /var/log, /usr/share/doc and the account's home",
        shown(path),
        CHANGED.join(", ")
    );
    Problem::new("PATH_OUTSIDE", Category::Denied, message).remedy(format!(
        "Use command_run instead, which asks a person about changes: argv=[\"stat\", \"{0}\"], or \
         argv=[\"rm\", \"{0}\"] as_root=true",
        shown(path)
    ))
}

/// A path as messages show it.
pub(crate) fn shown(path: &str) -> String {
    excerpt(path, SHOWN)
}

/// Refuses a path that isn't absolute and plain.
pub(crate) fn check_plain(path: &str) -> Result<()> {
    let is_plain = path.starts_with('/')
        && path.len() < 4096
        && !path.chars().any(char::is_control)
        && (path == "/"
            || path.split('/').skip(1).all(|name| !matches!(name, "" | "." | "..") && name.len() < 256));
    if !is_plain {
        let message = format!(
            "{:?} is no path that is taken: expected an absolute one without `.`, `..`, `//` and a slash at its end",
            shown(path)
        );
        return Err(Problem::validation("INVALID_PATH", message));
    }
    Ok(())
}

/// Refuses a path that isn't absolute and plain, or that is in the home of another account.
pub(crate) fn check(path: &str, cx: &Context) -> Result<()> {
    check_plain(path)?;
    let Some(owner) = home_owner(path) else { return Ok(()) };
    let account = cx.account()?;
    if owner == account {
        return Ok(());
    }
    let message = format!("{} is in the home of {owner}, and the account in use is {account}", shown(path));
    Err(Problem::new("OTHER_HOME", Category::Denied, message)
        .remedy(format!("Connect as {owner}; file_stat tells about the path without its contents")))
}

/// The account whose home a path is in, by the path alone.
fn home_owner(path: &str) -> Option<&str> {
    if path == "/root" || path.starts_with("/root/") {
        return Some("root");
    }
    path.strip_prefix("/home/")?.split('/').next()
}

/// Whether only the account's own rights are used for a path: in its home, and for the kernel's files.
pub(crate) fn is_own(path: &str) -> bool {
    home_owner(path).is_some() || path.starts_with("/proc/") || path.starts_with("/sys/")
}

/// Looks with root's rights where the target allows them. Below a directory that another account may change, the host
/// refuses them; there the account's own rights are taken, and then those of the directory's owner.
pub(crate) fn look<T>(path: &str, cx: &Context, look: impl Fn(Privilege) -> Result<T>) -> Result<T> {
    if is_own(path) {
        return look(Privilege::Caller);
    }
    let untrusted = match look(Privilege::RootIfAvailable) {
        Err(problem) if problem.code == UNTRUSTED => problem,
        Err(problem) if problem.code == DENIED && !is_covered(path) => return Err(outside(path)),
        answer => return answer,
    };
    match look(Privilege::Caller) {
        // Root itself is the account in use.
        Err(problem) if problem.category == Category::Privilege || problem.code == UNTRUSTED => {}
        answer => return answer,
    }
    match above(path, cx)? {
        Above::Account(owner) => look(Privilege::User(owner)),
        Above::Root | Above::Several => Err(untrusted),
    }
}

/// The rights that change a path. Root's are the rule. In the account's own home they are its own, and below a directory of
/// another account they are that account's, because that account could redirect root. Below a directory that a group may
/// change, root is refused as well, and the account's own rights have to do.
pub(crate) fn writer(path: &str, as_root: Option<bool>, cx: &Context) -> Result<Privilege> {
    match as_root {
        Some(true) => return Ok(Privilege::Root),
        Some(false) => return Ok(Privilege::Caller),
        None => {}
    }
    let account = cx.account().ok();
    if is_own(path) {
        return Ok(Privilege::Caller);
    }
    Ok(match above(path, cx)? {
        Above::Account(owner) if account.as_ref() != Some(&owner) => Privilege::User(owner),
        Above::Account(_) | Above::Several => Privilege::Caller,
        Above::Root => Privilege::Root,
    })
}

/// Who may change the directories above a path.
enum Above {
    Root,
    /// The owner of the first directory, from the root on, that isn't root's.
    Account(String),
    /// A group, or everybody.
    Several,
}

fn above(path: &str, cx: &Context) -> Result<Above> {
    // The first two levels, such as `/var/www`, are no directories of accounts, and not all of them may be looked at.
    let above: Vec<&str> = path.match_indices('/').skip(2).map(|(end, _)| &path[..end]).collect();
    let cx = cx.files_as(Privilege::RootIfAvailable);
    for (found, above) in cx.stat_all(&above).into_iter().zip(&above) {
        match found {
            Ok(Some(found)) if found.owner != "root" && accounts::is_name(&found.owner) => {
                return Ok(Above::Account(found.owner));
            }
            Ok(Some(found)) if found.is_dir && (found.owner != "root" || found.mode & 0o022 != 0) => {
                return Ok(Above::Several);
            }
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(problem) if problem.code == UNTRUSTED => return Ok(Above::Several),
            // A grant covers what is below `/usr/local` and not `/usr/local` itself.
            Err(problem) if problem.category == Category::Denied && above.matches('/').count() < 3 => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(Above::Root)
}

/// A glob of names, in time linear in both: `*` stands for any text and `?` for one character.
pub(crate) fn is_named(glob: &str, name: &str) -> bool {
    let (glob, name): (Vec<char>, Vec<char>) = (glob.chars().collect(), name.chars().collect());
    let (mut at, mut seen, mut star) = (0, 0, None);
    while seen < name.len() {
        match glob.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(letter) if *letter == '?' || *letter == name[seen] => (at, seen) = (at + 1, seen + 1),
            _ => match &mut star {
                Some((place, taken)) => {
                    *taken += 1;
                    (at, seen) = (*place + 1, *taken);
                }
                None => return false,
            },
        }
    }
    glob[at..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn a_path_is_plain_and_in_no_other_home() {
        let cx = FakeTarget::new().account("ada").context();
        for path in ["/etc/hosts", "/", "/home/ada/x", "/home/ada", "/srv/a b/ä", "/rootless"] {
            assert!(check(path, &cx).is_ok(), "{path}");
        }
        for (path, code) in [
            ("etc/hosts", "INVALID_PATH"),
            ("", "INVALID_PATH"),
            ("/etc/../etc/shadow", "INVALID_PATH"),
            ("/etc//hosts", "INVALID_PATH"),
            ("/etc/", "INVALID_PATH"),
            ("/etc/./hosts", "INVALID_PATH"),
            ("/etc/a\nb", "INVALID_PATH"),
            ("/home/bob/x", "OTHER_HOME"),
            ("/root/x", "OTHER_HOME"),
        ] {
            assert_eq!(check(path, &cx).unwrap_err().code, code, "{path}");
        }
    }

    #[test]
    fn rights_are_roots_unless_the_path_is_an_accounts() {
        let directory = |owner: &str| Metadata {
            size: 0,
            mode: 0o755,
            owner: owner.into(),
            group: owner.into(),
            modified_unix: 0,
            is_dir: true,
            is_symlink: false,
        };
        let target = || {
            FakeTarget::new()
                .account("ada")
                .metadata("/srv/bob", directory("bob"))
                .metadata("/srv/ada", directory("ada"))
                .metadata("/srv/root", directory("root"))
                .metadata("/srv/shared", Metadata { mode: 0o2775, ..directory("root") })
        };
        for (path, as_root, expected) in [
            ("/etc/hosts", None, Privilege::Root),
            ("/etc/hosts", Some(false), Privilege::Caller),
            ("/home/ada/x", None, Privilege::Caller),
            ("/srv/bob/x/y", None, Privilege::User("bob".into())),
            ("/srv/bob/x", Some(true), Privilege::Root),
            ("/srv/ada/x", None, Privilege::Caller),
            ("/srv/root/x", None, Privilege::Root),
            ("/srv/shared/x", None, Privilege::Caller),
        ] {
            let found = writer(path, as_root, &target().context()).unwrap();
            assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{path}");
        }
    }

    #[test]
    fn a_glob_covers_names_in_linear_time() {
        for (glob, name, expected) in [
            ("*", "", true),
            ("*.conf", "a.conf", true),
            ("*.conf", "a.conf.bak", false),
            ("a?c*", "abcd", true),
            ("a?c", "ac", false),
            ("", "a", false),
            ("*a*b*", "xaxbx", true),
        ] {
            assert_eq!(is_named(glob, name), expected, "{glob} {name}");
        }
        assert!(!is_named(&"*a".repeat(100), &"a".repeat(99)));
    }
}
