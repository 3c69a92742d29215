//! Asks the target about units: what systemd reads together with a unit file, and which units depend on it. The text of
//! a unit file alone doesn't tell which rights its programs get.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use host_base::problem::{Category, Problem};
use host_base::{Command, Output, Privilege};
use host_capability::Access;
use host_policy::text::{self, BEFORE_TRIGGERS, InstanceUse};
use host_target::{PathCheck, ReadRequest, Target};

/// The directories of system units and their drop-ins, the strongest first, see systemd.unit(5).
const PLACES: [&str; 13] = [
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
];

/// The number of bytes of the largest drop-in that is assessed.
const LARGEST: u64 = 1 << 20;

const TIMEOUT: Duration = Duration::from_secs(10);

/// The name of the unit whose file a path names. None for other paths.
pub fn unit_at(path: &str) -> Option<&str> {
    let (directory, name) = path.rsplit_once('/')?;
    (PLACES.contains(&directory) && name.contains('.')).then_some(name)
}

/// The name of the timer whose file or drop-in a path names. None for other paths.
pub fn timer_at(path: &str) -> Option<&str> {
    let of_drop_in = || unit_at(path.rsplit_once('/')?.0.strip_suffix(".d")?);
    unit_at(path).or_else(of_drop_in).filter(|name| name.ends_with(".timer"))
}

/// The drop-ins of a unit with their paths, in the order in which systemd reads them.
pub async fn drop_ins(target: &Target, unit: &str) -> Result<Vec<(String, Vec<u8>)>, Problem> {
    let access = Access { privilege: Privilege::Caller, verbs: Vec::new() };
    let all: Arc<PathCheck> = Arc::new(|_, _| Ok(()));
    // A unit's aliases have drop-ins of their own.
    let mut names: Vec<String> = Vec::new();
    let mut kinds = Vec::new();
    let others = match is_template(unit) {
        // systemd loads only its instances.
        true => String::new(),
        false => value(target, "Names", unit).await.ok_or_else(unanswered)?,
    };
    for name in std::iter::once(unit).chain(others.split_whitespace()) {
        let mut of_name = directories(name);
        kinds.extend(of_name.pop());
        names.extend(of_name);
    }
    // The environment of systemd can add directories.
    let mut places: Vec<String> = PLACES.map(str::to_owned).into();
    let more = show(target, "UnitPath", &[]).await.ok_or_else(unanswered)?;
    let more = more.trim().strip_prefix("UnitPath=").ok_or_else(unanswered)?;
    for place in more.split_whitespace().filter(|place| place.starts_with('/')) {
        if !places.iter().any(|known| known == place) {
            places.push(place.to_owned());
        }
    }
    let places = &places;
    let at = |names: Vec<String>| {
        places
            .iter()
            .flat_map(move |place| names.clone().into_iter().map(move |name| format!("{place}/{name}")))
    };
    // Drop-ins for all units of a kind are the weakest, in every directory.
    let directories: Vec<String> = at(names).chain(at(kinds)).collect();
    let listed = target.list_all(directories.clone(), &access, all.clone()).await;
    let mut found = BTreeMap::new();
    for (directory, names) in directories.iter().zip(listed) {
        let names = match names {
            Err(problem) if problem.category == Category::NotFound => continue,
            names => names?,
        };
        for name in names.into_iter().filter(|name| name.ends_with(".conf")) {
            let path = format!("{directory}/{name}");
            found.entry(name).or_insert(path);
        }
    }
    let paths: Vec<String> = found.into_values().collect();
    let requests =
        paths.iter().map(|path| ReadRequest { path: path.clone(), offset: 0, max_bytes: LARGEST }).collect();
    let texts = target.read_all(requests, &access, all).await;
    paths.into_iter().zip(texts).map(|(path, text)| Ok((path, text?))).collect()
}

/// The names of the directories of a unit's drop-ins: for the unit, for its template, for each prefix that ends in a
/// dash, alone and as a template or with the instance, and for all units of its kind.
fn directories(unit: &str) -> Vec<String> {
    let Some((stem, kind)) = unit.rsplit_once('.') else { return Vec::new() };
    let mut names = vec![format!("{unit}.d")];
    let (prefix, instance) = match stem.split_once('@') {
        Some((prefix, instance)) => {
            if !instance.is_empty() {
                names.push(format!("{prefix}@.{kind}.d"));
            }
            (prefix, Some(instance))
        }
        None => (stem, None),
    };
    let dashes = prefix.char_indices().filter(|(_, character)| *character == '-').map(|(at, _)| at);
    for short in dashes.map(|at| &prefix[..=at]) {
        names.push(format!("{short}.{kind}.d"));
        if let Some(instance) = instance {
            names.push(format!("{short}@.{kind}.d"));
            if !instance.is_empty() {
                names.push(format!("{short}@{instance}.{kind}.d"));
            }
        }
    }
    names.push(format!("{kind}.d"));
    names
}

