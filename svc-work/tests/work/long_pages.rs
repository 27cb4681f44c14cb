//! Pages with long entries are cut, and say where the next page begins.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{User, id};
use crate::world::World;

/// More pages than any list here has.
const MAX_PAGES: usize = 1000;

/// The longest note there can be, in characters of four bytes.
fn longest() -> String {
    "\u{1f600}".repeat(65_535)
}

/// Reads the whole list, following what each answer says about the next page. Returns the ids in the order of the pages,
/// and how many pages were cut.
async fn read(user: &User, list: &str, per_page: i64) -> (Vec<String>, usize) {
    let (mut seen, mut cuts, mut page, mut per_page) = (Vec::new(), 0, 1, per_page);
    for _ in 0..MAX_PAGES {
        let answer = user.get(&format!("/v1/{list}?page={page}&per_page={per_page}")).await;
        let (data, meta) = (answer["data"].as_array().unwrap(), &answer["meta"]);
        seen.extend(data.iter().map(id));
        let total = meta["total"].as_i64().unwrap();
        assert_eq!((&meta["page"], &meta["per_page"]), (&json!(page), &json!(per_page)));
        if let Some(cut) = meta.get("cut") {
            cuts += 1;
            assert_eq!(json!(data.len()), cut["per_page"]);
            assert_eq!(per_page % cut["per_page"].as_i64().unwrap(), 0);
            (page, per_page) = (cut["page"].as_i64().unwrap(), cut["per_page"].as_i64().unwrap());
        } else {
            page += 1;
        }
        if (page - 1) * per_page >= total {
            return (seen, cuts);
        }
    }
    panic!("{MAX_PAGES} pages did not end the list of {list}: {} entries", seen.len());
}

#[tokio::test]
async fn a_page_of_maximal_notes_is_cut_and_reading_on_shows_each_once() {
    let world = World::start().await;
    let user = world.user().await;
    let text = longest();
    let mut made = Vec::new();
    for number in 0..5 {
        let notes = (0..4).map(|part| {
            // A short one between them, so that pages are cut at different places.
            let body = if number + part == 1 { "short".to_owned() } else { text.clone() };
            user.create("notes", json!({"body": body}))
        });
        made.extend(futures::future::join_all(notes).await.iter().map(id));
    }
    let expected: BTreeSet<String> = made.iter().cloned().collect();
    for per_page in [100, 20, 7] {
        let (seen, cuts) = read(&user, "notes", per_page).await;
        assert_eq!(seen.len(), made.len(), "each once, {per_page} a page");
        assert_eq!(seen.iter().cloned().collect::<BTreeSet<_>>(), expected);
        assert_eq!(cuts > 0, per_page > 15, "about 15 of them are as long as a page can be");
    }
    let short: Value = user.get("/v1/notes?per_page=1").await["meta"].clone();
    assert_eq!(short, json!({"page": 1, "per_page": 1, "total": made.len(), "pages": made.len()}));
}

#[tokio::test]
async fn many_long_pages_at_once_are_whole_or_refused_and_later_there_is_room_again() {
    let world = World::start().await;
    let user = world.user().await;
    let text = longest();
    for _ in 0..3 {
        user.create("notes", json!({"body": text})).await;
    }
    let asked = (0..40).map(|_| user.api.get("/v1/notes"));
    for answer in futures::future::join_all(asked).await {
        match answer.status.as_u16() {
            200 => assert_eq!(answer.at("/data").as_array().unwrap().len(), 3),
            429 | 503 => assert!(answer.header("retry-after").is_some()),
            other => panic!("{other}: {}", answer.at("")),
        }
    }
    assert_eq!(user.total("/v1/notes").await, 3);
}
