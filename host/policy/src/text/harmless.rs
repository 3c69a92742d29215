//! The commands, variables and files that are known to be harmless in text that root's programs read.
//! [`harmless.yaml`](harmless.yaml) lists them. With an unreadable table nothing is harmless.

use std::sync::LazyLock;

use serde::Deserialize;

use super::{programs, shown};
use crate::glob::{self, Met, Open, PathGlob};
use crate::load::builtin_paths;
use crate::{path, shell};

/// The directories of the system's programs.
const PROGRAMS: [&str; 4] = ["/bin", "/sbin", "/usr/bin", "/usr/sbin"];
/// The further directories in PATH that only root can write to.
const SEARCHED: [&str; 2] = ["/usr/local/bin", "/usr/local/sbin"];
const SHELLS: [&str; 4] = ["/bin/sh", "/usr/bin/sh", "/bin/bash", "/usr/bin/bash"];
/// Reserved words before a command in a text for a shell.
const KEYWORDS: [&str; 14] =
    ["if", "then", "else", "elif", "fi", "do", "done", "while", "until", "!", "{", "}", "in", "esac"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    programs: Vec<Program>,
    variables: Variables,
    data: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    names: Vec<String>,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    values: Vec<String>,
    operands: Operands,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Operands {
    Any,
    Plain,
    None,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variables {
    plain: Vec<String>,
    directories: Vec<String>,
    shells: Vec<String>,
}

/// The table with its globs parsed.
struct Known {
    programs: Vec<Program>,
    variables: Variables,
    data: Vec<PathGlob>,
}

static KNOWN: LazyLock<Result<Known, String>> = LazyLock::new(|| {
    let Table { programs, variables, data } =
        serde_yaml::from_str(include_str!("harmless.yaml")).map_err(|error| error.to_string())?;
    let data = data.iter().map(|text| PathGlob::parse(text)).collect::<Result<Vec<_>, _>>()?.concat();
    Ok(Known { programs, variables, data })
});

/// The set `own` of the rules, so that both judge the same paths as an account's or a service's own.
static OWN: LazyLock<Vec<PathGlob>> = LazyLock::new(|| builtin_paths("own"));

/// Says why a command is not known to be harmless with root's rights; `None` where it is harmless.
pub fn objection(argv: &[String]) -> Option<String> {
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    match programs::shell_text(&argv) {
        Some(text) => of_shell(text),
        None => of_words(&argv),
    }
}

/// The programs that a command names by their paths: its own, or those in its text for a shell, as far as the text can be
/// read.
pub fn named_programs(argv: &[String]) -> Vec<String> {
    let mut programs: Vec<String> =
        commands(argv).into_iter().filter_map(|words| words.into_iter().next()).collect();
    programs.retain(|program| program.starts_with('/') && !glob::is_open(program));
    programs.dedup();
    programs
}

/// A command, and those in its text for a shell, as far as the text can be read. Each ends before the first word that becomes
/// known only when it runs.
pub fn named_commands(argv: &[String]) -> Vec<Vec<String>> {
    let is_known = |word: &String| !glob::is_open(word) && !word.contains(['$', '%']);
    let known = commands(argv).into_iter().map(|words| words.into_iter().take_while(is_known).collect());
    known.filter(|words: &Vec<String>| !words.is_empty()).collect()
}

fn commands(argv: &[String]) -> Vec<Vec<String>> {
    let mut commands = vec![argv.to_vec()];
    if let Some(text) = programs::shell_text(argv) {
        let words_of = |words: Vec<String>| {
            let is_before = |word: &String| KEYWORDS.contains(&word.as_str()) || word == "exec";
            words.into_iter().skip_while(is_before).collect()
        };
        commands.extend(shell::read(text).commands.into_iter().map(|command| words_of(command.words)));
    }
    commands
}

/// Whether the character means the same to every shell, quoted or not. The others begin expansions, whose result is unknown,
/// and in which some shells run code (`${A@P}`, `$((A))`, `printf *` beside a file called `-v`).
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || " \t\n_-+=:,./@;&|<>!'\"[]".contains(character)
}

/// The objection to a text for a shell: the first objection to one of its commands.
fn of_shell(text: &str) -> Option<String> {
    if let Some(sign) = text.chars().find(|character| !is_plain(*character)) {
        return Some(format!("what a shell makes of `{}` isn't known", shown(&sign.to_string())));
    }
    let is_pattern = |word: &str| word.contains(['[', ']']) && !matches!(word, "[" | "]");
    if text.split([' ', '\t', '\n', ';']).any(is_pattern) {
        return Some("what a shell finds by a pattern isn't known".to_owned());
    }
    let script = shell::read(text);
    if script.is_unclear {
        return Some("what a shell would run can't be told from the text".to_owned());
    }
    script.commands.iter().find_map(|command| {
        let file = |file: &str| {
            let is_stream =
                path::components("/", file).is_some_and(|components| path::is_stream(&components));
            (!is_stream).then(|| format!("names the file {}", shown(file)))
        };
        if let Some(why) = command.redirects.iter().find_map(|redirect| file(&redirect.file)) {
            return Some(why);
        }
        let words = command.words.iter().map(String::as_str).skip_while(|word| KEYWORDS.contains(word));
        match words.collect::<Vec<_>>()[..] {
            [] => None,
            ["export", ref assigned @ ..] => assigned.iter().find_map(|assigned| {
                let (name, value) = assigned.split_once('=')?;
                (!variable(name, Some(value))).then(|| format!("sets {}", shown(name)))
            }),
            ref words => of_words(words),
        }
    })
}

fn of_words(words: &[&str]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let unknown = || Some(format!("{} isn't known to be harmless with root's rights", shown(program)));
    if glob::is_open(program) {
        return unknown();
    }
    let name = match program.rsplit_once('/') {
        None => program,
        Some((directory, name)) if PROGRAMS.contains(&directory) => name,
        Some(_) => return unknown(),
    };
    let Ok(known) = KNOWN.as_ref() else { return unknown() };
    let Some(program) = known.programs.iter().find(|known| known.names.iter().any(|known| known == name))
    else {
        return unknown();
    };
    program
        .unknown_argument(arguments)
        .map(|word| format!("{name} isn't known to be harmless with `{}`", shown(word)))
}

impl Program {
    /// The first argument with which the program is not known to be harmless.
    fn unknown_argument<'a>(&self, arguments: &[&'a str]) -> Option<&'a str> {
        let mut arguments = arguments.iter();
        while let Some(word) = arguments.next() {
            let is_one = |known: &String| match known.strip_suffix('*') {
                Some(beginning) => word.starts_with(beginning),
                None => word == known,
            };
            if self.values.iter().any(|known| known == word) {
                match arguments.next() {
                    Some(value) if value.contains('$') || value.starts_with('%') => return Some(value),
                    _ => continue,
                }
            }
            // A variable or a specifier may become an option or several words.
            let is_known = !word.contains('$') && !word.starts_with('%');
            let is_operand = is_known && (!word.starts_with('-') || *word == "-");
            let is_harmless = self.options.iter().any(is_one)
                || match self.operands {
                    Operands::Any => is_operand,
                    Operands::Plain => is_operand && !word.contains('/') && !glob::is_open(word),
                    Operands::None => false,
                };
            if !is_harmless {
                return Some(word);
            }
        }
        None
    }
}

