//! A machine behind SSH: one connection, which comes back by itself.
//!
//! What looks may be asked again by whoever wants to; what changes is never repeated here, and where the connection goes
//! in the middle of it, nobody knows what became of it.

mod channel;
mod held;
mod link;
mod programs;
mod quote;
mod sftp;
mod told;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::task::TaskTracker;

pub use channel::Stream;
use channel::{Failed, Running};
use link::{First, Link};

use super::entry::Trusted;
use super::facts::{self, Facts};
use super::resolve::{Last, Resolved};
use super::rights::{Ends, Head, Rights, head};
use super::services::{self, LookedFor, Services};
use super::verbs::{Runner, Verbs};
use super::{Acting, Metadata, PathCheck, ReadRequest};
use host_base::Attempt;
use host_base::problem::{Category, Problem};
use host_base::program::PATH;
use host_base::{Command, Output, Privilege};
use host_capability::Access;
use host_openssh::{Given, Keepalive, Peer, Session};
pub use told::{Connection, KnownAs};

/// Before each attempt to have a lost connection back.
const PAUSES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(10),
];

/// How a connection is kept.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Between two signs of life; none where there are to be none.
    pub keepalive_interval: Option<Duration>,
    /// So many that stay without an answer mean that the connection is gone.
    pub keepalive_max_missed: usize,
    /// Whether a lost connection comes back within the call that misses it.
    pub reconnects: bool,
    /// How often that is tried, at most as often as there are pauses.
    pub attempts: usize,
    /// What connections were authenticated by since the server started.
    pub keys: Arc<Mutex<BTreeSet<String>>>,
    /// Files that are looked for along with the facts.
    pub looked_for: LookedFor,
}

/// A machine behind SSH, and how it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What callers know it by: becomes part of a file's name.
    pub name: String,
    /// What the user's SSH configuration knows it by.
    pub alias: String,
    /// What goes before that configuration.
    pub given: Given,
}

impl Place {
    /// As the configuration of this alias says, which is its name.
    pub fn of_alias(alias: String) -> Self {
        Self { name: alias.clone(), alias, given: Given::default() }
    }

    /// The same, reached otherwise, and known by what differs.
    pub fn with(self, given: Given) -> Self {
        let user = given.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        // Else an IPv6 address and a port would be another address.
        let host = match given.port.is_some() && self.name.contains(':') {
            true => format!("[{}]", self.name),
            false => self.name.clone(),
        };
        let port = given.port.map(|port| format!(":{port}")).unwrap_or_default();
        // A name is a part of a file's name as well, and no two are alike.
        let key = given.identity_file.as_ref().map(|file| {
            let sha256 = host_base::sha256::of(file.as_os_str().as_encoded_bytes());
            format!("+{}", &sha256[..16])
        });
        let key = key.unwrap_or_default();
        let name = format!("{user}{host}{port}{key}");
        let Given { hostname, port, user, identity_file } = self.given;
        let given = Given {
            hostname: given.hostname.or(hostname),
            port: given.port.or(port),
            user: given.user.or(user),
            identity_file: given.identity_file.or(identity_file),
        };
        Self { name, alias: self.alias, given }
    }
}

/// A machine behind SSH.
pub struct Remote {
    place: Place,
    settings: Settings,
    /// Held while connecting, so that whoever comes meanwhile finds the connection.
    link: tokio::sync::Mutex<Option<Arc<Link>>>,
    story: Arc<Mutex<Story>>,
    /// Processes that held a lock over a connection that went.
    left: Arc<Mutex<Vec<held::Left>>>,
    tasks: TaskTracker,
}

/// What became of the connection.
#[derive(Default)]
struct Story {
    /// Connections that there were.
    count: u64,
    /// Since when there is none.
    lost: Option<Instant>,
    /// When it was last had back, and after how long.
    restored: Option<(Instant, Duration)>,
    /// The number of the one whose loss a call has told of.
    told: Option<u64>,
}

