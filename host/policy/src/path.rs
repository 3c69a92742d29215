//! Paths among words: which words name files, and what they mean without `//`, `.`, `..` and other names for the same.
//!
//! Lexical: no file system is asked. A relative path is taken from a directory that is known, and else from the root,
//! where the server's own commands start.

use super::glob::ANY;

/// The kernel's `PATH_MAX`; what is longer names nothing.
const MAX_PATH: usize = 4096;

/// The components of a path; `None` for what can't be one.
pub(super) fn components<'a>(directory: &'a str, path: &'a str) -> Option<Vec<&'a str>> {
    if path.is_empty() || path.len() > MAX_PATH || directory.len() > MAX_PATH {
        return None;
    }
    let mut components = Vec::with_capacity(8);
    let is_relative = !path.starts_with(['/', '~', ANY]);
    let below = directory.split('/').filter(|_| is_relative).chain(path.split('/'));
    for component in below {
        match component {
            "" | "." => {}
            ".." => {
                components.pop();
            }
            home if home.starts_with('~') && components.is_empty() && !is_relative => components.push(HOME),
            name => components.push(name),
        }
        settle(&mut components);
    }
    Some(components)
}

/// A home directory, somebody's.
const HOME: &str = "\u{f8fe}";

/// `/proc/1/root/etc` is `/etc` by another name, and so is what is below a process's working directory, which may be
/// the root. `/var/run`, `/dev/fd` and their like are links everywhere.
fn settle(components: &mut Vec<&str>) {
    match components[..] {
        ["proc", _, "root" | "cwd"] | ["proc", _, "task", _, "root" | "cwd"] => components.clear(),
        ["var", "run"] => *components = vec!["run"],
        ["dev", "fd"] => *components = vec!["proc", "self", "fd"],
        ["proc", "net"] => *components = vec!["proc", "self", "net"],
        ["proc", "mounts"] => *components = vec!["proc", "self", "mounts"],
        ["var", "lock"] => *components = vec!["run", "lock"],
        _ => {}
    }
}

/// What in a word may be a path: the word, what is behind its `=`, and what is attached to a short option.
pub(super) fn within(word: &str) -> impl Iterator<Item = &str> {
    let looks = |text: &&str| text.starts_with(['/', '~', '.', ANY]) || text.contains('/');
    let whole = Some(word).filter(|word| !word.starts_with('-'));
    let value = word.split_once('=').map(|(_, value)| value);
    let attached = match word.starts_with('-') && !word.contains('=') {
        true => word.find(['/', '~', ANY]).map(|at| &word[at..]),
        false => None,
    };
    [whole, value, attached].into_iter().flatten().filter(looks)
}

/// Whether a file is none: a stream that the process has anyway, or nothing at all.
pub(super) fn is_stream(components: &[&str]) -> bool {
    matches!(
        components,
        ["dev", "null" | "zero" | "full" | "stdin" | "stdout" | "stderr" | "tty" | "random" | "urandom"]
            | ["proc", "self", "fd", _]
            | ["-"]
    )
}
