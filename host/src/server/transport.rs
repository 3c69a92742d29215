//! JSON-RPC with one message a line. A line that is no message gets an error as its answer.
//!
//! rmcp's own transport answers nothing to a line that doesn't parse or that is too long, and its service ends where the
//! first message is a notification. A person who debugs a client needs the answer, and one wrong line should not end the
//! server of a session.

use std::io;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequest, ClientRequest, ErrorCode, ErrorData, GetMeta, ProtocolVersion, RequestId,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use host_base::strict_json;

/// The methods that this server knows. rmcp treats a request with wrong parameters like one of an unknown method.
const KNOWN_METHODS: [&str; 8] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "subscriptions/listen",
];

/// The number of bytes of the longest line that is accepted.
const MAX_LINE: usize = 16 << 20;

/// A line-based transport over any pair of streams.
pub(super) struct LineTransport<R, W> {
    input: BufReader<R>,
    output: Arc<Mutex<W>>,
    line: Vec<u8>,
    /// True while the rest of a line that was too long is skipped.
    skipping: bool,
    /// An answer that is not sent yet. It is kept here because `receive` may be dropped and called again.
    answer: Option<String>,
    /// Whether a session has begun. Before that rmcp accepts only requests.
    opened: bool,
    /// Cancelled at the end of input.
    ended: CancellationToken,
}

impl<R: AsyncRead + Unpin, W> LineTransport<R, W> {
    pub(super) fn new(input: R, output: W, ended: CancellationToken) -> Self {
        Self {
            input: BufReader::with_capacity(64 * 1024, input),
            output: Arc::new(Mutex::new(output)),
            line: Vec::new(),
            skipping: false,
            answer: None,
            opened: false,
            ended,
        }
    }

    /// Reads a whole line into `self.line`; `false` at the end of input. Dropping the future loses nothing, because the bytes
    /// that were read stay in the buffers.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                return Ok(false);
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let (taken, complete) = newline.map_or((available.len(), false), |at| (at + 1, true));
            if !self.skipping {
                self.line.extend_from_slice(&available[..taken]);
            }
            self.input.consume(taken);
            if self.line.len() > MAX_LINE {
                self.line.clear();
                self.skipping = true;
                self.answer =
                    Some(error(None, ErrorCode::INVALID_REQUEST, "the message is longer than 16 MiB"));
            }
            if complete && !std::mem::take(&mut self.skipping) {
                return Ok(true);
            }
            if self.answer.is_some() {
                // The answer is sent before anything else is read.
                self.line.clear();
                return Ok(true);
            }
        }
    }

    /// Parses the line. Where it is no message, an answer says why.
    fn parse(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let line = std::mem::take(&mut self.line);
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        let value = match strict_json::parse(line) {
            Ok(value) => value,
            Err(problem) => {
                // JSON with a duplicate member has an id, and its sender waits for an answer.
                let (code, id) = match serde_json::from_slice::<Value>(line) {
                    Ok(value) => (ErrorCode::INVALID_REQUEST, id_of(&value)),
                    Err(_) => (ErrorCode::PARSE_ERROR, None),
                };
                self.answer = Some(error(id, code, &format!("not JSON that can be taken: {problem}")));
                return None;
            }
        };
        let id = id_of(&value);
        let (has_method, has_id) = (value.get("method").is_some(), value.get("id").is_some());
        match message_of(value) {
            Ok(message) if has_wrong_parameters(&message) => {
                let said = "the parameters are not those of this method";
                self.answer = Some(error(id, ErrorCode::INVALID_PARAMS, said));
                None
            }
            Ok(message) => {
                let is_request = matches!(message, RxJsonRpcMessage::<RoleServer>::Request(_));
                self.opened |= begins_session(&message);
                (self.opened || is_request).then_some(message)
            }
            // Nobody waits for an answer to a notification.
            Err(_) if has_method && !has_id => None,
            Err(problem) => {
                let said = format!("not a request of this protocol: {problem}");
                self.answer = Some(error(id, ErrorCode::INVALID_REQUEST, &said));
                None
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = self.output.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut output = output.lock().await;
            output.write_all(&line).await?;
            output.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(answer) = self.answer.clone() {
                let mut output = self.output.lock().await;
                // Removed before it is sent. Where the future is dropped in between, the answer may be missing, but no part of
                // it is sent twice.
                self.answer = None;
                if output.write_all(answer.as_bytes()).await.is_err() || output.flush().await.is_err() {
                    break;
                }
            }
            match self.read_line().await {
                Ok(true) => {
                    if let Some(message) = self.parse() {
                        return Some(message);
                    }
                }
                Ok(false) => break,
                Err(problem) => {
                    tracing::warn!(%problem, "the input can't be read");
                    break;
                }
            }
        }
        self.ended.cancel();
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.lock().await.flush().await
    }
}

/// The message that JSON holds. rmcp copies a message several times and tries one kind after another. Nearly all messages call
/// a tool, so they are read as that first.
fn message_of(value: Value) -> serde_json::Result<RxJsonRpcMessage<RoleServer>> {
    let is_request = value["jsonrpc"] == "2.0" && value.get("result").or(value.get("error")).is_none();
    if is_request && let (Some(id), Ok(call)) = (id_of(&value), CallToolRequest::deserialize(&value)) {
        return Ok(RxJsonRpcMessage::<RoleServer>::request(ClientRequest::from(call), id));
    }
    serde_json::from_value(value)
}

fn id_of(message: &Value) -> Option<RequestId> {
    serde_json::from_value(message.get("id")?.clone()).ok()
}

