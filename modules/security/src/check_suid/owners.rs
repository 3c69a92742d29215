//! The packages that files come from, and whether the files are still as those brought them.
//!
//! A machine may have both databases: then a file is of the one that knows it.

use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::{DurationCategory, Privilege, packages::check_name, prelude::*, text};

use super::{ByPackage, search::Privileged, shipped};

/// Prints the packages of dpkg that have a path, which is taken for a pattern where it looks like one.
const DPKG_SEARCH: CommandLine = CommandLine::new("dpkg-query --search -- <text>...");
/// Compares the contents of packages with their digests.
const DPKG_VERIFY: CommandLine = CommandLine::new("dpkg --verify <package>...");
/// The same for packages of which there may be several architectures.
const DPKG_VERIFY_QUALIFIED: CommandLine = CommandLine::new("dpkg --verify <package>:<package>...");
/// Prints the package of rpm that has a file.
const RPM_OWNER: CommandLine = CommandLine::new(r"rpm --query '--queryformat=%{NAME}\n' --file <text>");
/// Compares packages with rpm's database: contents, modes, owners, capabilities.
const RPM_VERIFY: CommandLine = CommandLine::new("rpm --verify <package>...");

/// The most files that rpm is asked about at once.
const AT_ONCE: usize = 32;

pub(super) fn grants() -> Vec<CommandGrant> {
    let looks = [
        DPKG_SEARCH.read("which packages privileged programs come from"),
        RPM_OWNER.read("which packages privileged programs come from"),
        DPKG_VERIFY.read("whether they are as their packages brought them").as_root_if_available(),
        DPKG_VERIFY_QUALIFIED.read("whether they are as their packages brought them").as_root_if_available(),
        RPM_VERIFY.read("whether they are as their packages brought them").as_root_if_available(),
    ];
    looks.into()
}

/// What the databases say of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Owner {
    /// No database could be asked, or the file is gone meanwhile.
    Unknown,
    /// No package has the file.
    None,
    /// The package that has it.
    Package {
        name: String,
        /// True if its contents aren't those that the package brought.
        is_modified: bool,
        /// True if the package brings it with these rights.
        has_rights: bool,
    },
}

/// What the databases say of all files.
#[derive(Default)]
pub(super) struct Owners {
    /// By path, and whether it is about the file's capabilities.
    by_file: BTreeMap<(String, bool), Owner>,
}

impl Owners {
    pub(super) fn look(files: &[Privileged], cx: &Context, unseen: &mut Vec<String>) -> Self {
        let mut owners = Self::default();
        if files.is_empty() {
            return owners;
        }
        let asked = [owners.ask_dpkg(files, cx, unseen), owners.ask_rpm(files, cx, unseen)];
        if asked.iter().all(|asked| !matches!(asked, Ok(true))) {
            unseen.push("which packages the files come from: no database could be asked".to_owned());
        }
        owners
    }

    pub(super) fn of(&self, file: &Privileged) -> &Owner {
        self.by_file.get(&key(file)).unwrap_or(&Owner::Unknown)
    }

