//! What a profile has to hold beyond its schema.

use std::collections::{BTreeSet, HashMap, HashSet};

use regex::RegexBuilder;

use super::Known;
use super::candidate::Candidate;
use super::fault::Fault;
use super::profile::{Family, Profile, When, holds_on};
use host_base::{Command, Keep, Privilege};
use host_capability::{Pattern, is_lexically_safe};
use host_policy::Policy;
use host_policy::only_looks;
use host_text::visible::excerpt;

/// What one expression may take in memory, as in the sdk.
const SIZE: usize = 1 << 20;
/// Of what a fault quotes.
const QUOTED: usize = 200;
/// Read-only commands that any profile may have.
const COMMANDS: &str = include_str!("commands.txt");

/// One profile by itself.
pub fn one(profile: &Profile) -> Vec<Fault> {
    let mut faults = Vec::new();
    expressions(profile, &mut faults);
    paths(profile, &mut faults);
    references(profile, &mut faults);
    main_units(profile, &mut faults);
    for Looks { at, argv, .. } in commands(profile) {
        if let Err(reason) = pattern_of(argv) {
            faults.push(Fault { at, reason });
        }
    }
    candidates(profile, &mut faults);
    faults
}

/// Each names the file once, and there is a place for that.
fn candidates(profile: &Profile, faults: &mut Vec<Fault>) {
    for (number, one) in profile.validate.iter().enumerate() {
        let Some(argv) = &one.candidate else { continue };
        let at = place(&[&"validate", &number, &"candidate"]);
        let holes = argv.iter().filter(|token| token.contains("{}")).count();
        let is_argument = argv.iter().skip(1).any(|token| token == "{}");
        if holes != 1 || !is_argument {
            let shown = excerpt(&argv.join(" "), QUOTED);
            let reason = format!("{shown}: expected one argument `{{}}`, for the file's path");
            faults.push(Fault { at, reason });
            continue;
        }
        // On machines of no family that it says, too.
        let families = one.family.clone().unwrap_or_else(|| vec![String::new()]);
        for family in families {
            match Candidate::of(profile, argv, &family) {
                None => {
                    let reason =
                        "expected a file in config with `main: true`, beside which it is put".to_owned();
                    faults.push(Fault { at: at.clone(), reason });
                }
                Some(candidate) => {
                    if let Err(reason) = pattern_of(&candidate.argv) {
                        faults.push(Fault { at: at.clone(), reason });
                    }
                }
            }
        }
    }
}

/// Beside others, all of which have other ids.
pub fn beside(profile: &Profile, others: &[&Known]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (number, unit) in profile.units.iter().enumerate() {
        for name in std::iter::once(&unit.name).chain(&unit.aliases) {
            let claims = |known: &&&Known| {
                known.profile.units.iter().any(|other| {
                    (&other.name == name || other.aliases.contains(name)) && meet(&other.family, &unit.family)
                })
            };
            if let Some(other) = others.iter().find(claims) {
                let reason = format!(
                    "{name} is a unit of the profile {}: expected a profile with that id, which would take its place",
                    other.profile.id
                );
                faults.push(Fault::new(&["units", &number.to_string()], reason));
            }
        }
    }
    if let Some(cycle) = cycle_through(profile, others) {
        let reason = format!("services that need each other, which has no end: {}", cycle.join(" > "));
        faults.push(Fault::new(&["requires"], reason));
    }
    faults
}

/// Whether two entries hold on some machine.
fn meet(one: &Family, other: &Family) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.iter().any(|family| other.contains(family)),
        _ => true,
    }
}

/// From this profile back to itself, by roles that can't be done without and that one profile alone fills.
fn cycle_through(profile: &Profile, others: &[&Known]) -> Option<Vec<String>> {
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
    // A way to each that is reached, the shortest first.
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

/// Names and numbers from the root.
type Place = Vec<String>;

fn place(parts: &[&dyn ToString]) -> Place {
    parts.iter().map(|part| part.to_string()).collect()
}

/// A command of a profile's that only looks.
pub struct Looks<'a> {
    /// Where it stands.
    pub at: Place,
    /// Itself.
    pub argv: &'a [String],
    /// Whether it needs root's rights.
    pub root: bool,
    /// Where it holds.
    pub family: &'a Family,
}

/// Every one of them.
pub fn commands(profile: &Profile) -> impl Iterator<Item = Looks<'_>> {
    let health = profile.health.iter().enumerate().map(|(number, one)| Looks {
        at: place(&[&"health", &number, &"argv"]),
        argv: &one.argv,
        root: one.root.0,
        family: &one.family,
    });
    let validate = profile.validate.iter().enumerate().map(|(number, one)| Looks {
        at: place(&[&"validate", &number, &"argv"]),
        argv: &one.argv,
        root: one.root.0,
        family: &one.family,
    });
    let troubles = profile.troubleshooting.iter().enumerate().flat_map(|(number, trouble)| {
        trouble.checks.iter().enumerate().map(move |(of, one)| Looks {
            at: place(&[&"troubleshooting", &number, &"checks", &of, &"argv"]),
            argv: &one.argv,
            root: one.root.0,
            family: &one.family,
        })
    });
    health.chain(validate).chain(troubles)
}

