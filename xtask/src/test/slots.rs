//! Slots in which units run. Each has hosts that no other process uses meanwhile, and tests ask for them by fixed names.

use super::units::{Needs, Unit};

/// The images from which the hosts of every run are made.
pub(super) const IMAGES_OF_EVERY_RUN: [&str; 3] = ["debian", "rhel-like", "bare"];

/// A slot for one unit at a time.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) needs: Needs,
    /// The hosts of the slot, each with its image.
    pub(super) hosts: Vec<(&'static str, String)>,
    /// The value of `LINUX_SYSADMIN_TEST_HOST`: the hosts that replace those for which a test asks.
    pub(super) instead: String,
}

/// The names by which tests ask for the hosts of a lab, each with its image.
const LAB: [(&str, &str); 3] = [("debian", "debian1"), ("rhel-like", "rhel1"), ("bare", "bare1")];
const FLEET: usize = 10;

/// The most slots for each need. They keep two processors busy while some units wait, and are few enough that each unit
/// keeps limits of seconds.
const MOST: [(Needs, usize); 7] = [
    (Needs::Nothing, 1),
    (Needs::Debian, 2),
    (Needs::Rhel, 1),
    (Needs::Lab, 2),
    (Needs::Fleet, 1),
    (Needs::Stocked, 1),
    (Needs::Arch, 1),
];

/// Makes as many slots as these units can use.
pub(super) fn for_units(units: &[Unit]) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (needs, most) in MOST {
        let wanted = units.iter().filter(|unit| unit.needs == needs).count();
        slots.extend((1..=most.min(wanted)).map(|number| slot(needs, number)));
    }
    slots
}

fn slot(needs: Needs, number: usize) -> Slot {
    // All three names of a lab stand for the one host of the slot.
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
        // The lowest numbers belong to the labs.
        Needs::Debian => only("debian", format!("debian{}", number + 3)),
        Needs::Rhel => only("rhel-like", format!("rhel{}", number + 3)),
        Needs::Stocked => only("stocked", "stocked1".to_owned()),
        Needs::Arch => only("arch-like", "arch1".to_owned()),
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
