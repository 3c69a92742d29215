//! The tools as the host calls them. What the script prints was recorded from it with rsync 3.5.0 on Debian 12.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm;
use linux_sysadmin_sdk::testkit::{self, FakeTarget, takes_little_context};
use linux_sysadmin_sdk::{Category, Change, Command, Pipeline, Problem, Risk, Step};
use module_backup::engine::{PATH, SHA256, TEXT};
use module_backup::module;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const ID: &str = "web1-2026-11-27-041919-nightly";
const NIGHTLY: &str = "# What this schedule backs up. bak_schedule of linux-sysadmin writes it.\ndestination=local:///mnt/backups\n\
                       schedule=0 3 * * *\npath=/etc\npath=/srv\nexclude=*.log\nkeep_daily=7\nkeep_weekly=4\nkeep_monthly=6\n";
const CREATED: &str = "copying to .incomplete-web1-2026-11-27-041919-nightly\nid=web1-2026-11-27-041919-nightly\nstarted=1795753159\n\
                       finished=1795753164\nfiles=14\ndirectories=9\nbytes=1400\nnew_files=10\nnew_bytes=900\n\
                       note=/srv/data is another file system, and is left out unless it is among the paths\n";

/// A target on which the script is installed.
fn ready() -> FakeTarget {
    FakeTarget::new().file(PATH, TEXT).file("/etc/linux-sysadmin/backup/nightly.conf", NIGHTLY)
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

#[track_caller]
fn refused(target: FakeTarget, tool: &str, arguments: Value) -> Problem {
    let plans = target.plans();
    let problem = call(target, tool, arguments.clone()).expect_err(&arguments.to_string());
    assert!(plans.borrow().is_empty(), "{arguments}");
    problem
}

#[track_caller]
fn planned(target: FakeTarget, tool: &str, arguments: Value) -> Change {
    let plans = target.plans();
    call(target, tool, arguments).unwrap();
    assert_eq!(plans.borrow().len(), 1);
    plans.take().remove(0)
}

fn runs(args: &[&str]) -> Step {
    let command = Command::new(PATH).args(args.iter().copied()).as_root();
    Step::run_pipeline(Pipeline { commands: vec![command], seconds: Some(86_400) }).success(&[0])
}

fn install() -> [Step; 2] {
    [
        Step::make_directory("/usr/local/lib/linux-sysadmin", 0o755),
        Step::write(PATH, TEXT).mode(0o755).owner("root", "root"),
    ]
}

/// A target whose plans end with this output of the script.
fn said(target: FakeTarget, stdout: &str) -> FakeTarget {
    let outputs = vec![testkit::output(0, stdout, "")];
    target.outcome(Ok(confirm::Applied { outputs, dry_run: false }))
}

fn fails(target: FakeTarget, stderr: &str) -> FakeTarget {
    let problem = Problem::new("COMMAND_FAILED", Category::Other, "backup ended with exit code 1");
    let outputs = vec![testkit::output(1, "", stderr)];
    let (undone, not_undone) = (Vec::new(), Vec::new());
    target.outcome(Err(confirm::Failure { problem, step: 0, outputs, undone, not_undone, uncertain: false }))
}

#[test]
fn a_tool_takes_little_of_a_models_context() {
    for tool in &module().description().tools {
        takes_little_context(tool);
    }
}

#[test]
fn older_names_of_arguments_are_declared() {
    let tools = module().description().tools;
    let names = |name: &str| {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        let pairs = tool.aliases.arguments.iter().map(|one| format!("{} {}", one.alias, one.argument));
        pairs.collect::<Vec<_>>()
    };
    assert_eq!(names("bak_list"), ["path destination"]);
    assert_eq!(names("bak_schedule"), ["retention_days keep_daily"]);
}

#[test]
fn the_script_is_the_one_that_the_host_knows() {
    let digest: String = Sha256::digest(TEXT).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, SHA256.trim(), "src/engine.sha256 has the SHA-256 of the script");
}

#[test]
fn the_first_backup_installs_the_script_and_asks() {
    let expected = Change::new("Back up /etc, /srv/a b to local:///mnt/backups")
        .step(install()[0].clone())
        .step(install()[1].clone())
        .risk(Risk::High)
        .warning(
            "no schedule has the destination local:///mnt/backups: files that only root may read go there",
        )
        .step(runs(&[
            "create",
            "--destination=local:///mnt/backups",
            "--label=pre-upgrade",
            "--dump=postgresql",
            "--exclude=*.log",
            "--exclude=cache/",
            "--",
            "/etc",
            "/srv/a b",
        ]));
    let arguments = json!({
        "paths": ["/etc/", "/srv//a b"], "destination": "/mnt/backups/", "label": "pre-upgrade", "dump": ["postgresql"],
        "exclude": ["*.log", "cache/"],
    });
    assert_eq!(planned(FakeTarget::new(), "bak_create", arguments), expected);
}

