//! A client that speaks JSON-RPC line by line, so that a test can say anything, in any order.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::process::Child;

use crate::Home;

/// The time after which a test that hangs fails. Nothing that a test waits for takes this long.
const PATIENCE: Duration = Duration::from_secs(180);

/// A client with a server of its own.
pub struct Client {
    child: Child,
    input: Option<Box<dyn AsyncWrite + Send + Sync + Unpin>>,
    output: Lines<BufReader<Box<dyn AsyncRead + Send + Sync + Unpin>>>,
    next: i64,
    version: String,
    capabilities: Value,
    /// Messages that came while the client waited for another one.
    early: Vec<Value>,
}

impl Client {
    /// Starts the server and opens no session.
    pub fn start(home: &Home, modules: &Path) -> Self {
        Self::start_with(home, modules, &[])
    }

    /// Starts the server with further variables in its environment.
    pub fn start_with(home: &Home, modules: &Path, env: &[(&str, &str)]) -> Self {
        let mut command = home.command(modules, &["serve"]);
        command.envs(env.iter().copied());
        Self::start_command(command)
    }

    /// Starts a program that serves MCP on its stdin and stdout.
    pub fn start_command(command: std::process::Command) -> Self {
        let mut command = tokio::process::Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the server starts");
        let input = Box::new(child.stdin.take().expect("stdin"));
        let output = Box::new(child.stdout.take().expect("stdout"));
        Self::of(child, input, output)
    }

    /// Starts a program whose stdin and stdout are these ends of sockets, and speaks to it over the other ends.
    pub fn start_on_sockets(
        command: std::process::Command,
        [stdin, stdout]: [std::os::fd::OwnedFd; 2],
        (input, output): (UnixStream, UnixStream),
    ) -> Self {
        let mut command = tokio::process::Command::from(command);
        command.stdin(stdin).stdout(stdout).stderr(Stdio::piped()).kill_on_drop(true);
        let child = command.spawn().expect("the server starts");
        Self::of(child, Box::new(input), Box::new(output))
    }

    fn of(
        child: Child,
        input: Box<dyn AsyncWrite + Send + Sync + Unpin>,
        output: Box<dyn AsyncRead + Send + Sync + Unpin>,
    ) -> Self {
        let output = BufReader::new(output).lines();
        let (version, capabilities) = (String::new(), json!({}));
        Self { child, input: Some(input), output, next: 0, version, capabilities, early: Vec::new() }
    }

    /// Sets the capabilities that the client declares from now on.
    pub fn can(&mut self, capabilities: Value) {
        self.capabilities = capabilities;
    }

    /// Starts the server and opens a session in the way of this protocol version; gives the server's answer.
    pub async fn open(home: &Home, modules: &Path, version: &str) -> (Self, Value) {
        let mut client = Self::start(home, modules);
        let answer = client.initialize(version).await;
        (client, answer)
    }

