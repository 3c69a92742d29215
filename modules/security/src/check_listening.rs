//! `sec_check_listening`: sockets that can be reached from farther away than their service means to.
//!
//! The profiles of services say how far each port should be reached. Firewalls are not taken into account: the service
//! itself is the last line.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::knowledge::ports::{is_beyond, is_own, number};
use linux_sysadmin_sdk::knowledge::{Port, Profile, Scope, Status};
use linux_sysadmin_sdk::listening::{self, Reach, Socket};
use linux_sysadmin_sdk::prelude::*;
use serde_json::json;

use crate::finding::{Finding, Found, Report};

/// The most ports that an answer lists.
const MOST: usize = 60;

/// Ports of services that carry passwords and contents as plain text, and have an encrypted successor.
const CLEARTEXT: [(u16, bool, &str); 9] = [
    (21, false, "FTP"),
    (23, false, "telnet"),
    (69, true, "TFTP"),
    (79, false, "finger"),
    (512, false, "rexec"),
    (513, false, "rlogin"),
    (514, false, "rsh"),
    (2049, true, "NFS over UDP"),
    (6000, false, "X11"),
];

/// Sockets on which programs of a base system wait for answers, or tell their names to the local network: the name of
/// the process, the port (0: any above 1023), and whether it is of UDP.
const OF_THE_SYSTEM: [(&str, u16, bool); 18] = [
    ("dhclient", 68, true),
    ("dhclient", 546, true),
    ("dhcpcd", 68, true),
    ("dhcpcd", 546, true),
    ("systemd-network", 68, true),
    ("systemd-network", 546, true),
    ("NetworkManager", 68, true),
    ("NetworkManager", 546, true),
    ("systemd-resolve", 5353, true),
    ("systemd-resolve", 5355, true),
    ("systemd-resolve", 5355, false),
    ("avahi-daemon", 5353, true),
    ("avahi-daemon", 0, true),
    ("chronyd", 0, true),
    ("systemd-timesyn", 0, true),
    ("ntpd", 123, true),
    ("rsyslogd", 0, true),
    ("unbound", 0, true),
];

pub(crate) fn tool(module: Module) -> Module {
    module.command(listening::grant()).tool(Tool::new(
        "sec_check_listening",
        "Listening ports; which are exposed beyond what their service means",
        sec_check_listening,
    ))
}

/// The findings, and all ports.
#[derive(Debug, Serialize)]
pub(crate) struct Listening {
    #[serde(flatten)]
    report: Report,
    /// Port, process and reach: `local`, `lan`, `any` or `public`. Those that are reached from farthest come first.
    listening: Vec<String>,
    /// The number of ports that are left out.
    #[serde(skip_serializing_if = "is_zero")]
    more: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn sec_check_listening(_: NoArgs, cx: &Context) -> Result<Analysis<Listening>> {
    let sockets = sockets(cx)?;
    let mut listening = listed(&sockets);
    let more = listening.len().saturating_sub(MOST);
    listening.truncate(MOST);
    let Analysis { data: report, summary, severity } =
        judge(&sockets, &cx.detected()).analysis("listening ports");
    Ok(Analysis { data: Listening { report, listening, more }, summary, severity })
}

/// The check as `sec_audit` runs it.
pub(crate) fn find(cx: &Context) -> Result<Found> {
    Ok(judge(&sockets(cx)?, &cx.detected()))
}

/// The commands that don't wait for another one.
pub(crate) fn ahead(_: &Context) -> Vec<Command> {
    vec![listening::command()]
}

fn sockets(cx: &Context) -> Result<Vec<Socket>> {
    let output = cx.run(listening::command())?.success("ss")?;
    let sockets = listening::parse(&output.text());
    if sockets.is_empty() && !output.text().trim().is_empty() {
        return Err(Problem::unexpected("ss", &output.text()));
    }
    Ok(sockets)
}

fn listed(sockets: &[Socket]) -> Vec<String> {
    let mut ports: BTreeMap<(u16, &str, String), Reach> = BTreeMap::new();
    for socket in sockets {
        let reach =
            ports.entry((socket.port, socket.protocol(), socket.names().join(","))).or_insert(Reach::Local);
        *reach = socket.reach().max(*reach);
    }
    let mut ports: Vec<_> = ports.into_iter().collect();
    ports.sort_by_key(|(_, reach)| std::cmp::Reverse(*reach));
    let line = |((port, protocol, names), reach): ((u16, &str, String), Reach)| {
        let names = if names.is_empty() { "-".to_owned() } else { names };
        format!("{port}/{protocol} {names} {}", word(reach))
    };
    ports.into_iter().map(line).collect()
}

fn word(reach: Reach) -> &'static str {
    match reach {
        Reach::Local => "local",
        Reach::Lan => "lan",
        Reach::Any => "any",
        Reach::Public => "public",
    }
}

