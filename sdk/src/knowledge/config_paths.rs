//! Paths of configuration in profiles, and the files that they cover.

/// The directory above the first wildcard, or the path itself.
pub fn root(path: &str) -> String {
    let literal = path.split('*').next().unwrap_or(path);
    let end = if literal.len() < path.len() { literal.rfind('/').unwrap_or(0) } else { literal.len() };
    literal[..end].trim_end_matches('/').to_owned()
}

/// Whether a profile's path covers a file. `*` stands for any part of a name and `**` for any depth; a path with `/` at
/// its end covers everything in that directory.
pub fn covers(pattern: &str, path: &str) -> bool {
    if let Some(directory) = pattern.strip_suffix('/') {
        return path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
    }
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    covers_names(&pattern, &path)
}

fn covers_names(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (["**", rest @ ..], _) => (0..=path.len()).any(|taken| covers_names(rest, &path[taken..])),
        ([first, pattern @ ..], [name, path @ ..]) => covers_name(first, name) && covers_names(pattern, path),
        _ => false,
    }
}

fn covers_name(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(behind) = name.strip_prefix(head) else { return false };
    (0..=behind.len())
        .filter(|taken| behind.is_char_boundary(*taken))
        .any(|taken| covers_name(rest, &behind[taken..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_profiles_cover_files() {
        for (pattern, path, expected) in [
            ("/etc/a.conf", "/etc/a.conf", true),
            ("/etc/a.conf", "/etc/a.conf.bak", false),
            ("/etc/a/*.conf", "/etc/a/b.conf", true),
            ("/etc/a/*.conf", "/etc/a/b/c.conf", false),
            ("/etc/a/*.conf", "/etc/a/b.confx", false),
            ("/etc/a/**/b-*.conf", "/etc/a/x/y/b-1.conf", true),
            ("/etc/a/**", "/etc/a/x/y", true),
            ("/etc/a/", "/etc/a/x/y", true),
            ("/etc/a/", "/etc/ab", false),
            ("/etc/*/main/*", "/etc/15/main/x", true),
            ("/etc/a*b*c", "/etc/aXbYc", true),
        ] {
            assert_eq!(covers(pattern, path), expected, "{pattern} {path}");
        }
        for (path, expected) in [
            ("/etc/a.conf", "/etc/a.conf"),
            ("/etc/a/*.conf", "/etc/a"),
            ("/etc/a/**", "/etc/a"),
            ("/etc/a/", "/etc/a"),
            ("/etc/*/x", "/etc"),
        ] {
            assert_eq!(root(path), expected);
        }
    }
}
