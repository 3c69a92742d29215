//! `sec_harden_ssh`: sets what the named actions say, where sshd reads it first. The new text is checked by sshd before it
//! counts, and the target undoes it by itself unless a new login works after the reload.

use linux_sysadmin_sdk::prelude::*;

use super::action::{self, Action, Hardening};
use super::administrators::Survey;
use super::config_file::{self, CHECK_DROP_IN, CHECK_MAIN, ConfigFiles, Edit, Setting};
use super::lockout;

/// Checks the whole configuration.
const CHECK: CommandLine = CommandLine::new("sshd -t");
const ALGORITHMS: CommandLine = CommandLine::new("ssh -Q <text>");
const UNITS: CommandLine = CommandLine::new(
    "systemctl show --property=Id,ActiveState -- ssh.service sshd.service ssh.socket sshd.socket",
);
const RELOAD: CommandLine = CommandLine::new("systemctl reload -- <unit>");
/// Where sshd has ended on the new configuration, a reload alone would not bring it back.
const BRING_BACK: CommandLine = CommandLine::new("systemctl reload-or-restart -- <unit>");

/// The time in seconds within which a new login has to work.
const GUARD: u32 = 30;

/// Adds the tool.
pub(crate) fn tool(module: Module) -> Module {
    let tool =
        Tool::new("sec_harden_ssh", "Harden sshd by named actions; undone unless a new login works", harden)
            .idempotent()
            .risk(Risk::Moderate)
            .argument_alias("action", "actions")
            .value_alias("actions", "disable_x11", "disable_x11_forwarding");
    module.grants(grants).tool(tool)
}

