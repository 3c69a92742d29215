//! Raises the risk of a change above that of its tool. The host derives this from the steps, so that no module can leave it
//! out.

use super::profile::{Profile, When, holds_on};
use super::{Knowledge, is_instance};
use host_base::Risk;

/// The action of one step of a plan.
pub enum StepAction<'a> {
    /// The step runs a command.
    Run {
        /// The program as the grant spells it.
        program: &'a str,
        /// The arguments after the program.
        args: &'a [String],
    },
    /// The step writes or removes a file. It is given by each path that leads to it.
    Edit(&'a [&'a str]),
}

/// The risks that the profiles' rules give to a step on machines of this family, each with its reason.
pub fn raised_risks(knowledge: &Knowledge, family: &str, done: &StepAction) -> Vec<(Risk, String)> {
    let systemctl = match done {
        StepAction::Run { program, args } => verbs_and_units(program, args),
        StepAction::Edit(_) => Vec::new(),
    };
    let profiles = knowledge.all().iter().map(|known| &known.profile);
    let entries = profiles.flat_map(|profile| profile.risk.iter().map(move |rule| (profile, rule)));
    entries
        .filter(|(_, rule)| holds_on(&rule.family, family))
        .filter(|(profile, rule)| applies(profile, &rule.when, done, &systemctl))
        .map(|(profile, rule)| (rule.level, format!("{} (profile {})", rule.reason, profile.id)))
        .collect()
}

fn applies(profile: &Profile, when: &When, done: &StepAction, systemctl: &[(String, String)]) -> bool {
    match (when, done) {
        (When::Unit { verb, unit }, StepAction::Run { .. }) => systemctl
            .iter()
            .any(|(done, on)| verb.contains(done) && unit.iter().any(|unit| means(profile, unit, on))),
        (When::Edit { edit }, StepAction::Edit(paths)) => edit.iter().any(|glob| {
            // The glob was checked when the profile was loaded.
            super::glob::glob(glob).is_ok_and(|glob| paths.iter().any(|path| glob.matches(path)))
        }),
        (When::Command { command, subcommand_any, options_any }, StepAction::Run { program, args }) => {
            let is_option = |option: &String| {
                let with_value =
                    |arg: &String| arg.strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
                args.iter().any(|arg| arg == option || with_value(arg))
            };
            name_of(program) == command
                && (subcommand_any.is_empty() || subcommand_any.iter().any(|words| has_words(args, words)))
                && (options_any.is_empty() || options_any.iter().any(is_option))
        }
        _ => false,
    }
}

fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether these words stand one after the other among the arguments. They may follow options with values, which only a
/// reader who knows the program can recognize.
fn has_words(args: &[String], words: &str) -> bool {
    let words: Vec<_> = words.split_whitespace().collect();
    let mut operands = args.windows(words.len().max(1));
    operands.any(|some| some.iter().map(String::as_str).eq(words.iter().copied()))
}

/// The verbs and units that a command of systemctl or service names, as profiles write them.
fn verbs_and_units(program: &str, args: &[String]) -> Vec<(String, String)> {
    let is_option = |arg: &&String| arg.starts_with('-');
    match name_of(program) {
        "systemctl" => {
            // The value of an option may stand before the verb, so every word is tried as the verb.
            let words: Vec<_> = args.iter().filter(|arg| !is_option(arg)).collect();
            let now = args.iter().any(|arg| arg == "--now");
            let found =
                words.iter().enumerate().filter_map(|(number, word)| Some((number, verbs(word, now)?)));
            found
                .flat_map(|(number, verbs)| {
                    let units = words[number + 1..].iter();
                    units.flat_map(move |unit| verbs.iter().map(|verb| ((*verb).to_owned(), whole(unit))))
                })
                .collect()
        }
        "service" | "invoke-rc.d" | "rc-service" => {
            let words: Vec<_> = args.iter().filter(|arg| !is_option(arg)).collect();
            let [unit, verb, ..] = words[..] else { return Vec::new() };
            let verbs = verbs(verb, false).unwrap_or_default();
            verbs.iter().map(|verb| ((*verb).to_owned(), whole(unit))).collect()
        }
        _ => Vec::new(),
    }
}

fn verbs(word: &str, now: bool) -> Option<&'static [&'static str]> {
    Some(match word {
        "start" => &["start"],
        "stop" => &["stop"],
        "restart" | "try-restart" | "condrestart" | "force-restart" => &["restart"],
        "reload" | "force-reload" => &["reload"],
        "reload-or-restart" | "try-reload-or-restart" => &["reload", "restart"],
        "enable" if now => &["enable", "start"],
        "enable" | "reenable" => &["enable"],
        "disable" if now => &["disable", "stop"],
        "disable" => &["disable"],
        "mask" if now => &["mask", "stop"],
        "mask" => &["mask"],
        "unmask" => &["unmask"],
        "kill" => &["kill"],
        "freeze" => &["stop"],
        _ => return None,
    })
}

fn whole(unit: &str) -> String {
    let is_whole = [".service", ".socket", ".timer", ".path", ".target", ".mount", ".slice", ".scope"]
        .iter()
        .any(|suffix| unit.ends_with(suffix));
    if is_whole || unit.contains(['*', '?', '[']) { unit.to_owned() } else { format!("{unit}.service") }
}

/// Whether a word of a command stands for a profile's unit: by its name, by an alias, as an instance, or by a pattern.
fn means(profile: &Profile, unit: &str, word: &str) -> bool {
    let same = |name: &str| {
        name == word
            || is_instance(name, word)
            || glob::Pattern::new(word).is_ok_and(|pattern| {
                word.contains(['*', '?', '['])
                    && (pattern.matches(name) || pattern.matches(name.trim_end_matches(".service")))
            })
    };
    let names = profile
        .units
        .iter()
        .filter(|known| known.name == unit || known.aliases.iter().any(|alias| alias == unit));
    same(unit)
        || names.flat_map(|known| std::iter::once(&known.name).chain(&known.aliases)).any(|name| same(name))
}
