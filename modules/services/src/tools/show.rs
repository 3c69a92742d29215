//! `svc_show`: the text of a unit's files, which of their settings count, and what systemd has made of them.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use crate::profile::service_lookup;
use crate::systemd::properties::{self, Properties};
use crate::systemd::{systemctl, time, unit, unit_name};
use crate::unit_files::limits::{self, InEffect};
use crate::unit_files::{precedence, syntax};

/// The most bytes of text in an answer.
const MOST_TEXT: usize = 48 << 10;

/// The protections that are told where they are on and no file sets them, because another setting brings them along.
const IMPLIED: [&str; 9] = [
    "NoNewPrivileges",
    "PrivateDevices",
    "PrivateNetwork",
    "PrivateTmp",
    "PrivateUsers",
    "ProtectHome",
    "ProtectSystem",
    "RemoveIPC",
    "RestrictSUIDSGID",
];

/// The directories in which the file of a masked unit may be, the directory that counts more first.
const VENDORS: [&str; 2] = ["/usr/local/lib/systemd/system", "/usr/lib/systemd/system"];

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ShowArgs {
    /// Unit, as ssh.socket
    service: String,
    /// Comments too
    #[serde(default)]
    comments: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    service: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<String>,
    /// Left out where it is loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    load_state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled: Option<String>,
    /// The place of the link to /dev/null, for a unit that is masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    mask: Option<String>,
    /// The program that made the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    generator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generated_from: Option<String>,
    /// Files that differ from what systemd has loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_loaded: Vec<String>,
    files: Vec<ShownFile>,
    /// The command lines that systemd has loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    limits: BTreeMap<&'static str, InEffect>,
    /// Protections that are on though no file sets them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    implied: BTreeMap<&'static str, String>,
}

/// One file, in the order in which systemd reads them.
#[derive(Debug, Serialize)]
struct ShownFile {
    path: String,
    /// Its lines, each after its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The lines without effect, and the later line that overrides each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    overridden: BTreeMap<usize, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
}

pub(crate) fn svc_show(args: ShowArgs, cx: &Context) -> Result<Noted<Shown>> {
    let name = service_lookup::service(&args.service, cx)?.unit;
    let shown = systemctl::answer(cx.run(systemctl::TEXT.with([name.as_str()])))?;
    let units = properties::parse(&shown);
    let unexpected = || Problem::unexpected("systemctl show", &shown);
    let [unit] = units.as_slice() else { return Err(unexpected()) };
    let id = unit.text("Id").ok_or_else(unexpected)?;
    let load_state = unit.text("LoadState").unwrap_or("loaded");
    if load_state == "not-found" && unit.text("ActiveState") == Some("inactive") {
        return Err(unit::unknown(&name, cx));
    }
    let is_masked = load_state == "masked";
    let fragment = unit.string("FragmentPath");
    let file = fragment.as_deref().and_then(|path| path.rsplit('/').next()).unwrap_or(id);
    let template = Some(file).filter(|file| *file != id && unit_name::template(file).is_some());
    let is_of_masked = unit.text("UnitFileState").is_some_and(|state| state.starts_with("masked"));
    if is_of_masked && !is_masked && file != id && template.is_none() {
        // systemd can't load the alias of a masked unit.
        return svc_show(ShowArgs { service: file.to_owned(), ..args }, cx);
    }
    let is_own_mask =
        fragment.as_deref().is_some_and(|path| path.starts_with("/etc/") || path.starts_with("/run/"));
    let paths: Vec<String> = match is_masked {
        // systemd reads no file of it. That of the package says what the mask keeps from running.
        true if is_own_mask => VENDORS.iter().map(|folder| format!("{folder}/{id}")).collect(),
        true => Vec::new(),
        false => fragment.iter().cloned().chain(unit.words("DropInPaths")).collect(),
    };
    let texts = texts(&paths, cx);
    let mut notes = Vec::new();
    let mut files = files(&paths, &texts, args.comments, cx, &mut notes);
    let mut not_loaded = Vec::new();
    if is_masked {
        files.retain(|file| file.text.is_some());
        let ends = match template {
            Some(template) if is_own_mask => {
                format!(" like all instances of {template}: systemctl unmask -- {template} ends that")
            }
            None if is_own_mask => format!(": svc_unmask service={} ends that", unit_name::short(id)),
            _ => String::new(),
        };
        notes.push(format!("it is masked, and can't start{ends}; systemd reads none of its files"));
    } else if unit.yes("NeedDaemonReload") {
        not_loaded = newer(id, fragment.as_deref(), &paths, cx);
        notes
            .push("systemd has loaded older files than these: systemctl daemon-reload loads them".to_owned());
    }
    let read: Vec<&str> = texts.iter().filter_map(|text| text.as_deref().ok()).collect();
    let keys: Vec<String> =
        read.iter().flat_map(|text| syntax::assignments(text)).map(|assignment| assignment.key).collect();
    let is_set = |key: &str| keys.iter().any(|known| known == key);
    let open_files = is_set("LimitNOFILE").then(|| open_files(unit, cx)).flatten();
    let is_generated = fragment.as_deref().is_some_and(|path| path.starts_with("/run/systemd/generator"));
    let data = Shown {
        service: unit_name::short(id).to_owned(),
        aliases: aliases(unit, id),
        load_state: Some(load_state.to_owned()).filter(|state| state != "loaded" && !is_masked),
        load_error: unit.load_error().filter(|_| !is_masked),
        enabled: unit.string("UnitFileState"),
        mask: fragment.clone().filter(|_| is_masked),
        generator: read.first().filter(|_| is_generated).and_then(|text| generator(text)),
        generated_from: unit.string("SourcePath"),
        not_loaded,
        files,
        runs: unit.all("ExecStart").filter_map(command_line).collect(),
        user: unit.string("User"),
        limits: limits::in_effect(unit, open_files, is_set),
        implied: implied(unit, is_set),
    };
    if data.files.is_empty() && !is_masked {
        notes.push("it has no file".to_owned());
    }
    Ok(Noted { data, notes })
}

