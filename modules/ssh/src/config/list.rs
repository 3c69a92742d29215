//! `ssh_config_list`: which hosts the configuration of the server's account knows, and how they are reached.

use linux_sysadmin_sdk::{Category, prelude::*};

use super::{Broken, Config, Head, Setting, files, keyword};
use crate::account::Account;
use crate::options::excerpt;

/// Characters of a value that are shown.
const VALUE: usize = 300;

/// A block of settings.
#[derive(Debug, Serialize)]
pub(crate) struct Item {
    /// Its patterns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    host: Vec<String>,
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    criteria: Option<String>,
    /// What stands before the first block is for all hosts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    all: bool,
    file: String,
    line: usize,
    /// The block that includes the file: only where that holds does this one.
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
    /// ssh gives up at such a line, and reads nothing.
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

/// The block, and those that it is in itself; none where all of them hold for all hosts.
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

/// As ssh would read it. What may be a secret isn't shown: variables' values, and what ssh itself doesn't know.
pub(crate) fn shown(setting: &Setting) -> String {
    let keyword = &setting.keyword;
    if setting.is("SetEnv") {
        let names =
            setting.words.iter().map(|word| format!("{}=…", word.split('=').next().unwrap_or_default()));
        return format!("{keyword} {}", names.collect::<Vec<_>>().join(" "));
    }
    if !keyword::is_shown(keyword) {
        return format!("{keyword} …");
    }
    format!("{keyword} {}", excerpt(&setting.text, VALUE))
}
