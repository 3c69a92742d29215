//! Facts that the operator sets in the configuration.

use std::ops::Deref;

use serde::Deserialize;

use super::Facts;
use super::facts::detection;
use host_text::visible::excerpt;

/// The facts that the operator sets. All others are as they were found.
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

/// The values that a fact may be given, by its number in [`Overrides`]. Those that are detected by a table are the table's.
fn allowed_values(fact: usize) -> Vec<&'static str> {
    let table = detection::table();
    let none = std::iter::once("none");
    match fact {
        0 => table.families().collect(),
        1 => table.package_managers().chain(none).collect(),
        2 => table.firewall_backends().chain(none).collect(),
        3 => vec!["apparmor", "selinux", "none"],
        4 => table.container_runtimes().chain(none).collect(),
        5 => vec!["journald", "rsyslog", "both", "none"],
        _ => vec!["adduser", "useradd"],
    }
}

/// A fact with fixed values. A value that no module serves would silently take tools away.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct OneOf<const FACT: usize>(String);

impl<const FACT: usize> Deref for OneOf<FACT> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const FACT: usize> TryFrom<String> for OneOf<FACT> {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        let allowed = allowed_values(FACT);
        match allowed.contains(&word.as_str()) {
            true => Ok(Self(word)),
            false => Err(format!("{:?} is not one of {}", excerpt(&word, 40), allowed.join(", "))),
        }
    }
}

/// A fact that may be any short, visible text.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Text(String);

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Text {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match (1..=64).contains(&text.len()) && !text.chars().any(host_text::characters::is_hidden) {
            true => Ok(Self(text)),
            false => Err(format!("{:?} is not a text of 1 to 64 visible characters", excerpt(&text, 40))),
        }
    }
}

impl Overrides {
    pub(super) fn apply(&self, mut facts: Facts) -> Facts {
        let mut replaced = Vec::new();
        let mut replace = |field: &'static str, fact: &mut String, said: Option<&str>| {
            if let Some(said) = said {
                said.clone_into(fact);
                replaced.push(field);
            }
        };
        // The mode belongs to the system that was found.
        if self.mac_system.as_deref().is_some_and(|said| said != facts.mac_system) {
            facts.mac_mode = None;
        }
        replace("family", &mut facts.family, self.family.as_deref());
        replace("name", &mut facts.name, self.name.as_deref());
        replace("version", &mut facts.version, self.version.as_deref());
        replace("package_manager", &mut facts.package_manager, self.package_manager.as_deref());
        replace("firewall_backend", &mut facts.firewall_backend, self.firewall_backend.as_deref());
        replace("mac_system", &mut facts.mac_system, self.mac_system.as_deref());
        replace("container_runtime", &mut facts.container_runtime, self.container_runtime.as_deref());
        replace("log_system", &mut facts.log_system, self.log_system.as_deref());
        replace("user_management", &mut facts.user_management, self.user_management.as_deref());
        if let Some(said) = self.codename.as_deref() {
            facts.codename = Some(said.to_owned());
            replaced.push("codename");
        }
        facts.unknown.retain(|fact| !replaced.contains(&fact.as_str()));
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
            boot_id: None,
            ..Facts::default()
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
    fn every_override_replaces_its_field_and_makes_it_known() {
        let fields = [
            ("family", "rhel"),
            ("name", "Mine"),
            ("version", "9"),
            ("codename", "own"),
            ("package_manager", "dnf"),
            ("firewall_backend", "firewalld"),
            ("mac_system", "selinux"),
            ("container_runtime", "podman"),
            ("log_system", "both"),
            ("user_management", "useradd"),
        ];
        for (field, value) in fields {
            let overrides: Overrides = serde_yaml::from_str(&format!("{field}: {value:?}")).unwrap();
            let found = Facts { unknown: fields.map(|(field, _)| field.to_owned()).into(), ..facts() };
            let applied = overrides.apply(found.clone());
            assert_eq!(applied.get(field), Some(value), "{field}");
            let others = fields.iter().filter(|(other, _)| *other != field).map(|(other, _)| *other);
            assert_eq!(applied.unknown, others.clone().collect::<Vec<_>>(), "{field}");
            let known = |facts: &Facts| Facts { unknown: Vec::new(), ..facts.clone() };
            for other in others {
                assert_eq!(known(&applied).get(other), known(&found).get(other), "{field}: {other}");
            }
        }
    }

    #[test]
    fn a_mode_is_that_of_the_system_it_was_found_for() {
        let found = Facts { mac_system: "apparmor".into(), mac_mode: Some("enforcing".into()), ..facts() };
        for (said, mode) in [("apparmor", Some("enforcing")), ("selinux", None), ("none", None)] {
            let overrides: Overrides = serde_yaml::from_str(&format!("mac_system: {said}")).unwrap();
            assert_eq!(overrides.apply(found.clone()).mac_mode.as_deref(), mode, "{said}");
        }
    }

    #[test]
    fn what_is_no_fact_of_the_operators_is_refused() {
        for bad in ["init_system: systemd", "mac_mode: enforcing", "hostname: x", "home: /", "ssh_client: ''"]
        {
            let error = serde_yaml::from_str::<Overrides>(bad).unwrap_err().to_string();
            assert!(error.contains("unknown field"), "{bad}: {error}");
        }
    }

    #[test]
    fn each_value_that_can_be_detected_can_be_set() {
        for manager in ["apt", "dnf", "pacman", "zypper", "apk", "xbps", "emerge", "nix", "none"] {
            let overrides: Overrides = serde_yaml::from_str(&format!("package_manager: {manager}")).unwrap();
            assert_eq!(overrides.apply(facts()).package_manager, manager);
        }
        for family in ["debian", "rhel", "arch", "suse", "alpine", "void", "gentoo", "nixos"] {
            let overrides: Overrides = serde_yaml::from_str(&format!("family: {family}")).unwrap();
            assert_eq!(overrides.apply(facts()).family, family);
        }
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
