//! Finds where a hunk fits: at its line, or at the only other place of the file that has its lines.
//!
//! A hunk with the usual context on one side of its change only was made at an end of its file, and fits only there, as
//! patch(1) has it.
//!
//! Every line of the hunk has to be there. Only the ends of lines may differ, so that a diff with `\n` fits a file with
//! `\r\n`.
//!
//! A line that holds a secret is compared as the host shows it, with `[redacted]` in the secret's place, and fits context
//! only. Whoever makes the diff has seen that form, so that neither a fit nor a conflict tells anything about the secret. A
//! guess at the line never fits, whether it is right or wrong.

use std::cell::OnceCell;
use std::hash::{DefaultHasher, Hasher};

use super::parse::{Hunk, Line, Tag};
use crate::lines::{Lines, without_cr};

/// The most comparisons of lines in one file. They take less than a second.
const MOST_COMPARED: u64 = 50_000_000;
/// The number of places that are told where a hunk fits several.
const PLACES: usize = 5;
/// The number of places that are looked at for the one that fits best.
const NEAR: usize = 50;
/// The lines of context that diff(1) puts on each side of a change.
const CONTEXT: usize = 3;

/// The place where a hunk fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's line where it begins, from 0.
    pub at: usize,
    /// Whether the ends of some lines differ.
    pub is_loose: bool,
}

/// The reason why a hunk fits nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The best place has other lines.
    Different {
        /// The line of the file where the hunk should begin, from 0.
        at: usize,
        /// The first of the hunk's lines that differs.
        differs: usize,
        /// True where the file's line holds a secret.
        is_hidden: bool,
    },
    /// It fits several places, and its own line is none of them.
    Ambiguous(Vec<usize>),
    /// The file has the new lines already, here.
    Done(usize),
    /// It only adds lines, and has none that says where.
    NoContext,
    /// The hunk that comes before it in the diff fits below it.
    OutOfOrder(usize),
    /// It was made at an end of the file, and its lines are elsewhere by now.
    NotAtEnd {
        /// True where it was made at the beginning.
        is_beginning: bool,
        /// The place of its lines.
        at: usize,
    },
    /// Too many hunks have to be searched for.
    TooMany,
}

/// Searches in one file.
pub struct Locator<'a> {
    file: &'a Lines<'a>,
    /// The hash of each line with the line's number, sorted.
    index: OnceCell<Vec<(u32, u32)>>,
    compared: std::cell::Cell<u64>,
}

impl<'a> Locator<'a> {
    pub fn new(file: &'a Lines<'a>) -> Self {
        Self { file, index: OnceCell::new(), compared: Default::default() }
    }

    /// Finds a hunk. It begins at line `least` or below; the hunks before it moved by `offset` lines.
    pub fn find(&self, hunk: &Hunk<'_>, least: usize, offset: isize) -> Result<Place, Miss> {
        let place = self.place(hunk, least, offset)?;
        let (before, after) = context(hunk);
        // A diff has as much context on both sides of a change, except at the ends of its file.
        let is_last = after == 0 && before >= CONTEXT;
        let is_first = before == 0 && after >= CONTEXT && hunk.old_start.is_some_and(|start| start <= 1);
        let is_elsewhere =
            (is_first && place.at > 0) || (is_last && place.at + hunk.old_lines().len() < self.file.len());
        match is_elsewhere {
            true => Err(Miss::NotAtEnd { is_beginning: is_first, at: place.at }),
            false => Ok(place),
        }
    }

