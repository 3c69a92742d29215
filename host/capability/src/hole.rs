//! The types of holes, each with a validator: what a `<type>` in a command pattern stands for.
//!
//! Three rules hold for every type, besides its own. Each of them closes a way out of the pattern:
//!
//! - No value is empty, because an empty argument changes the meaning of its neighbours.
//! - No value begins with `-`, so that no value can be an option ([`Size`](HoleType::Size) may carry a sign).
//! - No value holds a [hidden character](host_text::characters::is_hidden), so that a person can read what is approved.
//!
//! [`Arg`](HoleType::Arg) is the exception to all three. Therefore the pattern's parser accepts it only where the program
//! has stopped reading options.
//!
//! The types' own rules follow from what programs read into an operand: apt-get takes `pkg-` for a removal, dnf takes `@x`
//! for a group and `x.rpm` for a file, systemctl takes globs, and chown takes `a:b`.

mod network;
mod quantity;
mod system;

use std::fmt;

use super::path::{Glob, GlobError, is_lexically_safe, is_secret};
use host_text::characters::is_hidden;

/// The greatest length of a value in bytes, whatever its type.
pub const MAX_VALUE: usize = 4096;

/// The type of a hole, which says what values it accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HoleType {
    /// A systemd unit, with or without its suffix; no glob and no path. systemd.unit(5).
    Unit,
    /// A package's name alone: no version, release, architecture, group, glob, file or URL.
    ///
    /// apt-get reads a name that no package has as a regular expression, and `.` and `+` suffice to make it one
    /// (`apt-get remove -- l.bc6`). No type can know which packages exist. A pattern can have
    /// `'?exact-name('<package>')'`, apt-patterns(7), and a module can look first.
    Package,
    /// A package's version: deb-version(7), rpm-version(7).
    Version,
    /// An account's name, never its number. useradd(8).
    User,
    /// A group's name, never its number. groupadd(8).
    Group,
    /// An absolute path; where there is a glob, one that the glob [admits](Glob::admits). It is a secret's path only where
    /// the glob names the secret.
    Path(Option<Glob>),
    /// A block device below `/dev`.
    Disk,
    /// A volume group, `group/volume`, or the name of a container engine's volume. lvm(8).
    Volume,
    /// A network interface, at most 15 bytes. A pattern names it behind its keyword (`dev <interface>`),
    /// since ip(8) reads some names as keywords.
    Interface,
    /// A decimal number without sign or leading zeros.
    Int,
    /// 1 to 65535. A range is two holes: `<port>-<port>`.
    Port,
    /// A transport or network protocol in its lower-case name. protocols(5).
    Protocol,
    /// An IPv4 or IPv6 address, without brackets or zone.
    Address,
    /// An address and a prefix length.
    Cidr,
    /// A host's name (RFC 1123) or address.
    Host,
    /// A point in time or a span, as systemd.time(7) and date(1) write them: `2026-01-31 10:00`, `@1700000000`,
    /// `yesterday`, `1 hour ago`, `2h`.
    Time,
    /// An amount with its unit or a percentage, `+` or `-` in front allowed: `512M`, `-5GiB`, `+100%FREE`.
    Size,
    /// A file mode as chmod(1) takes it, octal or symbolic.
    Mode,
    /// An `http` or `https` URL without user or password. RFC 3986.
    Url,
    /// The reference of a container image, without a transport such as `dir:`.
    Image,
    /// Any visible text.
    Text,
    /// A `text` that is redacted wherever it is shown or recorded.
    Secret,
    /// Any argument at all, as in a command run inside a container.
    Arg,
}

/// The reason why a text between angle brackets isn't a hole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HoleError {
    /// No type has this name.
    #[error("expected a hole's type (one of {names}; `text` takes any words), found `{0}`", names = names())]
    UnknownType(String),
    /// A type other than `path` has a part after a colon.
    #[error("expected no `:` in `{0}`: only `path` takes a glob")]
    NotAPath(String),
    /// The text after `path:` isn't a glob.
    #[error(transparent)]
    Glob(#[from] GlobError),
}

/// The types with their names. Only [`HoleType::Path`] may carry more than its name.
const SIMPLE: &[(&str, HoleType)] = &[
    ("unit", HoleType::Unit),
    ("package", HoleType::Package),
    ("version", HoleType::Version),
    ("user", HoleType::User),
    ("group", HoleType::Group),
    ("path", HoleType::Path(None)),
    ("disk", HoleType::Disk),
    ("volume", HoleType::Volume),
    ("interface", HoleType::Interface),
    ("int", HoleType::Int),
    ("port", HoleType::Port),
    ("protocol", HoleType::Protocol),
    ("address", HoleType::Address),
    ("cidr", HoleType::Cidr),
    ("host", HoleType::Host),
    ("time", HoleType::Time),
    ("size", HoleType::Size),
    ("mode", HoleType::Mode),
    ("url", HoleType::Url),
    ("image", HoleType::Image),
    ("text", HoleType::Text),
    ("secret", HoleType::Secret),
    ("arg", HoleType::Arg),
];

