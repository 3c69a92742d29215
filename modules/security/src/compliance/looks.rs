//! What the checks are judged by: all of it is looked at once, before the first check is judged.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::mounts::MountTable;
use linux_sysadmin_sdk::sshd::Settings;
use linux_sysadmin_sdk::{Privilege, prelude::*, text};

use super::Outcome;
use super::check::{Check, Rule};

/// Files with secrets whose modes the checks look at. A grant has to name each of them.
const SECRETS: [&str; 5] =
    ["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private"];

const STAT: [&str; 2] = ["--format=%a:%U:%G:%n", "--"];
const DPKG: CommandLine =
    CommandLine::new(r"dpkg-query --show '--showformat=${db:Status-Abbrev}\t${Package}\n' -- <package>...");
const RPM: CommandLine = CommandLine::new(r"rpm --query '--queryformat=%{NAME}\n' <package>...");
const UNITS: CommandLine =
    CommandLine::new("systemctl show --property=Id,LoadState,ActiveState,UnitFileState -- <unit>...");
const SSHD: CommandLine = CommandLine::new("sshd -T");

pub(super) fn grants() -> Vec<CommandGrant> {
    let secrets: String = SECRETS.iter().map(|path| format!("|<path:{path}>")).collect();
    let stat = format!("stat {} -- (<path>{secrets})...", STAT[0]);
    vec![
        CommandGrant::read(&stat, "modes and owners of files, never what is in them"),
        DPKG.read("which packages are installed"),
        RPM.read("which packages are installed"),
        UNITS.read("which services run"),
        SSHD.read("the settings of sshd that are in effect").as_root_if_available(),
    ]
}

/// What was seen, or why it wasn't.
pub(super) struct Looks {
    /// Mode, owner and group by path.
    files: std::result::Result<BTreeMap<String, (u32, String, String)>, String>,
    /// What stat said of the files that it couldn't look at, or that are missing.
    unshown: Vec<String>,
    sysctls: BTreeMap<String, Result<String>>,
    mounts: Result<MountTable>,
    packages: std::result::Result<Vec<String>, String>,
    /// Load state, state, and state of the unit's file, by unit.
    units: std::result::Result<BTreeMap<String, [String; 3]>, String>,
    /// The settings in effect; `None` where there is no sshd.
    sshd: std::result::Result<Option<Settings>, String>,
}

/// The commands whose outputs the checks are judged by.
pub(super) fn commands(checks: &[Check]) -> [Command; 5] {
    let (mut files, mut packages) = (Vec::new(), Vec::new());
    for check in checks {
        match &check.rule {
            Rule::File { file, .. } => files.push(file.clone()),
            Rule::Absent { absent } => packages.extend(absent.clone()),
            Rule::Off { .. } | Rule::Sysctl { .. } | Rule::Mount { .. } | Rule::Sshd { .. } => {}
        }
    }
    let stat = Command::new("stat").args(STAT).args(files);
    let sshd = SSHD.command().privilege(Privilege::RootIfAvailable);
    [stat, DPKG.with(&packages), RPM.with(&packages), UNITS.with(asked_units(checks)), sshd]
}

/// The units that the checks are about, each once.
fn asked_units(checks: &[Check]) -> Vec<&String> {
    let mut units = Vec::new();
    for check in checks {
        let Rule::Off { off } = &check.rule else { continue };
        for unit in off {
            if !units.contains(&unit) {
                units.push(unit);
            }
        }
    }
    units
}

