//! The files and directories at paths, by `stat` and `find`. They report the owner even of what the caller can't read.

use linux_sysadmin_sdk::accounts::check_user;
use linux_sysadmin_sdk::paths::READLINK;
use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

/// Paths with secrets whose permissions are often asked for. A grant has to name each of them. A glob that ends in
/// `*` names no secret, and so the files of `/etc/ssl/private` can't be among them.
const SECRETS: [&str; 14] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssl/private",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/root/.ssh/id_rsa",
    "/root/.ssh/id_ecdsa",
    "/root/.ssh/id_ed25519",
    "/home/*/.ssh/id_rsa",
    "/home/*/.ssh/id_ecdsa",
    "/home/*/.ssh/id_ed25519",
];

const FORMAT: &str = "--format=%f:%s:%U:%G:%n";
/// Prints type, mode, device and size of everything in a tree.
const FIND: CommandLine = CommandLine::new("find <path> -printf '%y %m %D %s\\n'");
/// Prints the first two bytes of a file, which are `#!` in a script.
const HEAD: CommandLine = CommandLine::new("head --bytes=2 -- <path>");

/// The host's error code for a path that another account could redirect.
const UNTRUSTED: &str = "UNTRUSTED_DIRECTORY";

/// The most files that are counted.
const MOST: u64 = 200_000;
/// The number of bytes that are read at once while counting.
const PIECE: u32 = 65_536;

/// A hole for any path, including the paths with secrets.
pub(crate) fn hole() -> String {
    let secrets: String = SECRETS.iter().map(|glob| format!("|<path:{glob}>")).collect();
    format!("(<path>{secrets})")
}

pub(crate) fn grants() -> Vec<CommandGrant> {
    let hole = hole();
    let stat = format!("stat {FORMAT} -- {hole}...");
    let looks = [
        CommandGrant::read(&stat, "whose a path is, and with which permissions; never what is in it"),
        FIND.read("how much there is in a directory that is to be changed or removed"),
        READLINK.read("where a symlink on the way leads"),
        HEAD.read("whether a file that is to be setuid is a script"),
    ];
    looks.into_iter().flat_map(for_all).collect()
}

/// The grant with root's rights, and with the rights of any other account.
pub(crate) fn for_all(grant: CommandGrant) -> [CommandGrant; 2] {
    [grant.clone().as_root_if_available(), grant.as_user("*")]
}

/// The metadata of a path by `stat`. A symlink isn't followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) path: String,
    pub(crate) kind: Kind,
    /// The permission bits, including setuid, setgid and sticky.
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) owner: String,
    pub(crate) group: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
    /// A socket, pipe or device, by its letter in `ls -l`.
    Other(char),
}

impl Kind {
    fn of(mode: u32) -> Self {
        match mode & 0o170_000 {
            0o100_000 => Self::File,
            0o040_000 => Self::Directory,
            0o120_000 => Self::Symlink,
            0o140_000 => Self::Other('s'),
            0o010_000 => Self::Other('p'),
            0o060_000 => Self::Other('b'),
            _ => Self::Other('c'),
        }
    }

    pub(crate) fn letter(self) -> char {
        match self {
            Self::File => '-',
            Self::Directory => 'd',
            Self::Symlink => 'l',
            Self::Other(letter) => letter,
        }
    }
}

impl Stat {
    fn read(line: &str) -> Option<Self> {
        let [mode, size, owner, group, path] = line.splitn(5, ':').collect::<Vec<_>>()[..] else {
            return None;
        };
        let mode = u32::from_str_radix(mode, 16).ok()?;
        let size = size.parse().ok()?;
        let [path, owner, group] = [path, owner, group].map(str::to_owned);
        Some(Self { path, kind: Kind::of(mode), mode: mode & 0o7777, size, owner, group })
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }
}

/// Runs a command with root's rights where the target allows them. The host refuses them below a directory that another
/// account may change. There the command runs as the owner of that directory, then as `nobody`, and then as the account
/// in use.
pub(crate) fn look(command: Command, cx: &Context) -> Result<Output> {
    let [output] = look_each([command], cx);
    output
}