/// Whether this is the name of a template, of which systemd makes units.
fn is_template(unit: &str) -> bool {
    unit.contains("@.")
}

/// The reason why others may wait for a new unit of this name, or for an instance of it, or not run without it or beside it.
/// None where certainly nobody does.
pub async fn why_awaited(target: &Target, unit: &str) -> Option<String> {
    const WAITING: &str = "Before,RequiredBy,RequisiteOf,BoundBy,UpheldBy,ConflictedBy";
    let instances = if is_template(unit) { unit.replacen("@.", "@*.", 1) } else { unit.to_owned() };
    // A pattern has no answer where systemd has loaded no instance.
    let shown = show(target, WAITING, &[&instances]).await;
    let Some(said) = shown.filter(|shown| is_template(unit) || !shown.trim().is_empty()) else {
        return Some("the target doesn't say who waits for it".to_owned());
    };
    let waiting =
        said.lines().filter_map(|line| line.split_once('=')).flat_map(|(_, names)| names.split_whitespace());
    match waiting.into_iter().find(|name| *name != "shutdown.target") {
        Some(other) => Some(format!("{other} waits for it, or doesn't run beside it")),
        None => why_named(target, unit).await,
    }
}

/// The reason why a unit file may name this unit among those that it comes after or depends on. systemd shows that only of
/// units that are loaded.
async fn why_named(target: &Target, unit: &str) -> Option<String> {
    let pattern = naming_line(unit);
    // Some of the files lie elsewhere, and are links here.
    let lines = ["-RlE", "-e", &pattern, "--"].into_iter().chain(PLACES);
    // A link in such a directory names the unit by its own name.
    let named = if is_template(unit) { unit.replacen("@.", "@*.", 1) } else { unit.replace('\\', r"\\") };
    let links = PLACES.into_iter().chain(["-mindepth", "2", "-path", "*.requires/*", "-name", &named]);
    let mut answers = target.run_all(&[query("grep", lines), query("find", links)]).await;
    let (Some(Ok(links)), Some(Ok(lines))) = (answers.pop(), answers.pop()) else {
        return Some(UNSEARCHED.to_owned());
    };
    let mut closed = Vec::new();
    for (output, nothing) in [(lines, 1), (links, 0)] {
        match named_by(&output, nothing) {
            Ok(unread) => closed.extend(unread),
            Err(why) => return Some(why),
        }
    }
    why_named_by_closed(target, unit, &closed).await
}

/// The properties by which a unit names others that it comes after or depends on.
const NAMING: &str =
    "Id,LoadState,NeedDaemonReload,After,Requires,Requisite,BindsTo,Upholds,Conflicts,JoinsNamespaceOf";

/// The reason why one of these files or directories, which only root may read, may name this unit. systemd, which has read them,
/// tells what their units name.
async fn why_named_by_closed(target: &Target, unit: &str, closed: &[String]) -> Option<String> {
    let parts: Option<Vec<Option<&str>>> = closed.iter().map(|path| unit_of_part(path)).collect();
    let Some(parts) = parts else { return Some(UNSEARCHED.to_owned()) };
    let units: BTreeSet<&str> = parts.into_iter().flatten().collect();
    if units.is_empty() {
        return None;
    }
    let units: Vec<&str> = units.into_iter().collect();
    let Some(shown) = show(target, NAMING, &units).await else { return Some(UNSEARCHED.to_owned()) };
    let blocks: Vec<&str> = shown.trim().split("\n\n").collect();
    if blocks.len() != units.len() {
        return Some(UNSEARCHED.to_owned());
    }
    let is_it = |name: &str| match unit.split_once("@.") {
        Some((prefix, kind)) => {
            let instance = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('@'));
            instance.and_then(|instance| instance.strip_suffix(kind)).is_some_and(|rest| rest.ends_with('.'))
        }
        None => name == unit,
    };
    for (closed, block) in units.into_iter().zip(blocks) {
        // Only systemd from 249 on knows this property.
        let mut properties = BTreeMap::from([("Upholds", "")]);
        properties.extend(block.lines().filter_map(|line| line.split_once('=')));
        // Otherwise systemd hasn't read what lies there now.
        let is_read = properties.get("LoadState") == Some(&"loaded")
            && properties.get("NeedDaemonReload") == Some(&"no");
        let named = NAMING.split(',').skip(3).map(|property| properties.get(property).copied());
        let named: Option<Vec<&str>> = named.collect();
        let Some(named) = named.filter(|_| is_read) else { return Some(UNSEARCHED.to_owned()) };
        if named.iter().flat_map(|names| names.split_whitespace()).any(is_it) {
            return Some(format!("{closed} names it"));
        }
    }
    None
}

