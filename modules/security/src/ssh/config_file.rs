//! The text in which the hardening settles: a drop-in that sorts first, or a block at the top of the main file. sshd takes
//! the first value that it reads of a keyword, outside of `Match` blocks.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

/// The main file.
pub(super) const MAIN: &str = "/etc/ssh/sshd_config";
/// The directory of further files.
pub(super) const DIRECTORY: &str = "/etc/ssh/sshd_config.d";
/// The file of the hardening.
pub(super) const DROP_IN: &str = "/etc/ssh/sshd_config.d/00-linux-sysadmin.conf";

/// Check a staged file as if it were the whole configuration.
pub(super) const CHECK_DROP_IN: CommandLine = CommandLine::new("sshd -t -f <path:/etc/ssh/sshd_config.d/*>");
pub(super) const CHECK_MAIN: CommandLine = CommandLine::new("sshd -t -f <path:/etc/ssh/sshd_config>");

const COMMENT: &str = "# Set by sec_harden_ssh of linux-sysadmin. sshd takes the first value of a keyword.";
const BEGIN: &str = "# BEGIN linux-sysadmin";
const END: &str = "# END linux-sysadmin";

/// A keyword and its value.
pub(super) type Setting = (String, String);

/// The file that is written.
#[derive(Debug, PartialEq)]
pub(super) struct Edit {
    pub path: &'static str,
    /// `None` where there is no file yet.
    pub before: Option<String>,
    pub after: String,
}

/// The configuration as it lies in the files.
#[derive(Debug)]
pub(super) struct ConfigFiles {
    main: String,
    /// The drop-ins that the main file includes, with their paths, in the order in which sshd reads them.
    others: Vec<(String, String)>,
}

