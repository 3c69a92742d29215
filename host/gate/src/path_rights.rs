//! The rights that a chmod, chown or chgrp command sets on paths, read from its words, and those that a step sets.

use super::plan::Attributes;

/// The rights that a command sets on paths.
#[derive(Debug, Default)]
pub(super) struct PathRights<'a> {
    pub paths: Vec<&'a str>,
    pub owner: Option<&'a str>,
    /// The new group, unless it is root's.
    pub group: Option<&'a str>,
    /// The permission bits that the command sets for certain or perhaps, whether or not they are set already.
    pub gives: u32,
    /// The permission bits that the command takes away for certain or perhaps, whether or not they are set now.
    pub takes: u32,
}

/// The name, or `root` where it is root's number in any spelling: chown(1) also takes `+0` and `00`.
fn account(name: &str) -> &str {
    let digits = name.strip_prefix('+').unwrap_or(name);
    match !digits.is_empty() && digits.bytes().all(|byte| byte == b'0') {
        true => "root",
        false => name,
    }
}

impl<'a> PathRights<'a> {
    /// The rights that a step sets on a path.
    pub fn of_attributes(path: &'a str, attributes: &'a Attributes) -> Self {
        let name = |name: &'a Option<String>| name.as_deref().map(account);
        Self {
            paths: vec![path],
            owner: name(&attributes.owner),
            group: name(&attributes.group).filter(|group| *group != "root"),
            gives: attributes.mode.unwrap_or_default() & 0o777,
            takes: attributes.mode.map_or(0, |mode| !mode & 0o777),
        }
    }

