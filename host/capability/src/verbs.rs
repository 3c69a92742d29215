//! The host's own commands on granted paths that need another account's rights.
//!
//! They are patterns like those of any grant, made from the templates of `verbs.yaml` for each granted path. They can be
//! shown and turned into sudoers lines as grants can, and the host runs only commands that one of them allows.
//!
//! A module has hundreds of them, most calls need none, and parsing them all would be most of the time for loading the module
//! and most of its memory. So each is parsed where it is first compared with a command.

use std::sync::{LazyLock, OnceLock};

use serde::Deserialize;

use super::hole::HoleType;
use super::path::Glob;
use super::pattern::{MAX_PATTERN, Match, Pattern, PatternError, PatternErrorKind};
use super::request::{CommandRequest, Effect, PathRequest};
use super::staging::Staging;
use host_base::Privilege;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Templates {
    /// The commands that show where a path leads and who could change that.
    look: Vec<String>,
    /// The commands that read a file or list a directory.
    read: Vec<String>,
    /// The commands that write there.
    write: Vec<String>,
    /// The commands that move something from one granted path to another.
    #[serde(rename = "move")]
    moves: Vec<String>,
    /// The commands that show who an account is.
    accounts: Vec<String>,
}

/// One of the host's own commands on granted paths.
#[derive(Clone, Debug)]
pub struct Verb {
    program: Box<str>,
    text: Box<str>,
    parsed: OnceLock<Result<Box<Pattern>, PatternError>>,
}

impl Verb {
    /// A verb whose pattern has this program. The templates have made its text of globs that were parsed, so that nothing but
    /// its length can be wrong.
    fn new(program: &str, text: String) -> Result<Self, PatternError> {
        match text.len() > MAX_PATTERN {
            true => Err(PatternError { column: 1, kind: PatternErrorKind::TooLong }),
            false => Ok(Self { program: program.into(), text: text.into(), parsed: OnceLock::new() }),
        }
    }

    /// The program that it runs.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The text of its pattern.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its pattern.
    pub fn pattern(&self) -> Result<&Pattern, PatternError> {
        let parsed = self.parsed.get_or_init(|| Pattern::parse(&self.text).map(Box::new));
        parsed.as_deref().map_err(Clone::clone)
    }

    /// Matches a whole command, as [`Pattern::allows`] does. A pattern that can't be parsed allows nothing.
    pub fn allows(
        &self,
        program: &str,
        args: &[String],
        env: &[(String, String)],
        stdin: bool,
    ) -> Option<Match> {
        (*self.program == *program).then(|| self.pattern().ok()?.allows(program, args, env, stdin)).flatten()
    }
}

/// The glob that covers every path.
const ANYWHERE: &str = "/**";

/// The templates. If they can't be parsed, there are none, and nothing is allowed.
static TEMPLATES: LazyLock<Templates> =
    LazyLock::new(|| serde_yaml::from_str(include_str!("verbs.yaml")).unwrap_or_default());

/// The commands that the host may run to read the granted files, and to write them where that is granted. There are
/// none for the caller's own rights. An error where the path makes a pattern too long.
pub fn verbs_for(request: &PathRequest) -> Result<Vec<Verb>, PatternError> {
    let staging = staging(request)?;
    verbs_beside(request, staging.as_ref())
}

