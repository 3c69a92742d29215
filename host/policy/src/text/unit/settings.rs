//! Judges the settings of a unit, by the judgement that `keys.yaml` has for each key.

use super::exec::{OpenQuote, assignments, first_name};
use super::keys::{Judgement, judgement};
use super::specifiers::expand;
use super::times::is_short;
use super::{DYNAMIC_USER_PREFIX, Entry, Unit, critical_units, is_true};
use crate::text::{AccountGroup, Code, harmless, shown};

/// The verb for a socket and its service: the service may use the socket instead of one of its own.
pub const HAND_OVER: &str = "hand over";

/// The verb for a timer or a path and the unit that it starts. That unit also comes after it, without any word in its text.
pub const TRIGGER: &str = "trigger";

/// The targets that a timer may wait for. Nothing that a timer, a path or a socket starts may come before these, since it comes
/// after what starts it.
pub const BEFORE_TRIGGERS: [&str; 5] =
    ["sysinit.target", "basic.target", "local-fs.target", "time-set.target", "time-sync.target"];

/// The targets among those that a path or a socket may wait for. The others come after `paths.target` and `sockets.target`,
/// and those after every path and socket.
const BEFORE_PATHS: [&str; 2] = ["sysinit.target", "local-fs.target"];

/// The verb for a unit and another that comes after it: the other one may have to wait.
pub const DELAY: &str = "delay";

/// The units after which a service may come and still be before one of the administrator's own. Nothing of those comes before
/// these, so the order has no cycle. systemd would break a cycle by not starting one of the units.
const EARLY: [&str; 8] = [
    "sysinit.target",
    "basic.target",
    "local-fs.target",
    "network-pre.target",
    "network.target",
    "network-online.target",
    "nss-lookup.target",
    "time-sync.target",
];

/// Judges one setting.
pub fn judge(unit: &Unit, entry: &Entry, at: &str, code: &mut Code) {
    // systemd ignores these sections, which are for other programs.
    if entry.section.starts_with("X-") {
        return;
    }
    let Some(judgement) = judgement(&entry.key) else {
        return code
            .add_power(format_args!("sets `{}`, which isn't known to be harmless, {at}", shown(&entry.key)));
    };
    let (key, value) = (entry.key.as_str(), entry.value.as_str());
    match judgement {
        Judgement::Harmless | Judgement::Command => {}
        Judgement::Account => account(unit, entry, at, code),
        // An empty value resets the values before it.
        _ if value.is_empty() => {}
        Judgement::Accounts => code.add_power_of(
            unit.settings_user(&entry.section).as_deref(),
            format_args!(
                "says where root's programs leave what they die with ({key}={}), {at}",
                shown(value)
            ),
        ),
        Judgement::Confined => {
            let user = unit.settings_user(&entry.section).filter(|_| unit.is_confined(&entry.section));
            code.add_power_of(
                user.as_deref(),
                format_args!(
                    "has system calls fail, or hides files, for what has more rights as well ({key}={}), {at}",
                    shown(value)
                ),
            );
        }
        Judgement::Variables => variables(unit, entry, at, code),
        Judgement::File => {
            // A glob may stand for any file.
            let is_one_file = !value.contains(['%', '*', '?', '[', '{', '\\']);
            let user = unit.settings_user(&entry.section).filter(|_| is_one_file);
            if user.is_some() {
                code.add_file(value.trim_start_matches('-'), at);
            }
            code.add_power_of(
                user.as_deref(),
                format_args!("has root read variables from {}, {at}", shown(value)),
            );
        }
        Judgement::Starts => {
            for name in words(value).iter().map(|name| expand(name, &unit.name)) {
                let verb = match entry.section.as_str() {
                    "Socket" => HAND_OVER,
                    "Timer" | "Path" => TRIGGER,
                    _ => "start",
                };
                if verb == TRIGGER && critical_units::is_dangerous_to_stop(&name) {
                    code.add_power(format_args!("has {} wait for it ({key}=), {at}", shown(&name)));
                }
                if critical_units::is_dangerous_to_start(&name) {
                    code.add_power(format_args!("pulls in {} ({key}=), {at}", shown(&name)));
                    // It is as grave as a command that starts the unit.
                    code.add_unit_action(verb, &name, at);
                } else if is_anothers_instance(&name, &unit.name) {
                    // Only the template knows what it does with the instance's name.
                    code.add_power(format_args!(
                        "pulls in {}, an instance of a template ({key}=), {at}",
                        shown(&name)
                    ));
                } else {
                    code.add_unit_action(verb, &name, at);
                }
            }
        }
        Judgement::Siblings => {
            for name in words(value).iter().map(|name| expand(name, &unit.name)) {
                // A specifier may stand for any unit.
                if name.contains('%')
                    || critical_units::is_dangerous_to_start(&name)
                    || critical_units::is_dangerous_to_stop(&name)
                {
                    code.add_power(format_args!(
                        "is enabled and disabled together with {} ({key}=), {at}",
                        shown(&name)
                    ));
                } else {
                    code.add_unit_action("enable", &name, at);
                    code.add_unit_action("disable", &name, at);
                }
            }
        }
        Judgement::Slice => {
            let name = expand(value, &unit.name);
            // Services are in this one by default.
            let is_usual = name == "system.slice";
            if name.contains('%') || !is_usual && critical_units::is_dangerous_to_stop(&name) {
                code.add_power(format_args!(
                    "runs among what has people's sessions or the system's units, and shares its limits ({key}={}), {at}",
                    shown(value)
                ));
            }
        }
        Judgement::Stops => {
            for name in words(value).iter().map(|name| expand(name, &unit.name)) {
                // A shutdown stops everything anyway.
                if name == "shutdown.target" {
                    continue;
                }
                match name.contains('%') || critical_units::is_dangerous_to_stop(&name) {
                    true => code.add_power(format_args!("stops {} ({key}=), {at}", shown(&name))),
                    false => code.add_unit_action("stop", &name, at),
                }
            }
        }
        Judgement::Holds => {
            for name in words(value).iter().map(|name| expand(name, &unit.name)) {
                // A shutdown waits for everything anyway.
                if name == "shutdown.target" {
                    continue;
                }
                let delays = key == "Before";
                if critical_units::is_dangerous_to_delay(&name, &unit.name)
                    || delays && unit.may_close_a_cycle()
                {
                    code.add_power(format_args!("may keep {} from starting ({key}=), {at}", shown(&name)));
                } else if delays && !name.ends_with(".target") {
                    code.add_unit_action(DELAY, &name, at);
                }
            }
        }
        Judgement::Only(values) => {
            let is_one = |word: &String| match values.first().map(String::as_str) {
                Some("port") => is_port(word),
                Some("minutes") => true,
                Some("plain") => !word.contains(':'),
                Some("natural") => word.parse::<u32>().is_ok(),
                Some("finite") => word != "infinity" && !word.ends_with('%'),
                Some("positive") => word.contains(|digit: char| digit.is_ascii_digit() && digit != '0'),
                _ => values.contains(word),
            };
            if values.first().is_some_and(|first| first == "port") {
                code.ports.extend(words(value).iter().filter_map(|word| port_of(word)));
            }
            let is_short = values.first().is_none_or(|first| first != "minutes") || is_short(value);
            if !is_short || !words(value).iter().all(is_one) {
                code.add_power(format_args!(
                    "sets {key}={}, and not to what is known to be harmless ({}), {at}",
                    shown(value),
                    values.join(", ")
                ));
            }
        }
        Judgement::Asks(does) => code.add_power(format_args!("{does} ({key}={}), {at}", shown(value))),
    }
}

