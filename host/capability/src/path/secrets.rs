//! The paths that hold secrets, each group with its reason.
//!
//! A list like this is never complete. It is the second protection, for globs such as `/etc/**`. The first one is that a
//! grant names what it needs.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Globs as in [`Glob`](super::Glob), and the reasons. A leading `/**/` finds the secret also in a backup, in a
/// snapshot, in a container's layer or behind `/proc/PID/root`. A directory that holds nothing else is listed beside
/// its content, because `grep -r` and `tar` take directories.
const SECRETS: &[(&str, &[&str])] = &[
    (
        "password hashes",
        &[
            "/**/etc/shadow",
            "/**/etc/shadow-",
            "/**/etc/gshadow",
            "/**/etc/gshadow-",
            "/**/etc/shadow~",
            "/**/etc/shadow.bak",
            "/**/etc/shadow.old",
            "/**/etc/shadow.orig",
            "/**/etc/gshadow~",
            "/**/etc/gshadow.bak",
            "/**/etc/gshadow.old",
            "/**/etc/gshadow.orig",
            "/**/etc/dovecot/passwd",
            "/**/etc/pgbouncer/userlist.txt",
            "/**/etc/security/opasswd",
            "/**/etc/security/opasswd.old",
            "/**/var/backups/*shadow.bak",
            "/**/etc/samba/smbpasswd",
            "/**/var/lib/samba/private",
            "/**/var/lib/samba/private/**",
            "/**/var/lib/sss/db/*",
            "/**/boot/grub/user.cfg",
            "/**/boot/grub2/user.cfg",
        ],
    ),
    (
        "a private key of this machine",
        &[
            "/**/etc/ssh/ssh_host_*_key",
            "/**/etc/dropbear/*_host_key",
            "/**/etc/ssl/private",
            "/**/etc/ssl/private/**",
            "/**/etc/pki/tls/private",
            "/**/etc/pki/tls/private/**",
            "/**/etc/pki/CA/private/**",
            "/**/etc/pki/consumer/key.pem",
            "/**/etc/pki/entitlement/*-key.pem",
            "/**/etc/letsencrypt/live/*/privkey*.pem",
            "/**/etc/letsencrypt/archive/*/privkey*.pem",
            "/**/etc/letsencrypt/keys/**",
            "/**/etc/letsencrypt/accounts/**",
            "/**/.acme.sh/**/*.key",
            "/**/etc/krb5.keytab",
            "/**/*.keytab",
            "/**/etc/kubernetes/pki/**/*.key",
            "/**/rndc.key",
            "/**/etc/bind/*.key",
            "/**/etc/dkimkeys",
            "/**/etc/dkimkeys/**",
            "/**/etc/opendkim/keys",
            "/**/etc/opendkim/keys/**",
        ],
    ),
    (
        "a private key of a person",
        &[
            "/**/.ssh/id_*",
            "/**/.ssh/identity",
            "/**/.ssh/*.pem",
            "/**/.ssh/*.key",
            "/**/.gnupg",
            "/**/.gnupg/**",
            "/**/.password-store",
            "/**/.password-store/**",
            "/**/.local/share/keyrings",
            "/**/.local/share/keyrings/**",
        ],
    ),
    (
        "the memory or the environment of a process, where passwords and keys lie open",
        &[
            "/**/proc/*/environ",
            "/**/proc/*/mem",
            "/**/proc/*/task/*/environ",
            "/**/proc/*/task/*/mem",
            "/**/proc/*/map_files/*",
            "/**/proc/kcore",
            "/**/proc/vmcore",
            "/**/dev/mem",
            "/**/dev/kmem",
            "/**/dev/port",
            "/**/var/lib/systemd/coredump/*",
            "/**/var/crash/**",
        ],
    ),
    (
        "another name for a file that a process has open, or for the whole tree it sees",
        &[
            "/**/proc/*/fd/*",
            "/**/proc/*/root/**",
            "/**/proc/*/cwd/**",
            "/**/proc/*/task/*/fd/*",
            "/**/proc/*/task/*/root/**",
            "/**/proc/*/task/*/cwd/**",
        ],
    ),
    (
        "a raw disk, with every secret on it; a disk hole names one",
        &[
            "/dev/sd*",
            "/dev/vd*",
            "/dev/xvd*",
            "/dev/hd*",
            "/dev/nvme*",
            "/dev/mmcblk*",
            "/dev/dm-*",
            "/dev/md*",
            "/dev/md/*",
            "/dev/mapper/*",
            "/dev/disk/**",
            "/dev/block/*",
        ],
    ),
    (
        "keys to a network",
        &[
            "/**/NetworkManager/system-connections",
            "/**/NetworkManager/system-connections/**",
            "/**/etc/wireguard",
            "/**/etc/wireguard/**",
            "/**/etc/wpa_supplicant/*.conf",
            "/**/etc/wpa_supplicant.conf",
            "/**/var/lib/iwd/**",
            "/**/etc/openvpn/**/*.key",
            "/**/etc/openvpn/**/auth.txt",
            "/**/etc/tinc/**/*.priv",
            "/**/etc/ipsec.secrets",
            "/**/etc/ipsec.d/private/**",
            "/**/etc/swanctl/private/**",
            "/**/etc/ppp/chap-secrets",
            "/**/etc/ppp/pap-secrets",
            "/**/etc/chrony.keys",
            "/**/etc/chrony/chrony.keys",
            "/**/etc/ntp.keys",
            "/**/var/lib/snmp/snmpd.conf",
            "/**/var/lib/tailscale/tailscaled.state",
        ],
    ),
    (
        "keys to encrypted disks and to systemd's credentials",
        &[
            "/**/etc/cryptsetup-keys.d",
            "/**/etc/cryptsetup-keys.d/**",
            "/**/crypto_keyfile.bin",
            "/**/etc/keys",
            "/**/etc/keys/**",
            "/**/etc/luks",
            "/**/etc/luks/**",
            "/**/etc/luks-keys",
            "/**/etc/luks-keys/**",
            "/**/var/lib/systemd/credential.secret",
            "/**/run/credentials/**",
            "/**/etc/credstore/**",
            "/**/etc/credstore.encrypted/**",
        ],
    ),
    (
        "a password or a token for another service",
        &[
            "/**/.docker/config.json",
            "/**/containers/auth.json",
            "/**/.kube/config",
            "/**/etc/kubernetes/*.conf",
            "/**/etc/rancher/k3s/k3s.yaml",
            "/**/etc/rancher/rke2/rke2.yaml",
            "/**/etc/rancher/node/password",
            "/**/var/lib/rancher/*/server/token",
            "/**/var/lib/rancher/*/server/*-token",
            "/**/var/lib/rancher/*/server/cred/**",
            "/**/var/lib/rancher/*/server/tls/**",
            "/**/.pgpass",
            "/**/.my.cnf",
            "/**/.mylogin.cnf",
            "/**/etc/mysql/debian.cnf",
            "/**/.netrc",
            "/**/.git-credentials",
            "/**/.config/git/credentials",
            "/**/.config/gh/hosts.yml",
            "/**/.aws/credentials",
            "/**/.azure/**",
            "/**/.config/gcloud/**",
            "/**/.npmrc",
            "/**/.pypirc",
            "/**/.cargo/credentials",
            "/**/.cargo/credentials.toml",
            "/**/.vault-token",
            "/**/.smbcredentials",
            "/**/etc/apt/auth.conf",
            "/**/etc/apt/auth.conf.d/*",
            "/**/etc/postfix/sasl_passwd*",
            "/**/etc/exim4/passwd.client",
            "/**/etc/dovecot/private/**",
            "/**/etc/linux-sysadmin/backup/restic-password",
            "/**/etc/ldap.secret",
            "/**/etc/libnss-ldap.secret",
            "/**/etc/pam_ldap.secret",
            "/**/etc/sssd/sssd.conf",
            "/**/etc/sssd/conf.d/*",
            "/**/var/lib/sss/secrets/**",
            "/**/tmp/krb5cc_*",
            "/**/var/lib/cloud/instances/*/user-data.txt*",
            "/**/run/cloud-init/instance-data-sensitive.json",
        ],
    ),
    (
        "the password or the keys of a backup",
        &[
            "/**/etc/restic/*password*",
            "/**/etc/restic/*passwd*",
            "/**/etc/restic/env",
            "/**/etc/restic/*.env",
            "/**/.config/restic/*",
            "/**/.restic-password",
            "/**/.restic_password",
            "/**/etc/resticprofile/*password*",
            "/**/etc/resticprofile/*.key",
            "/**/.config/borg/keys",
            "/**/.config/borg/keys/**",
            "/**/.config/borgmatic/**",
            "/**/etc/borgmatic/config.yaml",
            "/**/etc/borgmatic.d/*",
            "/**/.config/kopia/**",
            "/**/.duply/**",
            "/**/etc/duply/*/conf",
            "/**/etc/bacula/**",
            "/**/etc/bareos/**",
            "/**/.config/rclone",
            "/**/.config/rclone/**",
            "/**/etc/rclone.conf",
            "/**/etc/rclone/rclone.conf",
            "/**/.b2_account_info",
            "/**/.config/b2/account_info",
            "/**/.s3cfg",
            "/**/.boto",
            "/**/.mc/config.json",
            "/**/.passwd-s3fs",
            "/**/etc/passwd-s3fs",
        ],
    ),
    (
        "keys of a tunnel or an overlay network",
        &[
            "/**/etc/amnezia/**",
            "/**/.config/wireguard/**",
            "/**/etc/nebula/*.key",
            "/**/etc/netbird/config.json",
            "/**/var/lib/netbird/**",
            "/**/var/lib/headscale/*.key",
            "/**/.cloudflared/*",
            "/**/etc/cloudflared/*.json",
            "/**/etc/cloudflared/cert.pem",
            "/**/.config/ngrok/ngrok.yml",
            "/**/.frp/**",
        ],
    ),
    (
        "keys of configuration management or of a build service",
        &[
            "/**/etc/puppetlabs/puppet/ssl/private_keys/**",
            "/**/etc/puppetlabs/puppet/eyaml/private_key*",
            "/**/etc/chef/*.pem",
            "/**/etc/salt/pki/**/*.pem",
            "/**/.config/sops/age/keys.txt",
            "/**/.terraform.d/credentials.tfrc.json",
            "/**/.terraformrc",
            "/**/etc/gitlab-runner/config.toml",
            "/**/.gitlab-runner/config.toml",
            "/**/actions-runner/.credentials*",
            "/**/.composer/auth.json",
            "/**/.config/composer/auth.json",
            "/**/.m2/settings.xml",
            "/**/.m2/settings-security.xml",
            "/**/.gem/credentials",
            "/**/.yarnrc.yml",
            "/**/.cache/huggingface/token",
        ],
    ),
    (
        "a password of an account for mail, names or a cloud",
        &[
            "/**/.msmtprc",
            "/**/etc/msmtprc",
            "/**/.config/msmtp/config",
            "/**/.mbsyncrc",
            "/**/.offlineimaprc",
            "/**/.fetchmailrc",
            "/**/etc/fetchmailrc",
            "/**/etc/ssmtp/ssmtp.conf",
            "/**/etc/nullmailer/remotes",
            "/**/etc/ddclient.conf",
            "/**/etc/ddclient/ddclient.conf",
            "/**/.secrets",
            "/**/.secrets/**",
            "/**/.acme.sh/account.conf",
            "/**/.lego/**",
            "/**/.config/hcloud/cli.toml",
            "/**/.config/doctl/config.yaml",
            "/**/.config/openstack/clouds.yaml",
            "/**/etc/openstack/clouds.yaml",
            "/**/.oci/*",
            "/**/.fly/config.yml",
            "/**/.influxdbv2/configs",
            "/**/.mozilla/firefox/*/logins.json",
            "/**/.mozilla/firefox/*/key4.db",
            "/**/.local/share/kwalletd/**",
        ],
    ),
    (
        "what was typed at a terminal, passwords among it",
        &[
            "/**/.bash_history",
            "/**/.zsh_history",
            "/**/.*_history",
            "/**/var/log/sudo-io/**",
            "/**/var/log/tlog/**",
            "/**/var/log/installer/cdebconf/**",
        ],
    ),
];

