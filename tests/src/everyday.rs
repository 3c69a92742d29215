//! The changes that administrators make every day, as data, and a machine on which they can be made.

use serde::Deserialize;
use serde_json::Value;

use crate::{Changing, Reach};

/// A function of sh that lists the machine's files in the places that the changes are about.
macro_rules! known {
    () => {
        r"
known() {
    for place in / /etc /etc/sysctl.d /etc/systemd/system /etc/cron.d /etc/sudoers.d /srv /tmp /opt /home /var/www /var/lib /var/backups /root /root/.ssh /usr/local/bin /usr/local/lib; do
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
findmnt --raw --noheadings --output TARGET | sort > /run/lsa-everyday/mounts
getent passwd | cut -d: -f1 | sort > /run/lsa-everyday/accounts
cp -a /etc/hostname /etc/hosts /etc/fstab /run/lsa-everyday
readlink /etc/localtime > /run/lsa-everyday/localtime
sysctl --all > /run/lsa-everyday/sysctl
getent group | cut -d: -f1 | sort > /run/lsa-everyday/groups
"
);

const CLEAN: &str = concat!(
    known!(),
    r"
if test -e /run/lsa-everyday/groups; then
    cd /
    cat /run/lsa-everyday/hostname > /etc/hostname
    cat /run/lsa-everyday/hosts > /etc/hosts
    cat /run/lsa-everyday/fstab > /etc/fstab
    hostname $(cat /etc/hostname)
    systemctl try-restart systemd-hostnamed
    timedatectl set-timezone $(sed s:.*/zoneinfo/:: /run/lsa-everyday/localtime)
    sed -n 's/ *=.*//p' /etc/sysctl.d/90-linux-sysadmin.conf | while read -r key; do
        sysctl $key=$(sed -n s/^$key' = '//p /run/lsa-everyday/sysctl)
    done
    for account in $(getent passwd | cut -d: -f1 | sort | comm -13 /run/lsa-everyday/accounts -); do
        crontab -u $account -r; pkill -KILL -u $account
    done
    findmnt --raw --noheadings --output TARGET | sort | comm -13 /run/lsa-everyday/mounts - | grep ^/srv/ | while read -r mount; do
        umount $mount
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

/// Makes empty packages with the names that follow the script, and a repository of them for apt.
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
    /// The script that prepares the machine for the changes.
    machine: String,
    changes: Vec<Row>,
}

/// One change.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The change in a person's words.
    pub what: String,
    /// The tool that makes the change.
    pub tool: String,
    /// The tool's arguments.
    pub arguments: Value,
    family: String,
    /// The reason why a person is asked, where the change asks.
    pub asks: Option<String>,
    /// The error code, where the change is refused.
    pub fails: Option<String>,
}

impl Row {
    /// The names of the packages that the change installs.
    fn packages(&self) -> Vec<&str> {
        match &self.arguments["package"] {
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        }
    }
}

/// Gives a machine, and the changes that can be made on it. Where there can be no hosts, the test is counted as skipped.
pub fn everyday(reach: fn() -> Reach, test: &str) -> Option<(Changing, Vec<Row>)> {
    let machine = Changing::by(reach(), test, PREPARE, CLEAN)?;
    let everyday: Everyday =
        serde_yaml::from_str(include_str!("../data/everyday_changes.yaml")).expect("the data");
    assert!(everyday.changes.len() >= 200);
    let is_debian = reach().host().starts_with("debian");
    let is_here = |row: &Row| {
        matches!((row.family.as_str(), is_debian), ("both", _) | ("debian", true) | ("rhel", false))
            // The test's repository is one of Debian's kind.
            && (is_debian || !row.tool.starts_with("pkg_"))
            // Over SSH, the server's own configuration and keys are on another machine.
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
