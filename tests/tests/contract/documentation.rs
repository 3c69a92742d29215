//! The documentation's tables agree with the program: the table of tools with the modules' descriptions, and the keys of the
//! configuration with the file that the program writes and with the keys that it takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use linux_sysadmin_tests::{Home, modules};
use serde_json::Value;

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of all tables with this heading, cell by cell.
fn rows(text: &str, heading: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut is_table = false;
    for line in text.lines() {
        is_table = line == heading || (is_table && line.starts_with('|'));
        if is_table && line != heading && !line.starts_with("|---") {
            let cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
            rows.push(cells.collect());
        }
    }
    rows
}

/// The parts of a text between backticks.
fn quoted(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn json(home: &Home, args: &[&str]) -> Vec<Value> {
    let output = home.run(&modules(), args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a list")
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

#[test]
fn the_table_of_tools_says_what_the_modules_say() {
    let home = Home::new();
    let mut of_tool: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for module in json(&home, &["modules", "list", "--json"]) {
        for tool in module["tools"].as_array().expect("its tools") {
            of_tool.entry(text(tool)).or_default().insert(text(&module["name"]));
        }
    }
    let mut documented: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows(&page("tools.md"), "| tool | what it does | module | |") {
        let name = row[0].trim_matches('`').to_owned();
        assert!(documented.insert(name.clone(), row[1..].to_vec()).is_none(), "{name} has two rows");
    }
    let mut wrong = Vec::new();
    for tool in json(&home, &["tools", "--json"]) {
        let name = text(&tool["name"]);
        let Some(row) = documented.remove(&name) else {
            wrong.push(format!("{name} has no row"));
            continue;
        };
        let summary = text(&tool["description"]);
        if !row[0].contains(&summary) {
            wrong.push(format!("{name}: expected {summary:?}, found {:?}", row[0]));
        }
        if quoted(&row[1]) != of_tool[&name] {
            wrong.push(format!("{name}: expected the modules {:?}, found {}", of_tool[&name], row[1]));
        }
        let kind = if tool["annotations"]["readOnlyHint"] == true { "looks" } else { "changes" };
        if row[2] != kind {
            wrong.push(format!("{name}: expected {kind}, found {}", row[2]));
        }
    }
    wrong.extend(documented.keys().map(|name| format!("{name} is no tool")));
    assert!(wrong.is_empty(), "docs/tools.md:\n{}", wrong.join("\n"));
}

/// The program's error about a configuration. It is empty where the program takes the configuration.
fn refusal(home: &Home, yaml: &str) -> String {
    fs::create_dir_all(home.config().parent().expect("a parent")).expect("made");
    fs::write(home.config(), yaml).expect("written");
    let output = home.run(&modules(), &["policy", "check", "--", "true"]);
    match output.status.success() {
        true => String::new(),
        false => String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// A configuration with one key.
fn setting(key: &str, value: &str) -> String {
    let mut yaml = String::new();
    for (depth, name) in key.split('.').enumerate() {
        yaml += &format!("\n{}{name}:", "  ".repeat(depth));
    }
    format!("{yaml} {value}\n")
}

/// The keys that the program takes within a section, which it lists where it finds another one.
fn taken(home: &Home, section: &str) -> BTreeSet<String> {
    let unknown =
        if section.is_empty() { "no-such-key".to_owned() } else { format!("{section}.no-such-key") };
    let said = refusal(home, &setting(&unknown, "1"));
    let (_, expected) = said.split_once("expected ").unwrap_or_else(|| panic!("{section}: {said}"));
    quoted(expected)
}

/// All keys that the program takes. A key that is no section takes a value.
fn all_taken(home: &Home, sections: &BTreeSet<String>) -> BTreeSet<String> {
    let within = |section: &str| match section {
        "" => taken(home, section),
        _ => taken(home, section).iter().map(|key| format!("{section}.{key}")).collect(),
    };
    let of_sections = sections.iter().flat_map(|section| within(section));
    within("").into_iter().chain(of_sections).filter(|key| !sections.contains(key)).collect()
}

/// The values of the file that a first start writes, by their keys.
fn written(home: &Home) -> BTreeMap<String, String> {
    let output = home.run(&modules(), &["policy", "check", "--", "true"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = fs::read_to_string(home.config()).expect("the file of a first start");
    let value: Value = serde_yaml::from_str(&file).expect("YAML");
    let mut values = BTreeMap::new();
    add_values(&mut values, "", &value);
    // Options without a default are commented out.
    for option in ["any_program", "paths"] {
        assert!(file.contains(&format!("\n  # {option}:")), "{option}: {file}");
        values.insert(format!("modules.{option}"), "none".to_owned());
    }
    let mut section = String::new();
    for option in file.lines().filter_map(|line| line.strip_prefix("# ")) {
        let Some((key, value)) = option.split_once(':') else { continue };
        match (key.strip_prefix("  "), value.is_empty()) {
            (None, true) if key == "distro" => section = format!("{key}."),
            (None, _) if ["hosts", "inventory", "distro_of"].contains(&key) => {
                section.clear();
                values.insert(key.to_owned(), "none".to_owned());
            }
            (Some(key), _) if !section.is_empty() => {
                values.insert(format!("{section}{key}"), "detected".to_owned());
            }
            _ => {}
        }
    }
    values
}

fn add_values(values: &mut BTreeMap<String, String>, key: &str, value: &Value) {
    let shown = match value {
        Value::Object(members) => {
            for (name, value) in members {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                add_values(values, &key, value);
            }
            return;
        }
        Value::Null => "none".to_owned(),
        Value::String(text) => format!("`{text}`"),
        value => format!("`{value}`"),
    };
    values.insert(key.to_owned(), shown);
}

/// The values of a key that the program lists where it finds another one.
fn listed(said: &str) -> BTreeSet<String> {
    if let Some((_, expected)) = said.split_once("expected ") {
        return quoted(expected);
    }
    let (_, list) = said.split_once("is not one of ").unwrap_or_else(|| panic!("{said}"));
    let (list, _) = list.split_once(" at line ").unwrap_or((list, ""));
    list.split(", ").map(str::to_owned).collect()
}

#[test]
fn the_page_of_the_configuration_has_every_key_with_its_default_and_its_bounds() {
    let rows = rows(&page("configuration.md"), "| key | type | default | meaning |");
    let key = |row: &Vec<String>| row[0].trim_matches('`').to_owned();
    let documented: BTreeMap<String, String> = rows.iter().map(|row| (key(row), row[2].clone())).collect();
    assert_eq!(documented.len(), rows.len(), "a key has two rows");
    assert_eq!(written(&Home::new()), documented, "the file of a first start, and the page");

    let home = Home::new();
    let keys: BTreeSet<String> = documented.keys().cloned().collect();
    let section = |key: &String| key.rsplit_once('.').map(|(section, _)| section.to_owned());
    let sections: BTreeSet<String> = keys.iter().filter_map(section).collect();
    assert_eq!(all_taken(&home, &sections), keys, "the program, and the page");

    for row in &rows {
        let (key, kind) = (key(row), row[1].as_str());
        let default = row[2].trim_matches('`');
        if !["none", "detected"].contains(&default) || row[2].starts_with('`') {
            assert_eq!(refusal(&home, &setting(&key, default)), "", "{key}");
        }
        if let Some((least, most)) = kind.strip_prefix("number, ").and_then(|kind| kind.split_once(" to ")) {
            for (value, is_taken) in [(least, true), (most, true), (&format!("{most}0"), false)] {
                assert_eq!(refusal(&home, &setting(&key, value)).is_empty(), is_taken, "{key}: {value}");
            }
            let said = refusal(&home, &setting(&key, &format!("{most}0")));
            assert!(said.contains(&format!("from {least} to {most}")), "{key}: {said}");
        } else if kind.starts_with("number") {
            assert_ne!(refusal(&home, &setting(&key, "-1")), "", "{key}");
        } else if kind.starts_with("one of ") {
            let values = quoted(kind);
            for value in &values {
                assert_eq!(refusal(&home, &setting(&key, value)), "", "{key}: {value}");
            }
            let mut named = listed(&refusal(&home, &setting(&key, "no-such-value")));
            // This risk is refused for the key, since calls that only look never ask.
            named.remove("read-only");
            assert_eq!(named, values, "{key}");
        } else if kind == "true or false" {
            assert_ne!(refusal(&home, &setting(&key, "7")), "", "{key}");
        }
    }
}

/// The pages of the book and the files beside it that speak of the configuration.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let in_book =
        fs::read_dir(root.join("docs")).expect("the book").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> =
        in_book.filter(|path| path.extension().is_some_and(|kind| kind == "md")).collect();
    files.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name)));
    let read = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text)
    };
    files.iter().map(read).collect()
}

/// Files whose names look like keys.
const FILES: [&str; 3] = ["audit.head", "audit.jsonl", "modules.lock"];

/// A key of the configuration in a code span, with its value where there is one: `safety.confirmation: auto`.
fn named_key<'a>(span: &'a str, sections: &BTreeSet<String>) -> Option<(&'a str, Option<&'a str>)> {
    let (key, value) = match span.split_once(": ") {
        Some((key, value)) => (key, Some(value)),
        None => (span, None),
    };
    let section = key.split_once('.').map(|(section, _)| section)?;
    let is_plain = key.bytes().all(|byte| byte.is_ascii_lowercase() || b"._".contains(&byte));
    (is_plain && sections.contains(section) && !FILES.contains(&key)).then_some((key, value))
}

