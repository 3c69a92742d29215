//! Tests of what changes a host. Each is run with the server inside the host, and with the server in the lab, which reaches
//! the host over SSH: nothing in the tests knows the difference.
#![expect(clippy::duplicate_mod, reason = "each is meant, with another way to the host")]

/// The server runs on the host.
#[path = "."]
mod inside_debian {
    const REACH: linux_sysadmin_tests::Reach = linux_sysadmin_tests::Reach::Inside("debian1");

    mod changing_cron;
    mod changing_services;
    mod changing_services_refused;
    mod joined;
    mod knowledge;
    mod locks;
    mod logs;
    mod packages;
    mod packages_apt;
    mod packages_outside;
    mod plans;
    mod plans_denied;
    mod plans_files;
    mod plans_interrupted;
    mod plans_undo;
    mod users;
}

/// The same on another distribution: what ships.
#[path = "."]
mod inside_rhel {
    const REACH: linux_sysadmin_tests::Reach = linux_sysadmin_tests::Reach::Inside("rhel1");

    mod changing_cron;
    mod changing_services;
    mod changing_services_refused;
    mod locks;
    mod logs;
    mod packages;
    mod packages_dnf;
    mod users;
}

/// The server runs in the lab, and the host is one that no test above waits for.
#[path = "."]
mod over_ssh_to_debian {
    const REACH: linux_sysadmin_tests::Reach = linux_sysadmin_tests::Reach::OverSsh("debian2");

    mod changing_cron;
    mod changing_services;
    mod changing_services_refused;
    mod joined;
    mod knowledge;
    mod locks;
    mod logs;
    mod packages;
    mod packages_apt;
    mod plans;
    mod plans_files;
    mod plans_interrupted;
    mod plans_undo;
    mod users;
}

/// What ships, on another distribution.
#[path = "."]
mod over_ssh_to_rhel {
    const REACH: linux_sysadmin_tests::Reach = linux_sysadmin_tests::Reach::OverSsh("rhel2");

    mod changing_cron;
    mod changing_services;
    mod changing_services_refused;
    mod locks;
    mod logs;
    mod packages;
    mod packages_dnf;
    mod users;
}
