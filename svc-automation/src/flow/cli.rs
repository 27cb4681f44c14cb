//! Flows on the command line, for operators: the same operations as over gRPC, on the same configuration, while the
//! service runs or not.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis_base::{Account, AccountId};
use chassis_rpc::Context;
use chassis_rpc::token::MESH_SCOPE;
use chassis_service::Runtime;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use proto::Faults;
use proto::automation::flow_service_server::FlowService;
use proto::automation::{
    ApplyFlowRequest, DeleteFlowRequest, Flow, GetFlowDefinitionRequest, ListFlowsRequest,
};
use tonic::{Request, Status};
use uuid::Uuid;

use super::{Flows, definition, dry, operations, type_name};

pub(crate) const NAME: &str = "flow";

#[derive(Args)]
struct FlowArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Check definitions and store them: new flows, or new versions of those of the same names
    Apply {
        #[command(flatten)]
        account: AccountArgument,
        /// Switch them on
        #[arg(long, conflicts_with = "deactivate")]
        activate: bool,
        /// Switch them off
        #[arg(long)]
        deactivate: bool,
        /// YAML or JSON; - for standard input
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Show the flows, with tabs between: id, on or off, trigger, key, version, name
    List {
        #[command(flatten)]
        account: AccountArgument,
    },
    /// Print the definition of a flow
    Show {
        #[command(flatten)]
        account: AccountArgument,
        /// Its id or name
        flow: String,
        /// The latest without it
        #[arg(long, default_value_t = 0)]
        version: i64,
    },
    /// Remove a flow; runs that have started go on
    Delete {
        #[command(flatten)]
        account: AccountArgument,
        /// Its id or name
        flow: String,
    },
    /// Print what a definition would do with an event; nothing is called, sent or stored
    Test {
        /// YAML or JSON; - for standard input
        file: PathBuf,
        /// JSON file with type, entity_type, entity_id and data of the event
        #[arg(long)]
        event: Option<PathBuf>,
        /// JSON file with the answers that steps get, by their ids
        #[arg(long)]
        answers: Option<PathBuf>,
    },
    /// Print the JSON Schema of definitions
    Schema,
}

#[derive(Args)]
struct AccountArgument {
    /// The account: its id or name
    #[arg(long)]
    account: String,
}

/// The subcommand for the service's command line.
pub(crate) fn command() -> Command {
    FlowArguments::augment_args(Command::new(NAME).about("Apply, list, show, delete and test flows"))
}

pub(crate) async fn run(runtime: &Runtime, arguments: &ArgMatches) -> Result<(), String> {
    let FlowArguments { action } =
        FlowArguments::from_arg_matches(arguments).map_err(|error| error.to_string())?;
    match action {
        Action::Apply { account, activate, deactivate, files } => {
            let active = if activate { Some(true) } else { deactivate.then_some(false) };
            apply(runtime, &account.account, active, &files).await
        }
        Action::List { account } => {
            for flow in Desk::open(runtime, &account.account).await?.all().await? {
                println!("{}", line(&flow));
            }
            Ok(())
        }
        Action::Show { account, flow, version } => {
            let desk = Desk::open(runtime, &account.account).await?;
            let id = desk.id(&flow).await?;
            let request = desk.request(GetFlowDefinitionRequest { id, version });
            let found = desk.flows.get_flow_definition(request).await.map_err(told)?;
            print!("{}", found.into_inner().definition);
            Ok(())
        }
        Action::Delete { account, flow } => {
            let desk = Desk::open(runtime, &account.account).await?;
            let id = desk.id(&flow).await?;
            desk.flows.delete_flow(desk.request(DeleteFlowRequest { id })).await.map_err(told)?;
            Ok(())
        }
        Action::Test { file, event, answers } => test(runtime, &file, event.as_deref(), answers.as_deref()),
        Action::Schema => {
            print!("{}", definition::schema());
            Ok(())
        }
    }
}

/// All or none: what is wrong with any of them is told before the first is stored.
async fn apply(
    runtime: &Runtime,
    account: &str,
    active: Option<bool>,
    files: &[PathBuf],
) -> Result<(), String> {
    let desk = Desk::open(runtime, account).await?;
    let mut texts = Vec::new();
    for file in files {
        let text = read(file)?;
        understand(runtime, file, &text, desk.account.timezone)?;
        texts.push(text);
    }
    for definition in texts {
        let request = desk.request(ApplyFlowRequest { definition, active });
        let applied = desk.flows.apply_flow(request).await.map_err(told)?.into_inner();
        let what = match (applied.created, applied.changed) {
            (true, _) => "created",
            (false, true) => "changed",
            (false, false) => "unchanged",
        };
        println!("{what}\t{}", applied.data.as_ref().map(line).unwrap_or_default());
    }
    Ok(())
}

