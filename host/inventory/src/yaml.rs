//! Reads Ansible's YAML inventories as `lib/ansible/plugins/inventory/yaml.py` of ansible-core 2.19 does: groups with
//! `hosts`, `children` and `vars`, nested in each other. What Ansible only warns of is refused here, because the group
//! would be incomplete. It also reads the files of `group_vars` and `host_vars`, which hold nothing but variables.

use std::path::Path;

use serde_yaml::{Mapping, Value as Yaml};

use super::collected::{Collected, GroupId, Location};
use super::variables::Value;
use super::{InventoryError, range};

/// Adds what the file says.
pub(super) fn read(file: &Path, text: &str, collected: &mut Collected) -> Result<(), InventoryError> {
    let location = Location { file, line: None };
    let Some(groups) = mapping(file, text)?.filter(|groups| !groups.is_empty()) else {
        return Err(location.error("expected groups, as all: with hosts: beneath it, found nothing"));
    };
    if groups.contains_key("plugin") {
        return Err(location.error(
            "it configures a plugin, which would ask somebody else for hosts: expected an inventory that names them. \
             `ansible-inventory --list --yaml` writes one",
        ));
    }
    for (name, said) in &groups {
        group(name, said, &location, collected)?;
    }
    Ok(())
}

/// Returns the variables of a file of variables, with their values.
pub(super) fn variables(file: &Path, text: &str) -> Result<Vec<(String, Value)>, InventoryError> {
    let Some(variables) = mapping(file, text)? else { return Ok(Vec::new()) };
    let set = variables.iter().filter_map(|(name, said)| Some((name.as_str()?.to_owned(), value(said))));
    Ok(set.collect())
}

/// Returns the mapping in a file. None where the file is empty.
fn mapping(file: &Path, text: &str) -> Result<Option<Mapping>, InventoryError> {
    let wrong = |error: serde_yaml::Error| {
        let line = error.location().map(|location| location.line());
        let said = error.to_string();
        // Only this kind of error quotes a value, which may be a password.
        let reason = match said.contains("invalid value") || said.contains("invalid type") {
            true => "expected a value of the kind that its tag says".to_owned(),
            false => said,
        };
        Location { file, line }.error(reason)
    };
    let mut found: Yaml = serde_yaml::from_str(text).map_err(wrong)?;
    found.apply_merge().map_err(wrong)?;
    match found {
        Yaml::Mapping(mapping) => Ok(Some(mapping)),
        Yaml::Null => Ok(None),
        _ => {
            Err(Location { file, line: None }.error("expected a mapping: names, each with a colon behind it"))
        }
    }
}

fn group(
    name: &Yaml,
    said: &Yaml,
    location: &Location,
    collected: &mut Collected,
) -> Result<GroupId, InventoryError> {
    let Some(name) = name.as_str().filter(|name| !name.is_empty()) else {
        return Err(location.error("expected names of groups to be text: put numbers and truths in quotes"));
    };
    let id = collected.group(name, location)?;
    let said = match said {
        Yaml::Null => return Ok(id),
        Yaml::Mapping(said) => said,
        _ => {
            return Err(location.error(format!(
                "group {name:?}: expected hosts:, children: or vars: beneath it, found something else"
            )));
        }
    };
    for (section, inside) in said {
        let one;
        let inside = match inside {
            Yaml::Null => continue,
            Yaml::Mapping(inside) => inside,
            // This is a single name.
            Yaml::String(single) => {
                one = Mapping::from_iter([(Yaml::String(single.clone()), Yaml::Null)]);
                &one
            }
            _ => {
                return Err(location.error(format!(
                    "group {name:?}: expected names beneath {}, each with a colon behind it",
                    section.as_str().unwrap_or("a section")
                )));
            }
        };
        match section.as_str() {
            Some("hosts") => {
                for (pattern, variables) in inside {
                    hosts(name, id, pattern, variables, location, collected)?;
                }
            }
            Some("children") => {
                for (child, said) in inside {
                    let child = group(child, said, location, collected)?;
                    collected.child(id, child, location)?;
                }
            }
            Some("vars") => {
                for (variable, said) in inside {
                    let Some(variable) = variable.as_str() else { continue };
                    collected.set(name, variable, || value(said), location)?;
                }
            }
            _ => {
                let found = section.as_str().unwrap_or("something that is no text");
                return Err(location.error(format!(
                    "group {name:?}: expected hosts, children or vars, found {:?}",
                    host_text::visible::excerpt(found, 40)
                )));
            }
        }
    }
    Ok(id)
}

fn hosts(
    group: &str,
    id: GroupId,
    pattern: &Yaml,
    variables: &Yaml,
    location: &Location,
    collected: &mut Collected,
) -> Result<(), InventoryError> {
    let wrong = |why: &str| location.error(format!("group {group:?}: {why}"));
    let Some(pattern) = pattern.as_str().filter(|pattern| !pattern.is_empty()) else {
        return Err(wrong("expected names of hosts to be text: put numbers and truths in quotes"));
    };
    let found = range::hosts(pattern).map_err(|why| wrong(&format!("host {pattern:?}: {why}")))?;
    let none = Mapping::new();
    let variables = match variables {
        Yaml::Null => &none,
        Yaml::Mapping(variables) => variables,
        _ => {
            return Err(wrong(&format!(
                "host {pattern:?}: expected variables beneath it, each with its value"
            )));
        }
    };
    for name in &found.names {
        collected.host(name, id, found.port, location)?;
        for (variable, said) in variables {
            let Some(variable) = variable.as_str() else { continue };
            collected.set(name, variable, || value(said), location)?;
        }
    }
    Ok(())
}

fn value(said: &Yaml) -> Value {
    match said {
        Yaml::Null => Value::Nothing,
        Yaml::String(text) => Value::text(text),
        Yaml::Number(number) => number.as_i64().map_or(Value::Other, Value::Number),
        Yaml::Tagged(tagged) if tagged.tag == "!vault" || tagged.tag == "!vault-encrypted" => {
            Value::Encrypted
        }
        // Nothing in this text is a template.
        Yaml::Tagged(tagged) if tagged.tag == "!unsafe" => match &tagged.value {
            Yaml::String(text) if !text.is_empty() => Value::Text(text.clone()),
            _ => Value::Other,
        },
        Yaml::Bool(_) | Yaml::Sequence(_) | Yaml::Mapping(_) | Yaml::Tagged(_) => Value::Other,
    }
}
