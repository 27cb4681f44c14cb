//! Lists are made of drafts here: nothing about a list depends on a document being final.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::{User, World, id, path};

/// Whether a quote is to be in the answer.
type Matches<'a> = Box<dyn Fn(&Value) -> bool + 'a>;

/// Twelve quotes over four days, two clients, and an invoice and a workorder that must never be seen among them.
async fn fill(world: &World, user: &User) -> (Vec<Value>, [String; 2]) {
    let clients = [
        user.client("Bakery De Korenbloem").await,
        user.client_with(json!({"firstname": "Zoë", "lastname": "Ünal"})).await,
    ];
    let mut quotes = Vec::new();
    for index in 0..12_i64 {
        let body = json!({
            "title": format!("Quote {}", ["c", "A", "b"][usize::try_from(index % 3).unwrap()]),
            "client_id": clients[usize::try_from(index % 2).unwrap()],
            "invoice_date": format!("2026-10-{:02}", 1 + index % 5),
            "due_date": format!("2026-11-{:02}", 10 + index % 4),
            "external_id": format!("Order_{index}%"),
            "number": format!("Q-{:03}", (index * 5) % 12),
            "payment_status": if index % 4 == 0 { "sent" } else { "draft" },
            "total_excl_vat": (index * 7) % 12,
        });
        quotes.push(user.create("quotes", body).await);
        if index % 3 == 2 {
            world.clock.advance(TimeDelta::days(1));
        }
    }
    for list in ["invoices", "workorders"] {
        user.create(list, json!({"title": "Quote c", "client_id": clients[0]})).await;
    }
    (quotes, clients)
}

fn ids(page: &Value) -> Vec<String> {
    page["data"].as_array().unwrap().iter().map(id).collect()
}

/// The ids of the quotes for which this holds, newest first.
fn chosen(quotes: &[Value], wanted: impl Fn(&Value) -> bool) -> Vec<String> {
    quotes.iter().rev().filter(|quote| wanted(quote)).map(id).collect()
}

fn text<'a>(quote: &'a Value, name: &str) -> &'a str {
    quote[name].as_str().unwrap()
}

#[tokio::test]
async fn each_filter_selects_what_it_says() {
    let world = World::new().await;
    let user = world.user().await;
    let (quotes, clients) = fill(&world, &user).await;
    let (third, eighth) = (quotes[3].clone(), quotes[8].clone());
    let created = text(&third, "created_at").to_owned();
    let cases: Vec<(String, Matches<'_>)> = vec![
        (String::new(), Box::new(|_| true)),
        (format!("id={}", id(&third)), Box::new(|quote| *quote == third)),
        (
            format!("id={},{},nonsense", id(&third), id(&eighth)),
            Box::new(|quote| *quote == third || *quote == eighth),
        ),
        ("id=nonsense".into(), Box::new(|_| false)),
        (format!("client_id={}", clients[1]), Box::new(|quote| quote["client_id"] == clients[1].as_str())),
        ("client_id=nonsense".into(), Box::new(|_| false)),
        ("number=Q-005".into(), Box::new(|quote| quote["number"] == "Q-005")),
        ("number=Q-00".into(), Box::new(|_| false)),
        ("date_from=2026-10-04".into(), Box::new(|quote| text(quote, "invoice_date") >= "2026-10-04")),
        ("date_to=2026-10-02".into(), Box::new(|quote| text(quote, "invoice_date") <= "2026-10-02")),
        (
            "date_from=2026-10-02&date_to=2026-10-02".into(),
            Box::new(|quote| text(quote, "invoice_date") == "2026-10-02"),
        ),
        ("due_date_from=2026-11-12".into(), Box::new(|quote| text(quote, "due_date") >= "2026-11-12")),
        ("due_date_to=2026-11-10".into(), Box::new(|quote| text(quote, "due_date") <= "2026-11-10")),
        (
            format!("created_from={created}"),
            Box::new(|quote| text(quote, "created_at") >= text(&third, "created_at")),
        ),
        (
            format!("created_to={created}"),
            Box::new(|quote| text(quote, "created_at") <= text(&third, "created_at")),
        ),
        (
            "created_from=2026-11-16&created_to=2026-11-17".into(),
            Box::new(|quote| ("2026-11-16".."2026-11-18").contains(&text(quote, "created_at"))),
        ),
        ("payment_status=sent".into(), Box::new(|quote| quote["payment_status"] == "sent")),
        ("payment_status=Sent".into(), Box::new(|_| false)),
        ("search=korenBLOEM".into(), Box::new(|quote| quote["client_id"] == clients[0].as_str())),
        ("search=zo%C3%8B%20%C3%BCnal".into(), Box::new(|quote| quote["client_id"] == clients[1].as_str())),
        ("search=quote%20a".into(), Box::new(|quote| quote["title"] == "Quote A")),
        ("search=q-01".into(), Box::new(|quote| text(quote, "number").starts_with("Q-01"))),
        ("search=ORDER_1".into(), Box::new(|quote| text(quote, "external_id").starts_with("Order_1"))),
        ("search=%25".into(), Box::new(|_| true)),
        ("search=_12".into(), Box::new(|_| false)),
        ("search=nothing".into(), Box::new(|_| false)),
        (
            format!("client_id={}&payment_status=sent&date_from=2026-10-02&unknown=1", clients[0]),
            Box::new(|quote| {
                quote["payment_status"] == "sent" && text(quote, "invoice_date") >= "2026-10-02"
            }),
        ),
    ];
    for (query, wanted) in cases {
        let page = user.api.get(&format!("/v1/quotes?per_page=100&{query}")).await.expect(200).json();
        let expected = chosen(&quotes, wanted);
        assert_eq!(page["meta"]["total"], expected.len(), "{query}");
        assert_eq!(ids(&page), expected, "{query}");
    }
}

