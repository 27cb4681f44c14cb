//! Statuses: read over REST, managed over gRPC.

use proto::support::{
    CreateTicketStatusRequest, DeleteTicketStatusRequest, TicketStatus, UpdateTicketStatusRequest,
};
use serde_json::{Value, json};
use tonic::Code;

use crate::world::{User, World, text};

async fn names(user: &User, query: &str) -> Vec<String> {
    let answer = user.api.get(&format!("/v1/ticket-statuses{query}")).await.expect(200);
    let list = answer.at("/data").as_array().unwrap().clone();
    assert_eq!(answer.at("/meta"), json!({"total": list.len()}));
    list.iter().map(|status| text(status, "name")).collect()
}

async fn create(user: &User, name: &str, order: i32) -> Result<TicketStatus, tonic::Status> {
    let request = CreateTicketStatusRequest { name: name.into(), active: None, order };
    Ok(user.statuses().create_ticket_status(user.mesh.request(request)).await?.into_inner().data.unwrap())
}

async fn update(user: &User, id: &str, active: bool, order: i32) -> Result<(), tonic::Status> {
    let request =
        UpdateTicketStatusRequest { id: id.into(), active, order, ..UpdateTicketStatusRequest::default() };
    user.statuses().update_ticket_status(user.mesh.request(request)).await.map(drop)
}

async fn delete(user: &User, id: &str) -> Result<(), tonic::Status> {
    let request = user.mesh.request(DeleteTicketStatusRequest { id: id.into() });
    user.statuses().delete_ticket_status(request).await.map(drop)
}

async fn id_of(user: &User, name: &str) -> String {
    let answer = user.api.get("/v1/ticket-statuses").await.expect(200);
    let list = answer.at("/data").as_array().unwrap().clone();
    text(list.iter().find(|status| status["name"] == name).unwrap(), "id")
}

#[tokio::test]
async fn an_account_starts_with_five_statuses_in_their_order() {
    let world = World::new().await;
    let user = world.user().await;
    assert_eq!(names(&user, "").await, ["new", "open", "waiting", "solved", "closed"]);
    assert_eq!(names(&user, "?active=1").await.len(), 5);
    assert_eq!(names(&user, "?active=0").await, [""; 0]);
    let answer = user.api.get("/v1/ticket-statuses?active=yes").await.expect(422);
    assert_eq!(answer.faults(), [("active".to_owned(), "not_allowed".to_owned())]);
    let first = user.api.get("/v1/ticket-statuses").await.at("/data/0");
    let fields: Vec<&String> = first.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["active", "id", "name", "order", "updated_at", "version"]);
}

#[tokio::test]
async fn a_status_can_be_added_moved_deactivated_and_removed() {
    let world = World::new().await;
    let user = world.user().await;
    let triage = create(&user, "triage", 0).await.unwrap();
    assert_eq!(names(&user, "").await[0], "triage");
    assert_eq!(create(&user, "triage", 3).await.unwrap_err().code(), Code::FailedPrecondition);
    update(&user, &triage.id, false, 9).await.unwrap();
    assert_eq!(names(&user, "?active=0").await, ["triage"]);
    delete(&user, &triage.id).await.unwrap();
    assert_eq!(delete(&user, &triage.id).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(update(&user, "x", true, 1).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn a_status_in_use_cannot_be_removed() {
    let world = World::new().await;
    let user = world.user().await;
    let built_in = id_of(&user, "solved").await;
    assert_eq!(delete(&user, &built_in).await.unwrap_err().code(), Code::FailedPrecondition);
    let own = create(&user, "triage", 1).await.unwrap();
    let ticket = user.ann().await;
    user.patch(&text(&ticket, "id"), json!({"status": "triage"})).await.expect(200);
    assert_eq!(delete(&user, &own.id).await.unwrap_err().code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn tickets_get_only_active_statuses() {
    let world = World::new().await;
    let user = world.user().await;
    for name in ["new", "waiting"] {
        update(&user, &id_of(&user, name).await, false, 9).await.unwrap();
    }
    let ticket = user.ann().await;
    assert_eq!(ticket["status"], "open", "the first active one");
    user.reply(&text(&ticket, "id"), "Hello").await;
    assert_eq!(user.get(&text(&ticket, "id")).await["status"], "open", "waiting is not active");
    let answer: Value =
        user.patch(&text(&ticket, "id"), json!({"status": "waiting"})).await.expect(422).json();
    assert_eq!(answer["errors"][0]["code"], "not_allowed");
}
