//! `pkg_update`: updates packages, or only reads the repositories anew.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::Backend;
use super::check_updates::staleness_note;
use super::name::Names;
use super::package_change::{Answer, PackageChange, explained, installed_whole, not_supported};
use super::types::Request;
use crate::{Category, Change, Context, Lock, Noted, Problem, Result, Step};

#[derive(Deserialize, JsonSchema)]
pub(super) struct UpdateArgs {
    /// Default: all
    package: Option<Names>,
    /// Security updates alone
    #[serde(default)]
    security_only: bool,
    /// Only read the repositories anew
    #[serde(default)]
    refresh_only: bool,
}

pub(super) fn update<B: Backend>(backend: &B, args: UpdateArgs, cx: &Context) -> Result<Answer> {
    let named = args.package.map(|names| names.checked(backend)).transpose()?;
    if args.refresh_only {
        if named.is_some() || args.security_only {
            let message =
                "refresh_only updates nothing: it is expected alone, without package or security_only";
            return Err(Problem::validation("CONFLICTING_ARGUMENTS", message));
        }
        return refresh(backend, cx);
    }
    let before = backend.installed(cx)?;
    let absent: Vec<_> =
        named.iter().flatten().filter(|name| installed_whole(&before, name).is_none()).cloned().collect();
    if !absent.is_empty() {
        let message =
            format!("these packages aren't installed, so they can't be updated: {}", absent.join(", "));
        let problem = Problem::new("PACKAGE_NOT_INSTALLED", Category::State, message);
        return Err(problem.remedy("pkg_install installs a package at its newest version"));
    }
    let updates = backend.updates(cx)?;
    let notes: Vec<_> = updates.refreshed.and_then(|at| staleness_note(at, cx.now())).into_iter().collect();
    let request = if args.security_only {
        let is_meant = |name: &String| named.as_ref().is_none_or(|named| named.contains(name));
        let secure = updates.items.into_iter().filter(|update| update.security && !update.held);
        let mut names: Vec<_> = secure.map(|update| update.name).filter(is_meant).collect();
        names.sort();
        names.dedup();
        if names.is_empty() {
            let notes = [vec!["there is no security update".to_owned()], notes].concat();
            return Ok(Noted { data: json!({}), notes });
        }
        Request::Update(names)
    } else {
        named.map_or(Request::UpdateAll, Request::Update)
    };
    PackageChange { backend, cx, request, before, notes }.apply()
}

fn refresh<B: Backend>(backend: &B, cx: &Context) -> Result<Answer> {
    let command = backend.command(&Request::Refresh, cx);
    let command = command.ok_or_else(|| not_supported(&Request::Refresh))?;
    let change = Change::new("Read the package repositories anew")
        .step(Step::run(command).success(backend.success_codes()).uninterruptible())
        .lock(Lock::PackageDatabase);
    let applied = cx.apply(change).map_err(|failure| explained(backend, failure, cx))?;
    if applied.dry_run {
        return Ok(Noted { data: json!({"would_refresh": true}), notes: Vec::new() });
    }
    let remarks = applied.outputs.first().map(|output| backend.remarks(output, cx)).unwrap_or_default();
    let mut notes = remarks.notes;
    let mut data = json!({"refreshed": true});
    match backend.updates(cx) {
        Ok(updates) => {
            let secure = updates.items.iter().filter(|update| update.security).count();
            data["updates"] = json!(updates.items.len());
            data["security_updates"] = json!(secure);
        }
        Err(problem) => notes.push(format!("the available updates couldn't be read: {}", problem.message)),
    }
    Ok(Noted { data, notes })
}
