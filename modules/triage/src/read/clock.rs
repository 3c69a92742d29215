//! The clock.

use linux_sysadmin_sdk::Severity;

use crate::call::{self, Call};
use crate::envelope::{Envelope, is, raw, said};
use crate::finding::{Finding, Kind};
use crate::notebook::Notebook;

/// Reads `machine_time`.
pub(crate) fn shown(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let data = envelope.data();
    if data["synchronized"].as_bool() == Some(false) {
        let time = said(data, "time").map(|time| format!("it shows {time}")).unwrap_or_default();
        let mut finding = Finding::new(Kind::Time, Severity::Warning, "the clock isn't synchronized")
            .fits(&[Kind::Certificate])
            .evidence(time)
            .call([raw(data, "next").and_then(call::next), Some(Call::new("machine_time"))]);
        finding.cause = said(data, "why");
        notebook.add(finding);
    }
    if is(data, "rtc_in_local_time") {
        let what = "the hardware's clock has the local time, which is wrong for hours when that changes";
        notebook.add(Finding::new(Kind::Time, Severity::Info, what).call([Some(Call::new("machine_time"))]));
    }
}
