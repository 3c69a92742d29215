//! The SSH connection is lost in each possible way. A call that looks is repeated within the call, a change is never
//! repeated, and each waiting call gets an error.

use linux_sysadmin_tests::{Client, Lab, Plan, Sshd, Step};
use serde_json::{Value, json};

/// A program that hangs the first time, and ends at once later. It counts its runs in a file that a reboot keeps.
const SCRIPT: &str = "#!/bin/sh
echo ran >> /var/tmp/lab-ran
test $(wc -l < /var/tmp/lab-ran) -gt 1 || exec sleep 98701
echo done
";
const UNIT: &str = "[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo ran >> /var/tmp/lab-ran; exec sleep 98702'
";
const CLEAN: &str = "systemctl stop lab-count.service
pkill -KILL --full '^sleep 9870[12]$'
rm -f /var/tmp/lab-ran /usr/local/sbin/lingering /etc/systemd/system/lab-count.service
systemctl daemon-reload";

const QUICK: &str = "ssh:\n  keepalive_interval: 1\n  keepalive_max_missed: 2\n";

/// bare1 with that program, until this is dropped.
struct Hanging(Lab);

impl Hanging {
    fn new(test: &str) -> Option<Self> {
        let hanging = Self(Lab::with_parrot(test)?);
        hanging.clean();
        hanging.0.add("lingering");
        let host = hanging.0.host("bare1");
        host.put("/usr/local/sbin/lingering", SCRIPT.as_bytes());
        host.run(&["chmod", "0755", "/usr/local/sbin/lingering"]);
        Some(hanging)
    }

    fn clean(&self) {
        self.0.host("bare1").holds(CLEAN);
    }

    /// Begins a call that hangs; returns once it hangs.
    async fn begin(&self, client: &mut Client) -> i64 {
        let arguments = json!({"kind": "alone", "seconds": 98701});
        let id = client.ask("tools/call", json!({"name": "lingering_run", "arguments": arguments})).await;
        self.0.host("bare1").until("pgrep --full '^sleep 98701$'");
        id
    }

    /// The number of times that the program ran.
    fn ran(&self) -> usize {
        self.0.host("bare1").run(&["cat", "/var/tmp/lab-ran"]).lines().count()
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        self.clean();
    }
}

async fn serve(lab: &Lab, alias: &str) -> Client {
    let mut client = lab.serve(&["--host", alias]);
    client.initialize("2025-06-18").await;
    client
}

async fn look(client: &mut Client) -> Value {
    client.envelope("parrot_read", json!({"path": "/etc/hostname"})).await
}

#[track_caller]
fn is_restored(envelope: &Value) {
    assert_eq!(envelope["status"], "success", "{envelope}");
    assert_eq!(envelope["connection_restored"], true, "{envelope}");
    assert!(envelope["connection_downtime_seconds"].is_number(), "{envelope}");
}

/// Asserts that the connection is still the same.
#[track_caller]
fn is_untroubled(envelope: &Value) {
    assert_eq!(envelope["status"], "success", "{envelope}");
    assert!(envelope.get("connection_restored").is_none(), "{envelope}");
}

/// Starts a second sshd on bare1, and a server that is connected to it.
async fn other(lab: &Lab) -> (Sshd, Client) {
    let sshd = lab.other("bare1", "", "  ConnectTimeout 3");
    let mut client = serve(lab, "there").await;
    is_untroubled(&look(&mut client).await);
    (sshd, client)
}

#[tokio::test]
async fn a_reboot_in_the_middle_of_a_look_is_recovered_from_within_the_call() {
    let test = "a_reboot_in_the_middle_of_a_look_is_recovered_from_within_the_call";
    let Some(hanging) = Hanging::new(test) else { return };
    hanging.0.settle_for("ssh:\n  max_reconnect_attempts: 5\n");
    let mut client = serve(&hanging.0, "bare1").await;
    is_untroubled(&look(&mut client).await);
    let id = hanging.begin(&mut client).await;
    hanging.0.reboot("bare1");
    let envelope = client.outcome(id).await;
    is_restored(&envelope);
    assert_eq!(envelope["data"]["stdout"], "done\n", "{envelope}");
    assert_eq!(hanging.ran(), 2, "once, and once again");
    is_untroubled(&look(&mut client).await);
}

#[tokio::test]
async fn a_reboot_in_the_middle_of_a_change_leaves_it_uncertain_and_it_is_not_repeated() {
    let test = "a_reboot_in_the_middle_of_a_change_leaves_it_uncertain_and_it_is_not_repeated";
    let Some(hanging) = Hanging::new(test) else { return };
    let host = hanging.0.host("bare1");
    host.put("/etc/systemd/system/lab-count.service", UNIT.as_bytes());
    host.run(&["systemctl", "daemon-reload"]);
    hanging.0.add_planner();
    hanging.0.settle_for(&format!("{QUICK}  max_reconnect_attempts: 5\n"));
    hanging.0.configure(&format!("Host *\n  ConnectTimeout 2\n{}", hanging.0.aliases()));
    let mut client = serve(&hanging.0, "bare1").await;
    let plan = Plan::of([
        Step::run(&["systemctl", "start", "--", "lab-count.service"]),
        Step::run(&["touch", "--", "/srv/plan/never"]),
    ]);
    let id = client.begin(plan.apply()).await;
    host.until("pgrep --full '^sleep 98702$'");
    // Without the cut, a host that shuts down would report the end of the command.
    hanging.0.cut("bare1");
    hanging.0.reboot("bare1");
    hanging.0.mend("bare1");
    let envelope = client.outcome(id).await;
    assert_eq!(envelope["error_code"], "CHANGE_UNCERTAIN", "{envelope}");
    assert_eq!(envelope["uncertain"], true, "{envelope}");
    assert_eq!(hanging.ran(), 1, "once, and never again");
    assert!(!host.holds("test -e /srv/plan/never"), "what follows isn't begun");
    let envelope = look(&mut client).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
    assert_eq!(hanging.ran(), 1, "not later either");
}

