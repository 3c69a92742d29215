//! The certificate of a server, by openssl s_client(1).
//!
//! OpenSSL 3.0 and later tell the time of each certificate of the chain. Of older versions it is known of the first one only,
//! which `openssl x509` is asked about.

use std::net::IpAddr;

use linux_sysadmin_sdk::certificates::{alternative_names, seconds};
use linux_sysadmin_sdk::{Output, prelude::*, text, time};

use super::{PROGRAM_NOT_FOUND, no_program};
use crate::target::{PROGRAM_IS_MISSING, TIME_IS_UP};

const CONNECT: CommandLine = CommandLine::new(
    "timeout 8 openssl s_client -showcerts -servername <host> -verify_hostname <host> -host <address> -port <port>",
);
const CONNECT_ADDRESS: CommandLine = CommandLine::new(
    "timeout 8 openssl s_client -showcerts -noservername -verify_ip <address> -host <address> -port <port>",
);
const UPGRADE: CommandLine = CommandLine::new(
    "timeout 8 openssl s_client -showcerts -starttls <text> -servername <host> -verify_hostname <host> -host <address> -port <port>",
);
const UPGRADE_ADDRESS: CommandLine = CommandLine::new(
    "timeout 8 openssl s_client -showcerts -starttls <text> -noservername -verify_ip <address> -host <address> -port <port>",
);

/// Prints what a certificate says, which it reads on stdin.
const READ: CommandLine =
    CommandLine::new("openssl x509 -noout -startdate -enddate -ext subjectAltName -nameopt RFC2253");
const READ_GRANT: &str =
    "openssl x509 -noout -startdate -enddate -ext subjectAltName -nameopt RFC2253 < stdin";

/// The ports on which a connection begins in the clear, and the protocol by which it becomes one of TLS.
const UPGRADES: [(u16, &str); 9] = [
    (21, "ftp"),
    (25, "smtp"),
    (110, "pop3"),
    (143, "imap"),
    (389, "ldap"),
    (587, "smtp"),
    (2525, "smtp"),
    (3306, "mysql"),
    (5432, "postgres"),
];

/// A certificate that ends within so many days is one that somebody has to renew.
const SOON: i64 = 14;

#[derive(Debug, Serialize)]
pub(crate) struct Tls {
    /// True where the chain leads to a root that the machine trusts, and the certificate is for the name and in its time.
    is_trusted: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<String>,
    protocol: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<String>,
    /// The days until the first certificate ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    days_left: Option<i64>,
    /// The server's own certificate comes first.
    chain: Vec<Certificate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    starttls: Option<&'static str>,
}

#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Certificate {
    subject: String,
    issuer: String,
    /// RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_after: Option<String>,
    #[serde(skip)]
    ends: Option<i64>,
}

pub(crate) fn grants() -> [CommandGrant; 5] {
    let reason = "the certificate of a server, with its chain";
    let [a, b, c, d] = [CONNECT, CONNECT_ADDRESS, UPGRADE, UPGRADE_ADDRESS].map(|line| line.read(reason));
    [a, b, c, d, CommandGrant::read(READ_GRANT, "until when a certificate is valid")]
}

/// Looks at the certificate of a port, or says why there is none.
///
/// Problems: `NO_PROGRAM`, `TLS_FAILED` where no certificate came.
pub(crate) fn look(name: Option<&str>, address: IpAddr, port: u16, cx: &Context) -> Result<Tls> {
    let starttls = UPGRADES.iter().find(|(own, _)| *own == port).map(|(_, protocol)| *protocol);
    let (at, port_text) = (address.to_string(), port.to_string());
    let command = match (name, starttls) {
        (Some(name), None) => CONNECT.with([name, name, &at, &port_text]),
        (None, None) => CONNECT_ADDRESS.with([&at, &at, &port_text]),
        (Some(name), Some(protocol)) => UPGRADE.with([protocol, name, name, &at, &port_text]),
        (None, Some(protocol)) => UPGRADE_ADDRESS.with([protocol, &at, &at, &port_text]),
    };
    let missing = |problem: Problem| no_program("a TLS test", &[("openssl", problem)], "openssl");
    let output = cx.run(command).map_err(missing)?;
    if output.exit_code == PROGRAM_IS_MISSING {
        return Err(missing(Problem::not_found(PROGRAM_NOT_FOUND, "there is no openssl")));
    }
    let said = output.text().into_owned();
    let mut chain = chain(&said);
    if chain.is_empty() {
        return Err(why_none(&output, address, port));
    }
    let mut names = None;
    if let Some(certificate) = pem(&said) {
        let read = cx.run(READ.command().stdin(certificate)).ok().filter(|output| output.exit_code == 0);
        let text = read.map(|output| output.text().into_owned()).unwrap_or_default();
        names = alternative_names(&text);
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        if let Some(first) = chain.first_mut().filter(|first| first.ends.is_none()) {
            first.times(value("notBefore"), value("notAfter"));
        }
    }
    let mut faults = verify_errors(&output);
    let now = cx.now() as i64;
    let days_left = chain.first().and_then(|first| first.ends).map(|ends| (ends - now).div_euclid(86_400));
    if let Some(days) = days_left.filter(|days| (0..SOON).contains(days)) {
        faults.push(format!("it ends in {days} days"));
    }
    let is_trusted = said.lines().any(|line| line.trim_start().starts_with("Verify return code: 0 "))
        && verify_errors(&output).is_empty();
    Ok(Tls { is_trusted, faults, protocol: protocol(&said), names, days_left, chain, starttls })
}

