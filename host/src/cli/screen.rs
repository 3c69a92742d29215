//! The screen that text is written for: its width, whether it shows colours, and text that is cut or broken to fit.

use std::io;
use std::os::fd::AsFd;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use textwrap::core::display_width;

use host_base::Risk;

/// The width where the terminal does not tell one, or the output goes elsewhere.
const USUAL_WIDTH: usize = 80;
/// The least width. On a narrower screen nothing can be read, so the terminal breaks the lines there.
const LEAST_WIDTH: usize = 20;

/// A heading, or the name of a value.
pub(super) const HEADING: Style = Style::new().bold();
/// Text that matters less than what is beside it.
pub(super) const FAINT: Style = Style::new().dimmed();
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const WARNING: Style = AnsiColor::Yellow.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();
pub(super) const WORST: Style = BAD.bold();

/// The screen that text is written for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    /// The width in columns. `None` where the output is no terminal.
    width: Option<usize>,
    has_colors: bool,
}

impl Screen {
    /// The screen behind a stream. `NO_COLOR` and `TERM=dumb` turn colours off.
    pub(super) fn of<S: RawStream + AsFd>(stream: &S) -> Self {
        let size = rustix::termios::tcgetwinsize(stream).ok();
        let width = size.map(|size| usize::from(size.ws_col)).map(|columns| match columns {
            0 => USUAL_WIDTH,
            columns => columns.max(LEAST_WIDTH),
        });
        Self { width, has_colors: AutoStream::choice(stream) != ColorChoice::Never && !is_dumb() }
    }

    /// The screen behind standard output.
    pub(super) fn of_stdout() -> Self {
        Self::of(&io::stdout())
    }

    /// The same screen, as wide as a usual terminal where it has no width of its own.
    pub(super) fn with_usual_width(self) -> Self {
        Self { width: Some(self.width.unwrap_or(USUAL_WIDTH)), ..self }
    }

    /// A screen without colours.
    #[cfg(test)]
    pub(super) fn plain(width: usize) -> Self {
        Self { width: Some(width), has_colors: false }
    }

    /// A screen with colours.
    #[cfg(test)]
    pub(super) fn colored(width: usize) -> Self {
        Self { width: Some(width), has_colors: true }
    }

    /// The output of a pipe.
    #[cfg(test)]
    pub(super) fn pipe() -> Self {
        Self { width: None, has_colors: false }
    }

    /// The largest width of a line of a table. Where the output is no terminal, nothing is cut.
    pub(super) fn room(self) -> usize {
        self.width.unwrap_or(usize::MAX)
    }

    /// The width at which sentences are wrapped.
    pub(super) fn columns(self) -> usize {
        self.width.unwrap_or(USUAL_WIDTH)
    }

    /// The text in this style, where the screen shows colours.
    pub(super) fn paint(self, style: Style, text: &str) -> String {
        match self.has_colors && style != Style::new() {
            true => format!("{style}{text}{style:#}"),
            false => text.to_owned(),
        }
    }

    /// Wraps text at blanks. A word that is longer than a line is broken.
    pub(super) fn wrap(self, text: &str, first: &str, then: &str) -> String {
        let options = textwrap::Options::new(self.columns())
            .initial_indent(first)
            .subsequent_indent(then)
            .word_splitter(textwrap::WordSplitter::NoHyphenation)
            .word_separator(textwrap::WordSeparator::AsciiSpace);
        textwrap::fill(text, options)
    }
}

/// Whether the terminal can do nothing but show text.
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|kind| kind.is_empty() || kind == "dumb")
}

/// The style of a risk.
pub(super) fn risk_style(risk: Risk) -> Style {
    match risk {
        Risk::ReadOnly | Risk::Low => GOOD,
        Risk::Moderate => WARNING,
        Risk::High => BAD,
        Risk::Critical => WORST,
    }
}

/// The style of a word that says how serious something is; plain for every other word.
pub(super) fn severity_style(word: &str) -> Style {
    match word {
        "critical" => WORST,
        "high" | "error" | "failed" | "fail" | "undone" | "partly-undone" | "uncertain" | "unfinished" => BAD,
        "warning" | "warn" | "moderate" | "medium" | "blocked" => WARNING,
        "info" | "low" | "ok" | "pass" | "passed" | "success" | "active" | "running" | "done" => GOOD,
        _ => Style::new(),
    }
}

