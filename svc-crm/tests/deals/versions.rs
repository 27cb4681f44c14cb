//! The versions of records, and that the log holds each record as it is shown.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use prost_types::Any;
use proto::crm::deal_service_client::DealServiceClient;
use proto::crm::{
    CreateDealSourceRequest, CreatePhaseRequest, DeleteDealSourceRequest, DeletePhaseRequest,
    DeletePipelineRequest, GetDealRequest, ListDealSourcesRequest, ListPhasesRequest, ListPipelinesRequest,
    PipelineInput, ReorderDealSourcesRequest, ReorderPhasesRequest, ReorderPipelinesRequest,
    UpdateDealSourceRequest, UpdatePhaseRequest, UpdatePipelineRequest,
};
use serde_json::{Value, json};

use crate::support::{User, World, id, phase};

/// Records by id: version and encoded message.
type Records = BTreeMap<String, (i64, Vec<u8>)>;

/// The records of a kind as the log holds them after their last changes, without those that were removed.
async fn logged(world: &World, user: &User, kind: &str) -> Records {
    let rows: Vec<(String, i64, Option<Vec<u8>>)> = sqlx::query_as(
        "select distinct on (record_id) record_id, version, image from crm.log
         where account_id = $1 and kind = $2 and change is not null order by record_id, version desc",
    )
    .bind(user.account.id)
    .bind(kind)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap();
    rows.into_iter().filter_map(|(id, version, image)| Some((id, (version, image?)))).collect()
}

/// How many changes the log has.
async fn changes(world: &World, user: &User) -> i64 {
    sqlx::query_scalar("select count(*) from crm.log where account_id = $1 and change is not null")
        .bind(user.account.id)
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap()
}

/// Checks that the log holds a deal as it is shown. Returns its version.
async fn deal_version(world: &World, user: &User, deal: &Value) -> i64 {
    let request = user.request(GetDealRequest { id: id(deal) });
    let shown = DealServiceClient::new(user.channel()).get_deal(request).await.unwrap().into_inner();
    let shown = shown.data.unwrap();
    let version = shown.meta.as_ref().unwrap().version;
    let expected = (version, Any::from_msg(&shown).unwrap().value);
    assert_eq!(logged(world, user, "deal").await.get(&shown.id), Some(&expected));
    version
}

/// Checks that the log holds the pipelines and phases as they are shown. Returns, in their order, the versions of the
/// pipelines, and the names and versions of all phases.
async fn board_versions(world: &World, user: &User) -> (Vec<i64>, Vec<(String, i64)>) {
    let pipelines = user.pipelines().list_pipelines(user.request(ListPipelinesRequest {})).await.unwrap();
    let pipelines = pipelines.into_inner().data;
    let phases = user.pipelines().list_phases(user.request(ListPhasesRequest::default())).await.unwrap();
    let phases = phases.into_inner().data;
    let shown: Records =
        pipelines.iter().map(|it| (it.id.clone(), (it.version, Any::from_msg(it).unwrap().value))).collect();
    assert_eq!(logged(world, user, "pipeline").await, shown);
    let shown: Records =
        phases.iter().map(|it| (it.id.clone(), (it.version, Any::from_msg(it).unwrap().value))).collect();
    assert_eq!(logged(world, user, "phase").await, shown);
    let versions = pipelines.iter().map(|pipeline| pipeline.version).collect();
    (versions, phases.into_iter().map(|phase| (phase.name, phase.version)).collect())
}

/// Checks that the log holds the sources as they are shown. Returns their names and versions in their order.
async fn source_versions(world: &World, user: &User) -> Vec<(String, i64)> {
    let sources = user.sources().list_deal_sources(user.request(ListDealSourcesRequest {})).await.unwrap();
    let sources = sources.into_inner().data;
    let shown: Records =
        sources.iter().map(|it| (it.name.clone(), (it.version, Any::from_msg(it).unwrap().value))).collect();
    assert_eq!(logged(world, user, "deal_source").await, shown);
    sources.into_iter().map(|source| (source.name, source.version)).collect()
}

fn named(expected: &[(&str, i64)]) -> Vec<(String, i64)> {
    expected.iter().map(|(name, version)| ((*name).to_owned(), *version)).collect()
}

#[tokio::test]
async fn each_change_of_a_deal_is_one_version_and_a_repetition_is_none() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let board = user.board().await;
    let deal = user.titled_deal(&client, "Ovens").await;
    assert_eq!(deal_version(&world, &user, &deal).await, 1);
    let moved = json!({"phase_id": phase(&board[0], 1), "status": "won"});
    for (version, action, body) in [
        (2, "", json!({"title": "Mills", "amount": "5"})),
        (3, "move", moved),
        (4, "lose", json!({})),
        (5, "", json!({"status": "open", "source": "Website"})),
    ] {
        world.clock.advance(TimeDelta::minutes(1));
        for _ in 0..2 {
            let answer = match action {
                "" => user.patch(&deal, body.clone()).await,
                _ => user.act(&deal, action, body.clone()).await,
            };
            assert_eq!(answer.expect(200).at("/data/meta/version"), version, "{body}");
            assert_eq!(deal_version(&world, &user, &deal).await, version);
        }
    }
    let listed = user.api.get("/v1/deals").await.expect(200);
    assert_eq!(listed.at("/data/0/meta/version"), 5);
    user.delete(&deal).await.expect(200);
    assert_eq!(logged(&world, &user, "deal").await, Records::new());
}

