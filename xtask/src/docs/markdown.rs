//! Reads a Markdown file: the links in it, the anchors that links may lead to, and the names in code spans.

use std::collections::BTreeSet;

/// One file.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The targets of its links as they are written, each with the number of its line.
    pub(super) links: Vec<(usize, String)>,
    /// The code spans outside code blocks, each with the number of its line.
    pub(super) code: Vec<(usize, String)>,
    /// The numbers of lines in which a code span begins and doesn't end. What they name is unknown.
    pub(super) unclosed: Vec<usize>,
    /// The anchors of its headings, as mdBook and GitHub make them.
    pub(super) anchors: BTreeSet<String>,
}

impl Page {
    pub(super) fn read(text: &str) -> Page {
        let mut page = Page::default();
        let mut is_code_block = false;
        for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
            if line.trim_start().starts_with("```") {
                is_code_block = !is_code_block;
            } else if !is_code_block {
                page.add(number, line);
            }
        }
        page
    }

    fn add(&mut self, number: usize, line: &str) {
        if let Some(heading) = line.strip_prefix('#') {
            self.add_heading(heading.trim_start_matches('#').trim());
        }
        if !line.matches('`').count().is_multiple_of(2) {
            self.unclosed.push(number);
        }
        let mut prose = String::new();
        for (index, part) in line.split('`').enumerate() {
            match index % 2 {
                0 => prose.push_str(part),
                _ => self.code.push((number, part.to_owned())),
            }
        }
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        self.links.extend(targets.map(|(target, _)| (number, target.to_owned())));
    }

    /// Adds the anchor of a heading. Where the anchor is taken, a number is added to it.
    fn add_heading(&mut self, heading: &str) {
        let anchor = anchor(heading);
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let free =
            std::iter::once(anchor.clone()).chain(numbered).find(|anchor| !self.anchors.contains(anchor));
        self.anchors.extend(free);
    }
}

fn anchor(heading: &str) -> String {
    let kept = |character: char| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        _ if character.is_alphanumeric() => Some(character.to_ascii_lowercase()),
        _ => None,
    };
    heading.chars().filter_map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code_only() {
        let page = Page::read("See [a](a.md) and [b](b.md#c).\n```\n[no](code.md)\n```\n`[no](span.md)` x\n");
        assert_eq!(page.links, [(1, "a.md".to_owned()), (1, "b.md#c".to_owned())]);
        assert_eq!(page.code, [(5, "[no](span.md)".to_owned())]);
    }

    #[test]
    fn a_heading_has_the_anchor_that_mdbook_gives_it() {
        let page = Page::read("# What `call` does, and why\n## Again\n## Again\n");
        let anchors: Vec<_> = page.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["again", "again-1", "what-call-does-and-why"]);
    }
}
