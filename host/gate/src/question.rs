//! The question whether a plan may run, as a person reads it. The host writes it from the preview.
//!
//! Only the host begins a line. Text of a module, a client or a file stands after a heading or is indented, with its
//! control characters visible, so that it can't look like a line of the host.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::PlanRequest;
use super::origin::Origin;
use super::prepare::PreparedPlan;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_base::sha256;
use host_target::KnownHost;
use host_text::redact::excerpt;
use host_text::visible::one_line;

/// The number of characters of a client's name that are shown.
const NAME: usize = 200;
/// The largest number of bytes of a text about several hosts' plans.
const MOST_TEXT: usize = 1 << 20;
/// The beginning of the text in place of a secret.
const HIDDEN: &str = "[redacted";
/// The largest number of characters that are sent to a client.
const SENT: usize = 24_000;

/// A plan that waits for an answer.
#[derive(Clone, Debug)]
pub struct Question {
    /// The id of the change.
    pub id: String,
    /// The SHA-256 of all that identifies the plan.
    pub sha256: String,
    /// The tool that made the plan.
    pub tool: String,
    /// The module that the tool belongs to.
    pub module: String,
    /// The name of the machine.
    pub target: String,
    /// The machine's machine-id and its SSH host key, which identify it under any name.
    pub machine: (Option<String>, Option<String>),
    /// The name that the client gives itself.
    pub client: String,
    /// The module's own sentence about the plan.
    pub summary: String,
    /// The final risk of the plan.
    pub risk: Risk,
    /// True where a person has to say yes. A plan that is part of a larger request waits as well where this is false.
    pub needs_person: bool,
    /// True where a client's own word is no answer, because the question is which hosts the client may reach.
    pub never_by_client_alone: bool,
    /// True for a dry run, where only the program's own simulation needs the confirmation.
    pub dry_run: bool,
    /// The plan as it is shown.
    pub preview: Value,
    /// The whole question as text, for a person.
    pub text: String,
}

impl Question {
    /// The question about a plan and its preview.
    pub(super) fn new(
        (id, sha256): (&str, String),
        request: &PlanRequest,
        plan: &PreparedPlan,
        preview: Value,
        needs_person: bool,
    ) -> Self {
        let origin = &request.origin;
        let module = origin.module.as_ref();
        let module = module.map_or_else(String::new, |module| format!("{} {}", module.name, module.version));
        let mut question = Self {
            id: id.to_owned(),
            sha256,
            tool: origin.tool.clone(),
            module,
            target: request.target.name().to_owned(),
            machine: origin
                .target
                .as_ref()
                .map_or((None, None), |used| (used.machine_id.clone(), used.host_key.clone())),
            client: one_line(&excerpt(&origin.client, NAME)),
            summary: text_of(&preview, "description"),
            risk: plan.risk,
            needs_person,
            never_by_client_alone: false,
            dry_run: request.dry_run,
            preview,
            text: String::new(),
        };
        let host_key = origin.target.as_ref().and_then(|used| used.host_key.as_deref());
        question.text = question.written(&request.facts.user, &request.facts.hostname, host_key);
        question
    }

    /// The question whether the server may work on a host, as this account, until it ends. `because` says why that isn't
    /// allowed anyway.
    pub fn about_host(
        origin: &Origin,
        host: &str,
        known: &KnownHost,
        because: &str,
    ) -> Result<Self, Problem> {
        let module = origin.module.as_ref();
        let module = module.map_or_else(String::new, |module| format!("{} {}", module.name, module.version));
        let preview = json!({
            "description": format!("Work on {host} as {} until this server ends", known.user),
            "host": host,
            "address": known.address,
            "user": known.user,
            "host_keys": known.host_keys,
            "authorities": known.authorities,
        });
        let mut text = Text::default();
        let host = one_line(&excerpt(host, NAME));
        let account = one_line(&excerpt(&known.user, NAME));
        text.line(&format!("May {host} be worked on as {account}, until this server ends?"));
        text.line("");
        text.line(&format!("Tool:    {}, of module {module}", origin.tool));
        let client = one_line(&excerpt(&origin.client, NAME));
        if !client.is_empty() {
            text.line(&format!("Client:  {client}"));
        }
        text.line("Risk:    high");
        text.line(&format!("Because: {}", one_line(because)));
        text.line(&format!("Address: {}", one_line(&known.address)));
        for key in &known.host_keys {
            text.line(&format!("Key:     {}, in known_hosts", one_line(key)));
        }
        for authority in &known.authorities {
            text.line(&format!("Key:     any that the authority {} has signed", one_line(authority)));
        }
        if known.host_keys.is_empty() && known.accepts_new {
            text.line("Key:     any, on the first contact (StrictHostKeyChecking accept-new)");
        }
        text.line("");
        let sha256 = sha256::of(preview.to_string().as_bytes());
        let id = host_base::id::random()?;
        text.line(&format!("Plan:    {id} (SHA-256 {sha256})"));
        Ok(Self {
            id,
            sha256,
            tool: origin.tool.clone(),
            module,
            target: host,
            machine: (None, None),
            client,
            summary: text_of(&preview, "description"),
            risk: Risk::High,
            needs_person: true,
            never_by_client_alone: true,
            dry_run: false,
            preview,
            text: text.0,
        })
    }

