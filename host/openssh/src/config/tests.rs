use std::fs;
use std::io::{BufRead, BufReader};

use super::*;
use crate::known_hosts::HostNames;

const WEB: &str = include_str!("fixtures/web.txt");
const DEFAULTS: &str = include_str!("fixtures/defaults.txt");

fn root() -> LocalUser {
    let variables = vec![
        ("HOME", "/root".to_owned()),
        ("USER", "root".to_owned()),
        ("SSH_AUTH_SOCK", "/run/a".to_owned()),
    ];
    LocalUser { name: "root".into(), uid: 0, home: "/root".into(), variables }
}

/// Reads the printed lines, with those of `more` before them.
fn printed(more: &[(&str, &str)], local_user: &LocalUser) -> Result<HostConfig, Problem> {
    let lines: String = more.iter().map(|(keyword, value)| format!("{keyword} {value}\n")).collect();
    let rest = DEFAULTS.lines().filter(|line| {
        let keyword = line.split(' ').next().unwrap();
        !more.iter().any(|(set, _)| *set == keyword)
    });
    let text = lines + &rest.map(|line| format!("{line}\n")).collect::<String>();
    host_config("web", &ssh_output::parse(&text)?, &ssh_output::parse(DEFAULTS)?, local_user)
}

#[test]
fn what_ssh_prints_is_what_holds() {
    let config =
        host_config("web", &ssh_output::parse(WEB).unwrap(), &ssh_output::parse(DEFAULTS).unwrap(), &root())
            .unwrap();
    let HostConfig { host_key_algorithms, warnings, .. } = &config;
    let algorithms = host_key_algorithms.clone().unwrap();
    assert!(
        algorithms.contains(&"rsa-sha2-512".to_owned())
            && !algorithms.iter().any(|name| name.starts_with("ecdsa"))
    );
    let said: Vec<_> = warnings.iter().filter_map(|warning| warning.split(' ').next()).collect();
    assert_eq!(said, ["StrictHostKeyChecking", "Compression", "LocalForward", "SetEnv"]);
    let expected = HostConfig {
        alias: "web".into(),
        hostname: "web.example.com".into(),
        port: 2222,
        user: "ada".into(),
        identity_files: vec![
            "/root/.ssh/web.example.com-ada-%-web".into(),
            "/root/with space/0".into(),
            "/root/root".into(),
        ],
        certificate_files: vec!["/root/.ssh/root-cert.pub".into()],
        identities_only: true,
        agent: Some("/root/agent.root".into()),
        proxy: Proxy::Command(
            ["nc", "-x", "proxy.example.com:1080", "web.example.com", "2222"].map(str::to_owned).into(),
        ),
        host_key_alias: Some("the-web".into()),
        user_known_hosts: vec!["/root/.ssh/known_web.example.com".into(), "/var/lib/known".into()],
        global_known_hosts: vec!["/etc/ssh/ssh_known_hosts".into(), "/etc/ssh/ssh_known_hosts2".into()],
        strict: Strict::Ask,
        hash_known_hosts: false,
        connect_timeout: Some(Duration::from_secs(90)),
        address_family: Some(Family::Inet),
        bind_address: Some("10.0.0.9".into()),
        host_key_algorithms: host_key_algorithms.clone(),
        kex: Some(vec!["curve25519-sha256".into()]),
        ciphers: None,
        macs: None,
        warnings: warnings.clone(),
    };
    assert_eq!(config, expected);
}

#[test]
fn without_a_configuration_nothing_is_said_and_no_list_is_set() {
    let home = tempfile::tempdir().unwrap();
    let local_user = LocalUser { home: home.path().into(), ..root() };
    let config = printed(&[], &local_user).unwrap();
    assert_eq!((&*config.hostname, config.port, &*config.user), ("web", 22, "root"));
    assert_eq!((config.strict, config.proxy, config.connect_timeout), (Strict::Ask, Proxy::None, None));
    assert_eq!(
        (config.host_key_algorithms, config.kex, config.ciphers, config.macs),
        (None, None, None, None)
    );
    assert_eq!(config.agent, Some("/run/a".into()));
    assert_eq!(config.warnings, Vec::<String>::new());
}

