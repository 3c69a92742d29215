//! Compiles a third party's component in a process of its own, with limits on memory, time and size. A compiler is
//! large, and its input was written by somebody else. The process runs this same program.
//!
//! The component is the process's standard input, and the compiled code its standard output.

use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::config::Limits;
use super::engine;
use host_text::visible::excerpt;

/// The hidden subcommand that compiles a component.
pub const SUBCOMMAND: &str = "compile-component";

/// This same program, even where its file has been replaced since it started.
const PROGRAM: &str = "/proc/self/exe";

/// The number of bytes of the largest compiled code. A Python guest of 18 MiB compiles to 35 MiB.
const LARGEST: u64 = 512 << 20;

/// The reason why a component could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The process could not be started or used.
    #[error("the compiler can't be started: {0}")]
    Process(#[from] std::io::Error),
    /// The process took too long and was stopped.
    #[error("compiling it took longer than {0} s")]
    Time(u64),
    /// The process failed or was killed.
    #[error("it can't be compiled: {0}")]
    Failed(String),
    /// The process wrote too much.
    #[error("its compiled form is larger than {LARGEST} bytes")]
    Large,
}

/// Compiles a component, for an engine with the same settings.
pub(super) async fn in_child(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>, CompileError> {
    let mut child = Command::new(PROGRAM)
        .arg(SUBCOMMAND)
        .args([limits.compile_memory_mib.get().to_string(), limits.compile_seconds.get().to_string()])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(std::io::Error::other("it has no pipes").into());
    };
    let (mut code, mut said) = (Vec::new(), Vec::new());
    let working = async {
        let feeding = async {
            // A compiler that stops reading says why on its standard error.
            let _ = stdin.write_all(bytes).await;
            drop(stdin);
        };
        let (mut stdout, mut stderr) = (stdout.take(LARGEST + 1), stderr.take(64 << 10));
        let (_, read, _) =
            tokio::join!(feeding, stdout.read_to_end(&mut code), stderr.read_to_end(&mut said));
        read?;
        child.wait().await
    };
    // The process itself limits its processor time. On a busy machine it may take as long again.
    let seconds = u64::from(limits.compile_seconds.get());
    let Ok(status) = tokio::time::timeout(Duration::from_secs(2 * seconds), working).await else {
        return Err(CompileError::Time(2 * seconds));
    };
    if code.len() as u64 > LARGEST {
        return Err(CompileError::Large);
    }
    let status = status?;
    if status.success() {
        return Ok(code);
    }
    let said = String::from_utf8_lossy(&said);
    let said = excerpt(said.trim().trim_start_matches("error: "), 500);
    Err(CompileError::Failed(match said.is_empty() {
        true => format!(
            "the compiler ended with {status}; it may use {} MiB and compute for {seconds} s",
            limits.compile_memory_mib.get()
        ),
        false => said,
    }))
}

/// Runs in the child process: limits the process before it reads anything, and compiles.
pub fn child(memory_mib: u64, seconds: u64) -> anyhow::Result<()> {
    let limit = |resource, most| setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    limit(Resource::As, memory_mib << 20)?;
    limit(Resource::Cpu, seconds)?;
    // The process opens and writes no file.
    limit(Resource::Fsize, 0)?;
    limit(Resource::Core, 0)?;
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    limit(Resource::Nofile, 3)?;
    let code = engine::new_engine()
        .and_then(|engine| engine.precompile_component(&bytes))
        .map_err(|error| anyhow::anyhow!("{error:#}"))?;
    std::io::stdout().write_all(&code)?;
    Ok(())
}
