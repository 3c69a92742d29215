//! Globs of paths, and the paths that hold secrets.
//!
//! The functions here are lexical: they read the text of a path and never a file system. A symlink can lead anywhere,
//! so whoever opens a path resolves it on the target, and asks again with the result.

mod secrets;

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use host_base::path_glob;
use host_text::characters::is_hidden;

/// The greatest length of a path. The kernel's `PATH_MAX` of 4096 includes the NUL at the end.
pub(super) const MAX_PATH: usize = 4095;
/// The greatest length of a component: `NAME_MAX`, path_resolution(7).
pub(super) const MAX_COMPONENT: usize = 255;

/// The beginning of the name of a directory in which the host keeps its own copies while a plan runs. 16 digits follow,
/// each one of `0-9a-f`.
pub const STAGING: &str = ".linux-sysadmin-";

/// Whether a path means the same to everyone who reads its text: it is absolute, has no empty, `.` or `..` component
/// and no hidden character, and is no longer than the kernel accepts.
///
/// One slash at the end is allowed, because rsync(1) and others give it a meaning; for a [`Glob`] it makes no
/// difference.
pub fn is_lexically_safe(path: &str) -> bool {
    let Some(below_root) = path.strip_prefix('/') else { return false };
    if path.len() > MAX_PATH || path.chars().any(is_hidden) {
        return false;
    }
    let below_root = below_root.strip_suffix('/').unwrap_or(below_root);
    // Of `//` one slash remains here, which makes empty components, as in `/a//b`.
    path == "/"
        || below_root
            .split('/')
            .all(|component| !matches!(component, "" | "." | "..") && component.len() <= MAX_COMPONENT)
}

/// Whether a path holds a secret: a password, a password hash, a private key, a token, or the memory in which they lie.
/// Such a path matches only a grant that names it, see [`Glob::admits`].
///
/// The answer is the same for `//etc/./shadow` as for `/etc/shadow`.
pub fn is_secret(path: &str) -> bool {
    secret_reason(path).is_some()
}

/// The reason why a path is secret, for the message of a denial; `None` for a path that isn't.
pub fn secret_reason(path: &str) -> Option<&'static str> {
    let mut components = Vec::new();
    for component in path.split('/') {
        match component {
            "" | "." => {}
            ".." => {
                components.pop();
            }
            name => components.push(name),
        }
    }
    secrets::reason(&components)
}

/// The reason why something below a directory is secret, where it is so by the directory's path, and would not be secret in
/// the directory `to`.
pub(super) fn secret_below(directory: &str, to: &str) -> Option<&'static str> {
    let (from, to): (Vec<&str>, Vec<&str>) =
        (components_of(directory).collect(), components_of(to).collect());
    let is_lost = |glob: &[&str]| {
        // The beginning of the glob covers the directory, and the rest what is below it.
        (1..glob.len())
            .any(|at| covers(&glob[..at], &from, covers_name) && !covers(&glob[..at], &to, covers_name))
    };
    secrets::globs().find(|(glob, _)| is_lost(glob)).map(|(_, reason)| reason)
}

/// Whether a name is that of a directory in which the host keeps copies.
fn is_staging(name: &str) -> bool {
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.strip_prefix(STAGING).is_some_and(|digits| digits.len() == 16 && digits.bytes().all(digit))
}

/// The globs of the secrets that an expression for sudoers leaves out, as components, each with the reason. The host's own
/// copies are not among them, because no glob can express the names of their directories. See [`STAGING`].
pub(super) fn secret_globs() -> impl Iterator<Item = (&'static [&'static str], &'static str)> {
    secrets::globs_for_sudoers()
}

/// The text of a path, taken apart once for all globs that it is compared with: a call may read hundreds of files, and a
/// module may have hundreds of grants.
pub struct PathText<'a> {
    /// None for a path that isn't [lexically safe](is_lexically_safe): no glob covers it.
    components: Option<Vec<&'a str>>,
    secret: OnceCell<Option<&'static str>>,
}

impl<'a> PathText<'a> {
    /// Takes a path apart.
    pub fn new(path: &'a str) -> Self {
        let components = is_lexically_safe(path).then(|| components_of(path).collect());
        Self { components, secret: OnceCell::new() }
    }

    /// Returns whether the path holds a secret, given its components.
    fn is_secret(&self, components: &[&str]) -> bool {
        self.secret.get_or_init(|| secrets::reason(components)).is_some()
    }
}

