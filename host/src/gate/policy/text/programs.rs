//! Programs of which it isn't root alone who says what they do: those in directories that others write to, shells, and
//! what runs another program; and the variables that do the same to any program.

use super::place::normal;

/// Where others than root make files.
const LOOSE: [&str; 15] = [
    "/tmp",
    "/var/tmp",
    "/dev/shm",
    "/dev/mqueue",
    "/run/shm",
    "/run/lock",
    "/var/lock",
    "/run/user",
    "/home",
    "/var/crash",
    "/media",
    "/run/media",
    "/mnt",
    "/proc",
    "/var/spool/samba",
];

const SHELLS: [&str; 12] =
    ["sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "fish", "csh", "tcsh", "rbash"];

const INTERPRETERS: [&str; 32] = [
    "python",
    "pypy",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "expect",
    "wish",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "guile",
    "racket",
    "erl",
    "elixir",
    "ocaml",
    "octave",
    "R",
    "Rscript",
    "gdb",
    "ed",
    "ex",
    "m4",
    "osascript",
];

/// What runs the program that is among its arguments.
const WRAPPERS: [&str; 36] = [
    "sudo",
    "doas",
    "env",
    "nice",
    "ionice",
    "chrt",
    "taskset",
    "timeout",
    "nohup",
    "setsid",
    "stdbuf",
    "chroot",
    "unshare",
    "nsenter",
    "watch",
    "systemd-run",
    "xargs",
    "busybox",
    "toybox",
    "time",
    "strace",
    "flock",
    "script",
    "su",
    "runuser",
    "find",
    "parallel",
    "exec",
    "command",
    "builtin",
    "eval",
    "setpriv",
    "capsh",
    "start-stop-daemon",
    "unbuffer",
    "chpst",
];

/// Shell words after which a command begins.
const KEYWORDS: [&str; 10] = ["if", "then", "else", "elif", "do", "while", "until", "!", "{", "case"];

/// Variables that make a program run other code or read other settings, whatever their value.
const TAKE_OVER: [&str; 50] = [
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "LD_ORIGIN_PATH",
    "GCONV_PATH",
    "GETCONF_DIR",
    "LOCPATH",
    "NLSPATH",
    "GLIBC_TUNABLES",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "IFS",
    "PROMPT_COMMAND",
    "ZDOTDIR",
    "CDPATH",
    "PERL5OPT",
    "PERL5DB",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "PYTHONUSERBASE",
    "PYTHONBREAKPOINT",
    "PYTHONPYCACHEPREFIX",
    "RUBYOPT",
    "NODE_OPTIONS",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_EDITOR",
    "GIT_PAGER",
    "GIT_ASKPASS",
    "GIT_CONFIG_PARAMETERS",
    "APT_CONFIG",
    "PAGER",
    "MANPAGER",
    "SYSTEMD_PAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "OPENSSL_ENGINES",
    "RSYNC_RSH",
    "TAR_OPTIONS",
];

/// Variables that list directories of code: it depends on which.
const SEARCHED: [&str; 8] =
    ["PATH", "PYTHONPATH", "PERL5LIB", "PERLLIB", "RUBYLIB", "NODE_PATH", "LUA_PATH", "MANPATH"];

/// Whether others than root can put something there. What doesn't begin with a slash is wherever its program stands.
pub fn is_loose(path: &str) -> bool {
    if !path.starts_with('/') {
        return true;
    }
    let path = normal(path);
    LOOSE.iter().any(|directory| {
        path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// What there is to say of a variable of a program that runs as root.
pub fn of_variable(name: &str, value: &str) -> Option<String> {
    if TAKE_OVER.contains(&name) || name.starts_with("BASH_FUNC_") || name.starts_with("GIT_CONFIG_") {
        return Some(format!("sets {name} for what runs as root"));
    }
    if SEARCHED.contains(&name) {
        let directory = value.split(':').find(|directory| is_loose(directory))?;
        return Some(format!(
            "has {name} lead to `{}`, where others than root may put programs",
            super::shown(directory)
        ));
    }
    (name == "JAVA_TOOL_OPTIONS" && value.contains("agent"))
        .then(|| "loads an agent into Java programs that run as root".to_owned())
}

/// Whether it is the name of a shell.
pub fn is_shell(program: &str) -> bool {
    SHELLS.contains(&name(program))
}

/// Whether it runs what it reads: a shell, or the interpreter of another language, with or without its version.
pub fn is_interpreter(program: &str) -> bool {
    let name = name(program);
    let unversioned = name.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.');
    SHELLS.contains(&name) || INTERPRETERS.contains(&name) || INTERPRETERS.contains(&unversioned)
}

/// Whether it runs what is among its arguments.
pub fn is_wrapper(program: &str) -> bool {
    WRAPPERS.contains(&name(program))
}

/// Its last part.
pub fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// What a shell reads of `sh -c TEXT`.
pub fn shell_text(argv: &[String]) -> Option<&str> {
    let (program, arguments) = argv.split_first()?;
    if !is_shell(program) {
        return None;
    }
    let mut arguments = arguments.iter().map(String::as_str);
    let option = arguments.by_ref().find(|option| !option.starts_with('-') || is_c(option))?;
    if is_c(option) { arguments.find(|argument| !argument.starts_with(['-', '+'])) } else { None }
}

/// `-c`, alone or among other letters.
fn is_c(option: &str) -> bool {
    option.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains('c'))
}

/// The program among these that others than root could have put there: the first one, or what it runs in turn.
pub fn loose(argv: &[String]) -> Option<String> {
    if let Some(text) = shell_text(argv) {
        return loose_in_shell(text).or_else(|| loose_word(&argv[0]));
    }
    of_words(argv.iter().map(String::as_str))
}

/// The same, of each command of a shell's text. Where a command begins is guessed, rather once too often.
fn loose_in_shell(text: &str) -> Option<String> {
    let commands = text.split([';', '|', '&', '\n', '(', ')', '`', '<', '>']);
    commands.into_iter().find_map(|command| {
        let words = command.split([' ', '\t', '\r']).map(|word| word.trim_matches(['"', '\'']));
        of_words(words.filter(|word| !word.is_empty()))
    })
}

fn of_words<'a>(words: impl Iterator<Item = &'a str>) -> Option<String> {
    let is_assignment = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| !name.contains('/') && !name.starts_with('-'))
    };
    let mut words = words.skip_while(|word| is_assignment(word) || KEYWORDS.contains(word));
    let program = words.next()?;
    if let Some(found) = loose_word(program) {
        return Some(found);
    }
    if program == "." || program == "source" {
        return words.next().and_then(loose_word);
    }
    if is_interpreter(program) {
        // Its program is its first operand; the others are data.
        let mut operands = words.skip_while(|word| word.starts_with('-'));
        return operands.next().and_then(loose_word);
    }
    if is_wrapper(program) && !matches!(name(program), "find" | "xargs" | "flock") {
        // Any of them may be what it runs, so only what can't be the value of an option.
        return words.filter(|word| word.starts_with(['/', '.', '~'])).find_map(loose_word);
    }
    None
}

