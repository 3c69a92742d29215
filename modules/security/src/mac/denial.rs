//! Denials as the kernel's audit writes them: AppArmor's and SELinux's.

use std::collections::{BTreeMap, HashSet};

/// One denial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Denial {
    /// The profile of AppArmor, or the type of SELinux's source context.
    pub(super) subject: String,
    /// True if it is SELinux's.
    pub(super) is_selinux: bool,
    /// The operation of AppArmor, or the permissions of SELinux.
    pub(super) operation: String,
    /// The object's path or name.
    pub(super) name: Option<String>,
    /// The type of SELinux's target context.
    pub(super) target: String,
    /// The class of SELinux's object: `file`, `tcp_socket`.
    pub(super) class: String,
    /// The port, where it is about one.
    pub(super) port: Option<u16>,
    /// The time in seconds since the epoch.
    at: Option<i64>,
    /// The record's time and number, by which the two logs can be told to have the same one.
    serial: Option<String>,
}

/// Denials of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Folded {
    pub(super) first: Denial,
    pub(super) count: usize,
    pub(super) last: Option<i64>,
}

impl Denial {
    /// Reads a line of the audit log or of the journal. `None` where it is about something else.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let serial = line.split_once("audit(").and_then(|(_, rest)| rest.split_once(')')).map(|(id, _)| id);
        let at = serial.and_then(|id| id.split(['.', ':']).next()?.parse().ok());
        let serial = serial.map(str::to_owned);
        let fields = fields(line);
        let field = |name: &str| fields.get(name).cloned();
        if fields.get("apparmor").is_some_and(|word| word == "DENIED") {
            let port = field("rport").or(field("lport")).and_then(|port| port.parse().ok());
            let mask = field("denied_mask").map(|mask| format!(" {mask}")).unwrap_or_default();
            return Some(Self {
                subject: field("profile")?,
                operation: format!("{}{mask}", field("operation")?),
                name: field("name").or_else(|| field("capname")),
                port,
                at,
                serial,
                ..Self::default()
            });
        }
        let (_, rest) = line.split_once("avc:")?;
        let rest = rest.trim_start().strip_prefix("denied")?;
        let (permissions, _) = rest.split_once('{')?.1.split_once('}')?;
        let kind = |context: String| context.split(':').nth(2).map(str::to_owned);
        Some(Self {
            subject: kind(field("scontext")?)?,
            is_selinux: true,
            operation: permissions.trim().to_owned(),
            name: field("path").or_else(|| field("name")),
            target: kind(field("tcontext")?)?,
            class: field("tclass")?,
            port: field("dest").or_else(|| field("src")).and_then(|port| port.parse().ok()),
            at,
            serial,
        })
    }

    /// What was denied, in words.
    pub(super) fn what(&self) -> String {
        let name = self.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        let port = self.port.map(|port| format!(" port {port}")).unwrap_or_default();
        let of = if self.is_selinux { format!(" ({} {})", self.class, self.target) } else { String::new() };
        linux_sysadmin_sdk::text::of_line(&format!("{}{name}{port}{of}", self.operation))
    }

    /// What denials of one kind have in common. Numbers in names differ with each process.
    fn key(&self) -> (String, String, String, String, Option<u16>, String) {
        let name = self.name.as_deref().unwrap_or_default();
        let mut plain = String::new();
        for c in name.chars() {
            let c = if c.is_ascii_digit() { '0' } else { c };
            if !(c == '0' && plain.ends_with('0')) {
                plain.push(c);
            }
        }
        let [subject, operation, target, class] =
            [&self.subject, &self.operation, &self.target, &self.class].map(Clone::clone);
        (subject, operation, target, class, self.port, plain)
    }
}

/// The denials by kind, the most frequent first.
pub(super) fn folded(denials: Vec<Denial>) -> Vec<Folded> {
    let mut seen: HashSet<String> = HashSet::new();
    let mut kinds: BTreeMap<_, Folded> = BTreeMap::new();
    for denial in denials {
        if denial.serial.as_ref().is_some_and(|serial| !seen.insert(serial.clone())) {
            continue;
        }
        let at = denial.at;
        let kind = kinds.entry(denial.key()).or_insert(Folded { first: denial, count: 0, last: None });
        kind.count += 1;
        kind.last = kind.last.max(at);
    }
    let mut kinds: Vec<Folded> = kinds.into_values().collect();
    kinds.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| b.last.cmp(&a.last)));
    kinds
}

/// The fields of a record, `NAME=VALUE` and `NAME="VALUE"`. The kernel writes a value with odd characters in
/// hexadecimal digits.
fn fields(line: &str) -> BTreeMap<&str, String> {
    let mut fields = BTreeMap::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once('=') {
        let name = before.rsplit([' ', ',', '\t']).next().unwrap_or_default();
        let (value, next) = match behind.strip_prefix('"') {
            Some(quoted) => match quoted.split_once('"') {
                Some((value, next)) => (value.to_owned(), next),
                None => break,
            },
            None => {
                let (value, next) = behind.split_once(' ').unwrap_or((behind, ""));
                let is_name = ["name", "path", "comm", "exe"].contains(&name);
                (if is_name { of_hex(value) } else { value.to_owned() }, next)
            }
        };
        fields.entry(name).or_insert(value);
        rest = next;
    }
    fields
}

fn of_hex(value: &str) -> String {
    let is_hex = value.len() >= 2
        && value.len().is_multiple_of(2)
        && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex {
        return value.to_owned();
    }
    let bytes = (0..value.len()).step_by(2).filter_map(|at| u8::from_str_radix(&value[at..at + 2], 16).ok());
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}