/// A pattern for absolute paths, as in path grants and `<path:GLOB>` holes.
///
/// | in the glob | covers |
/// |---|---|
/// | `*` | any run of characters within one component, a leading dot included |
/// | `**` as a whole component | any number of components, or none; at the end at least one |
/// | anything else | itself |
///
/// So `/mnt/**` covers what lies below `/mnt` and not `/mnt` itself: a grant to change the content of a directory doesn't
/// allow replacing the directory. [`Glob::covers_listing`] is for reading its names.
///
/// `?`, `[…]` and `{…}` are refused and not taken literally, because whoever writes them expects a wildcard.
#[derive(Clone, PartialEq, Eq)]
pub struct Glob {
    text: Arc<str>,
    /// The components. `/mnt/**` is kept as `mnt`, `**`, `*`; the last one is the "at least one" of the table.
    components: Arc<[Box<str>]>,
}

/// The reason why a text isn't a glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// The text doesn't begin with a slash.
    #[error("expected an absolute path, as in `/var/log/**`")]
    Relative,
    /// The text has an empty, `.` or `..` component, a slash at the end or a hidden character, or is too long.
    #[error("expected a path without `.`, `..`, `//`, a slash at the end or invisible characters")]
    Unsafe,
    /// `**` is only a part of a component, as in `a**` or `***`.
    #[error("expected `**` to be a whole component, as in `/srv/**/conf`")]
    PartialDoubleStar,
    /// There is a character that has a meaning in other globs.
    #[error("expected only `*` and `**` as wildcards, found `{0}`")]
    Wildcard(char),
}

impl Glob {
    /// Parses a glob, in time linear in the text.
    pub fn parse(text: &str) -> Result<Glob, GlobError> {
        if !text.starts_with('/') {
            return Err(GlobError::Relative);
        }
        if !is_lexically_safe(text) || (text.len() > 1 && text.ends_with('/')) {
            return Err(GlobError::Unsafe);
        }
        if let Some(c) = text.chars().find(|c| r#"?[]{}\<>"'"#.contains(*c)) {
            return Err(GlobError::Wildcard(c));
        }
        let mut components: Vec<Box<str>> = Vec::new();
        for component in components_of(text) {
            if component.contains("**") && component != "**" {
                return Err(GlobError::PartialDoubleStar);
            }
            components.push(component.into());
        }
        if components.last().is_some_and(|last| &**last == "**") {
            components.push("*".into());
        }
        Ok(Glob { text: text.into(), components: components.into() })
    }

    /// The glob as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the glob covers this path. No glob covers a path that isn't [lexically safe](is_lexically_safe).
    pub fn matches(&self, path: &str) -> bool {
        self.matches_text(&PathText::new(path))
    }

    /// [`Glob::matches`] for a path that was taken apart.
    pub fn matches_text(&self, path: &PathText<'_>) -> bool {
        path.components.as_ref().is_some_and(|components| covers(&self.components, components, covers_name))
    }

    /// Whether the names in this directory may be listed: the glob covers the directory itself, or
    /// everything below it (`/proc` with `/proc/**`).
    pub fn covers_listing(&self, directory: &PathText<'_>) -> bool {
        let Some(components) = &directory.components else { return false };
        let is_covered = covers(&self.components, components, covers_name) || {
            // No name is empty, so the empty name can stand for any name.
            let below = || [components.as_slice(), &[""]].concat();
            self.text.ends_with("/**") && covers(&self.components, &below(), covers_name)
        };
        is_covered && self.reaches(directory, components)
    }

    /// Whether this glob grants this path. It has to cover the path, and where the path [holds a secret](is_secret), it has
    /// to name the secret: it has no `**`, and has wildcards only where any name would be a secret as well.
    /// `/proc/*/environ` names a secret; `/etc/*`, `/*/shadow` and `/root/**` name none. Only the host's own glob names the
    /// host's copies.
    ///
    /// The caller asks again for the path that symlinks lead to.
    pub fn admits(&self, path: &str) -> bool {
        self.admits_text(&PathText::new(path))
    }

    /// [`Glob::admits`] for a path that was taken apart.
    pub fn admits_text(&self, path: &PathText<'_>) -> bool {
        let Some(components) = &path.components else { return false };
        covers(&self.components, components, covers_name) && self.reaches(path, components)
    }

    /// Returns whether a path that the glob covers holds no secret, or is named by the glob.
    fn reaches(&self, path: &PathText<'_>, components: &[&str]) -> bool {
        !path.is_secret(components) || self.names(components.iter().copied()).is_some()
    }

