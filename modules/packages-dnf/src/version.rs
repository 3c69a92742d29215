//! The order of versions in rpm: rpm-version(7), `rpmvercmp`.

pub use linux_sysadmin_sdk::packages::nevra::plain;
use std::cmp::Ordering;

/// Compares `[epoch:]version[-release]`.
pub fn compare(one: &str, other: &str) -> Ordering {
    let ((epoch, version, release), (other_epoch, other_version, other_release)) = (parts(one), parts(other));
    epoch
        .cmp(&other_epoch)
        .then_with(|| segments(version, other_version))
        .then_with(|| segments(release, other_release))
}

fn parts(text: &str) -> (u64, &str, &str) {
    let (epoch, rest) = text.split_once(':').unwrap_or(("0", text));
    let (version, release) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (epoch.parse().unwrap_or(0), version, release)
}

/// Compares runs of digits and runs of letters one after the other. `~` sorts before everything, even the end. `^` sorts
/// before everything but the end.
fn segments(mut one: &str, mut other: &str) -> Ordering {
    loop {
        let is_separator = |c: char| !c.is_ascii_alphanumeric() && c != '~' && c != '^';
        (one, other) = (one.trim_start_matches(is_separator), other.trim_start_matches(is_separator));
        match (one.strip_prefix('~'), other.strip_prefix('~')) {
            (Some(rest), Some(others)) => {
                (one, other) = (rest, others);
                continue;
            }
            (Some(_), None) => return Ordering::Less,
            (None, Some(_)) => return Ordering::Greater,
            (None, None) => {}
        }
        match (one.strip_prefix('^'), other.strip_prefix('^')) {
            (Some(rest), Some(others)) => {
                (one, other) = (rest, others);
                continue;
            }
            (Some(_), None) => return if other.is_empty() { Ordering::Greater } else { Ordering::Less },
            (None, Some(_)) => return if one.is_empty() { Ordering::Less } else { Ordering::Greater },
            (None, None) => {}
        }
        if one.is_empty() || other.is_empty() {
            return one.len().cmp(&other.len());
        }
        let is_number = one.starts_with(|c: char| c.is_ascii_digit());
        let run = |text: &str| {
            let ends = |c: char| if is_number { !c.is_ascii_digit() } else { !c.is_ascii_alphabetic() };
            text.find(ends).unwrap_or(text.len())
        };
        let ((segment, rest), (others, other_rest)) = (one.split_at(run(one)), other.split_at(run(other)));
        // A number is newer than letters.
        if others.is_empty() {
            return if is_number { Ordering::Greater } else { Ordering::Less };
        }
        let found = if is_number {
            let (number, others) = (segment.trim_start_matches('0'), others.trim_start_matches('0'));
            number.len().cmp(&others.len()).then_with(|| number.cmp(others))
        } else {
            segment.cmp(others)
        };
        if found != Ordering::Equal {
            return found;
        }
        (one, other) = (rest, other_rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows come from rpm's own tests, tests/rpmvercmp.at of rpm 4.18.
    #[test]
    fn versions_are_in_the_order_that_rpm_has_them_in() {
        let table = [
            ("1.0", "1.0", Ordering::Equal),
            ("1.0", "2.0", Ordering::Less),
            ("2.0.1a", "2.0.1", Ordering::Greater),
            ("5.5p1", "5.5p10", Ordering::Less),
            ("10xyz", "10.1xyz", Ordering::Less),
            ("xyz10", "xyz10.1", Ordering::Less),
            ("xyz.4", "8", Ordering::Less),
            ("5.5p2", "5.6p1", Ordering::Less),
            ("6.0.rc1", "6.0", Ordering::Greater),
            ("10b2", "10a1", Ordering::Greater),
            ("1.0010", "1.9", Ordering::Greater),
            ("1.05", "1.5", Ordering::Equal),
            ("2_0", "2.0", Ordering::Equal),
            ("a+", "a_", Ordering::Equal),
            ("1.0~rc1", "1.0", Ordering::Less),
            ("1.0~rc1", "1.0~rc2", Ordering::Less),
            ("1.0~rc1~git123", "1.0~rc1", Ordering::Less),
            ("1.0^", "1.0", Ordering::Greater),
            ("1.0^git1", "1.0^git2", Ordering::Less),
            ("1.0^git1", "1.01", Ordering::Less),
            ("1.0^20160101", "1.0.1", Ordering::Less),
            ("1.0~rc1^git1", "1.0~rc1", Ordering::Greater),
            ("1.0^git1~pre", "1.0^git1", Ordering::Less),
        ];
        for (one, other, expected) in table {
            assert_eq!(compare(one, other), expected, "{one} {other}");
            assert_eq!(compare(other, one), expected.reverse(), "{other} {one}");
        }
    }

    #[test]
    fn an_epoch_outweighs_a_version_and_a_release_decides_last() {
        assert_eq!(compare("1:1.0-1", "2.0-1"), Ordering::Greater);
        assert_eq!(compare("0:1.0-1", "1.0-1"), Ordering::Equal);
        assert_eq!(compare("1.0-9", "1.0-10"), Ordering::Less);
        assert_eq!(plain("0:1.0-1"), "1.0-1");
        assert_eq!(plain("10:1.0-1"), "10:1.0-1");
    }
}
