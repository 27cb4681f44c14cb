//! A service as a whole: what makes it up, its command line, and its life from start to stop.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use sqlx::migrate::Migrator;
use tokio::sync::watch;
use tonic::service::RoutesBuilder;

use crate::audit;
use crate::clock::Clock;
use crate::config::{Environment, PeerAddress, ServiceSettings, Settings, with_files};
use crate::connections;
use crate::db::{self, Db};
use crate::dead_letters;
use crate::doctor;
use crate::error::Error;
use crate::files::{self, Files};
use crate::idempotency;
use crate::mail::{self, AttachmentSource, Post};
use crate::outgoing::Outgoing;
use crate::peer::Peers;
use crate::provisioning;
use crate::references::{self, Referable, References};
use crate::relay;
use crate::scan::{self, Scan};
use crate::server::{self, Stage};
use crate::telemetry;
use crate::tls::Tls;
use crate::token::Tokens;
use crate::worker::Worker;
use crate::write::Tx;

/// What a service is made of. Implemented by a unit type of each service.
#[tonic::async_trait]
pub trait Service: Send + Sync + 'static {
    /// Its area: the name of its schema, and of itself among the peers.
    const NAME: &'static str;
    /// One line for `--help`.
    const ABOUT: &'static str;
    /// Whether it uses [`Runtime::files`].
    const KEEPS_FILES: bool = false;

    /// The migrations of its own tables; versions from 1001 on, below are the chassis'.
    fn migrations() -> &'static Migrator;

    /// Adds settings that only it has to its command line, whose values are in [`Runtime::options`], and subcommands,
    /// which [`Service::command`] runs.
    fn options(command: clap::Command) -> clap::Command {
        command
    }

    /// Whether it can work with these settings; if not, what to mend. Asked once, before anything else.
    fn check(_runtime: &Runtime) -> Result<(), String> {
        Ok(())
    }

    /// Adds its gRPC services.
    fn routes(runtime: &Runtime, routes: &mut RoutesBuilder);

    /// Its background work, besides what every service has (events, mail, forgetting idempotency keys).
    fn workers(_runtime: &Runtime) -> Vec<Worker> {
        Vec::new()
    }

    /// The events that it tells because time passes.
    fn scans(_runtime: &Runtime) -> Vec<Scan> {
        Vec::new()
    }

    /// What makes the attachments that its mails only name.
    fn attachments(_runtime: &Runtime) -> Option<Arc<dyn AttachmentSource>> {
        None
    }

    /// Serves what is not gRPC, if there is anything, until it is told to stop. An error ends the process.
    async fn serve_besides(_runtime: Runtime, _stop: watch::Receiver<Stage>) -> Result<(), String> {
        Ok(())
    }

    /// Its records that other services may refer to.
    fn referables() -> &'static [Referable] {
        &[]
    }

    /// Runs a subcommand that [`Service::options`] added. An error is told to the operator.
    async fn command(_runtime: &Runtime, name: &str, _arguments: &ArgMatches) -> Result<(), String> {
        Err(format!("there is no command {name}"))
    }

    /// Creates what every account starts with, if it is not there yet. Must be repeatable.
    async fn provision(_tx: &mut Tx<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// A service as values. What runs a service works with these, so that it is compiled once and not for every service.
#[derive(Clone, Copy)]
pub struct Definition {
    pub name: &'static str,
    pub about: &'static str,
    pub keeps_files: bool,
    pub migrations: &'static Migrator,
    pub options: fn(clap::Command) -> clap::Command,
    pub check: fn(&Runtime) -> Result<(), String>,
    pub routes: fn(&Runtime, &mut RoutesBuilder),
    pub workers: fn(&Runtime) -> Vec<Worker>,
    pub scans: fn(&Runtime) -> Vec<Scan>,
    pub attachments: fn(&Runtime) -> Option<Arc<dyn AttachmentSource>>,
    pub serve_besides: fn(Runtime, watch::Receiver<Stage>) -> Serving,
    pub referables: &'static [Referable],
    pub command: Run,
    pub provision: Provision,
}

/// What a service serves besides gRPC.
pub type Serving = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Runs a subcommand of the service's own.
pub type Run = for<'a> fn(&'a Runtime, &'a str, &'a ArgMatches) -> Ran<'a>;
pub type Ran<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// Creates what an account starts with.
pub type Provision = for<'a, 'b> fn(&'a mut Tx<'b>) -> Provisioned<'a>;
pub type Provisioned<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

