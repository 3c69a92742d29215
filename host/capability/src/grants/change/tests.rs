use proptest::prelude::*;

use super::*;
use crate::access::Access;
use crate::{CommandRequest, PathRequest, Place, STAGING};

fn command(line: &str, privilege: Privilege) -> Command {
    Command { privilege, ..crate::grants::tests::command(line) }
}

fn grants(commands: &[(&str, Effect, Privilege, Risk)], paths: &[(&str, bool, Privilege)]) -> Grants {
    let mut grants = Grants::new("test");
    for (pattern, effect, privilege, risk) in commands {
        let (pattern, privilege, place) = ((*pattern).to_owned(), privilege.clone(), Place::Target);
        let (effect, risk, reason) = (*effect, *risk, String::new());
        grants.command(&CommandRequest { pattern, effect, privilege, place, risk, reason }).unwrap();
    }
    for (glob, write, privilege) in paths {
        let (glob, privilege, place) = ((*glob).to_owned(), privilege.clone(), Place::Target);
        grants.path(&PathRequest { glob, write: *write, privilege, place, reason: String::new() }).unwrap();
    }
    grants
}

fn ada() -> Privilege {
    Privilege::User("ada".into())
}

/// One grant for each effect, and one for each privilege.
fn some() -> Grants {
    grants(
        &[
            ("visudo -cf <path:/etc/sudoers.d/*>", Effect::Read, Privilege::Root, Risk::ReadOnly),
            ("sshd -t -f <path:/etc/ssh/*>", Effect::DryRun, Privilege::Root, Risk::ReadOnly),
            ("nginx -t --file=<path:/etc/nginx/**>", Effect::Read, Privilege::Caller, Risk::ReadOnly),
            ("apply -- <path:/etc/**>", Effect::Change, Privilege::Root, Risk::High),
            (
                "apt-get --simulate install -- <package>",
                Effect::DryRun,
                Privilege::RootIfAvailable,
                Risk::Low,
            ),
            ("systemctl start -- <unit>", Effect::Change, Privilege::Root, Risk::Moderate),
            (
                "systemctl start -- (debug-shell.service|rescue.service)",
                Effect::Change,
                Privilege::Root,
                Risk::Critical,
            ),
            ("systemctl start -- <text>", Effect::Read, Privilege::Root, Risk::Low),
            ("mine -- <int>", Effect::Change, Privilege::Caller, Risk::Low),
            ("hers -- <int>", Effect::Change, ada(), Risk::Low),
            ("chpasswd --password=<secret> -- <user> < stdin", Effect::Change, Privilege::Root, Risk::High),
            ("tag <text>=<secret>", Effect::Change, Privilege::Root, Risk::Low),
            ("tag <secret>=<text>", Effect::Read, Privilege::Root, Risk::Low),
            ("diff <secret>=<path:/srv/*>", Effect::Read, Privilege::Root, Risk::Low),
        ],
        &[],
    )
}

#[test]
fn a_step_may_be_any_command_that_is_granted_with_its_privilege() {
    for (line, privilege, allowed) in [
        ("systemctl start -- nginx", Privilege::Root, true),
        ("visudo -cf /etc/sudoers.d/x", Privilege::Root, true),
        ("apt-get --simulate install -- vim", Privilege::Caller, true),
        ("mine -- 1", Privilege::Caller, true),
        ("hers -- 1", ada(), true),
        // Fewer rights than the grant has.
        ("systemctl start -- nginx", Privilege::Caller, true),
        // More rights than the grant has, or those of another account.
        ("mine -- 1", Privilege::Root, false),
        ("mine -- 1", ada(), false),
        ("hers -- 1", Privilege::Root, false),
        ("hers -- 1", Privilege::Caller, false),
        ("hers -- 1", Privilege::User("bob".into()), false),
        ("apt-get --simulate install -- vim", Privilege::Root, false),
        ("systemctl stop -- nginx", Privilege::Root, false),
        ("systemctl start -- -x", Privilege::Root, false),
        ("systemctl start nginx", Privilege::Root, false),
    ] {
        let answer = some().may_change(&command(line, privilege.clone()));
        assert_eq!(answer.is_ok(), allowed, "{line} {privilege:?}");
        if let Err(refused) = answer {
            assert_eq!(refused.code, "CAPABILITY_DENIED");
            let named = ["module test ", line, "none of its grants matches"];
            assert!(named.iter().all(|word| refused.message.contains(word)), "{}", refused.message);
        }
    }
}

