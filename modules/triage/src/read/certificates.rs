//! Certificates that have expired, expire soon, or can't be used.

use linux_sysadmin_sdk::{Severity, text};
use serde_json::{Value, json};

use crate::call::{Call, Form};
use crate::envelope::{Envelope, raw, said, strings};
use crate::finding::{Finding, Kind};
use crate::notebook::Notebook;

/// A certificate is told from this many days before its end on. One that is renewed should be new by then as well.
const SOON: i64 = 14;

/// Reads `cert_list`.
pub(crate) fn listed(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    for item in envelope.items() {
        let Some(path) = said(item, "path") else { continue };
        let left = item["days_left"].as_i64();
        let fault = said(item, "fault");
        let (grade, what) = match (left, &fault) {
            (Some(left), _) if left < 0 => {
                (Severity::Critical, format!("a certificate expired {} days ago", left.saturating_neg()))
            }
            (Some(left), _) if left < SOON => {
                (Severity::High, format!("a certificate expires in {left} days"))
            }
            (_, Some(_)) => (Severity::Warning, "a certificate can't be used as it is".to_owned()),
            _ => continue,
        };
        notebook.add(finding(item, path, grade, what, fault));
    }
}

fn finding(item: &Value, path: String, grade: Severity, what: String, fault: Option<String>) -> Finding {
    let services: Vec<String> = strings(item, "services").collect();
    let renewed = raw(item, "renewed_by") == Some("certbot");
    let cause = match (renewed, fault) {
        (true, _) => "certbot should have renewed it".to_owned(),
        (false, Some(fault)) if !fault.contains("expired") => fault,
        (false, _) => "nobody renews it".to_owned(),
    };
    let renew =
        Call::new("command_run").with("argv", json!(["certbot", "renew"])).with("as_root", json!(true));
    let names = said(item, "names").unwrap_or_default();
    let mut finding = Finding::new(Kind::Certificate, grade, what)
        .fits(&[Kind::Mail])
        .evidence(match services.is_empty() {
            true => path.clone(),
            false => format!("{path}, used by {}", text::list(&services, 3)),
        })
        .evidence(match names.is_empty() {
            true => String::new(),
            false => format!("for {}", text::excerpt(&names, 80)),
        })
        .cause(cause)
        .call([
            Some(renew).filter(|_| renewed),
            Call::new("cert_list").of("filter", Form::Path, &path),
            Some(Call::new("cert_list")),
        ]);
    finding.names.extend(services);
    finding.names.extend(names.split([',', ' ']).filter(|name| name.contains('.')).map(str::to_owned));
    finding.names.push(path);
    finding
}
