//! Judges a command line and the command lines that it starts, and notes every rule that matches.
//!
//! The text under judgement only gets shorter, and the number of times that the same words are read again is limited, so the
//! time is linear in the argv.

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

/// The number of programs that start each other.
const MAX_NESTED: usize = 64;
/// The number of nested texts for a shell.
const MAX_TEXTS: usize = 8;
/// The number of command lines that are read in a second way.
const MAX_GUESSES: usize = 8;
/// The number of directories that a text for a shell changes into.
const MAX_DIRECTORIES: usize = 8;

/// A word that becomes known only when the command runs.
const ANYTHING: &str = "\u{f8fe}";

/// The kernel's `PATH_MAX`.
const MAX_PATH: usize = 4096;

/// The findings in a command line.
pub(super) struct Judge<'p> {
    index: &'p Index,
    /// Whether each rule matches, by the rules' numbers.
    pub(super) met: Vec<Met>,
    /// True where it can't be told what a text for a shell runs.
    pub(super) is_unclear: bool,
    /// True where too many programs start each other.
    pub(super) is_nested: bool,
    /// True where no rule knows at least one of the programs.
    pub(super) is_unknown: bool,
    /// The number of times that a rule matched which says what a program does.
    rule_matches: usize,
    /// The number of programs and texts that were judged.
    begun: usize,
    guesses: usize,
    open_files: usize,
}

