//! Profiles of services, as `wit/knowledge.wit` describes them, and the reading of a profile's commands.

pub mod config_checks;
pub mod config_paths;
pub mod evidence_lines;
pub mod ports;

pub use crate::bindings::sysadmin::module::knowledge::{
    ApplyBy, Backup, Candidate, Cause, ConfigFile, DataPath, Dependant, Diagnosis, Expectation, Finding,
    HealthCheck, Interaction, InteractionKind, Log, LogFormat, LogPattern, LogSource, Need, Port, Profile,
    Protocol, Scope, Severity, Status, Symptom, Unit, Validator,
};

use regex::{Regex, RegexBuilder};

use crate::{Category, Command, Output, Privilege, Problem, Result};

/// The most memory that one expression may take, in bytes.
const SIZE: usize = 1 << 20;

/// Compiles an expression of a profile or of a caller. A search takes time linear in the text, whatever the expression is.
pub fn expression(text: &str) -> Result<Regex> {
    RegexBuilder::new(text).multi_line(true).size_limit(SIZE).dfa_size_limit(SIZE).build().map_err(|error| {
        let message = format!("{text:?} is no regular expression that can be used: {error}");
        Problem::new("INVALID_EXPRESSION", Category::Validation, message)
            .remedy("Expected the syntax of the regex crate: no look-around, no back references")
    })
}

/// A command of a profile. With `root`, it runs with root's rights where the target allows them.
pub fn command(argv: &[String], root: bool) -> Command {
    let (program, args) = argv.split_first().map_or(("", argv), |(program, args)| (program.as_str(), args));
    let command = Command::new(program).args(args);
    if root { command.privilege(Privilege::RootIfAvailable) } else { command }
}

/// The text in which expressions search: standard output, then standard error.
pub fn text_of(output: &Output) -> String {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{stdout}{stderr}")
}

/// Whether an output fulfils every condition that is given.
fn holds(
    output: &Output,
    exit: Option<i32>,
    contains: Option<&str>,
    matches: Option<&str>,
    lacks: Option<&str>,
) -> Result<bool> {
    let text = text_of(output);
    let finds = |pattern: &str| expression(pattern).map(|pattern| pattern.is_match(&text));
    Ok(exit.is_none_or(|exit| exit == output.exit_code)
        && contains.is_none_or(|contains| text.contains(contains))
        && matches.map(finds).transpose()?.unwrap_or(true)
        && !lacks.map(finds).transpose()?.unwrap_or(false))
}

impl Expectation {
    /// Whether the output is as expected.
    pub fn is_met(&self, output: &Output) -> Result<bool> {
        let (contains, matches) = (self.contains.as_deref(), self.matches.as_deref());
        holds(output, self.exit, contains, matches, self.lacks.as_deref())
    }
}

impl Finding {
    /// Whether the output shows the finding.
    pub fn holds(&self, output: &Output) -> Result<bool> {
        let (contains, matches) = (self.contains.as_deref(), self.matches.as_deref());
        Ok(self.exit_not.is_none_or(|exit| exit != output.exit_code)
            && holds(output, self.exit, contains, matches, self.lacks.as_deref())?)
    }
}

impl Severity {
    /// The severity as profiles spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }
}

/// The result of a health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The service is as it should be.
    Well,
    /// The service is not as it should be.
    Sick,
    /// The check can't tell on this target.
    Unknown,
}

impl HealthCheck {
    /// Judges the output of the check's command.
    pub fn judge(&self, output: &Output) -> Result<Health> {
        // This comes first: an output without any evidence also lacks the expected text.
        if let Some(pattern) = &self.unknown_matches
            && expression(pattern)?.is_match(&text_of(output))
        {
            return Ok(Health::Unknown);
        }
        Ok(if self.expect.is_met(output)? { Health::Well } else { Health::Sick })
    }
}

