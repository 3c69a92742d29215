//! The outputs of openssl were recorded with openssl 3.0.19 (Debian 12): of a certificate of an unknown authority, of one
//! that is its own, of a file that is missing, and of a key. Only the paths in them are others. The outputs of grep and
//! systemctl are written by hand in their formats.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::knowledge::{ConfigFile, Profile};
use linux_sysadmin_sdk::testkit::{FakeTarget, profile};
use serde_json::{Value, json};

use super::*;

const OF_A: &str = "subject=CN=a.example\nissuer=CN=LabCA\nnotBefore=Nov 27 22:40:10 2026 GMT\n\
    notAfter=Dec 17 22:40:10 2026 GMT\nX509v3 Subject Alternative Name: \n    DNS:a.example, DNS:www.a.example\n";
const HOLE: &str = "CN = a.example\nerror 20 at 0 depth lookup: unable to get local issuer certificate\nerror a.pem: verification failed\n";
const OF_ITSELF: &str = "subject=CN=self\nissuer=CN=self\nnotBefore=Nov 27 22:40:10 2026 GMT\nnotAfter=Sep 23 22:40:10 2027 GMT\n";
const SELF_SIGNED: &str =
    "CN = self\nerror 18 at 0 depth lookup: self-signed certificate\nerror s.pem: verification failed\n";
const MISSING: &str = "Could not open file or uri for loading certificate from /etc/ssl/none.pem\n\
    4017BC377C7F0000:error:16000069:STORE routines:ossl_store_get0_loader_int:unregistered scheme:../crypto/store/store_register.c:237:scheme=file\n\
    4017BC377C7F0000:error:80000002:system library:file_open:No such file or directory:../providers/implementations/storemgmt/file_store.c:266:calling stat(/etc/ssl/none.pem)\n\
    Unable to load certificate\n";
const KEY: &str = "Could not read certificate from /etc/ssl/a.key\n\
    40075C4DAB7F0000:error:1608010C:STORE routines:ossl_store_handle_load_result:unsupported:../crypto/store/store_result.c:149:\n\
    Unable to load certificate\n";

/// 2026-11-28
const NOW: f64 = 1_795_824_000.0;

fn nginx() -> Profile {
    let file = |path: &str| ConfigFile {
        path: path.into(),
        what: "x".into(),
        main: true,
        optional: false,
        generated: false,
        apply: None,
    };
    let config = vec![file("/etc/nginx/nginx.conf"), file("/etc/nginx/sites-enabled/*")];
    Profile { config, ..profile("nginx") }
}

fn grep(roots: &[&str]) -> Vec<String> {
    let command = directives::GREP.with(roots.iter().copied());
    std::iter::once("grep".to_owned()).chain(command.args).collect()
}

fn answered(host: FakeTarget, path: &str, shown: (i32, &str, &str), verified: (i32, &str)) -> FakeTarget {
    let x509 = X509.with([path]);
    let x509: Vec<&str> = std::iter::once("openssl").chain(x509.args.iter().map(String::as_str)).collect();
    host.answer(&x509, shown.0, shown.1, shown.2).answer(
        &["openssl", "verify", "-untrusted", path, path],
        verified.0,
        "",
        verified.1,
    )
}

/// A machine whose nginx names these certificates.
fn host(lines: &str) -> FakeTarget {
    let argv = grep(&["/etc/nginx/nginx.conf", "/etc/nginx/sites-enabled"]);
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    FakeTarget::new().at(NOW).profile(nginx()).answer(
        &argv,
        2,
        lines,
        "grep: /etc/nginx/nginx.conf: No such file or directory",
    )
}

fn call(host: FakeTarget) -> (Value, Vec<String>) {
    let module = tool(Module::new("m", "1", "security", ""));
    let (data, reply) = host.call(&module, "cert_list", json!({})).unwrap();
    (data, reply.notes)
}

fn kinds(host: FakeTarget) -> Vec<String> {
    find(&host.context()).unwrap().findings.into_iter().map(|finding| finding.kind).collect()
}

const LINES: &str = "/etc/nginx/sites-enabled/a:  ssl_certificate /etc/ssl/a.pem;\n\
    /etc/nginx/sites-enabled/b:  ssl_certificate /etc/ssl/self.pem;\n\
    /etc/nginx/sites-enabled/b:  ssl_certificate /etc/ssl/none.pem;\n\
    /etc/nginx/elsewhere/c:  ssl_certificate /etc/ssl/unused.pem;\n";

fn three() -> FakeTarget {
    let host = answered(host(LINES), "/etc/ssl/a.pem", (0, OF_A, ""), (2, HOLE));
    let host = answered(
        host,
        "/etc/ssl/self.pem",
        (0, OF_ITSELF, "No extensions in certificate\n"),
        (2, SELF_SIGNED),
    );
    answered(host, "/etc/ssl/none.pem", (1, "", MISSING), (1, MISSING))
}

