//! The macro `migrations`. It reads the names of the files only: their texts are included by the compiler, and what sqlx
//! derives from a text, its checksum above all, which databases have recorded, sqlx derives itself.

use std::fs;
use std::path::Path;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, LitStr, Result};

/// A file in the folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Migration {
    version: i64,
    description: String,
    file: String,
}

pub(crate) fn expand(folder: &LitStr) -> Result<TokenStream> {
    let failed = |explanation: String| Error::new(folder.span(), explanation);
    let package =
        std::env::var_os("CARGO_MANIFEST_DIR").ok_or_else(|| failed("cargo names no package".to_owned()))?;
    let path = Path::new(&package).join(folder.value());
    let names = names(&path).map_err(|error| failed(format!("{}: {error}", path.display())))?;
    let migrations = migrations(names).map_err(failed)?;
    let migrations = migrations.iter().map(|Migration { version, description, file }| {
        quote!((#version, #description, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", #folder, "/", #file))))
    });
    Ok(quote! {{
        const MIGRATIONS: &[(i64, &str, &str)] = &[#(#migrations),*];
        let migrations = MIGRATIONS.iter().map(|&(version, description, sql)| {
            ::sqlx::migrate::Migration::new(
                version,
                ::std::borrow::Cow::Borrowed(description),
                ::sqlx::migrate::MigrationType::Simple,
                ::sqlx::SqlStr::from_static(sql),
                sql.starts_with("-- no-transaction"),
            )
        });
        ::sqlx::migrate::Migrator::with_migrations(migrations.collect())
    }})
}

/// The names of the files in a folder.
fn names(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// Those of these files that are migrations, in their order.
fn migrations(files: Vec<String>) -> std::result::Result<Vec<Migration>, String> {
    let mut migrations = Vec::new();
    for file in files {
        let Some(name) = file.strip_suffix(".sql") else { continue };
        let (version, description) = name
            .split_once('_')
            .and_then(|(version, name)| Some((version.parse().ok()?, name)))
            .filter(|(_, name): &(_, &str)| !name.contains('.'))
            .ok_or_else(|| format!("{file} is not named NNNN_name.sql"))?;
        migrations.push(Migration { version, description: description.replace('_', " "), file });
    }
    migrations.sort();
    match migrations.iter().zip(migrations.iter().skip(1)).find(|(one, next)| one.version == next.version) {
        Some((one, next)) => Err(format!("{} and {} have the same version", one.file, next.file)),
        None => Ok(migrations),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[&str]) -> std::result::Result<Vec<Migration>, String> {
        migrations(files.iter().map(|&file| file.to_owned()).collect())
    }

    #[test]
    fn versions_are_numbers_and_give_the_order() {
        let read = read(&["10000_c.sql", "0020_b_and_b.sql", "README.md", "1001_a.sql~"]).unwrap();
        let expected = [(20, "b and b", "0020_b_and_b.sql"), (10000, "c", "10000_c.sql")];
        let expected = expected.map(|(version, description, file)| Migration {
            version,
            description: description.to_owned(),
            file: file.to_owned(),
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn a_file_that_would_not_be_applied_is_refused() {
        for file in ["tables.sql", "a_tables.sql", "1001-tables.sql", "1001_a.up.sql", "1001_a.down.sql"] {
            assert_eq!(read(&[file]).unwrap_err(), format!("{file} is not named NNNN_name.sql"));
        }
        let twice = read(&["1001_b.sql", "1001_a.sql"]).unwrap_err();
        assert_eq!(twice, "1001_a.sql and 1001_b.sql have the same version");
    }
}
