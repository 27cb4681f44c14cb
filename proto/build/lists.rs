//! Writes `impl ListRequest` for every request for a page of a list, and refuses one that lacks what all lists take.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;

use prost_reflect::{DescriptorPool, Kind, MessageDescriptor, MethodDescriptor};

use crate::options::{extension, text};

/// The texts that every such request has, besides its ids.
const TEXTS: [&str; 6] = ["created_from", "created_to", "updated_from", "updated_to", "sort", "order"];

pub(crate) fn generate(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let mut requests = BTreeMap::new();
    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        let request = method.input();
        if request.get_field_by_name("page").is_some() {
            let below_a_record = names_a_record(pool, &method);
            requests.insert(request.full_name().to_owned(), (request, below_a_record));
        }
    }
    let mut code = String::new();
    for (request, below_a_record) in requests.values() {
        write_impl(&mut code, request, *below_a_record)?;
    }
    Ok(code)
}

/// Whether the path has the id of a record, as that of a project before its hours. The name is taken then, so such a list
/// cannot be restricted to ids.
fn names_a_record(pool: &DescriptorPool, method: &MethodDescriptor) -> bool {
    let rule = extension(pool, &method.options(), "google.api.http");
    rule.is_some_and(|rule| text(&rule, "get").contains("{id}"))
}

fn write_impl(
    code: &mut String,
    request: &MessageDescriptor,
    below_a_record: bool,
) -> Result<(), Box<dyn Error>> {
    let name = request.full_name();
    let has_text = |name: &str| {
        let field = request.get_field_by_name(name);
        field.is_some_and(|field| field.kind() == Kind::String && !field.is_list())
    };
    let missing: Vec<&str> = TEXTS.into_iter().filter(|name| !has_text(name)).collect();
    if !missing.is_empty() {
        return Err(format!("{name} has a page, but not as texts: {}", missing.join(", ")).into());
    }
    let has_ids =
        request.get_field_by_name("id").is_some_and(|field| field.kind() == Kind::String && field.is_list());
    if !has_ids && !below_a_record {
        return Err(format!("{name} has a page, but no `repeated string id`").into());
    }
    writeln!(code, "impl ListRequest for crate::{} {{", name.replace('.', "::"))?;
    let ids = if has_ids { "&self.id" } else { "&[]" };
    writeln!(code, "    fn ids(&self) -> &[String] {{ {ids} }}")?;
    for name in TEXTS {
        writeln!(code, "    fn {name}(&self) -> &str {{ &self.{name} }}")?;
    }
    writeln!(code, "}}\n")?;
    Ok(())
}
