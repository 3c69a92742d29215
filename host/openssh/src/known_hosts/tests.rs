//! Tests of known_hosts. ssh-keygen of OpenSSH 9.2p1 made the fixtures: `host`, `host-rsa`, `host-ecdsa` and `other`
//! are host keys, `*-cert` are certificates of the first that say in their name what is wrong with them (`ssh-keygen
//! -s authority -h -n web.example.com -V 20240101:20340101`), and `hashed` went through `ssh-keygen -H`.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::time::Duration;

use proptest::prelude::*;
use russh::keys::ssh_key::known_hosts::HostPatterns;

use super::*;
use crate::config::Strict;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("fixtures/", $name)).trim_ascii_end()
    };
}

const HOST: &str = fixture!("host.pub");
const ECDSA: &str = fixture!("host-ecdsa.pub");
const RSA: &str = fixture!("host-rsa.pub");
const OTHER: &str = fixture!("other.pub");
const AUTHORITY: &str = fixture!("authority.pub");
const RSA_AUTHORITY: &str = fixture!("authority-rsa.pub");
const VALID: &str = fixture!("valid-cert.pub");

/// 2026-01-01, while the certificates are valid.
const NOW: Duration = Duration::from_secs(1_767_225_600);

fn key(text: &str) -> PublicKey {
    PublicKey::from_openssh(text).unwrap()
}

fn certificate(text: &str) -> Certificate {
    Certificate::from_openssh(text).unwrap()
}

fn known(text: &str) -> KnownHosts {
    let mut known = KnownHosts::default();
    known.add(Path::new("known_hosts"), text.as_bytes());
    known
}

fn web() -> HostNames {
    HostNames::new("web.example.com", 22, None)
}

/// Returns the verdict in one word.
fn verdict(verdict: &KeyVerdict) -> &'static str {
    match verdict {
        KeyVerdict::Known => "known",
        KeyVerdict::Unknown => "unknown",
        KeyVerdict::Changed { .. } => "changed",
        KeyVerdict::Revoked { .. } => "revoked",
        KeyVerdict::Invalid(_) => "invalid",
    }
}

#[test]
fn a_key_is_judged_as_ssh_judges() {
    let at = |port| HostNames::new("Web.Example.com", port, Some("10.0.0.1".parse().unwrap()));
    for (lines, port, expected) in [
        ("", 22, "unknown"),
        ("web.example.com HOST", 22, "known"),
        ("WEB.example.COM HOST", 22, "known"),
        ("db.example.com HOST", 22, "unknown"),
        ("db,web.example.com,mail HOST", 22, "known"),
        ("*.example.com HOST", 22, "known"),
        ("web?example.com HOST", 22, "known"),
        ("*.example.com,!web.example.com HOST", 22, "unknown"),
        // An address is looked up where the host was asked for by it.
        ("10.0.0.1 HOST", 22, "unknown"),
        ("web.example.com OTHER", 22, "changed"),
        // A key of another type is another key: seen with OpenSSH 9.2p1, accept-new.
        ("web.example.com RSA", 22, "changed"),
        ("web.example.com RSA\nweb.example.com OTHER\nweb.example.com HOST", 22, "known"),
        ("web.example.com HOST", 2222, "known"),
        ("[web.example.com]:2222 HOST", 2222, "known"),
        ("[web.example.com]:2222 HOST", 22, "unknown"),
        ("[web.example.com]:2222 HOST", 2223, "unknown"),
        ("[*.example.com]:2222 HOST", 2222, "known"),
        // The host's key counts where nothing is known of the port.
        ("web.example.com OTHER", 2222, "unknown"),
        ("[web.example.com]:2222 OTHER\nweb.example.com HOST", 2222, "changed"),
        ("@cert-authority web.example.com HOST", 22, "unknown"),
        ("@revoked web.example.com HOST\nweb.example.com HOST", 22, "revoked"),
        ("web.example.com HOST\n@revoked * HOST", 22, "revoked"),
        ("@revoked web.example.com OTHER\nweb.example.com HOST", 22, "known"),
        ("@revoked db.example.com HOST\nweb.example.com HOST", 22, "known"),
        ("@revoked web.example.com HOST", 2222, "revoked"),
        ("@revoked 10.0.0.1 HOST\nweb.example.com HOST", 22, "revoked"),
        ("@revoked [10.0.0.1]:2222 HOST\nweb.example.com HOST", 2222, "revoked"),
        ("@revoked web.example.com OTHER", 22, "unknown"),
    ] {
        let text = lines.replace("HOST", HOST).replace("OTHER", OTHER).replace("RSA", RSA);
        assert_eq!(verdict(&known(&text).judge(&at(port), &key(HOST))), expected, "{lines} on port {port}");
    }
}

