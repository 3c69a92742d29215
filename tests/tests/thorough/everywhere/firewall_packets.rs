//! Packets prove rules of the firewall that the host has, which is ufw or firewalld. A third of the 200 rule sets are walked
//! here, and the others in `further_firewall_packets` and `last_firewall_packets`: each change by firewalld starts several
//! programs in Python, and a process has limited time.

use crate::packet_walk::packets_prove_rules;

#[tokio::test]
async fn packets_prove_rules_of_the_hosts_own_firewall() {
    packets_prove_rules(None, 67, "packets_prove_rules_of_the_hosts_own_firewall").await;
}
