//! Tests of the host's own commands that write.

use super::*;
use crate::{PathRequest, Place, verbs_for, verbs_for_moves};
use host_base::Privilege;

fn verbs(glob: &str) -> Vec<Pattern> {
    let (glob, privilege, place) = (glob.to_owned(), Privilege::Root, Place::Target);
    let request = PathRequest { glob, write: true, privilege, place, reason: String::new() };
    let verbs = [verbs_for(&request).unwrap(), verbs_for_moves(&request, &request).unwrap()].concat();
    verbs.iter().map(|verb| verb.pattern().unwrap().clone()).collect()
}

#[test]
fn every_verb_of_an_ordinary_glob_can_be_said() {
    for glob in [
        "/etc/systemd/system/*",
        "/etc/systemd/system/*.d/override.conf",
        "/etc/motd",
        "/etc/wireguard/wg0.conf",
    ] {
        for verb in verbs(glob) {
            let found = arguments(&verb, Exactness::Grants).unwrap_or_else(|error| panic!("{verb}: {error}"));
            assert!(found.notes.is_empty(), "{verb}: {:?}", found.notes);
            found.texts().iter().for_each(|text| assert_that_sudo_reads(text));
        }
    }
}

#[test]
fn what_cannot_be_said_is_said_to_be_so() {
    for (glob, refusal) in [
        ("/etc/app/**", Refusal::AnyDepth("/etc/app/**".to_owned())),
        ("/srv/**/x", Refusal::AnyDepth("/srv/**/x".to_owned())),
    ] {
        for verb in verbs(glob) {
            // Each of these patterns has a path of any depth.
            assert!(
                matches!(arguments(&verb, Exactness::Grants), Err(Refusal::AnyDepth(_))),
                "{verb} {refusal}"
            );
        }
    }
    // The text after the blank would be an operand of its own, such as `if=/etc/shadow`.
    for glob in ["/srv/a b", "/srv/a if=/etc/shadow", "/srv/x of=/*"] {
        for verb in verbs(glob).iter().filter(|verb| verb.program() == "dd") {
            assert_eq!(
                arguments(verb, Exactness::Grants).map(|found| found.texts()),
                Err(Refusal::Blank),
                "{verb}"
            );
        }
    }
}

