//! The upkeep of packages by rpm and dnf.

use linux_sysadmin_sdk::packages::upkeep::{Cached, Comparison, Diagnosis, Difference, Owners, Upkeep};
use linux_sysadmin_sdk::{Category, DurationCategory, Privilege, prelude::*};

use crate::command::{
    AUTOREMOVE, CACHED_BYTES, CHECK, CLEAN_ALL, CLEAN_METADATA, CLEAN_PACKAGES, DATABASES, LOCK, OWNER,
    PROVIDERS, REBUILD, UNLOCK, VERIFY, VERIFY_ALL, VERIFY_DATABASE, VERSIONLOCK, look,
};
use crate::{Dnf, command, installed, problem, simulation};

/// The files of which the database has one: in the form of sqlite, ndb or Berkeley DB.
const DATABASE_FILES: [&str; 3] = ["rpmdb.sqlite", "Packages.db", "Packages"];

/// The most changed files whose packages are looked for.
const MOST_OWNERS: usize = 200;

/// The most findings of `dnf check` in an answer.
const MOST_FINDINGS: usize = 30;

pub fn granted(module: Module) -> Module {
    let files =
        DATABASES.iter().flat_map(|(directory, _)| DATABASE_FILES.map(|file| format!("{directory}/{file}")));
    module.paths(files.map(|path| PathGrant::read(&path, "when rpm's database was written last")))
}

impl Upkeep for Dnf {
    fn diagnose(&self, cx: &Context) -> Result<Diagnosis> {
        let root = |line: CommandLine| look(line.command()).privilege(Privilege::RootIfAvailable);
        let verified = cx.run(root(VERIFY_DATABASE))?;
        if verified.exit_code != 0 {
            let said = verified.error_text();
            if said.contains("Permission denied") {
                let message = format!("rpm's database can only be verified as root: {}", said.trim());
                return Err(Problem::new("PRIVILEGE_REQUIRED", Category::Privilege, message));
            }
            if let Some(problem) = problem::explain(&verified) {
                return Err(problem);
            }
            return damaged(&verified, cx);
        }
        let checked = cx.run(look(CHECK.command()))?;
        let text = checked.text();
        let findings: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if checked.exit_code == 0 {
            return Ok(Diagnosis::default());
        }
        if findings.is_empty() {
            problem::success(checked.clone())?;
        }
        let mut message = findings.iter().take(MOST_FINDINGS).copied().collect::<Vec<_>>().join("; ");
        if findings.len() > MOST_FINDINGS {
            message += &format!("; and {} more", findings.len() - MOST_FINDINGS);
        }
        let help = "dnf has no command that mends it: `pkg_install` what is missing, or `pkg_remove` the package that needs it";
        let problem = Problem::new("DEPENDENCIES_BROKEN", Category::Dependency, message.clone());
        Ok(Diagnosis { findings: vec![message], problem: Some(problem.remedy(help)), ..Diagnosis::default() })
    }

    fn hold(&self, names: &[String], cx: &Context) -> Result<Command> {
        has_versionlock(cx)?;
        Ok(look(LOCK.with(names)).as_root())
    }

    fn unhold(&self, names: &[String], cx: &Context) -> Result<Command> {
        has_versionlock(cx)?;
        Ok(look(UNLOCK.with(names)).as_root())
    }

    fn unneeded(&self, cx: &Context) -> Result<Vec<String>> {
        let command = look(AUTOREMOVE.command()).as_root();
        let simulated = simulation::read(&simulation::run(command, cx)?, &installed::installed(cx)?)?;
        Ok(simulated.operations.into_iter().map(|operation| operation.name).collect())
    }

    fn clean(&self, what: Cached, _: &Context) -> Option<Command> {
        let line = match what {
            Cached::Packages => CLEAN_PACKAGES,
            Cached::Metadata => CLEAN_METADATA,
            Cached::All => CLEAN_ALL,
        };
        Some(line.command().as_root())
    }

