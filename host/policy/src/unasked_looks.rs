//! Command lines that may look without a question where the caller chooses all of their words.
//!
//! The rules say what changes something. A command that changes nothing may still show a secret of the account whose rights
//! it has, so it is also held against a list of programs whose words tell all that they read, and the words against the
//! paths that hold secrets.

use std::sync::LazyLock;

use host_capability::HoleType;
use host_text::redact::excerpt;
use serde::Deserialize;

use super::argv::Argv;
use super::script::Script;

/// The directory in which a command begins that is given none, on every target.
const BEGINNING: &str = "/";
/// The option by which env(1) starts a command in a directory.
const CHDIR: &str = "--chdir=";
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Programs {
    programs: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
    first: Option<Vec<String>>,
    options: Option<Vec<String>>,
    #[serde(default)]
    letters: String,
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
    let plain: Vec<&str> = words.iter().map(String::as_str).collect();
    let read = Argv::read(&plain);
    let shows = shows(words, &read).ok_or("does not tell by its words all that it reads")?;
    let mut paths = Vec::new();
    if shows == Shows::Text {
        return Ok(Look { shows, paths });
    }
    let script = script_at(&read)?;
    // Without an operand, such a program shows what is in the directory where it begins.
    let given = (shows == Shows::Names && directory != BEGINNING).then_some(directory);
    let named = words.iter().enumerate().skip(1).filter(|(at, _)| Some(*at) != script);
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

/// The place of the word that is a script for sed or awk, where one is a word of its own. The error is the reason why a
/// script has to be seen.
fn script_at(argv: &Argv<'_>) -> Result<Option<usize>, String> {
    let Some(language) = argv.grammar.and_then(|grammar| grammar.script) else { return Ok(None) };
    let (text, at) = argv.script(language);
    match Script::read(language, &text) == Script::default() {
        true => Ok(at),
        false => Err("has a script that may read files or run programs".to_owned()),
    }
}

/// The kind of information that a command shows. None where its words don't tell all that it reads.
fn shows(words: &[String], argv: &Argv<'_>) -> Option<Shows> {
    let table = TABLE.as_ref()?;
    let (program, words) = words.split_first()?;
    if let [only] = words
        && ABOUT.contains(&only.as_str())
    {
        return Some(Shows::Text);
    }
    let groups = [
        (&table.text, Shows::Text),
        (&table.state, Shows::State),
        (&table.names, Shows::Names),
        (&table.contents, Shows::Contents),
    ];
    groups.into_iter().find_map(|(group, shows)| {
        let known = group.iter().find(|known| known.programs.iter().any(|name| name == program))?;
        known.take(words, argv).then_some(shows)
    })
}

impl Programs {
    /// Whether the programs are what the table says with these words.
    fn take(&self, words: &[String], argv: &Argv<'_>) -> bool {
        let is_any = |patterns: &[String], word: &str| patterns.iter().any(|pattern| is_like(word, pattern));
        let is_out = |word: &String| {
            self.without
                .iter()
                .any(|out| is_like(word, out) || is_among_letters(word, out) || is_abbreviation(word, out))
        };
        let is_first =
            self.first.as_ref().is_none_or(|first| words.first().is_some_and(|word| is_any(first, word)));
        let are_options_known = self.options.as_ref().is_none_or(|options| {
            words.iter().filter(|word| word.starts_with('-')).all(|word| is_any(options, word))
        });
        let has_letter =
            argv.operands.iter().any(|operand| operand.word.contains(|letter| self.letters.contains(letter)));
        is_first && are_options_known && !has_letter && !words.iter().any(is_out)
    }
}

/// Whether a word is like a pattern that may begin or end with `*`.
fn is_like(word: &str, pattern: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (None, None) => word == pattern,
        (None, Some(beginning)) => word.starts_with(beginning),
        (Some(end), None) => word.ends_with(end),
        (Some(end), Some(_)) => word.contains(end.trim_end_matches('*')),
    }
}

/// Whether a word of joined one-letter options, such as `-nr`, has the option's letter.
fn is_among_letters(word: &str, option: &str) -> bool {
    let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1 && *letter != "-");
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    matches!((letter, letters), (Some(letter), Some(letters)) if letters.contains(letter))
}

/// Whether a word may abbreviate the long option of a pattern, as getopt_long(3) accepts it.
fn is_abbreviation(word: &str, pattern: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    name.len() > 2 && name.starts_with("--") && pattern.trim_end_matches('*').starts_with(name)
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
            ("who /srv/x", Some(Shows::Contents)),
            ("visudo -cf /etc/sudoers.d/ada", Some(Shows::Contents)),
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
            ("sudo -l", Some(Shows::State)),
            ("sudo ls", None),
            ("sudo -n -l", None),
            ("echo /etc/shadow", Some(Shows::Text)),
            ("python3 --version", Some(Shows::Text)),
            ("python3 --version x", None),
            ("env", Some(Shows::State)),
            ("env ls", None),
            ("env A=b ls", None),
            ("timeout 5 ls", None),
            ("xargs cat", None),
            ("sh -c ls", None),
            ("tar -cf - /etc", None),
            ("tar -tf /srv/x.tar", Some(Shows::Names)),
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
        ] {
            let paths: Vec<String> = look(line).unwrap().paths.into_iter().map(|(_, path)| path).collect();
            assert_eq!(paths, expected, "{line}");
        }
    }
}
