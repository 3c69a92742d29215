//! Finds the rules that may match: by the program's name, or by the first or last component of a path.

use std::collections::HashMap;

use super::glob::{self, Anchor, Met, Open, PathGlob};
use super::programs::Names;
use super::rule::{Conditions, Match, Step};

/// An index of the rules' conditions. A rule is known by its number.
pub(super) struct Index {
    conditions: Vec<Conditions>,
    by_name: HashMap<String, Vec<usize>>,
    /// Rules with a glob for a name, and rules for every program.
    by_glob: Vec<(String, usize)>,
    files: Vec<(Step, Files)>,
    /// Rules for what all programs of a command line can do together.
    together: Vec<usize>,
}

/// The path globs of one kind of step.
#[derive(Default)]
struct Files {
    globs: Vec<(PathGlob, usize)>,
    by_first: HashMap<String, Vec<usize>>,
    by_last: HashMap<String, Vec<usize>>,
    others: Vec<usize>,
}

impl Index {
    /// Builds the index of the rules' conditions, in the order of the rules.
    pub(super) fn new(all: Vec<Conditions>) -> Self {
        let mut index = Self {
            conditions: Vec::with_capacity(all.len()),
            by_name: HashMap::new(),
            by_glob: Vec::new(),
            files: Vec::new(),
            together: Vec::new(),
        };
        for (number, conditions) in all.into_iter().enumerate() {
            match conditions.are_of_commands() {
                true if conditions.are_of_all_together() => index.together.push(number),
                true => index.add_command(&conditions, number),
                false => index.add_files(&conditions, number),
            }
            index.conditions.push(conditions);
        }
        index
    }

    fn add_command(&mut self, conditions: &Conditions, number: usize) {
        // A rule whose programs can't be told is found for every program, and says what is wrong then.
        let commands = conditions.commands().unwrap_or_default();
        if commands.is_empty() {
            self.by_glob.push(("*".to_owned(), number));
        }
        for name in commands {
            match name.contains(['*', '?']) {
                true => self.by_glob.push((name, number)),
                false => self.by_name.entry(name).or_default().push(number),
            }
        }
    }

    fn add_files(&mut self, conditions: &Conditions, number: usize) {
        let Match { paths: globs, steps, .. } = conditions.made();
        for step in &steps {
            let position = match self.files.iter().position(|(known, _)| known == step) {
                Some(position) => position,
                None => {
                    self.files.push((*step, Files::default()));
                    self.files.len() - 1
                }
            };
            let files = &mut self.files[position].1;
            globs.iter().for_each(|glob| files.add(glob.clone(), number));
        }
    }

    pub(super) fn matches(&self, number: usize) -> &Match {
        self.conditions[number].get()
    }

    /// The rules that may match a program.
    pub(super) fn of_program(&self, names: &Names<'_>) -> impl Iterator<Item = usize> {
        let by_name = names.iter().filter_map(|name| self.by_name.get(name)).flatten().copied();
        let by_glob = self
            .by_glob
            .iter()
            .filter(|(glob, _)| names.iter().any(|name| glob::word(glob, name) != Met::No))
            .map(|(_, number)| *number);
        by_name.chain(by_glob)
    }

    /// The rules for what all programs of a command line can do together.
    pub(super) fn together(&self) -> impl Iterator<Item = usize> {
        self.together.iter().copied()
    }

    /// The rules that match this step on the file.
    pub(super) fn of_file(&self, step: Step, path: &[&str]) -> impl Iterator<Item = (usize, Met)> {
        let files = self.files.iter().filter(move |(known, _)| step.is(*known));
        files.flat_map(move |(_, files)| files.of(path))
    }
}

impl Files {
    fn add(&mut self, glob: PathGlob, number: usize) {
        let position = self.globs.len();
        match glob.anchor() {
            Anchor::First(name) => self.by_first.entry(name.to_owned()).or_default().push(position),
            Anchor::Last(name) => self.by_last.entry(name.to_owned()).or_default().push(position),
            Anchor::None => self.others.push(position),
        }
        self.globs.push((glob, number));
    }

    fn of(&self, path: &[&str]) -> Vec<(usize, Met)> {
        let all;
        let none = Vec::new();
        let open = glob::open(path);
        let candidates: [&[usize]; 3] = match open != Open::No {
            true => {
                all = (0..self.globs.len()).collect::<Vec<_>>();
                [&all, &none, &none]
            }
            false => {
                let first = path.first().and_then(|name| self.by_first.get(*name));
                let last = path.last().and_then(|name| self.by_last.get(*name));
                [first.unwrap_or(&none), last.unwrap_or(&none), &self.others]
            }
        };
        let candidates = candidates.into_iter().flatten();
        candidates
            .map(|position| &self.globs[*position])
            .map(|(glob, number)| (*number, glob.meets(path, open)))
            .filter(|(_, met)| *met != Met::No)
            .collect()
    }
}
