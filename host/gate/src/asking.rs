//! Before a plan that needs it, somebody is asked; and when the answer is yes, that very plan runs or none.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::again::differences;
use super::allowed::Allowed;
use super::meant::{Meant, STALE};
use super::method::ConfirmationMethod;
use super::prepare::{Against, Plan};
use super::question::Question;
use super::{Asking, Gate, Planned, identity, shown, simulate};
use host_audit::DecidedBy;
use host_base::problem::{Category, Problem};
use host_text::redact::excerpt;

/// The error code of a call that waits for somebody's yes.
pub const CONFIRMATION_REQUIRED: &str = "CONFIRMATION_REQUIRED";
/// How long a question waits for its answer.
pub const EXPIRES: Duration = Duration::from_secs(15 * 60);
/// Characters of a program's own simulation that are shown.
const SIMULATED: usize = 8000;

/// Whoever can put a question to somebody.
pub trait Ask: Send + Sync {
    /// Whether every plan waits for an answer, and not only one that a person has to confirm.
    fn holds_plans(&self) -> bool {
        false
    }

    /// The answer, or why there is none. Whoever waits for it holds nothing meanwhile.
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Answer, Problem>>;
}

/// To a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It may.
    Yes(DecidedBy),
    /// It may not.
    No(DecidedBy),
}

impl Gate {
    /// The same plan, confirmed. A person may take long, and others may change the target meanwhile: so the plan is made and
    /// held against everything once more, and is no other than the one that was shown, or nothing runs.
    pub(super) async fn confirmed(
        &self,
        asking: &Asking,
        against: &Against<'_>,
        id: &str,
        plan: Plan,
        needs_person: bool,
    ) -> Result<(Plan, String, DecidedBy), Problem> {
        let simulation = simulated(asking, &plan).await?;
        let identity_shown = identity(asking, &plan, simulation.as_deref())?;
        let preview = with_simulation(&plan, simulation.as_deref());
        let question =
            Question::new((id, identity_shown.clone()), asking, &plan, preview.clone(), needs_person);
        asking.turn.give_up();
        let decided_by = match asking.ask.ask(question).await? {
            Answer::Yes(decided_by) => decided_by,
            Answer::No(_) => return Err(declined()),
        };
        if !asking.dry_run {
            asking.turn.hold(self.turn(&asking.target).await?);
        }
        Meant::of(asking).answers(&asking.target).await.map_err(|problem| match problem.code.as_str() {
            STALE => stale(problem.message),
            _ => problem,
        })?;
        if asking.target.machine_id().await != asking.facts.machine_id {
            return Err(stale(format!(
                "{} is another machine than the one that was asked about",
                asking.target.name()
            )));
        }
        let no_more = |problem: Problem| {
            stale(format!("it couldn't be done any more as it was shown: {}", problem.message))
        };
        let now = match asking.dry_run {
            true => Planned { change: plan.change, seen: asking.seen.clone(), looked: asking.looked.clone() },
            false => asking.again.plan().await.map_err(no_more)?,
        };
        let against = Against { seen: &now.seen, looked: &now.looked, ..*against };
        let again = against.prepare(id, now.change).await.map_err(no_more)?;
        let simulation = simulated(asking, &again).await?;
        if identity(asking, &again, simulation.as_deref())? != identity_shown {
            let now = with_simulation(&again, simulation.as_deref());
            return Err(stale("what it is about has changed since it was shown".to_owned())
                .detail("differs", differences(&preview, &now)));
        }
        Ok((again, identity_shown, decided_by))
    }
}

/// What the program itself says that it would do: of a change, not where only that is asked for.
async fn simulated(asking: &Asking, plan: &Plan) -> Result<Option<String>, Problem> {
    if asking.dry_run || plan.dry_run.is_none() {
        return Ok(None);
    }
    let outputs = simulate(asking, plan).await?;
    let said = outputs.iter().map(|output| {
        let (stdout, stderr) = (steady(&output.stdout), steady(&output.stderr));
        format!("{stdout}{stderr}(exit code {})\n", output.exit_code)
    });
    Ok(Some(said.collect()))
}

/// What a program says of the time that passes, and not of what it would do: another text each time. dnf 4 has no way to
/// leave it out.
const PASSING: &[&str] = &["Last metadata expiration check: "];

