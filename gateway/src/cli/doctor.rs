//! `gateway doctor`

use chassis_base::Clock;
use proto::api::Outcome;
use serde_json::{Value, json};

use super::output::print;
use crate::doctor::{Line, examine, failures};
use crate::runtime::Runtime;
use crate::settings::Settings;

/// Prints what was found; fails when something is not as it has to be.
pub(super) async fn run(settings: &Settings, as_json: bool) -> Result<(), String> {
    settings.mesh.check()?;
    let runtime = Runtime::open(settings, Clock::system())?;
    let lines = examine(&runtime).await;
    let failures = failures(&lines);
    if as_json {
        let findings: Vec<Value> = lines.iter().map(value).collect();
        print(&json!({"ok": failures == 0, "findings": findings}).to_string())?;
    } else {
        table(&lines).iter().try_for_each(|line| print(line))?;
    }
    if failures == 0 { Ok(()) } else { Err(format!("{failures} of {} checks failed", lines.len())) }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Warning => "warning",
        Outcome::Failed | Outcome::Unspecified => "failed",
    }
}

fn value(line: &Line) -> Value {
    let Line { who, finding } = line;
    json!({
        "who": who,
        "check": finding.name,
        "outcome": word(finding.outcome()),
        "saw": finding.saw,
        "advice": finding.advice,
    })
}

/// Columns as wide as they have to be; what to do is on a line of its own.
fn table(lines: &[Line]) -> Vec<String> {
    let widest = |column: fn(&Line) -> &str| {
        lines.iter().map(|line| column(line).chars().count()).max().unwrap_or_default()
    };
    let (who, check) = (widest(|line| &line.who), widest(|line| &line.finding.name));
    let row = |line: &Line| {
        let finding = &line.finding;
        let outcome = match finding.outcome() {
            Outcome::Failed => "FAILED",
            other => word(other),
        };
        // What a service says must not look like another line.
        let clean = |text: &str| text.replace(char::is_control, " ");
        let saw = clean(&finding.saw);
        let first = format!("{:who$}  {:check$}  {outcome:7}  {saw}", line.who, finding.name);
        let second = format!("{:indent$}-> {}", "", clean(&finding.advice), indent = who + check + 13);
        [Some(first), Some(second).filter(|_| !finding.advice.is_empty())]
    };
    lines.iter().flat_map(row).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chassis_service::doctor::{bad, good};

    #[test]
    fn a_failure_stands_out_and_is_followed_by_what_to_do() {
        let line = |who: &str, finding| Line { who: who.to_owned(), finding };
        let lines = [
            line("gateway", good("database", "PostgreSQL 15.1")),
            line("work", bad("storage", "full\n", "Make room.")),
        ];
        assert_eq!(
            table(&lines),
            [
                "gateway  database  ok       PostgreSQL 15.1",
                "work     storage   FAILED   full ",
                "                            -> Make room.",
            ]
        );
    }
}
