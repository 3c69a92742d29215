use super::*;
use crate::Target;
use host_capability::Access;

fn machine(transcript: &str, files: &[(&str, &str)], playback: Playback) -> (Arc<RecordedMachine>, Target) {
    let machine = Arc::new(RecordedMachine::new("sample", Facts::default()));
    let files = files.iter().map(|(path, contents)| ((*path).to_owned(), contents.as_bytes().to_vec()));
    let recording = Recording {
        commands: transcript::parse(transcript).unwrap(),
        files: files.collect(),
        ..Recording::default()
    };
    machine.play(recording, playback);
    let target = Target::recorded(machine.clone());
    (machine, target)
}

fn command(words: &[&str]) -> Command {
    Command::new(words[0], words[1..].iter().copied(), Duration::from_secs(1))
}

fn access(privilege: Privilege) -> Access {
    Access { privilege, verbs: Vec::new() }
}

#[tokio::test]
async fn a_command_is_answered_by_its_whole_argument_vector() {
    let text = "$ a b\n[exit 0]\nfirst\n$ a b\n[exit 3]\nsecond\n[stderr]\nodd\n";
    let (machine, target) = machine(text, &[], Playback::AsRecorded);
    let [recorded, other] = [&["a", "b"][..], &["a"]].map(command);
    let mut answers = target.run_all(&[recorded, other]).await.into_iter();
    let output = answers.next().unwrap().unwrap();
    assert_eq!(
        (output.exit_code, output.stdout, output.stderr),
        (3, b"second\n".to_vec(), b"odd\n".to_vec())
    );
    let problem = answers.next().unwrap().unwrap_err();
    assert_eq!((problem.code.as_str(), problem.message.as_str()), (NOT_RECORDED, "`a` was not recorded"));
    assert_eq!(machine.asked().not_recorded, [["a"]]);
    assert_eq!(machine.asked().ran.len(), 2);
}

#[tokio::test]
async fn what_a_command_prints_later_shows_once_a_change_has_begun() {
    let machine = Arc::new(RecordedMachine::new("sample", Facts::default()));
    let recording = Recording {
        commands: transcript::parse("$ look\n[exit 0]\nbefore\n$ change\n[exit 0]\n").unwrap(),
        later: transcript::parse("$ look\n[exit 0]\nafter\n").unwrap(),
        ..Recording::default()
    };
    machine.play(recording, Playback::AsRecorded);
    let target = Target::recorded(machine.clone());
    let look = async || target.run_all(&[command(&["look"])]).await.remove(0).unwrap().stdout;
    assert_eq!(look().await, b"before\n");
    target.act(&command(&["change"])).await.unwrap();
    assert_eq!(look().await, b"after\n");
    let changes: Vec<bool> = machine.asked().ran.iter().map(|ran| ran.changes).collect();
    assert_eq!(changes, [false, true, false]);
}

#[tokio::test]
async fn empty_huge_and_failing_answers_come_whatever_was_recorded() {
    for (playback, exit_code, least, truncated) in [
        (Playback::Empty, 0, 0, false),
        (Playback::Failing, 1, 0, false),
        (Playback::Huge, 0, KEPT_BYTES, true),
    ] {
        let (_, target) = machine("$ a\n[exit 0]\nx\n", &[], playback);
        for words in [&["a"][..], &["never", "recorded"]] {
            let output = target.run_all(&[command(words)]).await.remove(0).unwrap();
            let found = (output.exit_code, output.stdout.len(), output.truncated);
            assert_eq!(found, (exit_code, least, truncated), "{playback:?} {words:?}");
        }
    }
}

#[tokio::test]
async fn only_the_last_command_of_a_pipeline_has_a_stdout() {
    let (_, target) = machine("$ a\n[exit 0]\nx\n$ b\n[exit 0]\ny\n", &[], Playback::AsRecorded);
    let outputs = target.run_pipeline(&[command(&["a"]), command(&["b"])]).await.unwrap();
    let texts: Vec<_> = outputs.iter().map(|output| output.stdout.as_slice()).collect();
    assert_eq!(texts, [&b""[..], b"y\n"]);
}

