//! `svc_port_audit`: compares the ports that the profiles of this machine's services declare with what listens on it.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::knowledge::ports::{is_beyond, is_own, number};
use linux_sysadmin_sdk::knowledge::{Port, Profile, Scope, Status};
use linux_sysadmin_sdk::listening::{self, Reach, Socket};
use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::processes::{self, Found, Process};

use crate::ports::declared::holders;

/// The number of undeclared ports in an answer.
const MOST: usize = 20;

/// The differences between declared ports and sockets.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Audit {
    /// The number of services that run and have a profile.
    services: usize,
    sockets: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_listening: Vec<Missing>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conflicts: Vec<Conflict>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exposed: Vec<Exposed>,
    /// Ports that no profile declares. Those that can be reached from farthest come first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undeclared: Vec<Undeclared>,
}

#[derive(Debug, Serialize)]
struct Missing {
    service: String,
    port: String,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    set_by: Option<String>,
}

#[derive(Debug, Serialize)]
struct Conflict {
    service: String,
    /// The state of a service that doesn't run.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    port: String,
    held_by: String,
}

#[derive(Debug, Serialize)]
struct Exposed {
    service: String,
    port: String,
    what: String,
    /// The range from which the port should be reached.
    scope: &'static str,
    bound_to: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set_by: Option<String>,
}

#[derive(Debug, Serialize, PartialEq)]
struct Undeclared {
    port: String,
    /// The process that has the socket. Of several, this is the first one.
    #[serde(flatten)]
    process: Option<Process>,
    bound_to: Vec<String>,
}

impl Undeclared {
    /// Completes what ss tells of a process by what the kernel tells.
    fn complete(&mut self, found: &BTreeMap<u32, Found>) {
        let known = self.process.as_ref().and_then(|process| found.get(&process.pid));
        if let Some(known) = known {
            self.process = Some(known.process.clone());
        }
    }
}

/// The first process of a socket, as ss tells it.
fn first_process(socket: &Socket) -> Option<Process> {
    let (name, pid) = socket.processes.iter().min_by_key(|(_, pid)| *pid)?;
    let pid = u32::try_from(*pid).ok()?;
    Some(Process { pid, started: None, command: name.clone(), unit: None, user: None })
}

pub(crate) fn svc_port_audit(_: NoArgs, cx: &Context) -> Result<Analysis<Audit>> {
    let output = cx.run(listening::command())?.success("ss")?;
    let sockets = listening::parse(&output.text());
    if sockets.is_empty() && !output.text().trim().is_empty() {
        return Err(Problem::unexpected("ss", &output.text()));
    }
    let profiles = cx.detected();
    let (mut audit, hidden) = audit(&profiles, &sockets, cx);
    let pids = audit.undeclared.iter().filter_map(|one| Some(one.process.as_ref()?.pid));
    let found = processes::by_pid(cx, pids);
    audit.undeclared.iter_mut().for_each(|one| one.complete(&found));
    let (summary, severity) = (summary(&audit, hidden), severity(&audit));
    Ok(Analysis { data: audit, summary, severity })
}

/// The audit, and the number of sockets without known processes.
fn audit(profiles: &[Profile], sockets: &[Socket], cx: &Context) -> (Audit, usize) {
    let active: Vec<&Profile> = profiles.iter().filter(|one| one.status == Status::Active).collect();
    let mut audit = Audit { services: active.len(), sockets: sockets.len(), ..Audit::default() };
    for profile in profiles.iter().filter(|one| matches!(one.status, Status::Active | Status::Failed)) {
        for port in &profile.ports {
            of_port(profile, port, sockets, &mut audit, cx);
        }
    }
    let mut undeclared: Vec<(Reach, Undeclared)> = Vec::new();
    for socket in sockets.iter().filter(|socket| !is_declared(&active, socket)) {
        let port = format!("{}/{}", socket.port, socket.protocol());
        let process = first_process(socket);
        let known = undeclared.iter_mut().find(|(_, one)| one.port == port && one.process == process);
        match known {
            Some((reach, one)) => {
                *reach = socket.reach().max(*reach);
                one.bound_to.push(socket.shown());
            }
            None => {
                let bound_to = vec![socket.shown()];
                undeclared.push((socket.reach(), Undeclared { port, process, bound_to }));
            }
        }
    }
    undeclared.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| other.port.cmp(&one.port)));
    undeclared.truncate(MOST);
    audit.undeclared = undeclared.into_iter().map(|(_, one)| one).collect();
    (audit, sockets.iter().filter(|socket| socket.processes.is_empty()).count())
}

fn is_declared(active: &[&Profile], socket: &Socket) -> bool {
    let declares = |profile: &&Profile| {
        profile.ports.iter().any(|port| socket.is_on(port)) && is_own(profile, None, socket)
    };
    active.iter().any(declares)
}

fn of_port(profile: &Profile, port: &Port, sockets: &[Socket], audit: &mut Audit, cx: &Context) {
    let on: Vec<&Socket> = sockets.iter().filter(|socket| socket.is_on(port)).collect();
    let (own, others): (Vec<&Socket>, Vec<&Socket>) =
        on.into_iter().partition(|socket| is_own(profile, None, socket));
    let service = || profile.id.clone();
    let is_active = profile.status == Status::Active;
    if own.is_empty() && !port.optional {
        if !others.is_empty() {
            audit.conflicts.push(Conflict {
                service: service(),
                status: (!is_active).then_some("failed"),
                port: number(port),
                held_by: holders(&others, cx),
            });
        } else if is_active {
            audit.not_listening.push(Missing {
                service: service(),
                port: number(port),
                what: port.what.clone(),
                set_by: port.set_by.clone(),
            });
        }
    }
    // A socket without known processes may not be the service's.
    let is_exposed =
        |socket: &&&Socket| !socket.processes.is_empty() && is_beyond(port.scope, socket.reach());
    let bound_to: Vec<String> = own.iter().filter(is_exposed).map(|socket| socket.shown()).collect();
    if is_active && !bound_to.is_empty() {
        audit.exposed.push(Exposed {
            service: service(),
            port: number(port),
            what: port.what.clone(),
            scope: if port.scope == Scope::Local { "local" } else { "lan" },
            bound_to,
            set_by: port.set_by.clone(),
        });
    }
}