/// Cuts the text to this number of columns. An ellipsis says that there is more.
pub(super) fn cut(text: &str, most: usize) -> String {
    if display_width(text) <= most {
        return text.to_owned();
    }
    let (mut shown, mut used) = (String::new(), 0);
    for character in text.chars() {
        used += width_of(character);
        if used >= most {
            break;
        }
        shown.push(character);
    }
    shown + "…"
}

/// Breaks a line that is longer than the width, and begins each further line with `then`. A line ends within a word or in
/// place of a single blank, so the whole text can be read from the lines.
pub(super) fn fold(line: &str, width: usize, then: &str) -> Vec<String> {
    let (mut lines, mut rest, mut before) = (Vec::new(), line, "");
    loop {
        let room = width.saturating_sub(display_width(before)).max(1);
        let Some((end, next)) = break_of(rest, room) else {
            lines.push(format!("{before}{rest}"));
            return lines;
        };
        lines.push(format!("{before}{}", &rest[..end]));
        (rest, before) = (&rest[next..], then);
    }
}

/// The place where a text that is wider than the room is broken: the end of the first part, and the start of the second.
fn break_of(text: &str, room: usize) -> Option<(usize, usize)> {
    let is_blank = |index: usize| text.as_bytes().get(index) == Some(&b' ');
    let (mut used, mut blank) = (0, None);
    for (index, character) in text.char_indices() {
        // Nobody could tell how many of several blanks a line end stands for.
        let is_single = index > 0 && is_blank(index) && !is_blank(index - 1) && !is_blank(index + 1);
        if is_single && index + 1 < text.len() {
            blank = Some((index, index + 1));
        }
        used += width_of(character);
        if used > room {
            let end = if index == 0 { character.len_utf8() } else { index };
            return blank.or((end < text.len()).then_some((end, end)));
        }
    }
    None
}

/// The number of columns that a character takes.
fn width_of(character: char) -> usize {
    display_width(character.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_so() {
        for (text, most, shown) in [
            ("short", 5, "short"),
            ("longer", 5, "long…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
        ] {
            assert_eq!(cut(text, most), shown);
        }
    }

    #[test]
    fn a_folded_line_loses_nothing_but_single_blanks_at_its_breaks() {
        for (line, width, lines) in [
            ("fits", 4, &["fits"][..]),
            ("one two three", 8, &["one two", "> three"]),
            ("one two", 3, &["one", "> t", "> w", "> o"]),
            // Two blanks stay, so the break is within the word.
            ("rm 'a  b'", 8, &["rm", "> 'a  b'"]),
            ("'a   bcd'", 6, &["'a   b", "> cd'"]),
            ("abcdefgh", 5, &["abcde", "> fgh"]),
            ("日本語日本語", 6, &["日本語", "> 日本", "> 語"]),
            ("", 5, &[""]),
            ("日", 1, &["日"]),
            ("a日日", 3, &["a日", "> 日"]),
        ] {
            assert_eq!(fold(line, width, "> "), lines, "{line:?}");
        }
    }

    #[test]
    fn no_wrapped_line_is_longer_than_the_screen() {
        for width in [20, 40, 80, 120] {
            let text = format!("{} {}", "word ".repeat(40), "a".repeat(200));
            let wrapped = Screen::plain(width).wrap(&text, "error: ", "  ");
            assert!(wrapped.lines().all(|line| display_width(line) <= width), "{width}: {wrapped}");
        }
    }

    #[test]
    fn a_screen_without_colours_shows_no_escape() {
        assert_eq!(Screen::plain(80).paint(BAD, "high"), "high");
        assert_eq!(Screen::colored(80).paint(BAD, "high"), "\u{1b}[31mhigh\u{1b}[0m");
        assert_eq!(Screen::colored(80).paint(Style::new(), "plain"), "plain");
    }

    #[test]
    fn a_file_is_no_terminal_and_has_no_colours() {
        let screen = Screen::of(&tempfile::tempfile().unwrap());
        assert_eq!((screen.room(), screen.columns(), screen.has_colors), (usize::MAX, USUAL_WIDTH, false));
        assert_eq!(screen.with_usual_width().room(), USUAL_WIDTH);
    }
}
