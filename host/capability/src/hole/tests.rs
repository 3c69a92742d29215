use super::*;

/// A type of holes, with values that it accepts and refuses.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    hole: String,
    what: String,
    accepts: Vec<String>,
    refuses: Vec<String>,
}

impl Row {
    fn of_type(&self) -> HoleType {
        HoleType::parse(&self.hole).unwrap()
    }
}

/// The tables from which the page for authors is written.
fn table() -> Vec<Row> {
    serde_yaml::from_str(include_str!("types.yaml")).unwrap()
}

#[test]
fn every_type_accepts_and_refuses_what_its_table_says() {
    for row in table() {
        let hole = row.of_type();
        for value in &row.accepts {
            assert!(hole.accepts(value), "<{hole}> must accept {value:?}");
        }
        for value in &row.refuses {
            assert!(!hole.accepts(value), "<{hole}> must refuse {value:?}");
        }
    }
}

#[test]
fn every_type_has_a_table() {
    let table = table();
    for (name, _) in SIMPLE {
        let row = table.iter().find(|row| row.hole == *name).unwrap_or_else(|| panic!("{name}"));
        assert!(row.accepts.len() >= 8 && row.refuses.len() >= 8, "{name}");
        assert!(row.what.ends_with('.'), "{name}: {}", row.what);
    }
    // The page tells authors which protocols there are, and not only some.
    let protocols = table.iter().find(|row| row.hole == "protocol").unwrap();
    for protocol in network::PROTOCOLS {
        assert!(protocols.accepts.iter().any(|known| known == protocol), "{protocol}");
    }
}

#[test]
fn a_type_covers_another_only_where_it_takes_all_its_values() {
    let table = table();
    let mut covered = 0;
    for wide in table.iter().map(Row::of_type) {
        for row in table.iter().filter(|row| wide.covers(&row.of_type())) {
            covered += 1;
            for value in &row.accepts {
                assert!(wide.accepts(value), "<{wide}> covers <{}> and refuses {value:?}", row.hole);
            }
        }
        assert!(wide.covers(&wide), "<{wide}>");
    }
    assert!(covered > 3 * table.len(), "`text`, `secret` and `arg` cover nearly all");
}

#[test]
fn no_type_takes_more_than_its_longest_value() {
    for (_, hole) in SIMPLE {
        for letter in ["a", "1", "/a"] {
            assert!(!hole.accepts(&letter.repeat(MAX_VALUE + 1)), "{hole}");
        }
    }
    assert!(HoleType::Text.accepts(&"a".repeat(MAX_VALUE)));
    assert!(!HoleType::Unit.accepts(&"a".repeat(256)));
    assert!(HoleType::User.accepts(&"a".repeat(32)));
    assert!(!HoleType::Interface.accepts(&"a".repeat(16)));
    assert!(!HoleType::Host.accepts(&format!("{}.org", "a".repeat(64))));
    assert!(!HoleType::Host.accepts(&"a.".repeat(130)));
}

#[test]
fn a_type_is_read_by_its_name_and_shown_as_it_was_read() {
    for text in ["unit", "path", "path:/mnt/**", "path:/srv/My Files/*", "arg"] {
        assert_eq!(HoleType::parse(text).unwrap().to_string(), text);
    }
    for (name, hole) in SIMPLE {
        assert_eq!(HoleType::parse(name).unwrap(), *hole);
        assert_eq!(hole.name(), *name);
    }
    assert_eq!(HoleType::parse("path:/mnt/**").unwrap().name(), "path");
    for text in
        ["", "Unit", "units", " unit", "path:", "path:x", "path:/a/../b", "unit:/x", "stdin", "path :/x"]
    {
        assert!(HoleType::parse(text).is_err(), "{text:?}");
    }
}
