//! git's settings: those that name a command which the next `git` in the repository runs, whoever's it is.

use super::programs::is_loose;
use super::words::joined;
use super::{Code, shown};

/// Section and key in small letters; in between, any subsection.
const COMMANDS: [(&str, &str); 40] = [
    ("core", "sshcommand"),
    ("core", "editor"),
    ("core", "pager"),
    ("core", "askpass"),
    ("core", "gitproxy"),
    ("core", "alternaterefscommand"),
    ("sequence", "editor"),
    ("filter", "clean"),
    ("filter", "smudge"),
    ("filter", "process"),
    ("diff", "external"),
    ("diff", "command"),
    ("diff", "textconv"),
    ("merge", "driver"),
    ("mergetool", "cmd"),
    ("mergetool", "path"),
    ("difftool", "cmd"),
    ("difftool", "path"),
    ("gpg", "program"),
    ("gpg", "defaultkeycommand"),
    ("uploadpack", "packobjectshook"),
    ("remote", "uploadpack"),
    ("remote", "receivepack"),
    ("remote", "vcs"),
    ("interactive", "difffilter"),
    ("man", "cmd"),
    ("man", "path"),
    ("browser", "cmd"),
    ("browser", "path"),
    ("guitool", "cmd"),
    ("trailer", "command"),
    ("trailer", "cmd"),
    ("tar", "command"),
    ("sendemail", "smtpserver"),
    ("sendemail", "sendmailcmd"),
    ("sendemail", "tocmd"),
    ("sendemail", "cccmd"),
    ("sendemail", "headercmd"),
    ("instaweb", "httpd"),
    ("hook", "command"),
];

/// What a `git` with these settings runs.
pub fn read(text: &str, user: Option<&str>) -> Code {
    let mut code = Code::default();
    let mut section = String::new();
    for (number, line) in joined(text) {
        let mut line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            // Another setting may stand on the same line.
            let end = end_of_header(header);
            let name = &header[..end];
            let end_of_name = name.find(['.', ' ', '\t', '"']).unwrap_or(name.len());
            section = name[..end_of_name].to_ascii_lowercase();
            line = header.get(end + 1..).unwrap_or_default().trim();
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = key.trim().to_ascii_lowercase();
        let value = unquoted(value.trim());
        let at = format!("{section}.{}, line {number}", shown(&key));
        let is_switch = ["", "true", "false", "yes", "no", "on", "off", "0", "1"].contains(&value.as_str());
        match (section.as_str(), key.as_str()) {
            ("core", "fsmonitor") if is_switch => {}
            ("core", "fsmonitor") => code.shell(&value, at, user),
            ("core", "hookspath") | ("init", "templatedir") => {
                code.gives(format_args!("has git run the hooks in {}, {at}", shown(&value)));
            }
            ("alias" | "credential" | "submodule", _) => {
                if let Some(command) = value.strip_prefix('!') {
                    code.shell(command, at, user);
                } else if section == "credential" && key == "helper" && value.starts_with('/') {
                    code.shell(&value, at, user);
                }
            }
            ("pager", _) if !is_switch => code.shell(&value, at, user),
            ("include" | "includeif", "path") if is_loose(&value) && value.starts_with('/') => {
                code.gives(format_args!("takes settings from {}, {at}", shown(&value)));
            }
            ("protocol", "allow") if value == "always" => {
                code.gives(format_args!("lets an address run any command (ext::), {at}"));
            }
            ("remote" | "url", _) if value.starts_with("ext::") => {
                code.shell(&value["ext::".len()..], at, user)
            }
            pair if COMMANDS.contains(&pair) => code.shell(&value, at, user),
            _ => {}
        }
    }
    code
}

/// Where its bracket is, or its end.
fn end_of_header(header: &str) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (at, character) in header.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return at,
            _ => {}
        }
    }
    header.len()
}

/// Without quotes, escapes and the comment behind it.
fn unquoted(value: &str) -> String {
    let mut found = String::with_capacity(value.len());
    let mut quoted = false;
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted = !quoted,
            '\\' => match characters.next() {
                Some('n') => found.push('\n'),
                Some('t') => found.push('\t'),
                Some(other) => found.push(other),
                None => {}
            },
            '#' | ';' if !quoted => break,
            other => found.push(other),
        }
    }
    found.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_names_a_command_is_found() {
        let harmless = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tfsmonitor = true\n[remote \"origin\"]\n\turl = https://example.com/a.git\n[alias]\n\tst = status\n[credential]\n\thelper = cache\n";
        assert_eq!(read(harmless, None), Code::default());
        let table = [
            ("[core]\nfsmonitor = /tmp/x", "/tmp/x"),
            ("[CORE]\n\tsshCommand = \"sh -c \\\"x\\\"\" # c", "sh -c \"x\""),
            ("[core] pager = x", "x"),
            ("[alias]\nst = !x y", "x y"),
            ("[filter \"a]b\"]\nsmudge = x", "x"),
            ("[filter.lfs]\nclean = x", "x"),
            ("[core]\nedi\\\ntor = x", "x"),
            ("[remote \"o\"]\nurl = ext::x %S", "x %S"),
            ("[credential]\nhelper = !x", "x"),
        ];
        for (text, expected) in table {
            let code = read(text, None);
            let found: Vec<_> = code.lines.iter().filter_map(|line| line.shell.as_deref()).collect();
            assert_eq!(found, [expected], "{text}");
        }
        assert_eq!(read("[core]\nhooksPath = /srv/hooks", None).power.len(), 1);
    }
}
