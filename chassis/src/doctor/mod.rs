//! What an operator asks a process: is everything that it needs there, and as it should be? A finding says what was
//! seen, and one that is not good also what to do. Nothing here changes anything, except for a file that is written,
//! read and deleted again.

mod clock;
mod database;
mod surroundings;

use std::time::Duration;

use proto::api::doctor_service_server::{DoctorService, DoctorServiceServer};
use proto::api::{ExamineRequest, ExamineResponse, Finding, Outcome};
use tonic::{Request, Response, Status};

use crate::call::Context;
use crate::service::{Definition, Runtime};
use crate::time::timestamp;

pub use clock::{Span, against};
pub use database::examine as examine_database;

/// The release that this is.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// For each thing that is looked at.
const PATIENCE: Duration = Duration::from_secs(5);

pub fn good(name: &str, saw: impl Into<String>) -> Finding {
    finding(name, Outcome::Ok, saw.into(), "")
}

/// It works, but not as it should.
pub fn doubtful(name: &str, saw: impl Into<String>, advice: &str) -> Finding {
    finding(name, Outcome::Warning, saw.into(), advice)
}

pub fn bad(name: &str, saw: impl Into<String>, advice: &str) -> Finding {
    finding(name, Outcome::Failed, saw.into(), advice)
}

fn finding(name: &str, outcome: Outcome, saw: String, advice: &str) -> Finding {
    Finding { name: name.to_owned(), outcome: outcome.into(), saw, advice: advice.to_owned() }
}

pub(crate) fn server(service: Definition, runtime: Runtime) -> DoctorServiceServer<Doctor> {
    DoctorServiceServer::new(Doctor { service, runtime })
}

pub(crate) struct Doctor {
    service: Definition,
    runtime: Runtime,
}

#[tonic::async_trait]
impl DoctorService for Doctor {
    async fn examine(&self, request: Request<ExamineRequest>) -> Result<Response<ExamineResponse>, Status> {
        Context::take(request)?;
        let (service, runtime) = (&self.service, &self.runtime);
        let program = format!("svc-{}", service.name);
        let (database, storage, mail, peers) = tokio::join!(
            examine_database(&runtime.db, &program, service.name, service.migrations),
            surroundings::storage(service.keeps_files.then_some(&runtime.files), &runtime.clock),
            surroundings::mail(&runtime.post),
            surroundings::peers(runtime),
        );
        let findings = database.into_iter().chain(storage).chain([mail]).chain(peers).collect();
        let now = Some(timestamp(runtime.clock.now()));
        Ok(Response::new(ExamineResponse { version: VERSION.to_owned(), now, findings }))
    }
}
