//! Sets of CPUs, as the kernel writes them: lists (`0-3,8`) and masks (`ff,00000000`).

/// The greatest number of a CPU that is believed. Linux has at most 8,192.
const GREATEST: usize = 65_535;

/// The CPUs of a list. None where it is malformed.
pub(crate) fn of_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if last > GREATEST || first > last {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// The CPUs of a mask: words of 32 bits in hexadecimal digits, the highest first. None where it is malformed.
pub(crate) fn of_mask(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for (n, word) in text.trim().rsplit(',').enumerate() {
        let bits = u32::from_str_radix(word, 16).ok()?;
        cpus.extend((0..32).filter(|bit| bits & (1 << bit) != 0).map(|bit| n * 32 + bit));
    }
    Some(cpus)
}

/// The list of sorted CPUs as lscpu writes it: `0-3`, `0,1`, and `0-62:2` for every second one.
pub(crate) fn list(cpus: &[usize]) -> String {
    let mut ranges = Vec::new();
    let mut rest = cpus;
    while let [first, behind @ ..] = rest {
        let stride = behind.first().map_or(0, |second| second - first);
        let run =
            1 + behind.iter().enumerate().take_while(|(n, cpu)| **cpu == first + (n + 1) * stride).count();
        let last = first + (run - 1) * stride;
        match (run, stride) {
            (0..=2, _) => ranges.push(first.to_string()),
            (_, 1) => ranges.push(format!("{first}-{last}")),
            _ => ranges.push(format!("{first}-{last}:{stride}")),
        }
        rest = if run > 2 { rest.get(run..).unwrap_or_default() } else { behind };
    }
    ranges.join(",")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_written_as_lscpu_writes_them() {
        // lscpu's own lists in the test data of util-linux.
        for text in ["0,1", "0-95", "0,6,7", "1-5,8-19", "0-5,48-53", "0-62:2", "1-61:4", "0", ""] {
            let cpus = match text.split_once(':') {
                None => of_list(text).unwrap(),
                Some((range, stride)) => {
                    of_list(range).unwrap().into_iter().step_by(stride.parse().unwrap()).collect()
                }
            };
            assert_eq!(list(&cpus), text);
        }
    }

    #[test]
    fn masks_have_the_highest_word_first() {
        assert_eq!(of_mask("3\n").unwrap(), [0, 1]);
        assert_eq!(of_mask("1,80000000").unwrap(), [31, 32]);
        assert_eq!(of_mask("00000000,00000000").unwrap(), [0_usize; 0]);
    }

    #[test]
    fn malformed_sets_are_none() {
        for text in ["x", "3-1", "0-99999999", "-1", "1--2"] {
            assert_eq!(of_list(text), None, "{text}");
        }
        for text in ["x", "1ffffffff", ""] {
            assert_eq!(of_mask(text), None, "{text}");
        }
    }
}
