//! The linker of the program, as rustc calls it: this program under another name. It tells the linker in which order functions
//! lie, for which it needs their symbols, and these are only there once everything else is compiled.

use super::list::{Functions, List};
use crate::{cmd, compiler, wasm};
use anyhow::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name by which rustc calls this program: this, the checksum of the list, and the linker's own name.
const PREFIX: &str = "in-order-";

/// Makes a call of `cargo rustc` link the program in order, with this linker, a C compiler. No argument of cargo may follow
/// those that this adds.
pub(crate) fn in_order(cargo: &mut Command, linker: &str) -> Result<()> {
    if !lld()?.join("ld.lld").exists() {
        eprintln!("xtask: functions lie as they come: this toolchain has no {}", lld()?.display());
        return Ok(());
    }
    // Another list makes another program.
    let name = format!("{PREFIX}{}-{linker}", List::checksum()?);
    let link = compiler::stand_in(&name)?;
    let tools = link.parent().context("a path without a folder")?.to_owned();
    // Cargo makes what it builds depend on the name, and a path would differ from one machine to the next.
    let path = std::env::var_os("PATH").unwrap_or_default();
    cargo.env("PATH", std::env::join_paths(std::iter::once(tools).chain(std::env::split_paths(&path)))?);
    cargo.args(["--".to_owned(), format!("-Clinker={name}")]);
    Ok(())
}

/// The folder in which C compilers find lld. Other linkers take no order.
fn lld() -> Result<PathBuf> {
    Ok(wasm::linkers()?.join("gcc-ld"))
}

/// Links in place of everything else, where rustc has called this program. It only returns where it can't.
pub(crate) fn called_by_rustc() -> Option<anyhow::Error> {
    let mut words = std::env::args_os();
    let name = PathBuf::from(words.next()?);
    let (_, linker) = name.file_name()?.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
    let mut command = Command::new(linker);
    let arguments = List::read().and_then(|list| in_the_order(words.collect(), &list));
    Some(match arguments {
        Ok(arguments) => {
            let error = command.args(arguments).exec();
            anyhow::Error::new(error).context(format!("cannot start {linker}"))
        }
        Err(error) => error,
    })
}

/// The words of a call of the linker, and those that make it put functions in order.
fn in_the_order(mut words: Vec<OsString>, list: &List) -> Result<Vec<OsString>> {
    let order = order(&words, list)?;
    let mut folder = OsString::from("-B");
    folder.push(lld()?);
    let is_static = words.iter().any(|word| word == "-static-pie");
    // A symbol may be that of two functions.
    words.extend([folder, "-fuse-ld=lld".into(), order, "-Wl,--no-warn-symbol-ordering".into()]);
    if is_static || glibc_unpacks() {
        // Each start reads the places of all addresses: 40 KB in this form, and 900 in the other.
        words.push("-Wl,-z,pack-relative-relocs".into());
    }
    Ok(words)
}

/// Whether the C library of this machine, on which a program that isn't static will run, knows packed relocations. musl's comes
/// with the compiler, and does.
fn glibc_unpacks() -> bool {
    let said = cmd::output(Command::new("getconf").arg("GNU_LIBC_VERSION"));
    said.is_ok_and(|said| is_since_2_36(&said))
}

fn is_since_2_36(said: &str) -> bool {
    let version = said.trim().strip_prefix("glibc ").and_then(|version| version.split_once('.'));
    let number = |text: &str| text.split('.').next().and_then(|number| number.parse::<u32>().ok());
    version.is_some_and(|(major, minor)| number(major).zip(number(minor)) >= Some((2, 36)))
}

/// Writes the order of the functions of all files that are linked beside what they become; gives the linker's argument.
fn order(words: &[OsString], list: &List) -> Result<OsString> {
    let out = words.iter().position(|word| word == "-o").and_then(|at| words.get(at + 1));
    let out = out.context("the linker isn't told what it makes")?;
    let mut symbols = String::new();
    for file in words.iter().map(Path::new).filter(|file| file.extension() == Some(OsStr::new("o"))) {
        let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let functions = Functions::read(&bytes).with_context(|| file.display().to_string())?;
        for symbol in functions.in_order(list) {
            symbols += symbol;
            symbols.push('\n');
        }
    }
    let mut order = out.clone();
    order.push(".order");
    fs::write(&order, symbols).with_context(|| format!("cannot write {}", order.display()))?;
    let mut argument = OsString::from("-Wl,--symbol-ordering-file=");
    argument.push(order);
    Ok(argument)
}

#[cfg(test)]
mod tests {
    use super::super::tests::compiled;
    use super::*;

    #[test]
    fn functions_lie_in_the_order_of_the_list_before_all_others() {
        let wanted = ["third_of_the_test", "first_of_the_test"];
        let list = List::of(wanted.into_iter().chain(["of_another_program"]));
        let folder = tempfile::tempdir().expect("a folder");
        let object = folder.path().join("object.o");
        fs::rename(compiled(folder.path(), &["--emit=obj"]), &object).expect("an object");
        let program = folder.path().join("program");
        let words = ["-o".into(), program.clone().into(), object.into(), "-O1".into()];
        let arguments = in_the_order(words.to_vec(), &list).expect("arguments");
        assert_eq!(arguments[..words.len()], words);
        let arguments: Vec<String> = arguments[words.len()..]
            .iter()
            .map(|argument| format!("-Clink-arg={}", argument.to_str().expect("text")))
            .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();

        let bytes = fs::read(compiled(folder.path(), &arguments)).expect("a program");
        let mut functions = Functions::read(&bytes).expect("functions").0;
        functions.sort_by_key(|function| function.address);
        let first: Vec<&str> = functions.iter().map(|function| function.symbol).take(wanted.len()).collect();
        assert_eq!(first, wanted);
        let placed = Functions(functions).placed(&list);
        assert_eq!((placed.known, list.len()), (2, 3));
    }

    #[test]
    fn relocations_are_packed_where_the_c_library_knows_them() {
        for (said, is_known) in [
            ("glibc 2.36\n", true),
            ("glibc 2.41.1\n", true),
            ("glibc 3.0\n", true),
            ("glibc 2.35\n", false),
            ("glibc 2\n", false),
            ("glibc\n", false),
            ("", false),
        ] {
            assert_eq!(is_since_2_36(said), is_known, "{said}");
        }
    }

    #[test]
    fn what_is_no_call_of_a_linker_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = folder.path().join("text.o");
        fs::write(&text, "no object").expect("written");
        let said = |words: &[&Path]| {
            let words = words.iter().map(|word| word.as_os_str().to_owned()).collect();
            format!("{:#}", in_the_order(words, &List::default()).expect_err("refused"))
        };
        let out = folder.path().join("out");
        assert_eq!(said(&[&text]), "the linker isn't told what it makes");
        assert_eq!(said(&[&text, Path::new("-o")]), "the linker isn't told what it makes");
        let is_none = format!("{}: this is no ELF file: ", text.display());
        let said = said(&[&text, Path::new("-o"), &out]);
        assert!(said.starts_with(&is_none), "{said}");
    }
}
