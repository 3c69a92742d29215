//! Reads `modules/NAME/tests/expected.yaml`, by which a module describes its tools to the tests of every tool. The
//! files are found by walking `modules`, so a new tool is added in its module's folder and nowhere else.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A module's file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedModule {
    /// The module's folder, which is also its name.
    #[serde(skip)]
    pub name: String,
    /// A script of sh that runs as root on the host before the calls of `same` are made.
    #[serde(default)]
    pub prepare: String,
    /// A script of sh that puts back what `prepare` and the calls of `same` have done.
    #[serde(default)]
    pub clean: String,
    /// The tools, in the order in which the calls of `same` are made. A tool that several modules have is described by
    /// one of them.
    pub tools: Vec<ExpectedTool>,
}

/// The arguments with which the tests call a tool, and the results that they expect.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedTool {
    /// The tool's name.
    pub name: String,
    /// Arguments with which the tool changes nothing: it looks, or shows what it would do.
    #[serde(default = "no_arguments")]
    pub harmless: Value,
    /// The error code of the harmless call on a fresh host. It is empty where the call succeeds.
    #[serde(default)]
    pub fails: String,
    /// The error code of the harmless call on a Debian host for an account that may do nothing by sudo, where the call
    /// fails only for such an account.
    #[serde(default)]
    pub without_sudo: Option<String>,
    /// The error code of the harmless call on the image `bare`, where it is another one there.
    #[serde(default)]
    pub fails_on_bare: Option<String>,
    /// Every tool that changes something says this, and no other tool: what the change needs. `root`: root's rights.
    /// `nothing`: no more than the account's own rights, or no change on the image `bare`. Anything else is a program that
    /// the image `bare` lacks.
    #[serde(default)]
    pub needs: Option<String>,
    /// Arguments that replace those of `harmless` where the change is asked for on the image `bare`.
    #[serde(default)]
    pub on_bare: Map<String, Value>,
    /// Calls that are answered the same on the host itself and over SSH: looking, being refused, showing and doing, in this
    /// order.
    #[serde(default)]
    pub same: Vec<Value>,
    /// The reason why there are no such calls, for a tool that works on the server's own machine.
    #[serde(default)]
    pub not_compared: Option<String>,
    /// The parts of the answers to the calls of `same` that may differ.
    #[serde(default)]
    pub may_differ: Vec<Difference>,
    /// Needs, in a few words, for which the search for tools finds this one.
    #[serde(default)]
    pub found_by: Vec<String>,
    /// Arguments for `cargo xtask bench tools`, where the harmless ones tell little about the time that a call takes.
    #[serde(default)]
    pub measured: Option<Value>,
    /// The shell command lines that an administrator would type in place of that call. Only a tool that looks has them.
    #[serde(default)]
    pub instead: Vec<String>,
}

/// A part of an answer that may differ between two calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The path of the part, such as `data[ssh.service].pid`: a `*` stands for anything, `[…]` for a list's item by its
    /// name, and what is beneath a path is part of it.
    pub path: String,
    /// The reason why the answers differ there.
    pub reason: String,
    /// The occasion on which answers have such a part, where not every run sees one.
    #[serde(default)]
    pub sometimes: Option<String>,
}

fn no_arguments() -> Value {
    json!({})
}

/// The files of all modules, in the order of the modules' names.
pub fn expected_modules() -> &'static [ExpectedModule] {
    static MODULES: LazyLock<Vec<ExpectedModule>> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../modules");
        let mut modules = Vec::new();
        for entry in fs::read_dir(&folder).expect("the modules").flatten() {
            let name = entry.file_name().into_string().expect("UTF-8");
            let Ok(text) = fs::read_to_string(entry.path().join("tests/expected.yaml")) else { continue };
            let module =
                serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file_of(&name)));
            modules.push(ExpectedModule { name, ..module });
        }
        modules.sort_by(|one, other| one.name.cmp(&other.name));
        modules
    });
    &MODULES
}

/// A module's file, as messages name it.
pub fn file_of(module: &str) -> String {
    format!("modules/{module}/tests/expected.yaml")
}

/// Every tool with its module: first the tools that only look, then those that change something, so that no change of one
/// module is seen by the looks of another.
pub fn expected_tools() -> impl Iterator<Item = (&'static ExpectedModule, &'static ExpectedTool)> {
    let all =
        || expected_modules().iter().flat_map(|module| module.tools.iter().map(move |tool| (module, tool)));
    all().filter(|(_, tool)| !tool.changes()).chain(all().filter(|(_, tool)| tool.changes()))
}

/// Returns the description of this tool.
pub fn expected(tool: &str) -> &'static ExpectedTool {
    let found = expected_tools().find(|(_, expected)| expected.name == tool);
    found.unwrap_or_else(|| panic!("no modules/NAME/tests/expected.yaml describes {tool}")).1
}

impl ExpectedTool {
    /// Whether the tool changes something.
    pub fn changes(&self) -> bool {
        self.needs.is_some()
    }

    /// The arguments of a call on the image `bare` that is meant to change something.
    pub fn change_on_bare(&self) -> Value {
        let mut arguments = self.harmless.as_object().cloned().unwrap_or_default();
        arguments.remove("dry_run");
        arguments.extend(self.on_bare.clone());
        arguments.into()
    }
}
