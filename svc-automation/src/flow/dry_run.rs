//! What a flow would do with an event. Nothing is sent or stored. A call gets the answer that the tester gives, or else it
//! is carried out by its service and undone.

use chassis_base::Account;
use chrono::{DateTime, Utc};
use proto::automation::{TestFlowResponse, TestedStep};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::rehearser::Rehearser;
use crate::definition::graph::Graph;
use crate::definition::model::{OnError, Trigger};
use crate::definition::{Definition, Kind, methods};
use crate::event::rfc3339;
use crate::event::rules::canonical;
use crate::run::prepare::{LocalTime, Prepared, TemplateContext, prepare, step_result};
use crate::template::Engine;

/// An event to try a flow with.
pub(super) struct Trial<'a> {
    pub event: &'a Value,
    /// Answers of calls, by the step's id.
    pub answers: &'a Value,
    pub account: &'a Account,
    pub now: DateTime<Utc>,
    /// Answers the other calls; without it they answer nothing.
    pub rehearser: Option<Rehearser<'a>>,
}

/// Walks through the steps that would be taken. Waits take no time, and everything is approved.
pub(super) async fn run(definition: &Definition, trial: &Trial<'_>) -> TestFlowResponse {
    let Trial { account, now, .. } = *trial;
    let event = complete_event(definition, trial.event, now);
    let kind = event["type"].as_str().unwrap_or_default();
    let matches = match &definition.trigger {
        Trigger::Event(key) | Trigger::Custom(key) => canonical(key) == canonical(kind),
        Trigger::Schedule(_) | Trigger::Manual => true,
    };
    let engine = Engine::default();
    let graph = Graph::of(definition);
    let time = LocalTime { now, zone: account.timezone };
    let mut steps = Vec::new();
    let mut context = TemplateContext {
        event: &event,
        steps: Map::new(),
        account,
        account_name: "the account",
        run_id: Uuid::nil().to_string(),
        flow_name: &definition.name,
        now,
    };
    let mut next = graph.first();
    while let Some(node) = next.and_then(|id| graph.find(id)) {
        let Some(kind) = node.step.kind() else { break };
        let id = node.step.id.clone();
        let prepared = prepare(kind, &context.scope(), time, &engine);
        let prepared = prepared.and_then(|prepared| check_arguments(kind, prepared));
        let input = prepared.as_ref().ok().and_then(Prepared::input);
        let mut answer = json!({});
        let (would, error) = match &prepared {
            Ok(prepared) => {
                let answered = trial.answer(&id, kind, prepared).await;
                let error = answered.as_ref().err().cloned().unwrap_or_default();
                answer = answered.unwrap_or(answer);
                (describe(kind, prepared), error)
            }
            Err(error) => ("fail".to_owned(), error.clone()),
        };
        let failed = !error.is_empty();
        let outcome = if failed { "failed" } else { "done" };
        context.steps.insert(id.clone(), step_result(outcome, &answer, &error));
        steps.push(TestedStep {
            id,
            kind: kind.name().to_owned(),
            would,
            input: input.map(|input| input.to_string()).unwrap_or_default(),
            error,
        });
        next = match prepared {
            Ok(Prepared::When(holds)) => graph.branch(node, holds),
            _ if failed && node.step.on_error == OnError::Fail => None,
            _ => graph.after(node),
        };
    }
    TestFlowResponse { matches, steps }
}

impl Trial<'_> {
    /// What the step would get as its answer, or why its call would fail.
    async fn answer(&self, id: &str, kind: Kind<'_>, prepared: &Prepared) -> Result<Value, String> {
        match (self.answers.get(id), kind, prepared, &self.rehearser) {
            (Some(given), ..) => Ok(given.clone()),
            (None, Kind::Call(call), Prepared::Call(input), Some(rehearser)) => {
                rehearser.call(&call.method, input).await
            }
            _ => Ok(json!({})),
        }
    }
}

