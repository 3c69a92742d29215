//! The questions about facts, and the two ways to ask them.
//!
//! On this machine the host reads files and looks up programs directly, and only sudo is asked by commands. A machine
//! that is reached by commands alone is asked everything at once: no question waits for another's answer, and so it
//! takes one round trip. The commands are few, and use only options that GNU's programs and busybox share. A command
//! that is missing or prints something unexpected leaves its facts unknown. Only the account has to be known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Facts;
use super::derive::{Account, Answers, FILES, SessionEnvironment, UnameOutput};
use super::derive::{derive, marker_files, programs};
use crate::ReadRequest;
use crate::entry::{Trusted, is_roots};
use crate::local::Local;
use crate::rights::Rights;
use host_base::problem::{Category, Problem};
use host_base::program::{PATH, Programs};
use host_base::{Command, Output};
use host_text::visible::excerpt;

/// The commands look at small files, but sudo may have to ask another machine.
const TIMEOUT: Duration = Duration::from_secs(10);

const LOCALTIME: &str = "/etc/localtime";

/// The limit for each file, because a file may be larger than it should be.
const FILE_BYTES: u64 = 256 << 10;

/// Gathers the facts about this machine.
pub(crate) async fn gather_here(local: &Local) -> Facts {
    let asking = async |argument| local.run(&sudo(argument), Rights::NONE).await;
    let (files, everything, something) = tokio::join!(read_files(local, FILES), asking("true"), asking("-l"));
    let (sudo_everything, sudo_something) = allowed_by_sudo(everything, something);
    // The programs are looked up again, because one that was found before may have been removed since.
    let found = Programs::default();
    let marks = marker_files().filter(|mark| Path::new(mark).metadata().is_ok());
    let machine = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    derive(&Answers {
        files: Some(files),
        there: Some(programs().into_iter().filter(|name| found.find(name).is_ok()).chain(marks).collect()),
        localtime: std::fs::read_link(LOCALTIME).ok().map(|path| path.to_string_lossy().into_owned()),
        machine: Some(UnameOutput {
            hostname: text(machine.nodename()),
            kernel: text(machine.release()),
            architecture: text(machine.machine()),
        }),
        account: Account { uid: rustix::process::geteuid().as_raw(), name: None },
        sudo_everything,
        sudo_something,
        session: SessionEnvironment {
            home: variable("HOME"),
            shell: variable("SHELL"),
            ssh_connection: variable("SSH_CONNECTION"),
        },
    })
}

/// Returns the contents by path, without empty ones.
async fn read_files(local: &Local, paths: &[&'static str]) -> BTreeMap<&'static str, String> {
    let request = |path: &&str| ReadRequest { path: (*path).to_owned(), offset: 0, max_bytes: FILE_BYTES };
    let requests = paths.iter().map(request).collect();
    // These are the host's own questions, and no module chooses the paths.
    let contents = local.read_all(requests, Trusted::Anyone, Arc::new(|_, _| Ok(()))).await;
    let read = paths.iter().zip(contents).filter_map(|(path, contents)| Some((*path, contents.ok()?)));
    let says_anything = read.filter(|(_, contents)| !contents.is_empty());
    says_anything.map(|(path, contents)| (path, String::from_utf8_lossy(&contents).into_owned())).collect()
}

/// The index of the question that asks which files exist.
pub(crate) const LISTING_QUESTION: usize = 1;

/// Returns the questions for a machine that is reached by commands alone. [`read`] takes the answers in this order.
/// The question [`LISTING_QUESTION`] also asks about the given files.
pub(crate) fn questions(service_files: &[String]) -> Vec<Command> {
    let mut paths: Vec<String> = marker_files().map(str::to_owned).collect();
    paths.extend(directories());
    for directory in PATH.split(':') {
        paths.extend(programs().into_iter().map(|program| format!("{directory}/{program}")));
    }
    paths.extend_from_slice(service_files);
    // Each line comes with its file's name, and so no file can pass for another.
    let grep = ["-s", "-H", "-a", "--", ""].into_iter().chain(FILES.iter().copied());
    let ls = ["-l", "-n", "-L", "-d", "--"].into_iter().chain(paths.iter().map(String::as_str));
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
    Command::new(program, args, TIMEOUT)
}

/// Returns the directories with programs, and those above them.
fn directories() -> BTreeSet<String> {
    let above = PATH.split(':').flat_map(|directory| Path::new(directory).ancestors());
    above.map(|directory| directory.to_string_lossy().into_owned()).collect()
}

/// Derives facts from the answers to [`questions`]. Returns a problem where the connection was lost, or the answers
/// don't tell which account this is.
pub(crate) fn read(
    answers: Vec<Result<Output, Problem>>,
    session: SessionEnvironment,
) -> Result<Facts, Problem> {
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

/// Returns whether sudo allows everything, and whether it allows anything. Rules with exceptions don't allow
/// everything, though they let most commands pass: the program between sudo and a command would pass in place of an
/// excepted command. Rules under which a program may not start another don't allow everything either.
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

/// Reads lines of which each begins with its file's path. A last line without an end was cut and is left out.
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

/// Returns the programs that lie where only root can replace them, and the marker files. It goes by `ls` alone; a
/// program is checked again when it is used.
fn listed(stdout: &[u8]) -> Option<BTreeSet<&'static str>> {
    let stdout = String::from_utf8_lossy(stdout);
    let seen: BTreeMap<&str, ListedFile> = stdout.lines().filter_map(seen).collect();
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
    let marks = marker_files().filter(|mark| seen.contains_key(mark));
    (!places.is_empty()).then(|| programs().into_iter().filter(is_there).chain(marks).collect())
}

/// A file as `ls` lists it.
struct ListedFile {
    kind: char,
    is_roots: bool,
    is_executable: bool,
}

/// Reads a line such as `-rwxr-xr-x 1 0 0 18752 Jan 15 2023 /usr/bin/apt-get`.
fn seen(line: &str) -> Option<(&str, ListedFile)> {
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
    Some((path, ListedFile { kind, is_roots, is_executable: mode & 0o111 != 0 }))
}

/// Reads a line such as `web1 6.1.0-28-amd64 x86_64`.
fn names(stdout: &[u8]) -> Option<UnameOutput> {
    let text = String::from_utf8_lossy(stdout);
    let line = text.strip_suffix('\n').filter(|line| !line.contains('\n'))?;
    // A host's name may be any text; the others are words.
    let mut words = line.rsplitn(3, ' ').filter(|word| !word.is_empty()).map(str::to_owned);
    let (architecture, kernel) = (words.next()?, words.next()?);
    Some(UnameOutput { hostname: words.next()?, kernel, architecture })
}

/// Reads the account from a line such as `uid=1000(ada) gid=1000(ada) groups=1000(ada),27(sudo)`. An id without a name
/// has no parentheses.
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
