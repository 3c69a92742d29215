//! Tests of the writer: what it writes, and what it refuses.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::{Duration, Instant};

use super::*;
use crate::files::{CURRENT_FILE, HEAD_FILE, LOCK_FILE};
use crate::head::Head;
use crate::lock::{LockMode, acquire};

const SMALL: Settings = Settings { rotate_bytes: 2000, keep: 3 };

#[test]
fn records_are_one_chain_from_the_first_to_the_last() {
    let (home, audit) = with_calls(3, ROOMY);
    let last = audit.append(&call("last"), Durability::Synced).unwrap();
    let records = records(home.path());
    let seqs: Vec<u64> = records.iter().map(|record| record.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
    assert_eq!(records[0].prev_hash, "0".repeat(64));
    assert!(records.windows(2).all(|pair| pair[0].hash == pair[1].prev_hash));
    assert_eq!(last, ChainPosition { seq: 4, hash: records[3].hash.clone() });
    let time = &records[0].time;
    assert!(time.len() == "2026-01-02T03:04:05.678Z".len() && time.ends_with('Z'), "{time}");
    assert!(matches!(records[3].to_event().unwrap(), Event::Call(call) if call.tool == "service_status"));
    let verified = verified(home.path());
    assert_eq!((verified.records, verified.first, verified.last, verified.notes), (4, 1, 4, vec![]));
}

#[test]
fn the_log_is_for_its_owner_alone() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("state/linux-sysadmin");
    audit(&directory, ROOMY).append(&call(1), Durability::Lazy).unwrap();
    assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
    for name in [CURRENT_FILE, HEAD_FILE, LOCK_FILE] {
        assert_eq!(fs::metadata(directory.join(name)).unwrap().mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn writers_that_do_not_know_of_each_other_continue_one_chain() {
    let (home, first) = with_calls(1, SMALL);
    let second = audit(home.path(), SMALL);
    for number in 0..20 {
        first.append(&call(number), Durability::Lazy).unwrap();
        second.append(&call(number), Durability::Lazy).unwrap();
    }
    assert!(verified(home.path()).last > 41);
}

#[test]
fn a_name_that_is_no_file_of_this_accounts_own_is_refused() {
    for name in [CURRENT_FILE, HEAD_FILE, LOCK_FILE] {
        for kind in ["link", "pipe", "directory", "writable by others"] {
            let (home, _) = with_calls(1, ROOMY);
            let path = home.path().join(name);
            let aside = home.path().join("aside");
            fs::rename(&path, &aside).unwrap();
            match kind {
                "link" => symlink(&aside, &path).unwrap(),
                "pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
                "directory" => fs::create_dir(&path).unwrap(),
                _ => {
                    fs::rename(&aside, &path).unwrap();
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
                }
            }
            let error = audit(home.path(), ROOMY).append(&call(2), Durability::Lazy).unwrap_err();
            let said = error.to_string();
            assert!(matches!(error, AuditError::Untrusted { .. }), "{kind} {name}: {said}");
            assert!(said.contains(name), "{said}");
        }
    }
    let (home, audit) = with_calls(1, ROOMY);
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = audit.append(&call(2), Durability::Lazy).unwrap_err();
    assert!(error.to_string().contains("others than its owner"), "{error}");
}

#[test]
fn a_directory_that_can_not_be_is_an_error_that_names_it() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    for directory in [file.join("below"), file, "/proc/none".into()] {
        let error = audit(&directory, ROOMY).append(&call(1), Durability::Lazy).unwrap_err();
        assert!(error.to_string().contains(directory.to_str().unwrap()), "{error}");
    }
}

#[test]
fn a_lock_that_another_process_keeps_is_an_error_and_nothing_is_written() {
    let (home, audit) = with_calls(1, ROOMY);
    let audit = audit.with_wait(Duration::ZERO);
    let held = acquire(home.path(), LockMode::Exclusive, Instant::now()).unwrap();
    let error = audit.append(&call(2), Durability::Lazy).unwrap_err();
    assert!(matches!(error, AuditError::Locked { .. }) && error.to_string().contains(LOCK_FILE), "{error}");
    let snapshot = Snapshot::open_within(home.path(), Duration::ZERO).unwrap();
    assert!(!snapshot.settled, "whoever reads goes on all the same, and says so");
    drop(held);
    assert_eq!(audit.append(&call(2), Durability::Lazy).unwrap().seq, 2);
}

/// A mounted file system of a few KiB, where the test may mount one.
struct Tiny(TempDir);

impl Tiny {
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=32k,mode=700", "tmpfs"])
            .arg(directory.path())
            .output();
        match done {
            Ok(output) if output.status.success() => Some(Self(directory)),
            _ => {
                eprintln!("skipped: nothing can be mounted here");
                None
            }
        }
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        assert!(Command::new("mount").args(["-o", &options]).arg(self.0.path()).status().unwrap().success());
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_an_error_that_leaves_the_chain_as_it_was() {
    let Some(tiny) = Tiny::mount() else { return };
    let directory = tiny.0.path();
    let log = audit(directory, ROOMY);
    let (mut written, error) = (
        0,
        loop {
            if let Err(error) = log.append(&call("x".repeat(700)), Durability::Synced) {
                break error;
            }
            assert!(records(directory).len() < 100);
        },
    );
    written += records(directory).len() as u64;
    assert!(written > 3);
    match &error {
        AuditError::Io { source, path, .. } => {
            assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
            assert!(path.starts_with(directory) && error.to_string().contains("audit.jsonl"), "{error}");
        }
        other => panic!("{other}"),
    }
    let before = verified(directory);
    assert_eq!((before.records, before.notes), (written, vec![]));
    tiny.remount("size=256k");
    assert_eq!(log.append(&call(1), Durability::Synced).unwrap().seq, written + 1);
    drop(log);
    tiny.remount("ro");
    let error = audit(directory, ROOMY).append(&call(2), Durability::Lazy).unwrap_err();
    assert!(error.to_string().contains("Read-only"), "{error}");
    assert_eq!(verified(directory).last, written + 1);
}

#[test]
fn a_disk_that_was_full_at_the_very_first_record_can_be_used_later() {
    let Some(tiny) = Tiny::mount() else { return };
    let directory = tiny.0.path();
    let ballast = directory.join("ballast");
    let _ = fs::write(&ballast, vec![1; 64 << 10]);
    let log = audit(directory, ROOMY);
    log.append(&call(1), Durability::Lazy).unwrap_err();
    assert_eq!(verified(directory).records, 0);
    fs::remove_file(ballast).unwrap();
    assert_eq!(log.append(&call(1), Durability::Lazy).unwrap().seq, 1);
    assert_eq!(verified(directory).records, 1);
}

#[test]
fn an_end_that_is_not_understood_is_not_continued() {
    for (damage, word) in [
        ("edited", "of what the record says"),
        ("no record", "JSON object"),
        ("head", "something else"),
        ("head of another chain", "hash"),
    ] {
        let (home, audit) = with_calls(3, ROOMY);
        let path = home.path().join(CURRENT_FILE);
        let text = fs::read_to_string(&path).unwrap();
        match damage {
            "edited" => {
                let last = text.rfind("service_status").unwrap();
                fs::write(&path, format!("{}service_delete{}", &text[..last], &text[last + 14..])).unwrap();
            }
            "no record" => fs::write(&path, format!("{text}nonsense\n")).unwrap(),
            "head" => fs::write(home.path().join(HEAD_FILE), "nonsense").unwrap(),
            _ => {
                let head = files::open(&home.path().join(HEAD_FILE), files::OpenMode::ReadWrite).unwrap();
                Head::new(3, &"e".repeat(64), 3).write(&head, home.path()).unwrap();
            }
        }
        drop(audit);
        let before = fs::read(&path).unwrap();
        let error = super::audit(home.path(), ROOMY).append(&call(4), Durability::Lazy).unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, AuditError::Corrupt { .. }), "{damage}: {said}");
        assert!(said.contains(word) && said.contains("audit verify"), "{damage}: {said}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_line_that_a_crash_left_torn_is_cut_off_and_that_is_on_record() {
    let (home, audit) = with_calls(3, ROOMY);
    let path = home.path().join(CURRENT_FILE);
    let mut text = fs::read(&path).unwrap();
    text.extend(b"{\"arguments\":");
    fs::write(&path, text).unwrap();
    assert!(unfinished(home.path()).unwrap().is_empty(), "what a crash leaves doesn't hinder recovery");
    assert_eq!(audit.append(&call(4), Durability::Lazy).unwrap().seq, 5);
    let mended = records(home.path())[3].to_event().unwrap();
    assert!(matches!(mended, Event::Mended(Mended { bytes: 13, lost_up_to_seq: None })));
    assert_eq!(verified(home.path()).notes, [Note::Mended(4)]);
}

#[test]
fn a_first_line_that_a_crash_left_torn_is_cut_off() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(CURRENT_FILE), "{\"arg").unwrap();
    assert_eq!(audit(home.path(), ROOMY).append(&call(1), Durability::Lazy).unwrap().seq, 2);
    assert_eq!(verified(home.path()).notes, [Note::Mended(1)]);
}

fn cut_last_line(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let end = text.trim_end().rfind('\n').unwrap() + 1;
    fs::write(path, &text[..end]).unwrap();
}

#[test]
fn a_log_whose_end_was_cut_off_is_not_continued() {
    let (home, log) = with_calls(3, ROOMY);
    cut_last_line(&home.path().join(CURRENT_FILE));
    for audit in [log, audit(home.path(), ROOMY)] {
        let error = audit.append(&call(4), Durability::Lazy).unwrap_err();
        assert!(matches!(error, AuditError::Truncated { named: 3, last: 2, .. }), "{error}");
    }
    assert_eq!(records(home.path()).len(), 2);
    fs::remove_file(home.path().join(CURRENT_FILE)).unwrap();
    let error = audit(home.path(), ROOMY).append(&call(4), Durability::Lazy).unwrap_err();
    assert!(matches!(error, AuditError::Truncated { named: 3, last: 0, .. }), "{error}");
    // The message tells this way out.
    fs::rename(home.path().join(HEAD_FILE), home.path().join("aside")).unwrap();
    assert_eq!(audit(home.path(), ROOMY).append(&call(4), Durability::Lazy).unwrap().seq, 1);
}

#[test]
fn what_was_not_written_through_when_the_machine_went_down_may_be_missing() {
    let (home, audit) = with_calls(3, ROOMY);
    let hash = records(home.path())[2].hash.clone();
    let put_head = |synced| {
        let head = Head { boot: "another".to_owned(), ..Head::new(3, &hash, synced) };
        let file = files::open(&home.path().join(HEAD_FILE), files::OpenMode::ReadWrite).unwrap();
        head.write(&file, home.path()).unwrap();
    };
    cut_last_line(&home.path().join(CURRENT_FILE));
    put_head(3);
    assert!(matches!(audit.append(&call(4), Durability::Lazy), Err(AuditError::Truncated { .. })));
    put_head(2);
    assert_eq!(verified(home.path()).notes, [Note::Lost { last: 2, head: 3 }]);
    assert_eq!(audit.append(&call(4), Durability::Lazy).unwrap().seq, 4);
    let mended = records(home.path())[2].to_event().unwrap();
    assert!(matches!(mended, Event::Mended(Mended { bytes: 0, lost_up_to_seq: Some(3) })));
    assert_eq!(verified(home.path()).notes, [Note::Mended(3)]);
}

#[test]
fn a_log_ahead_of_its_head_is_continued() {
    let (home, audit) = with_calls(3, ROOMY);
    let head = fs::read(home.path().join(HEAD_FILE)).unwrap();
    audit.append(&call(4), Durability::Lazy).unwrap();
    fs::write(home.path().join(HEAD_FILE), head).unwrap();
    assert_eq!(verified(home.path()).notes, [Note::AheadOfHead { head: 3, last: 4 }]);
    assert_eq!(super::audit(home.path(), ROOMY).append(&call(5), Durability::Lazy).unwrap().seq, 5);
    assert_eq!(verified(home.path()).notes, []);
}

#[test]
fn a_full_file_is_put_aside_and_the_oldest_go_on_record() {
    let (home, audit) = with_calls(60, SMALL);
    let files = log_files(home.path());
    assert_eq!(files.len(), 4, "{files:?}");
    let seen = verified(home.path());
    assert_eq!(seen.notes, [Note::Dropped(seen.first - 1)]);
    assert!(seen.first > 1);
    let all = records(home.path());
    assert_eq!(all[0].event, "rotated");
    let dropped = all.iter().rev().find(|record| record.event == "dropped").unwrap();
    assert!(matches!(
        dropped.to_event().unwrap(),
        Event::Dropped(dropped) if dropped.up_to_seq == seen.first - 1 && dropped.last_hash == all[0].prev_hash
    ));
    drop(audit);
    // A crash came after the file was put aside, and before there was a new one.
    let current = home.path().join(CURRENT_FILE);
    let first = all.iter().rfind(|record| record.event == "rotated").unwrap().seq;
    let aside = home.path().join(format!("audit-{first}-{}.jsonl", seen.last));
    fs::rename(&current, aside).unwrap();
    assert_eq!(verified(home.path()).last, seen.last);
    let next = super::audit(home.path(), SMALL).append(&call(61), Durability::Lazy).unwrap();
    assert_eq!(next.seq, seen.last + 3, "after the rotation and what it drops");
    verified(home.path());
}

#[test]
fn files_that_were_to_go_and_are_still_there_are_no_damage() {
    let (home, audit) = with_calls(12, Settings { keep: 200, ..SMALL });
    let before = copy(home.path());
    drop(audit);
    let few = super::audit(home.path(), Settings { keep: 1, ..SMALL });
    let files = log_files(home.path()).len();
    for number in 0.. {
        few.append(&call(number), Durability::Lazy).unwrap();
        if log_files(home.path()).len() < files {
            break;
        }
    }
    assert!(verified(home.path()).first > 1);
    // All of them except the oldest are there again.
    for path in log_files(before.path()).into_iter().skip(1).filter(|path| !path.ends_with(CURRENT_FILE)) {
        fs::copy(&path, home.path().join(path.file_name().unwrap())).unwrap();
    }
    verified(home.path());
}

#[test]
fn old_files_that_are_not_what_was_written_stay() {
    let (home, audit) = with_calls(4, SMALL);
    let oldest = log_files(home.path()).remove(0);
    assert!(!oldest.ends_with(CURRENT_FILE));
    fs::write(&oldest, "nonsense\n").unwrap();
    for number in 0..60 {
        audit.append(&call(number), Durability::Lazy).unwrap();
    }
    assert!(oldest.exists(), "what tells of the damage isn't removed as old");
    assert!(verify(home.path(), &JournalHeads::default()).is_err());
}

#[test]
fn heads_of_synced_records_and_of_rotations_go_to_the_journal() {
    let home = tempfile::tempdir().unwrap();
    let socket = home.path().join("journal");
    let journal = UnixDatagram::bind(&socket).unwrap();
    journal.set_nonblocking(true).unwrap();
    let directory = home.path().join("log");
    let audit = AuditLog::new(directory.clone(), SMALL).with_journal(socket);
    let heads = || {
        let mut text = String::new();
        let mut bytes = [0; 1024];
        while let Ok(length) = journal.recv(&mut bytes) {
            let message = String::from_utf8(bytes[..length].to_vec()).unwrap();
            text.push_str(message.lines().next().unwrap().strip_prefix("MESSAGE=").unwrap());
            text.push('\n');
        }
        text
    };
    audit.append(&call(1), Durability::Lazy).unwrap();
    assert_eq!(heads(), "");
    let synced = audit.append(&call(2), Durability::Synced).unwrap();
    assert_eq!(heads(), format!("audit head 2 {}\n", synced.hash));
    while !log_files(&directory).iter().any(|path| !path.ends_with(CURRENT_FILE)) {
        audit.append(&call(3), Durability::Lazy).unwrap();
    }
    let text = heads();
    let seq = text.split(' ').nth(2).and_then(|seq| seq.parse().ok()).unwrap();
    let told = JournalHeads::read(text.as_bytes()).unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!(verify(&directory, &told).unwrap().notes, [Note::HeadsFound(1), Note::HeadsFrom(seq)]);
}

#[test]
fn a_record_is_bounded_and_what_recovery_needs_is_never_left_out() {
    let (home, audit) = with_calls(1, ROOMY);
    audit.append(&call("x".repeat(2 * LONGEST_LINE)), Durability::Lazy).unwrap();
    let long: Vec<String> = (0..LONGEST_LINE / 4).map(|number| number.to_string()).collect();
    let end = ChangeEnded {
        undone: long.clone().into(),
        not_undone: long.clone().into(),
        exit_codes: vec![0; LONGEST_LINE].into(),
        ..match ended("c1", Outcome::Undone) {
            Event::ChangeEnded(ended) => ended,
            other => panic!("{other:?}"),
        }
    };
    audit.append(&Event::ChangeEnded(end), Durability::Synced).unwrap();
    let begun = ChangeBegun { undo: vec![long], ..begun("c2") };
    let error = audit.append(&Event::ChangeBegun(Box::new(begun)), Durability::Synced).unwrap_err();
    assert!(matches!(error, AuditError::TooLong { .. }), "{error}");
    let records = records(home.path());
    assert_eq!(records.len(), 3);
    assert!(records.iter().all(|record| record.line.len() < LONGEST_LINE));
    match records[1].to_event().unwrap() {
        Event::Call(call) => {
            assert!(
                matches!(call.arguments, MaybeOmitted::Omitted(omitted) if omitted.omitted_bytes > 500_000)
            )
        }
        other => panic!("{other:?}"),
    }
    assert!(
        matches!(records[2].to_event().unwrap(), Event::ChangeEnded(end) if end.outcome == Outcome::Undone)
    );
    verified(home.path());
}

#[test]
fn a_change_without_an_end_is_unfinished_and_running_as_long_as_its_process() {
    let (home, audit) = with_calls(1, ROOMY);
    for id in ["c1", "c2", "c3", "c4"] {
        let forged = Some(Process { pid: 1, ..Process::current().unwrap() });
        let begun = ChangeBegun { process: forged, ..begun(id) };
        audit.append(&Event::ChangeBegun(Box::new(begun)), Durability::Synced).unwrap();
    }
    audit.append(&ended("c1", Outcome::Done), Durability::Synced).unwrap();
    let recovered = ChangeRecovered {
        id: "c3".to_owned(),
        by: "root".to_owned(),
        restored: vec!["/etc/x".to_owned()].into(),
        not_restored: Vec::new().into(),
    };
    audit.append(&Event::ChangeRecovered(recovered), Durability::Synced).unwrap();
    let open = unfinished(home.path()).unwrap();
    let ids: Vec<&str> = open.iter().map(|change| change.begun.id.as_str()).collect();
    assert_eq!(ids, ["c2", "c4"]);
    assert_eq!(open[0].begun.files, begun("c2").files);
    assert_eq!(open[0].begun.process, Process::current(), "the writer says whose it is");
    assert_eq!(open[0].liveness(), Liveness::Running);
    assert_eq!(verified(home.path()).notes, [Note::Running(2)]);
    assert!(unfinished(&home.path().join("none")).unwrap().is_empty());
}

#[test]
fn a_change_that_ended_uncertain_is_nobodys_any_more_and_open_until_it_is_recovered() {
    let (home, audit) = with_calls(1, ROOMY);
    audit.append(&Event::ChangeBegun(Box::new(begun("c1"))), Durability::Synced).unwrap();
    audit.append(&ended("c1", Outcome::Uncertain), Durability::Synced).unwrap();
    let open = unfinished(home.path()).unwrap();
    assert_eq!((open.len(), open[0].liveness()), (1, Liveness::Uncertain));
    assert_eq!(recent_leftovers(home.path()).unwrap()[0].begun.id, "c1");
    assert_eq!(verified(home.path()).notes, [Note::Uncertain(1)]);
    let recovered = ChangeRecovered {
        id: "c1".to_owned(),
        by: "root".to_owned(),
        restored: Vec::new().into(),
        not_restored: Vec::new().into(),
    };
    audit.append(&Event::ChangeRecovered(recovered), Durability::Synced).unwrap();
    assert!(unfinished(home.path()).unwrap().is_empty());
}

#[test]
fn nothing_is_recovered_from_a_log_that_is_not_what_was_written() {
    let (home, audit) = with_calls(2, ROOMY);
    audit.append(&Event::ChangeBegun(Box::new(begun("c1"))), Durability::Synced).unwrap();
    let path = home.path().join(CURRENT_FILE);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("web1", "web2", 1)).unwrap();
    assert!(matches!(unfinished(home.path()), Err(AuditError::Corrupt { .. })));
}

#[test]
fn words_of_a_newer_version_are_kept_as_they_are() {
    let words: (Decision, DecidedBy) = serde_json::from_str(r#"["expired","terminal"]"#).unwrap();
    assert_eq!(words, (Decision::Other("expired".to_owned()), DecidedBy::Other("terminal".to_owned())));
    let known: (Decision, DecidedBy) = serde_json::from_str(r#"["dry-run","policy"]"#).unwrap();
    assert_eq!(known, (Decision::DryRun, DecidedBy::Policy));
}
