//! The log of a PostgreSQL server that logs every statement: what its lines look like, and the statements in them.

/// In front of every line while statements are recorded: process, role and application.
pub(crate) const PREFIX: &str = "load:";

/// What makes a server log statements, with the process, role and application of each.
pub(crate) const ON: &str =
    "alter system set log_statement = 'all'; alter system set log_line_prefix = 'load:%p|%u|%a|';";
pub(crate) const OFF: &str = "alter system reset log_statement; alter system reset log_line_prefix;";

/// A statement with its parameters as text; `None` is NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub text: String,
    pub parameters: Vec<Option<String>>,
}

/// A logged statement.
pub(crate) struct Entry {
    pub process: String,
    pub role: String,
    pub application: String,
    pub statement: Statement,
}

/// The statements in a piece of a log. A line that goes on begins with a tab; parameters are a line of their own.
pub(crate) fn entries(log: &str) -> impl Iterator<Item = Entry> {
    let log = log.replace("\n\t", "\u{0}");
    let mut found: Vec<Entry> = Vec::new();
    for line in log.lines().filter_map(|line| line.strip_prefix(PREFIX)) {
        let line = line.replace('\u{0}', "\n");
        let mut fields = line.splitn(4, '|');
        let (Some(process), Some(role), Some(application), Some(message)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if let Some(text) = message.strip_prefix("LOG:  ").and_then(statement_text) {
            found.push(Entry {
                process: process.to_owned(),
                role: role.to_owned(),
                application: application.to_owned(),
                statement: Statement { text: text.to_owned(), parameters: Vec::new() },
            });
        } else if let Some(list) = message.strip_prefix("DETAIL:  ").and_then(parameter_list)
            && let Some(entry) = found.iter_mut().rfind(|entry| entry.process == process)
        {
            entry.statement.parameters = parameters(list);
        }
    }
    found.into_iter()
}

/// The statement of `statement: …` and of `execute NAME: …`.
fn statement_text(message: &str) -> Option<&str> {
    let text = message.strip_prefix("statement: ");
    let text =
        text.or_else(|| message.strip_prefix("execute ").and_then(|rest| Some(rest.split_once(": ")?.1)));
    text.map(|text| text.trim_end_matches(';'))
}

fn parameter_list(detail: &str) -> Option<&str> {
    // A capital from PostgreSQL 16 on.
    detail.strip_prefix("parameters: ").or_else(|| detail.strip_prefix("Parameters: "))
}

/// The values of `$1 = 'it''s', $2 = NULL`.
fn parameters(list: &str) -> Vec<Option<String>> {
    let mut values = Vec::new();
    let mut rest = list;
    while let Some((_, after)) = rest.split_once(" = ") {
        let Some(quoted) = after.strip_prefix('\'') else {
            values.push(None);
            rest = after;
            continue;
        };
        let mut value = String::new();
        let mut letters = quoted.char_indices().peekable();
        rest = "";
        while let Some((at, letter)) = letters.next() {
            if letter != '\'' || letters.next_if(|(_, next)| *next == '\'').is_some() {
                value.push(letter);
            } else {
                rest = &quoted[at + 1..];
                break;
            }
        }
        values.push(Some(value));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_read_with_its_lines_and_parameters() {
        let line = |process: u32, message: &str| format!("{PREFIX}{process}|svc_crm|crm|{message}\n");
        let log = line(7, "LOG:  execute sqlx_s_1: select $1,\n\t$2, $3")
            + &line(8, "LOG:  statement: BEGIN")
            + &line(7, "DETAIL:  parameters: $1 = 'it''s, $2 = ''x''', $2 = NULL, $3 = 'a\n\tb'");
        let found: Vec<Statement> = entries(&log).map(|entry| entry.statement).collect();
        let values = [Some("it's, $2 = 'x'".to_owned()), None, Some("a\nb".to_owned())];
        assert_eq!(found[0], Statement { text: "select $1,\n$2, $3".to_owned(), parameters: values.into() });
        assert_eq!(found[1].text, "BEGIN");
    }
}
