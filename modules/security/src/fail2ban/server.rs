//! What the server of fail2ban says: its jails, whom they have banned, and the settings of the configuration on disk.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{Category, Privilege, prelude::*, text};
use serde_json::Value;

use super::python;

const STATUS: CommandLine = CommandLine::new("fail2ban-client status");
const JAIL: CommandLine = CommandLine::new("fail2ban-client status <text>");
/// Prints the commands by which the server would be configured, and checks the configuration by that.
const DUMP: CommandLine = CommandLine::new("fail2ban-client -d");
/// Checks the configuration on disk.
pub(super) const TEST: CommandLine = CommandLine::new("fail2ban-client -t");

/// The most lines of errors that are told.
const ERRORS: usize = 5;

pub(super) fn grants(module: Module) -> Module {
    let looks = [
        STATUS.read("which jails work"),
        JAIL.read("whom a jail has banned"),
        DUMP.read("how the jails are configured"),
        TEST.read("whether the configuration can be used"),
    ];
    module.commands(looks.map(CommandGrant::as_root_if_available))
}

fn command(line: CommandLine) -> linux_sysadmin_sdk::Command {
    line.command().privilege(Privilege::RootIfAvailable)
}

/// A jail at work.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Jail {
    pub name: String,
    /// Failures in its time so far, and since the start of the server. `None` where the server doesn't say.
    pub failed: [Option<u64>; 2],
    /// The number of addresses that are banned, and that ever were. `None` where the server doesn't say.
    pub banned: [Option<u64>; 2],
    pub addresses: Vec<String>,
    /// The files that it reads.
    pub files: Vec<String>,
    /// What it reads of the journal.
    pub journal: Option<String>,
}

/// How a jail is configured on disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Configured {
    pub backend: String,
    pub maxretry: Option<u64>,
    pub findtime: Option<String>,
    pub bantime: Option<String>,
    pub ignoreip: Vec<String>,
    pub actions: Vec<String>,
    pub port: Option<String>,
}

/// Everything that is looked at.
#[derive(Debug)]
pub(super) struct Server {
    /// The names of the jails at work. `None` where the server isn't running.
    pub running: Option<Vec<String>>,
    /// The jails that are enabled on disk.
    pub configured: BTreeMap<String, Configured>,
    /// What is wrong with the configuration on disk.
    pub wrong: Option<String>,
}

impl Server {
    /// Asks the server for its jails, and reads the configuration.
    ///
    /// Problems: `PROGRAM_NOT_FOUND`, `PRIVILEGE_REQUIRED`.
    pub fn look(cx: &Context) -> Result<Self> {
        // A jail without its log fails the test only.
        let [status, dump, test] = cx.run_each([command(STATUS), command(DUMP), command(TEST)]);
        let running = running(status)?;
        let (dump, test) = (dump?, test?);
        let wrong = (test.exit_code != 0).then(|| errors(&test));
        Ok(Self { running, configured: configured(&dump.text()), wrong })
    }
}

/// True if the server runs, and its jails.
pub(super) fn running_jails(cx: &Context) -> Result<Option<Vec<String>>> {
    running(cx.run(command(STATUS)))
}

fn running(status: Result<Output>) -> Result<Option<Vec<String>>> {
    let status = match status {
        Err(problem) if problem.code == "PROGRAM_NOT_FOUND" => {
            return Err(problem.remedy("pkg_install package=fail2ban"));
        }
        status => status?,
    };
    if status.exit_code == 0 {
        let jails = jails(&status.text()).map(Some);
        return jails.ok_or_else(|| Problem::unexpected("fail2ban-client status", &status.text()));
    }
    let said = errors(&status);
    // The socket isn't there, or nobody listens on it.
    if said.contains("Is fail2ban running?") || said.contains("Is it running?") {
        return Ok(None);
    }
    match said.contains("Permission denied") || said.contains("must be root") {
        true => {
            let message = "only root may ask fail2ban's server";
            Err(Problem::new("PRIVILEGE_REQUIRED", Category::Privilege, message).remedy(
                "Allow this account to run the module's commands through sudo: `linux-sysadmin modules sudoers security` \
                 prints the rules",
            ))
        }
        false => {
            Err(Problem::new("COMMAND_FAILED", Category::Other, format!("fail2ban-client status: {said}")))
        }
    }
}

/// The names behind `Jail list:`, with commas between them. `None` where the server doesn't list its jails.
fn jails(text: &str) -> Option<Vec<String>> {
    let (_, list) = text.lines().find_map(|line| line.split_once("Jail list:"))?;
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    Some(names.map(str::to_owned).collect())
}

/// The states of these jails, asked for at the same time, and for each that doesn't tell its state the reason. A jail that has
/// ended meanwhile is left out.
pub(super) fn states(names: &[String], cx: &Context) -> (Vec<Jail>, Vec<String>) {
    let asked = names.iter().map(|name| JAIL.with([name]).privilege(Privilege::RootIfAvailable)).collect();
    let (mut found, mut unseen) = (Vec::new(), Vec::new());
    for (name, said) in names.iter().zip(cx.run_all(asked)) {
        match said {
            Ok(said) if said.exit_code == 0 => found.push(jail(name, &said.text())),
            Ok(said) if said.text().contains("does not exist") => {}
            Ok(said) => {
                unseen.push(format!("{name} doesn't tell its state: {}", text::of_line(&errors(&said))))
            }
            Err(problem) => {
                unseen.push(format!("{name} doesn't tell its state: {}", text::of_line(&problem.message)));
            }
        }
    }
    (found, unseen)
}

