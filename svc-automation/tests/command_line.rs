//! Flows on the command line, as an operator uses it.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

use std::process::{Command, Output};

use chassis_base::Account;
use chassis_service::Service;
use chassis_testing::{TestCaller, TestDatabase};
use proto::api::ProvisionAccountRequest;
use proto::api::provisioning_service_client::ProvisioningServiceClient;
use svc_automation::Automation;

const FLOW: &str = "
name: Greet
trigger: {custom: greet}
steps:
  - {id: mail, mail: {to: '{{ data.email }}', subject: Hello, text: 'Dear {{ data.name }}'}}
";

fn flow(database: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_svc-automation"))
        .args(["--database-url", database, "--log", "error", "flow"])
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

async fn world() -> (TestDatabase, Account, tempfile::TempDir) {
    let database = TestDatabase::new(&[(Automation::NAME, Automation::migrations())]).await;
    let (clock, account) = (chassis_testing::clock(), chassis_testing::account());
    let service = chassis_testing::start::<Automation>(database.url(), &clock).await;
    let request =
        TestCaller::mesh(&account, &clock).request(ProvisionAccountRequest { name: "Bakery".into() });
    ProvisioningServiceClient::new(service.channel()).provision_account(request).await.unwrap();
    (database, account, tempfile::tempdir().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_is_applied_listed_shown_and_deleted() {
    let (database, account, folder) = world().await;
    let file = folder.path().join("greet.yaml");
    std::fs::write(&file, FLOW).unwrap();
    let (file, id) = (file.to_str().unwrap(), account.id.to_string());
    let run = |arguments: &[&str]| stdout(&flow(database.url(), arguments));
    assert!(run(&["apply", "--account", &id, "--activate", file]).starts_with("created\t"));
    assert!(run(&["apply", "--account", "Bakery", file]).starts_with("unchanged\t"));
    let list = run(&["list", "--account", "Bakery"]);
    assert!(list.lines().any(|line| line.ends_with("\ton\tcustom\tgreet\t1\tGreet")), "{list}");
    assert_eq!(run(&["show", "--account", "Bakery", "Greet"]), FLOW);
    run(&["delete", "--account", "Bakery", "Greet"]);
    assert!(!run(&["list", "--account", "Bakery"]).contains("Greet"));
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_reported_and_nothing_is_stored() {
    let (database, _, folder) = world().await;
    let (right, wrong) = (folder.path().join("right.yaml"), folder.path().join("wrong.yaml"));
    std::fs::write(&right, FLOW).unwrap();
    std::fs::write(&wrong, FLOW.replace("data.email", "datum.email").replace("Greet", "Wrong")).unwrap();
    let files = [right.to_str().unwrap(), wrong.to_str().unwrap()];
    let refused = flow(database.url(), &["apply", "--account", "Bakery", files[0], files[1]]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && text.contains("/steps/0/mail/to") && text.contains("datum"),
        "{text}"
    );
    assert!(!stdout(&flow(database.url(), &["list", "--account", "Bakery"])).contains("Greet"));
    let unknown = flow(database.url(), &["list", "--account", "Nobody"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no account Nobody"));
}

#[test]
fn a_test_needs_no_database_and_says_what_would_happen() {
    let folder = tempfile::tempdir().unwrap();
    let (file, event) = (folder.path().join("greet.yaml"), folder.path().join("event.json"));
    std::fs::write(&file, FLOW).unwrap();
    std::fs::write(&event, r#"{"type": "greet", "data": {"email": "a@example.com", "name": "Sanne"}}"#)
        .unwrap();
    let arguments = ["test", file.to_str().unwrap(), "--event", event.to_str().unwrap()];
    let text = stdout(&flow("postgres://127.0.0.1:1/nothing", &arguments));
    assert!(
        text.contains("The event starts the flow.") && text.contains("mail \"Hello\" to a@example.com"),
        "{text}"
    );
}

/// `UPDATE_SCHEMA=1` writes it anew.
#[test]
fn the_published_schema_is_the_one_of_the_program() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/flow.schema.json");
    let schema = stdout(&flow("postgres://127.0.0.1:1/nothing", &["schema"]));
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &schema).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), schema, "UPDATE_SCHEMA=1 writes it anew");
}

#[test]
fn private_networks_are_not_reached_outside_development() {
    let output = Command::new(env!("CARGO_BIN_EXE_svc-automation"))
        .args([
            "--context-secret",
            chassis_testing::secret(),
            "--allow-private-networks",
            "--listen",
            "127.0.0.1:0",
        ])
        .args(["--metrics-listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && stderr.contains("ALLOW_PRIVATE_NETWORKS is for development only"),
        "{stderr}"
    );
}
