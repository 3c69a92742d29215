use std::collections::HashMap;

use super::*;

/// A machine of directories, files and links, each with an owner. A path that isn't listed doesn't exist.
struct Tree(HashMap<&'static str, (Entry, &'static str)>);

impl Tree {
    /// Reads lines such as `/etc/x l root ../y`. The kinds are `d` for directories, `c` for those that not everybody may enter, `w`
    /// for those that everybody may write to, `f` for files and `l` for links.
    fn new(lines: &'static str) -> Self {
        let entry = |line: &'static str| {
            let mut words = line.split_whitespace();
            let (path, kind, owner) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            let mode = match kind {
                "d" => 0o040_755,
                "c" => 0o040_750,
                "w" => 0o041_777,
                "f" => 0o100_644,
                "l" => 0o120_777,
                _ => panic!("{line}"),
            };
            let uid = if owner == "root" { 0 } else { 1000 };
            let names = Some((owner.to_owned(), owner.to_owned()));
            let entry = Entry {
                mode,
                uid,
                gid: uid,
                size: 0,
                modified_unix: 0,
                links: 1,
                device: 1,
                inode: 1,
                names,
            };
            (path, (entry, words.next().unwrap_or_default()))
        };
        Self(lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(entry).collect())
    }

    /// Walks the path. Returns also every path that it looked at.
    fn resolve(
        &self,
        asked: &str,
        last: LastLink,
        trusted: &Trusted,
    ) -> Result<(Resolved, Vec<String>), Problem> {
        let mut walk = Walk::new(asked, last, trusted)?;
        let mut looked = Vec::new();
        loop {
            match walk.ask() {
                NextStep::Look(paths) => {
                    assert!(!paths.is_empty());
                    // All of them are answered, also those behind a link, as a command would.
                    let entries = paths
                        .iter()
                        .map(|path| Ok(self.0.get(path.as_str()).map(|(entry, _)| entry.clone())));
                    walk.looked(entries)?;
                    looked.extend(paths);
                }
                NextStep::Follow(link) => walk.followed(self.0[link.as_str()].1)?,
                NextStep::Done(resolved) => return Ok((resolved, looked)),
            }
        }
    }

    /// Returns the path that it leads to, with ` -` where nothing is there yet, or the problem's code.
    fn leads(&self, asked: &str, last: LastLink, trusted: &Trusted) -> String {
        match self.resolve(asked, last, trusted).and_then(|(resolved, _)| resolved.unless_dangling(asked)) {
            Ok(Resolved { path, end: End::There(_), .. }) => path,
            Ok(Resolved { path, .. }) => path + " -",
            Err(problem) => problem.code,
        }
    }
}

#[test]
fn a_path_behind_a_closed_directory_is_known_whatever_its_own_rights_are() {
    let tree = Tree::new(
        "/           d root
         /open       d root
         /open/x     f root
         /open/in    l root /closed/x
         /closed     c root
         /closed/x   f root
         /closed/out l root /open/x
         /closed/sub d root
         /closed/sub/y f root",
    );
    for (path, expected) in [
        ("/open/x", false),
        ("/open/in", true),
        ("/closed", false),
        ("/closed/x", true),
        ("/closed/out", false),
        ("/closed/sub/y", true),
        ("/closed/none", true),
    ] {
        let (resolved, _) = tree.resolve(path, LastLink::Followed, &Trusted::Root).unwrap();
        assert_eq!(resolved.is_behind_closed_directory(), expected, "{path}");
    }
}

