#![allow(clippy::unwrap_used)]

use super::*;

fn set(section: &'static str, key: &'static str, values: &[&str]) -> Setting {
    Setting::new(section, key, values.iter().map(|value| value.to_string()).collect())
}

#[test]
fn only_what_is_given_changes_and_every_other_byte_stays() {
    let table = [
        // Comments, blanks around the equals sign, unknown sections and the order are kept.
        (
            "# Mine\n\n[Unit]\nDescription = old\n; why\n[X-Foo]\nUser=not this\n[Service]\nExecStart=/bin/a\n",
            set("Unit", "Description", &["new"]),
            "# Mine\n\n[Unit]\nDescription=new\n; why\n[X-Foo]\nUser=not this\n[Service]\nExecStart=/bin/a\n",
        ),
        // A new key follows the last assignment of its section, and precedes the blank line.
        (
            "[Service]\nExecStart=/bin/a\n# end\n\n[Install]\nWantedBy=x.target\n",
            set("Service", "User", &["app"]),
            "[Service]\nExecStart=/bin/a\nUser=app\n# end\n\n[Install]\nWantedBy=x.target\n",
        ),
        ("[Service]\n\n[Install]\n", set("Service", "User", &["app"]), "[Service]\nUser=app\n\n[Install]\n"),
        // A missing section is added.
        (
            "[Service]\nExecStart=/bin/a\n",
            set("Install", "WantedBy", &["x.target"]),
            "[Service]\nExecStart=/bin/a\n\n[Install]\nWantedBy=x.target\n",
        ),
        ("", set("Unit", "Description", &["x"]), "[Unit]\nDescription=x\n"),
        // The last line has no line end.
        ("[Service]\nUser=a", set("Service", "User", &["b"]), "[Service]\nUser=b"),
        ("[Service]\nUser=a", set("Service", "Restart", &["no"]), "[Service]\nUser=a\nRestart=no"),
        // The line ends are those of the file.
        (
            "[Service]\r\nUser=a\r\nGroup=g\r\n",
            set("Service", "User", &["b"]),
            "[Service]\r\nUser=b\r\nGroup=g\r\n",
        ),
        (
            "[Service]\r\nUser=a\r\n",
            set("Service", "Restart", &["no"]),
            "[Service]\r\nUser=a\r\nRestart=no\r\n",
        ),
        // A value continues in the next line, with a comment in between.
        (
            "[Service]\nExecStart=/bin/a \\\n  --one \\\n# why two\n  --two\nUser=a\n",
            set("Service", "ExecStart", &["/bin/b"]),
            "[Service]\nExecStart=/bin/b\n# why two\nUser=a\n",
        ),
        // A line that looks like an assignment may be part of another value.
        (
            "[Service]\nExecStart=/bin/a \\\nUser=x\n",
            set("Service", "User", &["b"]),
            "[Service]\nExecStart=/bin/a \\\nUser=x\nUser=b\n",
        ),
        // A comment never continues, nor does a line that ends in an escaped backslash.
        ("[Service]\n# x \\\nUser=a\n", set("Service", "User", &["b"]), "[Service]\n# x \\\nUser=b\n"),
        (
            "[Service]\nEnvironment=a=\\\\\nUser=a\n",
            set("Service", "User", &["b"]),
            "[Service]\nEnvironment=a=\\\\\nUser=b\n",
        ),
        // Of a repeated key in a repeated section, the first assignment is replaced and the others are removed.
        (
            "[Unit]\nAfter=a.service\nWants=a.service\nAfter=b.service\n[Unit]\nAfter=c.service\n",
            set("Unit", "After", &["d.service"]),
            "[Unit]\nAfter=d.service\nWants=a.service\n[Unit]\n",
        ),
        (
            "[Timer]\nOnCalendar=daily\nOnCalendar=weekly\nUnit=a.service\n",
            set("Timer", "OnCalendar", &["monthly", "*:0/5", "12:00"]),
            "[Timer]\nOnCalendar=monthly\nOnCalendar=*:0/5\nOnCalendar=12:00\nUnit=a.service\n",
        ),
        // Without values, the key is removed.
        ("[Service]\nUser=a\nUser=b\nGroup=g\n", set("Service", "User", &[]), "[Service]\nGroup=g\n"),
        ("[Service]\nGroup=g\n", set("Service", "User", &[]), "[Service]\nGroup=g\n"),
        // A single empty assignment is replaced.
        ("[Service]\nUser=\n", set("Service", "User", &["a"]), "[Service]\nUser=a\n"),
        // The same key in another section, in other letters, or commented out, is kept.
        (
            "[Unit]\nUser=a\n[Service]\nuser=b\n#User=c\nUserX=d\n",
            set("Service", "User", &["e"]),
            "[Unit]\nUser=a\n[Service]\nuser=b\n#User=c\nUserX=d\nUser=e\n",
        ),
        // Indentation, a byte order mark, and a lone carriage return as a line end are understood.
        ("\u{feff}[Service]\n\tUser=a\n", set("Service", "User", &["b"]), "\u{feff}[Service]\nUser=b\n"),
        ("[Service]\rUser=a\rGroup=g\n", set("Service", "User", &["b"]), "[Service]\rUser=b\rGroup=g\n"),
    ];
    for (text, setting, expected) in table {
        assert_eq!(edit(text, std::slice::from_ref(&setting)).unwrap(), expected, "{text}");
        let again = edit(expected, std::slice::from_ref(&setting)).unwrap();
        assert_eq!(again, expected, "the same again changes nothing");
        assert_eq!(values(expected, setting.section, setting.key), setting.values, "{expected}");
        assert_eq!(edit(text, &[]).unwrap(), text);
    }
}