#[test]
fn a_backup_to_a_configured_destination_says_what_it_made() {
    for destination in ["local:///mnt/backups", "/mnt/backups", "nightly"] {
        let target = said(ready(), CREATED);
        let plans = target.plans();
        let arguments = json!({"paths": ["/etc"], "destination": destination, "full": true});
        let (data, notes) = call(target, "bak_create", arguments).unwrap();
        let steps = runs(&["create", "--destination=local:///mnt/backups", "--full", "--", "/etc"]);
        assert_eq!(*plans.borrow(), [Change::new("Back up /etc to local:///mnt/backups").step(steps)]);
        assert_eq!(
            data,
            json!({"destination": "local:///mnt/backups", "backup_id": ID, "files": 14, "bytes": 1400, "new_files": 10,
                   "new_bytes": 900, "seconds": 5})
        );
        assert_eq!(notes, ["/srv/data is another file system, and is left out unless it is among the paths"]);
    }
}

const REPOSITORY: &str = "restic:///srv/repository";

#[test]
fn a_backup_to_a_repository_says_that_it_may_be_a_new_one() {
    let change = planned(ready(), "bak_create", json!({"paths": ["/etc"], "destination": REPOSITORY}));
    let expected = Change::new(
        "Back up /etc to restic:///srv/repository, a new repository where there is none",
    )
    .risk(Risk::High)
    .warning(
        "no schedule has the destination restic:///srv/repository: files that only root may read go there",
    )
    .step(runs(&["create", "--destination=restic:///srv/repository", "--", "/etc"]));
    assert_eq!(change, expected);
    let problem = refused(ready(), "bak_snapshot_config", json!({"destination": REPOSITORY}));
    assert_eq!(problem.code, "INVALID_DESTINATION");
    assert!(problem.remediation[0].starts_with("bak_create paths="), "{problem:?}");
}

/// As restic 0.14.0 prints it, and last one as 0.17 does according to its documentation.
const SNAPSHOTS: &str = r#"snapshots [{"time":"2026-11-27T14:08:37.036391887Z","tree":"c130f550","paths":["/srv/a \"b\u003c","/var/backups/linux-sysadmin-dumps/1-2"],"hostname":"vm","username":"root","excludes":["*.log"],"tags":["linux-sysadmin","vm-2026-11-27-140835-x","machine=34e37c21e9a2c7bc","label=x","dump=redis","files=7","bytes=20971530","new_bytes=531921"],"original":"5762a19c","id":"82e7ebfb","short_id":"82e7ebfb"},{"time":"2026-11-27T14:08:37.036391887Z","paths":["/srv/a"],"tags":["linux-sysadmin","vm-2026-11-27-140835-x"],"id":"5762a19c"},{"time":"2026-11-28T14:08:37Z","paths":["/etc"],"hostname":"vm","tags":["linux-sysadmin","vm-2026-11-28-140835","machine="],"program_version":"restic 0.17.0","summary":{"backup_start":"2026-11-28T14:08:36Z","files_new":3,"data_added":12,"total_files_processed":4,"total_bytes_processed":1234},"id":"99"},{"time":"2026-11-29T14:08:37Z","paths":["/"],"tags":["linux-sysadmin","../x","=2026-11-28-140835"],"id":"98"},{"paths":[]}]
"#;

