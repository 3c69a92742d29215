//! Tests that take too long to run at every change: each point at which a server can be killed, properties of random plans,
//! many hosts at once, profiles on real services, each program that may own the settings of an interface, the own tests of
//! new modules, and the sdk as it is published. The module around a test says which hosts it needs. What is in `everywhere` runs
//! in each way in which a server can reach a host, as `way()` says.

mod packet_walk;

mod alone {
    mod asking_shown;
    mod new_modules;
    mod sdk_published;
}

mod everywhere {
    mod files;
    mod firewall_packets;
    mod further_firewall_packets;
    mod further_table_packets;
    mod last_firewall_packets;
    mod table_packets;
}

mod inside {
    mod killed_at_random;
    mod plans_killed;
    mod system_changes;
}

mod fleet {
    mod many_hosts;
}

mod stocked {
    mod knowledge;
    mod network_owners;
}

mod arch {
    mod packages_pacman;
}
