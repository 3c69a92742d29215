//! What pacman says of failures, and of what it did besides.

use linux_sysadmin_sdk::Category;
use linux_sysadmin_sdk::packages::Remarks;
use linux_sysadmin_sdk::prelude::*;

/// A known failure, and texts that pacman prints for it. The first one that matches is reported.
struct Known {
    code: &'static str,
    category: Category,
    says: &'static [&'static str],
}

const KNOWN: &[Known] = &[
    Known { code: "RESOURCE_LOCKED", category: Category::Lock, says: &["unable to lock database"] },
    Known {
        code: "OUT_OF_SPACE",
        category: Category::Resource,
        says: &["not enough free disk space", "No space left on device"],
    },
    Known {
        code: "REPOSITORY_UNTRUSTED",
        category: Category::State,
        says: &[
            "missing required signature",
            "(PGP signature)",
            "is unknown trust",
            "is marginal trust",
            "key could not be looked up",
            "required key missing from keyring",
        ],
    },
    Known {
        code: "PROTECTED_PACKAGE",
        category: Category::Dependency,
        says: &["HoldPkg was found in target list"],
    },
    Known {
        code: "DEPENDENCY_CONFLICT",
        category: Category::Dependency,
        says: &[
            "could not satisfy dependencies",
            "conflicting dependencies",
            "conflicting files",
            "are in conflict",
            "breaks dependency",
        ],
    },
    Known {
        code: "REPOSITORY_UNREACHABLE",
        category: Category::Network,
        says: &[
            "failed retrieving file",
            "failed to synchronize all databases",
            "download library error",
            "invalid or corrupted package",
        ],
    },
    Known {
        code: "PACKAGE_NOT_FOUND",
        category: Category::NotFound,
        says: &["target not found", "could not find or read package"],
    },
];

/// What pacman says where a script of a package failed. It goes on, and ends with 0.
const SCRIPT_FAILED: &str = "error: command failed to execute correctly";

pub fn explain(output: &Output) -> Option<Problem> {
    let text = format!("{}\n{}", output.error_text(), output.text());
    let known = KNOWN.iter().find(|known| known.says.iter().any(|words| text.contains(words)))?;
    Some(Problem::new(known.code, known.category, message(&text)))
}

/// The lines that tell what went wrong.
fn message(text: &str) -> String {
    const MOST_LINES: usize = 12;
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| tells_of_failure(line)).take(MOST_LINES).collect();
    let said: String = lines.join("; ").chars().take(1500).collect();
    format!("pacman says: {said}")
}

/// Whether a line is an error or one of the sentences below it. Other lines say what is done, or are questions, which pacman
/// answers itself.
fn tells_of_failure(line: &str) -> bool {
    let is_sentence =
        line.starts_with(":: ") && !["[y/N]", "[Y/n]", "...", ":"].iter().any(|end| line.ends_with(end));
    is_sentence
        || line.starts_with("error:")
        || line.contains(" exists in filesystem")
        || line.contains("HoldPkg was found")
}

/// The output of a successful command, otherwise the known problem of its failure.
pub fn success(output: Output) -> Result<Output> {
    match explain(&output).filter(|_| output.exit_code != 0) {
        Some(problem) => Err(problem),
        None => output.success("pacman"),
    }
}

/// Reads the output of a command that succeeded: configuration that was kept, and scripts that failed all the same.
pub fn remarks(output: &Output) -> Remarks {
    let mut remarks = Remarks::default();
    let said = output.error_text();
    for line in said.lines().filter_map(|line| line.strip_prefix("warning: ")) {
        if let Some((file, beside)) = line.split_once(" installed as ") {
            remarks.kept_config_files.push(file.to_owned());
            remarks.notes.push(format!("what the package brings for {file} is in {beside}"));
        } else if let Some((file, kept)) = line.split_once(" saved as ") {
            remarks.notes.push(format!("{file} was changed by somebody, and is kept as {kept}"));
        }
    }
    if said.contains(SCRIPT_FAILED) {
        let note = "a script of a package failed, and pacman went on: its output is in pacman's log";
        remarks.notes.push(note.to_owned());
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::transcript;

    /// What is remarked of the last recorded command that ends with this text.
    fn remarked(end: &str) -> Remarks {
        let recorded = transcript(include_str!("../tests/data/changes.txt")).into_iter();
        let meant = recorded.filter(|(argv, _)| argv.join(" ").ends_with(end));
        remarks(&meant.last().expect("a recorded command").1)
    }

    #[test]
    fn what_pacman_says_besides_is_passed_on() {
        let kept = remarked(" --needed --noconfirm -- lab-conf");
        assert_eq!(kept.kept_config_files, ["/etc/lab-conf.conf"]);
        assert!(kept.notes[0].contains("/etc/lab-conf.conf.pacnew"), "{kept:?}");
        let saved = remarked(" --cascade --noconfirm -- lab-conf");
        assert!(saved.notes[0].contains("/etc/lab-conf.conf.pacsave"), "{saved:?}");
        let broken = remarked(" --needed --noconfirm -- lab-broken");
        assert!(broken.notes[0].contains("a script of a package failed"), "{broken:?}");
        assert_eq!(remarked("--sync --noconfirm -- lab-hello"), Remarks::default());
    }
}
