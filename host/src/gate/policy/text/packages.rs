//! apt's and dpkg's settings: hooks in them are run as root with each package.

use super::words::lines;
use super::{Code, shown};

/// Parts of names whose value is a command, a program's place, or more settings. apt's names may be written in scopes,
/// and without regard to case: any of them, anywhere, is enough.
const RUNS: [&str; 16] = [
    "invoke",
    "install-pkgs",
    "dir::",
    "dir{",
    "dir {",
    "dir\"",
    "::bin",
    "bin{",
    "bin {",
    "options",
    "auto-detect",
    "autodetect",
    "include",
    "hook",
    "compressor",
    "solver",
];
/// Settings with which a package may come from anybody.
const TRUSTS: [&str; 6] = [
    "allowunauthenticated",
    "allow-insecure",
    "allowinsecurerepositories",
    "allowweakrepositories",
    "verify-peer",
    "verify-host",
];

/// What apt runs beside its own.
pub fn apt(text: &str) -> Code {
    let mut code = Code::default();
    for (number, line) in lines(text) {
        let line = line.trim();
        let is_directive = ["#include", "#clear", "#x-"].iter().any(|directive| line.starts_with(directive));
        if line.starts_with("//") || (line.starts_with('#') && !is_directive) {
            continue;
        }
        let small = line.to_ascii_lowercase();
        if RUNS.iter().any(|part| small.contains(part)) {
            code.cannot_read(format!(
                "settings that name a command or its place: `{}`, line {number}",
                shown(line)
            ));
        }
        if TRUSTS.iter().any(|part| small.contains(part)) {
            code.gives(format_args!("has apt trust what nobody signed: `{}`, line {number}", shown(line)));
        }
    }
    code
}

/// What dpkg runs beside its own: options without their dashes, one a line.
pub fn dpkg(text: &str) -> Code {
    const COMMANDS: [&str; 3] = ["pre-invoke", "post-invoke", "status-logger"];
    const PLACES: [&str; 3] = ["root", "instdir", "admindir"];
    let mut code = Code::default();
    for (number, line) in lines(text) {
        let line = line.trim().trim_start_matches("--");
        let (key, value) = line.split_once(['=', ' ', '\t']).unwrap_or((line, ""));
        let value = value.trim().trim_matches(['"', '\'']);
        if COMMANDS.contains(&key) {
            code.shell(value, format_args!("{key}, line {number}"), None);
        } else if PLACES.contains(&key) || key.starts_with("force") {
            code.gives(format_args!(
                "has dpkg do without a check, or elsewhere: `{}`, line {number}",
                shown(line)
            ));
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_without_commands_are_read() {
        let harmless = "// Pre-Invoke\nAPT::Periodic::Update-Package-Lists \"1\";\nAPT { Periodic { Unattended-Upgrade \"1\"; }; };\n";
        assert_eq!(apt(harmless), Code::default());
        for text in [
            "DPkg::Post-Invoke {\"x\";};",
            "DPkg { Pre-Install-Pkgs { \"x\"; }; };",
            "dpkg::POST-INVOKE:: \"x\";",
            "Dir::Bin::dpkg \"/x\";",
            "Dir { Bin { dpkg \"/x\"; }; };",
            "#include \"/x\";",
            "DPkg::Options:: \"--force-all\";",
            "Acquire::http::Proxy-Auto-Detect \"/x\";",
        ] {
            assert!(apt(text).unreadable.is_some(), "{text}");
        }
        assert_eq!(apt("APT::Get::AllowUnauthenticated \"true\";").power.len(), 1);
    }

    #[test]
    fn dpkgs_hooks_are_a_shells() {
        let code = dpkg("# x\nno-debsig\nlog /var/log/dpkg.log\npost-invoke=\"a b\"\npre-invoke c\n");
        let found: Vec<_> = code.lines.iter().filter_map(|line| line.shell.as_deref()).collect();
        assert_eq!((found, code.power.len()), (vec!["a b", "c"], 0));
        assert_eq!(dpkg("force-all\n").power.len(), 1);
    }
}
