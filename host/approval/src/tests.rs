//! Both sides over a real socket, with waiting calls that only the test decides.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::ask::{Server, ServerCall, Servers};
use super::directory::{Directory, DirectoryError};
use super::message::PATIENCE;
use super::*;

const STRANGER: u32 = 4_000_000;

fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn call(id: &str) -> WaitingCall {
    WaitingCall {
        id: id.to_owned(),
        tool: "web_restart".to_owned(),
        module: "services".to_owned(),
        target: "web1".to_owned(),
        risk: Risk::High,
        summary: "Restart nginx.service".to_owned(),
        client: "a test".to_owned(),
        asked_unix: 1000,
        expires_unix: 1900,
        question: "systemctl restart nginx.service".to_owned(),
        preview: json!({"command": "systemctl restart nginx.service"}),
        sha256: "ab".repeat(32),
    }
}

/// The decision about a call, if there was one.
type Decided = Option<(bool, Person)>;

/// Calls that wait, or that were decided.
struct Fake {
    calls: Mutex<BTreeMap<String, (WaitingCall, Decided)>>,
    now: AtomicU64,
    /// The consequence of each decision.
    beginning: Mutex<Beginning>,
}

impl Fake {
    fn new(calls: impl IntoIterator<Item = WaitingCall>) -> Arc<Self> {
        let calls = calls.into_iter().map(|call| (call.id.clone(), (call, None))).collect();
        Arc::new(Self {
            calls: Mutex::new(calls),
            now: AtomicU64::new(1100),
            beginning: Mutex::new(Beginning::Running),
        })
    }

    fn decided(&self, id: &str) -> Decided {
        self.calls.lock().unwrap()[id].1.clone()
    }
}

impl WaitingCalls for Fake {
    fn waiting(&self) -> Vec<WaitingCall> {
        let calls = self.calls.lock().unwrap();
        calls.values().filter(|(_, decided)| decided.is_none()).map(|(call, _)| call.clone()).collect()
    }

    fn decide(
        &self,
        id: &str,
        sha256: &str,
        yes: bool,
        by: Person,
    ) -> Result<BoxFuture<'static, Beginning>, Refused> {
        let mut calls = self.calls.lock().unwrap();
        match calls.get_mut(id) {
            None => Err(Refused::Unknown),
            Some((_, Some(_))) => Err(Refused::Decided),
            Some((call, None)) if call.expires_unix <= self.now.load(Ordering::Relaxed) => {
                Err(Refused::Expired)
            }
            Some((call, None)) if call.sha256 != sha256 => Err(Refused::OtherPlan),
            Some((_, decided)) => {
                *decided = Some((yes, by));
                let beginning = self.beginning.lock().unwrap().clone();
                Ok(Box::pin(async { beginning }))
            }
        }
    }
}

/// A server's side, with its directory.
struct Served {
    place: PathBuf,
    fake: Arc<Fake>,
    listener: Listener,
    _temporary: TempDir,
}

impl Served {
    fn new(calls: impl IntoIterator<Item = WaitingCall>) -> Self {
        Self::with(calls, Deciders::Account, own())
    }

    /// A server's side to which the kernel reports `peer` as the other end.
    fn with(calls: impl IntoIterator<Item = WaitingCall>, deciders: Deciders, peer: u32) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path().join("pending");
        let fake = Fake::new(calls);
        let listener = listener(&place, &fake, deciders, peer);
        Self { place, fake, listener, _temporary: temporary }
    }

    fn servers(&self) -> Servers {
        Servers::at(self.place.clone(), own())
    }

    async fn only(&self) -> ServerCall {
        let (mut pending, errors) = self.servers().pending().await;
        assert!(errors.is_empty() && pending.len() == 1, "{pending:?} {errors:?}");
        pending.remove(0)
    }

    fn sockets(&self) -> Vec<String> {
        names(&self.place)
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.place.join(&self.sockets()[0])).await.unwrap()
    }
}

