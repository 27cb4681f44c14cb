//! What the parts of a definition are, for the code that runs them: kinds of steps and triggers, and the names that they
//! are stored under. A file of its own, so that `model` holds nothing but the published document.

use super::model::{Approve, Call, Definition, Http, Mail, Step, Trigger, Wait};

/// What a step does, with its part of the definition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind<'d> {
    Call(&'d Call),
    Http(&'d Http),
    Mail(&'d Mail),
    Wait(&'d Wait),
    When(&'d str),
    Approve(&'d Approve),
}

impl Step {
    /// What the step does; the first, should it name several. `None` when it names nothing.
    pub(crate) fn kind(&self) -> Option<Kind<'_>> {
        self.kinds().next()
    }

    /// Everything that the step names; a step of a checked definition names exactly one.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Kind<'_>> {
        [
            self.call.as_ref().map(Kind::Call),
            self.http.as_ref().map(Kind::Http),
            self.mail.as_ref().map(Kind::Mail),
            self.wait.as_ref().map(Kind::Wait),
            self.when.as_deref().map(Kind::When),
            self.approve.as_ref().map(Kind::Approve),
        ]
        .into_iter()
        .flatten()
    }

    /// The branches of this step.
    pub(crate) fn branches(&self) -> [Branch<'_>; 3] {
        let rejected = self.approve.as_ref().map(|approve| approve.otherwise.as_slice()).unwrap_or_default();
        [
            Branch { pointer: "/then", steps: &self.then },
            Branch { pointer: "/else", steps: &self.otherwise },
            Branch { pointer: "/approve/otherwise", steps: rejected },
        ]
    }
}

/// Steps inside of a step.
pub(crate) struct Branch<'d> {
    /// Where they are, relative to the step.
    pub pointer: &'static str,
    pub steps: &'d [Step],
}

impl Kind<'_> {
    pub(crate) fn step_kind(self) -> StepKind {
        match self {
            Self::Call(_) => StepKind::Call,
            Self::Http(_) => StepKind::Http,
            Self::Mail(_) => StepKind::Mail,
            Self::Wait(_) => StepKind::Wait,
            Self::When(_) => StepKind::When,
            Self::Approve(_) => StepKind::Approve,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        self.step_kind().name()
    }

    /// Whether performing it changes something elsewhere.
    pub(crate) fn is_action(self) -> bool {
        matches!(self, Self::Call(_) | Self::Http(_) | Self::Mail(_))
    }
}

/// The kind of a step, as it is stored with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepKind {
    Call,
    Http,
    Mail,
    Wait,
    When,
    Approve,
}

impl StepKind {
    const ALL: [Self; 6] = [Self::Call, Self::Http, Self::Mail, Self::Wait, Self::When, Self::Approve];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Http => "http",
            Self::Mail => "mail",
            Self::Wait => "wait",
            Self::When => "when",
            Self::Approve => "approve",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Trigger {
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Event(key) | Self::Custom(key) | Self::Schedule(key) => key,
            Self::Manual => "",
        }
    }

    pub(crate) fn trigger_type(&self) -> TriggerType {
        match self {
            Self::Event(_) => TriggerType::Event,
            Self::Custom(_) => TriggerType::Custom,
            Self::Schedule(_) => TriggerType::Schedule,
            Self::Manual => TriggerType::Manual,
        }
    }
}

/// The type of a trigger, as it is stored with flows and runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TriggerType {
    Event,
    Custom,
    Schedule,
    Manual,
}

impl TriggerType {
    const ALL: [Self; 4] = [Self::Event, Self::Custom, Self::Schedule, Self::Manual];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Custom => "custom",
            Self::Schedule => "schedule",
            Self::Manual => "manual",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// `None` for the unspecified value.
    pub(crate) fn from_message(message: proto::automation::TriggerType) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| proto::automation::TriggerType::from(*kind) == message)
    }
}

impl From<TriggerType> for proto::automation::TriggerType {
    fn from(kind: TriggerType) -> Self {
        match kind {
            TriggerType::Event => Self::Event,
            TriggerType::Custom => Self::Custom,
            TriggerType::Schedule => Self::Schedule,
            TriggerType::Manual => Self::Manual,
        }
    }
}

impl Definition {
    /// All steps, those inside branches included, in the order of the document.
    pub(crate) fn all_steps(&self) -> Vec<&Step> {
        fn collect<'d>(steps: &'d [Step], all: &mut Vec<&'d Step>) {
            for step in steps {
                all.push(step);
                for branch in step.branches() {
                    collect(branch.steps, all);
                }
            }
        }
        let mut all = Vec::new();
        collect(&self.steps, &mut all);
        all
    }
}
