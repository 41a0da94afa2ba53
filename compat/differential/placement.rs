//! Replicas that were placed by chance, by what does not depend on it.

use std::collections::BTreeSet;

use kraftd::image::Image;
use kraftd::records::{Record, VersionedRecord};
use kraftd::types::NodeId;
use serde_json::{Value, json};

/// The record as it is printed; a partition's replicas by their number, racks and soundness.
pub(crate) fn shape(record: &VersionedRecord, image: &Image) -> Value {
    let mut value = record.json();
    let Record::Partition(partition) = &record.record else {
        return value;
    };
    let replicas: BTreeSet<_> = partition.replicas.iter().collect();
    let brokers = || {
        let brokers = partition.replicas.iter();
        brokers.filter_map(|id| image.broker(NodeId(*id)))
    };
    let active: Vec<i32> = brokers()
        .filter(|it| it.is_active())
        .map(|it| it.id.0)
        .collect();
    let racks: BTreeSet<_> = brokers().map(|broker| &broker.rack).collect();
    let data = &mut value["data"];
    data["replicas"] = json!({
        "count": partition.replicas.len(),
        "distinct": replicas.len(),
        "registered": brokers().count(),
        "racks": racks.len(),
    });
    data["isr"] = json!({ "is the active replicas": partition.isr == active });
    data["leader"] = json!({ "is the first of them": active.first() == Some(&partition.leader) });
    if data.get("directories").is_some() {
        data["directories"] = json!({ "count": partition.directories.len() });
    }
    value
}
