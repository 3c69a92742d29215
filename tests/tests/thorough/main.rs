//! What takes too long to run at every change: each point at which a server can be killed, properties of made-up plans,
//! many hosts at once, and profiles held against real services. The name of the module around a test says which hosts it
//! needs.

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
