use std::path::Path;
use std::time::Duration;

use russh::keys::{Algorithm, Certificate, PrivateKey};
use russh::{ChannelMsg, MethodKind};

use super::config::{Jump, Proxy, SshOptions, Strict};
use super::test_server::{QUIET, Rules, TestServer, fingerprint, new_key, save};
use super::*;

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Starts a server that accepts one key, and makes the configuration that has the key.
async fn open_to(directory: &Path) -> (TestServer, HostConfig) {
    let key = new_key();
    let peer = TestServer::start(Rules { keys: vec![key.public_key().clone()], ..Rules::default() }).await;
    let mut host = peer.host(directory);
    host.identity_files = vec![save(directory, &format!("id_{}", peer.port), &key)];
    (peer, host)
}

async fn refused(host: &HostConfig) -> Problem {
    match SshConnection::open(host, &QUIET).await {
        Ok(_) => panic!("it was let in"),
        Err(problem) => problem,
    }
}

#[tokio::test]
async fn a_connection_says_who_is_at_the_other_end() {
    let directory = temporary();
    let (peer, mut host) = open_to(directory.path()).await;
    host.warnings = vec!["Compression is not used".into()];
    let session = SshConnection::open(&host, &QUIET).await.unwrap();
    let told = session.peer();
    assert_eq!((&*told.user, &*told.hostname, told.port), ("alice", "127.0.0.1", peer.port));
    assert_eq!(told.host_key, fingerprint(&peer.host_key));
    assert_eq!(told.host_key_algorithm, "ssh-ed25519");
    assert!(told.server_version.starts_with("SSH-2.0-russh"), "{}", told.server_version);
    assert_eq!((&*told.cipher, &*told.kex), ("aes256-gcm@openssh.com", "mlkem768x25519-sha256"));
    assert_eq!(told.warnings, ["Compression is not used"]);
    assert!(told.jumps.is_empty() && !session.is_closed());
}

#[tokio::test]
async fn a_host_key_decides_before_anything_is_offered() {
    let directory = temporary();
    for (code, line) in
        [("HOST_KEY_UNKNOWN", None), ("HOST_KEY_CHANGED", Some("")), ("HOST_KEY_REVOKED", Some("@revoked "))]
    {
        let (peer, host) = open_to(directory.path()).await;
        let listed = match line {
            None => String::new(),
            Some(marker) => {
                let key = if marker.is_empty() { new_key() } else { peer.host_key.clone() };
                format!("{marker}[127.0.0.1]:{} {}\n", peer.port, key.public_key().to_openssh().unwrap())
            }
        };
        std::fs::write(&host.user_known_hosts[0], listed).unwrap();
        let problem = refused(&host).await;
        assert_eq!((&*problem.code, problem.category), (code, Category::Denied), "{problem}");
        assert_eq!(peer.seen(), [""; 0], "{code}");
    }
}

#[tokio::test]
async fn accept_new_writes_a_key_down_and_refuses_another_one_afterwards() {
    let directory = temporary();
    let (peer, mut host) = open_to(directory.path()).await;
    host.strict = Strict::AcceptNew;
    std::fs::remove_file(&host.user_known_hosts[0]).unwrap();
    SshConnection::open(&host, &QUIET).await.unwrap();
    let written = std::fs::read_to_string(&host.user_known_hosts[0]).unwrap();
    assert!(written.contains(&format!("[127.0.0.1]:{}", peer.port)), "{written}");
    host.strict = Strict::Ask;
    SshConnection::open(&host, &QUIET).await.unwrap();

    let other = new_key().public_key().to_openssh().unwrap();
    std::fs::write(&host.user_known_hosts[0], format!("[127.0.0.1]:{} {other}\n", peer.port)).unwrap();
    host.strict = Strict::AcceptNew;
    assert_eq!(refused(&host).await.code, "HOST_KEY_CHANGED");
}

