//! What the compiler writes about the database: how a row becomes a struct, and the migrations inside a program.
//!
//! Owns the derive [`FromRow`](derive@FromRow) and the macro [`migrations!`]. Names sqlx in the code that it writes and
//! must not depend on it, or sqlx would be compiled twice: for the programs, and for the machine that builds them. Does
//! not know a table or a service. What nobody here uses is an error, and no guess.

mod migrations;
mod row;

use proc_macro::TokenStream;

/// Implements `sqlx::FromRow` for rows of Postgres: each field of a struct is read from the column with its name.
///
/// A field can have one exception:
///
/// - `#[sqlx(rename = "type")]`: the column has this name.
/// - `#[sqlx(default)]`: when there is no such column, the field has the default of its type.
/// - `#[sqlx(json)]`: the column is JSON or JSONB, and the field is what serde reads from it.
/// - `#[sqlx(flatten)]`: the field is itself read from the row.
/// - `#[sqlx(skip)]`: no column is read, the field has the default of its type.
#[proc_macro_derive(FromRow, attributes(sqlx))]
pub fn from_row(input: TokenStream) -> TokenStream {
    written(syn::parse2(input.into()).and_then(|input| row::expand(&input)))
}

/// A `sqlx::migrate::Migrator` with the migrations in a folder of the package: `migrations!("migrations")`.
///
/// They are the files `NNNN_name.sql`, and what sqlx makes of them when it reads the folder as a program runs. A changed
/// file is compiled in again. Cargo does not notice a new one: that takes a change of any other file of the crate.
#[proc_macro]
pub fn migrations(input: TokenStream) -> TokenStream {
    written(syn::parse2(input.into()).and_then(|folder| migrations::expand(&folder)))
}

fn written(code: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    code.unwrap_or_else(syn::Error::into_compile_error).into()
}