    /// The reason why the paths of this glob are secret, where it names a secret.
    pub fn names_secret(&self) -> Option<&'static str> {
        self.names(self.components.iter().map(AsRef::as_ref))
    }

    /// The reason why a path is secret, where this glob names the secret: with any other name in place of the wildcards, the
    /// path would be secret as well, as for `/proc/*/environ`. `/*/shadow` covers a secret and names none.
    fn names<'a>(&'a self, path: impl Iterator<Item = &'a str>) -> Option<&'static str> {
        if self.is_of_staging() {
            return Some(secrets::STAGED);
        }
        let path: Vec<&str> = path.collect();
        // A glob of a secret doesn't name the host's copies either, although its wildcard may cover their directory.
        if !self.names_its_end() || path.iter().any(|name| is_staging(name)) {
            return None;
        }
        let any = |(own, name): (&'a str, &'a str)| if own.contains('*') { "any" } else { name };
        let own = self.components.iter().map(AsRef::as_ref);
        secrets::reason(&own.zip(path).map(any).collect::<Vec<_>>())
    }

    /// Whether this glob [admits](Glob::admits) every path that the other one admits. A yes is certain; a no may only mean
    /// that it isn't obvious.
    pub fn covers(&self, other: &Glob) -> bool {
        let others: Vec<&str> = other.components.iter().map(AsRef::as_ref).collect();
        // The other's `*` stands for any text, and no literal of this glob contains a `*`. So a component covers all names
        // of another one where it covers the other one's own text. `**` stands for several names, and only `**` covers it.
        let takes = |own: &str, other: &str| other != "**" && covers_name(own, other);
        let has_secrets = match other.text.contains('*') {
            true => self == other,
            false => self.admits(&other.text),
        };
        covers(&self.components, &others, takes) && (!other.may_admit_secrets() || has_secrets)
    }

    /// Whether the glob may admit a secret.
    pub(super) fn may_admit_secrets(&self) -> bool {
        self.names_secret().is_some()
    }

    /// Whether this is the glob of a directory in which the host keeps copies, or of what lies directly in it.
    pub(super) fn is_of_staging(&self) -> bool {
        self.components.iter().rev().take(2).any(|component| component.starts_with(STAGING))
    }

    /// Whether the glob mentions directories in which the host keeps copies. No grant may do that.
    pub(super) fn mentions_staging(&self) -> bool {
        self.components.iter().any(|component| component.starts_with(STAGING))
    }

    /// Whether both globs may cover the same path. A no is certain.
    pub(super) fn may_meet(&self, other: &Glob) -> bool {
        if !other.text.contains('*') {
            return self.matches(&other.text);
        }
        if !self.text.contains('*') {
            return other.matches(&self.text);
        }
        if self.text.contains("**") || other.text.contains("**") {
            return names_may_meet(&self.text, &other.text);
        }
        let mut both = self.components.iter().zip(other.components.iter());
        self.components.len() == other.components.len() && both.all(|(own, other)| names_may_meet(own, other))
    }

    /// The components. A `**` at the end counts as two, `**` and `*`.
    pub(super) fn components(&self) -> impl Iterator<Item = &str> {
        self.components.iter().map(AsRef::as_ref)
    }

    /// Whether the glob has a fixed last name and no `**`, without which it names no secret.
    pub(super) fn names_its_end(&self) -> bool {
        !self.text.contains("**") && self.components.last().is_some_and(|last| !last.contains('*'))
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({})", self.text)
    }
}

fn components_of(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|component| !component.is_empty())
}

/// Whether a glob matches a path.
fn covers<G: AsRef<str>>(glob: &[G], path: &[&str], covers_name: impl Fn(&str, &str) -> bool) -> bool {
    // This test comes first because most globs that don't cover a path differ from it in the last name.
    if let (Some(last), Some(name)) = (glob.last().map(AsRef::as_ref), path.last())
        && last != "**"
        && !covers_name(last, name)
    {
        return false;
    }
    path_glob::covers(glob, path, covers_name)
}

/// Matches one component with `*` in it: the pieces between the stars, each at the first place where it fits.
pub(super) fn covers_name(glob: &str, name: &str) -> bool {
    let (first, first_of_name) = (glob.bytes().next(), name.bytes().next());
    if first != Some(b'*') && first != first_of_name {
        return false;
    }
    let Some((head, rest)) = glob.split_once('*') else { return glob == name };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut between) = name.strip_prefix(head).and_then(|name| name.strip_suffix(tail)) else {
        return false;
    };
    for piece in middle.split('*') {
        match between.find(piece) {
            Some(at) => between = &between[at + piece.len()..],
            None => return false,
        }
    }
    true
}

/// Whether both may match the same text: what stands before the first star and after the last one has to agree.
fn names_may_meet(one: &str, other: &str) -> bool {
    let ends =
        |text: &str| -> Option<(usize, usize)> { Some((text.find('*')?, text.len() - text.rfind('*')? - 1)) };
    match (ends(one), ends(other)) {
        (None, _) => covers_name(other, one),
        (_, None) => covers_name(one, other),
        (Some(one_ends), Some(other_ends)) => {
            let (head, tail) = (one_ends.0.min(other_ends.0), one_ends.1.min(other_ends.1));
            one.as_bytes()[..head] == other.as_bytes()[..head]
                && one.as_bytes()[one.len() - tail..] == other.as_bytes()[other.len() - tail..]
        }
    }
}

#[cfg(test)]
mod tests;
