//! The rights that a chmod, chown or chgrp command sets on paths, read from its words.

/// The rights that a command sets on paths.
#[derive(Debug, Default)]
pub(super) struct PathRights<'a> {
    pub paths: Vec<&'a str>,
    /// The new owner, unless it is root.
    pub owner: Option<&'a str>,
    /// The new group, unless it is root's.
    pub group: Option<&'a str>,
    /// The permission bits that the command sets for certain or perhaps, whether or not they are set already.
    pub gives: u32,
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
                        gives: bits & 0o777,
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

    /// Whether a group or everybody may write.
    pub fn others_write(&self) -> bool {
        self.gives & 0o022 != 0
    }

    /// The bits of the group and of everybody that are not set now.
    pub fn opens(&self, mode: u32) -> u32 {
        self.gives & !mode & 0o077
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
                let to = [('u', 0o700), ('g', 0o070), ('o', 0o007)].into_iter();
                let to = to.filter(|(class, _)| is_all || whose.contains(*class));
                let what = [(reads, 0o444), (rights.contains('w') || copies, 0o222), (goes_in, 0o111)];
                let what = what.into_iter().filter(|(is_given, _)| *is_given);
                let bits = |bits: u32, (_, more): (_, u32)| bits | more;
                given.gives |= to.fold(0, |all, (_, more)| all | more) & what.fold(0, bits);
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
        for (line, paths, owner, group, gives, shuts_out) in [
            ("chmod -- 0644 /a", &["/a"][..], None, None, 0o644, true),
            ("chmod 775 /a /b", &["/a", "/b"], None, None, 0o775, false),
            ("chmod 0 /a", &["/a"], None, None, 0, true),
            ("chmod u=rwX,g=rX,o= /a", &["/a"], None, None, 0o750, false),
            ("chmod g+w /a", &["/a"], None, None, 0o020, false),
            ("chmod +r /a", &["/a"], None, None, 0o444, false),
            ("chmod o=g /a", &["/a"], None, None, 0o007, false),
            ("chmod u+w,go-w /a", &["/a"], None, None, 0o200, false),
            ("chmod u-x /a", &["/a"], None, None, 0, true),
            ("chmod a-r /a", &["/a"], None, None, 0, true),
            ("chmod u= /a", &["/a"], None, None, 0, true),
            ("chmod = /a", &["/a"], None, None, 0, true),
            ("chown --no-dereference -- bob:eve /a", &["/a"], Some("bob"), Some("eve"), 0, false),
            ("chown root:bob /a", &["/a"], None, Some("bob"), 0, false),
            ("chown :bob /a", &["/a"], None, Some("bob"), 0, false),
            ("chgrp bob /a", &["/a"], None, Some("bob"), 0, false),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let rights = PathRights::of_command(&argv).unwrap();
            assert_eq!(
                (&rights.paths[..], rights.owner, rights.group, rights.gives),
                (paths, owner, group, gives),
                "{line}"
            );
            assert_eq!(rights.shuts_owner_out, shuts_out, "{line}");
        }
        assert!(PathRights::of_command(&["ls".to_owned()]).is_none());
    }

    #[test]
    fn a_bit_that_is_set_already_opens_nothing() {
        let rights = PathRights { gives: 0o754, ..PathRights::default() };
        assert_eq!((rights.opens(0o700), rights.opens(0o750), rights.opens(0o755)), (0o054, 0o004, 0));
    }
}
