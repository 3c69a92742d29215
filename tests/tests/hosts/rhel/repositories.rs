//! Repositories on a real host with dnf: what the tools say is held against dnf's and gpg's own answers, and a repository that
//! isn't signed by its key leaves nothing.

use linux_sysadmin_tests::{Changing, Client, way};
use serde_json::{Value, json};

const CLEAN: &str = r"
rm -rf /run/lsa-* /etc/yum.repos.d/lsa-* /etc/pki/rpm-gpg/RPM-GPG-KEY-lsa-* /var/cache/dnf/lsa-*
rmdir /etc/pki/rpm-gpg /etc/pki
dnf --quiet --refresh makecache
";

/// Makes two keys, a repository signed by each, and one that isn't signed.
const REPOSITORIES: &str = r#"
set -e
export GNUPGHOME=/run/lsa-keys
mkdir -p -m 700 $GNUPGHOME
for name in good other; do
    gpg --batch --quiet --passphrase '' --quick-generate-key "$name <$name@lab.example>" ed25519 sign 2y 2>/dev/null
    gpg --armor --export $name@lab.example > /run/lsa-$name.asc
done
for name in good other unsigned; do
    mkdir -p /run/lsa-repository/$name
    cp /opt/labrepo/lab-hello-*.rpm /run/lsa-repository/$name
    createrepo_c --quiet /run/lsa-repository/$name
done
for name in good other; do
    repomd=/run/lsa-repository/$name/repodata/repomd.xml
    gpg --batch --quiet --pinentry-mode loopback --passphrase '' --local-user $name@lab.example --armor --detach-sign $repomd
done
gpgconf --kill all
"#;

const FILES: &str = "ls /etc/yum.repos.d; ls /etc/pki/rpm-gpg 2>/dev/null || :";

struct Dnf(Changing);

impl Dnf {
    fn new(test: &str) -> Option<Self> {
        let dnf = Changing::by(way(), test, "", CLEAN).map(Self)?;
        dnf.0.sh(REPOSITORIES);
        Some(dnf)
    }

    async fn serve(&self) -> Client {
        self.0.configure("root", "safety:\n  confirmation: two-step\n");
        self.0.serve_shipped("root", "root").await
    }

    /// The fingerprint of the key, as gpg says it.
    fn fingerprint(&self, name: &str) -> String {
        let said = self.0.sh(&format!(
            "gpg --with-colons --show-keys /run/lsa-{name}.asc | sed -n 's/^fpr:*\\([0-9A-F]*\\):$/\\1/p'"
        ));
        said.lines().next().expect("a fingerprint").to_owned()
    }

