use chassis_testing::expected_faults;
use proto::api::Event;
use serde_json::{Value, json};

use crate::support::{User, World, id};

async fn numbers(user: &User, query: &str) -> Vec<String> {
    let answer = user.api.get(&format!("/v1/subscriptions?{query}")).await.expect(200);
    let data = answer.at("/data");
    let numbers: Vec<String> =
        data.as_array().unwrap().iter().map(|item| item["number"].as_str().unwrap().to_owned()).collect();
    assert_eq!(answer.at("/meta/total"), numbers.len(), "{query}");
    numbers
}

/// S-00001 to S-00004: two of one client, a draft, and one that has ended; each created on another day.
async fn fill(world: &World, user: &User) -> Vec<Value> {
    let mut all = Vec::new();
    all.push(user.hosting(json!({"subscription_start": "2026-12-01", "title": "Zebra"})).await);
    world.move_to("2026-11-16T12:00:00Z");
    let client = all[0]["client_id"].clone();
    let more = json!({"client_id": client, "subscription_start": "2026-11-20", "title": "Apples"});
    all.push(user.hosting(more).await);
    world.move_to("2026-11-17T12:00:00Z");
    all.push(user.create(json!({"title": "100% draft"})).await);
    world.move_to("2026-11-18T12:00:00Z");
    let last = user.hosting(json!({"subscription_start": "2027-01-31", "title": "Pears"})).await;
    user.act(&last, "deactivate", json!({"subscription_end": "2027-12-31"})).await.expect(200);
    all.push(last);
    all
}

#[tokio::test]
async fn each_filter_restricts_the_list() {
    let world = World::new().await;
    let user = world.user().await;
    let all = fill(&world, &user).await;
    let first = id(&all[0]);
    let client = all[0]["client_id"].as_str().unwrap();
    let both = format!("id={first},{}", id(&all[2]));
    for (query, expected) in [
        ("", "4 3 2 1"),
        (&format!("id={first}"), "1"),
        (&both, "3 1"),
        ("id=x", ""),
        (&format!("client_id={client}"), "2 1"),
        ("client_id=x", ""),
        ("number=S-00003", "3"),
        ("number=S-0000", ""),
        ("status=active", "2 1"),
        ("status=draft", "3"),
        ("status=ended", "4"),
        ("term=monthly", "4 3 2 1"),
        ("term=monthly&status=draft", "3"),
        ("term=yearly", ""),
        ("start_from=2026-12-01", "4 1"),
        ("start_to=2026-12-01", "2 1"),
        ("start_from=2026-11-20&start_to=2026-11-30", "2"),
        ("created_from=2026-11-17", "4 3"),
        ("created_to=2026-11-16", "2 1"),
        ("created_from=2026-11-16T12:00:00.000Z&created_to=2026-11-17T12:00:00Z", "3 2"),
        ("search=s-0000", "4 3 2 1"),
        ("search=APPLES", "2"),
        ("search=bakery", "4 2 1"),
        ("search=100%25", "3"),
        ("search=%25", "3"),
        ("search=nothing", ""),
        ("status=active&search=zebra", "1"),
        ("colour=red", "4 3 2 1"),
    ] {
        let found = numbers(&user, query).await;
        let short: Vec<&str> = found.iter().map(|number| number.trim_start_matches("S-0000")).collect();
        assert_eq!(short.join(" "), expected, "{query}");
    }
    let stranger = world.user().await;
    assert_eq!(numbers(&stranger, "").await, [""; 0]);
    assert_eq!(numbers(&stranger, &format!("id={first}")).await, [""; 0]);
}

