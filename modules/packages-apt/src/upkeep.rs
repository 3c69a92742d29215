//! The upkeep of packages by apt-get, apt-mark and dpkg.

use linux_sysadmin_sdk::packages::upkeep::{Cached, Comparison, Diagnosis, Difference, Owners, Upkeep};
use linux_sysadmin_sdk::packages::{Installed, Operation, Simulated, State, Verb};
use linux_sysadmin_sdk::{Category, DurationCategory, prelude::*};

use crate::commands::{
    AUTOREMOVE, CACHED_BYTES, CLEAN, CONFIGURE, FIX_BROKEN, GIVE_UP, HOLD, INSTALLED, INSTALLED_OF,
    SEARCH_FILES, UNHOLD, VERIFY, VERIFY_ALL, VERIFY_QUALIFIED,
};
use crate::{Apt, apt_cache, dpkg_query, simulation};

/// The directory of changes that dpkg hasn't merged into its database yet. They stay there where dpkg was killed.
const UPDATES: &str = "/var/lib/dpkg/updates";

/// The digests of a package's files.
const DIGESTS: &str = "/var/lib/dpkg/info/*.md5sums";

/// apt-get's words where a package has to be installed anew that no repository has.
const NO_ARCHIVE: &str = "needs to be reinstalled, but I can't find an archive for it";

/// The most changed files whose packages are looked for.
const MOST_OWNERS: usize = 500;

pub(crate) fn granted(module: Module) -> Module {
    module
        .path(PathGrant::read(UPDATES, "whether dpkg was cut off"))
        .path(PathGrant::read(DIGESTS, "which packages have files"))
}

impl Upkeep for Apt {
    fn diagnose(&self, cx: &Context) -> Result<Diagnosis> {
        let [simulation, fix] = [FIX_BROKEN[1], FIX_BROKEN[0]];
        let look = simulation.command().duration(DurationCategory::Normal);
        let [installed, simulated] = cx.run_each([INSTALLED.command(), look]);
        let mut found = Diagnosis::default();
        // dpkg names these files by numbers. Other names are its drafts.
        let is_entry = |name: &&String| name.bytes().all(|byte| byte.is_ascii_digit());
        let cut_off = cx.list_dir(UPDATES)?.iter().filter(is_entry).count() > 0;
        if cut_off {
            found.findings.push("a run of dpkg was cut off".to_owned());
        }
        let mut reinstall = Vec::new();
        for package in dpkg_query::read(installed)? {
            if let State::Broken(state) = &package.state {
                found.findings.push(format!("{} {} is {state}", package.name, package.version));
                if ["reinst-required", "half-installed"].contains(&state.as_str()) {
                    reinstall.push(package);
                }
            }
        }
        let simulated = simulated?;
        let gone = match simulated.error_text().contains(NO_ARCHIVE) {
            true => without_archive(&reinstall, cx)?,
            false => Vec::new(),
        };
        if !gone.is_empty() {
            let [run, dry_run] = GIVE_UP;
            let names = qualified(&gone);
            found.steps.push(Step::run(run.with(&names).as_root()).uninterruptible());
            found.dry_run = Some(dry_run.with(&names));
            let removal =
                |package: &&Installed| Operation::new(Verb::Remove, &package.name, &package.version, "");
            found.simulated.operations = gone.iter().map(removal).collect();
            found.notes.push("no repository has an archive of what is removed".to_owned());
            return Ok(found);
        }
        let simulated = match simulation::read(simulated, cx) {
            // The end of dpkg's run may be all that is missing.
            Err(problem) if cut_off => {
                found.notes.push(problem.message);
                Simulated::default()
            }
            simulated => simulated?,
        };
        let is_unmet = !simulated.operations.is_empty();
        if is_unmet {
            found.findings.push("dependencies of installed packages aren't met".to_owned());
        }
        if cut_off || (found.findings.len() > reinstall.len() && !is_unmet) {
            // Packages whose dependencies aren't met fail here, and are mended by the next step.
            let codes: &[i32] = if is_unmet { &[0, 1] } else { &[0] };
            found.steps.push(Step::run(CONFIGURE.command().as_root()).uninterruptible().success(codes));
        }
        if is_unmet {
            found.steps.push(Step::run(fix.command().as_root()).uninterruptible());
        }
        if !found.findings.is_empty() {
            found.dry_run = Some(simulation.command());
        }
        if !reinstall.is_empty() {
            let names: Vec<_> = reinstall.iter().map(|package| package.name.as_str()).collect();
            let again = format!("`pkg_install` with {} installs anew what was cut off", names.join(", "));
            if found.steps.is_empty() {
                let message = found.findings.join("; ");
                found.problem =
                    Some(Problem::new("PACKAGES_INTERRUPTED", Category::State, message).remedy(again));
            } else {
                found.notes.push(again);
            }
        }
        found.simulated = simulated;
        Ok(found)
    }

