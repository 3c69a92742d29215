//! Judges the files that a command reads, writes, creates and removes.

use super::super::argv::Argv;
use super::super::glob::{self, Met};
use super::super::path;
use super::super::programs::{Grammar, Which};
use super::super::rule::Step;
use super::{Context, Judge, values};

/// The number of files of whose names only a part is known. Every glob is matched against each of them.
const MAX_OPEN_FILES: usize = 4096;

impl Judge<'_> {
    /// Judges the files that the program's grammar names.
    pub(super) fn files(&mut self, grammar: &Grammar, argv: &Argv<'_>, context: &Context) {
        let writes = match grammar.writes_if.is_empty() || argv.has_any(&grammar.writes_if) {
            true => &grammar.writes[..],
            false => &[],
        };
        let all: [(Step, &[Which]); 4] = [
            (Step::Read, &grammar.reads),
            (Step::WriteUnread, writes),
            (Step::Remove, &grammar.removes),
            (Step::MakeDirectory, &grammar.makes),
        ];
        for (step, which) in all {
            for which in which {
                self.which(step, which, argv, context);
            }
        }
    }

    fn which(&mut self, step: Step, which: &Which, argv: &Argv<'_>, context: &Context) {
        let operands = &argv.operands[..];
        let some = match which {
            Which::All => operands,
            Which::First => operands.get(..1).unwrap_or_default(),
            Which::ButFirst => operands.get(1..).unwrap_or_default(),
            Which::Last => &operands[operands.len().saturating_sub(1)..],
            // Where an option names the target, all operands are sources.
            Which::ButLast if target_option(argv).is_some() => operands,
            Which::ButLast => &operands[..operands.len().saturating_sub(1)],
            Which::Into => return self.into(step, argv, context),
            Which::Key(key) => {
                for value in operands.iter().filter_map(|operand| operand.word.strip_prefix(key.as_str())) {
                    self.file_in(step, value, &context.directories);
                }
                return;
            }
            Which::Option(option) => {
                for value in values(argv, option) {
                    self.file_in(step, value, &context.directories);
                }
                return;
            }
        };
        some.iter().for_each(|operand| self.file_in(step, operand.word, &context.directories));
    }

    /// Judges the target of cp(1) and similar programs: the last operand or the directory of `-t`, and the files in it that
    /// have the names of the sources.
    fn into(&mut self, step: Step, argv: &Argv<'_>, context: &Context) {
        let named = target_option(argv);
        let (target, sources) = match (named, argv.operands.split_last()) {
            (Some(target), _) => (target, &argv.operands[..]),
            (None, Some((last, sources))) => (last.word, sources),
            (None, None) => return,
        };
        self.file_in(step, target, &context.directories);
        for source in sources {
            let name = source.word.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            if target.len() + name.len() < 4096 {
                self.file_in(step, &format!("{target}/{name}"), &context.directories);
            }
        }
    }

    /// Judges every path in the command line of an unknown program.
    pub(super) fn used(&mut self, words: &[&str], context: &Context) {
        for file in words[1..].iter().flat_map(|word| path::within(word)) {
            self.file_in(Step::Use, file, &context.directories);
        }
    }

    pub(super) fn file_in(&mut self, step: Step, file: &str, directories: &[String]) {
        // A relative path is judged in each directory. An absolute one is the same in all of them.
        let count = if file.starts_with('/') { 1 } else { directories.len() };
        for directory in &directories[..count] {
            let Some(components) = path::components(directory, file) else { continue };
            if path::is_stream(&components) {
                continue;
            }
            if glob::is_open(file) {
                self.open_files += 1;
                self.is_nested |= self.open_files > MAX_OPEN_FILES;
                if self.open_files > MAX_OPEN_FILES {
                    return;
                }
            }
            for (number, met) in self.index.of_file(step, &components) {
                self.rule_matches += usize::from(met != Met::No && !matches!(step, Step::Read | Step::Use));
                self.met[number] = self.met[number].max(met);
            }
        }
    }
}

fn target_option<'a>(argv: &Argv<'a>) -> Option<&'a str> {
    ["-t", "--target-directory"].into_iter().flat_map(|option| values(argv, option)).next()
}
