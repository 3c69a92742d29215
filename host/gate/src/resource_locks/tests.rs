//! Tests with text that Linux 6.18 and vim 9.0.2142 wrote, and with jobs in the form of systemd 252.

use std::os::unix::fs::MetadataExt;

use serde_json::json;

use super::*;
use host_target::Overrides;

const LOCKS: &str = "\
1: POSIX  ADVISORY  WRITE 11953 fe:00:10010663 0 EOF
2: FLOCK  ADVISORY  WRITE 11953 fe:00:10010655 0 EOF
6: FLOCK  ADVISORY  READ 11871 fe:00:10133508 0 EOF
7: FLOCK  ADVISORY  WRITE 11869 fe:00:10010638 0 EOF
7: -> FLOCK  ADVISORY  WRITE 11898 fe:00:10010638 0 EOF
9: OFDLCK ADVISORY  WRITE -1 fe:00:1146883 0 EOF
";

const STAT: &str = "11953 (python3) S 11950 11950 24134 0 -1 4194304 2858 6585 0 0 3 0 4 0 20 0 1 0 2501023 16990208 3358 \
    18446744073709551615 94899844685824 94899844686165 140731962489952 0 0 0 65536 16781318 0 1 0 0 17 0 0 0 0 0 0\n";

/// The first bytes of `.f.txt.swp`, written by process 11511.
const SWAP: &[u8] = b"b0VIM 9.0\0\0\0\0\x10\0\0\x3a\xcf\0\x6b\x4f\xc5\x98\0\xf7\x2c\0\0root\0\0\0\0";

#[test]
fn a_lock_is_known_by_device_and_inode_and_who_waits_holds_nothing() {
    let found = parse::locks(LOCKS);
    let of = |inode| found.iter().filter(|lock| lock.is_on((0xfe, 0), inode)).collect::<Vec<_>>();
    assert_eq!(of(10_010_663)[0].pid, Some(11953));
    assert_eq!(of(10_010_638).iter().map(|lock| lock.pid).collect::<Vec<_>>(), [Some(11869)]);
    assert_eq!(of(1_146_883)[0].pid, None);
    assert!(of(10_010_663)[0].exclusive && !of(10_133_508)[0].exclusive);
    assert!(!found.iter().any(|lock| lock.is_on((0xfe, 1), 10_010_663) || lock.is_on((0xfe, 0), 1)));
    for text in [
        "",
        "\n",
        "1:",
        "1: POSIX ADVISORY WRITE 1 zz:00:1 0 EOF",
        "1: LEASE ACTIVE READ 1 fe:00:1 0 EOF",
        "1: POSIX ADVISORY WRITE 1 fe:00 0 EOF",
        "\u{fc}\0",
    ] {
        assert!(parse::locks(text).is_empty(), "{text}");
    }
}

/// The mounts of a container on an overlay, with some that were made by hand.
const MOUNTS: &str = r"420 393 0:62 / / rw,relatime shared:106 - overlay overlay rw,lowerdir=/l,upperdir=/u
426 420 0:70 / /run rw,nosuid,nodev shared:111 - tmpfs tmpfs rw,size=4936820k
340 426 0:75 / /run/lock rw,nosuid,nodev,noexec,relatime shared:120 - tmpfs tmpfs rw,size=5120k
500 420 254:0 /data /srv/my\040data rw - ext4 /dev/vda rw
501 420 0:80 / /mnt/a/deep rw - tmpfs under rw
502 420 0:81 / /mnt/a rw - btrfs over rw
503 502 0:82 / /mnt/a rw - btrfs on\134top rw
";

#[test]
fn a_process_belongs_to_the_unit_of_the_systems_manager() {
    for (cgroup, unit) in [
        ("0::/system.slice/apt-daily.service\n", Some("apt-daily.service")),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope\n", Some("user@1000.service")),
        ("0::/user.slice/user-0.slice/session-3.scope\n", Some("session-3.scope")),
        ("3:cpu:/x.service\n1:name=systemd:/system.slice/cron.service\n", Some("cron.service")),
        ("0::/init.scope\n", Some("init.scope")),
        ("0::/\n", None),
        ("", None),
    ] {
        assert_eq!(parse::unit(cgroup).as_deref(), unit, "{cgroup}");
    }
}

