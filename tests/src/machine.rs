//! A test host with the planner on it. The server speaks MCP over its stdin and stdout. It runs on the host, as root or as
//! an account that may use sudo, or in the lab, from where it reaches the host as that account over SSH.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{Client, Expected, Host, Lab, Plan, Snapshot, component, has_fault_points, host};

const PROGRAM: &str = "/opt/linux-sysadmin/linux-sysadmin";
/// The path of a copy of the program on the host, without modules beside it.
const FAULTY: &str = "/run/planner/linux-sysadmin";
const HOMES: &str = "/var/lib/planner";
/// The compile caches of the host's accounts. Otherwise each home would compile the same modules anew.
const CACHES: &str = "/var/lib/planner-cache";
/// The path of the audit log in a home.
const RECORD: &str = ".local/state/linux-sysadmin/audit.jsonl";
/// The time after which a test that hangs fails. Nothing that a test waits for takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Puts everything back that any of the tests does to the host, also after a failure.
const CLEAN: &str = r#"
ip link set dev eth0 up
ip route del 203.0.113.0/24 dev eth0
for unit in $(systemctl list-units --all --plain --no-legend --full 'linux-sysadmin-guard*' | cut -d' ' -f1); do
    systemctl stop "$unit"; systemctl reset-failed "$unit"
done
guards=$(ls -d /run/systemd/system/linux-sysadmin-guard* 2>/dev/null)
rm -rf $guards /run/linux-sysadmin-guard*
test -z "$guards" || systemctl daemon-reload
for place in /srv/plan /srv/planner/existing /srv/planner/removed /var/lib/planner/root/.local/state; do
    while mountpoint --quiet "$place"; do umount --lazy "$place"; done
done
chattr -R -i /srv/plan /srv/planner /srv/planner.conf.d
rm -rf /srv/plan /srv/planner /srv/planner.conf.d /run/planner /var/lib/planner /home/admin/.planner
rm -f /etc/sudoers.d/planner
"#;

const PREPARE: &str = r#"
set -e
install -d -m 755 /srv/plan /srv/planner /srv/planner.conf.d /run/planner /var/lib/planner
install -d -m 700 /var/lib/planner/root
install -d -m 700 -o admin -g admin /var/lib/planner/admin /home/admin/.planner
# Debian's sudo leaves a file in the home of who uses it first, which no test has changed.
runuser -u admin -- sudo -n true || :
"#;

/// Gives an account of the host's distribution a home with an authorized key.
const LET_IN: &str = r#"
set -e
home=$(getent passwd "$1" | cut -d: -f6)
install -d -o "$1" -g "$1" "$home" "$home/.ssh"
install -m 600 -o "$1" -g "$1" /root/.ssh/authorized_keys "$home/.ssh/authorized_keys"
"#;

/// The place where the server runs, with the name of the host that it works on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reach {
    /// The server runs on the host itself.
    Inside(&'static str),
    /// The server runs in the lab.
    OverSsh(&'static str),
}

impl Reach {
    /// The host's name.
    pub fn host(self) -> &'static str {
        let (Self::Inside(host) | Self::OverSsh(host)) = self;
        host
    }
}

/// A host that only this test uses until it is dropped.
pub struct Machine {
    host: Host,
    program: &'static str,
    reach: Reach,
    /// The account of the servers that reach the host over SSH.
    lab: Option<Lab>,
    /// Locks the host for this test, since a plan has to be alone on it.
    _turn: File,
}

/// A process on the host that ends when its stdin does.
pub struct Helper(Child);

/// A process that kills a server in a moment.
pub struct Killer(Child);

impl Killer {
    /// Waits until the server is killed.
    pub fn wait(mut self) {
        self.0.wait().expect("waited for");
    }
}

impl Machine {
    /// Takes debian1, on which the server runs. Where there can be no hosts, the test is counted as skipped.
    pub fn new(test: &str) -> Option<Self> {
        Self::by(Reach::Inside("debian1"), test)
    }

