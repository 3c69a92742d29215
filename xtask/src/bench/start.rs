//! Measures the time from the start of the server to the answers that a client waits for, and the memory that the server
//! then takes. It does so with the modules that ship, and with copies of them under other names besides.

use super::{Row, Server, median, say};
use crate::build::Built;
use crate::{cmd, workspace};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const STARTS: usize = 60;
/// The number of copies of each module.
const COPIES: u8 = 3;
const FLOOR_IS: &str = "native server, same protocol library, same list";

/// Gives the figures for both numbers of modules.
pub(super) fn starts(built: &Built, floor: &Path) -> Result<Vec<Row>> {
    let many = built.binary.with_file_name("bench-modules");
    let tools = listed(built, &built.modules)?;
    copy(built, &many)?;
    say("compiling copies of the modules, once");
    let all = listed(built, &many)?;
    let (few, many_tools) = (tools.as_array().map_or(0, Vec::len), all.as_array().map_or(0, Vec::len));
    ensure!(
        few > 0 && many_tools == few * (1 + usize::from(COPIES)),
        "there are {few} tools, and {many_tools} with the copies"
    );
    let mut rows = measured(built, floor, &built.modules, &tools)?;
    rows.extend(measured(built, floor, &many, &all)?);
    Ok(rows)
}

/// The list of tools that the server gives with these modules. It compiles modules that aren't compiled yet.
fn listed(built: &Built, modules: &Path) -> Result<Value> {
    let mut command = Command::new(&built.binary);
    let listed = cmd::output(command.args(["tools", "--json", "--modules"]).arg(modules))?;
    Ok(serde_json::from_str(&listed)?)
}

/// Puts the modules and their copies into a folder and pins them.
fn copy(built: &Built, into: &Path) -> Result<()> {
    if into.exists() {
        fs::remove_dir_all(into)?;
    }
    fs::create_dir_all(into)?;
    let (mut sums, facts) = (String::new(), facts()?);
    for path in components(&built.modules)? {
        let bytes = fs::read(&path)?;
        let name = path.file_stem().and_then(|stem| stem.to_str()).context("a module without a name")?;
        for number in 0..=COPIES {
            let bytes =
                if number == 0 { bytes.clone() } else { renamed(&bytes, name, b'0' + number, &facts) };
            let file = format!("{name}{number}.wasm");
            writeln!(sums, "{}  {file}", hex::encode(Sha256::digest(&bytes)))?;
            fs::write(into.join(file), bytes)?;
        }
    }
    Ok(fs::write(into.join("SHA256SUMS"), sums)?)
}

fn components(modules: &Path) -> Result<Vec<PathBuf>> {
    let paths = fs::read_dir(modules)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|is| is == "wasm")).collect())
}

/// The names of the facts of targets, by which modules are chosen. The contract has them as the fields of a record.
fn facts() -> Result<Vec<String>> {
    let contract = fs::read_to_string(workspace::root().join("wit/distro-context.wit"))?;
    let fields = contract.lines().filter_map(|line| line.trim().split_once(": "));
    let facts: Vec<_> = fields.map(|(name, _)| name.replace('-', "_")).collect();
    ensure!(facts.iter().any(|fact| fact == "package_manager"), "the contract names no facts");
    Ok(facts)
}

/// A component of the same size under another name. The names of its tools and of their aliases are others as well: the
/// digit replaces the last letter of the module's name, and each underscore between two letters. Other texts with these
/// names change too, except for names that the host knows. No tool of the component is called.
fn renamed(bytes: &[u8], name: &str, digit: u8, facts: &[String]) -> Vec<u8> {
    let mut renamed = bytes.to_vec();
    let is_letter = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_lowercase);
    let is_of = |fact: &String, at: usize| {
        let start = fact.find('_').and_then(|before| at.checked_sub(before));
        start.is_some_and(|start| bytes[start..].starts_with(fact.as_bytes()))
    };
    for at in 1..bytes.len() {
        // Before the name of an interface stands a slash, and before a field of a record a hyphen or its length. The module's
        // name stands before its version.
        let is_versioned = bytes.get(at + name.len()).is_some_and(u8::is_ascii_digit)
            && bytes.get(at + name.len() + 1) == Some(&b'.');
        let is_field = bytes[at - 1] == b'-' || usize::from(bytes[at - 1]) == name.len();
        let is_of_contract = bytes[at - 1] == b'/' || is_field && !is_versioned;
        let is_profiles = at >= 3 && bytes[at - 3..].starts_with(b"profiles");
        if bytes[at..].starts_with(name.as_bytes()) && !is_profiles && !is_of_contract {
            renamed[at + name.len() - 1] = digit;
        }
        if bytes[at] == b'_'
            && is_letter(at - 1)
            && is_letter(at + 1)
            && !facts.iter().any(|fact| is_of(fact, at))
        {
            renamed[at] = digit;
        }
    }
    renamed
}

/// Measures our times and the floor's in turn.
fn measured(built: &Built, floor: &Path, modules: &Path, tools: &Value) -> Result<Vec<Row>> {
    let list = built.binary.with_file_name("bench-tools.json");
    fs::write(&list, tools.to_string())?;
    // Clients start the server in this way.
    let ours =
        || Server::start(Command::new(&built.binary).arg("serve").env("LINUX_SYSADMIN_MODULES", modules));
    let peer = || Server::start(Command::new(floor).arg(&list));
    // A file that was written just now would be read at each start.
    std::thread::sleep(std::time::Duration::from_secs(3));
    ours()?.initialize()?;
    let mut times: [Vec<_>; 4] = Default::default();
    let mut resident = [0.0, 0.0];
    for _ in 0..STARTS {
        for (which, start) in [(0, &ours as &dyn Fn() -> Result<Server>), (1, &peer)] {
            let started = Instant::now();
            let mut server = start()?;
            server.initialize()?;
            times[which].push(started.elapsed());
            server.request("tools/list", json!({}))?;
            times[2 + which].push(started.elapsed());
            resident[which] = server.at_rest()?;
        }
    }
    let count = components(modules)?.len();
    let [initialize, floor_initialize, listing, floor_listing] = times.map(|times| median(times, 0.5));
    let row = |what: &str, unit, ours, floor| Row {
        what: format!("{count} modules: {what}").into(),
        unit,
        ours,
        floor,
        floor_is: FLOOR_IS.into(),
    };
    Ok(vec![
        row("spawn to initialize", "ms", initialize, floor_initialize),
        row("spawn to tools/list", "ms", listing, floor_listing),
        row("memory at rest", "MB", resident[0], resident[1]),
    ])
}