/// Without what differs from one time to the next though nothing else does.
fn steady(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let lines = said.split_inclusive('\n');
    lines.filter(|line| !PASSING.iter().any(|passing| line.starts_with(passing))).collect()
}

/// The plan as it is shown, with what the program itself says of it.
fn with_simulation(plan: &Plan, simulation: Option<&str>) -> Value {
    let mut preview = shown(plan);
    if let Some(simulation) = simulation {
        let line = plan.dry_run.as_ref().map(Allowed::line).unwrap_or_default();
        preview["dry_run_command"] = excerpt(&line, SIMULATED).into();
        preview["dry_run_output"] = excerpt(simulation, SIMULATED).into();
    }
    preview
}

/// The answer was no.
pub fn declined() -> Problem {
    Problem::new("CONFIRMATION_DECLINED", Category::Denied, "the answer was no: nothing was changed")
        .remedy("Ask what is wanted instead; don't try the same again")
}

/// Nobody answered in time.
pub fn expired() -> Problem {
    let minutes = EXPIRES.as_secs() / 60;
    let message = format!("nobody answered within {minutes} minutes: nothing was changed");
    Problem::new("CONFIRMATION_EXPIRED", Category::Other, message)
        .remedy("Call again, and the question is asked anew")
}

fn stale(why: String) -> Problem {
    Problem::new(STALE, Category::State, format!("it was confirmed, but {why}: nothing was changed"))
        .remedy("Call again: the plan is made anew, and the question asked anew")
}

/// Somebody has to say yes, and this is how.
pub fn confirmation_required(question: &Question, way: ConfirmationMethod) -> Problem {
    let risk = json!(question.risk);
    let what = if question.dry_run { "A dry run of this change" } else { "This change" };
    let message = format!(
        "{what} is of {} risk and waits for a person's yes: nothing was changed",
        risk.as_str().unwrap_or_default()
    );
    let problem = Problem::new(CONFIRMATION_REQUIRED, Category::Denied, message);
    let problem = match way {
        ConfirmationMethod::Terminal => {
            let id = &question.id;
            problem
                .remedy(format!("Have a person run `linux-sysadmin approve {id}` at a terminal: it shows the plan and asks"))
                .remedy("Then make the very same call again: it answers what became of it")
        }
        _ => problem
            .remedy("Show the preview to the person you work for, and ask whether it may be done")
            .remedy("Only where they say yes: make the very same call again, with confirmed: true"),
    };
    problem
        .detail("risk_level", risk)
        .detail("dry_run_available", json!(true))
        .detail("preview", question.preview.clone())
        .detail(
            "confirmation",
            json!({"id": question.id, "way": way.name(), "expires_in_seconds": EXPIRES.as_secs()}),
        )
}

/// The same of a call that was said to be confirmed before anybody was shown what it does. Were it to wait, a call that is
/// merely repeated would confirm itself.
pub fn not_shown(question: &Question) -> Problem {
    let mut problem = confirmation_required(question, ConfirmationMethod::TwoStep);
    problem.message = "it was said to be confirmed before it was shown: nothing was changed".to_owned();
    problem.details.remove("confirmation");
    problem.remediation = vec![
        "What can be confirmed is a call that has been shown, once: make it without confirmed first"
            .to_owned(),
        "Then show the preview to the person you work for, and confirm only where they say yes".to_owned(),
    ];
    problem
}

/// There is nobody who could be asked.
pub fn unavailable(why: impl std::fmt::Display) -> Problem {
    let message = format!("this has to be confirmed, and nobody can be asked: {why}; nothing was changed");
    Problem::new("CONFIRMATION_UNAVAILABLE", Category::Denied, message)
        .remedy("Set dry_run to see what would happen")
        .remedy("A person can set safety.confirmation in the configuration, or run what the preview shows on the target")
}

/// A host without anybody to ask.
#[cfg(any(test, feature = "test-support"))]
pub struct Nobody;

#[cfg(any(test, feature = "test-support"))]
impl Ask for Nobody {
    fn ask(&self, _question: Question) -> BoxFuture<'_, Result<Answer, Problem>> {
        Box::pin(async { Err(unavailable("there is nobody")) })
    }
}
