//! A change raises the version of its record by one, and the log has the record exactly as it is shown.

use std::fmt::Debug;

use chrono::TimeDelta;
use prost::Message;
use proto::work::{
    File, GetFileRequest, GetProjectRequest, GetTaskRequest, HourEntry, HourInput, ListNotesRequest,
    ListProjectHoursRequest, LogHoursRequest, Note, Project, RejectHoursRequest, SubmitHoursRequest, Task,
    UpdateHoursRequest,
};
use serde_json::json;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::event_listener::{about, deliver, deliver_one, stored};
use crate::support::{User, id};
use crate::world::World;

/// What the log has of a record.
struct Logged<'a> {
    world: &'a World,
    user: &'a User,
    kind: &'static str,
    id: String,
}

impl Logged<'_> {
    /// The record after its last change; `None` when it was removed.
    async fn last(&self) -> (i64, Option<Vec<u8>>) {
        let entries: Vec<(i64, Option<Vec<u8>>)> = sqlx::query_as(
            "select version, image from work.log where account_id = $1 and kind = $2 and record_id = $3
                and change is not null order by version",
        )
        .bind(self.user.account.id)
        .bind(self.kind)
        .bind(&self.id)
        .fetch_all(&mut self.world.database.connect().await)
        .await
        .unwrap();
        let versions: Vec<i64> = entries.iter().map(|(version, _)| *version).collect();
        assert_eq!(versions, (1..).take(entries.len()).collect::<Vec<_>>(), "one entry for each change");
        entries.into_iter().next_back().unwrap()
    }

    /// Checks that the last change was to this version, and that the log has what is shown, byte by byte.
    async fn is(&self, version: i64, shown: &(impl Message + Debug)) {
        assert_eq!(self.last().await, (version, Some(shown.encode_to_vec())), "{shown:?}");
        self.world.clock.advance(TimeDelta::seconds(1));
    }
}

async fn task(user: &User, id: &str) -> Task {
    let request = user.request(GetTaskRequest { id: id.to_owned() });
    user.tasks().get_task(request).await.unwrap().into_inner().data.unwrap()
}

async fn project(user: &User, id: &str) -> Project {
    let request = user.request(GetProjectRequest { id: id.to_owned() });
    user.projects().get_project(request).await.unwrap().into_inner().data.unwrap()
}

async fn file(user: &User, id: &str) -> File {
    let request = user.request(GetFileRequest { id: id.to_owned() });
    user.files().get_file(request).await.unwrap().into_inner().data.unwrap()
}

/// The only note of the account.
async fn note(user: &User) -> Note {
    let request = user.request(ListNotesRequest::default());
    user.notes().list_notes(request).await.unwrap().into_inner().data.pop().unwrap()
}

/// The hours of a project, the oldest first.
async fn hours(user: &User, project: &str) -> Vec<HourEntry> {
    let request = user
        .request(ListProjectHoursRequest { id: project.to_owned(), ..ListProjectHoursRequest::default() });
    let mut hours = user.hours().list_project_hours(request).await.unwrap().into_inner().data;
    hours.reverse();
    hours
}

