use std::time::Duration;

use super::*;
use host_base::Risk;

pub(super) fn command(line: &str) -> Command {
    let mut words = line.split(' ').map(str::to_owned);
    Command::new(words.next().unwrap(), words, Duration::from_secs(1))
}

fn request(pattern: &str, effect: Effect, privilege: Privilege) -> CommandRequest {
    let (pattern, place, risk) = (pattern.to_owned(), Place::Target, Risk::ReadOnly);
    CommandRequest { pattern, effect, privilege, place, risk, reason: String::new() }
}

fn files(glob: &str, privilege: Privilege) -> PathRequest {
    let (glob, place) = (glob.to_owned(), Place::Target);
    PathRequest { glob, write: false, privilege, place, reason: String::new() }
}

fn grants() -> Grants {
    let mut grants = Grants::new("test");
    for (pattern, effect, privilege) in [
        ("systemctl show -- <unit>...", Effect::Read, Privilege::Caller),
        ("A=b apt-get --simulate install -- <package>", Effect::DryRun, Privilege::RootIfAvailable),
        ("login --password=<secret> -- <user>", Effect::Read, Privilege::Caller),
        ("sort < stdin", Effect::Read, Privilege::Caller),
        ("tail --lines=<int> -- <path:/var/log/*>...", Effect::Read, Privilege::Caller),
        ("systemctl restart -- <unit>", Effect::Change, Privilege::Root),
    ] {
        grants.command(&request(pattern, effect, privilege)).unwrap();
    }
    for glob in ["/proc/*/stat", "/sys/block/**", "/etc/**"] {
        grants.path(&files(glob, Privilege::Caller)).unwrap();
    }
    grants
}

#[test]
fn a_file_with_secrets_is_one_by_each_of_its_names() {
    let mut grants = grants();
    grants.path(&files("/etc/ssl/private/own.key", Privilege::Root)).unwrap();
    for (other, granted) in [
        ("/etc/hosts", true),
        ("/srv/not-granted", true),
        ("/etc/ssl/private/own.key", true),
        ("/etc/ssl/private/other.key", false),
        ("/etc/shadow", false),
    ] {
        assert_eq!(grants.may_be("/srv/bind/x", other).is_ok(), granted, "{other}");
    }
    let denied = grants.may_be("/srv/bind/shadow", "/etc/shadow").unwrap_err();
    assert_eq!(denied.code, "CAPABILITY_DENIED");
    assert!(denied.message.contains("/srv/bind/shadow, which leads to /etc/shadow"), "{}", denied.message);
}

#[test]
fn what_only_a_wildcard_grants_to_read_is_looked_through() {
    let mut grants = grants();
    grants.path(&files("/etc/app/named.conf", Privilege::Caller)).unwrap();
    grants.path(&PathRequest { write: true, ..files("/etc/app/written/*", Privilege::Root) }).unwrap();
    grants.path(&files("/srv/roots.conf", Privilege::Root)).unwrap();
    grants.path(&files("/srv/*", Privilege::Caller)).unwrap();
    for (path, privilege, is_looked_through) in [
        ("/etc/hosts", Privilege::Caller, true),
        ("/sys/block/sda/size", Privilege::Caller, true),
        // Both a wildcard and a name grant it.
        ("/etc/app/named.conf", Privilege::Caller, false),
        // Plans may change a part of it.
        ("/etc/app/written/x", Privilege::Root, false),
        ("/etc/app/written/x", Privilege::Caller, false),
        ("/srv/x", Privilege::Caller, true),
        ("/srv/roots.conf", Privilege::Caller, false),
    ] {
        assert!(!grants.is_looked_through(path, &privilege), "{path}: it is only for those that want it");
        let looking = grants.clone().with_wildcards_looked_through();
        assert_eq!(looking.is_looked_through(path, &privilege), is_looked_through, "{path} {privilege:?}");
        assert_eq!(looking.with([&grants]).is_looked_through(path, &privilege), is_looked_through, "{path}");
    }
}