#[test]
fn snapshots_are_listed_as_backups() {
    let target = |code, stdout: &str, stderr: &str| {
        let destination = format!("--destination={REPOSITORY}");
        ready().answer(&[PATH, "list", &destination], code, stdout, stderr)
    };
    let arguments = json!({"destination": REPOSITORY});
    let (data, _) = call(target(0, SNAPSHOTS, ""), "bak_list", arguments.clone()).unwrap();
    assert_eq!(
        data,
        json!([
            {"backup_id": "vm-2026-11-28-140835", "created": "2026-11-28T14:08:35Z", "files": 4, "bytes": 1234, "new_bytes": 12,
             "paths": ["/etc"]},
            {"backup_id": "vm-2026-11-27-140835-x", "created": "2026-11-27T14:08:35Z", "label": "x", "files": 7,
             "bytes": 20_971_530, "new_bytes": 531_921, "paths": ["/srv/a \"b<"], "dumps": ["redis"]},
        ])
    );
    for nothing in ["snapshots []\n", "snapshots null\n", ""] {
        let (data, _) = call(target(0, nothing, ""), "bak_list", arguments.clone()).unwrap();
        assert_eq!(data, json!([]), "{nothing}");
    }
    let odd = call(target(0, "snapshots [{\"tags\":7}]\n", ""), "bak_list", arguments.clone()).unwrap_err();
    assert_eq!(odd.code, "UNEXPECTED_OUTPUT");
    for (stderr, category, remedy) in [
        ("RESTIC_MISSING: restic isn't installed here\n", Category::Dependency, "pkg_install"),
        ("RESTIC_PASSWORD_MISSING: x must have the password\n", Category::State, "writes the password"),
        ("REPOSITORY_LOCKED: already locked by PID 7\n", Category::Lock, "Wait"),
        ("REPOSITORY_MISSING: there is no repository\n", Category::NotFound, "bak_create"),
        ("REPOSITORY_CORRUPT: x\n", Category::State, "bak_verify"),
    ] {
        let problem = call(target(1, "", stderr), "bak_list", arguments.clone()).unwrap_err();
        assert_eq!(problem.category, category, "{problem:?}");
        assert!(problem.remediation.join(" ").contains(remedy), "{problem:?}");
    }
}

#[test]
fn a_damaged_repository_is_not_mended_by_a_full_backup() {
    let said = "note=what is live wasn't compared, since not all of the backup can be read\ncorrupt=1\n\
                corrupt tree/srv/a\tits pack is damaged\nentries=3\n";
    let destination = format!("--destination={REPOSITORY}");
    let target = ready().answer(&[PATH, "verify", &destination, "--", ID], 0, said, "");
    let (data, reply) =
        target.call(&module(), "bak_verify", json!({"backup_id": ID, "destination": REPOSITORY})).unwrap();
    assert_eq!(
        data,
        json!({"backup_id": ID, "entries": 3, "corrupt": 1, "extra": 0,
               "findings": [{"kind": "corrupt", "path": "/srv/a", "why": "its pack is damaged"}],
               "notes": ["what is live wasn't compared, since not all of the backup can be read"]})
    );
    assert!(reply.summary.unwrap().contains("another repository"));
    assert_eq!(reply.severity.as_deref(), Some("high"));
}

#[test]
fn another_script_is_replaced() {
    let target = FakeTarget::new().file(PATH, "#!/bin/sh\nexit\n");
    let steps = planned(target, "bak_create", json!({"paths": ["/etc"], "destination": "/mnt/b"})).steps();
    assert_eq!((steps.len(), &steps[0]), (2, &install()[1]));
}

#[test]
fn a_failure_tells_the_scripts_own_problem_with_what_helps() {
    let full = "rsync: x\nDESTINATION_FULL: local:///mnt/backups is full: rsync: [receiver] write failed on \"/mnt/backups/x\": \
                No space left on device (28). What was copied is kept, and the next run goes on from there\n";
    let unknown = "DESTINATION_UNREACHABLE: backuphost: Host key verification failed.\n";
    for (stderr, code, message, remedy) in [
        (full, "DESTINATION_FULL", "No space left on device", "Make room"),
        (unknown, "DESTINATION_UNREACHABLE", "verification failed", "known_hosts"),
        ("RSYNC_MISSING: rsync isn't installed here\n", "RSYNC_MISSING", "isn't installed", "pkg_install"),
        ("Killed\n", "COMMAND_FAILED", "exit code 1", ""),
    ] {
        let problem =
            call(fails(ready(), stderr), "bak_create", json!({"paths": ["/etc"], "destination": "nightly"}))
                .unwrap_err();
        assert_eq!(problem.code, code);
        assert!(problem.message.contains(message), "{problem:?}");
        assert!(problem.remediation.join(" ").contains(remedy), "{problem:?}");
    }
}