#[test]
fn certificates_come_with_who_uses_them_and_what_is_wrong() {
    let (data, notes) = call(three());
    assert!(notes.is_empty(), "{notes:?}");
    let expected = json!([
        {"path": "/etc/ssl/none.pem", "services": ["nginx"], "fault": "the file is missing"},
        {
            "path": "/etc/ssl/a.pem",
            "services": ["nginx"],
            "fault": "its chain isn't whole for this machine: unable to get local issuer certificate",
            "names": "a.example, www.a.example",
            "issuer": "CN=LabCA",
            "expires": "2026-12-17T22:40:10Z",
            "days_left": 19,
        },
        {
            "path": "/etc/ssl/self.pem",
            "services": ["nginx"],
            "names": "self",
            "issuer": "itself",
            "expires": "2027-09-23T22:40:10Z",
            "days_left": 299,
        },
    ]);
    assert_eq!(data, expected);
    assert_eq!(kinds(three()), ["cert-unusable", "cert-expiring"]);
    let at = |now: f64| kinds(three().at(now));
    assert_eq!(at(NOW + 30.0 * 86_400.0), ["cert-unusable", "cert-expired"]);
    assert_eq!(at(NOW - 20.0 * 86_400.0), ["cert-unusable", "cert-untrusted", "cert-untrusted"]);
}

#[test]
fn what_certbot_renews_is_said_to_be() {
    let timers = TIMERS.command();
    let timers: Vec<&str> =
        std::iter::once("systemctl").chain(timers.args.iter().map(String::as_str)).collect();
    let path = "/etc/letsencrypt/live/a.example/fullchain.pem";
    let with = |state: &str| {
        let host = FakeTarget::new()
            .at(NOW)
            .file(path, "")
            .file("/etc/letsencrypt/live/README", "")
            .file("/etc/letsencrypt/renewal/a.example.conf", "")
            .answer(
                &timers,
                0,
                format!("ActiveState={state}\n\nActiveState=inactive\n\nActiveState=inactive\n"),
                "",
            );
        answered(host, path, (0, OF_A, ""), (0, ""))
    };
    let (data, _) = call(with("active"));
    assert_eq!((data[0]["renewed_by"].as_str(), data[0].get("fault")), (Some("certbot"), None));
    // Nobody has to look at it: certbot renews it in time.
    assert!(kinds(with("active")).is_empty());
    assert_eq!(kinds(with("inactive")), ["cert-expiring"]);
}

#[test]
fn what_openssl_prints_in_another_form_is_no_certificate_that_is_well_or_weak() {
    let huge = "x y\n".repeat(300_000);
    for text in ["", "Fehler: alles anders\n", "\u{fffd}\0\n", huge.as_str()] {
        let of = || {
            let host = host("/etc/nginx/sites-enabled/a:ssl_certificate /etc/ssl/a.pem;\n");
            answered(host, "/etc/ssl/a.pem", (0, text, ""), (0, text))
        };
        let (data, notes) = call(of());
        assert_eq!(data, json!([{"path": "/etc/ssl/a.pem", "services": ["nginx"]}]), "{text:.20}");
        assert_eq!(notes, ["openssl printed of /etc/ssl/a.pem another form than expected"], "{text:.20}");
        assert!(kinds(of()).is_empty(), "{text:.20}");
    }
    // However many lines there are, the answer stays short and says that some are left out.
    let line = |number: usize| format!("/etc/nginx/sites-enabled/a:ssl_certificate /etc/ssl/{number}.pem;\n");
    let (data, notes) = call(host(&(0..50_000).map(line).collect::<String>()));
    assert_eq!(data.as_array().map(Vec::len), Some(MOST));
    assert!(notes.iter().any(|note| note.contains("more of them than is kept")), "{notes:?}");
}

#[test]
fn a_machine_without_certificates_has_none() {
    assert_eq!(call(FakeTarget::new().at(NOW)).0, json!([]));
    assert_eq!(call(host("")).0, json!([]));
    let denied = FakeTarget::new().at(NOW).profile(nginx());
    assert!(call(denied).1[0].contains("configuration of services"));
    let without =
        host("/etc/nginx/sites-enabled/a:ssl_certificate /etc/ssl/a.pem;\n").without_program("openssl");
    let (data, notes) = call(without);
    assert_eq!((data[0]["path"].as_str(), notes.len()), (Some("/etc/ssl/a.pem"), 1), "{notes:?}");
    let key = answered(
        host("/etc/nginx/sites-enabled/a:ssl_certificate /etc/ssl/a.key;\n"),
        "/etc/ssl/a.key",
        (1, "", KEY),
        (1, KEY),
    );
    assert!(
        call(key).0[0]["fault"].as_str().unwrap().starts_with("no certificate can be read: Could not read")
    );
}
