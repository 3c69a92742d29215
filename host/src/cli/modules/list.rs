//! Lists the modules, and says whether each one has the bytes that were pinned.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cli::screen::Screen;
use crate::cli::table::{Cell, Column, Table};
use crate::cli::text::wrap;
use host_components::{Module, ModuleInstaller, Origin, UnusedModule, Verified};
use host_text::visible::visible;

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Host => "host",
        Origin::System => "system",
        Origin::User => "user",
    }
}

/// The table of the modules, and below it why some aren't used.
pub(super) fn table(workshop: &ModuleInstaller) -> String {
    let registry = &workshop.registry;
    let mut rows = Table::new(["MODULE", "VERSION", "FROM", "TOOLS", "SHA256"].map(Column::whole));
    for module in registry.modules() {
        let description = &module.description;
        rows.row([
            Cell::from(description.name.clone()),
            Cell::from(description.version.clone()),
            Cell::from(origin(module.origin).to_owned()),
            Cell { is_number: true, ..Cell::from(description.tools.len().to_string()) },
            Cell::from(module.sha256[..12].to_owned()),
        ]);
    }
    let mut table = rows.text(Screen::of_stdout(), 0);
    let (disabled, refused): (Vec<&UnusedModule>, Vec<&UnusedModule>) =
        registry.unused_modules().iter().partition(|unused| unused.disabled);
    for (heading, unused) in [("NOT USED", refused), ("Disabled", disabled)] {
        if !unused.is_empty() {
            let _ = writeln!(table, "\n{heading}");
        }
        for unused in unused {
            let text =
                format!("{} ({}): {}", visible(&unused.name), origin(unused.origin), visible(&unused.reason));
            let _ = writeln!(table, "{}", wrap(&text, "  ", "    "));
        }
    }
    table
}

/// The modules as a JSON array, with more than the table has.
pub(super) fn json(workshop: &ModuleInstaller) -> anyhow::Result<String> {
    let module = |module: &Module| {
        let description = &module.description;
        let tools: Vec<&str> = description.tools.iter().map(|tool| tool.name.as_str()).collect();
        json!({
            "name": description.name,
            "version": description.version,
            "origin": module.origin,
            "state": "enabled",
            "sha256": module.sha256,
            "source": workshop.entry(&description.name).ok().flatten().map(|(_, entry)| entry.source),
            "description_sha256": description.sha256,
            "tools": tools,
            "granted": module.granted(),
            "not_granted": module.not_granted(),
        })
    };
    let unused = |unused: &UnusedModule| {
        let state = if unused.disabled { "disabled" } else { "refused" };
        json!({"name": unused.name, "origin": unused.origin, "state": state, "reason": unused.reason})
    };
    let registry = &workshop.registry;
    let all: Vec<Value> = registry
        .modules()
        .iter()
        .map(|found| module(found))
        .chain(registry.unused_modules().iter().map(unused))
        .collect();
    Ok(serde_json::to_string_pretty(&all)?)
}

/// Whether each component has the bytes that were pinned, as text, and whether all of them do.
pub(super) fn verification(all: &[Verified]) -> (String, bool) {
    let mut text = String::new();
    let mut faults = 0;
    for verified in all {
        let (name, from) = (visible(&verified.name), origin(verified.origin));
        match &verified.fault {
            None => {
                let _ = writeln!(text, "ok        {name} ({from})");
            }
            Some(fault) => {
                faults += 1;
                let what = format!("{name} ({from}), {}: {fault}", verified.path.display());
                let _ = writeln!(text, "{}", wrap(&visible(&what), "MISMATCH  ", "          "));
            }
        }
    }
    let _ = writeln!(text, "{} components, {faults} not as pinned", all.len());
    (text, faults == 0)
}