/// Judges the name of a unit file. The unit may replace one of the system's.
pub fn judge_name(unit: &Unit, code: &mut Code) {
    if let Some(name) = unit.delays_what_it_triggers() {
        code.add_power(format_args!("has what it starts wait for {} as well (After=)", shown(&name)));
    }
    if unit.is_drop_in {
        // Limits that are harmless for other services could keep this one from starting.
        if critical_units::is_dangerous_to_stop(&unit.name) {
            code.add_power(format_args!(
                "changes {}, by which people come in, or which protects the machine",
                shown(&unit.name)
            ));
        }
        // Drop-ins in `service.d` or `a-.service.d` apply to many units.
        if !unit.name.contains('.') || unit.name.contains("-.") {
            code.add_power(format_args!("changes every unit that `{}` stands for", shown(&unit.name)));
        }
        return;
    }
    if let Some(started) = unit.started_by_name() {
        if critical_units::is_dangerous_to_start(&started) {
            code.add_power(format_args!("starts {} when its time comes", shown(&started)));
        }
        // A timer itself waits for the clock to be right.
        if !unit.name.ends_with(".socket") && critical_units::is_dangerous_to_stop(&started) {
            code.add_power(format_args!("has {} wait for it", shown(&started)));
        }
        let verb = if unit.name.ends_with(".socket") { HAND_OVER } else { TRIGGER };
        code.add_unit_action(verb, &started, "its name");
    }
    if critical_units::is_dangerous_to_start(&unit.name) {
        code.add_power(format_args!(
            "is {}, by which the running system ends or a shell is opened",
            shown(&unit.name)
        ));
    }
    if critical_units::is_dangerous_to_stop(&unit.name) {
        code.add_power(format_args!(
            "takes the place of {}, by which people come in, or which protects the machine",
            shown(&unit.name)
        ));
    }
}

impl Unit {
    /// Whether a unit that comes before others could also come after them: by what it comes after itself, or because its text
    /// doesn't tell that.
    fn may_close_a_cycle(&self) -> bool {
        let after = self.entries.iter().filter(|entry| entry.key == "After");
        self.is_drop_in
            // A target comes after everything that it starts.
            || self.name.ends_with(".target")
            || after.flat_map(|entry| words(&entry.value)).any(|name| !EARLY.contains(&name.as_str()))
    }

