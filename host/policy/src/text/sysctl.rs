//! Reads values of the kernel in the form of sysctl.d(5). Only those that tune it are harmless: the set `tuning` of the rules
//! lists them, so that a file and a command are judged by the same list.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::{Code, shown};
use crate::glob::{self, Met};
use crate::load::builtin_words;

static TUNING: LazyLock<Vec<String>> = LazyLock::new(|| builtin_words("tuning"));

/// Finds the values that aren't known to be harmless, and those of the former text that are no longer set.
pub fn read(text: &str, former: Option<&str>) -> Code {
    let mut code = Code::default();
    // systemd ends a line at a carriage return as well.
    if text.contains(|character: char| character.is_control() && !matches!(character, '\n' | '\t')) {
        code.cannot_read("a text with control characters");
    }
    let values = grave(text);
    for (key, value) in &values {
        code.add_power(format_args!(
            "sets {} to {}, which is not known to be mere tuning of the kernel",
            shown(key),
            shown(value)
        ));
    }
    for key in former.map(grave).unwrap_or_default().into_keys().filter(|key| !values.contains_key(key)) {
        code.add_power(format_args!("no longer sets {}, which may protect the machine", shown(key)));
    }
    code
}

/// The values that are not in the list. A line without a value counts with its whole text.
fn grave(text: &str) -> BTreeMap<&str, &str> {
    let lines =
        text.split('\n').map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    let of_line = lines.filter_map(|line| match line.split_once('=') {
        Some((key, value)) => (!is_tuning(key.trim(), value.trim())).then_some((key.trim(), value.trim())),
        None => Some((line, "")),
    });
    of_line.collect()
}

fn is_tuning(key: &str, value: &str) -> bool {
    let set = format!("{key}={value}");
    TUNING.iter().any(|glob| glob::word(glob, &set) == Met::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_that_tune_the_kernel_are_harmless() {
        let tuned =
            "# Ours\n; too\n\nvm.swappiness = 10\nnet.core.somaxconn\t=\t4096\nkernel.pid_max=4194304\n";
        assert_eq!(read(tuned, None), Code::default());
        for line in [
            "kernel.core_pattern=|/tmp/x",
            "-kernel.modprobe = /tmp/x",
            "net.ipv4.ip_forward=1",
            "vm/swappiness=1",
            "vm.swap*=1",
            "-vm.swappiness",
            "vm.swappiness",
            "-vm.swappiness=1",
            "kernel.pid_max=301",
            "net.ipv4.tcp_mem=1 1 1",
            "fs.file-max=100",
            "vm.max_map_count=0262144",
            "vm.dirty_/../../kernel/core_pattern=|/tmp/x",
            "net.ipv4.tcp_syncookies=0",
            "vm.overcommit_memory=2",
            "=1",
        ] {
            assert_eq!(read(line, None).power.len(), 1, "{line}");
        }
        let hidden = "vm.swappiness=1\rkernel.core_pattern=|/tmp/x\n";
        assert!(read(hidden, None).unreadable.is_some());
    }

    #[test]
    fn a_value_that_is_taken_away_counts_unless_it_tunes() {
        let former = "kernel.kptr_restrict=2\nvm.swappiness=10\n";
        assert_eq!(
            read("", Some(former)).power,
            ["no longer sets kernel.kptr_restrict, which may protect the machine"]
        );
        assert_eq!(read("kernel.kptr_restrict=2\n", Some("vm.swappiness=10\n")).power.len(), 1);
    }
}
