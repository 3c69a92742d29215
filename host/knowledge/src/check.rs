//! The checks that a profile has to pass beyond its schema.

use std::collections::{BTreeSet, HashMap, HashSet};

use regex::RegexBuilder;

use super::LoadedProfile;
use super::candidate::Candidate;
use super::profile::{Family, Profile, When, holds_on};
use super::profile_error::ProfileError;
use host_base::Command;
use host_capability::{Pattern, is_lexically_safe};
use host_policy::Policy;
use host_policy::check_only_looks;
use host_text::visible::excerpt;

/// The greatest size of one regular expression in memory, as in the sdk.
const MAX_SIZE: usize = 1 << 20;
/// The greatest length of a quotation in an error.
const MAX_QUOTED: usize = 200;
/// Read-only commands that any profile may have.
const COMMANDS: &str = include_str!("commands.txt");

/// Checks one profile by itself.
pub fn check_profile(profile: &Profile) -> Vec<ProfileError> {
    let mut errors = Vec::new();
    expressions(profile, &mut errors);
    paths(profile, &mut errors);
    references(profile, &mut errors);
    main_units(profile, &mut errors);
    for ReadOnlyCommand { at, argv, .. } in commands(profile) {
        if let Err(reason) = pattern_of(argv) {
            errors.push(ProfileError { at, reason });
        }
    }
    candidates(profile, &mut errors);
    errors
}

/// Checks that each command which checks a text names the file once, and that there is a place for the file.
fn candidates(profile: &Profile, errors: &mut Vec<ProfileError>) {
    for (number, one) in profile.validate.iter().enumerate() {
        let Some(argv) = &one.candidate else { continue };
        let at = place(&[&"validate", &number, &"candidate"]);
        let holes = argv.iter().filter(|token| token.contains("{}")).count();
        let is_argument = argv.iter().skip(1).any(|token| token == "{}");
        if holes != 1 || !is_argument {
            let shown = excerpt(&argv.join(" "), MAX_QUOTED);
            let reason = format!("{shown}: expected one argument `{{}}`, for the file's path");
            errors.push(ProfileError { at, reason });
            continue;
        }
        // An empty family stands for a machine of any other family.
        let families = one.family.clone().unwrap_or_else(|| vec![String::new()]);
        for family in families {
            match Candidate::of(profile, argv, &family) {
                None => {
                    let reason =
                        "expected a file in config with `main: true`, beside which it is put".to_owned();
                    errors.push(ProfileError { at: at.clone(), reason });
                }
                Some(candidate) => {
                    if let Err(reason) = pattern_of(&candidate.argv) {
                        errors.push(ProfileError { at: at.clone(), reason });
                    }
                }
            }
        }
    }
}

/// Checks a profile beside others, which all have other ids.
pub fn check_beside_others(profile: &Profile, others: &[&LoadedProfile]) -> Vec<ProfileError> {
    let mut errors = Vec::new();
    for (number, unit) in profile.units.iter().enumerate() {
        for name in std::iter::once(&unit.name).chain(&unit.aliases) {
            let claims = |known: &&&LoadedProfile| {
                known.profile.units.iter().any(|other| {
                    (&other.name == name || other.aliases.contains(name)) && meet(&other.family, &unit.family)
                })
            };
            if let Some(other) = others.iter().find(claims) {
                let reason = format!(
                    "{name} is a unit of the profile {}: expected a profile with that id, which would take its place",
                    other.profile.id
                );
                errors.push(ProfileError::new(&["units", &number.to_string()], reason));
            }
        }
    }
    if let Some(cycle) = cycle_through(profile, others) {
        let reason = format!("services that need each other in a circle: {}", cycle.join(" > "));
        errors.push(ProfileError::new(&["requires"], reason));
    }
    errors
}

/// Whether two entries hold on some common family.
fn meet(one: &Family, other: &Family) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.iter().any(|family| other.contains(family)),
        _ => true,
    }
}

