//! Command lines that may look without a question where the caller chooses all of their words.
//!
//! The rules say what changes something. A command that changes nothing may still show a secret of the account whose rights
//! it has, so it is also held against a list of programs whose words tell all that they read, and the words against the
//! paths that hold secrets.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use host_capability::HoleType;
use host_text::redact::excerpt;
use serde::Deserialize;

use super::patterns::Patterns;

/// The directory in which a command begins that is given none, on every target.
const BEGINNING: &str = "/";
/// The option by which env(1) starts a command in a directory.
const CHDIR: &str = "--chdir=";
/// The options whose value is a script, for programs that have one.
const SCRIPTS: [&str; 2] = ["-e", "--expression"];
/// The options that every program answers without reading a file of the caller's.
const ABOUT: [&str; 3] = ["--version", "--help", "-V"];
/// The most characters of a word in a reason.
const SHOWN: usize = 300;
/// The longest name of a file, path_resolution(7).
const LONGEST_NAME: usize = 255;

/// The programs. If the table can't be read, none may look.
static TABLE: LazyLock<Option<Table>> =
    LazyLock::new(|| serde_yaml::from_str(include_str!("unasked_looks.yaml")).ok());

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    text: Vec<Programs>,
    state: Vec<Programs>,
    names: Vec<Programs>,
    contents: Vec<Programs>,
}

/// A row of the table. The table's own text describes the members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Programs {
    programs: Vec<String>,
    #[serde(default)]
    flags: String,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    values: Vec<String>,
    #[serde(default)]
    choices: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    required: Vec<String>,
    verbs: Option<Vec<String>>,
    second: Option<Vec<String>>,
    most: Option<usize>,
    operands: Option<Patterns>,
    #[serde(default)]
    never: Vec<String>,
    #[serde(default)]
    any: bool,
    #[serde(default)]
    dashes: bool,
    script: Option<Patterns>,
}

/// The kind of information that a command shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Its own words and its input.
    Text,
    /// The state of the system.
    State,
    /// Names and metadata of files, also of those below a directory.
    Names,
    /// Contents of the files that it names.
    Contents,
}

/// A command line whose words tell all that it reads, where none of them is a secret's path.
#[derive(Debug)]
pub struct Look {
    /// The kind of information that the command shows.
    pub shows: Shows,
    /// The paths that the words may name. They may lead to a secret all the same, so they are to be resolved.
    pub paths: Vec<(HoleType, String)>,
}

/// Finds out what a command line reads. The error is the reason why a person has to see it first.
pub fn unasked_look(argv: &[String]) -> Result<Look, String> {
    let (directory, words) = beginning(argv);
    let (shows, scripts) = shows(words).ok_or("does not tell by its words all that it reads")?;
    let mut paths = Vec::new();
    if shows == Shows::Text {
        // Some programs read settings where they begin, even to say their version. So nobody else may put a file there.
        let beside = format!("{}/any", directory.trim_end_matches('/'));
        paths.extend((directory != BEGINNING).then_some((HoleType::Path(None), beside)));
        return Ok(Look { shows, paths });
    }
    // Without an operand, such a program shows what is in the directory where it begins.
    let given = (shows == Shows::Names && directory != BEGINNING).then_some(directory);
    let named = words.iter().enumerate().skip(1).filter(|(at, _)| !scripts.contains(at));
    for value in given.into_iter().chain(named.flat_map(|(_, word)| values(word))) {
        let Some(path) = absolute(directory, value) else { continue };
        // A program that shows the state of the system shows a disk's, and not what is on it.
        let is_disk = shows == Shows::State && HoleType::Disk.accepts(&path);
        let hole = if is_disk { HoleType::Disk } else { HoleType::Path(None) };
        if !hole.accepts(&path) {
            return Err(format!("names {}, which may hold a secret", excerpt(value, SHOWN)));
        }
        // Most words of a program that shows the state of the system name no file.
        if shows != Shows::State || value.starts_with('/') {
            paths.push((hole, path));
        }
    }
    Ok(Look { shows, paths })
}

/// The directory in which a command begins, and its own words.
fn beginning(argv: &[String]) -> (&str, &[String]) {
    match argv {
        [env, option, words @ ..] if env == "env" && !words.is_empty() => match option.strip_prefix(CHDIR) {
            Some(directory) => (directory, words),
            None => (BEGINNING, argv),
        },
        _ => (BEGINNING, argv),
    }
}

