use std::os::unix::fs::PermissionsExt;

use russh::keys::key::safe_rng;

use super::*;
use crate::test_server::{new_key, save, save_public};

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_private_key_is_used_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let key = new_key();
    let file = IdentityFile::read(&save(directory.path(), "id", &key)).unwrap();
    assert!(matches!(&file.private, PrivateKeyState::Usable(one) if one.key_data() == key.key_data()));
    assert_eq!(file.public.unwrap().key_data(), key.public_key().key_data());
}

#[test]
fn every_kind_of_file_that_openssl_and_openssh_make_is_read() {
    // OpenSSH_9.2p1 (ssh-keygen -m PEM, -m PKCS8) and OpenSSL 3.0 made the files.
    let directory = tempfile::tempdir().unwrap();
    for (name, text, algorithm) in [
        ("ec.pem", include_str!("fixtures/ec.pem"), "ecdsa-sha2-nistp256"),
        ("ec.pkcs8", include_str!("fixtures/ec.pkcs8"), "ecdsa-sha2-nistp256"),
        ("rsa.pem", include_str!("fixtures/rsa.pem"), "ssh-rsa"),
        ("rsa.pkcs8", include_str!("fixtures/rsa.pkcs8"), "ssh-rsa"),
        ("ed25519.pkcs8", include_str!("fixtures/ed25519.pkcs8"), "ssh-ed25519"),
    ] {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        mode(&path, 0o600);
        let file = IdentityFile::read(&path).unwrap();
        assert!(matches!(file.private, PrivateKeyState::Usable(_)), "{name}");
        assert_eq!(file.public.unwrap().algorithm().as_str(), algorithm, "{name}");
    }
}

#[test]
fn a_file_that_others_may_read_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let path = save(directory.path(), "id", &new_key());
    for (permissions, is_used) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
        mode(&path, permissions);
        let file = IdentityFile::read(&path);
        let private = file.map(|file| file.private);
        match (&private, is_used) {
            (Some(PrivateKeyState::Usable(_)), true) => {}
            (Some(PrivateKeyState::Refused(reason)), false) => {
                assert!(reason.contains("chmod 600"), "{reason}")
            }
            _ => panic!("{permissions:o}"),
        }
    }
}

#[test]
fn an_encrypted_key_is_known_by_its_public_half_only() {
    let directory = tempfile::tempdir().unwrap();
    let key = new_key();
    let encrypted = key.encrypt(&mut safe_rng(), "a passphrase").unwrap();
    let file = IdentityFile::read(&save(directory.path(), "id", &encrypted)).unwrap();
    assert!(matches!(file.private, PrivateKeyState::Encrypted));
    assert_eq!(file.public.unwrap().key_data(), key.public_key().key_data());

    // In older formats the public half isn't in the file.
    for (name, text) in [
        ("rsa.encrypted.pem", include_str!("fixtures/rsa.encrypted.pem")),
        ("ec.encrypted.pkcs8", include_str!("fixtures/ec.encrypted.pkcs8")),
    ] {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        mode(&path, 0o600);
        assert!(matches!(IdentityFile::read(&path).unwrap().private, PrivateKeyState::Encrypted), "{name}");
        save_public(directory.path(), &format!("{name}.pub"), key.public_key());
        let public = IdentityFile::read(&path).unwrap().public.unwrap();
        assert_eq!(public.key_data(), key.public_key().key_data(), "{name}");
    }
}

#[test]
fn a_public_key_alone_says_which_of_the_agents_is_meant() {
    let directory = tempfile::tempdir().unwrap();
    let key = new_key();
    let beside = save_public(directory.path(), "id.pub", key.public_key());
    for path in [directory.path().join("id"), beside] {
        let file = IdentityFile::read(&path).unwrap();
        assert!(matches!(file.private, PrivateKeyState::Absent));
        assert_eq!(file.public.unwrap().key_data(), key.public_key().key_data());
    }
    assert!(IdentityFile::read(&directory.path().join("none")).is_none());
}

#[test]
fn what_is_no_key_is_refused_and_nothing_of_it_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let broken = "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0c2VjcmV0\n-----END OPENSSH PRIVATE KEY-----\n";
    for text in [broken, "c2VjcmV0c2VjcmV0", ""] {
        let path = directory.path().join("id");
        std::fs::write(&path, text).unwrap();
        mode(&path, 0o600);
        match IdentityFile::read(&path).unwrap().private {
            PrivateKeyState::Refused(reason) => assert!(!reason.contains("c2Vj"), "{reason}"),
            _ => panic!("{text}"),
        }
    }
}
