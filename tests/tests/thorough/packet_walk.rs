//! Packets prove rules: a random walk over rule sets, in which each step adds a rule or removes one. After each step, a client
//! in another network namespace gets through to ports of the host, or not, as `fw_explain` said. `LINUX_SYSADMIN_SEED` repeats
//! a walk.

use std::time::{SystemTime, UNIX_EPOCH};

use linux_sysadmin_tests::{Changing, Client, Lab, Reach, skipped, way};
use serde_json::{Value, json};

/// The most rules at once, beside the one for SSH.
const MOST: usize = 8;
const PORTS: [u16; 6] = [7001, 7002, 7003, 7004, 7005, 7006];

/// The kernel would answer only one rejected packet a second to one client.
const PREPARE: &str = r"
mkdir /run/lsa-firewall
for path in /etc/ufw /etc/firewalld/zones /etc/nftables.conf; do
    test ! -e $path || cp -a --parents $path /run/lsa-firewall
done
sysctl --quiet --write net.ipv4.icmp_ratelimit=0
";

const CLEAN: &str = r"
command -v ufw > /dev/null && ufw disable
systemctl stop firewalld.service
systemctl disable firewalld.service nftables.service
nft delete table inet linux_sysadmin
rm -f /etc/firewalld/zones/public.xml* /etc/nftables.d/linux-sysadmin.nft
rmdir /etc/nftables.d
test ! -d /run/lsa-firewall || cp -a /run/lsa-firewall/. /
rm -rf /run/lsa-firewall
sysctl --quiet --write net.ipv4.icmp_ratelimit=1000
true
";

/// Takes connections at these ports, until it ends.
const LISTENER: &str = "
import selectors, socket, sys
waits = selectors.DefaultSelector()
for port in range(7001, 7007):
    waits.register(socket.create_server(('0.0.0.0', port)), selectors.EVENT_READ)
waits.register(sys.stdin, selectors.EVENT_READ)
print('ready', flush=True)
while True:
    for key, _ in waits.select():
        if key.fileobj is sys.stdin:
            sys.exit()
        key.fileobj.accept()[0].close()
";

/// Tries these ports at once. The arguments are the seconds to wait, the host, and the ports.
const PROBE: &str = r#"
seconds=$0 host=$1; shift
for port in "$@"; do
    (timeout $seconds bash -c "exec 3<>/dev/tcp/$host/$port" 2> /dev/null; echo $port $?) &
done
wait
"#;

/// Random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// A rule for some of the ports, and for the client, for others, or for everybody.
    fn rule(&mut self, client: &str) -> Value {
        let parts: Vec<&str> = client.split('.').collect();
        let sources = [
            String::new(),
            client.to_owned(),
            format!("{}.{}.{}.0/24", parts[0], parts[1], parts[2]),
            format!("{}.{}.0.0/16", parts[0], parts[1]),
            "203.0.113.7".to_owned(),
            "2001:db8::/32".to_owned(),
        ];
        let (one, other) = (*self.one_of(&PORTS), *self.one_of(&PORTS));
        let is_range = self.below(3) == 0 && one != other;
        let port = match is_range {
            true => format!("{}:{}", one.min(other), one.max(other)),
            false => one.to_string(),
        };
        // ufw takes a range with one protocol only.
        let protocol = if is_range || self.below(2) == 0 { "tcp" } else { "any" };
        let action = *self.one_of(&["allow", "allow", "deny", "reject"]);
        let mut rule = json!({"action": action, "direction": "in", "port": port, "protocol": protocol});
        let source = self.one_of(&sources);
        if !source.is_empty() {
            rule["source"] = json!(source);
        }
        rule
    }
}

async fn confirmed(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let answer = client.envelope(tool, arguments.clone()).await;
    if answer["status"] != "confirmation_required" {
        return answer;
    }
    let mut arguments = arguments.clone();
    arguments["confirmed"] = json!(true);
    client.envelope(tool, arguments).await
}

