//! One verdict in the making: goes from a command line to those that it starts, and notes every rule that is met.
//!
//! What is looked at only ever gets shorter, and every way to look at the same words again is counted, so that the time
//! is linear in the argv.

mod files;

use std::sync::Arc;

use super::argv::{Argv, Operand, Wanted};
use super::glob::{self, Met};
use super::index::Index;
use super::matching;
use super::path;
use super::programs::{Names, Runs, grammar};
use super::rule::Step;
use super::script::{Language, Script};
use super::shell;

/// Programs that start each other.
const MOST_NESTED: usize = 64;
/// Texts for a shell within each other.
const MOST_TEXTS: usize = 8;
/// Command lines that can be read in two ways.
const MOST_GUESSES: usize = 8;
/// Directories that a text for a shell changes into.
const MOST_DIRECTORIES: usize = 8;

/// A word that nobody knows yet.
const ANYTHING: &str = "\u{f8fe}";

/// The kernel's `PATH_MAX`.
const MOST_PATH: usize = 4096;

/// What was found.
pub(super) struct Judge<'p> {
    index: &'p Index,
    /// By the rules' numbers.
    pub(super) met: Vec<Met>,
    /// A text for a shell, or a part of it, says what can't be told here.
    pub(super) is_unclear: bool,
    /// Too many programs start each other.
    pub(super) is_nested: bool,
    /// No rule says anything of one program at least.
    pub(super) is_unknown: bool,
    /// The number of times that a rule was met which says what a program does.
    said: usize,
    /// Programs and texts that were looked at.
    begun: usize,
    guesses: usize,
    open_files: usize,
}

/// How deep, and where.
#[derive(Clone)]
struct Place {
    programs: usize,
    texts: usize,
    /// Where relative paths may begin.
    directories: Arc<Vec<String>>,
    /// Further words are added that nobody knows, as xargs(1) does.
    is_fed: bool,
}

impl<'p> Judge<'p> {
    pub(super) fn new(index: &'p Index, rules: usize) -> Self {
        Self {
            index,
            met: vec![Met::No; rules],
            is_unclear: false,
            is_nested: false,
            is_unknown: false,
            said: 0,
            begun: 0,
            guesses: 0,
            open_files: 0,
        }
    }

    /// Judges a command line. Its relative paths may begin in that directory, or where nobody knows.
    pub(super) fn argv(&mut self, words: &[&str], directory: Option<&str>) {
        let directories = Arc::new(vec!["/".to_owned()]);
        let mut place = Place { programs: 0, texts: 0, directories, is_fed: false };
        directory.into_iter().for_each(|directory| self.enter(directory, &mut place));
        self.command(words, place);
    }

    /// Judges what is done with a file.
    pub(super) fn file(&mut self, step: Step, file: &str) {
        self.file_in(step, file, &["/".to_owned()]);
    }

