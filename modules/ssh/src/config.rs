//! OpenSSH's client configuration (ssh_config(5)): its blocks and their settings, in the order in which ssh meets them,
//! included files among them. Of most settings the first that holds for a host is taken.

pub(crate) mod add;
mod edit;
pub(crate) mod files;
pub(crate) mod keyword;
pub(crate) mod line;
pub(crate) mod list;
mod pattern;
pub(crate) mod value;
mod way;

use line::Said;

/// As deep as ssh goes.
const DEEPEST: usize = 16;

/// All that is known of it.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) blocks: Vec<Block>,
    pub(crate) settings: Vec<Setting>,
    /// What couldn't be read, a sentence each.
    pub(crate) unread: Vec<String>,
}

/// What settings are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) file: String,
    /// Where it begins, from 1.
    pub(crate) line: usize,
    pub(crate) head: Head,
    /// The block that includes the file.
    pub(crate) within: Option<usize>,
}

/// How it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// What is before the first block of a file.
    None,
    Host(Vec<String>),
    Match(Vec<String>),
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) block: usize,
    pub(crate) line: usize,
    pub(crate) keyword: String,
    pub(crate) words: Vec<String>,
    /// As it stands there.
    pub(crate) text: String,
}

impl Setting {
    /// Keywords are of either case.
    pub(crate) fn is(&self, keyword: &str) -> bool {
        self.keyword.eq_ignore_ascii_case(keyword)
    }
}

/// Whether a block is about a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holds {
    No,
    /// That is up to what isn't known here: an address, a program's answer.
    Maybe,
    Yes,
}

/// A line that ssh doesn't read, so that it reads nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) why: &'static str,
}

/// An included file: its path, and what is in it or why that isn't known.
pub(crate) type Included = (String, Result<String, String>);

impl Config {
    /// From a file's text. `include` finds what an argument of Include names, or says why it isn't followed.
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
        said: &Said<'_>,
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

    fn setting(&mut self, block: usize, line: usize, said: &Said<'_>, words: Vec<String>) {
        let (keyword, text) = (said.keyword.to_owned(), said.value().to_owned());
        self.settings.push(Setting { block, line, keyword, words, text });
    }

    /// Whether what is in a block is about the host of this alias.
    pub(crate) fn holds(&self, block: usize, alias: &str) -> Holds {
        let mut holds = Holds::Yes;
        let mut next = Some(block);
        while let Some(block) = next.and_then(|block| self.blocks.get(block)) {
            holds = holds.min(match &block.head {
                Head::None => Holds::Yes,
                Head::Host(patterns) if pattern::lists(patterns.iter().map(String::as_str), alias) => {
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

/// ssh_config(5), Match: all criteria must hold. Those that are known here are `all` and `originalhost`.
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
                let of_alias = pattern::lists(value.split(','), alias);
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
