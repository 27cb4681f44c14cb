use std::collections::BTreeSet;

use gateway::testing::Api;
use serde_json::{Value, json};

use crate::support::{Mesh, RELATIONS};

async fn fill(api: &Api, count: usize) {
    for index in 0..count {
        let body = if index % 3 == 0 {
            json!({"lastname": format!("Person {index:03}"), "city": "Zwolle"})
        } else {
            json!({"company_name": format!("Company {index:03}"), "city": "100%_Breda"})
        };
        api.post("/v1/clients", body).await.expect(201);
    }
}

fn ids(page: &Value) -> Vec<String> {
    let entries = page["data"].as_array().unwrap();
    entries.iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn pages_together_are_the_list_without_repeats() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    // All in one millisecond: only the ids tell them apart.
    fill(&api, 23).await;
    for filter in ["", "&contact_type=company", "&search=o", "&search=breda"] {
        let all = api.get(&format!("/v1/clients?per_page=100{filter}")).await.expect(200).json();
        let total = all["meta"]["total"].as_u64().unwrap();
        let mut seen = Vec::new();
        for page in 1..=total.div_ceil(4) + 1 {
            let answer =
                api.get(&format!("/v1/clients?per_page=4&page={page}{filter}")).await.expect(200).json();
            let meta = json!({"page": page, "per_page": 4, "total": total, "pages": total.div_ceil(4)});
            assert_eq!(answer["meta"], meta);
            seen.extend(ids(&answer));
        }
        assert_eq!(seen, ids(&all), "{filter}");
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len() as u64, total);
        assert!(seen.is_sorted_by(|a, b| a > b), "newest first");
    }
}

#[tokio::test]
async fn totals_are_exact_under_concurrent_writes_and_changes_of_type() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let posts = (0..40).map(|index| {
        let api = api.clone();
        tokio::spawn(async move {
            let created =
                api.post("/v1/clients", json!({"company_name": format!("C{index}")})).await.expect(201);
            if index % 2 == 0 {
                let path = format!("/v1/clients/{}", created.at("/data/id").as_str().unwrap());
                api.patch(&path, json!({"type": "private", "lastname": "P"})).await.expect(200);
            }
            if index % 5 == 0 {
                api.post("/v1/clients", json!({"email": "broken"})).await.expect(422);
            }
        })
    });
    for post in posts.collect::<Vec<_>>() {
        post.await.unwrap();
    }
    for (query, total) in
        [("", 40), ("?contact_type=company", 20), ("?contact_type=private", 20), ("?search=c", 40)]
    {
        assert_eq!(api.get(&format!("/v1/clients{query}")).await.at("/meta/total"), total, "{query}");
    }
    assert_eq!(
        api.get("/v1/suppliers").await.json()["meta"],
        json!({"page": 1, "per_page": 25, "total": 0, "pages": 0})
    );
}

#[tokio::test]
async fn search_is_a_case_insensitive_substring_and_wildcards_are_text() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    fill(&api, 6).await;
    api.post("/v1/clients", json!({"firstname": "Zoë", "lastname": "Ünal", "email": "Zoe@Example.com"}))
        .await
        .expect(201);
    for (search, total) in [
        ("COMPANY", 4),
        ("person%20000", 1),
        ("zwolle", 2),
        ("100%25_b", 4),
        ("1%25", 0),
        ("_", 4),
        ("ZO%C3%8B%20%C3%BC", 1),
        ("example.COM", 1),
        ("d-0000", 7),
        ("d-00007", 1),
        ("zz", 0),
        ("%20%20", 7),
        ("", 7),
    ] {
        let answer = api.get(&format!("/v1/clients?search={search}")).await.expect(200);
        assert_eq!(answer.at("/meta/total"), total, "{search}");
        assert_eq!(answer.at("/data").as_array().unwrap().len(), total);
    }
}

#[tokio::test]
async fn a_page_has_its_limits() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    fill(&api, 2).await;
    let meta =
        async |query: &str| api.get(&format!("/v1/clients{query}")).await.expect(200).json()["meta"].clone();
    assert_eq!(meta("").await, json!({"page": 1, "per_page": 25, "total": 2, "pages": 1}));
    assert_eq!(meta("?per_page=1000").await["per_page"], 100);
    assert_eq!(meta("?page=9223372036854775807").await["total"], 2);
    assert_eq!(api.get("/v1/clients?page=3").await.at("/data"), json!([]));
}
