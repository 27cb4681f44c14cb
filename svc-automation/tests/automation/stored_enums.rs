//! A stored text that this release does not know is an error, and never shown as something else.

use proto::automation::{GetFlowRequest, GetRunRequest, ListRunsRequest, ListWebhookDeliveriesRequest};
use serde_json::json;
use tonic::Code;

use crate::support::World;

const FLOW: &str = "{name: W, trigger: {custom: go}, steps: [{id: a, wait: {for: 1d}}]}";

#[tokio::test]
async fn a_run_with_an_unknown_text_is_not_shown_as_something_else() {
    let world = World::working().await;
    world.apply(FLOW).await;
    let id = world.start("go", &json!({})).await;
    world.until(&id, "waiting").await;
    for (change, undo) in [
        ("update automation.run set status = 'dreaming'", "update automation.run set status = 'waiting'"),
        (
            "update automation.run set trigger_type = 'whim'",
            "update automation.run set trigger_type = 'custom'",
        ),
        (
            "update automation.run_step set outcome = 'perhaps'",
            "update automation.run_step set outcome = 'waiting'",
        ),
        ("update automation.run_step set kind = 'dance'", "update automation.run_step set kind = 'wait'"),
    ] {
        world.execute(change).await;
        let request = world.caller.request(GetRunRequest { id: id.clone() });
        let refused = world.runs().get_run(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::Internal, "{change}: {refused:?}");
        let listed = world.runs().list_runs(world.caller.request(ListRunsRequest::default())).await;
        assert_eq!(listed.is_err(), !change.contains("run_step"), "{change}");
        world.execute(undo).await;
        assert_eq!(world.run(&id).await.status, "waiting");
    }
}

#[tokio::test]
async fn a_flow_with_an_unknown_trigger_is_not_shown_as_something_else() {
    let world = World::idle().await;
    let flow = world.apply(FLOW).await;
    // As a later release would, which knows more triggers.
    world.execute("alter table automation.flow drop constraint flow_trigger_known").await;
    world.execute("update automation.flow set trigger_type = 'whim'").await;
    let request = world.caller.request(GetFlowRequest { id: flow.id });
    assert_eq!(world.flows().get_flow(request).await.unwrap_err().code(), Code::Internal);
}

#[tokio::test]
async fn a_delivery_with_an_unknown_status_is_not_shown_as_something_else() {
    let world = World::idle().await;
    let endpoint = proto::automation::WebhookEndpointInput {
        url: "https://example.com".into(),
        ..proto::automation::WebhookEndpointInput::default()
    };
    let request = proto::automation::CreateWebhookEndpointRequest { endpoint: Some(endpoint) };
    let made = world.webhooks().create_webhook_endpoint(world.caller.request(request)).await.unwrap();
    let id = made.into_inner().data.unwrap().id;
    world.fire("a.b", &json!({})).await;
    world
        .execute("alter table automation.webhook_delivery drop constraint webhook_delivery_status_known")
        .await;
    world.execute("update automation.webhook_delivery set status = 'adrift'").await;
    let request = world.caller.request(ListWebhookDeliveriesRequest { id, ..Default::default() });
    let refused = world.webhooks().list_webhook_deliveries(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::Internal);
}
