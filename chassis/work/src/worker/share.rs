//! How the partitions of a worker are shared among replicas.

use std::collections::BTreeMap;

use chassis_base::account::PARTITIONS;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::holding::Leases;

/// A lease of another process.
pub(super) struct Other {
    pub owner: Uuid,
    pub until: DateTime<Utc>,
}

/// What a worker's replicas have, as one of them sees it.
#[derive(Default)]
pub(super) struct View {
    pub others: BTreeMap<u16, Other>,
    /// Live replicas, with this one.
    pub replicas: usize,
}

impl View {
    /// Rounded up, so that no partition stays without an owner.
    pub(super) fn share(&self) -> usize {
        usize::from(PARTITIONS).div_ceil(self.replicas.max(1))
    }

    /// The partitions to take: free ones, up to the fair share. Each replica starts at another position, so that
    /// concurrent replicas try different partitions.
    pub(super) fn wanted(&self, held: &Leases, owner: Uuid) -> Vec<u16> {
        let free = |partition: &u16| !held.contains_key(partition) && !self.others.contains_key(partition);
        let mut wanted: Vec<u16> = (0..PARTITIONS).filter(free).collect();
        let start = usize::from(owner.as_bytes()[15]) % wanted.len().max(1);
        wanted.rotate_left(start);
        wanted.truncate(self.share().saturating_sub(held.len()));
        wanted
    }

    /// Whether partitions can be taken soon: they are free, or an owner of more than its share is about to give them
    /// back. No process works on a free partition, so this does not wait for the next regular renewal.
    pub(super) fn awaits_more(&self, held: usize) -> bool {
        let mut shares: BTreeMap<Uuid, usize> = BTreeMap::new();
        for other in self.others.values() {
            *shares.entry(other.owner).or_default() += 1;
        }
        let share = self.share();
        let given = held + self.others.len() >= usize::from(PARTITIONS);
        held < share && (!given || shares.values().any(|others| *others > share))
    }

    /// When the leases of another owner expire, unless it renews them.
    pub(super) fn first_expiry(&self) -> Option<DateTime<Utc>> {
        self.others.values().map(|other| other.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(replicas: usize, others: impl IntoIterator<Item = (u16, u128)>) -> View {
        let other = |owner| Other { owner: Uuid::from_u128(owner), until: DateTime::UNIX_EPOCH };
        View {
            others: others.into_iter().map(|(partition, owner)| (partition, other(owner))).collect(),
            replicas,
        }
    }

    #[test]
    fn the_shares_of_all_replicas_cover_all_partitions() {
        for replicas in 1..=200 {
            let share = view(replicas, []).share();
            assert!(share >= 1 && share * replicas >= usize::from(PARTITIONS));
        }
        assert_eq!([0, 2, 3].map(|replicas| view(replicas, []).share()), [64, 32, 22]);
    }

    #[test]
    fn only_free_partitions_are_wanted_and_no_more_than_the_share() {
        let held: Leases = [(5, 1)].into();
        let view = view(2, (10..50).map(|partition| (partition, 1)));
        for owner in 0..300 {
            let wanted = view.wanted(&held, Uuid::from_u128(owner));
            assert_eq!(wanted.len(), 23, "all that are free, which is less than the share");
            assert!(wanted.iter().all(|partition| *partition != 5 && !(10..50).contains(partition)));
        }
    }

    #[test]
    fn more_is_awaited_from_an_owner_of_too_much_or_when_some_are_free() {
        let of_one = |count: u16| view(2, (0..count).map(|partition| (partition, 1)));
        assert!(of_one(64).awaits_more(0), "the other gives back half");
        assert!(of_one(32).awaits_more(10), "some are free");
        assert!(!of_one(32).awaits_more(32), "nothing more than the share");
        let several = view(3, (0..44).map(|partition| (partition, u128::from(partition % 2))));
        assert!(!several.awaits_more(20), "nobody has too much");
    }
}
