//! Gets a component from where the operator says it is: a file, a registry, or a web server. Nothing here runs while a server
//! starts or serves.

use std::path::{Path, PathBuf};

use host_base::sha256::is_sha256;
use host_components::{Examined, InstallError, LARGEST_COMPONENT, ModuleInstaller};
use host_distribution::{DistributionError, Download, RegistryClient, Resolved, Source};

/// A component that lies on this machine now.
pub(super) struct Component {
    path: PathBuf,
    /// The address that it was fetched from.
    address: Option<String>,
    /// The file is there as long as this is.
    _download: Option<Download>,
}

impl Component {
    /// Gets the component. One from the web must have this SHA-256, since nothing else says which bytes are meant.
    pub(super) fn fetch(source: &Source, sha256: Option<&str>) -> Result<Self, InstallError> {
        let failed = |error: DistributionError| elsewhere(source, &error);
        match source {
            Source::File(path) => Ok(Self { path: path.clone(), address: None, _download: None }),
            Source::Registry(reference) => {
                let client = client();
                let resolved = tokio::task::block_in_place(|| client.resolve(reference)).map_err(failed)?;
                Self::pull(&client, &resolved)
            }
            Source::Web(address) => {
                let sha256 = expected(source, sha256)?;
                let download = tokio::task::block_in_place(|| client().download(address, &sha256));
                Ok(Self::of(download.map_err(failed)?, address.to_string()))
            }
        }
    }

    /// Gets the component that a reference stands for.
    pub(super) fn pull(client: &RegistryClient, resolved: &Resolved) -> Result<Self, InstallError> {
        let source = Source::Registry(resolved.reference.clone());
        let download = tokio::task::block_in_place(|| client.pull(resolved));
        Ok(Self::of(download.map_err(|error| elsewhere(&source, &error))?, source.to_string()))
    }

    fn of(download: Download, address: String) -> Self {
        Self { path: download.path().to_owned(), address: Some(address), _download: Some(download) }
    }

    /// Examines it. What is said about it names the place that it comes from.
    pub(super) async fn examine(
        &self,
        workshop: &ModuleInstaller,
        updates: bool,
    ) -> Result<Examined, InstallError> {
        let examined = workshop.examine(&self.path, updates).await;
        let Some(address) = &self.address else { return examined };
        match examined {
            Ok(examined) => Ok(examined.fetched_from(address.clone())),
            Err(InstallError::Refused { reason, .. }) => {
                Err(InstallError::Refused { path: address.into(), reason })
            }
            Err(error) => Err(error),
        }
    }
}

/// A client that takes what could be a module.
pub(super) fn client() -> RegistryClient {
    RegistryClient::new(LARGEST_COMPONENT)
}

/// Reads where the operator says a component is.
pub(super) fn source_of(written: &Path) -> Result<Source, InstallError> {
    Source::of(written).map_err(|error| InstallError::Elsewhere {
        // It isn't known which part of it may be shown.
        address: "the address".to_owned(),
        reason: error.to_string(),
    })
}

/// The error about a place outside this machine.
pub(super) fn elsewhere(source: &Source, error: &DistributionError) -> InstallError {
    InstallError::Elsewhere { address: source.to_string(), reason: error.to_string() }
}

/// The SHA-256 that the bytes of an address on the web must have.
fn expected(source: &Source, sha256: Option<&str>) -> Result<String, InstallError> {
    let refused = |reason: String| InstallError::Elsewhere { address: source.to_string(), reason };
    let Some(sha256) = sha256.map(str::to_ascii_lowercase) else {
        let why = "it may give other bytes tomorrow; say by `--sha256 HEX` which ones are meant";
        return Err(refused(why.to_owned()));
    };
    match is_sha256(&sha256) {
        true => Ok(sha256),
        false => Err(refused(format!("{sha256:?} is no SHA-256; expected 64 hexadecimal digits"))),
    }
}
