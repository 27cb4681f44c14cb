//! What the lists of flows, runs, endpoints and deliveries can be narrowed to.

use proto::automation::{
    CreateWebhookEndpointRequest, ListFlowsRequest, ListRunsRequest, ListWebhookDeliveriesRequest,
    ListWebhookEndpointsRequest, TriggerInput, TriggerRequest, TriggerType, WebhookDeliveryStatus,
    WebhookEndpointInput,
};
use serde_json::json;

use crate::support::{Receiver, World};
use WebhookDeliveryStatus::{Delivered, Failed, Unspecified};

async fn runs(world: &World, request: ListRunsRequest) -> i64 {
    world.runs().list_runs(world.caller.request(request)).await.unwrap().into_inner().meta.unwrap().total
}

#[tokio::test]
async fn runs_are_filtered_by_what_started_them_and_what_they_are_about() {
    let world = World::idle().await;
    let flow = world.apply("{name: W, trigger: {custom: go}, steps: [{id: a, wait: {for: 1d}}]}").await;
    world.start("go", &json!({})).await;
    let trigger = TriggerInput { event: "go".into(), entity_type: "order".into(), ..TriggerInput::default() };
    let request = TriggerRequest { trigger: Some(trigger) };
    world.triggers().trigger(world.caller.request(request)).await.unwrap();
    let all = ListRunsRequest::default();
    for (request, total) in [
        (all.clone(), 2),
        (ListRunsRequest { trigger_type: TriggerType::Custom.into(), ..all.clone() }, 2),
        (ListRunsRequest { trigger_type: TriggerType::Manual.into(), ..all.clone() }, 0),
        (ListRunsRequest { entity_type: "order".into(), ..all.clone() }, 1),
        (
            ListRunsRequest {
                entity_type: "order".into(),
                flow_id: flow.id.clone(),
                status: "queued".into(),
                trigger_type: TriggerType::Custom.into(),
                ..all.clone()
            },
            1,
        ),
        (ListRunsRequest { entity_type: "order".into(), status: "failed".into(), ..all.clone() }, 0),
        (ListRunsRequest { entity_id: "x".into(), ..all }, 0),
    ] {
        let query = format!("{request:?}");
        assert_eq!(runs(&world, request).await, total, "{query}");
    }
}

#[tokio::test]
async fn flows_are_filtered_by_their_key_and_their_category() {
    let world = World::idle().await;
    world.apply("{name: A, trigger: {custom: go}, steps: [{id: a, wait: {for: 1d}}]}").await;
    world
        .apply("{name: B, category: Sales, trigger: {custom: stop}, steps: [{id: a, wait: {for: 1d}}]}")
        .await;
    let names = async |request: ListFlowsRequest| -> Vec<String> {
        let listed = world.flows().list_flows(world.caller.request(request)).await.unwrap().into_inner();
        assert_eq!(listed.meta.unwrap().total, i64::try_from(listed.data.len()).unwrap());
        listed.data.into_iter().map(|flow| flow.name).collect()
    };
    let all = ListFlowsRequest::default();
    assert_eq!(names(ListFlowsRequest { trigger_key: "go".into(), ..all.clone() }).await, ["A"]);
    assert_eq!(names(ListFlowsRequest { category: "Sales".into(), ..all.clone() }).await, ["B"]);
    let both = ListFlowsRequest { category: "Sales".into(), trigger_key: "go".into(), ..all };
    assert_eq!(names(both).await, [""; 0]);
}

#[tokio::test]
async fn endpoints_are_filtered_by_whether_they_are_active_and_deliveries_by_status_and_type() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    let mut ids = Vec::new();
    for active in [true, false] {
        let endpoint = WebhookEndpointInput {
            url: receiver.url.clone(),
            active: Some(active),
            ..WebhookEndpointInput::default()
        };
        let request = world.caller.request(CreateWebhookEndpointRequest { endpoint: Some(endpoint) });
        let made = world.webhooks().create_webhook_endpoint(request).await.unwrap().into_inner();
        ids.push(made.data.unwrap().id);
    }
    let found = async |active: Option<bool>| -> Vec<String> {
        let request = ListWebhookEndpointsRequest { active, ..Default::default() };
        let listed = world.webhooks().list_webhook_endpoints(world.caller.request(request)).await.unwrap();
        listed.into_inner().data.into_iter().map(|endpoint| endpoint.id).collect()
    };
    assert_eq!(found(Some(true)).await, [ids[0].clone()]);
    assert_eq!(found(Some(false)).await, [ids[1].clone()]);
    assert_eq!(found(None).await.len(), 2);

    world.fire("order.shipped", &json!({})).await;
    world.fire("order.lost", &json!({})).await;
    receiver.until_got(2).await;
    let deliveries = async |status: WebhookDeliveryStatus, kind: &str| {
        let request = ListWebhookDeliveriesRequest {
            id: ids[0].clone(),
            status: status.into(),
            r#type: kind.into(),
            ..Default::default()
        };
        let listed = world.webhooks().list_webhook_deliveries(world.caller.request(request)).await.unwrap();
        listed.into_inner().meta.unwrap().total
    };
    chassis_testing::eventually("both are delivered", async || deliveries(Delivered, "").await == 2).await;
    assert_eq!(deliveries(Failed, "").await, 0);
    assert_eq!(deliveries(Unspecified, "order.lost").await, 1);
    assert_eq!(deliveries(Delivered, "order.shipped").await, 1);
    assert_eq!(deliveries(Unspecified, "order").await, 0);
}
