//! Tests the names and keys by which a host is known, on real sshds. The real ssh agrees in each case.

use linux_sysadmin_tests::{Key, Lab, Sshd};

/// Asserts that the real ssh accepts or refuses the host in the same way.
#[track_caller]
fn ssh_is(lab: &Lab, content: bool) {
    let output = lab.ssh(&["-o", "StrictHostKeyChecking=yes", "there", "true"]);
    assert_eq!(output.status.success(), content, "{}", String::from_utf8_lossy(&output.stderr));
}

/// Starts a second sshd with these keys, none of which is known. The SSH configuration has it as `there`.
fn unknown(lab: &Lab, keys: &[&Key]) -> Sshd {
    let sshd = lab.sshd("bare1", 2201);
    sshd.start(keys, "");
    lab.configure_other("bare1", "");
    lab.forget_hosts();
    sshd
}

#[test]
fn a_host_is_known_by_a_valid_certificate_of_an_authority_that_is_trusted_for_it() {
    let test = "a_host_is_known_by_a_valid_certificate_of_an_authority_that_is_trusted_for_it";
    let Some(lab) = Lab::with_parrot(test) else { return };
    let authority = lab.key("authority", "ed25519");
    let address = lab.address("bare1");
    let sshd = unknown(&lab, &[&authority]);
    let trusted = [
        format!("@cert-authority {} {}", sshd.known_as(), authority.public()),
        format!("@cert-authority {address} {}", authority.public()),
        format!("@cert-authority 198.18.*,[198.18.*]:* {}", authority.public()),
        format!("@cert-authority * {}", authority.public()),
    ];
    let elsewhere = format!("@cert-authority 203.0.113.* {}", authority.public());
    for (name, kind, options, refusal) in [
        ("valid", "ed25519", &["-h", "-n", &*address, "-V", "-1d:+1d"][..], None),
        ("of-another-type", "rsa", &["-h", "-n", &address, "-V", "-1d:+1d"], None),
        ("one-of-several", "ecdsa", &["-h", "-n", &format!("a,{address}"), "-V", "-1d:+1d"], None),
        ("expired", "ed25519", &["-h", "-n", &address, "-V", "-2d:-1d"], Some("was valid until")),
        ("early", "ed25519", &["-h", "-n", &address, "-V", "+1d:+2d"], Some("isn't valid before")),
        ("other", "ed25519", &["-h", "-n", "elsewhere", "-V", "-1d:+1d"], Some("is for elsewhere")),
    ] {
        let key = lab.key(name, kind);
        lab.sign(&authority, &key, options);
        sshd.start(&[&key], "");
        for line in &trusted {
            lab.forget_hosts();
            lab.know(line);
            match refusal {
                None => lab.reaches("there", "bare1"),
                Some(why) => {
                    let refused = lab.misses("there", "HOST_KEY_INVALID");
                    assert!(refused["message"].as_str().is_some_and(|said| said.contains(why)), "{refused}");
                }
            }
        }
        ssh_is(&lab, refusal.is_none());
        lab.forget_hosts();
        lab.know(&elsewhere);
        lab.misses("there", "HOST_KEY_UNKNOWN");
    }
}

#[test]
fn of_a_hosts_several_keys_the_one_that_is_known_is_asked_for() {
    let Some(lab) = Lab::with_parrot("of_a_hosts_several_keys_the_one_that_is_known_is_asked_for") else {
        return;
    };
    let keys = ["ed25519", "ecdsa", "rsa"].map(|kind| lab.key(&format!("host-{kind}"), kind));
    let sshd = unknown(&lab, &keys.each_ref());
    for key in &keys {
        lab.forget_hosts();
        lab.know(&format!("{} {}", sshd.known_as(), key.public()));
        lab.reaches("there", "bare1");
        ssh_is(&lab, true);
    }
}

#[test]
fn a_host_is_known_by_a_hashed_name_by_its_alias_for_keys_and_with_its_port() {
    let test = "a_host_is_known_by_a_hashed_name_by_its_alias_for_keys_and_with_its_port";
    let Some(lab) = Lab::with_parrot(test) else { return };
    let (key, other) = (lab.key("host", "ed25519"), lab.key("other", "ed25519"));
    let (sshd, address) = (unknown(&lab, &[&key]), lab.address("bare1"));
    lab.misses("there", "HOST_KEY_UNKNOWN");
    lab.know(&format!("{} {}", sshd.known_as(), key.public()));
    lab.reaches("there", "bare1");
    lab.run(&["ssh-keygen", "-q", "-H", "-f", lab.file("known_hosts").to_str().expect("UTF-8")]);
    let hashed = std::fs::read_to_string(lab.file("known_hosts")).expect("known_hosts");
    assert!(hashed.starts_with("|1|"), "{hashed}");
    lab.reaches("there", "bare1");

    lab.configure_other("bare1", "  HostKeyAlias Another-Name");
    // No host is reached by that name, so no command in the advice has it.
    let refused = lab.misses("there", "HOST_KEY_UNKNOWN");
    let remedies = refused["remediation"].to_string();
    for command in
        ["`ssh -p 2201 there`", &format!("-p 2201 {address} | ssh-keygen"), "accept-new` for there"]
    {
        assert!(remedies.contains(command), "{command}: {refused}");
    }
    lab.know(&format!("another-name {}", key.public()));
    lab.reaches("there", "bare1");
    ssh_is(&lab, true);
    // Keys of its address don't count any more.
    lab.forget_hosts();
    lab.know(&format!("{} {}", sshd.known_as(), other.public()));
    lab.know(&format!("another-name {}", key.public()));
    lab.reaches("there", "bare1");

    // The same host has another key on its own port.
    lab.configure_other("bare1", "");
    lab.forget_hosts();
    lab.knows(&lab.address("bare1"), "bare1");
    lab.know(&format!("{} {}", sshd.known_as(), key.public()));
    lab.reaches("there", "bare1");
    ssh_is(&lab, true);
}
