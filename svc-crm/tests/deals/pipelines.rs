use chassis_testing::{expected_faults, faults};
use proto::crm::{
    CreatePhaseRequest, CreatePipelineRequest, DeletePhaseRequest, DeletePipelineRequest, PipelineInput,
    ReorderPhasesRequest, ReorderPipelinesRequest, UpdatePhaseRequest, UpdatePipelineRequest,
};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use tonic::{Code, Status};

use crate::support::{User, World, id, phase};

fn names(things: &[Value]) -> Vec<&str> {
    things.iter().map(|thing| thing["name"].as_str().unwrap()).collect()
}

async fn phase_names(user: &User, index: usize) -> Vec<String> {
    let board = user.board().await;
    let phases = board[index]["phases"].as_array().unwrap();
    let orders: Vec<i64> = phases.iter().map(|phase| phase["order"].as_i64().unwrap()).collect();
    assert!((1..).zip(&orders).all(|(expected, order)| expected == *order), "{orders:?}");
    names(phases).into_iter().map(str::to_owned).collect()
}

async fn delete_phase(user: &User, id: String) -> Result<(), Status> {
    user.pipelines().delete_phase(user.request(DeletePhaseRequest { id })).await.map(drop)
}

async fn delete_pipeline(user: &User, id: String) -> Result<(), Status> {
    user.pipelines().delete_pipeline(user.request(DeletePipelineRequest { id })).await.map(drop)
}

#[tokio::test]
async fn an_account_starts_with_a_pipeline_and_its_phases() {
    let world = World::new().await;
    let user = world.user().await;
    let answer = user.api.get("/v1/pipelines").await.expect(200);
    assert_eq!(answer.at("/meta"), json!({"total": 1}));
    let pipeline = answer.at("/data/0");
    assert_eq!((&pipeline["name"], &pipeline["active"]), (&json!("Verkoop"), &json!(true)));
    let expected = ["Nieuw", "In gesprek", "Offerte verstuurd", "Onderhandeling"];
    assert_eq!(phase_names(&user, 0).await, expected);
    let phases = user.api.get("/v1/phases").await.expect(200);
    assert_eq!(phases.at("/meta"), json!({"total": 4}));
    let first = json!({
        "id": phase(&pipeline, 0), "pipeline_id": pipeline["id"], "name": "Nieuw", "order": 1, "version": 1,
        "updated_at": "2026-11-15T11:00:00.123Z",
    });
    assert_eq!(phases.at("/data/0"), first);
}

#[tokio::test]
async fn an_account_that_was_never_provisioned_gets_its_defaults_with_the_first_change() {
    let world = World::new().await;
    let user = world.user().await;
    for table in ["phase", "pipeline", "source", "setup"] {
        sqlx::query(AssertSqlSafe(format!("delete from crm.{table} where account_id = $1")))
            .bind(user.account.id)
            .execute(&mut world.database.connect().await)
            .await
            .unwrap();
    }
    assert_eq!(user.board().await.len(), 0);
    // Both at the same time: one of them creates the defaults, and the other waits for it.
    futures::join!(user.pipeline("Rent", &["Ask"]), user.pipeline("Lease", &["Ask"]));
    let board = user.board().await;
    assert_eq!(names(&board)[0], "Verkoop");
    assert_eq!(board.len(), 3);
    assert_eq!(phase_names(&user, 0).await.len(), 4);
    let sources = user.api.get("/v1/deal-sources").await.expect(200);
    assert_eq!(sources.at("/meta/total"), 5);
}

