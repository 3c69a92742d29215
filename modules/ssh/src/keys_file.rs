//! The file with the keys that open an account of the target, for `ssh_authorized_keys` and `ssh_copy_id`.

use linux_sysadmin_sdk::{Category, prelude::*, text::excerpt};

use crate::account::{Account, link};
use crate::host;
use crate::key_options;
use crate::lockout::{self, LoginKeys};
use crate::sshd;
use linux_sysadmin_sdk::authorized_keys::{self, Authorized, Entry, Line};

/// The lock of all tools that change keys.
pub(crate) const LOCK: &str = "ssh-keys";

/// The number of characters of a comment that are shown.
pub(crate) const COMMENT: usize = 200;

/// The answer of both tools.
#[derive(Debug, Serialize)]
pub(crate) struct Access {
    user: String,
    path: String,
    /// The keys, in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Vec<Item>>,
    /// The key that was added or removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// The number of keys in the file after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    /// `add` or `remove` in a dry run, where nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

/// A line of the file that is neither empty nor a comment.
#[derive(Debug, Serialize)]
struct Item {
    /// The line number, from 1.
    line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    algorithm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    comment: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
    /// True where the connection was authenticated by the key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    in_use: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<String>,
}

/// An account's authorized_keys.
pub(crate) struct KeysFile {
    account: Account,
    path: String,
    /// The contents, `None` where there is no file.
    contents: Option<Vec<u8>>,
    has_directory: bool,
    others: Vec<Other>,
    notes: Vec<String>,
}

/// Another file whose keys open the account as well. It is only read.
struct Other {
    path: String,
    contents: Result<Vec<u8>>,
}

impl KeysFile {
    pub(crate) fn open(user: Option<&str>, cx: &Context) -> Result<Self> {
        let account = Account::find(user, cx)?;
        let sshd::KeyFiles { path, others, mut notes } = sshd::places(&account, cx)?;
        account.must_have_home(cx)?;
        let directory = account.directory();
        let cx = cx.files_as(account.privilege.clone());
        let mut found = cx.stat_all(&[&directory, &path]).into_iter();
        let mut next = || found.next().unwrap_or(Ok(None));
        let (above, file) = (next()?, next());
        let name = &account.name;
        if above.as_ref().is_some_and(|found| found.is_symlink) {
            return Err(link(&directory, &format!("{name}'s directory of keys")));
        }
        if above.as_ref().is_some_and(|found| !found.is_dir) {
            return Err(Problem::new(
                "NOT_A_DIRECTORY",
                Category::State,
                format!("{directory} is no directory"),
            ));
        }
        // This comes after the checks of the directory, because a symlink could lead to a path that is refused.
        let file = file?;
        match &file {
            Some(found) if found.is_symlink => return Err(link(&path, &format!("{name}'s file of keys"))),
            Some(found) if found.is_dir => {
                return Err(Problem::new("NOT_A_FILE", Category::State, format!("{path} is a directory")));
            }
            _ => {}
        }
        let contents = match (cx.read_bytes(&path), &file) {
            (Ok(contents), _) => Some(contents),
            // The file is read all the same, so that the host makes sure that it is still missing when the plan runs.
            (Err(problem), None) if problem.category == Category::NotFound => None,
            (Err(problem), _) => return Err(problem),
        };
        for (path, found) in [(&directory, &above), (&path, &file)] {
            let Some(found) = found else { continue };
            let is_others = ![name.as_str(), "root"].contains(&found.owner.as_str());
            if is_others || found.mode & 0o022 != 0 {
                notes.push(format!(
                    "sshd passes over the keys where StrictModes is on: {path} is {}'s with mode {:04o}, \
                     expected {name}'s, and that nobody else may write to it",
                    found.owner,
                    found.mode & 0o7777
                ));
            }
        }
        let others = others.into_iter().filter_map(|path| Other::find(path, &cx)).collect();
        Ok(Self { account, path, contents, has_directory: above.is_some(), others, notes })
    }

