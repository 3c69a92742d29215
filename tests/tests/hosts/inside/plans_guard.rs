//! A change of a real host that could cut the connection undoes itself there, unless the server confirms it.

use linux_sysadmin_tests::{Expected, Machine, Plan, Step};

const LINK: &str = "eth0";
const UP: &str = "test \"$(cat /sys/class/net/eth0/operstate)\" = up";
const ROUTE: &str = "ip route show | grep --quiet '^203.0.113.0/24 '";

fn down() -> Step {
    let down = Step::run(&["ip", "link", "set", "dev", LINK, "down"]).with("duration", "instant");
    down.undo(&["ip", "link", "set", "dev", LINK, "up"])
}

fn route() -> Step {
    Step::run(&["ip", "route", "add", "203.0.113.0/24", "dev", LINK]).undo(&[
        "ip",
        "route",
        "del",
        "203.0.113.0/24",
        "dev",
        LINK,
    ])
}

/// A step that waits until the test reads from the pipe.
fn gate() -> Step {
    let tee = Step::run(&["tee", "--", "/srv/plan/gate"]).with("stdin", "through");
    tee.with("duration", "instant").undo(&["true"])
}

/// The configuration by which only critical plans ask. With the default, plans that may cut the connection would ask as
/// well.
const ASK_SELDOM: &str = "safety:\n  confirmation_threshold: critical\n";

/// The remains of a guard that has fired after its server had ended.
const FIRED: &[Expected] = &[
    Expected {
        name: "/run/systemd/system/linux-sysadmin-guard*",
        why: "gone with the next boot, or a recovery",
    },
    Expected { name: "unit linux-sysadmin-guard*", why: "gone with the next boot, or a recovery" },
    Expected { name: "timer linux-sysadmin-guard*", why: "gone with the next boot, or a recovery" },
    Expected {
        name: "/home/admin/.sudo_as_admin_successful",
        why: "Debian's sudo, at an account's first use of it",
    },
];

fn units(machine: &Machine) -> String {
    machine.sh("systemctl list-units --all --plain --no-legend --full 'linux-sysadmin-guard*'")
}

#[tokio::test]
async fn a_guarded_plan_that_went_well_stays_and_leaves_no_guard() {
    let Some(machine) = Machine::new("a_guarded_plan_that_went_well_stays_and_leaves_no_guard") else {
        return;
    };
    machine.configure("root", ASK_SELDOM);
    let mut client = machine.serve().await;
    let before = machine.snapshot();
    let plan = Plan::of([route(), Step::write("/srv/planner/new", "new\n")]).with("guard", 5);
    client.done(&plan).await;
    // No guard is left that could undo the change later.
    machine.nothing_is_left_behind();
    let new = [Expected { name: "/srv/planner/new", why: "a step" }];
    machine.is_still_but(&before, &new, "a guard that was disarmed");
    assert!(machine.holds(ROUTE) && machine.holds(UP));
    assert_eq!(machine.recorded("root", "change-ended")["outcome"], "done");
}

#[tokio::test]
async fn a_guarded_plan_that_breaks_is_undone_at_once_and_leaves_no_guard() {
    let test = "a_guarded_plan_that_breaks_is_undone_at_once_and_leaves_no_guard";
    let Some(machine) = Machine::new(test) else { return };
    machine.configure("root", ASK_SELDOM);
    let mut client = machine.serve().await;
    let before = machine.snapshot();
    let steps = [route(), Step::write("/srv/planner/new", "new\n"), Step::run(&["false"])];
    // The guard's time is the longest one, so a call that waits for it would be noticed.
    let envelope = client.apply(&Plan::of(steps).with("guard", 600)).await;
    assert_eq!(envelope["failed_step"], 2, "{envelope}");
    machine.nothing_is_left_behind();
    machine.is_still(&before, "a guarded plan that broke");
    assert!(!machine.holds(ROUTE));
}

