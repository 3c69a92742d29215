//! Recognizes shells, and the text that a shell gets to run.

const SHELLS: [&str; 12] =
    ["sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "fish", "csh", "tcsh", "rbash"];

/// Whether the program is a shell.
pub fn is_shell(program: &str) -> bool {
    SHELLS.contains(&name(program))
}

/// The name in a program's path.
pub fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The text of `sh -c TEXT`.
pub fn shell_text<S: AsRef<str>>(argv: &[S]) -> Option<&str> {
    let (program, arguments) = argv.split_first()?;
    if !is_shell(program.as_ref()) {
        return None;
    }
    let mut arguments = arguments.iter().map(AsRef::as_ref);
    let option = arguments.by_ref().find(|option: &&str| !option.starts_with('-') || is_c(option))?;
    if is_c(option) { arguments.find(|argument| !argument.starts_with(['-', '+'])) } else { None }
}

/// Whether the option is `-c`, alone or among other letters.
fn is_c(option: &str) -> bool {
    option.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains('c'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_sh_c_is_found_behind_options() {
        let table = [
            ("sh -c x", Some("x")),
            ("/bin/bash -ec x y", Some("x")),
            ("bash --norc -c x", Some("x")),
            ("bash -c -- x", Some("x")),
            ("sh /etc/x -c y", None),
            ("sh", None),
            ("sh -c", None),
            ("rsync -c x", None),
        ];
        for (line, expected) in table {
            let argv: Vec<&str> = line.split(' ').collect();
            assert_eq!(shell_text(&argv), expected, "{line}");
        }
    }
}
