//! Files that everybody may read, in directories of the accounts whose programs write them.

use linux_sysadmin_sdk::{Privilege, prelude::*};

/// The accounts of systemd's programs.
pub(crate) const NETWORKD: &str = "systemd-network";
pub(crate) const RESOLVED: &str = "systemd-resolve";

/// The right to read such files.
pub(crate) fn grants(glob: &str, owner: &str, reason: &str) -> [PathGrant; 2] {
    [PathGrant::read(glob, reason), PathGrant::read(glob, reason).as_user(owner)]
}

/// Reads several files. Root isn't led by what another account may put into a directory of its own: what is refused for that
/// reason is read as that account.
pub(crate) fn read_all(paths: &[String], owner: &str, cx: &Context) -> Vec<Result<String>> {
    let mut texts = cx.read_all(paths);
    let is_refused =
        |text: &Result<String>| text.as_ref().is_err_and(|problem| problem.code == "UNTRUSTED_DIRECTORY");
    let (refused, again): (Vec<_>, Vec<_>) =
        texts.iter_mut().zip(paths).filter(|(text, _)| is_refused(text)).unzip();
    if !again.is_empty() {
        let read = cx.files_as(Privilege::User(owner.to_owned())).read_all(&again);
        refused.into_iter().zip(read).for_each(|(text, read)| *text = read);
    }
    texts
}

/// Reads one file.
pub(crate) fn read(path: &str, owner: &str, cx: &Context) -> Result<String> {
    read_all(&[path.to_owned()], owner, cx).remove(0)
}
