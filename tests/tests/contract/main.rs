//! Tests of the real binary with the modules that ship, with the tests' own modules and with modules that attack. No test
//! here needs a host.

mod aliases;
mod asking;
mod asking_attacks;
mod asking_clients;
mod asking_terminal;
mod audit;
mod cli;
mod distribution;
mod doctor;
mod documentation;
mod expected;
mod grants;
mod hostile;
mod languages;
mod listing;
mod module_tests;
mod modules;
mod new_modules;
mod pins;
mod questions;
mod screens;
mod streams;
mod terminal;
mod tool_calls;
mod versions;
mod wrong_calls;
