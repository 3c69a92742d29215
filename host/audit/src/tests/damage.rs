//! Tests that every kind of damage to a log is found, and that its first place is named.

use std::sync::OnceLock;

use proptest::prelude::*;

use super::*;
use crate::files::{CURRENT_FILE, HEAD_FILE};

const SMALL: Settings = Settings { rotate_bytes: 2000, keep: 200 };

/// Makes a log of three files, the newest with several records.
fn three_files() -> TempDir {
    let (home, audit) = with_calls(1, SMALL);
    while log_files(home.path()).len() < 3 {
        audit.append(&call(2), Durability::Lazy).unwrap();
    }
    for number in 0..2 {
        audit.append(&call(number), Durability::Lazy).unwrap();
    }
    home
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn put(path: &Path, lines: &[String]) {
    fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

fn broken(directory: &Path) -> String {
    match verify(directory, &JournalHeads::default()) {
        Err(VerifyError::Damage(broken)) => broken.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_kind_of_damage_is_found_at_its_first_line() {
    type Damage = fn(&Path, &[PathBuf]);
    let damages: [(&str, Damage, &str, &str); 15] = [
        (
            "edited",
            |_, files| edited(&files[1], |all| all[1] = all[1].replace("web1", "web2")),
            "1:2",
            "hash",
        ),
        ("removed", |_, files| edited(&files[1], |all| _ = all.remove(1)), "1:2", "found record"),
        ("swapped", |_, files| edited(&files[1], |all| all.swap(1, 2)), "1:2", "found record"),
        (
            "inserted",
            |_, files| edited(&files[1], |all| all.insert(1, all[1].replace("web1", "web2"))),
            "1:2",
            "hash",
        ),
        (
            "duplicate",
            |_, files| edited(&files[1], |all| all.insert(1, all[1].clone())),
            "1:3",
            "found record",
        ),
        ("no JSON", |_, files| edited(&files[0], |all| all[0].insert(0, 'x')), "0:1", "JSON object"),
        (
            "empty line",
            |_, files| edited(&files[0], |all| all.insert(1, String::new())),
            "0:2",
            "JSON object",
        ),
        ("truncated", |_, files| edited(&files[2], |all| _ = all.pop()), "2:4", "audit.head names"),
        (
            "cut",
            |_, files| fs::write(&files[2], fs::read_to_string(&files[2]).unwrap().trim_end()).unwrap(),
            "2:4",
            "end of the line",
        ),
        ("full, truncated", |_, files| edited(&files[0], |all| _ = all.pop()), "1:1", "found record"),
        ("oldest", |_, files| fs::remove_file(&files[0]).unwrap(), "1:1", "record of its removal"),
        ("middle", |_, files| fs::remove_file(&files[1]).unwrap(), "2:1", "found record"),
        ("newest", |_, files| fs::remove_file(&files[2]).unwrap(), "1:", "audit.head names"),
        ("head", |home, _| fs::remove_file(home.join(HEAD_FILE)).unwrap(), "audit.head", "no such file"),
        ("emptied", |_, files| fs::write(&files[1], "").unwrap(), "1", "an empty file"),
    ];
    let whole = three_files();
    verified(whole.path());
    for (what, damage, place, word) in damages {
        let home = copy(whole.path());
        let files = log_files(home.path());
        damage(home.path(), &files);
        let said = broken(home.path());
        let place = match place.split_once(':') {
            Some((file, line)) => {
                let name =
                    files[file.parse::<usize>().unwrap()].file_name().unwrap().to_str().unwrap().to_owned();
                // A file of the log goes on where the file before it ends.
                format!("{name}:{line}")
            }
            None if place == "1" => files[1].file_name().unwrap().to_str().unwrap().to_owned(),
            None => place.to_owned(),
        };
        assert!(said.starts_with(&place) && said.contains(word), "{what}: {said}, not at {place}");
    }
}

fn edited(path: &Path, edit: impl FnOnce(&mut Vec<String>)) {
    let mut all = lines(path);
    edit(&mut all);
    put(path, &all);
}

#[test]
fn a_file_under_another_name_is_found() {
    let whole = three_files();
    let files = log_files(whole.path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    // Two files are swapped, or a name claims more records than the file has.
    let home = copy(whole.path());
    let (first, second) = (home.path().join(name(&files[0])), home.path().join(name(&files[1])));
    let aside = home.path().join("aside");
    fs::rename(&first, &aside).unwrap();
    fs::rename(&second, &first).unwrap();
    fs::rename(&aside, &second).unwrap();
    broken(home.path());
    let home = copy(whole.path());
    fs::rename(home.path().join(name(&files[0])), home.path().join("audit-1-99.jsonl")).unwrap();
    broken(home.path());
}

#[test]
fn a_chain_that_was_made_anew_is_found_by_the_heads_that_another_log_has() {
    let (home, audit) = with_calls(2, ROOMY);
    let third = audit.append(&call(3), Durability::Synced).unwrap();
    audit.append(&call(4), Durability::Lazy).unwrap();
    let heads = |text: &str| JournalHeads::read(text.as_bytes()).unwrap();
    let told = heads(&format!("audit head 3 {}\n", third.hash));
    assert_eq!(verify(home.path(), &told).unwrap().notes, [Note::HeadsFound(1), Note::HeadsFrom(3)]);
    let said = |directory: &Path, heads: &JournalHeads| verify(directory, heads).unwrap_err().to_string();
    let beyond = heads(&format!("audit head 9 {}\n", third.hash));
    let text = said(home.path(), &beyond);
    assert!(
        text.starts_with("audit.jsonl:5: ") && text.contains("record 9, which the other log names"),
        "{text}"
    );
    let (anew, _) = with_calls(4, ROOMY);
    verified(anew.path());
    let text = said(anew.path(), &told);
    assert!(text.starts_with("audit.jsonl:3: ") && text.contains(&third.hash), "{text}");
}

#[test]
fn no_log_is_no_damage_and_a_head_without_a_log_is() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(verified(home.path()).records, 0);
    assert_eq!(verified(&home.path().join("none")).records, 0);
    let (with_log, _) = with_calls(2, ROOMY);
    fs::copy(with_log.path().join(HEAD_FILE), home.path().join(HEAD_FILE)).unwrap();
    assert!(broken(home.path()).contains("record 2, which audit.head names"));
    let none = tempfile::tempdir().unwrap();
    let told = JournalHeads::read(format!("audit head 1 {}\n", "a".repeat(64)).as_bytes()).unwrap();
    assert!(verify(none.path(), &told).is_err());
}

#[test]
fn a_damaged_head_is_named() {
    let (home, _) = with_calls(2, ROOMY);
    fs::write(home.path().join(HEAD_FILE), "nonsense").unwrap();
    assert!(broken(home.path()).contains("audit.head: expected a record's number and hash"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_byte_that_was_changed_is_found(which in 0_usize..3, at in any::<prop::sample::Index>(), by in 1_u8..) {
        static WHOLE: OnceLock<TempDir> = OnceLock::new();
        let whole = WHOLE.get_or_init(three_files);
        let home = copy(whole.path());
        let path = &log_files(home.path())[which];
        let mut bytes = fs::read(path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        fs::write(path, bytes).unwrap();
        let found = verify(home.path(), &JournalHeads::default());
        prop_assert!(matches!(found, Err(VerifyError::Damage(_))), "{which} {at} {by}: {found:?}");
    }
}

#[test]
fn a_log_of_nothing_but_the_current_file_is_named_by_it() {
    let (home, _) = with_calls(3, ROOMY);
    let path = home.path().join(CURRENT_FILE);
    edited(&path, |all| all.truncate(0));
    assert!(broken(home.path()).starts_with("audit.jsonl:1: "));
}
