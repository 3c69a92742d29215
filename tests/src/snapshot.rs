//! A snapshot of a host holds its files and the states of its units, so a test can prove that nothing has changed.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Host;

/// The directories where plans may change something or leave something behind.
const TREES: &str =
    "/etc /srv /home /usr/lib/systemd /var/spool/cron /run/systemd/system /run/systemd/transient";

/// The states of files, units, mounts and timers by their names: `/etc/hosts`, `unit ssh.service`, `mount /`, `timer …`. The
/// links of an enabled unit are among the files.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot(BTreeMap<String, String>);

/// A difference that a test expects.
#[derive(Clone, Copy)]
pub struct Expected {
    /// The name in the snapshot. A `*` at the end stands for anything.
    pub name: &'static str,
    /// The reason why the state may differ.
    pub why: &'static str,
}

/// The differences on a host that nobody touches.
pub const BY_ITSELF: &[Expected] = &[
    Expected { name: "unit e2scrub_all.service", why: "its timer runs it weekly" },
    Expected { name: "unit fstrim.service", why: "its timer runs it weekly" },
    Expected { name: "unit systemd-hostnamed.service", why: "started by who asks it, ends when idle" },
    Expected { name: "unit systemd-timedated.service", why: "started by who asks it, ends when idle" },
    Expected { name: "unit systemd-localed.service", why: "started by who asks it, ends when idle" },
    Expected { name: "unit session-*", why: "somebody logs in or out" },
    Expected { name: "unit user@*", why: "somebody logs in or out" },
    Expected { name: "unit user-*", why: "somebody logs in or out" },
    Expected { name: "unit user.slice", why: "somebody logs in or out" },
    Expected { name: "unit systemd-oomd.service", why: "it isn't there, and who logs in asks for it" },
    Expected { name: "unit run-user-*", why: "somebody logs in or out" },
    Expected { name: "mount /run/user/*", why: "somebody logs in or out" },
];

impl Snapshot {
    /// Takes a snapshot of the host.
    pub fn take(host: &Host) -> Self {
        let mut all = BTreeMap::new();
        files(host, &mut all);
        units(host, &mut all);
        mounts(host, &mut all);
        let is_seen = |name: &&str| all.contains_key(*name);
        assert!(["/etc/passwd", "unit ssh.service", "mount /"].iter().all(is_seen), "nothing was seen");
        Self(all)
    }

    /// Takes a snapshot of every file, and of no unit. Directories have their times, which show that no file came and went.
    pub fn of_all_files(host: &Host) -> Self {
        let find = r"find / \( -path /proc -o -path /sys -o -path /dev \) -prune -o \
            -printf '%p\t%y %m %u:%g %s bytes %T@ %n links %l\0'";
        let found = host.run(&["sh", "-c", find]);
        let entries = found.split_terminator('\0').map(|entry| entry.split_once('\t').expect("a state"));
        let all: BTreeMap<_, _> = entries.map(|(path, state)| (path.to_owned(), state.to_owned())).collect();
        assert!(all.contains_key("/etc/passwd"), "nothing was seen");
        Self(all)
    }

    /// The differences between this snapshot and a later one, a line each.
    pub fn differences(&self, after: &Self, expected: &[Expected]) -> Vec<String> {
        let mut names: Vec<_> = self.0.keys().chain(after.0.keys()).collect();
        names.sort();
        names.dedup();
        let differs = |name: &&String| self.0.get(*name) != after.0.get(*name);
        let is_expected = |name: &str| expected.iter().chain(BY_ITSELF).any(|known| known.covers(name));
        let state = |all: &Self, name: &str| all.0.get(name).map_or("not there", String::as_str).to_owned();
        let told = |name: &String| format!("{name}: {} -> {}", state(self, name), state(after, name));
        names.into_iter().filter(differs).filter(|name| !is_expected(name)).map(told).collect()
    }
}

impl Expected {
    fn covers(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == self.name,
        }
    }
}

