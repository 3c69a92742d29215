//! `linux-sysadmin audit`: verifies, shows and exports the audit log, and recovers changes. Exit codes: 0 done, 1 the log was
//! altered, has no such record, or not everything could be restored, 2 wrong usage, or the log can't be read.

mod changes;
mod filter;
mod format;
mod recover;
mod show;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};

use super::screen::Screen;
use super::text::wrap;
use filter::Filter;
use host_audit::{JournalHeads, VerifyError};
use host_text::visible::{one_line, visible};

#[derive(Args)]
pub(super) struct Audit {
    /// Directory of the log [default: ~/.local/state/linux-sysadmin, or what XDG_STATE_HOME says]
    #[arg(long, global = true, value_name = "DIR")]
    directory: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Hold every record against the chain, and the chain against what another log knows of it
    Verify(Verify),
    /// List the changes, one in a line; with an ID everything that is on record of one
    Show(show::Show),
    /// Write records out as they are, a JSON object a line
    Export(Export),
    /// Put back what a server that was killed left half-done; without an ID list it
    Recover(recover::Recover),
}

#[derive(Args)]
struct Verify {
    /// The output of `journalctl -t linux-sysadmin -o cat`, with `_UID=N` for one account's; `-` for stdin
    #[arg(long, value_name = "FILE")]
    heads: Option<PathBuf>,
}

#[derive(Args)]
struct Export {
    #[command(flatten)]
    filter: Filter,
    /// A file that isn't there yet, in place of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Audit {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let directory = self
            .directory
            .or_else(host_audit::directory)
            .context("neither XDG_STATE_HOME nor HOME says where the log is; --directory does")?;
        let (mut out, mut err) = (BufWriter::new(io::stdout().lock()), io::stderr().lock());
        let done = match self.command {
            Command::Verify(command) => command.run(&directory, &mut out, &mut err),
            Command::Show(command) => {
                command.run(&directory, Screen::of_stdout().with_usual_width(), &mut out, &mut err)
            }
            Command::Export(command) => command.run(&directory, &mut out, &mut err),
            Command::Recover(command) => command.run(&directory, &mut out, &mut err).await,
        };
        let done = done.and_then(|all_right| out.flush().map(|()| all_right).map_err(Into::into));
        match done {
            Ok(true) => Ok(ExitCode::SUCCESS),
            Ok(false) => Ok(ExitCode::FAILURE),
            // The reader has closed the pipe, as `head` does.
            Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(error),
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

impl Verify {
    fn run(&self, directory: &Path, out: &mut impl Write, err: &mut impl Write) -> anyhow::Result<bool> {
        let heads = match &self.heads {
            None => JournalHeads::default(),
            Some(path) if path.as_os_str() == "-" => JournalHeads::read(io::stdin().lock())?,
            Some(path) => {
                let file = File::open(path).with_context(|| path.display().to_string())?;
                JournalHeads::read(BufReader::new(file))?
            }
        };
        let shown = directory.display().to_string();
        let shown = visible(&shown);
        match host_audit::verify(directory, &heads) {
            Ok(verified) => {
                match verified.records {
                    0 => writeln!(out, "there is no record in {shown}")?,
                    1 => writeln!(out, "1 record, seq {}, valid", verified.first)?,
                    records => {
                        writeln!(
                            out,
                            "{records} records, seq {} to {}, valid",
                            verified.first, verified.last
                        )?;
                    }
                }
                for note in verified.notes {
                    writeln!(out, "{}", wrap(&note.to_string(), "  ", "    "))?;
                }
                let is_alone = self.heads.is_some() && heads.is_empty() && verified.records > 0;
                if is_alone {
                    let note = "error: the other log names no record, so that the log was compared with nothing else: the \
                                command that shows it may name another program or account, or all of its heads are gone";
                    writeln!(err, "{}", wrap(note, "", "  "))?;
                }
                Ok(!is_alone)
            }
            Err(VerifyError::Damage(broken)) => {
                // A damaged line may hold anything.
                let text = format!("error: the audit log in {shown} is not what was written: {broken}");
                writeln!(err, "{}", wrap(&one_line(&text), "", "  "))?;
                Ok(false)
            }
            Err(VerifyError::Audit(error)) => Err(error.into()),
        }
    }
}

impl Export {
    fn run(&self, directory: &Path, out: &mut impl Write, err: &mut impl Write) -> anyhow::Result<bool> {
        match &self.output {
            None => self.write(directory, out, err),
            Some(path) => {
                let file = File::options().write(true).create_new(true).mode(0o600).open(path);
                let mut file = BufWriter::new(file.with_context(|| path.display().to_string())?);
                let all_right = self.write(directory, &mut file, err)?;
                file.into_inner()
                    .map_err(io::IntoInnerError::into_error)
                    .and_then(|file| file.sync_all())
                    .with_context(|| path.display().to_string())?;
                Ok(all_right)
            }
        }
    }

    fn write(&self, directory: &Path, out: &mut impl Write, err: &mut impl Write) -> anyhow::Result<bool> {
        self.filter.each(directory, err, |record| writeln!(out, "{}", record.line))
    }
}

#[cfg(test)]
mod tests;