#[test]
fn of_the_usual_identities_those_count_that_are_there_and_their_certificates() {
    let home = tempfile::tempdir().unwrap();
    let local_user = LocalUser { home: home.path().into(), ..root() };
    let ssh = home.path().join(".ssh");
    fs::create_dir(&ssh).unwrap();
    assert_eq!(printed(&[], &local_user).unwrap().identity_files, Vec::<PathBuf>::new());
    // Its private part may be in the agent only.
    for name in ["id_ed25519", "id_rsa.pub", "id_ed25519-cert.pub", "id_ecdsa-cert.pub"] {
        fs::write(ssh.join(name), "").unwrap();
    }
    let config = printed(&[], &local_user).unwrap();
    assert_eq!(config.identity_files, [ssh.join("id_rsa"), ssh.join("id_ed25519")]);
    assert_eq!(config.certificate_files, [ssh.join("id_ed25519-cert.pub")]);
    // One that is set is kept though it is missing.
    let set = printed(&[("identityfile", "~/.ssh/set")], &local_user).unwrap();
    assert_eq!(set.identity_files, [ssh.join("set")]);
    let none = printed(&[("identityfile", "none"), ("certificatefile", "none")], &local_user).unwrap();
    assert!(none.identity_files.is_empty() && none.certificate_files.is_empty());
    let relative = printed(&[("identityfile", "id")], &local_user).unwrap();
    assert!(relative.identity_files.is_empty() && relative.warnings[0].contains("not absolute"));
}

#[test]
fn values_are_what_they_say_or_an_error() {
    let holds = |keyword, value| printed(&[(keyword, value)], &root()).unwrap();
    for (value, expected) in [
        ("ask", Strict::Ask),
        ("true", Strict::Yes),
        ("yes", Strict::Yes),
        ("accept-new", Strict::AcceptNew),
        ("false", Strict::Ask),
        ("no", Strict::Ask),
        ("off", Strict::Ask),
    ] {
        assert_eq!(holds("stricthostkeychecking", value).strict, expected, "{value}");
    }
    for (value, expected) in [
        ("none", None),
        ("/run/b", Some("/run/b")),
        ("SSH_AUTH_SOCK", Some("/run/a")),
        ("$SSH_AUTH_SOCK", Some("/run/a")),
    ] {
        assert_eq!(holds("identityagent", value).agent, expected.map(PathBuf::from), "{value}");
    }
    for (value, expected) in [("any", None), ("inet", Some(Family::Inet)), ("inet6", Some(Family::Inet6))] {
        assert_eq!(holds("addressfamily", value).address_family, expected, "{value}");
    }
    assert_eq!(holds("userknownhostsfile", "none").user_known_hosts, Vec::<PathBuf>::new());
    assert_eq!(holds("userknownhostsfile", "/a /b").user_known_hosts, [Path::new("/a"), Path::new("/b")]);
    for (keyword, value) in [
        ("stricthostkeychecking", "maybe"),
        ("identityagent", "$NOT_SET"),
        ("addressfamily", "inet7"),
        ("userknownhostsfile", "/a/sp ace"),
        ("userknownhostsfile", "known_hosts"),
        ("globalknownhostsfile", "~/known_hosts"),
        ("port", "0"),
        ("port", "ssh"),
        ("user", "-oProxyCommand=x"),
        ("user", "a b"),
        ("hostname", "-oProxyCommand=x"),
        ("hostname", "a;id"),
        ("hostname", "a b"),
        ("connecttimeout", "soon"),
        ("hashknownhosts", "maybe"),
        ("hostkeyalias", "*"),
        ("hostkeyalias", "a b"),
        ("hostkeyalias", "a,b"),
        ("hostkeyalias", "|1|a|b"),
        ("revokedhostkeys", "/etc/ssh/revoked"),
        ("identityfile", "~/%Z"),
        ("identityfile", "~/${NOT_SET}"),
        ("identityfile", "~/${HOME"),
        ("identityfile", "~no-such-account/id"),
    ] {
        let problem = printed(&[(keyword, value)], &root()).unwrap_err();
        assert_eq!(problem.code, "SSH_CONFIG_INVALID", "{keyword} {value}");
    }
    assert_eq!(ssh_output::parse("host web\n").unwrap_err().code, "SSH_CONFIG_INVALID");
}

