//! The texts that an expression of the sources can be, as far as they are known without running the program.

use std::collections::HashMap;

use syn::punctuated::Punctuated;
use syn::{Block, Expr, Lit, Stmt, Token};

use crate::definitions::Definitions;

/// How the sources mark a statement that is made while the program runs.
const DYNAMIC: &str = "AssertSqlSafe";

/// Several where the expression chooses between them.
pub(crate) type Texts = Result<Vec<String>, NotStatic>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotStatic {
    /// It is marked as made while the program runs.
    Dynamic,
    /// It is not marked, but cannot be followed to a text.
    Unresolved,
}

/// Follows the expressions of one file.
pub(crate) struct Resolver<'a> {
    path: &'a str,
    definitions: &'a Definitions,
    /// The local variables that are in sight, innermost last.
    scopes: Vec<HashMap<String, Texts>>,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(path: &'a str, definitions: &'a Definitions) -> Self {
        Self { path, definitions, scopes: vec![HashMap::new()] }
    }

    /// Begins a part of the file whose variables nothing outside sees.
    pub(crate) fn open_scope(&mut self) {
        self.scopes.push(HashMap::new());
    }

    pub(crate) fn close_scope(&mut self) {
        self.scopes.pop();
    }

    /// A new variable, which hides one of the same name.
    pub(crate) fn declare(&mut self, name: &syn::Ident, texts: Texts) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_string(), texts);
        }
    }

    pub(crate) fn resolve(&self, expression: &Expr) -> Texts {
        match expression {
            Expr::Lit(literal) => text_of(&literal.lit).map(|text| vec![text]),
            Expr::Macro(call) => self.resolve_macro(&call.mac),
            Expr::Path(path) => self.look_up(&path.path),
            Expr::If(choice) => {
                let (_, otherwise) = choice.else_branch.as_ref().ok_or(NotStatic::Unresolved)?;
                Ok([self.resolve_block(&choice.then_branch)?, self.resolve(otherwise)?].concat())
            }
            Expr::Match(choice) => self.resolve_each(choice.arms.iter().map(|arm| &*arm.body)),
            Expr::Array(all) => self.resolve_each(&all.elems),
            Expr::Block(block) => self.resolve_block(&block.block),
            Expr::Paren(inner) => self.resolve(&inner.expr),
            Expr::Group(inner) => self.resolve(&inner.expr),
            Expr::Reference(inner) => self.resolve(&inner.expr),
            Expr::Call(call) if is_dynamic(&call.func) => Err(NotStatic::Dynamic),
            _ => Err(NotStatic::Unresolved),
        }
    }

    fn resolve_each<'e>(&self, expressions: impl IntoIterator<Item = &'e Expr>) -> Texts {
        let texts: Result<Vec<_>, _> = expressions.into_iter().map(|each| self.resolve(each)).collect();
        Ok(texts?.concat())
    }

    /// A block that is nothing but a value.
    fn resolve_block(&self, block: &Block) -> Texts {
        match &block.stmts[..] {
            [Stmt::Expr(expression, None)] => self.resolve(expression),
            [Stmt::Macro(call)] if call.semi_token.is_none() => self.resolve_macro(&call.mac),
            _ => Err(NotStatic::Unresolved),
        }
    }

    fn resolve_macro(&self, call: &syn::Macro) -> Texts {
        if call.path.is_ident("concat") {
            let parts = arguments(call).ok_or(NotStatic::Unresolved)?;
            return Ok(vec![self.resolve_each(&parts)?.concat()]);
        }
        let expanded = self.definitions.expand(self.path, call);
        self.resolve(&expanded.ok_or(NotStatic::Unresolved)?)
    }

    fn look_up(&self, path: &syn::Path) -> Texts {
        let name = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let local = self.scopes.iter().rev().find_map(|scope| scope.get(&name));
        match local.filter(|_| path.get_ident().is_some()) {
            Some(texts) => texts.clone(),
            None => self.resolve(self.definitions.constant(self.path, &name).ok_or(NotStatic::Unresolved)?),
        }
    }
}

/// The arguments of a macro that takes expressions.
pub(crate) fn arguments(call: &syn::Macro) -> Option<Punctuated<Expr, Token![,]>> {
    call.parse_body_with(Punctuated::parse_terminated).ok()
}

fn text_of(literal: &Lit) -> Result<String, NotStatic> {
    match literal {
        Lit::Str(text) => Ok(text.value()),
        Lit::Int(number) => Ok(number.base10_digits().to_owned()),
        _ => Err(NotStatic::Unresolved),
    }
}

fn is_dynamic(function: &Expr) -> bool {
    matches!(function, Expr::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == DYNAMIC))
}
