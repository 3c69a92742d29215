//! Builds the book of `docs/` with mdBook. Before, it writes the pages that are made from other files, and checks what mdBook
//! doesn't: links, files that pages name, and pages that the summary doesn't list.

mod check;
mod contract;
mod generated;
mod holes;
mod markdown;
mod wrap;

use crate::{cmd, workspace};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version that is installed where there is no mdBook.
const VERSION: &str = "0.5.4";

/// Writes the pages that are made from other files, checks all pages and builds the book.
pub(crate) fn docs() -> Result<()> {
    generated::write(workspace::root())?;
    let wrong = check::wrong(workspace::root())?;
    if !wrong.is_empty() {
        bail!("the documentation is wrong:\n{}", wrong.join("\n"));
    }
    let target = workspace::target_dir()?;
    let book = target.join("book");
    let mut build = Command::new(mdbook(&target)?);
    build.arg("build").arg(workspace::root().join(check::BOOK)).arg("--dest-dir").arg(&book);
    cmd::run(&mut build)?;
    println!("{}", book.join("index.html").display());
    Ok(())
}

/// The mdBook of this machine, or else the one below the target directory, which is installed where it is missing.
fn mdbook(target: &Path) -> Result<PathBuf> {
    if let Some(program) = cmd::find_program("mdbook") {
        return Ok(program);
    }
    let root = target.join("tools");
    let program = root.join("bin/mdbook");
    let says_version = cmd::output(Command::new(&program).arg("--version"));
    if !says_version.is_ok_and(|said| said.trim().ends_with(VERSION)) {
        eprintln!("xtask: installing mdbook {VERSION} into {}", root.display());
        // Its web server is left out: nothing here needs it, and it takes as long to compile as the rest.
        let features = ["--no-default-features", "--features", "search"];
        let mut install = workspace::cargo();
        install.args(["install", "--locked", "mdbook", "--version", VERSION]).args(features);
        cmd::run(install.arg("--root").arg(&root))?;
    }
    Ok(program)
}
