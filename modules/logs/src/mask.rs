//! Masks the numbers of a message, so that two lines are the same where only counters, ids and addresses differ.

/// The message with every number, hexadecimal id and address as `#`.
pub(crate) fn mask(message: &str) -> String {
    let mut masked = String::with_capacity(message.len());
    let mut rest = message.trim();
    while let Some(first) = rest.chars().next() {
        if !first.is_ascii_alphanumeric() {
            let after = &rest[first.len_utf8()..];
            // The number of blanks varies with the width of numbers.
            if !(first == ' ' && masked.ends_with(' ')) {
                masked.push(first);
            }
            rest = after;
            continue;
        }
        let end = rest.find(|letter: char| !is_in_word(letter)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        // A colon at the end isn't part of the word.
        let trimmed = word.trim_end_matches(':');
        if is_id(trimmed) {
            masked.push('#');
        } else {
            numbers(trimmed, &mut masked);
        }
        masked.push_str(&word[trimmed.len()..]);
        rest = after;
    }
    masked
}

fn is_in_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == ':'
}

/// Whether a word is an id or an address: `0x1f`, `deadbeef01`, `fe80::1`, `52:54:00:12:34:56`.
fn is_id(word: &str) -> bool {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':');
    let has_digit = digits.bytes().any(|byte| byte.is_ascii_digit());
    let colons = digits.bytes().filter(|byte| *byte == b':').count();
    is_hex && (has_digit && (digits.len() >= 6 || digits.len() < word.len()) || colons >= 2)
}

/// Masks each run of digits in a word, as in `sda1` and `nf_conntrack2`.
fn numbers(word: &str, masked: &mut String) {
    let mut was_digit = false;
    for letter in word.chars() {
        if letter.is_ascii_digit() {
            if !was_digit {
                masked.push('#');
            }
            was_digit = true;
        } else {
            masked.push(letter);
            was_digit = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::mask;
    use proptest::prelude::*;

    #[test]
    fn lines_that_differ_in_numbers_and_addresses_are_the_same() {
        for (one, other) in [
            (
                "Failed password for root from 192.0.2.7 port 50122 ssh2",
                "Failed password for root from 198.51.100.23 port 4 ssh2",
            ),
            ("Accepted connection from fe80::1", "Accepted connection from 2001:db8:0:1::42"),
            ("container 3f2a9c01bb started", "container 99ffe0412a started"),
            ("at 0x7f00aa", "at 0x1"),
            ("CPU took   12 ms", "CPU took 1 ms"),
            ("wlan0: link 52:54:00:12:34:56", "wlan1: link 52:54:00:ab:cd:ef"),
            ("session-c12.scope", "session-c9.scope"),
            ("restart counter is at 3.", "restart counter is at 15."),
        ] {
            assert_eq!(mask(one), mask(other));
        }
    }

    #[test]
    fn lines_that_say_something_else_are_not() {
        for (one, other) in [
            ("Failed password for root", "Failed password for ann"),
            ("added", "faced"),
            ("decade: x", "facade: x"),
            ("1 error", "1 warning"),
            ("", "#"),
        ] {
            assert_ne!(mask(one), mask(other), "{one}");
        }
    }

    proptest! {
        #[test]
        fn a_masked_message_stays_as_it_is_and_holds_no_number(message in ".*") {
            let masked = mask(&message);
            prop_assert_eq!(&mask(&masked), &masked);
            prop_assert!(!masked.bytes().any(|byte| byte.is_ascii_digit()));
        }

        #[test]
        fn whatever_the_numbers_are_the_mask_is_the_same(a in any::<u64>(), b in any::<u64>(), port in any::<u16>()) {
            let line = |number: u64| format!("pid {number} on port {port}: done");
            prop_assert_eq!(mask(&line(a)), mask(&line(b)));
        }
    }
}
