//! Tests of the log as a whole.

mod concurrent;
mod damage;
mod writer;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use super::examples::{audit, begun, call, ended};
use super::*;

const ROOMY: Settings = Settings { rotate_bytes: 64 << 20, keep: 20 };

/// Makes a log with this number of calls.
fn with_calls(calls: u32, settings: Settings) -> (TempDir, AuditLog) {
    let home = tempfile::tempdir().unwrap();
    let audit = examples::with_calls(home.path(), calls, settings);
    (home, audit)
}

fn verified(directory: &Path) -> Verified {
    verify(directory, &JournalHeads::default()).unwrap()
}

fn records(directory: &Path) -> Vec<Record> {
    Snapshot::open(directory).unwrap().records().map(|record| record.unwrap().unwrap()).collect()
}

/// The paths of the log's files of records, the oldest first.
fn log_files(directory: &Path) -> Vec<PathBuf> {
    let full = files::rotated_files(directory).unwrap();
    let mut paths: Vec<PathBuf> = full.iter().map(|full| directory.join(full.name())).collect();
    let current = directory.join(files::CURRENT_FILE);
    if current.exists() {
        paths.push(current);
    }
    paths
}

/// Copies the whole directory.
fn copy(from: &Path) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
    }
    to
}