    /// Takes the host of `reach`, for a server that runs there or in the lab.
    pub fn by(reach: Reach, test: &str) -> Option<Self> {
        let test = format!("{test} ({reach:?})");
        let host = host(&test, reach.host())?;
        let turn = host.turn("turn.lock");
        turn.lock().expect("a turn");
        let mut machine =
            Self { host, program: PROGRAM, reach: Reach::Inside(reach.host()), lab: None, _turn: turn };
        machine.clean();
        machine.sh(PREPARE);
        machine.now(reach, &test);
        // The planner's files are root's, and a plan that writes them asks.
        for home in ["root", "admin"] {
            machine.configure(home, "safety:\n  confirmation_threshold: critical\n");
        }
        Some(machine)
    }

    /// Servers that start from now on run where `reach` says. The host stays the same.
    pub fn now(&mut self, reach: Reach, test: &str) {
        assert_eq!(reach.host(), self.reach.host(), "the host stays the same");
        if let (Reach::OverSsh(_), None) = (reach, &self.lab) {
            self.lab = Lab::beside_others(test);
        }
        self.reach = reach;
    }

    /// Takes debian1 for a program that can be made to fail and has no modules beside it. Where the program under test can't
    /// be made to fail, the test is counted as skipped.
    pub fn faulty(test: &str) -> Option<Self> {
        if !has_fault_points(test) {
            return None;
        }
        let mut machine = Self::new(test)?;
        machine.sh(&format!("install -m 555 {PROGRAM} {FAULTY}"));
        machine.program = FAULTY;
        Some(machine)
    }

    fn clean(&self) {
        let _ = self.host.command(&["sh", "-c", CLEAN]).output();
    }

    /// The host itself.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Runs a script on the host as root, which must succeed; gives its stdout.
    pub fn sh(&self, script: &str) -> String {
        self.host.run(&["sh", "-c", script])
    }

    /// Whether a script on the host succeeds.
    pub fn holds(&self, script: &str) -> bool {
        self.host.holds(script)
    }

    /// A file's contents.
    pub fn read(&self, path: &str) -> String {
        self.host.run(&["cat", "--", path])
    }

    /// Whether there is something at this path, which may be a dangling link.
    pub fn has(&self, path: &str) -> bool {
        self.holds(&format!("test -e '{path}' || test -L '{path}'"))
    }

    /// Waits until a script on the host succeeds.
    pub fn until(&self, script: &str) {
        self.host.until(script);
    }

    /// Whether a process with exactly these arguments runs on the host.
    pub fn runs(&self, argv: &str) -> bool {
        self.holds(&format!("pgrep --full --exact '([^ ]*/)?{argv}'"))
    }

    /// Waits until no such process runs any more.
    pub fn until_ended(&self, argv: &str) {
        self.until(&format!("! pgrep --full --exact '([^ ]*/)?{argv}'"));
    }

    /// Waits until no plan has copies of files any more.
    pub fn until_no_staging(&self) {
        self.until("test -z \"$(find /etc /srv /home -name '.linux-sysadmin-*')\"");
    }

