//! The files of jails (jail.conf(5)), in the order in which fail2ban reads them: `jail.conf`, `jail.d/*.conf`, `jail.local`,
//! `jail.d/*.local`. Of an option, the last value counts. Only the last two kinds are an administrator's own; the others
//! come with packages, which are never changed here.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

const DIRECTORY: &str = "/etc/fail2ban/jail.d";
/// The file of own settings where no other file has the jail.
pub(super) const LOCAL: &str = "/etc/fail2ban/jail.local";

pub(super) fn grants(module: Module) -> Module {
    let reading = "how jails are configured";
    let writing = "own settings of jails, which fail2ban checks before they count";
    let read = ["/etc/fail2ban/jail.conf", DIRECTORY, "/etc/fail2ban/jail.d/*.conf"];
    let module = read
        .into_iter()
        .fold(module, |module, glob| module.path(PathGrant::read(glob, reading).as_root_if_available()));
    [LOCAL, "/etc/fail2ban/jail.d/*.local"].into_iter().fold(module, |module, glob| {
        module
            .path(PathGrant::read(glob, reading).as_root_if_available())
            .path(PathGrant::write(glob, writing))
    })
}

/// A file of jails.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JailFile {
    pub path: String,
    /// `None` where there is no such file.
    pub text: Option<String>,
}

/// All files, in the order in which they are read.
#[derive(Debug)]
pub(super) struct JailFiles(Vec<JailFile>);

impl JailFiles {
    /// Reads all files.
    pub fn read(cx: &Context) -> Result<Self> {
        let cx = cx.files_as(Privilege::RootIfAvailable);
        let names = match cx.list_dir(DIRECTORY) {
            Err(problem) if problem.category == Category::NotFound => Vec::new(),
            names => names?,
        };
        let of = |end: &str| -> Vec<String> {
            let names = names.iter().filter(|name| name.ends_with(end) && !name.starts_with('.'));
            names.map(|name| format!("{DIRECTORY}/{name}")).collect()
        };
        let first = ["/etc/fail2ban/jail.conf".to_owned()];
        let paths: Vec<String> =
            first.into_iter().chain(of(".conf")).chain([LOCAL.to_owned()]).chain(of(".local")).collect();
        let mut files = Vec::new();
        for (text, path) in cx.read_all(&paths).into_iter().zip(paths) {
            let text = match text {
                Ok(text) => Some(text),
                Err(problem) if problem.category == Category::NotFound => None,
                Err(problem) => return Err(problem),
            };
            files.push(JailFile { path, text });
        }
        Ok(Self(files))
    }

    fn own(&self) -> impl DoubleEndedIterator<Item = &JailFile> {
        self.0.iter().filter(|file| file.path.ends_with(".local"))
    }

    /// True if any file has the jail.
    pub fn has(&self, jail: &str) -> bool {
        self.0.iter().any(|file| file.has(jail))
    }

    /// True if an own file has the jail.
    pub fn has_own(&self, jail: &str) -> bool {
        self.own().any(|file| file.has(jail))
    }

    /// The names of all jails.
    pub fn jails(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for file in &self.0 {
            let found =
                sections(file.text.as_deref().unwrap_or_default()).into_iter().map(|section| section.name);
            names.extend(found.filter(|name| name != "DEFAULT" && name != "INCLUDES"));
        }
        names.sort();
        names.dedup();
        names
    }

    /// True if the jail is enabled, by its own section or by the defaults.
    pub fn is_enabled(&self, jail: &str) -> bool {
        let of = |section: &str| self.0.iter().rev().find_map(|file| file.value(section, "enabled"));
        of(jail)
            .or_else(|| of("DEFAULT"))
            .is_some_and(|value| ["true", "yes", "on", "1"].contains(&value.as_str()))
    }

