//! Checks that the programs are there, before anybody is asked about one that isn't.

use linux_sysadmin_sdk::Pipeline;
use linux_sysadmin_sdk::prelude::*;

/// The directories in which the host finds programs.
pub(crate) const DIRECTORIES: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];
/// The number of names that are told.
const MOST: usize = 3;

/// The host's code of a program that it doesn't find.
pub(crate) const NOT_FOUND: &str = "PROGRAM_NOT_FOUND";
/// The host's code of a command that the policy forbids.
const BLOCKED: &str = "POLICY_BLOCKED";

/// Refuses a program that is in none of the directories, before anybody is asked about it, and names those that are close to
/// it. A program by its path is the host's to find.
pub(crate) fn all_there(pipelines: &[Pipeline], cx: &Context) -> Result<()> {
    let programs: Vec<(&Pipeline, &str)> = pipelines
        .iter()
        .flat_map(|pipeline| pipeline.commands.iter().map(move |command| (pipeline, named(command))))
        .filter(|(_, program)| !program.contains('/'))
        .collect();
    let paths: Vec<String> = programs
        .iter()
        .flat_map(|(_, program)| DIRECTORIES.map(|directory| format!("{directory}/{program}")))
        .collect();
    let found = cx.stat_all(&paths);
    for ((pipeline, program), found) in programs.into_iter().zip(found.chunks(DIRECTORIES.len())) {
        // What can't be looked at may be there.
        if found.iter().all(|found| matches!(found, Ok(None))) {
            // The host has not judged steps yet. A step is one command, which can't run, because it isn't there.
            return match (pipelines.len() > 1).then(|| cx.run_pipeline(pipeline.clone())) {
                Some(Err(problem)) if problem.code == BLOCKED => Err(problem),
                _ => Err(missing(program, cx)),
            };
        }
    }
    Ok(())
}

/// The program that the caller named, also where `env` starts it in a directory.
pub(crate) fn named(command: &Command) -> &str {
    match (command.program.as_str(), command.args.as_slice()) {
        ("env", [directory, program, ..]) if directory.starts_with("--chdir=") => program,
        (program, _) => program,
    }
}

fn missing(program: &str, cx: &Context) -> Problem {
    let listed = cx.list_all(&DIRECTORIES).into_iter().flatten().flatten();
    let mut near: Vec<(usize, String)> = listed
        .map(|name| (strsim::damerau_levenshtein(program, &name), name))
        .filter(|(distance, name)| *distance <= 2 && *distance < program.len().min(name.len()))
        .collect();
    near.sort();
    near.dedup();
    let names: Vec<String> = near.into_iter().take(MOST).map(|(_, name)| name).collect();
    let problem =
        Problem::not_found(NOT_FOUND, format!("there is no program {program} in {}", DIRECTORIES.join(", ")));
    match names.is_empty() {
        true => problem.remedy("pkg_search finds the package that has it"),
        false => problem.remedy(format!("Programs with a similar name: {}", names.join(", "))),
    }
}
