//! Finds secrets among the options of commands: `curl -u joe:…`, `mysql -p…`. A command may have several; it finds the
//! command's name first, and then each option up to the command's end.
//!
//! A secret never ends a command, and options inside a secret are looked for as well, because where the shell splits
//! words is only guessed here. Text is read twice for that, but not much of it: a value ends at the next blank, or at
//! the next quote of its kind.

use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;

use super::forms::compiled;
use super::names::is_no_secret;

/// A command, and the hints without which it isn't looked for.
pub(super) struct Command {
    /// Every line with the command contains one of these, in any case.
    pub(super) hints: &'static [&'static str],
    /// The command's name, and what always stands behind it.
    name: &'static str,
    /// An option whose only group is the secret, with the words `<value>`, `<word>` and `<user>` for those patterns.
    option: &'static str,
    patterns: OnceLock<Option<Patterns>>,
}

struct Patterns {
    name: Regex,
    /// The option, or the end of the command.
    option: Regex,
}

/// A value. It may be in quotes, and the quotes may be escaped.
const VALUE: &str = r#"(?:\\*"([^"\\\n]+)|'([^'\n]+)|([^\s"'\\][^\s"'\\]*))"#;
/// A value after a blank. With a dash at the beginning it would be the next option.
const WORD: &str = r#"(?:\\*"([^"\\\n]+)|'([^'\n]+)|([^\s"'\\-][^\s"'\\]*))"#;
/// A value behind an account and a colon.
const USER: &str = r#"(?:\\*"[^:"\n]*:([^"\\\n]+)|'[^:'\n]*:([^'\n]+)|[^\s:"'\\]*:<value>)"#;

const fn command(hints: &'static [&'static str], name: &'static str, option: &'static str) -> Command {
    Command { hints, name, option, patterns: OnceLock::new() }
}

