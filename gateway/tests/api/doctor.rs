//! `gateway doctor` in front of a mesh that is well, and of meshes of which one thing each is not.

use std::process::Output;

use chassis_base::Clock;
use chassis_testing::Started;
use chrono::TimeDelta;
use serde_json::Value;
use svc_relations::Relations;
use svc_work::Work;
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::Mesh;

async fn doctor(mesh: &Mesh, peers: &[String], secret: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gateway"))
        .arg("doctor")
        .args(arguments)
        .envs(chassis_testing::service_database(mesh.database.url(), "gateway").environment())
        .env("CONTEXT_SECRET", secret)
        .env("PEERS", peers.join(","))
        .output()
        .await
        .unwrap()
}

/// What is not ok: whose, what, how bad, and what was seen. Each says what to do.
async fn complaints(mesh: &Mesh, peers: &[String]) -> (bool, Vec<[String; 4]>) {
    complaints_with(mesh, peers, chassis_testing::secret()).await
}

async fn complaints_with(mesh: &Mesh, peers: &[String], secret: &str) -> (bool, Vec<[String; 4]>) {
    let output = doctor(mesh, peers, secret, &["--json"]).await;
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no report: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(report["ok"], output.status.success());
    let findings = report["findings"].as_array().unwrap().iter();
    let complaints = findings.filter(|finding| finding["outcome"] != "ok").map(|finding| {
        assert_ne!(finding["advice"], "", "{finding}");
        ["who", "check", "outcome", "saw"].map(|field| finding[field].as_str().unwrap().to_owned())
    });
    (output.status.success(), complaints.collect())
}

/// The complaints beyond those about the test's own database, which has one superuser and is not made to last.
async fn failures(mesh: &Mesh, peers: &[String]) -> Vec<[String; 4]> {
    let (well, complaints) = complaints(mesh, peers).await;
    let failures: Vec<_> = complaints.into_iter().filter(|[_, _, outcome, _]| outcome == "failed").collect();
    assert_eq!(well, failures.is_empty());
    failures
}

/// The mesh's services, one of them somewhere else.
fn with(mesh: &Mesh, name: &str, url: &str) -> Vec<String> {
    let other = |peer: &String| !peer.starts_with(&format!("{name}="));
    let others = mesh.peers().iter().filter(|peer| other(peer)).cloned();
    others.chain([format!("{name}={url}")]).collect()
}

async fn relations_at(mesh: &Mesh, ahead: TimeDelta, mail: &TempDir) -> Started {
    let clock = Clock::held_at(Clock::system().now() + ahead);
    let flags = ["--mail-dir", mail.path().to_str().unwrap()];
    chassis_testing::start_with::<Relations>(mesh.database.url(), &clock, &flags).await
}

#[tokio::test]
async fn nothing_is_wrong_with_a_mesh_that_is_well() {
    let mesh = Mesh::start_at(Clock::system(), &[]).await;
    let (well, complaints) = complaints(&mesh, mesh.peers()).await;
    assert!(well, "{complaints:?}");
    let known = |complaint: &[String; 4]| ["role", "settings"].contains(&complaint[1].as_str());
    assert!(complaints.iter().all(known), "{complaints:?}");

    let table = doctor(&mesh, mesh.peers(), chassis_testing::secret(), &[]).await;
    let table = String::from_utf8(table.stdout).unwrap();
    for (who, check) in [
        ("gateway", "database"),
        ("gateway", "migrations"),
        ("billing", "storage"),
        ("billing", "mail"),
        ("work", "calls crm"),
        ("relations", "clock"),
    ] {
        let line = table.lines().find(|line| line.starts_with(who) && line.contains(&format!(" {check} ")));
        assert!(line.is_some_and(|line| line.contains(" ok ")), "{who} {check}\n{table}");
    }
    assert!(!table.contains("crm  storage"), "a service without files is not asked for them");
}