/// Whether a session begins with this message for rmcp: a handshake, or a request of the newest protocol version, which
/// carries what a handshake would have settled. rmcp answers other requests, and still waits for one of these.
fn begins_session(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    let RxJsonRpcMessage::<RoleServer>::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            let meta = request.get_meta();
            let version = meta.protocol_version();
            version.is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
                && meta.client_info().is_some()
                && meta.client_capabilities().is_some()
        }
    }
}

fn has_wrong_parameters(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    match message {
        RxJsonRpcMessage::<RoleServer>::Request(request) => match &request.request {
            ClientRequest::CustomRequest(custom) => KNOWN_METHODS.contains(&custom.method.as_str()),
            _ => false,
        },
        _ => false,
    }
}

fn error(id: Option<RequestId>, code: ErrorCode, message: &str) -> String {
    let error = ErrorData::new(code, host_text::visible::excerpt(message, 300), None);
    // JSON-RPC wants an id of null where the id couldn't be read.
    format!("{}\n", serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages that the service gets and the answers that the client gets for these bytes.
    async fn exchange(input: &[u8]) -> (Vec<Value>, Vec<Value>) {
        let (output, mut answers) = tokio::io::duplex(1 << 20);
        let mut lines = LineTransport::new(input, output, CancellationToken::new());
        let mut messages = Vec::new();
        while let Some(message) = lines.receive().await {
            messages.push(serde_json::to_value(message).unwrap());
        }
        drop(lines);
        let mut text = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut answers, &mut text).await.unwrap();
        (messages, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    const PING: &[u8] = br#"{"jsonrpc":"2.0","id":7,"method":"ping"}
"#;

    #[tokio::test]
    async fn what_is_no_json_is_answered_and_the_next_line_is_read() {
        for bad in [&b"{not json\n"[..], b"\xff\xfe\n", b"[1,\n", b"hello\r\n"] {
            let (messages, answers) = exchange(&[bad, PING].concat()).await;
            assert_eq!(messages.len(), 1);
            assert_eq!(answers[0]["error"]["code"], -32700);
            assert_eq!(answers[0]["id"], Value::Null);
        }
    }

    #[tokio::test]
    async fn json_that_is_no_request_is_answered_with_its_id() {
        for (bad, id, code) in [
            (
                &br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":7}}"#[..],
                Value::from(5),
                -32602,
            ),
            (br#"{"jsonrpc":"2.0","id":6,"method":"initialize","params":{}}"#, Value::from(6), -32602),
            (br#"{"id":"x"}"#, Value::from("x"), -32600),
            (
                br#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"x","arguments":{"a":1,"a":2}}}"#,
                Value::from(8),
                -32600,
            ),
            (br#"[]"#, Value::Null, -32600),
            (br#"42"#, Value::Null, -32600),
        ] {
            let (messages, answers) = exchange(&[bad, b"\n", PING].concat()).await;
            assert_eq!(messages.len(), 1, "{}", String::from_utf8_lossy(bad));
            assert_eq!(answers[0]["error"]["code"], code);
            assert_eq!(answers[0]["id"], id);
        }
    }

    #[test]
    fn a_call_of_a_tool_is_read_as_rmcp_reads_it() {
        let params = serde_json::json!({
            "name": "a", "arguments": {"b": [1, {"c": null}]}, "_meta": {"progressToken": 3, "x": "y"}, "other": 1,
        });
        let mut seen = 0;
        for changed in [
            serde_json::json!({}),
            serde_json::json!({"id": "text"}),
            serde_json::json!({"params": {"name": "a"}}),
            serde_json::json!({"params": {"name": 7}}),
            serde_json::json!({"params": null}),
            serde_json::json!({"id": null}),
            serde_json::json!({"result": {}}),
            serde_json::json!({"error": {"code": 1, "message": ""}}),
            serde_json::json!({"jsonrpc": "1.0"}),
            serde_json::json!({"method": "ping"}),
            serde_json::json!({"more": true}),
        ] {
            let mut call =
                serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            call.as_object_mut().unwrap().extend(changed.as_object().unwrap().clone());
            let read = |message: RxJsonRpcMessage<RoleServer>| serde_json::to_value(message).unwrap();
            let ours = message_of(call.clone()).map(read).ok();
            assert_eq!(ours, serde_json::from_value(call.clone()).map(read).ok(), "{call}");
            seen += usize::from(ours.is_some());
        }
        assert!(seen >= 5, "{seen}");
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_answered_and_passed_over() {
        let mut input = vec![b'x'; MAX_LINE + 100];
        input.push(b'\n');
        input.extend_from_slice(PING);
        let (messages, answers) = exchange(&input).await;
        assert_eq!((messages.len(), answers.len()), (1, 1));
        assert_eq!(answers[0]["error"]["code"], -32600);
    }

    #[tokio::test]
    async fn a_notification_before_the_first_request_is_passed_over() {
        let early = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;
        let stray = b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\n";
        let begin = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
"#;
        let (messages, answers) = exchange(&[&early[..], PING, early, stray, begin, early].concat()).await;
        let methods: Vec<_> = messages.iter().map(|message| message["method"].as_str().unwrap()).collect();
        assert_eq!(methods, ["ping", "initialize", "notifications/initialized"]);
        assert!(answers.is_empty());
    }

    #[tokio::test]
    async fn the_end_of_input_is_told() {
        let ended = CancellationToken::new();
        let mut lines = LineTransport::new(&b""[..], tokio::io::sink(), ended.clone());
        assert!(lines.receive().await.is_none());
        assert!(ended.is_cancelled());
    }
}
