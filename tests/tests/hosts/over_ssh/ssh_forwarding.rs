//! The program forwards no agent, no display and no port over SSH, whatever the configuration says. The log of sshd
//! shows all requests. Tests of `host/openssh` show that the program refuses requests of a server.

use std::collections::BTreeSet;

use linux_sysadmin_tests::{Lab, SFTP};
use serde_json::json;

#[test]
fn nothing_but_commands_and_files_is_ever_asked_for() {
    let Some(lab) = Lab::with_parrot("nothing_but_commands_and_files_is_ever_asked_for") else { return };
    lab.agent();
    let settings =
        format!("{SFTP}AllowAgentForwarding yes\nX11Forwarding yes\nAllowTcpForwarding yes\nPermitTTY yes\n");
    let sshd = lab.other(
        "debian1",
        &settings,
        "  ForwardAgent yes\n  ForwardX11 yes\n  ForwardX11Trusted yes\n  RequestTTY force\n  SendEnv *\n  \
         SetEnv LANG=x\n  LocalForward 9001 localhost:22\n  RemoteForward 9002 localhost:22\n  \
         DynamicForward 9003\n  PermitLocalCommand yes\n  LocalCommand touch ran\n  RemoteCommand touch ran\n  \
         ControlMaster auto\n  ControlPath ~/control\n  ControlPersist yes",
    );
    lab.reaches("there", "debian1");
    let (envelope, said) = lab.call("there", "parrot_repeat", &json!({"commands": [["a"]]}));
    assert_eq!(envelope["status"], "success", "{envelope}");
    for keyword in
        ["ForwardAgent", "LocalForward", "RemoteForward", "DynamicForward", "RequestTTY", "RemoteCommand"]
    {
        assert!(said.contains(keyword), "{keyword} is not followed, which is said: {said}");
    }
    let log = sshd.log();
    let asked: BTreeSet<&str> = log
        .lines()
        .filter_map(|line| line.split_once("server_input_channel_req: channel ")?.1.split_once("request "))
        .filter_map(|(_, request)| request.split_whitespace().next())
        .collect();
    assert_eq!(asked, BTreeSet::from(["exec", "subsystem"]), "{log}");
    let opened: BTreeSet<&str> = log
        .lines()
        .filter_map(|line| line.split_once("server_input_channel_open: ctype ")?.1.split_whitespace().next())
        .collect();
    assert_eq!(opened, BTreeSet::from(["session"]), "{log}");
    let global: BTreeSet<&str> = log
        .lines()
        .filter_map(|line| {
            line.split_once("server_input_global_request: rtype ")?.1.split_whitespace().next()
        })
        .filter(|name| *name != "keepalive@openssh.com")
        .collect();
    assert_eq!(global, BTreeSet::new(), "{log}");
    for file in ["ran", "control"] {
        assert!(!lab.home().path().join(file).exists(), "{file}");
    }
    assert!(!lab.host("debian1").holds("test -e /root/ran"), "the RemoteCommand");
}
