//! The operations by method and path, for requests that come inside another one. The router has its own table.

use std::sync::Arc;

use chassis_transcode::contract::{Operation, variable};

pub struct OperationTable(Vec<Arc<Operation>>);

impl OperationTable {
    pub fn new(operations: Vec<Operation>) -> Self {
        Self(operations.into_iter().map(Arc::new).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Operation>> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The operations of the path, by what the router would choose: a part that is written out goes before a variable.
    pub fn at(&self, path: &str) -> Vec<&Arc<Operation>> {
        let mut found: Vec<_> = self.0.iter().filter(|operation| matches(&operation.path, path)).collect();
        let variables =
            |operation: &Operation| operation.path.split('/').filter(|part| variable(part).is_some()).count();
        let fewest = found.iter().map(|operation| variables(operation)).min();
        found.retain(|operation| Some(variables(operation)) == fewest);
        found
    }
}

fn matches(template: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    let same = template.split('/').all(|name| {
        parts
            .next()
            .is_some_and(|part| if variable(name).is_some() { !part.is_empty() } else { part == name })
    });
    same && parts.next().is_none()
}
