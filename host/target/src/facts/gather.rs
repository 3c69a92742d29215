//! The questions, and the two ways to ask them.
//!
//! On this machine files are read and programs looked up directly, and only sudo is asked by commands. A machine that
//! only commands reach is asked everything at once: no question waits for another's answer, so it is one round trip.
//! Those commands are few, and have the options that GNU's programs and busybox's share. One that isn't there, or says
//! something else than expected, leaves its facts unknown; only who the account is must be known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Facts;
use super::derive::{Account, Answers, FILES, MARKS, Machine, Session};
use super::derive::{derive, programs};
use crate::ReadRequest;
use crate::entry::{Trusted, is_roots};
use crate::local::Local;
use crate::rights::Rights;
use host_base::problem::{Category, Problem};
use host_base::program::{PATH, Programs};
use host_base::{Command, Keep, Output, Privilege};
use host_text::visible::excerpt;

/// They look at some small files; sudo may have to ask another machine.
const TIMEOUT: Duration = Duration::from_secs(10);

const LOCALTIME: &str = "/etc/localtime";

/// For each file, so that none is held in memory that isn't what it should be.
const FILE_BYTES: u64 = 256 << 10;

/// What this machine is.
pub(crate) async fn gather_here(local: &Local) -> Facts {
    let asking = async |argument| local.run(&sudo(argument), Rights::NONE).await;
    let (files, everything, something) = tokio::join!(read_files(local, FILES), asking("true"), asking("-l"));
    let (sudo_everything, sudo_something) = allowed_by_sudo(everything, something);
    // Looked up anew: what was found once may have been removed since.
    let found = Programs::default();
    let is_there = |mark: &&&str| Path::new(mark).metadata().is_ok();
    let marks = MARKS.iter().filter(is_there).copied();
    let machine = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    derive(&Answers {
        files: Some(files),
        there: Some(programs().into_iter().filter(|name| found.find(name).is_ok()).chain(marks).collect()),
        localtime: std::fs::read_link(LOCALTIME).ok().map(|path| path.to_string_lossy().into_owned()),
        machine: Some(Machine {
            hostname: text(machine.nodename()),
            kernel: text(machine.release()),
            architecture: text(machine.machine()),
        }),
        account: Account { uid: rustix::process::geteuid().as_raw(), name: None },
        sudo_everything,
        sudo_something,
        session: Session {
            home: variable("HOME"),
            shell: variable("SHELL"),
            ssh_connection: variable("SSH_CONNECTION"),
        },
    })
}