#[test]
fn the_output_of_a_look_at_files_that_only_a_wildcard_names_is_looked_through() {
    let mut grants = grants();
    for pattern in ["cat -- <path:/etc/app.conf>", "head -- <path>"] {
        grants.command(&request(pattern, Effect::Read, Privilege::Caller)).unwrap();
    }
    for (line, is_looked_through) in [
        ("tail --lines=3 -- /var/log/syslog", true),
        ("head -- /srv/x", true),
        ("cat -- /etc/app.conf", false),
        ("systemctl show -- nginx.service", false),
    ] {
        assert!(!grants.may_look(&command(line)).unwrap().is_looked_through, "{line}");
        let looking = grants.clone().with_wildcards_looked_through();
        assert_eq!(looking.may_look(&command(line)).unwrap().is_looked_through, is_looked_through, "{line}");
    }
}

#[test]
fn who_holds_a_file_is_asked_only_of_what_may_be_read_or_written() {
    let mut grants = grants();
    grants.path(&PathRequest { write: true, ..files("/srv/*", Privilege::Root) }).unwrap();
    for (asked, real, granted) in [
        ("/etc/hosts", "/etc/hosts", true),
        ("/srv/a", "/srv/a", true),
        ("/srv/a", "/etc/a", true),
        ("/etc/shadow", "/etc/shadow", false),
        ("/etc/hosts", "/etc/shadow", false),
        ("/srv/a", "/home/joe/a", false),
        ("/home/joe/a", "/srv/a", false),
        ("/var/log/syslog", "/var/log/syslog", false),
        ("/srv/../home/a", "/home/a", false),
    ] {
        assert_eq!(grants.may_lock(asked, real).is_ok(), granted, "{asked} {real}");
    }
    let denied = grants.may_lock("/home/joe/a", "/home/joe/a").unwrap_err();
    assert_eq!(denied.code, "CAPABILITY_DENIED");
    assert!(denied.message.contains("may not ask who holds /home/joe/a"), "{}", denied.message);
}

#[test]
fn without_a_grant_nothing_is_allowed() {
    let none = Grants::new("none");
    assert_eq!(none.may_look(&command("true")).unwrap_err().code, "CAPABILITY_DENIED");
    assert_eq!(
        none.may_read("/proc/stat", "/proc/stat", &Privilege::Caller).unwrap_err().code,
        "CAPABILITY_DENIED"
    );
}

#[test]
fn a_command_needs_a_grant_that_matches_the_whole_of_it() {
    let grants = grants();
    assert!(grants.may_look(&command("systemctl show -- nginx ssh.socket")).is_ok());
    for refused in [
        "systemctl show nginx",
        "systemctl show --",
        "systemctl show -- -Hhost",
        "systemctl show --all -- nginx",
        "systemctl -Hhost show -- nginx",
        "/usr/bin/systemctl show -- nginx",
        "journalctl show -- nginx",
    ] {
        assert_eq!(grants.may_look(&command(refused)).unwrap_err().code, "CAPABILITY_DENIED", "{refused}");
    }
}

#[test]
fn what_the_host_cannot_keep_an_eye_on_is_not_granted() {
    let mut grants = Grants::new("test");
    let mut away = request("id", Effect::Read, Privilege::Caller);
    away.place = Place::Controller;
    assert!(grants.command(&away).unwrap_err().to_string().contains("controller"));
    for (glob, privilege, place, why) in [
        ("/usr/share/zoneinfo/**", Privilege::Caller, Place::Controller, "on the controller, to be written"),
        ("/", Privilege::Root, Place::Target, "the root directory"),
        ("/etc/motd", Privilege::RootIfAvailable, Place::Target, "caller, root or user:NAME"),
        ("/etc/.linux-sysadmin-*/motd", Privilege::Root, Place::Target, "the host keeps its own copies"),
    ] {
        let written = PathRequest { write: true, place, ..files(glob, privilege) };
        let error = grants.path(&written).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains(glob), "{error}");
    }
    for copies in ["/etc/.linux-sysadmin-*/shadow", "/etc/.linux-sysadmin-*/**", "/.linux-sysadmin-0/a/b/c"] {
        assert!(grants.path(&files(copies, Privilege::Root)).is_err(), "{copies}");
        let cat = format!("cat -- <path:{copies}>");
        assert!(grants.command(&request(&cat, Effect::Read, Privilege::Root)).is_err(), "{copies}");
    }
    for user in ["#0", "", "-x", "a b"] {
        let user = || Privilege::User(user.into());
        assert!(grants.command(&request("id", Effect::Read, user())).is_err(), "{:?}", user());
        assert!(grants.path(&files("/etc/passwd", user())).is_err(), "{:?}", user());
    }
}

