//! Finds code on a program's standard input: the program may run it, as `crontab -` does, or write it, as `tee` does.

use super::format::{Format, not_root};
use super::programs::{is_shell, name};
use super::{Code, code_in_file, read};

/// The programs that treat their input as data only.
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

/// The code on a program's standard input; `None` where the program treats it as data only.
pub fn code_on_stdin(argv: &[String], stdin: &[u8]) -> Option<Code> {
    new_code_on_stdin(argv, stdin, None)
}

/// The code on a program's standard input, without the jobs of a crontab that the former text has under the same variables.
pub fn new_code_on_stdin(argv: &[String], stdin: &[u8], former: Option<&[u8]>) -> Option<Code> {
    let program = argv.first()?;
    known(argv, stdin, former).unwrap_or_else(|| {
        Some(Code::unreadable(format!("what {} makes of what it reads", super::shown(name(program)))))
    })
}

/// The code on the standard input of a known program; `None` where the program is unknown.
pub fn code_on_known_stdin(argv: &[String], stdin: &[u8]) -> Option<Option<Code>> {
    known(argv, stdin, None)
}

fn known(argv: &[String], stdin: &[u8], former: Option<&[u8]>) -> Option<Option<Code>> {
    let (program, arguments) = argv.split_first()?;
    Some(match name(program) {
        "crontab" => crontab(arguments, stdin, former),
        "tee" => tee(arguments, stdin),
        shell if is_shell(shell) => Some(Code::unreadable("what a shell reads")),
        "visudo" if arguments.iter().any(|argument| ["-c", "--check"].contains(&argument.as_str())) => None,
        data if DATA.contains(&data) => None,
        _ => return None,
    })
}

/// The code in the input of `crontab -u alice -`. Without a file, some versions read standard input.
fn crontab(arguments: &[String], stdin: &[u8], former: Option<&[u8]>) -> Option<Code> {
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
                // crontab reads a file of that name instead.
                None => return None,
            },
        }
    }
    Some(read(&Format::Crontab(user), "/var/spool/cron", stdin, former))
}

/// The code in the files that the input is written to.
fn tee(arguments: &[String], stdin: &[u8]) -> Option<Code> {
    let mut found: Option<Code> = None;
    let operands = arguments.iter().filter(|argument| !argument.starts_with('-'));
    for code in operands.filter_map(|path| code_in_file(path, stdin)) {
        found.get_or_insert_default().add(code);
    }
    found
}
