//! Tickets over REST.

use serde_json::{Value, json};

use crate::world::{World, text};

#[tokio::test]
async fn a_new_ticket_has_every_field_of_its_shape() {
    let world = World::new().await;
    let user = world.user().await;
    let answer =
        user.api.post("/v1/tickets", json!({"subject": "  Bread  ", "priority": "weird"})).await.expect(201);
    let ticket = answer.at("/data");
    let id = text(&ticket, "id");
    assert_eq!(answer.header("location"), Some(format!("/v1/tickets/{id}").as_str()));
    let mut expected = json!({
        "id": id, "number": "T-00001", "subject": "Bread", "status": "new", "priority": "normal", "client_name": "",
        "client_email": "", "client_id": null, "project_id": null, "created_at": "2026-11-15T11:00:00.123Z",
        "source": "api", "updated_at": "2026-11-15T11:00:00.123Z", "closed_at": null,
        "meta": {
            "channel_id": ticket["meta"]["channel_id"], "message_count": 0, "last_message_at": null, "version": 1,
            "updated_at": ticket["created_at"],
        },
    });
    expected["created_at"] = ticket["created_at"].clone();
    expected["updated_at"] = ticket["created_at"].clone();
    assert_eq!(ticket, expected);
    assert!(ticket["meta"]["channel_id"].is_string());
    assert_eq!(user.get(&id).await, expected);

    let list = user.api.get("/v1/tickets").await.expect(200);
    for field in ["source", "updated_at", "closed_at"] {
        expected.as_object_mut().unwrap().remove(field);
    }
    assert_eq!(list.at("/data"), json!([expected]));
    assert_eq!(list.at("/meta"), json!({"page": 1, "per_page": 25, "total": 1, "pages": 1}));
}

#[tokio::test]
async fn a_client_gives_its_name_and_address_and_must_exist() {
    let world = World::new().await;
    let user = world.user().await;
    let id =
        user.client(json!({"firstname": "Ann", "lastname": "Smit", "email": "ann@client.example"})).await;
    let ticket = user.ticket(json!({"subject": "A", "client_id": id})).await;
    assert_eq!(
        (text(&ticket, "client_name"), text(&ticket, "client_email")),
        ("Ann Smit".into(), "ann@client.example".into())
    );
    assert_eq!(ticket["client_id"], json!(id));

    let stranger = world.user().await;
    for unknown in [id.as_str(), "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05", "x"] {
        let body = json!({"client_email": "no", "client_id": unknown});
        let answer = stranger.api.post("/v1/tickets", body).await.expect(422);
        let expected =
            [("/subject", "required"), ("/client_email", "bad_email"), ("/client_id", "unknown_reference")];
        let expected: Vec<_> = expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(answer.faults(), expected, "{unknown}");
    }
}

#[tokio::test]
async fn without_relations_a_client_id_is_refused() {
    let world = World::with(&["--peers", "relations=http://127.0.0.1:1"]).await;
    let user = world.user().await;
    let body = json!({"subject": "A", "client_id": "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05"});
    user.api.post("/v1/tickets", body).await.expect(503);
    user.ticket(json!({"subject": "without a client"})).await;
}

#[tokio::test]
async fn a_patch_changes_the_fields_it_names() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    world.clock.advance(chrono::TimeDelta::minutes(1));
    let changed =
        user.patch(&id, json!({"subject": "Rolls", "priority": "high", "client_email": null})).await;
    let changed = changed.expect(200).at("/data");
    assert_eq!((text(&changed, "subject"), text(&changed, "priority")), ("Rolls".into(), "high".into()));
    assert_eq!((&changed["client_name"], &changed["client_email"]), (&json!("Ann"), &json!("")));
    assert_ne!(changed["updated_at"], changed["created_at"]);

    user.patch(&id, json!({})).await.expect(422);
    user.patch(&id, json!({"colour": "red"})).await.expect(422);
    let answer =
        user.patch(&id, json!({"subject": " ", "client_email": "x", "status": null})).await.expect(422);
    let positions: Vec<String> = answer.faults().into_iter().map(|(position, _)| position).collect();
    assert_eq!(positions, ["/subject", "/status", "/client_email"]);
    user.patch("x", json!({"subject": "A"})).await.expect(404);
}

