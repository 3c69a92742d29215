//! Reads sudo's rules by the grammar of sudoers(5): the commands that users may run, and settings by which they may run more.
//!
//! Distributions let root and the groups of administrators run everything, so that is harmless. For all others it is power.

use std::collections::HashMap;

use super::format::not_root;
use super::harmless;
use super::words::{lines, unquoted};
use super::{Code, shown};

const ADMINISTRATORS: [&str; 4] = ["root", "%sudo", "%wheel", "%admin"];
/// Options before a command that have a value.
const OPTIONS: [&str; 10] = [
    "ROLE=",
    "TYPE=",
    "CWD=",
    "CHROOT=",
    "TIMEOUT=",
    "NOTBEFORE=",
    "NOTAFTER=",
    "APPARMOR_PROFILE=",
    "PRIVS=",
    "LIMITPRIVS=",
];
const DIGESTS: [&str; 4] = ["sha224:", "sha256:", "sha384:", "sha512:"];
/// The depth to which aliases may name aliases.
const MAX_DEPTH: usize = 8;

/// Finds the commands that users may run, and what gives them more.
pub fn read(text: &str) -> Code {
    let mut code = Code::default();
    let lines = joined(text);
    let mut aliases: HashMap<&str, Vec<String>> = HashMap::new();
    for (_, line) in &lines {
        let line = line.trim();
        let definition = ["Cmnd_Alias", "Cmd_Alias"].iter().find_map(|keyword| line.strip_prefix(keyword));
        for definition in definition.map(|text| split(text, ':')).unwrap_or_default() {
            if let Some((name, commands)) = definition.split_once('=') {
                let commands = split(commands, ',').into_iter().map(str::to_owned).collect();
                aliases.insert(name.trim(), commands);
            }
        }
    }
    let mut rules = RuleReader { aliases: &aliases, left: MAX_EXPANDED };
    for (number, line) in &lines {
        let line = line.trim();
        let keyword = line.split([' ', '\t']).next().unwrap_or_default();
        match keyword {
            "" | "Cmnd_Alias" | "Cmd_Alias" | "User_Alias" | "Runas_Alias" | "Host_Alias" => {}
            "@include" | "#include" | "@includedir" | "#includedir" => {
                let path = line[keyword.len()..].trim().trim_matches('"');
                code.add_power(format_args!("takes rules from {}, line {number}", shown(path)));
            }
            keyword if keyword.starts_with("Defaults") => {
                defaults(without_scope(&line["Defaults".len()..]), *number, &mut code);
            }
            _ => rules.rule(line, *number, &mut code),
        }
    }
    code
}

/// The lines, where a backslash at the end joins a line with the next one, each with the number of its first line. Blanks may
/// follow the backslash, another backslash escapes it, and a comment always ends with its line.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in lines(text) {
        let kept = without_comment(line);
        let body = if kept.len() == line.len() { line.trim_end_matches([' ', '\t']) } else { "" };
        let ends = body.len() - body.trim_end_matches('\\').len();
        let part = if ends % 2 == 1 { &body[..body.len() - 1] } else { kept };
        match found.last_mut() {
            Some((_, whole)) if goes_on => whole.extend([" ", part]),
            _ => found.push((number, part.to_owned())),
        }
        goes_on = ends % 2 == 1;
    }
    found
}

/// The number of commands that aliases may stand for in all. An alias can be named any number of times.
const MAX_EXPANDED: usize = 10_000;

struct RuleReader<'a> {
    aliases: &'a HashMap<&'a str, Vec<String>>,
    left: usize,
}

/// The tags before a command. They also hold for the commands behind it, until one changes them.
#[derive(Default)]
struct Tags {
    run_as: String,
    no_password: bool,
    sets_variables: bool,
    chroot: bool,
}

impl RuleReader<'_> {
    fn rule(&mut self, line: &str, number: usize, code: &mut Code) {
        let Some((left, right)) = split_once(line, '=') else {
            return code.cannot_read(format!(
                "sudoers with a line that is no rule: `{}`, line {number}",
                shown(line)
            ));
        };
        let Some(who) = users(left) else {
            return code
                .cannot_read(format!("a rule without its users or hosts: `{}`, line {number}", shown(line)));
        };
        let mut tags = Tags::default();
        for part in split(right, ',') {
            let Some(command) = tags.read(part) else {
                let why = "a rule that isn't read here";
                return code.cannot_read(format!("{why}: `{}`, line {number}", shown(part)));
            };
            self.command(&who, &tags, command, number, MAX_DEPTH, code);
        }
    }

    fn command(
        &mut self,
        who: &str,
        tags: &Tags,
        command: &str,
        number: usize,
        depth: usize,
        code: &mut Code,
    ) {
        let command = command.trim();
        let commands = self.aliases.get(command).filter(|_| command != "ALL");
        if let Some(commands) = commands {
            if depth == 0 || self.left < commands.len() {
                return code.cannot_read(format!("aliases for too much, line {number}"));
            }
            self.left -= commands.len();
            for command in commands {
                self.command(who, tags, command, number, depth - 1, code);
            }
            return;
        }
        // `!` takes a command away.
        if command.starts_with('!') {
            return;
        }
        tags.judge(who, command, number, code);
    }
}

