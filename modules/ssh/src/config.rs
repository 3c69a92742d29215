//! OpenSSH's client configuration (ssh_config(5)): its blocks and settings in the order in which ssh reads them,
//! including those of included files. For most settings the first one that matches a host applies.

mod destination;
mod edit;
pub(crate) mod files;
pub(crate) mod line;
pub(crate) mod ssh_config_add;
pub(crate) mod ssh_config_list;
pub(crate) mod value;

use host_ssh_syntax::matches_list;
use line::Directive;

/// The depth of includes that ssh allows.
const DEEPEST: usize = 16;

/// A configuration as far as it could be read.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) blocks: Vec<Block>,
    pub(crate) settings: Vec<Setting>,
    /// Sentences that say what couldn't be read and why.
    pub(crate) unread: Vec<String>,
}

/// A block of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) file: String,
    /// The number of its first line, from 1.
    pub(crate) line: usize,
    pub(crate) head: Head,
    /// The block that includes the file, where the file is included.
    pub(crate) within: Option<usize>,
}

/// The head of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// The settings before the first block of a file have no head.
    None,
    Host(Vec<String>),
    Match(Vec<String>),
}

/// A setting: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) block: usize,
    pub(crate) line: usize,
    pub(crate) keyword: String,
    pub(crate) words: Vec<String>,
    /// The value as it is in the file.
    pub(crate) text: String,
}

impl Setting {
    /// Whether the setting has this keyword, in upper or lower case.
    pub(crate) fn is(&self, keyword: &str) -> bool {
        self.keyword.eq_ignore_ascii_case(keyword)
    }
}

/// Whether a block applies to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holds {
    No,
    /// The block applies or not, depending on an address or on the result of a program.
    Maybe,
    Yes,
}

/// A line that ssh can't read. ssh then reads nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) why: &'static str,
}

/// An included file: its path, and its text or the reason why it couldn't be read.
pub(crate) type Included = (String, Result<String, String>);

impl Config {
    /// Parses the text of a file. `include` finds the files that an argument of Include names, or says why it isn't
    /// followed.
    pub(crate) fn read(
        path: &str,
        text: &str,
        include: &dyn Fn(&str) -> Result<Vec<Included>, String>,
    ) -> Result<Self, Broken> {
        let mut config = Self::default();
        config.file(path, text, None, 0, include)?;
        Ok(config)
    }

    fn file(
        &mut self,
        path: &str,
        text: &str,
        within: Option<usize>,
        depth: usize,
        include: &dyn Fn(&str) -> Result<Vec<Included>, String>,
    ) -> Result<(), Broken> {
        let mut block = self.block(path, 1, Head::None, within);
        for line in line::lines(text) {
            let broken = |why| Broken { file: path.to_owned(), line: line.number, why };
            let Some(said) = line.said().map_err(broken)? else { continue };
            let words: Vec<String> = said.words.iter().map(|word| word.text.clone()).collect();
            match said.keyword.to_ascii_lowercase().as_str() {
                "host" => block = self.block(path, line.number, Head::Host(words), within),
                "match" => block = self.block(path, line.number, Head::Match(words), within),
                _ => {
                    self.setting(block, line.number, &said, words);
                    if said.keyword.eq_ignore_ascii_case("include") {
                        self.include(block, &said, depth, include)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn include(
        &mut self,
        block: usize,
        said: &Directive<'_>,
        depth: usize,
        include: &dyn Fn(&str) -> Result<Vec<Included>, String>,
    ) -> Result<(), Broken> {
        for word in &said.words {
            if depth + 1 >= DEEPEST {
                self.unread.push(format!("Include {}: files include each other too deeply", word.text));
                return Ok(());
            }
            let found = match include(&word.text) {
                Ok(found) => found,
                Err(why) => {
                    self.unread.push(format!("Include {}: {why}", word.text));
                    continue;
                }
            };
            for (path, text) in found {
                match text {
                    Ok(text) => self.file(&path, &text, Some(block), depth + 1, include)?,
                    Err(why) => self.unread.push(format!("{path}: {why}")),
                }
            }
        }
        Ok(())
    }

    fn block(&mut self, file: &str, line: usize, head: Head, within: Option<usize>) -> usize {
        self.blocks.push(Block { file: file.to_owned(), line, head, within });
        self.blocks.len() - 1
    }

    fn setting(&mut self, block: usize, line: usize, said: &Directive<'_>, words: Vec<String>) {
        let (keyword, text) = (said.keyword.to_owned(), said.value().to_owned());
        self.settings.push(Setting { block, line, keyword, words, text });
    }

    /// Whether a block applies to the host of this alias.
    pub(crate) fn holds(&self, block: usize, alias: &str) -> Holds {
        let mut holds = Holds::Yes;
        let mut next = Some(block);
        while let Some(block) = next.and_then(|block| self.blocks.get(block)) {
            holds = holds.min(match &block.head {
                Head::None => Holds::Yes,
                Head::Host(patterns) if matches_list(patterns.iter().map(String::as_str), alias) => {
                    Holds::Yes
                }
                Head::Host(_) => Holds::No,
                Head::Match(criteria) => matched(criteria, alias),
            });
            next = block.within;
        }
        holds
    }
}

/// Whether the criteria of a Match apply (ssh_config(5)). All of them must hold. Only `all` and `originalhost` are known
/// here.
fn matched(criteria: &[String], alias: &str) -> Holds {
    let mut holds = Holds::Yes;
    let mut rest = criteria.iter();
    while let Some(criterion) = rest.next() {
        let (name, attached) = match criterion.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (criterion.as_str(), None),
        };
        let (is_negated, name) = name.strip_prefix('!').map_or((false, name), |name| (true, name));
        let this = match name.to_ascii_lowercase().as_str() {
            "all" => Holds::Yes,
            "canonical" | "final" => Holds::Maybe,
            name => {
                let value = attached.or_else(|| rest.next().map(String::as_str)).unwrap_or_default();
                let of_alias = matches_list(value.split(','), alias);
                match name {
                    "originalhost" if of_alias != is_negated => Holds::Yes,
                    "originalhost" => Holds::No,
                    _ => Holds::Maybe,
                }
            }
        };
        holds = holds.min(this);
    }
    holds
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
