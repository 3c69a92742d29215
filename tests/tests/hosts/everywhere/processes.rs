//! Tests on a real host what the tools for processes show. ps, fuser, ss and the kernel's own files say the same.

use std::collections::BTreeSet;

use linux_sysadmin_tests::{Changing, Client, way};
use serde_json::{Value, json};

const CLEAN: &str = r"
systemctl kill --signal=KILL lsa-process 2>/dev/null
systemctl stop 'lsa-process*' 2>/dev/null
systemctl reset-failed 'lsa-process*' 2>/dev/null
rm -rf /run/lsa-process*
";

/// Starts processes of a unit: one with an odd name, a secret and an open file, one that was deleted, a stopped one, one in
/// namespaces of its own, and a zombie.
const PREPARE: &str = r#"
mkdir -p '/run/lsa-process x'
echo text > '/run/lsa-process x/a[1]*'
cp /bin/sleep '/run/lsa-process x/gone'
cat > /run/lsa-process.sh <<'END'
exec 7< '/run/lsa-process x/a[1]*'
cd '/run/lsa-process x'
printf ') S 1 (x' > /proc/self/comm
# Until a child runs its program, it has the name of this shell.
runs() { until grep --quiet "$1" /proc/$!/comm; do :; done; }
sleep 1000 &
runs sleep
kill -STOP $!
echo $! > /run/lsa-process.stopped
./gone 1000 &
runs gone
echo $! > /run/lsa-process.gone
unshare --pid --fork --net sleep 1000 &
sh -c 'sleep 0 & exec sleep 1000' &
rm ./gone
touch /run/lsa-process.ready
wait
END
systemd-run --quiet --unit lsa-process sh /run/lsa-process.sh --password hunter2
until [ -e /run/lsa-process.ready ] && pgrep --runstates Z --exact sleep >/dev/null; do sleep 0.1; done
"#;

fn numbers(text: &str) -> BTreeSet<u64> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The PIDs of a list.
async fn list(client: &mut Client, arguments: Value) -> BTreeSet<u64> {
    let envelope = client.envelope("proc_list", arguments.clone()).await;
    let data = envelope["data"].as_array().unwrap_or_else(|| panic!("{arguments}: {envelope}"));
    data.iter().filter_map(|process| process["pid"].as_u64()).collect()
}

async fn info(client: &mut Client, pid: u64) -> Value {
    let envelope = client.envelope("proc_info", json!({"pid": pid})).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
    envelope
}