impl Looks {
    pub(super) fn gather(checks: &[Check], cx: &Context) -> Self {
        let [stat, dpkg, rpm, units, sshd] = cx.run_each(commands(checks));
        let sysctls = checks.iter().filter_map(|check| match &check.rule {
            Rule::Sysctl { sysctl, .. } => Some(sysctl.clone()),
            _ => None,
        });
        let sysctls: Vec<String> = sysctls.collect();
        let paths: Vec<String> =
            sysctls.iter().map(|key| format!("/proc/sys/{}", key.replace('.', "/"))).collect();
        let unshown = stat.as_ref().map(|output| output.error_text()).unwrap_or_default();
        Self {
            unshown: unshown.lines().map(str::to_owned).collect(),
            files: said(stat, &[0, 1]).map(|said| said.lines().filter_map(file).collect()),
            sysctls: sysctls.into_iter().zip(cx.read_all(&paths)).collect(),
            mounts: MountTable::read(cx),
            packages: installed(dpkg, rpm, checks),
            units: said(units, &[0]).and_then(|said| of_units(&said, asked_units(checks))),
            sshd: match sshd {
                Err(problem) if problem.code == "PROGRAM_NOT_FOUND" => Ok(None),
                sshd => said(sshd, &[0]).and_then(|said| {
                    let settings = Settings::parse(&said);
                    // Every sshd has a port.
                    let is_one = settings.get("Port").is_some();
                    if is_one { Ok(Some(settings)) } else { Err("sshd -T prints no settings".to_owned()) }
                }),
            },
        }
    }

    pub(super) fn judge(&self, rule: &Rule) -> Outcome {
        self.outcome(rule).unwrap_or_else(Outcome::Unseen)
    }

    /// Those of the packages that are installed.
    pub(super) fn there<'a>(&self, packages: &'a [String]) -> Vec<&'a String> {
        let known = self.packages.as_deref().unwrap_or_default();
        packages.iter().filter(|name| known.contains(name)).collect()
    }

    /// Those of the units that run or are enabled.
    pub(super) fn on<'a>(&self, units: &'a [String]) -> Vec<&'a String> {
        let state = |unit: &String| self.units.as_ref().ok()?.get(unit);
        let is_on = |unit: &&String| {
            state(unit).is_some_and(|[load, active, file]| {
                load != "not-found" && (active == "active" || file.starts_with("enabled"))
            })
        };
        units.iter().filter(is_on).collect()
    }

    fn outcome(&self, rule: &Rule) -> std::result::Result<Outcome, String> {
        Ok(match rule {
            Rule::File { file, mode, owner, groups } => {
                let Some((found, of, group)) = self.files.as_ref().map_err(Clone::clone)?.get(file) else {
                    let quoted = format!("'{file}'");
                    return match self.unshown.iter().find(|line| line.contains(&quoted)) {
                        Some(line) if line.ends_with("No such file or directory") => {
                            Ok(Outcome::NotApplicable)
                        }
                        Some(line) => Err(text::of_line(line)),
                        None => Err(format!("stat says nothing of {file}")),
                    };
                };
                let most = u32::from_str_radix(mode, 8).unwrap_or_default();
                let is_well = found & !most == 0 && of == owner && groups.contains(group);
                passed(is_well, || format!("mode {found:04o}, owner {of}, group {group}"))
            }
            Rule::Sysctl { sysctl, values } => match self.sysctls.get(sysctl) {
                Some(Ok(value)) => {
                    let value = value.trim();
                    passed(values.iter().any(|known| known == value), || text::of_line(value))
                }
                Some(Err(problem)) if problem.code == "FILE_NOT_FOUND" => Outcome::NotApplicable,
                Some(Err(problem)) => return Err(text::of_line(&problem.message)),
                None => Outcome::NotApplicable,
            },
            Rule::Mount { mount, option } => {
                let table = self.mounts.as_ref().map_err(|problem| problem.message.clone())?;
                match table.at(mount) {
                    None => Outcome::NotApplicable,
                    Some(found) => {
                        passed(found.options.split(',').any(|own| own == option), || found.options.clone())
                    }
                }
            }
            Rule::Absent { absent } => {
                self.packages.as_ref().map_err(Clone::clone)?;
                let there = self.there(absent);
                passed(there.is_empty(), || format!("installed: {}", text::list(&there, 5)))
            }
            Rule::Off { off } => {
                self.units.as_ref().map_err(Clone::clone)?;
                let on = self.on(off);
                passed(on.is_empty(), || format!("on: {}", text::list(&on, 5)))
            }
            Rule::Sshd { sshd, values, at_most, .. } => {
                let Some(settings) = self.sshd.as_ref().map_err(Clone::clone)? else {
                    return Ok(Outcome::NotApplicable);
                };
                let Some(value) = settings.get(sshd) else { return Ok(Outcome::NotApplicable) };
                let is_well = match at_most {
                    Some(most) => value.parse::<u64>().is_ok_and(|number| number <= *most),
                    None => values.iter().any(|known| known.eq_ignore_ascii_case(value)),
                };
                passed(is_well, || text::of_line(value))
            }
        })
    }
}

