//! Looks at the configuration, the modules, the cache of compiled code, SSH and the rights on the target.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Area, Finding};
use crate::config::LoadedConfig;
use crate::dispatcher::Dispatcher;
use crate::targets::Targets;
use host_base::problem::Problem;
use host_components::{CompileMode, ModuleDirectories, ModuleInstaller, Modules, Origin, shared_cache};
use host_target::Facts;

/// The configuration that holds.
pub(super) fn configuration(loaded: &LoadedConfig) -> Finding {
    let path = loaded.path.display();
    match loaded.path.exists() {
        true => Finding::ok(Area::Configuration, format!("{path} can be read")),
        false => {
            let found = format!("there is no {path}, so the defaults hold; the first start writes it");
            Finding::ok(Area::Configuration, found)
        }
    }
}

/// A configuration with which the server doesn't start.
pub(super) fn wrong_configuration(error: anyhow::Error) -> Finding {
    let remedy =
        "Correct what it names. Without the file, the defaults hold and the next start writes a new one";
    Finding::error(Area::Configuration, format!("{error:#}"), remedy)
}

/// The operator's own profiles that are not used.
pub(super) fn profiles(dispatcher: &Dispatcher) -> Vec<Finding> {
    let warnings = dispatcher.knowledge().get().warnings().iter();
    let remedy = "Correct the file; `linux-sysadmin knowledge check FILE` checks it";
    warnings.map(|warning| Finding::warning(Area::Configuration, warning, remedy)).collect()
}

/// The modules: whether there are any, whether each has the bytes that were pinned, and why some aren't used.
pub(super) async fn modules(places: ModuleDirectories, config: &Modules) -> Vec<Finding> {
    let host = places.host.clone();
    let workshop = ModuleInstaller::open(places, config, CompileMode::Now).await;
    let registry = &workshop.registry;
    let mut findings = Vec::new();
    let used = registry.modules().len();
    match host {
        Some(host) if used > 0 => {
            let found = format!("{used} are used; those of the program lie in {}", host.display());
            findings.push(Finding::ok(Area::Modules, found));
        }
        _ => findings.push(Finding::error(
            Area::Modules,
            "there are none, so clients see no tools",
            "Install the program with its modules, or name their directory by --modules",
        )),
    }
    let faults = workshop.verify().into_iter().filter_map(|verified| {
        let fault = verified.fault?;
        Some((verified.name, verified.origin, format!("{}: {fault}", verified.path.display())))
    });
    let faults: Vec<_> = faults.collect();
    let unused = registry.unused_modules().iter().filter(|unused| !unused.disabled);
    // What isn't as pinned is not used for that reason, which is said already.
    let unused = unused.filter(|unused| !faults.iter().any(|(name, _, _)| *name == unused.name));
    let unused = unused.map(|unused| (unused.name.clone(), unused.origin, unused.reason.clone()));
    for (name, origin, why) in unused.chain(faults.iter().cloned()) {
        let found = format!("{name} is not used: {why}");
        findings.push(Finding::error(Area::Modules, found, remedy_of_module(&name, origin)));
    }
    findings
}

fn remedy_of_module(name: &str, origin: Origin) -> String {
    match origin {
        Origin::Host => "Install the program again, with its modules".to_owned(),
        Origin::System | Origin::User => {
            let system = if origin == Origin::System { " --system" } else { "" };
            format!(
                "`linux-sysadmin modules remove {name}` takes it away, and `linux-sysadmin modules add FILE{system}` \
                 adds it again"
            )
        }
    }
}

/// The directories of compiled code.
pub(super) fn cache() -> Vec<Finding> {
    let own = match host_base::directories::cache() {
        Some(directory) => own_cache(&directory),
        None => Finding::warning(
            Area::Cache,
            "neither XDG_CACHE_HOME nor HOME says where it is, so every start compiles the modules",
            "Start the server with HOME in its environment",
        ),
    };
    let shared = shared_cache();
    let is_there = fs::symlink_metadata(shared).is_ok_and(|metadata| metadata.is_dir());
    let said = || Finding::ok(Area::Cache, format!("{} has code for all accounts", shared.display()));
    [Some(own), is_there.then(said)].into_iter().flatten().collect()
}

fn own_cache(directory: &Path) -> Finding {
    let shown = directory.display();
    let slow = "so every start compiles the modules";
    let metadata = match fs::symlink_metadata(directory) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Finding::ok(Area::Cache, format!("{shown} is not there yet; the first start makes it"));
        }
        Err(error) => {
            let remedy = "Let this account look at it";
            return Finding::warning(Area::Cache, format!("{shown}: {error}, {slow}"), remedy);
        }
    };
    let is_own = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
    match (is_own, metadata.mode() & 0o077) {
        (true, 0) => Finding::ok(Area::Cache, format!("{shown} is this account's alone")),
        (true, _) => Finding::warning(
            Area::Cache,
            format!("{shown} is open to others, {slow}"),
            format!("`chmod 700 {shown}`"),
        ),
        (false, _) => Finding::warning(
            Area::Cache,
            format!("{shown} is no directory of this account's, {slow}"),
            format!("Remove {shown}; the next start makes it anew"),
        ),
    }
}

