//! The paths that callers name.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*, text::excerpt, text::has_hidden};

/// Follows the symlinks of a path. The hole takes the path as a text, as the walk does.
const RESOLVE: CommandLine = CommandLine::new("realpath --canonicalize-existing --zero -- <text>");

/// The longest path in bytes (PATH_MAX).
const LONGEST: usize = 4095;

pub(crate) fn grants() -> [CommandGrant; 1] {
    [RESOLVE.read("the path without symlinks, which a mount is found by").as_root_if_available()]
}

/// The path without symlinks.
///
/// Problems: `INVALID_PATH`, `PATH_NOT_FOUND`, `PATH_UNREADABLE`, and `FILE_SYSTEM_HANGS`.
pub(crate) fn resolved(path: &str, cx: &Context) -> Result<String> {
    let is_plain = path.starts_with('/') && path.len() <= LONGEST && !has_hidden(path);
    let shown = excerpt(path, 80);
    if !is_plain {
        let message =
            format!("{shown:?} is refused: expected an absolute path of characters that can be seen");
        return Err(Problem::validation("INVALID_PATH", message));
    }
    let output = cx.run(RESOLVE.with([path]).privilege(Privilege::RootIfAvailable)).map_err(|problem| {
        if problem.code != "COMMAND_TIMEOUT" {
            return problem;
        }
        let message = format!("{shown} lies on a file system that doesn't answer within 10 s");
        Problem::new("FILE_SYSTEM_HANGS", Category::Timeout, message)
            .remedy("disk_usage {} says which file systems answer")
    })?;
    if let Some(found) = output.text().strip_suffix('\0').filter(|_| output.exit_code == 0) {
        return Ok(found.to_owned());
    }
    let said = output.error_text();
    if said.contains("No such file or directory") || said.contains("Not a directory") {
        return Err(Problem::not_found("PATH_NOT_FOUND", format!("there is no {shown}")));
    }
    let why = said.rsplit(": ").next().unwrap_or_default();
    Err(Problem::new("PATH_UNREADABLE", Category::State, format!("{shown} can't be followed: {why}")))
}
