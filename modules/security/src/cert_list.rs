//! `cert_list`: the certificates that services use, until when they are good, and who renews them.
//!
//! The profiles of the machine's services say where their configuration is. Its directives name the files of
//! certificates; certbot's own are added. No key is read.

mod directives;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::certificates::{alternative_names, seconds};
use linux_sysadmin_sdk::{Category, Privilege, knowledge, prelude::*, text, time};
use serde_json::json;

use crate::finding::{Finding, Found};

/// Prints what openssl reads of the first certificate in a file. The hole takes the path as a text, because a path
/// would be refused to root in a directory of the service's account.
const X509: CommandLine = CommandLine::new(
    "openssl x509 -noout -subject -issuer -startdate -enddate -ext subjectAltName -nameopt RFC2253 -in <text>",
);
/// Checks the first certificate in a file with the others in it, by the machine's authorities.
const VERIFY: CommandLine = CommandLine::new("openssl verify -untrusted <text> <text>");
/// Prints whether something renews the certificates of certbot.
const TIMERS: CommandLine = CommandLine::new(
    "systemctl show --property=ActiveState -- certbot.timer certbot-renew.timer snap.certbot.renew.timer",
);

/// The directories of certbot's certificates, and of what it knows about their renewal.
const LIVE: &str = "/etc/letsencrypt/live";
const RENEWAL: &str = "/etc/letsencrypt/renewal";

/// The most certificates that are looked at.
const MOST: usize = 100;

/// The days before its end from which a certificate that nobody renews is told, and one whose renewal should be over.
const SOON: i64 = 30;
const LATE: i64 = 14;

pub(crate) fn tool(module: Module) -> Module {
    module.grants(grants).tool(Tool::new(
        "cert_list",
        "Certificates that services use: names, expiry, chain, renewal",
        cert_list,
    ))
}

fn grants(module: Module) -> Module {
    module
        .command(
            directives::GREP
                .read("which certificates the configuration of services names")
                .as_root_if_available(),
        )
        .command(X509.read("names and times of a certificate").as_root_if_available())
        .command(VERIFY.read("whether its chain is whole").as_root_if_available())
        .command(TIMERS.read("whether certbot renews its certificates"))
        .path(PathGrant::read(LIVE, "which certificates certbot has").as_root())
        .path(PathGrant::read(RENEWAL, "which of them it renews").as_root())
}

/// A certificate.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Certificate {
    path: String,
    /// The profiles of the services whose configuration names it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    services: Vec<String>,
    /// Why it can't be used: it is missing, has expired, has a chain with a hole.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    days_left: Option<i64>,
    /// `certbot` where it renews the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    renewed_by: Option<&'static str>,
}

fn cert_list(_: NoArgs, cx: &Context) -> Result<Listing<Certificate>> {
    let (items, notes) = all(cx)?;
    Ok(Listing { items, total: None, notes })
}

/// The check as `sec_audit` runs it.
pub(crate) fn find(cx: &Context) -> Result<Found> {
    let (certificates, notes) = all(cx)?;
    let mut found = Found { unseen: notes, ..Found::default() };
    for certificate in certificates {
        found.findings.extend(weakness(&certificate));
    }
    Ok(found)
}

/// The commands that don't wait for another one.
pub(crate) fn ahead(cx: &Context) -> Vec<Command> {
    directives::command(&cx.detected()).into_iter().collect()
}

fn weakness(certificate: &Certificate) -> Option<Finding> {
    let Certificate { path, days_left, renewed_by, fault, .. } = certificate;
    let used_by = text::list(&certificate.services, 3);
    let renewed = |finding: Finding| match renewed_by {
        Some(_) => finding.mend("command_run", json!({"argv": ["certbot", "renew"], "as_root": true})),
        None => finding,
    };
    let late = if renewed_by.is_some() { LATE } else { SOON };
    match (days_left, fault) {
        (Some(days), _) if *days < 0 => {
            let evidence = format!("expired {} days ago; used by {used_by}", -days);
            Some(renewed(Finding::new(Severity::Critical, "cert-expired", path, evidence)))
        }
        (Some(days), _) if *days < late => {
            let by =
                renewed_by.map_or("nobody renews it".to_owned(), |by| format!("{by} should have renewed it"));
            let severity = if *days < 7 { Severity::High } else { Severity::Warning };
            let evidence = format!("expires in {days} days; {by}; used by {used_by}");
            Some(renewed(Finding::new(severity, "cert-expiring", path, evidence)))
        }
        (None, Some(fault)) => {
            Some(Finding::new(Severity::High, "cert-unusable", path, format!("{fault}; used by {used_by}")))
        }
        (Some(_), Some(fault)) => Some(Finding::new(
            Severity::Warning,
            "cert-untrusted",
            path,
            format!("{fault}; used by {used_by}"),
        )),
        _ => None,
    }
}

