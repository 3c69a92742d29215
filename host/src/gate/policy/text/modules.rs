//! Settings of the kernel and of PAM that name a program which root then runs: `kernel.core_pattern`, modprobe's
//! `install`, `pam_exec.so`.

use super::programs::is_loose;
use super::words::{joined, lines, word};
use super::{Code, shown};

/// Settings whose value is a program's path.
const HELPERS: [&str; 5] = [
    "kernel.modprobe",
    "kernel.hotplug",
    "kernel.poweroff_cmd",
    "kernel.request-key",
    "kernel.usermodehelper",
];
const CORE_PATTERN: &str = "kernel.core_pattern";

/// What the kernel is told to run.
pub fn sysctl(text: &str) -> Code {
    let mut code = Code::default();
    for (number, line) in lines(text) {
        let line = line.trim_matches([' ', '\t']);
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().trim_start_matches('-').trim_start().replace('/', ".");
        let value = value.trim();
        let at = format!("{key}, line {number}");
        let command = value.strip_prefix('|');
        let argv = |command: &str| {
            command.split([' ', '\t']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        if key.contains(['*', '?', '[']) {
            // Which settings it means, only the kernel's own list tells.
            if value.starts_with(['|', '/']) {
                code.gives(format_args!("may name a program that the kernel runs: `{}`, {at}", shown(value)));
            }
        } else if key == CORE_PATTERN {
            if let Some(command) = command {
                code.run(argv(command), at, None);
            }
        } else if HELPERS.contains(&key.as_str()) && !value.is_empty() {
            code.run(argv(value), at, None);
        }
    }
    code
}

/// What modprobe runs in place of loading a module.
pub fn modprobe(text: &str) -> Code {
    let mut code = Code::default();
    for (number, line) in joined(text) {
        let mut rest = line.as_str();
        let Some(key) = word(&mut rest) else { continue };
        match key {
            "install" | "remove" => {
                let module = word(&mut rest).unwrap_or_default().to_owned();
                code.shell(rest, format_args!("{key} {}, line {number}", shown(&module)), None);
            }
            "include" if is_loose(rest) => {
                let what = "which others than root may write";
                code.gives(format_args!("takes settings from {}, {what}, line {number}", shown(rest)));
            }
            _ => {}
        }
    }
    code
}

/// What PAM runs, and whom it lets in.
pub fn pam(text: &str, one_service: bool) -> Code {
    let mut code = Code::default();
    for (number, line) in joined(text) {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = pam_words(line);
        if !one_service && !words.is_empty() {
            words.remove(0);
        }
        let [_, control, module, arguments @ ..] = words.as_slice() else { continue };
        let at = format!("line {number}");
        if module.contains('/') && is_loose(module) {
            code.gives(format_args!("loads {}, which others than root may write, {at}", shown(module)));
        }
        match super::programs::name(module) {
            "pam_exec.so" => {
                const OPTIONS: [&str; 7] =
                    ["debug", "expose_authtok", "seteuid", "quiet", "quiet_log", "stdout", "use_first_pass"];
                let is_option = |word: &&String| {
                    OPTIONS.contains(&word.as_str()) || word.starts_with("log=") || word.starts_with("type=")
                };
                let argv = arguments.iter().skip_while(is_option).cloned().collect();
                code.run(argv, format_args!("pam_exec.so, {at}"), None);
            }
            "pam_script.so" | "pam_python.so" | "pam_perl.so" => {
                code.cannot_read(format!("a script of {}, {at}", shown(module)));
            }
            // Debian has `required` ones, behind those that decide.
            "pam_permit.so" if control == "sufficient" || control.contains("=done") => {
                code.gives(format_args!("lets anybody in without a password (pam_permit.so), {at}"));
            }
            _ => {}
        }
    }
    code
}

/// Words; in brackets are several, `\]` being one of theirs.
fn pam_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let mut word = String::new();
        let mut end = rest.len();
        let mut characters = rest.char_indices().skip(usize::from(first == '['));
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' if first == '[' => word.extend(characters.next().map(|(_, escaped)| escaped)),
                ']' if first == '[' => {
                    end = at + 1;
                    break;
                }
                ' ' | '\t' | '\r' if first != '[' => {
                    end = at;
                    break;
                }
                other => word.push(other),
            }
        }
        words.push(word);
        rest = rest[end..].trim_start();
    }
    words
}
