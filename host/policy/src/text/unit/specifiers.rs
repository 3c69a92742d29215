//! `%` in a unit: what systemd puts in its place (systemd.unit(5), "Specifiers").

/// The value with the specifiers that mean the same on every machine expanded, as the system's manager does it. Those
/// that the machine or a template's instance decides stay as written.
pub fn expand(value: &str, unit: &str) -> String {
    if !value.contains('%') {
        return value.to_owned();
    }
    let (whole, _) = unit.rsplit_once('.').unwrap_or((unit, ""));
    let (prefix, instance) =
        whole.split_once('@').map_or((whole, None), |(prefix, rest)| (prefix, Some(rest)));
    let instance = instance.filter(|instance| !instance.is_empty());
    let mut expanded = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            expanded.push(character);
            continue;
        }
        let Some(letter) = characters.next() else {
            expanded.push('%');
            break;
        };
        let text = match letter {
            '%' => "%",
            'n' => unit,
            'N' => whole,
            'p' => prefix,
            'P' => prefix,
            'j' | 'J' => prefix.rsplit('-').next().unwrap_or(prefix),
            'h' => "/root",
            's' => "/bin/sh",
            'u' | 'g' => "root",
            'U' | 'G' => "0",
            't' => "/run",
            'S' => "/var/lib",
            'C' => "/var/cache",
            'L' => "/var/log",
            'E' => "/etc",
            'T' => "/tmp",
            'V' => "/var/tmp",
            'D' => "/usr/share",
            'i' | 'I' if instance.is_some() => instance.unwrap_or_default(),
            other => {
                expanded.extend(['%', other]);
                continue;
            }
        };
        // `%P` and `%I` undo the escaping of unit names: what they make of it is left open.
        if matches!(letter, 'P' | 'I' | 'J') && text.contains(['\\', '-']) {
            expanded.extend(['%', letter]);
        } else {
            expanded.push_str(text);
        }
    }
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_everywhere_is_expanded() {
        let table = [
            ("100%%", "a.service", "100%"),
            ("%h/x %T %V", "a.service", "/root/x /tmp /var/tmp"),
            ("%n %N %p", "a@b.service", "a@b.service a@b a"),
            ("%i %I", "a@b.service", "b b"),
            ("%i %I", "a@.service", "%i %I"),
            ("%I", "a@b-c.service", "%I"),
            ("%m %H %", "a.service", "%m %H %"),
            ("%ä", "a.service", "%ä"),
        ];
        for (value, unit, expected) in table {
            assert_eq!(expand(value, unit), expected, "{value} of {unit}");
        }
    }
}
