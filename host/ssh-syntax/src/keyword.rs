//! The keywords of ssh_config(5) in OpenSSH 10.0, and the form of their values.

/// The form of a keyword's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
    /// One word.
    Word,
    /// One word or several.
    Words,
    /// The rest of the line, including quotes and `#`.
    WholeLine,
}

/// Keywords whose value is the rest of the line.
const WHOLE_LINES: [&str; 4] = ["proxycommand", "localcommand", "remotecommand", "knownhostscommand"];

/// Keywords that take several words.
const SEVERAL_WORDS: [&str; 10] = [
    "userknownhostsfile",
    "globalknownhostsfile",
    "sendenv",
    "setenv",
    "localforward",
    "remoteforward",
    "canonicaldomains",
    "canonicalizepermittedcnames",
    "ipqos",
    "rekeylimit",
];

/// All other keywords of settings, with those that distributions add for GSSAPI. Each takes one word.
const ONE_WORD: &[&str] = &[
    "addkeystoagent",
    "addressfamily",
    "batchmode",
    "bindaddress",
    "bindinterface",
    "canonicalizefallbacklocal",
    "canonicalizehostname",
    "canonicalizemaxdots",
    "casignaturealgorithms",
    "certificatefile",
    "challengeresponseauthentication",
    "channeltimeout",
    "checkhostip",
    "ciphers",
    "clearallforwardings",
    "compression",
    "connectionattempts",
    "connecttimeout",
    "controlmaster",
    "controlpath",
    "controlpersist",
    "dynamicforward",
    "enableescapecommandline",
    "enablesshkeysign",
    "escapechar",
    "exitonforwardfailure",
    "fingerprinthash",
    "forkafterauthentication",
    "forwardagent",
    "forwardx11",
    "forwardx11timeout",
    "forwardx11trusted",
    "gatewayports",
    "gssapiauthentication",
    "gssapiclientidentity",
    "gssapidelegatecredentials",
    "gssapikexalgorithms",
    "gssapikeyexchange",
    "gssapirenewalforcesrekey",
    "gssapiserveridentity",
    "gssapitrustdns",
    "hashknownhosts",
    "hostbasedacceptedalgorithms",
    "hostbasedauthentication",
    "hostkeyalgorithms",
    "hostkeyalias",
    "hostname",
    "identitiesonly",
    "identityagent",
    "identityfile",
    "kbdinteractiveauthentication",
    "kbdinteractivedevices",
    "kexalgorithms",
    "loglevel",
    "logverbose",
    "macs",
    "nohostauthenticationforlocalhost",
    "numberofpasswordprompts",
    "obscurekeystroketiming",
    "passwordauthentication",
    "permitlocalcommand",
    "permitremoteopen",
    "pkcs11provider",
    "port",
    "preferredauthentications",
    "proxyjump",
    "proxyusefdpass",
    "pubkeyacceptedalgorithms",
    "pubkeyacceptedkeytypes",
    "pubkeyauthentication",
    "requesttty",
    "requiredrsasize",
    "revokedhostkeys",
    "securitykeyprovider",
    "serveralivecountmax",
    "serveraliveinterval",
    "sessiontype",
    "stdinnull",
    "streamlocalbindmask",
    "streamlocalbindunlink",
    "stricthostkeychecking",
    "syslogfacility",
    "tag",
    "tcpkeepalive",
    "tunnel",
    "tunneldevice",
    "updatehostkeys",
    "user",
    "verifyhostkeydns",
    "visualhostkey",
    "xauthlocation",
];

/// The form of a setting's value. `None` for a keyword that isn't known, and for those that structure a configuration: Host,
/// Match, Include and IgnoreUnknown.
pub fn value_form(keyword: &str) -> Option<ValueForm> {
    let is_in = |list: &[&str]| list.iter().any(|known| keyword.eq_ignore_ascii_case(known));
    if is_in(&WHOLE_LINES) {
        Some(ValueForm::WholeLine)
    } else if is_in(&SEVERAL_WORDS) {
        Some(ValueForm::Words)
    } else {
        is_in(ONE_WORD).then_some(ValueForm::Word)
    }
}

/// Whether the value of the keyword is the rest of the line.
pub fn is_whole_line(keyword: &str) -> bool {
    value_form(keyword) == Some(ValueForm::WholeLine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyword_has_a_form_in_either_case() {
        for (keyword, form) in [
            ("ProxyCommand", Some(ValueForm::WholeLine)),
            ("SetEnv", Some(ValueForm::Words)),
            ("port", Some(ValueForm::Word)),
            ("Host", None),
            ("NoSuchKeyword", None),
        ] {
            assert_eq!(value_form(keyword), form, "{keyword}");
        }
    }
}
