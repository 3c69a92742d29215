use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;

use super::*;

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const NEWEST: &str = "2026-07-28";

/// A client over pipes in memory.
struct Client {
    dispatcher: Arc<Dispatcher>,
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    server: JoinHandle<anyhow::Result<()>>,
}

impl Client {
    /// A client of a server whose output holds this many unread bytes.
    async fn new(unread: usize) -> Self {
        let dispatcher = Arc::new(Dispatcher::without_modules());
        let (input, their_input) = tokio::io::duplex(1 << 20);
        let (their_output, output) = tokio::io::duplex(unread);
        let never = std::future::pending();
        let server = tokio::spawn(serve_over(
            (dispatcher.clone(), ListReader::default()),
            their_input,
            their_output,
            never,
        ));
        Self { dispatcher, input, output: BufReader::new(output).lines(), server }
    }

    async fn open(version: &str) -> Self {
        let mut client = Self::new(1 << 20).await;
        client.initialize(version).await;
        client.send(json!({"method": "notifications/initialized"})).await;
        client
    }

    async fn initialize(&mut self, version: &str) -> Value {
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        self.send(json!({"id": 0, "method": "initialize", "params": params})).await;
        self.next().await
    }

    async fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Sends a request of the newest protocol version.
    async fn ask(&mut self, id: i64, method: &str, mut params: Value) {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": NEWEST,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        self.send(json!({"id": id, "method": method, "params": params})).await;
    }

    /// Subscribes, and gives the acknowledgment.
    async fn listen(&mut self, id: i64, notifications: Value) -> Value {
        self.ask(id, "subscriptions/listen", json!({"notifications": notifications})).await;
        let acknowledged = self.next().await;
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(subscription(&acknowledged), id);
        acknowledged
    }

    async fn next(&mut self) -> Value {
        serde_json::from_str(&self.output.next_line().await.unwrap().expect("a message")).unwrap()
    }

    /// Closes the input, and gives the messages that still came.
    async fn close(mut self) -> Vec<Value> {
        drop(self.input);
        let mut messages = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            messages.push(serde_json::from_str(&line).unwrap());
        }
        self.server.await.unwrap().unwrap();
        messages
    }
}

fn subscription(message: &Value) -> &Value {
    &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
}

fn is_change(message: &Value) -> bool {
    message["method"] == "notifications/tools/list_changed"
}

#[tokio::test]
async fn that_the_list_may_change_is_declared_in_every_generation() {
    for version in LEGACY {
        let mut client = Client::new(1 << 20).await;
        let opened = client.initialize(version).await;
        assert_eq!(opened["result"]["capabilities"]["tools"]["listChanged"], true, "{version}: {opened}");
    }
    let mut client = Client::new(1 << 20).await;
    client.ask(1, "server/discover", json!({})).await;
    let opened = client.next().await;
    assert_eq!(opened["result"]["capabilities"]["tools"]["listChanged"], true, "{opened}");
}

#[tokio::test]
async fn a_client_of_a_handshake_hears_of_every_change() {
    for version in LEGACY {
        let mut client = Client::open(version).await;
        for _ in 0..100 {
            client.dispatcher.announce_tools_changed();
            let told = client.next().await;
            assert!(is_change(&told), "{version}: {told}");
            assert!(subscription(&told).is_null(), "{told}");
        }
        assert!(client.close().await.is_empty());
    }
}