#[test]
fn a_command_that_is_granted_for_changes_is_none_to_look_by() {
    let mut restart = command("systemctl restart -- nginx");
    restart.privilege = Privilege::Root;
    let refused = grants().may_look(&restart).unwrap_err();
    assert_eq!(refused.code, "CAPABILITY_DENIED");
    assert!(refused.message.contains("step of a plan"), "{}", refused.message);
}

#[test]
fn paths_are_given_to_be_asked_again_for_where_they_lead() {
    let looking = grants().may_look(&command("tail --lines=5 -- /var/log/a /var/log/b")).unwrap();
    let values: Vec<_> = looking.paths.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["/var/log/a", "/var/log/b"]);
    for (hole, value) in &looking.paths {
        assert!(grants().may_lead(hole, value, "/var/log/c").is_ok());
        for outside in ["/etc/shadow", "/var/log/a/b", "/var/log/../log/a", "relative"] {
            let refused = grants().may_lead(hole, value, outside).unwrap_err();
            assert_eq!(refused.code, "CAPABILITY_DENIED");
            assert!(refused.message.contains("expected <path:/var/log/*>"), "{}", refused.message);
        }
    }
}

#[test]
fn a_secret_is_not_shown() {
    let shown = grants().may_look(&command("login --password=hunter2 -- ada")).unwrap().shown;
    assert_eq!(command_line("", &shown), "login '--password=<secret>' -- ada");
}

#[test]
fn what_could_be_a_secret_is_not_shown_where_the_command_is_refused() {
    let mut grants = grants();
    grants.command(&request("vault store <secret> --as=<user>", Effect::Read, Privilege::Caller)).unwrap();
    for (refused, shown) in [
        ("login --password=hunter2 -- -x", "`login '--password=<secret>' -- -x`"),
        ("login --password=-hunter2 -- ada", "`login '--password=<secret>' -- ada`"),
        ("login --password hunter2", "`login --password hunter2`"),
        ("vault store hunter2 --force", "`vault store '<secret>' '<secret>'`"),
        ("systemctl show hunter2", "`systemctl show hunter2`"),
    ] {
        let refused = grants.may_look(&command(refused)).unwrap_err();
        assert!(refused.message.contains(shown), "{}", refused.message);
    }
}

#[test]
fn requests_are_bounded_and_so_are_the_commands_for_them() {
    let mut grants = Grants::new("test");
    let command = |number: usize| request(&format!("id -- a{number}"), Effect::Read, Privilege::Caller);
    (0..500).for_each(|number| grants.command(&command(number)).unwrap());
    assert!(matches!(grants.command(&command(500)), Err(GrantError::TooMany)));
    let mut grants = Grants::new("test");
    let add = |number: usize| {
        let request = PathRequest { write: true, ..files(&format!("/srv/{number}/*"), Privilege::Root) };
        grants.path(&request)
    };
    let refused = (0..400).map(add).find_map(Result::err).unwrap();
    assert!(refused.to_string().contains("at most 500 grants"), "{refused}");
}

#[test]
fn what_is_refused_is_logged_and_told_in_part_only() {
    let mut long = command("systemctl");
    long.args.push("x".repeat(1 << 20));
    assert!(grants().may_look(&long).unwrap_err().message.len() < 600);
    let path = format!("/{}", "x".repeat(1 << 20));
    assert!(grants().may_read(&path, &path, &Privilege::Caller).unwrap_err().message.len() < 600);
}