fn passed(is_well: bool, found: impl FnOnce() -> String) -> Outcome {
    if is_well { Outcome::Passed } else { Outcome::Failed(found()) }
}

/// The output of a command that ended with one of these codes, or why there is none.
fn said(output: Result<Output>, codes: &[i32]) -> std::result::Result<String, String> {
    match output {
        Ok(output) if codes.contains(&output.exit_code) => Ok(output.text().into_owned()),
        Ok(output) => Err(text::of_line(&output.error_text())),
        Err(problem) => Err(text::of_line(&problem.message)),
    }
}

fn file(line: &str) -> Option<(String, (u32, String, String))> {
    let [mode, owner, group, path] = line.splitn(4, ':').collect::<Vec<_>>()[..] else { return None };
    Some((path.to_owned(), (u32::from_str_radix(mode, 8).ok()?, owner.to_owned(), group.to_owned())))
}

/// The packages that either database has as installed. A database that says nothing of any package isn't one in which none
/// is installed.
fn installed(
    dpkg: Result<Output>,
    rpm: Result<Output>,
    checks: &[Check],
) -> std::result::Result<Vec<String>, String> {
    let of_dpkg = |line: &str| line.strip_prefix("ii ").map(|name| name.trim().to_owned());
    // rpm ends with the number of packages that aren't installed.
    let of_rpm = |line: &str| (!line.contains(' ')).then(|| line.to_owned());
    let no_such =
        dpkg.as_ref().is_ok_and(|output| output.error_text().contains("no packages found matching"));
    let dpkg = said(dpkg, &[0, 1]).and_then(|said| {
        let is_known = no_such || said.lines().any(|line| line.contains('\t'));
        if is_known { Ok(said) } else { Err("dpkg-query says nothing of any package".to_owned()) }
    });
    let is_asked = |name: &str| {
        checks.iter().any(|check| match &check.rule {
            Rule::Absent { absent } => absent.iter().any(|asked| asked == name),
            _ => false,
        })
    };
    let is_of_rpm = |line: &str| line.ends_with("is not installed") || is_asked(line);
    let rpm = rpm.map(|output| output.text().into_owned()).ok();
    let rpm = rpm.filter(|said| said.lines().any(is_of_rpm));
    match (dpkg, rpm) {
        (Err(why), None) => Err(why),
        (dpkg, rpm) => {
            let (dpkg, rpm) = (dpkg.unwrap_or_default(), rpm.unwrap_or_default());
            Ok(dpkg.lines().filter_map(of_dpkg).chain(rpm.lines().filter_map(of_rpm)).collect())
        }
    }
}

/// The states by the names under which the units were asked for. systemctl prints them in this order, each under its first
/// name: `ssh.service` where `sshd.service` is another name of it.
fn of_units(said: &str, asked: Vec<&String>) -> std::result::Result<BTreeMap<String, [String; 3]>, String> {
    let found: Vec<_> = said.split("\n\n").filter_map(unit).collect();
    match found.len() == asked.len() {
        true => Ok(asked.into_iter().cloned().zip(found).collect()),
        false => Err(format!("systemctl tells {} of {} units", found.len(), asked.len())),
    }
}

/// Load state, state, and state of the unit's file.
fn unit(block: &str) -> Option<[String; 3]> {
    let value = |key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.map(str::to_owned)
    };
    let states = ["LoadState", "ActiveState", "UnitFileState"].map(|key| value(key).unwrap_or_default());
    value("Id").map(|_| states)
}
