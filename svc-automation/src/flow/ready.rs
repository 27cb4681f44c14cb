//! Flows that every account starts with, switched off: examples that work.

use chassis_data::Tx;
use chassis_rpc::token::MESH_SCOPE;
use proto::Faults;

use super::definition::{Definition, Kind};
use super::{calls, operations, store};
use crate::Error;

/// Each by a name that never changes: a flow that was deleted is not made again.
const READY_MADE: [(&str, &str); 5] = [
    ("invoice-late", include_str!("ready_made/invoice-late.yaml")),
    ("invoice-paid", include_str!("ready_made/invoice-paid.yaml")),
    ("quote-silent", include_str!("ready_made/quote-silent.yaml")),
    ("ticket-stale", include_str!("ready_made/ticket-stale.yaml")),
    ("client-welcome", include_str!("ready_made/client-welcome.yaml")),
];

/// Makes those that the account never had. Repeatable; also adds what a later release brings.
pub(crate) async fn install(tx: &mut Tx<'_>) -> Result<(), Error> {
    let account = tx.account();
    let known = store::list_ready_made(tx.db(), account).await?;
    for (key, text) in READY_MADE.into_iter().filter(|(key, _)| !known.iter().any(|known| known == key)) {
        let mut faults = Faults::default();
        let when = (tx.now(), tx.settings().timezone);
        let Some(definition) = operations::understand(text, "", when, &everything(), &mut faults) else {
            continue;
        };
        // One that calls what this release does not have waits for a release that does.
        if !faults.is_empty() {
            continue;
        }
        // The account may have made one of this name itself.
        if store::find_named_locked(tx.db(), account, definition.name.trim()).await?.is_none() {
            let scopes = needed(&definition);
            operations::apply(tx, (text, &definition), &scopes, Some(false), key).await?;
        }
    }
    Ok(())
}

fn everything() -> [String; 1] {
    [MESH_SCOPE.to_owned()]
}

/// Exactly what the steps of a flow need.
fn needed(definition: &Definition) -> Vec<String> {
    let calls = definition.all_steps().into_iter().filter_map(|step| match step.kind() {
        Some(Kind::Call(call)) => calls::find(&call.method).ok(),
        _ => None,
    });
    calls.map(|method| method.scope()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::template::Engine;

    #[test]
    fn every_ready_made_flow_can_be_run() {
        for (key, text) in READY_MADE {
            let mut faults = Faults::default();
            let when = (chassis_testing::moment(), chrono_tz::Europe::Amsterdam);
            let read = operations::understand(text, "", when, &everything(), &mut faults);
            let definition = read.unwrap_or_else(|| panic!("{key}"));
            let again = operations::understand(text, "", when, &needed(&definition), &mut faults);
            assert!(again.is_some(), "{key}");
            assert!(faults.is_empty(), "{key}: {:?}", faults.entries());
        }
    }

    #[test]
    fn a_late_invoice_is_reminded_of_as_long_as_anything_is_open() {
        let (_, text) = READY_MADE[0];
        let when = (chassis_testing::moment(), chrono_tz::Europe::Amsterdam);
        let read = operations::understand(text, "", when, &everything(), &mut Faults::default());
        let definition = read.unwrap();
        let is_asked = |status: &str| {
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
        assert!(["open", "partially_paid", "partially_credited"].into_iter().all(is_asked));
        assert!(!["draft", "paid", "credited"].into_iter().any(is_asked));
    }
}
