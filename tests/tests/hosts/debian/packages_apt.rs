//! Faults of apt and dpkg on a real host: the answer names each fault, and the advice in it works.

use std::process::Stdio;

use linux_sysadmin_tests::Client;
use serde_json::{Value, json};

use crate::everywhere::packages::Packages;

/// Installs lab-hello, which must fail with this error; gives the advice.
async fn fails(packages: &Packages, client: &mut Client, code: &str, category: &str) -> Vec<String> {
    let envelope = client.envelope("pkg_install", json!({"package": "lab-hello"})).await;
    assert_eq!(
        (&envelope["error_code"], &envelope["error_category"]),
        (&json!(code), &json!(category)),
        "{envelope}"
    );
    assert_eq!(packages.version("lab-hello"), "", "{envelope}");
    remedies(&envelope)
}

fn remedies(envelope: &Value) -> Vec<String> {
    let steps = envelope["remediation"].as_array().unwrap_or_else(|| panic!("remedies: {envelope}"));
    steps.iter().filter_map(|step| step.as_str().map(str::to_owned)).collect()
}

/// Asserts that the advice names `pkg_repair`, and that the same call works once it has run.
async fn is_mended_by_repair(packages: &Packages, client: &mut Client, told: &[String], risk: &str) {
    assert!(told.iter().any(|step| step.contains("`pkg_repair`")), "{told:?}");
    packages.does(client, "pkg_repair", &json!({}), risk).await;
    works(packages, client).await;
}

async fn works(packages: &Packages, client: &mut Client) {
    packages.does(client, "pkg_install", &json!({"package": "lab-hello"}), "").await;
    assert_eq!(packages.version("lab-hello"), "2.0");
}

#[tokio::test]
async fn a_held_lock_names_its_holder_and_the_call_works_once_it_is_free() {
    let test = "a_held_lock_names_its_holder_and_the_call_works_once_it_is_free";
    let Some(packages) = Packages::new(test) else { return };
    let mut client = packages.serve().await;
    let mut install = packages.machine.host().command(&["apt-get", "-qq", "-y", "install", "lab-slow"]);
    let mut installing = install.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("xtask runs");
    packages.machine.until("pgrep --full --exact 'sleep 8'");
    // Tools that only look still work.
    let info = client.envelope("pkg_info", json!({"package": "lab-hello"})).await;
    assert_eq!(info["status"], "success", "{info}");
    let envelope = client.envelope("pkg_install", json!({"package": "lab-hello"})).await;
    assert_eq!(
        (&envelope["status"], &envelope["error_code"]),
        (&json!("blocked"), &json!("RESOURCE_LOCKED"))
    );
    assert_eq!(envelope["lock_info"]["held_by_process"], "apt-get", "{envelope}");
    assert!(remedies(&envelope).iter().any(|step| step.starts_with("Wait until")), "{envelope}");
    assert!(installing.wait().expect("it ends").success());
    works(&packages, &mut client).await;
}

#[tokio::test]
async fn a_broken_dependency_is_mended_by_what_is_told() {
    let Some(packages) = Packages::new("a_broken_dependency_is_mended_by_what_is_told") else { return };
    let mut client = packages.serve().await;
    packages.machine.sh("dpkg --install /opt/aptrepo/lab-missing_1.0_all.deb >/dev/null 2>&1 || :");
    let told = fails(&packages, &mut client, "DEPENDENCIES_BROKEN", "dependency").await;
    is_mended_by_repair(&packages, &mut client, &told, "high").await;
}

#[tokio::test]
async fn an_interrupted_dpkg_is_mended_by_what_is_told() {
    let Some(packages) = Packages::new("an_interrupted_dpkg_is_mended_by_what_is_told") else { return };
    let mut client = packages.serve().await;
    let mut install = packages.machine.host().command(&["apt-get", "-qq", "-y", "install", "lab-slow"]);
    let mut installing = install.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("xtask runs");
    packages.machine.until("pgrep --full --exact 'sleep 8'");
    packages.machine.sh(
        "pkill --signal KILL --exact apt-get; pkill --signal KILL --exact dpkg; pkill --exact sleep || :",
    );
    assert!(!installing.wait().expect("it ends").success());
    packages.machine.until("! pgrep --exact dpkg");
    let told = fails(&packages, &mut client, "PACKAGES_INTERRUPTED", "state").await;
    is_mended_by_repair(&packages, &mut client, &told, "").await;
}

/// A half-installed package of which no archive is left keeps apt-get from everything.
#[tokio::test]
async fn a_broken_package_that_no_repository_has_goes_by_what_is_told() {
    let test = "a_broken_package_that_no_repository_has_goes_by_what_is_told";
    let Some(packages) = Packages::new(test) else { return };
    let mut client = packages.serve().await;
    packages.machine.sh(
        "mkdir -p /run/lsa-gone/DEBIAN; printf 'Package: lab-gone\nVersion: 1.0\nArchitecture: all\n\
         Maintainer: x <x@x.example>\nDescription: x\n' > /run/lsa-gone/DEBIAN/control; \
         dpkg-deb --build /run/lsa-gone /run/lsa-gone.deb; dpkg --install /run/lsa-gone.deb; \
         rm -r /run/lsa-gone /run/lsa-gone.deb; \
         sed -i '/^Package: lab-gone$/{n;s/.*/Status: install reinstreq half-installed/}' /var/lib/dpkg/status",
    );
    let told = fails(&packages, &mut client, "PACKAGES_INTERRUPTED", "state").await;
    is_mended_by_repair(&packages, &mut client, &told, "high").await;
    assert_eq!(packages.version("lab-gone"), "");
}

