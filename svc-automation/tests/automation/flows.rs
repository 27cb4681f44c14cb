//! Flows: checked whole before they are stored, kept in versions, switched on and off.

use chassis_testing::faults;
use proto::automation::{
    DeleteFlowRequest, FlowPatch, GetFlowDefinitionRequest, GetFlowRequest, GetFlowSchemaRequest,
    ListFlowsRequest, TestFlowRequest, TriggerType, UpdateFlowRequest,
};
use serde_json::json;

use crate::support::{MAKE_CLIENT, Receiver, World, fault};

#[tokio::test]
async fn every_fault_of_a_definition_is_reported_with_its_pointer() {
    let world = World::idle().await;
    let status = world
        .try_apply(
            "
name: ' '
trigger: {event: invoice.lost}
steps:
  - {id: 1a, wait: {for: 3 days}}
  - id: call
    call: {method: admin.relations.v1.ClientService/CreateClient, with: {client: {compny_name: x, payment_term: soon}}}
  - {id: call, when: 'data.', then: [{id: tell, mail: {to: nobody, subject: '{{ datum.x }}', text: T}}]}
  - {id: both, wait: {for: 1d}, approve: {title: '?'}}
  - {id: gone, call: {method: admin.relations.v1.ClientService/Vanish}}
  - {id: out, http: {url: 'ftp://example.com', headers: {webhook-id: x}}}
  - {id: often, call: {method: admin.relations.v1.ClientService/ListClients}, retry: {max_attempts: 0}, timeout: 10m}
",
        )
        .await
        .unwrap_err();
    let found = faults(&status);
    for (pointer, code) in [
        ("/definition/name", "required"),
        ("/definition/trigger/event", "not_allowed"),
        ("/definition/steps/0/id", "bad_format"),
        ("/definition/steps/0/wait/for", "bad_format"),
        ("/definition/steps/1/call/with/client/compny_name", "not_allowed"),
        ("/definition/steps/1/call/with/client/payment_term", "not_an_integer"),
        ("/definition/steps/2/id", "repeated"),
        ("/definition/steps/2/when", "bad_format"),
        ("/definition/steps/2/then/0/mail/to", "bad_email"),
        ("/definition/steps/2/then/0/mail/subject", "bad_format"),
        ("/definition/steps/3", "conflicting"),
        ("/definition/steps/4/call/method", "unknown_reference"),
        ("/definition/steps/5/http/url", "bad_url"),
        ("/definition/steps/5/http/headers/webhook-id", "bad_header"),
        ("/definition/steps/6/retry/max_attempts", "out_of_range"),
        ("/definition/steps/6/timeout", "out_of_range"),
    ] {
        assert!(found.contains(&fault(pointer, code)), "{pointer} {code}: {found:?}");
    }
    assert_eq!(world.count("select count(*) from automation.flow").await, 0);
}

#[tokio::test]
async fn a_changed_definition_is_a_new_version_and_an_unchanged_one_is_not() {
    let world = World::idle().await;
    let first = world.try_apply(MAKE_CLIENT).await.unwrap();
    assert!(first.created && first.changed);
    let again = world.try_apply(MAKE_CLIENT).await.unwrap();
    assert!(!again.created && !again.changed);
    let changed = MAKE_CLIENT.replace("{{ data.name }}", "{{ data.name }} B.V.");
    let second = world.try_apply(&changed).await.unwrap();
    let flow = second.data.unwrap();
    assert!(!second.created && second.changed);
    assert_eq!((flow.id.clone(), flow.meta.unwrap().version), (first.data.unwrap().id, 2));
    for (version, text) in [(0, changed.as_str()), (1, MAKE_CLIENT), (2, &changed)] {
        let request = world.caller.request(GetFlowDefinitionRequest { id: flow.id.clone(), version });
        let found = world.flows().get_flow_definition(request).await.unwrap().into_inner();
        assert_eq!(found.definition, text);
    }
}

