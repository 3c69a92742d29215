//! Finds secrets among the options of commands: `curl -u joe:…`, `mysql -p…`. A command may have several; it finds the
//! command's name first, and then each option up to the command's end.
//!
//! A secret never ends a command, and options inside a secret are looked for as well, because where the shell splits
//! words is only guessed here. Text is read twice for that, but not much of it: a value ends at the next blank, or at
//! the next quote of its kind.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::names::is_no_secret;

pub(super) const HINTS: &[&str] = &[
    "sshpass",
    "mysql",
    "mariadb",
    "curl",
    "ldap",
    "smbclient",
    "smbmap",
    "smbget",
    "rpcclient",
    "net ",
    "winexe",
    "wmic",
    "mongo",
    "redis-cli",
    "mosquitto_",
    "docker",
    "podman",
    "helm",
    "ipmitool",
    "zip",
    "7z",
    "sqlcmd",
    "isql",
    "bcp",
    "snmp",
    "keytool",
    "jarsigner",
    "lftp",
    "htpasswd",
    "wpa_passphrase",
    "useradd",
    "usermod",
    "chpasswd",
    "nmcli",
    "rar",
    "xfreerdp",
    "influx",
    "cqlsh",
    "clickhouse",
    "pass:",
    "openssl",
    "az login",
    "mount",
    "mkpasswd",
    "iwconfig",
];

struct Command {
    /// The command's name, with a blank after it.
    name: Regex,
    /// An option whose only group is the secret, or the end of the command.
    option: Regex,
}

/// A value. It may be in quotes, and the quotes may be escaped.
const VALUE: &str = r#"(?:\\*"([^"\\\n]+)|'([^'\n]+)|([^\s"'\\][^\s"'\\]*))"#;
/// A value after a blank. With a dash at the beginning it would be the next option.
const WORD: &str = r#"(?:\\*"([^"\\\n]+)|'([^'\n]+)|([^\s"'\\-][^\s"'\\]*))"#;

