//! A text that a service's own checker is given to read, before it is that service's configuration.
//!
//! It is code of sorts: a checker with root's rights loads the modules that it names, runs its scripts, includes any file.
//! So it is a change that somebody is asked about, and no way to look.

use super::profile::{Profile, holds_on};

/// No program reads a file of this name by itself.
const NAME: &str = ".candidate.linux-sysadmin";

/// Where the text is put for the time, and by what it is read.
pub struct Candidate {
    /// Beside the service's main file: what a configuration names is often relative to its own directory.
    pub path: String,
    /// Program and arguments.
    pub argv: Vec<String>,
}

impl Candidate {
    /// On machines of this family; nothing where the service has no main file there.
    pub fn of(profile: &Profile, argv: &[String], family: &str) -> Option<Self> {
        let mut main = profile.config.iter().filter(|one| one.main.0);
        let main = main.find(|one| family.is_empty() || holds_on(&one.family, family))?;
        // One place, not any that a glob stands for.
        let directory = main.path.rsplit_once('/').map(|(directory, _)| directory);
        let path = format!("{}/{NAME}", directory.filter(|directory| !directory.contains('*'))?);
        let argv = argv.iter().map(|token| if token == "{}" { path.clone() } else { token.clone() });
        Some(Self { argv: argv.collect(), path })
    }
}
