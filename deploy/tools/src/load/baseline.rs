//! The other side of the comparison: what each operation asks of the database, for pgbench.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::database::Databases;
use crate::measure::Span;
use crate::operations::{Action, Operation, Resource, SEARCHED};
use crate::pgbench::{self, Outcome, Plan, Scripts};
use crate::process::Watched;
use crate::requests::Target;

/// How many entries the copies of a get script ask for.
const GET_COPIES: usize = 32;
/// Bytes of a stored response, as the service writes them.
const CLIENT_BYTES: usize = 260;
const INVOICE_BYTES: usize = 900;
const DEAL_BYTES: usize = 260;
const TASK_BYTES: usize = 80;

/// How many times, a quarter of a second apart, is looked whether all events have been delivered.
const EVENTS_WAIT: u32 = 240;

type Variables = Vec<(String, String)>;

/// Everything that pgbench needs for a run.
#[derive(Debug)]
pub struct Baseline {
    databases: Databases,
    scripts: Scripts,
    account: String,
    clients: Vec<String>,
    invoices: Vec<String>,
    tasks: Vec<String>,
    /// How many there are.
    deals: usize,
    phases: Vec<String>,
}

impl Baseline {
    pub fn new(
        databases: Databases,
        (folder, work): (&Path, &Path),
        account: String,
        target: &Target,
    ) -> Result<Self, String> {
        let some = |ids: &[String]| {
            let step = (ids.len() / GET_COPIES).max(1);
            ids.iter().step_by(step).take(GET_COPIES).cloned().collect()
        };
        Ok(Self {
            databases,
            scripts: Scripts::new(folder, work)?,
            account,
            clients: some(&target.clients),
            invoices: some(&target.invoices),
            tasks: some(&target.tasks),
            deals: target.deals.len(),
            phases: target.phases.clone(),
        })
    }

    pub async fn server_version(&self) -> Result<String, String> {
        self.databases.relations.value("show server_version").await
    }

    /// As after hours of running: statistics are known, and the search index has no pending entries.
    pub async fn settle(&self) -> Result<(), String> {
        self.databases
            .relations
            .run("set statement_timeout = 0; vacuum analyze relations.relation; vacuum analyze relations.total;")
            .await
    }

