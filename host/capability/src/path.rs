//! Which paths a glob covers, and which paths hold secrets.
//!
//! Everything here is lexical: it looks at the text of a path and never at a file system. A symlink can
//! lead anywhere, so whoever opens a path resolves it on the target and asks again with what came out.

mod secrets;

use std::fmt;
use std::sync::Arc;

use host_text::characters::is_hidden;

/// The kernel's `PATH_MAX` of 4096 counts the NUL at the end.
pub(super) const MAX_PATH: usize = 4095;
/// `NAME_MAX`, path_resolution(7).
pub(super) const MAX_COMPONENT: usize = 255;

/// What the name of a directory begins with that the host keeps its own copies in while a plan runs. 16 digits follow,
/// each one of `0-9a-f`.
pub const STAGING: &str = ".linux-sysadmin-";

/// Whether a path means the same to everyone who reads its text: absolute, no empty, `.` or `..`
/// component, nothing hidden in it, and no longer than the kernel takes.
///
/// One slash at the end is allowed, since rsync(1) and others read a meaning into it; for a [`Glob`] it
/// makes no difference.
pub fn is_lexically_safe(path: &str) -> bool {
    let Some(below_root) = path.strip_prefix('/') else { return false };
    if path.len() > MAX_PATH || path.chars().any(is_hidden) {
        return false;
    }
    let below_root = below_root.strip_suffix('/').unwrap_or(below_root);
    // `//` leaves one slash of its two behind, and so an empty component like `/a//b` does.
    path == "/"
        || below_root
            .split('/')
            .all(|component| !matches!(component, "" | "." | "..") && component.len() <= MAX_COMPONENT)
}

/// Whether a path holds a secret: a password, a password hash, a private key, a token, or the memory in
/// which they lie. Such a path matches only a grant that names it, see [`Glob::admits`].
///
/// The answer holds for `//etc/./shadow` as well as for `/etc/shadow`.
pub fn is_secret(path: &str) -> bool {
    secret_reason(path).is_some()
}

/// Why a path is secret, for the denial that says so; `None` for one that isn't.
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

/// Whether a name is that of a directory in which the host keeps copies.
fn is_staging(name: &str) -> bool {
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.strip_prefix(STAGING).is_some_and(|digits| digits.len() == 16 && digits.bytes().all(digit))
}

/// The globs of all secrets as components, each with the reason. The host's own copies aren't among them: no glob can
/// say what their directories are called. See [`STAGING`].
pub(super) fn secret_globs() -> impl Iterator<Item = (&'static [&'static str], &'static str)> {
    secrets::globs()
}

/// A pattern for absolute paths, as in path grants and `<path:GLOB>` holes.
///
/// | in the glob | covers |
/// |---|---|
/// | `*` | any run of characters within one component, a leading dot included |
/// | `**` as a whole component | any number of components, none included; at the end one at least |
/// | anything else | itself |
///
/// So `/mnt/**` covers what lies below `/mnt` and not `/mnt` itself: a grant to change what is in a
/// directory is none to replace the directory. [`Glob::covers_listing`] is for reading its names.
///
/// `?`, `[…]` and `{…}` are refused and not taken literally: who writes them means something by them.
#[derive(Clone, PartialEq, Eq)]
pub struct Glob {
    text: Arc<str>,
    /// `/mnt/**` is kept as `mnt`, `**`, `*`: the last one is the "at least one" of the table.
    components: Arc<[Box<str>]>,
}

/// Why a text is no glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// It doesn't begin with a slash.
    #[error("expected an absolute path, as in `/var/log/**`")]
    Relative,
    /// An empty, `.` or `..` component, a slash at the end, something hidden, or too long.
    #[error("expected a path without `.`, `..`, `//`, a slash at the end or invisible characters")]
    Unsafe,
    /// `a**` or `***`.
    #[error("expected `**` to be a whole component, as in `/srv/**/conf`")]
    PartialDoubleStar,
    /// A character that other globs give a meaning.
    #[error("expected only `*` and `**` as wildcards, found `{0}`")]
    Wildcard(char),
}

impl Glob {
    /// Reads a glob. Takes time linear in the text.
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

    /// Whether the glob covers this path. A path that isn't [lexically safe](is_lexically_safe) is covered
    /// by none.
    pub fn matches(&self, path: &str) -> bool {
        is_lexically_safe(path)
            && covers(&self.components, &components_of(path).collect::<Vec<_>>(), covers_name)
    }