    fn bytes(&self) -> &[u8] {
        self.contents.as_deref().unwrap_or_default()
    }

    fn reply(&self) -> Access {
        let Self { account, path, .. } = self;
        let (user, path) = (account.name.clone(), path.clone());
        Access { user, path, keys: None, fingerprint: None, count: None, would: None }
    }

    pub(crate) fn list(mut self) -> Noted<Access> {
        let in_use = host::key_in_use();
        let lines = authorized_keys::lines(self.bytes());
        let keys = lines.iter().filter_map(|line| item(line, in_use.as_deref())).collect();
        if self.contents.is_none() {
            self.notes.push(format!("{} isn't there", self.path));
        }
        let name = &self.account.name;
        self.notes.extend(self.others.iter().filter_map(|other| match &other.contents {
            Ok(contents) if count(contents) == 0 => None,
            Ok(_) => Some(format!("keys of {name} are in {} as well", other.path)),
            Err(problem) => {
                Some(format!("keys of {name} may be in {} as well: {}", other.path, problem.message))
            }
        }));
        Noted { data: Access { keys: Some(keys), ..self.reply() }, notes: self.notes }
    }

    pub(crate) fn add(mut self, new: &Authorized, cx: &Context) -> Result<Noted<Access>> {
        let fingerprint = new.key.fingerprint();
        let lines = authorized_keys::lines(self.bytes());
        let known = authorized_keys::keys(&lines).find(|(_, known)| known.opens() && known.key == new.key);
        let mut reply = Access { fingerprint: Some(fingerprint.clone()), ..self.reply() };
        if let Some((line, known)) = known {
            let mut note = format!("the key is there already, in line {line}: nothing was written");
            if known.options != new.options {
                let own: Vec<String> =
                    known.options.iter().map(|option| key_options::shown(option)).collect();
                let own = if own.is_empty() { "none".to_owned() } else { own.join(",") };
                note = format!("{note}; its options there are others ({own}), and stay");
            }
            reply.count = Some(count(self.bytes()));
            self.notes.push(note);
            return Ok(Noted { data: reply, notes: self.notes });
        }
        let after = authorized_keys::with(self.bytes(), &new.line());
        reply.count = Some(count(&after));
        let name = &self.account.name;
        let what = format!("Add the key {fingerprint}{} to {name}'s", named(new));
        let mut change = self.plan(&what, after).warning(format!("whoever has the key gets in as {name}"));
        if let Some(finding) = new.key.finding() {
            change = change.warning(finding);
        }
        if cx.apply(change)?.dry_run {
            reply.would = Some("add");
        }
        Ok(Noted { data: reply, notes: self.notes })
    }

    pub(crate) fn remove(mut self, fingerprint: &str, cx: &Context) -> Result<Noted<Access>> {
        self.others.iter().try_for_each(|other| other.must_not_have(fingerprint, &self.account.name))?;
        let lines = authorized_keys::lines(self.bytes());
        let mut reply = Access { fingerprint: Some(fingerprint.to_owned()), ..self.reply() };
        let of_key = authorized_keys::keys(&lines)
            .map(|(_, found)| found)
            .find(|found| found.key.fingerprint() == fingerprint);
        let Some(of_key) = of_key else {
            reply.count = Some(count(self.bytes()));
            self.notes.push("the key isn't there: nothing was written".to_owned());
            return Ok(Noted { data: reply, notes: self.notes });
        };
        let warning = lockout::may_remove(fingerprint, &lines, &self.account, &LoginKeys::find(cx)?)?;
        let after = authorized_keys::without(self.bytes(), fingerprint);
        reply.count = Some(count(&after));
        let what = format!("Remove the key {fingerprint}{} from {}'s", named(of_key), self.account.name);
        let mut change = self.plan(&what, after);
        if let Some(warning) = warning {
            change = change.warning(warning).risk(Risk::Critical);
        }
        if cx.apply(change)?.dry_run {
            reply.would = Some("remove");
        }
        Ok(Noted { data: reply, notes: self.notes })
    }