#[test]
fn several_settings_are_made_one_after_the_other() {
    let settings = [
        set("Service", "User", &["app"]),
        set("Install", "WantedBy", &["a.target b.target"]),
        set("Service", "Restart", &["always"]),
        set("Install", "WantedBy", &["c.target"]),
    ];
    let expected = "[Service]\nExecStart=/bin/a\nUser=app\nRestart=always\n\n[Install]\nWantedBy=c.target\n";
    assert_eq!(edit("[Service]\nExecStart=/bin/a\n", &settings).unwrap(), expected);
}

#[test]
fn what_a_change_would_mean_has_to_be_plain() {
    let table = [
        ("[Service]\nExecStart=/bin/a\nExecStart=/bin/b\n", set("Service", "ExecStart", &["/bin/c"])),
        ("[Service]\nExecStart=\nExecStart=/bin/b\n", set("Service", "ExecStart", &["/bin/c"])),
        ("[Install]\nWantedBy=a.target\nWantedBy=\n", set("Install", "WantedBy", &["b.target"])),
        ("[Timer]\nOnBootSec=5\nOnCalendar=\nOnCalendar=daily\n", set("Timer", "OnCalendar", &["weekly"])),
        ("[Timer]\nOnBootSec=\nOnCalendar=daily\n", set("Timer", "OnCalendar", &["weekly"])),
    ];
    for (text, setting) in table {
        let problem = edit(text, &[setting]).unwrap_err();
        assert_eq!(problem.code, "UNIT_FILE_AMBIGUOUS", "{text}");
        assert_eq!(problem.remediation, ["Give the whole file as raw_content"]);
    }
}

#[test]
fn a_new_file_has_its_sections_in_order_and_leaves_out_what_is_not_set() {
    let settings = [
        set("Unit", "Description", &["An app"]),
        set("Unit", "After", &[]),
        set("Service", "ExecStart", &["/bin/a"]),
        set("Timer", "OnCalendar", &["daily", "12:00"]),
    ];
    let expected = "[Unit]\nDescription=An app\n\n[Service]\nExecStart=/bin/a\n\n[Timer]\nOnCalendar=daily\nOnCalendar=12:00\n";
    assert_eq!(render(&settings), expected);
    assert_eq!(render(&[]), "");
}

#[test]
fn commands_of_root_are_those_that_nothing_gives_to_another_user() {
    let table: [(&str, &[&str]); 9] = [
        ("[Service]\nExecStart=/bin/a\nExecStop=/bin/b\n", &["/bin/a", "/bin/b"]),
        ("[Service]\nExecStart=/bin/a\nUser=app\n", &[]),
        ("[Service]\nExecStart=/bin/a\nUser=app\nUser=\n", &["/bin/a"]),
        ("[Service]\nUser=root\nExecStart=/bin/a\n", &["/bin/a"]),
        ("[Service]\nUser=app\nExecStart=/bin/a\nExecStartPre=-+/bin/b\n", &["-+/bin/b"]),
        ("[Service]\nDynamicUser=yes\nExecStart=/bin/a\n", &[]),
        ("[Unit]\nUser=app\n[Service]\nExecStart=/bin/a\n", &["/bin/a"]),
        ("[Service]\nExecStart=/bin/a \\\n  b\n", &["/bin/a    b"]),
        ("[Service]\nExecStart=\n", &[]),
    ];
    for (text, expected) in table {
        assert_eq!(commands_of_root(text), expected, "{text}");
    }
}