fn jail(name: &str, text: &str) -> Jail {
    let value = |label: &str| {
        let line = text.lines().find_map(|line| line.split_once(label));
        line.and_then(|(_, rest)| rest.strip_prefix(':')).map(str::trim).filter(|value| !value.is_empty())
    };
    let number = |label: &str| value(label).and_then(|value| value.parse().ok());
    let words =
        |label: &str| value(label).into_iter().flat_map(str::split_whitespace).map(str::to_owned).collect();
    Jail {
        name: name.to_owned(),
        failed: ["Currently failed", "Total failed"].map(number),
        banned: ["Currently banned", "Total banned"].map(number),
        addresses: words("Banned IP list"),
        files: words("File list"),
        journal: value("Journal matches").map(str::to_owned),
    }
}

/// The jails of `fail2ban-client -d`.
fn configured(dump: &str) -> BTreeMap<String, Configured> {
    let mut jails: BTreeMap<String, Configured> = BTreeMap::new();
    for line in dump.lines() {
        let Some(Value::Array(words)) = python::literal(line) else { continue };
        let word = |at: usize| words.get(at).and_then(Value::as_str);
        let (Some(verb), Some(name)) = (word(0), word(1)) else { continue };
        if verb == "add" {
            let backend = word(2).unwrap_or_default().to_owned();
            jails.insert(name.to_owned(), Configured { backend, ..Configured::default() });
            continue;
        }
        // The server's own settings have no jail.
        let Some(jail) = jails.get_mut(name) else { continue };
        let text =
            || words.get(3).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let texts = || words.iter().skip(3).filter_map(Value::as_str).map(str::to_owned);
        match (verb, word(2)) {
            ("set", Some("maxretry")) => jail.maxretry = words.get(3).and_then(Value::as_u64),
            ("set", Some("findtime")) => jail.findtime = text(),
            ("set", Some("bantime")) => jail.bantime = text(),
            ("set", Some("addignoreip")) => jail.ignoreip.extend(texts()),
            ("set", Some("addaction")) => jail.actions.extend(texts().take(1)),
            ("multi-set", Some("action")) => {
                let pairs = words.get(4).and_then(Value::as_array).into_iter().flatten();
                let port = pairs.filter(|pair| pair[0] == "port").find_map(|pair| pair[1].as_str());
                jail.port = jail.port.take().or(port.map(str::to_owned));
            }
            _ => {}
        }
    }
    jails
}

/// The errors of fail2ban-client, without times and names of its parts.
pub(super) fn errors(output: &Output) -> String {
    let text = format!("{}\n{}", output.text(), output.error_text());
    let of_log = text.lines().filter_map(|line| line.split_once("ERROR").map(|(_, message)| message.trim()));
    let of_log = of_log.map(|message| message.trim_start_matches("ERROR:").trim());
    let mut told: Vec<&str> = of_log.filter(|message| *message != "test configuration failed").collect();
    told.dedup();
    told.truncate(ERRORS);
    match told.is_empty() {
        false => told.join("; "),
        true => text.trim().lines().take(ERRORS).collect::<Vec<_>>().join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;

    /// Recorded with fail2ban 1.0.2 (Debian 12) with two jails.
    const DUMPED: &str = include_str!("../../tests/data/fail2ban/dump.txt");

    #[test]
    fn the_dump_tells_how_each_jail_is_configured() {
        let jails = configured(DUMPED);
        assert_eq!(jails.keys().collect::<Vec<_>>(), ["sshd", "web"]);
        let web = Configured {
            backend: "polling".into(),
            maxretry: Some(5),
            findtime: Some("10m".into()),
            bantime: Some("1h".into()),
            ignoreip: vec!["127.0.0.1/8".into(), "::1".into()],
            actions: vec!["nftables-multiport".into()],
            port: Some("http,https".into()),
        };
        assert_eq!(jails["web"], web);
        assert_eq!((jails["sshd"].maxretry, jails["sshd"].port.as_deref()), (Some(4), Some("ssh")));
        assert!(configured("").is_empty() && configured("garbage\n[1]\n['set']\n").is_empty());
    }

    #[test]
    fn errors_are_told_without_times() {
        let said = "2026-11-27 22:08:55,620 fail2ban.configreader   [64]: WARNING 'allowipv6' not defined in \
                    'Definition'. Using default one: 'auto'\n\
                    2026-11-27 22:08:55,653 fail2ban                [64]: ERROR   Failed during configuration: Have \
                    not found any log file for web jail\n\
                    2026-11-27 22:08:55,653 fail2ban                [64]: ERROR   ERROR: test configuration failed\n";
        let expected = "Failed during configuration: Have not found any log file for web jail";
        assert_eq!(errors(&output(255, "", said)), expected);
        assert_eq!(errors(&output(1, "odd\n", "")), "odd");
    }
}