/// The way to other machines.
pub(super) async fn ssh(targets: &Targets) -> Vec<Finding> {
    let mut findings = Vec::new();
    if targets.controller().program("ssh").await.is_err() {
        findings.push(Finding::warning(
            Area::Ssh,
            "there is no program ssh, which reads ~/.ssh/config, so no other machine can be reached",
            "Install OpenSSH's client: the package openssh-client of Debian, openssh-clients of Fedora and RHEL",
        ));
    }
    let usual = targets.usual();
    let finding = match (usual.is_remote(), targets.offers_hosts()) {
        (true, _) => match usual.facts().await {
            Ok(facts) => {
                let found = format!("{} answers, as {} of {}", usual.name(), facts.user, facts.hostname);
                Finding::ok(Area::Ssh, found)
            }
            Err(problem) => unreachable(usual.name(), &problem),
        },
        (false, true) => {
            let found = "calls may name hosts; `linux-sysadmin doctor --host ALIAS` tries one";
            Finding::ok(Area::Ssh, found)
        }
        (false, false) => Finding::ok(Area::Ssh, "no other machine is known, so calls work on this one"),
    };
    findings.push(finding);
    findings
}

fn unreachable(name: &str, problem: &Problem) -> Finding {
    let remedy = match problem.remediation.is_empty() {
        true => format!("`ssh {name}` shows what OpenSSH says"),
        false => problem.remediation.join(". "),
    };
    Finding::error(Area::Ssh, format!("{name} can't be reached: {}", problem.message), remedy)
}

/// The rights on the machine that the server works on. Where it can't be reached, that is said of SSH.
pub(super) async fn sudo(targets: &Targets) -> Option<Finding> {
    let facts = targets.usual().facts().await.ok()?;
    Some(rights(&facts))
}

fn rights(facts: &Facts) -> Finding {
    let user = &facts.user;
    if facts.uid == 0 {
        return Finding::ok(Area::Sudo, format!("the server works as {user}, with root's own rights"));
    }
    let found = match (facts.sudo_available, facts.sudo_limited) {
        (true, true) => format!("sudo allows {user} certain commands without a password"),
        (true, false) => format!("sudo allows {user} every command without a password"),
        (false, _) => {
            let (why, first) = match facts.missing.iter().any(|program| program == "sudo") {
                true => ("there is no sudo", "Install sudo. "),
                false => ("sudo allows it nothing without a password", ""),
            };
            let found = format!(
                "{user} is not root, and {why}: tools see what this account sees, and change only what it may"
            );
            let remedy = format!(
                "{first}`linux-sysadmin modules sudoers` prints the rules that the modules need, for a file in \
                 /etc/sudoers.d; `sudo linux-sysadmin system install` gives the server an account of its own"
            );
            return Finding::warning(Area::Sudo, found, remedy);
        }
    };
    Finding::ok(Area::Sudo, found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::Status;
    use super::*;

    #[test]
    fn a_cache_that_others_can_see_is_told_with_what_mends_it() {
        let directory = tempfile::tempdir().unwrap();
        let cache = directory.path().join("cache");
        assert_eq!(own_cache(&cache).status, Status::Ok);
        fs::create_dir(&cache).unwrap();
        for (mode, status) in [(0o700, Status::Ok), (0o755, Status::Warning)] {
            fs::set_permissions(&cache, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(own_cache(&cache).status, status, "{mode:o}");
        }
        assert!(own_cache(&cache).remedy.unwrap().starts_with("`chmod 700 "));
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(own_cache(&file).remedy.unwrap().starts_with("Remove "));
    }

    #[test]
    fn rights_are_told_as_they_are_and_missing_ones_with_what_gives_them() {
        let facts = |uid, sudo_available, sudo_limited, missing: &[&str]| Facts {
            user: "web".to_owned(),
            uid,
            sudo_available,
            sudo_limited,
            missing: missing.iter().map(|name| (*name).to_owned()).collect(),
            ..Facts::default()
        };
        for (facts, status, words) in [
            (facts(0, false, false, &[]), Status::Ok, "root's own rights"),
            (facts(1000, true, true, &[]), Status::Ok, "certain commands"),
            (facts(1000, true, false, &[]), Status::Ok, "every command"),
            (facts(1000, false, false, &[]), Status::Warning, "nothing without a password"),
            (facts(1000, false, false, &["sudo"]), Status::Warning, "there is no sudo"),
        ] {
            let finding = rights(&facts);
            assert_eq!(finding.status, status, "{finding:?}");
            assert!(finding.found.contains(words), "{finding:?}");
            assert_eq!(finding.remedy.is_some(), status == Status::Warning, "{finding:?}");
        }
    }
}