#[test]
fn a_grant_of_another_account_is_none_of_the_callers() {
    let mut grants = Grants::new("test");
    let other = || Privilege::User("www-data".into());
    grants.command(&request("cat -- <path:/srv/*>", Effect::Read, other())).unwrap();
    grants.path(&files("/srv/**", other())).unwrap();
    for (privilege, granted) in [
        (other(), true),
        (Privilege::Caller, false),
        (Privilege::Root, false),
        (Privilege::RootIfAvailable, false),
        (Privilege::User("ada".into()), false),
    ] {
        let mut cat = command("cat -- /srv/x");
        cat.privilege = privilege.clone();
        assert_eq!(grants.may_look(&cat).is_ok(), granted, "{privilege:?}");
        assert_eq!(grants.may_read("/srv/x", "/srv/x", &privilege).is_ok(), granted, "{privilege:?}");
    }
}

#[test]
fn a_privilege_is_a_ceiling() {
    let grants = grants();
    for privilege in [Privilege::Root, Privilege::RootIfAvailable, Privilege::User("ada".into())] {
        let mut show = command("systemctl show -- nginx");
        show.privilege = privilege;
        assert!(grants.may_look(&show).is_err());
    }
    let mut simulate = command("apt-get --simulate install -- nginx");
    simulate.env.push(("A".into(), "b".into()));
    assert!(grants.may_look(&simulate).is_ok());
    simulate.privilege = Privilege::RootIfAvailable;
    assert!(grants.may_look(&simulate).is_ok());
    simulate.privilege = Privilege::Root;
    assert!(grants.may_look(&simulate).is_err());
}

#[test]
fn any_account_means_every_one_but_root() {
    let mut grants = Grants::new("test");
    grants.path(&files("/home/**", Privilege::User(ANY_USER.into()))).unwrap();
    grants.command(&request("crontab -l", Effect::Read, Privilege::User(ANY_USER.into()))).unwrap();
    for (privilege, granted) in [
        (Privilege::User("ada".into()), true),
        (Privilege::User("www-data".into()), true),
        (Privilege::User("root".into()), false),
        (Privilege::User("#0".into()), false),
        (Privilege::User("*".into()), false),
        (Privilege::User("-x".into()), false),
        (Privilege::Root, false),
        (Privilege::RootIfAvailable, false),
        (Privilege::Caller, false),
    ] {
        let list = Command { privilege: privilege.clone(), ..command("crontab -l") };
        assert_eq!(grants.may_look(&list).is_ok(), granted, "{privilege:?}");
        assert_eq!(grants.may_read("/home/x", "/home/x", &privilege).is_ok(), granted, "{privilege:?}");
    }
    // A grant for one account is for that account alone.
    let mut grants = Grants::new("test");
    grants.path(&files("/home/**", Privilege::User("ada".into()))).unwrap();
    assert!(grants.may_read("/home/x", "/home/x", &Privilege::User("*".into())).is_err());
}

#[test]
fn variables_and_stdin_are_only_what_the_pattern_says() {
    let grants = grants();
    let mut simulate = command("apt-get --simulate install -- nginx");
    assert!(grants.may_look(&simulate).is_err());
    simulate.env = vec![("A".into(), "c".into())];
    assert!(grants.may_look(&simulate).is_err());
    simulate.env = vec![("A".into(), "b".into()), ("LD_PRELOAD".into(), "x".into())];
    assert!(grants.may_look(&simulate).is_err());
    let mut show = command("systemctl show -- nginx");
    show.stdin = Some(Vec::new());
    assert!(grants.may_look(&show).is_err());
    let mut sort = command("sort");
    sort.stdin = Some(b"x".to_vec());
    assert!(grants.may_look(&sort).is_ok());
}

#[test]
fn a_path_is_checked_as_asked_and_as_it_is() {
    let grants = grants();
    let check = |asked, real| grants.may_read(asked, real, &Privilege::Caller).is_ok();
    assert!(check("/proc/1/stat", "/proc/1/stat"));
    assert!(check("/sys/block/vda/stat", "/sys/block/vda/stat"));
    assert!(!check("/sys/block/vda/stat", "/sys/devices/virtual/block/vda/stat"));
    assert!(check("/etc/os-release", "/etc/os-release"));
    assert!(!check("/proc/1/environ", "/proc/1/environ"));
    assert!(!check("/etc/../root/x", "/etc/../root/x"));
    assert!(!check("/etc/link", "/root/secret"));
    assert!(!check("/sys/block/vda/stat", "/etc/../root"));
    assert!(!check("relative", "relative"));
}

