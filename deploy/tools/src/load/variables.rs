//! What the statements of writes send besides the numbers that pgbench draws: texts as long as the ones that REST sends.

use crate::fill::ID_HIGH;
use crate::tickets::REPLY;

/// Bytes of a stored response, as the service writes them.
const CLIENT_BYTES: usize = 260;
const INVOICE_BYTES: usize = 900;
const DEAL_BYTES: usize = 260;
const TASK_BYTES: usize = 80;
const MESSAGE_BYTES: usize = 480;

pub type Variables = Vec<(&'static str, String)>;

/// What a move sends besides numbers; there are so many deals.
pub fn deal(deals: usize, phases: &[String]) -> Variables {
    let event = r#"{"{\"id\":\"019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05\",\"title\":\"Levering 000001\",\"amount\":12500.0,\"status\":\"open\",\"priority\":\"medium\",\"pipeline_id\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4c\",\"phase_id\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4d\",\"client_id\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4e\",\"expected_close_date\":\"2026-12-01\",\"source\":\"Website\",\"from\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4f\",\"to\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4d\"}"}"#;
    let mut variables = vec![
        ("route", "/admin.crm.v1.DealService/MoveDeal".to_owned()),
        ("id_high", ID_HIGH.to_string()),
        ("deals", deals.to_string()),
        ("phases", format!("{{{}}}", phases.join(","))),
        ("phase_count", phases.len().to_string()),
        ("is_step", "true".to_owned()),
        ("none", "{}".to_owned()),
        ("event_data", event.to_owned()),
        ("response", hex(DEAL_BYTES)),
    ];
    variables.extend(event_variables("deal", "deal.phase_changed", "{}", "{}"));
    variables
}

/// What a new invoice sends besides numbers.
pub fn invoice(client: &str, (ms, today): (&str, &str), is_final: bool) -> Variables {
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
    let mut variables: Variables = [
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
        ("client", client),
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

/// What a reply sends besides numbers; there are so many tickets.
pub fn ticket(tickets: usize, ms: &str) -> Variables {
    let html = format!("<p>{REPLY}</p>");
    let event = format!(
        r#"{{"{{\"id\":\"019a8c5e-7d1b-7000-8000-000000000001\",\"number\":\"T-00001\",\"subject\":\"Vraag over levering 1\",\"status\":\"waiting\",\"priority\":\"normal\",\"client_id\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4e\",\"client_name\":\"Handel 1 B.V.\",\"client_email\":\"\",\"source\":\"api\",\"message\":{{\"id\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4f\",\"direction\":\"out\",\"type\":\"reply\",\"author\":{{\"name\":\"bench\",\"email\":\"\"}},\"excerpt\":\"{REPLY}\",\"attachments\":0}}}}"}}"#
    );
    let mut variables = vec![
        ("ms", ms.to_owned()),
        ("route", "/admin.support.v1.TicketMessageService/CreateTicketMessage".to_owned()),
        ("id_high", ID_HIGH.to_string()),
        ("tickets", tickets.to_string()),
        ("no", "false".to_owned()),
        ("body", REPLY.to_owned()),
        ("size", (REPLY.len() + html.len()).to_string()),
        ("html", html),
        ("author", "bench".to_owned()),
        ("none", "{}".to_owned()),
        ("attachments", "[]".to_owned()),
        ("event_data", event),
        ("response", hex(MESSAGE_BYTES)),
    ];
    variables.extend(event_variables("ticket", "ticket.message", "{}", "{}"));
    variables
}

/// What is told of a PDF.
const FILE_EVENT: &str = r#"{"{\"id\":\"019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05\",\"name\":\"INV-2026-00001.pdf\",\"content_type\":\"application/pdf\",\"size\":48213,\"service\":\"billing\",\"area\":\"documents\",\"key\":\"019a8c5e7d1b7c3a9f204b8d2a6e1c05-1\",\"source\":{\"type\":\"invoice\",\"id\":\"019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05\"},\"version\":1,\"client_id\":\"019a8c5e-8a44-7b10-8c55-0d6f1e2a3b4c\",\"created_at\":\"2026-11-15T11:00:00.123Z\"}"}"#;

fn hex(bytes: usize) -> String {
    format!("\\x{}", "5a".repeat(bytes))
}

/// The part of a create that is the same for everything.
fn event_variables(entity: &str, event: &str, lists: &str, entries: &str) -> Variables {
    let mut variables = vec![
        ("listeners", "{bench}".to_owned()),
        ("entity_types", format!("{{{entity}}}")),
        ("sequences", "{1000}".to_owned()),
        ("event_types", format!("{{{event}}}")),
        ("lists", lists.to_owned()),
        ("entries", entries.to_owned()),
    ];
    variables.extend(write_variables(entity));
    variables
}

/// The part of a write that is the same for everything: of its key, and of its entry in the audit log.
fn write_variables(entity: &str) -> [(&'static str, String); 6] {
    [
        ("fingerprint", hex(32)),
        ("depths", "{0}".to_owned()),
        ("actor", "CRpfkUagFtLAv7OZ".to_owned()),
        ("request_id", "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05".to_owned()),
        ("entry_types", format!("{{{entity}}}")),
        ("entry_messages", "{admin.relations.v1.Relation}".to_owned()),
    ]
}

/// What the completion of a task sends besides numbers; there are so many.
pub fn task(tasks: usize) -> Variables {
    let mut variables = vec![
        ("route", "/admin.work.v1.TaskService/CompleteTask".to_owned()),
        ("id_high", ID_HIGH.to_string()),
        ("tasks", tasks.to_string()),
        ("none", "{}".to_owned()),
        ("response", hex(TASK_BYTES)),
    ];
    variables.extend(write_variables("task"));
    variables
}

/// What a new client sends besides numbers: texts as long as the ones that REST sends.
pub fn client((ms, today): (&str, &str)) -> Variables {
    let event = r#"{"{\"id\":\"019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05\",\"type\":\"company\",\"company_name\":\"Handel 000001 B.V.\",\"firstname\":\"Sanne\",\"lastname\":\"de Vries\",\"email\":\"info1@example.com\",\"external_id\":null,\"debtor_number\":\"D-00001\"}"}"#;
    let mut variables: Variables = [
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
