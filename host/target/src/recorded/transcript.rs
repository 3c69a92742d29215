//! Transcripts: commands with what they printed, as text that a person can read and mend. The sdk's test kit reads the same
//! text.
//!
//! ```text
//! Text before the first command is a comment.
//! $ pacman --query '--color= never'
//! [exit 0]
//! bash 5.2.037-1
//! [stderr]
//! warning: a repository is out of date
//! ```
//!
//! Words with blanks are in single quotes. An output ends with one newline, whatever newlines it ended with.

/// A command and what it printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The exit code.
    pub exit_code: i32,
    /// The standard output.
    pub stdout: Vec<u8>,
    /// The standard error.
    pub stderr: Vec<u8>,
}

/// Reads a transcript. The error says which command can't be read, and what was expected.
pub fn parse(text: &str) -> Result<Vec<RecordedCommand>, String> {
    let text = format!("\n{text}");
    text.split("\n$ ").skip(1).map(block).collect()
}

fn block(block: &str) -> Result<RecordedCommand, String> {
    let (line, rest) = block.split_once('\n').unwrap_or((block, ""));
    let (exit, rest) = rest.split_once('\n').unwrap_or((rest, ""));
    let code = exit.strip_prefix("[exit ").and_then(|code| code.strip_suffix(']'));
    let exit_code = code
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| format!("after `$ {line}`: expected a line such as [exit 0], found {exit:?}"))?;
    let (stdout, stderr) = match rest.strip_prefix("[stderr]\n") {
        Some(stderr) => ("", stderr),
        None => rest.split_once("\n[stderr]\n").unwrap_or((rest, "")),
    };
    Ok(RecordedCommand {
        argv: words(line),
        exit_code,
        stdout: ended(stdout).into_bytes(),
        stderr: ended(stderr).into_bytes(),
    })
}

/// Writes a command as a transcript has it. The error says why a transcript can't hold the command.
pub fn write(command: &RecordedCommand) -> Result<String, String> {
    let line = line(&command.argv)?;
    let text = |bytes: &[u8], what: &str| {
        let text = std::str::from_utf8(bytes);
        text.map(ended).map_err(|_| format!("its {what} isn't UTF-8, which a transcript has to be"))
    };
    let (stdout, stderr) = (text(&command.stdout, "stdout")?, text(&command.stderr, "stderr")?);
    let mut written = format!("$ {line}\n[exit {}]\n{stdout}", command.exit_code);
    if !stderr.is_empty() {
        written.push_str("[stderr]\n");
        written.push_str(&stderr);
    }
    let meant = RecordedCommand { stdout: stdout.into(), stderr: stderr.into(), ..command.clone() };
    match parse(&written).as_deref() {
        Ok([read]) if *read == meant => Ok(written),
        _ => Err("its output holds a line that begins with `$ ` or is `[stderr]`, which a transcript takes for its own"
            .to_owned()),
    }
}

/// A command line as a transcript has it. The error says why it can't hold the words.
pub fn line(argv: &[String]) -> Result<String, String> {
    let word = |word: &String| match word {
        word if word.contains(['\'', '\n']) => Err(format!(
            "a transcript can't hold {word:?}: expected words without single quotes and newlines"
        )),
        word if word.is_empty() || word.contains(' ') => Ok(format!("'{word}'")),
        word => Ok(word.clone()),
    };
    Ok(argv.iter().map(word).collect::<Result<Vec<_>, String>>()?.join(" "))
}

/// Splits a line at blanks outside of single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().into_iter().for_each(|word| word.push(c)),
        }
    }
    words
}

/// The text with one newline at its end, unless it is empty.
fn ended(text: &str) -> String {
    match text.trim_end_matches('\n') {
        "" => String::new(),
        text => format!("{text}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(argv: &[&str], exit_code: i32, stdout: &str, stderr: &str) -> RecordedCommand {
        RecordedCommand {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            exit_code,
            stdout: stdout.into(),
            stderr: stderr.into(),
        }
    }

    #[test]
    fn the_sample_of_the_sdk_is_read_as_the_sdk_reads_it() {
        let read = parse(include_str!("../../../../sdk/tests/data/transcript.txt")).unwrap();
        let expected = [
            command(&["a", "--x= y"], 0, "one\n\ntwo\n", ""),
            command(&["b"], 3, "", "no\n"),
            command(&["b"], 0, "", ""),
            command(&["c", ""], 1, "x\n", "y\n"),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_written_is_read_again() {
        for recorded in [
            command(&["a"], 0, "", ""),
            command(&["a", "b c", ""], 1, "one\n\ntwo\n", ""),
            command(&["a"], 127, "", "a: not found\n"),
            command(&["a", "--format=%{x}\\t"], 0, "x\n", "y\nz\n"),
        ] {
            assert_eq!(parse(&write(&recorded).unwrap()).unwrap(), [recorded]);
        }
        let without_newline = command(&["a"], 0, "x", "");
        assert_eq!(parse(&write(&without_newline).unwrap()).unwrap()[0].stdout, b"x\n");
    }

    #[test]
    fn what_would_be_read_as_something_else_is_not_written() {
        for (recorded, why) in [
            (command(&["a", "it's"], 0, "", ""), "single quotes"),
            (command(&["a", "b\nc"], 0, "", ""), "newlines"),
            (command(&["a"], 0, "x\n$ b\n[exit 0]\n", ""), "takes for its own"),
            (command(&["a"], 0, "$ b\n", ""), "takes for its own"),
            (command(&["a"], 0, "x\n[stderr]\ny\n", ""), "takes for its own"),
            (RecordedCommand { stdout: vec![0xff], ..command(&["a"], 0, "", "") }, "UTF-8"),
        ] {
            let error = write(&recorded).unwrap_err();
            assert!(error.contains(why), "{recorded:?}: {error}");
        }
    }

    #[test]
    fn a_block_without_an_exit_code_is_an_error_that_names_it() {
        for text in ["$ a", "$ a\n", "$ a\nx\n", "$ a\n[exit x]\n"] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("`$ a`") && error.contains("[exit 0]"), "{error}");
        }
        assert!(parse("no command\n").unwrap().is_empty());
    }
}
