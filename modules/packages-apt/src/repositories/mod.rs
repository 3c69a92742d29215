//! The repositories of apt: sources.list(5), apt_preferences(5).

mod deb822;
mod one_line;

use linux_sysadmin_sdk::packages::repositories::{
    Definition, Definitions, Edit, KeyFile, KeySource, NewRepository, Plan, Repositories, comparable_url,
    shown_url, url_host,
};
use linux_sysadmin_sdk::{Category, prelude::*};

const MAIN: &str = "/etc/apt/sources.list";
const PARTS: &str = "/etc/apt/sources.list.d";
const KEYRINGS: &str = "/etc/apt/keyrings";
const PINS: &str = "/etc/apt/preferences.d";
const LISTS: &str = "/var/lib/apt/lists";

/// Prints the priority of each index.
const POLICY: CommandLine = CommandLine::new("apt-cache policy");

/// Reads one repository, and keeps what was read of the others.
const REFRESH: CommandLine = CommandLine::new(
    "apt-get --quiet -o APT::Update::Error-Mode=any -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0 -o Dir::Etc::sourcelist=<path:/etc/apt/sources.list.d/*.sources> update",
);

/// The repositories of apt.
pub(crate) struct Sources;

/// Adds the grants to the module.
pub(crate) fn granted(module: Module) -> Module {
    module
        .paths([
            PathGrant::read(MAIN, "the repositories"),
            PathGrant::read(PARTS, "the repositories' files"),
            PathGrant::read("/etc/apt/sources.list.d/*", "the repositories"),
            PathGrant::read("/etc/apt/preferences", "whether anything is pinned"),
            PathGrant::read(PINS, "whether anything is pinned"),
            PathGrant::read("/etc/apt/preferences.d/*", "whether a new pin's name is free"),
            PathGrant::read(LISTS, "which repositories were read"),
            PathGrant::read("/usr/share/keyrings/*", "the keys of repositories"),
            PathGrant::read(KEYRINGS, "whether there is a folder for keys"),
            PathGrant::read("/etc/apt/keyrings/*", "the keys of repositories"),
            PathGrant::read("/etc/apt/trusted.gpg.d/*", "the keys of repositories"),
            PathGrant::write(MAIN, "to remove or disable a repository in it"),
            PathGrant::write("/etc/apt/sources.list.d/*", "to add, remove or disable a repository"),
            PathGrant::write(KEYRINGS, "to make the folder for keys"),
            PathGrant::write(PARTS, "to make the folder for repositories"),
            PathGrant::write(PINS, "to make the folder for priorities"),
            PathGrant::write("/etc/apt/keyrings/*", "to add or remove a repository's key"),
            PathGrant::write("/etc/apt/preferences.d/*", "to set a new repository's priority"),
        ])
        .command(POLICY.read("the priorities of repositories"))
        .command(REFRESH.change(Risk::Critical, "to read a new repository"))
}

impl Repositories for Sources {
    fn definitions(&self, cx: &Context) -> Result<Definitions> {
        let [parts, lists, pins] = lists_of(cx, [PARTS, LISTS, PINS]);
        let is_read = |name: &String| {
            let is_within = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            (name.ends_with(".list") || name.ends_with(".sources")) && name.chars().all(is_within)
        };
        let parts =
            parts.unwrap_or_default().into_iter().filter(is_read).map(|name| format!("{PARTS}/{name}"));
        let paths: Vec<_> = std::iter::once(MAIN.to_owned()).chain(parts).collect();
        let (mut found, mut is_refused) = (Definitions::default(), false);
        for (path, text) in paths.iter().zip(cx.read_all(&paths)) {
            let text = match text {
                Ok(text) => text,
                Err(problem) if problem.category == Category::NotFound => continue,
                Err(problem) => {
                    found.malformed.push(format!("{path} can't be read: {}", problem.message));
                    continue;
                }
            };
            let (items, malformed) = read(path, &text);
            found.items.extend(items);
            is_refused |= !malformed.is_empty();
            let said = |(line, reason): &(usize, &str)| format!("{path}:{line} can't be read: {reason}");
            found.malformed.extend(malformed.iter().map(said));
        }
        if is_refused {
            let said = "apt itself works with no repository until its files can be read: mend the line, or comment it out";
            found.malformed.push(said.to_owned());
        }
        name(&mut found.items);
        for item in &mut found.items {
            item.is_base = is_base(item);
            item.never_read = item.enabled && lists.as_ref().is_some_and(|lists| !was_read(item, lists));
        }
        // Without pins, each repository has the priority that its own index asks for.
        if pins.is_some_and(|pins| !pins.is_empty())
            || matches!(cx.stat_all(&["/etc/apt/preferences"]).first(), Some(Ok(Some(_))))
        {
            // apt-cache says nothing where a file of sources is malformed, which the answer tells.
            let policy = cx.run(POLICY.command())?;
            set_priorities(&mut found.items, &policy.text());
        }
        Ok(found)
    }

