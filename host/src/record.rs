//! stub
use crate::audit::{ChangeBegun, Decision, Event};
pub struct Answered<'a> {
    pub origin: &'a crate::origin::Origin,
    pub risk: Option<crate::capability::Risk>,
    pub decision: Decision,
    pub change: Option<String>,
    pub envelope: &'a crate::envelope::Envelope,
    pub executed: &'a crate::executed::Executed,
}
pub fn call(_: Answered<'_>) -> Event {
    Event::Call
}