    /// Whether both questions are about one machine, under two names.
    pub fn is_of_same_machine(&self, other: &Self) -> bool {
        let ((id, key), (other_id, other_key)) = (&self.machine, &other.machine);
        id.is_some() && id == other_id && (key == other_key || key.is_none() || other_key.is_none())
    }

    /// One question about several plans, which one yes or no answers. Text that many of them share is written once.
    pub fn of_many(questions: &[Arc<Self>]) -> Result<Self, Problem> {
        let mut alike: Vec<(&str, &Value, Vec<&Self>)> = Vec::new();
        for question in questions {
            let (_, body) = question.text.split_once("\n\n").unwrap_or_default();
            // The last line names the plan's own hash.
            let body = body.trim_end().rsplit_once('\n').map_or(body, |(body, _)| body);
            let preview = &question.preview;
            match alike.iter_mut().find(|(known, shown, _)| *known == body && *shown == preview) {
                Some((.., same)) => same.push(question),
                None => alike.push((body, preview, vec![question])),
            }
        }
        let first = questions
            .first()
            .ok_or_else(|| Problem::new("INTERNAL_ERROR", Category::Internal, "a question about no plan"))?;
        let is_dry_run = questions.iter().any(|question| question.dry_run);
        let what = if is_dry_run { "May these be simulated" } else { "May these be done" };
        let count = questions.len();
        let mut text = Text::default();
        text.line(&format!("{what} on {count} hosts, one after the other, until one fails?"));
        text.line("");
        for question in questions {
            let heading = question.text.lines().next().unwrap_or_default();
            let place = heading.split_once(" on ").map_or(heading, |(_, place)| place);
            text.line(&format!("- {}", place.trim_end_matches('?')));
        }
        let mut previews = Vec::new();
        for (body, preview, same) in &alike {
            let names: Vec<&str> = same.iter().map(|question| question.target.as_str()).collect();
            text.line("");
            if alike.len() > 1 {
                text.line(&format!("On {}:", names.join(", ")));
            }
            body.lines().for_each(|line| text.line(line));
            previews.push(json!({"hosts": names, "preview": preview}));
        }
        let identities: Vec<&str> = questions.iter().map(|question| question.sha256.as_str()).collect();
        let sha256 = sha256::of(identities.join("\n").as_bytes());
        let id = host_base::id::random()?;
        text.line("");
        text.line(&format!("Plans:   {id} (SHA-256 {sha256})"));
        if text.0.len() > MOST_TEXT {
            let message = format!("the plans of {count} hosts are too much to be shown: nothing was changed");
            return Err(Problem::new("TOO_MUCH_TO_SHOW", Category::Resource, message)
                .remedy("Name fewer hosts in one call"));
        }
        Ok(Self {
            id,
            sha256,
            target: format!("{count} hosts"),
            risk: questions.iter().map(|question| question.risk).max().unwrap_or(first.risk),
            needs_person: true,
            dry_run: is_dry_run,
            preview: json!({"plans": previews}),
            text: text.0,
            ..Self::clone(first)
        })
    }

    /// Whether a client can be sent the whole text. A client that cuts it would ask about less than what runs.
    pub fn fits_a_client(&self) -> bool {
        self.text.chars().nth(SENT).is_none()
    }

