//! `sec_update_check`: updates that mend holes in security, as the package manager's own lists know them.
//!
//! Nothing is read anew: the lists are those of the last refresh, whose age is told where it is old. apt's lists have
//! no CVEs, dnf's advisories have them.

use linux_sysadmin_sdk::packages::{Verb, advisory, apt_lines};
use linux_sysadmin_sdk::{DurationCategory, prelude::*, text};
use serde_json::json;

use crate::finding::{Finding, Found, Report};

/// The age of the lists from which they are called old, in days.
const OLD_DAYS: f64 = 7.0;

/// Files of which `apt-get update` writes one.
const STAMPS: [&str; 2] = ["/var/lib/apt/periodic/update-success-stamp", "/var/lib/apt/lists/partial"];

/// The file that packages of Debian leave where the machine should be rebooted.
const REBOOT: &str = "/run/reboot-required";

/// The most packages that the call which updates them names.
const NAMED: usize = 30;

/// The most CVEs of a package that an answer names.
const CVES: usize = 6;

pub(crate) fn tool(module: Module) -> Module {
    module.grants(grants).tool(
        Tool::new("sec_update_check", "Pending security updates, with advisories and CVEs", sec_update_check)
            .duration(DurationCategory::Normal),
    )
}

fn grants(module: Module) -> Module {
    module
        .command(apt_lines::NEWER.dry_run("which updates there are"))
        .command(advisory::ADVISORIES.read("which advisories there are"))
        .command(advisory::CVES.read("which CVEs updates fix"))
        .paths(STAMPS.map(|path| PathGrant::read(path, "when apt's lists were read last")))
        .path(PathGrant::read(REBOOT, "whether an update waits for a reboot"))
}

fn sec_update_check(_: NoArgs, cx: &Context) -> Result<Analysis<Report>> {
    Ok(find(cx)?.analysis("installed packages"))
}

/// The check as `sec_audit` runs it.
pub(crate) fn find(cx: &Context) -> Result<Found> {
    let mut found = Found::default();
    match cx.distro().package_manager.as_str() {
        "apt" => of_apt(&mut found, cx)?,
        "dnf" => of_dnf(&mut found, cx)?,
        other => found.unseen.push(format!("updates: apt and dnf are known, and this machine has {other}")),
    }
    // The names of all packages go into one call, unless they are too many to be told.
    let names: Vec<String> = found.findings.iter().map(|finding| finding.subject.clone()).collect();
    let mend = if names.len() > NAMED { json!({"security_only": true}) } else { json!({"package": names}) };
    for finding in &mut found.findings {
        *finding = finding.clone().mend("pkg_update", mend.clone());
    }
    if let Some(Ok(Some(_))) = cx.stat_all(&[REBOOT]).into_iter().next() {
        found.push(
            Finding::new(
                Severity::Warning,
                "update-reboot",
                "kernel or libraries",
                "updated, and not in use until a reboot",
            )
            .mend("machine_reboot", json!({})),
        );
    }
    Ok(found)
}

/// The commands that don't wait for another one.
pub(crate) fn ahead(cx: &Context) -> Vec<Command> {
    match cx.distro().package_manager.as_str() {
        "apt" => vec![look(apt_lines::NEWER)],
        "dnf" => [advisory::ADVISORIES, advisory::CVES].map(look).into(),
        _ => Vec::new(),
    }
}

fn look(line: CommandLine) -> Command {
    line.command().duration(DurationCategory::Normal)
}