/// The unit that a file or directory is a part of: its file, its drop-ins or its links. None where it may be a part of many, and
/// none within where it only has other units start.
fn unit_of_part(path: &str) -> Option<Option<&str>> {
    let below = PLACES.iter().find_map(|place| path.strip_prefix(place)?.strip_prefix('/'))?;
    let first = below.split('/').next()?;
    let unit = match first.rsplit_once('.')? {
        (_, "wants") => return Some(None),
        (unit, "d" | "requires" | "upholds") => unit,
        _ if first == below => first,
        _ => return None,
    };
    let (stem, kind) = unit.rsplit_once('.')?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || br":-_.\@".contains(&byte);
    // A stem that ends in a dash stands for all units whose names begin so.
    let is_one = !stem.ends_with(['-', '@']) && unit.bytes().all(is_plain) && !unit.starts_with('-');
    (is_one && KINDS.contains(&kind)).then_some(Some(unit))
}

/// The kinds of units.
pub(super) const KINDS: [&str; 11] = [
    "service",
    "socket",
    "timer",
    "path",
    "target",
    "mount",
    "automount",
    "swap",
    "slice",
    "scope",
    "device",
];

/// The pattern of a line with which a unit file names this unit, or an instance of this template. Such a line may go on in
/// the next one, which then has no sign of equality.
fn naming_line(unit: &str) -> String {
    let escaped = unit.replace('\\', r"\\").replace('.', r"\.").replace('+', r"\+");
    let escaped = if is_template(unit) { escaped.replacen('@', "@[^[:space:]]*", 1) } else { escaped };
    format!(
        "^([[:space:]]*(After|Requires|Requisite|BindsTo|Conflicts|JoinsNamespaceOf)[[:space:]]*=(.*[[:space:]])?|[^=#;]*[[:space:]]|){escaped}\
         ([[:space:]\\\\]|$)"
    )
}

const UNSEARCHED: &str = "the target doesn't let its unit files be searched";