#[test]
fn a_directory_is_listed_where_what_is_in_it_may_be_read() {
    let grants = grants();
    let check = |path| grants.may_list(path, path, &Privilege::Caller).is_ok();
    assert!(check("/sys/block"));
    assert!(check("/etc"));
    assert!(!check("/root"));
    assert!(grants.may_list("/etc/link", "/root", &Privilege::Caller).is_err());
}

#[test]
fn the_hosts_own_commands_are_those_of_grants_that_cover_the_privilege() {
    let mut grants = Grants::new("test");
    grants.path(&files("/etc/passwd", Privilege::Caller)).unwrap();
    grants.path(&files("/etc/sudoers", Privilege::Root)).unwrap();
    grants.path(&files("/home/ada/**", Privilege::User("ada".into()))).unwrap();
    grants.command(&request("head -- <path:/srv/*>", Effect::Read, Privilege::RootIfAvailable)).unwrap();
    for (privilege, named) in [
        (Privilege::Root, &["/etc/sudoers"][..]),
        (Privilege::RootIfAvailable, &["/etc/sudoers", "/srv/*"]),
        (Privilege::User("ada".into()), &["/home/ada/**"]),
        (Privilege::User("bob".into()), &[]),
    ] {
        let verbs = grants.access(&privilege).verbs;
        for glob in ["/etc/passwd", "/etc/sudoers", "/home/ada/**", "/srv/*"] {
            let hole = format!("<path:{glob}>");
            let found = verbs.iter().any(|verb| verb.text().contains(&hole));
            assert_eq!(found, named.contains(&glob), "{privilege:?} {glob}");
        }
    }
}

#[test]
fn a_secret_is_covered_only_by_a_grant_that_names_it() {
    let mut grants = grants();
    let shadow = |grants: &Grants| grants.may_read("/etc/shadow", "/etc/shadow", &Privilege::Caller).is_ok();
    assert!(!shadow(&grants));
    grants.path(&files("/etc/shadow", Privilege::Caller)).unwrap();
    assert!(shadow(&grants));
}

#[test]
fn a_command_line_is_shown_as_a_shell_would_need_it() {
    let mut shown = command("printf %s");
    shown.args.extend(["a b".into(), "it's".into(), String::new()]);
    shown.env.push(("LANG".into(), "C x".into()));
    assert_eq!(command_line("sudo -n ", &shown), "sudo -n LANG='C x' printf %s 'a b' 'it'\\''s' ''");
}

#[test]
fn where_any_program_may_run_the_host_may_see_where_paths_lead() {
    let mut grants = Grants::new("test");
    let request =
        AnyProgramRequest { privilege: Privilege::Root, place: Place::Target, reason: String::new() };
    grants.any_program(&request).unwrap();
    let access = grants.access(&Privilege::Root);
    let allows = |line: &str| {
        let Command { program, args, .. } = command(line);
        access.verbs.iter().any(|verb| verb.allows(&program, &args, &[], false).is_some())
    };
    let stat = "stat --format=%f:%u:%g:%s:%Y:%h:%D:%i:%U:%G:%n --";
    for line in [&format!("{stat} /"), &format!("{stat} / /etc /etc/hosts"), "readlink --zero -- /etc/x"] {
        assert!(allows(line), "{line}");
    }
    for line in ["rm --force -- /etc/x", "ls /etc"] {
        assert!(!allows(line), "{line}");
    }
    assert!(grants.access(&Privilege::User("admin".to_owned())).verbs.is_empty());
}

