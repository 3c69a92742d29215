//! Whether system mode holds: everything that it rests on, one by one.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::account::{self, HOME, State};
use super::fragments::{self, Configured};
use super::install::is_file_with;
use super::rights::{self, Listed, Rights};
use super::{ACCOUNT, SystemError, groups, programs, trust};
use crate::sudoers;
use host_audit::JOURNAL;
use host_base::passwd;
use host_target::Target;

/// How one thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it must be.
    Ok,
    /// Not there.
    Missing,
    /// There, and not as it must be.
    Wrong,
    /// Only root can see it.
    Unknown,
}

/// One thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How it is.
    pub status: Status,
    /// What was found, and why it isn't right.
    pub detail: String,
}

fn check(name: impl Into<String>, status: Status, detail: impl Into<String>) -> Check {
    Check { name: name.into(), status, detail: detail.into() }
}

/// Looks at everything. The modules are those beside the program that sudo may start.
pub async fn checks(
    target: &Target,
    program: &Path,
    modules_beside: impl Fn(&Path) -> Option<PathBuf>,
    configured: Configured,
) -> Vec<Check> {
    let (lines, rights) = lines();
    let is_root = rustix::process::geteuid().is_root();
    let own = match is_root {
        true => None,
        false => Some(said(target, &["-n", "-l"]).await),
    };
    let named = match &rights {
        Some(rights) => Some(rights.program.clone()),
        None => own.as_ref().and_then(|said| rights::program(said.as_ref().ok()?)),
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
        let is_right = is_file_with(Path::new(rights::FILE), &rights.text(sudo)).unwrap_or(false);
        if !is_right {
            let again = "not what `system install` writes for this sudo, or not root's with mode 0440";
            checks.push(check(rights::FILE, Status::Wrong, again));
        }
    }
    if is_root {
        if let Some(modules) = &modules {
            checks.extend(of_fragments(target, modules, home.then_some(Path::new(HOME)), configured).await);
        }
        for user in rights.iter().flat_map(|rights| &rights.users) {
            let said = said(target, &["-l", "-U", user]).await;
            checks.extend(of_user(target, Some(user), said, &program).await);
        }
    } else {
        checks.push(check("the account's sudo rights", Status::Unknown, "run this as root to see them"));
    }
    if let Some(said) = own {
        checks.extend(of_user(target, None, said, &program).await);
    }
    checks.push(of_journal());
    checks
}

/// What sudo says of somebody's rights.
async fn said(target: &Target, args: &[&str]) -> Result<String, SystemError> {
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
        Ok(State::Missing { .. }) => {
            check("account", Status::Missing, format!("there is no account {ACCOUNT}"))
        }
        Ok(State::Wrong(why)) => check("account", Status::Wrong, format!("{ACCOUNT}: {why}")),
        Ok(State::Right(account)) => {
            check("account", Status::Ok, format!("{ACCOUNT}, number {}, without a login", account.uid))
        }
    }
}

/// The home, and what is in it.
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
    match account::own(home, found.uid) {
        // Those that nobody has needed yet, the server makes.
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

/// Who may use the server, by the file that says so.
fn lines() -> (Check, Option<Rights>) {
    let name = "who may use it";
    let file = Path::new(rights::FILE);
    let text = match passwd::text(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return (
                check(name, Status::Unknown, format!("{}: run this as root to see it", rights::FILE)),
                None,
            );
        }
        Err(error) => return (check(name, Status::Wrong, format!("{}: {error}", rights::FILE)), None),
    };
    if text.is_empty() {
        return (check(name, Status::Missing, format!("there is no {}", rights::FILE)), None);
    }
    match Rights::parse(&text) {
        Ok(rights) if rights.users.is_empty() => (check(name, Status::Missing, "nobody"), Some(rights)),
        Ok(rights) => {
            let users: Vec<&str> = rights.users.iter().map(String::as_str).collect();
            (check(name, Status::Ok, users.join(", ")), Some(rights))
        }
        Err(line) => {
            let detail = format!("{} holds what `system install` didn't write: {line}", rights::FILE);
            (check(name, Status::Wrong, detail), None)
        }
    }
}

