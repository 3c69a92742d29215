//! Finds out from the target which accounts are as good as root, and who controls the files that a text names. Where
//! the target gives no answer, an account counts as root, and a file as somebody else's.

mod dynamic_users;
mod groups;
mod homes;
mod leftovers;
mod sudo_names;

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::path::{Component, Path};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde::Deserialize;

use host_base::account::SERVER;
use host_base::problem::{Category, Problem};
use host_base::{Command, Output, Privilege, passwd};
use host_capability::{Access, is_lexically_safe};
use host_policy::NewAccount;
use host_policy::text::DYNAMIC_USER_PREFIX;
use host_target::{Facts, FileKind, Found, PathCheck, ReadRequest, Target};
use host_text::visible::excerpt;

use super::account_tables::{DynamicUnit, parse_ranges};
use super::mounts::Mounts;
use homes::FileIds;
pub(super) use homes::LoginPath;
use sudo_names::SudoNames;

/// The time for one query.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The number of paths or units of one query. A command line over SSH has to be shorter than 128 KiB.
const AT_ONCE: usize = 400;

/// The tables of the ranges of ids that containers and other namespaces of accounts use.
const SUBORDINATE_IDS: [&str; 2] = ["/etc/subuid", "/etc/subgid"];
/// The first id that systemd gives to containers (`systemd-nspawn --private-users=pick`).
const FIRST_OF_CONTAINERS: u32 = 524_288;
/// The number of characters of a path that a reason names.
const SHOWN: usize = 160;
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