    fn command<'w>(&mut self, mut words: &'w [&'w str], mut place: Place) {
        while let Some(program) = words.first() {
            place.programs += 1;
            self.begun += 1;
            let begun = self.begun;
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
            let mut argv = Argv::read(words);
            if place.is_fed {
                argv.operands.push(Operand { word: ANYTHING, at: words.len(), is_maybe_value: false });
            }
            let directories =
                argv.grammar.and_then(|grammar| grammar.runs.as_ref()).map(|runs| &runs.directory[..]);
            for directory in directories.unwrap_or_default().iter().flat_map(|option| values(&argv, option)) {
                self.enter(directory, &mut place);
            }
            let said = self.said;
            self.rules(&argv, &place);
            self.is_unclear |= super::programs::is_broken();
            let Some(known) = argv.grammar else {
                self.used(words, &place);
                self.is_unknown |= self.said == said;
                return;
            };
            self.files(known, &argv, &place);
            let is_silent = self.said == said;
            if let Some(language) = known.script {
                self.script(language, &argv, &place);
            }
            let runs = known.runs.as_ref().filter(|runs| !argv.has_any(&runs.unless));
            let Some(runs) = runs else {
                self.is_unknown |= is_silent;
                return;
            };
            let is_bare = argv.rest.is_empty() && (runs.rest || runs.operand && argv.operands.is_empty());
            place.is_fed |= runs.feeds;
            // A shell of its own, or whatever is added.
            let asks = ["--help".to_owned(), "--version".to_owned()];
            self.is_unclear |= is_bare && (runs.alone || place.is_fed && !runs.feeds) && !argv.has_any(&asks);
            if runs.assignments {
                argv.operands.iter().for_each(|operand| self.assignment(operand.word, &place));
            }
            self.started(runs, &argv, words, &place);
            if let Some(sign) = runs.feeds.then(|| replaced_sign(&argv)).flatten() {
                let words: Vec<String> = argv.rest.iter().map(|word| word.replace(sign, ANYTHING)).collect();
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                match runs.text {
                    true => self.joined(&words, &place),
                    false => self.command(&words, place),
                }
                return;
            }
            if runs.text {
                return self.joined(argv.rest, &place);
            }
            // flock(1) takes it behind the file, runuser(1) behind the name.
            let is_code = |word: &&str| runs.code.iter().any(|code| code == word);
            let is_program = argv.rest.first().is_some_and(|program| {
                grammar(&Names::of(program)).is_some_and(|grammar| grammar.runs.is_some())
            });
            let code = argv.rest.iter().take(if is_program { 0 } else { 8 }).position(is_code);
            if let Some(text) = code.and_then(|at| argv.rest.get(at + 1)) {
                self.text(text, &place);
            }
            // Where the command begins can't be told behind an option that nobody knows.
            if argv.is_rest_unsure && !argv.rest.is_empty() {
                self.is_unclear = true;
                if argv.rest.len() > 1 && self.may_guess() {
                    self.command(&argv.rest[1..], place.clone());
                }
            }
            // A program that only starts another one is judged by that one.
            self.is_unknown |= is_silent && argv.rest.is_empty() && self.begun == begun;
            words = argv.rest;
        }
    }

    /// Judges words that are joined to a text for a shell.
    fn joined(&mut self, words: &[&str], place: &Place) {
        match words {
            [] => {}
            // What stands for the values of parallel(1) is the command where there is no other.
            [sign, values @ ..] if sign.starts_with(":::") => self.text(&values.join("\n"), place),
            words => self.text(&words.join(" "), place),
        }
    }