/// The context of a command: its depth, and where its relative paths begin.
#[derive(Clone)]
struct Context {
    programs: usize,
    texts: usize,
    /// The directories in which relative paths may begin.
    directories: Arc<Vec<String>>,
    /// True where further words are added when the command runs, as xargs(1) does.
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
            rule_matches: 0,
            begun: 0,
            guesses: 0,
            open_files: 0,
        }
    }

    /// Judges a command line. Its relative paths may begin in this directory.
    pub(super) fn argv(&mut self, words: &[&str], directory: Option<&str>) {
        let directories = Arc::new(vec!["/".to_owned()]);
        let mut context = Context { programs: 0, texts: 0, directories, is_fed: false };
        directory.into_iter().for_each(|directory| self.enter(directory, &mut context));
        self.command(words, context);
    }

    /// Judges a step on a file.
    pub(super) fn file(&mut self, step: Step, file: &str) {
        self.file_in(step, file, &["/".to_owned()]);
    }

    fn command<'w>(&mut self, mut words: &'w [&'w str], mut context: Context) {
        while let Some(program) = words.first() {
            context.programs += 1;
            self.begun += 1;
            let begun = self.begun;
            if context.programs > MAX_NESTED {
                self.is_nested = true;
                return;
            }
            // Without the program's name nothing can be told.
            self.is_unclear |= glob::is_open(program);
            if let Some(["etc", "init.d", _]) = path::components("/", program).as_deref() {
                let script = program.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                let words: Vec<&str> =
                    ["service", script].into_iter().chain(words[1..].iter().copied()).collect();
                self.command(&words, context);
                return;
            }
            let mut argv = Argv::read(words);
            if context.is_fed {
                argv.operands.push(Operand { word: ANYTHING, at: words.len(), is_maybe_value: false });
            }
            let directories =
                argv.grammar.and_then(|grammar| grammar.runs.as_ref()).map(|runs| &runs.directory[..]);
            for directory in directories.unwrap_or_default().iter().flat_map(|option| values(&argv, option)) {
                self.enter(directory, &mut context);
            }
            let matches_before = self.rule_matches;
            self.rules(&argv, &context);
            self.is_unclear |= super::programs::is_broken();
            let Some(known) = argv.grammar else {
                self.used(words, &context);
                self.is_unknown |= self.rule_matches == matches_before;
                return;
            };
            self.files(known, &argv, &context);
            let is_silent = self.rule_matches == matches_before;
            if let Some(language) = known.script {
                self.script(language, &argv, &context);
            }
            let runs = known.runs.as_ref().filter(|runs| !argv.has_any(&runs.unless));
            let Some(runs) = runs else {
                self.is_unknown |= is_silent;
                return;
            };
            let is_bare = argv.rest.is_empty() && (runs.rest || runs.operand && argv.operands.is_empty());
            context.is_fed |= runs.feeds;
            // Such a program starts a shell, or runs the words that are added.
            let asks = ["--help".to_owned(), "--version".to_owned()];
            self.is_unclear |=
                is_bare && (runs.alone || context.is_fed && !runs.feeds) && !argv.has_any(&asks);
            if runs.assignments {
                argv.operands.iter().for_each(|operand| self.assignment(operand.word, &context));
            }
            self.started(runs, &argv, words, &context);
            if let Some(sign) = runs.feeds.then(|| replaced_sign(&argv)).flatten() {
                let words: Vec<String> = argv.rest.iter().map(|word| word.replace(sign, ANYTHING)).collect();
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                match runs.text {
                    true => self.joined(&words, &context),
                    false => self.command(&words, context),
                }
                return;
            }
            if runs.text {
                return self.joined(argv.rest, &context);
            }
            // flock(1) takes `-c` behind the file, runuser(1) behind the name.
            let is_code = |word: &&str| runs.code.iter().any(|code| code == word);
            let is_program = argv.rest.first().is_some_and(|program| {
                grammar(&Names::of(program)).is_some_and(|grammar| grammar.runs.is_some())
            });
            let code = argv.rest.iter().take(if is_program { 0 } else { 8 }).position(is_code);
            if let Some(text) = code.and_then(|at| argv.rest.get(at + 1)) {
                self.text(text, &context);
            }
            // Behind an unknown option it can't be told where the command begins.
            if argv.is_rest_unsure && !argv.rest.is_empty() {
                self.is_unclear = true;
                if argv.rest.len() > 1 && self.may_guess() {
                    self.command(&argv.rest[1..], context.clone());
                }
            }
            // A program that only starts another one is judged by that one.
            self.is_unknown |= is_silent && argv.rest.is_empty() && self.begun == begun;
            words = argv.rest;
        }
    }

    /// Judges words that the program joins to a text for a shell.
    fn joined(&mut self, words: &[&str], context: &Context) {
        match words {
            [] => {}
            // Without a command, the values of parallel(1) are the commands.
            [sign, values @ ..] if sign.starts_with(":::") => self.text(&values.join("\n"), context),
            words => self.text(&words.join(" "), context),
        }
    }

    /// Judges what a program starts, except the command line behind its own words.
    fn started(&mut self, runs: &Runs, argv: &Argv<'_>, words: &[&str], context: &Context) {
        let operands = || argv.operands.iter().map(|operand| operand.word);
        self.is_unclear |= runs.dialect && argv.has_any(&runs.code);
        match runs.operand {
            true if argv.has_any(&runs.code) => {
                let text = operands().next();
                let attached = runs.code.iter().flat_map(|option| values(argv, option));
                text.into_iter().chain(attached).for_each(|text| self.text(text, context));
            }
            true => {}
            false => {
                let mut texts: Vec<&str> = Vec::new();
                for text in runs.code.iter().flat_map(|option| values(argv, option)) {
                    // An abbreviation may stand for two options, and its text is judged once.
                    if !texts.iter().any(|known| std::ptr::eq(*known, text)) {
                        texts.push(text);
                    }
                }
                texts.iter().for_each(|text| self.text(text, context));
                // su(1) gives the words behind `--` to the shell.
                let mut pairs = argv.operands.windows(2);
                if let Some([_, text]) = pairs.find(|pair| runs.code.iter().any(|code| code == pair[0].word))
                {
                    self.text(text.word, context);
                }
            }
        }
        for text in runs.split.iter().flat_map(|option| values(argv, option)) {
            self.split(text, argv.rest, context);
        }
        for program in runs.program.iter().flat_map(|option| values(argv, option)) {
            let command: Vec<&str> = std::iter::once(program).chain(operands()).collect();
            self.command(&command, context.clone());
        }
        if !runs.exec.is_empty() {
            let mut rest = words;
            while let Some(at) = rest.iter().position(|word| runs.exec.iter().any(|option| option == word)) {
                rest = &rest[at + 1..];
                let end = super::argv::end_of_exec(rest);
                // find(1) puts in a path below its starting point, where there is only one.
                let found = match argv.operands.first().map(|operand| operand.word) {
                    Some(start)
                        if start.starts_with('/')
                            && argv.operands.get(1).is_none_or(|next| !next.word.starts_with('/')) =>
                    {
                        format!("{start}/{ANYTHING}")
                    }
                    _ => ANYTHING.to_owned(),
                };
                self.replaced(&rest[..end], "{}", &found, context);
                rest = &rest[end..];
            }
        }
        for (subcommand, skip) in &runs.after {
            let subcommand: Vec<String> = subcommand.split(' ').map(str::to_owned).collect();
            let abbreviates = argv.grammar.is_some_and(|grammar| grammar.abbreviates);
            let (met, after) = matching::follows(&subcommand, argv, abbreviates);
            if met == Met::No {
                continue;
            }
            let begins =
                argv.operands.get(after.wrapping_sub(1)).map_or(words.len(), |operand| operand.at + 1);
            let behind = &words[begins.min(words.len())..];
            self.command(without_dashes(behind.get(*skip..).unwrap_or_default()), context.clone());
            // `ip -all netns exec` has no name before the command.
            if argv.operands[..after].iter().any(|operand| operand.is_maybe_value) && self.may_guess() {
                self.command(without_dashes(behind), context.clone());
            }
        }
        if let Some(subcommand) = argv.operands.first()
            && runs.text_after.iter().any(|name| name == subcommand.word)
        {
            let words: Vec<&str> = operands().skip(1).collect();
            self.text(&words.join(" "), context);
        }
    }

    /// Judges a command after replacing `sign` in its words.
    fn replaced(&mut self, words: &[&str], sign: &str, with: &str, context: &Context) {
        let words: Vec<String> = words.iter().map(|word| word.replace(sign, with)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.command(&words, context.clone());
    }

    fn may_guess(&mut self) -> bool {
        self.guesses += 1;
        self.is_nested |= self.guesses > MAX_GUESSES;
        self.guesses <= MAX_GUESSES
    }

    /// Forgets every rule that only may match.
    pub fn keep_certain(&mut self) {
        self.met.iter_mut().filter(|met| **met == Met::Maybe).for_each(|met| *met = Met::No);
        (self.is_unclear, self.is_nested) = (false, false);
    }

    /// Judges a text that a shell reads.
    fn text(&mut self, text: &str, context: &Context) {
        let mut context = context.clone();
        context.texts += 1;
        if context.texts > MAX_TEXTS {
            self.is_nested = true;
            return;
        }
        self.begun += 1;
        let script = shell::read(text);
        self.is_unclear |= script.is_unclear;
        for command in &script.commands {
            for redirect in &command.redirects {
                let step = if redirect.writes { Step::WriteUnread } else { Step::Read };
                self.file_in(step, &redirect.file, &context.directories);
            }
            let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
            self.command(&words, context.clone());
            match without_builtin(&words) {
                ["eval", rest @ ..] => self.text(&rest.join(" "), &context),
                ["cd" | "pushd", rest @ ..] => {
                    let directory = rest.iter().find(|word| !word.starts_with('-') && !word.starts_with('+'));
                    self.enter(directory.copied().unwrap_or("~"), &mut context);
                }
                ["trap", text, _, ..] => self.text(text, &context),
                ["alias", rest @ ..] => {
                    let texts = rest.iter().filter_map(|word| word.split_once('='));
                    texts.for_each(|(_, text)| self.text(text, &context));
                }
                _ => {}
            }
        }
    }

    /// Judges a script for sed or awk.
    fn script(&mut self, language: Language, argv: &Argv<'_>, context: &Context) {
        let (_, files) = language.options();
        let is_given = |option: &&str| argv.values(&Wanted { name: option, exact: false }).next().is_some();
        let (text, _) = argv.script(language);
        let script = Script::read(language, &text);
        self.is_unclear |= script.is_unclear || glob::is_open(&text) || files.iter().any(is_given);
        script.reads.iter().for_each(|file| self.file_in(Step::Read, file, &context.directories));
        script.writes.iter().for_each(|file| self.file_in(Step::WriteUnread, file, &context.directories));
        script.runs.iter().for_each(|text| self.text(text, context));
    }

    /// Judges env(1)'s `-S`: the words of the text, followed by the other words.
    fn split(&mut self, text: &str, rest: &[&str], context: &Context) {
        let mut context = context.clone();
        context.texts += 1;
        if context.texts > MAX_TEXTS {
            self.is_nested = true;
            return;
        }
        // env(1)'s own escape for a space between words.
        let script = shell::read(&text.replace("\\_", " "));
        self.is_unclear |= script.is_unclear;
        for command in &script.commands {
            let words = command.words.iter().map(String::as_str).chain(rest.iter().copied());
            // The text may have options of env and assignments before the command.
            let words: Vec<&str> = std::iter::once("env").chain(words).collect();
            self.command(&words, context.clone());
        }
    }

    /// Notes a directory in which relative paths may begin from now on.
    fn enter(&mut self, directory: &str, context: &mut Context) {
        let inside = match directory.starts_with(['/', '~', glob::ANY]) {
            true => directory.to_owned(),
            false => format!("{}/{directory}", context.directories.last().map_or("", String::as_str)),
        };
        match context.directories.len() < MAX_DIRECTORIES && inside.len() <= MAX_PATH {
            true => Arc::make_mut(&mut context.directories).push(inside),
            false => self.is_unclear = true,
        }
    }

    fn assignment(&mut self, word: &str, context: &Context) {
        if word.contains('=') {
            self.rules(&Argv::read(&["export", word]), context);
        }
    }

    fn rules(&mut self, argv: &Argv<'_>, context: &Context) {
        for number in self.index.of_program(&argv.names) {
            let met = matching::meets(self.index.matches(number), argv, &context.directories);
            self.rule_matches += usize::from(met != Met::No);
            self.met[number] = self.met[number].max(met);
        }
    }
}

