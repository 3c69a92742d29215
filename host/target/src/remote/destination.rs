//! The way to a machine behind SSH: an alias, options, and the name that callers use.

use host_openssh::SshOptions;

/// A machine behind SSH, and the way to find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The name that callers use. It becomes part of a file's name.
    pub name: String,
    /// The alias in the user's SSH configuration.
    pub alias: String,
    /// Options that take precedence over that configuration.
    pub options: SshOptions,
}

impl Destination {
    /// Makes the destination of an alias. Its name is the alias.
    pub fn of_alias(alias: String) -> Self {
        Self { name: alias.clone(), alias, options: SshOptions::default() }
    }

    /// Returns the destination with other options. Its name tells what differs.
    pub fn with(self, options: SshOptions) -> Self {
        let user = options.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        // Without brackets, an IPv6 address with a port would read as another address.
        let host = match options.port.is_some() && self.name.contains(':') {
            true => format!("[{}]", self.name),
            false => self.name.clone(),
        };
        let port = options.port.map(|port| format!(":{port}")).unwrap_or_default();
        // The name is part of a file's name as well, and no two names may be alike.
        let key = options.identity_file.as_ref().map(|file| {
            let sha256 = host_base::sha256::of(file.as_os_str().as_encoded_bytes());
            format!("+{}", &sha256[..16])
        });
        let key = key.unwrap_or_default();
        let name = format!("{user}{host}{port}{key}");
        let SshOptions { hostname, port, user, identity_file } = self.options;
        let options = SshOptions {
            hostname: options.hostname.or(hostname),
            port: options.port.or(port),
            user: options.user.or(user),
            identity_file: options.identity_file.or(identity_file),
        };
        Self { name, alias: self.alias, options }
    }
}
