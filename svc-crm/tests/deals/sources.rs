use proto::crm::{
    CreateDealSourceRequest, DeleteDealSourceRequest, ReorderDealSourcesRequest, UpdateDealSourceRequest,
};
use serde_json::json;
use tonic::Code;

use crate::support::{User, World};

async fn names(user: &User) -> Vec<String> {
    let listed = user.api.get("/v1/deal-sources").await.expect(200);
    let data = listed.at("/data").as_array().unwrap().clone();
    assert_eq!(listed.at("/meta"), json!({"total": data.len()}));
    for (expected, source) in (1..).zip(&data) {
        assert_eq!(source["order"], json!(expected));
        assert_eq!(source.as_object().unwrap().len(), 4);
    }
    data.iter().map(|source| source["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_account_starts_with_sources_that_can_be_changed() {
    let world = World::new().await;
    let user = world.user().await;
    assert_eq!(names(&user).await, ["Website", "Aanbeveling", "Telefoon", "E-mail", "Beurs"]);

    let create = |name: &str| user.request(CreateDealSourceRequest { name: name.to_owned() });
    let made = user.sources().create_deal_source(create(" Radio ")).await.unwrap().into_inner().data.unwrap();
    assert_eq!((made.name.as_str(), made.order), ("Radio", 6));
    let twice = user.sources().create_deal_source(create("Radio")).await.unwrap_err();
    assert_eq!(twice.code(), Code::InvalidArgument);

    let rename = |from: &str, to: &str| {
        user.request(UpdateDealSourceRequest { name: from.to_owned(), new_name: to.to_owned() })
    };
    user.sources().update_deal_source(rename("Beurs", "Markt")).await.unwrap();
    let taken = user.sources().update_deal_source(rename("Markt", "Radio")).await.unwrap_err();
    assert_eq!(taken.code(), Code::InvalidArgument);
    let gone = user.sources().update_deal_source(rename("Beurs", "X")).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);

    for name in ["Website", "Telefoon"] {
        let request = user.request(DeleteDealSourceRequest { name: name.to_owned() });
        user.sources().delete_deal_source(request).await.unwrap();
    }
    assert_eq!(names(&user).await, ["Aanbeveling", "E-mail", "Markt", "Radio"]);
    let order = ["Radio", "Markt", "E-mail", "Aanbeveling"].map(str::to_owned);
    let request = user.request(ReorderDealSourcesRequest { names: order.to_vec() });
    user.sources().reorder_deal_sources(request).await.unwrap();
    assert_eq!(names(&user).await, order);
    let short = user.request(ReorderDealSourcesRequest { names: order[..3].to_vec() });
    assert_eq!(user.sources().reorder_deal_sources(short).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_deal_keeps_the_name_of_a_source_that_is_gone() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let deal = user.deal(json!({"title": "T", "client_id": client, "source": "Website"})).await;
    let request = user.request(DeleteDealSourceRequest { name: "Website".to_owned() });
    user.sources().delete_deal_source(request).await.unwrap();
    let kept = user.patch(&deal, json!({"title": "U", "source": "Website"})).await.expect(200);
    assert_eq!(kept.at("/data/meta/source"), "Website");
    user.api
        .post("/v1/deals", json!({"title": "T", "client_id": client, "source": "Website"}))
        .await
        .expect(422);
}