/// The reason of [`NAMED`].
const BY_ITS_NAME: &str = "a password, a token or a key, as its name says";

/// Names that people and programs give to files of secrets in any directory. A path with one of them that is
/// [public](is_public) holds no secret. An expression for sudoers can't leave them out, because every wildcard covers some
/// of them; the host refuses them when it checks a path.
const NAMED: &[&str] = &[
    "/**/*.psk",
    "/**/*.pass",
    "/**/*.secret",
    "/**/*.keyring",
    "/**/*.htpasswd",
    "/**/.htpasswd*",
    "/**/*secrets*",
    "/**/secrets/**",
    "/**/*authkey*",
    "/**/*vault_pass*",
    "/**/*vault-pass*",
    "/**/master.key",
    "/**/credentials/*.key",
    "/**/munge.key",
    "/**/hs_ed25519_secret_key",
    "/**/.erlang.cookie",
    "/**/passwords.txt",
    "/**/passwords.dat",
    "/**/.histfile",
    "/**/*.kdbx",
    "/**/*.p12",
    "/**/*.pfx",
    "/**/acme.json",
    "/**/.rclone.conf",
    "/**/terraform.tfstate",
    "/**/terraform.tfstate.backup",
];

/// The endings of source code, documentation and public keys.
const PUBLIC: [&str; 12] = ["c", "css", "go", "h", "html", "js", "md", "mjs", "pub", "py", "rs", "ts"];

