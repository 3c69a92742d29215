//! Tests on a real host with a repository of its own what the package tools show, do and refuse. The package database
//! itself says what they have done.

use linux_sysadmin_tests::{Changing, Client, way};
use serde_json::{Value, json};

/// The commands that ask a family's package database.
struct Family {
    /// A command that prints a package's version, or nothing.
    version: &'static str,
    /// A command that prints a line for each package.
    all: &'static str,
}

const DEBIAN: Family = Family {
    version: "dpkg-query --show --showformat='${db:Status-Abbrev}${Version}' NAME 2>/dev/null | sed -n 's/^.i *//p'",
    all: "dpkg-query --show --showformat='${Package} ${Version} ${Status}\n'",
};
const RHEL: Family = Family {
    version: "rpm --query --queryformat '%{VERSION}' NAME 2>/dev/null | grep -v 'not installed' || :",
    all: "rpm --query --all --queryformat '%{NAME} %{VERSION}-%{RELEASE}\n' | sort",
};

pub(crate) const CLEAN: &str = r"
while mountpoint --quiet /var/lib/dpkg/info; do umount --lazy /var/lib/dpkg/info; done
while mountpoint --quiet /run/lsa-full; do umount --lazy /run/lsa-full; done
rm -rf /run/lsa-* /etc/apt/sources.list.d/lsa-* /etc/yum.repos.d/lsa-*
labs='lab-hello lab-dep lab-conf lab-clash lab-broken lab-missing lab-slow lab-service lab-gone'
if command -v apt-get; then
    apt-mark unhold lab-hello
    dpkg --configure -a
    dpkg --purge --force-all $labs
    apt-get -qq update
else
    rpm --erase --nodeps $labs
    for lab in $labs; do rpm --erase --nodeps $lab; done
    if test -e /etc/dnf/plugins/versionlock.list; then : > /etc/dnf/plugins/versionlock.list; fi
    dnf -q makecache
fi
rm -f /etc/lab-conf.conf*
";

/// A host on which packages are tried.
pub(crate) struct Packages {
    pub(crate) machine: Changing,
    family: Family,
}

impl Packages {
    pub(crate) fn new(test: &str) -> Option<Self> {
        let family = if way().host().starts_with("debian") { DEBIAN } else { RHEL };
        Some(Self { machine: Changing::by(way(), test, "", CLEAN)?, family })
    }

    /// Starts a server that asks in two steps.
    pub(crate) async fn serve(&self) -> Client {
        self.machine.configure("root", "safety:\n  confirmation: two-step\n");
        self.machine.serve_shipped("root", "root").await
    }

    /// The version in the package database. It is empty where the package isn't installed.
    pub(crate) fn version(&self, name: &str) -> String {
        self.machine.sh(&self.family.version.replace("NAME", name)).trim().to_owned()
    }

    fn all(&self) -> String {
        self.machine.sh(self.family.all)
    }

    /// Makes a dry run, which must leave the package database and everything else as they are; gives its data.
    pub(crate) async fn shows(&self, client: &mut Client, tool: &str, arguments: &Value) -> Value {
        let mut arguments = arguments.clone();
        arguments["dry_run"] = json!(true);
        let (before, packages) = (self.machine.snapshot(), self.all());
        let envelope = client.envelope(tool, arguments).await;
        assert_eq!(self.all(), packages, "a dry run of {tool}");
        self.machine.is_still(&before, &format!("a dry run of {tool}"));
        assert_eq!(
            (&envelope["status"], &envelope["dry_run"]),
            (&json!("success"), &json!(true)),
            "{envelope}"
        );
        envelope["data"].clone()
    }

