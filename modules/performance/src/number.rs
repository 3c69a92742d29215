//! Numbers as they are shown: rounded, and never infinite.

/// To one decimal. What can't be computed (0/0) is 0, since JSON has no NaN.
pub(crate) fn tenth(value: f64) -> f64 {
    rounded(value, 10.0)
}

/// To two decimals.
pub(crate) fn hundredth(value: f64) -> f64 {
    rounded(value, 100.0)
}

fn rounded(value: f64, scale: f64) -> f64 {
    if value.is_finite() { (value * scale).round() / scale } else { 0.0 }
}

/// How many percent `part` is of `whole`, unrounded; 0 of nothing.
pub(crate) fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole * 100.0 } else { 0.0 }
}

/// KiB as MiB.
pub(crate) fn mib(kib: u64) -> f64 {
    tenth(kib as f64 / 1024.0)
}

/// For `skip_serializing_if`.
pub(crate) fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// For `skip_serializing_if`.
pub(crate) fn is_none_at_all(value: &u64) -> bool {
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