impl Profile {
    /// The main unit of the service. `None` where the service has no unit.
    pub fn main_unit(&self) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.main).or(self.units.first())
    }

    /// The unit of this name: by its own name, by an alias, or as an instance of a template.
    pub fn unit(&self, name: &str) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.is(name))
    }
}

#[cfg(not(target_family = "wasm"))]
impl Profile {
    /// Whether a unit of this name belongs to the service. The suffix `.service` may be left out.
    pub(crate) fn is_meant_by(&self, name: &str) -> bool {
        self.unit(name).or_else(|| self.unit(&format!("{name}.service"))).is_some()
    }
}

impl Unit {
    /// Whether a unit's full name means this unit.
    pub fn is(&self, name: &str) -> bool {
        std::iter::once(&self.name).chain(&self.aliases).any(|own| {
            own == name
                || own.split_once("@.").is_some_and(|(prefix, suffix)| {
                    name.strip_prefix(prefix)
                        .and_then(|rest| rest.strip_prefix('@'))
                        .and_then(|rest| rest.strip_suffix(suffix)?.strip_suffix('.'))
                        .is_some_and(|instance| !instance.is_empty())
                })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::output;

    fn check(expect: Expectation, unknown: Option<&str>) -> HealthCheck {
        HealthCheck {
            id: "x".into(),
            what: "x".into(),
            argv: vec!["x".into()],
            root: false,
            expect,
            unknown_matches: unknown.map(Into::into),
            sick: "x".into(),
            severity: Severity::Error,
        }
    }

    #[test]
    fn all_that_is_expected_has_to_hold() {
        let expect = Expectation {
            exit: Some(0),
            contains: Some("NOERROR".into()),
            matches: Some("^flags: [a-z]+$".into()),
            lacks: Some("^WARN".into()),
        };
        let check = check(expect, Some("refused"));
        for (exit, stdout, stderr, expected) in [
            (0, "NOERROR\nflags: qr\n", "", Health::Well),
            // Standard error counts.
            (0, "NOERROR\n", "flags: qr\n", Health::Well),
            (1, "NOERROR\nflags: qr\n", "", Health::Sick),
            (0, "SERVFAIL\nflags: qr\n", "", Health::Sick),
            (0, "NOERROR\nflags: 1\n", "", Health::Sick),
            (0, "NOERROR\nflags: qr\nWARN\n", "", Health::Sick),
            (9, "", "connection refused\n", Health::Unknown),
            (0, "NOERROR\nflags: qr\n", "connection refused\n", Health::Unknown),
            (0, "", "", Health::Sick),
        ] {
            assert_eq!(
                check.judge(&output(exit, stdout, stderr)).unwrap(),
                expected,
                "{exit} {stdout} {stderr}"
            );
        }
    }

    #[test]
    fn a_unit_is_meant_by_its_names_and_its_instances() {
        let unit = |name: &str, aliases: &[&str]| Unit {
            name: name.into(),
            aliases: aliases.iter().map(|alias| (*alias).into()).collect(),
            main: true,
            reload: false,
            optional: false,
            what: None,
        };
        assert!(unit("ssh.service", &["sshd.service"]).is("sshd.service"));
        assert!(!unit("ssh.service", &[]).is("ssh.socket"));
        let template = unit("wg-quick@.service", &[]);
        assert!(template.is("wg-quick@wg0.service") && template.is("wg-quick@.service"));
        assert!(!template.is("wg-quick.service") && !template.is("wg-quick@wg0.socket"));
    }

    #[test]
    fn what_is_no_expression_is_refused_and_says_what_was_expected() {
        for text in ["(", r"(a)\1", "(?=a)", &"a{1000}".repeat(1000)] {
            let problem = expression(text).unwrap_err();
            assert_eq!(problem.code, "INVALID_EXPRESSION", "{text}");
        }
        // A backtracking engine would take very long.
        assert!(!expression("(a+)+$").unwrap().is_match(&format!("{}!", "a".repeat(100_000))));
    }
}
