//! Matches a command line against a rule.

use std::borrow::Cow;

use super::argv::{Argv, Operand, Wanted};
use super::glob::{self, Met, PathGlob};
use super::path;
use super::rule::{Match, OptionGlob};

/// Whether all conditions of the rule hold. The result is as certain as the least certain condition. The index has matched
/// the program's name already.
pub(super) fn meets(rule: &Match, argv: &Argv<'_>, directories: &[String]) -> Met {
    if !rule.commands_none.is_empty()
        && argv.names.iter().any(|name| any(&rule.commands_none, name) != Met::No)
    {
        return Met::No;
    }
    let (subcommand, after) = subcommand(rule, argv);
    let args = || argv.operands[after..].iter().map(|operand| operand.word);
    let conditions: [&dyn Fn() -> Met; 11] = [
        &|| subcommand,
        &|| {
            let is_given = |option: &OptionGlob| match rule.is_safe {
                true => has(option, &[], argv, false) != Met::No,
                false => has(option, &[], argv, true) == Met::Yes,
            };
            let is_taken_back = !rule.is_safe && is_taken_back(rule, argv);
            Met::sure(is_taken_back || !rule.options_none.iter().any(is_given))
        },
        &|| Met::sure(rule.options_only.is_empty() || are_only(&rule.options_only, argv)),
        &|| best(&rule.options_any, |option| has(option, &rule.options_except, argv, false)),
        &|| worst(&rule.options_all, |option| has(option, &[], argv, false)),
        &|| {
            let least = if rule.is_safe { Met::Maybe } else { Met::Yes };
            Met::sure(!rule.args_none.iter().any(|glob| args().any(|arg| glob::word(glob, arg) >= least)))
        },
        &|| {
            let is_other = |arg: &str| any(&rule.args_other, arg) != Met::Yes;
            Met::sure(rule.args_other.is_empty() || args().any(is_other))
        },
        &|| {
            if rule.args_any.is_empty() && rule.args_all.is_empty() {
                return Met::Yes;
            }
            let words: Vec<_> = args().chain(argv.all_values()).map(|arg| expanded(arg, argv)).collect();
            let of_any = |glob: &String| best_of(words.iter().map(|word| glob::word(glob, word)));
            best(&rule.args_any, of_any).min(worst(&rule.args_all, of_any))
        },
        &|| match rule.paths.is_empty() {
            true => Met::Yes,
            false => {
                best_of(args().chain(argv.all_values()).map(|word| path_in(&rule.paths, word, directories)))
            }
        },
        &|| match rule.paths_except.is_empty() {
            true => Met::Yes,
            false => {
                let is_other =
                    |word: &str, is_name: bool| is_elsewhere(&rule.paths_except, word, is_name, directories);
                // The first operand is no path but says what to do, as in chown(1).
                let operands = args().enumerate().map(|(at, word)| is_other(word, at > 0));
                best_of(operands.chain(argv.all_values().map(|word| is_other(word, false))))
            }
        },
        &|| {
            let is_known = |word: &str| {
                path::components("/", word).is_some_and(|components| {
                    let open = glob::open(&components);
                    rule.paths_other.iter().any(|glob| glob.meets(&components, open) == Met::Yes)
                })
            };
            let mut words = args().chain(argv.all_values());
            Met::sure(
                rule.paths_other.is_empty() || words.any(|word| !word.starts_with('/') || !is_known(word)),
            )
        },
    ];
    let mut met = Met::Yes;
    for condition in conditions {
        met = met.min(condition());
        if met == Met::No {
            break;
        }
    }
    met
}

/// The word with its wildcards as unknown parts, where the program expands wildcards itself.
fn expanded<'a>(arg: &'a str, argv: &Argv<'_>) -> Cow<'a, str> {
    let expands = argv.grammar.is_some_and(|grammar| grammar.expands);
    match expands && arg.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'[')) {
        true => Cow::Owned(arg.replace(['*', '?', '['], glob::SOME_TEXT)),
        false => Cow::Borrowed(arg),
    }
}

/// Whether one of these globs matches the word.
pub(super) fn any(globs: &[String], word: &str) -> Met {
    best_of(globs.iter().map(|glob| glob::word(glob, word)))
}

/// Whether the first operands are one of the rule's subcommands, and where the other operands begin.
fn subcommand(rule: &Match, argv: &Argv<'_>) -> (Met, usize) {
    if rule.subcommands.is_empty() {
        return (Met::Yes, 0);
    }
    if rule.subcommands_except.iter().any(|words| begins(words, argv)) {
        return (Met::No, 0);
    }
    let abbreviates = !rule.is_safe && argv.grammar.is_some_and(|grammar| grammar.abbreviates);
    let found = rule.subcommands.iter().map(|words| follows(words, argv, abbreviates));
    found.max_by_key(|(met, _)| *met).unwrap_or((Met::No, 0))
}

