//! The sources of a module's folder, and a watch that notices when they change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt;
use inotify::{EventStream, Inotify, WatchMask, Watches};

/// Editors write a file in several steps. Events that follow each other within this time are one change.
const SETTLE_TIME: Duration = Duration::from_millis(200);

/// The events that can change the contents of a folder.
const EVENTS: WatchMask = WatchMask::CLOSE_WRITE
    .union(WatchMask::CREATE)
    .union(WatchMask::DELETE)
    .union(WatchMask::MOVE)
    .union(WatchMask::ATTRIB)
    .union(WatchMask::ONLYDIR);

/// Files that only a folder of things that were made has: the output of cargo and of other builders, and an environment of Python.
const MADE: [&str; 2] = ["CACHEDIR.TAG", "pyvenv.cfg"];

/// The state of a source: when it was changed, its size, and which file it is.
type Stamp = (i64, i64, u64, u64);

/// The state of all sources at a time.
#[derive(Default)]
pub(super) struct State {
    files: BTreeMap<PathBuf, Stamp>,
    folders: BTreeSet<PathBuf>,
}

/// A folder of sources that is watched.
pub(super) struct Sources {
    folder: PathBuf,
    watches: Watches,
    events: EventStream<Vec<u8>>,
}

impl Sources {
    pub(super) fn watch(folder: &Path) -> io::Result<Self> {
        let inotify = Inotify::init()?;
        let watches = inotify.watches();
        let events = inotify.into_event_stream(vec![0; 16 << 10])?;
        let mut sources = Self { folder: folder.to_owned(), watches, events };
        sources.watch_all()?;
        Ok(sources)
    }

    /// The state of the sources now.
    pub(super) fn state(&self) -> State {
        let mut state = State::default();
        read(&self.folder, &mut state);
        state
    }

    /// Returns once the sources are in another state than this one, and nothing has changed for a moment.
    pub(super) async fn changed_since(&mut self, before: &State) -> io::Result<()> {
        loop {
            // A folder that is new is watched from here on, before its files are looked at.
            self.watch_all()?;
            if self.state().files != before.files {
                return Ok(());
            }
            match self.events.next().await {
                Some(event) => drop(event?),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
            while let Ok(Some(event)) = tokio::time::timeout(SETTLE_TIME, self.events.next()).await {
                event?;
            }
        }
    }

    /// Watches every folder that has sources, until no new one has come meanwhile. One that is watched stays so.
    fn watch_all(&mut self) -> io::Result<()> {
        let mut watched = BTreeSet::new();
        loop {
            let folders = self.state().folders;
            if folders == watched {
                return Ok(());
            }
            for folder in &folders {
                match self.watches.add(folder, EVENTS) {
                    // It was removed just now.
                    Err(error) if error.kind() == io::ErrorKind::NotFound && *folder != self.folder => {}
                    added => drop(added?),
                }
            }
            watched = folders;
        }
    }
}

/// Reads the state of the sources in a folder and below it. What can't be read is left out, as if it weren't there.
fn read(folder: &Path, state: &mut State) {
    state.folders.insert(folder.to_owned());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        if !is_source(&entry) {
            continue;
        }
        if metadata.is_dir() {
            read(&entry.path(), state);
        } else {
            let stamp = (metadata.mtime(), metadata.mtime_nsec(), metadata.len(), metadata.ino());
            state.files.insert(entry.path(), stamp);
        }
    }
}

/// Whether a file or folder is a source, and not hidden or made from others.
fn is_source(entry: &DirEntry) -> bool {
    let (name, path) = (entry.file_name(), entry.path());
    let name = name.to_string_lossy();
    let is_made = name == "__pycache__" || name.ends_with(".wasm") || name.ends_with('~');
    !name.starts_with('.') && !is_made && !MADE.iter().any(|file| path.join(file).exists())
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn write(folder: &Path, path: &str, text: &str) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[tokio::test]
    async fn a_source_that_changes_is_noticed_and_what_is_made_from_it_is_not() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path();
        write(folder, "src/lib.rs", "1");
        let mut sources = Sources::watch(folder).unwrap();
        for path in [
            ".git/index",
            ".venv/lib/x.py",
            "target/CACHEDIR.TAG",
            "target/release/x.d",
            "env/pyvenv.cfg",
            "env/lib/x.py",
            "__pycache__/x.pyc",
            "x.wasm",
            "src/lib.rs~",
            "src/.lib.rs.swp",
        ] {
            let before = sources.state();
            write(folder, path, "made");
            assert_eq!(sources.state().files, before.files, "{path}");
        }
        for path in
            ["src/lib.rs", "src/new/deep/file.rs", "tests/recordings/a.txt", "Cargo.toml", "build/x.rs"]
        {
            let before = sources.state();
            write(folder, path, "another text");
            sources.changed_since(&before).await.unwrap();
            assert!(sources.state().files.contains_key(&folder.join(path)), "{path}");
        }
        let before = sources.state();
        fs::remove_file(folder.join("build/x.rs")).unwrap();
        sources.changed_since(&before).await.unwrap();
    }

    #[tokio::test]
    async fn a_change_that_comes_while_it_waits_is_noticed_in_a_folder_that_is_new_as_well() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().to_owned();
        write(&folder, "lib.rs", "1");
        let mut sources = Sources::watch(&folder).unwrap();
        let before = sources.state();
        {
            let mut waiting = pin!(sources.changed_since(&before));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(waiting.as_mut().poll(&mut cx).is_pending());
            write(&folder, "new/deep.rs", "1");
            waiting.await.unwrap();
        }
        let before = sources.state();
        let mut waiting = pin!(sources.changed_since(&before));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        write(&folder, "new/deep.rs", "22");
        waiting.await.unwrap();
    }
}