    /// Whether the names in this directory may be listed: the glob covers the directory itself, or
    /// everything below it (`/proc` with `/proc/**`).
    pub fn covers_listing(&self, directory: &str) -> bool {
        if !is_lexically_safe(directory)
            || is_secret(directory) && self.names(components_of(directory)).is_none()
        {
            return false;
        }
        let mut below: Vec<&str> = components_of(directory).collect();
        covers(&self.components, &below, covers_name) || {
            // Names cannot be empty, so that one stands for any.
            below.push("");
            self.text.ends_with("/**") && covers(&self.components, &below, covers_name)
        }
    }

    /// Whether this glob grants this path: it covers it, and where the path [holds a secret](is_secret),
    /// the glob names the secret, that is, has no `**`, and wildcards only where any name would do.
    /// `/proc/*/environ` names one, `/etc/*`, `/*/shadow` and `/root/**` don't. Neither does any but the host's own
    /// glob name the host's copies.
    ///
    /// To be asked again for the path that symlinks lead to.
    pub fn admits(&self, path: &str) -> bool {
        self.matches(path) && (!is_secret(path) || self.names(components_of(path)).is_some())
    }

    /// Why what this glob names is secret, where it names a secret.
    pub fn names_secret(&self) -> Option<&'static str> {
        self.names(self.components.iter().map(AsRef::as_ref))
    }

    /// Why a path is secret that this glob names: with any other name in the place of its wildcards it would be one as
    /// well, as `/proc/*/environ`. `/*/shadow` covers a secret and names none.
    fn names<'a>(&'a self, path: impl Iterator<Item = &'a str>) -> Option<&'static str> {
        if self.is_of_staging() {
            return Some(secrets::STAGED);
        }
        let path: Vec<&str> = path.collect();
        // Not even the glob of a secret, whose wildcard may stand for the name of their directory.
        if !self.names_its_end() || path.iter().any(|name| is_staging(name)) {
            return None;
        }
        let any = |(own, name): (&'a str, &'a str)| if own.contains('*') { "any" } else { name };
        let own = self.components.iter().map(AsRef::as_ref);
        secrets::reason(&own.zip(path).map(any).collect::<Vec<_>>())
    }

    /// Whether every path that the other glob [admits](Glob::admits) is admitted by this one too. A yes is
    /// certain; a no may only mean that it isn't obvious.
    pub fn covers(&self, other: &Glob) -> bool {
        let others: Vec<&str> = other.components.iter().map(AsRef::as_ref).collect();
        // The other's `*` stands for any text, which a literal of this glob won't be found in: so a component
        // covers the names that another one stands for where it covers the other one's own text. `**` stands
        // for several names, and only `**` takes it.
        let takes = |own: &str, other: &str| other != "**" && covers_name(own, other);
        let has_secrets = match other.text.contains('*') {
            true => self == other,
            false => self.admits(&other.text),
        };
        covers(&self.components, &others, takes) && (!other.may_admit_secrets() || has_secrets)
    }

    /// Whether some secret could be admitted.
    pub(super) fn may_admit_secrets(&self) -> bool {
        self.names_secret().is_some()
    }

    /// Whether this is a directory in which the host keeps copies, or what is right in it.
    pub(super) fn is_of_staging(&self) -> bool {
        self.components.iter().rev().take(2).any(|component| component.starts_with(STAGING))
    }

    /// Whether it has anything to do with directories in which the host keeps copies. No grant may.
    pub(super) fn speaks_of_staging(&self) -> bool {
        self.components.iter().any(|component| component.starts_with(STAGING))
    }

    /// Whether both may cover the same path. A no is certain.
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

    /// Its components; a `**` at the end is two, `**` and `*`.
    pub(super) fn components(&self) -> impl Iterator<Item = &str> {
        self.components.iter().map(AsRef::as_ref)
    }

    /// Whether it grants the secrets that it covers.
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

/// Matches components with `**` in them. Only the last `**` seen is ever gone back to, which finds a match
/// where there is one, and takes time linear in the path for each component of the glob.
fn covers<G: AsRef<str>>(glob: &[G], path: &[&str], covers_name: impl Fn(&str, &str) -> bool) -> bool {
    // Nearly all globs that cover a path not differ in its last name.
    if let (Some(last), Some(name)) = (glob.last().map(AsRef::as_ref), path.last())
        && last != "**"
        && !covers_name(last, name)
    {
        return false;
    }
    let (mut g, mut p) = (0, 0);
    let mut last_star = None;
    while p < path.len() {
        match glob.get(g).map(AsRef::as_ref) {
            Some("**") => {
                last_star = Some((g, p));
                g += 1;
            }
            Some(component) if covers_name(component, path[p]) => {
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
    glob[g..].iter().all(|component| component.as_ref() == "**")
}

/// Matches one component with `*` in it: the pieces between the stars, each at the first place it fits.
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

/// Whether some text may be matched by both: what is before the first star and what is behind the last one must agree.
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
