//! The list of functions, and the functions of a program. A function's symbol has hashes of its crates in it, which differ
//! between compilers, targets and versions, so that the list knows functions by their names without them. A name with all its
//! types is long, so that each stands there as the beginning of its checksum.

use crate::workspace;
use anyhow::{Context, Result};
use object::{Object, ObjectSymbol, SymbolKind};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

/// What stands above the list.
const HEAD: &str = "# The functions that run in everyday calls, in the order of their first run, each by the first 4 bytes of\n\
                    # the SHA-256 of its name. `cargo xtask order` writes this file.\n";

/// A name, in short. That two names have the same one is rare, and then one function more is with the others.
type Short = [u8; 4];

/// The functions that run.
#[derive(Debug, Default, PartialEq)]
pub(super) struct List {
    /// Each with its place in the order.
    places: HashMap<Short, usize>,
}

pub(super) fn path() -> PathBuf {
    workspace::root().join("xtask/src/order/functions.txt")
}

impl List {
    /// The list of these symbols.
    pub(super) fn of<'a>(symbols: impl Iterator<Item = &'a str>) -> Self {
        let mut list = Self::default();
        symbols.for_each(|symbol| list.add(short(symbol)));
        list
    }

    /// The list that was recorded.
    pub(super) fn read() -> Result<Self> {
        Self::parse(&recorded()?).with_context(|| path().display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let mut list = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut name = Short::default();
            hex::decode_to_slice(line, &mut name).with_context(|| format!("`{line}` is not 8 hex digits"))?;
            list.add(name);
        }
        Ok(list)
    }

    /// The beginning of the checksum of the list that was recorded.
    pub(super) fn checksum() -> Result<String> {
        Ok(hex::encode(&Sha256::digest(recorded()?)[..4]))
    }

    pub(super) fn text(&self) -> String {
        let mut names: Vec<_> = self.places.iter().collect();
        names.sort_by_key(|(_, place)| **place);
        let lines: String = names.iter().map(|(name, _)| format!("{}\n", hex::encode(name))).collect();
        format!("{HEAD}{lines}")
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The place of a symbol in the order, where it is a function that runs.
    pub(super) fn place(&self, symbol: &str) -> Option<usize> {
        self.places.get(&short(symbol)).copied()
    }

    fn add(&mut self, name: Short) {
        let next = self.places.len();
        self.places.entry(name).or_insert(next);
    }
}

fn recorded() -> Result<String> {
    let path = path();
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

fn short(symbol: &str) -> Short {
    // This form of a name has no hashes.
    let name = format!("{:#}", rustc_demangle::demangle(symbol));
    let sum = Sha256::digest(name);
    [sum[0], sum[1], sum[2], sum[3]]
}

/// A function of a program, or of a file from which one is linked.
pub(super) struct Function<'a> {
    pub(super) symbol: &'a str,
    pub(super) address: u64,
    size: u64,
}

/// The functions of a program.
pub(super) struct Functions<'a>(pub(super) Vec<Function<'a>>);

impl<'a> Functions<'a> {
    /// Reads them from an ELF file.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self> {
        let file = object::File::parse(bytes).context("this is no ELF file")?;
        let functions =
            file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
        let functions = functions.filter_map(|symbol| {
            let name = symbol.name().ok()?;
            Some(Function { symbol: name, address: symbol.address(), size: symbol.size() })
        });
        Ok(Self(functions.collect()))
    }

    /// Their symbols in the order of the list, without those that it doesn't have.
    pub(super) fn in_order(&self, list: &List) -> Vec<&'a str> {
        let mut known: Vec<_> = self
            .0
            .iter()
            .filter_map(|function| Some((list.place(function.symbol)?, function.symbol)))
            .collect();
        known.sort();
        known.into_iter().map(|(_, symbol)| symbol).collect()
    }

    /// Where those of the list lie.
    pub(super) fn placed(&self, list: &List) -> Placed {
        let mut known: Vec<_> =
            self.0.iter().filter_map(|function| Some((list.place(function.symbol)?, function))).collect();
        let size = known.iter().map(|(_, function)| function.size).sum();
        let pages = |function: &Function| {
            function.address / PAGE..=(function.address + function.size.saturating_sub(1)) / PAGE
        };
        let mut touched: Vec<u64> = known.iter().flat_map(|(_, function)| pages(function)).collect();
        touched.sort_unstable();
        touched.dedup();
        known.sort_by_key(|(place, _)| *place);
        known.dedup_by_key(|(place, _)| *place);
        Placed { known: known.len(), size, pages: touched.len() as u64 * PAGE }
    }
}

/// The least that the kernel maps.
const PAGE: u64 = 4096;

/// Where the functions of a list lie in a program.
pub(super) struct Placed {
    /// The number of the list's functions that the program has.
    pub(super) known: usize,
    /// Their bytes.
    size: u64,
    /// The bytes of the pages on which they are.
    pages: u64,
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let (size, pages) = (mebibytes(self.size), mebibytes(self.pages));
        write!(f, "the program has {}: {size:.1} MB on {pages:.1} MB of pages", self.known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symbols of one function by two compilers, of the same with another type, and of C.
    const ONE: &str = "_RINvCs1234_7mycrate3runhE";
    const SAME: &str = "_RINvCs5678_7mycrate3runhE";
    const OTHER: &str = "_RINvCs1234_7mycrate3runmE";
    const C: &str = "ring_core_0_17_14__sha256_block_data_order";

    #[test]
    fn a_function_is_known_whatever_the_hashes_of_its_crates_are() {
        let list = List::of([C, ONE, C].into_iter());
        assert_eq!([C, ONE, SAME, OTHER].map(|symbol| list.place(symbol)), [Some(0), Some(1), Some(1), None]);
    }

    #[test]
    fn a_list_is_read_as_it_was_written_and_a_line_that_is_no_name_is_refused() {
        let list = List::of([ONE, OTHER, C].into_iter());
        assert_eq!(List::parse(&list.text()).expect("a list"), list);
        for (line, said) in
            [("", "``"), ("00112", "`00112`"), ("0011223344", "`0011223344`"), ("zz112233", "`zz112233`")]
        {
            let error = List::parse(&format!("# a comment\n00112233\n{line}\n")).expect_err("refused");
            assert_eq!(error.to_string(), format!("{said} is not 8 hex digits"));
        }
    }

    #[test]
    fn the_list_that_was_recorded_is_read() {
        assert!(List::read().expect("a list").len() > 1000);
    }
}
