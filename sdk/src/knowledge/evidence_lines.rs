//! The one or two lines of an output that support a verdict about it.

use super::{Expectation, Finding, expression, text_of};
use crate::text::of_line;
use crate::{Output, Problem};

/// The number of lines that are shown.
const LINES: usize = 2;

/// Words in lines that say what is wrong.
const TROUBLE: [&str; 20] = [
    "error",
    "fail",
    "fatal",
    "emerg",
    "crit",
    "invalid",
    "denied",
    "refused",
    "cannot",
    "can't",
    "couldn't",
    "unable",
    "unknown",
    "no such",
    "not found",
    "not permitted",
    "timed out",
    "in use",
    "expired",
    "servfail",
];

/// The lines that show why an output isn't what was expected.
pub fn against(argv: &[String], expect: &Expectation, output: &Output) -> String {
    let lacks = expect.lacks.as_deref();
    let unwanted = lacks.map(|lacks| found(argv, output, Some(lacks), None)).unwrap_or_default();
    if !unwanted.is_empty() {
        return unwanted.join("\n");
    }
    let says_nothing = telling(output).is_empty() && text_of(output).lines().count() > LINES;
    match (&expect.contains, &expect.matches) {
        (Some(text), _) if says_nothing => format!("its output lacks {}", of_line(text)),
        (_, Some(pattern)) if says_nothing => {
            format!("nothing in its output matches {}", of_line(pattern))
        }
        _ => shown(of_trouble(output), output),
    }
}

/// The lines that show why a finding holds.
pub fn of(argv: &[String], finding: &Finding, output: &Output) -> String {
    let matching = found(argv, output, finding.matches.as_deref(), finding.contains.as_deref());
    match matching.is_empty()
        && finding.lacks.is_some()
        && finding.exit.is_none()
        && finding.exit_not.is_none()
    {
        true => "nothing of that kind in its output".to_owned(),
        false => shown(if matching.is_empty() { of_trouble(output) } else { matching }, output),
    }
}

/// The most telling lines of an output about which nothing is known.
pub fn summary(output: &Output) -> String {
    shown(of_trouble(output), output)
}

/// Whether a command prints the end of a log.
pub fn reads_log(argv: &[String]) -> bool {
    matches!(argv.first().map(String::as_str), Some("journalctl" | "tail"))
}

/// The lines that match. Of a log the last ones count, which are the latest. A checker names the cause first, and then what
/// follows from it.
fn found(argv: &[String], output: &Output, pattern: Option<&str>, text: Option<&str>) -> Vec<String> {
    let pattern = pattern.and_then(|pattern| expression(pattern).ok());
    let is_meant = |line: &&str| {
        pattern.as_ref().is_some_and(|pattern| pattern.is_match(line))
            || text.is_some_and(|text| line.contains(text))
    };
    let all = text_of(output);
    let lines: Vec<&str> = all.lines().filter(is_meant).collect();
    let others = if reads_log(argv) { lines.len().saturating_sub(LINES) } else { 0 };
    lines[others..].iter().take(LINES).map(|line| of_line(line)).collect()
}

/// The lines that say what is wrong, or else the last lines.
fn of_trouble(output: &Output) -> Vec<String> {
    let telling = telling(output);
    if !telling.is_empty() {
        return telling;
    }
    let all = text_of(output);
    let lines: Vec<&str> = all.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].iter().map(|line| of_line(line)).collect()
}

fn telling(output: &Output) -> Vec<String> {
    let speaks = |line: &&str| {
        let line = line.to_ascii_lowercase();
        TROUBLE.iter().any(|word| line.contains(word))
    };
    text_of(output).lines().filter(speaks).take(LINES).map(of_line).collect()
}

fn shown(lines: Vec<String>, output: &Output) -> String {
    if lines.is_empty() { format!("exit code {} and no output", output.exit_code) } else { lines.join("\n") }
}

