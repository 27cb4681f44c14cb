//! Accounts cannot read or change each other's records, and API keys cannot call internal rpcs.

use proto::support::{
    DeleteTicketChannelRequest, ListTicketStatusesRequest, ReceiveMailRequest, TicketChannelInput,
};
use serde_json::json;
use tonic::Code;

use crate::world::{World, mail, text};

#[tokio::test]
async fn tickets_and_messages_of_another_account_do_not_exist() {
    let world = World::new().await;
    let (owner, stranger) = (world.user().await, world.user().await);
    let id = text(&owner.ann().await, "id");
    let message = text(&owner.reply(&id, "Hello").await, "id");
    let own = text(&stranger.ann().await, "id");
    stranger.api.get(&format!("/v1/tickets/{id}")).await.expect(404);
    stranger.patch(&id, json!({"subject": "x"})).await.expect(404);
    stranger.api.get(&format!("/v1/tickets/{id}/messages")).await.expect(404);
    stranger.write(&id, json!({"body": "x"})).await.expect(404);
    for ticket in [&id, &own] {
        stranger.api.get(&format!("/v1/tickets/{ticket}/messages/{message}")).await.expect(404);
    }
    let other = text(&owner.ann().await, "id");
    owner.api.get(&format!("/v1/tickets/{other}/messages/{message}")).await.expect(404);
    assert_eq!(stranger.api.get("/v1/tickets?search=bread").await.at("/meta/total"), 1);
    assert_eq!(owner.messages(&id).await.len(), 1, "and it is as it was");
}

#[tokio::test]
async fn the_reply_address_of_a_ticket_works_in_its_account_only() {
    let world = World::new().await;
    let (owner, stranger) = (world.user().await, world.user().await);
    let id = text(&owner.ann().await, "id");
    let inbound = owner.inbound().await;
    let request = ReceiveMailRequest {
        message: mail("1@x", "", "Re: Bread [T-00001]", "x").into_bytes().into(),
        recipients: vec![inbound],
        ..ReceiveMailRequest::default()
    };
    let got = stranger.try_receive(request).await.unwrap();
    stranger.get(&got.ticket_id).await;
    assert_eq!(owner.messages(&id).await.len(), 0);
}

#[tokio::test]
async fn api_keys_cannot_call_internal_rpcs() {
    let world = World::new().await;
    let mut user = world.user().await;
    user.mesh.scopes = vec!["tickets.read".into(), "tickets.write".into()];
    let denied = |status: tonic::Status| assert_eq!(status.code(), Code::PermissionDenied);
    denied(user.try_receive(ReceiveMailRequest::default()).await.unwrap_err());
    denied(user.add_channel(TicketChannelInput::default()).await.unwrap_err());
    let delete = user.mesh.request(DeleteTicketChannelRequest::default());
    denied(user.channels().delete_ticket_channel(delete).await.unwrap_err());
    let list = user.mesh.request(ListTicketStatusesRequest::default());
    user.statuses().list_ticket_statuses(list).await.unwrap();
}
