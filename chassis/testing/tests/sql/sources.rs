//! The sources of the product and its migrations, without what only tests use.

use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

/// The folders of the programs, each with the schema that its statements run in.
pub(crate) const PROGRAMS: [(&str, &str); 7] = [
    ("gateway", "gateway"),
    ("svc-relations", "relations"),
    ("svc-automation", "automation"),
    ("svc-billing", "billing"),
    ("svc-crm", "crm"),
    ("svc-work", "work"),
    ("svc-support", "support"),
];
/// What all programs share; its statements run in each of their schemas.
const SHARED: &str = "chassis";

/// A Rust file.
pub(crate) struct Source {
    /// Its path in the checkout.
    pub path: String,
    pub file: syn::File,
}

impl Source {
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        let mut file = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        file.items.retain(|item| !matches!(item, syn::Item::Mod(module) if is_test(module)));
        Self { path: path.to_owned(), file }
    }

    /// Every text in quotation marks, those among the arguments and in the rules of macros too.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut literals = Literals::default();
        literals.visit_file(&self.file);
        literals.found
    }
}

fn is_test(module: &syn::ItemMod) -> bool {
    let is_test = |list: &syn::MetaList| list.path.is_ident("cfg") && list.tokens.to_string() == "test";
    module.attrs.iter().any(|attribute| attribute.meta.require_list().is_ok_and(is_test))
}

#[derive(Default)]
struct Literals {
    found: Vec<String>,
}

impl Literals {
    /// Macros are not expanded: a text in one is read where it is written.
    fn read(&mut self, tokens: TokenStream) {
        let mut before = None;
        for token in tokens {
            match &token {
                TokenTree::Literal(literal) => self.found.extend(text_of(literal)),
                // A comment on a rule or a field is an attribute.
                TokenTree::Group(_) if before == Some('#') => {}
                TokenTree::Group(group) => self.read(group.stream()),
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
            before = if let TokenTree::Punct(mark) = token { Some(mark.as_char()) } else { None };
        }
    }
}

fn text_of(literal: &proc_macro2::Literal) -> Option<String> {
    match syn::Lit::new(literal.clone()) {
        syn::Lit::Str(text) => Some(text.value()),
        _ => None,
    }
}

impl Visit<'_> for Literals {
    /// Comments are attributes as well.
    fn visit_attribute(&mut self, _: &syn::Attribute) {}

    fn visit_lit_str(&mut self, text: &syn::LitStr) {
        self.found.push(text.value());
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        self.read(call.tokens.clone());
    }
}

/// The checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// All Rust files of the product.
pub(crate) fn sources() -> Vec<Source> {
    let files = files("rs");
    files.iter().map(|path| Source::parse(path, &read(path))).collect()
}

/// The path and the text of each migration.
pub(crate) fn migrations() -> Vec<(String, String)> {
    let files = files("sql");
    files.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn files(extension: &str) -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    for folder in PROGRAMS.iter().map(|(folder, _)| *folder).chain([SHARED]) {
        walk(&root.join(folder), extension, &mut found);
    }
    found.sort();
    found.iter().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect()
}

fn walk(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_test = ["testing", "tests", "examples"].contains(&name.as_str()) || name.ends_with("tests.rs");
        if is_test || name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            walk(&path, extension, found);
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
}

#[test]
fn a_text_is_read_wherever_it_is_written() {
    let source = Source::parse(
        "a.rs",
        r##"
        /// Not "this".
        fn a() {
            let a = "select now()"; // "nor this"
            let b = r#"a "b" c"#;
            let c = ('"', b"bytes", format!("x \" {a}", f("in a call")));
        }
        macro_rules! columns {
            () => { /** Nor this. */ concat!("id, ", "name") };
        }
        #[cfg(test)]
        mod tests {
            const D: &str = "of a test";
        }
        "##,
    );
    let texts = ["select now()", "a \"b\" c", "x \" {a}", "in a call", "id, ", "name"];
    assert_eq!(source.texts(), texts);
}
