//! Rounds the numbers of answers, and makes them finite.

/// Rounds to one decimal. A number that can't be computed (0/0) becomes 0, since JSON has no NaN.
pub(crate) fn tenth(value: f64) -> f64 {
    rounded(value, 10.0)
}

/// Rounds to two decimals, in the same way.
pub(crate) fn hundredth(value: f64) -> f64 {
    rounded(value, 100.0)
}

fn rounded(value: f64, scale: f64) -> f64 {
    if value.is_finite() { (value * scale).round() / scale } else { 0.0 }
}

/// The percentage that `part` is of `whole`, unrounded. It is 0 where `whole` is 0.
pub(crate) fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole * 100.0 } else { 0.0 }
}

/// Converts KiB to MiB.
pub(crate) fn mib(kib: u64) -> f64 {
    tenth(kib as f64 / 1024.0)
}

/// A condition for `skip_serializing_if`.
pub(crate) fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// A condition for `skip_serializing_if`.
pub(crate) fn is_zero_count(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_computed_is_zero() {
        assert_eq!(tenth(f64::NAN), 0.0);
        assert_eq!(hundredth(f64::INFINITY), 0.0);
        assert_eq!(percent(5.0, 0.0), 0.0);
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        assert_eq!(tenth(0.25), 0.3);
        assert_eq!(hundredth(1.125), 1.13);
        assert_eq!(mib(1536), 1.5);
    }
}
