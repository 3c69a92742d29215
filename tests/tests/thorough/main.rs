//! Tests that take too long to run at every change: each point at which a server can be killed, properties of random plans,
//! many hosts at once, and profiles on real services. The module around a test says which hosts it needs.

mod alone {
    mod asking_shown;
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
}
