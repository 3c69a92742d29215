//! On a real host: what the other tests rely on where they say that nothing has changed.

use linux_sysadmin_tests::{Expected, Machine};

#[test]
fn a_snapshot_tells_every_kind_of_change() {
    let Some(machine) = Machine::new("a_snapshot_tells_every_kind_of_change") else { return };
    machine.sh("echo text > /etc/planner/kept; ln -s kept /etc/planner/link");
    let before = machine.snapshot();
    machine.is_still(&before, "nothing was done");
    for (change, back, name) in [
        ("touch /srv/plan/new", "rm /srv/plan/new", "/srv/plan/new"),
        ("mkdir /srv/plan/new", "rmdir /srv/plan/new", "/srv/plan/new"),
        ("chmod 600 /etc/planner/kept", "chmod 644 /etc/planner/kept", "/etc/planner/kept"),
        ("chown admin /etc/planner/kept", "chown root /etc/planner/kept", "/etc/planner/kept"),
        ("chmod 700 /etc/planner", "chmod 755 /etc/planner", "/etc/planner"),
        ("ln /etc/planner/kept /var/lib/planner/h", "rm /var/lib/planner/h", "/etc/planner/kept"),
        ("systemctl stop cron", "systemctl start cron", "unit cron.service"),
        (
            "systemctl -q disable cron 2>&1",
            "systemctl -q enable cron 2>&1",
            "/etc/systemd/system/multi-user.target.wants/cron.service",
        ),
        // Contents alone, the time as it was: this one can't be put back, so it is the last.
        (
            "t=$(stat -c %y /etc/planner/kept); echo TEXT > /etc/planner/kept; touch -d \"$t\" /etc/planner/kept",
            "",
            "/etc/planner/kept",
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
            // A directory's own time is none of a file's.
            machine.is_still(&before, change);
        }
    }
}