#[tokio::test]
async fn the_guard_is_armed_before_the_first_step() {
    let Some(machine) = Machine::new("the_guard_is_armed_before_the_first_step") else { return };
    machine.configure("root", ASK_SELDOM);
    let mut client = machine.serve().await;
    machine.sh("mkfifo /srv/plan/gate");
    let id = client.begin(Plan::of([gate(), route()]).with("guard", 30).apply()).await;
    client.until_runs(&machine, id, "tee -- /srv/plan/gate").await;
    assert!(!machine.holds(ROUTE), "the first step isn't over");
    assert!(units(&machine).contains(".timer"), "{}", units(&machine));
    machine.sh("timeout 60 cat /srv/plan/gate");
    assert_eq!(client.outcome(id).await["status"], "success");
    machine.nothing_is_left_behind();
}

#[tokio::test]
async fn a_way_that_is_cut_is_open_again_and_the_plan_is_no_success() {
    let Some(machine) = Machine::new("a_way_that_is_cut_is_open_again_and_the_plan_is_no_success") else {
        return;
    };
    machine.sh("echo existing > /srv/planner/existing");
    machine.configure("root", ASK_SELDOM);
    let mut client = machine.serve().await;
    let before = machine.snapshot();
    let plan = Plan::of([Step::write("/srv/planner/existing", "changed\n"), down()]).with("guard", 5);
    let envelope = client.apply(&plan).await;
    assert_eq!(envelope["status"], "error", "{envelope}");
    assert_eq!(envelope["error_category"], "network", "{envelope}");
    let undone = envelope["undone"].to_string();
    assert!(
        undone.contains("/srv/planner/existing") && undone.contains("ip link set dev eth0 up"),
        "{envelope}"
    );
    machine.until(UP);
    machine.is_still(&before, "a way that was cut");
    machine.nothing_is_left_behind();
    assert_eq!(machine.recorded("root", "change-ended")["outcome"], "undone");
}

#[tokio::test]
async fn without_a_word_from_the_server_the_host_undoes_the_change_by_itself() {
    let test = "without_a_word_from_the_server_the_host_undoes_the_change_by_itself";
    let Some(machine) = Machine::new(test) else { return };
    machine.sh("mkfifo /srv/plan/gate
         for name in existing removed; do
             echo $name > /srv/planner/$name; chown admin:adm /srv/planner/$name; chmod 640 /srv/planner/$name
         done");
    // The server is killed, or it lives and can do nothing, as behind a cut connection.
    for (account, home, signal) in
        [("root", "root", "KILL"), ("root", "other", "STOP"), ("admin", "admin", "KILL")]
    {
        machine.sh(&format!("install -d -m 700 -o {account} -g {account} /var/lib/planner/{home}"));
        machine.configure(home, ASK_SELDOM);
        let mut client = machine.serve_as(account, home).await;
        let before = machine.snapshot();
        let plan = Plan::of([
            Step::write("/srv/planner/existing", "changed\n"),
            Step::write("/srv/planner/new", "new\n"),
            Step::remove("/srv/planner/removed"),
            Step::make_directory("/srv/plan/made", 0o755),
            down(),
            gate(),
        ]);
        let plan = plan.after_undo(&["systemctl", "daemon-reload"]).with("guard", 5);
        let id = client.begin(plan.apply()).await;
        client.until_runs(&machine, id, "tee -- /srv/plan/gate").await;
        assert!(!machine.holds(UP), "the way is cut");
        assert!(!machine.has("/srv/planner/removed") && machine.has("/srv/plan/made"));
        machine.signal(home, signal);
        // The guard works in the same way whether the step goes on or has died with the server.
        machine.sh("timeout 1 cat /srv/plan/gate || :");
        machine.until(UP);
        machine
            .until("! test -e /srv/planner/new && test -e /srv/planner/removed && ! test -e /srv/plan/made");
        machine.until("grep --quiet existing /srv/planner/existing");
        machine.until_no_staging();
        machine.is_still_but(&before, FIRED, signal);
        if signal == "STOP" {
            // The server finds out that its plan was undone, and doesn't report success.
            machine.signal(home, "CONT");
            let ended = machine.recorded(home, "change-ended");
            assert_ne!(ended["outcome"], "done", "{ended}");
        }
        drop(client);
        machine.until_ended("tee -- /srv/plan/gate");
        machine.audit_is_valid(account, home);
    }
}
