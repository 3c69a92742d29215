//! The risks of what a plan does to units that its commands and texts don't name, and of names of instances, which a
//! template may use as code or as a path.

use std::collections::BTreeSet;
use std::pin::Pin;

use host_base::Risk;
use host_base::problem::Problem;
use host_knowledge::{StepAction, raised_risks};
use host_policy::text::{self, UnitAction};
use host_text::redact::excerpt;

use super::{MOST_NAMED, NAMED, RiskAssessment};
use crate::heap::on_heap;
use crate::unit_install::{self, Install};
use crate::unit_reach::{self, Reach, UnitEffect, UnitEvent, When};
use crate::units;

/// The number of instances of one plan whose templates are read.
const MOST_INSTANCES: usize = 100;

/// The commands that change what starts with the machine, by the units' files.
const BY_FILES: [&str; 7] = ["enable", "disable", "reenable", "preset", "mask", "unmask", "add-wants"];

/// The kinds of units that start another one when a time or an event comes, and that take no time to start themselves.
const TRIGGERS: [&str; 4] = [".timer", ".path", ".socket", ".automount"];

impl RiskAssessment<'_> {
    /// Assesses what a command of systemctl does to units that it doesn't name. Their commands may lead here again.
    pub(super) fn reaches<'f>(
        &'f mut self,
        argv: &'f [String],
        line: &'f str,
    ) -> Pin<Box<dyn Future<Output = Result<(), Problem>> + Send + 'f>> {
        on_heap(|| self.reaches_units(argv, line))
    }

    async fn reaches_units(&mut self, argv: &[String], line: &str) -> Result<(), Problem> {
        let Some((effect, verb, units)) = UnitEffect::of_command(argv) else { return Ok(()) };
        let shown = format!("`{line}`");
        if effect == UnitEffect::Reload {
            let Some((along, own)) = unit_reach::of_reload(self.target, &units).await else {
                return self.also(line, verb, None).await;
            };
            on_heap(|| self.own_commands(&own, &shown)).await?;
            return self.also(line, verb, Some(along)).await;
        }
        let is_by_files = BY_FILES.contains(&verb);
        let install = match is_by_files {
            true => unit_install::of_install(self.target, &units).await,
            false => None,
        };
        let starts_later = |unit: &&str| TRIGGERS.iter().any(|kind| unit.ends_with(kind));
        let when = if is_by_files || units.iter().any(starts_later) { When::Later } else { When::Now };
        let reach = match effect {
            UnitEffect::Start => {
                let along = install.iter().flat_map(|install| &install.along).map(String::as_str);
                let units: Vec<&str> = units.iter().copied().chain(along).collect();
                unit_reach::of_start(self.target, &units, when).await
            }
            _ => unit_reach::of_stop(self.target, &units, When::Now).await,
        };
        let Some(mut reach) = reach else {
            let why = format!("`{line}` may stop other units, and the target doesn't say which");
            self.risks.push((Risk::High, why));
            return Ok(());
        };
        // A restart stops the units first, and restarts what depends on them.
        if effect == UnitEffect::Start && !is_by_files && verb != "start" {
            let Some(ends) = unit_reach::of_stop(self.target, &units, When::Now).await else {
                let why = format!("`{line}` may restart other units, and the target doesn't say which");
                self.risks.push((Risk::High, why));
                return Ok(());
            };
            for (unit, event) in ends.own {
                reach.own.remove(&(unit.clone(), UnitEvent::Starts));
                let is_end = event == UnitEvent::Stops;
                reach.own.insert((unit, if is_end { UnitEvent::Restarts } else { event }));
            }
        }
        if let Some((unit, action)) = &reach.acts {
            let unit = excerpt(unit, NAMED);
            self.risks.push((
                Risk::High,
                format!("`{line}` reaches {unit}, which may act on the machine: {action}"),
            ));
        }
        let when = match verb {
            // What needs a masked unit can't start any more, whether it runs now or not.
            "mask" => When::Later,
            // A package's unit may be enabled beside one that it takes turns with.
            _ if reach.delays.is_empty() => When::Now,
            _ => when,
        };
        let stopped: Vec<&str> = reach.stopped(when).map(String::as_str).collect();
        if let Some(why) = units::why_not_stopped(self.target, &stopped).await {
            let why = excerpt(&why, NAMED);
            self.risks.push((Risk::High, format!("`{line}` stops what it shouldn't: {why}")));
        }
        for unit in stopped {
            self.side_effect(&["systemctl", "stop", "--", unit].map(str::to_owned)).await?;
        }
        if effect == UnitEffect::Stop {
            let timers: Vec<&str> =
                units.iter().copied().chain(reach.stopped.iter().map(String::as_str)).collect();
            on_heap(|| self.timers_end(&timers, &shown)).await;
        }
        for unit in &reach.started {
            self.side_effect(&["systemctl", "start", "--", unit].map(str::to_owned)).await?;
        }
        on_heap(|| self.own_commands(&reach.own, &shown)).await?;
        if !is_by_files {
            return Ok(());
        }
        for unit in reach.waited_for.iter().take(MOST_NAMED) {
            if let Some(why) = units::why_not_triggered(self.target, unit).await {
                let (unit, why) = (excerpt(unit, NAMED), excerpt(&why, NAMED));
                self.risks.push((
                    Risk::High,
                    format!("`{line}` has the start of the machine wait for {unit}: {why}"),
                ));
            }
        }
        if let Some(install) = install.as_ref().filter(|_| effect == UnitEffect::Start) {
            self.delays(&shown, &reach, &install.targets).await;
            self.installs(line, &units, &reach, install).await;
        }
        self.also(line, verb, install.map(|install| install.along)).await
    }

    /// Whether people or the machine need a unit so much that stopping it asks, by the rules.
    fn is_grave_to_stop(&self, unit: &str) -> bool {
        self.policy.verdict(&["systemctl", "stop", "--", unit]).risk >= Some(Risk::High)
    }

    /// Whether stopping a unit asks, by the rules or by the profiles of services.
    fn is_missed(&self, unit: &str) -> bool {
        let args = ["stop", "--", unit].map(str::to_owned);
        let done = StepAction::Run { program: "systemctl", args: &args };
        self.is_grave_to_stop(unit)
            || raised_risks(self.knowledge, &self.facts.family, &done)
                .iter()
                .any(|(risk, _)| *risk >= Risk::High)
    }

    /// Adds a risk where what people or the machine need has to wait for units of the administrator's that start, directly or by
    /// others between. Some targets come after those that are enabled.
    async fn delays(&mut self, what: &str, reach: &Reach, wanted_by: &BTreeSet<String>) {
        let mut held = Vec::new();
        for (unit, waiting) in &reach.delays {
            let counts = |other: &str| units::is_early(other) || self.is_missed(other);
            let is_triggered = TRIGGERS.iter().any(|kind| unit.ends_with(kind));
            let targets = wanted_by.iter().filter(|target| !is_triggered && !units::is_late(target));
            let waiting: Vec<&str> = waiting.iter().chain(targets).map(String::as_str).collect();
            let found = match waiting.iter().find(|other| counts(other)) {
                Some(other) => Ok(Some((*other).to_owned())),
                None => units::first_after(self.target, &waiting, &counts).await,
            };
            let unit = excerpt(unit, NAMED);
            match found {
                Ok(None) => {}
                Ok(Some(other)) => {
                    held.push(format!("{what} has {} wait for {unit}", excerpt(&other, NAMED)));
                }
                Err(why) => {
                    let why = excerpt(&why, NAMED);
                    held.push(format!("{what} has the start of the machine wait for {unit}: {why}"));
                }
            }
        }
        held.truncate(MOST_NAMED);
        self.risks.extend(held.into_iter().map(|why| (Risk::High, why)));
    }

    /// Adds a risk where units that are enabled take another unit's name, or where a unit that people need fails with them.
    async fn installs(&mut self, line: &str, units: &[&str], reach: &Reach, install: &Install) {
        // Such a unit has these names and dependencies from the one who ships it.
        let is_trusted = units.iter().all(|unit| self.is_grave_to_stop(unit));
        let is_shipped = reach.delays.is_empty();
        let is_grave = |unit: &str| match is_shipped {
            true => !is_trusted && self.is_grave_to_stop(unit),
            false => !is_trusted && self.is_missed(unit),
        };
        let mut found = Vec::new();
        for alias in &install.aliases {
            let named = units::named(self.target, &[alias]).await;
            let is_others = named.is_none_or(|named| {
                let own = |name: &String| name != alias && units.iter().any(|unit| is_same(unit, name));
                named.is_one_there && !named.names.iter().any(own)
            });
            if is_others || is_grave(alias) {
                found.push(format!("`{line}` takes the place of {}", excerpt(alias, NAMED)));
            }
        }
        for unit in install.required_by.iter().filter(|unit| is_grave(unit)) {
            found.push(format!("`{line}` has {} fail with it", excerpt(unit, NAMED)));
        }
        self.risks.extend(found.into_iter().map(|why| (Risk::High, why)));
    }

    /// Assesses a command of systemctl for the units that it reaches as well.
    async fn also(&mut self, line: &str, verb: &str, along: Option<BTreeSet<String>>) -> Result<(), Problem> {
        let Some(along) = along else {
            let why = format!("`{line}` may change other units along, and the target doesn't say which");
            self.risks.push((Risk::High, why));
            return Ok(());
        };
        for unit in &along {
            self.side_effect(&["systemctl", verb, "--", unit].map(str::to_owned)).await?;
        }
        Ok(())
    }

    /// Assesses the effects of a unit's text on other units, where the former text did not have them.
    pub(super) async fn acts(
        &mut self,
        acts: &[UnitAction],
        before: &[UnitAction],
        what: &str,
    ) -> Result<(), Problem> {
        for verb in ["start", text::HAND_OVER, text::TRIGGER, text::DELAY, "stop", "enable", "disable"] {
            let is_new = |act: &&UnitAction| {
                act.verb == verb && !before.iter().any(|old| (old.verb, &old.unit) == (verb, &act.unit))
            };
            let units: Vec<&str> = acts.iter().filter(is_new).map(|act| act.unit.as_str()).collect();
            let named = units::named(self.target, &units).await;
            if named.is_none() {
                // A unit name that systemd ignores would hide what the others are.
                let units = excerpt(&units.join(", "), NAMED);
                let why = format!("{what} names {units}, and the target doesn't say what they are");
                self.risks.push((Risk::High, why));
            }
            let named = named.unwrap_or_else(|| units::NamedUnits::by_name_alone(&units));
            let command = match verb {
                text::HAND_OVER | text::TRIGGER => "start",
                // Who waits for a unit that never comes up is gone.
                text::DELAY => "stop",
                verb => verb,
            };
            if verb == text::DELAY || verb == text::TRIGGER {
                for unit in units.iter().take(MOST_NAMED) {
                    let why = match verb {
                        text::DELAY => units::why_not_delayed(self.target, unit).await,
                        _ => units::why_not_triggered(self.target, unit).await,
                    };
                    if let Some(why) = why {
                        let unit = excerpt(unit, NAMED);
                        self.risks.push((Risk::High, format!("{what} may keep {unit} from starting: {why}")));
                    }
                }
                if units.len() > MOST_NAMED {
                    let why = format!("{what} may keep {} units from starting", units.len());
                    self.risks.push((Risk::High, why));
                }
            }
            let reach = match (verb, command) {
                ("stop", _) => on_heap(|| unit_reach::of_stop(self.target, &units, When::Later)).await,
                (_, "start" | "enable") => {
                    on_heap(|| unit_reach::of_start(self.target, &units, When::Later)).await
                }
                _ => Some(Reach::default()),
            };
            let Some(reach) = reach else {
                let units = excerpt(&units.join(", "), NAMED);
                let why = format!("{what} names {units}, and the target doesn't say what stops with it");
                self.risks.push((Risk::High, why));
                continue;
            };
            if let Some((unit, action)) = &reach.acts {
                let unit = excerpt(unit, NAMED);
                self.risks.push((
                    Risk::High,
                    format!("{what} reaches {unit}, which may act on the machine: {action}"),
                ));
            }
            on_heap(|| self.own_commands(&reach.own, what)).await?;
            let none = BTreeSet::new();
            on_heap(|| self.delays(what, &reach, &none)).await;
            let mut stopped: Vec<&str> = reach.stopped.iter().map(String::as_str).collect();
            if verb == "stop" {
                stopped.extend(named.names.iter().map(String::as_str));
            }
            if let Some(why) = units::why_not_stopped(self.target, &stopped).await {
                self.risks
                    .push((Risk::High, format!("{what} stops what it shouldn't: {}", excerpt(&why, NAMED))));
            }
            for unit in named.names {
                self.side_effect(&["systemctl", command, "--", &unit].map(str::to_owned)).await?;
            }
            for unit in reach.stopped {
                self.side_effect(&["systemctl", "stop", "--", &unit].map(str::to_owned)).await?;
            }
            for unit in reach.started {
                self.side_effect(&["systemctl", "start", "--", &unit].map(str::to_owned)).await?;
            }
            if verb == text::HAND_OVER && named.is_one_there {
                let units = excerpt(&units.join(", "), NAMED);
                self.risks.push((Risk::High, format!("{what} changes what {units} listens on")));
            }
        }
        Ok(())
    }

    /// Adds a risk for instance names by which a template's shell may be given code as root.
    pub(super) async fn odd_instances(&mut self, argv: &[String], line: &str) {
        for unit in odd_instances(argv) {
            self.risks.push((
                Risk::High,
                format!("`{line}` gives a template the text {unit}, which it may run as code"),
            ));
        }
        for (unit, instance) in instances(argv) {
            self.instances += 1;
            if self.instances > MOST_INSTANCES {
                if self.instances == MOST_INSTANCES + 1 {
                    let why = format!("more than {MOST_INSTANCES} instances of templates would start");
                    self.risks.push((Risk::High, why));
                }
                return;
            }
            if let Some(why) = self.instance_leads(unit, instance).await {
                let unit = excerpt(unit, NAMED);
                self.risks.push((Risk::High, format!("`{line}` starts {unit}, {why}")));
            }
        }
    }

    /// The reason why the name of an instance may lead root's commands to another path.
    async fn instance_leads(&mut self, unit: &str, instance: &str) -> Option<String> {
        let (has_slash, has_dot) = (instance.contains('-'), instance.starts_with('.'));
        let Some(uses) = units::instance_uses(self.target, unit).await else {
            let is_path = has_slash || has_dot;
            return is_path.then(|| "whose template the target doesn't show".to_owned());
        };
        for place in uses {
            let leads = match place.form {
                text::InstanceForm::Plain => has_dot,
                text::InstanceForm::Unescaped => has_slash || has_dot,
                text::InstanceForm::Path => true,
            };
            let is_ordinary = match &place.account {
                Some(account) => self.privileges.root_equivalence(account).await.is_none(),
                None => false,
            };
            if leads && !is_ordinary {
                return Some("whose template uses this name as a path, with root's rights".to_owned());
            }
        }
        None
    }
}

