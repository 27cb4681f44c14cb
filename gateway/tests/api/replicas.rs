//! Several processes of one service: the load is shared, and one that goes away takes no request with it.

use gateway::testing::TestGateway;
use serde_json::json;
use svc_relations::Relations;

use crate::support::{Mesh, RELATIONS};

#[tokio::test]
async fn a_replica_that_goes_away_takes_no_request_with_it() {
    let mesh = Mesh::start().await;
    let first = mesh.peers().iter().find(|peer| peer.starts_with("relations=")).unwrap();
    let second = chassis_testing::start::<Relations>(mesh.database.url(), &mesh.clock).await;
    let third = chassis_testing::start::<Relations>(mesh.database.url(), &mesh.clock).await;
    let peers = [format!("{first}|{}|{}", second.url(), third.url())];
    let gateway = TestGateway::start(&mesh.database, &mesh.clock, &peers, &[]).await;
    let account = gateway.account("Bakery").await;
    let api = gateway.api(&account, RELATIONS).await;
    let mut left = vec![second, third];
    for number in 0..60 {
        if number == 20 || number == 40 {
            drop(left.pop());
        }
        let name = json!({"company_name": format!("Client {number}")});
        api.post_keyed("/v1/clients", &format!("k{number}"), name).await.expect(201);
        api.get("/v1/clients").await.expect(200);
    }
    assert_eq!(api.get("/v1/clients").await.expect(200).at("/meta/total"), 60);
}
