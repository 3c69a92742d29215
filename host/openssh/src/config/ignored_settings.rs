//! Says in a sentence each which settings aren't followed. It leaves out what ssh does by default, and what
//! distributions set for everybody and what changes nothing here.

use super::settings::Settings;

/// The sentence about a keyword, for values that matter.
struct Rule {
    keyword: &'static str,
    matters: fn(&str) -> bool,
    says: &'static str,
}

const fn rule(keyword: &'static str, matters: fn(&str) -> bool, says: &'static str) -> Rule {
    Rule { keyword, matters, says }
}

const RULES: &[Rule] = &[
    rule("StrictHostKeyChecking", is_no, "is taken as ask: a host key that isn't known is refused"),
    rule("KnownHostsCommand", is_set, "is not run: host keys are looked up in files only"),
    rule("VerifyHostKeyDNS", is_on, "is not followed: host keys are looked up in files only"),
    rule("CheckHostIP", is_on, "is not followed: host keys are looked up by name only"),
    rule("NoHostAuthenticationForLocalhost", is_on, "is not followed: this machine's key is checked, too"),
    rule("ProxyUseFdpass", is_on, "is not followed: the ProxyCommand's input and output are the connection"),
    rule("BindInterface", is_set, "is not followed: BindAddress is"),
    rule("PubkeyAuthentication", is_no, "is not followed: keys are the only way to authenticate"),
    rule(
        "PreferredAuthentications",
        |methods| !methods.split(',').any(|method| method == "publickey"),
        "is not followed: keys are the only way to authenticate",
    ),
    rule("HostbasedAuthentication", is_on, "is not followed: keys are the only way to authenticate"),
    rule("PKCS11Provider", is_set, "is not used: only files and the agent hold keys"),
    rule(
        "SecurityKeyProvider",
        |provider| provider != "internal",
        "is not used: a security key is used through the agent",
    ),
    rule(
        "RequiredRSASize",
        |bits| bits.parse().is_ok_and(|bits: u32| bits > 2048),
        "is not followed: shorter RSA keys are taken, too",
    ),
    rule("Compression", is_on, "is not followed: nothing is compressed"),
    rule("RemoteCommand", is_set, "is not run: each command of a plan is"),
    rule(
        "RequestTTY",
        |value| matches!(value, "yes" | "true" | "force"),
        "is not followed: no command gets a terminal",
    ),
    rule("SessionType", |value| value != "default", "is not followed: sessions run commands"),
    rule("LocalForward", is_set, "is not followed: nothing is forwarded"),
    rule("RemoteForward", is_set, "is not followed: nothing is forwarded"),
    rule("DynamicForward", is_set, "is not followed: nothing is forwarded"),
    rule("ForwardAgent", |value| !is_no(value), "is not followed: nothing is forwarded"),
    rule("ForwardX11", is_on, "is not followed: nothing is forwarded"),
    rule("Tunnel", |value| !is_no(value), "is not followed: no tunnel is made"),
    rule("SendEnv", |name| !is_of_locale(name), "is not followed: commands get variables of their own only"),
    rule("SetEnv", is_set, "is not followed: commands get variables of their own only"),
    rule("PermitLocalCommand", is_on, "is not followed: no LocalCommand is run"),
    rule("HostKeyAlgorithms", adds_to_a_list, ADDS),
    rule("KexAlgorithms", adds_to_a_list, ADDS),
    rule("Ciphers", adds_to_a_list, ADDS),
    rule("MACs", adds_to_a_list, ADDS),
    rule("ControlMaster", |value| !is_no(value), "is not followed: this server has connections of its own"),
    rule("ControlPath", is_set, "is not followed: this server has connections of its own"),
];

const ADDS: &str = "is not followed: it adds to a list that only ssh has, and there is no ssh";

/// Says whether a value adds to a list. Only files have such values; `ssh -G` prints the whole list.
pub(super) fn adds_to_a_list(value: &str) -> bool {
    value.starts_with(['+', '^'])
}

fn is_on(value: &str) -> bool {
    matches!(value, "yes" | "true" | "ask")
}

fn is_no(value: &str) -> bool {
    matches!(value, "no" | "false" | "off")
}

fn is_set(value: &str) -> bool {
    value != "none"
}

