//! The package tools on a host with pacman, by the module that an author outside of this project would write. pacman's own
//! database says what they have done.

use linux_sysadmin_tests::{Changing, Client, Reach};
use serde_json::{Value, json};

const CLEAN: &str = r#"
rm -f /var/lib/pacman/db.lck
installed=$(pacman --query --quiet)
test -z "$installed" || pacman --remove --cascade --nosave --noconfirm $installed
rm -rf /etc/lab-conf.conf* /var/cache/pacman/pkg/* /run/lsa-*
cp /opt/labrepo/old/*.pkg.tar.zst /var/cache/pacman/pkg/
pacman --sync --refresh --noconfirm
"#;

/// A host with pacman, and a server on it that has the module.
struct Pacman {
    machine: Changing,
    client: Client,
}

impl Pacman {
    async fn new(test: &str) -> Option<Self> {
        let machine = Changing::by(Reach::Inside("arch1"), test, "", CLEAN)?;
        machine.configure("root", "safety:\n  confirmation: two-step\n");
        machine.add("root", "root", "packages-pacman");
        let client = machine.serve_shipped("root", "root").await;
        Some(Self { machine, client })
    }

    /// A line `NAME VERSION` for each package.
    fn database(&self) -> Vec<String> {
        let said = self.machine.sh("pacman --query || :");
        said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    async fn calls(&mut self, tool: &str, arguments: Value) -> Value {
        self.client.envelope(tool, arguments).await
    }

    /// Makes a dry run, which must leave pacman's database as it is; gives its data.
    async fn shows(&mut self, tool: &str, arguments: &Value) -> Value {
        let mut arguments = arguments.clone();
        arguments["dry_run"] = json!(true);
        let before = self.database();
        let envelope = self.calls(tool, arguments).await;
        assert_eq!(self.database(), before, "a dry run of {tool}");
        assert_eq!(
            (&envelope["status"], &envelope["dry_run"]),
            (&json!("success"), &json!(true)),
            "{envelope}"
        );
        envelope["data"].clone()
    }

    /// Makes a change, and confirms it where its risk makes it ask; gives the answer.
    async fn does(&mut self, tool: &str, arguments: &Value, risk: &str) -> Value {
        let mut envelope = self.calls(tool, arguments.clone()).await;
        if !risk.is_empty() {
            assert_eq!(envelope["status"], "confirmation_required", "{envelope}");
            assert_eq!(envelope["risk_level"], risk, "{envelope}");
            let mut confirmed = arguments.clone();
            confirmed["confirmed"] = json!(true);
            envelope = self.calls(tool, confirmed).await;
        }
        assert_eq!(envelope["status"], "success", "{tool} {arguments}: {envelope}");
        self.machine.nothing_is_left_behind();
        envelope
    }
}

/// The name and version of each item, sorted.
fn versions(list: &Value) -> Vec<String> {
    let items = list.as_array().unwrap_or_else(|| panic!("a list: {list}"));
    let text = |item: &Value, member: &str| item[member].as_str().unwrap_or_default().to_owned();
    let mut versions: Vec<_> =
        items.iter().map(|item| format!("{} {}", text(item, "name"), text(item, "version"))).collect();
    versions.sort();
    versions
}

#[tokio::test]
async fn packages_are_found_installed_updated_taken_back_and_removed_as_pacmans_database_says() {
    let test = "packages_are_found_installed_updated_taken_back_and_removed_as_pacmans_database_says";
    let Some(mut pacman) = Pacman::new(test).await else { return };
    let hello = json!({"package": "lab-hello"});
    let both = ["lab-dep 1.0-1", "lab-hello 2.0-1"];

    let found = pacman.calls("pkg_search", json!({"query": "lab hello"})).await;
    assert_eq!(found["data"][0]["name"], "lab-hello", "{found}");
    assert_eq!(found["data"][0].get("installed"), None, "{found}");
    let info = pacman.calls("pkg_info", hello.clone()).await;
    let offered = json!([
        {"version": "2.0-1", "repository": "lab"},
        {"version": "1.0-1", "repository": "cache"},
    ]);
    assert_eq!(info["data"]["versions"], offered, "{info}");

    // The packages that it needs are shown, and installed as well.
    let install = json!({"package": ["lab-dep"]});
    let shown = pacman.shows("pkg_install", &install).await;
    assert_eq!(versions(&shown["would_install"]), both, "{shown}");
    let done = pacman.does("pkg_install", &install, "").await;
    assert_eq!(versions(&done["data"]["installed"]), both, "{done}");
    assert_eq!(pacman.database(), both);
    let again = pacman.calls("pkg_install", install).await;
    assert_eq!((&again["status"], &again["data"]), (&json!("success"), &json!({})), "{again}");

    // The version goes back, forward, and back by the history.
    let back = json!({"package": "lab-hello", "version": "1.0"});
    let shown = pacman.shows("pkg_rollback", &back).await;
    assert_eq!(versions(&shown["would_downgrade"]), ["lab-hello 1.0-1"], "{shown}");
    pacman.does("pkg_rollback", &back, "high").await;
    assert_eq!(pacman.database(), ["lab-dep 1.0-1", "lab-hello 1.0-1"]);
    let updates = pacman.calls("pkg_check_updates", json!({})).await;
    let update = json!([{"name": "lab-hello", "installed": "1.0-1", "candidate": "2.0-1"}]);
    assert_eq!(updates["data"], update, "{updates}");
    let shown = pacman.shows("pkg_update", &json!({})).await;
    assert_eq!(versions(&shown["would_upgrade"]), ["lab-hello 2.0-1"], "{shown}");
    pacman.does("pkg_update", &json!({}), "").await;
    assert_eq!(pacman.database(), both);
    pacman.does("pkg_rollback", &hello, "high").await;
    assert_eq!(pacman.database(), ["lab-dep 1.0-1", "lab-hello 1.0-1"]);
    let refreshed = pacman.does("pkg_update", &json!({"refresh_only": true}), "").await;
    assert_eq!(refreshed["data"]["updates"], 1, "{refreshed}");
    let gone = pacman.calls("pkg_rollback", json!({"package": "lab-hello", "version": "0.1"})).await;
    assert_eq!(gone["error_code"], "VERSION_NOT_AVAILABLE", "{gone}");

    // The history has all of that, the latest first.
    let history = pacman.calls("pkg_history", hello.clone()).await;
    let past = history["data"].as_array().unwrap_or_else(|| panic!("a list: {history}"));
    let verbs: Vec<_> =
        past.iter().filter_map(|past| past["operations"][0].as_str()?.split(' ').next()).take(4).collect();
    assert_eq!(verbs, ["downgrade", "upgrade", "downgrade", "install"], "{history}");
    let listed = pacman.calls("pkg_list_installed", json!({"filter": "lab-hello"})).await;
    assert_eq!(versions(&listed["data"]), ["lab-hello 1.0-1"], "{listed}");

    // Packages that need it are removed with it.
    let shown = pacman.shows("pkg_remove", &hello).await;
    assert_eq!(versions(&shown["would_remove"]), ["lab-dep 1.0-1", "lab-hello 1.0-1"], "{shown}");
    pacman.does("pkg_remove", &hello, "high").await;
    assert!(pacman.database().is_empty());
    let again = pacman.calls("pkg_remove", hello).await;
    assert!(again["notes"].to_string().contains("lab-hello is not installed"), "{again}");
}

#[tokio::test]
async fn a_removal_leaves_changed_configuration_and_a_purge_does_not() {
    let test = "a_removal_leaves_changed_configuration_and_a_purge_does_not";
    let Some(mut pacman) = Pacman::new(test).await else { return };
    let conf = json!({"package": "lab-conf"});
    pacman.does("pkg_install", &conf, "").await;
    pacman.does("pkg_rollback", &json!({"package": "lab-conf", "version": "1.0"}), "high").await;
    pacman.machine.sh("echo mine >> /etc/lab-conf.conf");
    let done = pacman.does("pkg_update", &conf, "").await;
    assert_eq!(done["data"]["kept_config_files"], json!(["/etc/lab-conf.conf"]), "{done}");
    assert!(pacman.machine.read("/etc/lab-conf.conf").contains("mine"));
    pacman.does("pkg_remove", &conf, "high").await;
    assert!(pacman.machine.read("/etc/lab-conf.conf.pacsave").contains("mine"));

    pacman.does("pkg_install", &conf, "").await;
    pacman.machine.sh("echo mine >> /etc/lab-conf.conf; rm /etc/lab-conf.conf.pac*");
    pacman.shows("pkg_purge", &conf).await;
    pacman.does("pkg_purge", &conf, "critical").await;
    assert!(pacman.database().is_empty());
    assert_eq!(pacman.machine.sh("ls /etc/lab-conf.conf* 2>/dev/null || :").trim(), "");
}

#[tokio::test]
async fn what_stands_in_the_way_is_told_and_nothing_is_changed() {
    let test = "what_stands_in_the_way_is_told_and_nothing_is_changed";
    let Some(mut pacman) = Pacman::new(test).await else { return };
    let unmet = pacman.calls("pkg_install", json!({"package": "lab-missing"})).await;
    assert_eq!(unmet["error_code"], "DEPENDENCY_CONFLICT", "{unmet}");
    assert!(unmet["message"].as_str().is_some_and(|said| said.contains("lab-nowhere")), "{unmet}");
    let none = pacman.calls("pkg_install", json!({"package": "lab-helo"})).await;
    assert_eq!(none["error_code"], "PACKAGE_NOT_FOUND", "{none}");
    assert!(none["message"].as_str().is_some_and(|said| said.contains("lab-hello")), "{none}");
    for name in [
        "lab-hello=1.0",
        "lab/lab-hello",
        "--config=/run/lsa-x",
        "https://lab.example.invalid/x",
        "lab-*",
        "./x.zst",
    ] {
        let refused = pacman.calls("pkg_install", json!({"package": name})).await;
        assert_eq!(refused["error_code"], "INVALID_PACKAGE_NAME", "{name}: {refused}");
    }
    assert!(pacman.database().is_empty());

    pacman.does("pkg_install", &json!({"package": "lab-hello"}), "").await;
    let clash = pacman.calls("pkg_install", json!({"package": "lab-clash"})).await;
    assert_eq!(clash["error_code"], "DEPENDENCY_CONFLICT", "{clash}");
    assert_eq!(pacman.database(), ["lab-hello 2.0-1"]);
    // pacman goes on where a script of a package fails.
    let broken = pacman.does("pkg_install", &json!({"package": "lab-broken"}), "").await;
    assert!(broken["notes"].to_string().contains("a script of a package failed"), "{broken}");

    pacman.machine.sh("touch /var/lib/pacman/db.lck");
    let locked = pacman.calls("pkg_install", json!({"package": "lab-dep"})).await;
    assert_eq!(locked["error_code"], "RESOURCE_LOCKED", "{locked}");
    pacman.machine.sh("rm /var/lib/pacman/db.lck");
}
