//! Publishes a component on a registry. A tag that stands for something else is left alone unless the operator moves it.

use host_base::sha256;
use ureq::http::{Method, Uri};

use super::error::DistributionError;
use super::http;
use super::manifest::{self, Annotations, LARGEST_MANIFEST, MANIFEST};
use super::reference::Reference;
use super::registry_client::{RegistryClient, manifest_of};
use super::repository::{Access, Repository};

/// What was published.
pub struct Published {
    /// The reference with its digest.
    pub reference: Reference,
    /// True where all of it was there already.
    pub was_there: bool,
}

impl RegistryClient {
    /// Publishes a component under a reference with a tag.
    pub fn publish(
        &self,
        reference: &Reference,
        component: &[u8],
        annotations: &Annotations,
        moves_tag: bool,
    ) -> Result<Published, DistributionError> {
        if reference.tag.is_none() || reference.digest.is_some() {
            let reason = format!("{reference} can't be published");
            return Err(DistributionError::Address { reason, expected: "`oci://REGISTRY/NAME:TAG`" });
        }
        let mut repository = self.repository(reference, Access::Push);
        let made =
            manifest::make(component, annotations).map_err(|error| repository.unfit(error.to_string()))?;
        let published = reference.at(&sha256::of(&made.manifest));
        let response = manifest_of(&mut repository, reference)?;
        if response.status().as_u16() != 404 {
            let response = repository.expect(response, 200, "a request for the manifest")?;
            let there = http::read(&repository.uri("")?, response, LARGEST_MANIFEST, "the manifest")?;
            if there == made.manifest {
                return Ok(Published { reference: published, was_there: true });
            }
            if !moves_tag {
                let found = format!("sha256:{}", sha256::of(&there));
                return Err(DistributionError::TagTaken { reference: reference.to_string(), found });
            }
        }
        upload(&mut repository, component)?;
        upload(&mut repository, &made.config)?;
        let tag = reference.tag.as_deref().unwrap_or_default();
        let uri = repository.uri(&format!("manifests/{tag}"))?;
        let headers = [("content-type", MANIFEST)];
        let response = repository.send(&Method::PUT, &uri, &headers, Some(&made.manifest))?;
        repository.expect(response, 201, "the manifest")?;
        Ok(Published { reference: published, was_there: false })
    }
}

/// Uploads bytes in one piece, unless the registry has them.
fn upload(repository: &mut Repository<'_>, bytes: &[u8]) -> Result<(), DistributionError> {
    let digest = format!("sha256:{}", sha256::of(bytes));
    let uri = repository.uri(&format!("blobs/{digest}"))?;
    if repository.send(&Method::HEAD, &uri, &[], None)?.status().as_u16() == 200 {
        return Ok(());
    }
    let uri = repository.uri("blobs/uploads/")?;
    let response = repository.send(&Method::POST, &uri, &[], Some(&[]))?;
    let response = repository.expect(response, 202, "the beginning of an upload")?;
    let location = repository.location(&response)?;
    let joint = if location.query().is_some() { '&' } else { '?' };
    let uri = format!("{location}{joint}digest={digest}");
    let uri = uri.parse::<Uri>().map_err(|_| repository.unfit("no address to upload to".to_owned()))?;
    let headers = [("content-type", "application/octet-stream")];
    let response = repository.send(&Method::PUT, &uri, &headers, Some(bytes))?;
    repository.expect(response, 201, "an upload")?;
    Ok(())
}
