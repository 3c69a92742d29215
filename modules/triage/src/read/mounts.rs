//! Mounts that failed, that are missing, or that hide each other.

use linux_sysadmin_sdk::Severity;

use crate::call::{Call, Form};
use crate::envelope::{Envelope, raw, said};
use crate::finding::{Finding, Kind};
use crate::notebook::Notebook;

/// Reads `mount_list`.
pub(crate) fn listed(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    for item in envelope.items() {
        let options = raw(item, "options").unwrap_or_default();
        let reason = said(item, "reason").unwrap_or_default();
        let is_read_only = options.split(',').any(|option| option == "ro");
        let (grade, is) = match raw(item, "state") {
            Some("failed") => (Severity::High, "couldn't be mounted"),
            Some("not_mounted") => (Severity::High, "isn't mounted, and fstab has it"),
            Some("other_source") => (Severity::Warning, "is another device than fstab says"),
            Some("options_differ") if is_read_only => {
                (Severity::Critical, "is read-only, and fstab says otherwise")
            }
            Some("hidden") => (Severity::Warning, "is hidden by another mount"),
            _ => continue,
        };
        let Some(point) = said(item, "mount_point") else { continue };
        let finding = Finding::new(Kind::Disk, grade, format!("{point} {is}"))
            .fits(&[Kind::Service])
            .evidence(reason)
            .evidence(said(item, "source").unwrap_or_default())
            .name(point.clone())
            .call([Call::new("mount_list").of("filter", Form::Path, &point), Some(Call::new("mount_list"))]);
        notebook.add(finding);
    }
}