#[test]
fn an_own_program_has_its_place_and_a_whole_sha256() {
    let request = |path: &str, sha256: &str| OwnProgramRequest {
        path: path.to_owned(),
        sha256: sha256.to_owned(),
        reason: String::new(),
    };
    let (path, hash) = ("/usr/local/lib/linux-sysadmin/copy", "0af".repeat(21) + "0");
    let mut grants = Grants::new("test");
    grants.own_program(&request(path, &hash)).unwrap();
    assert_eq!(grants.own_program_at(path), Some(hash.as_str()));
    assert_eq!(grants.with([]).own_program_at(path), Some(hash.as_str()));
    assert_eq!(grants.own_program_at("/usr/local/lib/linux-sysadmin/other"), None);
    assert!(grants.is_for_own_programs("/usr/local/lib/linux-sysadmin"));
    assert!(!grants.is_for_own_programs("/usr/local/lib"));
    assert!(!Grants::new("test").is_for_own_programs("/usr/local/lib/linux-sysadmin"));
    for (path, hash) in [
        ("/usr/bin/sudo", hash.as_str()),
        ("/usr/local/lib/linux-sysadmin/", &hash),
        ("/usr/local/lib/linux-sysadmin/../x", &hash),
        ("/usr/local/lib/linux-sysadmin/a/b", &hash),
        ("/usr/local/lib/linux-sysadmin/.x", &hash),
        (path, ""),
        (path, &hash[1..]),
        (path, &hash.to_uppercase()),
    ] {
        assert!(Grants::new("test").own_program(&request(path, hash)).is_err(), "{path} {hash}");
    }
}

#[test]
fn a_tool_of_another_module_is_called_by_its_exact_name_only() {
    let mut own = Grants::new("triage");
    own.tool("svc_list").unwrap();
    let together = Grants::new("triage").with([&own]);
    for grants in [own, together] {
        grants.may_call("svc_list").unwrap();
        for other in ["", "svc", "svc_", "svc_list ", "SVC_LIST", "svc_lists", "svc_*", "log_search"] {
            let denied = grants.may_call(other).unwrap_err();
            assert_eq!(denied.code, "CAPABILITY_DENIED", "{other}");
            assert!(denied.message.contains(&format!("may not call {other}:")), "{}", denied.message);
        }
    }
    assert_eq!(Grants::new("triage").may_call("svc_list").unwrap_err().code, "CAPABILITY_DENIED");
    let long = "a".repeat(65);
    for name in ["", "*", "svc_*", "svc list", "Svc_list", "svc-list", "svc_list\u{200b}", &long] {
        assert!(Grants::new("triage").tool(name).is_err(), "{name:?}");
    }
    Grants::new("triage").tool(&long[1..]).unwrap();
}

#[test]
fn signals_need_a_grant_with_these_rights() {
    let signals = |privilege, place| SignalRequest { privilege, place, reason: String::new() };
    let user = |name: &str| Privilege::User(name.to_owned());
    for (granted, asked, may) in [
        (None, Privilege::Caller, false),
        (Some(Privilege::Caller), Privilege::Caller, true),
        (Some(Privilege::Caller), Privilege::Root, false),
        (Some(Privilege::Root), Privilege::Root, true),
        (Some(Privilege::Root), Privilege::Caller, true),
        // Whose rights a change takes must be certain.
        (Some(Privilege::Root), Privilege::RootIfAvailable, false),
        (Some(Privilege::Root), user("ada"), false),
        (Some(user("*")), user("ada"), true),
        (Some(user("*")), user("root"), false),
        (Some(user("*")), Privilege::Root, false),
    ] {
        let mut own = Grants::new("test");
        if let Some(privilege) = granted.clone() {
            own.signals(&signals(privilege, Place::Target)).unwrap();
        }
        let together = Grants::new("test").with([&own]);
        for grants in [own, together] {
            let answer = grants.may_signal(&asked);
            assert_eq!(answer.is_ok(), may, "{granted:?} {asked:?}");
            assert!(answer.is_ok() || answer.is_err_and(|problem| problem.code == "CAPABILITY_DENIED"));
        }
    }
    for request in [
        signals(Privilege::Root, Place::Controller),
        signals(Privilege::RootIfAvailable, Place::Target),
        signals(user("#0"), Place::Target),
    ] {
        assert!(Grants::new("test").signals(&request).is_err(), "{request:?}");
    }
    // Any program is no grant for signals: those are steps of their own.
    let mut any = Grants::new("test");
    let place = Place::Target;
    any.any_program(&AnyProgramRequest { privilege: Privilege::Root, place, reason: String::new() }).unwrap();
    assert!(any.may_signal(&Privilege::Root).is_err());
}