#[test]
fn a_changed_key_says_what_is_known_and_where() {
    let text = format!("# comment\nweb.example.com {OTHER}\n\nweb.example.com {RSA}\n");
    let KeyVerdict::Changed { known } = known(&text).judge(&web(), &key(HOST)) else { panic!() };
    let places: Vec<_> = known.iter().map(|entry| (entry.line, &*entry.algorithm)).collect();
    assert_eq!(places, [(2, "ssh-ed25519"), (4, "ssh-rsa")]);
    assert_eq!(known[0].fingerprint, key(OTHER).fingerprint(HashAlg::Sha256).to_string());
}

#[test]
fn a_host_key_alias_is_known_without_a_port() {
    let names = HostNames { host: "the-web".into(), port: None, address: None, reached: None };
    assert_eq!(known(&format!("the-web {HOST}")).judge(&names, &key(HOST)), KeyVerdict::Known);
    assert_eq!(known(&format!("[the-web]:2222 {HOST}")).judge(&names, &key(HOST)), KeyVerdict::Unknown);
}

#[test]
fn a_line_that_is_none_is_skipped_and_the_others_count() {
    let long = format!("{} {HOST}", "a".repeat(LONGEST));
    for line in [
        "web.example.com",
        "web.example.com ssh-ed25519",
        "web.example.com ssh-ed25519 AAAA",
        "web.example.com 1024 35 1234567890",
        &format!("@unheard web.example.com {HOST}"),
        &format!("@revoked @cert-authority web.example.com {HOST}"),
        // The text says another type than the key.
        &format!("web.example.com {}", HOST.replace("ssh-ed25519", "ssh-rsa")),
        // The salt is too short, and in the next one the hash is.
        &format!("|1|9vVvQoZ9|KzOoOO5eMhSQvqvQ8VhEmjQ0Ks0= {HOST}"),
        &format!("|1|9vVvQoZ9ol9XLNvahHKfg12OxOc=|KzOo {HOST}"),
        &format!("|1|9vVvQoZ9ol9XLNvahHKfg12OxOc= {HOST}"),
        &format!("|2|9vVvQoZ9ol9XLNvahHKfg12OxOc=|KzOoOO5eMhSQvqvQ8VhEmjQ0Ks0= {HOST}"),
        &long,
    ] {
        assert!(Line::parse(Path::new("x"), 1, line.as_bytes()).is_err(), "{line}");
        let text = format!("{line}\nweb.example.com {HOST}\n");
        assert_eq!(known(&text).lines.len(), 1, "{line}");
    }
    let mut bytes = b"\xff\xfe web\n".to_vec();
    bytes.extend_from_slice(format!("web.example.com {HOST}").as_bytes());
    let mut known = KnownHosts::default();
    known.add(Path::new("x"), &bytes);
    assert_eq!(known.judge(&web(), &key(HOST)), KeyVerdict::Known);
}

#[test]
fn blanks_tabs_and_comments_are_as_ssh_takes_them() {
    let tabs = HOST.replace(' ', "\t");
    for line in [
        &format!("  web.example.com   {HOST}"),
        &format!("\tweb.example.com\t{tabs}\r"),
        &format!("web.example.com {HOST} # more # of it"),
    ] {
        assert_eq!(known(line).judge(&web(), &key(HOST)), KeyVerdict::Known, "{line}");
    }
    for line in ["", "   ", "# web", "  # web", "\r"] {
        assert!(Line::parse(Path::new("x"), 1, line.as_bytes()).unwrap().is_none(), "{line:?}");
    }
}

