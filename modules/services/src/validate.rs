//! `svc_config_validate`: a service's own checker on the configuration on disk; `svc_config_check`: on a text that isn't
//! there yet.

use linux_sysadmin_sdk::knowledge::{self, Candidate, Profile, Validator, expression, text_of};
use linux_sysadmin_sdk::{Category, prelude::*};

use crate::asked::Questions;
use crate::{evidence, meant, name, stale};

/// How many errors of one checker are told.
const MOST: usize = 20;

/// A checker's verdict is no failure of the plan, whatever it is.
const ANY: std::ops::RangeInclusive<i32> = 0..=255;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ValidateArgs {
    /// Unit or profile
    service: String,
    /// Only checkers that read this file
    path: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CheckArgs {
    /// Unit or profile
    service: String,
    /// Its whole main file, as it is to be
    contents: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Validated {
    profile: String,
    /// Of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    /// Left out where no checker could tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid: Option<bool>,
    checks: Vec<Checked>,
}

#[derive(Debug, Serialize)]
struct Checked {
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Mistake>,
    /// Why it couldn't tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
    /// What it reads, and what it doesn't see.
    what: String,
}

#[derive(Debug, Serialize, PartialEq, Eq)]
struct Mistake {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    message: String,
}

pub(crate) fn svc_config_validate(args: ValidateArgs, cx: &Context) -> Result<Analysis<Validated>> {
    let profile = meant::profile(&args.service, cx)?;
    let checkers = checkers(&profile, args.path.as_deref())?;
    let mut questions = Questions::default();
    let asked: Vec<_> =
        checkers.iter().map(|one| (*one, questions.ask(knowledge::command(&one.argv, one.root)))).collect();
    let answers = questions.answers(cx);
    let checks =
        asked.into_iter().map(|(one, asked)| checked(one, &one.argv, one.root, answers.of(asked))).collect();
    let what = format!("The configuration of {} on disk", profile.name);
    Ok(validated(profile.id, &what, checks))
}

pub(crate) fn svc_config_check(args: CheckArgs, cx: &Context) -> Result<Analysis<Validated>> {
    let profile = meant::profile(&args.service, cx)?;
    let Profile { id, name, .. } = &profile;
    let checkers = profile.validators.iter();
    let checkers: Vec<(&Validator, &Candidate)> =
        checkers.filter_map(|one| Some((one, one.candidate.as_ref()?))).collect();
    let Some((_, Candidate { path, .. })) = checkers.first() else {
        let message = format!("the service {id} has no checker of a text that isn't its configuration yet");
        return Err(Problem::new("NO_CHECKER", Category::NotFound, message)
            .remedy(format!("What is on disk: svc_config_validate service={id}")));
    };
    let change = Change::new(format!("Have a text checked that could be the configuration of {name}"))
        .step(Step::write(path, args.contents).mode(0o600));
    let success: Vec<i32> = ANY.collect();
    let change = checkers.iter().fold(change, |change, (_, candidate)| {
        change.step(Step::run(knowledge::command(&candidate.argv, false).as_root()).success(&success))
    });
    let change = change
        .step(Step::run(Command::new("rm").args(["--", path]).as_root()))
        .warning(format!("With root's rights, {name} may load, run or read what the text names"));
    let applied = cx.apply(change)?;
    let what = format!("The text for {name}");
    if applied.dry_run {
        let summary = format!("{what} would be checked");
        let data = Validated { profile: profile.id, would: Some("check"), valid: None, checks: Vec::new() };
        return Ok(Analysis { data, summary, severity: Severity::Info });
    }
    let outputs = applied.outputs.into_iter().map(Ok);
    let checks = checkers.iter().zip(outputs).map(|((one, candidate), output)| {
        // It had root's rights: what it may not read, root may not.
        let mut checked = checked(one, &candidate.argv, false, &output);
        for mistake in &mut checked.errors {
            // The file isn't there any more, and was never the caller's.
            mistake.file.take_if(|file| file == path);
            mistake.message = mistake.message.replace(path, "the text");
        }
        checked
    });
    let checks = checks.collect();
    Ok(validated(profile.id, &what, checks))
}

fn validated(profile: String, subject: &str, checks: Vec<Checked>) -> Analysis<Validated> {
    let valid = match checks.iter().any(|check| check.valid == Some(false)) {
        true => Some(false),
        false => checks.iter().any(|check| check.valid == Some(true)).then_some(true),
    };
    let first = checks.iter().flat_map(|check| &check.errors).next();
    let (summary, severity) = match valid {
        Some(true) => (format!("{subject} can be used"), Severity::Info),
        Some(false) => {
            let what = first.map(|first| format!(": {}", first.shown())).unwrap_or_default();
            (format!("{subject} is refused{what}"), Severity::High)
        }
        None => (format!("{subject}: whether it can be used is unknown"), Severity::Warning),
    };
    Analysis { data: Validated { profile, would: None, valid, checks }, summary, severity }
}

impl Mistake {
    fn shown(&self) -> String {
        let at = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            (Some(file), None) => format!("{file}: "),
            (None, Some(line)) => format!("line {line}: "),
            (None, None) => String::new(),
        };
        format!("{at}{}", self.message)
    }
}

/// All, or those that read a file.
fn checkers<'a>(profile: &'a Profile, path: Option<&str>) -> Result<Vec<&'a Validator>> {
    let id = &profile.id;
    if profile.validators.is_empty() {
        let message = format!("the service {id} has no checker of its configuration");
        return Err(Problem::new("NO_CHECKER", Category::NotFound, message)
            .remedy(format!("What its health checks say: svc_status service={id}")));
    }
    let Some(path) = path else { return Ok(profile.validators.iter().collect()) };
    if !profile.config.iter().any(|file| stale::covers(&file.path, path)) {
        let files: Vec<&str> = profile.config.iter().map(|file| file.path.as_str()).collect();
        let message = format!("{} is no configuration of {id}", name::shown(path));
        return Err(Problem::validation("NOT_ITS_CONFIGURATION", message)
            .remedy(format!("Its configuration: {}", files.join(", "))));
    }
    let reads =
        |one: &&Validator| one.covers.is_empty() || one.covers.iter().any(|own| stale::covers(own, path));
    let found: Vec<_> = profile.validators.iter().filter(reads).collect();
    if found.is_empty() {
        let message = format!("no checker of {id} reads {path}");
        return Err(Problem::new("NO_CHECKER", Category::NotFound, message));
    }
    Ok(found)
}

