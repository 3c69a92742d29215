//! Steps that move, that set attributes and that remove directories.

use linux_sysadmin_sdk::{Privilege, prelude::*};

/// The changes that the contract has no step for yet, as commands.
const MOVE: &str = "mv --no-clobber --no-target-directory --";
const REMOVE_DIRECTORY: &str = "rmdir --";
const MODE: &str = "chmod --";
const MAKE_DIRECTORY: &str = "mkdir --";

pub(crate) fn grants() -> Vec<CommandGrant> {
    let hole = crate::places::hole();
    let lines = [
        format!("{MOVE} {hole} {hole}"),
        format!("{REMOVE_DIRECTORY} {hole}"),
        format!("{MAKE_DIRECTORY} {hole}"),
        format!("{MODE} <mode> {hole}"),
    ];
    let why = "to move files, to remove empty directories and to set modes";
    let grant = |line: &String| CommandGrant::change(line, Risk::Moderate, why);
    lines.iter().flat_map(|line| [grant(line), grant(line).as_user("*")]).collect()
}

fn command(line: &str, values: &[&str], privilege: &Privilege) -> Command {
    let mut words = line.split(' ');
    let program = words.next().unwrap_or_default();
    Command::new(program).args(words).args(values.iter().copied()).privilege(privilege.clone())
}

/// Moves a file or a directory within one file system. Nothing may be at `to`.
pub(crate) fn move_to(from: &str, to: &str, privilege: &Privilege) -> Step {
    Step::run(command(MOVE, &[from, to], privilege)).undo(command(MOVE, &[to, from], privilege))
}

/// Removes an empty directory.
pub(crate) fn remove_directory(path: &str, privilege: &Privilege) -> Step {
    Step::run(command(REMOVE_DIRECTORY, &[path], privilege)).undo(command(MAKE_DIRECTORY, &[path], privilege))
}

/// Sets the mode of a file or a directory.
pub(crate) fn set_mode(path: &str, former: u32, mode: u32, privilege: &Privilege) -> Step {
    let chmod = |mode: u32| command(MODE, &[&format!("{mode:04o}"), path], privilege);
    Step::run(chmod(mode)).undo(chmod(former))
}
