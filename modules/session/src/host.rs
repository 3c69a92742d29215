//! A stand-in for the host in native builds. It knows nothing of a session, and has a few tools.

/// A tool as clients see it.
pub(crate) struct ListedTool {
    pub(crate) name: String,
    pub(crate) summary: String,
    pub(crate) domain: String,
    pub(crate) module: String,
}

pub(crate) fn session_snapshot() -> String {
    String::new()
}

pub(crate) fn session_refresh() -> linux_sysadmin_sdk::Result<String> {
    Ok(String::new())
}

pub(crate) fn sudoers_reference(_: &str) -> Option<String> {
    None
}

pub(crate) fn tools() -> Vec<ListedTool> {
    [
        ("lamp_paint", "Paint a lamp", "lamps", "Lamps"),
        ("lamp_switch", "", "lamps", "Lamps"),
        ("look_closely", "Look", "eyes", "Eyes"),
    ]
    .map(|(name, summary, domain, module)| ListedTool {
        name: name.to_owned(),
        summary: summary.to_owned(),
        domain: domain.to_owned(),
        module: module.to_owned(),
    })
    .into()
}

/// One of the tools is in every list.
pub(crate) fn list_tools(names: &[String]) -> Vec<String> {
    names.iter().filter(|name| *name != "look_closely").cloned().collect()
}
