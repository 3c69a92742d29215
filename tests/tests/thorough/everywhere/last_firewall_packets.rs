//! Packets prove rules of the firewall that the host has: the last third of the 200 rule sets, see `firewall_packets`.

use crate::packet_walk::packets_prove_rules;

#[tokio::test]
async fn packets_prove_the_last_rules_of_the_hosts_own_firewall() {
    packets_prove_rules(None, 66, "packets_prove_the_last_rules_of_the_hosts_own_firewall").await;
}
