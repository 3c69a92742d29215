//! `ssh_key_list` and `ssh_key_generate`: the keys of the account that the server runs as. Private halves are made, and
//! never read.

use linux_sysadmin_sdk::{Category, DurationCategory, prelude::*};

use crate::access::LOCK;
use crate::account::Account;
use crate::authorized_keys::Authorized;
use crate::host::{self, PublicKey};
use crate::key;
use crate::options::excerpt;

/// Makes a pair. Where the private half is there, ssh-keygen asks on its stdin, which is empty, and gives up.
pub(crate) const GENERATE: &str = "ssh-keygen -q -t (ed25519|ecdsa -b (256|384|521)|rsa -b <int>) -N '' \
                                   [-C <text>] -f <path:/**>/.ssh/<user>";
/// Of the public half it doesn't ask: it would write over it.
pub(crate) const ABSENT: CommandLine = CommandLine::new("test '!' -e <path:/**>/.ssh/<user>.pub");
/// The way back.
pub(crate) const REMOVE: CommandLine =
    CommandLine::new("rm -- <path:/**>/.ssh/<user> <path:/**>/.ssh/<user>.pub");

/// Names that ssh and sshd know already.
const TAKEN: [&str; 7] =
    ["authorized_keys", "authorized_keys2", "config", "environment", "known_hosts", "known_hosts2", "rc"];

/// Characters of a comment.
const LONGEST_COMMENT: usize = 200;

/// What is usual for RSA.
const RSA: u32 = 4096;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListArgs {
    /// With the whole public lines
    #[serde(default)]
    lines: bool,
}

/// One key of the controller.
#[derive(Debug, Serialize)]
pub(crate) struct Item {
    /// None of a key that only the agent has.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    algorithm: String,
    bits: u32,
    fingerprint: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    comment: String,
    has_private: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    encrypted: Option<bool>,
    in_agent: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
}

pub(crate) fn ssh_key_list(args: ListArgs, _: &Context) -> Result<Listing<Item>> {
    let item = |key: PublicKey| Item {
        findings: findings(&key),
        line: args.lines.then_some(key.line),
        path: key.path,
        algorithm: key.algorithm,
        bits: key.bits,
        fingerprint: key.fingerprint,
        comment: key.comment,
        has_private: key.has_private,
        encrypted: key.encrypted,
        in_agent: key.in_agent,
    };
    Ok(host::public_keys()?.into_iter().map(item).collect::<Vec<_>>().into())
}

