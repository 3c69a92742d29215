//! What dnf and rpm say beside having succeeded: files that an administrator had changed, scripts that failed all the same.

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
        // rpm's, in dnf 5 behind a sign of its own: `>>> warning: /etc/x created as /etc/x.rpmnew`
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
            note(format!("couldn't be read, and were left out: {repositories}"));
        }
    }
    remarks
}
