//! Writes the tables that every process needs at run time, so that a service need not read the descriptor: its rpcs
//! with who may call them and what they answer with, the fields that are secret, and the problems of the contract.

use std::collections::BTreeMap;
use std::fmt::Write;

use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};

use crate::names::snake;
use crate::options::{enum_name, extension, flag, number, text, texts};

pub(crate) fn generate(pool: &DescriptorPool) -> Result<String, std::fmt::Error> {
    let mut code = String::new();
    write_rpcs(&mut code, pool)?;
    write_answers(&mut code, pool)?;
    write_secrets(&mut code, pool)?;
    write_secret_answers(&mut code, pool)?;
    write_versions(&mut code, pool)?;
    write_problems(&mut code, pool)?;
    Ok(code)
}

fn write_rpcs(code: &mut String, pool: &DescriptorPool) -> std::fmt::Result {
    writeln!(code, "/// Every rpc of the contract.\npub static RPCS: &[Rpc] = &[")?;
    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        let policy = extension(pool, &method.options(), "admin.api.v1.method");
        let access = policy.as_ref().and_then(|policy| enum_name(policy, "access")).unwrap_or_default();
        let scope = policy.as_ref().map(|policy| text(policy, "scope")).unwrap_or_default();
        let text_of = |name| policy.as_ref().map(|policy| text(policy, name)).unwrap_or_default();
        let (and_scope, or_scope) = (text_of("and_scope"), text_of("or_scope"));
        let is_set = |name| policy.as_ref().is_some_and(|policy| flag(policy, name));
        let (internal, cannot_rehearse) = (is_set("internal"), is_set("cannot_rehearse"));
        writeln!(
            code,
            "    Rpc {{ path: \"/{}/{}\", access: {}, scope: {scope:?}, and_scope: {and_scope:?}, \
             or_scope: {or_scope:?}, internal: {internal}, cannot_rehearse: {cannot_rehearse} }},",
            method.parent_service().full_name(),
            method.name(),
            match access.as_str() {
                "ACCESS_KEY" => "Access::Key",
                "ACCESS_PUBLIC" => "Access::Public",
                "ACCESS_MESH" => "Access::Mesh",
                "ACCESS_CREDENTIAL" => "Access::Credential",
                _ => "Access::Unspecified",
            }
        )?;
    }
    writeln!(code, "];\n")
}

fn write_answers(code: &mut String, pool: &DescriptorPool) -> std::fmt::Result {
    let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
    let mut answers: Vec<(String, MethodDescriptor)> = methods
        .map(|method| (format!("/{}/{}", method.parent_service().full_name(), method.name()), method))
        .collect();
    answers.sort_by(|one, other| one.0.cmp(&other.0));
    writeln!(
        code,
        "/// The rpcs that answer with a record or several, by their path.\npub static ANSWERS: &[Answer] = &["
    )?;
    let whole = messages_of_kinds(pool);
    for (path, method) in answers {
        let Some((field, record, id)) = record(&method.output()) else { continue };
        let policy = extension(pool, &record.options(), "admin.api.v1.message");
        let is_partial = policy.is_some_and(|policy| flag(&policy, "partial"));
        // Another message shows records of this kind whole.
        let is_part = whole.get(&snake(record.name())).is_some_and(|message| message != record.full_name());
        if is_partial || is_part {
            continue;
        }
        writeln!(
            code,
            "    Answer {{ path: {path:?}, field: {}, message: {:?}, id: {}, entity: {:?} }},",
            field.number(),
            record.full_name(),
            id.number(),
            snake(record.name()),
        )?;
    }
    writeln!(code, "];\n")
}

/// The message of each kind of record.
fn messages_of_kinds(pool: &DescriptorPool) -> BTreeMap<String, String> {
    let of = |message: MessageDescriptor| {
        let policy = extension(pool, &message.options(), "admin.api.v1.message");
        let kinds = policy.map(|policy| texts(&policy, "kinds")).unwrap_or_default();
        kinds.into_iter().map(move |kind| (kind, message.full_name().to_owned()))
    };
    pool.all_messages().flat_map(of).collect()
}

/// The one field of a response that holds a record or several; a record is a message with an id.
fn record(response: &MessageDescriptor) -> Option<(FieldDescriptor, MessageDescriptor, FieldDescriptor)> {
    let records = response.fields().filter(|field| !field.is_map()).filter_map(|field| {
        let Kind::Message(message) = field.kind() else { return None };
        let id = message.get_field_by_name("id").filter(|id| id.kind() == Kind::String)?;
        Some((field, message, id))
    });
    let mut records: Vec<_> = records.collect();
    if records.len() == 1 { records.pop() } else { None }
}

