//! Names the functions of a program that run. A breakpoint at the beginning of each one stops the program there, once.

use super::list::Functions;
use anyhow::{Context, Result, bail, ensure};
use nix::errno::Errno;
use nix::sys::ptrace::{self, Event, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

/// The instruction of a breakpoint.
const BREAKPOINT: u8 = 0xcc;

/// Runs a program with the input and output of this one, and appends the symbol of each function to a list when it first runs.
pub(crate) fn trace(list: &Path, program: &Path, args: &[OsString]) -> Result<()> {
    ensure!(cfg!(target_arch = "x86_64"), "functions are only traced on x86_64");
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let functions = Functions::read(&bytes).with_context(|| program.display().to_string())?;
    ensure!(!functions.0.is_empty(), "{} has no symbols", program.display());
    let mut list = OpenOptions::new()
        .create(true)
        .append(true)
        .open(list)
        .with_context(|| format!("cannot write {}", list.display()))?;
    // The shell waits until it is traced, and becomes the program.
    let mut command = Command::new("sh");
    command.args(["-c", "kill -STOP $$; exec \"$@\"", "sh"]).arg(program).args(args);
    let child = command.spawn().context("cannot start a shell")?;
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    waitpid(pid, Some(WaitPidFlag::WUNTRACED))?;
    let followed = Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_TRACEFORK | Options::PTRACE_O_TRACEVFORK;
    ptrace::seize(pid, followed | Options::PTRACE_O_TRACEEXEC | Options::PTRACE_O_EXITKILL)?;
    kill(pid, Signal::SIGCONT)?;
    let mut breakpoints = None;
    loop {
        // Other threads wait for children of their own.
        match waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD))? {
            WaitStatus::Exited(ended, _) | WaitStatus::Signaled(ended, ..) if ended == pid => return Ok(()),
            WaitStatus::PtraceEvent(at, _, event) if event == Event::PTRACE_EVENT_EXEC as i32 => {
                if at == pid && breakpoints.is_none() {
                    breakpoints = Some(Breakpoints::set(pid, program, &functions)?);
                    unless_gone(ptrace::cont(at, None))?;
                } else {
                    // A command of the program's is another program.
                    unless_gone(ptrace::detach(at, None))?;
                }
            }
            WaitStatus::PtraceEvent(at, ..) => unless_gone(ptrace::cont(at, None))?,
            WaitStatus::Stopped(at, Signal::SIGTRAP) => {
                if let Some(breakpoints) = &mut breakpoints {
                    breakpoints.met(at, &mut list)?;
                }
                unless_gone(ptrace::cont(at, None))?;
            }
            WaitStatus::Stopped(at, signal) => unless_gone(ptrace::cont(at, signal))?,
            _ => {}
        }
    }
}

/// A thread may be killed at any time, and then it can't be told to go on.
fn unless_gone(done: nix::Result<()>) -> nix::Result<()> {
    match done {
        Err(Errno::ESRCH) => Ok(()),
        done => done,
    }
}

/// The breakpoints of a process: at each address the byte that was there, and the symbols.
struct Breakpoints<'a>(HashMap<u64, Place<'a>>);

struct Place<'a> {
    byte: u8,
    symbols: Vec<&'a str>,
    has_run: bool,
}

impl<'a> Breakpoints<'a> {
    /// Sets one at the beginning of each function of a program that was just loaded.
    fn set(pid: Pid, program: &Path, functions: &Functions<'a>) -> Result<Self> {
        let program = program.canonicalize()?;
        let program = program.to_str().context("the path of the program is no text")?;
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let mut own = maps.lines().filter(|line| line.ends_with(program)).map(Mapping::parse);
        // The program is independent of its position, and its first part is that of address 0.
        let first = own.next().context("the program isn't mapped")??;
        let executable = own.find(|mapping| mapping.as_ref().map_or(true, |mapping| mapping.is_executable));
        let executable = executable.context("no part of the program is executable")??;
        let memory = memory(pid)?;
        let mut code = vec![0; usize::try_from(executable.end - executable.start)?];
        memory.read_exact_at(&mut code, executable.start)?;
        let mut places = HashMap::new();
        for function in &functions.0 {
            let address = first.start + function.address;
            let byte = address.checked_sub(executable.start).and_then(|at| code.get_mut(at as usize));
            let Some(byte) = byte else { continue };
            let place = places.entry(address).or_insert_with(|| Place {
                byte: std::mem::replace(byte, BREAKPOINT),
                symbols: Vec::new(),
                has_run: false,
            });
            place.symbols.push(function.symbol);
        }
        memory.write_all_at(&code, executable.start)?;
        Ok(Self(places))
    }