/// The words without `command` and `builtin`, which only name a shell's own command.
fn without_builtin<'a>(words: &'a [&'a str]) -> &'a [&'a str] {
    let begins =
        words.iter().position(|word| !matches!(*word, "command" | "builtin" | "--")).unwrap_or(words.len());
    &words[begins..]
}

/// The sign that xargs(1) or parallel(1) replaces by the words that it adds, where it doesn't add them at the end.
fn replaced_sign<'a>(argv: &Argv<'a>) -> Option<&'a str> {
    let options = ["-I", "-i", "--replace"].into_iter();
    let given: Vec<Option<&str>> =
        options.flat_map(|name| argv.values(&Wanted { name, exact: false }).collect::<Vec<_>>()).collect();
    let sign = given.last().map(|sign| sign.filter(|sign| !sign.is_empty()).unwrap_or("{}"));
    // parallel(1) replaces `{}` without an option.
    sign.or(argv.rest.iter().any(|word| word.contains("{}")).then_some("{}"))
}

/// The words behind options and behind `--`.
fn without_dashes<'a>(words: &'a [&'a str]) -> &'a [&'a str] {
    let begins = words.iter().position(|word| !word.starts_with('-')).unwrap_or(words.len());
    &words[begins..]
}

fn values<'a>(argv: &Argv<'a>, option: &str) -> Vec<&'a str> {
    let wanted = super::argv::Wanted { name: option, exact: false };
    argv.values(&wanted).flatten().collect()
}
