//! Software RAID, by `/proc/mdstat`: see md(4) and the kernel's `drivers/md/md.c`.

pub(crate) const MDSTAT: &str = "/proc/mdstat";

/// An array.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Array {
    /// The kernel's name, such as `md0`.
    pub(crate) name: String,
    pub(crate) is_active: bool,
    /// The level, such as `raid1`.
    pub(crate) level: Option<String>,
    /// The number of members that it should have, and of those that work.
    pub(crate) members: Option<(u32, u32)>,
    /// The members that have failed.
    pub(crate) failed: Vec<String>,
    /// What is under way, such as `recovery = 12.6 %, 3 min left`.
    pub(crate) action: Option<String>,
}

impl Array {
    pub(crate) fn is_degraded(&self) -> bool {
        self.members.is_some_and(|(wanted, working)| working < wanted)
    }

    /// Whether the array can lose no further member, or has lost its data.
    pub(crate) fn is_unprotected(&self) -> bool {
        let missing = self.members.map_or(0, |(wanted, working)| wanted.saturating_sub(working));
        match self.level.as_deref() {
            Some("raid6") => missing > 1,
            _ => missing > 0,
        }
    }

    /// The state in a few words.
    pub(crate) fn state(&self) -> String {
        let mut said = Vec::new();
        if !self.is_active {
            said.push("inactive".to_owned());
        }
        if let Some((wanted, working)) = self.members.filter(|_| self.is_degraded()) {
            said.push(format!("degraded: {working} of {wanted} members work"));
        }
        if !self.failed.is_empty() {
            said.push(format!("failed: {}", self.failed.join(", ")));
        }
        said.extend(self.action.clone());
        if said.is_empty() { "ok".to_owned() } else { said.join("; ") }
    }
}

/// The arrays in the file. The lines of one begin with its name and go on with blanks before them.
pub(crate) fn parse(text: &str) -> Vec<Array> {
    let mut arrays: Vec<Array> = Vec::new();
    for line in text.lines() {
        let is_first = !line.starts_with(' ') && !line.starts_with('\t');
        match (is_first, line.split_once(" : ")) {
            (true, Some((name, rest))) if name != "Personalities" => arrays.push(first(name, rest)),
            (false, _) => {
                if let Some(array) = arrays.last_mut() {
                    further(array, line.trim());
                }
            }
            _ => {}
        }
    }
    arrays
}

fn first(name: &str, rest: &str) -> Array {
    let mut words = rest.split_whitespace();
    let is_active = words.next() == Some("active");
    let mut array = Array { name: name.to_owned(), is_active, ..Array::default() };
    for word in words.filter(|word| !word.starts_with('(')) {
        match word.split_once('[') {
            Some((member, flags)) if flags.contains("(F)") => array.failed.push(member.to_owned()),
            Some(_) => {}
            None => array.level = Some(word.to_owned()),
        }
    }
    array
}

fn further(array: &mut Array, line: &str) {
    let counts = line.split_whitespace().find_map(|word| {
        let (wanted, working) = word.strip_prefix('[')?.strip_suffix(']')?.split_once('/')?;
        Some((wanted.parse().ok()?, working.parse().ok()?))
    });
    if counts.is_some() && line.contains("blocks") {
        array.members = counts;
    }
    for action in ["recovery", "resync", "reshape", "check", "repair"] {
        let Some((_, rest)) = line.split_once(action) else { continue };
        if let Some(state) = rest.trim_start().strip_prefix('=').map(str::trim_start) {
            array.action = Some(progress(action, state));
            return;
        }
    }
}

/// The kernel writes `12.6% (132352/1046528) finish=0.5min speed=26470K/sec`, or a word such as `PENDING`.
fn progress(action: &str, state: &str) -> String {
    let percent = state.split('%').next().filter(|_| state.contains('%'));
    let left = state.split_once("finish=").and_then(|(_, rest)| rest.split("min").next());
    match (percent, left) {
        (Some(percent), Some(left)) => format!("{action} {percent} %, {left} min left"),
        (Some(percent), None) => format!("{action} {percent} %"),
        _ => format!("{action} {}", state.split_whitespace().next().unwrap_or_default().to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the form of md.c of Linux 6.1 (`md_seq_show` and `status_resync`), whose kernel no test host has.
    const TEXT: &str = "\
Personalities : [raid1] [raid6] [raid5] [raid4]
md0 : active raid1 sdb1[2] sda1[0]
      1046528 blocks super 1.2 [2/1] [U_]
      [==>..................]  recovery = 12.6% (132352/1046528) finish=0.5min speed=26470K/sec
      bitmap: 0/1 pages [0KB], 65536KB chunk

md1 : active raid5 sde1[3](F) sdd1[1] sdc1[0]
      2093056 blocks super 1.2 level 5, 512k chunk, algorithm 2 [3/2] [UU_]

md127 : active (auto-read-only) raid6 sdf1[0] sdg1[1] sdh1[2] sdi1[3]
      2093056 blocks super 1.2 level 6, 512k chunk, algorithm 2 [4/4] [UUUU]
      \tresync=PENDING

md2 : inactive sdz1[1](S)
      1046528 blocks super 1.2

md3 : active raid0 sdx[1] sdw[0]
      2093056 blocks super 1.2 512k chunks

unused devices: <none>
";

    #[test]
    fn each_array_says_its_state() {
        let said: Vec<_> = parse(TEXT)
            .into_iter()
            .map(|array| (array.name.clone(), array.state(), array.is_degraded(), array.is_unprotected()))
            .collect();
        let expected = [
            ("md0", "degraded: 1 of 2 members work; recovery 12.6 %, 0.5 min left", true, true),
            ("md1", "degraded: 2 of 3 members work; failed: sde1", true, true),
            ("md127", "resync pending", false, false),
            ("md2", "inactive", false, false),
            ("md3", "ok", false, false),
        ];
        let expected =
            expected.map(|(name, state, degraded, bare)| (name.into(), state.into(), degraded, bare));
        assert_eq!(said, expected);
        let six = Array { level: Some("raid6".into()), members: Some((4, 3)), ..Array::default() };
        assert!(six.is_degraded() && !six.is_unprotected());
    }

    #[test]
    fn a_file_without_arrays_or_of_another_form_has_none() {
        for text in ["", "Personalities : \nunused devices: <none>\n", "garbage\n [1/2] blocks\n"] {
            assert!(parse(text).is_empty(), "{text}");
        }
    }
}
