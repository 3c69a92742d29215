//! A unit file that a plan writes: its place, its former content, and the answer after it was written.

use linux_sysadmin_sdk::{DurationCategory, Privilege, prelude::*};

use super::syntax;
use crate::changes::outcome;
use crate::excerpt;
use crate::systemd::unit::{self, Unit, state};
use crate::systemd::verb::Verb;
use crate::systemd::{properties, systemctl, unit_name};

/// The directory of the administrator's unit files. They take precedence over the vendor's.
const ADMINISTRATORS: &str = "/etc/systemd/system";

/// The directories of the unit files that packages install.
const VENDORS: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];

/// The types of units that the tools write. Other types are defined elsewhere, as in `/etc/fstab`, or have no files.
const WRITTEN: [&str; 6] = [".service", ".socket", ".path", ".timer", ".target", ".slice"];

/// The number of systemd's remarks about a file that are passed on.
const MOST_REMARKS: usize = 10;

/// The answer of the tools that write unit files.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Written {
    pub(crate) unit: String,
    pub(crate) path: String,
    /// The action in a dry run: `create` or `edit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) would: Option<&'static str>,
    /// The vendor's file that is no longer read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instead_of: Option<String>,
    /// The unit that a timer activates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) activates: Option<String>,
    /// The next times at which `on_calendar` elapses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) next: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) load_state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) active_state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) enabled: Option<String>,
}

/// A unit file that the plan writes.
pub(crate) struct PlannedFile {
    /// The unit's full name.
    pub(crate) unit: String,
    pub(crate) path: String,
    pub(crate) text: String,
    /// The present text of the file, or of the vendor's file that it replaces. None for a new unit.
    pub(crate) former: Option<String>,
    /// The path of the vendor's file that it is a copy of.
    pub(crate) vendors: Option<String>,
}

/// The full name of a unit whose file the tools can write. A name without a type gets the type `default`.
pub(crate) fn file_name(input: &str, default: &str) -> Result<String> {
    let full = unit_name::full(input)?;
    let is_typed = full == input;
    let full =
        if is_typed || default == ".service" { full } else { unit_name::full(&format!("{input}{default}"))? };
    let (_, suffix) = unit_name::split(&full);
    let allowed: &[&str] = if default == ".timer" { &[".timer"] } else { &WRITTEN };
    if allowed.contains(&suffix) {
        return Ok(full);
    }
    let expected = allowed.join(", ");
    let message = format!("name is {}: expected a unit of type {expected}", unit_name::shown(input));
    Err(Problem::validation("INVALID_UNIT_TYPE", message))
}

/// The file of a new unit. It is an error where such a unit exists, also as a vendor's, generated, or masked.
pub(crate) fn new_file(unit: &str, text: String, cx: &Context) -> Result<PlannedFile> {
    let found = unit::look(unit, cx)?;
    let path = format!("{ADMINISTRATORS}/{unit}");
    let is_there = cx.stat_all(&[&path]).remove(0)?.is_some();
    if !is_there && (found.is_unknown() || found.is_implied_slice()) {
        must_stay_absent(&path, cx);
        return Ok(PlannedFile { unit: unit.to_owned(), path, text, former: None, vendors: None });
    }
    let is_alias = found.id != unit;
    let place = match &found.fragment_path {
        _ if is_there => path,
        Some(path) => path.clone(),
        None => found.source_path.clone().unwrap_or_else(|| format!("it is {}", found.load_state)),
    };
    let other = if is_alias { format!(", as another name of {}", found.id) } else { String::new() };
    let message = format!("there is a unit {unit} already{other}: {place}");
    let edit = if unit.ends_with(".timer") { "timer_modify name" } else { "svc_edit_unit service" };
    Err(state("UNIT_EXISTS", message)
        .remedy(format!("Change that one: {edit}={}", unit_name::short(&found.id)))
        .remedy("Choose another name"))
}

/// Reads a path that must not exist. The host refuses a plan where a file that the module read has changed since, and a
/// missing file counts as read.
fn must_stay_absent(path: &str, cx: &Context) {
    let _ = cx.read(path);
}

/// The file of an existing unit, with its present text. systemd may have read an older text.
pub(crate) fn existing_file(unit: &Unit, cx: &Context) -> Result<PlannedFile> {
    let path = format!("{ADMINISTRATORS}/{}", unit.id);
    let editable = |why: String| {
        state("UNIT_NOT_EDITABLE", format!("{} can't be edited: {why}", unit.id))
            .remedy(format!("See its text: svc_show service={}", unit.short()))
    };
    let cx = cx.files_as(Privilege::RootIfAvailable);
    if unit.is_masked() {
        return Err(unit.masked());
    }
    let vendors = match cx.stat_all(&[&path]).remove(0)? {
        Some(found) if found.is_symlink => return Err(editable(format!("{path} is a link to another file"))),
        Some(found) if found.is_dir => return Err(editable(format!("{path} is a directory"))),
        Some(_) => None,
        None => {
            must_stay_absent(&path, &cx);
            Some(vendors_file(unit).map_err(editable)?)
        }
    };
    let is_vendors = vendors.is_some();
    let source = vendors.as_deref().unwrap_or(&path);
    let text = if is_vendors { cx.files_as(Privilege::Caller).read(source) } else { cx.read(source) }?;
    Ok(PlannedFile { unit: unit.id.clone(), path, text: text.clone(), former: Some(text), vendors })
}

