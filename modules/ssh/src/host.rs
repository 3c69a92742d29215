//! Functions of the host program: connections to targets, and the controller's own keys. In tests a [`fake`] answers
//! instead.

pub use linux_sysadmin_sdk::bindings::sysadmin::module::target_control::{Given, PublicKey};

#[cfg(not(target_family = "wasm"))]
pub(crate) use fake::{connect, connection, disconnect, is_host, key_in_use, keys_used, public_keys, test};
#[cfg(target_family = "wasm")]
pub(crate) use linux_sysadmin_sdk::system::targets::{
    connect, connection, disconnect, is_host, key_in_use, keys_used, public_keys, test,
};

/// A fake host, which gives the answers that a test sets.
#[cfg(not(target_family = "wasm"))]
pub mod fake {
    use std::cell::RefCell;

    use linux_sysadmin_sdk::{Category, Problem, Result};

    use super::{Given, PublicKey};

    /// The answers of the fake host.
    #[derive(Clone, Debug)]
    pub struct FakeHost {
        /// The answer to each question about a connection.
        pub connection: Result<String>,
        /// The keys of the controller.
        pub keys: Result<Vec<PublicKey>>,
        /// The fingerprints of the keys by which hosts were reached.
        pub keys_used: Vec<String>,
        /// The fingerprint of the key by which the connection was authenticated.
        pub key_in_use: Option<String>,
        /// The names that calls can give as their host.
        pub hosts: Vec<String>,
        /// The questions so far, in order.
        pub asked: Vec<String>,
    }

    impl Default for FakeHost {
        fn default() -> Self {
            let nothing = Problem::new("NOT_SAID", Category::Internal, "the fake host has no answer");
            Self {
                connection: Err(nothing),
                keys: Ok(Vec::new()),
                keys_used: Vec::new(),
                key_in_use: None,
                hosts: Vec::new(),
                asked: Vec::new(),
            }
        }
    }

    thread_local! {
        static HOST: RefCell<FakeHost> = RefCell::default();
    }

    /// Sets the fake host of this thread.
    pub fn set(host: FakeHost) {
        HOST.set(host);
    }

    /// The questions since the fake host was set.
    pub fn asked() -> Vec<String> {
        HOST.with_borrow(|host| host.asked.clone())
    }

    fn ask(question: String) -> Result<String> {
        HOST.with_borrow_mut(|host| {
            host.asked.push(question);
            host.connection.clone()
        })
    }

    fn named(verb: &str, host: &str, given: &Given) -> String {
        let user = given.user.as_deref().unwrap_or("-");
        let port = given.port.map_or("-".to_owned(), |port| port.to_string());
        format!("{verb} {host} {user} {port} {}", given.identity_file.as_deref().unwrap_or("-"))
    }

    pub(crate) fn connect(host: &str, given: &Given) -> Result<String> {
        ask(named("connect", host, given))
    }

    pub(crate) fn test(host: &str, given: &Given) -> Result<String> {
        ask(named("test", host, given))
    }

    pub(crate) fn disconnect(host: Option<&str>) -> Result<String> {
        ask(format!("disconnect {}", host.unwrap_or("-")))
    }

    pub(crate) fn connection() -> Result<String> {
        ask("connection".to_owned())
    }

    pub(crate) fn is_host(name: &str) -> bool {
        HOST.with_borrow(|host| host.hosts.iter().any(|known| known == name))
    }

    pub(crate) fn public_keys() -> Result<Vec<PublicKey>> {
        HOST.with_borrow(|host| host.keys.clone())
    }

    pub(crate) fn keys_used() -> Vec<String> {
        HOST.with_borrow(|host| host.keys_used.clone())
    }

    pub(crate) fn key_in_use() -> Option<String> {
        HOST.with_borrow(|host| host.key_in_use.clone())
    }
}
