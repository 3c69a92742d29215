//! Files of rules: their errors, and how an operator's rules are merged with those that come with the program.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;
use rule::Sets;

const RULE: &str = "
  - id: own.rule
    level: CONFIRM
    risk_score: 50
    capabilities: [own.thing]
    reason: because
    match: {command: frob, args_any: ['*']}
";

fn file(directory: &Path, text: &str) -> PolicyFile {
    let path = directory.join("policy.yaml");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    PolicyFile { path: Some(path.to_str().unwrap().to_owned()), include_builtin: true }
}

#[test]
fn the_tables_are_built_as_they_are_written() {
    let rules = load::parse(include_str!("../rules.yaml"), &Sets::new());
    let written: Vec<String> = rules
        .map_err(|(line, why)| format!("{line}: {why}"))
        .unwrap()
        .into_iter()
        .map(|rule| rule.id)
        .collect();
    let built: Vec<String> = load::builtin().into_iter().map(|rule| rule.id).collect();
    assert_eq!(written, built);
    let written: Vec<programs::Grammar> = serde_yaml::from_str(include_str!("../programs.yaml")).unwrap();
    assert_eq!(written.len(), programs::count());
}

#[test]
fn no_program_has_two_grammars() {
    let written: Vec<programs::Grammar> = serde_yaml::from_str(include_str!("../programs.yaml")).unwrap();
    let mut seen = std::collections::HashSet::new();
    for name in written.iter().flat_map(|grammar| grammar.names()) {
        assert!(seen.insert(name), "{name}");
    }
}

#[test]
fn what_is_wrong_with_a_rule_is_said_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let good = format!("rules:{RULE}");
    for (from, to, line, words) in [
        ("args_any", "arg_any", 7, "arg_any"),
        ("level: CONFIRM", "level: ASK", 3, "ASK"),
        ("risk_score: 50", "risk_score: 101", 2, "0 to 100"),
        ("risk_score: 50", "risk_score: many", 4, "risk_score"),
        ("reason: because", "reason: ''", 2, "reason"),
        ("reason: because", "risk: read-only\n    reason: x", 2, "read-only"),
        ("reason: because", "risk: grave\n    reason: x", 6, "grave"),
        ("reason: because", "risk: high\n    risk_on_new_volume: read-only\n    reason: x", 2, "read-only"),
        ("reason: because", "risk: high\n    risk_on_new_volume: high\n    reason: x", 2, "a lower risk"),
        ("reason: because", "risk_on_new_volume: low\n    reason: x", 2, "a lower risk"),
        ("[own.thing]", "[]", 2, "capability"),
        ("[own.thing]", "['Own Thing']", 2, "Own Thing"),
        ("own.rule", "Own_Rule", 2, "a-z"),
        ("{command: frob, args_any: ['*']}", "{}", 2, "empty"),
        ("{command: frob, args_any: ['*']}", "{command: '*'}", 2, "empty"),
        ("{command: frob, args_any: ['*']}", "{step: write}", 2, "empty"),
        ("{command: frob, args_any: ['*']}", "{step: write, command: frob, path: /x}", 2, "only `path`"),
        ("{command: frob, args_any: ['*']}", "{step: [run, write], path: /x}", 2, "alone"),
        ("{command: frob, args_any: ['*']}", "{step: erase, path: /x}", 7, "erase"),
        ("{command: frob, args_any: ['*']}", "{command: frob, path: etc}", 2, "absolute"),
        ("{command: frob, args_any: ['*']}", "{command: frob, path: '/a[b]'}", 2, "wildcards"),
        ("{command: frob, args_any: ['*']}", "{command: frob, path: '/a/../b'}", 2, "`..`"),
        ("{command: frob, args_any: ['*']}", "{command: frob, path: '/a**'}", 2, "whole component"),
        ("{command: frob, args_any: ['*']}", "{command: frob, path: '/{a'}", 2, "after `{`"),
        ("{command: frob, args_any: ['*']}", "{command: /bin/frob}", 2, "without its path"),
        ("{command: frob, args_any: ['*']}", "{command: frob, options_any: [x]}", 2, "-x"),
        ("{command: frob, args_any: ['*']}", "{command: $nothing}", 2, "nothing"),
        (
            "{command: frob, args_any: ['*']}",
            "{capabilities_all: a.b, command: frob}",
            2,
            "nothing beside capabilities_all",
        ),
        ("{command: frob, args_any: ['*']}", "{capabilities_all: 'a.{b'}", 2, "after `{`"),
        (
            "args_any: ['*']",
            "options_any: [--a], options_except: [--a]",
            2,
            "own.rule: options_except: expected --a=value",
        ),
        ("args_any: ['*']", "options_any: [--a], options_except: ['--b=c']", 2, "--b among options_any"),
        (
            "args_any: ['*']",
            "options_any: [--a], options_except: ['--a=b', '-a=b']",
            2,
            "-a among options_any",
        ),
        ("args_any: ['*']", "options_all: [--a], options_except: ['--a=b']", 2, "--a among options_any"),
        ("args_any: ['*']", "args_any: ['*'], options_only: ['--a=b']", 2, "without a value"),
        ("{command: frob, args_any: ['*']}", "{step: write, path: /x, path_other: /y}", 2, "only `path`"),
        ("args_any: ['*']", "args_any: ['*'], options_except: ['--a=b']", 2, "--a among options_any"),
        ("args_any: ['*']", "args_any: ['*'], subcommand_except: a", 2, "subcommand_any beside it"),
        (
            "{command: frob, args_any: ['*']}",
            "{step: write, path: /x, subcommand_except: a}",
            2,
            "only `path`",
        ),
    ] {
        let text = good.replace(from, to);
        assert_ne!(text, good, "{from}");
        let error = Policy::load(&file(directory.path(), &text)).err().expect(&text).to_string();
        let at = format!("policy.yaml, line {line}: ");
        assert!(error.contains(&at) && error.contains(words), "{to}: {error}");
    }
    for (text, line, words) in [
        (format!("rules:{RULE}{RULE}"), 9, "twice"),
        ("rule: []\n".to_owned(), 1, "rule"),
        ("rules: [\n".to_owned(), 2, ""),
        (String::new(), 1, ""),
    ] {
        let error = Policy::load(&file(directory.path(), &text)).err().expect(&text).to_string();
        assert!(error.contains(&format!("line {line}: ")) && error.contains(words), "{text:?}: {error}");
    }
}

