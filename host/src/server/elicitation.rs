//! Asks a client for confirmation: by an input-required result or by elicitation, as far as the client supports them.

use std::collections::BTreeMap;

use rmcp::model::{
    CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ElicitationSchema, InputRequest, InputRequiredResult, ProtocolVersion,
    RequestStateCodec, SealOptions,
};
use rmcp::service::{RequestContext, RoleServer};

use host_audit::DecidedBy;
use host_base::problem::{Category, Problem};
use host_gate::ConfirmationMethod;
use host_gate::Question;
use host_gate::{Answer, EXPIRES, unavailable};
use host_text::visible::excerpt;

/// The name of the one question in an input-required result.
const QUESTION: &str = "confirm";

/// Seals the request state that a client brings back with its answer. The key belongs to this process, so another process
/// accepts nothing that this one has sealed, not even the same server after a restart.
pub(super) struct StateSeal(RequestStateCodec);

impl StateSeal {
    pub(super) fn new() -> Result<Self, Problem> {
        let mut key = vec![0; 32];
        rustix::rand::getrandom(key.as_mut_slice(), rustix::rand::GetRandomFlags::empty())
            .map_err(|error| no_seal(&error))?;
        RequestStateCodec::try_new(key).map(Self).map_err(|error| no_seal(&error))
    }

    fn seal(&self, id: &str) -> String {
        self.0.seal_with(id.as_bytes(), &SealOptions::new().ttl(EXPIRES))
    }

    fn open(&self, state: &str) -> Result<String, Problem> {
        let opened = self.0.open(state).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        opened.ok_or_else(|| {
            let message =
                "the request state is none of this server process's, or has expired: nothing was changed";
            Problem::new("CONFIRMATION_UNKNOWN", Category::State, message)
                .remedy("Call again without requestState and inputResponses: the question is asked anew")
        })
    }

    /// The question as a result that asks for input.
    pub(super) fn input_required(&self, question: &Question) -> InputRequiredResult {
        let request = InputRequest::Elicitation(ElicitRequest::new(elicitation(question)));
        let requests = BTreeMap::from([(QUESTION.to_owned(), request)]);
        InputRequiredResult::new(Some(requests), Some(self.seal(&question.id)))
    }

    /// The answer that a repeated call brings: the id of the question, where it is known, and the answer.
    pub(super) fn answered(
        &self,
        request: &CallToolRequestParams,
    ) -> Option<(Result<String, Problem>, Answer)> {
        let state = request.request_state.as_ref()?;
        let response = request.input_responses.as_ref().and_then(|responses| responses.get(QUESTION));
        let result = response.map(|response| serde_json::from_value::<ElicitResult>(response.clone()));
        match result {
            Some(Ok(result)) => Some((self.open(state), answer(&result))),
            _ => {
                let message = format!(
                    "requestState came without inputResponses.{QUESTION}, the result of an elicitation: nothing was changed"
                );
                let problem = Problem::new("INVALID_ARGUMENTS", Category::Validation, message);
                Some((Err(problem), Answer::No(DecidedBy::Elicitation)))
            }
        }
    }
}

fn no_seal(error: &dyn std::fmt::Display) -> Problem {
    Problem::new("INTERNAL_ERROR", Category::Internal, format!("no key for request states: {error}"))
}

/// The method by which this client can be asked; `None` where it can't.
pub(super) fn client_method(context: &RequestContext<RoleServer>) -> Option<ConfirmationMethod> {
    let info = context.peer.peer_info();
    let meta = &context.meta;
    let version =
        meta.protocol_version().or_else(|| info.as_ref().map(|info| info.protocol_version.clone()))?;
    if version >= ProtocolVersion::V_2026_07_28 {
        let can = meta.client_capabilities()?.elicitation;
        return can.as_ref().is_some_and(has_forms).then_some(ConfirmationMethod::InputRequired);
    }
    let can = info.as_ref().and_then(|info| info.capabilities.elicitation.as_ref());
    can.is_some_and(has_forms).then_some(ConfirmationMethod::Elicitation)
}

/// A client that names no mode supports forms: earlier versions of the protocol had nothing else.
fn has_forms(capability: &ElicitationCapability) -> bool {
    capability.form.is_some() || capability.url.is_none()
}

/// Asks the client and waits for the answer.
pub(super) async fn elicit(
    context: &RequestContext<RoleServer>,
    question: &Question,
) -> Result<Answer, Problem> {
    let asked = context.peer.create_elicitation_with_timeout(elicitation(question), Some(EXPIRES)).await;
    match asked {
        Ok(result) => Ok(answer(&result)),
        Err(error) => Err(unavailable(excerpt(&format!("the client answered {error}"), 300))),
    }
}

/// A form without fields: accepting or declining the form is the answer.
fn elicitation(question: &Question) -> ElicitRequestParams {
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question.text.clone(),
        requested_schema: ElicitationSchema::new(BTreeMap::new()),
    }
}

fn answer(result: &ElicitResult) -> Answer {
    match result.action {
        ElicitationAction::Accept => Answer::Yes(DecidedBy::Elicitation),
        _ => Answer::No(DecidedBy::Elicitation),
    }
}
