//! What a registry is shown in the header `Authorization`: a password, or a token that another server gives for it.
//!
//! The registry itself says where that other server is. So a password for it is sent to an encrypted address only, and a
//! registry on another machine can't name an address of this one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_auth::ChallengeRef;
use serde::Deserialize;
use ureq::http::{HeaderMap, HeaderValue, Uri};

use super::credentials::Credentials;
use super::error::DistributionError;
use super::http::{self, Http, SHORT};

/// A token, by one of the two names that servers use.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// What the registry at `uri` wants to see, by the challenges in its answer. None where it wants what the account doesn't
/// have.
pub(crate) fn authorization(
    http: &Http,
    uri: &Uri,
    headers: &HeaderMap,
    scope: &str,
    credentials: &Credentials,
) -> Result<Option<HeaderValue>, DistributionError> {
    let challenges: Vec<ChallengeRef<'_>> = headers
        .get_all("www-authenticate")
        .iter()
        .filter_map(|value| http_auth::parse_challenges(value.to_str().ok()?).ok())
        .flatten()
        .collect();
    let find = |scheme: &str| challenges.iter().find(|one| one.scheme.eq_ignore_ascii_case(scheme));
    if let Some(bearer) = find("bearer") {
        return token(http, uri, bearer, scope, credentials);
    }
    match credentials {
        Credentials::Password { user, password } if find("basic").is_some() => {
            Ok(Some(header(uri, &basic(user, password))?))
        }
        _ => Ok(None),
    }
}

/// Asks for a token, where the challenge says.
fn token(
    http: &Http,
    uri: &Uri,
    challenge: &ChallengeRef<'_>,
    scope: &str,
    credentials: &Credentials,
) -> Result<Option<HeaderValue>, DistributionError> {
    let unfit = |what: &str| DistributionError::Unfit { server: http::server(uri), what: what.to_owned() };
    let parameter = |name: &str| {
        let mut all = challenge.params.iter();
        all.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_unescaped())
    };
    let realm: Option<Uri> = parameter("realm").and_then(|realm| realm.parse().ok());
    let realm = realm.filter(|realm| realm.host().is_some());
    let realm = realm.ok_or_else(|| unfit("no address where a token can be had"))?;
    let may_be_asked = match http::is_this_machine(realm.host().unwrap_or_default()) {
        true => uri.host().is_some_and(http::is_this_machine),
        false => http::is_encrypted(&realm),
    };
    if !may_be_asked {
        let what = "an address for tokens that is not encrypted or is one of this machine, so no password is sent there";
        return Err(unfit(what));
    }
    let service = parameter("service").unwrap_or_default();
    let agent = http.agent(&realm)?;
    let answered = match credentials {
        Credentials::IdentityToken(identity) => agent.post(realm.clone()).send_form([
            ("grant_type", "refresh_token"),
            ("client_id", "linux-sysadmin"),
            ("service", service.as_str()),
            ("scope", scope),
            ("refresh_token", identity.as_str()),
        ]),
        _ => {
            let mut request = agent.get(realm.clone()).query("service", &service).query("scope", scope);
            if let Credentials::Password { user, password } = credentials {
                request = request.header("authorization", header(uri, &basic(user, password))?);
            }
            request.call()
        }
    };
    let response = http::answer(&realm, answered)?;
    match response.status().as_u16() {
        200 => {}
        401 | 403 => return Ok(None),
        status => {
            let (server, request) = (http::server(&realm), "a request for a token");
            return Err(DistributionError::Status { server, request, status, codes: String::new() });
        }
    }
    let text = http::read(&realm, response, SHORT, "the token")?;
    let token: Option<Token> = serde_json::from_slice(&text).ok();
    let token = token.and_then(|token| token.token.or(token.access_token));
    let token = token.ok_or_else(|| unfit("no token where it says that there are some"))?;
    Ok(Some(header(uri, &format!("Bearer {token}"))?))
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// A header that no log of requests shows.
fn header(uri: &Uri, text: &str) -> Result<HeaderValue, DistributionError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| DistributionError::Unfit {
        server: http::server(uri),
        what: "a token with characters that no token has".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::super::http::PATIENCE;
    use super::*;

    #[test]
    fn a_registry_elsewhere_names_no_address_of_this_machine() {
        let uri: Uri = "https://r.example/v2/".parse().unwrap();
        for realm in ["https://127.0.0.1/token", "https://localhost:8443/token", "http://[::1]/token"] {
            let mut headers = HeaderMap::new();
            headers.insert("www-authenticate", format!("Bearer realm=\"{realm}\"").parse().unwrap());
            let http = Http::new(PATIENCE);
            let answer = authorization(&http, &uri, &headers, "pull", &Credentials::Nobody);
            let error = answer.unwrap_err().to_string();
            assert!(error.contains("one of this machine"), "{error}");
        }
    }
}
