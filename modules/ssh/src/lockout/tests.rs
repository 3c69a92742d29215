use linux_sysadmin_sdk::Privilege;
use proptest::prelude::*;

use super::*;
use linux_sysadmin_sdk::authorized_keys::lines;

const KEYS: &str = include_str!("../../tests/data/keys.pub");

/// The keys that sshd accepts: neither DSA nor a certificate.
const NUMBERS: [usize; 5] = [0, 1, 4, 5, 8];

fn key(number: usize) -> &'static str {
    KEYS.lines().nth(number).unwrap()
}

fn fingerprint(number: usize) -> String {
    Authorized::read(key(number)).unwrap().key.fingerprint()
}

fn file(numbers: &[usize]) -> Vec<u8> {
    numbers.iter().map(|number| format!("{}\n", key(*number))).collect::<String>().into_bytes()
}

fn account(name: &str, is_own: bool) -> Account {
    let privilege = if is_own { Privilege::Caller } else { Privilege::User(name.to_owned()) };
    Account { name: name.to_owned(), uid: 1000, home: format!("/home/{name}"), privilege, is_own }
}

fn ways(in_use: Option<usize>, is_remote: bool, controllers: &[usize]) -> LoginKeys {
    let controllers = controllers.iter().map(|number| fingerprint(*number)).collect();
    LoginKeys { in_use: in_use.map(fingerprint), is_remote, controllers }
}

#[test]
fn what_the_way_in_may_depend_on_stays() {
    let (own, other) = (account("ada", true), account("bob", false));
    let by_key = || ways(Some(0), true, &[0, 1]);
    let unknown = || ways(None, true, &[0]);
    let here = || ways(None, false, &[0]);
    let limited = |options: &str| format!("{options} {}\n{}\n{}\n", key(0), key(1), key(4)).into_bytes();
    let rest_limited = format!("{}\nfrom=\"192.0.2.1\" {}\n", key(4), key(5)).into_bytes();
    let authority = format!("{}\ncert-authority {}\n", key(0), key(4)).into_bytes();
    for (file, number, account, ways, expected) in [
        (file(&[0, 1, 4]), 4, &own, by_key(), Ok(false)),
        (file(&[0, 1, 4]), 0, &own, by_key(), Err("KEY_IN_USE")),
        (file(&[0, 4]), 0, &other, by_key(), Err("KEY_IN_USE")),
        // Another key of the controller is removed, and the key in use stays.
        (file(&[0, 1]), 1, &own, by_key(), Ok(false)),
        // The key in use was removed over another connection.
        (file(&[1, 4]), 1, &own, by_key(), Err("KEY_OF_CONTROLLER")),
        (file(&[1, 4]), 1, &other, by_key(), Err("KEY_OF_CONTROLLER")),
        (file(&[4, 5]), 4, &other, by_key(), Ok(false)),
        (file(&[4]), 4, &other, by_key(), Ok(true)),
        (file(&[0, 4]), 4, &own, unknown(), Err("KEY_IN_USE_UNKNOWN")),
        (file(&[0, 4]), 4, &other, unknown(), Ok(false)),
        (file(&[4, 5]), 4, &own, here(), Ok(false)),
        (file(&[0, 4]), 0, &own, here(), Err("KEY_OF_CONTROLLER")),
        (file(&[4]), 4, &own, here(), Err("LAST_KEY")),
        // The key in use is in another file, and this is the last one here.
        (file(&[4]), 4, &own, by_key(), Err("LAST_KEY")),
        // Old DSA keys open nothing, so that they don't count.
        (file(&[4, 7]), 4, &own, here(), Err("LAST_KEY")),
        (file(&[4, 7]), 7, &own, here(), Ok(false)),
        // The connection may have used another line of its key than the one that is left.
        (limited("restrict"), 1, &own, by_key(), Ok(false)),
        (limited("from=\"192.0.2.1\""), 1, &own, by_key(), Err("KEY_OF_CONTROLLER")),
        (limited("no-pty,expiry-time=\"20200101\""), 1, &own, by_key(), Err("KEY_OF_CONTROLLER")),
        (limited("command=\"true\""), 1, &own, by_key(), Err("KEY_OF_CONTROLLER")),
        (rest_limited.clone(), 4, &own, here(), Err("LAST_KEY")),
        (rest_limited, 4, &other, by_key(), Ok(true)),
        (authority.clone(), 4, &own, by_key(), Err("AUTHORITY_STAYS")),
        (authority, 4, &other, by_key(), Err("AUTHORITY_STAYS")),
    ] {
        let said = may_remove(&fingerprint(number), &lines(&file), account, &ways);
        let said = said.map(|warning| warning.is_some()).map_err(|problem| {
            assert!(
                !problem.remediation.is_empty() && problem.message.ends_with("nothing was removed"),
                "{}",
                problem.message
            );
            problem.code
        });
        assert_eq!(said, expected.map_err(str::to_owned), "{number} of {}, {ways:?}", account.name);
    }
}