#[tokio::test]
async fn a_service_that_does_not_run_is_named() {
    let mesh = Mesh::start_at(Clock::system(), &[]).await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let failures = failures(&mesh, &with(&mesh, "crm", &format!("http://{gone}"))).await;
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0][..2], ["crm", "answers"]);
    assert!(failures[0][3].contains("refused"), "{failures:?}");
}

#[tokio::test]
async fn a_migration_that_is_missing_is_named_with_its_service() {
    let mesh = Mesh::start_at(Clock::system(), &[]).await;
    let mut connection = mesh.database.connect().await;
    for sql in [
        "delete from billing._sqlx_migrations where version = 1003",
        "update work._sqlx_migrations set checksum = 'x' where version = 1001",
        "drop table crm._sqlx_migrations",
    ] {
        sqlx::query(sql).execute(&mut connection).await.unwrap();
    }
    let failures = failures(&mesh, mesh.peers()).await;
    let seen: Vec<_> =
        failures.iter().map(|[who, check, _, saw]| (who.as_str(), check.as_str(), saw.as_str())).collect();
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!(seen[0], ("billing", "migrations", "not applied: 1003 subscriptions"));
    assert!(seen[1].0 == "crm" && seen[1].2.contains("does not exist"), "{seen:?}");
    assert_eq!(seen[2], ("work", "migrations", "applied with another content: 1001"));
}

#[tokio::test]
async fn a_clock_that_is_wrong_is_reported_even_if_it_makes_tokens_useless() {
    let mesh = Mesh::start_at(Clock::system(), &[]).await;
    let mail = tempfile::tempdir().unwrap();
    for (ahead, side) in [(TimeDelta::minutes(10), "ahead"), (TimeDelta::minutes(-10), "behind")] {
        let relations = relations_at(&mesh, ahead, &mail).await;
        let failures = failures(&mesh, &with(&mesh, "relations", &relations.url())).await;
        let clocks: Vec<_> = failures.iter().filter(|[_, check, _, _]| check == "clock").collect();
        assert_eq!(clocks.len(), failures.len(), "nothing else is wrong: {failures:?}");
        assert_eq!(clocks.len(), 2, "both the gateway and the database differ: {failures:?}");
        assert!(clocks[0][3].starts_with("its clock is ") && clocks[0][3].ends_with(side), "{failures:?}");
    }
}

#[tokio::test]
async fn another_secret_is_distinguished_from_a_wrong_clock() {
    let mesh = Mesh::start_at(Clock::system(), &[]).await;
    let (well, complaints) =
        complaints_with(&mesh, mesh.peers(), "another secret for tests with enough characters").await;
    assert!(!well);
    let refused = complaints.iter().filter(|complaint| complaint[3] == "it refuses the context token");
    assert_eq!(refused.count(), mesh.peers().len(), "{complaints:?}");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_to_and_a_mail_server_that_is_away_are_reported() {
    let mesh = Mesh::start_at(Clock::system(), &[]).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let folder = file.path().join("files");
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let peers = mesh.peers().iter().filter(|peer| !peer.starts_with("work=")).cloned().collect::<Vec<_>>();
    let (peers, smtp) = (peers.join(","), format!("smtp://{gone}"));
    let flags = ["--peers", &peers, "--files-dir", folder.to_str().unwrap(), "--smtp-url", &smtp];
    let work = chassis_testing::start_with::<Work>(mesh.database.url(), &Clock::system(), &flags).await;
    let failures = failures(&mesh, &with(&mesh, "work", &work.url())).await;
    let seen: Vec<_> = failures.iter().map(|[who, check, _, _]| (who.as_str(), check.as_str())).collect();
    assert_eq!(seen, [("work", "storage"), ("work", "mail")], "{failures:?}");
    assert!(failures[0][3].contains(folder.to_str().unwrap()), "{failures:?}");
}

#[tokio::test]
async fn every_replica_is_asked() {
    let mesh = Mesh::start_at(Clock::system(), &[]).await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = mesh.peers().iter().find_map(|peer| peer.strip_prefix("crm=")).unwrap();
    let failures = failures(&mesh, &with(&mesh, "crm", &format!("{url}|http://{gone}"))).await;
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0][0], format!("crm {gone}"));
}
