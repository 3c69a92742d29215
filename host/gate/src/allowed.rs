//! A command that the grants allow, and the form in which it may be shown.

use std::borrow::Cow;

use host_base::Command;
use host_base::problem::Problem;
use host_capability::{Grants, HoleType, command_line};
use host_target::{Found, Target};
use host_text::redact::redact;

use super::mounts::Mounts;

/// The number of characters of a command's input that are shown.
pub const STDIN: usize = 8000;

/// A command that the grants allow.
#[derive(Clone, Debug)]
pub struct AllowedCommand {
    /// The command as it runs.
    pub command: Command,
    /// The command without its secrets, as it may be shown.
    pub shown: Command,
    /// The words that call sudo for the command. They are empty where it runs without sudo.
    pub prefix: String,
    /// True where no grant restricts all of the command's arguments.
    pub free_form: bool,
    /// True where no grant names the command, and the module may run any program.
    pub is_any_program: bool,
    /// Further commands, each of which reads what the one before it prints.
    pub piped: Vec<AllowedCommand>,
    pub(super) paths: Vec<(HoleType, String)>,
    /// The paths that the command's paths led to when the plan was prepared, in the same order.
    pub leads: Vec<String>,
    /// The metadata that were found at those paths then, in the same order.
    pub found: Vec<Option<Found>>,
}

impl AllowedCommand {
    /// Whether both are the same command with the same input.
    pub fn is(&self, other: &Self) -> bool {
        let (this, that) = (&self.command, &other.command);
        this.program == that.program
            && (&this.args, &this.env, &this.stdin) == (&that.args, &that.env, &that.stdin)
            && this.privilege == that.privilege
            && self.piped.is_empty()
            && other.piped.is_empty()
    }

    /// Whether the arguments hold a secret.
    pub fn has_secrets(&self) -> bool {
        self.shown.args != self.command.args
    }

    /// Whether some of the arguments are not shown.
    pub(super) fn hides_arguments(&self) -> bool {
        self.all().any(Self::has_secrets) || matches!(redact(&self.line()), Cow::Owned(_))
    }

    /// Whether the whole command is shown, with all of its input.
    pub fn is_shown_whole(&self) -> bool {
        let stdin = self.command.stdin.as_deref().map(std::str::from_utf8);
        !self.hides_arguments()
            && match stdin {
                None => true,
                Some(Err(_)) => false,
                Some(Ok(text)) => {
                    text.chars().nth(STDIN).is_none() && matches!(redact(text), Cow::Borrowed(_))
                }
            }
    }

    /// The whole command line, as it may be shown.
    pub fn line(&self) -> String {
        let lines: Vec<String> =
            self.all().map(|command| command_line(&command.prefix, &command.shown)).collect();
        lines.join(" | ")
    }

    /// The command, and those that it is connected with.
    pub fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.piped)
    }

    /// The paths among the arguments that lead elsewhere, each with the path that it leads to.
    pub fn led(&self) -> impl Iterator<Item = (&str, &str)> {
        let paths =
            self.paths.iter().map(|(_, path)| path.as_str()).zip(self.leads.iter().map(String::as_str));
        paths.filter(|(asked, leads)| asked != leads)
    }

    /// The path that a path of the command led to when the plan was prepared, and what was there.
    pub fn found_at(&self, path: &str) -> Option<(&str, Option<&Found>)> {
        let at = self.paths.iter().position(|(_, asked)| asked == path)?;
        Some((self.leads.get(at)?, self.found.get(at)?.as_ref()))
    }

    /// Resolves the command's paths, and keeps the result.
    pub async fn follow_paths(&mut self, target: &Target, grants: &Grants) -> Result<(), Problem> {
        (self.leads, self.found) = self.resolved(target, grants, true).await?.into_iter().unzip();
        for piped in &mut self.piped {
            (piped.leads, piped.found) = piped.resolved(target, grants, true).await?.into_iter().unzip();
        }
        Ok(())
    }

    /// Resolves the command's paths. The result is a problem where one leads to a place that no grant covers.
    pub async fn leads_where_granted(
        &self,
        target: &Target,
        grants: &Grants,
    ) -> Result<Vec<String>, Problem> {
        let mut leads = Vec::new();
        for command in self.all() {
            leads.extend(command.resolved(target, grants, false).await?.into_iter().map(|(leads, _)| leads));
        }
        Ok(leads)
    }

    async fn resolved(
        &self,
        target: &Target,
        grants: &Grants,
        with_identity: bool,
    ) -> Result<Vec<(String, Option<Found>)>, Problem> {
        if self.paths.is_empty() {
            return Ok(Vec::new());
        }
        let asked = self.paths.iter().map(|(_, path)| path.clone()).collect();
        let access = grants.access(&self.command.privilege);
        let resolved = match with_identity {
            true => target.resolve_with_identity(asked, &access).await,
            false => target.resolve(asked, &access).await,
        };
        let mounts = Mounts::read(target).await?;
        let lead = self.paths.iter().zip(resolved).map(|((hole, path), resolved)| {
            let resolved = resolved?;
            grants.may_lead(hole, path, &resolved.path)?;
            let names = mounts.other_names(&resolved.path);
            names.into_iter().try_for_each(|name| grants.may_be(path, &name))?;
            let found = resolved.found();
            Ok((resolved.path, found))
        });
        lead.collect()
    }
}
