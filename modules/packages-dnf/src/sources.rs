//! The repositories of dnf: dnf.conf(5), "[main] options" and "Repo options".

use linux_sysadmin_sdk::packages::repositories::{
    Definition, Definitions, Edit, KeyFile, KeySource, NewRepository, Plan, Repositories, Section, sections,
};
use linux_sysadmin_sdk::{Category, DurationCategory, prelude::*};

use crate::command::CACHES;

const MAIN: &str = "/etc/dnf/dnf.conf";
/// The folders that dnf reads where dnf.conf names no others.
const PARTS: [&str; 3] = ["/etc/yum.repos.d", "/etc/yum/repos.d", "/etc/distro.repos.d"];
const KEYS: &str = "/etc/pki/rpm-gpg";

/// Reads one repository. It imports the key that the repository's file names, whose fingerprint is checked before.
const REFRESH: CommandLine = CommandLine::new(
    "dnf --assumeyes --setopt=exit_on_lock=1 '--setopt=*.skip_if_unavailable=0' --refresh '--disablerepo=*' --enablerepo=<text> makecache",
);

/// Removes the keys that dnf imported for one repository, in the caches of dnf 4 and of dnf 5. They stay there when the
/// repository is removed, and `dnf clean` leaves them as well.
const FORGET: [CommandLine; 2] = [
    CommandLine::new("rm --recursive --force -- <path:/var/cache/dnf/*/pubring>"),
    CommandLine::new("rm --recursive --force -- <path:/var/cache/libdnf5/*/pubring>"),
];

/// The repositories of dnf.
pub struct Sources;

/// Adds the grants to the module.
pub fn granted(module: Module) -> Module {
    module
        .path(PathGrant::read(MAIN, "the defaults of repositories"))
        .paths(PARTS.map(|path| PathGrant::read(path, "the repositories' files")))
        .paths(PARTS.map(|path| PathGrant::read(&format!("{path}/*.repo"), "the repositories")))
        .paths(CACHES.map(|path| PathGrant::read(path, "which repositories were read")))
        .paths([
            PathGrant::read("/etc/pki/rpm-gpg/*", "the keys of repositories"),
            PathGrant::read("/usr/share/distribution-gpg-keys/**", "the keys of repositories"),
            PathGrant::write("/etc/pki", "to make the folder for keys"),
            PathGrant::write(KEYS, "to make the folder for keys"),
            PathGrant::write("/etc/pki/rpm-gpg/RPM-GPG-KEY-*", "to add or remove a repository's key"),
            PathGrant::write(MAIN, "to remove or disable a repository in it"),
            PathGrant::write(PARTS[0], "to make the folder for repositories"),
        ])
        .paths(PARTS.map(|path| {
            PathGrant::write(&format!("{path}/*.repo"), "to add, remove or disable a repository")
        }))
        .command(REFRESH.change(Risk::Critical, "to read a new repository"))
        .commands(
            FORGET.map(|line| {
                line.change(Risk::Moderate, "to forget the keys of a repository that is removed")
            }),
        )
}

impl Repositories for Sources {
    fn definitions(&self, cx: &Context) -> Result<Definitions> {
        let folders: Vec<_> = PARTS.into_iter().chain(CACHES).collect();
        let mut names = cx.list_all(&folders).into_iter();
        let mut paths = vec![MAIN.to_owned()];
        for folder in PARTS {
            let names = names.next().and_then(Result::ok).unwrap_or_default().into_iter();
            paths.extend(names.filter(|name| name.ends_with(".repo")).map(|name| format!("{folder}/{name}")));
        }
        let caches: Vec<_> =
            CACHES.into_iter().zip(names).filter_map(|(folder, names)| Some((folder, names.ok()?))).collect();
        let (mut found, mut main) = (Definitions::default(), Section::default());
        let variables = Variables::of(cx);
        for (path, text) in paths.iter().zip(cx.read_all(&paths)) {
            let text = match text {
                Ok(text) => text,
                Err(problem) if problem.category == Category::NotFound => continue,
                Err(problem) => {
                    found.malformed.push(format!("{path} can't be read: {}", problem.message));
                    continue;
                }
            };
            let (all, malformed) = sections(&text);
            let said = |(line, reason): &(usize, &str)| format!("{path}:{line} can't be read: {reason}");
            found.malformed.extend(malformed.iter().map(said));
            for section in all {
                if section.name != "main" {
                    found.items.push(definition(&section, &main, path, &variables));
                } else if path == MAIN {
                    main = section;
                }
            }
        }
        set_refreshed(&mut found.items, &caches, cx);
        Ok(found)
    }

