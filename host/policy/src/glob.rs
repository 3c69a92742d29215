//! Globs over words and paths. The words themselves may have unknown parts.
//!
//! Nobody knows here what a shell's expansion becomes. Such a word has [`ANY`] (an expansion: any text) or [`SOME`] (a
//! wildcard: any text without a slash) in it. A glob may match such a word if it matches a text that the word can become.

use host_base::path_glob;

/// Stands in a word for the result of a shell's expansion. It is a private-use character that no program's grammar has. In a
/// real argv it only makes the verdict more careful.
pub(super) const ANY: char = '\u{f8fe}';
/// Stands in a word for the text that a shell's wildcard matches within one component of a path.
pub(super) const SOME: char = '\u{f8ff}';

/// A component that is [`SOME`] alone.
pub(super) const SOME_TEXT: &str = "\u{f8ff}";

/// Whether a glob or a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Met {
    No,
    /// The glob or the rule matches if an unknown part becomes a certain text.
    Maybe,
    Yes,
}

impl Met {
    pub(super) fn sure(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }

    fn possible(yes: bool) -> Self {
        if yes { Self::Maybe } else { Self::No }
    }
}

/// Whether the word has an unknown part.
pub(super) fn is_open(word: &str) -> bool {
    // Both characters begin with the same byte, which hardly any text has.
    word.as_bytes().contains(&0xef) && word.contains([ANY, SOME])
}

/// Whether a glob matches a word. `*` stands for any text, `?` for one character. The time is linear in the word.
///
/// A glob that begins with `~` ignores the case of letters.
pub(super) fn word(glob: &str, word: &str) -> Met {
    if let Some(glob) = glob.strip_prefix('~') {
        return self::word(glob, &word.to_ascii_lowercase());
    }
    // Most words differ in their first byte. The characters for unknown parts have a first byte of their own.
    if let ([first, ..], [of_word, ..]) = (glob.as_bytes(), word.as_bytes())
        && first != of_word
        && !matches!(first, b'*' | b'?')
        && *of_word != 0xef
    {
        return Met::No;
    }
    if !is_open(word) {
        return Met::sure(covers(glob, word));
    }
    Met::possible(ends_agree(glob, word))
}

