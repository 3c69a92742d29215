//! Certificates as openssl-x509(1) prints them.

use crate::{text, time};

/// Reads `Nov  1 14:13:44 2031 GMT`.
pub fn seconds(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let [month, day, clock, year, "GMT"] = text.split_whitespace().collect::<Vec<_>>()[..] else {
        return None;
    };
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let mut parts = clock.split(':').map(|part| part.parse::<i64>().ok());
    let mut part = || parts.next().flatten();
    time::unix([year.parse().ok()?, month, day.parse().ok()?], [part()?, part()?, part()?])
}

/// The names and addresses for which a certificate is: the line behind the heading of its extension.
pub fn alternative_names(text: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("X509v3 Subject Alternative Name"));
    let names = lines.nth(1)?.trim().replace("DNS:", "").replace("IP Address:", "");
    (!names.is_empty()).then(|| text::of_line(&names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_openssl_writes_it() {
        assert_eq!(seconds("Nov  1 14:13:44 2031 GMT"), Some(1_951_308_824));
        for text in
            ["", "Nov 1 2031", "Foo 1 14:13:44 2031 GMT", "Nov 1 14:13 2031 GMT", "Nov 1 14:13:44 2031 CET"]
        {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn the_names_are_those_behind_the_heading() {
        let text =
            "subject=CN=a\nX509v3 Subject Alternative Name: \n    DNS:a.example, IP Address:192.0.2.7\n";
        assert_eq!(alternative_names(text).as_deref(), Some("a.example, 192.0.2.7"));
        assert_eq!(alternative_names("subject=CN=a\n"), None);
    }
}
