//! Accounts' crontabs on the target, through the command `crontab`. On Debian a group may write to the spool directory,
//! so that its files aren't read as root. `crontab` also checks the syntax of a new crontab, and tells the daemon.

use linux_sysadmin_sdk::{Category, Privilege, accounts, prelude::*, text};

/// Prints an account's crontab.
pub(crate) const LIST_OF: CommandLine = CommandLine::new("crontab -u <user> -l");
/// Prints the caller's own crontab.
pub(crate) const LIST: CommandLine = CommandLine::new("crontab -l");
/// Removes an account's crontab.
pub(crate) const DELETE_OF: CommandLine = CommandLine::new("crontab -u <user> -r");
/// Removes the caller's own crontab.
pub(crate) const DELETE: CommandLine = CommandLine::new("crontab -r");
/// Installs an account's crontab.
pub(crate) const INSTALL_OF: &str = "crontab -u <user> - < stdin";
/// Installs the caller's own crontab.
pub(crate) const INSTALL: &str = "crontab - < stdin";

/// The directories in which cron keeps crontabs, by the family of distributions. Each account with a crontab has a file
/// of its name there. The module lists the names as root, although others than root may write to the directory; it reads
/// the contents through `crontab`.
const SPOOLS: [(&str, &str); 2] = [("debian", "/var/spool/cron/crontabs"), ("rhel", "/var/spool/cron")];

/// The file with the names of local accounts. Accounts of a directory service aren't in it.
pub(crate) const PASSWD: &str = "/etc/passwd";

/// The most commands that the host takes at once.
const AT_ONCE: usize = 32;

/// The most accounts whose crontabs are read.
const MOST_ACCOUNTS: usize = 500;

/// The host's error code for a program that isn't installed.
const NO_CRONTAB: &str = "PROGRAM_NOT_FOUND";

/// An account, and how to reach its crontab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) user: String,
    /// True where the account is the caller and isn't root: its crontab needs no more than its own rights.
    own: bool,
}

impl Owner {
    /// The named account, or the one that the target is reached as.
    pub(crate) fn find(cx: &Context, user: Option<&str>) -> Result<Self> {
        let account = account(cx);
        let user = match user {
            Some(user) => {
                accounts::check_user(user)?;
                user.to_owned()
            }
            None => account.clone().map_err(|problem| problem.remedy("Name the user"))?,
        };
        let own = user != "root" && account.is_ok_and(|account| account == user);
        Ok(Self { user, own })
    }

    fn list(&self) -> Command {
        if self.own { LIST.command() } else { list_of(&self.user) }
    }

    /// The command that installs this text as the crontab.
    pub(crate) fn install(&self, text: &str) -> Command {
        let command = Command::new("crontab");
        let command = if self.own { command } else { command.args(["-u", &self.user]).as_root() };
        command.arg("-").stdin(text)
    }

    /// The command that restores the crontab as it was before.
    pub(crate) fn restore(&self, text: Option<&str>) -> Command {
        match text {
            Some(text) => self.install(text),
            None if self.own => DELETE.command(),
            None => DELETE_OF.with([&self.user]).as_root(),
        }
    }

    /// The text of the crontab, `None` where there is no crontab.
    pub(crate) fn read(&self, cx: &Context) -> Result<Option<Vec<u8>>> {
        contents(&self.user, cx.run(self.list()))
    }

    /// The text of the crontab, for a tool that writes it back. Bytes that aren't UTF-8 are a problem, because they would
    /// be lost.
    pub(crate) fn read_to_edit(&self, cx: &Context) -> Result<Option<String>> {
        let Some(bytes) = self.read(cx)? else { return Ok(None) };
        String::from_utf8(bytes).map(Some).map_err(|error| {
            let line =
                error.as_bytes()[..error.utf8_error().valid_up_to()].split(|byte| *byte == b'\n').count();
            let message = format!(
                "line {line} of {}'s crontab isn't UTF-8, so it is not edited: expected text in UTF-8",
                self.user
            );
            Problem::new("CRONTAB_NOT_UTF8", Category::State, message)
                .remedy(format!("Edit it on the target: crontab -u {} -e", self.user))
        })
    }
}

