//! What tells which family, package manager, init system, firewall and container runtime a target has. The table is in
//! `detection.yaml`, which says what its parts mean.

use std::sync::LazyLock;

use serde::Deserialize;

/// The name that process 1 has under several init systems.
const PLAIN: &str = "init";

static TABLE: LazyLock<Detection> = LazyLock::new(|| {
    // Without the table, a target has its own id as its family, and nothing else is known. A test reads the same text.
    serde_yaml::from_str(include_str!("detection.yaml")).unwrap_or_else(|error| {
        tracing::error!(%error, "the table of detection can't be read");
        Detection::default()
    })
});

/// The table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Detection {
    families: Vec<Family>,
    package_managers: Vec<PackageManager>,
    init_systems: Vec<InitSystem>,
    firewall_backends: Vec<ByProgram>,
    container_runtimes: Vec<ByProgram>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    name: String,
    ids: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageManager {
    name: String,
    program: String,
    families: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InitSystem {
    name: String,
    processes: Vec<String>,
    marks: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ByProgram {
    name: String,
    program: String,
}

/// The table. It is read on first use.
pub(crate) fn table() -> &'static Detection {
    &TABLE
}

impl Detection {
    /// The family of a distribution. None where it belongs to none that the table has.
    pub(super) fn family(&'static self, id: &str, id_like: &str) -> Option<&'static str> {
        let of_id = |id: &str| self.families.iter().find(|family| family.ids.iter().any(|known| known == id));
        let mut ids = std::iter::once(id).chain(id_like.split_whitespace());
        ids.find_map(of_id).map(|family| family.name.as_str())
    }

    /// The package manager: that of the family, or else the first one that is there.
    pub(super) fn package_manager(
        &'static self,
        family: Option<&str>,
        has: impl Fn(&str) -> bool,
    ) -> Option<&'static str> {
        let there: Vec<&PackageManager> =
            self.package_managers.iter().filter(|manager| has(&manager.program)).collect();
        let is_own =
            |manager: &&&PackageManager| manager.families.iter().any(|own| Some(own.as_str()) == family);
        let manager = there.iter().find(is_own).or(there.first()).copied();
        manager.map(|manager| manager.name.as_str())
    }

    /// The init system by the name of process 1, which may be empty. None where the table has no such one.
    pub(super) fn init_system(
        &'static self,
        process: &str,
        has: impl Fn(&str) -> bool,
    ) -> Option<&'static str> {
        let named = |system: &&InitSystem| system.processes.iter().any(|known| known == process);
        let marked = |system: &&InitSystem| system.marks.iter().any(|mark| has(mark));
        let by_mark = process.is_empty() || process == PLAIN;
        let mut systems = self.init_systems.iter();
        let found = if by_mark { systems.find(marked) } else { systems.find(named) };
        found.map(|system| system.name.as_str())
    }

    /// The firewall's manager.
    pub(super) fn firewall_backend(&'static self, has: impl Fn(&str) -> bool) -> Option<&'static str> {
        first(&self.firewall_backends, has)
    }

    /// The container runtime.
    pub(super) fn container_runtime(&'static self, has: impl Fn(&str) -> bool) -> Option<&'static str> {
        first(&self.container_runtimes, has)
    }

    /// The programs that the table asks about.
    pub(super) fn programs(&'static self) -> impl Iterator<Item = &'static str> {
        let managers = self.package_managers.iter().map(|manager| manager.program.as_str());
        let others = self.firewall_backends.iter().chain(&self.container_runtimes);
        managers.chain(others.map(|row| row.program.as_str()))
    }

    /// The marks that the table asks about.
    pub(super) fn marks(&'static self) -> impl Iterator<Item = &'static str> {
        self.init_systems.iter().flat_map(|system| &system.marks).map(String::as_str)
    }

    /// The families.
    pub(crate) fn families(&'static self) -> impl Iterator<Item = &'static str> {
        self.families.iter().map(|family| family.name.as_str())
    }

    /// The package managers.
    pub(crate) fn package_managers(&'static self) -> impl Iterator<Item = &'static str> {
        self.package_managers.iter().map(|manager| manager.name.as_str())
    }

    /// The firewalls' managers.
    pub(crate) fn firewall_backends(&'static self) -> impl Iterator<Item = &'static str> {
        self.firewall_backends.iter().map(|row| row.name.as_str())
    }

    /// The container runtimes.
    pub(crate) fn container_runtimes(&'static self) -> impl Iterator<Item = &'static str> {
        self.container_runtimes.iter().map(|row| row.name.as_str())
    }
}

fn first(rows: &'static [ByProgram], has: impl Fn(&str) -> bool) -> Option<&'static str> {
    rows.iter().find(|row| has(&row.program)).map(|row| row.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read_and_names_everything_once() {
        let read: Detection = serde_yaml::from_str(include_str!("detection.yaml")).unwrap();
        assert!(read.families.len() >= 8 && read.package_managers.len() >= 8);
        assert_eq!(table().families().count(), read.families.len());
        let lists: [Vec<&str>; 5] = [
            table().families().collect(),
            table().package_managers().collect(),
            table().firewall_backends().collect(),
            table().container_runtimes().collect(),
            read.families.iter().flat_map(|family| family.ids.iter().map(String::as_str)).collect(),
        ];
        for mut list in lists {
            let count = list.len();
            list.sort_unstable();
            list.dedup();
            assert_eq!(list.len(), count, "{list:?}");
        }
        for family in read.package_managers.iter().flat_map(|manager| &manager.families) {
            assert!(read.families.iter().any(|known| known.name == *family), "{family}");
        }
    }

    #[test]
    fn each_row_is_found_by_what_it_is_known_by() {
        for family in &table().families {
            for id in &family.ids {
                assert_eq!(table().family(id, ""), Some(family.name.as_str()));
                assert_eq!(table().family("mine", &format!("other {id}")), Some(family.name.as_str()));
            }
        }
        for manager in &table().package_managers {
            let found = table().package_manager(None, |program| program == manager.program);
            assert_eq!(found, Some(manager.name.as_str()));
            for family in &manager.families {
                assert_eq!(
                    table().package_manager(Some(family.as_str()), |_| true),
                    Some(manager.name.as_str())
                );
            }
        }
        for system in &table().init_systems {
            for process in &system.processes {
                assert_eq!(table().init_system(process, |_| false), Some(system.name.as_str()));
            }
            for mark in &system.marks {
                for process in ["", "init"] {
                    let found = table().init_system(process, |path| path == mark);
                    assert_eq!(found, Some(system.name.as_str()));
                }
                assert_eq!(table().init_system("procd", |path| path == mark), None);
            }
        }
    }
}
