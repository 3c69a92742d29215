//! Turns the tables from YAML, which people read, into JSON, which a program reads many times faster. The program checks them
//! when it reads them.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let to = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    for name in ["rules", "programs"] {
        let from = format!("src/{name}.yaml");
        println!("cargo::rerun-if-changed={from}");
        let table: serde_json::Value = serde_yaml::from_str(&fs::read_to_string(&from)?)?;
        fs::write(Path::new(&to).join(name).with_extension("json"), serde_json::to_string(&table)?)?;
    }
    Ok(())
}