/// The command takes root's rights where the target allows them. crontab itself reports where it needs them.
fn list_of(user: &str) -> Command {
    LIST_OF.with([user]).privilege(Privilege::RootIfAvailable)
}

/// The account that the target is reached as.
fn account(cx: &Context) -> Result<String> {
    let name = cx.account()?;
    if accounts::is_name(&name) {
        return Ok(name);
    }
    let message =
        format!("the account in use has no name that crontab takes: `{}`", crate::problem::echo(&name));
    Err(Problem::new("INVALID_USER", Category::State, message))
}

/// The output of `crontab -l`, `None` where it reports that there is no crontab.
fn contents(user: &str, output: Result<Output>) -> Result<Option<Vec<u8>>> {
    let output = output?;
    if output.exit_code == 0 {
        return Ok(Some(output.success("crontab")?.stdout));
    }
    let said = output.error_text();
    if said.starts_with("no crontab for") {
        return Ok(None);
    }
    if said.contains("' unknown") {
        return Err(Problem::not_found("USER_NOT_FOUND", format!("the target has no account {user}")));
    }
    if said.contains("must be privileged") {
        let message = format!("{user}'s crontab is for {user} alone, and for root's rights: {said}");
        return Err(Problem::new("PRIVILEGE_REQUIRED", Category::Privilege, message)
            .remedy("Allow this account to run crontab through sudo without a password")
            .remedy("Run 'linux-sysadmin modules sudoers cron' for the rules, and nothing beyond them, that sudo needs"));
    }
    Err(refused(&said))
}

/// The problem of a refusal by crontab, in its own words.
pub(crate) fn refused(said: &str) -> Problem {
    let message = format!("crontab refused: {}", said.replace('\n', "; "));
    if ["not allowed to use", "cannot use this program"].iter().any(|sign| said.contains(sign)) {
        return Problem::new("CRONTAB_REFUSED", Category::Privilege, message)
            .remedy("Look at /etc/cron.allow and /etc/cron.deny on the target");
    }
    Problem::validation("CRONTAB_REFUSED", message)
}

/// One account's crontab. Bytes that aren't UTF-8 have become U+FFFD.
pub(crate) struct Crontab {
    pub(crate) user: String,
    pub(crate) text: String,
}

/// The crontabs of all accounts that the caller may read, and notes on those that are missing.
pub(crate) fn all(cx: &Context) -> (Vec<Crontab>, Vec<String>) {
    let mut notes = Vec::new();
    let own = account(cx).ok();
    let mut unread = Vec::new();
    let mut crontabs = Vec::new();
    if own.as_deref() == Some("root") || cx.distro().sudo_available {
        let users = with_crontab(account_names(cx, &mut notes), cx);
        for users in users.chunks(AT_ONCE) {
            let outputs = cx.run_all(users.iter().map(|user| list_of(user)).collect());
            for (user, output) in users.iter().zip(outputs) {
                sort_in(user, contents(user, output), &mut crontabs, &mut unread);
            }
            // A program that is missing for one account is missing for all.
            if unread.iter().any(|(_, problem)| problem.code == NO_CRONTAB) {
                break;
            }
        }
    } else if own.is_some() {
        notes.push("only the account's own crontab was read: those of others take root's rights".to_owned());
    } else {
        notes.push("accounts' crontabs were not read: the account's own name is not known".to_owned());
    }
    // The caller's own crontab needs no rights of root.
    if let Some(own) = own.filter(|own| own != "root" && crontabs.iter().all(|known| known.user != *own)) {
        unread.retain(|(user, _)| *user != own);
        sort_in(&own, contents(&own, cx.run(LIST.command())), &mut crontabs, &mut unread);
    }
    notes.extend(missing(&unread));
    (crontabs, notes)
}

/// The accounts that have a crontab. All accounts where the spool can't be listed: `crontab` then reports it for each.
fn with_crontab(mut users: Vec<String>, cx: &Context) -> Vec<String> {
    let family = cx.distro().family;
    let spool = SPOOLS.iter().find(|(known, _)| *known == family);
    let cx = cx.files_as(Privilege::RootIfAvailable);
    if let Some(names) = spool.and_then(|(_, spool)| cx.list_dir(spool).ok()) {
        users.retain(|user| names.contains(user));
    }
    users
}

