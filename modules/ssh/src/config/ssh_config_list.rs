//! `ssh_config_list`: the hosts in the configuration of the server's account, and how they are reached.

use host_ssh_syntax::value_form;
use linux_sysadmin_sdk::{Category, prelude::*, text::excerpt};

use super::{Broken, Config, Head, Setting, files};
use crate::account::Account;

/// The number of characters of a value that are shown.
const VALUE: usize = 300;

/// A block of settings.
#[derive(Debug, Serialize)]
pub(crate) struct Item {
    /// The patterns of a Host block.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    host: Vec<String>,
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    criteria: Option<String>,
    /// True for settings before the first block, which apply to all hosts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    all: bool,
    file: String,
    line: usize,
    /// The block that includes the file. This block applies only where that one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<String>,
    settings: Vec<String>,
}

pub(crate) fn ssh_config_list(_: NoArgs, cx: &Context) -> Result<Listing<Item>> {
    let account = Account::own(cx)?;
    let (path, text) = files::own(&account, false, cx)?;
    let Some(text) = text else {
        let notes = vec![format!("{} isn't there", account.short(&path))];
        return Ok(Listing { items: Vec::new(), total: None, notes });
    };
    let config = files::read(&path, &text, &account, cx).map_err(|broken| broken.problem(&account))?;
    let items = items(&config, &account);
    let notes = config.unread.iter().map(|unread| format!("not shown: {unread}")).collect();
    Ok(Listing { items, total: None, notes })
}

impl Broken {
    /// The problem of a line at which ssh gives up.
    pub(crate) fn problem(&self, account: &Account) -> Problem {
        let place = format!("{}:{}", account.short(&self.file), self.line);
        let message = format!("{place}: {}, so that ssh can't read the configuration", self.why);
        Problem::new("SSH_CONFIG_INVALID", Category::State, message)
            .remedy(format!("Correct {place} by hand"))
    }
}

fn items(config: &Config, account: &Account) -> Vec<Item> {
    let item = |(number, block): (usize, &super::Block)| {
        let settings: Vec<String> =
            config.settings.iter().filter(|setting| setting.block == number).map(shown).collect();
        if settings.is_empty() && block.head == Head::None {
            return None;
        }
        let (host, criteria) = match &block.head {
            Head::None => (Vec::new(), None),
            Head::Host(patterns) => (patterns.clone(), None),
            Head::Match(criteria) => (Vec::new(), Some(excerpt(&criteria.join(" "), VALUE))),
        };
        let within = block.within.and_then(|outer| named(config, outer));
        Some(Item {
            host,
            criteria,
            all: block.head == Head::None && within.is_none(),
            file: account.short(&block.file),
            line: block.line,
            within,
            settings,
        })
    };
    config.blocks.iter().enumerate().filter_map(item).collect()
}

/// The heads of a block and of the blocks that include it. `None` where all of them apply to all hosts.
fn named(config: &Config, block: usize) -> Option<String> {
    let block = config.blocks.get(block)?;
    let own = match &block.head {
        Head::None => None,
        Head::Host(patterns) => Some(format!("Host {}", patterns.join(" "))),
        Head::Match(criteria) => Some(format!("Match {}", criteria.join(" "))),
    };
    let outer = block.within.and_then(|outer| named(config, outer));
    let names: Vec<String> = outer.into_iter().chain(own).collect();
    (!names.is_empty()).then(|| excerpt(&names.join(", "), VALUE))
}

/// The setting as an answer shows it. Values of variables, and of keywords that ssh doesn't know, may be secret and are
/// left out.
pub(crate) fn shown(setting: &Setting) -> String {
    let keyword = &setting.keyword;
    if setting.is("SetEnv") {
        let names =
            setting.words.iter().map(|word| format!("{}=…", word.split('=').next().unwrap_or_default()));
        return format!("{keyword} {}", names.collect::<Vec<_>>().join(" "));
    }
    if !is_shown(keyword) {
        return format!("{keyword} …");
    }
    format!("{keyword} {}", excerpt(&setting.text, VALUE))
}

/// Whether ssh_config(5) knows the keyword. The value of any other keyword may be a secret.
fn is_shown(keyword: &str) -> bool {
    let structures = ["include", "ignoreunknown"].iter().any(|known| keyword.eq_ignore_ascii_case(known));
    structures || value_form(keyword).is_some()
}