/// Of the files that are read: where they stand.
pub fn files(profile: &Profile) -> impl Iterator<Item = (Place, &str)> {
    let config = profile.config.iter().enumerate();
    let config = config.map(|(number, one)| (place(&[&"config", &number, &"path"]), one.path.as_str()));
    let data = profile.data.iter().enumerate();
    let data = data.map(|(number, one)| (place(&[&"data", &number, &"path"]), one.path.as_str()));
    let logs = profile.logs.iter().enumerate();
    let logs =
        logs.filter_map(|(number, one)| Some((place(&[&"logs", &number, &"path"]), one.path.as_deref()?)));
    config.chain(data).chain(logs)
}

fn paths(profile: &Profile, faults: &mut Vec<Fault>) {
    let secrets = profile.secrets.iter().enumerate();
    let secrets = secrets.map(|(number, one)| (place(&[&"secrets", &number, &"path"]), one.path.as_str()));
    let backup = profile.backup.iter().enumerate();
    let backup = backup
        .filter_map(|(number, one)| Some((place(&[&"backup", &number, &"path"]), one.path.as_deref()?)));
    let mut all: Vec<_> = files(profile).chain(secrets).chain(backup).collect();
    for (number, graver) in profile.risk.iter().enumerate() {
        if let When::Edit { edit } = &graver.when {
            all.extend(edit.iter().map(|path| (place(&[&"risk", &number, &"when", &"edit"]), path.as_str())));
        }
    }
    for (at, path) in all {
        let fault = match super::glob::glob(path) {
            Ok(_) if is_lexically_safe(path) => continue,
            Ok(_) => "expected an absolute path without `//`, `.` or `..`".to_owned(),
            Err(error) => error.to_string(),
        };
        faults.push(Fault { at, reason: format!("{}: {fault}", excerpt(path, QUOTED)) });
    }
}

fn expression(text: &str) -> Result<regex::Regex, regex::Error> {
    RegexBuilder::new(text).multi_line(true).size_limit(SIZE).build()
}

