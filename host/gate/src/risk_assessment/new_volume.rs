//! The logical volume or the file that a step makes. A file system or a swap area on it destroys nothing, since lvcreate(8)
//! refuses a name that is taken, and nothing was at the path of the file. That is certain for the very next step only: any
//! other step may give the name to something else. Steps that only prepare the file itself may stand between.

use super::RiskAssessment;
use crate::allowed::AllowedCommand;

/// The programs that make a file system on the device that they name.
const MAKERS: [&str; 3] = ["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"];
/// The options of lvcreate with which a volume is a plain new one, besides its size and its name. With others, it may be made
/// of a volume that is there.
const PLAIN: [&str; 4] = ["--yes", "--zero=y", "--wipesignatures=y", "--wipesignatures=n"];

impl RiskAssessment<'_> {
    /// Notes the volume or file that a step makes, once everything else about the step is assessed.
    pub async fn ends_step(&mut self, command: Option<&AllowedCommand>) {
        let prepared = command.and_then(prepared_by);
        if prepared.is_some() && prepared == self.new_volume.as_deref() {
            return;
        }
        self.new_volume = command.and_then(made_by);
        if let Some(path) = &self.new_volume
            && !self.privileges.is_absent(path).await
        {
            self.new_volume = None;
        }
    }
}

/// The device that a command makes a file system on, or the file that it makes a swap area in.
pub(super) fn formatted_by(command: &AllowedCommand) -> Option<&str> {
    let (program, args) = words(command)?;
    let [options @ .., "--", path] = &args[..] else { return None };
    let is_plain = match program {
        "mkswap" => options.is_empty() && is_file(path),
        program => MAKERS.contains(&program) && options.iter().all(|option| *option == "-q"),
    };
    is_plain.then_some(*path)
}

/// The file to which a command gives room or attributes. What is in the file stays.
fn prepared_by(command: &AllowedCommand) -> Option<&str> {
    let (program, args) = words(command)?;
    match (program, &args[..]) {
        ("fallocate", ["--length", _, "--", path])
        | ("chattr", ["+C", "--", path])
        | ("chcon", ["--type=swapfile_t", "--", path]) => Some(*path),
        _ => None,
    }
}

/// The device of the volume that a command makes, or the path of the empty file.
fn made_by(command: &AllowedCommand) -> Option<String> {
    let (program, args) = words(command)?;
    match (program, &args[..]) {
        ("lvcreate", [options @ .., "--", group]) => volume(options, group),
        ("install", ["--mode=0600", "--no-target-directory", "--", "/dev/null", path]) if is_file(path) => {
            Some((*path).to_owned())
        }
        _ => None,
    }
}

/// The device of the volume that lvcreate makes with these options in a group.
fn volume(options: &[&str], group: &str) -> Option<String> {
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

/// Whether a path is no device's.
fn is_file(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("/dev/")
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
            let command = &command(line);
            assessment.command(command, None).await.unwrap();
            assessment.ends_step(Some(command)).await;
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

    const FILE: &str = "/var/lib/lsa-nowhere/linux-sysadmin-swap/0123456789abcdef";

    /// The steps that make a file, prepare it, and make a swap area in it.
    fn swap_file() -> [String; 5] {
        [
            "install --mode=0600 --no-target-directory -- /dev/null",
            "chattr +C --",
            "chcon --type=swapfile_t --",
            "fallocate --length 67108864 --",
            "mkswap --",
        ]
        .map(|line| format!("{line} {FILE}"))
    }

    #[tokio::test]
    async fn a_swap_area_is_high_in_the_file_that_the_plan_itself_makes() {
        let steps = swap_file();
        let [install, no_cow, label, allocate, format] = steps.each_ref().map(String::as_str);
        let none: [&str; 0] = [];
        for between in [&none[..], &[allocate], &[no_cow, allocate], &[label, allocate]] {
            let all = [&[install][..], between, &[format]].concat();
            assert_eq!(risk_of_last(&all).await, Some(Risk::High), "{all:?}");
        }
        assert_eq!(risk_of_last(&[allocate, format]).await, Some(Risk::Critical), "the file may be there");
        let other = allocate.replace(FILE, "/srv/x");
        let linked = format!("ln --symbolic --force /dev/sda {FILE}");
        for between in [other.as_str(), linked.as_str(), "mkdir -- /srv/lsa-nowhere"] {
            assert_eq!(risk_of_last(&[install, between, format]).await, Some(Risk::Critical), "{between}");
        }
    }

    #[tokio::test]
    async fn a_swap_area_is_critical_in_every_other_file() {
        let [install, _, _, _, format] = swap_file();
        for (from, to) in [
            // What is there already, or is a device.
            (FILE, "/etc/passwd"),
            (FILE, "/dev/lsa-none"),
            ("/dev/null", "/srv/data"),
            ("--mode=0600 ", ""),
            ("--no-target-directory ", ""),
            ("install", "cp"),
        ] {
            let steps = [install.replace(from, to), format.replace(from, to)];
            let steps = steps.each_ref().map(String::as_str);
            assert_eq!(risk_of_last(&steps).await, Some(Risk::Critical), "{steps:?}");
        }
        for (from, to) in
            [(FILE, "/var/lib/lsa-nowhere/other"), ("mkswap --", "mkswap --force --"), (" --", "")]
        {
            let format = format.replace(from, to);
            assert_eq!(
                risk_of_last(&[install.as_str(), format.as_str()]).await,
                Some(Risk::Critical),
                "{format}"
            );
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
