//! What commands said when a module looked by them in this call: what a program would be given to read is compared with
//! what the host has seen for itself, and not with what a plan says was there.

use std::sync::{Arc, Mutex, PoisonError};

use host_base::{Command, Output, Privilege};

/// Bytes of one output that are kept.
const LONGEST: usize = 256 << 10;
/// Outputs that are kept.
const MOST: usize = 16;

/// Outputs of one call.
#[derive(Default)]
pub struct Looked(Mutex<Vec<Said>>);

struct Said {
    command: Command,
    stdout: Arc<[u8]>,
}

impl Looked {
    /// Keeps what the command said, where it succeeded and said no more than a plan would compare.
    pub fn note(&self, command: &Command, output: &Output) {
        if output.exit_code != 0 || output.truncated || output.stdout.len() > LONGEST {
            return;
        }
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() < MOST {
            let command = Command { heard: None, ..command.clone() };
            said.push(Said { command, stdout: output.stdout.as_slice().into() });
        }
    }

    /// What the command would replace, and by what that was seen: the latest that the same program said with the same rights, given what this one is
    /// given but for `-` and one option, as `crontab -u ada -l` is beside `crontab -u ada -`. Anything else is about
    /// something else.
    pub fn before(&self, command: &Command) -> Option<(Command, Arc<[u8]>)> {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_about = |said: &&Said| {
            let said = &said.command;
            let named: Vec<&String> = command.args.iter().filter(|arg| *arg != "-").collect();
            // What ran without root's rights because there were none is noted as the caller's.
            let rights = match &said.privilege {
                Privilege::RootIfAvailable => &Privilege::Root,
                rights => rights,
            };
            let is_option = |arg: &&String| arg.starts_with('-') && !named.contains(arg);
            said.program == command.program
                && *rights == command.privilege
                && named.iter().all(|arg| said.args.contains(arg))
                && said.args.len() <= named.len() + 1
                && said.args.iter().filter(|arg| !named.contains(arg)).all(|arg| is_option(&arg))
        };
        said.iter().rev().find(is_about).map(|said| (said.command.clone(), said.stdout.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::plan::tests::command;
    use super::*;

    fn output(stdout: &[u8], exit_code: i32, truncated: bool) -> Output {
        Output {
            exit_code,
            stdout: stdout.to_vec(),
            stderr: Vec::new(),
            stdout_bytes: stdout.len() as u64,
            stdout_lines: 1,
            truncated,
            duration: Duration::ZERO,
        }
    }

    #[test]
    fn only_what_the_same_program_said_of_the_same_counts() {
        let looked = Looked::default();
        looked.note(&command(&["crontab", "-u", "ada", "-l"]), &output(b"ada's", 0, false));
        looked.note(&command(&["crontab", "-u", "bob", "-l"]), &output(b"no crontab", 1, false));
        looked.note(&command(&["crontab", "-u", "eve", "-l"]), &output(b"half", 0, true));
        looked.note(&command(&["cat", "-u", "root"]), &output(b"another program", 0, false));
        for (argv, before) in [
            (&["crontab", "-u", "ada", "-"] as &[&str], Some(&b"ada's"[..])),
            (&["crontab", "-u", "bob", "-"], None),
            (&["crontab", "-u", "eve", "-"], None),
            (&["crontab", "-u", "root", "-"], None),
            // The caller's own, which nobody has looked at.
            (&["crontab", "-"], None),
            (&["nft", "-f", "-"], None),
        ] {
            assert_eq!(looked.before(&command(argv)).map(|(_, said)| said).as_deref(), before, "{argv:?}");
        }
        let of_root = Command { privilege: Privilege::Root, ..command(&["crontab", "-u", "ada", "-"]) };
        assert!(looked.before(&of_root).is_none(), "with other rights it may be another one");
    }
}
