//! The laws of one image, in the order and the words of the module's documentation.
//!
//! They hold between batches. Replay itself is as lenient as the reference, so a log can break
//! laws 2 and 4; none that a controller wrote does.

use super::{ConfigMap, Image, Partition, TopicRef, configs};
use crate::types::NodeId;

impl Image {
    /// Checks every law but the one about records (which [`Self::emit`] and a replay can show).
    ///
    /// # Errors
    /// The first law that is broken, and where.
    pub fn check(&self) -> Result<(), String> {
        let mut topics = 0;
        let mut partitions = 0;
        let mut leaderless = 0;
        let mut unpreferred = 0;
        for topic in self.topics_unordered() {
            self.check_lookups(topic)?;
            for (id, partition) in topic.partitions() {
                check_partition(partition)
                    .map_err(|law| format!("{} partition {id}: {law}", topic.name()))?;
                partitions += 1;
                leaderless += usize::from(partition.leader() == NodeId::NONE.0);
                unpreferred += usize::from(!partition.led_by_preferred());
            }
            topics += 1;
        }
        if topics != self.topic_count() || partitions != self.partition_count() {
            return Err(format!(
                "counted {topics} topics and {partitions} partitions, kept {} and {}",
                self.topic_count(),
                self.partition_count()
            ));
        }
        let kept = (self.leaderless_count(), self.not_led_by_preferred_count());
        if kept != (leaderless, unpreferred) {
            return Err(format!(
                "counted {leaderless} partitions without a leader and {unpreferred} without their \
                 preferred one, kept {kept:?}"
            ));
        }
        self.topics.check_pools()?;
        self.check_configs()?;
        for (id, broker) in self.brokers() {
            if broker.id != *id || self.registered_at(*id).is_none() {
                return Err(format!("broker {id} is not where its id says"));
            }
        }
        match self.quotas().iter().find(|(_, values)| values.is_empty()) {
            Some((entity, _)) => Err(format!("quota entity {entity:?} has no quota")),
            None => Ok(()),
        }
    }

    fn check_lookups(&self, topic: TopicRef<'_>) -> Result<(), String> {
        let name = topic.name();
        let by_name = self.topic_by_name(name).map(TopicRef::id);
        let by_id = self.topic_by_id(topic.id()).map(TopicRef::name);
        if by_name != Some(topic.id()) || by_id != Some(name) {
            return Err(format!("lookups of {name} find {by_name:?} and {by_id:?}"));
        }
        for other in self.colliding_topics(name) {
            if !self.colliding_topics(other).contains(&name) {
                return Err(format!(
                    "{name} collides with {other} but not the other way"
                ));
            }
        }
        Ok(())
    }

    fn check_configs(&self) -> Result<(), String> {
        let mut count = 0;
        for (kind, name, map) in self.configs.iter() {
            if self.configs.get(kind, name) != Some(map) || map.is_empty() {
                return Err(format!("configuration of {name:?} ({kind}) is not found"));
            }
            if !map.iter().map(|(key, _)| key).is_sorted() {
                return Err(format!("configuration of {name:?} ({kind}) is not sorted"));
            }
            if kind == configs::TOPIC && self.topic_by_name(name).is_none() {
                return Err(format!("configuration of {name}, which is no topic"));
            }
            count += ConfigMap::len(map).min(1);
        }
        if count == self.configs.len() {
            return Ok(());
        }
        let kept = self.configs.len();
        Err(format!("counted {count} configured resources, kept {kept}"))
    }
}

fn check_partition(partition: Partition<'_>) -> Result<(), String> {
    let replicas = partition.replicas();
    let within = |list: &[i32]| list.iter().all(|id| replicas.contains(id));
    let (isr, elr) = (partition.isr(), partition.elr());
    if replicas.is_empty() || has_twins(replicas) || has_twins(isr) || has_twins(elr) {
        return Err(format!("replicas {replicas:?}, ISR {isr:?}, ELR {elr:?}"));
    }
    if !within(isr) || isr.iter().any(|id| elr.contains(id)) {
        return Err(format!(
            "ISR {isr:?} and ELR {elr:?} of replicas {replicas:?}"
        ));
    }
    // A reassignment that is called off can leave an eligible leader behind that is no replica any
    // more: the reference does (seen of 4.4.0).
    let (adding, removing) = (partition.adding(), partition.removing());
    if !within(adding) || !within(removing) {
        return Err(format!(
            "adding {adding:?}, removing {removing:?} of {replicas:?}"
        ));
    }
    let directories = partition.directories().len();
    if directories != replicas.len() {
        return Err(format!("{directories} directories of {replicas:?}"));
    }
    let leader = partition.leader();
    if leader != NodeId::NONE.0 && !isr.contains(&leader) {
        return Err(format!("leader {leader} is not in the ISR {isr:?}"));
    }
    let epochs = (partition.leader_epoch(), partition.partition_epoch());
    if epochs.0 < 0 || epochs.1 < 0 {
        return Err(format!("epochs {epochs:?}"));
    }
    Ok(())
}

fn has_twins(list: &[i32]) -> bool {
    list.iter()
        .enumerate()
        .any(|(at, id)| list[..at].contains(id))
}
