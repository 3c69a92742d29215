//! Builds what is handed out: for each processor a static program with its modules, as a tarball and as packages, with the
//! licenses of all crates and a bill of materials beside them.
//!
//! Two builds of one commit give the same bytes: paths of this machine are kept out of them, and the commit's time stands for
//! that of the build.

mod arch;
mod clients;
mod crates;
mod licenses;
mod packages;
mod plugin;
mod stage;

use crate::{cmd, files, order, workspace};
use anyhow::{Context, Result, bail, ensure};
use arch::Arch;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use clients::variables as client_variables;

/// The folder with the packages' manifest and scripts.
const PACKAGES: &str = "xtask/packages";

/// The arguments of `cargo xtask dist`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A processor; both without one
    #[arg(long, value_enum, value_name = "ARCH")]
    arch: Vec<Arch>,
    /// The directory of what is handed out [default: target/dist]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Build everything a second time in another directory, and compare the bytes
    #[arg(long)]
    twice: bool,
    /// Install the packages on test hosts, and use them there
    #[arg(long)]
    test: bool,
}

/// The version that is built, and its time.
#[derive(Clone, Debug)]
struct Release {
    version: String,
    /// The time of the commit in seconds since 1970, as `SOURCE_DATE_EPOCH` has it.
    seconds: String,
    /// The same time by RFC 3339.
    time: String,
}

impl Release {
    fn of_this_commit() -> Result<Self> {
        let metadata = workspace::metadata()?;
        let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
        let package = packages.iter().find(|package| package["name"] == workspace::BINARY);
        let version = package.and_then(|package| package["version"].as_str());
        let version = version.context("cargo metadata doesn't know the program")?.to_owned();
        let said = |format: &[&str]| {
            let mut git = Command::new("git");
            git.current_dir(workspace::root()).env("TZ", "UTC").args(["log", "-1"]).args(format);
            cmd::output(&mut git).map(|said| said.trim().to_owned())
        };
        let time = said(&["--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--format=%cd"])?;
        Ok(Self { version, seconds: said(&["--format=%ct"])?, time })
    }
}

/// Builds, checks and packs.
pub(crate) fn dist(options: &Options) -> Result<()> {
    let release = Release::of_this_commit()?;
    let changed =
        cmd::output(Command::new("git").current_dir(workspace::root()).args(["status", "--porcelain"]))?;
    if !changed.trim().is_empty() {
        eprintln!("xtask: there are changes that are not committed, so this build is of no commit");
    }
    plugin::validate()?;
    let mut archs = if options.arch.is_empty() { Arch::ALL.to_vec() } else { options.arch.clone() };
    // The program of this machine's own processor writes the manual pages for both.
    archs.sort_by_key(|arch| !arch.is_native());
    archs.dedup();
    let target = workspace::target_dir()?;
    let out = match &options.out {
        Some(out) => std::path::absolute(out)?,
        None => target.join("dist"),
    };
    build_all(&archs, &release, &target.join("dist-build"), &out)?;
    if options.twice {
        let again = target.join("dist-again");
        files::remove_all(&again)?;
        build_all(&archs, &release, &again.join("build"), &again.join("out"))?;
        compare(&out, &again.join("out"))?;
        println!("built twice with the same bytes");
    }
    for name in names(&out)? {
        println!("{}", out.join(name).display());
    }
    if options.test {
        clients::install_all();
        let mut test = Command::new(std::env::current_exe()?);
        test.args(["test", "the_package"]).env(PACKAGES_VARIABLE, &out);
        cmd::run(&mut test)?;
    }
    Ok(())
}

/// The variable that tells tests where packages are.
pub(crate) const PACKAGES_VARIABLE: &str = "LINUX_SYSADMIN_PACKAGES";

/// Makes packages of a program that is built already, for tests of their installation.
pub(crate) fn packages_for_tests(program: &Path) -> Result<()> {
    let arch = Arch::ALL
        .into_iter()
        .find(|arch| arch.is_native())
        .context("there are no packages for this processor")?;
    let release = Release::of_this_commit()?;
    let out = packages_of(program);
    files::remove_all(&out)?;
    let work = out.join("work");
    let (texts, stage) = (work.join("texts"), work.join("stage"));
    stage::make_texts(&texts, program, &|program| Ok(Command::new(program)))?;
    stage::fill(&stage, program, &program.with_file_name("modules"), &texts)?;
    stage::add_sdk(&stage, &work.join("sdk"))?;
    packages::packages(&stage, &release, arch, &work.join(arch.name()), &out)?;
    clients::install_all();
    Ok(())
}