/// The texts of the files. The settings of units are public, so root's rights are used for a file that the account can't
/// read.
fn texts(paths: &[String], cx: &Context) -> Vec<Result<String>> {
    let mut texts = cx.read_all(paths);
    for (path, text) in paths.iter().zip(&mut texts) {
        if text.as_ref().is_err_and(|problem| problem.category == Category::Privilege) {
            *text = cx.files_as(Privilege::RootIfAvailable).read(path);
        }
    }
    texts
}

/// The other names of the unit, sorted because systemd gives them in any order.
fn aliases(unit: &Properties<'_>, id: &str) -> Vec<String> {
    let mut names = unit.words("Names");
    names.retain(|name| name != id);
    names.sort();
    unit_name::shorts(&names)
}

/// The files that are there. A file that is gone is one of those that systemd has loaded otherwise.
fn files(
    paths: &[String],
    texts: &[Result<String>],
    comments: bool,
    cx: &Context,
    notes: &mut Vec<String>,
) -> Vec<ShownFile> {
    let known: Vec<(&str, &str)> = paths
        .iter()
        .zip(texts)
        .map(|(path, text)| (path.as_str(), text.as_deref().unwrap_or_default()))
        .collect();
    // Comments are not settings, and those of a file that others may not read aren't public.
    let open: Vec<bool> = match comments {
        false => vec![false; paths.len()],
        true => {
            let found = cx.stat_all(paths).into_iter();
            found.map(|found| found.ok().flatten().is_some_and(|file| file.mode & 0o004 != 0)).collect()
        }
    };
    let mut room = MOST_TEXT;
    let parts = known.iter().zip(texts).zip(precedence::overridden(&known)).zip(open);
    parts
        .filter(|(((_, found), _), _)| {
            !found.as_ref().is_err_and(|problem| problem.category == Category::NotFound)
        })
        .map(|((((path, text), found), overridden), open)| {
            if comments && !open && found.is_ok() {
                notes.push(format!("the comments of {path} are left out: others may not read it"));
            }
            let shown = found.is_ok().then(|| lines(path, text, open, &mut room, notes));
            let unreadable = found.as_ref().err().map(|problem| unreadable(path, problem));
            ShownFile { path: (*path).to_owned(), text: shown, overridden, unreadable }
        })
        .collect()
}

/// Why a file can't be shown. A link that leads to another directory, as `systemctl link` makes it, is for another tool.
fn unreadable(path: &str, problem: &Problem) -> String {
    let why = problem.message.replace('\n', "; ");
    match problem.category {
        Category::Denied => format!("{why}; file_read path={path} reads more directories"),
        _ => why,
    }
}

/// The numbered lines of a text, as far as there is room for them.
fn lines(path: &str, text: &str, comments: bool, room: &mut usize, notes: &mut Vec<String>) -> String {
    let mut shown = String::new();
    for (number, line) in syntax::numbered(text, comments) {
        let line = format!("{number}: {line}");
        if line.len() >= *room {
            notes.push(format!("{path} goes on: file_read path={path} from={number}"));
            *room = 0;
            break;
        }
        *room -= line.len() + 1;
        if !shown.is_empty() {
            shown.push('\n');
        }
        shown.push_str(&line);
    }
    shown
}

/// The files that differ from what systemd has loaded. systemd tells only that there are some.
fn newer(id: &str, fragment: Option<&str>, loaded: &[String], cx: &Context) -> Vec<String> {
    let loaded_at = systemctl::answer(cx.run(systemctl::LOADED_AT.command())).unwrap_or_default();
    let units = properties::parse(&loaded_at);
    let at = |key: &str| units.first().and_then(|manager| manager.text(key)).and_then(time::timestamp);
    let since = at("UnitsLoadTimestamp").or_else(|| at("UnitsLoadFinishTimestamp"));
    let modified: Vec<Option<i64>> = cx
        .stat_all(loaded)
        .into_iter()
        .map(|found| found.ok().flatten().map(|file| file.modified_unix))
        .collect();
    let latest = modified.iter().flatten().max().copied();
    let new = drop_ins(id, fragment, cx).into_iter().filter(|path| !loaded.contains(path));
    let mut found: Vec<String> = new.map(|path| format!("{path} (new)")).collect();
    let is_new = !found.is_empty();
    for (path, modified) in loaded.iter().zip(&modified) {
        match modified {
            None => found.push(format!("{path} (gone)")),
            Some(at) if since.is_some_and(|since| *at > since) => found.push(format!("{path} (changed)")),
            Some(_) => {}
        }
    }
    // A unit that was loaded long after the others: what was changed last is the likeliest.
    if found.is_empty() && !is_new {
        let last =
            loaded.iter().zip(&modified).find(|(_, modified)| modified.is_some() && **modified == latest);
        found.extend(last.map(|(path, _)| format!("{path} (changed)")));
    }
    found
}