    /// What is started by a program, but for the words behind its own.
    fn started(&mut self, runs: &Runs, argv: &Argv<'_>, words: &[&str], place: &Place) {
        let operands = || argv.operands.iter().map(|operand| operand.word);
        self.is_unclear |= runs.dialect && argv.has_any(&runs.code);
        match runs.operand {
            true if argv.has_any(&runs.code) => {
                let text = operands().next();
                let attached = runs.code.iter().flat_map(|option| values(argv, option));
                text.into_iter().chain(attached).for_each(|text| self.text(text, place));
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
                let end = super::argv::end_of_exec(rest);
                // Below where it looks, where that is one place.
                let found = match argv.operands.first().map(|operand| operand.word) {
                    Some(start)
                        if start.starts_with('/')
                            && argv.operands.get(1).is_none_or(|next| !next.word.starts_with('/')) =>
                    {
                        format!("{start}/{ANYTHING}")
                    }
                    _ => ANYTHING.to_owned(),
                };
                self.replaced(&rest[..end], "{}", &found, place);
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

    /// Judges a command in whose words something is put that is known only later.
    fn replaced(&mut self, words: &[&str], sign: &str, with: &str, place: &Place) {
        let words: Vec<String> = words.iter().map(|word| word.replace(sign, with)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.command(&words, place.clone());
    }

    fn may_guess(&mut self) -> bool {
        self.guesses += 1;
        self.is_nested |= self.guesses > MOST_GUESSES;
        self.guesses <= MOST_GUESSES
    }

    /// Forgets whatever isn't sure.
    pub fn only_certain(&mut self) {
        self.met.iter_mut().filter(|met| **met == Met::Maybe).for_each(|met| *met = Met::No);
        (self.is_unclear, self.is_nested) = (false, false);
    }

    /// Judges a text that a shell reads.
    fn text(&mut self, text: &str, place: &Place) {
        let mut place = place.clone();
        place.texts += 1;
        if place.texts > MOST_TEXTS {
            self.is_nested = true;
            return;
        }
        self.begun += 1;
        let script = shell::read(text);
        self.is_unclear |= script.is_unclear;
        for command in &script.commands {
            for redirect in &command.redirects {
                let step = if redirect.writes { Step::Write } else { Step::Read };
                self.file_in(step, &redirect.file, &place.directories);
            }
            let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
            self.command(&words, place.clone());
            match without_builtin(&words) {
                ["eval", rest @ ..] => self.text(&rest.join(" "), &place),
                ["cd" | "pushd", rest @ ..] => {
                    let directory = rest.iter().find(|word| !word.starts_with('-') && !word.starts_with('+'));
                    self.enter(directory.copied().unwrap_or("~"), &mut place);
                }
                ["trap", text, _, ..] => self.text(text, &place),
                ["alias", rest @ ..] => {
                    let texts = rest.iter().filter_map(|word| word.split_once('='));
                    texts.for_each(|(_, text)| self.text(text, &place));
                }
                _ => {}
            }
        }
    }

    /// Judges what a script for sed or awk does.
    fn script(&mut self, language: Language, argv: &Argv<'_>, place: &Place) {
        let (given, files) = language.options();
        let is_given = |option: &&str| argv.values(&Wanted { name: option, exact: false }).next().is_some();
        let mut texts: Vec<&str> = given.iter().flat_map(|option| values(argv, option)).collect();
        if texts.is_empty() {
            texts.extend(argv.operands.first().map(|operand| operand.word));
        }
        let text = texts.join("\n");
        let script = Script::read(language, &text);
        self.is_unclear |= script.is_unclear || glob::is_open(&text) || files.iter().any(is_given);
        script.reads.iter().for_each(|file| self.file_in(Step::Read, file, &place.directories));
        script.writes.iter().for_each(|file| self.file_in(Step::Write, file, &place.directories));
        script.runs.iter().for_each(|text| self.text(text, place));
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
        match place.directories.len() < MOST_DIRECTORIES && inside.len() <= MOST_PATH {
            true => Arc::make_mut(&mut place.directories).push(inside),
            false => self.is_unclear = true,
        }
    }

    fn assignment(&mut self, word: &str, place: &Place) {
        if word.contains('=') {
            self.rules(&Argv::read(&["export", word]), place);
        }
    }

    fn rules(&mut self, argv: &Argv<'_>, place: &Place) {
        for number in self.index.of_program(&argv.names) {
            let met = matching::meets(self.index.matches(number), argv, &place.directories);
            self.said += usize::from(met != Met::No);
            self.met[number] = self.met[number].max(met);
        }
    }
}

/// What a shell does itself, whether or not it is told to.
fn without_builtin<'a>(words: &'a [&'a str]) -> &'a [&'a str] {
    let begins =
        words.iter().position(|word| !matches!(*word, "command" | "builtin" | "--")).unwrap_or(words.len());
    &words[begins..]
}

/// What stands for the words that xargs(1) or parallel(1) adds, where they aren't added at the end.
fn replaced_sign<'a>(argv: &Argv<'a>) -> Option<&'a str> {
    let options = ["-I", "-i", "--replace"].into_iter();
    let given: Vec<Option<&str>> =
        options.flat_map(|name| argv.values(&Wanted { name, exact: false }).collect::<Vec<_>>()).collect();
    let sign = given.last().map(|sign| sign.filter(|sign| !sign.is_empty()).unwrap_or("{}"));
    // parallel(1) takes it without being told to.
    sign.or(argv.rest.iter().any(|word| word.contains("{}")).then_some("{}"))
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
