//! Packets prove rules of the firewall that the host has, which is ufw or firewalld.

use crate::packet_walk::packets_prove_rules;

#[tokio::test]
async fn packets_prove_rules_of_the_hosts_own_firewall() {
    packets_prove_rules(None, "packets_prove_rules_of_the_hosts_own_firewall").await;
}
