//! Tests on a real host how packages are held, verified, looked up, cleaned and repaired. dpkg, apt-mark and rpm say whether
//! the answers are true.

use linux_sysadmin_tests::way;
use serde_json::{Value, json};

use super::packages::Packages;

fn is_debian() -> bool {
    way().host().starts_with("debian")
}

/// The names of the held packages by the family's own program.
fn held(packages: &Packages) -> String {
    let command = match is_debian() {
        true => "apt-mark showhold",
        false => "sed -n 's/^\\(lab-[a-z]*\\)-.*/\\1/p' /etc/dnf/plugins/versionlock.list",
    };
    packages.machine.sh(command).trim().to_owned()
}

/// The paths of a list in the answer.
fn paths(list: &Value) -> Vec<&str> {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item["path"].as_str()).collect()
}

#[tokio::test]
async fn a_held_package_stays_through_an_update_of_all() {
    let Some(packages) = Packages::new("a_held_package_stays_through_an_update_of_all") else { return };
    let mut client = packages.serve().await;
    let hello = json!({"package": "lab-hello"});
    packages.does(&mut client, "pkg_install", &hello, "").await;
    packages
        .does(&mut client, "pkg_rollback", &json!({"package": "lab-hello", "version": "1.0"}), "high")
        .await;
    let shown = packages.shows(&mut client, "pkg_hold", &hello).await;
    assert_eq!(shown, json!({"would_hold": ["lab-hello"]}));
    let done = packages.does(&mut client, "pkg_hold", &hello, "").await;
    assert_eq!(done["held"][0]["name"], "lab-hello", "{done}");
    assert_eq!(held(&packages), "lab-hello");
    let info = client.envelope("pkg_info", json!({"package": "lab-hello"})).await;
    assert_eq!(info["data"]["held"], true, "{info}");
    let again = packages.does(&mut client, "pkg_hold", &hello, "").await;
    assert_eq!(again, json!({}));
    packages.does(&mut client, "pkg_update", &json!({}), "").await;
    assert_eq!(packages.version("lab-hello"), "1.0");
    packages.does(&mut client, "pkg_unhold", &hello, "").await;
    assert_eq!(held(&packages), "");
    packages.does(&mut client, "pkg_update", &hello, "").await;
    assert_eq!(packages.version("lab-hello"), "2.0");
    let none = client.envelope("pkg_hold", json!({"package": "lab-none"})).await;
    assert_eq!(none["error_code"], "PACKAGE_NOT_INSTALLED", "{none}");
}

#[tokio::test]
async fn damage_is_what_the_package_database_says() {
    let Some(packages) = Packages::new("damage_is_what_the_package_database_says") else { return };
    let mut client = packages.serve().await;
    packages.does(&mut client, "pkg_install", &json!({"package": ["lab-hello", "lab-conf"]}), "").await;
    let both = json!({"package": ["lab-hello", "lab-conf"]});
    let sound = client.envelope("pkg_verify", both.clone()).await;
    assert_eq!(sound["data"], json!({"damaged_count": 0, "config_changed_count": 0}), "{sound}");
    packages.machine.sh("echo x >> /etc/lab-conf.conf; rm /usr/bin/lab-conf; echo y >> /usr/bin/lab-hello");
    let found = client.envelope("pkg_verify", both).await;
    let data = &found["data"];
    let verify = if is_debian() { "dpkg --verify" } else { "rpm --verify" };
    let mut damaged = paths(&data["damaged"]);
    damaged.sort_unstable();
    let told = packages
        .machine
        .sh(&format!("{verify} lab-conf lab-hello | grep -v ' c /' | sed 's,[^/]*,,' | sort"));
    assert_eq!(damaged, told.lines().collect::<Vec<_>>(), "{found}");
    assert_eq!(damaged, ["/usr/bin/lab-conf", "/usr/bin/lab-hello"], "{found}");
    assert_eq!(paths(&data["config_changed"]), ["/etc/lab-conf.conf"], "{found}");
    assert_eq!(data["config_changed"][0]["package"], "lab-conf", "{found}");
}

