use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

struct Home(tempfile::TempDir);

impl Home {
    fn new(config: &str) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir(home.0.path().join(".ssh")).unwrap();
        home.with("config", config)
    }

    fn with(self, name: &str, text: &str) -> Self {
        let path = self.0.path().join(".ssh").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        self
    }

    fn read(&self, alias: &str) -> Result<Settings, Problem> {
        let uid = rustix::process::geteuid().as_raw();
        let local_user =
            LocalUser { name: "me".into(), uid, home: self.0.path().into(), variables: Vec::new() };
        let ssh = self.0.path().join(".ssh");
        read(&ssh.join("config"), &ssh.join("system"), alias, &SshOptions::default(), &local_user)
    }

    fn values(&self, alias: &str, keyword: &'static str) -> Vec<String> {
        self.read(alias).unwrap().all(keyword).map(|setting| setting.value.to_owned()).collect()
    }
}

#[test]
fn the_first_value_holds_and_identities_add_up() {
    let home = Home::new(
        "User first\nIdentityFile ~/a\n\
         Host web\n  User=second\n  IdentityFile ~/b\n  Port 1022\n  UserKnownHostsFile /a /b\n\
         Host db\n  Port 5\n\
         Host *\n  Port 6\n  UserKnownHostsFile /c\n",
    )
    .with("system", "User third\nCompression yes\n");
    assert_eq!(home.values("web", "User"), ["first"]);
    assert_eq!(home.values("web", "Port"), ["1022"]);
    assert_eq!(home.values("db", "Port"), ["5"]);
    assert_eq!(home.values("other", "Port"), ["6"]);
    assert_eq!(home.values("web", "IdentityFile"), ["~/a", "~/b"]);
    assert_eq!(home.values("web", "UserKnownHostsFile"), ["/a", "/b"]);
    assert_eq!(home.values("web", "Compression"), ["yes"]);
    assert_eq!(home.values("web", "GlobalKnownHostsFile").len(), 2);
}

#[test]
fn files_are_included_where_they_are_named_and_say_nothing_of_other_hosts() {
    let home = Home::new(
        "Host web\n  Include conf.d/*.conf\n  User late\nHost other\n  Include conf.d/*.conf\nInclude none missing/*\n",
    )
    .with("conf.d/10-a.conf", "Port 10\nHost db\n User db\n")
    .with("conf.d/20-b.conf", "Port 20\nHostKeyAlias alias\n")
    .with("conf.d/.hidden.conf", "HostKeyAlias hidden\n");
    assert_eq!(home.values("web", "Port"), ["10"]);
    assert_eq!(home.values("web", "HostKeyAlias"), ["alias"]);
    // The block of the including file goes on.
    assert_eq!(home.values("web", "User"), ["late"]);
    assert_eq!(home.values("db", "User"), Vec::<String>::new());
    assert_eq!(home.values("db", "Port"), Vec::<String>::new());
}

#[test]
fn what_needs_a_whole_ssh_is_an_error_that_says_where() {
    for (config, why) in [
        ("Port 22\nMatch host web\n", "config:2: Match"),
        ("Match exec \"true\"\n", "config:1: Match"),
        ("Match all host web\n", "config:1: Match"),
        ("CanonicalizeHostname yes\n", "config:1: CanonicalizeHostname"),
        ("Ciphers -aes128-ctr\n", "config:1: ciphers"),
        ("Include ${HOME}/x\n", "config:1: tokens"),
        ("Include ~other/x\n", "config:1: ~other/x"),
        ("Unheard yes\n", "config:1: unheard isn't known"),
        ("Host a\n  Unheard yes\n", "config:2: unheard isn't known"),
        ("User a b\n", "config:1: user takes one value"),
        ("User\n", "config:1: user has no value"),
        ("Host\n", "config:1: host has no value"),
        ("User \"a\n", "config:1: a quote"),
        ("Include config\n", "too deeply"),
    ] {
        let problem = Home::new(config).read("web").unwrap_err();
        assert_eq!(problem.code, "SSH_CONFIG_INVALID", "{config}");
        assert!(problem.message.contains(why), "{config}: {}", problem.message);
        assert!(problem.remediation[0].contains("Install ssh"), "{config}");
    }
}

#[test]
fn what_is_to_be_ignored_and_what_changes_nothing_is_passed_over() {
    for config in [
        "IgnoreUnknown UseKeychain,Foo*\nUseKeychain yes\nFooBar x\n",
        "Match all\n",
        "CanonicalizeHostname no\n",
        "HostKeyAlgorithms +ssh-rsa\n",
        "HOST *\n  POST_QUANTUM\n# comment\n".replace("POST_QUANTUM", "port=22").as_str(),
        "ServerAliveInterval 30\nServerAliveCountMax 3\nAddKeysToAgent yes\n",
        "",
    ] {
        assert!(Home::new(config).read("web").is_ok(), "{config}");
    }
}

#[test]
fn a_file_that_others_can_write_to_is_refused() {
    let home = Home::new("Include more\n").with("more", "User a\n");
    for (file, mode, fine) in
        [("config", 0o644, true), ("config", 0o664, false), ("config", 0o646, false), ("more", 0o666, false)]
    {
        let path = home.0.path().join(".ssh").join(file);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        match home.read("web") {
            Ok(_) => assert!(fine, "{file} {mode:o}"),
            Err(problem) => {
                assert!(!fine && problem.message.contains("bad owner or permissions"), "{problem}")
            }
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(home.0.path().join(".ssh/more"), Some(65534), None).unwrap();
        assert!(home.read("web").unwrap_err().message.contains("bad owner"));
    }
}
