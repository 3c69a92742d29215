//! Sources with a repository in each line: sources.list(5), "one-line-style format".

use linux_sysadmin_sdk::packages::repositories::Definition;

use super::keys_of;

/// The definitions of a file, and the lines that can't be read, each with the reason. A comment that holds a whole line is a
/// repository that is disabled.
pub(super) fn read(file: &str, text: &str) -> (Vec<Definition>, Vec<(usize, &'static str)>) {
    let (mut definitions, mut malformed) = (Vec::new(), Vec::new());
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        let disabled = line.strip_prefix('#').map(|rest| rest.trim_start_matches(['#', ' ', '\t']));
        match definition(disabled.unwrap_or(line)) {
            Ok(found) => definitions.push(Definition {
                enabled: disabled.is_none(),
                file: file.to_owned(),
                lines: (number, number),
                ..found
            }),
            Err(Some(reason)) if disabled.is_none() => malformed.push((number, reason)),
            Err(_) => {}
        }
    }
    (definitions, malformed)
}

/// The repository of a line. The error is empty where the line is.
fn definition(line: &str) -> Result<Definition, Option<&'static str>> {
    let line = without_comment(line).trim();
    if line.is_empty() {
        return Err(None);
    }
    let (kind, rest) = line.split_once([' ', '\t']).ok_or(Some("deb URL SUITE COMPONENT… is expected"))?;
    if !["deb", "deb-src"].contains(&kind) {
        return Err(Some("deb or deb-src is expected first"));
    }
    let mut found = Definition { types: vec![kind.to_owned()], ..Definition::default() };
    let mut rest = rest.trim_start();
    if let Some(behind) = rest.strip_prefix('[') {
        let (options, behind) = behind.split_once(']').ok_or(Some("] is expected behind the options"))?;
        for option in options.split_whitespace() {
            let (name, value) =
                option.split_once('=').ok_or(Some("name=value is expected between the brackets"))?;
            match name.trim_end_matches(['+', '-']).to_ascii_lowercase().as_str() {
                "signed-by" => found.keys = keys_of(value),
                name => super::note_option(&mut found, name, value),
            }
        }
        rest = behind.trim_start();
    }
    let mut words = words(rest).into_iter();
    found.urls.push(words.next().filter(|url| url.contains(':')).ok_or(Some("a URL is expected"))?);
    found.suites.push(words.next().ok_or(Some("a suite is expected behind the URL"))?);
    found.components = words.collect();
    match found.suites.first().is_some_and(|suite| suite.ends_with('/')) == found.components.is_empty() {
        true => Ok(found),
        false if found.components.is_empty() => Err(Some("a component is expected behind the suite")),
        false => Err(Some("a suite that ends with / has no components")),
    }
}

/// The line up to a `#` that stands outside of brackets.
fn without_comment(line: &str) -> &str {
    let mut inside = false;
    let end = line.char_indices().find(|(_, c)| {
        inside = (inside || *c == '[') && *c != ']';
        *c == '#' && !inside
    });
    end.map_or(line, |(at, _)| &line[..at])
}

/// Words between blanks. Blanks within brackets or quotes belong to their word, as in `cdrom:[Debian 12]/`.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut depth, mut quoted) = (Vec::new(), String::new(), 0_u32, false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' | '\t' if depth == 0 && !quoted => {
                words.push(std::mem::take(&mut word));
                continue;
            }
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c != '"' {
            word.push(c);
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::packages::repositories::KeySource;

    #[test]
    fn a_line_has_options_a_url_a_suite_and_components() {
        let text = "# See sources.list(5) for more.\n\
            deb http://deb.debian.org/debian bookworm main contrib # the base\n\
            # deb-src http://deb.debian.org/debian bookworm main\n\
            deb [ arch=amd64,arm64 signed-by=/usr/share/keyrings/docker.gpg ] https://download.docker.com/linux/debian bookworm stable\n\
            deb [trusted=yes] file:/opt/aptrepo ./\n\
            deb cdrom:[Debian GNU/Linux 12 _Bookworm_]/ bookworm main\n\
            #deb cdrom:x\n\
            deb\thttps://user:pw@a.example/\tstable\tmain\n";
        let (found, malformed) = read("F", text);
        assert_eq!(malformed, []);
        let told: Vec<_> = found
            .iter()
            .map(|found| {
                (
                    found.lines.0,
                    found.enabled,
                    found.types[0].as_str(),
                    found.urls[0].as_str(),
                    found.suites[0].as_str(),
                    found.components.join(","),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (2, true, "deb", "http://deb.debian.org/debian", "bookworm", "main,contrib".to_owned()),
                (3, false, "deb-src", "http://deb.debian.org/debian", "bookworm", "main".to_owned()),
                (4, true, "deb", "https://download.docker.com/linux/debian", "bookworm", "stable".to_owned()),
                (5, true, "deb", "file:/opt/aptrepo", "./", String::new()),
                (6, true, "deb", "cdrom:[Debian GNU/Linux 12 _Bookworm_]/", "bookworm", "main".to_owned()),
                (8, true, "deb", "https://user:pw@a.example/", "stable", "main".to_owned()),
            ]
        );
        assert_eq!(found[2].keys, [KeySource::File("/usr/share/keyrings/docker.gpg".into())]);
        assert_eq!(found[3].unsigned, ["trusted=yes"]);
    }

    #[test]
    fn a_line_that_apt_refuses_is_told_with_its_number_and_the_others_are_there() {
        let lines = [
            "deb",
            "rpm http://a/ b c",
            "deb http://a/",
            "deb http://a/ b",
            "deb [arch=x http://a/ b c",
            "deb [arch] http://a/ b c",
            "deb bookworm main",
            "deb http://a/ ./ main",
            "ключ",
        ];
        for line in lines {
            let (found, malformed) = read("F", &format!("\n{line}\ndeb http://a/ b c\n"));
            assert_eq!(
                (found.len(), malformed.iter().map(|(at, _)| *at).collect::<Vec<_>>()),
                (1, vec![2]),
                "{line}"
            );
        }
    }
}