impl ConfigFiles {
    /// Reads the files. Problems: `SSH_DIRECTORY_IS_LINK`, `NO_SSHD_CONFIG`.
    pub fn read(cx: &Context) -> Result<Self> {
        if cx.stat_all(&["/etc/ssh"]).remove(0)?.is_some_and(|found| found.is_symlink) {
            let message = "/etc/ssh is a symlink: it isn't followed, expected a directory";
            return Err(Problem::new("SSH_DIRECTORY_IS_LINK", Category::State, message)
                .remedy("Put the directory itself in its place, or change what it leads to by hand"));
        }
        let cx = cx.files_as(Privilege::RootIfAvailable);
        let main = cx.read(MAIN).map_err(|problem| match problem.category {
            Category::NotFound => {
                let message = format!("there is no {MAIN}, so it isn't known what sshd reads first");
                Problem::new("NO_SSHD_CONFIG", Category::State, message)
                    .remedy("Make it, with the line `Include /etc/ssh/sshd_config.d/*.conf`")
            }
            _ => problem,
        })?;
        let names = match cx.list_dir(DIRECTORY) {
            Err(problem) if problem.category == Category::NotFound => Vec::new(),
            names => names?,
        };
        let names = names.iter().filter(|name| name.ends_with(".conf") && !name.starts_with('.'));
        let mut paths: Vec<String> = names.map(|name| format!("{DIRECTORY}/{name}")).collect();
        // The own file is read although it may not be there, so that the host makes sure that it still isn't when the plan
        // runs.
        if !paths.iter().any(|path| path == DROP_IN) {
            paths.push(DROP_IN.to_owned());
        }
        let mut others = Vec::new();
        for (text, path) in cx.read_all(&paths).into_iter().zip(paths) {
            match text {
                Ok(text) => others.push((path, text)),
                Err(problem) if problem.category == Category::NotFound => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok(Self { main, others })
    }

    /// The text with these settings, in the place where sshd reads it first.
    pub fn with(&self, settings: &[Setting]) -> Edit {
        let own = self.others.iter().find(|(path, _)| path == DROP_IN).map(|(_, text)| text.clone());
        if self.drop_in_is_first() {
            let after = merged(own.as_deref().unwrap_or_default(), settings);
            return Edit { path: DROP_IN, before: own, after };
        }
        let (block, rest) = split(&self.main);
        let after = format!("{BEGIN}\n{}{END}\n{rest}", merged(&block, settings));
        Edit { path: MAIN, before: Some(self.main.clone()), after }
    }

    /// True if sshd reads the drop-in before everything else.
    fn drop_in_is_first(&self) -> bool {
        let includes = |line: &str| {
            let (keyword, value) = keyword(line)?;
            Some(is_include(keyword) && value.split_whitespace().next().is_some_and(is_directory))
        };
        self.main.lines().find_map(includes) == Some(true)
            && self.others.iter().all(|(path, _)| path.as_str() >= DROP_IN)
    }

    /// The first line that sets a keyword, as `FILE:LINE`: in a `Match` block, or outside of them.
    pub fn place(&self, wanted: &str, in_match: bool) -> Option<String> {
        let is_it =
            |line: &&PlacedLine<'_>| line.in_match == in_match && line.keyword.eq_ignore_ascii_case(wanted);
        let found = self.lines();
        found.iter().find(is_it).map(|line| format!("{}:{}", line.path, line.number))
    }

    /// The line that a value in effect comes from, as far as the files show it. A value for all accounts may be set by a `Match`
    /// block for the address, and then a line with another value outside of the block isn't the one.
    pub fn place_of(&self, keyword: &str, value: &str, is_for_all: bool) -> Option<String> {
        let lines = self.lines();
        let of = |in_match: bool, has_value: bool| {
            let is_it = |line: &&PlacedLine<'_>| {
                line.in_match == in_match
                    && line.keyword.eq_ignore_ascii_case(keyword)
                    && (!has_value || line.value.eq_ignore_ascii_case(value))
            };
            lines.iter().find(is_it).map(|line| format!("{}:{}", line.path, line.number))
        };
        match is_for_all {
            false => of(true, true).or_else(|| of(true, false)),
            true => of(false, true).or_else(|| of(true, true)).or_else(|| of(false, false)),
        }
    }

    /// The lines with a keyword, in the order in which sshd reads them. Included files other than the drop-ins are left out.
    fn lines(&self) -> Vec<PlacedLine<'_>> {
        let mut all = Vec::new();
        let mut in_match = false;
        for (number, line) in self.main.lines().enumerate() {
            let Some((keyword, value)) = keyword(line) else { continue };
            in_match |= keyword.eq_ignore_ascii_case("Match");
            if is_include(keyword) && value.split_whitespace().any(is_directory) {
                let files = self.others.iter();
                all.extend(files.flat_map(|(path, text)| lines_of(path, text, in_match)));
            }
            all.push(PlacedLine { path: MAIN, number: number + 1, keyword, value, in_match });
        }
        all
    }
}

/// A line of a file.
struct PlacedLine<'a> {
    path: &'a str,
    number: usize,
    keyword: &'a str,
    value: &'a str,
    in_match: bool,
}

/// The lines of a drop-in. A `Match` block of its own ends with the file.
fn lines_of<'a>(path: &'a str, text: &'a str, mut in_match: bool) -> Vec<PlacedLine<'a>> {
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some((keyword, value)) = keyword(line) else { continue };
        in_match |= keyword.eq_ignore_ascii_case("Match");
        all.push(PlacedLine { path, number: number + 1, keyword, value, in_match });
    }
    all
}

fn is_include(keyword: &str) -> bool {
    keyword.eq_ignore_ascii_case("Include")
}

/// True if a word of an `Include` means the drop-ins.
fn is_directory(word: &str) -> bool {
    matches!(word.trim_matches('"'), "/etc/ssh/sshd_config.d/*.conf" | "sshd_config.d/*.conf")
}

