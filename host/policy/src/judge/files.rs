//! Which files a command reads, writes, makes and removes, and what the rules say of that.

use super::super::argv::Argv;
use super::super::glob::{self, Met};
use super::super::path;
use super::super::programs::{Grammar, Which};
use super::super::rule::Step;
use super::{Judge, Place, values};

/// Files of which only a part of the name is known.
const MOST_OPEN_FILES: usize = 4096;

impl Judge<'_> {
    /// The files that the program's grammar says something of.
    pub(super) fn files(&mut self, grammar: &Grammar, argv: &Argv<'_>, place: &Place) {
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
            // Where the target stands in an option, all are sources.
            Which::ButLast if target_option(argv).is_some() => operands,
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
        let named = target_option(argv);
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
    pub(super) fn used(&mut self, words: &[&str], place: &Place) {
        for file in words[1..].iter().flat_map(|word| path::within(word)) {
            self.file_in(Step::Use, file, &place.directories);
        }
    }

    pub(super) fn file_in(&mut self, step: Step, file: &str, directories: &[String]) {
        // Relative or not, it is looked at from each directory; an absolute one is the same from all.
        let count = if file.starts_with('/') { 1 } else { directories.len() };
        for directory in &directories[..count] {
            let Some(components) = path::components(directory, file) else { continue };
            if path::is_stream(&components) {
                continue;
            }
            if glob::is_open(file) {
                self.open_files += 1;
                // Every glob is held against each of these.
                self.is_nested |= self.open_files > MOST_OPEN_FILES;
                if self.open_files > MOST_OPEN_FILES {
                    return;
                }
            }
            for (number, met) in self.index.of_file(step, &components) {
                self.said += usize::from(met != Met::No && !matches!(step, Step::Read | Step::Use));
                self.met[number] = self.met[number].max(met);
            }
        }
    }
}

fn target_option<'a>(argv: &Argv<'a>) -> Option<&'a str> {
    ["-t", "--target-directory"].into_iter().flat_map(|option| values(argv, option)).next()
}
