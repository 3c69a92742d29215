//! What `findmnt --verify` says of fstab, see findmnt(8). It has no form for programs, so that its text is read.

use linux_sysadmin_sdk::{DurationCategory, Privilege, prelude::*, text};

/// Checks fstab. By the hole for its path the host may also run it for a copy beside it, by sudo too.
const VERIFY: CommandLine = CommandLine::new("findmnt --verify --tab-file=<path:/etc/fstab>");

pub(crate) fn grant() -> CommandGrant {
    VERIFY.read("what findmnt says of fstab, also of a new one before it takes the old one's place").as_root()
}

pub(crate) fn command() -> Command {
    VERIFY.with(["/etc/fstab"]).privilege(Privilege::RootIfAvailable).duration(DurationCategory::Quick)
}

/// The command that checks a new file before it takes its place.
pub(crate) fn of_staged() -> Command {
    Command::new("findmnt").args(["--verify", "--tab-file={}"]).as_root().duration(DurationCategory::Quick)
}

/// A finding of findmnt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// The mount point as findmnt prints it; `none` for swap. Empty where it isn't about an entry.
    pub(crate) target: String,
    pub(crate) is_error: bool,
    pub(crate) message: String,
}

/// Reads what findmnt printed.
pub(crate) fn said(output: &Output) -> Vec<Said> {
    let mut found: Vec<Said> = Vec::new();
    let mut target = String::new();
    for line in output.text().lines() {
        let finding = line.trim_start().strip_prefix('[').filter(|_| line.starts_with("   "));
        let finding = finding.and_then(|rest| rest.split_once("] "));
        match finding {
            Some((kind @ ("E" | "W"), message)) => found.push(Said {
                target: target.clone(),
                is_error: kind == "E",
                message: text::of_line(message),
            }),
            Some(_) => {}
            // A long message goes on in the next line.
            None if line.starts_with("       ") => {
                if let Some(last) = found.last_mut() {
                    last.message = format!("{} {}", last.message, text::of_line(line));
                }
            }
            None => line.clone_into(&mut target),
        }
    }
    for said in found.iter_mut().filter(|said| said.message.contains("fstab has been modified")) {
        said.target = String::new();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;

    #[test]
    fn each_finding_has_its_target_and_severity() {
        // util-linux 2.38.1; the finding about systemd is as findmnt-verify.c of that version prints it.
        let text = "\n1 parse error, 1 error, 2 warnings\nnone\n   [W] your fstab has been modified, but systemd still uses the old version;\n       use 'systemctl daemon-reload' to reload\n\
            /mnt/a b\n   [E] ext4 does not match with on-disk xfs\n   [ ] target exists\n   [W] target specified more than once\n";
        let found = said(&output(1, text, "findmnt: fstab: parse error at line 9 -- ignored\n"));
        let shown: Vec<_> =
            found.iter().map(|said| (said.target.as_str(), said.is_error, said.message.as_str())).collect();
        assert_eq!(
            shown,
            [
                (
                    "",
                    false,
                    "your fstab has been modified, but systemd still uses the old version; use 'systemctl daemon-reload' to reload"
                ),
                ("/mnt/a b", true, "ext4 does not match with on-disk xfs"),
                ("/mnt/a b", false, "target specified more than once"),
            ]
        );
        assert_eq!(said(&output(0, "Success, no errors or warnings detected\n", "")), []);
    }
}