#[tokio::test]
async fn a_dead_repository_is_told_by_its_address_and_leaving_it_out_works() {
    let test = "a_dead_repository_is_told_by_its_address_and_leaving_it_out_works";
    let Some(packages) = Packages::new(test) else { return };
    let mut client = packages.serve().await;
    let source = "/etc/apt/sources.list.d/lsa-dead.list";
    packages.machine.host().put(source, b"deb [trusted=yes] http://127.0.0.1:9/debian ./\n");
    let refresh = json!({"refresh_only": true});
    let envelope = client.envelope("pkg_update", refresh.clone()).await;
    assert_eq!(envelope["error_code"], "REPOSITORY_UNREACHABLE", "{envelope}");
    assert_eq!(envelope["error_category"], "network", "{envelope}");
    assert!(envelope["message"].as_str().is_some_and(|said| said.contains("127.0.0.1:9")), "{envelope}");
    assert!(remedies(&envelope).iter().any(|step| step.contains("/etc/apt/sources.list.d")), "{envelope}");
    packages.machine.sh(&format!("rm {source}"));
    let done = packages.does(&mut client, "pkg_update", &refresh, "").await;
    assert_eq!(done["refreshed"], true, "{done}");
    works(&packages, &mut client).await;
}

#[tokio::test]
async fn a_full_file_system_is_told_and_space_is_all_that_it_takes() {
    let Some(packages) = Packages::new("a_full_file_system_is_told_and_space_is_all_that_it_takes") else {
        return;
    };
    let mut client = packages.serve().await;
    // There is no room for what dpkg notes of each package.
    packages.machine.sh("set -e; mkdir /run/lsa-full; mount -t tmpfs -o size=64m tmpfs /run/lsa-full
         cp -a /var/lib/dpkg/info/. /run/lsa-full; mount --bind /run/lsa-full /var/lib/dpkg/info
         cat /dev/zero > /run/lsa-full/lsa-filler 2>/dev/null || :");
    let envelope = client.envelope("pkg_install", json!({"package": "lab-hello"})).await;
    assert_eq!(envelope["error_code"], "OUT_OF_SPACE", "{envelope}");
    assert_eq!(envelope["error_category"], "resource", "{envelope}");
    assert!(remedies(&envelope).iter().any(|step| step.contains("what fills it: disk_usage")), "{envelope}");
    packages.machine.sh("rm /var/lib/dpkg/info/lsa-filler; dpkg --configure -a");
    works(&packages, &mut client).await;
    packages.machine.sh("cp -a /run/lsa-full/lab-hello.* /run/; umount --lazy /var/lib/dpkg/info; mv /run/lab-hello.* /var/lib/dpkg/info/");
}

#[tokio::test]
async fn an_install_that_would_remove_something_asks_and_says_what() {
    let Some(packages) = Packages::new("an_install_that_would_remove_something_asks_and_says_what") else {
        return;
    };
    let mut client = packages.serve().await;
    packages.does(&mut client, "pkg_install", &json!({"package": "lab-dep"}), "").await;
    let clash = json!({"package": "lab-clash"});
    let asked = client.envelope("pkg_install", clash.clone()).await;
    assert_eq!(asked["risk_level"], "high", "{asked}");
    assert!(asked["preview"]["warnings"].to_string().contains("lab-dep, lab-hello"), "{asked}");
    let done = packages.does(&mut client, "pkg_install", &clash, "high").await;
    assert_eq!(done["removed"].as_array().map(Vec::len), Some(2), "{done}");
    assert_eq!(packages.version("lab-hello"), "");
    for (name, said) in
        [("sudo", "rights"), ("bash", "essential"), ("systemd", "init"), ("apt", "package manager")]
    {
        let asked = client.envelope("pkg_remove", json!({"package": name})).await;
        assert_eq!(asked["risk_level"], "critical", "{asked}");
        assert!(asked["preview"]["warnings"].to_string().contains(said), "{asked}");
    }
}

#[tokio::test]
async fn a_script_that_fails_is_told_and_the_repair_goes_on_once_it_is_mended() {
    let test = "a_script_that_fails_is_told_and_the_repair_goes_on_once_it_is_mended";
    let Some(packages) = Packages::new(test) else { return };
    let mut client = packages.serve().await;
    packages.machine.sh("apt-get -qq -y install lab-broken >/dev/null 2>&1 || :");
    let failed = client.envelope("pkg_repair", json!({})).await;
    assert_eq!(failed["error_code"], "PACKAGE_SCRIPT_FAILED", "{failed}");
    for said in ["/var/lib/dpkg/info/lab-broken.postinst", "lab-broken: postinst fails"] {
        assert!(failed["message"].as_str().is_some_and(|message| message.contains(said)), "{failed}");
    }
    packages.machine.sh("printf '#!/bin/sh\\n' > /var/lib/dpkg/info/lab-broken.postinst");
    packages.does(&mut client, "pkg_repair", &json!({}), "").await;
    assert_eq!(packages.machine.sh("dpkg --audit"), "");
    assert_eq!(packages.version("lab-broken"), "1.0");
}