    /// The rights that a chmod, chown or chgrp command sets. None for other programs.
    pub fn of_command(argv: &'a [String]) -> Option<Self> {
        let (program, arguments) = argv.split_first()?;
        let mut operands = arguments.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
        let not_root = |name: &'a str| Some(account(name)).filter(|name| !matches!(*name, "" | "root"));
        match program.as_str() {
            "chmod" => {
                let mode = operands.next().unwrap_or_default();
                let given = match u32::from_str_radix(mode, 8) {
                    Ok(bits) => Self { gives: bits & 0o777, takes: !bits & 0o777, ..Self::default() },
                    Err(_) => Self::of_symbolic_mode(mode),
                };
                Some(Self { paths: operands.collect(), ..given })
            }
            "chown" => {
                let both = operands.next().unwrap_or_default();
                let (owner, group) = both.split_once([':', '.']).unwrap_or((both, ""));
                let paths = operands.collect();
                let owner = Some(account(owner)).filter(|owner| !owner.is_empty());
                Some(Self { paths, owner, group: not_root(group), ..Self::default() })
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

    /// Whether any of the permission bits becomes another one.
    pub fn changes(&self, mode: u32) -> bool {
        self.gives & !mode & 0o777 != 0 || self.takes & mode & 0o777 != 0
    }

    /// Whether the owner may not read a file of this mode any more, or not read or enter a directory of this mode.
    pub fn shuts_owner_out(&self, mode: u32, is_directory: bool) -> bool {
        self.takes & mode & if is_directory { 0o500 } else { 0o400 } != 0
    }

    /// Whether somebody may not enter a directory of this mode any more.
    pub fn closes(&self, mode: u32) -> bool {
        self.takes & mode & 0o111 != 0
    }

    /// The rights in a symbolic mode such as `u=rwx,g+w`.
    fn of_symbolic_mode(mode: &str) -> Self {
        let mut given = Self::default();
        for clause in mode.split(',') {
            let Some(at) = clause.find(['+', '-', '=']) else { continue };
            let (whose, rights) = (&clause[..at], &clause[at + 1..]);
            let is_all = whose.is_empty() || whose.contains('a');
            let copies = rights.contains(['u', 'g', 'o']);
            let bits = |named: &dyn Fn(char) -> bool, of: [(char, u32); 3]| {
                of.iter().filter(|(name, _)| named(*name)).fold(0, |all, (_, bits)| all | bits)
            };
            let to =
                bits(&|class| is_all || whose.contains(class), [('u', 0o700), ('g', 0o070), ('o', 0o007)]);
            let named = |right: char| rights.contains(right) || right == 'x' && rights.contains('X');
            let of = [('r', 0o444), ('w', 0o222), ('x', 0o111)];
            let what = bits(&|right| named(right) || copies, of) & to;
            match clause.as_bytes()[at] {
                b'-' => given.takes |= what,
                // A copy may lack any of the bits.
                b'=' => {
                    given.gives |= what;
                    given.takes |= to & !(bits(&named, of));
                }
                _ => given.gives |= what,
            }
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Action;
    use crate::plan::tests::setting;

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
            ("chmod u=g /a", &["/a"], None, None, 0o700, true),
            ("chmod u-o /a", &["/a"], None, None, 0, true),
            ("chmod u+w,go-w /a", &["/a"], None, None, 0o200, false),
            ("chmod u-x /a", &["/a"], None, None, 0, true),
            ("chmod a-r /a", &["/a"], None, None, 0, true),
            ("chmod u= /a", &["/a"], None, None, 0, true),
            ("chmod = /a", &["/a"], None, None, 0, true),
            ("chown --no-dereference -- bob:eve /a", &["/a"], Some("bob"), Some("eve"), 0, false),
            ("chown root:bob /a", &["/a"], Some("root"), Some("bob"), 0, false),
            ("chown 0:0 /a", &["/a"], Some("root"), None, 0, false),
            ("chown +0:+0 /a", &["/a"], Some("root"), None, 0, false),
            ("chown 000:00 /a", &["/a"], Some("root"), None, 0, false),
            ("chown +:+ /a", &["/a"], Some("+"), Some("+"), 0, false),
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
            assert_eq!(rights.shuts_owner_out(0o777, true), shuts_out, "{line}");
        }
        assert!(PathRights::of_command(&["ls".to_owned()]).is_none());
    }

    #[test]
    fn a_step_gives_the_rights_that_the_commands_for_it_give() {
        for (mode, owner, group) in [
            (Some(0o640), None, None),
            (Some(0o4777), Some("ada"), Some("ada")),
            (None, Some("0"), Some("root")),
            (None, None, Some("ada")),
        ] {
            let step = setting("/a", mode, owner, group);
            let Action::SetAttributes(attributes) = &step.action else { unreachable!() };
            let rights = PathRights::of_attributes("/a", attributes);
            let mode = mode.map(|mode| format!("{mode:o}"));
            let chmod = ["chmod", mode.as_deref().unwrap_or("u+"), "/a"].map(str::to_owned);
            let both = format!("{}:{}", owner.unwrap_or_default(), group.unwrap_or_default());
            let chown = ["chown", &both, "/a"].map(str::to_owned);
            let (chmod, chown) =
                (PathRights::of_command(&chmod).unwrap(), PathRights::of_command(&chown).unwrap());
            assert_eq!((rights.gives, rights.takes), (chmod.gives, chmod.takes));
            assert_eq!((rights.owner, rights.group, rights.paths), (chown.owner, chown.group, chown.paths));
        }
    }

    #[test]
    fn a_bit_that_is_set_already_opens_nothing() {
        let rights = PathRights { gives: 0o754, ..PathRights::default() };
        assert_eq!((rights.opens(0o700), rights.opens(0o750), rights.opens(0o755)), (0o054, 0o004, 0));
    }

    #[test]
    fn an_owner_is_shut_out_of_a_file_that_the_owner_could_read() {
        for (mode, before, is_directory, shuts_out) in [
            ("0600", 0o644, false, false),
            ("0000", 0o600, false, true),
            ("a-r", 0o600, false, true),
            ("u-r", 0o200, false, false),
            ("0600", 0o700, true, true),
            ("0600", 0o600, true, false),
        ] {
            let argv = ["chmod", mode, "/a"].map(str::to_owned);
            let rights = PathRights::of_command(&argv).unwrap();
            assert_eq!(rights.shuts_owner_out(before, is_directory), shuts_out, "{mode} {before:o}");
        }
    }

    #[test]
    fn a_directory_is_closed_where_somebody_may_not_enter_it_any_more() {
        for (mode, before, closes) in [
            ("0700", 0o755, true),
            ("0700", 0o700, false),
            ("0711", 0o755, false),
            ("0750", 0o755, true),
            ("0600", 0o700, true),
            ("o-x", 0o755, true),
            ("o-x", 0o750, false),
            ("o-r", 0o755, false),
            ("a-X", 0o755, true),
            ("g=r", 0o755, true),
            ("o=g", 0o755, true),
            ("o=rx", 0o755, false),
            ("g=", 0o710, true),
            ("u+w,o=", 0o755, true),
        ] {
            let argv = ["chmod", mode, "/a"].map(str::to_owned);
            assert_eq!(PathRights::of_command(&argv).unwrap().closes(before), closes, "{mode} {before:o}");
        }
    }
}
