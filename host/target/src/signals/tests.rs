use std::process::{Child, Command as Process, Stdio};

use super::*;
use crate::Overrides;

/// A process of this test, which is ended with it.
struct Running(Child);

impl Running {
    /// Starts a script, and waits until it says that it is ready.
    fn start(script: &str) -> Self {
        use std::io::Read;
        let mut child = Process::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut ready = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        Self(child)
    }

    fn id(&self) -> ProcessId {
        id(self.0.id())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn fields(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Some(text.rsplit_once(") ")?.1.split_whitespace().map(str::to_owned).collect())
}

fn id(pid: u32) -> ProcessId {
    ProcessId { pid, start_ticks: fields(pid).unwrap()[19].parse().unwrap() }
}

fn signal(processes: &[ProcessId], signal: u8) -> ProcessSignal {
    ProcessSignal {
        processes: processes.to_vec(),
        tree: false,
        signal,
        wait_seconds: 0,
        kill: false,
        privilege: Privilege::Caller,
    }
}

async fn sent(signal: &ProcessSignal) -> (i32, Vec<(u32, String)>) {
    let output = Target::local(Overrides::default()).signal_processes(signal).await.unwrap();
    (output.exit_code, outcomes(&output).into_iter().map(|(id, word)| (id.pid, word)).collect())
}

/// A process that has ended, and whose parent, this test, hasn't noticed it.
fn is_ended(pid: u32) -> bool {
    fields(pid).is_none_or(|fields| fields[0] == "Z")
}

#[tokio::test]
async fn a_process_that_ignores_the_end_is_killed_after_the_time() {
    let running = Running::start("trap '' TERM; echo; while :; do sleep 1; done");
    let ending = ProcessSignal { wait_seconds: 1, ..signal(&[running.id()], 15) };
    assert_eq!(sent(&ending).await, (0, vec![(running.id().pid, "running".to_owned())]));
    let killing = ProcessSignal { kill: true, ..ending };
    let (code, outcomes) = sent(&killing).await;
    assert_eq!((code, outcomes.len()), (0, 1));
    assert!(outcomes[0].1.starts_with("zombie "), "{outcomes:?}");
    assert!(is_ended(running.id().pid));
}

#[tokio::test]
async fn a_process_whose_first_thread_has_ended_is_ended_with_the_others() {
    // SYS_exit ends one thread, and os._exit all of them.
    let script = r#"exec python3 -c '
import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print(flush=True)
ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)'"#;
    let running = Running::start(script);
    while fields(running.id().pid).is_some_and(|fields| fields[0] != "Z") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let pid = running.id().pid;
    assert_eq!(sent(&signal(&[running.id()], 0)).await.1, [(pid, "sent".to_owned())]);
    let ending = ProcessSignal { wait_seconds: 10, ..signal(&[running.id()], 15) };
    // The test hasn't reaped it, so that it is a zombie then.
    assert!(sent(&ending).await.1[0].1.starts_with("zombie "));
    assert_eq!(fields(pid).unwrap()[17], "1");
}

#[tokio::test]
async fn another_process_with_the_number_gets_nothing_and_neither_do_the_others() {
    let (one, other) = (Running::start("echo; exec sleep 60"), Running::start("echo; exec sleep 60"));
    let reused = ProcessId { start_ticks: one.id().start_ticks + 1, ..one.id() };
    let (code, outcomes) = sent(&signal(&[other.id(), reused], 9)).await;
    assert_eq!((code, outcomes), (NOTHING_SENT, vec![(one.id().pid, "other".to_owned())]));
    assert!(!is_ended(one.id().pid) && !is_ended(other.id().pid));
}

#[tokio::test]
async fn the_first_process_and_those_that_carry_the_command_get_nothing() {
    let own = [id(1), id(std::process::id())];
    for one in own {
        let (code, outcomes) = sent(&signal(&[one], 0)).await;
        assert_eq!((code, outcomes), (NOTHING_SENT, vec![(one.pid, "own".to_owned())]));
    }
    let seen = Target::local(Overrides::default()).look_at_processes(&signal(&own, 15)).await.unwrap();
    assert!(seen.processes.iter().all(|process| process.reach == Reach::Own), "{seen:?}");
}

#[tokio::test]
async fn a_tree_that_forks_while_it_is_ended_is_ended() {
    let mark = format!("60.0{}", std::process::id());
    let script = format!("echo; while :; do (sleep {mark} & sleep 0.02); sleep {mark} & sleep 0.01; done");
    let running = Running::start(&script);
    // The loop has to be under way.
    let has = |mark: &str| {
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter(|entry| {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
                line == format!("sleep\0{mark}\0").as_bytes() && pid.is_some_and(|pid| !is_ended(pid))
            })
            .count()
    };
    while has(&mark) < 4 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let ending = ProcessSignal { tree: true, wait_seconds: 10, kill: true, ..signal(&[running.id()], 15) };
    let before = has(&mark);
    let (code, outcomes) = sent(&ending).await;
    assert_eq!(code, 0);
    assert!(outcomes.len() > before / 2, "{outcomes:?}");
    assert!(
        outcomes.iter().all(|(_, word)| word == "ended" || word == "gone" || word.starts_with("zombie")),
        "{outcomes:?}"
    );
    assert!(is_ended(running.id().pid));
    assert!(outcomes.iter().all(|(pid, _)| is_ended(*pid)));
    // The children of a subshell that ended before the look have another parent, and are no descendants. They end here.
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line == format!("sleep\0{mark}\0").as_bytes() {
            let pid = entry.file_name().to_str().unwrap().to_owned();
            let _ = Process::new("kill").args(["-9", &pid]).status();
        }
    }
}

