//! The directives that name certificates, in the configuration of services.

use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::knowledge::{ConfigFile, Profile, Status, config_paths};
use linux_sysadmin_sdk::{Privilege, prelude::*, text};

/// Prints the lines that name certificates: of nginx, Apache, Postfix, Dovecot, Exim, HAProxy, PostgreSQL, MariaDB,
/// Redis, Mosquitto, ProFTPD, vsftpd, OpenLDAP, stunnel and OpenVPN; and those that include other files. Comments
/// aren't printed.
pub(super) const GREP: CommandLine = CommandLine::new(
    "grep --dereference-recursive --no-messages --extended-regexp --ignore-case --with-filename --binary-files=without-match '^[[:space:]]*(ssl_certificate|SSLCertificateFile|smtpd_tls_(cert_file|chain_files)|ssl_cert|ssl_cert_file|tls_certificate|bind[[:space:]].*[[:space:]]crt|ssl-cert|tls-cert-file|certfile|TLSRSACertificateFile|rsa_cert_file|TLSCertificateFile|olcTLSCertificateFile:|cert|include)[[:space:]=:]' -- <text>...",
);

/// The certificates that the configuration of services names, each with the profiles of those services.
pub(super) fn used(
    profiles: &[Profile],
    notes: &mut Vec<String>,
    cx: &Context,
) -> BTreeMap<String, BTreeSet<String>> {
    let Some(command) = command(profiles) else { return BTreeMap::new() };
    let said = match cx.run(command) {
        // 1 says that nothing was found, 2 that some path is missing.
        Ok(output) if output.exit_code <= 2 => {
            if output.truncated {
                notes.push(
                    "some certificates: the configuration of services has more of them than is kept"
                        .to_owned(),
                );
            }
            output.text().into_owned()
        }
        Ok(output) => {
            notes.push(format!("the configuration of services: {}", text::of_line(&output.error_text())));
            return BTreeMap::new();
        }
        Err(problem) => {
            notes.push(format!("the configuration of services: {}", text::of_line(&problem.message)));
            return BTreeMap::new();
        }
    };
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, path) in said.lines().filter_map(named).filter(|(file, _)| is_in_use(file, &said)) {
        let services = files(profiles).filter(|(_, known)| config_paths::covers(&known.path, file));
        let services: BTreeSet<String> = services.map(|(profile, _)| profile.id.clone()).collect();
        // Files that lie beside a service's configuration aren't read by it.
        if !services.is_empty() {
            used.entry(path.to_owned()).or_default().extend(services);
        }
    }
    used
}

/// The files of configuration of the services that run, each with its profile. A service that doesn't run uses no certificate.
fn files(profiles: &[Profile]) -> impl Iterator<Item = (&Profile, &ConfigFile)> {
    let profiles = profiles.iter().filter(|one| matches!(one.status, Status::Active | Status::Failed));
    profiles.flat_map(|profile| profile.config.iter().map(move |file| (profile, file)))
}

/// The command that prints the directives. `None` where no service has a configuration.
pub(super) fn command(profiles: &[Profile]) -> Option<Command> {
    let roots: BTreeSet<String> = files(profiles)
        .map(|(_, file)| (config_paths::root(&file.path), file))
        // Directories elsewhere hold data, and a search through them would take long.
        .filter(|(root, file)| root.starts_with("/etc/") || *root == file.path)
        .map(|(root, _)| root)
        .collect();
    (!roots.is_empty()).then(|| GREP.with(&roots).privilege(Privilege::RootIfAvailable))
}

/// True if the service reads the file. Sites that are only available aren't read, and snippets are where another file
/// includes them.
fn is_in_use(file: &str, said: &str) -> bool {
    if file.contains("-available/") {
        return false;
    }
    let Some((_, name)) = file.split_once("/snippets/") else { return true };
    let included = format!("snippets/{name}");
    said.lines().filter_map(|line| line.split_once(':')).any(|(by, directive)| {
        by != file && !by.contains("-available/") && is_include(directive) && directive.contains(&included)
    })
}

/// True if a directive includes other files: `include` of nginx, `Include` of sshd and Apache.
fn is_include(directive: &str) -> bool {
    directive.trim_start().get(..7).is_some_and(|word| word.eq_ignore_ascii_case("include"))
}

/// The file of configuration and the path of a certificate, in a line of grep.
fn named(line: &str) -> Option<(&str, &str)> {
    let (file, directive) = line.split_once(':')?;
    if is_include(directive) {
        return None;
    }
    let value = directive.trim_start().split_once([' ', '\t', '=', ':'])?.1;
    let begin = value.find('/')?;
    let path = &value[begin..];
    let end = path.find([' ', '\t', ';', '"', '\'', '>', ',']).unwrap_or(path.len());
    let path = &path[..end];
    // A path with a variable is known only to the service.
    (path.len() > 1 && !path.contains('$') && !path.ends_with('/') && !text::has_hidden(path))
        .then_some((file, path))
}

#[cfg(test)]
mod tests {
    use super::{is_in_use, named};

    #[test]
    fn a_site_that_is_not_enabled_and_a_snippet_that_nobody_includes_are_not_in_use() {
        let said = "/etc/nginx/sites-enabled/a:    include snippets/used.conf;\n\
                    /etc/nginx/sites-available/b:    include snippets/unused.conf;\n";
        for (file, expected) in [
            ("/etc/nginx/nginx.conf", true),
            ("/etc/nginx/sites-enabled/a", true),
            ("/etc/nginx/sites-available/a", false),
            ("/etc/nginx/snippets/used.conf", true),
            ("/etc/nginx/snippets/unused.conf", false),
            ("/etc/nginx/snippets/snakeoil.conf", false),
        ] {
            assert_eq!(is_in_use(file, said), expected, "{file}");
        }
    }

    #[test]
    fn a_directive_names_a_path_in_any_of_its_forms() {
        for (line, expected) in [
            ("/etc/nginx/a:    ssl_certificate /etc/ssl/a.pem;", Some(("/etc/nginx/a", "/etc/ssl/a.pem"))),
            ("/a:SSLCertificateFile\t\"/etc/ssl/a.pem\"", Some(("/a", "/etc/ssl/a.pem"))),
            ("/a:ssl_cert = </etc/dovecot/a.pem", Some(("/a", "/etc/dovecot/a.pem"))),
            ("/a:ssl_cert_file = '/etc/ssl/a.pem'", Some(("/a", "/etc/ssl/a.pem"))),
            ("/a:smtpd_tls_cert_file=/etc/ssl/a.pem", Some(("/a", "/etc/ssl/a.pem"))),
            ("/a:  bind *:443 ssl crt /etc/haproxy/a.pem alpn h2", Some(("/a", "/etc/haproxy/a.pem"))),
            ("/a:ssl_certificate /etc/$host.pem;", None),
            ("/a:ssl_certificate a.pem;", None),
            ("/a:include /etc/nginx/x.conf;", None),
            ("/a:Include /etc/ssh/sshd_config.d/*.conf", None),
            ("/a:ssl_certificate /etc/ssl/;", None),
            ("", None),
        ] {
            assert_eq!(named(line), expected, "{line}");
        }
    }
}
