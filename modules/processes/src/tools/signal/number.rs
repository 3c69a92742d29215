//! Signals by name and number, see signal(7).

use std::fmt;

use linux_sysadmin_sdk::prelude::*;

/// The names of the signals 1 to 31 on the architectures that Linux servers have.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];
/// Other names of signal(7).
const ALIASES: [(&str, u8); 4] = [("IOT", 6), ("CLD", 17), ("POLL", 29), ("UNUSED", 31)];
/// The real-time signals. The C library keeps 32 and 33 for itself.
const RTMIN: u8 = 34;
const RTMAX: u8 = 64;

/// A signal, 0 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal(u8);

impl Signal {
    pub(crate) const TERM: Self = Self(15);
    pub(crate) const HUP: Self = Self(1);

    pub(crate) fn number(self) -> u8 {
        self.0
    }

    /// Reads `TERM`, `SIGTERM`, `15`, `RTMIN+3` or `RTMAX-2`, in any case.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let invalid = || {
            let shown: String = text.chars().take(40).collect();
            let message = format!(
                "{shown:?} is no signal: expected a name such as TERM or SIGHUP, RTMIN+N, RTMAX-N, or 0 to {RTMAX} \
                 without 32 and 33"
            );
            Problem::validation("INVALID_SIGNAL", message)
        };
        let upper = text.trim().to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let digits = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse::<u8>().ok(),
            false => None,
        };
        let named = || NAMES.iter().position(|known| *known == name).and_then(|at| u8::try_from(at + 1).ok());
        let alias = || ALIASES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
        let above = || match name.strip_prefix("RTMIN")? {
            "" => Some(RTMIN),
            more => RTMIN.checked_add(digits(more.strip_prefix('+')?)?),
        };
        let below = || match name.strip_prefix("RTMAX")? {
            "" => Some(RTMAX),
            less => RTMAX.checked_sub(digits(less.strip_prefix('-')?)?).filter(|number| *number >= RTMIN),
        };
        let number = digits(&upper).or_else(named).or_else(alias).or_else(above).or_else(below);
        let number = number.filter(|number| *number <= RTMAX && !matches!(number, 32 | 33));
        number.map(Self).ok_or_else(invalid)
    }

    /// Says whether it is sent to end a process, so that the end is waited for: INT, QUIT, ABRT, KILL, TERM.
    pub(crate) fn is_for_the_end(self) -> bool {
        matches!(self.0, 2 | 3 | 6 | 9 | 15)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("signal 0"),
            RTMIN => f.write_str("SIGRTMIN"),
            number => match NAMES.get(usize::from(number) - 1) {
                Some(name) => write!(f, "SIG{name}"),
                None => write!(f, "SIGRTMIN+{}", number - RTMIN),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The names are those that `kill -l` of procps-ng 4.0.2 prints on Debian 12, x86-64.
    #[test]
    fn a_signal_has_a_name_and_a_number() {
        for (text, number) in [
            ("TERM", 15),
            ("sigterm", 15),
            (" SigHup ", 1),
            ("9", 9),
            ("0", 0),
            ("64", 64),
            ("31", 31),
            ("IOT", 6),
            ("CLD", 17),
            ("POLL", 29),
            ("WINCH", 28),
            ("SYS", 31),
            ("USR2", 12),
            ("CONT", 18),
            ("RTMIN", 34),
            ("SIGRTMIN+3", 37),
            ("rtmin+30", 64),
            ("RTMAX", 64),
            ("RTMAX-30", 34),
        ] {
            assert_eq!(Signal::parse(text).unwrap().number(), number, "{text}");
        }
    }

    #[test]
    fn what_is_no_signal_is_refused() {
        for text in [
            "",
            "65",
            "-1",
            "-9",
            "32",
            "33",
            "256",
            "TERMINATE",
            "SIG",
            "SIGSIGTERM",
            "SIG15",
            "RTMIN+31",
            "RTMIN-1",
            "RTMAX-31",
            "RTMAX+1",
            "RTMIN+",
            "RTMIN+x",
            "0x9",
            "９",
            "TERM;id",
            "1.5",
        ] {
            assert_eq!(Signal::parse(text).unwrap_err().code, "INVALID_SIGNAL", "{text}");
        }
    }

    #[test]
    fn a_signal_is_shown_by_its_name() {
        for (number, name) in
            [("0", "signal 0"), ("15", "SIGTERM"), ("31", "SIGSYS"), ("34", "SIGRTMIN"), ("37", "SIGRTMIN+3")]
        {
            assert_eq!(Signal::parse(number).unwrap().to_string(), name);
        }
    }
}
