//! Mail that comes in: which ticket it belongs to, what is stored of it, and what is ignored.

use proto::support::{IntakeOutcome, ReceiveMailRequest, TicketChannelInput};
use serde_json::json;

use crate::world::{User, World, mail, text};

#[tokio::test]
async fn a_mail_opens_a_ticket_with_what_it_says() {
    let world = World::new().await;
    let user = world.user().await;
    let got = user
        .receive(&mail("1@client.example", "Reply-To: desk@client.example\r\n", "Where is it?", "Hello"))
        .await;
    assert_eq!(got.outcome(), IntakeOutcome::Opened);
    let ticket = user.get(&got.ticket_id).await;
    assert_eq!((text(&ticket, "subject"), text(&ticket, "status")), ("Where is it?".into(), "new".into()));
    assert_eq!(
        (text(&ticket, "client_name"), text(&ticket, "client_email")),
        ("Ann".into(), "desk@client.example".into())
    );
    assert_eq!(text(&ticket, "source"), "email");
    let messages = user.messages(&got.ticket_id).await;
    let [message] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(
        (&message["direction"], &message["type"], &message["body"]),
        (&json!("in"), &json!("reply"), &json!("Hello"))
    );
    assert_eq!(message["author"], json!({"name": "Ann", "email": "ann@client.example"}));
    assert_eq!(message["meta"]["message_id"], "1@client.example");
    assert_eq!(message["meta"]["to"], json!(["support@bakery.example"]));

    let nothing = user.receive("From: x@y.nl\r\n\r\n").await;
    assert_eq!(user.get(&nothing.ticket_id).await["subject"], "(no subject)");
}

#[tokio::test]
async fn a_client_is_found_by_the_address_unless_two_have_it() {
    let world = World::new().await;
    let user = world.user().await;
    let ann = user.client(json!({"firstname": "Ann", "email": "Ann@client.example"})).await;
    user.client(json!({"firstname": "Joann", "email": "joann@client.example"})).await;
    let got = user.receive(&mail("1@x", "", "A", "x").replace("From: Ann <", "From: <")).await;
    let ticket = user.get(&got.ticket_id).await;
    assert_eq!((text(&ticket, "client_id"), text(&ticket, "client_name")), (ann, "Ann".into()));
    user.client(json!({"firstname": "Other", "email": "ann@client.example"})).await;
    let got = user.receive(&mail("2@x", "", "A", "x")).await;
    assert_eq!(user.get(&got.ticket_id).await["client_id"], json!(null));
}

#[tokio::test]
async fn mail_does_not_wait_for_relations() {
    let world = World::with(&["--peers", "relations=http://127.0.0.1:1"]).await;
    let user = world.user().await;
    assert_eq!(user.receive(&mail("1@x", "", "A", "x")).await.outcome(), IntakeOutcome::Opened);
}

#[tokio::test]
async fn a_mail_is_stored_once() {
    let world = World::new().await;
    let user = world.user().await;
    let first = user.receive(&mail("1@client.example", "", "A", "Hello")).await;
    let again = user.receive(&mail("1@client.example", "Received: elsewhere\r\n", "A", "Hello")).await;
    assert_eq!(again.outcome(), IntakeOutcome::Duplicate);
    assert_eq!((&again.ticket_id, &again.message_id), (&first.ticket_id, &first.message_id));
    assert_eq!(user.messages(&first.ticket_id).await.len(), 1);
    let other = world.user().await.receive(&mail("1@client.example", "", "A", "Hello")).await;
    assert_eq!(other.outcome(), IntakeOutcome::Opened, "another account has its own");
}

#[tokio::test]
async fn an_answer_belongs_to_the_ticket_of_the_mails_it_refers_to() {
    let world = World::new().await;
    let user = world.user().await;
    let opened = user.receive(&mail("1@client.example", "", "A", "Hello")).await.ticket_id;
    let reply = user.reply(&opened, "Hello Ann").await;
    let ours = text(&reply["meta"], "message_id");
    for (id, header) in [
        ("2@x", format!("In-Reply-To: <{ours}>\r\n")),
        ("3@x", format!("References: <unknown@x> <{ours}> <other@x>\r\n")),
        ("4@x", "References: <1@client.example>\r\n".to_owned()),
    ] {
        let got = user.receive(&mail(id, &header, "Something else", "More")).await;
        assert_eq!((got.outcome(), &got.ticket_id), (IntakeOutcome::Added, &opened), "{header}");
    }
    assert_eq!(user.get(&opened).await["status"], "open");
    let stranger = world.user().await;
    let got = stranger.receive(&mail("5@x", &format!("In-Reply-To: <{ours}>\r\n"), "A", "More")).await;
    assert_eq!(got.outcome(), IntakeOutcome::Opened, "of another account");
}

