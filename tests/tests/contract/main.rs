//! What holds wherever the program runs: the real binary, the tests' own modules and those that attack it. No test here
//! needs a host.

mod aliases;
mod asking;
mod asking_attacks;
mod asking_clients;
mod asking_terminal;
mod audit;
mod cli;
mod documentation;
mod hostile;
mod languages;
mod modules;
mod pins;
mod terminal;
