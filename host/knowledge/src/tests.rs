use std::collections::BTreeSet;
use std::fs;

use super::check::{commands, common_commands, files};
use super::load::builtin;
use super::profile_error::ProfileError;
use super::*;
use host_base::Risk;
use host_base::{Command, Privilege};
use host_policy::Level;
use host_policy::check_only_looks;
use host_target::{Services, UnitState};

/// The built-in profiles, and a directory of an operator's own.
struct OwnProfiles {
    directory: tempfile::TempDir,
    config: Settings,
}

impl OwnProfiles {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), config: Settings::default() }
    }

    fn put(self, name: &str, text: &str) -> Self {
        fs::write(self.directory.path().join(name), text).unwrap();
        self
    }

    fn load(&self) -> Knowledge {
        Knowledge::load(&self.config, Some(self.directory.path()), Policy::builtin())
    }
}

const OWN: &str = "\
schema_version: 1
id: appd
name: App
summary: The application of this company.
category: web
units:
  - {name: appd.service, main: true}
packages: []
config:
  - {path: /etc/appd/appd.conf, main: true, what: Settings}
  - {path: /etc/appd/, what: All of it}
logs:
  - {path: /srv/appd/log/app.log, format: plain}
ports:
  - {port: 8443, protocol: tcp, scope: lan, what: HTTPS}
provides:
  - {role: app}
health:
  - id: running
    what: The unit is active
    argv: [systemctl, is-active, appd.service]
    expect_exit: 0
    sick: Nobody is served
secrets:
  - {path: /etc/appd/keys/, what: Keys}
troubleshooting:
  - id: doesnt-start
    symptom: It doesn't start
    checks:
      - argv: [systemctl, is-failed, appd.service]
        results:
          - {if_exit: 0, cause: crashed, means: It has ended}
    causes:
      - {id: crashed, cause: It crashed, fix: Look at its log}
