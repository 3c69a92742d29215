//! The program refuses a host with an unknown or a wrong key before it sends anything, on real sshds. The log of
//! each sshd shows what it was asked.

use linux_sysadmin_tests::{Key, Lab, Sshd};
use serde_json::Value;

/// Asserts that the sshd got a connection and no account's name.
#[track_caller]
fn heard_nothing(sshd: &Sshd) {
    let log = sshd.logged("Killing privsep child");
    assert!(!log.contains("userauth-request"), "{log}");
    assert!(!log.contains("session opened"), "{log}");
}

#[track_caller]
fn says(envelope: &Value, texts: &[&str]) {
    let said = format!("{} {}", envelope["message"], envelope["remediation"]);
    for text in texts {
        assert!(said.contains(text), "{text}: {envelope}");
    }
}

fn fingerprint(lab: &Lab, key: &Key) -> String {
    let shown = lab.run(&["ssh-keygen", "-lf", key.path()]);
    shown.split_whitespace().nth(1).expect("a fingerprint").to_owned()
}

#[test]
fn one_that_is_unknown_is_refused_with_its_fingerprint_and_what_to_do() {
    let test = "one_that_is_unknown_is_refused_with_its_fingerprint_and_what_to_do";
    let Some(lab) = Lab::with_parrot(test) else { return };
    let sshd = lab.other("bare1", "", "");
    let key = lab.key("new", "ed25519");
    let (fingerprint, address) = (fingerprint(&lab, &key), lab.address("bare1"));
    for strict in
        ["", "  StrictHostKeyChecking yes", "  StrictHostKeyChecking ask", "  StrictHostKeyChecking no"]
    {
        sshd.stop();
        let sshd = lab.sshd("bare1", 2201);
        sshd.start(&[&key], "LogLevel DEBUG1\n");
        lab.configure_other("bare1", strict);
        lab.forget_hosts();
        let refused = lab.misses("there", "HOST_KEY_UNKNOWN");
        assert_eq!(refused["fingerprint"], fingerprint, "{refused}");
        assert_eq!(refused["error_category"], "denied", "{refused}");
        says(&refused, &[&fingerprint, &format!("ssh -p 2201 {address}"), "accept-new"]);
        heard_nothing(&sshd);
        assert_eq!(std::fs::read_to_string(lab.file("known_hosts")).expect("known_hosts"), "", "{strict}");
    }
}

#[test]
fn without_strict_checking_one_that_is_known_is_reached_and_the_log_says_what_isnt_followed() {
    let test = "without_strict_checking_one_that_is_known_is_reached_and_the_log_says_what_isnt_followed";
    let Some(lab) = Lab::with_parrot(test) else { return };
    let _sshd = lab.other("bare1", "", "  StrictHostKeyChecking no");
    lab.reaches("there", "bare1");
    let (_, said) = lab.call("there", "parrot_read", &serde_json::json!({"path": "/etc/hostname"}));
    assert!(said.contains("StrictHostKeyChecking") && said.contains("taken as ask"), "{said}");
    lab.forget_hosts();
    // The error says why the connection is refused.
    let refused = lab.misses("there", "HOST_KEY_UNKNOWN");
    assert!(refused["not_followed"].to_string().contains("is taken as ask"), "{refused}");
}