#[test]
fn hashed_names_are_those_that_ssh_keygen_hashed() {
    let known = known(fixture!("hashed"));
    assert_eq!(known.lines.len(), 5);
    for (host, port, shown, expected) in [
        ("web.example.com", 22, HOST, "known"),
        ("WEB.example.com", 22, HOST, "known"),
        ("web.example.com", 22, OTHER, "changed"),
        ("web.example.com", 2222, ECDSA, "known"),
        ("web.example.com", 2222, HOST, "changed"),
        ("10.0.0.1", 22, RSA, "known"),
        ("2001:db8::1", 22, HOST, "known"),
        ("fe80::1%eth0", 2222, OTHER, "known"),
        ("db.example.com", 22, HOST, "unknown"),
    ] {
        let names = HostNames::new(host, port, None);
        assert_eq!(verdict(&known.judge(&names, &key(shown))), expected, "{host} {port}");
    }
}

#[test]
fn a_certificate_holds_by_its_authority() {
    let of_web = "@cert-authority *.example.com AUTHORITY";
    for (lines, shown, expected) in [
        (of_web, VALID, "known"),
        ("@cert-authority [web.example.com]:22 AUTHORITY", VALID, "unknown"),
        ("", VALID, "unknown"),
        ("@cert-authority *.example.org AUTHORITY", VALID, "unknown"),
        (of_web, fixture!("by-other-cert.pub"), "unknown"),
        // Without a marker it is the host's own key.
        ("web.example.com AUTHORITY", VALID, "changed"),
        (of_web, fixture!("rsa-cert.pub"), "known"),
        ("@cert-authority * RSA_CA", fixture!("by-rsa-cert.pub"), "known"),
        ("@cert-authority * RSA_CA", fixture!("by-sha1-cert.pub"), "invalid"),
        (of_web, fixture!("expired-cert.pub"), "invalid"),
        (of_web, fixture!("future-cert.pub"), "invalid"),
        (of_web, fixture!("of-user-cert.pub"), "invalid"),
        (of_web, fixture!("other-name-cert.pub"), "invalid"),
        (of_web, fixture!("no-name-cert.pub"), "invalid"),
        (of_web, fixture!("critical-cert.pub"), "invalid"),
        // The key in it may be known by itself.
        ("web.example.com HOST", fixture!("expired-cert.pub"), "known"),
        ("@cert-authority * AUTHORITY\nweb.example.com HOST", fixture!("expired-cert.pub"), "known"),
        ("web.example.com OTHER", VALID, "changed"),
        ("@cert-authority * AUTHORITY\nweb.example.com OTHER", VALID, "known"),
        ("@cert-authority * AUTHORITY\n@revoked * AUTHORITY", VALID, "revoked"),
        ("@cert-authority * AUTHORITY\n@revoked * HOST", VALID, "revoked"),
        ("web.example.com HOST\n@revoked * AUTHORITY", VALID, "revoked"),
        ("@cert-authority * AUTHORITY\n@revoked * OTHER", VALID, "known"),
    ] {
        let text = lines
            .replace("AUTHORITY", AUTHORITY)
            .replace("RSA_CA", RSA_AUTHORITY)
            .replace("HOST", HOST)
            .replace("OTHER", OTHER);
        let found = known(&text).judge_certificate(&web(), &certificate(shown), UNIX_EPOCH + NOW);
        assert_eq!(verdict(&found), expected, "{lines}: {shown}: {found:?}");
    }
}

