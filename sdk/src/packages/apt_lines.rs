//! The lines of `apt-get --simulate`.

use super::{Operation, Verb};
use crate::{CommandLine, Problem, Result};

/// Simulates the installation of everything newer, including updates of held packages and updates that remove others.
/// apt-get names phased updates without their versions.
pub const NEWER: CommandLine = CommandLine::new("apt-get --simulate --quiet --ignore-hold full-upgrade");

/// An operation, and the archives of its new version.
pub struct Line {
    /// The operation on the package.
    pub operation: Operation,
    /// The archives, `Debian-Security:12/stable-security [amd64]`.
    pub origins: String,
}

/// Parses `Inst NAME [OLD] (NEW ORIGIN:ARCHIVE/SUITE, … [ARCH]) […]`, `Remv NAME [OLD]`, `Purg NAME [OLD]`, and `Purg
/// NAME` for a package of which only configuration is left. `Conf` lines add nothing.
pub fn operation(line: &str, lower: &[String]) -> Result<Option<Line>> {
    let Some((verb, rest)) = line.split_once(' ') else { return Ok(None) };
    if !["Inst", "Remv", "Purg"].contains(&verb) {
        return Ok(None);
    }
    let unexpected = || Problem::unexpected("apt-get --simulate", line);
    let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    // A package of another architecture is written as `name:arch`.
    let name = name.split_once(':').map_or(name, |(name, _arch)| name);
    let old = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(old, _)| old);
    if verb != "Inst" {
        let verb = if verb == "Purg" { Verb::Purge } else { Verb::Remove };
        let operation = Operation::new(verb, name, old.unwrap_or_default(), "");
        return Ok(Some(Line { operation, origins: String::new() }));
    }
    let (_, rest) = rest.split_once('(').ok_or_else(unexpected)?;
    let (inside, _) = rest.split_once(')').ok_or_else(unexpected)?;
    let (new, origins) = inside.split_once(' ').unwrap_or((inside, ""));
    let verb = match old {
        None => Verb::Install,
        Some(old) if old == new => Verb::Reinstall,
        Some(_) if lower.iter().any(|lower| lower == name) => Verb::Downgrade,
        Some(_) => Verb::Upgrade,
    };
    let operation = Operation::new(verb, name, old.unwrap_or_default(), new);
    Ok(Some(Line { operation, origins: origins.to_owned() }))
}

/// Whether an archive is for security updates, by its label or its name: `Debian-Security:12/stable-security [amd64]`.
pub fn is_security(origins: &str) -> bool {
    let mut origins = origins.split(", ");
    origins.any(|origin| {
        let (label, archive) = origin.split_once(':').unwrap_or((origin, ""));
        let archive = archive.split(' ').next().unwrap_or_default();
        label.to_ascii_lowercase().contains("security") || archive.ends_with("-security")
    })
}
