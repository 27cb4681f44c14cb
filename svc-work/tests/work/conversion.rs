use chassis_testing::{expected_faults, faults};
use proto::work::{CreateProjectFromQuoteRequest, Project, ProjectStatus};
use serde_json::{Value, json};
use tonic::Status;

use crate::support::{User, id, problem};
use crate::world::World;

async fn convert(user: &User, quote: &str) -> Result<Project, Status> {
    let request = user.request(CreateProjectFromQuoteRequest { quote_id: quote.to_owned() });
    Ok(user.projects().create_project_from_quote(request).await?.into_inner().data.unwrap())
}

/// A quote of a client, not final: no PDF is needed here.
async fn quote(user: &User, client: &str) -> Value {
    let rows = json!([{"name": "Work", "unit_price": 1000, "vat_rate": "21"}]);
    user.create("quotes", json!({"title": "New kitchen", "client_id": client, "rows": rows})).await
}

#[tokio::test]
async fn an_accepted_quote_becomes_one_project_and_names_it() {
    let world = World::start().with_billing().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let quote = id(&quote(&user, &client).await);
    let path = format!("/v1/quotes/{quote}");
    assert_eq!(problem(&convert(&user, &quote).await.unwrap_err()), "wrong_status");
    user.api.post(&format!("{path}/accept"), json!({})).await.expect(200);
    let calls = (0..4).map(|_| {
        let (user, quote) = (user.clone(), quote.clone());
        tokio::spawn(async move { convert(&user, &quote).await.unwrap() })
    });
    let mut projects = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        projects.push(call.await.unwrap());
    }
    projects.dedup();
    let [project] = projects.as_slice() else { panic!("{projects:?}") };
    assert_eq!(
        (project.name.as_str(), project.number.as_str(), project.status()),
        ("New kitchen", "P-00001", ProjectStatus::Planned)
    );
    assert_eq!((project.client_id.as_str(), project.budget.as_str()), (client.as_str(), "1000.00"));
    assert_eq!(project.meta.as_ref().unwrap().quote_id.as_deref(), Some(quote.as_str()));
    assert_eq!(user.total("/v1/projects").await, 1);
    let named = user.get(&path).await;
    assert_eq!(named["data"]["project_number"], "P-00001");
    let events: Vec<(String, String)> = sqlx::query_as(
        "select event, data::json ->> 'quote_id' from work.log where event is not null and account_id = $1 order by sequence",
    )
    .bind(user.account.id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap();
    let event = |kind: &str| (kind.to_owned(), quote.clone());
    assert_eq!(events, [event("project.created"), event("quote.converted_to_project")]);
    assert_eq!(user.project("Next").await["number"], "P-00002", "no number was lost");
}

#[tokio::test]
async fn an_unknown_quote_is_refused() {
    let world = World::start().with_billing().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let theirs = id(&quote(&stranger, &stranger.client("C").await).await);
    for quote in ["nonsense", &world.clock.id().to_string(), &theirs] {
        let refused = convert(&user, quote).await.unwrap_err();
        assert_eq!(faults(&refused), expected_faults(&[("/quote_id", "unknown_reference")]));
    }
    assert_eq!(faults(&convert(&user, "").await.unwrap_err()), expected_faults(&[("/quote_id", "required")]));
}

#[tokio::test]
async fn without_billing_no_project_is_created() {
    let world = World::start().with_unreachable_peers().await;
    let user = world.user().await;
    let refused = convert(&user, &world.clock.id().to_string()).await.unwrap_err();
    assert_eq!((refused.code(), problem(&refused)), (tonic::Code::Unavailable, "unavailable".to_owned()));
    assert_eq!(user.total("/v1/projects").await, 0);
}
