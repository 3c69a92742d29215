//! The search for files that give rights, on one file system after the other.
//!
//! File systems of the network and of the kernel are left out, and those that are mounted with `nosuid`, where such a
//! file gives nothing. A search that takes too long ends with what it has found.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::mounts::{Mount, MountTable};
use linux_sysadmin_sdk::{DurationCategory, OutputStream, Privilege, prelude::*, text};

/// Prints mode, owner, group, device, inode and path of files with setuid or setgid. The hole takes the mount point as
/// a text: a path would be refused to root where an account may write above it.
const SUID: CommandLine =
    CommandLine::new("find <text> -xdev -type f -perm /6000 -printf '%m %U %G %D:%i %p\\0'");

/// Prints the capabilities of programs.
const CAPABILITIES: CommandLine =
    CommandLine::new("find <text> -xdev -type f -perm /111 -exec getcap -- '{}' +");

/// The time for all file systems together, in seconds.
const MOST_SECONDS: f64 = 90.0;
/// The most bytes that are read at once.
const PIECE: u32 = 64 << 10;
/// The most files that are looked at.
const MOST_FILES: usize = 2000;

pub(super) fn grants() -> [CommandGrant; 2] {
    [
        SUID.read("which files are setuid or setgid").as_root_if_available(),
        CAPABILITIES.read("which programs have capabilities").as_root_if_available(),
    ]
}

/// A file that gives its caller other rights.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Privileged {
    pub(super) path: String,
    /// The permission bits; 0 where only the capabilities are known.
    mode: u32,
    uid: u32,
    gid: u32,
    /// As getcap writes them: `cap_net_raw=ep`.
    pub(super) capabilities: Option<String>,
}

impl Privileged {
    /// Reads what [`SUID`] prints of a file, and where the file is: its device and inode.
    fn parse(entry: &str) -> Option<(Self, &str)> {
        let [mode, uid, gid, place, path] = entry.splitn(5, ' ').collect::<Vec<_>>()[..] else { return None };
        let mode = u32::from_str_radix(mode, 8).ok()?;
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        Some((Self { path: path.to_owned(), mode, uid, gid, capabilities: None }, place))
    }

    /// Reads a line of getcap, `/usr/bin/ping cap_net_raw=ep`. Before libcap 2.41 it had ` = ` between the two.
    fn of_getcap(line: &str) -> Option<Self> {
        let line = line.replace(" = ", " ");
        let (path, capabilities) = line.rsplit_once(' ')?;
        let is_it = path.starts_with('/') && capabilities.contains(['=', '+']);
        let capabilities = Some(capabilities.to_owned());
        is_it.then(|| Self { path: path.to_owned(), mode: 0, uid: 0, gid: 0, capabilities })
    }

    /// The rights that the file gives, in words.
    pub(super) fn rights(&self) -> String {
        if let Some(capabilities) = &self.capabilities {
            return text::excerpt(capabilities, 200);
        }
        let root = |number: u32| if number == 0 { "root".to_owned() } else { number.to_string() };
        let setuid = (self.mode & 0o4000 != 0).then(|| format!("setuid {}", root(self.uid)));
        let setgid = (self.mode & 0o2000 != 0).then(|| format!("setgid {}", root(self.gid)));
        let both: Vec<_> = setuid.into_iter().chain(setgid).collect();
        both.join(", ")
    }

    pub(super) fn is_writable(&self) -> bool {
        self.mode & 0o002 != 0 || self.mode & 0o020 != 0 && self.gid != 0
    }
}

/// A search that has begun: what [`SUID`] finds on the first file system is collected while other commands run.
pub(crate) struct Search {
    points: Vec<String>,
    has_hidden: bool,
    first: Option<Result<OutputStream>>,
}

impl Search {
    pub(super) fn begin(cx: &Context) -> Result<Self> {
        let table = MountTable::read(cx)?;
        let points = mounts(&table).into_iter().map(|mount| mount.point.clone());
        let (hidden, points): (Vec<String>, Vec<String>) = points.partition(|point| text::has_hidden(point));
        let first = points.first().map(|point| cx.open(suid_command(point)));
        Ok(Self { points, has_hidden: !hidden.is_empty(), first })
    }

    /// The commands that don't wait for the search.
    pub(crate) fn ahead(&self) -> Vec<Command> {
        self.points.iter().map(|point| bounded(CAPABILITIES.with([point]))).collect()
    }

    /// All such files of the machine's own file systems. What couldn't be searched is added to `unseen`.
    pub(super) fn finish(mut self, cx: &Context, unseen: &mut Vec<String>) -> Result<Vec<Privileged>> {
        if self.has_hidden {
            unseen.push("a file system whose mount point has characters that can't be seen".to_owned());
        }
        let mut capable: BTreeMap<String, Privileged> = BTreeMap::new();
        for (point, said) in self.points.iter().zip(cx.run_all(self.ahead())) {
            capabilities(point, said, &mut capable, unseen);
        }
        // A bind mount shows the same files again.
        let mut by_place: BTreeMap<String, Privileged> = BTreeMap::new();
        let end = cx.monotonic() + MOST_SECONDS;
        for point in &self.points {
            if cx.monotonic() > end || by_place.len() > MOST_FILES {
                unseen.push(format!("the file system {point}: the search took too long"));
                continue;
            }
            let stream = self.first.take().unwrap_or_else(|| cx.open(suid_command(point)))?;
            suid(point, stream, end, &mut by_place, unseen, cx)?;
        }
        if cx.account()? != "root" && !cx.distro().sudo_available {
            unseen.push("directories that only root may read".to_owned());
        }
        unseen.dedup();
        let mut files: Vec<_> = by_place.into_values().chain(capable.into_values()).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }
}