impl Remote {
    pub(super) fn new(place: Place, settings: Settings) -> Self {
        Self {
            place,
            settings,
            link: Default::default(),
            story: Arc::default(),
            left: Arc::default(),
            tasks: TaskTracker::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.place.name
    }

    /// Counts connections: what was found out on one may not hold on the next.
    pub(super) async fn connected(&self) -> Result<u64, Problem> {
        Ok(self.link().await?.number())
    }

    /// For how long the connection was gone, where it was had back since then.
    pub(super) fn restored_since(&self, since: Instant) -> Option<Duration> {
        self.story().restored.filter(|(at, _)| *at >= since).map(|(_, gone)| gone)
    }

    /// Who is at the other end, of a connection that is there.
    pub(super) async fn peer(&self) -> Option<Peer> {
        let link = self.link.lock().await;
        link.as_ref().filter(|link| !link.is_closed()).map(|link| link.peer().clone())
    }

    /// Whether a connection of its own can be had, by the same way, and somebody answers.
    ///
    /// Gives the key and the machine id of whoever that is.
    pub(super) async fn is_reached_anew(&self) -> Result<(String, Option<String>), Problem> {
        let link = Link::new(self.open().await?, 0, self.tasks.clone())?;
        let asked = link::asking("cat", &["--", facts::MACHINE_ID]);
        let answered = First(&link).run_all(&[asked]).await.pop();
        link.close().await;
        let output = answered.unwrap_or_else(|| Err(link.lost()))?;
        let machine_id = facts::machine_id_in(&String::from_utf8_lossy(&output.stdout));
        Ok((link.peer().host_key.clone(), machine_id))
    }

    /// Of the connection, which is made where there is none.
    pub(super) async fn connection(&self) -> Result<Connection, Problem> {
        let link = self.link().await?;
        self.of(&link).await
    }

    /// Of a connection of its own, which is ended again.
    pub(super) async fn try_connection(&self) -> Result<Connection, Problem> {
        let link = Link::new(self.open().await?, 0, self.tasks.clone())?;
        let connection = self.of(&link).await;
        link.close().await;
        connection
    }

    async fn of(&self, link: &Link) -> Result<Connection, Problem> {
        let round_trip = link.round_trip().await?;
        let restored = self.story().count.saturating_sub(1);
        let (peer, channels) = (link.peer().clone(), link.busy());
        let (up, made_in) = link.times();
        Ok(Connection { peer, round_trip, up, channels, restored, made_in })
    }

    /// Whether there is one.
    pub(super) async fn is_connected(&self) -> bool {
        self.link.lock().await.as_ref().is_some_and(|link| !link.is_closed())
    }

    /// Whoever missed the connection in use knows that it is gone: the next question asks for another one.
    pub(super) async fn loss_is_told(&self) {
        let number = self.link.lock().await.as_ref().map(|link| link.number());
        self.story().told = number;
    }

    /// Does without the connection in use.
    pub(super) async fn leave(&self) {
        if let Some(link) = self.link.lock().await.take() {
            self.story().lost.get_or_insert_with(Instant::now);
            link.close().await;
        }
    }

    /// Waits for what is being ended, and says goodbye.
    pub(super) async fn close(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        if let Some(link) = self.link.lock().await.take() {
            link.close().await;
        }
    }

    fn story(&self) -> std::sync::MutexGuard<'_, Story> {
        self.story.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it would be looked for, and by which keys it is known; nothing is asked of it.
    pub(super) async fn known_as(&self) -> Result<KnownAs, Problem> {
        let host = host_openssh::config::resolve(&self.place.alias, &self.place.given).await?;
        let (user, global) = (host.user_known_hosts.clone(), host.global_known_hosts.clone());
        let known =
            tokio::task::spawn_blocking(move || host_openssh::known_hosts::KnownHosts::load(&user, &global))
                .await
                .map_err(|error| Problem::new("INTERNAL_ERROR", Category::Internal, error.to_string()))??;
        let address = match host.hostname.contains(':') {
            true => format!("[{}]:{}", host.hostname, host.port),
            false => format!("{}:{}", host.hostname, host.port),
        };
        Ok(KnownAs {
            address,
            user: host.user.clone(),
            host_keys: known.fingerprints(&host_openssh::known_hosts::Names::of(&host, None)),
        })
    }

    /// A session, and how long it took to be had.
    async fn open(&self) -> Result<(Session, Duration), Problem> {
        let began = Instant::now();
        let host = host_openssh::config::resolve(&self.place.alias, &self.place.given).await?;
        let keepalive = Keepalive {
            interval: self.settings.keepalive_interval,
            max_missed: self.settings.keepalive_max_missed,
        };
        let session = Session::open(&host, &keepalive).await?;
        Ok((session, began.elapsed()))
    }

    /// The connection, had back where it was lost.
    async fn link(&self) -> Result<Arc<Link>, Problem> {
        let mut known = self.link.lock().await;
        match known.as_ref() {
            Some(link) if !link.is_closed() => return Ok(link.clone()),
            Some(link) => {
                let (problem, number) = (link.lost(), link.number());
                self.story().lost.get_or_insert_with(Instant::now);
                *known = None;
                // Once is enough: a call that had it in its midst has said so already.
                let is_told = self.story().told == Some(number);
                if !self.settings.reconnects && !is_told {
                    return Err(problem.remedy("Call again: the next call connects anew"));
                }
            }
            None => {}
        }
        let was_there = self.story().count > 0;
        let attempts = if was_there && self.settings.reconnects { self.settings.attempts } else { 1 };
        let (began, mut failed) = (Instant::now(), Vec::new());
        let session = loop {
            tokio::time::sleep(PAUSES[failed.len().min(PAUSES.len() - 1)]).await;
            let problem = match self.open().await {
                Ok(session) => break session,
                Err(problem) => problem,
            };
            failed.push(Attempt::of(&problem, began.elapsed()));
            if problem.category != Category::Network || failed.len() >= attempts {
                return Err(match &failed[..] {
                    // It is the problem itself.
                    [_] => problem,
                    failed => problem.detail("attempts", json!(failed)),
                });
            }
            tracing::warn!(host = self.place.name, attempt = failed.len(), %problem, "not connected");
        };
        let number = self.story().count + 1;
        let link = Link::new(session, number, self.tasks.clone())?;
        if let Some(key) = &link.peer().key {
            self.settings.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        }
        for warning in &link.peer().warnings {
            tracing::warn!(host = self.place.name, warning, "the configuration of ssh isn't followed here");
        }
        {
            let mut story = self.story();
            story.count = number;
            if let Some(lost) = story.lost.take() {
                story.restored = Some((Instant::now(), lost.elapsed()));
            }
        }
        // Since when it is gone is known when it goes, and not when somebody misses it.
        tokio::spawn({
            let (link, story) = (Arc::downgrade(&link), Arc::downgrade(&self.story));
            async move {
                let Some(watched) = link.upgrade() else { return };
                watched.closed().await;
                if let Some(story) = story.upgrade() {
                    let mut story = story.lock().unwrap_or_else(PoisonError::into_inner);
                    story.lost.get_or_insert_with(Instant::now);
                }
            }
        });
        *known = Some(link.clone());
        Ok(link)
    }

    /// A connection for what is read piece by piece, beside the one in use: a channel that nobody reads holds up all others
    /// on its connection.
    async fn beside(&self, link: &Link) -> Result<Arc<Link>, Problem> {
        let beside = Link::new(self.open().await?, 0, self.tasks.clone())?;
        let (before, now) = (&link.peer().host_key, &beside.peer().host_key);
        if before == now {
            return Ok(beside);
        }
        let message =
            format!("{} is another machine by now: expected host key {before}, found {now}", self.place.name);
        Err(Problem::new("CONNECTION_LOST", Category::Network, message))
    }

    /// What is known of the machine, all of it asked at once.
    ///
    /// With the number of the connection, and the key that the machine has shown on it.
    pub(super) async fn gather(&self) -> Result<(u64, Facts, String, Services), Problem> {
        let link = self.link().await?;
        let session = link.session_facts().await?;
        let mut questions = facts::questions(&self.settings.looked_for.paths());
        questions.push(services::units_question());
        let mut answers = First(&link).run_all(&questions).await;
        let units = answers.pop().unwrap_or_else(|| Err(link.lost()));
        let services =
            Services::read(units, answers.get(facts::LISTING).cloned().unwrap_or_else(|| Err(link.lost())));
        let mut facts = facts::read(answers, session)?;
        facts.sftp = link.sftp().await.is_some();
        Ok((link.number(), facts, link.peer().host_key.clone(), services))
    }

    /// Of its services alone, all of it asked at once.
    pub(super) async fn services(&self) -> Result<Services, Problem> {
        let link = self.link().await?;
        let paths = self.settings.looked_for.paths();
        let questions = [services::units_question(), services::paths_question(&paths)];
        let mut answers = First(&link).run_all(&questions).await;
        let (paths, units) = (answers.pop(), answers.pop());
        let (Some(paths), Some(units)) = (paths, units) else { return Err(link.lost()) };
        Ok(Services::read(units, paths))
    }

    /// Where a program is.
    pub(super) async fn program(&self, name: &str) -> Result<String, Problem> {
        let link = self.link().await?;
        self.find(&link, name).await
    }

    async fn find(&self, link: &Arc<Link>, name: &str) -> Result<String, Problem> {
        if let Some(path) = link.programs.known(name) {
            return Ok(path);
        }
        let candidates = programs::of(name)?;
        let led = self.walk(link, &candidates, Last::Followed, &Trusted::Root).await;
        let path = programs::choose(name, candidates.into_iter().zip(led).collect())?;
        link.programs.learn(name, &path);
        Ok(path)
    }

    /// Where paths lead, with the account's own rights.
    async fn walk(
        &self,
        link: &Arc<Link>,
        paths: &[String],
        last: Last,
        trusted: &Trusted,
    ) -> Vec<Result<Resolved, Problem>> {
        if let Some(sftp) = link.sftp().await {
            let walks = paths.iter().map(|path| sftp.resolve(path, last, trusted));
            return futures_util::future::join_all(walks).await;
        }
        let asked: Vec<_> = paths.iter().map(String::as_str).collect();
        let access = own();
        Verbs { runner: &First(link), access: &access, trusted }.resolve(&asked, last).await
    }

    /// With the account's own rights, by `stat`: it tells more than SFTP does.
    pub(super) async fn locate(
        &self,
        paths: Vec<String>,
        last: Last,
        trusted: Trusted,
    ) -> Vec<Result<Resolved, Problem>> {
        let link = match self.link().await {
            Ok(link) => link,
            Err(problem) => return vec![Err(problem); paths.len()],
        };
        let asked: Vec<_> = paths.iter().map(String::as_str).collect();
        let access = own();
        Verbs { runner: &First(&link), access: &access, trusted: &trusted }.resolve(&asked, last).await
    }

    /// Where paths lead, with the account's own rights.
    pub(super) async fn resolve(
        &self,
        paths: Vec<String>,
        last: Last,
        trusted: Trusted,
    ) -> Vec<Result<Resolved, Problem>> {
        match self.link().await {
            Ok(link) => self.walk(&link, &paths, last, &trusted).await,
            Err(problem) => vec![Err(problem); paths.len()],
        }
    }

    pub(super) async fn read_all(
        &self,
        requests: Vec<ReadRequest>,
        trusted: Trusted,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Vec<u8>, Problem>> {
        let link = match self.link().await {
            Ok(link) => link,
            Err(problem) => return vec![Err(problem); requests.len()],
        };
        if let Some(sftp) = link.sftp().await {
            return sftp.read_all(&requests, &trusted, &*check).await;
        }
        let access = own();
        Verbs { runner: &First(&link), access: &access, trusted: &trusted }.read_all(&requests, &*check).await
    }

    pub(super) async fn stat_all(
        &self,
        paths: Vec<String>,
        trusted: Trusted,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Option<Metadata>, Problem>> {
        let link = match self.link().await {
            Ok(link) => link,
            Err(problem) => return vec![Err(problem); paths.len()],
        };
        let access = own();
        Verbs { runner: &First(&link), access: &access, trusted: &trusted }.stat_all(&paths, &*check).await
    }

    pub(super) async fn list_all(
        &self,
        paths: Vec<String>,
        trusted: Trusted,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Vec<String>, Problem>> {
        let link = match self.link().await {
            Ok(link) => link,
            Err(problem) => return vec![Err(problem); paths.len()],
        };
        if let Some(sftp) = link.sftp().await {
            return sftp.list_all(&paths, &trusted, &*check).await;
        }
        let access = own();
        Verbs { runner: &First(&link), access: &access, trusted: &trusted }.list_all(&paths, &*check).await
    }

    /// How a command is called, as far as it isn't the command itself; a problem where it can't be started.
    pub(super) async fn head(&self, command: &Command, rights: Rights) -> Result<Head, Problem> {
        let link = self.link().await?;
        self.find(&link, &command.program).await?;
        self.head_on(&link, command, rights).await
    }

    async fn head_on(&self, link: &Arc<Link>, command: &Command, rights: Rights) -> Result<Head, Problem> {
        let names = ["sudo", "timeout"];
        if command.privilege != Privilege::Caller {
            for name in names {
                // Whoever needs it says so below.
                let _ = self.find(link, name).await;
            }
        }
        let known = |name: &str| link.programs.known(name).ok_or_else(|| host_base::program::not_found(name));
        head(command, rights, known)
    }

    /// Over this connection only, where one is given.
    async fn start(&self, command: &Command, rights: Rights, only: Option<u64>) -> Result<Running, Failed> {
        let mut again = true;
        loop {
            let link = self.link().await.map_err(Failed::Before)?;
            if only.is_some_and(|number| number != link.number()) {
                return Err(Failed::Before(link.lost()));
            }
            match self.start_on(&link, &link, command, rights).await {
                // The connection went unnoticed, and nothing was started.
                Err(Failed::Before(problem)) if again && problem.code == "CONNECTION_LOST" => again = false,
                started => return started,
            }
        }
    }

    async fn start_on(
        &self,
        link: &Arc<Link>,
        channels: &Arc<Link>,
        command: &Command,
        rights: Rights,
    ) -> Result<Running, Failed> {
        let prepared = async {
            let program = self.find(link, &command.program).await?;
            let Head { mut argv, ends, .. } = self.head_on(link, command, rights).await?;
            argv.push(program);
            argv.extend(command.args.iter().cloned());
            let environment = link.environment(PATH, &command.env).await?;
            Ok((
                channel::line(&environment, channels.nonce(), &argv, command.stdin.as_ref().map(Vec::len))?,
                ends,
            ))
        };
        let (line, ends): (String, Ends) = prepared.await.map_err(Failed::Before)?;
        Running::start(channels, link, line, command.stdin.clone(), ends).await
    }

    /// Runs to the end, or to the timeout. Dropping the future ends it.
    pub(super) async fn run(&self, command: &Command, rights: Rights) -> Result<Output, Problem> {
        let running = self.start(command, rights, None).await.map_err(Failed::into_problem)?;
        running.finish(command).await
    }

    /// The same of what changes something: where the connection goes in the middle of it, its outcome is unknown.
    pub(super) async fn act(
        &self,
        command: &Command,
        rights: Rights,
        acting: Acting<'_>,
    ) -> Result<Output, Problem> {
        // A server that closes the channel doesn't say it either.
        let uncertain = |problem: Problem| match matches!(&*problem.code, "CONNECTION_LOST" | "IO_ERROR") {
            true => super::uncertain(command, &problem),
            false => problem,
        };
        match self.start(command, rights, Some(acting.connection)).await {
            Err(Failed::Before(problem)) => Err(problem),
            Err(Failed::After(problem)) => Err(uncertain(problem)),
            Ok(running) => running.finish_unless(command, acting.stop.cancelled()).await.map_err(uncertain),
        }
    }

    pub(super) async fn stream(&self, command: &Command, rights: Rights) -> Result<Stream, Problem> {
        let link = self.link().await?;
        let streams = self.beside(&link).await?;
        let running = self.start_on(&link, &streams, command, rights).await.map_err(Failed::into_problem)?;
        Ok(Stream::new(running, command))
    }
}

/// The account's own rights, which no pattern has to allow.
fn own() -> Access {
    Access { privilege: Privilege::Caller, verbs: Vec::new() }
}