fn test(runtime: &Runtime, file: &Path, event: Option<&Path>, answers: Option<&Path>) -> Result<(), String> {
    let account = Account {
        id: AccountId::trust(Uuid::nil()),
        timezone: chrono_tz::Europe::Amsterdam,
        country: "NL".to_owned(),
        currency: "EUR".to_owned(),
    };
    let text = read(file)?;
    let definition = understand(runtime, file, &text, account.timezone)?;
    let json = |path: Option<&Path>| -> Result<serde_json::Value, String> {
        let Some(path) = path else { return Ok(serde_json::json!({})) };
        serde_json::from_str(&read(path)?).map_err(|error| format!("{}: {error}", path.display()))
    };
    let tested = dry::run(&definition, &json(event)?, &json(answers)?, (&account, runtime.clock.now()));
    println!(
        "{}",
        if tested.matches { "The event starts the flow." } else { "The event does not start the flow." }
    );
    for step in tested.steps {
        println!("{}: would {}", step.id, step.would);
        if !step.input.is_empty() {
            println!("    with {}", step.input);
        }
        if !step.error.is_empty() {
            println!("    because {}", step.error);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    Ok(text)
}

/// The definition, or all its faults, one a line.
fn understand(
    runtime: &Runtime,
    file: &Path,
    text: &str,
    zone: chrono_tz::Tz,
) -> Result<definition::Definition, String> {
    let mut faults = Faults::default();
    let (when, operator) = ((runtime.clock.now(), zone), [MESH_SCOPE.to_owned()]);
    let read = operations::understand(text, "", when, &operator, &mut faults);
    if let Some(definition) = read.filter(|_| faults.is_empty()) {
        return Ok(definition);
    }
    let told = faults.entries().iter().map(|entry| {
        let place = if entry.pointer.is_empty() { "/" } else { &entry.pointer };
        format!("\n  {place}: {}", entry.detail)
    });
    Err(format!("{} is not right:{}", file.display(), told.collect::<String>()))
}

fn line(flow: &Flow) -> String {
    let on = if flow.active { "on" } else { "off" };
    let trigger = type_name(flow.trigger_type()).unwrap_or_default();
    let version = flow.meta.as_ref().map_or(0, |meta| meta.version);
    format!("{}\t{on}\t{trigger}\t{}\t{version}\t{}", flow.id, flow.trigger_key, flow.name)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn told(status: Status) -> String {
    chassis_base::error::status::explain(&status)
}

/// The operations on behalf of one account, inside this process.
struct Desk<'r> {
    runtime: &'r Runtime,
    account: Account,
    flows: Flows,
}

impl<'r> Desk<'r> {
    /// `account` is an id or a name.
    async fn open(runtime: &'r Runtime, account: &str) -> Result<Self, String> {
        let unknown = || format!("there is no account {account}, or automation was not told of it yet");
        let failed = |error: chassis_base::Error| chassis_base::error::chain(&error);
        let mut connection = runtime.db.acquire().await.map_err(failed)?;
        let found: Vec<Uuid> = sqlx::query_scalar(
            "select account_id from automation.account where name = $1 or account_id::text = $1 limit 2",
        )
        .bind(account)
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| error.to_string())?;
        connection.done();
        let [id] = found.as_slice() else {
            return Err(if found.is_empty() {
                unknown()
            } else {
                format!("{account} is the name of several; use the id")
            });
        };
        let account = runtime.db.account(AccountId::trust(*id)).await.map_err(failed)?.ok_or_else(unknown)?;
        Ok(Self { runtime, account, flows: Flows { db: runtime.db.clone() } })
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let Runtime { tokens, clock, .. } = self.runtime;
        let token = tokens.to_self().mint_mesh(&self.account, "command line", clock.now());
        let mut request = Request::new(message);
        // Just minted, so it is valid; without it the operation is refused.
        if let Some(identity) = tokens.verify(&token, clock.now()) {
            request.extensions_mut().insert(Context {
                identity,
                request_id: "command line".into(),
                rpc: "command line",
                idempotency_key: None,
                carried: Arc::default(),
                deadline: Instant::now() + Duration::from_mins(1),
                clock: clock.clone(),
            });
        }
        request
    }

    async fn all(&self) -> Result<Vec<Flow>, String> {
        let mut all = Vec::new();
        for page in 1.. {
            let asked =
                ListFlowsRequest { page: Some(page), per_page: Some(100), ..ListFlowsRequest::default() };
            let found = self.flows.list_flows(self.request(asked)).await.map_err(told)?.into_inner();
            let last = found.data.len() < 100;
            all.extend(found.data);
            if last {
                break;
            }
        }
        Ok(all)
    }

    /// The id of a flow that is named by its id or its name.
    async fn id(&self, flow: &str) -> Result<String, String> {
        let all = self.all().await?;
        let found = all.into_iter().find(|known| known.id == flow || known.name == flow);
        found.map(|flow| flow.id).ok_or_else(|| format!("there is no flow {flow} in this account"))
    }
}
