//! ufw's settings: `/etc/ufw/ufw.conf` and `/etc/default/ufw`, in the form of a shell's assignments.

use linux_sysadmin_sdk::firewall::Standing;

/// The state of ufw. `is_loaded` says whether the kernel has its chains.
pub(crate) fn standing(config: &str, defaults: &str, is_loaded: bool) -> Standing {
    let is_enabled = is_enabled(config);
    let policy = |name: &str| setting(defaults, name).map(action);
    let mut notes = Vec::new();
    match (is_enabled, is_loaded) {
        (true, false) => notes.push(
            "ufw is enabled, but the kernel doesn't have its rules: another program took them away, or ufw.service failed"
                .to_owned(),
        ),
        (false, false) => notes.push("ufw is inactive: none of its rules holds".to_owned()),
        (false, true) => notes.push("ufw is disabled, but the kernel still has its rules".to_owned()),
        (true, true) => {}
    }
    if is_enabled && !filters_ipv6(defaults) {
        notes.push("ufw doesn't filter IPv6 (IPV6=no in /etc/default/ufw)".to_owned());
    }
    Standing {
        active: is_loaded,
        at_boot: Some(is_enabled),
        incoming: policy("DEFAULT_INPUT_POLICY"),
        outgoing: policy("DEFAULT_OUTPUT_POLICY"),
        forwarded: policy("DEFAULT_FORWARD_POLICY"),
        notes,
        ..Standing::default()
    }
}

/// True if ufw becomes active at each start.
pub(crate) fn is_enabled(config: &str) -> bool {
    is_yes(config, "ENABLED")
}

/// True if ufw filters IPv6 as well.
pub(crate) fn filters_ipv6(defaults: &str) -> bool {
    is_yes(defaults, "IPV6")
}

/// What happens by default to packets to the machine: `ACCEPT`, `DROP` or `REJECT`.
pub(crate) fn input_policy(defaults: &str) -> &str {
    setting(defaults, "DEFAULT_INPUT_POLICY").unwrap_or_default()
}

fn is_yes(text: &str, name: &str) -> bool {
    setting(text, name).is_some_and(|value| value.eq_ignore_ascii_case("yes"))
}

fn action(policy: &str) -> String {
    match policy {
        "ACCEPT" => "allow".to_owned(),
        "DROP" => "deny".to_owned(),
        "REJECT" => "reject".to_owned(),
        other => other.to_owned(),
    }
}

/// The last assignment of a name counts.
fn setting<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let of_it = |line: &'a str| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == name).then(|| value.trim().trim_matches(['"', '\'']))
    };
    text.lines().filter_map(of_it).next_back()
}
