//! Writes the globs of path holes as expressions that match no secret.
//!
//! A glob with a wildcard at its end doesn't grant the secrets that it covers, and an expression can't leave names out.
//! Therefore wildcards are narrower here. They match no leading dot, which most secrets have, and at the end of a path
//! nothing that looks like the file of a key (`x.key`, `x.keytab`, `x.bin`). Where that isn't enough, and wherever there is
//! a `**`, there is no expression.
//!
//! For an account as which nothing but the server runs, none of this is needed: the server leaves out secrets, and checks
//! where each path leads. There the expression matches any path that is spelled in one way only, without `//`, `.` and `..`.
//!
//! A wildcard matches letters, digits and `_ . @ % + = : , ~ -`. A glob also matches a path with one slash at its end; the
//! expression doesn't.

use regex_syntax::hir::Hir;

use super::Refusal;
use super::expression::{literal, parse, repeated};
use crate::path::{Glob, MAX_COMPONENT, MAX_PATH, STAGING, covers_name, secret_globs};

/// The expression for a `*` at the beginning of a component: at least one character, and no leading dot.
const LEADING: &str = r"[A-Za-z0-9_@%+=:,~-][A-Za-z0-9_.@%+=:,~-]{0,60}";
/// The expression for a `*` after something else.
const INNER: &str = r"[A-Za-z0-9_.@%+=:,~-]{0,60}";
/// The expression for the end of a path: no extension, or one that doesn't begin with `b` or `k`.
const NO_KEY: &str = r"(?:[A-Za-z0-9_.@%+=:,~-]{0,60}\.[A-Zac-jl-z0-9_@%+=:,~-][A-Za-z0-9_@%+=:,~-]{0,40})?";

/// A component that isn't `.` or `..`.
const ANY: &str = r"\.{0,2}[A-Za-z0-9_@%+=:,~-][A-Za-z0-9_.@%+=:,~-]*";

/// The expression for all paths, or for those that a glob covers, including secrets.
pub(super) fn with_secrets(glob: Option<&Glob>) -> Hir {
    let below = |min| repeated(one_below(), min, None);
    let Some(glob) = glob else {
        return Hir::alternation(vec![literal("/"), below(1)]);
    };
    let components: Vec<&str> = glob.components().collect();
    if components.is_empty() {
        return literal("/");
    }
    let part = |component: &&str| match *component {
        "**" => below(0),
        "*" => one_below(),
        component => Hir::concat(vec![literal("/"), name(component, false)]),
    };
    Hir::concat(components.iter().map(part).collect())
}

fn one_below() -> Hir {
    Hir::concat(vec![literal("/"), parse(ANY)])
}

/// The expression for a glob.
pub(super) fn expression(glob: &Glob) -> Result<Hir, Refusal> {
    let components: Vec<&str> = glob.components().collect();
    if components.contains(&"**") {
        return Err(Refusal::AnyDepth(glob.text().to_owned()));
    }
    if glob.names_secret().is_none()
        && let Some((secret, reason)) = secret_globs().find(|(secret, _)| may_meet(&components, secret))
    {
        return Err(Refusal::Secret(glob.text().to_owned(), format!("/{}", secret.join("/")), reason));
    }
    if !glob.is_of_staging() && components.iter().any(|component| may_be_staging(component)) {
        let reason = "what the host keeps while a plan runs";
        return Err(Refusal::Secret(glob.text().to_owned(), format!("/**/{STAGING}*"), reason));
    }
    let mut parts = Vec::new();
    for (at, component) in components.iter().enumerate() {
        let name = name(component, at + 1 == components.len());
        if longest(&name) > MAX_COMPONENT {
            return Err(Refusal::TooLong);
        }
        parts.extend([literal("/"), name]);
    }
    let path = if parts.is_empty() { literal("/") } else { Hir::concat(parts) };
    if longest(&path) > MAX_PATH { Err(Refusal::TooLong) } else { Ok(path) }
}