impl Definition {
    pub fn of<S: Service>() -> Self {
        fn provision<'a, S: Service>(tx: &'a mut Tx<'_>) -> Provisioned<'a> {
            Box::pin(async move { S::provision(tx).await })
        }
        fn serve_besides<S: Service>(runtime: Runtime, stop: watch::Receiver<Stage>) -> Serving {
            S::serve_besides(runtime, stop)
        }
        fn command<'a, S: Service>(
            runtime: &'a Runtime,
            name: &'a str,
            arguments: &'a ArgMatches,
        ) -> Ran<'a> {
            Box::pin(async move { S::command(runtime, name, arguments).await })
        }
        Self {
            name: S::NAME,
            about: S::ABOUT,
            keeps_files: S::KEEPS_FILES,
            migrations: S::migrations(),
            options: S::options,
            check: S::check,
            routes: S::routes,
            workers: S::workers,
            scans: S::scans,
            attachments: S::attachments,
            serve_besides: serve_besides::<S>,
            referables: S::referables(),
            command: command::<S>,
            provision: provision::<S>,
        }
    }
}

/// What a running service works with.
#[derive(Clone)]
pub struct Runtime {
    /// The service's own.
    pub name: &'static str,
    pub db: Db,
    pub clock: Clock,
    pub tokens: Tokens,
    pub tls: Tls,
    pub peers: Peers,
    /// Those who listen to the service's events.
    pub listeners: Peers,
    /// Where its mail goes.
    pub post: Post,
    /// Where the gateway is reached from outside.
    pub public_url: String,
    pub files: Files,
    /// Where the process runs.
    pub environment: Environment,
    /// The command line as a whole, for the settings of [`Service::options`].
    pub options: Arc<ArgMatches>,
    shared: Shared,
}

/// What parts of a service have in common, one of each type.
type Shared = Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>;

impl Runtime {
    /// The one of its type that this process has; made when it is first asked for.
    pub fn shared<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let found = shared.get(&TypeId::of::<T>()).cloned().and_then(|found| found.downcast().ok());
        found.unwrap_or_else(|| {
            let first = make();
            shared.insert(TypeId::of::<T>(), Arc::clone(&first) as Arc<dyn Any + Send + Sync>);
            first
        })
    }

    /// Must be called inside the async runtime.
    pub fn new(
        name: &'static str,
        settings: &Settings,
        own: &ServiceSettings,
        options: ArgMatches,
        clock: Clock,
    ) -> Result<Self, String> {
        let db = Db::open(
            settings.database(),
            name,
            settings.database_pool,
            clock.clone(),
            own.listeners.clone(),
        )?;
        let tls = Tls::open(&settings.tls)?;
        let peers = Peers::new(&own.peers, &tls)?;
        let listeners = own.listeners.iter();
        let listeners =
            listeners.map(|listener| PeerAddress { name: listener.name.clone(), url: listener.url.clone() });
        let listeners = Peers::new(&listeners.collect::<Vec<_>>(), &tls)?;
        let (tokens, post) =
            (Tokens::new(&settings.context_secret).of(name), Post::new(own, settings.environment)?);
        let files = Files::new(name, own)?;
        let public_url = own.public_url.clone();
        let options = Arc::new(options);
        Ok(Self {
            name,
            db,
            clock,
            tokens,
            tls,
            peers,
            listeners,
            post,
            public_url,
            files,
            environment: settings.environment,
            options,
            shared: Shared::default(),
        })
    }

    /// What calls to other services are made with.
    pub fn outgoing(&self) -> Outgoing {
        Outgoing {
            caller: self.name,
            peers: self.peers.clone(),
            tokens: self.tokens.clone(),
            clock: self.clock.clone(),
        }
    }

    /// What looks up references to records of other services.
    pub fn references(&self) -> References {
        References { outgoing: self.outgoing() }
    }
}

#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    own: ServiceSettings,
}

#[derive(Clone, Copy, Subcommand)]
enum Command {
    /// Serve until told to stop (the default)
    Serve,
    /// Bring the database schema up to date and exit
    Migrate,
    /// Forget what is older than AUDIT_DAYS in the audit log and exit; for the owner of the schema, as the role that
    /// serves cannot
    PurgeAudit,
    /// Events and mails that could not be delivered
    DeadLetters {
        #[command(subcommand)]
        action: dead_letters::Action,
    },
}

/// The `main` of a service.
pub fn main<S: Service>() -> ExitCode {
    run_command_line(Definition::of::<S>())
}

fn run_command_line(service: Definition) -> ExitCode {
    let command = (service.options)(Cli::command().name(concat_name(service.name)).about(service.about));
    let command = match with_files(command) {
        Ok(command) => command,
        Err(message) => return fail(service.name, &message),
    };
    let options = command.get_matches();
    if options.subcommand_name().is_some_and(|name| !Command::has_subcommand(name)) {
        return run_own_command(service, options);
    }
    let cli = match Cli::from_arg_matches(&options) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    run(service.name, &cli.settings.clone(), async move {
        match cli.command.unwrap_or(Command::Serve) {
            Command::Migrate => migrate(&cli.settings, service.name, service.migrations).await,
            Command::PurgeAudit => purge_audit(&cli.settings, service.name).await,
            Command::Serve => serve(service, &cli.settings, &cli.own, options).await,
            Command::DeadLetters { action } => {
                let runtime = Runtime::new(service.name, &cli.settings, &cli.own, options, Clock::system())?;
                dead_letters::command(&runtime.db, action).await.map_err(|error| chain(&error))
            }
        }
    })
}

