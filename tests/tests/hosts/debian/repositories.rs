//! Repositories on a real host with apt: what the tools say is held against apt's own answers, and a repository that isn't
//! signed by its key leaves nothing.

use linux_sysadmin_tests::{Changing, Client, way};
use serde_json::{Value, json};

const KEY: &str = include_str!("../../../../sdk/src/packages/repositories/keys/good.asc");
const FINGERPRINT: &str = "4BEBBC1013BA745C96D1136A809E4947E4034791";
const PACKAGES: &[u8] = include_bytes!("../../../data/repository/Packages");
/// The index, signed by the key above and by another one.
const SIGNED: &[u8] = include_bytes!("../../../data/repository/good.InRelease");
const SIGNED_BY_OTHER: &[u8] = include_bytes!("../../../data/repository/other.InRelease");

const CLEAN: &str = r"
systemctl stop lsa-http.service
rm -rf /run/lsa-* /etc/apt/sources.list.d/lsa-* /etc/apt/keyrings/lsa-* /etc/apt/preferences.d/lsa-*
apt-get -qq update
";

/// Prints each index of packages as apt knows it.
const TARGETS: &str = "apt-get indextargets --format '$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(SOURCESENTRY)' 'Created-By: Packages' | sed 's,$([A-Z_]*),,g'";
const FILES: &str = "ls /etc/apt/sources.list.d /etc/apt/keyrings /etc/apt/preferences.d";

struct Apt(Changing);

impl Apt {
    fn new(test: &str) -> Option<Self> {
        let apt = Changing::by(way(), test, "", CLEAN).map(Self)?;
        for (name, index) in [("good", SIGNED), ("other", SIGNED_BY_OTHER)] {
            apt.0.sh(&format!("mkdir -p /run/lsa-repository/{name}/dists/stable/main/binary-amd64"));
            apt.0.host().put(&format!("/run/lsa-repository/{name}/dists/stable/InRelease"), index);
            apt.0.host().put(
                &format!("/run/lsa-repository/{name}/dists/stable/main/binary-amd64/Packages"),
                PACKAGES,
            );
        }
        apt.0.sh("cp -r /opt/aptrepo /run/lsa-repository/unsigned; chmod -R a+rX /run/lsa-repository");
        apt.0.sh("systemd-run --quiet --unit=lsa-http python3 -m http.server --directory /run/lsa-repository --bind 127.0.0.1 8098");
        apt.0
            .until("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8098))' 2>/dev/null");
        Some(apt)
    }

    async fn serve(&self) -> Client {
        self.0.configure("root", "safety:\n  confirmation: two-step\n");
        self.0.serve_shipped("root", "root").await
    }

    /// Makes a change, which must ask first; gives the envelope.
    async fn confirmed(&self, client: &mut Client, tool: &str, arguments: &Value, risk: &str) -> Value {
        let asked = client.envelope(tool, arguments.clone()).await;
        assert_eq!(
            (&asked["status"], &asked["risk_level"]),
            (&json!("confirmation_required"), &json!(risk)),
            "{asked}"
        );
        let mut arguments = arguments.clone();
        arguments["confirmed"] = json!(true);
        client.envelope(tool, arguments).await
    }
}

fn new_repository(id: &str, url: &str) -> Value {
    json!({"id": id, "url": url, "suites": ["stable"], "components": ["main"], "key": KEY, "fingerprint": FINGERPRINT})
}

