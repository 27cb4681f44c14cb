//! The log of a PostgreSQL server that logs every statement: what its lines look like, and the statements in them.

use deploy_tools::Result;
use regex_lite::Regex;

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

/// Reads a log.
pub(crate) struct Reader {
    line: Regex,
    parameter: Regex,
}

impl Reader {
    pub(crate) fn new() -> Result<Self> {
        // Parameters are a line of their own, with a capital from PostgreSQL 16 on.
        let line = Regex::new(
            &(r"(?s)^load:(?<process>\d+)\|(?<role>[^|]*)\|(?<application>[^|]*)\|".to_owned()
                + r"(?:LOG:  (?:statement|execute [^:]*): (?<text>.*?);*"
                + r"|DETAIL:  [Pp]arameters: (?<parameters>.*))$"),
        )?;
        Ok(Self { line, parameter: Regex::new(r"(?s)\$\d+ = (?:NULL|'((?:[^']|'')*)')")? })
    }

    /// The statements in a piece of a log. A line that goes on begins with a tab.
    pub(crate) fn entries(&self, log: &str) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for line in log.replace("\n\t", "\0").lines() {
            let line = line.replace('\0', "\n");
            let Some(found) = self.line.captures(&line) else { continue };
            let field = |name| found.name(name).map_or("", |field| field.as_str()).to_owned();
            if found.name("text").is_some() {
                let statement = Statement { text: field("text"), parameters: Vec::new() };
                let (role, application) = (field("role"), field("application"));
                entries.push(Entry { process: field("process"), role, application, statement });
            } else if let Some(entry) = entries.iter_mut().rfind(|entry| entry.process == found["process"]) {
                let parameters = self.parameter.captures_iter(&found["parameters"]);
                let value = |found: regex_lite::Captures<'_>| Some(found.get(1)?.as_str().replace("''", "'"));
                entry.statement.parameters = parameters.map(value).collect();
            }
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_read_with_its_lines_and_parameters() {
        let line = |process: u32, message: &str| format!("load:{process}|svc_crm|crm|{message}\n");
        let log = line(7, "LOG:  execute sqlx_s_1: select $1,\n\t$2, $3")
            + &line(8, "LOG:  statement: BEGIN;")
            + &line(7, "DETAIL:  parameters: $1 = 'it''s, $2 = ''x''', $2 = NULL, $3 = 'a\n\tb'");
        let entries = Reader::new().unwrap().entries(&log);
        let found: Vec<Statement> = entries.into_iter().map(|entry| entry.statement).collect();
        let values = [Some("it's, $2 = 'x'".to_owned()), None, Some("a\nb".to_owned())];
        assert_eq!(found[0], Statement { text: "select $1,\n$2, $3".to_owned(), parameters: values.into() });
        assert_eq!(found[1].text, "BEGIN");
    }
}
