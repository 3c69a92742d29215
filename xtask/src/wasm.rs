//! Finds a toolchain that builds WebAssembly components (the target wasm32-wasip2).
//!
//! It takes rustup's toolchain where the target is installed or can be added. Otherwise it takes Debian's rustc, which comes
//! with the sources of std and with wasi-libc, and links by wasm-component-ld and wasm-ld of the rustup toolchain.

use crate::apt::{self, Need};
use crate::{cmd, workspace};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(crate) const TARGET: &str = "wasm32-wasip2";
/// The variable that forces one of the toolchains: `rustup` or `debian`.
const CHOICE: &str = "XTASK_WASM_TOOLCHAIN";
/// The time after which a download is given up, since some networks drop it without an error.
const ADD_TIMEOUT: Duration = Duration::from_secs(120);

/// The flags of every component. Its heap is there at once, because a memory that grows costs each call two changes of the
/// mapping. The search for bytes in text works on 16 of them at a time.
const FLAGS: &str = "-C link-arg=--initial-heap=1048576 -C target-feature=+simd128";

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_STD: &str = "/usr/lib/rustlib/src";
const DEBIAN_LIBC: &str = "/usr/lib/wasm32-wasi";
const DEBIAN_NEEDS: [Need; 3] = [
    Need::new("/usr/share/doc/rustc-web", "rustc-web"),
    Need::new("/usr/share/doc/rust-web-src", "rust-web-src"),
    Need::new("/usr/lib/wasm32-wasi/libc.a", "wasi-libc"),
];

/// A toolchain that builds components.
#[derive(Debug)]
pub(crate) enum Toolchain {
    Rustup,
    /// The rustup toolchain's folder with wasm-component-ld and gcc-ld/wasm-ld.
    Debian {
        linkers: PathBuf,
    },
}

impl Toolchain {
    /// Adds the target and everything else that this toolchain needs to a cargo call, with further flags of the compiler.
    pub(crate) fn apply(&self, cargo: &mut Command, more: &[String]) {
        cargo.args(["--target", TARGET]);
        let flags = [&[FLAGS.to_owned()][..], more].concat().join(" ");
        let Toolchain::Debian { linkers } = self else {
            cargo.env("CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS", flags);
            return;
        };
        cargo.arg("-Zbuild-std=std,panic_abort");
        cargo.env_remove("CARGO_ENCODED_RUSTFLAGS").envs(debian_environment(linkers, &flags));
    }
}

/// Finds the first toolchain that works, in the order above, and prints its name.
pub(crate) fn find() -> Result<Toolchain> {
    let choice = std::env::var(CHOICE).unwrap_or_default();
    match choice.as_str() {
        "" => {}
        "rustup" | "debian" => eprintln!("xtask: {CHOICE}={choice}"),
        other => bail!("{CHOICE} is `{other}`; it may be `rustup` or `debian`"),
    }
    let mut refusals = Vec::new();
    if choice != "debian" {
        match ensure_target(TARGET) {
            Ok(how) => {
                eprintln!("xtask: components are built by rustup's {TARGET} ({how})");
                return Ok(Toolchain::Rustup);
            }
            Err(why) => refusals.push(format!("rustup: {why:#}")),
        }
    }
    if choice != "rustup" {
        match debian() {
            Ok(toolchain) => {
                eprintln!("xtask: components are built by Debian's rustc and its std sources");
                return Ok(toolchain);
            }
            Err(why) => refusals.push(format!("Debian's compiler: {why:#}")),
        }
    }
    bail!(
        "no toolchain for {TARGET} works here:\n  {}\nRemedy: `rustup target add {TARGET}`, or on Debian `apt-get install {}`",
        refusals.join("\n  "),
        DEBIAN_NEEDS.iter().map(|need| need.package.as_ref()).collect::<Vec<_>>().join(" ")
    )
}

/// Whether rustup's target for components is installed. Nothing is fetched.
pub(crate) fn rustup_target_is_installed() -> bool {
    is_installed(TARGET)
}

