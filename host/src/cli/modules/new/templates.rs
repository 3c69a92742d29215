//! The files of a new module. They lie in `sdk/templates`, with placeholders such as `{{name}}` in them, and are part of this
//! program.

use super::name::NewName;
use super::sdk::Sdk;
use super::{Domain, Language};

/// The text of a file below `sdk/templates`.
macro_rules! template {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../sdk/templates/", $path))
    };
}

/// A file: its path in the new folder, and its text with placeholders.
type Template = (&'static str, &'static str);

const EVERY: [Template; 1] = [("LICENSE", include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../LICENSE")))];

const RUST: [Template; 4] = [
    (".github/workflows/ci.yml", template!("rust/ci.yml")),
    (".gitignore", template!("rust/gitignore")),
    ("Cargo.toml", template!("rust/Cargo.toml.in")),
    ("README.md", template!("rust/README.md")),
];
/// The file that says where the sdk's sources are.
const RUST_WITH_FOLDER: Template = (".cargo/config.toml", template!("rust/config.toml"));

const TOOLS: [Template; 2] =
    [("src/lib.rs", template!("tools/src/lib.rs")), ("tests/tools.rs", template!("tools/tests/tools.rs"))];
/// What was recorded for the tools of the module without a domain, which are the same in each language.
const TRANSCRIPTS: [Template; 4] = [
    ("tests/transcripts/example/calls.yaml", template!("tools/tests/transcripts/example/calls.yaml")),
    ("tests/transcripts/example/commands.txt", template!("tools/tests/transcripts/example/commands.txt")),
    ("tests/transcripts/example/machine.yaml", template!("tools/tests/transcripts/example/machine.yaml")),
    ("tests/transcripts/example/proc.files", template!("tools/tests/transcripts/example/proc.files")),
];

const PACKAGES: [Template; 5] = [
    ("src/lib.rs", template!("packages/src/lib.rs")),
    ("tests/tools.rs", template!("packages/tests/tools.rs")),
    ("tests/transcripts/example/calls.yaml", template!("packages/tests/transcripts/example/calls.yaml")),
    ("tests/transcripts/example/commands.txt", template!("packages/tests/transcripts/example/commands.txt")),
    ("tests/transcripts/example/machine.yaml", template!("packages/tests/transcripts/example/machine.yaml")),
];

const FIREWALL: [Template; 5] = [
    ("src/lib.rs", template!("firewall/src/lib.rs")),
    ("tests/tools.rs", template!("firewall/tests/tools.rs")),
    ("tests/transcripts/example/calls.yaml", template!("firewall/tests/transcripts/example/calls.yaml")),
    ("tests/transcripts/example/commands.txt", template!("firewall/tests/transcripts/example/commands.txt")),
    ("tests/transcripts/example/machine.yaml", template!("firewall/tests/transcripts/example/machine.yaml")),
];

const PYTHON: [Template; 6] = [
    (".github/workflows/ci.yml", template!("python/ci.yml")),
    (".gitignore", template!("python/gitignore")),
    ("README.md", template!("python/README.md")),
    ("module.py", template!("python/module.py")),
    ("requirements.txt", template!("python/requirements.txt")),
    ("tests/test_tools.py", template!("python/tests/test_tools.py")),
];
/// The file that says where the sdk's sources are.
const PYTHON_WITH_FOLDER: Template = ("sdk.txt", template!("python/sdk.txt"));

/// The files of a new module: the path of each in the module's folder, and its text.
pub(super) fn files(
    language: Language,
    domain: Option<Domain>,
    name: &NewName,
    sdk: &Sdk,
) -> Vec<(&'static str, String)> {
    let has_folder = matches!(sdk, Sdk::Folder(_));
    let mut templates = EVERY.to_vec();
    match language {
        Language::Rust => {
            templates.extend(RUST);
            match domain {
                None => templates.extend(TOOLS.into_iter().chain(TRANSCRIPTS)),
                Some(Domain::Packages) => templates.extend(PACKAGES),
                Some(Domain::Firewall) => templates.extend(FIREWALL),
            }
            templates.extend(has_folder.then_some(RUST_WITH_FOLDER));
        }
        Language::Python => {
            templates.extend(PYTHON.into_iter().chain(TRANSCRIPTS));
            templates.extend(has_folder.then_some(PYTHON_WITH_FOLDER));
        }
    }
    templates.into_iter().map(|(path, text)| (path, fill(text, domain, name, sdk))).collect()
}

/// The text with values in place of the placeholders.
pub(super) fn fill(text: &str, domain: Option<Domain>, name: &NewName, sdk: &Sdk) -> String {
    let identifier = name.identifier();
    let (folder, url, requirements) = match sdk {
        Sdk::Folder(folder) => (toml(folder), file_url(folder), "-r sdk.txt -r requirements.txt"),
        Sdk::Published => (String::new(), String::new(), "-r requirements.txt"),
    };
    let values = [
        ("{{name}}", name.as_str()),
        ("{{identifier}}", identifier.as_str()),
        ("{{program}}", name.program(domain.map_or("", Domain::name))),
        // The sdk has this program's own version, and speaks the contract that this program knows.
        ("{{version}}", env!("CARGO_PKG_VERSION")),
        ("{{requirements}}", requirements),
        ("{{sdk}}", folder.as_str()),
        ("{{sdk-url}}", url.as_str()),
    ];
    values.iter().fold(text.to_owned(), |text, (placeholder, value)| text.replace(placeholder, value))
}

/// A string of TOML. Those of JSON are written in the same way.
fn toml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The URL of an absolute path.
fn file_url(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let shown = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    format!("file://{}", path.bytes().map(shown).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_in_each_files_own_way() {
        assert_eq!(toml("/srv/the \"sdk\""), r#""/srv/the \"sdk\"""#);
        assert_eq!(file_url("/srv/the sdk/ä%"), "file:///srv/the%20sdk/%C3%A4%25");
    }
}