    fn add(&self, new: &NewRepository) -> Plan {
        let key_file = match &new.key {
            KeyFile::New(_) => format!("{KEYRINGS}/{}.asc", new.id),
            KeyFile::Existing(path) => path.clone(),
        };
        let mut text = format!("Types: deb\nURIs: {}\nSuites: {}\n", new.url, new.suites.join(" "));
        if !new.components.is_empty() {
            text += &format!("Components: {}\n", new.components.join(" "));
        }
        text += &format!("Signed-By: {key_file}\n");
        let file = format!("{PARTS}/{}.sources", new.id);
        let refresh =
            REFRESH.with([&file]).as_root().duration(linux_sysadmin_sdk::DurationCategory::LongRunning);
        let pin =
            new.priority.map(|priority| (pin_path(&new.id), pin(&url_host(&new.url), &priority.to_string())));
        Plan {
            files: [(file, text)].into_iter().chain(pin).collect(),
            key_file,
            directories: vec![KEYRINGS, PARTS, PINS],
            refresh,
        }
    }

    fn edit(&self, text: &str, definition: &Definition, edit: Edit) -> Result<Option<String>> {
        let lines: Vec<_> = text.split_inclusive('\n').collect();
        let (first, last) = definition.lines;
        let (Some(before), Some(own), Some(after)) =
            (lines.get(..first - 1), lines.get(first - 1..last), lines.get(last..))
        else {
            return Err(Problem::unexpected(&definition.file, text));
        };
        let is_one_line = !definition.file.ends_with(".sources");
        let own = match edit {
            Edit::Remove => String::new(),
            Edit::Disable if is_one_line => format!("# {}", own.concat()),
            Edit::Enable if is_one_line => own.concat().trim_start_matches(['#', ' ', '\t']).to_owned(),
            _ => deb822::with_enabled(own, edit == Edit::Enable),
        };
        let edited = [before.concat(), own, after.concat()].concat();
        let (left, malformed) = read(&definition.file, &edited);
        // In the other format, a definition that is commented out is read as one that is disabled.
        let is_commented = !is_one_line && edited.lines().any(deb822::is_commented_field);
        let is_empty = left.is_empty() && malformed.is_empty() && !is_commented && definition.file != MAIN;
        Ok((!is_empty).then_some(edited))
    }

    fn own_files(&self, definition: &Definition, cx: &Context) -> Vec<String> {
        let keys = definition.keys.iter().filter_map(|key| match key {
            KeySource::File(path) if path.starts_with("/etc/apt/keyrings/") => Some(path.clone()),
            _ => None,
        });
        let is_alone = !definition.id.contains(':');
        let pin = is_alone.then(|| pin_path(&definition.id)).filter(|path| {
            cx.read(path).is_ok_and(|text| definition.urls.iter().any(|url| is_pin_of(&url_host(url), &text)))
        });
        keys.chain(pin).collect()
    }

    fn has_suites(&self) -> bool {
        true
    }

    fn place_for_credentials(&self) -> &'static str {
        "a file in /etc/apt/auth.conf.d"
    }
}

/// The file with the priority of a repository. Without this ending, apt passes over a file with a dot in its name.
fn pin_path(id: &str) -> String {
    format!("{PINS}/{id}.pref")
}

/// The text that sets the priority of a host's packages.
fn pin(host: &str, priority: &str) -> String {
    format!("Package: *\nPin: origin \"{host}\"\nPin-Priority: {priority}\n")
}

/// Says whether a text is a [`pin`] of the host and nothing else. An administrator may have pinned more in a file of the same
/// name.
fn is_pin_of(host: &str, text: &str) -> bool {
    let priority = text.trim_end().rsplit(' ').next().unwrap_or_default();
    priority.parse::<i64>().is_ok() && text == pin(host, priority)
}

/// The names in directories; `None` for one that can't be listed.
fn lists_of<const N: usize>(cx: &Context, directories: [&str; N]) -> [Option<Vec<String>>; N] {
    let mut found = cx.list_all(&directories).into_iter().map(Result::ok);
    std::array::from_fn(|_| found.next().flatten())
}