/// Whether a path with a name of [`NAMED`] is something that a package brings, source code or documentation.
fn is_public(path: &[&str]) -> bool {
    let of_package = matches!(path, ["usr", second, ..] if *second != "local");
    let ending = path.last().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
    of_package || ending.is_some_and(|ending| PUBLIC.contains(&ending))
}

/// The reason why nobody but the host may access its copies while a plan runs: any file may be among them, under a name that
/// doesn't tell the directory that it is from.
pub(super) const STAGED: &str = "a copy that the host keeps while a plan runs";

/// The tables as components, with the reason for each. It is prepared once, because a listing of `/proc` asks for every
/// process.
static COMPONENTS: LazyLock<Vec<(Vec<&str>, &str)>> = LazyLock::new(|| {
    let components = |glob: &'static str| {
        let mut components: Vec<&str> = super::components_of(glob).collect();
        if components.last() == Some(&"**") {
            components.push("*");
        }
        components
    };
    let tables = SECRETS.iter().chain(&[(BY_ITS_NAME, NAMED)]);
    tables.flat_map(|(reason, globs)| globs.iter().map(move |glob| (components(glob), *reason))).collect()
});

/// The numbers of the tables' globs by a name that each path of the glob has: its last component without a wildcard. A path
/// is compared with the few globs whose names it has, because a call may read hundreds of files.
static BY_NAME: LazyLock<HashMap<&str, Vec<usize>>> = LazyLock::new(|| {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, (components, _)) in COMPONENTS.iter().enumerate() {
        let name = components.iter().rev().find(|component| !component.contains('*'));
        by_name.entry(name.copied().unwrap_or(ANY_NAME)).or_default().push(number);
    }
    by_name
});

