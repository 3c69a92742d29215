//! The line that the login shell reads, and the scripts of the host in it. Data is only ever an argument of a script.

use super::quote;
use host_base::problem::{Category, Problem};

/// The longest command line. A login shell takes it as one argument, and the kernel takes no longer one
/// (MAX_ARG_STRLEN).
const LONGEST_LINE: usize = 128 << 10;

/// The beginning of a script, which tells the process id on both streams.
const ANNOUNCE: &str = r#"echo "$0 $$"; echo "$0 $$" >&2; "#;

/// Begins in the root directory, as commands on this machine do. The login begins in the account's home.
const BEGIN: &str = "cd / || exit 126; ";

/// Starts a program.
const EXEC: &str = r#"exec "$@""#;

/// Reads the first line of the standard input, and no byte more, into a variable of the shell. The commands of the pipeline
/// can't read it from an argument or from the environment.
const READ_KEY: &str = "IFS= read -r key || exit 126; ";

/// Returns the script that does `run`. With standard input, it begins only once the announced number of bytes is there,
/// because a lost connection and a killed writer look like the end of the input.
fn script(before: &str, run: &str, has_stdin: bool) -> String {
    if !has_stdin {
        return format!("{ANNOUNCE}{BEGIN}{before}{run}");
    }
    format!(
        r#"{ANNOUNCE}{BEGIN}{before}n=$1; shift; u=$(umask); umask 077
f=$(mktemp /dev/shm/.linux-sysadmin.XXXXXX 2> /dev/null || mktemp /tmp/.linux-sysadmin.XXXXXX) || exit 126
trap 'rm -f "$f"; exit 126' HUP INT TERM
if cat > "$f" && test "$(wc -c < "$f")" -eq "$n"; then exec < "$f"; rm -f "$f"; trap - HUP INT TERM; umask "$u"; {run}; fi
rm -f "$f"; echo "linux-sysadmin: what the command reads is not there whole, so it was not started" >&2; exit 126"#
    )
}

/// Returns the line for the login shell. `argv` begins with a path, or with a name in this environment's PATH. `reads`
/// is the length of the standard input, if there is any.
pub(super) fn line(
    environment: &[(String, String)],
    nonce: &str,
    argv: &[String],
    reads: Option<usize>,
) -> Result<String, Problem> {
    let words: Vec<&String> = argv.iter().collect();
    line_of(environment, &script("", EXEC, reads.is_some()), nonce, &words, reads)
}

/// Returns the line for commands that are connected by pipes. Their standard input has one line more, the key, which
/// [`super::exit_codes`] explains.
pub(super) fn pipeline_line(
    environment: &[(String, String)],
    nonce: &str,
    stages: &[Vec<String>],
    reads: Option<usize>,
) -> Result<String, Problem> {
    let script = script(READ_KEY, &connected(stages.iter().map(Vec::len)), reads.is_some());
    let words: Vec<&String> = stages.iter().flatten().collect();
    line_of(environment, &script, nonce, &words, reads)
}

/// Returns the part of a script that connects commands with so many words each. It names the words by their positions
/// only.
///
/// Each command has the stdin, stdout and stderr of its place, and no other descriptor. Its exit code goes through
/// descriptor 5 into a variable, with its place before it: POSIX knows no `pipefail`. What the shell itself says about a
/// command that a signal ended is dropped. At the end, the key and the exit codes are the last line of stderr.
fn connected(words: impl Iterator<Item = usize>) -> String {
    let mut position = 0;
    let mut next = || {
        position += 1;
        if position < 10 { format!(" \"${position}\"") } else { format!(" \"${{{position}}}\"") }
    };
    let stages: Vec<String> = words
        .enumerate()
        .map(|(at, count)| {
            let words: String = (0..count).map(|_| next()).collect();
            format!("{{ (exec{words}) 2>&4 3>&- 4>&- 5>&-; echo {at} $? >&5; }}")
        })
        .collect();
    let stages = stages.join(" | ");
    format!(
        r#"exec 3>&1 4>&2; codes=$({{ {stages} >&3; }} 5>&1 2> /dev/null); echo "$key" $codes >&2; exit 0"#
    )
}

