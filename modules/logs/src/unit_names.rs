//! Names of units: as callers give them, and as the journal has them.

use linux_sysadmin_sdk::prelude::*;

use crate::service_sources;

/// Shows systemd's own names of units.
const SHOW: &str = "systemctl show --property=Id,LoadState -- (<unit>)...";

/// The grant to ask systemd for the names of units.
pub(crate) fn grant() -> CommandGrant {
    CommandGrant::read(SHOW, "under which name a unit has its lines")
}

/// The name with its suffix.
pub(crate) fn full(name: &str) -> String {
    const SUFFIXES: [&str; 10] =
        ["service", "socket", "timer", "mount", "target", "path", "slice", "scope", "device", "automount"];
    match name.rsplit_once('.') {
        Some((_, suffix)) if SUFFIXES.contains(&suffix) => name.to_owned(),
        _ => format!("{name}.service"),
    }
}

/// Replaces the names of services by the units that their profiles have on this target.
pub(crate) fn of_profiles(cx: &Context, names: Vec<String>) -> Vec<String> {
    let of_profile = |name: String| match cx.profile(&name) {
        Some(profile) if !name.contains(['@', '*']) => {
            let units = service_sources::units(&profile, &name);
            if units.is_empty() { vec![name] } else { units }
        }
        _ => vec![name],
    };
    let mut units: Vec<String> = names.into_iter().flat_map(of_profile).collect();
    units.dedup();
    units
}

/// The units under the names that systemd has for them, where those differ, and messages about unknown units. It is asked
/// only where the journal had nothing.
pub(crate) fn as_loaded(cx: &Context, units: &[String]) -> (Option<Vec<String>>, Vec<String>) {
    let names: Vec<String> = units.iter().filter(|name| !name.contains('*')).map(|name| full(name)).collect();
    if names.is_empty() {
        return (None, Vec::new());
    }
    let command = Command::new("systemctl").args(["show", "--property=Id,LoadState", "--"]).args(&names);
    let Ok(output) = cx.run(command) else { return (None, Vec::new()) };
    let text = output.text();
    let value = |block: &str, name: &str| {
        let mut lines = block.lines().filter_map(|line| line.split_once('='));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
    };
    let mut loaded = names.clone();
    let mut unknown = Vec::new();
    for (name, block) in loaded.iter_mut().zip(text.split("\n\n")) {
        match (value(block, "LoadState").as_deref(), value(block, "Id")) {
            (Some("not-found"), _) => unknown.push(format!("there is no unit {name}")),
            (_, Some(id)) if !id.is_empty() => *name = id,
            _ => {}
        }
    }
    ((loaded != names).then_some(loaded), unknown)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn another_name_is_followed_and_an_unknown_one_is_said() {
        // systemd 252.
        let said = "Id=ssh.service\nLoadState=loaded\n\nId=nope.service\nLoadState=not-found\n";
        let argv = ["systemctl", "show", "--property=Id,LoadState", "--", "sshd.service", "nope.service"];
        let cx = FakeTarget::new().answer(&argv, 0, said, "").context();
        let (loaded, unknown) = as_loaded(&cx, &["sshd".to_owned(), "nope.service".to_owned()]);
        assert_eq!(loaded.unwrap(), ["ssh.service", "nope.service"]);
        assert_eq!(unknown, ["there is no unit nope.service"]);
        // A pattern isn't looked up, and a target without systemctl knows no unit.
        assert_eq!(as_loaded(&cx, &["a*".to_owned()]), (None, Vec::new()));
        assert_eq!(as_loaded(&FakeTarget::new().context(), &["a".to_owned()]), (None, Vec::new()));
    }
}
