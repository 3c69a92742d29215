//! The lab as an account of its own sees it. The program under test and the real ssh run in the network of the test hosts,
//! from which nothing else is reached. The configuration of SSH, its keys, the hosts' keys and the agent are the test's.

mod fleet;
mod network;
mod reach;
mod sshd;

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::hosts::listing;
use crate::{Client, Home, Host, binary, component, host, modules};
pub use fleet::Fleet;
use network::Network;
pub use sshd::{SFTP, Sshd};

/// The hosts of the lab. Their names begin the aliases, and cables can be laid between them.
const HOSTS: [&str; 3] = ["debian1", "rhel1", "bare1"];
/// An account in the lab. It is gone when this is dropped.
pub struct Lab {
    home: Home,
    hosts: [Host; HOSTS.len()],
    network: Network,
    agent: Mutex<Option<Child>>,
    turn: Turn,
}

/// Says whether a test has the lab to itself. A test that changes the network or its hosts needs that. Others may use the
/// lab at the same time.
enum Turn {
    Alone(#[allow(dead_code, reason = "it is held, and not looked at")] File),
    BesideOthers(#[allow(dead_code, reason = "it is held, and not looked at")] File),
}

/// A key in a file of the lab. Where it has a certificate, that is beside it.
pub struct Key {
    file: PathBuf,
}

impl Lab {
    /// Makes an account that reaches each host by its name, as root. No other test is in the lab. Where there can be no
    /// hosts, the test is counted as skipped.
    pub fn new(test: &str) -> Option<Self> {
        Self::with(test, |file| {
            file.lock().expect("a turn");
            Turn::Alone(file)
        })
    }

    /// Does the same for a test that leaves the network as it is, beside other tests in the lab.
    pub fn beside_others(test: &str) -> Option<Self> {
        Self::with(test, |file| {
            file.lock_shared().expect("a turn");
            Turn::BesideOthers(file)
        })
    }

    fn with(test: &str, turn: impl FnOnce(File) -> Turn) -> Option<Self> {
        // The test asks for one host only, so it is counted once where it is skipped.
        host(test, HOSTS[0])?;
        let hosts = HOSTS.map(|name| host(test, name).expect("hosts are up"));
        let turn = turn(hosts[0].turn("lab.lock"));
        let listing = listing();
        let network = Network::of(&listing);
        let lab = Self { home: Home::of_root(), hosts, network, agent: Mutex::default(), turn };
        lab.clean();
        lab.settle(Path::new(listing["key"].as_str().expect("the lab's key")));
        Some(lab)
    }

    /// Makes the account's home, its key, and its line in passwd, from which ssh takes the home.
    fn settle(&self, key: &Path) {
        let home = self.home.path().to_str().expect("UTF-8");
        let passwd = fs::read_to_string("/etc/passwd").expect("/etc/passwd");
        let mut lines: Vec<String> = passwd.lines().map(str::to_owned).collect();
        let root = lines.iter_mut().find(|line| line.starts_with("root:")).expect("root's line");
        let mut fields: Vec<&str> = root.split(':').collect();
        fields[5] = home;
        *root = fields.join(":");
        fs::write(self.home.path().join("passwd"), lines.join("\n") + "\n").expect("written");

        let ssh = self.home.path().join(".ssh");
        fs::create_dir(&ssh).expect("a directory");
        fs::set_permissions(&ssh, Permissions::from_mode(0o700)).expect("a mode");
        for (from, to) in [(key.to_owned(), "id_ed25519"), (key.with_extension("pub"), "id_ed25519.pub")] {
            fs::copy(from, ssh.join(to)).expect("a key");
            fs::set_permissions(ssh.join(to), Permissions::from_mode(0o600)).expect("a mode");
        }
        self.configure(&self.aliases());
        for name in HOSTS {
            self.knows(&format!("{name},{}", self.host(name).address()), name);
        }
    }

    /// The account's home. The program finds its configuration and leaves its records there.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The path of a file in the account's `.ssh`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(".ssh").join(name)
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> &Host {
        let at = HOSTS.iter().position(|known| *known == name);
        &self.hosts[at.unwrap_or_else(|| panic!("the lab has {HOSTS:?}, and no {name}"))]
    }

    /// The address of this host.
    pub fn address(&self, name: &str) -> String {
        self.host(name).address()
    }

    /// An ssh configuration with each host by its name, as root.
    pub fn aliases(&self) -> String {
        let alias = |name| format!("Host {name}\n  HostName {}\n  User root\n", self.address(name));
        HOSTS.map(alias).concat()
    }

    /// Adds an alias for this account on this host, which must let it in; gives the alias.
    pub fn alias(&self, name: &str, account: &str) -> String {
        let alias = format!("{account}-on-{name}");
        let config = fs::read_to_string(self.file("config")).expect("a configuration");
        let host = format!("Host {alias}\n");
        if !config.contains(&host) {
            self.configure(&format!("{config}{host}  HostName {}\n  User {account}\n", self.address(name)));
        }
        alias
    }

    /// Replaces the ssh configuration.
    pub fn configure(&self, config: &str) {
        fs::write(self.file("config"), config).expect("written");
    }

    /// Adds the keys of the host's own sshd to known_hosts, under these names (`name,address`, `[address]:port`).
    pub fn knows(&self, names: &str, host: &str) {
        self.knows_keys(names, self.host(host));
    }

    fn knows_keys(&self, names: &str, host: &Host) {
        let keys = Path::new(&host.listed("root")).join("etc/ssh");
        for kind in ["ed25519", "ecdsa"] {
            let key =
                fs::read_to_string(keys.join(format!("ssh_host_{kind}_key.pub"))).expect("a host's key");
            self.know(&format!("{names} {key}"));
        }
    }

    /// Adds a line to known_hosts.
    pub fn know(&self, line: &str) {
        let known = fs::read_to_string(self.file("known_hosts")).unwrap_or_default();
        fs::write(self.file("known_hosts"), format!("{known}{}\n", line.trim())).expect("written");
    }

    /// Forgets every host's key.
    pub fn forget_hosts(&self) {
        fs::write(self.file("known_hosts"), "").expect("written");
    }

    /// A command of the account in the lab. Its environment has only the home, a PATH, and the agent's socket where an agent
    /// was started.
    pub fn command(&self, argv: &[&str]) -> Command {
        let home = self.home.path();
        // Only the programs that `ip netns exec` starts see what it mounts. Labs name their hosts alike, so servers of two
        // labs would wait for each other's locks if they shared the runtime directory.
        let as_account = "mkdir -p \"$HOME/run\" /run/linux-sysadmin && \
            mount --bind \"$HOME/run\" /run/linux-sysadmin && \
            mount --bind \"$HOME/passwd\" /etc/passwd && exec \"$@\"";
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.network.netns(), "sh", "-c", as_account, "lab"]).args(argv);
        command.env_clear().env("HOME", home).env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        if self.agent.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            command.env("SSH_AUTH_SOCK", self.file("agent"));
        }
        command.stdin(Stdio::null()).current_dir(home);
        command
    }

    /// Runs a command of the account, which must succeed; gives its stdout.
    #[track_caller]
    pub fn run(&self, argv: &[&str]) -> String {
        let output = self.command(argv).output().expect("ip runs");
        assert!(output.status.success(), "{argv:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Runs the real ssh with these arguments. It never asks for a password.
    pub fn ssh(&self, args: &[&str]) -> Output {
        self.command(&[&["ssh", "-o", "BatchMode=yes"], args].concat()).output().expect("ip runs")
    }

    /// The program under test with these arguments and the modules that ship.
    pub fn program(&self, args: &[&str]) -> Command {
        self.program_by(&[], args)
    }

    /// The same, started by another program, whose command line is `head`.
    pub fn program_by(&self, head: &[&str], args: &[&str]) -> Command {
        let binary = binary().canonicalize().expect("the program");
        let mut command = self.command(&[head, &[binary.to_str().expect("UTF-8")], args].concat());
        command.env("LINUX_SYSADMIN_MODULES", modules().canonicalize().expect("modules"));
        self.home.give_cache(&mut command);
        command
    }

    /// Starts a server with these further arguments, and opens no session.
    pub fn serve(&self, args: &[&str]) -> Client {
        Client::start_command(self.program(&[&["serve"], args].concat()))
    }

    /// Adds one of the tests' own modules, as an operator who agrees to everything.
    pub fn add(&self, name: &str) {
        let file = component(name).canonicalize().expect("a component");
        let sha256 = hex::encode(Sha256::digest(fs::read(&file).expect("a component")));
        let file = file.to_str().expect("UTF-8");
        let add = ["modules", "add", file, "--yes", "--sha256", &sha256];
        let added = self.program(&add).output().expect("ip runs");
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    }

    /// Adds the planner.
    pub fn add_planner(&self) {
        self.add("planner");
    }

    /// Writes the program's own configuration, as YAML.
    pub fn settle_for(&self, yaml: &str) {
        let config = self.home.config();
        fs::create_dir_all(config.parent().expect("a directory")).expect("made");
        fs::write(config, yaml).expect("written");
    }

    /// Starts a real ssh-agent without keys. Commands that start from now on know its socket.
    pub fn agent(&self) {
        let socket = self.file("agent");
        let mut command = self.command(&["ssh-agent", "-D", "-a", socket.to_str().expect("UTF-8")]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("ip runs");
        // The agent prints where it listens once it listens.
        let mut said = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout"));
        stdout.read_line(&mut said).expect("UTF-8");
        assert!(said.contains("SSH_AUTH_SOCK"), "{said}");
        let mut agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(agent.replace(child).is_none(), "one agent");
    }

    /// Gives the agent a key, with its certificate where it has one.
    #[track_caller]
    pub fn add_key(&self, key: &Key) {
        self.run(&["ssh-add", "-q", key.path()]);
    }

    /// Makes a key in `.ssh` without a passphrase. The type is one that ssh-keygen knows.
    #[track_caller]
    pub fn key(&self, name: &str, kind: &str) -> Key {
        let key = Key { file: self.file(name) };
        self.run(&["ssh-keygen", "-q", "-N", "", "-C", name, "-t", kind, "-f", key.path()]);
        key
    }

    /// Signs a key with an authority's key, and puts the certificate beside it. The options are ssh-keygen's: `-n` for
    /// principals, `-V` for the time in which it is valid, `-h` for a host's certificate.
    #[track_caller]
    pub fn sign(&self, authority: &Key, key: &Key, options: &[&str]) {
        let identity = key.file.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        let public = key.file.with_extension("pub");
        let head = ["ssh-keygen", "-q", "-s", authority.path(), "-I", identity];
        self.run(&[&head[..], options, &[public.to_str().expect("UTF-8")]].concat());
    }

    /// A revocation list (KRL) with these keys and certificates, which are files in `.ssh`.
    #[track_caller]
    pub fn revoked(&self, files: &[&str]) -> Vec<u8> {
        let list = self.file("revoked");
        let files: Vec<PathBuf> = files.iter().map(|name| self.file(name)).collect();
        let mut argv = vec!["ssh-keygen", "-q", "-k", "-f", list.to_str().expect("UTF-8")];
        argv.extend(files.iter().map(|file| file.to_str().expect("UTF-8")));
        self.run(&argv);
        fs::read(list).expect("a list")
    }

    /// A second sshd on this host, on a port of its own. It doesn't run yet.
    pub fn sshd(&self, host: &str, port: u16) -> Sshd {
        Sshd::new(self.host(host).clone(), port)
    }

    /// Cuts the host's cable: from now on no packet leaves or reaches the host, and no sender gets an error.
    pub fn cut(&self, name: &str) {
        self.network.cut(self.host(name));
    }

    /// Mends the host's cable.
    pub fn mend(&self, name: &str) {
        self.network.mend(self.host(name));
    }

    /// Lays a cable from debian1 to rhel1 and one from rhel1 to bare1. Each is a network of its own, which has no other host
    /// and no route into it. Gives the addresses that rhel1 and bare1 have there: the first is reached from debian1, the
    /// second only from rhel1. A reboot takes the cables of that host away.
    pub fn chain(&self) -> (&'static str, &'static str) {
        network::chain(HOSTS.map(|name| self.host(name)))
    }

    /// Reboots the host, and waits until it is ready again.
    pub fn reboot(&self, name: &str) {
        self.host(name).reboot();
    }

    /// Puts everything back that a test does to the lab, also after a failure.
    fn clean(&self) {
        if let Turn::BesideOthers(_) = self.turn {
            return;
        }
        network::unchain(HOSTS.map(|name| self.host(name)));
        for host in &self.hosts {
            self.network.mend(host);
            sshd::end_all(host);
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let mut agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut agent) = agent.take() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
        drop(agent);
        self.clean();
    }
}

impl Key {
    /// The path of the private key. The public key and the certificate are beside it.
    pub fn path(&self) -> &str {
        self.file.to_str().expect("UTF-8")
    }

    /// The public key: a line of authorized_keys, or the part of a line of known_hosts that follows the names.
    pub fn public(&self) -> String {
        let file = self.file.with_extension("pub");
        fs::read_to_string(file).expect("a public key").trim().to_owned()
    }

    /// The certificate, where the key has one.
    pub fn certificate(&self) -> Option<String> {
        fs::read_to_string(format!("{}-cert.pub", self.path())).ok()
    }
}
