//! A test host with the planner on it. The server runs there, as root or as an account that may use sudo, and speaks MCP
//! over its stdin and stdout.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{Client, Expected, Host, Plan, Snapshot, component, host};

const HOST: &str = "debian1";
const PROGRAM: &str = "/opt/linux-sysadmin/linux-sysadmin";
/// Where the program with fault points is on the host.
const FAULTY: &str = "/run/planner/linux-sysadmin";
const PLANNER: &str = "/run/planner/planner.wasm";
const HOMES: &str = "/var/lib/planner";
/// Nothing that a test waits for takes this long; it only keeps a broken one from hanging.
const PATIENCE: Duration = Duration::from_secs(120);

/// There is one host, and a plan is to be alone on it.
static TURN: Mutex<()> = Mutex::new(());

/// Puts everything back that any of the tests does to the host, however it ended.
const CLEAN: &str = r#"
ip link set dev eth0 up
ip route del 203.0.113.0/24 dev eth0
for unit in $(systemctl list-units --all --plain --no-legend --full 'linux-sysadmin-guard*' | cut -d' ' -f1); do
    systemctl stop "$unit"; systemctl reset-failed "$unit"
done
rm -rf /run/systemd/system/linux-sysadmin-guard* /run/linux-sysadmin-guard*
systemctl daemon-reload
for place in /srv/plan /etc/planner/existing /etc/planner/removed /var/lib/planner/root/.local/state; do
    while mountpoint --quiet "$place"; do umount --lazy "$place"; done
done
chattr -R -i /srv/plan /etc/planner /etc/planner.conf.d
rm -rf /srv/plan /etc/planner /etc/planner.conf.d /run/planner /var/lib/planner /home/admin/.planner
rm -f /etc/sudoers.d/planner
"#;

const PREPARE: &str = r#"
set -e
install -d -m 755 /srv/plan /etc/planner /etc/planner.conf.d /run/planner /var/lib/planner
install -d -m 700 /var/lib/planner/root
install -d -m 700 -o admin -g admin /var/lib/planner/admin /home/admin/.planner
"#;

/// A host that is this test's alone, until it is dropped.
pub struct Machine {
    host: Host,
    program: &'static str,
    _turn: MutexGuard<'static, ()>,
}

/// A process on the host that ends when its stdin does.
pub struct Helper(Child);

impl Machine {
    /// Where hosts can't be had, the test is counted as skipped.
    pub fn new(test: &str) -> Option<Self> {
        let host = host(test, HOST)?;
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let machine = Self { host, program: PROGRAM, _turn: turn };
        machine.clean();
        machine.sh(PREPARE);
        machine.host.put(PLANNER, &std::fs::read(component("planner")).expect("a component"));
        Some(machine)
    }

    /// One where the program is that with fault points. None of the modules that ship is beside it.
    pub fn faulty(test: &str) -> Option<Self> {
        let faulty = crate::faulty(test)?;
        let mut machine = Self::new(test)?;
        machine.host.put(FAULTY, &std::fs::read(faulty).expect("a program"));
        machine.sh(&format!("chmod 0555 {FAULTY}"));
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

    /// A script on the host, by root, which must succeed; gives its stdout.
    pub fn sh(&self, script: &str) -> String {
        self.host.run(&["sh", "-c", script])
    }

    /// Whether a script on the host succeeds.
    pub fn holds(&self, script: &str) -> bool {
        self.host.command(&["sh", "-c", script]).output().expect("xtask runs").status.success()
    }

    /// A file's contents.
    pub fn read(&self, path: &str) -> String {
        self.host.run(&["cat", "--", path])
    }

    /// Whether anything has this name, a dangling link as well.
    pub fn has(&self, path: &str) -> bool {
        self.holds(&format!("test -e '{path}' || test -L '{path}'"))
    }

    /// Waits until a script on the host succeeds.
    pub fn until(&self, script: &str) {
        let begun = Instant::now();
        while !self.holds(script) {
            assert!(begun.elapsed() < PATIENCE, "never came true: {script}");
        }
    }

    /// Whether a process with exactly these arguments runs on the host.
    pub fn runs(&self, argv: &str) -> bool {
        self.holds(&format!("pgrep --full --exact '([^ ]*/)?{argv}'"))
    }

    /// Waits until none does any more.
    pub fn until_ended(&self, argv: &str) {
        self.until(&format!("! pgrep --full --exact '([^ ]*/)?{argv}'"));
    }

    /// Waits until no plan keeps copies any more.
    pub fn until_no_staging(&self) {
        self.until("test -z \"$(find /etc /srv /home -name '.linux-sysadmin-*')\"");
    }

    /// What the host is like.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.host)
    }

    /// The host is as it was.
    #[track_caller]
    pub fn is_still(&self, before: &Snapshot, context: &str) {
        self.is_still_but(before, &[], context);
    }

    /// The host is as it was, but for what the test itself did.
    #[track_caller]
    pub fn is_still_but(&self, before: &Snapshot, expected: &[Expected], context: &str) {
        let differences = before.differences(&self.snapshot(), expected);
        assert!(differences.is_empty(), "{context}\n{}", differences.join("\n"));
    }

    /// Python on the host, until it is dropped. It has said a line, which comes too.
    pub fn helper(&self, script: &str) -> (Helper, String) {
        let mut command = self.host.command(&["python3", "-c", script]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 is on the host");
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().expect("stdout")).read_line(&mut said).expect("UTF-8");
        (Helper(child), said.trim().to_owned())
    }

