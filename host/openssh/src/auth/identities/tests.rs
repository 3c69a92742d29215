use super::*;
use crate::test_server::{fingerprint, new_key, save, save_public};
use russh::keys::key::safe_rng;
use russh::keys::ssh_key::certificate::{Builder, CertType};

fn held(key: &PrivateKey) -> AgentIdentity {
    AgentIdentity::PublicKey { key: key.public_key().clone(), comment: "me@here".into() }
}

fn certify(key: &PrivateKey, authority: &PrivateKey, kind: CertType) -> Certificate {
    let mut rng = safe_rng();
    let mut builder = Builder::new_with_random_nonce(&mut rng, key.public_key(), 0, u64::MAX - 1).unwrap();
    builder.cert_type(kind).unwrap();
    builder.valid_principal("alice").unwrap();
    builder.key_id("alice").unwrap();
    builder.sign(authority).unwrap()
}

/// Returns what would be offered, and who would sign.
fn order(sources: Sources<'_>) -> Vec<String> {
    let shown = |identity: Identity| {
        let signer = match identity.key {
            Key::Agent(_) => "agent",
            Key::File(_) => "file",
        };
        let kind = match &identity.offer {
            Offer::Key(_) => "key",
            Offer::Certificate(_) => "certificate",
        };
        let fingerprint = identity.shown();
        format!("{} {kind} by {signer}", fingerprint.split(' ').next().unwrap())
    };
    sources.gather().offered.into_iter().map(shown).collect()
}

#[test]
fn the_agents_configured_keys_come_first_and_files_last() {
    let directory = tempfile::tempdir().unwrap();
    let [configured, other, only_file, encrypted] = [new_key(), new_key(), new_key(), new_key()];
    let file = save(directory.path(), "only_file", &only_file);
    save_public(directory.path(), "configured.pub", configured.public_key());
    let locked = save(directory.path(), "locked", &encrypted.encrypt(&mut safe_rng(), "x").unwrap());
    let files = [file, directory.path().join("configured"), locked, directory.path().join("none")];
    let sources = |identities_only| Sources {
        identity_files: &files,
        certificate_files: &[],
        identities_only,
        agent: vec![held(&other), held(&encrypted), held(&configured)],
    };
    let named = |key: &PrivateKey, by: &str| format!("{} key by {by}", fingerprint(key));
    let mut expected = vec![
        named(&encrypted, "agent"),
        named(&configured, "agent"),
        named(&other, "agent"),
        named(&only_file, "file"),
    ];
    assert_eq!(order(sources(false)), expected);
    expected.remove(2);
    assert_eq!(order(sources(true)), expected);
}

#[test]
fn a_configured_certificate_comes_first_and_is_signed_by_whoever_has_its_key() {
    let directory = tempfile::tempdir().unwrap();
    let [by_agent, by_file, missing, authority] = [new_key(), new_key(), new_key(), new_key()];
    let files = [save(directory.path(), "by_file", &by_file)];
    let certificates: Vec<PathBuf> = [&by_file, &by_agent, &missing]
        .into_iter()
        .enumerate()
        .map(|(at, key)| {
            let path = directory.path().join(format!("{at}-cert.pub"));
            std::fs::write(&path, certify(key, &authority, CertType::User).to_openssh().unwrap()).unwrap();
            path
        })
        .collect();
    let sources = || Sources {
        identity_files: &files,
        certificate_files: &certificates,
        identities_only: true,
        agent: vec![held(&by_agent)],
    };
    assert_eq!(
        order(sources()),
        [
            format!("{} certificate by file", fingerprint(&by_file)),
            format!("{} certificate by agent", fingerprint(&by_agent)),
            format!("{} key by file", fingerprint(&by_file)),
        ]
    );
    let left_out = sources().gather().left_out;
    assert!(matches!(&left_out[..], [one] if one.contains("2-cert.pub")), "{left_out:?}");
}

#[test]
fn a_certificate_beside_a_key_is_found_unless_others_are_configured_and_a_hosts_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let [key, authority] = [new_key(), new_key()];
    let files = [save(directory.path(), "id", &key)];
    let (beside, elsewhere) = (directory.path().join("id-cert.pub"), [directory.path().join("none")]);
    std::fs::write(&beside, certify(&key, &authority, CertType::User).to_openssh().unwrap()).unwrap();
    let sources = |certificate_files| Sources {
        identity_files: &files,
        certificate_files,
        identities_only: false,
        agent: Vec::new(),
    };
    let [by_itself, certified] =
        [format!("{} key by file", fingerprint(&key)), format!("{} certificate by file", fingerprint(&key))];
    let alone = [by_itself.clone()];
    assert_eq!(order(sources(&[])), [by_itself, certified]);
    assert_eq!(order(sources(&elsewhere)), alone);
    std::fs::write(&beside, certify(&key, &authority, CertType::Host).to_openssh().unwrap()).unwrap();
    assert_eq!(order(sources(&[])), alone);
}

#[test]
fn nothing_is_offered_twice() {
    let directory = tempfile::tempdir().unwrap();
    let [key, authority] = [new_key(), new_key()];
    let files = [save(directory.path(), "id", &key)];
    let certificate = certify(&key, &authority, CertType::User);
    let beside = directory.path().join("id-cert.pub");
    std::fs::write(&beside, certificate.to_openssh().unwrap()).unwrap();
    let certified = AgentIdentity::Certificate { certificate, comment: String::new() };
    for certificate_files in [vec![], vec![beside]] {
        let sources = Sources {
            identity_files: &files,
            certificate_files: &certificate_files,
            identities_only: true,
            agent: vec![held(&key), certified.clone()],
        };
        let mut offered = order(sources);
        offered.sort();
        assert_eq!(
            offered,
            [
                format!("{} certificate by agent", fingerprint(&key)),
                format!("{} key by agent", fingerprint(&key)),
            ]
        );
    }
}