    fn cached_bytes(&self, cx: &Context) -> Result<u64> {
        // du fails where one of the directories doesn't exist, and prints the other all the same.
        let said = cx.run(CACHED_BYTES.command().privilege(Privilege::RootIfAvailable))?;
        let text = said.text();
        let bytes = |line: &str| line.split('\t').next()?.parse::<u64>().ok();
        Ok(text.lines().filter_map(bytes).sum())
    }

    fn verify(&self, names: &[String], cx: &Context) -> Result<Comparison> {
        let line = if names.is_empty() { VERIFY_ALL } else { VERIFY };
        let command = line.with(names).privilege(Privilege::RootIfAvailable);
        // rpm's exit code is 1 where anything differs.
        let output = cx.run(command.duration(DurationCategory::Slow))?;
        let text = output.text();
        if text.trim().is_empty() && output.exit_code != 0 {
            output.clone().success("rpm --verify")?;
        }
        let absent = text.lines().filter_map(not_installed).map(str::to_owned).collect();
        let mut found: Vec<_> = text.lines().filter_map(difference).collect();
        if let [name] = names {
            found.iter_mut().for_each(|found| found.package.clone_from(name));
        } else {
            let paths: Vec<_> = found.iter().take(MOST_OWNERS).map(|found| found.path.clone()).collect();
            for (found, owners) in found.iter_mut().zip(self.owners(&paths, cx)?) {
                found.package = owners.packages.join(", ");
            }
        }
        Ok(Comparison { absent, differences: Ok(found) })
    }

    fn search_owners(&self, paths: &[String]) -> Vec<Command> {
        // A file may have several packages, each in its own line, so that each path is asked for alone.
        paths.iter().map(|path| OWNER.with([path])).collect()
    }

    fn read_owners(&self, _: &[String], outputs: Vec<Result<Output>>) -> Result<Vec<Owners>> {
        let owners = outputs.into_iter().map(|output| {
            let output = output?;
            let text = output.text();
            // rpm's messages are on stderr, or begin with the word `file`.
            let packages = text.lines().filter(|line| output.exit_code == 0 && !line.contains(' '));
            let packages = packages.map(str::to_owned).collect();
            if output.error_text().contains("cannot open Packages") {
                output.success("rpm")?;
            }
            Ok(Owners { packages, diversion: None })
        });
        owners.collect()
    }

    fn providers(&self, path: &str, cx: &Context) -> Result<Vec<String>> {
        let output = cx.run(look(PROVIDERS.with([path])))?;
        let text = output.text();
        let mut names: Vec<_> = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
        names.dedup();
        names.truncate(10);
        Ok(if output.exit_code == 0 { names } else { Vec::new() })
    }
}

/// The diagnosis of a database that rpm can't verify. rpm makes it anew from its table of packages. Where a part of this table
/// can't be read, rpm leaves these packages out and calls it a success, so that the table has to be whole.
fn damaged(verified: &Output, cx: &Context) -> Result<Diagnosis> {
    let said = verified.error_text();
    let said: Vec<_> = said.lines().map(|line| line.trim_start_matches("error: ")).take(5).collect();
    let finding = format!("rpm's database is damaged: {}", said.join("; "));
    let database = DATABASES.iter().find_map(|(directory, copy)| {
        let files = DATABASE_FILES.map(|file| format!("{directory}/{file}"));
        let found = cx.stat_all(&files).into_iter().find_map(|found| found.ok().flatten())?;
        Some((*directory, *copy, found.modified_unix))
    });
    let readable = cx.run(command::INSTALLED.command())?;
    let count = readable.text().lines().count();
    let is_whole = readable.exit_code == 0 && count > 0 && !readable.error_text().contains("error:");
    let Some((directory, copying, at)) = database.filter(|_| is_whole) else {
        let problem = Problem::new("PACKAGE_DATABASE_DAMAGED", Category::State, finding.clone());
        let help = "rpm can't make the database anew, since parts of its table of packages can't be read: put back a copy of \
            /var/lib/rpm from a backup, and call `pkg_repair` again";
        return Ok(Diagnosis {
            findings: vec![finding],
            problem: Some(problem.remedy(help)),
            ..Diagnosis::default()
        });
    };
    let copy = format!("{directory}.before-repair-{at}");
    let steps = vec![
        Step::run(copying.with([at.to_string()]).as_root()),
        Step::run(REBUILD.command().as_root()).uninterruptible(),
    ];
    Ok(Diagnosis {
        findings: vec![finding],
        steps,
        notes: vec![format!("the database had {count} packages; its copy from before is {copy}")],
        ..Diagnosis::default()
    })
}

