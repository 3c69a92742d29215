use proptest::prelude::*;

use super::*;
use crate::Place;
use crate::path::PathText;
use host_base::Risk;

const STAT: [&str; 2] = ["--format=%f:%u:%g:%s:%Y:%h:%D:%i:%U:%G:%n", "--"];
const LS: [&str; 5] = ["--almost-all", "--format=single-column", "--sort=none", "--quoting-style=c", "--"];

fn verbs(glob: &str) -> Vec<Verb> {
    verbs_for(&files(glob, false, Privilege::Root)).unwrap()
}

fn files(glob: &str, write: bool, privilege: Privilege) -> PathRequest {
    let (glob, place) = (glob.to_owned(), Place::Target);
    PathRequest { glob, write, privilege, place, reason: String::new() }
}

fn allowed(verbs: &[Verb], program: &str, args: &[&str]) -> bool {
    let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
    verbs.iter().any(|verb| verb.allows(program, &args, &[], false).is_some())
}

fn may_stat(verbs: &[Verb], path: &str) -> bool {
    allowed(verbs, "stat", &[&STAT[..], &[path]].concat())
}

fn may_list(verbs: &[Verb], path: &str) -> bool {
    allowed(verbs, "ls", &[&LS[..], &[path]].concat())
}

#[test]
fn the_templates_can_be_read_and_each_takes_the_path() {
    let templates: Templates = serde_yaml::from_str(include_str!("../verbs.yaml")).unwrap();
    assert_eq!((templates.look.len(), templates.read.len(), templates.write.len()), (2, 2, 18));
    assert_eq!(templates.moves.len(), 1);
    for verb in verbs("/var/log/**") {
        let pattern = verb.pattern().unwrap();
        assert!(pattern.text().contains("<path:/var/log/**>"), "{pattern}");
        assert!(!["ABOVE", "GLOB", "LISTED"].iter().any(|word| pattern.text().contains(word)), "{pattern}");
    }
}

#[test]
fn what_is_granted_and_what_is_above_it_may_be_looked_at_and_nothing_else() {
    for (glob, yes, no) in [
        (
            "/var/log/**",
            &["/", "/var", "/var/log", "/var/log/a", "/var/log/a/b c"][..],
            &["/etc", "/var/lib", "/var/log/../lib", "/var/log/.ssh/id_rsa", "-L", ""][..],
        ),
        ("/etc/shadow", &["/", "/etc", "/etc/shadow"], &["/etc/gshadow", "/etc/passwd"]),
        (
            "/home/*/.profile",
            &["/home", "/home/ada", "/home/ada/.profile"],
            &["/home/ada/.bashrc", "/home/a/b/.profile"],
        ),
        ("/srv/**/conf", &["/srv", "/srv/a", "/srv/a/b/conf"], &["/opt"]),
        ("/**", &["/", "/a", "/a/b"], &["/etc/shadow"]),
    ] {
        let verbs = verbs(glob);
        for path in yes {
            assert!(may_stat(&verbs, path), "{glob} {path}");
        }
        for path in no {
            assert!(!may_stat(&verbs, path), "{glob} {path}");
        }
    }
}

#[test]
fn a_directory_above_is_looked_at_but_neither_read_nor_listed() {
    let verbs = verbs("/var/log/app/*");
    let dd = |path: &str| {
        let path = format!("if={path}");
        let flags = "iflag=fullblock,nofollow,nonblock,skip_bytes,count_bytes";
        let rest = ["bs=65536", "skip=0", "count=10", "status=none"];
        allowed(&verbs, "dd", &[&[path.as_str(), flags], &rest[..]].concat())
    };
    assert!(dd("/var/log/app/x") && may_list(&verbs, "/var/log/app/x"));
    for path in ["/", "/var", "/var/log", "/var/log/app", "/var/log/other/x"] {
        assert!(!dd(path) && !may_list(&verbs, path), "{path}");
    }
}

#[test]
fn what_may_be_listed_is_what_the_glob_says() {
    for (glob, directory) in
        [("/var/log/**", "/var/log"), ("/**", "/"), ("/a/**/b/**", "/a/x/b"), ("/etc/apt", "/etc/apt")]
    {
        assert!(Glob::parse(glob).unwrap().covers_listing(&PathText::new(directory)), "{glob}");
        assert!(may_list(&verbs(glob), directory), "{glob} {directory}");
    }
}

#[test]
fn as_the_caller_no_command_is_needed() {
    let long = format!("/{}", "abc/".repeat(1020) + "d");
    for (glob, write) in [("/etc/passwd", false), ("/etc/passwd", true), (&long, true)] {
        assert!(verbs_for(&files(glob, write, Privilege::Caller)).unwrap().is_empty());
    }
    let pattern = Pattern::parse("cat -- <path>").unwrap();
    assert!(verbs_for_command(&pattern, &Privilege::Caller).unwrap().is_empty());
}