/// Each can be used, and finds its sample.
fn expressions(profile: &Profile, faults: &mut Vec<Fault>) {
    let mut wrong = |at: Place, text: Option<&String>, sample: Option<&str>| {
        let Some(text) = text else { return };
        let reason = match expression(text) {
            Err(error) => {
                format!("{} is no regular expression that can be used: {error}", excerpt(text, QUOTED))
            }
            Ok(expression) if sample.is_some_and(|sample| !expression.is_match(sample)) => {
                format!("{} doesn't find its sample", excerpt(text, QUOTED))
            }
            Ok(_) => return,
        };
        faults.push(Fault { at, reason });
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

/// What is named is there, and is there once.
fn references(profile: &Profile, faults: &mut Vec<Fault>) {
    let mut symptoms = BTreeSet::new();
    for (number, trouble) in profile.troubleshooting.iter().enumerate() {
        let at = |rest: &[&dyn ToString]| {
            let mut at = place(&[&"troubleshooting", &number]);
            at.extend(place(rest));
            at
        };
        if !symptoms.insert(&trouble.id) {
            faults.push(Fault { at: at(&[&"id"]), reason: format!("{} is there twice", trouble.id) });
        }
        let mut causes = BTreeSet::new();
        for (of, cause) in trouble.causes.iter().enumerate() {
            if !causes.insert(cause.id.as_str()) {
                let reason = format!("{} is there twice", cause.id);
                faults.push(Fault { at: at(&[&"causes", &of, &"id"]), reason });
            }
        }
        for (of, check) in trouble.checks.iter().enumerate() {
            for (which, finding) in check.results.iter().enumerate() {
                if let Some(cause) = finding.cause.as_deref().filter(|cause| !causes.contains(cause)) {
                    let known = causes.iter().copied().collect::<Vec<_>>().join(", ");
                    let reason = format!("there is no cause {cause}: expected one of {known}");
                    faults.push(Fault { at: at(&[&"checks", &of, &"results", &which, &"cause"]), reason });
                }
            }
        }
    }
    for (number, pattern) in profile.log_patterns.iter().enumerate() {
        if let Some(symptom) = pattern.symptom.as_ref().filter(|symptom| !symptoms.contains(symptom)) {
            let reason = format!("there is no symptom {symptom} in troubleshooting");
            faults.push(Fault { at: place(&[&"log_patterns", &number, &"symptom"]), reason });
        }
    }
    for (number, check) in profile.health.iter().enumerate() {
        let same =
            |other: &super::profile::Health| other.id == check.id && meet(&other.family, &check.family);
        if profile.health[..number].iter().any(same) {
            let reason = format!("{} is there twice", check.id);
            faults.push(Fault { at: place(&[&"health", &number, &"id"]), reason });
        }
    }
}

/// One of them is the service, on each family.
fn main_units(profile: &Profile, faults: &mut Vec<Fault>) {
    let named: BTreeSet<&str> =
        profile.units.iter().filter_map(|unit| unit.family.as_ref()).flatten().map(String::as_str).collect();
    for family in named {
        let units: Vec<_> = profile.units.iter().filter(|unit| holds_on(&unit.family, family)).collect();
        let main = units.iter().filter(|unit| unit.main.0).count();
        // One that has no units there, or one, leaves no doubt.
        if main > 1 || main == 0 && units.len() > 1 {
            let reason = format!("expected one unit with `main: true` on {family} machines, found {main}");
            faults.push(Fault::new(&["units"], reason));
        }
    }
}

/// The pattern that a command is, and nothing else.
pub fn pattern_of(argv: &[String]) -> Result<Pattern, String> {
    const SHELL: &[&str] = &["|", "||", "&&", "&", ";", ">", ">>", "<", "2>&1", "2>/dev/null", ">/dev/null"];
    let shown = excerpt(&argv.join(" "), QUOTED);
    if let Some(token) = argv.iter().find(|token| SHELL.contains(&token.as_str())) {
        return Err(format!(
            "{shown}: no shell reads a command, so {token} would be an argument: expected one program and its arguments, \
             and what its output should say in expect_contains or expect_matches"
        ));
    }
    if let Some(token) = argv.iter().find(|token| token.contains('\'')) {
        return Err(format!("{shown}: expected no `'` in an argument, found {}", excerpt(token, QUOTED)));
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

/// The commands that a profile of the operator's may have: read-only ones of any service, those of the profiles that come
/// with this program, and what the configuration allows.
pub struct Allowed {
    patterns: Vec<Pattern>,
    configured: Vec<Pattern>,
    exact: HashSet<Vec<String>>,
    candidates: HashSet<Vec<String>>,
}

impl Allowed {
    /// With what is to be said of patterns that are none.
    pub fn new(builtin: &[Known], configured: &[String]) -> (Self, Vec<String>) {
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
                    warnings.push(format!("knowledge.commands: {}: {error}", excerpt(text, QUOTED)))
                }
            }
        }
        (Self { patterns: any_profiles().collect(), configured: allowed, exact, candidates }, warnings)
    }

    /// The commands that it doesn't cover, or that the policy's rules don't take for looking.
    pub fn refuses(&self, profile: &Profile, policy: &Policy) -> Vec<Fault> {
        let mut faults = Vec::new();
        for Looks { at, argv, .. } in commands(profile) {
            let Some((program, args)) = argv.split_first() else { continue };
            let covers = |pattern: &Pattern| pattern.allows(program, args, &[], false).is_some();
            let line = excerpt(&argv.join(" "), QUOTED);
            if !self.exact.contains(argv) && !self.patterns.iter().chain(&self.configured).any(covers) {
                let reason = format!(
                    "`{line}` isn't among the read-only commands that profiles may have: an operator can add it, as in \
                     `knowledge: {{commands: [\"{line}\"]}}` of the configuration"
                );
                faults.push(Fault { at, reason });
            } else if let Err(problem) = only_looks(policy, &command(argv), &command(argv)) {
                faults.push(Fault { at, reason: problem.message });
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
            let line = excerpt(&argv.join(" ").replace("{}", "<path>"), QUOTED);
            let reason = format!(
                "`{line}` is none of the checkers that come with this program: an operator can add it, as in `knowledge: \
                 {{commands: [\"{line}\"]}}` of the configuration"
            );
            faults.push(Fault { at: place(&[&"validate", &number, &"candidate"]), reason });
        }
        faults
    }
}

/// A line each; what follows `#` is a comment.
pub(super) fn any_profiles() -> impl Iterator<Item = Pattern> {
    let lines = COMMANDS.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| match Pattern::parse(line) {
        Ok(pattern) => pattern,
        // A test reads the same text.
        Err(error) => panic!("commands.txt: {line}: {error}"),
    })
}

/// As the policy's rules read it.
pub(super) fn command(argv: &[String]) -> Command {
    Command {
        program: argv.first().cloned().unwrap_or_default(),
        args: argv.iter().skip(1).cloned().collect(),
        env: Vec::new(),
        stdin: None,
        privilege: Privilege::Caller,
        timeout: std::time::Duration::from_secs(10),
        keep: Keep::Head,
        heard: None,
    }
}
