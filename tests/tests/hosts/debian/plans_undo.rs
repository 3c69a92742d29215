//! A plan that fails on a real host, at any step and for any reason, leaves the host as it was, or says what it could
//! not undo.

use linux_sysadmin_tests::{Expected, Machine, Plan, Step, line, way};
use serde_json::{Value, json};

const SEEN: &[Expected] = &[Expected { name: "/srv/plan/after-undo", why: "it shows that the command ran" }];

/// Makes files of another account, with another mode and an old time, which have to come back.
const FILES: &str = "
for name in existing removed; do
    echo $name > /srv/planner/$name; chown admin:adm /srv/planner/$name; chmod 640 /srv/planner/$name
    touch -d '2020-01-02 03:04:05.678901234' /srv/planner/$name
done";

/// The paths of one step of each kind. They show whether the step was undone.
const PATHS: [&str; 5] =
    ["/srv/plan/ran", "/srv/planner/new", "/srv/planner/existing", "/srv/planner/removed", "/srv/plan/made"];

fn steps() -> [Step; 5] {
    [
        Step::run(&["touch", "--", PATHS[0]]).undo(&["rm", "--", PATHS[0]]),
        Step::write(PATHS[1], "new\n").with("validate", line(&["test", "-s", "{}"])),
        Step::write(PATHS[2], "changed\n"),
        Step::remove(PATHS[3]),
        Step::make_directory(PATHS[4], 0o750),
    ]
}