#[tokio::test]
async fn a_cut_that_nobody_tells_of_is_found_by_signs_of_life() {
    let Some(hanging) = Hanging::new("a_cut_that_nobody_tells_of_is_found_by_signs_of_life") else { return };
    let lab = &hanging.0;
    lab.settle_for(QUICK);
    lab.configure(&format!("Host *\n  ConnectTimeout 2\n{}", lab.aliases()));
    let mut client = serve(lab, "bare1").await;
    is_untroubled(&look(&mut client).await);
    let id = hanging.begin(&mut client).await;
    lab.cut("bare1");
    let envelope = client.outcome(id).await;
    assert_eq!(envelope["error_category"], "network", "{envelope}");
    assert_eq!(hanging.ran(), 1, "it didn't reach the host again");
    lab.mend("bare1");
    is_restored(&look(&mut client).await);
}

#[tokio::test]
async fn a_cut_that_is_mended_before_anybody_misses_it_is_none() {
    let Some(lab) = Lab::with_parrot("a_cut_that_is_mended_before_anybody_misses_it_is_none") else { return };
    let mut client = serve(&lab, "bare1").await;
    is_untroubled(&look(&mut client).await);
    lab.cut("bare1");
    lab.mend("bare1");
    is_untroubled(&look(&mut client).await);
}

#[tokio::test]
async fn a_connection_that_goes_while_nobody_calls_is_back_with_the_next_call() {
    let test = "a_connection_that_goes_while_nobody_calls_is_back_with_the_next_call";
    let Some(lab) = Lab::with_parrot(test) else { return };
    lab.settle_for(QUICK);
    let mut client = serve(&lab, "bare1").await;
    is_untroubled(&look(&mut client).await);
    lab.cut("bare1");
    // The server has given up the connection, and has closed its socket.
    let here = format!("test -z \"$(ss -Htn state established dst {})\"", lab.address("bare1"));
    while !lab.command(&["sh", "-c", &here]).status().expect("ip runs").success() {}
    lab.mend("bare1");
    let envelope = look(&mut client).await;
    is_restored(&envelope);
    is_untroubled(&look(&mut client).await);
}

#[tokio::test]
async fn a_server_that_is_started_anew_keeps_connections_and_one_that_hangs_up_is_called_again() {
    let test = "a_server_that_is_started_anew_keeps_connections_and_one_that_hangs_up_is_called_again";
    let Some(lab) = Lab::with_parrot(test) else { return };
    let mut client = serve(&lab, "bare1").await;
    is_untroubled(&look(&mut client).await);
    lab.host("bare1").run(&["systemctl", "restart", "ssh.service"]);
    is_untroubled(&look(&mut client).await);

    let (sshd, mut client) = other(&lab).await;
    for _ in 0..2 {
        sshd.hang_up();
        is_restored(&look(&mut client).await);
        is_untroubled(&look(&mut client).await);
    }
}

#[tokio::test]
async fn a_host_that_is_down_is_tried_three_times_and_back_once_it_is_up() {
    let Some(lab) = Lab::with_parrot("a_host_that_is_down_is_tried_three_times_and_back_once_it_is_up")
    else {
        return;
    };
    let (sshd, mut client) = other(&lab).await;
    sshd.stop();
    sshd.hang_up();
    let envelope = look(&mut client).await;
    assert_eq!(envelope["error_code"], "CONNECTION_FAILED", "{envelope}");
    assert_eq!(envelope["error_category"], "network", "{envelope}");
    assert_eq!(envelope["retry_count"], 2, "{envelope}");
    let attempts = envelope["attempts"].as_array().expect("attempts");
    assert_eq!(attempts.len(), 3, "{envelope}");
    assert!(attempts.iter().all(|attempt| attempt["error_code"] == "CONNECTION_FAILED"), "{envelope}");
    assert_eq!(envelope["transient"], true, "{envelope}");
    let message = envelope["message"].as_str().expect("a message");
    assert!(message.contains("there") && message.contains(":2201"), "{envelope}");
    let _again = lab.other("bare1", "", "");
    is_restored(&look(&mut client).await);
}

#[tokio::test]
async fn where_the_configuration_says_so_the_call_that_misses_it_fails_and_the_next_one_connects() {
    let test = "where_the_configuration_says_so_the_call_that_misses_it_fails_and_the_next_one_connects";
    let Some(lab) = Lab::with_parrot(test) else { return };
    lab.settle_for("ssh:\n  auto_reconnect: false\n");
    let (sshd, mut client) = other(&lab).await;
    sshd.hang_up();
    let envelope = look(&mut client).await;
    assert_eq!(envelope["error_code"], "CONNECTION_LOST", "{envelope}");
    assert!(envelope["remediation"].to_string().contains("Call again"), "{envelope}");
    let envelope = look(&mut client).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
}
