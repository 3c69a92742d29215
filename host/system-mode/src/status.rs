//! Checks whether system mode holds, with everything that it rests on.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::account::{self, AccountState, HOME};
use super::fragments::{self, ModuleConfigReader};
use super::install::is_file_with;
use super::serve_rights::{self, ServeRights, SudoListEntry};
use super::{ACCOUNT, SystemError, groups, programs, trust, wall};
use crate::sudoers;
use host_audit::JOURNAL;
use host_base::passwd;
use host_target::Target;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The thing is as it must be.
    Ok,
    /// The thing is missing.
    Missing,
    /// The thing exists, and isn't as it must be.
    Wrong,
    /// Another account than root looked, and only root can see the thing.
    Unknown,
}

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The name of what was checked.
    pub name: String,
    /// The result.
    pub status: Status,
    /// The finding, and the reason where it isn't right.
    pub detail: String,
}

fn check(name: impl Into<String>, status: Status, detail: impl Into<String>) -> Check {
    Check { name: name.into(), status, detail: detail.into() }
}

/// Checks everything. The modules are those beside the program that sudo may start.
pub async fn checks(
    target: &Target,
    program: &Path,
    modules_beside: impl Fn(&Path) -> Option<PathBuf>,
    read_module_config: ModuleConfigReader,
) -> Vec<Check> {
    let (lines, rights) = lines();
    let is_root = rustix::process::geteuid().is_root();
    let own = match is_root {
        true => None,
        false => Some(sudo_output(target, &["-n", "-l"]).await),
    };
    let named = match &rights {
        Some(rights) => Some(rights.program.clone()),
        None => own.as_ref().and_then(|sudo_output| serve_rights::program(sudo_output.as_ref().ok()?)),
    };
    let program = named.unwrap_or_else(|| program.to_owned());
    let modules = modules_beside(&program).and_then(|modules| modules.canonicalize().ok());
    let mut checks = vec![of_path("program", trust::who_else(&program), &program)];
    checks.push(match &modules {
        Some(modules) => of_path("modules", trust::who_else_in(modules), modules),
        None => check("modules", Status::Missing, format!("there are none beside {}", program.display())),
    });
    let account = of_account(target).await;
    let home = account.status == Status::Ok;
    checks.push(account);
    checks.extend(of_home());
    checks.push(lines);
    let sudo = sudoers::sudo_version(target).await;
    if let Some(rights) = &rights {
        let is_right = is_file_with(Path::new(serve_rights::FILE), &rights.text(sudo)).unwrap_or(false);
        if !is_right {
            let again = "not what `system install` writes for this sudo, or not root's with mode 0440";
            checks.push(check(serve_rights::FILE, Status::Wrong, again));
        }
    }
    if is_root {
        if let Some(modules) = &modules {
            checks.extend(
                of_fragments(target, modules, home.then_some(Path::new(HOME)), read_module_config).await,
            );
        }
        for user in rights.iter().flat_map(|rights| &rights.users) {
            let sudo_output = sudo_output(target, &["-l", "-U", user]).await;
            checks.extend(of_user(target, Some(user), sudo_output, &program).await);
        }
    } else {
        checks.push(check("the account's sudo rights", Status::Unknown, "run this as root to see them"));
    }
    if let Some(sudo_output) = own {
        checks.extend(of_user(target, None, sudo_output, &program).await);
    }
    checks.push(of_journal());
    checks.extend(of_wall());
    checks
}

