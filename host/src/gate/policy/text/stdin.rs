//! What a program is given to read that it, or somebody for it, runs: `crontab -`, `sh`, `at now`, `tee` into a unit.

use super::place::{Kind, not_root};
use super::programs::{is_interpreter, is_shell, is_wrapper, name};
use super::{Code, of_file, read};

/// Most words behind a wrapper that are tried for the program which it runs.
const TRIED: usize = 16;
/// Programs that are looked for there.
const READERS: [&str; 22] = [
    "crontab", "at", "batch", "tee", "sponge", "dd", "ssh", "psql", "mysql", "mariadb", "sqlite3", "cp",
    "install", "mv", "patch", "make", "parallel", "xargs", "docker", "podman", "kubectl", "visudo",
];

/// What would run because a program reads this. None: it takes it for nothing but data.
pub fn of_stdin(argv: &[String], stdin: &[u8]) -> Option<Code> {
    let (program, arguments) = argv.split_first()?;
    let operands = || arguments.iter().filter(|argument| !argument.starts_with('-')).map(String::as_str);
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    match name(program) {
        "crontab" => crontab(arguments, stdin),
        "at" | "batch" => {
            let from_file = arguments.iter().any(|argument| argument.starts_with("-f"));
            (!from_file).then(|| shell(stdin))
        }
        program if is_shell(program) => reads_code(program, arguments).then(|| shell(stdin)),
        "psql" | "mysql" | "mariadb" | "sqlite3" => {
            // Each has a command that opens a shell.
            Some(Code::unreadable(format!("what {} runs", name(program))))
        }
        "patch" | "debugfs" | "ftp" | "lftp" | "sftp" | "make" | "parallel" | "xargs" | "bc" => {
            Some(Code::unreadable(format!("what {} makes of it", name(program))))
        }
        "ssh" => Some(Code::unreadable("what a shell elsewhere runs")),
        // What these read are data: their program stands among the arguments.
        "sed" | "awk" | "gawk" | "mawk" | "nawk" => None,
        program if is_interpreter(program) => {
            reads_code(program, arguments).then(|| Code::unreadable(format!("a program for {program}")))
        }
        "sudo" if has("-S") || has("--stdin") => Some(Code::unreadable("a password, and what follows it")),
        "tee" | "sponge" => written(operands(), stdin),
        "dd" => written(arguments.iter().filter_map(|argument| argument.strip_prefix("of=")), stdin),
        "cp" | "install" | "mv" if has("/dev/stdin") || has("/proc/self/fd/0") => written(operands(), stdin),
        "visudo" if !has("-c") && !has("--check") => Some(read(&Kind::Sudoers, "/etc/sudoers", stdin)),
        "systemctl" if has("edit") => {
            let unit = operands().skip_while(|word| *word != "edit").nth(1).unwrap_or("stdin.service");
            Some(read(&Kind::Unit, &format!("/etc/systemd/system/{unit}.d/override.conf"), stdin))
        }
        "sysctl" => Some(read(&Kind::Sysctl, "/etc/sysctl.conf", stdin)),
        "docker" | "podman" if has("compose") || has("stack") => {
            Some(read(&Kind::Compose, "/compose.yaml", stdin))
        }
        "docker-compose" | "podman-compose" => Some(read(&Kind::Compose, "/compose.yaml", stdin)),
        "docker" | "podman" | "kubectl" if has("exec") || has("run") => within(arguments, stdin),
        "docker" | "podman" | "buildah" if has("build") => Some(Code::unreadable("what builds an image")),
        wrapper if is_wrapper(wrapper) || wrapper == "ip" => within(arguments, stdin),
        _ => None,
    }
}

/// The program among the arguments of one that runs it. Which of them is the program isn't known here: any that reads
/// code is taken for it.
fn within(arguments: &[String], stdin: &[u8]) -> Option<Code> {
    let reads = |word: &str| is_interpreter(word) || READERS.contains(&name(word));
    let mut found = arguments.iter().enumerate().filter(|(_, word)| reads(word)).map(|(at, _)| at);
    let code = found.by_ref().take(TRIED).find_map(|at| of_stdin(&arguments[at..], stdin));
    code.or_else(|| found.next().map(|_| Code::unreadable("what one of many programs makes of it")))
}

/// `crontab -u alice -`, or without a file, which some take for standard input.
fn crontab(arguments: &[String], stdin: &[u8]) -> Option<Code> {
    let mut user = None;
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        match argument {
            "-u" => user = arguments.next().and_then(not_root),
            "-c" => drop(arguments.next()),
            "-" | "/dev/stdin" | "-n" | "-s" | "-i" => {}
            "-l" | "-r" | "-T" | "-V" | "-x" => return None,
            argument => match argument.strip_prefix("-u") {
                Some(name) => user = not_root(name),
                None if argument.starts_with('-') => {}
                // A file of that name.
                None => return None,
            },
        }
    }
    Some(read(&Kind::Crontab(user), "/var/spool/cron", stdin))
}

/// Whether a shell or another interpreter is given its program by standard input: there is neither a file nor code among
/// its arguments.
fn reads_code(program: &str, arguments: &[String]) -> bool {
    const INPUT: [&str; 5] = ["-", "-s", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"];
    const WITH_VALUE: [&str; 9] = ["-o", "+o", "-O", "+O", "--rcfile", "--init-file", "-W", "-X", "-I"];
    let gives_code = |option: &str| {
        let one_of = |options: &[&str]| options.contains(&option);
        if is_shell(program) {
            return !option.starts_with("--") && option.starts_with('-') && option.contains('c');
        }
        let is_python = program.starts_with("python") || program.starts_with("pypy");
        if is_python {
            one_of(&["-c", "-m"])
        } else {
            one_of(&["-e", "-E", "-ne", "-pe", "-r", "-c", "--eval"])
        }
    };
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        if INPUT.contains(&argument) {
            return true;
        }
        if WITH_VALUE.contains(&argument) {
            arguments.next();
        } else if argument == "--" {
            return arguments.next().is_none_or(|operand| INPUT.contains(&operand));
        } else if gives_code(argument) {
            return false;
        } else if is_shell(program)
            && argument.starts_with('-')
            && !argument.starts_with("--")
            && argument.contains('s')
        {
            return true;
        } else if !argument.starts_with(['-', '+']) {
            return false;
        }
    }
    true
}

/// A shell's whole text as one.
fn shell(stdin: &[u8]) -> Code {
    let text = match std::str::from_utf8(stdin) {
        Ok(text) if !text.contains('\0') => text,
        _ => return Code::unreadable("a script that isn't text"),
    };
    let mut code = Code::default();
    code.shell(text, "standard input", None);
    code
}

/// What is read from the files that it is written to.
fn written<'a>(paths: impl Iterator<Item = &'a str>, stdin: &[u8]) -> Option<Code> {
    let mut found: Option<Code> = None;
    for code in paths.filter_map(|path| of_file(path, stdin)) {
        found.get_or_insert_default().add(code);
    }
    found
}