/// Whether the operands begin with these words, or with abbreviations of them where the program `abbreviates`. Operands that
/// may be the value of an option are skipped.
pub(super) fn follows(words: &[String], argv: &Argv<'_>, abbreviates: bool) -> (Met, usize) {
    let (mut met, mut at) = (Met::Yes, 0);
    for wanted in words {
        loop {
            let Some(operand) = argv.operands.get(at) else { return (Met::No, 0) };
            at += 1;
            let is_beginning = abbreviates && !operand.word.is_empty() && wanted.starts_with(operand.word);
            match glob::word(wanted, operand.word) {
                Met::No if is_beginning => break,
                Met::No if operand.is_maybe_value => {}
                Met::No => return (Met::No, 0),
                found => {
                    met = met.min(found);
                    break;
                }
            }
        }
    }
    (met, at)
}

/// Returns whether the operands certainly begin with these words.
fn begins(words: &[String], argv: &Argv<'_>) -> bool {
    let is = |(wanted, operand): (&String, &Operand<'_>)| {
        !operand.is_maybe_value && glob::word(wanted, operand.word) == Met::Yes
    };
    argv.operands.len() >= words.len() && words.iter().zip(&argv.operands).all(is)
}

/// Whether the option is given. With `exact`, that must be certain. Values that certainly match `except` don't count.
fn has(option: &OptionGlob, except: &[OptionGlob], argv: &Argv<'_>, exact: bool) -> Met {
    if exact && argv.doubts(&option.name) {
        return Met::No;
    }
    let wanted = Wanted { name: &option.name, exact };
    let is_excepted = |value: &Option<&str>| {
        let of_it = except.iter().filter(|except| except.name == option.name);
        let mut globs = of_it.filter_map(|except| except.value.as_ref());
        globs.any(|glob| value.is_some_and(|value| glob::word(glob, value) == Met::Yes))
    };
    let values = argv.values(&wanted).filter(|value| !is_excepted(value));
    best_of(values.map(|value| match (&option.value, value) {
        // `--dry-run=no` or `-s-` takes an option without values back.
        (None, Some(value))
            if exact && !argv.takes_value(&option.name) && !matches!(value, "yes" | "true" | "1") =>
        {
            Met::No
        }
        (None, _) => Met::Yes,
        (Some(glob), Some(value)) => glob::word(glob, value),
        (Some(_), None) => Met::No,
    }))
}

/// Whether every option is certainly one of these.
fn are_only(known: &[OptionGlob], argv: &Argv<'_>) -> bool {
    argv.given().all(|name| known.iter().any(|option| option.name == name))
}

/// Whether an option such as `--no-dry-run` takes one of the rule's options back. apt-get(8) accepts abbreviations of it.
fn is_taken_back(rule: &Match, argv: &Argv<'_>) -> bool {
    let names = || rule.options_none.iter().filter_map(|option| option.name.strip_prefix("--"));
    let longs = argv.long_names().filter_map(|long| long.strip_prefix("--"));
    let others = longs.filter(|long| names().all(|name| name != *long));
    others
        .filter_map(|long| long.strip_prefix("no-"))
        .any(|taken| !taken.is_empty() && names().any(|name| name.starts_with(taken)))
}

/// Whether one of the globs matches a path in the word.
fn path_in(globs: &[PathGlob], word: &str, directories: &[String]) -> Met {
    let of_path = |text: &str| {
        best_of(directories.iter().filter_map(|directory| {
            let components = path::components(directory, text)?;
            let open = glob::open(&components);
            Some(best_of(globs.iter().map(|glob| glob.meets(&components, open))))
        }))
    };
    // An operand without a slash is a name in the current directory.
    let name =
        Some(word).filter(|word| directories.len() > 1 && !word.contains('/') && !word.starts_with('-'));
    best_of(path::within(word).chain(name).map(of_path))
}

/// Whether a path in the word may be one that no glob matches.
fn is_elsewhere(globs: &[PathGlob], word: &str, is_name: bool, directories: &[String]) -> Met {
    let name = Some(word).filter(|word| is_name && !word.contains('/') && !word.starts_with('-'));
    let mut paths = path::within(word).chain(name);
    Met::sure(paths.any(|path| path_in(globs, path, directories) != Met::Yes))
}

fn best<T>(conditions: &[T], holds: impl Fn(&T) -> Met) -> Met {
    match conditions.is_empty() {
        true => Met::Yes,
        false => best_of(conditions.iter().map(holds)),
    }
}

fn worst<T>(conditions: &[T], holds: impl Fn(&T) -> Met) -> Met {
    conditions.iter().map(holds).min().unwrap_or(Met::Yes)
}

fn best_of(mut all: impl Iterator<Item = Met>) -> Met {
    let mut best = Met::No;
    while best != Met::Yes
        && let Some(one) = all.next()
    {
        best = best.max(one);
    }
    best
}