    /// Asks dpkg. False where the target has none.
    fn ask_dpkg(&mut self, files: &[Privileged], cx: &Context, unseen: &mut Vec<String>) -> Result<bool> {
        let paths: Vec<String> = files
            .iter()
            .filter(|file| !text::has_hidden(&file.path))
            .flat_map(|file| names(&file.path))
            .collect();
        let output = cx.run(DPKG_SEARCH.with(paths).duration(DurationCategory::Quick))?;
        // 1 says that some path is no package's.
        if ![0, 1].contains(&output.exit_code) {
            unseen.push(format!("packages of dpkg: {}", text::of_line(&output.error_text())));
            return Ok(false);
        }
        let said = output.text();
        // Of a path that a package has led elsewhere, dpkg says that as well.
        let is_diversion =
            |line: &&str| line.starts_with("diversion by ") || line.starts_with("local diversion ");
        let lines: BTreeMap<&str, &str> = said
            .lines()
            .filter(|line| !is_diversion(line))
            .filter_map(|line| line.split_once(": ").map(|(names, path)| (path, names)))
            .filter(|(path, _)| path.starts_with('/'))
            .collect();
        // 0 says that each path is some package's.
        let is_said = !lines.is_empty() || said.lines().any(|line| is_diversion(&line));
        if !is_said && (output.exit_code == 0 || !said.trim().is_empty()) {
            unseen.push("packages of dpkg: dpkg-query printed another form than expected".to_owned());
            return Ok(false);
        }
        let mut packages = ByPackage::new();
        for file in files {
            let owner = names(&file.path).into_iter().find_map(|name| lines.get(name.as_str()).copied());
            match owner {
                Some(names) => {
                    let package = names.split(", ").next().unwrap_or_default();
                    packages.entry(package.to_owned()).or_default().push(file);
                }
                None => {
                    self.by_file.insert(key(file), Owner::None);
                }
            }
        }
        let modified = dpkg_modified(&packages, cx, unseen);
        for (package, files) in packages {
            let plain = package.split(':').next().unwrap_or_default();
            for file in files {
                let owner = Owner::Package {
                    name: plain.to_owned(),
                    is_modified: names(&file.path).iter().any(|name| modified.contains(name)),
                    has_rights: shipped::has(plain, &file.path),
                };
                self.by_file.insert(key(file), owner);
            }
        }
        Ok(true)
    }

    /// Asks rpm about the files that dpkg doesn't know. False where the target has none.
    fn ask_rpm(&mut self, files: &[Privileged], cx: &Context, unseen: &mut Vec<String>) -> Result<bool> {
        let open: Vec<&Privileged> =
            files.iter().filter(|file| !matches!(self.of(file), Owner::Package { .. })).collect();
        let mut packages = ByPackage::new();
        let mut has_answered = false;
        for files in open.chunks(AT_ONCE) {
            let asked: Vec<&&Privileged> =
                files.iter().filter(|file| !text::has_hidden(&file.path)).collect();
            let commands = asked.iter().map(|file| RPM_OWNER.with([&file.path])).collect();
            for (file, output) in asked.iter().zip(cx.run_all(commands)) {
                let output = output?;
                let said = output.text();
                let package = said.lines().next().unwrap_or_default();
                if output.exit_code == 0 && check_name(package).is_ok() {
                    packages.entry(package.to_owned()).or_default().push(file);
                } else if said.contains("not owned by any package") {
                    self.by_file.insert(key(file), Owner::None);
                } else if output.error_text().contains("No such file") {
                    // The file is gone meanwhile.
                    self.by_file.remove(&key(file));
                } else {
                    let why = match output.error_text() {
                        nothing if nothing.is_empty() => "rpm printed another form than expected".to_owned(),
                        error => text::of_line(&error),
                    };
                    unseen.push(format!("packages of rpm: {why}"));
                    return Ok(has_answered);
                }
                has_answered = true;
            }
        }
        self.verify_rpm(packages, cx, unseen);
        Ok(has_answered || open.is_empty())
    }

    fn verify_rpm(&mut self, packages: ByPackage, cx: &Context, unseen: &mut Vec<String>) {
        let names: Vec<&String> = packages.keys().filter(|name| check_name(name).is_ok()).collect();
        if names.is_empty() {
            return;
        }
        let command = RPM_VERIFY.with(names).privilege(Privilege::RootIfAvailable);
        let said = match cx.run(command.duration(DurationCategory::Normal)) {
            Ok(output) => {
                unseen.extend(unverified(&output));
                output.text().into_owned()
            }
            Err(problem) => {
                unseen.push(format!("whether files are modified: {}", text::of_line(&problem.message)));
                String::new()
            }
        };
        let lines: BTreeMap<&str, &str> = said.lines().filter_map(verified).collect();
        for (name, files) in packages {
            for file in files {
                let differs = lines.get(file.path.as_str()).copied().unwrap_or_default();
                let owner = Owner::Package {
                    name: name.clone(),
                    is_modified: differs.contains('5'),
                    has_rights: !differs.contains(if file.capabilities.is_some() { 'P' } else { 'M' }),
                };
                self.by_file.insert(key(file), owner);
            }
        }
    }
}