#[tokio::test]
async fn a_number_in_the_subject_counts_only_from_participants_of_the_ticket() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    user.write(&id, json!({"body": "Hello", "to": "ann@client.example", "cc": "Boss@client.example"}))
        .await
        .expect(201);
    let from = |id: &str, address: &str| {
        mail(id, "", "RE: bread [T-00001]", "More").replace("ann@client.example", address)
    };
    for (number, address) in ["ANN@client.example", "boss@client.example"].into_iter().enumerate() {
        let got = user.receive(&from(&format!("{number}@x"), address)).await;
        assert_eq!((got.outcome(), &got.ticket_id), (IntakeOutcome::Added, &id), "{address}");
    }
    let got = user.receive(&from("9@x", "stranger@elsewhere.example")).await;
    assert_eq!(got.outcome(), IntakeOutcome::Opened);
    assert_ne!(got.ticket_id, id);
}

#[tokio::test]
async fn a_message_reopens_a_closed_ticket() {
    let world = World::new().await;
    let user = world.user().await;
    let id = user.receive(&mail("1@x", "", "A", "Hello")).await.ticket_id;
    for status in ["solved", "closed", "waiting"] {
        user.patch(&id, json!({"status": status})).await.expect(200);
        user.receive(&mail(&format!("{status}@x"), "In-Reply-To: <1@x>\r\n", "A", "Still?")).await;
        let ticket = user.get(&id).await;
        assert_eq!((&ticket["status"], &ticket["closed_at"]), (&json!("open"), &json!(null)), "{status}");
    }
}

#[tokio::test]
async fn mail_of_programs_is_stored_and_marked_and_reopens_nothing() {
    let world = World::new().await;
    let user = world.user().await;
    let id = user.receive(&mail("1@x", "", "A", "Hello")).await.ticket_id;
    user.patch(&id, json!({"status": "solved"})).await.expect(200);
    let receive = async |id: &str, headers: &str, sender: &str| {
        let request = ReceiveMailRequest {
            message: mail(id, headers, "Away", "x").into_bytes().into(),
            sender: sender.into(),
            ..ReceiveMailRequest::default()
        };
        user.try_receive(request).await.unwrap()
    };
    let added = receive("2@x", "Auto-Submitted: auto-replied\r\nIn-Reply-To: <1@x>\r\n", "").await;
    assert_eq!((added.outcome(), &added.ticket_id), (IntakeOutcome::Added, &id));
    assert_eq!(user.get(&id).await["status"], "solved");
    for (id, headers, sender) in [
        ("3@x", "Precedence: bulk\r\n", "a@b.nl"),
        ("4@x", "", "<>"),
        ("5@x", "List-Id: <x.example>\r\n", "a@b.nl"),
        ("6@x", "X-Automation-Depth: 3\r\n", "a@b.nl"),
    ] {
        assert_eq!(receive(id, headers, sender).await.outcome(), IntakeOutcome::Opened, "{id}");
    }
    let events: Vec<(bool, i32)> = sqlx::query_as(
        "select (data::json->>'automatic')::boolean, depth from support.log \
         where account_id = $1 and event = 'ticket.inbound_message' order by 2, 1",
    )
    .bind(user.account().id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap();
    assert_eq!(events, [(false, 0), (true, 0), (true, 0), (true, 0), (true, 0), (true, 3)]);
}

#[tokio::test]
async fn our_own_mail_is_ignored() {
    let world = World::new().await;
    let user = world.user().await;
    let id = user.receive(&mail("1@x", "", "A", "Hello")).await.ticket_id;
    let ours = text(&user.reply(&id, "Hello Ann").await["meta"], "message_id");
    for mail in [mail(&ours, "", "Hello", "x"), "Subject: nobody\r\n\r\nx".to_owned()] {
        let got = user.receive(&mail).await;
        assert_eq!(got.outcome(), IntakeOutcome::Ignored);
        assert!(!got.reason.is_empty() && got.ticket_id.is_empty());
    }
    assert_eq!(user.messages(&id).await.len(), 2);
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 1);
}

