//! Installs the packages that a fresh machine lacks, and no others.

use crate::cmd;
use anyhow::{Result, bail};
use std::borrow::Cow;
use std::process::Command;
use std::sync::Once;

/// A need of a subcommand: a path that shows whether it is there, and the package that brings it.
pub(crate) struct Need {
    /// A program's name, or an absolute path that must exist.
    pub(crate) probe: Cow<'static, str>,
    /// The Debian package that holds it.
    pub(crate) package: Cow<'static, str>,
}

impl Need {
    pub(crate) const fn new(probe: &'static str, package: &'static str) -> Need {
        Need { probe: Cow::Borrowed(probe), package: Cow::Borrowed(package) }
    }

    /// The need of a crate that names it itself.
    pub(crate) const fn named(probe: String, package: String) -> Need {
        Need { probe: Cow::Owned(probe), package: Cow::Owned(package) }
    }
}

/// Installs the packages whose probes fail. `purpose` ends the sentence "… is needed for".
pub(crate) fn ensure(purpose: &str, needs: &[Need]) -> Result<()> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    let line = format!("apt-get install --no-install-recommends {}", missing.join(" "));
    if cmd::find_program("apt-get").is_none() {
        bail!(
            "{} needed for {purpose}; this machine has no apt-get, so install the contents of these Debian packages by its own means",
            missing.join(", ")
        );
    }
    if !cmd::is_root() {
        bail!("{} needed for {purpose}; as root: {line}", missing.join(", "));
    }
    eprintln!("xtask: installing {} (for {purpose})", missing.join(", "));
    update_once();
    cmd::run(apt_get().args(["--quiet", "install", "--yes", "--no-install-recommends"]).args(&missing))?;
    let still = self::missing(needs);
    if !still.is_empty() {
        bail!("{} installed, but {purpose} doesn't find there what it needs", still.join(", "));
    }
    Ok(())
}

/// Whether apt knows the package at all. It decides between a fallback and the advice to install the package.
pub(crate) fn knows(package: &str) -> bool {
    cmd::output(Command::new("apt-cache").args(["policy", package]))
        .is_ok_and(|text| text.contains("Candidate: ") && !text.contains("Candidate: (none)"))
}

/// Refreshes the package lists, once per run. A mirror that is down makes the next installation fail, not this.
pub(crate) fn update_once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Err(error) = cmd::run(apt_get().args(["--quiet", "update"])) {
            eprintln!("xtask: {error:#}; going on with the package lists there are");
        }
    });
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["-o", "DPkg::Lock::Timeout=300"]);
    command
}

fn missing(needs: &[Need]) -> Vec<&str> {
    let mut packages: Vec<_> = needs
        .iter()
        .filter(|need| cmd::find_program(&need.probe).is_none())
        .map(|need| need.package.as_ref())
        .collect();
    packages.dedup();
    packages
}