/// Refuses where dnf has no versionlock.
fn has_versionlock(cx: &Context) -> Result<()> {
    if cx.stat_all(&VERSIONLOCK).into_iter().any(|found| matches!(found, Ok(Some(_)))) {
        return Ok(());
    }
    let message = "dnf has no versionlock on this machine, so that it can't hold packages";
    let problem = Problem::new("NOT_SUPPORTED", Category::State, message);
    Err(problem.remedy("`pkg_install` with python3-dnf-plugin-versionlock brings it"))
}

/// The package of `package NAME is not installed`.
fn not_installed(line: &str) -> Option<&str> {
    line.strip_prefix("package ")?.strip_suffix(" is not installed")
}

/// Parses `S.5....T.  c /etc/x` and `missing   c /etc/x` of `rpm --verify`: rpm(8), "Verify options". `None` for a line of
/// another kind, such as one about dependencies.
fn difference(line: &str) -> Option<Difference> {
    let (flags, rest) = line.split_at_checked(9)?;
    let is_missing = flags.trim() == "missing";
    let is_flags = flags.chars().all(|c| ".?SM5DLUGTP".contains(c));
    if !is_missing && !is_flags {
        return None;
    }
    let (kind, path) = rest.split_once('/')?;
    let path = format!("/{path}");
    let path = path.strip_suffix(" (Permission denied)").unwrap_or(&path).to_owned();
    let mut found = Difference { path, config: kind.trim() == "c", ..Difference::default() };
    if is_missing {
        // A file in a directory that the account may not enter isn't known to be missing.
        found.unreadable = line.ends_with("(Permission denied)");
        found.differs.extend((!found.unreadable).then_some("missing"));
        return Some(found);
    }
    const TESTS: [(char, &str); 9] = [
        ('S', "size"),
        ('M', "mode"),
        ('5', "digest"),
        ('D', "device"),
        ('L', "link"),
        ('U', "owner"),
        ('G', "group"),
        ('T', "time"),
        ('P', "capabilities"),
    ];
    found.differs.extend(TESTS.iter().filter(|(sign, _)| flags.contains(*sign)).map(|(_, what)| *what));
    found.unreadable = flags.contains('?');
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines come from rpm 4.18.0 as root, and the one with `?` as nobody.
    #[test]
    fn a_line_says_what_differs_and_whether_it_is_configuration() {
        // Path, what differs, whether it is configuration, whether it is unreadable.
        type Told<'a> = (&'a str, &'a [&'a str], bool, bool);
        let table: [(&str, Told<'_>); 6] = [
            (
                "S.5....T.    /usr/bin/lab-hello",
                ("/usr/bin/lab-hello", &["size", "digest", "time"], false, false),
            ),
            (
                "S.5....T.  c /etc/lab-conf.conf",
                ("/etc/lab-conf.conf", &["size", "digest", "time"], true, false),
            ),
            ("missing     /usr/bin/lab-service", ("/usr/bin/lab-service", &["missing"], false, false)),
            (
                "SM?....T.    /usr/bin/lab-hello",
                ("/usr/bin/lab-hello", &["size", "mode", "time"], false, true),
            ),
            ("missing   c /etc/a b", ("/etc/a b", &["missing"], true, false)),
            ("missing     /root/x (Permission denied)", ("/root/x", &[], false, true)),
        ];
        for (line, expected) in table {
            let found = difference(line).expect(line);
            let told = (found.path.as_str(), found.differs.as_slice(), found.config, found.unreadable);
            assert_eq!((told, found.package.as_str()), (expected, ""), "{line}");
        }
        for line in [
            "",
            "missing",
            "Unsatisfied dependencies for x-1-1.noarch:",
            "\tlab-dep is needed by x",
            "éééééé /x",
        ] {
            assert_eq!(difference(line), None, "{line}");
        }
    }
}