#[test]
fn odd_arguments_are_refused() {
    let many: Vec<_> = (0..201).map(|number| format!("/{number}")).collect();
    for (arguments, code) in [
        (json!({"paths": [], "destination": "/b"}), "INVALID_ARGUMENTS"),
        (json!({"paths": many, "destination": "/b"}), "INVALID_ARGUMENTS"),
        (json!({"paths": ["etc"], "destination": "/b"}), "INVALID_PATH"),
        (json!({"paths": ["/a/../b"], "destination": "/b"}), "INVALID_PATH"),
        (json!({"paths": ["/a\nb"], "destination": "/b"}), "INVALID_PATH"),
        (json!({"paths": ["/a"], "destination": "s3://b/c"}), "INVALID_DESTINATION"),
        (json!({"paths": ["/a"], "destination": "weekly"}), "INVALID_DESTINATION"),
        (json!({"paths": ["/a"], "destination": "/b", "label": "a/b"}), "INVALID_LABEL"),
        (json!({"paths": ["/a"], "destination": "/b", "label": ""}), "INVALID_LABEL"),
        (json!({"paths": ["/a"], "destination": "/b", "label": "-x"}), "INVALID_LABEL"),
        (json!({"paths": ["/a"], "destination": "/b", "exclude": ["-x"]}), "INVALID_ARGUMENTS"),
        (json!({"paths": ["/a"], "destination": "/b", "exclude": ["a\nb"]}), "INVALID_ARGUMENTS"),
        (json!({"paths": ["/a"], "destination": "/b", "dump": ["oracle"]}), "INVALID_ARGUMENTS"),
    ] {
        assert_eq!(refused(ready(), "bak_create", arguments.clone()).code, code, "{arguments}");
    }
    for (tool, arguments, code) in [
        ("bak_restore", json!({"backup_id": "../x", "destination": "/b"}), "INVALID_BACKUP_ID"),
        (
            "bak_restore",
            json!({"backup_id": ".incomplete-a-2026-11-27-041919", "destination": "/b"}),
            "INVALID_BACKUP_ID",
        ),
        ("bak_restore", json!({"backup_id": ID, "destination": "/b", "target_path": "x"}), "INVALID_PATH"),
        ("bak_restore", json!({"source": ID, "destination": "rsync://h/x"}), "INVALID_PATH"),
        ("bak_verify", json!({"backup_id": "x", "destination": "/b"}), "INVALID_BACKUP_ID"),
        ("bak_list", json!({"destination": "rsync://h/$(id)"}), "INVALID_DESTINATION"),
        ("bak_snapshot_config", json!({"label": "a b"}), "INVALID_LABEL"),
        ("bak_schedule", json!({"name": "a.b"}), "INVALID_SCHEDULE_NAME"),
        ("bak_schedule", json!({"name": ""}), "INVALID_SCHEDULE_NAME"),
        ("bak_schedule", json!({"name": "new"}), "INVALID_ARGUMENTS"),
        ("bak_schedule", json!({"name": "new", "paths": ["/etc"], "schedule": "daily"}), "INVALID_ARGUMENTS"),
        ("bak_schedule", json!({"name": "nightly", "schedule": "soon"}), "INVALID_SCHEDULE"),
        ("bak_schedule", json!({"name": "nightly", "keep_daily": 0}), "INVALID_ARGUMENTS"),
        ("bak_schedule", json!({"name": "nightly", "keep_monthly": 99_999}), "INVALID_ARGUMENTS"),
        ("bak_schedule", json!({"name": "nightly", "keep_weekly": -1}), "INVALID_ARGUMENTS"),
        ("bak_schedule", json!({"name": "weekly", "remove": true}), "SCHEDULE_NOT_FOUND"),
    ] {
        assert_eq!(refused(ready(), tool, arguments.clone()).code, code, "{tool} {arguments}");
    }
}

const LISTED: &str = "backup vm-2026-11-27-041919-a\nengine=1\nchecksum=xxh128\nmanifest=29c04bf4\nhost=vm\nlabel=a\nstarted=1795753159\n\
    finished=1795753159\nfiles=14\ndirectories=9\nbytes=14\nnew_files=10\nnew_bytes=14\nexclude=*.log\npath=/tmp/hB1/src\npath=/tmp/hB1/t\n\nend\n\
    backup vm-2026-11-28-041921\nengine=1\nhost=vm\nlabel=\nstarted=1795839561\nfiles=14\nbytes=14\nnew_bytes=0\npath=/etc\ndump=redis\n\nend\n\
    incomplete .incomplete-vm-2026-11-28-050000\narchive 4096 vm-etc-2026-11-26-010203.tar.gz\nbackup planted\nend\n";

fn list(target: FakeTarget, code: i32, stdout: &str, stderr: &str) -> FakeTarget {
    target.answer(&[PATH, "list", "--destination=local:///mnt/backups"], code, stdout, stderr)
}

