//! Finds secrets by their form, wherever they stand. Each pattern marks the secret with `(?P<s>…)`.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::REDACTED;
use super::guessed::is_generated;
use super::names::is_no_secret;

/// A pattern, and the hints without which it isn't looked for.
pub(super) struct Form {
    /// Every match contains one of these, in any case.
    pub(super) hints: &'static [&'static str],
    pattern: &'static LazyLock<Option<Regex>>,
    /// Says whether a match is a secret, given the match and the text after it.
    is_secret: fn(&str, &str) -> bool,
}

/// The hints of [`TOKEN`].
const TOKENS: &[&str] = &[
    "AGE-SECRET-KEY-",
    "eyJ",
    "AKIA",
    "ASIA",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "gldt-",
    "glrt-",
    "glcbt-",
    "glptt-",
    "glsoat-",
    "glagent-",
    "xoxa-",
    "xoxb-",
    "xoxe-",
    "xoxo-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "AIza",
    "ya29.",
    "GOCSPX-",
    "sk_live_",
    "rk_live_",
    "sk_test_",
    "rk_test_",
    "whsec_",
    "npm_",
    "pypi-",
    "SG.",
    "dop_v1_",
    "doo_v1_",
    "dor_v1_",
    "sk-",
    ":AA",
    "hvs.",
    "hvb.",
    "hvr.",
    "dckr_pat_",
    "shpat_",
    "shpca_",
    "shppa_",
    "shpss_",
    "tskey-",
    "SWMTKN-",
    "hf_",
];

/// The hints of [`HERE_STRING`].
const HERE_STRINGS: &[&str] = &["<<<"];

/// The hints of [`HASH`].
const HASHES: &[&str] = &[
    "$1$",
    "$5$",
    "$6$",
    "$7$",
    "$8$",
    "$9$",
    "$y$",
    "$gy$",
    "$2$",
    "$2a$",
    "$2b$",
    "$2x$",
    "$2y$",
    "$apr1$",
    "$argon2",
    "$sha1$",
    "$sm3",
    "$pbkdf2",
    "$scrypt$",
    "$md5$",
    "$bcrypt-sha256$",
    "{ssha",
    "{sha",
    "{smd5}",
    "{md5}",
    "{crypt}",
    "{pbkdf2",
    "grub.pbkdf2",
    "scram-sha-",
    "{plain}",
    "{cleartext}",
];

/// Compiles a pattern whose classes have `\s` for the blanks of ASCII. With those of Unicode, which end no secret, a pattern
/// would take several times the memory.
pub(super) fn compiled(pattern: &str) -> Option<Regex> {
    Regex::new(&pattern.replace(r"\s", r" \t\n\x0b\x0c\r")).ok()
}

macro_rules! form {
    ($name:ident, $($part:expr),+) => {
        static $name: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(concat!($($part),+)));
    };
}

// A token begins at the beginning of a word, or after the rest of an escaped line end or blank.
form!(
    TOKEN,
    r"(?:(?-u:\b)|\\[nrt]|\\u00[0-9a-f]{2}|%[0-9A-Fa-f]{2}|bot)(?P<s>",
    "AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{20,}",
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*",
    "|A(?:KI|SI)A[A-Z0-9]{16,}",
    "|gh[opusr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}",
    "|gl(?:pat|dt|rt|cbt|ptt|soat|agent)-[A-Za-z0-9_.-]{16,}",
    "|xox[abeoprs]-[A-Za-z0-9.-]{10,}|xapp-[A-Za-z0-9-]{10,}",
    r"|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}",
    "|[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,}",
    "|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{50,}",
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    "|do[opr]_v1_[a-f0-9]{40,}",
    "|sk-(?:proj|ant|svcacct|admin|or|lf)-[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9]{20,}",
    "|[0-9]{6,12}:AA[A-Za-z0-9_-]{30,}",
    r"|hv[sbr]\.[A-Za-z0-9_-]{20,}|dckr_pat_[A-Za-z0-9_-]{20,}|shp(?:at|ca|pa|ss)_[a-f0-9]{32,}",
    "|tskey-[a-z]+-[A-Za-z0-9-]{16,}|SWMTKN-1-[a-z0-9-]{40,}|hf_[A-Za-z0-9]{30,}",
    ")"
);

form!(HOOK, r"(?:hooks\.slack\.com/[a-z]+/|api/webhooks/[0-9]+/)(?P<s>[A-Za-z0-9/_-]{10,})");

form!(
    SIGNATURE,
    r"(?i-u:(?:[?&;]|\\u0026)(?:x-amz-signature|x-goog-signature|sig)=)(?P<s>[A-Za-z0-9%+/=_-]{16,})"
);

