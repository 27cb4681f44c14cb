use chassis_testing::expected_faults;
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::{World, phase};

#[tokio::test]
async fn filters_narrow_the_list_and_its_total() {
    let world = World::new().await;
    let user = world.user().await;
    let (mill, farm) = (user.client("Mill").await, user.client("Farm").await);
    user.pipeline("Rent", &["Ask", "Sign"]).await;
    let board = user.board().await;
    let (sales, rent) = (&board[0], &board[1]);
    for (title, client, pipeline, index, status) in [
        ("Ovens", &mill, sales, 0, "open"),
        ("Mills", &mill, sales, 1, "won"),
        ("Shop", &farm, rent, 0, "open"),
        ("Barn", &farm, rent, 1, "lost"),
    ] {
        world.clock.advance(TimeDelta::seconds(1));
        let body = json!({
            "title": title, "client_id": client, "pipeline_id": pipeline["id"], "phase_id": phase(pipeline, index),
            "status": status,
        });
        user.deal(body).await;
    }
    let rent_id = rent["id"].as_str().unwrap();
    for (query, expected) in [
        (String::new(), vec!["Barn", "Shop", "Mills", "Ovens"]),
        ("status=open".to_owned(), vec!["Shop", "Ovens"]),
        ("status=lost".to_owned(), vec!["Barn"]),
        (format!("client_id={mill}"), vec!["Mills", "Ovens"]),
        (format!("client_id={mill}&status=won"), vec!["Mills"]),
        (format!("pipeline_id={rent_id}"), vec!["Barn", "Shop"]),
        (format!("phase_id={}", phase(sales, 1)), vec!["Mills"]),
        (format!("pipeline_id={rent_id}&phase_id={}", phase(sales, 1)), vec![]),
        ("search=ILL".to_owned(), vec!["Mills"]),
        ("search=%25".to_owned(), vec![]),
        ("client_id=x".to_owned(), vec![]),
        ("pipeline_id=x".to_owned(), vec![]),
        ("phase_id=x".to_owned(), vec![]),
        ("unknown=1".to_owned(), vec!["Barn", "Shop", "Mills", "Ovens"]),
    ] {
        assert_eq!(user.titles(&query).await, expected, "{query}");
        assert_eq!(user.total(&query).await, i64::try_from(expected.len()).unwrap(), "{query}");
    }
    let refused = user.api.get("/v1/deals?status=closed&page=0&sort=x").await.expect(422).faults();
    assert!(refused.contains(&("status".to_owned(), "not_allowed".to_owned())), "{refused:?}");
    let refused = user.api.get("/v1/deals?sort=priority&order=up").await.expect(422).faults();
    assert_eq!(refused, expected_faults(&[("sort", "not_allowed"), ("order", "not_allowed")]));
}

#[tokio::test]
async fn deals_are_filtered_by_source_priority_amount_and_expected_close() {
    let world = World::new().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let client = user.client("Mill").await;
    let sources = user.api.get("/v1/deal-sources").await.expect(200).at("/data");
    let name = |index: usize| sources[index]["name"].as_str().unwrap().to_owned();
    for (title, more) in [
        ("Ovens", json!({"source": name(0), "amount": "100.50", "priority": "high"})),
        ("Mills", json!({"source": name(0), "amount": "250", "expected_close_date": "2026-12-01"})),
        ("Shop", json!({"source": name(1), "priority": "high", "expected_close_date": "2026-12-31"})),
        ("Barn", json!({"status": "won", "amount": "250"})),
    ] {
        world.clock.advance(TimeDelta::seconds(1));
        let mut body = json!({"title": title, "client_id": client});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        user.deal(body).await;
    }
    let others = stranger.client("Farm").await;
    stranger.deal(json!({"title": "Foreign", "client_id": others, "amount": 250, "priority": "high"})).await;
    let (first, second) = (name(0).replace(' ', "%20"), name(1).replace(' ', "%20"));
    for (query, expected) in [
        (format!("source={first}"), vec!["Mills", "Ovens"]),
        (format!("source={second}&priority=high"), vec!["Shop"]),
        (format!("source={second}&status=won"), vec![]),
        ("source=nowhere".to_owned(), vec![]),
        ("priority=high".to_owned(), vec!["Shop", "Ovens"]),
        ("priority=medium&status=won".to_owned(), vec!["Barn"]),
        ("amount_from=100.5".to_owned(), vec!["Barn", "Mills", "Ovens"]),
        ("amount_from=100.51&amount_to=250".to_owned(), vec!["Barn", "Mills"]),
        ("amount_to=-1".to_owned(), vec![]),
        ("amount_from=250&status=open".to_owned(), vec!["Mills"]),
        ("expected_close_from=2026-12-01".to_owned(), vec!["Shop", "Mills"]),
        ("expected_close_from=2026-12-02&expected_close_to=2026-12-31".to_owned(), vec!["Shop"]),
        ("amount_from=100&sort=amount&order=asc".to_owned(), vec!["Ovens", "Mills", "Barn"]),
    ] {
        assert_eq!(user.titles(&query).await, expected, "{query}");
        assert_eq!(user.total(&query).await, i64::try_from(expected.len()).unwrap(), "{query}");
        let pages = format!("{query}&per_page=1&page=2");
        let second = expected.get(1).copied().into_iter().collect::<Vec<_>>();
        assert_eq!(user.titles(&pages).await, second, "{pages}");
    }
    let query = "priority=low1&amount_from=much&amount_to=1.234&expected_close_from=soon";
    let mut refused = user.api.get(&format!("/v1/deals?{query}")).await.expect(422).faults();
    refused.sort();
    assert_eq!(
        refused.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["amount_from", "amount_to", "expected_close_from", "priority"]
    );
}