#[tokio::test]
async fn lists_are_sorted_by_the_requested_key() {
    let world = World::new().await;
    let user = world.user().await;
    fill(&world, &user).await;
    for (query, expected) in [
        ("sort=created_at&order=asc", "1 2 3 4"),
        ("sort=number", "4 3 2 1"),
        ("sort=title&order=asc", "3 2 4 1"),
        ("sort=start_date&order=asc", "2 1 4 3"),
        ("sort=next_generate&order=asc", "2 1 4 3"),
        ("sort=status&order=asc", "1 2 3 4"),
    ] {
        let found = numbers(&user, query).await;
        let short: Vec<&str> = found.iter().map(|number| number.trim_start_matches("S-0000")).collect();
        assert_eq!(short.join(" "), expected, "{query}");
    }
    let answer =
        user.api.get("/v1/subscriptions?sort=colour&order=up&status=gone&start_from=x").await.expect(422);
    let mut faults = answer.faults();
    faults.sort();
    assert_eq!(faults, expected_faults(&[("start_from", "not_a_date"), ("status", "not_allowed")]));
    let answer = user.api.get("/v1/subscriptions?sort=colour&order=up").await.expect(422);
    assert_eq!(answer.faults(), expected_faults(&[("sort", "not_allowed"), ("order", "not_allowed")]));
    assert!(answer.at("/errors/0/detail").as_str().unwrap().contains("next_generate"));
}

#[tokio::test]
async fn pages_together_are_the_list() {
    let world = World::new().await;
    let user = world.user().await;
    for _ in 0..7 {
        user.create(json!({})).await;
    }
    for filter in ["", "&status=draft"] {
        let mut seen = Vec::new();
        for page in 1..=4 {
            let answer = user.api.get(&format!("/v1/subscriptions?per_page=3&page={page}{filter}")).await;
            let answer = answer.expect(200);
            let meta = json!({"page": page, "per_page": 3, "total": 7, "pages": 3});
            assert_eq!(answer.at("/meta"), meta);
            seen.extend(answer.at("/data").as_array().unwrap().iter().map(id));
        }
        assert!(seen.len() == 7 && seen.is_sorted_by(|a, b| a > b), "newest first, none twice");
    }
}

#[tokio::test]
async fn the_invoices_of_a_subscription_are_paged_and_its_own() {
    let world = World::working(1).await;
    let user = world.user().await;
    let past = json!({"subscription_start": "2026-08-31", "first_generate_date": "2026-08-31"});
    let one = user.hosting(past.clone()).await;
    let other = user.hosting(json!({})).await;
    world.settled(&user).await;
    let answer =
        user.api.get(&format!("/v1/subscriptions/{}/invoices?per_page=2", id(&one))).await.expect(200);
    assert_eq!(answer.at("/meta"), json!({"page": 1, "per_page": 2, "total": 3, "pages": 2}));
    assert_eq!(answer.at("/data/0/invoice_date"), "2026-10-31", "newest first");
    let item = answer.at("/data/0");
    assert!(item["number"].as_str().unwrap().starts_with("INV-2026-") && item.get("rows").is_none());
    assert_eq!(user.dates(&other).await, [""; 0]);
    let path = format!("/v1/subscriptions/{}/invoices", id(&one));
    user.api.get(&format!("{path}?sort=colour")).await.expect(422);
    user.api.get(&format!("{path}?page=0")).await.expect(422);
    user.api.get("/v1/subscriptions/x/invoices").await.expect(404);
    world.user().await.api.get(&path).await.expect(404);
}

#[tokio::test]
async fn a_search_follows_the_names_of_the_client() {
    let world = World::new().await;
    let user = world.user().await;
    let created = user.hosting(json!({})).await;
    assert_eq!(numbers(&user, "search=bakery").await, ["S-00001"]);
    let data = json!({"id": created["client_id"], "company_name": "Brewery", "firstname": "Zoë"});
    let event = Event {
        account_id: user.account.id.to_string(),
        r#type: "customer.updated".to_owned(),
        data: data.to_string(),
        ..Event::default()
    };
    world.deliver(&user, event).await;
    assert_eq!(numbers(&user, "search=bakery").await, [""; 0]);
    assert_eq!(numbers(&user, "search=ZO%C3%8B").await, ["S-00001"]);
    user.patch(&created, json!({"title": "Mail"})).await.expect(200);
    assert_eq!(numbers(&user, "search=brewery").await, ["S-00001"], "a change keeps the names");
    assert_eq!(numbers(&user, "search=hosting").await, [""; 0]);
    assert_eq!(numbers(&user, "search=s-00001").await, ["S-00001"]);
}
