//! Summaries, severities and notes of many hosts.

use std::collections::HashMap;

use super::Answered;
use super::node::{Host, Who, who};
use super::write::Seen;
use host_text::redact::excerpt;

/// From the least to the worst.
const SEVERITIES: [&str; 4] = ["info", "warning", "high", "critical"];
/// Summaries that are given of the hosts with one severity.
const MOST_SUMMARIES: usize = 5;
/// Where nothing is wrong, a few show what all are like.
const MOST_OF_INFO: usize = 2;
/// Up to so many hosts, all of them are.
const FEW_HOSTS: usize = 5;
/// Characters of one summary beside others.
const LONGEST: usize = 500;
/// Hosts' notes. The envelope takes 20, and the caller and folding have some of their own.
const MOST_NOTES: usize = 12;
/// Hosts that are named in a sentence.
const MOST_NAMES: usize = 25;

/// A text, with who says it.
struct Saying<'a> {
    severity: Option<&'a str>,
    text: &'a str,
    hosts: Vec<Host>,
}

/// A summary of the summaries, and the worst severity.
pub fn summary(answers: &[Answered], seen: &mut Seen) -> (Option<String>, Option<String>) {
    let mut sayings: Vec<Saying<'_>> = Vec::new();
    let mut places: HashMap<(&str, Option<&str>), usize> = HashMap::new();
    for (host, answer) in answers.iter().enumerate() {
        let Some(text) = answer.summary.as_deref() else { continue };
        let severity = answer.severity.as_deref();
        let place = *places.entry((text, severity)).or_insert(sayings.len());
        match sayings.get_mut(place) {
            Some(known) => known.hosts.push(host),
            None => sayings.push(Saying { severity, text, hosts: vec![host] }),
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
            None | Some("info") => MOST_OF_INFO,
            Some(_) => MOST_SUMMARIES,
        };
        let degree = alike[0].severity.map(|severity| format!(" ({severity})")).unwrap_or_default();
        let (given, rest) = alike.split_at(most.min(alike.len()));
        for saying in given {
            let text = excerpt(saying.text, LONGEST);
            seen.lossy |= saying.text.chars().count() > LONGEST;
            lines.push(format!("{}{degree}: {text}", names.of(&saying.hosts, seen)));
        }
        if !rest.is_empty() {
            seen.lossy = true;
            let mut hosts: Vec<Host> = rest.iter().flat_map(|saying| saying.hosts.iter().copied()).collect();
            hosts.sort_unstable();
            let count = hosts.len();
            lines.push(match alike[0].severity {
                None | Some("info") => format!("{count} more hosts{degree}"),
                Some(_) => format!("{count} more hosts{degree}: {}", names.of(&hosts, seen)),
            });
        }
    }
    ((!lines.is_empty()).then(|| lines.join("\n")), severity)
}

/// Each note once; with its hosts, where it isn't everybody's. The most common ones, where there are many.
pub fn notes(answers: &[Answered], seen: &mut Seen) -> Vec<String> {
    let mut sayings: Vec<Saying<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (host, answer) in answers.iter().enumerate() {
        for text in &answer.notes {
            let place = *places.entry(text).or_insert(sayings.len());
            match sayings.get_mut(place) {
                Some(known) if known.hosts.last() == Some(&host) => {}
                Some(known) => known.hosts.push(host),
                None => sayings.push(Saying { severity: None, text, hosts: vec![host] }),
            }
        }
    }
    let mut further = 0;
    if sayings.len() > MOST_NOTES {
        sayings.sort_by_key(|saying| std::cmp::Reverse(saying.hosts.len()));
        further = sayings.split_off(MOST_NOTES - 1).len();
        seen.lossy = true;
    }
    let names = Names(answers);
    let told = |saying: &Saying<'_>| match saying.hosts.len() {
        all if all == answers.len() => saying.text.to_owned(),
        _ => format!("{}: {}", names.of(&saying.hosts, seen), saying.text),
    };
    let mut notes: Vec<String> = sayings.iter().map(told).collect();
    if further > 0 {
        notes.push(format!("{further} further notes of hosts are left out"));
    }
    notes
}

/// The hosts whose listings were cut before, in a sentence.
pub fn cut_before(answers: &[Answered]) -> Option<String> {
    let cut = answers.iter().enumerate().filter(|(_, answer)| answer.truncated);
    let cut: Vec<Host> = cut.map(|(host, _)| host).collect();
    (!cut.is_empty()).then(|| Names(answers).of(&cut, &mut Seen::default()))
}

fn rank(severity: &str) -> Option<usize> {
    SEVERITIES.iter().position(|known| *known == severity)
}

/// The hosts' names in a sentence.
struct Names<'a>(&'a [Answered]);

impl Names<'_> {
    fn of(&self, hosts: &[Host], seen: &mut Seen) -> String {
        let all: Vec<Host> = (0..self.0.len()).collect();
        match who(hosts, &all) {
            Who::All => "all hosts".to_owned(),
            Who::On(hosts) => self.list(&hosts, seen),
            Who::NotOn(others) => format!("all but {}", self.list(&others, seen)),
        }
    }

    fn list(&self, hosts: &[Host], seen: &mut Seen) -> String {
        let names = |hosts: &[Host]| -> String {
            hosts.iter().map(|host| self.0[*host].host.as_str()).collect::<Vec<_>>().join(", ")
        };
        match hosts.len().checked_sub(MOST_NAMES) {
            None | Some(0) => names(hosts),
            Some(more) => {
                seen.lossy = true;
                format!("{} and {more} more", names(&hosts[..MOST_NAMES]))
            }
        }
    }
}