/// The fates of connections to these ports, as the client sees them.
fn fates(lab: &Lab, host: &str, ports: &[u16], seconds: &str) -> Vec<(u16, &'static str)> {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let mut argv = vec!["bash", "-c", PROBE, seconds, host];
    argv.extend(ports.iter().map(String::as_str));
    let said = lab.run(&argv);
    let fate = |line: &str| {
        let (port, code) = line.split_once(' ').expect("a port and a code");
        let fate = match code {
            "0" => "accepted",
            "124" => "dropped",
            _ => "rejected",
        };
        (port.parse().expect("a port"), fate)
    };
    said.lines().map(fate).collect()
}

/// Walks over so many rule sets of this firewall, or else of the one that the host has.
pub(crate) async fn packets_prove_rules(backend: Option<&str>, sets: usize, test: &str) {
    let Reach::Inside(name) = way() else {
        skipped(test, "the client is the same whether the server runs on the host or reaches it over SSH");
        return;
    };
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let lab = Lab::beside_others(test).expect("the hosts are up");
    let own = if machine.holds("command -v ufw") { "ufw" } else { "firewalld" };
    let backend = backend.unwrap_or(own);
    let settings =
        format!("safety:\n  confirmation_threshold: critical\ndistro:\n  firewall_backend: {backend}\n");
    machine.configure("root", &settings);
    let mut client = machine.serve_default().await;
    confirmed(&mut client, "fw_enable", &json!({})).await;
    let (_listener, ready) = machine.helper(LISTENER);
    assert_eq!(ready, "ready");
    let host = lab.address(name);
    let route: Value = serde_json::from_str(&lab.run(&["ip", "-j", "route", "get", &host])).expect("JSON");
    let from = route[0]["prefsrc"].as_str().expect("an address").to_owned();

    let given = std::env::var("LINUX_SYSADMIN_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").subsec_nanos();
    let seed: u64 = given.unwrap_or(now.into());
    let (mut dice, mut rules, mut story) = (Dice(seed), Vec::<Value>::new(), Vec::new());
    let mut counts = [0usize; 3];
    for _ in 0..sets {
        let removes = !rules.is_empty() && (rules.len() == MOST || dice.below(3) == 0);
        let (tool, rule) = match removes {
            true => ("fw_remove_rule", rules.remove(dice.below(rules.len()))),
            false => ("fw_add_rule", dice.rule(&from)),
        };
        let answer = confirmed(&mut client, tool, &rule).await;
        story.push(format!("{tool} {rule}: {} {}", answer["status"], answer["error_code"]));
        match (answer["status"] == "success", answer["error_code"].as_str()) {
            (true, _) if !removes && !rules.contains(&rule) => rules.push(rule),
            (true, _) | (false, Some("RULE_WITHOUT_EFFECT")) => {}
            // ufw keeps one rule for the same packets.
            (false, Some("RULE_CONTRADICTS")) if !removes && backend == "ufw" => {}
            // firewalld keeps a rule of any protocol as one for TCP and one for UDP, which other rules may share.
            (false, Some("RULE_NOT_FOUND")) if removes && backend == "firewalld" => {}
            _ => panic!("{backend}, LINUX_SYSADMIN_SEED={seed}\n{}\n{answer}", story.join("\n")),
        }
        let mut seen = fates(&lab, &host, &PORTS, "0.5");
        for _ in 0..3 {
            let at = dice.below(seen.len());
            let port = seen[at].0;
            let explained = client.envelope("fw_explain", json!({"port": port, "from": from})).await;
            let said = &explained["data"]["verdict"];
            if seen[at].1 == "dropped" && *said != "dropped" {
                // A slow machine answers later. The other ports may well be closed for good.
                seen[at] = fates(&lab, &host, &[port], "10")[0];
            }
            let fate = seen[at].1;
            assert_eq!(
                said,
                fate,
                "port {port} of {backend}, LINUX_SYSADMIN_SEED={seed}\n{}\n{explained}\n{}",
                story.join("\n"),
                machine.sh("nft list ruleset")
            );
            counts[["accepted", "dropped", "rejected"]
                .iter()
                .position(|known| *known == fate)
                .expect("a fate")] += 1;
        }
    }
    assert!(counts.iter().filter(|count| **count > 0).count() >= 2, "{backend}: {counts:?}");
    confirmed(&mut client, "fw_disable", &json!({})).await;
}
