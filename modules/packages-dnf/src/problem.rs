//! The problems in dnf's output.

use linux_sysadmin_sdk::Category;
use linux_sysadmin_sdk::prelude::*;

/// A known failure, and texts that dnf prints for it. The first one that matches is reported, so that a full disk isn't
/// reported as a failed download.
struct Known {
    code: &'static str,
    category: Category,
    says: &'static [&'static str],
}

/// What dnf says of a repository whose index has no signature at all.
const NO_SIGNATURE: &str = "GPG verification is enabled, but GPG signature is not available";

const KNOWN: &[Known] = &[
    Known {
        code: "RESOURCE_LOCKED",
        category: Category::Lock,
        says: &[
            "already locked by",
            "Waiting for process with pid",
            "Another app is currently holding",
            "Failed to obtain the transaction lock",
            "Failed to obtain rpm transaction lock",
            "Failed to acquire lock",
            "can't create transaction lock",
        ],
    },
    Known {
        code: "OUT_OF_SPACE",
        category: Category::Resource,
        says: &[
            "No space left on device",
            "Disk Requirements:",
            "more space needed on the",
            "needs more space on the",
            "Disk quota exceeded",
            "database or disk is full",
        ],
    },
    Known {
        code: "REPOSITORY_UNTRUSTED",
        category: Category::State,
        says: &[
            "GPG check FAILED",
            "GPG signature verification",
            NO_SIGNATURE,
            "Signature verification failed",
            "is not signed",
            "You have enabled checking of packages via GPG keys",
            "Public key for",
            "No corresponding key was found",
            "Failed to retrieve GPG key",
            "GPG Keys are configured as",
        ],
    },
    Known {
        code: "PROTECTED_PACKAGE",
        category: Category::Dependency,
        says: &[
            "the following protected packages",
            "removing of running kernel",
            "removing the running kernel",
        ],
    },
    Known { code: "PACKAGE_SCRIPT_FAILED", category: Category::Other, says: &["scriptlet failed"] },
    Known {
        code: "REPOSITORY_UNREACHABLE",
        category: Category::Network,
        says: &[
            "Failed to download metadata",
            "Error downloading packages",
            "Failed to download packages",
            "Failed to download files",
            "All mirrors were tried",
            "Curl error",
            "Librepo error",
            "from local repository have incorrect checksum",
        ],
    },
    Known {
        code: "REPOSITORIES_NOT_READ",
        category: Category::State,
        says: &["Cache-only enabled but no cache for"],
    },
    Known { code: "VERSION_NOT_AVAILABLE", category: Category::NotFound, says: &["Cannot find rpm nevra"] },
    Known {
        code: "DEPENDENCY_CONFLICT",
        category: Category::Dependency,
        says: &[
            "Problem:",
            "Problem 1:",
            "nothing provides",
            "Transaction test error",
            "conflicts with file from",
        ],
    },
    Known {
        code: "PACKAGE_NOT_FOUND",
        category: Category::NotFound,
        says: &["Unable to find a match", "No match for argument", "available, but not installed"],
    },
];

/// Beginnings of lines that describe an error.
const TELLING: &[&str] =
    &["Error", "error:", "Problem", "- ", "Cannot find", "No match", "At least", "Failed"];

pub fn explain(output: &Output) -> Option<Problem> {
    let text = format!("{}\n{}", output.error_text(), output.text());
    let known = KNOWN.iter().find(|known| known.says.iter().any(|words| text.contains(words)))?;
    let problem = Problem::new(known.code, known.category, message(known, &text));
    Some(match known.code {
        "REPOSITORIES_NOT_READ" => unread(problem),
        "REPOSITORY_UNTRUSTED" if text.contains(NO_SIGNATURE) => problem.remedy(
            "Only where its makers say that they sign packages alone, and over https: `repo_add` with signed_index false",
        ),
        _ => problem,
    })
}

/// Adds the advice to read the repositories, which makes the missing cache.
pub fn unread(problem: Problem) -> Problem {
    problem.remedy("`pkg_update` with refresh_only reads the repositories")
}

/// The lines of dnf's output that describe the error. The other lines are left out, because they may show a repository's
/// settings with passwords.
fn message(known: &Known, text: &str) -> String {
    const MOST_LINES: usize = 12;
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        let is_meant = known.says.iter().any(|words| line.contains(words))
            || TELLING.iter().any(|words| line.starts_with(words));
        // A line "Error:" only introduces the next line.
        if is_meant && line.trim_end_matches(':') != "Error" && !lines.contains(&line) {
            lines.push(line);
        }
    }
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    let mut message: String = lines.join("; ").chars().take(1500).collect();
    if more > 0 {
        message += &format!("; and {more} more lines");
    }
    format!("dnf says: {message}")
}

/// The output of a successful command, otherwise the known problem of its failure.
pub fn success(output: Output) -> Result<Output> {
    if output.exit_code != 0
        && let Some(problem) = explain(&output)
    {
        return Err(problem);
    }
    output.success("dnf")
}
