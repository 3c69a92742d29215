//! What only the host can do: connections to targets, and the controller's own keys. In tests, which have no host, a
//! [`fake`] answers.

pub use linux_sysadmin_sdk::bindings::sysadmin::module::target_control::{Given, PublicKey};

#[cfg(not(target_family = "wasm"))]
pub(crate) use fake::{connect, connection, disconnect, is_host, key_in_use, keys_used, public_keys, test};
#[cfg(target_family = "wasm")]
pub(crate) use linux_sysadmin_sdk::system::targets::{
    connect, connection, disconnect, is_host, key_in_use, keys_used, public_keys, test,
};

/// A host that says what it was told to, to the test that told it so.
#[cfg(not(target_family = "wasm"))]
pub mod fake {
    use std::cell::RefCell;

    use linux_sysadmin_sdk::{Category, Problem, Result};

    use super::{Given, PublicKey};

    /// What it says.
    #[derive(Clone, Debug)]
    pub struct FakeHost {
        /// To each question about a connection.
        pub connection: Result<String>,
        /// The controller's keys.
        pub keys: Result<Vec<PublicKey>>,
        /// By which any host was reached.
        pub keys_used: Vec<String>,
        /// By which the connection was authenticated.
        pub key_in_use: Option<String>,
        /// What calls can name as their host.
        pub hosts: Vec<String>,
        /// What was asked, in order.
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

    /// From now on, in this thread.
    pub fn set(host: FakeHost) {
        HOST.set(host);
    }

    /// What was asked since.
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
