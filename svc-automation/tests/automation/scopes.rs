//! A flow acts with the scopes of whoever applied it.

use chassis_testing::faults;
use proto::automation::ApplyFlowRequest;
use serde_json::json;

use crate::support::{MAKE_CLIENT, World, fault};

/// Those of a team that works on flows, and more.
fn team(more: &[&'static str]) -> Vec<&'static str> {
    [&["automation.internal"], more].concat()
}

#[tokio::test]
async fn a_call_beyond_the_scopes_of_the_caller_is_refused_when_the_flow_is_applied() {
    let world = World::idle().await;
    let apply = async |scopes: &[&str]| {
        let request = ApplyFlowRequest { definition: MAKE_CLIENT.to_owned(), active: Some(true) };
        world.flows().apply_flow(world.caller.with_scopes(scopes).request(request)).await
    };
    let refused = apply(&team(&["relations.read"])).await.unwrap_err();
    assert_eq!(faults(&refused), [fault("/definition/steps/0/call/method", "not_allowed")]);
    assert_eq!(world.count("select count(*) from automation.flow_version").await, 0);
    let version =
        async |scopes: &[&str]| apply(scopes).await.unwrap().into_inner().data.unwrap().meta.unwrap().version;
    assert_eq!(version(&team(&["relations.write"])).await, 1);
    assert_eq!(version(&team(&["relations.write"])).await, 1, "nothing has changed");
    assert_eq!(
        version(&["mesh", "relations.write"]).await,
        2,
        "the same with other scopes is another version"
    );
    let kept = "select count(*) from automation.flow_version
                where scopes = '{automation.internal,relations.write}' and version = 1
                   or scopes = '{mesh}' and version = 2";
    assert_eq!(world.count(kept).await, 2);
}

#[tokio::test]
async fn a_call_beyond_the_scopes_of_its_version_fails_the_run() {
    let world = World::working().await;
    world.apply(MAKE_CLIENT).await;
    let id = world.start("make.client", &json!({"name": "Allowed"})).await;
    world.until(&id, "success").await;
    world.execute("update automation.flow_version set scopes = '{relations.read}'").await;
    let id = world.start("make.client", &json!({"name": "Refused"})).await;
    let run = world.until(&id, "failed").await;
    assert!(run.error.contains("needs the scope relations.write"), "{}", run.error);
    assert_eq!(world.clients().await, 1);
}

#[tokio::test]
async fn a_ready_made_flow_has_the_scopes_that_its_steps_need() {
    let world = World::idle().await;
    world.provision().await;
    let of = |name: &str, scopes: &str| {
        format!(
            "select count(*) from automation.flow f join automation.flow_version v on v.flow_id = f.id
                 where f.ready_made = '{name}' and v.scopes = '{scopes}'"
        )
    };
    for (name, scopes) in [
        ("invoice-late", "{invoices.read,invoices.write,relations.read}"),
        ("quote-silent", "{tasks.write}"),
        ("ticket-stale", "{tickets.write}"),
        ("client-welcome", "{}"),
    ] {
        let sql = sqlx::AssertSqlSafe(of(name, scopes));
        let found: i64 =
            sqlx::query_scalar(sql).fetch_one(&mut world.database.connect().await).await.unwrap();
        assert_eq!(found, 1, "{name}");
    }
}