/// Whether a glob matches a word without unknown parts. It only ever goes back to the last star.
fn covers(glob: &str, word: &str) -> bool {
    let (glob, word) = (glob.as_bytes(), word.as_bytes());
    let is_inner = |byte: Option<&u8>| byte.is_some_and(|byte| byte & 0xc0 == 0x80);
    let (mut g, mut w) = (0, 0);
    let mut last_star = None;
    while w < word.len() {
        match glob.get(g) {
            Some(b'*') => {
                last_star = Some((g, w));
                g += 1;
            }
            Some(b'?') => {
                g += 1;
                w += 1;
                while is_inner(word.get(w)) {
                    w += 1;
                }
            }
            Some(byte) if *byte == word[w] => {
                g += 1;
                w += 1;
            }
            _ => match last_star {
                // A star at the end matches all the rest.
                Some((star, _)) if star + 1 == glob.len() => return true,
                Some((star, taken)) => {
                    last_star = Some((star, taken + 1));
                    (g, w) = (star + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|byte| *byte == b'*')
}

/// Whether glob and word agree before the first unknown part of either, and behind the last one.
fn ends_agree(glob: &str, word: &str) -> bool {
    let fixed = |text: &str, open: &[char]| match (text.find(open), text.rfind(open)) {
        (Some(first), Some(last)) => {
            let width = text[last..].chars().next().map_or(0, char::len_utf8);
            (first, text.len() - last - width)
        }
        _ => (text.len(), text.len()),
    };
    let (of_glob, of_word) = (fixed(glob, &['*', '?']), fixed(word, &[ANY, SOME]));
    let (head, tail) = (of_glob.0.min(of_word.0), of_glob.1.min(of_word.1));
    let (glob, word) = (glob.as_bytes(), word.as_bytes());
    glob[..head] == word[..head] && glob[glob.len() - tail..] == word[word.len() - tail..]
}

/// A glob over absolute paths: `*` stands for text within a component, `**` for any number of components, and at the end for
/// at least one. The component `[*]` matches a shell's wildcard itself, as in `rm -rf /*`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PathGlob {
    components: Vec<Box<str>>,
    /// Whether one of the components is `[*]`.
    is_wildcard: bool,
}

impl PathGlob {
    /// Parses a glob. `{a,b}` stands for each of its alternatives, so one text may be several globs.
    pub(super) fn parse(text: &str) -> Result<Vec<Self>, String> {
        alternatives(text)?.iter().map(|text| Self::parse_one(text)).collect()
    }

    fn parse_one(text: &str) -> Result<Self, String> {
        let fault = |what: &str| Err(format!("the path {text:?}: {what}"));
        if !text.starts_with('/') {
            return fault("expected an absolute path, as in /var/log/**");
        }
        if let Some(c) = text.replace("/[*]", "").chars().find(|c| "?[]\\".contains(*c) || c.is_control()) {
            return fault(&format!("expected only `*`, `**` and {{a,b}} as wildcards, found {c:?}"));
        }
        let mut components: Vec<Box<str>> = Vec::new();
        for component in text[1..].split('/').filter(|_| text != "/") {
            match component {
                "" | "." | ".." => return fault("expected no empty, `.` or `..` component"),
                "**" => {}
                "[*]" => {
                    components.push(SOME_TEXT.into());
                    continue;
                }
                _ if component.contains("**") => return fault("expected `**` to be a whole component"),
                _ => {}
            }
            components.push(component.into());
        }
        if components.last().is_some_and(|last| &**last == "**") {
            components.push("*".into());
        }
        let is_wildcard = components.iter().any(|component| &**component == SOME_TEXT);
        Ok(Self { components, is_wildcard })
    }

    /// The glob's first component where that is a plain name, or else the last one.
    pub(super) fn anchor(&self) -> Anchor<'_> {
        match (self.components.first(), self.components.last()) {
            (Some(first), _) if !first.contains('*') => Anchor::First(first),
            (_, Some(last)) if !last.contains('*') => Anchor::Last(last),
            _ => Anchor::None,
        }
    }

    /// Whether the glob matches a path with these components, of which `open` says what is unknown.
    pub(super) fn meets(&self, path: &[&str], open: Open) -> Met {
        if self.is_wildcard {
            let mut both = self.components.iter().zip(path);
            return Met::sure(
                path.len() == self.components.len() && both.all(|(glob, name)| **glob == **name),
            );
        }
        match open {
            Open::No => Met::sure(path_glob::covers(&self.components, path, covers)),
            Open::Component => Met::possible(path_glob::covers(&self.components, path, |glob, name| {
                word(glob, name) != Met::No
            })),
            Open::Path => Met::possible(self.agrees(path)),
        }
    }

    /// Whether glob and path agree before the first part that may be several components, and behind the last one.
    fn agrees(&self, path: &[&str]) -> bool {
        fn side<'a>(mut both: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
            both.find_map(|(glob, name)| match (glob, open_in(name)) {
                ("**", _) => Some(true),
                // The expansion may be several components, but the text before and behind it is known.
                (_, Open::Path) => Some(name.chars().all(|c| c == ANY) || word(glob, name) != Met::No),
                _ if word(glob, name) == Met::No => Some(false),
                _ => None,
            })
            .unwrap_or(true)
        }
        let globs = || self.components.iter().map(AsRef::as_ref);
        side(globs().zip(path.iter().copied())) && {
            // `/x/**` is kept as `/x/**/*`, whose last component matches anything.
            let ends_openly = matches!(&self.components[..], [.., stars, _] if &**stars == "**");
            ends_openly || side(globs().rev().zip(path.iter().rev().copied()))
        }
    }
}

/// The component by which the index finds a glob.
pub(super) enum Anchor<'a> {
    First(&'a str),
    Last(&'a str),
    None,
}

/// The unknown part of a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Open {
    No,
    /// A part of a component is unknown.
    Component,
    /// The number of components is unknown.
    Path,
}

/// The unknown part of a path.
pub(super) fn open(path: &[&str]) -> Open {
    path.iter().map(|name| open_in(name)).max().unwrap_or(Open::No)
}

fn open_in(name: &str) -> Open {
    match is_open(name) {
        false => Open::No,
        true if name.contains(ANY) => Open::Path,
        true => Open::Component,
    }
}

/// The texts that braces such as `{a,b}` stand for. Braces may not be nested.
pub(super) fn alternatives(text: &str) -> Result<Vec<String>, String> {
    let Some((head, rest)) = text.split_once('{') else {
        return match text.contains('}') {
            true => Err(format!("{text:?}: expected `{{` before `}}`")),
            false => Ok(vec![text.to_owned()]),
        };
    };
    let Some((inner, tail)) = rest.split_once('}') else {
        return Err(format!("{text:?}: expected `}}` after `{{`"));
    };
    // `{}`, as find(1) uses it, stands for itself.
    if inner.is_empty() {
        let tails = alternatives(tail)?;
        return Ok(tails.iter().map(|tail| format!("{head}{{}}{tail}")).collect());
    }
    if inner.contains('{') || head.contains('}') {
        return Err(format!("{text:?}: expected no braces within braces"));
    }
    let tails = alternatives(tail)?;
    let both = inner.split(',').flat_map(|one| tails.iter().map(move |tail| format!("{head}{one}{tail}")));
    Ok(both.collect())
}
