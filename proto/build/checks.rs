//! Writes `impl Check` for every message that can be part of a request: required, lengths, ranges, formats, known enum
//! values. A rule that only needs the field itself is stated in the proto file and nowhere else.

use std::collections::BTreeMap;
use std::fmt::Write;

use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor,
    Value,
};

use crate::names::value_name;
use crate::options::{extension, value};

const DEFAULT_MAX_LENGTH: u64 = 255;
const FIELD_MASK: &str = "google.protobuf.FieldMask";

pub(crate) fn generate(pool: &DescriptorPool) -> Result<String, std::fmt::Error> {
    let mut reachable = BTreeMap::new();
    for service in pool.services() {
        for method in service.methods() {
            collect(&method.input(), &mut reachable);
        }
    }
    let mut code = String::new();
    for message in reachable.values() {
        write_impl(&mut code, pool, message)?;
    }
    Ok(code)
}

fn collect(message: &MessageDescriptor, reachable: &mut BTreeMap<String, MessageDescriptor>) {
    if message.full_name().starts_with("google.")
        || reachable.insert(message.full_name().to_owned(), message.clone()).is_some()
    {
        return;
    }
    for field in message.fields() {
        if let Kind::Message(inner) = field.kind() {
            collect(&inner, reachable);
        }
    }
}

fn write_impl(code: &mut String, pool: &DescriptorPool, message: &MessageDescriptor) -> std::fmt::Result {
    writeln!(code, "impl Check for {} {{", rust_path(message.full_name()))?;
    writeln!(code, "    fn check(&mut self, at: &At<'_>, mask: Option<&[String]>, faults: &mut Faults) {{")?;
    writeln!(code, "        let _ = (at, mask, &faults);")?;
    let masked = message.fields().any(|field| is_message(&field, FIELD_MASK));
    if masked {
        writeln!(code, "        let paths = self.update_mask.as_ref().map(|mask| mask.paths.clone());")?;
        // A message whose fields need no check of their own has no use for it.
        writeln!(code, "        let _ = &paths;")?;
    }
    let inner_mask = if masked { "paths.as_deref()" } else { "None" };
    for field in message.fields() {
        write_field(code, pool, &field, inner_mask)?;
    }
    writeln!(code, "    }}\n}}\n")
}

fn write_field(
    code: &mut String,
    pool: &DescriptorPool,
    field: &FieldDescriptor,
    inner_mask: &str,
) -> std::fmt::Result {
    let policy = Policy::of(pool, field);
    let name = field.name();
    let member = rust_ident(name);
    let required = policy.flag("required");
    let at = format!("&at.name({name:?})");
    if field.is_map() {
        return Ok(());
    }
    if field.cardinality() == Cardinality::Repeated {
        return write_list(code, field, &policy);
    }
    let wanted = if required { format!("wanted(mask, {name:?})") } else { "false".to_owned() };
    let optional = field.field_descriptor_proto().proto3_optional();
    let message = matches!(field.kind(), Kind::Message(_));
    if required && (optional || message) {
        writeln!(code, "        if {wanted} && self.{member}.is_none() {{ missing({at}, faults); }}")?;
    }
    match field.kind() {
        Kind::String if optional => writeln!(
            code,
            "        if let Some(value) = &mut self.{member} {{ text({at}, value, {}, {wanted}, faults); }}",
            policy.text()
        ),
        Kind::String => {
            writeln!(code, "        text({at}, &mut self.{member}, {}, {wanted}, faults);", policy.text())
        }
        Kind::Int32 | Kind::Int64 | Kind::Uint32 => {
            let range = format!("{:?}, {:?}", policy.signed("min"), policy.signed("max"));
            if optional {
                writeln!(
                    code,
                    "        if let Some(value) = self.{member} {{ whole({at}, value.into(), {range}, faults); }}"
                )
            } else {
                writeln!(code, "        whole({at}, self.{member}.into(), {range}, faults);")
            }
        }
        Kind::Uint64 => {
            let range = format!("{:?}, {:?}", policy.signed("min"), policy.signed("max"));
            let value = if optional { format!("self.{member}") } else { format!("Some(self.{member})") };
            writeln!(
                code,
                "        if let Some(value) = {value} {{ whole({at}, value.try_into().unwrap_or(i64::MAX), {range}, faults); }}"
            )
        }
        Kind::Enum(kind) => {
            let value = if optional {
                format!("self.{member}.unwrap_or_default()")
            } else {
                format!("self.{member}")
            };
            writeln!(code, "        {};", choice(&kind, &at, &value, &wanted))
        }
        Kind::Message(inner) if !inner.full_name().starts_with("google.") => writeln!(
            code,
            "        if let Some(value) = &mut self.{member} {{ value.check({at}, {inner_mask}, faults); }}"
        ),
        _ => Ok(()),
    }
}

