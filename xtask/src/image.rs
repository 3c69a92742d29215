//! Builds a host's base system from a recipe folder (images/NAME), once per content of that folder.
//!
//! An image is a layer over the image that its recipe names as its base, down to one that is bootstrapped. The layer is
//! cached outside the source tree under a name that holds the recipe's hash. It is built in a temporary folder and renamed
//! when complete, so that whatever has the final name is whole. A build is a process with mounts of its own: one that is
//! killed leaves files, never mounts.

use crate::{cmd, files, mirror, workspace};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const CACHE: &str = "/var/cache/linux-sysadmin-hosts";
/// This number goes up when this file builds another image from the same recipe.
const BUILDER: u32 = 2;
/// An image whose build was cut off is built anew, so dpkg need not wait for the disk.
const DPKG_FORCE: &str = "unsafe-io";
/// The path of the script that keeps packages from starting services in the image.
const POLICY: &str = "usr/sbin/policy-rc.d";
/// The list of archives while the image is built. A host has only the archives of its recipe.
const BUILD_SOURCES: &str = "etc/apt/sources.list";
const BUILD_PROXY: &str = "etc/apt/apt.conf.d/00build-proxy";

/// An image's recipe.yaml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    /// The image over which this one is a layer. Both have the same suite.
    #[serde(default)]
    base: Option<String>,
    /// Debian's releases of which the image can be made.
    #[serde(default)]
    suites: Vec<String>,
    #[serde(default)]
    packages: Vec<String>,
    #[serde(default)]
    nspawn: Vec<String>,
}

/// An image that is ready to be the lower layers of a host.
pub(crate) struct Image {
    /// The layers of the image, its own one first and then those below it.
    pub(crate) layers: Vec<PathBuf>,
    /// The further arguments of systemd-nspawn for its hosts.
    pub(crate) nspawn: Vec<String>,
}

/// Gives the image from the cache, or builds it.
pub(crate) fn ensure(name: &str) -> Result<Image> {
    let plan = Plan::of(name)?;
    let cache = Path::new(CACHE);
    files::make_dir(cache)?;
    let lock =
        File::create(cache.join(format!("lock-{name}"))).context("cannot make the image's lock file")?;
    lock.lock().context("cannot lock the image")?;
    if !plan.layer.is_dir() {
        let begun = Instant::now();
        eprintln!("xtask: building the image `{name}` ({}) once; this takes a minute or two", plan.suite);
        // The path names the file that runs, since cargo may have replaced the file at its usual path. `/proc/self` would be
        // the program that starts it.
        let xtask = format!("/proc/{}/exe", std::process::id());
        let mut build = unshared();
        build.args(["--propagation", "private", &xtask, "hosts", "build-image", name]);
        cmd::run(build.stdin(Stdio::null()))
            .with_context(|| format!("the image `{name}` could not be built"))?;
        eprintln!("xtask: the image `{name}` is complete after {:.0} s", begun.elapsed().as_secs_f32());
    }
    Ok(Image { layers: plan.layers(), nspawn: plan.recipe.nspawn })
}

/// Builds one image whose base is there. This process has mounts of its own.
pub(crate) fn build_one(name: &str) -> Result<()> {
    let plan = Plan::of(name)?;
    let building = Path::new(CACHE).join(format!(".building-{name}"));
    if building.exists() {
        fs::remove_dir_all(&building)
            .with_context(|| format!("cannot remove what an earlier build left: {}", building.display()))?;
    }
    let layer = building.join("layer");
    files::make_dir(&layer)?;
    build(&plan, &building, &layer)?;
    fs::rename(&layer, &plan.layer).with_context(|| format!("cannot rename to {}", plan.layer.display()))?;
    fs::remove_dir_all(&building).ok();
    Ok(())
}

/// The recipe of an image, with the layers that it needs.
struct Plan {
    name: String,
    folder: PathBuf,
    recipe: Recipe,
    suite: String,
    /// The path at which its own layer is or will be.
    layer: PathBuf,
    /// The layers below its own, from the top down.
    below: Vec<PathBuf>,
}