/// A cycle of services that begins and ends with this profile. Each service of it needs a role, which isn't optional, that
/// the next one fills.
fn cycle_through(profile: &Profile, others: &[&LoadedProfile]) -> Option<Vec<String>> {
    let all: Vec<&Profile> = others.iter().map(|known| &known.profile).chain([profile]).collect();
    let mut fills: HashMap<&str, Vec<&Profile>> = HashMap::new();
    for one in &all {
        for role in &one.provides {
            fills.entry(&role.role).or_default().push(one);
        }
    }
    let needs = |one: &Profile| -> Vec<&Profile> {
        let needed = one.requires.iter().filter(|need| !need.optional.0);
        needed.filter_map(|need| fills.get(need.role.as_str())).flatten().copied().collect()
    };
    // A breadth-first search: one way to each profile that is reached, the shortest first.
    let mut ways: Vec<Vec<&Profile>> = vec![vec![profile]];
    let mut seen = HashSet::new();
    let mut next = 0;
    while next < ways.len() {
        let way = ways[next].clone();
        next += 1;
        for needed in way.last().map(|last| needs(last)).unwrap_or_default() {
            if needed.id == profile.id {
                return Some(way.iter().chain([&profile]).map(|one| one.id.clone()).collect());
            }
            if seen.insert(&needed.id) {
                ways.push(way.iter().copied().chain([needed]).collect());
            }
        }
    }
    None
}

/// The names and indexes from the root of a profile to a field.
type FieldPath = Vec<String>;

fn place(parts: &[&dyn ToString]) -> FieldPath {
    parts.iter().map(|part| part.to_string()).collect()
}

/// A read-only command of a profile.
pub struct ReadOnlyCommand<'a> {
    /// The field of the command.
    pub at: FieldPath,
    /// The program and its arguments.
    pub argv: &'a [String],
    /// Whether the command needs root's rights.
    pub root: bool,
    /// The families for which the command holds.
    pub family: &'a Family,
}

/// All read-only commands of a profile.
pub fn commands(profile: &Profile) -> impl Iterator<Item = ReadOnlyCommand<'_>> {
    let health = profile.health.iter().enumerate().map(|(number, one)| ReadOnlyCommand {
        at: place(&[&"health", &number, &"argv"]),
        argv: &one.argv,
        root: one.root.0,
        family: &one.family,
    });
    let validate = profile.validate.iter().enumerate().map(|(number, one)| ReadOnlyCommand {
        at: place(&[&"validate", &number, &"argv"]),
        argv: &one.argv,
        root: one.root.0,
        family: &one.family,
    });
    let troubles = profile.troubleshooting.iter().enumerate().flat_map(|(number, trouble)| {
        trouble.checks.iter().enumerate().map(move |(of, one)| ReadOnlyCommand {
            at: place(&[&"troubleshooting", &number, &"checks", &of, &"argv"]),
            argv: &one.argv,
            root: one.root.0,
            family: &one.family,
        })
    });
    health.chain(validate).chain(troubles)
}

/// The paths that the profile lets modules read or names as data, each with its field.
pub fn files(profile: &Profile) -> impl Iterator<Item = (FieldPath, &str)> {
    let config = profile.config.iter().enumerate();
    let config = config.map(|(number, one)| (place(&[&"config", &number, &"path"]), one.path.as_str()));
    let data = profile.data.iter().enumerate();
    let data = data.map(|(number, one)| (place(&[&"data", &number, &"path"]), one.path.as_str()));
    let logs = profile.logs.iter().enumerate();
    let logs =
        logs.filter_map(|(number, one)| Some((place(&[&"logs", &number, &"path"]), one.path.as_deref()?)));
    config.chain(data).chain(logs)
}