impl Tags {
    /// Reads the tags before a command, and gives the command; `None` where they are not understood.
    fn read<'a>(&mut self, part: &'a str) -> Option<&'a str> {
        let mut rest = part.trim();
        if let Some(inner) = rest.strip_prefix('(') {
            let (run_as, behind) = inner.split_once(')')?;
            self.run_as = run_as.split(':').next().unwrap_or_default().trim().to_owned();
            rest = behind.trim_start();
        }
        loop {
            if OPTIONS.iter().any(|option| rest.starts_with(option)) {
                self.chroot |= rest.starts_with("CHROOT=");
                rest = rest.split_once([' ', '\t'])?.1.trim_start();
                continue;
            }
            let Some((tag, behind)) = rest.split_once(':') else { break };
            let tag = tag.trim_end();
            if tag.is_empty() || !tag.chars().all(|c| c.is_ascii_uppercase() || c == '_') {
                break;
            }
            match tag {
                "NOPASSWD" => self.no_password = true,
                "PASSWD" => self.no_password = false,
                "SETENV" => self.sets_variables = true,
                "NOSETENV" => self.sets_variables = false,
                "EXEC" | "NOEXEC" | "FOLLOW" | "NOFOLLOW" | "MAIL" | "NOMAIL" | "INTERCEPT"
                | "NOINTERCEPT" | "LOG_INPUT" | "NOLOG_INPUT" | "LOG_OUTPUT" | "NOLOG_OUTPUT" => {}
                _ => return None,
            }
            rest = behind.trim_start();
        }
        if let Some(digest) = DIGESTS.iter().find_map(|digest| rest.strip_prefix(digest)) {
            rest = digest.trim_start().split_once([' ', '\t'])?.1.trim_start();
        }
        // A colon would begin another rule.
        let is_more = split_once(rest, ':').is_some();
        (!rest.is_empty() && !is_more).then_some(rest)
    }

    fn judge(&self, who: &str, command: &str, number: usize, code: &mut Code) {
        let is_administrators = ADMINISTRATORS.contains(&who);
        if who == "root" || (is_administrators && !self.no_password && !self.sets_variables && !self.chroot) {
            return;
        }
        let at = format!("line {number}");
        let run_as = if self.run_as.is_empty() { "root" } else { &self.run_as };
        let as_whom = format!("as {}", if run_as == "ALL" { "root" } else { run_as });
        let (program, arguments) = command.split_once([' ', '\t']).unwrap_or((command, ""));
        let arguments = arguments.trim();
        let what = if command == "ALL" { "everything".to_owned() } else { format!("`{}`", shown(command)) };
        let mut how = Vec::new();
        let is_open = ["*", "?", "["].iter().any(|wild| command.contains(wild))
            || command.split([' ', '\t']).any(|word| word.starts_with('^') || word.ends_with('\\'))
            || program.ends_with('/')
            || !(program.starts_with('/') || matches!(program, "ALL" | "sudoedit" | "list"));
        if command != "ALL" && is_open {
            how.push("whatever that matches");
        } else if command != "ALL" && arguments.is_empty() {
            how.push("with any arguments");
        }
        if self.no_password {
            how.push("without a password (NOPASSWD)");
        }
        if self.sets_variables {
            how.push("with variables of their own (SETENV)");
        }
        if self.chroot {
            how.push("in another root directory (CHROOT)");
        }
        if command == "ALL" || !how.is_empty() {
            let how = how.iter().map(|how| format!(", {how}")).collect::<String>();
            code.add_power(format_args!("lets {} run {what} {as_whom}{how}, {at}", shown(who)));
        }
        if command == "ALL" || is_open {
            return;
        }
        let mut argv = vec![unescaped(program)];
        match unquoted(arguments) {
            // Two quotes alone mean that the command takes no argument.
            Some(words) if arguments != "\"\"" => argv.extend(words),
            Some(_) => {}
            None => return code.cannot_read(format!("a command that isn't read here: {what}, {at}")),
        }
        // A list or an alias may include root.
        let is_one =
            !run_as.contains([',', '!', '#', '%']) && run_as.contains(|c: char| c.is_ascii_lowercase());
        code.run(argv, at, not_root(run_as).filter(|_| is_one).as_deref());
    }
}

