//! What commands print as a list: a table with headers on a terminal, and in a pipe plain lines with tabs between the values.

use std::io::{self, IsTerminal, Write};

/// Prints the rows. A closed pipe is an error to report and not a panic.
pub fn print<const N: usize>(
    headers: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Result<(), String> {
    let stdout = io::stdout();
    let rows: Vec<[String; N]> = rows.into_iter().map(|row| row.map(|value| clean(&value))).collect();
    let text = if stdout.is_terminal() { aligned(headers, &rows) } else { plain(&rows) };
    stdout.lock().write_all(text.as_bytes()).map_err(|error| format!("cannot print: {error}"))
}

/// Prints one row of a list that grows while somebody waits for it.
pub fn print_row<const N: usize>(row: [String; N]) -> Result<(), String> {
    let text = plain(&[row.map(|value| clean(&value))]);
    io::stdout().write_all(text.as_bytes()).map_err(|error| format!("cannot print: {error}"))
}

/// A control character in a name must not look like another column or line.
fn clean(value: &str) -> String {
    value.replace(char::is_control, " ")
}

fn plain<const N: usize>(rows: &[[String; N]]) -> String {
    rows.iter().map(|row| row.join("\t") + "\n").collect()
}

fn aligned<const N: usize>(headers: [&str; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return "There are none.\n".to_owned();
    }
    let headers = headers.map(str::to_uppercase);
    let all = || std::iter::once(&headers).chain(rows);
    let widths: Vec<usize> =
        (0..N).map(|column| all().map(|row| row[column].chars().count()).max().unwrap_or_default()).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(value, width)| format!("{value:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    all().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<[String; 2]> {
        vec![["a".to_owned(), "Bakery".to_owned()], ["bcd".to_owned(), "Florist".to_owned()]]
    }

    #[test]
    fn a_terminal_gets_columns_under_their_names() {
        assert_eq!(aligned(["id", "name"], &rows()), "ID   NAME\na    Bakery\nbcd  Florist\n");
        assert_eq!(aligned(["id"], &[]), "There are none.\n");
    }

    #[test]
    fn a_pipe_gets_the_values_alone() {
        assert_eq!(plain(&rows()), "a\tBakery\nbcd\tFlorist\n");
        assert_eq!(clean("two\nlines\tand a tab"), "two lines and a tab");
    }
}