fn grants(module: Module) -> Module {
    let reason = "the hardening, which sshd checks first";
    lockout::grants(module)
        .command(ALGORITHMS.read("which algorithms this OpenSSH has"))
        .command(UNITS.read("which unit listens"))
        .command(CHECK.read("whether sshd can read its configuration").as_root_if_available())
        .command(CHECK.change(Risk::Moderate, "the same after a change, which is undone where it can't"))
        .command(CHECK_DROP_IN.read("whether sshd can read the new settings").as_root())
        .command(CHECK_MAIN.read("whether sshd can read the new configuration").as_root())
        .command(RELOAD.change(Risk::Moderate, "to let the hardening count"))
        .command(BRING_BACK.change(Risk::High, "to undo it"))
        .path(PathGrant::write(config_file::DROP_IN, reason))
        .path(PathGrant::write(config_file::MAIN, reason))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct HardenArgs {
    /// As sec_check_ssh recommends
    #[schemars(length(min = 1))]
    actions: Vec<Action>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Hardened {
    /// What a dry run would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'static str>,
    /// The lines that were set.
    set: Vec<String>,
}

fn harden(args: HardenArgs, cx: &Context) -> Result<Noted<Hardened>> {
    let rows: Vec<Hardening> =
        action::all()?.into_iter().filter(|row| args.actions.contains(&row.name)).collect();
    if rows.is_empty() {
        return Err(Problem::validation(
            "NO_ACTIONS",
            "actions is empty: expected what sec_check_ssh recommends",
        ));
    }
    let survey = Survey::look(cx)?;
    let mut notes: Vec<String> =
        survey.unseen.iter().map(|unseen| format!("not looked at: {unseen}")).collect();
    let is_in_force = |row: &Hardening| survey.settings().all(|settings| row.is_in_force(settings));
    let (held, wanted): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_in_force);
    if !held.is_empty() {
        let names: Vec<&str> = held.iter().map(|row| row.keyword.as_str()).collect();
        notes.push(format!("in force already: {}", names.join(", ")));
    }
    if wanted.is_empty() {
        return Ok(Noted { data: Hardened { would: None, file: None, set: Vec::new() }, notes });
    }
    let names: Vec<Action> = wanted.iter().map(|row| row.name).collect();
    if let Some(problem) = lockout::refusal(&names, &survey, cx) {
        return Err(problem);
    }
    let settings = settings(&wanted, &survey, cx)?;
    let files = ConfigFiles::read(cx)?;
    let edit = files.with(&settings);
    let set: Vec<String> = settings.iter().map(|(keyword, value)| format!("{keyword} {value}")).collect();
    let mut data = Hardened { would: None, file: Some(edit.path), set };
    if edit.before.as_ref() == Some(&edit.after) {
        let left = wanted.iter().map(|row| overridden(row, &files, &survey));
        notes.extend(left);
        notes.push(format!("{} has it already: nothing was changed", edit.path));
        return Ok(Noted { data, notes });
    }
    let active = active_units(cx)?;
    if active.is_empty() {
        notes.push("sshd's unit isn't active: the settings count when it starts".to_owned());
    }
    // With a socket alone, each connection starts an sshd that reads the new settings.
    let unit = active.iter().find(|id| id.ends_with(".service"));
    let applied = cx.apply(plan(edit, &data.set, &wanted, unit.map(String::as_str)))?;
    if applied.dry_run {
        data.would = Some("harden");
    } else {
        notes.extend(left_open(&wanted, &files, cx));
    }
    Ok(Noted { data, notes })
}

/// The settings of the actions.
fn settings(wanted: &[Hardening], survey: &Survey, cx: &Context) -> Result<Vec<Setting>> {
    let value = |row: &Hardening| {
        let supported = match &row.query {
            Some(query) => supported(query, &row.keyword, survey, cx)?,
            None => Vec::new(),
        };
        Ok((row.keyword.clone(), row.value(&supported)?))
    };
    wanted.iter().map(value).collect()
}

/// The algorithms that this OpenSSH has. Without the program `ssh`, those that sshd offers now.
fn supported(query: &str, keyword: &str, survey: &Survey, cx: &Context) -> Result<Vec<String>> {
    let output = match cx.run(ALGORITHMS.with([query])) {
        Ok(output) => output.success("ssh -Q")?,
        Err(problem) if problem.code == "PROGRAM_NOT_FOUND" => {
            let now = survey.anybody.get(keyword).unwrap_or_default();
            return Ok(now.split(',').map(str::to_owned).collect());
        }
        Err(problem) => return Err(problem),
    };
    Ok(output.text().lines().map(|line| line.trim().to_owned()).collect())
}

/// The units of sshd that are active.
fn active_units(cx: &Context) -> Result<Vec<String>> {
    let output = cx.run(UNITS.command())?.success("systemctl show")?;
    let text = output.text();
    let active = text.split("\n\n").filter_map(|block| {
        let value = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        (value("ActiveState") == Some("active")).then(|| value("Id"))?
    });
    Ok(active.map(str::to_owned).collect())
}

fn plan(edit: Edit, set: &[String], wanted: &[Hardening], unit: Option<&str>) -> Change {
    let is_new = edit.before.is_none();
    let check = CHECK_MAIN.with(["{}"]).as_root();
    let write = Step::write(edit.path, edit.after).validate(check);
    let keywords: Vec<&str> = set.iter().filter_map(|line| line.split(' ').next()).collect();
    let mut change = Change::new(format!("Harden sshd: {}", keywords.join(", ")))
        .lock(Lock::Named("sshd-config".to_owned()))
        .step(if is_new { write.mode(0o600) } else { write })
        .step(Step::run(CHECK.command().as_root()))
        // Also where no unit of a known name is active: whatever has started sshd, the next login may already be refused.
        .guard(GUARD);
    if let Some(unit) = unit {
        change = change
            .step(Step::run(RELOAD.with([unit]).as_root()).uninterruptible())
            .after_undo(BRING_BACK.with([unit]).as_root());
    }
    wanted.iter().filter_map(|row| row.warns.clone()).fold(change, Change::warning)
}

/// What still isn't as it was asked for, one sentence each.
fn left_open(wanted: &[Hardening], files: &ConfigFiles, cx: &Context) -> Vec<String> {
    let after = match Survey::look(cx) {
        Ok(after) => after,
        Err(problem) => return vec![format!("the outcome isn't known: {}", problem.message)],
    };
    let is_open = |row: &&Hardening| !after.settings().all(|settings| row.is_in_force(settings));
    let mut notes: Vec<String> =
        wanted.iter().filter(is_open).map(|row| overridden(row, files, &after)).collect();
    let asks_pam = after
        .settings()
        .any(|settings| settings.is("KbdInteractiveAuthentication", "yes") && settings.is("UsePAM", "yes"));
    if asks_pam && wanted.iter().any(|row| row.name == Action::DisablePasswordAuth) {
        notes.push(
            "passwords are still taken by KbdInteractiveAuthentication, which asks PAM: set it to no by hand"
                .to_owned(),
        );
    }
    notes
}

/// A sentence about a setting that a `Match` block overrides.
fn overridden(row: &Hardening, files: &ConfigFiles, survey: &Survey) -> String {
    let open = survey.accounts.iter().filter(|(_, settings)| !row.is_in_force(settings));
    let open: Vec<&str> = open.map(|(account, _)| account.user.name.as_str()).collect();
    let whose = if open.is_empty() { String::new() } else { format!(" for {}", open.join(", ")) };
    match files.place(&row.keyword, true) {
        Some(place) => {
            format!("{} is still another one{whose}: a Match block sets it at {place}", row.keyword)
        }
        None => format!("{} is still another one{whose}", row.keyword),
    }
}