    fn written(&self, account: &str, hostname: &str, host_key: Option<&str>) -> String {
        let mut text = Text::default();
        let what = if self.dry_run { "May this be simulated" } else { "May this be done" };
        let hostname = one_line(&excerpt(hostname, NAME));
        let host_key = host_key.map(|key| format!(", host key {}", one_line(key))).unwrap_or_default();
        text.line(&format!("{what} on {} ({hostname}{host_key}), as {}?", self.target, one_line(account)));
        text.line("");
        text.line(&format!("Tool:    {}, of module {}", self.tool, self.module));
        if !self.client.is_empty() {
            text.line(&format!("Client:  {}", self.client));
        }
        let risk = serde_json::to_value(self.risk).unwrap_or_default();
        text.line(&format!("Risk:    {}", risk.as_str().unwrap_or_default()));
        text.plan(&self.preview);
        text.line(&format!("Plan:    {} (SHA-256 {})", self.id, self.sha256));
        text.0
    }
}

/// The plan of a preview as a question shows it; `None` where the preview isn't that of one plan.
pub fn plan_text(preview: &Value) -> Option<String> {
    // The plans of several hosts are folded, and what differs has names that begin so.
    let is_folded = preview.to_string().contains("\"$");
    let is_plan =
        preview.get("description").is_some_and(Value::is_string) && shown_steps(preview).next().is_some();
    (is_plan && !is_folded).then(|| {
        let mut text = Text::default();
        text.plan(preview);
        text.0
    })
}

/// A sentence about how far the plan can be undone.
fn undo(preview: &Value) -> String {
    let without: Vec<String> = shown_steps(preview)
        .enumerate()
        .filter(|(_, step)| {
            ["run", SIGNAL].iter().any(|kind| step.contains_key(*kind)) && !step.contains_key("undo")
        })
        .map(|(number, _)| (number + 1).to_string())
        .collect();
    match without.as_slice() {
        [] => "Undo:    where a step fails, all before it are undone".to_owned(),
        [step] => {
            format!("Undo:    none of step {step}; where a step fails, the others before it are undone")
        }
        steps => format!(
            "Undo:    none of steps {}; where a step fails, the others before it are undone",
            steps.join(", ")
        ),
    }
}

/// The steps of a preview. The preview of a single command holds the members of the step itself.
fn shown_steps(preview: &Value) -> impl Iterator<Item = Map<String, Value>> {
    let alone = preview.get("command").map(|command| {
        let of_it = ["stdin", "stdin_sha256", "undo"].into_iter();
        let members = of_it.filter_map(|name| Some((name.to_owned(), preview.get(name)?.clone())));
        members.chain([("run".to_owned(), command.clone())]).collect()
    });
    let steps = preview.get("steps").and_then(Value::as_array).into_iter().flatten();
    alone.into_iter().chain(steps.filter_map(Value::as_object).cloned())
}

fn text_of(preview: &Value, name: &str) -> String {
    one_line(preview.get(name).and_then(Value::as_str).unwrap_or_default())
}

fn texts(preview: &Value, name: &str) -> Vec<String> {
    let all = preview.get(name).and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).map(one_line).collect()
}

/// The members of a preview that name what a step does.
const KINDS: [&str; 8] =
    ["run", "write", "remove", "make_directory", "move", "set_attributes", "remove_directory", SIGNAL];
/// The kind of a step whose text is a whole sentence.
const SIGNAL: &str = "signal";

