//! Asks `ssh -G`, which prints the configuration as ssh itself understands it, with its `Match exec` and the keywords
//! of later versions.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use super::settings::{Settings, Source};
use super::tokens::LocalUser;
use super::{SshOptions, invalid};
use host_base::problem::{Category, Problem};
use host_text::visible::excerpt;

/// The time limit. ssh may look up names, and runs what a `Match exec` asks for.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of its output.
const MOST: u64 = 1 << 20;

/// Returns the settings for the host, and those without any configuration.
pub(super) async fn ask(
    ssh: &Path,
    extra_args: &[&str],
    alias: &str,
    options: &SshOptions,
    local_user: &LocalUser,
) -> Result<(Settings, Settings), Problem> {
    let mut args: Vec<_> = extra_args.iter().map(Into::into).collect();
    if let Some(hostname) = &options.hostname {
        args.extend(["-o".into(), format!("HostName={hostname}").into()]);
    }
    if let Some(port) = options.port {
        args.extend(["-p".into(), port.to_string().into()]);
    }
    if let Some(user) = &options.user {
        args.extend(["-l".into(), user.into()]);
    }
    if let Some(file) = &options.identity_file {
        args.extend(["-i".into(), file.into()]);
    }
    let defaults = ["-F", "none"].map(Into::into);
    let (settings, defaults) =
        tokio::try_join!(run(ssh, &args, alias, local_user), run(ssh, &defaults, alias, local_user))?;
    Ok((parse(&settings)?, parse(&defaults)?))
}

async fn run(
    ssh: &Path,
    args: &[std::ffi::OsString],
    alias: &str,
    local_user: &LocalUser,
) -> Result<String, Problem> {
    let wrong = |error: std::io::Error| Problem::io(&format!("{} -G", ssh.display()), &error);
    let child = Command::new(ssh)
        .arg("-G")
        .args(args)
        .args(["--", alias])
        .env_clear()
        .envs(local_user.environment())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(wrong)?;
    let mut running = SshProcess(child);
    let finished = async {
        let (stdout, stderr) = (running.0.stdout.take(), running.0.stderr.take());
        let (stdout, stderr) = tokio::try_join!(read(stdout), read(stderr))?;
        Ok((running.0.wait().await?, stdout, stderr))
    };
    let Ok(finished) = tokio::time::timeout(PATIENCE, finished).await else {
        let message = format!("ssh -G {alias} was not done after {} s", PATIENCE.as_secs());
        return Err(Problem::new("COMMAND_TIMEOUT", Category::Timeout, message)
            .remedy("See what a Match exec of ~/.ssh/config waits for, or a name server"));
    };
    let (status, stdout, stderr) = finished.map_err(wrong)?;
    if !status.success() {
        let stderr = String::from_utf8_lossy(&stderr);
        // Some versions print this, though nobody asked for a terminal.
        let said: Vec<_> = stderr.lines().filter(|line| !line.starts_with("Pseudo-terminal")).collect();
        let message = format!(
            "ssh can't read its configuration for {alias}: {}",
            excerpt(said.join("; ").trim(), 1000)
        );
        return Err(invalid(message).remedy(format!("See `ssh -G {alias}`")));
    }
    String::from_utf8(stdout).map_err(|_| invalid(format!("ssh -G {alias} printed what is no UTF-8")))
}

async fn read(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(MOST).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// A running ssh. Dropping it also ends what a `Match exec` has started.
struct SshProcess(Child);

impl Drop for SshProcess {
    fn drop(&mut self) {
        // There is no id once the process has been waited for, as another process may have it then.
        if let Some(leader) = self.0.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Parses lines of a keyword in lower case and its value.
pub(super) fn parse(printed: &str) -> Result<Settings, Problem> {
    let mut settings = Settings::new(Source::Ssh);
    for line in printed.lines() {
        let (keyword, value) = line.split_once(' ').unwrap_or((line, ""));
        match keyword {
            "userknownhostsfile" | "globalknownhostsfile" => {
                value.split(' ').for_each(|file| settings.add(keyword, file, None));
            }
            _ => settings.add(keyword, value, None),
        }
    }
    // Every version prints at least these.
    let is_whole = ["hostname", "port", "user"].iter().all(|keyword| settings.has(keyword));
    is_whole.then_some(settings).ok_or_else(|| invalid("ssh -G printed no host name, port and user"))
}
