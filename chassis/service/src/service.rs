//! The trait that a service implements.

use std::sync::Arc;

use chassis_base::Error;
use chassis_data::Tx;
use chassis_data::log::snapshot::SharedRecords;
use chassis_data::references::{Referable, Referrer};
use chassis_work::Worker;
use chassis_work::mail::{AttachmentSource, DeliveryObserver};
use chassis_work::scan::Scan;
use clap::ArgMatches;
use sqlx::migrate::Migrator;
use tokio::sync::watch;
use tonic::service::RoutesBuilder;

use crate::runtime::Runtime;
use crate::stage::Stage;

/// A service. A process has one value of it, which holds everything that its parts share.
#[tonic::async_trait]
pub trait Service: Sized + Send + Sync + 'static {
    /// The name of its area, of its schema, and of the service among the peers.
    const NAME: &'static str;
    /// One line for `--help`.
    const ABOUT: &'static str;
    /// Whether it uses [`Runtime::files`].
    const KEEPS_FILES: bool = false;

    /// Creates the service, once, before anything is served. An error says which setting to correct.
    async fn new(runtime: &Runtime) -> Result<Self, String>;

    /// The migrations of its own tables, with versions from 1001; the chassis uses those below.
    fn migrations() -> &'static Migrator;

    /// The kinds of its records that other services may refer to.
    fn referables() -> &'static [Referable] {
        &[]
    }

    /// The kinds of its records that refer to those of other services.
    fn referrers() -> &'static [Referrer] {
        &[]
    }

    /// Adds its own settings to the command line, with their values in [`Runtime::options`], and subcommands, which
    /// [`Service::command`] runs.
    fn options(command: clap::Command) -> clap::Command {
        command
    }

    /// Runs a subcommand that [`Service::options`] added, without serving. An error is printed on stderr.
    async fn command(_runtime: &Runtime, name: &str, _arguments: &ArgMatches) -> Result<(), String> {
        Err(format!("there is no command {name}"))
    }

    /// Adds its gRPC services.
    fn routes(self: &Arc<Self>, routes: &mut RoutesBuilder);

    /// Its background work, besides that of every service (events, mail, deletion of old idempotency keys).
    fn workers(self: &Arc<Self>) -> Vec<Worker> {
        Vec::new()
    }

    /// Its records, as the change feed shows them.
    fn records(self: &Arc<Self>) -> SharedRecords {
        SharedRecords::none()
    }

    /// The events that it emits because time passes.
    fn scans(self: &Arc<Self>) -> Vec<Scan> {
        Vec::new()
    }

    /// The source of the attachments that its mails refer to.
    fn attachments(self: &Arc<Self>) -> Option<Arc<dyn AttachmentSource>> {
        None
    }

    /// Who is told of attempts to deliver its mails.
    fn delivery_observer(self: &Arc<Self>) -> Option<Arc<dyn DeliveryObserver>> {
        None
    }

    /// Serves protocols other than gRPC, if any, until `_stop` changes. An error ends the process.
    async fn serve_besides(self: Arc<Self>, _stop: watch::Receiver<Stage>) -> Result<(), String> {
        Ok(())
    }

    /// Creates the defaults of an account that do not exist yet. Must be repeatable.
    async fn provision(&self, _tx: &mut Tx<'_>) -> Result<(), Error> {
        Ok(())
    }
}