/// True where a variable with this value is harmless for a program of root's; without a value, whether any value is.
pub fn variable(name: &str, value: Option<&str>) -> bool {
    let Ok(known) = KNOWN.as_ref() else { return false };
    let is_in = |names: &[String]| names.iter().any(|known| known == name);
    let Variables { plain, directories, shells } = &known.variables;
    match value {
        None => is_in(plain),
        // The name of a time zone has slashes, but its file is read from one directory only.
        Some(value) if is_in(plain) => {
            let is_zone = name.ends_with("TZ") && !value.starts_with([':', '/']) && !value.contains("..");
            // Scripts of root's may evaluate the value, or split it into words.
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.:@,+-/".contains(c);
            !value.starts_with('-') && value.chars().all(is_plain) && (is_zone || !value.contains('/'))
        }
        Some(value) if is_in(directories) => value
            .split(':')
            .all(|directory| PROGRAMS.iter().chain(&SEARCHED).any(|known| *known == directory)),
        Some(value) if is_in(shells) => SHELLS.contains(&value),
        Some(_) => false,
    }
}

/// True for a file that is only data for every program that reads it.
pub fn is_data(path: &str) -> bool {
    KNOWN.as_ref().is_ok_and(|known| is_matched(&known.data, path))
}

/// True for a file that belongs to an account or a service, and not to the system.
pub fn is_own(path: &str) -> bool {
    is_matched(&OWN, path)
}