fn vendors_file(unit: &Unit) -> std::result::Result<String, String> {
    let Some(path) = &unit.fragment_path else {
        return Err(match &unit.source_path {
            Some(source) => format!("its file is made from {source}"),
            None => format!("it has no file (it is {})", unit.load_state),
        });
    };
    let (folder, file) = path.rsplit_once('/').unwrap_or_default();
    if file != unit.id && file.contains('@') {
        return Err(format!("it is an instance of the template {file}"));
    }
    if file != unit.id || !VENDORS.contains(&folder) {
        return Err(format!("its file is {path}, and only those in {ADMINISTRATORS} and {} are", VENDORS[0]));
    }
    Ok(path.clone())
}

impl PlannedFile {
    /// Refuses a file that isn't UTF-8, because an edit could not write its other bytes back as they were.
    pub(crate) fn is_text(&self) -> Result<()> {
        let lossy = self.former.as_deref().is_some_and(|text| text.contains(char::REPLACEMENT_CHARACTER));
        if !lossy {
            return Ok(());
        }
        let source = self.vendors.as_ref().unwrap_or(&self.path);
        Err(state("UNIT_FILE_NOT_TEXT", format!("{source} isn't UTF-8: what is kept of it would be changed"))
            .remedy("Give the whole file as raw_content"))
    }

    /// True where the file has the text already.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.former.as_ref() == Some(&self.text)
    }

    /// Adds the file to a plan, with warnings about commands that run as root and about a replaced vendor's file.
    pub(crate) fn write(&self, change: Change) -> Change {
        let mut write = Step::write(&self.path, self.text.as_bytes())
            .validate(systemctl::VERIFY.with(["{}"]).as_root().duration(DurationCategory::Quick));
        if self.former.is_none() || self.vendors.is_some() {
            write = write.mode(0o644).owner("root", "root");
        }
        let mut change = change.step(write);
        let new: Vec<String> = syntax::commands_of_root(&self.text);
        let old = self.former.as_deref().map(syntax::commands_of_root).unwrap_or_default();
        let new = new.into_iter().filter(|command| !old.contains(command)).collect::<Vec<_>>();
        if !new.is_empty() {
            let commands = excerpt::of_text(&new.join("; "));
            change = change.warning(format!("{} runs as root: {commands}", self.unit));
        }
        match &self.vendors {
            Some(path) => change.warning(format!(
                "{} is read instead of {path} from now on, whatever a package update brings",
                self.path
            )),
            None => change,
        }
    }

    pub(crate) fn reply(&self) -> Written {
        Written {
            unit: unit_name::short(&self.unit).to_owned(),
            path: self.path.clone(),
            instead_of: self.vendors.clone(),
            ..Written::default()
        }
    }
}

/// The problem of a plan that failed. `verbs` are the units and verbs of its steps, with the index of each step.
pub(crate) fn failed(failure: Failure, verbs: &[(usize, &Unit, Verb)], cx: &Context) -> Problem {
    let step = usize::try_from(failure.step).unwrap_or_default();
    match verbs.iter().find(|(index, ..)| *index == step) {
        Some((_, unit, verb)) => outcome::failed(unit, *verb, failure, cx),
        None => failure.problem,
    }
}

/// Adds the unit's state after the change. Returns systemd's remarks about the files, such as unknown keys, which it
/// ignores.
pub(crate) fn look_again(reply: &mut Written, files: &[&PlannedFile], cx: &Context) -> Vec<String> {
    let mut notes = Vec::new();
    let mut commands = vec![systemctl::AFTERWARDS.with([unit_name::full(&reply.unit).unwrap_or_default()])];
    commands.extend(files.iter().map(|file| systemctl::VERIFY.with([file.path.as_str()]).as_root()));
    let mut answers = cx.run_all(commands).into_iter();
    let shown = answers.next().map(systemctl::answer).and_then(std::result::Result::ok).unwrap_or_default();
    match properties::parse(&shown).as_slice() {
        [unit] => {
            reply.load_state = unit.string("LoadState");
            reply.active_state = unit.string("ActiveState");
            reply.enabled = unit.string("UnitFileState");
            let error = unit.load_error();
            notes.extend(error.map(|error| format!("systemd can't use it: {error}")));
        }
        _ => notes.push("the file was written, but the unit's state afterwards could not be read".to_owned()),
    }
    for (file, output) in files.iter().zip(answers) {
        let said = output.map(|output| output.error_text()).unwrap_or_default();
        let own = said.lines().filter(|line| line.starts_with(&file.path) || line.starts_with(&file.unit));
        notes.extend(own.take(MOST_REMARKS).map(excerpt::of_text));
    }
    notes
}
