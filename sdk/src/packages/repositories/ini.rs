//! Files of sections with `name=value` lines, as dnf and yum read them.

/// A section of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// The name between the brackets.
    pub name: String,
    /// The options, each with its line. The lines of a value that goes on are connected by line breaks.
    pub options: Vec<(String, String, usize)>,
    /// The first and the last line, counted from 1. Comments and blank lines behind the last option don't belong to it.
    pub lines: (usize, usize),
}

impl Section {
    /// The last value of the option.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(known, ..)| known == name).map(|(_, value, _)| value.as_str())
    }

    /// The words of the option's value, which blanks, commas and line breaks separate.
    pub fn words(&self, name: &str) -> Vec<String> {
        let value = self.get(name).unwrap_or_default();
        value.split([' ', '\t', '\n', ',']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }
}

/// The sections of the text, and the lines that can't be read, each with the reason.
pub fn sections(text: &str) -> (Vec<Section>, Vec<(usize, &'static str)>) {
    let (mut sections, mut malformed) = (Vec::<Section>::new(), Vec::new());
    for (line, number) in text.trim_start_matches('\u{feff}').lines().zip(1..) {
        let trimmed = line.trim();
        if trimmed.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with('[') {
            match line.trim_end().strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                Some((name, _)) if !name.is_empty() => {
                    sections.push(Section {
                        name: name.to_owned(),
                        lines: (number, number),
                        ..Section::default()
                    });
                }
                _ => malformed.push((number, "a section's name is expected in brackets")),
            }
            continue;
        }
        let Some(section) = sections.last_mut() else {
            malformed.push((number, "a section in brackets is expected first"));
            continue;
        };
        if line.starts_with([' ', '\t']) {
            match section.options.last_mut() {
                Some((_, value, _)) => {
                    value.push('\n');
                    value.push_str(trimmed);
                    section.lines.1 = number;
                }
                None => malformed.push((number, "a line that goes on has nothing before it")),
            }
            continue;
        }
        match line.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                section.options.push((name.trim().to_owned(), value.trim().to_owned(), number));
                section.lines.1 = number;
            }
            _ => malformed.push((number, "name=value is expected")),
        }
    }
    (sections, malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_options_that_go_on_and_lines_that_are_wrong_are_told() {
        let text = "x=1\n[a]\n# c\nbaseurl=https://a/1,\n  https://a/2\n\thttps://a/3\n; c\nenabled = 0\n\n[b]\noops\nname=B=C\n[\n";
        let (found, malformed) = sections(text);
        assert_eq!(found[0].words("baseurl"), ["https://a/1", "https://a/2", "https://a/3"]);
        assert_eq!((found[0].get("enabled"), found[0].lines), (Some("0"), (2, 8)));
        assert_eq!((found[1].get("name"), found[1].lines), (Some("B=C"), (10, 12)));
        assert_eq!(malformed.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 11, 13]);
        assert_eq!(sections(""), (vec![], vec![]));
    }
}