fn key(file: &Privileged) -> (String, bool) {
    (file.path.clone(), file.capabilities.is_some())
}

/// The paths whose contents aren't those of dpkg's packages.
fn dpkg_modified(packages: &ByPackage, cx: &Context, unseen: &mut Vec<String>) -> BTreeSet<String> {
    let known = packages.keys().map(|name| name.as_str());
    let (qualified, plain): (Vec<_>, Vec<_>) = known.partition(|name| name.contains(':'));
    let commands = [(DPKG_VERIFY, plain), (DPKG_VERIFY_QUALIFIED, qualified)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(line, names)| line.with(names).privilege(Privilege::RootIfAvailable))
        .map(|command| command.duration(DurationCategory::Normal))
        .collect();
    let mut modified = BTreeSet::new();
    for output in cx.run_all(commands) {
        match output {
            Ok(output) => {
                unseen.extend(unverified(&output));
                let said = output.text();
                let differing =
                    said.lines().filter_map(verified).filter(|(_, differs)| differs.contains('5'));
                modified.extend(differing.map(|(path, _)| path.to_owned()));
            }
            Err(problem) => {
                unseen.push(format!("whether files are modified: {}", text::of_line(&problem.message)));
            }
        }
    }
    modified
}

/// Why a comparison of packages tells nothing: the database can't be read, or the output has another form. Packages that are as
/// they were brought give no output.
fn unverified(output: &Output) -> Option<String> {
    let said = output.text();
    let is_known = |line: &str| {
        verified(line).is_some()
            || line.starts_with("missing ")
            || line.starts_with("Unsatisfied dependencies")
    };
    let why = match said.trim().is_empty() {
        true if output.exit_code != 0 && !output.error_text().is_empty() => {
            text::of_line(&output.error_text())
        }
        false if !said.lines().any(is_known) => "the output has another form than expected".to_owned(),
        _ if output.truncated => "the output is longer than what is kept".to_owned(),
        _ => return None,
    };
    Some(format!("whether files are modified: {why}"))
}

/// The path and what differs, in a line of `dpkg --verify` and `rpm --verify`: `S.5....T.  c /etc/x`, or
/// `??5??????   /usr/bin/x`.
fn verified(line: &str) -> Option<(&str, &str)> {
    let (differs, rest) = line.split_once(' ')?;
    let path = &rest[rest.find('/')?..];
    (differs.len() == 9).then_some((path, differs))
}

/// The names under which a package may have a path, where `/bin` and the like are links to directories below `/usr`.
fn names(path: &str) -> Vec<String> {
    let merged = ["/usr/bin/", "/usr/sbin/", "/usr/lib/", "/usr/lib64/", "/usr/libexec/"];
    let short = merged.iter().any(|directory| path.starts_with(directory)).then(|| path.strip_prefix("/usr"));
    std::iter::once(path).chain(short.flatten()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verified_line_is_what_differs_and_the_path() {
        for (line, expected) in [
            ("??5??????   /usr/bin/chage", Some(("/usr/bin/chage", "??5??????"))),
            ("??5?????? c /etc/login.defs", Some(("/etc/login.defs", "??5??????"))),
            (".M....G..  g /a b", Some(("/a b", ".M....G.."))),
            ("missing     /usr/share/doc/x", None),
            ("dpkg: package 'x' is not installed", None),
            ("", None),
        ] {
            assert_eq!(verified(line), expected, "{line}");
        }
    }

    #[test]
    fn a_path_below_usr_may_be_its_packages_without_usr() {
        assert_eq!(names("/usr/bin/su"), ["/usr/bin/su", "/bin/su"]);
        assert_eq!(names("/opt/x"), ["/opt/x"]);
        assert_eq!(names("/usr/local/bin/x"), ["/usr/local/bin/x"]);
    }
}