fn listener(place: &Path, fake: &Arc<Fake>, deciders: Deciders, peer: u32) -> Listener {
    let calls: Arc<dyn WaitingCalls> = fake.clone();
    let directory = Directory::create(place.to_owned()).unwrap();
    Listener::start_in(directory, &calls, deciders, PATIENCE, move |_: &UnixStream| io::Result::Ok(peer))
        .unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let name = |entry: io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    std::fs::read_dir(directory).unwrap().map(name).collect()
}

/// The whole answer to these bytes.
async fn said(mut stream: UnixStream, bytes: &[u8]) -> String {
    // The other end may close the connection before everything is written.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_list_is_without_plans_and_one_call_has_its_own() {
    let (first, second) =
        (call("00000000000000aa"), WaitingCall { asked_unix: 900, ..call("00000000000000bb") });
    let served = Served::new([first.clone(), second]);
    let (pending, errors) = served.servers().pending().await;
    assert!(errors.is_empty(), "{errors:?}");
    let ids: Vec<&str> = pending.iter().map(|pending| pending.waiting.id.as_str()).collect();
    assert_eq!(ids, ["00000000000000bb", "00000000000000aa"], "the oldest first");
    let without = WaitingCall { question: String::new(), preview: Value::Null, ..first.clone() };
    assert_eq!(pending[1].waiting, without);
    assert_eq!(pending[1].server.show(&first.id).await.unwrap(), Some(first));
    assert_eq!(pending[1].server.show("00000000000000cc").await.unwrap(), None);
}

#[tokio::test]
async fn whoever_decides_learns_what_came_of_it() {
    for beginning in [Beginning::Running, Beginning::Nothing("it has changed".to_owned())] {
        let served = Served::new([call("00000000000000aa")]);
        *served.fake.beginning.lock().unwrap() = beginning.clone();
        let found = served.only().await;
        assert_eq!(found.server.decide(&found.waiting, true).await.unwrap(), beginning);
    }
}

#[tokio::test]
async fn a_decision_reaches_the_call_with_who_has_taken_it() {
    for yes in [true, false] {
        let served = Served::new([call("00000000000000aa")]);
        let found = served.only().await;
        found.server.decide(&found.waiting, yes).await.unwrap();
        let (decided, by) = served.fake.decided("00000000000000aa").unwrap();
        assert_eq!((decided, by.uid), (yes, own()));
        assert!(!by.account.is_empty());
        assert!(served.servers().pending().await.0.is_empty());
    }
}

#[tokio::test]
async fn a_decision_that_is_not_taken_says_why() {
    let served = Served::new([call("00000000000000aa")]);
    let ServerCall { server, waiting } = served.only().await;
    let other_plan = WaitingCall { sha256: "cd".repeat(32), ..waiting.clone() };
    let unknown = call("00000000000000bb");
    for (shown, refused) in [(&other_plan, Refused::OtherPlan), (&unknown, Refused::Unknown)] {
        let error = server.decide(shown, true).await.unwrap_err();
        assert!(matches!(&error, AskError::Refused(found) if *found == refused), "{error}");
    }
    served.fake.now.store(1900, Ordering::Relaxed);
    let error = server.decide(&waiting, true).await.unwrap_err();
    assert!(matches!(error, AskError::Refused(Refused::Expired)), "{error}");
    assert_eq!(served.fake.decided("00000000000000aa"), None);
    served.fake.now.store(1100, Ordering::Relaxed);
    server.decide(&waiting, true).await.unwrap();
    let error = server.decide(&waiting, false).await.unwrap_err();
    assert!(matches!(error, AskError::Refused(Refused::Decided)), "{error}");
}

