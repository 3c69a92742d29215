//! Whether a key opens an account: sshd lets the account in by a key alone, and a file has a key without restrictions that
//! sshd won't pass over. What can't be looked at counts as no.

use linux_sysadmin_sdk::sshd::{self, Settings};
use linux_sysadmin_sdk::{Category, Privilege, authorized_keys, prelude::*};

use super::administrators::Administrator;

/// Prints mode and owner of a home.
const HOME: CommandLine = CommandLine::new("stat --format=%a:%U -- <path>");

pub(super) fn grants(module: Module) -> Module {
    let reason = "whether a key opens an account that may become root";
    let of_homes = ["/**/.ssh/authorized_keys", "/**/.ssh/authorized_keys2", "/**/.ssh"].map(str::to_owned);
    let of_root =
        ["/root/.ssh/authorized_keys", "/root/.ssh/authorized_keys2", "/root/.ssh"].map(str::to_owned);
    let own = elsewhere("*").chain(of_homes).flat_map(|glob| {
        [PathGrant::read(&glob, reason).as_caller(), PathGrant::read(&glob, reason).as_user("*")]
    });
    let roots = elsewhere("root").chain(of_root).map(|glob| PathGrant::read(&glob, reason).as_root());
    module
        .command(HOME.read("whether others may write to a home").as_root_if_available())
        .paths(own)
        .paths(roots)
}

/// The other places of `AuthorizedKeysFile` that are in use, with the directories that `StrictModes` looks at: a directory of
/// keys with a file, or with a directory, for each account. Host keys may lie in such a directory too, so that root's rights
/// reach the entries of root alone.
fn elsewhere(account: &str) -> impl Iterator<Item = String> {
    ["/etc/ssh/authorized*keys*", "/etc/ssh/keys"].into_iter().flat_map(move |directory| {
        let below = ["", "/authorized_keys"].map(|file| format!("{directory}/{account}{file}"));
        std::iter::once(directory.to_owned()).chain(below)
    })
}

/// The reason why no key is sure to open the account, or none where one does.
pub(super) fn hindrance(account: &Administrator, settings: &Settings, cx: &Context) -> Option<String> {
    stopped_by_settings(account, settings).or_else(|| missing_key(account, settings, cx).err())
}

fn stopped_by_settings(account: &Administrator, settings: &Settings) -> Option<String> {
    if settings.is("PubkeyAuthentication", "no") {
        return Some("sshd takes no keys (PubkeyAuthentication no)".to_owned());
    }
    let is_key_alone = |methods: &str| methods == "any" || methods == "publickey";
    let methods = settings.get("AuthenticationMethods").unwrap_or("any");
    if !methods.split_whitespace().any(is_key_alone) {
        return Some(format!("a key alone isn't enough (AuthenticationMethods {methods})"));
    }
    kept_out(account, settings)
}

/// The setting that keeps the account out, whatever it logs in by.
pub(super) fn kept_out(account: &Administrator, settings: &Settings) -> Option<String> {
    let root = settings.get("PermitRootLogin").unwrap_or("no");
    if account.user.uid == 0 && !["yes", "without-password", "prohibit-password"].contains(&root) {
        return Some(format!("PermitRootLogin {root}"));
    }
    let name = std::slice::from_ref(&account.user.name);
    for (deny, allow, own) in
        [("DenyUsers", "AllowUsers", name), ("DenyGroups", "AllowGroups", &account.groups[..])]
    {
        // Of a pattern with a host it isn't known whether the host fits: it doesn't let in, and keeps out.
        let fits = |pattern: &str, only_users: bool| {
            let (user, host) =
                pattern.split_once('@').map_or((pattern, None), |(user, host)| (user, Some(host)));
            (host.is_none() || !only_users) && own.iter().any(|own| matches(user.as_bytes(), own.as_bytes()))
        };
        if let Some(pattern) = settings.all(deny).find(|pattern| fits(pattern.trim_start_matches('!'), false))
        {
            return Some(format!("{deny} {pattern}"));
        }
        if settings.get(allow).is_some() && !settings.all(allow).any(|pattern| fits(pattern, true)) {
            return Some(format!("{allow} has no {}", own.join(", ")));
        }
    }
    None
}

/// True if a pattern with `*` and `?` fits a name (ssh_config(5), PATTERNS).
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // The place behind the last star, and the place in the name that it is tried at.
    let (mut at, mut seen, mut star) = (0, 0, None);
    while seen < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, seen));
                at += 1;
            }
            Some(sign) if *sign == b'?' || *sign == name[seen] => (at, seen) = (at + 1, seen + 1),
            _ => {
                let Some((behind, tried)) = star else { return false };
                star = Some((behind, tried + 1));
                (at, seen) = (behind, tried + 1);
            }
        }
    }
    pattern[at.min(pattern.len())..].iter().all(|sign| *sign == b'*')
}

