//! Assesses the steps on files and directories.

use super::super::files::Site;
use super::super::path_rights::PathRights;
use super::super::plan::{Action, Attributes};
use super::super::privilege_check::LoginPath;
use super::super::units;
use super::{NAMED, RiskAssessment};
use crate::heap::on_heap;
use host_base::problem::Problem;
use host_base::{Privilege, Risk};
use host_policy::{FileStep, text};
use host_target::{FileKind, Found};
use host_text::redact::excerpt;

/// The part of a step that happens at one path.
struct Part<'a> {
    step: FileStep,
    path: &'a str,
    /// The file or directory that is there before the step.
    found: Option<&'a Found>,
    /// True where a directory moves with all that is in it.
    has_contents: bool,
    /// The owner and the group that the step gives, and the permission bits.
    owner: Option<&'a str>,
    group: Option<&'a str>,
    mode: u32,
}

impl<'a> Part<'a> {
    fn new(step: FileStep, path: &'a str, found: Option<&'a Found>) -> Self {
        Self { step, path, found, has_contents: false, owner: None, group: None, mode: 0 }
    }

    /// The parts of a step. A move removes what is at the old path, and writes it at the new one.
    fn of(action: &'a Action, site: &'a Site) -> Vec<Self> {
        let found = site.found.as_ref();
        let part = |step| Self::new(step, &site.path, found);
        match action {
            Action::Run(_) | Action::Signal(_) | Action::SetAttributes(_) => Vec::new(),
            Action::Write(write) => vec![Self {
                owner: write.owner.as_deref(),
                group: write.group.as_deref(),
                mode: write.mode.unwrap_or_default(),
                ..part(FileStep::Write)
            }],
            Action::MakeDirectory(directory) => vec![Self {
                owner: directory.owner.as_deref(),
                group: directory.group.as_deref(),
                mode: directory.mode,
                ..part(FileStep::MakeDirectory)
            }],
            Action::Remove(_) | Action::RemoveDirectory(_) => vec![part(FileStep::Remove)],
            Action::Move(moved) => {
                let to = site.to.as_ref().unwrap_or(&moved.to);
                let has_contents = site.is_directory();
                vec![
                    Self { has_contents, ..part(FileStep::Remove) },
                    Self {
                        has_contents,
                        owner: found.map(|found| found.metadata.owner.as_str()),
                        group: found.map(|found| found.metadata.group.as_str()),
                        mode: found.map_or(0, |found| found.metadata.mode),
                        ..Self::new(FileStep::MoveTo, to, None)
                    },
                ]
            }
        }
    }

    /// The reason why a step with root's rights asks in a place where accounts and services have their files. Root's
    /// crontabs, units and configuration may run or include files there, and no list knows which.
    fn risk_with_root(&self) -> Option<String> {
        let shown = excerpt(self.path, NAMED);
        let what = match self.step {
            FileStep::Remove => "removes",
            FileStep::MakeDirectory => "makes",
            _ => "writes",
        };
        text::is_own_path(self.path).then(|| {
            format!("{what} {shown} with root's rights, and root's programs may run or go by what is there")
        })
    }

    /// The reason why a new directory asks as a file would: programs ask whether a path is there, and take what is in it.
    fn risk_of_directory(&self) -> Option<String> {
        // Of a directory for a unit's drop-ins or for an account's keys, only what is in it counts.
        let is_for_contents = text::is_drop_in_directory(self.path) || self.path.ends_with("/.ssh");
        let asks = self.step == FileStep::MakeDirectory
            && !is_for_contents
            && (text::is_system_path(self.path) || !text::has_reader(self.path));
        asks.then(|| {
            let shown = excerpt(self.path, NAMED);
            format!("makes the directory {shown}, which root's programs may go by, even where it is empty")
        })
    }

