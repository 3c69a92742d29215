//! What a unit gives beside its commands: each of its keys by the judgement that it has in `keys.yaml`, its value by that.

use super::exec::{OpenQuote, assignments, first_word};
use super::keys::{Judgement, judgement};
use super::specifiers::expand;
use super::{Entry, Unit, grave};
use crate::text::{Code, harmless, shown};

/// What a socket does to the service that it starts, which may take it in place of what it listens on by itself.
pub const HANDS_OVER: &str = "hand over";

/// Says of one setting what there is to say.
pub fn judge(unit: &Unit, entry: &Entry, at: &str, code: &mut Code) {
    // Sections that other programs keep there are nothing to systemd.
    if entry.section.starts_with("X-") {
        return;
    }
    let Some(judgement) = judgement(&entry.key) else {
        return code
            .gives(format_args!("sets `{}`, which isn't known to be harmless, {at}", shown(&entry.key)));
    };
    let (key, value) = (entry.key.as_str(), entry.value.as_str());
    match judgement {
        Judgement::Harmless | Judgement::Command => {}
        Judgement::Account => account(unit, entry, at, code),
        // An empty value takes back the values before it.
        _ if value.is_empty() => {}
        Judgement::Accounts => {
            if unit.user(&entry.section).is_none() {
                code.gives(format_args!(
                    "says where root's programs leave what they die with ({key}={}), {at}",
                    shown(value)
                ));
            }
        }
        Judgement::Confined => {
            if !unit.is_confined(&entry.section) {
                code.gives(format_args!(
                    "has system calls fail, or hides files, for what has more rights as well ({key}={}), {at}",
                    shown(value)
                ));
            }
        }
        Judgement::Variables => variables(unit, entry, at, code),
        Judgement::File => match unit.user(&entry.section) {
            // A glob may mean any file.
            Some(_) if !value.contains(['%', '*', '?', '[', '{', '\\']) => {
                code.reads(value.trim_start_matches('-'), at)
            }
            _ => code.gives(format_args!("has root read variables from {}, {at}", shown(value))),
        },
        Judgement::Starts => {
            for name in words(value).iter().map(|name| expand(name, &unit.name)) {
                if grave::to_start(&name) {
                    code.gives(format_args!("pulls in {} ({key}=), {at}", shown(&name)));
                } else if is_anothers_instance(&name, &unit.name) {
                    // A template alone says how it uses the name that it is given.
                    code.gives(format_args!(
                        "pulls in {}, an instance of a template ({key}=), {at}",
                        shown(&name)
                    ));
                } else {
                    code.acts(if entry.section == "Socket" { HANDS_OVER } else { "start" }, &name, at);
                }
            }
        }
        Judgement::Siblings => {
            for name in words(value).iter().map(|name| expand(name, &unit.name)) {
                // What a specifier stands for may be any unit.
                if name.contains('%') || grave::to_start(&name) || grave::to_stop(&name) {
                    code.gives(format_args!(
                        "is enabled and disabled together with {} ({key}=), {at}",
                        shown(&name)
                    ));
                } else {
                    code.acts("enable", &name, at);
                    code.acts("disable", &name, at);
                }
            }
        }
        Judgement::Stops => {
            for name in words(value).iter().map(|name| expand(name, &unit.name)) {
                // Everything is stopped when the machine is.
                if name == "shutdown.target" {
                    continue;
                }
                match name.contains('%') || grave::to_stop(&name) {
                    true => code.gives(format_args!("stops {} ({key}=), {at}", shown(&name))),
                    false => code.acts("stop", &name, at),
                }
            }
        }
        Judgement::Holds => {
            for name in words(value).iter().map(|name| expand(name, &unit.name)) {
                if grave::to_hold(&name, &unit.name) {
                    code.gives(format_args!("may keep {} from starting ({key}=), {at}", shown(&name)));
                }
            }
        }
        Judgement::Only(values) => {
            let is_one = |word: &String| match values.first().map(String::as_str) {
                Some("port") => is_port(word),
                Some("minutes") => true,
                Some("plain") => !word.contains(':'),
                _ => values.contains(word),
            };
            if values.first().is_some_and(|first| first == "port") {
                code.ports.extend(words(value).iter().filter_map(|word| port_of(word)));
            }
            let is_short = values.first().is_none_or(|first| first != "minutes") || is_short(value);
            if !is_short || !words(value).iter().all(is_one) {
                code.gives(format_args!(
                    "sets {key}={}, and not to what is known to be harmless ({}), {at}",
                    shown(value),
                    values.join(", ")
                ));
            }
        }
        Judgement::Asks(does) => code.gives(format_args!("{does} ({key}={}), {at}", shown(value))),
    }
}

