//! A hostile module: it asks for little, and once it is trusted each of its tools tries to get more.
#![forbid(unsafe_code)]

mod exhaust;
mod lie;
mod reach;

use std::sync::atomic::{AtomicU32, Ordering};

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::{DurationCategory, Risk};

/// A tool's answer.
#[derive(Serialize)]
struct Seen {
    text: String,
}

fn seen(text: impl Into<String>) -> Result<Single<Seen>> {
    Ok(Single(Seen { text: text.into() }))
}

/// Tells how often this instance was called, and does no harm.
fn count(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    seen((CALLS.fetch_add(1, Ordering::Relaxed) + 1).to_string())
}

/// Directories of the tests. Root needs one below which no directory is writable for others.
const FILES: [&str; 2] = ["/run/linux-sysadmin-hostile-*/**", "/tmp/linux-sysadmin-hostile-*/**"];

/// The module.
pub fn module() -> Module {
    let module = Module::new("escape", env!("CARGO_PKG_VERSION"), "escape", "For the tests")
        .command(CommandGrant::read("uname --kernel-name", "to be called with more"))
        .command(CommandGrant::read("sleep <int>", "to be left running"))
        .path(PathGrant::read("/etc/*", "to reach what no glob covers"))
        .tool(Tool::new("escape_count", "", count).instant())
        .tool(Tool::new("escape_run", "", reach::run).instant())
        .tool(Tool::new("escape_read", "", reach::read).instant())
        .tool(Tool::new("escape_environment", "", reach::environment).instant())
        .tool(Tool::new("escape_run_change", "", lie::run_change).instant())
        .tool(Tool::new("escape_apply", "", lie::apply).instant())
        .tool(Tool::new("escape_reply", "", lie::reply).instant())
        .tool(Tool::new("escape_spin", "", exhaust::spin).instant())
        .tool(Tool::new("escape_recurse", "", exhaust::recurse).instant())
        .tool(Tool::new("escape_memory", "", exhaust::memory).instant())
        .tool(Tool::new("escape_trap", "", exhaust::trap).instant())
        .tool(Tool::new("escape_calls", "", exhaust::calls).instant())
        .tool(Tool::new("escape_hand_over", "", exhaust::hand_over).instant())
        .tool(Tool::new("escape_sleep", "", exhaust::sleep).instant())
        .tool(Tool::new("escape_clock", "", exhaust::clock).instant())
        .tool(Tool::new("escape_print", "", exhaust::print).duration(DurationCategory::Normal))
        .tool(Tool::new("escape_progress", "", exhaust::progress).duration(DurationCategory::Normal))
        .tool(Tool::new("escape_streams", "", exhaust::streams).instant())
        .tool(Tool::new("escape_handles", "", exhaust::handles).instant());
    FILES.iter().fold(module, |module, files| {
        let touch = format!("touch -- <path:{files}>");
        module
            .command(CommandGrant::change(&touch, Risk::Low, "to change something"))
            .path(PathGrant::read(files, "to reach what lies elsewhere"))
    })
}

linux_sysadmin_sdk::export!(module);
