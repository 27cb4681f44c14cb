//! Projects, hours, tasks, notes and files.

mod error;
mod event_listener;
mod file;
mod followup;
mod hour;
mod note;
mod project;
mod records;
mod references;
mod task;

use std::sync::{Arc, LazyLock};

use chassis_data::Db;
use chassis_data::log::snapshot::SharedRecords;
use chassis_data::references::{Referable, Referrer};
use chassis_rpc::outgoing::Outgoing;
use chassis_rpc::references::References;
use chassis_service::{Runtime, Service};
use chassis_work::scan::Scan;
use chassis_work::{Files, Worker};
use proto::api::event_listener_service_server::EventListenerServiceServer;
use proto::work::file_download_service_server::FileDownloadServiceServer;
use proto::work::file_service_server::FileServiceServer;
use proto::work::hour_service_server::HourServiceServer;
use proto::work::note_service_server::NoteServiceServer;
use proto::work::project_service_server::ProjectServiceServer;
use proto::work::task_service_server::TaskServiceServer;
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;

use crate::file::DownloadLinks;
use crate::file::slots::FileSlots;

pub struct Work {
    db: Db,
    files: Files,
    links: DownloadLinks,
    /// One limit for uploads and downloads together.
    slots: Arc<FileSlots>,
    references: References,
    outgoing: Outgoing,
}

#[tonic::async_trait]
impl Service for Work {
    const NAME: &'static str = "work";
    const ABOUT: &'static str = "Projects, hours, tasks, notes and files";
    const KEEPS_FILES: bool = true;

    async fn new(runtime: &Runtime) -> Result<Self, String> {
        Ok(Self {
            db: runtime.db.clone(),
            files: runtime.files()?,
            links: DownloadLinks::new(runtime.tokens.clone(), &runtime.public_url),
            slots: Arc::new(FileSlots::new()),
            references: runtime.references(),
            outgoing: runtime.outgoing(),
        })
    }

    fn migrations() -> &'static Migrator {
        static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| chassis_derive::migrations!("migrations"));
        &MIGRATIONS
    }

    fn routes(self: &Arc<Self>, routes: &mut RoutesBuilder) {
        let db = || self.db.clone();
        let references = || self.references.clone();
        let projects =
            project::rpc::Projects { db: db(), references: references(), outgoing: self.outgoing.clone() };
        let files = file::rpc::FilesRpc {
            db: db(),
            files: self.files.clone(),
            links: self.links.clone(),
            slots: Arc::clone(&self.slots),
        };
        let downloads = file::rpc::download::Downloads {
            db: db(),
            files: self.files.clone(),
            links: self.links.clone(),
            slots: Arc::clone(&self.slots),
        };
        let listener = event_listener::EventListener { db: db(), links: self.links.clone() };
        routes
            .add_service(EventListenerServiceServer::new(listener))
            .add_service(ProjectServiceServer::new(projects))
            .add_service(HourServiceServer::new(hour::rpc::Hours { db: db() }))
            .add_service(TaskServiceServer::new(task::rpc::Tasks { db: db(), references: references() }))
            .add_service(NoteServiceServer::new(note::rpc::Notes { db: db(), references: references() }))
            .add_service(FileServiceServer::new(files))
            .add_service(FileDownloadServiceServer::new(downloads));
    }

    fn workers(self: &Arc<Self>) -> Vec<Worker> {
        vec![file::worker::worker(self.files.clone())]
    }

    fn records(self: &Arc<Self>) -> SharedRecords {
        let records = Arc::clone(self);
        SharedRecords::new(records)
    }

    fn scans(self: &Arc<Self>) -> Vec<Scan> {
        followup::scans::all(&self.references, &self.outgoing)
    }

    fn referables() -> &'static [Referable] {
        &[Referable { kind: "project", table: "work.project", condition: "true" }]
    }

    fn referrers() -> &'static [Referrer] {
        const fn record(kind: &'static str, table: &'static str) -> Referrer {
            let (condition, live) = ("true", "false");
            Referrer { kind, to: "client", table, id: "id", column: "client_id", condition, live }
        }
        const REFERRERS: &[Referrer] =
            &[record("project", "work.project"), record("task", "work.task"), record("note", "work.note")];
        REFERRERS
    }
}

/// The `main` of the program. It is here and not there, so that what it shares with the service is compiled once.
pub fn main() -> std::process::ExitCode {
    chassis_service::process::main::<Work>()
}
