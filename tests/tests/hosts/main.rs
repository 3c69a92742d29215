//! Stories on one booted host, one in each module. The module around it says on which host the story can be told. For
//! `everywhere`, `debian` and `rhel` the server runs on the host itself or reaches it over SSH, as `way()` says. For `inside`
//! it runs on a Debian host, and for `over_ssh` it reaches one.

mod everywhere {
    mod backups;
    mod changing_cron;
    mod changing_services;
    mod changing_services_refused;
    mod commands;
    mod disks;
    mod everyday;
    mod files;
    mod files_refused;
    mod firewalls;
    mod incidents;
    mod locks;
    mod logical_volumes;
    mod logs;
    mod machine_info;
    mod machine_settings;
    mod mounts;
    mod networks;
    mod package_upkeep;
    pub(crate) mod packages;
    mod process_signals;
    mod processes;
    mod roots_text;
    mod sysctl;
    mod triage;
    mod unit_texts;
    mod users;
    mod weaknesses;
}

mod debian {
    mod fail2ban;
    mod joined;
    mod knowledge;
    mod packages_apt;
    mod plans;
    mod plans_files;
    mod plans_interrupted;
    mod plans_undo;
    mod repositories;
    mod unreachable;
}

mod rhel {
    mod package_rpm;
    mod packages_dnf;
    mod repositories;
}

mod inside {
    mod agreement;
    mod audit_host;
    mod bad_input;
    mod ending;
    mod package_deb;
    mod packages_outside;
    mod plans_denied;
    mod plans_guard;
    mod protocol;
    mod snapshot;
    mod sudoers;
    mod sudoers_changing;
    mod system;
    mod system_mode;
    mod system_mode_at_work;
    mod system_mode_refused;
}

mod over_ssh {
    mod jobs;
    mod ssh_ending;
    mod ssh_forwarding;
    mod ssh_quoting;
}
