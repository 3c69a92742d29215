//! Parts of apt-get's output: headings with names below them, and errors.

/// The names below the first heading that begins with this text. apt-get indents them, prints several in a line, and
/// marks purged ones with `*`. It writes a package of another architecture as `name:arch`. With `APT::Get::Show-Versions`
/// in apt's configuration, each name has its own line with the versions in parentheses.
pub(crate) fn names_below(text: &str, heading: &str) -> Vec<String> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
    let indented = lines.by_ref().take_while(|line| line.starts_with("  "));
    let words = indented.flat_map(|line| line.split(" (").next().unwrap_or(line).split_whitespace());
    let names = words.map(|name| name.trim_end_matches('*'));
    let mut names: Vec<_> = names.map(|name| name.split(':').next().unwrap_or(name).to_owned()).collect();
    names.dedup();
    names
}

/// The lines of stderr that apt marks as errors, without the mark. All of stderr where no line is marked.
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

    /// The texts come from `full-upgrade` and `purge` of apt 2.6.1, without and with `-o APT::Get::Show-Versions=true`.
    #[test]
    fn a_name_is_one_whatever_stands_behind_it() {
        let kept = "The following packages have been kept back";
        let plain = "Calculating upgrade...\nThe following packages have been kept back:\n  lab-needs only386:i386\n\
            The following packages will be upgraded:\n  lab-hello lab-pri\n";
        assert_eq!(names_below(plain, kept), ["lab-needs", "only386"]);
        let versions = "Calculating upgrade...\nThe following packages have been kept back:\n   lab-needs (1.0 => 2.0)\n   \
            only386:i386 (1.0 => 2.0)\nThe following packages will be upgraded:\n   lab-hello (1.0 => 2.0)\n";
        assert_eq!(names_below(versions, kept), ["lab-needs", "only386"]);
        let removed =
            "The following packages will be REMOVED:\n   lab-hello* (2.0)\n0 upgraded, 0 newly installed\n";
        assert_eq!(names_below(removed, "The following packages will be REMOVED"), ["lab-hello"]);
    }
}
