//! A server is killed at random moments, on a real host itself and over SSH. After `audit recover` the host is as it
//! was before, or the change is complete.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

use linux_sysadmin_tests::{Machine, Plan, Reach, Step};
use serde_json::{Value, json};

/// The number of kills for each way to the host, unless `LINUX_SYSADMIN_TEST_KILLS` sets another.
const KILLS: usize = 60;

const BEGIN: &str = "
rm -rf /srv/plan/made /srv/planner/*
for name in existing removed; do
    echo $name > /srv/planner/$name; chown admin:adm /srv/planner/$name; chmod 640 /srv/planner/$name
    touch -d '2020-01-02 03:04:05' /srv/planner/$name
done
rm -rf /srv/lsa-tree
mkdir -p /srv/lsa-tree/sub/empty
echo a > /srv/lsa-tree/a
echo b > /srv/lsa-tree/sub/b
ln -s a /srv/lsa-tree/link
printf '# what the administrator has\\n0 3 * * * /usr/bin/true\\n@daily /usr/bin/false\\n' | crontab -u nobody -";

/// Prints everything that the changes may touch.
const STATE: &str = "
crontab -u nobody -l
for name in existing new removed; do
    stat -c '%n %a %U %s' /srv/planner/$name 2>&1; cat /srv/planner/$name 2>&1
done
ls -d /srv/plan/made 2>&1
find /srv/lsa-tree -printf '%p %y %m %u %l\\n' 2>&1 | sort
find /srv /etc /home /var/spool -name '.linux-sysadmin-*'";

/// Succeeds once no command of a lost connection runs any more.
const QUIET: &str = "! pgrep --exact 'crontab|tee|dd|mv|cp|ln'";

/// Changes by files, by commands that replace something, and by both.
fn changes() -> [(&'static str, Value); 5] {
    let files = || {
        Plan::of([
            Step::write("/srv/planner/existing", "changed\n"),
            Step::write("/srv/planner/new", "new\n"),
            Step::remove("/srv/planner/removed"),
            Step::make_directory("/srv/plan/made", 0o750),
        ])
    };
    [
        ("cron_add", json!({"user": "nobody", "schedule": "0 4 * * *", "command": "/usr/bin/echo new"})),
        ("cron_remove", json!({"user": "nobody", "schedule": "@daily"})),
        ("planner_apply", files().apply()),
        ("planner_apply", files().step(Step::run(&["true"])).apply()),
        ("file_remove", json!({"path": "/srv/lsa-tree"})),
    ]
}

/// A random time from nothing to a little more than this.
fn within(time: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 1200;
    time * u32::try_from(random).unwrap_or_default() / 1000
}

/// The ids of the changes on record, and of those that have ended well.
fn on_record(machine: &Machine) -> (Vec<String>, Vec<String>) {
    let of = |event: &str, holds: &dyn Fn(&Value) -> bool| {
        let records =
            machine.audit("root").into_iter().filter(|record| record["event"] == event && holds(record));
        records.map(|record| record["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    (of("change-begun", &|_| true), of("change-ended", &|record| record["outcome"] == "done"))
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "who asks for many kills reads what they met")]
async fn nothing_is_lost_by_a_kill_at_any_moment() {
    let test = "nothing_is_lost_by_a_kill_at_any_moment";
    let Some(mut machine) = Machine::new(test) else { return };
    let kills = std::env::var("LINUX_SYSADMIN_TEST_KILLS").ok();
    let kills = kills.map_or(KILLS, |kills| kills.parse().expect("a number"));
    let mut seen = [0; 4];
    for reach in [Reach::Inside("debian1"), Reach::OverSsh("debian1")] {
        machine.now(reach, test);
        machine.configure("root", "safety:\n  confirmation_threshold: critical\n");
        // The states before and after each change without a kill, and the time that it takes.
        let mut whole = Vec::new();
        for (tool, arguments) in changes() {
            machine.sh(BEGIN);
            let before = machine.sh(STATE);
            let mut client = machine.serve().await;
            client.envelope("perf_uptime", json!({})).await;
            let begun = Instant::now();
            let done = client.envelope(tool, arguments.clone()).await;
            let took = begun.elapsed();
            assert_eq!(done["status"], "success", "{tool}: {done}");
            assert_eq!(client.close().await.0.code(), Some(0));
            whole.push((tool, arguments, before, machine.sh(STATE), took));
        }
        for kill in 0..kills {
            let (tool, arguments, before, after, took) = &whole[kill % whole.len()];
            machine.sh(BEGIN);
            let (known, _) = on_record(&machine);
            let mut client = machine.serve().await;
            client.envelope("perf_uptime", json!({})).await;
            let moment = within(*took);
            let killer = machine.kills_after("root", moment);
            client.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
            killer.wait();
            client.ended().await;
            machine.until(QUIET);
            let context = format!("{reach:?} {tool}, after {moment:?}");
            let (begun, ended) = on_record(&machine);
            let new: Vec<&String> = begun.iter().filter(|id| !known.contains(id)).collect();
            assert!(new.len() <= 1, "{context}");
            match new.first() {
                None => {
                    seen[0] += 1;
                    assert_eq!(machine.sh(STATE), *before, "{context}: it never began");
                }
                Some(id) if ended.contains(id) => {
                    seen[1] += 1;
                    machine.says("root", "root", &["audit", "recover", id]);
                    assert_eq!(machine.sh(STATE), *after, "{context}: it has ended");
                }
                Some(id) => {
                    let changed = machine.sh(STATE) != *before;
                    seen[2 + usize::from(changed)] += 1;
                    let (code, said) = machine.says("root", "root", &["audit", "recover", id]);
                    assert_eq!(code, Some(0), "{context}: {said}");
                    assert_eq!(machine.sh(STATE), *before, "{context}: {said}");
                }
            }
        }
        machine.audit_is_valid("root", "root");
    }
    machine.sh("crontab -u nobody -r; rm -rf /srv/lsa-tree");
    machine.nothing_is_left_behind();
    let [never, ended, as_it_was, half] = seen;
    println!(
        "killed before it began {never}, after its end {ended}, within it {as_it_was} (nothing changed yet) and {half}"
    );
    assert!(half > kills / 20, "the moments are within the changes: {seen:?}");
}
