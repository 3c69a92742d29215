//! Calls that take longer than a client waits go on as jobs. A job has all output of its commands, belongs to the agent that
//! names itself, and leaves nothing behind when it is cancelled or the server ends.

use std::io::Write;
use std::process::{Child, ChildStdin, Stdio};

use linux_sysadmin_tests::{Client, Lab, Plan, Step};
use serde_json::{Value, json};

/// A protocol version with a handshake, and one without.
const GENERATIONS: [&str; 2] = ["2025-06-18", "2026-07-28"];

const HOST: &str = "debian1";
const PIPE: &str = "/srv/plan/pipe";
const MADE: &str = "/srv/plan/made";
/// Succeeds where the command of a job still runs. The brackets keep the script from finding itself.
const IS_READ: &str =
    "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -q 'cat -- /srv/plan/[p]ipe'";
/// The variable by which a person sets the seconds of the long job, with one line each second. Otherwise the job takes only
/// as long as its lines.
const SECONDS: &str = "LINUX_SYSADMIN_JOB_SECONDS";

/// Writes what the command of a job reads. The job goes on for as long as this exists.
struct Writer {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Writer {
    fn new(lab: &Lab) -> Self {
        lab.host(HOST).run(&["sh", "-c", "rm -rf /srv/plan && mkdir -p /srv/plan && mkfifo /srv/plan/pipe"]);
        let mut command = lab.host(HOST).command(&["sh", "-c", "exec cat > /srv/plan/pipe"]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("xtask runs");
        let pipe = child.stdin.take();
        Self { child, pipe }
    }

    fn say(&mut self, line: &str) {
        let pipe = self.pipe.as_mut().expect("it is open");
        pipe.write_all(format!("{line}\n").as_bytes()).expect("it is read");
        pipe.flush().expect("it is read");
    }

    /// Ends the input of the job.
    fn end(mut self) {
        drop(self.pipe.take());
        self.child.wait().expect("it ends");
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The seconds that a person has set for the long jobs.
fn seconds() -> Option<u64> {
    std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok())
}

/// Waits a second between two lines, where a person has set the seconds.
async fn pause() {
    if seconds().is_some() {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}

fn lab(test: &str) -> Option<Lab> {
    let lab = Lab::new(test)?;
    lab.add_planner();
    // A job has the only slot. Calls that ask about the job or end it have another one.
    lab.settle_for(
        "jobs: {after_seconds: 1}\nmodules: {limits: {calls_at_once: 1}}\nsafety: {confirmation_threshold: critical}\n",
    );
    Some(lab)
}

async fn served(lab: &Lab, generation: &str, capabilities: Value) -> Client {
    let mut client = lab.serve(&[]);
    client.can(capabilities);
    client.initialize(generation).await;
    client
}

/// A plan that makes a file and then prints what the writer writes.
fn reading() -> Value {
    let read = Step::run(&["cat", "--", PIPE]).with("duration", "long-running");
    let mut apply = Plan::of([Step::write(MADE, "made\n"), read]).apply();
    apply["host"] = HOST.into();
    apply
}

/// Begins a call that becomes a job; gives the job's id.
async fn begun(client: &mut Client, arguments: Value) -> String {
    let envelope = client.envelope("planner_apply", arguments).await;
    assert_eq!(
        (&envelope["status"], &envelope["target_host"]),
        (&json!("running"), &json!(HOST)),
        "{envelope}"
    );
    envelope["job_id"].as_str().expect("a job").to_owned()
}

async fn output(client: &mut Client, id: &str, offset: u64, wait: u64) -> Value {
    let arguments = json!({"id": id, "offset": offset, "wait_seconds": wait});
    let envelope = client.envelope("job_output", arguments).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
    envelope["data"].clone()
}

/// Waits for the end of a job; gives the job and all of its output.
async fn ended(client: &mut Client, id: &str) -> (Value, String) {
    let (mut offset, mut said) = (0, String::new());
    loop {
        let told = output(client, id, offset, 40).await;
        assert_eq!(told.get("lost"), None, "nothing is lost where it is asked for in time: {told}");
        said += told["output"].as_str().expect("text");
        offset = told["next_offset"].as_u64().expect("a line");
        if told["status"] != "running" {
            return (told, said);
        }
    }
}

async fn until_done(client: &mut Client, id: &str, done: impl Fn(&Value) -> bool) {
    loop {
        let told = output(client, id, 0, 0).await;
        if done(&told) {
            return;
        }
        assert_eq!(told["status"], "running", "{told}");
    }
}

#[tokio::test]
async fn a_long_call_is_a_job_that_says_everything_to_whoever_comes_back() {
    let Some(lab) = lab("a_long_call_is_a_job_that_says_everything_to_whoever_comes_back") else { return };
    for generation in GENERATIONS {
        let mut writer = Writer::new(&lab);
        let mut client = served(&lab, generation, json!({})).await;
        let id = begun(&mut client, reading()).await;
        let listed = client.envelope("job_list", json!({})).await;
        assert_eq!((&listed["data"][0]["id"], &listed["data"][0]["status"]), (&json!(id), &json!("running")));
        // No call asks about the job meanwhile.
        let lines = seconds().unwrap_or(2_000);
        for number in 0..lines {
            writer.say(&format!("line {number}"));
            pause().await;
        }
        writer.end();
        let (told, said) = ended(&mut client, &id).await;
        let told_lines: Vec<&str> = said.lines().filter(|line| line.starts_with("line ")).collect();
        let expected: Vec<String> = (0..lines).map(|number| format!("line {number}")).collect();
        assert_eq!(told_lines, expected, "every line, once, in order");
        assert_eq!(
            (&told["status"], &told["result"]["status"]),
            (&json!("done"), &json!("success")),
            "{told}"
        );
        assert_eq!(told["result"]["data"]["applied"]["outputs"][0]["exit_code"], 0, "{told}");
        assert!(!lab.host(HOST).holds(IS_READ));
        assert!(client.close().await.0.success());
    }
}

#[tokio::test]
async fn a_command_of_the_callers_choice_is_read_while_it_runs_and_ended_with_all_that_it_started() {
    let Some(lab) =
        lab("a_command_of_the_callers_choice_is_read_while_it_runs_and_ended_with_all_that_it_started")
    else {
        return;
    };
    let mut client = served(&lab, GENERATIONS[0], json!({})).await;
    let is_run = "pgrep --exact vmstat";
    for (rows, is_cancelled) in [(seconds().unwrap_or(4), false), (3600, true)] {
        let pipeline = json!([["vmstat", "1", rows.to_string()], ["cat", "-"]]);
        let arguments = json!({"pipeline": pipeline, "host": HOST, "timeout_seconds": 7200});
        let envelope = client.envelope("command_run", arguments).await;
        assert_eq!(envelope["status"], "running", "{envelope}");
        let id = envelope["job_id"].as_str().expect("a job").to_owned();
        until_done(&mut client, &id, |told| told["output"].to_string().contains("procs")).await;
        assert!(lab.host(HOST).holds(is_run));
        if is_cancelled {
            let cancelled = client.envelope("job_cancel", json!({"id": id, "wait_seconds": 40})).await;
            assert_eq!(cancelled["data"]["status"], "cancelled", "{cancelled}");
            // A command that only looks is told to end, and the answer doesn't wait for its end.
            lab.host(HOST).until(&format!("! {is_run}"));
        } else {
            let (told, said) = ended(&mut client, &id).await;
            let is_row = |line: &&str| line.trim_start().starts_with(|first: char| first.is_ascii_digit());
            assert_eq!(said.lines().filter(is_row).count() as u64, rows, "{said}");
            let commands = &told["result"]["data"]["commands"];
            // The answer leaves out the middle of a long output, and says how much.
            let shown = commands[1]["stdout"].as_str().expect("text");
            let is_whole = commands[1].get("stdout_bytes_left_out").is_none();
            assert_eq!(shown.lines().filter(is_row).count() as u64 == rows, is_whole, "{told}");
            assert_eq!(
                (&commands[0]["exit_code"], &commands[1]["exit_code"]),
                (&json!(0), &json!(0)),
                "{told}"
            );
        }
        assert!(!lab.host(HOST).holds(is_run));
    }
    assert!(client.close().await.0.success());
}

#[tokio::test]
async fn a_cancelled_job_is_undone_and_says_what_was() {
    let Some(lab) = lab("a_cancelled_job_is_undone_and_says_what_was") else { return };
    for generation in GENERATIONS {
        let mut writer = Writer::new(&lab);
        let mut client = served(&lab, generation, json!({})).await;
        let id = begun(&mut client, reading()).await;
        writer.say("line 0");
        until_done(&mut client, &id, |told| told["output"].to_string().contains("line 0")).await;
        assert!(lab.host(HOST).holds(IS_READ));
        let before = client.envelope("job_cancel", json!({"id": id, "dry_run": true})).await;
        assert_eq!(
            (&before["dry_run"], &before["data"]["status"]),
            (&json!(true), &json!("running")),
            "{before}"
        );
        let locked = client.envelope("ssh_disconnect", json!({"host": HOST})).await;
        assert_eq!(locked["error_code"], "RESOURCE_LOCKED", "{locked}");
        let cancelled = client.envelope("job_cancel", json!({"id": id, "wait_seconds": 40})).await;
        assert_eq!(cancelled["data"]["status"], "cancelled", "{cancelled}");
        let result = &cancelled["data"]["result"];
        assert_eq!(result["error_code"], "CANCELLED", "{cancelled}");
        assert!(result["undone"].to_string().contains(MADE), "it says what was undone: {cancelled}");
        assert!(!lab.host(HOST).holds(IS_READ) && !lab.host(HOST).holds("test -e /srv/plan/made"));
        let free = client.envelope("ssh_disconnect", json!({"host": HOST})).await;
        assert_eq!(free["data"]["was_connected"], true, "{free}");
        assert!(client.close().await.0.success());
    }
}

#[tokio::test]
async fn with_the_server_its_jobs_end_and_nothing_is_left() {
    let Some(lab) = lab("with_the_server_its_jobs_end_and_nothing_is_left") else { return };
    let mut writer = Writer::new(&lab);
    let mut client = served(&lab, GENERATIONS[0], json!({})).await;
    let id = begun(&mut client, reading()).await;
    writer.say("line 0");
    until_done(&mut client, &id, |told| told["output"].to_string().contains("line 0")).await;
    assert!(lab.host(HOST).holds(IS_READ));
    assert!(client.close().await.0.success());
    assert!(!lab.host(HOST).holds(IS_READ) && !lab.host(HOST).holds("test -e /srv/plan/made"));
    let records = lab.home().audit();
    let change = |event: &str| records.iter().filter(|record| record["event"] == event).count();
    assert_eq!((change("change-begun"), change("change-ended")), (1, 1), "{records:?}");
}

#[tokio::test]
async fn a_client_that_knows_tasks_gets_one() {
    let Some(lab) = lab("a_client_that_knows_tasks_gets_one") else { return };
    let mut writer = Writer::new(&lab);
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut client = served(&lab, GENERATIONS[1], tasks).await;
    let mut older = reading();
    older["change"] = older["plan"].take();
    let task = client.call("planner_apply", older).await;
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
    let id = task["taskId"].as_str().expect("an id").to_owned();
    let of = |id: &str| json!({"taskId": id});
    let working = client.request("tasks/get", of(&id)).await;
    assert_eq!(working["result"]["status"], "working", "{working}");
    writer.say("line 0");
    writer.end();
    ended(&mut client, &id).await;
    let completed = client.request("tasks/get", of(&id)).await;
    assert_eq!(completed["result"]["status"], "completed", "{completed}");
    let envelope = &completed["result"]["result"]["structuredContent"];
    let note = "understood: change as plan";
    assert_eq!(
        (&envelope["status"], &envelope["notes"][0]),
        (&json!("success"), &json!(note)),
        "{completed}"
    );

    let _writer = Writer::new(&lab);
    let task = client.call("planner_apply", reading()).await;
    let id = task["taskId"].as_str().expect("an id").to_owned();
    client.request("tasks/cancel", of(&id)).await;
    let (told, _) = ended(&mut client, &id).await;
    assert_eq!(told["status"], "cancelled", "{told}");
    let cancelled = client.request("tasks/get", of(&id)).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    let unknown = client.request("tasks/get", of("0123456789abcdef")).await;
    assert!(unknown["error"]["message"].as_str().is_some_and(|said| said.contains("no job")), "{unknown}");
}

#[tokio::test]
async fn a_job_is_its_agents_where_both_say_who_they_are() {
    let Some(lab) = lab("a_job_is_its_agents_where_both_say_who_they_are") else { return };
    let _writer = Writer::new(&lab);
    let mut client = served(&lab, GENERATIONS[0], json!({})).await;
    let mut mine = reading();
    mine["agent_id"] = "one".into();
    let id = begun(&mut client, mine).await;
    for tool in ["job_output", "job_cancel"] {
        let theirs = client.envelope(tool, json!({"id": id, "agent_id": "two"})).await;
        assert_eq!(theirs["error_code"], "JOB_NOT_FOUND", "{tool}: {theirs}");
        let nobodys = client.envelope(tool, json!({"id": "0123456789abcdef"})).await;
        assert_eq!(nobodys["error_code"], "JOB_NOT_FOUND", "{tool}: {nobodys}");
    }
    let jobs = async |client: &mut Client, agent_id: &str| {
        let listed = client.envelope("job_list", json!({"agent_id": agent_id})).await;
        listed["data"].as_array().expect("a list").len()
    };
    assert_eq!((jobs(&mut client, "one").await, jobs(&mut client, "two").await), (1, 0));
    let own = client.envelope("job_cancel", json!({"id": id, "agent_id": "one"})).await;
    assert_eq!(own["data"]["status"], "cancelled", "{own}");
}

#[tokio::test]
async fn what_may_still_need_a_persons_word_is_waited_for() {
    let Some(lab) = lab("what_may_still_need_a_persons_word_is_waited_for") else { return };
    let _writer = Writer::new(&lab);
    let mut client = served(&lab, GENERATIONS[0], json!({})).await;
    let mut asked = reading();
    asked["plan"]["risk"] = "critical".into();
    let envelope = client.envelope("planner_apply", asked.clone()).await;
    assert_eq!(envelope["status"], "confirmation_required", "{envelope}");
    asked["confirmed"] = true.into();
    let id = begun(&mut client, asked).await;
    assert!(client.envelope("job_cancel", json!({"id": id})).await["data"]["result"].is_object());
}
