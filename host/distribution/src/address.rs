//! Where a component comes from, as the operator writes it: a file, a reference on a registry, or an address on the web.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ureq::http::Uri;

use super::error::DistributionError;
use super::http;
use super::reference::{self, Reference};

const FORM: &str = "a file, `oci://REGISTRY/NAME:TAG`, or `https://SERVER/PATH`";

/// Where a component comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file of this machine.
    File(PathBuf),
    /// A registry.
    Registry(Reference),
    /// A web server.
    Web(WebAddress),
}

impl Source {
    /// Reads what the operator wrote. Whatever has a scheme is no file.
    pub fn of(written: &Path) -> Result<Self, DistributionError> {
        let Some((text, (scheme, _))) =
            written.to_str().and_then(|text| Some((text, text.split_once("://")?)))
        else {
            return Ok(Self::File(written.to_owned()));
        };
        match scheme {
            _ if text.starts_with(reference::SCHEME) => Ok(Self::Registry(text.parse()?)),
            "https" | "http" => Ok(Self::Web(text.parse()?)),
            // A path may hold these characters as well.
            _ if scheme.contains('/') => Ok(Self::File(written.to_owned())),
            _ => Err(wrong(format!("nothing is fetched by `{scheme}://`"))),
        }
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => Display::fmt(&path.display(), f),
            Self::Registry(reference) => Display::fmt(reference, f),
            Self::Web(address) => Display::fmt(address, f),
        }
    }
}

/// An address on the web. It is shown without what follows a `?`, which may be as good as a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAddress(Uri);

impl WebAddress {
    pub(crate) fn uri(&self) -> &Uri {
        &self.0
    }
}

impl FromStr for WebAddress {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Self, DistributionError> {
        let uri: Uri = text.parse().map_err(|_| wrong("the address can't be read".to_owned()))?;
        let has_password = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
        if has_password || uri.host().is_none_or(str::is_empty) {
            return Err(wrong("the address has a password, or names no server".to_owned()));
        }
        http::check_scheme(&uri)?;
        Ok(Self(uri))
    }
}

impl Display for WebAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", http::place(&self.0), self.0.path())
    }
}

fn wrong(reason: String) -> DistributionError {
    DistributionError::Address { reason, expected: FORM }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_scheme_is_no_file() {
        let of = |text: &str| Source::of(Path::new(text));
        assert!(matches!(of("pacman.wasm"), Ok(Source::File(_))));
        assert!(matches!(of("/srv/oci:/x.wasm"), Ok(Source::File(_))));
        assert!(matches!(of("./a://b"), Ok(Source::File(_))));
        assert!(matches!(of("oci://r.example/x:1"), Ok(Source::Registry(_))));
        assert!(matches!(of("https://r.example/x.wasm"), Ok(Source::Web(_))));
        for text in ["docker://r.example/x:1", "file:///srv/x.wasm", "ftp://r.example/x", "oci://x"] {
            assert!(of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_on_the_web_is_encrypted_or_this_machines_and_holds_no_password() {
        for text in [
            "http://r.example/x.wasm",
            "http://127.0.0.1.example/x.wasm",
            "http://localhost.example/x.wasm",
            "http://10.0.0.1/x.wasm",
            "https://ada:secret@r.example/x.wasm",
            "https:///x.wasm",
            "https://r.example/x y",
        ] {
            let error = text.parse::<WebAddress>().unwrap_err().to_string();
            assert!(error.contains("https://") && !error.contains("secret"), "{text}: {error}");
        }
        for text in
            ["http://127.0.0.1:80/x", "http://localhost/x", "http://[::1]:8080/x", "https://r.example/x"]
        {
            assert_eq!(text.parse::<WebAddress>().unwrap().to_string(), text);
        }
        let signed: WebAddress = "https://r.example/x.wasm?token=secret".parse().unwrap();
        assert_eq!(signed.to_string(), "https://r.example/x.wasm");
    }
}