#[test]
fn an_operators_rules_replace_those_with_their_id_and_are_added_to_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let replacing =
        RULE.replace("own.rule", "power.off").replace("CONFIRM", "SAFE").replace("frob", "reboot");
    let config = file(directory.path(), &format!("rules:{RULE}{replacing}"));
    let both = Policy::load(&config).unwrap().unwrap();
    assert_eq!(both.verdict(&["frob", "x"]).matched_rules, ["own.rule"]);
    assert_eq!(both.verdict(&["reboot", "now"]).level, Level::Safe);
    assert_eq!(both.verdict(&["poweroff"]).matched_rules, ["unknown"]);
    assert_eq!(both.verdict(&["mkfs", "/dev/sda"]), Policy::builtin().verdict(&["mkfs", "/dev/sda"]));
    let alone = Policy::load(&PolicyFile { include_builtin: false, ..config }).unwrap().unwrap();
    assert_eq!(alone.verdict(&["frob", "x"]).matched_rules, ["own.rule"]);
    assert_eq!(alone.verdict(&["mkfs", "/dev/sda"]).matched_rules, ["unknown"]);
    // What can't be seen through is no rule.
    assert_eq!(alone.verdict(&["sh", "-c", "$X"]).matched_rules, ["code.shell", "unknown"]);
}

#[test]
fn an_operators_rules_may_name_the_sets_that_come_with_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!("rules:{}", RULE.replace("args_any: ['*']", "path: $disks"));
    let policy = Policy::load(&file(directory.path(), &text)).unwrap().unwrap();
    assert!(policy.verdict(&["frob", "/dev/sda"]).matched_rules.contains(&"own.rule".to_owned()));
    assert!(!policy.verdict(&["frob", "/srv"]).matched_rules.contains(&"own.rule".to_owned()));
}

