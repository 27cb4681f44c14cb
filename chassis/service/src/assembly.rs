//! The routes and the background work of a service, combined with those that every service has.

use std::sync::Arc;

use chassis_data::{Db, log, references};
use chassis_work::worker::recovery_worker;
use chassis_work::{Files, Worker, files, idempotency, mail, relay, scan, snapshot};
use tokio::sync::watch;
use tonic::service::RoutesBuilder;

use crate::config::ServiceSettings;
use crate::doctor::{self, Subject};
use crate::provisioning;
use crate::runtime::Runtime;
use crate::server::Parts;
use crate::service::Service;
use crate::stage::Stage;

/// Everything that the process of a service runs.
pub fn assemble<S: Service>(service: Arc<S>, runtime: &Runtime, stop: watch::Receiver<Stage>) -> Parts {
    tokio::spawn(end_waiting(runtime.db.clone(), stop.clone()));
    Parts {
        routes: routes(&service, runtime),
        workers: workers(&service, runtime),
        besides: service.serve_besides(stop),
    }
}

/// Where a service keeps its files. Programs of the others are smaller without what opens a bucket.
pub fn open_files<S: Service>(settings: &ServiceSettings) -> Result<Option<Files>, String> {
    if S::KEEPS_FILES { Files::new(S::NAME, &settings.files).map(Some) } else { Ok(None) }
}

/// Ends streams that wait for changes of the log when the process begins to stop: they would hold it up.
async fn end_waiting(db: Db, mut stop: watch::Receiver<Stage>) {
    if stop.wait_for(|stage| *stage != Stage::Running).await.is_ok() {
        db.stop_waiting();
    }
}

/// The routes of a service and those that every service has.
pub fn routes<S: Service>(service: &Arc<S>, runtime: &Runtime) -> RoutesBuilder {
    let mut routes = RoutesBuilder::default();
    let db = || runtime.db.clone();
    runtime.db.keep_records(service.records());
    routes.add_service(provisioning::server(Arc::clone(service), db()));
    routes.add_service(mail::key_server(db()));
    routes.add_service(log::audit_server(db()));
    routes.add_service(log::server(db(), service.records()));
    routes.add_service(references::server(S::referables(), S::referrers(), db()));
    let scans = service.scans();
    if !scans.is_empty() {
        routes.add_service(scan::server(scans, db()));
    }
    routes.add_service(doctor::server(Subject { migrations: S::migrations(), runtime: runtime.clone() }));
    service.routes(&mut routes);
    routes
}

/// The workers of a service and those that every service has.
pub fn workers<S: Service>(service: &Arc<S>, runtime: &Runtime) -> Vec<Worker> {
    let relays = runtime.db.listeners().iter().filter_map(|listener| {
        let peer = runtime.listeners.get(&listener.name)?;
        Some(relay::worker(S::NAME, listener.clone(), peer.clone(), runtime.tokens.clone()))
    });
    let mut workers: Vec<Worker> = relays.collect();
    workers.push(recovery_worker());
    workers.push(snapshot::worker(service.records()));
    let files = mail::AccountFiles::new(runtime.outgoing());
    let (source, observer) = (service.attachments(), service.delivery_observer());
    workers.push(mail::worker(runtime.mailer.clone(), files, source, observer));
    workers.push(mail::purge_worker());
    workers.push(idempotency::worker());
    workers.extend(runtime.files.clone().map(files::worker));
    let scans = service.scans();
    if !scans.is_empty() {
        workers.push(scan::worker(scans));
    }
    workers.extend(service.workers());
    workers
}
