//! Turns the profiles from YAML, which people write, into JSON, which a program parses many times faster. The program checks
//! their content when it reads them.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let to = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let from = Path::new("../../knowledge");
    println!("cargo::rerun-if-changed={}", from.display());
    let entries =
        fs::read_dir(from)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    let mut files: Vec<_> = entries
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    let mut profiles = String::new();
    for path in files {
        println!("cargo::rerun-if-changed={}", path.display());
        let profile: serde_json::Value = serde_yaml::from_str(&fs::read_to_string(&path)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        profiles.push_str(&serde_json::to_string(&profile)?);
        profiles.push('\n');
    }
    fs::write(Path::new(&to).join("profiles.jsonl"), profiles)?;
    Ok(())
}