    fn add(&self, new: &NewRepository) -> Plan {
        let key_file = match &new.key {
            KeyFile::New(_) => key_path(&new.id),
            KeyFile::Existing(path) => path.clone(),
        };
        let index = u8::from(new.is_index_signed);
        let mut text = format!(
            "[{id}]\nname={id}\nbaseurl={url}\nenabled=1\ngpgcheck=1\nrepo_gpgcheck={index}\ngpgkey=file://{key_file}\n",
            id = new.id,
            url = new.url,
        );
        if let Some(priority) = new.priority {
            text += &format!("priority={priority}\n");
        }
        let refresh = REFRESH.with([&new.id]).as_root().duration(DurationCategory::LongRunning);
        let file = format!("{}/{}.repo", PARTS[0], new.id);
        let directories = vec!["/etc/pki", KEYS, PARTS[0]];
        Plan { files: vec![(file, text)], key_file, directories, refresh }
    }

    fn edit(&self, text: &str, definition: &Definition, edit: Edit) -> Result<Option<String>> {
        let lines: Vec<_> = text.split_inclusive('\n').collect();
        let (first, last) = definition.lines;
        let (Some(before), Some([head, options @ ..]), Some(after)) =
            (lines.get(..first - 1), lines.get(first - 1..last), lines.get(last..))
        else {
            return Err(Problem::unexpected(&definition.file, text));
        };
        let is_switch =
            |line: &&&str| line.split_once('=').is_some_and(|(name, _)| name.trim_end() == "enabled");
        let options: String = options.iter().filter(|line| !is_switch(line)).copied().collect();
        let own = match edit {
            Edit::Remove => String::new(),
            Edit::Disable => format!("{head}enabled=0\n{options}"),
            Edit::Enable => format!("{head}enabled=1\n{options}"),
        };
        let edited = [before.concat(), own, after.concat()].concat();
        let (left, malformed) = sections(&edited);
        Ok((!left.is_empty() || !malformed.is_empty()).then_some(edited))
    }

    fn own_files(&self, definition: &Definition, _: &Context) -> Vec<String> {
        let own = KeySource::File(key_path(&definition.id));
        definition.keys.contains(&own).then(|| key_path(&definition.id)).into_iter().collect()
    }

    fn forget_keys(&self, id: &str, cx: &Context) -> Vec<Command> {
        let caches = CACHES.into_iter().zip(FORGET).zip(cx.list_all(&CACHES));
        let folders = caches.flat_map(|((cache, forget), names)| {
            let its = names.unwrap_or_default().into_iter().filter(|name| repository_of(name) == Some(id));
            its.map(move |name| forget.with([format!("{cache}/{name}/pubring")]).as_root())
        });
        folders.collect()
    }

    fn has_suites(&self) -> bool {
        false
    }

    fn place_for_credentials(&self) -> &'static str {
        "the options username and password of its .repo file"
    }
}

/// The key file that a new repository gets.
fn key_path(id: &str) -> String {
    format!("{KEYS}/RPM-GPG-KEY-{id}")
}

/// The values of `$releasever` and `$basearch`, as far as the host knows them.
struct Variables([(&'static str, String); 3]);

impl Variables {
    fn of(cx: &Context) -> Self {
        let known = cx.distro();
        Self([
            ("releasever", known.version),
            ("basearch", known.architecture.clone()),
            ("arch", known.architecture),
        ])
    }

    fn filled(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value)
        })
    }
}

fn is_yes(value: &str) -> bool {
    ["1", "yes", "true", "on", "enabled"].contains(&value.to_ascii_lowercase().as_str())
}

fn is_no(value: &str) -> bool {
    ["0", "no", "false", "off", "disabled"].contains(&value.to_ascii_lowercase().as_str())
}