#[test]
fn rules_that_others_can_write_or_that_are_nowhere_are_none() {
    let directory = tempfile::tempdir().unwrap();
    let config = file(directory.path(), &format!("rules:{RULE}"));
    let path = config.path.clone().unwrap();
    for mode in [0o620, 0o602, 0o666] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let error = Policy::load(&config).err().unwrap();
        let why = std::error::Error::source(&error).unwrap().to_string();
        assert!(why.contains("write to it"), "{mode:o}: {error}: {why}");
    }
    let named = |path: &str| PolicyFile { path: Some(path.to_owned()), include_builtin: true };
    for (config, words) in [
        (named("policy.yaml"), "absolute"),
        (named("/nowhere/policy.yaml"), "can't be read"),
        (PolicyFile { path: None, include_builtin: false }, "needs a path"),
    ] {
        let error = Policy::load(&config).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn the_gravest_rule_gives_its_reason_and_all_give_their_capabilities() {
    let rules = format!(
        "rules:{RULE}{}{}",
        RULE.replace("own.rule", "own.grave")
            .replace("50", "90\n    risk: high")
            .replace("because", "it is grave")
            .replace("thing", "grave"),
        RULE.replace("own.rule", "own.safe")
            .replace("CONFIRM", "SAFE")
            .replace("50", "100")
            .replace("thing", "safe"),
    );
    let verdict = policy(&rules).verdict(&["frob", "x"]);
    assert_eq!((verdict.level, verdict.risk, verdict.risk_score), (Level::Confirm, Some(Risk::High), 100));
    assert_eq!(verdict.matched_rules, ["own.grave", "own.rule", "own.safe"]);
    assert_eq!(verdict.capabilities, ["own.thing", "own.grave", "own.safe"]);
    assert_eq!(verdict.reason, "it is grave (also own.rule, own.safe)");
    assert!(verdict.changes());
}

#[test]
fn a_rule_can_have_a_lower_risk_on_a_new_volume() {
    let rule = RULE.replace("reason:", "risk: critical\n    risk_on_new_volume: high\n    reason:");
    let grave = RULE.replace("own.rule", "own.grave").replace("reason:", "risk: critical\n    reason:");
    for (rules, expected) in [
        (rule.clone(), Risk::High),
        // No rule lowers what another one says.
        (format!("{rule}{grave}"), Risk::Critical),
        (grave, Risk::Critical),
    ] {
        let policy = policy(&format!("rules:{rules}"));
        let verdict = policy.verdict_on_new_volume(&["frob", "x"]);
        assert_eq!((verdict.level, verdict.risk), (Level::Confirm, Some(expected)), "{rules}");
        assert_eq!(policy.verdict(&["frob", "x"]).risk, Some(Risk::Critical), "{rules}");
    }
}

#[test]
fn only_a_capability_that_ends_in_read_is_no_change() {
    for (capability, changes) in
        [("credentials.read", false), ("read", false), ("disk.write", true), ("bread", true)]
    {
        let policy = policy(&format!("rules:{}", RULE.replace("own.thing", capability)));
        assert_eq!(policy.verdict(&["frob", "x"]).changes(), changes, "{capability}");
        assert!(!policy.verdict(&["frob"]).changes());
    }
}

#[test]
fn a_rule_can_be_for_what_all_programs_of_a_command_line_do_together() {
    let both = "
  - id: own.both
    level: BLOCK
    risk_score: 90
    capabilities: own.both
    reason: both
    match: {capabilities_all: [own.thing, 'own.{that,other}']}
";
    let policy = policy(&format!(
        "rules:{RULE}{}{both}",
        RULE.replace("own.rule", "own.second").replace("frob", "grob").replace("thing", "other")
    ));
    let level = |text: &str| policy.verdict(&["sh", "-c", text]).level;
    assert_eq!(level("frob x; grob y"), Level::Block);
    assert_eq!(level("grob y | sudo frob x"), Level::Block);
    assert_eq!(policy.verdict(&["frob", "x"]).matched_rules, ["own.rule"]);
    assert_eq!(policy.verdict(&["grob", "x"]).matched_rules, ["own.second"]);
    // The second rule only may match.
    let verdict = policy.verdict(&["sh", "-c", "frob x; grob $y"]);
    assert_eq!((verdict.level, verdict.risk_score), (Level::Confirm, 90));
}
