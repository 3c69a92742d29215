//! Shows at the terminal on standard error that a call runs, and how far it is.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::cli::screen::{Screen, cut, is_dumb};
use host_text::visible::one_line;

/// The time between two pictures.
pub(super) const STEP: Duration = Duration::from_millis(100);
/// The time that a call may take without anything being shown.
const PATIENCE: Duration = Duration::from_millis(400);

const PICTURES: [char; 4] = ['|', '/', '-', '\\'];

/// Shows that a call runs. It leaves nothing at the terminal when it is dropped.
pub(super) struct Spinner {
    started: Instant,
    steps: usize,
    /// True where a line is at the terminal.
    is_shown: bool,
    /// `None` where standard error is no terminal, or one that can't take a line back.
    screen: Option<Screen>,
}

impl Spinner {
    /// A spinner at standard error.
    pub(super) fn new() -> Self {
        let stderr = io::stderr();
        let screen = (stderr.is_terminal() && !is_dumb()).then(|| Screen::of(&stderr));
        Self { started: Instant::now(), steps: 0, is_shown: false, screen }
    }

    /// Whether there is a terminal to show anything at.
    pub(super) fn has_terminal(&self) -> bool {
        self.screen.is_some()
    }

    /// Shows the next picture.
    pub(super) fn step(&mut self, call: &str, progress: &str) {
        let Some(screen) = self.screen.filter(|_| self.started.elapsed() >= PATIENCE) else { return };
        let line = line(self.steps, call, progress, self.started.elapsed(), screen.columns());
        // Nobody misses a picture that can't be shown.
        let _ = write!(io::stderr(), "\r\u{1b}[K{line}");
        self.steps += 1;
        self.is_shown = true;
    }

    /// Takes the line back, before anything else is written to the terminal.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.clear();
    }
}

/// One line, which leaves a column for the cursor.
fn line(step: usize, call: &str, progress: &str, elapsed: Duration, width: usize) -> String {
    let progress = one_line(progress);
    let progress = if progress.is_empty() { progress } else { format!(": {progress}") };
    let seconds = elapsed.as_secs();
    let line = format!("{} {seconds} s  {}{progress}", PICTURES[step % PICTURES.len()], one_line(call));
    cut(&line, width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_runs_how_long_and_how_far_and_stays_one() {
        let shown = |step, progress, width| {
            line(step, "web_copy on web1", progress, Duration::from_millis(3900), width)
        };
        assert_eq!(shown(0, "", 80), "| 3 s  web_copy on web1");
        assert_eq!(shown(5, "copy (50%)", 80), "/ 3 s  web_copy on web1: copy (50%)");
        assert_eq!(shown(2, "a\n\u{1b}[2J", 80), "- 3 s  web_copy on web1: a\\n\\u{1b}[2J");
        assert_eq!(shown(3, "copy (50%)", 24), "\\ 3 s  web_copy on web…");
    }
}