/// Gives a record a reference, as if it had been created with it.
async fn refer(world: &World, table: &str, column: &str, record: &str, to: Uuid) {
    let sql = format!("update work.{table} set {column} = $2 where id = $1");
    sqlx::query(AssertSqlSafe(sql))
        .bind(Uuid::parse_str(record).unwrap())
        .bind(to)
        .execute(&mut world.database.connect().await)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_task_counts_its_changes() {
    let world = World::start().await;
    let user = world.user().await;
    let project = id(&user.project("P").await);
    let body = json!({
        "title": "T", "notes": "N", "deadline": "2026-11-20T10:00:00.5+01:00", "project_id": project,
    });
    let created = user.create("tasks", body).await;
    let id = id(&created);
    let logged = Logged { world: &world, user: &user, kind: "task", id: id.clone() };
    assert_eq!(created["version"], 1);
    logged.is(1, &task(&user, &id).await).await;
    let path = format!("/v1/tasks/{id}");
    for (version, body) in [
        (1, json!({"title": "T"})),
        (2, json!({"title": "U", "deadline": "2026-12-01"})),
        (2, json!({"title": "U", "deadline": "2026-12-01"})),
        (3, json!({"notes": ""})),
    ] {
        assert_eq!(user.api.patch(&path, body).await.expect(200).at("/data/version"), version);
        logged.is(version, &task(&user, &id).await).await;
    }
    for (version, action) in [(3, "reopen"), (4, "complete"), (4, "complete"), (5, "reopen")] {
        let answer = user.api.post(&format!("{path}/{action}"), json!({})).await.expect(200);
        assert_eq!(answer.at("/data/version"), version);
        logged.is(version, &task(&user, &id).await).await;
    }
    user.delete(&path).await.expect(204);
    assert_eq!(logged.last().await, (6, None));
}

#[tokio::test]
async fn a_project_counts_its_changes() {
    let world = World::start().await;
    let user = world.user().await;
    let created = user.create("projects", json!({"name": "A", "budget": 5})).await;
    let id = id(&created);
    let logged = Logged { world: &world, user: &user, kind: "project", id: id.clone() };
    assert_eq!(created["meta"]["version"], 1);
    logged.is(1, &project(&user, &id).await).await;
    let path = format!("/v1/projects/{id}");
    for (version, body) in [
        (1, json!({"name": "A", "budget": "5.00"})),
        (2, json!({"name": "B"})),
        (3, json!({"status": "completed", "end_date": "2026-12-01"})),
        (3, json!({"status": "completed"})),
    ] {
        assert_eq!(user.api.patch(&path, body).await.expect(200).at("/data/meta/version"), version);
        logged.is(version, &project(&user, &id).await).await;
    }
}

#[tokio::test]
async fn a_note_counts_its_changes() {
    let world = World::start().await;
    let user = world.user().await;
    let created = user.create("notes", json!({"body": "A"})).await;
    let id = id(&created);
    let logged = Logged { world: &world, user: &user, kind: "note", id: id.clone() };
    assert_eq!(created["version"], 1);
    logged.is(1, &note(&user).await).await;
    let path = format!("/v1/notes/{id}");
    for (version, body) in [(1, "A"), (2, "B"), (2, "B"), (3, "A")] {
        let answer = user.api.patch(&path, json!({"body": body})).await.expect(200);
        assert_eq!(answer.at("/data/meta/version"), version);
        logged.is(version, &note(&user).await).await;
    }
    user.delete(&path).await.expect(204);
    assert_eq!(logged.last().await, (4, None));
}

#[tokio::test]
async fn each_entry_of_hours_counts_its_own_changes() {
    let world = World::start().await;
    let user = world.user().await;
    let project_id = id(&user.project("P").await);
    let entry = |hours: &str| Some(HourInput { hours: hours.to_owned(), ..HourInput::default() });
    let mut ids = Vec::new();
    for time in ["1.50", "2"] {
        let request = LogHoursRequest { project_id: project_id.clone(), entry: entry(time) };
        let made = user.hours().log_hours(user.request(request)).await.unwrap().into_inner().data.unwrap();
        ids.push(made.id);
    }
    let logged = |id: &String| Logged { world: &world, user: &user, kind: "hour_entry", id: id.clone() };
    let (one, two) = (logged(&ids[0]), logged(&ids[1]));
    let are = async |versions: [i64; 2]| {
        let shown = hours(&user, &project_id).await;
        one.is(versions[0], &shown[0]).await;
        two.is(versions[1], &shown[1]).await;
        let counted = shown.into_iter().map(|entry| entry.meta.unwrap().version);
        assert_eq!(counted.collect::<Vec<_>>(), versions);
    };
    are([1, 1]).await;
    let submit = async |ids: &[String]| {
        user.hours().submit_hours(user.request(SubmitHoursRequest { ids: ids.to_vec() })).await.unwrap();
    };
    submit(&ids[..1]).await;
    are([2, 1]).await;
    submit(&ids).await;
    are([2, 2]).await;
    submit(&ids).await;
    are([2, 2]).await;
    let reject = RejectHoursRequest { ids: ids.clone(), reason: "too many".to_owned() };
    user.hours().reject_hours(user.request(reject)).await.unwrap();
    are([3, 3]).await;
    let change = async |time: &str| {
        let request = UpdateHoursRequest { id: ids[0].clone(), entry: entry(time) };
        user.hours().update_hours(user.request(request)).await.unwrap();
    };
    change("1.5").await;
    are([4, 3]).await;
    change("1.50").await;
    are([4, 3]).await;
}

#[tokio::test]
async fn a_file_is_logged_with_the_link_that_is_shown() {
    let world = World::start().await;
    let user = world.user().await;
    let uploaded = user.upload("a.txt", "", b"x").await.id;
    let external = stored(&world, "support/attachments/0a");
    deliver_one(&world, &user, &external).await;
    for id in [uploaded, id(&external)] {
        let shown = file(&user, &id).await;
        let meta = shown.meta.clone().unwrap();
        assert_eq!((meta.version, meta.updated_at), (1, shown.created_at));
        let logged = Logged { world: &world, user: &user, kind: "file", id };
        assert_eq!(logged.last().await, (1, Some(shown.encode_to_vec())));
    }
    deliver_one(&world, &user, &external).await;
    let logged = Logged { world: &world, user: &user, kind: "file", id: id(&external) };
    user.delete(&format!("/v1/files/{}", logged.id)).await.expect(204);
    assert_eq!(logged.last().await, (2, None));
}

#[tokio::test]
async fn a_file_of_the_release_before_was_last_changed_when_it_was_created() {
    let world = World::start().await;
    let user = world.user().await;
    let id = world.clock.id();
    sqlx::query(
        "insert into work.file (account_id, id, name, content_type, size, key, source_type, created_at)
         values ($1, $2, 'a', 'text/plain', 1, 'support/attachments/0a', 'ticket_message', $3)",
    )
    .bind(user.account.id)
    .bind(id)
    .bind(world.clock.now() - TimeDelta::days(1))
    .execute(&mut world.database.connect().await)
    .await
    .unwrap();
    let shown = file(&user, &id.to_string()).await;
    let meta = shown.meta.unwrap();
    assert_eq!((meta.version, meta.updated_at), (1, shown.created_at));
}

#[tokio::test]
async fn the_loss_of_references_to_deleted_records_is_one_change() {
    let world = World::start().await;
    let user = world.user().await;
    let (deal, invoice, quote) = (world.clock.id(), world.clock.id(), world.clock.id());
    let logged =
        |kind: &'static str, id: &String| Logged { world: &world, user: &user, kind, id: id.clone() };
    let task_id = id(&user.create("tasks", json!({"title": "T", "notes": "N"})).await);
    let note_id = id(&user.create("notes", json!({"body": "N"})).await);
    let project_id = id(&user.project("P").await);
    refer(&world, "task", "deal_id", &task_id, deal).await;
    refer(&world, "note", "deal_id", &note_id, deal).await;
    refer(&world, "note", "invoice_id", &note_id, invoice).await;
    refer(&world, "project", "quote_id", &project_id, quote).await;
    world.clock.advance(TimeDelta::seconds(1));
    // The second time has no effect.
    for _ in 0..2 {
        let deleted = [("deal.deleted", deal), ("invoice.deleted", invoice), ("quote.deleted", quote)];
        let events = deleted.map(|(kind, id)| about(&world, &user, kind, &id.to_string()));
        deliver(&world, &user, events.to_vec()).await.unwrap();
        logged("task", &task_id).is(2, &task(&user, &task_id).await).await;
        logged("note", &note_id).is(2, &note(&user).await).await;
        logged("project", &project_id).is(2, &project(&user, &project_id).await).await;
    }
    let (task, note) = (task(&user, &task_id).await.meta.unwrap(), note(&user).await.meta.unwrap());
    assert_eq!((task.deal_id, note.deal_id, note.invoice_id), (None, None, None));
}
