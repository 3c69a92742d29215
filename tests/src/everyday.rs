//! What administrators do every day, as data, and a machine that it can be done on.

use serde::Deserialize;
use serde_json::Value;

use crate::{Changing, Reach};

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
            /etc/systemd/system/*@.*)
                unit=$(basename $file)
                systemctl stop ${unit%@*}@*.${unit##*.}
                systemctl disable $unit ;;
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
        dpkg --purge $(dpkg-query --show --showformat '${Package} ${Version}\n' | sed -n 's/ 1:99$//p')
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

/// One change.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// In a person's words.
    pub what: String,
    /// The tool that does it.
    pub tool: String,
    /// What the tool is given.
    pub arguments: Value,
    family: String,
    /// Why a person is asked.
    pub asks: Option<String>,
    /// With what code it is refused.
    pub fails: Option<String>,
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

/// A machine that the changes are about, and those that can be made on it. Where hosts can't be had, the test is counted as
/// skipped.
pub fn everyday(reach: fn() -> Reach, test: &str) -> Option<(Changing, Vec<Row>)> {
    let machine = Changing::by(reach(), test, PREPARE, CLEAN)?;
    let everyday: Everyday =
        serde_yaml::from_str(include_str!("../data/everyday_changes.yaml")).expect("the data");
    assert_eq!(everyday.changes.len(), 200);
    let is_debian = reach().host().starts_with("debian");
    let is_here = |row: &Row| {
        matches!((row.family.as_str(), is_debian), ("both", _) | ("debian", true) | ("rhel", false))
            // What is made here is a repository of Debian's kind.
            && (is_debian || !row.tool.starts_with("pkg_"))
            // The server's own configuration and keys are those of another machine there.
            && (matches!(reach(), Reach::Inside(_)) || !row.tool.starts_with("ssh_"))
    };
    let rows: Vec<Row> = everyday.changes.into_iter().filter(is_here).collect();
    machine.sh(&everyday.machine);
    if is_debian {
        let packages: Vec<&str> = rows.iter().flat_map(Row::packages).collect();
        machine.sh(&format!("set -- {}\n{REPOSITORY}", packages.join(" ")));
    }
    Some((machine, rows))
}