/// Looks for a key that is sure to open the account. The error says why there is none.
fn missing_key(
    account: &Administrator,
    settings: &Settings,
    cx: &Context,
) -> std::result::Result<(), String> {
    let user = &account.user;
    let files = settings.get("AuthorizedKeysFile").unwrap_or(sshd::KEY_FILES);
    let files = files.split_whitespace().filter(|file| *file != "none");
    let home = user.home.trim_end_matches('/');
    let files: Vec<String> = files.map(|file| sshd::expanded(file, &user.name, user.uid, home)).collect();
    let rights = if user.uid == 0 {
        Privilege::Root
    } else if cx.account().is_ok_and(|own| own == user.name) {
        Privilege::Caller
    } else {
        Privilege::User(user.name.clone())
    };
    let own = cx.files_as(rights);
    let mut why = Vec::new();
    for (path, contents) in files.iter().zip(own.read_all_bytes(&files)) {
        let contents = match contents {
            Ok(contents) => contents,
            Err(problem) if problem.category == Category::NotFound => continue,
            Err(problem) => {
                why.push(problem.message);
                continue;
            }
        };
        let lines = authorized_keys::lines(&contents);
        if !authorized_keys::keys(&lines).any(|(_, key)| key.opens_always()) {
            why.push(format!("{path} has no key that opens it from anywhere and for any command"));
        } else if let Some(loose) = loose(path, home, user.name.as_str(), settings, &own, cx) {
            why.push(loose);
        } else {
            return Ok(());
        }
    }
    if why.is_empty() {
        why.push(match files.first() {
            Some(first) => format!("there is no {first}"),
            None => "sshd reads no file of keys".to_owned(),
        });
    }
    if let Some(command) = settings.get("AuthorizedKeysCommand").filter(|command| *command != "none") {
        why.push(format!("what {command} (AuthorizedKeysCommand) knows can't be looked at"));
    }
    Err(why.join("; "))
}

/// The path for whose permissions sshd passes over the keys in a file, where `StrictModes` is on.
fn loose(
    path: &str,
    home: &str,
    name: &str,
    settings: &Settings,
    own: &Context,
    cx: &Context,
) -> Option<String> {
    if settings.is("StrictModes", "no") {
        return None;
    }
    let is_bad = |mode: u32, owner: &str| mode & 0o022 != 0 || ![name, "root"].contains(&owner);
    let said = |path: &str, mode: u32, owner: &str| {
        let mode = mode & 0o7777;
        format!("sshd passes over {path}'s keys: {path} is {owner}'s with mode {mode:04o}")
    };
    let directory = path.rsplit_once('/').map_or("/", |(directory, _)| directory);
    let places = [path, directory];
    for (place, found) in places.iter().zip(own.stat_all(&places)) {
        match found {
            Ok(Some(found)) if is_bad(found.mode, &found.owner) => {
                return Some(said(place, found.mode, &found.owner));
            }
            Ok(_) => {}
            Err(problem) => return Some(problem.message),
        }
    }
    if !path.starts_with(&format!("{home}/")) {
        return None;
    }
    let output = match cx.run(HOME.with([home]).privilege(Privilege::RootIfAvailable)) {
        Ok(output) => output,
        Err(problem) => return Some(problem.message),
    };
    let text = output.text();
    let found = text.trim().split_once(':');
    match found.and_then(|(mode, owner)| Some((u32::from_str_radix(mode, 8).ok()?, owner))) {
        Some((mode, owner)) if is_bad(mode, owner) => Some(said(home, mode, owner)),
        Some(_) => None,
        None => Some(format!("{home} can't be looked at: {}", output.error_text())),
    }
}

#[cfg(test)]
mod tests {
    use linux_sysadmin_sdk::knowledge::config_paths::covers;
    use linux_sysadmin_sdk::{Module, Privilege};

    use super::{grants, matches};

    #[test]
    fn the_grants_reach_the_usual_files_of_keys_and_their_directories_and_nothing_else_of_ssh() {
        let description = grants(Module::new("m", "1", "security", "")).description();
        let reaches = |privilege: &Privilege, path: &str| {
            let mut paths = description.capabilities.paths.iter();
            paths.any(|grant| grant.privilege == *privilege && covers(&grant.glob, path))
        };
        let (user, root) = (Privilege::User("*".to_owned()), Privilege::Root);
        for (path, of_user, of_root) in [
            ("/etc/ssh/authorized_keys", true, true),
            ("/etc/ssh/authorized_keys/ada", true, false),
            ("/etc/ssh/authorized_keys.d/root", true, true),
            ("/etc/ssh/authorized-keys/ada/authorized_keys", true, false),
            ("/etc/ssh/keys", true, true),
            ("/etc/ssh/keys/ada", true, false),
            ("/etc/ssh/keys/root/authorized_keys", true, true),
            ("/home/ada/.ssh/authorized_keys", true, false),
            ("/root/.ssh/authorized_keys", true, true),
            ("/etc/ssh/keys/ssh_host_ed25519_key", true, false),
            ("/etc/ssh/private_keys/ada", false, false),
            ("/etc/ssh/keys/ada/id_ed25519", false, false),
            ("/etc/ssh/sshd_config", false, false),
            ("/etc/ssh", false, false),
        ] {
            assert_eq!((reaches(&user, path), reaches(&root, path)), (of_user, of_root), "{path}");
        }
    }

    #[test]
    fn a_pattern_fits_as_sshd_compares_it() {
        for (pattern, name, expected) in [
            ("ada", "ada", true),
            ("ada", "adam", false),
            ("a*", "ada", true),
            ("*", "", true),
            ("a?a", "ada", true),
            ("a?a", "aa", false),
            ("*a*a", "ada", true),
            ("*b", "ada", false),
            ("", "ada", false),
            (&"*a".repeat(40), &"a".repeat(39), false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
