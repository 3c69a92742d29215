//! The section `knowledge` of the configuration.

use serde::Deserialize;

/// Profiles of services: those that come with this program, and one's own in `knowledge` beside the configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Further directories of profiles, absolute or with `~/` before them.
    pub additional_paths: Vec<String>,
    /// Ids of profiles that aren't used.
    pub disabled_profiles: Vec<String>,
    /// Read-only commands that one's own profiles may have besides the usual ones, as grants.
    pub commands: Vec<String>,
}