fn judge(sockets: &[Socket], profiles: &[Profile]) -> Found {
    let mut found = Found::default();
    let is_active = |profile: &Profile| profile.status == Status::Active;
    let some_are_active = profiles.iter().any(is_active);
    for socket in sockets {
        // A service whose unit has another name than the profile knows doesn't count as active. Its process shows that it
        // runs all the same.
        let has_it = |profile: &Profile| match is_active(profile) {
            true => is_own(profile, None, socket),
            false => is_named(profile, socket),
        };
        let mut declared = profiles.iter().filter(|profile| has_it(profile)).flat_map(|profile| {
            let ports = profile.ports.iter().filter(|port| socket.is_on(port));
            ports.map(move |port| (profile, port))
        });
        let reach = socket.reach();
        if reach == Reach::Local {
            continue;
        }
        let clear =
            CLEARTEXT.iter().find(|(port, is_udp, _)| *port == socket.port && *is_udp == socket.is_udp);
        if let Some((_, _, protocol)) = clear {
            found.push(cleartext(socket, protocol));
        }
        match declared.next() {
            // A socket without known processes may be another program's.
            Some((profile, port)) if !socket.processes.is_empty() && is_beyond(port.scope, reach) => {
                found.push(exposed(socket, profile, port));
            }
            None if clear.is_none()
                && some_are_active
                && !socket.processes.is_empty()
                && !is_of_the_system(socket) =>
            {
                found.push(undeclared(socket));
            }
            _ => {}
        }
    }
    if !some_are_active && !sockets.is_empty() {
        found
            .unseen
            .push("which services the sockets are of: no profile's service is known to run".to_owned());
    }
    let hidden =
        sockets.iter().filter(|socket| socket.processes.is_empty() && socket.reach() != Reach::Local);
    let hidden = hidden.count();
    if hidden > 0 {
        found
            .unseen
            .push(format!("whose {hidden} sockets are: they are the kernel's, or root's rights are missing"));
    }
    found
}

/// True if a process of the service has the socket.
fn is_named(profile: &Profile, socket: &Socket) -> bool {
    socket.names().iter().any(|name| profile.processes.iter().any(|known| known == name))
}

fn is_of_the_system(socket: &Socket) -> bool {
    let names = socket.names();
    !names.is_empty()
        && names.iter().all(|name| {
            OF_THE_SYSTEM.iter().any(|(known, port, is_udp)| {
                let is_port = *port == socket.port || *port == 0 && socket.port > 1023;
                known == name && is_port && *is_udp == socket.is_udp
            })
        })
}

/// The call that ends the program, whose socket goes with it.
fn ended(finding: Finding, socket: &Socket) -> Finding {
    match socket.processes.first() {
        Some((_, pid)) => finding.mend("proc_signal", json!({"pid": pid})),
        None => finding,
    }
}

fn exposed(socket: &Socket, profile: &Profile, port: &Port) -> Finding {
    let scope = if port.scope == Scope::Local { "this machine" } else { "the own network" };
    let set_by = port.set_by.as_deref().map(|setting| format!("; set by {setting}")).unwrap_or_default();
    let evidence = format!("{} of {} ({}) is meant for {scope}{set_by}", number(port), profile.id, port.what);
    Finding::new(Severity::High, "listening-exposed", socket.shown(), evidence)
}

fn undeclared(socket: &Socket) -> Finding {
    let evidence = format!("{} of {}, which no profile declares", socket.protocol(), holders(socket));
    // It may be wanted by all means, so that nothing is said of ending it.
    Finding::new(Severity::Warning, "listening-undeclared", socket.shown(), evidence)
}

fn cleartext(socket: &Socket, protocol: &str) -> Finding {
    let evidence = format!("{protocol} by {} sends everything as plain text", holders(socket));
    ended(Finding::new(Severity::High, "listening-cleartext", socket.shown(), evidence), socket)
}

