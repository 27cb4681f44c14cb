use chassis_testing::assert_filters_counted;
use chrono::TimeDelta;
use proto::billing::{ListProductsRequest, ProductInput};

use crate::support::{Caller, World, product};

async fn names(caller: &Caller, search: &str) -> Vec<String> {
    let request = ListProductsRequest { search: search.into(), ..ListProductsRequest::default() };
    let page = caller.list(request).await;
    let names: Vec<String> = page.data.into_iter().map(|product| product.name).collect();
    assert_eq!(page.meta.unwrap().total, i64::try_from(names.len()).unwrap(), "{search}");
    names
}

#[tokio::test]
async fn the_newest_product_comes_first_and_every_page_has_its_part() {
    let world = World::new().await;
    let caller = world.caller().await;
    for index in 0..7 {
        caller.create(product(&format!("P{index}"), "")).await.unwrap();
        world.clock.advance(TimeDelta::hours(13));
    }
    let mut seen = Vec::new();
    for page in 1..=4 {
        let request =
            ListProductsRequest { page: Some(page), per_page: Some(3), ..ListProductsRequest::default() };
        let answer = caller.list(request).await;
        let meta = answer.meta.unwrap();
        assert_eq!((meta.total, meta.pages), (7, 3));
        seen.extend(answer.data.into_iter().map(|product| product.name));
    }
    assert_eq!(seen, ["P6", "P5", "P4", "P3", "P2", "P1", "P0"]);
}

#[tokio::test]
async fn a_product_is_found_by_exactly_its_code_and_products_by_whether_they_are_active() {
    let world = World::new().await;
    let (caller, stranger) = (world.caller().await, world.caller().await);
    let bread = caller.create(product("Bread", "B-1")).await.unwrap();
    caller.create(product("Rolls", "b-1")).await.unwrap();
    caller.create(product("Cake", "")).await.unwrap();
    stranger.create(product("Foreign", "B-1")).await.unwrap();
    world.clock.advance(TimeDelta::hours(1));
    let names = async |code: &str, active: Option<bool>| -> Vec<String> {
        let request = ListProductsRequest { code: code.into(), active, ..ListProductsRequest::default() };
        let page = caller.list(request).await;
        assert_eq!(page.meta.unwrap().total, i64::try_from(page.data.len()).unwrap(), "{code} {active:?}");
        page.data.into_iter().map(|product| product.name).collect()
    };
    assert_eq!(names("B-1", None).await, ["Bread"]);
    assert_eq!(names("B", None).await, [""; 0]);
    assert_eq!(names("", Some(true)).await.len(), 3);
    let inactive = ProductInput { active: Some(false), ..ProductInput::default() };
    caller.update(&bread.id, inactive, &["active"]).await.unwrap();
    assert_eq!(names("", Some(true)).await, ["Cake", "Rolls"]);
    assert_eq!(names("", Some(false)).await, ["Bread"]);
    assert_eq!(names("B-1", Some(true)).await, [""; 0]);
    assert_filters_counted(&world.database, "product", "billing.product", "true").await;
}

#[tokio::test]
async fn a_search_looks_at_name_and_code_and_not_across_them() {
    let world = World::new().await;
    let caller = world.caller().await;
    caller.create(product("Zuurdesem", "BROOD-1")).await.unwrap();
    world.clock.advance(TimeDelta::seconds(1));
    caller.create(product("Krentenbol 100%", "BOL_1")).await.unwrap();
    assert_eq!(names(&caller, "zuurDESEM").await, ["Zuurdesem"]);
    assert_eq!(names(&caller, "brood").await, ["Zuurdesem"]);
    assert_eq!(names(&caller, "b").await, ["Krentenbol 100%", "Zuurdesem"]);
    assert_eq!(names(&caller, "-1").await, ["Zuurdesem"]);
    assert_eq!(names(&caller, "0%").await, ["Krentenbol 100%"], "no wildcard");
    assert_eq!(names(&caller, "desem brood").await, Vec::<String>::new());
    assert_eq!(names(&caller, " ").await.len(), 2, "blank is none");
}

#[tokio::test]
async fn total_and_search_follow_changes_and_deletions() {
    let world = World::new().await;
    let caller = world.caller().await;
    let first = caller.create(product("First", "")).await.unwrap();
    let second = caller.create(product("Second", "")).await.unwrap();
    caller.update(&first.id, product("Other", "NEW"), &["name", "code"]).await.unwrap();
    assert_eq!(names(&caller, "first").await, Vec::<String>::new());
    assert_eq!(names(&caller, "new").await, ["Other"]);
    world.clock.advance(TimeDelta::days(2));
    caller.delete(&second.id).await.unwrap();
    assert_eq!(names(&caller, "").await, ["Other"]);
    caller.delete(&first.id).await.unwrap();
    assert_eq!(names(&caller, "").await, Vec::<String>::new());
}
