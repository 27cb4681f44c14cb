use chassis_testing::{expected_faults, faults};
use proto::work::{
    ApproveHoursRequest, DeleteHoursRequest, HourEntry, HourInput, HourStatus, LogHoursRequest,
    RejectHoursRequest, ReopenHoursRequest, SubmitHoursRequest, UpdateHoursRequest,
};
use serde_json::json;
use tonic::Status;

use crate::support::{User, id, problem};
use crate::world::World;

fn entry(date: &str, hours: &str) -> HourInput {
    let activity_name = "Carpentry".to_owned();
    HourInput { date: date.to_owned(), hours: hours.to_owned(), activity_name, ..HourInput::default() }
}

async fn log(user: &User, project: &str, input: HourInput) -> Result<HourEntry, Status> {
    let request = LogHoursRequest { project_id: project.to_owned(), entry: Some(input) };
    Ok(user.hours().log_hours(user.request(request)).await?.into_inner().data.unwrap())
}

async fn submit(user: &User, ids: &[&str]) -> Result<Vec<HourStatus>, Status> {
    let ids = ids.iter().map(ToString::to_string).collect();
    let answer = user.hours().submit_hours(user.request(SubmitHoursRequest { ids })).await?;
    Ok(answer.into_inner().data.iter().map(HourEntry::status).collect())
}

async fn approve(user: &User, ids: &[&str]) -> Result<Vec<HourStatus>, Status> {
    let ids = ids.iter().map(ToString::to_string).collect();
    let answer = user.hours().approve_hours(user.request(ApproveHoursRequest { ids })).await?;
    Ok(answer.into_inner().data.iter().map(HourEntry::status).collect())
}

async fn reject(user: &User, ids: &[&str]) -> Result<Vec<String>, Status> {
    let ids = ids.iter().map(ToString::to_string).collect();
    let request = RejectHoursRequest { ids, reason: "too many".to_owned() };
    let answer = user.hours().reject_hours(user.request(request)).await?;
    Ok(answer.into_inner().data.into_iter().map(|entry| entry.meta.unwrap().reason).collect())
}

#[tokio::test]
async fn hours_of_a_project_are_listed_and_filtered() {
    let world = World::start().await;
    let user = world.user().await;
    let (project, other) = (id(&user.project("A").await), id(&user.project("B").await));
    let first = log(&user, &project, entry("2026-11-01", "1.5")).await.unwrap();
    log(&user, &project, HourInput { minutes: Some(20), ..entry("2026-11-02", "") }).await.unwrap();
    log(&user, &project, entry("", "24")).await.unwrap();
    log(&user, &other, entry("2026-11-01", "8")).await.unwrap();
    submit(&user, &[&first.id]).await.unwrap();
    let path = format!("/v1/projects/{project}/hours");
    let list = user.get(&path).await;
    assert_eq!(list["meta"], json!({"page": 1, "per_page": 25, "total": 3, "pages": 1}));
    let time = "2026-11-15T11:00:00.123Z";
    assert_eq!(
        list["data"][2],
        json!({
            "id": first.id, "date": "2026-11-01", "hours": 1.5, "minutes": 90, "status": "submitted",
            "activity_name": "Carpentry",
            "meta": {
                "project_id": project, "reason": "", "created_at": time, "updated_at": time, "version": 2,
            },
        })
    );
    assert_eq!(list["data"][1]["hours"].to_string(), "0.33");
    assert_eq!((&list["data"][0]["date"], &list["data"][0]["minutes"]), (&json!("2026-11-15"), &json!(1440)));
    for (query, total) in [
        ("from=2026-11-02", 2),
        ("to=2026-11-02", 2),
        ("from=2026-11-02&to=2026-11-02", 1),
        ("date_from=2026-11-02", 2),
        ("date_from=2026-11-02&date_to=2026-11-02", 1),
        ("from=2026-11-02&date_to=2026-11-01", 0),
        ("status=draft", 2),
        ("status=draft&date_to=2026-11-02", 1),
    ] {
        assert_eq!(user.total(&format!("{path}?{query}")).await, total, "{query}");
    }
    let refused = user.api.get(&format!("{path}?status=late&from=never")).await.expect(422);
    let mut faults = refused.faults();
    faults.sort();
    assert_eq!(faults, expected_faults(&[("from", "not_a_date"), ("status", "not_allowed")]));
    user.api.get("/v1/projects/nonsense/hours").await.expect(404);
    user.api.get(&format!("/v1/projects/{}/hours", world.clock.id())).await.expect(404);
}

