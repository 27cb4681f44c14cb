use chassis_testing::expected_faults;
use chrono::TimeDelta;
use proto::billing::{CreateProductRequest, ListProductsRequest, ProductInput, UpdateProductRequest};

use crate::support::{World, faults, is_not_found, problem, product};

fn bread() -> ProductInput {
    ProductInput {
        name: " Sourdough ".into(),
        code: "BREAD-1".into(),
        price: "4.2500".into(),
        vat_rate: "9".into(),
        unit: "loaf".into(),
        active: None,
    }
}

#[tokio::test]
async fn a_product_is_returned_as_it_was_created() {
    let world = World::new().await;
    let caller = world.caller().await;
    let created = caller.create(bread()).await.unwrap();
    assert_eq!((created.name.as_str(), created.code.as_str()), ("Sourdough", "BREAD-1"));
    assert_eq!((created.price.as_str(), created.vat_rate.as_str()), ("4.25", "9"));
    assert_eq!((created.unit.as_str(), created.active), ("loaf", true));
    let meta = created.meta.unwrap();
    assert_eq!(meta.created_at, meta.updated_at);
    assert_eq!(caller.get(&created.id).await.unwrap(), created);

    let bare = caller.create(product("Advice", "")).await.unwrap();
    assert_eq!((bare.price.as_str(), bare.vat_rate.as_str(), bare.unit.as_str()), ("", "", ""));
    let free = caller.create(ProductInput { price: "0".into(), ..product("Gift", "") }).await.unwrap();
    assert_eq!(free.price, "0", "a price of zero is a price");
}

#[tokio::test]
async fn a_product_needs_a_name_and_a_price_of_at_most_four_decimals() {
    let world = World::new().await;
    let caller = world.caller().await;
    let wrong = ProductInput { price: "1.23456".into(), ..product("  ", &"x".repeat(256)) };
    let status = caller.create(wrong).await.unwrap_err();
    let expected =
        [("/product/code", "too_long"), ("/product/name", "required"), ("/product/price", "too_precise")];
    assert_eq!(faults(&status), expected_faults(&expected));
    let largest = ProductInput { price: "-999999999999.9999".into(), ..product("A", "") };
    assert_eq!(caller.create(largest).await.unwrap().price, "-999999999999.9999");
}

#[tokio::test]
async fn a_change_touches_only_what_it_names_and_can_clear_it() {
    let world = World::new().await;
    let caller = world.caller().await;
    let created = caller.create(bread()).await.unwrap();
    world.clock.advance(TimeDelta::seconds(1));
    let nothing = ProductInput::default();
    let cleared =
        caller.update(&created.id, nothing.clone(), &["code", "price", "vat_rate", "unit"]).await.unwrap();
    assert_eq!((cleared.code.as_str(), cleared.price.as_str()), ("", ""));
    assert_eq!((cleared.vat_rate.as_str(), cleared.unit.as_str()), ("", ""));
    assert_eq!((cleared.name.as_str(), cleared.active), ("Sourdough", true));
    assert_ne!(cleared.meta.unwrap().updated_at, created.meta.unwrap().updated_at);
    assert_eq!(caller.get(&created.id).await.unwrap(), cleared);

    let off = ProductInput { active: Some(false), ..nothing.clone() };
    assert!(!caller.update(&created.id, off, &["active"]).await.unwrap().active);
    let status = caller.update(&created.id, nothing, &["name", "active", "id"]).await.unwrap_err();
    let expected =
        [("/product/active", "not_nullable"), ("/product/name", "required"), ("/update_mask", "not_allowed")];
    assert_eq!(faults(&status), expected_faults(&expected));
}

#[tokio::test]
async fn a_change_of_nothing_leaves_no_trace_and_one_without_a_mask_replaces_everything() {
    let world = World::new().await;
    let caller = world.caller().await;
    let created = caller.create(ProductInput { active: Some(false), ..bread() }).await.unwrap();
    world.clock.advance(TimeDelta::seconds(1));
    assert_eq!(caller.update(&created.id, bread(), &[]).await.unwrap(), created);
    assert_eq!(caller.update(&created.id, bread(), &["name", "code", "price"]).await.unwrap(), created);
    let request =
        UpdateProductRequest { id: created.id.clone(), product: Some(product("Rye", "")), update_mask: None };
    let replaced =
        caller.products().update_product(caller.request(request)).await.unwrap().into_inner().data.unwrap();
    assert_eq!((replaced.name.as_str(), replaced.price.as_str(), replaced.active), ("Rye", "", true));
}

