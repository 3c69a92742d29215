//! The order of the program's functions. Of its tens of thousands, some thousands run in a session, and the compiler puts them
//! all over the program: the kernel maps pages around each page that is touched, so that most of the program would be in the
//! memory of every server. `cargo xtask order` records which functions run, and the linker puts these together.
//!
//! The record is a list beside this file. What it doesn't know, or what is no longer there, only lies where it lay without it.

mod linker;
mod list;
mod trace;

pub(crate) use linker::{called_by_rustc, in_order};
pub(crate) use trace::trace;

use crate::build::{self, Profile};
use crate::{bench, files};
use anyhow::{Context, Result};
use list::{Functions, List};
use std::path::Path;

/// The flag with which a symbol says of which types a function is, so that the list doesn't take all for one.
pub(crate) const SYMBOLS: &str = "-Csymbol-mangling-version=v0";

/// The part of the list that a program should have, of a hundred.
const KNOWN: usize = 80;

/// Records which functions run in everyday calls.
pub(crate) fn record() -> Result<()> {
    let built = build::build(Profile::Release)?;
    let list = List::of(bench::functions_that_run(&built)?.iter().map(String::as_str));
    files::write(&list::path(), list.text(), 0o644)?;
    println!("{} functions run: {}", list.len(), list::path().display());
    Ok(())
}

/// Tells where the functions that run lie in a program.
pub(crate) fn tell(program: &Path) -> Result<()> {
    let bytes = std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let list = List::read()?;
    let functions = Functions::read(&bytes).with_context(|| program.display().to_string())?;
    let placed = functions.placed(&list);
    eprintln!("xtask: of {} functions that run, {placed}", list.len());
    if placed.known * 100 < list.len() * KNOWN {
        eprintln!(
            "xtask: the program has changed since they were recorded; `cargo xtask order` records them anew"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{cmd, workspace};
    use std::path::{Path, PathBuf};

    /// Compiles a small program in this folder, with further arguments. Of its functions `second` never runs, and without
    /// arguments none does.
    pub(super) fn compiled(folder: &Path, arguments: &[&str]) -> PathBuf {
        let (source, program) = (folder.join("program.rs"), folder.join("program"));
        let function = |name: &str, does: &str| {
            format!(
                "#[unsafe(no_mangle)] #[inline(never)] pub fn {name}_of_the_test(n: usize) {{ \
                 std::hint::black_box(n); {does} }}\n"
            )
        };
        let text = [
            function("first", "std::process::Command::new(\"true\").status().unwrap();"),
            function("second", "println!(\"{n}\");"),
            function("third", ""),
            "fn main() {
                 let words = std::env::args().skip(1).count();
                 if words > 0 {
                     std::thread::spawn(move || third_of_the_test(words)).join().unwrap();
                     (0..words).for_each(first_of_the_test);
                 }
                 if words > 8 { second_of_the_test(words) }
             }"
            .to_owned(),
        ];
        std::fs::write(&source, text.concat()).expect("written");
        let mut rustc = workspace::rustc();
        rustc.args(["--edition=2024", "-Copt-level=1"]).args(arguments).arg("-o").arg(&program).arg(&source);
        cmd::output(&mut rustc).expect("compiled");
        program
    }
}