/// Contents by path, of those that say anything.
async fn read_files(local: &Local, paths: &[&'static str]) -> BTreeMap<&'static str, String> {
    let request = |path: &&str| ReadRequest { path: (*path).to_owned(), offset: 0, max_bytes: FILE_BYTES };
    let requests = paths.iter().map(request).collect();
    // The host's own questions: no module has a say in these paths.
    let contents = local.read_all(requests, Trusted::Anyone, Arc::new(|_, _| Ok(()))).await;
    let read = paths.iter().zip(contents).filter_map(|(path, contents)| Some((*path, contents.ok()?)));
    let says_anything = read.filter(|(_, contents)| !contents.is_empty());
    says_anything.map(|(path, contents)| (path, String::from_utf8_lossy(&contents).into_owned())).collect()
}

/// The place of the question that asks which files are there.
pub(crate) const LISTING: usize = 1;

/// What a machine is asked that only commands reach; all of it at once. [`read`] takes the answers in this order.
/// Further files are looked for along with the rest; the answer about them is that of [`LISTING`].
pub(crate) fn questions(looked_for_too: &[String]) -> Vec<Command> {
    let mut looked_for: Vec<String> = MARKS.iter().map(|mark| (*mark).to_owned()).collect();
    looked_for.extend(directories());
    for directory in PATH.split(':') {
        looked_for.extend(programs().into_iter().map(|program| format!("{directory}/{program}")));
    }
    looked_for.extend_from_slice(looked_for_too);
    // Each line comes with its file's name, so no file can pass for another.
    let grep = ["-s", "-H", "-a", "--", ""].into_iter().chain(FILES.iter().copied());
    let ls = ["-l", "-n", "-L", "-d", "--"].into_iter().chain(looked_for.iter().map(String::as_str));
    vec![
        command("grep", grep),
        command("ls", ls),
        command("readlink", [LOCALTIME]),
        command("uname", ["-n", "-r", "-m"]),
        command("id", []),
        sudo("true"),
        sudo("-l"),
    ]
}

fn sudo(argument: &str) -> Command {
    command("sudo", ["-n", argument])
}

fn command<'a>(program: &str, args: impl IntoIterator<Item = &'a str>) -> Command {
    Command {
        program: program.to_owned(),
        args: args.into_iter().map(str::to_owned).collect(),
        env: Vec::new(),
        stdin: None,
        privilege: Privilege::Caller,
        timeout: TIMEOUT,
        keep: Keep::Head,
        heard: None,
    }
}

/// Where programs are, and the directories above.
fn directories() -> BTreeSet<String> {
    let above = PATH.split(':').flat_map(|directory| Path::new(directory).ancestors());
    above.map(|directory| directory.to_string_lossy().into_owned()).collect()
}

/// Facts from the answers to [`questions`]. A problem where the connection was lost on the way, or where it isn't told
/// which account this is.
pub(crate) fn read(answers: Vec<Result<Output, Problem>>, session: Session) -> Result<Facts, Problem> {
    let is_lost = |problem: &&Problem| problem.category == Category::Network;
    if let Some(lost) = answers.iter().filter_map(|answer| answer.as_ref().err()).find(is_lost) {
        return Err(lost.clone());
    }
    let count = answers.len();
    let Ok([files, there, localtime, machine, account, everything, something]) = <[_; 7]>::try_from(answers)
    else {
        let message = format!("{count} answers to the questions of what the target is");
        return Err(Problem::new("INTERNAL_ERROR", Category::Internal, message));
    };
    let succeeded = |output: &Output| output.exit_code == 0;
    let (sudo_everything, sudo_something) = allowed_by_sudo(everything, something);
    let localtime = localtime.ok().filter(succeeded);
    Ok(derive(&Answers {
        files: files.ok().and_then(|output| contents(&output.stdout)),
        there: there.ok().and_then(|output| listed(&output.stdout)),
        localtime: localtime.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        machine: machine.ok().and_then(|output| names(&output.stdout)),
        account: who(&account?)?,
        sudo_everything,
        sudo_something,
        session,
    }))
}

/// Whether sudo allows everything, and whether it allows anything. Rules with exceptions aren't everything, though most
/// commands pass them: what stands between sudo and a command would pass in the place of one that is excepted. Neither are
/// those under which a program may not start another.
fn allowed_by_sudo(everything: Result<Output, Problem>, listing: Result<Output, Problem>) -> (bool, bool) {
    let succeeded = |output: &Output| output.exit_code == 0;
    let Some(listing) = listing.ok().filter(succeeded) else {
        return (everything.is_ok_and(|output| succeeded(&output)), false);
    };
    let rules = String::from_utf8_lossy(&listing.stdout);
    let is_excepted = |word: &str| word.starts_with('!') && word.contains('/');
    let words = || rules.split([' ', ',', '\t', '\n']);
    let has_limits = words().any(is_excepted) || words().any(|word| matches!(word, "noexec" | "NOEXEC:"));
    (everything.is_ok_and(|output| succeeded(&output)) && !has_limits, true)
}

/// Lines that have each their file's path before them. What a limit cut off at the end isn't taken.
fn contents(stdout: &[u8]) -> Option<BTreeMap<&'static str, String>> {
    let mut files: BTreeMap<&'static str, Vec<u8>> = BTreeMap::new();
    for line in stdout.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        let of = |path: &&'static str| Some((*path, line.strip_prefix(path.as_bytes())?.strip_prefix(b":")?));
        if let Some((path, line)) = FILES.iter().find_map(of) {
            files.entry(path).or_default().extend_from_slice(line);
        }
    }
    let text = |contents: Vec<u8>| String::from_utf8_lossy(&contents).into_owned();
    (!files.is_empty()).then(|| files.into_iter().map(|(path, contents)| (path, text(contents))).collect())
}