fn machine() -> Tree {
    Tree::new(
        "/              d root
         /etc           d root
         /etc/passwd    f root
         /etc/shadow    f root
         /etc/release   l root ../usr/lib/release
         /etc/dangling  l root /etc/nothing
         /etc/deep      l root nowhere/../passwd
         /etc/up        l root ..
         /etc/here      l root .
         /etc/top       l root ../../..
         /etc/loop      l root loop
         /etc/ping      l root pong
         /etc/pong      l root /etc/ping
         /usr           d root
         /usr/lib       d root
         /usr/lib/release f root
         /lib           l root usr/lib
         /var           d root
         /var/run       l root /run
         /var/log       d root
         /var/log/app   l root /srv/app/log
         /var/log/past  l root /srv/app/back
         /run           d root
         /run/pid       f root
         /srv           d root
         /srv/app       d ada
         /srv/app/log   f ada
         /srv/app/steal l ada /etc/shadow
         /srv/app/back  l ada /var/log
         /tmp           w root
         /tmp/x         f root
         /tmp/adas      f ada
         /tmp/adas-link l ada /usr/lib/release
         /tmp/roots-link l root /usr/lib/release
         /proc          d root
         /proc/self     l root 4711
         /proc/mounts   l root self/mounts
         /proc/self/mounts f root
         /proc/7        d ada
         /proc/7/stat   f ada
         /proc/7/cwd    l ada /etc
         /sys           d root
         /sys/block     d ada
         /sys/block/vda l root ../devices/vda
         /sys/devices   d root
         /sys/devices/vda d root
         /sys/fs        d root
         /sys/fs/bpf    w root
         /sys/fs/bpf/x  f root",
    )
}

#[test]
fn a_path_leads_where_the_kernel_goes() {
    for (asked, leads) in [
        ("/", "/"),
        ("/etc/passwd", "/etc/passwd"),
        ("/etc/", "/etc"),
        ("/etc/release", "/usr/lib/release"),
        ("/lib/release", "/usr/lib/release"),
        ("/var/run/pid", "/run/pid"),
        ("/etc/up", "/"),
        ("/etc/up/etc/passwd", "/etc/passwd"),
        ("/etc/here", "/etc"),
        ("/etc/here/passwd", "/etc/passwd"),
        ("/etc/top", "/"),
        ("/srv/app/steal", "/etc/shadow"),
        ("/proc/mounts", "/proc/self/mounts"),
        ("/sys/block/vda", "/sys/devices/vda"),
    ] {
        assert_eq!(machine().leads(asked, LastLink::Followed, &Trusted::Anyone), leads, "{asked}");
    }
}

#[test]
fn what_does_not_exist_leads_to_where_it_would_be() {
    for (asked, leads) in [
        ("/none", "/none -"),
        ("/var/run/a/b", "/run/a/b -"),
        ("/etc/passwd/x", "/etc/passwd/x -"),
        ("/etc/release/x", "/usr/lib/release/x -"),
    ] {
        assert_eq!(machine().leads(asked, LastLink::Followed, &Trusted::Anyone), leads, "{asked}");
    }
}

#[test]
fn a_path_that_could_come_to_lead_anywhere_is_refused() {
    for (asked, code) in [
        ("/etc/dangling", "UNRESOLVABLE_PATH"),
        ("/etc/dangling/x", "UNRESOLVABLE_PATH"),
        ("/etc/deep", "UNRESOLVABLE_PATH"),
        ("/proc/7/cwd", "UNRESOLVABLE_PATH"),
        ("/proc/7/cwd/passwd", "UNRESOLVABLE_PATH"),
        ("/etc/loop", "IO_ERROR"),
        ("/etc/ping", "IO_ERROR"),
        ("/etc/../etc/passwd", "UNRESOLVABLE_PATH"),
        ("etc/passwd", "UNRESOLVABLE_PATH"),
        ("//etc", "UNRESOLVABLE_PATH"),
        ("", "UNRESOLVABLE_PATH"),
    ] {
        assert_eq!(machine().leads(asked, LastLink::Followed, &Trusted::Anyone), code, "{asked}");
    }
}

#[test]
fn a_link_at_the_end_is_kept_where_it_is_what_is_asked_about() {
    for (asked, leads) in [
        ("/etc/dangling", "/etc/dangling"),
        ("/etc/up/etc/release", "/etc/release"),
        ("/var/run", "/var/run"),
        ("/proc/7/cwd", "/proc/7/cwd"),
        ("/lib/none", "/usr/lib/none -"),
    ] {
        assert_eq!(machine().leads(asked, LastLink::Kept, &Trusted::Root), leads, "{asked}");
    }
}

