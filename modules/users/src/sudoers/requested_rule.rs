//! A rule that the caller gives, and its line in sudoers.

use linux_sysadmin_sdk::accounts::{check_group, check_user};
use linux_sysadmin_sdk::prelude::*;

use crate::validate::{self, shown};

use super::parse::{Allowed, Line, Rule};

/// Special characters of sudo. A command may not have them, because they match more than a reader of the rule sees.
const MARKS: [char; 12] = ['*', '?', '[', ']', '!', '^', '$', '\\', '"', '\'', '`', '#'];

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleArgs {
    /// Account; %name is a group
    user: String,
    /// Default ALL
    hosts: Option<String>,
    /// Default ALL
    runas: Option<String>,
    /// Absolute, or ALL
    commands: Option<Vec<String>>,
    /// Without a password
    nopasswd: Option<bool>,
    /// Comment above it
    comment: Option<String>,
}

/// A rule after its fields were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestedRule {
    pub(crate) user: String,
    pub(crate) hosts: Option<String>,
    pub(crate) runas: Option<String>,
    pub(crate) commands: Option<Vec<String>>,
    pub(crate) nopasswd: Option<bool>,
    pub(crate) comment: Option<String>,
}

impl RuleArgs {
    pub(crate) fn check(self) -> Result<RequestedRule> {
        match self.user.strip_prefix('%') {
            Some(group) => check_group(group)?,
            None if self.user == "ALL" => {
                let message = "user ALL is everybody: expected one account, or a group as %name";
                return Err(Problem::validation("INVALID_USER", message));
            }
            None => check_user(&self.user)?,
        }
        if is_keyword(&self.user) {
            let message =
                format!("{} is a word of sudoers, or looks like an alias: expected an account", self.user);
            return Err(Problem::validation("INVALID_USER", message));
        }
        if let Some(hosts) = &self.hosts
            && !is_host(hosts)
        {
            let message = format!("{} is no host of a rule: expected ALL or one host's name", shown(hosts));
            return Err(Problem::validation("INVALID_HOSTS", message));
        }
        if let Some(runas) = &self.runas
            && !is_runas(runas)
        {
            let message = format!(
                "{} is nobody as whom commands can be run: expected ALL, a user, :group or user:group",
                shown(runas)
            );
            return Err(Problem::validation("INVALID_RUNAS", message));
        }
        let commands = self.commands.map(|commands| commands.iter().map(|command| read(command)).collect());
        let commands: Option<Vec<String>> = commands.transpose()?;
        if commands.as_ref().is_some_and(Vec::is_empty) {
            return Err(Problem::validation(
                "INVALID_COMMAND",
                "commands is empty: expected what may be run",
            ));
        }
        Ok(RequestedRule {
            user: self.user,
            hosts: self.hosts,
            runas: self.runas,
            commands,
            nopasswd: self.nopasswd,
            comment: self
                .comment
                .map(|comment| one_line(&comment))
                .transpose()?
                .filter(|text| !text.is_empty()),
        })
    }
}

impl RequestedRule {
    fn hosts(&self) -> &str {
        self.hosts.as_deref().unwrap_or("ALL")
    }

    fn runas(&self) -> &str {
        self.runas.as_deref().unwrap_or("ALL")
    }

    pub(crate) fn commands(&self) -> &[String] {
        self.commands.as_deref().unwrap_or_default()
    }

    pub(crate) fn asks_nobody(&self) -> bool {
        self.nopasswd.unwrap_or_default()
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.commands().iter().any(|command| command == "ALL")
    }

    /// The line of the rule, without its end.
    pub(crate) fn line(&self) -> String {
        let commands: Vec<String> = self.commands().iter().map(|command| escaped(command)).collect();
        let tag = if self.asks_nobody() { "NOPASSWD: " } else { "" };
        let comment = self.comment.as_ref().map(|text| format!(" # {text}")).unwrap_or_default();
        format!("{} {}=({}) {tag}{}{comment}", self.user, self.hosts(), self.runas(), commands.join(", "))
    }

    /// Whether a rule is for the same user and has every given field.
    pub(crate) fn fits(&self, rule: &Rule) -> bool {
        let commands = |given: &Vec<String>| {
            let own = rule.commands.iter().map(|allowed| allowed.command.as_str()).collect::<Vec<_>>();
            given.len() == own.len() && given.iter().all(|command| own.contains(&escaped(command).as_str()))
        };
        self.is_users(rule) && self.is_placed_as(rule) && self.commands.as_ref().is_none_or(commands)
    }

    /// Whether a rule is for this user alone.
    pub(crate) fn is_users(&self, rule: &Rule) -> bool {
        rule.users == [self.user.as_str()]
    }

    /// Whether a rule has the given hosts and runas.
    pub(crate) fn is_placed_as(&self, rule: &Rule) -> bool {
        let runas = |given: &String| rule.commands.iter().all(|own| runas_of(own) == given);
        self.hosts.as_ref().is_none_or(|hosts| rule.hosts == [hosts.as_str()])
            && self.runas.as_ref().is_none_or(runas)
    }