/// The privileges of the target's accounts, and the answers so far, for one plan. Each answer about the whole target is
/// asked for once; `Some(None)` means that the target didn't give it.
pub(super) struct PrivilegeCheck<'a> {
    target: &'a Target,
    facts: &'a Facts,
    accounts: HashMap<String, Option<String>>,
    passwd: Option<Option<Arc<Vec<passwd::Entry>>>>,
    homes: Option<Option<Arc<FileIds>>>,
    dynamic_units: Option<Option<Arc<Vec<DynamicUnit>>>>,
    sudo_names: Option<Result<Arc<SudoNames>, String>>,
    mounts: Option<Option<Arc<Mounts>>>,
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
            sudo_names: None,
            mounts: None,
            unit: None,
        }
    }

    /// The other names that a path, whose links are resolved, has by mounts. None where the target doesn't show what is
    /// mounted.
    pub async fn other_names(&mut self, path: &str) -> Option<Vec<String>> {
        Some(self.mounts().await?.other_names(path))
    }

    /// Whether something is mounted at the path itself, as a container has it of some files in `/etc`.
    pub async fn is_mount_point(&mut self, path: &str) -> bool {
        self.mounts().await.is_some_and(|mounts| mounts.is_mount_point(path))
    }

    async fn mounts(&mut self) -> Option<Arc<Mounts>> {
        if self.mounts.is_none() {
            self.mounts = Some(Mounts::read(self.target).await.ok().map(Arc::new));
        }
        self.mounts.clone()?
    }

    /// The reason why an account is as good as root. None where it is not.
    pub async fn root_equivalence(&mut self, account: &str) -> Option<String> {
        match account.strip_prefix(DYNAMIC_USER_PREFIX) {
            Some(name) => self.dynamic(name).await,
            None => self.account_power(account).await,
        }
    }

    /// The reason why an account that isn't a dynamic user is as good as root. None where it is not.
    async fn account_power(&mut self, account: &str) -> Option<String> {
        if let Some(known) = self.accounts.get(account) {
            return known.clone();
        }
        let root_equivalence = self.ask(account).await;
        self.accounts.insert(account.to_owned(), root_equivalence.clone());
        root_equivalence
    }

    /// The outputs of these commands. None where one of them fails.
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

    /// Whether this is the account that the server of system mode has for itself, by whatever name or number. It is where
    /// the target doesn't list its accounts, if the name says so.
    pub async fn is_servers(&mut self, account: &str) -> bool {
        let Some(accounts) = self.passwd().await else { return account == SERVER };
        let number = |name: &str| accounts.iter().find(|entry| entry.name == name).map(|entry| entry.uid);
        let asked = number(account).or_else(|| account.parse().ok());
        asked.is_some() && asked == number(SERVER)
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

    /// The file that was found, with the names of its owner and group where it has their numbers, as over SFTP. A number without a
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
    /// number is one of the system's or of somebody's containers, or the target doesn't say whose it is.
    pub async fn owner_power(&mut self, owner: &str) -> Option<String> {
        match owner.parse() {
            Ok(number) if is_peoples(number) && self.passwd().await.is_some() => {
                self.container_power(number).await
            }
            _ => self.account_power(owner).await,
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
        found.extend(self.sudo_power(new).await.map(|why| format!("makes {name}, and {why}")));
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

    /// The reason why sudo may allow a new account or group something at once.
    async fn sudo_power(&mut self, new: &NewAccount) -> Option<String> {
        let names = match self.sudo_names().await {
            Ok(names) => names,
            Err(part) => {
                return Some(format!(
                    "the target doesn't show whom sudo's rules name: {}",
                    excerpt(&part, SHOWN)
                ));
            }
        };
        let number = new.number.as_ref().and_then(|number| number.parse().ok());
        if names.has_name(&new.name) || number.is_some_and(|number| names.has_number(number)) {
            return Some("sudo's rules name it".to_owned());
        }
        if new.is_group {
            return None;
        }
        // useradd(8) may take any number that is free.
        let accounts = self.passwd().await;
        let has_account = |number: u32| {
            accounts.as_ref().is_some_and(|accounts| accounts.iter().any(|entry| entry.uid == number))
        };
        for free in names.numbers().filter(|free| number.is_none() && !has_account(*free)) {
            if !matches!(self.group_entry(&free.to_string()).await, Ok(Some(_))) {
                return Some(format!("sudo's rules name the number {free}, which is free"));
            }
        }
        let everybody = self.account_power("nobody").await;
        everybody.map(|why| format!("sudo may allow everybody something: {why}"))
    }

    /// The reason why somebody has the files of an id that no account or group has: by containers, in which the id may be
    /// root's.
    async fn container_power(&self, number: u32) -> Option<String> {
        let is_of_container = self.is_subordinate(number).await;
        is_of_container.then(|| format!("{number} may be an id of somebody's containers"))
    }

    /// Whether an id is in a range of subordinate ids, or so high that containers may use it without a table of ranges. True
    /// where the target doesn't say.
    async fn is_subordinate(&self, number: u32) -> bool {
        if number >= FIRST_OF_CONTAINERS {
            return true;
        }
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
    pub async fn program_risk(&mut self, path: &str, account: Option<&str>) -> Option<String> {
        let whose = account.filter(|account| !account.starts_with(DYNAMIC_USER_PREFIX)).unwrap_or("root");
        let metadata = match self.target.safe_for(path, whose).await {
            Err(problem) if problem.category == Category::Privilege && self.is_private(path, whose).await => {
                return None;
            }
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

    /// Whether a path is below the home of this ordinary account, whose own the home is alone. What lies there is the account's
    /// own affair, where only the account can look.
    async fn is_private(&mut self, path: &str, account: &str) -> bool {
        let Some(accounts) = self.passwd().await else { return false };
        let Some(entry) = accounts.iter().find(|entry| entry.name == account) else { return false };
        let home = entry.home.to_string_lossy();
        if !is_lexically_safe(path) || !is_below(&home, Path::new(path)) {
            return false;
        }
        let Ok(Some(Found { kind: FileKind::Directory, metadata })) =
            self.target.safe_for(&home, account).await
        else {
            return false;
        };
        let is_own = metadata.owner == entry.name && metadata.mode & 0o022 == 0;
        is_own && self.root_equivalence(account).await.is_none()
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
    Command { privilege, ..Command::new(program, args.iter().copied(), TIMEOUT) }
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

    /// Needs root's rights, by which files get other owners.
    #[tokio::test]
    async fn what_is_below_an_accounts_own_home_is_its_affair() {
        use host_target::test_connection::{Fate, TestConnection};
        use std::os::unix::fs::{PermissionsExt, chown};
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let directory = tempfile::Builder::new().prefix("lsa-").tempdir_in("/srv").unwrap();
        let home = directory.path().to_str().unwrap().to_owned();
        let passwd = format!("root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::{home}:/bin/sh\n");
        let getent = move |command: &Command| match command.args.as_slice() {
            [table] if table == "passwd" => Fate::Says(0, passwd.clone()),
            _ => Fate::Answers,
        };
        let target = Target::over_test_connection(&TestConnection::new(getent));
        let facts = Facts { user: "root".to_owned(), ..Facts::default() };
        for (owner, mode, path, account, is_private) in [
            (65_534, 0o700, format!("{home}/app/run"), "nobody", true),
            (65_534, 0o700, home.clone(), "nobody", false),
            (65_534, 0o700, format!("{home}/../x"), "nobody", false),
            (65_534, 0o700, "/srv/other/run".to_owned(), "nobody", false),
            (65_534, 0o700, format!("{home}/app/run"), "root", false),
            (65_534, 0o700, format!("{home}/app/run"), "nobody-knows", false),
            (65_534, 0o770, format!("{home}/app/run"), "nobody", false),
            (1234, 0o700, format!("{home}/app/run"), "nobody", false),
            (0, 0o755, "/root/x".to_owned(), "root", false),
        ] {
            chown(&home, Some(owner), None).unwrap();
            std::fs::set_permissions(&home, std::fs::Permissions::from_mode(mode)).unwrap();
            let mut check = PrivilegeCheck::new(&target, &facts);
            assert_eq!(
                check.is_private(&path, account).await,
                is_private,
                "{owner} {mode:o} {path} {account}"
            );
        }
    }

    #[tokio::test]
    async fn an_empty_file_of_rules_names_nobody() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let target = Target::local(host_target::Overrides::default());
        let facts = Facts { user: "root".to_owned(), ..Facts::default() };
        let check = PrivilegeCheck::new(&target, &facts);
        let directory = tempfile::Builder::new().prefix("lsa-").tempdir_in("/srv").unwrap();
        let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(at("empty"), "").unwrap();
        std::fs::write(at("rules"), "ada ALL=ALL\n").unwrap();
        for (name, expected) in
            [("empty", Ok("")), ("rules", Ok("ada ALL=ALL\n")), ("absent", Err(Category::NotFound))]
        {
            let found = check.rules_in(&at(name)).await;
            assert_eq!(found.as_deref().map_err(|problem| problem.category), expected, "{name}");
        }
    }
}
