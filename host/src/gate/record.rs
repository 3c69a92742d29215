//! stub
use super::Asking;
use super::execute::Ran;
use super::prepare::Plan;
use crate::audit::{ChangeBegun, Event};
pub fn change_begun(_: &str, _: &Asking, _: &Plan, _: serde_json::Value, _: String) -> ChangeBegun {
    ChangeBegun
}
pub fn change_ended(_: &str, _: &Ran, _: bool) -> Event {
    Event::Ended
}
