//! Tests in which several threads of several processes write one chain.

use std::collections::BTreeMap;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use super::*;

const DIRECTORY: &str = "AUDIT_TEST_DIRECTORY";
const WRITER: &str = "AUDIT_TEST_WRITER";
const PROCESSES: u64 = 3;
const THREADS: u64 = 4;
const RECORDS: u64 = 60;
const SMALL: Settings = Settings { rotate_bytes: 16 << 10, keep: 200 };

fn spawn(test: &str, directory: &Path, writer: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", &format!("tests::concurrent::{test}"), "--quiet"])
        .env(DIRECTORY, directory)
        .env(WRITER, writer.to_string())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

fn given() -> (AuditLog, u64) {
    let directory = std::env::var_os(DIRECTORY).unwrap();
    let writer = std::env::var(WRITER).unwrap().parse().unwrap();
    (audit(Path::new(&directory), SMALL).with_wait(Duration::from_secs(60)), writer)
}

#[test]
#[ignore = "a process of the tests below"]
fn many_records() {
    let (audit, writer) = given();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let audit = &audit;
            scope.spawn(move || {
                for record in 0..RECORDS {
                    let durability = if record % 20 == 0 { Durability::Synced } else { Durability::Lazy };
                    audit.append(&call(json!([writer * THREADS + number, record])), durability).unwrap();
                }
            });
        }
    });
}

#[test]
#[ignore = "a process of the tests below"]
fn one_change() {
    let (audit, writer) = given();
    audit.append(&Event::ChangeBegun(Box::new(begun(&writer.to_string()))), Durability::Synced).unwrap();
}

#[test]
fn threads_and_processes_write_one_chain_over_many_files() {
    let home = tempfile::tempdir().unwrap();
    let children: Vec<Child> =
        (0..PROCESSES).map(|writer| spawn("many_records", home.path(), writer)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    verified(home.path());
    assert!(log_files(home.path()).len() > 10);
    let mut seen: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for record in records(home.path()).iter().filter(|record| record.event == "call") {
        let who = &record.members["arguments"]["n"];
        seen.entry(who[0].as_u64().unwrap()).or_default().push(who[1].as_u64().unwrap());
    }
    assert_eq!(seen.len() as u64, PROCESSES * THREADS);
    let all: Vec<u64> = (0..RECORDS).collect();
    assert!(seen.values().all(|records| *records == all), "each once, in the order of its writer");
}

#[test]
fn a_change_whose_process_is_gone_was_left_unfinished() {
    let home = tempfile::tempdir().unwrap();
    assert!(spawn("one_change", home.path(), 7).wait().unwrap().success());
    let open = unfinished(home.path()).unwrap();
    assert_eq!((open.len(), open[0].begun.id.as_str(), open[0].liveness()), (1, "7", Liveness::Gone));
    assert_eq!(verified(home.path()).notes, [Note::Unfinished(1)]);
    assert_eq!(recent_leftovers(home.path()).unwrap()[0].begun.id, "7");
    // Only a complete recovery ends the change.
    let audit = audit(home.path(), SMALL);
    for (not_restored, open) in
        [(vec!["/a: no".to_owned()], 1), (vec!["x".repeat(LONGEST_LINE)], 1), (Vec::new(), 0)]
    {
        let (id, by) = ("7".to_owned(), "root".to_owned());
        let recovered =
            ChangeRecovered { id, by, restored: Vec::new().into(), not_restored: not_restored.into() };
        audit.append(&Event::ChangeRecovered(recovered), Durability::Synced).unwrap();
        assert_eq!(unfinished(home.path()).unwrap().len(), open);
        assert_eq!(recent_leftovers(home.path()).unwrap().len(), open);
    }
}

#[test]
fn what_was_left_lately_is_seen_in_the_last_records_whatever_else_is_there() {
    let none = tempfile::tempdir().unwrap();
    assert!(recent_leftovers(none.path()).unwrap().is_empty());
    let (home, audit) = with_calls(3, ROOMY);
    assert!(recent_leftovers(home.path()).unwrap().is_empty());
    assert!(spawn("one_change", home.path(), 7).wait().unwrap().success());
    // This process's own change is still being made, so nobody may recover it.
    audit.append(&Event::ChangeBegun(Box::new(begun("8"))), Durability::Synced).unwrap();
    audit.append(&call("\"event\":\"change-begun\""), Durability::Lazy).unwrap();
    let mut file = fs::File::options().append(true).open(home.path().join("audit.jsonl")).unwrap();
    std::io::Write::write_all(&mut file, b"{\"event\":\"change-ended\",\"id\":\"7\"").unwrap();
    assert_eq!(recent_leftovers(home.path()).unwrap()[0].begun.id, "7");
}
