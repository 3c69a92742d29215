//! File modes in the forms of chmod(1), and their effect on a mode.

use linux_sysadmin_sdk::prelude::*;

use crate::validate::shown;

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;
const STICKY: u32 = 0o1000;

/// A requested mode: `0644`, or `u+rwX,go-w`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Octal(u32),
    Symbolic(Vec<Clause>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clause {
    /// Letters of `ugo`.
    who: String,
    operator: char,
    /// Letters of `rwxXst`, or one of `ugo`.
    what: String,
}

impl Mode {
    pub(crate) fn read(text: &str) -> Result<Self> {
        let is_octal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_octal {
            let mode = u32::from_str_radix(text, 8).ok().filter(|_| (3..=4).contains(&text.len()));
            return mode.map(Self::Octal).ok_or_else(|| wrong(text));
        }
        let clauses: Option<Vec<Clause>> = text.split(',').map(clause).collect();
        clauses.filter(|_| text.len() <= 64).map(Self::Symbolic).ok_or_else(|| wrong(text))
    }

    /// The mode that results from another one.
    pub(crate) fn applied(&self, before: u32, is_directory: bool) -> u32 {
        match self {
            // GNU chmod keeps the setuid and setgid bits of a directory where an octal mode doesn't set them.
            Self::Octal(mode) if is_directory => mode | (before & (SETUID | SETGID)),
            Self::Octal(mode) => *mode,
            Self::Symbolic(clauses) => {
                clauses.iter().fold(before, |mode, clause| clause.applied(mode, is_directory))
            }
        }
    }

    /// Whether the mode can set setuid or setgid.
    pub(crate) fn sets_special(&self) -> bool {
        match self {
            Self::Octal(mode) => mode & (SETUID | SETGID) != 0,
            Self::Symbolic(clauses) => clauses
                .iter()
                .any(|clause| clause.operator != '-' && clause.what.contains('s') && clause.who != "o"),
        }
    }

    /// Whether the mode can let everybody write.
    pub(crate) fn opens_to_all(&self) -> bool {
        match self {
            Self::Octal(mode) => mode & 0o002 != 0,
            Self::Symbolic(clauses) => clauses.iter().any(|clause| {
                clause.operator != '-' && clause.who.contains('o') && clause.what.contains(['w', 'u', 'g'])
            }),
        }
    }
}

fn wrong(text: &str) -> Problem {
    let message = format!(
        "{} is no mode: expected three or four octal digits, or clauses that say whose, as u+rwX,go-w",
        shown(text)
    );
    let problem = Problem::validation("INVALID_MODE", message);
    if text.starts_with(['+', '-', '=']) { problem.remedy(format!("Say whose: a{text}")) } else { problem }
}

fn clause(text: &str) -> Option<Clause> {
    let at = text.find(['+', '-', '='])?;
    let (who, change) = text.split_at(at);
    let (operator, what) = (change.chars().next()?, &change[1..]);
    let is_what = what.bytes().all(|byte| b"rwxXst".contains(&byte)) || matches!(what, "u" | "g" | "o");
    let is_clause = !who.is_empty()
        && who.bytes().all(|byte| b"ugoa".contains(&byte))
        && is_what
        && (operator == '=' || !what.is_empty());
    let who = if who.contains('a') { "ugo" } else { who };
    is_clause.then(|| Clause { who: who.to_owned(), operator, what: what.to_owned() })
}

impl Clause {
    fn applied(&self, before: u32, is_directory: bool) -> u32 {
        let copied = |shift: u32| (before >> shift) & 7;
        let permissions = match self.what.as_str() {
            "u" => copied(6),
            "g" => copied(3),
            "o" => copied(0),
            what => what.chars().fold(0, |bits, what| {
                bits | match what {
                    'r' => 4,
                    'w' => 2,
                    'x' => 1,
                    'X' if is_directory || before & 0o111 != 0 => 1,
                    _ => 0,
                }
            }),
        };
        let (mut affected, mut value) = (0, 0);
        for (who, shift, special, letter) in
            [('u', 6, SETUID, 's'), ('g', 3, SETGID, 's'), ('o', 0, STICKY, 't')]
        {
            if !self.who.contains(who) {
                continue;
            }
            affected |= 7 << shift;
            value |= permissions << shift;
            if self.what.contains(letter) {
                (affected, value) = (affected | special, value | special);
            } else if !is_directory || letter == 't' {
                // `=` removes setuid and setgid from a file, and keeps them on a directory.
                affected |= special;
            }
        }
        match self.operator {
            '+' => before | value,
            '-' => before & !value,
            _ => (before & !affected) | value,
        }
    }
}

/// The argument of chmod that sets exactly these bits. Octal digits don't remove setuid and setgid from a directory, so
/// that symbols do it.
pub(crate) fn exactly(mode: u32, before: u32, is_directory: bool) -> String {
    if !is_directory || before & !mode & (SETUID | SETGID) == 0 {
        return format!("{mode:04o}");
    }
    let of = |who: char, shift: u32, special: u32| {
        let bits = [(4, 'r'), (2, 'w'), (1, 'x')].into_iter().filter(|(bit, _)| (mode >> shift) & bit != 0);
        let letters: String = bits.map(|(_, letter)| letter).collect();
        match special {
            0 => format!("{who}={letters}"),
            bit if mode & bit != 0 => format!("{who}={letters}s"),
            _ => format!("{who}={letters},{who}-s"),
        }
    };
    let sticky = if mode & STICKY != 0 { "o+t" } else { "o-t" };
    [of('u', 6, SETUID), of('g', 3, SETGID), of('o', 0, 0), sticky.to_owned()].join(",")
}

/// The mode as `ls -l` shows it: `-rwxr-sr-t`.
pub(crate) fn symbolic(letter: char, mode: u32) -> String {
    let mut text = String::from(letter);
    for (shift, special, set, unset) in [(6, SETUID, 's', 'S'), (3, SETGID, 's', 'S'), (0, STICKY, 't', 'T')]
    {
        let bits = (mode >> shift) & 7;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (mode & special != 0, bits & 1 != 0) {
            (true, true) => set,
            (true, false) => unset,
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of chmod (GNU coreutils) 9.1 for files and directories. Each line has `d` or `f`, the mode before, the
    /// argument, and the mode afterwards.
    const RECORDED: &str = include_str!("../../tests/data/chmod.txt");

    #[test]
    fn modes_become_what_chmod_makes_of_them() {
        let mut seen = 0;
        for line in RECORDED.lines() {
            let [kind, before, argument, after] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let before = u32::from_str_radix(before, 8).unwrap();
            let mode = Mode::read(argument).unwrap();
            assert_eq!(format!("{:o}", mode.applied(before, kind == "d")), after, "{line}");
            seen += 1;
        }
        assert!(seen > 100, "{seen}");
    }

    #[test]
    fn what_is_no_mode_is_refused() {
        for text in [
            "9999",
            "",
            "8",
            "64",
            "00644",
            "0888",
            "rwx",
            "u+",
            "u+q",
            "+x",
            "u+rw,",
            "u=rwg",
            "z+x",
            "-x",
            "0x1ff",
            "６４４",
        ] {
            assert_eq!(Mode::read(text).unwrap_err().code, "INVALID_MODE", "{text}");
        }
        assert_eq!(Mode::read("+x").unwrap_err().remediation, ["Say whose: a+x"]);
        for text in ["644", "0644", "1777", "u=rwX,go-w", "a+t", "g=u", "o="] {
            assert!(Mode::read(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn the_way_back_gives_just_the_former_bits() {
        for mode in [0o644, 0o2755, 0o4755, 0o1777, 0, 0o7777, 0o640] {
            for (before, is_directory) in
                [(0o7777, true), (0o7777, false), (0, true), (0o6644, true), (0o2755, true)]
            {
                let back = Mode::read(&exactly(mode, before, is_directory)).unwrap();
                assert_eq!(back.applied(before, is_directory), mode, "{mode:o} {before:o}");
            }
        }
        assert_eq!(exactly(0o644, 0o4755, false), "0644");
    }

    #[test]
    fn what_raises_the_risk_is_seen() {
        for (text, special, open) in [
            ("4755", true, false),
            ("u+s", true, false),
            ("a=rwxs", true, true),
            ("0777", false, true),
            ("o+w", false, true),
            ("u-s", false, false),
            ("o=u", false, true),
            ("644", false, false),
            ("go-w", false, false),
            ("2770", true, false),
        ] {
            let mode = Mode::read(text).unwrap();
            assert_eq!((mode.sets_special(), mode.opens_to_all()), (special, open), "{text}");
        }
        assert_eq!(symbolic('-', 0o4755), "-rwsr-xr-x");
        assert_eq!(symbolic('d', 0o1777), "drwxrwxrwt");
        assert_eq!(symbolic('-', 0o6644), "-rwSr-Sr--");
    }
}
