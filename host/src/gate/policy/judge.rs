//! One verdict in the making: goes from a command line to those that it starts, and notes every rule that is met.
//!
//! What is looked at only ever gets shorter, and every way to look at the same words again is counted, so that the time
//! is linear in the argv.

use super::argv::{Argv, is_assignment};
use super::glob::{self, Met};
use super::index::Index;
use super::matching;
use super::path;
use super::programs::{Grammar, Names, Runs, Which};
use super::rule::Step;
use super::shell;

/// Programs that start each other.
const MOST_NESTED: usize = 64;
/// Texts for a shell within each other.
const MOST_TEXTS: usize = 8;
/// Command lines that can be read in two ways.
const MOST_GUESSES: usize = 8;
/// Directories that a text for a shell changes into.
const MOST_DIRECTORIES: usize = 8;

/// What was found.
pub(super) struct Judge<'p> {
    index: &'p Index,
    /// By the rules' numbers.
    pub(super) met: Vec<Met>,
    /// A text for a shell, or a part of it, says what can't be told here.
    pub(super) is_unclear: bool,
    /// Too many programs start each other.
    pub(super) is_nested: bool,
    guesses: usize,
}

/// How deep, and where.
#[derive(Clone)]
struct Place {
    programs: usize,
    texts: usize,
    /// Where relative paths may begin.
    directories: Vec<String>,
    /// Further words are added that nobody knows, as xargs(1) does.
    is_fed: bool,
}

impl<'p> Judge<'p> {
    pub(super) fn new(index: &'p Index, rules: usize) -> Self {
        Self { index, met: vec![Met::No; rules], is_unclear: false, is_nested: false, guesses: 0 }
    }

    /// Judges a command line.
    pub(super) fn argv(&mut self, words: &[&str]) {
        let directories = vec!["/".to_owned()];
        self.command(words, Place { programs: 0, texts: 0, directories, is_fed: false });
    }

    /// Judges what is done with a file.
    pub(super) fn file(&mut self, step: Step, file: &str) {
        self.file_in(step, file, &["/".to_owned()]);
    }

    fn command<'w>(&mut self, mut words: &'w [&'w str], mut place: Place) {
        while let Some(program) = words.first() {
            place.programs += 1;
            if place.programs > MOST_NESTED {
                self.is_nested = true;
                return;
            }
            // Which program it is decides everything.
            self.is_unclear |= glob::is_open(program);
            if let Some(["etc", "init.d", _]) = path::components("/", program).as_deref() {
                let script = program.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                let words: Vec<&str> =
                    ["service", script].into_iter().chain(words[1..].iter().copied()).collect();
                self.command(&words, place);
                return;
            }
            let argv = Argv::read(words);
            self.rules(&argv, &place);
            let Some(grammar) = argv.grammar else {
                self.used(words, &place);
                return;
            };
            self.files(grammar, &argv, &place);
            let Some(runs) = &grammar.runs else { return };
            if argv.has_any(&runs.unless) {
                return;
            }
            let is_bare = argv.rest.is_empty() && (runs.rest || runs.operand && argv.operands.is_empty());
            place.is_fed |= runs.feeds;
            // A shell of its own, or whatever is added.
            let asks = ["--help".to_owned(), "--version".to_owned()];
            self.is_unclear |= is_bare && (runs.alone || place.is_fed && !runs.feeds) && !argv.has_any(&asks);
            if runs.assignments {
                argv.operands.iter().for_each(|operand| self.assignment(operand.word, &place));
            }
            for option in &runs.directory {
                for directory in values(&argv, option) {
                    self.enter(directory, &mut place);
                }
            }
            self.started(runs, &argv, words, &place);
            if runs.text {
                if !argv.rest.is_empty() {
                    self.text(&argv.rest.join(" "), &place);
                }
                return;
            }
            // flock(1) takes it behind the file, runuser(1) behind the name.
            let code = argv.rest.iter().take(8).position(|word| runs.code.iter().any(|code| code == word));
            if let Some(text) = code.and_then(|at| argv.rest.get(at + 1)) {
                self.text(text, &place);
            }
            if argv.is_rest_unsure && argv.rest.len() > 1 && self.may_guess() {
                self.command(&argv.rest[1..], place.clone());
            }
            words = argv.rest;
        }
    }

