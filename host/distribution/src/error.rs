//! The reasons why a component can't be had or published. No message quotes what a server wrote, nor the part of an address
//! that may be a password.

use std::io;
use std::path::PathBuf;

/// The reason why a component can't be had or published.
#[derive(Debug, thiserror::Error)]
pub enum DistributionError {
    /// What the operator named is no place for a component.
    #[error("{reason}; expected {expected}")]
    Address {
        /// The finding.
        reason: String,
        /// The form that it should have.
        expected: &'static str,
    },
    /// The server gave no answer.
    #[error("{server} can't be asked: {reason}")]
    NoAnswer {
        /// The server's name.
        server: String,
        /// The reason.
        reason: String,
    },
    /// The server answered that it can't or won't.
    #[error("{server} answers {status}{codes} to {request}")]
    Status {
        /// The server's name.
        server: String,
        /// What was asked.
        request: &'static str,
        /// The status of HTTP.
        status: u16,
        /// The registry's own codes in parentheses, or nothing.
        codes: String,
    },
    /// The server sends the request elsewhere, where it isn't followed.
    #[error("{server} redirects to {to}, which is not followed: {reason}")]
    Redirect {
        /// The server's name.
        server: String,
        /// The scheme and the server of the other place.
        to: String,
        /// The reason.
        reason: &'static str,
    },
    /// The server wants somebody who is known to it.
    #[error(
        "{server} denies access; `docker login {server}` puts the password where it is looked for, in docker's config.json"
    )]
    Denied {
        /// The registry, as its credentials are named.
        server: String,
    },
    /// docker's config.json can't be used.
    #[error("{}: {reason}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// The reason, without the contents.
        reason: String,
    },
    /// The server's answer isn't one that makes sense here.
    #[error("{server} gives {what}")]
    Unfit {
        /// The server's name.
        server: String,
        /// The finding, and what was expected.
        what: String,
    },
    /// The bytes are others than those that were asked for.
    #[error(
        "the SHA-256 of {what} is {found}, and it should be {expected}: somebody has changed it, so it is not used"
    )]
    Digest {
        /// What was asked for.
        what: &'static str,
        /// The digest that it should have.
        expected: String,
        /// The digest that it has.
        found: String,
    },
    /// The answer is too large.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// What was asked for.
        what: &'static str,
        /// The largest size.
        limit: u64,
    },
    /// The tag stands for something else already.
    #[error(
        "{reference} is there already, with the digest {found}; publish another version, or move the tag with `--move-tag`"
    )]
    TagTaken {
        /// The reference with the tag.
        reference: String,
        /// The digest that the tag stands for.
        found: String,
    },
    /// A file of this machine can't be written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file or the directory.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}
