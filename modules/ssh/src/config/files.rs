//! The files of a configuration: the account's own, and those that it includes.

use linux_sysadmin_sdk::{Category, prelude::*};

use super::{Broken, Config, Included};
use crate::account::{Account, link};

/// The most files that are read.
const MOST: usize = 200;

/// The path and the text of the account's own file, without text where there is none. A symlink is a problem where the
/// file is to be written.
pub(crate) fn own(account: &Account, to_write: bool, cx: &Context) -> Result<(String, Option<String>)> {
    let directory = account.directory();
    let path = format!("{directory}/config");
    let mut found = cx.stat_all(&[&directory, &path]).into_iter();
    let mut next = || found.next().unwrap_or(Ok(None));
    let (above, file) = (next()?, next());
    if to_write && above.is_some_and(|above| above.is_symlink) {
        return Err(link(&directory, "the directory of the SSH configuration"));
    }
    let file = file?;
    if to_write && file.as_ref().is_some_and(|file| file.is_symlink) {
        return Err(link(&path, "the SSH configuration"));
    }
    let bytes = match cx.read_bytes(&path) {
        Ok(bytes) => bytes,
        // The file is read all the same, so that the host makes sure that it is still missing when the plan runs.
        Err(problem) if file.is_none() && problem.category == Category::NotFound => return Ok((path, None)),
        Err(problem) => return Err(problem),
    };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if !to_write => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        Err(_) => {
            let message = format!("{path} isn't UTF-8: it isn't edited");
            return Err(Problem::new("CONFIG_NOT_TEXT", Category::State, message).remedy("Edit it by hand"));
        }
    };
    Ok((path, Some(text)))
}

/// Reads a configuration with all files that it includes.
pub(crate) fn read(
    path: &str,
    text: &str,
    account: &Account,
    cx: &Context,
) -> std::result::Result<Config, Broken> {
    let left = std::cell::Cell::new(MOST);
    let include = |argument: &str| included(argument, account, &left, cx);
    let mut config = Config::read(path, text, &include)?;
    config.unread.dedup();
    Ok(config)
}

/// The files that an argument of Include names. A file that doesn't exist is no error.
fn included(
    argument: &str,
    account: &Account,
    left: &std::cell::Cell<usize>,
    cx: &Context,
) -> std::result::Result<Vec<Included>, String> {
    if argument.contains(['%', '$']) {
        return Err("tokens and variables aren't followed".to_owned());
    }
    let path = match argument.strip_prefix("~/") {
        Some(below) => format!("{}/{below}", account.home),
        None if argument.starts_with('~') => return Err("another account's home isn't followed".to_owned()),
        None if argument.starts_with('/') => argument.to_owned(),
        None => format!("{}/{argument}", account.directory()),
    };
    let mut files = Vec::new();
    for path in expanded(&path, cx)? {
        if left.get() == 0 {
            return Err(format!("more than {MOST} files are included"));
        }
        left.set(left.get() - 1);
        match cx.read(&path) {
            Ok(text) => files.push((path, Ok(text))),
            Err(problem) if problem.category == Category::NotFound => {}
            Err(problem) => files.push((path, Err(problem.message))),
        }
    }
    Ok(files)
}

/// The existing paths that match a glob (glob(7)), sorted. A path without a wildcard stands for itself.
fn expanded(path: &str, cx: &Context) -> std::result::Result<Vec<String>, String> {
    let options = glob::MatchOptions { require_literal_leading_dot: true, ..glob::MatchOptions::default() };
    let mut paths = vec![String::new()];
    for name in path.split('/').filter(|name| !name.is_empty()) {
        if !name.contains(['*', '?', '[']) {
            paths.iter_mut().for_each(|path| *path = format!("{path}/{name}"));
            continue;
        }
        let pattern = glob::Pattern::new(name).map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        for path in &paths {
            let names = match cx.list_dir(path) {
                Ok(names) => names,
                Err(problem) if problem.category == Category::NotFound => continue,
                Err(problem) => return Err(problem.message),
            };
            let fitting = names.into_iter().filter(|name| pattern.matches_with(name, options));
            found.extend(fitting.map(|name| format!("{path}/{name}")));
        }
        paths = found;
    }
    Ok(paths)
}