/// `wants_root`: whether it may have been kept from what it needs to see.
fn checked(checker: &Validator, argv: &[String], wants_root: bool, answer: &Result<Output>) -> Checked {
    let mut checked = Checked {
        command: argv.join(" "),
        valid: None,
        errors: Vec::new(),
        unknown: None,
        what: checker.what.clone(),
    };
    let judged = answer
        .as_ref()
        .map_err(Problem::clone)
        .and_then(|output| Ok((output, checker.expect.is_met(output)?, mistakes(checker, output)?)));
    match judged {
        Ok((output, false, _)) if wants_root && evidence::is_limited(argv, output) => {
            checked.unknown = Some(format!("it seems to need root's rights: {}", evidence::summary(output)));
        }
        Ok((output, is_met, errors)) => {
            checked.valid = Some(is_met);
            checked.errors = errors;
            if !is_met && checked.errors.is_empty() {
                let message = evidence::against(&checker.expect, output);
                checked.errors.push(Mistake { file: None, line: None, message });
            }
        }
        Err(problem) => checked.unknown = Some(evidence::why(&problem)),
    }
    checked
}

/// As the profile reads them; warnings of what can be used are among them.
fn mistakes(checker: &Validator, output: &Output) -> Result<Vec<Mistake>> {
    let Some(pattern) = &checker.error else { return Ok(Vec::new()) };
    let pattern = expression(pattern)?;
    let text = text_of(output);
    let mut mistakes: Vec<Mistake> = Vec::new();
    for found in pattern.captures_iter(&text) {
        let group = |name: &str| found.name(name).map(|group| group.as_str().trim());
        // Some say where in one line, and what in the next one.
        let behind = found.get(0).map_or("", |whole| &text[whole.end()..]);
        let next = || behind.lines().map(str::trim).find(|line| !line.is_empty());
        let message =
            group("message").filter(|message| !message.is_empty()).or_else(next).unwrap_or_default();
        let mistake = Mistake {
            file: group("file").map(str::to_owned),
            line: group("line").and_then(|line| line.parse().ok()),
            message: evidence::cut(message),
        };
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
        if mistakes.len() == MOST {
            break;
        }
    }
    Ok(mistakes)
}