#[test]
fn tokens_stand_for_what_ssh_has_them_stand_for() {
    let local_user = root();
    let path = |value: &str, more: &[(&str, &str)]| {
        let mut set =
            vec![("identityfile", value), ("user", "ada"), ("hostname", "web.example.com"), ("port", "2222")];
        set.extend_from_slice(more);
        printed(&set, &local_user).map(|config| config.identity_files[0].display().to_string())
    };
    for (value, expected) in [
        ("~/id", "/root/id"),
        ("~root/id", "/root/id"),
        ("/x/~/id", "/x/~/id"),
        ("%d/%h/%n/%p/%r/%u/%i/%k", "/root/web.example.com/web/2222/ada/root/0/web"),
        ("/%%h", "/%h"),
        ("${HOME}/${USER}", "/root/root"),
        ("/a$b", "/a$b"),
        ("/%j", "/"),
    ] {
        assert_eq!(path(value, &[]).unwrap(), expected, "{value}");
    }
    assert_eq!(path("/%k", &[("hostkeyalias", "%h-Alias")]).unwrap(), "/%h-alias");
    assert_eq!(path("/%j", &[("proxyjump", "a,b")]).unwrap(), "/a,b");
    assert!(path("/%C", &[("proxyjump", "a")]).unwrap_err().message.contains("%C"));
    assert_eq!(path("/%C", &[]).unwrap().len(), 41);
}

#[test]
fn what_is_given_is_checked_before_anything_is_run() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let check = |options: SshOptions| check(&options, &root());
    assert!(check(SshOptions::default()).is_ok());
    assert!(check(SshOptions { identity_file: Some(file.path().into()), ..SshOptions::default() }).is_ok());
    for options in [
        SshOptions { port: Some(0), ..SshOptions::default() },
        SshOptions { user: Some("-oProxyCommand=x".into()), ..SshOptions::default() },
        SshOptions { user: Some(String::new()), ..SshOptions::default() },
        SshOptions { identity_file: Some("id".into()), ..SshOptions::default() },
        SshOptions { identity_file: Some("-oProxyCommand=x".into()), ..SshOptions::default() },
        SshOptions { identity_file: Some("/no/such/file".into()), ..SshOptions::default() },
        SshOptions { identity_file: Some("/".into()), ..SshOptions::default() },
    ] {
        assert_eq!(check(options.clone()).unwrap_err().code, "SSH_CONFIG_INVALID", "{options:?}");
    }
}

#[tokio::test]
async fn an_alias_that_is_none_reaches_no_program() {
    for alias in ["-oProxyCommand=touch /tmp/x", "a b", "root@web", ""] {
        assert_eq!(resolve(alias, &SshOptions::default()).await.unwrap_err().code, "SSH_CONFIG_INVALID");
    }
}

fn ssh() -> Option<PathBuf> {
    let ssh = Programs::default().find("ssh").ok();
    if ssh.is_none() {
        eprintln!("skipped: there is no ssh to compare with");
    }
    ssh
}

#[tokio::test]
async fn what_ssh_refuses_is_said_as_ssh_says_it() {
    let Some(ssh) = ssh() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config");
    fs::write(&file, "Unheard yes\n").unwrap();
    let extra_args = ["-F", file.to_str().unwrap()];
    let problem =
        by_ssh(&ssh, &extra_args, "web", &SshOptions::default(), &LocalUser::current()).await.unwrap_err();
    assert_eq!(problem.code, "SSH_CONFIG_INVALID");
    assert!(problem.message.contains("line 1: Bad configuration option: unheard"), "{}", problem.message);
}

