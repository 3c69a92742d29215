//! Questions to one DNS server, by dig(1).

use linux_sysadmin_sdk::{Output, prelude::*, text};

use super::no_program;

/// Asks one server once, and waits two seconds for it. The options keep the parts of the message that are read here.
pub(crate) const DIG: CommandLine =
    CommandLine::new("dig +noall +comments +answer +stats +tries=1 +time=2 -t <text> -q <text> @<address>");

/// The types of records that can be asked for.
pub(crate) const TYPES: [&str; 10] = ["A", "AAAA", "CAA", "CNAME", "MX", "NS", "PTR", "SOA", "SRV", "TXT"];

/// So many records are told.
const MOST_RECORDS: usize = 30;

/// What a server answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Answer {
    pub(crate) server: String,
    /// `NOERROR`, `NXDOMAIN`, `SERVFAIL` and so on, and `no answer` where none came.
    pub(crate) status: String,
    /// Name, time to live, type and data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) records: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ms: Option<u64>,
    /// `aa` for an answer of the zone's own server, `ad` for one that was validated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) flags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) said: Option<String>,
}

/// The status of a server that doesn't answer.
pub(crate) const NO_ANSWER: &str = "no answer";

/// Asks each of the servers at the same time.
///
/// Problems: `NO_PROGRAM` where there is no dig.
pub(crate) fn ask(servers: &[String], record: &str, name: &str, cx: &Context) -> Result<Vec<Answer>> {
    let commands = servers.iter().map(|server| DIG.with([record, name, server.as_str()])).collect();
    let outputs = cx.run_all(commands).into_iter().collect::<Result<Vec<Output>>>();
    let outputs = outputs.map_err(|problem| {
        no_program(
            "a question to one DNS server",
            &[("dig", problem)],
            "bind9-dnsutils (Debian) or bind-utils (Red Hat)",
        )
    })?;
    Ok(servers.iter().zip(&outputs).map(|(server, output)| parse(server, output)).collect())
}

/// The type of a record in its usual spelling.
///
/// Problems: `INVALID_RECORD`.
pub(crate) fn record_type(asked: &str) -> Result<&'static str> {
    let upper = asked.trim().to_ascii_uppercase();
    TYPES.iter().find(|known| **known == upper).copied().ok_or_else(|| {
        let message =
            format!("record is {:?}: expected one of {}", text::excerpt(asked, 40), TYPES.join(", "));
        Problem::validation("INVALID_RECORD", message)
    })
}

fn parse(server: &str, output: &Output) -> Answer {
    let mut answer = Answer { server: server.to_owned(), status: NO_ANSWER.to_owned(), ..Answer::default() };
    let text = output.text();
    let mut more = 0;
    for line in text.lines() {
        if let Some(status) =
            line.strip_prefix(";; ->>HEADER<<- ").and_then(|header| header.split_once("status: "))
        {
            answer.status = status.1.split(',').next().unwrap_or_default().to_owned();
        } else if let Some(flags) = line.strip_prefix(";; flags: ") {
            let flags = flags.split(';').next().unwrap_or_default().split(' ');
            answer.flags =
                flags.filter(|flag| matches!(*flag, "aa" | "ad" | "tc")).map(str::to_owned).collect();
        } else if let Some(time) = line.strip_prefix(";; Query time: ") {
            answer.ms = time.split(' ').next().and_then(|number| number.parse().ok());
        } else if let Some(said) = line.strip_prefix(";; ") {
            let is_fault = ["timed out", "communications error", "refused", "unreachable"]
                .iter()
                .any(|words| said.contains(words));
            if is_fault && answer.said.is_none() {
                answer.said = Some(text::of_line(said));
            }
        } else if !line.starts_with(';') && !line.trim().is_empty() {
            if answer.records.len() < MOST_RECORDS {
                answer.records.push(text::of_line(&line.split_whitespace().collect::<Vec<_>>().join(" ")));
            } else {
                more += 1;
            }
        }
    }
    if more > 0 {
        answer.records.push(format!("and {more} more"));
    }
    if answer.status == NO_ANSWER && answer.said.is_none() {
        answer.said = output.error_text().lines().next().map(text::of_line);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;

    /// After the manual and the sources of BIND 9.18 (dighost.c, dig.c).
    const ANSWERED: &str = "\
;; Got answer:
;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 4242
;; flags: qr aa rd ra; QUERY: 1, ANSWER: 2, AUTHORITY: 0, ADDITIONAL: 1

;; OPT PSEUDOSECTION:
; EDNS: version: 0, flags:; udp: 1232
;; ANSWER SECTION:
db.example.\t\t300\tIN\tCNAME\tdb1.example.
db1.example.\t\t300\tIN\tA\t192.0.2.7

;; Query time: 3 msec
;; SERVER: 192.0.2.53#53(192.0.2.53) (UDP)
;; WHEN: Fri Nov 27 14:13:44 UTC 2026
;; MSG SIZE  rcvd: 55
";

    #[test]
    fn an_answer_has_its_status_records_and_time() {
        let found = parse("192.0.2.53", &output(0, ANSWERED, ""));
        let expected = Answer {
            server: "192.0.2.53".into(),
            status: "NOERROR".into(),
            records: vec![
                "db.example. 300 IN CNAME db1.example.".into(),
                "db1.example. 300 IN A 192.0.2.7".into(),
            ],
            ms: Some(3),
            flags: vec!["aa".into()],
            said: None,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn no_answer_is_told_with_what_dig_says() {
        for (text, said) in [
            (
                ";; communications error to 192.0.2.53#53: connection refused\n;; no servers could be reached\n",
                "communications error to 192.0.2.53#53: connection refused",
            ),
            (
                ";; connection timed out; no servers could be reached\n",
                "connection timed out; no servers could be reached",
            ),
        ] {
            let found = parse("192.0.2.53", &output(9, text, ""));
            assert_eq!(
                (found.status.as_str(), found.said.as_deref(), found.records.len()),
                (NO_ANSWER, Some(said), 0)
            );
        }
        assert_eq!(
            parse("x", &output(1, "", "dig: couldn't get address")).said.as_deref(),
            Some("dig: couldn't get address")
        );
    }

    #[test]
    fn of_many_records_the_first_are_told() {
        let text: String = (0..40).map(|number| format!("a.example. 1 IN TXT \"{number}\"\n")).collect();
        let found = parse("x", &output(0, &text, ""));
        assert_eq!(
            (found.records.len(), found.records.last().map(String::as_str)),
            (31, Some("and 10 more"))
        );
    }
}