/// Whether both are names of one unit. A service may be named without its kind.
fn is_same(given: &str, name: &str) -> bool {
    given == name || name.strip_suffix(".service") == Some(given)
}

/// The template instances in a systemctl command whose name is more than plain text. A template may put the name into a
/// line that root's shell reads.
fn odd_instances(argv: &[String]) -> Vec<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:@-".contains(&byte);
    let is_odd = |(_, instance): &(&str, &str)| instance.starts_with('-') || !instance.bytes().all(is_plain);
    instances(argv).into_iter().filter(is_odd).map(|(unit, _)| excerpt(unit, NAMED)).collect()
}

/// The template instances that a systemctl command may start, each with its name between `@` and the kind of unit.
fn instances(argv: &[String]) -> Vec<(&str, &str)> {
    let is_systemctl = argv.first().is_some_and(|program| program.rsplit('/').next() == Some("systemctl"));
    // These verbs start no instance. Every other verb may start one.
    let harmless = ["show", "status", "cat", "is-active", "is-enabled", "is-failed", "stop", "disable"];
    let verb = argv.iter().skip(1).find(|word| !word.starts_with('-'));
    if !is_systemctl || verb.is_none_or(|verb| harmless.contains(&verb.as_str())) {
        return Vec::new();
    }
    let units = argv.iter().skip(1).filter(|word| !word.starts_with('-'));
    units.filter_map(|unit| Some((unit.as_str(), instance_of(unit)?))).collect()
}