/// The path that a word names if it names a file; none where no file can have that name.
fn absolute(directory: &str, value: &str) -> Option<String> {
    match value {
        "" => None,
        "." => Some(directory.to_owned()),
        name if !name.contains('/') && name.len() > LONGEST_NAME => None,
        path if path.starts_with('/') => Some(path.to_owned()),
        path => Some(format!("{}/{path}", directory.trim_end_matches('/'))),
    }
}

/// The parts of a word that may be paths: an operand, the value of an option, and a value that is joined to its option.
fn values(word: &str) -> impl Iterator<Item = &str> {
    let is_option = word.starts_with('-');
    let value = word.split_once('=').filter(|_| is_option).map(|(_, value)| value);
    let joined = word.find('/').filter(|_| is_option).map(|at| &word[at..]);
    let operand = (!is_option).then_some(word);
    [operand, value, joined].into_iter().flatten()
}

/// The kind of information that a command shows, and the places of its words that are scripts. None where its words don't
/// tell all that it reads.
fn shows(words: &[String]) -> Option<(Shows, Vec<usize>)> {
    let table = TABLE.as_ref()?;
    let (program, words) = words.split_first()?;
    if let [only] = words
        && ABOUT.contains(&only.as_str())
    {
        return Some((Shows::Text, Vec::new()));
    }
    let groups = [
        (&table.text, Shows::Text),
        (&table.state, Shows::State),
        (&table.names, Shows::Names),
        (&table.contents, Shows::Contents),
    ];
    groups.into_iter().find_map(|(group, shows)| {
        let mut rows = group.iter().filter(|row| row.programs.iter().any(|name| name == program));
        rows.find_map(|row| row.take(words)).map(|scripts| (shows, scripts))
    })
}

/// A word that is the value of an option.
enum Taken {
    /// The option has no value, or has it in its own word.
    Whole,
    /// The next word is the option's value.
    Next,
    /// The next word is a script.
    Script,
}

impl Programs {
    /// The places of the scripts among the words, where the row allows all words. The program itself is at place 0.
    fn take(&self, words: &[String]) -> Option<Vec<usize>> {
        if self.any {
            return Some(Vec::new());
        }
        let (mut operands, mut scripts): (Vec<(usize, &str)>, Vec<usize>) = Default::default();
        let (mut at, mut are_options_over) = (0, false);
        while let Some(word) = words.get(at) {
            at += 1;
            if word == "--" && !are_options_over {
                are_options_over = true;
            } else if are_options_over && word.starts_with('-') && !self.dashes {
                return None;
            } else if are_options_over || word == "-" || !word.starts_with('-') {
                operands.push((at, word));
            } else {
                match self.option(word, words.get(at).map(String::as_str))? {
                    Taken::Whole => continue,
                    Taken::Next => {}
                    Taken::Script => scripts.push(at + 1),
                }
                at += 1;
            }
        }
        if let Some(known) = &self.script {
            if scripts.is_empty() {
                scripts.push(operands.first()?.0);
                operands.remove(0);
            }
            scripts.iter().all(|place| known.match_any(&words[place - 1])).then_some(())?;
        }
        let operand = |at: usize| operands.get(at).map_or("", |(_, word)| word);
        let is_verb = self.verbs.as_ref().is_none_or(|verbs| verbs.iter().any(|verb| verb == operand(0)));
        let is_second = self
            .second
            .as_ref()
            .is_none_or(|second| operands.len() < 2 || second.iter().any(|word| word == operand(1)));
        let is_required = self.required.is_empty()
            || words.iter().any(|word| self.required.iter().any(|known| is_like(word, known)));
        let are_words_right = operands.iter().all(|(_, word)| {
            self.operands.as_ref().is_none_or(|known| known.match_any(word)) && self.may_have(word)
        });
        let are_few = self.most.is_none_or(|most| operands.len() <= most);
        (is_verb && is_second && is_required && are_words_right && are_few).then_some(scripts)
    }

    /// How an option takes its value. None where the row doesn't have the option, or not with that value.
    fn option(&self, word: &str, next: Option<&str>) -> Option<Taken> {
        if self.options.iter().any(|known| is_like(word, known)) {
            return Some(Taken::Whole);
        }
        // The value of an option would otherwise be read as another option.
        let next = next.filter(|next| !next.starts_with('-'));
        if word.starts_with("--") {
            return match word.split_once('=') {
                Some((name, value)) => self.has_joined(name, value).then_some(Taken::Whole),
                None => self.has_next(word, next?),
            };
        }
        if self.takes_value(word) {
            return self.has_next(word, next?);
        }
        for (place, letter) in word.char_indices().skip(1) {
            if self.flags.contains(letter) {
                continue;
            }
            let value = &word[place + letter.len_utf8()..];
            let option = format!("-{letter}");
            return match value {
                "" => self.has_next(&option, next?),
                joined => self.has_joined(&option, joined).then_some(Taken::Whole),
            };
        }
        Some(Taken::Whole)
    }

