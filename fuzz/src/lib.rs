//! The host's sources that decide about commands and paths, and nothing else of it: what they need is small,
//! and instrumenting wasmtime would take an hour.

// The rest of the host uses more of them than the targets do.
#![allow(dead_code)]

#[path = "../../host/text/src/characters.rs"]
pub mod characters;

#[path = "../../host/src/capability"]
pub mod capability {
    pub mod hole;
    pub mod path;
    pub mod pattern;
}

use capability::hole::HoleType;
use capability::pattern::{Item, Part, Pattern, Token};

#[path = "../../host/src/capability/pattern/sample.rs"]
pub mod sample;