fn suid_command(point: &str) -> Command {
    bounded(SUID.with([point]))
}

/// The command with root's rights where they are available, and a limit of its time.
fn bounded(command: Command) -> Command {
    command.privilege(Privilege::RootIfAvailable).duration(DurationCategory::Normal)
}

/// The mounts that are searched, each directory of a file system once.
fn mounts(table: &MountTable) -> Vec<&Mount> {
    let mut found: Vec<&Mount> = Vec::new();
    let is_nosuid = |mount: &Mount| mount.options.split(',').any(|option| option == "nosuid");
    for mount in table.visible().filter(|mount| mount.is_real() && !mount.may_hang() && !is_nosuid(mount)) {
        if !found.iter().any(|known| known.device == mount.device && known.root == mount.root) {
            found.push(mount);
        }
    }
    found
}

fn suid(
    point: &str,
    mut stream: OutputStream,
    end: f64,
    found: &mut BTreeMap<String, Privileged>,
    unseen: &mut Vec<String>,
    cx: &Context,
) -> Result<()> {
    let mut rest: Vec<u8> = Vec::new();
    let mut is_odd = false;
    loop {
        let piece = match stream.read(PIECE) {
            Ok(piece) if cx.monotonic() <= end => piece,
            Ok(piece) if piece.is_empty() => piece,
            Err(problem) if problem.code != "COMMAND_TIMEOUT" => return Err(problem),
            _ => {
                unseen.push(format!("the rest of the file system {point}: the search took too long"));
                return Ok(());
            }
        };
        // The end, or what no path is as long as.
        if piece.is_empty() || rest.len() > PIECE as usize {
            if is_odd || !rest.is_empty() {
                unseen.push(format!("what find printed of {point} in another form than expected"));
            }
            return Ok(());
        }
        rest.extend(piece);
        while let Some(at) = rest.iter().position(|byte| *byte == 0) {
            let entry: Vec<u8> = rest.drain(..=at).collect();
            let entry = String::from_utf8_lossy(&entry[..at]).into_owned();
            match Privileged::parse(&entry) {
                Some((file, place)) => {
                    found.entry(place.to_owned()).or_insert(file);
                }
                None => is_odd = true,
            }
        }
    }
}

fn capabilities(
    point: &str,
    said: Result<Output>,
    found: &mut BTreeMap<String, Privileged>,
    unseen: &mut Vec<String>,
) {
    match said {
        Ok(output) => {
            let mut is_odd = output.truncated;
            for line in output.text().lines() {
                match Privileged::of_getcap(line) {
                    Some(file) => drop(found.insert(file.path.clone(), file)),
                    None => is_odd = true,
                }
            }
            if is_odd {
                unseen.push(format!("what getcap printed of {point} in another form than expected"));
            }
            // find says the same of a file that has vanished meanwhile.
            let quoted = ["'getcap'", "‘getcap’"];
            let is_missing = |line: &str| {
                line.contains("No such file") && quoted.iter().any(|program| line.contains(program))
            };
            if output.error_text().lines().any(is_missing) {
                unseen.push("capabilities of files: the target has no getcap".to_owned());
            }
        }
        Err(problem) => {
            unseen.push(format!("capabilities of files on {point}: {}", text::of_line(&problem.message)));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_the_network_and_without_suid_are_left_out() {
        let table = MountTable::parse(
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:21 / /proc rw - proc proc rw\n\
             24 22 0:22 / /tmp rw,nosuid,nodev - tmpfs tmpfs rw\n25 22 0:50 / /mnt/nfs rw - nfs4 nas:/export rw\n\
             26 22 0:40 /@home /home rw - btrfs /dev/sdb rw\n27 22 0:40 /@srv /srv rw - btrfs /dev/sdb rw\n\
             28 22 8:1 / /again rw - ext4 /dev/sda1 rw\n29 22 0:60 / /var/lib/docker/x/merged rw - overlay overlay rw\n",
        );
        let points: Vec<_> = mounts(&table).into_iter().map(|mount| mount.point.as_str()).collect();
        assert_eq!(points, ["/", "/home", "/srv"]);
    }

    #[test]
    fn what_getcap_prints_is_a_path_and_capabilities_in_either_form() {
        let of = |line: &str| Privileged::of_getcap(line).map(|file| (file.path, file.capabilities.unwrap()));
        let ping = Some(("/bin/a b".to_owned(), "cap_net_raw+ep".to_owned()));
        assert_eq!(of("/bin/a b = cap_net_raw+ep"), ping);
        assert_eq!(of("/bin/a b cap_net_raw+ep"), ping);
        for line in ["", "Failed to get capabilities of file", "x cap_net_raw=ep", "/bin/x"] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn a_file_says_whose_rights_it_gives() {
        for (entry, rights, is_writable) in [
            ("4755 0 0 1:2 /a b", "setuid root", false),
            ("2755 0 42 1:2 /a", "setgid 42", false),
            ("6777 7 8 1:2 /a", "setuid 7, setgid 8", true),
            ("4775 0 0 1:2 /a", "setuid root", false),
            ("4775 0 5 1:2 /a", "setuid root", true),
        ] {
            let (file, place) = Privileged::parse(entry).unwrap();
            assert_eq!((file.rights().as_str(), file.is_writable(), place), (rights, is_writable, "1:2"));
        }
        for entry in ["", "4755", "x 0 0 1:2 /a", "4755 root root 1:2 /a"] {
            assert!(Privileged::parse(entry).is_none(), "{entry}");
        }
    }
}