/// The keyword of a line and what follows it (sshd_config(5)). `None` for an empty line and a comment.
fn keyword(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line.find([' ', '\t', '=']).unwrap_or(line.len());
    let (keyword, value) = line.split_at(end);
    Some((keyword, value.trim_start_matches([' ', '\t', '='])))
}

/// An own text with these settings, each in its former place, or at the end. Other lines stay, and a `Match` block keeps to
/// the end.
fn merged(text: &str, settings: &[Setting]) -> String {
    let mut left: Vec<&Setting> = settings.iter().collect();
    let mut lines = vec![COMMENT.to_owned()];
    let set = |(keyword, value): &Setting| format!("{keyword} {value}");
    let mut is_in_match = false;
    for line in text.lines().filter(|line| *line != COMMENT) {
        let keyword = keyword(line).map(|(keyword, _)| keyword).unwrap_or_default();
        let is_it = |(own, _): &Setting| own.eq_ignore_ascii_case(keyword);
        if keyword.eq_ignore_ascii_case("Match") {
            lines.extend(left.drain(..).map(set));
            is_in_match = true;
        }
        match settings.iter().find(|setting| !is_in_match && is_it(setting)) {
            Some(setting) if left.contains(&setting) => {
                left.retain(|other| *other != setting);
                lines.push(set(setting));
            }
            // sshd passes over a second value.
            Some(_) => {}
            None => lines.push(line.to_owned()),
        }
    }
    lines.extend(left.into_iter().map(set));
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The own block of the main file, without its marks, and the file without the block.
fn split(main: &str) -> (String, String) {
    let Some(begin) = main.find(&format!("{BEGIN}\n")).filter(|at| *at == 0) else {
        return (String::new(), main.to_owned());
    };
    let inside = &main[begin + BEGIN.len() + 1..];
    let end = format!("{END}\n");
    let found = inside.split_once(&end).filter(|(block, _)| block.is_empty() || block.ends_with('\n'));
    match found {
        Some((block, rest)) => (block.to_owned(), rest.to_owned()),
        // Without its end it is no block.
        None => (String::new(), main.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "# comment\n\nInclude /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n";

    fn files(main: &str, others: &[(&str, &str)]) -> ConfigFiles {
        let others = others.iter().map(|(name, text)| (format!("{DIRECTORY}/{name}"), text.to_string()));
        ConfigFiles { main: main.to_owned(), others: others.collect() }
    }

    fn settings(pairs: &[(&str, &str)]) -> Vec<Setting> {
        pairs.iter().map(|(keyword, value)| (keyword.to_string(), value.to_string())).collect()
    }

    #[test]
    fn the_drop_in_is_used_where_sshd_reads_it_first() {
        for (main, others, is_first) in [
            (DEBIAN, &[][..], true),
            (DEBIAN, &[("50-cloud-init.conf", "PasswordAuthentication yes\n")], true),
            (DEBIAN, &[("00-a.conf", "X11Forwarding yes\n")], false),
            ("include=\"sshd_config.d/*.conf\"\n", &[], true),
            ("PermitRootLogin yes\nInclude /etc/ssh/sshd_config.d/*.conf\n", &[], false),
            ("Include /etc/crypto.conf /etc/ssh/sshd_config.d/*.conf\n", &[], false),
            ("Port 22\n", &[], false),
            ("", &[], false),
        ] {
            let edit = files(main, others).with(&settings(&[("MaxAuthTries", "3")]));
            assert_eq!(edit.path == DROP_IN, is_first, "{main}");
            assert!(edit.after.contains("MaxAuthTries 3\n"));
            assert_eq!(is_first, !edit.after.contains(BEGIN), "{main}");
        }
    }

    #[test]
    fn a_later_call_keeps_what_an_earlier_one_has_set() {
        let one = settings(&[("MaxAuthTries", "3")]);
        let two = settings(&[("X11Forwarding", "no"), ("maxauthtries", "2")]);
        let first = files(DEBIAN, &[]).with(&one).after;
        let second = files(DEBIAN, &[("00-linux-sysadmin.conf", &first)]).with(&two);
        assert_eq!(second.after, format!("{COMMENT}\nmaxauthtries 2\nX11Forwarding no\n"));
        let main = "Port 22\nPermitRootLogin yes\n";
        let first = files(main, &[]).with(&one).after;
        assert_eq!(first, format!("{BEGIN}\n{COMMENT}\nMaxAuthTries 3\n{END}\n{main}"));
        let second = files(&first, &[]).with(&settings(&[("X11Forwarding", "no")])).after;
        assert_eq!(second, format!("{BEGIN}\n{COMMENT}\nMaxAuthTries 3\nX11Forwarding no\n{END}\n{main}"));
        // The same again changes nothing.
        assert_eq!(files(&first, &[]).with(&one).after, first);
    }

    #[test]
    fn what_somebody_adds_to_the_own_file_stays() {
        let text = "# note\nMaxAuthTries 9\nMaxAuthTries 8\nMatch User ada\nMaxAuthTries 2\n";
        let expected =
            format!("{COMMENT}\n# note\nMaxAuthTries 3\nX11Forwarding no\nMatch User ada\nMaxAuthTries 2\n");
        assert_eq!(merged(text, &settings(&[("X11Forwarding", "no"), ("MaxAuthTries", "3")])), expected);
        assert_eq!(merged(&expected, &settings(&[("X11Forwarding", "no")])), expected);
    }

    #[test]
    fn a_block_without_its_end_is_none() {
        let main = format!("{BEGIN}\nPort 22\n");
        assert_eq!(split(&main), (String::new(), main));
    }

    #[test]
    fn a_keyword_is_found_with_its_line_in_a_match_block_and_outside() {
        let main = format!("{DEBIAN}MaxAuthTries 9\nMatch User ada\n  maxauthtries=5\n");
        let files = files(&main, &[("50-a.conf", "UseDNS no\nMatch all\nX11Forwarding yes\n")]);
        for (keyword, in_match, expected) in [
            ("MaxAuthTries", true, Some("/etc/ssh/sshd_config:7")),
            ("MaxAuthTries", false, Some("/etc/ssh/sshd_config:5")),
            ("X11Forwarding", true, Some("/etc/ssh/sshd_config.d/50-a.conf:3")),
            ("X11Forwarding", false, None),
            ("UseDNS", false, Some("/etc/ssh/sshd_config.d/50-a.conf:1")),
            // The block of a drop-in ends with the file.
            ("UsePAM", false, Some("/etc/ssh/sshd_config:4")),
            ("UsePAM", true, None),
        ] {
            assert_eq!(files.place(keyword, in_match).as_deref(), expected, "{keyword} {in_match}");
        }
    }

    #[test]
    fn a_value_in_effect_comes_from_the_line_that_sets_it() {
        let main = "PermitRootLogin no\nX11Forwarding yes\nMatch Address 192.0.2.0/24\nPermitRootLogin yes\n\
            Match User ada\nX11Forwarding no\n";
        let files = files(main, &[]);
        for (keyword, value, is_for_all, line) in [
            // A block for the address in use counts for all accounts.
            ("PermitRootLogin", "yes", true, Some(4)),
            ("PermitRootLogin", "no", true, Some(1)),
            ("X11Forwarding", "yes", true, Some(2)),
            ("X11Forwarding", "no", false, Some(6)),
            // sshd prints it in another form than the file has it.
            ("PermitRootLogin", "without-password", true, Some(1)),
            ("PermitRootLogin", "without-password", false, Some(4)),
            ("MaxAuthTries", "9", true, None),
        ] {
            let expected = line.map(|line| format!("/etc/ssh/sshd_config:{line}"));
            assert_eq!(
                files.place_of(keyword, value, is_for_all),
                expected,
                "{keyword} {value} {is_for_all}"
            );
        }
    }
}