#[tokio::test]
async fn saying_twice_that_it_is_initialized_does_not_make_a_client_hear_twice() {
    let mut client = Client::open("2025-06-18").await;
    client.send(json!({"method": "notifications/initialized"})).await;
    client.dispatcher.announce_tools_changed();
    assert!(is_change(&client.next().await));
    client.send(json!({"id": 1, "method": "ping"})).await;
    assert_eq!(client.next().await["id"], 1);
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn a_change_before_a_client_is_initialized_is_told_when_it_is() {
    let mut client = Client::new(1 << 20).await;
    client.initialize("2025-06-18").await;
    client.dispatcher.announce_tools_changed();
    client.send(json!({"id": 1, "method": "ping"})).await;
    assert_eq!(client.next().await["id"], 1);
    client.send(json!({"method": "notifications/initialized"})).await;
    assert!(is_change(&client.next().await));
}

#[tokio::test]
async fn a_change_before_the_list_was_given_is_not_told() {
    let mut client = Client::new(1 << 20).await;
    client.initialize("2025-06-18").await;
    client.dispatcher.announce_tools_changed();
    client.send(json!({"id": 1, "method": "tools/list"})).await;
    assert_eq!(client.next().await["id"], 1);
    client.send(json!({"method": "notifications/initialized"})).await;
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn changes_that_nobody_reads_of_are_told_together() {
    let mut client = Client::new(64).await;
    client.initialize("2025-06-18").await;
    client.send(json!({"method": "notifications/initialized"})).await;
    client.dispatcher.announce_tools_changed();
    // The output holds less than one notification, so the server is still writing the first.
    assert!(is_change(&client.next().await));
    for _ in 0..1000 {
        client.dispatcher.announce_tools_changed();
    }
    assert!(is_change(&client.next().await));
    let more = client.close().await;
    assert!(more.len() < 4 && more.iter().all(is_change), "{more:?}");
}

#[tokio::test]
async fn a_subscriber_hears_of_every_change_under_its_own_subscription() {
    let mut client = Client::new(1 << 20).await;
    let acknowledged = client.listen(7, json!({"toolsListChanged": true, "promptsListChanged": true})).await;
    assert_eq!(acknowledged["params"]["notifications"], json!({"toolsListChanged": true}));
    for _ in 0..100 {
        client.dispatcher.announce_tools_changed();
        let told = client.next().await;
        assert!(is_change(&told), "{told}");
        assert_eq!(subscription(&told), 7);
    }
    // The end of input ends the subscription, and the server says so.
    let rest = client.close().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0]["id"], 7);
    assert_eq!(rest[0]["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
}

#[tokio::test]
async fn a_client_of_the_newest_generation_hears_nothing_that_it_did_not_ask_for() {
    let mut client = Client::new(1 << 20).await;
    let acknowledged = client.listen(1, json!({"resourcesListChanged": true})).await;
    assert_eq!(acknowledged["params"]["notifications"], json!({}));
    // The notification of clients with a handshake does not subscribe either.
    client.send(json!({"method": "notifications/initialized"})).await;
    client.dispatcher.announce_tools_changed();
    client.ask(2, "tools/list", json!({})).await;
    assert_eq!(client.next().await["id"], 2);
    let rest = client.close().await;
    assert!(!rest.iter().any(is_change), "{rest:?}");
}

#[tokio::test]
async fn a_cancelled_subscription_hears_nothing_more_and_another_does() {
    let mut client = Client::new(1 << 20).await;
    client.listen(1, json!({"toolsListChanged": true})).await;
    client.listen(2, json!({"toolsListChanged": true})).await;
    client.send(json!({"method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    // Messages are handled in order, so the cancellation was handled before this answer.
    client.ask(3, "tools/list", json!({})).await;
    assert_eq!(client.next().await["id"], 3);
    client.dispatcher.announce_tools_changed();
    assert_eq!(subscription(&client.next().await), 2);
    let rest = client.close().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0]["id"], 2);
}

#[tokio::test]
async fn subscriptions_take_no_slots() {
    let mut client = Client::new(1 << 20).await;
    for id in 0..50 {
        client.listen(id, json!({"toolsListChanged": true})).await;
    }
    client.dispatcher.announce_tools_changed();
    for _ in 0..50 {
        assert!(is_change(&client.next().await));
    }
    assert_eq!(client.close().await.len(), 50);
}

#[tokio::test]
async fn a_server_that_is_asked_to_end_ends_its_subscriptions() {
    let dispatcher = Arc::new(Dispatcher::without_modules());
    let (input, their_input) = tokio::io::duplex(1 << 20);
    let (their_output, output) = tokio::io::duplex(1 << 20);
    let asked = CancellationToken::new();
    let asked_to_end = asked.clone().cancelled_owned();
    let server = tokio::spawn(serve_over(
        (dispatcher.clone(), ListReader::default()),
        their_input,
        their_output,
        asked_to_end,
    ));
    let mut client = Client { dispatcher, input, output: BufReader::new(output).lines(), server };
    client.listen(1, json!({"toolsListChanged": true})).await;
    asked.cancel();
    assert_eq!(client.next().await["id"], 1);
    client.server.await.unwrap().unwrap();
}

#[tokio::test]
async fn workflows_are_prompts_in_every_generation() {
    for version in LEGACY.into_iter().chain([NEWEST]) {
        let mut client = Client::new(1 << 20).await;
        if version != NEWEST {
            let opened = client.initialize(version).await;
            assert!(opened["result"]["capabilities"]["prompts"].is_object(), "{version}: {opened}");
            client.send(json!({"method": "notifications/initialized"})).await;
        }
        let about = json!({"name": "troubleshoot", "arguments": {"about": "nginx is down"}});
        for (id, method, params) in [
            (1, "prompts/list", json!({})),
            (2, "prompts/get", about),
            (3, "prompts/get", json!({"name": "nonsense"})),
            (4, "prompts/get", json!({"name": 7})),
        ] {
            match version {
                NEWEST => client.ask(id, method, params).await,
                _ => client.send(json!({"id": id, "method": method, "params": params})).await,
            }
            let answer = client.next().await;
            assert_eq!(answer["id"], id, "{version}: {answer}");
            match id {
                1 => {
                    let prompts = answer["result"]["prompts"].as_array().expect("prompts");
                    let named = |prompt: &Value| prompt["name"] == "troubleshoot";
                    assert!(prompts.iter().any(named), "{version}: {answer}");
                }
                2 => {
                    let message = &answer["result"]["messages"][0];
                    assert_eq!(message["role"], "user", "{version}: {answer}");
                    let text = message["content"]["text"].as_str().expect("a text");
                    assert!(text.contains("nginx is down"), "{version}: {answer}");
                }
                _ => assert_eq!(answer["error"]["code"], -32602, "{version}: {answer}"),
            }
        }
        client.close().await;
    }
}