#[tokio::test]
async fn an_inactive_or_deleted_flow_never_matches() {
    let world = World::idle().await;
    let flow = world.apply(MAKE_CLIENT).await;
    let switch = async |active| {
        let request =
            UpdateFlowRequest { id: flow.id.clone(), flow: Some(FlowPatch { active: Some(active) }) };
        world
            .flows()
            .update_flow(world.caller.request(request))
            .await
            .unwrap()
            .into_inner()
            .data
            .unwrap()
            .active
    };
    assert!(!switch(false).await);
    assert_eq!(world.fire("make.client", &json!({})).await.matched, 0);
    assert!(switch(true).await);
    assert_eq!(world.fire("make.client", &json!({})).await.matched, 1);
    let delete = || world.caller.request(DeleteFlowRequest { id: flow.id.clone() });
    world.flows().delete_flow(delete()).await.unwrap();
    assert_eq!(world.fire("make.client", &json!({})).await.matched, 0);
    assert_eq!(world.flows().delete_flow(delete()).await.unwrap_err().code(), tonic::Code::NotFound);
    let get = world.caller.request(GetFlowRequest { id: flow.id.clone() });
    assert_eq!(world.flows().get_flow(get).await.unwrap_err().code(), tonic::Code::NotFound);
}

#[tokio::test]
async fn concurrent_applications_of_one_flow_make_one() {
    let world = World::idle().await;
    let mut applying = tokio::task::JoinSet::new();
    for number in 0..8 {
        let definition = MAKE_CLIENT.replace("data.name", &format!("data.name{}", number % 2));
        let request = proto::automation::ApplyFlowRequest { definition, active: None };
        let (mut flows, request) = (world.flows(), world.caller.request(request));
        applying.spawn(async move { flows.apply_flow(request).await.map(|_| ()) });
    }
    for applied in applying.join_all().await {
        applied.unwrap();
    }
    assert_eq!(world.count("select count(*) from automation.flow").await, 1);
}

#[tokio::test]
async fn an_account_starts_with_inactive_flows_and_deleted_ones_stay_deleted() {
    let world = World::idle().await;
    world.provision().await;
    let list = async |trigger_type: TriggerType| {
        let request = ListFlowsRequest { trigger_type: trigger_type.into(), ..ListFlowsRequest::default() };
        world.flows().list_flows(world.caller.request(request)).await.unwrap().into_inner().data
    };
    let flows = list(TriggerType::Unspecified).await;
    assert!(flows.len() >= 3 && flows.iter().all(|flow| !flow.active), "{flows:?}");
    assert_eq!(list(TriggerType::Event).await.len(), flows.len());
    assert!(list(TriggerType::Manual).await.is_empty());
    let request = DeleteFlowRequest { id: flows[0].id.clone() };
    world.flows().delete_flow(world.caller.request(request)).await.unwrap();
    world.provision().await;
    assert_eq!(list(TriggerType::Unspecified).await.len(), flows.len() - 1);
}

#[tokio::test]
async fn a_test_of_a_flow_does_nothing() {
    let world = World::working().await;
    let request = TestFlowRequest {
        definition: MAKE_CLIENT.into(),
        event: json!({"type": "make.client", "data": {"name": "A"}}).to_string(),
        answers: String::new(),
    };
    let tested = world.flows().test_flow(world.caller.request(request)).await.unwrap().into_inner();
    assert!(tested.matches && tested.steps[0].error.is_empty(), "{tested:?}");
    assert!(tested.steps[0].input.contains("\"company_name\":\"A\""));
    assert_eq!(world.clients().await, 0);
    assert_eq!(world.count("select count(*) from automation.run").await, 0);
}

#[tokio::test]
async fn the_schema_is_json_and_has_every_step() {
    let world = World::idle().await;
    let answer = world.flows().get_flow_schema(world.caller.request(GetFlowSchemaRequest {})).await.unwrap();
    let schema: serde_json::Value = serde_json::from_str(&answer.into_inner().schema).unwrap();
    let text = schema.to_string();
    for word in ["call", "http", "mail", "wait", "when", "approve", "retry", "on_error", "timeout"] {
        assert!(text.contains(&format!("\"{word}\"")), "{word}");
    }
}

/// A flow with a request and these fields of `retry`.
fn with_retry(url: &str, retry: &str) -> String {
    format!(
        "
name: Retry
trigger: {{custom: go}}
steps:
  - {{id: send, http: {{url: '{url}', body: {{}}}}, retry: {{{retry}}}}}
"
    )
}

