//! What apt-get prints besides: headings with the names below them.

/// Names below the first heading that begins so, as apt-get lists them: indented, several in a line, each perhaps with
/// a `*` (purged) behind it.
pub(crate) fn names_below(text: &str, heading: &str) -> Vec<String> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
    let indented = lines.by_ref().take_while(|line| line.starts_with("  "));
    let words = indented.flat_map(str::split_whitespace);
    words.map(|name| name.trim_end_matches('*').to_owned()).collect()
}

/// The lines of stderr that apt marks as errors, without the mark; all of it where none is marked.
pub(crate) fn errors(stderr: &str) -> String {
    let marked: Vec<_> = stderr.lines().filter_map(|line| line.strip_prefix("E: ")).collect();
    let said = if marked.is_empty() { stderr.trim().to_owned() } else { marked.join("; ") };
    said.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_below_their_heading_and_end_with_the_indentation() {
        let text =
            "a\nThe following packages have been kept back:\n  x y*\n  z\nThe following NEW packages\n  q\n";
        assert_eq!(names_below(text, "The following packages have been kept back"), ["x", "y", "z"]);
        assert!(names_below(text, "The following packages will be REMOVED").is_empty());
    }
}
