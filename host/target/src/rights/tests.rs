use super::*;

const EVERYTHING: Rights = Rights { available: true, limited: false, root: false };
const LIMITED: Rights = Rights { available: true, limited: true, root: false };
const ROOT: Rights = Rights { available: true, limited: false, root: true };

fn command(privilege: &Privilege, timeout: Duration) -> Command {
    Command {
        env: vec![("DEBIAN_FRONTEND".into(), "noninteractive".into())],
        privilege: privilege.clone(),
        ..Command::new("apt-get", ["update"], timeout)
    }
}

fn found(name: &str) -> Result<String, Problem> {
    Ok(format!("/usr/bin/{name}"))
}

fn prefix_for(privilege: &Privilege, rights: Rights) -> Result<CommandPrefix, Problem> {
    command_prefix(&command(privilege, Duration::MAX), Duration::from_millis(1500), rights, found)
}

fn user() -> Privilege {
    Privilege::User("postgres".into())
}

#[test]
fn the_accounts_own_rights_need_nothing_before_the_program() {
    for (privilege, rights) in [
        (Privilege::Caller, Rights::NONE),
        (Privilege::Caller, EVERYTHING),
        (Privilege::Caller, ROOT),
        (Privilege::RootIfAvailable, Rights::NONE),
        (Privilege::RootIfAvailable, ROOT),
        (Privilege::Root, ROOT),
    ] {
        let own = CommandPrefix { argv: Vec::new(), shown: String::new(), ends: EndMethod::Group };
        assert_eq!(prefix_for(&privilege, rights).unwrap(), own, "{privilege:?} {rights:?}");
    }
}

#[test]
fn rights_that_cannot_be_had_are_a_problem() {
    for privilege in [Privilege::Root, user()] {
        assert_eq!(prefix_for(&privilege, Rights::NONE).unwrap_err().code, "PRIVILEGE_REQUIRED");
    }
}

#[test]
fn what_sudo_runs_is_called_and_ended_by_what_sudo_allows() {
    let timed = "-- /usr/bin/timeout --signal=CONT --kill-after=0.1 3";
    let (root, variable) = (Privilege::Root, "DEBIAN_FRONTEND=noninteractive");
    for (privilege, rights, argv, shown, ends) in [
        (&root, EVERYTHING, format!("-n {variable} {timed}"), "sudo -n ", Signal::CONT),
        (&Privilege::RootIfAvailable, EVERYTHING, format!("-n {variable} {timed}"), "sudo -n ", Signal::CONT),
        (
            &user(),
            EVERYTHING,
            format!("-n -u postgres {variable} {timed}"),
            "sudo -n -u postgres ",
            Signal::CONT,
        ),
        (&user(), ROOT, format!("-n -u postgres {variable} {timed}"), "sudo -n -u postgres ", Signal::CONT),
        // The rules name the very command, and its variables are in a file.
        (&root, LIMITED, "-n --".to_owned(), "sudo -n ", Signal::ALARM),
        (&user(), LIMITED, "-n -u postgres --".to_owned(), "sudo -n -u postgres ", Signal::ALARM),
    ] {
        let command_prefix = prefix_for(privilege, rights).unwrap();
        assert_eq!(
            command_prefix.argv.join(" "),
            format!("/usr/bin/sudo {argv}"),
            "{privilege:?} {rights:?}"
        );
        assert_eq!(
            (command_prefix.shown.as_str(), command_prefix.ends),
            (shown, EndMethod::Sudo(ends)),
            "{privilege:?} {rights:?}"
        );
    }
}

#[test]
fn a_command_without_a_limit_has_nobody_beside_it_who_could_end_it() {
    let command_prefix =
        command_prefix(&command(&Privilege::Root, Duration::MAX), Duration::MAX, EVERYTHING, found).unwrap();
    assert_eq!(command_prefix.argv.join(" "), "/usr/bin/sudo -n DEBIAN_FRONTEND=noninteractive --");
    assert!(command_prefix.ends.may_leave());
}

#[test]
fn timeout_is_done_without_and_sudo_is_not() {
    let without = |missing: &'static str| {
        move |name: &str| match name == missing {
            true => Err(no_root()),
            false => found(name),
        }
    };
    let command = command(&Privilege::Root, Duration::from_secs(1));
    let untimed = command_prefix(&command, command.timeout, EVERYTHING, without("timeout")).unwrap();
    assert_eq!(untimed.argv.last().unwrap(), "--");
    assert_eq!(untimed.ends, EndMethod::Sudo(Signal::ALARM));
    assert!(command_prefix(&command, command.timeout, EVERYTHING, without("sudo")).is_err());
}

#[test]
fn timeout_is_told_by_nothing_that_would_end_it_before_its_group_unless_that_did_not_help() {
    for has_terminal in [false, true] {
        let signals = EndMethod::Sudo(Signal::CONT).signals(has_terminal);
        assert!(signals.starts_with(&[Signal::CONT, Signal::CONT]));
        assert!(signals.ends_with(&[Signal::ALARM]));
        assert_eq!(EndMethod::Sudo(Signal::ALARM).signals(has_terminal), [Signal::ALARM]);
    }
    // Behind a terminal it would reach the command as well, and spare the children that ignore it.
    assert!(!EndMethod::Sudo(Signal::CONT).signals(true).contains(&Signal::TERM));
}

#[test]
fn only_a_limit_of_timeouts_own_is_taken_for_one() {
    for (ends, exit_code, was) in [
        (EndMethod::Sudo(Signal::CONT), 124, true),
        (EndMethod::Sudo(Signal::CONT), 137, true),
        (EndMethod::Sudo(Signal::CONT), 143, false),
        (EndMethod::Sudo(Signal::ALARM), 137, false),
        (EndMethod::Group, 124, false),
    ] {
        assert_eq!(ends.was_backstop(exit_code), was, "{ends:?} {exit_code}");
    }
}

#[test]
fn several_commands_are_ended_by_the_signals_of_sudo_where_sudo_is_among_them() {
    let (own, sudo) = (EndMethod::Group, EndMethod::Sudo(Signal::CONT));
    let among = EndMethod::SudoAmongOthers(Signal::CONT);
    for (methods, expected) in [
        (&[own][..], own),
        (&[sudo], sudo),
        (&[own, own], own),
        (&[own, sudo], among),
        (&[sudo, sudo], among),
    ] {
        assert_eq!(EndMethod::of_all(methods), expected, "{methods:?}");
    }
    assert_eq!(among.signals(false), sudo.signals(false));
    assert!(among.was_backstop(124) && !among.may_leave());
    assert!(EndMethod::SudoAmongOthers(Signal::ALARM).may_leave());
}