    /// A snapshot of the host.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.host)
    }

    /// Asserts that the host is as it was.
    #[track_caller]
    pub fn is_still(&self, before: &Snapshot, context: &str) {
        self.is_still_but(before, &[], context);
    }

    /// Asserts that the host is as it was, except for what the test itself has done.
    #[track_caller]
    pub fn is_still_but(&self, before: &Snapshot, expected: &[Expected], context: &str) {
        let differences = before.differences(&self.snapshot(), expected);
        assert!(differences.is_empty(), "{context}\n{}", differences.join("\n"));
    }

    /// Starts a script of Python on the host, which ends when the helper is dropped; gives also the first line that it
    /// prints.
    pub fn helper(&self, script: &str) -> (Helper, String) {
        let mut command = self.host.command(&["python3", "-c", script]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 is on the host");
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().expect("stdout")).read_line(&mut said).expect("UTF-8");
        (Helper(child), said.trim().to_owned())
    }

    /// The lab, where the server runs in it.
    pub fn lab(&self) -> Option<&Lab> {
        self.lab.as_ref().filter(|_| matches!(self.reach, Reach::OverSsh(_)))
    }

    /// The path of the home of this name, on the host or in the lab.
    pub fn home(&self, home: &str) -> PathBuf {
        match self.lab() {
            None => PathBuf::from(HOMES).join(home),
            Some(lab) => lab.home().path().join("homes").join(home),
        }
    }

    /// A command that runs `linux-sysadmin` with these arguments as this account, in the home of this name.
    fn command(&self, account: &str, home: &str, args: &[&str]) -> Command {
        self.command_with(account, home, &[], args)
    }

    fn command_with(&self, account: &str, home: &str, env: &[&str], args: &[&str]) -> Command {
        let own = format!("HOME={}", self.home(home).display());
        let pid_file = self.pid_file(home);
        // The shell becomes the server, so its process id is the server's.
        let note = ["sh", "-c", "echo $$ > \"$0\"; exec \"$@\"", pid_file.to_str().expect("UTF-8")];
        let Some(lab) = self.lab() else {
            let ids = [format!("--reuid={account}"), format!("--regid={account}")];
            let as_account = ["setpriv", &ids[0], &ids[1], "--init-groups"];
            let cache = format!("XDG_CACHE_HOME={}", Self::cache(account));
            let plain = ["env", "-i", "-C", "/", "PATH=/usr/sbin:/usr/bin", &own, &cache];
            return self.host.command(&[&note[..], &as_account, &plain, env, &[self.program], args].concat());
        };
        let alias = lab.alias(self.reach.host(), account);
        let reaching: &[&str] = if matches!(args[0], "serve" | "call") { &["--host", &alias] } else { &[] };
        lab.program_by(&[&note[..], &["env", &own], env].concat(), &[args, reaching].concat())
    }

    fn pid_file(&self, home: &str) -> PathBuf {
        match self.lab() {
            None => PathBuf::from(format!("/run/planner/{home}.pid")),
            Some(_) => self.home(home).with_extension("pid"),
        }
    }

    /// Runs `linux-sysadmin` as this account, in the home of this name; gives the exit code and the output, in which folded
    /// lines are joined.
    pub fn says(&self, account: &str, home: &str, args: &[&str]) -> (Option<i32>, String) {
        let output = self.command(account, home, args).output().expect("xtask runs");
        let said = [&output.stdout[..], &output.stderr].concat();
        (output.status.code(), String::from_utf8(said).expect("UTF-8").replace("\n  ", " "))
    }

    /// Runs `linux-sysadmin` as root.
    pub fn program(&self, args: &[&str]) -> Output {
        self.command("root", "root", args).output().expect("xtask runs")
    }

    /// Writes the configuration of this home, as YAML.
    pub fn configure(&self, home: &str, yaml: &str) {
        let directory = self.home(home).join(".config/linux-sysadmin");
        if self.lab().is_some() {
            fs::create_dir_all(&directory).expect("a directory");
            fs::write(directory.join("config.yaml"), yaml).expect("written");
            return;
        }
        let (directory, home) = (directory.display(), self.home(home));
        self.sh(&format!("install -d -m 700 {0}/.config {directory}", home.display()));
        self.host.put(&format!("{directory}/config.yaml"), yaml.as_bytes());
        self.sh(&format!("chown -R --reference={0} {0}/.config", home.display()));
    }

    /// Removes the configuration from the home of this name, as it is before anybody has made one.
    pub fn unconfigure(&self, home: &str) {
        let file = self.home(home).join(".config/linux-sysadmin/config.yaml");
        match self.lab() {
            Some(_) => fs::remove_file(file).expect("removed"),
            None => drop(self.sh(&format!("rm -- {}", file.display()))),
        }
    }

    /// Starts a server as root, in root's home, with the planner.
    pub async fn serve(&self) -> Client {
        self.serve_as("root", "root").await
    }

    /// Starts a server as this account, in the home of this name, with the planner.
    pub async fn serve_as(&self, account: &str, home: &str) -> Client {
        self.serve_until(account, home, "").await
    }

    /// Does the same for a server that is killed or fails at a point: `kill@POINT`, `fail@POINT`.
    pub async fn serve_until(&self, account: &str, home: &str, fault: &str) -> Client {
        self.make_home(account, home);
        if !self.has_at_home(home, ".local/share/linux-sysadmin/modules") {
            self.add(account, home, "planner");
        }
        self.serving(account, home, fault).await
    }

    /// Starts a server as this account, in the home of this name, with the modules that ship and those added to this home.
    pub async fn serve_shipped(&self, account: &str, home: &str) -> Client {
        self.make_home(account, home);
        self.serving(account, home, "").await
    }

    /// Adds one of the tests' own components to this home, as an operator who agrees to everything.
    pub fn add(&self, account: &str, home: &str, name: &str) {
        self.make_home(account, home);
        let file = component(name).canonicalize().expect("a component");
        let bytes = fs::read(&file).expect("a component");
        let there = format!("/run/planner/{name}.wasm");
        let file = match self.lab() {
            Some(_) => file.to_str().expect("UTF-8"),
            None => {
                self.host.put(&there, &bytes);
                &there
            }
        };
        let sha256 = hex::encode(Sha256::digest(bytes));
        let add = ["modules", "add", file, "--yes", "--sha256", &sha256];
        let added = self.command(account, home, &add).output().expect("xtask runs");
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    }

    async fn serving(&self, account: &str, home: &str, fault: &str) -> Client {
        let fault = format!("LINUX_SYSADMIN_FAULT={fault}");
        let mut client = Client::start_command(self.command_with(account, home, &[&fault], &["serve"]));
        client.initialize("2025-06-18").await;
        client
    }

    fn make_home(&self, account: &str, home: &str) {
        let directory = self.home(home);
        if self.lab().is_none() {
            self.sh(&format!("install -d -m 700 -o {account} -g {account} {}", directory.display()));
            self.fill_cache(account);
            return;
        }
        fs::create_dir_all(&directory).expect("a directory");
        fs::set_permissions(&directory, Permissions::from_mode(0o700)).expect("a mode");
        if !["root", "admin"].contains(&account) {
            self.host.run(&["sh", "-c", LET_IN, "sh", account]);
        }
    }

    /// The directory for an account's compiled modules, beside its homes.
    pub fn cache(account: &str) -> String {
        format!("{CACHES}/{account}")
    }

    /// Copies the modules that the tests have compiled to the account, where it has none yet.
    fn fill_cache(&self, account: &str) {
        let cache = Self::cache(account);
        if self.holds(&format!("test \"$(stat -c %U {cache})\" = {account}")) {
            return;
        }
        self.sh(&format!("rm -rf {cache}; install -d -m 755 {CACHES}"));
        self.host.warm(account, &cache);
    }

    fn has_at_home(&self, home: &str, path: &str) -> bool {
        let path = self.home(home).join(path);
        if self.lab().is_some() { path.exists() } else { self.has(path.to_str().expect("UTF-8")) }
    }

    fn read_at_home(&self, home: &str, path: &str) -> String {
        let path = self.home(home).join(path);
        match self.lab() {
            None => self.read(path.to_str().expect("UTF-8")),
            Some(_) => fs::read_to_string(path).expect("UTF-8"),
        }
    }

    /// The process id of the server in this home, on the machine where the server runs.
    pub fn server(&self, home: &str) -> u32 {
        let file = self.pid_file(home);
        let said = match self.lab() {
            None => self.read(file.to_str().expect("UTF-8")),
            Some(_) => fs::read_to_string(file).expect("a server was started"),
        };
        said.trim().parse().expect("a number")
    }

    /// Sends a signal to the server in this home, and to no other process.
    pub fn signal(&self, home: &str, signal: &str) {
        let number = self.server(home).to_string();
        let kill = ["kill", "-s", signal, &number];
        match self.lab() {
            None => self.host.run(&kill),
            Some(lab) => lab.run(&kill),
        };
    }

    /// Kills the server in this home after this time, which begins when this returns.
    pub fn kills_after(&self, home: &str, moment: Duration) -> Killer {
        let number = self.server(home).to_string();
        let seconds = format!("{:.4}", moment.as_secs_f64());
        let wait = ["sh", "-c", "echo; read go; sleep \"$0\"; kill -s KILL \"$1\"", &seconds, &number];
        let mut command = match self.lab() {
            None => self.host.command(&wait),
            Some(lab) => lab.command(&wait),
        };
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().expect("stdout")).read_line(&mut ready).expect("UTF-8");
        drop(child.stdin.take().expect("stdin"));
        Killer(child)
    }

    /// The records of the audit log in this home.
    pub fn audit(&self, home: &str) -> Vec<Value> {
        if !self.has_at_home(home, RECORD) {
            return Vec::new();
        }
        let complete = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        // The last line may be incomplete while it is written.
        let text = self.read_at_home(home, RECORD);
        text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(complete).collect()
    }

    /// Waits for a record of this event in this home; gives the last one.
    pub fn recorded(&self, home: &str, event: &str) -> Value {
        let begun = Instant::now();
        loop {
            let last = self.audit(home).into_iter().rfind(|record| record["event"] == event);
            if let Some(record) = last {
                return record;
            }
            assert!(begun.elapsed() < PATIENCE, "never on record: {event}");
        }
    }

    /// Asserts that the program finds the audit log valid.
    #[track_caller]
    pub fn audit_is_valid(&self, account: &str, home: &str) {
        let verified = self.command(account, home, &["audit", "verify"]).output().expect("xtask runs");
        let said = [&verified.stdout[..], &verified.stderr].concat();
        assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&said));
    }

    /// Asserts that there is no guard and no staging directory.
    #[track_caller]
    pub fn nothing_is_left_behind(&self) {
        let units = self.sh("systemctl list-units --all --plain --no-legend --full 'linux-sysadmin-guard*'");
        assert_eq!(units, "", "units of a guard");
        let files = self.sh("find /etc /srv /home /run /var /usr/lib/systemd -xdev \
             \\( -name '.linux-sysadmin-*' -o -name 'linux-sysadmin-guard*' \\) 2>/dev/null || :");
        assert_eq!(files, "", "files of a plan");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.clean();
    }
}