    fn place(&self, hunk: &Hunk<'_>, least: usize, offset: isize) -> Result<Place, Miss> {
        let old = hunk.old_lines();
        if old.is_empty() {
            return if self.file.is_empty() {
                Ok(Place { at: 0, is_loose: false })
            } else {
                Err(self.no_context(hunk))
            };
        }
        let stated = hunk.old_start.map(|start| start.saturating_sub(1));
        let moved = stated.and_then(|stated| stated.checked_add_signed(offset));
        let own = [moved, stated];
        for at in own.into_iter().flatten().filter(|at| *at >= least) {
            if let Some(is_loose) = self.fit(&old, at) {
                return Ok(Place { at, is_loose });
            }
        }
        let Some(places) = self.all(&old) else { return Err(Miss::TooMany) };
        let below: Vec<Place> = places.iter().copied().filter(|place| place.at >= least).collect();
        let exact: Vec<Place> = below.iter().copied().filter(|place| !place.is_loose).collect();
        match (&below[..], &exact[..]) {
            ([only], _) | (_, [only]) => Ok(*only),
            ([], _) => Err(self.miss(hunk, &old, &places, moved.or(stated).unwrap_or(least))),
            (several, _) => Err(Miss::Ambiguous(several.iter().take(PLACES).map(|place| place.at).collect())),
        }
    }

    fn no_context(&self, hunk: &Hunk<'_>) -> Miss {
        self.done(hunk).unwrap_or(Miss::NoContext)
    }

