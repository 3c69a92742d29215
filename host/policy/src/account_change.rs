//! Reads from a command which account it changes, and which groups it adds it to. How grave that is depends on the machine,
//! so the rules alone can't tell.

use super::argv::{Argv, Wanted};

/// The change that a command makes to an account.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AccountChange {
    /// Groups that the account becomes a member of, by name or number.
    pub groups: Vec<String>,
    /// The existing account that is changed.
    pub account: Option<String>,
    /// The account or group that is made.
    pub new: Option<NewAccount>,
}

/// A new account or group.
#[derive(Debug, PartialEq, Eq)]
pub struct NewAccount {
    /// The name.
    pub name: String,
    /// The number, where the command names one.
    pub number: Option<String>,
    /// The account's primary group, by name or number, where the command names one.
    pub primary_group: Option<String>,
    /// Whether it is a group.
    pub is_group: bool,
}

impl AccountChange {
    /// Reads the command lines of useradd(8), usermod(8), gpasswd(1) and Debian's adduser(8).
    pub fn of_command(words: &[&str]) -> Self {
        let argv = Argv::read(words);
        let values = |options: &[&str]| -> Vec<Option<&str>> {
            let wanted: Vec<_> = options.iter().map(|name| Wanted { name, exact: false }).collect();
            wanted.iter().flat_map(|option| argv.values(option)).collect()
        };
        let operand = |at: usize| argv.operands.get(at).map(|operand| operand.word.to_owned());
        let last = |values: Vec<Option<&str>>| values.into_iter().flatten().next_back().map(str::to_owned);
        let mut change = Self::default();
        for name in argv.names.iter() {
            match name {
                "useradd" | "usermod" | "adduser" => {
                    let lists = values(&["-G", "--groups", "-g", "--gid", "--ingroup"]);
                    let groups = lists.into_iter().flatten().flat_map(|list| list.split(','));
                    change.groups.extend(groups.filter(|group| !group.is_empty()).map(str::to_owned));
                    // A new account without a group option gets a group of its own name.
                    let own = values(&["-g", "--gid", "--ingroup", "-N", "--no-user-group"]).is_empty();
                    if name != "usermod" && own && values(&["-D", "--defaults"]).is_empty() {
                        change.groups.extend(operand(0));
                    }
                }
                "gpasswd" if !values(&["-a", "--add", "-M", "--members"]).is_empty() => {
                    change.groups.extend(operand(0));
                }
                _ => {}
            }
            match name {
                "usermod" => {
                    change.account = operand(0);
                    // By its new name it is like a new account.
                    change.new = last(values(&["-l", "--login"])).map(|name| NewAccount {
                        name,
                        number: last(values(&["-u", "--uid"])),
                        primary_group: last(values(&["-g", "--gid"])),
                        is_group: false,
                    });
                }
                "gpasswd" => {
                    let accounts = values(&["-a", "--add", "-d", "--delete"]);
                    change.account = accounts.into_iter().flatten().next().map(str::to_owned);
                }
                "useradd" | "adduser" if operand(1).is_none() => {
                    let is_default = !values(&["-D", "--defaults"]).is_empty();
                    change.new = operand(0).filter(|_| !is_default).map(|name| NewAccount {
                        name,
                        number: last(values(&["-u", "--uid"])),
                        primary_group: last(values(&["-g", "--gid", "--ingroup"])),
                        is_group: false,
                    });
                }
                "groupadd" | "addgroup" if operand(1).is_none() => {
                    change.new = operand(0).map(|name| NewAccount {
                        name,
                        number: last(values(&["-g", "--gid"])),
                        primary_group: None,
                        is_group: true,
                    });
                }
                // The second operand is a group.
                "adduser" => change.groups.extend(operand(1)),
                _ => {}
            }
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_accounts_are_found_however_they_are_written() {
        for (line, groups, account) in [
            ("useradd --groups=audio,mail -- ada", &["audio", "mail", "ada"][..], None),
            ("useradd -mG mail ada", &["mail", "ada"], None),
            ("useradd --system -- docker", &["docker"], None),
            ("useradd -N docker", &[], None),
            ("useradd --gid=8 ada", &["8"], None),
            ("/usr/sbin/usermod -aG adm,mail ada", &["adm", "mail"], Some("ada")),
            ("usermod --append --groups mail ada", &["mail"], Some("ada")),
            ("usermod --home=/home/x -- unbound", &[], Some("unbound")),
            ("usermod -md /home/x unbound", &[], Some("unbound")),
            ("usermod --comment=x -- ada", &[], Some("ada")),
            ("gpasswd --add=ada -- mail", &["mail"], Some("ada")),
            ("gpasswd -a ada mail", &["mail"], Some("ada")),
            ("gpasswd --delete=ada -- mail", &[], Some("ada")),
            ("adduser ada mail", &["ada", "mail"], None),
            ("adduser --ingroup mail ada", &["mail"], None),
            ("groupadd mail", &[], None),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let expected = AccountChange {
                groups: groups.iter().map(|group| (*group).to_owned()).collect(),
                account: account.map(str::to_owned),
                new: None,
            };
            let change = AccountChange::of_command(&words);
            assert_eq!(AccountChange { new: None, ..change }, expected, "{line}");
        }
    }

    #[test]
    fn a_new_account_or_group_is_found_with_its_number() {
        for (line, new) in [
            ("useradd --uid=27 --gid=users -- ops", Some(("ops", Some("27"), Some("users"), false))),
            ("useradd -u 990 ops", Some(("ops", Some("990"), None, false))),
            ("useradd --system -- wiki", Some(("wiki", None, None, false))),
            ("useradd -D -g users", None),
            ("adduser ada mail", None),
            ("groupadd --gid=990 -- ops", Some(("ops", Some("990"), None, true))),
            ("groupadd ops", Some(("ops", None, None, true))),
            ("usermod -u 27 ada", None),
            ("usermod --login=ops -- ada", Some(("ops", None, None, false))),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let expected = new.map(|(name, number, primary_group, is_group)| NewAccount {
                name: name.to_owned(),
                number: number.map(str::to_owned),
                primary_group: primary_group.map(str::to_owned),
                is_group,
            });
            assert_eq!(AccountChange::of_command(&words).new, expected, "{line}");
        }
    }
}
