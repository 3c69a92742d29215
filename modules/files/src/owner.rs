//! The package that a file came with, and files that differ from their package's.

use linux_sysadmin_sdk::{DurationCategory, Privilege, prelude::*};

const DPKG_OWNER: CommandLine = CommandLine::new("dpkg-query --search -- <path>");
const RPM_OWNER: CommandLine = CommandLine::new("rpm --query --queryformat='%{NAME}\\n' --file -- <path>");
const DPKG_VERIFY: CommandLine = CommandLine::new("dpkg --verify -- <package>");
const RPM_VERIFY: CommandLine = CommandLine::new("rpm --verify --nodeps --noscripts -- <package>");

/// Directories without files of packages.
const NO_PACKAGES: [&str; 8] =
    ["/proc/", "/sys/", "/home/", "/root/", "/srv/", "/usr/local/", "/var/log/", "/var/www/"];
/// The number of files that are told.
const MOST: usize = 20;

pub(crate) fn grants() -> Vec<CommandGrant> {
    let (owner, verify) = ("which package a file came with", "which files differ from their package's");
    vec![
        DPKG_OWNER.read(owner),
        RPM_OWNER.read(owner),
        DPKG_VERIFY.read(verify).as_root_if_available(),
        RPM_VERIFY.read(verify),
    ]
}

/// The package that owns a file. None where none does, or where no package manager can tell.
pub(crate) fn package(path: &str, cx: &Context) -> Option<String> {
    name(cx.run(question(path, cx)?), cx)
}

/// The command that tells which package owns a file. None where no package does.
pub(crate) fn question(path: &str, cx: &Context) -> Option<Command> {
    // A path with a wildcard would be taken for a pattern.
    if path.contains(['*', '?', '[', '\\']) || NO_PACKAGES.iter().any(|top| path.starts_with(top)) {
        return None;
    }
    Some(if is_rpm(cx) { RPM_OWNER.with([path]) } else { DPKG_OWNER.with([path]) })
}

/// The package in the answer to that question.
pub(crate) fn name(answer: Result<Output>, cx: &Context) -> Option<String> {
    let output = answer.ok().filter(|output| output.exit_code == 0)?;
    let text = output.text();
    let first = text.lines().find(|line| !line.starts_with("diversion "))?;
    let name = if is_rpm(cx) { first } else { first.split_once(": /")?.0.split(", ").next()? };
    // dpkg adds the architecture of some packages.
    let name = name.split(':').next().unwrap_or(name).trim();
    (!name.is_empty()).then(|| name.to_owned())
}

fn is_rpm(cx: &Context) -> bool {
    cx.distro().family == "rhel"
}

/// The files of the packages of these files that differ from what the packages brought.
pub(crate) fn differing(paths: &[String], cx: &Context) -> Vec<String> {
    let questions = paths.iter().take(4).filter_map(|path| question(path, cx)).collect();
    let mut packages: Vec<String> =
        cx.run_all(questions).into_iter().filter_map(|answer| name(answer, cx)).collect();
    packages.sort();
    packages.dedup();
    let command = |package: &String| {
        let command = match is_rpm(cx) {
            true => RPM_VERIFY.with([package]),
            false => DPKG_VERIFY.with([package]).privilege(Privilege::RootIfAvailable),
        };
        command.duration(DurationCategory::Quick)
    };
    let outputs = cx.run_all(packages.iter().map(command).collect());
    let mut differing: Vec<String> =
        outputs.into_iter().flatten().flat_map(|output| differs(&output.text())).collect();
    differing.truncate(MOST);
    differing
}

/// The paths in the output of a verification whose contents differ or that are missing.
fn differs(text: &str) -> Vec<String> {
    let line = |line: &str| {
        let (flags, path) = line.split_at(line.find(" /")?);
        let differs = flags.as_bytes().get(2) == Some(&b'5') || flags.starts_with("missing");
        differs.then(|| path.trim_start().to_owned())
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn a_package_is_told_by_dpkg_and_rpm() {
        // dpkg 1.21.22 and rpm 4.18.
        for (family, argv, code, said, expected) in [
            (
                "debian",
                &["dpkg-query", "--search", "--", "/etc/x"][..],
                0,
                "nginx-common: /etc/x\n",
                Some("nginx-common"),
            ),
            (
                "debian",
                &["dpkg-query", "--search", "--", "/etc/x"],
                0,
                "libc6:amd64, libc6:i386: /etc/x\n",
                Some("libc6"),
            ),
            (
                "debian",
                &["dpkg-query", "--search", "--", "/etc/x"],
                0,
                "diversion by dash from: /etc/x\ndash: /etc/x\n",
                Some("dash"),
            ),
            ("debian", &["dpkg-query", "--search", "--", "/etc/x"], 1, "", None),
            (
                "rhel",
                &["rpm", "--query", "--queryformat=%{NAME}\\n", "--file", "--", "/etc/x"],
                0,
                "nginx\n",
                Some("nginx"),
            ),
            (
                "rhel",
                &["rpm", "--query", "--queryformat=%{NAME}\\n", "--file", "--", "/etc/x"],
                1,
                "file /etc/x is not owned by any package\n",
                None,
            ),
        ] {
            let mut target = FakeTarget::new().answer(argv, code, said, "");
            target.distro.family = family.into();
            assert_eq!(package("/etc/x", &target.context()).as_deref(), expected, "{said}");
        }
        assert_eq!(package("/etc/*", &FakeTarget::new().context()), None);
    }

    #[test]
    fn files_that_differ_are_those_with_another_digest() {
        // dpkg --verify 1.21.22, and rpm --verify 4.18.
        let text = "??5?????? c /etc/nginx/nginx.conf\nmissing   c /etc/a b\nS.5....T.  c /etc/y\n.M.......    /etc/z\n";
        assert_eq!(differs(text), ["/etc/nginx/nginx.conf", "/etc/a b", "/etc/y"]);
    }
}
