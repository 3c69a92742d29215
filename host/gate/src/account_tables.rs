//! Reads what the target says of all its accounts and groups: the tables that getent(1) prints, the ranges of
//! subordinate ids, and the dynamic users of units.

use std::ops::RangeInclusive;

use host_base::passwd;

/// A line of group(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEntry {
    pub name: String,
    pub gid: u32,
    pub members: Vec<String>,
}

/// Parses lines of group(5). Lines of another form are skipped, as the system's own look-ups do.
pub fn parse_groups(text: &str) -> Vec<GroupEntry> {
    let group = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, gid, members] = fields[..] else { return None };
        let members = members.split(',').filter(|member| !member.is_empty()).map(str::to_owned).collect();
        Some(GroupEntry { name: name.to_owned(), gid: gid.parse().ok()?, members })
    };
    text.lines().filter_map(group).collect()
}

/// The names of the accounts that have a group: its members, and the accounts with this primary group.
pub fn holders<'a>(group: &'a GroupEntry, accounts: &'a [passwd::Entry]) -> Vec<&'a str> {
    let primary = accounts.iter().filter(|entry| entry.gid == group.gid).map(|entry| entry.name.as_str());
    let mut names: Vec<&str> = group.members.iter().map(String::as_str).chain(primary).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Parses subuid(5) or subgid(5). None where a line can't be read.
pub fn parse_ranges(text: &str) -> Option<Vec<RangeInclusive<u64>>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let range = |line: &str| {
        let mut fields = line.split(':').skip(1);
        let (start, count) = (fields.next()?.parse::<u64>().ok()?, fields.next()?.parse::<u64>().ok()?);
        Some(start..=start.checked_add(count)?)
    };
    lines.map(range).collect()
}

/// A unit whose commands run as a dynamic user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicUnit {
    /// The unit's name.
    pub id: String,
    /// The name of its dynamic user, which is that of its group too unless the unit names another one.
    pub user: String,
}

/// Finds the units with dynamic users in what `systemctl show --property=Id,User,DynamicUser` prints.
pub fn dynamic_units(shown: &str) -> Vec<DynamicUnit> {
    let of_block = |block: &str| {
        let value = |key: &str| {
            block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap_or_default()
        };
        let (id, user) = (value("Id"), value("User"));
        (value("DynamicUser") == "yes").then(|| {
            // systemd fills in the name while it loads the unit.
            let user = if user.is_empty() { prefix(id) } else { user };
            DynamicUnit { id: id.to_owned(), user: user.to_owned() }
        })
    };
    shown.split("\n\n").filter_map(of_block).collect()
}

/// Whether a unit is the same as the one that a file names, or an instance of it.
pub fn is_of_file(id: &str, file: &str) -> bool {
    let template = |name: &str| {
        let (prefix, rest) = name.split_once('@')?;
        Some((prefix.to_owned(), rest.rsplit_once('.')?.1.to_owned()))
    };
    id == file || file.contains("@.") && template(id).is_some() && template(id) == template(file)
}

/// The unit's name without instance and suffix.
fn prefix(unit: &str) -> &str {
    let stem = unit.rsplit_once('.').map_or(unit, |(stem, _)| stem);
    stem.split_once('@').map_or(stem, |(prefix, _)| prefix)
}

/// The names to ask systemd about, from what `systemctl list-unit-files` prints. A template stands for an instance.
pub fn unit_file_names(listed: &str) -> Vec<String> {
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| name.contains('.')).map(|name| name.replacen("@.", "@x.", 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_held_by_its_members_and_by_who_has_it_as_the_primary_one() {
        let accounts =
            passwd::parse("ada:x:1000:5000::/home/ada:/bin/sh\nbob:x:1001:1001::/home/bob:/bin/sh\n");
        let groups = parse_groups("team:x:5000:bob,ada\nempty:x:5001:\nbroken:x\nteam2:x:z:ada\n");
        assert_eq!(groups.len(), 2);
        assert_eq!(holders(&groups[0], &accounts), ["ada", "bob"]);
        assert!(holders(&groups[1], &accounts).is_empty());
    }

    #[test]
    fn a_range_that_cannot_be_read_makes_all_unknown() {
        let ranges = parse_ranges("# comment\nada:100000:65536\n\nbob:165536:65536\n").unwrap();
        assert!(ranges[0].contains(&100_000) && ranges[1].contains(&200_000));
        assert!(!ranges[0].contains(&99_999));
        for text in ["ada:100000\n", "ada:x:y\n", "nonsense\n"] {
            assert!(parse_ranges(text).is_none(), "{text}");
        }
    }

    #[test]
    fn dynamic_users_are_found_by_what_systemd_says_of_all_units() {
        let shown = "Id=a.service\nUser=\nDynamicUser=no\n\nId=vault@x.service\nUser=\nDynamicUser=yes\n\n\
                     DynamicUser=yes\nUser=apid\nId=other.service\n\nId=s.mount\n";
        let found = dynamic_units(shown);
        let pairs: Vec<_> = found.iter().map(|unit| (unit.id.as_str(), unit.user.as_str())).collect();
        assert_eq!(pairs, [("vault@x.service", "vault"), ("other.service", "apid")]);
    }

    #[test]
    fn a_unit_is_its_own_file_or_an_instance_of_it() {
        for (id, file, is) in [
            ("a.service", "a.service", true),
            ("a@1.service", "a@.service", true),
            ("a@1.service", "a.service", false),
            ("a.service", "a@.service", false),
            ("a@1.socket", "a@.service", false),
            ("b@1.service", "a@.service", false),
        ] {
            assert_eq!(is_of_file(id, file), is, "{id} {file}");
        }
    }

    #[test]
    fn a_template_is_asked_about_by_an_instance() {
        let listed = "a.service enabled enabled\nb@.service static -\n\n3 unit files listed.\n";
        assert_eq!(unit_file_names(listed), ["a.service", "b@x.service"]);
    }
}