pub(super) static ALL: [Command; 33] = [
    // The options end at the command that sshpass runs, because `-p` can be the port there.
    command(&["sshpass"], "sshpass", r"[ \t]-p[ \t]*<word>|[ \t][^ \t-]"),
    command(&["mysql", "mariadb"], "(?:mysql|mariadb)[a-z-]*", r"[ \t]-p<value>"),
    command(&["curl"], "curl", r"[ \t](?:-[a-zA-Z]{0,8}[uU]|--(?:proxy-)?user)[ \t=]*<user>"),
    command(
        &["etcdctl", "http -", "https -"],
        "(?:etcdctl|https?)",
        r"[ \t](?:--user|--auth|-a)[ \t=]*<user>",
    ),
    command(&["ldap"], "ldap[a-z]+", r"[ \t]-[a-zA-Z]{0,8}w[ \t]*<word>"),
    // `-U user%password`
    command(
        &["smb", "rpcclient", "net ", "winexe", "wmic"],
        "(?:smbclient|smbmap|smbget|rpcclient|net|winexe|wmic|smbcacls|smbtree)",
        r#"[ \t](?:-U|--user)[ \t=]*(?:\\*"[^%"\n]*%([^"\\\n]+)|'[^%'\n]*%([^'\n]+)|[^\s%"'\\]*%<value>)"#,
    ),
    command(
        &[" login"],
        r"(?:docker|podman|nerdctl|buildah|skopeo|helm(?:[ \t]+registry)?|az)[ \t]+login",
        r"[ \t]-p[ \t]*<word>",
    ),
    command(
        &["mongo", "cqlsh", "ncftp", "racadm", "rdesktop"],
        "(?:mongo[a-z]*|cqlsh|ncftp[a-z]*|racadm|rdesktop)",
        r"[ \t]-p[ \t]*<word>",
    ),
    command(&["redis-cli"], "redis-cli", r"[ \t]-a[ \t]*<word>"),
    command(
        &["mosquitto_", "ipmitool", "sqlcmd", "isql", "bcp", "zip", "clickhouse"],
        "(?:mosquitto_[a-z]+|ipmitool|sqlcmd|isql|bcp|unzip|zip|clickhouse-client)",
        r"[ \t]-P[ \t]*<word>",
    ),
    command(&["7z", "rar"], "(?:7z[ar]?|u?n?rar)", r"[ \t]-(?:p|hp)<value>"),
    command(&["snmp"], "snmp[a-z]+", r"[ \t]-[cAX][ \t]*<word>"),
    command(
        &["keytool", "jarsigner"],
        "(?:keytool|jarsigner)",
        r"[ \t]-(?:src|dest|new)?(?:store|key)?pass[ \t]+<word>",
    ),
    command(&["influx", "xfreerdp"], "(?:influx|xfreerdp)", r"[ \t](?:-password[ \t]+|/p:)<word>"),
    command(
        &["lftp"],
        "lftp",
        r#"[ \t](?:-u|--user)[ \t=]*(?:\\*"[^,"\n]*,([^"\\\n]+)|[^\s,"'\\]*,<value>)"#,
    ),
    // With `-b`, the last operand is the password; with `-n` too, there is no file before the account.
    command(
        &["htpasswd"],
        "htpasswd",
        r"[ \t]-(?:[a-zA-Z]*nb[a-zA-Z]*|[a-zA-Z]*bn[a-zA-Z]*|[a-zA-Z]*b[a-zA-Z]*[ \t]+[^\s|;&]+)[ \t]+[^\s|;&]+[ \t]+<word>",
    ),
    command(
        &["wpa_passphrase"],
        "wpa_passphrase",
        r#"[ \t]+(?:\\*"[^"\n]*"|'[^'\n]*'|[^\s"']+)[ \t]+<word>"#,
    ),
    command(&["useradd", "usermod"], "user(?:add|mod)", r"[ \t]-p[ \t]*<word>"),
    command(&["openssl"], "openssl", r"[ \t]-(?:k|K|pass|passin|passout)[ \t]+(?:pass:)?<word>"),
    command(
        &["openssl passwd"],
        r"openssl[ \t]+passwd(?:[ \t]+-(?:salt[ \t]+[^\s|;&]+|[a-z0-9]+))*",
        r"[ \t]<word>",
    ),
    command(&["mount"], r"(?:mount|mount\.cifs)", r"[ \t,](?:user|username)=[^\s,%]*%<value>"),
    command(&["ldappasswd"], "ldappasswd", r"[ \t]-[sa][ \t]*<word>"),
    command(&["mkpasswd"], "mkpasswd", r"[ \t]<word>"),
    command(&["iwconfig"], "iwconfig", r"[ \t]key[ \t]+(?:s:)?<word>"),
    command(&["nmcli"], "nmcli", r"[ \t](?:password|wifi-sec\.psk)[ \t]+<word>"),
    command(&["ssh-keygen"], "ssh-keygen", r"[ \t]-[NP][ \t]*<word>"),
    command(&["rabbitmqctl"], "rabbitmqctl", r"[ \t](?:add_user|change_password)[ \t]+[^\s|;&]+[ \t]+<word>"),
    command(&["sqlplus"], "sqlplus", r#"[ \t]\\*["']?[A-Za-z_][^\s/@"'-]*/([^\s/@"'\\][^\s@"'\\]*)"#),
    command(&["plink", "pscp", "psftp"], "(?:plink|pscp|psftp)", r"[ \t]-pw[ \t]+<word>"),
    command(&["vnc"], "(?:x11vnc|vncviewer)", r"[ \t]-passwd[ \t]+<word>"),
    command(&["wg set"], r"wg[ \t]+set", r"[ \t](?:private-key|preshared-key)[ \t]+<word>"),
    command(&["smbclient"], "smbclient", r"[ \t]+//[^\s/]+/[^\s]+[ \t]+<word>"),
    command(&["tailscale"], "tailscale", r"[ \t]--auth-?key[ \t=]<word>"),
];

impl Command {
    /// Finds all secrets. None if a pattern can't be compiled, which a test rules out.
    pub(super) fn find(&self, text: &str) -> Option<Vec<Range<usize>>> {
        let patterns = self.patterns.get_or_init(|| self.compile()).as_ref()?;
        let mut secrets = Vec::new();
        let mut at = 0;
        while let Some(name) = patterns.name.find_at(text, at) {
            at = patterns.options(text, name.end() - 1, &mut secrets);
        }
        Some(secrets)
    }

    fn compile(&self) -> Option<Patterns> {
        let option = self.option.replace("<user>", USER).replace("<value>", VALUE).replace("<word>", WORD);
        let name = Regex::new(&format!(r"(?:(?-u:\b)|\\[nrt]){}[ \t]", self.name)).ok()?;
        Some(Patterns { name, option: compiled(&format!(r"{option}|[\n|;&]"))? })
    }
}

impl Patterns {
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