#[tokio::test]
async fn hours_go_from_a_draft_to_an_approval_and_back_from_a_rejection() {
    let world = World::start().await;
    let user = world.user().await;
    let project = id(&user.project("A").await);
    let one = log(&user, &project, entry("", "1")).await.unwrap().id;
    let two = log(&user, &project, entry("", "2")).await.unwrap().id;
    assert_eq!(problem(&approve(&user, &[&one]).await.unwrap_err()), "wrong_status");
    assert_eq!(submit(&user, &[&two, &one]).await.unwrap(), [HourStatus::Submitted; 2]);
    assert_eq!(
        submit(&user, &[&two]).await.unwrap(),
        [HourStatus::Submitted],
        "a second time changes nothing"
    );
    assert_eq!(reject(&user, &[&two]).await.unwrap(), ["too many"]);
    let refused = approve(&user, &[&one, &two]).await.unwrap_err();
    assert_eq!(problem(&refused), "wrong_status", "all or none");
    let draft = format!("/v1/projects/{project}/hours?status=approved");
    assert_eq!(user.total(&draft).await, 0);
    assert_eq!(approve(&user, &[&one]).await.unwrap(), [HourStatus::Approved]);
    let reopened = user.request(ReopenHoursRequest { ids: vec![two.clone()] });
    let reopened = user.hours().reopen_hours(reopened).await.unwrap().into_inner().data;
    assert_eq!(reopened[0].status(), HourStatus::Draft);
    assert_eq!(reopened[0].meta.as_ref().unwrap().reason, "");
    let unknown = world.clock.id().to_string();
    let refused = submit(&user, &[&two, &unknown, "x"]).await.unwrap_err();
    assert_eq!(
        faults(&refused),
        expected_faults(&[("/ids/1", "unknown_reference"), ("/ids/2", "unknown_reference")])
    );
}

#[tokio::test]
async fn only_drafts_and_rejected_hours_can_be_changed_and_approved_ones_stay() {
    let world = World::start().await;
    let user = world.user().await;
    let project = id(&user.project("A").await);
    let one = log(&user, &project, entry("", "1")).await.unwrap().id;
    let change = async |hours: &str| {
        let request = UpdateHoursRequest { id: one.clone(), entry: Some(entry("2026-11-03", hours)) };
        let answer = user.hours().update_hours(user.request(request)).await?;
        let entry = answer.into_inner().data.unwrap();
        Ok::<_, Status>((entry.status(), entry.hours))
    };
    assert_eq!(change("3").await.unwrap(), (HourStatus::Draft, "3".to_owned()));
    submit(&user, &[&one]).await.unwrap();
    assert_eq!(problem(&change("4").await.unwrap_err()), "wrong_status");
    reject(&user, &[&one]).await.unwrap();
    assert_eq!(change("4").await.unwrap(), (HourStatus::Draft, "4".to_owned()));
    submit(&user, &[&one]).await.unwrap();
    approve(&user, &[&one]).await.unwrap();
    let remove = async |id: &str| {
        user.hours().delete_hours(user.request(DeleteHoursRequest { id: id.to_owned() })).await.map(drop)
    };
    assert_eq!(problem(&remove(&one).await.unwrap_err()), "wrong_status");
    let two = log(&user, &project, entry("", "2")).await.unwrap().id;
    remove(&two).await.unwrap();
    assert_eq!(remove(&two).await.unwrap_err().code(), tonic::Code::NotFound);
    assert_eq!(user.total(&format!("/v1/projects/{project}/hours")).await, 1);
}

#[tokio::test]
async fn hours_need_a_time_and_a_project_of_the_account() {
    let world = World::start().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let theirs = id(&stranger.project("Theirs").await);
    let refused = log(&user, &theirs, entry("2026-02-30", "25")).await.unwrap_err();
    let mut found = faults(&refused);
    found.sort();
    let expected = [
        ("/entry/date", "not_a_date"),
        ("/entry/hours", "out_of_range"),
        ("/project_id", "unknown_reference"),
    ];
    assert_eq!(found, expected_faults(&expected));
    let request = LogHoursRequest { project_id: String::new(), entry: None };
    let refused = user.hours().log_hours(user.request(request)).await.unwrap_err();
    assert_eq!(
        faults(&refused),
        expected_faults(&[("/entry", "required"), ("/entry/project_id", "required")])
    );
    let mine = log(&user, &id(&user.project("Mine").await), entry("", "1")).await.unwrap().id;
    assert_eq!(faults(&submit(&stranger, &[&mine]).await.unwrap_err())[0].1, "unknown_reference");
}
