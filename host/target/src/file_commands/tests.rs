use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::*;
use crate::Local;
use crate::local::Rights;
use host_base::Privilege;
use host_capability::{Grants, PathRequest, Place, Verb};

/// Runs the real programs as the account that the tests run as, and keeps the commands.
#[derive(Default)]
struct Directly {
    asked: Mutex<Vec<Command>>,
    rounds: Mutex<usize>,
}

impl Runner for Directly {
    async fn run_all(&self, commands: &[Command]) -> Vec<Result<Output, Problem>> {
        if !commands.is_empty() {
            *self.rounds.lock().unwrap() += 1;
        }
        let local = Local::new();
        let mut outputs = Vec::new();
        for command in commands {
            self.asked.lock().unwrap().push(command.clone());
            let command = Command { privilege: Privilege::Caller, ..command.clone() };
            outputs.push(local.run(&command, Rights::NONE).await);
        }
        outputs
    }
}

fn grants(globs: &[&str]) -> Grants {
    let mut grants = Grants::new("test");
    for glob in globs {
        let (glob, privilege, place) = ((*glob).to_owned(), Privilege::Root, Place::Target);
        grants.path(&PathRequest { glob, write: false, privilege, place, reason: String::new() }).unwrap();
    }
    grants
}

/// A directory with files for the tests. Everything below `granted` is granted.
struct Files {
    _kept: tempfile::TempDir,
    path: PathBuf,
    runner: Directly,
    grants: Arc<Grants>,
    trusted: Trusted,
    /// Looks by itself where it may.
    here: Option<Local>,
}

impl Files {
    fn new() -> Self {
        let kept = tempfile::tempdir().unwrap();
        let path = kept.path().canonicalize().unwrap();
        let granted = path.join("granted");
        std::fs::create_dir(&granted).unwrap();
        std::fs::write(granted.join("file"), "0123456789").unwrap();
        std::fs::write(granted.join("odd \"name\"\n\u{fc}"), "odd").unwrap();
        std::fs::write(path.join("secret"), "secret").unwrap();
        symlink("file", granted.join("link")).unwrap();
        symlink("../secret", granted.join("out")).unwrap();
        symlink("..", granted.join("up")).unwrap();
        symlink("/etc/shadow", granted.join("shadow")).unwrap();
        symlink("nothing", granted.join("dangling")).unwrap();
        let grants = Arc::new(grants(&[&format!("{}/**", granted.display())]));
        // The directory lies where everybody may write, and so nobody else can be trusted.
        Self { _kept: kept, path, runner: Directly::default(), grants, trusted: Trusted::Anyone, here: None }
    }

    fn at(&self, name: &str) -> String {
        self.path.join("granted").join(name).to_str().unwrap().to_owned()
    }

    fn request(&self, name: &str, offset: i64, max_bytes: u64) -> ReadRequest {
        ReadRequest { path: self.at(name), offset, max_bytes }
    }

    async fn read(&self, requests: &[ReadRequest]) -> Vec<Result<Vec<u8>, Problem>> {
        let access = self.grants.access(&Privilege::Root);
        let verbs = FileCommands {
            runner: &self.runner,
            access: &access,
            trusted: &self.trusted,
            here: self.here.as_ref(),
        };
        let grants = self.grants.clone();
        let check: Arc<PathCheck> =
            Arc::new(move |asked: &str, real: &str| grants.may_read(asked, real, &Privilege::Root));
        verbs.read_all(requests, &check).await
    }