/// Whether one of the globs matches the path.
pub(super) fn is_matched(globs: &[PathGlob], path: &str) -> bool {
    let Some(components) = path::components("/", path) else { return false };
    globs.iter().any(|glob| glob.meets(&components, Open::No) == Met::Yes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn why(line: &str) -> Option<String> {
        objection(&shell_words::split(line).unwrap())
    }

    #[test]
    fn programs_are_named_by_themselves_and_in_a_text_for_a_shell() {
        for (line, programs) in [
            ("/srv/x --a /b", &["/srv/x"][..]),
            ("x /b", &[]),
            ("sh -c '/srv/x'", &["/srv/x"]),
            (
                "/bin/sh -c 'cd /srv && if /srv/x; then ! /srv/y /z; fi | /srv/w >/dev/null'",
                &["/bin/sh", "/srv/x", "/srv/y", "/srv/w"],
            ),
            ("sh -c '/srv/*/x'", &[]),
        ] {
            assert_eq!(named_programs(&shell_words::split(line).unwrap()), programs, "{line}");
        }
    }

    #[test]
    fn commands_are_named_as_far_as_their_words_are_known() {
        for (line, commands) in [
            ("/bin/systemctl stop a", &["/bin/systemctl stop a"][..]),
            ("systemctl stop a $UNIT", &["systemctl stop a"]),
            ("systemctl stop a@%i", &["systemctl stop"]),
            ("$A stop a", &[]),
            (
                "sh -c 'if x; then exec systemctl stop a; fi; y $Z w'",
                &["sh -c", "x", "systemctl stop a", "y"],
            ),
        ] {
            let found = named_commands(&shell_words::split(line).unwrap());
            let found: Vec<String> = found.iter().map(|words| words.join(" ")).collect();
            assert_eq!(found, commands, "{line}");
        }
    }

    #[test]
    fn only_what_is_listed_is_harmless_with_roots_rights() {
        assert!(KNOWN.is_ok(), "{:?}", KNOWN.as_ref().err());
        for line in [
            "true",
            "/bin/true",
            "/usr/bin/echo hello world",
            "sleep 5",
            "date -u +%F",
            "logger -t backup done",
            "test -e /etc/x",
            "sh -c 'echo a; test -f /x && true > /dev/null 2>&1'",
            "sh -c 'if true; then echo a; fi'",
            "sh -c 'TZ=Europe/Berlin; cd / && sync'",
            "hostname -f",
            "bash -c 'echo \"done now\"'",
            "sh -c '[ -e /x ] && echo a'",
        ] {
            assert_eq!(why(line), None, "{line}");
        }
        for line in [
            "bash -c 'echo ${TERM@P}'",
            "bash -c 'echo $((COLUMNS))'",
            "bash -c 'echo ${TERM:COLUMNS}'",
            "sh -c 'logger -t $TERM'",
            "sh -c 'cd /home/bob; test *'",
            "sh -c 'cd /home/bob; printf ?x'",
            "sh -c 'cd /home/bob; echo [-a]v'",
            "sh -c 'echo ~bob'",
            "sh -c 'echo {-v,x}'",
            "sh -c 'echo `id`'",
            r"sh -c 'echo \x24'",
            "sh -c 'echo %I'",
            "logger -t $TERM",
            "logger %I",
            "logger -t %i",
            "echo ${TERM}",
            "/srv/true",
            "./true",
            "/usr/local/bin/true",
            "/bin/../srv/true",
            "nice true",
            "env true",
            "date -s 0",
            "date --file=/etc/shadow",
            "logger -f /etc/shadow",
            "logger -n evil.example x",
            "hostname x",
            "nginx",
            "/usr/sbin/nginx -g 'daemon off;'",
            "sh -c 'echo x > /etc/cron.d/x'",
            "sh -c 'cat < /etc/shadow'",
            "sh -c 'echo $(id; rm x)'",
            "sh -c 'LD_PRELOAD=/x true'",
            "sh -c 'PATH=/srv true'",
            "sh -c '$X'",
            "sh -c 'f() { true; }'",
            "sh x",
            "bash",
            "find / -delete",
            "printf -v x y",
            "set -o x",
            "systemctl stop x",
        ] {
            assert!(why(line).is_some(), "{line}");
        }
    }

    #[test]
    fn a_variable_is_harmless_by_its_name_and_its_value() {
        for (name, value) in
            [("LANG", "C"), ("TZ", "Europe/Berlin"), ("PATH", "/usr/bin:/bin"), ("SHELL", "/bin/sh")]
        {
            assert!(variable(name, Some(value)), "{name}={value}");
        }
        for (name, value) in [
            ("LD_PRELOAD", "x"),
            ("LANG", "/tmp/x"),
            ("PATH", "/usr/bin::/bin"),
            ("PATH", "/srv/bin"),
            ("PATH", ""),
            ("SHELL", "/srv/sh"),
            ("SSHD_OPTS", "-o x"),
            ("path", "/bin"),
            ("", "x"),
        ] {
            assert!(!variable(name, Some(value)), "{name}={value}");
        }
        assert!(variable("LANG", None) && !variable("PATH", None) && !variable("LD_PRELOAD", None));
    }

    #[test]
    fn a_place_is_the_systems_unless_it_is_known_to_be_somebodys() {
        for path in ["/etc/motd", "/etc//hosts", "/etc/motd.d/50-x"] {
            assert!(is_data(path), "{path}");
        }
        for path in ["/etc/motd/x", "/etc/hosts.allow", "/etc/../etc/passwd", "/etc"] {
            assert!(!is_data(path), "{path}");
        }
        for path in ["/srv/a", "/home/ada/x", "/var/log/app/x", "/var/../tmp/x"] {
            assert!(is_own(path), "{path}");
        }
        for path in ["/", "/srv", "/etc/x", "/var/lib/x", "/srv/../etc/x", "/root/x", "/new/x"] {
            assert!(!is_own(path), "{path}");
        }
    }
}