fn line_of(
    environment: &[(String, String)],
    script: &str,
    nonce: &str,
    words: &[&String],
    reads: Option<usize>,
) -> Result<String, Problem> {
    let variables: Vec<String> = environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let reads = reads.map(|bytes| bytes.to_string());
    let words = ["exec", "/usr/bin/env", "-i"]
        .into_iter()
        .chain(variables.iter().map(String::as_str))
        .chain(["/bin/sh", "-c", script, nonce])
        .chain(reads.as_deref())
        .chain(words.iter().map(|word| word.as_str()));
    let line = quote::line(words);
    if line.len() >= LONGEST_LINE {
        let message =
            format!("a command line of {} bytes; over SSH expected fewer than {LONGEST_LINE}", line.len());
        return Err(Problem::new("COMMAND_TOO_LONG", Category::Validation, message));
    }
    Ok(line)
}

/// Puts a command's own variables before its words. env(1) would take a program's path with `=` for a variable, and so a
/// shell starts the program.
pub(super) fn with_variables(variables: &[(String, String)], argv: Vec<String>) -> Vec<String> {
    if variables.is_empty() {
        return argv;
    }
    let variables = variables.iter().map(|(name, value)| format!("{name}={value}"));
    let shell = ["/bin/sh", "-c", EXEC, "sh"].map(str::to_owned);
    ["/usr/bin/env".to_owned()].into_iter().chain(variables).chain(shell).chain(argv).collect()
}

#[cfg(test)]
mod tests {
    use super::super::exit_codes::ExitCodes;
    use super::*;

    #[test]
    fn a_line_that_no_shell_could_take_is_refused() {
        let argv = |bytes: usize| vec!["/usr/bin/echo".to_owned(), "x".repeat(bytes)];
        assert!(line(&[], "n", &argv(100_000), None).is_ok());
        assert_eq!(line(&[], "n", &argv(131_000), None).unwrap_err().code, "COMMAND_TOO_LONG");
    }

    #[test]
    fn variables_are_words_and_the_script_is_one() {
        let environment = [("A".to_owned(), "b c".to_owned())];
        let line = line(&environment, "n", &["/bin/x".into(), "$y".into()], None).unwrap();
        assert_eq!(
            line,
            r#"exec /usr/bin/env -i 'A=b c' /bin/sh -c 'echo "$0 $$"; echo "$0 $$" >&2; cd / || exit 126; exec "$@"' n /bin/x '$y'"#
        );
    }

    #[test]
    fn a_command_begins_in_the_root_directory() {
        // The test itself runs in the directory of its crate.
        for reads in [None, Some(0)] {
            let line = line(&[], "n", &["/bin/pwd".to_owned()], reads).unwrap();
            let shell = std::process::Command::new("/bin/sh").args(["-c", &line]).output().unwrap();
            let said = String::from_utf8(shell.stdout).unwrap();
            assert_eq!(said.lines().nth(1), Some("/"), "{line}");
        }
        let (_, stdout, _) = connected_by(&[&["/bin/pwd"], &["/usr/bin/cat"]], None);
        assert_eq!(stdout, "/\n");
    }

    /// Returns what a login shell does for a program that expects `reads` bytes and gets `given`.
    fn read_by(reads: usize, given: &[u8]) -> std::process::Output {
        let environment = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let argv = ["/bin/sh", "-c", "umask; cat; test -p /dev/stdin && echo pipe"].map(str::to_owned);
        let line = line(&environment, "n", &argv, Some(reads)).unwrap();
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", &format!("umask 027; {line}")])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), given).unwrap();
        child.wait_with_output().unwrap()
    }

    #[test]
    fn a_program_reads_all_that_it_is_given_or_does_not_start() {
        let given = b"a\0b\n$(id)\n";
        let whole = read_by(given.len(), given);
        let said = String::from_utf8(whole.stdout).unwrap();
        let (marker, rest) = said.split_once('\n').unwrap();
        assert!(marker.starts_with("n "), "{marker}");
        assert_eq!(rest, "0027\na\0b\n$(id)\n");
        for (reads, given) in [(given.len() + 1, &given[..]), (3, b""), (0, b"more")] {
            let cut = read_by(reads, given);
            assert_eq!(cut.status.code(), Some(126), "{reads}");
            assert!(String::from_utf8(cut.stdout).unwrap().lines().count() == 1, "{reads}");
            assert!(String::from_utf8(cut.stderr).unwrap().contains("was not started"), "{reads}");
        }
        assert_eq!(read_by(0, b"").status.code(), Some(1), "test(1) said that it is no pipe");
    }