    fn hold(&self, names: &[String], _: &Context) -> Result<Command> {
        Ok(HOLD.with(names).as_root())
    }

    fn unhold(&self, names: &[String], _: &Context) -> Result<Command> {
        Ok(UNHOLD.with(names).as_root())
    }

    fn unneeded(&self, cx: &Context) -> Result<Vec<String>> {
        let look = AUTOREMOVE.command().duration(DurationCategory::Normal);
        let output = cx.run(look)?;
        let foreign = foreign(&output.text());
        let simulated = simulation::read(output, cx)?;
        if !foreign.is_empty() {
            // Without its architecture, the name stands for the machine's own package, which may be needed.
            let message = format!(
                "nothing is removed: packages of another architecture aren't needed any more, which pkg_autoremove can't name: {}",
                foreign.join(", ")
            );
            return Err(Problem::new("NOT_SUPPORTED", Category::State, message)
                .remedy("Remove them by command_run argv=[\"apt-get\", \"--yes\", \"autoremove\"] as_root=true, which asks a person"));
        }
        Ok(simulated.operations.into_iter().map(|operation| operation.name).collect())
    }

    fn clean(&self, what: Cached, _: &Context) -> Option<Command> {
        (what == Cached::Packages).then(|| CLEAN.command().as_root())
    }

    fn cached_bytes(&self, cx: &Context) -> Result<u64> {
        // du fails where it may not read a directory, and prints the rest all the same.
        let said =
            cx.run(CACHED_BYTES.command().privilege(linux_sysadmin_sdk::Privilege::RootIfAvailable))?;
        let text = said.text();
        let bytes = text.split('\t').next().and_then(|bytes| bytes.parse().ok());
        bytes.ok_or_else(|| Problem::unexpected("du", &text))
    }

    fn verify(&self, names: &[String], cx: &Context) -> Result<Comparison> {
        let look = |command: Command| {
            let command = command.privilege(linux_sysadmin_sdk::Privilege::RootIfAvailable);
            command.duration(DurationCategory::Slow)
        };
        if names.is_empty() || are_unpacked(names, cx) {
            let line = if names.is_empty() { VERIFY_ALL } else { VERIFY };
            let differences = self.differences(cx.run(look(line.with(names))), names, cx);
            return Ok(Comparison { absent: Vec::new(), differences });
        }
        // The longer one starts first.
        let [mut output, installed] = cx.run_each([look(VERIFY.with(names)), INSTALLED_OF.with(names)]);
        let installed = dpkg_query::read_of(installed)?;
        let is_meant = |package: &&Installed| package.state != State::ConfigFiles;
        let meant: Vec<_> = installed.iter().filter(is_meant).collect();
        if meant.len() > names.len() {
            // dpkg refuses the name of a package that is installed for several architectures.
            output = cx.run(look(VERIFY_QUALIFIED.with(qualified(&meant))));
        }
        let is_there = |name: &&String| meant.iter().any(|package| package.name == **name);
        let absent = names.iter().filter(|name| !is_there(name)).cloned().collect();
        Ok(Comparison { absent, differences: self.differences(output, names, cx) })
    }

    fn search_owners(&self, paths: &[String]) -> Vec<Command> {
        vec![SEARCH_FILES.with(paths.iter().map(|path| literal(path)))]
    }

    fn read_owners(&self, paths: &[String], outputs: Vec<Result<Output>>) -> Result<Vec<Owners>> {
        let mut text = String::new();
        for output in outputs {
            // dpkg-query fails where a path has no package, and prints the others all the same.
            let output = match output? {
                output if output.exit_code > 1 => output.success("dpkg-query --search")?,
                output => output,
            };
            text += &output.text();
        }
        Ok(owners(&text, paths))
    }
}