/// The processes of a socket with their numbers.
fn holders(socket: &Socket) -> String {
    let shown: Vec<_> = socket.processes.iter().map(|(name, pid)| format!("{name} (PID {pid})")).collect();
    if shown.is_empty() { "an unknown process".to_owned() } else { linux_sysadmin_sdk::text::list(&shown, 3) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::knowledge::Protocol;
    use linux_sysadmin_sdk::testkit::{FakeTarget, profile};

    fn service(id: &str, port: u16, scope: Scope) -> Profile {
        let port = Port {
            first: port,
            last: port,
            protocol: Protocol::Tcp,
            scope,
            optional: false,
            what: "x".into(),
            set_by: Some("`bind`".into()),
        };
        Profile { processes: vec![id.into()], ports: vec![port], ..profile(id) }
    }

    /// Written by hand in the format of ss of iproute2 6.1.0.
    const SOCKETS: &str = "\
udp   UNCONN 0      0        0.0.0.0%eth0:68         0.0.0.0:*    users:((\"dhclient\",pid=70,fd=7))
tcp   LISTEN 0      128           0.0.0.0:22         0.0.0.0:*    users:((\"sshd\",pid=12,fd=3))
tcp   LISTEN 0      511           0.0.0.0:6379       0.0.0.0:*    users:((\"redis\",pid=30,fd=6))
tcp   LISTEN 0      511         127.0.0.1:6380       0.0.0.0:*    users:((\"redis\",pid=30,fd=7))
tcp   LISTEN 0      1             0.0.0.0:23         0.0.0.0:*    users:((\"inetd\",pid=31,fd=6))
tcp   LISTEN 0      1                *:7001             *:*    users:((\"nc\",pid=32,fd=6))
udp   UNCONN 0      0             0.0.0.0:123        0.0.0.0:*    users:((\"dhclient\",pid=70,fd=8))
tcp   LISTEN 0      64            0.0.0.0:2049       0.0.0.0:*
";

    fn call(sockets: &str, code: i32) -> Result<(serde_json::Value, String)> {
        let module = tool(Module::new("m", "1", "security", ""));
        let host = FakeTarget::new()
            .profile(service("sshd", 22, Scope::Public))
            .profile(service("redis", 6379, Scope::Local))
            .answer(&["ss", "-Hltunp"], code, sockets, "");
        let (data, reply) = host.call(&module, "sec_check_listening", json!({}))?;
        Ok((data, reply.summary.unwrap()))
    }

    #[test]
    fn what_is_reached_beyond_its_scope_or_is_nobodys_is_told() {
        let (data, _) = call(SOCKETS, 0).unwrap();
        let of = |entry: &serde_json::Value| {
            (entry["kind"].as_str().unwrap().to_owned(), entry["subjects"].to_string())
        };
        let found: Vec<_> = data["findings"].as_array().unwrap().iter().map(of).collect();
        let kinds: Vec<_> = found.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["listening-exposed", "listening-cleartext", "listening-undeclared"]);
        assert!(
            found[0].1.contains("0.0.0.0:6379")
                && data["findings"][0]["evidence"].as_str().unwrap().contains("bind")
        );
        assert!(found[2].1.contains("7001") && found[2].1.contains("0.0.0.0:123"), "{}", found[2].1);
        assert_eq!(data["listening"][0], "22/tcp sshd any");
        assert!(data["listening"].as_array().unwrap().contains(&json!("6380/tcp redis local")));
        assert_eq!(data["unseen"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_fresh_machine_listens_to_nothing_that_is_weak() {
        let clean: String = SOCKETS.lines().take(2).map(|line| format!("{line}\n")).collect();
        let (data, summary) = call(&clean, 0).unwrap();
        assert_eq!(summary, "Nothing weak in the listening ports");
        assert_eq!(data, json!({"listening": ["22/tcp sshd any", "68/udp dhclient any"]}));
        assert_eq!(call("", 0).unwrap().0, json!({"listening": []}));
    }

    #[test]
    fn a_service_whose_unit_has_another_name_is_known_by_its_process() {
        // Debian's sshd on a machine of the Fedora family: systemd tells its unit as ssh.service, and the profile of that
        // family has sshd.service.
        let profiles = |status: Status, process: &str| {
            let sshd = service("sshd", 22, Scope::Public);
            [Profile { status, processes: vec![process.into()], ..sshd }, profile("journald")]
        };
        let line = SOCKETS.lines().nth(1).unwrap();
        let kinds = |profiles: &[Profile]| {
            let found = judge(&listening::parse(line), profiles);
            found.findings.into_iter().map(|finding| finding.kind).collect::<Vec<_>>()
        };
        assert!(kinds(&profiles(Status::Active, "sshd")).is_empty());
        assert!(kinds(&profiles(Status::Inactive, "sshd")).is_empty());
        // Another program on the port of a service that doesn't run isn't that service.
        assert_eq!(kinds(&profiles(Status::Inactive, "dropbear")), ["listening-undeclared"]);
        // What isn't started by its unit is exposed all the same.
        let redis = Profile { status: Status::Inactive, ..service("redis", 6379, Scope::Local) };
        let sockets = listening::parse(SOCKETS.lines().nth(2).unwrap());
        assert_eq!(judge(&sockets, &[redis, profile("journald")]).findings[0].kind, "listening-exposed");
    }

    #[test]
    fn where_no_service_is_known_no_socket_is_told_to_be_nobodys() {
        let module = tool(Module::new("m", "1", "security", ""));
        let host = FakeTarget::new().answer(&["ss", "-Hltunp"], 0, SOCKETS, "");
        let (data, _) = host.call(&module, "sec_check_listening", json!({})).unwrap();
        let kinds = data["findings"].as_array().unwrap().iter().map(|entry| entry["kind"].clone());
        assert_eq!(kinds.collect::<Vec<_>>(), [json!("listening-cleartext")]);
        assert_eq!(data["unseen"].as_array().unwrap().len(), 2, "{data}");
    }

    #[test]
    fn what_ss_cannot_say_is_an_error() {
        assert_eq!(call("Netid State nonsense\n", 0).unwrap_err().code, "UNEXPECTED_OUTPUT");
        assert_eq!(call("", 1).unwrap_err().code, "COMMAND_FAILED");
    }
}
