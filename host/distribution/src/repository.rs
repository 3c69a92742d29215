//! Requests to one repository of a registry. The first one shows no password; where the registry wants one, it is repeated
//! with what the registry asks for.

use std::path::Path;

use serde::Deserialize;
use ureq::Body;
use ureq::http::{HeaderValue, Method, Request, Response, Uri};

use super::authorization::authorization;
use super::credentials;
use super::error::DistributionError;
use super::http::{self, Http, SHORT};
use super::reference::Reference;

/// What is done at a repository.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    Pull,
    Push,
}

/// Requests to the repository of a reference.
pub(crate) struct Repository<'a> {
    http: &'a Http,
    docker_config: Option<&'a Path>,
    reference: &'a Reference,
    access: Access,
    authorization: Option<HeaderValue>,
}

impl<'a> Repository<'a> {
    pub(crate) fn new(
        http: &'a Http,
        docker_config: Option<&'a Path>,
        reference: &'a Reference,
        access: Access,
    ) -> Self {
        Self { http, docker_config, reference, access, authorization: None }
    }

    /// The address of a part of the repository, such as `blobs/sha256:…`.
    pub(crate) fn uri(&self, part: &str) -> Result<Uri, DistributionError> {
        let server = self.reference.server();
        let host = server.rsplit_once(':').map_or(server, |(host, port)| {
            // The colons of an address without a port are within its brackets.
            if port.ends_with(']') { server } else { host }
        });
        let scheme = if http::is_this_machine(host) { "http" } else { "https" };
        let address = format!("{scheme}://{server}/v2/{}/{part}", self.reference.name);
        address.parse().map_err(|_| self.unfit(format!("no address for {}", self.reference)))
    }

    /// The address that the registry named in the header `Location`. It must be as encrypted as the registry itself.
    pub(crate) fn location(&self, response: &Response<Body>) -> Result<Uri, DistributionError> {
        let location = response.headers().get("location").and_then(|location| location.to_str().ok());
        let location = location.ok_or_else(|| self.unfit("no address to upload to".to_owned()))?;
        let own = self.uri("")?;
        let whole = match location.starts_with('/') {
            true => format!("{}{location}", http::place(&own)),
            false => location.to_owned(),
        };
        let uri = whole.parse::<Uri>().ok().filter(|uri| uri.scheme_str() == own.scheme_str());
        uri.ok_or_else(|| {
            self.unfit("an address to upload to that is not encrypted as its own is".to_owned())
        })
    }

    /// Makes a request. Where nobody may do that without a password, it is made once more with the account's.
    pub(crate) fn send(
        &mut self,
        method: &Method,
        uri: &Uri,
        headers: &[(&'static str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Response<Body>, DistributionError> {
        let response = self.send_once(method, uri, headers, body)?;
        if response.status().as_u16() != 401 || !self.is_own(uri) {
            return Ok(response);
        }
        let denied = || DistributionError::Denied { server: self.reference.registry.clone() };
        if self.authorization.is_some() {
            return Err(denied());
        }
        let kind = match self.access {
            Access::Pull => "pull",
            Access::Push => "pull,push",
        };
        let scope = format!("repository:{}:{kind}", self.reference.name);
        let credentials = credentials::of(self.docker_config, &self.reference.registry)?;
        let shown = authorization(self.http, uri, response.headers(), &scope, &credentials)?;
        let shown = shown.ok_or_else(denied)?;
        self.authorization = Some(shown);
        let response = self.send_once(method, uri, headers, body)?;
        match response.status().as_u16() {
            401 | 403 => Err(DistributionError::Denied { server: self.reference.registry.clone() }),
            _ => Ok(response),
        }
    }

    fn send_once(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &[(&'static str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Response<Body>, DistributionError> {
        let mut request = Request::builder().method(method.clone()).uri(uri.clone());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        // Whoever else the registry names for an upload isn't shown the password.
        if let Some(authorization) = self.authorization.as_ref().filter(|_| self.is_own(uri)) {
            request = request.header("authorization", authorization.clone());
        }
        let agent = self.http.agent(uri)?;
        let unfit = |_| self.unfit("what no request can be made of".to_owned());
        let answered = match body {
            Some(bytes) => agent.run(request.body(bytes).map_err(unfit)?),
            None => agent.run(request.body(()).map_err(unfit)?),
        };
        http::answer(uri, answered)
    }

    fn is_own(&self, uri: &Uri) -> bool {
        self.uri("").is_ok_and(|own| http::is_same_server(&own, uri))
    }

    /// The answer where its status is this one; otherwise an error with the registry's own codes.
    pub(crate) fn expect(
        &self,
        response: Response<Body>,
        status: u16,
        request: &'static str,
    ) -> Result<Response<Body>, DistributionError> {
        let found = response.status().as_u16();
        if found == status {
            return Ok(response);
        }
        let server = self.reference.server().to_owned();
        let text = http::read(&self.uri("")?, response, SHORT, "the registry's error").unwrap_or_default();
        Err(DistributionError::Status { server, request, status: found, codes: codes(&text) })
    }

    pub(crate) fn unfit(&self, what: String) -> DistributionError {
        DistributionError::Unfit { server: self.reference.server().to_owned(), what }
    }
}

/// The codes of a registry's error, such as ` (MANIFEST_UNKNOWN)`. Its other text isn't shown: it may hold anything.
fn codes(text: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Errors {
        errors: Vec<One>,
    }
    #[derive(Deserialize)]
    struct One {
        code: String,
    }
    let errors = serde_json::from_slice::<Errors>(text).map_or_else(|_| Vec::new(), |all| all.errors);
    let is_code = |code: &String| {
        (1..=40).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    let codes: Vec<String> = errors.into_iter().map(|one| one.code).filter(is_code).take(3).collect();
    if codes.is_empty() { String::new() } else { format!(" ({})", codes.join(", ")) }
}