/// Whether the account's rights are those that its modules ask for now.
async fn of_fragments(
    target: &Target,
    modules: &Path,
    home: Option<&Path>,
    configured: Configured,
) -> Vec<Check> {
    let name = "the account's sudo rights";
    let wanted = match fragments::wanted(target, modules, home, configured).await {
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

/// What somebody who uses the server may do besides; without a name, who runs this.
async fn of_user(
    target: &Target,
    user: Option<&str>,
    said: Result<String, SystemError>,
    program: &Path,
) -> Vec<Check> {
    let name = user.unwrap_or("you");
    let rights = format!("sudo rights of {name}");
    let said = match said {
        Ok(said) => said,
        Err(error) => return vec![check(rights, Status::Unknown, error.to_string())],
    };
    let listed = rights::listed(&said, program);
    let mut loose = rights::loose(&said);
    let exempt: Vec<&str> = loose.iter().filter_map(|setting| rights::exempt_group(setting)).collect();
    let known = async {
        let own = groups::of(target, user).await?;
        let grave = groups::named(target, &AS_GOOD_AS_ROOT).await?;
        let exempt = groups::named(target, &exempt).await?;
        Ok::<_, SystemError>((own, grave, exempt))
    };
    let (own, grave, exempt) = match known.await {
        Ok(known) => known,
        // Then they may be in any.
        Err(error) => {
            let unknown = check(format!("groups of {name}"), Status::Unknown, error.to_string());
            return vec![judged(rights, &listed, &loose), unknown];
        }
    };
    if !exempt.iter().any(|(_, gid)| own.contains(gid)) {
        loose.retain(|setting| rights::exempt_group(setting).is_none());
    }
    [judged(rights, &listed, &loose)].into_iter().chain(of_groups(name, &own, &grave)).collect()
}

/// Groups whose members are as good as root, whatever sudo says: they have its containers, its disks or its files.
const AS_GOOD_AS_ROOT: [&str; 8] =
    ["root", "docker", "lxd", "incus", "incus-admin", "libvirt", "disk", "kmem"];

/// By number: that is what the kernel compares.
fn of_groups(name: &str, own: &[u32], grave: &[(String, u32)]) -> Option<Check> {
    let found = grave.iter().filter(|(_, gid)| own.contains(gid));
    let found: Vec<&str> = found.map(|(group, _)| group.as_str()).collect();
    let detail = format!("in {}, which is as good as root", found.join(", "));
    (!found.is_empty()).then(|| check(format!("groups of {name}"), Status::Wrong, detail))
}

/// `loose` are settings by which lines that take a password go without one.
fn judged(name: String, listed: &[Listed], loose: &[String]) -> Check {
    let lines = |without: bool| -> BTreeSet<&str> {
        let others = listed.iter().filter(|listed| !listed.is_own && listed.without_password == without);
        others.map(|listed| listed.line.as_str()).collect()
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
    if !with.is_empty() && !loose.is_empty() {
        let detail = format!(
            "more than to start the server, and nobody need type a password each time, since sudoers says {}: {}. A \
             model with a shell there has it, too",
            loose.join(", "),
            joined(with)
        );
        return check(name, Status::Wrong, detail);
    }
    if !listed.iter().any(|listed| listed.is_own) {
        return check(name, Status::Missing, "the line that starts the server isn't among them");
    }
    let detail = match with.is_empty() {
        true => "to start the server, and no other".to_owned(),
        false => format!("to start the server; with a password, besides: {}", joined(with)),
    };
    check(name, Status::Ok, detail)
}

/// Where the log's heads go, too.
fn of_journal() -> Check {
    match fs::metadata(JOURNAL) {
        Ok(found) if found.file_type().is_socket() => {
            check("journal", Status::Ok, "the log's heads go there as well")
        }
        _ => check("journal", Status::Missing, "there is none, so nobody else knows the log's heads"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_target::Overrides;

    #[test]
    fn whatever_goes_without_a_password_besides_the_server_is_wrong() {
        let line =
            |line: &str, is_own, without_password| Listed { line: line.to_owned(), is_own, without_password };
        let own = line("own", true, true);
        for (listed, status, word) in [
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
            let found = judged("x".to_owned(), &listed, &[]);
            assert_eq!(found.status, status, "{listed:?}");
            assert!(found.detail.contains(word), "{}", found.detail);
        }
    }

    #[test]
    fn a_password_that_nobody_need_type_is_none() {
        let line =
            |line: &str, is_own, without_password| Listed { line: line.to_owned(), is_own, without_password };
        let own = line("own", true, true);
        let loose = ["!authenticate".to_owned()];
        let found = judged("x".to_owned(), &[own.clone(), line("(ALL) ALL", false, false)], &loose);
        assert_eq!(found.status, Status::Wrong);
        assert!(found.detail.contains("!authenticate: (ALL) ALL."), "{}", found.detail);
        // Where no line takes one, none is spared.
        assert_eq!(judged("x".to_owned(), &[own], &loose).status, Status::Ok);
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
            let said = format!(
                "Matching Defaults entries for root on vm:\n    env_reset, exempt_group={group}\n\n\
                 User root may run the following commands on vm:\n    (ALL : ALL) ALL\n    \
                 (linux-sysadmin) NOPASSWD: /usr/local/bin/linux-sysadmin serve\n"
            );
            let checks = of_user(&target, Some("root"), Ok(said), program).await;
            assert_eq!(checks[0].status, status, "{checks:?}");
            assert_eq!((checks[1].name.as_str(), checks[1].status), ("groups of root", Status::Wrong));
        }
        // Of whom nothing is known, nothing is ok.
        let said = "x\n    exempt_group=wheel\nUser x may run the following commands on vm:\n    (ALL) ALL\n";
        let checks = of_user(&target, Some("lsa-nobody-at-all"), Ok(said.to_owned()), program).await;
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
