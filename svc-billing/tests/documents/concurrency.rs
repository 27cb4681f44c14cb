use std::collections::BTreeSet;

use gateway::testing::Answer;
use serde_json::{Value, json};

use crate::support::{User, World, path, priced, settled, settlement};

/// Far more often than a busy server needs.
const MAX_ATTEMPTS: usize = 2_000;

/// Posts until there is an answer: a busy server may ask to retry, and the key makes that safe.
async fn post_until_answered(user: User, path: String, key: String, body: Value) -> Answer {
    let mut last = String::new();
    for _ in 0..MAX_ATTEMPTS {
        let answer = user.api.post_keyed(&path, &key, body.clone()).await;
        let in_progress = answer.at("/code") == "idempotency_in_progress";
        if !in_progress && ![503, 504].contains(&answer.status.as_u16()) {
            return answer;
        }
        last = format!("{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
    }
    panic!("{path} was never answered; last {last}")
}

async fn all(posts: impl Iterator<Item = impl Future<Output = Answer> + Send + 'static>) -> Vec<Answer> {
    let running: Vec<_> = posts.map(tokio::spawn).collect();
    let mut answers = Vec::new();
    for post in running {
        answers.push(post.await.unwrap());
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_finals_get_numbers_without_gaps_or_duplicates() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let first = user.invoice(&client, &[1; 8]).await;
    user.create("invoices", json!({"title": "T", "external_id": "taken"})).await;
    let mut posts = Vec::new();
    // Of each eight two are created, three finalised, one credits, and two fail: one for its external id, which is found
    // out while the number is held, and one for having no client.
    for index in 0..64 {
        let body = json!({"title": "T", "client_id": client, "rows": priced(&[1])});
        let mut made = body.clone();
        made["generate"] = json!(true);
        let (path, body) = match index % 8 {
            0 | 1 => ("/v1/invoices".to_owned(), made),
            2 => {
                made["external_id"] = json!("taken");
                ("/v1/invoices".to_owned(), made)
            }
            3 => {
                let incomplete = user.create("invoices", json!({"title": "T", "rows": priced(&[1])})).await;
                (format!("{}/finalize", path("invoices", &incomplete)), json!({}))
            }
            4 => {
                let body = json!({"credit_all": false, "row_indexes": [index / 8]});
                (format!("{}/credit", path("invoices", &first)), body)
            }
            _ => (format!("{}/finalize", path("invoices", &user.create("invoices", body).await)), json!({})),
        };
        posts.push(post_until_answered(user.clone(), path, format!("key-{index}"), body));
    }
    let answers = all(posts.into_iter()).await;
    let of = |status: u16| answers.iter().filter(move |answer| answer.status == status);
    let codes: BTreeSet<String> = of(409).map(|answer| answer.at("/code").to_string()).collect();
    assert_eq!(codes, BTreeSet::from(["\"external_id_taken\"".to_owned(), "\"incomplete\"".to_owned()]));
    assert_eq!((of(201).count(), of(200).count(), of(409).count()), (24, 24, 16));
    let mut numbers: Vec<String> =
        of(201).chain(of(200)).map(|answer| answer.at("/data/number").as_str().unwrap().to_owned()).collect();
    numbers.sort();
    let expected: Vec<String> = (2..=49).map(|number| format!("INV-2026-{number:05}")).collect();
    assert_eq!(numbers, expected);
    let shown: BTreeSet<String> = stored_numbers(&world).await.into_iter().collect();
    assert_eq!(shown.len(), 49, "and so they are stored");
    let (total, counted) = totals(&world).await;
    assert_eq!(total, counted);
    assert_eq!(user.total("invoices").await, total);
    let first = user.get("invoices", &first).await;
    assert_eq!(settlement(&first), settled("credited", 0.0, 0.0));
    assert_eq!(first["meta"]["credited_by"].as_array().unwrap().len(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn finals_step_over_thousands_of_numbers_that_callers_have_chosen() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    user.create("invoices", json!({"title": "T", "number": "INV-2026-00001"})).await;
    let more = "insert into billing.document
                select (jsonb_populate_record(d, jsonb_build_object('id', gen_random_uuid(), 'token', '\\x' || md5(n::text),
                        'number', 'INV-2026-' || lpad(n::text, 5, '0')))).*
                from billing.document d cross join generate_series(2, 4000) n";
    sqlx::raw_sql(more).execute(&mut world.database.connect().await).await.unwrap();
    let body = json!({"title": "T", "client_id": client, "rows": priced(&[1]), "generate": true});
    let posts = (0..10).map(|_| {
        let (user, body) = (user.clone(), body.clone());
        async move { user.api.post("/v1/invoices", body).await }
    });
    let answers = all(posts).await;
    let numbers: BTreeSet<String> =
        answers.into_iter().map(|answer| answer.expect(201).at("/data/number").to_string()).collect();
    assert_eq!(numbers, (4001..=4010).map(|number| format!("\"INV-2026-{number:05}\"")).collect());
}

async fn stored_numbers(world: &World) -> Vec<String> {
    sqlx::query_scalar("select number from billing.document where number like 'INV-2026-%' and is_final")
        .fetch_all(&mut world.database.connect().await)
        .await
        .unwrap()
}

/// What the counters of the list say, and what there is.
async fn totals(world: &World) -> (i64, i64) {
    sqlx::query_as(
        "select (select sum(entries)::bigint from billing.total where list = 'invoice' and bucket = (
                     select min(bucket) from billing.total)),
                (select count(*) from billing.document where kind = 'invoice')",
    )
    .fetch_one(&mut world.database.connect().await)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_credits_and_payments_of_one_invoice_all_count() {
    let world = World::new().await;
    let user = world.user().await;
    let prices = [1, 2, 4, 8, 16, 32];
    let invoice = user.invoice(&user.client("C").await, &prices).await;
    let here = path("invoices", &invoice);
    let credits = (0..3).map(|index| ("credit", json!({"credit_all": false, "row_indexes": [index]})));
    let payments = (0..6).map(|_| ("payments", json!({"amount": 5})));
    let posts = credits.chain(payments).enumerate().map(|(index, (action, body))| {
        post_until_answered(user.clone(), format!("{here}/{action}"), format!("key-{index}"), body)
    });
    for answer in all(posts).await {
        answer.expect(201);
    }
    // 63 less 7 that were credited less 30 that were paid.
    let now = user.get("invoices", &invoice).await;
    assert_eq!(settlement(&now), settled("partially_paid", 26.0, 0.0));
    assert_eq!(now["meta"]["paid_amount"], 30.0);
    assert_eq!(now["meta"]["credited_by"].as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_credits_a_row_and_one_gets_an_external_id() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.draft(&user.client("C").await, &[1, 2]).await;
    let credits = (0..8).map(|index| {
        post_until_answered(
            user.clone(),
            format!("{}/credit", path("invoices", &draft)),
            format!("c-{index}"),
            json!({}),
        )
    });
    let answers = all(credits).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    assert!(answers.iter().all(|answer| answer.status == 201 || answer.at("/code") == "already_credited"));
    let body = json!({"title": "T", "external_id": "x"});
    let creates = (0..8).map(|index| {
        post_until_answered(user.clone(), "/v1/quotes".to_owned(), format!("q-{index}"), body.clone())
    });
    let answers = all(creates).await;
    let winner = answers.iter().find(|answer| answer.status == 201).unwrap().at("/data/id");
    for loser in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!((loser.at("/code"), loser.at("/data/id")), (json!("external_id_taken"), winner.clone()));
    }
    assert_eq!(user.total("quotes").await, 1);
}