#[tokio::test]
async fn both_names_of_the_backoff_are_one_version_and_stored_for_the_release_before() {
    let world = World::idle().await;
    let old = with_retry("https://example.com", "max_attempts: 3, first_wait: 1s, most_wait: 5m");
    let new = with_retry("https://example.com", "max_attempts: 3, initial_backoff: 1s, max_backoff: 5m");
    let first = world.try_apply(&new).await.unwrap();
    assert!(first.created && first.changed);
    let again = world.try_apply(&old).await.unwrap();
    assert!(!again.created && !again.changed, "the same values under the old names are not a new version");
    let flow = first.data.unwrap();
    let request = world.caller.request(GetFlowDefinitionRequest { id: flow.id, version: 0 });
    let shown = world.flows().get_flow_definition(request).await.unwrap().into_inner().definition;
    assert_eq!(shown, new, "it is shown as its author wrote it");
    let stored: String = sqlx::query_scalar("select definition from automation.flow_version")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    let retry = r#""retry":{"max_attempts":3,"first_wait":"1s","most_wait":"5m"}"#;
    assert!(stored.contains(retry), "{stored}");
}

#[tokio::test]
async fn a_retry_waits_as_long_as_either_name_of_the_backoff_says() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    receiver.answer(&[503, 503]);
    for retry in ["initial_backoff: 30m, max_backoff: 1h", "first_wait: 30m, most_wait: 1h"] {
        world.apply(&with_retry(&receiver.url, retry)).await;
        let before = world.clock.now();
        let id = world.start("go", &json!({})).await;
        let next = world.until(&id, "retrying").await.next_attempt_at.unwrap();
        let delay = chassis_base::time::from_timestamp(&next).unwrap() - before;
        assert!((15..=30).contains(&delay.num_minutes()), "{retry}: {delay}");
        world.cancel(&id).await.unwrap();
    }
}

#[tokio::test]
async fn a_flow_that_was_stored_under_the_old_names_still_runs() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    receiver.answer(&[503]);
    world.apply(&with_retry(&receiver.url, "max_attempts: 3")).await;
    let changed = sqlx::query(
        r#"update automation.flow_version set definition = replace(definition,
            '"retry":{"max_attempts":3}', '"retry":{"max_attempts":3,"first_wait":"40m","most_wait":"1h"}')"#,
    );
    changed.execute(&mut world.database.connect().await).await.unwrap();
    let before = world.clock.now();
    let id = world.start("go", &json!({})).await;
    let next = world.until(&id, "retrying").await.next_attempt_at.unwrap();
    let delay = chassis_base::time::from_timestamp(&next).unwrap() - before;
    assert!((20..=40).contains(&delay.num_minutes()), "{delay}");
    world.clock.advance(chrono::TimeDelta::hours(1));
    world.until(&id, "success").await;
}

#[tokio::test]
async fn an_old_and_a_new_name_of_the_same_value_contradict_each_other() {
    let world = World::idle().await;
    let both = with_retry("https://example.com", "initial_backoff: 1s, first_wait: 1s, max_backoff: 1m");
    let refused = world.try_apply(&both).await.unwrap_err();
    assert_eq!(faults(&refused), [fault("/definition/steps/0/retry/first_wait", "conflicting")]);
    assert!(
        String::from_utf8_lossy(refused.details()).contains("first_wait is the old name of initial_backoff")
    );
    for (retry, pointer, code) in [
        ("max_backoff: 1m, most_wait: 1m", "most_wait", "conflicting"),
        ("initial_backoff: soon", "initial_backoff", "bad_format"),
        ("first_wait: soon", "first_wait", "bad_format"),
        ("max_backoff: 2h", "max_backoff", "out_of_range"),
        ("most_wait: 2h", "most_wait", "out_of_range"),
    ] {
        let refused = world.try_apply(&with_retry("https://example.com", retry)).await.unwrap_err();
        let expected = fault(&format!("/definition/steps/0/retry/{pointer}"), code);
        assert_eq!(faults(&refused), [expected], "{retry}");
    }
    // One value under its old and the other under its new name is no contradiction.
    world.apply(&with_retry("https://example.com", "first_wait: 1s, max_backoff: 1m")).await;
}
