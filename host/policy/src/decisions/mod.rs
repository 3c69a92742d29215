//! The policy is held against tables of commands, which were written from the programs' man pages and not from the rules:
//! dangerous commands in every disguise, commands that everybody runs to look, commands by which the host itself looks, and
//! changes of every kind.

use std::fmt::Write;

use serde::Deserialize;

use super::{Level, Policy, Verdict, unasked_look};
use host_base::Risk;

/// A row of `dangerous.yaml` or `evasions.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dangerous {
    argv: Vec<String>,
    level: Demanded,
    risk: Option<Risk>,
    capability: Option<String>,
}

/// The least level that a command must have, where that isn't SAFE.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Demanded {
    Confirm,
    Block,
}

/// A row of `changes.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Changing {
    argv: Vec<String>,
    risk: Option<Risk>,
}

/// The plain dangerous commands, and those that try to get past the rules.
fn dangerous() -> Vec<Dangerous> {
    let tables = [include_str!("dangerous.yaml"), include_str!("evasions.yaml")];
    tables.iter().flat_map(|table| serde_yaml::from_str::<Vec<_>>(table).unwrap()).collect()
}

fn changes() -> Vec<Changing> {
    serde_yaml::from_str(include_str!("changes.yaml")).unwrap()
}

fn argvs(table: &str) -> Vec<Vec<String>> {
    serde_yaml::from_str(table).unwrap()
}

/// The commands that run unasked where a caller chooses all of their words.
fn unasked() -> Vec<Vec<String>> {
    argvs(include_str!("harmless.yaml"))
}

/// The commands that are SAFE and could show a secret all the same.
fn asked() -> Vec<Vec<String>> {
    argvs(include_str!("harmless_asked.yaml"))
}

fn harmless() -> Vec<Vec<String>> {
    [unasked(), asked()].concat()
}

fn own() -> Vec<Vec<String>> {
    argvs(include_str!("own.yaml"))
}

/// Fails with every row that the policy gets wrong, all at once: its argv, the expected verdict and the verdict found.
fn assert_all_right<'a>(rows: impl IntoIterator<Item = (&'a [String], Option<String>, Verdict)>) {
    let (mut wrong, mut count) = (String::new(), 0);
    for (argv, expected, found) in rows {
        if let Some(expected) = expected {
            count += 1;
            let Verdict { level, risk, capabilities, matched_rules, .. } = found;
            writeln!(
                wrong,
                "{argv:?}\n    expected {expected}\n    found {level:?}, risk {risk:?}, {capabilities:?}, by {matched_rules:?}"
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "{count} wrong:\n{wrong}");
}

#[test]
fn what_is_dangerous_is_seen_through_every_disguise() {
    let policy = Policy::builtin();
    let table = dangerous();
    assert_all_right(table.iter().map(|row| {
        let found = policy.verdict(&row.argv);
        let level = match row.level {
            Demanded::Confirm => found.level >= Level::Confirm,
            Demanded::Block => found.level == Level::Block,
        };
        let has = |wanted: &String| found.capabilities.iter().any(|name| name.starts_with(wanted.as_str()));
        let mut expected = Vec::new();
        if !level {
            expected.push(if row.level == Demanded::Block {
                "BLOCK".to_owned()
            } else {
                "CONFIRM".to_owned()
            });
        }
        if found.risk < row.risk {
            expected.push(format!("risk {:?}", row.risk));
        }
        expected
            .extend(row.capability.iter().filter(|wanted| !has(wanted)).map(|wanted| format!("{wanted}*")));
        (row.argv.as_slice(), (!expected.is_empty()).then(|| expected.join(", ")), found)
    }));
}

#[test]
fn what_everybody_runs_to_look_is_safe() {
    let policy = Policy::builtin();
    let table = harmless();
    assert_all_right(table.iter().map(|argv| {
        let found = policy.verdict(argv);
        let right = found.level == Level::Safe && found.risk.is_none() && !found.changes();
        (argv.as_slice(), (!right).then(|| "SAFE".to_owned()), found)
    }));
}

#[test]
fn what_could_show_a_secret_asks_though_it_is_safe() {
    let free: Vec<_> = asked().into_iter().filter(|argv| unasked_look(argv).is_ok()).collect();
    assert!(free.is_empty(), "{free:?}");
    let asks: Vec<_> = unasked().into_iter().filter(|argv| unasked_look(argv).is_err()).collect();
    assert!(asks.is_empty(), "{asks:?}");
}

#[test]
fn what_the_host_itself_runs_to_look_is_no_change() {
    let policy = Policy::builtin();
    let table = own();
    assert_all_right(table.iter().map(|argv| {
        let found = policy.verdict(argv);
        let right = found.level != Level::Block && !found.changes();
        (argv.as_slice(), (!right).then(|| "no change".to_owned()), found)
    }));
}

#[test]
fn a_change_is_seen_as_one_and_as_no_graver_than_it_is() {
    let policy = Policy::builtin();
    let table = changes();
    assert_all_right(table.iter().map(|row| {
        let found = policy.verdict(&row.argv);
        let risk = match row.risk {
            Some(least) => found.risk >= Some(least),
            None => found.risk.is_none(),
        };
        let right = risk && found.changes() && found.level != Level::Block;
        let expected = || format!("a change, not BLOCK, risk {:?}", row.risk);
        (row.argv.as_slice(), (!right).then(expected), found)
    }));
}

#[test]
fn the_tables_are_long_and_no_row_is_there_twice() {
    let (dangerous, harmless, own, changes) = (dangerous(), harmless(), own(), changes());
    assert!(dangerous.len() >= 330, "{} dangerous ones", dangerous.len());
    assert!(harmless.len() >= 170, "{} harmless ones", harmless.len());
    assert!(!own.is_empty() && !changes.is_empty());
    let mut seen = std::collections::HashSet::new();
    let twice: Vec<_> =
        dangerous.iter().map(|row| &row.argv).chain(&harmless).filter(|argv| !seen.insert(*argv)).collect();
    assert!(twice.is_empty(), "{twice:?}");
}
