//! Records of other services that are deleted: nothing here refers to them any longer.

use chassis_testing::eventually;
use proto::crm::deal_service_client::DealServiceClient;
use proto::crm::{CreateDealRequest, DealInput, DeleteDealRequest};
use serde_json::json;
use uuid::Uuid;

use crate::support::id;
use crate::world::World;

#[tokio::test]
async fn tasks_and_notes_of_a_deleted_deal_lose_their_reference() {
    let world = World::start().with_crm().await;
    let user = world.user().await;
    let crm = world.start_crm_worker().await;
    let mut deals = DealServiceClient::new(crm.channel());
    let (client_id, mut made) = (user.client("C").await, Vec::new());
    for title in ["Gone", "Kept"] {
        let deal = DealInput { title: title.into(), client_id: client_id.clone(), ..DealInput::default() };
        let request = user.request(CreateDealRequest { deal: Some(deal) });
        made.push(deals.create_deal(request).await.unwrap().into_inner().data.unwrap().id);
    }
    let (mut tasks, mut notes) = (Vec::new(), Vec::new());
    for deal in &made {
        tasks.push(id(&user.create("tasks", json!({"title": "Call", "deal_id": deal})).await));
        notes.push(id(&user.create("notes", json!({"body": "Called", "deal_id": deal})).await));
    }
    deals.delete_deal(user.request(DeleteDealRequest { id: made[0].clone() })).await.unwrap();
    let deal_of =
        async |task: &str| user.get(&format!("/v1/tasks/{task}")).await["data"]["meta"]["deal_id"].clone();
    eventually("the task belongs to no deal", async || deal_of(&tasks[0]).await == json!(null)).await;
    assert_eq!(deal_of(&tasks[1]).await, json!(made[1]));
    let list = user.get("/v1/notes").await;
    for note in list["data"].as_array().unwrap() {
        let expected = if id(note) == notes[0] { json!(null) } else { json!(made[1]) };
        assert_eq!(note["meta"]["deal_id"], expected, "{note}");
    }
}

#[tokio::test]
async fn notes_of_a_deleted_draft_lose_their_reference() {
    let mut world = World::start().with_billing().await;
    world.start_billing_worker().await;
    let user = world.user().await;
    let draft = id(&user.create("invoices", json!({"title": "Draft", "total_excl_vat": 1})).await);
    user.create("notes", json!({"body": "Called", "invoice_id": draft})).await;
    user.delete(&format!("/v1/invoices/{draft}")).await.expect(200);
    eventually("the note is about no invoice", async || {
        user.get("/v1/notes").await["data"][0]["meta"]["invoice_id"] == json!(null)
    })
    .await;
}

#[tokio::test]
async fn a_project_of_a_deleted_quote_loses_its_reference() {
    let mut world = World::start().with_billing().await;
    world.start_billing_worker().await;
    let user = world.user().await;
    let mut made = Vec::new();
    for title in ["Gone", "Kept"] {
        let quote = id(&user.create("quotes", json!({"title": title, "total_excl_vat": 1})).await);
        let project = id(&user.project(title).await);
        sqlx::query("update work.project set quote_id = $1 where id = $2")
            .bind(Uuid::parse_str(&quote).unwrap())
            .bind(Uuid::parse_str(&project).unwrap())
            .execute(&mut world.database.connect().await)
            .await
            .unwrap();
        made.push((quote, project));
    }
    user.delete(&format!("/v1/quotes/{}", made[0].0)).await.expect(200);
    let quote_of = async |project: &str| {
        user.get(&format!("/v1/projects/{project}")).await["data"]["meta"]["quote_id"].clone()
    };
    eventually("the project is made of no quote", async || quote_of(&made[0].1).await == json!(null)).await;
    assert_eq!(quote_of(&made[1].1).await, json!(made[1].0));
}