/// The reason why no certificate came.
fn why_none(output: &Output, address: IpAddr, port: u16) -> Problem {
    let said = output.error_text();
    let what = format!("{address} port {port}");
    let lower = said.to_lowercase();
    let message = if output.exit_code == TIME_IS_UP && output.text().contains("CONNECTED") {
        format!("{what} accepts connections and answers no TLS within 8 s: it may speak another protocol")
    } else if output.exit_code == TIME_IS_UP {
        format!("{what} didn't answer within 8 s")
    } else if lower.contains("connection refused") {
        format!("{what} refuses connections: nothing listens there, or a firewall rejects it")
    } else if lower.contains("wrong version number") || lower.contains("packet length too long") {
        format!("{what} answers something that isn't TLS: it speaks another protocol")
    } else {
        let line = said.lines().next().unwrap_or("openssl said nothing");
        format!("{what} gave no certificate: {}", text::of_line(line))
    };
    Problem::new("TLS_FAILED", linux_sysadmin_sdk::Category::Network, message)
}

/// The chain in the output of s_client: ` 0 s:SUBJECT`, `   i:ISSUER`, `   v:NotBefore: TIME; NotAfter: TIME`.
fn chain(text: &str) -> Vec<Certificate> {
    let mut chain: Vec<Certificate> = Vec::new();
    for line in text
        .lines()
        .skip_while(|line| *line != "Certificate chain")
        .take_while(|line| *line != "Server certificate")
    {
        let trimmed = line.trim_start();
        let numbered = trimmed.split_once(" s:").filter(|(number, _)| number.parse::<u8>().is_ok());
        if let Some((_, subject)) = numbered {
            chain.push(Certificate { subject: text::of_line(subject), ..Certificate::default() });
            continue;
        }
        let Some(last) = chain.last_mut() else { continue };
        if let Some(issuer) = trimmed.strip_prefix("i:") {
            last.issuer = text::of_line(issuer);
        } else if let Some(times) = trimmed.strip_prefix("v:NotBefore: ") {
            let (before, after) = times.split_once("; NotAfter: ").unwrap_or((times, ""));
            last.times(Some(before), Some(after));
        }
    }
    chain
}

impl Certificate {
    fn times(&mut self, before: Option<&str>, after: Option<&str>) {
        self.not_before = before.and_then(seconds).map(time::rfc3339);
        self.ends = after.and_then(seconds);
        self.not_after = self.ends.map(time::rfc3339);
    }
}

/// The first certificate in the output.
fn pem(text: &str) -> Option<&str> {
    const END: &str = "-----END CERTIFICATE-----";
    let begin = text.find("-----BEGIN CERTIFICATE-----")?;
    let rest = &text[begin..];
    Some(&rest[..rest.find(END)? + END.len()])
}

/// What is wrong with the chain, in the words of OpenSSL: `verify error:num=62:hostname mismatch`.
fn verify_errors(output: &Output) -> Vec<String> {
    let mut errors: Vec<String> = Vec::new();
    for line in output.error_text().lines() {
        let error = line.strip_prefix("verify error:num=").and_then(|rest| rest.split_once(':'));
        let Some((_, error)) = error else { continue };
        if !errors.iter().any(|known| known == error) {
            errors.push(text::of_line(error));
        }
    }
    errors
}

/// The protocol's version in `New, TLSv1.3, Cipher is TLS_AES_256_GCM_SHA384`.
fn protocol(text: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix("New, ").or(line.strip_prefix("Reused, ")));
    line.and_then(|line| line.split(',').next()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;

    #[test]
    fn what_stands_in_the_way_of_a_certificate_has_its_words() {
        let address = [192, 0, 2, 7].into();
        for (exit, stdout, stderr, words) in [
            (124, "CONNECTED(00000003)\n", "", "answers no TLS"),
            (124, "", "", "didn't answer"),
            (
                1,
                "",
                "40C7:error:8000006F:system library:BIO_connect:Connection refused:../crypto/bio/bio_sock2.c:117:calling connect()\nconnect:errno=111",
                "refuses",
            ),
            (
                1,
                "CONNECTED(00000003)\n",
                "4047:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../ssl/record/ssl3_record.c:354:",
                "isn't TLS",
            ),
            (1, "", "", "openssl said nothing"),
        ] {
            let problem = why_none(&output(exit, stdout, stderr), address, 443);
            assert!(problem.code == "TLS_FAILED" && problem.message.contains(words), "{problem:?}");
        }
    }
}