/// The drop-ins of the unit's own name, and of its template, that are on the disk.
fn drop_ins(id: &str, fragment: Option<&str>, cx: &Context) -> Vec<String> {
    let template = fragment.and_then(|path| path.rsplit('/').next()).filter(|file| *file != id);
    let directories: Vec<String> = ["/etc", "/run", "/usr/lib"]
        .iter()
        .flat_map(|root| {
            [Some(id), template]
                .into_iter()
                .flatten()
                .map(move |name| format!("{root}/systemd/system/{name}.d"))
        })
        .collect();
    let listed = cx.list_all(&directories).into_iter().zip(&directories);
    listed
        .flat_map(|(names, directory)| {
            let names = names.unwrap_or_default().into_iter().filter(|name| name.ends_with(".conf"));
            names.map(move |name| format!("{directory}/{name}"))
        })
        .collect()
}

/// The command line in `{ path=/bin/a ; argv[]=/bin/a -x ; ignore_errors=no ; start_time=… }`.
fn command_line(structure: &str) -> Option<String> {
    let (_, behind) = structure.split_once("argv[]=")?;
    let end = behind.find(" ; ignore_errors=").or_else(|| behind.find(" ; flags="))?;
    Some(behind.get(..end)?.to_owned())
}

/// The generator that a file's first line names, as `systemd-fstab-generator`.
fn generator(text: &str) -> Option<String> {
    let first = text.lines().next()?.trim_start_matches(['#', ' ']);
    let name = first.strip_prefix("Automatically generated by ")?.split_whitespace().next()?;
    Some(name.trim_end_matches('.').to_owned())
}

/// The number of files that the main process has open, where the account may see it.
fn open_files(unit: &Properties<'_>, cx: &Context) -> Option<u64> {
    let pid = unit.number("MainPID").filter(|pid| *pid > 0)?;
    cx.files_as(Privilege::RootIfAvailable)
        .list_dir(&format!("/proc/{pid}/fd"))
        .ok()
        .map(|files| files.len() as u64)
}

fn implied(unit: &Properties<'_>, is_set: impl Fn(&str) -> bool) -> BTreeMap<&'static str, String> {
    let on = |key: &&&'static str| unit.text(key).is_some_and(|value| value != "no") && !is_set(key);
    IMPLIED.iter().filter(on).map(|key| (*key, unit.string(key).unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_what_stands_in_argv() {
        // From systemctl 252.
        let nginx = "{ path=/usr/sbin/nginx ; argv[]=/usr/sbin/nginx -g daemon on; master_process on; ; ignore_errors=no ; \
                     start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }";
        assert_eq!(command_line(nginx).as_deref(), Some("/usr/sbin/nginx -g daemon on; master_process on;"));
        let flags = "{ path=/a ; argv[]=/a b ; flags=ignore-failure ; start_time=[n/a] }";
        assert_eq!(command_line(flags).as_deref(), Some("/a b"));
        for none in ["", "{ path=/a }", "argv[]=/a"] {
            assert_eq!(command_line(none), None, "{none}");
        }
    }

    #[test]
    fn a_file_in_another_directory_is_for_another_tool() {
        let of =
            |category| unreadable("/etc/systemd/system/a.service", &Problem::new("X", category, "no\nway"));
        let next = "no; way; file_read path=/etc/systemd/system/a.service reads more directories";
        assert_eq!(of(Category::Denied), next);
        assert_eq!(of(Category::Privilege), "no; way");
    }

    #[test]
    fn a_generator_is_named_in_the_first_line() {
        let table = [
            (
                "# Automatically generated by systemd-fstab-generator\n\n[Unit]\n",
                Some("systemd-fstab-generator"),
            ),
            ("# Automatically generated by systemd-sysv-generator.\n", Some("systemd-sysv-generator")),
            ("# by hand\n# Automatically generated by me\n", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(generator(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_long_text_ends_with_the_way_to_the_rest() {
        let (mut room, mut notes) = (40, Vec::new());
        let text = "[Service]\n# left out\nNice=1\nExecStart=/bin/a-long-command-line\nNice=2\n";
        assert_eq!(lines("/x/u", text, false, &mut room, &mut notes), "1: [Service]\n3: Nice=1");
        assert_eq!(notes, ["/x/u goes on: file_read path=/x/u from=4"]);
    }
}
