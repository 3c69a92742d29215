use std::sync::Mutex;

use futures_util::future::BoxFuture;
use serde_json::{Map, json};

use super::*;
use crate::calls::call_key::CallKey;
use crate::calls::call_pool::CallPool;
use crate::calls::scheduler::Scheduler;
use crate::calls::test_calls::{info, question};
use host_base::Risk;

/// The end of the call on one host.
#[derive(Clone)]
enum Fate {
    Says(Value),
    Fails(&'static str),
    Hangs,
    /// The call has a plan, which ends like this once it is confirmed.
    Plans(Result<(), &'static str>),
}

/// Gives every question the same answer, and keeps the questions.
struct Person {
    answer: Answer,
    asked: Mutex<Vec<Question>>,
}

impl Person {
    fn who_says(answer: Answer) -> Self {
        Self { answer, asked: Mutex::default() }
    }
}

impl Confirmer for Person {
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Answer, Problem>> {
        self.asked.lock().unwrap().push(question);
        Box::pin(async { Ok(self.answer.clone()) })
    }
}

/// The hosts on which a change was begun, in order.
type Begun = Arc<Mutex<Vec<String>>>;

struct Setting {
    pool: CallPool,
    begun: Begun,
    risk: Risk,
    needs_person: bool,
}

impl Setting {
    fn new() -> Self {
        let pool = CallPool::new(Scheduler::new(64, 64));
        Self { pool, begun: Begun::default(), risk: Risk::Moderate, needs_person: false }
    }

    fn call(&self, host: &str, fate: Fate) -> HostCall {
        let (name, begun) = (host.to_owned(), self.begun.clone());
        let (risk, needs_person) = (self.risk, self.needs_person);
        let key = CallKey::new("tool", &Map::new(), None, [host]);
        let pool = self.pool.for_hosts(64, Default::default());
        let call = CallHandle::start(info(host), key, &pool, move |channel, _, cancelled| async move {
            let started = std::time::Instant::now();
            let answering = async {
                match fate {
                    Fate::Says(data) => Ok(data),
                    Fate::Fails(code) => Err(Problem::new(code, Category::State, format!("not on {name}"))),
                    Fate::Hangs => std::future::pending().await,
                    Fate::Plans(outcome) => {
                        let text =
                            format!("May this be done on {name} (h), as root?\n\nTool: tool\nPlan: {name}\n");
                        let question =
                            Question { target: name.clone(), risk, needs_person, text, ..question(&name) };
                        match channel.ask(question).await? {
                            Answer::No(_) => {
                                Err(Problem::new("CONFIRMATION_DECLINED", Category::Denied, "no"))
                            }
                            Answer::Yes(_) => {
                                begun.lock().unwrap().push(name.clone());
                                outcome.map(|()| json!({"changed": true})).map_err(|code| {
                                    Problem::new(code, Category::State, format!("broke on {name}"))
                                })
                            }
                        }
                    }
                }
            };
            let answer = tokio::select! {
                answer = answering => answer,
                () = cancelled.cancelled() => Err(crate::calls::cancelled()),
            };
            match answer {
                Ok(data) => {
                    let mut envelope = Envelope::success("tool", &name, started, None);
                    envelope.data = Some(data);
                    envelope
                }
                Err(problem) => Envelope::failure("tool", &name, started, None, problem),
            }
        });
        HostCall { host: host.to_owned(), call }
    }

    async fn run(&self, fates: &[(&str, Fate)], serial: usize, person: &Person) -> Map<String, Value> {
        self.run_until(fates, serial, person, &CancellationToken::new()).await
    }

    async fn run_until(
        &self,
        fates: &[(&str, Fate)],
        serial: usize,
        person: &Person,
        cancelled: &CancellationToken,
    ) -> Map<String, Value> {
        let calls = fates.iter().map(|(host, fate)| self.call(host, fate.clone())).collect();
        let changes = fates.iter().any(|(_, fate)| matches!(fate, Fate::Plans(_)));
        let serial = changes.then_some(serial);
        let mut request = MultiHostCall::new("tool".to_owned(), calls, serial, Arc::default());
        request.run(person, cancelled).await;
        request.envelope(std::time::Instant::now()).into_json()
    }

    fn begun(&self) -> Vec<String> {
        self.begun.lock().unwrap().clone()
    }
}

fn yes() -> Person {
    Person::who_says(Answer::Yes(DecidedBy::Elicitation))
}

fn plans(count: usize) -> Vec<(String, Fate)> {
    (1..=count).map(|number| (format!("web{number}"), Fate::Plans(Ok(())))).collect()
}

fn borrowed(fates: &[(String, Fate)]) -> Vec<(&str, Fate)> {
    fates.iter().map(|(host, fate)| (host.as_str(), fate.clone())).collect()
}

#[tokio::test]
async fn hosts_that_answer_and_hosts_that_fail_stand_beside_each_other() {
    let setting = Setting::new();
    let fates = [
        ("a", Fate::Says(json!({"x": 1}))),
        ("b", Fate::Fails("GONE")),
        ("c", Fate::Says(json!({"x": 1}))),
        ("d", Fate::Fails("GONE")),
    ];
    let answer = setting.run(&fates, 1, &yes()).await;
    assert_eq!(answer["status"], "success");
    assert_eq!(answer["target_host"], "4 hosts");
    assert_eq!(answer["hosts"], json!({"total": 4, "succeeded": 2, "failed": 2}));
    let [failure] = answer["failures"].as_array().unwrap().as_slice() else { panic!("{answer:?}") };
    assert_eq!(failure["hosts"], json!(["b", "d"]));
    assert_eq!((&failure["error_code"], &failure["message"]), (&json!("GONE"), &json!("not on {host}")));
}

#[tokio::test]
async fn where_none_answers_it_is_an_error() {
    let setting = Setting::new();
    let fates = [("a", Fate::Fails("GONE")), ("b", Fate::Fails("LATE"))];
    let answer = setting.run(&fates, 1, &yes()).await;
    assert_eq!((&answer["status"], &answer["error_code"]), (&json!("error"), &json!("GONE")));
    assert_eq!(answer["message"], "a: not on a");
    assert_eq!(answer["failures"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_delays_the_others_by_little() {
    let setting = Setting::new();
    let fates: Vec<_> = (0..20)
        .map(|number| match number {
            7 => ("slow".to_owned(), Fate::Hangs),
            number => (format!("h{number}"), Fate::Says(json!({}))),
        })
        .collect();
    let began = Instant::now();
    let answer = setting.run(&borrowed(&fates), 1, &yes()).await;
    assert_eq!(began.elapsed().as_secs(), STRAGGLER_TIMEOUT.as_secs());
    assert_eq!(answer["hosts"], json!({"total": 20, "succeeded": 19, "failed": 1}));
    assert_eq!(answer["failures"][0]["hosts"], json!(["slow"]));
    assert_eq!(answer["failures"][0]["error_code"], "HOST_SLOW");
}

#[tokio::test]
async fn a_change_runs_on_one_after_the_other_and_nobody_is_asked_where_nobody_has_to_be() {
    let setting = Setting::new();
    let person = Person::who_says(Answer::No(DecidedBy::Elicitation));
    let answer = setting.run(&borrowed(&plans(3)), 1, &person).await;
    assert_eq!(answer["status"], "success", "{answer:?}");
    assert_eq!(setting.begun(), ["web1", "web2", "web3"]);
    assert!(person.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn one_question_is_about_all_and_its_answer_counts_for_all() {
    for (answer, begun) in [(Answer::Yes(DecidedBy::Elicitation), 3), (Answer::No(DecidedBy::Elicitation), 0)]
    {
        let setting = Setting { needs_person: true, risk: Risk::High, ..Setting::new() };
        let person = Person::who_says(answer);
        let told = setting.run(&borrowed(&plans(3)), 1, &person).await;
        assert_eq!(setting.begun().len(), begun, "{told:?}");
        let asked = person.asked.lock().unwrap();
        let [question] = asked.as_slice() else { panic!("{} questions", asked.len()) };
        assert_eq!((question.risk, question.target.as_str()), (Risk::High, "3 hosts"));
        for host in ["- web1 (h), as root", "- web2 (h), as root", "- web3 (h), as root"] {
            assert!(question.text.contains(host), "{}", question.text);
        }
        assert_eq!(question.text.matches("Tool: tool").count(), 1, "{}", question.text);
        if begun == 0 {
            assert_eq!(told["error_code"], "CONFIRMATION_DECLINED");
        }
    }
}

#[tokio::test]
async fn after_the_first_failure_nothing_more_is_begun() {
    for (serial, begun, not_begun) in [
        (1, vec!["web1", "web2", "web3"], 7),
        // The first alone, then four at a time.
        (4, vec!["web1", "web2", "web3", "web4", "web5"], 5),
    ] {
        let setting = Setting::new();
        let mut fates = plans(10);
        fates[2].1 = Fate::Plans(Err("STEP_FAILED"));
        let answer = setting.run(&borrowed(&fates), serial, &yes()).await;
        assert_eq!(setting.begun(), begun);
        assert_eq!((&answer["status"], &answer["error_code"]), (&json!("error"), &json!("STEP_FAILED")));
        assert_eq!(answer["message"], "web3: broke on web3");
        assert_eq!(answer["not_begun"].as_array().unwrap().len(), not_begun);
        assert_eq!(answer["done"].as_array().unwrap().len(), begun.len() - 1);
        assert_eq!(answer["hosts"], json!({"total": 10, "succeeded": begun.len() - 1, "failed": 1}));
    }
}

#[tokio::test]
async fn the_first_is_changed_alone_however_many_may_be_at_once() {
    let setting = Setting::new();
    let mut fates = plans(10);
    fates[0].1 = Fate::Plans(Err("STEP_FAILED"));
    let answer = setting.run(&borrowed(&fates), 10, &yes()).await;
    assert_eq!(setting.begun(), ["web1"]);
    assert_eq!(answer["not_begun"].as_array().unwrap().len(), 9);
}

#[tokio::test]
async fn where_one_plan_cannot_be_made_none_is_begun_and_nobody_is_asked() {
    let setting = Setting { needs_person: true, ..Setting::new() };
    let mut fates = plans(3);
    fates[1].1 = Fate::Fails("CONNECTION_FAILED");
    let person = yes();
    let answer = setting.run(&borrowed(&fates), 1, &person).await;
    assert!(setting.begun().is_empty() && person.asked.lock().unwrap().is_empty());
    assert_eq!(answer["error_code"], "CONNECTION_FAILED");
    assert_eq!(answer["not_begun"], json!(["web1", "web3"]));
}

#[tokio::test]
async fn a_host_that_needs_no_change_is_not_waited_for() {
    let setting = Setting::new();
    let mut fates = plans(3);
    fates[1].1 = Fate::Says(json!({"changed": false}));
    let answer = setting.run(&borrowed(&fates), 1, &yes()).await;
    assert_eq!(answer["status"], "success", "{answer:?}");
    assert_eq!(setting.begun(), ["web1", "web3"]);
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_cancelled_everywhere() {
    let setting = Setting::new();
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let fates = [("a", Fate::Hangs), ("b", Fate::Hangs), ("c", Fate::Hangs)];
    let answer = setting.run_until(&fates, 1, &yes(), &cancelled).await;
    assert_eq!(answer["error_code"], "CANCELLED");
    assert_eq!(answer["hosts"]["failed"], 3);
}
