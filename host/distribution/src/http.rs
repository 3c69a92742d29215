//! Requests with bounds: on the size of what is read, on the time, on redirects, and on where anything is sent unencrypted.

use std::io::Read;
use std::net::IpAddr;
use std::time::Duration;

use ureq::http::{Response, Uri};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, Error};

use super::error::DistributionError;

/// The number of redirects that are followed.
const REDIRECTS: u32 = 5;
/// The time for a connection.
const CONNECT: Duration = Duration::from_secs(15);
/// The time for one request with all of its answer. A component has at most some hundred megabytes.
const WHOLE: Duration = Duration::from_secs(15 * 60);

/// The time within which a server has to go on with its answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The number of bytes of a short answer, such as a token or an error.
pub(crate) const SHORT: u64 = 64 << 10;

/// Makes requests.
pub(crate) struct Http {
    encrypted: Agent,
    /// For servers of this machine only, whose traffic nobody else can see.
    plain: Agent,
}

impl Http {
    /// Requests to servers that must go on with their answer within this time.
    pub(crate) fn new(patience: Duration) -> Self {
        let builder = || {
            Agent::config_builder()
                .http_status_as_error(false)
                .user_agent(concat!("linux-sysadmin/", env!("CARGO_PKG_VERSION")))
                .timeout_global(Some(WHOLE))
                .timeout_resolve(Some(CONNECT))
                .timeout_connect(Some(CONNECT))
                .timeout_recv_response(Some(patience))
                .timeout_per_read(Some(patience))
                .timeout_per_write(Some(patience))
        };
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let encrypted = builder().https_only(true).max_redirects(REDIRECTS).tls_config(tls).build();
        // A redirect could lead elsewhere, and a proxy would be elsewhere.
        let plain = builder().max_redirects(0).proxy(None).build();
        Self { encrypted: encrypted.new_agent(), plain: plain.new_agent() }
    }

    /// What makes requests to this address.
    pub(crate) fn agent(&self, uri: &Uri) -> Result<&Agent, DistributionError> {
        check_scheme(uri)?;
        Ok(if is_encrypted(uri) { &self.encrypted } else { &self.plain })
    }
}

/// The answer to a request to this address.
pub(crate) fn answer(
    uri: &Uri,
    answered: Result<Response<Body>, Error>,
) -> Result<Response<Body>, DistributionError> {
    let response = answered.map_err(|error| no_answer(uri, &error))?;
    if !response.status().is_redirection() {
        return Ok(response);
    }
    let location = response.headers().get("location").and_then(|location| location.to_str().ok());
    let to = location.and_then(|location| location.parse::<Uri>().ok());
    let to = to.filter(|to| to.host().is_some()).map_or("elsewhere".to_owned(), |to| place(&to));
    let reason = "only an encrypted answer is followed, to an encrypted address";
    Err(DistributionError::Redirect { server: server(uri), to, reason })
}

/// Reads an answer of at most so many bytes.
pub(crate) fn read(
    uri: &Uri,
    mut response: Response<Body>,
    limit: u64,
    what: &'static str,
) -> Result<Vec<u8>, DistributionError> {
    let mut bytes = Vec::new();
    // One byte more than the limit, so that a longer answer shows.
    let mut reader = response.body_mut().as_reader().take(limit + 1);
    reader.read_to_end(&mut bytes).map_err(|error| no_answer(uri, &Error::from(error)))?;
    match bytes.len() as u64 > limit {
        true => Err(DistributionError::TooLarge { what, limit }),
        false => Ok(bytes),
    }
}

/// The error where a server gave no answer, or not all of it.
pub(crate) fn no_answer(uri: &Uri, error: &Error) -> DistributionError {
    let reason = match error {
        Error::RequireHttpsOnly(_) => {
            let (to, reason) = ("an address".to_owned(), "it is not encrypted");
            return DistributionError::Redirect { server: server(uri), to, reason };
        }
        Error::TooManyRedirects => format!("it redirects more than {REDIRECTS} times"),
        // The addresses in these may hold what is as good as a password.
        Error::BadUri(_) => "it names an address that can't be read".to_owned(),
        Error::Protocol(_) => "its answer doesn't keep to HTTP".to_owned(),
        Error::ConnectProxyFailed(_) => "the proxy didn't connect".to_owned(),
        other => other.to_string(),
    };
    DistributionError::NoAnswer { server: server(uri), reason }
}

/// Checks that what is sent to this address can be read by nobody on the way.
pub(crate) fn check_scheme(uri: &Uri) -> Result<(), DistributionError> {
    if is_encrypted(uri) || (uri.scheme_str() == Some("http") && uri.host().is_some_and(is_this_machine)) {
        return Ok(());
    }
    let reason = format!("{} is not encrypted", place(uri));
    Err(DistributionError::Address { reason, expected: "`https://`, or a server of this machine itself" })
}

pub(crate) fn is_encrypted(uri: &Uri) -> bool {
    uri.scheme_str() == Some("https")
}

/// Whether the name can only mean this machine.
pub(crate) fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether both addresses are of one server, and reached in the same way.
pub(crate) fn is_same_server(one: &Uri, other: &Uri) -> bool {
    let port = |uri: &Uri| uri.port_u16().unwrap_or(if is_encrypted(uri) { 443 } else { 80 });
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    one.scheme_str() == other.scheme_str() && host(one) == host(other) && port(one) == port(other)
}

/// The scheme and the server of an address, without any password.
pub(crate) fn place(uri: &Uri) -> String {
    format!("{}://{}", uri.scheme_str().unwrap_or("?"), server(uri))
}

/// The server of an address, with its port where it has one.
pub(crate) fn server(uri: &Uri) -> String {
    let host = uri.host().unwrap_or("?");
    uri.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_sent_unencrypted_to_another_machine() {
        let http = Http::new(PATIENCE);
        for address in ["http://r.example/", "http://10.0.0.1/", "ftp://localhost/", "http://[2001:db8::1]/"]
        {
            let uri: Uri = address.parse().unwrap();
            assert!(http.agent(&uri).unwrap_err().to_string().contains("not encrypted"), "{address}");
        }
        for address in ["https://r.example/", "http://localhost:1/", "http://127.9.9.9/", "http://[::1]/"] {
            assert!(http.agent(&address.parse().unwrap()).is_ok(), "{address}");
        }
    }

    #[test]
    fn an_encrypted_request_never_goes_on_unencrypted() {
        let http = Http::new(PATIENCE);
        // It is the same check that a redirect meets, and it comes before any connection.
        let refused = http.encrypted.get("http://127.0.0.1:1/?token=secret").call();
        let error = no_answer(&"https://r.example/".parse().unwrap(), &refused.unwrap_err()).to_string();
        assert!(error.contains("not followed") && error.contains("not encrypted"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}
