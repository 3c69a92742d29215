//! The ports of firewalld's services, from their XML files.

use linux_sysadmin_sdk::{Context, Privilege};

use crate::Ports;

/// The ports of each service. A service that is more than ports has `None`.
pub(crate) fn ports(mut names: Vec<String>, cx: &Context) -> Ports {
    names.sort_unstable();
    names.dedup();
    // A name with a slash is no file's.
    names.retain(|name| !name.contains('/'));
    let paths: Vec<String> = names
        .iter()
        .flat_map(|name| ["/etc", "/usr/lib"].map(|root| format!("{root}/firewalld/services/{name}.xml")))
        .collect();
    let texts = cx.files_as(Privilege::RootIfAvailable).read_all(&paths);
    // The administrator's own file replaces the distribution's.
    let of = |index: usize| texts.get(2 * index..2 * index + 2)?.iter().find_map(|text| text.as_ref().ok());
    names
        .into_iter()
        .enumerate()
        .map(|(index, name)| (name, of(index).and_then(|text| parse(text))))
        .collect()
}

/// The ports with their protocols.
fn parse(text: &str) -> Option<Vec<(String, String)>> {
    let mut ports = Vec::new();
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once('<') {
        if let Some(comment) = behind.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, rest)| rest);
            continue;
        }
        let (tag, behind) = behind.split_once('>')?;
        rest = behind;
        let name = tag.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
        match name {
            "port" => {
                let (port, protocol) = (attribute(tag, "port")?, attribute(tag, "protocol")?);
                if !["tcp", "udp"].contains(&protocol) || port.is_empty() {
                    return None;
                }
                ports.push((port.to_owned(), protocol.to_owned()));
            }
            // They say that something else passes, or that less does.
            "protocol" | "source-port" | "destination" | "include" => return None,
            _ => {}
        }
    }
    (!ports.is_empty()).then_some(ports)
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    ['"', '\''].iter().find_map(|quote| {
        let (_, rest) = tag.split_once(&format!(" {name}={quote}"))?;
        rest.split_once(*quote).map(|(value, _)| value)
    })
}