#[test]
fn a_certificate_is_valid_from_its_first_second_to_before_its_last() {
    let known = known(&format!("@cert-authority * {AUTHORITY}"));
    let valid = certificate(VALID);
    let (first, last) = (valid.valid_after(), valid.valid_before());
    for (seconds, expected) in
        [(0, false), (first - 1, false), (first, true), (last - 1, true), (last, false)]
    {
        let now = UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(known.judge_certificate(&web(), &valid, now) == KeyVerdict::Known, expected, "{seconds}");
    }
    let before = UNIX_EPOCH - Duration::from_secs(1);
    assert_ne!(known.judge_certificate(&web(), &valid, before), KeyVerdict::Known);
}

#[test]
fn a_certificate_with_a_signature_that_isnt_its_authoritys_proves_nothing() {
    let known = known(&format!("@cert-authority * {AUTHORITY}"));
    let mut bytes = certificate(VALID).to_bytes().unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    let forged = Certificate::from_bytes(&bytes).unwrap();
    assert_eq!(verdict(&known.judge_certificate(&web(), &forged, UNIX_EPOCH + NOW)), "invalid");
}

#[test]
fn what_is_known_is_offered_first_and_nothing_weak() {
    let names =
        |algorithms: Vec<Algorithm>| -> Vec<String> { algorithms.iter().map(ToString::to_string).collect() };
    let both = known(&format!("web.example.com {RSA}\nweb.example.com {ECDSA}\ndb.example.com {HOST}"));
    assert_eq!(names(both.algorithms(&web())), ["ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256"]);
    assert!(both.certificate_algorithms(&web()).is_empty());
    assert_eq!(names(both.algorithms(&HostNames::new("db.example.com", 2222, None))), ["ssh-ed25519"]);
    let authority = known(&format!("@cert-authority *.example.com {AUTHORITY}\n@revoked * {HOST}"));
    assert!(authority.algorithms(&web()).is_empty());
    assert_eq!(authority.certificate_algorithms(&HostNames::new("web.example.com", 2222, None)), PREFERRED);
    assert!(!names(PREFERRED.to_vec()).iter().any(|name| name == "ssh-rsa" || name == "ssh-dss"));
}

#[test]
fn a_file_that_cannot_be_read_is_no_empty_one() {
    let directory = tempfile::tempdir().unwrap();
    let (file, none) = (directory.path().join("known_hosts"), directory.path().join("none"));
    fs_write(&file, &format!("web.example.com {HOST}\n"));
    let known = KnownHosts::load(&[none, "/dev/null".into()], &[file]).unwrap();
    assert_eq!(known.judge(&web(), &key(HOST)), KeyVerdict::Known);
    assert!(KnownHosts::load(&[directory.path().into()], &[]).is_err());
    let large = directory.path().join("large");
    File::create(&large).unwrap().set_len(LARGEST + 1).unwrap();
    assert!(KnownHosts::load(&[large], &[]).unwrap_err().message.contains("larger"));
    let under_a_file = directory.path().join("known_hosts/known_hosts");
    assert!(KnownHosts::load(&[under_a_file], &[]).is_err());
}

