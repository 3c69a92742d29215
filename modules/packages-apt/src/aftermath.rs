//! The remaining work after a change: a reboot, or restarts of services that still run replaced files.

use linux_sysadmin_sdk::{DurationCategory, packages::Aftermath, prelude::*};

/// Runs needrestart(1) in batch mode, which restarts nothing.
pub(crate) const NEEDRESTART: CommandLine = CommandLine::new("needrestart -b");

const REQUIRED: &str = "/run/reboot-required";
const BY: &str = "/run/reboot-required.pkgs";

pub(crate) fn look(cx: &Context) -> Aftermath {
    let mut found = Aftermath::default();
    let [required, by] = [REQUIRED, BY].map(|path| cx.read(path));
    let mut by: Vec<String> = by.unwrap_or_default().lines().map(str::to_owned).collect();
    by.sort();
    by.dedup();
    if required.is_ok() && by.is_empty() {
        by.push("*".to_owned());
    }
    found.reboot_required_by = by;
    let command = NEEDRESTART.command().privilege(linux_sysadmin_sdk::Privilege::RootIfAvailable);
    match cx.run(command.duration(DurationCategory::Normal)) {
        Ok(said) => read(&said.text(), &mut found),
        // Most machines don't have it.
        Err(problem) if problem.code == "PROGRAM_NOT_FOUND" => {}
        Err(problem) => {
            found.notes.push(format!("which services need a restart is not known: {}", problem.message));
        }
    }
    found
}

/// Reads lines of `needrestart -b`, as its README.batch.md describes them: `NEEDRESTART-SVC: ssh.service`, and
/// `NEEDRESTART-KSTA: 3` where a newer kernel is installed than the running one.
fn read(text: &str, found: &mut Aftermath) {
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("NEEDRESTART-SVC", unit)) => found.services_to_restart.push(unit.trim().to_owned()),
            Some(("NEEDRESTART-KSTA", "2" | "3")) => found.reboot_required_by.push("kernel".to_owned()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn a_reboot_and_services_are_told_and_a_machine_without_needrestart_says_nothing() {
        // needrestart 3.6.
        let said = "NEEDRESTART-VER: 3.6\nNEEDRESTART-KCUR: 6.1.0-18-amd64\nNEEDRESTART-KEXP: 6.1.0-21-amd64\n\
            NEEDRESTART-KSTA: 3\nNEEDRESTART-SVC: ssh.service\nNEEDRESTART-SVC: cron.service\n";
        let target = FakeTarget::new()
            .file(REQUIRED, "*** System restart required ***\n")
            .file(BY, "linux-image-6.1.0-21-amd64\nlibc6\nlibc6\n");
        let found = look(&target.clone().answer(&["needrestart", "-b"], 0, said, "").context());
        assert_eq!(found.reboot_required_by, ["libc6", "linux-image-6.1.0-21-amd64", "kernel"]);
        assert_eq!(found.services_to_restart, ["ssh.service", "cron.service"]);
        let quiet = FakeTarget::new().answer(&["needrestart", "-b"], 0, "NEEDRESTART-VER: 3.6\n", "");
        assert_eq!(look(&quiet.context()), Aftermath::default());
        let unnamed = FakeTarget::new().file(REQUIRED, "").answer(&["needrestart", "-b"], 0, "", "");
        assert_eq!(look(&unnamed.context()).reboot_required_by, ["*"]);
    }
}
