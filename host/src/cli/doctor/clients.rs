//! Looks for clients that start this server, and whether what they start is there. Only the command lines of this server are
//! read from the clients' files; nothing else of them is shown.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Area, Finding};
use host_base::trusted_file;

/// The files of clients.
const CLIENTS: &str = include_str!("clients.yaml");
/// The program's name.
const PROGRAM: &str = "linux-sysadmin";
/// The name under which clients register the server.
const SERVER: &str = "linux-sysadmin-mcp";
/// The file in which Claude Code keeps which plugins are switched on.
const CLAUDE_SETTINGS: &str = ".claude/settings.json";
/// The number of levels down to which servers are looked for in a file.
const DEPTH: usize = 6;

/// A client's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientFile {
    client: String,
    file: String,
    servers: String,
}

/// Says which clients start the server. `own` is this program.
pub(super) fn check(own: &Path) -> Vec<Finding> {
    let home = std::env::home_dir().unwrap_or_default();
    let directory = std::env::current_dir().unwrap_or_default();
    let files: Vec<ClientFile> = serde_yaml::from_str(CLIENTS).unwrap_or_default();
    let mut findings = Vec::new();
    for file in &files {
        let path = match file.file.strip_prefix("~/") {
            Some(below) => home.join(below),
            None => directory.join(&file.file),
        };
        findings.extend(of_file(file, &path));
    }
    findings.extend(of_plugin(&home));
    if findings.is_empty() {
        findings.push(unregistered(own));
    }
    findings
}

fn unregistered(own: &Path) -> Finding {
    let own = own.display();
    let json = json!({"mcpServers": {SERVER: {"command": own.to_string(), "args": ["serve"]}}});
    let remedy = format!(
        "For Claude Code: `claude mcp add {SERVER} -- {own} serve`. For another client, in its mcpServers setting: {json}"
    );
    Finding::warning(Area::Clients, "none of the clients that are known here starts the server", remedy)
}

/// The entries of one file that start this server.
fn of_file(file: &ClientFile, path: &Path) -> Vec<Finding> {
    let value = match read(path) {
        Ok(value) => value,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            let found = format!("{}: {} can't be read: {error}", file.client, path.display());
            let remedy = format!("Let {} write its file anew, or correct it", file.client);
            return vec![Finding::warning(Area::Clients, found, remedy)];
        }
    };
    let mut programs = Vec::new();
    add_programs(&value, &file.servers, DEPTH, &mut programs);
    programs.sort();
    programs.dedup();
    programs.iter().map(|program| of_program(file, path, program)).collect()
}

/// The plugin of Claude Code, which registers the server itself.
fn of_plugin(home: &Path) -> Option<Finding> {
    let settings = read(&home.join(CLAUDE_SETTINGS)).ok()?;
    let plugins = settings["enabledPlugins"].as_object()?;
    let is_ours = |(name, is_on): (&String, &Value)| {
        name.split('@').next() == Some(PROGRAM) && is_on.as_bool() == Some(true)
    };
    let found = "Claude Code starts it by the plugin linux-sysadmin";
    plugins.iter().any(is_ours).then(|| Finding::ok(Area::Clients, found))
}

fn read(path: &Path) -> std::io::Result<Value> {
    let text = trusted_file::read(path, |_| std::io::Result::Ok(()))?;
    Ok(serde_json::from_str(&text)?)
}

/// Adds the programs that the servers in this value start by `… linux-sysadmin serve`.
fn add_programs(value: &Value, servers: &str, depth: usize, programs: &mut Vec<String>) {
    let Value::Object(members) = value else { return };
    for (name, member) in members {
        if name == servers {
            let entries = member.as_object().into_iter().flat_map(|entries| entries.values());
            programs.extend(entries.filter_map(program));
        } else if depth > 0 {
            add_programs(member, servers, depth - 1, programs);
        }
    }
}

/// The program of this server in a client's entry. `sudo` and its options may stand before it.
fn program(entry: &Value) -> Option<String> {
    let args = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<&str> = entry["command"].as_str().into_iter().chain(args).collect();
    let is_serve = |pair: &&[&str]| {
        pair[1] == "serve" && Path::new(pair[0]).file_name().is_some_and(|name| name == PROGRAM)
    };
    words.windows(2).find(is_serve).map(|pair| pair[0].to_owned())
}