#[tokio::test]
async fn of_many_who_decide_at_once_one_has_decided() {
    let served = Served::new([call("00000000000000aa")]);
    let found = served.only().await;
    let decisions = (0..20).map(|number| found.server.decide(&found.waiting, number < 10));
    let taken = futures_util::future::join_all(decisions).await;
    let taken: Vec<usize> =
        taken.iter().enumerate().filter(|(_, taken)| taken.is_ok()).map(|(at, _)| at).collect();
    assert_eq!(taken.len(), 1);
    assert_eq!(served.fake.decided("00000000000000aa").unwrap().0, taken[0] < 10);
}

#[test]
fn who_asks_for_a_change_does_not_decide_about_it() {
    let system = |client| Deciders::Root { client };
    // The columns: the deciders, the server's uid, the uid that would decide, and whether it may.
    for (deciders, own, uid, may) in [
        (Deciders::Account, 1000, 1000, true),
        (Deciders::Account, 1000, 0, true),
        (Deciders::Account, 1000, 1001, false),
        (Deciders::Account, 0, 0, true),
        (Deciders::Account, 0, 1000, false),
        (system(Some(1000)), 990, 0, true),
        (system(Some(1000)), 990, 1000, false),
        (system(Some(1000)), 990, 990, false),
        (system(Some(1000)), 990, 1001, false),
        (system(None), 990, 0, true),
        (system(None), 990, 990, false),
        (system(Some(0)), 990, 0, false),
        (system(Some(990)), 990, 990, false),
    ] {
        assert_eq!(deciders.may(uid, own).is_ok(), may, "{deciders:?} {own} {uid}");
    }
}

#[tokio::test]
async fn whoever_may_not_decide_is_told_nothing_else() {
    for (deciders, peer) in [
        (Deciders::Account, STRANGER),
        (Deciders::Root { client: Some(STRANGER) }, STRANGER),
        (Deciders::Root { client: Some(0) }, 0),
    ] {
        let served = Served::with([call("00000000000000aa")], deciders, peer);
        let decide = json!({"decide": {"id": "00000000000000aa", "sha256": "ab".repeat(32), "yes": true}});
        for question in [json!({"list": {}}), json!({"show": {"id": "00000000000000aa"}}), decide] {
            let answer = said(served.connect().await, format!("{question}\n").as_bytes()).await;
            assert!(answer.starts_with("{\"error\":\"refused to the account "), "{answer}");
            assert!(answer.contains("decide") && !answer.contains("nginx"), "{answer}");
        }
        assert_eq!(served.fake.decided("00000000000000aa"), None);
        let (pending, errors) = served.servers().pending().await;
        assert!(pending.is_empty() && errors[0].to_string().contains("refused to the account"), "{errors:?}");
    }
}

#[tokio::test]
async fn what_is_no_question_gets_an_error_and_decides_nothing() {
    let served = Served::new([call("00000000000000aa")]);
    let sha256 = "ab".repeat(32);
    for (question, expected) in [
        ("nonsense\n".to_owned(), "expected a line of JSON"),
        ("\u{0}\n".to_owned(), "expected a line of JSON"),
        ("{}\n".to_owned(), "expected a line of JSON"),
        ("{\"forget\":{}}\n".to_owned(), "expected a line of JSON"),
        (format!("{{\"decide\":{{\"id\":\"00000000000000aa\",\"sha256\":\"{sha256}\"}}}}\n"), "yes"),
        (
            format!(
                "{{\"decide\":{{\"id\":\"00000000000000aa\",\"sha256\":\"{sha256}\",\"yes\":true,\"x\":1}}}}\n"
            ),
            "unknown field",
        ),
        ("x".repeat(1 << 20), "at most 4096 bytes"),
        (format!("{{\"show\":{{\"id\":\"{}\"}}}}\n", "a".repeat(1 << 20)), "at most 4096 bytes"),
    ] {
        let answer = said(served.connect().await, question.as_bytes()).await;
        assert!(answer.starts_with("{\"error\":") && answer.contains(expected), "{answer}");
    }
    let mut stream = served.connect().await;
    stream.write_all(b"{\"list\":{}}").await.unwrap();
    stream.shutdown().await.unwrap();
    assert!(said(stream, b"").await.contains("before a whole line"));
    assert_eq!(served.fake.decided("00000000000000aa"), None);
    served.only().await;
}