impl Plan {
    /// Plans an image, and builds the images below it where they are missing.
    fn of(name: &str) -> Result<Self> {
        let folder = recipe_folder(name)?;
        let recipe = read_recipe(&folder)?;
        let (below, suite) = match &recipe.base {
            Some(base) => (ensure(base)?.layers, Self::of(base)?.suite),
            None => {
                let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
                let suite = suite_for(&recipe.suites, &os_release)
                    .with_context(|| format!("{}/recipe.yaml lists no suite", folder.display()))?;
                (Vec::new(), suite)
            }
        };
        let hash = recipe_hash(&folder, &suite, below.first().map(PathBuf::as_path))?;
        let layer = Path::new(CACHE).join(format!("{name}-{}", &hash[..12]));
        Ok(Self { name: name.to_owned(), folder, recipe, suite, layer, below })
    }

    fn layers(&self) -> Vec<PathBuf> {
        [&self.layer].into_iter().chain(&self.below).cloned().collect()
    }
}

/// Removes older cached layers of the images of these layers, unless a host uses them.
pub(crate) fn remove_old(current: &[PathBuf], in_use: &[PathBuf]) -> Result<()> {
    let image_of = |path: &Path| {
        let (image, hash) = path.file_name()?.to_str()?.rsplit_once('-')?;
        (hash.len() == 12).then(|| image.to_owned())
    };
    let images: Vec<_> = current.iter().filter_map(|layer| image_of(layer)).collect();
    for entry in fs::read_dir(CACHE)?.flatten() {
        let path = entry.path();
        let is_old = image_of(&path).is_some_and(|image| images.contains(&image)) && !current.contains(&path);
        if is_old && !in_use.contains(&path) {
            fs::remove_dir_all(&path)
                .with_context(|| format!("cannot remove the old layer {}", path.display()))?;
        }
    }
    Ok(())
}

fn read_recipe(folder: &Path) -> Result<Recipe> {
    let text = fs::read_to_string(folder.join("recipe.yaml"))
        .with_context(|| format!("no readable recipe.yaml in {}", folder.display()))?;
    serde_yaml::from_str(&text).with_context(|| format!("{}/recipe.yaml", folder.display()))
}

fn recipe_folder(name: &str) -> Result<PathBuf> {
    let images = workspace::root().join("xtask/images");
    let mut names: Vec<String> = fs::read_dir(&images)
        .with_context(|| format!("cannot read {}", images.display()))?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    if !names.iter().any(|known| known == name) {
        bail!("there is no image `{name}`; there are: {}", names.join(", "));
    }
    Ok(images.join(name))
}

/// This machine's own suite where the recipe has it, since binaries that are built here run there. Otherwise the recipe's
/// first suite.
fn suite_for(suites: &[String], os_release: &str) -> Option<String> {
    let value = |key: &str| {
        os_release
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
            .map(|v| v.trim_matches('"'))
    };
    if value("ID") == Some("debian")
        && let Some(own) = value("VERSION_CODENAME")
        && suites.iter().any(|suite| suite == own)
    {
        return Some(own.to_owned());
    }
    suites.first().cloned()
}

/// The hash of everything that decides the result, except for the mirror and the day.
fn recipe_hash(folder: &Path, suite: &str, below: Option<&Path>) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(format!("{BUILDER}\0{suite}\0{}\0", std::env::consts::ARCH));
    // The name of the layer below holds the hash of its recipe.
    if let Some(below) = below {
        hash.update(format!("{}\0", below.display()));
    }
    for relative in tree(folder)? {
        let path = folder.join(&relative);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        // Without the lengths, two other files with the same bytes in a row would have the same hash.
        hash.update(format!("{}\0{}\0{}\0", relative.display(), is_executable(&path)?, bytes.len()));
        hash.update(&bytes);
    }
    Ok(hex::encode(hash.finalize()))
}

