//! Zones and policies as `firewall-cmd --list-all-zones` prints them: a name, then lines `  KEY: VALUES`, and below some keys
//! one line for each value, behind a tab.

/// A zone or a policy.
#[derive(Default)]
pub(crate) struct Block {
    pub name: String,
    /// Keys with the rest of their line, and the lines below.
    entries: Vec<(String, String, Vec<String>)>,
}

pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(below) = line.strip_prefix('\t') {
            if let Some((_, _, lines)) = blocks.last_mut().and_then(|block| block.entries.last_mut()) {
                lines.push(below.trim().to_owned());
            }
        } else if let Some(entry) = line.strip_prefix("  ") {
            let (key, value) = entry.split_once(':').unwrap_or((entry, ""));
            if let Some(block) = blocks.last_mut() {
                block.add(key.trim(), value.trim().to_owned());
            }
        } else {
            // `public (active)`, and in newer versions `public (default, active)`.
            let name = line.split(" (").next().unwrap_or(line).trim();
            blocks.push(Block::named(name));
        }
    }
    blocks
}

pub(crate) fn find<'a>(blocks: &'a [Block], name: &str) -> Option<&'a Block> {
    blocks.iter().find(|block| block.name == name)
}

impl Block {
    /// A block without values.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), entries: Vec::new() }
    }

    pub(crate) fn add(&mut self, key: &str, value: String) {
        self.entries.push((key.to_owned(), value, Vec::new()));
    }

    /// Adds a key whose values have a line each.
    pub(crate) fn add_lines(&mut self, key: &str, lines: Vec<String>) {
        self.entries.push((key.to_owned(), String::new(), lines));
    }

    fn entry(&self, key: &str) -> Option<&(String, String, Vec<String>)> {
        self.entries.iter().find(|(known, ..)| known == key)
    }

    pub(crate) fn value(&self, key: &str) -> &str {
        self.entry(key).map_or("", |(_, value, _)| value.as_str())
    }

    pub(crate) fn words(&self, key: &str) -> Vec<String> {
        self.value(key).split_whitespace().map(str::to_owned).collect()
    }

    /// The lines below a key. Older versions write a single value behind the key itself.
    pub(crate) fn lines(&self, key: &str) -> Vec<&str> {
        let Some((_, value, lines)) = self.entry(key) else { return Vec::new() };
        std::iter::once(value.as_str())
            .chain(lines.iter().map(String::as_str))
            .filter(|line| !line.is_empty())
            .collect()
    }
}
