//! Reads /etc/fstab, see fstab(5): what the machine mounts when it starts.
//!
//! A wrong line keeps a machine from starting, and a mount can put other files in the place of the system's. So only lines
//! that [`fstab.yaml`](fstab.yaml) knows are of high risk, and all others are of critical risk. Lines that stay are nobody's
//! question.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::LazyLock;

use host_base::Risk;
use serde::Deserialize;

use super::words::BLANK;
use super::{Code, harmless, shown};
use crate::glob::PathGlob;
use crate::patterns::Patterns;

/// The number of changed lines that are told. The gravest come first.
const MOST: usize = 5;
/// The number of bytes of a line that every program reads whole.
const LONGEST: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    places: Vec<String>,
    spare: Vec<String>,
    options: Patterns,
    kinds: Vec<Kind>,
    swap: Kind,
}

/// File systems that have the same kinds of sources and options.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    types: Vec<String>,
    sources: Patterns,
    options: Patterns,
}

/// The table with its globs parsed.
struct Known {
    places: Vec<PathGlob>,
    spare: Vec<PathGlob>,
    options: Patterns,
    kinds: Vec<Kind>,
    swap: Kind,
}

static KNOWN: LazyLock<Result<Known, String>> = LazyLock::new(|| {
    let Table { places, spare, options, kinds, swap } =
        serde_yaml::from_str(include_str!("fstab.yaml")).map_err(|error| error.to_string())?;
    let globs = |texts: Vec<String>| {
        texts
            .iter()
            .map(|text| PathGlob::parse(text))
            .collect::<Result<Vec<_>, _>>()
            .map(|globs| globs.concat())
    };
    Ok(Known { places: globs(places)?, spare: globs(spare)?, options, kinds, swap })
});

/// Finds the lines that are new, that are gone, and that come in another order, each with its risk.
pub fn read(text: &str, former: Option<&str>) -> Code {
    let former: Vec<(usize, String)> = former.map(entries).unwrap_or_default();
    let now = entries(text);
    let (come, stayed) = apart(&now, &former);
    let (gone, stayed_before) = apart(&former, &now);
    let mut effects: Vec<(Risk, String)> = Vec::new();
    for (number, line) in come {
        let (risk, why) = match objection(line) {
            Some(why) => (Risk::Critical, why),
            None => (Risk::High, "it is used from the next start on".to_owned()),
        };
        effects.push((risk, format!("gets line {number}, `{}`: {why}", shown(line))));
    }
    for (_, line) in gone {
        let (risk, why) = match is_spare(line) {
            true => (Risk::High, "it isn't used from the next start on"),
            false => (Risk::Critical, "the machine may not start or work without it"),
        };
        effects.push((risk, format!("loses `{}`: {why}", shown(line))));
    }
    if stayed != stayed_before {
        let why = "has its lines in another order, in which one mount may cover another";
        effects.push((Risk::Critical, why.to_owned()));
    }
    effects.sort_by_key(|(risk, _)| Reverse(*risk));
    let more = effects.len().saturating_sub(MOST);
    if let Some((risk, _)) = effects.get(MOST) {
        let risk = *risk;
        effects.truncate(MOST);
        effects.push((risk, format!("has {more} more changes")));
    }
    Code { effects, ..Code::default() }
}

/// The code of a text that can't be read. Nobody can say what the machine would mount.
pub fn unreadable(why: &str) -> Code {
    Code { effects: vec![(Risk::Critical, format!("can't be judged: {why}"))], ..Code::default() }
}

/// The lines that name something, with their numbers, each with single blanks between its fields.
fn entries(text: &str) -> Vec<(usize, String)> {
    let lines = text.split('\n').enumerate().map(|(index, line)| (index + 1, fields(line).join(" ")));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect()
}

fn fields(line: &str) -> Vec<&str> {
    line.split(BLANK).filter(|field| !field.is_empty()).collect()
}

/// The lines of one text that another one doesn't have, and those that it has as well.
fn apart<'a>(
    lines: &'a [(usize, String)],
    others: &[(usize, String)],
) -> (Vec<(usize, &'a str)>, Vec<&'a str>) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    others.iter().for_each(|(_, line)| *counts.entry(line.as_str()).or_default() += 1);
    let (mut alone, mut both) = (Vec::new(), Vec::new());
    for (number, line) in lines {
        match counts.get_mut(line.as_str()).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                both.push(line.as_str());
            }
            None => alone.push((*number, line.as_str())),
        }
    }
    (alone, both)
}