/// Lines that sudo allows, and lines that it refuses, each with the program first.
#[test]
fn what_passes_stays_within_the_grant() {
    const COPIES: &str = "/etc/systemd/system/.linux-sysadmin-0123456789abcdef";
    let verbs = verbs("/etc/systemd/system/*");
    let passes = |line: &str| {
        let (program, args) = line.split_once(' ').unwrap();
        let args: Vec<&str> = args.split(' ').collect();
        let verbs: Vec<&Pattern> = verbs.iter().filter(|verb| verb.program() == program).collect();
        let passes = verbs.iter().any(|verb| allows(&texts(verb), &args));
        let mut all = Arguments::default();
        verbs.iter().for_each(|verb| all.extend(arguments(verb, Exactness::Grants).unwrap()));
        let united = all.texts();
        united.iter().for_each(|text| assert_that_sudo_reads(text));
        assert_eq!(allows(&united, &args), passes, "{line} {united:?}");
        passes
    };
    for line in [
        "mkdir --mode=0700 -- COPIES",
        "mkdir --mode=0755 -- /etc/systemd/system/x.service.d",
        "cp --attributes-only --preserve=all --no-dereference -- /etc/systemd/system/x.service COPIES/x.service",
        "dd of=COPIES/x.service oflag=nofollow conv=fsync bs=65536 status=none",
        "chmod -- 0644 COPIES/x.service",
        "chmod -- 4755 /etc/systemd/system/x",
        "chmod -- u=rwxs,g=rx,o=rx,g-s,o-t /etc/systemd/system/x",
        "mv --no-clobber --no-target-directory -- /etc/systemd/system/x.service /etc/systemd/system/y.service",
        "chown --no-dereference -- root:root COPIES/x.service",
        "chown --no-dereference -- root:root /etc/systemd/system/x.service.d",
        "ln --no-target-directory -- /etc/systemd/system/x.service COPIES/.previous",
        "mv --no-target-directory -- COPIES/x.service /etc/systemd/system/x.service",
        "mv --no-target-directory -- /etc/systemd/system/x.service COPIES/.previous",
        "mv --no-target-directory -- COPIES/.previous /etc/systemd/system/x.service",
        "rm --force -- COPIES/x.service",
        "rm --force -- COPIES/.previous",
        "rm --force -- /etc/systemd/system/x.service",
        "rmdir -- COPIES",
        "rmdir -- /etc/systemd/system/x.service.d",
        "sync -- COPIES",
        "sync -- COPIES/x.service",
        "sync -- /etc/systemd/system/x.service",
        "restorecon -- /etc/systemd/system/x.service",
        "stat --format=%f:%u:%g:%s:%Y:%h:%D:%i:%U:%G:%n -- COPIES COPIES/x.service COPIES/.previous",
        "stat --format=%f:%u:%g:%s:%Y:%h:%D:%i:%U:%G:%n -- / /etc /etc/systemd/system /etc/systemd/system/x.service",
        "readlink --zero -- COPIES/.previous",
        "dd if=COPIES/.previous iflag=fullblock,nofollow,nonblock,skip_bytes,count_bytes bs=65536 skip=0 count=9 status=none",
        "ls --almost-all --format=single-column --sort=none --quoting-style=c -- COPIES",
    ] {
        assert!(passes(&line.replace("COPIES", COPIES)), "{line}");
    }
    for line in [
        "mkdir --mode=0700 -- /etc/systemd/system/.linux-sysadmin-x",
        "mkdir --mode=0700 -- COPIES0",
        "mkdir --mode=0700 -- COPIES /etc/x",
        "mkdir --mode=0755 -- COPIES/x",
        "dd of=/etc/systemd/system/x.service oflag=nofollow conv=fsync bs=65536 status=none",
        "dd of=COPIES/x.service if=/etc/shadow oflag=nofollow conv=fsync bs=65536 status=none",
        "dd of=COPIES/x.service oflag=nofollow conv=fsync bs=65536 status=none if=/etc/shadow",
        "dd of=COPIES/../x.service oflag=nofollow conv=fsync bs=65536 status=none",
        "dd if=COPIES/.previous of=/etc/x iflag=fullblock,nofollow,nonblock,skip_bytes,count_bytes bs=65536 skip=0 count=9 status=none",
        "chmod -- 4755 /etc/shadow",
        "chmod -- 0644 COPIES/x.service /etc/shadow",
        "mv --no-target-directory -- /etc/systemd/system/x.service /etc/systemd/system/y.service",
        "mv --no-clobber --no-target-directory -- /etc/systemd/system/x.service /etc/systemd/system/a/b",
        "mv --no-clobber --no-target-directory -- /etc/shadow /etc/systemd/system/x.service",
        "mv --no-clobber --no-target-directory -- /etc/systemd/system/x.service COPIES/x.service",
        "chown --no-dereference -- root:root /etc/shadow",
        "chown -- root:root COPIES/x.service",
        "ln --no-target-directory -- /etc/shadow COPIES/.previous",
        "ln --no-target-directory -- /etc/systemd/system/x.service /etc/systemd/system/y.service",
        "mv --no-target-directory -- COPIES/x.service /etc/systemd/system/../x",
        "mv --no-target-directory -- COPIES/x.service /etc/systemd/system/a/b",
        "mv --no-target-directory -- /tmp/x /etc/systemd/system/x.service",
        "rm --force -- COPIES/x.service /etc/passwd",
        "rm --force --recursive -- COPIES",
        "rm --force -- COPIES/a/b",
        "rmdir -- /etc/systemd",
        "restorecon -- /etc/shadow",
        "ls --almost-all --format=single-column --sort=none --quoting-style=c -- COPIES /root",
    ] {
        assert!(!passes(&line.replace("COPIES", COPIES)), "{line}");
    }
}

#[test]
fn a_dot_that_may_lead_to_the_hosts_copies_has_no_expression() {
    for (glob, said) in [
        ("/srv/.*/x", false),
        ("/srv/.l*/x", false),
        ("/root/.gnupg/.*/x", false),
        ("/root/.gnupg/*/x", true),
        ("/srv/.l*a", false),
        ("/srv/.linux-sysadmin-0*a/b/c", false),
        ("/srv/.l*g", true),
        ("/srv/.linux-sysadmin-x*a/b/c", true),
        ("/srv/.x*a", true),
        ("/srv/.*.conf", true),
        ("/srv/*/x", true),
    ] {
        let found = arguments(&pattern(&format!("cat -- <path:{glob}>")), Exactness::Grants);
        assert_eq!(found.is_ok(), said, "{glob}");
    }
}
