//! Follows what enabling or disabling units does to others, by the sections `[Install]` of their files.

use std::collections::BTreeSet;

use host_target::Target;

use super::units;

/// The number of units that are looked at.
const MOST: usize = 500;

/// The effects on other units of enabling or disabling some.
#[derive(Debug, Default, PartialEq)]
pub struct Install {
    /// The units that are enabled and disabled together with these ones.
    pub along: BTreeSet<String>,
    /// The further names that the units get.
    pub aliases: BTreeSet<String>,
    /// The units that fail when these do.
    pub required_by: BTreeSet<String>,
    /// The targets that have the units started, and then wait for them.
    pub targets: BTreeSet<String>,
}

/// The effects on other units of enabling or disabling these. None where systemd doesn't show the files.
pub async fn of_install(target: &Target, units: &[&str]) -> Option<Install> {
    let mut install = Install::default();
    let mut seen: BTreeSet<String> = units.iter().map(|unit| (*unit).to_owned()).collect();
    let mut next: Vec<String> = seen.iter().cloned().collect();
    while !next.is_empty() {
        let shown: Vec<_> =
            next.iter().map(|unit| units::query("systemctl", ["cat", "--no-pager", "--", unit])).collect();
        let mut further = BTreeSet::new();
        for answer in target.run_all(&shown).await {
            let output = answer.ok().filter(|output| !output.truncated)?;
            // The plan may be about to make the file.
            let is_absent = || String::from_utf8_lossy(&output.stderr).contains("No files found for ");
            if output.exit_code != 0 && !is_absent() {
                return None;
            }
            let lines = logical_lines(&String::from_utf8_lossy(&output.stdout));
            let (also, aliases, required_by) =
                (listed(&lines, "Also"), listed(&lines, "Alias"), listed(&lines, "RequiredBy"));
            // A specifier may stand for any unit.
            if also.iter().chain(&aliases).chain(&required_by).any(|name| name.contains('%')) {
                return None;
            }
            further.extend(also);
            install.aliases.extend(aliases);
            let wanting =
                ["WantedBy", "RequiredBy", "UpheldBy"].into_iter().flat_map(|key| listed(&lines, key));
            install.targets.extend(wanting.filter(|name| name.ends_with(".target")));
            install.required_by.extend(required_by);
        }
        next = further.into_iter().filter(|name| seen.insert(name.clone())).collect();
        install.along.extend(next.iter().cloned());
        if seen.len() > MOST {
            return None;
        }
    }
    Some(install)
}

/// The lines of unit files, each with those in which it goes on. Comments may stand between them.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        if line.trim_start().starts_with(['#', ';']) {
            continue;
        }
        let (part, is_continued) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => last.push_str(&format!(" {part}")),
            None => lines.push(part.to_owned()),
        }
        goes_on = is_continued;
    }
    lines
}

/// The units in the lines with this key.
fn listed(lines: &[String], key: &str) -> Vec<String> {
    let values =
        lines.iter().filter_map(|line| line.trim().strip_prefix(key)?.trim_start().strip_prefix('='));
    values
        .flat_map(|names| names.split_whitespace().map(|name| name.trim_matches(['"', '\'']).to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use host_base::Command;
    use host_target::test_connection::{Fate, TestConnection};

    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[tokio::test]
    async fn what_is_enabled_along_is_found_through_all_files() {
        let files = |command: &Command| {
            match command.args.last().map(String::as_str) {
            Some("a.service") => Fate::Says(
                0,
                "# /etc/a\n[Install]\nAlso=b.service \\\n  c.socket\nAlias=default.target\nWantedBy=x.target y.service\n".to_owned(),
            ),
            Some("c.socket") => Fate::Says(
                0,
                "[Install]\n Also = \"ssh.service\" a.service\nRequiredBy=other.service\n".to_owned(),
            ),
            Some("odd.service") => Fate::Says(1, String::new()),
            Some("any.service") => Fate::Says(0, "[Install]\nAlso=%j.service\n".to_owned()),
            Some("split.service") => Fate::Says(
                0,
                "[Install]\nAlias=x.service \\\n; more\n ssh.service\n# y\nAlso=z.service\n".to_owned(),
            ),
            _ => Fate::Says(0, "[Service]\nExecStart=/bin/true Also=x.service\n".to_owned()),
        }
        };
        let target = Target::over_test_connection(&TestConnection::new(files));
        let found = of_install(&target, &["a.service"]).await.unwrap();
        assert_eq!(found.along, set(&["b.service", "c.socket", "ssh.service"]));
        assert_eq!(found.aliases, set(&["default.target"]));
        assert_eq!(found.required_by, set(&["other.service"]));
        assert_eq!(found.targets, set(&["x.target"]));
        assert_eq!(of_install(&target, &["plain.service"]).await, Some(Install::default()));
        for unknown in ["odd.service", "any.service"] {
            assert_eq!(of_install(&target, &[unknown]).await, None, "{unknown}");
        }
        let split = of_install(&target, &["split.service"]).await.unwrap();
        assert_eq!(split.aliases, set(&["ssh.service", "x.service"]));
        assert_eq!(split.along, set(&["z.service"]));
    }
}