/// What a field that nobody may read again is called.
const SECRET_NAMES: [&str; 3] = ["secret", "private_key", "password"];

fn write_secrets(code: &mut String, pool: &DescriptorPool) -> std::fmt::Result {
    writeln!(
        code,
        "/// The fields of messages that are secret.\npub static SECRETS: &[(&str, &[u32])] = &["
    )?;
    for message in pool.all_messages() {
        let secret = message.fields().filter(|field| SECRET_NAMES.contains(&field.name()));
        let numbers: Vec<u32> = secret.map(|field| field.number()).collect();
        if !numbers.is_empty() {
            writeln!(code, "    ({:?}, &{numbers:?}),", message.full_name())?;
        }
    }
    writeln!(code, "];\n")
}

fn write_secret_answers(code: &mut String, pool: &DescriptorPool) -> std::fmt::Result {
    let has_secret =
        |message: &MessageDescriptor| message.fields().any(|field| SECRET_NAMES.contains(&field.name()));
    let record = |field: FieldDescriptor| match field.kind() {
        Kind::Message(message) => has_secret(&message),
        _ => false,
    };
    writeln!(
        code,
        "/// The rpcs whose answers have a secret, themselves or in a record.\npub static SECRET_ANSWERS: &[&str] = &["
    )?;
    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        let answer = method.output();
        if has_secret(&answer) || answer.fields().any(record) {
            writeln!(code, "    \"/{}/{}\",", method.parent_service().full_name(), method.name())?;
        }
    }
    writeln!(code, "];\n")
}

fn write_versions(code: &mut String, pool: &DescriptorPool) -> std::fmt::Result {
    writeln!(
        code,
        "/// The messages of records, by name: the numbers of the fields that lead to the record's version.\n\
         pub static VERSIONS: &[(&str, &[u32])] = &["
    )?;
    let mut messages: Vec<_> = pool.all_messages().collect();
    messages.sort_by(|one, other| one.full_name().cmp(other.full_name()));
    for message in messages {
        let policy = extension(pool, &message.options(), "admin.api.v1.message");
        let is_record = policy.is_some_and(|policy| !texts(&policy, "kinds").is_empty());
        if let Some(path) = version(&message).filter(|_| is_record) {
            writeln!(code, "    ({:?}, &{path:?}),", message.full_name())?;
        }
    }
    writeln!(code, "];\n")
}

/// The numbers of `version`, or of `meta` and its `version`.
fn version(message: &MessageDescriptor) -> Option<Vec<u32>> {
    if let Some(field) = message.get_field_by_name("version") {
        return Some(vec![field.number()]);
    }
    let meta = message.get_field_by_name("meta")?;
    let Kind::Message(of_meta) = meta.kind() else { return None };
    Some(vec![meta.number(), of_meta.get_field_by_name("version")?.number()])
}

fn write_problems(code: &mut String, pool: &DescriptorPool) -> std::fmt::Result {
    writeln!(
        code,
        "/// Every problem of the contract, in the order of its numbers; `PROBLEM_UNSPECIFIED` is not one.\n\
         pub static PROBLEMS: &[ProblemInfo] = &["
    )?;
    let problems = pool.get_enum_by_name("admin.api.v1.Problem");
    for (file, value) in
        problems.iter().flat_map(|e| e.values().map(|v| (e.parent_file(), v)).collect::<Vec<_>>())
    {
        if value.number() == 0 {
            continue;
        }
        let policy = extension(pool, &value.options(), "admin.api.v1.problem");
        let name = value.name().trim_start_matches("PROBLEM_");
        writeln!(
            code,
            "    ProblemInfo {{ problem: Problem::{}, code: {:?}, status: {}, title: {:?}, explanation: {:?} }},",
            camel(name),
            name.to_ascii_lowercase(),
            policy.as_ref().map_or(0, |policy| number(policy, "status")),
            policy.as_ref().map(|policy| text(policy, "title")).unwrap_or_default(),
            crate::names::comment(file.file_descriptor_proto(), value.path()),
        )?;
    }
    writeln!(code, "];")
}

/// `EXTERNAL_ID_TAKEN` is `ExternalIdTaken` in Rust.
fn camel(name: &str) -> String {
    let word = |word: &str| word[..1].to_owned() + &word[1..].to_ascii_lowercase();
    name.split('_').map(word).collect()
}
