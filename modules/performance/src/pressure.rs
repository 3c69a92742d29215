//! `/proc/pressure`: the share of time in which tasks stalled for want of something.
//!
//! Documentation/accounting/psi.rst. Since Linux 4.20, and off in some kernels: what isn't there is left out.

use linux_sysadmin_sdk::prelude::*;

use crate::sample::Reading;

pub(crate) const CPU: &str = "/proc/pressure/cpu";
pub(crate) const MEMORY: &str = "/proc/pressure/memory";
pub(crate) const IO: &str = "/proc/pressure/io";

/// One resource, in percent of the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Pressure {
    /// Some task stalled; over the last 10, 60 and 300 s.
    pub(crate) some_pct: [f64; 3],
    /// All tasks that had something to do stalled at once. For CPU, it says nothing about the whole machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) full_pct: Option<[f64; 3]>,
}

impl Pressure {
    /// None for what isn't in the form.
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

    /// Over the last 10 s.
    pub(crate) fn some_now(&self) -> f64 {
        self.some_pct[0]
    }

    /// Over the last 10 s; 0 on kernels that don't say.
    pub(crate) fn full_now(&self) -> f64 {
        self.full_pct.map_or(0.0, |full| full[0])
    }
}

/// The three resources.
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
    /// None where the kernel has none.
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
        // Before Linux 5.13, cpu has the first line only.
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
