//! The derive `FromRow`. It is for rows of Postgres only, so its code is made once, in the crate of the struct, and not
//! in each crate that reads one.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Data, DataStruct, DeriveInput, Error, Fields, Ident, LitStr, Result, Token};

/// Why a field is not simply read from the column with its name.
enum Exception {
    Rename(LitStr),
    Default,
    Json,
    Flatten,
    Skip,
}

impl Parse for Exception {
    fn parse(input: ParseStream) -> Result<Self> {
        let word: Ident = input.parse()?;
        let exception = match word.to_string().as_str() {
            "rename" => {
                input.parse::<Token![=]>()?;
                Self::Rename(input.parse()?)
            }
            "default" => Self::Default,
            "json" => Self::Json,
            "flatten" => Self::Flatten,
            "skip" => Self::Skip,
            _ => return Err(Error::new(word.span(), "this is not rename, default, json, flatten or skip")),
        };
        if input.is_empty() { Ok(exception) } else { Err(input.error("a field has one exception")) }
    }
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(DataStruct { fields: Fields::Named(fields), .. }) = &input.data else {
        return Err(Error::new(input.ident.span(), "only a struct with named fields is read from a row"));
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &input.generics,
            "a struct that is read from a row has no parameters",
        ));
    }
    if let Some(attribute) = exceptions(&input.attrs).next() {
        return Err(Error::new_spanned(attribute, "exceptions are those of a field"));
    }
    let named = fields.named.iter().filter_map(|field| Some((field.ident.as_ref()?, &field.attrs)));
    let fields = named.map(|(name, attributes)| read(name, attributes)).collect::<Result<Vec<_>>>()?;
    let name = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl<'r> ::sqlx::FromRow<'r, ::sqlx::postgres::PgRow> for #name {
            fn from_row(row: &'r ::sqlx::postgres::PgRow) -> ::sqlx::Result<Self> {
                ::core::result::Result::Ok(Self { #(#fields),* })
            }
        }
    })
}

/// A field with its value.
fn read(name: &Ident, attributes: &[Attribute]) -> Result<TokenStream> {
    // What the compiler says of a type that cannot be read points at the field.
    let span = Span::call_site().located_at(name.span());
    let column = |name: &LitStr| quote_spanned!(span=> ::sqlx::Row::try_get(row, #name));
    let own = LitStr::new(&name.unraw().to_string(), name.span());
    let value = match exception(attributes)? {
        None => {
            let column = column(&own);
            quote_spanned!(span=> #column?)
        }
        Some(Exception::Rename(other)) => {
            let column = column(&other);
            quote_spanned!(span=> #column?)
        }
        Some(Exception::Default) => {
            let column = column(&own);
            quote_spanned! {span=>
                match #column {
                    ::core::result::Result::Err(::sqlx::Error::ColumnNotFound(_)) => {
                        ::core::default::Default::default()
                    }
                    read => read?,
                }
            }
        }
        Some(Exception::Json) => {
            quote_spanned!(span=> ::sqlx::Row::try_get::<::sqlx::types::Json<_>, _>(row, #own)?.0)
        }
        Some(Exception::Flatten) => quote_spanned!(span=> ::sqlx::FromRow::from_row(row)?),
        Some(Exception::Skip) => quote_spanned!(span=> ::core::default::Default::default()),
    };
    Ok(quote!(#name: #value))
}

fn exception(attributes: &[Attribute]) -> Result<Option<Exception>> {
    let mut all = exceptions(attributes);
    let first = all.next().map(Attribute::parse_args).transpose()?;
    match all.next() {
        Some(second) => Err(Error::new_spanned(second, "a field has one exception")),
        None => Ok(first),
    }
}

fn exceptions(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("sqlx"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str) -> Result<String> {
        super::expand(&syn::parse_str(text).unwrap()).map(|code| code.to_string())
    }

    /// What the only field of a struct is read with.
    fn value(field: &str) -> String {
        let code = expand(&format!("struct A {{ {field} }}")).unwrap();
        let (_, value) = code.split_once("Self { a : ").unwrap();
        value.split_once(" }) } }").unwrap().0.replace(' ', "")
    }

    fn fault(text: &str) -> String {
        expand(text).unwrap_err().to_string()
    }

    #[test]
    fn a_field_is_read_from_the_column_with_its_name() {
        assert_eq!(value("a: u8"), r#"::sqlx::Row::try_get(row,"a")?"#);
        let code = expand("pub struct A { pub a: Vec<u8>, r#type: B }").unwrap().replace(' ', "");
        assert!(code.contains("for A{") || code.contains("forA{"), "{code}");
        assert!(code.contains(r#"r#type:::sqlx::Row::try_get(row,"type")?"#), "{code}");
    }

    #[test]
    fn each_exception_changes_how_a_field_is_read() {
        assert_eq!(value(r#"#[sqlx(rename = "b")] a: u8"#), r#"::sqlx::Row::try_get(row,"b")?"#);
        let json = r#"::sqlx::Row::try_get::<::sqlx::types::Json<_>,_>(row,"a")?.0"#;
        assert_eq!(value("#[sqlx(json)] a: B"), json);
        assert_eq!(value("#[sqlx(flatten)] a: B"), "::sqlx::FromRow::from_row(row)?");
        assert_eq!(value("#[sqlx(skip)] a: u8"), "::core::default::Default::default()");
        let default = value("/// A comment.\n #[sqlx(default)] a: u8");
        assert!(default.starts_with(r#"match::sqlx::Row::try_get(row,"a"){"#), "{default}");
        assert!(default.contains("ColumnNotFound(_))=>{::core::default::Default::default()}"), "{default}");
    }

    #[test]
    fn what_nobody_uses_is_refused() {
        for other in ["struct A(u8);", "struct A;", "enum A { B }", "union A { a: u8 }"] {
            assert_eq!(fault(other), "only a struct with named fields is read from a row", "{other}");
        }
        for parameters in ["struct A<T> { a: T }", "struct A<'a> { a: &'a str }"] {
            assert_eq!(fault(parameters), "a struct that is read from a row has no parameters");
        }
        let of_all = r#"#[sqlx(rename_all = "camelCase")] struct A { a: u8 }"#;
        assert_eq!(fault(of_all), "exceptions are those of a field");
        let unknown = r#"struct A { #[sqlx(try_from = "u8")] a: u16 }"#;
        assert_eq!(fault(unknown), "this is not rename, default, json, flatten or skip");
        for two in ["#[sqlx(default, json)]", "#[sqlx(default)] #[sqlx(json)]", "#[sqlx(json(nullable))]"] {
            assert_eq!(fault(&format!("struct A {{ {two} a: u8 }}")), "a field has one exception", "{two}");
        }
        assert!(expand("struct A { #[sqlx] a: u8 }").is_err());
        assert!(expand("struct A { #[sqlx()] a: u8 }").is_err());
    }
}
