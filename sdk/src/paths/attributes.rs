//! The attributes of files, as `lsattr` prints them (lsattr(1), chattr(1)).

use crate::CommandLine;

/// Prints the attributes of files and directories. Some file systems have none, and then it fails.
pub const LSATTR: CommandLine = CommandLine::new("lsattr -d -- <path>...");

/// The attributes that keep even root from changing a path, each with its letter.
pub const IMMUTABLE: [(char, &str); 2] = [('i', "immutable"), ('a', "append-only")];

/// The attributes of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathAttributes {
    /// The path as it was asked for.
    pub path: String,
    letters: String,
}

impl PathAttributes {
    /// The names of those of the known attributes that the path has.
    pub fn names(&self, known: &[(char, &'static str)]) -> Vec<&'static str> {
        known.iter().filter(|(letter, _)| self.letters.contains(*letter)).map(|(_, name)| *name).collect()
    }
}

/// The attributes in the output of [`LSATTR`], by path.
pub fn attributes(text: &str) -> Vec<PathAttributes> {
    let line = |line: &str| {
        let (letters, path) = line.split_once(' ')?;
        Some(PathAttributes { path: path.trim_start().to_owned(), letters: letters.to_owned() })
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_attributes_of_its_line() {
        // lsattr 1.47.0
        let found = attributes("----i---------e------- /etc/a b\n--------------e------- /etc/x\n");
        let names: Vec<_> = found.iter().map(|of| (of.path.as_str(), of.names(&IMMUTABLE))).collect();
        assert_eq!(names, [("/etc/a b", vec!["immutable"]), ("/etc/x", vec![])]);
        assert_eq!(attributes(""), []);
    }
}
