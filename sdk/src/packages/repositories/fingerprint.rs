//! Fingerprints that a caller gives.

use crate::{Problem, Result};

/// The fingerprints in a text, which separates them by commas: in upper case and without blanks, sorted.
pub(super) fn checked(given: &str) -> Result<Vec<String>> {
    let mut checked = given.split(',').map(normal).collect::<Result<Vec<_>>>()?;
    checked.sort();
    checked.dedup();
    Ok(checked)
}

/// The fingerprint in upper case and without blanks. A short id is refused: anybody makes a key with the same one.
fn normal(given: &str) -> Result<String> {
    let digits: String = given.chars().filter(|c| *c != ' ').collect::<String>().to_ascii_uppercase();
    let digits = digits.strip_prefix("0X").unwrap_or(&digits);
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(invalid("it has characters other than hexadecimal digits and blanks"));
    }
    match digits.len() {
        40 | 64 => Ok(digits.to_owned()),
        8 | 16 => Err(invalid("a short key id can be forged")),
        other => Err(invalid(&format!("it has {other} digits"))),
    }
}

fn invalid(reason: &str) -> Problem {
    let message = format!("the key's whole fingerprint is expected, 40 or 64 hexadecimal digits: {reason}");
    Problem::validation("INVALID_FINGERPRINT", message)
        .remedy("Take the fingerprint from the page of the repository's makers, not from the key itself")
}

#[cfg(test)]
mod tests {
    use super::normal;

    #[test]
    fn a_fingerprint_is_whole() {
        let whole = "4BEBBC1013BA745C96D1136A809E4947E4034791";
        let spaced = "4beb bc10 13ba 745c 96d1  136a 809e 4947 e403 4791";
        for given in [whole, spaced, &format!("0x{whole}")] {
            assert_eq!(normal(given).expect(given), whole);
        }
        assert_eq!(normal(&"a".repeat(64)).expect("v6"), "A".repeat(64));
        for (given, said) in [
            ("E4034791", "forged"),
            ("0x809E4947E4034791", "forged"),
            (&whole[1..], "39 digits"),
            ("", "0 digits"),
            ("4BEB:BC10", "characters"),
            ("ключ", "characters"),
        ] {
            let problem = normal(given).expect_err(given);
            assert_eq!(problem.code, "INVALID_FINGERPRINT");
            assert!(problem.message.contains(said), "{given}: {}", problem.message);
        }
    }
}
