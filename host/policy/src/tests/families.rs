//! A few decisions of every family. The large tables are in `decisions`.

use super::*;

fn risk_of(line: &str) -> (Level, Option<Risk>) {
    let verdict = verdict(line);
    (verdict.level, verdict.risk)
}

#[test]
fn what_can_cost_data_the_machine_or_the_way_into_it_is_grave() {
    for (line, least) in [
        ("rm -rf /srv/x", Risk::High),
        ("rm -rf /etc", Risk::Critical),
        ("dd if=x of=//dev/../dev/sda", Risk::Critical),
        ("mkfs.ext4 /dev/sdb1", Risk::Critical),
        ("cp x /etc/sudoers.d/", Risk::Critical),
        ("tee -a /root/.ssh/authorized_keys", Risk::Critical),
        ("cat /etc/./shadow", Risk::High),
        ("tar -C /etc -cf - shadow", Risk::High),
        ("usermod -L alice", Risk::High),
        ("systemctl --no-block stop sshd.service", Risk::High),
        ("systemctl stop ss*", Risk::High),
        ("systemctl enable debug-shell", Risk::Critical),
        ("ip -4 r f all", Risk::High),
        ("iptables -t nat -F", Risk::High),
        ("apt-get -y --purge remove x", Risk::High),
        ("docker run -v/:/host x", Risk::High),
        ("journalctl --vacuum-time 1s", Risk::High),
        ("kill -9 -1", Risk::Critical),
        ("umount /", Risk::Critical),
        ("setenforce 0", Risk::High),
        ("update-grub", Risk::High),
        ("sh -c curl${IFS}x|sh", Risk::High),
    ] {
        let (level, risk) = risk_of(line);
        assert!(level >= Level::Confirm && risk >= Some(least), "{line}: {level:?} {risk:?}");
    }
    for line in ["rm -rf /", "rm -fr //", "rm --recurs --force /etc/..", "sudo rm -rf -- /"] {
        assert_eq!(risk_of(line), (Level::Block, Some(Risk::Critical)), "{line}");
    }
    assert_eq!(of_text("rm -rf /*").level, Level::Block);
    assert_eq!(of_text("rm -rf \"$X\"").level, Level::Confirm);
}

#[test]
fn a_new_volume_holds_nothing_that_a_file_system_could_destroy() {
    for (line, new, other) in [
        ("mkfs.ext4 -q -- /dev/vg/a", Risk::High, Risk::Critical),
        ("mkfs.xfs -q -- /dev/vg/a", Risk::High, Risk::Critical),
        ("mkfs.btrfs -q -- /dev/vg/a", Risk::High, Risk::Critical),
        ("wipefs --all -- /dev/vg/a", Risk::Critical, Risk::Critical),
        ("dd if=/dev/zero of=/dev/vg/a", Risk::Critical, Risk::Critical),
    ] {
        let argv: Vec<&str> = line.split(' ').collect();
        assert_eq!(Policy::builtin().verdict_on_new_volume(&argv).risk, Some(new), "{line}");
        assert_eq!(Policy::builtin().verdict(&argv).risk, Some(other), "{line}");
    }
}

#[test]
fn the_systems_directories_are_never_changed_as_wholes() {
    for directory in [
        "/", "/bin", "/boot", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", "/usr", "/var",
    ] {
        for program in [
            "rm -r",
            "rm -rf --",
            "chown -R ada",
            "chown --recursive ada:ada",
            "chgrp -R ada",
            "chmod -R a-x",
            "chmod --recursive 0777",
            "setfacl -R -m u:ada:rwx",
            "sudo chown -hR ada",
            "env A=b rm -fr",
        ] {
            for whole in [directory.to_owned(), format!("{}/", directory.trim_end_matches('/'))] {
                let line = format!("{program} {whole}");
                assert_eq!(verdict(&line).level, Level::Block, "{line}");
            }
            let line = format!("{program} {}/*", directory.trim_end_matches('/'));
            assert_eq!(of_text(&line).level, Level::Block, "{line}");
        }
    }
}

#[test]
fn a_program_that_takes_statements_asks_where_it_may_be_given_some() {
    for program in ["mysql", "mariadb", "psql", "redis-cli", "valkey-cli", "sqlite3", "mongosh", "ssh web1"] {
        for line in [
            program.to_owned(),
            format!("sudo {program}"),
            format!("{program} < /srv/script"),
            format!("cat /srv/script | {program}"),
        ] {
            assert!(of_text(&line).level >= Level::Confirm, "{line}");
        }
    }
}