/// Connections at the same time: each with its account, and with the controller's key that it uses.
const CONNECTIONS: [(usize, usize); 3] = [(0, 0), (1, 1), (0, 8)];

/// A call: its connection, its account, whether it adds or removes a key, and the key.
type Call = (usize, usize, bool, usize);

fn calls() -> impl Strategy<Value = Vec<Call>> {
    proptest::collection::vec((0usize..3, 0usize..2, any::<bool>(), 0usize..NUMBERS.len()), 0..60)
}

proptest! {
    /// Calls come in any order over all connections. An account that one of the controller's keys opens always stays open
    /// for one of them.
    #[test]
    fn no_sequence_of_calls_shuts_the_controller_out(calls in calls()) {
        let names = ["ada", "root"];
        let mut files = [file(&[0, 4, 8]), file(&[1, 5])];
        for (over, to, adds, which) in calls {
            let (fingerprint, number) = (fingerprint(NUMBERS[which]), NUMBERS[which]);
            let (connected_to, in_use) = CONNECTIONS[over];
            let account = account(names[to], connected_to == to);
            let ways = ways(Some(in_use), true, &[0, 1, 8]);
            let known = lines(&files[to]);
            let is_there = authorized_keys::keys(&known).any(|(_, found)| found.key.fingerprint() == fingerprint);
            let after = match adds {
                true if !is_there => Some(authorized_keys::with(&files[to], key(number))),
                false if may_remove(&fingerprint, &known, &account, &ways).is_ok() => {
                    Some(authorized_keys::without(&files[to], &fingerprint))
                }
                _ => None,
            };
            drop(known);
            if let Some(after) = after {
                files[to] = after;
            }
            for file in &files {
                let lines = lines(file);
                let mut open = authorized_keys::keys(&lines).filter(|(_, found)| found.opens());
                prop_assert!(open.any(|(_, found)| ways.controllers.contains(&found.key.fingerprint())));
            }
        }
    }

    /// The key in use stays, whatever is removed.
    #[test]
    fn the_key_in_use_stays(
        numbers in proptest::collection::vec(0usize..NUMBERS.len(), 0..20),
        is_own in any::<bool>(),
    ) {
        let mut file = file(&[4, 0, 5, 8]);
        for number in numbers {
            let fingerprint = fingerprint(NUMBERS[number]);
            if may_remove(&fingerprint, &lines(&file), &account("ada", is_own), &ways(Some(0), true, &[0])).is_ok() {
                file = authorized_keys::without(&file, &fingerprint);
            }
        }
        prop_assert!(String::from_utf8(file).unwrap().contains(key(0)));
    }

    /// Over a connection by an unknown key, no key of its own account is removed. Without a connection, the last key
    /// isn't removed.
    #[test]
    fn where_the_key_is_not_known_more_stays(
        numbers in proptest::collection::vec(0usize..NUMBERS.len(), 0..20),
        is_remote in any::<bool>(),
    ) {
        let mut file = file(&[0, 4, 5]);
        let own = account("ada", true);
        let before = file.clone();
        for number in numbers {
            let fingerprint = fingerprint(NUMBERS[number]);
            if may_remove(&fingerprint, &lines(&file), &own, &ways(None, is_remote, &[])).is_ok() {
                file = authorized_keys::without(&file, &fingerprint);
            }
        }
        prop_assert!(!is_remote || file == before);
        prop_assert!(authorized_keys::keys(&lines(&file)).any(|(_, found)| found.opens()));
    }
}
