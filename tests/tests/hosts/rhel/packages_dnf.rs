//! Tests on a real host what only dnf has: undone transactions, scripts that fail, locked versions, advisories,
//! protected packages, and operands that dnf would read as something else. rpm says what was done.

use linux_sysadmin_tests::{Changing, Client, way};
use serde_json::{Value, json};

const CLEAN: &str = r"
if test -e /opt/lsa-rpm; then rm -rf /var/lib/rpm; mv /opt/lsa-rpm /var/lib/rpm; fi
rm -rf /run/lsa-* /var/lib/rpm.before-repair-* /var/lib/rpmrebuilddb.*
test -e /opt/lsa-lab.repo && mv -f /opt/lsa-lab.repo /etc/yum.repos.d/lab.repo
rm -f /etc/dnf/protected.d/lsa-*.conf /etc/dnf/plugins/versionlock.list.rpm*
: > /etc/dnf/plugins/versionlock.list
for lab in $(rpm --query --all --queryformat '%{NAME}\n' | grep -v lab-base); do rpm --erase --nodeps $lab; done
rm -f /etc/lab-conf.conf*
dnf --quiet --refresh makecache
";

/// Makes a repository that replaces the lab's. It has some of the lab's packages, and some that are built here.
const REPOSITORY: &str = r#"
set -e
cp --no-clobber /etc/yum.repos.d/lab.repo /opt/lsa-lab.repo
mkdir -p /run/lsa-repository
cp $1 /run/lsa-repository/ 2>/dev/null || :
createrepo_c --quiet --no-database /run/lsa-repository
sed 's,file:///opt/labrepo,file:///run/lsa-repository,' /opt/lsa-lab.repo > /etc/yum.repos.d/lab.repo
dnf --quiet --refresh makecache
"#;

struct Dnf(Changing);

impl Dnf {
    fn new(test: &str) -> Option<Self> {
        Changing::by(way(), test, "", CLEAN).map(Self)
    }

    /// Starts a server as root that asks in two steps.
    async fn serve(&self) -> Client {
        self.0.configure("root", "safety:\n  confirmation: two-step\n");
        self.0.serve_shipped("root", "root").await
    }

    /// The installed version of a package, as `1.0-1`, or nothing.
    fn version(&self, name: &str) -> String {
        let query = format!("rpm --query --queryformat '%{{VERSION}}-%{{RELEASE}}' {name} || :");
        let said = self.0.sh(&query);
        if said.contains("not installed") { String::new() } else { said }
    }

    /// The contents of rpm's database, and the number of transactions in dnf's history.
    fn state(&self) -> String {
        self.0.sh("rpm --query --all | sort; dnf --quiet history list | wc -l")
    }

    /// Makes a repository with the packages of the lab that the pattern matches.
    fn only(&self, pattern: &str) {
        self.0.sh(&REPOSITORY.replace("$1", &format!("/opt/labrepo/{pattern}")));
    }

    /// Makes a dry run, which must change nothing; gives its data.
    async fn shows(&self, client: &mut Client, tool: &str, arguments: &Value) -> Value {
        let mut arguments = arguments.clone();
        arguments["dry_run"] = json!(true);
        let (before, packages) = (self.0.snapshot(), self.state());
        let envelope = client.envelope(tool, arguments).await;
        assert_eq!(self.state(), packages, "a dry run of {tool}");
        self.0.is_still(&before, &format!("a dry run of {tool}"));
        assert_eq!(envelope["status"], "success", "{tool}: {envelope}");
        envelope["data"].clone()
    }

    /// Makes a change, which must ask first where a risk is given; gives the envelope.
    async fn does(&self, client: &mut Client, tool: &str, arguments: &Value, risk: &str) -> Value {
        let mut arguments = arguments.clone();
        if !risk.is_empty() {
            let packages = self.state();
            let asked = client.envelope(tool, arguments.clone()).await;
            assert_eq!(asked["status"], "confirmation_required", "{tool}: {asked}");
            assert_eq!(asked["risk_level"], risk, "{tool}: {asked}");
            assert_eq!(self.state(), packages, "{tool} was only asked about");
            arguments["confirmed"] = json!(true);
        }
        let envelope = client.envelope(tool, arguments).await;
        assert_eq!(envelope["status"], "success", "{tool}: {envelope}");
        self.0.nothing_is_left_behind();
        envelope
    }