    fn takes_value(&self, option: &str) -> bool {
        self.values.iter().any(|known| known == option) || self.choices.contains_key(option)
    }

    /// Says whether a row with scripts has this option for one.
    fn is_script(&self, option: &str) -> bool {
        self.script.is_some() && SCRIPTS.contains(&option)
    }

    fn has_next(&self, option: &str, value: &str) -> Option<Taken> {
        let taken = if self.is_script(option) { Taken::Script } else { Taken::Next };
        self.has_value(option, value).then_some(taken)
    }

    /// Says whether the row has the option with a value in the same word. A script stands in a word of its own.
    fn has_joined(&self, option: &str, value: &str) -> bool {
        !self.is_script(option) && self.has_value(option, value)
    }

    /// Says whether an operand or a value has no text that the row rules out.
    fn may_have(&self, word: &str) -> bool {
        !self.never.iter().any(|text| word.contains(text.as_str()))
    }

    fn has_value(&self, option: &str, value: &str) -> bool {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        match self.choices.get(option) {
            Some(choices) => value
                .split(',')
                .all(|part| choices.iter().any(|choice| choice == part || choice == "#" && is_number(part))),
            None => self.values.iter().any(|known| known == option) && self.may_have(value),
        }
    }
}

/// Whether a word is like a pattern that may end with `*`.
fn is_like(word: &str, pattern: &str) -> bool {
    pattern.strip_suffix('*').map_or(word == pattern, |beginning| word.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(line: &str) -> Result<Look, String> {
        let argv = shell_words::split(line).unwrap();
        unasked_look(&argv)
    }

    #[test]
    fn only_programs_whose_words_tell_what_they_read_look_unasked() {
        for (line, expected) in [
            ("systemctl status nginx", Some(Shows::State)),
            ("systemctl cat nginx", Some(Shows::State)),
            ("systemctl --root=/srv/x status", None),
            ("systemctl --roo=/srv/x status", None),
            ("systemctl -H web1 status", None),
            ("systemctl -lH web1 status", None),
            ("ip -br address", Some(Shows::State)),
            ("ip -batch /srv/x", None),
            ("ip -b /srv/x", None),
            ("ip netns exec a cat /srv/x", None),
            ("ip net e a cat /srv/x", None),
            ("pidstat -e cat /srv/x", None),
            ("who -b", Some(Shows::State)),
            ("who /srv/x", None),
            ("visudo -c", Some(Shows::State)),
            ("visudo -cf /srv/x", None),
            ("tar -tf web1:/srv/x.tar", None),
            ("xzcat --files=/srv/list", None),
            ("zstdcat --filelist=/srv/list", None),
            ("docker logs --details web", None),
            ("docker logs --tail 10 web", Some(Shows::State)),
            ("ping -c1 127.0.0.1", Some(Shows::State)),
            ("ps -ef", Some(Shows::State)),
            ("ps aux", Some(Shows::State)),
            ("ps -o pid,etime -p 4711", Some(Shows::State)),
            ("ps auxe", None),
            ("ps -o pid,environ", None),
            ("lsblk -f /dev/sda", Some(Shows::State)),
            ("smartctl -a /dev/sda", Some(Shows::State)),
            ("cat /dev/sda", None),
            ("wc -c /etc/hosts", Some(Shows::Contents)),
            ("cut -d: -f1 /etc/passwd", Some(Shows::Contents)),
            ("rpm -q --define x y", None),
            ("rpm -qf /etc/hosts", Some(Shows::State)),
            ("journalctl -u ssh -n 50", Some(Shows::State)),
            ("journalctl --directory=/srv/x", None),
            ("journalctl -o json", None),
            ("journalctl -F COREDUMP_ENVIRON", None),
            ("ls -la /etc", Some(Shows::Names)),
            ("ls", Some(Shows::Names)),
            ("ls -l /etc/shadow", None),
            ("stat -f /srv", Some(Shows::Names)),
            ("find /etc -name x.conf", Some(Shows::Names)),
            ("find /etc -name x -exec cat {} +", None),
            ("find /etc -fprintf /x y", None),
            ("cat /etc/hosts", Some(Shows::Contents)),
            ("head -n 5 /etc/hosts", Some(Shows::Contents)),
            ("grep -n listen /etc/nginx/nginx.conf", Some(Shows::Contents)),
            ("grep -e x -f/srv/x /etc/hosts", None),
            ("grep -f /srv/x /etc/hosts", None),
            ("wc --files0-from=/srv/x", None),
            ("wc --files0=/srv/x", None),
            ("sed -n 1,5p /etc/hosts", Some(Shows::Contents)),
            ("sed -n -e /x/p /etc/hosts", Some(Shows::Contents)),
            ("sed 'r /srv/x' /etc/hosts", None),
            ("sed -f /srv/x /etc/hosts", None),
            ("sed --file=/srv/x /etc/hosts", None),
            ("awk -F: '{print $1}' /etc/passwd", Some(Shows::Contents)),
            ("awk '$3 > 10 {print $1}' /etc/passwd", Some(Shows::Contents)),
            ("awk 'BEGIN {while (getline < \"/srv/x\") print}'", None),
            ("awk 'BEGIN {ARGV[1] = \"/srv/x\"; ARGC = 2} 1' /etc/hosts", None),
            ("awk 'BEGIN {SYMTAB[\"A\" \"RGV\"][1] = 1} 1' /etc/hosts", None),
            ("awk -F : '{print}' /etc/passwd", Some(Shows::Contents)),
            ("awk -F : -v x=1 'BEGIN {while (getline < x) print}'", None),
            ("awk -f /srv/x /etc/passwd", None),
            ("jq -r .name /srv/x.json", Some(Shows::Contents)),
            ("jq 'import \"/srv/x\" as $x; $x' /srv/x.json", None),
            ("openssl x509 -in /etc/ssl/certs/x.pem -noout -enddate", Some(Shows::Contents)),
            ("openssl rsa -in /srv/x.pem", None),
            ("docker ps -a", Some(Shows::State)),
            ("docker inspect web", None),
            ("docker exec web ls", None),
            ("zgrep -n x /var/log/a.gz", Some(Shows::Contents)),
            ("grep -- -Xmx /etc/default/app", Some(Shows::Contents)),
            ("zcat /var/log/a.gz /var/log/b.gz", Some(Shows::Contents)),
            ("tar -tf /srv/x.tar", Some(Shows::Contents)),
            ("sysctl -n vm.swappiness net.ipv4.ip_forward", Some(Shows::State)),
            ("strings -n 8 /usr/bin/ls", Some(Shows::Contents)),
            ("date +%s", Some(Shows::State)),
            ("sudo -l", Some(Shows::State)),
            ("sudo ls", None),
            ("sudo -n -l", None),
            ("echo /etc/shadow", Some(Shows::Text)),
            ("printf '%s %-10s|%03d%%\\n' a b 3", Some(Shows::Text)),
            ("python3 --version", Some(Shows::Text)),
            ("python3 --version x", None),
            ("env", Some(Shows::State)),
            ("env ls", None),
            ("env A=b ls", None),
            ("timeout 5 ls", None),
            ("xargs cat", None),
            ("sh -c ls", None),
            ("tar -cf - /etc", None),
            ("git status", None),
            ("curl https://example.net/", None),
            ("/usr/bin/cat /etc/hosts", None),
            ("getent passwd", Some(Shows::State)),
            ("getent shadow", None),
            ("", None),
        ] {
            assert_eq!(look(line).ok().map(|look| look.shows), expected, "{line}");
        }
    }

    #[test]
    fn what_does_more_beside_a_look_asks() {
        for line in [
            "sed ':x e id' /etc/hostname",
            "sed 'v 4.2 e id' /etc/hostname",
            "sed -n -e 'v 4.2 w /srv/x' /etc/hostname",
            "sed -e 1p -e 'w /srv/x' /etc/hosts",
            "sed 's/x/id/e' /etc/hosts",
            "awk 'BEGIN{case=4; x=case / 2; system(\"id\") / 1}'",
            "awk '{print > \"/srv/x\"}' /etc/hosts",
            "awk '{print | \"sh\"}' /etc/hosts",
            "jq env",
            "jq '$ENV'",
            "systemd-analyze cat-config shadow",
            "systemd-analyze verify /srv/x.service",
            "systemctl help ssh",
            "systemctl -p -n restart ssh",
            "systemctl --property restart ssh",
            "printf %2000000000s x",
            "seq -f %.200000000f 1",
            "nl -w 200000000 /etc/hosts",
            "grep -E '((a{1,200}){1,200}){1,20}' /etc/hosts",
            "grep -E -e '((a{1,200}){1,200}){1,20}' /etc/hosts",
            "grep '\\(\\(a\\{1,200\\}\\)\\{1,200\\}\\)\\{1,20\\}' /etc/hosts",
            "expr a : a",
            "find -- -delete",
            "find -P -- /srv/web -delete",
            "find -- /srv -fprint /etc/nologin",
            "find /srv -- -delete",
            "dig -- -f /root/x",
            "sed '-e1e id' 1p /etc/hosts",
            "sed '--expression=1e id' 1p /etc/hosts",
            "sed -ne '1e id' 1p /etc/hosts",
            "sed '-ne1e id' 1p /etc/hosts",
            "sed -n -e 1p -e '1e id' /etc/hosts",
            "zcat /root/db.sql",
            "zcat /etc/a.gz /root/db.sql",
            "bzcat /root/db",
            "gzip -l /root/db.sql",
            "unzip -l /root/db",
            "zgrep x /root/db",
            "zgrep -e x /root/db",
            "zgrep x /var/log/a.gz /root/db",
            "strings @/etc/restic/pw",
            "strings -n @/etc/restic/pw /etc/hosts",
            "strings -n@/etc/restic/pw /etc/hosts",
            "openssl x509 -noout -in org.openssl.engine:/srv/web/evil.so:x",
            "openssl crl -noout -in=file:/root/x",
            "openssl x509 -inform ENGINE -in /srv/x",
            "gawk 1 /inet/tcp/0/192.0.2.1/80",
            "sysctl -a",
            "sysctl net.ipv4.tcp_fastopen_key",
            "sysctl net.ipv6.conf.all.stable_secret",
            "sysctl net.ipv6.conf",
            "sysctl net.ipv4",
            "sysctl net.ipv4.*",
            "sysctl kernel",
            "printf %*s 2000000000 x",
            "printf %.2000000000f 1",
            "kill -0 -s KILL 1",
            "kill -0 1",
            "kill -l -s KILL 1",
            "ps -axe",
            "ps -auxe",
            "ps -xe",
            "ps -u xe",
            "ps -p e",
            "ps -o pid,environ",
            "ps axe",
            "ps aux e",
            "ss --kil dst 10.9.9.9",
            "ss -K",
            "ip xfrm state",
            "ip x s",
            "ip link property a dev lo altname x",
            "ip link p a dev lo",
            "ip sr t s ::",
            "ip l s lo down",
            "bridge mdb a x",
            "apt --print-uris edit-sources",
            "apt-get --print-uris markauto fish",
            "apt-get -s clean",
            "apt-get install -s ./x.deb",
            "visudo -cf /srv/x",
            "haproxy -c -f /srv/x",
            "named-checkconf /srv/x",
            "nginx -t -c /srv/x",
            "nft -c 'include \"/etc/shadow\"'",
            "nft list ruleset -f /srv/x",
            "sfdisk -d --delete /dev/sda",
            "sgdisk -p --backup=/etc/nologin /dev/sda",
            "tune2fs -l -O ^has_journal /dev/sda",
            "mdadm --detail --monitor -p /srv/x",
            "mailq -be x",
            "coredumpctl list -o /srv/x",
            "ethtool -w eth0 data /srv/x",
            "conntrack -L -z",
            "smartctl -a -s standby,now /dev/sda",
            "smartctl -l scterc,70,70 /dev/sda",
            "smartctl -lscttempint,5 /dev/sda",
            "smartctl --log=sasphy,reset /dev/sda",
            "findmnt --fstab",
            "findmnt -s",
            "findmnt --verify --verbose",
            "findmnt --tab-file /srv/x",
            "findmnt -xF /srv/x",
            "lsblk --sysroot /srv",
            "blkid -c /srv/x",
            "blkid -g",
            "lvs --config log/file=/etc/x",
            "swapon --show -a",
            "swapon -s /dev/sda2",
            "mdadm --scan",
            "mdadm -Dt --scan",
            "mdadm -D --scan --config=/srv/x",
            "resize2fs /dev/sda1",
            "resize2fs -P /dev/sda1 5G",
            "resize2fs -P -M /dev/sda1",
            "resize2fs -P /dev/sda1?offset=1",
            "xfs_info -t /srv/x /dev/sda1",
            "dumpe2fs /dev/sda1",
            "dumpe2fs -h -i /srv/x",
            "btrfs filesystem resize max /srv",
            "btrfs filesystem label /srv x",
            "btrfs subvolume delete list",
            "btrfs device stats --reset /srv",
            "btrfs scrub start /srv",
            "btrfs balance start status",
            "rsync -an --log-file=/etc/nologin /srv/a/ /srv/b/",
            "rsync -an web1:/srv /srv",
            "smartctl -a -t long /dev/sda",
            "hdparm -I -r1 /dev/sda",
            "sensors --set",
            "file --compi",
            "at -l -r 1",
            "dnf --assumeno config-manager --set-disabled x",
            "dnf history undo 3",
            "dnf alias add x=y",
            "rpm -q --restore x",
            "rpm -qa --pipe sh",
            "postconf -n mydomain=evil",
            "btrfs device stats -z /srv",
            "ufw --dry-run --force reset",
            "uniq /etc/hosts /srv/x",
            "xxd /etc/hosts /srv/x",
            "date 0101",
            "sysctl a=b",
            "hostname x",
            "crontab -u ada /srv/x",
            "crontab -u ada",
            "docker logs web --details",
            "find /srv -newer x -delete",
            "tar -tf web1:/x",
            "tar xf /srv/x.tar",
            "firewall-cmd --list-all --add-port=1/tcp",
            "iptables -L -F",
            "timedatectl set-time x",
            "hostnamectl set-hostname x",
        ] {
            assert!(look(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_lies_below_a_directory_is_never_read_unasked() {
        for line in [
            "grep -r '' /home/ada/.ssh",
            "grep -nr listen /etc/nginx",
            "grep -R x /srv",
            "grep --recursive x /etc",
            "grep --recurs x /etc",
            "grep --dereference-recursive x /etc",
            "grep --directories=recurse x /etc",
            "grep -d recurse x /etc",
            "rg x /srv",
            "rgrep x /srv",
            "diff -ur /srv/a /srv/b",
            "diff --rec /srv/a /srv/b",
            "find /srv -type f -exec cat {} +",
            "xargs -a /srv/list cat",
        ] {
            assert!(look(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_secret_is_found_wherever_the_command_begins() {
        for (line, is_free) in [
            ("cat /home/ada/.ssh/id_ed25519", false),
            ("awk 1 /home/ada/.ssh/id_ed25519", false),
            ("grep -n '' /home/ada/.netrc", false),
            ("sed -n 1p /home/ada/.pgpass", false),
            ("cat home/ada/.ssh/id_ed25519", false),
            ("env --chdir=/home/ada cat .ssh/id_ed25519", false),
            ("env --chdir=/home/ada/.ssh cat id_ed25519", false),
            ("env --chdir=/home/ada/.ssh/ cat id_ed25519.pub", true),
            ("env --chdir=/etc cat shadow", false),
            ("env --chdir=/etc cat hosts", true),
            ("env --chdir=/ cat etc/shadow", false),
            ("env --chdir=/etc/wireguard ls", false),
            ("env --chdir=/srv -i cat x", false),
            ("env --chdir=/srv A=b cat x", false),
            ("env --chdir=/srv/../etc cat shadow", false),
            ("cat etc/shadow", false),
            ("cat ../etc/shadow", false),
            ("cat /srv/../etc/hosts", false),
            ("cat etc/hosts", true),
            ("cat shadow", true),
            ("cat .ssh/id_ed25519", false),
            ("grep -e x --exclude=/etc/shadow /etc/hosts", false),
            ("ls -I/etc/shadow /etc", false),
        ] {
            assert_eq!(look(line).is_ok(), is_free, "{line}");
        }
    }

    #[test]
    fn each_word_that_may_name_a_file_is_to_be_resolved() {
        for (line, expected) in [
            ("cat /srv/x y", &["/srv/x", "/y"][..]),
            ("env --chdir=/srv/app cat logs/x", &["/srv/app/logs/x"]),
            ("env --chdir=/srv/app ls", &["/srv/app"]),
            ("env --chdir=/srv ls .", &["/srv", "/srv"]),
            ("sed -n 1p x", &["/x"]),
            ("systemctl status ssh", &[]),
            ("systemctl status /dev/sda", &["/dev/sda"]),
            ("echo /srv/x", &[]),
            ("env --chdir=/srv/app cargo --version", &["/srv/app/any"]),
        ] {
            let paths: Vec<String> = look(line).unwrap().paths.into_iter().map(|(_, path)| path).collect();
            assert_eq!(paths, expected, "{line}");
        }
    }
}
