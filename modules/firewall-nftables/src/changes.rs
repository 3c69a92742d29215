//! Changes of the tools' own table: its file is written anew and loaded. Other tables are left alone. The distribution's own
//! file for nftables.service includes that file while the table is to be there at each start.

use linux_sysadmin_sdk::Category;
use linux_sysadmin_sdk::firewall::{self, After, FirewallRule, Kernel, Proposal, Ruleset};
use linux_sysadmin_sdk::prelude::*;

use crate::own_table::{self, FAMILY, NAME};

const DELETE: CommandLine = CommandLine::new("nft delete table inet linux_sysadmin");
const ENABLE: CommandLine = CommandLine::new("systemctl enable -- nftables.service");
const DISABLE: CommandLine = CommandLine::new("systemctl disable -- nftables.service");

/// Where a distribution keeps rules of nftables.
struct Place {
    /// The file that nftables.service loads.
    config: &'static str,
    /// The directory of files for it to include.
    directory: &'static str,
    /// The file of the tools' own table.
    own: &'static str,
    /// Loads that file.
    load: CommandLine,
}

/// The first place is that of Red Hat's distributions, the second one that of the others.
const PLACES: [Place; 2] = [
    Place {
        config: "/etc/sysconfig/nftables.conf",
        directory: "/etc/nftables",
        own: "/etc/nftables/linux-sysadmin.nft",
        load: CommandLine::new("nft -f /etc/nftables/linux-sysadmin.nft"),
    },
    Place {
        config: "/etc/nftables.conf",
        directory: "/etc/nftables.d",
        own: "/etc/nftables.d/linux-sysadmin.nft",
        load: CommandLine::new("nft -f /etc/nftables.d/linux-sysadmin.nft"),
    },
];

/// Asks for the table's file, and for what loads it.
pub(crate) fn granted(module: Module) -> Module {
    let of_all = module
        .command(DELETE.change(Risk::High, "take the tools' own table out of the kernel"))
        .command(ENABLE.change(Risk::Critical, "have the table at each start"))
        .command(DISABLE.change(Risk::Critical, "undo that"));
    PLACES.into_iter().fold(of_all, |module, place| {
        module
            .command(place.load.change(Risk::High, "have the kernel's own table as its file says"))
            .path(PathGrant::read(place.config, "what nftables.service loads").as_root_if_available())
            .path(PathGrant::read(place.own, "the tools' own table").as_root_if_available())
            .path(PathGrant::write(place.config, "include the tools' own table at each start"))
            .path(PathGrant::write(place.directory, "make the directory of the table's file"))
            .path(PathGrant::write(place.own, "the tools' own table"))
    })
}

/// The files, as they are.
pub(crate) struct Files {
    place: Place,
    /// The text of the file that nftables.service loads.
    config: String,
    /// The text of the table's file. `None` where there is no such file.
    text: Option<String>,
    /// Its rules.
    pub rules: Vec<FirewallRule>,
}

impl Files {
    pub(crate) fn read(cx: &Context) -> Result<Self> {
        let paths = PLACES.map(|place| [place.config, place.own]);
        let as_root = cx.files_as(linux_sysadmin_sdk::Privilege::RootIfAvailable);
        let mut texts = as_root.read_all(paths.as_flattened()).into_iter();
        for place in PLACES {
            let (config, text) = (found(texts.next())?, found(texts.next())?);
            let Some(config) = config else { continue };
            let rules = text.as_deref().map_or_else(Vec::new, own_table::rules);
            return Ok(Self { place, config, text, rules });
        }
        let known = PLACES.map(|place| place.config).join(" or ");
        let message = format!("nftables.service has no file: expected {known}");
        Err(Problem::new("NO_NFTABLES_CONF", Category::State, message)
            .remedy("Install the distribution's package nftables"))
    }

    fn include(&self) -> String {
        format!("include \"{}\"", self.place.own)
    }

    /// True if the table is loaded with the others.
    pub(crate) fn is_included(&self) -> bool {
        let include = self.include();
        self.config.lines().any(|line| line.trim() == include)
    }

    fn load(&self) -> Command {
        self.place.load.command().as_root()
    }

    /// Steps that write the table's file with these rules.
    fn write(&self, rules: &[FirewallRule], cx: &Context) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        let directory = cx.stat_all(&[self.place.directory]).into_iter().next();
        if directory.transpose()?.flatten().is_none() {
            steps.push(Step::make_directory(self.place.directory, 0o755));
        }
        steps.push(Step::write(self.place.own, own_table::text(rules)).mode(0o644));
        Ok(steps)
    }

    /// The rules, unless somebody has edited the file, or the kernel's table has others.
    fn checked(&self, kernel: &Kernel) -> Result<&[FirewallRule]> {
        if self.text.as_ref().is_some_and(|text| *text != own_table::text(&self.rules)) {
            return Err(own_table::edited(self.place.own, self.place.config));
        }
        match own_table::in_kernel(kernel) {
            Some(table) if !own_table::is_as_kept(table, &self.rules) => {
                Err(own_table::differs(self.place.own))
            }
            _ => Ok(&self.rules),
        }
    }
}

