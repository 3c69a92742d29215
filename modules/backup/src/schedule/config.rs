//! The file of a schedule, lines `KEY=VALUE`, which the script reads at each run.

use linux_sysadmin_sdk::{Category, prelude::*};

/// The directory of the files.
pub(crate) const DIRECTORY: &str = "/etc/linux-sysadmin/backup";

/// The number of days, weeks and months of which the last backup is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Keep {
    pub(crate) daily: u32,
    pub(crate) weekly: u32,
    pub(crate) monthly: u32,
}

/// One schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) destination: String,
    /// The schedule as the caller gave it.
    pub(crate) schedule: String,
    pub(crate) paths: Vec<String>,
    pub(crate) excludes: Vec<String>,
    pub(crate) dumps: Vec<String>,
    pub(crate) keep: Keep,
}

impl Config {
    /// The path of a schedule's file.
    pub(crate) fn path(name: &str) -> String {
        format!("{DIRECTORY}/{name}.conf")
    }

    /// The schedules of the target, by name. There are none where the directory is missing.
    pub(crate) fn all(cx: &Context) -> Result<Vec<Self>> {
        let names = match cx.list_dir(DIRECTORY) {
            Ok(names) => names,
            Err(problem) if problem.category == Category::NotFound => return Ok(Vec::new()),
            Err(problem) => return Err(problem),
        };
        let names: Vec<_> = names.iter().filter_map(|name| name.strip_suffix(".conf")).collect();
        let texts = cx.read_all(&names.iter().map(|name| Self::path(name)).collect::<Vec<_>>());
        names.into_iter().zip(texts).map(|(name, text)| Ok(Self::parsed(name, &text?))).collect()
    }

    fn parsed(name: &str, text: &str) -> Self {
        let all = |key: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let one = |key: &str| all(key).pop().unwrap_or_default();
        let number = |key: &str| one(key).parse().unwrap_or_default();
        Self {
            name: name.to_owned(),
            destination: one("destination"),
            schedule: one("schedule"),
            paths: all("path"),
            excludes: all("exclude"),
            dumps: all("dump"),
            keep: Keep {
                daily: number("keep_daily"),
                weekly: number("keep_weekly"),
                monthly: number("keep_monthly"),
            },
        }
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![
            "# What this schedule backs up. bak_schedule of linux-sysadmin writes it.".to_owned(),
            format!("destination={}", self.destination),
            format!("schedule={}", self.schedule),
        ];
        let several = [("path", &self.paths), ("exclude", &self.excludes), ("dump", &self.dumps)];
        for (key, values) in several {
            lines.extend(values.iter().map(|value| format!("{key}={value}")));
        }
        let Keep { daily, weekly, monthly } = self.keep;
        lines.push(format!("keep_daily={daily}\nkeep_weekly={weekly}\nkeep_monthly={monthly}\n"));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_as_it_was_written() {
        let config = Config {
            name: "nightly".into(),
            destination: "local:///mnt/a b".into(),
            schedule: "0 3 * * *".into(),
            paths: vec!["/etc".into(), "/srv/x=y".into()],
            excludes: vec!["*.log".into(), "#x".into()],
            dumps: vec!["redis".into()],
            keep: Keep { daily: 7, weekly: 4, monthly: 6 },
        };
        assert_eq!(Config::parsed("nightly", &config.text()), config);
        let foreign = Config::parsed("x", "destination\n\nkeep_daily=many\n=\u{fffd}");
        assert_eq!((foreign.destination.as_str(), foreign.keep.daily), ("", 0));
    }
}
