//! The room on file systems: bytes and inodes, as statfs(2) counts them and df(1) shows them.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{Privilege, prelude::*, text::has_hidden};

use crate::mount_table::Mount;

/// Asks file systems for their numbers. The hole takes a mount point as a text: a path would be resolved first, which can't end
/// where the file system hangs.
const STATFS: CommandLine =
    CommandLine::new("stat --file-system --printf '%b %f %a %S %c %d %n\\0' -- <text>...");

/// The most file systems that are asked one by one. Eight are asked at once, for at most 10 s each.
const MOST_ALONE: usize = 48;

pub(crate) fn grants() -> [CommandGrant; 1] {
    [STATFS.read("bytes and inodes of file systems, used and free").as_root_if_available()]
}

/// The numbers of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Space {
    /// The size in bytes.
    pub(crate) size: u64,
    /// The free bytes, with those that are reserved for root.
    pub(crate) free: u64,
    /// The bytes that every account may use.
    pub(crate) available: u64,
    /// The number of inodes, 0 where the file system makes them as needed.
    pub(crate) inodes: u64,
    pub(crate) inodes_free: u64,
}

impl Space {
    pub(crate) fn used(&self) -> u64 {
        self.size.saturating_sub(self.free)
    }

    /// The bytes that only root may use. Other file systems than ext count what they can't promise among them.
    pub(crate) fn reserved_on(&self, mount: &Mount) -> u64 {
        if mount.kind.starts_with("ext") { self.free.saturating_sub(self.available) } else { 0 }
    }

    /// The percentage as df(1) computes it: of what every account could use, rounded up.
    pub(crate) fn used_pct(&self) -> u64 {
        percent(self.used(), self.used().saturating_add(self.available))
    }

    pub(crate) fn inodes_used(&self) -> u64 {
        self.inodes.saturating_sub(self.inodes_free)
    }

    pub(crate) fn inodes_used_pct(&self) -> u64 {
        percent(self.inodes_used(), self.inodes)
    }

    fn parse(line: &str) -> Option<(&str, Self)> {
        let mut words = line.splitn(7, ' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let (blocks, free, available, unit) = (number()?, number()?, number()?, number()?);
        let (inodes, inodes_free) = (number()?, number()?);
        let bytes = |blocks: u64| blocks.saturating_mul(unit);
        let space = Self {
            size: bytes(blocks),
            free: bytes(free),
            // A file system that is fuller than its reserve allows may say a negative number.
            available: if available > blocks { 0 } else { bytes(available) },
            inodes,
            inodes_free,
        };
        Some((words.next()?, space))
    }
}

fn percent(part: u64, whole: u64) -> u64 {
    let rounded_up = (u128::from(part) * 100).div_ceil(u128::from(whole.max(1)));
    u64::try_from(rounded_up).unwrap_or(u64::MAX)
}

/// The numbers of each mount, or why there are none.
pub(crate) fn of(mounts: &[&Mount], cx: &Context) -> Vec<std::result::Result<Space, String>> {
    // A grant takes no such name, and would refuse all that are asked with it.
    let can_be_named = |mount: &&&Mount| !has_hidden(&mount.point);
    let (alone, together): (Vec<&Mount>, Vec<&Mount>) =
        mounts.iter().filter(can_be_named).partition(|mount| mount.may_hang());
    let mut groups: Vec<Vec<&Mount>> = alone.into_iter().take(MOST_ALONE).map(|mount| vec![mount]).collect();
    if !together.is_empty() {
        groups.push(together);
    }
    let mut known = answers(&groups, cx);
    // A disk that is gone holds up all that were asked with it, so that each of those is asked again by itself.
    let again: Vec<Vec<&Mount>> = groups
        .iter()
        .filter(|group| group.len() > 1 && group.iter().any(|mount| is_late(known.get(&mount.point))))
        .flatten()
        .take(MOST_ALONE)
        .map(|mount| vec![*mount])
        .collect();
    known.extend(answers(&again, cx));
    let left_out = |mount: &Mount| {
        let why = if has_hidden(&mount.point) { "its name can't be seen whole" } else { "too many may hang" };
        Err(format!("not asked: {why}"))
    };
    mounts.iter().map(|mount| known.get(&mount.point).cloned().unwrap_or_else(|| left_out(mount))).collect()
}

type Answers = BTreeMap<String, std::result::Result<Space, String>>;

const LATE: &str = "doesn't answer";

fn is_late(answer: Option<&std::result::Result<Space, String>>) -> bool {
    matches!(answer, Some(Err(why)) if why.starts_with(LATE))
}

fn answers(groups: &[Vec<&Mount>], cx: &Context) -> Answers {
    let command = |group: &Vec<&Mount>| {
        STATFS.with(group.iter().map(|mount| mount.point.as_str())).privilege(Privilege::RootIfAvailable)
    };
    let outputs = cx.run_all(groups.iter().map(command).collect());
    let mut known = Answers::new();
    for (group, output) in groups.iter().zip(outputs) {
        for mount in group {
            let answer = match &output {
                Ok(output) => of_one(&mount.point, output),
                Err(problem) if problem.code == "COMMAND_TIMEOUT" => Err(format!("{LATE} within 10 s")),
                Err(problem) => Err(problem.message.clone()),
            };
            known.insert(mount.point.clone(), answer);
        }
    }
    known
}

fn of_one(point: &str, output: &Output) -> std::result::Result<Space, String> {
    let text = output.text();
    let found = text.split('\0').filter_map(Space::parse).find(|(name, _)| *name == point);
    found.map(|(_, space)| space).ok_or_else(|| {
        let said = output.error_text();
        let why = said.lines().find(|line| line.contains(point)).unwrap_or(&said);
        why.rsplit(": ").next().unwrap_or_default().to_owned()
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;

    #[test]
    fn percentages_are_those_of_df() {
        // df 9.1 beside stat on an ext4 file system with a reserve: 100 % with 5 % free.
        let (name, space) = Space::parse("7640 400 0 1024 2008 0 /mnt/a b").unwrap();
        assert_eq!(
            (name, space.used_pct(), space.free - space.available, space.inodes_used_pct()),
            ("/mnt/a b", 100, 409_600, 100)
        );
        let (_, space) = Space::parse("1000 901 850 4096 0 0 /x").unwrap();
        assert_eq!((space.used_pct(), space.inodes_used_pct()), (11, 0));
        let (_, empty) = Space::parse("0 0 0 4096 0 0 /x").unwrap();
        assert_eq!((empty.used_pct(), empty.size), (0, 0));
        let (_, over) = Space::parse("100 5 18446744073709551606 1024 10 5 /x").unwrap();
        assert_eq!((over.available, over.used_pct()), (0, 100));
        assert!(Space::parse("100 5 x").is_none() && Space::parse("").is_none());
    }

    #[test]
    fn why_there_are_no_numbers_is_told_in_the_programs_words() {
        let said = "stat: cannot read file system information for '/mnt/x: y': Transport endpoint is not connected\n";
        assert_eq!(
            of_one("/mnt/x: y", &output(1, "", said)).unwrap_err(),
            "Transport endpoint is not connected"
        );
    }
}
