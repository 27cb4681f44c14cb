//! Creating a subscription.

use chassis_data::Tx;
use proto::At;
use proto::billing::{SubscriptionInput, SubscriptionItem};
use rust_decimal::Decimal;

use super::audit;
use crate::clients::{Client, ClientLookup};
use crate::document::operations::check_client;
use crate::document::rules::search;
use crate::error::Error;
use crate::settings;
use crate::subscription::rules::{lines, terms};
use crate::subscription::{Full, LIST, Record, store};

/// The title of a subscription without one.
const DEFAULT_TITLE: &str = "Subscription";

/// Creates a subscription: active when it has a client, lines and a start, otherwise a draft.
pub(crate) async fn create(
    tx: &mut Tx<'_>,
    client: &ClientLookup,
    given: &SubscriptionInput,
) -> Result<SubscriptionItem, Error> {
    let (account, now, today, zone) = (tx.account(), tx.now(), tx.today(), tx.settings().timezone);
    let at = At::ROOT.name("subscription");
    let defaults = settings::store::for_documents(tx.db(), account).await?;
    let mut plan = terms::of_input(given, today, &at, &mut tx.faults);
    let (lines, amounts) = lines::of_input(&given.lines, &defaults.rates, &at, &mut tx.faults);
    check_client(client, false, &at, &mut tx.faults);
    tx.valid()?;

    let client = client.found().map(Client::from);
    if client.is_some() && !lines.is_empty() && plan.start.is_some() {
        plan.activate(today);
    }
    let mut record = Record {
        id: tx.id(),
        number: String::new(),
        title: if given.title.is_empty() { DEFAULT_TITLE.to_owned() } else { given.title.clone() },
        client: client.as_ref().map(|client| client.id),
        client_names: client.as_ref().map(search::names).unwrap_or_default(),
        stored_status: plan.status,
        stored_term: plan.term,
        plan,
        failures: 0,
        last_error: String::new(),
        total_excl: Decimal::ZERO,
        vat_rate: Decimal::ZERO,
        vat_amount: Decimal::ZERO,
        total_incl: Decimal::ZERO,
        line_count: 0,
        created_at: now,
        updated_at: now,
        version: 1,
    };
    record.set_amounts(&lines, &amounts);
    record.number = format!("S-{:05}", tx.next_number(LIST).await?);
    store::insert(tx.db(), account, &record, record.due_at(zone)).await?;
    store::replace_lines(tx.db(), account, record.id, &lines).await?;
    tx.list(&record.listing());
    tx.refers_to(record.client);
    let full = Full { record, lines };
    audit(tx, &full);
    Ok((&full.record).into())
}
