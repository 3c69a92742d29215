//! Pressure stall information in `/proc/pressure`: the share of time in which tasks waited for a resource.
//!
//! See Documentation/accounting/psi.rst. It exists since Linux 4.20, and some kernels have it turned off.

use linux_sysadmin_sdk::prelude::*;

use crate::sample::Reading;

pub(crate) const CPU: &str = "/proc/pressure/cpu";
pub(crate) const MEMORY: &str = "/proc/pressure/memory";
pub(crate) const IO: &str = "/proc/pressure/io";

/// The pressure on one resource, in percent of the last 10, 60 and 300 s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Pressure {
    /// The time in which at least one task waited.
    pub(crate) some_pct: [f64; 3],
    /// The time in which all tasks with work waited at once. For CPU, it says nothing about the whole machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) full_pct: Option<[f64; 3]>,
}

impl Pressure {
    /// Parses a file. None where it doesn't have the expected format.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let line = |kind: &str| {
            let line = text.lines().find(|line| line.split(' ').next() == Some(kind))?;
            let value = |name: &str| {
                let mut words = line.split_whitespace();
                let number = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
                number.parse::<f64>().ok().filter(|number| number.is_finite())
            };
            Some([value("avg10")?, value("avg60")?, value("avg300")?])
        };
        Some(Self { some_pct: line("some")?, full_pct: line("full") })
    }

    /// The share of the last 10 s in which at least one task waited.
    pub(crate) fn some_now(&self) -> f64 {
        self.some_pct[0]
    }

    /// The share of the last 10 s in which all tasks waited. It is 0 on kernels that don't have it.
    pub(crate) fn full_now(&self) -> f64 {
        self.full_pct.map_or(0.0, |full| full[0])
    }
}

/// The pressure on all resources.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Pressures {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu: Option<Pressure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<Pressure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) io: Option<Pressure>,
}

impl Pressures {
    /// Reads the pressure. None where the kernel has no pressure stall information.
    pub(crate) fn of(reading: &Reading) -> Option<Self> {
        let parse = |path| {
            let mut pressure = Pressure::parse(reading.text(path).ok()?)?;
            if path == CPU {
                pressure.full_pct = None;
            }
            Some(pressure)
        };
        let all = Self { cpu: parse(CPU), memory: parse(MEMORY), io: parse(IO) };
        [all.cpu, all.memory, all.io].iter().any(Option::is_some).then_some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_read_or_left_out() {
        let both = "some avg10=0.10 avg60=0.20 avg300=0.30 total=5\nfull avg10=0.01 avg60=0.02 avg300=0.03 total=1\n";
        let expected = Pressure { some_pct: [0.1, 0.2, 0.3], full_pct: Some([0.01, 0.02, 0.03]) };
        assert_eq!(Pressure::parse(both), Some(expected));
        // Before Linux 5.13, the file of the CPU has only the first line.
        let some = both.lines().next().unwrap();
        assert_eq!(Pressure::parse(some), Some(Pressure { full_pct: None, ..expected }));
        for text in [
            "",
            "full avg10=1",
            "some avg10=x avg60=1 avg300=1",
            "some avg10=1 avg60=1",
            "some avg10=inf avg60=1 avg300=1",
        ] {
            assert_eq!(Pressure::parse(text), None, "{text:?}");
        }
    }
}
