//! Reads a folder of transcripts: one folder in it for each recorded machine, with the facts about the machine, what its
//! commands printed, some of its files, and the calls that are to be tried.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use host_base::trusted_file;
use host_components::host_arguments::{AGENT, CONFIRMED, HOST};
use host_target::Facts;
use host_target::recorded::{Recording, transcript};

/// The file with the facts about a machine.
pub const MACHINE: &str = "machine.yaml";
/// The file with the calls that are tried on a machine.
pub const CALLS: &str = "calls.yaml";
/// The ending of files with commands and what they printed.
pub const COMMANDS: &str = "txt";
/// The ending of files with the contents of the machine's files.
pub const FILES: &str = "files";

/// The contents of [`MACHINE`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineFile {
    /// The facts, as the session's tool shows them.
    pub facts: Facts,
    /// The programs that the machine doesn't have.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub missing_programs: BTreeSet<String>,
}

/// A call that is tried on a recorded machine, and what is expected of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriedCall {
    /// The tool.
    pub tool: String,
    /// What the call shows, as a sentence. By default the tool and its arguments.
    #[serde(default)]
    pub(super) name: Option<String>,
    /// The arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Commands and what they print in this call only, in the form of the other transcripts.
    #[serde(default)]
    pub(super) transcript: String,
    /// What commands print once the call's change has begun.
    #[serde(default)]
    pub(super) after: String,
    /// The code of the error that the call gives. Without it, the call succeeds.
    #[serde(default)]
    pub error: Option<String>,
    /// What the answer's data contain: the members of an object, and items of a list.
    #[serde(default)]
    pub has: Value,
    /// The command lines that the call runs, in this order, possibly with others between them.
    #[serde(default)]
    pub runs: Vec<String>,
}

impl TriedCall {
    /// The call as a sentence.
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| match self.arguments.is_empty() {
            true => self.tool.clone(),
            false => format!("{} {}", self.tool, Value::Object(self.arguments.clone())),
        })
    }
}

/// The recordings of one machine.
#[derive(Clone, Debug)]
pub struct RecordedFolder {
    /// The name of the folder.
    pub name: String,
    /// The facts about the machine.
    pub facts: Facts,
    recording: Recording,
    /// The calls, each with what is recorded for it alone.
    calls: Vec<(TriedCall, Recording)>,
}

impl RecordedFolder {
    /// The calls to try, each with the recording that it sees.
    pub fn calls(&self) -> impl Iterator<Item = (&TriedCall, Recording)> {
        self.calls.iter().map(|(call, own)| {
            let mut recording = self.recording.clone();
            recording.commands.extend(own.commands.iter().cloned());
            recording.later.clone_from(&own.later);
            (call, recording)
        })
    }

    /// What is recorded for every call.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The name becomes the target's, and part of the name of a lock file.
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        ensure!(
            name.bytes().all(fits),
            "{}: expected a name of letters, digits and the characters - . _ for a folder of transcripts",
            path.display()
        );
        let machine: MachineFile = yaml(&path.join(MACHINE))?;
        let mut recording = Recording { missing_programs: machine.missing_programs, ..Recording::default() };
        for file in files(path, COMMANDS)? {
            let commands = transcript::parse(&text(&file)?);
            recording.commands.extend(commands.map_err(|error| at(&file, error))?);
        }
        for file in files(path, FILES)? {
            recording.files.extend(contents(&text(&file)?));
        }
        let path = path.join(CALLS);
        let tried: Calls = if path.exists() { yaml(&path)? } else { Calls::default() };
        let own = |call: TriedCall| {
            let read = |text: &str| {
                transcript::parse(text).map_err(|error| at(&path, format!("{}: {error}", call.name())))
            };
            let own = Recording {
                commands: read(&call.transcript)?,
                later: read(&call.after)?,
                ..Recording::default()
            };
            for common in [HOST, AGENT, CONFIRMED] {
                if call.arguments.contains_key(common) {
                    let what =
                        format!("{}: {common} can't be given: the recorded machine is meant", call.name());
                    return Err(at(&path, what));
                }
            }
            Ok((call, own))
        };
        let calls = tried.calls.into_iter().map(own).collect::<anyhow::Result<_>>()?;
        Ok(Self { name, facts: machine.facts, recording, calls })
    }
}

/// The contents of [`CALLS`].
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Calls {
    calls: Vec<TriedCall>,
}

/// Reads the folders of a folder of transcripts, in the order of their names.
pub fn read(folder: &Path) -> anyhow::Result<Vec<RecordedFolder>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("the transcripts in {} can't be read", folder.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let mut paths: Vec<PathBuf> = paths.into_iter().filter(|path| path.join(MACHINE).exists()).collect();
    paths.sort();
    if paths.is_empty() {
        bail!(
            "{} has no folder with a {MACHINE}: expected one for each recorded machine, as `linux-sysadmin modules record \
             --to {}/NAME -- COMMAND` makes it",
            folder.display(),
            folder.display()
        );
    }
    paths.iter().map(|path| RecordedFolder::read(path)).collect()
}

