//! One server and several hosts behind real sshds: tools work on any of the hosts, or on all.

use linux_sysadmin_tests::{Client, Lab, Plan, Step};
use serde_json::{Value, json};

/// A protocol version with a handshake, and one without.
const GENERATIONS: [&str; 2] = ["2025-06-18", "2026-07-28"];

const HOSTS: [&str; 3] = ["debian1", "rhel1", "bare1"];

async fn served(lab: &Lab, generation: &str) -> Client {
    let mut client = lab.serve(&[]);
    client.initialize(generation).await;
    client
}

fn hostname(host: &Value) -> Value {
    json!({"path": "/etc/hostname", "host": host})
}

#[tokio::test]
async fn every_tool_works_on_the_host_that_is_named() {
    let Some(lab) = Lab::with_parrot("every_tool_works_on_the_host_that_is_named") else { return };
    for generation in GENERATIONS {
        let mut client = served(&lab, generation).await;
        for host in HOSTS {
            let envelope = client.envelope("parrot_read", hostname(&host.into())).await;
            assert_eq!(envelope["data"]["text"], format!("{}\n", lab.host(host).name()), "{envelope}");
            assert_eq!(envelope["target_host"], host);
            let session = client.envelope("sysadmin_session_info", json!({"host": host})).await;
            assert_eq!(session["data"]["distro"]["hostname"], lab.host(host).name(), "{session}");
        }
        let here = client.envelope("sysadmin_session_info", json!({"host": "localhost"})).await;
        assert_eq!(here["target_host"], "localhost", "{here}");
        let unnamed = client.envelope("sysadmin_session_info", json!({})).await;
        assert_eq!(unnamed["data"]["distro"], here["data"]["distro"]);
        assert!(client.close().await.0.success());
    }
}