/// The event with all its fields, as a run would see it.
fn complete_event(definition: &Definition, event: &Value, now: DateTime<Utc>) -> Value {
    let text = |name: &str| event.get(name).and_then(Value::as_str);
    json!({
        "id": text("id").map_or_else(|| Uuid::nil().to_string(), str::to_owned),
        "type": text("type").unwrap_or(definition.trigger.key()),
        "entity_type": text("entity_type").unwrap_or_default(),
        "entity_id": text("entity_id").unwrap_or_default(),
        "occurred_at": text("occurred_at").map_or_else(|| rfc3339(now), str::to_owned),
        "data": event.get("data").cloned().unwrap_or_else(|| json!({})),
    })
}

/// Fails where the arguments of a call do not fit, as the call would.
fn check_arguments(kind: Kind<'_>, prepared: Prepared) -> Result<Prepared, String> {
    if let (Kind::Call(call), Prepared::Call(input)) = (kind, &prepared) {
        methods::find(&call.method)?.encode(input)?;
    }
    Ok(prepared)
}

/// Continues the sentence "the step would …".
fn describe(kind: Kind<'_>, prepared: &Prepared) -> String {
    match (kind, prepared) {
        (Kind::Call(call), _) => format!("call {}", call.method),
        (_, Prepared::Http(input)) => {
            let text = |name: &str| input[name].as_str().unwrap_or_default().to_owned();
            format!("send {} {}", text("method"), text("url"))
        }
        (_, Prepared::Mail(mail)) => format!("mail \"{}\" to {}", mail.subject, mail.to.join(", ")),
        (_, Prepared::Wait(until)) => format!("wait until {}", rfc3339(*until)),
        (_, Prepared::When(holds)) => {
            format!("find that the condition {}", if *holds { "holds" } else { "does not hold" })
        }
        (_, Prepared::Approve { title, .. }) => format!("ask \"{title}\""),
        (_, Prepared::Call(_)) => "call".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::read::read;

    const FLOW: &str = "
name: A
trigger: {event: invoice.late}
steps:
  - id: client
    call: {method: admin.relations.v1.ClientService/GetClient, with: {id: '{{ data.client_id }}'}}
  - id: has_mail
    when: steps.client.answer.data.email
    then:
      - {id: pause, wait: {for: 3d}}
      - {id: tell, mail: {to: '{{ steps.client.answer.data.email }}', subject: 'Late: {{ data.number }}', text: Hi}}
";

    async fn tested(event: &Value, answers: &Value) -> TestFlowResponse {
        let definition = read(FLOW, "", &mut proto::Faults::default()).unwrap();
        let (account, now) = (chassis_testing::account(), chassis_testing::moment());
        run(&definition, &Trial { event, answers, account: &account, now, rehearser: None }).await
    }

    #[tokio::test]
    async fn a_test_shows_every_step_that_would_be_taken() {
        let event = json!({"type": "invoice.late", "data": {"client_id": "x", "number": "INV-1"}});
        let answers = json!({"client": {"data": {"email": "a@example.com"}}});
        let tested = tested(&event, &answers).await;
        assert!(tested.matches);
        let ids: Vec<&str> = tested.steps.iter().map(|step| step.id.as_str()).collect();
        assert_eq!(ids, ["client", "has_mail", "pause", "tell"]);
        assert_eq!(tested.steps[0].input, r#"{"id":"x"}"#);
        assert_eq!(tested.steps[3].would, "mail \"Late: INV-1\" to a@example.com");
    }

    #[tokio::test]
    async fn a_test_ends_where_the_run_would_fail() {
        let tested = tested(&json!({"type": "invoice.paid", "data": {}}), &json!({})).await;
        assert!(!tested.matches);
        assert_eq!(tested.steps.len(), 1);
        assert!(tested.steps[0].error.contains("client_id"), "{}", tested.steps[0].error);
    }
}
