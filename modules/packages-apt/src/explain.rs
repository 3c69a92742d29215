//! The problems and remarks in the output of apt-get and dpkg.

use linux_sysadmin_sdk::packages::Remarks;
use linux_sysadmin_sdk::{Category, prelude::*, text::excerpt};

use crate::output::errors;

/// Causes of failures: a code, its category, and texts of apt-get or dpkg. The first cause that matches is reported. A
/// consequence comes after its causes: dpkg's "returned an error code" comes with every failure of dpkg.
const CAUSES: &[(&str, Category, &[&str])] = &[
    (
        "RESOURCE_LOCKED",
        Category::Lock,
        &[
            "Could not get lock",
            "Unable to acquire the dpkg frontend lock",
            "Unable to lock directory",
            "is locked by another process",
        ],
    ),
    (
        "PACKAGES_INTERRUPTED",
        Category::State,
        &[
            "dpkg was interrupted",
            "dpkg --configure -a",
            "needs to be reinstalled, but I can't find an archive",
        ],
    ),
    (
        "OUT_OF_SPACE",
        Category::Resource,
        &["No space left on device", "You don't have enough free space", "Disk quota exceeded"],
    ),
    (
        "REPOSITORY_UNTRUSTED",
        Category::State,
        &[
            "NO_PUBKEY",
            "EXPKEYSIG",
            "REVKEYSIG",
            "BADSIG",
            "GPG error",
            "is not signed",
            "is no longer signed",
            "There were unauthenticated packages",
            "signatures couldn't be verified",
            "Hash Sum mismatch",
            "is expired (invalid since",
            "is not valid yet (invalid for",
        ],
    ),
    (
        "REPOSITORY_UNREACHABLE",
        Category::Network,
        &[
            "Failed to fetch",
            "does not have a Release file",
            "no longer has a Release file",
            "Some index files failed to download",
            "Unable to fetch some archives",
        ],
    ),
    (
        "PROTECTED_PACKAGE",
        Category::Dependency,
        &["Essential packages were removed", "Removing essential system-critical packages"],
    ),
    ("PACKAGE_HELD", Category::State, &["Held packages were changed"]),
    ("DEPENDENCIES_BROKEN", Category::Dependency, &["--fix-broken install"]),
    (
        "DEPENDENCY_CONFLICT",
        Category::Dependency,
        &[
            "unmet dependencies",
            "held broken packages",
            "Packages need to be removed",
            "unable to correct dependencies",
        ],
    ),
    (
        "PACKAGE_NOT_FOUND",
        Category::NotFound,
        &["Unable to locate package", "has no installation candidate", "was not found", "No packages found"],
    ),
    ("PACKAGE_SCRIPT_FAILED", Category::Other, &["script subprocess returned error"]),
    ("DEPENDENCIES_BROKEN", Category::Dependency, &["dependency problems - leaving"]),
    ("PACKAGE_SCRIPT_FAILED", Category::Other, &["Sub-process /usr/bin/dpkg returned an error code"]),
];

/// The longest message, in characters. apt repeats itself for each file of each repository.
const LONGEST: usize = 1500;

pub(crate) fn explain(output: &Output) -> Option<Problem> {
    let (stdout, stderr) = (output.text(), output.error_text());
    let says = |what: &&str| stderr.contains(*what) || stdout.contains(*what);
    let (code, category, _) = CAUSES.iter().find(|(_, _, said)| said.iter().any(says))?;
    let details = details(code, &stdout, &stderr);
    // dpkg marks none of its lines as apt-get's errors are.
    let is_dpkg = stderr.lines().all(|line| !line.starts_with("E: ")) && !details.is_empty();
    let message = match (is_dpkg, details.join("; ")) {
        (true, details) => details,
        (false, details) if details.is_empty() => errors(&stderr),
        (false, details) => format!("{}: {details}", errors(&stderr)),
    };
    Some(with_remedies(Problem::new(code, *category, excerpt(&message, LONGEST))))
}

/// Names the tool that mends it. The host knows remedies for the other problems.
fn with_remedies(problem: Problem) -> Problem {
    match problem.code.as_str() {
        "PACKAGES_INTERRUPTED" | "DEPENDENCIES_BROKEN" => problem
            .remedy("`pkg_repair` mends it, and its dry_run shows what that changes; then call again"),
        "PACKAGE_SCRIPT_FAILED" => problem
            .remedy("Read what the package's script said, and mend its cause; then `pkg_repair` finishes it")
            .remedy("Where it can't be mended, purge the package: until then every change of packages ends in this error"),
        _ => problem,
    }
}

