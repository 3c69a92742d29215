//! On a real host: what administrators do every day, and which of it asks for a person's yes. The changes are data; a row says
//! why it asks, where it does.

use linux_sysadmin_tests::{Changing, Reach, way};
use serde::Deserialize;
use serde_json::{Value, json};

/// Says what the machine has, of what the changes are about.
macro_rules! known {
    () => {
        r"
known() {
    for place in / /etc /etc/systemd/system /etc/cron.d /srv /tmp /opt /home /var/www /var/lib /root /root/.ssh /usr/local/bin; do
        ls -A $place | sed s:^:$place/:
    done
}
"
    };
}

const PREPARE: &str = concat!(
    known!(),
    r"
mkdir -p /run/lsa-everyday
known | sort > /run/lsa-everyday/files
getent passwd | cut -d: -f1 | sort > /run/lsa-everyday/accounts
getent group | cut -d: -f1 | sort > /run/lsa-everyday/groups
"
);

const CLEAN: &str = concat!(
    known!(),
    r"
if test -e /run/lsa-everyday/groups; then
    cd /
    for account in $(getent passwd | cut -d: -f1 | sort | comm -13 /run/lsa-everyday/accounts -); do
        crontab -u $account -r; pkill -KILL -u $account
    done
    known | sort | comm -13 /run/lsa-everyday/files - | while read -r file; do
        case $file in
            /etc/systemd/system/*.*) systemctl disable --now $(basename $file) ;;
        esac
        rm -rf $file
    done
    for account in $(getent passwd | cut -d: -f1 | sort | comm -13 /run/lsa-everyday/accounts -); do
        userdel --force --remove $account
    done
    for group in $(getent group | cut -d: -f1 | sort | comm -13 /run/lsa-everyday/groups -); do
        groupdel $group
    done
    if command -v dpkg; then
        dpkg --purge $(dpkg-query --show --showformat '${Package}\n' 'inhouse-*')
    else
        rpm --erase --nodeps $(rpm --query --all 'inhouse-*')
    fi
    systemctl daemon-reload
    systemctl reset-failed
    rm -rf /etc/apt/sources.list.d/lsa-everyday.list /run/lsa-everyday
    if command -v apt-get; then apt-get -qq update; fi
fi
"
);

/// Makes empty packages of the names behind it, and has apt know them.
const REPOSITORY: &str = r#"
set -e
mkdir -p /run/lsa-everyday/packages
cd /run/lsa-everyday/packages
for name; do
    mkdir -p $name/DEBIAN
    printf 'Package: %s\nVersion: 1:99\nArchitecture: all\nMaintainer: lab <lab@example.org>\nDescription: none\n' $name \
        > $name/DEBIAN/control
    dpkg-deb --build $name $name.deb
done
apt-ftparchive packages . > Packages
echo 'deb [trusted=yes] file:/run/lsa-everyday/packages ./' > /etc/apt/sources.list.d/lsa-everyday.list
apt-get -qq update
"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Everyday {
    /// What makes the machine that the changes are about.
    machine: String,
    changes: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    what: String,
    tool: String,
    arguments: Value,
    family: String,
    /// Why a person is asked.
    asks: Option<String>,
    /// With what code it is refused.
    fails: Option<String>,
}

impl Row {
    /// Names of packages that it installs.
    fn packages(&self) -> Vec<&str> {
        match &self.arguments["packages"] {
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        }
    }
}

#[tokio::test]
async fn what_is_done_every_day_asks_only_where_the_data_says_why() {
    let test = "what_is_done_every_day_asks_only_where_the_data_says_why";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let data = include_str!("../../../data/everyday_changes.yaml");
    let everyday: Everyday = serde_yaml::from_str(data).expect("the data");
    assert_eq!(everyday.changes.len(), 200);
    let is_debian = way().host().starts_with("debian");
    let is_here = |row: &&Row| {
        matches!((row.family.as_str(), is_debian), ("both", _) | ("debian", true) | ("rhel", false))
            // What is made here is a repository of Debian's kind.
            && (is_debian || !row.tool.starts_with("pkg_"))
            // The server's own configuration and keys are those of another machine there.
            && (matches!(way(), Reach::Inside(_)) || !row.tool.starts_with("ssh_"))
    };
    let rows: Vec<&Row> = everyday.changes.iter().filter(is_here).collect();
    machine.sh(&everyday.machine);
    if is_debian {
        let packages: Vec<&str> = rows.iter().flat_map(|row| row.packages()).collect();
        machine.sh(&format!("set -- {}\n{REPOSITORY}", packages.join(" ")));
    }
    let mut client = machine.serve_default().await;
    let mut wrong = Vec::new();
    for row in rows {
        let mut arguments = row.arguments.clone();
        arguments["dry_run"] = json!(true);
        let envelope = client.envelope(&row.tool, arguments).await;
        let (status, code) = match &row.fails {
            Some(code) => (json!("error"), json!(code)),
            None => (json!("success"), Value::Null),
        };
        let asks = envelope["needs_confirmation"] == true;
        if (&envelope["status"], &envelope["error_code"], asks) != (&status, &code, row.asks.is_some()) {
            wrong.push(format!("{}: {envelope}", row.what));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