#[test]
fn with_roots_rights_only_roots_directories_are_gone_through() {
    let as_ada = Trusted::User("ada".into());
    for (asked, root, ada) in [
        ("/etc/release", "/usr/lib/release", "/usr/lib/release"),
        // The contents of the last directory don't matter.
        ("/srv/app", "/srv/app", "/srv/app"),
        ("/srv/app/log", "UNTRUSTED_DIRECTORY", "/srv/app/log"),
        ("/srv/app/none", "UNTRUSTED_DIRECTORY", "/srv/app/none -"),
        ("/srv/app/steal", "UNTRUSTED_DIRECTORY", "/etc/shadow"),
        ("/var/log/app", "UNTRUSTED_DIRECTORY", "/srv/app/log"),
        // The link comes back, but ada decides where to.
        ("/var/log/past", "UNTRUSTED_DIRECTORY", "/var/log"),
        ("/tmp/x", "UNTRUSTED_DIRECTORY", "UNTRUSTED_DIRECTORY"),
        ("/tmp/none/x", "UNTRUSTED_DIRECTORY", "UNTRUSTED_DIRECTORY"),
        // These are the kernel's own.
        ("/proc/7/stat", "/proc/7/stat", "/proc/7/stat"),
        ("/sys/block/vda", "/sys/devices/vda", "/sys/devices/vda"),
        ("/sys/fs/bpf/x", "UNTRUSTED_DIRECTORY", "UNTRUSTED_DIRECTORY"),
    ] {
        assert_eq!(machine().leads(asked, LastLink::Followed, &Trusted::Root), root, "{asked}");
        assert_eq!(machine().leads(asked, LastLink::Followed, &as_ada), ada, "{asked}");
        assert!(
            !machine().leads(asked, LastLink::Followed, &Trusted::Anyone).contains("UNTRUSTED"),
            "{asked}"
        );
    }
}

#[test]
fn in_a_shared_directory_an_account_acts_on_its_own() {
    let ada = Trusted::Owner("ada".into());
    for (asked, leads) in [
        ("/tmp/adas", "/tmp/adas"),
        ("/tmp/adas-link", "/usr/lib/release"),
        ("/tmp/x", "UNTRUSTED_DIRECTORY"),
        ("/tmp/roots-link", "UNTRUSTED_DIRECTORY"),
        ("/tmp/none", "UNTRUSTED_DIRECTORY"),
        ("/tmp/none/x", "UNTRUSTED_DIRECTORY"),
        ("/srv/app/log", "/srv/app/log"),
    ] {
        assert_eq!(machine().leads(asked, LastLink::Followed, &ada), leads, "{asked}");
        // The account nobody has no rights that a link could use.
        let nobodys = machine().leads(asked, LastLink::Followed, &Trusted::Owner("nobody".into()));
        assert_eq!(
            nobodys == "UNTRUSTED_DIRECTORY",
            asked.ends_with("none") || asked.ends_with("none/x") || asked.starts_with("/srv/app"),
            "{asked}"
        );
        // What is used later may be replaced by another account until then.
        let later = machine().leads(asked, LastLink::Followed, &Trusted::User("ada".into()));
        assert_eq!(later == "UNTRUSTED_DIRECTORY", asked.starts_with("/tmp"), "{asked}");
    }
}

#[test]
fn a_path_without_links_takes_one_look_and_each_link_one_more() {
    for (asked, looks) in [
        ("/etc/passwd", &["/", "/etc", "/etc/passwd"][..]),
        ("/lib/release", &["/", "/lib", "/lib/release", "/usr", "/usr/lib", "/usr/lib/release"]),
    ] {
        let (_, looked) = machine().resolve(asked, LastLink::Followed, &Trusted::Root).unwrap();
        assert_eq!(looked, looks, "{asked}");
    }
}

