//! The section `knowledge` of the configuration.

use serde::Deserialize;

/// The profiles of services that are used: those that come with this program, and one's own in `knowledge` beside the
/// configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The further directories of profiles. The paths are absolute or begin with `~/`.
    pub additional_paths: Vec<String>,
    /// The ids of profiles that are not used.
    pub disabled_profiles: Vec<String>,
    /// Read-only commands that one's own profiles may have besides the usual ones, as patterns.
    pub commands: Vec<String>,
}
