//! Shows long text a page at a time, at a terminal.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::{Command, Stdio};

use super::stdout::stdout;
use host_base::program::Programs;
use host_system_mode::Mode;

/// The variable with the pager and its options, see environ(7).
const VARIABLE: &str = "PAGER";
const USUAL: &str = "less";
/// The options of less(1) where the environment has none: it ends where all fits the screen, and leaves the text there.
const LESS: &str = "FX";

/// Writes the text. Where it is longer than the terminal, the pager shows it.
pub(super) fn write(text: &str) -> io::Result<()> {
    let rows = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_row));
    let fits = text.lines().count() < rows;
    let wanted = std::env::var(VARIABLE).ok();
    let is_here = io::stdout().is_terminal() && io::stdin().is_terminal() && rows > 0 && !fits;
    // A pager may start other programs, which must not have the rights of the account of system mode.
    let is_own = host_system_mode::mode() == Mode::SingleUser;
    match pager(wanted.as_deref()).filter(|_| is_here && is_own) {
        Some(pager) => through(pager, text),
        None => stdout().write_all(text.as_bytes()),
    }
}

/// The pager and its options; `None` where the person wants none, or there is none.
fn pager(wanted: Option<&str>) -> Option<Vec<String>> {
    let words: Vec<String> = match wanted {
        Some(wanted) => wanted.split_whitespace().map(str::to_owned).collect(),
        None => vec![Programs::default().find(USUAL).ok()?.to_str()?.to_owned()],
    };
    match words.as_slice() {
        [] => None,
        [cat] if cat == "cat" => None,
        _ => Some(words),
    }
}

/// Gives the text to the pager, and waits for its end.
fn through(pager: Vec<String>, text: &str) -> io::Result<()> {
    let mut words = pager.iter();
    let mut command = Command::new(words.next().map_or(USUAL, String::as_str));
    // It may run with root's rights, and shows text only.
    command.args(words).env("LESSSECURE", "1").stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS);
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(_) => return stdout().write_all(text.as_bytes()),
    };
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(text.as_bytes()) {
            // The person has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written?,
        }
    }
    child.wait().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pager_is_the_one_that_the_environment_names() {
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        for (wanted, expected) in [
            (Some("more"), words(&["more"])),
            (Some(" less -S  -R"), words(&["less", "-S", "-R"])),
            (Some("cat"), None),
            (Some(""), None),
        ] {
            assert_eq!(pager(wanted), expected, "{wanted:?}");
        }
    }

    #[test]
    fn a_pager_that_has_seen_enough_is_no_error() {
        through(vec!["true".to_owned()], &"line\n".repeat(100_000)).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let seen = directory.path().join("seen").to_str().unwrap().to_owned();
        through(vec!["tee".to_owned(), seen.clone()], "a line\n").unwrap();
        assert_eq!(std::fs::read_to_string(seen).unwrap(), "a line\n");
    }
}
