//! The settings `hosts` and `inventory` of the configuration: groups of hosts, and the paths of Ansible's inventories.

use std::fmt;
use std::path::PathBuf;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::collected::{ALL, UNGROUPED};
use super::{LOCALHOST, range};
use host_base::directories;
use host_openssh::Alias;
use host_text::visible::excerpt;

/// Groups, in the order in which they are written. A member is a host, a range of hosts such as `web[01:20]`, or
/// another group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups(Vec<(String, Vec<String>)>);

impl Groups {
    /// Returns each group with its members, with ranges written out.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.0.iter().map(|(name, members)| (name.as_str(), members.as_slice()))
    }
}

impl<'de> Deserialize<'de> for Groups {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(GroupsVisitor)
    }
}

struct GroupsVisitor;

impl<'de> Visitor<'de> for GroupsVisitor {
    type Value = Groups;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("groups, each with a list of hosts: web: [web1, web2]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Groups, A::Error> {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            group_name(&name).map_err(A::Error::custom)?;
            if groups.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom(format!("the group {name} is there twice")));
            }
            let said = map.next_value::<Vec<String>>()?;
            let mut members = Vec::new();
            for member in &said {
                members.extend(hosts(member).map_err(A::Error::custom)?);
            }
            groups.push((name, members));
        }
        Ok(Groups(groups))
    }
}

fn group_name(name: &str) -> Result<(), String> {
    if [ALL, UNGROUPED, LOCALHOST].contains(&name) {
        return Err(format!("{name} has a meaning of its own: expected another name for a group"));
    }
    match name.parse::<Alias>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!(
            "{:?} is not a group's name: expected letters, digits, `-`, `.`, `_` and `:`",
            excerpt(name, 40)
        )),
    }
}

fn hosts(member: &str) -> Result<Vec<String>, String> {
    let names = range::names(member).map_err(|why| format!("{:?}: {why}", excerpt(member, 40)))?;
    names.iter().try_for_each(|name| name.parse::<Alias>().map(drop))?;
    Ok(names)
}

/// The path of an Ansible inventory: a file or a directory, absolute or with `~/` before it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct InventoryPath(String);

impl InventoryPath {
    /// Returns the path as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path with the home in place of `~`.
    pub fn path(&self) -> Result<PathBuf, String> {
        directories::expand_home(&self.0)
    }
}

impl TryFrom<String> for InventoryPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.starts_with('/') || text.starts_with("~/") {
            true => Ok(Self(text)),
            false => Err(format!(
                "inventory {:?}: expected an absolute path, or one that begins with ~/",
                excerpt(&text, 100)
            )),
        }
    }
}