    /// Opens the session: a handshake, or on 2026-07-28, which has none, a discovery.
    pub async fn initialize(&mut self, version: &str) -> Value {
        self.version = version.to_owned();
        if version >= "2026-07-28" {
            return self.request("server/discover", json!({})).await;
        }
        let params = json!({
            "protocolVersion": version,
            "capabilities": self.capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = self.request("initialize", params).await;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        answer
    }

    /// Sends bytes as they are.
    pub async fn send_raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("stdin is open");
        input.write_all(bytes).await.expect("the server reads");
        input.flush().await.expect("the server reads");
    }

    /// Sends a message.
    pub async fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes()).await;
    }

    /// Sends a request without waiting; gives its id.
    pub async fn ask(&mut self, method: &str, mut params: Value) -> i64 {
        self.next += 1;
        if self.version.as_str() >= "2026-07-28" {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": self.version,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
            match params.get_mut("_meta").and_then(Value::as_object_mut) {
                Some(existing) => existing.extend(meta.as_object().cloned().unwrap_or_default()),
                None => params["_meta"] = meta,
            }
        }
        let message = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.send(&message).await;
        self.next
    }

    /// The number of requests that were sent. The id of the next request is one more.
    pub fn begun(&self) -> i64 {
        self.next
    }

    /// Sends a request and waits for its answer, which may be an error.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.answer(id).await
    }

    /// Waits for the answer to this request.
    pub async fn answer(&mut self, id: i64) -> Value {
        self.receive_where(|message| message["id"] == id && message.get("method").is_none()).await
    }

    /// Waits for the first message that fits. Other messages are kept.
    pub async fn receive_where(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&fits) {
            return self.early.remove(at);
        }
        loop {
            let message = self.receive().await.expect("the server answers before it ends");
            if fits(&message) {
                return message;
            }
            self.early.push(message);
        }
    }

    /// Waits for the next message. There is none at the end of the output.
    pub async fn receive(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await.expect("an answer in time");
        Some(message(&line.expect("stdout is text")?))
    }

    /// Calls a tool; gives the result, or the JSON-RPC error.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments})).await;
        answer.get("result").or(answer.get("error")).cloned().expect("a result or an error")
    }

    /// Calls a tool; gives the envelope.
    pub async fn envelope(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        let envelope = result["structuredContent"].clone();
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {result}"));
        assert_says_the_same(text, &envelope);
        envelope
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the server runs")
    }

    /// Closes stdin. Answers may still come.
    pub fn close_input(&mut self) {
        drop(self.input.take());
    }

    /// Closes stdin and waits for the server's end; gives its status and its stderr.
    pub async fn close(mut self) -> (ExitStatus, String) {
        if let Some(mut input) = self.input.take() {
            // A socket that serves as both ends stays open for reading.
            input.shutdown().await.expect("stdin is closed");
        }
        self.ended().await
    }

    /// Waits for the server's end; gives its status and its stderr. The rest of stdout must be JSON-RPC as well.
    pub async fn ended(mut self) -> (ExitStatus, String) {
        let mut stderr = String::new();
        let mut pipe = self.child.stderr.take().expect("stderr");
        let rest = async {
            while let Some(line) = self.output.next_line().await.expect("stdout is text") {
                message(&line);
            }
        };
        let ending = async {
            let (_, read) = tokio::join!(rest, pipe.read_to_string(&mut stderr));
            read.expect("stderr is text");
            self.child.wait().await.expect("the server ends")
        };
        let status = tokio::time::timeout(PATIENCE, ending).await.expect("the server ends in time");
        (status, stderr)
    }
}

/// The number of values of an answer that are looked for in its text.
const LOOKED_FOR: usize = 200;

/// The text of an answer is written for reading, and leaves out nothing of what matters.
fn assert_says_the_same(text: &str, envelope: &Value) {
    let mut words = Vec::new();
    for member in ["data", "summary", "message", "remediation", "notes"] {
        add_words(&mut words, &envelope[member]);
    }
    let missing = words.iter().take(LOOKED_FOR).find(|word| !text.contains(*word));
    assert_eq!(missing, None, "the text leaves something out:\n{text}\nof {envelope}");
    assert!(!text.is_empty(), "the text says nothing of {envelope}");
}

/// Adds the words and numbers of a value, without the names of its members.
fn add_words(words: &mut Vec<String>, value: &Value) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => words.push(number.to_string()),
        Value::String(text) => words.extend(text.split_whitespace().map(str::to_owned)),
        Value::Array(items) => items.iter().for_each(|item| add_words(words, item)),
        Value::Object(members) => members.values().for_each(|member| add_words(words, member)),
    }
}

/// Reads a line of stdout, which holds nothing but JSON-RPC.
fn message(line: &str) -> Value {
    let message: Value =
        serde_json::from_str(line).unwrap_or_else(|_| panic!("stdout has a line that is no JSON: {line}"));
    assert_eq!(message["jsonrpc"], "2.0", "stdout has a line that is no message: {line}");
    message
}
