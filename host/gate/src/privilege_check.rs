//! Finds out from the target which accounts are as good as root, and who controls the files that a text names. Where
//! the target gives no answer, an account counts as root, and a file as somebody else's.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde::Deserialize;

use host_base::problem::{Category, Problem};
use host_base::{Command, Keep, Output, Privilege, passwd};
use host_capability::Access;
use host_policy::NewAccount;
use host_policy::text::{DYNAMIC_USER_PREFIX, home_owner_of_file, home_owner_of_path};
use host_target::{Facts, FileKind, Found, PathCheck, ReadRequest, Target};

use super::account_tables::{
    DynamicUnit, GroupEntry, dynamic_units, holders, is_of_file, parse_groups, parse_ranges, unit_file_names,
};

/// The time for one query.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The number of paths or units of one query. A command line over SSH has to be shorter than 128 KiB.
const AT_ONCE: usize = 400;

/// The tables of the ranges of ids that containers and other namespaces of accounts use.
const SUBORDINATE_IDS: [&str; 2] = ["/etc/subuid", "/etc/subgid"];
/// The number of bytes of the largest such table that is read.
const LARGEST: u64 = 1 << 20;

/// The groups that are as good as root, and the system accounts that are harmless. If the table can't be read, every
/// account counts as root.
static ROOT_EQUIVALENTS: LazyLock<Option<RootEquivalents>> =
    LazyLock::new(|| serde_yaml::from_str(include_str!("root_equivalents.yaml")).ok());

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RootEquivalents {
    /// The groups whose members are as good as root, with the reason.
    groups: BTreeMap<String, String>,
    harmless: Harmless,
}

/// System accounts and groups that don't lead to root, with their purpose.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Harmless {
    accounts: BTreeMap<String, String>,
    groups: BTreeMap<String, String>,
}

/// Whether an id is one for people. Lower ids belong to the system on all distributions, and so do those that Debian
/// reserves from 60000 on (Debian Policy, 9.2.2) and those that systemd gives to dynamic users. `nobody` is counted as
/// one for people.
fn is_peoples(number: u32) -> bool {
    matches!(number, 1000..=59_999 | 65_534 | 65_536..=u32::MAX)
}

/// The ids of dynamic users, see systemd.exec(5).
const DYNAMIC_NUMBERS: std::ops::RangeInclusive<u32> = 61_184..=65_519;

impl RootEquivalents {
    /// Whether an account owns only files of people, or of the administrator's own services. Packages use /srv for no
    /// account, but some of them name a home in /home that they don't make, such as Ubuntu's `syslog`.
    fn is_ordinary(&self, entry: &passwd::Entry) -> bool {
        is_peoples(entry.uid)
            || self.harmless.accounts.contains_key(&entry.name)
            || is_below("/srv", &entry.home)
    }
}

/// Whether a path is below this directory.
fn is_below(place: &str, path: &Path) -> bool {
    let below = path.strip_prefix(place);
    below
        .is_ok_and(|below| below.components().next().is_some_and(|part| matches!(part, Component::Normal(_))))
}

/// The home directory that a path is, or is in.
#[derive(Debug)]
pub(super) struct Home {
    /// The accounts that have it as their home.
    pub owners: Vec<String>,
    /// Whether the path is the home directory itself.
    pub is_itself: bool,
    /// Whether one of the owners may be a person, who logs in there.
    pub is_peoples: bool,
}

/// The device and the inode of a file.
type FileId = (u64, u64);
/// Paths with the files to which they lead.
type FileIds = Vec<(FileId, PathBuf)>;

/// The privileges of the target's accounts, and the answers so far, for one plan. Each answer about the whole target is
/// asked for once; `Some(None)` means that the target didn't give it.
pub(super) struct PrivilegeCheck<'a> {
    target: &'a Target,
    facts: &'a Facts,
    accounts: HashMap<String, Option<String>>,
    passwd: Option<Option<Arc<Vec<passwd::Entry>>>>,
    homes: Option<Option<Arc<FileIds>>>,
    dynamic_units: Option<Option<Arc<Vec<DynamicUnit>>>>,
    /// The unit whose text is assessed, which may have its own dynamic user.
    pub unit: Option<String>,
}

