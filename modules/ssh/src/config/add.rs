//! `ssh_config_add`: one host of the configuration, new or with other settings.
//!
//! ssh takes the first value that it finds. So a new block goes in front of all others, where none of them can come
//! before it; but behind what stands before the first block, since that is for all hosts, and would become the new
//! one's alone. What is set there, or in a file that is included there, still comes first: then the change is refused,
//! and says where.
//!
//! What the configuration says of a host that calls can name decides which machine they work on: a change of that is a
//! critical one, whatever host it is.

use linux_sysadmin_sdk::{Category, prelude::*};

use super::edit::{Wish, edit, is_same};
use super::way::{self, Way};
use super::{Config, Head, Holds, Setting, files, value};
use crate::account::Account;
use crate::host;

/// Changes of the file take turns.
const LOCK: &str = "ssh-config";

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct AddArgs {
    /// The alias; no pattern
    host: String,
    hostname: Option<String>,
    #[schemars(range(min = 1))]
    port: Option<u16>,
    user: Option<String>,
    /// Absolute or ~/…
    identity_file: Option<String>,
    identities_only: Option<bool>,
    /// [user@]host[:port],… or none
    proxy_jump: Option<String>,
}

/// What the block says, or would.
#[derive(Debug, Serialize)]
pub(crate) struct Added {
    host: String,
    file: String,
    /// Of the block.
    line: usize,
    settings: Vec<String>,
    /// Of a dry run: `add` or `change`. Nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

impl AddArgs {
    /// Checked.
    pub(crate) fn wish(&self) -> Result<Wish> {
        value::alias(&self.host)?;
        let check =
            |text: &Option<String>, check: fn(&str) -> Result<()>| text.as_deref().map_or(Ok(()), check);
        check(&self.hostname, value::hostname)?;
        check(&self.user, value::user)?;
        check(&self.identity_file, value::identity_file)?;
        check(&self.proxy_jump, value::proxy_jump)?;
        if self.port == Some(0) {
            return Err(Problem::validation("INVALID_VALUE", "port is 0: expected 1 to 65535"));
        }
        let only = self.identities_only.map(|only| if only { "yes" } else { "no" }.to_owned());
        let settings: Vec<(&'static str, String)> = [
            ("HostName", self.hostname.clone()),
            ("Port", self.port.map(|port| port.to_string())),
            ("User", self.user.clone()),
            ("IdentityFile", self.identity_file.clone()),
            ("IdentitiesOnly", only),
            ("ProxyJump", self.proxy_jump.clone()),
        ]
        .into_iter()
        .filter_map(|(keyword, value)| Some((keyword, value?)))
        .collect();
        if settings.is_empty() {
            let message = format!("nothing is to be set for {}: expected a setting besides host", self.host);
            return Err(Problem::validation("NOTHING_TO_CHANGE", message));
        }
        Ok(Wish { alias: self.host.clone(), settings })
    }
}

pub(crate) fn ssh_config_add(args: AddArgs, cx: &Context) -> Result<Noted<Added>> {
    let wish = args.wish()?;
    let account = Account::own(cx)?;
    account.must_have_home(cx)?;
    let (path, before) = files::own(&account, true, cx)?;
    let text = before.as_deref().unwrap_or_default();
    let read = |text: &str| files::read(&path, text, &account, cx).map_err(|broken| broken.problem(&account));
    let known = read(text)?;
    must_be_here(&known, &path, &wish.alias, &account)?;
    let edited = edit(text, &wish).map_err(|refusal| refusal.problem(&path, &wish, &account))?;
    let config = read(&edited.text)?;
    let mut warnings = must_count(&config, &path, edited.line, &wish, &account)?;

    let mut reply = Added {
        host: wish.alias.clone(),
        file: account.short(&path),
        line: edited.line,
        settings: settings(&config, &path, edited.line),
        would: None,
    };
    let alias = &wish.alias;
    let is_host = host::is_host(alias);
    let mut notes = vec![match is_host {
        true => format!(
            "{alias} is a host that `host` takes: connections to it are made as this says from then on"
        ),
        false => format!(
            "{alias} is not thereby a host that `host` takes: those were fixed when the server started. To allow it, \
             a person says so when ssh_connect asks, once known_hosts has its key; where ssh.allowed_hosts is set in the \
             server's configuration, the operator adds it there and restarts the server"
        ),
    }];
    if before.as_deref() == Some(&edited.text) {
        notes.insert(0, "the configuration says so already: nothing was written".to_owned());
        return Ok(Noted { data: reply, notes });
    }
    let leads_elsewhere = is_host && way::leads_elsewhere(&known, &path, &wish, &account);
    if leads_elsewhere {
        let [before, after] = [&known, &config].map(|config| Way::of(config, alias, &account));
        let warning =
            format!("calls with host {alias} would work on {after} from then on; so far on {before}");
        warnings.insert(0, warning);
    }
    let what = if edited.is_new { "Add the host" } else { "Change the host" };
    let said: Vec<String> =
        wish.settings.iter().map(|(keyword, value)| format!("{keyword} {value}")).collect();
    let mut change = Change::new(format!("{what} {alias} in {}: {}", account.short(&path), said.join(", ")))
        .lock(Lock::Named(LOCK.to_owned()));
    if before.is_none() && cx.stat_all(&[account.directory()]).remove(0)?.is_none() {
        change =
            change.step(Step::make_directory(account.directory(), 0o700).files_as(account.privilege.clone()));
    }
    let write = Step::write(&path, edited.text.as_bytes()).files_as(account.privilege.clone());
    change = match before {
        Some(_) => change.step(write).lock(Lock::File(path)),
        None => change.step(write.mode(0o600)),
    };
    if leads_elsewhere {
        change = change.risk(Risk::Critical);
    }
    change = warnings.iter().cloned().fold(change, Change::warning);
    notes.extend(warnings);
    if cx.apply(change)?.dry_run {
        reply.would = Some(if edited.is_new { "add" } else { "change" });
    }
    Ok(Noted { data: reply, notes })
}

/// A problem where the host has a block in an included file.
fn must_be_here(config: &Config, path: &str, alias: &str, account: &Account) -> Result<()> {
    let is_of_host =
        |head: &Head| matches!(head, Head::Host(patterns) if patterns.iter().any(|own| own == alias));
    let Some(block) = config.blocks.iter().find(|block| block.file != path && is_of_host(&block.head)) else {
        return Ok(());
    };
    let place = format!("{}:{}", account.short(&block.file), block.line);
    let message = format!(
        "{alias} is set up in {place}, which {} includes: only the latter is edited",
        account.short(path)
    );
    Err(Problem::new("HOST_ELSEWHERE", Category::State, message).remedy(format!("Change {place} by hand")))
}

/// A problem where ssh would take another value than that of the block, which begins in this line of the file.
/// Otherwise what may keep it from that, or comes along.
pub(crate) fn must_count(
    config: &Config,
    path: &str,
    line: usize,
    wish: &Wish,
    account: &Account,
) -> Result<Vec<String>> {
    let place = |setting: &Setting| {
        let file = config.blocks.get(setting.block).map_or(path, |block| &block.file);
        format!("{}:{}", account.short(file), setting.line)
    };
    let is_own = |setting: &Setting| {
        config.blocks.get(setting.block).is_some_and(|block| block.file == path && block.line == line)
    };
    let mut warnings = Vec::new();
    for (keyword, value) in &wish.settings {
        let rivals =
            |setting: &&Setting| setting.is(keyword) || *keyword == "ProxyJump" && setting.is("ProxyCommand");
        for setting in config.settings.iter().filter(rivals) {
            if is_own(setting) && setting.is(keyword) {
                break;
            }
            let holds = config.holds(setting.block, &wish.alias);
            let is_same = setting.is(keyword)
                && setting.words.first().is_some_and(|there| is_same(keyword, there, value));
            match (holds, *keyword) {
                (Holds::No, _) => {}
                (_, "IdentityFile") => warnings
                    .push(format!("{} names another IdentityFile, which ssh tries before", place(setting))),
                _ if is_same => {}
                (Holds::Yes, _) => {
                    let place = place(setting);
                    let message = format!(
                        "{place} sets {} {} for {} before its own block does, and ssh takes the first: \
                         {keyword} {value} would not count",
                        setting.keyword, setting.text, wish.alias
                    );
                    return Err(Problem::new("SETTING_COMES_FIRST", Category::State, message).remedy(
                        format!("Change {place} by hand, or move it behind the block of {}", wish.alias),
                    ));
                }
                (Holds::Maybe, _) => warnings.push(format!(
                    "{} sets {} before, where its Match holds: then {keyword} {value} doesn't count",
                    place(setting),
                    setting.keyword
                )),
            }
        }
    }
    warnings.extend(
        config.unread.iter().map(|unread| format!("what isn't known may set the same before: {unread}")),
    );
    Ok(warnings)
}

/// What the block that begins in this line says.
fn settings(config: &Config, path: &str, line: usize) -> Vec<String> {
    let is_own = |setting: &&Setting| {
        config.blocks.get(setting.block).is_some_and(|block| block.file == path && block.line == line)
    };
    let own = config.settings.iter().filter(is_own);
    own.map(super::list::shown).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