#[test]
fn whose_rights_a_change_takes_is_certain() {
    let grants = grants(
        &[
            ("x", Effect::Change, Privilege::Root, Risk::Low),
            ("y", Effect::Change, Privilege::RootIfAvailable, Risk::Low),
        ],
        &[("/srv/*", true, Privilege::Root)],
    );
    for line in ["x", "y"] {
        let refused = grants.may_change(&command(line, Privilege::RootIfAvailable)).unwrap_err();
        assert!(refused.message.contains("expected caller, root or user:NAME"), "{}", refused.message);
    }
    let refused = grants.may_write("/srv/x", "/srv/x", &Privilege::RootIfAvailable).unwrap_err();
    assert!(refused.message.contains("expected caller, root or user:NAME"), "{}", refused.message);
    assert!(grants.may_change(&command("x", Privilege::Root)).is_ok());
}

#[test]
fn the_gravest_grant_that_matches_says_the_risk() {
    for (line, risk, pattern) in [
        ("systemctl start -- nginx", Risk::Moderate, "systemctl start -- <unit>"),
        (
            "systemctl start -- rescue.service",
            Risk::Critical,
            "systemctl start -- (debug-shell.service|rescue.service)",
        ),
        ("systemctl start -- a/b", Risk::Low, "systemctl start -- <text>"),
    ] {
        let granted = some().may_change(&command(line, Privilege::Root)).unwrap();
        assert_eq!((granted.risk, granted.pattern.as_str()), (risk, pattern), "{line}");
    }
    // Grants with another account's rights don't count.
    let grants = grants(
        &[("x", Effect::Change, Privilege::Root, Risk::Low), ("x", Effect::Change, ada(), Risk::Critical)],
        &[],
    );
    assert_eq!(grants.may_change(&command("x", Privilege::Root)).unwrap().risk, Risk::Low);
}

#[test]
fn paths_of_a_step_are_given_to_be_asked_again() {
    let granted = some().may_change(&command("apply -- /etc/a", Privilege::Root)).unwrap();
    let [(hole, path)] = &granted.paths[..] else { panic!("{:?}", granted.paths) };
    assert_eq!((hole.to_string().as_str(), path.as_str()), ("path:/etc/**", "/etc/a"));
    assert!(some().may_lead(hole, path, "/etc/b").is_ok() && some().may_lead(hole, path, "/srv/b").is_err());
}

#[test]
fn a_step_is_shown_as_it_runs_but_for_its_secrets() {
    for (line, shown) in [
        ("chpasswd --password=hunter2 -- ada", "chpasswd '--password=<secret>' -- ada"),
        // The secret would hide what else the command does.
        ("chpasswd --password=root -- root", "chpasswd '--password=<secret>' -- root"),
        ("chpasswd --password=- -- root", "`chpasswd '--password=<secret>' -- root`"),
        ("chpasswd --password=d -- ada", "chpasswd '--password=<secret>' -- ada"),
        ("systemctl start -- nginx", "systemctl start -- nginx"),
        // Either half may be a secret.
        ("tag a=b", "tag '<secret>'"),
    ] {
        let mut given = command(line, Privilege::Root);
        given.stdin = line.starts_with("chpasswd").then(|| b"hunter2".to_vec());
        match some().may_change(&given) {
            Ok(granted) => {
                assert_eq!(command_line("", &granted.shown), shown);
                assert_eq!(granted.shown.stdin, None);
            }
            Err(refused) => assert!(refused.message.contains(shown), "{}", refused.message),
        }
    }
}

#[test]
fn a_simulation_is_what_was_granted_as_one() {
    for (line, privilege, why) in [
        ("apt-get --simulate install -- vim", Privilege::RootIfAvailable, None),
        ("apt-get --simulate install -- vim", Privilege::Caller, None),
        ("sshd -t -f /etc/ssh/sshd_config", Privilege::Root, None),
        ("apt-get --simulate install -- vim", Privilege::Root, Some("none of its grants matches")),
        ("apt-get install -- vim", Privilege::Caller, Some("none of its grants matches")),
        ("systemctl start -- nginx", Privilege::Root, Some("expected a grant with the effect dry-run")),
        ("visudo -cf /etc/sudoers.d/x", Privilege::Root, Some("expected a grant with the effect dry-run")),
    ] {
        let refused = some().may_simulate(&command(line, privilege)).err();
        assert_eq!(refused.is_some(), why.is_some(), "{line}");
        assert!(refused.is_none_or(|refused| refused.code == "CAPABILITY_DENIED"
            && why.is_some_and(|why| refused.message.contains(why) && refused.message.contains(line))));
    }
}