#[tokio::test]
async fn what_happens_to_its_source_and_its_phase_changes_no_deal() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let board = user.board().await;
    let deal = user.deal(json!({"title": "Ovens", "client_id": client, "source": "Website"})).await;
    let shown = user.get(&deal).await;
    let rename = UpdatePhaseRequest { id: phase(&board[0], 0), name: "First".into() };
    user.pipelines().update_phase(user.request(rename)).await.unwrap();
    let remove = DeletePhaseRequest { id: phase(&board[0], 3) };
    user.pipelines().delete_phase(user.request(remove)).await.unwrap();
    let rename = UpdateDealSourceRequest { name: "Website".into(), new_name: "Shop".into() };
    user.sources().update_deal_source(user.request(rename)).await.unwrap();
    let remove = DeleteDealSourceRequest { name: "Shop".into() };
    user.sources().delete_deal_source(user.request(remove)).await.unwrap();
    assert_eq!(user.get(&deal).await, shown);
    assert_eq!(deal_version(&world, &user, &deal).await, 1);
}

#[tokio::test]
async fn the_first_pipeline_phases_and_sources_are_of_version_1() {
    let world = World::new().await;
    let user = world.user().await;
    let (pipelines, phases) = board_versions(&world, &user).await;
    assert_eq!((pipelines, phases.len()), (vec![1], 4));
    assert!(phases.iter().all(|(_, version)| *version == 1), "{phases:?}");
    let sources = source_versions(&world, &user).await;
    assert!(sources.len() == 5 && sources.iter().all(|(_, version)| *version == 1), "{sources:?}");
}

#[tokio::test]
async fn a_change_of_a_phase_is_one_version_of_it_and_of_its_pipeline() {
    let world = World::new().await;
    let user = world.user().await;
    let rent = user.pipeline("Rent", &["Ask", "Visit"]).await;
    // Without the pipeline and the four phases that the account starts with, which nothing here changes.
    let versions = async || {
        let (pipelines, phases) = board_versions(&world, &user).await;
        assert!(pipelines[0] == 1 && phases[..4].iter().all(|(_, version)| *version == 1));
        (pipelines[1], phases[4..].to_vec())
    };
    assert_eq!(versions().await, (1, named(&[("Ask", 1), ("Visit", 1)])));

    world.clock.advance(TimeDelta::minutes(1));
    let create = CreatePhaseRequest { pipeline_id: rent.id.clone(), name: "Sign".into() };
    let sign = user.pipelines().create_phase(user.request(create)).await.unwrap().into_inner().data.unwrap();
    assert_eq!(sign.version, 1);
    assert_eq!(versions().await, (2, named(&[("Ask", 1), ("Visit", 1), ("Sign", 1)])));

    for _ in 0..2 {
        world.clock.advance(TimeDelta::minutes(1));
        let rename = UpdatePhaseRequest { id: sign.id.clone(), name: "Seal".into() };
        let renamed = user.pipelines().update_phase(user.request(rename)).await.unwrap().into_inner();
        assert_eq!(renamed.data.unwrap().version, 2);
        assert_eq!(versions().await, (3, named(&[("Ask", 1), ("Visit", 1), ("Seal", 2)])));
    }

    let ids = [&sign.id, &rent.phases[1].id, &rent.phases[0].id].map(Clone::clone).to_vec();
    for _ in 0..2 {
        world.clock.advance(TimeDelta::minutes(1));
        let order = ReorderPhasesRequest { pipeline_id: rent.id.clone(), ids: ids.clone() };
        let answer = user.pipelines().reorder_phases(user.request(order)).await.unwrap().into_inner().data;
        assert_eq!(answer.iter().map(|phase| phase.version).collect::<Vec<_>>(), [3, 1, 2]);
        let expected = named(&[("Seal", 3), ("Visit", 1), ("Ask", 2)]);
        assert_eq!(versions().await, (4, expected), "the one in the middle has not moved");
    }

    let remove = DeletePhaseRequest { id: sign.id };
    user.pipelines().delete_phase(user.request(remove)).await.unwrap();
    assert_eq!(versions().await, (5, named(&[("Visit", 2), ("Ask", 3)])));
}

