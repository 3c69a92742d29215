//! Makes the archives from the files of an installation: a tarball, a package for Debian and its kin, and one for Fedora, RHEL
//! and theirs. The same files give the same bytes.

use super::arch::Arch;
use super::{PACKAGES, Release};
use crate::{cmd, files, workspace};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs that make the packages, each with its version.
const CARGO_DEB: (&str, &str) = ("cargo-deb", "3.8.0");
const CARGO_GENERATE_RPM: (&str, &str) = ("cargo-generate-rpm", "0.21.1");

/// The manifest that both programs read.
const MANIFEST: &str = include_str!("../../packages/manifest.template");
/// The folders of the scripts that a package's installation runs.
const SCRIPTS: [&str; 2] = ["debian", "rpm"];

/// The folder in which zsh looks for completions on other distributions than Debian, and Debian's own.
const ZSH: (&str, &str) = ("share/zsh/site-functions/", "share/zsh/vendor-completions/");

/// Makes the tarball.
pub(super) fn tarball(stage: &Path, release: &Release, arch: Arch, out: &Path) -> Result<()> {
    let name = format!("{}-{}-{}", workspace::BINARY, release.version, arch.name());
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--format=gnu", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mode=u=rwX,go=rX", "--use-compress-program=gzip --no-name --best"]);
    tar.arg(format!("--mtime=@{}", release.seconds)).arg(format!("--transform=s,^\\.,{name},"));
    tar.arg("--file").arg(out.join(format!("{name}.tar.gz"))).arg("--directory").arg(stage).arg(".");
    cmd::output(&mut tar).map(drop)
}

/// Makes the packages. `work` is a folder for what the programs that make them read.
pub(super) fn packages(stage: &Path, release: &Release, arch: Arch, work: &Path, out: &Path) -> Result<()> {
    let tools = workspace::target_dir()?.join("tools");
    files::remove_all(work)?;
    for folder in SCRIPTS {
        copy_scripts(&workspace::root().join(PACKAGES).join(folder), &work.join(folder))?;
    }
    // cargo wants a source file in every package.
    files::make_dir(&work.join("src"))?;
    files::write(&work.join("src/main.rs"), "fn main() {}\n", 0o644)?;
    let manifest = work.join("Cargo.toml");
    files::write(&manifest, manifest_of(stage, &release.version)?, 0o644)?;
    let (version, triple) = (&release.version, arch.triple());

    let deb = out.join(format!("{}_{version}-1_{}.deb", workspace::BINARY, arch.of_debian()));
    let mut make = Command::new(installed(&tools, CARGO_DEB)?);
    make.current_dir(work).args(["--quiet", "--no-build", "--no-strip", "--target", &triple]);
    make.arg("--manifest-path").arg(&manifest).arg("--output").arg(deb);
    cmd::output(make.env("SOURCE_DATE_EPOCH", &release.seconds))?;

    let rpm = out.join(format!("{}-{version}-1.{}.rpm", workspace::BINARY, arch.name()));
    let mut make = Command::new(installed(&tools, CARGO_GENERATE_RPM)?);
    make.current_dir(work).args(["--arch", arch.name(), "--output"]).arg(rpm);
    cmd::output(make.env("SOURCE_DATE_EPOCH", &release.seconds)).map(drop)
}

fn copy_scripts(from: &Path, to: &Path) -> Result<()> {
    files::make_dir(to)?;
    for script in files::all_below(from)? {
        files::copy(&from.join(&script), &to.join(&script), 0o755)?;
    }
    Ok(())
}

/// The manifest with a version and the files of an installation.
fn manifest_of(stage: &Path, version: &str) -> Result<String> {
    let (mut of_deb, mut of_rpm) = (String::from("[\n"), String::from("[\n"));
    for file in files::all_below(stage)? {
        let source = stage.join(&file);
        let is_program = fs::metadata(&source)?.permissions().mode() & 0o111 != 0;
        let mode = if is_program { "755" } else { "644" };
        let path = file.to_str().with_context(|| format!("{} is no UTF-8", file.display()))?;
        let source = quoted(&source.display().to_string())?;
        let in_debian = quoted(&format!("usr/{}", path.replace(ZSH.0, ZSH.1)))?;
        let in_rpm = quoted(&format!("/usr/{path}"))?;
        let is_doc = path.starts_with("share/doc/");
        of_deb.push_str(&format!("    [{source}, {in_debian}, \"{mode}\"],\n"));
        of_rpm.push_str(&format!(
            "    {{ source = {source}, dest = {in_rpm}, mode = \"{mode}\", doc = {is_doc} }},\n"
        ));
    }
    let places =
        [("VERSION", version.to_owned()), ("DEB_ASSETS", of_deb + "]"), ("RPM_ASSETS", of_rpm + "]")];
    let fill = |text: String, (name, value): (&str, String)| text.replace(&format!("@{name}@"), &value);
    Ok(places.into_iter().fold(MANIFEST.to_owned(), fill))
}

/// A basic string of TOML, which is written as one of JSON.
fn quoted(text: &str) -> Result<String> {
    serde_json::to_string(text).context("a path can't be quoted")
}

/// The program of this version: the one in the PATH, or the one below the target directory, which is installed where it is
/// missing.
fn installed(tools: &Path, (name, version): (&str, &str)) -> Result<PathBuf> {
    let is_it = |program: &Path| {
        let said = cmd::output(Command::new(program).arg("--version"));
        said.is_ok_and(|said| said.split_whitespace().any(|word| word == version))
    };
    if let Some(program) = cmd::find_program(name).filter(|program| is_it(program)) {
        return Ok(program);
    }
    let program = tools.join("bin").join(name);
    if !is_it(&program) {
        eprintln!("xtask: installing {name} {version} into {}", tools.display());
        let mut install = workspace::cargo();
        install.args(["install", "--locked", name, "--version", version, "--root"]).arg(tools);
        cmd::run(&mut install)?;
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_an_installation_is_in_both_packages() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let stage = folder.path();
        files::make_dir(&stage.join("bin"))?;
        files::make_dir(&stage.join("share/zsh/site-functions"))?;
        files::write(&stage.join("bin/linux-sysadmin"), "", 0o755)?;
        files::write(&stage.join("share/zsh/site-functions/_linux-sysadmin"), "", 0o644)?;
        let text = manifest_of(stage, "1.2.3")?;
        assert!(text.contains("\nversion = \"1.2.3\"\n") && !text.contains("_ASSETS@"), "{text}");
        for line in [
            "\"usr/bin/linux-sysadmin\", \"755\"],",
            "dest = \"/usr/bin/linux-sysadmin\", mode = \"755\", doc = false },",
            "\"usr/share/zsh/vendor-completions/_linux-sysadmin\", \"644\"],",
            "dest = \"/usr/share/zsh/site-functions/_linux-sysadmin\", mode = \"644\", doc = false },",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        Ok(())
    }

    #[test]
    fn the_same_files_give_the_same_tarball() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let release = Release {
            version: "1.2.3".to_owned(),
            seconds: "1700000000".to_owned(),
            time: "2023-11-14T22:13:20Z".to_owned(),
        };
        let mut made = Vec::new();
        for number in 0..2 {
            let at = folder.path().join(number.to_string());
            let stage = at.join("stage");
            files::make_dir(&stage.join("bin"))?;
            files::write(&stage.join("bin/linux-sysadmin"), "program", 0o755)?;
            tarball(&stage, &release, Arch::X86, &at)?;
            made.push(fs::read(at.join("linux-sysadmin-1.2.3-x86_64.tar.gz"))?);
        }
        assert_eq!(made[0], made[1]);
        Ok(())
    }
}