fn summary(audit: &Audit, hidden: usize) -> String {
    let parts = [
        (audit.exposed.len(), "reachable beyond its scope (but for firewalls)"),
        (audit.conflicts.len(), "held by another program"),
        (audit.not_listening.len(), "declared and not listened on"),
        (audit.undeclared.len(), "listened on and declared by nobody"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let found = if parts.is_empty() { "every port is as declared".to_owned() } else { parts.join(", ") };
    let hidden = match hidden {
        0 => String::new(),
        count => format!(
            "; {count} sockets don't tell whose they are (the kernel's, or root's rights are missing)"
        ),
    };
    format!("Ports of {} active services: {found}{hidden}", audit.services)
}

fn severity(audit: &Audit) -> Severity {
    match (audit.exposed.is_empty() && audit.conflicts.is_empty(), audit.not_listening.is_empty()) {
        (false, _) => Severity::High,
        (true, false) => Severity::Warning,
        (true, true) => Severity::Info,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::{
        knowledge::Protocol,
        testkit::{FakeTarget, profile},
    };

    fn service(id: &str, ports: &[(u16, Scope, bool)]) -> Profile {
        let port = |(number, scope, optional): &(u16, Scope, bool)| Port {
            first: *number,
            last: *number,
            protocol: Protocol::Tcp,
            scope: *scope,
            optional: *optional,
            what: "x".into(),
            set_by: None,
        };
        Profile { processes: vec![id.into()], ports: ports.iter().map(port).collect(), ..profile(id) }
    }

    #[test]
    fn what_is_not_as_declared_is_told_and_nothing_else() {
        let failed = Profile { status: Status::Failed, ..service("apache", &[(80, Scope::Public, false)]) };
        let inactive =
            Profile { status: Status::Inactive, ..service("caddy", &[(80, Scope::Public, false)]) };
        let profiles = [
            service("nginx", &[(80, Scope::Public, false), (443, Scope::Public, true)]),
            service("redis", &[(6379, Scope::Local, false)]),
            service("dns", &[(53, Scope::Lan, false)]),
            service("gone", &[(9, Scope::Public, false)]),
            failed,
            inactive,
        ];
        let ss = "tcp LISTEN 0 1 0.0.0.0:80 *:* users:((\"nginx\",pid=2,fd=1))\n\
                  tcp LISTEN 0 1 127.0.0.1:6379 *:* users:((\"redis\",pid=3,fd=1))\n\
                  tcp LISTEN 0 1 [::]:6379 *:* users:((\"redis\",pid=3,fd=2))\n\
                  tcp LISTEN 0 1 *:53 *:* users:((\"dns\",pid=4,fd=2))\n\
                  tcp LISTEN 0 1 203.0.113.9:53 *:* users:((\"dns\",pid=4,fd=3))\n\
                  tcp LISTEN 0 1 127.0.0.1:7000 *:* users:((\"a\",pid=5,fd=3))\n\
                  tcp LISTEN 0 1 0.0.0.0:7001 *:* users:((\"b\",pid=6,fd=3))\n\
                  tcp LISTEN 0 1 [::]:7001 *:* users:((\"b\",pid=6,fd=4))\n";
        let (audit, hidden) = audit(&profiles, &listening::parse(ss), &FakeTarget::new().context());
        assert_eq!(hidden, 0);
        let expected = serde_json::json!({
            "services": 4, "sockets": 8,
            "not_listening": [{"service": "gone", "port": "9/tcp", "what": "x"}],
            "conflicts": [{"service": "apache", "status": "failed", "port": "80/tcp", "held_by": "PID 2 (nginx) on 0.0.0.0:80"}],
            "exposed": [
                {"service": "redis", "port": "6379/tcp", "what": "x", "scope": "local", "bound_to": ["[::]:6379"]},
                {"service": "dns", "port": "53/tcp", "what": "x", "scope": "lan", "bound_to": ["203.0.113.9:53"]},
            ],
            "undeclared": [
                {"port": "7001/tcp", "pid": 6, "command": "b", "bound_to": ["0.0.0.0:7001", "[::]:7001"]},
                {"port": "7000/tcp", "pid": 5, "command": "a", "bound_to": ["127.0.0.1:7000"]},
            ],
        });
        assert_eq!(serde_json::to_value(&audit).unwrap(), expected);
        assert_eq!(severity(&audit), Severity::High);
        let said = "Ports of 4 active services: 2 reachable beyond its scope (but for firewalls), 1 held by another \
                    program, 1 declared and not listened on, 2 listened on and declared by nobody";
        assert_eq!(summary(&audit, hidden), said);
    }

    #[test]
    fn of_sockets_that_do_not_tell_whose_they_are_nothing_is_held_against_a_service() {
        let profiles = [service("redis", &[(6379, Scope::Local, false)])];
        let (audit, hidden) = audit(
            &profiles,
            &listening::parse("tcp LISTEN 0 1 0.0.0.0:6379 *:*\n"),
            &FakeTarget::new().context(),
        );
        assert!(audit.exposed.is_empty() && audit.conflicts.is_empty() && audit.not_listening.is_empty());
        assert_eq!((hidden, severity(&audit)), (1, Severity::Info));
    }
}
