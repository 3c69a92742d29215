//! How a question reaches whoever answers it, and what becomes of its call meanwhile.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::Dispatcher;
use crate::envelope::Envelope;
use crate::running::{Asked, Running};
use host_approval::{Deciders, ListenError, Listener};
use host_base::Risk;
use host_gate::{Confirmation, ConfirmationMethod, Question};
use host_system_mode::Mode;

impl Dispatcher {
    /// How a question reaches whoever answers it, from a client that can be asked in this way.
    pub fn way(&self, client: Option<ConfirmationMethod>, question: &Question) -> ConfirmationMethod {
        match self.way_of(client) {
            // What can cost the machine isn't left to what a client says that somebody said.
            _ if question.risk == Risk::Critical && self.mode != Mode::SingleUser => {
                ConfirmationMethod::Terminal
            }
            ConfirmationMethod::TwoStep if question.never_by_client_alone => ConfirmationMethod::Terminal,
            // A client would have to cut it, and what was cut nobody has said yes to.
            ConfirmationMethod::InputRequired | ConfirmationMethod::Elicitation
                if !question.fits_a_client() =>
            {
                ConfirmationMethod::Terminal
            }
            way => way,
        }
    }

    /// The same, before there is a question.
    pub fn way_of(&self, client: Option<ConfirmationMethod>) -> ConfirmationMethod {
        match self.loaded.config.safety.confirmation {
            Confirmation::Terminal => ConfirmationMethod::Terminal,
            Confirmation::TwoStep => ConfirmationMethod::TwoStep,
            Confirmation::Auto => client.unwrap_or(ConfirmationMethod::TwoStep),
        }
    }

    /// Keeps a call until its answer comes: what is to be answered meanwhile. None where the call goes on and says why.
    pub fn park(
        &self,
        way: ConfirmationMethod,
        asked: Asked,
        running: Running,
    ) -> Result<Arc<Question>, Box<Running>> {
        if way == ConfirmationMethod::Terminal
            && let Err(error) = self.listen()
        {
            let _ = asked.answer(Err(host_gate::unavailable(error)));
            return Err(Box::new(running));
        }
        let question = asked.question.clone();
        if way == ConfirmationMethod::TwoStep && running.says_confirmed() {
            let _ = asked.answer(Err(host_gate::not_shown(&question)));
            return Err(Box::new(running));
        }
        self.parking.park(way, asked, running)?;
        Ok(question)
    }

    /// From the first call on that waits for a person at a terminal.
    fn listen(&self) -> Result<(), ListenError> {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if listener.is_none() {
            let parked: Arc<dyn host_approval::Parked> = self.parking.clone();
            let deciders = match self.mode {
                Mode::SingleUser => Deciders::Account,
                Mode::System { client } => Deciders::Root { client },
            };
            *listener = Some(Listener::start(&parked, self.gate.audit().directory(), deciders)?);
        }
        Ok(())
    }

    /// The answer to a call that waits, which came at this time.
    pub fn waits(&self, question: &Question, way: ConfirmationMethod, came: Instant) -> Envelope {
        let problem = host_gate::confirmation_required(question, way);
        Envelope::failure(&question.tool, &question.target, came, None, problem)
    }
}
