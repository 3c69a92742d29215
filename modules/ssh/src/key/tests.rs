use super::*;

/// One of each kind, made by ssh-keygen of OpenSSH 9.2p1 (Debian 12); those of security keys have others' numbers.
const KEYS: &str = include_str!("../../tests/data/keys.pub");
/// What `ssh-keygen -l -f keys.pub` of the same version says: bits, fingerprint, comment, kind.
const LISTED: &str = include_str!("../../tests/data/keys.list");
const CERTIFICATE: &str = include_str!("../../tests/data/certificate.pub");

#[test]
fn a_key_is_as_ssh_keygen_lists_it() {
    assert_eq!(KEYS.lines().count(), LISTED.lines().count());
    for (line, listed) in KEYS.lines().zip(LISTED.lines()) {
        let (key, comment) = Key::read(line).unwrap();
        let said = format!("{} {} {comment} (", key.bits, key.fingerprint());
        assert!(listed.starts_with(&said), "{said}: {listed}");
        assert_eq!(format!("{} {comment}", key.text()), line);
        assert!(!key.is_certificate());
    }
}

#[test]
fn a_certificate_is_one() {
    let (key, comment) = Key::read(CERTIFICATE).unwrap();
    assert_eq!((key.is_certificate(), comment), (true, "ada@example.org ed25519"));
}

#[test]
fn a_key_that_is_cut_or_called_otherwise_is_none() {
    for line in KEYS.lines() {
        let (algorithm, rest) = line.split_once(' ').unwrap();
        let encoded = rest.split(' ').next().unwrap();
        assert!(Key::read(&format!("{algorithm} {encoded}\r\n")).is_some(), "{algorithm}");
        for wrong in [
            algorithm.to_owned(),
            encoded.to_owned(),
            format!("{algorithm}  "),
            format!("{algorithm} {}", &encoded[4..]),
            format!("{algorithm} {}", &encoded[..encoded.len() - 4]),
            format!("{algorithm} {encoded}AAAA"),
            format!("{algorithm} {encoded}#"),
            format!("{algorithm}x {encoded}"),
            format!("{} {encoded}", algorithm.to_uppercase()),
            format!("no-pty {line}"),
        ] {
            assert_eq!(Key::read(&wrong), None, "{wrong}");
        }
    }
    let [first, second] = [0, 1].map(|number| KEYS.lines().nth(number).unwrap());
    let (algorithm, (_, encoded)) = (first.split(' ').next().unwrap(), second.split_once(' ').unwrap());
    assert_eq!(Key::read(&format!("{algorithm} {encoded}")), None, "one key's name, another's numbers");
}

#[test]
fn weak_keys_are_found() {
    let found: Vec<Option<String>> = KEYS.lines().map(|line| Key::read(line).unwrap().0.finding()).collect();
    let weak: Vec<usize> = (0..found.len()).filter(|number| found[*number].is_some()).collect();
    // RSA of 2048 and of 1024 bits, and DSA.
    assert_eq!(weak, [2, 3, 7]);
}