fn definition(section: &Section, main: &Section, path: &str, variables: &Variables) -> Definition {
    let get = |name: &str| section.get(name).unwrap_or_default();
    let mirrors = [get("metalink"), get("mirrorlist")].into_iter().find(|address| !address.is_empty());
    let keys = section.words("gpgkey").into_iter().map(|key| match key.strip_prefix("file://") {
        Some(path) => KeySource::File(variables.filled(path)),
        None => KeySource::Url(key),
    });
    let own_check = section.get("gpgcheck").or(section.get("pkg_gpgcheck"));
    let is_checked = own_check.or(main.get("gpgcheck")).is_some_and(is_yes);
    let unsigned = match (is_checked, own_check) {
        (true, _) => None,
        (false, Some(value)) => Some(format!("gpgcheck={value}")),
        (false, None) => Some(format!("no gpgcheck=1 here or in {MAIN}")),
    };
    let restrictions = ["includepkgs", "excludepkgs", "exclude"].into_iter().filter_map(|name| {
        let packages = section.words(name);
        (!packages.is_empty()).then(|| format!("{name}={}", packages.join(",")))
    });
    let name = variables.filled(get("name"));
    Definition {
        id: section.name.clone(),
        name: if name == section.name { String::new() } else { name },
        enabled: section.get("enabled").is_none_or(is_yes),
        urls: section.words("baseurl"),
        mirrors: mirrors.unwrap_or_default().to_owned(),
        keys: keys.collect(),
        unsigned: unsigned.into_iter().collect(),
        unverified: section.get("sslverify").or(main.get("sslverify")).is_some_and(is_no),
        priority: section
            .get("priority")
            .and_then(|value| value.parse().ok())
            .filter(|priority| *priority != 99),
        restricted: restrictions.collect(),
        file: path.to_owned(),
        lines: section.lines,
        is_base: is_base(&section.name, path),
        ..Definition::default()
    }
}

/// Says whether it is the distribution's own: by the names that distributions give.
fn is_base(id: &str, path: &str) -> bool {
    let id = id.to_ascii_lowercase();
    let ids = ["fedora", "updates", "base", "baseos", "appstream", "crb", "extras", "powertools"];
    let is_id = ids.iter().any(|own| id == *own || id.starts_with(&format!("{own}-")));
    let file = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let files = ["fedora", "centos", "rocky", "almalinux", "redhat", "oracle-linux", "ol", "amazonlinux"];
    let is_file = files.iter().any(|own| {
        file.strip_prefix(own).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    });
    is_id || is_file
}

/// The repository whose cache has this name: `lab-66959f9b15991c45`.
fn repository_of(cache: &str) -> Option<&str> {
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    cache.rsplit_once('-').filter(|(_, hash)| is_hash(hash)).map(|(id, _)| id)
}

/// Sets when each repository was read last. dnf touches its list of packages even where that hasn't changed. A repository
/// has a folder for each address that it ever had, and an empty one where reading failed.
fn set_refreshed(items: &mut [Definition], caches: &[(&str, Vec<String>)], cx: &Context) {
    let folders = caches.iter().flat_map(|(cache, names)| {
        names.iter().filter_map(move |name| {
            Some((repository_of(name)?.to_owned(), format!("{cache}/{name}/repodata")))
        })
    });
    let (ids, folders): (Vec<_>, Vec<_>) =
        folders.filter(|(id, _)| items.iter().any(|item| item.id == *id)).unzip();
    let names = if folders.is_empty() { Vec::new() } else { cx.list_all(&folders) };
    let lists = ids.into_iter().zip(folders).zip(names).filter_map(|((id, folder), names)| {
        let name = names.ok()?.into_iter().find(|name| name.contains("primary"))?;
        Some((id, format!("{folder}/{name}")))
    });
    let (ids, lists): (Vec<_>, Vec<_>) = lists.unzip();
    let found = if lists.is_empty() { Vec::new() } else { cx.stat_all(&lists) };
    let times: Vec<_> =
        ids.iter().zip(found).filter_map(|(id, found)| Some((id, found.ok()??.modified_unix))).collect();
    for item in items {
        item.refreshed = times.iter().filter(|(id, _)| **id == item.id).map(|(_, time)| *time).max();
        item.never_read = item.enabled && item.refreshed.is_none() && !caches.is_empty();
    }
}
