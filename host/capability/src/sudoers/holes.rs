//! Writes each hole type as an expression that matches nothing that the type's validator refuses.
//!
//! Where the validator's rule isn't a regular language, or would be a long expression, the expression is narrower:
//!
//! - everywhere: ASCII only, and at most some 250 bytes;
//! - package: an ending behind a dot that could be a file's has a digit, a dash or the like in it (`.i686`, `.v3`),
//!   and of the names that end in `++` a few;
//! - disk: a volume group below `/dev` has a digit or a dash in its name, or begins or ends with `vg`;
//! - address, cidr, host: no IPv4 within IPv6; a host's last label begins with a letter, and names have at
//!   most six labels;
//! - time: dates, `@` seconds, times of day, spans and the common words, not every order of every word;
//! - size: percentages in capitals; mode: at most five clauses;
//! - url: no IPv6, no fragment, no `$`; image: no `__` in a name, three parts, `sha256` digests;
//! - text, secret, arg: no blanks, because an argument with a blank can't be told from two arguments. For an account as
//!   which nothing but the server runs, text and secret are any text: the server itself keeps the arguments apart.
//!
//! Paths are in [`paths`](super::paths).

use regex_syntax::hir::{Class, Hir};

use super::expression::{any_character, parse, repeated};
use super::{Exactness, Refusal, paths};
use crate::HoleType;

/// Names that the expressions below use. Each stands before the names that its own expression uses.
#[rustfmt::skip]
const NAMED: &[(&str, &str)] = &[
    ("<authority>", r"(<name>|<v4>)(:<port>)?"),
    ("<address>", r"<v4>|<v6>"),
    // 5 labels of 38 and their dots, and one more: 233 of the 253.
    ("<name>", r"(<label>\.){0,5}[A-Za-z]([A-Za-z0-9-]{0,36}[A-Za-z0-9])?"),
    ("<label>", r"[A-Za-z0-9]([A-Za-z0-9-]{0,36}[A-Za-z0-9])?"),
    ("<v4>", r"<octet>(\.<octet>){3}"),
    ("<octet>", r"25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9]"),
    ("<v6>", r"(<h>:){7}<h>|(<h>:){1,7}:|(<h>:){1,6}:<h>|(<h>:){1,5}(:<h>){1,2}|(<h>:){1,4}(:<h>){1,3}|(<h>:){1,3}(:<h>){1,4}|(<h>:){1,2}(:<h>){1,5}|<h>:(:<h>){1,6}|:(:<h>){1,7}|::"),
    ("<h>", r"[0-9A-Fa-f]{1,4}"),
    ("<port>", r"[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"),
    // No letters alone, unless they begin as none of the files' endings does.
    ("<ending>", r"[A-Za-z]{0,20}([0-9]|[0-9+_-][A-Za-z0-9+_-]{0,30}[A-Za-z0-9])|[BEFH-QSTVWYbefh-qstvwy]([A-Za-z0-9+_-]{0,30}[A-Za-z0-9])?"),
    ("<device>", r"(bcache|dasd|dm-|drbd|hd|loop|md|mmcblk|nbd|nvme|pmem|rbd|sd|sr|vd|xvd|zd|zram)[a-z0-9_]{1,64}"),
    ("<below>", r"(md|disk/by-[a-z]{2,20}|zvol(/<entry>){0,2}|<group>)/<entry>|block/[0-9]{1,4}:[0-9]{1,7}"),
    // Any name except `control`.
    ("<mapper>", r"([ABD-Zabd-z0-9_]|c[A-Za-np-z0-9_-])[A-Za-z0-9_.:+@=-]{0,126}"),
    // No directory below /dev with devices that aren't disks has such a name.
    ("<group>", r"vg[A-Za-z0-9_.+-]{0,60}|[A-Za-z]{1,20}[0-9-][A-Za-z0-9_.+-]{0,60}|[a-z]{1,20}vg"),
    ("<entry>", r"[A-Za-z0-9_:+@=\\][A-Za-z0-9_.:+@=\\-]{0,63}"),
    ("<volume>", r"[A-Za-z0-9+_][A-Za-z0-9+_.-]{0,126}"),
    ("<date>", r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ]<clock>)?(Z|[+-][0-9]{2}:?[0-9]{2}| UTC)?"),
    ("<clock>", r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"),
    ("<span>", r"[0-9]{1,6} ?(usec|us|msec|ms|seconds?|sec|s|minutes?|min|m|hours?|hr|h|days?|d|weeks?|w|months?|years?|y)"),
    ("<clause>", r"[ugoa]{1,4}([+-][rwxXst]{1,6}|=[rwxXst]{0,6}|[+=-][ugo])"),
    ("<escape>", r"%([2-6][0-9A-Fa-f]|7[0-9A-Ea-e]|[89A-Fa-f][0-9A-Fa-f])"),
    ("<registry>", r"([a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?\.){1,3}[a-z]([a-z0-9-]{0,8}[a-z0-9])?|localhost"),
    ("<part>", r"[a-z0-9]([._-]?[a-z0-9]){0,25}"),
    // With a dot it would be a registry.
    ("<first>", r"[a-z0-9]([_-]?[a-z0-9]){0,25}"),
    // No name that begins as the name of a transport does, because `dir:x` isn't an image.
    ("<single>", r"([0-9be-np-ru-z]|a[0-9a-su-z]|c[0-9a-np-z]|d[0-9a-hj-np-z]|o[0-9abd-rt-z]|s[0-9a-hj-z]|t[0-9b-z])([._-]?[a-z0-9]){0,25}"),
];