    fn miss(&self, hunk: &Hunk<'_>, old: &[Line<'_>], above: &[Place], expected: usize) -> Miss {
        if let Some(done) = self.done(hunk) {
            return done;
        }
        if let [first, ..] = above {
            return Miss::OutOfOrder(first.at);
        }
        let at = self.nearest(old, expected).min(self.file.len());
        let differs = (0..old.len()).find(|index| self.fits(&old[*index], at + index).is_none()).unwrap_or(0);
        Miss::Different { at, differs, is_hidden: self.file.is_hidden(at + differs) }
    }

    /// The place that has the new lines already.
    fn done(&self, hunk: &Hunk<'_>) -> Option<Miss> {
        let new = hunk.new_lines();
        let is_change = hunk.lines().any(|line| line.tag != Tag::Context);
        let adds = hunk.lines().any(|line| line.tag == Tag::Add);
        // Without new lines, the context alone would have to tell that lines are gone.
        if !is_change || !adds {
            return None;
        }
        match self.all(&new)?[..] {
            [only] => Some(Miss::Done(only.at)),
            _ => None,
        }
    }

    /// All places where the lines are. It stops at a number of them. None where the search takes too long.
    fn all(&self, wanted: &[Line<'_>]) -> Option<Vec<Place>> {
        let Some((index, range)) = self.rarest(wanted) else { return Some(Vec::new()) };
        let mut places = Vec::new();
        for (_, line) in &self.index()[range] {
            if self.compared.get() > MOST_COMPARED {
                return None;
            }
            let Some(at) = (*line as usize).checked_sub(index) else { continue };
            if let Some(is_loose) = self.fit(wanted, at) {
                places.push(Place { at, is_loose });
            }
            if places.len() > 2 * PLACES {
                break;
            }
        }
        Some(places)
    }

    /// The line that the file has least often, and its entries in the index. None where the file lacks one of the lines.
    fn rarest(&self, wanted: &[Line<'_>]) -> Option<(usize, std::ops::Range<usize>)> {
        let mut rarest: Option<(usize, std::ops::Range<usize>)> = None;
        for (index, line) in wanted.iter().enumerate() {
            let range = self.entries(line);
            if range.is_empty() {
                return None;
            }
            if rarest.as_ref().is_none_or(|(_, known)| range.len() < known.len()) {
                rarest = Some((index, range));
            }
        }
        rarest
    }

    fn entries(&self, line: &Line<'_>) -> std::ops::Range<usize> {
        let hash = hash(line.text.as_bytes());
        let index = self.index();
        index.partition_point(|(known, _)| *known < hash)..index.partition_point(|(known, _)| *known <= hash)
    }

    fn index(&self) -> &[(u32, u32)] {
        self.index.get_or_init(|| {
            // What is found must not depend on a secret.
            let known = |at: usize| self.file.redacted(at).map_or(self.file.line(at), str::as_bytes);
            let mut index: Vec<_> = (0..self.file.len()).map(|at| (hash(known(at)), at as u32)).collect();
            index.sort_unstable();
            index
        })
    }

    /// Whether all lines are at a place. The result says whether the ends of lines differ.
    fn fit(&self, wanted: &[Line<'_>], at: usize) -> Option<bool> {
        let mut is_loose = false;
        for (index, line) in wanted.iter().enumerate() {
            self.compared.set(self.compared.get() + 1);
            is_loose |= self.fits(line, at + index)?;
        }
        Some(is_loose)
    }

    fn fits(&self, line: &Line<'_>, at: usize) -> Option<bool> {
        if at >= self.file.len() {
            return None;
        }
        let own = match self.file.redacted(at) {
            None => self.file.line(at),
            Some(shown) if line.tag == Tag::Context => shown.as_bytes(),
            Some(_) => return None,
        };
        let wanted = line.text.as_bytes();
        if own == wanted {
            return Some(self.file.has_newline(at) != line.newline);
        }
        (without_cr(own) == without_cr(wanted)).then_some(true)
    }

    /// The place with the most of the lines; of several, the one nearest to where they are expected.
    fn nearest(&self, old: &[Line<'_>], expected: usize) -> usize {
        let mut ranges: Vec<_> =
            old.iter().enumerate().map(|(index, line)| (index, self.entries(line))).collect();
        ranges.retain(|(_, range)| !range.is_empty());
        ranges.sort_by_key(|(_, range)| range.len());
        let places = ranges.iter().take(NEAR).flat_map(|(index, range)| {
            let near = self.index()[range.clone()].iter().take(NEAR);
            near.filter_map(move |(_, line)| (*line as usize).checked_sub(*index))
        });
        let score =
            |at: usize| (0..old.len()).filter(|index| self.fits(&old[*index], at + index).is_some()).count();
        let places = std::iter::once(expected).chain(places).take(NEAR);
        let best = places.map(|at| (score(at), std::cmp::Reverse(at.abs_diff(expected)), at)).max();
        best.map_or(expected, |(.., at)| at)
    }
}

/// The numbers of lines of context before the first change of a hunk and after its last one.
fn context(hunk: &Hunk<'_>) -> (usize, usize) {
    let tags: Vec<Tag> = hunk.lines().map(|line| line.tag).collect();
    let is_context = |tag: &&Tag| **tag == Tag::Context;
    (tags.iter().take_while(is_context).count(), tags.iter().rev().take_while(is_context).count())
}

/// A hash of a line without its end.
fn hash(line: &[u8]) -> u32 {
    let mut hasher = DefaultHasher::new();
    hasher.write(without_cr(line));
    hasher.finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::parse::parse;

    fn find(file: &str, hunk: &str) -> Result<Place, Miss> {
        let lines = Lines::new(file.as_bytes()).unwrap();
        Locator::new(&lines).find(&parse(hunk).unwrap()[0].hunks[0], 0, 0)
    }

    #[test]
    fn a_hunk_fits_its_line_or_the_only_other_place() {
        let file = "a\nb\nc\nd\nb\ne\nf\n";
        for (hunk, expected) in [
            ("@@ -2,2 +2,2 @@\n b\n-c\n+x\n", Ok(1)),
            ("@@ -3,2 +3,2 @@\n b\n-c\n+x\n", Ok(1)),
            ("@@ -90,2 +90,2 @@\n b\n-e\n+x\n", Ok(4)),
            ("@@ @@\n b\n-e\n+x\n", Ok(4)),
            // Its own line decides between places.
            ("@@ -5 +5 @@\n-b\n+x\n", Ok(4)),
            ("@@ -4 +4 @@\n-b\n+x\n", Err(Miss::Ambiguous(vec![1, 4]))),
            ("@@ @@\n-b\n+x\n", Err(Miss::Ambiguous(vec![1, 4]))),
            ("@@ -1,2 +1,3 @@\n a\n+x\n c\n", Err(Miss::Different { at: 0, differs: 1, is_hidden: false })),
            (
                "@@ -6,3 +6,3 @@\n e\n f\n-g\n+h\n",
                Err(Miss::Different { at: 5, differs: 2, is_hidden: false }),
            ),
            ("@@ -3,1 +3,2 @@\n b\n+e\n", Err(Miss::Ambiguous(vec![1, 4]))),
            ("@@ -3,2 +3,3 @@\n c\n+d\n e\n", Err(Miss::Different { at: 2, differs: 1, is_hidden: false })),
            ("@@ -1,2 +1,3 @@\n b\n+c\n d\n", Err(Miss::Done(1))),
            ("@@ -1,0 +2 @@\n+x\n", Err(Miss::NoContext)),
            ("@@ -1,0 +2 @@\n+c\n", Err(Miss::Done(2))),
        ] {
            assert_eq!(find(file, hunk).map(|place| place.at), expected, "{hunk}");
        }
        assert_eq!(find("", "@@ -0,0 +1 @@\n+x\n"), Ok(Place { at: 0, is_loose: false }));
    }

    #[test]
    fn only_the_ends_of_lines_may_differ() {
        for (file, hunk, expected) in [
            ("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", Ok(true)),
            ("a\nb\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", Ok(true)),
            ("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", Ok(false)),
            ("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", Ok(true)),
            ("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline\n+c\n", Ok(false)),
            (
                "a\nb \n",
                "@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
                Err(Miss::Different { at: 0, differs: 1, is_hidden: false }),
            ),
            (
                "a\n\tb\n",
                "@@ -1,2 +1,2 @@\n a\n-  b\n+c\n",
                Err(Miss::Different { at: 0, differs: 1, is_hidden: false }),
            ),
        ] {
            assert_eq!(find(file, hunk).map(|place| place.is_loose), expected, "{hunk}");
        }
    }

    #[test]
    fn a_line_with_a_secret_fits_as_it_is_shown_and_no_guess_at_it_does() {
        let lines = Lines::new(b"a\npassword=x\nb\n").unwrap().with_secret_at(1, "password=[redacted]");
        let find = |hunk: &str| Locator::new(&lines).find(&parse(hunk).unwrap()[0].hunks[0], 0, 0);
        let refused = |at, differs| Err(Miss::Different { at, differs, is_hidden: true });
        for (hunk, expected) in [
            // The right guess and the wrong one are answered alike.
            ("@@ -1,3 +1,3 @@\n a\n-password=x\n+c\n b\n", refused(0, 1)),
            ("@@ -1,3 +1,3 @@\n a\n-password=y\n+c\n b\n", refused(0, 1)),
            ("@@ -1,3 +1,3 @@\n a\n password=x\n-b\n+c\n", refused(0, 1)),
            ("@@ -1,3 +1,3 @@\n a\n password=y\n-b\n+c\n", refused(0, 1)),
            ("@@ -1,2 +1,3 @@\n a\n+password=x\n b\n", refused(0, 1)),
            // The line itself can't be changed.
            ("@@ -1,3 +1,3 @@\n a\n-password=[redacted]\n+c\n b\n", refused(0, 1)),
            ("@@ -1,3 +1,3 @@\n a\n password=[redacted]\n-b\n+c\n", Ok(0)),
            ("@@ -9,2 +9,2 @@\n password=[redacted]\n-b\n+c\n", Ok(1)),
            ("@@ -3 +3 @@\n-b\n+c\n", Ok(2)),
        ] {
            assert_eq!(find(hunk).map(|place| place.at), expected, "{hunk}");
        }
    }

    #[test]
    fn a_search_that_takes_too_long_ends() {
        let file = "a\nb\n".repeat(100_000);
        let lines = Lines::new(file.as_bytes()).unwrap();
        let locator = Locator::new(&lines);
        let files = parse("@@ @@\n a\n-a\n+c\n").unwrap();
        let missed = (0..1000).map(|_| locator.find(&files[0].hunks[0], 0, 0).unwrap_err());
        assert!(missed.into_iter().any(|miss| miss == Miss::TooMany));
    }
}
