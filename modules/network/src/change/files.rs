//! The files that configure an interface, all of one format, and what becomes of them.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use super::edit::{Dns, Format, is_generated};
use super::setting::Setting;

/// A file, which may not exist yet.
struct File {
    path: String,
    text: String,
    /// The text after the change.
    new: String,
    /// True if a person edits it, not a program.
    is_editable: bool,
}

/// The files of one interface.
pub(crate) struct Files {
    format: Box<dyn Format>,
    all: Vec<File>,
    /// The file, and the mode, for what can't stand in any of the others.
    own: Option<(String, u32)>,
}

impl Files {
    /// Reads the files. Those of `written_by_programs` are never edited.
    pub(crate) fn read(
        format: impl FnOnce(&[String]) -> Box<dyn Format>,
        paths: &[String],
        written_by_programs: &[String],
        own: Option<(String, u32)>,
        cx: &Context,
    ) -> Result<Self> {
        let mut all = Vec::new();
        for (texts, paths, by_persons) in [
            (cx.files_as(Privilege::Root).read_all(paths), paths, true),
            (cx.read_all(written_by_programs), written_by_programs, false),
        ] {
            for (text, path) in texts.into_iter().zip(paths) {
                let text = match text {
                    Ok(text) => text,
                    Err(problem) if problem.category == Category::NotFound => continue,
                    Err(problem) => return Err(problem),
                };
                let is_editable = by_persons && !is_generated(&text);
                all.push(File { path: path.clone(), new: text.clone(), text, is_editable });
            }
        }
        let texts: Vec<String> = all.iter().map(|file| file.text.clone()).collect();
        Ok(Self { format: format(&texts), all, own })
    }

    /// True if one of the files configures the interface.
    pub(crate) fn hold(&self) -> bool {
        self.all.iter().any(|file| self.format.holds(&file.text))
    }

    /// The path of the file that has the setting.
    pub(crate) fn place_of(&self, setting: &Setting) -> Option<&str> {
        // What is there and can't be taken out is there. What can't be read at all isn't.
        let has = |file: &&File| match self.format.remove(&file.new, setting) {
            Ok(found) => found.is_some(),
            Err(problem) => problem.code != "CONFIG_INVALID",
        };
        self.all.iter().find(has).map(|file| file.path.as_str())
    }

    /// Takes a setting out of the file that has it, and gives the file's path. None where no file has it.
    ///
    /// Problems: `GENERATED_FILE`.
    pub(crate) fn remove(&mut self, setting: &Setting) -> Result<Option<String>> {
        for file in &mut self.all {
            let Some(new) = self.format.remove(&file.new, setting)? else { continue };
            if !file.is_editable {
                return Err(generated(&file.path));
            }
            file.new = new;
            return Ok(Some(file.path.clone()));
        }
        Ok(None)
    }

    /// Puts a setting into the file where the interface is configured, or into an own one, and gives the file's path.
    ///
    /// Problems: `GENERATED_FILE`.
    pub(crate) fn add(&mut self, setting: &Setting) -> Result<String> {
        let at = self.target()?;
        let file = &mut self.all[at];
        file.new = self.format.add(&file.new, setting)?;
        Ok(file.path.clone())
    }

    /// The servers and domains of all files.
    pub(crate) fn dns(&self) -> Dns {
        self.all.iter().fold(Dns::default(), |mut all, file| {
            let own = self.format.dns(&file.text);
            all.servers.extend(own.servers);
            all.search.extend(own.search);
            all
        })
    }

    /// Sets servers and domains in the file that has them now, or else where the interface is configured.
    ///
    /// Problems: `GENERATED_FILE`.
    pub(crate) fn set_dns(&mut self, dns: &Dns) -> Result<String> {
        let having: Vec<usize> =
            (0..self.all.len()).filter(|at| !self.format.dns(&self.all[*at].text).is_empty()).collect();
        if let Some(at) = having.iter().find(|at| !self.all[**at].is_editable) {
            return Err(generated(&self.all[*at].path));
        }
        let target = match having.first() {
            Some(first) => *first,
            None => self.target()?,
        };
        for at in having.into_iter().filter(|at| *at != target) {
            self.all[at].new = self.format.set_dns(&self.all[at].new, &Dns::default())?;
        }
        self.all[target].new = self.format.set_dns(&self.all[target].new, dns)?;
        Ok(self.all[target].path.clone())
    }

    /// The number of the file for something new.
    fn target(&mut self) -> Result<usize> {
        let is_it = |file: &File| file.is_editable && self.format.holds(&file.new);
        if let Some(at) = self.all.iter().position(is_it) {
            return Ok(at);
        }
        match &self.own {
            Some((own, _)) => {
                if let Some(at) = self.all.iter().position(|file| file.path == *own) {
                    return Ok(at);
                }
                let (text, new) = Default::default();
                self.all.push(File { path: own.clone(), text, new, is_editable: true });
                Ok(self.all.len() - 1)
            }
            None => match self.all.iter().find(|file| self.format.holds(&file.text)) {
                Some(file) => Err(generated(&file.path)),
                None => {
                    Err(Problem::new("NOT_CONFIGURED", Category::State, "no file configures this interface"))
                }
            },
        }
    }

    /// The steps that write what has changed.
    pub(crate) fn steps(&self, cx: &Context) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        for file in self.all.iter().filter(|file| file.new != file.text) {
            let is_new = file.text.is_empty();
            let directory = file.path.rsplit_once('/').map_or("", |(directory, _)| directory);
            let is_missing =
                || Ok::<_, Problem>(cx.files_as(Privilege::Root).stat_all(&[directory]).remove(0)?.is_none());
            if is_new && is_missing()? {
                steps.push(Step::make_directory(directory, 0o755));
            }
            let write = Step::write(&file.path, file.new.as_bytes());
            let mode =
                self.own.as_ref().filter(|(own, _)| is_new && *own == file.path).map(|(_, mode)| *mode);
            steps.push(match mode {
                Some(mode) => write.mode(mode),
                None => write,
            });
        }
        Ok(steps)
    }
}

/// The problem with a change of a file that a program writes.
pub(crate) fn generated(path: &str) -> Problem {
    let message = format!("{path} sets it, which a program writes anew: a change of it would be lost");
    Problem::new("GENERATED_FILE", Category::State, message)
        .remedy(format!("Change it where that program takes it from: a comment in {path} may tell where"))
}