fn fs_write(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// The lines that `ssh-keygen -F` finds are those that name the host here.
#[test]
fn ssh_keygen_finds_the_same_lines() {
    if !Path::new("/usr/bin/ssh-keygen").exists() {
        eprintln!("skipped: there is no ssh-keygen to compare with");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("known_hosts");
    let patterns = [
        "web.example.com",
        "WEB.example.com",
        "*.example.com",
        "*.example.com,!web.example.com",
        "!web.example.com,*",
        "!db.example.com",
        "web?example*",
        "[web.example.com]:2222",
        "[*]:2222",
        "10.0.0.*",
        "::1",
        "[::1]:2222",
        "web.example.com,",
        ",",
        "*",
    ];
    let mut text: String = patterns.iter().map(|pattern| format!("{pattern} {HOST}\n")).collect();
    text.push_str(fixture!("hashed"));
    fs_write(&file, &text);
    let ours = known(&text);
    for name in [
        "web.example.com",
        "db.example.com",
        "[web.example.com]:2222",
        "10.0.0.1",
        "::1",
        "[::1]:2222",
        "example.com",
    ] {
        let output =
            Command::new("/usr/bin/ssh-keygen").arg("-F").arg(name).arg("-f").arg(&file).output().unwrap();
        let found: BTreeSet<usize> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .filter_map(|line| line.strip_prefix("# Host ")?.split("line ").nth(1)?.trim().parse().ok())
            .collect();
        let own: BTreeSet<usize> =
            ours.lines.iter().filter(|line| line.names(name)).map(|line| line.entry().line).collect();
        assert_eq!(own, found, "{name}");
    }
}

proptest! {
    #[test]
    fn a_hashed_name_is_found_where_the_plain_one_is(
        name in "[a-zA-Z0-9.:-]{1,30}", asked in "[a-zA-Z0-9.:-]{1,30}", port in 1u16.., salt in any::<[u8; 20]>(),
    ) {
        let names = HostNames::new(&name, port, None);
        let hash = line::hashed(&names.listed(), &salt);
        let hashed = HostPatterns::HashedName { salt: salt.to_vec(), hash }.to_string();
        let (plain, hashed) = (known(&format!("{} {HOST}", names.listed())), known(&format!("{hashed} {HOST}")));
        prop_assert_eq!(hashed.judge(&names, &key(HOST)), KeyVerdict::Known);
        for asked in [&asked, &name.to_ascii_uppercase()] {
            let asked = HostNames::new(asked, port, None);
            prop_assert_eq!(plain.judge(&asked, &key(HOST)), hashed.judge(&asked, &key(HOST)));
        }
    }

    #[test]
    fn no_line_is_too_strange_to_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut known = KnownHosts::default();
        known.add(Path::new("x"), &bytes);
        prop_assert_eq!(known.judge(&web(), &key(HOST)), KeyVerdict::Unknown);
    }
}

#[test]
fn a_refusal_says_what_was_seen_and_what_to_do() {
    let shown = key(HOST);
    let fingerprint = shown.fingerprint(HashAlg::Sha256).to_string();
    let at = HostNames::new("web.example.com", 2222, None);
    let refused = |verdict: &KeyVerdict, strict| refusal(&at, &shown, verdict, strict);
    let entry = Entry {
        file: "/home/ada/.ssh/known_hosts".into(),
        line: 7,
        fingerprint: "SHA256:known".into(),
        algorithm: "ssh-rsa".into(),
    };
    for strict in [Strict::Yes, Strict::Ask, Strict::AcceptNew] {
        assert!(refused(&KeyVerdict::Known, strict).is_none());
        for (verdict, code) in [
            (KeyVerdict::Changed { known: vec![entry.clone()] }, "HOST_KEY_CHANGED"),
            (KeyVerdict::Revoked { entry: entry.clone() }, "HOST_KEY_REVOKED"),
            (KeyVerdict::Invalid("was valid until 2025".into()), "HOST_KEY_INVALID"),
        ] {
            let problem = refused(&verdict, strict).unwrap();
            assert_eq!((&*problem.code, problem.category), (code, host_base::problem::Category::Denied));
            assert_eq!(problem.details["fingerprint"], *fingerprint);
        }
    }
    assert!(refused(&KeyVerdict::Unknown, Strict::AcceptNew).is_none());
    for strict in [Strict::Yes, Strict::Ask] {
        let problem = refused(&KeyVerdict::Unknown, strict).unwrap();
        assert_eq!(problem.code, "HOST_KEY_UNKNOWN");
        let text = format!("{} {}", problem.message, problem.remediation.join(" "));
        for part in [
            &*fingerprint,
            "ssh-keyscan -t ed25519 -p 2222 web.example.com | ssh-keygen -lf -",
            "`ssh -p 2222 web.example.com`",
            "accept-new",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    let problem = refused(&KeyVerdict::Changed { known: vec![entry.clone()] }, Strict::Ask).unwrap();
    let text = format!("{} {}", problem.message, problem.remediation.join(" "));
    for part in [
        "HAS CHANGED",
        "in between",
        &fingerprint,
        "SHA256:known",
        "/home/ada/.ssh/known_hosts:7",
        "ssh-keygen -f /home/ada/.ssh/known_hosts -R '[web.example.com]:2222'",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let problem = refused(&KeyVerdict::Revoked { entry }, Strict::Ask).unwrap();
    assert!(problem.message.contains("/home/ada/.ssh/known_hosts:7"), "{}", problem.message);
}

#[test]
fn a_new_key_is_recorded_once_for_its_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(".ssh/known_hosts");
    for names in [web(), HostNames::new("web.example.com", 2222, None)] {
        for _ in 0..2 {
            record(&file, &names, &key(OTHER), false).unwrap();
        }
    }
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o7777;
    assert_eq!((mode(file.parent().unwrap()), mode(&file)), (0o700, 0o600));
    let own = OTHER.rsplit_once(' ').unwrap().0;
    // A key that is known of the host is known on each of its ports.
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("web.example.com {own}\n"));
    let loaded = KnownHosts::load(&[file], &[]).unwrap();
    assert_eq!(loaded.judge(&web(), &key(OTHER)), KeyVerdict::Known);
}

#[test]
fn a_recorded_name_is_hidden_where_it_is_to_be() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("known_hosts");
    let names = HostNames::new("Web.example.com", 2222, None);
    record(&file, &names, &key(HOST), true).unwrap();
    record(&file, &names, &key(HOST), true).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("|1|") && !text.contains("web"), "{text}");
    assert_eq!(text.lines().count(), 1);
    assert_eq!(known(&text).judge(&names, &key(HOST)), KeyVerdict::Known);
}