/// Lines that the host writes.
#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Adds a plan: why it asks, what its module says of it, its steps, and how far it can be undone.
    fn plan(&mut self, preview: &Value) {
        let reason = text_of(preview, "escalation_reason");
        if !reason.is_empty() {
            self.line(&format!("Because: {reason}"));
        }
        self.line(&format!("Says:    {}", text_of(preview, "description")));
        for warning in texts(preview, "warnings") {
            self.line(&format!("Warning: {warning}"));
        }
        let services = texts(preview, "affected_services");
        if !services.is_empty() {
            self.line(&format!("Stops or restarts: {}", services.join(", ")));
        }
        self.line("");
        self.steps(preview);
        if let Some(after) = preview.get("after_undo").and_then(Value::as_array) {
            self.line("After an undo:");
            after.iter().for_each(|command| self.command("   run ", command));
        }
        self.line("");
        self.line(&undo(preview));
        let guard = text_of(preview, "guard");
        if !guard.is_empty() {
            self.line(&format!("Guard:   {guard}"));
        }
        let simulated = text_of(preview, "dry_run_command");
        if !simulated.is_empty() {
            self.line(&format!("The program's own simulation, {simulated}, says:"));
            self.indented(preview.get("dry_run_output").and_then(Value::as_str).unwrap_or_default());
        }
    }

    fn steps(&mut self, preview: &Value) {
        for (number, step) in shown_steps(preview).enumerate() {
            let begins = self.0.len();
            let title = KINDS.into_iter().find_map(|kind| {
                let of = one_line(step.get(kind)?.as_str()?);
                Some(match kind {
                    SIGNAL => format!("{}. {of}", number + 1),
                    _ => format!("{}. {} {of}", number + 1, kind.replace('_', " ")),
                })
            });
            self.line(&title.unwrap_or_default());
            for (name, said) in [
                ("to", "to"),
                ("as", "as"),
                ("asked_for", "asked for as"),
                ("mode", "mode"),
                ("owner", "owner"),
            ]
            .into_iter()
            .chain([("group", "group"), ("former", "formerly"), ("symlink_to", "a symlink to")])
            .chain([("validate", "checked by")])
            .chain([("sha256", "SHA-256")])
            {
                if let Some(value) = step.get(name).and_then(Value::as_str) {
                    self.line(&format!("   {said} {}", one_line(value)));
                }
            }
            for descendant in step.get("descendants").and_then(Value::as_array).into_iter().flatten() {
                self.command("   and ", descendant);
            }
            self.contents(&step);
            self.stdin(&step);
            for undo in step.get("undo").and_then(Value::as_array).into_iter().flatten() {
                self.command("   undo: ", undo);
            }
            // What looks like a secret may be anything else that runs.
            if self.0[begins..].contains(HIDDEN) {
                self.line(&format!("   NOT SHOWN: what stands as {HIDDEN}] in this step"));
            }
        }
    }

    /// Adds text of others, with a mark before each line.
    fn indented(&mut self, text: &str) {
        for line in host_text::visible::visible(text).lines() {
            self.line(&format!("   | {line}"));
        }
    }

    /// Adds a command line and the command's input.
    fn command(&mut self, before: &str, command: &Value) {
        let line = command.as_str().or_else(|| command.get("run")?.as_str()).unwrap_or_default();
        self.line(&format!("{before}{}", one_line(line)));
        if let Some(command) = command.as_object() {
            self.stdin(command);
        }
    }

    /// Adds the input of a command.
    fn stdin(&mut self, command: &Map<String, Value>) {
        if let Some(sha256) = command.get("stdin_sha256").and_then(Value::as_str) {
            self.line(&format!("   reading (SHA-256 {sha256})"));
        }
        match command.get("stdin") {
            Some(Value::String(stdin)) => self.indented(stdin),
            Some(Value::Object(stdin)) => self.contents(stdin),
            _ => {}
        }
    }

    /// Adds a diff, and the note about what it doesn't show.
    fn contents(&mut self, shown: &Map<String, Value>) {
        if let Some(diff) = shown.get("diff").and_then(Value::as_str) {
            self.indented(diff);
        }
        if let Some(note) = shown.get("note").and_then(Value::as_str) {
            self.line(&format!("   NOT SHOWN: {}", one_line(note)));
        }
        if let Some(bytes) = shown.get("bytes").and_then(Value::as_u64) {
            self.line(&format!("   NOT SHOWN: {bytes} bytes that aren't text"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(preview: Value) -> Question {
        let mut question = Question {
            id: "0123456789abcdef".into(),
            sha256: "00".repeat(32),
            tool: "web_stop".into(),
            module: "services 0.1.0".into(),
            target: "localhost".into(),
            machine: (None, None),
            client: "client 1".into(),
            summary: text_of(&preview, "description"),
            risk: Risk::High,
            needs_person: true,
            never_by_client_alone: false,
            dry_run: false,
            preview,
            text: String::new(),
        };
        question.text = question.written("root", "host", None);
        question
    }

    #[test]
    fn a_plan_is_written_out_whole() {
        let asked = question(json!({
            "steps": [
                {"write": "/etc/x.conf", "diff": "--- a/x\n+++ b/x\n-old\n+new\n", "sha256": "ab", "mode": "0644",
                 "validate": "xd -t /etc/x.conf"},
                {"run": "sudo -n systemctl reload -- x.service", "undo": ["sudo -n systemctl reload -- x.service"]},
                {"run": "crontab -", "stdin": {"diff": "+* * * * * true"}, "stdin_sha256": "cd"},
                {"move": "/srv/a", "to": "/srv/b", "asked_for": "/srv/l/a and /srv/l/b", "former": "0755 root:root",
                 "note": "what is in the directory"},
                {"set_attributes": "/srv/c", "mode": "0640", "owner": "ada", "former": "0600 root:root"},
                {"remove": "/srv/l", "symlink_to": "../e"},
                {"remove_directory": "/srv/d", "former": "0700 ada:ada"},
            ],
            "description": "Change x",
            "warnings": ["x is slow"],
            "affected_services": ["x.service"],
            "after_undo": ["systemctl daemon-reload"],
            "guard": "the target undoes this by itself",
            "escalation_reason": "high rather than the tool's own: it uses `y`",
        }));
        assert_eq!(
            asked.text,
            "May this be done on localhost (host), as root?\n\nTool:    web_stop, of module services 0.1.0\n\
             Client:  client 1\nRisk:    high\nBecause: high rather than the tool's own: it uses `y`\n\
             Says:    Change x\nWarning: x is slow\nStops or restarts: x.service\n\n1. write /etc/x.conf\n   \
             mode 0644\n   checked by xd -t /etc/x.conf\n   SHA-256 ab\n   | --- a/x\n   | +++ b/x\n   | -old\n   | +new\n\
             2. run sudo -n systemctl reload -- x.service\n   undo: sudo -n systemctl reload -- x.service\n\
             3. run crontab -\n   reading (SHA-256 cd)\n   | +* * * * * true\n\
             4. move /srv/a\n   to /srv/b\n   asked for as /srv/l/a and /srv/l/b\n   formerly 0755 root:root\n   NOT SHOWN: what is in the directory\n\
             5. set attributes /srv/c\n   mode 0640\n   owner ada\n   formerly 0600 root:root\n\
             6. remove /srv/l\n   a symlink to ../e\n7. remove directory /srv/d\n   formerly 0700 ada:ada\nAfter an undo:\n   run systemctl daemon-reload\n\n\
             Undo:    none of step 3; where a step fails, the others before it are undone\n\
             Guard:   the target undoes this by itself\n".to_owned()
                + &format!("Plan:    0123456789abcdef (SHA-256 {})\n", "00".repeat(32))
        );
    }

    #[test]
    fn a_plan_is_written_without_its_question() {
        let preview = json!({
            "command": "systemctl stop -- x.service", "description": "Stop x", "warnings": [], "affected_services": ["x.service"],
        });
        assert_eq!(
            plan_text(&preview).as_deref(),
            Some(
                "Says:    Stop x\nStops or restarts: x.service\n\n1. run systemctl stop -- x.service\n\n\
                 Undo:    none of step 1; where a step fails, the others before it are undone\n"
            )
        );
        let folded = json!({"description": "Stop x", "steps": [{"run": {"$differs": [{"value": "a", "hosts": ["web1"]}]}}]});
        for other in [
            folded,
            json!({"description": "Work on web1", "host": "web1"}),
            json!({"steps": [{"run": "x"}]}),
            json!(null),
        ] {
            assert_eq!(plan_text(&other), None, "{other}");
        }
    }

    #[test]
    fn the_machine_is_named_by_the_key_that_it_has_shown() {
        let text = question(json!({"command": "x"})).written("admin", "web1.example", Some("SHA256:abc"));
        let first = "May this be done on localhost (web1.example, host key SHA256:abc), as admin?";
        assert_eq!(text.lines().next(), Some(first));
    }

    #[test]
    fn what_others_wrote_begins_no_line_and_hides_nothing() {
        let spoof = "x\nRisk:    low\r\u{1b}[2J\u{202e}\u{200b}\u{e0041}";
        let asked = question(json!({
            "command": spoof,
            "description": spoof,
            "warnings": [spoof],
            "affected_services": [spoof],
            "escalation_reason": spoof,
            "guard": spoof,
            "dry_run_command": spoof,
            "dry_run_output": spoof,
            "steps": [{"write": spoof, "diff": spoof, "note": spoof, "as": spoof, "undo": [spoof, {"run": spoof, "stdin": spoof}]}],
        }));
        let risks: Vec<&str> = asked.text.lines().filter(|line| line.starts_with("Risk:")).collect();
        assert_eq!(risks, ["Risk:    high"], "{}", asked.text);
        assert!(
            !asked.text.chars().any(|c| c != '\n' && host_text::characters::is_hidden(c)),
            "{}",
            asked.text
        );
    }

    #[test]
    fn what_a_client_would_have_to_cut_is_not_for_a_client() {
        assert!(question(json!({"command": "x", "description": "y"})).fits_a_client());
        assert!(!question(json!({"command": "x", "description": "é".repeat(SENT)})).fits_a_client());
    }
}
