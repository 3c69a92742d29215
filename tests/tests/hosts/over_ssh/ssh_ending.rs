//! A command behind SSH that is out of time, cancelled, or whose server is gone leaves no process behind on the host,
//! with sudo and without, however its processes react to signals. No connection is left either.

use linux_sysadmin_tests::lingering::{self, ONCE, begin, begin_all, is_stopped};
use linux_sysadmin_tests::{Client, Lab};
use serde_json::json;

/// An account that uses sudo, and root, each with an offset for the numbers of its processes.
const ACCOUNTS: [(&str, u32); 2] = [("admin", 0), ("root", 10)];

/// debian1 with the program that is to be ended.
struct Trees(Lab);

impl Trees {
    fn new(test: &str) -> Option<Self> {
        let trees = Self(Lab::new(test)?);
        trees.0.add("lingering");
        trees.0.settle_for(ONCE);
        let address = trees.0.address("debian1");
        let alias = |(account, _)| format!("Host {account}\n  HostName {address}\n  User {account}\n");
        trees.0.configure(&ACCOUNTS.map(alias).concat());
        let host = trees.0.host("debian1");
        lingering::remove(host, 986);
        lingering::install(host);
        Some(trees)
    }

    /// Starts a server that logs in as this account. It uses sudo unless it is root.
    async fn serve(&self, account: &str) -> Client {
        let mut client = self.0.serve(&["--host", account]);
        client.initialize("2025-06-18").await;
        client
    }

    fn until_gone(&self, seconds: u32) {
        lingering::until_gone(self.0.host("debian1"), seconds);
    }

    fn until_sleeping(&self, processes: usize, seconds: u32) {
        lingering::until_sleeping(self.0.host("debian1"), processes, seconds);
    }

    /// Waits until the host's sshd has no connection that comes from the lab.
    fn until_alone(&self) {
        self.0.host("debian1").until("test -z \"$(ss --no-header --tcp state connected sport = :22)\"");
        self.0.host("debian1").until("! pgrep --full '^sshd: (root|admin)'");
    }
}

impl Drop for Trees {
    fn drop(&mut self) {
        lingering::remove(self.0.host("debian1"), 986);
    }
}

/// Starts a server for each account, and all trees in each, with consecutive numbers from this one on.
async fn begin_everywhere(trees: &Trees, first: u32) -> Vec<(Client, Vec<(i64, u32)>)> {
    let mut begun = Vec::new();
    for (account, further) in ACCOUNTS {
        let mut client = trees.serve(account).await;
        let ids = begin_all(trees.0.host("debian1"), &mut client, first + further).await;
        begun.push((client, ids));
    }
    begun
}

#[tokio::test]
async fn a_command_that_is_out_of_time_leaves_nothing_behind() {
    let Some(trees) = Trees::new("a_command_that_is_out_of_time_leaves_nothing_behind") else { return };
    for (mut client, ids) in begin_everywhere(&trees, 98_600).await {
        for (id, seconds) in ids {
            is_stopped(&client.outcome(id).await);
            trees.until_gone(seconds);
        }
        client.close().await;
    }
    trees.until_alone();
}

#[tokio::test]
async fn a_command_whose_call_is_cancelled_leaves_nothing_behind() {
    let Some(trees) = Trees::new("a_command_whose_call_is_cancelled_leaves_nothing_behind") else { return };
    let mut begun = begin_everywhere(&trees, 98_620).await;
    for (client, ids) in &mut begun {
        for (id, _) in ids {
            client.cancel(*id).await;
        }
    }
    for (_, seconds) in begun.iter().flat_map(|(_, ids)| ids) {
        trees.until_gone(*seconds);
    }
}

#[tokio::test]
async fn a_command_whose_client_leaves_leaves_nothing_behind_and_no_connection() {
    let test = "a_command_whose_client_leaves_leaves_nothing_behind_and_no_connection";
    let Some(trees) = Trees::new(test) else { return };
    let mut begun = begin_everywhere(&trees, 98_640).await;
    for (client, _) in &mut begun {
        client.close_input();
    }
    for (client, ids) in begun {
        assert_eq!(client.ended().await.0.code(), Some(0));
        for (_, seconds) in ids {
            trees.until_gone(seconds);
        }
    }
    trees.until_alone();
}

/// Only sudo's own limit ends the command without the server. Without sudo, only the command itself does.
#[tokio::test]
async fn a_command_by_sudo_whose_server_is_killed_ends_at_its_time_limit() {
    let Some(trees) = Trees::new("a_command_by_sudo_whose_server_is_killed_ends_at_its_time_limit") else {
        return;
    };
    let mut client = trees.serve("admin").await;
    let begun = begin_all(trees.0.host("debian1"), &mut client, 98_660).await;
    let killed = std::process::Command::new("kill").args(["-KILL", &client.pid().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    for (_, seconds) in begun {
        trees.until_gone(seconds);
    }
    trees.until_alone();
}

#[tokio::test]
async fn a_commands_own_end_is_reported_as_it_was() {
    let Some(trees) = Trees::new("a_commands_own_end_is_reported_as_it_was") else { return };
    for (account, _) in ACCOUNTS {
        let mut client = trees.serve(account).await;
        for (kind, exit_code, stdout) in [("failing", 124, ""), ("killed", 137, ""), ("leaving", 0, "done\n")]
        {
            let id = begin(&mut client, kind, 98_690, None).await;
            let ended = client.outcome(id).await;
            let expected = json!({"exit_code": exit_code, "stdout": stdout});
            assert_eq!(ended["data"], expected, "{account}: {ended}");
        }
        // By sudo, the process that was left behind belongs to another account, and stays.
        trees.until_sleeping(usize::from(account != "root"), 98_690);
        trees.0.host("debian1").holds("pkill --full --exact 'sleep 98690'");
    }
}