fn of_apt(found: &mut Found, cx: &Context) -> Result<()> {
    let output = cx.run(look(apt_lines::NEWER))?;
    if output.exit_code != 0 {
        found.unseen.push(format!("updates: apt-get says: {}", text::of_line(&output.error_text())));
        return Ok(());
    }
    let output = output.success("apt-get --simulate")?;
    let said = output.text();
    let of_apt = ["Reading package lists", "Inst ", "Conf ", "Remv ", "Purg "];
    let is_of_apt = |line: &str| of_apt.iter().any(|begin| line.starts_with(begin));
    if !said.trim().is_empty() && !said.lines().any(is_of_apt) {
        return Err(Problem::unexpected("apt-get --simulate", &said));
    }
    for line in said.lines() {
        let Some(line) = apt_lines::operation(line, &[])? else { continue };
        if line.operation.verb == Verb::Upgrade && apt_lines::is_security(&line.origins) {
            let evidence =
                format!("{} is installed, {} is the update", line.operation.from, line.operation.to);
            found.push(Finding::new(Severity::High, "update-security", line.operation.name, evidence));
        }
    }
    let stamps = cx.stat_all(&STAMPS).into_iter().filter_map(|stamp| stamp.ok().flatten());
    let read = stamps.map(|stamp| stamp.modified_unix as f64).reduce(f64::max);
    let days = read.map(|read| ((cx.now() - read) / 86_400.0).floor());
    if let Some(days) = days.filter(|days| *days > OLD_DAYS) {
        found.unseen.push(format!(
            "updates of the last {days} days: the lists are that old; `pkg_update` with refresh_only reads them anew"
        ));
    }
    if said.trim().is_empty() {
        found.unseen.push("updates: apt-get printed nothing".to_owned());
    }
    Ok(())
}

