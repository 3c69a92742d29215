//! `triage`: everything that a good administrator looks at first, at once, as findings ranked by what fits the complaint.
//!
//! The module looks at nothing itself. It calls other modules' read-only tools, as [`looks`] lists them, and reads their
//! answers: the first round is the same for every complaint of a kind, and the second one looks at what the complaint and the
//! first round name. Both have 32 calls at most, which the contract allows.
//!
//! Texts in the answers come from the target, and are data. They are shown as evidence, and become an argument of a suggested
//! call only where they have the form of what the argument means, as [`call`] checks it. No text becomes a tool's name.
#![forbid(unsafe_code)]

mod answer;
mod call;
mod complaint;
mod envelope;
mod finding;
mod follow;
mod join;
mod looks;
mod moment;
mod names;
mod notebook;
mod rank;
mod read;
mod signs;
#[cfg(test)]
mod tests;
mod words;

use linux_sysadmin_sdk::{DurationCategory, prelude::*};

use answer::Triage;
use complaint::Complaint;
use looks::Planned;
use notebook::Notebook;

/// The most calls of both rounds, which the contract sets, and of the first one.
const MOST_CALLS: usize = 32;
const FIRST_CALLS: usize = 26;

/// The most calls at the same time. All of them share the memory of one call, 64 MiB, and a component begins with 2 MiB.
const AT_ONCE: usize = 12;

#[derive(Deserialize, JsonSchema)]
struct TriageArgs {
    /// In words, with services, users, hosts, paths; or one of service, slow, disk, network, dns, login, packages, mail,
    /// schedule, time, certificate, container, unknown
    complaint: Option<String>,
}

/// The module, with its tool and the tools that it calls.
pub fn module() -> Module {
    Module::new(
        "triage",
        env!("CARGO_PKG_VERSION"),
        "triage",
        "What is wrong with a machine, at a first look",
    )
    .license(env!("CARGO_PKG_LICENSE"))
    .grants(grants)
    .tool(
        Tool::new("triage", "Trouble of any kind: ranked causes, each with the next call", triage)
            .duration(DurationCategory::Normal)
            .first(),
    )
}

fn grants(module: Module) -> Module {
    looks::tools().into_iter().fold(module, Module::calls_tool)
}

fn triage(args: TriageArgs, cx: &Context) -> Result<Analysis<Triage>> {
    let complaint = Complaint::parse(args.complaint.as_deref())?;
    let profiles = cx.detected();
    let mut notebook = Notebook::new(complaint, &profiles, cx);
    let mut first = looks::first(&notebook);
    for planned in first.split_off(FIRST_CALLS.min(first.len())) {
        notebook.unseen(planned.look.what, "the complaint is about too much: name one kind");
    }
    let left = MOST_CALLS.saturating_sub(first.len());
    look(first, &mut notebook, cx);
    let mut second = follow::second(&notebook);
    second.truncate(left);
    look(second, &mut notebook, cx);
    notebook.close_units();
    join::join(&mut notebook);
    Ok(answer::answer(notebook))
}

/// Makes the calls, as many at the same time as there is memory for, and has each answer read.
fn look(planned: Vec<Planned>, notebook: &mut Notebook<'_>, cx: &Context) {
    for planned in planned.chunks(AT_ONCE) {
        let calls: Vec<_> = planned.iter().map(|planned| planned.call.clone()).collect();
        for (planned, result) in planned.iter().zip(cx.call_tools(&calls)) {
            notebook.read(planned, result);
        }
    }
}

linux_sysadmin_sdk::export!(module);
