use tokio::io::AsyncWriteExt;

use super::*;
use crate::test_server::{Rules, TestServer};

async fn named(alias: &str, proxy: Proxy) -> HostConfig {
    let directory = tempfile::tempdir().unwrap();
    let peer = TestServer::start(Rules::default()).await;
    let mut host = peer.host(directory.path());
    (host.alias, host.hostname, host.proxy) = (alias.to_owned(), alias.to_owned(), proxy);
    host.port = 22;
    host
}

fn by(hosts: &[&str]) -> Proxy {
    let jump = |host: &&str| Jump { user: None, host: (*host).to_owned(), port: None };
    Proxy::Jump(hosts.iter().map(jump).collect())
}

#[tokio::test]
async fn only_the_first_jump_is_reached_by_a_proxy_of_its_own() {
    let host = named("target", by(&["a", "b"])).await;
    let all = [
        named("a", by(&["gate"])).await,
        named("b", by(&["nowhere"])).await,
        named("gate", Proxy::Command(vec!["nc".into()])).await,
    ];
    let found = jumps(&host, async |alias: &str, _: &SshOptions| {
        Ok(all.iter().find(|host| host.alias == alias).expect("asked for").clone())
    });
    let names: Vec<String> = found.await.unwrap().into_iter().map(|hop| hop.alias).collect();
    assert_eq!(names, ["gate", "a", "b"]);
}

#[tokio::test]
async fn a_jump_brings_its_user_and_port() {
    let host = named("target", Proxy::None).await;
    let jump = Jump { user: Some("bob".into()), host: "a".into(), port: Some(2222) };
    let host = HostConfig { proxy: Proxy::Jump(vec![jump]), ..host };
    let hop = named("a", Proxy::None).await;
    let found = jumps(&host, async |_: &str, given: &SshOptions| {
        assert_eq!((given.user.as_deref(), given.port), (Some("bob"), Some(2222)));
        Ok(hop.clone())
    });
    assert_eq!(found.await.unwrap().len(), 1);
}

#[tokio::test]
async fn jumps_that_go_round_in_circles_or_on_for_ever_are_refused() {
    let host = named("target", by(&["a"])).await;
    let again = named("a", by(&["target"])).await;
    let problem = jumps(&host, async |alias: &str, _: &SshOptions| {
        Ok(if alias == "a" { again.clone() } else { host.clone() })
    });
    let problem = problem.await.unwrap_err();
    assert_eq!(problem.code, "SSH_CONFIG_INVALID");
    assert!(problem.message.contains("circles"), "{problem}");

    // Each is reached through the next.
    let template = again;
    let problem = jumps(&host, async |alias: &str, _: &SshOptions| {
        let mut hop = template.clone();
        (hop.hostname, hop.proxy) = (alias.to_owned(), by(&[&format!("{alias}a")]));
        Ok(hop)
    });
    assert!(problem.await.unwrap_err().message.contains("more than 8"));
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_said_so() {
    let host = named("no-such-host.invalid", Proxy::None).await;
    let problem = connect(&host, Instant::now() + Duration::from_secs(20)).await.unwrap_err();
    assert_eq!(problem.code, "CONNECTION_FAILED");
    assert!(problem.message.contains("resolve") || problem.message.contains("name service"), "{problem}");
}

#[tokio::test]
async fn an_address_of_the_other_family_is_not_used() {
    let mut host = named("127.0.0.1", Proxy::None).await;
    host.address_family = Some(Family::Inet6);
    let problem = connect(&host, Instant::now() + Duration::from_secs(20)).await.unwrap_err();
    assert!(problem.message.contains("AddressFamily"), "{problem}");
}

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[tokio::test]
async fn a_proxy_command_is_a_stream() {
    let (mut stream, _command) = ProxyProcess::start(&argv(&["cat"])).unwrap();
    stream.write_all(b"SSH-2.0-x\r\n").await.unwrap();
    let mut read = [0; 11];
    stream.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"SSH-2.0-x\r\n");
}

#[tokio::test]
async fn what_a_proxy_command_says_last_is_kept_and_no_more() {
    let (_stream, mut command) =
        ProxyProcess::start(&argv(&["/bin/sh", "-c", "yes noise | head -c 100000 >&2; echo the reason >&2"]))
            .unwrap();
    let words = command.last_words().await.unwrap();
    assert!(words.starts_with("/bin/sh said: ") && words.ends_with("the reason"), "{words}");
    assert!(words.len() < SAID + 64);
}

#[tokio::test]
async fn a_proxy_command_that_is_not_there_is_named() {
    let problem = ProxyProcess::start(&argv(&["no-such-program", "%h"])).err().unwrap();
    assert_eq!(problem.code, "CONNECTION_FAILED");
    assert!(problem.message.contains("no-such-program"), "{problem}");
}

#[tokio::test]
async fn a_proxy_command_ends_with_everything_it_started() {
    // The grandchild holds the other end of the output, and so the end of the output means that nothing is left.
    let (mut stream, command) =
        ProxyProcess::start(&argv(&["/bin/sh", "-c", "sleep 1000 & echo started; wait"])).unwrap();
    let mut line = [0; 8];
    stream.read_exact(&mut line).await.unwrap();
    drop(command);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"");
}