/// Whether a component may name a directory in which the host keeps copies. In doubt, the answer is yes.
fn may_be_staging(component: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let Some((head, rest)) = component.split_once('*') else {
        return component.strip_prefix(STAGING).is_some_and(digits);
    };
    let tail = rest.rsplit_once('*').map_or(rest, |(_, tail)| tail);
    // A leading star matches no dot.
    !head.is_empty()
        && (STAGING.starts_with(head) || head.strip_prefix(STAGING).is_some_and(digits))
        && digits(tail)
}

/// The expression for one component. Where a wildcard leads, or has only dots beside it, the component can't be hidden,
/// `.` or `..`.
fn name(component: &str, last: bool) -> Hir {
    // Only the host makes such directories, and their names have a fixed form.
    if component.strip_prefix(STAGING) == Some("*") {
        return Hir::concat(vec![literal(STAGING), parse("[0-9a-f]{16}")]);
    }
    let pieces: Vec<&str> = component.split('*').collect();
    let only_dots = pieces.iter().all(|piece| piece.bytes().all(|byte| byte == b'.'));
    let mut parts = vec![literal(pieces[0])];
    for (at, piece) in pieces.iter().enumerate().skip(1) {
        let leads = only_dots || (at == 1 && pieces[0].is_empty());
        let ends = last && at + 1 == pieces.len() && piece.is_empty();
        parts.push(parse(&match (leads, ends) {
            (true, false) => LEADING.to_owned(),
            (true, true) => format!("[A-Za-z0-9_@%+=:,~-]{{1,60}}{NO_KEY}"),
            (false, false) => INNER.to_owned(),
            (false, true) => format!("[A-Za-z0-9_@%+=:,~-]{{0,60}}{NO_KEY}"),
        }));
        parts.push(literal(piece));
    }
    Hir::concat(parts)
}

fn longest(hir: &Hir) -> usize {
    hir.properties().maximum_len().unwrap_or(usize::MAX)
}

/// Whether the narrowed glob and the glob of a secret may match the same path. In doubt, the answer is yes.
fn may_meet(glob: &[&str], secret: &[&str]) -> bool {
    // reached[s]: the secret's first `s` components may cover the same path as the glob's components so far.
    let skip = |reached: &mut Vec<bool>| {
        for s in 0..secret.len() {
            reached[s + 1] |= reached[s] && secret[s] == "**";
        }
    };
    let mut reached = vec![false; secret.len() + 1];
    reached[0] = true;
    skip(&mut reached);
    for (g, component) in glob.iter().enumerate() {
        let last = g + 1 == glob.len();
        let mut next = vec![false; secret.len() + 1];
        for s in (0..secret.len()).filter(|s| reached[*s]) {
            if secret[s] == "**" {
                next[s] = true;
            } else if may_be_both(component, secret[s], last) {
                next[s + 1] = true;
            }
        }
        skip(&mut next);
        reached = next;
    }
    reached[secret.len()]
}

/// Whether both components may match the same name.
fn may_be_both(granted: &str, secret: &str, last: bool) -> bool {
    let Some((head, _)) = granted.split_once('*') else { return covers_name(secret, granted) };
    if head.is_empty() && secret.starts_with('.') {
        return false;
    }
    let ending = secret.rsplit_once('.').map_or("", |(_, ending)| ending);
    if last
        && granted.ends_with('*')
        && !granted.contains('.')
        && !ending.contains('*')
        && ending.starts_with(['b', 'k'])
    {
        return false;
    }
    let Some((secret_head, _)) = secret.split_once('*') else { return covers_name(granted, secret) };
    let tail = |text: &str| text.rsplit_once('*').map_or(String::new(), |(_, tail)| tail.to_owned());
    let (tail, secret_tail) = (tail(granted), tail(secret));
    (head.starts_with(secret_head) || secret_head.starts_with(head))
        && (tail.ends_with(&secret_tail) || secret_tail.ends_with(&tail))
}