#[test]
fn a_file_is_validated_by_what_only_looks_at_it() {
    for (line, file, privilege, why) in [
        ("visudo -cf {}", "/etc/sudoers.d/x", Privilege::Root, None),
        ("sshd -t -f {}", "/etc/ssh/sshd_config", Privilege::Root, None),
        ("nginx -t --file={}", "/etc/nginx/a/b.conf", Privilege::Caller, None),
        // The command is granted for a change, and not for a validation.
        ("apply -- {}", "/etc/x", Privilege::Root, Some("expected a grant with the effect read or dry-run")),
        // Another file, another option, other rights.
        ("visudo -cf {}", "/etc/sudoers", Privilege::Root, Some("none of its grants matches")),
        ("visudo -cf {}", "/etc/sudoers.d/../x", Privilege::Root, Some("none of its grants matches")),
        ("visudo -cf {}", "-x", Privilege::Root, Some("none of its grants matches")),
        ("visudo --file={}", "/etc/sudoers.d/x", Privilege::Root, Some("none of its grants matches")),
        ("nginx -t --file={}", "/etc/nginx/x", Privilege::Root, Some("none of its grants matches")),
        ("nginx -t --file={}", "/etc/nginx/x", ada(), Some("none of its grants matches")),
    ] {
        match some().may_validate(&command(line, privilege), file) {
            Ok(granted) => {
                assert!(why.is_none(), "{line} {file}");
                assert_eq!(command_line("", &granted.shown).replace('\'', ""), line);
                assert!(matches!(&granted.paths[..], [(_, path)] if path == file), "{:?}", granted.paths);
            }
            Err(refused) => {
                assert_eq!(refused.code, "CAPABILITY_DENIED");
                assert!(why.is_some_and(|why| refused.message.contains(why)), "{line}: {}", refused.message);
            }
        }
    }
}

#[test]
fn one_argument_of_a_validation_stands_for_the_file() {
    for line in [
        "visudo -cf",
        "visudo -cf /etc/sudoers.d/x",
        "visudo -cf {} {}",
        "visudo -cf {}{}",
        "visudo -cf --file={} {}",
        "visudo -cf x{}",
        "visudo -cf {}x",
        "visudo -cf {}=x",
        "visudo -cf ={}={}",
        "visudo -cf --file={}/x",
        "visudo -cf --file={}.bak {}",
        "{} -cf",
        "{} {}",
        "visudo={} -cf",
        "visudo={} -cf {}",
    ] {
        let refused = some().may_validate(&command(line, Privilege::Root), "/etc/sudoers.d/x").unwrap_err();
        assert_eq!(
            (refused.code.as_str(), refused.category),
            ("INVALID_VALIDATION", Category::Validation),
            "{line}"
        );
        assert!(refused.message.contains("expected exactly one argument"), "{}", refused.message);
    }
    let mut variable = command("visudo -cf {}", Privilege::Root);
    variable.env.push(("FILE".into(), "{}".into()));
    assert_eq!(some().may_validate(&variable, "/etc/sudoers.d/x").unwrap_err().code, "INVALID_VALIDATION");
}

#[test]
fn a_validation_shows_no_secret_and_keeps_its_place_for_the_file() {
    let granted = some().may_validate(&command("diff hunter2={}", Privilege::Root), "/srv/x").unwrap();
    assert_eq!(granted.shown.args, ["<secret>={}"]);
    let refused = some().may_validate(&command("diff hunter2={}x", Privilege::Root), "/srv/x").unwrap_err();
    assert!(!refused.message.contains("hunter2"), "{}", refused.message);
}

#[test]
fn looking_goes_on_as_before() {
    assert!(some().may_look(&command("visudo -cf /etc/sudoers.d/x", Privilege::Root)).is_ok());
    let refused = some().may_look(&command("apply -- /etc/x", Privilege::Root)).unwrap_err();
    assert!(refused.message.contains("step of a plan"), "{}", refused.message);
}