fn read(path: &str, text: &str) -> (Vec<Definition>, Vec<(usize, &'static str)>) {
    if path.ends_with(".sources") { deb822::read(path, text) } else { one_line::read(path, text) }
}

/// Gives each repository a name: that of its file where the file has no other one, otherwise the file and the line.
fn name(items: &mut [Definition]) {
    let stem = |item: &Definition| {
        let name = item.file.rsplit('/').next().unwrap_or_default().to_owned();
        name.strip_suffix(".sources").or(name.strip_suffix(".list")).unwrap_or(&name).to_owned()
    };
    let stems: Vec<_> = items.iter().map(stem).collect();
    for (item, own) in items.iter_mut().zip(&stems) {
        let is_alone = stems.iter().filter(|other| *other == own).count() == 1 && item.file != MAIN;
        let line = item.at().rsplit('/').next().unwrap_or_default().to_owned();
        item.id = if is_alone { own.clone() } else { line };
    }
}

/// The keys of `Signed-By`: paths, fingerprints, or the key itself.
fn keys_of(value: &str) -> Vec<KeySource> {
    if value.contains("-----BEGIN PGP") {
        let lines = value.lines().skip_while(|line| line.is_empty());
        let text: String = lines.map(|line| format!("{}\n", if line == "." { "" } else { line })).collect();
        return vec![KeySource::Inline(text)];
    }
    let words = value.split([',', ' ', '\t', '\n']).filter(|word| !word.is_empty());
    words
        .map(|word| match word.starts_with('/') {
            true => KeySource::File(word.to_owned()),
            false => KeySource::Fingerprint(word.trim_end_matches('!').to_ascii_uppercase()),
        })
        .collect()
}

/// Notes an option that both formats have. The name is in lower case.
fn note_option(found: &mut Definition, name: &str, value: &str) {
    let is_insecure =
        ["trusted", "allow-insecure", "allow-weak", "allow-downgrade-to-insecure"].contains(&name);
    if is_insecure && !deb822::is_no(value) {
        found.unsigned.push(format!("{name}={value}"));
    }
    if name == "arch" || name == "architectures" {
        found.restricted.push(format!("arch={}", value.split_whitespace().collect::<Vec<_>>().join(",")));
    }
}

/// Says whether it is the distribution's own: by its host, its file, its key, or the names of the suites of updates, which
/// mirrors of hosters have as well.
fn is_base(item: &Definition) -> bool {
    let is_own_host = |url: &String| {
        let host = url_host(url);
        let hosts = ["debian.org", "ubuntu.com", "raspbian.org", "raspberrypi.com", "kali.org"];
        hosts.iter().any(|own| host == *own || host.ends_with(&format!(".{own}")))
    };
    let is_own_key = |key: &KeySource| matches!(key, KeySource::File(path) if ["debian", "ubuntu"].iter().any(|name| path.starts_with(&format!("/usr/share/keyrings/{name}-archive-"))));
    let is_own_suite = |suite: &String| {
        suite.ends_with("-security") || suite.ends_with("-updates") || suite.ends_with("/updates")
    };
    let files = ["debian", "ubuntu", "raspbian", "raspi"].map(|name| format!("{PARTS}/{name}.sources"));
    let is_known = item.urls.iter().any(is_own_host) || item.keys.iter().any(is_own_key);
    is_known || item.suites.iter().any(is_own_suite) || files.contains(&item.file)
}

/// Says whether apt has the index of each suite. apt forms a file's name from the address.
fn was_read(item: &Definition, lists: &[String]) -> bool {
    let is_known =
        |url: &String| ["http://", "https://", "file:/"].iter().any(|scheme| url.starts_with(scheme));
    item.urls.iter().filter(|url| is_known(url)).all(|url| {
        item.suites.iter().all(|suite| {
            let folder = match suite.as_str() {
                "/" => String::new(),
                path if path.ends_with('/') => path.to_owned(),
                suite => format!("dists/{suite}/"),
            };
            let base = shown_url(url).0;
            let address = format!("{}/{folder}", base.trim_end_matches('/'));
            let path = address.split_once(':').map_or("", |(_, rest)| rest);
            let path = path.strip_prefix("//").unwrap_or(path);
            let name: String = path.chars().map(in_file_name).collect::<String>();
            ["InRelease", "Release"].iter().any(|end| lists.contains(&format!("{name}{end}")))
        })
    })
}

fn in_file_name(c: char) -> String {
    match c {
        '/' => "_".to_owned(),
        c if r#"\|{}[]<>"^~_=!@#$%&*"#.contains(c) => format!("%{:02x}", u32::from(c)),
        c => c.to_string(),
    }
}

/// Sets the priorities that aren't the default of 500. A line is ` 990 https://a.example/debian bookworm/main amd64 Packages`.
fn set_priorities(items: &mut [Definition], policy: &str) {
    let lines: Vec<_> = policy
        .lines()
        .filter_map(|line| {
            let (priority, rest) = line.trim_start().split_once(' ')?;
            let (url, rest) = rest.split_once(' ')?;
            Some((priority.parse::<i64>().ok()?, url, rest.split([' ', '/']).next()?))
        })
        .collect();
    for item in items.iter_mut().filter(|item| item.enabled) {
        let is_its = |(_, url, suite): &&(i64, &str, &str)| {
            let same_url = item.urls.iter().any(|own| comparable_url(own) == comparable_url(url));
            same_url && item.suites.iter().any(|own| own.split('/').next() == Some(suite))
        };
        item.priority =
            lines.iter().find(is_its).map(|(priority, ..)| *priority).filter(|priority| *priority != 500);
    }
}
