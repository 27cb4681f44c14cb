//! Projects, hours, tasks, notes and files.

mod error;
mod file;
mod followup;
mod heard;
mod hour;
mod note;
mod project;
mod refer;
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

use crate::file::Addresses;

pub use error::Error;

/// Files on their way in and out at the same time, each up to 16 MiB.
const FILES_AT_ONCE: usize = 32;

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
        let files = || runtime.files.clone();
        let (references, outgoing) = (runtime.references(), runtime.outgoing());
        let addresses = Addresses::new(runtime.tokens.clone(), &runtime.public_url);
        let room = Arc::new(Semaphore::new(FILES_AT_ONCE));
        let projects = project::rpc::Projects { db: db(), references: references.clone(), outgoing };
        let (addresses_of, room_of) = (addresses.clone(), Arc::clone(&room));
        let listed = file::rpc::FilesRpc { db: db(), files: files(), addresses: addresses_of, room: room_of };
        let downloads = file::download::Downloads { db: db(), files: files(), addresses, room };
        routes
            .add_service(EventListenerServiceServer::new(heard::Heard { db: db() }))
            .add_service(ProjectServiceServer::new(projects))
            .add_service(HourServiceServer::new(hour::rpc::Hours { db: db() }))
            .add_service(TaskServiceServer::new(task::rpc::Tasks {
                db: db(),
                references: references.clone(),
            }))
            .add_service(NoteServiceServer::new(note::rpc::Notes { db: db(), references }))
            .add_service(FileServiceServer::new(listed))
            .add_service(FileDownloadServiceServer::new(downloads));
    }

    fn workers(runtime: &Runtime) -> Vec<Worker> {
        vec![file::removal::worker(runtime.files.clone())]
    }

    fn scans(runtime: &Runtime) -> Vec<Scan> {
        followup::scans(runtime)
    }

    fn referables() -> &'static [Referable] {
        &[Referable { kind: "project", table: "work.project", condition: "true" }]
    }
}