/// The spool directories.
pub(crate) fn spools() -> impl Iterator<Item = &'static str> {
    SPOOLS.iter().map(|(_, spool)| *spool)
}

/// A note that names the missing crontabs, and the reason of the first one.
fn missing(unread: &[(String, Problem)]) -> Option<String> {
    let (_, problem) = unread.first()?;
    if problem.code == NO_CRONTAB {
        return Some("the target has no program crontab, so that accounts have no crontabs".to_owned());
    }
    let users: Vec<_> = unread.iter().map(|(user, _)| user.clone()).collect();
    let why = problem.message.replace('\n', "; ");
    Some(format!("crontabs that were not read: {} ({why})", few(&users)))
}

/// Adds a crontab to the list, or the reason why it couldn't be read.
fn sort_in(
    user: &str,
    contents: Result<Option<Vec<u8>>>,
    crontabs: &mut Vec<Crontab>,
    unread: &mut Vec<(String, Problem)>,
) {
    match contents {
        Ok(Some(bytes)) => crontabs
            .push(Crontab { user: user.to_owned(), text: String::from_utf8_lossy(&bytes).into_owned() }),
        Ok(None) => {}
        // crontab doesn't know every account of the file.
        Err(problem) if problem.code == "USER_NOT_FOUND" => {}
        Err(problem) => unread.push((user.to_owned(), problem)),
    }
}

/// The names in the file of accounts, in its order, each once.
fn account_names(cx: &Context, notes: &mut Vec<String>) -> Vec<String> {
    let passwd = match cx.read(PASSWD) {
        Ok(passwd) => passwd,
        Err(problem) => {
            notes.push(format!("accounts' crontabs were not looked for: {}", problem.message));
            return Vec::new();
        }
    };
    let mut users: Vec<String> = Vec::new();
    let mut odd = Vec::new();
    let mut known = std::collections::HashSet::new();
    for name in passwd.lines().filter_map(|line| line.split(':').next()).filter(|name| !name.is_empty()) {
        // Lines with `+` and `-` at the start belong to NIS and aren't names.
        if name.starts_with(['+', '-', '#']) || !known.insert(name) {
            continue;
        }
        if accounts::is_name(name) {
            users.push(name.to_owned())
        } else {
            odd.push(crate::problem::echo(name))
        }
    }
    if !odd.is_empty() {
        notes.push(format!("crontabs that were not read, for the account's name: {}", few(&odd)));
    }
    if users.len() > MOST_ACCOUNTS {
        let more = users.len() - MOST_ACCOUNTS;
        notes.push(format!(
            "{more} accounts were not asked for: only the first {MOST_ACCOUNTS} of {PASSWD} are"
        ));
        users.truncate(MOST_ACCOUNTS);
    }
    users
}

/// The first names of a list, and the number of the others.
pub(crate) fn few(names: &[String]) -> String {
    text::list(names, 10)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;

    #[test]
    fn a_target_without_crontab_misses_nothing() {
        let problem = |code: &str| Problem::not_found(code, "no such\nprogram");
        let unread =
            |code: &str| vec![("root".to_owned(), problem(code)), ("ada".to_owned(), problem("OTHER"))];
        assert_eq!(missing(&[]), None);
        assert!(missing(&unread("PROGRAM_NOT_FOUND")).unwrap().contains("no program crontab"));
        assert_eq!(
            missing(&unread("OTHER")).unwrap(),
            "crontabs that were not read: root, ada (no such; program)"
        );
    }

    #[test]
    fn who_lacks_rights_is_told_how_to_get_them() {
        let said = output(1, "", "must be privileged to use -u\n");
        let problem = contents("root", Ok(said)).unwrap_err();
        assert_eq!(problem.code, "PRIVILEGE_REQUIRED");
        assert!(problem.remediation.iter().any(|step| step.contains("modules sudoers cron")));
    }

    #[test]
    fn half_a_crontab_is_none() {
        let whole = output(0, "@daily true\n", "");
        let output = Output { stdout_bytes: 2 << 20, stdout_lines: 100_000, truncated: true, ..whole };
        assert_eq!(contents("ada", Ok(output)).unwrap_err().code, "OUTPUT_TOO_LARGE");
    }
}