fn found(text: Option<Result<String>>) -> Result<Option<String>> {
    match text {
        Some(Err(problem)) if problem.code == "FILE_NOT_FOUND" => Ok(None),
        Some(text) => text.map(Some),
        None => Ok(None),
    }
}

pub(crate) fn adding(rule: &FirewallRule, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
    let files = Files::read(cx)?;
    let mut rules = files.checked(kernel)?.to_vec();
    if rules.iter().any(|known| known.is_same(rule)) {
        return Ok(Proposal { place: Some(place(rule)), ..Proposal::new("", After::Same) });
    }
    rules.push(rule.clone());
    changed(
        &files,
        &rules,
        rule,
        format!("Add `{}` to the table {FAMILY} {NAME}", rule.in_words()),
        kernel,
        cx,
    )
}

pub(crate) fn removing(rule: &FirewallRule, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
    let files = Files::read(cx)?;
    let mut rules = files.checked(kernel)?.to_vec();
    let before = rules.len();
    rules.retain(|known| !known.is_same(rule));
    if rules.len() == before {
        return Ok(Proposal::new("", After::Same));
    }
    changed(
        &files,
        &rules,
        rule,
        format!("Remove `{}` from the table {FAMILY} {NAME}", rule.in_words()),
        kernel,
        cx,
    )
}

fn changed(
    files: &Files,
    rules: &[FirewallRule],
    rule: &FirewallRule,
    summary: String,
    kernel: &Kernel,
    cx: &Context,
) -> Result<Proposal> {
    let mut steps = files.write(rules, cx)?;
    let (mut before, mut after, mut after_undo) = (None, After::Same, Vec::new());
    if own_table::in_kernel(kernel).is_some() {
        // Once the undo has put the file back, it is loaded again.
        steps.push(Step::run(files.load()).uninterruptible());
        after_undo.push(files.load());
        before = Some(kernel.ruleset.clone().with_table(own_table::table(&files.rules)));
        after = After::Rules(kernel.ruleset.clone().with_table(own_table::table(rules)));
    }
    Ok(Proposal { steps, after_undo, before, place: Some(place(rule)), ..Proposal::new(summary, after) })
}

pub(crate) fn enabling(kernel: &Kernel, cx: &Context) -> Result<Proposal> {
    let files = Files::read(cx)?;
    let rules = files.checked(kernel)?;
    let unit = firewall::unit("nftables.service", cx)?;
    let mut steps = Vec::new();
    let mut notes = Vec::new();
    if files.text.is_none() {
        steps.extend(files.write(rules, cx)?);
    }
    let (config, text) = (files.place.config, &files.config);
    if !files.is_included() {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        steps.push(Step::write(config, format!("{text}{end}{}\n", files.include())));
    }
    if !unit.is_enabled {
        steps.push(Step::run(ENABLE.command().as_root()).undo(DISABLE.command().as_root()));
        notes.push(format!("from the next start on, nftables.service loads all of {config}"));
    }
    if own_table::in_kernel(kernel).is_none() {
        steps.push(Step::run(files.load()).undo(DELETE.command().as_root()).uninterruptible());
    }
    let after = After::Rules(Ruleset::with_table(kernel.ruleset.clone(), own_table::table(rules)));
    let summary =
        format!("Load the table {FAMILY} {NAME}, now and at each start: it drops what no rule allows");
    Ok(Proposal { steps, notes, ..Proposal::new(summary, after) })
}

pub(crate) fn disabling(kernel: &Kernel, cx: &Context) -> Result<Proposal> {
    let files = Files::read(cx)?;
    let mut steps = Vec::new();
    let (config, text) = (files.place.config, &files.config);
    if files.is_included() {
        let include = files.include();
        let kept = text.split_inclusive('\n').filter(|line| line.trim() != include);
        steps.push(Step::write(config, kept.collect::<String>()));
    }
    if own_table::in_kernel(kernel).is_some() {
        // The undo loads the file, which has to be what the kernel has now.
        files.checked(kernel)?;
        steps.push(Step::run(DELETE.command().as_root()).undo(files.load()).uninterruptible());
    }
    let summary = format!("Take the table {FAMILY} {NAME} away, now and at each start; its file stays");
    Ok(Proposal { steps, ..Proposal::new(summary, After::Unknown) })
}

/// Where the rule is.
pub(crate) fn place(rule: &FirewallRule) -> String {
    let chain = if rule.direction == firewall::Direction::In { "input" } else { "output" };
    format!("{FAMILY} {NAME} {chain}")
}
