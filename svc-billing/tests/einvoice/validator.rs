//! The official rules (UBL schema, EN 16931, Peppol) as a judge from outside.
//!
//! `EINVOICE_VALIDATOR` names the folder of the validator; a relative path starts at the root of the workspace.
//! Without it the tests that need it say so and end. Its Python tools are those of `deploy/requirements.txt`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The fatal findings and the warnings of each document, by the names it was given.
pub(crate) type Findings = BTreeMap<String, Vec<String>>;

/// Judges all documents in one run, because starting the validator takes longer than a hundred documents. `None` when
/// there is no validator here.
pub(crate) fn judge(test: &str, documents: &BTreeMap<String, Vec<u8>>) -> Option<Findings> {
    let folder = folder().or_else(|| skip(test))?;
    let place = tempfile::tempdir().expect("a folder for the documents");
    for (name, xml) in documents {
        std::fs::write(place.path().join(format!("{name}.xml")), xml).expect("to write a document");
    }
    let output = Command::new(python())
        .arg(folder.join("validate.py"))
        .arg("--json")
        .args(documents.keys().map(|name| format!("{name}.xml")))
        .current_dir(place.path())
        .output()
        .expect("to run the validator");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("the validator did not answer ({error}): {}", String::from_utf8_lossy(&output.stderr))
    });
    let findings = documents.keys().map(|name| (name.clone(), of_document(&report[format!("{name}.xml")])));
    Some(findings.collect())
}

fn of_document(report: &serde_json::Value) -> Vec<String> {
    let findings = report["findings"].as_array().expect("a report on each document");
    findings
        .iter()
        .map(|one| format!("{} {} {}", text(one, "flag"), text(one, "id"), text(one, "text")))
        .collect()
}

fn text<'a>(finding: &'a serde_json::Value, key: &str) -> &'a str {
    finding[key].as_str().unwrap_or_default()
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn folder() -> Option<PathBuf> {
    let path = std::env::var_os("EINVOICE_VALIDATOR").filter(|path| !path.is_empty())?;
    let folder = workspace().join(path);
    folder.is_dir().then_some(folder)
}

fn skip<T>(test: &str) -> Option<T> {
    let reason = "the e-invoice validator is missing (EINVOICE_VALIDATOR names its folder)";
    // Not by eprintln, which is not shown of a test that passes.
    writeln!(std::io::stderr(), "SKIPPED {test}: {reason}").expect("to say that a test is skipped");
    if let Some(file) = std::env::var_os("TEST_SKIP_FILE") {
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .expect("the file of skipped tests");
        writeln!(file, "{test}: {reason}").expect("to say that a test is skipped");
    }
    None
}

/// Python with the tools; they are installed when they are not there yet.
fn python() -> PathBuf {
    let workspace = workspace();
    let installed = Command::new("bash")
        .args(["-c", ". deploy/lib.sh && python_tools"])
        .current_dir(&workspace)
        .status()
        .expect("to run bash");
    assert!(installed.success(), "the tools of deploy/requirements.txt cannot be installed");
    workspace.join(".local/venv/bin/python")
}