#[tokio::test]
async fn a_list_says_what_other_programs_say() {
    let test = "a_list_says_what_other_programs_say";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let mut client = machine.serve_default().await;
    // Every service that the image starts has ended starting; sessions come and go.
    let ps = machine.sh("TZ=UTC ps -eo pid=,euser:40=,unit:80=,s=,lstart=");
    let envelope = client.envelope("proc_list", json!({"limit": 10_000})).await;
    let data = envelope["data"].as_array().unwrap_or_else(|| panic!("{envelope}"));
    let mut compared = 0;
    for line in ps.lines().filter(|line| line.contains(".service ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [pid, user, unit, state, _, _, day, time, year] = words[..] else { panic!("{line}") };
        let Some(found) = data.iter().find(|one| one["pid"].as_u64() == pid.parse().ok()) else { continue };
        assert_eq!((&found["user"], &found["unit"]), (&json!(user), &json!(unit)), "{line}: {found}");
        let started = found["started"].as_str().unwrap_or_default();
        // Both round the time since the boot, ps by another clock.
        let minute = time.rsplit_once(':').map_or("", |(minute, _)| minute);
        assert!(started.starts_with(year) && started.contains(&format!("-{day:0>2}T")), "{line}: {found}");
        assert!(started.contains(minute) || time.ends_with("00") || time.ends_with("59"), "{line}: {found}");
        if matches!(state, "T" | "Z" | "D") {
            assert_eq!(found["state"], state, "{line}: {found}");
        }
        compared += 1;
    }
    assert!(compared >= 5, "{ps}\n{envelope}");
    let unit = numbers(
        &machine.sh("cat $(find /sys/fs/cgroup -path '*/lsa-process.service/cgroup.procs' | head -n 1)"),
    );
    let zombies = numbers(&machine.sh("ps -o pid= --ppid $(pgrep -d, -f 'sleep 1000') | tr '\\n' ' '"));
    let all: BTreeSet<u64> = unit.union(&zombies).copied().collect();
    let listed = list(&mut client, json!({"service": "lsa-process"})).await;
    assert!(unit.is_subset(&listed) && listed.is_subset(&all), "{unit:?} {zombies:?} {listed:?}");
    for (arguments, other) in [
        (json!({"name": ") s 1 ("}), "systemctl show --property MainPID --value lsa-process"),
        (json!({"file": "/run/lsa-process x/gone"}), "cat /run/lsa-process.gone"),
        (json!({"file": "/var/run/lsa-process x/a[1]*"}), "fuser '/run/lsa-process x/a[1]*' 2>/dev/null"),
        (json!({"file": "/usr/sbin/cron", "service": "cron"}), "pgrep -x cron"),
        (json!({"port": 22}), "ss -Hltnp 'sport = :22' | grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -u"),
        (json!({"state": "T", "service": "lsa-process"}), "cat /run/lsa-process.stopped"),
        (json!({"user": "54321"}), "true"),
        (json!({"port": 1}), "true"),
    ] {
        assert_eq!(list(&mut client, arguments.clone()).await, numbers(&machine.sh(other)), "{arguments}");
    }
    let said = client.envelope("proc_list", json!({"service": "lsa-process", "tree": true})).await;
    let text = said["data"].to_string();
    assert!(text.contains("--password ***") && !text.contains("hunter2"), "{said}");
    assert!(said["data"][0].as_str().is_some_and(|line| line.starts_with("1 ")), "{said}");
}

#[tokio::test]
async fn what_is_said_of_one_process_is_what_the_kernel_and_other_programs_say() {
    let test = "what_is_said_of_one_process_is_what_the_kernel_and_other_programs_say";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let mut client = machine.serve_default().await;
    let read = |command: &str| machine.sh(command).trim().to_owned();
    for name in ["cron", "rsyslogd", "nginx", "systemd-journal"] {
        let Ok(pid) = read(&format!("pgrep -o -x {name}")).parse::<u64>() else {
            panic!("{name} doesn't run")
        };
        let said = info(&mut client, pid).await;
        let data = &said["data"];
        for (member, command) in [
            ("executable", format!("readlink /proc/{pid}/exe")),
            ("unit", format!("systemctl whoami {pid} 2>/dev/null || ps -o unit:80= -p {pid}")),
            ("user", format!("ps -o euser:40= -p {pid}")),
            ("threads", format!("ps -o nlwp= -p {pid}")),
            ("open_files", format!("ls /proc/{pid}/fd | wc -l")),
        ] {
            let found = data[member].as_str().map_or_else(|| data[member].to_string(), str::to_owned);
            assert_eq!(found, read(&command), "{name}, {member}: {said}");
        }
        let listening = read(&format!("ss -Hltunp | grep 'pid={pid},' | wc -l"));
        assert_eq!(data["listens"].as_array().map_or(0, Vec::len).to_string(), listening, "{name}: {said}");
        let service = format!("svc_status {{\"service\": {}}}", data["unit"]);
        assert_eq!(data["next"], service, "{said}");
    }
    let main = read("systemctl show --property MainPID --value lsa-process");
    let Ok(main) = main.parse::<u64>() else { panic!("{main}") };
    let said = info(&mut client, main).await;
    assert_eq!(said["data"]["command"], "/usr/bin/sh /run/lsa-process.sh --password ***", "{said}");
    assert_eq!(said["data"]["cwd"], "/run/lsa-process x", "{said}");
    assert!(said["data"]["files"].to_string().contains("7 /run/lsa-process x/a[1]*"), "{said}");
    assert!(!said.to_string().contains("hunter2"), "{said}");
    let number = |command: &str| read(command).parse::<u64>().unwrap_or_else(|_| panic!("{command}"));
    let gone = info(&mut client, number("cat /run/lsa-process.gone")).await;
    assert_eq!(gone["data"]["executable"], "/run/lsa-process x/gone", "{gone}");
    assert_eq!(gone["data"]["executable_is"], "deleted", "{gone}");
    let stopped = info(&mut client, number("cat /run/lsa-process.stopped")).await;
    assert!(stopped["data"]["meaning"].to_string().contains("SIGCONT"), "{stopped}");
    let inside = info(&mut client, number("pgrep -P $(pgrep -x unshare) -x sleep")).await;
    assert_eq!(inside["data"]["own_namespaces"], json!(["net", "pid"]), "{inside}");
    assert_eq!(inside["data"]["pid_inside"], 1, "{inside}");
    let zombie = number("pgrep --runstates Z --exact sleep | head -n 1");
    let parent = number(&format!("ps -o ppid= -p {zombie}"));
    let said = info(&mut client, zombie).await;
    assert!(said["data"]["meaning"].to_string().contains(&format!("PID {parent} (")), "{said}");
    let thread = number("ls /proc/$(pgrep -o -x rsyslogd)/task | sort -n | tail -n 1");
    let said = info(&mut client, thread).await;
    assert_eq!(said["data"]["pid"], number("pgrep -o -x rsyslogd"), "{said}");
    assert!(said["notes"].to_string().contains("is a thread"), "{said}");
    for (pid, code) in [(0, "INVALID_ARGUMENTS"), (-1, "INVALID_ARGUMENTS"), (4_194_304, "PROCESS_NOT_FOUND")]
    {
        let said = client.envelope("proc_info", json!({"pid": pid})).await;
        assert_eq!(said["error_code"], code, "{said}");
    }
}
