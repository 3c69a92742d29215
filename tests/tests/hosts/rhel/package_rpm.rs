//! The package for Fedora, RHEL and theirs.

use linux_sysadmin_tests::{InstalledPackage, PackageKind};

const RPM: PackageKind = PackageKind {
    ending: ".rpm",
    install: "rpm --install",
    remove: "rpm --erase linux-sysadmin",
    host: "rhel1",
};

#[tokio::test]
async fn the_package_of_rpm_is_installed_used_and_removed() {
    let test = "the_package_of_rpm_is_installed_used_and_removed";
    let Some(package) = InstalledPackage::new(test, RPM) else { return };
    package.is_used_and_removed().await;
}