fn at(path: &Path, error: String) -> anyhow::Error {
    anyhow::anyhow!("{}: {error}", path.display())
}

fn text(path: &Path) -> anyhow::Result<String> {
    let read = trusted_file::read(path, |_| io::Result::Ok(()));
    read.with_context(|| format!("{} can't be read", path.display()))
}

fn yaml<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    serde_yaml::from_str(&text(path)?).map_err(|error| at(path, error.to_string()))
}

/// The files of a folder with this ending, in the order of their names.
fn files(folder: &Path, ending: &str) -> anyhow::Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let mut files: Vec<PathBuf> = entries
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == ending))
        .collect();
    files.sort();
    Ok(files)
}

/// Reads the contents of files in the form that `tail -n +1 FILE FILE…` prints, by their paths.
fn contents(text: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut current: Option<(String, String)> = None;
    for line in text.split_inclusive('\n') {
        let header = line.trim_end().strip_prefix("==> ").and_then(|rest| rest.strip_suffix(" <=="));
        match (header, &mut current) {
            (Some(path), _) => {
                // `tail` prints an empty line before the next header.
                if let Some((path, mut contents)) = current.replace((path.to_owned(), String::new())) {
                    if contents.ends_with('\n') {
                        contents.pop();
                    }
                    files.insert(path, contents.into_bytes());
                }
            }
            (None, Some((_, contents))) => contents.push_str(line),
            (None, None) => {}
        }
    }
    files.extend(current.map(|(path, contents)| (path, contents.into_bytes())));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE_YAML: &str = "facts: {family: arch, package_manager: pacman}\nmissing_programs: [expac]\n";

    /// A folder of transcripts with one machine, which has these files.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("arch")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join("arch").join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn a_folder_has_facts_commands_files_and_calls() {
        let calls = "calls:\n- tool: look\n  arguments: {name: a}\n  transcript: |\n    $ b\n    [exit 1]\n  after: |\n    \
                     $ a\n    [exit 0]\n    later\n  error: NOT_FOUND\n- {tool: look, name: it looks}\n";
        let folder = folder(&[
            (MACHINE, MACHINE_YAML),
            ("1.txt", "$ a\n[exit 0]\nfirst\n"),
            ("2.txt", "$ a\n[exit 0]\nsecond\n"),
            ("etc.files", "==> /etc/a <==\none\n\n==> /etc/b <==\ntwo"),
            (CALLS, calls),
        ]);
        let read = read(folder.path()).unwrap();
        let [machine] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!((machine.name.as_str(), machine.facts.package_manager.as_str()), ("arch", "pacman"));
        assert_eq!(machine.recording().files["/etc/a"], b"one\n");
        assert_eq!(machine.recording().files["/etc/b"], b"two");
        assert!(machine.recording().missing_programs.contains("expac"));
        let calls: Vec<_> = machine.calls().collect();
        assert_eq!(
            calls.iter().map(|(call, _)| call.name()).collect::<Vec<_>>(),
            [r#"look {"name":"a"}"#, "it looks"]
        );
        assert_eq!(calls[0].1.commands.len(), 3);
        assert_eq!(calls[0].1.later[0].stdout, b"later\n");
        assert!(calls[1].1.later.is_empty() && calls[1].0.error.is_none());
    }

    #[test]
    fn what_can_not_be_read_is_an_error_that_names_the_file_and_what_was_expected() {
        for (files, named, expected) in [
            (&[("x.txt", "")][..], "", "machine.yaml"),
            (&[(MACHINE, "facts: {familiy: arch}\n")], MACHINE, "familiy"),
            (&[(MACHINE, MACHINE_YAML), ("x.txt", "$ a\nno exit\n")], "x.txt", "[exit 0]"),
            (&[(MACHINE, MACHINE_YAML), (CALLS, "calls: [{tool: a, argument: {}}]\n")], CALLS, "argument"),
            (
                &[(MACHINE, MACHINE_YAML), (CALLS, "calls: [{tool: a, arguments: {host: b}}]\n")],
                CALLS,
                "host",
            ),
            (&[(MACHINE, MACHINE_YAML), (CALLS, "calls: [{tool: a, after: \"$ b\"}]\n")], CALLS, "[exit 0]"),
        ] {
            let folder = folder(files);
            let error = format!("{:#}", read(folder.path()).unwrap_err());
            assert!(error.contains(named) && error.contains(expected), "{named}: {error}");
        }
        let missing = format!("{:#}", read(Path::new("/nonexistent")).unwrap_err());
        assert!(missing.contains("/nonexistent"), "{missing}");
    }
}
