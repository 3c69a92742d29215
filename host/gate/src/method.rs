//! The ways by which a question reaches whoever answers it.

/// How a question reaches whoever answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmationMethod {
    /// The call is answered "input required", and made again with the answer (MCP 2026-07-28).
    InputRequired,
    /// The client is asked while the call goes on (MCP's elicitation before that).
    Elicitation,
    /// The call is made again and says that it is confirmed.
    TwoStep,
    /// `linux-sysadmin approve`; the call is made again for its outcome.
    Terminal,
}

impl ConfirmationMethod {
    /// As in the configuration and in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::InputRequired => "input-required",
            Self::Elicitation => "elicitation",
            Self::TwoStep => "two-step",
            Self::Terminal => "terminal",
        }
    }
}
