//! Reads our options from the descriptor, and the table of problems.

use std::sync::OnceLock;

use prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, MessageDescriptor, MethodDescriptor,
    Value,
};

use crate::api::{FieldPolicy, MessagePolicy, MethodPolicy, Problem, ProblemPolicy, ServicePolicy};
use crate::google::api::HttpRule;

/// The descriptor of the whole contract, read once.
///
/// # Panics
/// Never in practice: the descriptor is made by this crate's own build.
#[expect(clippy::expect_used, reason = "the descriptor is made by this crate's own build")]
pub fn pool() -> &'static DescriptorPool {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    POOL.get_or_init(|| DescriptorPool::decode(crate::DESCRIPTOR).expect("the built-in descriptor is valid"))
}

fn extension<M: prost::Message + Default>(
    pool: &DescriptorPool,
    options: &DynamicMessage,
    name: &str,
) -> Option<M> {
    let extension = pool.get_extension_by_name(name)?;
    if !options.has_extension(&extension) {
        return None;
    }
    match options.get_extension(&extension).as_ref() {
        Value::Message(message) => message.transcode_to().ok(),
        _ => None,
    }
}

pub fn method(method: &MethodDescriptor) -> Option<MethodPolicy> {
    extension(method.parent_pool(), &method.options(), "admin.api.v1.method")
}

pub fn http_rule(method: &MethodDescriptor) -> Option<HttpRule> {
    extension(method.parent_pool(), &method.options(), "google.api.http")
}

pub fn service(method: &MethodDescriptor) -> ServicePolicy {
    let service = method.parent_service();
    extension(method.parent_pool(), &service.options(), "admin.api.v1.service").unwrap_or_default()
}

pub fn message(message: &MessageDescriptor) -> MessagePolicy {
    extension(message.parent_pool(), &message.options(), "admin.api.v1.message").unwrap_or_default()
}

pub fn field(field: &FieldDescriptor) -> FieldPolicy {
    extension(field.parent_pool(), &field.options(), "admin.api.v1.field").unwrap_or_default()
}

/// One row of the table of errors.
#[derive(Clone, Debug)]
pub struct ProblemInfo {
    pub problem: Problem,
    /// For example `external_id_taken`.
    pub code: String,
    pub status: u16,
    pub title: String,
    /// What it means and what to do, from the comment in the proto file.
    pub explanation: String,
}

/// Every problem of the contract, in the order of its numbers; `PROBLEM_UNSPECIFIED` is not one.
pub fn problems() -> &'static [ProblemInfo] {
    static TABLE: OnceLock<Vec<ProblemInfo>> = OnceLock::new();
    TABLE.get_or_init(|| {
        pool().get_enum_by_name("admin.api.v1.Problem").map(|e| read_problems(&e)).unwrap_or_default()
    })
}

fn read_problems(descriptor: &EnumDescriptor) -> Vec<ProblemInfo> {
    descriptor
        .values()
        .filter_map(|value| {
            let problem = Problem::try_from(value.number()).ok().filter(|p| *p != Problem::Unspecified)?;
            let policy: ProblemPolicy =
                extension(descriptor.parent_pool(), &value.options(), "admin.api.v1.problem")
                    .unwrap_or_default();
            Some(ProblemInfo {
                problem,
                code: problem.code(),
                status: u16::try_from(policy.status).unwrap_or(500),
                title: policy.title,
                explanation: comment(descriptor.parent_file().file_descriptor_proto(), value.path()),
            })
        })
        .collect()
}

/// The comment above a declaration, without the space that follows each `//`.
pub fn comment(file: &prost_types::FileDescriptorProto, path: &[i32]) -> String {
    let locations = file.source_code_info.iter().flat_map(|info| &info.location);
    let text =
        locations.filter(|l| l.path == path).find_map(|l| l.leading_comments.as_deref()).unwrap_or_default();
    text.lines()
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
        .trim()
        .to_owned()
}

impl Problem {
    /// The stable code, for example `not_found`.
    pub fn code(self) -> String {
        self.as_str_name().trim_start_matches("PROBLEM_").to_ascii_lowercase()
    }

    pub fn from_code(code: &str) -> Option<Self> {
        problems().iter().find(|info| info.code == code).map(|info| info.problem)
    }

    /// Its row of the table. `Unspecified` counts as `internal`.
    pub fn info(self) -> &'static ProblemInfo {
        let table = problems();
        table.iter().find(|info| info.problem == self).unwrap_or(&table[Problem::Internal as usize - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Access;

    #[test]
    fn every_rpc_says_who_may_call_it_and_every_public_one_is_complete() {
        let mut public = 0;
        for method in pool().services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
            let name = method.full_name().to_owned();
            let policy = self::method(&method).unwrap_or_else(|| panic!("{name} has no policy"));
            assert_ne!(policy.access(), Access::Unspecified, "{name} says nothing about access");
            match http_rule(&method) {
                Some(rule) => {
                    public += 1;
                    assert!(rule.pattern.is_some(), "{name} has a rule without a path");
                    assert_ne!(policy.access(), Access::Mesh, "{name} has a route but is for the mesh only");
                    assert!(matches!(policy.success, 200 | 201 | 204), "{name} has no success status");
                    assert_eq!(policy.access() == Access::Key, !policy.scope.is_empty(), "{name}: scope");
                }
                None => assert_eq!(policy.access(), Access::Mesh, "{name} is public but has no HTTP rule"),
            }
        }
        assert!(public > 0);
    }

    #[test]
    fn every_problem_has_a_status_a_title_and_an_explanation() {
        assert_eq!(problems().len(), Problem::KeyTaken as usize);
        for (index, info) in problems().iter().enumerate() {
            assert_eq!(info.problem as usize, index + 1, "numbers have no gaps");
            assert!((400..600).contains(&info.status), "{}", info.code);
            assert!(!info.title.is_empty() && !info.explanation.is_empty(), "{}", info.code);
            assert_eq!(Problem::from_code(&info.code), Some(info.problem));
        }
    }
}
