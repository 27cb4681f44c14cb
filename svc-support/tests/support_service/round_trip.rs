//! The whole way: a client's mail comes in over SMTP, is answered over REST, the answer goes out over SMTP, and the
//! client's answer to that is found to belong to the same ticket, whatever the client's program leaves of the hints.

use chassis_testing::eventually;
use serde_json::json;

use crate::world::{World, header, mail, text};

#[tokio::test]
async fn a_conversation_by_mail_stays_one_ticket() {
    let world = World::new().await;
    let user = world.user().await;
    let inbound = user.inbound().await;

    world
        .send("ann@client.example", &[&inbound], &mail("first@client.example", "", "Bread", "Where is it?"))
        .await
        .unwrap();
    let ticket = user.api.get("/v1/tickets").await.at("/data/0");
    let id = text(&ticket, "id");
    assert_eq!(
        (text(&ticket, "status"), text(&ticket, "client_email")),
        ("new".into(), "ann@client.example".into())
    );

    world.clock.advance(chrono::TimeDelta::minutes(5));
    user.reply(&id, "On its way.").await;
    eventually("the reply arrives", async || world.sink.received().len() == 1).await;
    let reply = world.sink.received().remove(0).message;
    assert_eq!(header(&reply, "In-Reply-To").as_deref(), Some("<first@client.example>"));
    assert_eq!(header(&reply, "References").as_deref(), Some("<first@client.example>"));
    assert_eq!(header(&reply, "Subject").as_deref(), Some("Re: Bread [T-00001]"));
    assert_eq!(user.get(&id).await["status"], "waiting");

    // As a program does that answers to `Reply-To` and keeps the thread.
    let ours = header(&reply, "Message-ID").unwrap();
    let reply_to = header(&reply, "Reply-To").unwrap();
    let reply_to = reply_to.rsplit('<').next().unwrap().trim_end_matches('>');
    let thread = format!("In-Reply-To: {ours}\r\nReferences: <first@client.example> {ours}\r\n");
    world.clock.advance(chrono::TimeDelta::minutes(5));
    world
        .send(
            "ann@client.example",
            &[reply_to],
            &mail("second@client.example", &thread, "Re: Bread", "Thank you"),
        )
        .await
        .unwrap();
    assert_eq!(user.get(&id).await["status"], "open");

    // As one that keeps nothing but the address, and one that keeps nothing but the thread.
    world
        .send("ann@client.example", &[reply_to], &mail("third@client.example", "", "Also", "One more"))
        .await
        .unwrap();
    let thread = format!("In-Reply-To: {ours}\r\n");
    world
        .send("ann@client.example", &[&inbound], &mail("fourth@client.example", &thread, "Also", "Two more"))
        .await
        .unwrap();
    // And one that keeps only the subject.
    world
        .send(
            "ann@client.example",
            &[&inbound],
            &mail("fifth@client.example", "", "RE: Bread [T-00001]", "Three"),
        )
        .await
        .unwrap();
    let directions: Vec<_> =
        user.messages(&id).await.iter().map(|message| message["direction"].clone()).collect();
    assert_eq!(directions, [json!("in"), json!("out"), json!("in"), json!("in"), json!("in"), json!("in")]);
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 1);

    user.reply(&id, "You are welcome.").await;
    eventually("the second reply arrives", async || world.sink.received().len() == 2).await;
    let last = world.sink.received().remove(1).message;
    assert_eq!(header(&last, "In-Reply-To").as_deref(), Some("<fifth@client.example>"));
    let references = header(&last, "References").unwrap();
    assert!(references.starts_with("<first@client.example> <") && references.contains(&ours), "{references}");
}
