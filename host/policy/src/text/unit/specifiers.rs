//! Expands the specifiers of units (systemd.unit(5), "Specifiers").

use super::InstanceForm;

/// Expands the specifiers that mean the same on every machine, as the system's manager does. Specifiers that depend on the
/// machine or on a template's instance stay as they are.
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
        // `%P`, `%I` and `%J` undo the escaping of unit names. An escaped name stays unexpanded.
        if matches!(letter, 'P' | 'I' | 'J') && text.contains(['\\', '-']) {
            expanded.extend(['%', letter]);
        } else {
            expanded.push_str(text);
        }
    }
    expanded
}

/// The forms in which a value uses the name of the instance.
pub fn instance_forms(value: &str) -> Vec<InstanceForm> {
    let mut found = Vec::new();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            continue;
        }
        found.extend(match characters.next() {
            Some('i') => Some(InstanceForm::Plain),
            Some('I') => Some(InstanceForm::Unescaped),
            Some('f') => Some(InstanceForm::Path),
            _ => None,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_an_instances_name_are_found() {
        use InstanceForm::{Path, Plain, Unescaped};
        for (value, forms) in [
            ("/bin/cat /srv/%I", &[Unescaped][..]),
            ("%i%f", &[Plain, Path]),
            ("100%%i %n %j", &[]),
            ("%", &[]),
        ] {
            assert_eq!(instance_forms(value), forms, "{value}");
        }
    }

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
