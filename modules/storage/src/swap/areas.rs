//! The swap areas in use, by `/proc/swaps`, and how much memory there is, by `/proc/meminfo`. See proc(5).

use linux_sysadmin_sdk::{prelude::*, text::unescaped};

pub(crate) const SWAPS: &str = "/proc/swaps";
pub(crate) const MEMORY: &str = "/proc/meminfo";

/// The name of the directories in which this tool keeps its files. They belong to root alone, so that nobody else can have
/// put something there.
pub(crate) const FOLDER: &str = "linux-sysadmin-swap";

/// A swap area in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) path: String,
    /// `file` or `partition`.
    pub(crate) kind: String,
    /// The size in bytes.
    pub(crate) size: u64,
    /// The bytes in use.
    pub(crate) used: u64,
    pub(crate) priority: i32,
}

impl Area {
    fn parse(line: &str) -> Option<Self> {
        // A name has no blanks, as they are escaped; the kernel fills up with blanks and tabs.
        let [path, kind, size, used, priority] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        let bytes = |kib: &str| kib.parse::<u64>().ok()?.checked_mul(1024);
        Some(Self {
            path: unescaped(path),
            kind: kind.to_owned(),
            size: bytes(size)?,
            used: bytes(used)?,
            priority: priority.parse().ok()?,
        })
    }

    /// Whether it is memory that is compressed.
    pub(crate) fn is_zram(&self) -> bool {
        self.path.starts_with("/dev/zram")
    }
}

/// The areas in the file's text.
pub(crate) fn parse(text: &str) -> Vec<Area> {
    text.lines().skip(1).filter_map(Area::parse).collect()
}

/// Reads the swap areas in use. A kernel without swap has no such file.
pub(crate) fn read(cx: &Context) -> Result<Vec<Area>> {
    match cx.read(SWAPS) {
        Ok(text) => Ok(parse(&text)),
        Err(problem) if problem.code == "FILE_NOT_FOUND" => Ok(Vec::new()),
        Err(problem) => Err(problem),
    }
}

/// The bytes of memory that programs could still get.
pub(crate) fn available_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Whether a file lies in a directory of this tool.
pub(crate) fn is_ours(path: &str) -> bool {
    let mut names = path.rsplit('/');
    names.next().is_some_and(|name| !name.is_empty()) && names.next() == Some(FOLDER)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn areas_are_read_as_the_kernel_writes_them() {
        // Linux 6.18; the second line is that of a file that was deleted while in use.
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/tmp/a\\040b/f                   file\t\t65512\t\t12\t\t-2\n\
            /x\\040(deleted)                   file\t\t65532\t\t0\t\t100\ngarbage\n";
        let areas = read(&FakeTarget::new().file(SWAPS, text).context()).unwrap();
        let shown: Vec<_> =
            areas.iter().map(|area| (area.path.as_str(), area.size, area.used, area.priority)).collect();
        assert_eq!(shown, [("/tmp/a b/f", 65512 << 10, 12 << 10, -2), ("/x (deleted)", 65532 << 10, 0, 100)]);
        assert_eq!(read(&FakeTarget::new().context()).unwrap(), []);
    }

    #[test]
    fn only_a_file_right_in_our_directory_is_ours() {
        assert!(is_ours("/var/lib/linux-sysadmin-swap/x"));
        for path in [
            "/swapfile",
            "/linux-sysadmin-swap",
            "/linux-sysadmin-swap/",
            "/linux-sysadmin-swap/a/b",
            "/xlinux-sysadmin-swap/a",
        ] {
            assert!(!is_ours(path), "{path}");
        }
    }

    #[test]
    fn available_memory_is_told_in_bytes() {
        assert_eq!(available_memory("MemTotal: 9 kB\nMemAvailable:   12 kB\n"), Some(12 << 10));
        assert_eq!(available_memory("MemTotal: 9 kB\n"), None);
    }
}