    /// Takes the fields that aren't given from the rule that is replaced.
    pub(crate) fn over(mut self, rule: &Rule, line: &Line) -> Self {
        if let ([hosts], None) = (&rule.hosts[..], &self.hosts) {
            self.hosts = Some(hosts.clone());
        }
        if let (Some(first), None) = (rule.commands.first(), &self.runas) {
            self.runas = Some(runas_of(first).to_owned());
        }
        self.nopasswd = self.nopasswd.or(rule.commands.first().and_then(|first| first.nopasswd));
        self.comment = self.comment.or_else(|| line.comment.clone());
        self
    }

    /// Whether a rule gives the same rights as this one.
    pub(crate) fn is_same(&self, rule: &Rule) -> bool {
        let whole =
            Self { hosts: Some(self.hosts().into()), runas: Some(self.runas().into()), ..self.clone() };
        let asks_alike = |own: &Allowed| own.nopasswd.unwrap_or_default() == self.asks_nobody();
        whole.fits(rule) && is_plain(rule) && rule.commands.iter().all(asks_alike)
    }
}

/// Whether these fields can express the rule, with the same values for each command.
pub(crate) fn is_plain(rule: &Rule) -> bool {
    let Some(first) = rule.commands.first() else { return true };
    rule.commands.iter().all(|own| {
        own.tags.is_empty() && !own.is_bound && (&own.runas, own.nopasswd) == (&first.runas, first.nopasswd)
    })
}

/// The runas part of a command. Without parentheses it is root.
fn runas_of(allowed: &Allowed) -> &str {
    allowed.runas.as_deref().unwrap_or("root")
}

/// Refuses a command that would match more than its text.
fn read(command: &str) -> Result<String> {
    if command == "ALL" {
        return Ok(command.to_owned());
    }
    let wrong = |what: &str| {
        let message = format!(
            "the command {} {what}: expected ALL, or an absolute path with the arguments that are allowed",
            shown(command)
        );
        Err(Problem::validation("INVALID_COMMAND", message))
    };
    if command.chars().any(char::is_control) {
        return wrong("holds a control character");
    }
    if command.starts_with('!') || command.contains(" !") {
        return wrong("is negated, which protects nothing: a copy under another name is allowed");
    }
    // Two quotes alone mean that no arguments are allowed.
    let (line, none) = command.strip_suffix(" \"\"").map_or((command, ""), |line| (line, " \"\""));
    if let Some(mark) = line.chars().find(|mark| MARKS.contains(mark)) {
        return wrong(&format!("holds `{mark}`, which may match more than is meant"));
    }
    let words: Vec<&str> = line.split(' ').collect();
    if words.iter().any(|word| word.is_empty()) {
        return wrong("has two blanks in a row, or one at an end");
    }
    let program = words[0];
    if !program.starts_with('/') {
        return wrong("isn't absolute");
    }
    let path = program.strip_suffix('/').unwrap_or(program);
    if path.is_empty() || validate::must_be_path(path).is_err() {
        return wrong("has a path with `.`, `..` or `//` in it");
    }
    if words.iter().skip(1).any(|word| word.split('/').any(|part| part == "..")) {
        return wrong("has `..` in an argument");
    }
    if program.ends_with('/') && (words.len() > 1 || !none.is_empty()) {
        return wrong("is a directory, which takes no arguments");
    }
    if program.contains([',', ':', '=']) {
        return wrong("has `,`, `:` or `=` in its path");
    }
    Ok(format!("{line}{none}"))
}

