//! The pages that are written from other files of this workspace, so that they can't say anything else than those do.

use super::{check, contract, holes};
use crate::files;
use anyhow::Result;
use std::fs;
use std::path::Path;

/// The pages with their texts, by their path from the workspace's root.
fn pages(root: &Path) -> Result<Vec<(String, String)>> {
    let page = |name: &str| format!("{}/{name}", check::BOOK);
    Ok(vec![(page("holes.md"), holes::page(root)?), (page("contract.md"), contract::page(root)?)])
}

/// Writes the pages that aren't as they should be, and says which.
pub(super) fn write(root: &Path) -> Result<()> {
    for (file, text) in pages(root)? {
        let path = root.join(&file);
        if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            files::write(&path, text, 0o644)?;
            eprintln!("xtask: wrote {file}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_pages_say_what_their_sources_say() {
        let root = crate::workspace::root();
        for (file, text) in pages(root).expect("pages") {
            let written = fs::read_to_string(root.join(&file)).expect(&file);
            let line = text.lines().zip(written.lines()).find(|(new, old)| new != old);
            assert!(written == text, "{file} is out of date: run `cargo xtask docs`; {line:?}");
        }
    }
}