#[test]
fn only_what_belongs_to_the_kernel_is_exempt() {
    for path in ["/proc", "/proc/1/stat", "/sys", "/sys/block/vda", "/sys/fs", "/sys/fs/bpfx"] {
        assert!(is_kernels(path), "{path}");
    }
    for path in ["/", "/process", "/sysroot/a", "/srv/proc/1", "/sys/fs/bpf", "/sys/fs/bpf/x", "/etc"] {
        assert!(!is_kernels(path), "{path}");
    }
}

mod on_this_machine {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::{Path, PathBuf};

    use super::super::*;

    /// Makes a directory that everybody may write to.
    fn shared() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o777)).unwrap();
        (directory, real)
    }

    fn text(path: &Path) -> &str {
        path.to_str().unwrap()
    }

    #[test]
    fn links_lead_where_canonicalize_says() {
        let (_kept, directory) = shared();
        fs::create_dir_all(directory.join("a/b")).unwrap();
        fs::write(directory.join("a/b/file"), "").unwrap();
        symlink("a/b", directory.join("relative")).unwrap();
        symlink(directory.join("relative/../b/file"), directory.join("absolute")).unwrap();
        symlink("../../absolute", directory.join("a/b/chain")).unwrap();
        for name in ["a/b/file", "relative", "relative/file", "absolute", "a/b/chain", "relative/chain"] {
            let path = directory.join(name);
            let resolved = resolve(text(&path), LastLink::Followed, &Trusted::Anyone).unwrap();
            assert_eq!(Path::new(&resolved.path), path.canonicalize().unwrap(), "{name}");
        }
    }

    #[test]
    fn a_link_swapped_to_a_secret_leads_to_the_secret() {
        let (_kept, directory) = shared();
        let path = directory.join("log");
        fs::write(&path, "").unwrap();
        let leads = || resolve(text(&path), LastLink::Followed, &Trusted::Anyone).unwrap().path;
        assert_eq!(leads(), text(&path));
        fs::remove_file(&path).unwrap();
        symlink("/etc/passwd", &path).unwrap();
        assert_eq!(leads(), "/etc/passwd");
    }

    #[test]
    fn what_others_may_write_to_is_refused_for_root_and_named() {
        let (_kept, directory) = shared();
        let problem = resolve(text(&directory.join("x")), LastLink::Followed, &Trusted::Root).unwrap_err();
        assert_eq!(problem.code, "UNTRUSTED_DIRECTORY");
        // A directory above it, such as /tmp, is refused as well.
        let named = problem.message.split(',').next().unwrap();
        assert!(directory.starts_with(named), "{}", problem.message);
        assert!(resolve("/etc/passwd", LastLink::Followed, &Trusted::Root).is_ok());
    }

    #[test]
    fn a_link_that_leads_to_no_text_is_refused() {
        let (_kept, directory) = shared();
        let link = directory.join("link");
        symlink(std::ffi::OsStr::from_bytes(b"\xff"), &link).unwrap();
        let problem = resolve(text(&link), LastLink::Followed, &Trusted::Anyone).unwrap_err();
        assert_eq!(problem.code, "UNRESOLVABLE_PATH");
    }
}

#[test]
fn a_link_that_leads_to_a_name_with_control_characters_is_refused() {
    for target in ["/srv/a\nb", "a\u{1b}b"] {
        let mut walk = Walk::new("/link", LastLink::Followed, &Trusted::Anyone).unwrap();
        assert_eq!(walk.followed(target).unwrap_err().code, "UNRESOLVABLE_PATH", "{target:?}");
    }
}

#[test]
fn a_path_that_is_nested_too_deeply_is_refused_before_anything_is_looked_at() {
    let deep = |names: usize| format!("/{}", vec!["a"; names].join("/"));
    assert!(Walk::new(&deep(DEEPEST - 1), LastLink::Followed, &Trusted::Anyone).is_ok());
    for names in [DEEPEST, 2000] {
        let path = deep(names);
        let refused = Walk::new(&path, LastLink::Followed, &Trusted::Anyone).map(|_| ()).unwrap_err();
        assert!(refused.message.contains("nested"), "{}", refused.message);
    }
}
