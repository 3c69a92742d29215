//! Finds out whether a unit's dynamic user is also somebody else, see `DynamicUser=` in systemd.exec(5).

use std::sync::Arc;

use host_base::Privilege;

use super::{AT_ONCE, PrivilegeCheck, command, first_entry, text};
use crate::account_tables::{DynamicUnit, dynamic_units, is_of_file, unit_file_names};

/// The ids of dynamic users, see systemd.exec(5).
const DYNAMIC_NUMBERS: std::ops::RangeInclusive<u32> = 61_184..=65_519;

impl PrivilegeCheck<'_> {
    /// The reason why a dynamic user is as good as root. If the target has an account of this name, the unit runs as that account. Units
    /// with the same name share the dynamic user, and so each could read what the other one may.
    pub(super) async fn dynamic(&mut self, name: &str) -> Option<String> {
        let asked = [command("getent", &["passwd", "--", name], Privilege::Caller)];
        match self.target.run_all(&asked).await.into_iter().next()? {
            // Exit code 2 of getent(1): the name could not be found.
            Ok(output) if output.exit_code == 2 => {
                if let Some(why) = self.group_power(name).await {
                    return Some(format!(
                        "its dynamic user would have the name of the group {name}, which {why}"
                    ));
                }
            }
            Ok(output) if output.exit_code == 0 => {
                let entry = first_entry(&text(&output));
                if !entry.is_some_and(|entry| DYNAMIC_NUMBERS.contains(&entry.uid)) {
                    return self.account_power(name).await;
                }
            }
            _ => return Some(format!("the target doesn't say whether there is an account {name}")),
        }
        let unit = self.unit.clone();
        let is_own = |id: &str| unit.as_deref().is_some_and(|unit| is_of_file(id, unit));
        self.dynamic_user_of(name, is_own).await
    }

    /// The reason why a name may be that of another unit's dynamic user. None where no unit has it.
    pub(super) async fn dynamic_user_of(
        &mut self,
        name: &str,
        is_own: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let Some(units) = self.dynamic_units().await else {
            return Some(format!("the target doesn't say whether a unit has the dynamic user {name}"));
        };
        let other = units.iter().find(|unit| unit.user == name && !is_own(&unit.id))?;
        Some(format!("{name} is also the dynamic user of {}", other.id))
    }

    /// All units with dynamic users, those that are loaded and those that are installed.
    async fn dynamic_units(&mut self) -> Option<Arc<Vec<DynamicUnit>>> {
        if self.facts.init_system != "systemd" {
            return Some(Arc::default());
        }
        if self.dynamic_units.is_none() {
            self.dynamic_units = Some(self.find_dynamic_units().await.map(Arc::new));
        }
        self.dynamic_units.clone()?
    }

    async fn find_dynamic_units(&self) -> Option<Vec<DynamicUnit>> {
        const SHOW: [&str; 4] = ["show", "--all", "--property=Id,User,DynamicUser", "--"];
        // By patterns systemd looks at the files of these units only; `--type=` leaves lines out after it looked at all.
        const UNITS: [&str; 4] = ["*.service", "*.socket", "*.mount", "*.swap"];
        const LIST: [&str; 5] = ["list-unit-files", "--no-legend", "--no-pager", "--full", "--"];
        let asked = [SHOW.as_slice(), &LIST].map(|verb| [verb, &UNITS].concat());
        let asked = asked.map(|args| command("systemctl", &args, Privilege::Caller));
        let mut answers = self.answers(&asked).await?;
        let names = unit_file_names(&answers.pop()?);
        let shows = names.chunks(AT_ONCE).map(|names| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            command("systemctl", &[&SHOW[..], &names].concat(), Privilege::Caller)
        });
        answers.extend(self.answers(&shows.collect::<Vec<_>>()).await?);
        Some(answers.iter().flat_map(|shown| dynamic_units(shown)).collect())
    }
}

#[cfg(test)]
mod tests {
    use host_policy::NewAccount;
    use host_policy::text::DYNAMIC_USER_PREFIX;
    use host_target::{Facts, Target};

    use super::*;

    #[tokio::test]
    async fn a_dynamic_user_that_another_unit_has_is_not_a_units_own() {
        let target = Target::local(host_target::Overrides::default());
        let facts = Facts { init_system: "systemd".to_owned(), ..Facts::default() };
        let mut check = PrivilegeCheck::new(&target, &facts);
        let units = [("lsa-vault.service", "lsa-vault"), ("lsa-api@1.service", "lsa-apid")];
        let units = units.map(|(id, user)| DynamicUnit { id: id.to_owned(), user: user.to_owned() });
        check.dynamic_units = Some(Some(Arc::new(units.to_vec())));
        for (unit, name, asks) in [
            ("lsa-vault.service", "lsa-vault", false),
            ("lsa-vault@.service", "lsa-vault", true),
            ("lsa-apid.service", "lsa-apid", true),
            ("lsa-api@.service", "lsa-apid", false),
            ("lsa-new.service", "lsa-new", false),
        ] {
            check.unit = Some(unit.to_owned());
            let why = check.root_equivalence(&format!("{DYNAMIC_USER_PREFIX}{name}")).await;
            assert_eq!(why.is_some(), asks, "{unit} {name}: {why:?}");
        }
        let new = |name: &str| NewAccount {
            name: name.to_owned(),
            number: None,
            primary_group: None,
            is_group: false,
        };
        assert!(!check.new_account(&new("lsa-vault")).await.is_empty());
        assert!(check.new_account(&new("lsa-new")).await.is_empty());
        check.dynamic_units = Some(None);
        assert!(!check.new_account(&new("lsa-new")).await.is_empty());
    }
}