#[tokio::test]
async fn a_filter_that_cannot_be_read_is_named() {
    let world = World::new().await;
    let user = world.user().await;
    for (query, parameter, code) in [
        ("date_from=2026-02-30", "date_from", "not_a_date"),
        ("due_date_to=x", "due_date_to", "not_a_date"),
        ("created_from=yesterday", "created_from", "not_a_time"),
        ("sort=price", "sort", "not_allowed"),
        ("order=up", "order", "not_allowed"),
        ("page=0", "page", "out_of_range"),
        ("per_page=x", "per_page", "not_an_integer"),
    ] {
        let refused = user.api.get(&format!("/v1/invoices?{query}")).await.expect(422);
        assert_eq!(refused.faults(), [(parameter.to_owned(), code.to_owned())], "{query}");
    }
    let refused = user.api.get("/v1/invoices?sort=price").await;
    let detail = refused.at("/errors/0/detail");
    for allowed in [
        "created_at",
        "updated_at",
        "invoice_date",
        "due_date",
        "number",
        "title",
        "total_incl_vat",
        "payment_status",
    ] {
        assert!(detail.as_str().unwrap().contains(allowed), "{detail}");
    }
}

#[tokio::test]
async fn every_order_pages_through_the_whole_list_without_repeats() {
    let world = World::new().await;
    let user = world.user().await;
    let (quotes, _) = fill(&world, &user).await;
    for sort in [
        "",
        "created_at",
        "updated_at",
        "invoice_date",
        "due_date",
        "number",
        "title",
        "total_incl_vat",
        "payment_status",
    ] {
        for order in ["", "asc", "desc"] {
            let query = format!("sort={sort}&order={order}");
            let mut seen = Vec::new();
            for page in 1..=4 {
                let answer = user
                    .api
                    .get(&format!("/v1/quotes?per_page=5&page={page}&{query}"))
                    .await
                    .expect(200)
                    .json();
                assert_eq!(
                    answer["meta"],
                    json!({"page": page, "per_page": 5, "total": 12, "pages": 3}),
                    "{query}"
                );
                seen.extend(answer["data"].as_array().unwrap().clone());
            }
            assert_eq!(seen.iter().map(id).collect::<BTreeSet<_>>().len(), quotes.len(), "{query}");
            assert_eq!(seen.len(), quotes.len(), "{query}");
            let field = if sort.is_empty() { "created_at" } else { sort };
            let value =
                |quote: &Value| if field == "updated_at" { &quote["meta"] } else { quote }[field].clone();
            let in_order = |one: &Value, other: &Value| {
                let by_value = match (value(one), value(other)) {
                    // Upper and lower case are sorted as the database does.
                    (Value::String(one), Value::String(other)) => {
                        one.to_lowercase().cmp(&other.to_lowercase())
                    }
                    (one, other) => one.as_f64().unwrap().total_cmp(&other.as_f64().unwrap()),
                };
                let ordering = by_value.then_with(|| id(one).cmp(&id(other)));
                if order == "asc" { ordering.is_lt() } else { ordering.is_gt() }
            };
            assert!(seen.is_sorted_by(in_order), "{query}");
        }
    }
}

#[tokio::test]
async fn totals_follow_creates_and_deletes() {
    let world = World::new().await;
    let user = world.user().await;
    let (quotes, _) = fill(&world, &user).await;
    for quote in quotes.iter().take(5) {
        user.delete(&path("quotes", quote)).await.expect(200);
    }
    assert_eq!(user.total("quotes").await, 7);
    assert_eq!(user.total("quotes?search=quote").await, 7);
    assert_eq!((user.total("invoices").await, user.total("workorders").await), (json!(1), json!(1)));
    let past_the_end = user.api.get("/v1/quotes?page=9").await.expect(200).json();
    assert_eq!(
        past_the_end,
        json!({"data": [], "meta": {"page": 9, "per_page": 25, "total": 7, "pages": 1}})
    );
    let capped = user.api.get("/v1/quotes?per_page=101").await.expect(200);
    assert_eq!(capped.at("/meta/per_page"), 100);
}
