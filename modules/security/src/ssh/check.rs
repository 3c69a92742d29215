//! `sec_check_ssh`: what is weak in sshd's effective configuration, for each account that may become root and the address in
//! use, and the actions that would harden it.

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::sshd::{self, Settings};

use super::action::{self, Action};
use super::administrators::{self, Survey};
use super::config_file::ConfigFiles;
use super::lockout::refusal;
use super::{key_login, sshd_files, weakness};
use crate::finding::{Finding, Found, Report};

/// Adds the tool.
pub(crate) fn tool(module: Module) -> Module {
    module.grants(|module| sshd_files::grants(key_login::grants(administrators::grants(module)))).tool(
        Tool::new(
            "sec_check_ssh",
            "Weak settings of sshd, as they are effective; hardening to recommend",
            |_: NoArgs, cx: &Context| check(cx),
        ),
    )
}

/// The answer.
#[derive(Debug, Serialize)]
pub(crate) struct Checked {
    #[serde(flatten)]
    report: Report,
    /// The actions of `sec_harden_ssh` that aren't in force and would be accepted.
    recommended_actions: Vec<Action>,
    /// The actions that aren't in force and would be refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held_back: Vec<HeldBack>,
}

#[derive(Debug, Serialize)]
struct HeldBack {
    action: Action,
    why: String,
}

fn check(cx: &Context) -> Result<Analysis<Checked>> {
    let (found, survey) = match look(cx) {
        Err(problem) if problem.code == "PROGRAM_NOT_FOUND" => {
            let Analysis { data: report, severity, .. } = Found::default().analysis("sshd");
            let data = Checked { report, recommended_actions: Vec::new(), held_back: Vec::new() };
            return Ok(Analysis { data, summary: "There is no sshd on this machine".to_owned(), severity });
        }
        looked => looked?,
    };
    let (mut recommended_actions, mut held_back) = (Vec::new(), Vec::new());
    if let Some(survey) = survey {
        let rows = action::all()?;
        let open = rows.iter().filter(|row| !survey.settings().all(|settings| row.is_in_force(settings)));
        for row in open {
            match refusal(&[row.name], &survey, cx) {
                Some(problem) => held_back.push(HeldBack { action: row.name, why: problem.message }),
                None => recommended_actions.push(row.name),
            }
        }
    }
    let things = match sshd::client(cx) {
        Some(address) => format!("settings of sshd for a login from {address}"),
        None => "settings of sshd".to_owned(),
    };
    let Analysis { data, summary, severity } = found.analysis(&things);
    Ok(Analysis { data: Checked { report: data, recommended_actions, held_back }, summary, severity })
}

/// What is weak, for `sec_audit`. A machine without sshd has nothing weak there.
pub(crate) fn find(cx: &Context) -> Result<Found> {
    match look(cx) {
        Err(problem) if problem.code == "PROGRAM_NOT_FOUND" => Ok(Found::default()),
        looked => looked.map(|(found, _)| found),
    }
}

/// The commands that don't wait for another one.
pub(crate) fn ahead(_: &Context) -> Vec<Command> {
    administrators::first_looks().into()
}

/// What is weak. There is no survey where sshd can't read its configuration, which is a finding, or
/// tells it to root only.
fn look(cx: &Context) -> Result<(Found, Option<Survey>)> {
    let mut found = Found::default();
    let survey = match Survey::look(cx) {
        Ok(survey) => survey,
        Err(problem) if problem.code == "SSHD_CONFIG_INVALID" => {
            let evidence = format!("sshd doesn't start again with it: {}", problem.message);
            found.push(Finding::new(
                Severity::Critical,
                "ssh-config-invalid",
                "sshd's configuration",
                evidence,
            ));
            return Ok((found, None));
        }
        Err(problem) if problem.code == "PRIVILEGE_REQUIRED" => {
            found.unseen.push(problem.message);
            sshd_files::find(&Settings::default(), &mut found, cx);
            return Ok((found, None));
        }
        Err(problem) => return Err(problem),
    };
    found.unseen = survey.unseen.clone();
    let mut accounts: Vec<(&str, _)> =
        survey.accounts.iter().map(|(account, settings)| (account.user.name.as_str(), settings)).collect();
    // Where nobody who logs in may become root, the settings for anybody are what is left to look at.
    if accounts.is_empty() {
        accounts.push(("", &survey.anybody));
    }
    found.findings = weakness::find(&accounts, ConfigFiles::read(cx).ok().as_ref())?;
    sshd_files::find(&survey.anybody, &mut found, cx);
    Ok((found, Some(survey)))
}
