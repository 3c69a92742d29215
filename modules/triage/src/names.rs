//! How far the words of a complaint mean a name on the machine: `backup of the shop` means `shop-backup`.

/// The length from which on the beginning of a word stands for it: `synchronized` means `sync`.
const BEGINNING: usize = 4;

/// All of a name's parts are among the words, in percent.
pub(crate) const WHOLE: u32 = 100;

/// The share of the name's parts that the words have, in percent. The words are in lower case.
pub(crate) fn meant(name: &str, words: &[String]) -> u32 {
    let name = name.to_lowercase();
    if words.contains(&name) {
        return WHOLE;
    }
    let parts: Vec<&str> = name
        .split(|c: char| !c.is_alphanumeric())
        .filter(|part| part.len() > 1 && !is_number(part))
        .collect();
    let found = parts.iter().filter(|part| words.iter().any(|word| is_it(part, word))).count();
    match parts.len() {
        0 => 0,
        all => u32::try_from(found * WHOLE as usize / all).unwrap_or(0),
    }
}

fn is_number(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word means a part of a name: both are the same, or one of them begins with the other.
fn is_it(part: &str, word: &str) -> bool {
    let begins = |long: &str, short: &str| short.len() >= BEGINNING && long.starts_with(short);
    part == word || begins(word, part) || begins(part, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_meant_by_its_parts() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (name, text, share) in [
            ("nginx", "nginx is down", 100),
            ("shop-backup", "there was no backup of the shop", 100),
            ("shop-sync", "the shop isn't synchronized", 100),
            ("shop-worker", "the shop is slow", 50),
            ("Shop", "the shop is slow", 100),
            ("php8.2-fpm", "php8.2-fpm hangs", 100),
            ("getty@tty1", "nothing of it", 0),
            ("ssh", "the ssharp server", 0),
            ("", "anything", 0),
            ("12-34", "12 34", 0),
        ] {
            assert_eq!(meant(name, &words(text)), share, "{name}: {text}");
        }
    }
}
