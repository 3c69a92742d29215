use super::*;
use host_audit::{FileChange, Outcome, Process, Settings};
use host_target::Overrides;

fn gone() -> Option<Process> {
    Some(Process { boot_id: "another".to_owned(), ..Process::current().unwrap() })
}

/// A change that the account of the tests has begun on this machine.
fn begun(facts: &Facts, files: Vec<FileChange>) -> ChangeBegun {
    let mut begun = ChangeBegun { process: gone(), files, ..host_audit::examples::begun("c1") };
    begun.target.machine_id = facts.machine_id.clone();
    begun.target.uid = Some(facts.uid);
    begun
}

async fn run(directory: &Path, id: Option<&str>) -> (bool, String, String) {
    let command = Recover { id: id.map(str::to_owned), force: false };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let done = command.run(directory, &mut out, &mut err).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap().replace("\n  ", " ");
    (done, text(out), text(err))
}

#[tokio::test]
async fn only_the_very_machine_that_a_change_was_made_to_is_put_right_by_the_account_that_made_it() {
    let facts = Target::local(Overrides::default()).facts().await.unwrap();
    let ours = begun(&facts, Vec::new()).target;
    let key = ours.host_key.clone();
    assert_eq!(elsewhere(&ours, &facts, key.as_deref()), None);
    let of_machine = TargetUsed { machine_id: Some("another".to_owned()), ..ours.clone() };
    let of_account = TargetUsed { uid: Some(facts.uid + 1), ..ours.clone() };
    let of_key = TargetUsed { host_key: Some("SHA256:second".to_owned()), ..ours.clone() };
    let here = TargetUsed { host_key: None, ..ours };
    for (used, said) in [
        (&of_machine, "another machine, web1.example: expected machine id another at web1"),
        (&of_account, "the account admin"),
        (&of_key, "the host key SHA256:second, and web1 shows SHA256:first"),
        (&here, "the host key none"),
    ] {
        let refused = elsewhere(used, &facts, key.as_deref()).unwrap();
        assert!(refused.contains(said), "{refused}");
    }
}

#[tokio::test]
async fn what_there_is_to_recover_is_listed_and_everything_else_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let log = host_audit::examples::with_calls(home.path(), 1, Settings { rotate_bytes: 1 << 20, keep: 2 });
    let (done, out, err) = run(home.path(), None).await;
    assert!(done && err.is_empty() && out == "no change is unfinished\n", "{out}");
    for id in ["c1", "c2"] {
        let begun = Event::ChangeBegun(Box::new(host_audit::examples::begun(id)));
        log.append(&begun, Durability::Synced).unwrap();
    }
    log.append(&host_audit::examples::ended("c2", Outcome::Undone), Durability::Synced).unwrap();
    // By the record this process makes the change.
    let (done, out, _) = run(home.path(), None).await;
    assert!(done && out.contains("c1") && !out.contains("c2"), "{out}");
    assert!(out.contains("still being made") && out.contains("- write /etc/nginx/nginx.conf"), "{out}");
    for (id, said) in [
        ("c1", "error: change c1 is still being made"),
        ("c2", "error: change c2 has ended"),
        ("c3", "error: change c3 is not on record"),
        ("\u{1b}[2J", "error: change \\u{1b}[2J is not on record"),
    ] {
        let (done, out, err) = run(home.path(), Some(id)).await;
        assert!(!done && out.is_empty() && err.contains(said), "{err}");
    }
    let recovered = |not_restored: Vec<String>| {
        let restored = Vec::new().into();
        let id = "c1".to_owned();
        Event::ChangeRecovered(ChangeRecovered {
            id,
            by: "root".to_owned(),
            restored,
            not_restored: not_restored.into(),
        })
    };
    log.append(&recovered(vec!["/x: changed".to_owned()]), Durability::Synced).unwrap();
    assert!(
        run(home.path(), Some("c1")).await.2.contains("still being made"),
        "there is something left of it"
    );
    log.append(&recovered(Vec::new()), Durability::Synced).unwrap();
    assert!(run(home.path(), Some("c1")).await.2.contains("has been recovered already"));
    assert!(run(home.path(), None).await.1.contains("no change is unfinished"));
}

#[tokio::test]
async fn the_undo_of_commands_is_told_the_latest_first_and_nothing_in_it_is_hidden() {
    let facts = Target::local(Overrides::default()).facts().await.unwrap();
    let mut begun = begun(&facts, Vec::new());
    begun.undo = vec![vec!["rm -- a".to_owned(), "rm -- \u{1b}[2Jb".to_owned()], vec!["rm -- c".to_owned()]];
    let recovered =
        Recovered { restored: vec!["/a is put back".to_owned()], not_restored: vec!["/b: no".to_owned()] };
    let mut out = Vec::new();
    tell(&begun, &recovered, false, &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    let expected = "/a is put back\nNOT RESTORED: /b: no\n\
        commands of the undo, not run; look whether they are needed:\n\
        \x20 rm -- c\n  rm -- a\n  rm -- \\u{1b}[2Jb\n  systemctl daemon-reload\n";
    assert_eq!(out, expected);
}
