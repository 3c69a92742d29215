//! The words that [`super::names`] and [`super::value`] use.

/// Every name of a secret contains one of these, or ends with one of [`KEYS`].
pub(super) const HINTS: &[&str] = &[
    "pass",
    "pwd",
    "pw",
    "secret",
    "token",
    "credential",
    "authorization",
    "authtok",
    "psk",
    "masterauth",
    "preshared",
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
    "authtok",
    "presharedkey",
    "secretkey",
    "secretkeybase",
    "requirepass",
    "masterauth",
    "mysqlpwd",
    "bindpw",
    "rootpw",
    "sshpass",
    "dbpass",
    "userpass",
    "rootpass",
    "storepass",
];

/// Words before `key` with which it means a secret.
pub(super) const KEYS: &[&str] =
    &["access", "private", "account", "signing", "wep", "aes", "enc", "subscription", "app"];

/// Words before `key` with which it means a secret, and that may stand apart from it, as in `api key: x`.
pub(super) const SPOKEN_KEYS: &[&str] =
    &["api", "encryption", "master", "unseal", "recovery", "license", "hmac", "auth"];

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

/// Words before `pass` with which it means something else: `proxy_pass` of nginx names a server, `first_pass` of
/// a program counts. Behind every other word it means a password.
pub(super) const NOT_OF_PASS: &[&str] = &[
    "proxy",
    "fastcgi",
    "uwsgi",
    "scgi",
    "grpc",
    "memcached",
    "first",
    "second",
    "third",
    "last",
    "next",
    "prev",
    "previous",
    "try",
    "use",
    "by",
    "com",
    "tres",
    "over",
    "under",
    "single",
    "multi",
    "one",
    "two",
    "render",
    "compute",
    "low",
    "high",
    "band",
    "all",
    "fsck",
    "test",
    "tests",
    "checks",
    "did",
    "will",
    "must",
    "should",
    "not",
    "no",
    "max",
    "min",
    "num",
    "per",
    "of",
    "on",
    "boarding",
    "bus",
    "fs",
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

/// Names behind which a value with letters and digits is a secret, in prose, in code and in other languages: patterns
/// for [`super::guessed`].
pub(super) const PASSWORDS: &[&str] = &[
    "password",
    "passphrase",
    "passcode",
    "passwort",
    "kennwort",
    "parola",
    "has[l\u{142}]o",
    "senha",
    "wachtwoord",
    "salasana",
    "heslo",
    "jelsz[o\u{f3}]",
    "lozinka",
    "[s\u{15f}]ifre",
    "mot de passe",
    "contrase\u{f1}a",
    "\u{43f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}",
    "\u{5bc6}\u{7801}",
    "\u{5bc6}\u{78bc}",
    "\u{30d1}\u{30b9}\u{30ef}\u{30fc}\u{30c9}",
    "\u{5e1}\u{5d9}\u{5e1}\u{5de}\u{5d4}",
    // A variable in a command or in prose.
    "(?-i:[A-Z][A-Z0-9]{0,32}_(?:[A-Z0-9]{1,16}_){0,4}(?:PASSWORD|PASSWD|PASS|PWD|PW|TOKEN|SECRET))",
    "(?:env|export|setenv|-e)[ \\t]+[a-z_]{0,64}(?:password|passwd|pass|pwd|token|secret)",
    "[a-z]{2,16}_(?:api_key|token|secret)",
    "(?:secret|token)[ \\t]+has[ \\t]+(?:the[ \\t]+)?value",
    "secret_?id",
    "wep_key",
    "mnemonic",
    "(?:recovery|backup) codes?",
    "auth=\\(",
    "login\\(",
    "credentials?\\(",
    "connect\\(",
    "convertto-securestring(?:[ \\t]+-string)?",
    // Commands whose secret is known by its place.
    "net[ \\t]+user?[ \\t]+[!-~]{1,64}",
    "user[ \\t]+set[ \\t]+password",
    "com2sec[ \\t]+[!-~]{1,64}[ \\t]+[!-~]{1,64}",
    "createuser[ \\t]+[!-~]{1,32}[ \\t]+(?:md5|sha)",
    "createuser[ \\t]+[!-~]{1,32}[ \\t]+(?:md5|sha)[ \\t]+[!-~]{1,64}[ \\t]+(?:des|aes)",
    "smbclient[ \\t]+[/\\\\][!-~]{1,64}",
];

/// Names behind which also what may be a sum is a secret.
pub(super) const PROOFS: &[&str] = &[
    "pass(?:wd|wds)?",
    "pwd?",
    "[a-z]{1,8}(?:pass|pwd?)",
    "secret",
    "[a-z]{0,12}token",
    "jwt",
    "credentials?",
    "creds",
    "otp",
    "totp",
    "mfa",
    "psk",
    "[cx]srf",
    "[a-z]{0,8}sess(?:ion)?(?:[_-]?id)?",
    "cookie",
    "bearer",
    "xauth",
    "authtok",
    "_auth",
    "--auth",
    "(?:api|app|access|auth|aes|enc|encryption|hmac|private|pre-?shared|secret|shared|signing|master|account|storage|subscription|license|unseal|recovery|join|tacacs|zfs)[ _-]?key",
    "(?:code_)?verifier",
    "samlresponse",
    "vault[ \\t]+login",
    "-u[ \\t]*[a-z0-9_.@-]{1,32}:",
    "(?:auth|user|sasl)[= \\t]+[a-z0-9_.@-]{1,32}:",
    "[a-z0-9.-]{1,64}\\]:[0-9]{2,5}[ \\t]+[!-9;-~]{1,64}:",
];

/// Names behind which only what looks generated is a secret.
pub(super) const SIGNS: &[&str] = &[
    "pin",
    "sid",
    "auth",
    "nonce",
    "(?:ro|rw|trap)?community",
    "[a-z]{0,8}key",
    "codes?",
    "phrase",
    "seed",
    "salt",
    "plain",
    "eap",
    "basic",
    "access",
    "ticket",
    "response",
    "login(?::?[ \\t]+[!-9;<>-~]{1,32})?(?:[ \\t]*/)?",
    "rsa[ \\t]+[!-~]{1,64}",
];

/// Words that stand between a name and its value.
pub(super) const VALUE_WORDS: &[&str] = &[
    "is", "was", "now", "ist", "est", "has", "the", "set", "reset", "changed", "updated", "to", "new",
    "value", "string", "plain", "PLAIN", "login", "LOGIN", "root", "attempt", "rejected", "refused", "tried",
    "used", "entered", "given", "v[0-9]",
];
