//! A machine is restarted by a call over SSH, which waits for it and tells what didn't come up. What was planned is
//! cancelled, and what blocks it is told.

use linux_sysadmin_tests::{Client, Lab, Way};
use serde_json::{Value, json};

const WAY: Way = Way::Elicitation;

/// A service that starts now and not at the next boot, and one that is started by hand.
const PREPARE: &str = r#"
set -e
printf '[Service]\nExecStart=/bin/sh -c "test -e /run/lab-first && exec sleep 98801"\n[Install]\nWantedBy=multi-user.target\n' \
    > /etc/systemd/system/lab-once.service
printf '[Service]\nExecStart=sleep 98802\n[Install]\nWantedBy=multi-user.target\n' > /etc/systemd/system/lab-hand.service
touch /run/lab-first
systemctl daemon-reload
systemctl enable --now lab-once.service
systemctl start lab-hand.service
"#;
/// Holds the package manager's lock, as an installation does.
const HOLD: &str = "
import fcntl, os, time
for path in ['/var/lib/dpkg/lock-frontend', '/var/lib/rpm/.rpm.lock']:
    if os.path.isdir(os.path.dirname(path)):
        held = open(path, 'w')
        fcntl.lockf(held, fcntl.LOCK_EX)
        break
open('/run/lab-held', 'w')
time.sleep(98804)
";
const CLEAN: &str = r"
shutdown -c
systemctl stop lab-block.service lab-hand.service lab-once.service lab-hold.service
rm -f /run/lab-held /run/lab-hold.py
systemctl disable lab-once.service
rm -f /etc/systemd/system/lab-once.service /etc/systemd/system/lab-hand.service /run/lab-first
systemctl daemon-reload
systemctl reset-failed
";

/// The hosts of both families, until this is dropped.
struct Machines(Lab);

impl Machines {
    const NAMES: [&str; 2] = ["debian1", "rhel1"];

    fn new(test: &str) -> Option<Self> {
        let machines = Self(Lab::new(test)?);
        machines.clean();
        Some(machines)
    }

    fn clean(&self) {
        for name in Self::NAMES {
            self.0.host(name).holds(CLEAN);
        }
    }

    async fn serve(&self, name: &str) -> Client {
        let (version, capabilities) = WAY.client();
        let mut client = self.0.serve(&["--host", name]);
        client.can(capabilities);
        client.initialize(version).await;
        client
    }

    fn boot(&self, name: &str) -> String {
        self.0.host(name).run(&["cat", "/proc/sys/kernel/random/boot_id"])
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        self.clean();
    }
}

#[tokio::test]
async fn a_restart_comes_back_with_what_did_not_come_up() {
    let Some(machines) = Machines::new("a_restart_comes_back_with_what_did_not_come_up") else { return };
    for name in Machines::NAMES {
        let host = machines.0.host(name);
        assert!(host.holds(PREPARE), "{name}");
        let before = machines.boot(name);
        let mut client = machines.serve(name).await;
        let asked = client.is_asked(WAY, "machine_reboot", json!({})).await;
        for said in
            ["critical", "shutdown -r now", "nothing starts these at boot, though they run: lab-hand.service"]
        {
            assert!(asked.text().contains(said), "{name}: {}", asked.text());
        }
        let envelope = client.answers(&asked, "accept").await;
        assert_eq!(envelope["status"], "success", "{name}: {envelope}");
        assert_ne!(machines.boot(name), before, "{name}");
        let data = &envelope["data"];
        assert_eq!(
            (&data["state"], &data["system"]),
            (&json!("up"), &json!("degraded")),
            "{name}: {envelope}"
        );
        let not_up = data["not_up"].as_array().cloned().unwrap_or_default();
        for unit in [
            json!({"unit": "lab-once.service", "state": "failed", "result": "exit-code"}),
            json!({"unit": "lab-hand.service", "state": "gone"}),
        ] {
            assert!(not_up.contains(&unit), "{name}: {envelope}");
        }
        // systemd says the same of each that is told.
        for unit in &not_up {
            let unit = unit["unit"].as_str().expect("a name");
            assert!(!host.holds(&format!("systemctl --quiet is-active '{unit}'")), "{name}: {unit}");
        }
        let looked = client.envelope("svc_status", json!({"service": "lab-once"})).await;
        assert_eq!(looked["status"], "success", "{name}: {looked}");
        assert_eq!(
            looked.get("connection_restored"),
            None,
            "{name}: the restart itself has told it: {looked}"
        );
    }
}

#[tokio::test]
async fn what_is_planned_is_told_and_cancelled_and_what_blocks_it_is_named() {
    let test = "what_is_planned_is_told_and_cancelled_and_what_blocks_it_is_named";
    let Some(machines) = Machines::new(test) else { return };
    for name in Machines::NAMES {
        let host = machines.0.host(name);
        let mut client = machines.serve(name).await;
        let arguments = json!({"at": "+300", "message": "new kernel"});
        let planned = client.agrees(WAY, "machine_shutdown", arguments).await;
        let (state, at) = (&planned["data"]["state"], planned["data"]["at"].as_str().unwrap_or_default());
        assert_eq!(state, "scheduled", "{name}: {planned}");
        let file = host.run(&["cat", "/run/systemd/shutdown/scheduled"]);
        let unix = host.run(&["date", "--date", at, "+%s"]);
        assert!(file.contains(&format!("USEC={}", unix.trim())), "{name}: {at} {file}");
        assert!(file.contains("MODE=poweroff") && file.contains("WALL_MESSAGE=new kernel"), "{name}: {file}");
        let cancelled = client.agrees(WAY, "machine_reboot", json!({"cancel": true})).await;
        assert_eq!(cancelled["data"], json!({"state": "cancelled", "at": at}), "{name}: {cancelled}");
        host.until("! test -e /run/systemd/shutdown/scheduled");
        refused(&mut client, json!({"cancel": true}), "NOT_SCHEDULED", "planned").await;

        let block = "systemd-run --quiet --unit=lab-block systemd-inhibit --what=shutdown --mode=block \
                     --who='backup job' --why='copies disks' sleep 98803";
        assert!(host.holds(block), "{name}");
        host.until("grep --quiet 'WHO=backup job' /run/systemd/inhibit/*[0-9]");
        refused(&mut client, json!({}), "SHUTDOWN_INHIBITED", "backup job").await;
        host.put("/run/lab-hold.py", HOLD.as_bytes());
        assert!(host.holds("systemd-run --quiet --unit=lab-hold python3 /run/lab-hold.py"), "{name}");
        host.until("test -e /run/lab-held");
        let held = client.agrees(WAY, "machine_reboot", json!({"force": true})).await;
        assert_eq!(held["error_code"], "RESOURCE_LOCKED", "{name}: {held}");
    }
}

/// Makes a call that is refused before anybody is asked.
async fn refused(client: &mut Client, arguments: Value, code: &str, said: &str) {
    let envelope = client.envelope("machine_reboot", arguments.clone()).await;
    assert_eq!(envelope["error_code"], code, "{arguments}: {envelope}");
    let message = envelope["message"].as_str().unwrap_or_default();
    assert!(message.contains(said), "{arguments}: {envelope}");
}
