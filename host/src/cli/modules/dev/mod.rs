//! `linux-sysadmin modules dev`: builds a module and adds it, again and again while its author writes it. A server that runs
//! notices each new component as it notices any other one that is added or updated.
//!
//! The author is asked once for what the module asks for. A later build is added without a question unless it asks for more.

mod build;
mod sources;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::add::{Add, finished};
use super::prompt::Prompt;
use super::questions::say;
use super::update::Update;
use super::view::holds;
use super::{finish, one_line};
use crate::cli::text::wrap;
use crate::config::LoadedConfig;
use build::{BuildError, Project};
use host_capability::{Request, Requests, by_concern};
use host_components::{
    CompileMode, Conflict, Description, Examined, InstallError, ModuleDirectories, ModuleInstaller, Origin,
};
use host_policy::Policy;
use host_system_mode::{ACCOUNT, Mode};
use sources::Sources;

#[derive(Args)]
pub(super) struct Dev {
    /// The module's folder, such as `modules new` makes
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Build and add it once, and don't wait for changes
    #[arg(long)]
    once: bool,
}

/// The reason why a module can't be built and added.
#[derive(Debug, thiserror::Error)]
enum DevError {
    #[error(
        "the server's own account ({}) builds nothing, because a build runs programs of the module's author: \
         run this as the author, and add the component for the server by `linux-sysadmin modules add`",
        ACCOUNT
    )]
    ServersAccount,
    #[error("{} can't be looked at: {}", .0.display(), .1)]
    NoFolder(PathBuf, #[source] io::Error),
    #[error("changes in {} can't be noticed: {}", .0.display(), .1)]
    NotWatched(PathBuf, #[source] io::Error),
    #[error(
        "there is no terminal to ask at: add the component once, by `linux-sysadmin modules add {} --yes --sha256 {}` \
         when you have read what it asks for; from then on this asks only where it asks for more",
        .0.display(), .1
    )]
    NobodyToAsk(PathBuf, String),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Install(#[from] InstallError),
}

/// What became of a build.
enum Outcome {
    Added,
    /// The component has the bytes that are pinned already.
    Same,
}

impl Dev {
    pub(super) async fn run(
        self,
        places: ModuleDirectories,
        loaded: LoadedConfig,
    ) -> anyhow::Result<ExitCode> {
        let configured = Policy::load(&loaded.config.policy)?;
        let policy = configured.as_deref().unwrap_or_else(|| Policy::builtin());
        finish(self.follow(&places, &loaded, policy).await.map(|()| None))
    }

    /// Builds and adds the module after each change, without end unless it is to be done once.
    async fn follow(
        self,
        places: &ModuleDirectories,
        loaded: &LoadedConfig,
        policy: &Policy,
    ) -> Result<(), DevError> {
        if matches!(host_system_mode::mode(), Mode::System { .. }) {
            return Err(DevError::ServersAccount);
        }
        let folder =
            self.folder.canonicalize().map_err(|error| DevError::NoFolder(self.folder.clone(), error))?;
        let project = Project::of(&folder)?;
        let unwatched = |error| DevError::NotWatched(folder.clone(), error);
        // The watch begins before the first build, so that no change in between is missed.
        let mut sources = Sources::watch(&folder).map_err(unwatched)?;
        let mut session = Session { places, loaded, policy, asked: Vec::new() };
        loop {
            let built = sources.state();
            let done = match project.build().await {
                Ok(component) => session.add(&component).await,
                Err(error) => Err(error.into()),
            };
            if self.once {
                if let Outcome::Same = done? {
                    say("the component is the same as before, and stays added")?;
                }
                return Ok(());
            }
            match done {
                Ok(Outcome::Added) => {
                    say("waiting for changes; Ctrl-C ends this, and the module stays added")?
                }
                Ok(Outcome::Same) => say("the component is the same as before; waiting for changes")?,
                Err(error) => {
                    say(&wrap(&one_line(&format!("error: {error}")), "", "  "))?;
                    say("waiting for changes")?;
                }
            }
            sources.changed_since(&built).await.map_err(unwatched)?;
        }
    }
}

/// What holds from one build to the next.
struct Session<'a> {
    places: &'a ModuleDirectories,
    loaded: &'a LoadedConfig,
    policy: &'a Policy,
    /// What the author was asked about, so that what was declined is not asked about at each build.
    asked: Vec<Requests>,
}

