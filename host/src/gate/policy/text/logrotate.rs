//! logrotate's settings: the scripts in them are a shell's, and run as root.

use super::programs::is_loose;
use super::words::{lines, unquoted, word};
use super::{Code, shown};

const SCRIPTS: [&str; 5] = ["prerotate", "postrotate", "firstaction", "lastaction", "preremove"];
/// Settings whose value is a program.
const PROGRAMS: [&str; 3] = ["compresscmd", "uncompresscmd", "mailer"];
/// Where no log belongs, and where one that is rotated is lost.
const NOT_LOGS: [&str; 10] =
    ["/etc/", "/boot/", "/usr/", "/root/", "/bin/", "/sbin/", "/lib", "/dev/", "/proc/", "/sys/"];

/// What logrotate runs.
pub fn read(text: &str) -> Code {
    let mut code = Code::default();
    let mut script: Option<(String, String)> = None;
    for (number, line) in lines(text) {
        let mut rest = line.trim_matches([' ', '\t']);
        if let Some((at, mut body)) = script.take() {
            // As logrotate has it: the first word of a line, whatever follows.
            if rest.split([' ', '\t']).next() == Some("endscript") {
                code.shell(&body, &at, None);
            } else {
                body.push_str(line);
                body.push('\n');
                script = Some((at, body));
            }
            continue;
        }
        if rest.starts_with('#') {
            continue;
        }
        let whole = rest;
        let Some(key) = word(&mut rest) else { continue };
        let key = key.trim_end_matches('=');
        let value = rest.trim_start_matches(['=', ' ', '\t']);
        let at = format!("{key}, line {number}");
        if SCRIPTS.contains(&key) {
            script = Some((at, String::new()));
        } else if PROGRAMS.contains(&key) {
            match unquoted(value) {
                Some(argv) => code.run(argv, at, None),
                None => code.cannot_read(format!("a command with a quote that stays open, {at}")),
            }
        } else if key == "include" && is_loose(value.trim_matches('"')) {
            code.gives(format_args!(
                "takes settings from {}, which others than root may write, {at}",
                shown(value)
            ));
        } else if key.starts_with(['/', '"', '\'']) {
            let words = unquoted(whole.trim_end_matches('{')).unwrap_or_else(|| vec![whole.to_owned()]);
            for log in words
                .iter()
                .filter(|log| NOT_LOGS.iter().any(|place| log.starts_with(place)) || log.contains("/.."))
            {
                code.gives(format_args!("rotates {}, which is no log, line {number}", shown(log)));
            }
        }
        // A body may begin on the line of its logs: `/var/log/x { postrotate`.
        if let Some(inner) = whole.split_once('{').map(|(_, inner)| inner.trim())
            && let Some(key) = inner.split([' ', '\t']).find(|word| SCRIPTS.contains(word))
        {
            script = Some((format!("{key}, line {number}"), String::new()));
        }
    }
    if let Some((at, _)) = script {
        code.cannot_read(format!("a script without its end, {at}"));
    }
    code
}
