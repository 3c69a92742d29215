//! Globs against paths. The input's lines are a glob, another one, and paths.
#![no_main]

use fuzz::{Glob, PathText, STAGING, is_lexically_safe, is_secret};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let mut lines = input.split('\n');
    let (first, second) = (parsed(lines.next().unwrap_or("")), parsed(lines.next().unwrap_or("")));
    let globs: Vec<Glob> = [first, second].into_iter().flatten().collect();
    let mut paths: Vec<String> = lines.take(4).map(str::to_owned).collect();
    for glob in &globs {
        let some = glob.text().replace("/**", if input.len().is_multiple_of(2) { "/a/b" } else { "/**" });
        paths.extend([some.replace('*', "x"), some.replace('*', ""), some]);
    }
    for path in &paths {
        a_secret_is_one_by_every_spelling(path);
        for glob in &globs {
            a_glob_keeps_its_promises(glob, path);
        }
        for (wide, narrow) in globs.iter().flat_map(|wide| globs.iter().map(move |narrow| (wide, narrow))) {
            if wide.covers(narrow) {
                assert!(!narrow.matches(path) || wide.matches(path), "{wide:?} {narrow:?} {path:?}");
                assert!(!narrow.admits(path) || wide.admits(path), "{wide:?} {narrow:?} {path:?}");
            }
        }
    }
});

fn parsed(text: &str) -> Option<Glob> {
    let glob = Glob::parse(text).ok()?;
    assert_eq!(glob.text(), text);
    assert!(is_lexically_safe(text) && glob == Glob::parse(glob.text()).expect("its own text is a glob"));
    assert!(glob.covers(&glob));
    Some(glob)
}

fn a_secret_is_one_by_every_spelling(path: &str) {
    let secret = is_secret(path);
    let spellings = [
        path.replace('/', "//"),
        path.replace('/', "/./"),
        format!("//x/..//{path}"),
        format!("{path}/"),
        format!("{path}/."),
        format!("{path}/x/.."),
    ];
    for spelling in spellings {
        assert_eq!(is_secret(&spelling), secret, "{path:?} {spelling:?}");
        // It is refused as well, unless it is the same path to everyone.
        let same = |text: &str| text.strip_suffix('/').unwrap_or(text).to_owned();
        assert!(!is_lexically_safe(&spelling) || same(&spelling) == same(path), "{path:?} {spelling:?}");
    }
}

fn a_glob_keeps_its_promises(glob: &Glob, path: &str) {
    let matches = glob.matches(path);
    let names_its_end =
        !glob.text().contains("**") && !glob.text().rsplit('/').next().unwrap_or("").contains('*');
    // Any name in the place of a wildcard before the end leaves it a secret.
    let any = |(own, name): (&str, &str)| if own.contains('*') { "any".to_owned() } else { name.to_owned() };
    let named = glob.text().split('/').zip(path.split('/')).map(any).collect::<Vec<_>>().join("/");
    // A glob of the host's own, for its copies.
    let names_copies = !glob.text().ends_with("/**")
        && glob.text().rsplit('/').take(2).any(|name| name.starts_with(STAGING));
    let is_copy = |name: &str| {
        name.strip_prefix(STAGING)
            .is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|b| b"0123456789abcdef".contains(&b)))
    };
    let names_it = names_copies || (names_its_end && is_secret(&named) && !path.split('/').any(is_copy));
    if matches {
        let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(char::is_control);
        let names = path.strip_prefix('/').expect("a path without its slash");
        assert!(path == "/" || names.strip_suffix('/').unwrap_or(names).split('/').all(is_plain));
    }
    assert_eq!(glob.admits(path), matches && (!is_secret(path) || names_it));
    if glob.covers_listing(&PathText::new(path)) {
        let below = format!("{}/x", path.strip_suffix('/').unwrap_or(path));
        assert!(matches || glob.matches(&below) || below.len() > 4000, "{glob:?} {path:?}");
        assert!(!is_secret(path) || glob.admits(path), "{glob:?} {path:?}");
    }
    let with_slash = format!("{path}/");
    if is_lexically_safe(path) && is_lexically_safe(&with_slash) {
        assert_eq!(glob.matches(&with_slash), matches);
    }
    let is_short = |text: &str| text.len() <= 40 && text.matches('*').count() <= 8;
    if is_short(glob.text()) && is_short(path) && is_lexically_safe(path) {
        let names = |text: &str| -> Vec<String> {
            text.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let (names_of_glob, names) = (names(glob.text()), names(path));
        assert_eq!(matches, covers(&names_of_glob, &names), "{glob:?} {path:?}");
    }
}

/// The same question answered in the plainest way.
fn covers(glob: &[String], names: &[String]) -> bool {
    match glob {
        [] => names.is_empty(),
        [last] if last == "**" => !names.is_empty(),
        [first, rest @ ..] if first == "**" => (0..=names.len()).any(|taken| covers(rest, &names[taken..])),
        [first, rest @ ..] => names.split_first().is_some_and(|(name, names)| {
            covers_name(first.as_bytes(), name.as_bytes()) && covers(rest, names)
        }),
    }
}

fn covers_name(glob: &[u8], name: &[u8]) -> bool {
    match glob {
        [] => name.is_empty(),
        [b'*', rest @ ..] => (0..=name.len()).any(|taken| covers_name(rest, &name[taken..])),
        [first, rest @ ..] => {
            name.split_first().is_some_and(|(byte, name)| byte == first && covers_name(rest, name))
        }
    }
}
