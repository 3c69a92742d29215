//! Chooses how a question reaches a person, and keeps the call until the answer comes.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::Dispatcher;
use crate::answers::envelope::Envelope;
use crate::calls::call_handle::CallHandle;
use crate::calls::confirmation_channel::OpenQuestion;
use host_approval::{Deciders, ListenError, Listener};
use host_base::Risk;
use host_gate::{Confirmation, ConfirmationMethod, Question};
use host_system_mode::Mode;

impl Dispatcher {
    /// The method by which this question reaches a person. `client` is the method that the calling client supports.
    pub fn confirmation_method(
        &self,
        client: Option<ConfirmationMethod>,
        question: &Question,
    ) -> ConfirmationMethod {
        match self.usual_confirmation_method(client) {
            // A client's word that somebody said yes is not enough for what can cost the machine.
            _ if question.risk == Risk::Critical && self.mode != Mode::SingleUser => {
                ConfirmationMethod::Terminal
            }
            ConfirmationMethod::TwoStep if question.never_by_client_alone => ConfirmationMethod::Terminal,
            // A client would cut the question, and nobody can say yes to the part that was cut.
            ConfirmationMethod::InputRequired | ConfirmationMethod::Elicitation
                if !question.fits_a_client() =>
            {
                ConfirmationMethod::Terminal
            }
            method => method,
        }
    }

    /// The method by which questions usually reach a person.
    pub fn usual_confirmation_method(&self, client: Option<ConfirmationMethod>) -> ConfirmationMethod {
        match self.loaded_config.config.safety.confirmation {
            Confirmation::Terminal => ConfirmationMethod::Terminal,
            Confirmation::TwoStep => ConfirmationMethod::TwoStep,
            Confirmation::Auto => client.unwrap_or(ConfirmationMethod::TwoStep),
        }
    }

    /// Keeps a call until its answer comes, and gives the question to show meanwhile. Gives the call back where it can't
    /// wait; it then goes on, and its envelope says why.
    pub fn keep_pending(
        &self,
        method: ConfirmationMethod,
        open: OpenQuestion,
        call: CallHandle,
    ) -> Result<Arc<Question>, Box<CallHandle>> {
        if method == ConfirmationMethod::Terminal
            && let Err(error) = self.listen()
        {
            let _ = open.answer(Err(host_gate::unavailable(error)));
            return Err(Box::new(call));
        }
        let question = open.question.clone();
        if method == ConfirmationMethod::TwoStep && call.says_confirmed() {
            let _ = open.answer(Err(host_gate::not_shown(&question)));
            return Err(Box::new(call));
        }
        self.pending_calls.add(method, open, call)?;
        Ok(question)
    }

    /// Starts the listener for `linux-sysadmin approve`, when a call first waits for a person at a terminal.
    fn listen(&self) -> Result<(), ListenError> {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if listener.is_none() {
            let pending: Arc<dyn host_approval::WaitingCalls> = self.pending_calls.clone();
            let deciders = match self.mode {
                Mode::SingleUser => Deciders::Account,
                Mode::System { client } => Deciders::Root { client },
            };
            *listener = Some(Listener::start(&pending, self.gate.audit().directory(), deciders)?);
        }
        Ok(())
    }

    /// The envelope of a call that came at `started` and waits for a confirmation.
    pub fn waiting_envelope(
        &self,
        question: &Question,
        method: ConfirmationMethod,
        started: Instant,
    ) -> Envelope {
        let problem = host_gate::confirmation_required(question, method);
        Envelope::failure(&question.tool, &question.target, started, None, problem)
    }
}