#[tokio::test]
async fn a_tree_is_stopped_and_goes_on() {
    let running = Running::start("sleep 60 & echo; wait");
    let children = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let of = running.id().pid.to_string();
        pids.filter(|pid| fields(*pid).is_some_and(|fields| fields[1] == of)).collect::<Vec<_>>()
    };
    let child = children()[0];
    let states = || [running.id().pid, child].map(|pid| fields(pid).unwrap()[0].clone());
    let stop = ProcessSignal { tree: true, ..signal(&[running.id()], 19) };
    assert_eq!(sent(&stop).await.1.len(), 2);
    assert_eq!(states(), ["T", "T"]);
    assert_eq!(sent(&ProcessSignal { signal: 18, ..stop.clone() }).await.1.len(), 2);
    while states() != ["S", "S"] {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // What was stopped ends by SIGTERM all the same.
    sent(&stop).await;
    let ending = ProcessSignal { signal: 15, wait_seconds: 10, ..stop };
    sent(&ending).await;
    assert!(is_ended(running.id().pid) && is_ended(child));
}

#[tokio::test]
async fn a_name_may_hold_what_looks_like_the_rest_of_the_line() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("a) Z 1 (\nb) R");
    std::fs::copy("/bin/sleep", &program).unwrap();
    let mut child = Process::new(&program).arg("60").spawn().unwrap();
    let shows = || std::fs::read(format!("/proc/{}/comm", child.id())).unwrap();
    while !shows().starts_with(b"a) Z") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let one = id(child.id());
    let seen = Target::local(Overrides::default()).look_at_processes(&signal(&[one], 15)).await.unwrap();
    let [process] = seen.processes.as_slice() else { panic!("{seen:?}") };
    assert_eq!((process.reach, process.id), (Reach::Given, one));
    assert!(process.name.starts_with("a) Z"), "{}", process.name);
    assert!(process.command.contains("a) Z 1 ( b) R' 60"), "{}", process.command);
    assert_eq!(sent(&signal(&[one], 9)).await.0, 0);
    child.wait().unwrap();
    assert_eq!(sent(&signal(&[one], 9)).await, (0, vec![(one.pid, "gone".to_owned())]));
}

#[tokio::test]
async fn a_command_line_adds_no_line_to_the_answer() {
    for odd in [
        r"\n uids 7 7 7 7\n9 9 given",
        "\n uids 7 7 7 7\n9 9 given",
        r"\c",
        r"\012 uids 7",
        "%s %n",
        "\r uids 7",
    ] {
        let mut child = Process::new("sh")
            .args(["-c", "echo; read line", "sh", odd])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let one = id(child.id());
        let seen = Target::local(Overrides::default()).look_at_processes(&signal(&[one], 15)).await.unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let [process] = seen.processes.as_slice() else { panic!("{odd:?}: {seen:?}") };
        assert_eq!(process.uids, [rustix::process::geteuid().as_raw(); 4], "{odd:?}");
        assert_eq!(process.thread_of, Some(one.pid));
        let shown = odd.replace('\n', " ");
        assert!(process.command.ends_with(&format!("{}'", shown.trim())), "{odd:?}: {}", process.command);
    }
}