sources: [\"own\"]
";

fn shown(at: &[String]) -> String {
    at.join(".")
}

fn told(errors: Vec<ProfileError>) -> Vec<String> {
    errors.into_iter().map(|error| format!("{}: {}", shown(&error.at), error.reason)).collect()
}

#[test]
fn every_profile_that_comes_with_this_program_holds_against_all_that_others_are_held_against() {
    let all = builtin();
    assert!(all.len() >= 50, "{}", all.len());
    let mut wrong = Vec::new();
    for known in &all {
        let profile = &known.profile;
        let others: Vec<_> = all.iter().filter(|other| other.profile.id != profile.id).collect();
        let mut errors = told(check::check_profile(profile));
        errors.extend(told(check::check_beside_others(profile, &others)));
        for check::ReadOnlyCommand { at, argv, .. } in commands(profile) {
            let command = check::command(argv);
            if let Err(problem) = check_only_looks(Policy::builtin(), &command, &command) {
                errors.push(format!("{}: {}", shown(&at), problem.message));
            }
        }
        let checkers = profile.validate.iter();
        for one in checkers.filter_map(|one| candidate::Candidate::of(profile, one.candidate.as_ref()?, "")) {
            if Policy::builtin().verdict(&one.argv).level == Level::Block {
                errors.push(format!("nobody could say yes to {}", one.argv.join(" ")));
            }
        }
        for family in ["debian", "rhel", "arch"] {
            if let Err(error) = grants::of(profile, family) {
                errors.push(error.to_string());
            }
        }
        let has_cause = profile.troubleshooting.iter().any(|trouble| !trouble.causes.is_empty());
        if profile.health.is_empty() || !has_cause {
            errors.push("it says too little".to_owned());
        }
        wrong.extend(errors.into_iter().map(|error| format!("{}: {error}", profile.id)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_written_is_what_the_schema_says() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../knowledge");
    let names = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let mut own_profiles = OwnProfiles::new();
    own_profiles.config.additional_paths = vec![directory.to_str().unwrap().to_owned()];
    let knowledge = own_profiles.load();
    assert_eq!(knowledge.warnings(), [] as [&str; 0]);
    for path in names.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")) {
        let id = path.file_stem().unwrap().to_str().unwrap();
        let known = knowledge.find(id, "debian").unwrap_or_else(|| panic!("{id}"));
        assert_eq!(known.path.as_deref(), Some(&*path), "a file has its profile's name");
    }
}

#[test]
fn commands_that_any_profile_may_have_are_harmless() {
    assert!(common_commands().count() > 10);
    for argv in [
        &["systemctl", "is-active", "x.service"][..],
        &["journalctl", "--unit=x.service", "--lines=50", "--no-pager"],
        &["tail", "-n", "50", "/var/log/x/x.log"],
        &["ss", "-Hltn"],
    ] {
        let argv: Vec<_> = argv.iter().map(|token| (*token).to_owned()).collect();
        assert!(
            common_commands().any(|pattern| pattern.allows(&argv[0], &argv[1..], &[], false).is_some()),
            "{argv:?}"
        );
        check_only_looks(Policy::builtin(), &check::command(&argv), &check::command(&argv)).unwrap();
    }
    for argv in [
        &["systemctl", "stop", "x.service"][..],
        &["tail", "-n", "50", "/etc/shadow"],
        &["tail", "-n", "50", "/var/log/../../etc/shadow"],
        &["systemctl", "is-active", "-H", "x"],
        &["cat", "/etc/passwd"],
        &["bash", "-c", "id"],
    ] {
        let argv: Vec<_> = argv.iter().map(|token| (*token).to_owned()).collect();
        assert!(
            !common_commands().any(|pattern| pattern.allows(&argv[0], &argv[1..], &[], false).is_some()),
            "{argv:?}"
        );
    }
}

#[test]
fn an_operators_profile_is_known_by_its_id_and_its_units_and_takes_the_place_of_one_with_its_id() {
    let own_profiles = OwnProfiles::new().put("appd.yaml", OWN);
    let knowledge = own_profiles.load();
    assert_eq!(knowledge.warnings(), [] as [&str; 0]);
    for name in ["appd", "appd.service"] {
        assert_eq!(knowledge.find(name, "debian").unwrap().profile.name, "App", "{name}");
    }
    assert!(knowledge.find("appd.socket", "debian").is_none());
    let nginx = OWN.replace("id: appd", "id: nginx").replace("appd.service", "nginx.service");
    let knowledge = own_profiles.put("own.yaml", &nginx).load();
    assert_eq!(knowledge.find("nginx", "rhel").unwrap().profile.name, "App");
    assert_eq!(knowledge.warnings(), [] as [&str; 0]);
    // Units depend on the family.
    assert_eq!(knowledge.find("ssh", "debian").unwrap().profile.id, "sshd");
    assert_eq!(knowledge.find("wg-quick@wg0.service", "debian").unwrap().profile.id, "wireguard");
}

#[test]
fn later_directories_go_before_and_ones_own_come_last() {
    let first = OwnProfiles::new().put("appd.yaml", &OWN.replace("name: App", "name: First"));
    let second = OwnProfiles::new().put("appd.yml", &OWN.replace("name: App", "name: Second"));
    let paths =
        [&first, &second].map(|own_profiles| own_profiles.directory.path().to_str().unwrap().to_owned());
    let mut own_profiles = OwnProfiles::new();
    own_profiles.config.additional_paths = paths.to_vec();
    assert_eq!(own_profiles.load().find("appd", "debian").unwrap().profile.name, "Second");
    let own_profiles = own_profiles.put("a.yaml", OWN);
    assert_eq!(own_profiles.load().find("appd", "debian").unwrap().profile.name, "App");
    let mut own_profiles = own_profiles;
    own_profiles.config.disabled_profiles = vec!["appd".into(), "nginx".into(), "nonsense".into()];
    own_profiles.config.additional_paths = vec!["/nonexistent".into(), "relative".into()];
    let knowledge = own_profiles.load();
    assert!(
        knowledge.find("appd", "debian").is_none() && knowledge.find("nginx.service", "debian").is_none()
    );
    let warnings = knowledge.warnings().join("\n");
    for expected in
        ["/nonexistent can't be read", "expected an absolute path", "there is no profile nonsense"]
    {
        assert!(warnings.contains(expected), "{warnings}");
    }
}

const CHECKER: &str = "\
validate:
  - {argv: [systemctl, is-active, appd.service], candidate: [appd, --check, '{}'], what: Reads it, expect_exit: 0}
health:
";

#[test]
fn an_operator_may_allow_a_checker_of_texts_which_are_put_beside_the_configuration() {
    let mut own_profiles = OwnProfiles::new().put("appd.yaml", &OWN.replacen("health:\n", CHECKER, 1));
    own_profiles.config.commands = vec!["appd --check <path>".to_owned()];
    let knowledge = own_profiles.load();
    let known = knowledge.find("appd", "debian").unwrap();
    let argv = known.profile.validate[0].candidate.as_ref().unwrap();
    let candidate = Candidate::of(&known.profile, argv, "debian").unwrap();
    assert_eq!(candidate.path, "/etc/appd/.candidate.linux-sysadmin");
    assert_eq!(candidate.argv, ["appd", "--check", "/etc/appd/.candidate.linux-sysadmin"]);
    // A directory with a wildcard is no definite place.
    let mut anywhere = known.profile.clone();
    anywhere.config[0].path = "/etc/*/appd.conf".to_owned();
    assert!(Candidate::of(&anywhere, argv, "debian").is_none());
    // The check is a change of high risk, and sudo must not allow it to an account.
    let grants = known.grants("debian");
    let command = |argv: &[String]| Command { privilege: Privilege::Root, ..check::command(argv) };
    assert_eq!(grants.may_change(&command(&candidate.argv)).unwrap().risk, Risk::High);
    assert!(grants.may_look(&command(&candidate.argv)).is_err());
    // A plan may also have the checker read what is in place.
    let in_place = command(&known.profile.validate[0].argv);
    assert_eq!(grants.may_change(&in_place).unwrap().risk, Risk::High);
    let requests = known.requests("debian");
    assert!(!requests.commands.iter().any(|request| request.pattern.contains("--check")));
    assert!(!requests.paths.iter().any(|request| request.write));
}

#[test]
fn what_is_wrong_is_left_out_as_a_whole_and_said_with_line_and_field() {
    for (from, to, expected) in [
        ("id: appd\n", "id: appd\n  x", &["line 3", "left out"][..]),
        ("name: App\n", "", &["line 1", "name"]),
        ("name: App\n", "name: App\ncolour: red\n", &["colour"]),
        ("main: true}\npackages", "main: maybe}\npackages", &["line 7", "units[0].main", "maybe"]),
        ("schema_version: 1", "schema_version: 2", &["line 1", "schema_version", "later version"]),
        ("schema_version: 1", "schema_version: one", &["line 1", "schema_version"]),
        ("port: 8443", "port: 70000", &["line 15", "ports[0].port"]),
        ("appd.service, main", "nginx.service, main", &["line 7", "units[0]", "profile nginx"]),
        // A role that nothing fills makes no cycle.
        (
            "provides:\n  - {role: app}",
            "provides:\n  - {role: app}\n  - {role: circle}\nrequires:\n  - {role: circle-two, why: It asks, if_down: It ends}",
            &[],
        ),
        (
            "cause: crashed",
            "cause: burnt",
            &["line 32", "troubleshooting[0].checks[0].results[0].cause", "crashed"],
        ),
        ("format: plain", "format: other, line: '(a', sample: a", &["line 13", "logs[0].line"]),
        ("format: plain", "format: other, line: '^b', sample: a", &["line 13", "doesn't find its sample"]),
        ("/srv/appd/log/app.log", "/srv/../etc/app.log", &["line 13", "logs[0].path"]),
        ("/srv/appd/log/app.log", "/srv/?.log", &["line 13", "logs[0].path"]),
        // The command isn't among those that a profile may have.
        (
            "[systemctl, is-active, appd.service]",
            "[appctl, status]",
            &["line 21", "health[0].argv", "knowledge: {commands: [\"appctl status\"]}"],
        ),
        (
            "[systemctl, is-active, appd.service]",
            "[systemctl, restart, appd.service]",
            &["line 21", "health[0].argv"],
        ),
        (
            "[systemctl, is-active, appd.service]",
            "[ss, -ulnp, '|', grep, ':53']",
            &["line 21", "no shell", "expect_contains"],
        ),
        ("[systemctl, is-active, appd.service]", "[sh, -c, 'rm -rf /']", &["line 21", "health[0].argv"]),
        ("[systemctl, is-active, appd.service]", "ss -ulnp | grep :53", &["line 21", "health[0].argv"]),
        // Commands that check a text.
        (
            "health:\n",
            CHECKER,
            &["validate[0].candidate", "knowledge: {commands: [\"appd --check <path>\"]}"],
        ),
        (
            "health:\n",
            &CHECKER.replace("--check, '{}'", "--check"),
            &["validate[0].candidate", "one argument `{}`"],
        ),
        ("health:\n", &CHECKER.replace("'{}'", "'--file={}'"), &["one argument `{}`"]),
        ("health:\n", &CHECKER.replace("appd, --check,", "'{}', --check,"), &["one argument `{}`"]),
        ("health:\n", &CHECKER.replace("appd, --check", "nginx, -t, -c"), &[]),
        (
            "[systemctl, is-failed, appd.service]",
            "[tail, -n, '5', /etc/shadow]",
            &["line 30", "troubleshooting[0].checks[0].argv"],
        ),
    ] {
        assert!(OWN.contains(from), "{from}");
        let knowledge = OwnProfiles::new().put("appd.yaml", &OWN.replacen(from, to, 1)).load();
        let warnings = knowledge.warnings().join("\n");
        assert_eq!(knowledge.find("appd", "debian").is_some(), expected.is_empty(), "{to}: {warnings}");
        for expected in expected {
            assert!(warnings.contains(expected) && warnings.contains("appd.yaml"), "{expected}: {warnings}");
        }
        // The other profiles are loaded all the same.
        assert!(knowledge.find("nginx", "debian").is_some());
    }
}

#[test]
fn services_that_need_each_other_are_refused() {
    let with = |id: &str, gives: &str, needs: &str| {
        let circle = format!(
            "provides:\n  - {{role: {gives}}}\nrequires:\n  - {{role: {needs}, why: It asks, if_down: It ends}}"
        );
        OWN.replace("appd.service", &format!("{id}.service"))
            .replace("id: appd", &format!("id: {id}"))
            .replace("provides:\n  - {role: app}", &circle)
    };
    let own_profiles = OwnProfiles::new()
        .put("a.yaml", &with("aaa", "one", "two"))
        .put("b.yaml", &with("bbb", "two", "one"));
    let knowledge = own_profiles.load();
    assert!(knowledge.find("aaa", "debian").is_some() && knowledge.find("bbb", "debian").is_none());
    let warnings = knowledge.warnings().join("\n");
    assert!(warnings.contains("bbb > aaa > bbb") && warnings.contains("requires"), "{warnings}");
}

#[test]
fn files_that_others_could_have_written_are_not_followed() {
    use std::os::unix::fs::PermissionsExt;
    let own_profiles =
        OwnProfiles::new().put("appd.yaml", OWN).put("notes.txt", "no profile").put(".hidden.yaml", "- [");
    let path = own_profiles.directory.path().join("appd.yaml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let knowledge = own_profiles.load();
    assert!(knowledge.find("appd", "debian").is_none());
    assert_eq!(knowledge.warnings().len(), 1, "{:?}", knowledge.warnings());
    assert!(knowledge.warnings()[0].contains("can write to it"), "{:?}", knowledge.warnings());
}

#[test]
fn what_the_operator_allows_a_profile_may_have_unless_it_changes_something() {
    for (allowed, argv, holds) in [
        ("appctl status [--instance=<int>]", "[appctl, status, --instance=3]", true),
        ("appctl status [--instance=<int>]", "[appctl, status, --instance=x]", false),
        ("systemctl restart -- <unit>", "[systemctl, restart, --, appd.service]", false),
        ("appctl (", "[appctl, status]", false),
    ] {
        let text = OWN.replace("[systemctl, is-active, appd.service]", argv);
        let mut own_profiles = OwnProfiles::new().put("appd.yaml", &text);
        own_profiles.config.commands = vec![allowed.to_owned()];
        let knowledge = own_profiles.load();
        let warnings = knowledge.warnings().join("\n");
        assert_eq!(knowledge.find("appd", "debian").is_some(), holds, "{allowed}: {warnings}");
        assert_eq!(warnings.is_empty(), holds, "{warnings}");
    }
}

#[test]
fn a_profile_allows_its_commands_and_its_files_and_never_its_secrets() {
    use host_base::Privilege;
    let knowledge = OwnProfiles::new().put("appd.yaml", OWN).load();
    let own = knowledge.find("appd", "debian").unwrap().grants("debian");
    let grants = Grants::new("services").with([&*own]);
    let command = |argv: &[&str]| {
        let argv: Vec<_> = argv.iter().map(|token| (*token).to_owned()).collect();
        check::command(&argv)
    };
    assert!(grants.may_look(&command(&["systemctl", "is-active", "appd.service"])).is_ok());
    for refused in
        [&["systemctl", "is-active", "nginx.service"][..], &["systemctl", "stop", "appd.service"], &["id"]]
    {
        assert!(grants.may_look(&command(refused)).is_err(), "{refused:?}");
    }
    let may = |path: &str| grants.may_read(path, path, &Privilege::RootIfAvailable).is_ok();
    for path in
        ["/etc/appd/appd.conf", "/etc/appd/sites/a", "/srv/appd/log/app.log", "/srv/appd/log/app.log.2.gz"]
    {
        assert!(may(path), "{path}");
    }
    for path in ["/etc/appd/keys/tls.pem", "/etc/passwd", "/srv/appd/log/other", "/etc/appd/../shadow"] {
        assert!(!may(path), "{path}");
    }
    // The secret is denied for every path that leads to it.
    assert!(grants.may_read("/etc/appd/x", "/etc/appd/keys/tls.pem", &Privilege::Caller).is_err());
}

#[test]
fn changes_are_as_grave_as_the_profiles_say_however_they_are_written() {
    let knowledge = OwnProfiles::new().load();
    let risk = |argv: &[&str]| {
        let args: Vec<_> = argv[1..].iter().map(|token| (*token).to_owned()).collect();
        let found = raised_risks(&knowledge, "debian", &StepAction::Run { program: argv[0], args: &args });
        found.into_iter().map(|(risk, _)| risk).max()
    };
    for (argv, expected) in [
        (&["systemctl", "restart", "--", "unbound.service"][..], Some(Risk::High)),
        (&["systemctl", "restart", "unbound"], Some(Risk::High)),
        (&["/usr/bin/systemctl", "--no-block", "restart", "unbound"], Some(Risk::High)),
        (&["systemctl", "try-restart", "unbound"], Some(Risk::High)),
        (&["systemctl", "stop", "unbound"], Some(Risk::Critical)),
        (&["systemctl", "disable", "--now", "unbound"], Some(Risk::Critical)),
        (&["systemctl", "stop", "nothing", "unbound"], Some(Risk::Critical)),
        (&["systemctl", "stop", "unb*"], Some(Risk::Critical)),
        (&["systemctl", "-s", "9", "kill", "unbound"], Some(Risk::Critical)),
        (&["service", "unbound", "stop"], Some(Risk::Critical)),
        (&["systemctl", "reload", "unbound"], None),
        (&["systemctl", "start", "unbound"], None),
        (&["systemctl", "restart", "no-such"], None),
        // By another name of the same unit.
        (&["systemctl", "stop", "sshd.service"], risk(&["systemctl", "stop", "ssh.service"])),
        (&["unbound-control", "flush_zone", "example.com"], Some(Risk::High)),
        (&["unbound-control", "-c", "/etc/x.conf", "flush_zone", "example.com"], Some(Risk::High)),
        (&["unbound-control", "status"], None),
    ] {
        assert_eq!(risk(argv), expected, "{argv:?}");
    }
    assert!(risk(&["systemctl", "stop", "ssh.service"]) >= Some(Risk::High));
    let edit = |path: &str| raised_risks(&knowledge, "debian", &StepAction::Edit(&[path]));
    let of_unbound = edit("/etc/unbound/unbound.conf.d/x.conf");
    assert_eq!(of_unbound[0].0, Risk::High);
    assert!(of_unbound[0].1.contains("(profile unbound)"), "{}", of_unbound[0].1);
    assert!(edit("/etc/unboundx").is_empty());
}

fn seen(units: &[(&str, &str)]) -> Services {
    let states = units.iter().map(|(name, state)| {
        let sub = if *state == "active" { "running" } else { "dead" };
        ((*name).to_owned(), UnitState::new("loaded", state, sub))
    });
    Services::of_a_test(states)
}

#[test]
fn services_are_what_their_units_are_doing_and_roles_are_filled_by_active_ones() {
    let knowledge = OwnProfiles::new().load();
    let services = seen(&[
        ("ssh.service", "active"),
        ("unbound.service", "active"),
        ("pihole-FTL.service", "active"),
        ("nginx.service", "failed"),
        ("wg-quick@wg0.service", "active"),
        ("fail2ban.service", "inactive"),
    ]);
    let resolved = TargetServices::new(&knowledge, "debian", &services);
    for (id, status) in [
        ("sshd", Status::Active),
        ("unbound", Status::Active),
        ("nginx", Status::Failed),
        ("wireguard", Status::Active),
        ("fail2ban", Status::Inactive),
        ("apache", Status::Absent),
    ] {
        assert_eq!(resolved.status_of(id).0, status, "{id}");
    }
    let (profiles, _) = resolved.to_json();
    let pihole = profiles.iter().find(|shown| shown["id"] == "pihole").unwrap();
    assert_eq!(pihole["roles_resolved"]["dns-upstream"], serde_json::json!(["unbound"]), "{pihole}");
    let unbound = &knowledge.find("unbound", "debian").unwrap().profile;
    let dependants: BTreeSet<_> =
        resolved.dependants(unbound).into_iter().map(|(other, _)| other.id.as_str()).collect();
    assert!(dependants.contains("pihole"), "{dependants:?}");
    // A role that nothing fills is listed.
    let alone = seen(&[("postfix.service", "active")]);
    let (_, unresolved) = TargetServices::new(&knowledge, "debian", &alone).to_json();
    assert!(
        unresolved.iter().any(|one| one["profile"] == "postfix" && one["role"] == "dns"),
        "{unresolved:?}"
    );
}

#[test]
fn a_machine_that_says_nothing_of_units_has_no_service_that_was_seen() {
    let knowledge = OwnProfiles::new().load();
    let resolved = TargetServices::new(&knowledge, "debian", &Services::default());
    assert!(resolved.detected().next().is_none());
}

#[test]
fn files_that_are_read_are_told_with_their_places() {
    let knowledge = OwnProfiles::new().put("appd.yaml", OWN).load();
    let profile = &knowledge.find("appd", "debian").unwrap().profile;
    let paths: Vec<_> = files(profile).map(|(_, path)| path).collect();
    assert_eq!(paths, ["/etc/appd/appd.conf", "/etc/appd/", "/srv/appd/log/app.log"]);
    assert!(knowledge.configuration_marks().contains(&"/etc/appd/appd.conf".to_owned()));
}