static ALL: LazyLock<Option<Vec<Command>>> = LazyLock::new(|| {
    let command = |name: &str, option: String| {
        let name = Regex::new(&format!(r"(?:(?-u:\b)|\\[nrt]){name}[ \t]")).ok()?;
        Some(Command { name, option: Regex::new(&option).ok()? })
    };
    let user = format!(r#"(?:\\*"[^:"\n]*:([^"\\\n]+)|'[^:'\n]*:([^'\n]+)|[^\s:"'\\]*:{VALUE})"#);
    [
        // The options end at the command that sshpass runs, because `-p` can be the port there.
        command("sshpass", format!(r"[ \t]-p[ \t]*{WORD}|[ \t][^ \t-]|[\n|;&]")),
        command("(?:mysql|mariadb)[a-z-]*", format!(r"[ \t]-p{VALUE}|[\n|;&]")),
        command("curl", format!(r"[ \t](?:-[a-zA-Z]{{0,8}}[uU]|--(?:proxy-)?user)[ \t=]*{user}|[\n|;&]")),
        command("ldap[a-z]+", format!(r"[ \t]-[a-zA-Z]{{0,8}}w[ \t]*{WORD}|[\n|;&]")),
        // `-U user%password`
        command(
            "(?:smbclient|smbmap|smbget|rpcclient|net|winexe|wmic|smbcacls|smbtree)",
            format!(r#"[ \t](?:-U|--user)[ \t=]*(?:\\*"[^%"\n]*%([^"\\\n]+)|'[^%'\n]*%([^'\n]+)|[^\s%"'\\]*%{VALUE})|[\n|;&]"#),
        ),
        command("(?:docker|podman|nerdctl|buildah|skopeo|helm(?:[ \t]+registry)?)[ \t]+login", format!(r"[ \t]-p[ \t]*{WORD}|[\n|;&]")),
        command("mongo[a-z]*", format!(r"[ \t]-p[ \t]*{WORD}|[\n|;&]")),
        command("redis-cli", format!(r"[ \t]-a[ \t]*{WORD}|[\n|;&]")),
        command("(?:mosquitto_[a-z]+|ipmitool|sqlcmd|isql|bcp|unzip|zip|clickhouse-client)", format!(r"[ \t]-P[ \t]*{WORD}|[\n|;&]")),
        command("cqlsh", format!(r"[ \t]-p[ \t]*{WORD}|[\n|;&]")),
        command("(?:7z[ar]?|u?n?rar)", format!(r"[ \t]-(?:p|hp){VALUE}|[\n|;&]")),
        command("snmp[a-z]+", format!(r"[ \t]-[cAX][ \t]*{WORD}|[\n|;&]")),
        command("(?:keytool|jarsigner)", format!(r"[ \t]-(?:src|dest|new)?(?:store|key)?pass[ \t]+{WORD}|[\n|;&]")),
        command("(?:influx|xfreerdp)", format!(r"[ \t](?:-password[ \t]+|/p:){WORD}|[\n|;&]")),
        command("lftp", format!(r#"[ \t](?:-u|--user)[ \t=]*(?:\\*"[^,"\n]*,([^"\\\n]+)|[^\s,"'\\]*,{VALUE})|[\n|;&]"#)),
        // With `-b`, the last operand is the password.
        command("htpasswd", format!(r"[ \t]-[a-zA-Z]*b[a-zA-Z]*[ \t]+[^\s|;&]+[ \t]+[^\s|;&]+[ \t]+{WORD}|[\n|;&]")),
        command("wpa_passphrase", format!(r#"[ \t]+(?:\\*"[^"\n]*"|'[^'\n]*'|[^\s"']+)[ \t]+{WORD}|[\n|;&]"#)),
        command("user(?:add|mod)", format!(r"[ \t]-p[ \t]*{WORD}|[\n|;&]")),
        command("openssl", format!(r"[ \t]-(?:k|K|pass|passin|passout)[ \t]+(?:pass:)?{WORD}|[\n|;&]")),
        command("az[ \t]+login", format!(r"[ \t]-p[ \t]*{WORD}|[\n|;&]")),
        command("(?:mount|mount\\.cifs)", format!(r"[ \t,](?:user|username)=[^\s,%]*%{VALUE}|[\n|;&]")),
        command("ldappasswd", format!(r"[ \t]-[sa][ \t]*{WORD}|[\n|;&]")),
        command("mkpasswd", format!(r"[ \t]{WORD}|[\n|;&]")),
        command("iwconfig", format!(r"[ \t]key[ \t]+(?:s:)?{WORD}|[\n|;&]")),
        command("nmcli", format!(r"[ \t](?:password|wifi-sec\.psk)[ \t]+{WORD}|[\n|;&]")),
    ]
    .into_iter()
    .collect()
});

/// Finds all secrets. None if a pattern can't be compiled, which a test rules out.
pub(super) fn find(text: &str) -> Option<Vec<Range<usize>>> {
    let mut secrets = Vec::new();
    for command in ALL.as_ref()? {
        let mut at = 0;
        while let Some(name) = command.name.find_at(text, at) {
            at = command.options(text, name.end() - 1, &mut secrets);
        }
    }
    Some(secrets)
}

impl Command {
    /// Looks for secrets from `at` on, and returns where the command ends.
    fn options(&self, text: &str, mut at: usize, secrets: &mut Vec<Range<usize>>) -> usize {
        // The end of the last value that was found.
        let mut behind = at;
        while let Some(found) = self.option.captures_at(text, at) {
            let Some(value) = found.iter().skip(1).flatten().next() else {
                let Some(end) = found.get(0) else { break };
                if end.start() >= behind {
                    return end.start();
                }
                at = end.end();
                continue;
            };
            if !is_no_secret(value.as_str()) {
                secrets.push(value.range());
            }
            behind = behind.max(value.end());
            at = value.start();
        }
        text.len()
    }
}
