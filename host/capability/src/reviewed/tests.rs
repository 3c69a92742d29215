use super::*;
use crate::HoleType;
use crate::pattern::{Item, Part};
use host_base::Risk;

fn request(pattern: &str, privilege: Privilege, effect: Effect) -> CommandRequest {
    let (pattern, place, risk) = (pattern.to_owned(), Place::Target, Risk::ReadOnly);
    CommandRequest { pattern, effect, privilege, place, risk, reason: String::new() }
}

fn is_reviewed(pattern: &str, privilege: Privilege, effect: Effect) -> bool {
    review_for(&request(pattern, privilege, effect), false).is_some()
}

fn holes(items: &[Item], found: &mut Vec<HoleType>) {
    for item in items {
        match item {
            Item::Token(token) => found.extend(token.parts().iter().filter_map(|part| match part {
                Part::Hole(hole) => Some(hole.clone()),
                Part::Literal(_) => None,
            })),
            Item::Optional(items) => holes(items, found),
            Item::Alternatives(ways) => ways.iter().for_each(|way| holes(way, found)),
            Item::Repeat(item) => holes(std::slice::from_ref(item), found),
        }
    }
}

#[test]
fn every_entry_is_understood() {
    let reviews = parse(include_str!("../reviewed.yaml")).unwrap_or_else(|error| panic!("{error}"));
    assert!(reviews.len() > 50 && reviews.len() == REVIEWS.len());
}

#[test]
fn every_entry_has_a_reason_of_its_own() {
    for (at, one) in REVIEWS.iter().enumerate() {
        assert!(!one.reason.trim().is_empty(), "{}", one.pattern);
        let other = REVIEWS[..at].iter().find(|other| other.reason == one.reason);
        assert!(other.is_none(), "{} has the reason of {}", one.pattern, other.unwrap().pattern);
    }
}

#[test]
fn no_entry_is_within_another() {
    for (at, one) in REVIEWS.iter().enumerate() {
        let privilege = if one.most == MaxRights::Root { Privilege::Root } else { Privilege::Caller };
        let within = request(one.pattern.text(), privilege, one.effect);
        let others = REVIEWS.iter().enumerate().filter(|(other, _)| *other != at);
        for (_, other) in others {
            assert!(
                !other.allows(&one.pattern, &within, false),
                "{} is within {}",
                one.pattern,
                other.pattern
            );
        }
        assert!(one.allows(&one.pattern, &within, false), "{} is within itself", one.pattern);
    }
}

#[test]
fn no_entry_takes_any_argument_a_secret_a_path_or_input() {
    for review in REVIEWS.iter() {
        let mut found = Vec::new();
        holes(review.pattern.items(), &mut found);
        for hole in found {
            assert!(
                !matches!(hole, HoleType::Arg | HoleType::Secret | HoleType::Path(_)),
                "{}",
                review.pattern
            );
        }
        assert!(!review.pattern.stdin(), "{}", review.pattern);
    }
}

#[test]
fn no_entry_names_a_program_that_runs_others_or_gives_out_files() {
    const NEVER: &[&str] = &[
        "awk", "bash", "cat", "chroot", "cp", "curl", "dash", "dd", "env", "find", "head", "less", "nice",
        "nohup", "nsenter", "perl", "python3", "sed", "sh", "ssh", "strace", "sudo", "su", "tail", "tar",
        "tee", "timeout", "unshare", "watch", "wget", "xargs",
    ];
    for review in REVIEWS.iter() {
        let program = review.pattern.program();
        assert!(!NEVER.contains(&program.rsplit('/').next().unwrap()), "{}", review.pattern);
    }
}

#[test]
fn what_only_looks_is_reviewed() {
    for pattern in [
        "systemctl show --all --property=Id,Names,Description,LoadState,ActiveState,SubState,UnitFileState,Result,\
         NRestarts,ExecMainCode,ExecMainStatus -- '*.service'",
        "systemctl show --property=Id,LoadState,Result -- <unit>...",
        "systemctl show --property=Id --property=ActiveState -- nginx.service <unit>",
        "systemctl list-unit-files --full --plain --no-legend --no-pager --output=json",
        "systemctl list-unit-files --full --plain --no-legend --no-pager --output=json -- <unit>",
        "systemctl list-units --all --plain --no-legend --full --no-pager --output=json",
        "systemctl list-timers --all --full --no-legend --no-pager --output=json",
        "date +%s",
        "uname -r",
        "ip -j address show dev <interface>",
        "ip -j route show table all",
        "ss -H -tulpn",
        "lsblk --json --bytes --output=NAME,SIZE",
        "df --output=<text> --local",
        "dpkg-query --show '--showformat=${Package}\\n' -- <package>...",
        "nft -j list ruleset",
        "sysctl -n vm.swappiness kernel.pid_max",
        "ps -e -o pid -o comm",
        "TZ=UTC systemctl show --property=ActiveEnterTimestamp -- <unit>",
        "pacman-conf IgnorePkg",
        "vercmp <version> <version>",
    ] {
        for privilege in [Privilege::Caller, Privilege::RootIfAvailable, Privilege::Root] {
            assert!(is_reviewed(pattern, privilege, Effect::Read), "{pattern}");
        }
    }
    assert!(is_reviewed("apt-cache policy -- <package>", Privilege::Caller, Effect::Read));
    let query = r"dnf --cacheonly repoquery '--queryformat=%{name}\t%{evr}\t%{repoid}\n' <package>...";
    assert!(is_reviewed(query, Privilege::Caller, Effect::Read));
    assert!(!is_reviewed(query, Privilege::Root, Effect::Read));
    let simulation = "apt-get --simulate install -- <package>...";
    assert!(is_reviewed(simulation, Privilege::Caller, Effect::DryRun));
    assert!(is_reviewed(simulation, Privilege::Caller, Effect::Read));
}

