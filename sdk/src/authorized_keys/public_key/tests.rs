use super::*;

/// Keys of each kind, made by ssh-keygen of OpenSSH 9.2p1 (Debian 12). The numbers of the security keys come from other
/// keys.
const KEYS: &str = include_str!("../data/keys.pub");
/// The output of `ssh-keygen -l -f keys.pub` of the same version: bits, fingerprint, comment, kind.
const LISTED: &str = include_str!("../data/keys.list");
const CERTIFICATE: &str = include_str!("../data/certificate.pub");

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
    // These are RSA keys of 2048 and of 1024 bits, and a DSA key.
    assert_eq!(weak, [2, 3, 7]);
}

/// Names that `ssh-keygen -lf` of OpenSSH 9.2p1 (Debian 12) accepted for the key at this line of keys.pub, with the same
/// fingerprint: the word before the base64, and the name within it.
const OTHER_NAMES: [(usize, &str, &str); 19] = [
    (1, "rsa-sha2-256", "ssh-rsa"),
    (1, "rsa-sha2-512", "ssh-rsa"),
    (1, "ssh-rsa", "rsa-sha2-256"),
    (1, "ssh-rsa", "rsa-sha2-512"),
    (1, "rsa-sha2-256", "rsa-sha2-256"),
    (1, "rsa-sha2-256", "RSA"),
    (1, "ssh-rsa", "RSA"),
    (1, "ssh-rsa", "rsa"),
    (3, "rsa-sha2-512", "ssh-rsa"),
    (0, "ssh-ed25519", "ED25519"),
    (0, "ssh-ed25519", "ed25519"),
    (7, "ssh-dss", "DSA"),
    (7, "ssh-dss", "dsa"),
    (8, "sk-ssh-ed25519@openssh.com", "ED25519-SK"),
    (8, "sk-ssh-ed25519@openssh.com", "ed25519-sk"),
    (9, "webauthn-sk-ecdsa-sha2-nistp256@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"),
    (9, "sk-ecdsa-sha2-nistp256@openssh.com", "webauthn-sk-ecdsa-sha2-nistp256@openssh.com"),
    (9, "webauthn-sk-ecdsa-sha2-nistp256@openssh.com", "webauthn-sk-ecdsa-sha2-nistp256@openssh.com"),
    (4, "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256"),
];

/// Names of which it printed "is not a public key file".
const NO_NAMES: [(usize, &str, &str); 14] = [
    (1, "RSA", "ssh-rsa"),
    (1, "rsa", "rsa"),
    (1, "SSH-RSA", "ssh-rsa"),
    (1, "ssh-rsa", "SSH-RSA"),
    (1, "ssh-rsa", "ssh-ed25519"),
    (1, "RSA-SHA2-256", "ssh-rsa"),
    (0, "ED25519", "ssh-ed25519"),
    (0, "rsa-sha2-256", "ssh-ed25519"),
    (4, "ECDSA", "ecdsa-sha2-nistp256"),
    (4, "ecdsa-sha2-nistp256", "ECDSA"),
    (4, "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384"),
    (4, "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp256"),
    (9, "sk-ecdsa-sha2-nistp256@openssh.com", "ECDSA-SK"),
    (9, "ECDSA-SK", "ECDSA-SK"),
];

/// The line with other names, and with its numbers changed by `change`.
fn renamed(line: &str, outer: &str, inner: &str, change: impl Fn(&mut Vec<Vec<u8>>)) -> String {
    let blob = STANDARD.decode(line.split(' ').nth(1).unwrap()).unwrap();
    let (mut rest, mut fields) = (&blob[..], Vec::new());
    while let Some(found) = field(&mut rest) {
        fields.push(found.to_vec());
    }
    fields[0] = inner.as_bytes().to_vec();
    change(&mut fields);
    let mut blob = Vec::new();
    fields.iter().for_each(|field| put(&mut blob, field).unwrap());
    format!("{outer} {} a comment", STANDARD.encode(blob))
}

#[test]
fn a_key_by_another_name_is_the_key_that_sshd_takes_it_for() {
    let of = |number: usize| Key::read(KEYS.lines().nth(number).unwrap()).unwrap().0;
    for (number, outer, inner) in OTHER_NAMES {
        let line = renamed(KEYS.lines().nth(number).unwrap(), outer, inner, |_| ());
        assert_eq!(Key::read(&line), Some((of(number), "a comment")), "{outer} {inner}");
    }
    for (number, outer, inner) in NO_NAMES {
        let line = renamed(KEYS.lines().nth(number).unwrap(), outer, inner, |_| ());
        assert_eq!(Key::read(&line), None, "{outer} {inner}");
    }
}

/// ssh-keygen accepts other names of a certificate's algorithm only before the base64, because the name within it is
/// signed.
#[test]
fn a_certificate_by_another_name_is_one() {
    let rsa = "ssh-rsa-cert-v01@openssh.com";
    for (name, is_known) in [
        (rsa, true),
        ("rsa-sha2-256-cert-v01@openssh.com", true),
        ("rsa-sha2-512-cert-v01@openssh.com", true),
        ("rsa-sha2-256-cert-v00@openssh.com", false),
        ("RSA-CERT", false),
        ("ssh-rsa", false),
    ] {
        let found = Key::read(&renamed(CERTIFICATE, name, rsa, |_| ())).map(|(key, _)| key.is_certificate());
        assert_eq!(found, is_known.then_some(true), "{name}");
    }
}

#[test]
fn a_key_written_otherwise_is_the_key_that_sshd_takes_it_for() {
    let line = KEYS.lines().nth(1).unwrap();
    let key = Key::read(line).unwrap().0;
    let read = |text: &str| Key::read(text).map(|(key, _)| key);
    // ssh-keygen of 9.2p1 ignores zeros before a number, and refuses a negative number.
    for which in [1, 2] {
        let padded =
            renamed(line, "ssh-rsa", "ssh-rsa", |fields| fields[which].splice(..0, [0, 0]).for_each(drop));
        assert_eq!(read(&padded), Some(key.clone()));
    }
    let negative = renamed(line, "ssh-rsa", "ssh-rsa", |fields| {
        fields[2].remove(0);
    });
    let longer = renamed(line, "ssh-rsa", "ssh-rsa", |fields| fields.push(Vec::new()));
    assert_eq!((read(&negative), read(&longer)), (None, None));
    // It also ignores blanks within base64, but not before it.
    let (algorithm, rest) = line.split_once(' ').unwrap();
    for blank in ['\r', '\x0b', '\x0c'] {
        let text = format!("{algorithm} {blank}{}{blank}{}", &rest[..20], &rest[20..]);
        assert_eq!(read(&text), Some(key.clone()), "{blank:?}");
        assert_eq!(read(&format!("{algorithm}{blank} {rest}")), None, "{blank:?}");
    }
    assert_eq!(read(&format!("{algorithm} {}\u{a0}{}", &rest[..20], &rest[20..])), None);
}
