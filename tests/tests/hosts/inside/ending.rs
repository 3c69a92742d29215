//! A command on a real host that is out of time, cancelled, or whose server is gone leaves no process behind, whatever
//! account it runs as and however its processes react to signals. The answer names processes that can't be ended.

use linux_sysadmin_tests::lingering::{self, ONCE, begin, begin_all, is_stopped};
use linux_sysadmin_tests::{Client, Machine};
use serde_json::json;

const LIMITED: &str = "lsa-ending";
const FRAGMENT: &str = "/etc/sudoers.d/linux-sysadmin-lingering";
const HOST_PROGRAM: &str = "/opt/linux-sysadmin/linux-sysadmin";

const CLEAN: &str = "
userdel --remove lsa-ending
rm -f /etc/sudoers.d/linux-sysadmin-lingering
";

/// The host with the program that is to be ended.
struct Lab(Machine);

impl Lab {
    fn new(test: &str) -> Option<Self> {
        let lab = Self(Machine::new(test)?);
        lab.clean();
        lingering::install(lab.0.host());
        Some(lab)
    }

    fn clean(&self) {
        lingering::remove(self.0.host(), 987);
        self.0.holds(CLEAN);
    }

    /// Makes an account whose sudo allows exactly what the module's fragment allows.
    fn limit(&self) {
        self.0.sh(&format!("useradd {LIMITED}"));
        self.0.add(LIMITED, LIMITED, "lingering");
        let home = format!("HOME=/var/lib/planner/{LIMITED} XDG_CACHE_HOME={}", Machine::cache(LIMITED));
        self.0.sh(&format!(
            "runuser -u {LIMITED} -- env -i -C / {home} {HOST_PROGRAM} modules sudoers lingering > {FRAGMENT}
             chmod 0440 {FRAGMENT}; visudo --check --file={FRAGMENT}"
        ));
    }

    async fn serve(&self, account: &str) -> Client {
        if account != LIMITED {
            self.0.add(account, account, "lingering");
        }
        self.0.configure(account, ONCE);
        self.0.serve_shipped(account, account).await
    }

    fn until_gone(&self, seconds: u32) {
        lingering::until_gone(self.0.host(), seconds);
    }

    fn until_sleeping(&self, processes: usize, seconds: u32) {
        lingering::until_sleeping(self.0.host(), processes, seconds);
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.clean();
    }
}

#[tokio::test]
async fn a_command_that_is_out_of_time_leaves_nothing_behind() {
    let Some(lab) = Lab::new("a_command_that_is_out_of_time_leaves_nothing_behind") else { return };
    for (account, first) in [("admin", 98_700), ("root", 98_710)] {
        let mut client = lab.serve(account).await;
        for (id, seconds) in begin_all(lab.0.host(), &mut client, first).await {
            is_stopped(&client.outcome(id).await);
            lab.until_gone(seconds);
        }
    }
}

#[tokio::test]
async fn a_command_whose_call_is_cancelled_leaves_nothing_behind() {
    let Some(lab) = Lab::new("a_command_whose_call_is_cancelled_leaves_nothing_behind") else { return };
    for (account, first) in [("admin", 98_720), ("root", 98_730)] {
        let mut client = lab.serve(account).await;
        for (id, seconds) in begin_all(lab.0.host(), &mut client, first).await {
            client.cancel(id).await;
            lab.until_gone(seconds);
        }
    }
}

#[tokio::test]
async fn a_command_whose_client_leaves_leaves_nothing_behind() {
    let Some(lab) = Lab::new("a_command_whose_client_leaves_leaves_nothing_behind") else { return };
    for (account, first) in [("admin", 98_740), ("root", 98_750)] {
        let mut client = lab.serve(account).await;
        let begun = begin_all(lab.0.host(), &mut client, first).await;
        client.close_input();
        assert_eq!(client.ended().await.0.code(), Some(0), "{account}");
        for (_, seconds) in begun {
            lab.until_gone(seconds);
        }
    }
}

#[tokio::test]
async fn a_command_by_sudo_whose_server_is_killed_ends_at_its_time_limit() {
    let Some(lab) = Lab::new("a_command_by_sudo_whose_server_is_killed_ends_at_its_time_limit") else {
        return;
    };
    let mut client = lab.serve("admin").await;
    let begun = begin_all(lab.0.host(), &mut client, 98_760).await;
    lab.0.signal("admin", "KILL");
    for (_, seconds) in begun {
        lab.until_gone(seconds);
    }
}

#[tokio::test]
async fn a_limit_that_was_kept_while_the_server_was_held_up_is_a_limit() {
    let Some(lab) = Lab::new("a_limit_that_was_kept_while_the_server_was_held_up_is_a_limit") else { return };
    let mut client = lab.serve("admin").await;
    let begun = begin_all(lab.0.host(), &mut client, 98_770).await;
    lab.0.signal("admin", "STOP");
    for (_, seconds) in &begun {
        lab.until_gone(*seconds);
    }
    lab.0.signal("admin", "CONT");
    for (id, _) in begun {
        is_stopped(&client.outcome(id).await);
    }
}

#[tokio::test]
async fn where_sudo_allows_certain_commands_a_command_is_ended_and_children_that_stay_are_not_denied() {
    let test = "where_sudo_allows_certain_commands_a_command_is_ended_and_children_that_stay_are_not_denied";
    let Some(lab) = Lab::new(test) else { return };
    lab.limit();
    let mut client = lab.serve(LIMITED).await;
    let alone = begin(&mut client, "alone", 98_780, None).await;
    let stubborn = begin(&mut client, "stubborn", 98_781, None).await;
    let cancelled = begin(&mut client, "alone", 98_782, None).await;
    lab.until_sleeping(1, 98_782);
    client.cancel(cancelled).await;
    lab.until_gone(98_782);

    is_stopped(&client.outcome(alone).await);
    lab.until_gone(98_780);

    let left = client.outcome(stubborn).await;
    assert_eq!(left["error_code"], "COMMAND_TIMEOUT", "{left}");
    assert!(left.to_string().contains("processes that it started may still run"), "{left}");
    assert!(
        !lab.0.holds("pgrep --full '^([^ ]* )?[^ ]*lingering stubborn 98781$'"),
        "the command itself has ended"
    );
    lab.until_sleeping(2, 98_781);
}

#[tokio::test]
async fn a_commands_own_end_is_reported_as_it_was() {
    let Some(lab) = Lab::new("a_commands_own_end_is_reported_as_it_was") else { return };
    for account in ["admin", "root"] {
        let mut client = lab.serve(account).await;
        for (kind, exit_code, stdout) in [("failing", 124, ""), ("killed", 137, ""), ("leaving", 0, "done\n")]
        {
            let id = begin(&mut client, kind, 98_790, None).await;
            let ended = client.outcome(id).await;
            assert_eq!(
                ended["data"],
                json!({"exit_code": exit_code, "stdout": stdout}),
                "{account}: {ended}"
            );
        }
        // By sudo, the process that was left behind belongs to another account, and stays.
        lab.until_sleeping(usize::from(account != "root"), 98_790);
        lab.0.holds("pkill --full --exact 'sleep 98790'");
    }
}
