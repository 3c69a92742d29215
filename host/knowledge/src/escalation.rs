//! What makes a change graver than its tool is: the host derives it from the steps, so that no module can leave it out.

use super::profile::{Profile, When, holds_on};
use super::{Knowledge, is_instance};
use host_base::Risk;

/// What a step of a plan does.
pub enum Done<'a> {
    /// A command.
    Run {
        /// As the grant spells it.
        program: &'a str,
        /// What follows it.
        args: &'a [String],
    },
    /// A file that is written or removed, by each path that leads to it.
    Edit(&'a [&'a str]),
}

/// What every profile says of it, on machines of this family: at least so grave, and why.
pub fn graver(knowledge: &Knowledge, family: &str, done: &Done) -> Vec<(Risk, String)> {
    let systemctl = match done {
        Done::Run { program, args } => verbs_and_units(program, args),
        Done::Edit(_) => Vec::new(),
    };
    let profiles = knowledge.all().iter().map(|known| &known.profile);
    let entries = profiles.flat_map(|profile| profile.risk.iter().map(move |graver| (profile, graver)));
    entries
        .filter(|(_, graver)| holds_on(&graver.family, family))
        .filter(|(profile, graver)| is_meant(profile, &graver.when, done, &systemctl))
        .map(|(profile, graver)| (graver.level, format!("{} (profile {})", graver.reason, profile.id)))
        .collect()
}

fn is_meant(profile: &Profile, when: &When, done: &Done, systemctl: &[(String, String)]) -> bool {
    match (when, done) {
        (When::Unit { verb, unit }, Done::Run { .. }) => systemctl
            .iter()
            .any(|(done, on)| verb.contains(done) && unit.iter().any(|unit| means(profile, unit, on))),
        (When::Edit { edit }, Done::Edit(paths)) => edit.iter().any(|glob| {
            // It was checked when the profile was loaded.
            super::glob::glob(glob).is_ok_and(|glob| paths.iter().any(|path| glob.matches(path)))
        }),
        (When::Command { command, subcommand_any, options_any }, Done::Run { program, args }) => {
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

/// Wherever they stand one after the other: before them may be options with values, which are theirs only to who knows
/// the program.
fn has_words(args: &[String], words: &str) -> bool {
    let words: Vec<_> = words.split_whitespace().collect();
    let mut operands = args.windows(words.len().max(1));
    operands.any(|some| some.iter().map(String::as_str).eq(words.iter().copied()))
}

/// What systemctl or service is told to do, and to which unit: each as the profiles name it.
fn verbs_and_units(program: &str, args: &[String]) -> Vec<(String, String)> {
    let is_option = |arg: &&String| arg.starts_with('-');
    match name_of(program) {
        "systemctl" => {
            // An option's value that stands apart would be taken for the verb; then the next word is tried as well.
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

/// Whether a word of a command means a profile's unit: by its name, another name of it, as an instance, or by a pattern.
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
