//! Names of systemd's units.

/// The types of units in systemd.unit(5), as suffixes of names.
pub const TYPES: [&str; 11] = [
    ".service",
    ".socket",
    ".device",
    ".mount",
    ".automount",
    ".swap",
    ".target",
    ".path",
    ".timer",
    ".slice",
    ".scope",
];

/// The name with its type, as systemctl understands it: `nginx` is `nginx.service`. A name may have dots of its own, as
/// `php8.2-fpm` has.
pub fn with_type(name: &str) -> String {
    match TYPES.iter().any(|suffix| name.ends_with(suffix)) {
        true => name.to_owned(),
        false => format!("{name}.service"),
    }
}