/// The paths that a search couldn't read for lack of rights. The exit code is `nothing` where nothing matches, and another one
/// where something couldn't be read: only directories that aren't there don't matter. An error is the reason why the
/// unit may be named.
fn named_by(output: &Output, nothing: i32) -> Result<Vec<String>, String> {
    if let Some(file) = String::from_utf8_lossy(&output.stdout).lines().next() {
        return Err(format!("{file} names it"));
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.exit_code {
        code if code == nothing => return Ok(Vec::new()),
        1 | 2 if !output.truncated && !said.is_empty() => {}
        _ => return Err(UNSEARCHED.to_owned()),
    }
    let is_absent = |line: &&str| line.ends_with(": No such file or directory");
    // find(1) puts the path into quotes.
    let closed = |line: &str| {
        let (_, path) = line.strip_suffix(": Permission denied")?.split_once(": ")?;
        Some(path.trim_matches(['\'', '‘', '’']).to_owned())
    };
    let closed: Option<Vec<String>> = said.lines().filter(|line| !is_absent(line)).map(closed).collect();
    closed.ok_or_else(|| UNSEARCHED.to_owned())
}

/// The reason why a unit may not have to wait for a new one. None for a unit of the administrator's own that comes last at
/// the start, since waiting then makes no cycle, and nothing of the system waits along.
pub async fn why_not_delayed(target: &Target, unit: &str) -> Option<String> {
    let (own, before) = match (value(target, "FragmentPath", unit).await, value(target, "Before", unit).await)
    {
        (Some(own), Some(before)) => (own, before),
        _ => return Some("the target doesn't say what it is".to_owned()),
    };
    if !own.trim().starts_with("/etc/systemd/system/") {
        return Some("it is none of the administrator's own".to_owned());
    }
    if let Some(other) = before.split_whitespace().find(|name| !LAST.contains(name)) {
        return Some(format!("{other} waits for it"));
    }
    why_named(target, unit).await
}

/// The units that the administrator's own services come before.
const LAST: [&str; 4] = ["multi-user.target", "graphical.target", "default.target", "shutdown.target"];

/// The targets for which nobody waits, besides [`LAST`].
const LATE: [&str; 2] = ["timers.target", "umount.target"];

/// Whether nothing that people need comes after this unit: the start of the machine reaches it last, or only its end does.
pub fn is_late(unit: &str) -> bool {
    LAST.contains(&unit) || LATE.contains(&unit)
}

/// The number of steps from a unit to the units that come after it, to those that come after them, and so on.
const LONGEST_CHAIN: usize = 16;

/// The reason why a unit may not have to wait for what starts it when a time or an event comes. None where nothing that
/// comes after the unit is what the trigger itself waits for, since that would make a cycle. systemd would break it by not
/// starting one of the units.
pub async fn why_not_triggered(target: &Target, unit: &str) -> Option<String> {
    why_early(target, &[unit]).await
}

/// The reason why one of these units may belong to the start of the machine: a target that is reached before timers and paths
/// come after it, directly or by others between.
async fn why_early(target: &Target, units: &[&str]) -> Option<String> {
    match first_after(target, units, &is_early).await {
        Ok(early) => early.map(|early| format!("{early} comes after {}", units.join(", "))),
        Err(why) => Some(why),
    }
}

/// Whether timers and paths wait for this target.
pub fn is_early(unit: &str) -> bool {
    BEFORE_TRIGGERS.contains(&unit)
}

/// The first unit that counts among those that come after these, directly or by others between. What comes after a late target
/// is left out. An error where the target doesn't say, or where the chain is too long.
pub async fn first_after(
    target: &Target,
    units: &[&str],
    counts: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Option<String>, String> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<String> = units.iter().map(|unit| (*unit).to_owned()).collect();
    for _ in 0..LONGEST_CHAIN {
        if next.is_empty() {
            return Ok(None);
        }
        let names: Vec<&str> = next.iter().map(String::as_str).collect();
        let Some(after) = values(target, "Before", &names).await else {
            return Err(format!("the target doesn't say what comes after {}", units.join(", ")));
        };
        let is_new = |name: &&str| !is_late(name) && seen.insert((*name).to_owned());
        let after = after.iter().flat_map(|names| names.split_whitespace());
        next = after.filter(is_new).map(str::to_owned).collect();
        if let Some(found) = next.iter().find(|name| counts(name)) {
            return Ok(Some(found.clone()));
        }
    }
    Err(format!("too much comes after {}", units.join(", ")))
}

/// The reason why another unit's start may not stop one of these. None where a person could stop each of them by name, and
/// none belongs to the start of the machine.
pub async fn why_not_stopped(target: &Target, units: &[&str]) -> Option<String> {
    if units.is_empty() {
        return None;
    }
    let Some(refuses) = values(target, "RefuseManualStop", units).await else {
        return Some(format!("the target doesn't say what {} is for", units.join(", ")));
    };
    match refuses.iter().all(|refuses| refuses == "no") {
        true => why_early(target, units).await,
        false => Some(format!("no command may stop one of {}", units.join(", "))),
    }
}

/// The uses of the instance's name in the template of an instance, together with its drop-ins. None where the target doesn't
/// answer, or has no such template.
pub async fn instance_uses(target: &Target, instance: &str) -> Option<Vec<InstanceUse>> {
    let fragment = value(target, "FragmentPath", instance).await?;
    let fragment = fragment.trim();
    if !fragment.starts_with('/') {
        return None;
    }
    let drop_ins = drop_ins(target, instance).await.ok()?;
    let drop_ins: Vec<Vec<u8>> = drop_ins.into_iter().map(|(_, text)| text).collect();
    let access = Access { privilege: Privilege::Caller, verbs: Vec::new() };
    let request = ReadRequest { path: fragment.to_owned(), offset: 0, max_bytes: LARGEST };
    let texts = target.read_all(vec![request], &access, Arc::new(|_, _| Ok(()))).await;
    let text = texts.into_iter().next()?.ok()?;
    text::instance_uses(fragment, &text, &drop_ins)
}

/// The text of the files of each of these units, its drop-ins last. None for a unit whose files the target doesn't show.
pub async fn texts(target: &Target, units: &[&str]) -> Vec<Option<Vec<u8>>> {
    let shown: Vec<Command> =
        units.iter().map(|unit| query("systemctl", ["cat", "--no-pager", "--", unit])).collect();
    let mut answers = target.run_all(&shown).await.into_iter();
    let mut text = || {
        let output = answers.next()?.ok()?;
        (output.exit_code == 0 && !output.truncated).then_some(output.stdout)
    };
    units.iter().map(|_| text()).collect()
}

/// The answer of systemd about units that a text names.
#[derive(Debug, Default, PartialEq)]
pub struct NamedUnits {
    /// The given names, and the units' own names where those are aliases.
    pub names: BTreeSet<String>,
    /// Whether one of the units has a file.
    pub is_one_there: bool,
}

impl NamedUnits {
    /// Units about which only their names are known.
    pub fn by_name_alone(units: &[&str]) -> Self {
        Self { names: units.iter().map(|unit| (*unit).to_owned()).collect(), ..Self::default() }
    }
}

/// Asks systemd about these units. None where it doesn't answer, and it answers for none of them where one has no valid
/// name.
pub async fn named(target: &Target, units: &[&str]) -> Option<NamedUnits> {
    if units.is_empty() {
        return Some(NamedUnits::default());
    }
    let shown = show(target, "Id,FragmentPath", units).await?;
    read_named(&shown, units)
}

fn read_named(shown: &str, units: &[&str]) -> Option<NamedUnits> {
    let mut named = NamedUnits::by_name_alone(units);
    for line in shown.lines().filter(|line| !line.is_empty()) {
        let (property, value) = line.split_once('=')?;
        match property {
            "Id" => named.names.extend([value.to_owned()]),
            "FragmentPath" => named.is_one_there |= !value.is_empty(),
            _ => return None,
        }
    }
    // Two aliases of one unit have one answer each.
    let is_complete = shown.lines().filter(|line| line.starts_with("Id=")).count() >= units.len();
    is_complete.then_some(named)
}

/// The kernel's tables of sockets, see proc(5).
const SOCKETS: [&str; 4] = ["/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"];

/// The reason why one of these ports may be taken: the first on which a program listens now, or a table that can't be read
/// to its end. None where all of them are free.
pub async fn taken(target: &Target, ports: &[u16]) -> Option<String> {
    if ports.is_empty() {
        return None;
    }
    let access = Access { privilege: Privilege::Caller, verbs: Vec::new() };
    let request = |path: &str| ReadRequest { path: path.to_owned(), offset: 0, max_bytes: LARGEST };
    let tables = target.read_all(SOCKETS.map(request).into(), &access, Arc::new(|_, _| Ok(()))).await;
    taken_by(tables, ports)
}

fn taken_by(tables: Vec<Result<Vec<u8>, Problem>>, ports: &[u16]) -> Option<String> {
    let mut found = Vec::new();
    for (path, table) in SOCKETS.iter().zip(tables) {
        match table {
            // A kernel without IPv6 doesn't have its tables.
            Err(problem) if problem.category == Category::NotFound && path.ends_with('6') => {}
            // A table that was cut has no whole line at its end, or the size of what is read.
            Ok(table) if table.ends_with(b"\n") && (table.len() as u64) < LARGEST => {
                found.extend(listening(&String::from_utf8_lossy(&table)));
            }
            _ => return Some(format!("a port that may be taken, since {path} can't be read to its end")),
        }
    }
    let port = ports.iter().find(|port| found.contains(port))?;
    Some(format!("port {port}, on which something else listens already"))
}

/// The local ports of the sockets in a table that listen. Their remote port is 0.
fn listening(table: &str) -> Vec<u16> {
    let of_line = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, other) = (fields.next()?, fields.next()?);
        let port = |address: &str| u16::from_str_radix(address.rsplit(':').next()?, 16).ok();
        (port(other)? == 0).then(|| port(local))?
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

/// The value of a property of a unit. None where systemd doesn't answer.
async fn value(target: &Target, property: &str, unit: &str) -> Option<String> {
    values(target, property, &[unit]).await?.pop()
}

/// The values of a property, one for each unit. None where systemd doesn't answer for each of them.
async fn values(target: &Target, property: &str, units: &[&str]) -> Option<Vec<String>> {
    let shown = show(target, property, units).await?;
    let of_line = |line: &str| Some(line.strip_prefix(property)?.strip_prefix('=')?.to_owned());
    let values: Vec<String> = shown.lines().filter_map(of_line).collect();
    (values.len() == units.len()).then_some(values)
}

/// The output of `systemctl show` for these properties: a line for each, `NAME=VALUE`, of each unit, or of systemd itself
/// where no unit is given. None where systemd doesn't answer.
pub(super) async fn show(target: &Target, properties: &str, units: &[&str]) -> Option<String> {
    let properties = format!("--property={properties}");
    let args = ["show", &properties, "--"].into_iter().chain(units.iter().copied());
    let output = target.run_all(&[query("systemctl", args)]).await.pop()?.ok()?;
    let is_whole = output.exit_code == 0 && !output.truncated;
    is_whole.then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(super) fn query<'a>(program: &str, args: impl IntoIterator<Item = &'a str>) -> Command {
    Command::new(program, args, TIMEOUT)
}

fn unanswered() -> Problem {
    Problem::new("COMMAND_FAILED", Category::Other, "systemd doesn't answer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_target::test_connection::{Fate, TestConnection};

    #[test]
    fn drop_ins_are_looked_for_where_systemd_finds_them() {
        for (unit, expected) in [
            ("a.service", &["a.service.d", "service.d"][..]),
            ("a-b-c.timer", &["a-b-c.timer.d", "a-.timer.d", "a-b-.timer.d", "timer.d"]),
            ("a@.service", &["a@.service.d", "service.d"]),
            (
                "a-b@x-y.service",
                &[
                    "a-b@x-y.service.d",
                    "a-b@.service.d",
                    "a-.service.d",
                    "a-@.service.d",
                    "a-@x-y.service.d",
                    "service.d",
                ],
            ),
            ("a-b@.service", &["a-b@.service.d", "a-.service.d", "a-@.service.d", "service.d"]),
        ] {
            assert_eq!(directories(unit), expected, "{unit}");
        }
    }

    /// The answer is from systemd 252, where `b.service` is an alias of `a.service`.
    #[test]
    fn what_systemd_says_of_units_counts_only_where_it_speaks_of_each() {
        let shown = "Id=a.service\nFragmentPath=/etc/systemd/system/a.service\n\n\
                     Id=c.service\nFragmentPath=\n";
        let named = read_named(shown, &["b.service", "c.service"]).expect("an answer");
        assert_eq!(Vec::from_iter(named.names), ["a.service", "b.service", "c.service"]);
        assert!(named.is_one_there);
        for (shown, units) in [
            (shown, &["b.service", "c.service", "d.service"][..]),
            ("", &["a.service"]),
            ("Failed to connect to bus\n", &["a.service"]),
        ] {
            assert_eq!(read_named(shown, units), None, "{shown:?}");
        }
    }

    /// The answers are from systemd 252.
    #[tokio::test]
    async fn units_of_the_start_of_the_machine_are_neither_delayed_nor_stopped() {
        let systemctl = |command: &Command| {
            let property = command.args[1].trim_start_matches("--property=");
            let said = command.args[3..].iter().map(|unit| match (property, unit.as_str()) {
                ("RefuseManualStop", "auditd.service") => "RefuseManualStop=yes\n",
                // A program in systemctl's place may answer with nothing.
                (_, "mute.service") => "",
                ("RefuseManualStop", _) => "RefuseManualStop=no\n",
                (_, "cron.service") => "Before=multi-user.target shutdown.target\n",
                (_, "multi-user.target") => "Before=graphical.target shutdown.target\n",
                (_, "systemd-journal-flush.service") => {
                    "Before=systemd-tmpfiles-setup.service shutdown.target\n"
                }
                (_, "systemd-tmpfiles-setup.service") => "Before=sysinit.target shutdown.target\n",
                // Each comes before the other, which systemd finds out when they start.
                (_, "one.service") => "Before=two.service\n",
                (_, "two.service") => "Before=one.service\n",
                _ => "Before=\n",
            });
            let code = i32::from(command.args.iter().any(|unit| unit == "endless.service"));
            Fate::Says(code, said.collect::<Vec<_>>().join("\n"))
        };
        let target = Target::over_test_connection(&TestConnection::new(systemctl));
        for (unit, is_triggered, is_stopped) in [
            ("cron.service", true, true),
            ("one.service", true, true),
            ("auditd.service", true, false),
            ("systemd-journal-flush.service", false, false),
            ("systemd-tmpfiles-setup.service", false, false),
            ("endless.service", false, false),
            ("mute.service", false, false),
        ] {
            assert_eq!(why_not_triggered(&target, unit).await.is_none(), is_triggered, "{unit}");
            assert_eq!(why_not_stopped(&target, &[unit]).await.is_none(), is_stopped, "{unit}");
        }
        assert!(why_not_stopped(&target, &["cron.service", "one.service"]).await.is_none());
        assert!(why_not_stopped(&target, &["cron.service", "mute.service"]).await.is_some());
    }

    /// The messages are from grep 3.8.
    #[test]
    fn a_search_names_the_unit_or_what_it_could_not_read() {
        let output = |exit_code, stdout: &str, stderr: &str| Output {
            exit_code,
            stdout: stdout.into(),
            stderr: stderr.into(),
            ..Output::default()
        };
        let gone = "grep: /etc/systemd/system.control: No such file or directory\n";
        let closed = "grep: /etc/systemd/system/secret.service: Permission denied\n";
        let names = |file: &str| Err(format!("{file} names it"));
        let secret = || Ok(vec!["/etc/systemd/system/secret.service".to_owned()]);
        let failed = || Err(UNSEARCHED.to_owned());
        for (output, expected) in [
            (output(1, "", ""), Ok(Vec::new())),
            (output(2, "", gone), Ok(Vec::new())),
            (output(0, "/etc/systemd/system/a.service\n", ""), names("/etc/systemd/system/a.service")),
            (output(2, "/run/systemd/system/a.timer\n", gone), names("/run/systemd/system/a.timer")),
            (output(2, "", closed), secret()),
            (output(2, "", &(gone.to_owned() + closed)), secret()),
            (output(2, "", "grep: /etc/systemd/system/a: Input/output error\n"), failed()),
            (output(137, "", ""), failed()),
            (Output { truncated: true, ..output(2, "", gone) }, failed()),
        ] {
            assert_eq!(named_by(&output, 1), expected, "{output:?}");
        }
        // find(1) ends with 0 where nothing matches, and with 1 where it couldn't read something.
        let gone = "find: '/etc/systemd/system.control': No such file or directory\n";
        let closed = "find: ‘/etc/systemd/system/secret.service’: Permission denied\n";
        for (output, expected) in [
            (output(0, "", ""), Ok(Vec::new())),
            (output(1, "", gone), Ok(Vec::new())),
            (output(1, "", closed), secret()),
            (output(1, "", ""), failed()),
            (output(0, "/etc/systemd/system/a.requires/b\n", ""), names("/etc/systemd/system/a.requires/b")),
        ] {
            assert_eq!(named_by(&output, 0), expected, "{output:?}");
        }
    }

    #[test]
    fn a_closed_file_or_directory_is_a_part_of_one_unit_or_may_be_of_many() {
        for (path, expected) in [
            ("/etc/systemd/system/a.service", Some(Some("a.service"))),
            (r"/usr/lib/systemd/system/a\x2db@c.timer", Some(Some(r"a\x2db@c.timer"))),
            ("/etc/systemd/system/a.service.d", Some(Some("a.service"))),
            ("/etc/systemd/system/a.service.d/x.conf", Some(Some("a.service"))),
            ("/etc/systemd/system/a.target.requires", Some(Some("a.target"))),
            ("/etc/systemd/system/a.target.wants", Some(None)),
            ("/etc/systemd/system/a.target.wants/b.service", Some(None)),
            ("/etc/systemd/system", None),
            ("/etc/systemd/system/a@.service", None),
            ("/etc/systemd/system/a@.service.d", None),
            ("/etc/systemd/system/a-.service.d", None),
            ("/etc/systemd/system/service.d", None),
            ("/etc/systemd/system/directory/a.service", None),
            ("/etc/systemd/system/a.txt", None),
            ("/etc/systemd/system/-a.service", None),
            ("/etc/systemd/system/a b.service", None),
            ("/srv/a.service", None),
        ] {
            assert_eq!(unit_of_part(path), expected, "{path}");
        }
    }

    #[tokio::test]
    async fn systemd_tells_what_units_name_that_only_root_may_read() {
        let systemctl = |command: &Command| {
            let of = |unit: &str| match unit {
                "a.service" => "loaded no new.service",
                "instance.service" => "loaded no basic.target new@1.service",
                "old.service" => "loaded yes ",
                "broken.service" => "bad-setting no ",
                _ => "loaded no basic.target new.service.mount new@.x",
            };
            let shown = command.args[3..].iter().map(|unit| {
                let (state, rest) = of(unit).split_once(' ').unwrap();
                let (reload, after) = rest.split_once(' ').unwrap();
                let none = ["Requires", "Requisite", "BindsTo", "Conflicts", "JoinsNamespaceOf"];
                let none: String = none.iter().map(|name| format!("{name}=\n")).collect();
                format!("Id={unit}\nLoadState={state}\nNeedDaemonReload={reload}\nAfter={after}\n{none}")
            });
            Fate::Says(0, shown.collect::<Vec<_>>().join("\n"))
        };
        let target = Target::over_test_connection(&TestConnection::new(systemctl));
        for (unit, closed, asks) in [
            ("new.service", &["b.service", "c.service.d"][..], false),
            ("new.service", &["a.service", "b.service"], true),
            ("new.service", &["instance.service"], false),
            ("new@.service", &["instance.service"], true),
            ("new@.service", &["a.service"], false),
            ("new.service", &["old.service"], true),
            ("new.service", &["broken.service"], true),
            ("new.service", &["b@.service"], true),
            ("new.service", &["b.target.wants"], false),
        ] {
            let closed: Vec<String> =
                closed.iter().map(|name| format!("/etc/systemd/system/{name}")).collect();
            let why = why_named_by_closed(&target, unit, &closed).await;
            assert_eq!(why.is_some(), asks, "{unit} {closed:?}: {why:?}");
        }
        let silent = Target::over_test_connection(&TestConnection::new(|_| Fate::NeverComes));
        let closed = ["/etc/systemd/system/b.service".to_owned()];
        assert!(why_named_by_closed(&silent, "new.service", &closed).await.is_some());
    }

    #[test]
    fn unit_files_name_a_unit_or_an_instance_of_a_template() {
        for (unit, line, is_named) in [
            ("a.service", "After=a.service", true),
            ("a.service", "  Requires = b.service a.service", true),
            ("a.service", "After=a-service", false),
            ("a.service", "After=a.service.mount", false),
            ("a.service", "Before=a.service", false),
            ("a.service", "Conflicts=a.service", true),
            ("a.service", "  a.service \\", true),
            ("a.service", "a.service", true),
            ("a.service", "b.service a.service\\", true),
            ("a.service", "After=b.service a.service\\", true),
            ("a.service", "# Requires a.service", false),
            ("a.service", "Description=for a.service", false),
            ("a@.service", "BindsTo=a@one.service", true),
            ("a@.service", "After=b@one.service", false),
            ("a@one.service", "After=a@two.service", false),
            (r"a\x2db.service", r"After=a\x2db.service", true),
        ] {
            let mut grep = std::process::Command::new("grep")
                .args(["-E", "-e", &naming_line(unit)])
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            std::io::Write::write_all(&mut grep.stdin.take().unwrap(), line.as_bytes()).unwrap();
            assert_eq!(grep.wait().unwrap().success(), is_named, "{unit} {line}");
        }
    }

    #[tokio::test]
    async fn without_an_answer_from_systemd_nothing_is_certain() {
        for silent in
            [TestConnection::new(|_| Fate::NeverComes), TestConnection::new(|_| Fate::Says(0, String::new()))]
        {
            nothing_is_certain(&Target::over_test_connection(&silent)).await;
        }
    }

    async fn nothing_is_certain(target: &Target) {
        assert!(drop_ins(target, "a.service").await.is_err());
        assert!(drop_ins(target, "a@.service").await.is_err());
        assert!(why_awaited(target, "a.service").await.is_some());
        assert!(why_not_delayed(target, "a.service").await.is_some());
        assert!(instance_uses(target, "a@b.service").await.is_none());
        assert!(named(target, &["a.service"]).await.is_none());
        assert!(why_not_triggered(target, "a.service").await.is_some());
        assert!(why_not_stopped(target, &["a.service"]).await.is_some());
        assert!(why_not_stopped(target, &[]).await.is_none());
        assert_eq!(named(target, &[]).await, Some(NamedUnits::default()));
    }

    /// The table is from Linux 6.18.
    #[test]
    fn ports_that_are_listened_on_are_read_from_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n   \
                     1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1 0 100 0 0 10 0\n   \
                     2: 0100007F:0016 0100007F:D4C2 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 20 4 30 10 -1\n";
        assert_eq!(listening(table), [22, 8080]);
        assert!(listening("").is_empty() && listening("x\ny z\n").is_empty());
    }

    #[test]
    fn ports_count_as_taken_where_the_kernels_table_is_missing_or_cut() {
        let head = b"  sl  local_address rem_address\n".to_vec();
        let line = b"   0: 00000000:1F90 00000000:0000 0A\n";
        let gone = || Err(Problem::new("FILE_NOT_FOUND", Category::NotFound, "no such file"));
        let whole = || Ok(head.clone());
        let listens = || Ok([&head[..], line].concat());
        let long = || Ok(line.repeat((LARGEST as usize).div_ceil(line.len())));
        let cut = || Ok([&head[..], b"   0: 0000"].concat());
        for (tables, is_taken) in [
            (vec![whole(), whole(), whole(), whole()], false),
            (vec![whole(), gone(), whole(), gone()], false),
            (vec![listens(), gone(), whole(), gone()], true),
            (vec![whole(), whole(), whole(), listens()], true),
            (vec![gone(), whole(), whole(), whole()], true),
            (vec![long(), whole(), whole(), whole()], true),
            (vec![whole(), cut(), whole(), whole()], true),
        ] {
            assert_eq!(taken_by(tables, &[8080]).is_some(), is_taken);
        }
        assert!(taken_by(vec![listens(), gone(), whole(), gone()], &[8081]).is_none());
    }

    #[test]
    fn a_unit_is_what_lies_where_systemd_looks() {
        for (path, unit) in [
            ("/etc/systemd/system/a.service", Some("a.service")),
            ("/run/systemd/system/a.b.timer", Some("a.b.timer")),
            ("/etc/systemd/system/a.service.d/x.conf", None),
            ("/etc/systemd/user/a.service", None),
            ("/etc/systemd/system/a", None),
            ("/srv/a.service", None),
        ] {
            assert_eq!(unit_at(path), unit, "{path}");
        }
        for (path, timer) in [
            ("/etc/systemd/system/a.timer", Some("a.timer")),
            ("/etc/systemd/system/a.timer.d/x.conf", Some("a.timer")),
            ("/etc/systemd/system/a.service", None),
            ("/etc/systemd/system/a.timer.d/b/x.conf", None),
            ("/srv/a.timer", None),
        ] {
            assert_eq!(timer_at(path), timer, "{path}");
        }
    }
}
