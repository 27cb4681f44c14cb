//! Projects with hours in each status, tasks, notes and files. Hours and files are made over gRPC.

use std::collections::HashMap;

use chrono::NaiveDate;
use deploy_tools::mesh::{MeshCaller, service_error};
use proto::work::file_service_client::FileServiceClient;
use proto::work::hour_service_client::HourServiceClient;
use proto::work::project_service_client::ProjectServiceClient;
use proto::work::{
    ApproveHoursRequest, CreateProjectFromQuoteRequest, FileInput, HourInput, LogHoursRequest,
    RejectHoursRequest, SubmitHoursRequest, UploadFileRequest,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::api::{Api, text};
use crate::sales::day;

const DATA: &str = include_str!("work.json");
const SERVICE: &str = "work";

#[derive(Deserialize)]
pub(crate) struct Work {
    projects: Vec<Project>,
    tasks: Vec<Task>,
    notes: Vec<Note>,
    files: Vec<File>,
}

#[derive(Deserialize)]
struct Project {
    /// How tasks and notes name it.
    key: String,
    name: String,
    /// By its external id.
    client: String,
    status: String,
    /// In days from today.
    start: i64,
    end: Option<i64>,
    budget: Option<i64>,
    hours: Vec<Logged>,
}

#[derive(Deserialize)]
struct Logged {
    /// In days from today.
    day: i64,
    hours: String,
    activity: String,
    status: String,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct Task {
    title: String,
    category: String,
    /// In days from today.
    deadline: i64,
    minutes: Option<i64>,
    client: Option<String>,
    project: Option<String>,
    done: bool,
}

#[derive(Deserialize)]
struct Note {
    body: String,
    client: Option<String>,
    project: Option<String>,
    /// By its external id.
    invoice: Option<String>,
}

#[derive(Deserialize)]
struct File {
    name: String,
    content: String,
}

pub(crate) fn data() -> Result<Work, String> {
    serde_json::from_str(DATA).map_err(|fault| format!("work.json: {fault}"))
}

/// Where work is, and who may call it.
pub(crate) struct WorkService<'a> {
    channel: Channel,
    mesh: &'a MeshCaller,
}

impl<'a> WorkService<'a> {
    pub(crate) async fn open(url: &str, mesh: &'a MeshCaller) -> Result<Self, String> {
        Ok(Self { channel: mesh.connect(SERVICE, url).await?, mesh })
    }
}

/// The ids of what tasks and notes refer to.
struct Ids<'a> {
    /// By external id.
    clients: HashMap<String, String>,
    /// By key.
    projects: HashMap<&'a str, String>,
}

impl Work {
    /// Adds them to an account without notes: those are made last.
    pub(crate) async fn add(
        &self,
        api: &mut Api,
        service: &WorkService<'_>,
        today: NaiveDate,
    ) -> Result<(), String> {
        if api.total("/v1/notes?per_page=1").await? > 0 {
            return Ok(());
        }
        let mut ids = Ids { clients: clients(api).await?, projects: HashMap::new() };
        for project in &self.projects {
            ids.projects.insert(&project.key, project.add(api, &ids.clients, today).await?);
        }
        for project in &self.projects {
            let id = id_of(&ids.projects, &project.key)?;
            for (number, hours) in project.hours.iter().enumerate() {
                hours.add(service, id, &format!("seed-hours-{}-{number}", project.key), today).await?;
            }
        }
        convert_quote(api, service).await?;
        println!("{} projects with their hours, and one of a quote", self.projects.len());
        for (number, task) in self.tasks.iter().enumerate() {
            task.add(api, &format!("seed-task-{number}"), &ids, today).await?;
        }
        println!("{} tasks", self.tasks.len());
        for (number, file) in self.files.iter().enumerate() {
            file.add(service, &format!("seed-file-{number}")).await?;
        }
        println!("{} files, besides the PDFs", self.files.len());
        for (number, note) in self.notes.iter().enumerate() {
            note.add(api, &format!("seed-note-{number}"), &ids).await?;
        }
        println!("{} notes", self.notes.len());
        Ok(())
    }
}

