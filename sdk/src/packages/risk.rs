//! The risk of a change of packages, as its simulation shows it.

use std::collections::BTreeMap;

use super::types::{Installed, Operation, Request, Simulated, Verb};
use crate::{Risk, text};

/// A risk above the tool's own, and the warnings that a person reads before saying yes.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Assessment {
    pub(super) risk: Option<Risk>,
    pub(super) warnings: Vec<String>,
}

impl Assessment {
    fn add(&mut self, risk: Option<Risk>, warning: String) {
        self.risk = self.risk.max(risk);
        self.warnings.push(warning);
    }
}

/// Packages without which administrators lose access or the machine doesn't work, and what each of them is.
const VITAL: &[(&[&str], &str)] = &[
    (&["sudo", "sudo-ldap", "sudo-rs", "doas", "opendoas"], "what gives administrators their rights"),
    (&["openssh-server", "openssh", "ssh", "dropbear"], "what people log in by from elsewhere"),
    (
        &[
            "systemd",
            "systemd-sysv",
            "sysvinit-core",
            "init",
            "openrc",
            "runit-init",
            "busybox-init",
            "upstart",
        ],
        "the init system",
    ),
    (
        &["apt", "dpkg", "dnf", "dnf5", "yum", "rpm", "pacman", "zypper", "libzypp", "apk-tools"],
        "a package manager",
    ),
];

/// The most names in a warning.
const MOST_NAMES: usize = 30;

/// Names of boot loaders. A package name may go on with a dash: `grub-pc`, `grub2-efi-x64`, `shim-signed`.
const BOOT_LOADERS: &[&str] = &["grub", "grub2", "shim", "systemd-boot"];

pub(super) fn assess(
    request: &Request,
    simulated: &Simulated,
    before: &[Installed],
    kernel: &str,
) -> Assessment {
    let mut assessment = Assessment::default();
    let asked: &[String] = match request {
        Request::Remove(names) | Request::Purge(names) => names,
        _ => &[],
    };
    let installed: BTreeMap<_, _> = before.iter().map(|package| (package.name.as_str(), package)).collect();
    let removed: Vec<_> = simulated.operations.iter().filter(|operation| operation.is_removal()).collect();
    for operation in &removed {
        let essential = installed.get(operation.name.as_str()).is_some_and(|package| package.essential);
        if let Some(what) = vital(operation, essential, kernel) {
            let warning = format!("{} is removed: {what}", operation.name);
            assessment.add(Some(Risk::Critical), warning);
        }
    }
    let besides: Vec<_> =
        removed.iter().map(|operation| &operation.name).filter(|name| !asked.contains(name)).collect();
    if !besides.is_empty() {
        let names = text::list(&besides, MOST_NAMES);
        match request {
            Request::Remove(_) | Request::Purge(_) => {
                assessment.add(None, format!("removes as well: {names}"));
            }
            Request::Undo(_) => assessment.add(Some(Risk::High), format!("removes: {names}")),
            _ => assessment.add(Some(Risk::High), format!("removes as well: {names}")),
        }
    }
    let is_back = matches!(request, Request::Version(..) | Request::Undo(_));
    let lowered = simulated.operations.iter().filter(|operation| operation.verb == Verb::Downgrade);
    let lowered: Vec<_> = lowered.map(|operation| operation.versions()).collect();
    if !is_back && !lowered.is_empty() {
        assessment
            .add(Some(Risk::High), format!("goes back to an earlier version of {}", lowered.join(", ")));
    }
    let purged: Vec<_> =
        simulated.operations.iter().filter(|operation| operation.verb == Verb::Purge).collect();
    if !purged.is_empty() {
        assessment.add(None, "configuration files are removed as well, and can't be had back".to_owned());
    }
    assessment
}

/// The reason why the machine or its administrators need the package.
fn vital(operation: &Operation, essential: bool, kernel: &str) -> Option<&'static str> {
    let name = operation.name.as_str();
    if let Some((_, what)) = VITAL.iter().find(|(names, _)| names.contains(&name)) {
        return Some(what);
    }
    if is_kernel(operation, kernel) {
        return Some("the kernel that is running");
    }
    if BOOT_LOADERS.iter().any(|loader| name == *loader || name.starts_with(&format!("{loader}-"))) {
        return Some("what the machine boots by");
    }
    essential.then_some("the package manager guards it as essential")
}