    /// The plan that writes the whole file, with the rights of its account. It makes the directory where there is none.
    fn plan(&self, what: &str, after: Vec<u8>) -> Change {
        let rights = || self.account.privilege.clone();
        let mut change = Change::new(format!("{what} authorized_keys")).lock(Lock::Named(LOCK.to_owned()));
        if !self.has_directory {
            change = change.step(Step::make_directory(self.account.directory(), 0o700).files_as(rights()));
        }
        let write = Step::write(&self.path, after).files_as(rights());
        match self.contents {
            Some(_) => change.step(write).lock(Lock::File(self.path.clone())),
            None => change.step(write.mode(0o600)),
        }
    }
}

impl Other {
    /// Reads another file. `None` where it doesn't exist. A file that can't be read may exist.
    fn find(path: String, cx: &Context) -> Option<Self> {
        let found = cx.stat_all(&[&path]).into_iter().next().unwrap_or(Ok(None));
        let contents = match found {
            Ok(None) => return None,
            Ok(Some(found)) if found.is_dir => return None,
            Ok(Some(_)) => cx.read_bytes(&path),
            Err(problem) => Err(problem),
        };
        Some(Self { path, contents })
    }

    /// Refuses to remove a key that would still open the account by this file.
    fn must_not_have(&self, fingerprint: &str, name: &str) -> Result<()> {
        let path = &self.path;
        let why = match &self.contents {
            Ok(contents) => {
                let lines = authorized_keys::lines(contents);
                let line =
                    authorized_keys::keys(&lines).find(|(_, found)| found.key.fingerprint() == fingerprint);
                let Some((line, _)) = line else { return Ok(()) };
                format!("{fingerprint} would still open {name} by {path}, line {line}")
            }
            Err(problem) => {
                format!(
                    "{fingerprint} may still open {name} by {path}, which can't be read: {}",
                    problem.message
                )
            }
        };
        Err(Problem::new("KEY_ELSEWHERE", Category::State, format!("{why}; nothing was removed"))
            .remedy(format!("Look at {path} by hand, and remove the key there first")))
    }
}

fn count(file: &[u8]) -> usize {
    authorized_keys::keys(&authorized_keys::lines(file)).count()
}

fn named(key: &Authorized) -> String {
    if key.comment.is_empty() { String::new() } else { format!(" ({})", excerpt(&key.comment, COMMENT)) }
}

fn item(line: &Line<'_>, in_use: Option<&str>) -> Option<Item> {
    let found = match &line.entry {
        Entry::Nothing => return None,
        Entry::Junk => {
            let finding = Some("not a key that sshd knows: it passes over the line".to_owned());
            return Some(Item {
                line: line.number,
                algorithm: None,
                bits: None,
                fingerprint: None,
                comment: String::new(),
                options: Vec::new(),
                in_use: false,
                finding,
            });
        }
        Entry::Key(found) => found,
    };
    let fingerprint = found.key.fingerprint();
    let finding = match found {
        _ if found.key.is_certificate() => Some("a certificate: sshd takes keys here only".to_owned()),
        _ if found.is_authority() => Some("an authority: its certificates open the account".to_owned()),
        _ if found.unknown_option().is_some() => {
            Some("an option that sshd doesn't know: it passes over the line".to_owned())
        }
        _ => found.key.finding(),
    };
    Some(Item {
        line: line.number,
        algorithm: Some(found.key.algorithm.clone()),
        bits: Some(found.key.bits).filter(|bits| *bits > 0),
        in_use: in_use == Some(&fingerprint),
        fingerprint: Some(fingerprint),
        comment: excerpt(&found.comment, COMMENT),
        options: found.options.iter().map(|option| key_options::shown(option)).collect(),
        finding,
    })
}