fn text(list: &Value) -> String {
    let lines = list.as_array().unwrap_or_else(|| panic!("a list: {list}"));
    lines.iter().map(|line| line.as_str().expect("text")).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn wherever_a_plan_breaks_the_host_is_as_it_was() {
    let Some(machine) = Machine::by(way(), "wherever_a_plan_breaks_the_host_is_as_it_was") else { return };
    let mut client = machine.serve().await;
    let none = "";
    let cases: [(&str, &str, &str, usize, Option<Step>); 7] = [
        ("a command fails", none, none, 0, Some(Step::run(&["touch", "--", "/srv/plan/none/ran"]))),
        (
            "a validator says no",
            none,
            none,
            1,
            Some(Step::write(PATHS[1], "").with("validate", line(&["test", "-s", "{}"]))),
        ),
        (
            "a file can't be replaced",
            "chattr +i /srv/planner/existing",
            "chattr -i /srv/planner/existing",
            2,
            None,
        ),
        (
            "a file can't be removed",
            "chattr +i /srv/planner/removed",
            "chattr -i /srv/planner/removed",
            3,
            None,
        ),
        (
            "no directory can be made",
            "mount -t tmpfs -o size=64k,nr_inodes=2,mode=755 tmpfs /srv/plan",
            "umount /srv/plan",
            4,
            None,
        ),
        ("what follows fails", none, none, 5, Some(Step::run(&["false"]))),
        ("what follows takes too long", none, none, 5, {
            Some(Step::run(&["sleep", "86398"]).with("duration", "instant"))
        }),
    ];
    for (cause, setup, back, broken, other) in cases {
        machine.sh(&format!("{FILES}\n{setup}"));
        let before = machine.snapshot();
        let mut all = steps().to_vec();
        match other {
            Some(step) if broken < all.len() => all[broken] = step,
            Some(step) => all.push(step),
            None => {}
        }
        // The undo of the failed step itself must not run.
        all[broken] = all[broken].clone().undo(&["touch", "--", "/srv/plan/undone"]);
        let envelope =
            client.apply(&Plan::of(all).after_undo(&["touch", "--", "/srv/plan/after-undo"])).await;
        assert_eq!(envelope["status"], "error", "{cause}: {envelope}");
        assert_eq!(envelope["failed_step"], broken, "{cause}: {envelope}");
        assert!(envelope["error_code"].as_str().is_some_and(|code| !code.is_empty()), "{cause}: {envelope}");
        machine.is_still_but(&before, SEEN, cause);
        machine.nothing_is_left_behind();
        assert!(machine.has("/srv/plan/after-undo"), "{cause}: what runs after an undo ran");

        assert_eq!(envelope["not_undone"], json!([]), "{cause}: {envelope}");
        let undone = text(&envelope["undone"]);
        for (number, path) in PATHS.iter().enumerate() {
            assert_eq!(undone.contains(path), number < broken, "{cause}: {path} in {undone}");
        }
        let ended = machine.recorded("root", "change-ended");
        assert_eq!(ended["outcome"], "undone", "{cause}: {ended}");
        assert_eq!(ended["failed_step"], broken, "{cause}: {ended}");
        assert_eq!(ended["undone"], envelope["undone"], "{cause}: {ended}");
        machine.sh(&format!("rm -f /srv/plan/after-undo\n{back}"));
    }
    machine.until_ended("sleep 86398");
    machine.audit_is_valid("root", "root");
    // The steps themselves work.
    client.done(&Plan::of(steps())).await;
    let made = "stat -c '%n %a %U:%G' /srv/planner/new /srv/planner/existing /srv/plan/made";
    assert_eq!(
        machine.sh(made),
        "/srv/planner/new 644 root:root\n/srv/planner/existing 640 admin:adm\n/srv/plan/made 750 root:root\n"
    );
    assert!(!machine.has("/srv/planner/removed"));
}

#[tokio::test]
async fn what_is_mounted_is_neither_replaced_nor_removed_and_no_step_runs() {
    let test = "what_is_mounted_is_neither_replaced_nor_removed_and_no_step_runs";
    let Some(machine) = Machine::by(way(), test) else { return };
    let mut client = machine.serve().await;
    machine.sh(FILES);
    for path in [PATHS[2], PATHS[3]] {
        machine.sh(&format!("mount --bind {path} {path}"));
        let before = machine.snapshot();
        let envelope = client.apply(&Plan::of(steps())).await;
        assert_eq!(envelope["error_code"], "MOUNT_POINT", "{path}: {envelope}");
        let message = envelope["message"].as_str().expect("a message");
        assert!(message.contains(path), "{message}");
        machine.is_still(&before, path);
        machine.nothing_is_left_behind();
        machine.sh(&format!("umount {path}"));
    }
}

#[tokio::test]
async fn a_disk_that_fills_up_costs_nothing_that_was_there() {
    let Some(machine) = Machine::by(way(), "a_disk_that_fills_up_costs_nothing_that_was_there") else {
        return;
    };
    let mut client = machine.serve().await;
    machine.sh(&format!(
        "{FILES}
         mount -t tmpfs -o size=64k,mode=755 tmpfs /srv/plan
         head -c 20000 /dev/urandom > /srv/plan/existing"
    ));
    let before = machine.snapshot();
    let large = "x".repeat(200_000);
    for path in ["/srv/plan/existing", "/srv/plan/new"] {
        let plan = Plan::of([Step::write("/srv/planner/existing", "changed\n"), Step::write(path, &large)]);
        let envelope = client.apply(&plan).await;
        assert_eq!(envelope["status"], "error", "{path}: {envelope}");
        assert_eq!(envelope["failed_step"], 1, "{path}: {envelope}");
        machine.is_still(&before, path);
        machine.nothing_is_left_behind();
    }
    // A file that takes all of the room doesn't prevent the undo: the former file is kept, not copied.
    let plan = Plan::of([Step::write("/srv/plan/existing", &"y".repeat(30_000)), Step::run(&["false"])]);
    assert_eq!(client.apply(&plan).await["failed_step"], 1);
    machine.is_still(&before, "an undo on a full disk");
}

#[tokio::test]
async fn the_latest_step_is_undone_first_and_then_what_follows_every_undo() {
    let test = "the_latest_step_is_undone_first_and_then_what_follows_every_undo";
    let Some(machine) = Machine::by(way(), test) else { return };
    let mut client = machine.serve().await;
    let note = |text: &str| {
        let mut note = line(&["tee", "--append", "--", "/srv/plan/order"]);
        note["stdin"] = json!(format!("{text}\n"));
        note
    };
    let step = |number: usize| {
        let step = Step::run(&["true"]).undo_by(note(&format!("{number} first")));
        step.undo_by(note(&format!("{number} then")))
    };
    let mut plan = Plan::of((0..3).map(step)).step(Step::run(&["false"]).undo_by(note("never")));
    plan = plan.step(Step::run(&["true"]).undo_by(note("never")));
    let mut after = plan.json();
    after["after_undo"] = json!([note("after")]);
    let envelope = client.envelope("planner_apply", json!({"plan": after})).await;
    assert_eq!(envelope["failed_step"], 3, "{envelope}");
    let order = "2 first\n2 then\n1 first\n1 then\n0 first\n0 then\nafter\n";
    assert_eq!(machine.read("/srv/plan/order"), order);
}

#[tokio::test]
async fn what_cannot_be_undone_is_said_and_the_rest_is_undone_all_the_same() {
    let test = "what_cannot_be_undone_is_said_and_the_rest_is_undone_all_the_same";
    let Some(machine) = Machine::by(way(), test) else { return };
    let mut client = machine.serve().await;
    machine.sh(FILES);
    let cases = [
        (
            "somebody put a file into the directory",
            vec![
                Step::make_directory("/srv/plan/made", 0o755),
                Step::run(&["touch", "--", "/srv/plan/made/theirs"]).undo(&["true"]),
            ],
            "/srv/plan/made",
            &["/srv/plan/made", "/srv/plan/made/theirs"][..],
        ),
        (
            "the undo itself fails",
            vec![Step::run(&["touch", "--", "/srv/plan/ran"]).undo(&["rm", "--", "/srv/plan/other"])],
            "rm -- /srv/plan/other",
            &["/srv/plan/ran"],
        ),
        (
            "there is no undo",
            vec![Step::run(&["touch", "--", "/srv/plan/ran"])],
            "touch -- /srv/plan/ran",
            &["/srv/plan/ran"],
        ),
    ];
    for (cause, steps, named, left) in cases {
        let before = machine.snapshot();
        let plan = [
            vec![Step::write("/srv/planner/existing", "changed\n")],
            steps,
            vec![Step::remove("/srv/planner/removed"), Step::run(&["false"])],
        ];
        let envelope = client.apply(&Plan::of(plan.concat())).await;
        assert_eq!(envelope["status"], "error", "{cause}: {envelope}");
        assert!(text(&envelope["not_undone"]).contains(named), "{cause}: {envelope}");
        let undone = text(&envelope["undone"]);
        assert!(
            undone.contains("/srv/planner/existing") && undone.contains("/srv/planner/removed"),
            "{cause}: {envelope}"
        );
        let ended = machine.recorded("root", "change-ended");
        assert_eq!(ended["outcome"], "partly-undone", "{cause}: {ended}");
        assert_eq!(ended["not_undone"], envelope["not_undone"], "{cause}: {ended}");
        assert!(left.iter().all(|path| machine.has(path)), "{cause}: {left:?} are there");
        let left = [Expected { name: "/srv/plan/*", why: "it is what couldn't be undone" }];
        machine.is_still_but(&before, &left, cause);
        machine.sh("rm -r /srv/plan/*");
    }
    machine.nothing_is_left_behind();
}
