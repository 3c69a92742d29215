//! Weighs the list of tools, which is in the context of every model: its bytes for each tool, and those of a list that is kept
//! short.

use super::{Row, Server, say};
use crate::build::Built;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::process::Command;

/// The bytes that a tool should take on average.
const BYTES_OF_A_TOOL: f64 = 500.0;
/// The bytes that a short list may have.
const BYTES_OF_A_SHORT_LIST: f64 = 8000.0;
/// The number of the largest tools that are named.
const NAMED: usize = 10;

/// Gives the bytes of both lists, each beside its aim.
pub(super) fn bytes(built: &Built) -> Result<Vec<Row>> {
    let directory = tempfile::tempdir()?;
    let config = directory.path().join("config.yaml");
    let listed = |listing: &str| -> Result<Vec<Value>> {
        std::fs::write(&config, format!("tools:\n  listing: {listing}\n"))?;
        let mut command = Command::new(&built.binary);
        let mut server = Server::start(command.arg("serve").env("LINUX_SYSADMIN_CONFIG", &config))?;
        server.initialize()?;
        let list = server.request("tools/list", json!({}))?;
        Ok(list["tools"].as_array().context("a list of tools")?.clone())
    };
    let (all, short) = (listed("all")?, listed("compact")?);
    let mut sizes: Vec<(usize, &str)> =
        all.iter().map(|tool| (tool.to_string().len(), tool["name"].as_str().unwrap_or_default())).collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    let largest: Vec<_> = sizes.iter().take(NAMED).map(|(bytes, name)| format!("{name} {bytes}")).collect();
    say(&format!("the largest of {} tools: {}", all.len(), largest.join(", ")));
    let sum: usize = sizes.iter().map(|(bytes, _)| bytes).sum();
    let row =
        |what: String, ours, floor| Row { what: what.into(), unit: "B", ours, floor, floor_is: "aim".into() };
    Ok(vec![
        row(
            "bytes of a tool in the list, on average".to_owned(),
            sum as f64 / all.len() as f64,
            BYTES_OF_A_TOOL,
        ),
        row(
            format!("bytes of a short list, {} tools", short.len()),
            Value::from(short).to_string().len() as f64,
            BYTES_OF_A_SHORT_LIST,
        ),
    ])
}