/// Fills the layer. `building` holds what is needed only during the build.
fn build(plan: &Plan, building: &Path, layer: &Path) -> Result<()> {
    let suite = &plan.suite;
    let mirror = mirror::of_this_machine(suite);
    let proxy = mirror::apt_proxy();
    // The output names each package, and matters only where the build fails.
    let log = PathBuf::from(CACHE).join(format!("build-{}.log", plan.name));
    let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let logged = |command: &mut Command| -> Result<()> {
        let command = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
        cmd::run(command)
            .with_context(|| format!("{} has the details; its end:\n{}", log.display(), tail(&log)))
    };

    let root = match plan.below.is_empty() {
        true => {
            let mut bootstrap = unshared();
            bootstrap.args(["--mount-proc", "debootstrap", "--variant=minbase", "--include=ca-certificates"]);
            bootstrap.arg(suite).arg(layer).arg(&mirror.uri).env("DPKG_FORCE", DPKG_FORCE);
            if let Some(proxy) = &proxy {
                bootstrap.env("http_proxy", proxy);
            }
            logged(&mut bootstrap)?;
            layer.to_owned()
        }
        false => {
            let (root, work) = (building.join("root"), building.join("work"));
            files::make_dir(&root)?;
            files::make_dir(&work)?;
            let options = overlay(&plan.below, layer, &work);
            cmd::output(Command::new("mount").args(["-t", "overlay", "-o", &options, "overlay"]).arg(&root))?;
            root
        }
    };

    files::write(&root.join(POLICY), "#!/bin/sh\nexit 101\n", 0o755)?;
    files::write(&root.join(BUILD_SOURCES), mirror.sources_list(suite), 0o644)?;
    if let Some(proxy) = &proxy {
        files::write(&root.join(BUILD_PROXY), format!("Acquire::http::Proxy \"{proxy}\";\n"), 0o644)?;
    }
    // The content is copied, since the machine's own file may be a link that leads nowhere in the image.
    if let Ok(resolvers) = fs::read("/etc/resolv.conf") {
        fs::remove_file(root.join("etc/resolv.conf")).ok();
        files::write(&root.join("etc/resolv.conf"), resolvers, 0o644)?;
    }
    if !plan.recipe.packages.is_empty() {
        logged(inside(&root).args(["apt-get", "-q", "update"]))?;
        if plan.below.is_empty() {
            logged(inside(&root).args(["apt-get", "-qy", "upgrade"]))?;
        }
        let install = ["apt-get", "-qy", "--no-install-recommends", "install"];
        logged(inside(&root).args(install).args(&plan.recipe.packages))?;
        logged(inside(&root).args(["apt-get", "clean"]))?;
    }

    for leftover in [BUILD_SOURCES, BUILD_PROXY] {
        fs::remove_file(root.join(leftover)).ok();
    }
    // The lowest layer keeps the lists, so the layers above it fetch only what is new.
    if !plan.below.is_empty() {
        let lists = root.join("var/lib/apt/lists");
        fs::remove_dir_all(&lists).ok();
        files::make_dir(&lists.join("partial"))?;
    }

    copy_tree(&plan.folder.join("files"), &root)?;
    let (from, provision) = (plan.folder.join("provision"), root.join("tmp/provision"));
    if from.exists() {
        files::copy(&from, &provision, 0o755)?;
        logged(inside(&root).arg("/tmp/provision"))?;
        fs::remove_file(&provision)?;
    }
    seal(&root)?;
    if root != layer {
        cmd::output(Command::new("umount").arg(&root))?;
    }
    Ok(())
}

/// The options of an overlay mount.
pub(crate) fn overlay(below: &[PathBuf], upper: &Path, work: &Path) -> String {
    let below: Vec<_> = below.iter().map(|layer| layer.display().to_string()).collect();
    format!("lowerdir={},upperdir={},workdir={}", below.join(":"), upper.display(), work.display())
}

/// Removes what must differ from host to host, and what only the build needed.
fn seal(root: &Path) -> Result<()> {
    fs::remove_file(root.join(POLICY)).ok();
    for entry in fs::read_dir(root.join("etc/ssh"))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("ssh_host_") {
            fs::remove_file(entry.path())?;
        }
    }
    files::write(&root.join("etc/machine-id"), "", 0o444)?;
    fs::remove_file(root.join("etc/resolv.conf")).ok();
    files::write(&root.join("etc/resolv.conf"), "nameserver 127.0.0.1\n", 0o644)
}

/// Runs a program in the image, with a process table and mounts of its own.
fn inside(root: &Path) -> Command {
    let mut command = unshared();
    command.args(["--mount-proc=/proc", "--wd=/", "--root"]);
    command.arg(root).env_clear().envs([
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/root"),
        ("LANG", "C.UTF-8"),
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("DPKG_FORCE", DPKG_FORCE),
    ]);
    command
}