fn write_list(code: &mut String, field: &FieldDescriptor, policy: &Policy) -> std::fmt::Result {
    let name = field.name();
    let member = rust_ident(name);
    let max = policy.number("max_items");
    if max > 0 {
        writeln!(code, "        many(&at.name({name:?}), self.{member}.len(), {max}, faults);")?;
    }
    if policy.flag("required") {
        writeln!(
            code,
            "        if wanted(mask, {name:?}) && self.{member}.is_empty() {{ missing(&at.name({name:?}), faults); }}"
        )?;
    }
    let at = format!("&at.name({name:?}).index(index)");
    let inner = match field.kind() {
        Kind::Message(inner) if !inner.full_name().starts_with("google.") => {
            format!("item.check({at}, None, faults)")
        }
        Kind::String => format!("text({at}, item, {}, false, faults)", policy.text()),
        Kind::Enum(kind) => choice(&kind, &at, "*item", "false"),
        _ => return Ok(()),
    };
    writeln!(code, "        for (index, item) in self.{member}.iter_mut().enumerate() {{ {inner}; }}")
}

/// The call that checks the value of an enum.
fn choice(kind: &EnumDescriptor, at: &str, value: &str, wanted: &str) -> String {
    let names = kind.values().filter(|v| v.number() != 0).map(|v| value_name(kind, v.name()));
    let allowed = names.collect::<Vec<_>>().join(", ");
    let path = rust_path(kind.full_name());
    format!("choice({at}, {value}, {path}::try_from({value}).is_ok(), {allowed:?}, {wanted}, faults)")
}

fn is_message(field: &FieldDescriptor, name: &str) -> bool {
    matches!(field.kind(), Kind::Message(inner) if inner.full_name() == name)
}

fn rust_path(full_name: &str) -> String {
    format!("crate::{}", full_name.replace('.', "::"))
}

fn rust_ident(name: &str) -> String {
    if matches!(name, "type" | "match" | "move" | "ref" | "use") {
        format!("r#{name}")
    } else {
        name.to_owned()
    }
}

struct Policy(Option<DynamicMessage>);

impl Policy {
    fn of(pool: &DescriptorPool, field: &FieldDescriptor) -> Self {
        Self(extension(pool, &field.options(), "admin.api.v1.field"))
    }

    fn value(&self, name: &str) -> Option<Value> {
        value(self.0.as_ref()?, name)
    }

    fn flag(&self, name: &str) -> bool {
        self.value(name).and_then(|v| v.as_bool()).unwrap_or(false)
    }

    fn number(&self, name: &str) -> u64 {
        self.value(name).and_then(|v| v.as_u32()).unwrap_or(0).into()
    }

    fn signed(&self, name: &str) -> Option<i64> {
        self.value(name).and_then(|v| v.as_i64())
    }

    fn text(&self) -> String {
        let max = match self.number("max_length") {
            0 => DEFAULT_MAX_LENGTH,
            max => max,
        };
        let format = match self.value("format").and_then(|v| v.as_enum_number()).unwrap_or(0) {
            1 => "Syntax::Date".to_owned(),
            2 => "Syntax::DateOrTime".to_owned(),
            3 => format!("Syntax::Decimal {{ scale: {} }}", self.number("scale")),
            4 => "Syntax::Json".to_owned(),
            5 => "Syntax::Percentage".to_owned(),
            // A document is for its own parser to check.
            _ => "Syntax::Free".to_owned(),
        };
        format!("&Text {{ max: {max}, trim: {}, syntax: {format} }}", self.flag("trim"))
    }
}
