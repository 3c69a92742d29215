//! /etc/fstab, see fstab(5). An edit changes one line and keeps every other byte.

use linux_sysadmin_sdk::{prelude::*, text::unescaped};

use super::options;

pub(crate) const PATH: &str = "/etc/fstab";

/// A line that names a file system or a swap area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The number of the line, from 1.
    pub(crate) line: usize,
    /// The device, `UUID=…`, the network's path or the name, without quotes.
    pub(crate) source: String,
    /// The mount point without a slash at its end; `none` for swap.
    pub(crate) mount_point: String,
    pub(crate) fs_type: String,
    pub(crate) options: String,
    pub(crate) dump: String,
    pub(crate) pass: String,
}

impl Entry {
    pub(crate) fn is_swap(&self) -> bool {
        self.fs_type == "swap"
    }

    pub(crate) fn has(&self, option: &str) -> bool {
        options::has(&self.options, option)
    }

    /// Whether the machine starts without it.
    pub(crate) fn is_optional(&self) -> bool {
        self.has("nofail") || self.has("noauto")
    }

    fn parse(line: usize, text: &str) -> Option<Self> {
        let mut fields = text.split_whitespace().map(unescaped);
        let source = fields.next()?;
        let mount_point = fields.next()?;
        let fs_type = fields.next()?;
        let mut or = |default: &str| fields.next().unwrap_or_else(|| default.to_owned());
        Some(Self {
            line,
            source: source.replace('"', ""),
            mount_point: without_slash(&mount_point).to_owned(),
            fs_type,
            options: or("defaults"),
            dump: or("0"),
            pass: or("0"),
        })
    }

    /// The line as it is written, with its newline. The separator is that of the other lines.
    fn written(&self, separator: &str) -> String {
        let fields = [&self.source, &self.mount_point, &self.fs_type, &self.options, &self.dump, &self.pass];
        fields.map(|field| escaped(field)).join(separator) + "\n"
    }
}

/// The path without a slash at its end.
pub(crate) fn without_slash(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" if path.starts_with('/') => "/",
        path => path,
    }
}

/// Blanks and the like as fstab(5) writes them.
fn escaped(field: &str) -> String {
    let mut text = String::new();
    for character in field.chars() {
        match character {
            ' ' | '\t' | '\n' | '\\' | '#' => text.push_str(&format!("\\{:03o}", u32::from(character))),
            character => text.push(character),
        }
    }
    text
}

/// The file with its entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    bytes: Vec<u8>,
    pub(crate) entries: Vec<Entry>,
    /// The numbers of the lines that have fewer than three fields.
    pub(crate) broken: Vec<usize>,
}

impl Table {
    pub(crate) fn parse(bytes: Vec<u8>) -> Self {
        let mut table = Self::default();
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let text = String::from_utf8_lossy(line);
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            match Entry::parse(index + 1, text) {
                Some(entry) => table.entries.push(entry),
                None => table.broken.push(index + 1),
            }
        }
        table.bytes = bytes;
        table
    }

    /// Reads the file. A machine without one has an empty table.
    pub(crate) fn read(cx: &Context) -> Result<Self> {
        match cx.read_bytes(PATH) {
            Ok(bytes) => Ok(Self::parse(bytes)),
            Err(problem) if problem.code == "FILE_NOT_FOUND" => Ok(Self::default()),
            Err(problem) => Err(problem),
        }
    }

    /// The entries at a mount point.
    pub(crate) fn at(&self, mount_point: &str) -> Vec<&Entry> {
        let is_there = |entry: &&Entry| !entry.is_swap() && entry.mount_point == mount_point;
        self.entries.iter().filter(is_there).collect()
    }

    /// The file with another entry at its end, whose `line` doesn't count.
    pub(crate) fn with(&self, entry: &Entry) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.push(b'\n');
        }
        let last =
            self.entries.last().and_then(|last| self.bytes.split(|byte| *byte == b'\n').nth(last.line - 1));
        let separator = if last.is_some_and(|line| line.contains(&b'\t')) { "\t" } else { " " };
        bytes.extend(entry.written(separator).into_bytes());
        bytes
    }

    /// The file without these lines.
    pub(crate) fn without(&self, lines: &[usize]) -> Vec<u8> {
        let kept = self.bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
        kept.filter(|(index, _)| !lines.contains(&(index + 1))).flat_map(|(_, line)| line).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"# <file system>\t<mount point>\r\n\n  #x\nUUID=\"1-2\"\t/\text4 errors=remount-ro 0\t1\n\
        LABEL=data\\040disk /mnt/a\\040b/ ext4\nbroken line\n\xff /mnt/\xff vfat ro 0 0 # tail\nnone  none  swap  sw,pri=3";

    #[test]
    fn entries_have_their_fields_and_lines() {
        let table = Table::parse(TEXT.to_vec());
        let shown: Vec<_> = table
            .entries
            .iter()
            .map(|e| {
                format!(
                    "{} {} {} {} {} {} {}",
                    e.line, e.source, e.mount_point, e.fs_type, e.options, e.dump, e.pass
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "4 UUID=1-2 / ext4 errors=remount-ro 0 1",
                "5 LABEL=data disk /mnt/a b ext4 defaults 0 0",
                "7 \u{fffd} /mnt/\u{fffd} vfat ro 0 0",
                "8 none none swap sw,pri=3 0 0",
            ]
        );
        assert_eq!(table.broken, [6]);
        assert!(table.entries[3].is_swap() && table.entries[3].has("sw"));
        assert_eq!(Table::parse(Vec::new()).entries, []);
    }

    #[test]
    fn an_edit_keeps_every_other_byte() {
        let table = Table::parse(TEXT.to_vec());
        let entry = Entry { mount_point: "/mnt/ä b#".to_owned(), ..table.entries[1].clone() };
        let mut expected = TEXT.to_vec();
        expected.extend("\nLABEL=data\\040disk /mnt/ä\\040b\\043 ext4 defaults 0 0\n".as_bytes());
        let added = table.with(&entry);
        assert_eq!(added, expected);
        assert_eq!(Table::parse(added.clone()).entries[4].mount_point, entry.mount_point);
        assert_eq!(Table::parse(added).without(&[9]), [TEXT, b"\n"].concat());
        assert_eq!(table.without(&[]), TEXT);
        let rest = String::from_utf8_lossy(&table.without(&[5, 8])).into_owned();
        assert!(!rest.contains("LABEL") && !rest.contains("swap") && rest.ends_with("# tail\n"), "{rest}");
        let tabs = Table::parse(b"a\t/b\text4\n".to_vec());
        assert!(tabs.with(&entry).ends_with(b"\text4\tdefaults\t0\t0\n"));
        assert_eq!(Table::default().with(&table.entries[3]), b"none none swap sw,pri=3 0 0\n");
    }
}