/// Adds the files. Directories have no times, since the host may make copies beside a file.
fn files(host: &Host, all: &mut BTreeMap<String, String>) {
    // Some hosts lack some of these directories.
    let trees = format!("$(ls -d {TREES} 2>/dev/null)");
    // Sessions come and go, also while this looks.
    let but = r"-path '/run/systemd/transient/session-*' -prune -o";
    let find = format!(r"find {trees} {but} -printf '%p\t%y\t%m\t%u:%g\t%s\t%T@\t%n\t%l\0'");
    for entry in host.run(&["sh", "-c", &find]).split_terminator('\0') {
        let fields: Vec<_> = entry.split('\t').collect();
        let [path, kind, mode, owner, size, changed, links, target] = fields[..] else {
            panic!("not as it was asked for: {entry:?}")
        };
        let state = match kind {
            "d" => format!("directory {mode} {owner}"),
            "l" => format!("link to {target} {owner}"),
            _ => format!("{kind} {mode} {owner} {size} bytes {changed} {links} links"),
        };
        all.insert(path.to_owned(), state);
    }
    // What the program has compiled, and a /usr that a test mounts once more, are hundreds of megabytes. The kernel's own time of a
    // file's last change, which nobody can set back, stands for a checksum there.
    let mut large = r"\( -path '*/.cache/linux-sysadmin/*'".to_owned();
    for place in mounted_again(&host.run(&["cat", "/proc/self/mountinfo"])) {
        large.push_str(&format!(" -o -path '{place}/*'"));
    }
    large.push_str(r" \)");
    let sums = format!(
        r"find {trees} {but} -type f ! {large} -exec sha256sum --zero -- {{}} + &&
        find {trees} {but} -type f {large} -printf '%C@  %p\0'"
    );
    for entry in host.run(&["sh", "-c", &sums]).split_terminator('\0') {
        let (sum, path) = entry.split_once("  ").expect("a sum and a path");
        let state = all.get_mut(path).unwrap_or_else(|| panic!("{path} came while the host was looked at"));
        state.push(' ');
        state.push_str(sum);
    }
}

/// The places at which a part of the root file system is mounted once more.
fn mounted_again(mounts: &str) -> Vec<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(2);
        Some((fields.next()?, fields.next()?, fields.next()?))
    });
    let mounts: Vec<_> = mounts.collect();
    let root = mounts.iter().find(|(_, _, place)| *place == "/").map(|(device, ..)| *device);
    // Other characters stand in the file as escapes, and the files there are hashed.
    let is_plain =
        |place: &str| place.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._".contains(&byte));
    let again = mounts.iter().filter(|(device, part, place)| {
        Some(*device) == root && *part != "/" && *place != "/" && is_plain(place)
    });
    again.map(|(_, _, place)| (*place).to_owned()).collect()
}

fn units(host: &Host, all: &mut BTreeMap<String, String>) {
    let listed = |list: &[&str]| {
        let head = ["systemctl", "--plain", "--no-legend", "--full", "--no-pager"];
        host.run(&[&head[..], list].concat())
    };
    for line in listed(&["list-units", "--all"]).lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        // Of several mounts that come or go within a second, systemd learns late. The kernel is asked below.
        if !words[0].ends_with(".mount") || words[1..4] != ["loaded", "active", "mounted"] {
            all.insert(format!("unit {}", words[0]), words[1..4].join(" "));
        }
    }
    let timers = host.run(&["systemctl", "list-timers", "--all", "--output=json"]);
    let timers: Value = serde_json::from_str(&timers).expect("JSON");
    for timer in timers.as_array().expect("a list") {
        let (name, activates) = (&timer["unit"], &timer["activates"]);
        let armed = if timer["next"].is_null() { "not armed" } else { "armed" };
        let name = name.as_str().expect("a name");
        all.insert(format!("timer {name}"), format!("{activates} {armed}"));
    }
}

/// Adds the mounts: the part of the file system, the options, the type and the source, of all that are at one place.
fn mounts(host: &Host, all: &mut BTreeMap<String, String>) {
    for line in host.run(&["cat", "/proc/self/mountinfo"]).lines() {
        let what: Vec<_> = line.split(' ').skip(3).collect();
        all.entry(format!("mount {}", what[1])).or_default().push_str(&format!("{what:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the kernel (6.18) writes it.
    const MOUNTS: &str = "\
700 600 0:50 / / rw,relatime - overlay overlay rw
701 700 0:51 / /proc rw - proc proc rw
702 700 0:50 /usr /srv/lsa/chroot/usr rw,relatime - overlay overlay rw
703 700 0:50 /home /srv/lsa/two\\040words rw,relatime - overlay overlay rw
704 700 7:0 /part /srv/volume rw,relatime - ext4 /dev/loop0 rw
705 700 0:50 / /srv/lsa/all rw,relatime - overlay overlay rw
";

    #[test]
    fn only_parts_of_the_root_file_system_are_mounted_again() {
        assert_eq!(mounted_again(MOUNTS), ["/srv/lsa/chroot/usr"]);
        assert!(mounted_again("").is_empty());
    }
}