#[tokio::test]
async fn ssh_sees_few_variables_and_match_exec_is_the_users() {
    let Some(ssh) = ssh() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (file, seen) = (directory.path().join("config"), directory.path().join("seen"));
    fs::write(&file, format!("Match exec \"env > {}\"\n  User matched\n", seen.display())).unwrap();
    let extra_args = ["-F", file.to_str().unwrap()];
    let config =
        by_ssh(&ssh, &extra_args, "web", &SshOptions::default(), &LocalUser::current()).await.unwrap();
    assert_eq!(config.user, "matched");
    let seen = fs::read_to_string(seen).unwrap();
    assert!(seen.contains("HOME=") && !seen.contains("CARGO"), "{seen}");
}

#[tokio::test]
async fn what_ssh_has_started_ends_with_the_question() {
    let Some(ssh) = ssh() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (file, pipe) = (directory.path().join("config"), directory.path().join("pipe"));
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let waits = format!("Match exec \"exec > {}; echo started; sleep 1000; true\"\n", pipe.display());
    fs::write(&file, waits).unwrap();
    let asked = tokio::spawn(async move {
        let extra_args = ["-F", file.to_str().unwrap()];
        by_ssh(&ssh, &extra_args, "web", &SshOptions::default(), &LocalUser::current()).await
    });
    let started = tokio::task::spawn_blocking(move || {
        let mut reader = BufReader::new(fs::File::open(pipe).unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        (reader, line)
    });
    let (mut reader, line) = started.await.unwrap();
    assert_eq!(line, "started\n");
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    // The pipe ends once nothing that could write to it runs any more.
    let rest = tokio::task::spawn_blocking(move || reader.read_line(&mut String::new()).unwrap());
    assert_eq!(rest.await.unwrap(), 0);
}

#[test]
fn a_key_is_looked_up_by_the_name_that_the_configuration_gives_it() {
    let of = |set: &[(&str, &str)]| HostNames::of(&printed(set, &root()).unwrap(), None);
    assert_eq!(
        of(&[("hostname", "Web.example.com"), ("port", "2222")]),
        HostNames::new("web.example.com", 2222, None)
    );
    assert_eq!(of(&[("hostkeyalias", "A"), ("port", "2222"), ("hostname", "other")]).listed(), "a");
}

/// Reading the files and `ssh -G` give the same, except for lists that only ssh has, and the form of values in
/// warnings.
#[tokio::test]
async fn our_own_reading_agrees_with_ssh() {
    let Some(ssh) = ssh() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (file, more) = (directory.path().join("config"), directory.path().join("more"));
    let local_user = LocalUser::current();
    fs::write(&more, "Port 99\nHost web*\n  HostKeyAlias included\n").unwrap();
    let identity = directory.path().join("identity");
    fs::write(&identity, "").unwrap();
    let options = [
        SshOptions::default(),
        SshOptions {
            hostname: None,
            port: Some(77),
            user: Some("given".into()),
            identity_file: Some(identity),
        },
    ];
    let mut disagreements = Vec::new();
    for config in [
        "",
        "Host web\n  HostName web.example.com\n  User ada\n  Port 2222\n",
        "Host web\n  HostName %h.example.com\nHost *\n  HostName other\n",
        "Host web\n  HostName WEB.example.COM\n",
        "Host web\n  HostName %%h\n",
        "HostName=10.0.0.1\nUser = ada\nport=2222 # comment\n",
        "Host !web *\n  User other\nHost *\n  User all\n",
        "Host * !db1\n  User other\n",
        "Host w?b d*\n  User ada\n",
        "Host WEB\n  User upper\n",
        "Host \"web\" 'db1'\n  User quoted\n",
        "Host db1\n  User a\nMatch all\n  Port 5\n",
        "Host web\n  Include MORE\n  User late\nHost *\n  User all\n",
        "Include MORE MORE /no/such/file\n",
        "IdentityFile ~/.ssh/a\nIdentityFile \"~/b c\"\nIdentityFile ~/.ssh/a\nIdentityFile %d/%u-%%-%n-%h-%r-%p-%i-%k\n",
        "IdentityFile none\nCertificateFile ~/x-cert.pub\n",
        "IdentityFile ${HOME}/x\nIdentitiesOnly yes\n",
        "UserKnownHostsFile ~/a /b/%h-%n-%p-%r-%C\nGlobalKnownHostsFile /c /d\nHashKnownHosts yes\n",
        "UserKnownHostsFile none\nGlobalKnownHostsFile none\n",
        "UserKnownHostsFile \"~/a\" ${HOME}/b\n",
        "IdentityAgent ~/agent-%n\n",
        "IdentityAgent none\n",
        "IdentityAgent SSH_AUTH_SOCK\n",
        "ProxyCommand exec nc -x \"a b\" '%h' %p # not a comment\n".replace(" # not a comment", "").as_str(),
        "ProxyCommand=nc %h %p\nProxyJump bastion\n",
        "ProxyJump ada@bastion:2222,[::1]:22,c\nProxyCommand nc %h %p\n",
        "ProxyJump none\nHost *\n  ProxyJump bastion\n",
        "ProxyCommand none\nProxyJump bastion\n",
        "ProxyJump ssh://ada@bastion:2222\n",
        "HostKeyAlias The-Web\nStrictHostKeyChecking accept-new\n",
        "StrictHostKeyChecking yes\nConnectTimeout 1m30s\n",
        "StrictHostKeyChecking no\nConnectTimeout 10\n",
        "AddressFamily inet6\nBindAddress 10.0.0.1\n",
        "KexAlgorithms curve25519-sha256\nCiphers aes256-ctr,aes128-ctr\nMACs hmac-sha2-256\nHostKeyAlgorithms ssh-ed25519\n",
        "Compression yes\nForwardAgent yes\nRemoteForward 80 a:80\nSendEnv LANG FOO\nSetEnv A=b\nControlMaster auto\n",
        "VerifyHostKeyDNS ask\nTunnel yes\nRequestTTY force\nLocalCommand x y\nPermitLocalCommand yes\nControlPath ~/x\n",
        "PreferredAuthentications password\nPubkeyAuthentication no\nRemoteCommand tmux a\n",
        "IgnoreUnknown UseK*\nUseKeychain yes\nUser ada\n",
        "Host a\nHost\tweb\tdb1\n\tUser\tada\r\n",
        "User \"ada\"\nHostName 'web.example.com'\n",
    ] {
        fs::write(&file, config.replace("MORE", more.to_str().unwrap())).unwrap();
        for (alias, options) in ["web", "db1", "WEB", "::1"]
            .iter()
            .flat_map(|alias| options.each_ref().map(|options| (*alias, options)))
        {
            let extra_args = ["-F", file.to_str().unwrap()];
            let theirs = by_ssh(&ssh, &extra_args, alias, options, &local_user).await;
            let ours = by_files(&file, Path::new("/no/such/file"), alias, options, &local_user);
            let comparable = |config: Result<HostConfig, Problem>| {
                config.map_err(|problem| problem.code).map(|mut config| {
                    let keyword = |warning: &String| warning.split(' ').next().unwrap_or_default().to_owned();
                    config.warnings = config.warnings.iter().map(keyword).collect();
                    config
                })
            };
            let (ours, theirs) = (comparable(ours), comparable(theirs));
            if ours != theirs {
                disagreements.push(format!("{alias} {options:?}\n{config}ours {ours:?}\nssh  {theirs:?}\n"));
            }
        }
    }
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
}
