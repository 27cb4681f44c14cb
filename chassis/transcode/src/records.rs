//! The records of the contract: what kinds there are, who may read them, and how a stored one becomes the JSON of its
//! GET. Read from the descriptor once.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use prost_reflect::{DescriptorPool, MessageDescriptor};
use proto::policy::missing_scope;

use crate::operation::{Error, Operation, Target, variable};
use crate::render::ResponsePlan;

/// For each operation that changes something, in order: the record that its path names, if the same service shows that
/// record.
pub(crate) fn targets(operations: &[Operation]) -> Vec<Option<Target>> {
    let of = |operation: &Operation| {
        if operation.is_public() || operation.method == Method::GET {
            return None;
        }
        let path = up_to_last_variable(&operation.path)?;
        let (collection, last) = path.rsplit_once('/')?;
        let shown = |path: &str, is_list: bool| {
            operations.iter().find_map(|other| {
                let answered = other.answered.as_ref()?;
                let matches =
                    other.method == Method::GET && other.path == path && other.peer == operation.peer;
                (matches && answered.is_list == is_list && !answered.kinds.is_empty())
                    .then(|| answered.kinds.clone())
            })
        };
        let kinds = shown(path, false).or_else(|| shown(collection, true))?;
        Some(Target { variable: variable(last)?.to_owned(), kinds })
    };
    operations.iter().map(of).collect()
}

/// `/v1/deals/{id}` of `/v1/deals/{id}/move`.
fn up_to_last_variable(path: &str) -> Option<&str> {
    path.rfind('}').map(|end| &path[..=end])
}

/// One kind of record.
#[derive(Clone, Debug)]
pub struct RecordKind {
    /// The service that owns it.
    pub service: String,
    /// The scope of the operation that reads it.
    pub scope: String,
    /// A scope that is enough in its place; empty for none.
    or_scope: String,
    /// The full name of the message that shows it.
    pub message: String,
    plan: Arc<ResponsePlan>,
}

impl RecordKind {
    /// Whether a caller with this predicate over scopes may read it.
    pub fn is_readable(&self, has_scope: impl Fn(&str) -> bool) -> bool {
        missing_scope(&self.scope, "", &self.or_scope, has_scope).is_none()
    }

    /// How the record becomes JSON.
    pub fn plan(&self) -> &ResponsePlan {
        &self.plan
    }
}

/// The kinds that an integrator can read, by name.
#[derive(Debug, Default)]
pub struct RecordKinds(BTreeMap<String, RecordKind>);

impl RecordKinds {
    pub fn new(pool: &DescriptorPool, operations: &[Operation]) -> Result<Self, Error> {
        let mut kinds = BTreeMap::new();
        for message in pool.all_messages() {
            for kind in proto::policy::message(&message).kinds {
                let error = |problem| Error { rpc: message.full_name().to_owned(), problem };
                let found = kind_of(&message, operations).map_err(error)?;
                if kinds.insert(kind.clone(), found).is_some() {
                    return Err(error(format!("the kind {kind} has two messages; keep one")));
                }
            }
        }
        Ok(Self(kinds))
    }

    pub fn get(&self, name: &str) -> Option<&RecordKind> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &RecordKind)> {
        self.0.iter().map(|(name, kind)| (name.as_str(), kind))
    }
}

fn kind_of(message: &MessageDescriptor, operations: &[Operation]) -> Result<RecordKind, String> {
    let reads = |operation: &&Operation| {
        let answered = operation.answered.as_ref();
        operation.method == Method::GET
            && !operation.is_export()
            && answered.is_some_and(|answered| answered.message == message.full_name())
    };
    let mut readers = operations.iter().filter(reads);
    let reader = readers.next().ok_or("its kinds are read by no operation with GET")?;
    if readers.any(|other| other.policy.scope != reader.policy.scope || other.peer != reader.peer) {
        return Err("its kinds are read with different scopes; give each a message of its own".to_owned());
    }
    let plan = reader.envelope().and_then(ResponsePlan::of_data);
    let plan = plan.ok_or("its kinds are read by an operation without an envelope")?;
    Ok(RecordKind {
        service: reader.peer.clone(),
        scope: reader.policy.scope.clone(),
        or_scope: reader.policy.or_scope.clone(),
        message: message.full_name().to_owned(),
        plan: Arc::new(plan),
    })
}