impl<'a> PrivilegeCheck<'a> {
    /// A check that has asked nothing so far.
    pub fn new(target: &'a Target, facts: &'a Facts) -> Self {
        Self {
            target,
            facts,
            accounts: HashMap::new(),
            passwd: None,
            homes: None,
            dynamic_units: None,
            unit: None,
        }
    }

    /// The reason why an account is as good as root. None where it is not.
    pub async fn root_equivalence(&mut self, account: &str) -> Option<String> {
        match account.strip_prefix(DYNAMIC_USER_PREFIX) {
            Some(name) => self.dynamic(name).await,
            None => self.account_power(account).await,
        }
    }

    /// The same for an account that isn't a dynamic user.
    async fn account_power(&mut self, account: &str) -> Option<String> {
        if let Some(known) = self.accounts.get(account) {
            return known.clone();
        }
        let root_equivalence = self.ask(account).await;
        self.accounts.insert(account.to_owned(), root_equivalence.clone());
        root_equivalence
    }

    /// The same for a dynamic user. If the target has an account of this name, the unit runs as that account. Units
    /// with the same name share the dynamic user, and so each could read what the other one may.
    async fn dynamic(&mut self, name: &str) -> Option<String> {
        let asked = [command("getent", &["passwd", "--", name], Privilege::Caller)];
        match self.target.run_all(&asked).await.into_iter().next()? {
            // Exit code 2 of getent(1): the name could not be found.
            Ok(output) if output.exit_code == 2 => {
                if let Some(why) = self.group_power(name).await {
                    return Some(format!(
                        "its dynamic user would have the name of the group {name}, which {why}"
                    ));
                }
            }
            Ok(output) if output.exit_code == 0 => {
                let entry = first_entry(&text(&output));
                if !entry.is_some_and(|entry| DYNAMIC_NUMBERS.contains(&entry.uid)) {
                    return self.account_power(name).await;
                }
            }
            _ => return Some(format!("the target doesn't say whether there is an account {name}")),
        }
        let unit = self.unit.clone();
        let is_own = |id: &str| unit.as_deref().is_some_and(|unit| is_of_file(id, unit));
        self.dynamic_user_of(name, is_own).await
    }

    /// The reason why a name may be that of another unit's dynamic user. None where no unit has it.
    async fn dynamic_user_of(&mut self, name: &str, is_own: impl Fn(&str) -> bool) -> Option<String> {
        let Some(units) = self.dynamic_units().await else {
            return Some(format!("the target doesn't say whether a unit has the dynamic user {name}"));
        };
        let other = units.iter().find(|unit| unit.user == name && !is_own(&unit.id))?;
        Some(format!("{name} is also the dynamic user of {}", other.id))
    }

    /// All units with dynamic users, those that are loaded and those that are installed.
    async fn dynamic_units(&mut self) -> Option<Arc<Vec<DynamicUnit>>> {
        if self.facts.init_system != "systemd" {
            return Some(Arc::default());
        }
        if self.dynamic_units.is_none() {
            self.dynamic_units = Some(self.find_dynamic_units().await.map(Arc::new));
        }
        self.dynamic_units.clone()?
    }