/// Details from the output besides the errors.
fn details(code: &str, stdout: &str, stderr: &str) -> Vec<String> {
    let after = |text: &str, heading: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| !line.contains(heading)).skip(1);
        lines.take_while(|line| line.starts_with(' ')).map(|line| line.trim().to_owned()).collect()
    };
    match code {
        "DEPENDENCY_CONFLICT" | "DEPENDENCIES_BROKEN" => after(stdout, "have unmet dependencies"),
        // A warning names the key by which it is signed instead.
        "REPOSITORY_UNTRUSTED" => {
            let warnings = stderr.lines().filter_map(|line| line.strip_prefix("W: "));
            warnings.filter(|line| line.starts_with("GPG error")).map(str::to_owned).collect()
        }
        "PACKAGE_NOT_FOUND" => after(stdout, "is a virtual package provided by"),
        "PACKAGE_SCRIPT_FAILED" => {
            // Each error of dpkg has two lines: the package, and what failed.
            let lines: Vec<_> = stderr.lines().chain(stdout.lines()).collect();
            let starts =
                lines.iter().enumerate().filter(|(_, line)| line.starts_with("dpkg: error processing"));
            let both = |at: usize| {
                let next = lines.get(at + 1).filter(|line| line.starts_with(' '));
                [Some(&lines[at]), next]
                    .into_iter()
                    .flatten()
                    .map(|line| line.trim())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let mut said: Vec<_> = starts.map(|(at, _)| both(at)).collect();
            said.extend(scripts_words(stderr));
            said
        }
        _ => Vec::new(),
    }
}

/// The most lines of a script that are told.
const MOST_LINES: usize = 5;

/// The file of the script that failed, and the last lines that it printed on stderr: they stand before dpkg's own.
fn scripts_words(stderr: &str) -> Vec<String> {
    const SCRIPTS: [(&str, &str); 4] = [
        ("post-installation script", "postinst"),
        ("pre-installation script", "preinst"),
        ("post-removal script", "postrm"),
        ("pre-removal script", "prerm"),
    ];
    let lines: Vec<_> = stderr.lines().collect();
    let Some(at) = lines.iter().position(|line| line.starts_with("dpkg: error processing package ")) else {
        return Vec::new();
    };
    let name = lines[at].split(' ').nth(4).unwrap_or_default();
    let what = lines.get(at + 1).copied().unwrap_or_default();
    let script = SCRIPTS.iter().find(|(words, _)| what.contains(words));
    let file = script.map(|(_, file)| format!("the script is /var/lib/dpkg/info/{name}.{file}"));
    let said = &lines[at.saturating_sub(MOST_LINES)..at];
    let said = said.iter().filter(|line| !line.trim().is_empty()).copied().collect::<Vec<_>>().join("; ");
    file.into_iter().chain((!said.is_empty()).then(|| format!("before that it printed: {said}"))).collect()
}

