//! `machine_info`: shows the hardware and the system in one answer.

use linux_sysadmin_sdk::prelude::*;

use crate::hardware::cpu::{self, Cpu};
use crate::hardware::dmi::{self, Dmi};
use crate::hardware::memory::{self, Memory};
use crate::hardware::pci::{self, Pci};
use crate::hardware::storage::{self, Disk};
use crate::hardware::system::{self, System};
use crate::hardware::usb::{self, Usb};
use crate::hardware::{Files, Listings, network};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Default: all in short
    sections: Option<Vec<Section>>,
    /// With serial numbers
    serials: Option<bool>,
}

// A part of the answer. The schema would show a doc comment.
#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Section {
    System,
    Cpu,
    Memory,
    Dmi,
    Pci,
    Usb,
    Disks,
    Network,
}

impl Section {
    fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Dmi => "dmi",
            Self::Pci => "pci",
            Self::Usb => "usb",
            Self::Disks => "disks",
            Self::Network => "network",
        }
    }
}

const ALL: &[Section] = &[
    Section::System,
    Section::Cpu,
    Section::Memory,
    Section::Dmi,
    Section::Pci,
    Section::Usb,
    Section::Disks,
    Section::Network,
];

/// The answer. Sections that weren't asked for, and those of which the machine shows nothing, are left out.
#[derive(Default, Serialize)]
pub(crate) struct Info {
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<System>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<Cpu>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dmi: Option<Dmi>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pci: Option<Pci>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usb: Option<Usb>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disks: Option<Vec<Disk>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<Vec<network::Card>>,
}

pub(crate) fn info(args: Args, cx: &Context) -> Result<Noted<Info>> {
    let in_full = args.sections.is_some();
    let sections = args.sections.unwrap_or_else(|| ALL.to_vec());
    if sections.is_empty() {
        let message = "sections is empty: expected system, cpu, memory, dmi, pci, usb, disks or network";
        return Err(Problem::validation("INVALID_ARGUMENTS", message)
            .remedy("Leave sections out for all of them in short"));
    }
    let wants = |section| sections.contains(&section);
    let serials = args.serials.unwrap_or(false);

    let of = |section, names: &[&str]| match wants(section) {
        true => names.iter().map(|name| (*name).to_owned()).collect(),
        false => Vec::new(),
    };
    let directories = [
        of(Section::Cpu, cpu::DIRECTORIES),
        of(Section::Pci, &[pci::DEVICES]),
        of(Section::Usb, &[usb::DEVICES]),
        of(Section::Disks, &[storage::BLOCK]),
        of(Section::Network, &[network::INTERFACES]),
    ];
    let listings = Listings::take(cx, directories.concat());
    let first = [
        of(Section::System, system::FILES),
        of(Section::Cpu, cpu::FILES),
        of(Section::Memory, memory::FILES),
        of(Section::Dmi, dmi::FILES),
        if wants(Section::Pci) { pci::paths(&listings) } else { Vec::new() },
        if wants(Section::Usb) { usb::paths(&listings) } else { Vec::new() },
        if wants(Section::Disks) { storage::paths(&listings) } else { Vec::new() },
        if wants(Section::Network) { network::paths(&listings) } else { Vec::new() },
    ];
    let mut files = Files::take(cx, first.concat());
    if wants(Section::Cpu) {
        files.add(cx, cpu::paths(&files, &listings));
    }
    if wants(Section::Dmi) && serials {
        files.add_as_root(cx, dmi::SERIALS);
    }

    let mut info = Info::default();
    if wants(Section::System) {
        info.system = Some(System::of(cx, &files, in_full));
    }
    if wants(Section::Cpu) {
        info.cpu = Some(Cpu::of(cx, &files, &listings));
    }
    if wants(Section::Memory) {
        info.memory = Memory::of(&files);
    }
    if wants(Section::Dmi) {
        info.dmi = Dmi::of(&files, in_full);
    }
    if wants(Section::Pci) {
        info.pci = Pci::of(&files, &listings, in_full);
    }
    if wants(Section::Usb) {
        info.usb = Usb::of(&files, &listings, in_full);
    }
    if wants(Section::Disks) {
        info.disks = storage::disks(&files, &listings);
    }
    if wants(Section::Network) {
        info.network = network::cards(&files, &listings);
    }
    let mut notes = Vec::new();
    if in_full {
        let is_there = [
            (Section::System, info.system.is_some()),
            (Section::Cpu, info.cpu.is_some()),
            (Section::Memory, info.memory.is_some()),
            (Section::Dmi, info.dmi.is_some()),
            (Section::Pci, info.pci.is_some()),
            (Section::Usb, info.usb.is_some()),
            (Section::Disks, info.disks.is_some()),
            (Section::Network, info.network.is_some()),
        ];
        let nothing = is_there.into_iter().filter(|(section, is_there)| wants(*section) && !is_there);
        notes.extend(nothing.map(|(section, _)| format!("the machine shows nothing of {}", section.name())));
    }
    Ok(Noted { data: info, notes })
}
