//! Flows: checked whole before they are stored, kept in versions, switched on and off.

use proto::automation::{
    DeleteFlowRequest, FlowPatch, GetFlowDefinitionRequest, GetFlowRequest, GetFlowSchemaRequest,
    ListFlowsRequest, TestFlowRequest, TriggerType, UpdateFlowRequest,
};
use serde_json::json;

use crate::support::{MAKE_CLIENT, World, fault, faults};

#[tokio::test]
async fn every_fault_of_a_definition_is_told_with_its_place() {
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
    for (place, code) in [
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
        assert!(found.contains(&fault(place, code)), "{place} {code}: {found:?}");
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
async fn many_who_apply_one_flow_at_once_make_one() {
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
async fn an_account_starts_with_flows_that_are_switched_off_and_stay_deleted() {
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
async fn the_schema_is_json_and_knows_every_step() {
    let world = World::idle().await;
    let answer = world.flows().get_flow_schema(world.caller.request(GetFlowSchemaRequest {})).await.unwrap();
    let schema: serde_json::Value = serde_json::from_str(&answer.into_inner().schema).unwrap();
    let text = schema.to_string();
    for word in ["call", "http", "mail", "wait", "when", "approve", "retry", "on_error", "timeout"] {
        assert!(text.contains(&format!("\"{word}\"")), "{word}");
    }
}