/// A subcommand of the service's own, with the settings that every command has.
fn run_own_command(service: Definition, options: ArgMatches) -> ExitCode {
    let settings = Settings::from_arg_matches(&options);
    let (settings, own) = match settings.and_then(|s| Ok((s, ServiceSettings::from_arg_matches(&options)?))) {
        Ok(settings) => settings,
        Err(error) => error.exit(),
    };
    run(service.name, &settings.clone(), async move {
        let Some((name, arguments)) = options.subcommand() else { return Ok(()) };
        let (name, arguments) = (name.to_owned(), arguments.clone());
        let runtime = Runtime::new(service.name, &settings, &own, options, Clock::system())?;
        (service.command)(&runtime, &name, &arguments).await
    })
}

fn concat_name(name: &str) -> &'static str {
    format!("svc-{name}").leak()
}

/// Runs a process' work in an async runtime with telemetry set up; a failure is told on stderr.
pub fn run(
    name: &'static str,
    settings: &Settings,
    work: impl Future<Output = Result<(), String>>,
) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{name}: the async runtime cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let outcome = runtime.block_on(async {
        telemetry::init(name, settings)?;
        let outcome = work.await;
        telemetry::flush();
        outcome
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(name, &message),
    }
}

/// Tells the operator why the process ends.
pub fn fail(name: &str, message: &str) -> ExitCode {
    eprintln!("{name}: {message}");
    ExitCode::FAILURE
}

/// Brings a schema up to date, and tells the operator how that went.
pub async fn migrate(settings: &Settings, schema: &'static str, own: &Migrator) -> Result<(), String> {
    db::migrate(&settings.database_url, schema, own)
        .await
        .map_err(|error| format!("the schema {schema} could not be brought up to date: {}", chain(&error)))?;
    tracing::info!(schema, "schema is up to date");
    Ok(())
}

/// Forgets old entries of the audit log, and tells the operator how that went.
pub async fn purge_audit(settings: &Settings, schema: &'static str) -> Result<(), String> {
    let (url, days, now) = (&settings.database_url, settings.audit_days, Clock::system().now());
    let purged = audit::purge(url, schema, days, now)
        .await
        .map_err(|error| format!("the audit log of {schema} could not be purged: {}", chain(&error)))?;
    tracing::info!(schema, days, purged, "old entries of the audit log are forgotten");
    Ok(())
}

async fn serve(
    service: Definition,
    settings: &Settings,
    own: &ServiceSettings,
    options: ArgMatches,
) -> Result<(), String> {
    settings.check()?;
    connections::raise_file_limit();
    let runtime = Runtime::new(service.name, settings, own, options, Clock::system())?;
    (service.check)(&runtime)?;
    runtime.db.check().await?;
    server::serve(service, runtime, settings, server::stop_signal()?).await
}

/// An error with everything that caused it, for the operator.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// The routes of a service together with what every service has.
pub(crate) fn routes(service: Definition, runtime: &Runtime) -> RoutesBuilder {
    let mut routes = RoutesBuilder::default();
    routes.add_service(provisioning::server(service.provision, runtime.db.clone()));
    routes.add_service(mail::key_server(runtime.db.clone()));
    routes.add_service(audit::server(runtime.db.clone()));
    routes.add_service(references::server(service.referables, runtime.db.clone()));
    let scans = (service.scans)(runtime);
    if !scans.is_empty() {
        routes.add_service(scan::server(scans, runtime.db.clone()));
    }
    routes.add_service(doctor::server(service, runtime.clone()));
    (service.routes)(runtime, &mut routes);
    routes
}

/// The background work of a service together with what every service has.
pub(crate) fn workers(service: Definition, runtime: &Runtime) -> Vec<Worker> {
    let relays = runtime.listeners.iter();
    let relays = relays.map(|listener| relay::worker(service.name, listener.clone(), runtime.tokens.clone()));
    let mut workers: Vec<Worker> = relays.collect();
    workers.push(mail::worker(runtime.post.clone(), (service.attachments)(runtime)));
    workers.push(mail::purge_worker());
    workers.push(idempotency::worker());
    if service.keeps_files {
        workers.push(files::worker(runtime.files.clone()));
    }
    let scans = (service.scans)(runtime);
    if !scans.is_empty() {
        workers.push(scan::worker(scans));
    }
    workers.extend((service.workers)(runtime));
    workers
}
