//! The outputs of the commands by which a module looked in this call. A preview compares a program's new input with
//! what the host itself has seen, and not with what the plan says was there.

use std::sync::{Arc, Mutex, PoisonError};

use host_base::{Command, Output, Privilege};

/// The number of bytes of the largest output that is kept.
const LONGEST_OUTPUT: usize = 256 << 10;
/// The number of outputs that are kept.
const MOST_OUTPUTS: usize = 16;

/// The outputs of one call.
#[derive(Default)]
pub struct ObservedOutputs(Mutex<Vec<ObservedOutput>>);

struct ObservedOutput {
    command: Command,
    stdout: Arc<[u8]>,
}

impl ObservedOutputs {
    /// Keeps the command's output, where the command succeeded and its output is small enough to be compared.
    pub fn note(&self, command: &Command, output: &Output) {
        if output.exit_code != 0 || output.truncated || output.stdout.len() > LONGEST_OUTPUT {
            return;
        }
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() < MOST_OUTPUTS {
            let command = Command { output_buffer: None, ..command.clone() };
            said.push(ObservedOutput { command, stdout: output.stdout.as_slice().into() });
        }
    }

    /// The output that shows what the command would replace, and the command that printed it. It is the latest output
    /// of the same program with the same rights and arguments, apart from `-` and one option: `crontab -u ada -l` shows
    /// what `crontab -u ada -` replaces. Other commands may be about something else.
    pub fn before(&self, command: &Command) -> Option<(Command, Arc<[u8]>)> {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_about = |said: &&ObservedOutput| {
            let said = &said.command;
            let named: Vec<&String> = command.args.iter().filter(|arg| *arg != "-").collect();
            // A command that ran without root's rights, because there were none, is kept as the caller's.
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
    use super::super::plan::tests::command;
    use super::*;

    fn output(stdout: &[u8], exit_code: i32, truncated: bool) -> Output {
        Output {
            exit_code,
            stdout: stdout.to_vec(),
            stdout_bytes: stdout.len() as u64,
            truncated,
            ..Output::default()
        }
    }

    #[test]
    fn only_what_the_same_program_said_of_the_same_counts() {
        let looked = ObservedOutputs::default();
        looked.note(&command(&["crontab", "-u", "ada", "-l"]), &output(b"ada's", 0, false));
        looked.note(&command(&["crontab", "-u", "bob", "-l"]), &output(b"no crontab", 1, false));
        looked.note(&command(&["crontab", "-u", "eve", "-l"]), &output(b"half", 0, true));
        looked.note(&command(&["cat", "-u", "root"]), &output(b"another program", 0, false));
        for (argv, before) in [
            (&["crontab", "-u", "ada", "-"] as &[&str], Some(&b"ada's"[..])),
            (&["crontab", "-u", "bob", "-"], None),
            (&["crontab", "-u", "eve", "-"], None),
            (&["crontab", "-u", "root", "-"], None),
            // Nobody has looked at the caller's own crontab.
            (&["crontab", "-"], None),
            (&["nft", "-f", "-"], None),
        ] {
            assert_eq!(looked.before(&command(argv)).map(|(_, said)| said).as_deref(), before, "{argv:?}");
        }
        let of_root = Command { privilege: Privilege::Root, ..command(&["crontab", "-u", "ada", "-"]) };
        assert!(looked.before(&of_root).is_none(), "with other rights it may be another one");
    }
}