/// The folder of the packages for tests, beside the program.
pub(crate) fn packages_of(program: &Path) -> PathBuf {
    program.with_file_name("packages")
}

fn build_all(archs: &[Arch], release: &Release, build: &Path, out: &Path) -> Result<()> {
    files::remove_all(out)?;
    files::make_dir(out)?;
    let flags = path_flags(build)?;
    let modules = build.join("modules");
    wasm_modules(build, release, &flags, &modules)?;
    let texts = build.join("texts");
    for (number, arch) in archs.iter().enumerate() {
        let program = build_program(*arch, release, build, &flags)?;
        if number == 0 {
            let call = |program: &Path| arch.command(program).context("the program can't be started here");
            stage::make_texts(&texts, &program, &call)?;
        }
        check(*arch, &program, &modules)?;
        let stage = build.join("stage").join(arch.name());
        stage::fill(&stage, &program, &modules, &texts)?;
        stage::add_sdk(&stage, &build.join("sdk"))?;
        let crates = crates::shipped(&arch.triple())?;
        let name = format!("{}-{}-{}", workspace::BINARY, release.version, arch.name());
        let licenses = licenses::licenses(&crates)?;
        files::write(&stage.join("share/doc/linux-sysadmin/LICENSES.txt"), &licenses, 0o644)?;
        files::write(&out.join(format!("{name}.licenses.txt")), licenses, 0o644)?;
        let bill = licenses::bill(&crates, release, workspace::BINARY)?;
        files::write(&out.join(format!("{name}.cdx.json")), bill, 0o644)?;
        packages::tarball(&stage, release, *arch, out)?;
        packages::packages(&stage, release, *arch, &build.join("packages").join(arch.name()), out)?;
    }
    files::write_sums_of(out, &names(out)?)
}

fn wasm_modules(build: &Path, release: &Release, flags: &[String], to: &Path) -> Result<()> {
    files::remove_all(to)?;
    crate::build::shipped_components(&build.join("wasm"), flags, to)
        .with_context(|| format!("the modules of version {} can't be built", release.version))
}

/// Builds the program for one processor, and checks that it needs no library.
fn build_program(arch: Arch, release: &Release, build: &Path, flags: &[String]) -> Result<PathBuf> {
    arch.prepare()?;
    let mut cargo = workspace::cargo();
    cargo.args([
        "rustc",
        "--locked",
        "--release",
        "--package",
        workspace::BINARY,
        "--bin",
        workspace::BINARY,
    ]);
    arch.apply(&mut cargo);
    let target = build.join("program");
    cargo.arg("--target-dir").arg(&target).env("SOURCE_DATE_EPOCH", &release.seconds);
    // The flags of the environment would make another program.
    cargo.env_remove("RUSTFLAGS").env("CARGO_INCREMENTAL", "0");
    let own = ["-Ctarget-feature=+crt-static".to_owned(), order::SYMBOLS.to_owned()];
    let flags = [&own[..], flags].concat();
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    order::in_order(&mut cargo, &arch.linker())?;
    cmd::run(&mut cargo)?;
    let program = target.join(arch.triple()).join("release").join(workspace::BINARY);
    let bytes = fs::read(&program).with_context(|| format!("cargo made no {}", program.display()))?;
    ensure!(!has_interpreter(&bytes)?, "{} is not static: it names an interpreter", program.display());
    order::tell(&program)?;
    Ok(program)
}

/// The flags that put the same paths into every build, wherever it is made. The last one that fits a path holds.
fn path_flags(build: &Path) -> Result<Vec<String>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home =
        home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).context("there is no home of cargo")?;
    let paths = [(home.as_path(), "/cargo"), (workspace::root(), "/source"), (build, "/build")];
    let flag = |(path, instead): (&Path, &str)| {
        let path = path.to_str().filter(|path| !path.contains(' '));
        let path =
            path.context("a path with a blank, or one that is no UTF-8, can't be kept out of the build")?;
        Ok(format!("--remap-path-prefix={path}={instead}"))
    };
    paths.into_iter().map(flag).collect()
}

/// Starts the program, and has it load the smallest module. Where nothing here starts it, that is said.
fn check(arch: Arch, program: &Path, modules: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let few = folder.path().join("modules");
    files::make_dir(&few)?;
    let of = |name: &String| fs::metadata(modules.join(name)).map_or(u64::MAX, |metadata| metadata.len());
    let all = names(modules)?.into_iter().filter(|name| name.ends_with(".wasm"));
    let smallest = all.min_by_key(of).context("there are no modules")?;
    files::copy(&modules.join(&smallest), &few.join(&smallest), 0o644)?;
    files::write_sums(&few)?;
    let Some(mut call) = arch.command(program) else {
        eprintln!("xtask: the build for {} was not started", arch.name());
        return Ok(());
    };
    call.env_clear().env("HOME", folder.path()).arg("--modules").arg(&few).args(["tools", "--json"]);
    let said = cmd::output(&mut call)?;
    let tools: Value = serde_json::from_str(&said).context("the program lists no tools")?;
    if tools.as_array().is_none_or(Vec::is_empty) {
        bail!("the build for {} can't use {smallest}", arch.name());
    }
    Ok(())
}