#[test]
fn a_path_lies_on_the_mount_that_is_reached_on_the_way_to_it() {
    let mounts = parse::mounts(MOUNTS);
    assert_eq!(mounts.len(), 7);
    for (path, device) in [
        ("/", (0, 62)),
        ("/etc/hosts", (0, 62)),
        ("/running", (0, 62)),
        ("/run", (0, 70)),
        ("/run/dnf.pid", (0, 70)),
        ("/run/lock/lvm/V_vg", (0, 75)),
        ("/srv/my data/x", (254, 0)),
        ("/mnt/a/x", (0, 82)),
        // A later mount hides the earlier one.
        ("/mnt/a/deep/x", (0, 82)),
    ] {
        assert_eq!(parse::device_of(&mounts, path), Some(device), "{path}");
    }
    for text in ["", "\n", "x", "1 2 3", "420 393 0:62 / /run rw", r"1 0 0:1 / /\9 rw", "1 0 01 / / rw"] {
        assert_eq!(parse::device_of(&parse::mounts(text), "/run/x"), None, "{text}");
    }
    // A cycle, which no kernel writes, has no root.
    assert_eq!(parse::device_of(&parse::mounts("1 2 0:1 / / rw\n2 1 0:2 / / rw"), "/x"), None);
}

#[test]
fn where_stat_names_another_device_the_mounts_counts_and_the_process_must_have_the_file_open() {
    let mounts = parse::mounts(MOUNTS);
    let locked = |path: &str| vec![(path.to_owned(), path.to_owned())];
    let stat = |device: (u32, u32), inode| {
        let device = rustix::fs::makedev(device.0, device.1);
        let (owner, group) = (String::new(), String::new());
        let (is_dir, is_symlink) = (false, false);
        let (size, mode, modified_unix, links) = (0, 0, 0, 1);
        Some(Metadata { size, mode, owner, group, modified_unix, links, device, inode, is_dir, is_symlink })
    };
    let locks = "1: FLOCK  ADVISORY  WRITE 85 00:3e:62 0 EOF\n2: POSIX  ADVISORY  WRITE 86 00:46:62 0 EOF\n\
         3: FLOCK  ADVISORY  WRITE 87 00:3e:62 0 EOF\n";
    let found = |path: &str, device| {
        let found = of_files(locks, &mounts, &locked(path), &[stat(device, 62)]);
        found.into_iter().map(|found| (found.holder.pid, found.must_have_open)).collect::<Vec<_>>()
    };
    let open = || Some("/etc/x".to_owned());
    assert_eq!(found("/etc/x", (0, 63)), [(Some(85), open()), (Some(87), open())]);
    assert_eq!(found("/etc/x", (0, 62)), [(Some(85), None), (Some(87), None)]);
    assert_eq!(found("/run/x", (0, 70)), [(Some(86), None)]);
    assert_eq!(found("/srv/my data/x", (254, 0)), []);
}

#[tokio::test]
async fn a_process_without_the_file_open_does_not_hold_it() {
    let place = directory();
    let path = place.path().join("file");
    let file = std::fs::File::create(&path).unwrap();
    std::fs::write(place.path().join("other"), "").unwrap();
    // The holder is another process, because this one has both files open.
    let mut child = std::process::Command::new("sleep").arg("600").stdin(file).spawn().unwrap();
    let holder = |pid| Holder { pid, ..Holder::default() };
    let candidate = |pid, name: &str| Candidate {
        must_have_open: Some(place.path().join(name).to_str().unwrap().to_owned()),
        ..Candidate::certain(holder(pid))
    };
    let this = Some(child.id());
    // The last lock's owner isn't known.
    let candidates = vec![candidate(this, "other"), candidate(this, "file"), candidate(None, "other")];
    let confirmed = confirmed(&target(), candidates).await;
    let pids: Vec<_> = confirmed.iter().map(|candidate| candidate.holder.pid).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(pids, [this, None]);
    assert!(confirmed[0].must_have_open.as_deref().unwrap().ends_with("/file"));
}

