//! Volume groups with their physical and logical volumes, as pvs, vgs and lvs report them.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*, text};

use super::commands::{LVS, PVS, VGS};
use super::rows::{LvRow, PvRow, VgRow, rows};
use crate::size;

/// The most names that a problem lists.
const NAMES: usize = 10;

/// Everything that LVM knows.
pub(super) struct Lvm {
    pub(super) groups: Vec<Group>,
    /// Physical volumes that no group has.
    pub(super) unused: Vec<Pv>,
    /// What LVM said beside the reports.
    pub(super) remarks: Vec<String>,
}

pub(super) struct Group {
    pub(super) name: String,
    pub(super) uuid: String,
    pub(super) attributes: String,
    /// The size of an extent in bytes.
    pub(super) extent: u64,
    pub(super) extents: u64,
    pub(super) free_extents: u64,
    pub(super) missing: u64,
    pub(super) pvs: Vec<Pv>,
    pub(super) volumes: Vec<Volume>,
}

pub(super) struct Pv {
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) free: u64,
    pub(super) is_missing: bool,
    pub(super) is_allocatable: bool,
}

/// What a logical volume is, as far as the tools differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Linear, striped or RAID.
    Plain,
    /// A volume that has snapshots of the older kind, which copy on write.
    Origin,
    /// A snapshot of the older kind.
    Snapshot,
    Thin,
    ThinPool,
    /// What the tools show and leave alone: caches, VDO, moves and merges under way.
    Other,
}

pub(super) struct Volume {
    pub(super) group: String,
    pub(super) name: String,
    /// Ten characters, see lvs(8).
    pub(super) attributes: String,
    pub(super) size: u64,
    /// `/dev/vg0/data`, or `vg0/pool` for a volume without a device of its own.
    pub(super) path: String,
    /// `/dev/mapper/vg0-data`.
    pub(super) mapper: String,
    pub(super) layout: String,
    pub(super) origin: Option<String>,
    pub(super) pool: Option<String>,
    /// How full a snapshot or a pool is.
    pub(super) data_percent: Option<f64>,
    pub(super) metadata_percent: Option<f64>,
    /// The number of its device `/dev/dm-N`, where it is active.
    pub(super) number: Option<u32>,
}

impl Volume {
    /// The name that every command takes.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }

    fn attribute(&self, index: usize) -> char {
        self.attributes.chars().nth(index).unwrap_or('-')
    }

    pub(super) fn kind(&self) -> Kind {
        match self.attribute(0) {
            '-' | 'r' | 'R' | 'm' | 'M' => Kind::Plain,
            'o' => Kind::Origin,
            's' => Kind::Snapshot,
            'V' => Kind::Thin,
            't' => Kind::ThinPool,
            _ => Kind::Other,
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.attribute(4) == 'a'
    }

    /// Whether somebody has the device open: a mount, a virtual machine, another mapping on top of it.
    pub(super) fn is_open(&self) -> bool {
        self.attribute(5) == 'o'
    }

    /// What is wrong with it, in words.
    pub(super) fn trouble(&self) -> Option<&'static str> {
        match (self.attribute(4), self.attribute(8)) {
            ('I' | 'S', _) => Some("invalid: it was full, and is lost"),
            ('m' | 'M', _) => Some("its merge failed"),
            ('c' | 'C', _) => Some("its pool needs a check"),
            ('s', _) => Some("suspended: whoever reads or writes it waits"),
            (_, 'p') => Some("partial: a disk is missing"),
            (_, 'r') => Some("its RAID needs a refresh"),
            (_, 'm') => Some("the copies of its RAID differ"),
            (_, 'F') => Some("failed"),
            (_, 'D') => Some("out of space"),
            (_, 'M') => Some("its metadata is read-only"),
            (_, 'E') => Some("its write cache has errors"),
            ('-', _) => Some("inactive"),
            _ => None,
        }
    }

    /// Whether a caller or the kernel calls it so: `/dev/vg0/data`, `/dev/mapper/vg0-data`, `/dev/dm-3`, `vg0/data`.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let short = name.strip_prefix("/dev/").unwrap_or(name);
        let is_number = || {
            let number = short.strip_prefix("dm-").and_then(|number| number.parse::<u32>().ok());
            number.is_some() && number == self.number
        };
        short.split_once('/').is_some_and(|(group, volume)| group == self.group && volume == self.name)
            || name == self.mapper
            || is_number()
    }
}

impl Group {
    pub(super) fn free(&self) -> u64 {
        self.free_extents * self.extent
    }

    /// Extents on disks that LVM may use: not those that are missing or closed for new volumes.
    pub(super) fn usable_extents(&self) -> u64 {
        let usable = self.pvs.iter().filter(|pv| pv.is_allocatable && !pv.is_missing).map(|pv| pv.free);
        (usable.sum::<u64>() / self.extent.max(1)).min(self.free_extents)
    }

    /// The size of so many extents.
    pub(super) fn bytes(&self, extents: u64) -> u64 {
        extents.saturating_mul(self.extent)
    }

