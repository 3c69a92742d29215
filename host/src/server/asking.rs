//! How a client is asked: by an input-required result, by elicitation, or not at all.

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

/// The one question of an input-required result.
const QUESTION: &str = "confirm";

/// What this server gives a client to bring back. Its key is this process's own: another one, be it the same server
/// started anew, takes nothing that it sealed.
pub(super) struct Seal(RequestStateCodec);

impl Seal {
    pub(super) fn new() -> Result<Self, Problem> {
        let mut key = vec![0; 32];
        rustix::rand::getrandom(key.as_mut_slice(), rustix::rand::GetRandomFlags::empty())
            .map_err(|error| no_seal(&error))?;
        RequestStateCodec::try_new(key).map(Self).map_err(|error| no_seal(&error))
    }

    fn close(&self, id: &str) -> String {
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

    /// The question, as a result that wants input.
    pub(super) fn input_required(&self, question: &Question) -> InputRequiredResult {
        let request = InputRequest::Elicitation(ElicitRequest::new(elicitation(question)));
        let requests = BTreeMap::from([(QUESTION.to_owned(), request)]);
        InputRequiredResult::new(Some(requests), Some(self.close(&question.id)))
    }

    /// What a call that is made again brings: which question, where that can be told, and its answer.
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

/// How this client can be asked; none where it can't.
pub(super) fn way(context: &RequestContext<RoleServer>) -> Option<ConfirmationMethod> {
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

/// Before there were modes, forms were all there was.
fn has_forms(capability: &ElicitationCapability) -> bool {
    capability.form.is_some() || capability.url.is_none()
}

/// Asks the client while the call goes on.
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

/// A form without fields: all that is asked is yes or no, and that is the form's own answer.
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