#[tokio::test]
async fn a_file_belongs_to_the_package_that_the_database_names() {
    let test = "a_file_belongs_to_the_package_that_the_database_names";
    let Some(packages) = Packages::new(test) else { return };
    let mut client = packages.serve().await;
    packages.does(&mut client, "pkg_install", &json!({"package": "lab-hello"}), "").await;
    packages.machine.sh("touch /run/lsa-made; ln -sf /usr/bin/lab-hello /run/lsa-link");
    let files = json!({"files": ["lab-hello", "/bin/sh", "/bin/lab-hello", "/run/lsa-link", "/run/lsa-made", "/nonexistent"]});
    let found = client.envelope("pkg_owner", files).await;
    let data = &found["data"];
    let sh = match is_debian() {
        true => "dpkg --search /bin/sh | sed -n 's/^\\([a-z0-9-]*\\): .*/\\1/p'",
        false => "rpm --query --queryformat '%{NAME}' --file /bin/sh",
    };
    for (at, package) in
        [(0, "lab-hello"), (1, packages.machine.sh(sh).trim()), (2, "lab-hello"), (3, "lab-hello")]
    {
        assert_eq!(data[at]["packages"], json!([package]), "{found}");
    }
    assert_eq!(data[3]["file"], "/usr/bin/lab-hello", "{found}");
    for at in [4, 5] {
        assert_eq!(data[at].get("packages"), None, "{found}");
    }
    for file in ["-x", "../etc/passwd", "etc/passwd", "", "a\nb"] {
        let refused = client.envelope("pkg_owner", json!({"files": file})).await;
        assert_eq!(refused["error_code"], "INVALID_PATH", "{file}: {refused}");
    }
}

#[tokio::test]
async fn what_no_package_needs_is_removed_and_nothing_else() {
    let Some(packages) = Packages::new("what_no_package_needs_is_removed_and_nothing_else") else { return };
    let mut client = packages.serve().await;
    packages.does(&mut client, "pkg_install", &json!({"package": "lab-dep"}), "").await;
    // dnf removes what no package needs along with the package, unless it is told not to.
    packages.machine.sh(
        "if command -v apt-get; then apt-get -qq -y remove lab-dep; apt-mark auto lab-hello; \
         else dnf -q -y --setopt=clean_requirements_on_remove=False remove lab-dep; dnf -q -y mark remove lab-hello || :; fi",
    );
    let shown = packages.shows(&mut client, "pkg_autoremove", &json!({})).await;
    assert_eq!(shown["would_remove"][0]["name"], "lab-hello", "{shown}");
    packages.does(&mut client, "pkg_autoremove", &json!({}), "high").await;
    assert_eq!(packages.version("lab-hello"), "");
    let again = client.envelope("pkg_autoremove", json!({})).await;
    assert_eq!((&again["status"], &again["data"]), (&json!("success"), &json!({})), "{again}");
}

#[tokio::test]
async fn downloads_are_removed_and_counted() {
    let Some(packages) = Packages::new("downloads_are_removed_and_counted") else { return };
    let mut client = packages.serve().await;
    let file = match is_debian() {
        true => "/var/cache/apt/archives/lsa-x_1_all.deb",
        false => "/var/cache/dnf/lab-66959f9b15991c45/packages/lsa-x.rpm",
    };
    packages.machine.sh(&format!("mkdir -p $(dirname {file}); head -c 100000 /dev/zero > {file}"));
    packages.shows(&mut client, "pkg_clean", &json!({})).await;
    assert!(packages.machine.has(file));
    let done = packages.does(&mut client, "pkg_clean", &json!({}), "").await;
    assert!(done["freed_bytes"].as_u64().is_some_and(|freed| freed >= 100_000), "{done}");
    assert!(!packages.machine.has(file));
}

#[tokio::test]
async fn a_whole_database_needs_no_repair() {
    let Some(packages) = Packages::new("a_whole_database_needs_no_repair") else { return };
    let mut client = packages.serve().await;
    let done = packages.does(&mut client, "pkg_repair", &json!({}), "").await;
    assert_eq!(done, json!({"nothing_to_repair": true}));
}