fn of_program(file: &ClientFile, path: &Path, program: &str) -> Finding {
    let client = &file.client;
    match is_there(program) {
        true => Finding::ok(Area::Clients, format!("{client} starts {program} ({})", path.display())),
        false => Finding::error(
            Area::Clients,
            format!("{client} starts {program}, which is not there ({})", path.display()),
            format!("Correct the entry in {}, or install the program there", path.display()),
        ),
    }
}

/// Whether the program is there. One without a directory is looked for as a client does it.
fn is_there(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory: PathBuf| directory.join(program)).any(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn every_client_has_a_file_and_a_member() {
        let files: Vec<ClientFile> = serde_yaml::from_str(CLIENTS).unwrap();
        assert!(files.len() > 3);
        assert!(files.iter().all(|file| !file.client.is_empty() && !file.servers.is_empty()), "{files:?}");
    }

    #[test]
    fn the_server_is_known_by_what_a_client_starts() {
        for (entry, expected) in [
            (
                json!({"command": "/usr/bin/linux-sysadmin", "args": ["serve"]}),
                Some("/usr/bin/linux-sysadmin"),
            ),
            (
                json!({"command": "linux-sysadmin", "args": ["serve", "--host", "web"]}),
                Some("linux-sysadmin"),
            ),
            (
                json!({"command": "sudo", "args": ["-n", "-u", "linux-sysadmin", "/usr/bin/linux-sysadmin", "serve"]}),
                Some("/usr/bin/linux-sysadmin"),
            ),
            (json!({"command": "/usr/bin/linux-sysadmin", "args": ["tools"]}), None),
            (json!({"command": "/usr/bin/other", "args": ["serve"]}), None),
            (json!({"command": 7, "args": "serve"}), None),
            (json!({"url": "https://example.org"}), None),
            (json!(null), None),
        ] {
            assert_eq!(program(&entry).as_deref(), expected, "{entry}");
        }
    }

    #[test]
    fn an_entry_whose_program_is_gone_is_an_error_and_nothing_else_of_the_file_is_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("claude.json");
        let there = directory.path().join(PROGRAM);
        std::fs::write(&there, "").unwrap();
        let text = json!({
            "mcpServers": {"a": {"command": there, "args": ["serve"], "env": {"TOKEN": "hunter2"}}},
            "projects": {"/srv/x": {"mcpServers": {"b": {"command": "/none/linux-sysadmin", "args": ["serve"]}}}},
        });
        std::fs::write(&path, text.to_string()).unwrap();
        let file = ClientFile {
            client: "Claude Code".to_owned(),
            file: String::new(),
            servers: "mcpServers".to_owned(),
        };
        let findings = of_file(&file, &path);
        let statuses: Vec<Status> = findings.iter().map(|finding| finding.status).collect();
        assert!(statuses.len() == 2 && statuses.contains(&Status::Error), "{findings:?}");
        assert!(!format!("{findings:?}").contains("hunter2"), "{findings:?}");
        assert!(of_file(&file, &directory.path().join("none")).is_empty());
        std::fs::write(&path, "{ broken").unwrap();
        assert_eq!(of_file(&file, &path)[0].status, Status::Warning);
    }

    #[test]
    fn a_plugin_that_is_switched_on_registers_the_server() {
        let home = tempfile::tempdir().unwrap();
        assert!(of_plugin(home.path()).is_none());
        std::fs::create_dir(home.path().join(".claude")).unwrap();
        for (plugins, is_found) in [
            (json!({"linux-sysadmin@here": true}), true),
            (json!({"linux-sysadmin@here": false}), false),
            (json!({"other@here": true}), false),
            (json!([]), false),
        ] {
            let text = json!({"enabledPlugins": plugins}).to_string();
            std::fs::write(home.path().join(CLAUDE_SETTINGS), text).unwrap();
            assert_eq!(of_plugin(home.path()).is_some(), is_found, "{plugins}");
        }
    }
}
