//! The size of a new swap file, as a caller gives it.

use linux_sysadmin_sdk::{prelude::*, text::excerpt};

/// Reads a number of bytes with a unit of 1024: `2G`, `512M`, `1.5GiB`.
pub(crate) fn parse(text: &str) -> Result<u64> {
    size(text).ok_or_else(|| {
        let message =
            format!("{:?} is no size: expected a number with K, M, G or T, such as 2G", excerpt(text, 40));
        Problem::validation("INVALID_SIZE", message)
    })
}

fn size(text: &str) -> Option<u64> {
    let text = text.strip_suffix('B').unwrap_or(text);
    let text = text.strip_suffix('i').unwrap_or(text);
    let shift = match text.chars().last()? {
        'K' | 'k' => 10,
        'M' | 'm' => 20,
        'G' | 'g' => 30,
        'T' | 't' => 40,
        _ => return None,
    };
    let number = &text[..text.len() - 1];
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && number.len() <= 12;
    let bytes = number.parse::<f64>().ok().filter(|_| is_plain)? * (1_u64 << shift) as f64;
    // Whole pages.
    (bytes < (1_u64 << 46) as f64).then_some(bytes as u64 & !0xfff)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::parse;

    #[test]
    fn a_size_has_a_unit_of_1024() {
        for (text, bytes) in [
            ("2G", 2 << 30),
            ("512M", 512 << 20),
            ("1.5GiB", 3 << 29),
            ("1GB", 1 << 30),
            ("64k", 64 << 10),
            ("5K", 4096),
        ] {
            assert_eq!(parse(text).unwrap(), bytes, "{text}");
        }
        for text in [
            "",
            "G",
            "2",
            "-2G",
            "+2G",
            "2 G",
            "1e9G",
            "2P",
            "0x2G",
            "..G",
            "99999999T",
            "2G\n",
            "infG",
            "50%",
        ] {
            assert_eq!(parse(text).unwrap_err().code, "INVALID_SIZE", "{text}");
        }
    }
}