#[test]
fn backups_are_listed_with_the_newest_first_and_what_is_no_backup_is_told() {
    let (data, _) =
        call(list(ready(), 0, LISTED, ""), "bak_list", json!({"destination": "nightly"})).unwrap();
    assert_eq!(
        data,
        json!([
            {"backup_id": ".incomplete-vm-2026-11-28-050000", "kind": "incomplete"},
            {"backup_id": "vm-2026-11-28-041921", "created": "2026-11-28T04:19:21Z", "files": 14, "bytes": 14, "new_bytes": 0,
             "paths": ["/etc"], "dumps": ["redis"]},
            {"backup_id": "vm-2026-11-27-041919-a", "created": "2026-11-27T04:19:19Z", "label": "a", "files": 14, "bytes": 14,
             "new_bytes": 14, "paths": ["/tmp/hB1/src", "/tmp/hB1/t"]},
            {"backup_id": "vm-etc-2026-11-26-010203.tar.gz", "kind": "archive", "bytes": 4096},
        ])
    );
    let (data, _) =
        call(list(ready(), 0, "", ""), "bak_list", json!({"destination": "/mnt/backups"})).unwrap();
    assert_eq!(data, json!([]));
}

#[test]
fn a_listing_survives_what_others_wrote() {
    let odd = format!(
        "backup {ID}\n=\nfiles=many\nstarted=\u{fffd}\nbytes=-1\npath=\nend=\nbackup x\nend\nnoise\narchive x\nincomplete \n"
    );
    let (data, _) = call(list(ready(), 0, &odd, ""), "bak_list", json!({"destination": "nightly"})).unwrap();
    assert_eq!(data, json!([{"backup_id": ID, "bytes": -1, "paths": [""]}]));
}

#[test]
fn a_look_without_the_script_says_what_installs_it() {
    for (tool, arguments) in [
        ("bak_list", json!({"destination": "/mnt/backups"})),
        ("bak_verify", json!({"destination": "/mnt/backups", "backup_id": ID})),
        ("bak_verify", json!({"destination": "/mnt/backups", "backup_id": "latest"})),
    ] {
        for target in [FakeTarget::new(), FakeTarget::new().file(PATH, "older")] {
            let problem = refused(target, tool, arguments.clone());
            assert_eq!(problem.code, "BACKUP_PROGRAM_MISSING");
            assert!(problem.remediation[0].contains("bak_create"));
        }
    }
}

#[test]
fn a_destination_that_fails_is_the_answers_problem() {
    let problem = refused(
        list(ready(), 1, "", "DESTINATION_NOT_MOUNTED: /mnt/backups is in /etc/fstab, but isn't mounted\n"),
        "bak_list",
        json!({"destination": "nightly"}),
    );
    assert_eq!((problem.code.as_str(), problem.category), ("DESTINATION_NOT_MOUNTED", Category::State));
}

const VERIFIED: &str = "entries=23\ncorrupt=2\nmissing=1\nchanged=1\nextra=0\nnew=3\n\
    corrupt tree/srv/a/hl\tcontent\ncorrupt tree/srv/new\\#012line\tit is gone from the backup\n\
    missing tree/srv/\\#303\\#244 x\nchanged tree/srv/tab\tx\tmode, owner or time\n";

#[test]
fn a_verification_tells_corrupt_missing_and_changed_with_the_calls_that_mend() {
    let target =
        |said| ready().answer(&[PATH, "verify", "--destination=local:///mnt/backups", "--", ID], 0, said, "");
    let arguments = json!({"backup_id": ID, "destination": "nightly"});
    let (data, reply) = target(VERIFIED).call(&module(), "bak_verify", arguments.clone()).unwrap();
    assert_eq!(
        data,
        json!({"backup_id": ID, "entries": 23, "corrupt": 2, "missing": 1, "changed": 1, "new": 3, "extra": 0, "findings": [
            {"kind": "corrupt", "path": "/srv/a/hl", "why": "content"},
            {"kind": "corrupt", "path": "/srv/new\nline", "why": "it is gone from the backup"},
            // A missing one has no reason, and its path no tab.
            {"kind": "missing", "path": "/srv/ä x"},
            {"kind": "changed", "path": "/srv/tab\tx", "why": "mode, owner or time"},
        ]})
    );
    let summary = reply.summary.unwrap();
    assert_eq!(reply.severity.as_deref(), Some("high"));
    assert!(
        summary.contains("bak_create full=true") && summary.contains("bak_restore backup_id="),
        "{summary}"
    );
    let whole = "entries=23\ncorrupt=0\nextra=0\nnote=it was made by another host, so that it isn't compared with the files here\n";
    let (data, reply) = target(whole).call(&module(), "bak_verify", arguments).unwrap();
    assert_eq!(data["missing"], Value::Null);
    assert_eq!(
        (reply.summary.as_deref(), reply.severity.as_deref()),
        (Some("the backup is whole"), Some("info"))
    );
}

