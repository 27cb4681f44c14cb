//! Reads our options while the contract is being built, when their generated types do not exist yet.

use prost_reflect::{DescriptorPool, DynamicMessage, Kind, ReflectMessage, Value};

pub(crate) fn extension(
    pool: &DescriptorPool,
    options: &DynamicMessage,
    name: &str,
) -> Option<DynamicMessage> {
    let extension = pool.get_extension_by_name(name)?;
    let has = options.has_extension(&extension);
    has.then(|| options.get_extension(&extension).as_message().cloned()).flatten()
}

/// A field that was set.
pub(crate) fn value(message: &DynamicMessage, name: &str) -> Option<Value> {
    let field = message.descriptor().get_field_by_name(name)?;
    message.has_field(&field).then(|| message.get_field(&field).into_owned())
}

pub(crate) fn text(message: &DynamicMessage, name: &str) -> String {
    value(message, name).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

pub(crate) fn texts(message: &DynamicMessage, name: &str) -> Vec<String> {
    let list = value(message, name).and_then(|value| value.as_list().map(<[Value]>::to_vec));
    list.unwrap_or_default().iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

pub(crate) fn number(message: &DynamicMessage, name: &str) -> u32 {
    value(message, name).and_then(|value| value.as_u32()).unwrap_or_default()
}

pub(crate) fn flag(message: &DynamicMessage, name: &str) -> bool {
    value(message, name).and_then(|value| value.as_bool()).unwrap_or_default()
}

/// The full name of an enum value, for example `ACCESS_KEY`.
pub(crate) fn enum_name(message: &DynamicMessage, name: &str) -> Option<String> {
    let Kind::Enum(kind) = message.descriptor().get_field_by_name(name)?.kind() else { return None };
    let number = value(message, name)?.as_enum_number()?;
    Some(kind.get_value(number)?.name().to_owned())
}