    /// Waits until the events of what was created have been delivered, so that this is not part of the next round. Gives
    /// up after a while; returns how many are left.
    pub async fn drain_events(&self, resource: Resource) -> Result<u64, String> {
        let database = self.databases.get(resource)?;
        let waiting = format!(
            "select count(*) from outbox where account_id = '{}' and listener <> 'bench'",
            self.account
        );
        let mut left = 0;
        for _ in 0..EVENTS_WAIT {
            left = database.value(&waiting).await?.parse().map_err(|_| "psql gave no number".to_owned())?;
            if left == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        Ok(left)
    }

    /// Removes the events that pgbench wrote: nobody will come for them.
    pub async fn clean(&self, resource: Resource) -> Result<(), String> {
        let sql = format!("delete from outbox where account_id = '{}' and listener = 'bench'", self.account);
        self.databases.get(resource)?.run(&sql).await
    }

    pub async fn run(&self, operation: Operation, span: Span, watched: &Watched) -> Result<Outcome, String> {
        let database = self.databases.get(operation.resource)?;
        let mut variables = self.constants(operation);
        let files = if matches!(operation.action, Action::Get | Action::Complete) {
            let (copies, ids) = self.copies_by_id(operation)?;
            variables.extend(ids);
            copies
        } else {
            let limit = operation.page_size().to_string();
            vec![self.scripts.copy(&operation.script(), operation.name, &[(":limit", &limit)])?]
        };
        if operation.writes() {
            let moment = database
                .value("select floor(extract(epoch from now()) * 1000)::bigint, current_date")
                .await?;
            let (ms, today) = moment.split_once('|').ok_or("psql gave no time")?;
            let more = match operation.resource {
                Resource::Client => client_variables(ms, today),
                Resource::Invoice => {
                    self.invoice_variables(ms, today, operation.action == Action::CreateFinal)
                }
                Resource::Deal => self.deal_variables(),
                Resource::Task => task_variables(),
            };
            variables.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        pgbench::run(database, &Plan { files, variables }, span, watched).await
    }

    fn constants(&self, operation: Operation) -> Variables {
        let list = operation.resource.list();
        [
            ("account", self.account.as_str()),
            ("role", list),
            ("kind", list),
            ("list", list),
            ("all_days", "0001-01-01"),
            ("status", "open"),
            ("pattern", &format!("%{SEARCHED}%")),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// pgbench has no list of texts to draw from: a copy for each id, with a variable of its own.
    fn copies_by_id(&self, operation: Operation) -> Result<(Vec<PathBuf>, Variables), String> {
        let ids = match operation.resource {
            Resource::Client => &self.clients,
            Resource::Invoice => &self.invoices,
            Resource::Deal => return Err("deals are not measured one by one".to_owned()),
            Resource::Task => &self.tasks,
        };
        let (mut copies, mut variables) = (Vec::new(), Vec::new());
        for (number, id) in ids.iter().enumerate() {
            let variable = format!("id{number:02}");
            let name = format!("{}-{number:02}", operation.name);
            copies.push(self.scripts.copy(
                &operation.script(),
                &name,
                &[(":id", &format!(":{variable}"))],
            )?);
            variables.push((variable, id.clone()));
        }
        Ok((copies, variables))
    }

    fn deal_variables(&self) -> Vec<(&'static str, String)> {
        let event = r#"{"{\"id\":\"019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05\",\"title\":\"Levering 000001\",\"amount\":12500.0,\"status\":\"open\",\"priority\":\"medium\",\"pipeline_id\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4c\",\"phase_id\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4d\",\"client_id\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4e\",\"expected_close_date\":\"2026-12-01\",\"source\":\"Website\",\"from\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4f\",\"to\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4d\"}"}"#;
        let mut variables = vec![
            ("route", "/admin.crm.v1.DealService/MoveDeal".to_owned()),
            ("id_high", crate::deals::ID_HIGH.to_string()),
            ("deals", self.deals.to_string()),
            ("phases", format!("{{{}}}", self.phases.join(","))),
            ("phase_count", self.phases.len().to_string()),
            ("is_step", "true".to_owned()),
            ("none", "{}".to_owned()),
            ("event_data", event.to_owned()),
            ("response", hex(DEAL_BYTES)),
        ];
        variables.extend(event_variables("deal", "deal.phase_changed", "{}", "{}"));
        variables
    }

    fn invoice_variables(&self, ms: &str, today: &str, is_final: bool) -> Vec<(&'static str, String)> {
        let client = self.clients.first().cloned().unwrap_or_default();
        let year = today.get(..4).unwrap_or_default();
        let total = "171.61";
        let standing = if is_final {
            [
                format!("invoice/{year}"),
                format!("INV-{year}-"),
                "5".into(),
                "true".into(),
                "open".into(),
                total.into(),
            ]
        } else {
            ["invoice/draft", "DRAFT-", "1", "false", "draft", "0.00"].map(str::to_owned)
        };
        let event = r#"{"{\"id\":\"019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05\",\"number\":\"INV-2026-00001\",\"title\":\"Levering 000001\",\"invoice_date\":\"2026-11-15\",\"due_date\":\"2026-11-29\",\"total_excl_vat\":\"142.25\",\"total_incl_vat\":\"171.61\",\"currency\":\"EUR\",\"payment_status\":\"open\",\"client_id\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4c\",\"external_id\":null,\"is_credit\":false,\"is_draft\":false}"}"#;
        let mut variables: Vec<(&'static str, String)> = [
            ("ms", ms),
            ("route", "/admin.billing.v1.InvoiceService/CreateInvoice"),
            ("title", "Levering 000001"),
            ("today", today),
            ("currency", "EUR"),
            ("language", "nl"),
            ("total_excl", "142.25"),
            ("vat_rate", "20.64"),
            ("vat_amount", "29.36"),
            ("total_incl", total),
            ("client", &client),
            ("company_name", "Handel 000001 B.V."),
            ("firstname", "Sanne"),
            ("lastname", "de Vries"),
            ("seller", crate::documents::SELLER),
            ("buyer", crate::documents::BUYER),
            ("missing", "{}"),
            ("none", "{}"),
            ("search_text", "levering 000001\nhandel 000001 b.v.\nsanne de vries\n\n"),
            ("names", "{Zuurdesembrood,Bezorging,Advies}"),
            ("descriptions", r#"{"","",""}"#),
            ("quantities", "{1,1,1.5}"),
            ("units", r#"{stuk,"",uur}"#),
            ("prices", "{4.25,10.50,85.00}"),
            ("rates", "{9,21,21}"),
            ("codes", "{VAT9,VAT21,VAT21}"),
            ("categories", "{S,S,S}"),
            ("event_data", event),
            ("file_types", "{file}"),
            ("file_event_types", "{file.stored}"),
            ("file_data", FILE_EVENT),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .into();
        let names = ["counter", "prefix", "padding", "is_final", "status_now", "open_amount"];
        variables.extend(names.into_iter().zip(standing));
        variables.extend(event_variables("invoice", "invoice.created", "{invoice,invoice}", "{1,1}"));
        variables.push(("buckets", format!("{{0001-01-01,{today}}}")));
        variables.push(("response", hex(INVOICE_BYTES)));
        variables
    }
}

/// What is told of a PDF.
const FILE_EVENT: &str = r#"{"{\"id\":\"019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05\",\"name\":\"INV-2026-00001.pdf\",\"content_type\":\"application/pdf\",\"size\":48213,\"service\":\"billing\",\"area\":\"documents\",\"key\":\"019a8c5e7d1b7c3a9f204b8d2a6e1c05-1\",\"source\":{\"type\":\"invoice\",\"id\":\"019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05\"},\"version\":1,\"client_id\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4c\",\"created_at\":\"2026-11-15T11:00:00.123Z\"}"}"#;

fn hex(bytes: usize) -> String {
    format!("\\x{}", "5a".repeat(bytes))
}

/// The part of a create that is the same for everything.
fn event_variables(entity: &str, event: &str, lists: &str, entries: &str) -> [(&'static str, String); 7] {
    [
        ("listeners", "{bench}".to_owned()),
        ("entity_types", format!("{{{entity}}}")),
        ("sequences", "{1000}".to_owned()),
        ("event_types", format!("{{{event}}}")),
        ("lists", lists.to_owned()),
        ("entries", entries.to_owned()),
        ("fingerprint", hex(32)),
    ]
}

/// What the completion of a task sends besides numbers.
fn task_variables() -> Vec<(&'static str, String)> {
    vec![
        ("route", "/admin.work.v1.TaskService/CompleteTask".to_owned()),
        ("none", "{}".to_owned()),
        ("fingerprint", hex(32)),
        ("response", hex(TASK_BYTES)),
    ]
}

/// What a create sends besides numbers: texts as long as the ones that REST sends.
fn client_variables(ms: &str, today: &str) -> Vec<(&'static str, String)> {
    let event = r#"{"{\"id\":\"019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05\",\"type\":\"company\",\"company_name\":\"Handel 000001 B.V.\",\"firstname\":\"Sanne\",\"lastname\":\"de Vries\",\"email\":\"info1@example.com\",\"external_id\":null,\"debtor_number\":\"D-00001\"}"}"#;
    let mut variables: Vec<(&'static str, String)> = [
        ("ms", ms),
        ("route", "/admin.relations.v1.ClientService/CreateClient"),
        ("type", "company"),
        ("firstname", "Sanne"),
        ("lastname", "de Vries"),
        ("email", "info123456@example.com"),
        ("phone", "+31 20 123 4567"),
        ("address", "Prinsengracht 123456"),
        ("zipcode", "1015 DV"),
        ("city", "Amsterdam"),
        ("country", "NL"),
        ("payment_term", "14"),
        ("search_text", "handel b.v.\nsanne de vries\ninfo@example.com\namsterdam\n"),
        ("event_data", event),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into();
    let lists = "{client,client,client/company,client/company}";
    variables.extend(event_variables("client", "customer.created", lists, "{1,1,1,1}"));
    variables.push(("buckets", format!("{{0001-01-01,{today},0001-01-01,{today}}}")));
    variables.push(("response", hex(CLIENT_BYTES)));
    variables
}