    /// The reason why this gives away or removes a part of the system at a path, whatever the contents.
    fn takes_root(&self, path: &str) -> Option<String> {
        let shown = excerpt(path, NAMED);
        let (is_systems, is_removed) = (text::is_system_path(path), self.step == FileStep::Remove);
        if self.has_contents && (is_systems && !is_removed || is_for_settings(path)) {
            return Some(match is_removed {
                true => format!("takes {shown} away, which programs may take their settings from"),
                false => format!("puts a directory at {shown}, and what is in it can't be judged there"),
            });
        }
        if !is_systems {
            return if text::is_data_path(path) { self.takes_data(&shown) } else { None };
        }
        if is_removed {
            // Where the policy can read the file's kind, only the contents count. Any other file may be what keeps
            // somebody out, and a link may be what enables a service.
            let is_file = self.found.is_none_or(|found| found.kind == FileKind::File);
            let is_read = is_file && text::has_reader(path);
            return (!is_read).then(|| format!("removes {shown}, which root's programs may depend on"));
        }
        self.is_given()
            .then(|| format!("gives {shown}, which root's programs read or run, to others than root"))
    }

    /// The reason why this takes a file from the programs of the system that is only data to them, or gives it to others.
    fn takes_data(&self, shown: &str) -> Option<String> {
        if self.step == FileStep::Remove {
            return Some(format!("removes {shown}, which programs depend on"));
        }
        if self.is_given() {
            return Some(format!("gives {shown}, which programs believe, to others than root"));
        }
        // Without rights of its own, a file keeps those of the former one.
        let is_closed = self.mode != 0 && self.mode & 0o444 != 0o444;
        is_closed.then(|| format!("keeps accounts from {shown}, which their programs read"))
    }

    /// Says whether others than root may write to what the step makes.
    fn is_given(&self) -> bool {
        let is_others = |name: Option<&str>| name.is_some_and(|name| name != "root");
        is_others(self.owner) || is_others(self.group) && self.mode & 0o020 != 0 || self.mode & 0o002 != 0
    }
}

/// Whether the names on a path make what is below it settings or code: hidden directories such as `.ssh`, and those of git.
fn is_for_settings(path: &str) -> bool {
    path.split('/').any(|name| name.starts_with('.')) || !text::has_reader(path)
}

