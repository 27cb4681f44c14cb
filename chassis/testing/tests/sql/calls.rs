//! The calls that run SQL, and the statements that they run.

use std::collections::BTreeSet;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Expr, Member, Pat, UseTree};

use crate::definitions::Definitions;
use crate::sources::Source;
use crate::texts::{NotStatic, Resolver, Texts, arguments};

/// The functions of sqlx that take a statement first.
const FUNCTIONS: [&str; 7] =
    ["query", "query_with", "query_as", "query_as_with", "query_scalar", "query_scalar_with", "raw_sql"];
/// The fields of a scan that are statements, with the types of their parameters. A worker runs them; an empty one is none.
const OF_A_SCAN: [(&str, &[&str]); 2] = [
    ("causes", &["uuid", "timestamptz", "date", "integer", "uuid[]", "timestamptz[]"]),
    ("lock", &["uuid", "uuid[]", "text[]"]),
];

/// A call of one of those functions, or such a field.
#[derive(Debug)]
pub(crate) struct Call {
    pub line: usize,
    pub statements: Texts,
    /// The types of the parameters; empty where Postgres finds them by what they are compared with.
    pub parameters: &'static [&'static str],
}

pub(crate) fn calls(source: &Source, definitions: &Definitions) -> Vec<Call> {
    let resolver = Resolver::new(&source.path, definitions);
    let mut reader = Reader { resolver, imported: BTreeSet::new(), calls: Vec::new() };
    reader.visit_file(&source.file);
    reader.calls
}

struct Reader<'a> {
    resolver: Resolver<'a>,
    /// The names by which the file calls the functions without their path.
    imported: BTreeSet<String>,
    calls: Vec<Call>,
}

impl Reader<'_> {
    fn runs_sql(&self, path: &syn::Path) -> bool {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        match &names[..] {
            [name] => self.imported.contains(name),
            [first, .., name] => first == "sqlx" && FUNCTIONS.contains(&name.as_str()),
            [] => false,
        }
    }

    /// Whether a macro whose arguments are not read has the name of such a function in it.
    fn may_run_sql(&self, call: &syn::Macro) -> bool {
        let words = words(call.tokens.clone());
        let named = words.contains("sqlx") && FUNCTIONS.iter().any(|function| words.contains(*function));
        named || !words.is_disjoint(&self.imported)
    }

    /// Remembers the functions among what the file takes from sqlx.
    fn import(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Name(name) => self.import_as(&name.ident, &name.ident),
            UseTree::Rename(name) => self.import_as(&name.ident, &name.rename),
            UseTree::Glob(_) => self.imported.extend(FUNCTIONS.map(str::to_owned)),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(tree)),
            UseTree::Path(_) => {}
        }
    }

    fn import_as(&mut self, function: &syn::Ident, name: &syn::Ident) {
        if FUNCTIONS.iter().any(|known| function == known) {
            self.imported.insert(name.to_string());
        }
    }

    fn found(&mut self, at: Span, statements: Texts) {
        self.calls.push(Call { line: at.start().line, statements, parameters: &[] });
    }

    /// Reads a part of the file that has its own variables.
    fn enter(&mut self, read: impl FnOnce(&mut Self)) {
        self.resolver.open_scope();
        read(self);
        self.resolver.close_scope();
    }
}

fn words(tokens: TokenStream) -> BTreeSet<String> {
    let words = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Ident(word) => BTreeSet::from([word.to_string()]),
        TokenTree::Group(group) => words(group.stream()),
        TokenTree::Literal(_) | TokenTree::Punct(_) => BTreeSet::new(),
    });
    words.collect()
}

impl Visit<'_> for Reader<'_> {
    fn visit_use_path(&mut self, path: &syn::UsePath) {
        if path.ident == "sqlx" {
            self.import(&path.tree);
        }
    }

    fn visit_expr_call(&mut self, call: &syn::ExprCall) {
        let Expr::Path(function) = &*call.func else { return visit::visit_expr_call(self, call) };
        match call.args.first().filter(|_| self.runs_sql(&function.path)) {
            Some(statement) => {
                let statements = self.resolver.resolve(statement);
                self.found(call.span(), statements);
                for argument in &call.args {
                    self.visit_expr(argument);
                }
            }
            None => visit::visit_expr_call(self, call),
        }
    }

    fn visit_expr_struct(&mut self, value: &syn::ExprStruct) {
        let is_scan = value.path.segments.last().is_some_and(|last| last.ident == "Scan");
        for field in value.fields.iter().filter(|_| is_scan) {
            let Member::Named(name) = &field.member else { continue };
            let Some((_, parameters)) = OF_A_SCAN.iter().find(|(statement, _)| name == statement) else {
                continue;
            };
            let statements = self.resolver.resolve(&field.expr);
            if statements != Ok(vec![String::new()]) {
                self.calls.push(Call { line: field.span().start().line, statements, parameters });
            }
        }
        visit::visit_expr_struct(self, value);
    }

    /// Such a function that is handed on is called with what nobody sees here.
    fn visit_expr_path(&mut self, path: &syn::ExprPath) {
        if self.runs_sql(&path.path) {
            self.found(path.span(), Err(NotStatic::Unresolved));
        }
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        match arguments(call) {
            Some(arguments) => {
                for argument in &arguments {
                    Visit::visit_expr(self, argument);
                }
            }
            None if self.may_run_sql(call) => self.found(call.span(), Err(NotStatic::Unresolved)),
            None => {}
        }
    }

    fn visit_local(&mut self, local: &syn::Local) {
        // Before the variable is declared: the value may be made from one of the same name.
        let texts = local.init.as_ref().map(|init| self.resolver.resolve(&init.expr));
        visit::visit_local(self, local);
        let pattern = if let Pat::Type(typed) = &local.pat { &*typed.pat } else { &local.pat };
        if let (Pat::Ident(variable), Some(texts)) = (pattern, texts)
            && variable.mutability.is_none()
        {
            self.resolver.declare(&variable.ident, texts);
        }
    }

    /// A variable of any pattern hides one of the same name outside.
    fn visit_pat_ident(&mut self, variable: &syn::PatIdent) {
        self.resolver.declare(&variable.ident, Err(NotStatic::Unresolved));
    }

    fn visit_item_fn(&mut self, function: &syn::ItemFn) {
        self.enter(|reader| visit::visit_item_fn(reader, function));
    }

    fn visit_impl_item_fn(&mut self, function: &syn::ImplItemFn) {
        self.enter(|reader| visit::visit_impl_item_fn(reader, function));
    }

    fn visit_block(&mut self, block: &syn::Block) {
        self.enter(|reader| visit::visit_block(reader, block));
    }

    fn visit_expr_closure(&mut self, closure: &syn::ExprClosure) {
        self.enter(|reader| visit::visit_expr_closure(reader, closure));
    }

    fn visit_expr_if(&mut self, choice: &syn::ExprIf) {
        self.enter(|reader| visit::visit_expr_if(reader, choice));
    }

    fn visit_expr_for_loop(&mut self, all: &syn::ExprForLoop) {
        let texts = self.resolver.resolve(&all.expr);
        self.visit_expr(&all.expr);
        self.enter(|reader| {
            reader.visit_pat(&all.pat);
            if let Pat::Ident(variable) = &*all.pat {
                reader.resolver.declare(&variable.ident, texts);
            }
            reader.visit_block(&all.body);
        });
    }

    fn visit_arm(&mut self, arm: &syn::Arm) {
        self.enter(|reader| visit::visit_arm(reader, arm));
    }
}