impl Apt {
    /// Reads the output of `dpkg --verify` for these packages.
    fn differences(&self, output: Result<Output>, names: &[String], cx: &Context) -> Result<Vec<Difference>> {
        let text = output?.success("dpkg --verify")?.text().into_owned();
        let mut found = text.lines().map(difference).collect::<Result<Vec<_>>>()?;
        let paths: Vec<_> = found.iter().take(MOST_OWNERS).map(|found| found.path.clone()).collect();
        if let [name] = names {
            found.iter_mut().for_each(|found| found.package.clone_from(name));
        } else {
            let owners = self.owners(&paths, cx)?;
            for (found, owners) in found.iter_mut().zip(owners) {
                found.package = owners.packages.join(", ");
            }
        }
        Ok(found)
    }
}

/// Whether dpkg's database has the digests of these packages' files. It forgets them where only configuration is left of a
/// package, and has them under another name where the package can be installed for several architectures.
fn are_unpacked(names: &[String], cx: &Context) -> bool {
    let digests: Vec<_> = names.iter().map(|name| DIGESTS.replace('*', name)).collect();
    cx.stat_all(&digests).into_iter().all(|found| matches!(found, Ok(Some(_))))
}

/// The names of packages with their architectures.
fn qualified(packages: &[&Installed]) -> Vec<String> {
    packages.iter().map(|package| format!("{}:{}", package.name, package.arch)).collect()
}

/// The packages that have to be installed anew, without those that a repository has. apt-get does nothing at all until they
/// are gone.
fn without_archive<'a>(reinstall: &'a [Installed], cx: &Context) -> Result<Vec<&'a Installed>> {
    let names: Vec<_> = reinstall.iter().map(|package| package.name.as_str()).collect();
    let known = apt_cache::policy(&names, cx)?;
    let has_archive =
        |package: &Installed| known.get(&package.name).is_some_and(|policy| !policy.available.is_empty());
    Ok(reinstall.iter().filter(|package| !has_archive(package)).collect())
}

/// The packages of other architectures that a simulation removes: `Remv libc6:i386 [2.36]`.
fn foreign(text: &str) -> Vec<String> {
    let removed = text.lines().filter_map(|line| line.strip_prefix("Remv ").or(line.strip_prefix("Purg ")));
    let names = removed.filter_map(|rest| rest.split(' ').next()).filter(|name| name.contains(':'));
    names.map(str::to_owned).collect()
}

/// The path as a pattern that matches it alone: dpkg-query reads `*`, `?`, `[` and `\` as those of a pattern.
fn literal(path: &str) -> String {
    let escaped = |c: char| if "*?[\\".contains(c) { vec!['\\', c] } else { vec![c] };
    path.chars().flat_map(escaped).collect()
}

/// Parses `??5?????? c /etc/x` and `missing   c /etc/x` of `dpkg --verify`: dpkg(1), `--verify-format`.
fn difference(line: &str) -> Result<Difference> {
    let unexpected = || Problem::unexpected("dpkg --verify", line);
    let (flags, rest) = line.split_at_checked(9).ok_or_else(unexpected)?;
    let rest = rest.strip_prefix(' ').ok_or_else(unexpected)?;
    let (kind, path) = rest.split_at_checked(2).ok_or_else(unexpected)?;
    let path = path.strip_suffix(" (Permission denied)").unwrap_or(path);
    if !path.starts_with('/') {
        return Err(unexpected());
    }
    let mut found = Difference { path: path.to_owned(), config: kind == "c ", ..Difference::default() };
    if flags.trim() == "missing" {
        // A file in a directory that the account may not enter isn't known to be missing.
        found.unreadable = line.ends_with(" (Permission denied)");
        found.differs.extend((!found.unreadable).then_some("missing"));
        return Ok(found);
    }
    if flags.contains('5') {
        found.differs.push("digest");
    }
    if flags.contains('M') {
        found.differs.push("type");
    }
    found.unreadable = flags == "?????????";
    Ok(found)
}

