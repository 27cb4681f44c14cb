//! What every account starts with: a pipeline with its phases, and sources.

use chassis::Tx;
use proto::crm::DealSource;

use crate::pipeline::{Phase, Pipeline};
use crate::{Error, pipeline, source};

/// What a new account has, in the language of its country.
struct Defaults {
    pipeline: &'static str,
    phases: [&'static str; 4],
    sources: [&'static str; 5],
}

const DUTCH: Defaults = Defaults {
    pipeline: "Verkoop",
    phases: ["Nieuw", "In gesprek", "Offerte verstuurd", "Onderhandeling"],
    sources: ["Website", "Aanbeveling", "Telefoon", "E-mail", "Beurs"],
};

const ENGLISH: Defaults = Defaults {
    pipeline: "Sales",
    phases: ["New", "In contact", "Quote sent", "Negotiation"],
    sources: ["Website", "Referral", "Phone", "Email", "Event"],
};

/// Creates the defaults of an account that has none. They are made once: what was changed or removed since stays so.
pub async fn defaults(tx: &mut Tx<'_>) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let insert =
        "insert into crm.setup (account_id, created_at) values ($1, $2) on conflict (account_id) do nothing";
    let inserted = sqlx::query(insert).bind(account).bind(now).execute(tx.db()).await?;
    if inserted.rows_affected() == 0 {
        return Ok(());
    }
    let defaults = if matches!(tx.settings().country.as_str(), "NL" | "BE") { DUTCH } else { ENGLISH };
    let (id, phase_ids) = (tx.id(), defaults.phases.map(|_| tx.id()));
    pipeline::store::insert(tx.db(), account, id, defaults.pipeline, true, now).await?;
    let mut phases = Vec::new();
    for ((phase, phase_id), order) in defaults.phases.iter().zip(phase_ids).zip(1..) {
        pipeline::store::insert_phase(tx.db(), account, id, phase_id, phase, now).await?;
        phases.push(Phase { id: phase_id, name: (*phase).to_owned(), order });
    }
    pipeline::rpc::audited(tx, Pipeline { id, name: defaults.pipeline.to_owned(), active: true, phases });
    for (source, order) in defaults.sources.into_iter().zip(1..) {
        source::store::insert(tx.db(), account, source, now).await?;
        tx.changed(source::rpc::AUDITED, source, &DealSource { name: source.to_owned(), order });
    }
    Ok(())
}

/// For who wants to change pipelines or sources: everyone else who does waits. An account that was never provisioned
/// gets its defaults first.
pub async fn lock(tx: &mut Tx<'_>) -> Result<(), Error> {
    let account = tx.account();
    let find = "select true from crm.setup where account_id = $1 for update";
    let found: Option<bool> = sqlx::query_scalar(find).bind(account).fetch_optional(tx.db()).await?;
    if found.is_none() {
        defaults(tx).await?;
    }
    Ok(())
}
