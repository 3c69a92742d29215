//! The actions of `sec_harden_ssh`: `actions.yaml` says what each sets.

use linux_sysadmin_sdk::sshd::Settings;
use linux_sysadmin_sdk::{Category, prelude::*};

/// A hardening action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::enum_variant_names)]
pub(crate) enum Action {
    DisableRootLogin,
    DisablePasswordAuth,
    DisableEmptyPasswords,
    RestrictKeyExchange,
    RestrictCiphers,
    RestrictMacs,
    SetMaxAuthTries,
    #[serde(rename = "disable_x11_forwarding")]
    DisableX11Forwarding,
    SetLoginGraceTime,
    DisableAgentForwarding,
}

/// What an action sets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hardening {
    pub name: Action,
    /// The keyword of sshd_config(5), as its page spells it.
    pub keyword: String,
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    most: Option<u64>,
    /// The list of `ssh -Q` with the algorithms that this OpenSSH has.
    #[serde(default)]
    pub query: Option<String>,
    #[serde(default)]
    best: Vec<String>,
    #[serde(default)]
    pub warns: Option<String>,
}

/// All actions, in the order of the file.
pub(crate) fn all() -> Result<Vec<Hardening>> {
    serde_yaml::from_str(include_str!("actions.yaml"))
        .map_err(|error| Problem::new("BROKEN_MODULE", Category::Internal, format!("actions.yaml: {error}")))
}

impl Hardening {
    /// True if the effective settings are as this action wants them. A keyword that this sshd doesn't know has nothing to
    /// harden.
    pub fn is_in_force(&self, settings: &Settings) -> bool {
        let Some(now) = settings.get(&self.keyword) else { return true };
        if let Some(most) = self.most {
            return now.parse().is_ok_and(|now: u64| (1..=most).contains(&now));
        }
        match &self.value {
            Some(value) => now == value,
            None => now.split(',').all(|name| self.best.iter().any(|best| best == name)),
        }
    }

    /// The value to set, with those algorithms only that the target has.
    pub fn value(&self, supported: &[String]) -> Result<String> {
        if let Some(value) = &self.value {
            return Ok(value.clone());
        }
        let best = self.best.iter().filter(|name| supported.contains(name)).map(String::as_str);
        let best: Vec<&str> = best.collect();
        if best.is_empty() {
            let message = format!(
                "this OpenSSH has none of the {} that count as strong: expected one of {}",
                self.keyword,
                self.best.join(", ")
            );
            return Err(Problem::new("NO_STRONG_ALGORITHM", Category::State, message)
                .remedy("Update the package openssh-server"));
        }
        Ok(best.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_has_one_row_and_either_a_value_or_a_list() {
        let all = all().unwrap();
        assert_eq!(all.len(), 10);
        for (number, row) in all.iter().enumerate() {
            assert!(all[..number].iter().all(|other| other.name != row.name), "{row:?}");
            assert_eq!(row.value.is_none(), row.query.is_some() && !row.best.is_empty(), "{row:?}");
        }
    }

    #[test]
    fn an_action_is_in_force_by_what_is_effective() {
        let row = |name| all().unwrap().into_iter().find(|row| row.name == name).unwrap();
        for (name, settings, expected) in [
            (Action::DisableRootLogin, "permitrootlogin no\n", true),
            (Action::DisableRootLogin, "permitrootlogin without-password\n", false),
            (Action::SetMaxAuthTries, "maxauthtries 2\n", true),
            (Action::SetMaxAuthTries, "maxauthtries 4\n", false),
            // Without a limit.
            (Action::SetLoginGraceTime, "logingracetime 0\n", false),
            (Action::SetLoginGraceTime, "logingracetime 60\n", true),
            (Action::RestrictMacs, "macs umac-128-etm@openssh.com\n", true),
            (Action::RestrictMacs, "macs umac-128-etm@openssh.com,hmac-sha1\n", false),
            // This sshd has no such keyword.
            (Action::DisableX11Forwarding, "port 22\n", true),
        ] {
            assert_eq!(row(name).is_in_force(&Settings::parse(settings)), expected, "{settings}");
        }
        let macs = row(Action::RestrictMacs);
        let has = ["hmac-sha1".to_owned(), "umac-128-etm@openssh.com".to_owned()];
        assert_eq!(macs.value(&has).unwrap(), "umac-128-etm@openssh.com");
        assert_eq!(macs.value(&has[..1]).unwrap_err().code, "NO_STRONG_ALGORITHM");
    }
}
