use std::path::PathBuf;

use futures_util::stream::unfold;
use russh::keys::agent::client::AgentClient;
use russh::keys::key::safe_rng;
use russh::keys::ssh_key::certificate::{Builder, CertType};
use russh::keys::{Certificate, PublicKey};
use tokio::net::UnixListener;

use super::*;
use crate::test_server::{QUIET, Rules, TestServer, fingerprint, new_key, save, save_public};
use crate::{SshConnection, config::HostConfig};

fn taking(keys: &[&PrivateKey]) -> Rules {
    Rules { keys: keys.iter().map(|key| key.public_key().clone()).collect(), ..Rules::default() }
}

/// Starts an agent in this process.
async fn agent(directory: &Path, keys: &[&PrivateKey]) -> PathBuf {
    let socket = directory.join("agent");
    let listener = UnixListener::bind(&socket).unwrap();
    let accepted = Box::pin(unfold(listener, async |listener| {
        let stream = listener.accept().await.map(|(stream, _)| stream);
        Some((stream, listener))
    }));
    tokio::spawn(russh::keys::agent::server::serve(accepted, ()));
    let mut client = AgentClient::connect_uds(&socket).await.unwrap();
    for key in keys {
        client.add_identity(key, &[]).await.unwrap();
    }
    socket
}

async fn refused(host: &HostConfig) -> Problem {
    match SshConnection::open(host, &QUIET).await {
        Ok(_) => panic!("it was let in"),
        Err(problem) => problem,
    }
}

#[tokio::test]
async fn the_agents_key_is_tried_before_a_file_and_the_right_one_lets_in() {
    let directory = tempfile::tempdir().unwrap();
    let [in_agent, in_file] = [new_key(), new_key()];
    let peer = TestServer::start(taking(&[&in_file])).await;
    let mut host = peer.host(directory.path());
    host.agent = Some(agent(directory.path(), &[&in_agent]).await);
    host.identity_files = vec![save(directory.path(), "id", &in_file)];
    SshConnection::open(&host, &QUIET).await.unwrap();
    assert_eq!(peer.seen()[..2], [fingerprint(&in_agent), fingerprint(&in_file)]);
}

#[tokio::test]
async fn an_encrypted_file_is_used_through_the_agent() {
    let directory = tempfile::tempdir().unwrap();
    let key = new_key();
    let peer = TestServer::start(taking(&[&key])).await;
    let mut host = peer.host(directory.path());
    host.identities_only = true;
    host.identity_files =
        vec![save(directory.path(), "id", &key.encrypt(&mut safe_rng(), "a passphrase").unwrap())];
    let problem = refused(&host).await;
    assert_eq!((&*problem.code, problem.category), ("AUTHENTICATION_FAILED", Category::Privilege));
    let path = host.identity_files[0].display().to_string();
    assert!(problem.message.contains(&format!("{path} is encrypted")), "{problem}");
    assert_eq!(problem.remediation[0], format!("Add it to the agent: ssh-add {path}"));

    host.agent = Some(agent(directory.path(), &[&key]).await);
    SshConnection::open(&host, &QUIET).await.unwrap();
}

#[tokio::test]
async fn a_socket_without_an_agent_is_no_error() {
    let directory = tempfile::tempdir().unwrap();
    let key = new_key();
    let peer = TestServer::start(taking(&[&key])).await;
    let mut host = peer.host(directory.path());
    host.agent = Some(directory.path().join("nobody"));
    host.identity_files = vec![save(directory.path(), "id", &key)];
    SshConnection::open(&host, &QUIET).await.unwrap();
}

#[tokio::test]
async fn an_agent_that_breaks_off_is_said_and_the_files_are_tried() {
    let directory = tempfile::tempdir().unwrap();
    let [key, stranger] = [new_key(), new_key()];
    let socket = directory.path().join("agent");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    let peer = TestServer::start(taking(&[&key])).await;
    let mut host = peer.host(directory.path());
    host.agent = Some(socket);
    host.identity_files = vec![save(directory.path(), "id", &key)];
    SshConnection::open(&host, &QUIET).await.unwrap();
    host.identity_files = vec![save(directory.path(), "other", &stranger)];
    let problem = refused(&host).await;
    assert!(problem.message.contains("the agent could not be asked"), "{problem}");
}

