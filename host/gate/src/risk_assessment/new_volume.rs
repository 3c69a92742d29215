//! The logical volume that a step makes. A file system on it destroys nothing, since lvcreate(8) refuses a name that is taken.
//! That is certain for the very next step only: any other step may give the name to another volume.

use super::RiskAssessment;
use crate::allowed::AllowedCommand;
use crate::prepare::PreparedAction;

/// The programs that make a file system on the device that they name.
const MAKERS: [&str; 3] = ["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"];
/// The options of lvcreate with which a volume is a plain new one, besides its size and its name. With others, it may be made
/// of a volume that is there.
const PLAIN: [&str; 4] = ["--yes", "--zero=y", "--wipesignatures=y", "--wipesignatures=n"];

impl RiskAssessment<'_> {
    /// Notes the volume that a step makes, once everything else about the step is assessed.
    pub async fn ends_step(&mut self, action: &PreparedAction) {
        self.new_volume = match action {
            PreparedAction::Run(command) => made_by(command),
            _ => None,
        };
        if let Some(path) = &self.new_volume
            && !self.privileges.is_absent(path).await
        {
            self.new_volume = None;
        }
    }
}

/// The device that a command makes a file system on.
pub(super) fn formatted_by(command: &AllowedCommand) -> Option<&str> {
    let (program, args) = words(command)?;
    let [options @ .., "--", device] = &args[..] else { return None };
    let is_plain = MAKERS.contains(&program) && options.iter().all(|option| *option == "-q");
    is_plain.then_some(*device)
}

/// The device of the volume that a command makes.
fn made_by(command: &AllowedCommand) -> Option<String> {
    let ("lvcreate", args) = words(command)? else { return None };
    let [options @ .., "--", group] = &args[..] else { return None };
    let mut name = None;
    for option in options {
        match option.split_once('=') {
            Some(("--name", given)) if name.is_none() => name = Some(given),
            Some(("--extents" | "--size", _)) => {}
            _ if PLAIN.contains(option) => {}
            _ => return None,
        }
    }
    let name = name?;
    (is_name(group) && is_name(name)).then(|| format!("/dev/{group}/{name}"))
}

/// The program and the arguments of a command that neither its variables nor other commands can make another one.
fn words(command: &AllowedCommand) -> Option<(&str, Vec<&str>)> {
    let alone = command.piped.is_empty() && command.command.env.is_empty() && command.command.stdin.is_none();
    alone.then(|| {
        let args = command.command.args.iter().map(String::as_str).collect();
        (command.command.program.as_str(), args)
    })
}

/// Whether it is a name of a group or a volume, lvm(8).
fn is_name(text: &str) -> bool {
    let is_of_name = |character: char| character.is_ascii_alphanumeric() || "+_.-".contains(character);
    !text.is_empty() && !text.starts_with(['-', '.']) && text.chars().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_base::{Command, Risk};
    use host_knowledge::LazyKnowledge;
    use host_policy::Policy;
    use host_target::{Facts, Overrides, Target};
    use std::time::Duration;

    fn command(line: &str) -> AllowedCommand {
        let mut words = line.split(' ');
        let command = Command::new(words.next().unwrap(), words, Duration::from_secs(1));
        AllowedCommand {
            shown: command.clone(),
            command,
            prefix: String::new(),
            free_form: false,
            is_any_program: false,
            piped: Vec::new(),
            paths: Vec::new(),
            leads: Vec::new(),
            found: Vec::new(),
        }
    }

    const MAKE: &str = "lvcreate --zero=y --wipesignatures=y --extents=100 --name=lsa-none -- lsa-nowhere";
    const FORMAT: &str = "mkfs.ext4 -q -- /dev/lsa-nowhere/lsa-none";

    /// The risk that the built-in rules find in the last of these steps.
    async fn risk_of_last(steps: &[&str]) -> Option<Risk> {
        let (target, facts) = (Target::local(Overrides::default()), Facts::default());
        let lazy = LazyKnowledge::default();
        let mut assessment = RiskAssessment::new(Policy::builtin(), lazy.get(), &target, &facts);
        for line in steps {
            assessment.risks.clear();
            let action = PreparedAction::Run(command(line));
            let PreparedAction::Run(command) = &action else { unreachable!() };
            assessment.command(command, None).await.unwrap();
            assessment.ends_step(&action).await;
        }
        assessment.risks.iter().map(|(risk, _)| *risk).max()
    }

    #[tokio::test]
    async fn a_file_system_is_high_on_the_volume_that_the_step_before_makes() {
        for program in MAKERS {
            let format = FORMAT.replace("mkfs.ext4", program);
            assert_eq!(risk_of_last(&[MAKE, &format]).await, Some(Risk::High), "{program}");
            assert_eq!(risk_of_last(&[&format]).await, Some(Risk::Critical), "{program}");
        }
    }

    #[tokio::test]
    async fn a_file_system_is_critical_on_every_other_device() {
        for (from, to) in [
            ("--zero=y", "--snapshot"),
            ("--zero=y", "--test"),
            ("--zero=y", "--type=thin"),
            ("--zero=y", "--name=lsa-other"),
            ("--name=lsa-none", "--name=lsa-other"),
            ("--name=lsa-none", "--name=.."),
            ("-- lsa-nowhere", "-- lsa-elsewhere"),
            ("-- lsa-nowhere", "-- lsa-nowhere/pool"),
            ("-- lsa-nowhere", "lsa-nowhere"),
            ("lvcreate", "lvextend"),
        ] {
            let make = MAKE.replacen(from, to, 1);
            assert_eq!(risk_of_last(&[&make, FORMAT]).await, Some(Risk::Critical), "{make}");
        }
        for format in [
            "mkfs.ext4 -q -- /dev/lsa-nowhere/data",
            "mkfs.ext4 -F -- /dev/lsa-nowhere/lsa-none",
            "mkfs.ext4 -q /dev/lsa-nowhere/lsa-none",
            "mkfs.xfs -q -- /dev/sdb /dev/lsa-nowhere/lsa-none",
            "mkswap -- /dev/lsa-nowhere/lsa-none",
        ] {
            assert_eq!(risk_of_last(&[MAKE, format]).await, Some(Risk::Critical), "{format}");
        }
        let between = "lvrename lsa-nowhere data lsa-none";
        assert_eq!(risk_of_last(&[MAKE, between, FORMAT]).await, Some(Risk::Critical));
        // A device that is there already is no new volume.
        let make = "lvcreate --extents=1 --name=ptmx -- pts";
        assert_eq!(risk_of_last(&[make, "mkfs.ext4 -q -- /dev/pts/ptmx"]).await, Some(Risk::Critical));
    }
}