#[tokio::test]
async fn a_status_must_be_active_and_closing_has_a_time() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    let answer = user.patch(&id, json!({"status": "lost"})).await.expect(422);
    assert_eq!(answer.faults(), [("/status".to_owned(), "not_allowed".to_owned())]);
    assert!(answer.at("/errors/0/detail").as_str().unwrap().contains("waiting"), "it names the allowed ones");
    let closed = user.patch(&id, json!({"status": "closed"})).await.expect(200).at("/data");
    assert!(closed["closed_at"].is_string());
    world.clock.advance(chrono::TimeDelta::minutes(1));
    let renamed = user.patch(&id, json!({"subject": "x"})).await.expect(200).at("/data");
    assert_eq!(renamed["closed_at"], closed["closed_at"]);
    let open = user.patch(&id, json!({"status": "open"})).await.expect(200).at("/data");
    assert_eq!((&open["status"], &open["closed_at"]), (&json!("open"), &Value::Null));
}

#[tokio::test]
async fn a_search_finds_number_subject_name_and_address() {
    let world = World::new().await;
    let user = world.user().await;
    user.ann().await;
    user.ticket(json!({"subject": "Delivery 100%", "client_name": "Éva"})).await;
    for (term, count) in [
        ("t-00001", 1),
        ("BREAD", 1),
        ("ann@client", 1),
        ("éva", 1),
        ("100%25", 1),
        ("t-0000", 2),
        ("zzz", 0),
        ("%20", 2),
    ] {
        let answer = user.api.get(&format!("/v1/tickets?search={term}")).await.expect(200);
        assert_eq!(answer.at("/meta/total"), count, "{term}");
    }
}

#[tokio::test]
async fn pages_are_newest_first_and_a_page_never_repeats_a_ticket() {
    let world = World::new().await;
    let user = world.user().await;
    for number in 0..7 {
        user.ticket(json!({"subject": format!("Ticket {number}")})).await;
    }
    let mut listed = Vec::new();
    for page in 1..=4 {
        let answer = user.api.get(&format!("/v1/tickets?page={page}&per_page=2")).await.expect(200);
        assert_eq!(answer.at("/meta"), json!({"page": page, "per_page": 2, "total": 7, "pages": 4}));
        listed.extend(answer.at("/data").as_array().unwrap().iter().map(|ticket| text(ticket, "number")));
    }
    let expected: Vec<String> = (1..=7).rev().map(|number| format!("T-{number:05}")).collect();
    assert_eq!(listed, expected);
    user.api.get("/v1/tickets?page=0").await.expect(422);
}

#[tokio::test]
async fn a_replayed_create_returns_the_first_ticket() {
    let world = World::new().await;
    let user = world.user().await;
    let body = json!({"subject": "Once"});
    let first = user.api.post_keyed("/v1/tickets", "k", body.clone()).await.expect(201);
    let again = user.api.post_keyed("/v1/tickets", "k", body).await.expect(201);
    assert_eq!(first.body, again.body);
    assert_eq!(again.header("x-idempotent-replay"), Some("true"));
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 1);
}

#[tokio::test]
async fn a_stored_text_of_a_newer_version_is_an_error_and_not_another_value() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    user.reply(&id, "Hello").await;
    let ticket = format!("/v1/tickets/{id}");
    let messages = format!("/v1/tickets/{id}/messages");
    let connection = &mut world.database.connect().await;
    for (change, undo, path) in [
        ("update support.ticket set source = 'phone'", "update support.ticket set source = 'api'", &ticket),
        ("update support.ticket set priority = 9", "update support.ticket set priority = 2", &ticket),
        (
            "update support.message set automatic = 'bot'",
            "update support.message set automatic = ''",
            &messages,
        ),
    ] {
        user.api.get(path).await.expect(200);
        sqlx::query(change).execute(&mut *connection).await.unwrap();
        user.api.get(path).await.expect(500);
        sqlx::query(undo).execute(&mut *connection).await.unwrap();
    }
}
