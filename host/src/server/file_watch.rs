//! Watches the modules' files and the configuration, and has the dispatcher read them again when they change. An operator's
//! change takes effect on a running server, and anybody else's change is noticed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use inotify::{Event, EventMask, Inotify, WatchDescriptor, WatchMask, Watches};

use crate::dispatcher::Dispatcher;
use host_components::{LOCK, ModuleDirectories, SUMS};

/// Files are written in several steps. Events that follow each other within this time lead to one reload.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// The events that can change the contents of a file in a directory.
const FILE_EVENTS: WatchMask = WatchMask::CLOSE_WRITE
    .union(WatchMask::MODIFY)
    .union(WatchMask::CREATE)
    .union(WatchMask::DELETE)
    .union(WatchMask::MOVE)
    .union(WatchMask::ATTRIB)
    .union(WatchMask::DELETE_SELF)
    .union(WatchMask::MOVE_SELF)
    .union(WatchMask::ONLYDIR);

/// The events that can change where a directory's path leads.
const PATH_EVENTS: WatchMask = WatchMask::CREATE
    .union(WatchMask::DELETE)
    .union(WatchMask::MOVE)
    .union(WatchMask::DELETE_SELF)
    .union(WatchMask::MOVE_SELF)
    .union(WatchMask::ONLYDIR);

/// A watch that starts before the files are first read, so that no change in between is missed.
pub struct FileWatch {
    inotify: Inotify,
    watches: DirectoryWatches,
    wanted: WatchList,
}

impl FileWatch {
    /// Starts to watch the directories of modules and the configuration.
    pub fn start(places: &ModuleDirectories, config: &Path) -> std::io::Result<Self> {
        let inotify = Inotify::init()?;
        let mut watches = DirectoryWatches { inotify: inotify.watches(), directories: Vec::new() };
        let wanted = WatchList::new(places, config);
        watches.add(&wanted);
        Ok(Self { inotify, watches, wanted })
    }

    /// Has the dispatcher reload after each change, as long as the future is polled.
    pub async fn follow(self, dispatcher: Arc<Dispatcher>) {
        if let Err(error) = self.follow_events(&dispatcher).await {
            tracing::error!(%error, "changes of modules and configuration are no longer noticed");
        }
    }

    async fn follow_events(self, dispatcher: &Dispatcher) -> std::io::Result<()> {
        let Self { inotify, mut watches, wanted } = self;
        let mut events = inotify.into_event_stream(vec![0; 16 << 10])?;
        while let Some(event) = events.next().await {
            if !watches.concerns(&event?, &wanted) {
                continue;
            }
            while let Ok(Some(event)) = tokio::time::timeout(SETTLE_TIME, events.next()).await {
                event?;
            }
            // A directory may have been made, removed, or replaced by another one of the same name.
            watches.add(&wanted);
            dispatcher.reload().await;
        }
        Ok(())
    }
}

/// A directory, and the names in it that matter.
struct WantedDirectory {
    directory: PathBuf,
    names: Names,
}

enum Names {
    /// Components and the files that pin them.
    Modules,
    One(PathBuf),
}

impl WantedDirectory {
    fn of_file(path: &Path) -> Option<Self> {
        let names = Names::One(path.file_name()?.into());
        Some(Self { directory: path.parent()?.to_owned(), names })
    }

    fn has(&self, name: &OsStr) -> bool {
        match &self.names {
            Names::One(wanted) => wanted == name,
            Names::Modules => {
                let text = name.to_string_lossy();
                text.ends_with(".wasm") || text == SUMS || text == LOCK
            }
        }
    }
}

/// All directories that matter, whether they exist or not.
struct WatchList(Vec<WantedDirectory>);

impl WatchList {
    fn new(places: &ModuleDirectories, config: &Path) -> Self {
        let modules = places.directories();
        let modules = modules
            .map(|directory| WantedDirectory { directory: directory.to_owned(), names: Names::Modules });
        // Where the file is a symbolic link, the file that it leads to is written to.
        let real = config.canonicalize().ok();
        let files =
            [Some(config), real.as_deref()].into_iter().flatten().filter_map(WantedDirectory::of_file);
        Self(modules.chain(files).collect())
    }
}

/// The directories that are watched: those that are wanted, and all directories above them, because a symbolic link there may
/// be changed.
struct DirectoryWatches {
    inotify: Watches,
    directories: Vec<(WatchDescriptor, PathBuf)>,
}

impl DirectoryWatches {
    /// Watches all wanted directories that exist. A directory that is watched already stays watched.
    fn add(&mut self, wanted: &WatchList) {
        self.directories.clear();
        let directories: BTreeSet<&Path> = wanted
            .0
            .iter()
            .flat_map(|one| one.directory.ancestors().filter(|directory| directory.is_dir()))
            .collect();
        for directory in directories {
            let is_wanted = wanted.0.iter().any(|one| one.directory == directory);
            match self.inotify.add(directory, if is_wanted { FILE_EVENTS } else { PATH_EVENTS }) {
                Ok(watch) => self.directories.push((watch, directory.to_owned())),
                Err(error) => {
                    tracing::warn!(directory = %directory.display(), %error, "changes there are not noticed");
                }
            }
        }
    }

    fn concerns(&self, event: &Event<impl AsRef<OsStr>>, wanted: &WatchList) -> bool {
        let mut directories = self.directories.iter().filter(|(watch, _)| *watch == event.wd);
        let Some(name) = &event.name else {
            // The directory itself has changed, or the kernel's queue was too short for all events.
            let is_wanted = |directory: &PathBuf| wanted.0.iter().any(|one| one.directory == *directory);
            return event.mask.contains(EventMask::Q_OVERFLOW)
                || event.mask.intersects(EventMask::DELETE_SELF | EventMask::MOVE_SELF)
                || directories.any(|(_, directory)| is_wanted(directory));
        };
        let name = name.as_ref();
        directories.any(|(_, directory)| {
            wanted.0.iter().any(|one| match one.directory.strip_prefix(directory) {
                Ok(rest) if rest.as_os_str().is_empty() => one.has(name),
                // The next component of the path to a directory that doesn't exist yet.
                Ok(rest) => rest.components().next().is_some_and(|next| next.as_os_str() == name),
                Err(_) => false,
            })
        })
    }
}
