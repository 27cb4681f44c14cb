//! The life of a process: its command line, its setup and its exit code.

use std::process::ExitCode;
use std::sync::Arc;

use chassis_base::Clock;
use chassis_base::error::chain;
use chassis_data::{log, migrations};
use chassis_work::{Files, dead_letters};
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use futures::future::BoxFuture;
use sqlx::migrate::Migrator;
use tokio::sync::watch;

use crate::config::{ServiceSettings, Settings, with_files};
use crate::runtime::Runtime;
use crate::server::Parts;
use crate::service::Service;
use crate::stage::Stage;
use crate::{assembly, connections, server, stage, telemetry};

#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten, next_help_heading = "Settings")]
    settings: Settings,
    #[command(flatten, next_help_heading = "Settings")]
    own: ServiceSettings,
}

#[derive(Clone, Copy, Subcommand)]
enum Command {
    /// Serve until stopped (the default)
    Serve,
    /// Bring the database schema up to date and exit
    Migrate,
    /// Forget what records looked like more than AUDIT_DAYS ago and exit; needs the owner of the schema, because the role
    /// that serves may not change the log
    #[command(alias = "purge-audit")]
    CompactLog,
    /// Events and mails that could not be delivered
    DeadLetters {
        #[command(subcommand)]
        action: dead_letters::Action,
    },
}

/// The `main` of a service.
pub fn main<S: Service>() -> ExitCode {
    Program::of::<S>().main()
}

/// What a process has to know of its service. Everything else is compiled once and not for every program.
#[derive(Clone, Copy)]
struct Program {
    name: &'static str,
    about: &'static str,
    options: fn(clap::Command) -> clap::Command,
    files: fn(&ServiceSettings) -> Result<Option<Files>, String>,
    migrations: fn() -> &'static Migrator,
    /// See [`Service::command`].
    command: for<'a> fn(&'a Runtime, &'a str, &'a ArgMatches) -> BoxFuture<'a, Result<(), String>>,
    /// See [`Service::new`].
    new: for<'a> fn(&'a Runtime) -> BoxFuture<'a, Result<Assemble, String>>,
}

/// Makes the parts of a service.
type Assemble = Box<dyn FnOnce(&Runtime, watch::Receiver<Stage>) -> Parts>;

impl Program {
    fn of<S: Service>() -> Self {
        Self {
            name: S::NAME,
            about: S::ABOUT,
            options: S::options,
            files: assembly::open_files::<S>,
            migrations: S::migrations,
            command: |runtime, name, arguments| S::command(runtime, name, arguments),
            new: |runtime| {
                Box::pin(async move {
                    let service = Arc::new(S::new(runtime).await?);
                    let assemble: Assemble =
                        Box::new(|runtime, stop| assembly::assemble(service, runtime, stop));
                    Ok(assemble)
                })
            },
        }
    }

    fn main(self) -> ExitCode {
        let command = (self.options)(Cli::command().name(concat_name(self.name)).about(self.about));
        let command = match with_files(command) {
            Ok(command) => command,
            Err(message) => return fail(self.name, &message),
        };
        let options = command.get_matches();
        if options.subcommand_name().is_some_and(|name| !Command::has_subcommand(name)) {
            return self.run_own_command(options);
        }
        let cli = match Cli::from_arg_matches(&options) {
            Ok(cli) => cli,
            Err(error) => error.exit(),
        };
        run(self.name, &cli.settings.clone(), async move {
            match cli.command.unwrap_or(Command::Serve) {
                Command::Migrate => migrate(&cli.settings, self.name, (self.migrations)()).await,
                Command::CompactLog => compact_log(&cli.settings, self.name).await,
                Command::Serve => self.serve(&cli.settings, &cli.own, options).await,
                Command::DeadLetters { action } => {
                    let runtime = self.runtime(&cli.settings, &cli.own, options)?;
                    dead_letters::command(&runtime.db, action).await.map_err(|error| chain(&error))
                }
            }
        })
    }

    /// A subcommand of the service's own, with the settings that every command has.
    fn run_own_command(self, options: ArgMatches) -> ExitCode {
        let settings = Settings::from_arg_matches(&options);
        let (settings, own) =
            match settings.and_then(|s| Ok((s, ServiceSettings::from_arg_matches(&options)?))) {
                Ok(settings) => settings,
                Err(error) => error.exit(),
            };
        run(self.name, &settings.clone(), async move {
            let Some((name, arguments)) = options.subcommand() else { return Ok(()) };
            let (name, arguments) = (name.to_owned(), arguments.clone());
            let runtime = self.runtime(&settings, &own, options)?;
            (self.command)(&runtime, &name, &arguments).await
        })
    }

    fn runtime(
        self,
        settings: &Settings,
        own: &ServiceSettings,
        options: ArgMatches,
    ) -> Result<Runtime, String> {
        Runtime::new(self.name, settings, own, options, Clock::system(), (self.files)(own)?)
    }

    async fn serve(
        self,
        settings: &Settings,
        own: &ServiceSettings,
        options: ArgMatches,
    ) -> Result<(), String> {
        settings.check()?;
        connections::raise_file_limit();
        let runtime = self.runtime(settings, own, options)?;
        let assemble = (self.new)(&runtime).await?;
        runtime.db.check().await?;
        let stop = stage::stop_signal()?;
        let parts = assemble(&runtime, stop.clone());
        server::serve(parts, runtime, settings, stop).await
    }
}

fn concat_name(name: &str) -> &'static str {
    format!("svc-{name}").leak()
}

/// Runs the work of a process in an async runtime with telemetry set up. A failure is printed on stderr.
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
        telemetry::init(name, &settings.telemetry)?;
        let outcome = work.await;
        telemetry::flush();
        outcome
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(name, &message),
    }
}

/// Prints why the process ends.
pub fn fail(name: &str, message: &str) -> ExitCode {
    eprintln!("{name}: {message}");
    ExitCode::FAILURE
}

/// Brings a schema up to date and logs the result.
pub async fn migrate(settings: &Settings, schema: &'static str, own: &Migrator) -> Result<(), String> {
    migrations::migrate(&settings.database.url, schema, own)
        .await
        .map_err(|error| format!("the schema {schema} could not be brought up to date: {}", chain(&error)))?;
    tracing::info!(schema, "schema is up to date");
    Ok(())
}

/// Forgets old images of the log and reports the result.
pub async fn compact_log(settings: &Settings, schema: &'static str) -> Result<(), String> {
    let (url, days, now) = (&settings.database.url, settings.audit_days, Clock::system().now());
    let log::Compacted { forgotten, moved } = log::compact(url, schema, days, now)
        .await
        .map_err(|error| format!("the log of {schema} could not be compacted: {}", chain(&error)))?;
    tracing::info!(schema, days, forgotten, moved, "log compacted");
    Ok(())
}
