//! `machine_set`: the machine's name, its time zone, its locale, and whether its clock is kept by the network.

use linux_sysadmin_sdk::{Category, prelude::*};

use crate::settings::clock::{self, Clock};
use crate::settings::{hostname, locale};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct SetArgs {
    /// New host name
    hostname: Option<String>,
    /// Such as Europe/Berlin
    timezone: Option<String>,
    /// LANG, as en_US.UTF-8
    locale: Option<String>,
    /// Keep the clock by the network
    ntp: Option<bool>,
}

/// The change of one setting.
#[derive(Serialize)]
struct Changed {
    setting: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    value: String,
}

#[derive(Serialize)]
pub(crate) struct Answer {
    /// The change that a dry run would make.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    changes: Vec<Changed>,
}

/// The plan so far.
struct Draft {
    change: Change,
    changes: Vec<Changed>,
    notes: Vec<String>,
}

impl Draft {
    /// Adds a command, unless the value holds already. The undo needs the value before.
    fn set(
        &mut self,
        setting: &'static str,
        before: Option<&str>,
        value: &str,
        command: impl Fn(&str) -> Command,
    ) {
        if before == Some(value) {
            self.notes.push(format!("{setting} is {value} already"));
            return;
        }
        let step = Step::run(command(value).as_root());
        let step = match before {
            Some(before) => step.undo(command(before).as_root()),
            None => step,
        };
        self.change = self.change.clone().step(step);
        let before = before.map(str::to_owned);
        self.changes.push(Changed { setting, before, value: value.to_owned() });
    }
}

pub(crate) fn set(args: SetArgs, cx: &Context) -> Result<Noted<Answer>> {
    let SetArgs { hostname, timezone, locale, ntp } = args;
    if hostname.is_none() && timezone.is_none() && locale.is_none() && ntp.is_none() {
        let message = "expected at least one of hostname, timezone, locale and ntp";
        return Err(Problem::validation("INVALID_ARGUMENTS", message));
    }
    let change = Change::new("Set what the machine is called and how it tells the time");
    let mut draft = Draft { change, changes: Vec::new(), notes: Vec::new() };
    if let Some(name) = &hostname {
        set_hostname(name, &mut draft, cx)?;
    }
    if timezone.is_some() || ntp.is_some() {
        let clock = Clock::read(cx.run(clock::SHOW.command()))?;
        if let Some(zone) = &timezone {
            clock::check_zone(zone, cx)?;
            draft.set("timezone", clock.zone.as_deref(), zone, |zone| clock::SET_ZONE.with([zone]));
            // Debian's programs read this file, and timedatectl leaves it as it is.
            if let Some(old) = cx.read(clock::ZONE).ok().filter(|old| old.trim() != zone.as_str()) {
                let old = old.trim();
                draft
                    .notes
                    .push(format!("{} goes on naming {old:?}, for programs that read it", clock::ZONE));
            }
        }
        if let Some(on) = ntp {
            if !clock.can_ntp {
                let message = "systemd knows no service on this machine that keeps the clock by the network";
                return Err(Problem::new("NOT_SUPPORTED", Category::State, message)
                    .remedy("pkg_install package=chrony brings one"));
            }
            let word = |on: bool| if on { "true" } else { "false" };
            draft.set("ntp", Some(word(clock.ntp)), word(on), |word| {
                if word == "true" { clock::NTP_ON.command() } else { clock::NTP_OFF.command() }
            });
        }
    }
    if let Some(asked) = &locale {
        let [status, list] = cx.run_each([locale::STATUS.command(), locale::LIST.command()]);
        let status = status?.success("localectl")?;
        let name = locale::known(asked, list)?;
        let text = status.text();
        draft.set("locale", locale::current(&text), &name, |name| locale::set(name, &text));
    }
    let Draft { change, changes, mut notes } = draft;
    if changes.is_empty() {
        return Ok(Noted { data: Answer { would: None, changes }, notes });
    }
    let has = |setting| changes.iter().any(|changed| changed.setting == setting);
    if has("timezone") || has("locale") {
        notes.push("services that run keep the former time zone and locale until they restart".to_owned());
    }
    let applied = cx.apply(change)?;
    Ok(Noted { data: Answer { would: applied.dry_run.then_some("set"), changes }, notes })
}

fn set_hostname(name: &str, draft: &mut Draft, cx: &Context) -> Result<()> {
    hostname::check(name)?;
    let file = cx.read(hostname::STATIC).unwrap_or_default();
    let hosts = cx.read_bytes(hostname::HOSTS);
    let before = hostname::current(&file);
    draft.set("hostname", before, name, |name| hostname::SET.with([name]));
    let is_changed = draft.changes.iter().any(|changed| changed.setting == "hostname");
    match (hosts, before.filter(|_| is_changed)) {
        (Ok(hosts), Some(old)) => {
            if let Some(text) = hostname::renamed(&hosts, old, name) {
                draft.change = draft.change.clone().step(Step::write(hostname::HOSTS, text));
            }
        }
        (Err(problem), Some(old)) if problem.category != Category::NotFound => {
            let why = problem.message.replace('\n', "; ");
            draft.notes.push(format!("{} stays as it is, also where it names {old}: {why}", hostname::HOSTS));
        }
        _ => {}
    }
    if is_changed && name.contains('.') {
        draft.notes.push(format!("{name} has a domain; most systems expect the first label alone"));
    }
    Ok(())
}