    /// Makes a change, and confirms it where its risk makes it ask; gives the answer's data.
    pub(crate) async fn does(&self, client: &mut Client, tool: &str, arguments: &Value, risk: &str) -> Value {
        let mut envelope = client.envelope(tool, arguments.clone()).await;
        if !risk.is_empty() {
            assert_eq!(envelope["status"], "confirmation_required", "{envelope}");
            assert_eq!(envelope["risk_level"], risk, "{envelope}");
            let mut confirmed = arguments.clone();
            confirmed["confirmed"] = json!(true);
            envelope = client.envelope(tool, confirmed).await;
        }
        assert_eq!(envelope["status"], "success", "{tool} {arguments}: {envelope}");
        self.machine.nothing_is_left_behind();
        envelope["data"].clone()
    }
}

/// The name and version of each item.
fn versions(list: &Value) -> Vec<(String, String)> {
    let text = |item: &Value, member: &str| item[member].as_str().unwrap_or_default().to_owned();
    let bare = |version: String| version.split('-').next().unwrap_or_default().to_owned();
    let items = list.as_array().unwrap_or_else(|| panic!("a list: {list}"));
    let mut versions: Vec<_> =
        items.iter().map(|item| (text(item, "name"), bare(text(item, "version")))).collect();
    versions.sort();
    versions
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned())).collect()
}

#[tokio::test]
async fn packages_are_found_installed_updated_taken_back_and_removed_as_the_database_says() {
    let test = "packages_are_found_installed_updated_taken_back_and_removed_as_the_database_says";
    let Some(packages) = Packages::new(test) else { return };
    let mut client = packages.serve().await;
    let hello = json!({"package": "lab-hello"});

    let found = client.envelope("pkg_search", json!({"query": "lab hello"})).await;
    assert_eq!(found["data"][0]["name"], "lab-hello", "{found}");
    assert_eq!(found["data"][0].get("installed"), None, "{found}");
    let info = client.envelope("pkg_info", hello.clone()).await;
    let offered = info["data"]["versions"].as_array().unwrap_or_else(|| panic!("versions: {info}"));
    let offered: Vec<_> = offered.iter().map(|found| found["version"].as_str().unwrap_or_default()).collect();
    assert!(offered[0].starts_with("2.0") && offered[1].starts_with("1.0"), "{info}");
    assert_eq!(info["data"].get("installed"), None, "{info}");

    // The packages that it needs are shown, and installed as well.
    let install = json!({"package": ["lab-dep"]});
    let shown = packages.shows(&mut client, "pkg_install", &install).await;
    let both = pairs(&[("lab-dep", "1.0"), ("lab-hello", "2.0")]);
    assert_eq!(versions(&shown["would_install"]), both, "{shown}");
    assert_eq!(shown["dependency_count"], 1, "{shown}");
    let done = packages.does(&mut client, "pkg_install", &install, "").await;
    assert_eq!(versions(&done["installed"]), both, "{done}");
    assert_eq!((packages.version("lab-dep"), packages.version("lab-hello")), ("1.0".into(), "2.0".into()));
    let again = client.envelope("pkg_install", install).await;
    assert_eq!((&again["status"], &again["data"]), (&json!("success"), &json!({})), "{again}");
    assert!(again["notes"].to_string().contains("lab-dep 1.0"), "{again}");

    // The version goes back, forward, and back by the history.
    let back = json!({"package": "lab-hello", "version": "1.0"});
    let shown = packages.shows(&mut client, "pkg_rollback", &back).await;
    assert_eq!(versions(&shown["would_downgrade"]), pairs(&[("lab-hello", "1.0")]), "{shown}");
    let done = packages.does(&mut client, "pkg_rollback", &back, "high").await;
    assert_eq!(versions(&done["downgraded"]), pairs(&[("lab-hello", "1.0")]), "{done}");
    assert_eq!(packages.version("lab-hello"), "1.0");
    let updates = client.envelope("pkg_check_updates", json!({"filter": "lab-hello"})).await;
    assert_eq!(updates["total"], 1, "{updates}");
    assert!(
        updates["data"][0]["candidate"].as_str().is_some_and(|version| version.starts_with("2.0")),
        "{updates}"
    );
    let update = json!({"package": "lab-hello"});
    let shown = packages.shows(&mut client, "pkg_update", &update).await;
    assert_eq!(versions(&shown["would_upgrade"]), pairs(&[("lab-hello", "2.0")]), "{shown}");
    packages.does(&mut client, "pkg_update", &update, "").await;
    assert_eq!(packages.version("lab-hello"), "2.0");
    let gone = client.envelope("pkg_rollback", json!({"package": "lab-hello", "version": "0.1"})).await;
    assert_eq!(gone["error_code"], "VERSION_NOT_AVAILABLE", "{gone}");
    assert!(gone["message"].as_str().is_some_and(|said| said.contains("1.0")), "{gone}");
    packages.does(&mut client, "pkg_rollback", &hello, "high").await;
    assert_eq!(packages.version("lab-hello"), "1.0");

    // The history has all of that, the latest first.
    let history = client.envelope("pkg_history", hello.clone()).await;
    let verbs: Vec<_> = history["data"]
        .as_array()
        .unwrap_or_else(|| panic!("a list: {history}"))
        .iter()
        .filter_map(|past| past["operations"][0].as_str()?.split(' ').next())
        .take(4)
        .collect();
    assert_eq!(verbs, ["downgrade", "upgrade", "downgrade", "install"], "{history}");
    let listed = client.envelope("pkg_list_installed", json!({"filter": "lab-hello"})).await;
    assert_eq!(listed["total"], 1, "{listed}");
    assert_eq!(versions(&listed["data"]), pairs(&[("lab-hello", "1.0")]), "{listed}");

    // Packages that need it are removed with it.
    let shown = packages.shows(&mut client, "pkg_remove", &hello).await;
    let both = pairs(&[("lab-dep", "1.0"), ("lab-hello", "1.0")]);
    assert_eq!(versions(&shown["would_remove"]), both, "{shown}");
    let done = packages.does(&mut client, "pkg_remove", &hello, "high").await;
    assert_eq!(versions(&done["removed"]), both, "{done}");
    assert_eq!((packages.version("lab-dep"), packages.version("lab-hello")), (String::new(), String::new()));
    // This is the spelling of older clients.
    let again = client.envelope("pkg_remove", json!({"package": ["lab-hello"]})).await;
    assert_eq!(again["status"], "success", "{again}");
    assert!(again["notes"].to_string().contains("lab-hello is not installed"), "{again}");
}

