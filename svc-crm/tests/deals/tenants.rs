use proto::api::ProvisionAccountRequest;
use proto::api::provisioning_service_client::ProvisioningServiceClient;
use proto::crm::{DeletePhaseRequest, UpdatePhaseRequest};
use serde_json::json;
use tonic::Code;

use crate::support::{World, path, phase};

#[tokio::test]
async fn nothing_of_one_account_is_seen_or_used_by_another() {
    let world = World::new().await;
    let (user, other) = (world.user().await, world.user().await);
    let (mine, theirs) = (user.client("Mill").await, other.client("Farm").await);
    let deal = user.titled_deal(&mine, "Ovens").await;
    let board = user.board().await;
    other.api.get(&path(&deal)).await.expect(404);
    other.act(&deal, "win", json!({})).await.expect(404);
    other.delete(&deal).await.expect(404);
    assert_eq!(other.total("").await, 0);
    assert_eq!(other.total(&format!("client_id={mine}")).await, 0);
    for body in [
        json!({"title": "T", "client_id": mine}),
        json!({"title": "T", "client_id": theirs, "pipeline_id": board[0]["id"]}),
        json!({"title": "T", "client_id": theirs, "phase_id": phase(&board[0], 0)}),
    ] {
        other.api.post("/v1/deals", body).await.expect(422);
    }
    let id = phase(&board[0], 0);
    let rename = other.request(UpdatePhaseRequest { id: id.clone(), name: "X".into() });
    assert_eq!(other.pipelines().update_phase(rename).await.unwrap_err().code(), Code::NotFound);
    let remove = other.request(DeletePhaseRequest { id });
    assert_eq!(other.pipelines().delete_phase(remove).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(user.board().await, board);
}

#[tokio::test]
async fn provisioning_again_restores_nothing_and_duplicates_nothing() {
    let world = World::new().await;
    let user = world.user().await;
    let board = user.board().await;
    let remove = user.request(DeletePhaseRequest { id: phase(&board[0], 3) });
    user.pipelines().delete_phase(remove).await.unwrap();
    let board = user.board().await;
    let request = user.request(ProvisionAccountRequest { name: "Again".into() });
    ProvisioningServiceClient::new(user.channel()).provision_account(request).await.unwrap();
    assert_eq!(user.board().await, board);
}

#[tokio::test]
async fn a_key_cannot_manage_pipelines() {
    let world = World::new().await;
    let user = world.user().await;
    let board = user.board().await;
    let mut keyed = user.request(DeletePhaseRequest { id: phase(&board[0], 3) });
    let tokens = chassis_rpc::token::Tokens::new(chassis_testing::secret());
    let scopes = ["deals.read".to_owned(), "deals.write".to_owned()];
    let token = tokens.to_self().mint(&user.account, "key", "Key", &scopes, world.clock.now());
    keyed.metadata_mut().insert(chassis_rpc::token::HEADER, token.parse().unwrap());
    assert_eq!(user.pipelines().delete_phase(keyed).await.unwrap_err().code(), Code::PermissionDenied);
}
