//! Matches the components of a path against those of a glob, in which `**` stands for any number of components.

/// Whether a glob matches a path, where `covers` says whether one component of the glob matches one of the path. The search
/// goes back only to the last `**`. That finds a match where there is one, and takes time linear in the path for each
/// component of the glob.
pub fn covers<G: AsRef<str>>(glob: &[G], path: &[&str], covers: impl Fn(&str, &str) -> bool) -> bool {
    let (mut g, mut p) = (0, 0);
    let mut last_star = None;
    while p < path.len() {
        match glob.get(g).map(AsRef::as_ref) {
            Some("**") => {
                last_star = Some((g, p));
                g += 1;
            }
            Some(component) if covers(component, path[p]) => {
                g += 1;
                p += 1;
            }
            _ => match last_star {
                Some((star, taken)) => {
                    last_star = Some((star, taken + 1));
                    (g, p) = (star + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|component| component.as_ref() == "**")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_stars_stand_for_any_number_of_components() {
        for (glob, path, is_covered) in [
            ("a", "a", true),
            ("a", "b", false),
            ("a", "a/b", false),
            ("a/**", "a", true),
            ("a/**", "a/b/c", true),
            ("**/c", "a/b/c", true),
            ("**/c", "a/c/b", false),
            ("a/**/b/**/c", "a/x/b/b/y/c", true),
            ("a/**/b/**/c", "a/x/c/b/y", false),
            ("**/b/c", "b/b/c", true),
        ] {
            let (globs, parts): (Vec<&str>, Vec<&str>) =
                (glob.split('/').collect(), path.split('/').collect());
            assert_eq!(covers(&globs, &parts, |glob, name| glob == name), is_covered, "{glob} {path}");
        }
    }
}
