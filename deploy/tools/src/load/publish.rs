//! Where results go: to the terminal, to a file as JSON, and into a document between its markers.

use serde::Serialize;

use crate::options::Place;

/// `part` names the markers in the document: `<!-- part -->` … `<!-- /part -->`.
pub fn publish(place: &Place, part: &str, report: &impl Serialize, tables: &str) -> Result<(), String> {
    println!("\n{tables}");
    if let Some(file) = &place.out {
        let json = serde_json::to_string_pretty(report).map_err(|fault| fault.to_string())?;
        std::fs::write(file, json + "\n").map_err(|fault| format!("{}: {fault}", file.display()))?;
        eprintln!("The report is in {}", file.display());
    }
    if let Some(file) = &place.readme {
        let shown = |fault: &dyn std::fmt::Display| format!("{}: {fault}", file.display());
        let document = std::fs::read_to_string(file).map_err(|fault| shown(&fault))?;
        let document = replace(&document, part, tables).map_err(|fault| shown(&fault))?;
        std::fs::write(file, document).map_err(|fault| shown(&fault))?;
        eprintln!("The tables are in {}", file.display());
    }
    Ok(())
}

fn replace(document: &str, part: &str, tables: &str) -> Result<String, String> {
    let (begin, end) = (format!("<!-- {part} -->"), format!("<!-- /{part} -->"));
    let missing = || format!("the document has no {begin} … {end}");
    let (before, rest) = document.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    Ok(format!("{before}{begin}\n\n{}\n\n{end}{after}", tables.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let document = "# A\n<!-- bench -->\nold\n<!-- /bench -->\n<!-- growth -->\n<!-- /growth -->\nend\n";
        let once = replace(document, "bench", "| new |\n").unwrap();
        assert_eq!(
            once,
            "# A\n<!-- bench -->\n\n| new |\n\n<!-- /bench -->\n<!-- growth -->\n<!-- /growth -->\nend\n"
        );
        assert_eq!(replace(&once, "bench", "| new |\n").unwrap(), once);
        assert!(replace("# A\n<!-- bench -->\n", "bench", "x").is_err());
    }
}