#[test]
fn accept_new_writes_it_down_and_refuses_another_one_afterwards() {
    let test = "accept_new_writes_it_down_and_refuses_another_one_afterwards";
    let Some(lab) = Lab::with_parrot(test) else { return };
    for (name, hashed) in [("plain", "no"), ("hashed", "yes")] {
        let lines = format!("  StrictHostKeyChecking accept-new\n  HashKnownHosts {hashed}");
        let sshd = lab.other("bare1", "", &lines);
        let key = lab.key(name, "ed25519");
        sshd.start(&[&key], "LogLevel DEBUG1\n");
        lab.forget_hosts();
        lab.reaches("there", "bare1");
        let known = std::fs::read_to_string(lab.file("known_hosts")).expect("known_hosts");
        assert_eq!(known.lines().count(), 1, "{known}");
        assert_eq!(known.starts_with("|1|"), hashed == "yes", "{known}");
        lab.configure_other("bare1", "  StrictHostKeyChecking yes");
        lab.reaches("there", "bare1");
        let output = lab.ssh(&["there", "true"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

        drop(sshd);
        let sshd = lab.sshd("bare1", 2201);
        let other = lab.key(&format!("{name}-other"), "ed25519");
        sshd.start(&[&other], "LogLevel DEBUG1\n");
        lab.configure_other("bare1", &lines);
        says(&lab.misses("there", "HOST_KEY_CHANGED"), &["HAS CHANGED", &fingerprint(&lab, &other)]);
        heard_nothing(&sshd);
        let after = std::fs::read_to_string(lab.file("known_hosts")).expect("known_hosts");
        assert_eq!(after, known);
    }
}

#[test]
fn one_that_has_changed_is_refused_whatever_its_type_and_the_configuration() {
    let test = "one_that_has_changed_is_refused_whatever_its_type_and_the_configuration";
    let Some(lab) = Lab::with_parrot(test) else { return };
    let known = lab.key("known", "ed25519");
    for (name, kind, strict) in
        [("same", "ed25519", "yes"), ("other", "ecdsa", "no"), ("third", "rsa", "accept-new")]
    {
        let key = lab.key(name, kind);
        let sshd = lab.sshd("bare1", 2201);
        lab.forget_hosts();
        lab.know(&format!("{} {}", sshd.known_as(), known.public()));
        sshd.start(&[&key], "LogLevel DEBUG1\n");
        lab.configure_other("bare1", &format!("  StrictHostKeyChecking {strict}"));
        let refused = lab.misses("there", "HOST_KEY_CHANGED");
        says(
            &refused,
            &["HAS CHANGED", &fingerprint(&lab, &key), &fingerprint(&lab, &known), "ssh-keygen -f"],
        );
        assert_eq!(refused["known"][0]["line"], 1, "{refused}");
        heard_nothing(&sshd);
    }
}

#[test]
fn a_revoked_key_and_a_revoked_authority_are_refused() {
    let Some(lab) = Lab::with_parrot("a_revoked_key_and_a_revoked_authority_are_refused") else { return };
    let (key, authority) = (lab.key("stolen", "ed25519"), lab.key("authority", "ed25519"));
    for (signed, revoked) in [(false, &key), (true, &key), (true, &authority)] {
        let sshd = lab.sshd("bare1", 2201);
        if signed {
            lab.sign(&authority, &key, &["-h", "-n", &lab.address("bare1"), "-V", "-1d:+1d"]);
        }
        sshd.start(&[&key], "LogLevel DEBUG1\n");
        lab.configure_other("bare1", "  StrictHostKeyChecking no");
        lab.forget_hosts();
        lab.know(&format!("{} {}", sshd.known_as(), key.public()));
        lab.know(&format!("@cert-authority * {}", authority.public()));
        lab.know(&format!("@revoked * {}", revoked.public()));
        says(&lab.misses("there", "HOST_KEY_REVOKED"), &["REVOKED", &fingerprint(&lab, revoked)]);
        heard_nothing(&sshd);
    }
}

#[test]
fn a_jump_whose_key_has_changed_is_told_nothing_and_nobody_behind_it_is_reached() {
    let test = "a_jump_whose_key_has_changed_is_told_nothing_and_nobody_behind_it_is_reached";
    let Some(lab) = Lab::with_parrot(test) else { return };
    let (key, known) = (lab.key("now", "ed25519"), lab.key("before", "ed25519"));
    let (jump, target) = (lab.sshd("debian1", 2201), lab.sshd("bare1", 2201));
    jump.start(&[&key], "LogLevel DEBUG1\n");
    target.start(&[&key], "LogLevel DEBUG1\n");
    lab.configure(&format!(
        "Host jump\n  HostName {}\nHost there\n  HostName {}\n  ProxyJump jump\nHost *\n  User root\n  Port 2201\n",
        lab.address("debian1"),
        lab.address("bare1")
    ));
    let know = |jump_key: &Key, target_key: &Key| {
        lab.forget_hosts();
        lab.know(&format!("{} {}", jump.known_as(), jump_key.public()));
        lab.know(&format!("{} {}", target.known_as(), target_key.public()));
    };
    know(&known, &key);
    says(&lab.misses("there", "HOST_KEY_CHANGED"), &[&jump.known_as()]);
    heard_nothing(&jump);
    assert!(!target.log().contains("Connection from"), "{}", target.log());

    // In the other case the jump host is used, and the host behind it gets no account's name.
    know(&key, &known);
    says(&lab.misses("there", "HOST_KEY_CHANGED"), &[&target.known_as()]);
    heard_nothing(&target);
    know(&key, &key);
    lab.reaches("there", "bare1");
}