#[tokio::test]
async fn a_new_key_that_can_be_written_nowhere_is_not_accepted() {
    let directory = temporary();
    let (_peer, mut host) = open_to(directory.path()).await;
    host.strict = Strict::AcceptNew;
    host.user_known_hosts = Vec::new();
    assert_eq!(refused(&host).await.code, "HOST_KEY_INVALID");
}

fn certify(key: &PrivateKey, authority: &PrivateKey, principal: &str) -> Certificate {
    use russh::keys::ssh_key::certificate::{Builder, CertType};
    let mut rng = russh::keys::key::safe_rng();
    let mut builder = Builder::new_with_random_nonce(&mut rng, key.public_key(), 0, u64::MAX - 1).unwrap();
    builder.cert_type(CertType::Host).unwrap();
    builder.valid_principal(principal).unwrap();
    builder.key_id("host").unwrap();
    builder.sign(authority).unwrap()
}

#[tokio::test]
async fn a_host_is_known_by_its_authority_and_only_for_its_own_name() {
    let directory = temporary();
    for (authority_is_known, principal, code) in [
        (true, "127.0.0.1", None),
        (true, "elsewhere", Some("HOST_KEY_INVALID")),
        (false, "127.0.0.1", Some("HOST_KEY_UNKNOWN")),
    ] {
        let (key, host_key, authority) = (new_key(), new_key(), new_key());
        let certificate = certify(&host_key, &authority, principal);
        let rules = Rules { keys: vec![key.public_key().clone()], ..Rules::default() };
        let peer = TestServer::start_with(rules, host_key, Some(certificate)).await;
        let mut host = peer.host(directory.path());
        host.identity_files = vec![save(directory.path(), "id", &key)];
        let known = if authority_is_known { authority } else { new_key() };
        let known = known.public_key().to_openssh().unwrap();
        std::fs::write(&host.user_known_hosts[0], format!("@cert-authority * {known}\n")).unwrap();
        match (SshConnection::open(&host, &QUIET).await, code) {
            (Ok(session), None) => {
                assert_eq!(session.peer().host_key_algorithm, "ssh-ed25519-cert-v01@openssh.com");
            }
            (Err(problem), Some(code)) => assert_eq!(problem.code, code, "{problem}"),
            (Ok(_), Some(code)) => panic!("{code} was expected"),
            (Err(problem), None) => panic!("{problem}"),
        }
    }
}

#[tokio::test]
async fn a_server_without_any_sound_algorithm_is_not_talked_to() {
    let directory = temporary();
    let (peer, mut host) = open_to(directory.path()).await;
    host.host_key_algorithms = Some(vec!["ecdsa-sha2-nistp256".into()]);
    let problem = refused(&host).await;
    assert_eq!(problem.code, "CONNECTION_FAILED");
    assert!(problem.message.contains("the server offers ssh-ed25519"), "{problem}");
    assert!(peer.seen().is_empty());
}

#[tokio::test]
async fn nothing_that_a_server_opens_is_accepted() {
    let directory = temporary();
    let (mut peer, host) = open_to(directory.path()).await;
    let session = SshConnection::open(&host, &QUIET).await.unwrap();
    let server = peer.connections.recv().await.unwrap();
    let opened = [
        ("x11", server.channel_open_x11("127.0.0.1", 6000).await),
        ("agent", server.channel_open_agent().await),
        ("forwarded-tcpip", server.channel_open_forwarded_tcpip("127.0.0.1", 22, "127.0.0.1", 1).await),
        ("forwarded-streamlocal", server.channel_open_forwarded_streamlocal("/run/x").await),
        ("session", server.channel_open_session().await),
        ("direct-tcpip", server.channel_open_direct_tcpip("127.0.0.1", 22, "127.0.0.1", 1).await),
        ("direct-streamlocal", server.channel_open_direct_streamlocal("/run/x").await),
    ];
    for (kind, opened) in opened {
        assert!(matches!(opened, Err(russh::Error::ChannelOpenFailure(_))), "{kind}: {opened:?}");
    }
    assert!(!session.is_closed());
}