/// [`look`] for several commands at the same time.
pub(crate) fn look_each<const N: usize>(commands: [Command; N], cx: &Context) -> [Result<Output>; N] {
    let as_root = commands.clone().map(|command| command.privilege(Privilege::RootIfAvailable));
    let mut commands = commands.into_iter();
    cx.run_each(as_root).map(|output| match (output, commands.next()) {
        (Err(problem), Some(command)) if problem.code == UNTRUSTED => as_another(&command, problem, cx),
        (output, _) => output,
    })
}

fn as_another(command: &Command, untrusted: Problem, cx: &Context) -> Result<Output> {
    let paths = command.args.iter().filter(|arg| arg.starts_with('/'));
    let path = paths.max_by_key(|path| path.len()).cloned().unwrap_or_default();
    let owner = owner_above(&path, cx)?;
    for privilege in owner.into_iter().chain([Privilege::User("nobody".to_owned()), Privilege::Caller]) {
        let output = cx.run(command.clone().privilege(privilege));
        if let Ok(output) = output
            && !output.error_text().contains("Permission denied")
        {
            return Ok(output);
        }
    }
    Err(untrusted)
}

/// The rights of the first account, from the root on, that owns a directory above the path.
fn owner_above(path: &str, cx: &Context) -> Result<Option<Privilege>> {
    for (end, _) in path.match_indices('/').skip(1) {
        let command = Command::new("stat").args([FORMAT, "--", &path[..end]]);
        let output = cx.run(command.privilege(Privilege::RootIfAvailable))?;
        let text = output.text();
        let Some(stat) = text.lines().next().and_then(Stat::read) else { break };
        if stat.owner != "root" {
            return rights_of(&stat.owner, cx);
        }
    }
    Ok(None)
}

/// The rights of an account, `None` where it has no name.
pub(crate) fn rights_of(owner: &str, cx: &Context) -> Result<Option<Privilege>> {
    if check_user(owner).is_err() {
        return Ok(None);
    }
    let is_caller = cx.account()? == owner;
    Ok(Some(if is_caller { Privilege::Caller } else { Privilege::User(owner.to_owned()) }))
}

/// The metadata of those paths that exist.
pub(crate) fn stat<P: AsRef<str>>(paths: &[P], cx: &Context) -> Result<Vec<Stat>> {
    let command = Command::new("stat").arg(FORMAT).arg("--").args(paths.iter().map(|path| path.as_ref()));
    let output = look(command, cx)?;
    // A path that doesn't exist is an error, but `stat` prints the others all the same.
    let text = output.text();
    let found: Vec<Stat> = text.lines().filter_map(Stat::read).collect();
    let said = output.error_text();
    if output.exit_code != 0
        && !said.lines().all(|line| line.contains("No such file") || line.contains("Not a directory"))
    {
        let message = format!("stat: {said}");
        let is_denied = said.contains("Permission denied");
        let (code, category) = if is_denied {
            ("PERMISSION_DENIED", Category::Privilege)
        } else {
            ("COMMAND_FAILED", Category::Other)
        };
        return Err(Problem::new(code, category, message));
    }
    Ok(found)
}

/// The target of a symlink as it is written.
pub(crate) fn target(path: &str, cx: &Context) -> Result<String> {
    let output = look(READLINK.with([path]), cx)?;
    Ok(output.success("readlink")?.text().into_owned())
}

/// Whether a file begins as a script does.
pub(crate) fn is_script(path: &str, cx: &Context) -> Result<bool> {
    let output = look(HEAD.with([path]), cx)?;
    Ok(output.success("head")?.stdout == b"#!")
}

