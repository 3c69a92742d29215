//! Folds the summaries, severities and notes of many hosts.

use std::collections::HashMap;

use super::HostAnswer;
use super::node::{Host, HostSet, host_set};
use super::write::Caveats;
use host_text::redact::excerpt;

/// The severities, from the least to the worst.
const SEVERITIES: [&str; 4] = ["info", "warning", "high", "critical"];
/// The number of summaries that are given for one severity.
const MAX_SUMMARIES: usize = 5;
/// The number of summaries that are given where nothing is wrong.
const MAX_INFO_SUMMARIES: usize = 2;
/// The number of hosts up to which all their summaries are given.
const FEW_HOSTS: usize = 5;
/// The greatest length of one summary among several, in characters.
const MAX_SUMMARY_LENGTH: usize = 500;
/// The greatest number of hosts' notes. The envelope takes 20, and the caller and folding add some of their own.
const MAX_NOTES: usize = 12;
/// The greatest number of hosts that a sentence names.
const MAX_NAMES: usize = 25;

/// A summary or a note, with the hosts that gave it.
struct Statement<'a> {
    severity: Option<&'a str>,
    text: &'a str,
    hosts: Vec<Host>,
}

/// Joins the summaries, and finds the worst severity.
pub fn summary(answers: &[HostAnswer], caveats: &mut Caveats) -> (Option<String>, Option<String>) {
    let mut sayings: Vec<Statement<'_>> = Vec::new();
    let mut places: HashMap<(&str, Option<&str>), usize> = HashMap::new();
    for (host, answer) in answers.iter().enumerate() {
        let Some(text) = answer.summary.as_deref() else { continue };
        let severity = answer.severity.as_deref();
        let place = *places.entry((text, severity)).or_insert(sayings.len());
        match sayings.get_mut(place) {
            Some(known) => known.hosts.push(host),
            None => sayings.push(Statement { severity, text, hosts: vec![host] }),
        }
    }
    let worst = answers.iter().filter_map(|answer| answer.severity.as_deref()).max_by_key(|name| rank(name));
    let severity = worst.map(str::to_owned);
    if let [saying] = sayings.as_slice()
        && saying.hosts.len() == answers.len()
    {
        return (Some(saying.text.to_owned()), severity);
    }
    let names = Names(answers);
    sayings.sort_by_key(|saying| std::cmp::Reverse(saying.severity.map(rank)));
    let mut lines = Vec::new();
    for alike in sayings.chunk_by(|a, b| a.severity == b.severity) {
        let most = match alike[0].severity {
            _ if answers.len() <= FEW_HOSTS => FEW_HOSTS,
            None | Some("info") => MAX_INFO_SUMMARIES,
            Some(_) => MAX_SUMMARIES,
        };
        let degree = alike[0].severity.map(|severity| format!(" ({severity})")).unwrap_or_default();
        let (given, rest) = alike.split_at(most.min(alike.len()));
        for saying in given {
            let text = excerpt(saying.text, MAX_SUMMARY_LENGTH);
            caveats.lossy |= saying.text.chars().count() > MAX_SUMMARY_LENGTH;
            lines.push(format!("{}{degree}: {text}", names.of(&saying.hosts, caveats)));
        }
        if !rest.is_empty() {
            caveats.lossy = true;
            let mut hosts: Vec<Host> = rest.iter().flat_map(|saying| saying.hosts.iter().copied()).collect();
            hosts.sort_unstable();
            let count = hosts.len();
            lines.push(match alike[0].severity {
                None | Some("info") => format!("{count} more hosts{degree}"),
                Some(_) => format!("{count} more hosts{degree}: {}", names.of(&hosts, caveats)),
            });
        }
    }
    ((!lines.is_empty()).then(|| lines.join("\n")), severity)
}

/// Gives each note once, with its hosts where not all hosts have it. Of many notes it gives the most common ones.
pub fn notes(answers: &[HostAnswer], caveats: &mut Caveats) -> Vec<String> {
    let mut sayings: Vec<Statement<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (host, answer) in answers.iter().enumerate() {
        for text in &answer.notes {
            let place = *places.entry(text).or_insert(sayings.len());
            match sayings.get_mut(place) {
                Some(known) if known.hosts.last() == Some(&host) => {}
                Some(known) => known.hosts.push(host),
                None => sayings.push(Statement { severity: None, text, hosts: vec![host] }),
            }
        }
    }
    let mut further = 0;
    if sayings.len() > MAX_NOTES {
        sayings.sort_by_key(|saying| std::cmp::Reverse(saying.hosts.len()));
        further = sayings.split_off(MAX_NOTES - 1).len();
        caveats.lossy = true;
    }
    let names = Names(answers);
    let told = |saying: &Statement<'_>| match saying.hosts.len() {
        all if all == answers.len() => saying.text.to_owned(),
        _ => format!("{}: {}", names.of(&saying.hosts, caveats), saying.text),
    };
    let mut notes: Vec<String> = sayings.iter().map(told).collect();
    if further > 0 {
        notes.push(format!("{further} further notes of hosts are left out"));
    }
    notes
}

/// The names of the hosts whose listings were cut before folding.
pub fn cut_before(answers: &[HostAnswer]) -> Option<String> {
    let cut = answers.iter().enumerate().filter(|(_, answer)| answer.truncated);
    let cut: Vec<Host> = cut.map(|(host, _)| host).collect();
    (!cut.is_empty()).then(|| Names(answers).of(&cut, &mut Caveats::default()))
}

fn rank(severity: &str) -> Option<usize> {
    SEVERITIES.iter().position(|known| *known == severity)
}

/// Writes hosts' names as part of a sentence.
struct Names<'a>(&'a [HostAnswer]);

impl Names<'_> {
    fn of(&self, hosts: &[Host], caveats: &mut Caveats) -> String {
        let all: Vec<Host> = (0..self.0.len()).collect();
        match host_set(hosts, &all) {
            HostSet::All => "all hosts".to_owned(),
            HostSet::On(hosts) => self.list(&hosts, caveats),
            HostSet::NotOn(others) => format!("all but {}", self.list(&others, caveats)),
        }
    }

    fn list(&self, hosts: &[Host], caveats: &mut Caveats) -> String {
        let names = |hosts: &[Host]| -> String {
            hosts.iter().map(|host| self.0[*host].host.as_str()).collect::<Vec<_>>().join(", ")
        };
        match hosts.len().checked_sub(MAX_NAMES) {
            None | Some(0) => names(hosts),
            Some(more) => {
                caveats.lossy = true;
                format!("{} and {more} more", names(&hosts[..MAX_NAMES]))
            }
        }
    }
}