#[test]
fn a_process_has_its_name_and_when_it_began() {
    let process = parse::process(STAT.as_bytes()).unwrap();
    let booted = parse::booted("cpu  1 2 3\nbtime 1795190183\nprocesses 9\n").unwrap();
    assert_eq!(process.name, "python3");
    assert_eq!(process.since(booted).unwrap(), "2026-11-20T22:53:13Z");
    let odd = STAT.replace("python3", "a) S (b c");
    assert_eq!(parse::process(odd.as_bytes()).unwrap().name, "a) S (b c");
    for stat in ["", "1", "1 (a", "1 (a) S 1 2 3", &STAT.replace(") S", ") Z")] {
        assert_eq!(parse::process(stat.as_bytes()), None, "{stat}");
    }
    assert_eq!(parse::booted("cpu 1\n"), None);
    assert_eq!(process.since(i64::MAX), None);
}

#[test]
fn an_editor_says_which_process_it_is() {
    assert_eq!(parse::swap_pid(SWAP), Some(11511));
    for swap in [&b""[..], b"b0", b"b0VIM 9.0", &SWAP[1..], &[0; 100]] {
        assert_eq!(parse::swap_pid(swap), None);
    }
    for (link, pid) in [
        ("joe@host.example.org.4711:1795190183", Some(4711)),
        ("joe@host.4711", Some(4711)),
        ("joe@mail@host.4711:1", Some(4711)),
        ("elsewhere", None),
        ("joe@host", None),
        ("joe@host.x:1", None),
        ("", None),
    ] {
        assert_eq!(parse::emacs_pid(link), pid, "{link}");
    }
}

#[test]
fn jobs_of_affected_units_block_and_others_do_not() {
    let jobs = "123 nginx.service start running\n 124 apt-daily.service start waiting\n";
    let held =
        |affected: &str| of_systemd("running\n", jobs, &[affected.to_owned()]).map(|holder| holder.resource);
    assert_eq!(held("nginx.service").as_deref(), Some("nginx.service"));
    assert_eq!(held("nginx").as_deref(), Some("nginx.service"));
    assert_eq!(held("ssh.service"), None);
    assert_eq!(held("ngin"), None);
    for jobs in [
        "",
        "No jobs running.\n",
        "x nginx.service start running\n",
        "Failed to connect to bus: Host is down\n",
    ] {
        assert_eq!(of_systemd("running", jobs, &["nginx".to_owned()]), None, "{jobs}");
    }
    for state in ["starting", "degraded", "offline", "maintenance", ""] {
        assert_eq!(of_systemd(state, "", &[]), None, "{state}");
    }
    let stopping = problem(of_systemd("stopping\n", "", &[]).unwrap());
    assert!(!stopping.remediation.iter().any(|step| step.contains("kill")));
}