#[test]
fn every_key_of_the_configuration_that_a_page_names_exists_and_takes_the_value_beside_it() {
    let home = Home::new();
    let rows = rows(&page("configuration.md"), "| key | type | default | meaning |");
    let keys: BTreeSet<String> = rows.iter().map(|row| row[0].trim_matches('`').to_owned()).collect();
    let section = |key: &String| key.rsplit_once('.').map(|(section, _)| section.to_owned());
    let sections: BTreeSet<String> = keys.iter().filter_map(section).collect();
    let (mut wrong, mut named) = (Vec::new(), 0);
    for (name, text) in pages() {
        for span in text.lines().flat_map(quoted) {
            let Some((key, value)) = named_key(&span, &sections) else { continue };
            named += 1;
            if !keys.contains(key) && !sections.contains(key) {
                wrong.push(format!("{name}: {key} is no key"));
            } else if let Some(value) = value.filter(|value| !value.is_empty()) {
                let said = refusal(&home, &setting(key, value));
                // Some values hold only together with another key, which a page names beside them.
                if !said.is_empty() && !said.contains(" needs a ") {
                    wrong.push(format!("{name}: {span}: {said}"));
                }
            }
        }
    }
    assert!(named > 20, "{named}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_workflows_of_the_plugin_name_tools_that_ship() {
    let home = Home::new();
    let mut known = BTreeSet::new();
    for tool in json(&home, &["tools", "--json"]) {
        known.insert(text(&tool["name"]));
        known.extend(
            tool["inputSchema"]["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned()),
        );
    }
    let skills = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin/skills");
    let mut wrong = Vec::new();
    for entry in fs::read_dir(skills).expect("the skills") {
        let path = entry.expect("an entry").path().join("SKILL.md");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for span in text.lines().flat_map(quoted) {
            // Words that are neither are values of arguments, and have no underscore.
            let word = span.split(':').next().unwrap_or_default();
            if word.contains('_') && !known.contains(word) {
                wrong.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "these are neither tools nor arguments:\n{}", wrong.join("\n"));
}
