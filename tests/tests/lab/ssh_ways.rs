//! Tests the ways to reach a host by SSH, and the accounts on it, on real sshds.

use linux_sysadmin_tests::{Lab, until_gone};

/// Settings of an sshd that accepts certificates.
const CERTIFIED: &str = "TrustedUserCAKeys /run/lab-sshd-2201/authority.pub\nAuthorizedKeysFile none\n";

#[test]
fn a_host_behind_jumps_is_reached_by_a_list_of_them_and_by_a_jump_that_has_its_own() {
    let test = "a_host_behind_jumps_is_reached_by_a_list_of_them_and_by_a_jump_that_has_its_own";
    let Some(lab) = Lab::with_parrot(test) else { return };
    let (rhel, bare) = lab.chain();
    lab.knows(rhel, "rhel1");
    lab.knows(bare, "bare1");
    let first = lab.address("debian1");
    lab.configure(&format!(
        "{}Host inner\n  HostName {rhel}\n  ProxyJump debian1\n\
         Host by-a-jump\n  HostName {bare}\n  ProxyJump inner\n\
         Host by-a-list\n  HostName {bare}\n  ProxyJump debian1,inner\n\
         Host by-addresses\n  HostName {bare}\n  ProxyJump root@{first}:22,ssh://root@{rhel}\n\
         Host by-one\n  HostName {bare}\n  ProxyJump debian1\n\
         Host *\n  User root\n",
        lab.aliases()
    ));
    lab.reaches("inner", "rhel1");
    for alias in ["by-a-jump", "by-a-list", "by-addresses"] {
        lab.reaches(alias, "bare1");
    }
    let beyond = lab.misses("by-one", "CONNECTION_FAILED");
    assert!(beyond["message"].as_str().is_some_and(|message| message.contains("jump host")), "{beyond}");
}

#[test]
fn a_proxy_command_is_run_and_ends_with_the_connection() {
    let Some(lab) = Lab::with_parrot("a_proxy_command_is_run_and_ends_with_the_connection") else { return };
    let (rhel, _) = lab.chain();
    lab.knows(rhel, "rhel1");
    let address = lab.address("bare1");
    lab.configure(&format!(
        "{}Host by-ssh\n  HostName {rhel}\n  ProxyCommand ssh -W [%h]:%p debian1\n\
         Host by-nc\n  HostName {address}\n  ProxyCommand nc %h %p\n\
         Host by-nobody\n  HostName {address}\n  ProxyCommand nc %h 9\n\
         Host *\n  User root\n",
        lab.aliases()
    ));
    lab.reaches("by-ssh", "rhel1");
    lab.reaches("by-nc", "bare1");
    lab.misses("by-nobody", "CONNECTION_FAILED");
    for mark in [format!("nc\0{address}\0"), format!("-W\0[{rhel}]:22\0")] {
        until_gone(&mark);
    }
}

#[test]
fn a_proxy_command_that_needs_a_shell_is_refused_and_not_run() {
    let test = "a_proxy_command_that_needs_a_shell_is_refused_and_not_run";
    let Some(lab) = Lab::with_parrot(test) else { return };
    let ran = lab.file("ran");
    for command in [
        "touch RAN; nc %h %p",
        "touch RAN && nc %h %p",
        "nc %h %p | tee RAN",
        "nc %h %p 2>RAN",
        "nc $(touch RAN) %h %p",
        "nc `touch RAN` %h %p",
        "nc \"$(touch RAN)\" %h %p",
        "A=b nc %h %p",
    ] {
        let command = command.replace("RAN", ran.to_str().expect("UTF-8"));
        lab.configure(&format!("{}Host *\n  ProxyCommand {command}\n", lab.aliases()));
        let refused = lab.misses("bare1", "PROXY_COMMAND_REFUSED");
        assert_eq!(refused["error_category"], "validation", "{refused}");
        assert!(refused["remediation"].to_string().contains("ProxyJump"), "{refused}");
        assert!(!ran.exists(), "{command}");
    }
}