/// `unshare` with mounts and processes of its own. All of these processes end when xtask ends, or they would write into
/// the next build.
fn unshared() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]);
    command
}

/// Copies regular files as files of root. Of a mode only the executable bit is kept, and empty folders are left out, as
/// git does.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    if !from.exists() {
        return Ok(());
    }
    for relative in tree(from)? {
        let (source, goal) = (from.join(&relative), to.join(&relative));
        if let Some(parent) = goal.parent() {
            files::make_dir(parent)?;
        }
        files::copy(&source, &goal, if is_executable(&source)? { 0o755 } else { 0o644 })?;
    }
    Ok(())
}

/// The regular files under a folder, relative and in order.
fn tree(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(relative) = folders.pop() {
        let dir = folder.join(&relative);
        for entry in fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))? {
            let entry = entry?;
            let path = relative.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_executable(path: &Path) -> Result<bool> {
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(metadata.permissions().mode() & 0o111 != 0)
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_own_suite_wins_where_the_recipe_has_it() {
        let suites = ["bookworm".to_owned(), "trixie".to_owned()];
        let cases = [
            ("ID=debian\nVERSION_CODENAME=trixie\n", "trixie"),
            ("VERSION_CODENAME=\"trixie\"\nID=\"debian\"\n", "trixie"),
            ("ID=debian\nVERSION_CODENAME=sid\n", "bookworm"),
            ("ID=ubuntu\nVERSION_CODENAME=trixie\n", "bookworm"),
            ("", "bookworm"),
        ];
        for (os_release, expected) in cases {
            assert_eq!(suite_for(&suites, os_release).as_deref(), Some(expected), "{os_release}");
        }
        assert_eq!(suite_for(&[], ""), None);
    }

    #[test]
    fn the_hash_follows_names_contents_modes_and_the_suite() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("files/etc/x");
        files::make_dir(&dir.path().join("files/etc"))?;
        fs::write(&file, "1")?;
        let recipe_hash = |folder: &Path, suite: &str| recipe_hash(folder, suite, None);
        let mut seen = vec![recipe_hash(dir.path(), "bookworm")?];
        assert_eq!(seen[0], recipe_hash(dir.path(), "bookworm")?);
        seen.push(recipe_hash(dir.path(), "trixie")?);
        fs::write(&file, "2")?;
        seen.push(recipe_hash(dir.path(), "bookworm")?);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        seen.push(recipe_hash(dir.path(), "bookworm")?);
        fs::rename(&file, dir.path().join("files/etc/y"))?;
        seen.push(recipe_hash(dir.path(), "bookworm")?);
        for below in ["/x-1", "/x-2"] {
            seen.push(super::recipe_hash(dir.path(), "bookworm", Some(Path::new(below)))?);
        }
        let different: std::collections::BTreeSet<_> = seen.iter().collect();
        assert_eq!(different.len(), seen.len());
        Ok(())
    }

    #[test]
    fn an_image_needs_no_files_of_its_own() -> Result<()> {
        let (from, to) = (tempfile::tempdir()?, tempfile::tempdir()?);
        copy_tree(&from.path().join("files"), to.path())?;
        assert_eq!(tree(to.path())?, Vec::<PathBuf>::new());
        fs::create_dir_all(from.path().join("files/etc"))?;
        fs::write(from.path().join("files/etc/x"), "1")?;
        copy_tree(&from.path().join("files"), to.path())?;
        assert_eq!(tree(to.path())?, [PathBuf::from("etc/x")]);
        Ok(())
    }

    #[test]
    fn every_recipe_of_the_project_can_be_read() -> Result<()> {
        for entry in fs::read_dir(workspace::root().join("xtask/images"))?.flatten() {
            let recipe = read_recipe(&entry.path())?;
            // Only an image without a base names suites.
            assert_eq!(recipe.suites.is_empty(), recipe.base.is_some(), "{}", entry.path().display());
            if let Some(base) = &recipe.base {
                read_recipe(&recipe_folder(base)?)?;
            }
            let provision = entry.path().join("provision");
            assert!(!provision.exists() || is_executable(&provision)?);
        }
        Ok(())
    }
}