#[tokio::test]
async fn a_mail_belongs_to_the_channel_that_it_was_sent_to() {
    let world = World::new().await;
    let user = world.user().await;
    let sales = TicketChannelInput {
        name: "Sales".into(),
        email: "sales@bakery.example".into(),
        forwarding_emails: vec!["orders@bakery.example".into()],
        order: 5,
        ..TicketChannelInput::default()
    };
    let sales = user.add_channel(sales).await.unwrap();
    let channel_of = async |id: &str, recipients: &[&str], channel: &str| {
        let request = ReceiveMailRequest {
            message: mail(id, "", "A", "x").into_bytes().into(),
            recipients: recipients.iter().map(ToString::to_string).collect(),
            channel_id: channel.into(),
            ..ReceiveMailRequest::default()
        };
        let ticket = user.try_receive(request).await?.ticket_id;
        Ok::<_, tonic::Status>(text(&user.get(&ticket).await["meta"], "channel_id"))
    };
    let inbound = sales.inbound_email.to_uppercase();
    for (number, address) in
        [inbound.as_str(), "Sales@bakery.example", "sales+x@bakery.example", "orders@bakery.example"]
            .into_iter()
            .enumerate()
    {
        assert_eq!(channel_of(&format!("{number}@x"), &[address], "").await.unwrap(), sales.id, "{address}");
    }
    assert_ne!(channel_of("8@x", &["other@bakery.example"], "").await.unwrap(), sales.id, "the first one");
    assert_eq!(channel_of("9@x", &["other@bakery.example"], &sales.id).await.unwrap(), sales.id);
    let status = channel_of("10@x", &[], "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05").await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
}

fn with_file(id: &str) -> String {
    let head = "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n";
    let body = "--x\r\nContent-Type: text/plain\r\n\r\nSee here\r\n--x\r\nContent-Type: image/png; name=\"../a.png\"\r\n\
                Content-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--x--";
    mail(id, head, "A picture", body)
}

#[tokio::test]
async fn attachments_become_files_and_events() {
    let world = World::new().await;
    let user = world.user().await;
    let got = user.receive(&with_file("1@x")).await;
    let message = user.messages(&got.ticket_id).await.remove(0);
    let file = &message["meta"]["attachments"][0];
    assert_eq!(
        (&file["name"], &file["content_type"], &file["size"]),
        (&json!("a.png"), &json!("image/png"), &json!(5))
    );
    let id = text(file, "id");
    let path = world
        .files()
        .join("support")
        .join(user.account().id.to_string())
        .join("attachments")
        .join(id.replace('-', ""));
    assert_eq!(std::fs::read(path).unwrap(), b"hello");
    let events = file_events(&world, &user).await;
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(event["id"], json!(id));
    assert_eq!(
        (&event["service"], &event["area"], &event["key"]),
        (&json!("support"), &json!("attachments"), &json!(id.replace('-', "")))
    );
    assert_eq!(
        event["source"],
        json!({
            "type": "ticket_message", "id": got.message_id, "parent_type": "ticket", "parent_id": got.ticket_id,
        })
    );
    user.receive(&with_file("1@x")).await;
    assert_eq!(file_events(&world, &user).await.len(), 1, "a mail that comes again brings no file again");
}

async fn file_events(world: &World, user: &User) -> Vec<serde_json::Value> {
    sqlx::query_scalar("select data::json from support.log where account_id = $1 and event = 'file.stored'")
        .bind(user.account().id)
        .fetch_all(&mut world.database.connect().await)
        .await
        .unwrap()
}

#[tokio::test]
async fn bytes_that_are_not_a_mail_or_too_large_are_refused() {
    let world = World::new().await;
    let user = world.user().await;
    let deep = "Content-Type: message/rfc822\r\n\r\n".repeat(10_000);
    for message in [String::new(), deep, "x".repeat(svc_support::intake::MAX_MAIL_BYTES + 1)] {
        let request = ReceiveMailRequest { message: message.into_bytes().into(), ..Default::default() };
        assert_eq!(user.try_receive(request).await.unwrap_err().code(), tonic::Code::InvalidArgument);
    }
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 0);
}
