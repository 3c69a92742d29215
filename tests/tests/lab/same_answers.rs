//! Every tool answers the same on the host itself and over SSH, as root and as an account with sudo, on each distribution.
//! The calls of each tool and the differences that are allowed lie in the modules' folders.
//!
//! At every change, each distribution has one of the two accounts. The tests in `thorough` have both on each.

use std::collections::BTreeSet;

use linux_sysadmin_tests::{
    Changing, Client, Difference, ExpectedModule, ExpectedTool, MayDiffer, NO_UNITS, Reach, UNITS,
    expected_modules, expected_tools, host,
};
use serde_json::{Value, json};

/// The parts that may differ in every answer, and the reasons.
const IN_EVERY_ANSWER: [(&str, &str); 2] = [
    ("target_host", "it is localhost, or the alias of ssh"),
    ("duration_ms", "it is measured, and a network takes longer"),
];

/// The configuration by which only critical plans ask, because there is nobody to ask here.
const ASK_SELDOM: &str = "safety:\n  confirmation_threshold: critical\n";

/// Half of the domains. Each half is a unit of its own, since all calls take longer than one may. The modules of a domain have
/// the same tools, and stay together.
#[derive(Clone, Copy)]
pub(crate) struct Half(pub(crate) usize);

impl Half {
    /// The tools of the modules of these domains.
    fn tools(self) -> impl Iterator<Item = &'static ExpectedTool> {
        let domain = |module: &ExpectedModule| module.name.split('-').next().map(str::to_owned);
        let all: BTreeSet<_> = expected_modules().iter().map(domain).collect();
        let chosen: BTreeSet<_> = all.into_iter().skip(self.0).step_by(2).collect();
        let modules = expected_modules().iter().filter(move |module| chosen.contains(&domain(module)));
        modules.flat_map(|module| &module.tools)
    }

    /// The calls of these tools, in the order in which they are made. The host has the units of [`UNITS`] and what the modules
    /// prepare.
    fn calls(self) -> impl Iterator<Item = (&'static str, &'static Value)> {
        self.tools().flat_map(|tool| tool.same.iter().map(|arguments| (tool.name.as_str(), arguments)))
    }
}

/// The differences that are allowed.
fn may_differ(half: Half) -> MayDiffer {
    let everywhere = IN_EVERY_ANSWER.map(|(path, reason)| {
        ("*", Difference { path: path.to_owned(), reason: reason.to_owned(), sometimes: None })
    });
    let of_tools = half
        .tools()
        .flat_map(|tool| tool.may_differ.iter().map(|difference| (tool.name.as_str(), difference.clone())));
    MayDiffer::new(everywhere.into_iter().chain(of_tools))
}

/// The answers to all calls, each time from a host in the same state.
async fn answers(half: Half, machine: &mut Changing, reach: Reach, account: &str) -> Vec<Value> {
    let _ = machine.holds(NO_UNITS);
    machine.sh(UNITS);
    for module in expected_modules() {
        machine.sh(&module.prepare);
    }
    machine.now(reach, "same answers");
    // The home is made before its configuration is written.
    drop(machine.serve_shipped(account, account).await);
    machine.configure(account, ASK_SELDOM);
    let mut client = machine.serve_shipped(account, account).await;
    is_complete(&mut client).await;
    let mut all = Vec::new();
    for (tool, arguments) in half.calls() {
        all.push(client.envelope(tool, arguments.clone()).await);
    }
    machine.nothing_is_left_behind();
    all
}

/// There are calls of every tool that doesn't say why it has none, and of no other tool.
async fn is_complete(client: &mut Client) {
    let listed = client.request("tools/list", json!({})).await;
    let listed = listed["result"]["tools"].as_array().expect("a list").clone();
    let of_the_server = expected_tools().filter(|(_, tool)| tool.not_compared.is_some());
    let of_the_server: BTreeSet<_> = of_the_server.map(|(_, tool)| tool.name.as_str()).collect();
    let tools = listed.iter().map(|tool| tool["name"].as_str().expect("a name"));
    let tools: BTreeSet<_> = tools.filter(|tool| !of_the_server.contains(tool)).collect();
    let calls = [Half(0), Half(1)].into_iter().flat_map(Half::calls);
    assert_eq!(calls.map(|(tool, _)| tool).collect::<BTreeSet<_>>(), tools);
}

/// The differences on this host that are not allowed, a line each.
async fn differences(
    half: Half,
    test: &str,
    host: &'static str,
    accounts: &[&str],
    may_differ: &MayDiffer,
) -> Vec<String> {
    let clean = expected_modules().iter().map(|module| module.clean.as_str());
    let clean = clean.collect::<Vec<_>>().join("\n");
    let mut differences = Vec::new();
    for account in accounts {
        let mut machine = Changing::by(Reach::Inside(host), test, "", &clean).expect("the hosts are up");
        let inside = answers(half, &mut machine, Reach::Inside(host), account).await;
        let over_ssh = answers(half, &mut machine, Reach::OverSsh(host), account).await;
        let _ = machine.holds(NO_UNITS);
        for (((tool, arguments), inside), over_ssh) in half.calls().zip(inside).zip(over_ssh) {
            let others = may_differ.others(tool, &inside, &over_ssh);
            differences
                .extend(others.iter().map(|line| format!("{host} {account} {tool} {arguments}: {line}")));
        }
    }
    differences
}

/// Asserts that all answers are the same, for each host with these accounts. Gives the differences that are allowed and were
/// not seen; None where no hosts are up.
pub(crate) fn answers_are_the_same(
    half: Half,
    test: &str,
    hosts: [(&'static str, &[&str]); 2],
) -> Option<Vec<String>> {
    host(test, hosts[0].0)?;
    let may_differ = may_differ(half);
    let on = |(host, accounts)| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(differences(half, test, host, accounts, &may_differ))
    };
    let differences = std::thread::scope(|scope| {
        let hosts = hosts.map(|host| scope.spawn(move || on(host)));
        hosts.map(|host| host.join().expect("compared")).concat()
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    Some(may_differ.never_seen())
}

mod one_half {
    use super::{Half, answers_are_the_same};

    #[test]
    fn every_tool_answers_the_same_inside_the_host_and_over_ssh() {
        let hosts = [("debian1", &["root"][..]), ("rhel1", &["admin"])];
        answers_are_the_same(Half(0), "one_half_answers_the_same", hosts);
    }
}

mod other_half {
    use super::{Half, answers_are_the_same};

    #[test]
    fn every_tool_answers_the_same_inside_the_host_and_over_ssh() {
        let hosts = [("debian1", &["admin"][..]), ("rhel1", &["root"])];
        answers_are_the_same(Half(1), "other_half_answers_the_same", hosts);
    }
}
