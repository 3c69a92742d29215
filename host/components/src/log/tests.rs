use std::io::Write;

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

use super::*;
use host_base::problem::Category;

/// A writer that keeps the log.
#[derive(Clone, Default)]
pub(crate) struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Written {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Written {
    /// Keeps what this thread logs, until the guard is dropped.
    pub(crate) fn begin() -> (Self, DefaultGuard) {
        let written = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(written.clone())
            .with_max_level(tracing::Level::INFO)
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .finish();
        (written, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| line.trim_start().to_owned()).collect()
    }
}

/// The log lines of one call, at its end.
fn logged(call: impl FnOnce(&CallLog)) -> Vec<String> {
    let (written, _guard) = Written::begin();
    call(&CallLog::new(&"probe".into()));
    written.lines()
}

fn printed(stream: &str, line: &str) -> String {
    format!("INFO printed module=\"probe\" stream=\"{stream}\" line={line:?}")
}

#[test]
fn a_guest_that_prints_nothing_is_not_logged() {
    assert!(logged(|_| {}).is_empty());
}

#[test]
fn what_is_printed_is_logged_line_by_line_however_it_came() {
    let lines = logged(|log| {
        for piece in ["o", "ne\ntw", "o\r\n", "\nla"] {
            log.printed(Stream::Stdout, piece.as_bytes());
        }
        log.printed(Stream::Stderr, b"a warning\n");
        log.printed(Stream::Stdout, b"st");
    });
    let expected =
        [("stdout", "one"), ("stdout", "two"), ("stdout", ""), ("stderr", "a warning"), ("stdout", "last")];
    assert_eq!(lines, expected.map(|(stream, line)| printed(stream, line)));
}

#[test]
fn what_does_not_show_is_made_visible_and_no_line_can_pass_for_another() {
    for (line, shown) in [
        (&b"\x1b[2Jgone"[..], "\\u{1b}[2Jgone"),
        ("a\u{202e}b".as_bytes(), "a\\u{202e}b"),
        (b"over\rwritten", "over\\u{d}written"),
        (b"\xff\xfe", "\u{fffd}\u{fffd}"),
        (b"\" module=\"other", "\" module=\"other"),
    ] {
        let lines = logged(|log| log.printed(Stream::Stdout, &[line, b"\n"].concat()));
        assert_eq!(lines, [printed("stdout", shown)]);
    }
}

#[test]
fn a_line_is_cut_at_its_limit_and_never_within_a_character() {
    let limit = "x".repeat(LINE_BYTES);
    let over = format!("{limit}yz");
    let wide = format!("{}ü", "x".repeat(LINE_BYTES - 1));
    for (line, shown) in [
        (&limit, limit.clone()),
        (&over, format!("{limit}… (502 bytes)")),
        (&wide, format!("{}… (501 bytes)", "x".repeat(LINE_BYTES - 1))),
    ] {
        let lines = logged(|log| log.printed(Stream::Stdout, line.as_bytes()));
        assert_eq!(lines, [printed("stdout", &shown)]);
    }
}

#[test]
fn lines_above_their_number_are_counted_and_told_at_the_end() {
    let lines = logged(|log| {
        for _ in 0..MOST_LINES + 3 {
            log.printed(Stream::Stdout, b"12345\n");
        }
        log.printed(Stream::Stderr, b"and one without an end");
    });
    assert_eq!(lines.len(), MOST_LINES + 1);
    assert_eq!(lines[MOST_LINES], "INFO … and 4 more lines (37 bytes) are not logged module=\"probe\"");
}

#[test]
fn bytes_above_their_number_end_the_log_even_where_a_later_line_would_fit() {
    let lines = logged(|log| {
        for _ in 0..40 {
            log.printed(Stream::Stdout, format!("{}\n", "x".repeat(LINE_BYTES)).as_bytes());
        }
        log.printed(Stream::Stdout, b"short\n");
    });
    let fit = MOST_BYTES / LINE_BYTES;
    assert_eq!(lines.len(), fit + 1);
    let (more, bytes) = (41 - fit, (40 - fit) * LINE_BYTES + 5);
    assert!(lines[fit].contains(&format!("… and {more} more lines ({bytes} bytes)")), "{}", lines[fit]);
}

#[test]
fn a_line_without_an_end_is_kept_in_part_only() {
    logged(|log| {
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..32 {
            log.printed(Stream::Stdout, &piece);
        }
        let state = log.state();
        assert_eq!((state.stdout.kept.len(), state.stdout.length), (LINE_BYTES, 32 << 20));
    });
}

#[test]
fn refusals_above_their_number_are_counted_and_told_at_the_end() {
    let problem = Problem::new("CAPABILITY_DENIED", Category::Denied, "may not run `true`");
    let of = |number: u64| {
        logged(|log| {
            for _ in 0..number {
                log.refused(&problem, &["id"]);
            }
        })
    };
    let line = "WARN refused module=\"probe\" reason=\"may not run `true`\" granted=[\"id\"]";
    assert_eq!(of(1), [line]);
    assert_eq!(of(MOST_REFUSALS).len() as u64, MOST_REFUSALS);
    let lines = of(MOST_REFUSALS + 5);
    assert_eq!(lines.len() as u64, MOST_REFUSALS + 1);
    assert_eq!(lines[20], "WARN … and 5 more refusals are not logged module=\"probe\"");
}
