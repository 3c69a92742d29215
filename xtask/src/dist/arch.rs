//! The processors for which the program is built. Each build is one static program, which runs on every distribution.

use crate::apt::{self, Need};
use crate::{cmd, wasm};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// A processor, by the name that the kernel has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Arch {
    #[value(name = "x86_64")]
    X86,
    #[value(name = "aarch64")]
    Arm,
}

impl Arch {
    pub(super) const ALL: [Arch; 2] = [Arch::X86, Arch::Arm];

    /// The name that the kernel, rpm and files have for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Arch::X86 => "x86_64",
            Arch::Arm => "aarch64",
        }
    }

    /// Debian's name.
    pub(super) fn of_debian(self) -> &'static str {
        match self {
            Arch::X86 => "amd64",
            Arch::Arm => "arm64",
        }
    }

    /// The target of rustc. musl's C library can be linked statically, which glibc's can't in a program that looks up names.
    pub(super) fn triple(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }

    /// Whether this machine has this processor.
    pub(super) fn is_native(self) -> bool {
        std::env::consts::ARCH == self.name()
    }

    /// The C compiler. Some crates have parts in C and assembler.
    fn compiler(self) -> String {
        match self.is_native() {
            true => "musl-gcc".to_owned(),
            false => format!("{}-linux-gnu-gcc", self.name()),
        }
    }

    /// The C compiler that links. musl's own parts come with the target.
    pub(super) fn linker(self) -> String {
        if self.is_native() { "cc".to_owned() } else { self.compiler() }
    }

    /// What the build needs. Debian's cross compilers come without the headers of a C library.
    fn needs(self) -> Vec<Need> {
        if self.is_native() {
            return vec![Need::new("musl-gcc", "musl-tools")];
        }
        let headers = format!("/usr/{}-linux-gnu/include/string.h", self.name());
        vec![
            Need::named(self.compiler(), format!("gcc-{}-linux-gnu", self.name().replace('_', "-"))),
            Need::named(headers, format!("libc6-dev-{}-cross", self.of_debian())),
        ]
    }

    /// Installs what the build needs, where it is missing.
    pub(super) fn prepare(self) -> Result<()> {
        apt::ensure("a static program", &self.needs())?;
        let triple = self.triple();
        wasm::ensure_target(&triple)
            .with_context(|| {
                format!("no build for {triple} without it; remedy: `rustup target add {triple}`")
            })
            .map(|_| ())
    }

    /// Adds the target, its C compiler and its linker to a cargo call.
    pub(super) fn apply(self, cargo: &mut Command) {
        let triple = self.triple();
        let variable = triple.replace('-', "_");
        cargo.args(["--target", &triple]).env(format!("CC_{variable}"), self.compiler());
        if !self.is_native() {
            cargo.env(format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()), self.linker());
        }
    }

    /// A call of a program that was built for this processor: by itself, or by qemu's emulation of a process. None where this
    /// machine can do neither.
    pub(super) fn command(self, program: &Path) -> Option<Command> {
        if self.is_native() {
            return Some(Command::new(program));
        }
        let emulator = format!("qemu-{}-static", self.name());
        let need = Need::named(emulator.clone(), "qemu-user-static".to_owned());
        if let Err(error) = apt::ensure("starting a program for another processor", &[need]) {
            eprintln!("xtask: {error:#}");
            return None;
        }
        let mut command = Command::new(cmd::find_program(&emulator)?);
        // The program reserves terabytes of addresses, of which qemu 7 keeps a table of every page. With less, the program
        // reserves what it needs for each call.
        command.args(["-R", "0x1000000000"]).arg(program);
        Some(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_processors_build_has_a_compiler_and_a_linker_of_its_own() {
        for arch in Arch::ALL {
            let mut cargo = Command::new("cargo");
            arch.apply(&mut cargo);
            let named = |wanted: &str| cargo.get_envs().any(|(name, _)| name.to_string_lossy() == wanted);
            let (name, upper) = (arch.name(), arch.name().to_uppercase());
            assert!(named(&format!("CC_{name}_unknown_linux_musl")), "{cargo:?}");
            let linker = format!("CARGO_TARGET_{upper}_UNKNOWN_LINUX_MUSL_LINKER");
            assert_eq!(named(&linker), !arch.is_native(), "{cargo:?}");
        }
    }
}
