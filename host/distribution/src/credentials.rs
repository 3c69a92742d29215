//! The passwords for registries, from docker's `config.json` and nowhere else. They are never shown, and the file is only
//! read once a registry wants somebody who is known to it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use docker_credential::{CredentialRetrievalError, DockerCredential, get_credential_from_reader};
use host_base::trusted_file;

use super::error::DistributionError;

/// Who an account is to a registry. It has no `Debug`, so that nothing prints it.
pub(crate) enum Credentials {
    /// Anybody.
    Nobody,
    /// Somebody with a password.
    Password { user: String, password: String },
    /// Somebody whom a registry's login has given a token for more tokens.
    IdentityToken(String),
}

/// The usual place of docker's configuration. None where the account has no home directory.
pub(crate) fn usual_file() -> Option<PathBuf> {
    let directory = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let directory = directory.or_else(|| Some(std::env::home_dir()?.join(".docker")));
    directory.map(|directory| directory.join("config.json"))
}

/// What the file says about a registry. Where there is no file, or nothing about the registry in it, that is nobody.
pub(crate) fn of(file: Option<&Path>, registry: &str) -> Result<Credentials, DistributionError> {
    let Some(path) = file else { return Ok(Credentials::Nobody) };
    let refused = |reason: String| DistributionError::Credentials { path: path.to_owned(), reason };
    // It names programs that are asked for passwords, so it must be this account's own.
    let is_own = |metadata: &std::fs::Metadata| match [rustix::process::geteuid().as_raw(), 0]
        .contains(&metadata.uid())
    {
        true => Ok(()),
        false => Err(io::Error::other("it belongs to another account, so it is not used")),
    };
    let bytes = match trusted_file::read_bytes(path, is_own) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Credentials::Nobody),
        Err(error) => return Err(refused(error.to_string())),
    };
    match get_credential_from_reader(bytes.as_slice(), registry) {
        Ok(DockerCredential::UsernamePassword(user, password)) => {
            Ok(Credentials::Password { user, password })
        }
        Ok(DockerCredential::IdentityToken(token)) => Ok(Credentials::IdentityToken(token)),
        // A store of passwords fails in this way as well where it has none for the registry.
        Err(
            CredentialRetrievalError::NoCredentialConfigured | CredentialRetrievalError::HelperFailure { .. },
        ) => Ok(Credentials::Nobody),
        Err(CredentialRetrievalError::ConfigReadError) => {
            Err(refused("it is not the JSON that docker writes".to_owned()))
        }
        Err(
            CredentialRetrievalError::HelperCommunicationError
            | CredentialRetrievalError::MalformedHelperResponse,
        ) => Err(refused(format!(
            "the program docker-credential-… that it names for {registry} gives no password"
        ))),
        Err(_) => Err(refused(format!("what it says about {registry} is no name and password"))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str, registry: &str) -> Result<Credentials, DistributionError> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.json");
        fs::write(&file, text).unwrap();
        of(Some(&file), registry)
    }

    #[test]
    fn only_what_is_said_about_this_registry_counts() {
        // `ada:secret`
        let text = r#"{"auths": {"r.example": {"auth": "YWRhOnNlY3JldA=="}, "t.example": {"identitytoken": "again"}}}"#;
        let Ok(Credentials::Password { user, password }) = read(text, "r.example") else {
            panic!("no password");
        };
        assert_eq!((user.as_str(), password.as_str()), ("ada", "secret"));
        assert!(matches!(read(text, "t.example"), Ok(Credentials::IdentityToken(token)) if token == "again"));
        for registry in ["other.example", "r.example.other", "r.example:5000", ""] {
            assert!(matches!(read(text, registry), Ok(Credentials::Nobody)), "{registry}");
        }
        assert!(matches!(read("{}", "r.example"), Ok(Credentials::Nobody)));
        assert!(matches!(
            of(Some(Path::new("/nonexistent/config.json")), "r.example"),
            Ok(Credentials::Nobody)
        ));
        assert!(matches!(of(None, "r.example"), Ok(Credentials::Nobody)));
    }

    #[test]
    fn a_broken_file_is_an_error_that_shows_nothing_of_it() {
        for text in [
            "secret",
            r#"{"auths": {"r.example": {"auth": "secret"}}}"#,
            r#"{"auths": {"r.example": {"auth": "YWRh"}}}"#,
            r#"{"credHelpers": {"r.example": "no-such-helper-secret"}}"#,
        ] {
            let Err(error) = read(text, "r.example") else { panic!("{text} is taken") };
            let error = error.to_string();
            assert!(error.contains("config.json") && !error.contains("secret"), "{error}");
        }
    }
}
