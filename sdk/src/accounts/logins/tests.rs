//! These tests read what lslogins (util-linux) 2.38.1 and passwd (shadow) 4.13 printed on a Debian 12 host.

use super::*;
use crate::testkit::FakeTarget;

const HOST: &str = include_str!("debian.txt");

fn part(name: &str) -> &'static str {
    let (_, rest) = HOST.split_once(&format!("==> {name} <==\n")).unwrap();
    rest.split("\n\n==> ").next().unwrap()
}

#[test]
fn with_roots_rights_everything_is_told() {
    let all = read(part("lslogins"));
    assert_eq!(all.len(), part("lslogins").lines().count());
    let of = |name: &str| all.iter().find(|login| login.user == name).unwrap().clone();
    let day = |day: &str| Some(Expiry::On(day.to_owned()));
    for (name, has_hash, expires) in [
        ("ada", false, Some(Expiry::Never)),
        ("bob", true, Some(Expiry::Never)),
        ("eve", true, day("1970-01-02")),
        ("carl", false, day("2027-01-31")),
        ("messagebus", false, Some(Expiry::Never)),
    ] {
        let login = of(name);
        assert_eq!((login.is_known, login.has_hash, &login.expires), (true, has_hash, &expires), "{name}");
    }
    assert_eq!(of("ada").days_max, Some(99_999));
}

#[test]
fn without_them_nothing_of_a_password_is_guessed() {
    let all = read(part("lslogins as admin"));
    assert!(!all.is_empty());
    assert!(all.iter().all(|login| !login.is_known && login.expires.is_none() && !login.has_hash));
}

#[test]
fn a_password_is_set_locked_or_missing() {
    let all: Vec<_> = part("passwd").lines().filter_map(status).collect();
    let of = |name: &str| all.iter().find(|(user, _)| user == name).unwrap().1;
    for (name, expected) in [
        ("ada", Password::Locked),
        ("bob", Password::Set),
        ("eve", Password::Locked),
        ("carl", Password::None),
    ] {
        assert_eq!(of(name), expected, "{name}");
    }
    for line in ["", "ada", "passwd: Permission denied.", "ada X 2026-11-22"] {
        assert_eq!(status(line), None, "{line}");
    }
}

#[test]
fn what_a_remote_host_calls_itself_stays_text() {
    let line = r#"USER="ada" LAST-LOGIN="2026-11-22T10:00:00+00:00" LAST-HOSTNAME="a\x22b\x24\x28id\x29\xzz" PWD_WARN="7""#;
    let login = read(line).remove(0);
    assert_eq!(login.last_from.as_deref(), Some("a\"b$(id)\\xzz"));
    assert!(login.is_known);
    for garbage in ["", "USER=\"", "=\"\"", "nonsense", "USER=\"\" UID=\"0\""] {
        assert_eq!(read(garbage), [], "{garbage}");
    }
}

#[test]
fn a_machine_without_lslogins_says_so_once() {
    let logins = Logins::look(None, &FakeTarget::new().context());
    assert!(logins.missing.is_some() && !logins.has_shadow());
    assert_eq!(logins.of("ada"), Login::default());
}
