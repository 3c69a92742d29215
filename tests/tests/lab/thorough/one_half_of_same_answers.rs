//! One half of the tools answers the same inside each host and over SSH, to root and to an account with sudo.

use crate::same_answers::{Half, answers_are_the_same};

#[test]
fn every_tool_answers_both_accounts_the_same_inside_each_host_and_over_ssh() {
    let accounts = &["root", "admin"][..];
    let hosts = [("debian1", accounts), ("rhel1", accounts)];
    let never_seen = answers_are_the_same(Half(0), "one_half_answers_the_same_to_both", hosts);
    assert_eq!(never_seen.unwrap_or_default(), Vec::<String>::new(), "no answer has these parts");
}