fn paths(profile: &Profile, errors: &mut Vec<ProfileError>) {
    let secrets = profile.secrets.iter().enumerate();
    let secrets = secrets.map(|(number, one)| (place(&[&"secrets", &number, &"path"]), one.path.as_str()));
    let backup = profile.backup.iter().enumerate();
    let backup = backup
        .filter_map(|(number, one)| Some((place(&[&"backup", &number, &"path"]), one.path.as_deref()?)));
    let mut all: Vec<_> = files(profile).chain(secrets).chain(backup).collect();
    for (number, rule) in profile.risk.iter().enumerate() {
        if let When::Edit { edit } = &rule.when {
            all.extend(edit.iter().map(|path| (place(&[&"risk", &number, &"when", &"edit"]), path.as_str())));
        }
    }
    for (at, path) in all {
        let error = match super::glob::glob(path) {
            Ok(_) if is_lexically_safe(path) => continue,
            Ok(_) => "expected an absolute path without `//`, `.` or `..`".to_owned(),
            Err(error) => error.to_string(),
        };
        errors.push(ProfileError { at, reason: format!("{}: {error}", excerpt(path, MAX_QUOTED)) });
    }
}

fn expression(text: &str) -> Result<regex::Regex, regex::Error> {
    RegexBuilder::new(text).multi_line(true).size_limit(MAX_SIZE).build()
}

/// Checks that each regular expression can be compiled, and that it matches its sample.
fn expressions(profile: &Profile, errors: &mut Vec<ProfileError>) {
    let mut wrong = |at: FieldPath, text: Option<&String>, sample: Option<&str>| {
        let Some(text) = text else { return };
        let reason = match expression(text) {
            Err(error) => {
                format!("{} is no regular expression that can be used: {error}", excerpt(text, MAX_QUOTED))
            }
            Ok(expression) if sample.is_some_and(|sample| !expression.is_match(sample)) => {
                format!("{} doesn't find its sample", excerpt(text, MAX_QUOTED))
            }
            Ok(_) => return,
        };
        errors.push(ProfileError { at, reason });
    };
    for (number, log) in profile.logs.iter().enumerate() {
        wrong(place(&[&"logs", &number, &"line"]), log.line.as_ref(), log.sample.as_deref());
    }
    for (number, pattern) in profile.log_patterns.iter().enumerate() {
        wrong(place(&[&"log_patterns", &number, &"matches"]), Some(&pattern.matches), Some(&pattern.sample));
    }
    for (number, one) in profile.validate.iter().enumerate() {
        for (field, text) in [
            ("expect_matches", &one.expect_matches),
            ("expect_lacks", &one.expect_lacks),
            ("error", &one.error),
        ] {
            wrong(place(&[&"validate", &number, &field]), text.as_ref(), None);
        }
    }
    for (number, one) in profile.health.iter().enumerate() {
        for (field, text) in [
            ("expect_matches", &one.expect_matches),
            ("expect_lacks", &one.expect_lacks),
            ("unknown_matches", &one.unknown_matches),
        ] {
            wrong(place(&[&"health", &number, &field]), text.as_ref(), None);
        }
    }
    for (number, trouble) in profile.troubleshooting.iter().enumerate() {
        for (of, check) in trouble.checks.iter().enumerate() {
            for (which, finding) in check.results.iter().enumerate() {
                for (field, text) in [("if_matches", &finding.if_matches), ("if_lacks", &finding.if_lacks)] {
                    let at =
                        place(&[&"troubleshooting", &number, &"checks", &of, &"results", &which, &field]);
                    wrong(at, text.as_ref(), None);
                }
            }
        }
    }
}