/// The name of an instance, between the `@` and the kind of unit. None for other units, and for the template itself.
fn instance_of(unit: &str) -> Option<&str> {
    let (_, instance) = unit.split_once('@')?;
    let kind = instance.rsplit_once('.').filter(|(_, kind)| units::KINDS.contains(kind));
    let instance = kind.map_or(instance, |(instance, _)| instance);
    (!instance.is_empty()).then_some(instance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_odd_that_a_shell_might_read_as_code() {
        for (line, odd) in [
            (r"systemctl start -- notify@\x3bid", 1),
            (r"systemctl enable --now a@b\x20c.service d@e.service", 1),
            ("systemctl restart a@-x.service", 1),
            ("systemctl start -- postgresql@15-main.service queue@1 nginx", 0),
            (r"systemctl stop notify@\x3bid", 0),
            (r"systemctl show notify@\x3bid", 0),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(odd_instances(&argv).len(), odd, "{line}");
        }
    }

    #[test]
    fn an_instance_is_what_lies_between_the_template_and_the_kind() {
        for (line, expected) in [
            ("systemctl start -- show@..-..-root-vault.tok.service a.service", &["..-..-root-vault.tok"][..]),
            ("systemctl enable --now show@...service x@a.b", &["..", "a.b"]),
            ("systemctl enable show@.service nginx", &[]),
            ("systemctl stop show@x-y.service", &[]),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let found: Vec<&str> = instances(&argv).into_iter().map(|(_, instance)| instance).collect();
            assert_eq!(found, expected, "{line}");
        }
    }
}
