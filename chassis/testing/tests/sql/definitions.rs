//! The constants and macros that make up statements, and what a macro becomes.

use std::collections::HashMap;
use std::path::Path;

use proc_macro2::{Group, TokenStream, TokenTree};
use syn::Expr;
use syn::visit::Visit;

use crate::sources::Source;

/// Those of all sources.
#[derive(Default)]
pub(crate) struct Definitions {
    constants: Vec<Definition<Expr>>,
    macros: Vec<Definition<TokenStream>>,
}

struct Definition<T> {
    path: String,
    name: String,
    value: T,
}

impl Definitions {
    pub(crate) fn of(sources: &[Source]) -> Self {
        let mut all = Self::default();
        for Source { path, file } in sources {
            Collector { path, all: &mut all }.visit_file(file);
        }
        all
    }

    /// The constant that this name stands for in a file.
    pub(crate) fn constant(&self, path: &str, name: &str) -> Option<&Expr> {
        find(&self.constants, path, name)
    }

    /// The expression that a call of a macro in a file becomes.
    pub(crate) fn expand(&self, path: &str, call: &syn::Macro) -> Option<Expr> {
        let name = call.path.segments.last()?.ident.to_string();
        let rules = find(&self.macros, path, &name)?;
        syn::parse2(expand(rules, &call.tokens)?).ok()
    }
}

struct Collector<'a> {
    path: &'a str,
    all: &'a mut Definitions,
}

impl Collector<'_> {
    fn add_constant(&mut self, name: &syn::Ident, value: &Expr) {
        let (path, name) = (self.path.to_owned(), name.to_string());
        self.all.constants.push(Definition { path, name, value: value.clone() });
    }
}

impl Visit<'_> for Collector<'_> {
    fn visit_item_const(&mut self, item: &syn::ItemConst) {
        self.add_constant(&item.ident, &item.expr);
    }

    fn visit_item_static(&mut self, item: &syn::ItemStatic) {
        self.add_constant(&item.ident, &item.expr);
    }

    fn visit_impl_item_const(&mut self, item: &syn::ImplItemConst) {
        self.add_constant(&item.ident, &item.expr);
    }

    fn visit_item_macro(&mut self, item: &syn::ItemMacro) {
        if let Some(name) = &item.ident {
            let (path, name) = (self.path.to_owned(), name.to_string());
            self.all.macros.push(Definition { path, name, value: item.mac.tokens.clone() });
        }
    }
}

/// The definition in the file itself, or in the nearest module around it, or else the only one in the package. Where
/// several would do, none is taken.
fn find<'a, T>(all: &'a [Definition<T>], path: &str, name: &str) -> Option<&'a T> {
    let package = |path: &str| path.split("/src/").next().map(str::to_owned);
    let named: Vec<_> =
        all.iter().filter(|found| found.name == name && package(&found.path) == package(path)).collect();
    let folders = Path::new(path).ancestors().skip(1);
    let enclosing = folders.flat_map(|folder| ["mod.rs", "lib.rs"].map(|file| folder.join(file)));
    let near = std::iter::once(path.into())
        .chain(enclosing)
        .map(|file| named.iter().filter(|found| Path::new(&found.path) == file).copied().collect::<Vec<_>>())
        .find(|found| !found.is_empty());
    match near.unwrap_or(named)[..] {
        [only] => Some(&only.value),
        _ => None,
    }
}

/// What the first rule that fits makes of the arguments.
fn expand(rules: &TokenStream, arguments: &TokenStream) -> Option<TokenStream> {
    let arguments = split(arguments.clone());
    let tokens: Vec<TokenTree> = rules.clone().into_iter().collect();
    tokens.split(|token| is_mark(token, ';')).find_map(|rule| {
        let [TokenTree::Group(pattern), _, _, TokenTree::Group(body)] = rule else { return None };
        let values = bind(&split(pattern.stream()), &arguments)?;
        Some(substitute(body.stream(), &values))
    })
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

/// What stands between commas.
fn split(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let parts = tokens.split(|token| is_mark(token, ','));
    parts.filter(|part| !part.is_empty()).map(<[_]>::to_vec).collect()
}

/// The arguments by the names that a rule has for them, if it fits: `$name:kind` takes anything, a word only itself.
fn bind(pattern: &[Vec<TokenTree>], arguments: &[Vec<TokenTree>]) -> Option<HashMap<String, TokenStream>> {
    let mut values = HashMap::new();
    if pattern.len() != arguments.len() {
        return None;
    }
    for (parameter, argument) in pattern.iter().zip(arguments) {
        let argument: TokenStream = argument.iter().cloned().collect();
        match &parameter[..] {
            [dollar, TokenTree::Ident(name), _, _] if is_mark(dollar, '$') => {
                values.insert(name.to_string(), argument);
            }
            [word] if word.to_string() == argument.to_string() => {}
            _ => return None,
        }
    }
    Some(values)
}

fn substitute(body: TokenStream, values: &HashMap<String, TokenStream>) -> TokenStream {
    let mut tokens = body.into_iter().peekable();
    let mut made = TokenStream::new();
    while let Some(token) = tokens.next() {
        let value =
            tokens.peek().filter(|_| is_mark(&token, '$')).and_then(|name| values.get(&name.to_string()));
        match (value, token) {
            (Some(value), _) => {
                made.extend(value.clone());
                tokens.next();
            }
            (None, TokenTree::Group(group)) => {
                let inner = substitute(group.stream(), values);
                made.extend([TokenTree::Group(Group::new(group.delimiter(), inner))]);
            }
            (None, token) => made.extend([token]),
        }
    }
    made
}