#[test]
fn a_key_that_only_the_agent_has_lets_in_and_identities_only_chooses_among_many() {
    let test = "a_key_that_only_the_agent_has_lets_in_and_identities_only_chooses_among_many";
    let Some(lab) = Lab::with_parrot(test) else { return };
    let sshd = lab.other("bare1", "AuthorizedKeysFile /run/lab-sshd-2201/authorized\n", "");
    let user = lab.key("user", "ed25519");
    sshd.put("authorized", user.public().as_bytes());
    let refused = lab.misses("there", "AUTHENTICATION_FAILED");
    assert!(refused["remediation"].to_string().contains("ssh-add"), "{refused}");

    lab.agent();
    for number in 0..6 {
        lab.add_key(&lab.key(&format!("wrong{number}"), "ed25519"));
    }
    lab.add_key(&user);
    std::fs::remove_file(user.path()).expect("the key is the agent's alone");
    let refused = lab.misses("there", "AUTHENTICATION_FAILED");
    assert!(refused["remediation"].to_string().contains("IdentitiesOnly"), "{refused}");
    lab.configure_other("bare1", &format!("  IdentitiesOnly yes\n  IdentityFile {}", user.path()));
    lab.reaches("there", "bare1");
    lab.configure_other(
        "bare1",
        &format!("  IdentityAgent none\n  IdentitiesOnly yes\n  IdentityFile {}", user.path()),
    );
    lab.misses("there", "AUTHENTICATION_FAILED");
}

#[test]
fn an_encrypted_key_is_used_by_the_agent_and_without_it_the_remedy_is_said() {
    let test = "an_encrypted_key_is_used_by_the_agent_and_without_it_the_remedy_is_said";
    let Some(lab) = Lab::with_parrot(test) else { return };
    let user = lab.key("user", "ecdsa");
    let sshd = lab.other(
        "bare1",
        "AuthorizedKeysFile /run/lab-sshd-2201/authorized\n",
        &format!("  IdentityFile {}", user.path()),
    );
    sshd.put("authorized", user.public().as_bytes());
    lab.reaches("there", "bare1");
    lab.agent();
    lab.add_key(&user);
    lab.run(&["ssh-keygen", "-q", "-p", "-N", "a passphrase", "-f", user.path()]);
    lab.reaches("there", "bare1");
    lab.run(&["ssh-add", "-q", "-D"]);
    let refused = lab.misses("there", "AUTHENTICATION_FAILED");
    let remedy = format!("ssh-add {}", user.path());
    assert!(refused["remediation"].to_string().contains(&remedy), "{refused}");
}

#[test]
fn a_users_certificate_lets_in_its_principals_while_it_is_valid() {
    let test = "a_users_certificate_lets_in_its_principals_while_it_is_valid";
    let Some(lab) = Lab::with_parrot(test) else { return };
    let (authority, user) = (lab.key("authority", "ed25519"), lab.key("user", "ed25519"));
    let lines =
        |account: &str| format!("  User {account}\n  IdentitiesOnly yes\n  IdentityFile {}", user.path());
    let sshd = lab.sshd("bare1", 2201);
    sshd.put("authority.pub", authority.public().as_bytes());
    let sshd = lab.other("bare1", CERTIFIED, &lines("admin"));
    lab.misses("there", "AUTHENTICATION_FAILED");
    for (options, account, is_taken) in [
        (&["-n", "admin", "-V", "-1h:+1h"][..], "admin", true),
        (&["-n", "admin", "-V", "-1h:+1h"], "root", false),
        (&["-n", "root,admin", "-V", "-1h:+1h"], "root", true),
        (&["-n", "admin", "-V", "-2h:-1h"], "admin", false),
        (&["-n", "admin", "-V", "+1h:+2h"], "admin", false),
    ] {
        lab.sign(&authority, &user, options);
        lab.configure_other("bare1", &lines(account));
        match is_taken {
            true => lab.reaches("there", "bare1"),
            false => drop(lab.misses("there", "AUTHENTICATION_FAILED")),
        }
    }
    // The agent has the certificate with its key.
    lab.sign(&authority, &user, &["-n", "admin", "-V", "-1h:+1h"]);
    lab.agent();
    lab.add_key(&user);
    for file in ["user", "user.pub", "user-cert.pub"] {
        std::fs::remove_file(lab.file(file)).expect("it is the agent's alone");
    }
    lab.configure_other("bare1", "  User admin");
    lab.reaches("there", "bare1");
    drop(sshd);
}