#[test]
fn looks_of_other_package_managers_are_reviewed() {
    for pattern in [
        "pacman --query",
        "pacman --query --info -- <package>...",
        "pacman --query [--explicit] [--deps] --unrequired --quiet -- <package>",
        "pacman -Q -- <package>",
        "pacman -Qu",
        "pacman --color never --query --upgrades",
        "pacman --sync --search -- <text>",
        "pacman --sync --info -- <package>...",
        "pacman -Ss -- <text>...",
        "pacman -Si -- <package>",
        "pacman --sync --list",
        "pacman-conf --repo-list",
        "xbps-query --list-pkgs",
        "apk --no-network list --installed",
        "apk --no-network search -- <text>",
        "wg show <interface> latest-handshakes",
    ] {
        for privilege in [Privilege::Caller, Privilege::Root] {
            assert!(is_reviewed(pattern, privilege, Effect::Read), "{pattern}");
        }
    }
    assert!(is_reviewed(
        "zypper --no-refresh --non-interactive list-updates",
        Privilege::Caller,
        Effect::Read
    ));
    assert!(!is_reviewed(
        "zypper --no-refresh --non-interactive list-updates",
        Privilege::Root,
        Effect::Read
    ));
    for simulation in [
        "pacman --sync --print --print-format <text> -- <package>...",
        "pacman --noconfirm --remove --recursive --print -- <package>",
        "pacman --sync --sysupgrade --print",
    ] {
        assert!(is_reviewed(simulation, Privilege::Root, Effect::DryRun), "{simulation}");
    }
    for pattern in [
        "pacman --sync -- <package>",
        "pacman --sync [--print] -- <package>",
        "pacman --sync --refresh --search -- <text>",
        "pacman --sync --refresh --print -- <package>",
        "pacman --sync --clean",
        "pacman --query --file -- <path>",
        "pacman --query --info --config=<path>",
        "pacman --query --dbpath=<path>",
        "pacman --remove -- <package>",
        "pacman --upgrade --print -- <url>",
        "pacman --database --asdeps -- <package>",
        "pacman --hookdir=<path> --sync --print -- <package>",
        "pacman-key --list-keys",
        "xbps-query --repository=<url> --list-repos",
        "apk list --installed",
        "apk --no-network add -- <package>",
        "zypper --non-interactive list-updates",
        "zypper --no-refresh install -- <package>",
        "wg show <interface> private-key",
        "wg show all dump",
        "wg showconf <interface>",
    ] {
        for effect in [Effect::Read, Effect::DryRun] {
            assert!(!is_reviewed(pattern, Privilege::Caller, effect), "{pattern}");
        }
    }
}