    /// The first file of packages in which the jail is enabled.
    pub fn enabled_by_package(&self, jail: &str) -> Option<&str> {
        let of_packages = self.0.iter().filter(|file| file.path.ends_with(".conf"));
        let mut enabled = of_packages.filter(|file| file.value(jail, "enabled").as_deref() == Some("true"));
        enabled.next().map(|file| file.path.as_str())
    }

    /// The file whose settings of the jail count: the last own one that has the jail.
    pub fn target(&self, jail: &str) -> JailFile {
        let last = self.own().rev().find(|file| file.has(jail));
        let local = || self.own().find(|file| file.path == LOCAL);
        last.or_else(local).cloned().unwrap_or(JailFile { path: LOCAL.to_owned(), text: None })
    }

    /// The own files without the jail, those that have it.
    pub fn without(&self, jail: &str) -> Vec<(JailFile, String)> {
        let rest = |file: &JailFile| without(file.text.as_deref().unwrap_or_default(), jail);
        self.own().filter(|file| file.has(jail)).map(|file| (file.clone(), rest(file))).collect()
    }
}

impl JailFile {
    fn has(&self, jail: &str) -> bool {
        sections(self.text.as_deref().unwrap_or_default()).iter().any(|section| section.name == jail)
    }

    fn value(&self, jail: &str, option: &str) -> Option<String> {
        let text = self.text.as_deref()?;
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let own = sections(text).into_iter().filter(|section| section.name == jail);
        let found = own.filter_map(|section| find(&lines, &section, option)).next_back()?;
        let (_, value) = option_of(lines[found.0])?;
        Some(value.to_ascii_lowercase())
    }

    /// The text with these options of the jail. Every other line stays.
    pub fn with(&self, jail: &str, options: &[(&str, String)]) -> String {
        let mut text = self.text.clone().unwrap_or_default();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if !self.has(jail) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&format!("[{jail}]\n"));
        }
        for (option, value) in options {
            text = with_option(&text, jail, option, value);
        }
        text
    }
}

/// A section: its name, the line of its head, and the line behind its last one.
#[derive(Debug)]
struct Section {
    name: String,
    head: usize,
    end: usize,
}

fn sections(text: &str) -> Vec<Section> {
    let mut all: Vec<Section> = Vec::new();
    let mut count = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        count = number + 1;
        let name = line.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(name, _)| name);
        if let Some(name) = name {
            if let Some(last) = all.last_mut() {
                last.end = number;
            }
            all.push(Section { name: name.to_owned(), head: number, end: 0 });
        }
    }
    if let Some(last) = all.last_mut() {
        last.end = count;
    }
    all
}

/// The name and the value of a line that begins an option.
fn option_of(line: &str) -> Option<(&str, &str)> {
    if line.starts_with(['#', ';', ' ', '\t', '[', '\n', '\r']) {
        return None;
    }
    let (name, value) = line.split_once(['=', ':'])?;
    Some((name.trim_end(), value.trim()))
}

/// The lines of an option in a section, its last place: the first line, and the line behind its last one. Lines that begin
/// with a blank continue a value.
fn find(lines: &[&str], section: &Section, option: &str) -> Option<(usize, usize)> {
    let is_it =
        |number: &usize| option_of(lines[*number]).is_some_and(|(name, _)| name.eq_ignore_ascii_case(option));
    let first = (section.head + 1..section.end).rev().find(is_it)?;
    let continues = |line: &&&str| line.starts_with([' ', '\t']) && !line.trim().is_empty();
    let more = lines[first + 1..section.end].iter().take_while(continues).count();
    Some((first, first + 1 + more))
}

fn with_option(text: &str, jail: &str, option: &str, value: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let own: Vec<Section> = sections(text).into_iter().filter(|section| section.name == jail).collect();
    let known = own.iter().rev().find_map(|section| find(&lines, section, option));
    let line = format!("{option} = {value}\n");
    let (before, after) = match (known, own.last()) {
        (Some((first, behind)), _) => (&lines[..first], &lines[behind..]),
        (None, Some(last)) => {
            let is_empty = |line: &&&str| line.trim().is_empty();
            let blank = lines[last.head + 1..last.end].iter().rev().take_while(is_empty).count();
            lines.split_at(last.end - blank)
        }
        (None, None) => (&lines[..], &[][..]),
    };
    [&before.concat(), &line, &after.concat()].map(String::as_str).concat()
}

