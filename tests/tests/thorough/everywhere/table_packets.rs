//! Packets prove rules of the table that the tools have for themselves.

use crate::packet_walk::packets_prove_rules;

#[tokio::test]
async fn packets_prove_rules_of_the_tools_own_table() {
    packets_prove_rules(Some("nftables"), 200, "packets_prove_rules_of_the_tools_own_table").await;
}