/// Returns what sudo says of somebody's rights.
async fn sudo_output(target: &Target, args: &[&str]) -> Result<String, SystemError> {
    let output = programs::run(target, "sudo", args, programs::SHORT).await?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn of_path(name: &str, who_else: io::Result<Option<String>>, path: &Path) -> Check {
    match (path.exists(), who_else) {
        (_, Err(error)) => check(name, Status::Unknown, format!("{}: {error}", path.display())),
        (false, _) => check(name, Status::Missing, path.display().to_string()),
        (true, Ok(None)) => check(name, Status::Ok, format!("{}: only root can change it", path.display())),
        (true, Ok(Some(who))) => check(name, Status::Wrong, format!("{}: {who}", path.display())),
    }
}

async fn of_account(target: &Target) -> Check {
    match account::state(target).await {
        Err(error) => check("account", Status::Unknown, error.to_string()),
        Ok(AccountState::Missing { .. }) => {
            check("account", Status::Missing, format!("there is no account {ACCOUNT}"))
        }
        Ok(AccountState::Wrong(why)) => check("account", Status::Wrong, format!("{ACCOUNT}: {why}")),
        Ok(AccountState::Right(account)) => {
            check("account", Status::Ok, format!("{ACCOUNT}, number {}, without a login", account.uid))
        }
    }
}

/// Checks the home, and what is in it.
fn of_home() -> Vec<Check> {
    let Some(found) = super::account() else { return Vec::new() };
    let home = Path::new(HOME);
    let own = match (trust::who_else_in_parents(home), account::wrong_with(home, found.uid, 0o700)) {
        (Ok(None), Ok(None)) => check("home", Status::Ok, format!("{HOME}: its own alone")),
        (Ok(Some(who)), _) => check("home", Status::Wrong, who),
        (_, Ok(Some(why))) => check("home", Status::Wrong, format!("{HOME}: {why}")),
        (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => check("home", Status::Missing, HOME),
        (Err(error), _) | (_, Err(error)) => check("home", Status::Unknown, format!("{HOME}: {error}")),
    };
    let mut checks = vec![own];
    match account::home_directories(home, found.uid) {
        // The server makes directories that nobody has needed yet.
        Ok(own) if own.wrong.is_empty() => checks.push(check(
            "configuration, log, keys",
            if own.missing.is_empty() { Status::Ok } else { Status::Missing },
            match own.missing.first() {
                None => "mode 0700, its own".to_owned(),
                Some(missing) => missing.display().to_string(),
            },
        )),
        Ok(own) => checks.extend(own.wrong.into_iter().map(|(path, why)| {
            check("configuration, log, keys", Status::Wrong, format!("{}: {why}", path.display()))
        })),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let detail = "this account can't see them, as it should be; run this as root to check them";
            checks.push(check("configuration, log, keys", Status::Unknown, detail));
        }
        Err(error) => checks.push(check("configuration, log, keys", Status::Wrong, error.to_string())),
    }
    checks
}

/// Checks who may use the server, by the file that says so.
fn lines() -> (Check, Option<ServeRights>) {
    let name = "who may use it";
    let file = Path::new(serve_rights::FILE);
    let text = match passwd::text_or_empty(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return (
                check(name, Status::Unknown, format!("{}: run this as root to see it", serve_rights::FILE)),
                None,
            );
        }
        Err(error) => return (check(name, Status::Wrong, format!("{}: {error}", serve_rights::FILE)), None),
    };
    if text.is_empty() {
        return (check(name, Status::Missing, format!("there is no {}", serve_rights::FILE)), None);
    }
    match ServeRights::parse(&text) {
        Ok(rights) if rights.users.is_empty() => (check(name, Status::Missing, "nobody"), Some(rights)),
        Ok(rights) => {
            let users: Vec<&str> = rights.users.iter().map(String::as_str).collect();
            (check(name, Status::Ok, users.join(", ")), Some(rights))
        }
        Err(line) => {
            let detail = format!("{} holds what `system install` didn't write: {line}", serve_rights::FILE);
            (check(name, Status::Wrong, detail), None)
        }
    }
}

/// Checks whether the account's rights are those that its modules ask for now.
async fn of_fragments(
    target: &Target,
    modules: &Path,
    home: Option<&Path>,
    read_module_config: ModuleConfigReader,
) -> Vec<Check> {
    let name = "the account's sudo rights";
    let wanted = match fragments::wanted(target, modules, home, read_module_config).await {
        Ok(wanted) => wanted,
        Err(error) => return vec![check(name, Status::Wrong, error.to_string())],
    };
    let mut checks = Vec::new();
    let again = "`system install` puts it right";
    for (path, text) in &wanted.files {
        match (path.exists(), is_file_with(path, text)) {
            (_, Ok(true)) => {}
            (false, _) => checks.push(check(name, Status::Missing, format!("{}; {again}", path.display()))),
            (true, _) => {
                let detail = format!(
                    "{} isn't what the modules ask for now, or not root's with mode 0440; {again}",
                    path.display()
                );
                checks.push(check(name, Status::Wrong, detail));
            }
        }
    }
    match fragments::stale(Path::new(fragments::DIRECTORY), &wanted.files) {
        Ok(stale) => checks.extend(stale.into_iter().map(|path| {
            check(name, Status::Wrong, format!("{}: no module asks for it; {again}", path.display()))
        })),
        Err(error) => checks.push(check(name, Status::Wrong, error.to_string())),
    }
    if checks.is_empty() {
        let count = wanted.files.len();
        let mut detail = format!("{count} files, as the modules ask for them now");
        for note in &wanted.notes {
            detail.push_str(&format!("; {note}"));
        }
        checks.push(check(name, Status::Ok, detail));
    }
    checks
}