#[test]
fn a_line_without_an_end_is_ended_before_one_is_added() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("known_hosts");
    fs_write(&file, &format!("db.example.com {HOST}"));
    record(&file, &web(), &key(OTHER), false).unwrap();
    let loaded = KnownHosts::load(&[file], &[]).unwrap();
    assert_eq!(loaded.lines.len(), 2);
}

#[test]
fn what_is_known_by_now_is_not_recorded_over() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("known_hosts");
    for (line, code) in [
        (format!("web.example.com {OTHER}\n"), "HOST_KEY_CHANGED"),
        (format!("@revoked * {HOST}\n"), "HOST_KEY_REVOKED"),
    ] {
        fs_write(&file, &line);
        assert_eq!(record(&file, &web(), &key(HOST), false).unwrap_err().code, code);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), line);
    }
}

#[test]
fn nothing_is_recorded_where_others_could_change_it_or_nothing_stays() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |path: &Path| record(path, &web(), &key(HOST), false).unwrap_err().message;
    let file = directory.path().join("known_hosts");
    fs_write(&file, "");
    let link = directory.path().join("link");
    symlink(&file, &link).unwrap();
    record(&link, &web(), &key(HOST), false).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    for path in [&file, &link] {
        assert!(refused(path).contains("others can write"), "{path:?}");
    }
    assert!(refused(Path::new("/dev/null")).contains("nothing stays"));
    assert!(refused(directory.path()).contains(directory.path().to_str().unwrap()));
    // Only the last directory is created.
    refused(&directory.path().join("a/b/known_hosts"));
    if rustix::process::geteuid().is_root() {
        let other = directory.path().join("other");
        fs_write(&other, "");
        std::os::unix::fs::chown(&other, Some(65534), None).unwrap();
        assert!(refused(&other).contains("others can write"));
        std::fs::remove_file(&link).unwrap();
        symlink("nowhere", &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
        assert!(refused(&link).contains("another account's link"));
        assert!(!directory.path().join("nowhere").exists());
    }
}

#[test]
fn keys_that_are_recorded_at_the_same_time_are_whole_lines_once_each() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("known_hosts");
    std::thread::scope(|scope| {
        for index in 0..8 {
            let file = &file;
            scope.spawn(move || {
                let names = HostNames::new(&format!("web{}", index % 4), 22, None);
                record(file, &names, &key(HOST), index % 2 == 0).unwrap();
            });
        }
    });
    let loaded = KnownHosts::load(&[file], &[]).unwrap();
    assert_eq!(loaded.lines.len(), 4);
}