    /// `linux-sysadmin` with these arguments, at home in a directory of this name below [`HOMES`], as this account.
    fn command(&self, account: &str, home: &str, args: &[&str]) -> Command {
        self.command_with(account, home, &[], args)
    }

    fn command_with(&self, account: &str, home: &str, env: &[&str], args: &[&str]) -> Command {
        let pid_file = format!("/run/planner/{home}.pid");
        let home = format!("HOME={HOMES}/{home}");
        // What runs in the end is this very process: its number is the server's.
        let note = ["sh", "-c", "echo $$ > \"$0\"; exec \"$@\"", &pid_file];
        let ids = [format!("--reuid={account}"), format!("--regid={account}")];
        let as_account = ["setpriv", &ids[0], &ids[1], "--init-groups"];
        let plain = ["env", "-i", "-C", "/", "PATH=/usr/sbin:/usr/bin", &home];
        self.host.command(&[&note[..], &as_account, &plain, env, &[self.program], args].concat())
    }

    /// Runs `linux-sysadmin` as this account, in the home of this name; gives the exit code and what it said, with lines
    /// that were folded in one.
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
        let directory = format!("{HOMES}/{home}/.config/linux-sysadmin");
        self.sh(&format!("install -d -m 700 {HOMES}/{home}/.config {directory}"));
        self.host.put(&format!("{directory}/config.yaml"), yaml.as_bytes());
        self.sh(&format!("chown -R --reference={HOMES}/{home} {HOMES}/{home}/.config"));
    }

    /// A server of root's, in root's own home, with the planner.
    pub async fn serve(&self) -> Client {
        self.serve_as("root", "root").await
    }

    /// A server of this account's, in the home of this name.
    pub async fn serve_as(&self, account: &str, home: &str) -> Client {
        self.serve_until(account, home, "").await
    }

    /// The same, to be ended or to fail at a point: `kill@POINT`, `fail@POINT`.
    pub async fn serve_until(&self, account: &str, home: &str, fault: &str) -> Client {
        self.make_home(account, home);
        if !self.holds(&format!("test -d {HOMES}/{home}/.local/share/linux-sysadmin/modules")) {
            let sha256 =
                hex::encode(Sha256::digest(std::fs::read(component("planner")).expect("a component")));
            let add = ["modules", "add", PLANNER, "--yes", "--sha256", &sha256];
            let added = self.command(account, home, &add).output().expect("xtask runs");
            assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        }
        self.serving(account, home, fault).await
    }

    /// The same with nothing but what ships, unless more was added to this home.
    pub async fn serve_shipped(&self, account: &str, home: &str) -> Client {
        self.make_home(account, home);
        self.serving(account, home, "").await
    }

    async fn serving(&self, account: &str, home: &str, fault: &str) -> Client {
        let fault = format!("LINUX_SYSADMIN_FAULT={fault}");
        let mut client = Client::start_command(self.command_with(account, home, &[&fault], &["serve"]));
        client.initialize("2025-06-18").await;
        client
    }

    fn make_home(&self, account: &str, home: &str) {
        self.sh(&format!("install -d -m 700 -o {account} -g {account} {HOMES}/{home}"));
    }

    /// Sends a signal to the server in this home, and to nothing else.
    pub fn signal(&self, home: &str, signal: &str) {
        self.sh(&format!("kill -s {signal} $(cat /run/planner/{home}.pid)"));
    }

    /// What is on record in this home.
    pub fn audit(&self, home: &str) -> Vec<Value> {
        let path = format!("{HOMES}/{home}/.local/state/linux-sysadmin/audit.jsonl");
        if !self.has(&path) {
            return Vec::new();
        }
        let complete = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        self.read(&path).lines().map(complete).collect()
    }

    /// Waits for a record of this event in this home, and gives the last one.
    pub fn recorded(&self, home: &str, event: &str) -> Value {
        let path = format!("{HOMES}/{home}/.local/state/linux-sysadmin/audit.jsonl");
        self.until(&format!("grep --quiet '\"event\":\"{event}\"' {path}"));
        let of_event = |record: &Value| record["event"] == event;
        self.audit(home).into_iter().rfind(of_event).expect("it is there")
    }

    /// What is on record is whole, says the program.
    #[track_caller]
    pub fn audit_is_valid(&self, account: &str, home: &str) {
        let verified = self.command(account, home, &["audit", "verify"]).output().expect("xtask runs");
        let said = [&verified.stdout[..], &verified.stderr].concat();
        assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&said));
    }

    /// Neither a guard nor a staging directory is anywhere.
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
    /// Ends it, and gives what it said besides.
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

    /// The same of a plan that is asked about: it is shown, and confirmed in a second call.
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

    /// Begins to apply a plan and doesn't wait; gives the request's id.
    pub async fn begin(&mut self, arguments: Value) -> i64 {
        let meta = json!({"progressToken": "plan"});
        let params = json!({"name": "planner_apply", "arguments": arguments, "_meta": meta});
        self.ask("tools/call", params).await
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

    /// Cancels a request; the server has taken note of it when this returns.
    pub async fn cancel(&mut self, id: i64) {
        let params = json!({"requestId": id, "reason": "enough"});
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
        self.request("ping", json!({})).await;
    }
}
