//! Logins that are refused, and why: what sshd and PAM said, the account's expiry and shell, its home and keys, and bans.

use linux_sysadmin_sdk::Severity;
use serde_json::json;

use crate::call::{Call, Form};
use crate::envelope::{Envelope, count, is, log_line, raw, said, strings};
use crate::finding::{Finding, Kind};
use crate::moment;
use crate::notebook::Notebook;
use crate::{rank, signs};

/// The most reasons for refused logins that are told.
const REASONS: usize = 4;

/// The bits of a mode that let others write.
const OTHERS_WRITE: u32 = 0o022;

/// Reads `user_list`.
pub(crate) fn accounts(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    for item in envelope.items() {
        let Some(user) = raw(item, "user") else { continue };
        let home = raw(item, "home").map_or_else(|| format!("/home/{user}"), str::to_owned);
        notebook.accounts.insert(user.to_owned(), home);
        // Everybody's expiry is told with the account that the complaint names.
        if is(item, "expired") && raw(item, "shell").is_some_and(|shell| !shell.ends_with("nologin")) {
            let finding = expired(user, said(item, "expires").as_deref());
            notebook.add(of_account(finding, user, notebook));
        }
    }
}

/// Adds to a finding about an account what the complaint's own words do for it. A service that the complaint names as well, as in
/// "can't log in by SSH", comes behind the account.
fn of_account(finding: Finding, user: &str, notebook: &Notebook<'_>) -> Finding {
    let is_named = notebook.complaint.words.contains(&user.to_lowercase());
    if is_named { finding.weight(rank::CONTRADICTS) } else { finding }
}

fn expired(user: &str, day: Option<&str>) -> Finding {
    let modify = Call::new("user_modify").with("expires", json!("never"));
    let shown = linux_sysadmin_sdk::text::excerpt(user, 40);
    Finding::new(Kind::Login, Severity::Warning, format!("nobody can log in as {shown}"))
        .cause(format!("the account has expired{}", day.map(|day| format!(" on {day}")).unwrap_or_default()))
        .evidence("not even by key")
        .unit(&format!("account {user}"))
        .name(user)
        .call([modify.of("user", Form::User, user)])
}

/// Reads the messages of sshd and PAM that say why somebody wasn't let in. The latest ones come last.
pub(crate) fn refused(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let lines: Vec<String> = strings(envelope.data(), "lines").collect();
    let mut told: Vec<String> = Vec::new();
    for line in lines.iter().rev() {
        let (time, text) = log_line(line);
        let Some(meaning) = signs::meaning(&[text.to_owned()], &[]) else { continue };
        if told.contains(&meaning.cause) || told.len() >= REASONS {
            continue;
        }
        told.push(meaning.cause.clone());
        let user = meaning.parts.get("user").filter(|user| Form::User.value(user).is_some()).cloned();
        let since = time.and_then(|time| moment::parse(time, notebook.is_utc));
        let what = match &user {
            Some(user) => format!("{user} isn't let in by SSH"),
            None => "somebody isn't let in by SSH".to_owned(),
        };
        // Strangers try names all day long.
        let is_stranger = text.contains("Invalid user");
        let grade = if is_stranger { Severity::Info } else { Severity::High };
        let mut finding = Finding::new(Kind::Login, grade, what).meaning(meaning).since(since);
        if let Some(user) = user {
            finding = finding.unit(&format!("account {user}")).name(user.clone());
            finding = of_account(finding, &user, notebook);
            if !is_stranger {
                notebook.refused.push(user);
            }
        }
        notebook.add(finding);
    }
}