/// Reads configuration files that `--force-confold` kept, which dpkg prints on stderr, and repositories that couldn't be
/// read.
pub(crate) fn remarks(output: &Output) -> Remarks {
    let stderr = output.error_text();
    let mut kept_config_files = Vec::new();
    let mut file = None;
    for line in stderr.lines() {
        if let Some(path) = line.strip_prefix("Configuration file '") {
            file = path.split_once('\'').map(|(path, _)| path);
        } else if line.starts_with(" ==> Using current old file")
            || line.starts_with(" ==> Keeping old config")
        {
            kept_config_files.extend(file.take().map(str::to_owned));
        }
    }
    let warnings = stderr.lines().filter_map(|line| line.strip_prefix("W: "));
    let warnings =
        warnings.filter(|line| line.starts_with("Failed to fetch") || line.starts_with("Some index"));
    Remarks { kept_config_files, notes: warnings.map(str::to_owned).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::transcript;

    #[test]
    fn what_went_wrong_is_told_in_words_that_remedies_are_known_for() {
        let said = transcript(include_str!("../tests/data/changes.txt"));
        let failed = said.iter().filter(|(_, output)| output.exit_code != 0);
        let told: Vec<_> =
            failed.map(|(argv, output)| (argv.join(" "), explain(output).expect("known"))).collect();
        let expected = [
            ("remove -- bash", "PROTECTED_PACKAGE", "Essential packages"),
            (
                "install -- lab-broken",
                "PACKAGE_SCRIPT_FAILED",
                "lab-broken (--configure): installed lab-broken package post-",
            ),
            ("install -- lab-service", "PACKAGE_SCRIPT_FAILED", "lab-broken"),
            ("install -- lab-service", "RESOURCE_LOCKED", "process 664 (apt-get)"),
            ("remove -- lab-service", "PACKAGES_INTERRUPTED", "dpkg --configure -a"),
            ("install -- lab-service", "DEPENDENCIES_BROKEN", "lab-missing : Depends: lab-nowhere"),
            ("install -- lab-service", "DEPENDENCIES_BROKEN", "lab-missing : Depends: lab-nowhere"),
            ("update", "REPOSITORY_UNREACHABLE", "Connection refused"),
            ("update", "REPOSITORY_UNREACHABLE", "Could not resolve"),
            ("update", "REPOSITORY_UNREACHABLE", "File not found"),
            ("update", "REPOSITORY_UNTRUSTED", "is not signed"),
        ];
        assert_eq!(told.len(), expected.len());
        for ((argv, problem), (end, code, said)) in told.iter().zip(expected) {
            assert!(argv.ends_with(end), "{argv}");
            assert_eq!(problem.code, code, "{argv}: {}", problem.message);
            assert!(problem.message.contains(said), "{argv}: {}", problem.message);
        }
    }

    /// The output comes from `dpkg --configure --pending` of dpkg 1.21.23.
    #[test]
    fn a_script_that_fails_is_told_by_its_file_and_its_words_once() {
        let (_, mut output) = transcript("$ x\n[exit 1]\n").remove(0);
        output.stdout = b"Setting up lab-broken (1.0) ...\n".to_vec();
        output.stderr =
            b"lab-broken: postinst fails\ndpkg: error processing package lab-broken (--configure):\n \
            installed lab-broken package post-installation script subprocess returned error exit status 3\n\
            Errors were encountered while processing:\n lab-broken\n"
                .to_vec();
        let problem = explain(&output).expect("known");
        assert_eq!(problem.code, "PACKAGE_SCRIPT_FAILED");
        assert_eq!(
            problem.message,
            "dpkg: error processing package lab-broken (--configure): installed lab-broken package post-installation \
             script subprocess returned error exit status 3; the script is /var/lib/dpkg/info/lab-broken.postinst; \
             before that it printed: lab-broken: postinst fails"
        );
    }

    /// The output comes from `dpkg --configure -a` of dpkg 1.21.23.
    #[test]
    fn dependencies_that_keep_dpkg_from_configuring_are_no_failed_script() {
        let (_, mut output) = transcript("$ x\n[exit 1]\n").remove(0);
        output.stderr = b"dpkg: dependency problems prevent configuration of lab-missing:\n lab-missing depends on \
            lab-nowhere (>= 9); however:\n  Package lab-nowhere is not installed.\n\ndpkg: error processing package \
            lab-missing (--configure):\n dependency problems - leaving unconfigured\nErrors were encountered while \
            processing:\n lab-missing\n"
            .to_vec();
        let problem = explain(&output).expect("known");
        assert_eq!(problem.code, "DEPENDENCIES_BROKEN");
        assert!(problem.message.contains("lab-missing depends on lab-nowhere"), "{}", problem.message);
    }

    #[test]
    fn a_repository_that_is_gone_or_out_of_its_time_is_told_so() {
        let said = transcript(include_str!("../tests/data/twins.txt"));
        let failed = said.iter().filter(|(_, output)| output.exit_code != 0);
        let codes: Vec<_> = failed.map(|(_, output)| explain(output).expect("known").code).collect();
        assert_eq!(codes, ["REPOSITORY_UNTRUSTED", "REPOSITORY_UNTRUSTED", "REPOSITORY_UNREACHABLE"]);
    }

    #[test]
    fn a_message_is_as_long_as_can_be_read_whatever_apt_says() {
        let (_, mut output) = transcript("$ x\n[exit 100]\n").remove(0);
        output.stderr = format!("E: Failed to fetch {}\n", "é\u{1b}[31m".repeat(10_000)).into_bytes();
        let problem = explain(&output).expect("known");
        assert!(problem.message.chars().count() < 1600);
        for unknown in ["", "E: Etwas anderes\n", "\u{fffd}"] {
            output.stderr = unknown.into();
            assert_eq!(explain(&output), None, "{unknown:?}");
        }
    }

    #[test]
    fn a_configuration_file_that_was_kept_is_told() {
        let said = transcript(include_str!("../tests/data/changes.txt"));
        let upgraded =
            said.iter().find(|(argv, _)| argv.ends_with(&["lab-conf".to_owned()])).expect("recorded");
        assert_eq!(remarks(&upgraded.1).kept_config_files, ["/etc/lab-conf.conf"]);
        let other =
            said.iter().find(|(argv, _)| argv.ends_with(&["lab-hello=1.0".to_owned()])).expect("recorded");
        assert_eq!(remarks(&other.1), Remarks::default());
    }
}
