//! Fetches components. What a tag stands for is asked once; from then on the digest decides.

use std::path::PathBuf;
use std::time::Duration;

use host_base::sha256;
use ureq::http::{Method, Uri};
use ureq::{Body, Error};

use super::address::WebAddress;
use super::credentials;
use super::download::{Download, NotSaved};
use super::error::DistributionError;
use super::http::{self, Http, PATIENCE};
use super::manifest::{self, Descriptor, LARGEST_MANIFEST, MANIFEST};
use super::reference::Reference;
use super::repository::{Access, Repository};

/// Fetches components, and publishes them.
pub struct RegistryClient {
    http: Http,
    docker_config: Option<PathBuf>,
    /// The number of bytes of the largest component.
    largest: u64,
}

/// What a reference stands for.
pub struct Resolved {
    /// The reference with the digest of its manifest.
    pub reference: Reference,
    component: Descriptor,
}

impl RegistryClient {
    /// A client that takes components of at most so many bytes.
    pub fn new(largest: u64) -> Self {
        Self::with(largest, credentials::usual_file(), PATIENCE)
    }

    /// The same with this file of docker's, and with servers that go on with their answer within this time.
    pub(crate) fn with(largest: u64, docker_config: Option<PathBuf>, patience: Duration) -> Self {
        Self { http: Http::new(patience), docker_config, largest }
    }

    pub(crate) fn repository<'a>(&'a self, reference: &'a Reference, access: Access) -> Repository<'a> {
        Repository::new(&self.http, self.docker_config.as_deref(), reference, access)
    }

    /// Finds out which digest a reference stands for. Where it has one, the manifest must have that digest.
    pub fn resolve(&self, reference: &Reference) -> Result<Resolved, DistributionError> {
        let mut repository = self.repository(reference, Access::Pull);
        let response = manifest_of(&mut repository, reference)?;
        let response = repository.expect(response, 200, "a request for the manifest")?;
        let bytes = http::read(&repository.uri("")?, response, LARGEST_MANIFEST, "the manifest")?;
        let found = sha256::of(&bytes);
        if let Some(expected) = reference.digest.clone().filter(|expected| *expected != found) {
            return Err(DistributionError::Digest { what: "the manifest", expected, found });
        }
        let component = manifest::component(&bytes).map_err(|what| repository.unfit(what))?;
        Ok(Resolved { reference: reference.at(&found), component })
    }

    /// Fetches the component of a reference.
    pub fn pull(&self, resolved: &Resolved) -> Result<Download, DistributionError> {
        let Resolved { reference, component } = resolved;
        if component.size > self.largest {
            return Err(DistributionError::TooLarge { what: "the component", limit: self.largest });
        }
        let mut repository = self.repository(reference, Access::Pull);
        let uri = repository.uri(&format!("blobs/sha256:{}", component.sha256()))?;
        let response = repository.send(&Method::GET, &uri, &[], None)?;
        let response = repository.expect(response, 200, "a request for the component")?;
        saved(&uri, response.into_body(), component.size, component.sha256())
    }

    /// Fetches the component at an address, whose bytes must have this SHA-256.
    pub fn download(&self, address: &WebAddress, sha256: &str) -> Result<Download, DistributionError> {
        let uri = address.uri();
        let response = http::answer(uri, self.http.agent(uri)?.get(uri.clone()).call())?;
        match response.status().as_u16() {
            200 => saved(uri, response.into_body(), self.largest, sha256),
            status => Err(DistributionError::Status {
                server: http::server(uri),
                request: "a request for the component",
                status,
                codes: String::new(),
            }),
        }
    }
}

/// Asks for the manifest of a reference.
pub(crate) fn manifest_of(
    repository: &mut Repository<'_>,
    reference: &Reference,
) -> Result<ureq::http::Response<Body>, DistributionError> {
    let named = match (&reference.digest, &reference.tag) {
        (Some(digest), _) => format!("sha256:{digest}"),
        (None, Some(tag)) => tag.clone(),
        (None, None) => {
            let reason = format!("{reference} has neither a tag nor a digest");
            return Err(DistributionError::Address { reason, expected: "one of them" });
        }
    };
    let uri = repository.uri(&format!("manifests/{named}"))?;
    repository.send(&Method::GET, &uri, &[("accept", MANIFEST)], None)
}

fn saved(uri: &Uri, body: Body, limit: u64, sha256: &str) -> Result<Download, DistributionError> {
    Download::save(body.into_reader(), limit, sha256).map_err(|failed| match failed {
        NotSaved::Read(error) => http::no_answer(uri, &Error::from(error)),
        NotSaved::Wrong(error) => error,
    })
}

#[cfg(test)]
mod tests;
