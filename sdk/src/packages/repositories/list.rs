//! `repo_list`: every repository, with what makes it unsafe.

use serde::Serialize;

use super::Repositories;
use super::key::{KeyFiles, SignedBy};
use super::types::{Definition, KeySource};
use super::url::{comparable, is_plain, shown};
use crate::{Context, Listing, NoArgs, Result, time};

#[derive(Serialize)]
pub(super) struct Repository {
    id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "is_true")]
    enabled: bool,
    #[serde(skip_serializing_if = "is_plain_deb")]
    types: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    urls: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    mirrors: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suites: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    components: Vec<String>,
    #[serde(skip_serializing_if = "SignedBy::is_empty")]
    signed_by: SignedBy,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    restricted: Vec<String>,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    refreshed: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

fn is_true(value: &bool) -> bool {
    *value
}

fn is_plain_deb(types: &[String]) -> bool {
    types.is_empty() || types == ["deb"]
}

pub(super) fn list(repositories: &dyn Repositories, _: NoArgs, cx: &Context) -> Result<Listing<Repository>> {
    let definitions = repositories.definitions(cx)?;
    let keys = KeyFiles::read(&definitions.items, cx);
    let now = cx.now() as i64;
    let items = definitions.items.iter().enumerate().map(|(index, known)| {
        let (signed_by, key_warnings) = keys.of(known, now);
        let mut warnings = dangers(known);
        warnings.extend(key_warnings);
        let before = definitions.items.iter().take(index);
        let same = before.filter(|other| known.enabled && other.enabled && is_same(known, other));
        warnings.extend(same.map(|other| format!("defines the same as {}", other.at())));
        if known.never_read {
            warnings.push("never read successfully".to_owned());
        }
        Repository {
            id: known.id.clone(),
            name: known.name.clone(),
            enabled: known.enabled,
            types: known.types.clone(),
            urls: known.urls.iter().map(|url| shown(url).0).collect(),
            mirrors: shown(&known.mirrors).0,
            suites: known.suites.clone(),
            components: known.components.clone(),
            signed_by,
            priority: known.priority,
            restricted: known.restricted.clone(),
            at: known.at(),
            refreshed: known.refreshed.map(time::rfc3339),
            warnings,
        }
    });
    let items: Vec<_> = items.collect();
    Ok(Listing { items, total: None, notes: definitions.malformed })
}

/// The settings by which somebody else than the repository's makers could put packages into it.
pub(super) fn dangers(known: &Definition) -> Vec<String> {
    let addresses = || known.urls.iter().chain(Some(&known.mirrors));
    let mut dangers = Vec::new();
    if !known.unsigned.is_empty() {
        dangers.push(format!("signatures aren't checked ({})", known.unsigned.join(", ")));
    }
    if addresses().any(|url| is_plain(url)) {
        dangers.push("reached without TLS".to_owned());
    }
    if known.keys.iter().any(|key| matches!(key, KeySource::Url(url) if is_plain(url))) {
        dangers.push("its key is fetched without TLS".to_owned());
    }
    if known.unverified {
        dangers.push("the server's certificate isn't checked".to_owned());
    }
    if addresses().any(|url| shown(url).1) {
        dangers.push("its URL holds credentials, left out here".to_owned());
    }
    dangers
}

/// Says whether two definitions have an address with a suite, or a name of their section, in common.
pub(super) fn is_same(one: &Definition, other: &Definition) -> bool {
    let shares = |a: &[String], b: &[String]| a.iter().any(|value| b.contains(value));
    let urls = |of: &Definition| of.urls.iter().map(|url| comparable(url)).collect::<Vec<_>>();
    let overlaps = |a: &[String], b: &[String]| a.is_empty() && b.is_empty() || shares(a, b);
    one.id == other.id
        || shares(&urls(one), &urls(other))
            && overlaps(&one.suites, &other.suites)
            && overlaps(&one.components, &other.components)
            && overlaps(&one.types, &other.types)
}
