//! Facts that the operator knows better.

use serde::Deserialize;

use super::Facts;
use crate::visible::excerpt;

/// What the operator says instead; the rest is as found.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overrides {
    family: Option<OneOf<0>>,
    name: Option<Text>,
    version: Option<Text>,
    codename: Option<Text>,
    package_manager: Option<OneOf<1>>,
    firewall_backend: Option<OneOf<2>>,
    mac_system: Option<OneOf<3>>,
    container_runtime: Option<OneOf<4>>,
    log_system: Option<OneOf<5>>,
    user_management: Option<OneOf<6>>,
}

/// The values that a fact may be given, by its number in [`Overrides`].
const WORDS: [&[&str]; 7] = [
    &["debian", "rhel", "arch", "suse", "alpine"],
    &["apt", "dnf", "pacman", "zypper", "apk", "none"],
    &["ufw", "firewalld", "nftables", "none"],
    &["apparmor", "selinux", "none"],
    &["docker", "podman", "none"],
    &["journald", "rsyslog", "both", "none"],
    &["adduser", "useradd"],
];

/// A fact with fixed values: one that no module serves would take tools away without a word.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct OneOf<const FACT: usize>(String);

impl<const FACT: usize> TryFrom<String> for OneOf<FACT> {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        match WORDS[FACT].contains(&word.as_str()) {
            true => Ok(Self(word)),
            false => Err(format!("{:?} is not one of {}", excerpt(&word, 40), WORDS[FACT].join(", "))),
        }
    }
}

/// A fact that may be any short, visible text.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Text(String);

impl TryFrom<String> for Text {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match (1..=64).contains(&text.len()) && !text.chars().any(crate::characters::is_hidden) {
            true => Ok(Self(text)),
            false => Err(format!("{:?} is not a text of 1 to 64 visible characters", excerpt(&text, 40))),
        }
    }
}

impl Overrides {
    pub(super) fn apply(&self, mut facts: Facts) -> Facts {
        let replace = |fact: &mut String, said: Option<&String>| {
            if let Some(said) = said {
                fact.clone_from(said);
            }
        };
        replace(&mut facts.family, self.family.as_ref().map(|said| &said.0));
        replace(&mut facts.name, self.name.as_ref().map(|said| &said.0));
        replace(&mut facts.version, self.version.as_ref().map(|said| &said.0));
        replace(&mut facts.package_manager, self.package_manager.as_ref().map(|said| &said.0));
        replace(&mut facts.firewall_backend, self.firewall_backend.as_ref().map(|said| &said.0));
        replace(&mut facts.mac_system, self.mac_system.as_ref().map(|said| &said.0));
        replace(&mut facts.container_runtime, self.container_runtime.as_ref().map(|said| &said.0));
        replace(&mut facts.log_system, self.log_system.as_ref().map(|said| &said.0));
        replace(&mut facts.user_management, self.user_management.as_ref().map(|said| &said.0));
        facts.codename = self.codename.as_ref().map(|said| said.0.clone()).or(facts.codename);
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            family: "debian".into(),
            name: "Debian GNU/Linux".into(),
            version: "12".into(),
            codename: None,
            package_manager: "apt".into(),
            init_system: "systemd".into(),
            firewall_backend: "none".into(),
            mac_system: "none".into(),
            mac_mode: None,
            container_runtime: "none".into(),
            log_system: "journald".into(),
            user_management: "adduser".into(),
            hostname: "host".into(),
            kernel: "6.1".into(),
            architecture: "x86_64".into(),
            sudo_available: false,
            sudo_limited: false,
            extra: Default::default(),
            user: "root".into(),
            uid: 0,
            machine_id: None,
            missing: Vec::new(),
        }
    }

    #[test]
    fn an_override_replaces_its_field_and_no_other() {
        let overrides: Overrides = serde_yaml::from_str("package_manager: dnf\ncodename: noble").unwrap();
        let facts = overrides.apply(facts());
        assert_eq!(facts.package_manager, "dnf");
        assert_eq!(facts.codename.as_deref(), Some("noble"));
        assert_eq!((facts.family.as_str(), facts.version.as_str()), ("debian", "12"));
    }

    #[test]
    fn an_override_that_no_module_could_serve_is_refused() {
        for bad in [
            "package_manager: atp",
            "family: ''",
            "log_system: \"\\e[2J\"",
            "name: ''",
            "codename: \"a\\u202eb\"",
        ] {
            let error = serde_yaml::from_str::<Overrides>(bad).unwrap_err().to_string();
            assert!(error.contains("is not"), "{bad}: {error}");
        }
    }
}