/// Says whether a variable is about language, which distributions send to every host. Commands run in a locale of
/// their own anyway.
fn is_of_locale(name: &str) -> bool {
    matches!(name, "LANG" | "LANGUAGE" | "XMODIFIERS" | "COLORTERM" | "NO_COLOR") || name.starts_with("LC_")
}

/// Returns the sentences in the order above, one for each keyword.
pub(super) fn warnings(settings: &Settings, defaults: &Settings) -> Vec<String> {
    let warning = |Rule { keyword, matters, says }: &Rule| {
        let is_default = |value: &str| defaults.all(keyword).any(|default| default.value == value);
        let mut values = settings.all(keyword).map(|setting| setting.value);
        let value = values.find(|value| matters(value) && !is_default(value))?;
        Some(format!("{keyword} {} {says}.", host_text::visible::excerpt(value, 100)))
    };
    RULES.iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::Source;

    fn said(settings: &[(&str, &str)]) -> Vec<String> {
        let mut set = Settings::new(Source::Ssh);
        settings.iter().for_each(|(keyword, value)| set.add(keyword, value, None));
        warnings(&set, &Settings::new(Source::Ssh))
    }

    #[test]
    fn what_is_set_and_not_followed_is_said_once() {
        for (keyword, value) in [
            ("StrictHostKeyChecking", "no"),
            ("StrictHostKeyChecking", "off"),
            ("StrictHostKeyChecking", "false"),
            ("KnownHostsCommand", "/usr/bin/keys %H"),
            ("VerifyHostKeyDNS", "ask"),
            ("ProxyUseFdpass", "yes"),
            ("PKCS11Provider", "/usr/lib/p11.so"),
            ("SecurityKeyProvider", "/usr/lib/sk.so"),
            ("PubkeyAuthentication", "false"),
            ("PreferredAuthentications", "password,keyboard-interactive"),
            ("Compression", "yes"),
            ("RemoteCommand", "tmux attach"),
            ("RequestTTY", "force"),
            ("LocalForward", "8080 [localhost]:80"),
            ("RemoteForward", "8080 [localhost]:80"),
            ("ForwardAgent", "yes"),
            ("ForwardAgent", "/run/agent"),
            ("SendEnv", "EDITOR"),
            ("SetEnv", "EDITOR=vi"),
            ("PermitLocalCommand", "yes"),
            ("ControlMaster", "auto"),
            ("ControlPath", "/run/%C"),
            ("Tunnel", "point-to-point"),
            ("RequiredRSASize", "3072"),
            ("HostKeyAlgorithms", "+ssh-rsa"),
            ("Ciphers", "^aes128-ctr"),
        ] {
            let said = said(&[(keyword, value), (keyword, value)]);
            let [sentence] = &said[..] else { panic!("{keyword} {value}: {said:?}") };
            assert!(
                sentence.starts_with(&format!("{keyword} {value} ")) && sentence.ends_with('.'),
                "{sentence}"
            );
        }
    }

    #[test]
    fn what_changes_nothing_is_not_said() {
        for (keyword, value) in [
            ("StrictHostKeyChecking", "ask"),
            ("StrictHostKeyChecking", "accept-new"),
            ("StrictHostKeyChecking", "true"),
            ("VerifyHostKeyDNS", "false"),
            ("PubkeyAuthentication", "true"),
            ("PubkeyAuthentication", "unbound"),
            ("PreferredAuthentications", "publickey,password"),
            ("PasswordAuthentication", "yes"),
            ("GSSAPIAuthentication", "yes"),
            ("RequestTTY", "auto"),
            ("RequestTTY", "false"),
            ("SendEnv", "LANG"),
            ("SendEnv", "LC_*"),
            ("ControlMaster", "false"),
            ("ControlPath", "none"),
            ("Tunnel", "false"),
            ("SecurityKeyProvider", "internal"),
            ("RequiredRSASize", "2048"),
        ] {
            assert_eq!(said(&[(keyword, value)]), Vec::<String>::new(), "{keyword} {value}");
        }
    }

    #[test]
    fn what_ssh_does_by_itself_is_not_said() {
        let mut own = Settings::new(Source::Ssh);
        own.add("compression", "yes", None);
        assert!(warnings(&own, &own).is_empty());
        assert!(!warnings(&own, &Settings::new(Source::Ssh)).is_empty());
    }
}