fn names() -> String {
    SIMPLE.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

impl HoleType {
    /// Parses the text between the angle brackets: `unit`, `path`, `path:/mnt/**`.
    pub fn parse(text: &str) -> Result<HoleType, HoleError> {
        if let Some((name, glob)) = text.split_once(':') {
            return match name {
                "path" => Ok(HoleType::Path(Some(Glob::parse(glob)?))),
                _ => Err(HoleError::NotAPath(text.to_owned())),
            };
        }
        SIMPLE
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, hole)| hole.clone())
            .ok_or_else(|| HoleError::UnknownType(text.to_owned()))
    }

    /// The type's name, without a path's glob.
    pub fn name(&self) -> &'static str {
        let same = |hole: &HoleType| match (hole, self) {
            (HoleType::Path(_), HoleType::Path(_)) => true,
            (a, b) => a == b,
        };
        SIMPLE.iter().find(|(_, hole)| same(hole)).map_or("path", |(name, _)| name)
    }

    /// Whether a value is of this type. The check takes time linear in the value.
    pub fn accepts(&self, value: &str) -> bool {
        if value.len() > MAX_VALUE {
            return false;
        }
        if *self == HoleType::Arg {
            return !value.contains('\0');
        }
        if value.is_empty() || value.chars().any(is_hidden) {
            return false;
        }
        if value.starts_with('-') && !self.may_begin_with_a_dash() {
            return false;
        }
        match self {
            HoleType::Unit => system::is_unit(value),
            HoleType::Package => system::is_package(value),
            HoleType::Version => system::is_version(value),
            HoleType::User | HoleType::Group => host_base::account::is_name(value),
            HoleType::Path(None) => is_lexically_safe(value) && !is_secret(value),
            HoleType::Path(Some(glob)) => glob.admits(value),
            HoleType::Disk => system::is_disk(value),
            HoleType::Volume => system::is_volume(value),
            HoleType::Interface => network::is_interface(value),
            HoleType::Int => quantity::is_int(value),
            HoleType::Port => network::is_port(value),
            HoleType::Protocol => network::is_protocol(value),
            HoleType::Address => network::is_address(value),
            HoleType::Cidr => network::is_cidr(value),
            HoleType::Host => network::is_host(value),
            HoleType::Time => quantity::is_time(value),
            HoleType::Size => quantity::is_size(value),
            HoleType::Mode => quantity::is_mode(value),
            HoleType::Url => network::is_url(value),
            HoleType::Image => network::is_image(value),
            HoleType::Text | HoleType::Secret | HoleType::Arg => true,
        }
    }

    /// Whether every value of the other type is of this type as well. A yes is certain; a no may only mean that it isn't
    /// obvious.
    pub(super) fn covers(&self, other: &HoleType) -> bool {
        match (self, other) {
            (HoleType::Arg, _) => true,
            // The validators of these two add nothing to the three rules that hold for every type.
            (HoleType::Text | HoleType::Secret, other) => !other.may_begin_with_a_dash(),
            (HoleType::Path(own), HoleType::Path(other)) => path_covers(own.as_ref(), other.as_ref()),
            (HoleType::User | HoleType::Group, HoleType::User | HoleType::Group)
            | (HoleType::Int, HoleType::Port)
            | (HoleType::Host, HoleType::Address) => true,
            (own, other) => own == other,
        }
    }

    /// Whether a value of this type can look like an option.
    pub(super) fn may_begin_with_a_dash(&self) -> bool {
        matches!(self, HoleType::Size | HoleType::Arg)
    }
}

/// Whether a path hole takes every path that another one takes. `None` is a hole without a glob.
fn path_covers(own: Option<&Glob>, other: Option<&Glob>) -> bool {
    match (own, other) {
        (Some(own), Some(other)) => own.covers(other),
        (None, Some(other)) => !other.may_admit_secrets(),
        // Not even `/**` covers `/`.
        (own, None) => own.is_none(),
    }
}

/// Writes the type as in a pattern, without the angle brackets.
impl fmt::Display for HoleType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HoleType::Path(Some(glob)) => write!(f, "path:{}", glob.text()),
            other => f.write_str(other.name()),
        }
    }
}

/// Whether every character is an ASCII letter or digit, or one of `also`.
fn all_of(value: &str, also: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
}

fn begins_with_alphanumeric(value: &str) -> bool {
    value.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn ends_with_alphanumeric(value: &str) -> bool {
    value.ends_with(|c: char| c.is_ascii_alphanumeric())
}

/// Whether a text consists of digits, at least one.
fn all_digits(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests;
