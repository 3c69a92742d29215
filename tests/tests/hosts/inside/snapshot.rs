//! A snapshot of a real host notices every kind of change. The other tests rely on it where they say that nothing has
//! changed.

use linux_sysadmin_tests::{Expected, Machine};

#[test]
fn a_snapshot_tells_every_kind_of_change() {
    let Some(machine) = Machine::new("a_snapshot_tells_every_kind_of_change") else { return };
    machine.sh("echo text > /srv/planner/kept; ln -s kept /srv/planner/link");
    let before = machine.snapshot();
    machine.is_still(&before, "nothing was done");
    for (change, back, name) in [
        ("touch /srv/plan/new", "rm /srv/plan/new", "/srv/plan/new"),
        ("mkdir /srv/plan/new", "rmdir /srv/plan/new", "/srv/plan/new"),
        ("chmod 600 /srv/planner/kept", "chmod 644 /srv/planner/kept", "/srv/planner/kept"),
        ("chown admin /srv/planner/kept", "chown root /srv/planner/kept", "/srv/planner/kept"),
        ("chmod 700 /srv/planner", "chmod 755 /srv/planner", "/srv/planner"),
        ("ln /srv/planner/kept /var/lib/planner/h", "rm /var/lib/planner/h", "/srv/planner/kept"),
        ("systemctl stop cron", "systemctl start cron", "unit cron.service"),
        (
            "systemctl -q disable cron 2>&1",
            "systemctl -q enable cron 2>&1",
            "/etc/systemd/system/multi-user.target.wants/cron.service",
        ),
        // Only the contents change, and the time stays. This can't be undone, so it comes last.
        (
            "t=$(stat -c %y /srv/planner/kept); echo TEXT > /srv/planner/kept; touch -d \"$t\" /srv/planner/kept",
            "",
            "/srv/planner/kept",
        ),
    ] {
        machine.sh(change);
        let differences = before.differences(&machine.snapshot(), &[]);
        let told = differences.iter().any(|line| line.starts_with(&format!("{name}: ")));
        assert!(told, "{change}: {differences:?}");
        let expected = [Expected { name: "/etc/*", why: "a test of a test" }];
        assert_eq!(
            before.differences(&machine.snapshot(), &expected).is_empty(),
            differences.iter().all(|line| line.starts_with("/etc/")),
            "{change}"
        );
        if !back.is_empty() {
            machine.sh(back);
            // A directory's own time isn't part of a snapshot.
            machine.is_still(&before, change);
        }
    }
}
