//! How fast files grow, by two samples a second apart.

use std::collections::BTreeMap;
use std::time::Duration;

use linux_sysadmin_sdk::{Privilege, prelude::*, text::has_hidden};

use super::walk::{Changed, Taken};
use crate::size::shown;

/// Prints the blocks of files. The hole takes paths as texts, as the walk does.
const BLOCKS: CommandLine = CommandLine::new("stat --printf '%b %n\\0' -- <text>...");

/// The most files that are sampled.
const MOST: usize = 10;
/// A smaller file isn't sampled, in bytes.
const SMALL: u64 = 1 << 20;
/// The unit of `%b` in bytes, which stat(1) calls `%B`.
const BLOCK: f64 = 512.0;

pub(crate) fn grants() -> [CommandGrant; 1] {
    [BLOCKS.read("how fast the largest files grow").as_root_if_available()]
}

/// The growth of files, as `1.5M/s`, of those that grew within a second.
pub(crate) fn rates(files: &[Taken], cx: &Context) -> BTreeMap<String, String> {
    let is_watched = |file: &&Taken| file.changed == Some(Changed::TenMinutes) && file.bytes >= SMALL;
    // A grant takes no character that can't be seen.
    let can_be_named = |file: &&Taken| !has_hidden(&file.path);
    let watched = files.iter().filter(is_watched).filter(can_be_named).take(MOST);
    let paths: Vec<&str> = watched.map(|file| file.path.as_str()).collect();
    if paths.is_empty() {
        return BTreeMap::new();
    }
    let sample = || {
        let output = cx.run(BLOCKS.with(paths.iter().copied()).privilege(Privilege::RootIfAvailable));
        (cx.monotonic(), output.map(|output| blocks(&output.text())).unwrap_or_default())
    };
    let (began, before) = sample();
    cx.sleep(Duration::from_secs(1));
    let (ended, after) = sample();
    grown(&before, after, ended - began)
}

type Blocks = BTreeMap<String, u64>;

fn grown(before: &Blocks, after: Blocks, seconds: f64) -> BTreeMap<String, String> {
    let grew = after.into_iter().filter_map(|(path, blocks)| {
        let more = blocks.checked_sub(*before.get(&path)?).filter(|more| *more > 0)?;
        let rate = (more as f64 * BLOCK / seconds.max(0.1)) as u64;
        Some((path, format!("{}/s", shown(rate))))
    });
    grew.collect()
}

fn blocks(text: &str) -> Blocks {
    let file = |line: &str| {
        let (blocks, path) = line.split_once(' ')?;
        Some((path.to_owned(), blocks.parse().ok()?))
    };
    text.split('\0').filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grew_between_two_samples_has_a_rate_and_nothing_else_has() {
        let before = blocks("8 /grows\x0016 /stays\x0032 /shrinks\x008 /gone\0");
        let after = blocks("4104 /grows\x0016 /stays\x008 /shrinks\x00999 /new x\0garbage\0");
        assert_eq!(grown(&before, after, 2.0), BTreeMap::from([("/grows".to_owned(), "1M/s".to_owned())]));
    }
}
