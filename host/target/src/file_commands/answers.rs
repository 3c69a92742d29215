//! Reads the output of `stat`, `readlink`, `dd` and `ls`. It comes from another machine, or holds names that anybody
//! may have given. Each form is read to the letter, and output that differs from it is a problem and no answer.

use rustix::io::Errno;

use crate::entry::Entry;
use crate::files::too_many_names;
use crate::resolve::utf8;
use host_base::Output;
use host_base::problem::{Category, Problem};
use host_text::visible::excerpt;

/// The most characters that are shown of output that wasn't understood.
const SHOWN: usize = 200;

/// Returns what is at each path, from lines of `%f:%u:%g:%s:%Y:%h:%D:%i:%U:%G:%n`. For a path without a line, stderr
/// has the reason, in the same order.
pub(super) fn entries(paths: &[String], output: Output) -> Vec<Result<Option<Entry>, Problem>> {
    let all = |problem: Problem| paths.iter().map(|_| Err(problem.clone())).collect();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let Some(lines) = text(&output) else { return all(unexpected("stat", &output)) };
    let mut lines = lines.lines().peekable();
    let mut errors = own_errors("stat", &stderr);
    let mut answers = Vec::with_capacity(paths.len());
    for path in paths {
        // The path comes last in a line, behind a colon, and so whatever is in it belongs to it. Without the colon, a
        // longer path could end in this one.
        let fields = lines.peek().and_then(|line| line.strip_suffix(path.as_str()));
        let fields = fields.filter(|fields| fields.ends_with(':')).map(str::to_owned);
        answers.push(match fields {
            Some(fields) => {
                lines.next();
                entry(&fields).map(Some).ok_or_else(|| unexpected("stat", &output))
            }
            None => match errors.next().map(errno) {
                Some(Some(Errno::NOENT | Errno::NOTDIR)) => Ok(None),
                Some(Some(errno)) => Err(Problem::io(path, &errno.into())),
                Some(None) => Err(unexpected("stat", &output)),
                None => return all(unexpected("stat", &output)),
            },
        });
    }
    let is_whole = lines.next().is_none() && errors.next().is_none();
    let has_all = answers.iter().all(|answer| matches!(answer, Ok(Some(_))));
    match (is_whole, output.exit_code) {
        (true, 0) if has_all => answers,
        (true, 1) if !has_all => answers,
        _ => all(unexpected("stat", &output)),
    }
}

/// Reads a line such as `41ed:0:0:4096:1795201018:17:fe00:2:root:root:`.
fn entry(fields: &str) -> Option<Entry> {
    let [mode, uid, gid, size, modified, links, device, inode, owner, group, ""] =
        fields.split(':').collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
    let name = |name: &str, id: u32| match name {
        "" => None,
        "UNKNOWN" => Some(id.to_string()),
        name => Some(name.to_owned()),
    };
    Some(Entry {
        mode: u32::from_str_radix(mode, 16).ok()?,
        uid,
        gid,
        size: size.parse().ok()?,
        modified_unix: modified.parse().ok()?,
        links: links.parse().ok()?,
        device: u64::from_str_radix(device, 16).ok()?,
        inode: inode.parse().ok()?,
        names: Some((name(owner, uid)?, name(group, gid)?)),
    })
}

/// Returns the targets of links, from as many NUL-terminated texts.
pub(super) fn targets(links: &[String], output: Output) -> Vec<Result<String, Problem>> {
    let targets = output.stdout.strip_suffix(b"\0").map(|all| all.split(|byte| *byte == 0));
    let targets: Vec<_> = targets.into_iter().flatten().collect();
    if output.exit_code != 0 || output.truncated || targets.len() != links.len() {
        let problem = unexpected("readlink", &output);
        return links.iter().map(|_| Err(problem.clone())).collect();
    }
    links.iter().zip(targets).map(|(link, target)| utf8(link, target.to_vec())).collect()
}

/// Returns the contents that `dd` read.
pub(super) fn contents(path: &str, output: Output) -> Result<Vec<u8>, Problem> {
    match output.exit_code {
        0 if !output.truncated => Ok(output.stdout),
        _ => Err(failed("dd", path, &output)),
    }
}