#[tokio::test]
async fn the_end_of_a_connection_is_noticed_when_it_comes() {
    let directory = temporary();
    let (mut peer, host) = open_to(directory.path()).await;
    let session = SshConnection::open(&host, &QUIET).await.unwrap();
    let server = peer.connections.recv().await.unwrap();
    let waiting = session.closed();
    tokio::pin!(waiting);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    server.disconnect(russh::Disconnect::ByApplication, "going down".into(), String::new()).await.unwrap();
    waiting.await;
    assert!(session.is_closed());
    let problem = session.channel().await.unwrap_err();
    assert_eq!((&*problem.code, problem.category), ("CONNECTION_LOST", Category::Network));
    assert!(problem.message.contains("going down"), "{problem}");
}

#[tokio::test]
async fn closing_ends_it_at_both_ends() {
    let directory = temporary();
    let (mut peer, host) = open_to(directory.path()).await;
    let session = SshConnection::open(&host, &QUIET).await.unwrap();
    let server = peer.connections.recv().await.unwrap();
    session.close().await;
    session.closed().await;
    assert!(session.is_closed());
    assert!(server.channel_open_session().await.is_err());
}

#[tokio::test]
async fn a_session_that_is_dropped_is_over_whatever_still_uses_it() {
    let directory = temporary();
    let (_peer, host) = open_to(directory.path()).await;
    let session = SshConnection::open(&host, &QUIET).await.unwrap();
    let mut channel = session.channel().await.unwrap();
    drop(session);
    while let Some(message) = channel.wait().await {
        assert!(matches!(message, ChannelMsg::WindowAdjusted { .. }), "{message:?}");
    }
}

#[tokio::test]
async fn a_channel_that_nobody_waits_for_any_more_is_closed() {
    let directory = temporary();
    let (mut peer, host) = open_to(directory.path()).await;
    let session = SshConnection::open(&host, &QUIET).await.unwrap();
    {
        let opening = session.channel();
        tokio::pin!(opening);
        assert!(futures_util::poll!(&mut opening).is_pending());
    }
    peer.closed_channels.recv().await.unwrap();
    assert!(!session.is_closed());
}

#[tokio::test]
async fn a_channel_that_is_refused_is_no_lost_connection() {
    let directory = temporary();
    let key = new_key();
    let rules = Rules { keys: vec![key.public_key().clone()], no_sessions: true, ..Rules::default() };
    let peer = TestServer::start(rules).await;
    let mut host = peer.host(directory.path());
    host.identity_files = vec![save(directory.path(), "id", &key)];
    let session = SshConnection::open(&host, &QUIET).await.unwrap();
    assert_eq!(session.channel().await.unwrap_err().code, "CHANNEL_REFUSED");
    assert!(!session.is_closed());
}

#[tokio::test]
async fn each_jump_is_checked_and_authenticated_for_itself() {
    let directory = temporary();
    let (first, first_host) = open_to(directory.path()).await;
    let (second, second_host) = open_to(directory.path()).await;
    let (target, mut host) = open_to(directory.path()).await;
    let jump = |host: &str| Jump { user: None, host: host.to_owned(), port: None };
    host.proxy = Proxy::Jump(vec![jump("first"), jump("second")]);
    let resolve = |changed: bool| {
        let (mut one, two) = (first_host.clone(), second_host.clone());
        if changed {
            one.user_known_hosts = Vec::new();
        }
        async move |alias: &str, _: &SshOptions| match alias {
            "first" => Ok(one.clone()),
            "second" => Ok(two.clone()),
            other => panic!("{other} was asked for"),
        }
    };
    let session = SshConnection::open_by(&host, &QUIET, resolve(false)).await.unwrap();
    assert_eq!(
        session.peer().jumps,
        [format!("alice@127.0.0.1:{}", first.port), format!("alice@127.0.0.1:{}", second.port)]
    );
    assert_eq!(first.seen().last(), Some(&format!("to 127.0.0.1:{}", second.port)));
    assert_eq!(second.seen().last(), Some(&format!("to 127.0.0.1:{}", target.port)));
    assert_eq!(session.peer().host_key, fingerprint(&target.host_key));
    session.channel().await.unwrap();
    let before = second.seen().len();

    let problem = SshConnection::open_by(&host, &QUIET, resolve(true)).await.err().unwrap();
    assert_eq!(problem.code, "HOST_KEY_UNKNOWN");
    assert_eq!(second.seen().len(), before);
}

