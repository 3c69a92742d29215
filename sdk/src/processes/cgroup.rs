//! `/proc/PID/cgroup`, see cgroups(7): the unit and the container that a process belongs to.

/// The path of the control group in which systemd keeps the process.
///
/// With cgroup v2 it is the line `0::PATH`. Where version 1 is mounted as well, one of the two lines holds the root only.
pub fn path(cgroup: &str) -> Option<&str> {
    let with = |prefix: &str| cgroup.lines().find_map(|line| line.split_once(prefix).filter(found_at_begin));
    let unified = with("::").map(|(_, path)| path);
    let named = with(":name=systemd:").map(|(_, path)| path);
    unified.filter(|path| *path != "/").or(named).or(unified)
}

/// Says whether what stands before the separator is the number of the hierarchy.
fn found_at_begin((number, _): &(&str, &str)) -> bool {
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The unit of the system's manager, as `ps -o unit` shows it: the first part of the path that is no slice. None for a
/// process outside of every unit.
pub fn unit(cgroup: &str) -> Option<&str> {
    let part = path(cgroup)?.split('/').find(|part| !part.is_empty() && !part.ends_with(".slice"))?;
    let part = part.strip_prefix('_').unwrap_or(part);
    [".service", ".scope", ".socket", ".mount", ".swap"]
        .iter()
        .any(|suffix| part.ends_with(suffix))
        .then_some(part)
}

/// Says whether one part of the path is this unit or slice. A unit of a user's manager counts as well.
pub fn is_below(cgroup: &str, unit: &str) -> bool {
    path(cgroup)
        .is_some_and(|path| path.split('/').any(|part| part.strip_prefix('_').unwrap_or(part) == unit))
}

/// The container or virtual machine: the program that made it, and the container's id or the machine's name.
pub fn container(cgroup: &str) -> Option<(&'static str, &str)> {
    // Docker without systemd has a control group of its own only in some of the lines.
    let mut parts = cgroup.lines().flat_map(|line| line.splitn(3, ':').nth(2).unwrap_or_default().split('/'));
    let mut before = "";
    parts.find_map(|part| {
        let found = named(before, part);
        before = part;
        found
    })
}

fn named<'a>(before: &str, part: &'a str) -> Option<(&'static str, &'a str)> {
    const SCOPES: [(&str, &str); 5] = [
        ("docker-", "docker"),
        ("libpod-", "podman"),
        ("cri-containerd-", "containerd"),
        ("crio-", "cri-o"),
        ("lxc-", "lxc"),
    ];
    let name = part.strip_suffix(".scope").unwrap_or(part);
    if let Some(found) = SCOPES.iter().find_map(|(prefix, kind)| Some((*kind, name.strip_prefix(prefix)?))) {
        return Some(found).filter(|(_, id)| !id.starts_with("conmon") && is_id(id));
    }
    if let Some(machine) = part.strip_prefix("lxc.payload.") {
        return Some(("lxc", machine));
    }
    if let Some(machine) = part.strip_prefix("systemd-nspawn@").and_then(|part| part.strip_suffix(".service"))
    {
        return Some(("nspawn", machine));
    }
    if let Some(machine) = part.strip_prefix("machine-").and_then(|part| part.strip_suffix(".scope")) {
        return Some(("machine", machine));
    }
    match before {
        "docker" if is_id(part) => Some(("docker", part)),
        "lxc" if !part.is_empty() => Some(("lxc", part)),
        _ => None,
    }
}

fn is_id(text: &str) -> bool {
    text.len() >= 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_the_unit_that_ps_shows() {
        // The paths are as systemd 252 makes them; hybrid hierarchies are as in a container of systemd-nspawn.
        for (cgroup, expected) in [
            ("0::/init.scope\n", Some("init.scope")),
            ("0::/system.slice/cron.service\n", Some("cron.service")),
            ("0::/system.slice/system-getty.slice/getty@tty1.service\n", Some("getty@tty1.service")),
            ("0::/user.slice/user-1000.slice/session-3.scope\n", Some("session-3.scope")),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.service\n",
                Some("user@1000.service"),
            ),
            ("0::/system.slice/docker.service/inner\n", Some("docker.service")),
            ("9:name=systemd:/\n8:pids:/\n0::/system.slice/nginx.service\n", Some("nginx.service")),
            ("3:cpu:/x\n1:name=systemd:/system.slice/nginx.service\n0::/\n", Some("nginx.service")),
            ("1:name=systemd:/system.slice/a::b.service\n", Some("a::b.service")),
            ("0::/_odd.service\n", Some("odd.service")),
            ("0::/docker/0123\n", None),
            ("0::/user.slice\n", None),
            ("0::/\n", None),
            // The group lies outside of what the reader's namespace shows.
            ("0::/../../x.service", None),
            ("", None),
            ("garbage", None),
        ] {
            assert_eq!(unit(cgroup), expected, "{cgroup}");
        }
    }

    #[test]
    fn a_unit_of_a_user_and_a_slice_are_found_in_the_path() {
        let cgroup = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.service\n";
        for unit in ["user.slice", "user@1000.service", "a.service"] {
            assert!(is_below(cgroup, unit), "{unit}");
        }
        assert!(!is_below(cgroup, "service") && !is_below("", ""));
    }

    #[test]
    fn a_container_is_told_with_its_id_or_name() {
        let id = "3f4e1b0a9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f";
        for (cgroup, kind) in [
            (format!("0::/system.slice/docker-{id}.scope\n"), "docker"),
            (format!("0::/docker/{id}\n"), "docker"),
            (format!("4:memory:/docker/{id}\n0::/\n"), "docker"),
            (format!("0::/machine.slice/libpod-{id}.scope/container\n"), "podman"),
            (format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope\n"), "containerd"),
        ] {
            assert_eq!(container(&cgroup), Some((kind, id)), "{cgroup}");
        }
        for (cgroup, expected) in [
            ("0::/lxc.payload.web1/system.slice/cron.service\n", Some(("lxc", "web1"))),
            ("0::/lxc/web1\n", Some(("lxc", "web1"))),
            ("0::/machine.slice/systemd-nspawn@web1.service/payload/init.scope\n", Some(("nspawn", "web1"))),
            ("0::/machine.slice/machine-qemu\\x2d1.scope\n", Some(("machine", "qemu\\x2d1"))),
            ("0::/machine.slice/libpod-conmon-3f4e1b0a9c8d.scope\n", None),
            ("0::/system.slice/docker.service\n", None),
            ("0::/system.slice/docker-compose.scope\n", None),
            ("", None),
        ] {
            assert_eq!(container(cgroup), expected, "{cgroup}");
        }
    }
}