/// A path, and not a name that is looked up, nor the value of a variable.
fn loose_word(word: &str) -> Option<String> {
    let is_path = word.contains('/') && !word.starts_with(['$', '-', '%']);
    (is_path && is_loose(word)).then(|| super::shown(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_program_where_others_may_write_is_found_behind_what_runs_it() {
        let table = [
            ("/usr/bin/true /tmp/x", None),
            ("/usr/bin/rm -rf /tmp/x", None),
            ("/tmp/x", Some("/tmp/x")),
            ("/usr/../tmp/x", Some("/usr/../tmp/x")),
            ("//var//tmp/x", Some("//var//tmp/x")),
            ("/tmpx/y", None),
            ("./x", Some("./x")),
            ("python3.11 -u /home/ada/x.py", Some("/home/ada/x.py")),
            ("/usr/bin/python3 /opt/x.py /tmp/data", None),
            ("nice -n 10 /dev/shm/x", Some("/dev/shm/x")),
            ("env A=b bash /tmp/x", Some("/tmp/x")),
            ("find /tmp -delete", None),
            ("start-stop-daemon --stop --retry QUIT/5", None),
            ("nice ./x", Some("./x")),
            ("%i /tmp", None),
        ];
        for (line, expected) in table {
            assert_eq!(loose(&argv(line)).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn so_is_one_in_a_shells_text() {
        let table = [
            ("cd /tmp && ls", None),
            ("find /tmp -mtime +7 -delete; true", None),
            ("test -x /home/a/b && true", None),
            ("cd / && /tmp/x", Some("/tmp/x")),
            ("if true; then \"/tmp/x\"; fi", Some("/tmp/x")),
            ("A=b /tmp/x", Some("/tmp/x")),
            (". /tmp/x", Some("/tmp/x")),
            ("echo $(/tmp/x)", Some("/tmp/x")),
            ("sudo -u root /tmp/x", Some("/tmp/x")),
        ];
        for (text, expected) in table {
            let argv = ["sh", "-c", text].map(str::to_owned);
            assert_eq!(loose(&argv).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_text_of_sh_c_is_found_behind_options() {
        let table = [
            ("sh -c x", Some("x")),
            ("/bin/bash -ec x y", Some("x")),
            ("bash --norc -c x", Some("x")),
            ("bash -c -- x", Some("x")),
            ("sh /etc/x -c y", None),
            ("sh", None),
            ("sh -c", None),
            ("rsync -c x", None),
        ];
        for (line, expected) in table {
            assert_eq!(shell_text(&argv(line)), expected, "{line}");
        }
    }

    #[test]
    fn a_variable_that_takes_a_program_over_is_power() {
        assert!(of_variable("LD_PRELOAD", "").is_some());
        assert!(of_variable("BASH_FUNC_ls%%", "() { x; }").is_some());
        assert!(of_variable("PATH", "/usr/bin:/tmp").is_some());
        assert!(of_variable("PATH", "/usr/bin::/bin").is_some());
        assert_eq!(of_variable("PATH", "/usr/local/bin:/usr/bin"), None);
        assert_eq!(of_variable("PYTHONPATH", "/opt/app"), None);
        assert_eq!(of_variable("MAILTO", "root"), None);
        assert_eq!(of_variable("JAVA_TOOL_OPTIONS", "-Xmx1g"), None);
    }
}