/// glob, writable, privilege; path as asked and as it is, privilege; whether it may be written
#[test]
fn a_path_is_written_where_that_is_granted_as_asked_and_as_it_is() {
    use Privilege::{Caller, Root};
    let long = format!("/srv{}", "/abc".repeat(1020));
    for ((glob, write, granted), (asked, real, privilege), allowed) in [
        (("/etc/x.d/*", true, Root), ("/etc/x.d/a", "/etc/x.d/a", Root), true),
        (("/etc/x.d/*", true, Root), ("/etc/x.d/a", "/etc/x.d/b", Root), true),
        (("/etc/x.d/*", true, Root), ("/etc/x.d/a", "/etc/x.d/a", Caller), true),
        (("/etc/x.d/*", true, Caller), ("/etc/x.d/a", "/etc/x.d/a", Caller), true),
        (("/home/*/.x", true, ada()), ("/home/ada/.x", "/home/ada/.x", ada()), true),
        (("/srv/**", true, Root), ("/srv/a/b/c d", "/srv/a/b/c d", Root), true),
        (
            ("/etc/wireguard/wg0.conf", true, Root),
            ("/etc/wireguard/wg0.conf", "/etc/wireguard/wg0.conf", Root),
            true,
        ),
        (("/etc/shadow", true, Root), ("/etc/shadow", "/etc/shadow", Root), true),
        // The grant doesn't allow writing, or has other rights.
        (("/etc/x.d/*", false, Root), ("/etc/x.d/a", "/etc/x.d/a", Root), false),
        (("/etc/x.d/*", true, Caller), ("/etc/x.d/a", "/etc/x.d/a", Root), false),
        (("/etc/x.d/*", true, Root), ("/etc/x.d/a", "/etc/x.d/a", ada()), false),
        (("/etc/x.d/*", true, ada()), ("/etc/x.d/a", "/etc/x.d/a", Caller), false),
        // The path lies elsewhere.
        (("/etc/x.d/*", true, Root), ("/etc/x.d/a", "/etc/shadow", Root), false),
        (("/etc/x.d/*", true, Root), ("/tmp/a", "/etc/x.d/a", Root), false),
        (("/etc/x.d/*", true, Root), ("/etc/x.d", "/etc/x.d", Root), false),
        (("/etc/x.d/*", true, Root), ("/etc/x.d/a/b", "/etc/x.d/a/b", Root), false),
        (("/etc/x.d/*", true, Root), ("/etc/x.d/../passwd", "/etc/passwd", Root), false),
        (("/etc/x.d/*", true, Root), ("a", "a", Root), false),
        (("/**", true, Root), ("/", "/", Root), false),
        (("/srv/**", true, Root), ("/srv/a/", "/srv/a/", Root), false),
        // Secrets that the glob doesn't name.
        (("/etc/**", true, Root), ("/etc/shadow", "/etc/shadow", Root), false),
        (("/etc/*", true, Root), ("/etc/x", "/etc/shadow", Root), false),
        // The host's own copies, and names that would collide with them.
        (
            ("/srv/**", true, Root),
            ("/srv/.linux-sysadmin-0123456789abcdef/x", "/srv/.linux-sysadmin-0123456789abcdef/x", Root),
            false,
        ),
        (
            ("/srv/*", true, Root),
            ("/srv/.linux-sysadmin-0123456789abcdef", "/srv/.linux-sysadmin-0123456789abcdef", Root),
            false,
        ),
        (("/srv/*", true, Root), ("/srv/.previous", "/srv/.previous", Root), false),
        (("/srv/**", true, Root), (&long, &long, Root), false),
    ] {
        let grants = grants(&[], &[(glob, write, granted)]);
        let answer = grants.may_write(asked, real, &privilege);
        assert_eq!(answer.is_ok(), allowed, "{glob} {asked} {real} {privilege:?}: {answer:?}");
        if let Err(refused) = answer {
            assert_eq!(refused.code, "CAPABILITY_DENIED");
            let named = ["module test may not write ", &asked[..asked.len().min(100)]];
            assert!(named.iter().all(|word| refused.message.contains(word)), "{}", refused.message);
        }
    }
}

#[test]
fn what_may_be_written_may_be_read() {
    let grants = grants(&[], &[("/etc/x.d/**", true, Privilege::Root)]);
    assert!(grants.may_read("/etc/x.d/a", "/etc/x.d/a", &Privilege::Root).is_ok());
    assert!(grants.may_list("/etc/x.d", "/etc/x.d", &Privilege::Root).is_ok());
    assert!(grants.may_read("/etc/x.d/a", "/etc/x.d/a", &ada()).is_err());
}