// These are the hashes of crypt(5), with `$` doubled as in compose files; the schemes of LDAP; and the forms that GRUB
// and PostgreSQL use.
form!(
    HASH,
    r"(?P<s>",
    r"\$\$?(?:1|5|6|7|8|9|y|gy|2[abxy]?|apr1|sha1|sm3y?|scrypt|bcrypt-sha256|md5)\$\$?(?:rounds=[0-9]+\$\$?)?",
    r#"(?:[^$:\s"'\\]{0,64}\$\$?)?(?:[^$:\s"'\\]{0,64}\$\$?)?[./A-Za-z0-9=+,]{16,}"#,
    r"|\$\$?(?:argon2(?:id|i|d)|pbkdf2[a-z0-9-]*)\$[A-Za-z0-9./=,$+_-]{16,}",
    r"|(?i-u:\{(?:s?sha(?:256|384|512)?|s?md5|crypt|pbkdf2[a-z0-9-]*)\})[A-Za-z0-9+/=$.]{13,}",
    r"|grub\.pbkdf2\.sha512\.[0-9]+\.[0-9A-F]{16,}(?:\.[0-9A-F]*)?",
    r"|SCRAM-SHA-(?:1|256)\$[0-9]+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=:]+",
    r#"|(?i-u:\{(?:plain|cleartext)\})[^\s:"'\\{}]{4,}"#,
    ")"
);

// A line of shadow(5). Only its place tells a hash of the traditional kind from a name. The hash has 13 characters or
// more, and so addresses with colons don't match.
form!(
    SHADOW,
    r#"(?m)(?:^[-+ ]?|\\n[-+ ]?|["'\s:])[A-Za-z_][A-Za-z0-9_.-]{0,31}\$?:!{0,2}(?P<s>[^:!*\s\\"'][^:\s\\"']{12,})"#,
    ":[0-9]*:[0-9]*:[0-9]*:[0-9]*:[0-9]*:[0-9]*:"
);

form!(
    AUTHORIZATION,
    r#"(?i-u:authorization)(?:\\*["'])?\]?[ \t]*[:=][ \t]*(?:\\*["'])?"#,
    r#"(?i-u:bearer|basic|token|negotiate|ntlm|apikey|key|splunk)[ \t]+(?P<s>[^\s"'\\]+)"#
);
form!(BEARER, r"(?:(?-u:\b)|\\[nrt])(?i-u:bearer)[ \t]+(?P<s>[A-Za-z0-9._~+/-]{8,}=*)");

