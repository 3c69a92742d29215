//! Follows the files that say which modules are used: what an operator changes takes effect on a running server, and
//! what somebody else changes is noticed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use inotify::{Event, EventMask, Inotify, WatchDescriptor, WatchMask, Watches};

use crate::dispatcher::Dispatcher;
use host_components::{LOCK, Places, SUMS};

/// Files are written in several steps; what follows within this time is looked at together.
const TOGETHER: Duration = Duration::from_millis(100);

/// What can change which bytes a name has.
const CHANGES: WatchMask = WatchMask::CLOSE_WRITE
    .union(WatchMask::MODIFY)
    .union(WatchMask::CREATE)
    .union(WatchMask::DELETE)
    .union(WatchMask::MOVE)
    .union(WatchMask::ATTRIB)
    .union(WatchMask::DELETE_SELF)
    .union(WatchMask::MOVE_SELF)
    .union(WatchMask::ONLYDIR);

/// What can change where a directory's name leads.
const WAYS: WatchMask = WatchMask::CREATE
    .union(WatchMask::DELETE)
    .union(WatchMask::MOVE)
    .union(WatchMask::DELETE_SELF)
    .union(WatchMask::MOVE_SELF)
    .union(WatchMask::ONLYDIR);

/// What has been watched since before the first look, so that nothing that happens in between is missed.
pub struct Watch {
    inotify: Inotify,
    watched: Watched,
    wanted: Wanted,
}

impl Watch {
    /// Begins to watch the directories of modules and the configuration.
    pub fn begin(places: &Places, config: &Path) -> std::io::Result<Self> {
        let inotify = Inotify::init()?;
        let mut watched = Watched { watches: inotify.watches(), by: Vec::new() };
        let wanted = Wanted::of(places, config);
        watched.add(&wanted);
        Ok(Self { inotify, watched, wanted })
    }

    /// Has the dispatcher look anew at each change, for as long as it is polled.
    pub async fn follow(self, dispatcher: Arc<Dispatcher>) {
        if let Err(error) = self.follow_events(&dispatcher).await {
            tracing::error!(%error, "changes of modules and configuration are no longer noticed");
        }
    }

    async fn follow_events(self, dispatcher: &Dispatcher) -> std::io::Result<()> {
        let Self { inotify, mut watched, wanted } = self;
        let mut events = inotify.into_event_stream(vec![0; 16 << 10])?;
        while let Some(event) = events.next().await {
            if !watched.concerns(&event?, &wanted) {
                continue;
            }
            while let Ok(Some(event)) = tokio::time::timeout(TOGETHER, events.next()).await {
                event?;
            }
            // A directory may have come, gone, or been replaced by another of its name.
            watched.add(&wanted);
            dispatcher.reload().await;
        }
        Ok(())
    }
}

/// A directory, and which names in it matter.
struct Place {
    directory: PathBuf,
    names: Names,
}

enum Names {
    /// Components and what pins them.
    Modules,
    One(PathBuf),
}

impl Place {
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

/// Everything that matters, whether it is there or not.
struct Wanted(Vec<Place>);

impl Wanted {
    fn of(places: &Places, config: &Path) -> Self {
        let modules = places.directories();
        let modules =
            modules.map(|directory| Place { directory: directory.to_owned(), names: Names::Modules });
        // Where the file is a link, it is what the link leads to that is written to.
        let real = config.canonicalize().ok();
        let files = [Some(config), real.as_deref()].into_iter().flatten().filter_map(Place::of_file);
        Self(modules.chain(files).collect())
    }
}

/// What is being watched: every wanted directory, and all above it, since a link there may be made to lead elsewhere.
struct Watched {
    watches: Watches,
    by: Vec<(WatchDescriptor, PathBuf)>,
}

impl Watched {
    /// Watching twice what is watched already changes nothing.
    fn add(&mut self, wanted: &Wanted) {
        self.by.clear();
        let directories: BTreeSet<&Path> = wanted
            .0
            .iter()
            .flat_map(|place| place.directory.ancestors().filter(|directory| directory.is_dir()))
            .collect();
        for directory in directories {
            let is_wanted = wanted.0.iter().any(|place| place.directory == directory);
            match self.watches.add(directory, if is_wanted { CHANGES } else { WAYS }) {
                Ok(watch) => self.by.push((watch, directory.to_owned())),
                Err(error) => {
                    tracing::warn!(directory = %directory.display(), %error, "changes there are not noticed");
                }
            }
        }
    }

    fn concerns(&self, event: &Event<impl AsRef<OsStr>>, wanted: &Wanted) -> bool {
        let mut directories = self.by.iter().filter(|(watch, _)| *watch == event.wd);
        let Some(name) = &event.name else {
            // A directory itself has changed, or the kernel's queue was too short for all that happened.
            let is_wanted = |directory: &PathBuf| wanted.0.iter().any(|place| place.directory == *directory);
            return event.mask.contains(EventMask::Q_OVERFLOW)
                || event.mask.intersects(EventMask::DELETE_SELF | EventMask::MOVE_SELF)
                || directories.any(|(_, directory)| is_wanted(directory));
        };
        let name = name.as_ref();
        directories.any(|(_, directory)| {
            wanted.0.iter().any(|place| match place.directory.strip_prefix(directory) {
                Ok(rest) if rest.as_os_str().is_empty() => place.has(name),
                // The next step on the way to a directory that isn't there yet.
                Ok(rest) => rest.components().next().is_some_and(|next| next.as_os_str() == name),
                Err(_) => false,
            })
        })
    }
}