    /// The first unit that a timer, a path or a socket comes after by its text alone. The unit that it starts comes after it,
    /// and the other one may wait for that unit, or for all paths and sockets.
    fn delays_what_it_triggers(&self) -> Option<String> {
        let before: &[&str] = match self.name.rsplit('.').next() {
            Some("timer") => &BEFORE_TRIGGERS,
            Some("path" | "socket") => &BEFORE_PATHS,
            _ => return None,
        };
        let after = self.entries.iter().filter(|entry| entry.key == "After");
        after.flat_map(|entry| words(&entry.value)).find(|name| !before.contains(&name.as_str()))
    }

    /// The service that a timer, a path or a socket starts where it names none.
    fn started_by_name(&self) -> Option<String> {
        let (stem, kind) = self.name.rsplit_once('.')?;
        let has = |section, key| self.value(section, key).is_some();
        let names_unit = match kind {
            "timer" => has("Timer", "Unit"),
            "path" => has("Path", "Unit"),
            "socket" => has("Socket", "Service"),
            _ => true,
        };
        let mut of_socket = self.entries.iter().filter(|entry| entry.section == "Socket");
        match kind == "socket" && of_socket.any(|entry| entry.key == "Accept" && is_true(&entry.value)) {
            // Each connection starts an instance of the template.
            true => Some(format!("{stem}@0.service")),
            false => (!names_unit).then(|| format!("{stem}.service")),
        }
    }
}

/// Judges the settings of the account. `User=` itself is in the command lines.
fn account(unit: &Unit, entry: &Entry, at: &str, code: &mut Code) {
    let (key, value) = (entry.key.as_str(), entry.value.as_str());
    if unit.is_drop_in {
        return code.add_power(format_args!(
            "changes whose rights {} has ({key}={}), {at}",
            unit.name,
            shown(value)
        ));
    }
    if value.contains('%') {
        // A template with `User=%i` runs as root for the instance `root`.
        return code.add_power(format_args!("runs as who `{}` turns out to be, {at}", shown(value)));
    }
    if !matches!(key, "Group" | "SupplementaryGroups") {
        return;
    }
    // An account's own group gives nothing more, but it need not have the account's name.
    let own = unit.user(&entry.section).filter(|user| !user.starts_with(DYNAMIC_USER_PREFIX));
    for group in words(value) {
        match &own {
            Some(account) => {
                code.groups.push(AccountGroup { account: account.clone(), group, at: at.to_owned() });
            }
            None => code.add_power(format_args!("runs in the group {} ({key}=), {at}", shown(&group))),
        }
    }
}

fn variables(unit: &Unit, entry: &Entry, at: &str, code: &mut Code) {
    // Variables of an ordinary account's commands can do no more than the account.
    let user = unit.settings_user(&entry.section);
    let whom = user.as_deref().unwrap_or("root");
    let set = match entry.key.as_str() {
        "PassEnvironment" => words(&entry.value).into_iter().map(|name| (name, None)).collect(),
        _ => {
            let set = assignments(&entry.value, &unit.name).into_iter();
            set.map(|(name, value)| (name, Some(value))).collect::<Vec<_>>()
        }
    };
    for (name, value) in set.into_iter().filter(|(name, value)| !harmless::variable(name, value.as_deref())) {
        let value = value.map(|value| format!("={value}")).unwrap_or_default();
        code.add_power_of(
            user.as_deref(),
            format_args!("sets {} for what runs as {whom}, {at}", shown(&format!("{name}{value}"))),
        );
    }
}

/// Whether the name is an instance of another unit's template, such as `modprobe@evil.service`.
fn is_anothers_instance(name: &str, own: &str) -> bool {
    let template = |name: &str| name.split_once('@').map(|(template, _)| template.to_owned());
    let stem = own.rsplit_once('.').map_or(own, |(stem, _)| stem);
    match template(name) {
        Some(of) => of != stem && Some(of) != template(own),
        None => false,
    }
}

/// Whether the word is a port that every account may listen on, with or without an address, and no path.
fn is_port(word: &str) -> bool {
    let is_address = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:[]".contains(&byte));
    is_address && port_of(word).is_some_and(|port| port >= FIRST_UNPRIVILEGED_PORT)
}

/// The port behind the last colon of an address.
fn port_of(word: &str) -> Option<u16> {
    word.rsplit(':').next()?.parse().ok()
}

/// The first port that every account may listen on.
const FIRST_UNPRIVILEGED_PORT: u16 = 1024;

/// The names in a list of units, of variables, or of other plain words.
fn words(value: &str) -> Vec<String> {
    let mut rest = value;
    let mut found = Vec::new();
    loop {
        match first_name(&mut rest) {
            Ok(Some(word)) => found.push(word),
            Ok(None) | Err(OpenQuote) => return found,
        }
    }
}