/// The name in [`BY_NAME`] of the globs that have a wildcard in each component. It is looked up for every path.
const ANY_NAME: &str = "*";

/// Every glob as components.
pub(super) fn globs() -> impl Iterator<Item = (&'static [&'static str], &'static str)> {
    COMPONENTS.iter().map(|(components, reason)| (components.as_slice(), *reason))
}

/// The globs that an expression for sudoers leaves out: all but [`NAMED`].
pub(super) fn globs_for_sudoers() -> impl Iterator<Item = (&'static [&'static str], &'static str)> {
    globs().filter(|(_, reason)| *reason != BY_ITS_NAME)
}

/// The reason why a path, given by its components, is secret.
pub(super) fn reason(path: &[&str]) -> Option<&'static str> {
    if path.iter().any(|name| super::is_staging(name)) {
        return Some(STAGED);
    }
    // Public keys lie beside the private ones: id_ed25519.pub, id_ed25519-cert.pub.
    if let [.., ".ssh", name] = path
        && name.ends_with(".pub")
    {
        return None;
    }
    let names = path.iter().chain([&ANY_NAME]);
    let numbers = names.filter_map(|name| BY_NAME.get(*name)).flatten();
    let covering = numbers.filter(|number| super::covers(&COMPONENTS[**number].0, path, super::covers_name));
    let reason = covering.min().map(|number| COMPONENTS[*number].1)?;
    (reason != BY_ITS_NAME || !is_public(path)).then_some(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_as_in_the_whole_table() {
        let in_table = |path: &[&str]| {
            COMPONENTS.iter().find(|(glob, _)| super::super::covers(glob, path, super::super::covers_name))
        };
        // Each glob with names in place of its wildcards, also with another beginning, end or middle.
        for (glob, _) in COMPONENTS.iter() {
            for any in ["x", "etc", ".ssh"] {
                let path: Vec<String> =
                    glob.iter().map(|part| part.replace("**", any).replace('*', any)).collect();
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                let longer = [&path[..], &["x"][..]].concat();
                for path in [&path[..], &path[1..], &path[..path.len() - 1], &longer[..]] {
                    let is_public = matches!(path, [.., ".ssh", name] if name.ends_with(".pub"));
                    let expected = in_table(path)
                        .map(|(_, reason)| *reason)
                        .filter(|reason| !is_public && (*reason != BY_ITS_NAME || !super::is_public(path)));
                    assert_eq!(reason(path), expected, "{path:?}");
                }
            }
        }
        assert!(BY_NAME[ANY_NAME].len() < 16);
    }

    #[test]
    fn every_entry_is_a_glob() {
        for glob in SECRETS.iter().flat_map(|(_, globs)| *globs).chain(NAMED) {
            assert!(super::super::Glob::parse(glob).is_ok(), "{glob}");
        }
    }
}
