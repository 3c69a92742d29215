//! Globs over words and paths, held against text that may itself leave something open.
//!
//! What a shell would put in a word's place isn't known here, so a word can hold [`ANY`] (an expansion: any text) and
//! [`SOME`] (a wildcard: any text without a slash). A glob meets such a word where it could meet what the word becomes.

/// Stands in a word for what a shell's expansion yields. A private-use character: no program's grammar has it, and in
/// an argv it only makes the judgement more careful.
pub(super) const ANY: char = '\u{f8fe}';
/// Stands in a word for what a shell's wildcard may match within one component of a path.
pub(super) const SOME: char = '\u{f8ff}';

/// [`SOME`] alone, as a component.
pub(super) const SOME_TEXT: &str = "\u{f8ff}";

/// Whether a glob is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Met {
    No,
    /// By what the word may become.
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

/// Whether what a word becomes isn't known.
pub(super) fn is_open(word: &str) -> bool {
    // Both begin with the same byte, which hardly any text has.
    word.as_bytes().contains(&0xef) && word.contains([ANY, SOME])
}

/// Whether a glob, whose `*` stands for any text and `?` for one character, meets a word. Takes time linear in the word.
///
/// A glob behind `~` takes capitals for small letters.
pub(super) fn word(glob: &str, word: &str) -> Met {
    if let Some(glob) = glob.strip_prefix('~') {
        return self::word(glob, &word.to_ascii_lowercase());
    }
    // Most are told apart by where they begin: what is open begins with its own first byte.
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

/// Only the last star seen is ever gone back to.
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
                // What is behind the last star can only be at the end.
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

/// Whether glob and word agree before the first thing that either leaves open, and behind the last one.
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

/// A glob over absolute paths: `*` within a component, `**` for any number of components, at the end at least one. The
/// component `[*]` is a wildcard itself, as in `rm -rf /*`.
#[derive(Clone, Debug)]
pub(super) struct PathGlob {
    components: Vec<Box<str>>,
    /// One of them is a wildcard itself.
    is_wildcard: bool,
}

impl PathGlob {
    /// Reads a glob; `{a,b}` stands for each of its alternatives, so that one text may be several globs.
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

    /// Its first component where that is a plain name, and else its last one.
    pub(super) fn anchor(&self) -> Anchor<'_> {
        match (self.components.first(), self.components.last()) {
            (Some(first), _) if !first.contains('*') => Anchor::First(first),
            (_, Some(last)) if !last.contains('*') => Anchor::Last(last),
            _ => Anchor::None,
        }
    }

    /// Whether it meets a path, given by its components, and by what is open in them.
    pub(super) fn meets(&self, path: &[&str], open: Open) -> Met {
        if self.is_wildcard {
            let mut both = self.components.iter().zip(path);
            return Met::sure(
                path.len() == self.components.len() && both.all(|(glob, name)| **glob == **name),
            );
        }
        match open {
            Open::No => Met::sure(walk(&self.components, path, covers)),
            Open::Component => {
                Met::possible(walk(&self.components, path, |glob, name| word(glob, name) != Met::No))
            }
            Open::Path => Met::possible(self.agrees(path)),
        }
    }

    /// Whether glob and path agree before the first thing that could be several components, and behind the last one.
    fn agrees(&self, path: &[&str]) -> bool {
        fn side<'a>(mut both: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
            both.find_map(|(glob, name)| match (glob, open_in(name)) {
                ("**", _) => Some(true),
                // How much of the component it is can't be told, but what stands before it, or behind it, is there.
                (_, Open::Path) => Some(name.chars().all(|c| c == ANY) || word(glob, name) != Met::No),
                _ if word(glob, name) == Met::No => Some(false),
                _ => None,
            })
            .unwrap_or(true)
        }
        let globs = || self.components.iter().map(AsRef::as_ref);
        side(globs().zip(path.iter().copied())) && {
            // `/x/**` is kept with a `*` behind it, which nothing needs to agree with.
            let ends_openly = matches!(&self.components[..], [.., stars, _] if &**stars == "**");
            ends_openly || side(globs().rev().zip(path.iter().rev().copied()))
        }
    }
}

/// What globs are looked up by.
pub(super) enum Anchor<'a> {
    First(&'a str),
    Last(&'a str),
    None,
}

/// What isn't known of a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Open {
    No,
    /// A part of a component.
    Component,
    /// How many components it has.
    Path,
}

/// What isn't known of a path.
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

/// Only the last `**` seen is ever gone back to, which finds a match where there is one.
fn walk(glob: &[Box<str>], path: &[&str], covers: impl Fn(&str, &str) -> bool) -> bool {
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
    glob[g..].iter().all(|component| &**component == "**")
}

/// Every text that `{a,b}` stands for; no such braces in one another.
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
    // find's own `{}` stands for itself.
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