/// Checks what a user of the server may do besides. Without a name it is the account that runs this.
async fn of_user(
    target: &Target,
    user: Option<&str>,
    sudo_output: Result<String, SystemError>,
    program: &Path,
) -> Vec<Check> {
    let name = user.unwrap_or("you");
    let rights = format!("sudo rights of {name}");
    let sudo_output = match sudo_output {
        Ok(sudo_output) => sudo_output,
        Err(error) => return vec![check(rights, Status::Unknown, error.to_string())],
    };
    let sudo_list = serve_rights::sudo_list(&sudo_output, program);
    let mut passwordless_settings = serve_rights::passwordless_settings(&sudo_output);
    let exempt: Vec<&str> =
        passwordless_settings.iter().filter_map(|setting| serve_rights::exempt_group(setting)).collect();
    let known = async {
        let own = groups::of(target, user).await?;
        let grave = groups::named(target, &AS_GOOD_AS_ROOT).await?;
        let exempt = groups::named(target, &exempt).await?;
        Ok::<_, SystemError>((own, grave, exempt))
    };
    let (own, grave, exempt) = match known.await {
        Ok(known) => known,
        // The user may be in any group then.
        Err(error) => {
            let unknown = check(format!("groups of {name}"), Status::Unknown, error.to_string());
            return vec![judged(rights, &sudo_list, &passwordless_settings), unknown];
        }
    };
    if !exempt.iter().any(|(_, gid)| own.contains(gid)) {
        passwordless_settings.retain(|setting| serve_rights::exempt_group(setting).is_none());
    }
    [judged(rights, &sudo_list, &passwordless_settings)]
        .into_iter()
        .chain(of_groups(name, &own, &grave))
        .collect()
}

/// Groups whose members are as good as root, whatever sudo says: they have its containers, its disks or its files.
const AS_GOOD_AS_ROOT: [&str; 8] =
    ["root", "docker", "lxd", "incus", "incus-admin", "libvirt", "disk", "kmem"];

/// Compares groups by number, as the kernel does.
fn of_groups(name: &str, own: &[u32], grave: &[(String, u32)]) -> Option<Check> {
    let found = grave.iter().filter(|(_, gid)| own.contains(gid));
    let found: Vec<&str> = found.map(|(group, _)| group.as_str()).collect();
    let detail = format!("in {}, which is as good as root", found.join(", "));
    (!found.is_empty()).then(|| check(format!("groups of {name}"), Status::Wrong, detail))
}

/// Judges the lines of `sudo -l`. `loose` are settings by which lines that ask for a password run without one.
fn judged(name: String, sudo_list: &[SudoListEntry], passwordless_settings: &[String]) -> Check {
    let lines = |without: bool| -> BTreeSet<&str> {
        let others =
            sudo_list.iter().filter(|sudo_list| !sudo_list.is_own && sudo_list.without_password == without);
        others.map(|sudo_list| sudo_list.line.as_str()).collect()
    };
    let joined = |lines: BTreeSet<&str>| lines.into_iter().collect::<Vec<_>>().join("; ");
    let (without, with) = (lines(true), lines(false));
    if !without.is_empty() {
        let detail = format!(
            "more than to start the server, without a password: {}. A model with a shell there has it, too",
            joined(without)
        );
        return check(name, Status::Wrong, detail);
    }
    if !with.is_empty() && !passwordless_settings.is_empty() {
        let detail = format!(
            "more than to start the server, and nobody need type a password each time, since sudoers says {}: {}. A \
             model with a shell there has it, too",
            passwordless_settings.join(", "),
            joined(with)
        );
        return check(name, Status::Wrong, detail);
    }
    if !sudo_list.iter().any(|sudo_list| sudo_list.is_own) {
        return check(name, Status::Missing, "the line that starts the server isn't among them");
    }
    let detail = match with.is_empty() {
        true => "to start the server, and no other".to_owned(),
        false => format!("to start the server; with a password, besides: {}", joined(with)),
    };
    check(name, Status::Ok, detail)
}

/// Checks whether the log's heads also go to the journal.
fn of_journal() -> Check {
    match fs::metadata(JOURNAL) {
        Ok(found) if found.file_type().is_socket() => {
            check("journal", Status::Ok, "the log's heads go there as well")
        }
        _ => check("journal", Status::Missing, "there is none, so nobody else knows the log's heads"),
    }
}