/// Checks that each id is unique, and that each reference names an id that exists.
fn references(profile: &Profile, errors: &mut Vec<ProfileError>) {
    let mut symptoms = BTreeSet::new();
    for (number, trouble) in profile.troubleshooting.iter().enumerate() {
        let at = |rest: &[&dyn ToString]| {
            let mut at = place(&[&"troubleshooting", &number]);
            at.extend(place(rest));
            at
        };
        if !symptoms.insert(&trouble.id) {
            errors.push(ProfileError { at: at(&[&"id"]), reason: format!("{} is there twice", trouble.id) });
        }
        let mut causes = BTreeSet::new();
        for (of, cause) in trouble.causes.iter().enumerate() {
            if !causes.insert(cause.id.as_str()) {
                let reason = format!("{} is there twice", cause.id);
                errors.push(ProfileError { at: at(&[&"causes", &of, &"id"]), reason });
            }
        }
        for (of, check) in trouble.checks.iter().enumerate() {
            for (which, finding) in check.results.iter().enumerate() {
                if let Some(cause) = finding.cause.as_deref().filter(|cause| !causes.contains(cause)) {
                    let known = causes.iter().copied().collect::<Vec<_>>().join(", ");
                    let reason = format!("there is no cause {cause}: expected one of {known}");
                    errors.push(ProfileError {
                        at: at(&[&"checks", &of, &"results", &which, &"cause"]),
                        reason,
                    });
                }
            }
        }
    }
    for (number, pattern) in profile.log_patterns.iter().enumerate() {
        if let Some(symptom) = pattern.symptom.as_ref().filter(|symptom| !symptoms.contains(symptom)) {
            let reason = format!("there is no symptom {symptom} in troubleshooting");
            errors.push(ProfileError { at: place(&[&"log_patterns", &number, &"symptom"]), reason });
        }
    }
    for (number, check) in profile.health.iter().enumerate() {
        let same =
            |other: &super::profile::HealthCheck| other.id == check.id && meet(&other.family, &check.family);
        if profile.health[..number].iter().any(same) {
            let reason = format!("{} is there twice", check.id);
            errors.push(ProfileError { at: place(&[&"health", &number, &"id"]), reason });
        }
    }
}

/// Checks that on each family exactly one unit is the main one.
fn main_units(profile: &Profile, errors: &mut Vec<ProfileError>) {
    let named: BTreeSet<&str> =
        profile.units.iter().filter_map(|unit| unit.family.as_ref()).flatten().map(String::as_str).collect();
    for family in named {
        let units: Vec<_> = profile.units.iter().filter(|unit| holds_on(&unit.family, family)).collect();
        let main = units.iter().filter(|unit| unit.main.0).count();
        // With no unit or one on a family, there is nothing to choose.
        if main > 1 || main == 0 && units.len() > 1 {
            let reason = format!("expected one unit with `main: true` on {family} machines, found {main}");
            errors.push(ProfileError::new(&["units"], reason));
        }
    }
}

/// The pattern that matches exactly this command.
pub fn pattern_of(argv: &[String]) -> Result<Pattern, String> {
    const SHELL: &[&str] = &["|", "||", "&&", "&", ";", ">", ">>", "<", "2>&1", "2>/dev/null", ">/dev/null"];
    let shown = excerpt(&argv.join(" "), MAX_QUOTED);
    if let Some(token) = argv.iter().find(|token| SHELL.contains(&token.as_str())) {
        return Err(format!(
            "{shown}: no shell reads a command, so {token} would be an argument: expected one program and its arguments, \
             and what its output should say in expect_contains or expect_matches"
        ));
    }
    if let Some(token) = argv.iter().find(|token| token.contains('\'')) {
        return Err(format!("{shown}: expected no `'` in an argument, found {}", excerpt(token, MAX_QUOTED)));
    }
    let is_bare = |token: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
        !token.is_empty() && token.bytes().all(fits)
    };
    let quoted = |token: &String| if is_bare(token) { token.clone() } else { format!("'{token}'") };
    let (program, args) = argv.split_first().ok_or("expected a program")?;
    if !is_bare(program) || program.contains(['=', ':', ',', '%']) {
        return Err(format!("{shown}: expected a program's name first"));
    }
    let text: Vec<_> = std::iter::once(program.clone()).chain(args.iter().map(quoted)).collect();
    Pattern::parse(&text.join(" ")).map_err(|error| format!("{shown}: {error}"))
}

