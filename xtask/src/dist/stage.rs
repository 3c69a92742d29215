//! The files of an installation, in a folder as they lie below `/usr`. All packages are made from it.

use super::PACKAGES;
use crate::{cmd, files, workspace};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The folder of the plugin for Claude Code, in the workspace and in an installation.
pub(super) const PLUGIN: &str = "plugin";
const INSTALLED_PLUGIN: &str = "share/linux-sysadmin/claude-plugin";
/// The folder of the sdk in the workspace, and in an installation, where `modules new` looks for it.
const SDK: &str = "sdk";
const INSTALLED_SDK: &str = "share/linux-sysadmin/sdk";
/// The name of the sdk's crate.
const SDK_PACKAGE: &str = "linux-sysadmin-sdk";
/// The folder in which Python keeps what it has compiled.
const COMPILED_PYTHON: &str = "__pycache__";
/// The folder of the documentation in an installation.
const DOCUMENTATION: &str = "share/doc/linux-sysadmin";
const MANUALS: &str = "share/man/man1";
/// The shells, each with the file in which it looks for the completion of the program.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/linux-sysadmin"),
    ("fish", "share/fish/vendor_completions.d/linux-sysadmin.fish"),
    ("zsh", "share/zsh/site-functions/_linux-sysadmin"),
];
/// The files of the workspace that are installed as documentation.
const DOCUMENTS: [&str; 3] = ["README.md", "CHANGELOG.md", "LICENSE"];
/// The example of rules for sudo.
const SUDOERS: &str = "sudoers.example";

/// Makes the manual pages and the completions, which the program writes itself. `call` starts it; the path is the program's own.
pub(super) fn make_texts(to: &Path, program: &Path, call: &dyn Fn(&Path) -> Result<Command>) -> Result<()> {
    files::remove_all(to)?;
    // The program tells its own path, which has no links in it.
    let program = program.canonicalize().with_context(|| format!("{} is gone", program.display()))?;
    let manuals = to.join(MANUALS);
    files::make_dir(&manuals)?;
    cmd::output(call(&program)?.arg("manuals").arg(&manuals))?;
    let own = program.display().to_string();
    for (shell, file) in COMPLETIONS {
        let script = cmd::output(call(&program)?.args(["completion", shell]))?;
        ensure!(script.contains(&own), "the completion for {shell} doesn't name {own}");
        let file = to.join(file);
        files::make_dir(file.parent().unwrap_or(to))?;
        // The shell finds the program wherever it is installed.
        files::write(&file, script.replace(&own, workspace::BINARY), 0o644)?;
    }
    Ok(())
}

/// Fills the folder of an installation with the program, its modules, and the pages and completions in `texts`.
pub(super) fn fill(stage: &Path, program: &Path, modules: &Path, texts: &Path) -> Result<()> {
    files::remove_all(stage)?;
    let bin = stage.join("bin");
    files::make_dir(&bin)?;
    files::copy(program, &bin.join(workspace::BINARY), 0o755)?;
    files::sync_components(modules, &stage.join("lib").join(workspace::BINARY).join("modules"))?;
    files::copy_all(texts, stage)?;
    let root = workspace::root();
    let documentation = stage.join(DOCUMENTATION);
    files::copy_all(&root.join("docs"), &documentation.join("docs"))?;
    for name in DOCUMENTS {
        files::copy(&root.join(name), &documentation.join(name), 0o644)?;
    }
    files::copy(&root.join(PACKAGES).join(SUDOERS), &documentation.join(SUDOERS), 0o644)?;
    files::copy_all(&root.join(PLUGIN), &stage.join(INSTALLED_PLUGIN))
}

/// Adds the sdk as it is published: the crate, which needs no workspace around it, with the package for Python beside it. `work`
/// is a folder for what cargo makes.
pub(super) fn add_sdk(stage: &Path, work: &Path) -> Result<()> {
    files::remove_all(work)?;
    let mut package = workspace::cargo();
    package.args(["package", "--package", SDK_PACKAGE, "--no-verify", "--exclude-lockfile", "--allow-dirty"]);
    cmd::output(package.arg("--offline").arg("--target-dir").arg(work))?;
    let made = work.join("package");
    let entries = fs::read_dir(&made).with_context(|| format!("cannot read {}", made.display()))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let archive = paths.find(|path| path.extension().is_some_and(|ending| ending == "crate"));
    let archive = archive.with_context(|| format!("cargo made no package of {SDK_PACKAGE}"))?;
    let to = stage.join(INSTALLED_SDK);
    files::make_dir(&to)?;
    let mut unpack = Command::new("tar");
    unpack.args(["--extract", "--gzip", "--strip-components=1", "--no-same-owner", "--file"]).arg(archive);
    cmd::output(unpack.arg("--directory").arg(&to))?;
    let python = workspace::root().join(SDK).join("python");
    for file in files::all_below(&python)? {
        if !file.iter().any(|part| part == COMPILED_PYTHON) {
            let target = to.join("python").join(&file);
            files::make_dir(target.parent().unwrap_or(&to))?;
            files::copy(&python.join(&file), &target, 0o644)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_has_all_that_the_packages_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("modules")).expect("made");
        fs::create_dir_all(at("texts/share/man/man1")).expect("made");
        fs::write(at("program"), "program").expect("written");
        fs::write(at("modules/a.wasm"), "a").expect("written");
        fs::write(at("texts/share/man/man1/linux-sysadmin.1"), "a page").expect("written");
        files::write_sums(&at("modules")).expect("sums");
        fill(&at("stage"), &at("program"), &at("modules"), &at("texts")).expect("filled");
        for file in [
            "bin/linux-sysadmin",
            "lib/linux-sysadmin/modules/a.wasm",
            "lib/linux-sysadmin/modules/SHA256SUMS",
            "share/man/man1/linux-sysadmin.1",
            "share/doc/linux-sysadmin/README.md",
            "share/doc/linux-sysadmin/docs/configuration.md",
            "share/doc/linux-sysadmin/sudoers.example",
            "share/linux-sysadmin/claude-plugin/.claude-plugin/plugin.json",
            "share/linux-sysadmin/claude-plugin/.mcp.json",
        ] {
            assert!(at("stage").join(file).is_file(), "{file}");
        }
    }

    #[test]
    fn the_sdk_is_added_with_the_contract_and_without_a_need_for_the_workspace() {
        let folder = tempfile::tempdir().expect("a folder");
        let stage = folder.path().join("stage");
        add_sdk(&stage, &folder.path().join("work")).expect("added");
        let sdk = stage.join(INSTALLED_SDK);
        for file in [
            "src/lib.rs",
            "src/characters.rs",
            "wit/module.wit",
            "python/pyproject.toml",
            "python/src/linux_sysadmin_sdk/build.py",
            "python/src/linux_sysadmin_sdk/wit/module.wit",
        ] {
            assert!(sdk.join(file).is_file(), "{file}");
        }
        let manifest = fs::read_to_string(sdk.join("Cargo.toml")).expect("the manifest");
        assert!(manifest.contains(&format!("name = \"{SDK_PACKAGE}\"")), "{manifest}");
        assert!(!manifest.contains("workspace = true"), "{manifest}");
    }

    #[test]
    fn the_example_of_rules_for_sudo_names_the_program_where_the_packages_install_it() {
        let example = workspace::root().join(PACKAGES).join(SUDOERS);
        let text = fs::read_to_string(example).expect("the example");
        assert!(text.contains("= /usr/bin/linux-sysadmin serve\n"), "{text}");
        assert!(text.contains("NOPASSWD: LINUX_SYSADMIN_SERVE\n"), "{text}");
    }
}
