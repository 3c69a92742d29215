//! `ssh_config_add`: adds a host to the configuration, or changes its settings.
//!
//! ssh takes the first value that it finds. So a new block comes before all other blocks. It comes after the lines before
//! the first block, which apply to all hosts and would become part of the new block. Those lines, and files that are
//! included there, still precede it: where they set the same, the change is refused, and the problem names the place.
//!
//! For a host that calls can name, the configuration decides which machine they work on. Such a change is critical,
//! whatever host it is.

use linux_sysadmin_sdk::{Category, prelude::*};

use super::destination::{self, Destination};
use super::edit::{HostSettings, edit, is_same};
use super::{Config, Head, Holds, Setting, files, value};
use crate::account::Account;
use crate::host;

/// The lock of all changes of the file.
const LOCK: &str = "ssh-config";

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct AddArgs {
    /// The alias; no pattern
    host: String,
    /// Real name or address
    hostname: Option<String>,
    /// Default 22
    #[schemars(range(min = 1))]
    port: Option<u16>,
    /// Account there
    user: Option<String>,
    /// Absolute or ~/…
    identity_file: Option<String>,
    /// Try no other key
    identities_only: Option<bool>,
    /// [user@]host[:port],… or none
    proxy_jump: Option<String>,
}

/// The block after the change.
#[derive(Debug, Serialize)]
pub(crate) struct Added {
    host: String,
    file: String,
    /// The number of the block's first line.
    line: usize,
    settings: Vec<String>,
    /// `add` or `change` in a dry run, where nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

impl AddArgs {
    /// Checks the arguments.
    pub(crate) fn wish(&self) -> Result<HostSettings> {
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
        Ok(HostSettings { alias: self.host.clone(), settings })
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
    let leads_elsewhere = is_host && destination::leads_elsewhere(&known, &path, &wish, &account);
    if leads_elsewhere {
        let [before, after] = [&known, &config].map(|config| Destination::of(config, alias, &account));
        let warning =
            format!("calls with host {alias} would work on {after} from then on; so far on {before}");
        warnings.insert(0, warning);
    }
    // The account on the other machine may allow one key more than another.
    let takes_another_key = is_host
        && wish.settings.iter().any(|(keyword, _)| matches!(*keyword, "IdentityFile" | "IdentitiesOnly"));
    if takes_another_key {
        warnings.push(format!(
            "connections to {alias} may take another key from then on, which may have other rights"
        ));
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
    // Calls may name the host as soon as the server is started anew.
    if !is_host || takes_another_key {
        change = change.risk(Risk::High);
    }
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

/// Refuses a host that has a block in an included file.
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

/// Refuses a change where ssh would take another value than that of the block which begins at this line. Returns warnings
/// about settings that may precede it or apply as well.
pub(crate) fn must_count(
    config: &Config,
    path: &str,
    line: usize,
    wish: &HostSettings,
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

/// The settings of the block that begins at this line.
fn settings(config: &Config, path: &str, line: usize) -> Vec<String> {
    let is_own = |setting: &&Setting| {
        config.blocks.get(setting.block).is_some_and(|block| block.file == path && block.line == line)
    };
    let own = config.settings.iter().filter(is_own);
    own.map(super::ssh_config_list::shown).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