/// The settings without the list of users, hosts or commands that they are for.
fn without_scope(text: &str) -> &str {
    let Some(list) = text.strip_prefix(['@', ':', '!', '>']) else { return text };
    let mut rest = list.trim_start();
    loop {
        // Blanks around commas don't end the list.
        let quoted = rest.strip_prefix('"').and_then(|inner| inner.split_once('"')).map(|(_, behind)| behind);
        let behind = quoted.unwrap_or_else(|| {
            let end = rest.find([' ', '\t', ',']).unwrap_or(rest.len());
            &rest[end..]
        });
        let behind = behind.trim_start();
        match behind.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None => return behind,
        }
    }
}

/// The settings that give nobody more than the rules do.
const HARMLESS: [&str; 23] = [
    "env_reset",
    "mail_badpass",
    "mail_no_user",
    "mail_no_host",
    "mail_no_perms",
    "use_pty",
    "requiretty",
    "visiblepw",
    "insults",
    "lecture",
    "pwfeedback",
    "passwd_tries",
    "passwd_timeout",
    "badpass_message",
    "log_input",
    "log_output",
    "log_year",
    "log_host",
    "always_set_home",
    "set_home",
    "match_group_by_gid",
    "umask",
    "fqdn",
];
/// The settings that must not be switched off with `!`.
const MUST_STAY: [&str; 2] = ["env_reset", "use_pty"];
/// The longest harmless time, in minutes, for which sudo doesn't ask for the password again.
const MAX_MINUTES: f32 = 60.0;

fn defaults(settings: &str, number: usize, code: &mut Code) {
    for setting in split(settings, ',').into_iter().map(str::trim).filter(|setting| !setting.is_empty()) {
        let end =
            setting.find(|c: char| !c.is_ascii_alphanumeric() && !"_!".contains(c)).unwrap_or(setting.len());
        let (key, value) = setting.split_at(end);
        let value = value.trim_start_matches([' ', '\t', '+', '-', '=']).trim_matches('"');
        let at = format!("{}, line {number}", shown(key));
        let is_harmless = match (key.strip_prefix('!'), key) {
            (Some(key), _) => HARMLESS.contains(&key) && !MUST_STAY.contains(&key),
            (None, "secure_path") => harmless::variable("PATH", Some(value)),
            (None, "env_keep" | "env_check") => {
                value.split([' ', '\t']).all(|name| harmless::variable(name, None))
            }
            (None, "timestamp_timeout") => {
                !setting.contains('-') && value.parse().is_ok_and(|minutes: f32| minutes <= MAX_MINUTES)
            }
            (None, key) => HARMLESS.contains(&key),
        };
        if !is_harmless {
            code.add_power(format_args!("sets `{}`, which isn't known to be harmless, {at}", shown(setting)));
        }
    }
}

/// The users of a rule; the hosts behind them are left out. `None` where one of them is missing.
fn users(left: &str) -> Option<String> {
    let mut text = String::new();
    // Blanks around commas don't separate users from hosts.
    for part in split(left, ',') {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(part.trim());
    }
    let at = text.trim().rfind([' ', '\t'])?;
    Some(text[..at].trim().to_owned())
}

fn unescaped(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        found.push(if character == '\\' { characters.next().unwrap_or('\\') } else { character });
    }
    found
}

/// The line without its comment. A number sign before digits is an account's number; it may also be escaped or quoted.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with("#include") {
        return line;
    }
    let mut before = ' ';
    let mut quoted = false;
    for (at, character) in line.char_indices() {
        quoted ^= character == '"';
        if character == '#'
            && before != '\\'
            && !quoted
            && !line[at + 1..].starts_with(|c: char| c.is_ascii_digit())
        {
            return line[..at].trim_end();
        }
        before = character;
    }
    line
}

/// Splits the text at a separator that is neither escaped, nor quoted, nor in parentheses.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((part, behind)) = split_once(rest, separator) {
        parts.push(part);
        rest = behind;
    }
    parts.push(rest);
    parts
}

fn split_once(text: &str, separator: char) -> Option<(&str, &str)> {
    let mut quoted = false;
    let mut escaped = false;
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            _ if character == separator && !quoted && depth == 0 => {
                return Some((&text[..at], &text[at + character.len_utf8()..]));
            }
            _ => {}
        }
    }
    None
}