#[tokio::test]
async fn pages_show_every_deal_once_in_each_order() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    for number in 0..7 {
        let amount = (number % 3 > 0).then(|| format!("{}", number % 3));
        let date = (number % 2 > 0).then_some("2026-12-01");
        let body = json!({
            "title": format!("Deal {}", number % 4), "client_id": client, "amount": amount,
            "expected_close_date": date, "priority": "low",
        });
        user.deal(body).await;
    }
    for sort in ["", "created_at", "updated_at", "title", "amount", "expected_close_date"] {
        for order in ["asc", "desc"] {
            let mut seen = Vec::new();
            for page in 1..=3 {
                let query = format!("/v1/deals?per_page=3&page={page}&sort={sort}&order={order}");
                let answer = user.api.get(&query).await.expect(200);
                let meta = json!({"page": page, "per_page": 3, "total": 7, "pages": 3});
                assert_eq!(answer.at("/meta"), meta, "{query}");
                let ids = answer.at("/data").as_array().unwrap().clone();
                seen.extend(ids.into_iter().map(|deal| deal["id"].to_string()));
            }
            seen.sort();
            seen.dedup();
            assert_eq!(seen.len(), 7, "{sort} {order}");
        }
    }
    let amounts = user.api.get("/v1/deals?sort=amount&order=asc").await.expect(200).at("/data");
    let amounts: Vec<Value> = amounts.as_array().unwrap().iter().map(|deal| deal["amount"].clone()).collect();
    let expected = [json!(1.0), json!(1.0), json!(2.0), json!(2.0), Value::Null, Value::Null, Value::Null];
    assert_eq!(amounts, expected);
    let past = user.api.get("/v1/deals?page=9").await.expect(200);
    assert_eq!((past.at("/data"), past.at("/meta/total")), (json!([]), json!(7)));
}

#[tokio::test]
async fn totals_follow_every_change_of_status() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let totals = async || {
        let mut totals = Vec::new();
        for query in ["", "status=open", "status=won", "status=lost"] {
            totals.push(user.total(query).await);
        }
        totals
    };
    let first = user.titled_deal(&client, "Ovens").await;
    let second = user.deal(json!({"title": "Mills", "client_id": client, "status": "lost"})).await;
    assert_eq!(totals().await, [2, 1, 0, 1]);
    user.act(&first, "win", json!({})).await.expect(200);
    user.act(&first, "win", json!({})).await.expect(200);
    assert_eq!(totals().await, [2, 0, 1, 1]);
    user.patch(&second, json!({"status": "open"})).await.expect(200);
    assert_eq!(totals().await, [2, 1, 1, 0]);
    user.act(&second, "move", json!({"status": "lost"})).await.expect(200);
    user.delete(&second).await.expect(200);
    assert_eq!(totals().await, [1, 0, 1, 0]);
}