#[test]
fn a_restore_in_place_is_previewed_and_says_where_the_replaced_files_are() {
    let kept = "/var/backups/linux-sysadmin-replaced/web1-2026-11-27-041919-nightly-2026-11-27-051935-a1b2c3";
    let target = said(ready(), &format!("kept={kept}\nrestored=2\nbytes=30\n"));
    let plans = target.plans();
    let arguments = json!({"backup_id": ID, "destination": "nightly", "paths": ["/etc/ssl/private"]});
    let (data, _) = call(target, "bak_restore", arguments.clone()).unwrap();
    let args = ["--destination=local:///mnt/backups", "--", ID, "/etc/ssl/private"];
    let preview = Command::new(PATH).arg("preview").args(args).as_root();
    let expected =
        Change::new(format!("Restore /etc/ssl/private of {ID} from local:///mnt/backups to where it was"))
            .dry_run(preview.duration(linux_sysadmin_sdk::DurationCategory::LongRunning))
            .warning("files that are live are overwritten, newer ones too; what is replaced is kept")
            .step(runs(&[&["restore"][..], &args].concat()));
    assert_eq!(*plans.borrow(), [expected]);
    assert_eq!(data, json!({"backup_id": ID, "restored": 2, "bytes": 30, "replaced": kept}));

    let preview = "created=3\noverwritten=2\nnewer=1\nnewer /etc/a\noverwritten /etc/b\\#012c\n";
    let outputs = vec![testkit::output(0, preview, "")];
    let target = ready().outcome(Ok(confirm::Applied { outputs, dry_run: true }));
    let (data, _) = call(target, "bak_restore", arguments).unwrap();
    assert_eq!(
        data,
        json!({"would": "restore", "backup_id": ID, "created": 3, "overwritten": 2, "newer": 1,
               "findings": [{"kind": "newer", "path": "/etc/a"}, {"kind": "overwritten", "path": "/etc/b\nc"}]})
    );
}

#[test]
fn a_new_machine_gets_the_latest_backup_without_a_list() {
    let target = said(
        FakeTarget::new(),
        &format!("id={ID}\ncorrupt tree/etc/x\tthe file differs from what was backed up\nrestored=9\n"),
    );
    let plans = target.plans();
    let arguments =
        json!({"backup_id": "latest", "destination": "rsync://nas/b", "target_path": "/srv/restored/"});
    let (data, notes) = call(target, "bak_restore", arguments).unwrap();
    let steps = plans.take().remove(0).steps();
    assert_eq!(steps[..2], install());
    assert_eq!(
        steps[2],
        runs(&["restore", "--destination=rsync://nas/b", "--target=/srv/restored", "--", "latest"])
    );
    assert_eq!(data["backup_id"], ID);
    assert_eq!(data["findings"], json!([{"kind": "corrupt", "path": "/etc/x"}]));
    assert!(notes[0].contains("isn't installed") && notes[1].contains("corrupt"), "{notes:?}");
}

#[test]
fn older_spellings_name_the_backup_and_the_place_that_gets_it() {
    for (source, id) in [
        (format!("/mnt/backups/{ID}/"), ID),
        (ID.to_owned(), ID),
        ("/mnt/backups".to_owned(), "vm-2026-11-28-041921"),
    ] {
        let target = list(ready(), 0, LISTED, "");
        let steps =
            planned(target, "bak_restore", json!({"source": source, "destination": "/srv/restored"})).steps();
        assert_eq!(
            steps,
            [runs(&["restore", "--destination=local:///mnt/backups", "--target=/srv/restored", "--", id])]
        );
    }
    let problem = refused(FakeTarget::new(), "bak_restore", json!({"source": ID, "destination": "/srv"}));
    assert_eq!(problem.code, "INVALID_ARGUMENTS");
}

#[test]
fn etc_is_archived_where_nobody_else_reads_it() {
    let target = said(FakeTarget::new(), "archive=web1-etc-2026-11-27-050000.tar.gz\nbytes=4096\n");
    let plans = target.plans();
    let (data, _) = call(target, "bak_snapshot_config", json!({})).unwrap();
    let expected = Change::new("Archive /etc at local:///var/backups/linux-sysadmin")
        .step(install()[0].clone())
        .step(install()[1].clone())
        .step(Step::make_directory("/var/backups/linux-sysadmin", 0o700))
        .step(runs(&["archive-etc", "--destination=local:///var/backups/linux-sysadmin"]));
    assert_eq!(*plans.borrow(), [expected]);
    assert_eq!(data["archive"], "web1-etc-2026-11-27-050000.tar.gz");
    let elsewhere =
        planned(ready(), "bak_snapshot_config", json!({"destination": "rsync://nas/x", "label": "before"}));
    let expected = Change::new("Archive /etc at rsync://nas/x")
        .risk(Risk::High)
        .warning("no schedule has the destination rsync://nas/x: files that only root may read go there")
        .step(runs(&["archive-etc", "--destination=rsync://nas/x", "--label=before"]));
    assert_eq!(elsewhere, expected);
}

