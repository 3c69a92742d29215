//! The package for Debian and its kin.

use linux_sysadmin_tests::{InstalledPackage, PackageKind};

const DEB: PackageKind = PackageKind {
    ending: ".deb",
    install: "DEBIAN_FRONTEND=noninteractive dpkg --install",
    remove: "dpkg --remove linux-sysadmin",
    host: "debian1",
};

#[tokio::test]
async fn the_package_of_debian_is_installed_used_and_removed() {
    let test = "the_package_of_debian_is_installed_used_and_removed";
    let Some(package) = InstalledPackage::new(test, DEB) else { return };
    package.is_used_and_removed().await;
}

#[test]
fn the_package_of_debian_answers_claude_code_and_the_inspector() {
    let test = "the_package_of_debian_answers_claude_code_and_the_inspector";
    let Some(package) = InstalledPackage::new(test, DEB) else { return };
    package.answers_clients(test);
}