/// The host's copies of a file may lie in a directory that doesn't tell that the file is secret.
#[test]
fn no_module_sees_what_the_host_keeps_while_a_plan_runs() {
    let grants = grants(
        &[
            ("cat -- <path:/etc/**>", Effect::Read, Privilege::Root, Risk::Low),
            ("tac -- <path>", Effect::Read, Privilege::Root, Risk::Low),
        ],
        &[("/etc/**", false, Privilege::Root), ("/etc/*/shadow", true, Privilege::Root)],
    );
    for path in ["/etc/.linux-sysadmin-0123456789abcdef", "/etc/.linux-sysadmin-0123456789abcdef/shadow"] {
        assert!(grants.may_read(path, path, &Privilege::Root).is_err(), "{path}");
        assert!(grants.may_list(path, path, &Privilege::Root).is_err(), "{path}");
        for program in ["cat", "tac"] {
            let look = command(&format!("{program} -- {path}"), Privilege::Root);
            assert!(grants.may_look(&look).is_err() && grants.may_change(&look).is_err(), "{path}");
        }
    }
}

/// The commands that the host runs to write, make and remove this path, as PROGRAM ARGUMENTS...; `dd of=` has standard
/// input.
fn of_executor(path: &str) -> Vec<Vec<String>> {
    let (parent, name) = path.rsplit_once('/').unwrap();
    let staging = format!("{parent}/{STAGING}0123456789abcdef");
    let (staged, kept) = (format!("{staging}/{name}"), format!("{staging}/.previous"));
    let (staging, staged, kept) = (staging.as_str(), staged.as_str(), kept.as_str());
    let (of, reads) = (format!("of={staged}"), [format!("if={staged}"), format!("if={kept}")]);
    let flags = "iflag=fullblock,nofollow,nonblock,skip_bytes,count_bytes";
    let stat = ["stat", "--format=%f:%u:%g:%s:%Y:%h:%D:%i:%U:%G:%n", "--"];
    let ls =
        ["ls", "--almost-all", "--format=single-column", "--sort=none", "--quoting-style=c", "--", staging];
    let mut all = vec![
        vec!["mkdir", "--mode=0700", "--", staging],
        vec!["mkdir", "--mode=0755", "--", path],
        vec!["cp", "--attributes-only", "--preserve=all", "--no-dereference", "--", path, staged],
        vec!["dd", &of, "oflag=nofollow", "conv=fsync", "bs=65536", "status=none"],
        vec!["chmod", "--", "0644", staged],
        vec!["chmod", "--", "0644", path],
        vec!["mv", "--no-clobber", "--no-target-directory", "--", path, path],
        vec!["chown", "--no-dereference", "--", "root:www-data", staged],
        vec!["chown", "--no-dereference", "--", "root:www-data", path],
        vec!["ln", "--no-target-directory", "--", path, kept],
        vec!["mv", "--no-target-directory", "--", staged, path],
        vec!["mv", "--no-target-directory", "--", path, kept],
        vec!["mv", "--no-target-directory", "--", kept, path],
        vec!["rmdir", "--", staging],
        vec!["rmdir", "--", path],
        vec!["restorecon", "--", path],
        [&stat[..], &[staging, staged, kept]].concat(),
        [&stat[..], &["/", parent, path]].concat(),
        vec!["readlink", "--zero", "--", staged, kept],
        ls.to_vec(),
    ];
    // The parent of a path directly below the root.
    if parent.is_empty() {
        all.retain(|args| !args.contains(&""));
    }
    all.extend([staged, kept, path].map(|path| vec!["rm", "--force", "--", path]));
    all.extend([staged, path, staging].map(|path| vec!["sync", "--", path]));
    for read in &reads {
        all.push(vec!["dd", read, flags, "bs=65536", "skip=0", "count=10", "status=none"]);
    }
    all.into_iter().map(|args| args.into_iter().map(str::to_owned).collect()).collect()
}

fn allows(access: &Access, argv: &[String]) -> bool {
    let stdin = argv[1].starts_with("of=");
    access.verbs.iter().any(|verb| verb.allows(&argv[0], &argv[1..], &[], stdin).is_some())
}

