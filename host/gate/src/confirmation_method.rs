//! The ways by which a question reaches the one who answers it.

/// The way by which a question reaches the one who answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmationMethod {
    /// The call is answered "input required", and the client calls again with the answer (MCP 2026-07-28).
    InputRequired,
    /// The client is asked while the call goes on (elicitation, in older versions of MCP).
    Elicitation,
    /// The client calls again and says that the call is confirmed.
    TwoStep,
    /// A person runs `linux-sysadmin approve`, and the client calls again for the outcome.
    Terminal,
}

impl ConfirmationMethod {
    /// The name in the configuration and in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::InputRequired => "input-required",
            Self::Elicitation => "elicitation",
            Self::TwoStep => "two-step",
            Self::Terminal => "terminal",
        }
    }
}
