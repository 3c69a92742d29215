//! Remarks of dnf and rpm in the output of a successful command: files that an administrator had changed, and scripts
//! that failed all the same.

use linux_sysadmin_sdk::packages::Remarks;
use linux_sysadmin_sdk::prelude::*;

pub fn remarks(output: &Output) -> Remarks {
    let mut remarks = Remarks::default();
    let text = format!("{}\n{}", output.text(), output.error_text());
    let mut note = |note: String| {
        if !remarks.notes.contains(&note) {
            remarks.notes.push(note);
        }
    };
    for line in text.lines().map(str::trim) {
        // rpm prints this line, and dnf 5 puts a sign before it: `>>> warning: /etc/x created as /etc/x.rpmnew`
        let warning = line.split_once("warning: ").map_or("", |(_, rest)| rest);
        let kept = warning.split_once(" created as ");
        let saved = warning.split_once(" saved as ").map(|(_, saved)| saved);
        if let Some((kept, new)) = kept {
            remarks.kept_config_files.push(kept.to_owned());
            note(format!("the package's own {kept} is in {new}"));
        } else if let Some(saved) = saved {
            remarks.kept_config_files.push(saved.to_owned());
        } else if line.contains("scriptlet failed") {
            note(format!("a script of a package failed: {line}"));
        } else if let Some(repositories) = line.strip_prefix("Ignoring repositories: ") {
            note(format!("repositories that couldn't be read were left out: {repositories}"));
        }
    }
    remarks
}
