//! The package for Fedora, RHEL and theirs.

use linux_sysadmin_tests::{PackageKind, Reach, is_installed_used_and_removed};

#[tokio::test]
async fn the_package_of_rpm_is_installed_used_and_removed() {
    let kind = PackageKind { ending: ".rpm", install: "rpm --install", remove: "rpm --erase linux-sysadmin" };
    let test = "the_package_of_rpm_is_installed_used_and_removed";
    is_installed_used_and_removed(test, Reach::Inside("rhel1"), &kind).await;
}