#[tokio::test]
async fn a_signed_repository_is_added_listed_as_apt_has_it_disabled_and_removed() {
    let Some(apt) = Apt::new("a_signed_repository_is_added_listed_as_apt_has_it_disabled_and_removed") else {
        return;
    };
    let mut client = apt.serve().await;
    let files = apt.0.sh(FILES);
    let mut new = new_repository("lsa-new", "http://127.0.0.1:8098/good");
    new["priority"] = json!(400);
    let done = apt.confirmed(&mut client, "repo_add", &new, "critical").await;
    let expected = json!({"added": "lsa-new", "file": "/etc/apt/sources.list.d/lsa-new.sources", "key_file": "/etc/apt/keyrings/lsa-new.asc"});
    assert_eq!(done["data"], expected, "{done}");

    let listed = client.envelope("repo_list", json!({})).await;
    let items = listed["data"].as_array().unwrap_or_else(|| panic!("{listed}"));
    let target = |item: &Value| {
        let first = |member: &str| item[member][0].as_str().unwrap_or_default().to_owned();
        let (url, suite, component) = (first("urls"), first("suites"), first("components"));
        format!("{url}/|{suite}|{component}|{}", item["at"].as_str().unwrap_or_default())
    };
    let mut told: Vec<_> = items.iter().map(target).collect();
    let said = apt.0.sh(TARGETS);
    let mut said: Vec<_> = said.trim().lines().map(str::to_owned).collect();
    told.sort();
    said.sort();
    assert_eq!(told, said);
    let item = items.iter().find(|item| item["id"] == "lsa-new").unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(item["signed_by"]["fingerprints"], json!([FINGERPRINT]));
    assert_eq!(item["signed_by"]["files"], json!(["/etc/apt/keyrings/lsa-new.asc"]));
    assert_eq!(item["warnings"], json!(["reached without TLS"]));
    let priority =
        apt.0.sh("apt-cache policy | sed -n 's,^ *\\([0-9]*\\) http://127.0.0.1:8098/good .*,\\1,p'");
    assert_eq!(item["priority"].to_string(), priority.trim());

    let again = client.envelope("repo_add", new_repository("lsa-again", "http://127.0.0.1:8098/good/")).await;
    assert_eq!(again["error_code"], "REPOSITORY_EXISTS", "{again}");
    let disabled =
        apt.confirmed(&mut client, "repo_remove", &json!({"id": "lsa-new", "enabled": false}), "high").await;
    assert_eq!(disabled["data"]["disabled"], "lsa-new", "{disabled}");
    assert!(!apt.0.sh(TARGETS).contains("lsa-new"));
    let removed = apt.confirmed(&mut client, "repo_remove", &json!({"id": "lsa-new"}), "high").await;
    assert_eq!(removed["data"]["removed"], "lsa-new", "{removed}");
    assert_eq!(apt.0.sh(FILES), files);
    apt.0.audit_is_valid("root", "root");
}

#[tokio::test]
async fn a_repository_that_its_key_did_not_sign_or_that_isnt_there_leaves_nothing() {
    let Some(apt) = Apt::new("a_repository_that_its_key_did_not_sign_or_that_isnt_there_leaves_nothing")
    else {
        return;
    };
    let mut client = apt.serve().await;
    let (files, targets) = (apt.0.sh(FILES), apt.0.sh(TARGETS));
    let mut flat = new_repository("lsa-flat", "http://127.0.0.1:8098/unsigned");
    (flat["suites"], flat["components"]) = (json!(["./"]), json!([]));
    for (new, code, said) in [
        (
            new_repository("lsa-other", "http://127.0.0.1:8098/other"),
            "REPOSITORY_UNTRUSTED",
            "NO_PUBKEY CFA937B303FB7B7E",
        ),
        (flat, "REPOSITORY_UNTRUSTED", "is not signed"),
        (new_repository("lsa-none", "http://127.0.0.1:8098/none"), "REPOSITORY_UNREACHABLE", "Release file"),
        (new_repository("lsa-dead", "http://127.0.0.1:9/x"), "REPOSITORY_UNREACHABLE", "127.0.0.1:9"),
    ] {
        let failed = apt.confirmed(&mut client, "repo_add", &new, "critical").await;
        assert_eq!(failed["error_code"], code, "{failed}");
        assert!(failed["message"].as_str().is_some_and(|message| message.contains(said)), "{failed}");
        assert_eq!((apt.0.sh(FILES), apt.0.sh(TARGETS)), (files.clone(), targets.clone()), "{new}");
    }
    let mut other = new_repository("lsa-wrong", "http://127.0.0.1:8098/good");
    other["fingerprint"] = json!("8D4EA5CB47985EE943AFE069CFA937B303FB7B7E");
    let refused = client.envelope("repo_add", other).await;
    assert_eq!(refused["error_code"], "REPOSITORY_UNTRUSTED", "{refused}");
    assert_eq!(apt.0.sh(FILES), files);
    // The same repository by its own key is fine.
    let done = apt
        .confirmed(
            &mut client,
            "repo_add",
            &new_repository("lsa-good", "file:///run/lsa-repository/good"),
            "critical",
        )
        .await;
    assert_eq!(done["data"]["added"], "lsa-good", "{done}");
    let listed = client.envelope("repo_list", json!({"filter": "lsa-good"})).await;
    assert_eq!((&listed["returned"], listed["data"][0].get("warnings")), (&json!(1), None), "{listed}");
}