#[test]
fn words_of_a_command_line_stay_apart() {
    for (words, shown) in [
        ("sleep\u{1f}60\u{1f}", "sleep 60"),
        ("nginx: worker process\u{1f}\u{1f}\u{1f}", "nginx: worker process"),
        ("mysql\u{1f}-e\u{1f}select 1; select 2\u{1f}-px", "mysql -e 'select 1; select 2' -px"),
        ("x\u{1f}\u{1f}it's", "x '' 'it'\\''s'"),
        ("[kthreadd]", "[kthreadd]"),
        ("", ""),
    ] {
        assert_eq!(command_line(words), shown, "{words:?}");
    }
}

#[tokio::test]
async fn what_was_stopped_before_stays_so_unless_its_end_is_meant() {
    let running = Running::start("trap : USR1; echo; while :; do sleep 60; done");
    let one = running.id();
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", one.pid)).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next()
    };
    sent(&signal(&[one], 19)).await;
    while state() != Some('T') {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    sent(&ProcessSignal { tree: true, ..signal(&[one], 10) }).await;
    assert_eq!(state(), Some('T'));
    let ending = ProcessSignal { tree: true, wait_seconds: 10, kill: true, ..signal(&[one], 15) };
    assert_eq!(sent(&ending).await.0, 0);
    assert!(is_ended(one.pid));
}

/// Gives the number of a process that has ended to another one. It needs root, for a namespace of its own.
#[test]
fn a_number_that_was_given_to_another_process_is_not_signalled() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let script = format!(
        r#"sleep 60 & first=$!
start=$(sed 's/.*) //' /proc/$first/stat | cut -d ' ' -f 20)
kill -9 $first; wait $first 2> /dev/null
# A clock tick has to pass, so that the start is another one.
while [ "$(sed 's/.*) //' /proc/self/stat | cut -d ' ' -f 20)" = "$start" ]; do :; done
tries=0
while [ "$second" != "$first" ] && [ $tries -lt 200 ]; do
  echo $((first - 1)) > /proc/sys/kernel/ns_last_pid
  sleep 60 & second=$!
  [ $second = $first ] || kill -9 $second
  tries=$((tries + 1))
done
echo "reused $second $first"
sh -c '{}' sh act 9 0 0 0 $first:$start
echo "code $?"
kill -0 $second && echo lives
kill -9 $second"#,
        SCRIPT.replace('\'', r"'\''")
    );
    let unshared = Process::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "sh", "-c", &script])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&unshared.stdout);
    let lines: Vec<&str> = said.lines().collect();
    let words: Vec<&str> = lines.first().unwrap_or(&"").split(' ').collect();
    let ["reused", second, first] = words[..] else {
        panic!("{said} {}", String::from_utf8_lossy(&unshared.stderr))
    };
    assert_eq!(first, second, "{said}");
    assert!(lines[1].ends_with(" other") && lines[1].starts_with(first), "{said}");
    assert_eq!(&lines[2..], ["code 3", "lives"], "{said}");
}

#[test]
fn an_answer_of_another_form_is_a_problem() {
    let output = |text: &str, exit_code| Output { stdout: text.into(), exit_code, ..Output::default() };
    let whole = "boot 1700000000\n7 5 given\n uids 1 1 1 1\n user ada\n thread-of 7\n cgroup /system.slice/x.service\n \
                 command sleep 60\n9 6 denied\n8 6 gone\n";
    let seen = read(&output(whole, 0)).unwrap();
    assert_eq!((seen.boot_unix, seen.processes.len()), (1_700_000_000, 3));
    let first = &seen.processes[0];
    assert_eq!(
        (first.service(), first.thread_of, first.uids.as_slice()),
        (Some("x.service"), Some(7), &[1; 4][..])
    );
    for (text, code) in
        [("", 1), ("7 5 given\nx", 0), (" uids 1\n", 0), ("7 5 perhaps\n", 0), ("7 x given\n", 0)]
    {
        assert_eq!(read(&output(text, code)).unwrap_err().code, "UNEXPECTED_OUTPUT", "{text:?}");
    }
}

#[test]
fn the_service_is_one_of_the_systems_own_manager() {
    for (cgroup, service) in [
        ("/system.slice/nginx.service", Some("nginx.service")),
        ("/system.slice/system-x.slice/x@1.service/sub", Some("x@1.service")),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/x.service", None),
        ("/user.slice/user-1000.slice/session-3.scope", None),
        ("/system.slice/docker-0123456789ab.scope/x.service", None),
        ("/", None),
        ("", None),
    ] {
        let text = format!("7 5 given\n cgroup {cgroup}\n");
        let output = Output { stdout: text.into(), ..Output::default() };
        assert_eq!(read(&output).unwrap().processes[0].service(), service, "{cgroup}");
    }
}