fn of_dnf(found: &mut Found, cx: &Context) -> Result<()> {
    let [advisories, cves] = cx.run_each([advisory::ADVISORIES, advisory::CVES].map(look));
    let (advisories, cves) = (advisories?, cves?);
    if let Some(failed) = [&advisories, &cves].into_iter().find(|output| output.exit_code != 0) {
        found.unseen.push(format!("updates: dnf says: {}", text::of_line(&failed.error_text())));
        return Ok(());
    }
    let settled = advisory::read(&advisories.text(), &cves.text());
    if settled.is_empty() && !advisories.text().trim().is_empty() {
        return Err(Problem::unexpected("dnf updateinfo list", &advisories.text()));
    }
    if advisories.truncated || cves.truncated {
        found.unseen.push("some updates: dnf prints more advisories than are kept".to_owned());
    }
    for (package, settled) in settled {
        if !settled.security {
            continue;
        }
        let severity = match settled.severity.as_deref() {
            Some("Critical") => Severity::Critical,
            Some("Important") => Severity::High,
            _ => Severity::Warning,
        };
        let mut evidence = settled.advisories.join(", ");
        if let Some(word) = &settled.severity {
            evidence = format!("{word}: {evidence}");
        }
        if !settled.cves.is_empty() {
            evidence += &format!("; fixes {}", text::list(&settled.cves, CVES));
        }
        found.push(Finding::new(severity, "update-security", package, evidence));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    const APT: [&str; 5] = ["apt-get", "--simulate", "--quiet", "--ignore-hold", "full-upgrade"];
    const DNF: [&str; 6] = ["dnf", "--quiet", "--cacheonly", "updateinfo", "list", "--updates"];

    fn call(host: FakeTarget) -> Result<serde_json::Value> {
        let module = tool(Module::new("m", "1", "security", ""));
        host.call(&module, "sec_update_check", json!({})).map(|(data, _)| data)
    }

    fn with_dnf(advisories: &str, cves: &str) -> FakeTarget {
        let mut host = FakeTarget::new();
        host.distro.package_manager = "dnf".into();
        host.answer(&DNF, 0, advisories, "").answer(&[&DNF[..], &["--with-cve"]].concat(), 0, cves, "")
    }

    #[test]
    fn apts_security_updates_are_those_of_its_security_archives() {
        // Lines of what apt-get 2.6.1 printed on Debian 12, but for the last `Inst` line: a package that is installed
        // anew is written by hand in the same format.
        let said = "Reading package lists...\n\
            Inst base-files [12.4+deb12u11] (12.4+deb12u15 Debian:12.15/oldstable [amd64])\n\
            Inst liblzma5 [5.4.1-1] (5.4.1-1+deb12u2 Debian-Security:12/oldstable-security [amd64])\n\
            Inst libgcrypt20-dev [1.10.1-3] (1.10.1-3+deb12u1 Debian:12.15/oldstable, Debian-Security:12/oldstable-security [amd64]) []\n\
            Inst linux-image-6.1.0-40-amd64 (6.1.153-1 Debian-Security:12/oldstable-security [amd64])\n\
            Conf liblzma5 (5.4.1-1+deb12u2 Debian-Security:12/oldstable-security [amd64])\n";
        let host =
            FakeTarget::new().answer(&APT, 0, said, "").file(REBOOT, "*** System restart required ***\n");
        let data = call(host.at(1e9)).unwrap();
        let entries = data["findings"].as_array().unwrap();
        assert_eq!((entries.len(), entries[0]["kind"].as_str().unwrap()), (2, "update-security"));
        let subjects = [
            "liblzma5: 5.4.1-1 is installed, 5.4.1-1+deb12u2 is the update",
            "libgcrypt20-dev: 1.10.1-3 is installed, 1.10.1-3+deb12u1 is the update",
        ];
        assert_eq!(entries[0]["subjects"], json!(subjects));
        assert_eq!(entries[0]["mend"]["arguments"], json!({"package": ["liblzma5", "libgcrypt20-dev"]}));
        assert_eq!(entries[1]["kind"], "update-reboot");
        assert_eq!(
            call(FakeTarget::new().answer(&APT, 0, "Reading package lists...\n", "")).unwrap(),
            json!({})
        );
    }

    #[test]
    fn dnfs_advisories_come_with_their_severity_and_cves() {
        // Written by hand in the columns of dnf 4.14.
        let advisories = "RHSA-2026:0001 Critical/Sec.  bash-5.1.8-9.el9.x86_64\n\
            RHSA-2026:0002 Moderate/Sec.  curl-7.76.1-31.el9.x86_64\n\
            RHBA-2026:0003 bugfix         tzdata-2026a-1.el9.noarch\n";
        let cves = "CVE-2026-1 Critical/Sec.  bash-5.1.8-9.el9.x86_64\nCVE-2026-2 Critical/Sec.  bash-5.1.8-9.el9.x86_64\n";
        let data = call(with_dnf(advisories, cves)).unwrap();
        let expected = json!({"findings": [{
            "severity": "critical",
            "kind": "update-security",
            "subjects": [
                "bash: Critical: RHSA-2026:0001; fixes CVE-2026-1, CVE-2026-2",
                "curl: Moderate: RHSA-2026:0002",
            ],
            "mend": {"tool": "pkg_update", "arguments": {"package": ["bash", "curl"]}},
            "reference": "CCE-84185-8",
        }]});
        assert_eq!(data, expected);
        assert_eq!(call(with_dnf("", "")).unwrap(), json!({}));
    }

    #[test]
    fn what_a_manager_cannot_say_is_unseen_and_not_clean() {
        let locked = "E: Could not open lock file /var/lib/apt/lists/lock - open (13: Permission denied)";
        let data = call(FakeTarget::new().answer(&APT, 100, "", locked)).unwrap();
        assert!(data["unseen"][0].as_str().unwrap().contains("lock file"));
        let error = "Error: Cache-only enabled but no cache for 'dead'\n";
        let mut failed = FakeTarget::new().answer(&DNF, 1, "", error);
        failed.distro.package_manager = "dnf".into();
        let data = call(failed.answer(&[&DNF[..], &["--with-cve"]].concat(), 1, "", error)).unwrap();
        assert!(data.get("findings").is_none() && data["unseen"][0].as_str().unwrap().contains("no cache"));
        let mut host = FakeTarget::new();
        host.distro.package_manager = "none".into();
        assert!(call(host).unwrap()["unseen"][0].as_str().unwrap().contains("none"));
        let odd = call(FakeTarget::new().answer(&APT, 0, "Inst libc6 [2.36] without more\n", ""));
        assert_eq!(odd.unwrap_err().code, "UNEXPECTED_OUTPUT");
        let old = FakeTarget::new().answer(&APT, 0, "", "").file(STAMPS[0], "").at(30.0 * 86_400.0);
        assert!(call(old).unwrap()["unseen"][0].as_str().unwrap().contains("30 days"));
    }
}
