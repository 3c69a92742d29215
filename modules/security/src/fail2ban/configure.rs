//! `sec_fail2ban_configure`: own settings of a jail. fail2ban checks the whole configuration before it reads it anew, and
//! everything is as before where it finds something wrong.

use linux_sysadmin_sdk::{Category, Failure, Privilege, prelude::*, sshd};

use super::jail_files::{self, JailFiles};
use super::server::{self, TEST};
use super::value;

const RELOAD: CommandLine = CommandLine::new("fail2ban-client reload");
const UNBAN: CommandLine = CommandLine::new("fail2ban-client set <text> unbanip <address>");
const BAN: CommandLine = CommandLine::new("fail2ban-client set <text> banip <address>");

/// The time in seconds within which a new login has to work: a jail bans at once for what its log already has.
const GUARD: u32 = 30;

/// Adds the tool.
pub(crate) fn tool(module: Module) -> Module {
    let tool = Tool::new("sec_fail2ban_configure", "Change a jail of fail2ban, or unban", configure)
        .risk(Risk::High);
    module.grants(grants).tool(tool)
}

fn grants(module: Module) -> Module {
    jail_files::grants(module)
        .command(TEST.change(Risk::Moderate, "the same after a change, which is undone where it can't"))
        .command(RELOAD.change(Risk::High, "to let the settings count"))
        .command(UNBAN.change(Risk::High, "to let an address in again"))
        .command(BAN.change(Risk::High, "to undo that"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Create,
    Modify,
    Enable,
    Disable,
    Delete,
    Unban,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ConfigureArgs {
    /// Name, as sshd
    jail: String,
    /// What to do
    action: Action,
    /// For create, modify
    config: Option<Config>,
    /// For unban
    address: Option<String>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Config {
    /// Default true
    enabled: Option<bool>,
    /// Ports
    port: Option<Port>,
    /// Its filter
    filter: Option<String>,
    /// Its log
    logpath: Option<String>,
    /// Log reader
    backend: Option<Backend>,
    /// Failures until a ban
    maxretry: Option<u32>,
    /// As 1h; -1 for ever
    bantime: Option<String>,
    /// Within this, as 10m
    findtime: Option<String>,
    /// Never banned
    ignoreip: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Port {
    Number(u16),
    Text(String),
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Backend {
    Auto,
    Systemd,
    Polling,
    Pyinotify,
}

#[derive(Debug, Serialize)]
pub(crate) struct Configured {
    /// What a dry run would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set: Vec<String>,
    /// True if the jail works afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<bool>,
}

impl Config {
    /// The options as jail.conf(5) has them.
    fn options(&self) -> Result<Vec<(&'static str, String)>> {
        let mut options = Vec::new();
        options.extend(self.enabled.map(|enabled| ("enabled", enabled.to_string())));
        if let Some(port) = &self.port {
            let text = match port {
                Port::Number(number) => number.to_string(),
                Port::Text(text) => text.clone(),
            };
            options.push(("port", value::port(&text)?));
        }
        if let Some(filter) = &self.filter {
            options.push(("filter", value::filter(filter)?));
        }
        if let Some(logpath) = &self.logpath {
            options.push(("logpath", value::logpath(logpath)?));
        }
        options.extend(self.backend.map(|backend| ("backend", backend.name().to_owned())));
        match self.maxretry {
            Some(0) => {
                return Err(Problem::validation(
                    "INVALID_VALUE",
                    "maxretry is 0: expected 1 or more failures",
                ));
            }
            maxretry => options.extend(maxretry.map(|most| ("maxretry", most.to_string()))),
        }
        if let Some(bantime) = &self.bantime {
            options.push(("bantime", value::time("bantime", bantime, true)?));
        }
        if let Some(findtime) = &self.findtime {
            options.push(("findtime", value::time("findtime", findtime, false)?));
        }
        if let Some(addresses) = &self.ignoreip {
            let checked = addresses.iter().map(|address| value::address("ignoreip", address, true));
            options.push(("ignoreip", checked.collect::<Result<Vec<_>>>()?.join(" ")));
        }
        Ok(options)
    }
}

impl Backend {
    fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Systemd => "systemd",
            Self::Polling => "polling",
            Self::Pyinotify => "pyinotify",
        }
    }
}

fn configure(args: ConfigureArgs, cx: &Context) -> Result<Noted<Configured>> {
    value::check_jail(&args.jail)?;
    let takes_config = matches!(args.action, Action::Create | Action::Modify);
    if args.config.is_some() && !takes_config {
        return Err(Problem::validation("INVALID_ARGUMENTS", "config is for create and modify only"));
    }
    if args.address.is_some() != (args.action == Action::Unban) {
        return Err(Problem::validation(
            "INVALID_ARGUMENTS",
            "unban takes an address, and no other action does",
        ));
    }
    if let Some(address) = &args.address {
        return unban(&args.jail, &value::address("address", address, false)?, cx);
    }
    let mut options = args.config.as_ref().map_or(Ok(Vec::new()), Config::options)?;
    let running = server::running_jails(cx)?;
    let files = JailFiles::read(cx)?;
    let jail = args.jail.as_str();
    let works = running.as_ref().is_some_and(|jails| jails.iter().any(|name| name == jail));
    must_fit(args.action, jail, &options, &files)?;
    match args.action {
        Action::Create if !options.iter().any(|(name, _)| *name == "enabled") => {
            options.insert(0, ("enabled", "true".to_owned()));
        }
        Action::Enable | Action::Disable => {
            let is_wanted = args.action == Action::Enable;
            if files.is_enabled(jail) == is_wanted && (works == is_wanted || running.is_none()) {
                let data =
                    Configured { would: None, files: Vec::new(), set: Vec::new(), running: Some(works) };
                let state = if is_wanted { "enabled" } else { "disabled" };
                return Ok(Noted {
                    data,
                    notes: vec![format!("{jail} is {state} already: nothing was changed")],
                });
            }
            options.push(("enabled", is_wanted.to_string()));
        }
        _ => {}
    }
    let writes = match args.action {
        Action::Delete => files.without(jail),
        _ => {
            let target = files.target(jail);
            let text = target.with(jail, &options);
            vec![(target, text)]
        }
    };
    let set: Vec<String> = options.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let mut data = Configured {
        would: None,
        files: writes.iter().map(|(file, _)| file.path.clone()).collect(),
        set,
        running: None,
    };
    let mut notes = Vec::new();
    // The check follows the files.
    let test = writes.len();
    let mut change = Change::new(format!("{} the jail {jail} of fail2ban", args.action.verb()))
        .lock(Lock::Named("fail2ban".to_owned()));
    let is_same = writes.iter().all(|(file, text)| file.text.as_ref() == Some(text));
    for (file, text) in writes {
        if file.text.is_some() {
            change = change.lock(Lock::File(file.path.clone()));
        }
        let is_left = !text.trim().is_empty();
        let step = if is_left { Step::write(&file.path, text) } else { Step::remove(&file.path) };
        change = change.step(if file.text.is_none() { step.mode(0o644) } else { step });
    }
    if is_same && (works || running.is_none()) {
        return Ok(Noted { data, notes: vec!["it is so already: nothing was changed".to_owned()] });
    }
    change = with_reload(change, running.is_some(), cx).warning(args.action.effect(jail));
    let bans = matches!(args.action, Action::Create | Action::Modify | Action::Enable);
    if bans && running.is_some() && sshd::client(cx).is_some() {
        change = change.guard(GUARD);
    }
    if running.is_none() {
        notes.push("fail2ban isn't running: svc_start service=fail2ban".to_owned());
    }
    let applied = cx.apply(change).map_err(|failure| refused(failure, test, jail))?;
    if applied.dry_run {
        data.would = Some(args.action.verb());
    } else if running.is_some() {
        data.running = server::running_jails(cx)?.map(|jails| jails.iter().any(|name| name == jail));
    }
    if args.action == Action::Delete {
        let by = files.enabled_by_package(jail);
        notes.extend(by.map(|path| format!("{path} enables {jail} all the same: action=disable ends it")));
    }
    Ok(Noted { data, notes })
}

impl Action {
    fn verb(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Modify => "modify",
            Self::Enable => "enable",
            Self::Disable => "disable",
            Self::Delete => "delete",
            Self::Unban => "unban",
        }
    }

    fn effect(self, jail: &str) -> String {
        match self {
            Self::Disable | Self::Delete => format!("what {jail} has banned may get in again"),
            _ => format!("{jail} bans addresses at once for what its log already has"),
        }
    }
}

/// Refuses an action that doesn't fit the jails that there are.
fn must_fit(action: Action, jail: &str, options: &[(&str, String)], files: &JailFiles) -> Result<()> {
    let state = |code: &str, message: String| Problem::new(code, Category::State, message);
    match action {
        Action::Create if files.has_own(jail) => {
            Err(state("JAIL_EXISTS", format!("{jail} has own settings already"))
                .remedy(format!("sec_fail2ban_configure jail={jail} action=modify")))
        }
        Action::Modify if options.is_empty() => {
            Err(Problem::validation("INVALID_ARGUMENTS", "config is empty: expected what to set"))
        }
        Action::Modify | Action::Enable | Action::Disable | Action::Delete if !files.has(jail) => {
            let known = files.jails();
            let message = format!("there is no jail {jail}");
            Err(Problem::not_found("JAIL_NOT_FOUND", message).remedy(format!(
                "There are {}; action=create makes another one",
                linux_sysadmin_sdk::text::list(&known, 40)
            )))
        }
        Action::Delete if !files.has_own(jail) => {
            Err(state("NO_OWN_SETTINGS", format!("{jail} comes with a package, whose files aren't changed"))
                .remedy(format!("sec_fail2ban_configure jail={jail} action=disable")))
        }
        _ => Ok(()),
    }
}

/// Adds the check, and the reload where the server runs.
fn with_reload(change: Change, is_running: bool, cx: &Context) -> Change {
    let change = change.step(Step::run(TEST.command().as_root()));
    if !is_running {
        return change;
    }
    let was_good = cx
        .run(TEST.command().privilege(Privilege::RootIfAvailable))
        .is_ok_and(|output| output.exit_code == 0);
    let change = change.step(Step::run(RELOAD.command().as_root()).uninterruptible());
    // A configuration that was wrong before can't be read again after an undo.
    if was_good { change.after_undo(RELOAD.command().as_root()) } else { change }
}

/// What fail2ban finds wrong, as the problem.
fn refused(failure: Failure, test: usize, jail: &str) -> Problem {
    if failure.step as usize != test {
        return failure.into();
    }
    let Some(output) = failure.outputs.last() else { return failure.into() };
    let said = server::errors(output);
    let problem = Problem::new("JAIL_REFUSED", Category::State, format!("fail2ban can't use it: {said}"));
    match said.contains("Have not found any log file for") {
        true => problem.remedy(format!(
            "sec_fail2ban_configure jail={jail} with a logpath that exists, or with backend=systemd where the service logs \
             to the journal"
        )),
        false => problem,
    }
}

fn unban(jail: &str, address: &str, cx: &Context) -> Result<Noted<Configured>> {
    let data = |would| Configured { would, files: Vec::new(), set: Vec::new(), running: None };
    let running = server::running_jails(cx)?;
    let Some(running) = running else {
        let message = "fail2ban isn't running, so nobody is banned";
        return Err(
            Problem::new("NOT_RUNNING", Category::State, message).remedy("svc_start service=fail2ban")
        );
    };
    if !running.iter().any(|name| name == jail) {
        let message = format!("there is no jail {jail} at work: there are {}", running.join(", "));
        return Err(Problem::not_found("JAIL_NOT_FOUND", message));
    }
    let (mut states, unseen) = server::states(&[jail.to_owned()], cx);
    if let Some(unseen) = unseen.into_iter().next() {
        return Err(Problem::new("COMMAND_FAILED", Category::Other, unseen));
    }
    let banned = states.pop().unwrap_or_default().addresses;
    if !banned.iter().any(|known| known == address) {
        return Ok(Noted {
            data: data(None),
            notes: vec![format!("{jail} hasn't banned {address}: nothing was changed")],
        });
    }
    let step = Step::run(UNBAN.with([jail, address]).as_root()).undo(BAN.with([jail, address]).as_root());
    let applied =
        cx.apply(Change::new(format!("Unban {address} in the jail {jail} of fail2ban")).step(step))?;
    Ok(Noted { data: data(applied.dry_run.then_some("unban")), notes: Vec::new() })
}
