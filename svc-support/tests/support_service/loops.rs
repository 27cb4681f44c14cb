//! Two accounts whose flows answer each other's mail.

use chassis_testing::eventually;
use proto::support::ticket_message_service_client::TicketMessageServiceClient;
use proto::support::{CreateTicketMessageRequest, TicketMessageInput};
use serde_json::json;

use crate::world::{User, World, header, text};

/// The events that a flow gets, with the length of the chain of events that led to them.
async fn take_events(world: &World, user: &User) -> Vec<(String, i32)> {
    sqlx::query_as(
        "with taken as (select * from support.log where account_id = $1 and event is not null),
            forgotten as (update support.log set event = null where account_id = $1)
         select record_id, depth from taken where event = 'ticket.inbound_message' order by id",
    )
    .bind(user.account().id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap()
}

/// Answers every message that came in, as a flow without conditions does.
async fn answer_all(world: &World, user: &User) -> usize {
    let events = take_events(world, user).await;
    for (ticket, depth) in &events {
        let body = "We have got your mail".to_owned();
        let message = TicketMessageInput { body, ..TicketMessageInput::default() };
        let request = CreateTicketMessageRequest { id: ticket.clone(), message: Some(message) };
        let request = user.mesh.request_at(u32::try_from(*depth).unwrap() + 1, request);
        TicketMessageServiceClient::new(user.channel()).create_ticket_message(request).await.unwrap();
    }
    events.len()
}

#[tokio::test]
async fn two_accounts_whose_flows_answer_each_other_stop() {
    let world = World::with(&["--mail-from", "no-reply@installation.example"]).await;
    let (one, two) = (world.user().await, world.user().await);
    let ticket = one.ticket(json!({"subject": "Order", "client_email": two.inbound().await})).await;
    one.reply(&text(&ticket, "id"), "Where is it?").await;
    let (mut handed_over, mut answered) = (0, 0);
    let mut stopped = false;
    // Two rounds are expected; without the rule the flows would need every one of these, and more.
    for _ in 0..5 {
        // Everything that was sent arrives.
        eventually("the mail arrives", async || world.sink.received().len() > handed_over).await;
        let sent = world.sink.received();
        for mail in &sent[handed_over..] {
            world.send(&mail.sender, &[&mail.recipients[0]], &mail.message).await.unwrap();
        }
        handed_over = sent.len();
        let now = answer_all(&world, &one).await + answer_all(&world, &two).await;
        answered += now;
        let waiting: i64 = sqlx::query_scalar("select count(*) from support.mail")
            .fetch_one(&mut world.database.connect().await)
            .await
            .unwrap();
        if usize::try_from(waiting).unwrap() == handed_over {
            stopped = true;
            break;
        }
    }
    assert!(stopped, "the flows do not stop: {handed_over} mails, {answered} answers");
    // The first mail is answered. The answer to that answer, which a program wrote, is stored and not mailed.
    assert_eq!((handed_over, answered), (2, 2));
    let sent: Vec<String> = world.sink.received().into_iter().map(|mail| mail.message).collect();
    assert_eq!(header(&sent[0], "Auto-Submitted"), None, "a person wrote it");
    assert_eq!(header(&sent[1], "Auto-Submitted").as_deref(), Some("auto-replied"));
    assert_eq!(header(&sent[1], "X-Automation-Depth").as_deref(), Some("1"));
    let messages = one.messages(&text(&ticket, "id")).await;
    let mails: Vec<&str> = messages.iter().map(|message| message["meta"]["mail"].as_str().unwrap()).collect();
    assert_eq!(mails, ["sent", "none", "automatic"], "{messages:?}");
}