    /// What is started by a program, but for the words behind its own.
    fn started(&mut self, runs: &Runs, argv: &Argv<'_>, words: &[&str], place: &Place) {
        let operands = || argv.operands.iter().map(|operand| operand.word);
        match runs.operand {
            true if argv.has_any(&runs.code) => {
                if let Some(text) = operands().next() {
                    self.text(text, place);
                }
            }
            true => {}
            false => {
                let mut texts: Vec<&str> = Vec::new();
                for text in runs.code.iter().flat_map(|option| values(argv, option)) {
                    // An abbreviation may mean two options.
                    if !texts.iter().any(|known| std::ptr::eq(*known, text)) {
                        texts.push(text);
                    }
                }
                texts.iter().for_each(|text| self.text(text, place));
                // su(1) gives what is behind `--` to the shell.
                let mut pairs = argv.operands.windows(2);
                if let Some([_, text]) = pairs.find(|pair| runs.code.iter().any(|code| code == pair[0].word))
                {
                    self.text(text.word, place);
                }
            }
        }
        for text in runs.split.iter().flat_map(|option| values(argv, option)) {
            self.split(text, argv.rest, place);
        }
        for program in runs.program.iter().flat_map(|option| values(argv, option)) {
            let command: Vec<&str> = std::iter::once(program).chain(operands()).collect();
            self.command(&command, place.clone());
        }
        if !runs.exec.is_empty() {
            let mut rest = words;
            while let Some(at) = rest.iter().position(|word| runs.exec.iter().any(|option| option == word)) {
                rest = &rest[at + 1..];
                let end = rest.iter().position(|word| matches!(*word, ";" | "+")).unwrap_or(rest.len());
                self.command(&rest[..end], place.clone());
                rest = &rest[end..];
            }
        }
        for (subcommand, skip) in &runs.after {
            let subcommand: Vec<String> = subcommand.split(' ').map(str::to_owned).collect();
            let (met, after) = matching::follows(&subcommand, argv);
            if met == Met::No {
                continue;
            }
            let begins =
                argv.operands.get(after.wrapping_sub(1)).map_or(words.len(), |operand| operand.at + 1);
            let behind = &words[begins.min(words.len())..];
            self.command(without_dashes(behind.get(*skip..).unwrap_or_default()), place.clone());
            // `ip -all netns exec` names none.
            if argv.operands[..after].iter().any(|operand| operand.is_maybe_value) && self.may_guess() {
                self.command(without_dashes(behind), place.clone());
            }
        }
        if let Some(subcommand) = argv.operands.first()
            && runs.text_after.iter().any(|name| name == subcommand.word)
        {
            let words: Vec<&str> = operands().skip(1).collect();
            self.text(&words.join(" "), place);
        }
    }

    fn may_guess(&mut self) -> bool {
        self.guesses += 1;
        self.is_nested |= self.guesses > MOST_GUESSES;
        self.guesses <= MOST_GUESSES
    }

    /// Judges a text that a shell reads.
    fn text(&mut self, text: &str, place: &Place) {
        let mut place = place.clone();
        place.texts += 1;
        if place.texts > MOST_TEXTS {
            self.is_nested = true;
            return;
        }
        let script = shell::read(text);
        self.is_unclear |= script.is_unclear;
        for command in &script.commands {
            for redirect in &command.redirects {
                let step = if redirect.writes { Step::Write } else { Step::Read };
                self.file_in(step, &redirect.file, &place.directories);
            }
            let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
            match words[..] {
                ["eval", ref rest @ ..] | ["builtin" | "command", "eval", ref rest @ ..] => {
                    self.command(&words, place.clone());
                    self.text(&rest.join(" "), &place);
                }
                ["trap", text, _, ..] => self.text(text, &place),
                ["alias", ref rest @ ..] => {
                    let texts = rest.iter().filter_map(|word| word.split_once('='));
                    texts.for_each(|(_, text)| self.text(text, &place));
                }
                ["cd" | "pushd", ref rest @ ..] => {
                    let directory = rest.iter().find(|word| !word.starts_with('-') && !word.starts_with('+'));
                    self.enter(directory.copied().unwrap_or("~"), &mut place);
                }
                _ => self.command(&words, place.clone()),
            }
        }
    }

    /// env(1)'s `-S`: the words of the text, and then the others.
    fn split(&mut self, text: &str, rest: &[&str], place: &Place) {
        let mut place = place.clone();
        place.texts += 1;
        if place.texts > MOST_TEXTS {
            self.is_nested = true;
            return;
        }
        // Its own escape for a space that parts words.
        let script = shell::read(&text.replace("\\_", " "));
        self.is_unclear |= script.is_unclear;
        for command in &script.commands {
            let words = command.words.iter().map(String::as_str).chain(rest.iter().copied());
            // What stands there is env's own: options, assignments, and then the command.
            let words: Vec<&str> = std::iter::once("env").chain(words).collect();
            self.command(&words, place.clone());
        }
    }

