//! Puts the suites of the sdk's domains into the program: what modules of one domain have in common, and the calls that show
//! it. A file of `sdk/suites` is one domain's; no list names them.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> Result<(), Box<dyn Error>> {
    let to = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let from = Path::new("../sdk/suites");
    println!("cargo::rerun-if-changed={}", from.display());
    let entries = fs::read_dir(from)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    let mut files: Vec<_> = entries
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    let mut suites = String::new();
    for path in files {
        println!("cargo::rerun-if-changed={}", path.display());
        suites.push_str(&format!("---\n{}\n", fs::read_to_string(&path)?));
    }
    fs::write(Path::new(&to).join("suites.yaml"), suites)?;
    Ok(())
}