impl RiskAssessment<'_> {
    /// Assesses a step on a file or a directory.
    pub async fn file(&mut self, action: &Action, site: &Site) -> Result<(), Problem> {
        // With the account's own rights, only the contents can become its code.
        let privilege = action.path().map(|at| &at.privilege);
        let is_own = matches!(privilege, Some(Privilege::Caller));
        let takes_root = privilege.is_none_or(|privilege| self.takes_roots_rights(privilege));
        for part in Part::of(action, site) {
            let shown = excerpt(part.path, NAMED);
            let verdict = self.policy.file_verdict(part.step, part.path);
            self.apply_verdict(&verdict, &shown)?;
            for name in self.other_names(part.path).await {
                let verdict = self.policy.file_verdict(part.step, &name);
                let what = format!("{shown}, which is {} as well,", excerpt(&name, NAMED));
                self.apply_verdict(&verdict, &what)?;
                self.risks.extend(part.takes_root(&name).map(|why| (Risk::High, why)));
            }
            let is_for_own = self.grants.is_some_and(|grants| grants.is_for_own_programs(part.path));
            let of_directory = part.risk_of_directory().filter(|_| !is_for_own);
            let reasons = [part.takes_root(part.path), of_directory];
            self.risks.extend(reasons.into_iter().flatten().map(|why| (Risk::High, why)));
            if takes_root {
                self.risks.extend(part.risk_with_root().map(|why| (Risk::High, why)));
            }
            if !is_own && let Some(why) = self.privileges.home_power(part.path, part.found).await {
                self.risks.push((Risk::High, format!("changes {shown}, {why}")));
            }
            if part.step == FileStep::Remove {
                let why = on_heap(|| self.takes_login(&part)).await;
                self.risks.extend(why.map(|why| (Risk::High, format!("takes {shown} away, {why}"))));
            }
        }
        for name in self.read_as(&site.path).await {
            on_heap(|| self.jobs_of_file(&name, action, site, is_own)).await;
        }
        match action {
            Action::Write(write) => {
                // A file that only root could write has been decided about before.
                let is_roots = site
                    .found
                    .as_ref()
                    .is_some_and(|found| found.metadata.owner == "root" && found.metadata.mode & 0o022 == 0);
                let before = site.before.as_deref().filter(|_| is_roots);
                let is_new = site.found.is_none();
                for name in self.read_as(&site.path).await {
                    on_heap(|| self.contents(&name, is_new, before, &write.contents)).await?;
                }
                Ok(())
            }
            Action::Move(moved) => {
                let Some(contents) = &site.before else { return Ok(()) };
                for name in self.read_as(site.to.as_ref().unwrap_or(&moved.to)).await {
                    on_heap(|| self.contents(&name, true, None, contents)).await?;
                }
                Ok(())
            }
            Action::SetAttributes(attributes) => on_heap(|| self.attributes(attributes, site)).await,
            _ => Ok(()),
        }
    }

    /// Whether a step with these rights has root's.
    fn takes_roots_rights(&self, privilege: &Privilege) -> bool {
        match privilege {
            Privilege::Caller => self.facts.uid == 0,
            Privilege::Root => true,
            Privilege::RootIfAvailable => self.facts.uid == 0 || self.facts.root_available(),
            Privilege::User(name) => name == "root",
        }
    }

    /// The path, and its other names by which a program reads a file in its own way. A name that is only somewhere below
    /// the system's directories tells nothing about a file that has another name outside them.
    async fn read_as(&mut self, path: &str) -> Vec<String> {
        let mut names = self.other_names(path).await;
        names.retain(|name| text::has_reader(name) || !text::is_system_path(name));
        names.insert(0, path.to_owned());
        names
    }

    /// Adds a risk where jobs end with the former contents of a file, or may no longer run by its new ones.
    async fn jobs_of_file(&mut self, path: &str, action: &Action, site: &Site, is_own: bool) {
        let now = match action {
            Action::Write(write) => text::code_in_file(path, &write.contents),
            Action::Remove(_) | Action::Move(_) => None,
            _ => return,
        };
        let former = site.before.as_deref().and_then(|before| text::code_in_file(path, before));
        let what = excerpt(path, NAMED);
        let what = format!("the step on {what}");
        if let Some(timer) = units::timer_at(path) {
            // Nothing waits for a new timer, but a drop-in changes one that is there.
            if former.is_some() || units::unit_at(path).is_none() {
                self.timer_ends(timer, former.as_ref(), now.as_ref(), &what).await;
            }
        } else if let Some(former) = former {
            let own = (is_own && self.facts.uid != 0).then(|| self.facts.user.clone());
            self.jobs_end(&former, now.as_ref(), own.as_deref(), &what).await;
        }
    }

    /// The reason why what goes away is somebody's home or shell, or has a home, a shell or keys below it.
    async fn takes_login(&mut self, part: &Part<'_>) -> Option<String> {
        let unknown = || Some("and the target doesn't say whose homes are there".to_owned());
        let Ok(home) = self.privileges.home(part.path, part.found).await else { return unknown() };
        if let Some(home) = home.filter(|home| home.is_itself && home.is_peoples) {
            return Some(format!("which is the home of {}", excerpt(&home.owners.join(", "), NAMED)));
        }
        let metadata = &part.found?.metadata;
        match self.privileges.login_below(part.path, (metadata.device, metadata.inode)).await {
            Ok(login) => login.map(|LoginPath { account, what }| {
                format!("which is or holds the {what} of {}", excerpt(&account, NAMED))
            }),
            Err(()) => unknown(),
        }
    }

    /// Assesses contents that a path gets, and that may become code there. `before` is the former contents that have been
    /// decided about.
    async fn contents(
        &mut self,
        path: &str,
        is_new: bool,
        before: Option<&[u8]>,
        contents: &[u8],
    ) -> Result<(), Problem> {
        if self.writes_own_program(path, contents) {
            return Ok(());
        }
        let mut what = excerpt(path, NAMED);
        let mut along = Vec::new();
        self.privileges.unit = units::unit_at(path).map(str::to_owned);
        if let Some(unit) = units::unit_at(path) {
            match units::drop_ins(self.target, unit).await {
                Ok(drop_ins) => {
                    for (path, text) in drop_ins {
                        what = format!("{what}, with {}", excerpt(&path, NAMED));
                        along.push(text);
                    }
                }
                Err(problem) => {
                    let why = format!("{what} may have drop-ins that can't be read: {}", problem.message);
                    self.risks.push((Risk::High, why));
                }
            }
            if is_new && let Some(why) = units::why_awaited(self.target, unit).await {
                let why = excerpt(&why, NAMED);
                self.risks.push((Risk::High, format!("{what} is a unit for which others may wait: {why}")));
            }
        }
        let new = text::new_code_in_unit(path, contents, &along, before);
        let before = before.and_then(|before| text::code_in_unit(path, before, &along));
        // Of a crontab, the jobs that stay are left out already, and its variables hold for a new job as well.
        let before = before.filter(|before| before.lines.iter().all(|line| line.schedule.is_none()));
        match new {
            Some(code) => on_heap(|| self.code(code, before, &what)).await,
            None => Ok(()),
        }
    }

    /// Assesses new attributes as the commands that would set them.
    async fn attributes(&mut self, attributes: &Attributes, site: &Site) -> Result<(), Problem> {
        let Some(after) = site.attributes_after(attributes) else { return Ok(()) };
        let (path, shown) = (&site.path, excerpt(&site.path, NAMED));
        let mut names = self.other_names(path).await;
        names.insert(0, path.clone());
        for name in &names {
            let owner = format!("{}:{}", after.owner, after.group);
            let mode = format!("{:04o}", after.mode);
            let mut commands = Vec::new();
            if attributes.owner.is_some() || attributes.group.is_some() {
                commands.push(["chown", "--no-dereference", "--", &owner, name].map(str::to_owned).to_vec());
            }
            if attributes.mode.is_some() {
                commands.push(["chmod", "--", &mode, name].map(str::to_owned).to_vec());
            }
            let what = match name == path {
                true => shown.clone(),
                false => format!("{shown}, which is {} as well,", excerpt(name, NAMED)),
            };
            for argv in commands {
                let verdict = self.policy.verdict(&argv);
                self.apply_verdict(&verdict, &what)?;
            }
        }
        let rights = PathRights::of_attributes(path, attributes);
        let why = self.gives_away(&rights, path, site.found.clone()).await;
        // `gives_away` names the path itself.
        self.risks.extend(why.map(|why| (Risk::High, format!("the step {why}"))));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::Mounts;
    use crate::plan::Directory;
    use crate::plan::tests::{at, moving, removing_directory, setting, write};
    use host_capability::Access;
    use host_knowledge::LazyKnowledge;
    use host_policy::Policy;
    use host_target::{Facts, Overrides, Target};
    use std::os::unix::fs::PermissionsExt;

    /// The reasons for a high risk of a step that root takes on this machine.
    async fn reasons(action: &Action) -> String {
        let target = Target::local(Overrides::default());
        let facts = Facts { user: "root".to_owned(), ..Facts::default() };
        let lazy = LazyKnowledge::default();
        let mut assessment = RiskAssessment::new(Policy::builtin(), lazy.get(), &target, &facts);
        let access = Access { privilege: Privilege::Caller, verbs: Vec::new() };
        let path = &action.path().unwrap().path;
        let site = Site::survey(&target, access, path, action, ("0123456789abcdef", 0), |_, _, _| Ok(()));
        assessment.file(action, &site.await.unwrap()).await.unwrap();
        let high = assessment.risks.iter().filter(|(risk, _)| *risk >= Risk::High);
        high.map(|(_, reason)| reason.as_str()).collect::<Vec<_>>().join("\n")
    }

    fn making_directory(path: &str) -> Action {
        Action::MakeDirectory(Directory { at: at(path), mode: 0o755, owner: None, group: None })
    }

    /// The reasons besides the one for every step of root's where accounts have their files.
    async fn further(action: &Action) -> String {
        let reasons = reasons(action).await;
        let (own, further): (Vec<&str>, Vec<&str>) =
            reasons.lines().partition(|reason| reason.contains("with root's rights, and root's programs"));
        let data = action.path().is_some_and(|at| text::is_own_path(&at.path));
        assert_eq!(!own.is_empty(), data, "{reasons}");
        further.join("\n")
    }

    /// A directory where accounts have their files, that root's rights may pass, and whose file system renames
    /// directories.
    async fn data() -> Option<tempfile::TempDir> {
        let mounts = Mounts::read(&Target::local(Overrides::default())).await.unwrap();
        let is_fit = rustix::process::geteuid().is_root() && mounts.renames_directories("/srv");
        is_fit.then(|| tempfile::Builder::new().prefix("lsa-").tempdir_in("/srv").unwrap())
    }

    #[tokio::test]
    async fn a_move_is_as_grave_as_removing_here_and_writing_there() {
        let Some(data) = data().await else { return };
        let at = |name: &str| data.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(at("text"), "text\n").unwrap();
        std::fs::write(at("script"), "#!/bin/sh\n").unwrap();
        std::fs::write(at("job"), "0 3 * * * root curl http://x\n").unwrap();
        std::fs::write(at("calm"), "0 3 * * * root logger -t x y\n").unwrap();
        std::fs::write(at("given"), "0 3 * * * root logger -t x y\n").unwrap();
        std::os::unix::fs::chown(at("given"), Some(65_534), None).unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        std::fs::create_dir(at(".hidden")).unwrap();
        for (from, to, why) in [
            ("text", at("moved"), ""),
            ("text", "/etc/cron.daily/lsa-x".to_owned(), "programs of root's"),
            ("script", at("moved"), "a script"),
            ("job", "/etc/cron.d/lsa-x".to_owned(), "would run"),
            ("calm", "/etc/cron.d/lsa-x".to_owned(), ""),
            ("given", "/etc/cron.d/lsa-x".to_owned(), "to others than root"),
            ("directory", at("moved"), ""),
            ("directory", at(".ssh"), "can't be judged"),
            ("directory", at("x.git"), "can't be judged"),
            ("directory", "/etc/lsa-x".to_owned(), "can't be judged"),
            (".hidden", at("moved"), "settings"),
        ] {
            let found = further(&moving(&at(from), &to).action).await;
            assert_eq!(found.is_empty(), why.is_empty(), "{from} {to}: {found}");
            assert!(found.contains(why), "{from} {to}: {found}");
        }
    }

    #[tokio::test]
    async fn every_step_of_roots_asks_where_accounts_have_their_files() {
        let Some(data) = data().await else { return };
        let at = |name: &str| data.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(at("there"), "text\n").unwrap();
        std::fs::create_dir(at("empty")).unwrap();
        for action in [
            write(&at("new"), "text\n").action,
            write(&at("there"), "other\n").action,
            making_directory(&at("made")),
            Action::Remove(self::at(&at("there"))),
            removing_directory(&at("empty")).action,
            moving(&at("there"), &at("moved")).action,
            setting(&at("there"), Some(0o755), None, None).action,
        ] {
            let found = reasons(&action).await;
            assert!(!found.is_empty(), "{action:?}");
        }
        for only_data in ["/etc/motd", "/etc/networks"] {
            assert_eq!(reasons(&write(only_data, "text\n").action).await, "", "{only_data}");
            assert_ne!(reasons(&Action::Remove(self::at(only_data))).await, "", "{only_data}");
            for (owner, mode) in [(Some("nobody"), None), (None, Some(0o600)), (None, Some(0o666))] {
                let mut given = write(only_data, "text\n").action;
                if let Action::Write(write) = &mut given {
                    (write.owner, write.mode) = (owner.map(str::to_owned), mode);
                }
                assert_ne!(reasons(&given).await, "", "{only_data} {owner:?} {mode:?}");
            }
        }
    }

    #[tokio::test]
    async fn only_roots_rights_make_a_step_roots() {
        let target = Target::local(Overrides::default());
        let lazy = LazyKnowledge::default();
        for (uid, privilege, is_roots) in [
            (0, Privilege::Caller, true),
            (1000, Privilege::Caller, false),
            (1000, Privilege::Root, true),
            (0, Privilege::RootIfAvailable, true),
            (1000, Privilege::RootIfAvailable, false),
            (0, Privilege::User("ada".to_owned()), false),
            (0, Privilege::User("root".to_owned()), true),
        ] {
            let facts = Facts { user: "ada".to_owned(), uid, ..Facts::default() };
            let assessment = RiskAssessment::new(Policy::builtin(), lazy.get(), &target, &facts);
            assert_eq!(assessment.takes_roots_rights(&privilege), is_roots, "{uid} {privilege:?}");
        }
    }

    #[tokio::test]
    async fn a_shell_goes_from_nobody_unasked() {
        let accounts = std::fs::read_to_string("/etc/passwd").unwrap();
        let shell = accounts.lines().find(|line| line.starts_with("root:")).unwrap().rsplit(':').next();
        let shell = std::fs::canonicalize(shell.unwrap()).unwrap();
        let shell = shell.to_str().unwrap();
        let (target, facts) = (Target::local(Overrides::default()), Facts::default());
        let lazy = LazyKnowledge::default();
        let mut assessment = RiskAssessment::new(Policy::builtin(), lazy.get(), &target, &facts);
        let found = assessment.privileges.found(shell).await.unwrap();
        let part = Part::new(FileStep::Remove, shell, found.as_ref());
        let why = assessment.takes_login(&part).await.unwrap();
        assert!(why.starts_with("which is or holds the shell of "), "{why}");
    }

    #[tokio::test]
    async fn a_new_directory_asks_as_a_file_there_would() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        for (path, asks) in [
            ("/etc/lsa-nologin", true),
            ("/etc/lsa-x.lock", true),
            ("/etc/cron.d/lsa-x", true),
            ("/etc/systemd/system/lsa-x.service", true),
            ("/usr/local/lsa-x", true),
            ("/root/lsa-x", true),
            ("/etc/motd.d/lsa-x", false),
        ] {
            let found = reasons(&making_directory(path)).await;
            assert_eq!(found.contains("which root's programs may go by"), asks, "{path}: {found}");
        }
    }

    #[tokio::test]
    async fn a_job_of_roots_goes_from_no_file_unasked() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let path = format!("/etc/cron.d/lsa-{}", std::process::id());
        let _gone = Removed(path.clone());
        for (former, now, ends) in [
            ("@daily root /usr/local/bin/job", Some("@daily root /usr/local/bin/job"), false),
            ("@daily root /usr/local/bin/job", Some("@hourly root /usr/local/bin/job"), false),
            ("@daily root /usr/local/bin/job", Some("0 0 30 2 * root /usr/local/bin/job"), true),
            ("@daily root /usr/local/bin/job", Some("@daily nobody /usr/bin/true"), true),
            ("@daily root /usr/local/bin/job", None, true),
            ("@daily nobody /usr/bin/true", None, false),
        ] {
            std::fs::write(&path, format!("{former}\n")).unwrap();
            let action = match now {
                Some(now) => write(&path, &format!("{now}\n")).action,
                None => Action::Remove(at(&path)),
            };
            let found = reasons(&action).await;
            assert_eq!(found.contains("takes away a job of root"), ends, "{former} {now:?}: {found}");
        }
    }

    /// A file that goes away with this.
    struct Removed(String);

    impl Drop for Removed {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[tokio::test]
    async fn what_goes_away_may_be_the_systems_or_somebodys_home() {
        let Some(data) = data().await else { return };
        let empty = data.path().to_str().unwrap().to_owned();
        let hidden = data.path().join(".hidden");
        std::fs::create_dir(&hidden).unwrap();
        assert_eq!(further(&removing_directory(hidden.to_str().unwrap()).action).await, "");
        std::fs::remove_dir(&hidden).unwrap();
        assert_eq!(further(&removing_directory(&empty).action).await, "");
        let system = tempfile::tempdir_in("/etc").unwrap();
        let found = reasons(&removing_directory(system.path().to_str().unwrap()).action).await;
        assert!(found.contains("root's programs may depend on"), "{found}");
    }

    #[tokio::test]
    async fn attributes_are_as_grave_as_the_commands_for_them() {
        let Some(data) = data().await else { return };
        let at = |name: &str| data.path().join(name).to_str().unwrap().to_owned();
        for (name, owner) in [("roots", 0), ("nobodys", 65_534)] {
            std::fs::write(at(name), "").unwrap();
            std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(0o644)).unwrap();
            std::os::unix::fs::chown(at(name), Some(owner), Some(owner)).unwrap();
        }
        for (path, mode, owner, why) in [
            (at("roots"), Some(0o600), None, "root's own"),
            (at("roots"), Some(0o644), None, ""),
            (at("roots"), Some(0o666), None, "lets others write"),
            (at("roots"), None, Some("nobody"), "lets others write"),
            (at("nobodys"), Some(0o666), None, ""),
            (at("nobodys"), Some(0o600), None, ""),
            (at("nobodys"), None, Some("root"), "to root"),
            ("/etc/passwd".to_owned(), Some(0o600), None, "log in"),
            ("/etc/hostname".to_owned(), Some(0o600), None, "rule permissions"),
        ] {
            let found = reasons(&setting(&path, mode, owner, None).action).await;
            assert_eq!(found.is_empty(), why.is_empty(), "{path}: {found}");
            assert!(found.contains(why), "{path}: {found}");
        }
    }
}