const TIMER: &str = "linux-sysadmin-backup-nightly.timer";
const SHOW: [&str; 6] = [
    "systemctl",
    "show",
    "--property=Id,ActiveState,Result,NextElapseUSecRealtime,ExecMainExitTimestamp",
    "--",
    TIMER,
    "linux-sysadmin-backup-nightly.service",
];

/// As systemd 252 prints it.
fn states(active: &str, result: &str) -> String {
    format!(
        "Result=success\nNextElapseUSecRealtime=Sat 2026-11-28 03:00:00 UTC\nId={TIMER}\nActiveState={active}\n\n\
         Result={result}\nExecMainExitTimestamp=Fri 2026-11-27 03:00:09 UTC\nId=linux-sysadmin-backup-nightly.service\nActiveState=inactive\n"
    )
}

fn systemctl(args: &[&str]) -> Command {
    Command::new("systemctl").args(args.iter().copied()).as_root()
}

#[test]
fn a_schedule_is_a_file_a_service_and_a_timer() {
    let target = FakeTarget::new();
    let change = planned(
        target,
        "bak_schedule",
        json!({"name": "nightly", "schedule": "0 3 * * *", "paths": ["/etc", "/srv"], "destination": "/mnt/backups", "exclude": ["*.log"]}),
    );
    let service = "[Unit]\nDescription=Backup nightly\nWants=network-online.target\nAfter=network-online.target\n\n\
                   [Service]\nType=oneshot\nExecStart=/usr/local/lib/linux-sysadmin/backup run nightly\nNice=10\n";
    let timer = "[Unit]\nDescription=Backup nightly\n\n[Timer]\nOnCalendar=*-*-* 03:00:00\nPersistent=true\n\n\
                 [Install]\nWantedBy=timers.target\n";
    let unit = |suffix: &str, text: &str| {
        let path = format!("/etc/systemd/system/linux-sysadmin-backup-nightly.{suffix}");
        Step::write(path, text).mode(0o644).owner("root", "root")
    };
    let expected = Change::new("Back up /etc, /srv to local:///mnt/backups by the schedule nightly")
        .step(install()[0].clone())
        .step(install()[1].clone())
        .step(Step::make_directory("/etc/linux-sysadmin", 0o755))
        .step(Step::make_directory("/etc/linux-sysadmin/backup", 0o700))
        .risk(Risk::High)
        .warning(
            "no schedule has the destination local:///mnt/backups: files that only root may read go there",
        )
        .step(
            Step::write("/etc/linux-sysadmin/backup/nightly.conf", NIGHTLY).mode(0o600).owner("root", "root"),
        )
        .step(unit("service", service))
        .step(unit("timer", timer))
        .step(Step::run(systemctl(&["daemon-reload"])).uninterruptible())
        .step(
            Step::run(systemctl(&["enable", "--", TIMER]))
                .undo(systemctl(&["disable", "--now", "--", TIMER])),
        )
        .step(Step::run(systemctl(&["restart", "--", TIMER])))
        .after_undo(systemctl(&["daemon-reload"]));
    assert_eq!(change, expected);
}

#[test]
fn cron_starts_a_schedule_where_there_is_no_systemd() {
    let mut target = ready().file("/etc/cron.d/e2scrub_all", "x");
    target.distro.init_system = "openrc".into();
    let steps = planned(
        target,
        "bak_schedule",
        json!({"name": "second", "schedule": "weekly", "paths": ["/etc"], "destination": "nightly"}),
    )
    .steps();
    let text = "# bak_schedule of linux-sysadmin writes this file.\nSHELL=/bin/sh\nPATH=/usr/sbin:/usr/bin:/sbin:/bin\n\
                0 0 * * 0 root /usr/local/lib/linux-sysadmin/backup run second >/dev/null\n";
    let job = Step::write("/etc/cron.d/linux-sysadmin-backup-second", text).mode(0o644).owner("root", "root");
    assert_eq!((steps.len(), &steps[1]), (2, &job));
    let mut bare = ready();
    bare.distro.init_system = "openrc".into();
    let arguments =
        json!({"name": "second", "schedule": "weekly", "paths": ["/etc"], "destination": "nightly"});
    assert_eq!(refused(bare, "bak_schedule", arguments).code, "NO_SCHEDULER");
}