/// The same, where the globs of what lies beside the files are known.
pub(super) fn verbs_beside(
    request: &PathRequest,
    staging: Option<&Staging>,
) -> Result<Vec<Verb>, PatternError> {
    if request.privilege == Privilege::Caller {
        return Ok(Vec::new());
    }
    let templates = TEMPLATES.look.iter().chain(&TEMPLATES.read);
    let mut verbs: Vec<Verb> =
        templates.map(|template| instantiate(template, &request.glob)).collect::<Result<_, _>>()?;
    if let Some(staging) = staging {
        let templates = TEMPLATES.write.iter();
        let write = templates.map(|template| instantiate(&staged(template, staging), &request.glob));
        verbs.extend(write.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(verbs)
}

/// The commands that the host may run to see where the paths in a command lead, before it runs the command with these
/// rights. A `<path>` without a glob may lead anywhere.
pub fn verbs_for_command(pattern: &Pattern, privilege: &Privilege) -> Result<Vec<Verb>, PatternError> {
    let mut globs = Vec::new();
    if *privilege != Privilege::Caller {
        for hole in pattern.holes() {
            let HoleType::Path(glob) = hole else { continue };
            let glob = glob.as_ref().map_or(ANYWHERE, Glob::text);
            if !globs.contains(&glob) {
                globs.push(glob);
            }
        }
    }
    globs.into_iter().flat_map(look_at).collect()
}

/// The commands that the host may run to see where the paths of any command lead, before it runs the command with these
/// rights.
pub fn verbs_for_any_program(privilege: &Privilege) -> Result<Vec<Verb>, PatternError> {
    if *privilege == Privilege::Caller { Ok(Vec::new()) } else { look_at(ANYWHERE).collect() }
}

fn look_at(glob: &str) -> impl Iterator<Item = Result<Verb, PatternError>> {
    TEMPLATES.look.iter().map(move |template| instantiate(template, glob))
}

/// The commands that the host may run to validate a granted file with a granted command before the file takes its
/// place: the command on the new file beside it. There are none where the two aren't granted with the same account's
/// rights, or where that account is the caller.
pub fn verbs_for_validation(
    command: &CommandRequest,
    files: &PathRequest,
) -> Result<Vec<Verb>, PatternError> {
    let (Ok(glob), Some(staging)) = (Glob::parse(&files.glob), staging(files)?) else {
        return Ok(Vec::new());
    };
    verbs_for_validation_of(command, &Pattern::parse(&command.pattern)?, files, &glob, Some(&staging))
}

/// The same, where the command's pattern and the globs are parsed.
pub(super) fn verbs_for_validation_of(
    command: &CommandRequest,
    pattern: &Pattern,
    files: &PathRequest,
    written: &Glob,
    staging: Option<&Staging>,
) -> Result<Vec<Verb>, PatternError> {
    let have_same_rights = command.privilege.account() == files.privilege.account();
    let (Some(staging), Some(_), true) = (staging, files.privilege.account(), have_same_rights) else {
        return Ok(Vec::new());
    };
    if command.effect == Effect::Change {
        return Ok(Vec::new());
    }
    let mut verbs = Vec::new();
    for (number, hole) in pattern.holes().enumerate() {
        let HoleType::Path(glob) = hole else { continue };
        let file = match glob {
            Some(glob) if !glob.may_meet(written) => continue,
            // The hole's glob is the narrower one.
            Some(glob) if written.covers(glob) => beside(glob)?.map_or(staging.file.clone(), |own| own.file),
            _ => staging.file.clone(),
        };
        verbs.push(Verb::new(pattern.program(), with_hole(pattern.text(), number, &file))?);
    }
    Ok(verbs)
}

/// The commands that the host may run to move what lies at a path of the one request to a path of the other, and back.
/// There are none where the two aren't both granted for writing with the same account's rights, or where that account is
/// the caller.
pub fn verbs_for_moves(one: &PathRequest, other: &PathRequest) -> Result<Vec<Verb>, PatternError> {
    let are_written = one.write && other.write && one.place == other.place;
    if !are_written || one.privilege != other.privilege || one.privilege == Privilege::Caller {
        return Ok(Vec::new());
    }
    let mut ways = vec![(&one.glob, &other.glob), (&other.glob, &one.glob)];
    ways.dedup();
    let of_way = |(from, to): (&String, &String)| {
        let between = |template: &String| {
            template.replace("<path:FROM>", &holes(&[from])).replace("<path:TO>", &holes(&[to]))
        };
        TEMPLATES.moves.iter().map(|template| of_template(template, between(template))).collect::<Vec<_>>()
    };
    ways.into_iter().flat_map(of_way).collect()
}

/// The commands by which the host sees who the accounts are that a text names.
pub fn verbs_for_accounts() -> Result<Vec<Verb>, PatternError> {
    TEMPLATES.accounts.iter().map(|template| of_template(template, template.clone())).collect()
}

/// The globs of what lies beside files that plans may write with another account's rights. An invalid glob is refused before it
/// comes here.
fn staging(request: &PathRequest) -> Result<Option<Staging>, PatternError> {
    match Glob::parse(&request.glob) {
        Ok(glob) if request.write && request.privilege != Privilege::Caller => beside(&glob),
        _ => Ok(None),
    }
}

fn beside(glob: &Glob) -> Result<Option<Staging>, PatternError> {
    Staging::beside(glob).map_err(|_| PatternError { column: 1, kind: PatternErrorKind::TooLong })
}

/// The text of a pattern with another glob in the hole of this index.
fn with_hole(pattern: &str, number: usize, glob: &Glob) -> String {
    let (mut text, mut seen, mut quoted) = (String::new(), 0, false);
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        quoted ^= c == '\'';
        // `< stdin` is not a hole.
        if c != '<' || quoted || rest.as_str().starts_with(' ') {
            text.push(c);
            continue;
        }
        let hole: String = rest.by_ref().take_while(|c| *c != '>').collect();
        match seen == number {
            true => text.push_str(&format!("<path:{}>", glob.text())),
            false => text.push_str(&format!("<{hole}>")),
        }
        seen += 1;
    }
    text
}

fn staged(template: &str, staging: &Staging) -> String {
    template
        .replace("<path:STAGING>", &holes(&[staging.directory.text()]))
        .replace("<path:STAGED>", &holes(&[staging.file.text()]))
        .replace("<path:KEPT>", &holes(&[staging.kept.text()]))
}

fn instantiate(template: &str, glob: &str) -> Result<Verb, PatternError> {
    // A grant of everything below `/x/**` also allows listing `/x`: see Glob::covers_listing.
    let listed = match glob.strip_suffix("/**") {
        None => vec![glob],
        Some("") => vec![glob, "/"],
        Some(directory) => vec![glob, directory],
    };
    let text = template
        .replace("<path:ABOVE>", &holes(&above(glob)))
        .replace("<path:LISTED>", &holes(&listed))
        .replace("<path:GLOB>", &holes(&[glob]));
    of_template(template, text)
}

/// The verb of this text, which was made from a template. Templates begin with their program.
fn of_template(template: &str, text: String) -> Result<Verb, PatternError> {
    Verb::new(template.split(' ').next().unwrap_or_default(), text)
}

fn holes(globs: &[&str]) -> String {
    globs.iter().map(|glob| format!("<path:{glob}>")).collect::<Vec<_>>().join("|")
}

/// The globs of the directories above the paths that a glob covers, from the root on.
fn above(glob: &str) -> Vec<&str> {
    let slashes = glob.match_indices('/').skip(1).map(|(at, _)| &glob[..at]);
    std::iter::once("/").chain(slashes).collect()
}

#[cfg(test)]
mod tests;
