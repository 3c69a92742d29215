//! Facts that the operator sets for single hosts.

use std::collections::BTreeMap;

use serde::Deserialize;

use host_inventory::{HostPattern, Inventory};
use host_target::Overrides;

/// Facts that replace detected ones, by hosts: their names, names of groups, and patterns of names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "BTreeMap<String, Overrides>")]
pub struct DistroOf(Vec<(HostPattern, Overrides)>);

impl TryFrom<BTreeMap<String, Overrides>> for DistroOf {
    type Error = String;

    fn try_from(written: BTreeMap<String, Overrides>) -> Result<Self, String> {
        let rows = written
            .into_iter()
            .map(|(word, overrides)| HostPattern::try_from(word).map(|pattern| (pattern, overrides)));
        rows.collect::<Result<_, _>>().map(Self)
    }
}

impl DistroOf {
    /// The facts for a host. Its own name goes before groups and patterns; of those the first in alphabetical order that
    /// has the host counts.
    pub fn of(&self, host: &str, inventory: &Inventory) -> Overrides {
        let is_name = |pattern: &HostPattern| matches!(pattern, HostPattern::Name(name) if name == host);
        let has_host = |pattern: &HostPattern| match pattern {
            HostPattern::Glob(glob) => glob.matches(host),
            HostPattern::Name(group) => {
                inventory.members(group).is_some_and(|members| members.contains(&host))
            }
        };
        let own = self.0.iter().find(|(pattern, _)| is_name(pattern));
        let found = own.or_else(|| self.0.iter().find(|(pattern, _)| has_host(pattern)));
        found.map(|(_, overrides)| overrides.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_inventory::Groups;

    #[test]
    fn a_hosts_own_name_goes_before_its_groups_and_patterns() {
        let groups: Groups = serde_yaml::from_str("routers: [alpha, beta]").unwrap();
        let inventory = Inventory::load(&groups, &[]).unwrap();
        let text = "alpha: {package_manager: apk}\nrouters: {package_manager: xbps}\n'web*': {package_manager: pacman}\n\
            web1: {package_manager: zypper}\n";
        let written: DistroOf = serde_yaml::from_str(text).unwrap();
        let of = |host: &str| format!("{:?}", written.of(host, &inventory));
        for (host, manager) in [
            ("alpha", Some("apk")),
            ("beta", Some("xbps")),
            ("web1", Some("zypper")),
            ("web2", Some("pacman")),
            ("other", None),
        ] {
            let set = |manager: &str| -> Overrides {
                serde_yaml::from_str(&format!("package_manager: {manager}")).unwrap()
            };
            let expected = manager.map(set).unwrap_or_default();
            assert_eq!(of(host), format!("{expected:?}"), "{host}");
        }
    }

    #[test]
    fn what_is_no_host_and_no_fact_is_refused() {
        for (bad, said) in [
            ("'-web': {package_manager: apk}", ""),
            ("'web[': {package_manager: apk}", "["),
            ("web1: {package_manager: brew}", "is not one of"),
            ("web1: {hostname: x}", "unknown field"),
            ("[web1]", ""),
        ] {
            let error = serde_yaml::from_str::<DistroOf>(bad).unwrap_err().to_string();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }
}
