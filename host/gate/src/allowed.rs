//! A command that the grants allow, with what of it may be shown.

use std::borrow::Cow;

use host_base::Command;
use host_base::problem::Problem;
use host_capability::{Grants, HoleType, command_line};
use host_target::Target;
use host_text::redact::redact;

/// Characters of what a command reads that are shown.
pub const STDIN: usize = 8000;

/// A command that the grants allow.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// What runs.
    pub command: Command,
    /// What of it may be shown.
    pub shown: Command,
    /// How sudo is called for it, if it is.
    pub prefix: String,
    /// Whether no grant says what all of its arguments may be.
    pub free_form: bool,
    pub(super) paths: Vec<(HoleType, String)>,
    /// Where those led when the plan was held against the target.
    pub leads: Vec<String>,
}

impl Allowed {
    /// Whether it is the very same command, with all that it reads.
    pub fn is(&self, other: &Self) -> bool {
        let (this, that) = (&self.command, &other.command);
        this.program == that.program
            && (&this.args, &this.env, &this.stdin) == (&that.args, &that.env, &that.stdin)
            && this.privilege == that.privilege
    }

    /// Whether its arguments hold what nobody may see.
    pub fn has_secrets(&self) -> bool {
        self.shown.args != self.command.args
    }

    /// Whether what is shown of its line isn't all of it.
    pub(super) fn hides_arguments(&self) -> bool {
        self.has_secrets() || matches!(redact(&self.line()), Cow::Owned(_))
    }

    /// Whether all of it is shown, with what it reads.
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

    /// The whole line, as it may be shown.
    pub fn line(&self) -> String {
        command_line(&self.prefix, &self.shown)
    }

    /// Paths of its words that lead elsewhere, and where to.
    pub fn led(&self) -> impl Iterator<Item = (&str, &str)> {
        let paths =
            self.paths.iter().map(|(_, path)| path.as_str()).zip(self.leads.iter().map(String::as_str));
        paths.filter(|(asked, leads)| asked != leads)
    }

    /// Where its paths lead; a problem where that is where no grant does.
    pub async fn leads_where_granted(
        &self,
        target: &Target,
        grants: &Grants,
    ) -> Result<Vec<String>, Problem> {
        if self.paths.is_empty() {
            return Ok(Vec::new());
        }
        let asked = self.paths.iter().map(|(_, path)| path.clone()).collect();
        let resolved = target.resolve(asked, &grants.access(&self.command.privilege)).await;
        let lead = self.paths.iter().zip(resolved).map(|((hole, path), resolved)| {
            let leads = resolved?.path;
            grants.may_lead(hole, path, &leads).map(|()| leads)
        });
        lead.collect()
    }
}