#[tokio::test]
async fn a_module_calls_tools_on_the_host_of_its_own_call() {
    let Some(lab) = Lab::with_parrot("a_module_calls_tools_on_the_host_of_its_own_call") else { return };
    lab.add("caller");
    lab.settle_for("hosts: {lab: [debian1, rhel1, bare1]}\n");
    let mut client = served(&lab, GENERATIONS[1]).await;
    let calls = json!([{"tool": "parrot_read", "arguments": r#"{"path": "/etc/hostname"}"#}]);
    for host in HOSTS {
        let envelope = client.envelope("caller_look", json!({"calls": calls, "host": host})).await;
        let read = &envelope["data"]["results"][0]["envelope"];
        assert_eq!(read["target_host"], host, "{envelope}");
        assert_eq!(read["data"]["text"], format!("{}\n", lab.host(host).name()), "{envelope}");
    }
    let all = client.envelope("caller_look", json!({"calls": calls, "host": "lab"})).await;
    assert_eq!(all["hosts"], json!({"total": 3, "succeeded": 3, "failed": 0}), "{all}");
    let text = all["data"].to_string();
    assert!(HOSTS.iter().all(|host| text.contains(lab.host(host).name())), "{all}");
    assert!(client.close().await.0.success());
    let records = lab.home().audit();
    let within = records.iter().filter(|record| record["called_by"]["name"] == "caller");
    let mut targets: Vec<_> = within.map(|record| record["target"]["name"].as_str()).collect();
    targets.sort_unstable();
    let twice = ["bare1", "bare1", "debian1", "debian1", "rhel1", "rhel1"].map(Some);
    assert_eq!(targets, twice, "{records:?}");
}

#[tokio::test]
async fn what_nobody_has_named_before_the_start_is_refused_and_not_asked() {
    let Some(lab) = Lab::with_parrot("what_nobody_has_named_before_the_start_is_refused_and_not_asked")
    else {
        return;
    };
    let mut client = served(&lab, GENERATIONS[1]).await;
    let config = std::fs::read_to_string(lab.file("config")).expect("a configuration");
    lab.configure(&format!("{config}Host later\n  HostName {}\n  User root\n", lab.address("debian1")));
    for host in ["later", "unknown", "web*"] {
        let envelope = client.envelope("parrot_read", hostname(&host.into())).await;
        assert_eq!((&envelope["status"], &envelope["command_executed"]), (&json!("error"), &Value::Null));
        let code = envelope["error_code"].as_str().unwrap_or_default();
        assert!(["HOST_UNKNOWN", "HOST_NOT_ALLOWED"].contains(&code), "{envelope}");
    }
    let both = client.envelope("parrot_read", hostname(&json!(["debian1", "later"]))).await;
    assert_eq!(both["status"], "error", "{both}");
    assert!(both.get("data").is_none());
}

#[tokio::test]
async fn many_answer_in_one_and_who_is_down_stands_beside_them() {
    let Some(lab) = Lab::with_parrot("many_answer_in_one_and_who_is_down_stands_beside_them") else { return };
    lab.settle_for("hosts: {lab: [debian1, rhel1, bare1]}\n");
    let mut client = served(&lab, GENERATIONS[1]).await;
    let all = client.envelope("parrot_read", hostname(&"lab".into())).await;
    assert_eq!((&all["status"], &all["target_host"]), (&json!("success"), &json!("3 hosts")), "{all}");
    assert_eq!(all["hosts"], json!({"total": 3, "succeeded": 3, "failed": 0}));
    let text = all["data"].to_string();
    assert!(HOSTS.iter().all(|host| text.contains(host)), "{all}");
    // The equal answers are folded into one.
    let alike = client.envelope("parrot_read", json!({"path": "/dev/null", "host": "lab"})).await;
    let one = client.envelope("parrot_read", json!({"path": "/dev/null", "host": "debian1"})).await;
    assert_eq!(alike["failures"][0]["hosts"], json!(HOSTS), "{alike}");
    assert_eq!(alike["failures"][0]["error_code"], one["error_code"]);

    lab.host("rhel1").run(&["systemctl", "stop", "sshd"]);
    client.envelope("parrot_read", hostname(&"debian1".into())).await;
    drop(client);
    let mut client = served(&lab, GENERATIONS[1]).await;
    let rest = client.envelope("parrot_read", hostname(&"lab".into())).await;
    lab.host("rhel1").run(&["systemctl", "start", "sshd"]);
    assert_eq!(rest["status"], "success", "{rest}");
    assert_eq!(rest["hosts"], json!({"total": 3, "succeeded": 2, "failed": 1}));
    let failure = &rest["failures"][0];
    assert_eq!((&failure["hosts"], &failure["error_code"]), (&json!(["rhel1"]), &json!("CONNECTION_FAILED")));
}

#[tokio::test]
async fn a_long_look_at_several_is_a_job_that_says_which_host_said_what() {
    let test = "a_long_look_at_several_is_a_job_that_says_which_host_said_what";
    let Some(lab) = Lab::new(test) else { return };
    lab.settle_for("jobs: {after_seconds: 1}\n");
    let mut client = served(&lab, GENERATIONS[0]).await;
    let hosts = &HOSTS[..2];
    let argv = json!(["tail", "--follow", "/etc/hostname"]);
    let follow = json!({"argv": argv, "host": hosts, "timeout_seconds": 600});
    let envelope = client.envelope("command_run", follow).await;
    assert_eq!(
        (&envelope["status"], &envelope["target_host"]),
        (&json!("running"), &json!("2 hosts")),
        "{envelope}"
    );
    let id = &envelope["job_id"];
    let mut told = String::new();
    let expected = hosts.iter().map(|host| format!("{host}: {}\n", lab.host(host).name()));
    for line in expected.chain(hosts.iter().map(|host| format!("$ {host}: tail "))) {
        while !told.contains(&line) {
            let output = client.envelope("job_output", json!({"id": id, "wait_seconds": 1})).await;
            assert_eq!(output["data"]["status"], "running", "{output}");
            told = output["data"]["output"].as_str().expect("text").to_owned();
        }
    }
    let cancelled = client.envelope("job_cancel", json!({"id": id, "wait_seconds": 40})).await;
    assert_eq!(cancelled["data"]["status"], "cancelled", "{cancelled}");
    for host in hosts {
        // A command that only looks is told to end, and the answer doesn't wait for its end.
        lab.host(host).until("! pgrep --exact tail");
    }
}

#[tokio::test]
async fn a_change_of_several_stops_where_it_fails_and_is_undone_there() {
    let Some(lab) = Lab::new("a_change_of_several_stops_where_it_fails_and_is_undone_there") else { return };
    lab.add_planner();
    // The group has its own order, in which the second host fails.
    lab.settle_for("hosts: {lab: [debian1, rhel1, bare1]}\n");
    for host in HOSTS {
        lab.host(host).run(&["rm", "-rf", "/srv/plan"]);
        lab.host(host).run(&["mkdir", "-p", "/srv/plan"]);
        if host != "rhel1" {
            lab.host(host).run(&["mkdir", "/srv/plan/empty"]);
        }
    }
    let plan = Plan::of([
        Step::run(&["touch", "--", "/srv/plan/new"]).undo(&["rm", "--", "/srv/plan/new"]),
        Step::run(&["rmdir", "--", "/srv/plan/empty"]),
    ]);
    let mut apply = plan.apply();
    apply["host"] = "lab".into();
    let mut client = served(&lab, GENERATIONS[1]).await;
    let envelope = client.envelope("planner_apply", apply).await;
    assert_eq!(
        (&envelope["status"], &envelope["error_code"]),
        (&json!("error"), &json!("COMMAND_FAILED")),
        "{envelope}"
    );
    assert_eq!(envelope["hosts"], json!({"total": 3, "succeeded": 1, "failed": 1}));
    assert_eq!((&envelope["done"], &envelope["not_begun"]), (&json!(["debian1"]), &json!(["bare1"])));
    let failure = &envelope["failures"][0];
    assert_eq!(failure["hosts"], json!(["rhel1"]));
    assert!(failure["undone"].to_string().contains("/srv/plan/new"), "{envelope}");
    let listed = |host: &str| lab.host(host).run(&["ls", "/srv/plan"]);
    assert_eq!([listed("debian1"), listed("rhel1"), listed("bare1")], ["new\n", "", "empty\n"]);
    assert!(client.close().await.0.success());
    let records = lab.home().audit();
    for (host, said) in
        [("debian1", Value::Null), ("rhel1", "COMMAND_FAILED".into()), ("bare1", "NOT_BEGUN".into())]
    {
        let is_its = |record: &&Value| record["event"] == "call" && record["target"]["name"] == host;
        let codes: Vec<_> = records.iter().filter(is_its).map(|record| &record["error_code"]).collect();
        assert!(codes.contains(&&said), "{host}: {codes:?}");
    }
}

/// Two agents share one server. In any order of calls, no call of one agent works on the other's host.
#[tokio::test]
async fn of_two_agents_neither_lands_on_the_others_host() {
    let Some(lab) = Lab::new("of_two_agents_neither_lands_on_the_others_host") else { return };
    lab.add_planner();
    lab.add("parrot");
    for host in ["debian1", "rhel1"] {
        lab.host(host).run(&["rm", "-rf", "/srv/plan"]);
        lab.host(host).run(&["mkdir", "-p", "/srv/plan"]);
    }
    let change = |host: Option<&str>| {
        let mut apply =
            Plan::of([Step::run(&["touch", "--", "/srv/plan/new"]).undo(&["rm", "--", "/srv/plan/new"])])
                .apply();
        if let Some(host) = host {
            apply["host"] = host.into();
        }
        apply
    };
    let look = json!({"path": "/etc/hostname"});
    for generation in GENERATIONS {
        let has_session = generation == GENERATIONS[0];
        let mut client = served(&lab, generation).await;
        // The first agent connects. The second one has made no call yet, and means this machine.
        let first = client.envelope("ssh_connect", json!({"host": "debian1"})).await;
        assert_eq!(
            (&first["data"]["host"], &first["data"]["current"]),
            (&json!("debian1"), &json!(has_session)),
            "{first}"
        );
        let unnamed = client.envelope("planner_apply", dry(change(None))).await;
        if has_session {
            // Neither a dry run nor a call that looks changes anything.
            assert_eq!(unnamed["target_host"], "debian1", "{unnamed}");
            let unnamed = client.envelope("planner_apply", change(None)).await;
            assert_eq!(unnamed["error_code"], "HOST_REQUIRED", "{unnamed}");
            assert_eq!(client.envelope("parrot_read", look.clone()).await["target_host"], "debian1");
        } else {
            assert_eq!(unnamed["target_host"], "localhost", "{unnamed}");
        }
        // The second agent connects as well. From now on there is no host that both could mean.
        let second = client.envelope("ssh_connect", json!({"host": "rhel1"})).await;
        assert_eq!(
            (&second["data"]["host"], &second["data"]["current"]),
            (&json!("rhel1"), &json!(false)),
            "{second}"
        );
        for (tool, arguments) in [
            ("parrot_read", look.clone()),
            ("sysadmin_session_info", json!({})),
            ("planner_apply", dry(change(None))),
            ("planner_apply", change(None)),
        ] {
            if !has_session && tool == "planner_apply" && arguments.get("dry_run").is_none() {
                // Without a host, this call would work on this machine.
                continue;
            }
            let unnamed = client.envelope(tool, arguments).await;
            match has_session {
                true => assert_eq!(unnamed["error_code"], "HOST_REQUIRED", "{tool}: {unnamed}"),
                false => assert_eq!(unnamed["target_host"], "localhost", "{tool}: {unnamed}"),
            }
        }
        // A call that names what ssh_connect returned works on that host.
        for connected in [&first, &second] {
            let host = connected["data"]["host"].as_str().expect("a name");
            let read = client.envelope("parrot_read", hostname(&host.into())).await;
            assert_eq!(read["data"]["text"], format!("{}\n", lab.host(host).name()), "{read}");
            let changed = client.envelope("planner_apply", change(Some(host))).await;
            assert_eq!(
                (&changed["status"], &changed["target_host"]),
                (&json!("success"), &json!(host)),
                "{changed}"
            );
            lab.host(host).run(&["rm", "/srv/plan/new"]);
        }
        // When one agent disconnects, the other host doesn't become the host of both.
        client.envelope("ssh_disconnect", json!({"host": "debian1"})).await;
        let unnamed = client.envelope("parrot_read", look.clone()).await;
        match has_session {
            true => assert_eq!(unnamed["error_code"], "HOST_REQUIRED", "{unnamed}"),
            false => assert_eq!(unnamed["target_host"], "localhost", "{unnamed}"),
        }
        assert!(client.close().await.0.success());
    }
}

/// Both agents call at once, each names its own host, and both do so a hundred times.
#[tokio::test]
async fn two_agents_at_once_are_answered_by_their_own_hosts() {
    let Some(lab) = Lab::with_parrot("two_agents_at_once_are_answered_by_their_own_hosts") else { return };
    for generation in GENERATIONS {
        let mut client = served(&lab, generation).await;
        let mut asked = Vec::new();
        for round in 0..100 {
            let host = ["debian1", "rhel1"][round % 2];
            let params = json!({"name": "parrot_read", "arguments": hostname(&host.into())});
            asked.push((host, client.ask("tools/call", params).await));
        }
        for (host, id) in asked {
            let envelope = client.envelope_of(id).await;
            assert_eq!(envelope["data"]["text"], format!("{}\n", lab.host(host).name()), "{envelope}");
            assert_eq!(envelope["target_host"], host);
        }
        assert!(client.close().await.0.success());
    }
}

fn dry(mut arguments: Value) -> Value {
    arguments["dry_run"] = true.into();
    arguments
}
