//! The `flow` subcommand, for operators: the same operations as over gRPC, with the same configuration, whether the
//! service is running or not.

use std::io::Read;
use std::path::{Path, PathBuf};

use chassis_base::{Account, AccountId, Timezone};
use chassis_rpc::Context;
use chassis_rpc::token::MESH_SCOPE;
use chassis_service::{Runtime, table};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use proto::Faults;
use proto::automation::flow_service_server::FlowService;
use proto::automation::{
    ApplyFlowRequest, DeleteFlowRequest, Flow, GetFlowDefinitionRequest, ListFlowsRequest,
};
use tonic::{Request, Status};
use uuid::Uuid;

use super::dry_run::{self, Trial};
use super::{Flows, store};
use crate::definition::check::{self, CheckContext};
use crate::definition::{Definition, TriggerType, model};

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
    /// Show the flows: id, on or off, trigger, key, version, name
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
            let flows = AccountFlows::open(runtime, &account.account).await?.all().await?;
            table::print(["id", "state", "trigger", "key", "version", "name"], flows.iter().map(columns))
        }
        Action::Show { account, flow, version } => {
            let account = AccountFlows::open(runtime, &account.account).await?;
            let id = account.id(&flow).await?;
            let request = account.request(GetFlowDefinitionRequest { id, version });
            let found = account.flows.get_flow_definition(request).await.map_err(explain)?;
            print!("{}", found.into_inner().definition);
            Ok(())
        }
        Action::Delete { account, flow } => {
            let account = AccountFlows::open(runtime, &account.account).await?;
            let id = account.id(&flow).await?;
            account.flows.delete_flow(account.request(DeleteFlowRequest { id })).await.map_err(explain)?;
            Ok(())
        }
        Action::Test { file, event, answers } => {
            test(runtime, &file, event.as_deref(), answers.as_deref()).await
        }
        Action::Schema => {
            print!("{}", model::schema());
            Ok(())
        }
    }
}

/// Checks all files before the first is stored.
async fn apply(
    runtime: &Runtime,
    account: &str,
    active: Option<bool>,
    files: &[PathBuf],
) -> Result<(), String> {
    let account = AccountFlows::open(runtime, account).await?;
    let mut texts = Vec::new();
    for file in files {
        let text = read(file)?;
        parse(runtime, file, &text, account.account.timezone)?;
        texts.push(text);
    }
    for definition in texts {
        let request = account.request(ApplyFlowRequest { definition, active });
        let applied = account.flows.apply_flow(request).await.map_err(explain)?.into_inner();
        let what = match (applied.created, applied.changed) {
            (true, _) => "created",
            (false, true) => "changed",
            (false, false) => "unchanged",
        };
        let [id, state, trigger, key, version, name] = applied.data.as_ref().map(columns).unwrap_or_default();
        table::print_row([what.to_owned(), id, state, trigger, key, version, name])?;
    }
    Ok(())
}

async fn test(
    runtime: &Runtime,
    file: &Path,
    event: Option<&Path>,
    answers: Option<&Path>,
) -> Result<(), String> {
    let account = Account {
        id: AccountId::trust(Uuid::nil()),
        timezone: Timezone::AMSTERDAM,
        country: "NL".to_owned(),
        currency: "EUR".to_owned(),
    };
    let text = read(file)?;
    let definition = parse(runtime, file, &text, account.timezone)?;
    let json = |path: Option<&Path>| -> Result<serde_json::Value, String> {
        let Some(path) = path else { return Ok(serde_json::json!({})) };
        serde_json::from_str(&read(path)?).map_err(|error| format!("{}: {error}", path.display()))
    };
    let (event, answers) = (json(event)?, json(answers)?);
    let now = runtime.clock.now();
    // Without a caller there are no rights to call with: the tester gives the answers.
    let trial = Trial { event: &event, answers: &answers, account: &account, now, rehearser: None };
    let tested = dry_run::run(&definition, &trial).await;
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

/// Reads a definition; the error has all its faults, one a line.
fn parse(runtime: &Runtime, file: &Path, text: &str, zone: Timezone) -> Result<Definition, String> {
    let mut faults = Faults::default();
    let operator = [MESH_SCOPE.to_owned()];
    let check = CheckContext { now: runtime.clock.now(), zone, scopes: &operator };
    let parsed = check::parse(text, "", check, &mut faults);
    if let Some(definition) = parsed.filter(|_| faults.is_empty()) {
        return Ok(definition);
    }
    let lines = faults.entries().iter().map(|entry| {
        let pointer = if entry.pointer.is_empty() { "/" } else { &entry.pointer };
        format!("\n  {pointer}: {}", entry.detail)
    });
    Err(format!("{} is not valid:{}", file.display(), lines.collect::<String>()))
}

fn columns(flow: &Flow) -> [String; 6] {
    let on = if flow.active { "on" } else { "off" };
    let trigger = TriggerType::from_message(flow.trigger_type()).map_or("", TriggerType::name);
    let version = flow.meta.as_ref().map_or(0, |meta| meta.version);
    let (trigger_key, name) = (flow.trigger_key.clone(), flow.name.clone());
    [flow.id.clone(), on.to_owned(), trigger.to_owned(), trigger_key, version.to_string(), name]
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn explain(status: Status) -> String {
    chassis_base::error::status::explain(&status)
}

/// The flow operations of one account, inside this process.
struct AccountFlows<'r> {
    runtime: &'r Runtime,
    account: Account,
    flows: Flows,
}

impl<'r> AccountFlows<'r> {
    /// `account` is an id or a name.
    async fn open(runtime: &'r Runtime, account: &str) -> Result<Self, String> {
        let not_found = || format!("there is no account {account}, or automation does not know it yet");
        let failed = |error: chassis_base::Error| chassis_base::error::chain(&error);
        let found = runtime
            .db
            .read(async |connection| store::find_accounts(connection, account).await)
            .await
            .map_err(|error| chassis_base::error::chain(&error))?;
        let [id] = found.as_slice() else {
            return Err(if found.is_empty() {
                not_found()
            } else {
                format!("{account} is the name of several accounts; use the id")
            });
        };
        let account =
            runtime.db.account(AccountId::trust(*id)).await.map_err(failed)?.ok_or_else(not_found)?;
        Ok(Self { runtime, account, flows: Flows::new(runtime) })
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let context = Context::internal(&self.account, "command line", "command line", &self.runtime.clock);
        request.extensions_mut().insert(context);
        request
    }

    async fn all(&self) -> Result<Vec<Flow>, String> {
        let mut all = Vec::new();
        for page in 1.. {
            let request =
                ListFlowsRequest { page: Some(page), per_page: Some(100), ..ListFlowsRequest::default() };
            let found = self.flows.list_flows(self.request(request)).await.map_err(explain)?.into_inner();
            let is_last = found.data.len() < 100;
            all.extend(found.data);
            if is_last {
                break;
            }
        }
        Ok(all)
    }

    /// The id of a flow that is named by its id or its name.
    async fn id(&self, flow: &str) -> Result<String, String> {
        let all = self.all().await?;
        let found = all.into_iter().find(|one| one.id == flow || one.name == flow);
        found.map(|flow| flow.id).ok_or_else(|| format!("there is no flow {flow} in this account"))
    }
}
