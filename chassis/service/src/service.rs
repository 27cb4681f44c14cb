//! What a service is made of.

use std::sync::Arc;

use chassis_base::Error;
use chassis_data::Tx;
use chassis_data::references::Referable;
use chassis_work::Worker;
use chassis_work::mail::AttachmentSource;
use chassis_work::scan::Scan;
use clap::ArgMatches;
use sqlx::migrate::Migrator;
use tokio::sync::watch;
use tonic::service::RoutesBuilder;

use crate::runtime::Runtime;
use crate::stage::Stage;

/// A service. There is one value of it in a process, which has everything that its parts share.
#[tonic::async_trait]
pub trait Service: Sized + Send + Sync + 'static {
    /// Its area: the name of its schema, and of itself among the peers.
    const NAME: &'static str;
    /// One line for `--help`.
    const ABOUT: &'static str;
    /// Whether it uses [`Runtime::files`].
    const KEEPS_FILES: bool = false;

    /// Makes the service, once, before anything is served. An error says what to mend in its settings.
    async fn new(runtime: &Runtime) -> Result<Self, String>;

    /// The migrations of its own tables; versions from 1001 on, below are the chassis'.
    fn migrations() -> &'static Migrator;

    /// Its records that other services may refer to.
    fn referables() -> &'static [Referable] {
        &[]
    }

    /// Adds settings that only it has to its command line, whose values are in [`Runtime::options`], and subcommands,
    /// which [`Service::command`] runs.
    fn options(command: clap::Command) -> clap::Command {
        command
    }

    /// Runs a subcommand that [`Service::options`] added, without serving. An error is told to the operator.
    async fn command(_runtime: &Runtime, name: &str, _arguments: &ArgMatches) -> Result<(), String> {
        Err(format!("there is no command {name}"))
    }

    /// Adds its gRPC services.
    fn routes(self: &Arc<Self>, routes: &mut RoutesBuilder);

    /// Its background work, besides what every service has (events, mail, forgetting idempotency keys).
    fn workers(self: &Arc<Self>) -> Vec<Worker> {
        Vec::new()
    }

    /// The events that it tells because time passes.
    fn scans(self: &Arc<Self>) -> Vec<Scan> {
        Vec::new()
    }

    /// What makes the attachments that its mails only name.
    fn attachments(self: &Arc<Self>) -> Option<Arc<dyn AttachmentSource>> {
        None
    }

    /// Serves what is not gRPC, if there is anything, until it is told to stop. An error ends the process.
    async fn serve_besides(self: Arc<Self>, _stop: watch::Receiver<Stage>) -> Result<(), String> {
        Ok(())
    }

    /// Creates what every account starts with, if it is not there yet. Must be repeatable.
    async fn provision(&self, _tx: &mut Tx<'_>) -> Result<(), Error> {
        Ok(())
    }
}
