//! Probes: each of them asks another machine one thing, by a program that the target has.

pub(crate) mod dns;
pub(crate) mod ping;
pub(crate) mod tcp;
pub(crate) mod tls;
pub(crate) mod trace;

use linux_sysadmin_sdk::{Category, Problem};

/// The code of the host's problem where the target hasn't got a program.
pub(crate) const PROGRAM_NOT_FOUND: &str = "PROGRAM_NOT_FOUND";

/// The code of the problem where the target has no program for a probe.
pub(crate) const NO_PROGRAM: &str = "NO_PROGRAM";

/// The problem where none of the programs of a probe could be run. Each is given with the reason.
pub(crate) fn no_program(what: &str, tried: &[(&str, Problem)], packages: &str) -> Problem {
    let names: Vec<_> = tried.iter().map(|(program, _)| *program).collect();
    let message = match tried {
        [(_, only)] => format!("{what} needs {}: {}", names.join(" or "), only.message),
        _ => format!("{what} needs one of {}, and none of them can be run", names.join(", ")),
    };
    // Where a program is there and failed, its own problem says more.
    let failed = tried.iter().find(|(_, problem)| problem.code != PROGRAM_NOT_FOUND);
    match failed {
        Some((_, problem)) => problem.clone(),
        None => Problem::new(NO_PROGRAM, Category::NotFound, message).remedy(format!("Install {packages}")),
    }
}
