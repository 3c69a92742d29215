//! Patterns of names (ssh_config(5), PATTERNS): `*`, `?`, and `!` in front.

/// Whether a list of patterns matches a name: at least one pattern must match it, and no negated one.
pub fn matches_list<'a>(patterns: impl IntoIterator<Item = &'a str>, name: &str) -> bool {
    let mut listed = false;
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(negated) if matches(negated, name) => return false,
            Some(_) => {}
            None => listed |= matches(pattern, name),
        }
    }
    listed
}

/// Whether a pattern matches the whole name. Only `*` and `?` have a meaning.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut here) = (0, 0);
    // The place after the last star, and the place in the name where the rest of the pattern was last tried. Only the last
    // star ever needs to take more characters.
    let mut retry = None;
    while here < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                retry = Some((at, here));
            }
            Some(&byte) if byte == b'?' || byte == name[here] => {
                at += 1;
                here += 1;
            }
            _ => {
                let Some((behind, tried)) = retry else { return false };
                retry = Some((behind, tried + 1));
                (at, here) = (behind, tried + 1);
            }
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_matches_what_a_pattern_matches_and_no_negated_one_does() {
        for (patterns, name, held) in [
            ("web", "web", true),
            ("web", "web2", false),
            ("web", "", false),
            ("*", "", true),
            ("*", "web", true),
            ("?", "", false),
            ("web-?", "web-1", true),
            ("web-?", "web-12", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*a*b*c", "xaxbxbc", true),
            ("*a*b*c", "xaxbxcb", false),
            ("[*.example.com]:2222", "[a.example.com]:2222", true),
            ("[ab]", "a", false),
            ("web,db", "db", true),
            ("*,!web", "web", false),
            ("!web,*", "web", false),
            ("!web", "db", false),
            ("", "", true),
        ] {
            assert_eq!(matches_list(patterns.split(','), name), held, "{patterns} and {name}");
        }
    }

    #[test]
    fn many_stars_take_no_longer_than_their_number_times_the_name() {
        assert!(!matches_list([&*"*a".repeat(500)], &"a".repeat(400)));
    }
}
