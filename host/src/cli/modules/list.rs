//! Lists the modules with what was declined to them, and says whether each one has the bytes that were pinned.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cli::screen::Screen;
use crate::cli::table::{Cell, Column, Table};
use crate::cli::text::wrap;
use crate::config::Config;
use host_capability::{Request, by_concern};
use host_components::{Module, ModuleInstaller, Origin, UnusedModule, Verified};
use host_target::{Facts, Target};
use host_text::visible::visible;

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Host => "host",
        Origin::System => "system",
        Origin::User => "user",
    }
}

/// The number of a module's declined requests that the table names.
const MOST_DECLINED: usize = 5;

/// The facts of this machine, by which modules serve it or don't. `None` where the configuration allows no look at it, or
/// where it can't be looked at.
pub(super) async fn facts_of_this_machine(config: &Config) -> Option<Arc<Facts>> {
    match config.ssh.local {
        true => Target::local(config.distro.clone()).facts().await.ok(),
        false => None,
    }
}

/// The table of the modules. Below it stand the modules that aren't used, those that don't serve this machine, and what was
/// declined.
pub(super) fn table(workshop: &ModuleInstaller, here: Option<&Facts>) -> String {
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
    let elsewhere = registry.modules().iter().filter_map(|module| {
        let reason = module.description.refuses(here?)?;
        Some(format!("{} ({}): {reason}", module.description.name, origin(module.origin)))
    });
    let declined = registry.modules().iter().filter_map(|module| declined(module));
    for (heading, lines) in [
        ("Not served here; they may serve other hosts", elsewhere.collect::<Vec<_>>()),
        ("Declined, so that calls which need it are denied", declined.collect()),
    ] {
        if !lines.is_empty() {
            let _ = writeln!(table, "\n{heading}");
        }
        for text in lines {
            let _ = writeln!(table, "{}", wrap(&visible(&text), "  ", "    "));
        }
    }
    table
}

/// The requests of a module that were declined. `None` where there are none.
fn declined(module: &Module) -> Option<String> {
    let requests = module.not_granted();
    let all = by_concern(&requests);
    if all.is_empty() {
        return None;
    }
    let named = all.iter().take(MOST_DECLINED).map(|(_, request)| match request {
        Request::Command(request) => format!("`{}`", request.pattern),
        Request::Path(request) => request.glob.clone(),
        Request::AnyProgram(_) => "any program".to_owned(),
        Request::Signals(_) => "signals".to_owned(),
        Request::OwnProgram(request) => request.path.clone(),
        Request::Tool(name) => format!("the tool {name}"),
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match all.len().saturating_sub(MOST_DECLINED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let name = &module.description.name;
    Some(format!(
        "{name} ({}): {named}{more}; `modules inspect {name}` has the reasons",
        origin(module.origin)
    ))
}

/// The modules as a JSON array, with more than the table has.
pub(super) fn json(workshop: &ModuleInstaller, here: Option<&Facts>) -> anyhow::Result<String> {
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
            "not_served_here": here.and_then(|facts| description.refuses(facts)),
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
