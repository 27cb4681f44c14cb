//! Diagnostics for operators: whether everything that a process needs exists and is configured correctly. A finding
//! says what was observed and, when it is not good, what to do. The checks change nothing, except for one file that is
//! written, read and deleted.

mod clock;
mod database;
mod finding;
mod surroundings;

use chassis_base::time::timestamp;
use chassis_rpc::call::Context;
use proto::api::doctor_service_server::{DoctorService, DoctorServiceServer};
use proto::api::{ExamineRequest, ExamineResponse};
use sqlx::migrate::Migrator;
use tonic::{Request, Response, Status};

use crate::runtime::Runtime;

pub use clock::{Span, assess};
pub use database::examine as examine_database;
pub use finding::{bad, doubtful, good};

/// The release of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The service that is examined.
pub(crate) struct Subject {
    pub migrations: &'static Migrator,
    pub runtime: Runtime,
}

pub(crate) fn server(subject: Subject) -> DoctorServiceServer<Doctor> {
    DoctorServiceServer::new(Doctor(subject))
}

pub(crate) struct Doctor(Subject);

#[tonic::async_trait]
impl DoctorService for Doctor {
    async fn examine(&self, request: Request<ExamineRequest>) -> Result<Response<ExamineResponse>, Status> {
        Context::take(request)?;
        let Subject { migrations, runtime } = &self.0;
        let program = format!("svc-{}", runtime.name);
        let (database, storage, mail, peers) = tokio::join!(
            examine_database(&runtime.db, &program, runtime.name, migrations),
            surroundings::storage(runtime.files.as_ref(), &runtime.clock),
            surroundings::mail(&runtime.mailer),
            surroundings::peers(runtime),
        );
        let findings = database.into_iter().chain(storage).chain([mail]).chain(peers).collect();
        let now = Some(timestamp(runtime.clock.now()));
        Ok(Response::new(ExamineResponse { version: VERSION.to_owned(), now, findings }))
    }
}
