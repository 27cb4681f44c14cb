//! Flows that every account starts with, inactive: working examples.

use chassis_data::Tx;
use chassis_rpc::token::MESH_SCOPE;
use proto::Faults;

use super::operations::{self, Apply, Target};
use super::store;
use crate::definition::check::{self, CheckContext};
use crate::definition::methods::{self, Method};
use crate::definition::{Definition, Kind};
use crate::error::Error;

/// A flow that is provided.
struct ReadyMade {
    /// Never changes: an account that has deleted the flow does not get it again.
    key: &'static str,
    text: &'static str,
}

const READY_MADE: [ReadyMade; 5] = [
    ReadyMade { key: "invoice-late", text: include_str!("ready_made/invoice-late.yaml") },
    ReadyMade { key: "invoice-paid", text: include_str!("ready_made/invoice-paid.yaml") },
    ReadyMade { key: "quote-silent", text: include_str!("ready_made/quote-silent.yaml") },
    ReadyMade { key: "ticket-stale", text: include_str!("ready_made/ticket-stale.yaml") },
    ReadyMade { key: "client-welcome", text: include_str!("ready_made/client-welcome.yaml") },
];

/// Creates the flows that the account never had. Repeatable; a later release adds its new ones the same way.
pub(crate) async fn install(tx: &mut Tx<'_>) -> Result<(), Error> {
    let account = tx.account();
    let existing = store::list_ready_made(tx.db(), account).await?;
    for ReadyMade { key, text } in READY_MADE {
        if existing.iter().any(|existing| existing == key) {
            continue;
        }
        let mut faults = Faults::default();
        let all = all_scopes();
        let check = CheckContext { now: tx.now(), zone: tx.settings().timezone, scopes: &all };
        let parsed = check::parse(text, "", check, &mut faults);
        // A flow that calls an rpc which this release does not have is left to a release that has it.
        let Some(definition) = parsed.filter(|_| faults.is_empty()) else { continue };
        // The account may have made a flow of this name itself.
        if store::find_by_name_locked(tx.db(), account, definition.name.trim()).await?.is_none() {
            let scopes = needed_scopes(&definition);
            let (definition, active) = (&definition, Some(false));
            let target = Target::OfItsName;
            let apply = Apply { target, source: text, definition, scopes: &scopes, active, ready_made: key };
            operations::apply(tx, apply).await?;
        }
    }
    Ok(())
}

fn all_scopes() -> [String; 1] {
    [MESH_SCOPE.to_owned()]
}

/// Exactly the scopes that the steps of a flow need.
fn needed_scopes(definition: &Definition) -> Vec<String> {
    let methods = definition.all_steps().into_iter().filter_map(|step| match step.kind() {
        Some(Kind::Call(call)) => methods::find(&call.method).ok(),
        _ => None,
    });
    methods.flat_map(Method::scopes).collect()
}

#[cfg(test)]
mod tests {
    use chassis_base::Timezone;
    use serde_json::json;

    use super::*;
    use crate::template::Engine;

    fn parse(text: &str, scopes: &[String], faults: &mut Faults) -> Option<Definition> {
        let (now, zone) = (chassis_testing::moment(), Timezone::AMSTERDAM);
        check::parse(text, "", CheckContext { now, zone, scopes }, faults)
    }

    #[test]
    fn every_ready_made_flow_can_be_run() {
        for ReadyMade { key, text } in READY_MADE {
            let mut faults = Faults::default();
            let definition = parse(text, &all_scopes(), &mut faults).unwrap_or_else(|| panic!("{key}"));
            let again = parse(text, &needed_scopes(&definition), &mut faults);
            assert!(again.is_some(), "{key}");
            assert!(faults.is_empty(), "{key}: {:?}", faults.entries());
        }
    }

    #[test]
    fn a_reminder_of_a_late_invoice_is_sent_as_long_as_anything_is_open() {
        let definition = parse(READY_MADE[0].text, &all_scopes(), &mut Faults::default()).unwrap();
        let is_sent = |status: &str| {
            let steps = definition.all_steps();
            let condition = steps.iter().find_map(|step| match step.kind() {
                Some(Kind::When(condition)) => Some(condition),
                _ => None,
            });
            let invoice = json!({"answer": {"data": {"payment_status": status}}});
            let client = json!({"answer": {"data": {"email_reminders": "", "email": "ann@client.example"}}});
            let scope = json!({"steps": {"invoice": invoice, "client": client}});
            Engine::default().rendering(&scope).condition(condition.unwrap()).unwrap()
        };
        assert!(["open", "partially_paid", "partially_credited"].into_iter().all(is_sent));
        assert!(!["draft", "paid", "credited"].into_iter().any(is_sent));
    }
}
