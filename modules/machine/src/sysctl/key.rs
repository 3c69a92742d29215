//! The name of a value, such as `net.ipv4.ip_forward`.

use linux_sysadmin_sdk::prelude::*;

/// The most characters of a name.
const MOST: usize = 200;

/// The path below `/proc/sys`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(String);

impl Key {
    /// Reads a name. As sysctl.d(5) says, the first separator decides which of `.` and `/` separates.
    pub(crate) fn read(text: &str) -> Self {
        let text = text.strip_prefix("/proc/sys/").unwrap_or(text);
        let is_dotted = text.find(['.', '/']).is_some_and(|at| text[at..].starts_with('.'));
        let path = if is_dotted { swapped(text) } else { text.to_owned() };
        Self(path.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/"))
    }

    /// Reads a name that somebody asks for. It may be a glob.
    pub(crate) fn checked(text: &str) -> Result<Self> {
        let key = Self::read(text.trim());
        let is_one = !key.0.is_empty()
            && text.len() <= MOST
            && key.0.split('/').all(|part| !part.starts_with(['.', '-']))
            && key.0.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '=' | '#' | ';'));
        match is_one {
            true => Ok(key),
            false => Err(Problem::validation(
                "INVALID_KEY",
                format!("{text:?} is no value of the kernel: expected a name such as `net.ipv4.ip_forward`"),
            )),
        }
    }

    /// The name of what is in this directory.
    pub(crate) fn child(&self, name: &str) -> Self {
        Self(if self.0.is_empty() { name.to_owned() } else { format!("{}/{name}", self.0) })
    }

    /// The directory of `/proc/sys` itself.
    pub(crate) fn root() -> Self {
        Self(String::new())
    }

    pub(crate) fn parent(&self) -> Self {
        Self(self.0.rsplit_once('/').map(|(parent, _)| parent.to_owned()).unwrap_or_default())
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// The file in which the kernel has the value.
    pub(crate) fn path(&self) -> String {
        format!("/proc/sys/{}", self.0).trim_end_matches('/').to_owned()
    }

    /// The name with dots.
    pub(crate) fn name(&self) -> String {
        swapped(&self.0)
    }

    pub(crate) fn is_glob(&self) -> bool {
        self.0.contains(['*', '?', '['])
    }

    /// Says whether this glob matches the last part of the name.
    pub(crate) fn is_named(&self, glob: &str) -> bool {
        self.parts().last().is_some_and(|part| matches(glob, part))
    }

    /// Says whether the value is a secret, such as `stable_secret` and `tcp_fastopen_key`.
    pub(crate) fn is_secret(&self) -> bool {
        self.0.ends_with("_secret") || self.0.ends_with("_key")
    }

    /// Says whether this glob matches another name, part by part.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.parts().count() == other.parts().count()
            && self.parts().zip(other.parts()).all(|(glob, part)| matches(glob, part))
    }
}

fn swapped(text: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    text.chars().map(swap).collect()
}

/// Says whether a glob(7) matches a text without slashes. It only ever goes back to the last star.
fn matches(glob: &str, text: &str) -> bool {
    let (mut glob, mut text) = (glob, text);
    let mut star = None;
    loop {
        if let Some(rest) = glob.strip_prefix('*') {
            star = Some((rest, text));
            glob = rest;
            continue;
        }
        let taken = text.chars().next().and_then(|c| Some((one(glob, c)?, &text[c.len_utf8()..])));
        match (taken, star) {
            (Some(rest), _) => (glob, text) = rest,
            (None, _) if glob.is_empty() && text.is_empty() => return true,
            (None, Some((rest, from))) => {
                let Some(c) = from.chars().next() else { return false };
                (glob, text) = (rest, &from[c.len_utf8()..]);
                star = Some((glob, text));
            }
            (None, None) => return false,
        }
    }
}

/// The rest behind the first part of the glob, where that matches the character.
fn one(glob: &str, c: char) -> Option<&str> {
    let first = glob.chars().next()?;
    let rest = &glob[first.len_utf8()..];
    let (is_it, rest) = match first {
        '?' => (true, rest),
        '[' => class(rest, c).unwrap_or((c == '[', rest)),
        _ => (first == c, rest),
    };
    is_it.then_some(rest)
}

/// Says whether the character is in the class that begins here, and what follows the class. `None` where it doesn't end.
fn class(text: &str, c: char) -> Option<(bool, &str)> {
    let inner = text.strip_prefix(['!', '^']);
    let body = inner.unwrap_or(text);
    let end = body.char_indices().skip(1).find(|(_, c)| *c == ']').map(|(at, _)| at)?;
    let chars: Vec<_> = body[..end].chars().collect();
    let (mut at, mut is_in) = (0, false);
    while at < chars.len() {
        let is_range = chars.get(at + 1) == Some(&'-') && at + 2 < chars.len();
        let last = if is_range { chars[at + 2] } else { chars[at] };
        is_in |= (chars[at]..=last).contains(&c);
        at += if is_range { 3 } else { 1 };
    }
    Some((is_in != inner.is_some(), &body[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_separator_decides() {
        // The examples of sysctl.d(5).
        for text in [
            "net.ipv4.conf.enp3s0/200.forwarding",
            "net/ipv4/conf/enp3s0.200/forwarding",
            "/proc/sys/net/ipv4/conf/enp3s0.200/forwarding",
        ] {
            let key = Key::read(text);
            assert_eq!(key.path(), "/proc/sys/net/ipv4/conf/enp3s0.200/forwarding");
            assert_eq!(key.name(), "net.ipv4.conf.enp3s0/200.forwarding");
        }
    }

    #[test]
    fn a_name_stays_below_the_kernels_directory() {
        for text in [
            "",
            "  ",
            "..",
            "net/../../../etc/passwd",
            "net.//.x",
            "/proc/sys/../x",
            "vm.a b",
            "vm.a\nb",
            "vm.a=1",
            "/",
            "-w",
            &"x".repeat(201),
        ] {
            assert_eq!(Key::checked(text).unwrap_err().code, "INVALID_KEY", "{text:?}");
        }
    }

    #[test]
    fn globs_match_within_a_part() {
        let covers = |glob: &str, name: &str| Key::read(glob).covers(&Key::read(name));
        assert!(covers("net.ipv4.conf.*.rp_filter", "net.ipv4.conf.eth0/1.rp_filter"));
        assert!(
            covers("net.ipv4.tcp_[rw]mem", "net.ipv4.tcp_rmem")
                && !covers("net.ipv4.tcp_[!rw]mem", "net.ipv4.tcp_rmem")
        );
        assert!(covers("vm.dirty_?atio", "vm.dirty_ratio") && covers("vm.[a-d]*", "vm.dirty_ratio"));
        assert!(
            covers("vm.*_*a*o", "vm.dirty_ratio")
                && !covers("vm.*_*a*x", "vm.dirty_ratio")
                && covers("vm.*", "vm.x")
        );
        assert!(!covers("net.*", "net.ipv4.ip_forward") && !covers("vm.[", "vm.x"));
    }
}
