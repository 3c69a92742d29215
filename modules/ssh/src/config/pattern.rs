//! Patterns of names (ssh_config(5), PATTERNS): `*`, `?`, and `!` in front.

/// Whether a list of patterns holds the name: one of them must, and none that is negated may.
pub(crate) fn lists<'a>(patterns: impl IntoIterator<Item = &'a str>, name: &str) -> bool {
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

/// No character but the two has a meaning. Only the last star ever needs to take more.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut here) = (0, 0);
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
    use super::lists;

    #[test]
    fn a_list_holds_what_a_pattern_names_and_no_negated_one_does() {
        for (patterns, name, held) in [
            ("web", "web", true),
            ("web", "web2", false),
            ("*", "web", true),
            ("web-?", "web-1", true),
            ("web-?", "web-12", false),
            ("*.example.com", "example.com", false),
            ("*a*b*c", "xaxbxbc", true),
            ("*a*b*c", "xaxbxcb", false),
            ("[ab]", "a", false),
            ("web,db", "db", true),
            ("*,!web", "web", false),
            ("!web,*", "web", false),
            ("!web", "db", false),
        ] {
            assert_eq!(lists(patterns.split(','), name), held, "{patterns} and {name}");
        }
    }
}
