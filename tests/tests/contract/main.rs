//! Tests of the real binary with the modules that ship, with the tests' own modules and with modules that attack. No test
//! here needs a host.

mod aliases;
mod asking;
mod asking_attacks;
mod asking_clients;
mod asking_terminal;
mod audit;
mod cli;
mod doctor;
mod documentation;
mod expected;
mod grants;
mod hostile;
mod languages;
mod listing;
mod modules;
mod pins;
mod screens;
mod terminal;
mod tool_calls;
mod wrong_calls;
