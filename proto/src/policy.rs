//! Reads our options from the descriptor, and the table of problems.

use std::sync::OnceLock;
use std::{panic, thread};

use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, MessageDescriptor, MethodDescriptor, Value,
};

use crate::api::{Access, FieldPolicy, MessagePolicy, MethodPolicy, Problem, ServicePolicy};
use crate::google::api::HttpRule;
pub use crate::names::comment;

/// The descriptor of the whole contract, without its comments. Decoded on first use and kept: who needs it only once, at
/// start, takes [`read`].
pub fn pool() -> &'static DescriptorPool {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    POOL.get_or_init(|| decode(crate::REFLECTION))
}

/// Decodes the descriptor of the whole contract, without its comments, for this call alone. On a thread of its own: it takes 5
/// MB, which the allocator gives back to the system when the thread that has freed them ends, and else keeps for it.
pub fn read<T: Send>(what: impl FnOnce(&DescriptorPool) -> T + Send) -> T {
    let read = thread::scope(|scope| scope.spawn(|| what(&decode(crate::REFLECTION))).join());
    read.unwrap_or_else(|panic| panic::resume_unwind(panic))
}

/// The same with comments, which take more memory than all the rest: for documents, and dropped when they are made.
pub fn commented() -> DescriptorPool {
    decode(crate::DESCRIPTOR)
}

#[expect(clippy::expect_used, reason = "the descriptor is made by this crate's own build")]
fn decode(descriptor: &[u8]) -> DescriptorPool {
    DescriptorPool::decode(descriptor).expect("the built-in descriptor is valid")
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

/// An rpc, and who may call it.
#[derive(Clone, Copy, Debug)]
pub struct Rpc {
    /// `/package.Service/Method`.
    pub path: &'static str,
    pub access: Access,
    pub scope: &'static str,
    /// See `MethodPolicy.and_scope`; empty for none.
    pub and_scope: &'static str,
    /// See `MethodPolicy.or_scope`; empty for none.
    pub or_scope: &'static str,
    /// See `MethodPolicy.internal`.
    pub internal: bool,
    /// See `MethodPolicy.cannot_rehearse`.
    pub cannot_rehearse: bool,
}

impl Rpc {
    /// The area whose business it is, for example `crm`: the second part of its package. `None` for what processes say to
    /// each other and for what operators do with accounts.
    pub fn area(&self) -> Option<&'static str> {
        let (area, _) = self.path.strip_prefix("/admin.")?.split_once('.')?;
        (!matches!(area, "api" | "accounts")).then_some(area)
    }
}

/// The scope of an operation that any valid key may call; not one that a key has.
pub const ANY_SCOPE: &str = "any";

/// The first scope that a caller lacks for an operation with these scopes of its policy.
pub fn missing_scope<'a>(
    scope: &'a str,
    and_scope: &'a str,
    or_scope: &str,
    has: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    let is_enough = scope == ANY_SCOPE || has(scope) || (!or_scope.is_empty() && has(or_scope));
    if !is_enough {
        return Some(scope);
    }
    Some(and_scope).filter(|scope| !scope.is_empty() && !has(scope))
}

/// An rpc that answers with a record or several of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// `/package.Service/Method`.
    pub path: &'static str,
    /// The field of the response that holds them.
    pub field: u32,
    /// The full name of the record's message.
    pub message: &'static str,
    /// The field of the record that holds its id.
    pub id: u32,
    /// What the record is, for example `deal`.
    pub entity: &'static str,
}

/// One row of the table of errors.
#[derive(Clone, Copy, Debug)]
pub struct ProblemInfo {
    pub problem: Problem,
    /// For example `external_id_taken`.
    pub code: &'static str,
    pub status: u16,
    pub title: &'static str,
    /// What it means and what to do, from the comment in the proto file.
    pub explanation: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// Every problem of the contract.
pub fn problems() -> &'static [ProblemInfo] {
    PROBLEMS
}

impl Problem {
    /// The stable code, for example `not_found`.
    pub fn code(self) -> &'static str {
        self.info().code
    }

    pub fn from_code(code: &str) -> Option<Self> {
        PROBLEMS.iter().find(|info| info.code == code).map(|info| info.problem)
    }

    /// Its row of the table, which has no gaps. `Unspecified` counts as `internal`.
    pub fn info(self) -> &'static ProblemInfo {
        let number = if self == Self::Unspecified { Self::Internal } else { self } as usize;
        &PROBLEMS[number - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                    assert!(
                        matches!(policy.access(), Access::Key | Access::Public),
                        "{name} has a route but is for the mesh only"
                    );
                    assert!(matches!(policy.success, 200 | 201 | 204 | 303), "{name} has no success status");
                    assert_eq!(policy.access() == Access::Key, !policy.scope.is_empty(), "{name}: scope");
                }
                None => assert!(
                    matches!(policy.access(), Access::Mesh | Access::Credential),
                    "{name} is public but has no HTTP rule"
                ),
            }
        }
        assert!(public > 0);
    }

    #[test]
    fn the_area_of_an_rpc_is_in_its_package() {
        let rpc = Rpc {
            path: "",
            access: Access::Mesh,
            scope: "",
            and_scope: "",
            or_scope: "",
            internal: false,
            cannot_rehearse: false,
        };
        let area = |path| Rpc { path, ..rpc }.area();
        assert_eq!(area("/admin.crm.v1.PipelineService/CreatePipeline"), Some("crm"));
        assert_eq!(area("/admin.api.v1.ProvisioningService/ProvisionAccount"), None);
        assert_eq!(area("/admin.accounts.v1.AccountService/CreateKey"), None);
        assert_eq!(area("/grpc.health.v1.Health/Check"), None);
    }

    #[test]
    fn every_problem_has_a_status_a_title_and_an_explanation() {
        let named = pool().get_enum_by_name("admin.api.v1.Problem").unwrap().values().count();
        assert_eq!(problems().len(), named - 1, "all but the unspecified one");
        for (index, info) in problems().iter().enumerate() {
            assert_eq!(info.problem as usize, index + 1, "numbers have no gaps");
            assert!((400..600).contains(&info.status), "{}", info.code);
            assert!(!info.title.is_empty() && !info.explanation.is_empty(), "{}", info.code);
            assert_eq!(Problem::from_code(info.code), Some(info.problem));
        }
    }
}