#[tokio::test]
async fn whoever_says_nothing_is_not_waited_for() {
    let temporary = tempfile::tempdir().unwrap();
    let fake: Arc<dyn WaitingCalls> = Fake::new([call("00000000000000aa")]);
    let directory = Directory::create(temporary.path().join("pending")).unwrap();
    let patience = Duration::from_millis(10);
    let peer = |_: &UnixStream| io::Result::Ok(own());
    let _listener = Listener::start_in(directory, &fake, Deciders::Account, patience, peer).unwrap();
    let socket = temporary.path().join("pending").join(&names(&temporary.path().join("pending"))[0]);
    // There are more connections than are served at the same time.
    let mut silent = Vec::new();
    for number in 0..20 {
        let mut stream = UnixStream::connect(&socket).await.unwrap();
        if number % 2 == 0 {
            let _ = stream.write_all(b"{\"list\"").await;
        }
        silent.push(stream);
    }
    for stream in silent {
        assert_eq!(said(stream, b"").await, "");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_not_waited_for() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = Directory::create(temporary.path().join("pending")).unwrap();
    let _silent = directory.listen("1-aa").unwrap();
    let mut servers = Server::all_in(directory.path().to_owned(), own()).unwrap();
    let server = servers.remove(0).with_patience(Duration::from_millis(10));
    let error = server.list().await.unwrap_err();
    assert_eq!(error.to_string(), "the server with process number 1: the other end was silent for 10ms");
}

#[tokio::test]
async fn a_server_that_says_nonsense_is_named_and_the_others_are_asked() {
    let served = Served::new([call("00000000000000aa")]);
    let directory = Directory::create(served.place.clone()).unwrap();
    let answers = [
        ("1-aa", "", "ended before a whole line"),
        ("2-bb", "nonsense\n", "expected a line of JSON"),
        ("3-cc", "{\"decided\":{}}\n", "doesn't fit the question"),
        ("4-dd", "{\"waiting\":[{\"id\":\"00000000000000aa\"}]}\n", "missing field"),
        ("5-ee", "{\"error\":\"no\"}\n", "no"),
    ];
    for (name, answer, _) in answers {
        let listener = directory.listen(name).unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _: Option<Value> = message::read(&mut stream, 4096, PATIENCE).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
    }
    let (pending, errors) = served.servers().pending().await;
    assert_eq!((pending.len(), errors.len()), (1, answers.len()), "{errors:?}");
    for ((name, _, expected), error) in answers.iter().zip(errors) {
        let error = error.to_string();
        let begin = format!("the server with process number {}: ", &name[..1]);
        assert!(error.starts_with(&begin) && error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn the_socket_is_there_while_the_server_is_and_only_for_its_account() {
    let served = Served::new([]);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&served.place), 0o700);
    let sockets = served.sockets();
    let name = sockets[0].strip_prefix(&format!("{}-", std::process::id())).unwrap();
    assert_eq!((sockets.len(), name.len()), (1, "0123456789abcdef.sock".len()));
    let Served { place, listener, _temporary, .. } = served;
    drop(listener);
    assert!(names(&place).is_empty());
}

#[tokio::test]
async fn what_waits_is_not_kept_alive_by_its_listener() {
    let served = Served::new([call("00000000000000aa")]);
    let server = served.only().await.server;
    let Served { place, fake, listener, _temporary } = served;
    assert_eq!(Arc::strong_count(&fake), 1);
    drop(fake);
    let error = server.show("00000000000000aa").await.unwrap_err();
    assert!(error.to_string().contains("the server is ending"), "{error}");
    drop((listener, place));
}

#[tokio::test]
async fn what_a_dead_server_has_left_is_removed_by_whoever_finds_it() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path().join("pending");
    let directory = Directory::create(place.clone()).unwrap();
    let dead = || drop(std::os::unix::net::UnixListener::bind(place.join("1-aa.sock")).unwrap());
    // Whoever asks removes it.
    dead();
    // These files belong to no server, so they stay.
    for other in ["notes.txt", "x.sock", "1-.sock", "1-xyz.sock"] {
        std::fs::write(place.join(other), "").unwrap();
    }
    let (pending, errors) = Servers::at(place.clone(), own()).pending().await;
    assert!(pending.is_empty() && errors.is_empty(), "{errors:?}");
    assert!(!place.join("1-aa.sock").exists());
    assert_eq!(names(&place).len(), 4);
    // The next server removes it.
    dead();
    let fake = Fake::new([]);
    let _listener = listener(&place, &fake, Deciders::Account, own());
    let (_, errors) = Servers::at(place.clone(), own()).pending().await;
    assert!(errors.is_empty(), "{errors:?}");
    assert!(!place.join("1-aa.sock").exists());
    assert_eq!(directory.names().unwrap().len(), 1);
}

#[tokio::test]
async fn a_directory_that_others_could_enter_or_have_put_there_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path().join("pending");
    assert!(Directory::open(place.clone(), own()).unwrap().is_none());
    Directory::create(place.clone()).unwrap();
    for mode in [0o710, 0o750, 0o755, 0o701, 0o777] {
        std::fs::set_permissions(&place, Permissions::from_mode(mode)).unwrap();
        for opened in [Directory::create(place.clone()).map(Some), Directory::open(place.clone(), own())] {
            assert!(matches!(opened, Err(DirectoryError::Open { mode: found, .. }) if found == mode));
        }
    }
    std::fs::set_permissions(&place, Permissions::from_mode(0o700)).unwrap();
    let error = Directory::open(place.clone(), STRANGER).unwrap_err();
    assert!(matches!(error, DirectoryError::Foreign { expected: STRANGER, .. }), "{error}");
    assert_eq!(Servers::at(place.clone(), STRANGER).pending().await.1.len(), 1);
    let link = temporary.path().join("link");
    std::os::unix::fs::symlink(&place, &link).unwrap();
    let file = temporary.path().join("file");
    std::fs::write(&file, "").unwrap();
    for other in [link, file] {
        assert!(matches!(Directory::open(other, own()), Err(DirectoryError::Io { .. })));
    }
}

