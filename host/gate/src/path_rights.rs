//! The rights that a chmod, chown or chgrp command sets on paths, read from its words.

/// The rights that a command sets on paths.
#[derive(Debug, Default)]
pub(super) struct PathRights<'a> {
    pub paths: Vec<&'a str>,
    /// The new owner, unless it is root.
    pub owner: Option<&'a str>,
    /// The new group, unless it is root's.
    pub group: Option<&'a str>,
    /// True where a group or everybody may write.
    pub others_write: bool,
    /// True where everybody may read.
    pub others_read: bool,
    /// True where everybody may enter a directory.
    pub others_enter: bool,
    /// True where the owner may not enter or read any more.
    pub shuts_owner_out: bool,
}

impl<'a> PathRights<'a> {
    /// The rights that a chmod, chown or chgrp command sets. None for other programs.
    pub fn of_command(argv: &'a [String]) -> Option<Self> {
        let (program, arguments) = argv.split_first()?;
        let mut operands = arguments.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
        let not_root = |name: &'a str| (!matches!(name, "" | "root" | "0")).then_some(name);
        match program.as_str() {
            "chmod" => {
                let mode = operands.next().unwrap_or_default();
                let given = match u32::from_str_radix(mode, 8) {
                    Ok(bits) => Self {
                        others_write: bits & 0o022 != 0,
                        others_read: bits & 0o004 != 0,
                        others_enter: bits & 0o001 != 0,
                        shuts_owner_out: bits & 0o500 != 0o500,
                        ..Self::default()
                    },
                    Err(_) => Self::of_symbolic_mode(mode),
                };
                Some(Self { paths: operands.collect(), ..given })
            }
            "chown" => {
                let both = operands.next().unwrap_or_default();
                let (owner, group) = both.split_once([':', '.']).unwrap_or((both, ""));
                let paths = operands.collect();
                Some(Self { paths, owner: not_root(owner), group: not_root(group), ..Self::default() })
            }
            "chgrp" => {
                let group = operands.next().unwrap_or_default();
                Some(Self { paths: operands.collect(), group: not_root(group), ..Self::default() })
            }
            _ => None,
        }
    }

    /// The rights in a symbolic mode such as `u=rwx,g+w`.
    fn of_symbolic_mode(mode: &str) -> Self {
        let mut given = Self::default();
        for clause in mode.split(',') {
            let Some(at) = clause.find(['+', '-', '=']) else { continue };
            let (whose, rights) = (&clause[..at], &clause[at + 1..]);
            let is_all = whose.is_empty() || whose.contains('a');
            let copies = rights.contains(['u', 'g', 'o']);
            let (reads, goes_in) = (rights.contains('r') || copies, rights.contains(['x', 'X']) || copies);
            if is_all || whose.contains('u') {
                given.shuts_owner_out |= match clause.as_bytes()[at] {
                    b'-' => reads || goes_in,
                    b'=' => !(reads && goes_in),
                    _ => false,
                };
            }
            if clause.as_bytes()[at] != b'-' {
                let group_or_all = is_all || whose.contains(['g', 'o']);
                given.others_write |= group_or_all && (rights.contains('w') || copies);
                given.others_read |= (is_all || whose.contains('o')) && reads;
                given.others_enter |= (is_all || whose.contains('o')) && goes_in;
            }
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rights_a_command_gives_is_read_from_its_words() {
        for (line, paths, owner, group, write, read, shuts_out) in [
            ("chmod -- 0644 /a", &["/a"][..], None, None, false, true, true),
            ("chmod 775 /a /b", &["/a", "/b"], None, None, true, true, false),
            ("chmod 0 /a", &["/a"], None, None, false, false, true),
            ("chmod u=rwX,g=rX,o= /a", &["/a"], None, None, false, false, false),
            ("chmod g+w /a", &["/a"], None, None, true, false, false),
            ("chmod +r /a", &["/a"], None, None, false, true, false),
            ("chmod o=g /a", &["/a"], None, None, true, true, false),
            ("chmod u+w,go-w /a", &["/a"], None, None, false, false, false),
            ("chmod u-x /a", &["/a"], None, None, false, false, true),
            ("chmod a-r /a", &["/a"], None, None, false, false, true),
            ("chmod u= /a", &["/a"], None, None, false, false, true),
            ("chmod = /a", &["/a"], None, None, false, false, true),
            ("chown --no-dereference -- bob:eve /a", &["/a"], Some("bob"), Some("eve"), false, false, false),
            ("chown root:bob /a", &["/a"], None, Some("bob"), false, false, false),
            ("chown :bob /a", &["/a"], None, Some("bob"), false, false, false),
            ("chgrp bob /a", &["/a"], None, Some("bob"), false, false, false),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let rights = PathRights::of_command(&argv).unwrap();
            assert_eq!(
                (&rights.paths[..], rights.owner, rights.group, rights.others_write, rights.others_read),
                (paths, owner, group, write, read),
                "{line}"
            );
            assert_eq!(rights.shuts_owner_out, shuts_out, "{line}");
        }
        assert!(PathRights::of_command(&["ls".to_owned()]).is_none());
    }
}