/// Says why a line isn't known to be harmless enough.
fn objection(line: &str) -> Option<String> {
    let Ok(known) = KNOWN.as_ref() else { return Some("no list says what is harmless in it".to_owned()) };
    if line.len() > LONGEST || line.contains(|character: char| character.is_control()) {
        return Some("programs may read it in different ways".to_owned());
    }
    let fields = fields(line);
    let (source, point, fs_type, options) = match fields[..] {
        [source, point, fs_type, options] | [source, point, fs_type, options, "0" | "1"] => {
            (source, point, fs_type, options)
        }
        [source, point, fs_type, options, "0" | "1", "0" | "1" | "2"] => (source, point, fs_type, options),
        _ => return Some("it isn't a line of four to six fields, with numbers in the last two".to_owned()),
    };
    let (Some(source), Some(point)) = (unescaped(source), unescaped(point)) else {
        return Some("only \\040 is a known escape".to_owned());
    };
    let is_swap = known.swap.types.iter().any(|name| name == fs_type);
    let is_place = match is_swap {
        true => ["none", "swap"].contains(&point.as_str()),
        false => is_in(&known.places, &point),
    };
    if !is_place {
        return Some(format!("{} isn't known as a place where nothing of the system is", shown(&point)));
    }
    let named = |kind: &&Kind| kind.types.iter().any(|name| name == fs_type);
    let Some(kind) = known.kinds.iter().chain([&known.swap]).find(named) else {
        return Some(format!("the type {} isn't known to be harmless", shown(fs_type)));
    };
    if !kind.sources.match_any(&source) {
        return Some(format!("{} isn't known as a source for {fs_type}", shown(&source)));
    }
    let options: Vec<&str> = options.split(',').collect();
    let is_known =
        |option: &str| kind.options.match_any(option) || !is_swap && known.options.match_any(option);
    if let Some(option) = options.iter().find(|option| !is_known(option)) {
        return Some(format!("the option {} isn't known to be harmless", shown(option)));
    }
    let has = |name: &str| options.contains(&name);
    if !has("nofail") && (!has("noauto") || has("auto")) {
        return Some(
            "without nofail, the start of the machine waits for it, or ends where it is missing".to_owned(),
        );
    }
    if is_swap {
        return None;
    }
    if !has("nosuid") || !has("nodev") {
        return Some("without nosuid and nodev, what is on it can give root's rights".to_owned());
    }
    // `user` and `users` mean noexec as well, `owner` and `group` don't.
    let by_account = ["user", "users", "owner", "group"].into_iter().any(has);
    let runs = has("exec") || (has("owner") || has("group")) && !has("noexec");
    (by_account && runs).then(|| "an ordinary account may mount it, and run what is on it".to_owned())
}

/// Whether the machine can be without what a line names.
fn is_spare(line: &str) -> bool {
    let Ok(known) = KNOWN.as_ref() else { return false };
    match fields(line)[..] {
        [_, _, fs_type, ..] if known.swap.types.iter().any(|name| name == fs_type) => true,
        [_, point, _, ..] => unescaped(point).is_some_and(|point| is_in(&known.spare, &point)),
        _ => false,
    }
}

/// The field with its blanks. `None` where it has another escape.
fn unescaped(field: &str) -> Option<String> {
    let text = field.replace("\\040", " ");
    (!text.contains('\\')).then_some(text)
}