#[tokio::test]
async fn a_removal_leaves_changed_configuration_and_a_purge_does_not() {
    let test = "a_removal_leaves_changed_configuration_and_a_purge_does_not";
    let Some(packages) = Packages::new(test) else { return };
    let mut client = packages.serve().await;
    let (install, conf) = (json!({"package": "lab-conf"}), json!({"package": "lab-conf"}));
    packages.does(&mut client, "pkg_install", &install, "").await;
    packages.machine.sh("echo mine >> /etc/lab-conf.conf");
    packages
        .does(&mut client, "pkg_rollback", &json!({"package": "lab-conf", "version": "1.0"}), "high")
        .await;
    let done = packages.does(&mut client, "pkg_update", &json!({"package": "lab-conf"}), "").await;
    assert!(packages.machine.read("/etc/lab-conf.conf").contains("mine"));
    assert!(done["kept_config_files"].to_string().contains("/etc/lab-conf.conf"), "{done}");
    packages.does(&mut client, "pkg_remove", &conf, "high").await;
    assert_eq!(packages.version("lab-conf"), "");
    assert!(packages.machine.sh("cat /etc/lab-conf.conf*").contains("mine"));

    packages.does(&mut client, "pkg_install", &install, "").await;
    packages.shows(&mut client, "pkg_purge", &conf).await;
    packages.does(&mut client, "pkg_purge", &conf, "critical").await;
    assert_eq!(packages.version("lab-conf"), "");
    assert!(!packages.machine.has("/etc/lab-conf.conf"));
}

