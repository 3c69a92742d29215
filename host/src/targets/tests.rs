use super::*;

fn targets(config: &str) -> Targets {
    Targets::new(&serde_yaml::from_str(config).unwrap(), Default::default()).unwrap()
}

const CONFIG: &str = "
ssh: {allowed_hosts: [web1, web2, db1]}
hosts: {web: [web1, web2]}
";

fn selector<'a>(named: Option<&'a [String]>, has_session: bool, changes: bool) -> Selector<'a> {
    Selector { named, has_session, changes }
}

fn named(targets: &Targets, hosts: &[&str], changes: bool) -> Result<Vec<String>, String> {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    names(targets.select(&selector(Some(&hosts), true, changes)))
}

fn unnamed(targets: &Targets, has_session: bool, changes: bool) -> Result<Vec<String>, String> {
    names(targets.select(&selector(None, has_session, changes)))
}

fn names(selected: Result<Selected, Problem>) -> Result<Vec<String>, String> {
    selected
        .map(|selected| selected.names().map(str::to_owned).collect())
        .map_err(|problem| problem.code.to_string())
}

fn is(names: &[&str]) -> Result<Vec<String>, String> {
    Ok(names.iter().map(|name| (*name).to_owned()).collect())
}

fn code<T>(code: &str) -> Result<T, String> {
    Err(code.to_owned())
}

#[test]
fn a_host_is_named_by_itself_by_its_group_and_in_a_list() {
    let targets = targets(CONFIG);
    assert_eq!(named(&targets, &["web1"], true), is(&["web1"]));
    assert_eq!(named(&targets, &["localhost"], true), is(&["localhost"]));
    assert_eq!(named(&targets, &["web"], true), is(&["web1", "web2"]));
    assert_eq!(named(&targets, &["db1, web"], true), is(&["db1", "web1", "web2"]));
    assert_eq!(named(&targets, &["web2", "web"], true), is(&["web2", "web1"]));
    for (host, why) in
        [("web3", "HOST_NOT_ALLOWED"), ("root@web1", "INVALID_ARGUMENTS"), ("-oX", "INVALID_ARGUMENTS")]
    {
        assert_eq!(named(&targets, &[host], false), code(why), "{host}");
        assert_eq!(named(&targets, &["web1", host], false), code(why), "{host}");
    }
}

#[test]
fn each_name_has_one_target_and_no_two_have_the_same() {
    let targets = targets(CONFIG);
    let one = |name: &str| match targets.select(&selector(Some(&[name.to_owned()]), false, false)) {
        Ok(Selected::One(target)) => target,
        _ => panic!("{name}"),
    };
    assert!(Arc::ptr_eq(&one("web1"), &one("web1")));
    assert!(!Arc::ptr_eq(&one("web1"), &one("web2")));
}

#[test]
fn where_the_machine_of_the_server_is_not_allowed_nothing_runs_there() {
    let targets = targets("ssh: {allowed_hosts: [web1], local: false}");
    assert_eq!(unnamed(&targets, false, false), code("LOCAL_NOT_ALLOWED"));
    assert!(named(&targets, &["localhost"], false).is_err());
    assert!(targets.local().is_err());
    assert_eq!(named(&targets, &["web1"], false), is(&["web1"]));
}

#[test]
fn a_session_works_where_it_is_connected_and_others_on_the_usual_machine() {
    let targets = targets(CONFIG);
    targets.set_current(Some(targets.with_options("web1", SshOptions::default()).unwrap()));
    assert_eq!(unnamed(&targets, true, false), is(&["web1"]));
    assert_eq!(unnamed(&targets, false, false), is(&["localhost"]));
    targets.set_current(None);
    assert_eq!(unnamed(&targets, true, false), is(&["localhost"]));
}