fn is_installed(target: &str) -> bool {
    cmd::output(Command::new("rustup").args(["target", "list", "--installed"]))
        .is_ok_and(|list| list.lines().any(|line| line.trim() == target))
}

/// Has rustup add a target where it is missing, and says how it comes to be there.
pub(crate) fn ensure_target(target: &str) -> Result<&'static str> {
    if cmd::find_program("rustup").is_none() {
        bail!("there is no rustup");
    }
    if is_installed(target) {
        return Ok("installed");
    }
    eprintln!("xtask: rustup target add {target} (at most {} s)", ADD_TIMEOUT.as_secs());
    let mut add = Command::new("rustup");
    add.args(["target", "add", target]).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = add.spawn().context("cannot start rustup")?;
    let deadline = Instant::now() + ADD_TIMEOUT;
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok("added just now"),
            Some(status) => bail!("`{}` ended with {status}", cmd::describe(&add)),
            None if Instant::now() > deadline => {
                child.kill().ok();
                child.wait().ok();
                bail!("`{}` took more than {} s", cmd::describe(&add), ADD_TIMEOUT.as_secs());
            }
            None => sleep(Duration::from_millis(100)),
        }
    }
}

fn debian() -> Result<Toolchain> {
    // Where apt doesn't know the packages, its own error would be about package names and not about Rust.
    if cmd::is_root() && cmd::find_program("apt-get").is_some() {
        if !apt::knows("rustc-web") {
            apt::update_once();
        }
        if !apt::knows("rustc-web") {
            bail!("apt knows no rustc-web (Debian has it)");
        }
    }
    apt::ensure("components without rustup's target", &DEBIAN_NEEDS)?;
    if !Path::new(DEBIAN_STD).is_dir() {
        bail!("rust-web-src has no {DEBIAN_STD}");
    }
    let linkers = linkers()?;
    for tool in ["wasm-component-ld", "gcc-ld/wasm-ld"] {
        if !linkers.join(tool).exists() {
            bail!(
                "{} is missing; the toolchain that runs cargo must be rustup's",
                linkers.join(tool).display()
            );
        }
    }
    Ok(Toolchain::Debian { linkers })
}

/// The folder of the linkers that rustc brings.
pub(crate) fn linkers() -> Result<PathBuf> {
    let sysroot = cmd::output(workspace::rustc().args(["--print", "sysroot"]))?;
    let verbose = cmd::output(workspace::rustc().arg("-vV"))?;
    let host = parse_host(&verbose).context("rustc -vV names no host")?;
    Ok(Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("bin"))
}

fn debian_environment(linkers: &Path, flags: &str) -> [(&'static str, String); 4] {
    let ld = linkers.join("gcc-ld/wasm-ld");
    [
        ("RUSTC", DEBIAN_RUSTC.to_owned()),
        // A stable compiler accepts -Zbuild-std only with this variable.
        ("RUSTC_BOOTSTRAP", "1".to_owned()),
        ("CARGO_TARGET_WASM32_WASIP2_LINKER", linkers.join("wasm-component-ld").display().to_string()),
        // Because of --target these flags reach no build script. Without the second one, wasm-component-ld looks for wasm-ld
        // beside Debian's rustc, where there is none.
        ("RUSTFLAGS", format!("{flags} -L native={DEBIAN_LIBC} -C link-arg=--wasm-ld-path={}", ld.display())),
    ]
}

fn parse_host(verbose: &str) -> Option<&str> {
    verbose.lines().find_map(|line| line.strip_prefix("host: ")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_from_rustcs_version() {
        assert_eq!(
            parse_host("rustc 1.95.0\nhost: x86_64-unknown-linux-gnu\n"),
            Some("x86_64-unknown-linux-gnu")
        );
        assert_eq!(parse_host("rustc 1.95.0\n"), None);
    }

    #[test]
    fn debians_rustc_is_told_where_the_linker_is() {
        let environment = debian_environment(Path::new("/t/bin"), FLAGS);
        let flags = &environment[3].1;
        assert!(flags.ends_with("--wasm-ld-path=/t/bin/gcc-ld/wasm-ld"), "{flags}");
    }
}
