//! The built program: what a script reads is alone on stdout, and a failure says why.

use std::process::Output;

use chassis_testing::{TestDatabase, TestPooler, secret, service_database, start};
use svc_work::Work;
use tokio::process::Command;

use crate::support::{World, database};

async fn gateway(database: &TestDatabase, arguments: &[&str]) -> Output {
    gateway_with(database, "", arguments).await
}

async fn gateway_with(database: &TestDatabase, peers: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gateway"));
    command.args(arguments).env("CONTEXT_SECRET", secret());
    if arguments.first() == Some(&"migrate") {
        // It needs a session of its own.
        command.env("DATABASE_URL", database.url());
    } else {
        command.envs(service_database(database.url(), "gateway").environment());
    }
    if !peers.is_empty() {
        command.env("PEERS", peers);
    }
    command.output().await.unwrap()
}

fn line(output: &Output) -> String {
    assert!(output.status.success(), "{}", complaint(output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.strip_suffix('\n').filter(|line| !line.contains('\n')).expect("one line").to_owned()
}

fn complaint(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[tokio::test]
async fn an_account_and_a_key_can_be_made_by_a_script() {
    let world = World::new().await;
    let database = &world.database;
    let id = line(&gateway(database, &["account", "create", "--name", "Bakery"]).await);
    assert!(uuid::Uuid::parse_str(&id).is_ok(), "{id}");
    let key =
        ["key", "create", "--account", "Bakery", "--name", "Shop", "--scopes", "deals.read,relations.read"];
    let key = line(&gateway(database, &key).await);
    let caller = world.authenticator().authenticate(&key).await.unwrap();
    assert_eq!(caller.account.id.to_string(), id);
    assert_eq!(caller.scopes, ["deals.read", "relations.read"]);
    let all = ["key", "create", "--account", &id, "--name", "All", "--all-scopes", "--expires", "2099-12-31"];
    let all = line(&gateway(database, &all).await);
    let all = world.authenticator().authenticate(&all).await.unwrap();
    assert_eq!(all.scopes, gateway::scopes::all());
    assert_eq!(all.expires_at.unwrap().to_rfc3339(), "2099-12-31T23:00:00+00:00");
    let list = gateway(database, &["account", "list"]).await;
    assert_eq!(line(&list), format!("{id}\tBakery\tNL\tEurope/Amsterdam\tEUR"));
}

#[tokio::test]
async fn a_key_can_be_listed_and_revoked_but_never_shown_again() {
    let world = World::new().await;
    let (key, caller) = world.caller().await;
    let shown = line(&gateway(&world.database, &["key", "list", "--account", "bakery"]).await);
    let columns: Vec<&str> = shown.split('\t').collect();
    assert_eq!(columns[..3], [&*caller.public_id, "Web shop", "relations.read"]);
    assert_eq!(columns[4..], ["-", "-", "-", "-"]);
    assert!(!shown.contains(key.split('_').nth(2).unwrap()));
    let revoked = gateway(&world.database, &["key", "revoke", &key]).await;
    assert!(revoked.status.success() && revoked.stdout.is_empty());
    assert!(!complaint(&revoked).contains(key.split('_').nth(2).unwrap()));
    let shown = line(&gateway(&world.database, &["key", "list", "--account", "Bakery"]).await);
    assert_ne!(shown.split('\t').nth(6), Some("-"));
}

#[tokio::test]
async fn a_strict_key_is_listed_as_such_and_stays_so() {
    let world = World::new().await;
    let database = &world.database;
    world.account("Bakery").await;
    let create =
        ["key", "create", "--account", "Bakery", "--name", "Shop", "--scopes", "deals.read", "--strict"];
    let key = line(&gateway(database, &create).await);
    assert!(world.authenticator().authenticate(&key).await.unwrap().strict);
    let is_strict = async || {
        let shown = line(&gateway(database, &["key", "list", "--account", "Bakery"]).await);
        shown.ends_with("\tstrict")
    };
    assert!(is_strict().await);
    for change in [&["key", "narrow", &key, "--scopes", "deals.read"][..], &["key", "revoke", &key]] {
        assert!(gateway(database, change).await.status.success());
        assert!(is_strict().await, "{change:?}");
    }
    let (_, other) = world.caller_of("Butcher").await;
    assert!(!other.strict);
}

#[tokio::test]
async fn a_credential_can_be_issued_listed_and_revoked_by_a_script() {
    let world = World::new().await;
    let (database, bakery) = (&world.database, world.account("Bakery").await);
    let butcher = world.account("Butcher").await;
    let issue = ["credential", "issue", "--team", "Reporting", "--account", "Bakery,Butcher", "--scopes"];
    let issue = [&issue[..], &["relations.read,crm.internal", "--expires", "2099-12-31"]].concat();
    let credential = line(&gateway(database, &issue).await);
    let parts: Vec<&str> = credential.split('_').collect();
    assert_eq!(parts[0], "bt");
    let shown = line(&gateway(database, &["credential", "list"]).await);
    let columns: Vec<&str> = shown.split('\t').collect();
    let mut accounts = [bakery.id, butcher.id];
    accounts.sort_unstable();
    assert_eq!(columns[..4], [parts[1], "Reporting", &accounts.join(","), "crm.internal,relations.read"]);
    assert_eq!(columns[5..], ["2099-12-31T23:00:00.000Z", "-", "-"]);
    assert!(!shown.contains(parts[2]));
    let revoked = gateway(database, &["credential", "revoke", &credential]).await;
    assert!(revoked.status.success() && revoked.stdout.is_empty(), "{}", complaint(&revoked));
    let shown = line(&gateway(database, &["credential", "list"]).await);
    assert_ne!(shown.split('\t').next_back(), Some("-"));
}

#[tokio::test]
async fn a_failure_says_why_on_stderr_and_prints_nothing() {
    let world = World::new().await;
    world.account("Bakery").await;
    let cases: [(&[&str], &str); 11] = [
        (&["account", "create", "--name", "bakery"], "already an account with the name `bakery`"),
        (&["account", "create", "--name", "B", "--country", "Belgium"], "country must be"),
        (&["account", "create", "--name", "B", "--timezone", "Mars"], "timezone must be"),
        (&["key", "create", "--account", "Butcher", "--name", "a", "--all-scopes"], "no account"),
        (
            &["key", "create", "--account", "Bakery", "--name", "a", "--scopes", "x.read"],
            "the scopes are automation",
        ),
        (
            &["key", "create", "--account", "Bakery", "--name", "a", "--all-scopes", "--expires", "soon"],
            "must be a date",
        ),
        (&["key", "create", "--account", "Bakery", "--name", "a"], "--scopes <SCOPES>|--all-scopes"),
        (&["key", "revoke", "ba_nonsense"], "typing mistakes"),
        (&["account", "provision", "Butcher"], "no account"),
        (&["credential", "issue", "--team", "a", "--account", "Butcher", "--all-scopes"], "no account"),
        (&["credential", "revoke", "bt_nonsense"], "typing mistakes"),
    ];
    for (arguments, reason) in cases {
        let output = gateway(&world.database, arguments).await;
        assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}");
        assert!(complaint(&output).contains(reason), "{arguments:?}: {}", complaint(&output));
    }
}

#[tokio::test]
async fn a_service_that_is_down_is_named_and_can_be_provisioned_later() {
    let database = database().await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let away = format!("work=http://{gone}");
    let output = gateway_with(&database, &away, &["account", "create", "--name", "Bakery"]).await;
    assert!(!output.status.success());
    let id = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(uuid::Uuid::parse_str(id.trim_end()).is_ok(), "the id is printed all the same");
    assert!(complaint(&output).contains(&format!("gateway account provision {}", id.trim_end())));
    let work = start::<Work>(database.url(), &chassis_base::Clock::system()).await;
    let up = format!("work={}", work.url());
    let output = gateway_with(&database, &up, &["account", "provision", "Bakery"]).await;
    assert!(output.status.success(), "{}", complaint(&output));
    let known: i64 = sqlx::query_scalar("select count(*) from work.account where name = 'Bakery'")
        .fetch_one(&mut database.connect().await)
        .await
        .unwrap();
    assert_eq!(known, 1);
}

#[tokio::test]
async fn migrating_twice_is_the_same_as_once() {
    let database = database().await;
    for _ in 0..2 {
        let output = gateway(&database, &["migrate"]).await;
        assert!(output.status.success(), "{}", complaint(&output));
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_pooler_is_said_at_the_start_and_by_doctor() {
    let database = database().await;
    let pooler = TestPooler::start(2, true);
    let cases = [
        ("false", pooler.url(database.url(), "gateway").await, "set DATABASE_POOLER=true"),
        ("true", pooler.plain_url(database.url()), "run deploy/k8s/roles.sql"),
    ];
    for (setting, url, advice) in cases {
        for command in ["serve", "doctor"] {
            let output = Command::new(env!("CARGO_BIN_EXE_gateway"))
                .arg(command)
                .envs([
                    ("DATABASE_URL", url.as_str()),
                    ("DATABASE_POOLER", setting),
                    ("CONTEXT_SECRET", secret()),
                ])
                .output()
                .await
                .unwrap();
            let said = String::from_utf8(output.stdout.clone()).unwrap() + &complaint(&output);
            assert!(!output.status.success() && said.contains(advice), "{command}: {said}");
        }
    }
}