    /// Returns what a login shell does for these commands, with their exit codes and their stderr.
    fn connected_by(stages: &[&[&str]], given: Option<&[u8]>) -> (Option<Vec<i32>>, String, String) {
        let environment = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let words = |stage: &&[&str]| stage.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let stages: Vec<_> = stages.iter().map(words).collect();
        let line = pipeline_line(&environment, "n", &stages, given.map(<[u8]>::len)).unwrap();
        let mut exit_codes = ExitCodes::new(stages.len()).unwrap();
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", &line])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let given = exit_codes.stdin(given.map(<[u8]>::to_vec).as_ref());
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), &given).unwrap();
        let output = child.wait_with_output().unwrap();
        let mut stderr = exit_codes.own_part(output.stderr.into()).to_vec();
        stderr.extend(exit_codes.take_rest());
        let own = |said: Vec<u8>| String::from_utf8(said).unwrap().split_once('\n').unwrap().1.to_owned();
        (exit_codes.of_all(output.status.code().unwrap()), own(output.stdout), own(stderr))
    }

    #[test]
    fn commands_are_connected_and_each_exit_code_is_known() {
        let sh = |script| ["/bin/sh", "-c", script];
        let (ends, killed, seven) = (sh("exit 1"), sh("kill -KILL $$"), sh("cat; exit 7"));
        let list = "cat; for number in 3 4 5; do ! test -e /proc/self/fd/$number || echo $number; done";
        for (stages, exit_codes, stdout, stderr) in [
            (
                &[&["/usr/bin/printf", "b\\na\\nb\\n"][..], &["/usr/bin/sort"], &["/usr/bin/uniq", "-c"]][..],
                vec![0, 0, 0],
                "      1 a\n      2 b\n",
                "",
            ),
            (&[&ends, &killed, &seven], vec![1, 137, 7], "", ""),
            (&[&["/usr/bin/yes"], &["/usr/bin/head", "-n", "1"]], vec![141, 0], "y\n", ""),
            (&[&sh("echo oh >&2"), &sh("cat; printf dear >&2")], vec![0, 0], "", "oh\ndear"),
            (&[&sh(list), &sh(list), &sh(list)], vec![0; 3], "", ""),
            (&[&sh("printf '[%s]' \"$key\""), &["/usr/bin/cat"]], vec![0, 0], "[]", ""),
        ] {
            let expected = (Some(exit_codes), stdout.to_owned(), stderr.to_owned());
            assert_eq!(connected_by(stages, None), expected, "{stages:?}");
        }
        let (exit_codes, _, stderr) = connected_by(&[&["/no/such"], &["/usr/bin/cat"]], None);
        assert_eq!(exit_codes, Some(vec![127, 0]));
        assert!(stderr.contains("/no/such"), "{stderr}");
    }

    #[test]
    fn the_words_of_connected_commands_arrive_as_they_are() {
        let printable: String = (' '..='~').collect();
        let words = ["", "a b", "it's", "\\", "$HOME", "`id`", "\n", "a\nb\n", "*", "é", &printable];
        let argv = [&["/usr/bin/printf", "%s\\n"][..], &words].concat();
        let (exit_codes, stdout, _) = connected_by(&[&argv, &["/usr/bin/cat", "-"]], None);
        assert_eq!((exit_codes, stdout), (Some(vec![0, 0]), words.map(|word| format!("{word}\n")).concat()));
    }

    #[test]
    fn the_first_of_connected_commands_reads_what_is_given() {
        for given in [&b""[..], b"a\0b\n$(id)\n", &[b'x'; 300_000]] {
            let (exit_codes, stdout, _) =
                connected_by(&[&["/usr/bin/cat"], &["/usr/bin/wc", "-c"]], Some(given));
            assert_eq!((exit_codes, stdout), (Some(vec![0, 0]), format!("{}\n", given.len())));
        }
    }

    #[test]
    fn the_variables_of_a_connected_command_are_its_own() {
        let variables = [("A".to_owned(), "b c".to_owned())];
        let shows = ["/bin/sh", "-c", "cat; echo \"$A\""].map(str::to_owned);
        let with = with_variables(&variables, shows.to_vec());
        let with: Vec<&str> = with.iter().map(String::as_str).collect();
        let without: Vec<&str> = shows.iter().map(String::as_str).collect();
        let (exit_codes, stdout, _) = connected_by(&[&with, &without], None);
        assert_eq!((exit_codes, stdout.as_str()), (Some(vec![0, 0]), "b c\n\n"));
        assert_eq!(with_variables(&[], shows.to_vec()), shows);
    }
}
