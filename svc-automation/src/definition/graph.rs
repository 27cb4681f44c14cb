//! Which step follows which: the steps of a definition as a graph. Pure.

use std::collections::HashMap;

use super::model::{Definition, Step};

/// The steps of a flow, each with those that may follow it.
pub(crate) struct Graph<'d> {
    nodes: Vec<Node<'d>>,
    by_id: HashMap<&'d str, usize>,
    first: Option<usize>,
}

#[derive(Clone, Copy)]
pub(crate) struct Node<'d> {
    pub step: &'d Step,
    /// The step after this one, or after the branch that it takes.
    next: Option<usize>,
    then: Option<usize>,
    otherwise: Option<usize>,
}

impl<'d> Graph<'d> {
    pub(crate) fn of(definition: &'d Definition) -> Self {
        let mut graph = Self { nodes: Vec::new(), by_id: HashMap::new(), first: None };
        graph.first = graph.add(&definition.steps, None);
        graph
    }

    /// Adds steps one after the other, with `after` behind the last; returns the first, or `after` when there are none.
    fn add(&mut self, steps: &'d [Step], after: Option<usize>) -> Option<usize> {
        let mut next = after;
        for step in steps.iter().rev() {
            let then = self.add(&step.then, next);
            let otherwise = match &step.approve {
                // The rejected branch does not join the others again: no branch may lead around an approval.
                Some(approve) => self.add(&approve.otherwise, None),
                None => self.add(&step.otherwise, next),
            };
            self.by_id.insert(&step.id, self.nodes.len());
            self.nodes.push(Node { step, next, then, otherwise });
            next = Some(self.nodes.len() - 1);
        }
        next
    }

    pub(crate) fn first(&self) -> Option<&'d str> {
        self.id(self.first)
    }

    pub(crate) fn find(&self, id: &str) -> Option<Node<'d>> {
        self.by_id.get(id).map(|index| self.nodes[*index])
    }

    /// The step after one that is done.
    pub(crate) fn after(&self, node: Node<'d>) -> Option<&'d str> {
        self.id(node.next)
    }

    /// The first step of the branch that a condition takes.
    pub(crate) fn branch(&self, node: Node<'d>, holds: bool) -> Option<&'d str> {
        self.id(if holds { node.then } else { node.otherwise })
    }

    /// The first step after an approval that was rejected or has expired.
    pub(crate) fn rejected(&self, node: Node<'d>) -> Option<&'d str> {
        self.id(node.otherwise)
    }

    fn id(&self, index: Option<usize>) -> Option<&'d str> {
        index.map(|index| self.nodes[index].step.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::read::read;

    const FLOW: &str = "
name: A
trigger: manual
steps:
  - id: big
    when: data.total > 5
    then:
      - {id: boss, approve: {title: '?', otherwise: [{id: sorry, wait: {for: 1d}}]}}
      - {id: yes, wait: {for: 1d}}
  - {id: last, wait: {for: 1d}}
";

    #[test]
    fn branches_join_again_and_a_rejection_does_not() {
        let definition = read(FLOW, "", &mut proto::Faults::default()).unwrap();
        let graph = Graph::of(&definition);
        let node = |id: &str| graph.find(id).unwrap();
        assert_eq!(graph.first(), Some("big"));
        assert_eq!(graph.branch(node("big"), true), Some("boss"));
        assert_eq!(graph.branch(node("big"), false), Some("last"));
        assert_eq!(graph.after(node("boss")), Some("yes"));
        assert_eq!(graph.after(node("yes")), Some("last"));
        assert_eq!(graph.after(node("last")), None);
        assert_eq!(graph.rejected(node("boss")), Some("sorry"));
        assert_eq!(graph.after(node("sorry")), None);
        assert!(graph.find("nobody").is_none());
    }
}
