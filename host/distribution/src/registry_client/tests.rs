//! The client against a registry that may do anything.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::address::Source;
use crate::manifest::Annotations;
use crate::publish::Published;
use crate::test_server::{Answer, Asked, LARGEST, TestServer};

const COMPONENT: &[u8] = b"\0asm the first version";

fn annotations(version: &str) -> Annotations {
    Annotations {
        name: "pacman".to_owned(),
        version: version.to_owned(),
        license: Some("MIT".to_owned()),
        contract: "sysadmin:module@0.2.0".to_owned(),
        ..Annotations::default()
    }
}

fn published(server: &TestServer, tag: &str, component: &[u8]) -> Published {
    server.client().publish(&server.reference(tag), component, &annotations("1.0.0"), true).unwrap()
}

/// The error of resolving a reference and fetching its component.
fn refused(server: &TestServer, client: &RegistryClient, reference: &str) -> String {
    let fetched = client.resolve(&server.reference(reference)).and_then(|resolved| client.pull(&resolved));
    fetched.err().expect("it is refused").to_string()
}

/// Whether the words are in a text.
#[track_caller]
fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word} is not in: {text}");
    }
}

#[test]
fn what_is_published_is_fetched_by_its_tag_and_by_its_digest() {
    let server = TestServer::new();
    let Published { reference, was_there } = published(&server, ":1.0.0", COMPONENT);
    assert!(!was_there);
    let digest = reference.digest.clone().unwrap();
    let client = server.client();
    for written in [":1.0.0".to_owned(), format!("@sha256:{digest}"), format!(":other@sha256:{digest}")] {
        let resolved = client.resolve(&server.reference(&written)).unwrap();
        assert_eq!(resolved.reference.digest.as_deref(), Some(digest.as_str()), "{written}");
        let download = client.pull(&resolved).unwrap();
        assert_eq!(fs::read(download.path()).unwrap(), COMPONENT);
        let path = download.path().to_owned();
        drop(download);
        assert!(!path.exists(), "what was fetched stays only as long as it is needed");
    }
    has(&refused(&server, &client, ":2.0.0"), &["404", "MANIFEST_UNKNOWN"]);
    has(&refused(&server, &client, ""), &["neither a tag nor a digest"]);
    let elsewhere = client.resolve(&format!("oci://{}/x/y:1", server.authority()).parse().unwrap());
    has(&elsewhere.err().unwrap().to_string(), &["404", "NAME_UNKNOWN"]);
}

#[test]
fn a_tag_is_moved_only_where_that_is_asked_for() {
    let server = TestServer::new();
    let client = server.client();
    let publish = |component: &[u8], moves: bool| {
        client.publish(&server.reference(":1.0.0"), component, &annotations("1.0.0"), moves)
    };
    let first = publish(COMPONENT, false).unwrap();
    assert!(!first.was_there);
    // Publishing the same again changes nothing.
    let again = publish(COMPONENT, false).unwrap();
    assert!(again.was_there);
    assert_eq!(again.reference, first.reference);
    let error = publish(b"other bytes", false).err().unwrap().to_string();
    has(&error, &["is there already", first.reference.digest.as_deref().unwrap(), "--move-tag"]);
    let resolved = client.resolve(&server.reference(":1.0.0")).unwrap();
    assert_eq!(resolved.reference, first.reference);
    let moved = publish(b"other bytes", true).unwrap();
    assert_ne!(moved.reference, first.reference);
    let resolved = client.resolve(&server.reference(":1.0.0")).unwrap();
    assert_eq!(resolved.reference, moved.reference);
    // The digest still means the first one.
    assert!(client.resolve(&first.reference).is_ok());
}

#[test]
fn only_a_tag_is_published() {
    let server = TestServer::new();
    for rest in [String::new(), format!(":1@sha256:{}", "0".repeat(64))] {
        let reference = server.reference(&rest);
        let error =
            server.client().publish(&reference, COMPONENT, &annotations("1.0.0"), false).err().unwrap();
        has(&error.to_string(), &["can't be published", "NAME:TAG"]);
    }
    assert!(server.asked().is_empty());
}

