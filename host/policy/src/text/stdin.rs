//! What a program is given to read that it, or somebody for it, may run: `crontab -`, or `tee` into a unit.

use super::place::{Kind, not_root};
use super::programs::{is_shell, name};
use super::{Code, of_file, read};

/// To these it is nothing but data.
const DATA: [&str; 14] = [
    "cat",
    "wc",
    "head",
    "tail",
    "cut",
    "sort",
    "uniq",
    "tr",
    "base64",
    "cksum",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
];

/// What would run because a program reads this. None: it takes it for nothing but data.
pub fn of_stdin(argv: &[String], stdin: &[u8]) -> Option<Code> {
    let program = argv.first()?;
    of_known_stdin(argv, stdin).unwrap_or_else(|| {
        Some(Code::unreadable(format!("what {} makes of what it reads", super::shown(name(program)))))
    })
}

/// The same; nothing where it isn't known what the program does with it.
pub fn of_known_stdin(argv: &[String], stdin: &[u8]) -> Option<Option<Code>> {
    let (program, arguments) = argv.split_first()?;
    Some(match name(program) {
        "crontab" => crontab(arguments, stdin),
        "tee" => written(arguments, stdin),
        shell if is_shell(shell) => Some(Code::unreadable("what a shell reads")),
        "visudo" if arguments.iter().any(|argument| ["-c", "--check"].contains(&argument.as_str())) => None,
        data if DATA.contains(&data) => None,
        _ => return None,
    })
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

/// What is read from the files that it is written to.
fn written(arguments: &[String], stdin: &[u8]) -> Option<Code> {
    let mut found: Option<Code> = None;
    let operands = arguments.iter().filter(|argument| !argument.starts_with('-'));
    for code in operands.filter_map(|path| of_file(path, stdin)) {
        found.get_or_insert_default().add(code);
    }
    found
}
