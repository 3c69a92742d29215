//! The name of a new module, and what follows from it: the names of its crate, of its tools, and of the program that it runs.

use std::str::FromStr;

/// The longest name. The tools' names begin with it, and a tool's name has 64 characters at most.
const LONGEST: usize = 40;

/// A module's name that can also be the name of a folder and of a crate, and the beginning of a tool's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewName(String);

impl NewName {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as an identifier: `tape_drive` for `tape-drive`.
    pub(super) fn identifier(&self) -> String {
        self.0.replace('-', "_")
    }

    /// The program of a domain: `pacman` for the module `packages-pacman`.
    pub(super) fn program(&self, domain: &str) -> &str {
        let program = self.0.strip_prefix(domain).and_then(|rest| rest.strip_prefix('-'));
        program.unwrap_or(&self.0)
    }
}

impl FromStr for NewName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_word =
            |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let is_right = text.len() <= LONGEST
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.split('-').all(|word| !word.is_empty() && is_word(word));
        match is_right {
            true => Ok(Self(text.to_owned())),
            false => Err(format!(
                "expected lower-case letters and digits, words divided by single dashes, a letter first, and at most \
                 {LONGEST} characters, such as disk-health"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_words_of_letters_and_digits_with_single_dashes() {
        for good in ["a", "disk-health", "packages-pacman", "raid5", "x-2", &"a".repeat(LONGEST)] {
            assert_eq!(good.parse::<NewName>().unwrap().as_str(), good);
        }
        let long = "a".repeat(LONGEST + 1);
        for bad in [
            "",
            "-",
            "-x",
            "x-",
            "x--y",
            "5x",
            "X",
            "Disk",
            "tape_drive",
            "disk health",
            "disk/health",
            "..",
            ".x",
            "/tmp/x",
            "../x",
            "x.y",
            "ä",
            "x\n",
            "x\u{202e}y",
            "--lang",
            "{{name}}",
            &long,
        ] {
            let refused = bad.parse::<NewName>().unwrap_err();
            assert!(refused.contains("such as disk-health"), "{bad:?}");
        }
    }

    #[test]
    fn the_program_of_a_domain_is_what_follows_the_domain() {
        for (name, program) in [
            ("packages-pacman", "pacman"),
            ("pacman", "pacman"),
            ("packages-foo-bar", "foo-bar"),
            ("packagesx", "packagesx"),
            ("packages", "packages"),
        ] {
            assert_eq!(name.parse::<NewName>().unwrap().program("packages"), program);
        }
        assert_eq!("disk-health-2".parse::<NewName>().unwrap().identifier(), "disk_health_2");
    }
}