    async fn stat(&self, names: &[&str]) -> Vec<Result<Option<Metadata>, Problem>> {
        let access = self.grants.access(&Privilege::Root);
        let verbs = FileCommands {
            runner: &self.runner,
            access: &access,
            trusted: &self.trusted,
            here: self.here.as_ref(),
        };
        let grants = self.grants.clone();
        let check: Arc<PathCheck> =
            Arc::new(move |asked: &str, real: &str| grants.may_read(asked, real, &Privilege::Root));
        verbs.stat_all(&names.iter().map(|name| self.at(name)).collect::<Vec<_>>(), &check).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<String>, Problem> {
        let access = self.grants.access(&Privilege::Root);
        let verbs = FileCommands {
            runner: &self.runner,
            access: &access,
            trusted: &self.trusted,
            here: self.here.as_ref(),
        };
        let grants = self.grants.clone();
        let check: Arc<PathCheck> =
            Arc::new(move |asked: &str, real: &str| grants.may_list(asked, real, &Privilege::Root));
        verbs.list_all(&[path.to_str().unwrap().to_owned()], &check).await.remove(0)
    }

    fn asked(&self) -> Vec<Command> {
        self.runner.asked.lock().unwrap().clone()
    }
}

fn anywhere() -> Arc<PathCheck> {
    Arc::new(|_, _| Ok(()))
}

fn code<T>(answer: &Result<T, Problem>) -> &str {
    answer.as_ref().err().map_or("", |problem| &problem.code)
}

#[tokio::test]
async fn a_part_is_read_from_the_beginning_or_from_the_end() {
    let place = Files::new();
    for (offset, most, expected) in
        [(0, 3, "012"), (4, 100, "456789"), (-3, 100, "789"), (-100, 2, "01"), (99, 5, ""), (0, 0, "")]
    {
        let answers = place.read(&[place.request("file", offset, most)]).await;
        assert_eq!(answers[0].as_ref().unwrap(), expected.as_bytes(), "{offset} {most}");
    }
}

#[tokio::test]
async fn a_large_file_and_one_of_the_kernels_are_read_like_any_other() {
    let mut place = Files::new();
    let large: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(place.at("large"), &large).unwrap();
    let answers = place.read(&[place.request("large", 7, u64::MAX), place.request("large", -9, 20)]).await;
    assert_eq!(answers[0].as_ref().unwrap(), &large[7..7 + (1 << 20)]);
    assert_eq!(answers[1].as_ref().unwrap(), &large[large.len() - 9..]);

    place.grants = Arc::new(grants(&["/proc/version", "/proc/filesystems"]));
    let request = |path: &str, offset| ReadRequest { path: path.into(), offset, max_bytes: 4096 };
    let answers = place.read(&[request("/proc/version", 0), request("/proc/filesystems", 6)]).await;
    assert_eq!(answers[0].as_ref().unwrap(), &std::fs::read("/proc/version").unwrap());
    assert_eq!(answers[1].as_ref().unwrap(), &std::fs::read("/proc/filesystems").unwrap()[6..]);
}

#[tokio::test]
async fn a_link_that_stays_inside_is_followed_and_one_that_leads_out_is_refused() {
    let place = Files::new();
    let names = ["link", "out", "up/secret", "shadow", "none", "dangling", "."];
    let requests: Vec<_> = names.iter().map(|name| place.request(name, 0, 100)).collect();
    let answers = place.read(&requests).await;
    assert_eq!(answers[0].as_ref().unwrap(), b"0123456789");
    let codes: Vec<_> = answers.iter().map(code).collect();
    let denied = "CAPABILITY_DENIED";
    assert_eq!(codes, ["", denied, denied, denied, "FILE_NOT_FOUND", "FILE_NOT_FOUND", denied]);
    // Nothing that was refused has been read.
    let read: Vec<_> = place.asked().into_iter().filter(|command| command.program == "dd").collect();
    assert_eq!(read.len(), 1);
    assert!(read[0].args[0].ends_with("/granted/file"));
}

#[tokio::test]
async fn only_regular_files_are_read_and_a_pipe_is_not_waited_for() {
    use rustix::fs::{CWD, Mode, mknodat};
    let place = Files::new();
    mknodat(CWD, place.at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    std::fs::create_dir(place.at("directory")).unwrap();
    let answers = place.read(&[place.request("pipe", 0, 1), place.request("directory", 0, 1)]).await;
    assert_eq!(answers.iter().map(code).collect::<Vec<_>>(), ["NOT_A_REGULAR_FILE"; 2]);
}

#[tokio::test]
async fn a_stat_is_of_the_link_itself_and_of_nothing_is_none() {
    let place = Files::new();
    let answers = place.stat(&["file", "link", "shadow", "none", "file/x", "dangling/x", "up/secret"]).await;
    let found = |at: usize| answers[at].clone().unwrap().unwrap();
    assert_eq!((found(0).size, found(0).is_symlink, found(0).is_dir), (10, false, false));
    assert!(found(1).is_symlink && found(2).is_symlink);
    assert!(answers[3..6].iter().all(|answer| matches!(answer, Ok(None))));
    assert_eq!(code(&answers[6]), "CAPABILITY_DENIED");
}

#[tokio::test]
async fn a_listing_is_sorted_and_odd_names_come_whole() {
    let place = Files::new();
    let granted = place.path.join("granted");
    let expected = ["dangling", "file", "link", "odd \"name\"\n\u{fc}", "out", "shadow", "up"];
    assert_eq!(place.list(&granted).await.unwrap(), expected);
    assert_eq!(code(&place.list(&granted.join("up")).await), "CAPABILITY_DENIED");
    assert_eq!(code(&place.list(&granted.join("none")).await), "FILE_NOT_FOUND");
    let of_file = place.list(&granted.join("file")).await.unwrap_err();
    assert!(of_file.message.contains("Not a directory"), "{of_file}");
}

#[tokio::test]
async fn directories_that_others_can_change_are_not_gone_through_for_root() {
    let mut place = Files::new();
    let shared = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&place.path, shared).unwrap();
    place.trusted = Trusted::Root;
    let untrusted = "UNTRUSTED_DIRECTORY";
    assert_eq!(code(&place.read(&[place.request("file", 0, 1)]).await[0]), untrusted);
    assert_eq!(code(&place.stat(&["file"]).await[0]), untrusted);
    assert_eq!(code(&place.list(&place.path.join("granted")).await), untrusted);
    assert!(place.asked().iter().all(|command| command.program == "stat"));
}

#[tokio::test]
async fn what_this_process_may_see_is_answered_alike_without_commands() {
    let names =
        ["file", "link", "out", "up/secret", "shadow", "none", "dangling", "file/x", "odd \"name\"\n\u{fc}"];
    let mut told = Vec::new();
    for here in [None, Some(Local::new())] {
        let mut place = Files::new();
        place.here = here;
        let requests: Vec<_> = names.iter().map(|name| place.request(name, -4, 100)).collect();
        let said =
            |answer: &dyn std::fmt::Debug| format!("{answer:?}").replace(place.path.to_str().unwrap(), "");
        let read = place.read(&requests).await;
        let read: Vec<_> = read.iter().map(|answer| (code(answer), answer.clone().ok())).collect();
        let stat = place.stat(&names).await;
        let kind = |found: Option<Metadata>| {
            found.map(|found| (found.size, found.mode, found.owner, found.is_symlink))
        };
        let stat: Vec<_> = stat.iter().map(|answer| (code(answer), answer.clone().ok().map(kind))).collect();
        let list = place.list(&place.path.join("granted")).await;
        let of_link = place.list(&place.path.join("granted/up")).await;
        told.push(said(&(read, stat, list, code(&of_link))));
        let of_seen = |command: &Command| command.args.iter().any(|word| word.ends_with("/granted/file"));
        assert_eq!(place.asked().iter().any(of_seen), place.here.is_none());
    }
    assert_eq!(told[0], told[1]);
}

#[tokio::test]
async fn the_kernels_own_files_are_left_to_commands() {
    let mut place = Files::new();
    (place.here, place.grants) = (Some(Local::new()), Arc::new(grants(&["/proc/version"])));
    let request = ReadRequest { path: "/proc/version".into(), offset: 0, max_bytes: 4096 };
    let answers = place.read(&[request]).await;
    assert_eq!(answers[0].as_ref().unwrap(), &std::fs::read("/proc/version").unwrap());
    assert!(place.asked().iter().any(|command| command.program == "dd"));
}

#[tokio::test]
async fn which_file_it_is_is_said_alike_by_the_kernel_and_by_commands() {
    use std::os::unix::fs::MetadataExt;
    let place = Files::new();
    std::fs::hard_link(place.at("file"), place.at("other name")).unwrap();
    let by_command = place.stat(&["other name"]).await.remove(0).unwrap().unwrap();
    let itself = std::fs::metadata(place.at("file")).unwrap();
    assert_eq!((by_command.links, by_command.device, by_command.inode), (2, itself.dev(), itself.ino()));
    let here = Metadata::from(&Entry::from(&itself));
    assert_eq!((here.links, here.device, here.inode), (2, itself.dev(), itself.ino()));
}

#[tokio::test]
async fn many_paths_are_looked_at_in_one_round_trip_by_few_commands() {
    let place = Files::new();
    let names: Vec<_> = (0..300).map(|number| format!("none{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert!(place.stat(&names).await.iter().all(|answer| matches!(answer, Ok(None))));
    assert_eq!(*place.runner.rounds.lock().unwrap(), 1);
    assert_eq!(place.asked().len(), 2);
}

#[tokio::test]
async fn what_one_call_reads_is_bounded_in_all() {
    let place = Files::new();
    std::fs::write(place.at("large"), vec![0; 1 << 20]).unwrap();
    let requests = vec![place.request("large", 0, 1 << 20); 65 + READS];
    let answers = place.read(&requests).await;
    assert!(answers[..64].iter().all(Result::is_ok));
    assert!(answers[64 + READS..].iter().all(|answer| code(answer) == "FILES_TOO_LARGE"));
}

#[tokio::test]
async fn a_command_that_no_pattern_allows_is_not_run() {
    let place = Files::new();
    // The checks allow everything, and the grants are for something else, and so only the patterns can refuse.
    let access = grants(&["/srv/other/*"]).access(&Privilege::Root);
    let verbs =
        FileCommands { runner: &place.runner, access: &access, trusted: &Trusted::Anyone, here: None };
    let request = place.request("file", 0, 10);
    assert_eq!(code(&verbs.read_all(&[request], &anywhere()).await[0]), "CAPABILITY_DENIED");
    assert_eq!(code(&verbs.stat_all(&[place.at("file")], &anywhere()).await[0]), "CAPABILITY_DENIED");
    assert_eq!(code(&verbs.list_all(&[place.at(".")], &anywhere()).await[0]), "UNRESOLVABLE_PATH");
    assert_eq!(code(&verbs.list_all(&[place.at("")], &anywhere()).await[0]), "CAPABILITY_DENIED");
    // The root directory is above what is granted, and it is all that was looked at.
    assert!(place.asked().iter().all(|command| command.args == [STAT, &["/"]].concat()));
}

#[tokio::test]
async fn every_command_that_runs_is_one_that_the_grants_show() {
    let place = Files::new();
    place.read(&[place.request("link", -3, 2), place.request("file", 0, 1)]).await;
    place.stat(&["up/x", "odd \"name\""]).await;
    place.list(&place.path.join("granted")).await.unwrap();
    let verbs = place.grants.access(&Privilege::Root).verbs;
    let asked = place.asked();
    for program in ["stat", "readlink", "dd", "ls"] {
        assert!(asked.iter().any(|command| command.program == program), "{program}");
    }
    for command in asked {
        assert_eq!(command.privilege, Privilege::Root);
        let stdin = command.stdin.is_some();
        let allows =
            |verb: &Arc<Verb>| verb.allows(&command.program, &command.args, &command.env, stdin).is_some();
        assert!(verbs.iter().any(allows), "{command:?}");
    }
}

/// A machine on which sudo isn't available.
struct Nobody;

impl Runner for Nobody {
    async fn run_all(&self, commands: &[Command]) -> Vec<Result<Output, Problem>> {
        let refused = Problem::new("PRIVILEGE_REQUIRED", Category::Privilege, "no sudo");
        commands.iter().map(|_| Err(refused.clone())).collect()
    }
}

#[tokio::test]
async fn where_the_rights_cannot_be_had_every_answer_says_so() {
    let place = Files::new();
    let access = place.grants.access(&Privilege::Root);
    let verbs = FileCommands { runner: &Nobody, access: &access, trusted: &Trusted::Root, here: None };
    let required = "PRIVILEGE_REQUIRED";
    let reads =
        verbs.read_all(&[place.request("file", 0, 1), place.request("link", 0, 1)], &anywhere()).await;
    assert_eq!(reads.iter().map(code).collect::<Vec<_>>(), [required; 2]);
    assert_eq!(code(&verbs.stat_all(&[place.at("file")], &anywhere()).await[0]), required);
    assert_eq!(code(&verbs.list_all(&[place.at("")], &anywhere()).await[0]), required);
}