/// Checks that messages of other accounts don't reach the terminal at which root approves.
fn of_wall() -> Vec<Check> {
    let name = "messages on terminals";
    match wall::ways_to_terminals() {
        Ok(ways) if ways.is_empty() => {
            vec![check(name, Status::Ok, "neither the journal nor another logger writes any")]
        }
        Ok(ways) => ways.into_iter().map(|why| check(name, Status::Wrong, why)).collect(),
        Err(error) => vec![check(name, Status::Unknown, error.to_string())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_target::Overrides;

    #[test]
    fn whatever_goes_without_a_password_besides_the_server_is_wrong() {
        let line = |line: &str, is_own, without_password| SudoListEntry {
            line: line.to_owned(),
            is_own,
            without_password,
        };
        let own = line("own", true, true);
        for (sudo_list, status, word) in [
            (vec![own.clone()], Status::Ok, "no other"),
            (
                vec![own.clone(), line("(ALL) ALL", false, false)],
                Status::Ok,
                "with a password, besides: (ALL) ALL",
            ),
            (
                vec![own, line("(root) NOPASSWD: /bin/a", false, true)],
                Status::Wrong,
                "(root) NOPASSWD: /bin/a",
            ),
            (vec![line("(ALL) NOPASSWD: ALL", false, true)], Status::Wrong, "(ALL) NOPASSWD: ALL"),
            (vec![line("(ALL) ALL", false, false)], Status::Missing, "isn't among them"),
            (vec![], Status::Missing, "isn't among them"),
        ] {
            let found = judged("x".to_owned(), &sudo_list, &[]);
            assert_eq!(found.status, status, "{sudo_list:?}");
            assert!(found.detail.contains(word), "{}", found.detail);
        }
    }

    #[test]
    fn a_password_that_nobody_need_type_is_none() {
        let line = |line: &str, is_own, without_password| SudoListEntry {
            line: line.to_owned(),
            is_own,
            without_password,
        };
        let own = line("own", true, true);
        let passwordless_settings = ["!authenticate".to_owned()];
        let found =
            judged("x".to_owned(), &[own.clone(), line("(ALL) ALL", false, false)], &passwordless_settings);
        assert_eq!(found.status, Status::Wrong);
        assert!(found.detail.contains("!authenticate: (ALL) ALL."), "{}", found.detail);
        // Where no line asks for a password, the setting changes nothing.
        assert_eq!(judged("x".to_owned(), &[own], &passwordless_settings).status, Status::Ok);
    }

    #[test]
    fn a_group_is_as_good_as_root_by_its_number_whoever_lists_its_members() {
        let grave = [("root".to_owned(), 0), ("docker".to_owned(), 999)];
        for (own, found) in
            [(&[1000, 4][..], None), (&[999], Some("in docker, ")), (&[0, 999], Some("in root, docker, "))]
        {
            let check = of_groups("alice", own, &grave);
            assert_eq!(check.is_some(), found.is_some(), "{own:?}");
            if let (Some(check), Some(found)) = (check, found) {
                assert!(check.status == Status::Wrong && check.detail.starts_with(found), "{check:?}");
            }
        }
    }

    #[tokio::test]
    async fn who_is_exempt_is_in_that_group() {
        let target = Target::local(Overrides::default());
        let program = Path::new("/usr/local/bin/linux-sysadmin");
        for (group, status) in [("root", Status::Wrong), ("lsa-no-such-group", Status::Ok)] {
            let sudo_output = format!(
                "Matching Defaults entries for root on vm:\n    env_reset, exempt_group={group}\n\n\
                 User root may run the following commands on vm:\n    (ALL : ALL) ALL\n    \
                 (linux-sysadmin) NOPASSWD: /usr/local/bin/linux-sysadmin serve\n"
            );
            let checks = of_user(&target, Some("root"), Ok(sudo_output), program).await;
            assert_eq!(checks[0].status, status, "{checks:?}");
            assert_eq!((checks[1].name.as_str(), checks[1].status), ("groups of root", Status::Wrong));
        }
        // Where the groups aren't known, nothing counts as right.
        let sudo_output =
            "x\n    exempt_group=wheel\nUser x may run the following commands on vm:\n    (ALL) ALL\n";
        let checks = of_user(&target, Some("lsa-nobody-at-all"), Ok(sudo_output.to_owned()), program).await;
        assert_eq!([checks[0].status, checks[1].status], [Status::Wrong, Status::Unknown]);
    }

    #[test]
    fn a_program_that_is_not_there_is_missing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("none");
        assert_eq!(of_path("program", Ok(None), &path).status, Status::Missing);
        assert_eq!(of_path("program", Ok(None), directory.path()).status, Status::Ok);
        assert_eq!(of_path("program", Ok(Some("x".to_owned())), directory.path()).status, Status::Wrong);
    }
}
