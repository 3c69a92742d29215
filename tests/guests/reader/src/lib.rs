//! A module for the tests: it reads a directory of data through WASI.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::prelude::*;

#[derive(Serialize)]
struct Seen {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Read {
    path: String,
}

fn data(args: Read, _: &Context) -> Result<Single<Seen>> {
    let read = std::fs::read_to_string(&args.path);
    let written = std::fs::write(&args.path, "written by a guest").is_ok();
    let created = std::fs::write(format!("{}.new", args.path), "").is_ok();
    let removed = std::fs::remove_file(&args.path).is_ok();
    let text = match read {
        Ok(text) => format!("{} bytes, changed: {}", text.len(), written || created || removed),
        Err(error) => error.to_string(),
    };
    Ok(Single(Seen { text }))
}

/// The module.
pub fn module() -> Module {
    Module::new("reader", "1.0.0", "reader", "For the tests")
        .path(PathGrant::data("/usr/share/common-licenses/**", "to read by itself"))
        .path(PathGrant::data("/usr/share/not-there/**", "to miss"))
        .tool(Tool::new("reader_data", "", data))
}

linux_sysadmin_sdk::export!(module);