#[tokio::test]
async fn a_refusal_names_everything_but_the_keys_themselves() {
    let directory = tempfile::tempdir().unwrap();
    let [in_agent, in_file, right] = [new_key(), new_key(), new_key()];
    let peer = TestServer::start(taking(&[&right])).await;
    let mut host = peer.host(directory.path());
    host.agent = Some(agent(directory.path(), &[&in_agent]).await);
    host.identity_files = vec![save(directory.path(), "id", &in_file)];
    let problem = refused(&host).await;
    let path = host.identity_files[0].display();
    for part in [
        "alice@127.0.0.1",
        &format!("{} (ssh-ed25519, from the agent", fingerprint(&in_agent)),
        &format!("{} (ssh-ed25519, from {path})", fingerprint(&in_file)),
        "still takes publickey",
    ] {
        assert!(problem.message.contains(part), "{part}: {problem}");
    }
    let text = std::fs::read_to_string(&host.identity_files[0]).unwrap();
    let inside = text.lines().nth(1).unwrap();
    assert!(!problem.message.contains(inside));
    assert!(problem.remediation.iter().any(|step| step.contains(&format!("Host {}", host.alias))));
    assert!(!peer.seen().contains(&"password".to_owned()));
}

#[tokio::test]
async fn without_a_key_nothing_is_offered_and_the_server_is_asked_what_it_takes() {
    let directory = tempfile::tempdir().unwrap();
    let peer = TestServer::start(taking(&[])).await;
    let host = peer.host(directory.path());
    let problem = refused(&host).await;
    assert_eq!(problem.code, "AUTHENTICATION_FAILED");
    assert!(
        problem.message.contains("there was no key to offer; the server still takes publickey"),
        "{problem}"
    );
    assert_eq!(peer.seen(), ["none"]);
}

#[tokio::test]
async fn no_more_keys_are_tried_than_a_server_usually_looks_at() {
    let directory = tempfile::tempdir().unwrap();
    let keys: Vec<PrivateKey> = (0..8).map(|_| new_key()).collect();
    let peer = TestServer::start(taking(&[&keys[7]])).await;
    let mut host = peer.host(directory.path());
    let files = keys.iter().enumerate();
    host.identity_files = files.map(|(at, key)| save(directory.path(), &format!("id{at}"), key)).collect();
    let problem = refused(&host).await;
    assert_eq!(problem.code, "AUTHENTICATION_FAILED");
    assert_eq!(peer.seen(), keys[..6].iter().map(fingerprint).collect::<Vec<_>>());
    assert!(problem.message.contains("2 more were not tried"), "{problem}");
    assert!(problem.remediation.iter().any(|step| step.contains("IdentitiesOnly")));
}

#[tokio::test]
async fn where_two_keys_are_needed_the_next_one_follows_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let [wrong, one, two] = [new_key(), new_key(), new_key()];
    let rules = Rules { needs: 2, ..taking(&[&one, &two]) };
    let peer = TestServer::start(rules.clone()).await;
    let mut host = peer.host(directory.path());
    host.identity_files = [("one", &one), ("wrong", &wrong), ("two", &two)]
        .map(|(name, key)| save(directory.path(), name, key))
        .into();
    SshConnection::open(&host, &QUIET).await.unwrap();

    host.identity_files.pop();
    let problem = refused(&host).await;
    assert_eq!(problem.code, "AUTHENTICATION_FAILED");
    assert!(problem.message.contains("a key was right, but the server wants more"), "{problem}");
}

fn certify(public: &PublicKey, authority: &PrivateKey) -> Certificate {
    let mut rng = safe_rng();
    let mut builder = Builder::new_with_random_nonce(&mut rng, public, 0, u64::MAX - 1).unwrap();
    builder.cert_type(CertType::User).unwrap();
    builder.valid_principal("alice").unwrap();
    builder.key_id("for alice").unwrap();
    builder.sign(authority).unwrap()
}

#[tokio::test]
async fn a_certificate_lets_in_with_its_key_in_a_file_or_in_the_agent() {
    let directory = tempfile::tempdir().unwrap();
    let [key, authority] = [new_key(), new_key()];
    let authorities = vec![authority.public_key().clone()];
    let peer = TestServer::start(Rules { authorities, ..Rules::default() }).await;
    let mut host = peer.host(directory.path());
    let certificate = directory.path().join("alice-cert.pub");
    std::fs::write(&certificate, certify(key.public_key(), &authority).to_openssh().unwrap()).unwrap();
    host.certificate_files = vec![certificate];

    host.identity_files = vec![save(directory.path(), "id", &key)];
    SshConnection::open(&host, &QUIET).await.unwrap();

    save_public(directory.path(), "other.pub", key.public_key());
    host.identity_files = vec![directory.path().join("other")];
    host.agent = Some(agent(directory.path(), &[&key]).await);
    SshConnection::open(&host, &QUIET).await.unwrap();
    assert_eq!(peer.seen().iter().filter(|what| *what == "certificate for alice").count(), 2);
}

#[test]
fn an_rsa_key_never_signs_with_sha1() {
    let key = PrivateKey::from_openssh(include_str!("files/fixtures/rsa")).unwrap();
    for hash in [None, Some(HashAlg::Sha256), Some(HashAlg::Sha512)] {
        let signature = sign(&key, hash, b"data").unwrap();
        let hash = hash.unwrap_or(HashAlg::Sha256);
        assert_eq!(signature.algorithm(), Algorithm::Rsa { hash: Some(hash) });
    }
}