#[test]
fn a_problem_says_who_and_what_can_be_done_and_leaves_out_what_is_not_known() {
    let known = problem(Holder {
        resource: "package database (/var/lib/dpkg/lock-frontend)".into(),
        pid: Some(12),
        process: Some("unattended-upgr".into()),
        command: Some("/usr/bin/python3 /usr/bin/unattended-upgrade".into()),
        unit: Some("apt-daily-upgrade.service".into()),
        user: Some("root".into()),
        since: Some("2026-11-20T22:53:13Z".into()),
        look: Some(look_at(12, "unattended-upgr")),
    });
    assert_eq!((known.code.as_str(), known.category), ("RESOURCE_LOCKED", Category::Lock));
    assert_eq!(
        known.details["lock_info"],
        json!({
            "resource": "package database (/var/lib/dpkg/lock-frontend)", "held_by_process": "unattended-upgr",
            "held_by_pid": 12, "held_by_command": "/usr/bin/python3 /usr/bin/unattended-upgrade",
            "held_by_unit": "apt-daily-upgrade.service", "held_by_user": "root", "held_since": "2026-11-20T22:53:13Z",
        })
    );
    assert!(known.remediation[1].contains("unattended-upgrades.log"));
    assert_eq!(
        known.remediation[2],
        "If stuck, consider: sudo kill 12 (verify the process is safe to terminate first)"
    );
    let unknown = problem(Holder { resource: "/etc/x".into(), ..Holder::default() });
    assert_eq!(unknown.details["lock_info"], json!({"resource": "/etc/x"}));
    assert_eq!(unknown.remediation.len(), 1);
}

#[test]
fn a_swap_file_that_cannot_be_read_is_told_without_a_process() {
    let beside = EditorFiles::of("/etc/x.conf").unwrap();
    assert_eq!((beside.swap.as_str(), beside.link.as_str()), ("/etc/.x.conf.swp", "/etc/.#x.conf"));
    let denied = Err(Problem::new("PERMISSION_DENIED", Category::Privilege, "no"));
    let found = of_editors(&beside, true, Some(&denied), None);
    assert!(found[0].only.is_none() && found[0].holder.pid.is_none());
    assert!(found[0].holder.process.as_deref().unwrap().contains("/etc/.x.conf.swp"));
    assert!(of_editors(&beside, false, Some(&denied), None).is_empty());
}

fn target() -> Target {
    Target::local(Overrides::default())
}

/// A directory that root's rights may pass too.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

#[tokio::test]
async fn who_holds_a_file_is_found() {
    let place = directory();
    let path = place.path().join("file");
    let file = std::fs::File::create(&path).unwrap();
    let lock = [ResourceLock::File(path.to_str().unwrap().to_owned())];
    assert!(check(&target(), &lock, &[]).await.is_ok());
    file.lock().unwrap();
    let problem = check(&target(), &lock, &[]).await.unwrap_err();
    let info = &problem.details["lock_info"];
    assert_eq!(info["held_by_pid"], std::process::id());
    assert!(info["held_by_command"].as_str().is_some_and(|command| !command.is_empty()), "{info}");
    assert_eq!(info["resource"], path.to_str().unwrap());
    assert!(info["held_since"].as_str().unwrap().ends_with('Z') && info["held_by_user"].is_string());
    // The link is another name of the same file.
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(check(&target(), &[ResourceLock::File(link.to_str().unwrap().to_owned())], &[]).await.is_err());
    file.unlock().unwrap();
    assert!(check(&target(), &lock, &[]).await.is_ok());
    assert!(file.metadata().unwrap().ino() > 0);
}

#[tokio::test]
async fn what_a_dead_editor_or_another_program_left_does_not_block() {
    let place = directory();
    let path = place.path().join("file");
    std::fs::write(&path, "").unwrap();
    let lock = [ResourceLock::File(path.to_str().unwrap().to_owned())];
    // This process is alive and is no editor. The other number was never a process's.
    for pid in [std::process::id(), u32::MAX - 1] {
        let mut swap = SWAP.to_vec();
        swap[24..28].copy_from_slice(&pid.to_le_bytes());
        std::fs::write(place.path().join(".file.swp"), swap).unwrap();
        let link = place.path().join(".#file");
        std::os::unix::fs::symlink(format!("joe@host.{pid}:1"), &link).unwrap();
        assert!(check(&target(), &lock, &[]).await.is_ok());
        std::fs::remove_file(link).unwrap();
    }
}

#[tokio::test]
async fn what_only_plans_hold_is_not_looked_for() {
    assert!(check(&target(), &[ResourceLock::Named("firewall".into())], &[]).await.is_ok());
    assert!(check(&target(), &[], &["nginx".into()]).await.is_ok());
}