    /// The extents that hold so many bytes.
    pub(super) fn extents_for(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.extent.max(1))
    }

    pub(super) fn is_exported(&self) -> bool {
        self.attributes.contains('x')
    }

    fn is_read_only(&self) -> bool {
        self.attributes.starts_with('r')
    }

    /// Refuses a group that LVM changes nothing in.
    pub(super) fn must_be_changeable(&self) -> Result<()> {
        let name = &self.name;
        let (code, message, remedy) = if self.missing > 0 {
            let message = format!(
                "{name} lacks {} of its physical volumes, so that LVM changes nothing in it",
                self.missing
            );
            let remedy = format!(
                "Bring the disk back, then command_run argv=[vgextend,--restoremissing,{name},DISK]; if it is lost for good, \
                 vgreduce --removemissing {name} takes it out of the group"
            );
            ("LVM_GROUP_INCOMPLETE", message, remedy)
        } else if self.is_exported() {
            let remedy = format!("command_run argv=[vgimport,{name}] as_root=true makes it this machine's");
            ("LVM_GROUP_EXPORTED", format!("{name} is exported: it is meant for another machine"), remedy)
        } else if self.is_read_only() {
            let remedy =
                format!("command_run argv=[vgchange,--permission,rw,{name}] as_root=true lets it be changed");
            ("LVM_GROUP_READ_ONLY", format!("{name} is read-only"), remedy)
        } else {
            return Ok(());
        };
        Err(Problem::new(code, Category::State, message).remedy(remedy))
    }
}

impl Lvm {
    /// Asks LVM, which tells something to root alone. A group whose lock another command holds lets it wait until the time is over.
    pub(super) fn read(cx: &Context) -> Result<Self> {
        let [pvs, vgs, lvs] =
            cx.run_each([PVS, VGS, LVS].map(|line| line.command().privilege(Privilege::RootIfAvailable)));
        let mut remarks = Vec::new();
        let pvs: Vec<PvRow> = rows(pvs, "pv", &mut remarks)?;
        let vgs: Vec<VgRow> = rows(vgs, "vg", &mut remarks)?;
        let lvs: Vec<LvRow> = rows(lvs, "lv", &mut remarks)?;
        let mut groups: Vec<_> = vgs.into_iter().map(VgRow::group).collect();
        let mut unused = Vec::new();
        for row in pvs {
            match groups.iter_mut().find(|group| group.uuid == row.vg_uuid && !row.vg_uuid.is_empty()) {
                Some(group) => group.pvs.push(row.pv()),
                None => unused.push(row.pv()),
            }
        }
        for row in lvs {
            if let Some(group) = groups.iter_mut().find(|group| group.uuid == row.vg_uuid) {
                group.volumes.push(row.volume());
            }
        }
        Ok(Self { groups, unused, remarks })
    }

    /// Whether several groups have this name, so that commands can't tell which one is meant.
    pub(super) fn is_ambiguous(&self, name: &str) -> bool {
        self.groups.iter().filter(|group| group.name == name).count() > 1
    }

    /// The group of this name, if there is just one.
    pub(super) fn group(&self, name: &str) -> Result<&Group> {
        let Some(group) = self.groups.iter().find(|group| group.name == name) else {
            let message = format!("there is no volume group {:?}", text::excerpt(name, 60));
            let names: Vec<_> = self.groups.iter().map(|group| group.name.as_str()).collect();
            let problem = Problem::not_found("LVM_GROUP_NOT_FOUND", message);
            return Err(match (names.as_slice(), self.remarks.first()) {
                ([], Some(remark)) => problem.remedy(format!("LVM says: {remark}")),
                ([], None) => {
                    problem.remedy("There is none on this machine: pvcreate and vgcreate make one of a disk")
                }
                (names, _) => problem.remedy(format!("There are {}", text::list(names, NAMES))),
            });
        };
        if self.is_ambiguous(name) {
            let same: Vec<_> = self.groups.iter().filter(|group| group.name == name).collect();
            let uuids: Vec<_> = same.iter().map(|group| group.uuid.as_str()).collect();
            let message = format!("{} volume groups are called {name}: {}", same.len(), uuids.join(", "));
            let remedy = format!(
                "Give one of them another name: command_run argv=[vgrename,{},{name}_old] as_root=true; lvm_list tells what \
                 is in them",
                uuids[0]
            );
            return Err(Problem::new("LVM_GROUP_AMBIGUOUS", Category::State, message).remedy(remedy));
        }
        Ok(group)
    }

    /// The volume of this path or `group/name`, and its group, which can be changed.
    pub(super) fn volume(&self, path: &str) -> Result<(&Group, &Volume)> {
        let all =
            self.groups.iter().flat_map(|group| group.volumes.iter().map(move |volume| (group, volume)));
        let Some((group, volume)) = all.clone().find(|(_, volume)| volume.is_called(path)) else {
            let message = format!(
                "there is no logical volume {:?}: expected a path such as /dev/vg0/data",
                text::excerpt(path, 60)
            );
            let names: Vec<_> = all.map(|(_, volume)| volume.path.as_str()).collect();
            let problem = Problem::not_found("LVM_VOLUME_NOT_FOUND", message);
            return Err(match (names.as_slice(), self.remarks.first()) {
                ([], Some(remark)) => problem.remedy(format!("LVM says: {remark}")),
                ([], None) => problem.remedy("There is none on this machine"),
                (names, _) => problem.remedy(format!("There are {}", text::list(names, NAMES))),
            });
        };
        self.group(&group.name)?.must_be_changeable()?;
        Ok((group, volume))
    }

    /// The problem of a group that has too little room, with what helps.
    pub(super) fn no_room(&self, group: &Group, needed: u64) -> Problem {
        let free = group.bytes(group.usable_extents());
        let message =
            format!("{} has {} free, and {} are needed", group.name, size::shown(free), size::shown(needed));
        let problem = Problem::new("LVM_NO_SPACE", Category::Resource, message);
        let problem = match free {
            0 => problem,
            _ => problem.remedy(format!("Ask for at most {}", size::shown(free))),
        };
        match self.unused.first() {
            Some(pv) => problem.remedy(format!(
                "Add the unused {} ({}): command_run argv=[vgextend,{},{}] as_root=true",
                pv.name,
                size::shown(pv.size),
                group.name,
                pv.name
            )),
            None => problem
                .remedy("Add a disk to the group by pvcreate and vgextend; disk_list tells which there are"),
        }
    }
}
