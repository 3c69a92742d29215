//! The machine and account that an alias leads to, as far as the files tell. It shows what a change does to a host that
//! calls can name.

use linux_sysadmin_sdk::text::excerpt;

use std::fmt;

use super::edit::{HostSettings, is_same};
use super::{Config, Head, Holds, Setting};
use crate::account::Account;

/// The number of characters of a value that are shown.
const VALUE: usize = 100;

/// The settings that decide the machine and the account.
const LEADING: [&str; 4] = ["HostName", "Port", "User", "ProxyJump"];

/// The destination of an alias.
pub(crate) struct Destination {
    hostname: String,
    port: String,
    user: String,
    /// The jump hosts, `None` where there are none.
    jump: Option<String>,
}

impl Destination {
    /// Finds the destination of an alias. A setting in a Match that may not apply is left out; another warning of the
    /// change names it.
    pub(crate) fn of(config: &Config, alias: &str, account: &Account) -> Self {
        let said = |keyword: &str| {
            let mut settings = rivals(config, keyword);
            let setting = settings.find(|setting| config.holds(setting.block, alias) == Holds::Yes);
            let word = match setting {
                Some(setting) => setting.words.first().cloned().unwrap_or_default(),
                None => usual(keyword, alias, account),
            };
            let is_command = setting.is_some_and(|setting| setting.is("ProxyCommand")) && word != "none";
            if is_command { "a ProxyCommand".to_owned() } else { word }
        };
        let shown = |keyword: &str| excerpt(&said(keyword), VALUE);
        Self {
            hostname: excerpt(&said("HostName").replace("%h", alias), VALUE),
            port: shown("Port"),
            user: shown("User"),
            jump: Some(shown("ProxyJump")).filter(|jump| jump != "none"),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hostname, port, user, jump } = self;
        match hostname.contains(':') {
            true => write!(f, "[{hostname}]:{port} as {user}")?,
            false => write!(f, "{hostname}:{port} as {user}")?,
        }
        jump.as_ref().map_or(Ok(()), |jump| write!(f, " by way of {jump}"))
    }
}

/// Whether the new settings may lead to another destination than before. What isn't known counts as another destination.
pub(crate) fn leads_elsewhere(known: &Config, path: &str, wish: &HostSettings, account: &Account) -> bool {
    let own = known
        .blocks
        .iter()
        .position(|block| block.file == path && block.head == Head::Host(vec![wish.alias.clone()]));
    let alters = |(keyword, value): &(&'static str, String)| {
        let says_so = |setting: &Setting| {
            setting.is(keyword) && setting.words.first().is_some_and(|there| is_same(keyword, there, value))
        };
        let of_block = |setting: &&Setting| Some(setting.block) == own && setting.is(keyword);
        // The line keeps its value and its meaning.
        if known.settings.iter().find(of_block).is_some_and(says_so) {
            return false;
        }
        for setting in rivals(known, keyword) {
            match known.holds(setting.block, &wish.alias) {
                Holds::No => {}
                _ if !says_so(setting) => return true,
                Holds::Maybe => {}
                Holds::Yes => return !known.unread.is_empty(),
            }
        }
        !known.unread.is_empty() || !is_same(keyword, &usual(keyword, &wish.alias, account), value)
    };
    wish.settings.iter().filter(|(keyword, _)| LEADING.contains(keyword)).any(alters)
}

/// All settings that decide a keyword, in the order in which ssh takes the first.
fn rivals<'a>(config: &'a Config, keyword: &str) -> impl Iterator<Item = &'a Setting> {
    let is_jump = keyword == "ProxyJump";
    config.settings.iter().filter(move |setting| setting.is(keyword) || is_jump && setting.is("ProxyCommand"))
}

/// ssh's default for a keyword.
fn usual(keyword: &str, alias: &str, account: &Account) -> String {
    match keyword {
        "HostName" => alias,
        "Port" => "22",
        "User" => &account.name,
        _ => "none",
    }
    .to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use linux_sysadmin_sdk::{Privilege, testkit::FakeTarget};

    use super::super::{edit::edit, files};
    use super::*;

    const PATH: &str = "/home/ada/.ssh/config";

    #[test]
    fn what_may_lead_elsewhere_than_before_is_known() {
        let account = Account {
            name: "ada".into(),
            uid: 1000,
            home: "/home/ada".into(),
            privilege: Privilege::Caller,
            is_own: true,
        };
        let read = |text: &str| files::read(PATH, text, &account, &FakeTarget::new().context()).unwrap();
        let here = "web1:22 as ada";
        for (text, (keyword, value), before, elsewhere) in [
            ("", ("HostName", "db1"), here, Some("db1:22 as ada")),
            ("", ("HostName", "2001:db8::1"), here, Some("[2001:db8::1]:22 as ada")),
            ("", ("User", "root"), here, Some("web1:22 as root")),
            ("", ("ProxyJump", "b"), here, Some("web1:22 as ada by way of b")),
            // These are ssh's defaults.
            ("", ("HostName", "web1"), here, None),
            ("", ("Port", "22"), here, None),
            ("", ("User", "ada"), here, None),
            ("", ("ProxyJump", "none"), here, None),
            // A key doesn't change the destination.
            ("", ("IdentityFile", "~/k"), here, None),
            ("Host web1\n Port 22\n", ("IdentitiesOnly", "yes"), here, None),
            // The host's own block comes before other blocks.
            ("Host *\n Port 99\n", ("Port", "22"), "web1:99 as ada", Some(here)),
            ("Host web*\n Port 99\n", ("Port", "99"), "web1:99 as ada", None),
            ("Host db*\n Port 99\n", ("Port", "22"), here, None),
            (
                "Host web*\n HostName %h.prod\n",
                ("HostName", "db1"),
                "web1.prod:22 as ada",
                Some("db1:22 as ada"),
            ),
            ("Host *\n ProxyJump b\n", ("ProxyJump", "none"), "web1:22 as ada by way of b", Some(here)),
            (
                "Host *\n ProxyCommand nc %h %p\n",
                ("ProxyJump", "none"),
                "web1:22 as ada by way of a ProxyCommand",
                Some(here),
            ),
            // The first of the host's own lines and blocks counts.
            ("Host web1\n port=22\n", ("Port", "22"), here, None),
            ("Host web1\n Port 99\n Port 22\n", ("Port", "22"), "web1:99 as ada", Some(here)),
            (
                "Host web1\n User x\nHost *\n Port 99\nHost web1\n Port 22\n",
                ("Port", "22"),
                "web1:99 as x",
                Some("web1:22 as x"),
            ),
            // The destination before isn't known for certain.
            ("Match exec x\n Port 99\n", ("Port", "22"), here, Some(here)),
            ("Match exec x\n Port 22\n", ("Port", "22"), here, None),
            ("Include %d/x\n", ("Port", "22"), here, Some(here)),
            ("Host web1\n Port 22\nInclude %d/x\n", ("Port", "22"), here, None),
        ] {
            let wish = HostSettings { alias: "web1".into(), settings: vec![(keyword, value.to_owned())] };
            let known = read(text);
            assert_eq!(Destination::of(&known, "web1", &account).to_string(), before, "{text}");
            let leads = leads_elsewhere(&known, PATH, &wish, &account);
            assert_eq!(leads, elsewhere.is_some(), "{text}: {keyword} {value}");
            let after = read(&edit(text, &wish).unwrap().text);
            let after = Destination::of(&after, "web1", &account).to_string();
            assert_eq!(after, elsewhere.unwrap_or(before), "{text}: {keyword} {value}");
        }
    }
}
