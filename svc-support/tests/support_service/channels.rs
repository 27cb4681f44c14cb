//! Channels: read over REST, managed over gRPC.

use proto::support::{DeleteTicketChannelRequest, TicketChannelInput, UpdateTicketChannelRequest};
use serde_json::json;
use tonic::Code;

use crate::world::{DOMAIN, World, text};

fn support() -> TicketChannelInput {
    TicketChannelInput {
        name: "Bakery".into(),
        email: "Support@bakery.example".into(),
        forwarding_emails: vec!["info@bakery.example".into()],
        order: 2,
        ..TicketChannelInput::default()
    }
}

#[tokio::test]
async fn an_account_starts_with_a_channel_that_has_an_address() {
    let world = World::new().await;
    let user = world.user().await;
    let answer = user.api.get("/v1/ticket-channels").await.expect(200);
    let channel = answer.at("/data/0");
    let inbound = text(&channel, "inbound_email");
    assert!(inbound.starts_with("in+") && inbound.ends_with(DOMAIN), "{inbound}");
    assert_eq!(
        channel,
        json!({
            "id": channel["id"], "name": "Support", "email": "", "from_email": "", "from_name": "",
            "inbound_email": inbound, "forwarding_emails": [], "active": true, "order": 1,
            "meta": {
                "created_at": channel["meta"]["created_at"], "updated_at": channel["meta"]["created_at"], "version": 1,
            },
        })
    );
    assert_eq!(answer.at("/meta"), json!({"total": 1}));
}

#[tokio::test]
async fn a_channel_can_be_added_changed_deactivated_and_removed() {
    let world = World::new().await;
    let user = world.user().await;
    let made = user.add_channel(support()).await.unwrap();
    assert_eq!((made.email.as_str(), made.order, made.active), ("support@bakery.example", 2, true));
    assert_eq!(
        user.add_channel(support()).await.unwrap_err().code(),
        Code::FailedPrecondition,
        "its address is taken"
    );
    let nameless = TicketChannelInput { name: " ".into(), email: "x".into(), ..support() };
    assert_eq!(user.add_channel(nameless).await.unwrap_err().code(), Code::InvalidArgument);

    let off = TicketChannelInput { active: Some(false), from_name: "Desk".into(), ..support() };
    let request = UpdateTicketChannelRequest { id: made.id.clone(), channel: Some(off) };
    let changed = user.channels().update_ticket_channel(user.mesh.request(request)).await.unwrap();
    let changed = changed.into_inner().data.unwrap();
    assert_eq!((changed.inbound_email, changed.active), (made.inbound_email, false));
    assert_eq!(user.api.get("/v1/ticket-channels").await.at("/meta/total"), 1);
    assert_eq!(user.api.get("/v1/ticket-channels?active=0").await.at("/data/0/from_name"), "Desk");
    user.api.get("/v1/ticket-channels?active=2").await.expect(422);

    let delete = || user.mesh.request(DeleteTicketChannelRequest { id: made.id.clone() });
    user.channels().delete_ticket_channel(delete()).await.unwrap();
    assert_eq!(user.channels().delete_ticket_channel(delete()).await.unwrap_err().code(), Code::NotFound);
}