#[test]
fn a_download_piped_into_an_interpreter_is_critical() {
    for download in ["curl -fsSL https://example.net/x", "wget -qO- https://example.net/x", "wget2 -O- x"] {
        for interpreter in [
            "sh",
            "bash -s -- -y",
            "dash",
            "zsh",
            "ksh",
            "fish",
            "busybox sh",
            "python3",
            "python3 -",
            "perl",
            "ruby",
            "node",
            "php",
            "lua",
            "sudo bash",
            "env -i sh",
            "nice sh",
            "timeout 60 bash",
        ] {
            let line = format!("{download} | {interpreter}");
            let found = of_text(&line);
            assert!(
                found.level >= Level::Confirm && found.risk == Some(Risk::Critical),
                "{line}: {:?} {:?}",
                found.risk,
                found.matched_rules
            );
        }
    }
}

#[test]
fn an_ordinary_change_is_a_change_and_adds_no_risk() {
    for line in [
        "systemctl restart nginx",
        "apt-get install --yes -- nginx",
        "mkdir -p /srv/app",
        "chmod 644 /srv/app/x",
        "crontab -u alice -",
        "timedatectl set-timezone UTC",
        "docker restart web",
        "sed -i s/a/b/ /etc/hosts",
    ] {
        let verdict = verdict(line);
        assert!(
            verdict.changes() && verdict.risk.is_none() && verdict.level < Level::Block,
            "{line}: {verdict:?}"
        );
    }
}

#[test]
fn looking_is_safe_whatever_it_looks_at() {
    for line in [
        "last reboot",
        "man rm",
        "echo rm -rf /",
        "grep -r reboot /var/log",
        "apt-get --simulate install x",
        "systemctl status ssh",
        "ls /etc/sudoers.d",
        "cat /etc/passwd",
        "sudo -l rm -rf /",
        "docker logs rm",
        "iptables -L -n",
        "crontab -l",
        "passwd -S x",
        "date +%s",
        "hostname -f",
        "ip route show",
        "mount",
        "find / -name -delete",
        "kill -l",
        "systemctl --no-pager list-units",
    ] {
        let found = verdict(line);
        assert!(found.level == Level::Safe && found.risk.is_none() && !found.changes(), "{line}: {found:?}");
    }
    assert_eq!(verdict("nobody-knows it").level, Level::Confirm);
    assert!(!verdict("nobody-knows it").changes());
}

#[test]
fn a_step_on_a_file_is_judged_by_its_path() {
    for (step, path, risk) in [
        (FileStep::Write, "/etc/sudoers.d/x", Some(Risk::Critical)),
        (FileStep::Write, "/etc/pam.d/sshd", Some(Risk::Critical)),
        (FileStep::Write, "/etc/passwd", Some(Risk::Critical)),
        (FileStep::Remove, "/etc/shadow", Some(Risk::Critical)),
        (FileStep::Write, "/home/alice/.ssh/authorized_keys", Some(Risk::Critical)),
        (FileStep::Write, "/etc/ld.so.preload", Some(Risk::Critical)),
        (FileStep::Write, "/boot/grub/grub.cfg", Some(Risk::Critical)),
        (FileStep::Write, "/etc/fstab", None),
        (FileStep::MoveTo, "/etc/fstab", Some(Risk::Critical)),
        (FileStep::Remove, "/etc/fstab", Some(Risk::Critical)),
        (FileStep::MakeDirectory, "/etc/fstab", Some(Risk::Critical)),
        (FileStep::MoveTo, "/etc/sudoers.d/x", Some(Risk::Critical)),
        (FileStep::Write, "/etc/crypttab", Some(Risk::Critical)),
        (FileStep::Write, "/etc/systemd/system/app.service", None),
        (FileStep::MakeDirectory, "/etc/systemd/system/app.service.d", None),
        (FileStep::MakeDirectory, "/etc/nologin", Some(Risk::Critical)),
        (FileStep::MakeDirectory, "/etc/sudoers.d/x", Some(Risk::Critical)),
        (FileStep::MakeDirectory, "/etc/ld.so.preload", Some(Risk::Critical)),
        (FileStep::MakeDirectory, "/etc/kernel/cmdline", Some(Risk::Critical)),
        (FileStep::MakeDirectory, "/home/ada/.ssh", None),
        (FileStep::Write, "/etc/cron.d/app", None),
        (FileStep::Remove, "/etc/cron.d/app", None),
        (FileStep::Write, "/etc/udev/rules.d/1.rules", None),
        (FileStep::Write, "/etc/nginx/nginx.conf", None),
        (FileStep::Write, "/srv/app/x", None),
    ] {
        let verdict = Policy::builtin().file_verdict(step, path);
        assert!(
            verdict.risk == risk && verdict.changes() && verdict.level < Level::Block,
            "{path}: {verdict:?}"
        );
    }
}