/// Says of the file's name what there is to say: a unit may stand before one that the system has by it.
pub fn judge_name(unit: &Unit, code: &mut Code) {
    if unit.is_drop_in {
        // Limits that are harmless to a service of one's own keep this one from starting.
        if grave::to_stop(&unit.name) {
            code.gives(format_args!(
                "changes {}, by which people come in, or which protects the machine",
                shown(&unit.name)
            ));
        }
        // `service.d`, or `a-.service.d`.
        if !unit.name.contains('.') || unit.name.contains("-.") {
            code.gives(format_args!("changes every unit that `{}` stands for", shown(&unit.name)));
        }
        return;
    }
    if let Some(started) = unit.started_by_name() {
        match grave::to_start(&started) {
            true => code.gives(format_args!("starts {} when its time comes", shown(&started))),
            false => {
                let verb = if unit.name.ends_with(".socket") { HANDS_OVER } else { "start" };
                code.acts(verb, &started, "its name");
            }
        }
    }
    if grave::to_start(&unit.name) {
        code.gives(format_args!(
            "is {}, by which the running system ends or a shell is opened",
            shown(&unit.name)
        ));
    }
    if grave::to_stop(&unit.name) {
        code.gives(format_args!(
            "takes the place of {}, by which people come in, or which protects the machine",
            shown(&unit.name)
        ));
    }
}

impl Unit {
    /// What a timer, a path or a socket starts that doesn't say so.
    fn started_by_name(&self) -> Option<String> {
        let (stem, kind) = self.name.rsplit_once('.')?;
        let says = |section, key| self.value(section, key).is_some();
        let is_said = match kind {
            "timer" => says("Timer", "Unit"),
            "path" => says("Path", "Unit"),
            "socket" => says("Socket", "Service"),
            _ => true,
        };
        (!is_said).then(|| format!("{stem}.service"))
    }
}

/// Judges the settings of an account that the command lines don't show: the lines themselves carry the `User=`.
fn account(unit: &Unit, entry: &Entry, at: &str, code: &mut Code) {
    let (key, value) = (entry.key.as_str(), entry.value.as_str());
    if unit.is_drop_in {
        return code.gives(format_args!(
            "changes whose rights {} has ({key}={}), {at}",
            unit.name,
            shown(value)
        ));
    }
    if value.contains('%') {
        // A template for accounts (`User=%i`) is root's for the instance `root`.
        return code.gives(format_args!("runs as who `{}` turns out to be, {at}", shown(value)));
    }
    if !matches!(key, "Group" | "SupplementaryGroups") {
        return;
    }
    // An account's own group gives nothing that it doesn't have.
    let own = unit.value(&entry.section, "User");
    for group in words(value).iter().filter(|group| Some(group.as_str()) != own) {
        code.gives(format_args!("runs in the group {} ({key}=), {at}", shown(group)));
    }
}

fn variables(unit: &Unit, entry: &Entry, at: &str, code: &mut Code) {
    // With an account's own rights they can do no more than the account.
    if unit.user(&entry.section).is_some() {
        return;
    }
    let set = match entry.key.as_str() {
        "PassEnvironment" => words(&entry.value).into_iter().map(|name| (name, None)).collect(),
        _ => {
            let set = assignments(&entry.value, &unit.name).into_iter();
            set.map(|(name, value)| (name, Some(value))).collect::<Vec<_>>()
        }
    };
    for (name, value) in set.into_iter().filter(|(name, value)| !harmless::variable(name, value.as_deref())) {
        let value = value.map(|value| format!("={value}")).unwrap_or_default();
        code.gives(format_args!("sets {} for what runs as root, {at}", shown(&format!("{name}{value}"))));
    }
}

/// `modprobe@evil.service`, for any unit but one of the template's own.
fn is_anothers_instance(name: &str, own: &str) -> bool {
    let template = |name: &str| name.split_once('@').map(|(template, _)| template.to_owned());
    let stem = own.rsplit_once('.').map_or(own, |(stem, _)| stem);
    match template(name) {
        Some(of) => of != stem && Some(of) != template(own),
        None => false,
    }
}

/// A port, with or without an address: nothing in the file system.
/// Whether a time span, systemd.time(7), is known to be at most ten minutes. A number alone is seconds.
fn is_short(value: &str) -> bool {
    let mut seconds = 0.0;
    let mut rest = value.trim();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse::<f64>() else { return false };
        let behind = rest[end..].trim_start();
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        seconds += number
            * match &behind[..end] {
                "us" | "usec" => 1e-6,
                "ms" | "msec" => 1e-3,
                "" | "s" | "sec" | "second" | "seconds" => 1.0,
                "m" | "min" | "minute" | "minutes" => 60.0,
                _ => return false,
            };
        rest = behind[end..].trim_start();
    }
    // None at all, and 0, is no end.
    seconds > 0.0 && seconds <= 600.0
}

/// An address in no file system, with a port that services of the system don't have.
fn is_port(word: &str) -> bool {
    let is_address = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:[]".contains(&byte));
    is_address && port_of(word).is_some_and(|port| port >= FIRST_OF_ALL)
}

/// The port of an address, which is behind its last colon.
fn port_of(word: &str) -> Option<u16> {
    word.rsplit(':').next()?.parse().ok()
}

/// The first port that every account may listen on.
const FIRST_OF_ALL: u16 = 1024;

fn words(value: &str) -> Vec<String> {
    let mut rest = value;
    let mut found = Vec::new();
    loop {
        match first_word(&mut rest) {
            Ok(Some(word)) => found.push(word),
            Ok(None) | Err(OpenQuote) => return found,
        }
    }
}