    fn new_repository(&self, id: &str, url: &str) -> Value {
        let key = self.0.sh("cat /run/lsa-good.asc");
        json!({"id": id, "url": url, "key": key, "fingerprint": self.fingerprint("good")})
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

#[tokio::test]
async fn a_signed_repository_is_added_listed_as_dnf_has_it_disabled_and_removed() {
    let Some(dnf) = Dnf::new("a_signed_repository_is_added_listed_as_dnf_has_it_disabled_and_removed") else {
        return;
    };
    let mut client = dnf.serve().await;
    let repositories = dnf.0.sh("ls /etc/yum.repos.d");
    let new = dnf.new_repository("lsa-new", "file:///run/lsa-repository/good");
    let done = dnf.confirmed(&mut client, "repo_add", &new, "critical").await;
    let key_file = "/etc/pki/rpm-gpg/RPM-GPG-KEY-lsa-new";
    assert_eq!(
        done["data"],
        json!({"added": "lsa-new", "file": "/etc/yum.repos.d/lsa-new.repo", "key_file": key_file}),
        "{done}"
    );

    let listed = client.envelope("repo_list", json!({})).await;
    let items = listed["data"].as_array().unwrap_or_else(|| panic!("{listed}"));
    let mut told: Vec<_> = items
        .iter()
        .map(|item| {
            let id = item["id"].as_str().unwrap_or_default();
            let text = |member: &str| item[member].as_str().unwrap_or_default().to_owned();
            let name = if text("name").is_empty() { id.to_owned() } else { text("name") };
            let file = text("at").split(':').next().unwrap_or_default().to_owned();
            format!("{id}|{name}|{}|{file}", item["urls"][0].as_str().unwrap_or_default())
        })
        .collect();
    let said = dnf.0.sh(
        "dnf --verbose repolist 2>/dev/null | awk -F ' *: ' '/^Repo-id/{i=$2} /^Repo-name/{n=$2} /^Repo-baseurl/{u=$2} /^Repo-filename/{print i \"|\" n \"|\" u \"|\" $2}'",
    );
    let mut said: Vec<_> = said.trim().lines().map(str::to_owned).collect();
    told.sort();
    said.sort();
    assert_eq!(told, said);
    let item = items.iter().find(|item| item["id"] == "lsa-new").unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(item["signed_by"], json!({"files": [key_file], "fingerprints": [dnf.fingerprint("good")]}));
    assert_eq!(item.get("warnings"), None, "{item}");
    let primary =
        dnf.0.sh("date --utc --reference=$(ls /var/cache/dnf/lsa-new-*/repodata/*primary.xml*) +%FT%TZ");
    assert_eq!(item["refreshed"], primary.trim());

    let again = client
        .envelope("repo_add", dnf.new_repository("lsa-again", "file:///run/lsa-repository/good/"))
        .await;
    assert_eq!(again["error_code"], "REPOSITORY_EXISTS", "{again}");
    let disabled =
        dnf.confirmed(&mut client, "repo_remove", &json!({"id": "lsa-new", "enabled": false}), "high").await;
    assert_eq!(disabled["data"]["disabled"], "lsa-new", "{disabled}");
    assert!(dnf.0.sh("dnf repolist --disabled").contains("lsa-new"));
    let removed = dnf.confirmed(&mut client, "repo_remove", &json!({"id": "lsa-new"}), "high").await;
    assert_eq!(removed["data"]["files"], json!(["/etc/yum.repos.d/lsa-new.repo", key_file]), "{removed}");
    assert_eq!(dnf.0.sh("ls /etc/yum.repos.d"), repositories);
    // dnf has forgotten the key, so that the same place isn't trusted by another one.
    let mut other = new;
    other["key"] = json!(dnf.0.sh("cat /run/lsa-other.asc"));
    other["fingerprint"] = json!(dnf.fingerprint("other"));
    let failed = dnf.confirmed(&mut client, "repo_add", &other, "critical").await;
    assert_eq!(failed["error_code"], "REPOSITORY_UNTRUSTED", "{failed}");
    assert_eq!(dnf.0.sh("ls /etc/yum.repos.d"), repositories);
    dnf.0.audit_is_valid("root", "root");
}

#[tokio::test]
async fn a_repository_that_its_key_did_not_sign_or_that_isnt_there_leaves_nothing() {
    let Some(dnf) = Dnf::new("a_repository_that_its_key_did_not_sign_or_that_isnt_there_leaves_nothing")
    else {
        return;
    };
    let mut client = dnf.serve().await;
    let files = dnf.0.sh(FILES);
    for (name, code) in [
        ("other", "REPOSITORY_UNTRUSTED"),
        ("unsigned", "REPOSITORY_UNTRUSTED"),
        ("none", "REPOSITORY_UNREACHABLE"),
    ] {
        let new = dnf.new_repository(&format!("lsa-{name}"), &format!("file:///run/lsa-repository/{name}"));
        let failed = dnf.confirmed(&mut client, "repo_add", &new, "critical").await;
        assert_eq!(failed["error_code"], code, "{name}: {failed}");
        assert_eq!(dnf.0.sh(FILES), files, "{name}");
    }
    let mut wrong = dnf.new_repository("lsa-wrong", "file:///run/lsa-repository/good");
    wrong["fingerprint"] = json!(dnf.fingerprint("other"));
    let refused = client.envelope("repo_add", wrong).await;
    assert_eq!(refused["error_code"], "REPOSITORY_UNTRUSTED", "{refused}");
    assert_eq!(dnf.0.sh(FILES), files);
}