/// Whether an absolute path that says what it means is matched by one of the globs.
fn is_in(globs: &[PathGlob], path: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    let is_plain = path
        .strip_prefix('/')
        .is_some_and(|names| names.split('/').all(|name| !matches!(name, "" | "." | "..")));
    is_plain && harmless::is_matched(globs, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text as an installer makes it.
    const FORMER: &str = "# <file system> <mount point> <type> <options> <dump> <pass>\n\
        UUID=0a1b-2c3d / ext4 errors=remount-ro 0 1\n\
        UUID=4e5f /boot\text4 defaults 0 2\n\
        \n\
        /swapfile none swap sw 0 0\n\
        /dev/sdb1 /mnt/old ext4 defaults 0 2\n";

    /// The gravest risk of a change, with all reasons.
    fn risk(former: &str, text: &str) -> (Option<Risk>, String) {
        let effects = read(text, Some(former)).effects;
        let reasons: Vec<&str> = effects.iter().map(|(_, reason)| reason.as_str()).collect();
        (effects.iter().map(|(risk, _)| *risk).max(), reasons.join("\n"))
    }

    fn of_new(line: &str) -> (Option<Risk>, String) {
        risk(FORMER, &format!("{FORMER}{line}\n"))
    }

    #[test]
    fn the_table_can_be_read() {
        assert!(KNOWN.is_ok(), "{:?}", KNOWN.as_ref().err());
    }

    #[test]
    fn a_new_line_is_high_where_it_can_neither_stop_the_start_nor_give_rights() {
        for line in [
            "UUID=6a7b-8c9d /srv/data ext4 defaults,nofail,nosuid,nodev 0 2",
            "LABEL=my\\040disk /mnt/my\\040disk xfs nofail,nosuid,nodev,noatime",
            "/dev/vg0/db /var/lib/postgresql xfs nofail,nosuid,nodev,x-systemd.device-timeout=10s 0 0",
            "/dev/disk/by-id/usb-A_B-0:0-part1 /media/usb/ auto noauto,user,nosuid,nodev 0 0",
            "nas.example:/export/home /srv/nas nfs4 nofail,_netdev,nosuid,nodev,vers=4.2,hard,timeo=600 0 0",
            "[2001:db8::5]:/export /mnt/nas nfs noauto,x-systemd.automount,nosuid,nodev 0 0",
            "//nas/Share$ /mnt/share cifs credentials=/root/.nas,nofail,nosuid,nodev,uid=1000,vers=3.1.1 0 0",
            "tmpfs /srv/cache tmpfs size=512M,mode=1777,nofail,nosuid,nodev 0 0",
            "UUID=6a7b /data btrfs subvol=@data,compress=zstd:3,nofail,nosuid,nodev 0 0",
            "UUID=6a7b none swap sw,nofail,pri=5 0 0",
            "UUID=6a7b none swap sw,nofail,x-systemd.device-timeout=10s 0 0",
            "/var/lib/linux-sysadmin-swap/0123456789abcdef none swap sw,nofail 0 0",
        ] {
            let (risk, reasons) = of_new(line);
            assert_eq!(risk, Some(Risk::High), "{line}: {reasons}");
        }
    }

    #[test]
    fn a_new_line_is_critical_unless_all_of_it_is_known() {
        let good = "UUID=6a7b /srv/data ext4 nofail,nosuid,nodev 0 2";
        assert_eq!(of_new(good).0, Some(Risk::High));
        for (from, to, why) in [
            ("nofail,", "", "without nofail"),
            ("nofail,", "noauto,auto,", "without nofail"),
            ("nofail,", "nofail,fail,", "option fail"),
            ("nosuid,", "", "without nosuid"),
            (",nodev", "", "without nosuid and nodev"),
            ("nosuid", "nosuid,suid", "option suid"),
            ("nodev", "nodev,dev", "option dev"),
            ("nofail", "nofail,user,exec", "ordinary account"),
            ("nofail", "nofail,users,exec,noexec", "ordinary account"),
            ("nofail", "nofail,owner", "ordinary account"),
            ("nofail", "nofail,group", "ordinary account"),
            ("nofail", "nofail,user=ada", "option user=ada"),
            ("nofail", "nofail,helper=x", "option helper=x"),
            ("nofail", "nofail,uhelper=x", "option uhelper=x"),
            ("nofail", "nofail,x-systemd.requires=evil.service", "x-systemd.requires"),
            ("nofail", "nofail,x-systemd.required-by=ssh.service", "x-systemd.required-by"),
            ("nofail", "nofail,x-systemd.wanted-by=a.target", "x-systemd.wanted-by"),
            ("nofail", "nofail,x-systemd.before=ssh.service", "x-systemd.before"),
            ("nofail", "nofail,x-systemd.makefs", "x-systemd.makefs"),
            ("nofail", "nofail,x-systemd.growfs", "x-systemd.growfs"),
            ("nofail", "nofail,x-initrd.mount", "x-initrd.mount"),
            ("nofail", "nofail,x-mount.mkdir=1777", "x-mount.mkdir=1777"),
            ("nofail", "nofail,X-mount.subdir=x", "X-mount.subdir=x"),
            ("nofail", "nofail,loop", "option loop"),
            ("nofail", "nofail,bind", "option bind"),
            ("nofail", "nofail,remount", "option remount"),
            ("nofail", "nofail,shared", "option shared"),
            ("nofail", "nofail,context=\"system_u:object_r:etc_t:s0\"", "option context"),
            ("nofail", "nofail,errors=panic", "option errors=panic"),
            ("nofail", "nofail,password=x", "option password=x"),
            ("nofail", "nofail,,", "option  isn't"),
            ("nofail", "nofail,size=1G", "option size=1G"),
            ("nofail", "nofail,subvol=\\040", "option subvol"),
            ("/srv/data", "/", "place"),
            ("/srv/data", "/usr", "place"),
            ("/srv/data", "/etc", "place"),
            ("/srv/data", "/etc/cron.d", "place"),
            ("/srv/data", "/boot/efi", "place"),
            ("/srv/data", "/var", "place"),
            ("/srv/data", "/var/lib", "place"),
            ("/srv/data", "/var/log", "place"),
            ("/srv/data", "/home", "place"),
            ("/srv/data", "/home/ada", "place"),
            ("/srv/data", "/root", "place"),
            ("/srv/data", "/root/.ssh", "place"),
            ("/srv/data", "/run/x", "place"),
            ("/srv/data", "/proc", "place"),
            ("/srv/data", "/sys/x", "place"),
            ("/srv/data", "/dev/shm", "place"),
            ("/srv/data", "/tmp", "place"),
            ("/srv/data", "/opt", "place"),
            ("/srv/data", "/unknown", "place"),
            ("/srv/data", "/srv/../etc", "place"),
            ("/srv/data", "/srv/./data", "place"),
            ("/srv/data", "/srv//data", "place"),
            ("/srv/data", "/srv/data//", "place"),
            ("/srv/data", "srv/data", "place"),
            ("/srv/data", "none", "place"),
            ("/srv/data", "/srv/\\011x", "escape"),
            ("/srv/data", "/srv/\\134040", "escape"),
            ("ext4", "fuse", "type fuse"),
            ("ext4", "fuse.sshfs", "type fuse.sshfs"),
            ("ext4", "overlay", "type overlay"),
            ("ext4", "none", "type none"),
            ("ext4", "proc", "type proc"),
            ("ext4", "9p", "type 9p"),
            ("ext4", "ext4,fuse", "type ext4,fuse"),
            ("ext4", "udf,iso9660", "type udf,iso9660"),
            ("ext4", "EXT4", "type EXT4"),
            ("ext4", "tmpfs", "source"),
            ("ext4", "nfs", "source"),
            ("UUID=6a7b", "/srv/image", "source"),
            ("UUID=6a7b", "/dev/../srv/image", "source"),
            ("UUID=6a7b", "/dev//sdb1", "source"),
            ("UUID=6a7b", "UUID=\"6a7b\"", "source"),
            ("UUID=6a7b", "nas:/export", "source"),
            ("UUID=6a7b", "/devil/x", "source"),
            ("0 2", "0 3", "fields"),
            ("0 2", "0", ""),
            ("0 2", "0 2 x", "fields"),
            ("0 2", "2 0", "fields"),
            ("0 2", "0 2 # data", "fields"),
            ("nofail,nosuid,nodev 0 2", "", "fields"),
            ("ext4", "swap", "place"),
            ("/srv/data ext4", "none swap", "option nosuid"),
            ("UUID=6a7b", "UUID=6a7b\r", "different ways"),
            ("0 2", "0 2\r", "different ways"),
            ("UUID=6a7b", "UUID=6a7b\u{a0}x", "source"),
        ] {
            let line = good.replacen(from, to, 1);
            assert_ne!(line, good, "{from}");
            let (risk, reasons) = of_new(&line);
            let expected = if why.is_empty() { Risk::High } else { Risk::Critical };
            assert_eq!(risk, Some(expected), "{line}: {reasons}");
            assert!(reasons.contains(why), "{line}: {reasons}");
        }
        for line in [
            "UUID=6a7b none swap sw 0 0",
            "/srv/web/upload none swap sw,nofail 0 0",
            "/home/ada/linux-sysadmin-swap/x none swap sw,nofail 0 0",
            "UUID=6a7b none swap sw,nofail,x-systemd.makefs 0 0",
            "UUID=6a7b",
            "x",
            "\u{fffd} \u{fffd} \u{fffd} \u{fffd}",
        ] {
            assert_eq!(of_new(line).0, Some(Risk::Critical), "{line}");
        }
        let long =
            good.replace("nofail", &format!("nofail,{}", "ro,".repeat(LONGEST / 3).trim_end_matches(',')));
        assert!(of_new(&long).1.contains("different ways"));
    }

    #[test]
    fn comments_and_blanks_change_nothing() {
        for text in [
            FORMER.to_owned(),
            format!("# Ours\n{FORMER}\n\n   # UUID=6a7b / ext4 suid\n"),
            FORMER.replace(" / ", "\t/\t\t").replace("sw 0 0", "sw  0 0  "),
            FORMER.trim_end().to_owned(),
            FORMER.lines().skip(1).collect::<Vec<_>>().join("\n"),
        ] {
            assert_eq!(risk(FORMER, &text), (None, String::new()), "{text}");
        }
    }

    #[test]
    fn what_goes_is_high_where_the_machine_can_be_without_it() {
        let without = |part: &str| {
            let lines: Vec<&str> = FORMER.lines().filter(|line| !line.contains(part)).collect();
            risk(FORMER, &(lines.join("\n") + "\n"))
        };
        for (part, expected) in [
            ("/mnt/old", Risk::High),
            ("swap", Risk::High),
            ("/boot", Risk::Critical),
            ("UUID", Risk::Critical),
            ("errors", Risk::Critical),
        ] {
            let (risk, reasons) = without(part);
            assert_eq!(risk, Some(expected), "{part}: {reasons}");
            assert!(reasons.contains("loses `"), "{reasons}");
        }
        assert_eq!(risk(FORMER, "").0, Some(Risk::Critical));
        for line in
            ["/dev/x /mnt ext4 ro 0 0", "/dev/x /srv/../usr ext4 ro", "/dev/x", "/dev/x /srv/\\134 ext4 ro"]
        {
            let (risk, reasons) = risk(&format!("{FORMER}{line}\n"), FORMER);
            assert_eq!(risk, Some(Risk::Critical), "{line}: {reasons}");
        }
    }

    #[test]
    fn a_changed_line_is_a_new_one_and_one_that_goes() {
        let now = FORMER.replace("/mnt/old ext4 defaults", "/mnt/old ext4 nofail,nosuid,nodev");
        let (found, reasons) = risk(FORMER, &now);
        assert_eq!(found, Some(Risk::High), "{reasons}");
        assert!(
            reasons.contains("gets line 6, `/dev/sdb1 /mnt/old") && reasons.contains("loses `"),
            "{reasons}"
        );
        for now in [
            FORMER.replace("errors=remount-ro", "errors=remount-ro,nofail,nosuid,nodev"),
            FORMER.replace("UUID=0a1b-2c3d", "UUID=0a1b-2c3e"),
            format!("{}UUID=6a7b /srv/a ext4 nofail,nosuid,nodev 0 0", FORMER.trim_end()),
        ] {
            assert_eq!(risk(FORMER, &now).0, Some(Risk::Critical), "{now}");
        }
    }

    #[test]
    fn another_order_may_cover_a_mount() {
        let mut lines: Vec<&str> = FORMER.lines().collect();
        lines.swap(1, 2);
        assert_eq!(risk(FORMER, &lines.join("\n")).0, Some(Risk::Critical));
        // A second copy of a line is a new one.
        let twice = format!("{FORMER}/swapfile none swap sw 0 0\n");
        assert!(risk(FORMER, &twice).1.starts_with("gets line 7"));
        assert_eq!(risk(&twice, FORMER).0, Some(Risk::High));
    }

    #[test]
    fn without_a_former_text_all_lines_are_new() {
        assert_eq!(read(FORMER, None).effects[0].0, Risk::Critical);
        let only = "UUID=6a7b /srv/data ext4 nofail,nosuid,nodev 0 2\n";
        let [(Risk::High, _)] = read(only, None).effects[..] else { panic!("{:?}", read(only, None)) };
    }

    #[test]
    fn many_changes_are_told_in_few_sentences_the_gravest_first() {
        let many: String =
            (0..2000).map(|n| format!("/dev/a{n} /srv/{n} ext4 nofail,nosuid,nodev\n")).collect();
        let effects = read(&format!("{many}/dev/x / ext4 ro\n"), None).effects;
        assert_eq!(effects.len(), MOST + 1);
        assert_eq!((effects[0].0, effects[1].0), (Risk::Critical, Risk::High));
        assert_eq!(effects[MOST], (Risk::High, "has 1996 more changes".to_owned()));
    }
}
