//! `GET /v1/ledger` and `gateway ledger verify`: the logs of an account in all services, whole and tampered with.

use std::process::Output;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::Mesh;

async fn verify(mesh: &Mesh, account: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gateway"))
        .args(["ledger", "verify", "--account", account])
        .envs(chassis_testing::service_database(mesh.database.url(), "gateway").environment())
        .env("CONTEXT_SECRET", chassis_testing::secret())
        .env("PEERS", mesh.peers().join(","))
        .output()
        .await
        .unwrap()
}

#[tokio::test]
async fn every_chain_is_checked_and_a_broken_one_is_named() {
    let mesh = Mesh::start_at(chassis_base::Clock::system(), &[]).await;
    let (api, account) = mesh.api_of_new_account(&["relations.read", "relations.write"]).await;
    for name in ["Bakery", "Butcher"] {
        api.post("/v1/clients", json!({"company_name": name})).await.expect(201);
    }
    let whole = verify(&mesh, &account.id.to_string()).await;
    let told = String::from_utf8(whole.stdout).unwrap();
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    let services: Vec<&str> = told.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(services, ["gateway", "automation", "billing", "crm", "relations", "support", "work"]);
    let relations = told.lines().find(|line| line.starts_with("relations\t")).unwrap();
    let [_, position, hash] = relations.split('\t').collect::<Vec<_>>().try_into().unwrap();
    // The account and two clients.
    assert_eq!((position, hash.len()), ("3", 64));

    let shown = api.get("/v1/ledger").await.expect(200).at("/data");
    let shown: Vec<&Value> = shown.as_array().unwrap().iter().collect();
    assert_eq!(shown.len(), 7);
    let ledger = shown.iter().find(|head| head["service"] == "relations").unwrap();
    assert_eq!((&ledger["position"], &ledger["hash"]), (&json!(3), &json!(hash)));
    assert!(ledger["at"].is_string());
    mesh.gateway.api_with("").get("/v1/ledger").await.expect(401);

    sqlx::query("update relations.log set actor = 'another' where account_id = $1 and kind = 'client' and version = 1")
        .bind(account.id)
        .execute(&mut mesh.database.connect().await)
        .await
        .unwrap();
    let broken = verify(&mesh, &account.id.to_string()).await;
    let told = String::from_utf8(broken.stderr).unwrap();
    assert!(!broken.status.success());
    assert!(told.contains("relations: broken at position 2: the hash does not cover the entry"), "{told}");
    let unknown = verify(&mesh, "nobody").await;
    assert!(!unknown.status.success());
}