    async fn find_dynamic_units(&self) -> Option<Vec<DynamicUnit>> {
        const SHOW: [&str; 4] = ["show", "--all", "--property=Id,User,DynamicUser", "--"];
        let loaded = [&SHOW[..], &["*.service", "*.socket", "*.mount", "*.swap"]].concat();
        let types = "--type=service,socket,mount,swap";
        let installed = ["list-unit-files", "--no-legend", "--no-pager", "--full", types];
        let asked = [&loaded[..], &installed].map(|args| command("systemctl", args, Privilege::Caller));
        let mut answers = self.answers(&asked).await?;
        let names = unit_file_names(&answers.pop()?);
        let shows = names.chunks(AT_ONCE).map(|names| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            command("systemctl", &[&SHOW[..], &names].concat(), Privilege::Caller)
        });
        answers.extend(self.answers(&shows.collect::<Vec<_>>()).await?);
        Some(answers.iter().flat_map(|shown| dynamic_units(shown)).collect())
    }

    /// What these commands print. None where one of them fails.
    async fn answers(&self, commands: &[Command]) -> Option<Vec<String>> {
        let answers = self.target.run_all(commands).await.into_iter();
        let printed = |answer: Result<Output, _>| {
            let output = answer.ok().filter(|output| output.exit_code == 0 && !output.truncated)?;
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let answers: Option<Vec<String>> = answers.map(printed).collect();
        answers.filter(|answers| answers.len() == commands.len())
    }

    /// All accounts that the target lists. None where it doesn't.
    async fn passwd(&mut self) -> Option<Arc<Vec<passwd::Entry>>> {
        if self.passwd.is_none() {
            let asked = [command("getent", &["passwd"], Privilege::Caller)];
            let accounts = self.answers(&asked).await.map(|answers| passwd::parse(&answers.concat()));
            // Every system has root.
            self.passwd = Some(accounts.filter(|accounts| !accounts.is_empty()).map(Arc::new));
        }
        self.passwd.clone()?
    }

    async fn ask(&mut self, account: &str) -> Option<String> {
        if account == self.facts.user && self.facts.root_available() {
            return Some(format!("{account} is the account that this server works as, with root's rights"));
        }
        let commands = [
            command("getent", &["passwd", "--", account], Privilege::Caller),
            command("id", &["--groups", "--name", "--", account], Privilege::Caller),
            command("id", &["--groups", "--", account], Privilege::Caller),
            command("sudo", &["-n", "-l", "-U", account], Privilege::RootIfAvailable),
        ];
        let mut answers = self.target.run_all(&commands).await.into_iter();
        let mut said = || {
            let output = answers.next()?.ok()?;
            (output.exit_code == 0).then(|| text(&output))
        };
        let (entry, groups, numbers) = (said(), said(), said());
        let entry = entry.as_deref().and_then(first_entry);
        let (Some(entry), Some(groups), Some(numbers)) = (entry, groups, numbers) else {
            return Some(format!("the target doesn't say who {account} is"));
        };
        if entry.uid == 0 {
            return Some(format!("{account} is another name of root's"));
        }
        let Some(roots) = ROOT_EQUIVALENTS.as_ref() else {
            return Some("who is root isn't known".to_owned());
        };
        if !self.is_ordinary(roots, &entry).await {
            return Some(format!(
                "{account} is a system account, which may own files that root's programs trust"
            ));
        }
        let (groups, numbers) = (groups.split_whitespace(), numbers.split_whitespace());
        for (group, number) in groups.zip(numbers) {
            let number = number.parse().unwrap_or_default();
            if let Some(why) = self.group(roots, group, number).await {
                return Some(format!("{account} is in the group {group}, which {why}"));
            }
        }
        match answers.next() {
            // Without sudo, nobody becomes root by it.
            Some(Err(problem)) if problem.code == "PROGRAM_NOT_FOUND" => None,
            Some(Ok(output)) if text(&output).contains("is not allowed to run sudo") => None,
            Some(Ok(output)) if text(&output).contains("may run the following commands") => {
                Some(format!("sudo allows {account} something"))
            }
            _ => Some(format!("the target doesn't say what sudo allows {account}")),
        }
    }

    /// Whether an account owns only files of people, or of the administrator's own services, such as a system account
    /// with a home in /home that is there and its own.
    async fn is_ordinary(&self, roots: &RootEquivalents, entry: &passwd::Entry) -> bool {
        if roots.is_ordinary(entry) || !is_below("/home", &entry.home) {
            return roots.is_ordinary(entry);
        }
        let home = self.target.safe_for(&entry.home.to_string_lossy(), "root").await;
        home.ok()
            .flatten()
            .is_some_and(|found| found.kind == FileKind::Directory && found.metadata.owner == entry.name)
    }

    /// The home directory that a path is or lies in, by the target's accounts. Homes are told apart by device and inode, so
    /// a link or a mount in another place hides none. Where no account has a home there, the name in `/home/NAME` counts.
    /// An error where the target doesn't list its accounts.
    pub async fn home(&mut self, path: &str, found: Option<&Found>) -> Result<Option<Home>, ()> {
        let accounts = self.passwd().await.ok_or(())?;
        let homes = self.homes(&accounts).await.ok_or(())?;
        let way: Vec<PathBuf> = Path::new(path).ancestors().map(Path::to_owned).collect();
        let mut way_ids = self.file_ids(&way).await.ok_or(())?;
        if let Some(found) = found {
            way_ids.push(((found.metadata.device, found.metadata.inode), PathBuf::from(path)));
        }
        for directory in &way {
            // Nobody's home is the root directory.
            if directory.parent().is_none() {
                break;
            }
            let ids: Vec<FileId> =
                way_ids.iter().filter(|(_, at)| at == directory).map(|(id, _)| *id).collect();
            let is_here = |entry: &&passwd::Entry| {
                entry.home == *directory
                    || homes.iter().any(|(id, home)| ids.contains(id) && *home == entry.home)
            };
            let owners: Vec<&passwd::Entry> = accounts.iter().filter(is_here).collect();
            if !owners.is_empty() {
                return Ok(Some(Home {
                    is_itself: directory == Path::new(path),
                    is_peoples: owners.iter().any(|owner| is_peoples(owner.uid)),
                    owners: owners.into_iter().map(|owner| owner.name.clone()).collect(),
                }));
            }
        }
        Ok(home_owner_of_path(path).map(|owner| Home {
            owners: vec![owner],
            is_itself: home_owner_of_file(path).is_none(),
            is_peoples: true,
        }))
    }

    /// The home directories that exist, with what they are.
    async fn homes(&mut self, accounts: &[passwd::Entry]) -> Option<Arc<FileIds>> {
        if self.homes.is_none() {
            let homes = accounts.iter().map(|entry| entry.home.clone());
            let mut homes: Vec<PathBuf> =
                homes.filter(|home| home.is_absolute() && home.parent().is_some()).collect();
            homes.sort();
            homes.dedup();
            self.homes = Some(self.file_ids(&homes).await.map(Arc::new));
        }
        self.homes.clone()?
    }

    /// The devices and inodes of these paths, with links followed. Paths that the caller can't look at are left out. None
    /// where the target doesn't answer.
    async fn file_ids(&self, paths: &[PathBuf]) -> Option<FileIds> {
        let names: Vec<String> = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let asked = names.chunks(AT_ONCE).map(|names| {
            let options = ["-L", "-c", "%d:%i:%n", "--"];
            let args: Vec<&str> = options.into_iter().chain(names.iter().map(String::as_str)).collect();
            command("stat", &args, Privilege::Caller)
        });
        let mut found = Vec::new();
        for answer in self.target.run_all(&asked.collect::<Vec<_>>()).await {
            // Some of the paths needn't be there.
            let output = answer.ok().filter(|output| !output.truncated)?;
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            found.extend(printed.lines().filter_map(|line| {
                let mut fields = line.splitn(3, ':');
                let id = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
                Some((id, PathBuf::from(fields.next()?)))
            }));
        }
        Some(found)
    }

    /// What was found, with the names of its owner and group where it has their numbers, as over SFTP. A number without a
    /// name stays.
    pub async fn with_names(&mut self, mut found: Found) -> Found {
        let metadata = &mut found.metadata;
        if let Ok(number) = metadata.owner.parse::<u32>()
            && let Some(accounts) = self.passwd().await
            && let Some(entry) = accounts.iter().find(|entry| entry.uid == number)
        {
            metadata.owner.clone_from(&entry.name);
        }
        if metadata.group.parse::<u32>().is_ok()
            && let Ok(Some(group)) = self.group_entry(&metadata.group).await
        {
            metadata.group = group.name;
        }
        found
    }

    /// The reason why the owner of a file is as good as root. A file that has no account as its owner is nobody's, unless its
    /// number is one of the system's, or the target doesn't say whose it is.
    pub async fn owner_power(&mut self, owner: &str) -> Option<String> {
        match owner.parse() {
            Ok(number) if is_peoples(number) && self.passwd().await.is_some() => None,
            _ => self.account_power(owner).await,
        }
    }

    /// The reason why members of a group may be as good as root: by the group itself, or because somebody who has it is. None
    /// where they are not. A group that doesn't exist gives only the rights that programs give to its name.
    pub async fn group_power(&mut self, group: &str) -> Option<String> {
        let Some(roots) = ROOT_EQUIVALENTS.as_ref() else { return Some("may be root's".to_owned()) };
        if let Some(by) = roots.groups.get(group) {
            return Some(by.clone());
        }
        let found = match self.group_entry(group).await {
            Ok(Some(found)) => found,
            Ok(None) => return None,
            Err(()) => return Some("the target gives no information about".to_owned()),
        };
        if let Some(why) = self.group(roots, &found.name, found.gid).await {
            return Some(why);
        }
        if roots.harmless.groups.contains_key(&found.name) {
            return None;
        }
        // An account runs files in its home directory, and its groups may be able to write them.
        let Some(accounts) = self.passwd().await else {
            return Some("the target doesn't tell who has".to_owned());
        };
        for holder in holders(&found, &accounts) {
            if let Some(why) = self.account_power(holder).await {
                return Some(format!("{holder} has as well: {why}"));
            }
        }
        None
    }

    /// A group by its name or number. None where the target has no such group; an error where it doesn't say.
    async fn group_entry(&self, group: &str) -> Result<Option<GroupEntry>, ()> {
        let asked = [command("getent", &["group", "--", group], Privilege::Caller)];
        match self.target.run_all(&asked).await.into_iter().next() {
            // Exit code 2 of getent(1): the name could not be found.
            Some(Ok(output)) if output.exit_code == 2 => Ok(None),
            Some(Ok(output)) if output.exit_code == 0 => {
                parse_groups(&text(&output)).into_iter().next().map(Some).ok_or(())
            }
            _ => Err(()),
        }
    }

    /// The same for a group with this name and number.
    async fn group(&mut self, roots: &RootEquivalents, name: &str, number: u32) -> Option<String> {
        if let Some(by) = roots.groups.get(name) {
            return Some(by.clone());
        }
        if is_peoples(number) || roots.harmless.groups.contains_key(name) {
            return None;
        }
        // An account's own group reaches no more than the account. It has the account's name and is its primary group.
        let entry = self.passwd().await.and_then(|accounts| {
            let is_own = |entry: &&passwd::Entry| entry.name == name && entry.gid == number;
            accounts.iter().find(is_own).cloned()
        });
        match entry {
            Some(entry) if entry.uid != 0 && self.is_ordinary(roots, &entry).await => None,
            _ => Some("is a system group, and may write files that root's programs trust".to_owned()),
        }
    }

    /// The reason why a command that runs as an account in a group has more rights than the account. None where the group is
    /// the account's primary one, whatever their names are.
    pub async fn group_beyond(&self, account: &str, group: &str) -> Option<String> {
        let asked = [
            command("getent", &["passwd", "--", account], Privilege::Caller),
            command("getent", &["group", "--", group], Privilege::Caller),
        ];
        let answers = self.answers(&asked).await;
        let gids = answers.as_deref().and_then(|answers| match answers {
            [entry, group] => Some((first_entry(entry)?.gid, parse_groups(group).into_iter().next()?.gid)),
            _ => None,
        });
        match gids {
            Some((own, gid)) if own == gid => None,
            Some(_) => Some(format!("runs in the group {group}, which is not {account}'s own")),
            None => Some(format!("runs in the group {group}, and the target doesn't say whose it is")),
        }
    }

    /// The reasons why a new account or group gets rights by its name or number, which something else has already.
    pub async fn new_account(&mut self, new: &NewAccount) -> Vec<String> {
        let NewAccount { name, number, primary_group, is_group } = new;
        let mut found = Vec::new();
        if ROOT_EQUIVALENTS.as_ref().is_none_or(|roots| roots.groups.contains_key(name)) {
            found.push(format!("makes {name}, and programs give rights to a group of that name"));
        }
        // A group of this name or number would count as the account's own.
        for named in std::iter::once(name).chain(number).filter(|_| !is_group) {
            let is_taken = match (self.group_entry(named).await, primary_group) {
                (Err(()), _) => true,
                (Ok(None), _) => false,
                (Ok(Some(_)), None) => true,
                (Ok(Some(group)), Some(primary)) => {
                    let primary = self.group_entry(primary).await;
                    !matches!(primary, Ok(Some(primary)) if primary.gid == group.gid)
                }
            };
            if is_taken {
                found.push(format!("makes an account {named}, and a group {named} isn't its own"));
            }
        }
        if let Some(why) = self.dynamic_user_of(name, |_| false).await {
            found.push(format!("makes {name}: {why}"));
        }
        if let Some(number) = number {
            match number.parse() {
                Ok(number) if is_peoples(number) => {
                    if self.is_subordinate(number).await {
                        found.push(format!(
                            "takes the number {number}, which may be one of somebody's containers"
                        ));
                    }
                }
                _ => found.push(format!(
                    "takes the number {number}, which is the system's, and whose files may be left behind"
                )),
            }
        }
        found
    }

    /// Whether an id is in a range of subordinate ids. True where the target doesn't say.
    async fn is_subordinate(&self, number: u32) -> bool {
        let access = Access { privilege: Privilege::Caller, verbs: Vec::new() };
        let all: Arc<PathCheck> = Arc::new(|_, _| Ok(()));
        let requests =
            SUBORDINATE_IDS.map(|path| ReadRequest { path: path.to_owned(), offset: 0, max_bytes: LARGEST });
        let texts = self.target.read_all(requests.to_vec(), &access, all).await;
        let ranges = texts.into_iter().map(|text| match text {
            Err(problem) if problem.category == Category::NotFound => Some(Vec::new()),
            Ok(text) if (text.len() as u64) < LARGEST => parse_ranges(&String::from_utf8_lossy(&text)),
            _ => None,
        });
        let ranges: Option<Vec<Vec<RangeInclusive<u64>>>> = ranges.collect();
        ranges.is_none_or(|ranges| ranges.iter().flatten().any(|range| range.contains(&u64::from(number))))
    }

    /// The reason why others may be able to change a program that root, or this account, would run. None where they
    /// can't.
    pub async fn program_risk(&self, path: &str, account: Option<&str>) -> Option<String> {
        let whose = account.filter(|account| !account.starts_with(DYNAMIC_USER_PREFIX)).unwrap_or("root");
        let metadata = match self.target.safe_for(path, whose).await {
            Err(problem) => return Some(problem.message),
            Ok(None) => return Some(format!("{path} isn't there")),
            Ok(Some(Found { kind: FileKind::File, metadata })) => metadata,
            Ok(Some(_)) => return Some(format!("{path} is no file")),
        };
        if metadata.owner != "root" && metadata.owner != whose {
            return Some(format!("{path} is {}'s", metadata.owner));
        }
        let written = metadata.mode & 0o022 != 0;
        written
            .then(|| format!("others than {} may write to {path} (mode {:o})", metadata.owner, metadata.mode))
    }

    /// The file or directory at a path. An error where the target doesn't say, or where others could change it.
    pub async fn found(&self, path: &str) -> Result<Option<Found>, Problem> {
        self.target.safe_for(path, "root").await
    }

    /// Whether there is certainly nothing at a path. A directory on the way that others can change leaves that
    /// uncertain.
    pub async fn is_absent(&self, path: &str) -> bool {
        matches!(self.target.safe_for(path, &self.facts.user).await, Ok(None))
    }

    /// The reason why not everybody may read a file: the file's own mode, or that of a directory on the way to it. None
    /// where everybody may. A file that doesn't exist has no secret contents.
    pub async fn secrecy(&self, path: &str) -> Option<String> {
        match self.target.safe_for(path, "root").await {
            Err(problem) => return Some(problem.message),
            Ok(None) => return None,
            Ok(Some(Found { kind: FileKind::File, metadata })) if metadata.mode & 0o004 != 0 => {}
            Ok(Some(_)) => return Some(format!("not everybody may read {path}")),
        }
        // A link on the way leads into other directories.
        let access = Access { privilege: Privilege::Caller, verbs: Vec::new() };
        let resolved = self.target.resolve(vec![path.to_owned()], &access).await.into_iter().next();
        let Some(Ok(resolved)) = resolved else {
            return Some(format!("the target doesn't say where {path} leads"));
        };
        let way = Path::new(path).ancestors().skip(1);
        for directory in way.chain(Path::new(&resolved.path).ancestors().skip(1)) {
            let directory = directory.to_string_lossy();
            match self.target.safe_for(&directory, "root").await {
                Ok(Some(Found { kind: FileKind::Directory, metadata })) if metadata.mode & 0o001 != 0 => {}
                _ => return Some(format!("not everybody may go into {directory}, where {path} is")),
            }
        }
        None
    }
}

