//! Which step follows which. Pure.

use std::collections::HashMap;

use super::definition::{Definition, Step};

/// The steps of a flow, each with those that may follow it.
pub(crate) struct Graph<'d> {
    nodes: Vec<Node<'d>>,
    by_id: HashMap<&'d str, usize>,
    first: Option<usize>,
}

#[derive(Clone, Copy)]
pub(crate) struct Node<'d> {
    pub step: &'d Step,
    /// After the step itself, or after the branch that it takes.
    next: Option<usize>,
    then: Option<usize>,
    otherwise: Option<usize>,
}

impl<'d> Graph<'d> {
    pub fn of(definition: &'d Definition) -> Self {
        let mut graph = Self { nodes: Vec::new(), by_id: HashMap::new(), first: None };
        graph.first = graph.place(&definition.steps, None);
        graph
    }

    /// Places steps one after the other, with `after` behind them; returns the first, or `after` when there are none.
    fn place(&mut self, steps: &'d [Step], after: Option<usize>) -> Option<usize> {
        let mut next = after;
        for step in steps.iter().rev() {
            let then = self.place(&step.then, next);
            let otherwise = match &step.approve {
                // Whoever was refused does not come back: no branch leads around an approval.
                Some(approve) => self.place(&approve.otherwise, None),
                None => self.place(&step.otherwise, next),
            };
            self.by_id.insert(&step.id, self.nodes.len());
            self.nodes.push(Node { step, next, then, otherwise });
            next = Some(self.nodes.len() - 1);
        }
        next
    }

    pub fn first(&self) -> Option<&'d str> {
        self.id(self.first)
    }

    pub fn find(&self, id: &str) -> Option<Node<'d>> {
        self.by_id.get(id).map(|index| self.nodes[*index])
    }

    /// What follows a step that was done.
    pub fn after(&self, node: Node<'d>) -> Option<&'d str> {
        self.id(node.next)
    }

    /// What follows a condition.
    pub fn branch(&self, node: Node<'d>, holds: bool) -> Option<&'d str> {
        self.id(if holds { node.then } else { node.otherwise })
    }

    /// What follows an approval that was not given.
    pub fn refused(&self, node: Node<'d>) -> Option<&'d str> {
        self.id(node.otherwise)
    }

    fn id(&self, index: Option<usize>) -> Option<&'d str> {
        index.map(|index| self.nodes[index].step.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::read::read;

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
    fn branches_come_back_together_and_a_refusal_does_not() {
        let definition = read(FLOW, "", &mut proto::Faults::default()).unwrap();
        let graph = Graph::of(&definition);
        let node = |id: &str| graph.find(id).unwrap();
        assert_eq!(graph.first(), Some("big"));
        assert_eq!(graph.branch(node("big"), true), Some("boss"));
        assert_eq!(graph.branch(node("big"), false), Some("last"));
        assert_eq!(graph.after(node("boss")), Some("yes"));
        assert_eq!(graph.after(node("yes")), Some("last"));
        assert_eq!(graph.after(node("last")), None);
        assert_eq!(graph.refused(node("boss")), Some("sorry"));
        assert_eq!(graph.after(node("sorry")), None);
        assert!(graph.find("nobody").is_none());
    }
}
