//! Modules in WebAssembly's text format, with code that no compiler would make.

use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

const SOURCE: &str = include_str!("raw/module.wat");
const VERSION: &str = "0.2.0";
/// The older version of the contract, which the host speaks as well.
pub const FROZEN: &str = "0.1.0";

/// A component of three tools: `raw_done` answers, `raw_expand` grows its tables, and `raw_forge` answers with a string of
/// a gigabyte that is not in its memory.
pub struct Raw {
    describe: &'static str,
    call: &'static str,
    version: &'static str,
}

impl Default for Raw {
    fn default() -> Self {
        Self { describe: "", call: "", version: VERSION }
    }
}

impl Raw {
    /// Adds instructions that run before the module describes itself.
    pub fn describe(mut self, instructions: &'static str) -> Self {
        self.describe = instructions;
        self
    }

    /// Adds instructions that run at the beginning of each tool.
    pub fn call(mut self, instructions: &'static str) -> Self {
        self.call = instructions;
        self
    }

    /// Sets the version of the contract that the module imports.
    pub fn version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    /// Builds the component.
    pub fn build(&self) -> Vec<u8> {
        // Only the contract's version has an `@` before it. The module's own version is the same number.
        let versioned = |text: &str| text.replace(&format!("@{VERSION}"), &format!("@{}", self.version));
        let source = SOURCE.replace("(;describe;)", self.describe).replace("(;call;)", self.call);
        let mut module = wat::parse_str(versioned(&source)).expect("WebAssembly");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
        let wit = if self.version == FROZEN { wit.join("0.1") } else { wit };
        let is_wit = |entry: &std::fs::DirEntry| entry.path().extension().is_some_and(|of| of == "wit");
        for entry in std::fs::read_dir(wit).expect("the contract").flatten().filter(is_wit) {
            let text = std::fs::read_to_string(entry.path()).expect("text");
            std::fs::write(directory.path().join(entry.file_name()), versioned(&text)).expect("written");
        }
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(directory.path()).expect("a contract");
        let world = resolve.select_world(&[package], Some("tool-module")).expect("its world");
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("metadata");
        let encoder = ComponentEncoder::default();
        encoder.validate(true).module(&module).expect("a module").encode().expect("a component")
    }
}