fn first_entry(text: &str) -> Option<passwd::Entry> {
    passwd::parse(text).into_iter().next()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn command(program: &str, args: &[&str], privilege: Privilege) -> Command {
    Command {
        program: program.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Vec::new(),
        stdin: None,
        privilege,
        timeout: TIMEOUT,
        keep: Keep::Head,
        output_buffer: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_systems_accounts_only_those_that_are_known_for_it_are_like_peoples() {
        let roots = ROOT_EQUIVALENTS.as_ref().expect("a table");
        for (line, is_ordinary) in [
            ("ada:x:1000:1000::/home/ada:/bin/bash", true),
            ("ada:x:4107:100::/nonexistent:/bin/bash", true),
            ("nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin", true),
            ("ceph:x:64045:64045::/var/lib/ceph:/usr/sbin/nologin", false),
            ("far:x:2000001:2000001::/home/far:/bin/bash", true),
            ("www-data:x:33:33::/var/www:/usr/sbin/nologin", true),
            ("wiki:x:996:996::/srv/wiki:/usr/sbin/nologin", true),
            ("syslog:x:107:113::/home/syslog:/usr/sbin/nologin", false),
            ("elasticsearch:x:995:995::/usr/share/elasticsearch:/bin/false", false),
            ("mail:x:8:8::/var/mail:/usr/sbin/nologin", false),
            ("unbound:x:105:112::/var/lib/unbound:/usr/sbin/nologin", false),
            ("_chrony:x:106:113::/var/lib/chrony:/usr/sbin/nologin", false),
            ("_apt:x:42:65534::/nonexistent:/usr/sbin/nologin", false),
            ("odd:x:990:990::/home:/bin/sh", false),
            ("odd:x:990:990::/home/../root:/bin/sh", false),
            ("odd:x:990:990::/homes/odd:/bin/sh", false),
            ("odd:x:990:990:::/bin/sh", false),
        ] {
            let entry = first_entry(line).expect("an account");
            assert_eq!(roots.is_ordinary(&entry), is_ordinary, "{line}");
        }
    }

    #[tokio::test]
    async fn homes_are_told_apart_by_what_they_are_and_the_nearest_one_counts() {
        let place = tempfile::tempdir().unwrap();
        let at = |path: &str| place.path().join(path).to_string_lossy().into_owned();
        for directory in ["real/below", "ada/bob"] {
            std::fs::create_dir_all(at(directory)).unwrap();
        }
        std::os::unix::fs::symlink(at("real"), at("link")).unwrap();
        let table = format!(
            "linked:x:1000:1000::{}:/bin/sh\nada:x:998:998::{}:/bin/sh\nbob:x:1001:1001::{}:/bin/sh\n\
             nobody:x:65534:65534::/:/bin/sh\nweb:x:1002:1002::/srv/web:/bin/sh\n\
             boss:x:1003:1003::/home/web/boss:/bin/sh\n",
            at("link"),
            at("ada"),
            at("ada/bob")
        );
        let (target, facts) = (Target::local(host_target::Overrides::default()), Facts::default());
        let mut check = PrivilegeCheck::new(&target, &facts);
        check.passwd = Some(Some(Arc::new(passwd::parse(&table))));
        for (path, owner, is_itself) in [
            (at("real"), Some("linked"), true),
            (at("real/below"), Some("linked"), false),
            (at("ada/bob/x"), Some("bob"), false),
            (at("ada/x"), Some("ada"), false),
            (at("elsewhere"), None, false),
            ("/home/web/boss".to_owned(), Some("boss"), true),
            ("/home/web/x".to_owned(), Some("web"), false),
            ("/srv/web".to_owned(), Some("web"), true),
        ] {
            let home = check.home(&path, None).await.unwrap();
            let found = home.as_ref().map(|home| (home.owners.join(" "), home.is_itself));
            assert_eq!(found, owner.map(|owner| (owner.to_owned(), is_itself)), "{path}");
        }
        // Without a table, nobody knows whose home it is.
        check.passwd = Some(None);
        assert!(check.home("/srv/web", None).await.is_err());
    }

    #[tokio::test]
    async fn a_dynamic_user_that_another_unit_has_is_not_a_units_own() {
        let target = Target::local(host_target::Overrides::default());
        let facts = Facts { init_system: "systemd".to_owned(), ..Facts::default() };
        let mut check = PrivilegeCheck::new(&target, &facts);
        let units = [("lsa-vault.service", "lsa-vault"), ("lsa-api@1.service", "lsa-apid")];
        let units = units.map(|(id, user)| DynamicUnit { id: id.to_owned(), user: user.to_owned() });
        check.dynamic_units = Some(Some(Arc::new(units.to_vec())));
        for (unit, name, asks) in [
            ("lsa-vault.service", "lsa-vault", false),
            ("lsa-vault@.service", "lsa-vault", true),
            ("lsa-apid.service", "lsa-apid", true),
            ("lsa-api@.service", "lsa-apid", false),
            ("lsa-new.service", "lsa-new", false),
        ] {
            check.unit = Some(unit.to_owned());
            let why = check.root_equivalence(&format!("{DYNAMIC_USER_PREFIX}{name}")).await;
            assert_eq!(why.is_some(), asks, "{unit} {name}: {why:?}");
        }
        let new = |name: &str| NewAccount {
            name: name.to_owned(),
            number: None,
            primary_group: None,
            is_group: false,
        };
        assert!(!check.new_account(&new("lsa-vault")).await.is_empty());
        assert!(check.new_account(&new("lsa-new")).await.is_empty());
        check.dynamic_units = Some(None);
        assert!(!check.new_account(&new("lsa-new")).await.is_empty());
    }

    #[test]
    fn each_says_by_what_and_the_rules_know_the_groups() {
        let roots = ROOT_EQUIVALENTS.as_ref().expect("a table");
        assert!(roots.groups.values().all(|by| by.len() > 10));
        let policy = host_policy::Policy::builtin();
        for group in roots.groups.keys() {
            for line in [
                format!("usermod --append --groups={group} -- ada"),
                format!("useradd --groups=audio,{group} -- ada"),
                format!("gpasswd --add=ada -- {group}"),
                format!("groupadd -- {group}"),
            ] {
                let argv: Vec<&str> = line.split(' ').collect();
                assert!(policy.verdict(&argv).risk >= Some(host_base::Risk::High), "{line}");
            }
        }
        assert!(!roots.groups.contains_key("adm"), "it only reads");
    }
}
