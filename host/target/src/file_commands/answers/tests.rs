//! Answers as GNU coreutils 9.1 gave them, and other output that could come instead.

use super::*;

fn output(exit_code: i32, stdout: &[u8], stderr: &str) -> Output {
    Output {
        exit_code,
        stdout: stdout.to_vec(),
        stderr: stderr.as_bytes().to_vec(),
        stdout_bytes: stdout.len() as u64,
        ..Output::default()
    }
}

fn paths(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

const NO_SUDO: &str = "sudo: a password is required\n";
const NOT_ALLOWED: &str = "Sorry, user ada is not allowed to execute '/usr/bin/stat -- /' as root on host.\n";

#[test]
fn stat_is_read_line_by_line_and_what_is_missing_is_explained() {
    let asked = paths(&["/", "/tmp/none", "/tmp/vt/l", "/tmp/vt/d/a: b", "/etc/passwd/x", "/root/x"]);
    let answers = entries(
        &asked,
        output(
            1,
            b"41ed:0:0:4096:1795201018:17:fe00:2:root:root:/\n\
              a1ff:0:0:5:1795203042:1:1c:1839:root:root:/tmp/vt/l\n\
              81a4:12345:54321:1:-5:2:1c:1840:UNKNOWN:UNKNOWN:/tmp/vt/d/a: b\n",
            "/usr/bin/stat: cannot statx '/tmp/none': No such file or directory\n\
             /usr/bin/stat: cannot statx '/etc/passwd/x': Not a directory\n\
             /usr/bin/stat: cannot statx '/root/x': Permission denied\n",
        ),
    );
    let found = |at: usize| answers[at].clone().unwrap().unwrap();
    assert_eq!((found(0).mode, found(0).size, found(0).modified_unix), (0o040_755, 4096, 1_795_201_018));
    assert_eq!(found(2).mode, 0o120_777);
    assert_eq!((found(3).uid, found(3).gid, found(3).modified_unix), (12345, 54321, -5));
    assert_eq!((found(0).links, found(0).device, found(0).inode), (17, 0xfe00, 2));
    assert_eq!((found(3).links, found(3).device, found(3).inode), (2, 0x1c, 1840));
    assert_eq!(found(3).names, Some(("12345".into(), "54321".into())));
    assert!(matches!(answers[1], Ok(None)) && matches!(answers[4], Ok(None)));
    assert_eq!(answers[5].clone().unwrap_err().code, "PERMISSION_DENIED");
}

#[test]
fn stat_with_anything_else_in_it_is_no_answer() {
    let asked = paths(&["/a", "/b"]);
    let (a, b) = ("41ed:0:0:4096:1:17:fe00:2:root:root:/a\n", "81a4:0:0:1:1:1:fe00:9:root:root:/b\n");
    let no_b = "stat: cannot statx '/b': No such file or directory\n";
    let whole =
        |exit_code, stdout: &str, stderr| entries(&asked, output(exit_code, stdout.as_bytes(), stderr));
    assert!(whole(0, &format!("{a}{b}"), "").iter().all(Result::is_ok));
    assert!(whole(1, a, no_b).iter().all(Result::is_ok));
    for (exit_code, stdout, stderr) in [
        (0, String::new(), ""),
        (1, String::new(), ""),
        (0, a.to_owned(), ""),
        (1, a.to_owned(), ""),
        (0, a.to_owned(), no_b),
        (1, format!("{a}{b}"), ""),
        (1, format!("{a}{b}"), no_b),
        (137, format!("{a}{b}"), ""),
        (0, format!("{b}{a}"), ""),
        (0, format!("{a}{b}{b}"), ""),
        (0, format!("{a}\n{b}"), ""),
        (0, format!("{a}{b}").trim_end().to_owned(), ""),
        (0, format!("{a}81a4:0:0:1:1:1:fe00:9:root:root:/c\n"), ""),
        (1, a.to_owned(), "stat: cannot statx '/b': Something new\n"),
    ] {
        let answers = whole(exit_code, &stdout, stderr);
        assert!(answers.iter().any(|answer| answer.is_err()), "{exit_code} {stdout:?} {stderr:?}");
        assert!(!matches!(answers[1], Ok(None)), "{exit_code} {stdout:?} {stderr:?}");
    }
    for fields in [
        "",
        "41ed",
        "41ed:0:0:1:1:1:fe00:9:root:root",
        "xyz:0:0:1:1:1:fe00:9:root:root:",
        "41ed:-1:0:1:1:1:fe00:9:root:root:",
        "41ed:0:0:-1:1:1:fe00:9:root:root:",
        "41ed:0:0:1:x:1:fe00:9:root:root:",
        "41ed:0:0:1:1:1:fe00:9::root:",
        "41ed:0:0:1:1:1:fe00:9:a:b:c:",
        "41ed:0:0:1:1:1:fe00:9:root:root:/x",
        "41ed:0:0:1:1:-1:fe00:9:root:root:",
        "41ed:0:0:1:1:1:xyz:9:root:root:",
        "41ed:0:0:1:1:1:fe00::root:root:",
        "41ed:0:0:1:1:root:root:",
    ] {
        let line = format!("{fields}/a\n");
        assert!(entries(&paths(&["/a"]), output(0, line.as_bytes(), ""))[0].is_err(), "{fields:?}");
    }
}

#[test]
fn where_sudo_answered_its_reason_is_given() {
    for stderr in [NO_SUDO, NOT_ALLOWED] {
        let refused = output(1, b"", stderr);
        let problem = entries(&paths(&["/"]), refused.clone()).remove(0).unwrap_err();
        assert_eq!(problem.code, "PRIVILEGE_REQUIRED");
        assert!(problem.message.contains(stderr.trim()), "{}", problem.message);
        for problem in [
            targets(&paths(&["/l"]), refused.clone()).remove(0).unwrap_err(),
            contents("/a", refused.clone()).unwrap_err(),
            names("/a", refused).unwrap_err(),
        ] {
            assert_eq!(problem.code, "PRIVILEGE_REQUIRED");
        }
    }
    // A warning of sudo isn't an error of stat.
    let warned = output(
        0,
        b"41ed:0:0:4096:1:17:fe00:2:root:root:/\n",
        "sudo: unable to resolve host x: Name unknown\n",
    );
    assert!(entries(&paths(&["/"]), warned)[0].is_ok());
}

#[test]
fn each_link_has_one_target() {
    let links = paths(&["/tmp/vt/l", "/tmp/vt/dang"]);
    let whole = targets(&links, output(0, b"d/a b\0/nope\0", ""));
    assert_eq!(whole.into_iter().map(Result::unwrap).collect::<Vec<_>>(), ["d/a b", "/nope"]);
    for (exit_code, stdout) in [
        (0, &b""[..]),
        (0, b"d/a b\0"),
        (1, b"d/a b\0/nope\0"),
        (0, b"a\0b\0c\0"),
        (0, b"a\0b"),
        (0, b"a\nb\n"),
    ] {
        let answers = targets(&links, output(exit_code, stdout, ""));
        assert!(answers.iter().all(Result::is_err), "{stdout:?}");
    }
    let mixed = targets(&links, output(0, b"a\0\xff\0", ""));
    assert!(mixed[0].is_ok());
    assert_eq!(mixed[1].clone().unwrap_err().code, "UNRESOLVABLE_PATH");
}

#[test]
fn contents_are_whole_or_an_error_of_the_systems() {
    assert_eq!(contents("/a", output(0, b"\0\xff", "")).unwrap(), b"\0\xff");
    assert_eq!(contents("/a", output(0, b"", "")).unwrap(), b"");
    for (stderr, code) in [
        ("/usr/bin/dd: failed to open '/a': No such file or directory\n", "FILE_NOT_FOUND"),
        ("/usr/bin/dd: failed to open '/a': Permission denied\n", "PERMISSION_DENIED"),
        ("/usr/bin/dd: failed to open '/a': Too many levels of symbolic links\n", "IO_ERROR"),
        ("/usr/bin/dd: error reading '/a': Is a directory\n", "IO_ERROR"),
        ("/usr/bin/dd: something else\n", "UNEXPECTED_OUTPUT"),
        ("", "UNEXPECTED_OUTPUT"),
    ] {
        assert_eq!(contents("/a", output(1, b"", stderr)).unwrap_err().code, code, "{stderr}");
    }
    let mut cut = output(0, b"abc", "");
    cut.truncated = true;
    assert!(contents("/a", cut).is_err());
}

#[test]
fn names_are_read_from_cs_quotes_and_sorted() {
    let listed = b"\"a b\"\n\"\\377\\001bad\"\n\"\xc3\xbc\"\n\"new\\nline\"\n\"q\\\"uo\\\\te\"\n\".dot\"\n";
    assert_eq!(
        names("/tmp/vt/d", output(0, listed, "")).unwrap(),
        [".dot", "a b", "new\nline", "q\"uo\\te", "\u{fc}", "\u{fffd}\u{1}bad"]
    );
    // This is the same name in a locale without UTF-8.
    assert_eq!(names("/d", output(0, b"\"\\303\\274\"\n", "")).unwrap(), ["\u{fc}"]);
    assert!(names("/d", output(0, b"", "")).unwrap().is_empty());
}

#[test]
fn a_listing_with_anything_else_in_it_is_no_answer() {
    for stdout in [
        "a\n",
        "\"a\n",
        "a\"\n",
        "\"a\"",
        "\"a\"b\"\n",
        "\"a\\\"\n",
        "\"\\8\"\n",
        "\"\\12\"\n",
        "\"\\477\"\n",
        "\"\\x41\"\n",
        "\n",
        "\"\"\n",
        "\"a/b\"\n",
        "\".\"\n",
        "\"..\"\n",
        "\"a\"\n/d:\n",
        "\"\n",
    ] {
        let problem = names("/d", output(0, stdout.as_bytes(), "")).unwrap_err();
        assert_eq!(problem.code, "UNEXPECTED_OUTPUT", "{stdout:?}");
    }
    let absent = output(2, b"", "/usr/bin/ls: cannot access '/d': No such file or directory\n");
    assert_eq!(names("/d", absent).unwrap_err().code, "FILE_NOT_FOUND");
    let mut cut = output(0, b"\"a\"\n\"b", "");
    cut.truncated = true;
    assert_eq!(names("/d", cut).unwrap_err().code, "DIRECTORY_TOO_LARGE");
}

#[test]
fn what_is_not_understood_is_shown_in_part_and_visibly() {
    let problem = contents("/a", output(3, b"", &format!("\u{1b}[2J{}", "x".repeat(10_000)))).unwrap_err();
    assert!(problem.message.len() < 500 && problem.message.contains("\\u{1b}"), "{}", problem.message);
}
