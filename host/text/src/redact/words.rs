//! The words that [`super::names`] and [`super::value`] use.

/// Every name of a secret contains one of these.
pub(super) const HINTS: &[&str] = &[
    "pass",
    "pwd",
    "pw",
    "secret",
    "token",
    "credential",
    "authorization",
    "psk",
    "api key",
    "masterauth",
    "preshared",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "access-key",
    "privatekey",
    "private_key",
    "private-key",
    "accountkey",
    "account_key",
    "account-key",
    "encryptionkey",
    "encryption_key",
    "encryption-key",
    "signingkey",
    "signing_key",
    "signing-key",
    "masterkey",
    "master_key",
    "master-key",
];

/// The endings of secrets' names, without the marks between their words.
pub(super) const ENDINGS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "credential",
    "credentials",
    "authorization",
    "apikey",
    "accesskey",
    "privatekey",
    "presharedkey",
    "secretkey",
    "secretkeybase",
    "accountkey",
    "encryptionkey",
    "signingkey",
    "masterkey",
    "requirepass",
    "masterauth",
    "mysqlpwd",
    "bindpw",
    "rootpw",
];

/// Names with such an ending that hold no secret: a position in a list, a tag of sudoers, a PAM file, a setting with
/// which systemd finds the secret elsewhere.
pub(super) const NOT_SECRET: &[&str] = &[
    "nexttoken",
    "pagetoken",
    "nextpagetoken",
    "continuetoken",
    "continuationtoken",
    "nopasswd",
    "commonpassword",
    "loadcredential",
    "importcredential",
    "loadcredentialencrypted",
    "conditioncredential",
    "assertcredential",
    "nopassword",
    "haspassword",
    "askpassword",
];

/// Words before `pass` with which it means a password. It has other meanings as well (`proxy_pass`, `first_pass`).
pub(super) const OF_PASS: &[&str] = &[
    "db", "user", "admin", "root", "mail", "smtp", "ftp", "ldap", "bind", "http", "https", "mysql", "pg",
    "postgres", "redis", "rabbitmq", "mqtt", "sql", "app", "login", "auth", "key", "cert", "store", "sasl",
    "relay", "imap", "wifi", "vnc", "service", "database", "default", "repl", "backup",
];

/// Names behind which a message has the secret after a blank, as in `with password x` and `the password is x`.
pub(super) const IN_MESSAGES: &[&str] =
    &["password", "passwd", "passphrase", "passcode", "secret", "token", "bindpw", "pw", "pwd"];

/// Settings whose value follows after a blank, at the beginning of a line.
pub(super) const BEFORE_A_BLANK: &[&str] = &["requirepass", "masterauth", "wpapsk"];

/// Values that tell something about a secret, and are none.
pub(super) const STATES: &[&str] = &[
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "none",
    "null",
    "nil",
    "undefined",
    "empty",
    "set",
    "unset",
    "locked",
    "unlocked",
    "expired",
    "enabled",
    "disabled",
    "required",
    "optional",
    "requisite",
    "sufficient",
    "missing",
    "present",
    "absent",
    "prompt",
    "ask",
    "never",
    "always",
    "unknown",
    "default",
    "all",
    "x",
    "np",
    "lk",
    "omitted",
    "hidden",
    "redacted",
    "0",
    "1",
    "-1",
    "string",
    "text",
    "bool",
    "boolean",
    "str",
];

/// Words with which prose goes on after a colon: `invalid password: too short`.
pub(super) const PROSE: &[&str] = &[
    "a",
    "an",
    "the",
    "too",
    "must",
    "is",
    "it",
    "not",
    "may",
    "cannot",
    "can't",
    "could",
    "minimum",
    "maximum",
    "at",
    "should",
    "has",
    "was",
    "expired",
    "incorrect",
    "wrong",
    "invalid",
    "failed",
    "required",
    "user",
    "for",
    "of",
    "unable",
    "authentication",
    "permission",
    "no",
    "bad",
    "expected",
    "command",
    "error",
    "denied",
    "missing",
];

/// The services of nsswitch.conf(5).
pub(super) const SERVICES: &[&str] = &[
    "files",
    "compat",
    "systemd",
    "db",
    "nis",
    "nisplus",
    "ldap",
    "sss",
    "winbind",
    "hesiod",
    "extrausers",
    "altfiles",
    "dns",
    "cache",
    "usrfiles",
];

/// Suffixes of package names: `passwd:amd64`.
pub(super) const ARCHITECTURES: &[&str] = &[
    "amd64", "arm64", "armhf", "armel", "i386", "ppc64el", "s390x", "riscv64", "mips64el", "any", "all",
    "native",
];

/// First folders of paths. A value with one of them after its slash is a path and not base64.
pub(super) const ROOTS: &[&str] = &[
    "etc", "var", "usr", "run", "home", "root", "opt", "srv", "tmp", "mnt", "media", "dev", "proc", "sys",
    "data", "app", "private", "secrets", "boot", "path", "lib", "bin", "sbin", "nix", "snap", "config",
    "vault", "certs", "keys",
];