#[test]
fn the_paths_in_a_command_may_be_looked_at_wherever_they_stand_in_it() {
    let pattern = Pattern::parse(
        "x [--a=<path:/etc/a>] (<path:/srv/*>|-b <path:/srv/*>)... -- <unit> <path:/run/c>...",
    );
    let verbs = verbs_for_command(&pattern.unwrap(), &Privilege::Root).unwrap();
    // Two verbs for each of three globs.
    assert_eq!(verbs.len(), 6);
    for path in ["/etc/a", "/srv/x", "/run/c", "/run"] {
        assert!(may_stat(&verbs, path), "{path}");
    }
    assert!(!may_stat(&verbs, "/root/x") && !may_list(&verbs, "/srv/x"));
    let anywhere = Pattern::parse("cat -- <path>").unwrap();
    let anywhere = verbs_for_command(&anywhere, &Privilege::RootIfAvailable).unwrap();
    assert!(may_stat(&anywhere, "/root/x") && !may_stat(&anywhere, "/etc/shadow"));
}

#[test]
fn a_path_that_makes_a_pattern_too_long_is_an_error() {
    for (times, write) in [(200, false), (150, true)] {
        let glob = format!("/{}", "abc/".repeat(times) + "d");
        let error = verbs_for(&files(&glob, write, Privilege::Root)).unwrap_err();
        assert!(error.to_string().contains("at most"), "{error}");
    }
}

#[test]
fn what_is_only_read_is_never_written() {
    let changing = ["mkdir", "cp", "chmod", "chown", "ln", "mv", "rm", "rmdir", "sync", "restorecon"];
    for (write, found) in [(false, 0), (true, 14)] {
        let verbs = verbs_for(&files("/srv/*", write, Privilege::Root)).unwrap();
        let writes = |verb: &&Verb| changing.contains(&verb.program()) || verb.pattern().unwrap().stdin();
        assert_eq!(verbs.iter().filter(writes).count(), found);
    }
}

fn command(pattern: &str, effect: Effect, privilege: Privilege) -> CommandRequest {
    let (pattern, place, risk) = (pattern.to_owned(), Place::Target, Risk::ReadOnly);
    CommandRequest { pattern, effect, privilege, place, risk, reason: String::new() }
}

/// pattern, files, what the host may run on the new file
#[test]
fn a_validation_may_run_on_the_new_file_beside_the_old_one() {
    for (pattern, glob, expected) in [
        (
            "visudo -cf <path:/etc/sudoers.d/*>",
            "/etc/sudoers.d/*",
            &["visudo -cf <path:/etc/sudoers.d/.linux-sysadmin-*/*>"][..],
        ),
        // The narrower glob counts.
        ("sshd -t -f <path:/etc/**>", "/etc/ssh/x", &["sshd -t -f <path:/etc/ssh/.linux-sysadmin-*/x>"]),
        ("sshd -t -f <path:/etc/ssh/x>", "/etc/**", &["sshd -t -f <path:/etc/ssh/.linux-sysadmin-*/x>"]),
        ("x --file=<path>", "/etc/x", &["x --file=<path:/etc/.linux-sysadmin-*/x>"]),
        // Each hole is replaced by itself, and never a text that only looks like one.
        (
            "x '<path:/a/*>' <unit> [<path:/a/*>]... <path:/b> (<path:/a/b>|<int>) < stdin",
            "/a/b",
            &[
                "x '<path:/a/*>' <unit> [<path:/a/.linux-sysadmin-*/b>]... <path:/b> (<path:/a/b>|<int>) < stdin",
                "x '<path:/a/*>' <unit> [<path:/a/*>]... <path:/b> (<path:/a/.linux-sysadmin-*/b>|<int>) < stdin",
            ],
        ),
        ("visudo -cf <path:/etc/sudoers.d/*>", "/etc/cron.d/*", &[]),
        ("visudo -cf <path:/etc/*>", "/etc/sudoers.d/*", &[]),
        ("id -- <user>", "/etc/passwd", &[]),
    ] {
        let command = command(pattern, Effect::Read, Privilege::Root);
        let verbs = verbs_for_validation(&command, &files(glob, true, Privilege::Root)).unwrap();
        let texts: Vec<&str> = verbs.iter().map(Verb::text).collect();
        assert_eq!(texts, expected, "{pattern} {glob}");
    }
}

#[test]
fn a_validation_is_with_the_rights_of_the_file_and_changes_nothing() {
    let ada = || Privilege::User("ada".into());
    for (effect, privilege, write, files_privilege, allowed) in [
        (Effect::Read, Privilege::Root, true, Privilege::Root, true),
        (Effect::DryRun, Privilege::RootIfAvailable, true, Privilege::Root, true),
        (Effect::Read, ada(), true, ada(), true),
        (Effect::Change, Privilege::Root, true, Privilege::Root, false),
        (Effect::Read, Privilege::Root, false, Privilege::Root, false),
        (Effect::Read, Privilege::Caller, true, Privilege::Root, false),
        (Effect::Read, Privilege::Root, true, Privilege::Caller, false),
        (Effect::Read, Privilege::Caller, true, Privilege::Caller, false),
        (Effect::Read, ada(), true, Privilege::User("bob".into()), false),
        (Effect::Read, ada(), true, Privilege::Root, false),
    ] {
        let command = command("x <path:/srv/*>", effect, privilege);
        let verbs = verbs_for_validation(&command, &files("/srv/*", write, files_privilege)).unwrap();
        assert_eq!(!verbs.is_empty(), allowed, "{command:?}");
    }
}