#[test]
fn a_changed_schedule_keeps_what_is_not_said() {
    let target = ready().answer(&SHOW, 0, states("active", "success"), "");
    let plans = target.plans();
    let (data, notes) =
        call(target, "bak_schedule", json!({"name": "nightly", "schedule": "03:00"})).unwrap();
    assert!(plans.borrow().is_empty() && notes[0].contains("already"), "{data} {notes:?}");
    let target = ready().answer(&SHOW, 0, states("active", "success"), "");
    let change = planned(target, "bak_schedule", json!({"name": "nightly", "keep_daily": 30}));
    let text = NIGHTLY.replace("keep_daily=7", "keep_daily=30");
    let config =
        Step::write("/etc/linux-sysadmin/backup/nightly.conf", text).mode(0o600).owner("root", "root");
    assert_eq!(change.steps()[0], config);
    // A timer that was turned off is turned on again.
    let off = ready().answer(&SHOW, 0, states("inactive", "success"), "");
    assert_eq!(planned(off, "bak_schedule", json!({"name": "nightly"})).steps().len(), 6);
}

#[test]
fn a_removed_schedule_leaves_its_backups() {
    let unit = |suffix: &str| format!("/etc/systemd/system/linux-sysadmin-backup-nightly.{suffix}");
    let target = ready().file(&unit("timer"), "x").file(&unit("service"), "x");
    let plans = target.plans();
    let (_, notes) = call(target, "bak_schedule", json!({"name": "nightly", "remove": true})).unwrap();
    let expected = Change::new("Remove the schedule nightly")
        .step(
            Step::run(systemctl(&["disable", "--now", "--", TIMER]))
                .undo(systemctl(&["enable", "--now", "--", TIMER])),
        )
        .step(Step::remove(unit("timer")))
        .step(Step::remove(unit("service")))
        .step(Step::run(systemctl(&["daemon-reload"])).uninterruptible())
        .after_undo(systemctl(&["daemon-reload"]))
        .step(Step::remove("/etc/linux-sysadmin/backup/nightly.conf"));
    assert_eq!(*plans.borrow(), [expected]);
    assert_eq!(notes, ["its backups stay at local:///mnt/backups"]);
}

#[test]
fn destinations_are_told_with_space_and_the_last_run() {
    let check = |target: FakeTarget, code, stdout, stderr| {
        target.answer(&[PATH, "check", "--destination=local:///mnt/backups"], code, stdout, stderr)
    };
    let target = check(ready(), 0, "total_kib=1000\nfree_kib=400\n", "").answer(
        &SHOW,
        0,
        states("active", "success"),
        "",
    );
    let (data, _) = call(target, "bak_destinations", json!({})).unwrap();
    let whole = json!([{
        "schedule": "nightly", "destination": "local:///mnt/backups", "paths": ["/etc", "/srv"], "exclude": ["*.log"],
        "when": "0 3 * * *", "keep": {"daily": 7, "weekly": 4, "monthly": 6}, "next": "Sat 2026-11-28 03:00:00 UTC",
        "last": "Fri 2026-11-27 03:00:09 UTC", "free_bytes": 409_600, "total_bytes": 1_024_000,
    }]);
    assert_eq!(data, whole);
    let missing = "DESTINATION_NOT_FOUND: there is no directory /mnt/backups\n";
    let target = check(ready(), 1, "", missing).answer(&SHOW, 0, states("inactive", "exit-code"), "");
    let (data, _) = call(target, "bak_destinations", json!({})).unwrap();
    let problems = data[0]["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 3, "{data}");
    assert!(problems[0].as_str().unwrap().contains("svc_status service=linux-sysadmin-backup-nightly"));
    assert!(problems[2].as_str().unwrap().starts_with("there is no directory /mnt/backups (Mount"), "{data}");
    let (data, notes) = call(FakeTarget::new(), "bak_destinations", json!({})).unwrap();
    assert_eq!((data, notes.len()), (json!([]), 1));
    let odd = FakeTarget::new().file(PATH, TEXT).file("/etc/linux-sysadmin/backup/x.conf", "path=/etc\n");
    let (data, _) = call(odd, "bak_destinations", json!({})).unwrap();
    assert!(data[0]["problems"][0].as_str().unwrap().contains("is no destination"), "{data}");
}

#[test]
fn every_grant_for_the_script_is_for_the_script() {
    let description = module().description();
    let programs =
        description.capabilities.commands.iter().map(|grant| grant.pattern.split(' ').next().unwrap());
    let mut programs: Vec<_> = programs.collect();
    programs.sort();
    programs.dedup();
    assert_eq!(programs, [PATH, "TZ=UTC", "systemctl"]);
}
