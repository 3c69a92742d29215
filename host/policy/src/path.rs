//! Finds paths among words, and normalizes them: without `//`, `.`, `..` and well-known links.
//!
//! It reads no file system. A relative path begins in the directory that is given, or else in the root, where the server's
//! own commands start.

use super::glob::ANY;

/// The kernel's `PATH_MAX`. A longer path names nothing.
const MAX_PATH: usize = 4096;

/// The components of a path; `None` for a text that can't be one.
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
        resolve_links(&mut components);
    }
    Some(components)
}

/// Stands for the home directory of any account.
const HOME: &str = "\u{f8fe}";

/// Resolves links that are the same on every machine, such as `/var/run` and `/dev/fd`. `/proc/1/root/etc` is `/etc` by
/// another name. A path below a process's working directory counts as one below the root, which may be that directory.
fn resolve_links(components: &mut Vec<&str>) {
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

/// The parts of a word that may be paths: the word, the value behind its `=`, and the value attached to a short option.
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

/// Whether the path is no file on disk: a stream that the process has anyway, or a device such as `/dev/null`.
pub(super) fn is_stream(components: &[&str]) -> bool {
    matches!(
        components,
        ["dev", "null" | "zero" | "full" | "stdin" | "stdout" | "stderr" | "tty" | "random" | "urandom"]
            | ["proc", "self", "fd", _]
            | ["-"]
    )
}
