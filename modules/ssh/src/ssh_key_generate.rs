//! `ssh_key_generate`: makes a key pair for the account that the server runs as. No private key is ever read.

use linux_sysadmin_sdk::{Category, DurationCategory, accounts, prelude::*, text::excerpt};

use crate::account::Account;
use crate::keys_file::LOCK;
use linux_sysadmin_sdk::authorized_keys::Authorized;

/// Makes a key pair. Where the private key exists, ssh-keygen asks on stdin, which is empty, and gives up.
pub(crate) const GENERATE: &str = "ssh-keygen -q -t (ed25519|ecdsa -b (256|384|521)|rsa -b <int>) -N '' \
                                   [-C <text>] -f <path:/**>/.ssh/<user>";
/// Checks that the public key doesn't exist: ssh-keygen would overwrite it without asking.
pub(crate) const ABSENT: CommandLine = CommandLine::new("test '!' -e <path:/**>/.ssh/<user>.pub");
/// Removes a new key pair.
pub(crate) const REMOVE: CommandLine =
    CommandLine::new("rm -- <path:/**>/.ssh/<user> <path:/**>/.ssh/<user>.pub");

/// Names of files that ssh and sshd use.
const TAKEN: [&str; 7] =
    ["authorized_keys", "authorized_keys2", "config", "environment", "known_hosts", "known_hosts2", "rc"];

/// The most characters of a comment.
const LONGEST_COMMENT: usize = 200;

/// The default length of an RSA key in bits.
const RSA: u32 = 4096;

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

    /// The length that `ssh-keygen -b` gets.
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
    /// Default: ed25519
    #[serde(default, rename = "type")]
    kind: Kind,
    /// ecdsa 256, 384, 521; rsa 3072 to 8192
    bits: Option<u32>,
    /// Default id_<type>
    name: Option<String>,
    /// Text in the public key
    comment: Option<String>,
}

/// The new pair.
#[derive(Debug, Serialize)]
pub(crate) struct Generated {
    /// The path of the private key.
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// The line for authorized_keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    /// `generate` in a dry run, where nothing was made.
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

/// Refuses a name that isn't a plain file name, or that ssh uses for something else.
fn must_be_name(name: &str) -> Result<()> {
    let invalid = |why: &str| {
        let message = format!(
            "name is {:?}, which {why}: expected a plain file name in ~/.ssh, as id_deploy",
            excerpt(name, 60)
        );
        Err(Problem::validation("INVALID_NAME", message))
    };
    if !accounts::is_name(name) {
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

/// Refuses names of existing files and links. Returns whether the directory of keys exists.
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

/// The problem of a failed plan, where one of the two files existed after all.
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