#[test]
fn what_can_do_more_is_not_reviewed() {
    for pattern in [
        "systemctl restart -- <unit>",
        "systemctl edit -- <unit>",
        "systemctl cat -- <unit>",
        "systemctl status -- <unit>",
        "systemctl is-enabled -- <unit>",
        "systemctl show -- <unit>",
        "systemctl show --property=Environment -- <unit>",
        "systemctl show --property=Id,Environment -- <unit>",
        "systemctl show --property=<text> -- <unit>",
        "systemctl show --property=Id <unit>",
        "systemctl --host=<host> show --property=Id -- <unit>",
        "systemctl show --host=<host> --property=Id -- <unit>",
        "systemctl (show|stop) --property=Id -- <unit>",
        "systemctl list-units -- <text>",
        "SYSTEMD_PAGER=sh systemctl list-units",
        "PAGER=sh systemctl list-units",
        "TZ=UTC date +%s",
        "./systemctl list-units",
        "/tmp/systemctl list-units",
        "journalctl",
        "journalctl --list-boots --file=/etc/shadow",
        "journalctl --vacuum-time=<time>",
        "hostnamectl hostname <host>",
        "timedatectl set-time <time>",
        "hostname <host>",
        "date -s <time>",
        "date <int>",
        "cat -- <path>",
        "cat -- <path:/proc/**>",
        "sh",
        "sh -c <text>",
        "env",
        "env -- <arg>...",
        "find -- <path:/**>",
        "find <path> -exec <text>",
        "xargs uname",
        "sudo uname",
        "uname < stdin",
        "tee -- <path:/var/**>",
        "ps -e -o args",
        "ps -ef",
        "ps aux",
        "ps -e -o <text>",
        "w",
        "sysctl <text>",
        "sysctl -w vm.swappiness=1",
        "sysctl net.ipv4.tcp_fastopen_key",
        "sysctl vm.swappiness=<int>",
        "findmnt --json --fstab",
        "lsblk --json --sysroot=<path>",
        "df -- <path>",
        "swapon --show --all",
        "swapon <disk>",
        "smartctl --test=long -- <disk>",
        "lvs --readonly --options=seg_monitor",
        "lvs --options=lv_name",
        "zpool status -c <text>",
        "ip netns exec <text> sh",
        "ip -batch <path>",
        "ip xfrm state",
        "ip link set dev <interface> up",
        "ip link show <text>",
        "ip route add <cidr>",
        "ss -K",
        "ss -tlnpK",
        "ss -D <path>",
        "ethtool <interface>",
        "nft -f <path>",
        "nft flush ruleset",
        "nft list ruleset < stdin",
        "iptables -L",
        "ufw disable",
        "firewall-cmd --panic-on",
        "chronyc sources",
        "chronyc -n -h <host> sources",
        "dpkg-query --load-avail --show",
        "dpkg-query --admindir=<path> --show",
        "dpkg --install <path>",
        "rpm --query --all --queryformat=<text>",
        "rpm --eval <text>",
        "apt-get install -- <package>",
        "apt-get install --simulate -- <package>",
        "apt-get --simulate -o <text> install -- <package>",
        "dnf list",
        "dnf repoquery <package>",
        "dnf --cacheonly repoquery --queryformat=<text> <package>",
        "dnf --cacheonly --setopt=<text> repoquery <package>",
        "dnf --quiet history info <int>",
        "update-alternatives --set <package> <path>",
        "pacman --query --config=<path>",
        "pacman --query --sysroot <path>",
        "pacman --query --file -- <path>",
        "pacman --sync --search --hookdir=<path> -- <text>",
        "pacman --sync --refresh --search -- <text>",
        "pacman --sync --refresh --print -- <package>",
        "pacman --sync -- <package>",
        "pacman --sync --clean --print",
        "pacman --upgrade --print -- <url>",
        "pacman --upgrade --print -- <path:/var/cache/pacman/pkg/*>",
        "pacman --remove -- <package>",
        "pacman-conf",
        "pacman-conf Server",
        "pacman-conf --config=<path> IgnorePkg",
        "sshd",
        "sshd -T -f <path>",
        "nginx -t",
        "visudo --check --file=<path>",
        "docker ps --all",
        "docker --context=default ps --format json",
        "docker --context=default ps --format <text>",
        "docker --context=default exec -- <image> <arg>...",
        "crontab -l",
        "not a 'pattern",
    ] {
        for effect in [Effect::Read, Effect::DryRun] {
            assert!(!is_reviewed(pattern, Privilege::Caller, effect), "{pattern}");
        }
    }
}

#[test]
fn a_review_is_for_its_rights_its_effect_and_the_target_only() {
    let root_is_too_much = ["sysctl --all", "getent passwd", "hostnamectl", "rpm -q -- <package>"];
    for pattern in root_is_too_much {
        assert!(is_reviewed(pattern, Privilege::Caller, Effect::Read), "{pattern}");
        for privilege in [Privilege::Root, Privilege::RootIfAvailable] {
            assert!(!is_reviewed(pattern, privilege, Effect::Read), "{pattern}");
        }
    }
    for user in ["root", "nobody", "postgres"] {
        assert!(!is_reviewed("uname", Privilege::User(user.to_owned()), Effect::Read));
    }
    for effect in [Effect::DryRun, Effect::Change] {
        assert!(!is_reviewed("uname", Privilege::Caller, effect));
    }
    assert!(!is_reviewed("apt-get --simulate upgrade", Privilege::Caller, Effect::Change));
    let elsewhere =
        CommandRequest { place: Place::Controller, ..request("uname", Privilege::Caller, Effect::Read) };
    assert!(review_for(&elsewhere, false).is_none());
}

#[test]
fn a_list_that_is_not_understood_reviews_nothing() {
    let entry = |pattern: &str, effect: &str| {
        format!("- {{pattern: '{pattern}', most: caller, effect: {effect}, reason: r}}")
    };
    assert_eq!(parse(&entry("x", "read")).unwrap().len(), 1);
    for (text, expected) in [
        (entry("x", "change"), "expected effect read or dry-run"),
        (entry("x <a", "read"), "expected a closing `>`"),
        (entry("x", "write"), "unknown variant `write`"),
        (entry("x", "read").replace("caller", "user:root"), "unknown variant `user:root`"),
        (entry("x", "read").replace("reason: r", "why: r"), "unknown field `why`"),
        ("pattern: x".to_owned(), "invalid type"),
    ] {
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_is_harmless_for_an_ordinary_account_is_not_for_a_server_that_runs_as_root() {
    for (pattern, as_root_too) in [("apt-cache policy -- <package>", false), ("uname", true)] {
        let asked = request(pattern, Privilege::Caller, Effect::Read);
        assert!(review_for(&asked, false).is_some());
        assert_eq!(review_for(&asked, true).is_some(), as_root_too, "{pattern}");
    }
}
