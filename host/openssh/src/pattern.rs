//! Patterns of names as ssh_config(5) has them under PATTERNS: `*`, `?`, and `!` in front.

/// Whether a list of patterns holds the name: one of them must, and none that is negated may.
pub(super) fn lists<'a>(patterns: impl IntoIterator<Item = &'a str>, name: &str) -> bool {
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

/// Whether the whole name is as the pattern says. No character but the two has a meaning.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut here) = (0, 0);
    // Behind the last star, and where what follows it was last tried: only the last one ever needs to take more.
    let mut again = None;
    while here < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                again = Some((at, here));
            }
            Some(&byte) if byte == b'?' || byte == name[here] => {
                at += 1;
                here += 1;
            }
            _ => {
                let Some((behind, tried)) = again else { return false };
                again = Some((behind, tried + 1));
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
    fn a_list_holds_what_a_pattern_names_and_no_negated_one_does() {
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
            assert_eq!(lists(patterns.split(','), name), held, "{patterns} and {name}");
        }
    }

    #[test]
    fn many_stars_take_no_longer_than_their_number_times_the_name() {
        assert!(!lists([&*"*a".repeat(500)], &"a".repeat(400)));
    }
}