#[test]
fn what_may_be_written_on_both_sides_with_the_same_rights_may_be_moved() {
    let ada = || Privilege::User("ada".into());
    let moves = |verbs: &[Verb], argv: [&str; 2]| {
        allowed(verbs, "mv", &["--no-clobber", "--no-target-directory", "--", argv[0], argv[1]])
    };
    for (one, other, expected) in [
        (files("/srv/*", true, Privilege::Root), files("/opt/*", true, Privilege::Root), 2),
        (files("/srv/*", true, Privilege::Root), files("/srv/*", true, Privilege::Root), 1),
        (files("/srv/*", true, ada()), files("/opt/*", true, ada()), 2),
        (files("/srv/*", false, Privilege::Root), files("/opt/*", true, Privilege::Root), 0),
        (files("/srv/*", true, Privilege::Root), files("/opt/*", false, Privilege::Root), 0),
        (files("/srv/*", true, Privilege::Root), files("/opt/*", true, ada()), 0),
        (files("/srv/*", true, Privilege::Caller), files("/opt/*", true, Privilege::Caller), 0),
    ] {
        let verbs = verbs_for_moves(&one, &other).unwrap();
        assert_eq!(verbs.len(), expected, "{one:?} {other:?}");
        let between = [["/srv/x", "/opt/x"], ["/opt/x", "/srv/x"]];
        assert!(expected != 2 || between.into_iter().all(|argv| moves(&verbs, argv)));
        for argv in [["/srv/x", "/etc/x"], ["/etc/x", "/opt/x"], ["/srv/x", "/opt/a/b"], ["/srv/x", "-t"]] {
            assert!(!moves(&verbs, argv), "{argv:?}");
        }
        assert!(!allowed(&verbs, "mv", &["--no-target-directory", "--", "/srv/x", "/opt/x"]));
    }
}

/// All verbs of a glob: to read and to write it, to move it, and to validate what is written to it.
fn all_verbs(glob: &str) -> Result<Vec<Verb>, PatternError> {
    let files = files(glob, true, Privilege::Root);
    let command = command("x --file=<path> -- <unit>", Effect::Read, Privilege::Root);
    let all = [verbs_for(&files)?, verbs_for_moves(&files, &files)?, verbs_for_validation(&command, &files)?];
    Ok(all.concat())
}

#[test]
fn the_deepest_path_that_has_verbs_has_verbs_that_can_be_parsed() {
    let depths = (1..200).map(|depth| all_verbs(&"/a".repeat(depth)));
    let (fine, too_long): (Vec<_>, Vec<_>) = depths.partition(Result::is_ok);
    assert!(fine.len() > 20 && !too_long.is_empty(), "{}", fine.len());
    for verb in fine.into_iter().flatten().flatten() {
        assert!(verb.pattern().is_ok(), "{}", verb.text());
    }
}

proptest! {
    #[test]
    fn what_is_made_of_a_glob_is_a_pattern_with_the_program_that_it_says(
        glob in prop_oneof!["(/[\\PC]{1,8}){1,5}", "(/[-a-z *$#&|;()!=,@~^%.:+]{1,6}){1,5}"],
    ) {
        prop_assume!(Glob::parse(&glob).is_ok_and(|glob| !glob.mentions_staging()) && glob != "/");
        for verb in all_verbs(&glob).unwrap() {
            let pattern = verb.pattern();
            prop_assert!(pattern.is_ok(), "{}: {:?}", verb.text(), pattern.err());
            prop_assert_eq!(pattern.unwrap().program(), verb.program());
        }
    }

    #[test]
    fn every_path_that_a_glob_admits_may_be_looked_at_with_all_that_is_above(
        names in prop::collection::vec("[a-z.][a-z0-9 .:+ü-]{0,6}[a-z]", 1..6), star in 0usize..6,
    ) {
        let path = format!("/{}", names.join("/"));
        let mut glob = names.clone();
        let last = glob.len() - 1;
        glob[star.min(last)] = if star > last { "**".into() } else { "*".into() };
        let glob = format!("/{}", glob.join("/"));
        prop_assume!(Glob::parse(&glob).unwrap().admits(&path));
        let verbs = verbs(&glob);
        prop_assert!(may_stat(&verbs, &path), "{} {}", glob, path);
        for directory in above(&path) {
            prop_assert!(may_stat(&verbs, directory), "{} {}", glob, directory);
        }
    }
}