/// The expression for a hole.
pub(super) fn expression(hole: &HoleType, exactness: Exactness) -> Result<Hir, Refusal> {
    Ok(named(match hole {
        HoleType::Path(glob) if exactness == Exactness::Server => {
            return Ok(paths::with_secrets(glob.as_ref()));
        }
        HoleType::Text | HoleType::Secret if exactness == Exactness::Server => {
            return Ok(repeated(Hir::class(Class::Unicode(any_character())), 1, None));
        }
        HoleType::Path(None) => return Err(Refusal::AnyPath),
        HoleType::Path(Some(glob)) => return paths::expression(glob),
        HoleType::Unit => r"[A-Za-z0-9:_\\][A-Za-z0-9:_.\\@-]{0,254}",
        HoleType::Package => {
            r"[A-Za-z0-9]([A-Za-z0-9+_-]{0,99}[A-Za-z0-9])?|[A-Za-z0-9][A-Za-z0-9+_-]{0,79}(\.[A-Za-z0-9+_-]{1,30}){0,3}\.<ending>|(bonnie|g|gcc-c|libstdc)\+\+"
        }
        HoleType::Version => r"[A-Za-z0-9]([A-Za-z0-9.+:~^_-]{0,253}[A-Za-z0-9.:~^_])?",
        HoleType::User | HoleType::Group => r"[A-Za-z_]([A-Za-z0-9_.-]{0,30}[A-Za-z0-9_-])?",
        HoleType::Disk => r"/dev/(<device>|mapper/<mapper>|<below>)",
        HoleType::Volume => r"<volume>(/<volume>)?",
        HoleType::Interface => r"[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,14}",
        HoleType::Int => r"0|[1-9][0-9]{0,18}",
        HoleType::Port => r"<port>",
        HoleType::Protocol => {
            "ah|dccp|esp|gre|icmp|icmpv6|igmp|ipcomp|ipip|ipv6-icmp|l2tp|ospf|pim|sctp|tcp|udp|udplite|vrrp"
        }
        HoleType::Address => r"<address>",
        HoleType::Cidr => r"<v4>/(3[0-2]|[12]?[0-9])|<v6>/(12[0-8]|1[01][0-9]|[1-9]?[0-9])",
        HoleType::Host => r"<name>|<address>",
        HoleType::Time => {
            r"<date>|<clock>|@[0-9]{1,12}(\.[0-9]{1,6})?|\+?<span>( ?<span>){0,2}( ago)?|today|yesterday|tomorrow|now|midnight|noon|boot"
        }
        HoleType::Size => {
            r"[+-]?[0-9]{1,15}(\.[0-9]{1,6})?([BbSs]|%(FREE|VG|PVS|LV|ORIGIN)?|[KMGTPEkmgtpe][Ii]?[Bb]?)?"
        }
        HoleType::Mode => r"[0-7]{3,4}|<clause>(,<clause>){0,4}",
        HoleType::Url => r"https?://<authority>([/?]([A-Za-z0-9._~!&'()*+,;=:@/?-]|<escape>){0,200})?",
        HoleType::Image => {
            r"(<registry>(:<port>)?/<part>(/<part>){0,2}|<first>(/<part>){1,2}|<single>)(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?"
        }
        HoleType::Text | HoleType::Secret => r"[!-,.-~][!-~]{0,254}",
        HoleType::Arg => r"[!-~]{0,255}",
    }))
}

fn named(text: &str) -> Hir {
    let mut text = text.to_owned();
    for (name, stands_for) in NAMED {
        text = text.replace(name, &format!("(?:{stands_for})"));
    }
    parse(&text)
}