impl Helper {
    /// Ends the process; gives the rest of its output.
    pub fn end(mut self) -> String {
        drop(self.0.stdin.take());
        let mut said = String::new();
        let mut stdout = BufReader::new(self.0.stdout.take().expect("stdout"));
        while stdout.read_line(&mut said).expect("UTF-8") > 0 {}
        assert!(self.0.wait().expect("it ends").success(), "{said}");
        said
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

impl Client {
    /// Applies a plan; gives the envelope.
    pub async fn apply(&mut self, plan: &Plan) -> Value {
        self.envelope("planner_apply", plan.apply()).await
    }

    /// Applies a plan that is asked about: it is shown, and confirmed in a second call.
    pub async fn apply_confirmed(&mut self, plan: &Plan) -> Value {
        let asked = self.apply(plan).await;
        assert_eq!(asked["status"], "confirmation_required", "{asked}");
        let mut confirmed = plan.apply();
        confirmed["confirmed"] = json!(true);
        self.envelope("planner_apply", confirmed).await
    }

    /// Applies a plan that works; gives the outputs.
    pub async fn done(&mut self, plan: &Plan) -> Vec<Value> {
        let envelope = self.apply(plan).await;
        assert_eq!(envelope["status"], "success", "{envelope}");
        assert_eq!(envelope["data"]["applied"]["dry_run"], false, "{envelope}");
        envelope["data"]["applied"]["outputs"].as_array().expect("outputs").clone()
    }

    /// Begins to apply a plan without waiting; gives the request's id.
    pub async fn begin(&mut self, arguments: Value) -> i64 {
        // The token tells this call's progress from that of others, which is repeated.
        let token = format!("plan {}", self.begun());
        let meta = json!({"progressToken": token});
        let params = json!({"name": "planner_apply", "arguments": arguments, "_meta": meta});
        self.ask("tools/call", params).await
    }

    /// Waits until this request, which was begun, says that it pauses.
    pub async fn until_paused(&mut self, id: i64) {
        let token = json!(format!("plan {}", id - 1));
        let is_paused = |message: &Value| {
            let params = &message["params"];
            params["progressToken"] == token && params["message"].to_string().contains("paused")
        };
        self.receive_where(is_paused).await;
    }

    /// The envelope of a request that was begun.
    pub async fn outcome(&mut self, id: i64) -> Value {
        self.answer(id).await["result"]["structuredContent"].clone()
    }

    /// Waits until a process with exactly these arguments runs on the host, as part of what this request began.
    pub async fn until_runs(&mut self, machine: &Machine, id: i64, argv: &str) {
        let begun = Instant::now();
        while !machine.runs(argv) {
            let early = tokio::time::timeout(Duration::from_millis(1), self.answer(id)).await;
            assert!(early.is_err(), "there is an answer before `{argv}` ran: {early:?}");
            assert!(begun.elapsed() < PATIENCE, "never ran: {argv}");
        }
    }

    /// Cancels a request. The server has read the notification when this returns.
    pub async fn cancel(&mut self, id: i64) {
        let params = json!({"requestId": id, "reason": "enough"});
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
        self.request("ping", json!({})).await;
    }
}