/// All certificates, those that end first at the top, and what couldn't be looked at.
fn all(cx: &Context) -> Result<(Vec<Certificate>, Vec<String>)> {
    let mut notes = Vec::new();
    let mut used: BTreeMap<String, BTreeSet<String>> = directives::used(&cx.detected(), &mut notes, cx);
    let renewed = renewed(&mut notes, cx);
    for name in &renewed.live {
        used.entry(format!("{LIVE}/{name}/fullchain.pem")).or_default();
    }
    let more = used.len().saturating_sub(MOST);
    if more > 0 {
        notes.push(format!("the first {MOST} of {} certificates were looked at", used.len()));
    }
    let paths: Vec<(String, BTreeSet<String>)> = used.into_iter().take(MOST).collect();
    let look =
        |line: CommandLine, values: Vec<&String>| line.with(values).privilege(Privilege::RootIfAvailable);
    let commands =
        paths.iter().flat_map(|(path, _)| [look(X509, vec![path]), look(VERIFY, vec![path, path])]);
    let mut outputs = cx.run_all(commands.collect()).into_iter();
    let mut certificates = Vec::new();
    for (path, services) in paths {
        let (Some(shown), Some(verified)) = (outputs.next(), outputs.next()) else { break };
        let mut certificate = match (shown, verified) {
            (Ok(shown), Ok(_)) if shown.exit_code == 0 && !shown.text().contains("notAfter=") => {
                notes.push(format!("openssl printed of {path} another form than expected"));
                Certificate::default()
            }
            (Ok(shown), Ok(verified)) => read(shown, &verified, cx.now()),
            // Without openssl the paths are told all the same.
            (Err(problem), _) | (_, Err(problem)) => {
                let note = text::of_line(&problem.message);
                if !notes.contains(&note) {
                    notes.push(note);
                }
                Certificate::default()
            }
        };
        let name = path.strip_prefix(&format!("{LIVE}/")).and_then(|rest| rest.split('/').next());
        let is_renewed = renewed.is_active && name.is_some_and(|name| renewed.known.contains(name));
        certificate.renewed_by = is_renewed.then_some("certbot");
        certificate.services = services.into_iter().collect();
        certificate.path = path;
        certificates.push(certificate);
    }
    certificates.sort_by(|a, b| a.days_left.cmp(&b.days_left).then_with(|| a.path.cmp(&b.path)));
    Ok((certificates, notes))
}

/// Reads what openssl printed of a certificate.
fn read(shown: Output, verified: &Output, now: f64) -> Certificate {
    if shown.exit_code != 0 {
        let error = shown.error_text();
        let fault = if error.contains("No such file") {
            "the file is missing".to_owned()
        } else {
            format!("no certificate can be read: {}", text::of_line(error.lines().next().unwrap_or_default()))
        };
        return Certificate { fault: Some(fault), ..Certificate::default() };
    }
    let said = shown.text();
    let field = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let (subject, issuer) = (field("subject").unwrap_or_default(), field("issuer").unwrap_or_default());
    let ends = field("notAfter").and_then(seconds);
    let days_left = ends.map(|ends| ((ends as f64 - now) / 86_400.0).floor() as i64);
    let is_self_signed = subject == issuer;
    let has_begun = field("notBefore").and_then(seconds).is_none_or(|begins| begins as f64 <= now);
    let fault = match days_left {
        Some(days) if days < 0 => Some("it has expired".to_owned()),
        _ if !has_begun => Some("it isn't good yet".to_owned()),
        // One that is its own authority can't have a chain.
        _ if is_self_signed => None,
        _ => hole(verified),
    };
    let common = subject.split(',').find_map(|part| part.trim().strip_prefix("CN="));
    Certificate {
        fault,
        names: alternative_names(&said).or_else(|| common.map(text::of_line)),
        issuer: Some(if is_self_signed { "itself".to_owned() } else { text::of_line(issuer) }),
        expires: ends.map(time::rfc3339),
        days_left,
        ..Certificate::default()
    }
}

/// The hole in a chain, in the words of `openssl verify`: `error 20 at 0 depth lookup: unable to get local issuer
/// certificate`.
fn hole(verified: &Output) -> Option<String> {
    if verified.exit_code == 0 {
        return None;
    }
    let said = knowledge::text_of(verified);
    let error = said.lines().find_map(|line| line.split_once(" depth lookup: ").map(|(_, error)| error));
    Some(format!("its chain isn't whole for this machine: {}", text::of_line(error.unwrap_or(&said))))
}

/// What certbot renews.
#[derive(Default)]
struct Renewed {
    live: Vec<String>,
    known: BTreeSet<String>,
    is_active: bool,
}

fn renewed(notes: &mut Vec<String>, cx: &Context) -> Renewed {
    let mut lists = cx.files_as(Privilege::Root).list_all(&[LIVE, RENEWAL]).into_iter();
    let mut list = || match lists.next() {
        Some(Ok(names)) => names,
        Some(Err(problem)) if problem.category != Category::NotFound => {
            notes.push(format!("certbot's certificates: {}", text::of_line(&problem.message)));
            Vec::new()
        }
        _ => Vec::new(),
    };
    let (live, renewal) = (list(), list());
    if live.is_empty() {
        return Renewed::default();
    }
    let is_name = |name: &String| name != "README" && !text::has_hidden(name);
    let timers = cx.run(TIMERS.command());
    Renewed {
        live: live.into_iter().filter(is_name).collect(),
        known: renewal.iter().filter_map(|name| name.strip_suffix(".conf")).map(str::to_owned).collect(),
        is_active: timers.is_ok_and(|output| output.text().lines().any(|line| line == "ActiveState=active")),
    }
}
