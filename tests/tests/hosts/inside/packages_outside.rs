//! A package manager that this project doesn't know: a module that is built outside of it, with the sdk alone, has all ten
//! tools on a host with that package manager.

use linux_sysadmin_tests::{Changing, way};
use serde_json::{Value, json};

const TOYPKG: &str = include_str!("../../../outside/packages-toy/toypkg.py");
const CLEAN: &str = "rm -rf /usr/local/bin/toypkg /var/lib/toypkg /etc/toypkg";

/// The lines of the package manager's own database: `name version state`.
fn database(machine: &Changing) -> Vec<String> {
    let said = machine.sh("toypkg list");
    let mut lines: Vec<_> = said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn a_backend_on_the_sdk_alone_has_all_ten_tools() {
    let test = "a_backend_on_the_sdk_alone_has_all_ten_tools";
    let Some(machine) = Changing::by(way(), test, "", CLEAN) else { return };
    machine.host().put("/usr/local/bin/toypkg", TOYPKG.as_bytes());
    machine.sh("chmod 0755 /usr/local/bin/toypkg; toypkg refresh");
    machine.configure("root", "safety:\n  confirmation: two-step\ndistro:\n  package_manager: pacman\n");
    machine.add("root", "root", "packages-toy");
    let mut client = machine.serve_shipped("root", "root").await;
    let mut does = async |tool: &str, arguments: Value, risk: &str| -> Value {
        let mut envelope = client.envelope(tool, arguments.clone()).await;
        if !risk.is_empty() {
            assert_eq!(envelope["risk_level"], risk, "{envelope}");
            let mut confirmed = arguments;
            confirmed["confirmed"] = json!(true);
            envelope = client.envelope(tool, confirmed).await;
        }
        envelope
    };

    let found = does("pkg_search", json!({"query": "greets"}), "").await;
    assert_eq!(found["data"], json!([{"name": "lab-toy", "summary": "greets"}]), "{found}");
    let would = does("pkg_install", json!({"package": "lab-toy", "dry_run": true}), "").await;
    assert_eq!(
        would["data"]["would_install"],
        json!([{"name": "lab-toy-base", "version": "1.0"}, {"name": "lab-toy", "version": "2.0"}]),
        "{would}"
    );
    assert!(database(&machine).is_empty());
    does("pkg_install", json!({"package": "lab-toy"}), "").await;
    assert_eq!(database(&machine), ["lab-toy 2.0 installed", "lab-toy-base 1.0 installed"]);
    let listed = does("pkg_list_installed", json!({}), "").await;
    assert_eq!(
        listed["data"],
        json!([
            {"name": "lab-toy", "version": "2.0", "arch": "any"},
            {"name": "lab-toy-base", "version": "1.0", "arch": "any"},
        ]),
        "{listed}"
    );
    let back = does("pkg_rollback", json!({"package": "lab-toy", "version": "1.0"}), "high").await;
    assert_eq!(
        back["data"]["downgraded"],
        json!([{"name": "lab-toy", "from": "2.0", "version": "1.0"}]),
        "{back}"
    );
    let updates = does("pkg_check_updates", json!({}), "").await;
    assert_eq!(
        updates["data"],
        json!([{"name": "lab-toy", "installed": "1.0", "candidate": "2.0"}]),
        "{updates}"
    );
    does("pkg_update", json!({}), "").await;
    assert_eq!(database(&machine)[0], "lab-toy 2.0 installed");
    does("pkg_rollback", json!({"package": "lab-toy"}), "high").await;
    let info = does("pkg_info", json!({"package": "lab-toy"}), "").await;
    assert_eq!(
        (&info["data"]["installed"], &info["data"]["candidate"]),
        (&json!("1.0"), &json!("2.0")),
        "{info}"
    );
    let history = does("pkg_history", json!({"package": "lab-toy"}), "").await;
    assert_eq!(history["total"], 4, "{history}");
    assert_eq!(history["data"][0]["operations"], json!(["downgrade lab-toy 2.0 -> 1.0"]), "{history}");
    let refreshed = does("pkg_update", json!({"refresh_only": true}), "").await;
    assert_eq!(refreshed["data"]["updates"], 1, "{refreshed}");

    let removed = does("pkg_remove", json!({"package": "lab-toy-base"}), "high").await;
    assert_eq!(removed["data"]["removed"].as_array().map(Vec::len), Some(2), "{removed}");
    assert!(machine.has("/etc/toypkg/lab-toy.conf"));
    let listed = does("pkg_list_installed", json!({}), "").await;
    assert_eq!(listed["data"], json!([]), "{listed}");
    let purged = does("pkg_purge", json!({"package": ["lab-toy", "lab-toy-base"]}), "critical").await;
    assert_eq!(purged["status"], "success", "{purged}");
    assert!(!machine.has("/etc/toypkg/lab-toy.conf") && database(&machine).is_empty());

    let unmet = does("pkg_install", json!({"package": "lab-toy-lost"}), "").await;
    assert_eq!(unmet["error_code"], "DEPENDENCY_CONFLICT", "{unmet}");
    let none = does("pkg_install", json!({"package": "lab-tyo"}), "").await;
    assert_eq!(none["error_code"], "PACKAGE_NOT_FOUND", "{none}");
    assert!(none["message"].as_str().is_some_and(|said| said.contains("lab-toy")), "{none}");
}