#[tokio::test]
async fn a_socket_that_another_account_serves_is_told_nothing() {
    let served = Served::new([call("00000000000000aa")]);
    let ServerCall { server, waiting } = served.only().await;
    let server = server.of_account(STRANGER);
    let error = server.decide(&waiting, true).await.unwrap_err();
    assert!(matches!(error, AskError::Foreign { expected: STRANGER, .. }), "{error}");
    assert!(server.show(&waiting.id).await.is_err());
    assert_eq!(served.fake.decided("00000000000000aa"), None);
}

#[tokio::test]
async fn a_path_too_long_for_a_socket_is_no_hindrance() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path().join("d".repeat(200)).join("pending");
    let fake = Fake::new([call("00000000000000aa")]);
    let _listener = listener(&place, &fake, Deciders::Account, own());
    let (pending, errors) = Servers::at(place, own()).pending().await;
    assert_eq!((pending.len(), errors.len()), (1, 0), "{errors:?}");
}

#[tokio::test]
async fn what_is_too_much_to_be_shown_is_an_error() {
    let huge = WaitingCall { question: "x".repeat(33 << 20), ..call("00000000000000aa") };
    let served = Served::new([huge]);
    let found = served.only().await;
    let error = found.server.show("00000000000000aa").await.unwrap_err();
    assert!(error.to_string().contains("too much to be shown"), "{error}");
}