    /// Makes a thread that has met a breakpoint go on where it was.
    fn met(&mut self, thread: Pid, list: &mut File) -> Result<()> {
        let Some(address) = position(thread)?.and_then(|after| after.checked_sub(1)) else { return Ok(()) };
        let Some(place) = self.0.get_mut(&address) else { return Ok(()) };
        if !std::mem::replace(&mut place.has_run, true) {
            list.write_all(
                place.symbols.iter().map(|symbol| format!("{symbol}\n")).collect::<String>().as_bytes(),
            )?;
        }
        // A process that was forked has the breakpoints in a memory of its own.
        memory(thread)?.write_all_at(&[place.byte], address)?;
        go_to(thread, address)
    }
}

/// Where a thread is; none where it is gone.
#[cfg(target_arch = "x86_64")]
fn position(thread: Pid) -> Result<Option<u64>> {
    match ptrace::getregs(thread) {
        Ok(registers) => Ok(Some(registers.rip)),
        Err(Errno::ESRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(target_arch = "x86_64")]
fn go_to(thread: Pid, address: u64) -> Result<()> {
    let mut registers = ptrace::getregs(thread)?;
    registers.rip = address;
    Ok(unless_gone(ptrace::setregs(thread, registers))?)
}

#[cfg(not(target_arch = "x86_64"))]
fn position(_: Pid) -> Result<Option<u64>> {
    Ok(None)
}

#[cfg(not(target_arch = "x86_64"))]
fn go_to(_: Pid, _: u64) -> Result<()> {
    Ok(())
}

fn memory(thread: Pid) -> Result<File> {
    let path = format!("/proc/{thread}/mem");
    OpenOptions::new().read(true).write(true).open(&path).with_context(|| format!("cannot open {path}"))
}

/// A line of `/proc/PID/maps`.
struct Mapping {
    start: u64,
    end: u64,
    is_executable: bool,
}

impl Mapping {
    fn parse(line: &str) -> Result<Self> {
        let mut words = line.split_whitespace();
        let (Some((start, end)), Some(modes)) =
            (words.next().and_then(|range| range.split_once('-')), words.next())
        else {
            bail!("`{line}` is no mapping");
        };
        let number = |text| u64::from_str_radix(text, 16).with_context(|| format!("`{line}` is no mapping"));
        Ok(Self { start: number(start)?, end: number(end)?, is_executable: modes.contains('x') })
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_named_once_in_its_order_in_threads_and_beside_commands() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = super::super::tests::compiled(folder.path(), &[]);
        let list = folder.path().join("list");
        trace(&list, &program, &["three".into(), "words".into()]).expect("traced");
        let named = fs::read_to_string(&list).expect("a list");
        let own: Vec<&str> = named.lines().filter(|symbol| symbol.ends_with("_of_the_test")).collect();
        assert_eq!(own, ["third_of_the_test", "first_of_the_test"]);
    }

    #[test]
    fn a_program_without_symbols_or_that_is_none_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (list, text) = (folder.path().join("list"), folder.path().join("text"));
        let said = |program: &Path| format!("{:#}", trace(&list, program, &[]).expect_err("refused"));
        fs::write(&text, "no program").expect("written");
        let is_none = format!("{}: this is no ELF file: ", text.display());
        assert!(said(&text).starts_with(&is_none), "{}", said(&text));
        let stripped = super::super::tests::compiled(folder.path(), &["-Cstrip=symbols"]);
        assert_eq!(said(&stripped), format!("{} has no symbols", stripped.display()));
        let missing = said(&folder.path().join("none"));
        assert!(missing.starts_with("cannot read "), "{missing}");
    }
}
