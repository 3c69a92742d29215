//! The package for Debian and its kin.

use linux_sysadmin_tests::{PackageKind, Reach, is_installed_used_and_removed};

#[tokio::test]
async fn the_package_of_debian_is_installed_used_and_removed() {
    let kind = PackageKind {
        ending: ".deb",
        install: "DEBIAN_FRONTEND=noninteractive dpkg --install",
        remove: "dpkg --remove linux-sysadmin",
    };
    let test = "the_package_of_debian_is_installed_used_and_removed";
    is_installed_used_and_removed(test, Reach::Inside("debian1"), &kind).await;
}
