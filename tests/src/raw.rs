//! Modules from WebAssembly's text format, for what no language's compiler would make.

use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

const SOURCE: &str = include_str!("raw/module.wat");
const VERSION: &str = "0.1.0";

/// A component of three tools: `raw_done` answers, `raw_expand` grows its tables, and `raw_forge` answers with a
/// string of a gigabyte that it doesn't have.
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
    /// Instructions before it describes itself.
    pub fn describe(mut self, instructions: &'static str) -> Self {
        self.describe = instructions;
        self
    }

    /// Instructions before any of its tools does anything.
    pub fn call(mut self, instructions: &'static str) -> Self {
        self.call = instructions;
        self
    }

    /// Of the contract that it speaks.
    pub fn version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    /// The component.
    pub fn build(&self) -> Vec<u8> {
        // Where the contract's version is, and nowhere else: the module's own is the same.
        let versioned = |text: &str| text.replace(&format!("@{VERSION}"), &format!("@{}", self.version));
        let source = SOURCE.replace("(;describe;)", self.describe).replace("(;call;)", self.call);
        let mut module = wat::parse_str(versioned(&source)).expect("WebAssembly");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
        for entry in std::fs::read_dir(wit).expect("the contract").flatten() {
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