impl Session<'_> {
    /// Adds the component, or updates the module that it is a new version of.
    async fn add(&mut self, component: &Path) -> Result<Outcome, DevError> {
        // Other modules may have changed since the last build.
        let config = &self.loaded.config.modules;
        let installer = ModuleInstaller::open(self.places.clone(), config, CompileMode::Now).await;
        let examined = installer.examine(component, true).await?;
        let description = examined.description();
        let Some((Origin::User, entry)) = installer.entry(&description.name)? else {
            can_ask(&installer, &examined)?;
            let added = Add::of(component).add(&installer, &Prompt::default(), self.policy).await;
            return self.decided(description, added);
        };
        if entry.sha256 == examined.sha256() && installer.is_as_pinned(&entry.name) {
            return Ok(Outcome::Same);
        }
        // Another component of the same name may be somebody else's, and its grants were not meant for this one.
        let is_ours = Path::new(&entry.source) == component;
        let is_decided = |request: &Request<'_>| {
            holds(&entry.grants, request) || self.asked.iter().any(|asked| holds(asked, request))
        };
        let asks_for_more = !by_concern(&description.requests).iter().all(|(_, request)| is_decided(request));
        let conflicts = examined.conflicts.iter().any(|conflict| !is_replaced(conflict, &entry.replaces));
        if !is_ours || asks_for_more || conflicts {
            can_ask(&installer, &examined)?;
            let update = Update::of(&entry.name, component);
            let updated = update.update(&installer, &Prompt::default(), self.policy).await;
            return self.decided(description, updated);
        }
        let tools: BTreeSet<&str> = description.tools.iter().map(|tool| tool.name.as_str()).collect();
        let replaces = entry.replaces.iter().filter(|tool| tools.contains(tool.as_str())).cloned().collect();
        let grants = of_those(&description.requests, |request| holds(&entry.grants, request));
        let version = &description.version;
        let updated = installer
            .install(Origin::User, &examined, Some(&entry), grants, replaces)
            .map(|()| Some(format!("updated {} {version}", entry.name)));
        let said = finished(&installer, &examined, updated).await?;
        said.iter().try_for_each(|said| say(said))?;
        Ok(Outcome::Added)
    }

    /// Keeps what the author was asked about, and says what was done.
    fn decided(
        &mut self,
        description: &Description,
        done: Result<Option<String>, InstallError>,
    ) -> Result<Outcome, DevError> {
        let said = done?;
        self.asked.push(Requests::clone(&description.requests));
        said.iter().try_for_each(|said| say(said))?;
        Ok(Outcome::Added)
    }
}

/// Refuses to go on where there would be a question and nobody to answer it.
fn can_ask(installer: &ModuleInstaller, examined: &Examined) -> Result<(), DevError> {
    if Prompt::default().is_possible() {
        return Ok(());
    }
    installer.forget(examined);
    Err(DevError::NobodyToAsk(examined.path().to_owned(), examined.sha256().to_owned()))
}

/// Whether the conflict is one with a tool of the host that the module takes the place of, as was decided before.
fn is_replaced(conflict: &Conflict, replaces: &[String]) -> bool {
    matches!(conflict, Conflict::Shadows { origin: Origin::Host, tool, .. } if replaces.contains(tool))
}

/// Those of the requests that the condition holds for.
fn of_those(all: &Requests, condition: impl Fn(&Request<'_>) -> bool) -> Requests {
    let mut some = all.clone();
    some.commands.retain(|request| condition(&Request::Command(request)));
    some.paths.retain(|request| condition(&Request::Path(request)));
    some.any_program.retain(|request| condition(&Request::AnyProgram(request)));
    some.signals.retain(|request| condition(&Request::Signals(request)));
    some.own_programs.retain(|request| condition(&Request::OwnProgram(request)));
    some.tools.retain(|request| condition(&Request::Tool(request)));
    some
}

#[cfg(test)]
mod tests {
    use host_capability::{Effect, Place};

    use super::*;

    fn command(pattern: &str) -> host_capability::CommandRequest {
        host_capability::CommandRequest {
            pattern: pattern.to_owned(),
            effect: Effect::Read,
            privilege: host_base::Privilege::Caller,
            place: Place::Target,
            risk: host_base::Risk::ReadOnly,
            reason: String::new(),
        }
    }

    #[test]
    fn a_new_build_keeps_what_was_granted_and_gets_nothing_more() {
        let requests = |patterns: &[&str]| Requests {
            commands: patterns.iter().map(|pattern| command(pattern)).collect(),
            tools: vec!["others_look".to_owned()],
            ..Requests::default()
        };
        let (granted, asked) = (requests(&["uptime", "uname"]), requests(&["uptime", "id"]));
        let kept = of_those(&asked, |request| holds(&granted, request));
        assert_eq!(kept, requests(&["uptime"]));
        assert_eq!(of_those(&asked, |_| true), asked);
    }

    #[test]
    fn only_a_conflict_that_was_decided_is_none() {
        let shadows = |origin| Conflict::Shadows { module: "m".into(), origin, tool: "t".into() };
        for (conflict, replaces, is_decided) in [
            (shadows(Origin::Host), &["t".to_owned()][..], true),
            (shadows(Origin::Host), &[], false),
            (shadows(Origin::System), &["t".to_owned()], false),
            (Conflict::Differs { module: "m".into(), tool: "t".into() }, &["t".to_owned()], false),
        ] {
            assert_eq!(is_replaced(&conflict, replaces), is_decided, "{conflict}");
        }
    }
}