/// Whether an output may lack, or say otherwise, what the command would tell root.
pub fn is_limited(argv: &[String], output: &Output) -> bool {
    const SIGNS: [&str; 7] = [
        "permission denied",
        "operation not permitted",
        "must be root",
        "must be run as root",
        "are you root",
        "access denied",
        "not authorized",
    ];
    let text = text_of(output).to_ascii_lowercase();
    // Without root's rights, ss silently leaves out the processes of other accounts.
    let hides = argv.first().is_some_and(|program| program == "ss");
    (output.exit_code != 0 && SIGNS.iter().any(|sign| text.contains(sign)))
        || (hides && !text.trim().is_empty() && !text.contains("users:(("))
}

/// The reason why a command gave no output, in one line.
pub fn why(problem: &Problem) -> String {
    of_line(&problem.message.replace('\n', "; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::output;

    fn expect(lacks: Option<&str>) -> Expectation {
        Expectation { exit: Some(0), contains: None, matches: None, lacks: lacks.map(Into::into) }
    }

    #[test]
    fn what_root_would_be_told_otherwise_is_no_verdict() {
        let table = [
            ("nginx", 1, "", "open() failed (13: Permission denied)\n", true),
            ("journalctl", 0, "x: Permission denied\n", "", false),
            ("nginx", 1, "", "unknown directive\n", false),
            ("ss", 0, "LISTEN 0 1 0.0.0.0:80 0.0.0.0:*\n", "", true),
            ("ss", 0, "LISTEN 0 1 0.0.0.0:80 0.0.0.0:* users:((\"x\",pid=1,fd=1))\n", "", false),
            ("ss", 0, "", "", false),
        ];
        for (program, code, stdout, stderr, expected) in table {
            let limited = is_limited(&[program.to_owned()], &output(code, stdout, stderr));
            assert_eq!(limited, expected, "{program} {stdout}{stderr}");
        }
    }

    fn argv(program: &str) -> Vec<String> {
        vec![program.to_owned()]
    }

    #[test]
    fn evidence_is_the_first_that_a_checker_says_and_the_last_that_a_log_says() {
        // What logrotate 3.21 says with --debug of a rule with `create 0640 www-date adm`.
        let said = "error: shop:6 unknown user 'www-date'\n\
                    error: found error in /var/log/shop/*.log , skipping\n\
                    error: found error in file shop, skipping\n";
        let (first, rest) = said.split_once('\n').unwrap();
        let (second, third) = rest.split_once('\n').unwrap();
        for (program, lines) in [("logrotate", [first, second]), ("journalctl", [second, third.trim()])] {
            let evidence = against(&argv(program), &expect(Some("^error: ")), &output(0, "", said));
            assert_eq!(evidence, lines.join("\n"), "{program}");
            let finding = Finding {
                exit: None,
                exit_not: None,
                contains: None,
                matches: Some("^error: ".into()),
                lacks: None,
                cause: None,
                means: String::new(),
            };
            assert_eq!(of(&argv(program), &finding, &output(0, "", said)), lines.join("\n"), "{program}");
        }
    }

    #[test]
    fn evidence_is_what_was_not_to_be_there_or_what_speaks_of_trouble_or_what_was_said_last() {
        let long = "x".repeat(10_000);
        let table = [
            (Some("^W"), "a\nerror: b\nc\n", "", "error: b"),
            (None, "one\ntwo\n\nthree\n", "", "two\nthree"),
            (
                None,
                "syntax is\n",
                "nginx: [emerg] unknown directive\nnginx: test failed\n",
                "nginx: [emerg] unknown directive\nnginx: test failed",
            ),
            (None, "", "", "exit code 3 and no output"),
        ];
        for (lacks, stdout, stderr, expected) in table {
            let output = output(3, stdout, stderr);
            assert_eq!(against(&argv("x"), &expect(lacks), &output), expected, "{stdout}{stderr}");
        }
        assert_eq!(
            against(&argv("x"), &expect(None), &output(1, &long, "")).chars().count(),
            crate::text::LONGEST_LINE + 1
        );
        let listens = Expectation { contains: Some("\"nginx\"".into()), ..expect(None) };
        assert_eq!(against(&argv("x"), &listens, &output(0, "a\nb\nc\n", "")), "its output lacks \"nginx\"");
        assert_eq!(against(&argv("x"), &listens, &output(3, "inactive\n", "")), "inactive");
    }
}
