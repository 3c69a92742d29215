//! `linux-sysadmin knowledge`: says which services this machine has, and lists, shows and checks their profiles.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};

use super::pager;
use super::screen::{HEADING, Screen, severity_style};
use super::stdout::stdout;
use super::table::{Cell, Column, Table};
use crate::config::{Config, LoadedConfig};
use host_knowledge::{Knowledge, LazyKnowledge, TargetServices};
use host_policy::Policy;
use host_target::{ServiceFiles, Services, Target};
use host_text::visible::{one_line, visible};

/// The width below which no name is cut.
const LEAST_NAME: usize = 12;

#[derive(Args)]
pub(super) struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the services of this machine that have a profile, the other profiles, and what is wrong with those that don't hold
    List,
    /// Show a profile, by its id or the name of a unit, a page at a time
    Show {
        /// The service's name, such as nginx or nginx.service
        name: String,
    },
    /// Say whether profiles would hold in the place of those that have their ids
    Check {
        /// Files, as they would be in ~/.config/linux-sysadmin/knowledge
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

impl Command {
    pub(super) async fn run(self, loaded: &LoadedConfig) -> anyhow::Result<ExitCode> {
        let policy = Policy::load(&loaded.config.policy)?;
        let lazy = LazyKnowledge::new(&loaded.config.knowledge, &loaded.path, policy);
        let is_right = match self.action {
            Action::List => {
                let seen = look(&lazy, &loaded.config).await;
                let services = match &seen {
                    Ok((family, seen)) => Ok(TargetServices::new(lazy.get(), family, seen)),
                    Err(why) => Err(why.as_str()),
                };
                stdout().write_all(list(lazy.get(), services, Screen::of_stdout()).as_bytes())?;
                lazy.get().warnings().is_empty()
            }
            Action::Show { name } => {
                let Some(known) = lazy.get().find_anywhere(&name) else {
                    anyhow::bail!(
                        "there is no profile {}: `knowledge list` has those that hold",
                        visible(&name)
                    )
                };
                pager::write(&visible(&known.yaml()))?;
                true
            }
            Action::Check { files } => {
                let (text, is_right) = check(&lazy, files);
                stdout().write_all(text.as_bytes())?;
                is_right
            }
        };
        Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The family of this machine's distribution, and its services, or in words why they are not known.
async fn look(lazy: &LazyKnowledge, config: &Config) -> Result<(String, Arc<Services>), String> {
    if !config.ssh.local {
        return Err("the configuration allows no look at it (ssh.local)".to_owned());
    }
    let marks = lazy.clone();
    let files = ServiceFiles::new(move || marks.get().configuration_marks());
    let target = Target::local(config.distro.clone()).with_service_files(files);
    let facts = target.facts().await.map_err(|problem| problem.message)?;
    let seen = target.services(false).await.map_err(|problem| problem.message)?;
    Ok((facts.family.clone(), seen))
}

/// The profiles of what is on this machine with its state, the others, and the warnings.
fn list(knowledge: &Knowledge, services: Result<TargetServices, &str>, screen: Screen) -> String {
    let mut text = String::new();
    let mut present = Vec::new();
    match services {
        Ok(services) => {
            let mut table = Table::new([
                Column::whole("ON THIS MACHINE"),
                Column::whole("STATE"),
                Column::cut("SERVICE", LEAST_NAME),
                Column::cut("FILE", LEAST_NAME),
            ]);
            for (known, status) in services.detected() {
                present.push(known.profile.id.as_str());
                let file = known.path.as_ref().map(|path| one_line(&path.display().to_string()));
                table.row([
                    Cell::from(known.profile.id.clone()),
                    Cell::styled(status.name(), severity_style(status.name())),
                    Cell::from(one_line(&known.profile.name)),
                    Cell::from(file.unwrap_or_default()),
                ]);
            }
            match present.is_empty() {
                true => text.push_str("no service of this machine has a profile\n"),
                false => text.push_str(&table.text(screen, 0)),
            }
        }
        Err(why) => {
            let why = format!("what is on this machine is not known: {}", one_line(why));
            text.push_str(&format!("{}\n", screen.wrap(&why, "", "  ")));
        }
    }
    let others = knowledge.all().iter().map(|known| known.profile.id.as_str());
    let others: Vec<&str> = others.filter(|id| !present.contains(id)).collect();
    if !others.is_empty() {
        let others = screen.wrap(&others.join(", "), "  ", "  ");
        text.push_str(&format!("\n{}\n{others}\n", screen.paint(HEADING, "OTHER PROFILES")));
    }
    for warning in knowledge.warnings() {
        text.push_str(&format!("\n{}\n", screen.wrap(&one_line(warning), "warning: ", "  ")));
    }
    text
}

fn check(lazy: &LazyKnowledge, files: Vec<PathBuf>) -> (String, bool) {
    let (mut text, mut is_right) = (String::new(), true);
    for (path, checked) in lazy.check(files) {
        is_right &= checked.is_ok();
        let said = checked.map_or_else(|warning| warning, |()| format!("{}: it holds", path.display()));
        text.push_str(&format!("{}\n", visible(&said)));
    }
    (text, is_right)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use host_target::UnitState;

    use super::*;

    fn lazy() -> LazyKnowledge {
        LazyKnowledge::new(&Default::default(), Path::new("/nonexistent/config.yaml"), None)
    }

    #[test]
    fn the_services_of_this_machine_come_first_with_their_state() {
        let (lazy, screen) = (lazy(), Screen::plain(80));
        let units = [("nginx.service", "active", "running"), ("unbound.service", "failed", "failed")];
        let units = units.map(|(unit, active, sub)| (unit.to_owned(), UnitState::new("loaded", active, sub)));
        let seen = Services::of_a_test(units);
        let shown = list(lazy.get(), Ok(TargetServices::new(lazy.get(), "debian", &seen)), screen);
        let (here, others) = shown.split_once("\n\nOTHER PROFILES\n").unwrap();
        let rows: Vec<Vec<&str>> =
            here.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
        assert_eq!(rows[1..], [["nginx", "active"], ["unbound", "failed"]], "{here}");
        assert!(here.starts_with("ON THIS MACHINE  STATE   SERVICE"), "{here}");
        let is_other = |id: &str| others.split([',', ' ', '\n']).any(|word| word == id);
        assert!(is_other("caddy") && !is_other("nginx") && !is_other("unbound"), "{others}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");

        let none = TargetServices::new(lazy.get(), "debian", &Services::default());
        let shown = list(lazy.get(), Ok(none), screen);
        assert!(shown.starts_with("no service of this machine has a profile\n"), "{shown}");
        let shown = list(lazy.get(), Err("no\u{1b}"), screen);
        assert!(shown.starts_with("what is on this machine is not known: no\\u{1b}\n"), "{shown}");
    }
}
