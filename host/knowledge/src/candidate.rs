//! The check of a text by a service's own checker, before the text becomes the service's configuration.
//!
//! Such a text is a kind of code: a checker with root's rights loads the modules that it names, runs its scripts, and
//! includes any file. Therefore the check is a change that a person is asked about, and not a way to look.

use super::profile::{Profile, holds_on};

/// The name of the file. No program reads a file of this name by itself.
const NAME: &str = ".candidate.linux-sysadmin";

/// The way to check a text: the path to which it is written for the time of the check, and the command that reads it.
pub struct Candidate {
    /// A path beside the service's main file, because paths in a configuration are often relative to its directory.
    pub path: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
}

impl Candidate {
    /// Makes the check for machines of this family. None where the service has no main file there.
    pub fn of(profile: &Profile, argv: &[String], family: &str) -> Option<Self> {
        let mut main = profile.config.iter().filter(|one| one.main.0);
        let main = main.find(|one| family.is_empty() || holds_on(&one.family, family))?;
        // The directory must be one place, and not a glob.
        let directory = main.path.rsplit_once('/').map(|(directory, _)| directory);
        let path = format!("{}/{NAME}", directory.filter(|directory| !directory.contains('*'))?);
        let argv = argv.iter().map(|token| if token == "{}" { path.clone() } else { token.clone() });
        Some(Self { argv: argv.collect(), path })
    }
}
