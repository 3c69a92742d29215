//! A route takes the way of the SSH session away that carries the call, or the address goes to which the session is. The call is
//! critical and says which session, and the host puts back what it had without a word from the server.

use linux_sysadmin_tests::{Lab, Way};
use serde_json::{Value, json};

const WAY: Way = Way::Elicitation;

/// Has the server notice soon that nothing comes back, and wait for what the host then does.
const QUICK: &str = "ssh:\n  keepalive_interval: 1\n  keepalive_max_missed: 2\njobs: {after_seconds: 0}\n";

/// The address of the machine at the other end of the session.
const PEER: &str = "ss -Htn state established '( sport = :22 )' | awk '{print $4}' | sed 's/:[0-9]*$//' | sort -u | tail -n 1";
/// The address of the host with its length.
const OWN: &str = "ip -4 -oneline address show dev eth0 scope global | awk '{print $4}' | head -n 1";
const NETWORK: &str = "ip -4 address show dev eth0 | grep inet; ip -4 route show | sort";
const NO_GUARD: &str = "! ls /run/systemd/system/linux-sysadmin-guard* 2>/dev/null";

/// Makes a change that cuts the session, and waits until the host has undone it.
async fn cuts(lab: &Lab, name: &str, tool: &str, arguments: impl FnOnce(&str, &str) -> Value) {
    let host = lab.host(name);
    let (version, capabilities) = WAY.client();
    let mut client = lab.serve(&["--host", name]);
    client.can(capabilities);
    client.initialize(version).await;
    let looked = client.envelope("net_interfaces", json!({"name": "eth0"})).await;
    assert_eq!(looked["status"], "success", "{looked}");
    let [peer, own] = [PEER, OWN].map(|script| host.run(&["sh", "-c", script]).trim().to_owned());
    let before = host.run(&["sh", "-c", NETWORK]);

    let asked = client.is_asked(WAY, tool, arguments(&peer, &own)).await;
    let text = asked.text();
    assert!(text.contains("critical") && text.contains(&format!("session from {peer}")), "{text}");
    let envelope = client.answers(&asked, "accept").await;
    assert_eq!(
        (&envelope["status"], &envelope["error_category"]),
        (&json!("error"), &json!("network")),
        "{envelope}"
    );

    host.until(NO_GUARD);
    assert_eq!(host.run(&["sh", "-c", NETWORK]), before, "{name}");
    let reached = client.envelope("net_interfaces", json!({"name": "eth0"})).await;
    assert_eq!(reached["status"], "success", "{reached}");
}

#[tokio::test]
async fn a_route_and_an_address_that_cut_the_session_off_come_back() {
    let Some(lab) = Lab::new("a_route_and_an_address_that_cut_the_session_off_come_back") else { return };
    lab.settle_for(QUICK);
    // Nobody has this address, and it is in the network of the lab's hosts.
    let route = cuts(&lab, "debian1", "net_routes_modify", |peer, own| {
        let network = own.rsplit_once('.').expect("an address").0;
        json!({"action": "add", "to": peer, "via": format!("{network}.250")})
    });
    let address = cuts(
        &lab,
        "rhel1",
        "net_addresses_modify",
        |_, own| json!({"action": "remove", "interface": "eth0", "address": own}),
    );
    tokio::join!(route, address);
}