/// Reads `sec_fail2ban_status`.
pub(crate) fn bans(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    for item in envelope.items() {
        let (Some(jail), banned) = (said(item, "jail"), count(item, "banned")) else { continue };
        if banned == 0 {
            continue;
        }
        let addresses: Vec<String> = strings(item, "addresses").collect();
        let meant = addresses.iter().find(|address| {
            address.parse().is_ok_and(|address| notebook.complaint.addresses.contains(&address))
        });
        let grade = if meant.is_some() { Severity::High } else { Severity::Info };
        let unban = meant.and_then(|address| {
            let call = Call::new("sec_fail2ban_configure").with("action", json!("unban"));
            call.of("jail", Form::Unit, &jail)?.of("address", Form::Host, address)
        });
        let mut finding = Finding::new(
            Kind::Login,
            grade,
            format!("fail2ban keeps out {banned} addresses in its jail {jail}"),
        )
        .evidence(linux_sysadmin_sdk::text::list(&addresses, 3))
        .call([unban, Call::new("sec_fail2ban_status").of("jail", Form::Unit, &jail)]);
        if meant.is_some() {
            finding = finding.weight(rank::CONTRADICTS);
        }
        notebook.add(finding);
    }
}

/// Reads `user_info`.
pub(crate) fn user(envelope: Envelope<'_>, user: &str, notebook: &mut Notebook<'_>) {
    let data = envelope.data();
    let (login, home, shell) = (&data["login"], &data["home"], &data["shell"]);
    let path = raw(home, "path").unwrap_or_default();
    let mode = raw(home, "mode").and_then(|mode| u32::from_str_radix(mode, 8).ok());
    let owner = said(home, "owner");
    let about = |cause: String, call: Option<Call>| {
        Finding::new(Kind::Login, Severity::High, format!("{user} can't log in"))
            .cause(cause)
            .unit(&format!("account {user}"))
            .name(user)
            .call([call, Call::new("user_info").of("user", Form::User, user)])
    };
    let mend = |tool: &'static str| Call::new(tool).of("path", Form::Path, path);
    if is(login, "account_expired") {
        notebook.add(Finding {
            severity: Severity::High,
            ..expired(user, said(login, "account_expires").as_deref())
        });
    } else if shell["login"].as_bool() == Some(false) {
        let shell = said(shell, "path").unwrap_or_default();
        notebook.add(about(format!("its shell {shell} lets nobody in"), None));
    } else if home["exists"].as_bool() == Some(false) {
        notebook.add(about(format!("its home {} isn't there", crate::envelope::short(path)), None));
    } else if let Some(owner) = owner {
        let call = mend("perms_set").and_then(|call| call.of("owner", Form::User, user));
        notebook
            .add(about(format!("its home belongs to {owner}, so that sshd doesn't trust its keys"), call));
    } else if let Some(mode) = mode.filter(|mode| mode & OTHERS_WRITE != 0) {
        let mended = format!("{:04o}", mode & !OTHERS_WRITE);
        let call = mend("perms_set").map(|call| call.with("mode", json!(mended)));
        let cause =
            format!("others may write to its home (mode {mode:04o}), so that sshd doesn't trust its keys");
        notebook.add(about(cause, call));
    }
}

/// Reads `perms_check` of an account's `authorized_keys`.
pub(crate) fn keys(envelope: Envelope<'_>, user: &str, notebook: &mut Notebook<'_>) {
    let Some(item) = envelope.items().next() else { return };
    let mode = raw(item, "mode").and_then(|mode| u32::from_str_radix(mode, 8).ok());
    let (Some(mode), Some(owner), Some(path)) = (mode, raw(item, "owner"), raw(item, "path")) else { return };
    let is_foreign = owner != user && owner != "root";
    if mode & OTHERS_WRITE == 0 && !is_foreign {
        return;
    }
    let call = Call::new("perms_set").of("path", Form::Path, path);
    let call = match is_foreign {
        true => call.and_then(|call| call.of("owner", Form::User, user)),
        false => call.map(|call| call.with("mode", json!("0600"))),
    };
    let owner = linux_sysadmin_sdk::text::excerpt(owner, 40);
    let finding = Finding::new(Kind::Login, Severity::High, format!("{user} can't log in by key"))
        .cause("sshd doesn't trust the file of the keys")
        .evidence(format!("{} is {owner}'s, mode {mode:04o}", crate::envelope::short(path)))
        .unit(&format!("account {user}"))
        .name(user)
        .call([call]);
    notebook.add(finding);
}
