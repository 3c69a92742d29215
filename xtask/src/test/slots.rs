//! Places where a unit can run: each has hosts that no other process uses meanwhile, under the names by which tests ask.

use super::units::{Needs, Unit};

/// The images that the hosts of every run are of.
pub(super) const IMAGES_OF_EVERY_RUN: [&str; 3] = ["debian", "rhel-like", "bare"];

/// A place for one unit at a time.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) needs: Needs,
    /// Each with its image.
    pub(super) hosts: Vec<(&'static str, String)>,
    /// `LINUX_SYSADMIN_TEST_HOST`: which host stands in for the one that a test asks for.
    pub(super) instead: String,
}

/// The names by which tests ask for the hosts of a lab.
const LAB: [(&str, &str); 3] = [("debian", "debian1"), ("rhel-like", "rhel1"), ("bare", "bare1")];
const FLEET: usize = 10;

/// How many of each there are at most: enough to keep two processors busy while some wait, and few enough that each keeps
/// limits of seconds.
const MOST: [(Needs, usize); 6] = [
    (Needs::Nothing, 1),
    (Needs::Debian, 2),
    (Needs::Rhel, 1),
    (Needs::Lab, 1),
    (Needs::Fleet, 1),
    (Needs::Stocked, 1),
];

/// As many as these units can use.
pub(super) fn for_units(units: &[Unit]) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (needs, most) in MOST {
        let wanted = units.iter().filter(|unit| unit.needs == needs).count();
        slots.extend((1..=most.min(wanted)).map(|number| slot(needs, number)));
    }
    slots
}

fn slot(needs: Needs, number: usize) -> Slot {
    // The three names of a lab, all for the one host there is.
    let only = |image, name: String| {
        let instead = LAB.map(|(_, asked)| format!("{asked}={name}")).join(",");
        Slot { needs, hosts: vec![(image, name)], instead }
    };
    match needs {
        Needs::Nothing => Slot { needs, hosts: Vec::new(), instead: String::new() },
        Needs::Lab => {
            let name = |asked: &str| format!("{}{number}", asked.trim_end_matches('1'));
            let hosts = LAB.map(|(image, asked)| (image, name(asked))).to_vec();
            let instead = LAB.map(|(_, asked)| format!("{asked}={}", name(asked))).join(",");
            Slot { needs, hosts, instead }
        }
        // The first ones belong to the labs.
        Needs::Debian => only("debian", format!("debian{}", number + 3)),
        Needs::Rhel => only("rhel-like", format!("rhel{}", number + 3)),
        Needs::Stocked => only("stocked", "stocked1".to_owned()),
        Needs::Fleet => {
            let name = |number: usize| format!("fleet{number:02}");
            let instead = LAB.map(|(_, asked)| format!("{asked}={}", name(1))).join(",");
            Slot { needs, hosts: (1..=FLEET).map(|number| ("bare", name(number))).collect(), instead }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_slots_share_a_host() {
        let slots = MOST.iter().flat_map(|(needs, most)| (1..=*most).map(|number| slot(*needs, number)));
        let names: Vec<_> = slots.flat_map(|slot| slot.hosts).map(|(_, name)| name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    }

    #[test]
    fn a_test_finds_a_host_by_each_name_of_a_lab() {
        assert_eq!(slot(Needs::Lab, 2).instead, "debian1=debian2,rhel1=rhel2,bare1=bare2");
        assert_eq!(slot(Needs::Rhel, 1).instead, "debian1=rhel4,rhel1=rhel4,bare1=rhel4");
    }
}
