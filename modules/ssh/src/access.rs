//! `ssh_authorized_keys` and `ssh_copy_id`: who gets into an account of the target by which key.

use linux_sysadmin_sdk::{Category, prelude::*};

use crate::account::{Account, link};
use crate::authorized_keys::{self, Authorized, Entry, Line};
use crate::given::{chosen, must_be_fingerprint, new_key, read_key};
use crate::host;
use crate::lockout::{self, Ways};
use crate::options::{self, excerpt};
use crate::sshd;

/// Both tools, and others like them, take turns.
pub(crate) const LOCK: &str = "ssh-keys";

/// Characters of a comment that are shown.
pub(crate) const COMMENT: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    List,
    Add,
    Remove,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct KeysArgs {
    /// Default list
    action: Option<Action>,
    /// Default the connection's
    user: Option<String>,
    /// Whole public key line
    key: Option<String>,
    /// Instead of key, to remove
    fingerprint: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CopyArgs {
    /// The server's key: path of its .pub, or fingerprint; needed if it has several
    key: Option<String>,
    /// Default the connection's
    user: Option<String>,
}

/// The answer of both tools.
#[derive(Debug, Serialize)]
pub(crate) struct Access {
    user: String,
    path: String,
    /// Of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Vec<Item>>,
    /// The key that was added or removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// Keys in the file now, or if it were done.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    /// Of a dry run: `add` or `remove`. Nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

/// A line of the file that isn't empty and no comment.
#[derive(Debug, Serialize)]
struct Item {
    /// From 1.
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
    /// The connection was authenticated by it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    in_use: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<String>,
}

pub(crate) fn ssh_authorized_keys(args: KeysArgs, cx: &Context) -> Result<Noted<Access>> {
    let given = (args.key.as_deref(), args.fingerprint.as_deref());
    match (args.action.unwrap_or(Action::List), given) {
        (Action::List, (None, None)) => Ok(File::open(args.user.as_deref(), cx)?.list()),
        (Action::List, _) => Err(Problem::validation(
            "INVALID_ARGUMENTS",
            "a list takes neither key nor fingerprint: expected action add or remove",
        )),
        (Action::Add, (Some(key), None)) => {
            let key = new_key(key)?;
            File::open(args.user.as_deref(), cx)?.add(&key, cx)
        }
        (Action::Add, _) => Err(Problem::validation(
            "INVALID_ARGUMENTS",
            "to add takes a whole public key line as key, and no fingerprint",
        )),
        (Action::Remove, (Some(key), None)) => {
            let fingerprint = read_key(key)?.key.fingerprint();
            File::open(args.user.as_deref(), cx)?.remove(&fingerprint, cx)
        }
        (Action::Remove, (None, Some(fingerprint))) => {
            must_be_fingerprint(fingerprint)?;
            File::open(args.user.as_deref(), cx)?.remove(fingerprint, cx)
        }
        (Action::Remove, _) => Err(Problem::validation(
            "INVALID_ARGUMENTS",
            "to remove takes either key, a whole public key line, or fingerprint, as SHA256:…",
        )),
    }
}

pub(crate) fn ssh_copy_id(args: CopyArgs, cx: &Context) -> Result<Noted<Access>> {
    let key = chosen(host::public_keys()?, args.key.as_deref())?;
    let key = new_key(&key.line)?;
    File::open(args.user.as_deref(), cx)?.add(&key, cx)
}

/// An account's file.
struct File {
    account: Account,
    path: String,
    /// None where there is none.
    contents: Option<Vec<u8>>,
    has_directory: bool,
    others: Vec<Other>,
    notes: Vec<String>,
}

/// Another file that is there and whose keys open the account as well. It is only read.
struct Other {
    path: String,
    contents: Result<Vec<u8>>,
}

impl File {
    fn open(user: Option<&str>, cx: &Context) -> Result<Self> {
        let account = Account::find(user, cx)?;
        let sshd::Places { path, others, mut notes } = sshd::places(&account, cx)?;
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
        // What the directory leads to, where it is a link, may be anything, and refused.
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
            // Read all the same: the host then sees to it that it isn't there when the plan runs.
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

    fn list(mut self) -> Noted<Access> {
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

    fn add(mut self, new: &Authorized, cx: &Context) -> Result<Noted<Access>> {
        let fingerprint = new.key.fingerprint();
        let lines = authorized_keys::lines(self.bytes());
        let known = authorized_keys::keys(&lines).find(|(_, known)| known.opens() && known.key == new.key);
        let mut reply = Access { fingerprint: Some(fingerprint.clone()), ..self.reply() };
        if let Some((line, known)) = known {
            let mut note = format!("the key is there already, in line {line}: nothing was written");
            if known.options != new.options {
                let own: Vec<String> = known.options.iter().map(|option| options::shown(option)).collect();
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

    fn remove(mut self, fingerprint: &str, cx: &Context) -> Result<Noted<Access>> {
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
        let warning = lockout::may_remove(fingerprint, &lines, &self.account, &Ways::find(cx)?)?;
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

    /// The file as a whole, and what has to be there before it, with the rights of the account that it is of.
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
    /// None where there is no such file. What can't be looked at may be one.
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

    /// A problem where a key that is removed elsewhere would go on opening the account.
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
        options: found.options.iter().map(|option| options::shown(option)).collect(),
        finding,
    })
}
