//! The risks of the commands that units of the administrator's own run when they start, stop or reload. Whoever starts such a
//! unit has root run what stands in its file. The units of packages do what their services are known for.

use std::collections::{BTreeMap, BTreeSet};

use host_base::Risk;
use host_base::problem::Problem;
use host_policy::Level;
use host_policy::text::{self, Code, CommandLine};
use host_text::redact::excerpt;

use super::{NAMED, RiskAssessment};
use crate::unit_reach::{OwnUnits, UnitEffect, UnitEvent};
use crate::units;

impl RiskAssessment<'_> {
    /// Assesses the commands that these units run, because of `what`. Only what is certain counts, since the units are there
    /// already and may hold any program. The commands of ordinary accounts are those accounts' affair.
    pub(super) async fn own_commands(&mut self, own: &OwnUnits, what: &str) -> Result<(), Problem> {
        let units: BTreeSet<&str> = own.iter().map(|(unit, _)| unit.as_str()).collect();
        let units: Vec<&str> = units.into_iter().collect();
        let texts: BTreeMap<&str, Option<Vec<u8>>> =
            units.iter().copied().zip(units::texts(self.target, &units).await).collect();
        for (unit, event) in own {
            let text = texts.get(unit.as_str()).and_then(Option::as_deref);
            let Some(code) = text.and_then(|text| code_of(unit, text)) else {
                let unit = excerpt(unit, NAMED);
                let why = format!("{what} has {unit} run commands, and the target doesn't show which");
                self.risks.push((Risk::High, why));
                continue;
            };
            // A dynamic user of the unit is its own, and that of its template's other instances.
            let assessed = self.privileges.unit.replace(file_of(unit));
            let mut lines = Vec::new();
            for line in code.lines {
                if self.is_roots(&line).await {
                    lines.push(line);
                }
            }
            self.privileges.unit = assessed;
            for line in lines {
                self.own_command(&line, unit, *event, what).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn is_roots(&mut self, line: &CommandLine) -> bool {
        match &line.user {
            None => true,
            Some(account) => self.privileges.root_equivalence(account).await.is_some(),
        }
    }

    async fn own_command(
        &mut self,
        line: &CommandLine,
        unit: &str,
        event: UnitEvent,
        what: &str,
    ) -> Result<(), Problem> {
        let shown = excerpt(&line.shell.clone().unwrap_or_else(|| line.argv.join(" ")), NAMED);
        let shown = format!("{what} has {} run `{shown}`, which", excerpt(unit, NAMED));
        let commands = text::named_commands(&line.argv);
        if event.runs(&line.at) {
            let verdict = self.policy.certain_verdict(&line.argv, line.directory.as_deref());
            if verdict.risk >= Some(Risk::High) || verdict.level == Level::Block {
                self.apply_verdict(&verdict, &shown)?;
            }
            for argv in &commands {
                if UnitEffect::of_command(argv).is_some() && !self.side_effects.contains(argv) {
                    self.side_effect(argv).await?;
                    // Further units may be reached from there.
                    self.reaches(argv, &excerpt(&argv.join(" "), NAMED)).await?;
                }
            }
        }
        // A unit counts as the service whose program it runs, whatever its name, such as a second sshd.
        let verb = match event {
            UnitEvent::Stops => "stop",
            UnitEvent::Restarts => "restart",
            UnitEvent::Starts | UnitEvent::Reloads => return Ok(()),
        };
        let programs = commands.iter().filter(|_| line.at.starts_with("ExecStart,"));
        for service in programs.filter_map(|argv| service_of(argv.first()?)) {
            let verdict = self.policy.verdict(&["systemctl", verb, "--", &service]);
            if verdict.risk >= Some(Risk::High) {
                self.apply_verdict(
                    &verdict,
                    &format!("{shown} is the program of {service}, and `systemctl {verb} -- {service}`"),
                )?;
            }
        }
        Ok(())
    }
}

/// The name of a unit's file, which is the template's for an instance.
pub(super) fn file_of(unit: &str) -> String {
    let template = unit.split_once('@').zip(unit.rsplit_once('.'));
    template.map_or_else(|| unit.to_owned(), |((prefix, _), (_, kind))| format!("{prefix}@.{kind}"))
}

/// The code in the text of a unit with its drop-ins. None where it can't be read.
pub(super) fn code_of(unit: &str, text: &[u8]) -> Option<Code> {
    // The reader takes the unit's name from the path, and an instance's file has its template's name.
    let code = text::code_in_unit(&format!("/etc/systemd/system/{unit}"), text, &[])?;
    // systemd leaves out a single line that can't be read.
    (code.unreadable.is_none() || !code.lines.is_empty()).then_some(code)
}

/// The name of the service whose program this is.
fn service_of(program: &str) -> Option<String> {
    match program.rsplit('/').next()? {
        // This is the client, and not the service of this name.
        "" | "ssh" => None,
        "agetty" | "getty" | "mgetty" | "login" => Some("getty@tty1.service".to_owned()),
        name => Some(format!("{name}.service")),
    }
}