/// The commands that a profile of the operator's may have: those that any profile may have, those of the built-in
/// profiles, and those that the configuration allows.
pub struct AllowedCommands {
    patterns: Vec<Pattern>,
    configured: Vec<Pattern>,
    exact: HashSet<Vec<String>>,
    candidates: HashSet<Vec<String>>,
}

impl AllowedCommands {
    /// Collects the commands, and returns warnings about patterns of the configuration that can't be parsed.
    pub fn new(builtin: &[LoadedProfile], configured: &[String]) -> (Self, Vec<String>) {
        let commands = builtin.iter().flat_map(|known| commands(&known.profile));
        let exact = commands.map(|one| one.argv.to_vec()).collect();
        let checkers = builtin.iter().flat_map(|known| &known.profile.validate);
        let candidates = checkers.filter_map(|one| one.candidate.clone()).collect();
        let mut warnings = Vec::new();
        let mut allowed = Vec::new();
        for text in configured {
            match Pattern::parse(text) {
                Ok(pattern) => allowed.push(pattern),
                Err(error) => {
                    warnings.push(format!("knowledge.commands: {}: {error}", excerpt(text, MAX_QUOTED)))
                }
            }
        }
        (Self { patterns: common_commands().collect(), configured: allowed, exact, candidates }, warnings)
    }

    /// The errors for commands of a profile that aren't allowed, or that the policy doesn't take for looking.
    pub fn refuses(&self, profile: &Profile, policy: &Policy) -> Vec<ProfileError> {
        let mut errors = Vec::new();
        for ReadOnlyCommand { at, argv, .. } in commands(profile) {
            let Some((program, args)) = argv.split_first() else { continue };
            let covers = |pattern: &Pattern| pattern.allows(program, args, &[], false).is_some();
            let line = excerpt(&argv.join(" "), MAX_QUOTED);
            if !self.exact.contains(argv) && !self.patterns.iter().chain(&self.configured).any(covers) {
                let reason = format!(
                    "`{line}` isn't among the read-only commands that profiles may have: an operator can add it, as in \
                     `knowledge: {{commands: [\"{line}\"]}}` of the configuration"
                );
                errors.push(ProfileError { at, reason });
            } else if let Err(problem) = check_only_looks(policy, &command(argv), &command(argv)) {
                errors.push(ProfileError { at, reason: problem.message });
            }
        }
        for (number, one) in profile.validate.iter().enumerate() {
            let Some(argv) = one.candidate.as_ref().filter(|argv| !self.candidates.contains(*argv)) else {
                continue;
            };
            let covers = |pattern: &Pattern| {
                let Some(Candidate { argv, .. }) = Candidate::of(profile, argv, "") else { return false };
                let (program, args) = argv.split_first().unwrap_or((const { &String::new() }, &[]));
                pattern.allows(program, args, &[], false).is_some()
            };
            if self.configured.iter().any(covers) {
                continue;
            }
            let line = excerpt(&argv.join(" ").replace("{}", "<path>"), MAX_QUOTED);
            let reason = format!(
                "`{line}` is none of the checkers that come with this program: an operator can add it, as in `knowledge: \
                 {{commands: [\"{line}\"]}}` of the configuration"
            );
            errors.push(ProfileError { at: place(&[&"validate", &number, &"candidate"]), reason });
        }
        errors
    }
}

/// The patterns of `commands.txt`, one per line. Lines that begin with `#` are comments.
pub(super) fn common_commands() -> impl Iterator<Item = Pattern> {
    let lines = COMMANDS.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| match Pattern::parse(line) {
        Ok(pattern) => pattern,
        // This can't happen: a test parses the same text.
        Err(error) => panic!("commands.txt: {line}: {error}"),
    })
}

/// The command as the policy judges it.
pub(super) fn command(argv: &[String]) -> Command {
    let program = argv.first().cloned().unwrap_or_default();
    Command::new(program, argv.iter().skip(1), std::time::Duration::from_secs(10))
}