#[test]
fn bytes_that_were_changed_on_the_registry_are_refused_by_their_digest() {
    let server = TestServer::new();
    let Published { reference, .. } = published(&server, ":1.0.0", COMPONENT);
    let digest = reference.digest.unwrap();
    let by_digest = format!("@sha256:{digest}");
    let client = server.client();
    // As many other bytes.
    let mut other = COMPONENT.to_vec();
    other[7] ^= 1;
    server.tamper(&sha256::of(COMPONENT), &other);
    for written in [":1.0.0", &by_digest] {
        let error = refused(&server, &client, written);
        has(&error, &[&sha256::of(COMPONENT), &sha256::of(&other), "somebody has changed it"]);
    }
    // Fewer and more bytes.
    server.tamper(&sha256::of(COMPONENT), &other[..5]);
    has(&refused(&server, &client, &by_digest), &["somebody has changed it"]);
    let server = TestServer::new();
    published(&server, ":1.0.0", COMPONENT);
    server.tamper(&sha256::of(COMPONENT), &[COMPONENT, b"more"].concat());
    has(&refused(&server, &server.client(), ":1.0.0"), &["larger than"]);
    // The manifest itself.
    let server = TestServer::new();
    published(&server, ":1.0.0", COMPONENT);
    let second = published(&server, ":2.0.0", b"second").reference.digest.unwrap();
    let bytes = {
        let client = server.client();
        let reference = server.reference(":2.0.0");
        let mut repository = client.repository(&reference, Access::Pull);
        let response = manifest_of(&mut repository, &reference).unwrap();
        http::read(&repository.uri("").unwrap(), response, LARGEST_MANIFEST, "the manifest").unwrap()
    };
    server.tamper(&digest, &bytes);
    has(&refused(&server, &server.client(), &by_digest), &[&digest, &second, "somebody has changed it"]);
}

