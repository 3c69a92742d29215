//! The outputs of commands, cut to a size that a model can take.

use linux_sysadmin_sdk::Pipeline;
use linux_sysadmin_sdk::prelude::*;

use crate::programs::named;

/// The number of bytes of one stream that are shown, half of them from its beginning and half from its end.
const SHOWN: usize = 16 << 10;

/// The output of one command.
#[derive(Serialize)]
pub(crate) struct CommandOutput {
    /// The program, where several commands ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    /// The exit code; 128 + N where signal N ended the command.
    exit_code: i32,
    #[serde(skip_serializing_if = "String::is_empty")]
    stdout: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    stderr: String,
    /// The bytes of stdout that aren't shown.
    #[serde(skip_serializing_if = "is_zero")]
    stdout_bytes_left_out: u64,
    /// The bytes of stderr that aren't shown.
    #[serde(skip_serializing_if = "is_zero")]
    stderr_bytes_left_out: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Cuts the outputs to what is shown, and names the program of each where there are several.
pub(crate) fn shown(pipelines: &[Pipeline], outputs: Vec<Output>) -> Vec<CommandOutput> {
    let commands: Vec<&Command> = pipelines.iter().flat_map(|pipeline| &pipeline.commands).collect();
    let names_programs = commands.len() > 1;
    let outputs = commands.into_iter().zip(outputs);
    outputs
        .map(|(command, output)| {
            let (stdout, in_stdout) = cut(&output.stdout);
            let (stderr, in_stderr) = cut(&output.stderr);
            let dropped = output.stdout_bytes.saturating_sub(output.stdout.len() as u64);
            CommandOutput {
                program: names_programs.then(|| named(command).to_owned()),
                exit_code: output.exit_code,
                stdout,
                stderr,
                stdout_bytes_left_out: in_stdout + dropped,
                stderr_bytes_left_out: in_stderr,
            }
        })
        .collect()
}

/// The beginning and the end of a stream, and the number of bytes between them. Lines stay whole where they are short.
fn cut(stream: &[u8]) -> (String, u64) {
    if stream.len() <= SHOWN {
        return (text(stream), 0);
    }
    let (head, tail) = (&stream[..SHOWN / 2], &stream[stream.len() - SHOWN / 2..]);
    let head = match head.iter().rposition(|byte| *byte == b'\n') {
        Some(at) if at > SHOWN / 4 => &head[..=at],
        _ => head,
    };
    let tail = match tail.iter().position(|byte| *byte == b'\n') {
        Some(at) if at < SHOWN / 4 => &tail[at + 1..],
        _ => tail,
    };
    let between = &stream[head.len()..stream.len() - tail.len()];
    let lines = between.iter().filter(|byte| **byte == b'\n').count();
    let gap = format!("\n[{} bytes in {lines} lines are left out here]\n", between.len());
    let head = text(head);
    (format!("{}{gap}{}", head.trim_end_matches('\n'), text(tail)), between.len() as u64)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_stream_keeps_its_beginning_and_its_end_and_counts_the_rest() {
        assert_eq!(cut(b"a\nb\n"), ("a\nb\n".to_owned(), 0));
        let lines: String = (0..10_000).map(|line| format!("{line:05}\n")).collect();
        let (shown, left_out) = cut(lines.as_bytes());
        assert!(shown.starts_with("00000\n00001\n") && shown.ends_with("09998\n09999\n"), "{shown}");
        assert!(shown.len() < SHOWN + 100);
        let kept: usize = shown.lines().filter(|line| line.len() == 5).count();
        assert_eq!(left_out as usize, lines.len() - 6 * kept);
        assert!(shown.contains(&format!("[{left_out} bytes in {} lines are left out here]", 10_000 - kept)));
        // One line without an end.
        let (shown, left_out) = cut(&vec![b'x'; 100_000]);
        assert_eq!(left_out as usize, 100_000 - SHOWN);
        assert_eq!(shown.matches('x').count(), SHOWN);
    }
}