/// Parses `a, b:amd64: /path`, `diversion by a from: /path` and `diversion by a to: /other` of `dpkg-query --search`.
fn owners(text: &str, paths: &[String]) -> Vec<Owners> {
    let mut owners = vec![Owners::default(); paths.len()];
    let mut of = |path: &str, add: &mut dyn FnMut(&mut Owners)| {
        for (at, _) in paths.iter().enumerate().filter(|(_, other)| *other == path) {
            add(&mut owners[at]);
        }
    };
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((who, path)) = line.split_once(": /").map(|(who, rest)| (who, format!("/{rest}"))) else {
            continue;
        };
        let diversion =
            who.strip_prefix("diversion by ").or_else(|| who.strip_prefix("local diversion").map(|_| who));
        if let Some(by) = diversion {
            // The line with `to` follows the one with `from`.
            let to = lines.next_if(|_| by.ends_with("from")).unwrap_or(line);
            let to = to.split_once(": /").map_or("", |(_, rest)| rest);
            let by = by.strip_suffix(" from").or_else(|| by.strip_suffix(" to")).unwrap_or(by);
            let from_it = format!("other packages' file is /{to}, diverted by {by}");
            let to_it = format!("it is the {path} of other packages, diverted by {by}");
            of(&path, &mut |owners| owners.diversion = Some(from_it.clone()));
            of(&format!("/{to}"), &mut |owners| owners.diversion = Some(to_it.clone()));
            continue;
        }
        let names = who.split(", ").map(|name| name.split(':').next().unwrap_or(name).to_owned());
        let names: Vec<_> = names.collect();
        of(&path, &mut |owners| owners.packages.extend(names.iter().cloned()));
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines come from dpkg 1.21.23 as root, and those of sudo as nobody.
    #[test]
    fn a_line_says_what_differs_and_whether_it_is_configuration() {
        // Path, what differs, whether it is configuration, whether it is unreadable.
        type Told<'a> = (&'a str, &'a [&'a str], bool, bool);
        let table: [(&str, Told<'_>); 7] = [
            ("??5?????? c /etc/lab-conf.conf", ("/etc/lab-conf.conf", &["digest"], true, false)),
            ("??5??????   /usr/bin/lsattr", ("/usr/bin/lsattr", &["digest"], false, false)),
            ("missing     /usr/bin/free", ("/usr/bin/free", &["missing"], false, false)),
            ("missing   c /etc/a b", ("/etc/a b", &["missing"], true, false)),
            ("missing     /root/x (Permission denied)", ("/root/x", &[], false, true)),
            ("?M5??????   /usr/bin/uptime", ("/usr/bin/uptime", &["digest", "type"], false, false)),
            ("????????? c /etc/sudoers", ("/etc/sudoers", &[], true, true)),
        ];
        for (line, expected) in table {
            let found = difference(line).expect(line);
            let told = (found.path.as_str(), found.differs.as_slice(), found.config, found.unreadable);
            assert_eq!((told, found.package.as_str()), (expected, ""), "{line}");
        }
        for line in ["", "missing", "??5??????", "dpkg: error: x y z", "??5?????? é /x", "ééééééééé"]
        {
            assert_eq!(difference(line).expect_err(line).code, "UNEXPECTED_OUTPUT", "{line}");
        }
    }

    /// The lines come from dpkg 1.21.23.
    #[test]
    fn a_path_has_packages_and_diversions() {
        let text = "diversion by dash from: /bin/sh\ndiversion by dash to: /bin/sh.distrib\ndash: /bin/sh\n\
            cron-daemon-common, git, binutils-common:amd64: /etc\ncoreutils: /usr/bin/[\n";
        let paths = ["/bin/sh", "/etc", "/usr/bin/[", "/nonexist"].map(str::to_owned);
        let found = owners(text, &paths);
        assert_eq!(found[0].packages, ["dash"]);
        let diversion = "other packages' file is /bin/sh.distrib, diverted by dash";
        assert_eq!(found[0].diversion.as_deref(), Some(diversion));
        assert_eq!(found[1].packages, ["cron-daemon-common", "git", "binutils-common"]);
        assert_eq!(found[2].packages, ["coreutils"]);
        assert_eq!(found[3], Owners::default());
        // The other place of a diversion has no package in dpkg's list.
        let text = "diversion by postgresql-common from: /usr/bin/pg_config\n\
            diversion by postgresql-common to: /usr/bin/pg_config.libpq-dev\n";
        let found = owners(text, &["/usr/bin/pg_config.libpq-dev".to_owned()]);
        let diversion = "it is the /usr/bin/pg_config of other packages, diverted by postgresql-common";
        assert_eq!(found[0].diversion.as_deref(), Some(diversion));
        assert_eq!(owners("", &paths), vec![Owners::default(); 4]);
    }

    #[test]
    fn a_path_matches_itself_alone() {
        assert_eq!(literal("/usr/bin/["), "/usr/bin/\\[");
        assert_eq!(literal("/a*b?\\c"), "/a\\*b\\?\\\\c");
        assert_eq!(literal("/etc/passwd"), "/etc/passwd");
    }
}