#[tokio::test]
async fn what_stands_in_the_way_and_what_cannot_be_done_without_is_asked_about() {
    let test = "what_stands_in_the_way_and_what_cannot_be_done_without_is_asked_about";
    let Some(packages) = Packages::new(test) else { return };
    let mut client = packages.serve().await;
    let unmet = client.envelope("pkg_install", json!({"package": "lab-missing"})).await;
    assert_eq!(unmet["error_code"], "DEPENDENCY_CONFLICT", "{unmet}");
    assert_eq!(unmet["error_category"], "dependency", "{unmet}");
    assert!(unmet["message"].as_str().is_some_and(|said| said.contains("lab-nowhere")), "{unmet}");
    let none = client.envelope("pkg_install", json!({"package": "lab-helo"})).await;
    assert_eq!(
        (&none["error_code"], &none["error_category"]),
        (&json!("PACKAGE_NOT_FOUND"), &json!("not_found"))
    );
    assert!(none["message"].as_str().is_some_and(|said| said.contains("lab-hello")), "{none}");
    let broken = client.envelope("pkg_install", json!({"package": "lab-broken"})).await;
    assert_eq!(broken["error_code"], "PACKAGE_SCRIPT_FAILED", "{broken}");
    assert!(broken["message"].as_str().is_some_and(|said| said.contains("lab-broken")), "{broken}");
}

/// Texts that a package manager would take for something other than a name are refused before it runs.
#[tokio::test]
async fn what_is_no_name_is_refused_and_nothing_runs() {
    let test = "what_is_no_name_is_refused_and_nothing_runs";
    let Some(packages) = Packages::new(test) else { return };
    let mut client = packages.serve().await;
    let before = packages.all();
    let many: Vec<_> = (0..5000).map(|n| format!("p{n}")).collect();
    for (names, expected) in [
        (json!("lab-hello-"), "INVALID_PACKAGE_NAME"),
        (json!("lab-hello+"), "INVALID_PACKAGE_NAME"),
        (json!("lab-hello=1.0"), "INVALID_PACKAGE_NAME"),
        (json!("lab-hello/sid"), "INVALID_PACKAGE_NAME"),
        (json!("*"), "INVALID_PACKAGE_NAME"),
        (json!("lab-*"), "INVALID_PACKAGE_NAME"),
        (json!("./x.deb"), "INVALID_PACKAGE_NAME"),
        (json!("/tmp/x.rpm"), "INVALID_PACKAGE_NAME"),
        (json!("-oAPT::Update::Pre-Invoke::=touch /run/lsa-owned"), "INVALID_PACKAGE_NAME"),
        (json!("@core"), "INVALID_PACKAGE_NAME"),
        (json!("lab-hello; touch /run/lsa-owned"), "INVALID_PACKAGE_NAME"),
        (json!([]), "NO_PACKAGE"),
        (json!(many), "TOO_MANY_PACKAGES"),
        // These mean something to the other family: a regular expression to apt, a version to dnf.
        (json!("lab-hell."), "INVALID_PACKAGE_NAME"),
        (json!("lab.hello"), "PACKAGE_NOT_FOUND"),
        (json!("lab-hello-1.0"), "PACKAGE_NOT_FOUND"),
        (json!(["lab-hello", "kernel-core-of-nobody"]), "PACKAGE_NOT_FOUND"),
    ] {
        for (tool, member) in
            [("pkg_install", "package"), ("pkg_remove", "package"), ("pkg_purge", "package")]
        {
            let envelope = client.envelope(tool, json!({member: names})).await;
            assert_eq!(envelope["error_code"], expected, "{tool} {names}: {envelope}");
        }
    }
    assert_eq!(packages.all(), before);
    assert!(!packages.machine.has("/run/lsa-owned"));
}
