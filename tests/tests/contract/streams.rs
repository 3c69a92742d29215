//! What clients give the server as stdin and stdout: pipes, as all other tests, sockets, as Node and sshd, or files.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use linux_sysadmin_tests::{Client, Home, modules};
use rustix::fs::{OFlags, fcntl_getfl};
use serde_json::json;

const VERSION: &str = "2025-06-18";

fn pair() -> (OwnedFd, UnixStream) {
    let (theirs, ours) = UnixStream::pair().expect("sockets");
    ours.set_nonblocking(true).expect("set");
    (theirs.into(), ours)
}

fn ours(stream: UnixStream) -> tokio::net::UnixStream {
    tokio::net::UnixStream::from_std(stream).expect("a stream")
}

/// More is asked and answered than the sockets hold, so that both ends have to wait for each other.
#[tokio::test]
async fn sockets_serve_as_pipes_do_and_stay_as_they_are() {
    let home = Home::new();
    let ((stdin, input), (stdout, output)) = (pair(), pair());
    let kept = [&stdin, &stdout].map(|end| end.try_clone().expect("another descriptor"));
    let command = home.command(&modules(), &["serve"]);
    let mut client = Client::start_on_sockets(command, [stdin, stdout], (ours(input), ours(output)));
    client.initialize(VERSION).await;
    let mut asked = Vec::new();
    for _ in 0..100 {
        asked.push(client.ask("tools/list", json!({})).await);
    }
    for id in asked {
        let tools = client.answer(id).await["result"]["tools"].clone();
        assert!(tools.as_array().is_some_and(|tools| !tools.is_empty()), "{tools}");
    }
    let long = "x".repeat(1 << 20);
    let answer =
        client.request("tools/call", json!({"name": "no_such_tool", "arguments": {"text": long}})).await;
    assert_eq!(answer["error"]["data"]["error_code"], "UNKNOWN_TOOL", "{answer}");
    // Whoever started the server and has the same sockets finds them as before.
    for end in kept {
        assert!(!fcntl_getfl(&end).expect("flags").contains(OFlags::NONBLOCK));
    }
    let (status, stderr) = client.close().await;
    assert!(status.success(), "{status} {stderr}");
}

/// sshd gives one socket as both.
#[tokio::test]
async fn one_socket_serves_both_ways() {
    let home = Home::new();
    let (end, other) = pair();
    let both = [end.try_clone().expect("another descriptor"), end];
    let (input, output) = (other.try_clone().expect("another descriptor"), other);
    let command = home.command(&modules(), &["serve"]);
    let mut client = Client::start_on_sockets(command, both, (ours(input), ours(output)));
    let answer = client.initialize(VERSION).await;
    assert_eq!(answer["result"]["protocolVersion"], VERSION, "{answer}");
    let (status, stderr) = client.close().await;
    assert!(status.success(), "{status} {stderr}");
}

#[tokio::test]
async fn a_file_serves_as_stdin() {
    let home = Home::new();
    let requests = home.path().join("requests");
    std::fs::write(&requests, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n").expect("written");
    let mut command = home.command(&modules(), &["serve"]);
    let file = std::fs::File::open(&requests).expect("a file");
    let output = command.stdin(file).stderr(Stdio::inherit()).output().expect("the server ran");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one answer");
    assert_eq!((answer["id"].as_i64(), answer["result"].is_object()), (Some(7), true), "{answer}");
}