#[test]
fn an_answer_that_makes_no_sense_or_is_too_large_is_refused() {
    let server = TestServer::new();
    let client = server.client();
    let manifest = |size: u64| {
        let digest = format!("sha256:{}", "0".repeat(64));
        let layer = json!({"mediaType": "application/wasm", "digest": digest, "size": size});
        json!({"schemaVersion": 2, "config": layer, "layers": [layer]}).to_string().into_bytes()
    };
    let cases: [(Answer, &[&str]); 6] = [
        (Answer::new(200, b"<html>secret</html>"), &["expected the manifest of one WebAssembly component"]),
        (Answer::new(200, &manifest(LARGEST + 1)), &["the component is larger than 1048576 bytes"]),
        (Answer::new(200, &vec![b' '; (LARGEST_MANIFEST + 1) as usize]), &["the manifest is larger than"]),
        (Answer::new(500, b"secret"), &["answers 500 to"]),
        (Answer::new(403, br#"{"errors": [{"code": "DENIED", "message": "secret"}]}"#), &["403 (DENIED)"]),
        // The answer ends before its end.
        (Answer::new(200, b"{").with("content-length", "100"), &["can't be asked"]),
    ];
    for (answer, words) in cases {
        server.before(move |_| Some(answer.clone()));
        let error = refused(&server, &client, ":1.0.0");
        has(&error, words);
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn a_registry_that_does_not_answer_is_waited_for_only_so_long() {
    let server = TestServer::new();
    server.before(|_| Some(Answer { is_silent: true, ..Answer::default() }));
    let client = RegistryClient::with(LARGEST, None, Duration::from_millis(200));
    has(&refused(&server, &client, ":1.0.0"), &["can't be asked", "timeout"]);
}

#[test]
fn a_redirect_to_another_scheme_or_server_is_not_followed() {
    let server = TestServer::new();
    let client = server.client();
    for location in ["https://r.example/x?token=secret", "http://127.0.0.1:1/x", "file:///etc/passwd", "/x"] {
        server.before(move |_| Some(Answer::new(307, b"").with("location", location)));
        let error = refused(&server, &client, ":1.0.0");
        has(&error, &["redirects to", "not followed"]);
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn a_password_is_shown_to_the_registry_alone_and_only_when_it_asks() {
    let server = TestServer::new();
    published(&server, ":1.0.0", COMPONENT);
    let wants = |asked: &Asked| {
        let is_known = asked.authorization.as_deref() == Some("Basic YWRhOnNlY3JldA==");
        (!is_known).then(|| Answer::new(401, b"").with("www-authenticate", "Basic realm=\"r\""))
    };
    server.before(wants);
    let directory = tempfile::tempdir().unwrap();
    let client = server.client_of(&directory, r#"{"auth": "YWRhOnNlY3JldA=="}"#);
    let before = server.asked().len();
    let resolved = client.resolve(&server.reference(":1.0.0")).unwrap();
    assert_eq!(fs::read(client.pull(&resolved).unwrap().path()).unwrap(), COMPONENT);
    assert_eq!(server.asked()[before].authorization, None, "the first request shows no password");
    // Who has none, or a wrong one, is told where it is looked for.
    for client in [server.client(), server.client_of(&directory, r#"{"auth": "YWRhOm90aGVy"}"#)] {
        has(&refused(&server, &client, ":1.0.0"), &["denies access", "docker login", "config.json"]);
    }
    // The registry names another server for an upload.
    let other = TestServer::new();
    let elsewhere = format!("http://{}/upload", other.authority());
    server.before(move |asked| match asked.method.as_str() {
        "POST" if asked.authorization.is_some() => {
            Some(Answer::new(202, b"").with("location", elsewhere.clone()))
        }
        _ => wants(asked),
    });
    let client = server.client_of(&directory, r#"{"auth": "YWRhOnNlY3JldA=="}"#);
    assert!(client.publish(&server.reference(":2.0.0"), b"second", &annotations("2.0.0"), false).is_err());
    let asked = other.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].authorization, None);
}

#[test]
fn a_token_is_asked_for_where_the_registry_says_and_shown_to_it() {
    for (entry, grant) in [
        (r#"{"auth": "YWRhOnNlY3JldA=="}"#, "Basic YWRhOnNlY3JldA=="),
        (r#"{"identitytoken": "again"}"#, "refresh_token=again"),
        ("{}", ""),
    ] {
        let server = TestServer::new();
        let realm = format!("http://{}/token", server.authority());
        server.before(move |asked| {
            if asked.path.starts_with("/token") {
                return Some(Answer::new(200, br#"{"token": "t0k3n"}"#));
            }
            let is_known = asked.authorization.as_deref() == Some("Bearer t0k3n");
            let challenge = format!("Bearer realm=\"{realm}\",service=\"a registry\",scope=\"x\"");
            (!is_known).then(|| Answer::new(401, b"").with("www-authenticate", challenge))
        });
        let directory = tempfile::tempdir().unwrap();
        let client = server.client_of(&directory, entry);
        client.publish(&server.reference(":1.0.0"), COMPONENT, &annotations("1.0.0"), false).unwrap();
        let asked = server.asked();
        let tokens: Vec<&Asked> = asked.iter().filter(|asked| asked.path.starts_with("/token")).collect();
        assert_eq!(tokens.len(), 1, "one token is enough: {asked:?}");
        let shown = [
            tokens[0].path.clone(),
            tokens[0].authorization.clone().unwrap_or_default(),
            String::from_utf8(tokens[0].body.clone()).unwrap(),
        ]
        .join(" ");
        has(&shown, &[grant, "pacman", "push"]);
    }
}

#[test]
fn a_password_is_not_sent_to_an_unencrypted_address_of_another_machine() {
    let directory = tempfile::tempdir().unwrap();
    for challenge in [
        "Bearer realm=\"http://tokens.example/\"",
        "Bearer realm=\"ftp://127.0.0.1/\"",
        "Bearer realm=\"/token\"",
        "Bearer service=\"x\"",
    ] {
        let server = TestServer::new();
        let client = server.client_of(&directory, r#"{"auth": "YWRhOnNlY3JldA=="}"#);
        server.before(move |_| Some(Answer::new(401, b"").with("www-authenticate", challenge)));
        let error = refused(&server, &client, ":1.0.0");
        assert!(error.contains("gives") || error.contains("not encrypted"), "{error}");
        assert!(server.asked().iter().all(|asked| asked.authorization.is_none()));
    }
}

#[test]
fn what_is_fetched_from_the_web_has_the_hash_that_was_asked_for() {
    let server = TestServer::new();
    server.before(move |asked| {
        Some(match asked.path.as_str() {
            "/x.wasm?key=secret" => Answer::new(200, COMPONENT),
            "/large.wasm" => Answer::new(200, &vec![0; LARGEST as usize + 1]),
            "/away.wasm" => Answer::new(302, b"").with("location", "https://r.example/x.wasm"),
            _ => Answer::new(404, b"secret"),
        })
    });
    let client = server.client();
    let fetched = |path: &str, sha256: &str| {
        let written = format!("http://{}{path}", server.authority());
        let Source::Web(address) = Source::of(written.as_ref()).unwrap() else { panic!("{written}") };
        client.download(&address, sha256)
    };
    let right = sha256::of(COMPONENT);
    let download = fetched("/x.wasm?key=secret", &right).unwrap();
    assert_eq!(fs::read(download.path()).unwrap(), COMPONENT);
    for (path, sha256, word) in [
        ("/x.wasm?key=secret", "0".repeat(64), "somebody has changed it"),
        ("/large.wasm", right.clone(), "larger than"),
        ("/away.wasm", right.clone(), "not followed"),
        ("/none.wasm", right.clone(), "answers 404"),
    ] {
        let error = fetched(path, &sha256).err().unwrap().to_string();
        assert!(error.contains(word) && !error.contains("secret"), "{path}: {error}");
    }
}

#[test]
fn a_published_manifest_is_what_other_tools_read() {
    let server = TestServer::new();
    published(&server, ":1.0.0", COMPONENT);
    let asked = server.asked();
    let manifest = asked.iter().find(|asked| asked.method == "PUT" && asked.path.contains("/manifests/"));
    let manifest: Value = serde_json::from_slice(&manifest.unwrap().body).unwrap();
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v0+json");
    assert_eq!(manifest["layers"][0]["mediaType"], "application/wasm");
    assert_eq!(manifest["layers"][0]["digest"], format!("sha256:{}", sha256::of(COMPONENT)));
    assert_eq!(manifest["annotations"]["org.opencontainers.image.version"], "1.0.0");
}
