//! Packets prove rules of the firewall that the host has, which is ufw or firewalld. Half of the 200 rule sets are walked here,
//! and half in `firewall_packets`, since a process has limited time.

use crate::packet_walk::packets_prove_rules;

#[tokio::test]
async fn packets_prove_further_rules_of_the_hosts_own_firewall() {
    packets_prove_rules(None, 100, "packets_prove_further_rules_of_the_hosts_own_firewall").await;
}
