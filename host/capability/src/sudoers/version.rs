//! The version of a target's sudo, and whether it knows regular expressions.

/// The version that `sudo -V` reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SudoVersion {
    /// Todd Miller's sudo: `1.9.13p3` is 1, 9, 13.
    Sudo(u32, u32, u32),
    /// sudo-rs, the rewrite in Rust. Its sudoers has no regular expressions.
    Rs,
}

impl SudoVersion {
    /// Parses the output of `sudo -V`; `None` where it is of no known form.
    pub fn parse(output: &str) -> Option<SudoVersion> {
        let line = output.lines().next()?.trim();
        if line.starts_with("sudo-rs ") {
            return Some(SudoVersion::Rs);
        }
        let mut numbers = line.strip_prefix("Sudo version ")?.split('.').map(leading_number);
        let (major, minor) = (numbers.next()??, numbers.next()??);
        let patch = numbers.next().unwrap_or(Some(0))?;
        Some(SudoVersion::Sudo(major, minor, patch))
    }

    /// Whether a command's arguments can be a regular expression, which they can since 1.9.10. An older sudo takes an
    /// expression literally, and it matches nothing.
    pub fn knows_expressions(self) -> bool {
        matches!(self, SudoVersion::Sudo(major, minor, patch) if (major, minor, patch) >= (1, 9, 10))
    }
}

/// The number at the beginning of a text: `13p3` is 13, and so is `13b1`.
fn leading_number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_what_sudo_says() {
        for (output, version) in [
            ("Sudo version 1.9.13p3\nSudoers policy plugin version 1.9.13p3\n", Some((1, 9, 13))),
            ("Sudo version 1.9.10", Some((1, 9, 10))),
            ("Sudo version 1.9.9\n", Some((1, 9, 9))),
            ("Sudo version 1.9.5p2\n", Some((1, 9, 5))),
            ("Sudo version 1.9.16b1\n", Some((1, 9, 16))),
            ("Sudo version 1.8.31\n", Some((1, 8, 31))),
            ("Sudo version 1.10\n", Some((1, 10, 0))),
            ("", None),
            ("sudo: command not found", None),
            ("Sudo version", None),
            ("Sudo version x.9.13", None),
            ("Sudo version 1.9.p3", None),
            ("doas 6.8", None),
        ] {
            let expected = version.map(|(major, minor, patch)| SudoVersion::Sudo(major, minor, patch));
            assert_eq!(SudoVersion::parse(output), expected, "{output:?}");
        }
        assert_eq!(SudoVersion::parse("sudo-rs 0.2.3\n"), Some(SudoVersion::Rs));
    }

    #[test]
    fn expressions_are_known_since_1_9_10() {
        for (version, known) in [
            (SudoVersion::Sudo(1, 8, 31), false),
            (SudoVersion::Sudo(1, 9, 9), false),
            (SudoVersion::Sudo(1, 9, 10), true),
            (SudoVersion::Sudo(1, 9, 13), true),
            (SudoVersion::Sudo(1, 10, 0), true),
            (SudoVersion::Sudo(2, 0, 0), true),
            (SudoVersion::Rs, false),
        ] {
            assert_eq!(version.knows_expressions(), known, "{version:?}");
        }
    }
}