form!(URL, r#"://[^\s/?#@:"'<>\\]*:(?P<s>[^\s/?#"'<>\\]+)@"#);

form!(OPENSSL, r#"(?-u:\b)pass(?:in|out)?[ \t]+["']?pass:(?P<s>[^\s"'\\]+)"#);
form!(
    NETRC,
    r#"(?:(?-u:\b)|\\[nrt])(?i-u:login)[ \t\n+-]+[^\s"']+[ \t\n+-]+password[ \t\n+-]+(?P<s>[^\s"'\\]+)"#
);
form!(
    SQL,
    r#"(?:(?-u:\b)|\\[nrt])(?i-u:(?:identified[ \t]+(?:with[ \t]+[!-~]+[ \t]+)?(?:by|as)(?:[ \t]+password)?|password))[ \t]+'(?P<s>[^'\n]+)'"#
);
form!(
    SQL_QUOTED,
    r#"(?:(?-u:\b)|\\[nrt])(?i-u:identified[ \t]+(?:with[ \t]+[!-~]+[ \t]+)?(?:by|as)(?:[ \t]+password)?)[ \t]+\\*"?(?P<s>[^\s'"\\;,)]+)"#
);
form!(SQL_CALL, r#"(?:(?-u:\b)|\\[nrt])(?i-u:password)\([ \t]*\\*['"](?P<s>[^'"\n\\]+)"#);
// A session cookie is as good as a password while it lasts. In `Set-Cookie`, the attributes after `;` are not secret.
form!(
    COOKIE,
    r#"(?:(?m:^)-?|[^A-Za-z0-9-]|\\[nrt])(?i-u:cookie)[ \t]*:[ \t]*(?P<s>[^\s"'\\=;]+=[^"'\n\r\\]+)"#
);
form!(SET_COOKIE, r#"(?:(?-u:\b)|\\[nrt])(?i-u:set-cookie)[ \t]*:[ \t]*[^\s"'\\=;]+=(?P<s>[^\s"';\\]+)"#);
form!(
    CHPASSWD,
    r#"(?i-u:echo|printf)[ \t]+(?:-[en]+[ \t]+)?\\*["']?(?:(?:[a-z_][a-z0-9_-]*:)?%s(?:\\+n)?\\*["']?[ \t]+\\*["']?)?(?:[a-z_][a-z0-9_-]*:)?(?P<s>[^\s"'|\\]+)(?:\\+n)?\\*["']?[ \t]*\|[ \t]*(?:sudo[ \t]+(?:-[a-zA-Z]+[ \t]+)*)?"#,
    r#"(?:chpasswd|passwd[ \t][^\n|;&]*--stdin|sudo[ \t]+-S|cryptsetup|kinit|su(?-u:\b)|gpg[ \t][^\n|;&]*--passphrase-fd|openssl[ \t][^\n|;&]*stdin|[a-z]+[ \t]+login[ \t][^\n|;&]*--password-stdin|smbpasswd|vncpasswd|mkpasswd)"#
);
// A here-string of a program that reads a password.
form!(
    HERE_STRING,
    r#"(?:chpasswd|passwd|sudo|su|cryptsetup|kinit|gpg|openssl|smbpasswd|vncpasswd|mkpasswd|login)(?-u:\b)[^\n|;&<]{0,200}<<<[ \t]*\\*["']?(?:[a-z_][a-z0-9_-]*:)?(?P<s>[^\s"'|\\]+)"#
);
form!(PASS_COMMAND, r#"(?i-u:passcommand)[ \t]*=[ \t]*\\*["']?(?:echo|printf)[ \t]+(?P<s>[^\s"'\\]+)"#);
form!(LITERAL, r#"--from-literal[= \t]+["']?[^\s="']+=(?P<s>[^\s"'\\]+)"#);

// A token in place of a URL's account, as Sentry and GitHub have it.
form!(URL_TOKEN, r"://(?P<s>[A-Za-z0-9_-]{13,})@");
// A line of Postfix's map of passwords: `[mail.example]:587 account:password`.
form!(POSTFIX, r#"\]:(?:25|465|587|2525)[ \t]+[^\s:"']+:(?P<s>[^\s"'\\]+)"#);
form!(ORACLE, r#"jdbc:oracle:[a-z0-9]+:[^\s/@:"']+/(?P<s>[^\s@"'\\]+)@"#);
// A rule of an account in Redis begins with `>` for its password.
form!(
    REDIS,
    r#"(?-u:\b)(?i-u:user|setuser)[ \t]+[^\s>]+(?:[ \t]+[a-z~&+*@-][^\s>]*)*[ \t]+>(?P<s>[^\s"'\\]+)"#
);
form!(DIGEST, r#"(?i-u:digest)[ \t][^\n]*?(?-u:\b)response=\\*"(?P<s>[^"\\\n]+)"#);
form!(SENDMAIL, r#"(?i-u:authinfo):[^\n]*?"P:(?P<s>[^"\\\n]+)"#);
// A line of chap-secrets(5).
form!(CHAP, r#"\\*"[ \t]+(?:\*|\\*"[^"\\\n]*\\*")[ \t]+\\*"(?P<s>[^"\\\n]+)\\*"[ \t]+\*"#);
form!(
    SET_PASSWORD,
    r#"(?i-u:set[ \t]+password[ \t]+for)[ \t]+[^\s=]{1,128}[ \t]*=[ \t]*\\*['"](?P<s>[^'"\\\n]+)"#
);
form!(
    SECRET_ID,
    r#"(?i-u:secret_?id)\\*"?[ \t]*[:=][ \t]*\\*"?(?P<s>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"#
);

form!(PSK, r#"(?:(?-u:\b)|\\[nrt])PSK[ \t]+\\*"(?P<s>[^"\\\n]+)"#);
form!(GENERATED, r#"(?i-u:password is generated for )\S+: (?P<s>[^\s"\\]+)"#);

fn always(_: &str, _: &str) -> bool {
    true
}

/// Says whether a text isn't a plain word. In prose, a plain word follows `identified by`.
fn looks_secret(text: &str) -> bool {
    looks_random(text) || text.bytes().any(|byte| !byte.is_ascii_alphanumeric())
}

/// Says whether a text holds digits or inner capitals, which words of prose don't.
pub(super) fn looks_random(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
        || text.bytes().skip(1).any(|byte| byte.is_ascii_uppercase())
            && text.bytes().any(|byte| byte.is_ascii_lowercase())
}

pub(super) const ALL: &[Form] = &[
    Form { hints: TOKENS, pattern: &TOKEN, is_secret: always },
    Form { hints: &["hooks.slack.com", "api/webhooks"], pattern: &HOOK, is_secret: always },
    Form { hints: &["sig=", "signature="], pattern: &SIGNATURE, is_secret: always },
    Form { hints: HASHES, pattern: &HASH, is_secret: always },
    Form { hints: &[":::", ":99999:"], pattern: &SHADOW, is_secret: always },
    Form { hints: &["authorization"], pattern: &AUTHORIZATION, is_secret: always },
    Form { hints: &["bearer"], pattern: &BEARER, is_secret: |found, _| looks_random(found) },
    // In the name of a container image, the digest follows after `@` and the tag stands before it.
    Form {
        hints: &["://"],
        pattern: &URL,
        is_secret: |found, after| !is_no_secret(found) && !after.starts_with("@sha256:"),
    },
    Form { hints: &["pass:"], pattern: &OPENSSL, is_secret: |found, _| !is_no_secret(found) },
    Form { hints: &["login"], pattern: &NETRC, is_secret: always },
    Form { hints: &["identified", "password '", "password\t'"], pattern: &SQL, is_secret: always },
    Form {
        hints: &["identified"],
        pattern: &SQL_QUOTED,
        is_secret: |found, _| {
            !is_no_secret(found)
                && !["by", "as", "password", "the", "a"].contains(&found.to_ascii_lowercase().as_str())
                && looks_secret(found)
        },
    },
    Form {
        hints: &["password(", "password ("],
        pattern: &SQL_CALL,
        is_secret: |found, _| !is_no_secret(found),
    },
    Form { hints: &["set-cookie"], pattern: &SET_COOKIE, is_secret: always },
    Form { hints: &["cookie"], pattern: &COOKIE, is_secret: always },
    Form { hints: &["echo", "printf"], pattern: &CHPASSWD, is_secret: |found, _| !is_no_secret(found) },
    Form { hints: &["psk"], pattern: &PSK, is_secret: always },
    Form { hints: HERE_STRINGS, pattern: &HERE_STRING, is_secret: |found, _| !is_no_secret(found) },
    Form { hints: &["passcommand"], pattern: &PASS_COMMAND, is_secret: |found, _| !is_no_secret(found) },
    Form { hints: &["--from-literal"], pattern: &LITERAL, is_secret: |found, _| !is_no_secret(found) },
    Form { hints: &["://"], pattern: &URL_TOKEN, is_secret: |found, _| is_generated(found) },
    Form {
        hints: &["]:25", "]:465", "]:587"],
        pattern: &POSTFIX,
        is_secret: |found, _| !is_no_secret(found),
    },
    Form { hints: &["jdbc:oracle"], pattern: &ORACLE, is_secret: |found, _| !is_no_secret(found) },
    Form { hints: &["setuser", "on >", "off >"], pattern: &REDIS, is_secret: always },
    Form { hints: &["response="], pattern: &DIGEST, is_secret: |found, _| looks_random(found) },
    Form { hints: &["authinfo:"], pattern: &SENDMAIL, is_secret: always },
    Form { hints: &["\" *", "\"\t*", "\" \t*"], pattern: &CHAP, is_secret: |found, _| !is_no_secret(found) },
    Form { hints: &["set password for"], pattern: &SET_PASSWORD, is_secret: |found, _| !is_no_secret(found) },
    Form { hints: &["secretid", "secret_id"], pattern: &SECRET_ID, is_secret: always },
    Form { hints: &["password is generated"], pattern: &GENERATED, is_secret: always },
];

impl Form {
    /// Finds all secrets of this form. None if the pattern can't be compiled, which a test rules out.
    pub(super) fn find(&self, text: &str) -> Option<Vec<Range<usize>>> {
        let pattern = self.pattern.as_ref()?;
        let mut secrets: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        // The text is cut here, because after a secret is hidden, the text behind it begins a new word.
        while let Some(found) = pattern.captures(&text[at..]) {
            let whole = found.get(0)?;
            let Some(part) = found.name("s") else {
                at += whole.end();
                continue;
            };
            let secret = at + part.start()..at + part.end();
            // A secret inside the last one is skipped. Without this, repeated text would be read again for each of its
            // parts.
            if let Some(last) = secrets.last().filter(|last| secret.end <= last.end) {
                at = last.end;
                continue;
            }
            // The next secret may begin inside this one.
            at = if part.start() > whole.start() { secret.start } else { secret.end };
            let value = &text[secret.clone()];
            if value != REDACTED && (self.is_secret)(value, &text[secret.end..]) {
                secrets.push(secret);
            }
        }
        Some(secrets)
    }
}