#[tokio::test]
async fn a_connection_goes_with_the_jump_host_that_carries_it() {
    let directory = temporary();
    let (mut jump, jump_host) = open_to(directory.path()).await;
    let (_target, mut host) = open_to(directory.path()).await;
    host.proxy = Proxy::Jump(vec![Jump { user: None, host: "jump".into(), port: None }]);
    let session =
        SshConnection::open_by(&host, &QUIET, async |_: &str, _: &SshOptions| Ok(jump_host.clone()))
            .await
            .unwrap();
    let server = jump.connections.recv().await.unwrap();
    server.disconnect(russh::Disconnect::ByApplication, String::new(), String::new()).await.unwrap();
    session.closed().await;
    assert_eq!(session.channel().await.unwrap_err().code, "CONNECTION_LOST");
}

#[tokio::test]
async fn the_hop_that_could_not_be_reached_is_named() {
    let directory = temporary();
    let (_peer, mut host) = open_to(directory.path()).await;
    let (_jump, jump_host) = open_to(directory.path()).await;
    host.proxy = Proxy::Jump(vec![Jump { user: None, host: "bastion".into(), port: None }]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();

    let mut unreachable = jump_host.clone();
    (unreachable.alias, unreachable.port) = ("bastion".into(), free);
    let problem =
        SshConnection::open_by(&host, &QUIET, async |_: &str, _: &SshOptions| Ok(unreachable.clone())).await;
    let problem = problem.err().unwrap();
    assert_eq!((&*problem.code, problem.category), ("CONNECTION_FAILED", Category::Network));
    assert_eq!(
        problem.message,
        format!(
            "no connection to the jump host bastion (127.0.0.1:{free}): 127.0.0.1:{free}: connection refused"
        )
    );
    assert_eq!(problem.remediation.len(), 1);

    (host.alias, host.port) = ("web1".into(), free);
    let problem =
        SshConnection::open_by(&host, &QUIET, async |_: &str, _: &SshOptions| Ok(jump_host.clone())).await;
    let message = problem.err().unwrap().message;
    assert!(
        message.starts_with(&format!("no connection to web1 (127.0.0.1:{free}): the jump host")),
        "{message}"
    );
}

#[tokio::test]
async fn one_that_accepts_and_says_nothing_is_given_up() {
    let directory = temporary();
    let (_peer, mut host) = open_to(directory.path()).await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    host.port = silent.local_addr().unwrap().port();
    host.connect_timeout = Some(Duration::from_millis(50));
    let problem = refused(&host).await;
    assert_eq!(problem.code, "CONNECTION_FAILED");
    assert!(problem.message.contains("no answer from an SSH server"), "{problem}");
}

#[tokio::test]
async fn what_speaks_no_ssh_is_said_so() {
    use tokio::io::AsyncWriteExt;
    let directory = temporary();
    let (_peer, mut host) = open_to(directory.path()).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    host.port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.write_all(&b"HTTP/1.1 400 Bad Request\r\n".repeat(64)).await;
        std::future::pending::<()>().await;
    });
    let problem = refused(&host).await;
    assert!(problem.message.contains("doesn't speak SSH 2"), "{problem}");
}