/// Returns the names that `ls` lists, sorted. Each line holds one in C's quotes.
pub(super) fn names(path: &str, output: Output) -> Result<Vec<String>, Problem> {
    if output.exit_code != 0 {
        return Err(failed("ls", path, &output));
    }
    if output.truncated {
        let kept = output.stdout.iter().filter(|byte| **byte == b'\n').count();
        return Err(too_many_names(path, kept));
    }
    let name = |line: &str| {
        let name = unquoted(line)?;
        let is_name = !name.is_empty() && !name.contains(&b'/') && name != b"." && name != b"..";
        is_name.then(|| String::from_utf8_lossy(&name).into_owned())
    };
    let names = text(&output).and_then(|lines| lines.lines().map(name).collect::<Option<Vec<_>>>());
    let mut names = names.ok_or_else(|| unexpected("ls", &output))?;
    names.sort_unstable();
    Ok(names)
}

/// Reads `"a\"b\303\274\n"` without its quotes, as C does.
fn unquoted(line: &str) -> Option<Vec<u8>> {
    let mut quoted = line.strip_prefix('"')?.strip_suffix('"')?.bytes();
    let mut bytes = Vec::with_capacity(quoted.len());
    while let Some(byte) = quoted.next() {
        bytes.push(match byte {
            b'"' => return None,
            b'\\' => match quoted.next()? {
                quote @ (b'"' | b'\\') => quote,
                b'a' => 7,
                b'b' => 8,
                b't' => b'\t',
                b'n' => b'\n',
                b'v' => 11,
                b'f' => 12,
                b'r' => b'\r',
                first @ b'0'..=b'3' => {
                    let mut octal = || quoted.next().filter(|digit| (b'0'..=b'7').contains(digit));
                    let (second, third) = (octal()?, octal()?);
                    (first - b'0') << 6 | (second - b'0') << 3 | (third - b'0')
                }
                _ => return None,
            },
            byte => byte,
        });
    }
    Some(bytes)
}

/// Returns stdout where it came whole: in UTF-8, and with an end on every line.
fn text(output: &Output) -> Option<&str> {
    let text = std::str::from_utf8(&output.stdout).ok()?;
    (!output.truncated && (text.is_empty() || text.ends_with('\n'))).then_some(text)
}

/// Returns the lines of stderr that the program itself wrote, without sudo's.
fn own_errors<'a>(program: &'a str, stderr: &'a str) -> impl Iterator<Item = &'a str> {
    stderr.lines().filter(move |line| {
        let speaker = line.split_once(": ").map_or("", |(speaker, _)| speaker);
        speaker.rsplit('/').next() == Some(program)
    })
}

/// Returns the system's error at the end of an untranslated message.
fn errno(message: &str) -> Option<Errno> {
    let (_, reason) = message.rsplit_once(": ")?;
    Some(match reason {
        "No such file or directory" => Errno::NOENT,
        "Not a directory" => Errno::NOTDIR,
        "Is a directory" => Errno::ISDIR,
        "Permission denied" => Errno::ACCESS,
        "Operation not permitted" => Errno::PERM,
        "Too many levels of symbolic links" => Errno::LOOP,
        "File name too long" => Errno::NAMETOOLONG,
        "Input/output error" => Errno::IO,
        _ => return None,
    })
}

/// Returns the reason why a program that was asked about one path failed.
fn failed(program: &str, path: &str, output: &Output) -> Problem {
    let stderr = String::from_utf8_lossy(&output.stderr);
    match own_errors(program, &stderr).last().and_then(errno) {
        Some(errno) => Problem::io(path, &errno.into()),
        None => unexpected(program, output),
    }
}

/// The problem of output in another form than expected. Where sudo answered instead, the problem says why.
fn unexpected(program: &str, output: &Output) -> Problem {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let of_sudo =
        output.exit_code == 1 && output.stdout.is_empty() && own_errors(program, &stderr).next().is_none();
    let said = if stderr.trim().is_empty() { String::from_utf8_lossy(&output.stdout) } else { stderr };
    let said = excerpt(said.trim(), SHOWN);
    if of_sudo && !said.is_empty() {
        let mut problem = crate::command_problem::no_root();
        problem.message = format!("{}, and {program} was not run: {said}", problem.message);
        return problem;
    }
    let message =
        format!("{program} (exit code {}) gave no answer that can be read: {said}", output.exit_code);
    Problem::new("UNEXPECTED_OUTPUT", Category::Other, message)
}

/// The problem of an answer that is missing.
pub(super) fn missing(program: &str) -> Problem {
    Problem::new("INTERNAL_ERROR", Category::Internal, format!("{program} was not asked"))
}

#[cfg(test)]
mod tests;
