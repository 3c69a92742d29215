//! Access control lists, as `getfacl` prints them (getfacl(1)).

use crate::CommandLine;
use crate::text::unescaped;

/// Prints the ACLs of those paths that have one.
pub const GETFACL: CommandLine = CommandLine::new("getfacl --absolute-names --skip-base -- <path>...");

/// The ACL of one path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acl {
    /// The path as it was asked for.
    pub path: String,
    /// The lines as printed, without comments.
    pub lines: Vec<String>,
}

impl Acl {
    /// The permissions of an entry, such as `user` and `ada`. An empty name stands for the owner.
    pub fn of(&self, kind: &str, name: &str) -> Option<u32> {
        self.lines.iter().find_map(|line| {
            let (found, rest) = line.split_once(':')?;
            let (who, permissions) = rest.split_once(':')?;
            (found == kind && who == name).then(|| bits(permissions))
        })
    }

    /// The permissions that the mask leaves to everybody but the owner and others.
    pub fn mask(&self) -> u32 {
        self.of("mask", "").unwrap_or(7)
    }
}

fn bits(permissions: &str) -> u32 {
    permissions.chars().take(3).fold(0, |bits, letter| {
        bits | match letter {
            'r' => 4,
            'w' => 2,
            'x' => 1,
            _ => 0,
        }
    })
}

/// The ACLs in the output of [`GETFACL`], by path.
pub fn acls(text: &str) -> Vec<Acl> {
    let mut all: Vec<Acl> = Vec::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("# file: ") {
            all.push(Acl { path: unescaped(path), lines: Vec::new() });
        } else if let Some(acl) = all.last_mut()
            && !line.starts_with('#')
            && !line.is_empty()
        {
            // The effective permissions stand after the entry.
            acl.lines.push(line.split_whitespace().next().unwrap_or_default().to_owned());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_told_by_their_path() {
        // The text has the form of getfacl(1), OUTPUT FORMAT.
        let text = "# file: /srv/a\\040b\n# owner: root\n# group: www\n# flags: -s-\nuser::rwx\nuser:ada:rwx\t\t#effective:r-x\n\
                    group::r-x\nmask::r-x\nother::---\ndefault:user::rwx\n\n# file: /x\nuser::r--\n";
        let all = acls(text);
        assert_eq!((all.len(), all[0].path.as_str()), (2, "/srv/a b"));
        assert_eq!((all[0].of("user", "ada"), all[0].mask(), all[0].of("user", "bob")), (Some(7), 5, None));
        assert_eq!((all[0].of("user", ""), all[1].of("user", ""), all[1].mask()), (Some(7), Some(4), 7));
        assert_eq!(acls("getfacl: /none: No such file or directory\n"), []);
    }
}