/// Escapes the characters that end a command in sudoers.
fn escaped(command: &str) -> String {
    let mut text = String::with_capacity(command.len());
    for character in command.chars() {
        if [',', ':', '='].contains(&character) {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

fn is_host(text: &str) -> bool {
    (text == "ALL" || !is_keyword(text))
        && text.len() <= 253
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

/// Whether sudo reads a name as a keyword or as an alias, which has capitals only.
fn is_keyword(name: &str) -> bool {
    let is_alias =
        name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    is_alias && name.starts_with(|c: char| c.is_ascii_uppercase())
        || name.starts_with("Defaults")
        || ["User_Alias", "Runas_Alias", "Host_Alias", "Cmnd_Alias", "Cmd_Alias"].contains(&name)
}

/// Whether the text is a runas part: `ALL`, `ada`, `ada:staff`, `:staff`.
fn is_runas(text: &str) -> bool {
    let is_one = |name: &str| name == "ALL" || (check_user(name).is_ok() && !is_keyword(name));
    match text.split_once(':') {
        Some((user, group)) => (user.is_empty() || is_one(user)) && is_one(group),
        None => is_one(text),
    }
}

fn one_line(text: &str) -> Result<String> {
    // sudo doesn't join such a line with the next one, but a reader might.
    let ends_oddly = text.trim_end().ends_with('\\');
    if text.chars().any(char::is_control) || ends_oddly || text.len() > 200 {
        let message = format!(
            "the comment {} is no comment: expected one line of at most 200 bytes without a backslash at its end",
            shown(text)
        );
        return Err(Problem::validation("INVALID_COMMENT", message));
    }
    Ok(text.trim().trim_start_matches('#').trim_start().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sudoers::parse::{self, Entry};

    fn given(user: &str, commands: &[&str]) -> RuleArgs {
        let commands = Some(commands.iter().map(|command| command.to_string()).collect());
        RuleArgs { user: user.to_owned(), hosts: None, runas: None, commands, nopasswd: None, comment: None }
    }

    #[test]
    fn a_rule_is_written_as_sudo_reads_it_back() {
        let whole = RuleArgs {
            hosts: Some("web1".into()),
            runas: Some("www-data:adm".into()),
            nopasswd: Some(true),
            comment: Some("# deploys; 5 times".into()),
            ..given(
                "%deploy",
                &["/usr/bin/systemctl restart nginx", "/usr/bin/x --a=b,c:d", "/usr/bin/id \"\""],
            )
        };
        let whole = whole.check().unwrap();
        assert_eq!(
            whole.line(),
            "%deploy web1=(www-data:adm) NOPASSWD: /usr/bin/systemctl restart nginx, /usr/bin/x --a\\=b\\,c\\:d, \
             /usr/bin/id \"\" # deploys; 5 times"
        );
        let least = given("ada", &["ALL"]).check().unwrap();
        assert_eq!(least.line(), "ada ALL=(ALL) ALL");
        for wanted in [whole, least] {
            let lines = parse::lines(wanted.line().as_bytes());
            let Entry::Rules(rules) = &lines[0].entry else { panic!("{lines:?}") };
            assert!(rules.len() == 1 && wanted.is_same(&rules[0]), "{rules:?}");
            assert_eq!(lines[0].comment, wanted.comment);
        }
    }

    #[test]
    fn a_command_matches_what_stands_there_and_nothing_else() {
        for command in [
            "",
            "systemctl",
            "bin/x",
            "./x",
            "sudoedit /etc/hosts",
            "!/bin/sh",
            "/bin/a !b",
            "ALL, !/bin/sh",
            "/bin/*",
            "/bin/a?",
            "/bin/[ab]",
            "/usr/bin/../sbin/x",
            "/usr//bin/x",
            "/bin/cat /var/log/../../etc/shadow",
            "/bin/a\nroot ALL=ALL",
            "/bin/a\u{0}",
            "/bin/a  b",
            " /bin/a",
            "/bin/a ^x$",
            "/bin/a # b",
            "/bin/a \\",
            "/",
            "/bin/a, /bin/b ALL",
            "/bin/a \"b\"",
            "/usr/bin/ x",
            "/bin/a:b",
            "NOPASSWD: ALL",
            "(root) /bin/a",
            "all",
        ] {
            let refused = given("ada", &[command]).check();
            if command == "/bin/a, /bin/b ALL" {
                // A comma in an argument is escaped; a path may not have one.
                assert!(refused.is_err(), "{command}");
                continue;
            }
            assert_eq!(refused.unwrap_err().code, "INVALID_COMMAND", "{command}");
        }
        for command in
            ["ALL", "/usr/bin/", "/bin/a", "/bin/a b c", "/bin/a \"\"", "/opt/a-b_c+d/x", "/bin/cat /a..b"]
        {
            assert!(given("ada", &[command]).check().is_ok(), "{command}");
        }
        assert_eq!(given("ada", &[]).check().unwrap_err().code, "INVALID_COMMAND");
    }

    #[test]
    fn what_else_a_rule_says_is_one_word_or_one_line() {
        for user in [
            "",
            "ALL",
            "#0",
            "%#27",
            "+netgroup",
            "ada,bob",
            "ada ALL=(ALL) ALL\nbob",
            "%",
            "!ada",
            "Defaults",
            "Cmnd_Alias",
            "ADMINS",
            "Defaults x",
        ] {
            let code = given(user, &["/bin/a"]).check().unwrap_err().code;
            assert_eq!(code, if user.starts_with('%') { "INVALID_GROUP" } else { "INVALID_USER" }, "{user}");
        }
        for hosts in ["", "a b", "a=b", "a\nb", "-a", "10.0.0.0/8", "!web", "SERVERS"] {
            let rule = RuleArgs { hosts: Some(hosts.into()), ..given("ada", &["/bin/a"]) };
            assert_eq!(rule.check().unwrap_err().code, "INVALID_HOSTS", "{hosts}");
        }
        for runas in ["", "a b", ":", "root)", "root:a:b", "#0", "!root", "a,b", "root\n"] {
            let rule = RuleArgs { runas: Some(runas.into()), ..given("ada", &["/bin/a"]) };
            assert_eq!(rule.check().unwrap_err().code, "INVALID_RUNAS", "{runas}");
        }
        for comment in ["a\nroot ALL=(ALL) ALL", "a\rb", "a\\", "a\\ ", "a\u{0}", &"x".repeat(201)] {
            let rule = RuleArgs { comment: Some(comment.to_owned()), ..given("ada", &["/bin/a"]) };
            assert_eq!(rule.check().unwrap_err().code, "INVALID_COMMENT", "{comment}");
        }
    }
}