    /// Makes a call, which must be refused without a change of any package; gives the message.
    async fn refuses(&self, client: &mut Client, tool: &str, arguments: &Value, code: &str) -> String {
        let packages = self.state();
        let envelope = self.0.refuses(client, tool, arguments, code).await;
        assert_eq!(self.state(), packages, "{tool} {arguments}");
        envelope["message"].as_str().expect("a message").to_owned()
    }
}

#[tokio::test]
async fn a_rollback_undoes_the_latest_transaction_of_a_package() {
    let Some(dnf) = Dnf::new("a_rollback_undoes_the_latest_transaction_of_a_package") else { return };
    let mut client = dnf.serve().await;
    let hello = json!({"package": "lab-hello"});
    dnf.0.sh("dnf --quiet --assumeyes install lab-hello-1.0-1 lab-conf-1.0-1");
    dnf.does(&mut client, "pkg_update", &json!({}), "").await;
    assert_eq!((dnf.version("lab-hello"), dnf.version("lab-conf")), ("2.0-1".into(), "2.0-1".into()));

    // The whole transaction is undone, and the whole of it is shown.
    let back = |name: &str| json!({"name": name, "from": "2.0-1", "version": "1.0-1"});
    let both = json!([back("lab-conf"), back("lab-hello")]);
    assert_eq!(dnf.shows(&mut client, "pkg_rollback", &hello).await["would_downgrade"], both);
    let done = dnf.does(&mut client, "pkg_rollback", &hello, "high").await;
    assert_eq!(done["data"]["downgraded"], both, "{done}");
    assert_eq!((dnf.version("lab-hello"), dnf.version("lab-conf")), ("1.0-1".into(), "1.0-1".into()));
    let history = client.envelope("pkg_history", hello.clone()).await;
    assert_eq!(history["data"][0]["operations"], json!(["downgrade lab-hello 2.0-1 -> 1.0-1"]), "{history}");
    assert!(history["data"][0]["command"].as_str().is_some_and(|line| line.contains("history undo")));
    assert!(history["data"][0]["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{history}");
    dnf.0.audit_is_valid("root", "root");
}

#[tokio::test]
async fn what_cannot_be_undone_is_refused_with_the_versions_that_there_are() {
    let test = "what_cannot_be_undone_is_refused_with_the_versions_that_there_are";
    let Some(dnf) = Dnf::new(test) else { return };
    let mut client = dnf.serve().await;
    let hello = json!({"package": "lab-hello"});
    dnf.0.sh("dnf --quiet --assumeyes install lab-hello-1.0-1 && dnf --quiet --assumeyes upgrade lab-hello");
    dnf.only("*-2.0-*.rpm");
    let message = dnf.refuses(&mut client, "pkg_rollback", &hello, "VERSION_NOT_AVAILABLE").await;
    assert!(message.contains("lab-hello-1.0-1.noarch") && message.contains("no other version"), "{message}");
    // rpm has changed the package without dnf, so dnf's history doesn't fit.
    dnf.0.sh("rpm --upgrade --oldpackage --force-debian /opt/labrepo/lab-hello-1.0-1.noarch.rpm");
    let message = dnf.refuses(&mut client, "pkg_rollback", &hello, "NO_TRANSACTION").await;
    assert!(message.contains("versions that can be had: 2.0-1"), "{message}");
    assert_eq!(dnf.version("lab-hello"), "1.0-1");
}

#[tokio::test]
async fn a_script_that_fails_is_told_whether_dnf_calls_it_a_success_or_not() {
    let test = "a_script_that_fails_is_told_whether_dnf_calls_it_a_success_or_not";
    let Some(dnf) = Dnf::new(test) else { return };
    let mut client = dnf.serve().await;
    let envelope = client.envelope("pkg_install", json!({"package": "lab-broken"})).await;
    assert_eq!(envelope["error_code"], "PACKAGE_SCRIPT_FAILED", "{envelope}");
    assert!(
        envelope["message"].as_str().is_some_and(|said| said.contains("%prein(lab-broken-1.0-1.noarch)"))
    );
    assert_eq!(dnf.version("lab-broken"), "");

    dnf.0.sh(r"set -e
        mkdir -p /run/lsa-build /run/lsa-repository
        printf '%s\n' 'Name: lab-postfails' 'Version: 1.0' 'Release: 1' 'Summary: Lab package' 'License: MIT' \
            'BuildArch: noarch' %description 'Lab package.' %post 'exit 3' %files > /run/lsa-build/lab.spec
        rpmbuild -bb --quiet --define '_topdir /run/lsa-build' /run/lsa-build/lab.spec
        cp /run/lsa-build/RPMS/noarch/*.rpm /run/lsa-repository/");
    dnf.only("lab-dep-*.rpm");
    let done = dnf.does(&mut client, "pkg_install", &json!({"package": "lab-postfails"}), "").await;
    assert_eq!(done["data"]["installed"], json!([{"name": "lab-postfails", "version": "1.0-1"}]), "{done}");
    let notes = done["notes"].to_string();
    assert!(notes.contains("%post(lab-postfails-1.0-1.noarch) scriptlet failed"), "{done}");
    assert_eq!(dnf.version("lab-postfails"), "1.0-1");
}

#[tokio::test]
async fn a_locked_version_stays_while_the_others_are_updated() {
    let Some(dnf) = Dnf::new("a_locked_version_stays_while_the_others_are_updated") else { return };
    let mut client = dnf.serve().await;
    dnf.0.sh("dnf --quiet --assumeyes install lab-hello-1.0-1 lab-conf-1.0-1
        dnf --quiet versionlock add lab-hello-1.0-1");
    let listed = client.envelope("pkg_list_installed", json!({"filter": "lab-hello"})).await;
    assert_eq!(listed["data"][0]["held"], true, "{listed}");
    let shown = dnf.shows(&mut client, "pkg_update", &json!({})).await;
    assert_eq!(shown["held_back"], json!(["lab-hello"]), "{shown}");
    let done = dnf.does(&mut client, "pkg_update", &json!({}), "").await;
    let conf = json!([{"name": "lab-conf", "from": "1.0-1", "version": "2.0-1"}]);
    assert_eq!((&done["data"]["upgraded"], &done["data"]["held_back"]), (&conf, &json!(["lab-hello"])));
    assert_eq!((dnf.version("lab-hello"), dnf.version("lab-conf")), ("1.0-1".into(), "2.0-1".into()));
    let (begun, packages) = (dnf.0.begun("root"), dnf.state());
    let named = client.envelope("pkg_update", json!({"package": "lab-hello"})).await;
    assert_eq!(named["data"], json!({"held_back": ["lab-hello"]}), "{named}");
    assert_eq!((dnf.0.begun("root"), dnf.state()), (begun, packages));
    assert_eq!(dnf.version("lab-hello"), "1.0-1");
}

#[tokio::test]
async fn a_security_update_is_what_an_advisory_says_and_nothing_else() {
    let Some(dnf) = Dnf::new("a_security_update_is_what_an_advisory_says_and_nothing_else") else { return };
    let mut client = dnf.serve().await;
    dnf.0.sh("dnf --quiet --assumeyes install lab-hello-1.0-1 lab-conf-1.0-1");
    let secure = json!({"security_only": true});
    let updates = client.envelope("pkg_check_updates", secure.clone()).await;
    let hello = json!({
        "name": "lab-hello", "installed": "1.0-1", "candidate": "2.0-1", "repository": "lab", "security": true,
        "severity": "Important", "advisories": ["LAB-2026-0001"],
    });
    assert_eq!(updates["data"], json!([hello]), "{updates}");
    let done = dnf.does(&mut client, "pkg_update", &secure, "").await;
    let upgraded = json!([{"name": "lab-hello", "from": "1.0-1", "version": "2.0-1"}]);
    assert_eq!(done["data"]["upgraded"], upgraded, "{done}");
    assert_eq!((dnf.version("lab-hello"), dnf.version("lab-conf")), ("2.0-1".into(), "1.0-1".into()));
    let rest = client.envelope("pkg_check_updates", secure).await;
    assert_eq!(rest["data"], json!([]), "{rest}");
}

#[tokio::test]
async fn what_dnf_protects_stays() {
    let Some(dnf) = Dnf::new("what_dnf_protects_stays") else { return };
    let mut client = dnf.serve().await;
    dnf.0.sh("dnf --quiet --assumeyes install lab-hello lab-dep; echo lab-hello > /etc/dnf/protected.d/lsa-lab.conf");
    let info = client.envelope("pkg_info", json!({"package": "lab-hello"})).await;
    assert_eq!(info["data"]["essential"], true, "{info}");
    for tool in ["pkg_remove", "pkg_purge"] {
        let hello = json!({"package": "lab-hello", "dry_run": true});
        let message = dnf.refuses(&mut client, tool, &hello, "PROTECTED_PACKAGE").await;
        assert!(message.contains("lab-hello"), "{message}");
    }
    // A package that needs it may be removed.
    dnf.does(&mut client, "pkg_remove", &json!({"package": "lab-dep"}), "high").await;
    assert_eq!((dnf.version("lab-hello"), dnf.version("lab-dep")), ("2.0-1".into(), String::new()));
}

#[tokio::test]
async fn nobody_waits_for_another_dnf() {
    let Some(dnf) = Dnf::new("nobody_waits_for_another_dnf") else { return };
    let mut client = dnf.serve().await;
    let conf = json!({"package": "lab-conf", "dry_run": true});
    let shown = client.envelope("pkg_install", conf).await;
    let line = shown["preview"]["command"].as_str().unwrap_or_else(|| panic!("a command: {shown}"));
    let line = line.strip_prefix("sudo -n ").unwrap_or(line).to_owned();
    dnf.0.sh("touch /run/lsa-slow-goes-on");
    dnf.0.sh("setsid dnf --quiet --assumeyes install lab-slow > /dev/null 2>&1 < /dev/null &");
    dnf.0.until("test -e /var/lib/dnf/rpmdb_lock.pid");
    let refused = client.envelope("pkg_install", json!({"package": "lab-conf"})).await;
    assert_eq!(refused["status"], "blocked", "{refused}");
    assert_eq!(refused["error_code"], "RESOURCE_LOCKED", "{refused}");
    assert!(refused["lock_info"]["held_by_pid"].is_number(), "{refused}");
    // Where another process takes the lock between the look and the command, dnf itself gives up.
    let script = format!("{line}; echo \"exit code $?\"; test -e /var/lib/dnf/rpmdb_lock.pid && echo held");
    let said = dnf.0.sh(&script);
    dnf.0.sh("rm /run/lsa-slow-goes-on");
    assert!(said.contains("exit code 200\nheld"), "{said}");
    dnf.0.until("! test -e /var/lib/dnf/rpmdb_lock.pid");
    assert_eq!(dnf.version("lab-conf"), "");
}

#[tokio::test]
async fn a_repository_that_is_gone_fails_a_refresh_and_what_was_read_stays_known() {
    let test = "a_repository_that_is_gone_fails_a_refresh_and_what_was_read_stays_known";
    let Some(dnf) = Dnf::new(test) else { return };
    let mut client = dnf.serve().await;
    let refresh = json!({"refresh_only": true});
    dnf.only("lab-hello-*.rpm");
    dnf.0.sh("mv /run/lsa-repository /run/lsa-elsewhere");
    let failed = client.envelope("pkg_update", refresh.clone()).await;
    assert_eq!(failed["error_code"], "REPOSITORY_UNREACHABLE", "{failed}");
    assert_eq!(failed["error_category"], "network", "{failed}");
    let found = client.envelope("pkg_search", json!({"query": "lab-hello"})).await;
    assert_eq!(found["data"][0]["version"], "2.0-1", "{found}");
    // The same holds for a package that is gone.
    let gone = client.envelope("pkg_install", json!({"package": "lab-hello"})).await;
    assert_eq!(gone["error_code"], "REPOSITORY_UNREACHABLE", "{gone}");
    assert_eq!(dnf.version("lab-hello"), "");

    dnf.0.sh("mv /run/lsa-elsewhere /run/lsa-repository; dnf --quiet clean all");
    let unread = client.envelope("pkg_search", json!({"query": "lab-hello"})).await;
    assert_eq!(unread["error_code"], "REPOSITORIES_NOT_READ", "{unread}");
    let read = client.envelope("pkg_update", refresh).await;
    assert_eq!(read["data"], json!({"refreshed": true, "updates": 0, "security_updates": 0}), "{read}");
    let found = client.envelope("pkg_search", json!({"query": "lab-hello"})).await;
    assert_eq!(found["data"][0]["version"], "2.0-1", "{found}");
}

#[tokio::test]
async fn an_operand_that_dnf_would_take_for_something_else_is_no_package() {
    let test = "an_operand_that_dnf_would_take_for_something_else_is_no_package";
    let Some(dnf) = Dnf::new(test) else { return };
    let mut client = dnf.serve().await;
    for (name, code) in [
        // dnf would install each of these, or find it installed.
        ("lab-hello-1.0", "PACKAGE_NOT_FOUND"),
        ("lab-hello-1.0-1.noarch", "PACKAGE_NOT_FOUND"),
        ("lab-hello.noarch", "PACKAGE_NOT_FOUND"),
        ("system-release", "PACKAGE_NOT_FOUND"),
        ("/usr/bin/lab-hello", "INVALID_PACKAGE_NAME"),
        ("lab-hel*", "INVALID_PACKAGE_NAME"),
        ("@lab", "INVALID_PACKAGE_NAME"),
        ("/opt/labrepo/lab-hello-1.0-1.noarch.rpm", "INVALID_PACKAGE_NAME"),
        ("file:///opt/labrepo/lab-hello-1.0-1.noarch.rpm", "INVALID_PACKAGE_NAME"),
        ("--setopt=pluginpath=/run", "INVALID_PACKAGE_NAME"),
    ] {
        for (tool, member) in
            [("pkg_install", "package"), ("pkg_remove", "package"), ("pkg_rollback", "package")]
        {
            dnf.refuses(&mut client, tool, &json!({member: name}), code).await;
        }
    }
    assert_eq!(dnf.0.begun("root"), 0);
}

#[tokio::test]
async fn an_account_without_root_sees_what_root_sees() {
    let Some(dnf) = Dnf::new("an_account_without_root_sees_what_root_sees") else { return };
    dnf.0.sh("useradd lsa-plain || :; dnf --quiet --assumeyes install lab-hello-1.0-1");
    let mut roots = dnf.serve().await;
    let mut plain = dnf.0.serve_shipped("lsa-plain", "lsa-plain").await;
    for (tool, arguments) in [
        ("pkg_list_installed", json!({})),
        ("pkg_search", json!({"query": "lab"})),
        ("pkg_info", json!({"package": "lab-hello"})),
        ("pkg_check_updates", json!({})),
        ("pkg_history", json!({"package": "lab-hello"})),
    ] {
        let (seen, by_root) =
            (plain.envelope(tool, arguments.clone()).await, roots.envelope(tool, arguments).await);
        assert_eq!(seen["status"], "success", "{tool}: {seen}");
        assert_eq!(seen["data"], by_root["data"], "{tool}");
        let ran = dnf.0.recorded("lsa-plain", "call")["commands"].to_string();
        assert!(!ran.contains("sudo"), "{tool}: {ran}");
    }
    let refused = plain.envelope("pkg_install", json!({"package": "lab-conf"})).await;
    assert_eq!(refused["error_code"], "PRIVILEGE_REQUIRED", "{refused}");
    drop(plain);
    dnf.0.sh("userdel --force --remove lsa-plain");
}

/// Overwrites a page of rpm's database: the root of this table or index.
const DAMAGE: &str = r#"
test -e /opt/lsa-rpm || cp --archive /var/lib/rpm /opt/lsa-rpm
rm -rf /var/lib/rpm
cp --archive /opt/lsa-rpm /var/lib/rpm
page=$(python3 -c "import sqlite3
rows = sqlite3.connect('/var/lib/rpm/rpmdb.sqlite').execute('select rootpage from sqlite_master where name = ?', ['$1'])
print(rows.fetchone()[0])")
dd if=/dev/urandom of=/var/lib/rpm/rpmdb.sqlite bs=4096 seek=$((page - 1)) count=1 conv=notrunc status=none
"#;

#[tokio::test]
async fn a_damaged_index_of_rpms_database_is_made_anew_and_a_damaged_table_of_packages_is_not() {
    let test = "a_damaged_index_of_rpms_database_is_made_anew_and_a_damaged_table_of_packages_is_not";
    let Some(dnf) = Dnf::new(test) else { return };
    dnf.0.sh("dnf --quiet -y install lab-hello");
    let mut client = dnf.serve().await;
    let all = "rpm --query --all | sort";
    let before = dnf.0.sh(all);
    dnf.0.sh(&DAMAGE.replace("$1", "Name_key_idx"));
    assert_ne!(dnf.0.sh("rpmdb --verifydb 2>/dev/null; echo $?").trim(), "0");
    let repaired = client.envelope("pkg_repair", json!({})).await;
    assert_eq!(repaired["status"], "success", "{repaired}");
    assert_eq!(dnf.0.sh("rpmdb --verifydb; echo $?").trim(), "0");
    assert_eq!(dnf.0.sh(all), before);
    assert_eq!(dnf.0.sh("ls -d /var/lib/rpm.before-repair-* | wc -l").trim(), "1");

    // rpm would make an empty database of this one, and call it a success.
    dnf.0.sh(&DAMAGE.replace("$1", "Packages"));
    let bytes = dnf.0.sh("sha256sum /var/lib/rpm/rpmdb.sqlite");
    let refused = client.envelope("pkg_repair", json!({})).await;
    assert_eq!(refused["error_code"], "PACKAGE_DATABASE_DAMAGED", "{refused}");
    assert_eq!(dnf.0.sh("sha256sum /var/lib/rpm/rpmdb.sqlite"), bytes);
}
