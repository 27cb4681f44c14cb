//! What a flow would do with an event. Nothing is called, sent or stored; calls answer what the tester says. Pure.

use chassis_base::Account;
use chrono::{DateTime, Utc};
use proto::automation::{TestFlowResponse, TestedStep};
use serde_json::{Map, Value, json};

use super::calls;
use super::definition::{Definition, Kind, OnError, Trigger};
use super::graph::Graph;
use crate::event::rfc3339;
use crate::event::rules::canonical;
use crate::run::prepare::{Known, Prepared, prepare, seen};
use crate::template::Engine;

/// Walks through the steps that would be taken. Waits pass at once, and everything is approved.
pub(crate) fn run(
    definition: &Definition,
    event: &Value,
    answers: &Value,
    (account, now): (&Account, DateTime<Utc>),
) -> TestFlowResponse {
    let event = completed(definition, event, now);
    let kind = event["type"].as_str().unwrap_or_default();
    let matches = match &definition.trigger {
        Trigger::Event(key) | Trigger::Custom(key) => canonical(key) == canonical(kind),
        Trigger::Schedule(_) | Trigger::Manual => true,
    };
    let (engine, graph) = (Engine::default(), Graph::of(definition));
    let mut steps = Vec::new();
    let mut known = Known {
        event: &event,
        steps: Map::new(),
        account: (account, "the account"),
        run: ("00000000-0000-0000-0000-000000000000".to_owned(), &definition.name),
        now,
    };
    let mut next = graph.first();
    while let Some(node) = next.and_then(|id| graph.find(id)) {
        let Some(kind) = node.step.kind() else { break };
        let id = node.step.id.clone();
        let prepared = prepare(kind, &known.scope(), (now, account.timezone), &engine);
        let prepared = prepared.and_then(|prepared| fitting(kind, prepared));
        let input = prepared.as_ref().ok().and_then(Prepared::input);
        let (would, error) = match &prepared {
            Ok(prepared) => (in_words(kind, prepared), String::new()),
            Err(error) => ("fail".to_owned(), error.clone()),
        };
        let failed = !error.is_empty();
        let answer = answers.get(&id).cloned().unwrap_or_else(|| json!({}));
        let outcome = if failed { "failed" } else { "done" };
        known.steps.insert(id.clone(), seen(outcome, &answer, &error));
        steps.push(TestedStep {
            id,
            kind: kind.name().to_owned(),
            would,
            input: input.map(|input| input.to_string()).unwrap_or_default(),
            error,
        });
        next = match prepared {
            Ok(Prepared::When(holds)) => graph.branch(node, holds),
            Err(_) if node.step.on_error == OnError::Fail => None,
            _ => graph.after(node),
        };
    }
    TestFlowResponse { matches, steps }
}

/// The event as a run would see it.
fn completed(definition: &Definition, event: &Value, now: DateTime<Utc>) -> Value {
    let text = |name: &str| event.get(name).and_then(Value::as_str);
    json!({
        "id": text("id").unwrap_or("00000000-0000-0000-0000-000000000000"),
        "type": text("type").unwrap_or(definition.trigger.key()),
        "entity_type": text("entity_type").unwrap_or_default(),
        "entity_id": text("entity_id").unwrap_or_default(),
        "occurred_at": text("occurred_at").map_or_else(|| rfc3339(now), str::to_owned),
        "data": event.get("data").cloned().unwrap_or_else(|| json!({})),
    })
}

/// Arguments that do not fit would fail the call.
fn fitting(kind: Kind<'_>, prepared: Prepared) -> Result<Prepared, String> {
    if let (Kind::Call(call), Prepared::Call(input)) = (kind, &prepared) {
        calls::find(&call.method)?.encode(input)?;
    }
    Ok(prepared)
}

fn in_words(kind: Kind<'_>, prepared: &Prepared) -> String {
    match (kind, prepared) {
        (Kind::Call(call), _) => format!("call {}", call.method),
        (_, Prepared::Http(input)) => {
            let text = |name: &str| input[name].as_str().unwrap_or_default().to_owned();
            format!("send {} {}", text("method"), text("url"))
        }
        (_, Prepared::Mail(letter)) => format!("mail \"{}\" to {}", letter.subject, letter.to.join(", ")),
        (_, Prepared::Wait(until)) => format!("wait until {}", rfc3339(*until)),
        (_, Prepared::When(holds)) => {
            format!("find that the condition {}", if *holds { "holds" } else { "does not hold" })
        }
        (_, Prepared::Approve(title, _)) => format!("ask \"{title}\""),
        (_, Prepared::Call(_)) => "call".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::read::read;

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

    fn tested(event: &Value, answers: &Value) -> TestFlowResponse {
        let definition = read(FLOW, "", &mut proto::Faults::default()).unwrap();
        run(&definition, event, answers, (&chassis_testing::account(), chassis_testing::moment()))
    }

    #[test]
    fn a_test_shows_every_step_that_would_be_taken() {
        let event = json!({"type": "invoice.late", "data": {"client_id": "x", "number": "INV-1"}});
        let answers = json!({"client": {"data": {"email": "a@example.com"}}});
        let tested = tested(&event, &answers);
        assert!(tested.matches);
        let ids: Vec<&str> = tested.steps.iter().map(|step| step.id.as_str()).collect();
        assert_eq!(ids, ["client", "has_mail", "pause", "tell"]);
        assert_eq!(tested.steps[0].input, r#"{"id":"x"}"#);
        assert_eq!(tested.steps[3].would, "mail \"Late: INV-1\" to a@example.com");
    }

    #[test]
    fn a_test_ends_where_the_run_would_fail() {
        let tested = tested(&json!({"type": "invoice.paid", "data": {}}), &json!({}));
        assert!(!tested.matches);
        assert_eq!(tested.steps.len(), 1);
        assert!(tested.steps[0].error.contains("client_id"), "{}", tested.steps[0].error);
    }
}
