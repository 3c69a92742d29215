//! A small registry inside the tests. A test sets what it answers, and reads what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use host_base::sha256;

use super::http::PATIENCE;
use super::reference::Reference;
use super::registry_client::RegistryClient;

/// The number of bytes of the largest component in the tests.
pub(crate) const LARGEST: u64 = 1 << 20;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// True where the connection stays open without a word.
    pub(crate) is_silent: bool,
}

impl Answer {
    pub(crate) fn new(status: u16, body: &[u8]) -> Self {
        Self { status, body: body.to_vec(), ..Self::default() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// What a test answers itself, before the registry does.
type Before = Box<dyn FnMut(&Asked) -> Option<Answer> + Send>;

#[derive(Default)]
struct State {
    blobs: BTreeMap<String, Vec<u8>>,
    /// The manifests by tags and by digests.
    manifests: BTreeMap<String, Vec<u8>>,
    asked: Vec<Asked>,
    before: Option<Before>,
    /// Connections that stay open without a word.
    silent: Vec<TcpStream>,
}

/// A registry with the one repository `ada/pacman`.
pub(crate) struct TestServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    serving: Option<JoinHandle<()>>,
}

impl TestServer {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        let serving = std::thread::spawn(move || {
            // The last connection is the one that `drop` makes, without a request.
            while let Ok((stream, _)) = listener.accept()
                && serve(stream, &shared).is_some()
            {}
        });
        Self { address, state, serving: Some(serving) }
    }

    /// Answers in this way from now on, where it gives an answer.
    pub(crate) fn before(&self, answer: impl FnMut(&Asked) -> Option<Answer> + Send + 'static) {
        self.state().before = Some(Box::new(answer));
    }

    pub(crate) fn authority(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn reference(&self, rest: &str) -> Reference {
        format!("oci://{}/ada/pacman{rest}", self.address).parse().unwrap()
    }

    /// A client without a file of docker's.
    pub(crate) fn client(&self) -> RegistryClient {
        RegistryClient::with(LARGEST, None, PATIENCE)
    }

    /// A client with docker's file, which has this password for the server.
    pub(crate) fn client_of(&self, directory: &tempfile::TempDir, entry: &str) -> RegistryClient {
        let file: PathBuf = directory.path().join("config.json");
        std::fs::write(&file, format!(r#"{{"auths": {{"{}": {entry}}}}}"#, self.address)).unwrap();
        RegistryClient::with(LARGEST, Some(file), PATIENCE)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// Exchanges the bytes of everything that has this digest.
    pub(crate) fn tamper(&self, sha256: &str, bytes: &[u8]) {
        let mut state = self.state();
        let key = format!("sha256:{sha256}");
        let State { blobs, manifests, .. } = &mut *state;
        let before = blobs.get(&key).or_else(|| manifests.get(&key)).cloned().expect("something to exchange");
        for found in blobs.values_mut().chain(manifests.values_mut()).filter(|found| **found == before) {
            *found = bytes.to_vec();
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(TcpStream::connect(self.address));
        if let Some(serving) = self.serving.take() {
            let _ = serving.join();
        }
    }
}

/// Answers one request. None where the connection ended before a request.
fn serve(stream: TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut authorization, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => authorization = Some(value.to_owned()),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let asked = Asked { method, path, authorization, body };
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    state.asked.push(asked.clone());
    let mut before = state.before.take();
    let own = before.as_mut().and_then(|before| before(&asked));
    state.before = before;
    let answer = own.unwrap_or_else(|| registry(&mut state, &asked));
    if answer.is_silent {
        state.silent.push(stream);
        return Some(());
    }
    let mut head = format!("HTTP/1.1 {} x\r\nconnection: close\r\n", answer.status);
    if !answer.headers.iter().any(|(name, _)| *name == "content-length") {
        head += &format!("content-length: {}\r\n", answer.body.len());
    }
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    // The client may have gone away, where it wants no more of the answer.
    let body: &[u8] = if asked.method == "HEAD" { &[] } else { &answer.body };
    let _ = (&stream).write_all(&[head.as_bytes(), body].concat());
    Some(())
}

/// What a registry answers.
fn registry(state: &mut State, asked: &Asked) -> Answer {
    let unknown =
        |code: &str| Answer::new(404, format!(r#"{{"errors": [{{"code": "{code}"}}]}}"#).as_bytes());
    let Some(path) = asked.path.strip_prefix("/v2/ada/pacman/") else { return unknown("NAME_UNKNOWN") };
    match (asked.method.as_str(), path.split_once('/')) {
        ("GET", Some(("manifests", name))) => match state.manifests.get(name) {
            Some(manifest) => Answer::new(200, manifest),
            None => unknown("MANIFEST_UNKNOWN"),
        },
        ("PUT", Some(("manifests", name))) => {
            let digest = format!("sha256:{}", sha256::of(&asked.body));
            state.manifests.insert(name.to_owned(), asked.body.clone());
            state.manifests.insert(digest, asked.body.clone());
            Answer::new(201, b"")
        }
        ("POST", Some(("blobs", "uploads/"))) => {
            Answer::new(202, b"").with("location", "/v2/ada/pacman/blobs/uploads/1?state=x")
        }
        ("PUT", Some(("blobs", upload))) => {
            let digest = upload.rsplit_once("digest=").map(|(_, digest)| digest.to_owned()).unwrap();
            let found = format!("sha256:{}", sha256::of(&asked.body));
            match digest == found {
                true => {
                    state.blobs.insert(digest, asked.body.clone());
                    Answer::new(201, b"")
                }
                false => unknown("DIGEST_INVALID"),
            }
        }
        ("GET" | "HEAD", Some(("blobs", digest))) => match state.blobs.get(digest) {
            Some(blob) => Answer::new(200, blob),
            None => unknown("BLOB_UNKNOWN"),
        },
        _ => unknown("UNSUPPORTED"),
    }
}
