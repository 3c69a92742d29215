//! Files that everybody may read, in directories of the programs that write them.

use linux_sysadmin_sdk::{Privilege, prelude::*};

/// An account without rights of its own.
const NOBODY: &str = "nobody";

/// The right to read such files.
pub(crate) fn grants(glob: &str, reason: &str) -> [PathGrant; 2] {
    [PathGrant::read(glob, reason), PathGrant::read(glob, reason).as_user(NOBODY)]
}

/// Reads several files. Root isn't led by what another account may put into a directory of its own: what is refused for that
/// reason is read as `nobody`.
pub(crate) fn read_all(paths: &[String], cx: &Context) -> Vec<Result<String>> {
    let mut texts = cx.read_all(paths);
    let is_refused =
        |text: &Result<String>| text.as_ref().is_err_and(|problem| problem.code == "UNTRUSTED_DIRECTORY");
    let (refused, again): (Vec<_>, Vec<_>) =
        texts.iter_mut().zip(paths).filter(|(text, _)| is_refused(text)).unzip();
    if !again.is_empty() {
        let read = cx.files_as(Privilege::User(NOBODY.to_owned())).read_all(&again);
        refused.into_iter().zip(read).for_each(|(text, read)| *text = read);
    }
    texts
}

/// Reads one file.
pub(crate) fn read(path: &str, cx: &Context) -> Result<String> {
    read_all(&[path.to_owned()], cx).remove(0)
}
