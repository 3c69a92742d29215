//! Asks the target about units: what systemd reads together with a unit file, and which units depend on it. The text of
//! a unit file alone doesn't tell which rights its programs get.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use host_base::problem::{Category, Problem};
use host_base::{Command, Keep, Privilege};
use host_capability::Access;
use host_policy::text::{self, InstanceUse};
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

/// The drop-ins of a unit with their paths, in the order in which systemd reads them.
pub async fn drop_ins(target: &Target, unit: &str) -> Result<Vec<(String, Vec<u8>)>, Problem> {
    let access = Access { privilege: Privilege::Caller, verbs: Vec::new() };
    let all: Arc<PathCheck> = Arc::new(|_, _| Ok(()));
    // A unit's aliases have drop-ins of their own.
    let mut names: Vec<String> = Vec::new();
    let mut kinds = Vec::new();
    let others = show(target, "Names", &[unit]).await.unwrap_or_default();
    for name in std::iter::once(unit).chain(others.split_whitespace()) {
        let mut of_name = directories(name);
        kinds.extend(of_name.pop());
        names.extend(of_name);
    }
    // The environment of systemd can add directories.
    let mut places: Vec<String> = PLACES.map(str::to_owned).into();
    let more = show(target, "UnitPath", &[]).await.unwrap_or_default();
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

/// The units that wait for a unit of this name, or don't run without it. Empty where systemd doesn't answer.
pub async fn waiting_for(target: &Target, unit: &str) -> Vec<String> {
    let shown = show(target, "Before,RequiredBy,RequisiteOf,BoundBy,UpheldBy", &[unit]).await;
    let said = shown.unwrap_or_default();
    said.split_whitespace().filter(|name| *name != "shutdown.target").map(str::to_owned).collect()
}

/// A unit file that names this unit among those that it comes after or depends on. systemd shows that only of units that are
/// loaded.
pub async fn named_in_file(target: &Target, unit: &str) -> Option<String> {
    let escaped = unit.replace('\\', r"\\").replace('.', r"\.").replace('+', r"\+");
    let pattern = format!(
        "^[[:space:]]*(After|Requires|Requisite|BindsTo)[[:space:]]*=(.*[[:space:]])?{escaped}([[:space:]]|$)"
    );
    let args = ["-rlsE", "-e", &pattern, "--"].into_iter().chain(SEARCHED);
    let command = Command {
        program: "grep".to_owned(),
        args: args.map(str::to_owned).collect(),
        env: Vec::new(),
        stdin: None,
        privilege: Privilege::Caller,
        timeout: TIMEOUT,
        keep: Keep::Head,
        output_buffer: None,
    };
    match target.run_all(&[command]).await.pop() {
        // Exit code 2 of grep(1): one of the directories isn't there.
        Some(Ok(output)) if output.exit_code <= 2 => {
            String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
        }
        _ => Some("the target doesn't let its unit files be searched".to_owned()),
    }
}

/// The directories with unit files, in which units of a package or of the administrator may name others.
const SEARCHED: [&str; 4] =
    ["/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];

/// The reason why a unit may not have to wait for a new one. None for a unit of the administrator's own that comes last at
/// the start, since waiting then makes no cycle, and nothing of the system waits along.
pub async fn why_not_delayed(target: &Target, unit: &str) -> Option<String> {
    let (own, before) =
        match (show(target, "FragmentPath", &[unit]).await, show(target, "Before", &[unit]).await) {
            (Some(own), Some(before)) => (own, before),
            _ => return Some("the target doesn't say what it is".to_owned()),
        };
    if !own.trim().starts_with("/etc/systemd/system/") {
        return Some("it is none of the administrator's own".to_owned());
    }
    if let Some(other) = before.split_whitespace().find(|name| !LAST.contains(name)) {
        return Some(format!("{other} waits for it"));
    }
    named_in_file(target, unit).await.map(|file| format!("others wait for it ({file})"))
}

/// What the administrator's own services come before.
const LAST: [&str; 4] = ["multi-user.target", "graphical.target", "default.target", "shutdown.target"];

/// The uses of the instance's name in the template of an instance, together with its drop-ins. None where the target doesn't
/// answer, or has no such template.
pub async fn instance_uses(target: &Target, instance: &str) -> Option<Vec<InstanceUse>> {
    let fragment = show(target, "FragmentPath", &[instance]).await?;
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

/// Whether systemd answers for these names. It answers for none of them where one is no valid unit name.
pub async fn are_answered_for(target: &Target, units: &[&str]) -> bool {
    units.is_empty() || show(target, "Id", units).await.is_some()
}

/// The units' own names instead of aliases. Where systemd doesn't answer, the given names.
pub async fn named(target: &Target, units: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = units.iter().map(|unit| (*unit).to_owned()).collect();
    if units.is_empty() {
        return names;
    }
    if let Some(said) = show(target, "Id", units).await {
        names.extend(said.split_whitespace().map(str::to_owned));
    }
    names.sort();
    names.dedup();
    names
}

/// The units that stop when these start.
pub async fn stopped_by(target: &Target, units: &[&str]) -> Vec<String> {
    if units.is_empty() {
        return Vec::new();
    }
    let said = show(target, "Conflicts,ConflictedBy", units).await.unwrap_or_default();
    said.split_whitespace().filter(|name| *name != "shutdown.target").map(str::to_owned).collect()
}

/// Whether one of the units exists.
pub async fn is_one_there(target: &Target, units: &[&str]) -> bool {
    if units.is_empty() {
        return false;
    }
    let said = show(target, "FragmentPath", units).await.unwrap_or_default();
    !said.trim().is_empty()
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

/// The values of properties as `systemctl show` prints them.
async fn show(target: &Target, properties: &str, units: &[&str]) -> Option<String> {
    let property = format!("--property={properties}");
    let args = ["show", "--value", &property, "--"].into_iter().chain(units.iter().copied());
    let command = Command {
        program: "systemctl".to_owned(),
        args: args.map(str::to_owned).collect(),
        env: Vec::new(),
        stdin: None,
        privilege: Privilege::Caller,
        timeout: TIMEOUT,
        keep: Keep::Head,
        output_buffer: None,
    };
    let output = target.run_all(&[command]).await.pop()?.ok()?;
    (output.exit_code == 0).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