impl Project {
    /// Makes it as planned and then changes its status, as it happens in life; returns its id.
    async fn add(
        &self,
        api: &mut Api,
        clients: &HashMap<String, String>,
        today: NaiveDate,
    ) -> Result<String, String> {
        let body = json!({
            "name": self.name,
            "client_id": id_of(clients, &self.client)?,
            "start_date": day(today, self.start),
            "end_date": self.end.map(|end| day(today, end)),
            "budget": self.budget,
        });
        let created = api.post("/v1/projects", &format!("seed-project-{}", self.key), &body).await?;
        let id = text(&created["data"], "id")?.to_owned();
        if self.status != "planned" {
            let key = format!("seed-project-{}-status", self.key);
            api.patch(&format!("/v1/projects/{id}"), &key, &json!({"status": self.status})).await?;
        }
        Ok(id)
    }
}

impl Logged {
    async fn add(
        &self,
        service: &WorkService<'_>,
        project: &str,
        key: &str,
        today: NaiveDate,
    ) -> Result<(), String> {
        let mut hours = HourServiceClient::new(service.channel.clone());
        let entry = HourInput {
            date: day(today, self.day),
            hours: self.hours.clone(),
            minutes: None,
            activity_name: self.activity.clone(),
            ..HourInput::default()
        };
        let request = LogHoursRequest { project_id: project.to_owned(), entry: Some(entry) };
        let logged =
            hours.log_hours(service.mesh.keyed(key, request)?).await.map_err(service_error(SERVICE))?;
        let ids: Vec<String> = logged.into_inner().data.into_iter().map(|entry| entry.id).collect();
        if self.status == "draft" {
            return Ok(());
        }
        let step = |name: &str| format!("{key}-{name}");
        let request = SubmitHoursRequest { ids: ids.clone() };
        let request = service.mesh.keyed(&step("submit"), request)?;
        hours.submit_hours(request).await.map_err(service_error(SERVICE))?;
        match self.status.as_str() {
            "approved" => {
                let request = service.mesh.keyed(&step("approve"), ApproveHoursRequest { ids })?;
                hours.approve_hours(request).await.map_err(service_error(SERVICE))?;
            }
            "rejected" => {
                let request = RejectHoursRequest { ids, reason: self.reason.clone() };
                let request = service.mesh.keyed(&step("reject"), request)?;
                hours.reject_hours(request).await.map_err(service_error(SERVICE))?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Task {
    async fn add(&self, api: &mut Api, key: &str, ids: &Ids<'_>, today: NaiveDate) -> Result<(), String> {
        let body = json!({
            "title": self.title,
            "category": self.category,
            "deadline": day(today, self.deadline),
            "duration_minutes": self.minutes,
            "client_id": self.client.as_deref().map(|name| id_of(&ids.clients, name)).transpose()?,
            "project_id": self.project.as_deref().map(|name| id_of(&ids.projects, name)).transpose()?,
        });
        let created = api.post("/v1/tasks", key, &body).await?;
        if self.done {
            let path = format!("/v1/tasks/{}/complete", text(&created["data"], "id")?);
            api.post(&path, &format!("{key}-done"), &json!({})).await?;
        }
        Ok(())
    }
}

impl Note {
    async fn add(&self, api: &mut Api, key: &str, ids: &Ids<'_>) -> Result<(), String> {
        let invoice = match &self.invoice {
            Some(name) => find(api, &format!("/v1/invoices?search={name}&per_page=1")).await?,
            None => None,
        };
        let body = json!({
            "body": self.body,
            "client_id": self.client.as_deref().map(|name| id_of(&ids.clients, name)).transpose()?,
            "project_id": self.project.as_deref().map(|name| id_of(&ids.projects, name)).transpose()?,
            "invoice_id": invoice,
        });
        api.post("/v1/notes", key, &body).await.map(drop)
    }
}

impl File {
    async fn add(&self, service: &WorkService<'_>, key: &str) -> Result<(), String> {
        let file = FileInput { name: self.name.clone(), content_type: String::new() };
        let part = UploadFileRequest { file: Some(file), data: self.content.clone().into() };
        let request = service.mesh.keyed(key, futures::stream::iter([part]))?;
        let mut files = FileServiceClient::new(service.channel.clone());
        files.upload_file(request).await.map(drop).map_err(service_error(SERVICE))
    }
}

/// Makes a project of the quote that was accepted, if there is one.
async fn convert_quote(api: &mut Api, service: &WorkService<'_>) -> Result<(), String> {
    let Some(quote_id) = find(api, "/v1/quotes?payment_status=accepted&per_page=1").await? else {
        return Ok(());
    };
    let request = service.mesh.request(CreateProjectFromQuoteRequest { quote_id })?;
    let mut projects = ProjectServiceClient::new(service.channel.clone());
    projects.create_project_from_quote(request).await.map(drop).map_err(service_error(SERVICE))
}

/// The id of the first entry of a list.
async fn find(api: &mut Api, target: &str) -> Result<Option<String>, String> {
    let found = api.get(target).await?;
    found["data"].get(0).map(|entry| text(entry, "id").map(str::to_owned)).transpose()
}

/// The ids of the clients by their external ids.
async fn clients(api: &mut Api) -> Result<HashMap<String, String>, String> {
    let found = api.get("/v1/clients?per_page=100").await?;
    let entries = found["data"].as_array().cloned().unwrap_or_default();
    let pair = |entry: &Value| {
        let name = entry["meta"]["external_id"].as_str()?.to_owned();
        Some((name, entry["id"].as_str()?.to_owned()))
    };
    Ok(entries.iter().filter_map(pair).collect())
}

fn id_of<'m, K>(ids: &'m HashMap<K, String>, name: &str) -> Result<&'m str, String>
where
    K: std::hash::Hash + Eq + std::borrow::Borrow<str>,
{
    let id = ids.get(name).map(String::as_str);
    id.ok_or_else(|| format!("work.json names {name}, which is not there"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn tasks_and_notes_name_what_is_there() {
        let (work, relations) = (data().unwrap(), crate::relations::data().unwrap());
        let clients: HashSet<&str> =
            relations.clients.iter().map(|client| text(client, "external_id").unwrap()).collect();
        let projects: HashSet<&str> = work.projects.iter().map(|project| project.key.as_str()).collect();
        assert_eq!(projects.len(), work.projects.len(), "keys differ");
        let tasks = work.tasks.iter().map(|task| (&task.client, &task.project));
        for (client, project) in tasks.chain(work.notes.iter().map(|note| (&note.client, &note.project))) {
            assert!(client.as_deref().is_none_or(|name| clients.contains(name)), "{client:?}");
            assert!(project.as_deref().is_none_or(|name| projects.contains(name)), "{project:?}");
        }
        for project in &work.projects {
            assert!(clients.contains(project.client.as_str()), "{}", project.client);
            assert!(project.end.is_none_or(|end| end >= project.start), "{}", project.key);
        }
    }

    #[test]
    fn there_are_hours_and_projects_of_every_status() {
        let work = data().unwrap();
        let statuses = |kind: &str| {
            let kind = proto::policy::pool().get_enum_by_name(kind).unwrap();
            let names = kind.values().filter(|value| value.number() != 0);
            names.map(|value| proto::value_name(&kind, value.name())).collect::<HashSet<_>>()
        };
        let projects: HashSet<String> = work.projects.iter().map(|project| project.status.clone()).collect();
        assert_eq!(projects, statuses("admin.work.v1.ProjectStatus"));
        let hours = work.projects.iter().flat_map(|project| &project.hours);
        let hours: HashSet<String> = hours.map(|hours| hours.status.clone()).collect();
        assert_eq!(hours, statuses("admin.work.v1.HourStatus"));
    }
}
