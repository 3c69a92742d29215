//! The heaviest things of a stream that doesn't fit in memory, and which of them explain the most in few lines.

use super::walk::Taken;
use crate::mount_table::is_within;

/// A thing with a weight.
pub(crate) trait Weighed {
    fn weight(&self) -> u64;
}

/// The heaviest things so far.
pub(crate) struct Largest<T> {
    most: usize,
    kept: Vec<T>,
    /// What weighs less isn't taken any more.
    least: u64,
}

impl<T: Weighed> Largest<T> {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, kept: Vec::new(), least: 0 }
    }

    /// Whether a thing of this weight would be kept.
    pub(crate) fn takes(&self, weight: u64) -> bool {
        weight > self.least || self.kept.len() < self.most
    }

    /// Keeps a thing, if it is heavy enough. Sorting once for many things is cheaper than keeping the order.
    pub(crate) fn push(&mut self, thing: T) {
        if !self.takes(thing.weight()) {
            return;
        }
        self.kept.push(thing);
        if self.kept.len() >= 2 * self.most {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.kept.sort_by_key(|thing| std::cmp::Reverse(thing.weight()));
        self.kept.truncate(self.most);
        if self.kept.len() == self.most {
            self.least = self.kept.last().map_or(0, Weighed::weight);
        }
    }

    /// The heaviest things, the heaviest first.
    pub(crate) fn sorted(mut self) -> Vec<T> {
        self.cut();
        self.kept
    }
}

/// A directory that consists of what is told already isn't told, if this share of it is, in percent.
const EXPLAINED: u64 = 80;

/// The most things that are compared with each other.
const COMPARED: usize = 120;

/// Those that say where the weight is. What weighs less than `least` is left out, and so is a directory whose weight is
/// mostly that of at most `few` things below it, which are told instead.
pub(crate) fn most_telling<'a>(
    taken: impl Iterator<Item = &'a Taken>,
    weight: impl Fn(&Taken) -> u64,
    least: u64,
    few: usize,
) -> Vec<&'a Taken> {
    let mut all: Vec<&Taken> = taken.filter(|one| weight(one) >= least.max(1)).collect();
    all.sort_by_key(|one| std::cmp::Reverse(weight(one)));
    all.truncate(COMPARED);
    // What lies deeper comes first.
    all.sort_by_key(|one| std::cmp::Reverse(one.path.trim_end_matches('/').matches('/').count()));
    let mut told: Vec<&Taken> = Vec::new();
    for one in all {
        let is_below =
            |other: &Taken, above: &Taken| other.path != above.path && is_within(&other.path, &above.path);
        let below: Vec<&Taken> = told.iter().copied().filter(|other| is_below(other, one)).collect();
        let is_topmost = |other: &&&Taken| !below.iter().any(|above| is_below(other, above));
        let topmost: Vec<u64> = below.iter().filter(is_topmost).map(|other| weight(other)).collect();
        let explained = u128::from(topmost.iter().sum::<u64>());
        let is_explained = explained * 100 >= u128::from(weight(one)) * u128::from(EXPLAINED);
        if !is_explained || topmost.len() > few {
            told.push(one);
        }
    }
    told.sort_by(|a, b| weight(b).cmp(&weight(a)).then_with(|| a.path.cmp(&b.path)));
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Weighed for u64 {
        fn weight(&self) -> u64 {
            *self
        }
    }

    #[test]
    fn the_heaviest_are_kept_whatever_their_order() {
        let mut largest = Largest::new(3);
        // 7919 is prime, so that each number comes once.
        (0..10_000_u64).for_each(|number| largest.push(number * 7919 % 10_000));
        assert_eq!(largest.sorted(), [9999, 9998, 9997]);
        let mut few = Largest::new(3);
        [0, 0].into_iter().for_each(|number| few.push(number));
        assert_eq!(few.sorted(), [0, 0]);
    }

    fn told(all: &[(&str, u64)], least: u64) -> Vec<String> {
        let taken: Vec<Taken> = all
            .iter()
            .map(|(path, bytes)| Taken { path: (*path).into(), bytes: *bytes, inodes: 1, changed: None })
            .collect();
        most_telling(taken.iter(), |one| one.bytes, least, 3).iter().map(|one| one.path.clone()).collect()
    }

    #[test]
    fn a_directory_is_told_where_the_weight_isnt_that_of_a_few_things_below_it() {
        let tree = [
            ("/var/", 1000),
            ("/var/log/", 500),
            ("/var/log/app/", 490),
            ("/var/log/app/big.log", 480),
            ("/var/cache/", 300),
            ("/var/cache/a/", 60),
            ("/var/lib/", 190),
            ("/var/libx", 5),
        ];
        assert_eq!(told(&tree, 10), ["/var/log/app/big.log", "/var/cache/", "/var/lib/", "/var/cache/a/"]);
        assert_eq!(told(&tree, 100), ["/var/log/app/big.log", "/var/cache/", "/var/lib/"]);
        // Many small things: the directory above them says it.
        assert_eq!(told(&[("/a/", 100), ("/a/b/", 9), ("/a/c/", 8)], 20), ["/a/"]);
        let alike = [("/a/", 100), ("/a/1/", 25), ("/a/2/", 25), ("/a/3/", 25), ("/a/4/", 25)];
        assert_eq!(told(&alike, 20)[0], "/a/");
        assert!(told(&[], 1).is_empty() && told(&[("/a", 0)], 0).is_empty());
    }
}
