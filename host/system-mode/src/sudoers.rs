//! Makes the sudoers fragment of a module on a target. It allows exactly what the module was granted and the target's
//! state makes necessary.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use host_base::problem::Problem;
use host_base::{Command, Privilege};
use host_capability::{
    Effect, Exactness, Fragment, FragmentError, HoleType, Pattern, PatternError, Requests, STAGING,
    SudoVersion, SudoersRule, verbs_for, verbs_for_accounts, verbs_for_command, verbs_for_moves,
    verbs_for_validation,
};
use host_components::Module;
use host_knowledge::{LazyKnowledge, TargetServices};
use host_target::Target;

/// The reason why there is no fragment.
#[derive(Debug, thiserror::Error)]
pub enum SudoersError {
    /// A name can't stand in a fragment.
    #[error(transparent)]
    Fragment(#[from] FragmentError),
    /// A grant can't be parsed. A module with such a grant isn't loaded.
    #[error("a grant can't be read: {0}")]
    Pattern(#[from] PatternError),
    /// The module has changed, and so nobody knows what it needs.
    #[error("{}", .0.message)]
    Module(Problem),
}

/// The reason why no fragment allows signals.
const NO_SIGNALS: &str = "expected sudo to allow everything: the host sends signals by a script that checks each process, and an \
     expression for a script's text would match parts of it too";

/// A command that needs another account's rights.
struct NeededCommand {
    pattern: Pattern,
    run_as: String,
    reason: String,
}

/// Returns the fragment by which this account may use the module on this target. It includes what the profiles of the
/// target's services allow the module.
pub async fn fragment(
    target: &Target,
    module: &Module,
    account: &str,
    knowledge: &LazyKnowledge,
) -> Result<Fragment, SudoersError> {
    let description = &module.description;
    module.grants().await.map_err(SudoersError::Module)?;
    let mut requests = module.granted();
    if module.learns() {
        for known in detected(target, knowledge).await {
            requests.commands.extend(known.commands);
            requests.paths.extend(known.paths);
        }
    }
    let needed = needed(&requests)?;
    // System mode is on the server's own machine. On another machine, an account of that name has no special meaning.
    let is_servers = account == super::ACCOUNT && !target.is_remote();
    let bound = if is_servers { Exactness::Server } else { Exactness::Grants };
    let (mut rules, mut path_checks) = (Vec::new(), PathChecks::new());
    for NeededCommand { pattern, run_as, reason } in &needed {
        let name = pattern.program();
        let is_own = requests.own_programs.iter().any(|own| own.path == name);
        let program = match target.program(name).await {
            // A plan of the module's writes it before it runs it, by commands that the fragment allows as well.
            Err(problem) if problem.code == "PROGRAM_NOT_FOUND" && is_own => Ok(name.into()),
            found => found.map(PathBuf::from).map_err(|problem| problem.message),
        };
        let refused = match bound {
            Exactness::Grants => unsafe_path(target, pattern, run_as, &mut path_checks).await,
            Exactness::Server => None,
        };
        rules.push(SudoersRule { pattern, run_as, program, reason, refused });
    }
    let sudo = sudo_version(target).await;
    let mut fragment = Fragment::new(&description.name, &description.version, account, bound, sudo, &rules)?;
    for request in &requests.signals {
        let Some(run_as) = request.privilege.account() else { continue };
        fragment.without("signals to processes", run_as, &request.reason, NO_SIGNALS);
    }
    Ok(fragment)
}

/// Returns the fragment, or why there is none, for showing it.
pub async fn reference(target: &Target, module: &Module, account: &str, knowledge: &LazyKnowledge) -> String {
    match fragment(target, module, account, knowledge).await {
        Ok(fragment) => fragment.to_string(),
        Err(error) => format!("# There is no fragment: {error}\n"),
    }
}

/// Returns the requests of the profiles of services that the target has.
async fn detected(target: &Target, knowledge: &LazyKnowledge) -> Vec<Requests> {
    let (Ok(facts), Ok(seen)) = (target.facts().await, target.services(false).await) else {
        return Vec::new();
    };
    let resolved = TargetServices::new(knowledge.get(), &facts.family, &seen);
    resolved.detected().map(|(known, _)| known.requests(&facts.family)).collect()
}

/// Returns the commands of the grants, and the host's own commands that look at their paths and read their files, each
/// once.
fn needed(granted: &Requests) -> Result<Vec<NeededCommand>, PatternError> {
    let mut needed: Vec<NeededCommand> = Vec::new();
    let mut add = |pattern: &Pattern, run_as: &str, reason: String| {
        if !needed.iter().any(|known| known.pattern.text() == pattern.text() && known.run_as == run_as) {
            needed.push(NeededCommand { pattern: pattern.clone(), run_as: run_as.to_owned(), reason });
        }
    };
    for request in &granted.commands {
        let Some(run_as) = request.privilege.account() else { continue };
        let pattern = Pattern::parse(&request.pattern)?;
        for verb in verbs_for_command(&pattern, &request.privilege)? {
            add(verb.pattern()?, run_as, format!("to see where the paths of {} lead", pattern.program()));
        }
        add(&pattern, run_as, request.reason.clone());
    }
    let is_others = |privilege: &Privilege| privilege.account().is_some();
    let gives_text = granted.commands.iter().filter(|request| request.effect == Effect::Change);
    let gives_text = gives_text.filter(|request| is_others(&request.privilege));
    if granted.paths.iter().any(|request| request.write && is_others(&request.privilege))
        || gives_text
            .map(|request| Pattern::parse(&request.pattern))
            .any(|pattern| pattern.is_ok_and(|pattern| pattern.stdin()))
    {
        for verb in verbs_for_accounts()? {
            add(verb.pattern()?, "root", "to see who the accounts are that it writes of".to_owned());
        }
    }
    for (number, request) in granted.paths.iter().enumerate() {
        let Some(run_as) = request.privilege.account() else { continue };
        let does = if request.write { "write" } else { "read" };
        for verb in verbs_for(request)? {
            add(verb.pattern()?, run_as, format!("to {does} {}: {}", request.glob, request.reason));
        }
        for other in &granted.paths[..=number] {
            for verb in verbs_for_moves(other, request)? {
                add(
                    verb.pattern()?,
                    run_as,
                    format!("to move what is in {} or {}", other.glob, request.glob),
                );
            }
        }
        for command in &granted.commands {
            for verb in verbs_for_validation(command, request)? {
                let reason = format!("to validate what is written to {}: {}", request.glob, command.reason);
                add(verb.pattern()?, run_as, reason);
            }
        }
    }
    Ok(needed)
}

/// Returns why a path isn't safe. sudo sees a path's text and not where it leads. A path that others could make lead
/// elsewhere is therefore not allowed: one below a directory that they can write to, or one with directories that
/// aren't known now. The host's own directories, made while a plan runs, are allowed: they are made with these rights,
/// for nobody else, in a directory that is checked.
async fn unsafe_path(
    target: &Target,
    pattern: &Pattern,
    run_as: &str,
    path_checks: &mut PathChecks,
) -> Option<String> {
    let globs: Vec<&str> = pattern
        .holes()
        .filter_map(|hole| match hole {
            HoleType::Path(Some(glob)) => Some(glob.text()),
            _ => None,
        })
        .collect();
    for glob in globs {
        let staging = glob.find(&format!("/{STAGING}*/"));
        let glob = staging.map_or(glob, |at| &glob[..at + 1 + STAGING.len() + 1]);
        let above = glob.rsplit_once('/').map_or("", |(above, _)| above);
        if above.contains('*') {
            return Some(format!("which directories {glob} goes through isn't known before it is used"));
        }
        let key = (glob.to_owned(), run_as.to_owned());
        if !path_checks.contains_key(&key) {
            // A name with a star in it doesn't exist, and its directories are those of all names that match.
            let unsafe_path = target.safe_for(glob, run_as).await.err();
            path_checks.insert(key.clone(), unsafe_path.map(|problem| problem.message));
        }
        if let Some(message) = path_checks.get(&key).cloned().flatten() {
            return Some(message);
        }
    }
    None
}

/// The reason why a glob isn't allowed to an account, or none where it is. Many patterns have the same globs, and each check
/// costs a question.
type PathChecks = BTreeMap<(String, String), Option<String>>;

/// Returns the target's version of sudo. None where it has no sudo that is known.
pub async fn sudo_version(target: &Target) -> Option<SudoVersion> {
    let question = Command::new("sudo", ["-V"], Duration::from_secs(10));
    let output = target.run_all(&[question]).await.pop()?.ok()?;
    SudoVersion::parse(&String::from_utf8_lossy(&output.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_target::Overrides;

    /// On this machine, `/etc` is root's, and everybody may write to `/tmp`.
    #[tokio::test]
    async fn the_hosts_own_copies_are_as_safe_as_the_directory_that_they_are_in() {
        let target = Target::local(Overrides::default());
        for (pattern, safe) in [
            ("mkdir --mode=0700 -- <path:/etc/.linux-sysadmin-*>", true),
            ("mv --no-target-directory -- <path:/etc/.linux-sysadmin-*/motd> <path:/etc/motd>", true),
            (
                "rm --force -- (<path:/etc/.linux-sysadmin-*/*.conf>|<path:/etc/.linux-sysadmin-*/.previous>)",
                true,
            ),
            ("mkdir --mode=0700 -- <path:/tmp/.linux-sysadmin-*>", false),
            ("rm --force -- <path:/tmp/.linux-sysadmin-*/x>", false),
            ("rm --force -- <path:/etc/*/.linux-sysadmin-*/x>", false),
            ("rm --force -- <path:/etc/*/x>", false),
        ] {
            let parsed = Pattern::parse(pattern).unwrap();
            let found = unsafe_path(&target, &parsed, "root", &mut PathChecks::new()).await;
            assert_eq!(found.is_none(), safe, "{pattern}");
        }
    }
}
