//! Packets prove rules of the table that the tools have for themselves: the other half of the 200 rule sets, see
//! `table_packets`.

use crate::packet_walk::packets_prove_rules;

#[tokio::test]
async fn packets_prove_further_rules_of_the_tools_own_table() {
    packets_prove_rules(Some("nftables"), 100, "packets_prove_further_rules_of_the_tools_own_table").await;
}