#[test]
fn every_command_of_the_host_for_a_granted_path_is_a_verb() {
    for (glob, privilege, path) in [
        ("/etc/systemd/system/*", Privilege::Root, "/etc/systemd/system/nginx.service"),
        ("/etc/systemd/system/*.service", Privilege::Root, "/etc/systemd/system/a b.service"),
        ("/etc/app/**", Privilege::Root, "/etc/app/x"),
        ("/etc/app/**", Privilege::Root, "/etc/app/a/b/.hidden"),
        ("/srv/**/x.conf", Privilege::Root, "/srv/a/b/x.conf"),
        ("/home/*/.config/x", ada(), "/home/ada/.config/x"),
        ("/etc/motd", Privilege::Root, "/etc/motd"),
        ("/swapfile", Privilege::Root, "/swapfile"),
        // Secrets that the glob names.
        ("/etc/shadow", Privilege::Root, "/etc/shadow"),
        ("/etc/wireguard/wg0.conf", Privilege::Root, "/etc/wireguard/wg0.conf"),
        ("/home/*/.gnupg/gpg.conf", ada(), "/home/ada/.gnupg/gpg.conf"),
    ] {
        let grants = grants(&[], &[(glob, true, privilege.clone())]);
        grants.may_write(path, path, &privilege).unwrap();
        for argv in of_executor(path) {
            assert!(allows(&grants.access(&privilege), &argv), "{glob}: {argv:?}");
            assert!(!allows(&grants.access(&Privilege::User("bob".into())), &argv), "{glob}: {argv:?}");
        }
    }
}

#[test]
fn no_command_of_the_host_leads_out_of_what_is_granted() {
    let grants = grants(&[], &[("/etc/app/*", true, Privilege::Root), ("/srv/**", true, Privilege::Root)]);
    let access = grants.access(&Privilege::Root);
    let about =
        ["mkdir", "cp", "dd", "chmod", "chown", "ln", "mv", "rm", "rmdir", "sync", "restorecon", "ls"];
    for path in [
        "/etc/passwd",
        "/etc/shadow",
        "/etc/app",
        "/etc/app/a/b",
        "/etc/app/../passwd",
        "/etc/app/./a",
        "/etc/app//a",
        "/etc/app/a\nb",
        "/etc/app/a\u{202e}b",
        "/srv",
        "/srv/.ssh/id_rsa",
        "/srv/../etc/passwd",
    ] {
        for argv in of_executor(path).iter().filter(|argv| about.contains(&argv[0].as_str())) {
            let inside = !argv.iter().any(|arg| arg == path);
            assert!(inside || !allows(&access, argv), "{argv:?}");
        }
    }
    for line in [
        // An option in place of a path, and an operand of dd's.
        "rm --force -- --recursive",
        "rm --force --recursive -- /etc/app/x",
        "rm --force -- /etc/app/x /etc/passwd",
        "mv --no-target-directory -- -t /etc/app/x",
        "mv --target-directory=/ -- /etc/app/x",
        "mv --no-target-directory -- /etc/app/x /etc/passwd",
        "ln --no-target-directory -- /etc/passwd /etc/app/x",
        "ln --symbolic --no-target-directory -- /etc/app/x /etc/app/.linux-sysadmin-0123456789abcdef/.previous",
        "cp --attributes-only --preserve=all --no-dereference -- /etc/shadow /etc/app/.linux-sysadmin-0123456789abcdef/x",
        "chmod -- 0644 --reference=/etc/shadow",
        "chmod -- 4755 /etc/passwd",
        "mv --no-clobber --no-target-directory -- /etc/app/x /etc/passwd",
        "mv --no-clobber --no-target-directory -- /etc/passwd /etc/app/x",
        "mv --no-clobber --no-target-directory -- /etc/app/x /etc/app/.linux-sysadmin-0123456789abcdef/x",
        "chmod 0644 /etc/app/.linux-sysadmin-0123456789abcdef/x",
        "chown --no-dereference -- 0:0 /etc/app/x",
        "chown --no-dereference -- --from=root:root /etc/app/x",
        "chown --recursive -- root:root /etc/app/x",
        "mkdir --mode=0777 -- /etc/app/.linux-sysadmin-0123456789abcdef/x",
        "mkdir --mode=0700 --parents -- /etc/app/.linux-sysadmin-0123456789abcdef",
        "dd of=/etc/app/x oflag=nofollow conv=fsync bs=65536 status=none",
        "dd of=/etc/app/.linux-sysadmin-0123456789abcdef/x oflag=nofollow conv=fsync bs=65536 status=none if=/etc/shadow",
        "dd of=/etc/app/.linux-sysadmin-0123456789abcdef/x if=/etc/shadow bs=65536 status=none",
        "dd of=if=/etc/shadow oflag=nofollow conv=fsync bs=65536 status=none",
        "ls --almost-all --format=single-column --sort=none --quoting-style=c -- /etc",
    ] {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let with_stdin =
            |stdin| access.verbs.iter().any(|verb| verb.allows(&argv[0], &argv[1..], &[], stdin).is_some());
        assert!(!with_stdin(false) && !with_stdin(true), "{line}");
    }
}

