//! Tests that need several hosts and the network between them. Each module has a lab of its own while it runs, and may cut
//! cables and reboot hosts. What is in `thorough` takes too long to run at every change.

mod any_host;
mod bare;
mod firewall_lockout;
mod itself;
mod machine_power;
mod network_cut;
mod same_answers;
mod ssh_hardening;
mod ssh_host_keys;
mod ssh_known_hosts;
mod ssh_limits;
mod ssh_lockout;
mod ssh_lost;
mod ssh_pipelines;
mod ssh_tools;
mod ssh_ways;
mod talking;

mod thorough {
    mod one_half_of_same_answers;
    mod other_half_of_same_answers;
    mod ssh_lockout_at_random;
}
