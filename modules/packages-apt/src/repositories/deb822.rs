//! Sources in stanzas of fields: sources.list(5), "DEB822-style format".

use linux_sysadmin_sdk::packages::repositories::Definition;

use super::keys_of;

/// A field: its name in lower case, its value with its lines, and the first and last line of the file.
struct Field {
    name: String,
    value: String,
    lines: (usize, usize),
}

/// The definitions of a file, and the stanzas that can't be read, each with its line and the reason.
pub(super) fn read(file: &str, text: &str) -> (Vec<Definition>, Vec<(usize, &'static str)>) {
    let (mut definitions, mut malformed) = (Vec::new(), Vec::new());
    for stanza in stanzas(text, &mut malformed) {
        let first = stanza.first().map_or(1, |field| field.lines.0);
        match definition(&stanza) {
            Ok(found) => definitions.push(Definition {
                file: file.to_owned(),
                lines: (first, stanza.last().map_or(first, |field| field.lines.1)),
                ..found
            }),
            Err(reason) => malformed.push((first, reason)),
        }
    }
    (definitions, malformed)
}

fn stanzas(text: &str, malformed: &mut Vec<(usize, &'static str)>) -> Vec<Vec<Field>> {
    let mut stanzas = vec![Vec::<Field>::new()];
    for (line, number) in text.lines().zip(1..) {
        if line.is_empty() {
            stanzas.push(Vec::new());
        } else if line.starts_with('#') {
            // A comment may stand within a value.
        } else if let Some(stanza) = stanzas.last_mut() {
            if line.starts_with([' ', '\t']) {
                match stanza.last_mut() {
                    Some(field) => {
                        field.value.push('\n');
                        field.value.push_str(line.trim());
                        field.lines.1 = number;
                    }
                    None => malformed.push((number, "a line that goes on has nothing before it")),
                }
            } else if let Some((name, value)) = line.split_once(':') {
                let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
                stanza.push(Field { name, value, lines: (number, number) });
            } else {
                malformed.push((number, "Field: value is expected"));
            }
        }
    }
    stanzas.retain(|stanza| !stanza.is_empty());
    stanzas
}

fn definition(stanza: &[Field]) -> Result<Definition, &'static str> {
    let mut found = Definition { enabled: true, ..Definition::default() };
    for Field { name, value, .. } in stanza {
        let words = || value.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        match name.as_str() {
            "types" => found.types = words(),
            "uris" => found.urls = words(),
            "suites" => found.suites = words(),
            "components" => found.components = words(),
            "enabled" => found.enabled = !is_no(value),
            "signed-by" => found.keys = keys_of(value),
            "x-repolib-name" => found.name = value.clone(),
            name => super::note_option(&mut found, name, value),
        }
    }
    if found.types.is_empty() || !found.types.iter().all(|kind| ["deb", "deb-src"].contains(&kind.as_str())) {
        return Err("Types: deb or deb-src is expected");
    }
    if found.urls.is_empty() {
        return Err("URIs: is expected");
    }
    if found.suites.is_empty() {
        return Err("Suites: is expected");
    }
    match found.suites.iter().all(|suite| suite.ends_with('/')) == found.components.is_empty() {
        true => Ok(found),
        false if found.components.is_empty() => Err("Components: is expected"),
        false => Err("Suites: a path that ends with / has no components"),
    }
}

pub(super) fn is_no(value: &str) -> bool {
    ["no", "false", "without", "off", "disable", "0"].contains(&value.trim().to_ascii_lowercase().as_str())
}

/// Says whether a line is a field of a definition that somebody commented out.
pub(super) fn is_commented_field(line: &str) -> bool {
    let field = line.strip_prefix('#').map(|rest| rest.trim_start_matches(['#', ' ', '\t']));
    let name = field.and_then(|field| field.split_once(':')).map(|(name, _)| name.trim_end());
    name.is_some_and(|name| ["types", "uris", "suites"].contains(&name.to_ascii_lowercase().as_str()))
}

/// The lines of the stanza, with or without `Enabled: no`.
pub(super) fn with_enabled(lines: &[&str], enabled: bool) -> String {
    let is_switch = |line: &str| {
        line.split_once(':').is_some_and(|(name, _)| name.trim_end().eq_ignore_ascii_case("enabled"))
    };
    // The value may go on in the next line, which would become another field's.
    let mut within = false;
    let kept = lines.iter().filter(|line| {
        within = is_switch(line) || within && line.starts_with([' ', '\t']);
        !within
    });
    let kept: String = kept.copied().collect();
    if enabled { kept } else { format!("Enabled: no\n{kept}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::packages::repositories::KeySource;

    /// The file debian.sources of Debian 12's cloud images, with a stanza of Pop!_OS and one with its key behind it.
    const TEXT: &str = "Types: deb deb-src\nURIs: mirror+file:///etc/apt/mirrors/debian.list\n\
        Suites: bookworm bookworm-updates\nComponents: main\n\n\
        # Disabled for now.\nX-Repolib-Name: Pop_OS System Sources\nEnabled: no\nTypes: deb\nURIs: http://us.archive.ubuntu.com/ubuntu/\n\
        # a comment within\nSuites: jammy\n jammy-security\nComponents: main\n restricted\n\n\n\
        Types: deb\nURIs: https://a.example\nSuites: ./\nTrusted: yes\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQENBF\n";

    #[test]
    fn stanzas_are_read_with_all_their_lines() {
        let (found, malformed) = read("F", TEXT);
        assert_eq!((found.len(), malformed), (3, vec![]));
        assert_eq!(found[0].suites, ["bookworm", "bookworm-updates"]);
        assert_eq!((found[0].lines, found[1].lines, found[2].lines), ((1, 4), (7, 15), (18, 25)));
        assert_eq!((found[1].enabled, found[1].name.as_str()), (false, "Pop_OS System Sources"));
        assert_eq!(found[1].suites, ["jammy", "jammy-security"]);
        assert_eq!(found[1].components, ["main", "restricted"]);
        assert_eq!(found[2].unsigned, ["trusted=yes"]);
        let key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQENBF\n";
        assert_eq!(found[2].keys, [KeySource::Inline(key.to_owned())]);
    }

    #[test]
    fn a_stanza_is_enabled_however_its_switch_is_written() {
        for switch in ["Enabled: no\n", "enabled:no\n", "Enabled : no\n", "Enabled:\n no\n"] {
            let lines: Vec<_> = ["Types: deb\n"].into_iter().chain(switch.split_inclusive('\n')).collect();
            assert_eq!(with_enabled(&lines, true), "Types: deb\n", "{switch}");
            assert!(!read("F", &format!("{switch}Types: deb\nURIs: https://a\nSuites: ./\n")).0[0].enabled);
        }
        assert_eq!(with_enabled(&["Types: deb\n"], false), "Enabled: no\nTypes: deb\n");
    }

    #[test]
    fn a_stanza_that_apt_refuses_is_told_with_its_line_and_the_others_are_there() {
        for (stanza, said) in [
            ("Types: rpm\nURIs: http://a\nSuites: b\nComponents: c", "Types"),
            ("Types: deb\nSuites: b\nComponents: c", "URIs"),
            ("Types: deb\nURIs: http://a\nComponents: c", "Suites"),
            ("Types: deb\nURIs: http://a\nSuites: b", "Components"),
            ("Types: deb\nURIs: http://a\nSuites: ./\nComponents: c", "path"),
        ] {
            let text = format!("\n{stanza}\n\nTypes: deb\nURIs: http://a\nSuites: b\nComponents: c\n");
            let (found, malformed) = read("F", &text);
            assert_eq!((found.len(), malformed[0].0), (1, 2), "{stanza}");
            assert!(malformed[0].1.contains(said), "{stanza}: {malformed:?}");
        }
        assert_eq!(read("F", " x\noops\n").1.len(), 2);
    }
}
