//! Writes the tables that every process needs at run time, so that a service need not read the descriptor: its rpcs
//! with who may call them, and the problems of the contract.

use std::fmt::Write;

use prost_reflect::DescriptorPool;

use crate::options::{enum_name, extension, number, text};

pub fn generate(pool: &DescriptorPool) -> Result<String, std::fmt::Error> {
    let mut code = String::new();
    write_rpcs(&mut code, pool)?;
    write_problems(&mut code, pool)?;
    Ok(code)
}

fn write_rpcs(code: &mut String, pool: &DescriptorPool) -> std::fmt::Result {
    writeln!(code, "/// Every rpc of the contract.\npub static RPCS: &[Rpc] = &[")?;
    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        let policy = extension(pool, &method.options(), "admin.api.v1.method");
        let access = policy.as_ref().and_then(|policy| enum_name(policy, "access")).unwrap_or_default();
        let scope = policy.as_ref().map(|policy| text(policy, "scope")).unwrap_or_default();
        writeln!(
            code,
            "    Rpc {{ path: \"/{}/{}\", access: {}, scope: {scope:?} }},",
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