/// Programs that are where only root can replace them, and marks. As far as `ls` tells: whether one can be used is
/// looked at when it is.
fn listed(stdout: &[u8]) -> Option<BTreeSet<&'static str>> {
    let stdout = String::from_utf8_lossy(stdout);
    let seen: BTreeMap<&str, Seen> = stdout.lines().filter_map(seen).collect();
    let of_root = |directory: &Path| {
        let seen = directory.to_str().and_then(|directory| seen.get(directory));
        seen.is_some_and(|seen| seen.kind == 'd' && seen.is_roots)
    };
    let places: Vec<&str> =
        PATH.split(':').filter(|directory| Path::new(directory).ancestors().all(of_root)).collect();
    let is_program = |path: &str| {
        seen.get(path).is_some_and(|seen| seen.kind == '-' && seen.is_roots && seen.is_executable)
    };
    let is_there = |name: &&str| places.iter().any(|place| is_program(&format!("{place}/{name}")));
    let marks = MARKS.iter().copied().filter(|mark| seen.contains_key(mark));
    (!places.is_empty()).then(|| programs().into_iter().filter(is_there).chain(marks).collect())
}

/// What `ls` says of a path.
struct Seen {
    kind: char,
    is_roots: bool,
    is_executable: bool,
}

/// `-rwxr-xr-x 1 0 0 18752 Jan 15 2023 /usr/bin/apt-get`
fn seen(line: &str) -> Option<(&str, Seen)> {
    let (before, path) = line.rsplit_once(' ')?;
    let [mode, _links, uid, ..] = before.split_ascii_whitespace().collect::<Vec<_>>()[..] else {
        return None;
    };
    let mut letters = mode.chars();
    let kind = letters.next()?;
    let bits: Vec<char> = letters.take(9).collect();
    // `s` and `t` have an `x` under them; `S` and `T` have none.
    let bit = |(place, letter): (usize, &char)| match (place % 3, letter) {
        (_, '-') | (2, 'S' | 'T') => Some(0),
        (0, 'r') | (1, 'w') | (2, 'x' | 's' | 't') => Some(0o400 >> place),
        _ => None,
    };
    let bits: Vec<u32> = bits.iter().enumerate().map(bit).collect::<Option<_>>()?;
    let mode: u32 = (bits.len() == 9).then(|| bits.iter().sum())?;
    let is_roots = is_roots(uid.parse().ok()?, mode);
    Some((path, Seen { kind, is_roots, is_executable: mode & 0o111 != 0 }))
}

/// `web1 6.1.0-28-amd64 x86_64`
fn names(stdout: &[u8]) -> Option<Machine> {
    let text = String::from_utf8_lossy(stdout);
    let line = text.strip_suffix('\n').filter(|line| !line.contains('\n'))?;
    // A host's name may be any text; the others are words.
    let mut words = line.rsplitn(3, ' ').filter(|word| !word.is_empty()).map(str::to_owned);
    let (architecture, kernel) = (words.next()?, words.next()?);
    Some(Machine { hostname: words.next()?, kernel, architecture })
}

/// `uid=1000(ada) gid=1000(ada) groups=1000(ada),27(sudo)`; no name where the number has none.
fn who(output: &Output) -> Result<Account, Problem> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let account = || {
        let (first, _) = stdout.strip_prefix("uid=")?.split_once(" gid=")?;
        let (uid, name) = match first.split_once('(') {
            Some((uid, name)) => (uid, Some(name.strip_suffix(')')?.to_owned())),
            None => (first, None),
        };
        Some(Account { uid: uid.parse().ok()?, name })
    };
    account().ok_or_else(|| {
        let said =
            if stdout.trim().is_empty() { String::from_utf8_lossy(&output.stderr) } else { stdout.clone() };
        let said = excerpt(said.trim(), 200);
        let message = format!(
            "id (exit code {}) doesn't tell which account the target is reached as: {said}",
            output.exit_code
        );
        Problem::new("UNEXPECTED_OUTPUT", Category::Other, message)
    })
}

#[cfg(test)]
mod tests;
