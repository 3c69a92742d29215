//! The confirmation of a plan. After a yes, exactly the plan that was shown runs, or nothing does.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::allowed::AllowedCommand;
use super::confirmation_method::ConfirmationMethod;
use super::expected_target::{ExpectedTarget, STALE};
use super::given_files::GivenFiles;
use super::heap::on_heap;
use super::prepare::{PlanContext, PreparedPlan};
use super::question::Question;
use super::replan::differences;
use super::{Gate, PlanRequest, PlannedChange, identity, shown, simulate};
use host_audit::DecidedBy;
use host_base::problem::{Category, Problem};
use host_text::redact::excerpt;

/// The error code of a call that waits for a confirmation.
pub const CONFIRMATION_REQUIRED: &str = "CONFIRMATION_REQUIRED";
/// The time after which a question can't be answered any more.
pub const EXPIRES: Duration = Duration::from_secs(15 * 60);
/// The number of characters of a path in a problem.
const PATH: usize = 300;
/// The number of characters of a program's own simulation that are shown.
const SIMULATED: usize = 8000;

/// Puts questions to a person or a client.
pub trait Confirmer: Send + Sync {
    /// Whether every plan waits for an answer, and not only a plan that needs a person's confirmation.
    fn holds_plans(&self) -> bool {
        false
    }

    /// Asks and returns the answer, or a problem where there is none. The gate holds no lock on the target meanwhile.
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Answer, Problem>>;
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The plan may run.
    Yes(DecidedBy),
    /// The plan may not run.
    No(DecidedBy),
}

impl Gate {
    /// Asks for a confirmation and prepares the plan once more after it. An answer may take long, and the target may
    /// change meanwhile. The new plan runs only where it is the same as the one that was shown.
    pub(super) async fn confirmed(
        &self,
        request: &PlanRequest,
        context: &PlanContext<'_>,
        id: &str,
        plan: PreparedPlan,
        needs_person: bool,
    ) -> Result<(PreparedPlan, String, DecidedBy), Problem> {
        let (risk_shown, reasons_shown) = (plan.risk, plan.reasons.clone());
        let simulation = simulated(request, &plan).await?;
        let identity_shown = identity(request, &plan, simulation.as_deref())?;
        let preview = with_simulation(&plan, simulation.as_deref());
        let given = on_heap(|| GivenFiles::of(&plan, &request.target, context.grants)).await;
        let question =
            Question::new((id, identity_shown.clone()), request, &plan, preview.clone(), needs_person);
        request.target_lock.release();
        let decided_by = match request.confirmer.ask(question).await? {
            Answer::Yes(decided_by) => decided_by,
            Answer::No(_) => return Err(declined()),
        };
        if !request.dry_run {
            request.target_lock.hold(self.lock_target(&request.target).await?);
        }
        ExpectedTarget::of(request).check(&request.target).await.map_err(|problem| {
            match problem.code.as_str() {
                STALE => stale(problem.message),
                _ => problem,
            }
        })?;
        if request.target.machine_id().await != request.facts.machine_id {
            return Err(stale(format!(
                "{} is another machine than the one that was asked about",
                request.target.name()
            )));
        }
        let no_more = |problem: Problem| {
            stale(format!("it couldn't be done any more as it was shown: {}", problem.message))
        };
        let now = match request.dry_run {
            true => PlannedChange {
                change: plan.change,
                file_hashes: request.file_hashes.clone(),
                observed: request.observed.clone(),
            },
            false => request.replan.plan().await.map_err(no_more)?,
        };
        let context = PlanContext { file_hashes: &now.file_hashes, observed: &now.observed, ..*context };
        let again = Box::pin(context.prepare(id, now.change)).await.map_err(no_more)?;
        let simulation = simulated(request, &again).await?;
        if identity(request, &again, simulation.as_deref())? != identity_shown {
            let now = with_simulation(&again, simulation.as_deref());
            return Err(stale("its plan has changed since it was shown".to_owned())
                .detail("differs", differences(&preview, &now)));
        }
        // Accounts, owners and other files decide as well what the plan leads to.
        if again.risk > risk_shown || again.reasons.iter().any(|reason| !reasons_shown.contains(reason)) {
            let now = with_simulation(&again, simulation.as_deref());
            return Err(stale("what it leads to has changed since it was shown".to_owned())
                .detail("differs", differences(&preview, &now)));
        }
        let given_now = on_heap(|| GivenFiles::of(&again, &request.target, context.grants)).await;
        if let Some(path) = given_now.changed_since(&given) {
            return Err(stale(format!("what is in {} has changed since it was shown", excerpt(path, PATH))));
        }
        Ok((again, identity_shown, decided_by))
    }
}

/// The output of the program's own simulation. It is none for a dry run, which asks for nothing but the simulation.
async fn simulated(request: &PlanRequest, plan: &PreparedPlan) -> Result<Option<String>, Problem> {
    if request.dry_run || plan.dry_run.is_none() {
        return Ok(None);
    }
    let outputs = simulate(request, plan).await?;
    let said = outputs.iter().map(|output| {
        let (stdout, stderr) = (steady(&output.stdout), steady(&output.stderr));
        format!("{stdout}{stderr}(exit code {})\n", output.exit_code)
    });
    Ok(Some(said.collect()))
}

/// Beginnings of lines about the time that has passed, which differ from run to run. dnf 4 can't be told to leave its
/// line out.
const PASSING: &[&str] = &["Last metadata expiration check: "];

/// The output without the lines that differ between two runs that would do the same.
fn steady(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let lines = said.split_inclusive('\n');
    lines.filter(|line| !PASSING.iter().any(|passing| line.starts_with(passing))).collect()
}

/// The plan as it is shown, with the output of the program's own simulation.
fn with_simulation(plan: &PreparedPlan, simulation: Option<&str>) -> Value {
    let mut preview = shown(plan);
    if let Some(simulation) = simulation {
        let line = plan.dry_run.as_ref().map(AllowedCommand::line).unwrap_or_default();
        preview["dry_run_command"] = excerpt(&line, SIMULATED).into();
        preview["dry_run_output"] = excerpt(simulation, SIMULATED).into();
    }
    preview
}

/// The problem where the answer is no.
pub fn declined() -> Problem {
    Problem::new("CONFIRMATION_DECLINED", Category::Denied, "the answer was no: nothing was changed")
        .remedy("Ask what is wanted instead; don't try the same again")
}

/// The problem where nobody answered in time.
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

/// The answer to a call that needs a confirmation. It says how the confirmation is given.
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

/// The answer to a call that says it is confirmed, although its plan was never shown. If such a call waited, a client
/// that repeats it would confirm it without a look.
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

/// The problem where nobody can be asked.
pub fn unavailable(why: impl std::fmt::Display) -> Problem {
    let message = format!("this has to be confirmed, and nobody can be asked: {why}; nothing was changed");
    Problem::new("CONFIRMATION_UNAVAILABLE", Category::Denied, message)
        .remedy("Set dry_run to see what would happen")
        .remedy("A person can set safety.confirmation in the configuration, or run what the preview shows on the target")
}

/// A confirmer that can ask nobody.
#[cfg(any(test, feature = "test-support"))]
pub struct NoConfirmer;

#[cfg(any(test, feature = "test-support"))]
impl Confirmer for NoConfirmer {
    fn ask(&self, _question: Question) -> BoxFuture<'_, Result<Answer, Problem>> {
        Box::pin(async { Err(unavailable("there is nobody")) })
    }
}
