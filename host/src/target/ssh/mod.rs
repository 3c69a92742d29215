pub(in crate::target) mod config {
    use crate::problem::Problem;
    pub struct HostConfig;
    #[derive(Default)]
    pub struct Given {
        pub port: Option<u16>,
        pub user: Option<String>,
        pub identity_file: Option<std::path::PathBuf>,
    }
    pub async fn resolve(_: &str, _: &Given) -> Result<HostConfig, Problem> {
        todo!()
    }
}
pub struct Keepalive {
    pub interval: Option<std::time::Duration>,
    pub max_missed: usize,
}
pub struct Session;
#[derive(Clone)]
pub struct Peer {
    pub user: String,
    pub hostname: String,
    pub port: u16,
    pub host_key: String,
    pub host_key_algorithm: String,
    pub server_version: String,
    pub cipher: String,
    pub kex: String,
    pub jumps: Vec<String>,
    pub warnings: Vec<String>,
}
impl Session {
    pub async fn open(_: &config::HostConfig, _: &Keepalive) -> Result<Self, crate::problem::Problem> {
        todo!()
    }
    pub fn is_closed(&self) -> bool {
        todo!()
    }
    pub async fn closed(&self) {
        todo!()
    }
    pub async fn channel(&self) -> Result<russh::Channel<russh::client::Msg>, crate::problem::Problem> {
        todo!()
    }
    pub fn peer(&self) -> &Peer {
        todo!()
    }
    pub async fn close(&self) {
        todo!()
    }
}