fn without(text: &str, jail: &str) -> String {
    let own: Vec<Section> = sections(text).into_iter().filter(|section| section.name == jail).collect();
    let is_other = |number: &usize| !own.iter().any(|section| (section.head..section.end).contains(number));
    let lines = text.split_inclusive('\n').enumerate().filter(|(number, _)| is_other(number));
    lines.map(|(_, line)| line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "# mine\n[DEFAULT]\nbantime = 1h\n\n[sshd]\nenabled = true\nlogpath = /a\n  /b\n# kept\n\n[web]\nport: 80\n";

    fn file(path: &str, text: &str) -> JailFile {
        JailFile { path: path.to_owned(), text: Some(text.to_owned()) }
    }

    #[test]
    fn an_option_is_set_where_it_is_and_every_other_line_stays() {
        let table = [
            ("sshd", "enabled", "false", OWN.replace("enabled = true", "enabled = false")),
            ("sshd", "logpath", "/c", OWN.replace("/a\n  /b", "/c")),
            ("sshd", "maxretry", "3", OWN.replace("# kept\n", "# kept\nmaxretry = 3\n")),
            ("web", "PORT", "443", OWN.replace("port: 80", "PORT = 443")),
            ("web", "bantime", "2h", format!("{OWN}bantime = 2h\n")),
            ("new", "enabled", "true", format!("{OWN}\n[new]\nenabled = true\n")),
        ];
        for (jail, option, value, expected) in table {
            assert_eq!(
                file(LOCAL, OWN).with(jail, &[(option, value.to_owned())]),
                expected,
                "{jail} {option}"
            );
        }
        let none = JailFile { path: LOCAL.to_owned(), text: None };
        assert_eq!(none.with("sshd", &[("enabled", "true".to_owned())]), "[sshd]\nenabled = true\n");
        assert_eq!(file(LOCAL, "[a]\nx=1").with("a", &[("y", "2".to_owned())]), "[a]\nx=1\ny = 2\n");
    }

    #[test]
    fn the_last_own_file_that_has_the_jail_is_changed_and_packages_never() {
        let conf = "[DEFAULT]\nenabled = false\n[sshd]\nport = ssh\n";
        let files = |local: &str, last: &str| {
            JailFiles(vec![
                file("/etc/fail2ban/jail.conf", conf),
                file("/etc/fail2ban/jail.d/defaults-debian.conf", "[sshd]\nenabled = true\n"),
                file(LOCAL, local),
                file("/etc/fail2ban/jail.d/z.local", last),
            ])
        };
        assert_eq!(files("", "").target("sshd").path, LOCAL);
        assert_eq!(files("[sshd]\n", "[sshd]\n").target("sshd").path, "/etc/fail2ban/jail.d/z.local");
        assert!(files("", "").is_enabled("sshd") && !files("[sshd]\nenabled = no\n", "").is_enabled("sshd"));
        assert!(!files("", "").is_enabled("web") && files("[DEFAULT]\nenabled=true\n", "").is_enabled("web"));
        let of_package = files("", "");
        assert_eq!(of_package.enabled_by_package("sshd"), Some("/etc/fail2ban/jail.d/defaults-debian.conf"));
        assert!(of_package.has("sshd") && !of_package.has_own("sshd"));
        let without = files(OWN, "[sshd]\nx = 1\n").without("sshd");
        let texts: Vec<&str> = without.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["# mine\n[DEFAULT]\nbantime = 1h\n\n[web]\nport: 80\n", ""]);
    }
}