#[test]
fn what_is_to_stay_secret_gets_no_name_by_which_it_is_none() {
    let mut grants = grants(&[], &[("/**", true, Privilege::Root)]);
    grants.deny("/var/lib/app/secrets/*").unwrap();
    // What is denied at any depth stays so, unless the directory that moves gives it its name.
    grants.deny("/**/.hub/config.json").unwrap();
    grants.deny("/**/passwords.yaml").unwrap();
    for (from, to, is_directory, may) in [
        ("/srv/a", "/srv/b", true, true),
        ("/srv/x/.hub", "/srv/x/hub", true, false),
        ("/srv/passwords.yaml", "/srv/x.yaml", false, false),
        ("/srv/a", "/srv/b", false, true),
        ("/srv/web/.ssh", "/srv/web/ssh", true, false),
        ("/srv/web/.ssh", "/srv/old/.ssh", true, true),
        ("/srv/backup/etc", "/srv/backup/etc2", true, false),
        ("/srv/backup/etc", "/srv/copy/etc", true, true),
        ("/srv/chroot/etc/ssh", "/srv/chroot/ssh", true, false),
        ("/home/ada/.config/gh", "/home/ada/gh", true, false),
        ("/var/lib/app", "/var/lib/app2", true, false),
        ("/var/lib/app/secrets/key", "/var/lib/app/key", false, false),
        ("/var/lib/app/data", "/var/lib/app/data2", true, true),
        ("/var/lib/app", "/var/lib/app2", false, true),
        // A name that is no glob.
        ("/srv/a[1]", "/srv/b", true, false),
    ] {
        let found = grants.may_move(from, to, is_directory);
        assert_eq!(found.is_ok(), may, "{from} {to}: {found:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// A grant that lets plans write a path allows the host's own commands for that path as well.
    #[test]
    fn a_path_that_may_be_written_has_all_its_verbs(
        names in prop::collection::vec("[a-z.][a-z0-9 .:+ü-]{0,6}[a-z]", 1..6),
        star in 0usize..7,
        keep in 0usize..3,
    ) {
        let path = format!("/{}", names.join("/"));
        let mut glob = names.clone();
        let last = glob.len() - 1;
        match star {
            0..=4 => glob[star.min(last)] = ["*".to_owned(), format!("{}*", &names[star.min(last)][..1]), "**".to_owned()][keep].clone(),
            _ => glob.truncate(last.max(1)),
        }
        if star == 5 {
            glob.push("**".to_owned());
        }
        let grants = grants(&[], &[(&format!("/{}", glob.join("/")), true, Privilege::Root)]);
        prop_assume!(grants.may_write(&path, &path, &Privilege::Root).is_ok());
        let access = grants.access(&Privilege::Root);
        for argv in of_executor(&path) {
            prop_assert!(allows(&access, &argv), "{:?}: {:?}", glob, argv);
        }
    }

    /// The host's own writing commands are allowed only for paths that the grant lets plans write.
    #[test]
    fn a_path_that_may_not_be_written_is_moved_nowhere(path in "/(etc|srv|a)(/[-a.=*\\PC]{0,4}){0,3}") {
        let grants = grants(&[], &[("/etc/a*", true, Privilege::Root), ("/srv/**", true, Privilege::Root)]);
        let access = grants.access(&Privilege::Root);
        prop_assume!(grants.may_write(&path, &path, &Privilege::Root).is_err() && !path.ends_with('/'));
        let argv = ["restorecon", "--", &path].map(str::to_owned);
        prop_assert!(!allows(&access, &argv) || path.ends_with("/.previous"), "{}", path);
    }
}