#[tokio::test]
async fn a_code_belongs_to_one_product_and_a_deleted_product_frees_it() {
    let world = World::new().await;
    let caller = world.caller().await;
    let holder = caller.create(product("A", "X")).await.unwrap();
    let other = caller.create(product("B", "Y")).await.unwrap();
    let taken = ("code_taken".to_owned(), vec![("id".to_owned(), holder.id.clone())]);
    assert_eq!(problem(&caller.create(product("C", "X")).await.unwrap_err()), taken);
    assert_eq!(problem(&caller.update(&other.id, product("", "X"), &["code"]).await.unwrap_err()), taken);
    assert_eq!(caller.get(&other.id).await.unwrap(), other, "and it is as it was");

    caller.delete(&holder.id).await.unwrap();
    assert!(is_not_found(&caller.get(&holder.id).await.unwrap_err()));
    assert!(is_not_found(&caller.delete(&holder.id).await.unwrap_err()));
    caller.update(&other.id, product("", "X"), &["code"]).await.unwrap();
    caller.create(product("D", "Y")).await.unwrap();
}

#[tokio::test]
async fn of_many_who_want_a_code_at_once_one_gets_it() {
    let world = World::new().await;
    let caller = world.caller().await;
    let creating: Vec<_> = (0..12)
        .map(|index| {
            let caller = caller.clone();
            tokio::spawn(async move { caller.create(product(&format!("P{index}"), "X")).await })
        })
        .collect();
    let (mut ids, mut holders) = (Vec::new(), Vec::new());
    for task in creating {
        match task.await.unwrap() {
            Ok(product) => ids.push(product.id),
            Err(status) => {
                let (code, data) = problem(&status);
                assert_eq!(code, "code_taken");
                holders.extend(data.into_iter().map(|(_, id)| id));
            }
        }
    }
    assert_eq!((ids.len(), holders.len()), (1, 11));
    assert!(holders.iter().all(|holder| *holder == ids[0]));
}

#[tokio::test]
async fn many_products_that_take_one_code_by_a_change_end_with_one_holder() {
    let world = World::new().await;
    let caller = world.caller().await;
    let mut changing = Vec::new();
    for index in 0..8 {
        let id = caller.create(product("P", &format!("C{index}"))).await.unwrap().id;
        let caller = caller.clone();
        changing.push(tokio::spawn(async move { caller.update(&id, product("", "X"), &["code"]).await }));
    }
    let mut changed = 0;
    for task in changing {
        match task.await.unwrap() {
            Ok(_) => changed += 1,
            Err(status) => assert_eq!(problem(&status).0, "code_taken"),
        }
    }
    assert_eq!(changed, 1);
}

#[tokio::test]
async fn an_id_of_an_odd_form_is_unknown_and_faults_come_before_it() {
    let world = World::new().await;
    let caller = world.caller().await;
    for id in ["x", "", &"y".repeat(300), "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05"] {
        assert!(is_not_found(&caller.get(id).await.unwrap_err()), "{id}");
        assert!(is_not_found(&caller.delete(id).await.unwrap_err()), "{id}");
        assert!(is_not_found(&caller.update(id, product("A", ""), &["name"]).await.unwrap_err()), "{id}");
        let status = caller.update(id, product("", ""), &["name"]).await.unwrap_err();
        assert_eq!(faults(&status), expected_faults(&[("/product/name", "required")]));
    }
}

#[tokio::test]
async fn a_repeated_create_with_its_key_makes_one_product() {
    let world = World::new().await;
    let caller = world.caller().await;
    let create = || async {
        let message = CreateProductRequest { product: Some(product("A", "X")) };
        let answer = caller.products().create_product(caller.token.keyed("k", message)).await.unwrap();
        answer.into_inner().data.unwrap()
    };
    assert_eq!(create().await, create().await);
    assert_eq!(caller.list(ListProductsRequest::default()).await.meta.unwrap().total, 1);
}