#[tokio::test]
async fn recorded_files_are_read_listed_and_looked_at_and_no_file_of_this_machine_is() {
    let files = [("/srv/a/one", "0123456789"), ("/srv/a/b/two", "")];
    let (machine, target) = machine("", &files, Playback::AsRecorded);
    let caller = access(Privilege::Caller);
    let all: Arc<PathCheck> = Arc::new(|_, _| Ok(()));
    let request = |path: &str, offset| ReadRequest { path: path.to_owned(), offset, max_bytes: 3 };
    let requests = vec![request("/srv/a/one", 2), request("/srv/a/one", -2), request("/etc/passwd", 0)];
    let read = target.read_all(requests, &caller, all.clone()).await;
    let read: Vec<_> = read.into_iter().map(|read| read.map_err(|problem| problem.code)).collect();
    assert_eq!(read, [Ok(b"234".to_vec()), Ok(b"89".to_vec()), Err("FILE_NOT_FOUND".to_owned())]);
    let names = target.list_dir("/srv/a".to_owned(), &caller, all.clone()).await.unwrap();
    assert_eq!(names, ["b", "one"]);
    let paths = ["/srv/a/one", "/srv/a/b", "/srv/none"].map(str::to_owned).to_vec();
    let found = target.stat_all(paths, &caller, all).await;
    let kinds: Vec<_> = found.into_iter().map(|found| found.unwrap().map(|found| found.is_dir)).collect();
    assert_eq!(kinds, [Some(false), Some(true), None]);
    assert_eq!(machine.asked().paths.len(), 7);
}

#[tokio::test]
async fn a_path_that_the_check_refuses_is_not_read() {
    let (machine, target) = machine("", &[("/srv/a", "x")], Playback::AsRecorded);
    let refuse: Arc<PathCheck> =
        Arc::new(|_, _| Err(Problem::new("CAPABILITY_DENIED", Category::Denied, "no")));
    let request = ReadRequest { path: "/srv/a".to_owned(), offset: 0, max_bytes: 3 };
    let read = target.read_all(vec![request], &access(Privilege::Caller), refuse).await.remove(0);
    assert_eq!(read.unwrap_err().code, "CAPABILITY_DENIED");
    assert!(machine.asked().paths.is_empty());
}

#[tokio::test]
async fn rights_that_the_recorded_account_lacks_are_refused() {
    let (_, target) = machine("$ a\n[exit 0]\n", &[("/srv/a", "x")], Playback::AsRecorded);
    let as_root = Command { privilege: Privilege::Root, ..command(&["a"]) };
    // The facts of an account that is not root and has no sudo.
    let facts = Facts { uid: 1000, ..Facts::default() };
    let without = Arc::new(RecordedMachine::new("sample", facts));
    let other = Target::recorded(without);
    assert_eq!(
        other.run_all(std::slice::from_ref(&as_root)).await.remove(0).unwrap_err().code,
        "PRIVILEGE_REQUIRED"
    );
    let request = ReadRequest { path: "/srv/a".to_owned(), offset: 0, max_bytes: 3 };
    let all: Arc<PathCheck> = Arc::new(|_, _| Ok(()));
    let read = other.read_all(vec![request], &access(Privilege::Root), all).await.remove(0);
    assert_eq!(read.unwrap_err().code, "PRIVILEGE_REQUIRED");
    // The account of the first machine is root.
    assert!(target.run_all(&[as_root]).await.remove(0).is_ok());
}

#[tokio::test]
async fn a_program_that_is_recorded_as_missing_is_not_found() {
    let machine = Arc::new(RecordedMachine::new("sample", Facts::default()));
    let recording = Recording { missing_programs: ["a".to_owned()].into(), ..Recording::default() };
    machine.play(recording, Playback::AsRecorded);
    let target = Target::recorded(machine);
    let facts = Facts::default();
    assert_eq!(target.prefix(&command(&["a"]), &facts).await.unwrap_err().code, "PROGRAM_NOT_FOUND");
    assert_eq!(target.run_all(&[command(&["a"])]).await.remove(0).unwrap_err().code, "PROGRAM_NOT_FOUND");
    assert_eq!(target.program("b").await.unwrap(), "/usr/bin/b");
}

#[tokio::test]
async fn a_stream_is_read_piece_by_piece() {
    let (_, target) = machine("$ a\n[exit 0]\n0123456789\n", &[], Playback::AsRecorded);
    let mut stream = target.open(&command(&["a"])).await.unwrap();
    let mut pieces = Vec::new();
    for _ in 0..4 {
        pieces.push(stream.read(4).await.unwrap());
    }
    assert_eq!(pieces, [&b"0123"[..], b"4567", b"89\n", b""]);
}