/// The type of a segment of ELF that names the program's dynamic linker, elf(5).
const PT_INTERP: u32 = 3;

/// Whether a 64-bit little-endian ELF file names a dynamic linker. A static one names none, even where it can be loaded
/// anywhere.
fn has_interpreter(bytes: &[u8]) -> Result<bool> {
    let number = |at: usize, length: usize| -> Result<u64> {
        let bytes = bytes.get(at..at + length).context("the file is cut off")?;
        Ok(bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    };
    ensure!(bytes.starts_with(b"\x7fELF\x02\x01"), "it is no 64-bit ELF file");
    let first = usize::try_from(number(32, 8)?)?;
    let (size, count) = (usize::try_from(number(54, 2)?)?, usize::try_from(number(56, 2)?)?);
    for header in 0..count {
        if number(first + header * size, 4)? == u64::from(PT_INTERP) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The names of the files in a folder, without the sums.
fn names(folder: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let files = entries.flatten().filter(|entry| entry.path().is_file());
    let names = files.filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| name != files::SUMS).collect())
}

/// Compares what two builds made, by the sums of their files.
fn compare(one: &Path, other: &Path) -> Result<()> {
    let sums = |folder: &Path| {
        fs::read_to_string(folder.join(files::SUMS))
            .with_context(|| format!("{} has no sums", folder.display()))
    };
    let (one, other) = (sums(one)?, sums(other)?);
    let differs: Vec<&str> = one.lines().filter(|line| !other.lines().any(|same| same == *line)).collect();
    if one != other {
        bail!("two builds of one commit differ in:\n{}", differs.join("\n"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_names_a_dynamic_linker_is_not_static() -> Result<()> {
        let elf = |kinds: &[u32]| {
            let mut bytes = vec![0_u8; 64];
            bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
            bytes[32] = 64;
            bytes[54] = 56;
            bytes[56] = u8::try_from(kinds.len()).expect("few");
            for kind in kinds {
                bytes.extend(kind.to_le_bytes());
                bytes.extend([0; 52]);
            }
            bytes
        };
        assert!(!has_interpreter(&elf(&[1, 2]))?);
        assert!(has_interpreter(&elf(&[1, PT_INTERP]))?);
        assert!(has_interpreter(&elf(&[1])[..70]).is_ok());
        assert!(has_interpreter(&elf(&[1])[..66]).is_err() && has_interpreter(b"#!/bin/sh").is_err());
        Ok(())
    }

    #[test]
    fn the_change_log_speaks_of_this_version() -> Result<()> {
        let text = fs::read_to_string(workspace::root().join("CHANGELOG.md"))?;
        let heading = concat!("## ", env!("CARGO_PKG_VERSION"));
        assert!(text.lines().any(|line| line == heading), "there is no {heading:?}");
        Ok(())
    }

    #[test]
    fn builds_that_differ_are_told_with_the_files() -> Result<()> {
        let folder = tempfile::tempdir()?;
        for (name, text) in [("a", "same"), ("b", "same"), ("c", "other")] {
            files::make_dir(&folder.path().join(name))?;
            files::write(&folder.path().join(name).join("file"), text, 0o644)?;
            files::write_sums_of(&folder.path().join(name), &BTreeSet::from(["file".to_owned()]))?;
        }
        let at = |name: &str| folder.path().join(name);
        compare(&at("a"), &at("b"))?;
        let said = compare(&at("a"), &at("c")).expect_err("they differ").to_string();
        assert!(said.ends_with("  file"), "{said}");
        Ok(())
    }

    #[test]
    fn the_paths_of_this_machine_are_replaced_and_the_build_is_within_none_of_the_others() -> Result<()> {
        let flags = path_flags(Path::new("/somewhere/build"))?;
        assert_eq!(flags.last().map(String::as_str), Some("--remap-path-prefix=/somewhere/build=/build"));
        let root = format!("--remap-path-prefix={}=/source", workspace::root().display());
        assert!(flags.contains(&root), "{flags:?}");
        assert!(path_flags(Path::new("/a blank")).is_err());
        Ok(())
    }
}