#[tokio::test]
async fn a_change_of_a_pipeline_is_one_version_and_its_place_in_the_list_is_none() {
    let world = World::new().await;
    let user = world.user().await;
    let rent = user.pipeline("Rent", &["Ask"]).await;
    let versions = async || board_versions(&world, &user).await.0;
    assert_eq!(versions().await, [1, 1]);
    let input = PipelineInput { name: "Lease".into(), active: Some(false), ..PipelineInput::default() };
    for _ in 0..2 {
        world.clock.advance(TimeDelta::minutes(1));
        let pipeline = Some(input.clone());
        let update = UpdatePipelineRequest { id: rent.id.clone(), pipeline, update_mask: None };
        let changed = user.pipelines().update_pipeline(user.request(update)).await.unwrap().into_inner();
        assert_eq!(changed.data.unwrap().version, 2);
        assert_eq!(versions().await, [1, 2]);
    }
    let before = changes(&world, &user).await;
    let ids = user.board().await.iter().rev().map(id).collect();
    let reorder = user.request(ReorderPipelinesRequest { ids });
    user.pipelines().reorder_pipelines(reorder).await.unwrap();
    assert_eq!(versions().await, [2, 1]);
    assert_eq!(changes(&world, &user).await, before);
    let remove = user.request(DeletePipelineRequest { id: rent.id });
    user.pipelines().delete_pipeline(remove).await.unwrap();
    let (pipelines, phases) = board_versions(&world, &user).await;
    assert_eq!((pipelines, phases.len()), (vec![1], 4), "its phases are removed from the log with it");
}

#[tokio::test]
async fn a_change_of_a_source_is_one_version_of_each_that_shows_it() {
    let world = World::new().await;
    let user = world.user().await;
    let remove = async |name: &str| {
        world.clock.advance(TimeDelta::minutes(1));
        let request = user.request(DeleteDealSourceRequest { name: name.to_owned() });
        user.sources().delete_deal_source(request).await.unwrap();
    };
    for name in ["Telefoon", "E-mail", "Beurs"] {
        remove(name).await;
    }
    let versions = async || source_versions(&world, &user).await;
    assert_eq!(versions().await, named(&[("Website", 1), ("Aanbeveling", 1)]));

    let rename = async |from: &str, to: &str| {
        world.clock.advance(TimeDelta::minutes(1));
        let request = UpdateDealSourceRequest { name: from.to_owned(), new_name: to.to_owned() };
        let renamed = user.sources().update_deal_source(user.request(request)).await.unwrap();
        renamed.into_inner().data.unwrap().version
    };
    assert_eq!(rename("Website", "Shop").await, 2);
    assert_eq!(rename("Shop", "Shop").await, 2);
    assert_eq!(versions().await, named(&[("Shop", 2), ("Aanbeveling", 1)]));
    assert_eq!(rename("Shop", "Website").await, 3);
    assert_eq!(versions().await, named(&[("Website", 3), ("Aanbeveling", 1)]));

    for _ in 0..2 {
        world.clock.advance(TimeDelta::minutes(1));
        let names = vec!["Aanbeveling".to_owned(), "Website".to_owned()];
        let request = user.request(ReorderDealSourcesRequest { names });
        user.sources().reorder_deal_sources(request).await.unwrap();
        assert_eq!(versions().await, named(&[("Aanbeveling", 2), ("Website", 4)]));
    }
    remove("Aanbeveling").await;
    assert_eq!(versions().await, named(&[("Website", 5)]));
}

#[tokio::test]
async fn a_source_that_comes_back_counts_on() {
    let world = World::new().await;
    let user = world.user().await;
    let create = async |name: &str| {
        world.clock.advance(TimeDelta::minutes(1));
        let request = user.request(CreateDealSourceRequest { name: name.to_owned() });
        user.sources().create_deal_source(request).await.unwrap().into_inner().data.unwrap().version
    };
    assert_eq!(create("Radio").await, 1);
    let remove = user.request(DeleteDealSourceRequest { name: "Radio".to_owned() });
    user.sources().delete_deal_source(remove).await.unwrap();
    assert_eq!(create("Radio").await, 3, "its removal was the second");
    assert_eq!(source_versions(&world, &user).await.last(), Some(&("Radio".to_owned(), 3)));
}

#[tokio::test]
async fn a_source_that_the_release_before_has_made_again_goes_on_counting() {
    let world = World::new().await;
    let user = world.user().await;
    for (from, to) in [("Beurs", "Markt"), ("Markt", "Beurs")] {
        let rename = UpdateDealSourceRequest { name: from.to_owned(), new_name: to.to_owned() };
        user.sources().update_deal_source(user.request(rename)).await.unwrap();
    }
    let last = source_versions(&world, &user).await.pop().unwrap();
    assert_eq!(last, ("Beurs".to_owned(), 3));
    // That release knows no versions.
    let mut connection = world.database.connect().await;
    for sql in [
        "delete from crm.source where account_id = $1 and name = 'Beurs' and created_at <= $2",
        "insert into crm.source (account_id, name, position, created_at, updated_at) values ($1, 'Beurs', 5, $2, $2)",
    ] {
        let query = sqlx::query(sql).bind(user.account.id).bind(world.clock.now());
        query.execute(&mut connection).await.unwrap();
    }
    let order = ["Beurs", "Website", "Aanbeveling", "Telefoon", "E-mail"].map(str::to_owned);
    let request = user.request(ReorderDealSourcesRequest { names: order.to_vec() });
    user.sources().reorder_deal_sources(request).await.unwrap();
    let expected = [("Beurs", 5), ("Website", 2), ("Aanbeveling", 2), ("Telefoon", 2), ("E-mail", 2)];
    assert_eq!(source_versions(&world, &user).await, named(&expected));
}