/// Whether the package is the running kernel. Debian has the release in the name (`linux-image-6.1.0-18-amd64`), Fedora in
/// the version (`kernel-core` `6.8.5-301.fc40`). Arch has one package of each flavour (`linux`, `linux-lts`).
fn is_kernel(operation: &Operation, kernel: &str) -> bool {
    let (name, version) = (operation.name.as_str(), operation.from.as_str());
    let is_flavour = ["linux", "linux-lts", "linux-zen", "linux-hardened"].contains(&name);
    let is_debian = name.strip_prefix("linux-image-").is_some_and(|rest| {
        rest == kernel || rest.strip_prefix("unsigned-").is_some_and(|release| release == kernel)
    });
    let is_fedora = ["kernel", "kernel-core", "kernel-modules", "kernel-modules-core", "kernel-rt-core"]
        .contains(&name)
        && !version.is_empty()
        && kernel.starts_with(version);
    is_flavour || is_debian || is_fedora
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighed(request: &Request, operations: &[(Verb, &str, &str, &str)], essential: &[&str]) -> Assessment {
        let operations =
            operations.iter().map(|(verb, name, from, to)| Operation::new(*verb, *name, *from, *to));
        let simulated = Simulated { operations: operations.collect(), ..Simulated::default() };
        let before = essential.iter().map(|name| Installed {
            name: (*name).to_owned(),
            essential: true,
            ..Installed::default()
        });
        assess(request, &simulated, &before.collect::<Vec<_>>(), "6.8.5-301.fc40.x86_64")
    }

    #[test]
    fn what_the_machine_or_its_administrators_cannot_do_without_is_critical_whoever_asked() {
        let remove = Request::Remove(vec!["x".into()]);
        let install = Request::Install(vec!["y".into()]);
        let table = [
            ("sudo", "", "rights"),
            ("openssh-server", "", "log in"),
            ("systemd-sysv", "", "init"),
            ("apt", "", "package manager"),
            ("kernel-core", "6.8.5-301.fc40", "kernel"),
            ("linux-image-6.8.5-301.fc40.x86_64", "", "kernel"),
            ("linux", "6.8.5.arch1-1", "kernel"),
            ("grub-pc", "2.06", "boots"),
            ("grub2-pc", "2.06-77.el9", "boots"),
            ("grub2-efi-x64", "2.06-77.el9", "boots"),
            ("grub2-common", "2.06-13", "boots"),
            ("shim", "15.8-1.el9", "boots"),
            ("coreutils", "9.1", "essential"),
        ];
        for (name, version, said) in table {
            for request in [&remove, &install] {
                let assessment = weighed(request, &[(Verb::Remove, name, version, "")], &["coreutils"]);
                assert_eq!(assessment.risk, Some(Risk::Critical), "{name}");
                assert!(assessment.warnings[0].contains(said), "{name}: {:?}", assessment.warnings);
            }
        }
        for (name, version) in
            [("kernel-core", "6.7.0-1.fc40"), ("linux-image-5.10.0-1-amd64", "5"), ("bash", "5")]
        {
            let remove = Request::Remove(vec![name.into()]);
            assert_eq!(
                weighed(&remove, &[(Verb::Remove, name, version, "")], &[]),
                Assessment::default(),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_removed_without_having_been_asked_for_is_told_and_raises_what_only_adds() {
        let clash = [(Verb::Remove, "lab-hello", "1.0", ""), (Verb::Install, "lab-clash", "", "1.0")];
        let assessment = weighed(&Request::Install(vec!["lab-clash".into()]), &clash, &[]);
        assert_eq!(assessment.risk, Some(Risk::High));
        // No manager says whether the package is in the way, or only too old to be kept.
        assert_eq!(assessment.warnings, ["removes as well: lab-hello"]);
        let both = [(Verb::Remove, "lab-hello", "1.0", ""), (Verb::Remove, "lab-dep", "1.0", "")];
        let assessment = weighed(&Request::Remove(vec!["lab-hello".into()]), &both, &[]);
        assert_eq!(assessment.risk, None);
        assert_eq!(assessment.warnings, ["removes as well: lab-dep"]);
        let all = Request::Remove(vec!["lab-hello".into(), "lab-dep".into()]);
        assert_eq!(weighed(&all, &both, &[]), Assessment::default());
    }

    #[test]
    fn an_earlier_version_raises_what_did_not_ask_for_one() {
        let lowered = [(Verb::Downgrade, "lab-hello", "2.0", "1.0")];
        assert_eq!(weighed(&Request::UpdateAll, &lowered, &[]).risk, Some(Risk::High));
        assert_eq!(weighed(&Request::Version("lab-hello".into(), "1.0".into()), &lowered, &[]).risk, None);
    }
}
