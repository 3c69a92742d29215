//! The rights that sudo's rules give to an account. The last rule that matches decides (sudoers(5)).

use std::collections::BTreeMap;

use crate::accounts::{Group, User};

use super::parse::{Alias, Allowed, Rule};

/// The maximal depth of aliases in aliases.
const DEPTH: usize = 8;

/// All rules in sudo's order, with the aliases that they use.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The rules, in the order in which sudo reads them.
    pub rules: Vec<PlacedRule>,
    aliases: Vec<Alias>,
    /// The places of the aliases by their names: there may be thousands, and each word of a rule may be one.
    aliases_by_name: BTreeMap<String, Vec<usize>>,
    /// True where `Defaults !authenticate` applies to everybody.
    pub asks_nobody: bool,
    /// The host name of this machine.
    pub host: String,
}

/// A rule with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedRule {
    /// The path of the file.
    pub file: String,
    /// The line in the file, from 1.
    pub line: usize,
    /// The comment of the line.
    pub comment: Option<String>,
    /// The rule itself.
    pub rule: Rule,
}

/// An account that rules are matched against.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The name of the account.
    pub name: String,
    /// The number of the account.
    pub uid: u32,
    /// The names and numbers of the groups.
    pub groups: Vec<(String, u32)>,
}

impl Identity {
    /// The identity of an account, with the groups that it is in.
    pub fn of(user: &User, groups: &[Group]) -> Self {
        let is_in = |gid: u32, members: &[String]| gid == user.gid || members.contains(&user.name);
        let groups = groups.iter().filter(|group| is_in(group.gid, &group.members));
        let groups = groups.map(|group| (group.name.clone(), group.gid)).collect();
        Self { name: user.name.clone(), uid: user.uid, groups }
    }
}

/// The commands that an account may run as root on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SudoRights {
    /// True where the account may run every command.
    pub all: bool,
    /// True where the account may run every command without a password.
    pub unasked: bool,
    /// True where the account may run some commands.
    pub some: bool,
}

impl Rules {
    /// The commands that an account may run as root.
    pub fn standing(&self, who: &Identity) -> SudoRights {
        let mut standing = SudoRights::default();
        for rule in self.rules.iter().map(|placed| &placed.rule).filter(|rule| self.is_for(rule, who)) {
            for allowed in rule.commands.iter().filter(|allowed| self.is_as_root(allowed)) {
                let is_unasked = allowed.nopasswd.unwrap_or(self.asks_nobody);
                match self.reach(&allowed.command) {
                    Reach::Everything => standing = SudoRights { all: true, unasked: is_unasked, some: true },
                    Reach::Nothing => standing = SudoRights::default(),
                    // A later rule decides for its own commands only.
                    Reach::Some => {
                        standing.some = true;
                        standing.unasked &= is_unasked;
                    }
                    Reach::Less => {}
                }
            }
        }
        standing
    }

    /// Whether a rule is for this account on this machine.
    pub fn is_for(&self, rule: &Rule, who: &Identity) -> bool {
        self.is_among("User_Alias", &rule.users, DEPTH, &|word| is_user(word, who)) == Some(true)
            && self.is_here(rule)
    }

    fn is_here(&self, rule: &Rule) -> bool {
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let is_host = |word: &str| word == "ALL" || short(word) == short(&self.host);
        self.is_among("Host_Alias", &rule.hosts, DEPTH, &is_host) == Some(true)
    }

    /// Whether the command may run as root.
    pub fn is_as_root(&self, allowed: &Allowed) -> bool {
        let Some(runas) = &allowed.runas else { return true };
        let users = runas.split(':').next().unwrap_or_default();
        let users: Vec<String> = users.split(',').map(|word| word.trim().to_owned()).collect();
        let is_root = |word: &str| matches!(word, "ALL" | "root" | "#0");
        self.is_among("Runas_Alias", &users, DEPTH, &is_root) == Some(true)
    }

    /// Whether the words match. The last word that matches decides.
    fn is_among(
        &self,
        kind: &str,
        words: &[String],
        depth: usize,
        fits: &dyn Fn(&str) -> bool,
    ) -> Option<bool> {
        let one = |word: &String| {
            let name = word.trim_start_matches('!');
            let is_negated = (word.len() - name.len()) % 2 == 1;
            let found = match self.alias(kind, name) {
                Some(members) if depth > 0 => self.is_among(kind, members, depth - 1, fits),
                Some(_) => None,
                None => fits(name).then_some(true),
            };
            found.map(|found| found != is_negated)
        };
        words.iter().rev().find_map(one)
    }

    /// No rules yet, on a machine with this host name.
    pub fn on(host: &str) -> Self {
        Self { host: host.to_owned(), ..Self::default() }
    }

    /// Adds the aliases of a line.
    pub fn add_aliases(&mut self, found: &[Alias]) {
        for alias in found {
            self.aliases_by_name.entry(alias.name.clone()).or_default().push(self.aliases.len());
            self.aliases.push(alias.clone());
        }
    }

    /// The aliases, in the order in which sudo reads them.
    pub fn aliases(&self) -> &[Alias] {
        &self.aliases
    }

    fn alias(&self, kind: &str, name: &str) -> Option<&[String]> {
        let mut known = self.aliases_by_name.get(name)?.iter().map(|at| &self.aliases[*at]);
        let known = known.find(|alias| alias.kind == kind && name != "ALL");
        known.map(|alias| alias.members.as_slice())
    }

    fn reach(&self, command: &str) -> Reach {
        let is_all = |word: &str| word == "ALL";
        match self.is_among("Cmnd_Alias", &[command.to_owned()], DEPTH, &is_all) {
            Some(true) => Reach::Everything,
            Some(false) => Reach::Nothing,
            None if command.starts_with('!') => Reach::Less,
            None => Reach::Some,
        }
    }
}

/// The extent of a command in a rule.
enum Reach {
    Everything,
    Some,
    /// The command takes rights away.
    Less,
    Nothing,
}

/// Whether a word means the account: `ada`, `#1000`, `%sudo`, `%#27`, `ALL`. The members of a netgroup aren't known here.
fn is_user(word: &str, who: &Identity) -> bool {
    let is_number = |text: &str, number: u32| text.parse() == Ok(number);
    if let Some(group) = word.strip_prefix('%') {
        return match group.strip_prefix('#') {
            Some(gid) => who.groups.iter().any(|(_, own)| is_number(gid, *own)),
            None => who.groups.iter().any(|(own, _)| own == group),
        };
    }
    match word.strip_prefix('#') {
        Some(uid) => is_number(uid, who.uid),
        None => word == "ALL" || word == who.name,
    }
}