/// The contents of a tree in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Count {
    pub(crate) files: u64,
    pub(crate) directories: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) symlinks: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) others: u64,
    /// The number of setuid or setgid files.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) setuid: u64,
    pub(crate) bytes: u64,
    /// True where another file system is mounted in the tree.
    #[serde(skip)]
    pub(crate) other_devices: bool,
    /// True where the tree has more than was counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) more: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Count {
    /// Counts a tree, including its top.
    pub(crate) fn of(path: &str, cx: &Context) -> Result<Self> {
        let mut stream = match cx.open(FIND.with([path]).privilege(Privilege::RootIfAvailable)) {
            Err(problem) if problem.code == UNTRUSTED => {
                let privilege = owner_above(path, cx)?.unwrap_or(Privilege::Caller);
                cx.open(FIND.with([path]).privilege(privilege))?
            }
            stream => stream?,
        };
        let (mut count, mut first, mut rest) = (Self::default(), None, Vec::new());
        loop {
            let piece = stream.read(PIECE)?;
            if piece.is_empty() {
                break;
            }
            rest.extend_from_slice(&piece);
            let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            for line in String::from_utf8_lossy(&rest[..whole]).lines() {
                count.add(line, &mut first);
            }
            rest.drain(..whole);
            if count.files + count.directories + count.symlinks + count.others >= MOST {
                count.more = true;
                break;
            }
        }
        Ok(count)
    }

    fn add(&mut self, line: &str, first: &mut Option<String>) {
        let [kind, mode, device, size] = line.split(' ').collect::<Vec<_>>()[..] else { return };
        match kind {
            "f" => {
                self.files += 1;
                self.bytes += size.parse::<u64>().unwrap_or_default();
                let mode = u32::from_str_radix(mode, 8).unwrap_or_default();
                self.setuid += u64::from(mode & 0o6000 != 0);
            }
            "d" => {
                self.directories += 1;
                // Only directories are compared, because the files of an overlay are on the devices below.
                self.other_devices |= first.get_or_insert_with(|| device.to_owned()) != device;
            }
            "l" => self.symlinks += 1,
            _ => self.others += 1,
        }
    }

    /// The numbers in words.
    pub(crate) fn text(&self) -> String {
        let more = if self.more { "more than " } else { "" };
        let mut text = format!("{more}{} files, {} directories", self.files, self.directories);
        for (number, what) in [(self.symlinks, "symlinks"), (self.others, "others")] {
            if number > 0 {
                text.push_str(&format!(", {number} {what}"));
            }
        }
        text
    }

    /// The size in a suitable unit.
    pub(crate) fn size(&self) -> String {
        let mut size = self.bytes as f64;
        let mut unit = "bytes";
        for next in ["KiB", "MiB", "GiB", "TiB"] {
            if size < 1024.0 {
                break;
            }
            (size, unit) = (size / 1024.0, next);
        }
        if unit == "bytes" { format!("{} bytes", self.bytes) } else { format!("{size:.1} {unit}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn a_tree_is_counted_by_kind() {
        // find (GNU findutils) 4.9.0
        let said = "d 755 65024 4096\nf 644 65024 2048\nf 4755 65024 1\nl 777 65026 11\ns 755 65024 0\nd 755 65025 40\n";
        let target = FakeTarget::new().answer(&["find", "/srv/x", "-printf", "%y %m %D %s\\n"], 0, said, "");
        let count = Count::of("/srv/x", &target.context()).unwrap();
        let expected = Count {
            files: 2,
            directories: 2,
            symlinks: 1,
            others: 1,
            setuid: 1,
            bytes: 2049,
            other_devices: true,
            more: false,
        };
        assert_eq!(count, expected);
        assert_eq!(
            (count.text().as_str(), count.size().as_str()),
            ("2 files, 2 directories, 1 symlinks, 1 others", "2.0 KiB")
        );
    }

    #[test]
    fn a_huge_tree_is_not_counted_to_its_end() {
        let said = "f 644 1 1\n".repeat(300_000);
        let target = FakeTarget::new().answer(&["find", "/srv/x", "-printf", "%y %m %D %s\\n"], 0, said, "");
        let count = Count::of("/srv/x", &target.context()).unwrap();
        assert!(count.more && count.files < 250_000 && count.text().starts_with("more than "), "{count:?}");
    }

    #[test]
    fn what_is_not_there_is_left_out_and_what_is_forbidden_is_an_error() {
        let asked = ["stat", FORMAT, "--", "/a", "/b:c"];
        // stat (GNU coreutils) 9.1
        let there = "81ed:12:root:adm:/b:c\n";
        let missing = "stat: cannot statx '/a': No such file or directory\n";
        let cx = FakeTarget::new().answer(&asked, 1, there, missing).context();
        let found = stat(&["/a", "/b:c"], &cx).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].mode, found[0].kind), ("/b:c", 0o755, Kind::File));
        let denied = "stat: cannot statx '/a': Permission denied\n";
        let cx = FakeTarget::new().answer(&asked, 1, there, denied).context();
        assert_eq!(stat(&["/a", "/b:c"], &cx).unwrap_err().category, Category::Privilege);
    }
}
