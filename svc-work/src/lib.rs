//! Projects, hours, tasks, notes and files.

mod error;
mod event_listener;
mod file;
mod filter;
mod followup;
mod hour;
mod note;
mod project;
mod references;
mod task;

use std::sync::Arc;

use chassis::references::Referable;
use chassis::scan::Scan;
use chassis::{Runtime, Service, Worker};
use proto::api::event_listener_service_server::EventListenerServiceServer;
use proto::work::file_download_service_server::FileDownloadServiceServer;
use proto::work::file_service_server::FileServiceServer;
use proto::work::hour_service_server::HourServiceServer;
use proto::work::note_service_server::NoteServiceServer;
use proto::work::project_service_server::ProjectServiceServer;
use proto::work::task_service_server::TaskServiceServer;
use sqlx::migrate::Migrator;
use tokio::sync::Semaphore;
use tonic::service::RoutesBuilder;

use crate::file::DownloadLinks;

pub use error::Error;

/// How many files are in memory at the same time, each up to 16 MiB.
const MAX_FILES_IN_MEMORY: usize = 32;

pub struct Work;

#[tonic::async_trait]
impl Service for Work {
    const NAME: &'static str = "work";
    const ABOUT: &'static str = "Projects, hours, tasks, notes and files";
    const KEEPS_FILES: bool = true;

    fn migrations() -> &'static Migrator {
        static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");
        &MIGRATIONS
    }

    fn routes(runtime: &Runtime, routes: &mut RoutesBuilder) {
        let db = || runtime.db.clone();
        let references = runtime.references();
        let links = DownloadLinks::new(runtime.tokens.clone(), &runtime.public_url);
        // One limit for uploads and downloads together.
        let slots = Arc::new(Semaphore::new(MAX_FILES_IN_MEMORY));
        let projects =
            project::rpc::Projects { db: db(), references: references.clone(), outgoing: runtime.outgoing() };
        let files = file::rpc::FilesRpc {
            db: db(),
            files: runtime.files.clone(),
            links: links.clone(),
            slots: Arc::clone(&slots),
        };
        let downloads =
            file::rpc::download::Downloads { db: db(), files: runtime.files.clone(), links, slots };
        let tasks = task::rpc::Tasks { db: db(), references: references.clone() };
        routes
            .add_service(EventListenerServiceServer::new(event_listener::EventListener { db: db() }))
            .add_service(ProjectServiceServer::new(projects))
            .add_service(HourServiceServer::new(hour::rpc::Hours { db: db() }))
            .add_service(TaskServiceServer::new(tasks))
            .add_service(NoteServiceServer::new(note::rpc::Notes { db: db(), references }))
            .add_service(FileServiceServer::new(files))
            .add_service(FileDownloadServiceServer::new(downloads));
    }

    fn workers(runtime: &Runtime) -> Vec<Worker> {
        vec![file::worker::worker(runtime.files.clone())]
    }

    fn scans(runtime: &Runtime) -> Vec<Scan> {
        followup::scans::all(runtime)
    }

    fn referables() -> &'static [Referable] {
        &[Referable { kind: "project", table: "work.project", condition: "true" }]
    }
}