/// Two agents share a connection: the second one's choice must not become the target of the first one's calls.
#[test]
fn once_several_hosts_were_connected_to_every_call_has_to_name_its_own() {
    let targets = targets(CONFIG);
    let connect =
        |host| targets.set_current(Some(targets.with_options(host, SshOptions::default()).unwrap()));
    connect("web1");
    connect("web1");
    assert_eq!(unnamed(&targets, true, false), is(&["web1"]));
    assert_eq!(
        unnamed(&targets, true, true),
        code("HOST_REQUIRED"),
        "another one may mean the usual machine"
    );
    connect("web2");
    for changes in [true, false] {
        assert_eq!(unnamed(&targets, true, changes), code("HOST_REQUIRED"));
    }
    assert_eq!(named(&targets, &["web1"], true), is(&["web1"]));
    targets.set_current(None);
    assert_eq!(
        unnamed(&targets, true, false),
        code("HOST_REQUIRED"),
        "the other one may not have disconnected"
    );
    // A client without a session has no current host.
    assert_eq!(unnamed(&targets, false, true), is(&["localhost"]));
}

#[test]
fn a_change_here_has_to_say_so_once_another_host_was_used() {
    let targets = targets(CONFIG);
    assert_eq!(unnamed(&targets, true, true), is(&["localhost"]));
    assert_eq!(unnamed(&targets, true, true), is(&["localhost"]));
    assert_eq!(named(&targets, &["web1"], false), is(&["web1"]));
    assert_eq!(unnamed(&targets, true, true), code("HOST_REQUIRED"));
    assert_eq!(named(&targets, &["localhost"], true), is(&["localhost"]));
}

#[test]
fn a_host_reached_otherwise_is_another_target_with_a_name_of_its_own() {
    let targets = targets(CONFIG);
    let options = SshOptions { user: Some("deploy".into()), port: Some(2222), ..SshOptions::default() };
    let target = targets.with_options("web1", options.clone()).unwrap();
    assert_eq!(target.name(), "deploy@web1:2222");
    assert_eq!(
        named(&targets, &["deploy@web1:2222"], true),
        code("INVALID_ARGUMENTS"),
        "nobody has been there"
    );
    targets.remember(target.clone()).unwrap();
    assert!(Arc::ptr_eq(&target, &targets.with_options("web1", options).unwrap()));
    assert_eq!(named(&targets, &["deploy@web1:2222"], true), is(&["deploy@web1:2222"]));
    assert_eq!(named(&targets, &["root@web1"], true), code("INVALID_ARGUMENTS"));
    let key = |path: &str| SshOptions { identity_file: Some(path.into()), ..SshOptions::default() };
    let (one, other) = (
        targets.with_options("web1", key("/a/id")).unwrap(),
        targets.with_options("web1", key("/b/id")).unwrap(),
    );
    assert_ne!(one.name(), other.name());
    assert!([one.name(), other.name()].iter().all(|name| name.starts_with("web1+") && !name.contains('/')));
}

#[test]
fn what_may_not_be_named_may_not_be_connected_to() {
    let targets = targets(CONFIG);
    let refused = |host: &str, options: SshOptions| {
        targets.with_options(host, options).err().map(|problem| problem.code.to_string())
    };
    let root = || SshOptions { user: Some("root".into()), ..SshOptions::default() };
    assert_eq!(refused("web3", SshOptions::default()).as_deref(), Some("HOST_NOT_ALLOWED"));
    assert_eq!(refused("web3", root()).as_deref(), Some("HOST_NOT_ALLOWED"));
    assert_eq!(refused("web", root()).as_deref(), Some("HOST_AMBIGUOUS"));
    assert_eq!(refused("localhost", root()).as_deref(), Some("INVALID_ARGUMENTS"));
    assert!(targets.temporary("web3", SshOptions::default()).is_err());
}

#[test]
fn a_machine_is_found_again_by_what_a_record_calls_it() {
    let config: Config = serde_yaml::from_str(CONFIG).unwrap();
    for name in [
        "localhost",
        "web1",
        "deploy@web1",
        "web1:2222",
        "deploy@web1:2222",
        "2001:db8::1",
        "root@[2001:db8::1]:22",
    ] {
        let found = target_of_record(&config, name).map(|target| target.name().to_owned());
        assert_eq!(found.as_deref(), Ok(name));
    }
    for name in ["web1+0123456789abcdef", "web1:port", "-oX", "web1:", "", "root@", "a b"] {
        assert!(target_of_record(&config, name).is_err(), "{name}");
    }
}
