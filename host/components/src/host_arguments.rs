//! The names of the arguments that the host adds to tools. No module may use them for its own arguments.

/// The arguments of every listing.
pub const LISTING: [&str; 2] = ["limit", "filter"];

/// The argument of every tool that works on a target: names of hosts, groups or globs, also several in one text with
/// commas between them.
pub const HOST: &str = "host";

/// The argument of every tool that changes something.
pub const DRY_RUN: &str = "dry_run";

/// The argument that says which of several agents calls, where they share a server. No schema shows it.
pub const AGENT: &str = "agent_id";
/// The argument by which a client confirms a call that it makes for the second time.
pub const CONFIRMED: &str = "confirmed";

/// All arguments of the host.
pub const HOST_ARGUMENTS: [&str; 6] = [LISTING[0], LISTING[1], HOST, DRY_RUN, AGENT, CONFIRMED];
