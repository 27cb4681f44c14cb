//! `GET /v1/ledger`, `gateway ledger verify` and `gateway ledger snapshot`: the logs of an account in all services, whole,
//! tampered with, and without entries.

use std::process::Output;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::Mesh;

async fn verify(mesh: &Mesh, account: &str) -> Output {
    run(mesh, &["verify", "--account", account]).await
}

async fn run(mesh: &Mesh, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gateway"))
        .arg("ledger")
        .args(arguments)
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

#[tokio::test]
async fn logs_are_compared_with_the_records_of_one_account_or_of_all() {
    let mesh = Mesh::start_at(chassis_base::Clock::system(), &[]).await;
    let (api, account) = mesh.api_of_new_account(&["relations.read", "relations.write"]).await;
    api.post("/v1/clients", json!({"company_name": "Bakery"})).await.expect(201);
    mesh.api(&["relations.read"]).await;
    let mut connection = mesh.database.connect().await;
    for sql in [
        "delete from relations.log where account_id = $1",
        "delete from relations.feed where account_id = $1",
        "delete from relations.feed_head where account_id = $1",
    ] {
        sqlx::query(sql).bind(account.id).execute(&mut connection).await.unwrap();
    }
    let logged = |output: Output| {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let told = String::from_utf8(output.stdout).unwrap();
        let line = |line: &str| {
            let [_, service, number] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
            (service.to_owned(), number.parse::<i64>().unwrap())
        };
        told.lines().map(line).collect::<Vec<_>>()
    };
    let one = logged(run(&mesh, &["snapshot", "--account", &account.id.to_string()]).await);
    let expected = ["automation", "billing", "crm", "relations", "support", "work"];
    let expected = expected.map(|service| (service.to_owned(), i64::from(service == "relations")));
    assert_eq!(one, expected);
    let all = logged(run(&mesh, &["snapshot"]).await);
    assert_eq!((all.len(), all.iter().map(|(_, number)| number).sum::<i64>()), (12, 0));
    assert!(!run(&mesh, &["snapshot", "--account", "nobody"]).await.status.success());
    assert!(verify(&mesh, &account.id.to_string()).await.status.success(), "the chain is whole");
}
