//! Packets prove rules of the table that the tools have for themselves. Half of the 200 rule sets are walked here, and half in
//! `further_table_packets`, since a process has limited time.

use crate::packet_walk::packets_prove_rules;

#[tokio::test]
async fn packets_prove_rules_of_the_tools_own_table() {
    packets_prove_rules(Some("nftables"), 100, "packets_prove_rules_of_the_tools_own_table").await;
}