    /// Relative paths may begin there from now on.
    fn enter(&mut self, directory: &str, place: &mut Place) {
        let inside = match directory.starts_with(['/', '~', glob::ANY]) {
            true => directory.to_owned(),
            false => format!("{}/{directory}", place.directories.last().map_or("", String::as_str)),
        };
        match place.directories.len() < MOST_DIRECTORIES {
            true => place.directories.push(inside),
            false => self.is_unclear = true,
        }
    }

    fn assignment(&mut self, word: &str, place: &Place) {
        if is_assignment(word) {
            self.rules(&Argv::read(&["export", word]), place);
        }
    }

    fn rules(&mut self, argv: &Argv<'_>, place: &Place) {
        for number in self.index.of_program(&argv.names) {
            if self.met[number] != Met::Yes {
                let met = matching::meets(self.index.matches(number), argv, &place.directories);
                self.met[number] = self.met[number].max(met);
            }
        }
    }

    /// The files that the program's grammar says something of.
    fn files(&mut self, grammar: &Grammar, argv: &Argv<'_>, place: &Place) {
        let writes = match grammar.writes_if.is_empty() || argv.has_any(&grammar.writes_if) {
            true => &grammar.writes[..],
            false => &[],
        };
        let all: [(Step, &[Which]); 4] = [
            (Step::Read, &grammar.reads),
            (Step::Write, writes),
            (Step::Remove, &grammar.removes),
            (Step::MakeDirectory, &grammar.makes),
        ];
        for (step, which) in all {
            for which in which {
                self.which(step, which, argv, place);
            }
        }
    }

    fn which(&mut self, step: Step, which: &Which, argv: &Argv<'_>, place: &Place) {
        let operands = &argv.operands[..];
        let some = match which {
            Which::All => operands,
            Which::First => operands.get(..1).unwrap_or_default(),
            Which::ButFirst => operands.get(1..).unwrap_or_default(),
            Which::Last => &operands[operands.len().saturating_sub(1)..],
            Which::ButLast => &operands[..operands.len().saturating_sub(1)],
            Which::Into => return self.into(step, argv, place),
            Which::Key(key) => {
                for value in operands.iter().filter_map(|operand| operand.word.strip_prefix(key.as_str())) {
                    self.file_in(step, value, &place.directories);
                }
                return;
            }
            Which::Option(option) => {
                for value in values(argv, option) {
                    self.file_in(step, value, &place.directories);
                }
                return;
            }
        };
        some.iter().for_each(|operand| self.file_in(step, operand.word, &place.directories));
    }

    /// cp(1) and those like it: the last operand, or what would lie in it, or in the directory of `-t`.
    fn into(&mut self, step: Step, argv: &Argv<'_>, place: &Place) {
        let named = ["-t", "--target-directory"].into_iter().flat_map(|option| values(argv, option)).next();
        let (target, sources) = match (named, argv.operands.split_last()) {
            (Some(target), _) => (target, &argv.operands[..]),
            (None, Some((last, sources))) => (last.word, sources),
            (None, None) => return,
        };
        self.file_in(step, target, &place.directories);
        // A name in a directory is of interest where the directory is one of the system's.
        for source in sources {
            let name = source.word.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            if target.len() + name.len() < 4096 {
                self.file_in(step, &format!("{target}/{name}"), &place.directories);
            }
        }
    }

    /// Every path that a program names of which nothing is known.
    fn used(&mut self, words: &[&str], place: &Place) {
        for file in words[1..].iter().flat_map(|word| path::within(word)) {
            self.file_in(Step::Use, file, &place.directories);
        }
    }

    fn file_in(&mut self, step: Step, file: &str, directories: &[String]) {
        // Relative or not, it is looked at from each directory; an absolute one is the same from all.
        let count = if file.starts_with('/') { 1 } else { directories.len() };
        for directory in &directories[..count] {
            let Some(components) = path::components(directory, file) else { continue };
            if path::is_stream(&components) {
                continue;
            }
            for (number, met) in self.index.of_file(step, &components) {
                self.met[number] = self.met[number].max(met);
            }
        }
    }

    /// Whether a program by this name is looked through.
    #[cfg(test)]
    pub(super) fn sees_through(program: &str) -> bool {
        super::programs::grammar(&Names::of(program)).is_some_and(|grammar| grammar.runs.is_some())
    }
}

/// What is behind options, and behind `--`.
fn without_dashes<'a>(words: &'a [&'a str]) -> &'a [&'a str] {
    let begins = words.iter().position(|word| !word.starts_with('-')).unwrap_or(words.len());
    &words[begins..]
}

fn values<'a>(argv: &Argv<'a>, option: &str) -> Vec<&'a str> {
    let wanted = super::argv::Wanted { name: option, exact: false };
    argv.values(&wanted).flatten().collect()
}
