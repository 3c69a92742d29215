//! Sizes: what a caller asks for, and how every answer tells them. LVM takes G, GB and GiB alike as 1024³ bytes, and so do
//! these tools.

use linux_sysadmin_sdk::{prelude::*, text::excerpt};

const UNITS: &str = "BKMGTPE";

/// The largest size that is taken: LVM's own limit for a volume.
const MOST: u128 = 8 << 60;

/// How an asked size relates to the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Absolute,
    More,
    Less,
}

/// What a percentage is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Free,
    Group,
    Origin,
}

/// A number of bytes, or a part of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Bytes(u64),
    Percent(u64, Of),
}

/// A size as a caller asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) sign: Sign,
    pub(crate) amount: Amount,
}

impl Size {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let (sign, rest) = match text.as_bytes().first() {
            Some(b'+') => (Sign::More, &text[1..]),
            Some(b'-') => (Sign::Less, &text[1..]),
            _ => (Sign::Absolute, text),
        };
        let amount = amount(rest).ok_or_else(|| {
            let message = format!(
                "{:?} is no size: expected a number with K, M, G or T (of 1024), such as 10G, or a part such as \
                 100%FREE and 10%VG",
                excerpt(text, 60)
            );
            Problem::validation("INVALID_SIZE", message)
        })?;
        Ok(Self { sign, amount })
    }

    /// The size in bytes, neither with a sign nor as a part of something.
    pub(crate) fn bytes(text: &str) -> Result<u64> {
        match Self::parse(text) {
            Ok(Self { sign: Sign::Absolute, amount: Amount::Bytes(bytes) }) => Ok(bytes),
            _ => {
                let text = excerpt(text, 60);
                let message =
                    format!("{text:?} is no size: expected a number with K, M, G or T (of 1024), such as 2G");
                Err(Problem::validation("INVALID_SIZE", message))
            }
        }
    }

    /// The size without a sign.
    pub(crate) fn absolute(text: &str) -> Result<Amount> {
        let size = Self::parse(text)?;
        if size.sign != Sign::Absolute {
            let message = format!("{text:?} has a sign: expected a size such as 10G or 100%FREE");
            return Err(Problem::validation("INVALID_SIZE", message));
        }
        Ok(size.amount)
    }
}

/// Bytes with a unit, or a percentage with what it is of. No number without a unit is taken: LVM reads it as MiB, and others
/// as bytes.
fn amount(text: &str) -> Option<Amount> {
    if let Some((number, of)) = text.split_once('%') {
        let of = match of.to_ascii_uppercase().as_str() {
            "FREE" => Of::Free,
            "VG" => Of::Group,
            "ORIGIN" => Of::Origin,
            _ => return None,
        };
        let number = digits(number).filter(|percent| (1..=100).contains(percent))?;
        return Some(Amount::Percent(number as u64, of));
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let unit = unit.to_ascii_uppercase();
    let unit =
        unit.strip_suffix("IB").or(unit.strip_suffix('B').filter(|left| !left.is_empty())).unwrap_or(&unit);
    let power = UNITS.find(unit).filter(|_| unit.len() == 1)?;
    let factor = 1_u128 << (10 * power);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let part = match fraction {
        "" if number.contains('.') => return None,
        "" => 0,
        fraction => digits(fraction)?.checked_mul(factor)? / 10_u128.pow(fraction.len() as u32),
    };
    let bytes = digits(whole)?.checked_mul(factor)?.checked_add(part)?;
    (bytes > 0 && bytes <= MOST).then_some(Amount::Bytes(bytes as u64))
}

fn digits(text: &str) -> Option<u128> {
    let is_number = !text.is_empty() && text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// A size in the largest unit of which there is one, rounded down to two decimals: `1.99G`. The tools take it as an argument.
pub(crate) fn shown(bytes: u64) -> String {
    let power = (1..UNITS.len()).rev().find(|power| bytes >> (10 * power) > 0).unwrap_or(0);
    let hundredths = (u128::from(bytes) * 100) >> (10 * power);
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    let number = text.trim_end_matches('0').trim_end_matches('.');
    format!("{number}{}", &UNITS[power..=power])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_or_is_a_part_of_something() {
        const G: u64 = 1 << 30;
        let bytes = |sign, bytes| Size { sign, amount: Amount::Bytes(bytes) };
        let part = |sign, percent, of| Size { sign, amount: Amount::Percent(percent, of) };
        for (text, expected) in [
            ("10G", bytes(Sign::Absolute, 10 * G)),
            ("+5g", bytes(Sign::More, 5 * G)),
            ("-5GiB", bytes(Sign::Less, 5 * G)),
            ("1.5GB", bytes(Sign::Absolute, 3 * G / 2)),
            ("512b", bytes(Sign::Absolute, 512)),
            ("500M", bytes(Sign::Absolute, 500 << 20)),
            ("8E", bytes(Sign::Absolute, 8 << 60)),
            ("100%FREE", part(Sign::Absolute, 100, Of::Free)),
            ("+100%free", part(Sign::More, 100, Of::Free)),
            ("10%VG", part(Sign::Absolute, 10, Of::Group)),
            ("20%ORIGIN", part(Sign::Absolute, 20, Of::Origin)),
        ] {
            assert_eq!(Size::parse(text).unwrap(), expected, "{text}");
        }
        for text in [
            "",
            "+",
            "10",
            "G",
            "0G",
            "-0G",
            "++5G",
            "1.G",
            ".5G",
            "1..5G",
            "5X",
            "5GG",
            "5 G",
            "5iB",
            "101%FREE",
            "0%VG",
            "%FREE",
            "5%",
            "5%PVS",
            "1.5%VG",
            "9E",
            "99999999999999999999G",
            "5G\n",
            "５G",
            "--help",
            "1e3G",
            "10GIBB",
        ] {
            assert_eq!(Size::parse(text).unwrap_err().code, "INVALID_SIZE", "{text}");
        }
        assert_eq!(Size::absolute("+1G").unwrap_err().code, "INVALID_SIZE");
    }

    #[test]
    fn where_only_bytes_are_meant_signs_and_parts_are_refused() {
        for (text, bytes) in [("2G", 2 << 30), ("1.5GiB", 3 << 29), ("64k", 64 << 10)] {
            assert_eq!(Size::bytes(text).unwrap(), bytes);
        }
        for text in ["", "2", "+2G", "-2G", "50%", "100%FREE", "1e9G", "2G\n", "infG"] {
            assert_eq!(Size::bytes(text).unwrap_err().code, "INVALID_SIZE", "{text}");
        }
    }

    #[test]
    fn a_size_is_told_as_it_is_taken() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (314_572_800, "300M"),
            (2_143_289_344, "1.99G"),
            (1 << 40, "1T"),
            (u64::MAX, "15.99E"),
        ] {
            assert_eq!(shown(bytes), text);
        }
        assert_eq!(Size::absolute(&shown(3 << 29)).unwrap(), Amount::Bytes(3 << 29));
    }
}