#[tokio::test]
async fn a_second_method_that_is_no_key_is_named() {
    let directory = temporary();
    let key = new_key();
    let rules = Rules {
        keys: vec![key.public_key().clone()],
        then: vec![MethodKind::KeyboardInteractive],
        ..Rules::default()
    };
    let peer = TestServer::start(rules).await;
    let mut host = peer.host(directory.path());
    host.identity_files = vec![save(directory.path(), "id", &key)];
    let problem = refused(&host).await;
    assert_eq!((&*problem.code, problem.category), ("AUTHENTICATION_FAILED", Category::Privilege));
    assert!(problem.message.contains("wants more than that"), "{problem}");
    assert!(problem.message.contains("still takes keyboard-interactive"), "{problem}");
}

#[test]
fn only_sound_algorithms_are_ever_offered() {
    let directory = temporary();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_peer, mut host) = runtime.block_on(open_to(directory.path()));
    let weak = ["sha1", "cbc", "md5", "ssh-rsa", "ssh-dss", "none", "arcfour", "3des"];
    let check = |host: &HostConfig| {
        let preferred = algorithms::preferred(host, &[Algorithm::Rsa { hash: None }], &[]).unwrap();
        let names = preferred.kex.iter().map(|name| name.as_ref().to_owned());
        let names = names.chain(preferred.key.iter().map(ToString::to_string));
        let names = names.chain(preferred.cipher.iter().map(|name| name.as_ref().to_owned()));
        let names: Vec<String> =
            names.chain(preferred.mac.iter().map(|name| name.as_ref().to_owned())).collect();
        for name in &names {
            assert!(!weak.iter().any(|weak| name.contains(weak)), "{name}");
        }
        names
    };
    let names = check(&host);
    assert!(names.contains(&"kex-strict-c-v00@openssh.com".to_owned()), "{names:?}");
    let all = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    host.kex = all(&["diffie-hellman-group1-sha1", "curve25519-sha256"]);
    host.ciphers = all(&["aes128-cbc", "aes128-ctr"]);
    host.macs = all(&["hmac-md5", "hmac-sha1", "hmac-sha2-256"]);
    host.host_key_algorithms = all(&["ssh-dss", "ssh-rsa", "rsa-sha2-512"]);
    let names = check(&host);
    assert!(names.contains(&"kex-strict-c-v00@openssh.com".to_owned()), "{names:?}");

    host.ciphers = all(&["aes128-cbc", "3des-cbc"]);
    let problem = algorithms::preferred(&host, &[], &[]).unwrap_err();
    assert_eq!(problem.code, "SSH_CONFIG_INVALID");
    assert!(problem.message.contains("Ciphers"), "{problem}");
}

#[test]
fn algorithms_of_keys_that_are_known_are_offered_first() {
    let directory = temporary();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_peer, mut host) = runtime.block_on(open_to(directory.path()));
    let names = |host: &HostConfig, known: &[Algorithm], certified: &[Algorithm]| {
        let preferred = algorithms::preferred(host, known, certified).unwrap();
        let certified = preferred.host_key_certificates.iter().map(Algorithm::to_certificate_type);
        certified.chain(preferred.key.iter().map(ToString::to_string)).collect::<Vec<_>>()
    };
    let rsa = Algorithm::Rsa { hash: None };
    let known = names(&host, std::slice::from_ref(&rsa), &[]);
    assert_eq!(known[..3], ["rsa-sha2-512", "rsa-sha2-256", "ssh-ed25519"]);
    assert_eq!(known.len(), 6);
    let certified = names(&host, &[Algorithm::Ed25519], std::slice::from_ref(&rsa));
    assert_eq!(
        certified[..3],
        ["rsa-sha2-512-cert-v01@openssh.com", "rsa-sha2-256-cert-v01@openssh.com", "ssh-ed25519"]
    );
    host.host_key_algorithms = Some(vec!["ecdsa-sha2-nistp256".into(), "rsa-sha2-256".into()]);
    assert_eq!(names(&host, &[rsa], &[Algorithm::Ed25519]), ["rsa-sha2-256", "ecdsa-sha2-nistp256"]);
}
