//! The names of the arguments that the host adds to tools. No module may use them for anything else.

/// What listings take besides their own arguments. Without descriptions: the server's instructions have them once.
pub const LISTING: [&str; 2] = ["limit", "filter"];

/// What every tool takes that works where the caller says: names of hosts, groups, globs. One text may hold several,
/// with commas between them.
pub const HOST: &str = "host";

/// What every tool takes that changes something.
pub const DRY_RUN: &str = "dry_run";

/// What every tool takes, though no schema shows it: which of several agents asks, where they share a server.
pub const AGENT: &str = "agent_id";
/// What a client says in the second of two steps.
pub const CONFIRMED: &str = "confirmed";

/// Every argument that is the host's.
pub const COMMON: [&str; 6] = [LISTING[0], LISTING[1], HOST, DRY_RUN, AGENT, CONFIRMED];