fn findings(key: &PublicKey) -> Vec<String> {
    let mut findings: Vec<String> =
        key::finding(&key.algorithm, key.bits.try_into().unwrap_or(usize::MAX)).into_iter().collect();
    if let Some(mode) = key.mode.filter(|mode| mode & 0o077 != 0) {
        findings.push(format!(
            "others may read its private half (mode {:04o}): ssh won't use it, expected 0600",
            mode & 0o7777
        ));
    }
    // What lies there of a security key's is of use with the security key only.
    if key.encrypted == Some(false) && !key.algorithm.starts_with("sk-") {
        findings.push("its private half has no passphrase".to_owned());
    }
    findings
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Ed25519,
    Ecdsa,
    Rsa,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Ed25519 => "ed25519",
            Self::Ecdsa => "ecdsa",
            Self::Rsa => "rsa",
        }
    }

    /// How long it is to be, as `ssh-keygen -b` takes it.
    fn bits(self, wanted: Option<u32>) -> Result<Option<u32>> {
        let expected = |what: &str| {
            let message = format!("bits is {}: expected {what}", wanted.unwrap_or_default());
            Err(Problem::validation("INVALID_BITS", message))
        };
        match (self, wanted) {
            (Self::Ed25519, None | Some(256)) => Ok(None),
            (Self::Ed25519, _) => expected("none, since an ed25519 key has 256"),
            (Self::Ecdsa, bits) => match bits.unwrap_or(256) {
                bits @ (256 | 384 | 521) => Ok(Some(bits)),
                _ => expected("256, 384 or 521"),
            },
            (Self::Rsa, bits) => match bits.unwrap_or(RSA) {
                bits @ 3072..=8192 => Ok(Some(bits)),
                _ => expected("3072 to 8192"),
            },
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct GenerateArgs {
    #[serde(default, rename = "type")]
    kind: Kind,
    /// ecdsa 256, 384, 521; rsa 3072 to 8192
    bits: Option<u32>,
    /// In ~/.ssh; default id_<type>
    name: Option<String>,
    comment: Option<String>,
}

/// The new pair.
#[derive(Debug, Serialize)]
pub(crate) struct Generated {
    /// Of the private half.
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// For authorized_keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    /// Of a dry run: `generate`. Nothing was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

pub(crate) fn ssh_key_generate(args: GenerateArgs, cx: &Context) -> Result<Single<Generated>> {
    let bits = args.kind.bits(args.bits)?;
    let name = args.name.unwrap_or_else(|| format!("id_{}", args.kind.name()));
    must_be_name(&name)?;
    args.comment.as_deref().map_or(Ok(()), must_be_comment)?;
    let account = Account::own(cx)?;
    account.must_have_home(cx)?;
    let has_directory = must_be_absent(&account, &name, cx)?;

    let path = format!("{}/{name}", account.directory());
    let values = [account.home.as_str(), &name];
    let mut command = Command::new("ssh-keygen").args(["-q", "-t", args.kind.name()]);
    if let Some(bits) = bits {
        command = command.args(["-b".to_owned(), bits.to_string()]);
    }
    command = command.args(["-N", ""]);
    if let Some(comment) = &args.comment {
        command = command.args(["-C", comment]);
    }
    let command = command.args(["-f", &path]).duration(DurationCategory::Normal);
    let short = account.short(&path);
    let mut change =
        Change::new(format!("Make an SSH key pair of type {}: {short}, {short}.pub", args.kind.name()))
            .warning(format!(
                "the private key, {short}, has no passphrase: whoever can read the file has the key"
            ))
            .lock(Lock::Named(LOCK.to_owned()));
    if !has_directory {
        change =
            change.step(Step::make_directory(account.directory(), 0o700).files_as(account.privilege.clone()));
    }
    let undo = REMOVE.with([values, values].concat());
    change = change.step(Step::run(ABSENT.with(values))).step(Step::run(command).undo(undo));
    let mut made = Generated { path: path.clone(), fingerprint: None, line: None, would: None };
    if cx.apply(change).map_err(broken)?.dry_run {
        made.would = Some("generate");
        return Ok(Single(made));
    }
    let line = cx.read(&format!("{path}.pub"))?;
    let public = Authorized::read(&line).ok_or_else(|| Problem::unexpected("the new public key", &line))?;
    made.fingerprint = Some(public.key.fingerprint());
    made.line = Some(public.line());
    Ok(Single(made))
}

/// A plain name, as the grants' hole takes it, of nothing else's.
fn must_be_name(name: &str) -> Result<()> {
    let invalid = |why: &str| {
        let message = format!(
            "name is {:?}, which {why}: expected a plain file name in ~/.ssh, as id_deploy",
            excerpt(name, 60)
        );
        Err(Problem::validation("INVALID_NAME", message))
    };
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    if name.is_empty() || name.len() > 32 || !begins || !is_plain || name.ends_with('.') {
        return invalid("isn't letters, digits, `_`, `.` and `-`, at most 32, a letter or `_` first");
    }
    if name.ends_with(".pub") {
        return invalid("is a public half's");
    }
    if TAKEN.contains(&name) {
        return invalid("ssh uses for something else");
    }
    Ok(())
}

fn must_be_comment(comment: &str) -> Result<()> {
    let is_one = !comment.is_empty()
        && comment.chars().count() <= LONGEST_COMMENT
        && !comment.starts_with('-')
        && !comment.chars().any(char::is_control)
        && comment.trim() == comment;
    if is_one {
        return Ok(());
    }
    let message = format!(
        "comment is {:?}: expected one line of at most {LONGEST_COMMENT} characters that doesn't begin with `-`",
        excerpt(comment, 60)
    );
    Err(Problem::validation("INVALID_COMMENT", message))
}

/// Neither half may be there, nor a link by either name; says whether their directory is.
fn must_be_absent(account: &Account, name: &str, cx: &Context) -> Result<bool> {
    let directory = account.directory();
    let found = cx.stat_all(&[&directory]).remove(0)?;
    let Some(found) = found else { return Ok(false) };
    if found.is_symlink {
        return Err(crate::account::link(&directory, "the directory of keys"));
    }
    let names = cx.list_dir(&directory)?;
    let public = format!("{name}.pub");
    let Some(there) = names.iter().find(|there| [name, &public].contains(&there.as_str())) else {
        return Ok(true);
    };
    let message = format!("~/.ssh/{there} is there already: a key is never written over");
    Err(Problem::new("KEY_EXISTS", Category::State, message)
        .remedy("Choose another name")
        .remedy("Use the key that is there: ssh_key_list"))
}

/// Which of the two was there, where one was after all.
fn broken(failure: Failure) -> Problem {
    let last = failure.outputs.last().filter(|output| output.exit_code != 0 && !failure.uncertain);
    let was_there = last.is_some_and(|output| {
        output.text().contains("already exists") || (output.stdout.is_empty() && output.stderr.is_empty())
    });
    if was_there && failure.problem.code == "COMMAND_FAILED" {
        let message = "one half of the key has come to be there since: a key is never written over";
        return Problem::new("KEY_EXISTS", Category::State, message).remedy("Choose another name");
    }
    failure.problem
}