#[tokio::test]
async fn phases_are_listed_by_pipeline() {
    let world = World::new().await;
    let user = world.user().await;
    let rent = user.pipeline("Rent", &["Ask", "Sign"]).await;
    let listed = async |query: &str| {
        let listed = user.api.get(&format!("/v1/phases{query}")).await.expect(200).at("/data");
        names(listed.as_array().unwrap()).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(listed(&format!("?pipeline_id={}", rent.id)).await, ["Ask", "Sign"]);
    assert_eq!(listed("").await.len(), 6);
    for unknown in ["x", "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05"] {
        assert_eq!(listed(&format!("?pipeline_id={unknown}")).await, [""; 0]);
    }
}

#[tokio::test]
async fn pipelines_are_added_renamed_switched_off_and_put_into_order() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let rent = user.pipeline("Rent", &["Ask"]).await;
    let input = PipelineInput { name: "Lease".into(), active: Some(false), ..PipelineInput::default() };
    let update = |paths: &[&str]| UpdatePipelineRequest {
        id: rent.id.clone(),
        pipeline: Some(input.clone()),
        update_mask: Some(prost_types::FieldMask { paths: paths.iter().map(ToString::to_string).collect() }),
    };
    let renamed = user.pipelines().update_pipeline(user.request(update(&["name"]))).await.unwrap();
    let renamed = renamed.into_inner().data.unwrap();
    assert_eq!((renamed.name.as_str(), renamed.active, renamed.phases.len()), ("Lease", true, 1));
    assert_eq!(names(&user.board().await), ["Verkoop", "Lease"]);

    let ids: Vec<String> = user.board().await.iter().rev().map(id).collect();
    let request = ReorderPipelinesRequest { ids: ids.clone() };
    let ordered = user.pipelines().reorder_pipelines(user.request(request)).await.unwrap().into_inner().data;
    assert_eq!(
        ordered.iter().map(|pipeline| pipeline.name.as_str()).collect::<Vec<_>>(),
        ["Lease", "Verkoop"]
    );
    assert_eq!(user.titled_deal(&client, "T").await["pipeline_id"], json!(rent.id), "it is the first now");

    user.pipelines().update_pipeline(user.request(update(&["active"]))).await.unwrap();
    assert_eq!(user.titled_deal(&client, "T").await["pipeline_id"], json!(ids[1]), "the first active one");
    for wrong in [vec![], vec![ids[0].clone()], vec![ids[0].clone(), ids[0].clone()]] {
        let request = user.request(ReorderPipelinesRequest { ids: wrong });
        let refused = user.pipelines().reorder_pipelines(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
    }
    let nameless = CreatePipelineRequest { pipeline: Some(input.clone()), phases: vec![" ".into()] };
    let refused = user.pipelines().create_pipeline(user.request(nameless)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let phaseless = CreatePipelineRequest { pipeline: Some(input), phases: vec![] };
    let refused = user.pipelines().create_pipeline(user.request(phaseless)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn phases_are_added_renamed_put_into_order_and_removed() {
    let world = World::new().await;
    let user = world.user().await;
    let rent = user.pipeline("Rent", &["Ask", "Sign"]).await;
    let create = CreatePhaseRequest { pipeline_id: rent.id.clone(), name: " Visit ".into() };
    let visit = user.pipelines().create_phase(user.request(create)).await.unwrap().into_inner().data.unwrap();
    assert_eq!((visit.name.as_str(), visit.order, &visit.pipeline_id), ("Visit", 3, &rent.id));
    let ids = [&rent.phases[1].id, &visit.id, &rent.phases[0].id].map(Clone::clone);
    let order = ReorderPhasesRequest { pipeline_id: rent.id.clone(), ids: ids.to_vec() };
    user.pipelines().reorder_phases(user.request(order)).await.unwrap();
    assert_eq!(phase_names(&user, 1).await, ["Sign", "Visit", "Ask"]);
    let rename = UpdatePhaseRequest { id: visit.id.clone(), name: "View".into() };
    let renamed =
        user.pipelines().update_phase(user.request(rename)).await.unwrap().into_inner().data.unwrap();
    assert_eq!((renamed.name.as_str(), renamed.order), ("View", 2));
    delete_phase(&user, visit.id.clone()).await.unwrap();
    assert_eq!(phase_names(&user, 1).await, ["Sign", "Ask"]);
    assert_eq!(delete_phase(&user, visit.id).await.unwrap_err().code(), Code::NotFound);
    delete_phase(&user, ids[0].clone()).await.unwrap();
    let last = delete_phase(&user, ids[2].clone()).await.unwrap_err();
    assert_eq!(last.code(), Code::FailedPrecondition, "a pipeline needs a phase");
}

#[tokio::test]
async fn a_phase_that_names_no_pipeline_of_the_account_is_refused_at_that_field() {
    let world = World::new().await;
    let [user, other] = [world.user().await, world.user().await];
    let foreign = other.pipeline("Rent", &["Ask"]).await.id;
    for unknown in ["x", "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05", &foreign] {
        let pipeline_id = || unknown.to_owned();
        let create = CreatePhaseRequest { pipeline_id: pipeline_id(), name: "Visit".into() };
        let order = ReorderPhasesRequest { pipeline_id: pipeline_id(), ids: vec![] };
        let created = user.pipelines().create_phase(user.request(create)).await.map(drop);
        let ordered = user.pipelines().reorder_phases(user.request(order)).await.map(drop);
        for refused in [created, ordered] {
            let refused = faults(&refused.unwrap_err());
            assert_eq!(refused, expected_faults(&[("/pipeline_id", "unknown_reference")]));
        }
    }
}

#[tokio::test]
async fn what_has_deals_cannot_be_removed_and_the_history_keeps_the_names() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let rent = user.pipeline("Rent", &["Ask", "Sign"]).await;
    let ask = rent.phases[0].id.clone();
    let deal = user.deal(json!({"title": "Shop", "client_id": client, "pipeline_id": rent.id})).await;
    for refused in [delete_phase(&user, ask.clone()).await, delete_pipeline(&user, rent.id.clone()).await] {
        assert_eq!(refused.unwrap_err().code(), Code::FailedPrecondition);
    }
    user.act(&deal, "move", json!({"phase_id": rent.phases[1].id})).await.expect(200);
    delete_phase(&user, ask).await.unwrap();
    let steps = user.get(&deal).await["meta"]["history"].clone();
    assert_eq!((&steps[0]["phase"], &steps[1]["phase"]), (&json!("Ask"), &json!("Sign")));
    user.delete(&deal).await.expect(200);
    delete_pipeline(&user, rent.id.clone()).await.unwrap();
    let board = user.board().await;
    assert_eq!(names(&board), ["Verkoop"]);
    let last = delete_pipeline(&user, id(&board[0])).await.unwrap_err();
    assert_eq!(last.code(), Code::FailedPrecondition, "an account needs a pipeline");
}

#[tokio::test]
async fn without_an_active_pipeline_a_deal_must_name_one() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let board = user.board().await;
    let input = PipelineInput { name: "Verkoop".into(), active: Some(false), ..PipelineInput::default() };
    let request = UpdatePipelineRequest { id: id(&board[0]), pipeline: Some(input), update_mask: None };
    user.pipelines().update_pipeline(user.request(request)).await.unwrap();
    let body = json!({"title": "T", "client_id": client});
    let refused = user.api.post("/v1/deals", body).await.expect(422).faults();
    assert_eq!(refused, expected_faults(&[("/pipeline_id", "required")]));
    user.deal(json!({"title": "T", "client_id": client, "pipeline_id": board[0]["id"]})).await;
}
